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
Levels of stability from margins and tilt, with hysteresis and dwell.

Four quantities are monitored: the margin of the measured ZMP (when it vanishes, a foot begins to
tip over its edge), the margin of the divergent component of motion (once that is outside the
support polygon no torque brings the robot to rest without a step), the tilt of the base, and its
lean: the tilt that it will have soon at its present angular velocity.

While the robot walks by steps that catch it (:class:`StepWatch`), both margins vanish all the time
and mean nothing. Then tilt and lean alone decide. A robot that rocks from foot to foot leans far
at each step and comes back: its lean counts against how far it leaned at the steps before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
import math

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.settings import setting, Settings
from biped_com_ros.core.signals.schmitt import SchmittTrigger

#: A lean counts as usual after a step, ns, and for about so many seconds; one that is so many
#: times as far does not come back by itself.
_STEP_NS, _MEMORY, _FARTHER = nanoseconds(0.5), 4.0, 1.3
#: What is usual raises the threshold by this factor at most.
_AT_MOST = 1.4


class Level(IntEnum):
    """Level of stability, worse with each step."""

    STABLE = 0
    MARGINAL = 1
    UNSTABLE = 2
    FALLEN = 3


#: Margin of the DCM below which the robot is unstable, m.
_DCM_MARGIN = 0.0
#: Lean above which the robot is unstable, 30 deg at rest; more where `tilt_unstable` is more.
_LEAN = 0.5
#: How far ahead the lean is, s.
LEAN_TIME = 0.3
#: Time after the last step that catches the DCM, or after the first one's lift-off, during which
#: the robot walks, unless it stands on all feet, ns.
_WALKING_NS = nanoseconds(1.0)
#: Distance from the threshold of a margin at which a level ends, m.
_MARGIN_HYSTERESIS = 0.005
#: Distance from the threshold of a tilt at which a level ends, rad.
_TILT_HYSTERESIS = 0.05
#: How long a threshold has to be exceeded for a level to begin, s.
DWELL = 0.01
#: How long all values have to be back within the thresholds for a level to end, s.
_RECOVERY = 0.3


@dataclass(frozen=True, kw_only=True)
class StabilityThresholds(Settings):
    """When which level begins; it ends at the threshold and the hysteresis."""

    margin: float = setting(
        0.01, 'Margin of ZMP or DCM below which the robot is marginal', 'm', 0.0, 1.0,
        name='margin_warning')
    tilt: float = setting(
        0.35, 'Tilt of the base above which the robot is unstable', 'rad', 0.01, 3.0,
        name='tilt_unstable')
    fallen_tilt: float = setting(
        1.0, 'Tilt of the base above which the robot has fallen', 'rad', 0.02, 3.1,
        name='tilt_fallen')

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, 'tilt', self.tilt < self.fallen_tilt,
                      f"below 'fallen_tilt', {self.fallen_tilt} rad: lower it, or raise "
                      "'fallen_tilt'", 'rad')

    @property
    def lean(self) -> float:
        """
        Return the lean above which the robot is unstable.

        That is the horizontal length of the unit vector along the z axis of the base, extrapolated
        by :data:`LEAN_TIME`; at rest the sine of the tilt.
        """
        return max(_LEAN, self.tilt)


@dataclass(frozen=True)
class Change:
    """
    A change of the level.

    Attributes
    ----------
    before, now
        The levels.
    reasons
        The causes in text; empty for STABLE.

    """

    before: Level
    now: Level
    reasons: tuple[str, ...]

    @property
    def is_loss(self) -> bool:
        """Whether stability has just been lost."""
        return self.before < Level.UNSTABLE <= self.now


class Rocking:
    """How far a robot usually leans: its largest lean of the last seconds, until a step ago."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, float]] = deque()
        self._usual = 0.0

    def update(self, ns: int, lean: float) -> float:
        """Take the lean at a time (ns), rad; return the usual one."""
        recent = self._recent
        if recent and ns < recent[-1][0]:
            recent.clear()
            self._usual = 0.0
        recent.append((ns, lean))
        while recent[0][0] < ns - _STEP_NS:
            since_ns, before = recent.popleft()
            faded = self._usual * math.exp(-1e-9 * (recent[0][0] - since_ns) / _MEMORY)
            self._usual = max(before, faded)
        return self._usual


class StabilityClassifier:
    """
    Determines the level from margins, tilt and lean.

    Parameters
    ----------
    thresholds
        When which level begins.

    Attributes
    ----------
    level
        The present one.
    reasons
        Its causes, as text.

    """

    def __init__(self, thresholds: StabilityThresholds = StabilityThresholds()) -> None:
        self.thresholds = thresholds
        self._triggers = [
            SchmittTrigger(*values, initial=False) for values in _trigger_values(thresholds)]
        self._levels = (Level.MARGINAL, Level.MARGINAL, Level.UNSTABLE, Level.UNSTABLE,
                        Level.FALLEN, Level.UNSTABLE)
        self._rocking = Rocking()
        self.level = Level.STABLE
        self.reasons: tuple[str, ...] = ()

    def configure(self, thresholds: StabilityThresholds) -> None:
        """Use other thresholds from the next update on; the level is that of before until then."""
        self.thresholds = thresholds
        for trigger, values in zip(self._triggers, _trigger_values(thresholds)):
            trigger.configure(*values)

    def update(self, ns: int, zmp_margin: float | None, dcm_margin: float | None,
               tilt: float | None, lean: float | None = None, *,
               walks: bool = False) -> Change | None:
        """
        Update with the values of one instant.

        Parameters
        ----------
        ns
            Its time.
        zmp_margin, dcm_margin
            m, positive inside the support polygon; None where unknown.
        tilt
            Of the base, rad; None where unknown.
        lean
            Of the base, soon; None where unknown.
        walks
            Whether the robot walks by steps that catch it, so that margins do not count.

        Returns
        -------
        Change or None
            None while the level stays.

        """
        if walks:
            zmp_margin = dcm_margin = None
            for trigger in self._triggers[:3]:
                trigger.reset()
        lean_now = lean
        if lean is not None and walks:
            largest = self.thresholds.lean
            usual = min(_FARTHER * self._rocking.update(ns, lean), _AT_MOST * largest)
            if usual > largest and self.level < Level.FALLEN:
                lean_now = lean * largest / usual
        outside, dcm_outside = (
            None if margin is None else -margin for margin in (zmp_margin, dcm_margin))
        values = (outside, dcm_outside, dcm_outside, tilt, tilt, lean_now)
        level = Level.STABLE
        for trigger, value, its_level in zip(self._triggers, values, self._levels):
            if trigger.update(value, ns) and its_level > level:
                level = its_level
        if level == self.level:
            return None
        before, self.level = self.level, level
        self.reasons = self._explain(zmp_margin, dcm_margin, tilt, lean)
        return Change(before, level, self.reasons)

    def _explain(self, zmp_margin: float | None, dcm_margin: float | None,
                 tilt: float | None, lean: float | None) -> tuple[str, ...]:
        zmp, dcm, outside, leaning, lying, falling = (trigger.is_set for trigger in self._triggers)
        if lying:  # margins mean nothing then
            return (f'the base leans by {_degrees(tilt)}',)
        limits = self.thresholds
        causes = (
            (zmp and zmp_margin is not None,
             f'the ZMP is {_from_edge(zmp_margin)}'),
            (dcm and not outside and dcm_margin is not None,
             f'the DCM is {_from_edge(dcm_margin)}'),
            (outside, 'the DCM left the support' if dcm_margin is None else
             f'the DCM is {_from_edge(dcm_margin)}'),
            (leaning, f'the base leans by {_degrees(tilt)}'),
            (falling and lean is not None and lean > limits.lean - _TILT_HYSTERESIS,
             f'the base turns so fast that it leans by {_degrees(lean)} in '
             f'{LEAN_TIME:g} s'))
        return tuple(text for applies, text in causes if applies)


def _trigger_values(t: StabilityThresholds) -> list[tuple[float, float, float, float]]:
    """Return the values of the triggers of `StabilityClassifier`."""
    margins = [(-margin, -margin - _MARGIN_HYSTERESIS)
               for margin in (t.margin, t.margin, _DCM_MARGIN)]
    tilts = [(tilt, tilt - _TILT_HYSTERESIS) for tilt in (t.tilt, t.fallen_tilt, t.lean)]
    return [(*limits, DWELL, _RECOVERY) for limits in margins + tilts]


def tilt_of(rotation_z: float) -> float:
    """Return the angle, rad, between up and an axis whose z component is `rotation_z`."""
    return math.acos(min(max(rotation_z, -1.0), 1.0))


def lean_of(R_world_base: Array, angular_velocity_in_base: Array, time: float) -> float:
    """
    Return how far the base will lean after a time, at its present angular velocity.

    Parameters
    ----------
    R_world_base
        Attitude, shape (3, 3).
    angular_velocity_in_base
        Along the axes of the base, shape (3,), rad/s.
    time
        s.

    Returns
    -------
    float
        Length of the horizontal part of the base's z axis, moved along its tangent: rad for
        small angles.

    """
    x, y, _ = angular_velocity_in_base.tolist()
    (xx, xy, xz), (yx, yy, yz), _ = R_world_base.tolist()
    return math.hypot(xz + time * (xx * y - xy * x), yz + time * (yx * y - yy * x))


def _from_edge(margin: float | None) -> str:
    if margin is None:
        return 'at an unknown distance from the edge of the support'
    side = 'inside' if margin >= 0.0 else 'outside'
    return f'{1e3 * abs(margin):.1f} mm {side} the edge of the support'


def _degrees(value: float | None) -> str:
    return 'an unknown angle' if value is None else f'{math.degrees(value):.1f} deg'


#: Shortest time in the air of a step.
_SHORTEST_SWING_NS = nanoseconds(0.1)
#: Time on all feet after which the robot stands.
_STANDS_NS = nanoseconds(0.3)


class StepWatch:
    """
    Detects steps that catch the divergent component of motion (DCM).

    In learned and other fast gaits the DCM is outside the support most of the time: each foot
    lands where it catches the fall. Slow steps, whose DCM stays inside, do not count. A robot
    whose DCM is outside at the first instant counts as walking, too: it may be in the midst of a
    step. So does one whose foot left the ground before the DCM left the support: the first step of
    a gait has yet to land.
    """

    def __init__(self) -> None:
        self._in_contact: tuple[bool, ...] = ()
        #: Since when each foot is on the ground, or in the air.
        self._since_ns: list[int] = []
        self._step_ns, self._outside_ns, self._began_ns = NEVER_NS, NEVER_NS, NEVER_NS
        self._was_outside = False

    def update(self, ns: int, in_contact: tuple[bool, ...], dcm_margin: float | None) -> bool:
        """
        Update with an instant; return whether the robot walks.

        Parameters
        ----------
        ns
            Its time.
        in_contact
            Which feet are on the ground.
        dcm_margin
            Of the DCM inside the support, m; None without contact.

        """
        is_outside = dcm_margin is None or dcm_margin < 0.0
        if in_contact != self._in_contact:
            self._change(ns, in_contact, is_outside)
        self._was_outside = is_outside
        if is_outside:
            self._outside_ns = ns
            if not all(in_contact) and ns - self._began_ns < _WALKING_NS:
                return True
        if all(in_contact) and ns - max(self._since_ns) >= _STANDS_NS:
            return False
        return ns - self._step_ns < _WALKING_NS

    def _change(self, ns: int, in_contact: tuple[bool, ...], is_outside: bool) -> None:
        before, since_ns = self._in_contact, self._since_ns
        self._in_contact = in_contact
        if not before:
            self._since_ns = [ns] * len(in_contact)
            if is_outside:
                self._step_ns = ns
            return
        for touches, touched, since in zip(in_contact, before, since_ns):
            if touches and not touched and ns - since >= _SHORTEST_SWING_NS and (
                    self._outside_ns >= since):
                self._step_ns = ns
            # With the foot in the air the support is smaller: what counts is the DCM before.
            if touched and not touches and not self._was_outside:
                self._began_ns = ns
        self._since_ns = [since if touches == touched else ns for touches, touched, since in zip(
            in_contact, before, since_ns)]
