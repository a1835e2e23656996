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
"""The fused CoM of `com_estimator`: kinematics and foot wrenches, while anybody listens."""

from __future__ import annotations

from functools import partial
from typing import Any

from biped_com_ros.core.com import com_velocity_in_world
from biped_com_ros.core.com_filter import C, ComFilter, V
from biped_com_ros.core.pose import Array
from biped_com_ros.core.robot import RobotModel, RobotState
from biped_com_ros.core.synchronizer import Synchronizer
from biped_com_ros.core.wrench import WrenchSum
from biped_com_ros.core.zmp import Comparison, ModelWrench
from biped_com_ros.ros.base_sources import BaseSource
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.diagnostics import Diagnostics, OK, Report, WARN
from biped_com_ros.ros.inputs import WrenchInput
from biped_com_ros.ros.outputs import TemplatePublisher, vector_publisher, wrench_publisher
from biped_com_ros.ros.stability_inputs import SoleWrench
from nav_msgs.msg import Odometry
import numpy as np
from std_msgs.msg import Header

_LATE_NS = 20_000_000
"""Foot wrenches further than this from the joint states are not of the same instant."""


class ComFusion:
    """
    Publishes the fused CoM with its covariance, the model's bias and the external force.

    Parameters
    ----------
    node, model
        The rclpy node and the robot.
    world_frame, com_frame
        Of what is published.
    gravity
        m/s2.
    options
        For the inputs; see `inputs.Input`.

    """

    def __init__(self, node: Any, model: RobotModel, world_frame: str, com_frame: str,
                 gravity: float, diagnostics: Diagnostics, **options: Any) -> None:
        self._model, feet = model, model.config.feet
        self.filter = ComFilter(model.mass, gravity=gravity)
        self._model_wrench = ModelWrench(model, gravity=gravity)
        self._last_ns = 0
        options.update(required=False, diagnostics=diagnostics)
        topics = [f'wrench_aggregator/{foot}/wrench' for foot in feet] if all(
            foot.wrench_sensors for foot in feet.values()) else []
        self._soles = [SoleWrench(model, foot) for foot in range(len(topics))]
        self._samples, self._sum = Synchronizer(max(len(topics), 1), 6), WrenchSum(len(feet))
        self._felt_ns = -10 * _LATE_NS
        self._inputs = [WrenchInput(node, topic, '', partial(self._on_wrench, foot), **options)
                        for foot, topic in enumerate(topics)]
        self._fused = _fused_publisher(node, world_frame, com_frame)
        self._bias = vector_publisher(node, '~/com_bias', world_frame)
        self._force = wrench_publisher(node, '~/external_force', com_frame)
        diagnostics.add('com_fused', self._report)

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return self._fused.wanted or self._bias.wanted or self._force.wanted

    def update(self, stamp: Stamp, state: RobotState, base: BaseSource) -> None:
        """Take an instant and publish what is known after it."""
        step_ns, self._last_ns = stamp.ns - self._last_ns, stamp.ns
        if step_ns <= 0:
            self.filter.reset()
        dt, twist = 1e-9 * step_ns, base.twist(state)
        in_contact = base.stance.in_contact
        total = self._total(stamp.ns, state, in_contact)
        comparison, com, velocity = None, None, None
        if twist is None or not 0.0 < dt < self.filter.settings.longest_gap:
            self._model_wrench.reset()
        if twist is not None:
            com, velocity = state.com_in_world, com_velocity_in_world(state, twist)
            comparison = self._model_wrench.update(state, twist, dt, total)
        self._filter(dt, com, velocity, state, total, comparison)
        if self.filter.is_started:
            self._publish(stamp)

    def _filter(self, dt: float, com: Array | None, velocity: Array | None, state: RobotState,
                total: Array | None, comparison: Comparison | None) -> None:
        force = None if total is None else total[:3]
        self.filter.update(dt, com, velocity, state.base.rotation[:, 0], force, comparison,
                           self._model_wrench.delay)

    def _on_wrench(self, foot: int, stamp: Stamp, wrench: Array) -> None:
        moved = self._soles[foot].move(wrench, self._inputs[foot].frame)
        if self._samples.add(foot, stamp.ns, moved):
            self._felt_ns = stamp.ns

    def _total(self, ns: int, state: RobotState, in_contact: tuple[bool, ...]) -> Array | None:
        """Return the wrench of the standing feet about the world's origin; None if unknown."""
        if abs(ns - self._felt_ns) > _LATE_NS:
            return None
        wrenches = self._samples.latest * np.array(in_contact, dtype=float)[:, np.newaxis]
        placements = state.placements_in_base(self._model.soles).dot(state.base.rotation.T)
        placements[:, 3] += state.base.position
        return self._sum.into(np.empty(6), placements[:, :3].transpose(0, 2, 1),
                              placements[:, 3], wrenches)

    def _publish(self, stamp: Stamp) -> None:
        found, fields = self.filter, self._fused.fields
        fields['position'][...], fields['velocity'][...] = found.com, found.velocity
        for name, part in (('position_covariance', C), ('velocity_covariance', V)):
            covariance = np.zeros((6, 6))
            covariance[:3, :3] = found.covariance[part, part]
            fields[name][...] = covariance.ravel()
        self._fused.publish(stamp)
        if self._bias.wanted:
            self._bias.fields['vector'][...] = found.bias_in_world
            self._bias.publish(stamp)
        if self._force.wanted:
            self._force.fields['wrench'][:3] = found.external_force
            self._force.publish(stamp)

    def _report(self) -> Report:
        found = self.filter
        if not found.is_started:
            return OK, 'not computed: nobody has listened yet', {}
        values = {'mass felt [kg]': found.mass,
                  'bias of the model [m]': ', '.join(f'{b:.4f}' for b in found.bias_in_world),
                  'standard deviation [m]': float(np.sqrt(np.trace(found.covariance[C, C])))}
        silent = [source.topic for source in self._inputs if source.stale()]
        if silent or not self._inputs:
            return WARN, ('by kinematics and what was learnt so far; no foot wrenches'
                          + (f' on {", ".join(silent)}' if silent else '')), values
        return OK, 'kinematics and foot wrenches', values


def _fused_publisher(node: Any, world_frame: str, com_frame: str) -> TemplatePublisher:
    prototype = Odometry(header=Header(frame_id=world_frame), child_frame_id=com_frame)
    prototype.pose.pose.orientation.w = 1.0
    return TemplatePublisher(node, '~/com_fused', prototype, {
        'position': 'pose.pose.position', 'position_covariance': 'pose.covariance',
        'velocity': 'twist.twist.linear', 'velocity_covariance': 'twist.covariance'})
