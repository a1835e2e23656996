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
The demo robot as Gazebo gets it, and what the launch files give to Gazebo.

Gazebo itself is not needed: libsdformat (Debian: libsdformat-dev), which does Gazebo's conversion
of URDF to SDF, is asked what is left of the robot, and Pinocchio what should be.
"""

from __future__ import annotations

import os
from pathlib import Path
import shutil
import subprocess
import sys
from xml.etree import ElementTree

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation
import xacro
import yaml

SHARE = package_share()
URDF = SHARE / 'urdf' / 'biped_gazebo.urdf.xacro'
CONTROLLERS = SHARE / 'config' / 'ros2_control'
CONFIG = load_robot_config('biped')


def urdf_text(**arguments: str) -> str:
    return xacro.process_file(str(URDF), mappings=arguments).toxml()


@pytest.fixture(scope='module')
def robot() -> ElementTree.Element:
    return ElementTree.fromstring(urdf_text())


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

    def convert(path: Path) -> ElementTree.Element:
        result = subprocess.run([program, path], text=True, capture_output=True, check=False)
        assert result.returncode == 0 and 'Error' not in result.stderr, result.stderr
        return ElementTree.fromstring(result.stdout)
    return convert


@pytest.fixture(scope='module')
def converted(as_sdf, tmp_path_factory) -> ElementTree.Element:
    path = tmp_path_factory.mktemp('urdf') / 'biped.urdf'
    path.write_text(urdf_text())
    return as_sdf(path).find('model')


def numbers(element: ElementTree.Element | None, size: int) -> np.ndarray:
    text = '' if element is None else element.text
    return np.array([float(word) for word in text.split()]) if text else np.zeros(size)


def pose_of(element: ElementTree.Element) -> Pose:
    values = numbers(element.find('pose'), 6)
    return Pose(Rotation.from_euler('xyz', values[3:]).as_matrix(), values[:3])


def inertia_of(link: ElementTree.Element) -> pin.Inertia:
    inertial = link.find('inertial')
    xx, xy, xz, yy, yz, zz = (float(inertial.find(f'inertia/{name}').text)
                              for name in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'))
    pose = pose_of(inertial)
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return pin.Inertia(float(inertial.find('mass').text), pose.position,
                       pose.rotation @ central @ pose.rotation.T)


def test_every_link_keeps_its_mass_and_inertia(converted):
    model = pin.buildModelFromXML(urdf_text())
    links = {link.get('name'): inertia_of(link) for link in converted.findall('link')}
    joints = {joint.get('name'): joint for joint in converted.findall('joint')}
    total = sum(inertia.mass for inertia in links.values())
    # Three and a half kilograms, and five links of a gram inside the backbone.
    assert total == pytest.approx(RobotModel.load('biped').mass + 0.005, rel=1e-9)
    # A foot is a link of its own only in SDF: put it back on its ankle.
    for side in 'lr':
        joint = joints[f'{side}_ankle_ft_fixed']
        offset = pose_of(joint)
        links[f'{side}_ankle'] += pin.SE3(offset.rotation, offset.position).act(
            links.pop(f'{side}_ankle_ft'))
    for name, inertia in zip(model.names, model.inertias):
        link = links.pop(joints[name].find('child').text if name in joints else 'base_link')
        np.testing.assert_allclose(link.toDynamicParameters(), inertia.toDynamicParameters(),
                                   atol=1e-12, err_msg=name)
    assert not links


def test_every_joint_is_where_it_was(converted):
    model = pin.buildModelFromXML(urdf_text())
    joints = {joint.get('name'): joint for joint in converted.findall('joint')}
    assert set(joints) == {*list(model.names)[1:], 'l_ankle_ft_fixed', 'r_ankle_ft_fixed'}
    for index, name in enumerate(model.names):
        if index == 0:
            continue
        joint, placement = joints[name], model.jointPlacements[index]
        np.testing.assert_allclose(pose_of(joint).position, placement.translation, atol=1e-12)
        np.testing.assert_allclose(pose_of(joint).rotation, placement.rotation, atol=1e-12)
        data = model.joints[index].createData()
        model.joints[index].calc(data, np.array([0.1]))
        axis = numbers(joint.find('axis/xyz'), 3)
        moves = data.S[:3] if joint.get('type') == 'prismatic' else data.S[3:]
        np.testing.assert_allclose(axis, moves, atol=1e-12, err_msg=name)
        limit = joint.find('axis/limit')
        for tag, value in (('lower', model.lowerPositionLimit[index - 1]),
                           ('upper', model.upperPositionLimit[index - 1]),
                           ('effort', model.effortLimit[index - 1]),
                           ('velocity', model.velocityLimit[index - 1])):
            assert float(limit.find(tag).text) == pytest.approx(value, rel=1e-6), (name, tag)


def test_sensors_are_where_the_robot_has_them(converted):
    model = RobotModel.load('biped')
    state = model.state(model.posture())
    for sensor in CONFIG.wrench_sensors.values():
        joint = next(joint for joint in converted.findall('joint')
                     if joint.findtext('sensor/topic') == sensor.topic)
        assert joint.find('child').text == sensor.frame and joint.get('type') == 'fixed'
        settings = joint.find('sensor/force_torque')
        assert settings.find('frame').text == 'child'
        assert settings.find('measure_direction').text == 'child_to_parent'
        assert sensor.sign == 1.0
    for imu in CONFIG.imus.values():
        link, found = next((link, sensor) for link in converted.findall('link')
                           for sensor in link.findall('sensor')
                           if sensor.findtext('topic') == imu.topic)
        imu_in_base = state.pose_in_base(link.get('name')) @ pose_of(found)
        wanted = state.pose_in_base(imu.frame)
        np.testing.assert_allclose(imu_in_base.position, wanted.position, atol=1e-12)
        np.testing.assert_allclose(imu_in_base.rotation, wanted.rotation, atol=1e-12)
        assert found.find('gz_frame_id').text == imu.frame


def test_the_world_is_valid_and_has_the_systems_that_sensors_need(as_sdf):
    world = as_sdf(SHARE / 'config' / 'gazebo' / 'flat.sdf').find('world')
    systems = {plugin.get('name') for plugin in world.findall('plugin')}
    assert {'gz::sim::systems::Physics', 'gz::sim::systems::Imu',
            'gz::sim::systems::ForceTorque', 'gz::sim::systems::UserCommands'} <= systems


def test_the_true_pose_of_the_base_is_odometry(robot):
    plugin = next(plugin for plugin in robot.findall('gazebo/plugin')
                  if plugin.get('name') == 'gz::sim::systems::OdometryPublisher')
    assert plugin.findtext('robot_base_frame') == CONFIG.base_link
    assert (plugin.findtext('odom_topic'), plugin.findtext('odom_frame')) == ('odom', 'odom')
    assert plugin.findtext('dimensions') == '3'


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


def test_the_launch_file_starts_the_nodes_of_any_robot_but_the_torsos():
    for file, gravity in (('gazebo', '$(var gravity)'), ('gazebo_gravity', 'active')):
        launch = ElementTree.parse(SHARE / 'launch' / f'{file}.launch.xml').getroot()
        given = {arg.get('name'): arg.get('value') for arg in launch.findall('group/include/arg')}
        assert given['gravity'] == gravity
    launch = ElementTree.parse(SHARE / 'launch' / 'gazebo.launch.xml').getroot()
    given = {arg.get('name'): arg.get('value') for arg in launch.findall('group/include/arg')}
    assert given['torso'] == 'false'
    assert given['gravity_compensation_params'] == '$(var controllers)'


def test_without_mass_in_the_backbone_gazebo_would_drop_the_upper_body(as_sdf, tmp_path):
    """The reason for virtual_mass; when this fails, it can go."""
    path = tmp_path / 'biped.urdf'
    path.write_text(urdf_text(virtual_mass='0'))
    assert 'torso' not in {link.get('name') for link in as_sdf(path).find('model')}


def test_the_bridge_brings_every_sensor_and_the_clock():
    entries = yaml.safe_load((SHARE / 'config' / 'gazebo' / 'bridge.yaml').read_text())
    wanted = {'/clock': 'rosgraph_msgs/msg/Clock', 'odom': 'nav_msgs/msg/Odometry'}
    wanted |= {imu.topic: 'sensor_msgs/msg/Imu' for imu in CONFIG.imus.values()}
    wanted |= {sensor.topic: 'geometry_msgs/msg/WrenchStamped'
               for sensor in CONFIG.wrench_sensors.values()}
    assert {entry['ros_topic_name']: entry['ros_type_name'] for entry in entries} == wanted
    for entry in entries:
        assert entry['gz_topic_name'].strip('/') == entry['ros_topic_name'].strip('/')
        assert entry['direction'] == 'GZ_TO_ROS'


@pytest.mark.parametrize('command', ['position', 'effort'])
def test_controllers_drive_every_joint_from_the_standing_posture(command):
    robot = ElementTree.fromstring(urdf_text(command=command))
    joints = robot.findall('ros2_control/joint')
    file = yaml.safe_load((CONTROLLERS / f'biped_gazebo_{command}.yaml').read_text())
    controller = file['/**/joint_trajectory_controller']['ros__parameters']
    assert controller['command_interfaces'] == [command]
    names = [joint.get('name') for joint in joints]
    assert sorted(controller['joints']) == sorted(names)
    assert sorted(names) == sorted(RobotModel.load('biped').joint_names)
    begin = {joint.get('name'): float(joint.findtext('state_interface/param')) for joint in joints}
    assert {name: value for name, value in begin.items() if value} == CONFIG.postures['stand']
    assert {joint.find('command_interface').get('name') for joint in joints} == {command}


def test_the_robot_is_put_down_just_above_the_ground():
    launch = ElementTree.parse(SHARE / 'launch' / 'gazebo.launch.xml').getroot()
    height = float(next(argument.get('default') for argument in launch.findall('arg')
                        if argument.get('name') == 'height'))
    model = RobotModel.load('biped')
    state = model.state(model.posture())
    soles = [state.pose_in_base(foot.sole).position[2] for foot in CONFIG.feet.values()]
    assert 0.0 < height + min(soles) < 0.01


@pytest.mark.parametrize('file', ['gazebo.launch.xml', 'gazebo_gravity.launch.xml'])
def test_without_gazebo_the_missing_package_is_named(file):
    if any('ros_gz_sim' in path for path in os.environ.get('AMENT_PREFIX_PATH', '').split(':')):
        pytest.skip('ros_gz_sim is installed')
    result = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', file], text=True,
        capture_output=True, check=False, timeout=30.0)
    assert result.returncode == 2
    assert "package 'ros_gz_sim' was not found; install it" in result.stderr
