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
Lets a robot with two legs of six joints step and walk by publishing joint trajectories.

A gait is planned on request, from where the robot stands, and published as one trajectory that
ends where the robot rests: if this node or the network fails, the controller brings the robot
there. To pause, stop or resume, it publishes another trajectory from that time on. While the robot
walks it is monitored: on an ERROR of `zmp_monitor`, or when joint states are stale, it stops
(finishes the step, stands on both soles); when it has fallen it halts at once; when the joints do
not follow, they are commanded to rest where they are. With ``feedback`` the robot balances in
walks and, on request, while it stands (:mod:`balancing`).

============================= ============================ =======================================
topic, service                type                         content
============================= ============================ =======================================
joint_states                  sensor_msgs/JointState       in; positions of the joints, and time
zmp_monitor/event,            diagnostic_msgs/             in; whether the robot may walk
/diagnostics                  DiagnosticArray
zmp_monitor/support_phase     std_msgs/String              in; a walk begins in double support
zmp_monitor/zmp               geometry_msgs/PointStamped   in; compared with the reference
zmp_monitor/dcm_margin        std_msgs/Float64             in, in quick steps; whether the DCM is
                                                           outside for longer than planned
com_estimator/com             geometry_msgs/PointStamped   in; position of the robot in the world
com_estimator/com_bias        geometry_msgs/Vector3Stamped in; measured offset of the CoM
wrench_aggregator/<foot>/     geometry_msgs/WrenchStamped  in, with feedback; load and centre of
wrench                                                     pressure of each sole
IMU topic of the YAML         sensor_msgs/Imu              in; heading, and tilt of the ground
joint_trajectory_controller/  trajectory_msgs/             out
joint_trajectory              JointTrajectory
~/state, ~/progress           std_msgs/String, Float64,    standing, planning, walking, pausing,
                              latched                      paused, stopping, halted, shifting,
                                                           unable; 0 to 1
~/steps_done                  std_msgs/Int32, latched      finished steps of the last walk
~/zmp_reference               geometry_msgs/PointStamped   planned, in the frame of com_estimator
~/shares                      std_msgs/Float64MultiArray   planned shares of the weight, by foot;
                                                           for gravity_compensation
~/single_step, ~/walk         std_srvs/Trigger             as the parameters specify
~/balance                     std_srvs/SetBool             whether to balance while standing, too
~/pause, ~/resume, ~/stop     std_srvs/Trigger
~/shift_com, ~/shift_back     std_srvs/Trigger             the CoM moves over `shift_foot` with
                                                           standing soles and hands that hold on,
                                                           and back
============================= ============================ =======================================

Planning takes from a tenth of a second to some seconds, in a thread of its own: ``~/walk``
responds before it is done; errors of planning are logged and on ``/diagnostics``. The thread
competes for the interpreter with other nodes in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
import sys
from typing import Any

from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.playback import GaitPlayback, longest_fall
from biped_com_ros.core.legs.player import WalkPlayer, WalkRequest, WalkState
from biped_com_ros.core.legs.walk_session import WalkSession
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.nodes.gait_player.balancing import StandingBalance
from biped_com_ros.nodes.gait_player.inputs import WalkInputs
from biped_com_ros.nodes.gait_player.outputs import ProgressPublisher, TrajectoryPublisher
from biped_com_ros.nodes.gait_player.parameters import (
    FOLLOW_TIME, GaitPlayerParameters, LEAD, POSTURE_TOLERANCE)
from biped_com_ros.nodes.gait_player.shifts import ComShifts, HOLD_DURATION
from biped_com_ros.nodes.gait_player.stability_watch import StabilityWatch
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.clock import steady_clock
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.services import switch_service, trigger_service
from biped_com_ros.ros.topics.stamp import now_ns

PLANNING, SHIFTING, BALANCING, UNABLE = 'planning', 'shifting', 'balancing', 'unable'
DOUBLE_SUPPORT = 'double'
"""Support phase of zmp_monitor in which a walk may begin."""

HALT_MARGIN = 0.01
"""Smallest distance of the zero-moment point from the edge of the support in a pause, m."""

FALL_TOLERANCE = 0.2
"""Added to the planned time of the DCM outside of the support, s: feet are unloaded before they
leave the ground."""

CHECK_PERIOD = 0.05
"""Period of checking inputs, s."""


class GaitPlayer(RobotNode[GaitPlayerParameters]):
    """Connects services, planning, the walk session, its monitors and its outputs."""

    def __init__(self, **node_kwargs: Any) -> None:
        self._planning_problem = ''
        super().__init__('gait_player', GaitPlayerParameters, **node_kwargs)

    def build(self, model: RobotModel) -> None:
        """Make the player, inputs and outputs; without suitable legs only state and services."""
        params = self.params
        self._progress = ProgressPublisher(self, tuple(model.config.feet))
        self._make_services()
        self.diagnostics.add('gait', self._report)
        try:
            # A model of its own, because it is used in another thread.
            player = WalkPlayer(RobotModel(model.config, model.urdf), params.posture, params.ramp,
                                HALT_MARGIN, LEAD)
        except BipedComError as error:
            self._planning_problem = f'this robot cannot walk: {error}'
            self.get_logger().warning(self._planning_problem)
            self._progress.publish_state(UNABLE, 0.0, 0)
            return
        names = [model.joint_names[i] for i in player.leg_joints]
        self._trajectories = TrajectoryPublisher(self, model, params.joints or names)
        self._request: WalkRequest | None = None
        self._background: BackgroundTask[Any] = BackgroundTask()
        # Shifts are planned with the model of walks, never at the same time.
        self._shifts = ComShifts(self, player.model, self._trajectories, self._background, self)
        self.walk_inputs: WalkInputs | None = None
        self._pace = StampThrottle(params.rate)
        self.session = WalkSession(
            player, self._on_motion, self._on_hold, follow_tolerance=params.follow_tolerance,
            follow_time=FOLLOW_TIME,
            balance=params.balance(), model=model)
        self.balance = StandingBalance(self, self.session, self._trajectories, self._background)
        self._watch = StabilityWatch(self, params.monitor, params.monitor_timeout,
                                     self._stop_for) if params.monitor else None
        self.joints = JointStateInput(
            self, model.joint_names, self._on_joints,
            **model.corrections_of(model.joint_names), **self.input_options())
        self.watch_inputs({'joint states': self.joints})
        self.create_timer(CHECK_PERIOD, self._check_inputs, clock=steady_clock())
        self.publish_state()

    def apply_parameters(self, params: GaitPlayerParameters) -> None:
        """Use parameters that were set at run time, most of them in the next walk."""
        if self._planning_problem:
            return
        self._pace.set_rate(params.rate)
        self.session.follow_tolerance = params.follow_tolerance
        self.session.balance = params.balance()
        if not params.feedback:
            self.balance.end()
        if self._watch is not None:
            self._watch.gate.timeout = params.monitor_timeout

    def _make_services(self) -> None:
        for name, action in (
                ('single_step', lambda: self._walk(1)), ('stop', self._stop),
                ('walk', lambda: self._walk(self.params.steps)),
                ('pause', self._pause), ('resume', self._resume),
                ('shift_com', lambda: self._shifts.shift_com()),
                ('shift_back', lambda: self._shifts.shift_back())):
            trigger_service(self, f'~/{name}', partial(self._act, action))
        switch_service(self, '~/balance', partial(
            self._act, lambda value: self.balance.switch(value)))

    def _act(self, action: Callable[..., str], *values: bool) -> str:
        """Do it, but for robots that cannot walk at all: they have no session either."""
        if self._planning_problem:
            raise InputError(self._planning_problem)
        return action(*values)

    # -- services

    def _walk(self, count: int) -> str:
        params = self.params
        self.require_ready()
        self.require_rest('the next walk', may_balance=True)
        self._shifts.require_none()
        self._request = WalkRequest(
            count=count, length=params.step_length, first=self._first_foot(),
            options=params.options(self.model))
        self.subscribe_to_walk_inputs()
        self.publish_state()
        return (f'planning {count} step{"s" if count > 1 else ""} of '
                f'{1e3 * params.step_length:.0f} mm, {params.pattern}')

    def _pause(self) -> str:
        self.session.pause()
        return 'pausing as soon as the robot can stand'

    def _resume(self) -> str:
        session = self.session
        if self._watch is not None and (problem := self._watch.problem):
            raise InputError(f'cannot resume: {problem}')
        session.resume()
        return 'resuming the walk'

    def _stop(self) -> str:
        session = self.session
        if self._state() == PLANNING:
            self._background.discard_result()
            self.balance.cancel()
            self._shifts.cancel()
            self._end_walk()
            self.publish_state()
            return 'planning is cancelled'
        if self._shifts.is_moving:
            self._shifts.hold()
            return ('holding the joints; to return, call '
                    f"{self.resolve_service_name('~/shift_back')}")
        if session.is_resting:
            return 'the robot is already standing' + (
                '; ~/balance with data: false lets it stand without feedback'
                if session.is_balancing else '')
        session.stop()
        return 'finishing the step to stand on both feet'

    def _first_foot(self) -> int:
        feet = list(self.model.config.feet)
        name = self.params.first_foot or feet[-1]
        if name not in feet:
            raise InputError(f"parameter 'first_foot': the robot has no foot '{name}'; valid: "
                             f'{", ".join(feet)}')
        return feet.index(name)

    def require_rest(self, what: str, may_balance: bool = False) -> None:
        """Raise InputError if something is planned or moves."""
        if self.is_planning or self._shifts.is_moving or not self.session.is_resting:
            raise InputError(f'the robot is {self._state()}; stop it before {what}')
        if self.session.is_balancing and not may_balance:
            raise InputError(f'the robot balances; call {self.resolve_service_name("~/balance")} '
                             f'with data: false before {what}')

    # -- planning

    @property
    def is_planning(self) -> bool:
        """Whether a motion is planned, or will be."""
        return (self._request is not None or self._background.is_busy
                or self.balance.is_requested or self._shifts.is_pending)

    def subscribe_to_walk_inputs(self) -> WalkInputs:
        """Make the subscriptions that a walk or balancing needs, and return them."""
        if self.walk_inputs is None:
            self.walk_inputs = WalkInputs(self, self.model, self.params)
        return self.walk_inputs

    def _continue_planning(self) -> None:
        """Plan what is requested, and begin what has been planned; after a stop, stand up."""
        session, inputs = self.session, self.walk_inputs
        try:
            if self._request is not None and inputs is not None and inputs.have_settled:
                request, self._request = self._request, None
                self._plan(request, inputs)
            elif self.balance.is_requested and inputs is not None and inputs.have_settled:
                self.balance.plan(inputs)
            elif self._shifts.is_pending and inputs is not None and inputs.have_settled:
                self._shifts.plan(inputs)
            elif self._background.poll():
                self.publish_state()
            elif session.player.has_stopped and not self._background.is_busy:
                self._background.start(
                    session.player.plan_standing_up,
                    lambda playback: session.begin(playback, session.last_ns))
        except BipedComError as error:
            session.problem = str(error)
            self.get_logger().error(session.problem)
            self.balance.cancel()
            self._shifts.cancel()
            self._end_walk()
            if session.player.has_stopped:
                session.player.abandon()
            self.publish_state()

    def _plan(self, request: WalkRequest, inputs: WalkInputs) -> None:
        """Plan in the background with the measured offset of the centre of mass."""
        player, measured = self.session.player, self.standing_positions
        offset = self.com_offset(inputs)
        tolerance, urdf = POSTURE_TOLERANCE, self.model.urdf

        def plan() -> tuple[GaitPlayback, float]:
            player.use_inertials(urdf)
            playback = player.plan(request, measured, offset, tolerance)
            return playback, longest_fall(playback.gait)

        self._background.start(plan, self._begin_walk)

    @property
    def standing_positions(self) -> Array:
        """Return the measured positions of the joints without what balancing adds, (n,), rad."""
        positions: Array = self.joints.positions - self.session.increments
        return positions

    def com_offset(self, inputs: WalkInputs) -> Array:
        """Return the measured offset of the centre of mass, (2,), m, and log it."""
        assert self.joints.stamp_ns is not None
        offset = inputs.com_offset(self.joints.stamp_ns, self.joints.positions)
        x, y = 1e3 * offset
        self.get_logger().info(
            f"planning with CoM offset from the URDF's: x = {x:.1f} mm, y = {y:.1f} mm")
        return offset

    def _begin_walk(self, planned: tuple[GaitPlayback, float]) -> None:
        """Begin the planned walk, unless it has become impossible."""
        (playback, fall), session = planned, self.session
        self.require_ready()
        # It may have been reset, moved by hand or commanded by others while this was planned.
        session.player.require_start(playback, self.standing_positions, POSTURE_TOLERANCE)
        assert self.walk_inputs is not None and self.joints.stamp_ns is not None
        origin = self.walk_inputs.origin(
            self.joints.stamp_ns, self.joints.positions, playback.gait)
        if origin is not None:
            session.player.origin = origin
            self._progress.set_frame(self.walk_inputs.com.frame)
        session.reset_results()
        if self._watch is not None:
            self._watch.tolerate_falling(fall + FALL_TOLERANCE if fall else 0.0)
        self._pace = StampThrottle(self.params.rate)
        session.begin(playback, self.joints.stamp_ns)
        gait = playback.gait
        self.get_logger().info(
            f'walking for {gait.duration:.1f} s, with the weight {100.0 * gait.inward:.0f} % of '
            'the way from the middle of a sole to its inner edge')

    def _end_walk(self) -> None:
        """Drop the request and the inputs that are only used in a walk."""
        self._request = None
        self.drop_walk_inputs()
        if self._watch is not None:
            self._watch.tolerate_falling(0.0)

    def drop_walk_inputs(self) -> None:
        """Destroy the inputs of a walk, unless the robot balances with them."""
        if self.walk_inputs is not None and not self.session.is_balancing:
            self.walk_inputs.destroy()
            self.walk_inputs = None

    def require_ready(self, what: str = 'walk') -> None:
        """Raise InputError if inputs or the controller are missing."""
        if reason := self._not_ready():
            raise InputError(f'cannot {what}: {reason}')

    def _not_ready(self) -> str:
        """Return why no walk can begin; '' if one can."""
        if self.joints.stale(self.params.input_timeout):
            return f'joint states are missing: {self.joints.report()[1]}'
        if not self._trajectories.has_subscribers:
            return (f"no subscriber of '{self._trajectories.topic}'; start the joint trajectory "
                    'controller, or remap the topic')
        if self._watch is None:
            return ''
        problem, phase = self._watch.problem, self._watch.gate.support_phase
        if not problem and phase not in ('', DOUBLE_SUPPORT):
            return f'the robot is in {phase} support; put it on both feet'
        return problem

    # -- while the robot walks

    def _on_joints(self, stamp_ns: int, positions: Array, *_: Array) -> None:
        if not self._pace.is_due(stamp_ns):
            return
        self._advance(stamp_ns, positions)
        self._continue_planning()
        self._shifts.advance(stamp_ns)

    def _advance(self, stamp_ns: int, positions: Array | None) -> None:
        session, inputs = self.session, self.walk_inputs
        if session.is_balancing and session.is_resting:
            self.balance.advance(stamp_ns, positions)
            return
        if inputs is None or positions is None:
            step = session.advance(stamp_ns, positions, None)
        else:
            step = session.advance(stamp_ns, positions, inputs.zmp_in_world,
                                   inputs.balance(stamp_ns, positions))
        if step is None:
            return
        if step.has_new_motion:
            self._trajectories.publish(stamp_ns, session.motion(stamp_ns))
        self._progress.publish_reference(stamp_ns, step.zmp_reference, step.shares)
        self.publish_state()
        if session.state is WalkState.STANDING:
            self._log_result()
            self._end_walk()

    def _on_motion(self, stamp_ns: int) -> None:
        """Publish the trajectory that has changed."""
        session = self.session
        if not session.is_resting:
            self._trajectories.publish(stamp_ns, session.motion(stamp_ns))
        self.publish_state()

    def _on_hold(self, positions: Array) -> None:
        """Hold the joints at their measured positions, since they do not follow."""
        self.get_logger().error(f'motion aborted, joints held: {self.session.problem}')
        self._end_walk()
        self._trajectories.publish_hold(positions, HOLD_DURATION)

    def _stop_for(self, reason: str) -> None:
        """Stop the walk, or halt it if the robot has fallen."""
        if self._shifts.is_moving:
            self._shifts.check(reason)
            return
        has_fallen = self._watch is not None and self._watch.gate.has_fallen
        if action := self.session.stop_for(reason, has_fallen):
            self.get_logger().error(f'{action}: {reason}')
            if self.session.is_resting:  # it balanced, and has fallen
                self._end_walk()
                self.publish_state()

    def _check_inputs(self) -> None:
        """Stop when joint states or the monitor are stale."""
        if self._watch is not None:
            self._watch.check()
        session, is_stale = self.session, self.joints.stale(self.params.input_timeout)
        problem = self._not_ready_to_move()
        if not session.player.is_moving:
            self._shifts.check(problem)
        elif not is_stale:
            if problem:
                self._stop_for(problem)
        elif (now := now_ns(self)) > session.last_ns:
            self._advance(now, None)
            self._stop_for(problem)

    def _not_ready_to_move(self) -> str:
        """Return what is stale or wrong while the robot moves."""
        if self.joints.stale(self.params.input_timeout):
            return f'joint states are stale: {self.joints.report()[1]}'
        return '' if self._watch is None else self._watch.problem

    def _log_result(self) -> None:
        rms, (done, count) = self.session.deviation.rms, self.session.player.step
        zmp = '' if rms is None else (f'; rms deviation of the ZMP {1e3 * rms[0]:.1f} mm forward, '
                                      f'{1e3 * rms[1]:.1f} mm sideways')
        self.get_logger().info(f'standing after {done} of {count} steps{zmp}')

    # -- state

    def _state(self) -> str:
        session = self.session
        if session.is_resting and (self.is_planning or self._shifts.is_moving):
            return PLANNING if self.is_planning else SHIFTING
        if session.is_balancing and session.is_resting:
            return BALANCING
        return session.state.value

    def publish_state(self) -> None:
        """Publish what the node does now."""
        player, shifts = self.session.player, self._shifts
        progress = shifts.progress if shifts.is_moving else player.progress
        self._progress.publish_state(self._state(), progress, player.step[0])

    def _report(self) -> Report:
        if self._planning_problem:  # nothing is wrong with such a robot
            return OK, self._planning_problem, {'state': UNABLE}
        session = self.session
        (done, count), rms = session.player.step, session.deviation.rms
        reason, problem, state = self._not_ready(), session.problem, session.state
        values = {'state': self._state(), 'progress': session.player.progress,
                  'steps': f'{done} of {count}', 'may walk': reason or 'yes',
                  'ZMP rms [mm]': 'unknown' if rms is None else ', '.join(
                      f'{1e3 * value:.1f}' for value in rms), **self.balance.values()}
        if session.player.is_moving and problem:
            return ERROR, f'{state.value}: {problem}', values
        if state is WalkState.HALTED:
            return ERROR, f'halted: {problem}', values
        if self.balance.problem or self._shifts.problem:
            return WARN, self.balance.problem or self._shifts.problem, values
        if problem:
            return WARN, f'{state.value}; the last motion was stopped: {problem}', values
        return OK, self._state(), values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(GaitPlayer, argv)


if __name__ == '__main__':
    sys.exit(main())
