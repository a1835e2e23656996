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
A robot that walks when it is told to: from standing to standing, with pauses and safe stops.

A stop halts the gait on both soles and then lets the robot stand up: its weight goes to between
the feet, its hips as high as in its posture. From there, one foot ahead or not, it walks again.

What the joints do until the robot rests is known at any time (:meth:`WalkPlayer.upcoming`): a
controller that is given all of it brings the robot to rest without hearing any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.footsteps import forward_steps, rear_foot, StepTiming
from biped_com_ros.core.legs.gait import Gait, GaitOptions, GaitSample, StanceIk
from biped_com_ros.core.legs.kinematics import legs_of
from biped_com_ros.core.legs.playback import GaitPlayback, PlaybackState
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


class WalkState(Enum):
    """What a robot is doing."""

    STANDING = 'standing'
    WALKING = 'walking'
    PAUSING = 'pausing'
    PAUSED = 'paused'
    STOPPING = 'stopping'
    HALTED = 'halted'


@dataclass(frozen=True)
class WalkRequest:
    """
    How far to walk, and how.

    Attributes
    ----------
    count
        Number of steps.
    length
        By which a foot lands ahead of the other one, m.
    first
        Index of the foot that begins where they are side by side; else the rear one does.
    options
        How.

    """

    count: int
    length: float
    first: int = 1
    options: GaitOptions = GaitOptions()


class RemainingMotion(NamedTuple):
    """
    What the joints will do until the robot rests.

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


class WalkPlayer:
    """
    Walks a robot with two of Wang's legs.

    Parameters
    ----------
    model
        The robot.
    posture
        Name of how it stands at ease: soles level.
    ramp
        Time from full speed to a halt and back, s.
    least_margin
        Distance from the edge of the support that the zero-moment point keeps in a halt, m.
    lead
        Time between an order and the first motion that it causes, s: what comes is told before.

    Attributes
    ----------
    origin
        Of the present gait's world in the user's, who sets it before :meth:`begin`; else
        it is carried on from gait to gait.
    leg_joints
        Indices of the legs' joints.
    sample
        The last one that :meth:`advance` returned.

    Raises
    ------
    ConfigurationError
        If the robot has other legs or does not stand level.

    """

    def __init__(self, model: RobotModel, posture: str = 'stand', ramp: float = 0.5,
                 least_margin: float = 0.01, lead: float = 0.0) -> None:
        self.model, self._ramp, self._least_margin = model, ramp, least_margin
        self._lead = lead
        self.leg_joints = np.concatenate([leg.index for leg in legs_of(model).values()])
        self._posture_name, self._ease = posture, model.posture(posture)
        StanceIk(model, self._ease)  # refuses what cannot walk
        self._resting = self._ease
        self._playback: GaitPlayback | None = None
        self._stops = self._is_halted = False
        self.origin = Pose.identity()
        self.sample: GaitSample | None = None

    @property
    def state(self) -> WalkState:
        """Return what the robot is doing."""
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
        """Whether joints move, or will without any more being said."""
        return self.state not in (WalkState.STANDING, WalkState.PAUSED, WalkState.HALTED)

    @property
    def has_stopped(self) -> bool:
        """Whether it has come to rest on both soles and has yet to stand up."""
        playback = self._playback
        return self._stops and playback is not None and playback.state is PlaybackState.PAUSED

    @property
    def step(self) -> tuple[int, int]:
        """Return how many steps have been finished, and of how many."""
        playback = self._playback
        if playback is not None:
            swings = playback.gait.swings
            if swings:  # else it stands up after a stop
                self._steps = sum(swing.end <= playback.time for swing in swings), len(swings)
        return self._steps

    _steps = (0, 0)

    @property
    def progress(self) -> float:
        """Return how much of the gait's time has passed, 0 to 1; 1 while standing."""
        if self._playback is None:
            return 1.0
        return max(self._playback.time, 0.0) / self._playback.gait.duration

    def plan(self, order: WalkRequest, measured: Array,
             com_offset: Array | tuple[float, float] = (0.0, 0.0),
             tolerance: float = 0.05) -> GaitPlayback:
        """
        Plan a walk from where the robot stands; takes a while, and changes nothing here.

        Parameters
        ----------
        order
            Where and how.
        measured
            Positions of all joints, (n,); legs have to be where they were left or in the posture
            at ease, other joints stay as they are.
        com_offset
            Of the true centre of mass from the model's, in base axes, (2,), m.
        tolerance
            How far a leg's joint may be off, rad.

        Raises
        ------
        InputError
            If the robot moves or does not stand so, or cannot walk so.

        """
        if self.state not in (WalkState.STANDING, WalkState.HALTED):
            raise InputError(f'the robot is {self.state.value}; stop it before the next walk')
        posture = np.array(measured, dtype=float)
        posture[self.leg_joints] = self._where_it_stands(measured, tolerance)[self.leg_joints]
        stance = self._stance(posture, com_offset)
        rear = rear_foot(stance.footprints, order.length >= 0.0)
        steps = forward_steps(stance.footprints, order.count, order.length,
                              order.first if rear is None else rear)
        return self._playback_of(Gait(stance, steps, order.options))

    def plan_standing_up(self) -> GaitPlayback:
        """Plan the way from a stop on both soles to standing at ease; see :meth:`plan`."""
        if self._playback is None or not self.has_stopped:
            raise InputError(f'the robot is {self.state.value}; it stands up after a stop')
        gait = self._playback.gait
        timing = gait.options.timing
        slowly = StepTiming(stop=max(timing.stop, StepTiming().stop), lift=timing.lift)
        stance = self._stance(gait.at(self._playback.time).positions, gait.com_offset)
        return self._playback_of(
            Gait(stance, [], replace(gait.options, method='static', timing=slowly)))

    def begin(self, playback: GaitPlayback) -> None:
        """Begin what was planned from where the robot rests."""
        self._leave(halted=False)
        self._playback, self._stops = playback, not playback.gait.swings
        playback.start(self._lead)
        self.sample = playback.advance(0.0)

    def pause(self) -> None:
        """
        Pause as soon as the robot can.

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
        Go on after a pause, or call a pending one off.

        Raises
        ------
        InputError
            If it does not pause.

        """
        if self.state not in (WalkState.PAUSED, WalkState.PAUSING):
            raise InputError(f'the robot is {self.state.value}, there is nothing to go on with')
        assert self._playback is not None
        self._playback.start(self._lead)

    def stop(self) -> None:
        """Finish the step and come to rest on both soles; nothing while it rests."""
        if self._playback is not None and not self._stops:
            self._playback.stop(self._lead)
            self._stops = True

    def halt(self) -> None:
        """Come to rest at once, wherever it is, and stay there: for when going on is worse."""
        if self._playback is not None:
            self._playback.halt(self._lead)
            self._is_halted = True
            self._leave_if_done()

    def abandon(self) -> None:
        """Forget the walk: the robot does not do it."""
        self._leave(halted=True)

    def advance(self, dt: float) -> GaitSample | None:
        """Let time pass, s; return where the joints are to be, or were last; None before that."""
        if self._playback is not None:
            self.sample = self._playback.advance(dt)
            self._leave_if_done()
        return self.sample

    def remaining_motion(self, dt: float) -> RemainingMotion:
        """
        Return what the joints will do from now on until the robot rests.

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
            raise InputError(f'the robot is {self.state.value}, nothing is coming')
        samples = self._playback.forecast(dt)
        positions = np.array([sample.positions for sample in samples])
        velocities: Array = np.array([sample.velocities for sample in samples])
        velocities[-1] = 0.0
        accelerations: Array = np.zeros(velocities.shape)
        if len(samples) > 1:
            accelerations[:] = np.gradient(velocities, dt, axis=0)
        times: Array = dt * np.arange(len(samples), dtype=float)
        return RemainingMotion(times, positions, velocities, accelerations)

    # -- inside

    def _playback_of(self, gait: Gait) -> GaitPlayback:
        return GaitPlayback(gait, self._ramp, self._least_margin)

    def _stance(self, posture: Array, com_offset: Array | tuple[float, float]) -> StanceIk:
        ease = posture.copy()
        ease[self.leg_joints] = self._ease[self.leg_joints]
        return StanceIk(self.model, posture, StanceIk(self.model, ease), com_offset)

    def _where_it_stands(self, measured: Array, tolerance: float) -> Array:
        """Return the posture that the legs are in, or say how far they are from it."""
        known = (self._resting, self._ease)
        errors = [np.abs(measured - posture)[self.leg_joints] for posture in known]
        best = int(np.argmin([error.max() for error in errors]))
        if errors[best].max() <= tolerance:
            return known[best]
        worst = int(self.leg_joints[errors[1].argmax()])
        raise InputError(
            f"the robot does not stand in its posture '{self._posture_name}': joint "
            f"'{self.model.joint_names[worst]}' is at {measured[worst]:.3f} rad instead of "
            f'{self._ease[worst]:.3f} (tolerance {tolerance:g} rad); bring it there first')

    def _leave_if_done(self) -> None:
        playback = self._playback
        if playback is not None and playback.state is PlaybackState.DONE:
            self._leave(self._is_halted)
        elif playback is not None and self._is_halted and (
                playback.state is PlaybackState.PAUSED):
            self._leave(halted=True)

    def _leave(self, halted: bool) -> None:
        self._steps = self.step
        if self._playback is not None and self.sample is not None:
            self._resting = self.sample.positions
            x, y, _ = self.sample.base.position.tolist()
            # The ground below the base is where the next gait's world begins.
            self.origin = self.origin @ Pose(self.sample.base.rotation, np.array((x, y, 0.0)))
        self._playback = None
        self._stops, self._is_halted = False, halted
