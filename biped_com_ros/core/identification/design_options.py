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
"""Options of planned poses, and how planning reports its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from biped_com_ros.core.errors import ConfigurationError

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """
    Number and limits of planned poses.

    Attributes
    ----------
    count
        Number of chosen poses, K.
    candidates
        Number of candidates from which they are chosen.
    hoisted
        Number of chosen poses with the robot hoisted, its feet in the air. These come first, and
        measure the mass below the sensors of standing feet.
    double_support
        Share of candidates on all feet; the others stand on one foot each in turn. 1 for robots
        that must not lift a foot.
    margin
        Smallest distance of the centre of mass from the edge of the support polygon, m.
    torque_share
        Largest share of a motor's torque that is used.
    limit_margin
        Distance kept from joint limits, rad.
    spread
        Largest distance of joints outside of the legs from posture ``stand``, rad.
    lean
        Largest lean or turn of the base, rad.
    crouch
        Largest lowering of the base, as a share of its height.
    clearance
        Distance between links that counts as a collision, m.
    step
        Largest change of a joint between two checked points of a path, rad.
    torso_bend
        Largest bend of a tendon torso, rad; its virtual joints stay on shapes that tendons reach.
    fixed_joints
        Names of joints that stay where they are in posture ``stand``.
    seed
        Of the random numbers.

    """

    count: int = 40
    candidates: int = 300
    hoisted: int = 0
    double_support: float = 0.34
    margin: float = 0.015
    torque_share: float = 0.8
    limit_margin: float = 0.03
    spread: float = 1.2
    lean: float = 0.2
    crouch: float = 0.08
    clearance: float = 0.005
    step: float = 0.1
    torso_bend: float = 0.2
    fixed_joints: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.candidates:
            raise ConfigurationError(
                f'{self.count} poses cannot be chosen from {self.candidates} candidates')
        if not 0 <= self.hoisted < self.count:
            raise ConfigurationError(
                f'{self.hoisted} of {self.count} poses cannot be hoisted ones; at least one '
                'stands')
        if not 0.0 <= self.double_support <= 1.0:
            raise ConfigurationError(
                f'double_support must be between 0 and 1, not {self.double_support}')
        if not self.margin > 0.0 or not self.step > 0.0:
            raise ConfigurationError('margin and step must be above zero')
