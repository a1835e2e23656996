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
"""How long arrows of forces are drawn."""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz.palette import ARROW


def arrow_scale(model: RobotModel, gravity: float = GRAVITY) -> float:
    """
    Return the length of an arrow per force, m/N: the weight is `ARROW` of the robot's height.

    The height is that of the highest centre of mass of a link above the lowest sole, in the
    posture ``stand``: the same whatever the robot looks like.
    """
    state = model.state(model.usual_posture())
    soles = state.placements_in_base(model.soles)[:, 3, 2]
    links = state.in_world(Pose.identity()).link_coms_in_world[:, 2]
    height = float(links.max() - soles.min())
    return ARROW * max(height, 0.1) / (model.mass * gravity)
