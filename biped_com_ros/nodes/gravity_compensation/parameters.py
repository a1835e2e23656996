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
"""Parameters of `gravity_compensation`, and the compensator that they describe."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.gravity.compensation import CompensationSettings, GravityCompensator
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting, settings
from biped_com_ros.ros.node.common_parameters import ManagedNodeParameters, PayloadParameters
from biped_com_ros.ros.node.parameters import read_only
import numpy as np


@dataclass(frozen=True)
class GravityCompensationParameters(ManagedNodeParameters, PayloadParameters):
    """Parameters of `gravity_compensation`."""

    compensation: CompensationSettings = settings(CompensationSettings)
    groups: list[str] = setting(
        [], "Groups of joints of the robot's YAML that take part; empty: all actuated joints")
    gain_joints: list[str] = setting([], 'Joints with a gain of their own')
    gains: list[float] = setting(
        [], 'Share of the computed effort that each of gain_joints gets', '', 0.0, 1.5)
    command_joints: list[str] = read_only(
        [], "Order of ~/commands: the parameter 'joints' of the effort controller; with "
        'trajectory_rate, the joints of the trajectory controller in any order; empty: all '
        'actuated joints in the order of the URDF')
    controller: str = read_only(
        '', 'Effort controller that has to run before anything is sent; empty: none. The '
        "parameter 'joints' of every controller that gets ~/commands is compared with "
        'command_joints')
    trajectory_rate: float = read_only(
        0.0, 'Rate of ~/joint_trajectory, which has positions and efforts and replaces '
        '~/commands; 0: off', 'Hz', 0.0, 1000.0)
    path_tolerance: float = setting(
        0.0, 'Largest distance of a joint from the trajectory of a goal, where the goal gives '
        'none; 0: any', 'rad or m', 0.0, 10.0)
    goal_tolerance: float = setting(
        0.1, 'Largest distance of a joint from the end of a goal, where the goal gives none; 0: '
        'any', 'rad or m', 0.0, 10.0)
    goal_time: float = setting(
        1.0, 'Time after the end of a trajectory in which its goal has to be reached, where the '
        'goal gives none; 0: any', 's', 0.0, 60.0)
    wrench_topics: list[str] = read_only(
        [], 'Topics (WrenchStamped in the contact frame) of the contacts; empty: '
        'wrench_aggregator/<contact>/wrench')
    input_timeout: float = setting(
        0.1, 'Age above which an input is too old to be used', 's', 0.001, 10.0)
    marker_rate: float = read_only(15.0, 'Rate of the markers; 0: off', 'Hz', 0.0, 1000.0)


def make_compensator(model: RobotModel, params: GravityCompensationParameters
                     ) -> GravityCompensator:
    """
    Build the compensator that the parameters describe.

    Raises
    ------
    BipedComError
        If they make no sense for this robot.

    """
    compensator = GravityCompensator(model, params.compensation)
    compensator.enable(params.groups)
    if len(params.gains) != len(params.gain_joints):
        raise ConfigurationError(
            f"parameter 'gains': {params.gains} must be {len(params.gain_joints)} values, one per "
            f'joint of gain_joints ({", ".join(params.gain_joints) or "none"})')
    if params.gain_joints:
        compensator.gains = np.ones(len(model.joint_names))
        compensator.gains[model.joint_index(params.gain_joints)] = params.gains
    return compensator
