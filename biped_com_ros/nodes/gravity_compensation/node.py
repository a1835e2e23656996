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
Publishes the efforts that balance gravity, to be added to those of position controllers.

Each JointState gives the posture, the IMU the attitude, and the vertical forces of
``wrench_aggregator`` the load of each foot. Efforts follow the robot while all inputs are usable;
otherwise the last efforts are held for `hold_time`, then ramp to zero, and ``/diagnostics`` shows
the reason. Every effort is clamped and rate limited.

A lifecycle node: efforts ramp up after activation and down after deactivation, and are published
until they are zero; only then can it be cleaned up. With ``autostart`` it activates itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
import re
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.gravity.compensation import AUTO, GravityCompensator
from biped_com_ros.core.gravity.supervisor import EffortSupervisor, JOINT_STATES
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gravity_compensation.arbitration import CommandArbiter, RESTARTING
from biped_com_ros.nodes.gravity_compensation.command_takeover import CommandTakeover
from biped_com_ros.nodes.gravity_compensation.controller_watch import (
    ControllerWatch, JointOrder, JointSet)
from biped_com_ros.nodes.gravity_compensation.outputs import (
    COMMAND_TOPIC, CommandOutput, ControllerOutput, EffortOutput, SupportOutput)
from biped_com_ros.nodes.gravity_compensation.parameters import (
    GravityCompensationParameters, make_compensator)
from biped_com_ros.nodes.gravity_compensation.trajectory import TRAJECTORY_TOPIC, TrajectoryOutput
from biped_com_ros.ros.fast.message_reader import RefusedMessage
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.clock import steady_time, watchdog
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import guard_callbacks, run
from biped_com_ros.ros.node.lifecycle import ManagedNode
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import (
    ArrayInput, ImuInput, Input, JointStateInput, StampedArrayInput, WrenchInput)
from biped_com_ros.ros.topics.payload_input import PayloadInput
from biped_com_ros.ros.topics.stamp import is_time_simulated, now_ns
from biped_com_ros.viz.arrows import arrow_scale
import numpy as np
from rclpy.event_handler import PublisherEventCallbacks

#: Period of steps while joint states are late, s.
_WATCH_PERIOD = 0.01
#: Time for which simulated time may stand still before real time replaces it, s.
_CLOCK_TIMEOUT = 1.0
#: Numbers are left out where messages are compared, so that a changing one is not logged anew.
_NUMBER = re.compile(r'[0-9.]+')
#: The name of the IMU in messages to users.
IMU = 'the IMU'


class GravityCompensation(ManagedNode[GravityCompensationParameters]):
    """Connects inputs, `EffortSupervisor` and outputs, see the module."""

    def __init__(self, **node_kwargs: Any) -> None:
        self.compensator: GravityCompensator | None = None
        self._may_log = Throttle()
        self._last_simulated = self._stands_since = 0.0
        super().__init__('gravity_compensation', GravityCompensationParameters, **node_kwargs)

    # -- lifecycle

    def prepare(self, model: RobotModel) -> None:
        """Refuse parameters that make no sense for the robot."""
        make_compensator(model, self.params)
        self.diagnostics.add('effort', self._report)

    def build(self, model: RobotModel) -> None:
        """Make everything for the robot."""
        compensator = make_compensator(model, self.params)
        self.supervisor = EffortSupervisor(compensator, self._describe_input)
        self._make_outputs(compensator)
        self._make_inputs(compensator)
        self.payload = self.keep(PayloadInput(self, self.params))
        compensator.gravity_model.payload = self.payload.carried
        self._configure_supervisor(self.params)
        self._is_simulated = is_time_simulated(self)
        self.keep(watchdog(self, _WATCH_PERIOD, self._watch))
        self.compensator = compensator

    def start(self) -> None:
        """Begin the soft start."""
        self._controller.compare()
        self._commands.start()
        guard_callbacks(self)
        self.takeover.start()
        self.arbiter.start()
        self.supervisor.start(self._now())

    def stop(self) -> None:
        """Begin the soft stop; efforts are published until they are zero."""
        if self.compensator is not None:
            self._commands.stop()
            self.supervisor.stop()

    @property
    def stopping_time(self) -> float:
        """Time that efforts take to ramp to zero after `stop`, s."""
        return self.params.compensation.safety.stop_time

    def busy(self) -> str:
        """Efforts that still ramp down keep the node from being cleaned up."""
        is_idle = self.compensator is None or self.supervisor.limiter.idle
        return '' if is_idle else 'efforts are still ramping down'

    def dismantle(self) -> None:
        """Discard the measurements."""
        self.compensator = None

    # -- set-up

    def _make_outputs(self, compensator: GravityCompensator) -> None:
        params, model = self.params, compensator.model
        contacts = compensator.gravity_model.contacts
        self._effort_output = self.keep(EffortOutput(self, model))
        self._support_output = self.keep(SupportOutput(
            self, [contact.name for contact in contacts],
            [contact_frame(model.config, contact.name) for contact in contacts],
            params.marker_rate, arrow_scale(model, params.compensation.gravity)))
        joints = tuple(params.command_joints) or model.actuated_joint_names
        is_trajectory = params.trajectory_rate > 0.0
        topic = self.resolve_topic_name(TRAJECTORY_TOPIC if is_trajectory else COMMAND_TOPIC)
        self._controller = self.keep(ControllerWatch(
            self, topic, params.controller, joints, JointSet() if is_trajectory else JointOrder(),
            lambda: self.supervisor.limiter.is_near_zero))
        events = PublisherEventCallbacks(matched=self._controller.compare)
        self._commands: ControllerOutput = self.keep(
            TrajectoryOutput(self, model, params, joints,
                             lambda: not self.supervisor.limiter.is_at_zero, events)
            if is_trajectory else CommandOutput(self, model, joints, events))
        self.takeover = self.keep(CommandTakeover(self, topic, joints, self._commands.remedy))
        self.arbiter = CommandArbiter(
            compensator.limiter, self._controller, self.takeover, self._commands)

    def _make_inputs(self, compensator: GravityCompensator) -> None:
        params, model, options = self.params, compensator.model, self.input_options()
        contacts = [contact.name for contact in compensator.gravity_model.contacts]
        imu = model.config.imu
        self._inputs: dict[str, Any] = {IMU: self.keep(
            ImuInput(self, imu.topic, imu.frame, self._on_imu,
                     tilt=model.config.instruments.tilt(imu.frame), **options))}
        for i, (contact, topic) in enumerate(zip(contacts, self._wrench_topics(contacts, params))):
            name, frame = f"the wrench of '{contact}'", contact_frame(model.config, contact)
            # In any frame, as zmp_monitor, so that nodes of a process share the subscription.
            self._inputs[name] = self.keep(WrenchInput(
                self, topic, '', partial(self._on_wrench, i, name, frame),
                noisy=contact not in map(model.config.hand_label, model.config.virtual_hands),
                force_z=contact in model.config.feet_with_force_z,
                largest=largest_credible_load(model.mass), **options))
        #: The shares that a gait plans; no diagnostics of it, since usually no gait is played.
        self._plan: Input | None = None
        self._plans_refused = 0
        if list(model.config.feet) == contacts:
            self._plan = self.keep(ArrayInput(
                self, names.PLANNED_SHARES, len(contacts), self._on_plan, timeout=0.5,
                required=False))
        self._subscribe_to_deviations(contacts, options)
        self._inputs[JOINT_STATES] = self.keep(JointStateInput(
            self, model.joint_names, self._on_joints, limits=model.credible_positions,
            **model.corrections_of(model.joint_names), **options))

    def _subscribe_to_deviations(self, contacts: Sequence[str], options: dict[str, Any]) -> None:
        """Subscribe to the covariance of the wrenches of virtual feet, if shares follow them."""
        feet = self.model.config.feet
        self._is_virtual = np.array([foot.is_virtual for foot in feet.values()])
        if (not self.params.wrench_topics and list(feet) == contacts and self._is_virtual.any()):
            self.keep(StampedArrayInput(
                self, names.WRENCH_COVARIANCE, (6 * len(feet)) ** 2, self._on_covariance,
                largest=largest_credible_load(self.model.mass) ** 2, required=False, **options))

    def _wrench_topics(self, contacts: Sequence[str],
                       params: GravityCompensationParameters) -> list[str]:
        """Return the topic of each contact; none if there are no sensors and none is needed."""
        config, topics = self.model.config, params.wrench_topics
        if topics and len(topics) != len(contacts):
            raise ConfigurationError(
                f"parameter 'wrench_topics': {topics} must be {len(contacts)} topics, one per "
                f'contact ({", ".join(contacts)}); or empty')
        if topics or config.wrench_sensors or config.has_foot_wrenches:
            return topics or [names.wrench_of(name) for name in contacts]
        if params.compensation.support == AUTO:
            raise ConfigurationError(
                f"robot '{config.name}' has no wrench sensors, so support cannot be 'auto': "
                "set wrench_topics, 'source: virtual' of the feet, or another support")
        return []

    def apply_parameters(self, params: GravityCompensationParameters) -> None:
        """Use those changed at run time; the limiter ramps steps, but that to a lower clamp."""
        compensator = self.compensator
        if compensator is None:
            return
        new = make_compensator(compensator.model, params)  # raises before anything changes
        self._wrench_topics([contact.name for contact in new.gravity_model.contacts], params)
        compensator.configure(new.settings)
        compensator.limiter.enabled, compensator.gains = new.limiter.enabled, new.gains
        self._configure_supervisor(params)
        if params.compensation.support != self.params.compensation.support:
            self.watch_required_inputs()

    def _configure_supervisor(self, params: GravityCompensationParameters) -> None:
        inputs, is_auto = self._inputs, params.compensation.support == AUTO
        for name, source in inputs.items():
            source.required = is_auto or name in (IMU, JOINT_STATES)
        self.supervisor.configure(
            [name for name, source in inputs.items() if source.required and name != JOINT_STATES],
            params.input_timeout)

    def use_inertials(self) -> None:
        """Balance calibrated masses; the limiter's rate limit makes the step a ramp."""
        if self.compensator is not None:
            self.compensator.use_inertials()

    # -- inputs

    def _on_imu(self, stamp_ns: int, quaternion: Array, angular_velocity: Array,
                linear_acceleration: Array) -> None:
        if self.compensator is not None:
            self.compensator.imu.update(quaternion)
            self.supervisor.receive(IMU, stamp_ns)

    def _on_wrench(self, contact: int, name: str, frame: str, stamp_ns: int,
                   wrench: Array) -> None:
        if (received := self._inputs[name].frame) != frame:
            raise RefusedMessage('wrong frame', f"its frame_id is '{received}'; valid: '{frame}'")
        if self.compensator is not None:
            self.compensator.update_wrench(contact, wrench.tolist(), stamp_ns)
            self.supervisor.receive(name, stamp_ns)

    def _on_covariance(self, stamp_ns: int, values: Array) -> None:
        if self.compensator is not None:
            # The diagonal, and of it the vertical force of each foot.
            variances = values[::6 * len(self._is_virtual) + 1][2::6]
            self.compensator.update_deviations(
                np.sqrt(np.where(self._is_virtual, variances, 0.0)).tolist(), stamp_ns)

    def _on_plan(self, stamp_ns: int, shares: Array) -> None:
        if self.compensator is not None:
            self.compensator.plan_shares(shares, stamp_ns)

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array, _: Array) -> None:
        if self.compensator is None or self.supervisor.limiter.idle:
            return
        # /clock ticks less often than joint states arrive; their stamps are of the same time.
        now = stamp_ns / SECOND_NS if self._is_simulated else steady_time()
        inhibited = self._arbitrate(now)
        self.compensator.update_payload(stamp_ns)
        efforts = self.supervisor.update(
            positions, stamp_ns, now, inhibited, self.arbiter.is_applied)
        if efforts is not None:
            self._publish(stamp_ns, efforts, positions, velocities)
            if self.supervisor.target is not None:
                self._support_output.publish(stamp_ns, self.compensator)

    def _arbitrate(self, now: float) -> str:
        """Update who may command; return why nothing may although the inputs are good, or ''."""
        self._commands.cancel_other_goals()
        self.arbiter.update_conflict()
        self._continue_predecessor(now)
        return self.arbiter.inhibition()

    def _continue_predecessor(self, now: float) -> None:
        """Begin with the efforts that a predecessor commanded when it was killed, if any."""
        takeover, controller = self.takeover, self._controller
        if not takeover.is_pending:
            return
        applying = takeover.record.subscribers
        controller.subscribers.note_predating(applying)
        if self.arbiter.conflict or controller.problem:
            return
        efforts = takeover.take_efforts(controller.subscribers.ids)
        if efforts is not None:
            self.get_logger().warning(
                'the previous instance of this node was killed: starting from its last efforts, '
                f'up to {np.abs(efforts).max():.3g} N m or N')
            controller.begin(set(applying))
            self._commands.continue_commands()
            self.supervisor.continue_from(self._commands.of_all_joints(efforts), now)

    def _watch(self) -> bool:
        """Step in place of joint states that are late, and return whether they are."""
        self._is_simulated = is_time_simulated(self)
        if self.compensator is None:
            return False
        now = self._now()
        if self.takeover.is_pending:
            self._arbitrate(now)
        efforts = self.supervisor.watch(now, self.arbiter.is_blocked)
        if efforts is not None:
            self._publish(nanoseconds(now) if self._is_simulated else now_ns(self), efforts)
        return efforts is not None

    def _now(self) -> float:
        """
        Return seconds of a clock that does not jump, or of the simulated one.

        When simulated time stands still for 1 s, real time replaces it: without a simulator
        efforts have to ramp down, too.
        """
        steady = steady_time()
        if not self._is_simulated:
            return steady
        simulated = now_ns(self) / SECOND_NS
        if simulated != self._last_simulated:
            self._last_simulated, self._stands_since = simulated, steady
        return simulated + max(steady - self._stands_since - _CLOCK_TIMEOUT, 0.0)

    # -- outputs

    def _publish(self, stamp_ns: int, efforts: Array, *measured: Array) -> None:
        """Publish what the supervisor gave; nothing else publishes efforts."""
        takeover, supervisor, commands = self.takeover, self.supervisor, self._commands
        if commands.begins():
            self._controller.compare()  # before the event that a subscriber has come is handled
            self._controller.must_restart |= not supervisor.limiter.is_at_zero
        if self._controller.must_restart and not takeover.is_pending:
            takeover.record.clear()
        refusal = self.arbiter.refusal()
        if refusal:
            commands.interrupt(refusal)
        else:
            commands.publish(stamp_ns, efforts, takeover.record.efforts, *measured)
            takeover.note_subscribers(self._controller.applying)
        self._effort_output.publish(stamp_ns, efforts)
        if not refusal and supervisor.limiter.idle:
            takeover.end()
        # Each reason by itself, whatever numbers are in it: one must not hide another.
        if (reaction := self._reaction()) and self._may_log(_NUMBER.sub('', supervisor.problem)):
            if supervisor.problem == RESTARTING:
                self.get_logger().warning(RESTARTING)
            else:
                self.get_logger().error(f'{reaction}: {supervisor.problem}')

    def _reaction(self) -> str:
        """Return what is done about a problem; '' if there is none, or nothing is commanded."""
        if not self.supervisor.problem or self.supervisor.limiter.is_at_zero:
            return ''
        if self.arbiter.is_blocked:
            return 'no command is sent, and the controller keeps the last one'
        hold_time = self.params.compensation.safety.hold_time
        return (f'holding the last efforts for {hold_time:g} s, then ramping to zero'
                if self.supervisor.limiter.is_interrupted else '')

    # -- diagnostics

    def _describe_input(self, name: str) -> str:
        source = self._inputs[name]
        if source.stale():
            return f'{name} is stale: {source.report()[1]}'
        return f'{name} cannot be used: {source.last_error}' if source.is_refusing else ''

    def _report(self) -> Report:
        compensator = self.compensator
        if compensator is None:
            return OK, 'not configured', {}
        supervisor, limiter, mode = self.supervisor, compensator.limiter, compensator.mode
        state = supervisor.limiter.state
        values = {'state': state, 'support': mode, 'controller': self._controller.state,
                  'largest effort [N m or N]': float(np.abs(limiter.efforts).max())}
        if self._commands.restriction:
            values['limits'] = self._commands.restriction
        if not supervisor.limiter.active:
            return OK, f'inactive, {state}', values
        # All of them: one that comes and goes must not hide one that stays.
        problems = dict.fromkeys(filter(None, (
            self.arbiter.find_conflict(), self._commands.report(), supervisor.take_problem())))
        if problems:
            return ERROR, f'{state}: {"; ".join(problems)}', values
        if problem := self._plan_problem():
            return WARN, f'{state}, support {mode}; {problem}', values
        if saturation := limiter.describe_saturation(compensator.model.joint_names):
            return WARN, saturation, values
        return OK, f'{state}, support {mode}', values

    def _plan_problem(self) -> str:
        """Return why a plan was refused since the last call; '' if none was."""
        if self._plan is None:
            return ''
        before, self._plans_refused = self._plans_refused, sum(self._plan.refused.values())
        return self._plan.last_error if self._plans_refused > before else ''


def contact_frame(config: RobotConfig, contact: str) -> str:
    """Return the frame_id of a contact, as `wrench_aggregator` names it."""
    if contact in config.feet:
        return config.sole_frame(contact)
    hand = contact if contact in config.hands else contact.removesuffix('_hand')
    return config.hands[hand].frame


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(GravityCompensation, argv)


if __name__ == '__main__':
    sys.exit(main())
