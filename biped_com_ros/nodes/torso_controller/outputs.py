# Copyright 2026 biped_com_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Publishers of `torso_controller`: commands to the tendons and the shape of the torso."""

from __future__ import annotations

from cmath import polar

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.core.torso.arc import Arc, array_of, wrench_of
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.controller import TorsoCommand
from biped_com_ros.core.torso.statics import Load
from biped_com_ros.ros.topics.markers import line_strip, marker_publisher, rgba
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, joint_state_publisher, TemplatePublisher, vector_publisher,
    wrench_publisher)
from biped_com_ros.ros.topics.tf import TransformOutput
from biped_com_ros.viz.palette import QUIET, TENDON
import numpy as np
from rclpy.node import Node

#: Points of the backbone's line, and disks of the tendons' lines.
_POINTS, _DISKS = 13, 7


class TorsoOutputs:
    """
    All topics of `torso_controller`.

    Lengths and joints are always published, the other topics only to subscribers.

    Parameters
    ----------
    node, body
        The rclpy node, and the torso.
    tip_frame
        TF frame at the tip of the backbone; empty: no TF.
    tf_rate, marker_rate
        Hz; zero: never.

    """

    def __init__(self, node: Node, body: TorsoBody, tip_frame: str, tf_rate: float,
                 marker_rate: float) -> None:
        self._body, self._frame = body, body.config.lower
        names = [f'tendon_{i}' for i in range(body.backbone.count)]
        self._lengths = float_array_publisher(node, '~/tendon_lengths', len(names), names)
        self._tensions = float_array_publisher(node, '~/tensions', len(names), names)
        self._joints = joint_state_publisher(
            node, '~/joint_states', body.joint_names, ('position', 'velocity'))
        self._shape = vector_publisher(node, '~/shape', self._frame)
        self._reference = vector_publisher(node, '~/reference', self._frame)
        self._wrench = wrench_publisher(node, '~/wrench', tip_frame or body.config.upper)
        self._markers = self._make_markers(node)
        self._transform = TransformOutput(node, [(self._frame, tip_frame)]) if tip_frame else None
        self._tf_pace, self._marker_pace = StampThrottle(tf_rate), StampThrottle(marker_rate)

    def set_rates(self, tf_rate: float, marker_rate: float) -> None:
        """Use other rates, Hz."""
        self._tf_pace.set_rate(tf_rate)
        self._marker_pace.set_rate(marker_rate)

    @property
    def is_wrench_required(self) -> bool:
        """Whether the wrench on the tip has subscribers."""
        return self._wrench.has_subscribers

    def publish_command(self, stamp_ns: int, command: TorsoCommand) -> None:
        """Publish the lengths for the drives, the expected tensions and the reference."""
        self._lengths.fields['data'][...] = command.commanded
        self._lengths.publish()
        self._tensions.publish_value(command.expected)
        _publish_bend(self._reference, stamp_ns, command.reference_arc)

    def publish_shape(self, stamp_ns: int, arc: Arc, rates: tuple[complex, float]) -> None:
        """Publish shape, virtual joints, transform and markers, for rates in rad/s."""
        joints, positions = self._joints, self._body.positions(arc)
        fields = joints.fields
        fields['position'][...] = positions
        fields['velocity'][...] = self._body.velocities(arc, rates, positions)
        joints.publish(stamp_ns)
        _publish_bend(self._shape, stamp_ns, arc)
        if self._transform is not None and self._tf_pace.is_due(stamp_ns):
            self._send_transform(self._transform, stamp_ns, arc)
        if self._marker_pace.is_due(stamp_ns) and self._markers.has_subscribers:
            self._publish_markers(stamp_ns, arc.shape)

    def publish_wrench(self, stamp_ns: int, arc: Arc, tensions: Array, load: Load) -> None:
        """Publish the estimate of the wrench on the tip that is not part of a known load."""
        estimate = self._body.statics.estimate_wrench(arc.shape, tensions, load)
        force, along, moment, about = wrench_of(estimate.wrench)
        self._wrench.fields['wrench'][...] = array_of((
            *arc.rotate_back(force, along), *arc.rotate_back(moment, about)))
        self._wrench.publish(stamp_ns)

    def _send_transform(self, transform: TransformOutput, stamp_ns: int, arc: Arc) -> None:
        if transform.has_subscribers:
            pose = self._body.lower_to_base @ self._body.backbone.tip(arc.shape)
            transform.positions[0], transform.quaternions[0] = pose.position, pose.quaternion
            transform.publish(stamp_ns)

    def destroy(self) -> None:
        """Destroy the publishers."""
        for output in (self._lengths, self._tensions, self._joints, self._shape,
                       self._reference, self._wrench, self._markers, self._transform):
            if output is not None:
                output.destroy()

    def _make_markers(self, node: Node) -> TemplatePublisher:
        count, frame = self._body.backbone.count, self._frame
        lines = [line_strip(frame, 'backbone', _POINTS, 0, rgba(QUIET), 0.012), *(
            line_strip(frame, 'tendons', _DISKS, i, rgba(TENDON), 0.002) for i in range(count))]
        fields = {str(i): f'markers[{i}].points' for i in range(len(lines))}
        return marker_publisher(node, lines, fields)

    def _publish_markers(self, stamp_ns: int, shape: Array) -> None:
        body, backbone = self._body, self._body.backbone
        self._markers.fields['0'][...] = body.lower_to_base.apply(backbone.points(shape, _POINTS))
        holes = np.array([body.lower_to_base.apply(backbone.holes(shape, u))
                          for u in np.linspace(0.0, 1.0, _DISKS)])
        for i in range(backbone.count):
            self._markers.fields[str(i + 1)][...] = holes[:, i]
        self._markers.publish(stamp_ns)


def _publish_bend(output: TemplatePublisher, stamp_ns: int, arc: Arc) -> None:
    output.publish_value((*polar(arc.bend), arc.elongation), stamp_ns)
