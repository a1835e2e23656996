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

import functools
import importlib
from pathlib import Path
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.launch_runner import actions
from biped_com_ros.launch_runner.actions import declared_arguments, Planner
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.parameters import ParameterFiles
from biped_com_ros.ros.node.parameters import declare_parameters, parameter_fields
import pytest
from rclpy.node import Node
from support.planned import given_parameters, install_gazebo
import yaml

LAUNCH = package_share() / 'launch'
FROM_VAR = re.compile(r'<param name="([\w.]+)"\s+value="\$\(var (\w+)\)"')
OF_SUITE = ('wrench_aggregator', 'com_estimator', 'zmp_monitor')
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
    *(('bringup', 'suite', f'{node}_params', node) for node in OF_SUITE),
    *(('bringup', node, f'{node}_params', node) for node in OF_SUITE),
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


ALL = sorted(path.name.partition('.')[0] for path in LAUNCH.glob('*.xml') if path.name != (
    'view.launch.xml'))
#: Arguments that make a launch file start all that it can.
EVERYTHING = {'calibration': {'simulation': 'true'}, 'torso_demo': {'viewer': 'true'}}


load_once = functools.cache(actions.load)


@functools.cache
def nodes_of(file):
    """Return (executable, its elements' text) of a launch file."""
    return [(re.search(r'exec="(\w+)"', node)[1], node) for node in re.findall(
        r'<node .*?</node>', (LAUNCH / f'{file}.launch.xml').read_text(), re.S)]


def launched_parameters(file):
    """Return (parameter, argument) of each parameter that wins over a node's parameter file."""
    return [pair for _, node in nodes_of(file)
            for pair in FROM_VAR.findall(node.partition('<param from')[2])]


def parameters_class(node):
    module = importlib.import_module(f'biped_com_ros.nodes.{node}.node')
    return getattr(module, f"{node.title().replace('_', '')}Parameters")


def two_values(name, kind, default, info):
    """Return two valid values of a parameter; only the second may be the default."""
    if kind is bool:
        candidates = not default, default
    elif name == 'robot':
        candidates = 'talos', 'g1'
    elif info.options:
        candidates = info.options
    elif kind is str:
        candidates = f'{name}_in_file', f'{name}_as_argument'
    elif kind in (int, float):
        steps = (1, -1, 2, -2) if kind is int else (0.0625, 0.001, -0.0625, -0.001, 0.002)
        candidates = [default + step for step in steps
                      if (info.minimum is None or default + step >= info.minimum)
                      and (info.maximum is None or default + step <= info.maximum)]
    else:
        candidates = ['l_hand 1 0 0 0'], ['r_hand 2 0 0 0']
    return ([value for value in candidates if value != default] + [default])[:2]


@functools.cache
def two_of_each(node):
    """Return valid values of (nearly) every parameter of a node, and other ones."""
    pairs = {name: two_values(name, *field) for name, field in parameter_fields(
        parameters_class(node)).items() if field[0] != list[float]}
    pairs['use_sim_time'] = True, False
    return [{name: pair[i] for name, pair in pairs.items()} for i in range(2)]


def other_values(node):
    """Return a valid value that is not the default for every parameter of a node."""
    return two_of_each(node)[0]


@pytest.fixture(scope='module')
def users_file(tmp_path_factory):
    """Write a file with another value for every parameter of every node."""
    (file := tmp_path_factory.mktemp('user') / 'user.yaml').write_text(yaml.safe_dump({
        f'/**/{node}': {'ros__parameters': other_values(node)} for *_, node in NODES}))
    return file


@functools.cache
def argument_names(file):
    """Return the names of the arguments of a launch file and of those that it includes."""
    return [argument.name for argument in declared_arguments(
        actions.load(LAUNCH / f'{file}.launch.xml'), Context({}))]


def files_arguments(file, params):
    """Return the arguments that give a parameter file to every node of a launch file."""
    return {name: str(params) for name in argument_names(file) if FILE_ARGUMENT.fullmatch(name)}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Return a function that returns the command of each executable a launch file starts."""
    def plan(file, **arguments):
        planner = Planner(Context({**EVERYTHING.get(file, {}), **{
            name: value for name, value in arguments.items() if name in argument_names(file)}}),
            ParameterFiles(directory))
        planner.run(actions.load(LAUNCH / f'{file}.launch.xml'))
        return {process.name.rpartition('-')[0]: process.command for process in planner.processes}
    directory = install_gazebo(tmp_path, monkeypatch)
    monkeypatch.setattr(actions, 'load', load_once)
    return plan


def declared(node, command):
    """Return the parameters of a node of this process, and whether it uses simulated time."""
    ros_node = Node(node, cli_args=list(command[command.index('--ros-args'):]),
                    use_global_arguments=False, start_parameter_services=False)
    try:
        return {**vars(declare_parameters(ros_node, parameters_class(node))),
                'use_sim_time': ros_node.get_parameter('use_sim_time').value}
    finally:
        ros_node.destroy_node()


@pytest.mark.parametrize('section', [pytest.param('/**', marks=pytest.mark.thorough), '/**/{}'])
@pytest.mark.parametrize(('file', 'executable', 'files_argument', 'node'), NODES)
def test_the_file_wins_over_the_launch_file_and_an_argument_over_both(
        tmp_path, plan, file, executable, files_argument, node, section):
    in_file, as_argument = map(dict, two_of_each(node))
    params = tmp_path / 'user.yaml'
    params.write_text(yaml.safe_dump({section.format(node): {'ros__parameters': in_file}}))
    given = {files_argument: str(params)}
    if executable == node:
        given['composed'] = 'false'  # one process per node, where there is a choice
    assert declared(node, plan(file, **given)[executable]).items() >= in_file.items()
    launched = {name.removeprefix('launch.'): argument
                for name, argument in launched_parameters(file)}
    for name, argument in launched.items():
        if name in in_file:
            value = in_file[name] = as_argument[name]
            text = value[0] if isinstance(value, list) else str(value)
            given[argument] = text.lower() if isinstance(value, bool) else text
    assert declared(node, plan(file, **given)[executable]).items() >= in_file.items()


def test_every_node_with_a_parameter_file_is_tested_here():
    tested = {case[:3] for case in NODES}
    for file in ALL:
        for executable, text in nodes_of(file):
            for argument in re.findall(r'<param from="\$\(var (\w+)\)"', text):
                if argument != 'errors':  # config/hidden, or the simulator's file once more
                    assert (file, executable, argument) in tested


def test_no_launch_file_sets_a_parameter_that_a_file_may_set():
    for file in ALL:
        assert all(name.startswith('launch.') for name, _ in launched_parameters(file)), file


# ------------------------------------------------------------- launch files that include others

def nodes_in(executable):
    return OF_SUITE if executable == 'suite' else (executable,)


@pytest.mark.parametrize('file', ALL)
def test_the_users_file_wins_over_every_default(plan, users_file, file):
    reached = 0
    for executable, command in plan(file, **files_arguments(file, users_file)).items():
        for node in nodes_in(executable):
            if not any(users_file.samefile(word) for word in command if word.endswith('.yaml')):
                continue  # demo and two_pose have their own files for com_calibrator
            reached += 1
            parameters = declared(node, command)
            different = {(file, node, name) for name, value in other_values(node).items()
                         if parameters[name] != value}
            assert different <= FIXED
    assert reached >= len({node for name, _, _, node in NODES if name == file})


ZERO, HIDDEN = {'hidden_com_sigma': 0.0, 'hidden_mass_sigma': 0.0}, {
    'hidden_com_sigma': 0.005, 'hidden_mass_sigma': 0.08}
SIMULATIONS = ('simulation', 'demo', 'torso_demo', 'gait_simulation', 'gravity_simulation',
               'two_pose', 'calibration')
G1, TALOS = {'robot': 'g1'}, {'robot': 'talos'}
URDF, FRAMES = {'urdf': 'other.urdf'}, {'frame_prefix': 'a/'}
#: Arguments of launch files that include others: (launch file, given, expected by executable).
GIVEN = [
    *((file, given, {'simulator': expected}) for file in SIMULATIONS for given, expected in (
        ({'hidden': 'none'}, {**ZERO, 'force_bias': 0.0}),
        ({'hidden': 'masses', 'seed': '7'}, {**HIDDEN, 'seed': 7}),
        ({'hidden': 'real'}, {**HIDDEN, 'force_bias': 0.3}))),
    ('demo', {**URDF, **FRAMES, 'rate': '250', 'port': '9000', 'once': 'true', 'duration': '3',
              'picture': 'a.svg'}, {
        'simulator': {**URDF, **FRAMES, 'rate': 250.0}, 'suite': {**URDF, **FRAMES},
        'gravity_compensation': URDF, 'gait_player': URDF, 'torso_controller': FRAMES,
        'viewer': {**URDF, **FRAMES, 'port': 9000},
        'demo': {**URDF, **FRAMES, 'once': True, 'duration': 3.0, 'picture': 'a.svg'}}),
    ('demo', {**G1, 'chapters': 'measure'}, {
        'simulator': G1, 'suite': G1, 'viewer': G1, 'demo': {'chapters': 'measure'}}),
    ('torso_demo', {**G1, 'load': 'torso 1 0 0 0', 'port': '9000'}, {
        'simulator': {**G1, 'hidden_errors': ['torso 1 0 0 0']}, 'suite': G1,
        'viewer': {'port': 9000}}),
    ('two_pose', {**G1, 'postures': 'c;b', 'directory': '/results'}, {
        'simulator': G1, 'suite': G1,
        'com_calibrator': {'postures': ['c', 'b'], 'directory': '/results'}}),
    *((file, {**G1, 'trajectory_rate': '50', 'support': 'fixed', 'distribution': 'measured',
              'active': 'true'}, {
        'simulator': G1, 'suite': G1, 'gravity_compensation': {
            'trajectory_rate': 50.0, 'support': 'fixed', 'distribution': 'measured',
            'autostart': True}}) for file in ('gravity_simulation', 'gait_simulation')),
    *((file, {**TALOS, **given}, {
        'suite': TALOS, 'com_estimator': TALOS, 'gravity_compensation': {**TALOS, **expected}})
      for file, given, expected in (
          ('gazebo', {'gravity': 'active'}, {'autostart': True}), ('gazebo_gravity', {}, {}))),
    *((file, {'gravity': 'active'}, {'gravity_compensation': {'autostart': True}})
      for file in ('bringup', 'simulation'))]


@pytest.mark.parametrize(('file', 'given', 'expected'), [
    pytest.param(*row, marks=[pytest.mark.thorough] * ('hidden' in row[1] and row[0] != 'demo'))
    for row in GIVEN])
def test_a_given_argument_wins_over_the_users_file(plan, users_file, file, given, expected):
    commands = plan(file, **files_arguments(file, users_file), **given)
    for executable, values in expected.items():
        for node in nodes_in(executable):
            parameters = declared(node, commands[executable])
            assert {name: parameters[name] for name in values} == values


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
    """By the cases of `NODES`, by a row of the tables here, or named as no parameter."""
    tested = {(file, argument) for file, _, _, node in NODES
              for name, argument in launched_parameters(file)
              if name.removeprefix('launch.') in other_values(node)}
    tested |= {(file, argument) for file, given, _ in GIVEN for argument in given}
    tested |= {(file, argument) for file in ('gazebo', 'gazebo_gravity')
               for argument, *_ in IN_GAZEBO}
    unexplained = SWITCHES | REMAPS | OF_GAZEBO
    # Its own: those of included files are tested there.
    declared_ones = {(file, argument.get('name')) for file in ALL
                     for argument in ElementTree.parse(
                         LAUNCH / f'{file}.launch.xml').getroot().findall('arg')}
    assert {pair for pair in declared_ones - tested
            if not FILE_ARGUMENT.fullmatch(pair[1]) and pair[1] not in unexplained} == set()
    assert unexplained <= {argument for _, argument in declared_ones}


@pytest.mark.thorough  # 17 processes
@pytest.mark.parametrize('file', ['gazebo', 'gazebo_gravity'])
def test_arguments_reach_the_files_for_gazebo(tmp_path, plan, file):
    @functools.cache
    def made(**given):
        """Return the text of each file that the launch file makes, without their directory."""
        made = Path(given_parameters(list(plan(file, **given)['create']))['file']).parent
        return {path.name: path.read_text().replace(str(made), '') for path in made.iterdir()}
    values = {'urdf': tmp_path / 'other.urdf', 'bridge': tmp_path / 'bridge.yaml'}
    urdf = load_urdf(load_robot_config('biped'))
    values['urdf'].write_text(urdf.replace('<mass value="', '<mass value="1', 1))
    values['bridge'].write_text('- {ros_topic_name: mine}\n')
    for argument, given, changed in IN_GAZEBO:
        if argument in argument_names(file):
            given = {name: text.format(**values) for name, text in given.items()}
            without = {name: text for name, text in given.items() if name != argument}
            assert made(**given)[changed] != made(**without)[changed], argument


@pytest.mark.parametrize(('file', 'expected'), [
    ('demo', {**HIDDEN, 'seed': 1}), ('calibration', {**HIDDEN, 'seed': 1}),
    ('simulation', {**ZERO, 'seed': 0}), ('torso_demo', {**ZERO, 'seed': 0}), *(
        (file, {**ZERO, 'seed': 1}) for file in (
            'gait_simulation', 'gravity_simulation', 'two_pose'))])
def test_what_is_hidden_without_an_argument_and_without_a_file(plan, file, expected):
    parameters = declared('simulator', plan(file)['simulator'])
    assert {name: parameters[name] for name in expected} == expected


def test_none_undoes_all_that_real_gets_wrong():
    none, real = (yaml.safe_load((package_share() / f'config/hidden/{name}.yaml').read_text())[
        '/**/simulator']['ros__parameters'] for name in ('none', 'real'))
    assert none.keys() == real.keys() - {'errors_at_mass'}  # a scale of the others
    fields = parameter_fields(parameters_class('simulator'))
    assert none == {name: fields[name][1] for name in none}


@pytest.mark.parametrize(('file', 'argument', 'cases'), [
    ('bringup', 'gravity_compensation_params', [
        (None, None, False), (None, '', False), (None, False, False), (None, True, True),
        ('inactive', None, False), ('inactive', '', False), ('inactive', True, False),
        ('active', None, True), ('active', '', True), ('active', False, True)]),
    ('simulation', 'gravity_compensation_params', [
        (None, None, False), (None, True, True), ('inactive', True, False),
        ('active', False, True)]),
    ('gazebo', 'controllers', [(None, None, False), (None, True, True)]),
    ('gravity_compensation', 'params', [
        (None, None, True), (None, '', True), (None, True, True), (None, False, False)])])
def test_gravity_compensation_is_inactive_by_default_unless_alone(
        tmp_path, plan, file, argument, cases):
    for gravity, autostart, active in cases:
        given = {} if gravity is None else {'gravity': gravity}
        if autostart is not None:
            section = {'effort_clamp': 0.2, **({} if autostart == '' else {
                'autostart': autostart})}
            (params := tmp_path / 'user.yaml').write_text(yaml.safe_dump(
                {'/**/gravity_compensation': {'ros__parameters': section}}))
            given[argument] = str(params)
        command = plan(file, **given)['gravity_compensation']
        assert declared('gravity_compensation', command)['autostart'] is active


def test_a_missing_parameter_file_is_an_error():
    # ros2 launch logs it and starts the node without the file.
    with pytest.raises(ConfigurationError, match="'/none/a.yaml' does not exist"):
        declared('gait_player', ['--ros-args', '-p', 'launch.params_files:=/none/a.yaml'])
