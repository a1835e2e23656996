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

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses
import importlib
from pathlib import Path
import sys
from typing import Any
from xml.etree import ElementTree

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launch_runner.actions import declared_arguments, load, Planner
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.parameters import is_parameter_document, ParameterFiles
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from std_msgs.msg import String
from support.launched import busyness, Launched, LIMIT
from support.planned import given_parameters, install_gazebo, planned
import yaml

SHARE = package_share()
LAUNCH_FILES = sorted((SHARE / 'launch').glob('*.xml'))
# Robots, not parameters.
ROBOT_FILES = {'rail.yaml'}
PARAMETER_FILES = sorted(file for directory in ('.', 'demo', 'hidden')
                         for file in (SHARE / 'config' / directory).glob('*.yaml')
                         if file.name not in ROBOT_FILES)


#: Those that start nodes of this package.
OF_NODES = [file for file in LAUNCH_FILES if file.name != 'view.launch.xml']


def each(files: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize('file', files, ids=lambda file: file.name)


# ---------------------------------------------------------------------------- launch files

def test_there_are_the_launch_files_that_the_readme_promises() -> None:
    assert ' '.join(file.name.removesuffix('.launch.xml') for file in LAUNCH_FILES) == (
        'bringup calibration demo gait gait_simulation gazebo gazebo_gravity gravity_compensation '
        'gravity_simulation lowstate payload simulation torso torso_demo two_pose view viewer')


@each(LAUNCH_FILES)
def test_arguments_are_described_and_optional_and_our_nodes_have_enclaves(file: Path) -> None:
    for argument in declared_arguments(load(file), Context({})):
        assert argument.description, argument.name
        assert argument.default is not None, argument.name
    for node in ElementTree.parse(file).iter('node'):
        if node.get('pkg') == 'biped_com_ros':
            assert '--enclave /biped_com_ros/' in node.get('ros_args', ''), node.get('exec')


def test_bringup_composes_by_default(tmp_path: Path) -> None:
    commands = planned(tmp_path, 'bringup.launch.xml', robot='talos', namespace='r1')
    assert list(commands) == ['suite', 'gravity_compensation', 'torso_controller']
    assert given_parameters(commands['suite']) == {
        'nodes': ['wrench_aggregator', 'com_estimator', 'zmp_monitor'], 'launch.robot': 'talos',
        'launch.frame_prefix': '', 'launch.urdf': '', 'launch.base_source': '',
        'launch.use_sim_time': ''}
    assert '__ns:=/r1' in commands['suite'] and '/tf:=tf' in commands['suite']
    assert not [word for word in commands['suite'] if word.startswith('__node')]


def test_bringup_without_composition_publishes_the_same(tmp_path: Path) -> None:
    arguments = {'base_source': 'tf', 'gravity': 'none', 'torso': 'false'}
    suite = given_parameters(planned(tmp_path, 'bringup.launch.xml', **arguments)['suite'])
    commands = planned(tmp_path, 'bringup.launch.xml', **arguments, composed='false')
    assert list(commands) == ['wrench_aggregator', 'com_estimator', 'zmp_monitor']
    apart = {**given_parameters(commands['wrench_aggregator']),
             **given_parameters(commands['com_estimator']),
             **given_parameters(commands['zmp_monitor'])}
    assert apart == {name: value for name, value in suite.items() if name != 'nodes'}
    files = {name: [word for word in command if word.endswith(f'{name}.yaml')]
             for name, command in commands.items()}
    assert all(files.values())


OPTIONAL_TORSO = ('bringup.launch.xml', 'demo.launch.xml', 'simulation.launch.xml')
COMMANDING = {'gravity_compensation', 'gait_player', 'torso_controller', 'com_calibrator'}


def respawned(directory: Path, file: str, **values: str) -> dict[str, bool]:
    """Whether each node of a launch file is respawned, by its name or its executable's."""
    planner = Planner(Context(values), ParameterFiles(directory))
    planner.run(load(SHARE / 'launch' / file))
    assert not [plan for plan in planner.processes if plan.respawn and (
        plan.shuts_down or plan.respawn_delay < 1.0)]
    return {node_name(plan): plan.respawn for plan in planner.processes}


def node_name(plan: Any) -> str:
    """Return the name that a launch file gives to a node, or its executable."""
    renamed = [word.partition(':=')[2] for word in plan.command if word.startswith('__node:=')]
    return str(renamed[0] if renamed else plan.name.rpartition('-')[0])


@each(OF_NODES)
def test_only_what_commands_nothing_is_respawned_by_default(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """An argument of one included file must not reach another one with another meaning."""
    directory = install_gazebo(tmp_path, monkeypatch)
    found = respawned(directory, file.name)
    assert all(found.get(name, True) for name in ('suite', 'gazebo_truth'))
    assert not [name for name in COMMANDING & found.keys() if found[name]]
    assert not found.get('simulator', False)  # its end ends the launch
    every = respawned(directory, file.name, respawn='all')
    optional = {'torso_controller'} if file.name in OPTIONAL_TORSO else set()
    assert all(every[name] != (name in optional) for name in COMMANDING & every.keys())
    assert not any(respawned(directory, file.name, respawn='none').values())


@each(OF_NODES)
def test_every_launch_file_of_nodes_declares_respawn_and_passes_it_on(file: Path) -> None:
    root = ElementTree.parse(file).getroot()
    assert {arg.get('name'): arg.get('default') for arg in root.findall('arg')}[
        'respawn'] == 'estimators'
    for include in root.iter('include'):
        included = str(include.get('file')).rpartition('/')[2]
        passed = {arg.get('name'): arg.get('value') for arg in include.iter('arg')}
        if included.endswith('.launch.xml') and included != 'view.launch.xml':
            assert passed.get('respawn') == '$(var respawn)', included


def test_the_suite_ends_the_launch_unless_it_is_respawned(tmp_path: Path) -> None:
    for respawn in ('none', 'estimators', 'all'):
        planner = Planner(Context({'respawn': respawn}), ParameterFiles(tmp_path))
        planner.run(load(SHARE / 'launch' / 'bringup.launch.xml'))
        suite = planner.processes[0]
        assert (suite.shuts_down, suite.respawn) == (respawn == 'none', respawn != 'none')


def test_an_optional_page_is_not_respawned(tmp_path: Path) -> None:
    """Without viser it ends at once, which ros2 launch would repeat."""
    assert respawned(tmp_path, 'viewer.launch.xml') == {'viewer': True}
    assert respawned(tmp_path, 'viewer.launch.xml', optional='true') == {'viewer': False}


def test_the_simulation_runs_on_its_own_clock(tmp_path: Path) -> None:
    commands = planned(tmp_path, 'simulation.launch.xml', robot='g1', seed='7', hidden='masses')
    nodes = ['simulator', 'suite', 'gravity_compensation', 'torso_controller']
    assert list(commands) == nodes
    for node in nodes[1:]:
        assert given_parameters(commands[node])['launch.use_sim_time'] == 'true'
        assert given_parameters(commands[node])['launch.robot'] == 'g1'
    simulator = given_parameters(commands['simulator'])
    assert (simulator['launch.robot'], simulator['launch.seed']) == ('g1', '7')
    assert not [name for name in simulator if name.endswith('use_sim_time')]
    assert any(word.endswith('hidden/masses.yaml') for word in commands['simulator'])


def test_the_demo_hides_masses_and_prints_so(tmp_path: Path) -> None:
    commands = planned(tmp_path, 'demo.launch.xml', robot='talos', chapters='measure',
                       duration='5')
    assert list(commands) == ['simulator', 'suite', 'torso_controller', 'demo', 'viewer']
    assert given_parameters(commands['viewer'])['launch.optional'] == 'true'
    assert given_parameters(commands['demo']) == {
        'robot': 'talos', 'urdf': '', 'frame_prefix': '', 'chapters': 'measure', 'once': False,
        'hidden': 'masses', 'duration': 5.0, 'picture': '', 'use_sim_time': True}


@pytest.mark.parametrize(('chapter', 'node'), [
    ('gravity', 'gravity_compensation'), ('steps', 'gait_player')])
def test_the_demo_starts_what_its_chapters_need(tmp_path: Path, chapter: str, node: str) -> None:
    for chapters, expected in ((chapter, True), (f'measure, {chapter}', True), ('all', True),
                               ('none', False), ('measure', False)):
        assert (node in planned(tmp_path, 'demo.launch.xml', chapters=chapters)) == expected


# ------------------------------------------------------------------------- parameter files

def sections(file: Path) -> dict[str, dict[str, Any]]:
    """Parameters by node of a parameter file of ours."""
    document = yaml.safe_load(file.read_text())
    assert is_parameter_document(document)
    return {key.removeprefix('/**/'): value['ros__parameters']
            for key, value in document.items()}


def dataclass_of(node: str) -> Any:
    """Return the dataclass that declares a node's parameters."""
    module = importlib.import_module(f'biped_com_ros.nodes.{node}.node')
    if hasattr(module, 'PARAMETERS'):
        return module.PARAMETERS
    found = [value for name, value in vars(module).items()
             if name.endswith('Parameters') and dataclasses.is_dataclass(value)
             and value.__module__.startswith(f'{module.__package__}.')]
    assert len(found) == 1, f'{node} has {len(found)} dataclasses of parameters'
    return found[0]


def defaults(node: str) -> dict[str, Any]:
    return {field.name: field.default if field.default is not dataclasses.MISSING
            else field.default_factory() for field in dataclasses.fields(dataclass_of(node))}


def plain(value: Any) -> Any:
    """Value as files write it; [''] is an empty list of strings with a known type."""
    value = list(value) if isinstance(value, tuple) else value
    return [] if value == [''] else value


@each(PARAMETER_FILES)
def test_every_key_of_a_parameter_file_is_declared_and_has_its_type(file: Path) -> None:
    for node, values in sections(file).items():
        declared = defaults(node)
        unknown = values.keys() - declared.keys()
        assert not unknown, f'{file.name}: {node} does not have {sorted(unknown)}'
        for name, value in values.items():
            default = plain(declared[name])
            assert type(value) is type(default), f'{file.name}: {name}'
            if default and isinstance(default, list):
                assert {type(item) for item in value} <= {type(item) for item in default}


@each([file for file in PARAMETER_FILES if file.parent.name == 'config'])
def test_a_nodes_file_shows_every_parameter_with_its_default(file: Path) -> None:
    (node, values), = sections(file).items()
    assert node == file.stem
    assert {name: plain(value) for name, value in values.items()} == {
        name: plain(value) for name, value in defaults(node).items()}


# --------------------------------------------------------------------- nodes that are started

TALKER = """
import rclpy
from rclpy.node import Node
from std_msgs.msg import String

rclpy.init()
node = Node('talker')
publisher = node.create_publisher(String, 'chatter', 10)
declared = {name: node.declare_parameter(name, default).value for name, default in [
    ('word', ''), ('number', 0), ('ratio', 0.0), ('flag', False), ('group.deep', ''),
    ('items', ['']), ('from_file', 0), ('overridden', 0)]}
text = repr((node.get_fully_qualified_name(), declared))
node.create_timer(0.05, lambda: publisher.publish(String(data=text)))
try:
    rclpy.spin(node)
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    pass
"""

TALKER_LAUNCH = """<launch>
  <arg name="word"/>
  <group>
    <push_ros_namespace namespace="robot1"/>
    <set_remap from="chatter" to="chat"/>
    <node pkg="fake" exec="talker" name="speaker" namespace="sub" output="screen">
      <param from="$(dirname)/p.yaml"/>
      <param name="word" value="$(var word)" type="str"/>
      <param name="number" value="3"/>
      <param name="ratio" value="1" type="float"/>
      <param name="flag" value="true"/>
      <param name="group"><param name="deep" value="x"/></param>
      <param name="items" value="a,b" value-sep=","/>
      <param name="overridden" value="2"/>
    </node>
  </group>
</launch>"""


def assert_ended(launched: Launched) -> None:
    """Interrupt it: all ends cleanly, within three seconds of a quiet computer."""
    code, seconds = launched.interrupt()
    assert code == 0 and seconds < 3.0 * busyness(), launched.output
    for noise in ('still running', 'Traceback', 'FATAL', 'ERROR] [', 'WARN'):
        assert noise not in launched.output.partition('shutting down')[2], launched.output
    assert not any(Path(f'/proc/{pid}').exists() for pid in launched.pids())


def test_names_remappings_and_parameters_reach_a_real_node(
        tmp_path: Path, launch: Callable[..., Launched], observer: Any) -> None:
    directory = tmp_path / 'prefix' / 'lib' / 'fake'
    directory.mkdir(parents=True)
    (directory / 'talker').write_text(f'#!{sys.executable}\n{TALKER}')
    (directory / 'talker').chmod(0o755)
    (tmp_path / 'p.yaml').write_text(
        '/**/speaker:\n  ros__parameters: {from_file: 4, overridden: 1}\n'
        '/**/other:\n  ros__parameters: {from_file: 5}\n')
    (tmp_path / 'talker.launch.xml').write_text(TALKER_LAUNCH)
    launched = launch(str(tmp_path / 'talker.launch.xml'), 'word:=007',
                      prefix=str(tmp_path / 'prefix'))
    name, parameters = eval(observer.first(String, '/robot1/sub/chat').data)
    assert name == '/robot1/sub/speaker'
    assert parameters == {
        'word': '007', 'number': 3, 'ratio': 1.0, 'flag': True, 'group.deep': 'x',
        'items': ['a', 'b'], 'from_file': 4, 'overridden': 2}
    assert_ended(launched)


@pytest.mark.thorough
@pytest.mark.parametrize('composed, processes', [('true', 4), ('false', 6)])
def test_the_whole_runs_in_a_namespace_and_ends_at_ctrl_c(
        launch: Callable[..., Launched], observer: Any, composed: str, processes: int) -> None:
    from geometry_msgs.msg import PointStamped, WrenchStamped
    from tf2_msgs.msg import TFMessage
    launched = launch('simulation.launch.xml', 'namespace:=r1', f'composed:={composed}')
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
def test_a_robot_without_tendons_needs_no_torso_controller(
        launch: Callable[..., Launched], observer: Any) -> None:
    launched = launch('bringup.launch.xml', 'robot:=talos', 'namespace:=r3')
    observer.until_state('/r3/gravity_compensation', 'unconfigured')
    observer.until(lambda: "not started: robot 'talos' has no tendon-driven torso"
                   in launched.output, 'the reason')
    code, _ = launched.interrupt()
    assert code == 0, launched.output


@pytest.mark.thorough
def test_a_description_that_does_not_exist_ends_the_launch(
        launch: Callable[..., Launched]) -> None:
    launched = launch('simulation.launch.xml', 'robot:=biped', 'urdf:=/nowhere.urdf')
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
        argument: str, error: str, launch: Callable[..., Launched], tmp_path: Path) -> None:
    """Each of seven nodes reported it after 7 to 14 s, and the page had an address before."""
    broken = tmp_path / 'broken.yaml'
    broken.write_text('base_lnk: pelvis\n')
    launched = launch('demo.launch.xml', argument.format(broken=broken))
    assert launched.process.wait(LIMIT) == 2
    line, = launched.output.splitlines()
    assert line.startswith('run_launch: ') and error in line


# ------------------------------------------------------------------------------------ RViz

# Of rviz_common and rviz_default_plugins as in Jazzy.
RVIZ_CLASSES = {
    'rviz_common/Displays', 'rviz_common/Group', 'rviz_common/Selection', 'rviz_common/Time',
    'rviz_common/Tool Properties', 'rviz_common/Views',
    *(f'rviz_default_plugins/{name}' for name in (
        'Axes', 'Grid', 'Marker', 'MarkerArray', 'Odometry', 'PointStamped', 'Polygon', 'Pose',
        'PoseArray', 'RobotModel', 'TF', 'Wrench', 'FocusCamera', 'Interact', 'Measure',
        'MoveCamera', 'PublishPoint', 'Select', 'Orbit'))}


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a YAML document."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict):
        yield node
    for child in children:
        yield from walk(child)


def test_rviz_shows_what_the_nodes_publish() -> None:
    document = yaml.safe_load((SHARE / 'rviz' / 'biped.rviz').read_text())
    manager = document['Visualization Manager']
    assert manager['Global Options']['Fixed Frame'] == 'odom'
    classes = {node['Class'] for node in walk(document) if node.get('Class')}
    assert classes <= RVIZ_CLASSES
    topics = {node[key]['Value'] for node in walk(manager['Displays'])
              for key in ('Topic', 'Description Topic') if key in node}
    # Relative, so that the view of a namespaced robot shows that robot.
    assert not [topic for topic in topics if topic.startswith('/')]
    assert {'robot_description', 'com_estimator/markers', 'com_estimator/com',
            'wrench_aggregator/wrench', 'wrench_aggregator/left/wrench',
            'wrench_aggregator/right/cop', 'simulator/truth/com'} <= topics
