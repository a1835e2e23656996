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
"""Runs the walks of a robot: their place in the world, commands, errors, and what stops them."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about, yaw_of
from biped_com_ros.core.legs.balance import BalanceSettings
from biped_com_ros.core.legs.corrected_motion import CorrectedMotion
from biped_com_ros.core.legs.feedback import GaitFeedback, WalkMeasurement
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.legs.playback import GaitPlayback
from biped_com_ros.core.legs.player import RemainingMotion, WalkPlayer, WalkState
from biped_com_ros.core.model.robot_state import RobotState
import numpy as np

_LONGEST_PERIOD = 0.1
"""Between two increments in a trajectory, s."""

_LARGEST_ADVANCE = 1.0
"""A gait goes on by no more than this in one update, s."""


class ZmpDeviation:
    """Root mean square of the deviation of the measured ZMP, forward and sideways."""

    def __init__(self) -> None:
        self._sum, self._count = np.zeros(2), 0

    def add(self, difference: Array) -> None:
        """Add a difference (2,), m."""
        self._sum += difference ** 2
        self._count += 1

    @property
    def rms(self) -> Array | None:
        """Return it, (2,), m; None without measurements."""
        return np.sqrt(self._sum / self._count) if self._count else None


class WalkStep(NamedTuple):
    """
    Reference at a time of a walk.

    Attributes
    ----------
    zmp_reference
        Reference of the zero-moment point in the frame of the player's origin, (3,), m.
    shares
        How the feet share the weight, (2,).
    has_new_motion
        Whether feedback has changed :meth:`WalkSession.motion`.

    """

    zmp_reference: Array
    shares: Array
    has_new_motion: bool = False


class WalkSession:
    """
    Commands to a player and their consequences.

    Parameters
    ----------
    player
        Plays the gaits.
    on_motion
        Called whenever :meth:`.WalkPlayer.remaining_motion` has changed, with its time, ns.
    on_hold
        Called with the measured positions (n,) when the joints do not follow: they are to rest.
    follow_tolerance, follow_time
        The walk is abandoned when a leg's joint is further from the gait than this, rad, for
        longer than this, s.
    knot_period
        Between two points of a motion, s.
    balance
        Settings of the feedback in the next gaits; None: open loop.

    Attributes
    ----------
    player, follow_tolerance, follow_time, knot_period, balance
        As given.
    feedback
        Of the present gait; None in open loop.
    last_ns
        Time up to which the gait has been played, ns.
    problem
        Why the last walk was stopped; '' if it was not.
    deviation
        Of the measured zero-moment point in the last walk.

    """

    def __init__(self, player: WalkPlayer, on_motion: Callable[[int], None],
                 on_hold: Callable[[Array], None], *, follow_tolerance: float,
                 follow_time: float, knot_period: float = 0.04,
                 balance: BalanceSettings | None = None) -> None:
        self.player, self._notify, self._on_hold = player, on_motion, on_hold
        self.knot_period, self.balance = knot_period, balance
        self.feedback: GaitFeedback | None = None
        self._corrected: CorrectedMotion | None = None
        self._period, self._stops_later = knot_period, False
        self.follow_tolerance, self.follow_time = follow_tolerance, follow_time
        self.last_ns = self._followed_ns = 0
        self.problem, self.deviation = '', ZmpDeviation()

    @property
    def state(self) -> WalkState:
        """State of the player."""
        return self.player.state

    @property
    def is_resting(self) -> bool:
        """Whether the robot stands or has halted: nothing is played."""
        return self.state in (WalkState.STANDING, WalkState.HALTED)

    # -- commands

    def begin(self, playback: GaitPlayback, ns: int) -> None:
        """Begin a planned gait at a time, ns."""
        self.last_ns = self._followed_ns = ns
        self.player.begin(playback)
        self._begin_feedback(playback.gait)
        self._on_motion(ns)

    def reset_results(self) -> None:
        """Clear problem and deviation of the last walk."""
        self.problem, self.deviation = '', ZmpDeviation()

    def pause(self) -> None:
        """Pause as soon as possible; InputError if the robot does not walk."""
        self.player.pause()
        self._on_motion(self.last_ns)

    def resume(self) -> None:
        """Continue after a pause; InputError if there is none."""
        self.player.resume()
        self._on_motion(self.last_ns)

    def stop(self) -> None:
        """
        Finish the step and stand on both soles; nothing if that has begun.

        After a step that feedback has placed elsewhere, the next one comes first: standing up
        begins with the soles beside each other as planned.
        """
        if self.state is not WalkState.STOPPING:
            self._stops_later = self.feedback is not None and not self.feedback.is_on_plan
            if not self._stops_later:
                self._stop_now()

    def _stop_now(self) -> None:
        if self.feedback is not None:
            self.feedback.keep_steps()
        self._stops_later = False
        self.player.stop()
        self._on_motion(self.last_ns)

    def stop_for(self, reason: str, has_fallen: bool = False) -> str:
        """
        Stop for a reason; halt at once if the robot has fallen.

        Returns
        -------
        str
            What is done: 'stopping', 'halting', or '' if nothing new.

        """
        if self.is_resting:
            return ''
        if has_fallen:
            self.problem = reason
            if self.player.is_moving:
                self.player.halt()
                self._on_motion(self.last_ns)
            return 'halting'
        if self.state is WalkState.STOPPING:
            return ''
        self.problem = reason
        self.stop()
        return 'stopping'

    # -- time

    def motion(self, ns: int) -> RemainingMotion:
        """Return the motion from a time on until the robot rests, feedback included."""
        if self._corrected is None or self._corrected.is_neutral:
            return self.player.remaining_motion(self.knot_period)
        return self._corrected.trajectory(ns, self._period, self._rate)

    def advance(self, ns: int, measured: Array | None, zmp: Array | None,
                balance: WalkMeasurement | None = None) -> WalkStep | None:
        """
        Play the gait up to a time.

        Parameters
        ----------
        ns
            The time.
        measured
            Positions of all joints, (n,), rad; None if unknown.
        zmp
            Measured zero-moment point in the frame of the player's origin, (3,), m, or None.
        balance
            What the feedback needs; None if it is not measured.

        Returns
        -------
        WalkStep or None
            None if the robot rests.

        """
        dt, self.last_ns = 1e-9 * (ns - self.last_ns), ns
        if self.is_resting:
            return None
        world = self.player.origin  # before it moves on to the next gait
        dt, rate = min(max(dt, 0.0), _LARGEST_ADVANCE), self._rate
        sample = self.player.advance(rate * dt)
        assert sample is not None
        increments = self._correct(dt, rate, balance)
        reference = world.apply(np.array((*sample.zmp_reference, 0.0)))
        if measured is not None:
            if zmp is not None:
                self.deviation.add((world.rotation.T @ (zmp - reference))[:2])
            self._check_following(ns, measured, sample.positions + increments)
        has_changed = self._corrected is not None and not self._corrected.is_neutral
        return WalkStep(reference, sample.shares, has_changed)

    # -- feedback

    def _on_motion(self, ns: int) -> None:
        if self._corrected is not None and not self.is_resting:
            self._corrected.replace(self.player.remaining_motion(self.knot_period), ns)
        self._notify(ns)

    def _begin_feedback(self, gait: Gait) -> None:
        """Begin the feedback of a gait, or let that of the last one go on with it."""
        if self.balance is None:
            self.feedback = self._corrected = None
        elif self.feedback is not None and self._corrected is not None and not gait.swings:
            self.feedback.begin(gait)  # it stands up after a stop
        else:
            self._stops_later = False
            self.feedback = GaitFeedback(gait, self.balance)
            self._corrected = CorrectedMotion(
                self.player.remaining_motion(self.knot_period), self.last_ns,
                self.balance.fade_time)

    @property
    def _rate(self) -> float:
        """Rate at which the gait goes on."""
        if self.feedback is None or not self.player.may_wait:
            return 1.0
        return self.feedback.rate

    def _correct(self, dt: float, rate: float, measured: WalkMeasurement | None) -> Array:
        """Return the increments for what is measured, (n,)."""
        feedback, corrected = self.feedback, self._corrected
        if feedback is None or corrected is None:
            return np.zeros(1)
        corrected.wait(round(1e9 * (1.0 - rate) * dt))
        if self._stops_later and feedback.is_on_plan:
            self._stop_now()
        if dt > 0.0 and not (measured is None and corrected.is_neutral):
            self._period = min(dt, _LONGEST_PERIOD)
            corrected.add(feedback.update(dt, self.player.time, measured), dt)
        return feedback.increments

    def _check_following(self, ns: int, measured: Array, planned: Array) -> None:
        player = self.player
        errors = np.abs(measured - planned)[player.leg_joints]
        if errors.max() <= self.follow_tolerance:
            self._followed_ns = ns
        elif ns - self._followed_ns > 1e9 * self.follow_time:
            name = player.model.joint_names[int(player.leg_joints[errors.argmax()])]
            self.problem = (
                f"the joints do not follow: '{name}' is {errors.max():.2f} rad off; check that "
                'the controller is active, that it takes trajectories of some of its joints '
                '(allow_partial_joints_goal), and that the robot was not moved by hand')
            player.abandon()
            self._on_hold(measured)


def com_offset(R_world_base: Array, bias_in_world: Array, largest: float) -> Array:
    """
    Return the horizontal offset of the true CoM from the model's, in axes of the gait.

    Parameters
    ----------
    R_world_base
        Attitude of the base, shape (3, 3).
    bias_in_world
        Estimated error of the kinematic CoM, shape (3,), m.
    largest
        Largest offset that is accepted, m.

    Returns
    -------
    numpy.ndarray
        Forward and left, shape (2,), m.

    Raises
    ------
    InputError
        If the offset is larger.

    """
    heading = rotation_about(2, yaw_of(R_world_base))
    offset: Array = (heading.T @ -bias_in_world)[:2]
    size = float(np.hypot(*offset))
    if size > largest:
        raise InputError(
            f'cannot walk: the measured CoM is {1e3 * size:.0f} mm from where the URDF has it '
            f'(max_com_offset {1e3 * largest:.0f} mm); calibrate, tare the sensors, or set '
            'use_fused_com to false')
    return offset


def gait_origin(state: RobotState, com_in_world: Array, gait: Gait) -> Pose:
    """
    Return the pose of a gait's frame in the world, from where the soles are in both.

    Parameters
    ----------
    state
        The robot with the attitude of its base in the world; its position is not used.
    com_in_world
        Its centre of mass, shape (3,), m.
    gait
        The gait, which begins with the soles where they are now.

    """
    R_world_base = state.base.rotation
    heading = rotation_about(2, yaw_of(R_world_base))
    soles_from_com = state.placements_in_base(state.model.soles)[:, 3] - state.com_in_base
    middle_in_world = com_in_world + R_world_base @ soles_from_com.mean(axis=0)
    middle_in_gait = np.array((*gait.plan.soles(0.0)[:, :2].mean(axis=0), 0.0))
    return Pose(heading, middle_in_world - heading @ middle_in_gait)


RECOVERY_TIME = 0.4
"""Time in which the monitor recovers after the divergent component was outside, and more, s."""

LONGEST_CHECK = 0.5
"""Longest time between two checks of the monitor that counts as its silence, s."""


class StabilityGate:
    """
    Evaluates the reports of a stability monitor.

    A process that the computer does not let run receives no reports either, and when it goes on,
    those that wait have not been processed yet. So silence is summed up from check to check, and
    a longer pause between two checks counts as :data:`LONGEST_CHECK` only.

    The monitor reports its level at once as an event, and the problems of its inputs once a
    second. In quick steps the divergent component of motion (DCM) leaves the support for a moment
    in each step, and the level takes time to recover from that. With `tolerated_time` an event
    counts only if the DCM has been outside for that long, or the event persists longer than that
    and the recovery.

    Parameters
    ----------
    monitor
        Name of the monitor, for descriptions.
    timeout
        See the attributes.

    Attributes
    ----------
    timeout
        Time without reports after which the monitor counts as stopped, s.
    has_fallen
        Whether the robot has fallen.
    support_phase
        The monitor's name of the support phase; '' while unknown.

    """

    def __init__(self, monitor: str, timeout: float) -> None:
        self._monitor, self.timeout = monitor, timeout
        self.has_fallen, self.support_phase = False, ''
        self._event, self._errors = '', ''
        self._event_since_ns = self._outside_since_ns = 0
        self._tolerated_time, self._silence, self._checked_at = 0.0, math.inf, -math.inf

    @property
    def tolerated_time(self) -> float:
        """Time for which the DCM may be outside of the support, s."""
        return self._tolerated_time

    @tolerated_time.setter
    def tolerated_time(self, seconds: float) -> None:
        self._tolerated_time, self._outside_since_ns = seconds, 0

    def set_event(self, is_error: bool, description: str, has_fallen: bool, now_ns: int) -> None:
        """Set the monitor's level: whether it is an error, and its description."""
        if is_error and not self._event:
            self._event_since_ns = now_ns
        self._event, self.has_fallen = description if is_error else '', has_fallen

    def set_dcm_margin(self, margin: float, now_ns: int) -> None:
        """Set the distance of the DCM from the edge of the support, m, negative outside."""
        if margin >= 0.0:
            self._outside_since_ns = 0
        elif not self._outside_since_ns:
            self._outside_since_ns = now_ns

    def set_report(self, errors: str, steady_time: float) -> None:
        """Set the description of the errors in a report, '' for none, and its time, s."""
        self._errors, self._silence, self._checked_at = errors, 0.0, steady_time

    def check(self, steady_time: float) -> None:
        """Count the time since the last check, s, as silence; to be called all the time."""
        self._silence += min(max(steady_time - self._checked_at, 0.0), LONGEST_CHECK)
        self._checked_at = steady_time

    def stability_error(self, now_ns: int) -> str:
        """Return the description of an event that counts, '' if there is none."""
        return self._event if self._event and self._event_counts(now_ns) else ''

    def problem(self, now_ns: int, steady_time: float) -> str:
        """Return why the robot must not walk, '' if it may."""
        self.check(steady_time)
        if self._silence > self.timeout:
            return (f'no reports of {self._monitor} on /diagnostics for {self.timeout:g} s; '
                    'start it (bringup.launch.xml), or close what keeps this computer busy')
        return self.stability_error(now_ns) or self._errors

    def _event_counts(self, now_ns: int) -> bool:
        if self.has_fallen or not self._tolerated_time:
            return True
        since = self._outside_since_ns
        return ((since != 0 and _elapsed(since, now_ns) >= self._tolerated_time)
                or _elapsed(self._event_since_ns, now_ns) >= self._tolerated_time + RECOVERY_TIME)


def _elapsed(since_ns: int, now_ns: int) -> float:
    """Return the time since then, s; infinite if the clock was set back."""
    elapsed = 1e-9 * (now_ns - since_ns)
    return elapsed if elapsed >= 0.0 else math.inf
