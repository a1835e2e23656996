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
Lets a robot with two of Wang's legs step and walk: gaits in, joint trajectories out.

A gait is planned when it is asked for, from where the robot stands, and goes out in one message
that ends where the robot rests: should this node or the network die, the controller brings the
robot there. A pause, a stop, going on are another such message from then on. While the robot
walks the node watches: on an ERROR of `zmp_monitor`, or when joint states fall silent, it stops
(finishes the step, stands on both soles); when the robot has fallen it halts at once; when the
joints do not follow it lets them rest where they are.

============================= ============================ =======================================
topic, service                type                         what
============================= ============================ =======================================
joint_states                  sensor_msgs/JointState       in; where the joints are, and the time
zmp_monitor/event,            diagnostic_msgs/             in; whether it may walk
/diagnostics                  DiagnosticArray
zmp_monitor/support_phase     std_msgs/String              in; begins on both soles only
zmp_monitor/zmp               geometry_msgs/PointStamped   in; compared with the reference
zmp_monitor/dcm_margin        std_msgs/Float64             in, in quick steps; for how long it
                                                           falls
com_estimator/com             geometry_msgs/PointStamped   in; where the robot is in the world
com_estimator/com_bias        geometry_msgs/Vector3Stamped in; where its weight truly is
IMU topic of the YAML         sensor_msgs/Imu              in; its heading
joint_trajectory_controller/  trajectory_msgs/             out
joint_trajectory              JointTrajectory
~/state, ~/progress           std_msgs/String, Float64,    standing, planning, walking, pausing,
                              latched                      paused, stopping, halted, unable;
                                                           0 to 1
~/zmp_reference               geometry_msgs/PointStamped   planned, in the frame of com_estimator
~/shares                      std_msgs/Float64MultiArray   planned, of the weight, by foot; for
                                                           gravity_compensation
~/single_step, ~/walk         std_srvs/Trigger             as the parameters say
~/pause, ~/resume, ~/stop     std_srvs/Trigger
============================= ============================ =======================================

Planning takes from a tenth of a second to some seconds, in a thread of its own: ``~/walk`` answers
before, and what then goes wrong is in the log and on ``/diagnostics``. It competes for the
interpreter with whatever runs in the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.gait import GaitOptions, QUICK
from biped_com_ros.core.legs.playback import GaitPlayback, longest_fall
from biped_com_ros.core.legs.player import WalkRequest, WalkPlayer, WalkState
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gait_player.outputs import Deviation, ProgressOutput, TrajectoryPublisher
from biped_com_ros.nodes.gait_player.senses import Senses
from biped_com_ros.nodes.gait_player.stability_watch import StabilityWatch
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import InputWatch
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.node.timers import steady_clock
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.services import trigger_service
from biped_com_ros.ros.topics.stamp import now_ns
import numpy as np
from rclpy.node import Node

PLANNING, UNABLE = 'planning', 'unable'
QUASI_STATIC, PREVIEW = 'quasi-static', 'preview'
_PATTERNS = {QUASI_STATIC: GaitOptions(), PREVIEW: QUICK}
#: By how much longer than planned the divergent component may be outside of the support, s: feet
#: are unloaded before they leave the ground.
_GRACE = 0.2
_BOTH = 'double'  # of zmp_monitor's support phases
_HOLD_AFTER = 0.3  # s, in which joints that did not follow come to rest
_WATCH_PERIOD = 0.05  # s


def _timing(description: str, largest: float = 60.0) -> Any:
    return parameter(0.0, f"{description}; 0: the pattern's own", 's', 0.0, largest)


@dataclass(frozen=True)
class GaitPlayerParameters(RobotNodeParameters):
    """Parameters of `gait_player`."""

    posture: str = parameter(
        'stand', "Posture of the robot's YAML in which it stands at ease", read_only=True)
    joints: list[str] = parameter(
        [], 'Joints of the controller; empty: those of the legs', read_only=True)
    steps: int = parameter(10, 'Steps of ~/walk', '', 1, 200)
    step_length: float = parameter(
        0.05, 'By which a foot lands ahead of the other one; negative: backwards', 'm', -1.0, 1.0)
    first_foot: str = parameter(
        '', 'Foot that begins where both are side by side; empty: the second of the YAML')
    pattern: str = parameter(
        QUASI_STATIC, 'Slow, the centre of mass always above the soles; or quick, by preview '
        'control of the zero-moment point', options=tuple(_PATTERNS))
    single_support: float = _timing('Duration of the swing of a foot')
    double_support: float = _timing('Duration of the shift of weight between two steps')
    start_stop: float = _timing('Duration of the first and the last shift of weight')
    lift: float = parameter(
        0.0, "Height to which a foot is lifted; 0: the pattern's own", 'm', 0.0, 0.3)
    crouch: float = parameter(
        0.08, 'By how much the hips are lowered, as a share of the length of a leg', '', 0.0, 0.5)
    ramp: float = parameter(
        0.5, 'Duration of slowing down for a pause or stop, and of going on', 's', 0.05, 5.0,
        read_only=True)
    halt_margin: float = parameter(
        0.01, 'Distance from the edge of the support that the zero-moment point keeps in a pause',
        'm', 0.0, 0.2, read_only=True)
    use_fused_com: bool = parameter(
        True, "Whether to plan with the centre of mass that com_estimator found by the feet's "
        "forces, instead of the URDF's")
    feel_time: float = parameter(
        1.0, 'How long that is listened to before a walk is planned', 's', 0.0, 10.0)
    max_com_offset: float = parameter(
        0.03, 'Largest difference of these two that is believed', 'm', 0.0, 0.5)
    monitor: str = parameter(
        'zmp_monitor', 'Node that watches stability; empty: walk unwatched', read_only=True)
    monitor_timeout: float = parameter(
        5.0, 'Silence of its diagnostics after which it counts as dead', 's', 1.5, 60.0,
        read_only=True)
    posture_tolerance: float = parameter(
        0.05, 'How far joints may be from the posture when a walk begins', 'rad', 0.001, 0.5)
    follow_tolerance: float = parameter(
        0.2, 'How far joints may be from the gait while it is played', 'rad', 0.01, 2.0)
    follow_time: float = parameter(
        0.3, 'For how long they may be further', 's', 0.0, 10.0)
    lead: float = parameter(
        0.25, 'Time between an order and the first motion that it causes: longer than a '
        'trajectory is under way', 's', 0.0, 5.0, read_only=True)
    knot_period: float = parameter(
        0.04, 'Time between two points of a trajectory', 's', 0.005, 0.2)
    rate: float = parameter(
        50.0, 'How often the reference is published and the robot looked at', 'Hz', 5.0, 1000.0,
        read_only=True)
    input_timeout: float = parameter(
        0.25, 'Silence after which joint states count as dead', 's', 0.01, 10.0, read_only=True)

    def options(self) -> GaitOptions:
        """Return how to walk."""
        options = _PATTERNS[self.pattern]
        wanted = {'single_support': self.single_support, 'double_support': self.double_support,
                  'start': self.start_stop, 'stop': self.start_stop, 'lift': self.lift}
        if options.timing.rest and self.start_stop:
            wanted['rest'] = self.start_stop
        timing = replace(options.timing, **{k: v for k, v in wanted.items() if v})
        return replace(options, timing=timing, crouch=self.crouch)


class GaitPlayer(Node):
    """Orders in, trajectories out, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('gait_player', **node_kwargs)
        self.params = declare_parameters(self, GaitPlayerParameters, self._change)
        self.player: WalkPlayer | None = None
        self.problem = ''
        self.diagnostics = Diagnostics(self)
        self._source = RobotSource(self, self.params, self._start, self.diagnostics)

    # -- set-up

    def _start(self, model: RobotModel) -> None:
        params, self._model = self.params, model
        self._progress = ProgressOutput(self, tuple(model.config.feet))
        self._make_services()
        self.diagnostics.add('gait', self._report)
        try:
            # A model of its own: it is used in another thread.
            player = WalkPlayer(RobotModel(model.config, model.urdf), params.posture, params.ramp,
                                params.halt_margin, params.lead)
        except BipedComError as error:
            self.problem = f'this robot cannot walk: {error}'
            self.get_logger().warning(self.problem)
            self._progress.tell(UNABLE, 0.0)
            return
        names = [model.joint_names[i] for i in player.leg_joints]
        self._trajectories = TrajectoryPublisher(self, model, params.joints or names)
        self._watch = StabilityWatch(self, params.monitor, params.monitor_timeout,
                                     self._on_error) if params.monitor else None
        self._next_ns = self._last_ns = self._off_since_ns = 0
        self._plans: BackgroundTask[Any] = BackgroundTask()
        self._order: WalkRequest | None = None
        self._deviation = Deviation()
        self.player = player
        self._senses: Senses | None = None
        self.joints = JointStateInput(self, model.joint_names, self._on_joints,
                                      diagnostics=self.diagnostics, max_age=params.max_stamp_age)
        self._waiting = InputWatch(self, {'joint states': self.joints})
        self.create_timer(_WATCH_PERIOD, self._look, clock=steady_clock())
        self._progress.tell(player.state.value, player.progress)

    def _make_services(self) -> None:
        for name, action in (
                ('single_step', lambda: self._walk(1)), ('stop', self._stop),
                ('walk', lambda: self._walk(self.params.steps)),
                ('pause', self._pause), ('resume', self._resume)):
            trigger_service(self, f'~/{name}', action)

    def _able(self) -> WalkPlayer:
        if self.player is None:
            raise InputError(self.problem)
        return self.player

    def _change(self, params: GaitPlayerParameters) -> None:
        """Use parameters that were set at run time from the next walk on."""
        self.params = params

    # -- orders

    def _walk(self, count: int) -> str:
        player, params = self._able(), self.params
        reason = self._why_not()
        if reason:
            raise InputError(f'will not walk: {reason}')
        if self._is_planning or player.state not in (WalkState.STANDING, WalkState.HALTED):
            raise InputError(f'the robot is {self._state()}; stop it before the next walk')
        self._order = WalkRequest(
            count=count, length=params.step_length, first=self._first_foot(), options=params.options())
        self._senses = Senses(self, self._model, params)
        self._tell()
        return (f'plans {count} step{"s" if count > 1 else ""} of '
                f'{1e3 * params.step_length:.0f} mm, {params.pattern}')

    def _plan(self, order: WalkRequest, senses: Senses) -> None:
        """Begin to plan, with what has been felt."""
        player, measured = self._able(), self.joints.positions.copy()
        offset = senses.com_offset(measured)
        x, y = 1e3 * offset
        self.get_logger().info(f'plans; the centre of mass is felt {x:.1f} mm ahead and {y:.1f} '
                               'mm left of where the URDF has it')
        tolerance = self.params.posture_tolerance

        def plan() -> tuple[GaitPlayback, float]:
            playback = player.plan(order, measured, offset, tolerance)
            return playback, longest_fall(playback.gait)

        self._plans.start(plan, self._begin_walk)

    def _begin_walk(self, planned: tuple[GaitPlayback, float]) -> None:
        """Begin what was planned, if nothing has come between."""
        playback, fall = planned
        reason = self._why_not()
        if reason:
            raise InputError(f'will not walk: {reason}')
        assert self._senses is not None
        origin = self._senses.origin(self.joints.positions, playback.gait)
        if origin is not None:
            self._able().origin = origin
            self._progress.set_frame(self._senses.com.frame)
        self.problem, self._deviation = '', Deviation()
        if self._watch is not None:
            self._watch.patience = fall + _GRACE if fall else 0.0
        self._begin(playback)
        self.get_logger().info(f'walks for {playback.gait.duration:.1f} s')

    def _begin(self, playback: GaitPlayback) -> None:
        assert self.player is not None and self.joints.stamp_ns is not None
        self._last_ns, self._next_ns = self.joints.stamp_ns, 0
        self._off_since_ns = self._last_ns
        self.player.begin(playback)
        self._send()

    def _continue(self) -> None:
        """Begin what has been planned; after a stop, plan to stand up."""
        player, senses = self._able(), self._senses
        try:
            if self._order is not None and senses is not None and senses.have_settled:
                order, self._order = self._order, None
                self._plan(order, senses)
            elif self._plans.poll():
                self._tell()
            elif player.has_stopped and not self._plans.is_busy:
                self._plans.start(player.plan_standing_up, self._begin)
        except BipedComError as error:
            self.problem = str(error)
            self.get_logger().error(self.problem)
            self._drop_senses()
            if player.has_stopped:
                player.abandon()
            self._tell()

    def _drop_senses(self) -> None:
        if self._senses is not None:
            self._senses.destroy()
        self._senses = self._order = None
        if self._watch is not None:
            self._watch.patience = 0.0

    def _why_not(self) -> str:
        """Return why no walk can begin; '' if one can."""
        if self.joints.stale(self.params.input_timeout):
            return f'joint states are missing: {self.joints.report()[1]}'
        if not self._trajectories.is_heard:
            return (f"nobody listens on '{self._trajectories.topic}': start the joint trajectory "
                    'controller, or remap the topic')
        if self._watch is None:
            return ''
        if not self._watch.problem and self._watch.phase not in ('', _BOTH):
            return f'the robot does not stand on both feet but is in {self._watch.phase} support'
        return self._watch.problem

    def _first_foot(self) -> int:
        feet = list(self._source.config.feet)
        name = self.params.first_foot or feet[-1]
        if name not in feet:
            raise InputError(f"parameter 'first_foot': the robot has no foot '{name}'; valid: "
                             f'{", ".join(feet)}')
        return feet.index(name)

    def _pause(self) -> str:
        self._able().pause()
        self._send()
        return 'pauses as soon as it can stand'

    def _resume(self) -> str:
        player = self._able()
        if self._watch is not None and self._watch.problem:
            raise InputError(f'will not go on: {self._watch.problem}')
        player.resume()
        self._send()
        return 'goes on'

    def _stop(self) -> str:
        player = self._able()
        if self._state() == PLANNING:
            self._plans.discard_result()
            self._drop_senses()
            self._tell()
            return 'will not walk'
        if player.state in (WalkState.STANDING, WalkState.HALTED):
            return 'stands already'
        self._begin_stop()
        return 'finishes the step and stands on both feet'

    def _begin_stop(self) -> None:
        assert self.player is not None
        if self.player.state is not WalkState.STOPPING:
            self.player.stop()
            self._send()

    def _on_error(self, reason: str) -> None:
        """Stop safely: the monitor says that something is wrong."""
        player = self.player
        if player is None or player.state in (WalkState.STANDING, WalkState.HALTED):
            return
        fallen = self._watch is not None and self._watch.has_fallen
        if fallen or player.state is not WalkState.STOPPING:
            self.problem = reason
            self.get_logger().error(f'{"halts" if fallen else "stops"}: {reason}')
        if not fallen:
            self._begin_stop()
        elif player.is_moving:
            player.halt()
            self._send()

    def _send(self) -> None:
        """Tell the controller what comes from now on."""
        assert self.player is not None
        if self.player.state not in (WalkState.STANDING, WalkState.HALTED):
            self._trajectories.send(
                self._last_ns, self.player.remaining_motion(self.params.knot_period))
        self._tell()

    def _state(self) -> str:
        state = self._able().state
        return PLANNING if self._is_planning and state in (
            WalkState.STANDING, WalkState.HALTED) else str(state.value)

    @property
    def _is_planning(self) -> bool:
        return self._order is not None or self._plans.is_busy

    def _tell(self) -> None:
        assert self.player is not None
        self._progress.tell(self._state(), self.player.progress)

    # -- on every message

    def _on_joints(self, stamp_ns: int, positions: Array, *_: Array) -> None:
        if self._last_ns < stamp_ns < self._next_ns:
            return
        self._next_ns = stamp_ns + nanoseconds(1.0 / self.params.rate)
        self._pass_time(stamp_ns, stamp_ns, positions)
        self._continue()

    def _pass_time(self, ns: int, stamp_ns: int, positions: Array | None) -> None:
        player, dt = self.player, 1e-9 * (ns - self._last_ns)
        assert player is not None
        self._last_ns = ns
        state = player.state
        if state in (WalkState.STANDING, WalkState.HALTED):
            return
        world = player.origin  # goes on to the next gait's when this one ends
        sample = player.advance(min(max(dt, 0.0), 1.0))
        assert sample is not None
        reference = world.apply(np.array((*sample.zmp_reference, 0.0)))
        self._progress.refer(stamp_ns, reference, sample.shares)
        if positions is not None:
            self._compare(reference, world.rotation)
            self._follow(ns, positions, sample.positions)
        self._tell()
        if player.state is WalkState.STANDING:
            self._finish()

    def _compare(self, reference: Array, R_world_gait: Array) -> None:
        zmp = None if self._senses is None else self._senses.zmp_in_world
        if zmp is not None:
            self._deviation.add((R_world_gait.T @ (zmp - reference))[:2])

    def _follow(self, ns: int, measured: Array, planned: Array) -> None:
        """Give up when the joints are not where the gait has them."""
        player = self.player
        assert player is not None
        off = np.abs(measured - planned)[player.leg_joints]
        if off.max() <= self.params.follow_tolerance:
            self._off_since_ns = ns
        elif ns - self._off_since_ns > 1e9 * self.params.follow_time:
            name = player.model.joint_names[int(player.leg_joints[off.argmax()])]
            self.problem = (
                f"the joints do not follow: '{name}' is {off.max():.2f} rad off; is the "
                'controller active, was the robot put elsewhere?')
            self.get_logger().error(f'gives up, joints rest where they are: {self.problem}')
            player.abandon()
            self._drop_senses()
            self._trajectories.hold(measured, _HOLD_AFTER)

    def _finish(self) -> None:
        assert self.player is not None
        rms = self._deviation.rms
        zmp = '' if rms is None else (f'; ZMP off its reference by {1e3 * rms[0]:.1f} mm forward, '
                                      f'{1e3 * rms[1]:.1f} mm sideways rms')
        done, of = self.player.step
        self.get_logger().info(f'stands after {done} of {of} steps{zmp}')
        self._drop_senses()

    def _look(self) -> None:
        """Stop when those that have to speak are silent."""
        player = self.player
        if player is None or not player.is_moving:
            return
        if self.joints.stale(self.params.input_timeout):
            self._go_on_blindly()
        elif self._watch is not None and self._watch.problem:
            self._on_error(self._watch.problem)

    def _go_on_blindly(self) -> None:
        """Joint states are silent: stop, by the clock."""
        assert self.player is not None
        now = now_ns(self)
        if now <= self._last_ns:
            return
        self._pass_time(now, now, None)
        self._on_error(f'joint states are silent: {self.joints.report()[1]}')

    # -- diagnostics

    def _report(self) -> Report:
        player = self.player
        if player is None:
            return WARN, self.problem, {'state': UNABLE}
        done, of = player.step
        rms, reason = self._deviation.rms, self._why_not()
        values = {'state': self._state(), 'progress': player.progress,
                  'steps': f'{done} of {of}', 'may walk': reason or 'yes',
                  'ZMP rms [mm]': 'unknown' if rms is None else ', '.join(
                      f'{1e3 * value:.1f}' for value in rms)}
        if player.is_moving and self.problem:
            return ERROR, f'{player.state.value}: {self.problem}', values
        if player.state is WalkState.HALTED:
            return ERROR, f'halted: {self.problem}', values
        if player.state is WalkState.STANDING and reason:
            return WARN, f'cannot walk: {reason}', values
        if self.problem:
            return WARN, f'{player.state.value}; stopped the last walk: {self.problem}', values
        return OK, player.state.value, values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(GaitPlayer, argv)


if __name__ == '__main__':
    sys.exit(main())
