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
"""Which inverse kinematics a robot's legs get: Wang's closed form where it fits, else Newton's."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.legs.kinematics import RobotLeg
from biped_com_ros.core.legs.numeric_leg import NumericLeg
from biped_com_ros.core.model.robot import RobotModel


def legs_of(model: RobotModel) -> dict[str, RobotLeg | NumericLeg]:
    """
    Return the legs of a robot by the names of their feet.

    Raises
    ------
    ConfigurationError
        If a leg has not six joints that are measured.

    """
    return {foot: _leg_of(model, foot) for foot in model.soles.names}


def _leg_of(model: RobotModel, foot: str) -> RobotLeg | NumericLeg:
    try:
        return RobotLeg(model, foot)
    except ConfigurationError:
        return NumericLeg(model, foot)
