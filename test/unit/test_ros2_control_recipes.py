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
"""The recipes say only what ros2_controllers documents, in the order that the node checks."""

from __future__ import annotations

from pathlib import Path

from biped_com_ros.core.robot import RobotModel
import pytest
import yaml

RECIPES = sorted((Path(__file__).resolve().parents[2] / 'config' / 'ros2_control').glob('*.yaml'))
#: From joint_trajectory_controller_parameters.yaml and the user documentation of the others.
DOCUMENTED = {
    'joint_trajectory_controller/JointTrajectoryController': {
        'joints', 'command_joints', 'command_interfaces', 'state_interfaces',
        'allow_partial_joints_goal', 'interpolate_from_desired_state', 'cmd_timeout',
        'set_last_command_interface_value_as_state_on_activation', 'constraints', 'gains'},
    'effort_controllers/JointGroupEffortController': {'joints'},
    'joint_state_broadcaster/JointStateBroadcaster': {'joints', 'interfaces'}}
GAINS = {'p', 'i', 'd', 'ff_velocity_scale', 'u_clamp_max', 'u_clamp_min', 'i_clamp_max',
         'i_clamp_min', 'antiwindup_strategy', 'tracking_time_constant', 'error_deadband'}
#: Which state interfaces must be there for which command interfaces.
COMBINATIONS = {('position',): set(), ('effort',): {'position', 'velocity'},
                ('position', 'effort'): {'position', 'velocity'}}


def read(path):
    """Return parameters by node."""
    return {name.removeprefix('/**/'): section['ros__parameters']
            for name, section in yaml.safe_load(path.read_text()).items()}


def controllers(recipe):
    """Return type and parameters of each controller."""
    types = {name: value['type'] for name, value in recipe['controller_manager'].items()
             if isinstance(value, dict)}
    return {name: (kind, recipe.get(name, {})) for name, kind in types.items()}


@pytest.mark.parametrize('path', RECIPES, ids=lambda path: path.stem)
def test_controllers_get_documented_parameters(path):
    for name, (kind, values) in controllers(read(path)).items():
        assert values.keys() <= DOCUMENTED[kind], name
        for joint, gains in values.get('gains', {}).items():
            assert joint in values['joints'] and gains.keys() <= GAINS
        if 'command_interfaces' in values:
            needed = COMBINATIONS[tuple(values['command_interfaces'])]
            assert needed <= set(values['state_interfaces'])


@pytest.mark.parametrize('path', RECIPES, ids=lambda path: path.stem)
def test_joints_are_the_robots_and_their_order_is_the_nodes(path):
    recipe, model = read(path), RobotModel.load('biped')
    for _, values in controllers(recipe).values():
        joints = values.get('joints', [])
        assert len(set(joints)) == len(joints) and set(joints) <= set(model.joint_names)
    node = recipe.get('gravity_compensation')
    if node is not None:
        assert node['command_joints'] == recipe[node['controller']]['joints']
        assert ('trajectory_rate' in node) == (node['controller'] != 'effort_controller')
