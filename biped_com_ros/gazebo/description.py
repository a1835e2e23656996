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
URDF of a robot for Gazebo, made of the robot's own URDF and its YAML.

Two texts come of it. The *description* is what nodes and RViz use: the robot's URDF, with
ros2_control and with a little mass where Gazebo needs some. The *simulated* robot is what Gazebo
gets: hidden masses, soles as in the YAML, damping of joints, sensors and plugins.

Conversion to SDF drops moving links without mass with all that hangs on them, and keeps of fixed
joints only those that are requested: so such links get mass, and the joints above force-torque
sensors are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import math
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError
from biped_com_ros.core.geometry.pose import Array, footprint_position, Pose
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.config import RobotConfig, WrenchSensorConfig
from biped_com_ros.core.model.frames import sole_in_link
from biped_com_ros.core.model.inertias import consistent_inertia, inertia_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import (
    MOMENTS, numbers, parse_urdf, resolve_meshes, rpy_and_xyz_of)
from biped_com_ros.gazebo.gains import ServoGains
import numpy as np
import pinocchio as pin

VIRTUAL_MASS_SHARE = 1e-3 / 3.6
"""Mass of a link that has none, over that of the robot."""

VIRTUAL_RADIUS = 0.02
"""Radius of gyration of such a link, m."""

LEAST_RADIUS = 1e-4
"""Smallest radius of gyration of a link, m; Gazebo takes no point masses."""

SOLE_RADIUS = 0.005
"""Radius of the spheres at the corners of a sole, m."""

CLEARANCE = 0.006
"""Height of the lowest sole above the floor where the robot is put down, m."""

SENSOR_RATE = 250
"""Readings per second of each sensor; each passes Gazebo, bridge and DDS."""

_FOREIGN = ('gazebo', 'ros2_control', 'transmission')


@dataclass(frozen=True)
class GazeboRobot:
    """
    A robot for Gazebo.

    Attributes
    ----------
    description
        URDF for nodes, RViz and ros2_control.
    simulated
        URDF for Gazebo.
    root_in_world
        Pose in which the root link is put down.
    problems
        What was left out, for the log.

    """

    description: str
    simulated: str
    root_in_world: Pose
    problems: tuple[str, ...]


def gazebo_robot(model: RobotModel, gains: Mapping[str, ServoGains], *, command: str,
                 controllers: str, hidden: Mapping[str, NewInertial]) -> GazeboRobot:
    """
    Return a robot for Gazebo.

    Parameters
    ----------
    model
        The robot.
    gains
        By joint; damping and rotors go into the URDF where controllers command efforts.
    command
        Command interface of each joint: ``position`` or ``effort``.
    controllers
        Path of the controllers' parameter file.
    hidden
        Masses and centres of mass that the simulated robot has instead of the URDF's, by link.

    """
    cuts = sensor_joints(model)
    description = _description(model, command, {joint for joint, _ in cuts.values()})
    robot = parse_urdf(with_inertials(description, hidden))
    posture = model.configuration(model.usual_posture())
    for joint in robot.findall('joint'):
        name = str(joint.get('name'))
        if joint.get('type') != 'fixed' and name not in model.joint_names:
            _fix(joint, _position_of(model, posture, name))
        elif name in gains and command == 'effort':
            _damp(joint, gains[name].damping)
    for link in robot.findall('link'):
        _make_inertia_valid(link)
    groups = _rigid_groups(robot, {*model.joint_names})
    if command == 'effort':
        _add_rotors(robot, model, gains, groups)
    problems = resolve_meshes(robot)
    _replace_soles(robot, model.config, groups)
    _add_sensors(robot, model.config, cuts)
    _add_plugins(robot, model, controllers)
    return GazeboRobot(description, _text(robot), _put_down(model), problems)


def sensor_joints(model: RobotModel) -> dict[str, tuple[str, Pose]]:
    """Return by sensor the joint whose wrench it measures, and its pose in the link below that."""
    above = {child: joint for joints in model.children_of_links.values()
             for joint, child in joints}
    state = model.state(model.usual_posture())
    found: dict[str, tuple[str, Pose]] = {}
    for name, sensor in model.config.wrench_sensors.items():
        link = sensor.link or sensor.frame
        if set(sensor.factors) not in ({1.0}, {-1.0}):
            raise ConfigurationError(
                f'wrench_sensors.{name}: scale is {sensor.scale}, but Gazebo measures in N and '
                'N m along right-handed axes: use 1 or -1')
        if link not in above:
            raise ConfigurationError(
                f"wrench_sensors.{name}: link '{link}' is the root of the URDF, so no joint has "
                'its wrench; name the first link beyond the sensor')
        if other := next((key for key, (joint, _) in found.items() if joint == above[link]), None):
            raise ConfigurationError(
                f"wrench_sensors.{name} and {other} measure the same joint '{above[link]}'; "
                'Gazebo needs one for each')
        found[name] = (above[link],
                       state.pose_in_base(link).inverse() @ state.pose_in_base(sensor.frame))
    return found


# -- masses and joints

def _description(model: RobotModel, command: str, cuts: set[str]) -> str:
    robot = parse_urdf(model.urdf)
    for tag in _FOREIGN:
        for element in robot.findall(tag):
            robot.remove(element)
    links = {str(link.get('name')): link for link in robot.findall('link')}
    _drop_empty_inertials(links.values())
    for group in _rigid_groups(robot, {*model.joint_names, *cuts}):
        if not any(_mass(links[name]) > 0.0 for name in group):
            _give_mass(links[group[0]], VIRTUAL_MASS_SHARE * model.mass)
    robot.append(_ros2_control(model, command))
    return _text(robot)


def _rigid_groups(robot: ElementTree.Element, apart: set[str]) -> list[list[str]]:
    """Return the links that are one in Gazebo, the first one first; joints `apart` divide them."""
    joints = {str(joint.find('child').get('link')): joint  # type: ignore[union-attr]
              for joint in robot.findall('joint')}
    groups: dict[str, list[str]] = {}

    def first_of(link: str) -> str:
        while link in joints and joints[link].get('name') not in apart:
            link = str(joints[link].find('parent').get('link'))  # type: ignore[union-attr]
        return link

    for link in robot.findall('link'):
        name = str(link.get('name'))
        groups.setdefault(first_of(name), []).append(name)
    return [[first, *(name for name in group if name != first)] for first, group in groups.items()]


def _mass(link: ElementTree.Element) -> float:
    mass = link.find('inertial/mass')
    return 0.0 if mass is None else float(mass.get('value', '0'))


def _drop_empty_inertials(links: Iterable[ElementTree.Element]) -> None:
    """Remove inertials without mass, of which the conversion to SDF makes NaN (in place)."""
    for link in links:
        if _mass(link) <= 0.0:
            for inertial in link.findall('inertial'):
                link.remove(inertial)


def _give_mass(link: ElementTree.Element, mass: float) -> None:
    inertial = SubElement(link, 'inertial')
    SubElement(inertial, 'mass', value=_number(mass))
    moment = _number(mass * VIRTUAL_RADIUS ** 2)
    SubElement(inertial, 'inertia', ixx=moment, ixy='0', ixz='0', iyy=moment, iyz='0', izz=moment)


def _make_inertia_valid(link: ElementTree.Element) -> None:
    """Replace an inertia that no body has (in place): Gazebo refuses the whole robot for it."""
    inertial = link.find('inertial')
    if inertial is None or inertial.find('inertia') is None:
        return
    given = inertia_of(inertial, f"link '{link.get('name')}'")
    least = _mass(link) * LEAST_RADIUS ** 2
    if np.linalg.eigvalsh(given)[0] < least or _breaks_triangle(given):
        _set_inertia(inertial, consistent_inertia(given + least * np.eye(3)))


def _add_rotors(robot: ElementTree.Element, model: RobotModel, gains: Mapping[str, ServoGains],
                groups: Iterable[list[str]]) -> None:
    """Add to links the inertias of discs about the axes of the joints above them (in place)."""
    links = {str(link.get('name')): link for link in robot.findall('link')}
    group_of = {name: group for group in groups for name in group}
    state = model.state(model.usual_posture())
    for joint in robot.findall('joint'):
        gain = gains.get(str(joint.get('name')))
        if gain is None or not gain.rotor_inertia:
            continue
        child = str(joint.find('child').get('link'))  # type: ignore[union-attr]
        # That which has mass of those that move as one.
        carrier = next(name for name in group_of[child] if _mass(links[name]) > 0.0)
        inertial, where = links[carrier].find('inertial'), f"joint '{joint.get('name')}'"
        assert inertial is not None  # it has mass
        axis = numbers(joint.find('axis'), 'xyz', where, 3, '1 0 0')
        rpy, _ = rpy_and_xyz_of(inertial, where)
        axes = state.pose_in_base(carrier) @ Pose.from_rpy(rpy, np.zeros(3))
        axis = axes.rotation.T @ state.pose_in_base(child).rotation @ axis / np.linalg.norm(axis)
        disc = 0.5 * gain.rotor_inertia * (np.eye(3) + np.outer(axis, axis))
        _set_inertia(inertial, inertia_of(inertial, where) + disc)


def _set_inertia(inertial: ElementTree.Element, inertia: Array) -> None:
    element = inertial.find('inertia')
    if element is None:
        element = SubElement(inertial, 'inertia')
    for key, value in zip(MOMENTS, inertia[np.triu_indices(3)].tolist()):
        element.set(key, _number(value))


def _breaks_triangle(inertia: Array) -> bool:
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] + moments[1] < moments[2])


def _position_of(model: RobotModel, posture: Array, joint: str) -> float:
    pin_model = model.pin_model
    return float(posture[pin_model.joints[pin_model.getJointId(joint)].idx_q])


def _fix(joint: ElementTree.Element, position: float) -> None:
    """Make a joint that is locked, or follows another, a fixed one (in place)."""
    where = f"joint '{joint.get('name')}'"
    rpy, xyz = rpy_and_xyz_of(joint, where)
    axis = numbers(joint.find('axis'), 'xyz', where, 3, '1 0 0')
    axis = axis / np.linalg.norm(axis) * position
    moved = (Pose(np.eye(3), axis) if joint.get('type') == 'prismatic'
             else Pose(pin.exp3(axis), np.zeros(3)))
    at = Pose.from_rpy(rpy, xyz) @ moved
    for element in list(joint):
        if element.tag not in ('parent', 'child'):
            joint.remove(element)
    joint.set('type', 'fixed')
    joint.insert(0, ElementTree.Element('origin', _origin(at)))


def _damp(joint: ElementTree.Element, damping: float) -> None:
    dynamics = joint.find('dynamics')
    if dynamics is None:
        dynamics = SubElement(joint, 'dynamics')
    dynamics.set('damping', _number(damping))


def _put_down(model: RobotModel) -> Pose:
    """
    Return the pose of the root in the world.

    The base is upright, soles are just above the floor, and their middle is the origin: as nodes
    locate a robot that begins to stand.
    """
    state = model.state(model.usual_posture())
    soles = state.placements_in_base(model.soles)[:, 3]
    footprint = footprint_position(soles, [True] * len(soles))
    root = state.pose_in_base(model.frame_names[0])
    return Pose(np.eye(3), np.array((0.0, 0.0, CLEARANCE)) - footprint) @ root


# -- shapes

def _replace_soles(robot: ElementTree.Element, config: RobotConfig,
                   groups: Iterable[list[str]]) -> None:
    """
    Let feet touch the floor at the corners of their soles only (in place).

    What else of a foot touched it would pass the sensor by.
    """
    links = {str(link.get('name')): link for link in robot.findall('link')}
    soles = {foot.sole for foot in config.feet.values()}
    for group in groups:
        if soles & {*group}:
            for name in group:
                for collision in links[name].findall('collision'):
                    links[name].remove(collision)
    for foot_name, foot in config.feet.items():
        for i, (x, y) in enumerate(foot.polygon):
            collision = SubElement(links[foot.sole], 'collision', name=f'{foot_name}_sole_{i}')
            corner = sole_in_link(foot) @ Pose(np.eye(3), np.array((x, y, SOLE_RADIUS)))
            SubElement(collision, 'origin', _origin(corner))
            SubElement(SubElement(collision, 'geometry'), 'sphere', radius=_number(SOLE_RADIUS))


# -- ros2_control, sensors, plugins

def _ros2_control(model: RobotModel, command: str) -> ElementTree.Element:
    """Drive all joints, from the usual posture on; Gazebo has no tendons."""
    system = ElementTree.Element('ros2_control', name='gazebo', type='system')
    hardware = SubElement(system, 'hardware')
    SubElement(hardware, 'plugin').text = 'gz_ros2_control/GazeboSimSystem'
    for name, position in zip(model.joint_names, model.usual_posture().tolist()):
        joint = SubElement(system, 'joint', name=name)
        SubElement(joint, 'command_interface', name=command)
        state = SubElement(joint, 'state_interface', name='position')
        SubElement(state, 'param', name='initial_value').text = _number(position)
        for kind in ('velocity', 'effort'):
            SubElement(joint, 'state_interface', name=kind)
    return system


def _add_sensors(robot: ElementTree.Element, config: RobotConfig,
                 cuts: Mapping[str, tuple[str, Pose]]) -> None:
    fixed = {joint.get('name') for joint in robot.findall('joint') if joint.get('type') == 'fixed'}
    for name, sensor in config.wrench_sensors.items():
        joint, pose = cuts[name]
        reference = SubElement(robot, 'gazebo', reference=joint)
        if joint in fixed:
            SubElement(reference, 'preserveFixedJoint').text = 'true'
        element = _sensor(reference, name, 'force_torque', sensor.topic, sensor.frame, pose)
        _write_force_torque(SubElement(element, 'force_torque'), sensor)
    for name, imu in config.imus.items():
        reference = SubElement(robot, 'gazebo', reference=imu.frame)
        element = _sensor(reference, f'{name}_imu', 'imu', imu.topic, imu.frame, Pose.identity())
        # Else the orientation is that since the beginning, and only right if that was level.
        frame = SubElement(SubElement(element, 'imu'), 'orientation_reference_frame')
        SubElement(frame, 'localization').text = 'ENU'


def _write_force_torque(element: ElementTree.Element, sensor: WrenchSensorConfig) -> None:
    SubElement(element, 'frame').text = 'sensor'
    # What the foot does to the leg is upwards where the robot stands.
    SubElement(element, 'measure_direction').text = (
        'child_to_parent' if sensor.factors[2] > 0.0 else 'parent_to_child')


def _sensor(parent: ElementTree.Element, name: str, kind: str, topic: str, frame: str,
            pose: Pose) -> ElementTree.Element:
    sensor = SubElement(parent, 'sensor', name=name, type=kind)
    for tag, text in (('always_on', 'true'), ('update_rate', str(SENSOR_RATE)),
                      ('topic', topic), ('gz_frame_id', frame)):
        SubElement(sensor, tag).text = text
    if not np.allclose(np.vstack((pose.rotation - np.eye(3), pose.position)), 0.0, atol=1e-12):
        values = (*pose.position.tolist(), *pin.rpy.matrixToRpy(pose.rotation).tolist())
        SubElement(sensor, 'pose').text = _numbers(values)
    return sensor


def _add_plugins(robot: ElementTree.Element, model: RobotModel, controllers: str) -> None:
    control = SubElement(SubElement(robot, 'gazebo'), 'plugin',
                         filename='gz_ros2_control-system',
                         name='gz_ros2_control::GazeboSimROS2ControlPlugin')
    SubElement(control, 'parameters').text = controllers
    odometry = SubElement(SubElement(robot, 'gazebo'), 'plugin',
                          filename='gz-sim-odometry-publisher-system',
                          name='gz::sim::systems::OdometryPublisher')
    state, base = model.state(model.usual_posture()), model.config.base_link
    offset = state.pose_in_base(model.frame_names[0]).inverse() @ state.pose_in_base(base)
    for tag, text in (('odom_topic', 'odom'), ('odom_frame', 'odom'),
                      ('robot_base_frame', base), ('odom_publish_frequency', str(SENSOR_RATE)),
                      ('dimensions', '3'), ('xyz_offset', _numbers(offset.position.tolist())),
                      ('rpy_offset', _numbers(pin.rpy.matrixToRpy(offset.rotation).tolist()))):
        SubElement(odometry, tag).text = text


def _origin(pose: Pose) -> dict[str, str]:
    return {'xyz': _numbers(pose.position.tolist()),
            'rpy': _numbers(pin.rpy.matrixToRpy(np.asarray(pose.rotation)).tolist())}


def _numbers(values: Iterable[float]) -> str:
    return ' '.join(map(_number, values))


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise RobotDescriptionError(f'{value} cannot be written into a URDF')
    return repr(float(value))


def _text(robot: ElementTree.Element) -> str:
    return ElementTree.tostring(robot, encoding='unicode')
