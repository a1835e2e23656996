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

from pathlib import Path

from biped_com_ros.core.model.robot import RobotModel
import pytest
import yaml

RECIPES = sorted((Path(__file__).resolve().parents[3] / 'config' / 'ros2_control').glob('*.yaml'))
INTERFACES = {'position', 'velocity', 'acceleration', 'effort'}


def is_text_list(values, allowed=None):
    return (isinstance(values, list) and len(values) == len(set(values)) > 0
            and all(isinstance(value, str) for value in values)
            and (allowed is None or set(values) <= allowed))


def is_a(kind):
    return lambda value: isinstance(value, kind) and value != ''


# ROS refuses an integer where a double is declared.
GAINS = dict.fromkeys((
    'p', 'i', 'd', 'ff_velocity_scale', 'u_clamp_max', 'u_clamp_min', 'i_clamp_max',
    'i_clamp_min', 'tracking_time_constant', 'error_deadband'), is_a(float))
GAINS['antiwindup_strategy'] = {'back_calculation', 'conditional_integration', 'none'}.__contains__


def are_gains(values):
    return all(isinstance(joint, str) and all(GAINS[name](value) for name, value in gains.items())
               for joint, gains in values.items())


FORWARDED = ({'joints': is_text_list, 'interface_name': {'effort'}.__contains__},
             {'joints', 'interface_name'})
SENSOR = {'sensor_name': is_a(str), 'frame_id': is_a(str)}, {'sensor_name', 'frame_id'}
#: What each parameter has to be, and which are required, as the controllers' parameter files and
#: documentation say.
DOCUMENTED = {
    'joint_trajectory_controller/JointTrajectoryController': ({
        'joints': is_text_list, 'command_joints': is_text_list,
        'command_interfaces': lambda values: is_text_list(values, INTERFACES),
        'state_interfaces': lambda values: 'position' in values and is_text_list(
            values, INTERFACES - {'effort'}),
        **dict.fromkeys((
            'allow_partial_joints_goal', 'interpolate_from_desired_state',
            'set_last_command_interface_value_as_state_on_activation',
            'allow_nonzero_velocity_at_trajectory_end'), is_a(bool)),
        'cmd_timeout': is_a(float), 'gains': are_gains},
        {'joints', 'command_interfaces', 'state_interfaces'}),
    'effort_controllers/JointGroupEffortController': FORWARDED,
    'forward_command_controller/ForwardCommandController': FORWARDED,
    'joint_state_broadcaster/JointStateBroadcaster': (
        {'joints': is_text_list, 'interfaces': is_text_list}, set()),
    'force_torque_sensor_broadcaster/ForceTorqueSensorBroadcaster': SENSOR,
    'imu_sensor_broadcaster/IMUSensorBroadcaster': SENSOR}
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
    recipe = read(path)
    assert isinstance(recipe['controller_manager']['update_rate'], int)
    for name, (kind, values) in controllers(recipe).items():
        is_right, required = DOCUMENTED[kind]
        wrong = {key: value for key, value in values.items() if not is_right[key](value)}
        assert not wrong and required <= values.keys(), name
        if 'command_interfaces' in values:
            needed = COMBINATIONS[tuple(values['command_interfaces'])]
            assert needed <= set(values['state_interfaces'])
        # Without a gain, a loop that is closed in effort does nothing for the joint; damping is
        # the controller's, or that of the joint, whose resistance is fed forward.
        closed = values['joints'] if values.get('command_interfaces') == ['effort'] else []
        gains = values.get('gains', {})
        assert gains.keys() <= set(values.get('joints', ()))
        assert all(gains[joint]['p'] > 0.0 for joint in closed)
        assert all(gains[joint]['d'] > 0.0 or gains[joint]['ff_velocity_scale'] > 0.0
                   for joint in closed)


def test_broadcasters_publish_what_the_robots_yaml_expects():
    """Under a name that no sensor of the hardware has, which crashes controller_manager."""
    recipe, config = read(RECIPES[-1]), RobotModel.load('biped').config
    assert RECIPES[-1].stem == 'biped_hardware'
    found = {(f'{name}/wrench', values['frame_id'])
             for name, (kind, values) in controllers(recipe).items() if 'ForceTorque' in kind}
    assert found == {(sensor.topic, sensor.frame) for sensor in config.wrench_sensors.values()}
    for name, (_, values) in controllers(recipe).items():
        assert values.get('sensor_name') != name
    assert recipe['imu_broadcaster']['frame_id'] == config.imu.frame


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
