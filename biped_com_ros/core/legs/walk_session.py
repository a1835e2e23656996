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
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about, yaw_of
from biped_com_ros.core.legs.balance import BalanceSettings, FADE_TIME
from biped_com_ros.core.legs.corrected_motion import CorrectedMotion
from biped_com_ros.core.legs.feedback import GaitFeedback, WalkMeasurement
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.legs.playback import GaitPlayback
from biped_com_ros.core.legs.player import RemainingMotion, WalkPlayer, WalkState
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.robot_state import RobotState
import numpy as np

KNOT_PERIOD = 0.04
"""Between two points of a motion, s."""

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
    balance
        Settings of the feedback in the next gaits; None: open loop.
    model
        The robot for the feedback, where gaits are planned in another thread meanwhile; by
        default the player's.

    Attributes
    ----------
    player, follow_tolerance, follow_time, balance
        As given.
    feedback
        Of the present gait; None in open loop.
    is_balancing
        Whether feedback acts also while the robot stands; see :meth:`begin_balancing`.
    last_ns
        Time up to which the gait has been played, ns.
    problem
        Why the last walk was stopped; '' if it was not.
    deviation
        Of the measured zero-moment point in the last walk.

    """

    def __init__(self, player: WalkPlayer, on_motion: Callable[[int], None],
                 on_hold: Callable[[Array], None], *, follow_tolerance: float,
                 follow_time: float, balance: BalanceSettings | None = None,
                 model: RobotModel | None = None) -> None:
        self.player, self._notify, self._on_hold = player, on_motion, on_hold
        self.balance, self._model = balance, model
        self.feedback: GaitFeedback | None = None
        self._corrected: CorrectedMotion | None = None
        self.is_balancing, self._standing_time = False, 0.0
        self._posture: Array = np.zeros(len(player.model.joint_names))
        self._period, self._stops_later = KNOT_PERIOD, False
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
        """Begin a planned gait at a time, ns; a robot that balances goes on to do so."""
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
        if self.is_resting and not (has_fallen and self.is_balancing):
            return ''
        if has_fallen and self.player.is_moving and not self.player.may_wait:
            return ''  # it halts already
        if has_fallen:
            self.is_balancing = False
            self.problem = reason
            if self.player.is_moving:
                self.player.halt()
                self._on_motion(self.last_ns)
            else:  # it balances, or pauses
                self.player.abandon()
            return 'halting'
        if self.state is WalkState.STOPPING:
            return ''
        self.problem = reason
        self.stop()
        return 'stopping'

    # -- balancing while it stands

    def begin_balancing(self, gait: Gait, ns: int) -> None:
        """
        Let feedback act while the robot stands, too, and go on through walks and after them.

        Parameters
        ----------
        gait
            Begins with the posture in which the robot stands (:meth:`.WalkPlayer.plan_stance`).
        ns
            The time.

        Raises
        ------
        InputError
            If the robot does not stand, or there are no settings of the feedback.

        """
        if self.balance is None:
            raise InputError("cannot balance without feedback; set the parameter 'feedback' to "
                             'true')
        if self.state is not WalkState.STANDING:
            raise InputError(f'cannot begin to balance: the robot is {self.state.value}')
        posture = gait.at(0.0).positions[np.newaxis]
        still = np.zeros_like(posture)
        self.last_ns = self._followed_ns = ns
        self.feedback = GaitFeedback(gait, self.balance, self._model)
        self.feedback.keeps_tilt = True
        self._corrected = CorrectedMotion(
            RemainingMotion(np.zeros(1), posture, still, still), ns, FADE_TIME)
        self._posture, self._standing_time = posture[0], 0.0
        self.is_balancing = True
        self.reset_results()

    def end_balancing(self) -> RemainingMotion | None:
        """
        Balance no longer while the robot stands.

        Returns
        -------
        RemainingMotion or None
            In which the increments fade out, from now on; None if the robot does not stand with
            increments.

        """
        is_standing = self.is_balancing and self.state is WalkState.STANDING
        self.is_balancing = False
        if self.feedback is not None:
            self.feedback.keeps_tilt = False
        if not is_standing:
            return None
        corrected, self.feedback, self._corrected = self._corrected, None, None
        if corrected is None or corrected.is_neutral:
            return None
        return corrected.trajectory(self.last_ns, self._period)

    def stand(self, ns: int, measured: Array | None, balance: WalkMeasurement | None) -> bool:
        """
        Balance while the robot stands; return whether :meth:`motion` has changed.

        Parameters
        ----------
        ns
            The time.
        measured
            Positions of all joints, (n,), rad; None if unknown.
        balance
            What the feedback needs; None if it is not measured: increments are kept.

        """
        feedback, corrected = self.feedback, self._corrected
        if not self.is_balancing or feedback is None or corrected is None:
            return False
        dt, self.last_ns = 1e-9 * (ns - self.last_ns), ns
        is_updated = balance is not None and dt > 0.0
        if is_updated:
            self._period = min(dt, _LONGEST_PERIOD)
            corrected.add(feedback.update(dt, self._standing_time, balance), self._period)
        if measured is not None:
            self._check_following(ns, measured, self._posture + feedback.increments)
        return is_updated and self.is_balancing and not corrected.is_neutral

    @property
    def increments(self) -> Array:
        """Return what balancing adds to the joints of a robot that stands, (n,), rad."""
        if not self.is_balancing or self.feedback is None:
            return np.zeros_like(self._posture)
        return self.feedback.increments

    # -- time

    def motion(self, ns: int) -> RemainingMotion:
        """Return the motion from a time on until the robot rests, feedback included."""
        if self._corrected is not None and self.is_balancing and self.is_resting:
            return self._corrected.held(self._period)
        if self._corrected is None or self._corrected.is_neutral:
            return self.player.remaining_motion(KNOT_PERIOD)
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
            self._corrected.replace(self.player.remaining_motion(KNOT_PERIOD), ns)
        self._notify(ns)

    def _begin_feedback(self, gait: Gait) -> None:
        """Begin the feedback of a gait, or let that of the last one go on with it."""
        if self.balance is None:
            self.feedback = self._corrected = None
            self.is_balancing = False
        elif self.feedback is not None and self._corrected is not None and (
                self.is_balancing or not gait.swings):  # without, it stands up after a stop
            self.feedback.begin(gait)
        else:
            self._stops_later = False
            self.feedback = GaitFeedback(gait, self.balance, self._model)
            self._corrected = CorrectedMotion(
                self.player.remaining_motion(KNOT_PERIOD), self.last_ns,
                FADE_TIME)
        self._standing_time = gait.duration
        self._posture = gait.at(gait.duration).positions

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
        self._followed_ns = min(self._followed_ns, ns)  # later if the clock was set back
        if errors.max() <= self.follow_tolerance:
            self._followed_ns = ns
        elif ns - self._followed_ns > 1e9 * self.follow_time:
            name = player.model.joint_names[int(player.leg_joints[errors.argmax()])]
            self.problem = (
                f"the joints do not follow: '{name}' is {errors.max():.2f} rad off; check that "
                'the controller is active, that it takes trajectories of some of its joints '
                '(allow_partial_joints_goal), and that the robot was not moved by hand')
            player.abandon()
            self.is_balancing = False
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
