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
"""
Robots as Gazebo gets them, and what the launch files give to Gazebo.

Gazebo itself is not needed: libsdformat (Debian: libsdformat-dev), which does Gazebo's conversion
of URDF to SDF, is asked what is left of a robot, and Pinocchio what should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
import shlex
import shutil
import subprocess
import sys
from xml.etree import ElementTree

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.frames import sole_in_link
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import link_inertials, parse_urdf
from biped_com_ros.gazebo.files import write_files
from biped_com_ros.launching import run
from biped_com_ros.launching.files import LAUNCH_FILES
from biped_com_ros.launching.programs import ForeignLaunchFile
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation
from support.gazebo_files import gazebo_files, GazeboFiles
from support.planned import parameters_in_files, planned
import yaml

SHARE = package_share()
#: Sensors at fixed and at moving joints; joints that follow others; soles without a frame; a base
#: whose x axis points backwards; inertias that no body has; a sensor between foot and sole.
ROBOTS = ('biped', 'talos', 'g1', 'icub', 'romeo', 'three_link')
pytestmark = pytest.mark.thorough


@dataclass(frozen=True)
class InGazebo:
    """A robot: its model, the files for Gazebo, and the SDF that Gazebo makes of its URDF."""

    model: RobotModel
    files: GazeboFiles
    sdf: ElementTree.Element


@pytest.fixture(scope='module')
def as_sdf(tmp_path_factory):
    """Return a function that asks libsdformat what Gazebo makes of a file."""
    compiler, config = shutil.which('g++'), shutil.which('pkg-config')
    if not compiler or not config:
        pytest.skip('g++ and pkg-config are needed to ask libsdformat')
    packages = subprocess.run([config, '--list-package-names'], text=True, capture_output=True,
                              check=True).stdout.split()
    found = max((name for name in packages if name.startswith('sdformat')), default=None)
    if found is None:
        pytest.skip('libsdformat is not installed (apt install libsdformat-dev)')
    flags = subprocess.run([config, '--cflags', '--libs', found], text=True, check=True,
                           capture_output=True).stdout.split()
    program = tmp_path_factory.mktemp('sdf') / 'as_sdf'
    subprocess.run([compiler, '-std=c++17', Path(__file__).parents[1] / 'data' / 'as_sdf.cc',
                    '-o', program, *flags], check=True)

    def convert(path):
        result = subprocess.run([program, path], text=True, capture_output=True, check=False)
        assert result.returncode == 0 and 'Error' not in result.stderr, result.stderr
        return ElementTree.fromstring(result.stdout)
    return convert


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request, as_sdf, tmp_path_factory):
    directory = tmp_path_factory.mktemp('gazebo')
    files = gazebo_files(directory, request.param, hidden='masses', seed=2)
    return InGazebo(RobotModel.load(request.param), files,
                    as_sdf(directory / 'robot.urdf').find('model'))


def numbers(element, size):
    text = '' if element is None else element.text
    return np.array([float(word) for word in text.split()]) if text else np.zeros(size)


def pose_of(element):
    values = numbers(element.find('pose'), 6)
    return Pose(Rotation.from_euler('xyz', values[3:]).as_matrix(), values[:3])


def inertia_of(link):
    inertial = link.find('inertial')
    xx, xy, xz, yy, yz, zz = (float(inertial.find(f'inertia/{name}').text)
                              for name in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'))
    pose = pose_of(inertial)
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return pin.Inertia(float(inertial.find('mass').text), pose.position,
                       pose.rotation @ central @ pose.rotation.T)


def preserved(robot):
    """Go through the fixed joints that are left, which have force-torque sensors."""
    return (joint for joint in robot.sdf.findall('joint') if joint.get('type') == 'fixed')


def test_every_link_keeps_its_mass_and_inertia(robot):
    model = pin.buildModelFromXML(robot.files.simulated)
    links = {link.get('name'): inertia_of(link) for link in robot.sdf.findall('link')}
    children = {joint.get('name'): joint.findtext('child') for joint in robot.sdf.findall('joint')}
    # A link below a sensor at a fixed joint is one of its own only in SDF: put it back.
    for joint in reversed(list(preserved(robot))):
        pose = pose_of(joint)
        links[joint.findtext('parent')] += pin.SE3(pose.rotation, pose.position).act(
            links.pop(joint.findtext('child')))
    for name, inertia in zip(model.names, model.inertias):
        link = links.pop(children.get(name, robot.model.frame_names[0]))
        np.testing.assert_allclose(link.toDynamicParameters(), inertia.toDynamicParameters(),
                                   atol=1e-10, err_msg=name)
    assert not links


def mass_of(urdf):
    return sum(inertial.mass for inertial in link_inertials(parse_urdf(urdf)))


def test_hidden_masses_are_in_gazebo_only(robot):
    virtual = mass_of(robot.files.description) - robot.model.mass
    assert -1e-9 <= virtual < 2e-3 * robot.model.mass
    assert 0.003 < abs(mass_of(robot.files.simulated) / robot.model.mass - 1.0) < 0.2


def test_every_joint_is_where_it_was(robot):
    model, nominal = pin.buildModelFromXML(robot.files.simulated), robot.model
    joints = {joint.get('name'): joint for joint in robot.sdf.findall('joint')}
    assert set(list(model.names)[1:]) == set(nominal.joint_names)
    assert set(joints) == {*nominal.joint_names,
                           *(joint.get('name') for joint in preserved(robot))}
    poses = poses_in_root(robot)
    state = nominal.state(np.zeros(len(nominal.joint_names)))
    root = state.pose_in_base(nominal.frame_names[0])
    for index, name in enumerate(model.names):
        if index == 0:
            continue
        joint = joints[name]
        child = joint.findtext('child')
        assert_same(root @ poses[child], state.pose_in_base(child), name)
        data = model.joints[index].createData()
        model.joints[index].calc(data, pin.neutral(model)[:1])
        axis = numbers(joint.find('axis/xyz'), 3)
        moves = data.S[:3] if joint.get('type') == 'prismatic' else data.S[3:]
        np.testing.assert_allclose(axis, moves, atol=1e-6, err_msg=name)
        limit = joint.find('axis/limit')
        if joint.get('type') == 'revolute' and abs(model.lowerPositionLimit[index - 1]) < 1e9:
            for tag, value in (('lower', model.lowerPositionLimit[index - 1]),
                               ('upper', model.upperPositionLimit[index - 1]),
                               ('effort', model.effortLimit[index - 1]),
                               ('velocity', model.velocityLimit[index - 1])):
                assert float(limit.find(tag).text) == pytest.approx(value, rel=1e-5), (name, tag)
        damping = robot.files.gains[name]['ff_velocity_scale']
        assert float(joint.findtext('axis/dynamics/damping')) == pytest.approx(damping)


def poses_in_root(robot):
    """Return the poses of SDF's links at zero positions."""
    poses = {robot.model.frame_names[0]: Pose.identity()}
    pending = list(robot.sdf.findall('joint'))
    while pending:
        joint = pending.pop(0)
        if joint.findtext('parent') not in poses:
            pending.append(joint)
            continue
        # The joint is at its child, whose pose is relative to the link above, or to a joint.
        poses[joint.findtext('child')] = poses[joint.findtext('parent')] @ pose_of(joint)
    return poses


def test_sensors_are_where_the_robot_has_them(robot):
    model, poses = robot.model, poses_in_root(robot)
    state = model.state(np.zeros(len(model.joint_names)))
    root_in_base = state.pose_in_base(model.frame_names[0])
    for name, sensor in model.config.wrench_sensors.items():
        joint = next(joint for joint in robot.sdf.findall('joint')
                     if joint.findtext('sensor/topic') == sensor.topic)
        link = sensor.link or sensor.frame
        assert joint.findtext('child') == link, name
        settings = joint.find('sensor/force_torque')
        assert settings.find('frame').text == 'sensor'
        assert settings.find('measure_direction').text == 'child_to_parent'
        assert sensor.scale == 1.0
        place = root_in_base @ poses[link] @ pose_of(joint.find('sensor'))
        assert_same(place, state.pose_in_base(sensor.frame), name)
    for name, imu in model.config.imus.items():
        link, found = next((link, sensor) for link in robot.sdf.findall('link')
                           for sensor in link.findall('sensor')
                           if sensor.findtext('topic') == imu.topic)
        place = root_in_base @ poses[link.get('name')] @ pose_of(found)
        assert_same(place, state.pose_in_base(imu.frame), name)
        assert found.find('gz_frame_id').text == imu.frame
        # Else relative to the beginning, which is wrong for an IMU that is mounted upside down.
        assert found.findtext('imu/orientation_reference_frame/localization') == 'ENU'


def assert_same(pose, other, what):
    np.testing.assert_allclose(pose.position, other.position, atol=1e-5, err_msg=what)
    np.testing.assert_allclose(pose.rotation, other.rotation, atol=1e-5, err_msg=what)


def test_soles_touch_the_floor_at_their_corners(robot):
    model, poses = robot.model, poses_in_root(robot)
    for name, foot in model.config.feet.items():
        state = model.state(np.zeros(len(model.joint_names)))
        sole_in_base = state.pose_in_base(foot.sole) @ sole_in_link(foot)
        found = []
        for link in robot.sdf.findall('link'):
            in_sole = (sole_in_base.inverse() @ state.pose_in_base(model.frame_names[0])
                       @ poses[link.get('name')])
            for shape in link.findall('collision'):
                radius = shape.find('geometry/sphere/radius')
                if radius is not None and f'{name}_sole' in shape.get('name'):
                    centre = (in_sole @ pose_of(shape)).position
                    found.append(centre - (0.0, 0.0, float(radius.text)))
        corners = np.column_stack((np.array(foot.polygon), np.zeros(len(foot.polygon))))
        np.testing.assert_allclose(sorted(map(tuple, found)), sorted(map(tuple, corners)),
                                   atol=1e-5)


def test_the_true_pose_of_the_base_is_odometry(robot):
    plugin = next(plugin for plugin in robot.sdf.findall('plugin')
                  if plugin.get('name') == 'gz::sim::systems::OdometryPublisher')
    assert plugin.findtext('robot_base_frame') == robot.model.config.base_link
    assert (plugin.findtext('odom_topic'), plugin.findtext('odom_frame')) == ('odom', 'odom')
    assert plugin.findtext('dimensions') == '3'


def test_shapes_are_files_that_exist(robot):
    uris = [uri.text for uri in robot.sdf.iter('uri')]
    assert all(Path(uri.removeprefix('file://')).is_file() for uri in uris)
    assert bool(uris) == ('<mesh' in robot.model.urdf)


def test_the_world_is_valid_and_has_the_systems_that_sensors_need(as_sdf):
    world = as_sdf(SHARE / 'config' / 'gazebo' / 'flat.sdf').find('world')
    systems = {plugin.get('name') for plugin in world.findall('plugin')}
    assert {'gz::sim::systems::Physics', 'gz::sim::systems::Imu',
            'gz::sim::systems::ForceTorque', 'gz::sim::systems::UserCommands'} <= systems


def test_the_world_has_the_structure_and_the_gravity_that_the_nodes_expect():
    # Also where libsdformat is not installed.
    root = ElementTree.parse(SHARE / 'config' / 'gazebo' / 'flat.sdf').getroot()
    assert root.tag == 'sdf' and float(root.get('version')) <= 1.9
    world, = root.findall('world')
    assert {child.tag for child in world} <= {'gravity', 'physics', 'plugin', 'light', 'model'}
    assert [float(word) for word in world.findtext('gravity').split()] == [0.0, 0.0, -GRAVITY]
    for plugin in world.findall('plugin'):
        assert plugin.get('filename').startswith('gz-sim-') and plugin.get('name')
    assert world.find('model/link/collision/geometry/plane/normal').text == '0 0 1'


def test_a_world_may_have_a_space_in_its_path_and_closing_gazebo_ends_the_launch(tmp_path):
    world = tmp_path / 'my worlds' / 'flat.sdf'
    world.parent.mkdir()
    world.write_text((SHARE / 'config' / 'gazebo' / 'flat.sdf').read_text())
    simulator, = (part for part in LAUNCH_FILES['gazebo'].plan({'world': str(world)})
                  if isinstance(part, ForeignLaunchFile))
    # gz_sim.launch.py gives them to a shell.
    assert shlex.split(simulator.arguments['gz_args'])[-1] == str(world)
    assert simulator.arguments['on_exit_shutdown'] == 'true'


def test_the_bridge_brings_every_sensor_and_the_clock(robot):
    config = robot.model.config
    expected = {'/clock': 'rosgraph_msgs/msg/Clock', 'odom': 'nav_msgs/msg/Odometry'}
    expected |= {imu.topic: 'sensor_msgs/msg/Imu' for imu in config.imus.values()}
    expected |= {sensor.topic: 'geometry_msgs/msg/WrenchStamped'
                 for sensor in config.wrench_sensors.values()}
    entries = robot.files.bridge
    assert {entry['ros_topic_name']: entry['ros_type_name'] for entry in entries} == expected
    for entry in entries:
        assert entry['gz_topic_name'].strip('/') == entry['ros_topic_name'].strip('/')
        assert entry['direction'] == 'GZ_TO_ROS'


@pytest.mark.parametrize('command', ['position', 'effort'])
@pytest.mark.parametrize('name', ROBOTS)
def test_controllers_drive_every_joint_from_the_standing_posture(tmp_path, name, command):
    model = RobotModel.load(name)
    files = gazebo_files(tmp_path, name, command=command)
    controller = files.controllers['/**/joint_trajectory_controller']['ros__parameters']
    assert controller['command_interfaces'] == [command]
    assert controller['joints'] == list(model.joint_names)
    for text in (files.description, files.simulated):
        joints = ElementTree.fromstring(text).findall('ros2_control/joint')
        assert [joint.get('name') for joint in joints] == controller['joints']
        begin = [float(joint.findtext('state_interface/param')) for joint in joints]
        assert begin == pytest.approx(model.posture())
        assert {joint.find('command_interface').get('name') for joint in joints} == {command}
    plugin, = (element for element in ElementTree.fromstring(files.simulated).iter('plugin')
               if element.get('filename') == 'gz_ros2_control-system')
    assert plugin.findtext('parameters') == str(tmp_path / 'controllers.yaml')


def test_the_example_is_what_is_made_for_the_demo_robot(tmp_path):
    shipped = SHARE / 'config' / 'ros2_control' / 'biped_gazebo_effort.yaml'
    assert yaml.safe_load(shipped.read_text()) == gazebo_files(tmp_path).controllers


@pytest.mark.parametrize('name', ROBOTS)
def test_the_robot_is_put_down_upright_and_just_above_the_ground(tmp_path, name):
    model, create = RobotModel.load(name), gazebo_files(tmp_path, name).create
    root = Pose.from_rpy(np.array([create.get(key, 0.0) for key in 'RPY']),
                         np.array([create.get(key, 0.0) for key in 'xyz']))
    state = model.state(model.posture())
    base = root @ state.pose_in_base(model.frame_names[0]).inverse()
    np.testing.assert_allclose(base.rotation, np.eye(3), atol=1e-9)
    soles = state.in_world(base).sole_placements_in_world[:, 3]
    assert 0.0 < soles[:, 2].min() < 0.01
    np.testing.assert_allclose(soles.mean(axis=0)[:2], 0.0, atol=1e-9)
    raised = gazebo_files(tmp_path, name, height=1.7)
    assert raised.create['z'] == 1.7


def test_files_of_ones_own_are_used_instead(tmp_path):
    (tmp_path / 'mine.yaml').write_text('/**/joint_trajectory_controller: {ros__parameters: {}}')
    files = gazebo_files(tmp_path / 'out', controllers=tmp_path / 'mine.yaml')
    assert files.controllers == yaml.safe_load((tmp_path / 'mine.yaml').read_text())


@pytest.mark.parametrize(('robot', 'options', 'message'), [
    ('nobody', {}, "unknown robot 'nobody'"),
    ('talos', {'load': ['hand 1 0 0 0']}, "'hand'"),
    ('talos', {'controllers': 'none.yaml'}, "'none.yaml' cannot be read")])
def test_what_is_wrong_is_named(tmp_path, robot, options, message):
    with pytest.raises(BipedComError, match=message):
        write_files(tmp_path, robot, **options)


def test_hidden_masses_need_mujoco(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'biped_com_ros.sim.description', None)
    with pytest.raises(ConfigurationError, match='hidden masses: '):
        write_files(tmp_path, 'biped', hidden='masses')


# -- the launch files

def directory_of(programs):
    """Return where the files are that a launch file made."""
    return Path(parameters_in_files(programs['create'])['file']).parent


def test_the_launch_file_starts_a_robot_with_hidden_masses_and_its_nodes(tmp_path):
    programs = planned('gazebo_gravity', robot='talos', hidden='masses', seed='2',
                       load='torso_2_link 1.5 0 0 0.1')
    assert list(programs) == ['robot_state_publisher', 'create', 'parameter_bridge', 'spawner',
                              'suite', 'gravity_compensation', 'com_estimator']
    nominal, made = RobotModel.load('talos'), directory_of(programs)
    description = parameters_in_files(programs['robot_state_publisher'])['robot_description']
    create = parameters_in_files(programs['create'])
    simulated = Path(create['file']).read_text()
    assert RobotModel(nominal.config, description).mass == pytest.approx(nominal.mass, rel=1e-3)
    without = gazebo_files(tmp_path, 'talos', hidden='masses', seed=2).simulated
    assert mass_of(simulated) == pytest.approx(mass_of(without) + 1.5)
    assert create['name'] == 'talos' and create['z'] > 1.0
    assert str(made / 'controllers.yaml') in programs['spawner'].arguments
    assert programs['gravity_compensation'].files == (made / 'controllers.yaml',)
    assert programs['parameter_bridge'].parameters['config_file'] == str(made / 'bridge.yaml')
    for node in ('suite', 'gravity_compensation'):
        assert programs[node].parameters.items() >= {
            'robot': 'talos', 'urdf': 'topic', 'use_sim_time': True}.items()
    assert programs['gravity_compensation'].parameters['autostart'] is True


@pytest.mark.parametrize('file', ['gazebo', 'gazebo_gravity'])
def test_rviz_shows_it_if_enabled(file):
    programs = planned(file, view='true')
    # No second robot_state_publisher with the plain description, which would be the last here.
    description = parameters_in_files(programs['robot_state_publisher'])['robot_description']
    assert '<ros2_control' in description
    assert programs['rviz2'].parameters['use_sim_time'] is True


def test_rviz_beside_a_running_robot_publishes_no_description():
    """That of the demo robot replaced the robot's own."""
    assert list(planned('view')) == ['rviz2']
    programs = planned('view', robot='talos', frame_prefix='a/')
    values = programs['robot_state_publisher'].parameters
    assert values['robot_description'].strip() == RobotModel.load('talos').urdf.strip()
    assert values['frame_prefix'] == 'a/' and 'a/odom' in programs['rviz2'].arguments


def test_without_arguments_it_is_the_demo_robot_driven_by_position():
    programs = planned('gazebo')
    controllers = yaml.safe_load((directory_of(programs) / 'controllers.yaml').read_text())
    controller = controllers['/**/joint_trajectory_controller']['ros__parameters']
    assert parameters_in_files(programs['create'])['name'] == 'biped'
    assert controller['command_interfaces'] == ['position']
    gravity = programs['gravity_compensation']
    assert gravity.defaults['autostart'] is False and 'autostart' not in gravity.parameters


@pytest.mark.parametrize('file', ['gazebo', 'gazebo_gravity'])
def test_without_ros2_launch_the_reason_is_named(file, capsys):
    assert run.main([file]) == 2
    assert "'gz_sim.launch.py' of package 'ros_gz_sim' is a launch file of ROS 2: use ros2" in (
        capsys.readouterr().err)
