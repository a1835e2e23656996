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
Holds a robot against its weight: efforts to be added to what its position controllers do.

With every JointState the posture is weighed in the attitude that the IMU tells; the vertical
forces of ``wrench_aggregator`` say how the feet share the weight. What comes out passes a guard
(clamp, rate limit, ramps). When an input falls silent or cannot be true, the last efforts are
held for a moment, then ramp to zero, and ``/diagnostics`` says why.

A lifecycle node: efforts ramp up after activation and down after deactivation, and are published
until they are zero; only then can it be cleaned up. With ``autostart`` it activates itself.

The age of an input is by how much its stamp is behind that of the joint states; steps of efforts
are measured on a clock that never jumps (with ``use_sim_time`` by those stamps).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
import math
import sys
import time
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.gravity.compensation import (
    AUTO, BOUNDED, CLOSED_FORM, CompensationSettings, GravityCompensator)
from biped_com_ros.core.gravity.effort_guard import SafetySettings
from biped_com_ros.core.gravity.load_sharing import SharingSettings
from biped_com_ros.core.gravity.model import MountedImu
from biped_com_ros.core.gravity.support_qp import SupportLimits
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gravity_compensation.controller_check import ControllerCheck
from biped_com_ros.nodes.gravity_compensation.outputs import (
    EffortOutput, SupportOutput, TrajectoryOutput)
from biped_com_ros.ros.fast.message_reader import RefusedMessage
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.common_parameters import gravity_parameter, ManagedNodeParameters
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.lifecycle import ManagedNode
from biped_com_ros.ros.node.parameters import parameter
from biped_com_ros.ros.node.timers import watchdog
from biped_com_ros.ros.topics.inputs import (
    ArrayInput, ImuInput, Input, JointStateInput, WrenchInput)
from biped_com_ros.ros.topics.stamp import now_ns
import numpy as np

#: How often efforts go on while joint states are silent, s.
_WATCH_PERIOD = 0.01
#: The watchdog takes over when joint states are this late, s.
_LATE = 0.03
#: A walk that says no more of what it plans is over, ns.
_PLAN_LASTS_NS = 200_000_000
#: Stamps may be this much ahead of the simulated clock, s.
_SET_BACK = 0.5


@dataclass(frozen=True)
class GravityCompensationParameters(ManagedNodeParameters):
    """Parameters of `gravity_compensation`."""

    support: str = parameter(
        AUTO, "What carries the robot: 'auto' (by the measured forces), 'fixed' (the torso is "
        "held), 'all' (every contact alike), or contacts by name, separated by commas")
    contacts: list[str] = parameter(
        [], 'Feet and hands that may carry; empty: the feet', read_only=True)
    distribution: str = parameter(
        CLOSED_FORM, 'How contact wrenches are chosen: the least ones in closed form, or the '
        'least ones within friction, soles and efforts (needs proxsuite)',
        options=(CLOSED_FORM, BOUNDED))
    groups: list[str] = parameter(
        [], "Groups of joints of the robot's YAML that take part; empty: all actuated joints")
    gain_joints: list[str] = parameter([], 'Joints with a gain of their own')
    gains: list[float] = parameter(
        [], 'Share of the computed effort that each of gain_joints gets', '', 0.0, 1.5)
    command_joints: list[str] = parameter(
        [], "Order of ~/commands: the parameter 'joints' of the effort controller; empty: all "
        'actuated joints in the order of the URDF', read_only=True)
    controller: str = parameter(
        '', "Effort controller whose parameter 'joints' is compared with command_joints before "
        'anything is sent; empty: not compared', read_only=True)
    trajectory_rate: float = parameter(
        0.0, 'How often ~/joint_trajectory (held positions or ~/reference, with efforts) is '
        'published; 0: never', 'Hz', 0.0, 1000.0, read_only=True)
    wrench_topics: list[str] = parameter(
        [], 'Topics (WrenchStamped in the contact frame) of the contacts; empty: '
        'wrench_aggregator/<contact>/wrench', read_only=True)
    effort_clamp: float = parameter(
        0.5, "Largest effort, as a share of the joint's limit in the URDF", '', 0.001, 1.0)
    effort_rate: float = parameter(
        2.0, "Fastest change of an effort, as a share of the joint's limit per second", '1/s',
        0.001, 1000.0)
    unlimited_joints: float = parameter(
        0.0, 'Limit of joints whose URDF gives none; 0: they get no effort', 'N m', 0.0, 1e5)
    start_time: float = parameter(2.0, 'Duration of the soft start', 's', 0.01, 60.0)
    stop_time: float = parameter(1.0, 'Duration of the soft stop', 's', 0.01, 60.0)
    input_timeout: float = parameter(
        0.1, 'Age of an input at which it is not trusted any more', 's', 0.001, 10.0)
    hold_time: float = parameter(
        0.2, 'How long the last efforts are then held before they ramp to zero', 's', 0.0, 10.0)
    max_tilt: float = parameter(
        60.0, 'Largest tilt of the base that the IMU is believed', 'deg', 1.0, 180.0)
    max_turn_rate: float = parameter(
        10.0, 'Fastest change of tilt that the IMU is believed', 'rad/s', 0.1, 1000.0)
    settle_time: float = parameter(
        0.5, 'How long the IMU has to be steady after a jump', 's', 0.0, 10.0)
    cop_tolerance: float = parameter(
        0.02, 'How far outside its sole the centre of pressure of a lone foot may have to be',
        'm', 0.0, 1.0)
    share_lift: float = parameter(
        0.06, 'Vertical force, as a share of body weight, below which a contact carries nothing',
        '', 0.0, 0.49)
    share_full: float = parameter(
        0.2, 'Vertical force, as a share of body weight, above which a contact carries what it '
        'feels', '', 0.001, 0.49)
    share_rate: float = parameter(
        2.0, 'Fastest change of a share; small shares change more slowly', '1/s', 0.01, 1000.0)
    friction: float = parameter(0.5, "Friction coefficient, with 'bounded'", '', 0.01, 10.0)
    torsional_friction: float = parameter(
        0.02, "Largest torque about the normal per normal force, with 'bounded'", 'm', 0.0001,
        1.0)
    sole_margin: float = parameter(
        0.005, "Distance of the centre of pressure from the sole's edge, with 'bounded'", 'm',
        0.0, 0.1)
    torque_lever: float = parameter(
        0.1, 'A torque of 1 N m at a sole is as undesirable as a force of one over this, in N',
        'm', 0.001, 10.0, read_only=True)
    gravity: float = gravity_parameter()
    marker_rate: float = parameter(
        15.0, 'How often markers are published; 0: never', 'Hz', 0.0, 1000.0, read_only=True)
    marker_scale: float = parameter(
        0.001, 'Length of an arrow per force', 'm/N', 0.0, 1.0, read_only=True)


class GravityCompensation(ManagedNode[GravityCompensationParameters]):
    """Wires sensors to `GravityCompensator` and that to controllers, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        self.compensation: Any = None
        self.problem = ''
        #: The last problem, until it has been reported, however short it was.
        self._trouble = ''
        self._may_log = Throttle()
        super().__init__('gravity_compensation', GravityCompensationParameters, **node_kwargs)

    # -- lifecycle

    def prepare(self, model: RobotModel) -> None:
        """Refuse what makes no sense for the robot."""
        make_compensation(model, self.params)
        self.diagnostics.add('effort', self._report)

    def build(self, model: RobotModel) -> None:
        """Make everything for the robot."""
        compensation = make_compensation(model, self.params)
        self._make_outputs(compensation)
        self._make_inputs(compensation)
        self._is_simulated = self.get_clock().ros_time_is_active
        self._updated, self.problem = self._now(), 'waiting for inputs'
        self._set_timeout()
        self.keep(watchdog(self, _WATCH_PERIOD, self._watch))
        self.compensation = compensation

    def start(self) -> None:
        """Begin the soft start."""
        self._trouble = ''
        self._controller.ask()
        self._trajectory_output.start()
        self.compensation.guard.start()

    def stop(self) -> None:
        """Begin the soft stop; what is still commanded ramps down."""
        if self.compensation is not None:
            self.compensation.guard.stop()

    def busy(self) -> str:
        """Efforts that still ramp down keep the node from being cleaned up."""
        return '' if self.compensation.guard.idle else 'efforts are still ramping down'

    def dismantle(self) -> None:
        """Forget what was measured."""
        self.compensation = None

    # -- set-up

    def _make_outputs(self, compensation: GravityCompensator) -> None:
        params, gravity_model = self.params, compensation.gravity_model
        config = compensation.model.config
        self._effort_output = self.keep(
            EffortOutput(self, compensation.model, params.command_joints))
        self._support_output = self.keep(SupportOutput(
            self, gravity_model,
            [contact_frame(config, contact.name) for contact in gravity_model.contacts],
            params.marker_rate, params.marker_scale))
        self._trajectory_output = self.keep(TrajectoryOutput(
            self, compensation.model, self._effort_output.command_joints, params.trajectory_rate))
        self._positions: Array | None = None
        self._controller = self.keep(ControllerCheck(
            self, params.controller, self._effort_output.command_joints))

    def _make_inputs(self, compensation: GravityCompensator) -> None:
        params, model = self.params, compensation.model
        options: dict[str, Any] = {'diagnostics': self.diagnostics, 'timeout': 0.5,
                                   'max_age': params.max_stamp_age}
        #: What a walk plans; not a line of its own in the diagnostics, as mostly nobody walks.
        self._plan: Input | None = None
        self._plans_refused = 0
        #: Stamps (ns) of what the IMU told last, and each contact's wrench; in this order.
        self._told_ns, self._senders = [NEVER_NS], ['the IMU']
        #: Who feels each contact, and in which frame that has to be.
        self._feelers: list[tuple[WrenchInput, str]] = []
        imu = model.config.imu
        self._imu = MountedImu(model, imu.frame)
        self._inputs: dict[str, Input] = {'the IMU': self.keep(
            ImuInput(self, imu.topic, imu.frame, self._on_imu, **options))}
        contacts = tuple(contact.name for contact in compensation.gravity_model.contacts)
        for i, (name, topic) in enumerate(self._wrench_topics(compensation)):
            self._told_ns.append(NEVER_NS)
            self._senders.append(name)
            # In any frame: zmp_monitor in the same process reads it so, too.
            feeler = self._inputs[name] = self.keep(WrenchInput(
                self, topic, '', partial(self._on_wrench, i),
                largest=largest_credible_load(model.mass), required=params.support == AUTO,
                **options))
            self._feelers.append((feeler, contact_frame(model.config, contacts[i])))
        if params.support == AUTO and tuple(model.config.feet) == contacts:
            self._plan = self.keep(ArrayInput(
                self, 'gait_player/shares', len(contacts), self._on_plan, timeout=0.5,
                required=False))
        self._inputs['joint_states'] = self.keep(JointStateInput(
            self, model.joint_names, self._on_joints, limits=model.credible_positions, **options))

    def _wrench_topics(self, compensation: GravityCompensator) -> list[tuple[str, str]]:
        """Return what to call the wrench of each contact, and its topic."""
        config, given = compensation.model.config, self.params.wrench_topics
        names = [contact.name for contact in compensation.gravity_model.contacts]
        if given and len(given) != len(names):
            raise ConfigurationError(
                f"parameter 'wrench_topics': {given} must be {len(names)} topics, one per contact "
                f'({", ".join(names)}); or empty')
        if not (given or config.wrench_sensors):
            if self.params.support == AUTO:
                raise ConfigurationError(
                    f"robot '{config.name}' has no wrench sensors, so support cannot be 'auto': "
                    'give wrench_topics, or another support')
            return []
        topics = given or [f'wrench_aggregator/{name}/wrench' for name in names]
        return [(f"the wrench of '{name}'", topic) for name, topic in zip(names, topics)]

    def apply_parameters(self, params: GravityCompensationParameters) -> None:
        """Use parameters that were set at run time; a step in efforts becomes a ramp."""
        if self.compensation is not None:
            old = self.compensation
            new = make_compensation(old.model, params)  # refuses before anything changes
            old.configure(new.settings)
            old.guard.enabled, old.gains = new.guard.enabled, new.gains
        self.params = params
        self._set_timeout()

    def _set_timeout(self) -> None:
        self._timeout_ns = nanoseconds(self.params.input_timeout)
        # Of the senders: without the contacts, the IMU alone.
        self._needed = slice(None if self.params.support == AUTO else 1)

    # -- on every message

    def _now(self) -> float:
        """Return seconds of a clock that does not jump, or of the simulated one."""
        if self._is_simulated:
            return float(1e-9 * self.get_clock().now().nanoseconds)
        return time.monotonic()

    def _on_imu(self, stamp_ns: int, quaternion: Array, angular_velocity: Array,
                linear_acceleration: Array) -> None:
        self._imu.turn(quaternion)
        self._told_ns[0] = stamp_ns

    def _on_wrench(self, contact: int, stamp_ns: int, wrench: Array) -> None:
        feeler, frame = self._feelers[contact]
        if feeler.reader.frame != frame:
            raise RefusedMessage(
                'wrong frame', f"its frame_id is '{feeler.frame}'; valid: '{frame}'")
        self._told_ns[contact + 1] = stamp_ns
        if self.compensation is not None:
            self.compensation.feel(contact, wrench.tolist(), stamp_ns)

    def _on_plan(self, stamp_ns: int, shares: Array) -> None:
        if self.compensation is not None:
            self.compensation.expect(shares, stamp_ns + _PLAN_LASTS_NS)

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array, _: Array) -> None:
        compensation = self.compensation
        if compensation is None or compensation.guard.idle:
            return
        self._positions, refused = positions, self._controller.problem
        wanted: Array | None = None
        try:
            self._examine_ages(stamp_ns)
            wanted = compensation.hold(
                compensation.gravity_model.weigh(positions, self._imu), stamp_ns)
            self.problem = refused
        except BipedComError as error:
            self._complain(str(error))
        # /clock ticks less often than joint states come; their stamps are of the same time.
        at = 1e-9 * stamp_ns if self._is_simulated else time.monotonic()
        self._go_on(at, stamp_ns, None if refused else wanted)

    def _examine_ages(self, ns: int) -> None:
        """Raise InputError if something that is needed is too old."""
        told, limit = self._told_ns[self._needed], self._timeout_ns
        if ns - limit <= min(told) and max(told) <= ns + limit:
            return
        for name, told_ns in zip(self._senders, told):
            if not -limit <= ns - told_ns <= limit:
                raise InputError(self._silence(name, ns - told_ns))

    def _silence(self, name: str, age_ns: int) -> str:
        """Tell why an input is too old: silent, on another clock, or late."""
        source = self._inputs[name]
        if source.stale():
            return f'{name} is silent: {source.report()[1]}'
        if source.is_refusing:
            return f'{name} cannot be used: {source.last_error}'
        side, limit = 'behind' if age_ns > 0 else 'ahead of', self.params.input_timeout
        return (f'the stamps of {name} ({source.topic}) are {1e-9 * abs(age_ns):.2f} s {side} '
                f'those of joint_states (input_timeout {limit:g} s): check its clock, and whether '
                'the computer is too busy')

    def _watch(self) -> bool:
        """Go on without joint states when they are late, and tell whether they are."""
        compensation = self.compensation
        if compensation is None or compensation.guard.idle:
            return False
        self._is_simulated = self.get_clock().ros_time_is_active
        now = self._now()
        late = now - self._updated
        if late < -_SET_BACK:  # the simulated clock was set back
            self._updated = now
            self._told_ns[:] = [NEVER_NS] * len(self._told_ns)
            compensation.reset()
        elif late > _LATE:
            source = self._inputs['joint_states']
            self._complain(
                f'joint_states is silent: {source.report()[1]}' if source.stale() else
                f'the last joint_states is {1e3 * late:.0f} ms old: is its driver slow, or the '
                'computer too busy?')
            self._go_on(now, now_ns(self), None)
        return late > _LATE

    def _complain(self, problem: str) -> None:
        """Keep in mind why there are no new efforts, and log it if there were some."""
        self.problem = self._trouble = problem
        if self.compensation.guard.efforts.any() and self._may_log():
            self.get_logger().error(f'efforts are held, then let go: {problem}')

    def _go_on(self, now: float, stamp_ns: int, wanted: Array | None) -> None:
        compensation, refused = self.compensation, self._controller.problem
        efforts = compensation.guard.update(wanted, now - self._updated)
        self._updated = now
        self._effort_output.publish(stamp_ns, efforts, not refused)
        if not refused:
            self._trajectory_output.publish(stamp_ns, self._positions, efforts)
        if wanted is not None:
            self._support_output.publish(stamp_ns, compensation)

    # -- diagnostics

    def _report(self) -> Report:
        compensation = self.compensation
        if compensation is None:
            return OK, 'not configured', {}
        guard = compensation.guard
        saturated = [name for name, held in zip(
            compensation.model.joint_names, guard.saturated.tolist()) if held]
        values = {'state': guard.state, 'support': compensation.mode,
                  'controller': self._controller.state,
                  'largest effort [N m]': float(np.abs(guard.efforts).max())}
        if not guard.active:
            return OK, f'inactive, {guard.state}', values
        trouble, self._trouble = self._trouble, ''
        if self.problem or trouble:
            return ERROR, f'{guard.state}: {self.problem or trouble}', values
        if rivals := self._effort_output.rivals():
            return ERROR, f'{guard.state}: {rivals}', values
        if unreadable := self._unreadable_plan():
            return WARN, f'{guard.state}, on {compensation.mode}; {unreadable}', values
        if saturated:
            return WARN, f'at the clamp: {", ".join(saturated)}', values
        return OK, f'{guard.state}, on {compensation.mode}', values

    def _unreadable_plan(self) -> str:
        """Return why a plan was refused since it was asked last; '' if none was."""
        if self._plan is None:
            return ''
        before, self._plans_refused = self._plans_refused, sum(self._plan.refused.values())
        return self._plan.last_error if self._plans_refused > before else ''


def make_compensation(model: RobotModel, params: GravityCompensationParameters
                      ) -> GravityCompensator:
    """
    Build what the parameters describe.

    Raises
    ------
    BipedComError
        If they make no sense for this robot.

    """
    compensation = GravityCompensator(model, _settings(params))
    compensation.enable(params.groups)
    if len(params.gains) != len(params.gain_joints):
        raise ConfigurationError(
            f"parameter 'gains': {params.gains} must be {len(params.gain_joints)} values, one per "
            f'joint of gain_joints ({", ".join(params.gain_joints) or "none"})')
    gains = np.ones(len(model.joint_names))
    gains[model.joint_index(params.gain_joints)] = params.gains
    compensation.gains = gains
    return compensation


def contact_frame(config: RobotConfig, contact: str) -> str:
    """Return the frame_id of a contact, as `wrench_aggregator` names it."""
    if contact not in config.feet:
        hand = contact if contact in config.hands else contact.removesuffix('_hand')
        return config.hands[hand].frame
    return config.sole_frame(contact)


def _settings(params: GravityCompensationParameters) -> CompensationSettings:
    return CompensationSettings(
        params.support, params.distribution, params.gravity, params.torque_lever,
        tuple(params.contacts),
        SupportLimits(params.friction, params.torsional_friction, params.sole_margin,
                      params.effort_clamp),
        SharingSettings(params.share_lift, params.share_full, params.share_rate),
        SafetySettings(params.effort_clamp, params.effort_rate, params.start_time,
                       params.stop_time, params.hold_time, unlimited=params.unlimited_joints),
        math.radians(params.max_tilt), params.max_turn_rate, params.settle_time,
        params.cop_tolerance)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(GravityCompensation, argv)


if __name__ == '__main__':
    sys.exit(main())
