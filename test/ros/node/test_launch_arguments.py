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

import functools
import importlib
from pathlib import Path
import re
import typing

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.core.settings import setting_fields
from biped_com_ros.launching.arguments import choices_of, FIELDS, text_of
from biped_com_ros.launching.files import LAUNCH_FILES
from biped_com_ros.ros.node.parameters import declare_parameters
import pytest
from rclpy.node import Node
from support.planned import each_of_nodes, FILES, OF_NODES, parameters_in_files, planned
from support.settings import setting_values
import yaml

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
    ('gazebo_gravity', 'gravity_compensation', 'autostart'),
    *(('demo', 'com_calibrator', name) for name in (
        'robot', 'autostart', 'move', 'poses', 'hoist_service', 'torso_bend')),
    *(('two_pose', 'com_calibrator', name) for name in ('robot', 'postures', 'move'))}
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


#: Arguments that make a launch file start all that it can.
EVERYTHING = {'calibration': {'simulation': 'true'}, 'torso_demo': {'viewer': 'true'}}
#: Arguments that are parameters of another name.
PARAMETERS = {'load': 'hidden_errors'}
#: Those that have only the name in common with a parameter of a node.
NAMESAKES = {('gravity', node) for *_, node in NODES} | {('seed', 'com_calibrator')}


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
    pairs = {name: two_values(name, *field) for name, field in setting_fields(
        parameters_class(node)).items() if typing.get_args(field[0])[:1] != (float,)}
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


def start(file, **arguments):
    """Return what a launch file starts by executable, with all that it can and takes."""
    given = {**EVERYTHING.get(file, {}), **{
        name: value for name, value in arguments.items() if name in LAUNCH_FILES[file].takes}}
    return planned(file, **given)


def files_arguments(file, params):
    """Return the arguments that give a parameter file to every node of a launch file."""
    return {name: str(params) for name in LAUNCH_FILES[file].takes
            if FILE_ARGUMENT.fullmatch(name)}


@pytest.fixture
def declared(tmp_path):
    """Return a function that returns the parameters of a node of a program of this process."""
    def declared(node, program):
        ros_node = Node(node, cli_args=program.command_line(tmp_path),
                        use_global_arguments=False, start_parameter_services=False)
        try:
            return {**setting_values(declare_parameters(ros_node, parameters_class(node))),
                    'use_sim_time': ros_node.get_parameter('use_sim_time').value}
        finally:
            ros_node.destroy_node()
    return declared


def arguments_of(file, node):
    """Return the parameters of a node that arguments of a launch file of its own set."""
    parameters = setting_fields(parameters_class(node)).keys() | {'use_sim_time'}
    taken = {PARAMETERS.get(name, name): name for name in LAUNCH_FILES[file].takes}
    return {name: taken[name] for name in parameters & taken.keys()
            if (name, node) not in NAMESAKES}


@pytest.mark.parametrize('section', [
    *(pytest.param(text, marks=pytest.mark.thorough) for text in ('/**', '/{}')), '/**/{}'])
@pytest.mark.parametrize(('file', 'executable', 'files_argument', 'node'), NODES)
def test_the_file_wins_over_the_launch_file_and_an_argument_over_both(
        tmp_path, declared, file, executable, files_argument, node, section):
    in_file, as_argument = map(dict, two_of_each(node))
    params = tmp_path / 'user.yaml'
    params.write_text(yaml.safe_dump({section.format(node): {'ros__parameters': in_file}}))
    given = {files_argument: str(params)}
    if executable == node:
        given['composed'] = 'false'  # one process per node, where there is a choice
    fixed = {name for of, who, name in FIXED if (of, who) == (file, node)}
    if file == 'simulation':
        fixed.add('use_sim_time')  # the simulator is the clock
    found = declared(node, start(file, **given)[executable])
    assert {name for name in in_file if found[name] != in_file[name]} <= fixed
    for name, argument in arguments_of(file, node).items():
        if name in in_file and name not in fixed:
            value = in_file[name] = as_argument[name]
            given[argument] = text_of(tuple(value) if isinstance(value, list) else value)
    found = declared(node, start(file, **given)[executable])
    assert {name: found[name] for name in in_file if found[name] != in_file[name]
            and name not in fixed} == {}


def test_every_node_with_a_parameter_file_is_tested_here():
    tested = {executable for _, executable, *_ in NODES}
    for file in OF_NODES:
        for executable, program in start(file).items():
            if program.package == 'biped_com_ros' and program.files:
                assert executable in tested


# ------------------------------------------------------------- launch files that include others

def nodes_in(executable):
    return OF_SUITE if executable == 'suite' else (executable,)


@each_of_nodes
def test_the_users_file_wins_over_every_default(declared, users_file, file):
    reached = set()
    for executable, program in start(file, **files_arguments(file, users_file)).items():
        for node in nodes_in(executable):
            if users_file not in program.files and not any(
                    path.read_text() == users_file.read_text() for path in program.files):
                continue  # what has no file
            reached.add(node)
            parameters = declared(node, program)
            different = {(file, node, name) for name, value in other_values(node).items()
                         if parameters[name] != value}
            assert different <= FIXED
    assert reached >= {node for name, _, _, node in NODES if name == file}


ZERO, HIDDEN = {'hidden_com_sigma': 0.0, 'hidden_mass_sigma': 0.0}, {
    'hidden_com_sigma': 0.005, 'hidden_mass_sigma': 0.08}
REAL_ERRORS = yaml.safe_load((package_share() / 'config/hidden/real.yaml').read_text())[
    '/**/simulator']['ros__parameters']['errors']
SIMULATIONS = ('simulation', 'demo', 'torso_demo', 'gait_simulation', 'gravity_simulation',
               'two_pose', 'calibration')
G1, TALOS = {'robot': 'g1'}, {'robot': 'talos'}
URDF, FRAMES = {'urdf': 'other.urdf'}, {'frame_prefix': 'a/'}
#: Arguments of launch files that include others: (launch file, given, expected by executable).
GIVEN = [
    *((file, given, {'simulator': expected}) for file in SIMULATIONS for given, expected in (
        ({'hidden': 'none'}, {**ZERO, 'errors': ['']}),
        ({'hidden': 'masses', 'seed': '7'}, {**HIDDEN, 'seed': 7}),
        ({'hidden': 'real'}, {**HIDDEN, 'errors': REAL_ERRORS}))),
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
def test_a_given_argument_wins_over_the_users_file(declared, users_file, file, given, expected):
    programs = start(file, **files_arguments(file, users_file), **given)
    for executable, values in expected.items():
        for node in nodes_in(executable):
            parameters = declared(node, programs[executable])
            assert {name: parameters[name] for name in values} == values


#: What changes in the files that are made for Gazebo: (argument, given, file).
IN_GAZEBO = (
    ('hidden', {'hidden': 'masses'}, 'robot.urdf'),
    ('seed', {'hidden': 'masses', 'seed': '3'}, 'robot.urdf'),
    ('load', {'load': 'l_hand 0.5 0 0 0'}, 'robot.urdf'),
    ('urdf', {'urdf': '{urdf}'}, 'description.yaml'),
    ('height', {'height': '2.5'}, 'create.yaml'),
    ('bridge', {'bridge': '{bridge}'}, 'bridge.yaml'),
    ('command', {'command': 'effort'}, 'controllers.yaml'))


@pytest.mark.thorough
@pytest.mark.parametrize('file', ['gazebo', 'gazebo_gravity'])
def test_arguments_reach_the_files_for_gazebo(tmp_path, file):
    @functools.cache
    def made(**given):
        """Return the text of each file that the launch file makes, without their directory."""
        made = Path(parameters_in_files(start(file, **given)['create'])['file']).parent
        return {path.name: path.read_text().replace(str(made), '') for path in made.iterdir()}
    values = {'urdf': tmp_path / 'other.urdf', 'bridge': tmp_path / 'bridge.yaml'}
    urdf = load_urdf(load_robot_config('biped'))
    values['urdf'].write_text(urdf.replace('<mass value="', '<mass value="1', 1))
    values['bridge'].write_text('- {ros_topic_name: mine}\n')
    for argument, given, changed in IN_GAZEBO:
        if argument in LAUNCH_FILES[file].takes:
            given = {name: text.format(**values) for name, text in given.items()}
            without = {name: text for name, text in given.items() if name != argument}
            assert made(**given)[changed] != made(**without)[changed], argument


#: Other values of arguments than those of `_others`.
OTHER = {'robot': 'talos', 'frame_prefix': 'b/', 'chapters': 'push', 'load': 'torso 1 0 0 0'}
#: What only matters together with something else.
WITH = {'state_publisher': {'view': 'true', 'robot': 'biped'},
        **{name: {'viewer': 'true'} for name in ('port', 'host', 'controls')},
        **{name: {'simulation': 'true'} for name in (
            'hidden', 'seed', 'rate', 'load', 'virtual_joints', 'base_source', 'composed')}}


def _others(name):
    """Return valid texts, of which one is not the default."""
    if choices := [choice for choice in choices_of(name) if choice]:
        return choices
    kind = FIELDS[name].type
    return [OTHER.get(name, '3' if 'int' in kind or 'float' in kind else 'other')]


@pytest.mark.parametrize('file', [file for file in FILES if 'gazebo' not in file])
def test_every_argument_changes_what_is_started(file):
    """But those that are files, which have a test of their own."""
    takes = LAUNCH_FILES[file].takes
    for name in takes:
        if FILE_ARGUMENT.fullmatch(name) or name == 'rviz_config' or (file, name) == (
                'view', 'urdf'):
            continue
        with_ = {key: text for key, text in {**EVERYTHING.get(file, {}), **WITH.get(
            name, {})}.items() if key in takes and key != name}
        before, *after = (repr(LAUNCH_FILES[file].plan({**with_, **given})) for given in (
            {}, *({name: text} for text in _others(name))))
        assert set(after) != {before}, name


@pytest.mark.parametrize(('file', 'expected'), [
    ('demo', {**HIDDEN, 'seed': 1}), ('calibration', {**HIDDEN, 'seed': 1}),
    ('simulation', {**ZERO, 'seed': 0}), ('torso_demo', {**ZERO, 'seed': 0}), *(
        (file, {**ZERO, 'seed': 1}) for file in (
            'gait_simulation', 'gravity_simulation', 'two_pose'))])
def test_what_is_hidden_without_an_argument_and_without_a_file(declared, file, expected):
    parameters = declared('simulator', start(file)['simulator'])
    assert {name: parameters[name] for name in expected} == expected


def test_none_undoes_all_that_real_gets_wrong():
    none, real = (yaml.safe_load((package_share() / f'config/hidden/{name}.yaml').read_text())[
        '/**/simulator']['ros__parameters'] for name in ('none', 'real'))
    assert none.keys() == real.keys() - {'errors_at_mass'}  # a scale of the others
    fields = setting_fields(parameters_class('simulator'))
    assert none == {**{name: fields[name][1] for name in none}, 'errors': ['']}


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
        tmp_path, declared, file, argument, cases):
    for gravity, autostart, active in cases:
        given = {} if gravity is None else {'gravity': gravity}
        if autostart is not None:
            section = {'effort_clamp': 0.2, **({} if autostart == '' else {
                'autostart': autostart})}
            (params := tmp_path / 'user.yaml').write_text(yaml.safe_dump(
                {'/**/gravity_compensation': {'ros__parameters': section}}))
            given[argument] = str(params)
        program = start(file, **given)['gravity_compensation']
        assert declared('gravity_compensation', program)['autostart'] is active
