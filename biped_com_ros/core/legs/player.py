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
Walks of a robot from standing to standing, with pauses and safe stops.

A stop halts the gait on both soles; then the robot stands up: its weight moves to between the
feet, its hips to the height of its posture. From there, one foot ahead or not, it can walk again.

The motion until the robot rests is known at any time (:meth:`WalkPlayer.upcoming`): a
joint controller that has received it brings the robot to rest without further messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.footsteps import forward_steps, rear_foot, StepTiming
from biped_com_ros.core.legs.gait import Gait, GaitOptions, GaitSample
from biped_com_ros.core.legs.ik import legs_of
from biped_com_ros.core.legs.playback import GaitPlayback, PlaybackState
from biped_com_ros.core.legs.stance_ik import StanceIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


class WalkState(Enum):
    """State of a robot that can walk."""

    STANDING = 'standing'
    WALKING = 'walking'
    PAUSING = 'pausing'
    PAUSED = 'paused'
    STOPPING = 'stopping'
    HALTED = 'halted'


@dataclass(frozen=True, kw_only=True)
class WalkRequest:
    """
    A request to walk straight ahead.

    Attributes
    ----------
    count
        Number of steps.
    length
        By which a foot lands ahead of the other one, m.
    first
        Index of the foot that steps first if they are side by side; else the rear one does.
    options
        Settings of the gait.

    """

    count: int
    length: float
    first: int = 1
    options: GaitOptions = GaitOptions()


class RemainingMotion(NamedTuple):
    """
    Motion of the joints until the robot rests.

    Attributes
    ----------
    times
        Shape (N,), from 0, s.
    positions, velocities, accelerations
        Of all joints in the order of ``model.joint_names``, shape (N, n).

    """

    times: Array
    positions: Array
    velocities: Array
    accelerations: Array

    @staticmethod
    def sampled(dt: float, positions: Array, velocities: Array) -> RemainingMotion:
        """Return a motion by samples (N, n) every `dt` s, at rest after the last one."""
        velocities[-1] = 0.0
        accelerations = np.gradient(velocities, dt, axis=0) if len(velocities) > 1 else (
            np.zeros_like(velocities))
        times: Array = dt * np.arange(len(positions), dtype=float)
        return RemainingMotion(times, positions, velocities, accelerations)


class WalkPlayer:
    """
    Walks a robot with two legs of six joints.

    Parameters
    ----------
    model
        The robot.
    posture
        Name of the posture in which it stands before and after walks: soles level.
    ramp
        Duration of slowing down for a pause, and of speeding up, s.
    least_margin
        Smallest distance of the zero-moment point from the edge of the support in a pause, m.
    lead
        Time between a request and the first motion that it causes, s.

    Attributes
    ----------
    origin
        Pose of the frame of the present gait in the world; may be set before :meth:`begin`,
        otherwise each gait continues from the last one.
    leg_joints
        Indices of the legs' joints.
    sample
        The last one that :meth:`advance` returned.

    Raises
    ------
    ConfigurationError
        If the robot has other legs or its soles are not level.

    """

    def __init__(self, model: RobotModel, posture: str = 'stand', ramp: float = 0.5,
                 least_margin: float = 0.01, lead: float = 0.0) -> None:
        self.model, self._ramp, self._least_margin = model, ramp, least_margin
        self._lead = lead
        self.leg_joints = np.concatenate([leg.index for leg in legs_of(model).values()])
        self._posture_name, self._home = posture, model.posture(posture)
        StanceIk(model, self._home)  # raises if it cannot walk
        self._resting = self._home
        self._playback: GaitPlayback | None = None
        self._stops = self._is_halted = False
        self._steps = 0, 0
        self.origin = Pose.identity()
        self.sample: GaitSample | None = None

    @property
    def state(self) -> WalkState:
        """State of the robot."""
        playback = self._playback
        if playback is None:
            return WalkState.HALTED if self._is_halted else WalkState.STANDING
        if self._stops or self._is_halted:
            return WalkState.STOPPING
        if playback.state is PlaybackState.PAUSED:
            return WalkState.PAUSED
        if playback.pause_is_pending or playback.state is PlaybackState.BRAKING:
            return WalkState.PAUSING
        return WalkState.WALKING

    @property
    def is_moving(self) -> bool:
        """Whether joints move, or will without another request."""
        return self.state not in (WalkState.STANDING, WalkState.PAUSED, WalkState.HALTED)

    @property
    def may_wait(self) -> bool:
        """Whether the time of the gait may slow down: no halt was requested."""
        return self._playback is not None and not self._is_halted

    @property
    def has_stopped(self) -> bool:
        """Whether it rests on both soles after a stop and has yet to stand up."""
        playback = self._playback
        return self._stops and playback is not None and playback.state is PlaybackState.PAUSED

    @property
    def step(self) -> tuple[int, int]:
        """Return the number of finished steps, and of all."""
        playback = self._playback
        if playback is not None:
            swings = playback.gait.swings
            if swings:  # none while it stands up after a stop
                self._steps = sum(swing.end <= playback.time for swing in swings), len(swings)
        return self._steps

    @property
    def time(self) -> float:
        """Time of the present gait, s, negative before it begins; 0 while standing."""
        return 0.0 if self._playback is None else self._playback.time

    @property
    def progress(self) -> float:
        """Share of the duration of the gait that has passed, 0 to 1; 1 while standing."""
        if self._playback is None:
            return 1.0
        return max(self._playback.time, 0.0) / self._playback.gait.duration

    def use_inertials(self, urdf: str) -> None:
        """Plan from now on with the inertials of a URDF: the masses may have been calibrated."""
        if self.model.urdf != urdf:
            self.model.use_inertials(urdf)

    def plan(self, request: WalkRequest, measured: Array,
             com_offset: Array | tuple[float, float] = (0.0, 0.0),
             tolerance: float = 0.05) -> GaitPlayback:
        """
        Plan a walk from where the robot stands; takes seconds, and does not change the player.

        Parameters
        ----------
        request
            What to plan.
        measured
            Positions of all joints, (n,); the legs have to be where the last walk ended or in
            the posture, other joints stay where they are.
        com_offset
            Measured minus modelled centre of mass, in base axes, (2,), m.
        tolerance
            Largest distance of a leg's joint from there, rad.

        Raises
        ------
        InputError
            If the robot moves or does not stand so, or cannot walk so.

        """
        if self.state not in (WalkState.STANDING, WalkState.HALTED):
            raise InputError(f'the robot is {self.state.value}; stop it before the next walk')
        stance = self._stance(self._where_it_stands(measured, tolerance), com_offset)
        rear = rear_foot(stance.footprints, request.length >= 0.0)
        steps = forward_steps(stance.footprints, request.count, request.length,
                              request.first if rear is None else rear)
        return self._playback_of(Gait(stance, steps, request.options))

    def plan_stance(self, measured: Array, com_offset: Array | tuple[float, float] = (0.0, 0.0),
                    tolerance: float = 0.05) -> Gait:
        """Plan to stand as the robot stands now; the gait begins so. See :meth:`plan`."""
        if self.state is not WalkState.STANDING:
            raise InputError(f'the robot is {self.state.value}')
        stance = self._stance(self._where_it_stands(measured, tolerance), com_offset)
        return Gait(stance, [], GaitOptions(method='static'))

    def plan_standing_up(self) -> GaitPlayback:
        """Plan the motion from a stop on both soles to standing; see :meth:`plan`."""
        if self._playback is None or not self.has_stopped:
            raise InputError(f'the robot is {self.state.value}; it stands up after a stop')
        gait = self._playback.gait
        timing = gait.options.timing
        slowly = StepTiming(stop=max(timing.stop, StepTiming().stop), lift=timing.lift)
        stance = self._stance(gait.at(self._playback.time).positions, gait.com_offset)
        return self._playback_of(
            Gait(stance, [], replace(gait.options, method='static', timing=slowly)))

    def require_start(self, playback: GaitPlayback, measured: Array, tolerance: float) -> None:
        """
        Check that the legs still are where a planned gait begins.

        Parameters
        ----------
        playback
            The gait.
        measured
            Positions of all joints, (n,).
        tolerance
            Largest distance of a leg's joint from there, rad.

        Raises
        ------
        InputError
            If they were moved meanwhile: the first command would be a jump.

        """
        errors = np.abs(measured - playback.gait.at(0.0).positions)[self.leg_joints]
        if not errors.max() <= tolerance:
            name = self.model.joint_names[int(self.leg_joints[errors.argmax()])]
            raise InputError(f"cannot walk: while the walk was planned, '{name}' moved by "
                             f'{errors.max():.2f} rad (tolerance {tolerance:g}); plan it again')

    def begin(self, playback: GaitPlayback) -> None:
        """Begin a gait that was planned from where the robot rests."""
        self._leave(halted=False)
        self._playback, self._stops = playback, not playback.gait.swings
        playback.start(self._lead)
        self.sample = playback.advance(0.0)

    def pause(self) -> None:
        """
        Pause as soon as possible.

        Raises
        ------
        InputError
            If it does not walk.

        """
        if self.state is not WalkState.WALKING:
            raise InputError(f'the robot is {self.state.value}, there is nothing to pause')
        assert self._playback is not None
        self._playback.pause(self._lead)

    def resume(self) -> None:
        """
        Resume after a pause, or cancel a pending one.

        Raises
        ------
        InputError
            If it does not pause.

        """
        if self.state not in (WalkState.PAUSED, WalkState.PAUSING):
            raise InputError(f'the robot is {self.state.value}, there is nothing to resume')
        assert self._playback is not None
        self._playback.start(self._lead)

    def stop(self) -> None:
        """Finish the step and rest on both soles; nothing while the robot rests."""
        if self._playback is not None and not self._stops:
            self._playback.stop(self._lead)
            self._stops = True

    def halt(self) -> None:
        """Come to rest at once, anywhere, and stay there: for emergencies."""
        if self._playback is not None:
            self._playback.halt(self._lead)
            self._is_halted = True
            self._leave_if_done()

    def abandon(self) -> None:
        """End the walk, since the robot does not follow."""
        self._leave(halted=True)

    def advance(self, dt: float) -> GaitSample | None:
        """Advance by `dt` seconds; return the present sample, or the last one; None before."""
        if self._playback is not None:
            self.sample = self._playback.advance(dt)
            self._leave_if_done()
        return self.sample

    def remaining_motion(self, dt: float) -> RemainingMotion:
        """
        Return the motion of the joints from now on until the robot rests.

        Parameters
        ----------
        dt
            Between samples, s.

        Raises
        ------
        InputError
            If nothing is played.

        """
        if self._playback is None:
            raise InputError(f'the robot is {self.state.value}, no motion remains')
        samples = self._playback.forecast(dt)
        return RemainingMotion.sampled(dt, np.array([sample.positions for sample in samples]),
                                       np.array([sample.velocities for sample in samples]))

    # -- inside

    def _playback_of(self, gait: Gait) -> GaitPlayback:
        return GaitPlayback(gait, self._ramp, self._least_margin)

    def _stance(self, posture: Array, com_offset: Array | tuple[float, float]) -> StanceIk:
        home = posture.copy()
        home[self.leg_joints] = self._home[self.leg_joints]
        return StanceIk(self.model, posture, StanceIk(self.model, home), com_offset)

    def _where_it_stands(self, measured: Array, tolerance: float) -> Array:
        """Return the posture with the legs in a known one; InputError if they are in none."""
        known, legs = (self._resting, self._home), self.leg_joints
        errors = [np.abs(measured - posture)[legs] for posture in known]
        best = int(np.argmin([error.max() for error in errors]))
        if errors[best].max() <= tolerance:
            posture: Array = np.array(measured, dtype=float)
            posture[legs] = known[best][legs]
            return posture
        worst = int(self.leg_joints[errors[1].argmax()])
        raise InputError(
            f"the robot does not stand in its posture '{self._posture_name}': joint "
            f"'{self.model.joint_names[worst]}' is at {measured[worst]:.3f} rad instead of "
            f'{self._home[worst]:.3f} (tolerance {tolerance:g} rad); bring it there first')

    def _leave_if_done(self) -> None:
        playback = self._playback
        if playback is not None and playback.state is PlaybackState.DONE:
            self._leave(self._is_halted)
        elif playback is not None and self._is_halted and (playback.state is PlaybackState.PAUSED):
            self._leave(halted=True)

    def _leave(self, halted: bool) -> None:
        self._steps = self.step
        if self._playback is not None and self.sample is not None:
            self._resting = self.sample.positions
            x, y, _ = self.sample.base.position.tolist()
            # The frame of the next gait is on the ground below the base.
            self.origin = self.origin @ Pose(self.sample.base.rotation, np.array((x, y, 0.0)))
        self._playback = None
        self._stops, self._is_halted = False, halted
