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
"""The launch files, parameter files and RViz configuration of the package, run and looked at."""

import dataclasses
import importlib
from pathlib import Path

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.settings import setting_fields
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from std_msgs.msg import String
from support.launched import busyness, LIMIT
from support.planned import each_of_nodes, FILES, plan, planned
import yaml

SHARE = package_share()
# Robots, not parameters.
ROBOT_FILES = {'rail.yaml'}
PARAMETER_FILES = sorted(file for directory in ('.', 'demo', 'hidden')
                         for file in (SHARE / 'config' / directory).glob('*.yaml')
                         if file.name not in ROBOT_FILES)


def each(files):
    return pytest.mark.parametrize('file', files, ids=lambda file: file.name)


# ---------------------------------------------------------------------------- launch files

def test_there_are_the_launch_files_that_the_readme_promises():
    names = sorted(file.name.removesuffix('.launch.py')
                   for file in (SHARE / 'launch').glob('*.launch.py'))
    assert ' '.join(names) == (
        'bringup calibration demo gait gait_simulation gazebo gazebo_gravity gravity_compensation '
        'gravity_simulation lowstate payload simulation torso torso_demo two_pose view viewer')
    assert names == sorted(FILES)


@each_of_nodes
def test_our_nodes_have_enclaves(file):
    for program in plan(file):
        if program.package == 'biped_com_ros':
            assert program.enclave == f'/biped_com_ros/{program.name or program.executable}'


def test_bringup_composes_by_default():
    programs = planned('bringup', robot='talos', namespace='r1')
    assert list(programs) == ['suite', 'gravity_compensation', 'torso_controller']
    suite = programs['suite']
    assert suite.parameters == {
        'nodes': ('wrench_aggregator', 'com_estimator', 'zmp_monitor'), 'robot': 'talos'}
    assert suite.namespace == '/r1' and suite.remappings['/tf'] == 'tf' and not suite.name


def test_bringup_without_composition_publishes_the_same():
    arguments = {'base_source': 'tf', 'gravity': 'none', 'torso': 'false'}
    suite = planned('bringup', **arguments)['suite']
    apart = planned('bringup', **arguments, composed='false')
    assert list(apart) == ['wrench_aggregator', 'com_estimator', 'zmp_monitor']
    values = {name: value for program in apart.values()
              for name, value in program.parameters.items()}
    assert values == {name: value for name, value in suite.parameters.items() if name != 'nodes'}
    assert [file for program in apart.values() for file in program.files] == list(suite.files)


OPTIONAL_TORSO = ('bringup', 'demo', 'simulation')
COMMANDING = {'gravity_compensation', 'gait_player', 'torso_controller', 'com_calibrator'}


def respawned(file, **values):
    """Whether each node of a launch file is respawned, by its name or its executable's."""
    programs = plan(file, **values)
    assert not [program for program in programs if program.respawns and program.ends_launch]
    return {program.name or program.executable: program.respawns for program in programs}


@each_of_nodes
def test_only_what_commands_nothing_is_respawned_by_default(file):
    found = respawned(file)
    assert all(found.get(name, True) for name in ('suite', 'gazebo_truth'))
    assert not [name for name in COMMANDING & found.keys() if found[name]]
    assert not found.get('simulator', False)  # its end ends the launch
    every = respawned(file, respawn='all')
    optional = {'torso_controller'} if file in OPTIONAL_TORSO else set()
    assert all(every[name] != (name in optional) for name in COMMANDING & every.keys())
    assert not any(respawned(file, respawn='none').values())


def test_the_suite_ends_the_launch_unless_it_is_respawned():
    for respawn in ('none', 'estimators', 'all'):
        suite = planned('bringup', respawn=respawn)['suite']
        assert (suite.ends_launch, suite.respawns) == (respawn == 'none', respawn != 'none')


def test_an_optional_page_is_not_respawned():
    """Without viser it ends at once, which ros2 launch would repeat."""
    assert respawned('viewer') == {'viewer': True}
    assert respawned('viewer', optional='true') == {'viewer': False}


def test_the_simulation_runs_on_its_own_clock():
    programs = planned('simulation', robot='g1', seed='7', hidden='masses')
    assert list(programs) == ['simulator', 'suite', 'gravity_compensation', 'torso_controller']
    simulator, *others = programs.values()
    for program in others:
        assert program.parameters['use_sim_time'] is True and program.parameters['robot'] == 'g1'
    assert simulator.parameters == {'robot': 'g1', 'seed': 7}
    assert simulator.files[-1] == SHARE / 'config' / 'hidden' / 'masses.yaml'


def test_the_demo_hides_masses_and_prints_so():
    programs = planned('demo', robot='talos', chapters='measure', duration='5')
    assert list(programs) == ['simulator', 'suite', 'torso_controller', 'demo', 'viewer']
    assert programs['viewer'].parameters['optional'] is True
    assert programs['demo'].parameters == {
        'robot': 'talos', 'chapters': 'measure', 'once': False, 'hidden': 'masses',
        'duration': 5.0, 'use_sim_time': True}
    assert planned('demo', chapters='rail')['demo'].parameters['robot'].endswith('rail.yaml')


@pytest.mark.parametrize(('chapter', 'node'), [
    ('gravity', 'gravity_compensation'), ('steps', 'gait_player')])
def test_the_demo_starts_what_its_chapters_need(chapter, node):
    for chapters, expected in ((chapter, True), (f'measure, {chapter}', True), ('all', True),
                               ('none', False), ('measure', False)):
        assert (node in planned('demo', chapters=chapters)) == expected


# ------------------------------------------------------------------------- parameter files

def sections(file):
    """Parameters by node of a parameter file of ours."""
    document = yaml.safe_load(file.read_text())
    return {key.removeprefix('/**/'): value['ros__parameters']
            for key, value in document.items()}


def dataclass_of(node):
    """Return the dataclass that declares a node's parameters."""
    module = importlib.import_module(f'biped_com_ros.nodes.{node}.node')
    if hasattr(module, 'PARAMETERS'):
        return module.PARAMETERS
    found = [value for name, value in vars(module).items()
             if name.endswith('Parameters') and dataclasses.is_dataclass(value)
             and value.__module__.startswith(f'{module.__package__}.')]
    assert len(found) == 1, f'{node} has {len(found)} dataclasses of parameters'
    return found[0]


def defaults(node):
    return {name: default for name, (_, default, _) in setting_fields(dataclass_of(node)).items()}


def plain(value):
    """Value as files write it; [''] is an empty list of strings with a known type."""
    value = list(value) if isinstance(value, tuple) else value
    return [] if value == [''] else value


@each(PARAMETER_FILES)
def test_every_key_of_a_parameter_file_is_declared_and_has_its_type(file):
    for node, values in sections(file).items():
        declared = defaults(node)
        unknown = values.keys() - declared.keys()
        assert not unknown, f'{file.name}: {node} does not have {sorted(unknown)}'
        for name, value in values.items():
            default = plain(declared[name])
            assert type(value) is type(default), f'{file.name}: {name}'
            if default and isinstance(default, list):
                assert {type(item) for item in value} <= {type(item) for item in default}


# --------------------------------------------------------------------- nodes that are started

def assert_ended(launched):
    """Interrupt it: all ends cleanly, within three seconds of a quiet computer."""
    code, seconds = launched.interrupt()
    assert code == 0 and seconds < 3.0 * busyness(), launched.output
    for noise in ('still running', 'Traceback', 'FATAL', 'ERROR] [', 'WARN'):
        assert noise not in launched.output.partition('shutting down')[2], launched.output
    assert not any(Path(f'/proc/{pid}').exists() for pid in launched.pids())


@pytest.mark.thorough
@pytest.mark.parametrize('composed, processes', [('true', 4), ('false', 6)])
def test_the_whole_runs_in_a_namespace_and_ends_at_ctrl_c(launch, observer, composed, processes):
    from geometry_msgs.msg import PointStamped, WrenchStamped
    from tf2_msgs.msg import TFMessage
    launched = launch('simulation.launch.py', 'namespace:=r1', f'composed:={composed}')
    assert '<robot' in observer.first(String, '/r1/robot_description', LATCHED).data
    weight = observer.first(WrenchStamped, '/r1/wrench_aggregator/wrench')
    assert weight.wrench.force.z > 20.0
    com = observer.first(PointStamped, '/r1/com_estimator/com')
    truth = observer.first(PointStamped, '/r1/simulator/truth/com')
    assert com.header.frame_id == truth.header.frame_id == 'odom'
    assert abs(com.point.z - truth.point.z) < 0.02
    assert observer.first(TFMessage, '/r1/tf').transforms[0].header.frame_id
    assert len(launched.pids()) == processes
    observer.until_state('/r1/gravity_compensation', 'unconfigured')
    observer.until_state('/r1/torso_controller', 'active')
    assert_ended(launched)


@pytest.mark.thorough
def test_a_robot_without_tendons_needs_no_torso_controller(launch, observer):
    launched = launch('bringup.launch.py', 'robot:=talos', 'namespace:=r3')
    observer.until_state('/r3/gravity_compensation', 'unconfigured')
    observer.until(lambda: "not started: robot 'talos' has no tendon-driven torso"
                   in launched.output, 'the reason')
    code, _ = launched.interrupt()
    assert code == 0, launched.output


@pytest.mark.thorough
def test_a_description_that_does_not_exist_ends_the_launch(launch):
    launched = launch('simulation.launch.py', 'robot:=biped', 'urdf:=/nowhere.urdf')
    assert launched.process.wait(LIMIT) == 1
    assert '/nowhere.urdf' in launched.output
    assert 'shutting down: simulator-1 has ended' in launched.output


@pytest.mark.parametrize('argument, error', [
    ('robot:=bipedd', "unknown robot 'bipedd'; did you mean 'biped'?"),
    ('robot:=nowhere.yaml', "robot file 'nowhere.yaml' cannot be read"),
    ('robot:={broken}', 'broken.yaml'),
    ('chapters:=measure,pusch', "unknown chapter 'pusch'"),
    ('rate:=fast', "argument 'rate': 'fast' is not a number")])
def test_a_wrong_argument_is_reported_once_before_anything_starts(
        argument, error, launch, tmp_path):
    """Each of seven nodes reported it after 7 to 14 s, and the page had an address before."""
    broken = tmp_path / 'broken.yaml'
    broken.write_text('base_lnk: pelvis\n')
    launched = launch('demo.launch.py', argument.format(broken=broken))
    assert launched.process.wait(LIMIT) == 2
    line, = launched.output.splitlines()
    assert line.startswith('run_launch: ') and error in line
