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
Bends the tendon-driven torso to a target: tendon lengths by its model and two IMUs.

With each message of the torso's IMU (without it at 100 Hz, in open loop) the shape of
the torso is published as its six virtual joints and, while the node is active, lengths are sent
to the tendon drives. Motions are limited in speed and angular acceleration; commands are within
the limits of bend and tension. A target is a bend, its direction and an elongation, or the
position of a joystick.

A lifecycle node: activated, it starts from the present shape; inactive, it sends no lengths, so
that the drives hold their last ones. With ``autostart`` it activates itself. Gains, limits,
co-contraction and rates can be set at run time; values that contradict each other are refused.

========================= =============================== =======================================
topic, service            type                            content
========================= =============================== =======================================
~/target                  geometry_msgs/Vector3Stamped    in: x bend [rad], y its direction [rad,
                                                          0 forward, pi/2 left], z elongation [m]
joy                       sensor_msgs/Joy                 in: a stick; its deflection is the bend
IMU topics of the YAML    sensor_msgs/Imu                 in: ``base`` and ``torso``
joint_states              sensor_msgs/JointState          in: posture of the arms, optional
tendon_states             sensor_msgs/JointState          in: lengths and tensions, optional
`hand_topics`             geometry_msgs/WrenchStamped     in: wrenches on the hands, optional
~/tendon_lengths          std_msgs/Float64MultiArray      commands to the drives, m
~/tensions                std_msgs/Float64MultiArray      expected with these lengths, N
~/joint_states            sensor_msgs/JointState          the virtual joints
~/shape, ~/reference      geometry_msgs/Vector3Stamped    as ~/target: measured, and reference
~/wrench                  geometry_msgs/WrenchStamped     unmodelled wrench on the tip; four
                                                          combinations of it are observable
~/markers                 visualization_msgs/MarkerArray  backbone and tendons
/tf                       tf2_msgs/TFMessage              lower torso -> tip_frame
~/freeze                  std_srvs/SetBool                hold, ignore targets; false: accept them
========================= =============================== =======================================
"""

from __future__ import annotations

from cmath import polar
from collections.abc import Sequence
import contextlib
import math
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.arc import Arc
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.controller import TendonController, TorsoCommand
from biped_com_ros.core.torso.cycle import ControlCycle, TargetInput
from biped_com_ros.core.torso.reference import Joystick
from biped_com_ros.nodes.torso_controller.outputs import TorsoOutputs
from biped_com_ros.nodes.torso_controller.parameters import (
    find_weakness, make_body, make_controller, TorsoControllerParameters)
from biped_com_ros.ros.fast.message_reader import RefusedMessage
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.clock import watchdog
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.lifecycle import ManagedNode
from biped_com_ros.ros.topics.inputs import ImuInput, Input, JointStateInput, WrenchInput
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from biped_com_ros.ros.topics.services import switch_service
from biped_com_ros.ros.topics.stamp import now_ns
from biped_com_ros.ros.topics.whole_messages import subscribe
from geometry_msgs.msg import Vector3Stamped
import numpy as np
from sensor_msgs.msg import Joy

_DEAD_ZONE = 0.05
"""Deflection up to which the stick counts as centred."""
_FALLBACK_PERIOD = 0.01
"""Period of commands while the torso IMU has no data, s."""
POSTURE_PERIOD = 0.02
"""Period of the load of the upper body, s: arms move slowly."""


class TorsoController(ManagedNode[TorsoControllerParameters]):
    """Connects sensors, targets and outputs with the control cycle, `core.torso.cycle`."""

    def __init__(self, **node_kwargs: Any) -> None:
        self.body: TorsoBody | None = None
        self._throttle = Throttle(5.0)
        super().__init__('torso_controller', TorsoControllerParameters, **node_kwargs)
        self._leave_if_not_needed(self.robot_config)  # the model may be waited for

    @property
    def controller(self) -> TendonController:
        """Return the controller; the node has to be configured."""
        return self.cycle.controller

    # -- lifecycle

    def prepare(self, model: RobotModel) -> None:
        """Check the parameters against the robot."""
        self._leave_if_not_needed(model.config)
        self.body = make_body(model, self.params)
        make_controller(self.body, self.params)
        self.diagnostics.add('torso', self._report)

    def _leave_if_not_needed(self, config: RobotConfig) -> None:
        if config.torso is None and self.params.optional:
            self.get_logger().info(
                f"not started: robot '{config.name}' has no tendon-driven torso")
            self.destroy_node()
            raise SystemExit(0)

    def check_parameters(self, params: TorsoControllerParameters) -> None:
        """Refuse parameters that contradict each other."""
        assert self.body is not None
        make_controller(self.body, params)

    def use_inertials(self) -> None:
        """Balance the calibrated weight of the upper body."""
        if self.body is not None:
            self.body.use_inertials()

    def build(self, model: RobotModel) -> None:
        """Make inputs, outputs and the control cycle."""
        body, params = self.body, self.params
        assert body is not None
        if problem := find_weakness(body, params):
            self.get_logger().warning(problem)
        self.outputs = self.keep(TorsoOutputs(
            self, body, params.tip_frame, params.tf_rate, params.marker_rate))
        self.cycle = ControlCycle(
            body, make_controller(body, params), self.outputs.publish_shape, self._on_cycle_end,
            gravity=params.gravity, imu_timeout=params.imu_timeout,
            fallback_period=_FALLBACK_PERIOD)
        self._target = TargetInput(self.cycle.controller)
        self._target_problem = self._refused_target = ''
        self._make_inputs(body)
        self._use(params)
        self._update_load(0)
        self.keep(switch_service(self, '~/freeze', self._freeze))
        self.keep(watchdog(self, _FALLBACK_PERIOD, self.check_inputs))

    def start(self) -> None:
        """Command lengths, starting from the present shape."""
        self.cycle.activate(now_ns(self))
        self._target.enable(True)

    def stop(self) -> None:
        """Command no more lengths; the drives hold their last ones."""
        if self.is_built:
            self.cycle.deactivate()
            self._target.enable(False)

    def apply_parameters(self, params: TorsoControllerParameters) -> None:
        """Continue with other parameters from the present shape."""
        self.controller.set_options(params.control)
        self.outputs.set_rates(params.tf_rate, params.marker_rate)
        self._use(params)

    def _use(self, params: TorsoControllerParameters) -> None:
        assert self.body is not None
        self._joystick = Joystick(self.body.max_bend, _DEAD_ZONE)
        self._joystick_axes = params.joy_forward_axis, params.joy_left_axis
        self._target.timeouts = {'joy': params.joy_timeout, '~/target': params.target_timeout}
        self._timeout = params.imu_timeout
        self.cycle.set_timeout(params.imu_timeout)
        for source in self._inputs:
            source.timeout = params.imu_timeout
        # Most of these messages are skipped.
        self.joint_states.timeout = max(params.imu_timeout, 5.0 * POSTURE_PERIOD)

    def _make_inputs(self, body: TorsoBody) -> None:
        params, config, model = self.params, body.model.config, body.model
        options = self.input_options(params.imu_timeout)
        lower, upper = config.imus[params.lower_imu], config.imus[params.upper_imu]
        others = [name for name in model.joint_names if name not in body.joint_names]
        self._others, self._positions = model.joint_index(others), model.usual_posture()
        tendons = [f'tendon_{i}' for i in range(body.backbone.count)]
        length = body.backbone.length
        self._lower = ImuInput(
            self, lower.topic, lower.frame,
            lambda stamp_ns, *_: self.cycle.add_lower(stamp_ns, self._lower.values[:7]),
            tilt=config.instruments.tilt(lower.frame), **options)
        self.joint_states = JointStateInput(
            self, others, self._on_joint_states, required=False, period=POSTURE_PERIOD,
            limits=tuple(model.credible_positions[i] for i in self._others),
            **model.corrections_of(others), other_joints=body.joint_names, **options)
        self._tendons = JointStateInput(
            self, tendons, self._on_tendons, topic='tendon_states', required=False,
            limits=((0.5 * length, 2.0 * length),) * len(tendons), **options)
        self._hands = [
            WrenchInput(self, topic, hand.frame, self._on_hand, required=False, **options)
            for topic, hand in zip(params.hand_topics, config.hands.values())]
        self._upper = ImuInput(
            self, upper.topic, upper.frame,
            lambda stamp_ns, *_: self.cycle.add_upper(stamp_ns, self._upper.values[:7]),
            tilt=config.instruments.tilt(upper.frame), **options)
        self._inputs: tuple[Input, ...] = self._lower, self._tendons, *self._hands, self._upper
        for source in (*self._inputs, self.joint_states):
            self.keep(source)
        # Stamps of targets are ignored: many are published by hand.
        self.keep(subscribe(self, Vector3Stamped, '~/target', self._on_target, COMMAND_INPUT))
        self.keep(subscribe(self, Joy, 'joy', self._on_joy, COMMAND_INPUT))

    # -- targets

    def _on_target(self, message: Vector3Stamped) -> None:
        bend, direction, elongation = message.vector.x, message.vector.y, message.vector.z
        if math.isfinite(bend) and math.isfinite(direction) and math.isfinite(elongation):
            self._set_target('~/target', make_shape(bend, direction, 0.0, elongation))
        else:
            self._refuse_target(f'~/target: bend {bend}, direction {direction} and elongation '
                                f'{elongation} must be finite numbers')

    def _on_joy(self, message: Joy) -> None:
        axes, (forward, left) = message.axes, self._joystick_axes
        if len(axes) <= max(forward, left):
            self._refuse_target(f'joy has {len(axes)} axes; set joy_forward_axis and '
                                'joy_left_axis to two of them')
            return
        try:
            bend = self._joystick.bend(axes[forward], axes[left])
        except InputError as error:
            self._refuse_target(str(error))
        else:
            self._set_target('joy', np.array((*bend, 0.0, 0.0)))

    def _set_target(self, source: str, shape: Array) -> None:
        if self._target.set_target(source, shape, now_ns(self)):
            self._refused_target = ''

    def _refuse_target(self, reason: str) -> None:
        self._refused_target = reason
        if self._throttle('target'):
            self.get_logger().error(f'{reason} (target not used)')

    def _freeze(self, on: bool) -> str:
        self._target.freeze(on)
        return 'holding; targets are ignored' if on else 'targets are accepted'

    # -- measurements

    def _on_tendons(self, stamp_ns: int, lengths: Array, _: Array, tensions: Array) -> None:
        self.cycle.add_tendons(
            stamp_ns, lengths.tolist(),
            tensions.tolist() if self._tendons.efforts_measured else None)

    def check_inputs(self) -> bool:
        """Continue without late measurements and targets; return whether there are any."""
        now = now_ns(self)
        is_late = self.cycle.check(now)
        self._target_problem = self._target.check(now)
        if self._hands and not 0 <= now - self._load_ns < nanoseconds(2 * POSTURE_PERIOD):
            with contextlib.suppress(RefusedMessage):  # reported by the input
                self._update_load(now)
        return is_late

    def _on_cycle_end(self, stamp_ns: int, arc: Arc, command: TorsoCommand | None) -> None:
        if command is not None:
            self.outputs.publish_command(stamp_ns, command)
        tensions = self.cycle.tensions
        if self.outputs.is_wrench_required and tensions is not None:
            self.outputs.publish_wrench(stamp_ns, arc, np.array(tensions), self.cycle.load)

    # -- load of the upper body

    def _on_joint_states(self, stamp_ns: int, positions: Array, *_: Array) -> None:
        self._positions[self._others] = positions
        self._update_load(stamp_ns)

    def _on_hand(self, stamp_ns: int, _: Array) -> None:
        if not 0 <= stamp_ns - self._load_ns < nanoseconds(POSTURE_PERIOD):
            self._update_load(stamp_ns)

    def _update_load(self, stamp_ns: int) -> None:
        body, self._load_ns = self.body, stamp_ns
        assert body is not None
        try:
            self.cycle.set_load(*body.upper_body(
                body.model.state(self._positions), self.cycle.gravity_in_base,
                self._hand_wrenches(stamp_ns)))
        except InputError as error:
            raise RefusedMessage('impossible posture', str(error)) from None

    def _hand_wrenches(self, stamp_ns: int) -> Array | None:
        """Return the wrenches on the hands, (h, 6), zero if stale; None without hands."""
        if not self._hands:
            return None
        return np.array([
            np.zeros(6) if hand.stale(self._timeout, stamp_ns) else hand.values
            for hand in self._hands])

    # -- diagnostics

    @property
    def problem(self) -> str:
        """Describe what is wrong with commands and targets; '' if nothing is."""
        return '; '.join(filter(None, (self.cycle.problem, self._target_problem)))

    def _report(self) -> Report:
        if not self.is_built:
            return OK, 'not configured', {}
        if not self.cycle.is_active:
            return OK, 'inactive: publishing the shape, sending no lengths', {}
        command, target = self.cycle.command, self._target
        values = {'frozen': target.is_frozen, 'source of target': target.source or 'none yet'}
        if command is None:
            return WARN, self.problem or 'waiting for the torso IMU', values
        bend, direction = map(math.degrees, polar(command.arc.bend))
        reference, reference_direction = map(math.degrees, polar(command.reference_arc.bend))
        values.update({
            'bend by the tendons [deg]': math.degrees(abs(self.controller.bend_by_tendons)),
            'deviation of the bend by the tendons [deg]': math.degrees(
                self.controller.length_errors.deviation),
            'bend [deg]': bend, 'direction [deg]': direction, 'reference [deg]': reference,
            'reference direction [deg]': reference_direction,
            'torsion [deg]': math.degrees(command.arc.torsion),
            'closed loop': command.is_closed_loop,
            'relative yaw of the IMUs [deg]': math.degrees(self.controller.yaw_offset.value),
            'least expected tension [N]': min(command.expected),
            'limited commands': self.controller.limited_updates})
        if self.controller.limited_updates:
            values['last limited command [s ago]'] = self.controller.since_limited
        if self.controller.slack.broken:
            return ERROR, self.problem, values
        text = '; '.join(filter(None, (
            'frozen' if target.is_frozen else '', self.problem, self._refused_target)))
        return (WARN, text, values) if text else (OK, f'bent by {bend:.1f} deg', values)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(TorsoController, argv)


if __name__ == '__main__':
    sys.exit(main())
