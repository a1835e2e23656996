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
"""Settings of the torso controller: gains, limits and tendon drives."""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.errors import check_positive, ConfigurationError
from biped_com_ros.core.torso.reference import MotionLimits
from biped_com_ros.core.torso.tension import TensionLimits


@dataclass(frozen=True, kw_only=True)
class TendonDrive:
    """
    Drive and tendon in series: ``F = pretension + stiffness (l - command) + damping dl/dt``.

    Attributes
    ----------
    stiffness
        N/m; infinite for a rigid drive and tendon.
    pretension
        Tension of a tendon whose length is the commanded one, N; 0 if unloaded lengths are
        commanded.
    lead
        Time by which the bend lags behind commands, s: damping over stiffness of the drive, plus
        the delays by the damping of the backbone and the sampling of commands.

    """

    stiffness: float = 7000.0
    pretension: float = 0.0
    lead: float = 0.0

    def __post_init__(self) -> None:
        if not (self.stiffness > 0.0 and 0.0 <= self.pretension < math.inf
                and 0.0 <= self.lead < 1.0):
            raise ConfigurationError(
                f'a tendon drive needs a positive stiffness, not {self.stiffness} N/m, a '
                f'pretension of 0 or more, not {self.pretension} N, and a lead between 0 and 1 s, '
                f'not {self.lead}')


@dataclass(frozen=True, kw_only=True)
class ControllerOptions:
    """
    Settings of :class:`.TendonController`.

    Attributes
    ----------
    motion, drive, tensions
        Limits of the motion, tendon drives, limits of the tensions.
    co_contraction
        Tension of every tendon of a straight torso without load, N.
    proportional, integral
        Gains of the feedback, of bend on bend and 1/s.
    anticipation
        Prediction time of the proportional feedback by the rate of the bend, s: adds damping and
        compensates delays.
    max_correction
        Largest correction by feedback, rad.
    observer_time
        Time constant of the disturbance observer, s; 0 turns it off.
    disagreement
        Error of the bend by IMUs, rad: above this and the errors of the bend by tendon lengths
        (root of the sum of squares) the IMU is ignored.
    yaw_offset_time
        Time constant of the estimate of the relative yaw of the IMUs, s; 0: no offset.
    slack_tension, slack_time, broken_time
        A tendon below this tension, N, for such a time, s, is slack, and broken.

    """

    motion: MotionLimits = MotionLimits()
    drive: TendonDrive = TendonDrive()
    tensions: TensionLimits = TensionLimits(lowest=3.0, highest=60.0)
    co_contraction: float = 12.0
    proportional: float = 0.4
    integral: float = 4.0
    anticipation: float = 0.06
    max_correction: float = math.radians(8.0)
    observer_time: float = 0.3
    disagreement: float = math.radians(10.0)
    yaw_offset_time: float = 5.0
    slack_tension: float = 0.3
    slack_time: float = 0.05
    broken_time: float = 1.0

    def __post_init__(self) -> None:
        if not self.tensions.lowest <= self.co_contraction <= self.tensions.highest:
            raise ConfigurationError(
                f'co-contraction {self.co_contraction} N is not within the tension limits '
                f'{self.tensions.lowest} and {self.tensions.highest} N')
        check_positive(
            "the torso's controller", self, 'proportional', 'integral', 'anticipation',
            'max_correction', 'observer_time', 'yaw_offset_time', 'slack_tension', 'slack_time',
            or_zero=True)
        if not self.disagreement > 0.0 or not self.broken_time > self.slack_time:
            raise ConfigurationError(
                f'disagreement {self.disagreement} rad must be positive and broken_time '
                f'{self.broken_time} s longer than slack_time {self.slack_time} s')
