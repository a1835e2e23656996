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

from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.settings import setting, Settings, settings
from biped_com_ros.core.torso.reference import MotionLimits
from biped_com_ros.core.torso.tension import TensionLimits


@dataclass(frozen=True, kw_only=True)
class TendonDrive(Settings):
    """Drive and tendon in series: ``F = pretension + stiffness (l - command) + damping dl/dt``."""

    stiffness: float = setting(7000.0, 'Stiffness of drive and tendon in series', 'N/m', 1.0, 1e9)
    pretension: float = setting(
        11.9, 'Tension of a tendon whose length is the commanded one; 0 where commands are '
        'unloaded lengths', 'N', 0.0, 1e4)
    lead: float = setting(
        0.025, 'Delay between a command and the bend, due to drives and backbone: damping over '
        'stiffness of the drive, damping of the backbone, and the sampling of commands', 's',
        0.0, 0.5)


@dataclass(frozen=True, kw_only=True)
class ControllerOptions(Settings):
    """Settings of :class:`.TendonController`."""

    motion: MotionLimits = settings(MotionLimits)
    drive: TendonDrive = settings(TendonDrive, 'tendon_{}')
    tensions: TensionLimits = settings(TensionLimits)
    co_contraction: float = setting(
        12.0, 'Tension of every tendon of a straight torso without load', 'N', 0.0, 1e4)
    proportional: float = setting(
        0.4, 'Proportional gain of the feedback, bend per bend', '', 0.0, 10.0,
        name='proportional_gain')
    integral: float = setting(
        4.0, 'Integral gain of the feedback of the bend', '1/s', 0.0, 100.0, name='integral_gain')
    #: Prediction time of the proportional feedback by the rate of the bend: adds damping and
    #: compensates delays, s.
    anticipation: float = 0.06
    #: Time constant of the disturbance observer; 0 turns it off, s.
    observer_time: float = 0.3
    #: Time constant of the estimate of the relative yaw of the two IMUs; 0: both have the same
    #: yaw, s.
    yaw_offset_time: float = 5.0

    @property
    def slack_tension(self) -> float:
        """Return the tension below which a tendon is loose, N: a share of that at rest."""
        return 0.025 * self.co_contraction

    def __post_init__(self) -> None:
        super().__post_init__()
        lowest, highest = self.tensions.lowest, self.tensions.highest
        check_setting(self, 'co_contraction', lowest <= self.co_contraction <= highest,
                      f'within the limits of the tensions, {lowest} to {highest} N', 'N')
