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
"""Smooth quasi-static motions: from posture to posture, and of the base over standing feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


Offset = tuple[float, float, float]


def minimum_jerk(phase: float) -> float:
    """
    Return the minimum-jerk polynomial from 0 to 1, at rest at both ends.

    Parameters
    ----------
    phase
        Share of the duration that has passed; clipped to [0, 1].

    """
    s = min(max(phase, 0.0), 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


@dataclass(frozen=True)
class Keyframe:
    """
    A posture of a motion.

    Attributes
    ----------
    duration
        Time from the keyframe before to this one, s.
    posture
        Name of a configured posture; its leg joints are replaced by those with standing soles.
    offset
        Displacement of the base over the feet, in base axes, m.
    label
        Description of the motion for users.

    """

    duration: float
    posture: str = 'stand'
    offset: Offset = (0.0, 0.0, 0.0)
    label: str = ''

    def __post_init__(self) -> None:
        if not 0.0 < self.duration < math.inf:
            raise ConfigurationError(
                f"keyframe '{self.label}' lasts {self.duration} s; it must be a positive time")


class KeyframeMotion:
    """
    A minimum-jerk motion through keyframes, at rest at each, repeated forever.

    It begins in posture ``stand``; so that repetition is smooth the last keyframe should be that
    posture, unshifted.

    Parameters
    ----------
    model
        The robot.
    keyframes
        At least one.

    Attributes
    ----------
    duration
        Time of one round, s.

    """

    def __init__(self, model: RobotModel, keyframes: Sequence[Keyframe]) -> None:
        if not keyframes:
            raise ConfigurationError('a motion needs at least one keyframe')
        self.keyframes = tuple(keyframes)
        self._ends = np.cumsum([keyframe.duration for keyframe in keyframes])
        self.duration = float(self._ends[-1])
        self._postures = {k.posture: model.posture(k.posture) for k in keyframes}
        self._start = Keyframe(1.0, 'stand')
        self._postures['stand'] = model.posture('stand')
        self._ik = PostureIk(model, self._postures['stand'])

    def label(self, time: float) -> str:
        """Return the description of the motion at `time`, s."""
        return self._segment(time)[1].label

    def positions(self, time: float) -> Array:
        """Return the positions of the joints (n,) at `time`, s, in the model's order."""
        before, after, phase = self._segment(time)
        share = minimum_jerk(phase)
        positions = _between(self._postures[before.posture], self._postures[after.posture], share)
        offset = _between(np.array(before.offset), np.array(after.offset), share)
        return self._ik.positions(Pose.translation(offset), posture=positions)

    def _segment(self, time: float) -> tuple[Keyframe, Keyframe, float]:
        """Return the keyframes before and after `time`, and the phase between them."""
        time = time % self.duration if time > 0.0 else 0.0
        index = min(int(np.searchsorted(self._ends, time, side='right')), len(self._ends) - 1)
        after = self.keyframes[index]
        before = self.keyframes[index - 1] if index else self._start
        return before, after, 1.0 - (float(self._ends[index]) - time) / after.duration


def _between(start: Array, end: Array, share: float) -> Array:
    return start + share * (end - start)


#: Sideways amplitude of the motion, as a share of half the distance between the soles.
_SWAY = 0.35


def show_keyframes(model: RobotModel) -> list[Keyframe]:
    """
    Return a motion that shifts the weight: sideways, forward, down, arms up and down.

    Parameters
    ----------
    model
        A robot with two or more feet and a posture ``stand``; without a posture ``arms_up`` its
        arms stay.

    """
    soles = model.state(model.posture('stand')).placements_in_base(model.soles)[:, 3]
    side = _SWAY * 0.5 * float(np.ptp(soles[:, 1]))
    height = float(-soles[:, 2].mean())
    forward, down = 0.02 * height, 0.03 * height
    frames = [
        Keyframe(1.0, label='stands'),
        Keyframe(1.5, offset=(0.0, side, 0.0), label='sways to the left'),
        Keyframe(2.5, offset=(0.0, -side, 0.0), label='sways to the right'),
        Keyframe(1.5, label='comes back')]
    arms = 'arms_up'
    if arms in model.config.postures:
        frames += [
            Keyframe(2.5, arms, label='lifts its arms'),
            Keyframe(1.5, arms, (forward, 0.0, 0.0), label='leans forward'),
            Keyframe(1.5, arms, label='comes back'),
            Keyframe(2.5, label='lowers its arms')]
    return [*frames,
            Keyframe(1.5, offset=(0.0, 0.0, -down), label='bends its knees'),
            Keyframe(1.5, label='stands up')]
