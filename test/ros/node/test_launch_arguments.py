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
"""A launch argument wins over the user's parameter file, and that over the launch file."""

from __future__ import annotations

import importlib
import re

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launch_runner.actions import load, Planner
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.parameters import ParameterFiles
from biped_com_ros.ros.node.parameters import declare_parameters, parameter_fields
import pytest
from rclpy.node import Node
import yaml

LAUNCH = package_share() / 'launch'
FROM_VAR = re.compile(r'<param name="([\w.]+)"\s+value="\$\(var (\w+)\)"')
#: (launch file, executable, argument with the parameter file, class of the parameters)
NODES = (
    ('bringup', 'suite', 'wrench_aggregator_params', 'wrench_aggregator'),
    ('bringup', 'suite', 'com_estimator_params', 'com_estimator'),
    ('bringup', 'suite', 'zmp_monitor_params', 'zmp_monitor'),
    ('bringup', 'wrench_aggregator', 'wrench_aggregator_params', 'wrench_aggregator'),
    ('bringup', 'com_estimator', 'com_estimator_params', 'com_estimator'),
    ('bringup', 'zmp_monitor', 'zmp_monitor_params', 'zmp_monitor'),
    ('bringup', 'gravity_compensation', 'gravity_compensation_params', 'gravity_compensation'),
    ('bringup', 'torso_controller', 'torso_controller_params', 'torso_controller'),
    ('calibration', 'com_calibrator', 'com_calibrator_params', 'com_calibrator'),
    ('gait', 'gait_player', 'params', 'gait_player'),
    ('gravity_compensation', 'gravity_compensation', 'params', 'gravity_compensation'),
    ('payload', 'payload_estimator', 'params', 'payload_estimator'),
    ('simulation', 'simulator', 'simulator_params', 'simulator'),
    ('torso', 'torso_controller', 'torso_controller_params', 'torso_controller'),
    ('viewer', 'viewer', 'viewer_params', 'viewer'))


def launched_parameters(file):
    """Return (parameter, argument) of each parameter of the nodes with a parameter file."""
    nodes = re.findall(r'<node .*?</node>', (LAUNCH / f'{file}.launch.xml').read_text(), re.S)
    return [pair for node in nodes if '<param from' in node for pair in FROM_VAR.findall(node)]


def parameters_class(node):
    module = importlib.import_module(f'biped_com_ros.nodes.{node}.node')
    return getattr(module, f"{node.title().replace('_', '')}Parameters")


def two_values(name, kind, default, info):
    """Return two valid values that are not the default, of any parameter."""
    if kind is bool:
        return not default, default
    if name == 'robot':
        return 'talos', 'g1'
    if info.options:
        return tuple(option for option in info.options if option != default)[:2] * 2
    if kind is str:
        return 'in_file', 'as_argument'
    if kind is int:
        return default + 5, default + 9
    return (0.125, 0.25) if kind is float else (['l_hand 1 0 0 0'], ['r_hand 2 0 0 0'])


def cases():
    for file, executable, files_argument, node in NODES:
        fields = parameter_fields(parameters_class(node))
        for name, argument in sorted(set(launched_parameters(file))):
            field = name.removeprefix('launch.')
            if field in fields:
                yield pytest.param(file, executable, files_argument, node, field, argument,
                                   id=f'{executable}-{node}-{field}')


def nodes_of(file):
    """Return (executable, its elements' text) of a launch file."""
    return [(re.search(r'exec="(\w+)"', node)[1], node) for node in re.findall(
        r'<node .*?</node>', (LAUNCH / f'{file}.launch.xml').read_text(), re.S)]


@pytest.fixture(scope='module', autouse=True)
def participant(ros):
    """Keep the DDS participant: to end and begin one for each of many nodes may take for ever."""
    node = Node('keeper', start_parameter_services=False)
    yield
    node.destroy_node()


def started(tmp_path, file, executable, node, **arguments):
    """Return the parameters of a node that a launch file starts with these arguments."""
    if (file, executable) != ('bringup', 'suite') and executable == node:
        arguments.setdefault('composed', 'false')  # one process per node, where there is a choice
    declared = (LAUNCH / f'{file}.launch.xml').read_text()
    arguments = {name: value for name, value in arguments.items()
                 if name != 'composed' or 'name="composed"' in declared}
    planner = Planner(Context(arguments), ParameterFiles(tmp_path))
    planner.run(load(LAUNCH / f'{file}.launch.xml'))
    command = next(plan.command for plan in planner.processes
                   if plan.name.startswith(f'{executable}-'))
    ros_node = Node(node, cli_args=list(command[command.index('--ros-args'):]),
                    use_global_arguments=False, start_parameter_services=False)
    try:
        parameters = declare_parameters(ros_node, parameters_class(node))
        return parameters, ros_node.get_parameter('use_sim_time').value
    finally:
        ros_node.destroy_node()


@pytest.mark.parametrize('spelling', ['/**', '/**/'])
@pytest.mark.parametrize(
    ('file', 'executable', 'files_argument', 'node', 'name', 'argument'), list(cases()))
def test_the_file_wins_over_the_launch_file_and_an_argument_over_both(
        tmp_path, file, executable, files_argument, node, name, argument, spelling):
    kind, default, info = parameter_fields(parameters_class(node))[name]
    in_file, as_argument = two_values(name, kind, default, info)[:2]
    params = tmp_path / 'user.yaml'
    section = spelling if spelling == '/**' else f'/**/{node}'
    params.write_text(yaml.safe_dump({section: {'ros__parameters': {name: in_file}}}))
    given = {files_argument: str(params)}
    parameters, _ = started(tmp_path, file, executable, node, **given)
    assert getattr(parameters, name) == in_file
    text = as_argument[0] if isinstance(as_argument, list) else str(as_argument)
    given[argument] = text.lower() if kind is bool else text
    parameters, _ = started(tmp_path, file, executable, node, **given)
    assert getattr(parameters, name) == as_argument


@pytest.mark.parametrize(('file', 'executable', 'files_argument', 'node'), [
    case for case in NODES if ('launch.use_sim_time', 'use_sim_time') in
    launched_parameters(case[0])])
def test_simulated_time_likewise(tmp_path, file, executable, files_argument, node):
    params = tmp_path / 'user.yaml'
    params.write_text(yaml.safe_dump(
        {f'/**/{node}': {'ros__parameters': {'use_sim_time': True}}}))
    given = {files_argument: str(params)}
    assert started(tmp_path, file, executable, node, **given)[1] is True
    given['use_sim_time'] = 'false'
    assert started(tmp_path, file, executable, node, **given)[1] is False


def test_every_node_with_a_parameter_file_is_tested_here():
    tested = {case[:3] for case in NODES}
    for path in LAUNCH.glob('*.xml'):
        file = path.name.partition('.')[0]
        for executable, text in nodes_of(file):
            for argument in re.findall(r'<param from="\$\(var (\w+)\)"', text):
                assert (file, executable, argument) in tested


def test_no_launch_file_sets_a_parameter_that_a_file_may_set():
    for path in LAUNCH.glob('*.xml'):
        plain = [name for name, _ in launched_parameters(path.name.partition('.')[0])
                 if not name.startswith('launch.')]
        assert not plain, path.name


def test_a_missing_parameter_file_is_an_error():
    # ros2 launch logs it and starts the node without the file.
    node = Node('any', cli_args=['--ros-args', '-p', 'launch.params_files:=/none/a.yaml'],
                use_global_arguments=False, start_parameter_services=False)
    with pytest.raises(ConfigurationError, match="'/none/a.yaml' does not exist"):
        declare_parameters(node, parameters_class('gait_player'))
    node.destroy_node()
