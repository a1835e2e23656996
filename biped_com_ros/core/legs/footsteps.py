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
Timing of footsteps, swing of the feet and reference of the zero-moment point.

A walk alternates double support, during which the reference moves from one foot to the other, and
single support, during which it rests in the stance foot while the other one swings. The S-shaped
reference of Wang, Zhu and Han is a minimum-jerk polynomial here, with zero velocity and
acceleration at both ends; so is the swing of a foot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
import math
from typing import NamedTuple

from biped_com_ros.core.errors import check_positive, ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

#: Share of a swing at its beginning and end in which the foot moves vertically only.
_UPRIGHT = 0.15
#: Usual width of a sole over the height of the centre of mass, and largest factor of durations: in
#: simulated quick steps robots fell with 0.07 to 0.095 (Unitree H1_2 and H2, Fourier GR2 and GR3),
#: none with 0.11 or more, and hardly one of these with the factor that follows.
_USUAL, _SLOWEST = 0.12, 2.0
#: Feet whose origins are less than this apart along the heading are side by side, m.
_SIDE_BY_SIDE = 0.005
#: No robot makes longer steps, m.
_LONGEST = 10.0


class Footprint(NamedTuple):
    """Place of a sole on level ground: origin of its frame, m, and heading, rad."""

    x: float
    y: float
    yaw: float = 0.0

    def apply(self, x: float, y: float) -> tuple[float, float]:
        """Transform a point from the sole to the ground, m."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return self.x + c * x - s * y, self.y + s * x + c * y

    def to_local(self, x: float, y: float) -> tuple[float, float]:
        """Transform a point from the ground to the sole, m."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return c * (x - self.x) + s * (y - self.y), c * (y - self.y) - s * (x - self.x)


class Footstep(NamedTuple):
    """
    Landing of a foot.

    Attributes
    ----------
    foot
        Its index, 0 or 1.
    footprint
        Where its sole lands.

    """

    foot: int
    footprint: Footprint


@dataclass(frozen=True, kw_only=True)
class StepTiming:
    """
    Durations of the phases of a walk, and lift of the feet.

    Attributes
    ----------
    single_support, double_support
        Duration of each step, and between two steps, s.
    start, stop
        Duration of the shift from both feet to one, and back, s.
    rest
        Duration before the first and after the last shift, s, for preview and settling.
    lift
        Largest height of the sole, m.

    """

    single_support: float = 1.2
    double_support: float = 1.6
    start: float = 2.0
    stop: float = 2.0
    rest: float = 0.0
    lift: float = 0.02

    def __post_init__(self) -> None:
        check_positive('a walk', self, 'single_support', 'double_support', 'start', 'stop', 'lift')
        check_positive('a walk', self, 'rest', or_zero=True)

    def slowed(self, factor: float) -> StepTiming:
        """Return all durations times `factor`, with the same lift."""
        return replace(self, **{name: factor * getattr(self, name) for name in (
            'single_support', 'double_support', 'start', 'stop', 'rest')})


def time_scale(model: RobotModel) -> float:
    """
    Return the factor of the durations of a robot's steps.

    That of its file; without one it is above 1 where soles are narrow for the height, on which
    quick steps make robots fall.
    """
    if given := model.config.walking.time_scale:
        return given
    width = min(float(np.ptp(np.array(foot.polygon)[:, 1])) for foot in model.config.feet.values())
    share = width / model.com_height
    return min(max((_USUAL / share) ** 2, 1.0), _SLOWEST)


class Phase(NamedTuple):
    """
    A phase of a walk with the same feet on the ground.

    Attributes
    ----------
    start, end
        s.
    footprints
        Of both soles at its start.
    step
        The swing foot and where it lands; None in double support.
    zmp_from, zmp_to
        Start and end of the reference of the zero-moment point, m.
    share_from, share_to
        Share of the weight on foot 1 at both ends.

    """

    start: float
    end: float
    footprints: tuple[Footprint, Footprint]
    step: Footstep | None
    zmp_from: tuple[float, float]
    zmp_to: tuple[float, float]
    share_from: float
    share_to: float

    def progress(self, time: float) -> float:
        """Return the smooth progress of the phase, 0 to 1."""
        return minimum_jerk((time - self.start) / (self.end - self.start))


class StepPlan:
    """
    A walk from standing to standing.

    Parameters
    ----------
    footprints
        Of both soles before the first step.
    steps
        In order; usually of alternating feet. Without any, the weight only moves to where it
        rests.
    targets
        Point of each sole, in its frame, where the reference rests in single support, shape
        (2, 2), m.
    zmp_start
        Where the reference begins: the centre of mass at rest, on the ground, m.
    timing
        Durations.
    rest
        End of the reference, relative to the middle of the soles, m; default: as at the start.

    Attributes
    ----------
    phases
        Double and single support in turn; rest, if any, at both ends.
    duration
        s.

    Raises
    ------
    ConfigurationError
        If there are not two feet, or a step is of another foot.

    """

    def __init__(self, footprints: Sequence[Footprint], steps: Sequence[Footstep],
                 targets: Sequence[Sequence[float]], zmp_start: Sequence[float],
                 timing: StepTiming = StepTiming(), rest: Sequence[float] | None = None) -> None:
        if len(footprints) != 2 or any(s.foot not in (0, 1) for s in steps):
            raise ConfigurationError(
                f'a walk needs two feet and steps of feet 0 and 1, not {len(footprints)} feet and '
                f'steps {list(steps)}')
        self.timing, self._targets = timing, [tuple(target) for target in targets]
        feet, zmp = (footprints[0], footprints[1]), (float(zmp_start[0]), float(zmp_start[1]))
        self._rest = _middle(feet).to_local(*zmp) if rest is None else (
            float(rest[0]), float(rest[1]))
        self.phases = self._make_phases(feet, steps, zmp)
        self._starts = [phase.start for phase in self.phases]
        self.duration = self.phases[-1].end

    def phase(self, time: float) -> Phase:
        """Return the phase at a time; the first and the last one outside."""
        return self.phases[max(bisect_right(self._starts, time) - 1, 0)]

    def zmp(self, time: float) -> Array:
        """Return the reference of the zero-moment point, (2,), m."""
        phase = self.phase(time)
        start = np.array(phase.zmp_from)
        return start + phase.progress(time) * (np.array(phase.zmp_to) - start)

    def shares(self, time: float) -> Array:
        """Return how the feet share the weight, (2,), sum 1; exactly 0 for a foot in the air."""
        phase = self.phase(time)
        second = phase.share_from + phase.progress(time) * (phase.share_to - phase.share_from)
        second = min(max(second, 0.0), 1.0)  # rounding
        return np.array((1.0 - second, second))

    def start_progress(self, time: float) -> float:
        """Return the smooth progress of the first shift of weight, 0 to 1."""
        return self.phases[1 if self.timing.rest else 0].progress(time)

    def stop_progress(self, time: float) -> float:
        """Return the smooth progress of the last shift of weight, 0 to 1."""
        return self.phases[-2 if self.timing.rest else -1].progress(time)

    def in_contact(self, time: float) -> tuple[bool, bool]:
        """Return which soles are on the ground."""
        step = self.phase(time).step
        return (step is None or step.foot != 0), (step is None or step.foot != 1)

    def soles(self, time: float) -> Array:
        """Return x, y, z (m) and yaw (rad) of both soles, shape (2, 4)."""
        phase = self.phase(time)
        rows = np.array([(f.x, f.y, 0.0, f.yaw) for f in phase.footprints])
        if phase.step is not None:
            passed = min(max((time - phase.start) / (phase.end - phase.start), 0.0), 1.0)
            goal = phase.step.footprint
            row = rows[phase.step.foot]
            change = np.array((goal.x, goal.y, 0.0, goal.yaw)) - row
            change[3] = math.remainder(change[3], 2.0 * math.pi)
            row += minimum_jerk((passed - _UPRIGHT) / (1.0 - 2.0 * _UPRIGHT)) * change
            # Zero acceleration at both ends, and 1 in the middle.
            row[2] = self.timing.lift * (4.0 * passed * (1.0 - passed)) ** 3
        return rows

    def _make_phases(self, footprints: tuple[Footprint, Footprint], steps: Sequence[Footstep],
                     zmp: tuple[float, float]) -> list[Phase]:
        phases: list[Phase] = []
        time, share = self.timing.rest, self._share_of(zmp, footprints)
        if time:
            phases.append(Phase(0.0, time, footprints, None, zmp, zmp, share, share))
        for i, step in enumerate(steps):
            stance = 1 - step.foot
            goal = self._target(footprints, stance)
            end = time + (self.timing.double_support if i else self.timing.start)
            phases.append(Phase(time, end, footprints, None, zmp, goal, share, float(stance)))
            time, zmp, share = end, goal, float(stance)
            end = time + self.timing.single_support
            phases.append(Phase(time, end, footprints, step, zmp, zmp, share, share))
            time, footprints = end, _stepped(footprints, step)
        rest = _middle(footprints).apply(*self._rest)
        end, resting = time + self.timing.stop, self._share_of(rest, footprints)
        phases.append(Phase(time, end, footprints, None, zmp, rest, share, resting))
        if self.timing.rest:
            phases.append(Phase(end, end + self.timing.rest, footprints, None, rest, rest,
                                resting, resting))
        return phases

    def _target(self, footprints: tuple[Footprint, Footprint], foot: int) -> tuple[float, float]:
        return footprints[foot].apply(*self._targets[foot])

    def _share_of(self, zmp: tuple[float, float],
                  footprints: tuple[Footprint, Footprint]) -> float:
        """Return the share of foot 1 for a point between the targets of both feet, 0 to 1."""
        start, end = (np.array(self._target(footprints, foot)) for foot in (0, 1))
        along = end - start
        return float(np.clip((np.array(zmp) - start) @ along / (along @ along), 0.0, 1.0))


def forward_steps(footprints: Sequence[Footprint], count: int, length: float,
                  first: int = 1) -> list[Footstep]:
    """
    Return steps straight ahead, along the heading of the first footprint.

    A single step leaves one foot ahead, as in the paper; the last of several steps ends with the
    feet side by side.

    Parameters
    ----------
    footprints
        Of both soles; one foot may be ahead.
    count
        Number of steps.
    length
        By which a foot lands ahead of the other one, m; may be negative.
    first
        Foot that steps first.

    Raises
    ------
    ConfigurationError
        If there is no step, or its length is not finite.

    """
    if count < 1:
        raise ConfigurationError(f'a walk has one or more steps, not {count}')
    if not abs(length) < _LONGEST:
        raise ConfigurationError(
            f'the length of a step is {length} m; valid: less than {_LONGEST:g} m')
    c, s = math.cos(footprints[0].yaw), math.sin(footprints[0].yaw)
    steps, feet = [], list(footprints)
    for i in range(count):
        foot = (first + i) % 2
        start, other = feet[foot], feet[1 - foot]
        ahead = c * (other.x - start.x) + s * (other.y - start.y)
        if i < count - 1 or count == 1:
            ahead += length
        feet[foot] = Footprint(start.x + c * ahead, start.y + s * ahead, start.yaw)
        steps.append(Footstep(foot, feet[foot]))
    return steps


def rear_foot(footprints: Sequence[Footprint], forward: bool = True) -> int | None:
    """
    Return the index of the rear foot, or None if the feet are side by side.

    Parameters
    ----------
    footprints
        Of both soles.
    forward
        Whether the robot will walk forward; otherwise the foot ahead is the rear one.

    """
    ahead = footprints[0].to_local(*footprints[1][:2])[0]
    if abs(ahead) < _SIDE_BY_SIDE:
        return None
    return int((ahead < 0.0) == forward)


def _middle(footprints: tuple[Footprint, Footprint]) -> Footprint:
    return Footprint(*(0.5 * (a + b) for a, b in zip(*footprints)))


def _stepped(footprints: tuple[Footprint, Footprint],
             step: Footstep) -> tuple[Footprint, Footprint]:
    """Return the footprints after a step; headings are continuous beyond pi."""
    before, goal = footprints[step.foot].yaw, step.footprint
    landed = goal._replace(yaw=before + math.remainder(goal.yaw - before, 2.0 * math.pi))
    return (landed, footprints[1]) if step.foot == 0 else (footprints[0], landed)
