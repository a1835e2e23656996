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
Writes what ``gazebo.launch.py`` needs for a robot.

``description.yaml`` is for robot_state_publisher, ``robot.urdf`` and ``create.yaml`` are for
Gazebo, ``bridge.yaml`` is for ros_gz_bridge, and ``controllers.yaml`` for gz_ros2_control and
gravity_compensation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import make_directory, read_text, write_atomically
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial
from biped_com_ros.core.model.config import load_robot_config, RobotConfig
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.gazebo.description import gazebo_robot, GazeboRobot
from biped_com_ros.gazebo.gains import servo_gains, ServoGains
import numpy as np
import pinocchio as pin
import yaml

UPDATE_RATE = 500
"""Updates of the controllers per second."""

TRAJECTORY_RATE = 100.0
"""Trajectories with efforts per second, of gravity_compensation."""

HIDDEN = ('none', 'masses')


def write_files(directory: str | Path, robot: str, *, urdf: str = '', command: str = 'position',
                hidden: str = 'none', load: Sequence[str] = (), seed: int = 0,
                height: float | None = None, controllers: str = '',
                bridge: str = '') -> tuple[str, ...]:
    """
    Write the files for a robot.

    Parameters
    ----------
    directory
        Where; it is made if it is missing.
    robot, urdf
        Name of the robot or path of its YAML; what overrides its URDF.
    command
        Command interface of the controllers.
    hidden, load, seed
        See `hidden_inertials`.
    height
        Initial height of the root link, m; None: the soles are just above the ground.
    controllers, bridge
        Files that are copied in place of generated ones.

    Returns
    -------
    tuple of str
        What Gazebo will do otherwise than the robot, or is wrong in its description.

    Raises
    ------
    BipedComError
        If the robot cannot be used in Gazebo.

    """
    config = load_robot_config(robot)
    model = RobotModel(config, load_urdf(config, urdf))
    directory = Path(directory).expanduser().resolve()
    make_directory(directory)
    inertials = hidden_inertials(model.urdf, hidden, load, seed)
    gains = servo_gains(model, UPDATE_RATE)
    made = gazebo_robot(model, gains, command=command, hidden=inertials,
                        controllers=str(directory / 'controllers.yaml'))
    for name, text in {
            'robot.urdf': made.simulated,
            'description.yaml': _yaml(
                {'/**': _parameters({'robot_description': made.description})}),
            'create.yaml': _yaml({'/**': _parameters(
                _creation(config.name, made, directory, height))}),
            'controllers.yaml': _given(controllers) or _yaml(
                controller_parameters(model, gains, command)),
            'bridge.yaml': _given(bridge) or _yaml(bridge_entries(config))}.items():
        write_atomically(directory / name, text)
    return *model.warnings, *made.problems


def controller_parameters(model: RobotModel, gains: Mapping[str, ServoGains],
                          command: str) -> dict[str, Any]:
    """Return the parameters of the controllers and, with efforts, of gravity_compensation."""
    controller: dict[str, Any] = {
        'command_interfaces': [command], 'state_interfaces': ['position', 'velocity'],
        # gait_player moves the legs alone.
        'allow_partial_joints_goal': True, 'joints': list(model.joint_names)}
    document = {
        '/**/controller_manager': _parameters({
            'update_rate': UPDATE_RATE,
            'joint_state_broadcaster': {'type': 'joint_state_broadcaster/JointStateBroadcaster'},
            'joint_trajectory_controller': {
                'type': 'joint_trajectory_controller/JointTrajectoryController'}}),
        '/**/joint_trajectory_controller': _parameters(controller)}
    if command == 'effort':
        controller['interpolate_from_desired_state'] = True
        # The damping is in the joints; what it takes from a motion is fed forward.
        controller['gains'] = {
            name: {'p': gain.stiffness, 'd': 0.0, 'ff_velocity_scale': gain.damping}
            for name, gain in gains.items()}
        document['/**/gravity_compensation'] = _parameters({
            'controller': 'joint_trajectory_controller',
            'command_joints': list(model.joint_names), 'trajectory_rate': TRAJECTORY_RATE})
    return document


def bridge_entries(config: RobotConfig) -> list[dict[str, str]]:
    """Return what ros_gz_bridge takes from Gazebo to ROS, under the names of the robot's YAML."""
    topics = [('/clock', 'rosgraph_msgs/msg/Clock', 'gz.msgs.Clock'),
              ('odom', 'nav_msgs/msg/Odometry', 'gz.msgs.Odometry'),
              *((imu.topic, 'sensor_msgs/msg/Imu', 'gz.msgs.IMU')
                for imu in config.imus.values()),
              *((sensor.topic, 'geometry_msgs/msg/WrenchStamped', 'gz.msgs.Wrench')
                for sensor in config.wrench_sensors.values())]
    return [{'ros_topic_name': topic, 'gz_topic_name': f'/{topic.strip("/")}',
             'ros_type_name': kind, 'gz_type_name': gazebo_kind, 'direction': 'GZ_TO_ROS'}
            for topic, kind, gazebo_kind in topics]


def hidden_inertials(urdf: str, hidden: str, load: Sequence[str],
                     seed: int) -> dict[str, NewInertial]:
    """
    Return the masses and centres of mass that the simulated robot has instead of the URDF's.

    The same seed gives the same robot as in the package's own simulator.

    Parameters
    ----------
    urdf
        Text.
    hidden
        ``none`` or ``masses``: name of a file in ``config/hidden``.
    load
        Loads that are not in the URDF: link, mass (kg) and position in the link's frame (m).
    seed
        Of the random numbers.

    """
    if seed < 0:
        raise ConfigurationError(f'seed is {seed}: it must be 0 or above')
    if hidden == 'none' and not load:
        return {}
    try:
        from biped_com_ros.sim.description import parse
        from biped_com_ros.sim.hidden import apply, draw, parse_errors
    except ImportError as error:
        raise ConfigurationError(f'hidden masses: {error}') from None
    document = yaml.safe_load(read_text(
        package_share() / 'config' / 'hidden' / f'{hidden}.yaml', 'hidden errors'))
    sigmas = document['/**/simulator']['ros__parameters']
    nominal = parse(urdf)
    errors = draw(nominal, seed, sigmas['hidden_com_sigma'], sigmas['hidden_mass_sigma'])
    true = apply(apply(nominal, errors), parse_errors(list(load)))
    return {name: NewInertial(true.links[name].mass, true.links[name].com)
            for name, link in nominal.links.items() if link.mass > 0.0}


def _creation(name: str, robot: GazeboRobot, directory: Path,
              height: float | None) -> dict[str, Any]:
    """Return the parameters of ros_gz_sim's create: what is put down, and where."""
    position = robot.root_in_world.position.tolist()
    if height is not None:
        position[2] = height
    angles = pin.rpy.matrixToRpy(np.asarray(robot.root_in_world.rotation)).tolist()
    return {'file': str(directory / 'robot.urdf'), 'name': name,
            **{key: float(value) for key, value in zip(
                ('x', 'y', 'z', 'R', 'P', 'Y'), (*position, *angles)) if abs(value) > 1e-9}}


def _given(path: str) -> str:
    return read_text(Path(path).expanduser(), 'parameter file') if path else ''


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False)


def _parameters(values: dict[str, Any]) -> dict[str, Any]:
    return {'ros__parameters': values}
