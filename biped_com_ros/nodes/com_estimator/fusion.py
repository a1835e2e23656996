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
The fused CoM of `com_estimator`: kinematics and foot wrenches of the same instants.

It has its own subscriptions, made when somebody first listens: who does not ask for it does not
pay for it. As in `zmp_monitor` the messages are brought together by their stamps, so that a
recording that is played again gives the same estimate to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TYPE_CHECKING

from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.leg_odometry import Twist
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
from biped_com_ros.ros.node.diagnostics import Diagnostics, OK, Report, WARN
from biped_com_ros.ros.node.parameters import parameter
from biped_com_ros.ros.node.timers import steady_clock
from biped_com_ros.ros.topics.base_sources import BaseSource
from biped_com_ros.ros.topics.inputs import Input
from biped_com_ros.ros.topics.outputs import TemplatePublisher, vector_publisher, wrench_publisher
from biped_com_ros.ros.topics.stability_inputs import StabilityInputs, Wrenches
from nav_msgs.msg import Odometry
import numpy as np
from std_msgs.msg import Header

if TYPE_CHECKING:
    from biped_com_ros.core.com.filter import ComFilterSettings

_LOOK = 0.2
"""How often it is asked whether anybody listens, s."""
_LONG = 1e3
"""A gap after which the filter begins anew, s."""
_PREFIX = 'fusion_'
_LINEAR = np.arange(36).reshape(6, 6)[:3, :3].ravel()
"""Where in a covariance of six numbers is that of the first three."""


@dataclass(frozen=True)
class FusionParameters:
    """Parameters of the fused CoM; those of the filter are called as in `ComFilterSettings`."""

    wrench_topics: list[str] = parameter(
        [], 'For com_fused: topics (geometry_msgs/WrenchStamped) of what the ground does to each '
        "foot, in any frame fixed to the foot, in the order of the robot's feet; empty: "
        'wrench_aggregator/<foot>/wrench', read_only=True)
    load_link: str = parameter(
        '', 'For com_fused: link that carries what the URDF does not know; empty: the heaviest '
        'one above the base that is not part of a leg', read_only=True)
    fusion_kinematic_position: float = parameter(
        0.00001, 'Least standard deviation of the kinematic CoM; measured noise comes on top', 'm',
        1e-6, 1.0, read_only=True)
    fusion_kinematic_velocity: float = parameter(
        0.0001, 'Least standard deviation of its velocity; measured noise comes on top', 'm/s',
        1e-6, 10.0, read_only=True)
    fusion_acceleration: float = parameter(
        0.02, 'Least standard deviation of the acceleration by the foot forces, as a mean over '
        '10 ms; measured noise comes on top', 'm/s2', 1e-4, 100.0, read_only=True)
    fusion_moment: float = parameter(
        0.00001, 'Least standard deviation of the level CoM by the moments of the feet, filtered; '
        'measured noise comes on top', 'm', 1e-6, 1.0, read_only=True)
    fusion_momentum: float = parameter(
        0.005, "Error of the model's rate of angular momentum, as a share of it", '', 1e-4, 10.0,
        read_only=True)
    fusion_load_cutoff: float = parameter(
        3.0, 'Bandwidth with which moments are compared; above that of the motion', 'Hz', 0.1,
        100.0, read_only=True)
    fusion_initial_moment: float = parameter(
        0.015, 'Standard deviation of the first moment of the unknown load about the centre of '
        "mass of its link at first, over the robot's mass", 'm', 1e-6, 1.0, read_only=True)
    fusion_moment_drift: float = parameter(
        0.00001, 'How that wanders per square root of a second', 'm', 1e-7, 1.0, read_only=True)
    fusion_initial_mass: float = parameter(
        0.1, "Standard deviation of the unknown mass at first, as a share of the robot's", '',
        1e-6, 1.0, read_only=True)
    fusion_mass_drift: float = parameter(
        0.0003, 'How that wanders per square root of a second', '', 1e-7, 1.0, read_only=True)
    fusion_push_sigmas: float = parameter(
        3.8, 'A push is felt where the velocity differs by so many standard deviations from what '
        'the known forces explain', '', 1.0, 100.0, read_only=True)
    fusion_push_force: float = parameter(
        0.1, 'Standard deviation of a push, as a share of the weight', '', 1e-4, 10.0,
        read_only=True)
    fusion_push_lever: float = parameter(
        0.3, 'Standard deviation of the distance of the push from the CoM', 'm', 1e-3, 10.0,
        read_only=True)
    fusion_least_acceleration: float = parameter(
        0.02, 'Horizontal acceleration from which on the height of the load is learnt, if it '
        'stands out against measured noise, too', 'm/s2', 1e-4, 100.0, read_only=True)
    fusion_force_time: float = parameter(
        10.0, 'Time in which a lasting external force is forgotten', 's', 0.1, 1e4,
        read_only=True)
    fusion_unknown_acceleration: float = parameter(
        3.0, 'Standard deviation of the acceleration while the foot forces are unknown', 'm/s2',
        1e-3, 100.0, read_only=True)
    fusion_longest_gap: float = parameter(
        0.5, 'Silence after which position and velocity begin anew; the load is kept', 's', 0.01,
        60.0, read_only=True)


class ComFusion:
    """
    Publishes the fused CoM with its covariance, the model's bias and the external force.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, and the node's parameters: those above and those of a base.
    base
        Where the node has the base, for the position at which to begin.
    diagnostics, options
        For the inputs; see `inputs.Input`.

    """

    def __init__(self, node: Any, model: RobotModel, params: Any, base: BaseSource,
                 diagnostics: Diagnostics, **options: Any) -> None:
        self._node, self._model, self._params, self._base = node, model, params, base
        self._options = options
        self.inputs: StabilityInputs | None = None
        self._fused = _fused_publisher(node, params.world_frame, params.com_frame)
        self._bias = vector_publisher(node, '~/com_bias', params.world_frame, later=True)
        self._force = wrench_publisher(
            node, '~/external_force', params.com_frame, later=True)
        diagnostics.add('com_fused', self._report)
        self._timer = node.create_timer(_LOOK, self._look, clock=steady_clock())

    @property
    def has_subscribers(self) -> bool:
        """Whether anybody listens."""
        return any(out.has_subscribers for out in (self._fused, self._bias, self._force))

    def _look(self) -> None:
        if self.has_subscribers:
            self._timer.cancel()
            self._start()

    def _start(self) -> None:
        from biped_com_ros.core.com.fusion import FusedCom  # not at every start of the node
        model, params = self._model, self._params
        self.fusion = FusedCom(
            model, settings_of(params), params.load_link, params.gravity)
        self._contacts = FootContacts(
            ContactThresholds(), model.mass * params.gravity, len(model.soles.names))
        self._last_ns = self._told = 0
        self._came = self._feels = self._stands = False
        self.inputs = StabilityInputs(
            self._node, model, params, self._feel, self._on_instant, self._reset,
            continue_from=self._base, needs_wrenches=False, **self._options)

    def _feel(self, ns: int, wrenches: Wrenches) -> tuple[bool, ...]:
        return self._contacts.update([wrench[2] for wrench in wrenches], ns)

    def _reset(self) -> None:
        """Begin anew after the clock was set back."""
        self.fusion.reset()
        self._contacts.reset()
        self._last_ns = 0

    def _on_instant(self, stamp_ns: int, state: RobotState, twist: Twist | None,
                    wrenches: Wrenches | None) -> None:
        step_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        self._came, self._feels = True, wrenches is not None
        self._stands = twist is not None
        assert self.inputs is not None
        # Position and velocity of a robot that was put on its feet begin anew; the load is kept.
        dt = _LONG if self.inputs.base.has_stood_up else 1e-9 * step_ns
        self.fusion.update(
            dt, state, twist, None if wrenches is None else np.array(wrenches))
        if self.fusion.filter.is_started and self.has_subscribers:
            self._publish(stamp_ns)

    def _publish(self, stamp_ns: int) -> None:
        found, fields = self.fusion.filter, self._fused.fields
        position, velocity = fields['position'], fields['velocity']
        # Entry by entry is faster than a small array.
        (position[0], position[1], position[2]), (
            velocity[0], velocity[1], velocity[2]) = self.fusion.now()
        if self._told != self.fusion.told:
            self._told = self.fusion.told
            fields['position_covariance'][_LINEAR] = found.com_covariance.reshape(-1)
            fields['velocity_covariance'][_LINEAR] = found.velocity_covariance.reshape(-1)
        self._fused.publish(stamp_ns)
        if self._bias.has_subscribers:
            self._bias.fields['vector'][...] = found.bias
            self._bias.publish(stamp_ns)
        if self._force.has_subscribers:
            self._force.fields['wrench'][:3] = found.external_force
            self._force.publish(stamp_ns)

    def _report(self) -> Report:
        if self.inputs is None:
            return OK, 'not computed: nobody has listened yet', {}
        found, came, self._came = self.fusion.filter, self._came, False
        if came and not self._stands:
            return WARN, ('no foot carries: the robot is in the air, or wrench_sensors.<sensor>.'
                          'sign is wrong (see zmp_monitor on the weight)'), {}
        if not found.is_started:
            missing = self._silent(*self.inputs.inputs.values())
            return WARN, f'waiting: {missing or "for one instant of all inputs"}', {}
        values = {'mass felt [kg]': found.mass,
                  'bias of the model [m]': ', '.join(f'{b:.4f}' for b in found.bias),
                  'standard deviation [m]': float(np.sqrt(np.trace(found.com_covariance)))}
        if not came:
            silent = self._silent(self.inputs.joints, *self.inputs.base.inputs.values())
            return WARN, f'stopped: {silent or "no two messages are of the same instant"}', values
        if not self._feels:
            silent = self._silent(*self.inputs.wrenches)
            return WARN, ('by kinematics and what was learnt so far; no foot wrenches'
                          + (f': {silent}' if silent else '')), values
        return OK, 'kinematics and foot wrenches', values

    @staticmethod
    def _silent(*sources: Input) -> str:
        """Name the topics on which nothing arrives."""
        topics = ', '.join(source.topic for source in sources if source.stale())
        return f'nothing on {topics}' if topics else ''


def settings_of(params: FusionParameters) -> ComFilterSettings:
    """Return the filter's settings that parameters ask for."""
    from biped_com_ros.core.com.filter import ComFilterSettings
    return ComFilterSettings(**{
        name[len(_PREFIX):]: value for name, value in vars(params).items()
        if name.startswith(_PREFIX)})


def _fused_publisher(node: Any, world_frame: str, com_frame: str) -> TemplatePublisher:
    prototype = Odometry(header=Header(frame_id=world_frame), child_frame_id=com_frame)
    prototype.pose.pose.orientation.w = 1.0
    return TemplatePublisher(node, '~/com_fused', prototype, {
        'position': 'pose.pose.position', 'position_covariance': 'pose.covariance',
        'velocity': 'twist.twist.linear', 'velocity_covariance': 'twist.covariance'}, later=True)
