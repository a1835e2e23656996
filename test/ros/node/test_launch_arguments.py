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
from pathlib import Path
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.launch_runner.actions import declared_arguments, load, Planner
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.parameters import ParameterFiles
from biped_com_ros.ros.node.parameters import declare_parameters, parameter_fields
import pytest
from rclpy.node import Node
from support.planned import given_parameters, install_gazebo
import yaml

LAUNCH = package_share() / 'launch'
FROM_VAR = re.compile(r'<param name="([\w.]+)"\s+value="\$\(var (\w+)\)"')
FILE_ARGUMENT = re.compile(r'(\w+_)?params|controllers')
#: What a launch file decides for all its nodes, or cannot work without, in spite of their files:
#: (launch file, node, parameter). A name 'robot' given once is that of every node.
FIXED = {
    *((file, node, 'robot') for file in (
        'demo', 'gait_simulation', 'gravity_simulation', 'torso_demo', 'two_pose', 'gazebo',
        'gazebo_gravity') for node in (
            'simulator', 'wrench_aggregator', 'com_estimator', 'zmp_monitor', 'torso_controller',
            'gravity_compensation', 'gait_player', 'viewer')),
    *((file, 'torso_controller', 'optional') for file in ('bringup', 'simulation', 'demo')),
    *((file, 'viewer', 'optional') for file in ('demo', 'torso_demo')),
    ('torso_demo', 'simulator', 'virtual_joints'),
    # Activated by the demo itself, when their chapter begins.
    ('demo', 'torso_controller', 'autostart'), ('demo', 'gravity_compensation', 'autostart'),
    *((file, node, 'urdf') for file in ('gazebo', 'gazebo_gravity') for node in (
        'wrench_aggregator', 'com_estimator', 'zmp_monitor', 'gravity_compensation')),
    ('gazebo_gravity', 'gravity_compensation', 'autostart')}
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
    ('lowstate', 'lowstate_bridge', 'params', 'lowstate_bridge'),
    ('payload', 'payload_estimator', 'params', 'payload_estimator'),
    ('simulation', 'simulator', 'simulator_params', 'simulator'),
    ('torso', 'torso_controller', 'torso_controller_params', 'torso_controller'),
    ('viewer', 'viewer', 'viewer_params', 'viewer'))


def launched_parameters(file):
    """Return (parameter, argument) of each parameter that wins over a node's parameter file."""
    return [pair for _, node in nodes_of(file)
            for pair in FROM_VAR.findall(node.partition('<param from')[2])]


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
    if kind is float:
        return (default / 2.0, default / 4.0) if default else (0.125, 0.25)
    return ['l_hand 1 0 0 0'], ['r_hand 2 0 0 0']


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


def commands(tmp_path, file, **arguments):
    """Return the command of each executable that a launch file starts."""
    planner = Planner(Context(dict(arguments)), ParameterFiles(tmp_path))
    planner.run(load(LAUNCH / f'{file}.launch.xml'))
    return {plan.name.rpartition('-')[0]: plan.command for plan in planner.processes}


def declared(node, command):
    """Return the parameters of a node of this process, and whether it uses simulated time."""
    ros_node = Node(node, cli_args=list(command[command.index('--ros-args'):]),
                    use_global_arguments=False, start_parameter_services=False)
    try:
        parameters = declare_parameters(ros_node, parameters_class(node))
        return parameters, ros_node.get_parameter('use_sim_time').value
    finally:
        ros_node.destroy_node()


def started(tmp_path, file, executable, node, **arguments):
    """Return the parameters of a node that a launch file starts with these arguments."""
    if (file, executable) != ('bringup', 'suite') and executable == node:
        arguments.setdefault('composed', 'false')  # one process per node, where there is a choice
    text = (LAUNCH / f'{file}.launch.xml').read_text()
    arguments = {name: value for name, value in arguments.items()
                 if name != 'composed' or 'name="composed"' in text}
    return declared(node, commands(tmp_path, file, **arguments)[executable])


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
                if argument != 'errors':  # config/hidden, or the simulator's file once more
                    assert (file, executable, argument) in tested


def test_no_launch_file_sets_a_parameter_that_a_file_may_set():
    for path in LAUNCH.glob('*.xml'):
        plain = [name for name, _ in launched_parameters(path.name.partition('.')[0])
                 if not name.startswith('launch.')]
        assert not plain, path.name


# ------------------------------------------------------------- launch files that include others

def another_value(name, kind, default, info):
    """Return a valid value that is not the default, of any parameter."""
    if kind not in (int, float) or info.options:
        return two_values(name, kind, default, info)[0]
    candidates = [default + 1, default - 1] if kind is int else [
        default + 0.0625, default + 0.001, default - 0.0625]
    return next(value for value in candidates if value != default and (
        info.minimum is None or value >= info.minimum) and (
        info.maximum is None or value <= info.maximum))


def other_values(node):
    """Return a valid value that is not the default for every parameter of a node."""
    return {name: another_value(name, kind, default, info) if not isinstance(default, list)
            else default for name, (kind, default, info) in
            parameter_fields(parameters_class(node)).items()}


@pytest.fixture
def users_file(tmp_path):
    """Write a file with another value for every parameter of every node."""
    file = tmp_path / 'user.yaml'
    file.write_text(yaml.safe_dump({
        f'/**/{node}': {'ros__parameters': {
            name: value for name, value in other_values(node).items() if value != []}}
        for node in {case[3] for case in NODES}}))
    return file


NODES_OF_SUITE = ('wrench_aggregator', 'com_estimator', 'zmp_monitor')
ALL = sorted(path.name.partition('.')[0] for path in LAUNCH.glob('*.xml'))
#: Arguments that make a launch file start all that it can.
EVERYTHING = {'calibration': {'simulation': 'true'}, 'torso_demo': {'viewer': 'true'}}


@pytest.mark.parametrize('file', [file for file in ALL if file != 'view'])
def test_the_users_file_wins_over_every_default(tmp_path, monkeypatch, users_file, file):
    directory = params_directory(tmp_path, monkeypatch, file)
    names = [argument.name for argument in declared_arguments(
        load(LAUNCH / f'{file}.launch.xml'), Context({}))]
    given = {name: str(users_file) for name in names if FILE_ARGUMENT.fullmatch(name)}
    reached = 0
    for executable, command in commands(
            directory, file, **given, **EVERYTHING.get(file, {})).items():
        for node in NODES_OF_SUITE if executable == 'suite' else (executable,):
            if not any(users_file.samefile(word) for word in command if word.endswith('.yaml')):
                continue  # demo and two_pose have their own files for com_calibrator
            reached += 1
            parameters, _ = declared(node, command)
            different = {(file, node, name) for name, value in other_values(node).items()
                         if getattr(parameters, name) != value}
            assert different <= FIXED
    assert reached >= len({node for name, _, _, node in NODES if name == file})


ZERO, HIDDEN = {'hidden_com_sigma': 0.0, 'hidden_mass_sigma': 0.0}, {
    'hidden_com_sigma': 0.005, 'hidden_mass_sigma': 0.08}
SIMULATIONS = ('simulation', 'demo', 'torso_demo', 'gait_simulation', 'gravity_simulation',
               'two_pose', 'calibration')


#: Arguments of launch files that include others: (launch file, executable, given, expected).
GIVEN = [
    *((file, 'simulator', {'hidden': 'none'}, {**ZERO, 'force_bias': 0.0})
      for file in SIMULATIONS),
    *((file, 'simulator', {'hidden': 'masses'}, HIDDEN) for file in SIMULATIONS),
    *((file, 'simulator', {'hidden': 'real'}, {**HIDDEN, 'force_bias': 0.3})
      for file in SIMULATIONS),
    *((file, 'simulator', {'seed': '7'}, {'seed': 7}) for file in SIMULATIONS),
    ('demo', 'simulator', {'rate': '250'}, {'rate': 250.0}),
    ('torso_demo', 'simulator', {'load': 'torso 1 0 0 0'}, {'hidden_errors': ['torso 1 0 0 0']}),
    ('demo', 'viewer', {'port': '9000'}, {'port': 9000}),
    ('torso_demo', 'viewer', {'port': '9000'}, {'port': 9000}),
    ('demo', 'viewer', {'robot': 'g1'}, {'robot': 'g1'}),
    *((file, executable, {'robot': 'g1'}, {'robot': 'g1'})
      for file in ('demo', 'torso_demo', 'gait_simulation', 'gravity_simulation', 'two_pose')
      for executable in ('simulator', 'suite')),
    *(('demo', executable, {'urdf': 'other.urdf'}, {'urdf': 'other.urdf'})
      for executable in ('simulator', 'suite', 'gravity_compensation', 'gait_player', 'demo',
                         'viewer')),
    *(('demo', executable, {'frame_prefix': 'a/'}, {'frame_prefix': 'a/'})
      for executable in ('simulator', 'suite', 'torso_controller', 'demo', 'viewer')),
    *(('demo', 'demo', {name: text}, {name: value}) for name, text, value in (
        ('once', 'true', True), ('duration', '3', 3.0), ('picture', 'a.svg', 'a.svg'),
        ('chapters', 'measure', 'measure'))),
    ('two_pose', 'com_calibrator', {'postures': 'c;b'}, {'postures': ['c', 'b']}),
    ('two_pose', 'com_calibrator', {'directory': '/results'}, {'directory': '/results'}),
    *((file, executable, {'robot': 'talos'}, {'robot': 'talos'})
      for file in ('gazebo', 'gazebo_gravity')
      for executable in ('suite', 'gravity_compensation', 'com_estimator')),
    *((file, 'gravity_compensation', given, expected)
      for file in ('gravity_simulation', 'gait_simulation') for given, expected in (
          ({'trajectory_rate': '50'}, {'trajectory_rate': 50.0}),
          ({'support': 'fixed'}, {'support': 'fixed'}),
          ({'distribution': 'measured'}, {'distribution': 'measured'}),
          ({'active': 'true'}, {'autostart': True}))),
    ('bringup', 'gravity_compensation', {'gravity': 'active'}, {'autostart': True}),
    *((file, 'gravity_compensation', {'gravity': 'active'}, {'autostart': True})
      for file in ('simulation', 'gazebo'))]


def params_directory(tmp_path, monkeypatch, file):
    """Return a directory for the parameter files of a plan; make Gazebo's packages if needed."""
    if file.startswith('gazebo'):
        return install_gazebo(tmp_path, monkeypatch)
    (directory := tmp_path / 'params').mkdir()
    return directory


@pytest.mark.parametrize(('file', 'executable', 'given', 'expected'), GIVEN)
def test_a_given_argument_wins_over_the_users_file(
        tmp_path, monkeypatch, users_file, file, executable, given, expected):
    directory = params_directory(tmp_path, monkeypatch, file)
    names = [argument.name for argument in declared_arguments(
        load(LAUNCH / f'{file}.launch.xml'), Context({}))]
    files = {name: str(users_file) for name in names if FILE_ARGUMENT.fullmatch(name)}
    command = commands(directory, file, **files, **EVERYTHING.get(file, {}), **given)[executable]
    for node in NODES_OF_SUITE if executable == 'suite' else (executable,):
        parameters, _ = declared(node, command)
        assert {name: getattr(parameters, name) for name in expected} == expected


#: Arguments that are no parameters of nodes: what is started, and how.
SWITCHES = {'autostart_default', 'composed', 'gui', 'joy', 'keys', 'log_level', 'namespace',
            'respawn', 'simulation', 'torso', 'tour', 'view', 'viewer'}
#: Topics that are remapped.
REMAPS = {'commands', 'commands_topic', 'joint_states', 'low_state_topic', 'tendon_commands',
          'torso_joint_states', 'trajectory_topic'}
#: What changes in the files that are made for Gazebo: (argument, given, file).
IN_GAZEBO = (
    ('hidden', {'hidden': 'masses'}, 'robot.urdf'),
    ('seed', {'hidden': 'masses', 'seed': '3'}, 'robot.urdf'),
    ('load', {'load': 'l_hand 0.5 0 0 0'}, 'robot.urdf'),
    ('urdf', {'urdf': '{urdf}'}, 'description.yaml'),
    ('height', {'height': '2.5'}, 'create.yaml'),
    ('bridge', {'bridge': '{bridge}'}, 'bridge.yaml'),
    ('command', {'command': 'effort'}, 'controllers.yaml'))
#: Of Gazebo itself.
OF_GAZEBO = {'world'}


def test_every_argument_of_every_launch_file_is_tested():
    """By the generated cases, by a row of the tables here, or named as no parameter."""
    tested = {(file, argument) for file, _, _, node in NODES
              for name, argument in launched_parameters(file)
              if name == 'launch.use_sim_time'
              or name.removeprefix('launch.') in parameter_fields(parameters_class(node))}
    tested |= {(file, argument) for file, _, given, _ in GIVEN for argument in given}
    tested |= {(file, argument) for file in ('gazebo', 'gazebo_gravity')
               for argument, *_ in IN_GAZEBO}
    unexplained = SWITCHES | REMAPS | OF_GAZEBO
    # Its own: those of included files are tested there.
    declared_ones = {(file, argument.get('name')) for file in ALL if file != 'view'
                     for argument in ElementTree.parse(
                         LAUNCH / f'{file}.launch.xml').getroot().findall('arg')}
    assert {pair for pair in declared_ones - tested
            if not FILE_ARGUMENT.fullmatch(pair[1]) and pair[1] not in unexplained} == set()
    assert unexplained <= {argument for _, argument in declared_ones}


def files_for_gazebo(directory, file, **given):
    """Return the text of each file that a launch file makes, without their directory."""
    create = given_parameters(list(commands(directory, file, **given)['create']))
    made = Path(create['file']).parent
    return {path.name: path.read_text().replace(str(made), '') for path in made.iterdir()}


@pytest.mark.parametrize('file', ['gazebo', 'gazebo_gravity'])
def test_arguments_reach_the_files_for_gazebo(tmp_path, monkeypatch, file):
    directory = install_gazebo(tmp_path, monkeypatch)
    values = {'urdf': tmp_path / 'other.urdf', 'bridge': tmp_path / 'bridge.yaml'}
    urdf = load_urdf(load_robot_config('biped'))
    values['urdf'].write_text(urdf.replace('<mass value="', '<mass value="1', 1))
    values['bridge'].write_text('- {ros_topic_name: mine}\n')
    names = {argument.name for argument in declared_arguments(
        load(LAUNCH / f'{file}.launch.xml'), Context({}))}
    for argument, given, changed in IN_GAZEBO:
        if argument in names:
            given = {name: text.format(**values) for name, text in given.items()}
            without = {name: text for name, text in given.items() if name != argument}
            assert (files_for_gazebo(directory, file, **given)[changed]
                    != files_for_gazebo(directory, file, **without)[changed]), argument


@pytest.mark.parametrize(('file', 'expected'), [
    ('simulation', {**ZERO, 'seed': 0}), ('demo', {**HIDDEN, 'seed': 1}),
    ('calibration', {**HIDDEN, 'seed': 1}), ('torso_demo', {**ZERO, 'seed': 0}),
    ('gait_simulation', {**ZERO, 'seed': 1}), ('gravity_simulation', {**ZERO, 'seed': 1}),
    ('two_pose', {**ZERO, 'seed': 1})])
def test_what_is_hidden_without_an_argument_and_without_a_file(tmp_path, file, expected):
    command = commands(tmp_path, file, **EVERYTHING.get(file, {}))['simulator']
    parameters, _ = declared('simulator', command)
    assert {name: getattr(parameters, name) for name in expected} == expected


def test_none_undoes_all_that_real_gets_wrong():
    none, real = (yaml.safe_load((package_share() / f'config/hidden/{name}.yaml').read_text())[
        '/**/simulator']['ros__parameters'] for name in ('none', 'real'))
    assert none.keys() == real.keys() - {'errors_at_mass'}  # a scale of the others
    fields = parameter_fields(parameters_class('simulator'))
    assert none == {name: fields[name][1] for name in none}


def starts_active(directory, file, argument, gravity, autostart):
    """Whether gravity compensation activates itself; autostart: of the user's file."""
    given = {} if gravity is None else {'gravity': gravity}
    if autostart is not None:
        users_file = directory / 'user.yaml'
        section = {'effort_clamp': 0.2, **({} if autostart == '' else {'autostart': autostart})}
        users_file.write_text(yaml.safe_dump(
            {'/**/gravity_compensation': {'ros__parameters': section}}))
        given[argument] = str(users_file)
    command = commands(directory, file, **given)['gravity_compensation']
    return declared('gravity_compensation', command)[0].autostart


BY_BRINGUP = [
    (None, None, False), (None, '', False), (None, False, False), (None, True, True),
    ('inactive', None, False), ('inactive', '', False), ('inactive', True, False),
    ('active', None, True), ('active', '', True), ('active', False, True)]


@pytest.mark.parametrize(('file', 'argument', 'gravity', 'autostart', 'active'), [
    *(('bringup', 'gravity_compensation_params', *case) for case in BY_BRINGUP),
    *(('simulation', 'gravity_compensation_params', *case) for case in BY_BRINGUP),
    ('gazebo', 'controllers', None, None, False), ('gazebo', 'controllers', None, True, True)])
def test_gravity_compensation_is_inactive_by_default(
        tmp_path, monkeypatch, file, argument, gravity, autostart, active):
    directory = install_gazebo(tmp_path, monkeypatch)
    assert starts_active(directory, file, argument, gravity, autostart) == active


def test_gravity_compensation_alone_is_active_unless_its_file_sets_otherwise(tmp_path):
    for autostart, active in ((None, True), ('', True), (True, True), (False, False)):
        assert starts_active(
            tmp_path, 'gravity_compensation', 'params', None, autostart) == active


def test_a_missing_parameter_file_is_an_error():
    # ros2 launch logs it and starts the node without the file.
    node = Node('any', cli_args=['--ros-args', '-p', 'launch.params_files:=/none/a.yaml'],
                use_global_arguments=False, start_parameter_services=False)
    with pytest.raises(ConfigurationError, match="'/none/a.yaml' does not exist"):
        declare_parameters(node, parameters_class('gait_player'))
    node.destroy_node()
