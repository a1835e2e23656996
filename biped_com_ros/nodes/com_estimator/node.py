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
"""
Tells where the centre of mass is: of the whole robot and of each link, from its kinematics.

Everything goes out once per message of `joint_states`, with its stamp, in `world_frame`; TF and
markers at their own rates. While the base is unknown nothing goes out, and ``/diagnostics`` and
the log say what is missing.

==================== ============================== =========================================
topic                type                           what
==================== ============================== =========================================
joint_states         sensor_msgs/JointState         in
imu (robot's YAML)   sensor_msgs/Imu                in, with base_source imu
odom                 nav_msgs/Odometry              in, with base_source odometry
contacts             sensor_msgs/JointState         in, of wrench_aggregator; or Bool per foot,
                                                    see the parameter contact_topics
<foot>/wrench        geometry_msgs/WrenchStamped    in, while somebody listens to what is fused
resting_wrench       geometry_msgs/WrenchStamped    in, once per second at rest, to compare with
                                                    the model: see /diagnostics
~/com                geometry_msgs/PointStamped     centre of mass
~/com_velocity       geometry_msgs/Vector3Stamped   its velocity; not while no sole stands
~/dcm                geometry_msgs/PointStamped     divergent component, on the ground
~/com_fused          nav_msgs/Odometry              CoM and velocity with covariance, from
                                                    kinematics and foot wrenches
~/com_bias           geometry_msgs/Vector3Stamped   what ~/com is off by, as far as felt
~/external_force     geometry_msgs/WrenchStamped    force other than at the feet
~/link_coms          geometry_msgs/PoseArray        in the order of the parameter link_names
~/markers            visualization_msgs/MarkerArray all of it, for RViz
/tf                  tf2_msgs/TFMessage             world -> root link, base_link -> footprint,
                                                    world -> com, world -> <link>_com
==================== ============================== =========================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
import sys
import time
from typing import Any, TYPE_CHECKING

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.fusion import ComFusion, FusionParameters
from biped_com_ros.nodes.com_estimator.model_check import ModelCheck, ModelCheckParameters
from biped_com_ros.nodes.com_estimator.outputs import FrameOutput, Instant, Pace
from biped_com_ros.ros.node.common_parameters import EstimatorParameters, gravity_parameter
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import InputWatch
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.node.timers import call_soon
from biped_com_ros.ros.topics.base_sources import (
    BaseSource, describe_contacts, make_base_source)
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import (
    point_publisher, pose_array_publisher, vector_publisher)
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

if TYPE_CHECKING:
    from biped_com_ros.nodes.com_estimator.markers import MarkerOutput


@dataclass(frozen=True)
class ComEstimatorParameters(EstimatorParameters, ModelCheckParameters, FusionParameters):
    """Parameters of `com_estimator`."""

    com_frame: str = parameter('com', 'TF frame at the centre of mass', read_only=True)
    footprint_frame: str = parameter(
        'base_footprint', 'TF frame on the ground between the standing soles (REP-120)',
        read_only=True)
    publish_base_tf: bool = parameter(
        True, 'Whether to send world_frame -> root link of the URDF (mostly base_link) and '
        'base_link -> footprint_frame; turn it off where another node does', read_only=True)
    publish_link_tf: bool = parameter(
        True, 'Whether to send a frame <link>_com at the centre of mass of each link',
        read_only=True)
    tf_rate: float = parameter(
        30.0, 'How often transforms are sent; 0 turns them off', 'Hz', 0.0, 10000.0)
    marker_density: float = parameter(
        8000.0, 'Each link is shown as a ball of its mass and of this density', 'kg/m3', 1.0, 1e6,
        read_only=True)
    contact_topics: list[str] = parameter(
        [], 'Topics (std_msgs/Bool) that tell whether each foot stands, in the order of the '
        "robot's feet; empty: wrench_aggregator/contacts, which has stamps", read_only=True)
    contact_timeout: float = parameter(
        0.5, 'Silence after which the lowest soles are assumed to stand', 's', 0.001, 60.0,
        read_only=True)
    contact_tolerance: float = parameter(
        0.01, 'How far above the lowest sole another one is still assumed to stand', 'm', 0.0,
        1.0, read_only=True)
    gravity: float = gravity_parameter(read_only=False)


class ComEstimator(Node):
    """Joint states and base in, centre of mass out, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('com_estimator', **node_kwargs)
        self.params = declare_parameters(self, ComEstimatorParameters, self._change)
        self.model: RobotModel | None = None
        self.diagnostics = Diagnostics(self)
        self._source = RobotSource(self, self.params, self._start, self.diagnostics)

    # -- set-up

    def _start(self, model: RobotModel) -> None:
        params = self.params
        options: dict[str, Any] = {
            'diagnostics': self.diagnostics, 'timeout': params.sensor_timeout,
            'max_age': params.max_stamp_age}
        self.base: BaseSource = make_base_source(self, model, params, **options)
        self._declare_links(model)
        self._make_outputs(model)
        self._fusion = ComFusion(self, model, params, self.base, **options)
        self._instant: Instant | None = None
        ModelCheck(self, model, params, lambda: self._instant, **options)
        self._published, self._reported_at, self._last_ns = 0, time.monotonic(), 0
        self._dcm_problem = ''
        self.diagnostics.add('base', self._report_base)
        self.diagnostics.add('com', self._report_com)
        self.model = model
        self.joints = JointStateInput(self, model.joint_names, self._on_joints,
                                      limits=model.credible_positions, **options)
        self._waiting = InputWatch(self, {'joint states': self.joints, **self.base.inputs})

    def _declare_links(self, model: RobotModel) -> None:
        """Tell what the entries of ``~/link_coms`` are."""
        for name, value, words in (
                ('link_names', list(model.link_names), 'Order of ~/link_coms'),
                ('link_masses', model.link_masses.tolist(), 'Masses in the same order [kg]')):
            self.declare_parameter(
                name, value, ParameterDescriptor(description=words, read_only=True),
                ignore_override=True)

    def _make_outputs(self, model: RobotModel) -> None:
        params, world = self.params, self.params.world_frame
        self._com = point_publisher(self, '~/com', world)
        self._velocity = vector_publisher(self, '~/com_velocity', world, later=True)
        self._dcm = point_publisher(self, '~/dcm', world, later=True)
        self._links = pose_array_publisher(
            self, '~/link_coms', world, len(model.link_names), later=True)
        self._frames = FrameOutput(self, model, params)
        call_soon(self, lambda: self._markers)
        self._frame_pace, self._marker_pace = Pace(params.tf_rate), Pace(params.marker_rate)

    @cached_property
    def _markers(self) -> MarkerOutput:
        from biped_com_ros.nodes.com_estimator.markers import MarkerOutput
        assert self.model is not None
        return MarkerOutput(self, self.model, self.params)

    def _change(self, params: ComEstimatorParameters) -> None:
        """Use parameters that were set at run time."""
        self.params = params
        if self.model is not None:
            self._frame_pace.set_rate(params.tf_rate)
            self._marker_pace.set_rate(params.marker_rate)

    # -- on every message

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array, _: Array) -> None:
        ns = stamp_ns
        if ns < self._last_ns:
            self.base.reset()
        self._last_ns = ns
        assert self.model is not None
        state = self.base.locate(self.model.state(positions, velocities), stamp_ns)
        if state is None:
            return
        self._instant = instant = Instant(stamp_ns, state, self.base, self.params.gravity)
        self._publish(instant)
        if self._frame_pace.is_due(ns):
            self._frames.publish(instant)
        if self._marker_pace.is_due(ns):
            self._markers.publish(instant)
            self._dcm_problem = instant.motion[2]

    def _publish(self, instant: Instant) -> None:
        """Publish what goes out with every message, as far as anybody listens."""
        self._published += 1
        if self._com.has_subscribers:
            point = self._com.fields['point']  # entry by entry is faster than a small array
            point[0], point[1], point[2] = instant.xyz
            self._com.publish(instant.stamp_ns)
        if self._links.has_subscribers:
            self._links.fields['position'][...] = instant.state.link_coms_in_world
            self._links.publish(instant.stamp_ns)
        velocity, dcm = self._velocity.has_subscribers, self._dcm.has_subscribers
        if velocity or dcm:
            self._publish_motion(instant, velocity, dcm)

    def _publish_motion(self, instant: Instant, with_velocity: bool, with_dcm: bool) -> None:
        velocity, dcm, self._dcm_problem = instant.motion
        if velocity is not None and with_velocity:
            vector = self._velocity.fields['vector']
            vector[0], vector[1], vector[2] = velocity
            self._velocity.publish(instant.stamp_ns)
        if dcm is not None and with_dcm:
            point = self._dcm.fields['point']
            point[0], point[1], point[2] = dcm
            self._dcm.publish(instant.stamp_ns)

    # -- diagnostics

    def _report_base(self) -> Report:
        base, feet = self.base, tuple(self._source.config.feet)
        standing = describe_contacts(feet, base.stance.in_contact)
        values = {'source': base.name, 'standing': standing,
                  'contacts': 'told' if base.contacts_told else 'assumed'}
        missing = self._waiting.missing
        if missing:
            return ERROR, f'unknown: waiting for {", ".join(missing)}', values
        if base.problem:
            return ERROR, f'unknown: {base.problem}', values
        if base.is_held:
            return WARN, 'held where it was: no foot stands', values
        if not base.contacts_told:
            return WARN, self._assumption(standing), values
        return OK, f'by {base.name}, standing on {standing}', values

    def _assumption(self, standing: str) -> str:
        topics = ', '.join(source.topic for source in self.base.contacts.inputs)
        remedy = (f'nobody tells on {topics}: start wrench_aggregator, or set contact_topics'
                  if topics else 'the robot has no wrench sensors: set contact_topics')
        return f'assuming that the lowest soles stand ({standing}); {remedy}'

    def _report_com(self) -> Report:
        now = time.monotonic()
        rate = self._published / (now - self._reported_at)
        self._published, self._reported_at = 0, now
        values = {'rate [Hz]': rate}
        if not rate:
            return ERROR, 'not published: joint states or base are missing', values
        if self._dcm_problem:
            return WARN, f'no dcm: {self._dcm_problem}', values
        if not self.joints.velocities_measured:
            return WARN, ('joint_states has no velocities: they are differences of the positions, '
                          'and so com_velocity and dcm are noisy'), values
        return OK, f'{rate:.0f} Hz', values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ComEstimator, argv)


if __name__ == '__main__':
    sys.exit(main())
