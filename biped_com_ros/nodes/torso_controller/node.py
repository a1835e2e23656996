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
Bends the tendon-driven torso where it is asked to: lengths for the tendons, by model and IMU.

With every message of the torso's IMU (without it at `fallback_rate`, in open loop) the torso's
shape is told to everybody as its six virtual joints, and, while the node is active, lengths go to
the tendons. Motions are limited in speed and angular acceleration, commands stay within the limits
of bend and tension. A target is a bend, its direction and an elongation, or a joystick.

Each message of the torso's IMU opens an instant, whose shape goes out once and whose lengths go
out once. Where the lower IMU and the tendons' states bear the same stamps, the work is divided:
what comes first of an instant brings the plan to its time, both IMUs give the shape, and the last
of the three sends lengths. Who lets an instant pass is waited for until the next message of the
torso's IMU, and then not at all until it has been in step again (`core.torso.message_groups`). With
other stamps, all is done with the torso's IMU, by what is known then, unless it is stale.

A lifecycle node: it starts from where the torso is; inactive, it sends no lengths, so that drives
hold their last ones. With ``autostart`` it activates itself. Gains, limits, co-contraction and
rates can be set while it runs; values that do not go together are refused with the reason.

========================= =============================== =======================================
topic, service            type                            what
========================= =============================== =======================================
~/target                  geometry_msgs/Vector3Stamped    in: x bend [rad], y its direction [rad,
                                                          0 forward, pi/2 left], z elongation [m]
joy                       sensor_msgs/Joy                 in: a stick; deflection is bend
IMU topics of the YAML    sensor_msgs/Imu                 in: ``base`` and ``torso``
joint_states              sensor_msgs/JointState          in: what the arms weigh, optional
tendon_states             sensor_msgs/JointState          in: lengths and tensions, optional
`hand_topics`             geometry_msgs/WrenchStamped     in: what the hands feel, optional
~/tendon_lengths          std_msgs/Float64MultiArray      to the drives, m
~/tensions                std_msgs/Float64MultiArray      expected with them, N
~/joint_states            sensor_msgs/JointState          the virtual joints
~/shape, ~/reference      geometry_msgs/Vector3Stamped    as a target: where it is, and should be
~/wrench                  geometry_msgs/WrenchStamped     unexplained, on the tip; of its six parts
                                                          only four combinations can be known
~/markers                 visualization_msgs/MarkerArray  backbone and tendons
/tf                       tf2_msgs/TFMessage              lower torso -> tip_frame
~/freeze                  std_srvs/SetBool                stop and stay; false: take targets again
========================= =============================== =======================================
"""

from __future__ import annotations

from cmath import polar
from collections.abc import Sequence
import contextlib
from dataclasses import dataclass, fields, replace
import math
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.arc import Arc
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.controller import TorsoCommand, TendonController
from biped_com_ros.core.torso.joystick import Joystick
from biped_com_ros.core.torso.message_groups import MessageGroups
from biped_com_ros.core.torso.options import ControllerOptions, TendonDrive
from biped_com_ros.core.torso.orientation import TorsoOrientation, Tip, UPRIGHT
from biped_com_ros.core.torso.reference import MotionLimits
from biped_com_ros.core.torso.step_timer import StepTimer
from biped_com_ros.core.torso.tension import map_closure, TensionLimits
from biped_com_ros.nodes.torso_controller.outputs import TorsoOutputs
from biped_com_ros.ros.fast.message_reader import RefusedMessage
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.common_parameters import gravity_parameter, ManagedNodeParameters
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.lifecycle import ManagedNode
from biped_com_ros.ros.node.parameters import parameter
from biped_com_ros.ros.node.timers import watchdog
from biped_com_ros.ros.topics.inputs import ImuInput, Input, JointStateInput, WrenchInput
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from biped_com_ros.ros.topics.services import switch_service
from biped_com_ros.ros.topics.stamp import now_ns
from geometry_msgs.msg import Vector3Stamped
import numpy as np
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from sensor_msgs.msg import Joy

_POSTURE_PERIOD = 20_000_000
"""How long the upper body's posture counts as the same, ns: arms move slowly."""

_LISTEN_PERIOD = 20_000_000
"""How often it is looked whether the source of targets has fallen silent, ns."""

_LOWER, _TENDONS = 0, 1
"""Companions of the torso's IMU, see :class:`MessageGroups`."""


@dataclass(frozen=True)
class TorsoControllerParameters(ManagedNodeParameters):
    """Parameters of `torso_controller`."""

    lower_imu: str = parameter(
        'base', "IMU of the robot's YAML below the backbone", read_only=True)
    upper_imu: str = parameter(
        'torso', "IMU of the robot's YAML above the backbone", read_only=True)
    hand_topics: list[str] = parameter(
        [], 'Topics (WrenchStamped, environment on robot, in the frame of the hand) of what the '
        "robot's hands feel, in the order of its YAML; empty: they feel nothing", read_only=True)
    max_speed: float = parameter(
        1.5, 'Largest speed of the bend', 'rad/s', 0.001, 10.0)
    max_acceleration: float = parameter(
        20.0, 'Largest angular acceleration of the reference; Russo et al. measured 36', 'rad/s2',
        0.01, 36.0)
    smoothing: float = parameter(
        0.03, 'Time constant of the two low-passes of the reference', 's', 0.0, 1.0)
    co_contraction: float = parameter(
        12.0, 'Tension of every tendon of a straight torso that carries nothing', 'N', 0.0, 1e4)
    min_tension: float = parameter(
        3.0, 'Least tension of a tendon', 'N', 0.0, 1e4)
    max_tension: float = parameter(
        60.0, 'Largest tension of a tendon', 'N', 0.1, 1e5)
    tendon_stiffness: float = parameter(
        7000.0, 'Stiffness of drive and tendon in series', 'N/m', 1.0, 1e9)
    tendon_pretension: float = parameter(
        11.9, 'Tension of a tendon as long as commanded; 0 where commands are unloaded lengths',
        'N', 0.0, 1e4)
    tendon_lead: float = parameter(
        0.025, 'How far the bend lags behind commands: the drives, and a little the backbone', 's',
        0.0, 0.5)
    proportional_gain: float = parameter(
        0.4, 'Feedback of the bend, of bend on bend', '', 0.0, 10.0)
    integral_gain: float = parameter(
        4.0, 'Feedback of the bend', '1/s', 0.0, 100.0)
    anticipation: float = parameter(
        0.06, 'How far ahead proportional_gain looks by the gyroscopes: that damps, and makes up '
        'for delays', 's', 0.0, 0.5)
    max_correction: float = parameter(
        8.0, 'Most that feedback adds to the bend', 'deg', 0.0, 45.0)
    observer_time: float = parameter(
        0.3, 'Time constant with which unexplained moments are taken in; 0: not at all', 's', 0.0,
        60.0)
    imu_disagreement: float = parameter(
        10.0, 'Bend between IMU and tendon lengths from which the IMU is not believed', 'deg',
        0.1, 180.0)
    yaw_drift_time: float = parameter(
        5.0, 'Time constant with which the relative yaw of the two IMUs is learnt; 0: they agree '
        'about north', 's', 0.0, 600.0)
    slack_tension: float = parameter(
        0.3, 'Tension below which a tendon counts as loose', 'N', 0.0, 100.0)
    slack_time: float = parameter(
        0.05, 'How long a tendon has to be loose to count as slack', 's', 0.0, 10.0)
    broken_time: float = parameter(
        1.0, 'How long a tendon has to be loose to count as broken', 's', 0.01, 60.0)
    imu_timeout: float = parameter(
        0.1, 'Age at which IMU data or tendon states are not used any more', 's', 0.001, 10.0)
    joy_timeout: float = parameter(
        0.5, 'Silence of the joystick after which the torso stops and holds', 's', 0.01, 60.0)
    target_timeout: float = parameter(
        0.0, 'Silence of ~/target after which the torso stops and holds; 0: it goes on to the '
        'last target', 's', 0.0, 60.0)
    joy_forward_axis: int = parameter(
        1, 'Axis of the joystick that is 1 forward', '', 0, 31)
    joy_left_axis: int = parameter(
        0, 'Axis of the joystick that is 1 to the left', '', 0, 31)
    joy_dead_zone: float = parameter(
        0.05, 'Deflection of the stick that still is the centre', '', 0.0, 0.9)
    fallback_rate: float = parameter(
        100.0, 'How often the torso is moved on while its IMU is silent', 'Hz', 1.0, 1000.0,
        read_only=True)
    tip_frame: str = parameter(
        'torso_tip', 'TF frame at the far end of the backbone; empty: no TF. The name of the '
        'upper link only where nobody else sends it', read_only=True)
    tf_rate: float = parameter(
        50.0, 'How often TF is sent; 0 turns it off', 'Hz', 0.0, 10000.0)
    marker_rate: float = parameter(
        15.0, 'How often markers are published; 0 turns them off', 'Hz', 0.0, 10000.0)
    gravity: float = gravity_parameter(read_only=False)

    def options(self) -> ControllerOptions:
        """Return the same for the controller."""
        return ControllerOptions(
            MotionLimits(self.max_speed, self.max_acceleration, self.smoothing),
            TendonDrive(self.tendon_stiffness, self.tendon_pretension, self.tendon_lead),
            TensionLimits(self.min_tension, self.max_tension), self.co_contraction,
            self.proportional_gain, self.integral_gain, self.anticipation,
            math.radians(self.max_correction),
            self.observer_time, math.radians(self.imu_disagreement), self.yaw_drift_time,
            self.slack_tension, self.slack_time, self.broken_time)


class TorsoController(ManagedNode[TorsoControllerParameters]):
    """Wires sensors to a controller and that to the tendons, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        self.body: TorsoBody | None = None
        self.controller: Any = None
        self.command: TorsoCommand | None = None
        self.is_active, self.is_frozen = False, False
        self._throttle = Throttle(5.0)
        super().__init__('torso_controller', TorsoControllerParameters, **node_kwargs)
        self.add_on_set_parameters_callback(self._examine)

    # -- lifecycle

    def prepare(self, model: RobotModel) -> None:
        """Refuse what makes no sense for the robot."""
        self.body = make_body(model, self.params)
        make_controller(self.body, self.params)
        self.diagnostics.add('torso', self._report)

    def build(self, model: RobotModel) -> None:
        """Begin to listen and to tell the torso's shape."""
        body, params = self.body, self.params
        assert body is not None
        self.controller = make_controller(body, params)
        if problem := weakness(body, params):
            self.get_logger().warning(problem)
        self._joystick = Joystick(body.max_bend, params.joy_dead_zone)
        self._outputs = self.keep(TorsoOutputs(
            self, body, params.tip_frame, params.tf_rate, params.marker_rate))
        self.problem, self.refusal = '', ''
        self._source_of_target, self._told_at = '', 0
        self._in_open_loop = self._is_holding = False
        self._listened_at, self._silence = 0, ''
        self._instants, self._waiting_ns = MessageGroups(2), 0
        #: Between instants, and between plans.
        self._elapsed, self._planned = StepTimer(), StepTimer()
        #: Stamps of what was told last, ns.
        self._lower_ns = self._tendons_ns = NEVER_NS
        self._imus, self._foot, self._is_seen = body.imus, body.imus.foot(UPRIGHT), False
        self._make_inputs(body)
        self._weigh(0)
        self.keep(switch_service(self, '~/freeze', self._freeze))
        self.keep(watchdog(self, 1.0 / params.fallback_rate, self._watch))

    def start(self) -> None:
        """Begin to move, from where the torso is."""
        self.controller.reset(self._shape_now())
        self._instants.forget()
        self._source_of_target, self.is_active = '', True

    def stop(self) -> None:
        """Send nothing more; the drives hold their last lengths."""
        self.is_active, self.command = False, None
        self._instants.forget()

    def dismantle(self) -> None:
        """Forget what was measured."""
        self.controller, self.command = None, None

    def _examine(self, changes: list[Parameter]) -> SetParametersResult:
        """Refuse parameters that do not go together; each by itself is in its range."""
        names = {field.name for field in fields(self.params)}
        try:
            wanted = replace(self.params, **{
                change.name: change.value for change in changes if change.name in names})
            if self.body is not None:
                make_controller(self.body, wanted)
        except BipedComError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except TypeError:  # of a wrong type: refused by who checks each by itself
            pass
        return SetParametersResult(successful=True)

    def apply_parameters(self, params: TorsoControllerParameters) -> None:
        """Go on with other parameters, from where the torso is."""
        self.params = params
        if self.controller is None or self.body is None:
            return
        self.controller.set_options(params.options())
        self._joystick = Joystick(self.body.max_bend, params.joy_dead_zone)
        self._outputs.set_rates(params.tf_rate, params.marker_rate)
        self._set_timeout()

    def _set_timeout(self) -> None:
        timeout = self.params.imu_timeout
        self._timeout_ns = nanoseconds(timeout)
        for source in self._inputs:
            source.timeout = timeout
        # Of these, most messages are passed over.
        self._arms.timeout = max(timeout, 5e-9 * _POSTURE_PERIOD)

    def _make_inputs(self, body: TorsoBody) -> None:
        params, config = self.params, body.model.config
        options: dict[str, Any] = {
            'diagnostics': self.diagnostics, 'timeout': params.imu_timeout,
            'max_age': params.max_stamp_age}
        lower, upper = config.imus[params.lower_imu], config.imus[params.upper_imu]
        others = [name for name in body.model.joint_names if name not in body.joint_names]
        self._others = body.model.joint_index(others)
        tendons = [f'tendon_{i}' for i in range(body.backbone.count)]
        length = body.backbone.length
        self._positions = first_posture(body.model)
        self._lower = ImuInput(self, lower.topic, lower.frame, self._on_lower, **options)
        self._arms = JointStateInput(
            self, others, self._on_arms, required=False, period=1e-9 * _POSTURE_PERIOD,
            limits=tuple(body.model.credible_positions[i] for i in self._others), **options)
        self._tendons = JointStateInput(
            self, tendons, self._on_tendons, topic='tendon_states', required=False,
            limits=((0.5 * length, 2.0 * length),) * len(tendons), **options)
        self._hands = [
            WrenchInput(self, topic, hand.frame, self._on_hand, required=False, **options)
            for topic, hand in zip(params.hand_topics, config.hands.values())]
        self._upper = ImuInput(self, upper.topic, upper.frame, self._on_upper, **options)
        self._lower_values, self._upper_values = self._lower.values[:7], self._upper.values[:7]
        self._inputs: tuple[Input, ...] = (
            self._lower, self._tendons, *self._hands, self._upper)
        for source in (*self._inputs, self._arms):
            self.keep(source)
        self._set_timeout()
        # Commands come seldom, and from people: their stamps are not looked at.
        self.keep(self.create_subscription(
            Vector3Stamped, '~/target', self._on_target, COMMAND_INPUT))
        self.keep(self.create_subscription(Joy, 'joy', self._on_joy, COMMAND_INPUT))

    # -- targets

    def _on_target(self, message: Vector3Stamped) -> None:
        target = message.vector
        if not (math.isfinite(target.x) and math.isfinite(target.y) and math.isfinite(target.z)):
            self._refuse(f'~/target: bend {target.x}, direction {target.y} and elongation '
                         f'{target.z} must be finite')
            return
        self._take('~/target', make_shape(target.x, target.y, 0.0, target.z))

    def _on_joy(self, message: Joy) -> None:
        axes, params = message.axes, self.params
        try:
            if len(axes) <= max(params.joy_forward_axis, params.joy_left_axis):
                raise InputError(f'joy has {len(axes)} axes; set joy_forward_axis and '
                                 'joy_left_axis to two of them')
            bend = self._joystick.bend(axes[params.joy_forward_axis], axes[params.joy_left_axis])
        except InputError as error:
            self._refuse(str(error))
        else:
            self._take('joy', np.array((*bend, 0.0, 0.0)))

    def _take(self, source: str, shape: Array) -> None:
        """Go to a shape, if the torso is to go anywhere."""
        controller = self.controller
        if controller is None or not self.is_active or self.is_frozen:
            return
        try:
            controller.set_target(shape)
        except InputError as error:
            self._refuse(f'{source}: {error}')
            return
        self.refusal = ''
        self._source_of_target, self._told_at = source, self._now()

    def _refuse(self, reason: str) -> None:
        self.refusal = reason
        if self._throttle('target'):
            self.get_logger().error(f'{reason} (target not used)')

    def _freeze(self, on: bool) -> str:
        self.is_frozen = on
        if on and self.controller is not None:
            self.controller.hold()
        return 'stops and holds; targets are not taken' if on else 'takes targets again'

    def _hold_if_told_nothing(self, stamp_ns: int) -> str:
        """Stop when the source of targets has fallen silent; return what is wrong, if so."""
        self._listened_at = stamp_ns
        limits = {'joy': self.params.joy_timeout, '~/target': self.params.target_timeout}
        source, now = self._source_of_target, self._now()
        self._told_at = min(self._told_at, now)  # it is later where the clock was set back
        limit, silence = limits.get(source, 0.0), 1e-9 * (now - self._told_at)
        if not limit or silence <= limit:
            self._is_holding = False
            return ''
        if not self._is_holding:
            self._is_holding = True
            self.controller.hold()
        return f'{source} has been silent for {silence:.1f} s: holding'

    # -- on every message

    def _now(self) -> int:
        """Return the node's time, ns."""
        return int(self.get_clock().now().nanoseconds)

    def _on_lower(self, stamp_ns: int, *_: Array) -> None:
        self._foot = foot = self._imus.foot(self._lower_values)
        self._lower_ns = stamp_ns
        (across, along), gravity = foot.up, self.params.gravity
        self._load[0].gravity_in_base = -gravity * across, -gravity * along
        self._hear(_LOWER, stamp_ns)

    def _on_tendons(self, stamp_ns: int, lengths: Array, _: Array, tensions: Array) -> None:
        before, self._tendons_ns = self._tendons_ns, stamp_ns
        self.controller.set_tendons(
            1e-9 * (stamp_ns - before), lengths.tolist(),
            tensions.tolist() if self._tendons.efforts_measured else None)
        self._hear(_TENDONS, stamp_ns)

    def _hear(self, companion: int, stamp_ns: int) -> None:
        """Go on with the instant that waited for this; or plan and prepare the next one."""
        instants = self._instants
        if instants.tell(companion, stamp_ns):
            if instants.missing >> _LOWER & 1:
                self.controller.distribute()
            self._go_on(instants.missing)
        elif self.is_active and not instants.missing and instants.is_in_step(companion):
            if stamp_ns != self._planned.last_ns:
                self._plan(stamp_ns)
                if instants.is_in_step(_LOWER + _TENDONS - companion):
                    return  # who comes next prepares it
            self.controller.distribute()

    def _on_upper(self, stamp_ns: int, *_: Array) -> None:
        if self._instants.missing:
            self._go_on(0)  # nothing more will come of that one
        self._begin(stamp_ns, self._imus.tip(self._upper_values))

    def _begin(self, stamp_ns: int, tip: Tip | None) -> None:
        """Begin an instant, with what the torso's IMU says, and go as far as is possible."""
        passed = self._elapsed.advance(stamp_ns)
        if not passed:
            return
        self._stamp_ns, self._passed, self._tip, self._is_seen = stamp_ns, passed, tip, False
        self._in_open_loop = tip is None
        if not self.is_active:
            self._tell_shape()
            return
        if tip is None:
            self._instants.forget()  # what has no guide is in step with nobody
            missing = 0
        else:
            missing = self._instants.begin(stamp_ns)
        if stamp_ns != self._planned.last_ns:
            self._plan(stamp_ns)
        elif missing >> _LOWER & 1:
            self.controller.distribute()
        self._go_on(missing)

    def _go_on(self, missing: int) -> None:
        """Take what steps of the open instant can be taken while some companions are missing."""
        self._instants.missing = missing
        if not (self._is_seen or missing >> _LOWER & 1):
            self._see()
        if not missing:
            self._command()

    def _watch(self) -> bool:
        """
        Go on without the IMU when it is late, and without those that it waits for.

        Tells whether one of them is late.
        """
        stamp_ns, instants = now_ns(self), self._instants
        late = self._elapsed.time_since(stamp_ns)
        is_late = late > self.params.imu_timeout
        if instants.missing and (is_late or self._waiting_ns == instants.ns):
            self._go_on(0)
        self._waiting_ns = instants.ns
        if is_late:
            self._begin(stamp_ns, None)
        elif self._in_open_loop and late > 0.9 / self.params.fallback_rate:
            self._begin(stamp_ns, self._last_tip())
        if self._hands and not 0 <= stamp_ns - self._weighed_ns < 2 * _POSTURE_PERIOD:
            with contextlib.suppress(RefusedMessage):  # said where it comes from
                self._weigh(stamp_ns)
        return self._in_open_loop or instants.missing > 0

    def _last_tip(self) -> Tip | None:
        """Return what the torso's IMU said last, unless that is too long ago."""
        is_silent = self._upper.stale(self.params.imu_timeout)
        return None if is_silent else self._imus.tip(self._upper_values)

    # -- steps of an instant

    def _plan(self, stamp_ns: int) -> None:
        """Bring the plan to a time, unless it is beyond."""
        passed = self._planned.advance(stamp_ns)
        if passed:
            if not 0 <= stamp_ns - self._listened_at < _LISTEN_PERIOD:
                self._silence = self._hold_if_told_nothing(stamp_ns)
            self.controller.plan(passed, *self._load)

    def _see(self) -> None:
        """Tell the shape."""
        controller, stamp_ns = self.controller, self._stamp_ns
        self._is_seen = True
        if self._tendons_ns < stamp_ns - self._timeout_ns:
            controller.set_tendons(0.0)
        controller.set_orientation(self._sight())
        self._outputs.publish_shape(stamp_ns, controller.arc, controller.rates)

    def _command(self) -> None:
        """Send lengths."""
        stamp_ns = self._stamp_ns
        try:
            self.command = command = self.controller.command(
                self._passed, 1e-9 * (stamp_ns - self._tendons_ns))
        except InputError as error:
            self.problem = f'{error}: nothing sent'
            return
        problems, silence = command.problems, self._silence
        self.problem = '; '.join(filter(None, (*problems, silence))) if problems else silence
        self._outputs.publish_command(stamp_ns, command)
        if self._outputs.is_more_wanted:
            self._tell_wrench(command.arc)

    def _tell_wrench(self, arc: Arc) -> None:
        """Tell what shape and tensions say of what acts on the tip."""
        if self._tendons_ns >= self._stamp_ns - self._timeout_ns and (
                self._tendons.efforts_measured):
            self._outputs.publish_wrench(
                self._stamp_ns, arc, self._tendons.efforts, self._load[0])

    def _sight(self) -> TorsoOrientation:
        """Return what the IMUs say, as far as it is fresh."""
        tip = self._tip if self._lower_ns >= self._stamp_ns - self._timeout_ns else None
        return self._imus.sight(self._foot, tip, self.controller.yaw_offset.value)

    # -- the upper body

    def _on_arms(self, stamp_ns: int, positions: Array, *_: Array) -> None:
        self._positions[self._others] = positions
        self._weigh(stamp_ns)

    def _on_hand(self, stamp_ns: int, _: Array) -> None:
        if not 0 <= stamp_ns - self._weighed_ns < _POSTURE_PERIOD:
            self._weigh(stamp_ns)

    def _weigh(self, stamp_ns: int) -> None:
        """Find what the upper body does to the tip, by posture and hands."""
        body, (across, along) = self.body, self._foot.up
        assert body is not None
        gravity, self._weighed_ns = self.params.gravity, stamp_ns
        try:
            self._load = body.upper_body(
                body.model.state(self._positions), (-gravity * across, -gravity * along),
                self._hand_wrenches(stamp_ns))
        except InputError as error:
            raise RefusedMessage('impossible posture', str(error)) from None

    def _hand_wrenches(self, stamp_ns: int) -> Array | None:
        """Return what the hands feel, (h, 6), zero where that is not known; None without any."""
        if not self._hands:
            return None
        return np.array([
            np.zeros(6) if hand.stale(self.params.imu_timeout, stamp_ns) else hand.values
            for hand in self._hands])

    # -- while it is inactive

    def _tell_shape(self) -> None:
        """Tell the shape that the torso has by itself."""
        sight = self._sight()
        arc = self._arc_of(sight)
        self._outputs.publish_shape(self._stamp_ns, arc, sight.rates(arc))
        self._tell_wrench(arc)

    def _shape_now(self) -> Array:
        """Return the shape (4,) that the torso has now."""
        self._stamp_ns, self._tip = now_ns(self), self._last_tip()
        return self._arc_of(self._sight()).shape

    def _arc_of(self, sight: TorsoOrientation) -> Arc:
        """Return the backbone by tendon lengths, or else by IMU, or else straight."""
        assert self.body is not None
        backbone, tendons = self.body.backbone, self._tendons
        if self._tendons_ns >= self._stamp_ns - self._timeout_ns:
            with contextlib.suppress(InputError):
                return backbone.arc_of(backbone.shape_from_lengths(tendons.positions).shape)
        return backbone.arc(sight.bend or 0j, sight.torsion)

    # -- diagnostics

    def _report(self) -> Report:
        command, controller = self.command if self.controller else None, self.controller
        if controller is None:
            return OK, 'not configured', {}
        if not self.is_active:
            return OK, 'inactive: tells the shape, moves nothing', {}
        values = {'frozen': self.is_frozen, 'target by': self._source_of_target or 'nobody yet'}
        if command is None:
            return WARN, self.problem or 'waiting for the torso IMU', values
        bend, direction = map(math.degrees, polar(command.arc.bend))
        wanted, towards = map(math.degrees, polar(command.reference_arc.bend))
        values.update({
            'bend [deg]': bend, 'direction [deg]': direction, 'reference [deg]': wanted,
            'reference direction [deg]': towards,
            'torsion [deg]': math.degrees(command.arc.torsion),
            'closed loop': command.is_closed_loop,
            'relative yaw of the IMUs [deg]': math.degrees(controller.yaw_offset.value),
            'least expected tension [N]': float(command.tensions.min())})
        if controller.slack.broken:
            return ERROR, self.problem, values
        words = '; '.join(filter(None, (
            'frozen' if self.is_frozen else '', self.problem, self.refusal)))
        return (WARN, words, values) if words else (OK, f'bent by {bend:.1f} deg', values)


def make_body(model: RobotModel, params: TorsoControllerParameters) -> TorsoBody:
    """
    Return the torso with its IMUs.

    Raises
    ------
    ConfigurationError
        If the robot has no tendon torso, or not the IMUs.

    """
    body, imus = TorsoBody(model), model.config.imus
    for name, value in (('lower_imu', params.lower_imu), ('upper_imu', params.upper_imu)):
        if value not in imus:
            raise ConfigurationError(
                f"parameter '{name}': robot '{model.config.name}' has no IMU '{value}'; its YAML "
                f'has {", ".join(sorted(imus)) or "none"}')
    body.use_imus(imus[params.lower_imu].frame, imus[params.upper_imu].frame)
    hands, topics = model.config.hands, params.hand_topics
    if topics and len(topics) != len(hands):
        raise ConfigurationError(
            f"parameter 'hand_topics' has {len(topics)} topics; robot '{model.config.name}' has "
            f'{len(hands)} hands: {", ".join(hands) or "none"}')
    body.use_hands([hand.frame for hand in hands.values()] if topics else [])
    return body


def make_controller(body: TorsoBody, params: TorsoControllerParameters) -> TendonController:
    """Return the controller, or raise ConfigurationError where parameters do not go together."""
    try:
        return TendonController(body.statics, body.max_bend, params.options())
    except BipedComError as error:
        raise ConfigurationError(f'parameters of torso_controller: {error}') from None


def weakness(body: TorsoBody, params: TorsoControllerParameters) -> str:
    """Return where the tendons cannot hold the upper body in its first posture; or nothing."""
    load, _ = body.upper_body(
        body.model.state(first_posture(body.model)), (0j, -params.gravity))
    found = map_closure(
        body.statics, TensionLimits(params.min_tension, params.max_tension),
        np.array((0.0, body.max_bend)), np.radians(np.arange(0.0, 360.0, 45.0)), load)
    if found.is_held.all():
        return ''
    return (f'tendons of {params.min_tension:g} to {params.max_tension:g} N cannot bend this '
            f'torso by {math.degrees(body.max_bend):g} deg: {-found.reserve.min():.3g} N m are '
            'missing; set max_tension and the other parameters of the tendons for this robot')


def first_posture(model: RobotModel) -> Array:
    """Return the joint positions that are assumed before any were told."""
    return (model.posture() if 'stand' in model.config.postures
            else np.zeros(len(model.joint_names)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(TorsoController, argv)


if __name__ == '__main__':
    sys.exit(main())
