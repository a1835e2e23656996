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
"""The arguments of the launch files: each name has one meaning, said here."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass, field
import typing
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError

_SEPARATOR = ';'
_BOOLEANS = {'true': True, 'false': False}


def _argument(default: Any, description: str, *choices: str) -> Any:
    return field(default=default, metadata={'description': description, 'choices': choices})


def _name(default: str, description: str) -> Any:
    """Return the argument that is the name of a topic or service."""
    return field(default=default, metadata={
        'description': description, 'choices': (), 'is_name': True})


def _params(node: str) -> Any:
    return _argument('', f'Parameter file of {node}; empty: {node}.yaml of this package')


@dataclass(frozen=True, kw_only=True)
class LaunchArguments:
    """
    Values of the launch arguments; '', None and () mean that one was not given.

    A launch file takes some of them (:class:`~biped_com_ros.launching.files.LaunchFile`). What was
    not given is not passed to any node, so that the parameter file decides.
    """

    robot: str = _argument(
        '', 'Name of a robot of this package, or path of a robot YAML; empty: that of the '
        'parameter file, in the demo biped, for chapter rail with virtual sensors in its hands')
    urdf: str = _argument(
        '', "Overrides the robot's URDF: a path, a package:// URI, or 'topic' for the topic "
        'robot_description')
    namespace: str = _argument('', 'Namespace of the nodes and of all their topics, TF included')
    frame_prefix: str = _argument(
        '', "Put before the names of all frames, such as 'robot1/'; TF is then on the global "
        'topic /tf, for several robots in one tree')
    use_sim_time: bool | None = _argument(None, 'Use the time on /clock')
    log_level: str = _argument(
        'info', 'Lowest severity that is logged', 'debug', 'info', 'warn', 'error')
    respawn: str = _argument(
        'estimators', 'What is started again when it ends: estimators (also the page), all (also '
        'what commands the robot), or none: then the end of the suite ends the launch', 'none',
        'estimators', 'all')

    # -- estimators
    base_source: str = _argument(
        '', 'Source of the pose of the base; imu: orientation from the IMU, position from the '
        'soles in contact; filter: gyroscope, accelerometer, joints and foot wrenches',
        'imu', 'filter', 'odometry', 'tf', 'fixed')
    composed: bool = _argument(
        True, 'Run the estimators in one process, with about half of the CPU load; false: one '
        'process per node')
    wrench_aggregator_params: str = _params('wrench_aggregator')
    com_estimator_params: str = _params('com_estimator')
    zmp_monitor_params: str = _params('zmp_monitor')

    # -- gravity_compensation
    gravity: str = _argument(
        '', 'gravity_compensation; inactive: until a lifecycle manager or the page activates it; '
        'active: at once; none: not started; empty: as autostart of your parameter file says, '
        'inactive without one', 'inactive', 'active', 'none')
    support: str = _argument(
        '', 'Supporting contacts: auto (measured), fixed (the base is held), all, or names '
        'separated by commas')
    distribution: str = _argument(
        '', 'How the weight is distributed over the contacts; bounded: within friction, soles and '
        'effort limits', 'closed_form', 'measured', 'bounded')
    controller: str = _argument('', 'Effort controller that has to run before anything is sent')
    commands_topic: str = _name(
        'effort_controller/commands', 'Topic for commands (std_msgs/Float64MultiArray)')
    trajectory_topic: str = _name(
        '', 'Topic for trajectories; empty: joint_trajectory_controller/joint_trajectory. For '
        'other nodes gravity_compensation/reference_trajectory, where that node sends efforts in '
        'trajectories')
    trajectory_rate: float | None = _argument(
        None, 'Rate of trajectories with efforts, Hz, in place of commands; motions then have to '
        'go through gravity_compensation')
    gravity_compensation_params: str = _params('gravity_compensation')
    active: bool | None = _argument(
        None, 'Activate gravity_compensation at once; false: a lifecycle manager does it; empty: '
        'as autostart of its parameter file says')

    # -- torso_controller
    torso: bool = _argument(True, 'Start torso_controller if the robot has a tendon-driven torso')
    tendon_commands: str = _name('tendon_controller/commands', "Topic for the tendons' lengths")
    torso_joint_states: str = _name(
        'joint_states', 'Topic on which torso_controller publishes the virtual joints of the '
        'backbone')
    commands: str = _name('tendon_controller/commands', "Topic for the tendons' lengths")
    joint_states: str = _name('joint_states', 'Topic for the virtual joints of the backbone')
    torso_controller_params: str = _argument(
        '', 'Parameter file of torso_controller; empty: torso_controller.yaml of this package, or '
        'torso/sabian.yaml for robot sabian')
    joy: bool = _argument(False, 'Start joy_node of the package joy, for a joystick')

    # -- nodes that are started alone
    params: str = _argument('', "Parameter file of the node; empty: this package's")
    autostart: bool | None = _argument(
        None, 'Activate the node, or start the calibration, at once; false: a lifecycle manager, '
        'or the service com_calibrator/start, does it')
    optional: bool | None = _argument(
        None, 'Exit without an error if the robot has no tendon-driven torso, or viser is not '
        'installed')
    gait_player_params: str = _params('gait_player')
    low_state_topic: str = _name(
        '/lowstate', "Topic of the robot's messages, in place of lowstate")
    recording: str = _argument(
        '', 'Play this rosbag2 (directory, .mcap or .db3) instead of subscribing')
    check_crc: bool | None = _argument(
        None, 'Refuse messages with a wrong checksum; simulators leave it at 0')

    # -- calibration
    move: bool | None = _argument(
        None, 'Move the robot by trajectories; false: a person moves it from pose to pose')
    poses: int | None = _argument(None, 'Number of poses')
    postures: tuple[str, ...] = _argument(
        (), "Postures of the robot's YAML instead of planned poses, such as 'a;b;c'")
    lift_feet: bool | None = _argument(
        None, 'Include poses on one foot; the robot must be able to balance on it')
    approach: str = _argument(
        '', 'Visit each pose once (shortest), or twice with joints coming from opposite sides '
        '(both)', 'both', 'shortest')
    hoist_service: str = _name(
        '', 'Service (std_srvs/SetBool) that lifts and lowers the robot; empty: a person does it')
    torso_bend: float | None = _argument(None, 'Bend of a tendon torso, rad')
    directory: str = _argument(
        '', 'Parent of the directory, named after the robot, for captures and results')
    com_calibrator_params: str = _params('com_calibrator')
    simulation: bool = _argument(False, 'Start a simulated robot, too')

    # -- simulator
    hidden: str = _argument(
        '', 'How the simulated robot differs from its URDF; masses: masses and CoMs; real: also '
        'what is wrong with real sensors and drives (not in Gazebo); empty: as simulator_params '
        'says; without that masses in demo and calibration',
        'none', 'masses', 'real')
    load: tuple[str, ...] = _argument(
        (), "Load that is not in the URDF: link, mass (kg) and position in the link's frame (m), "
        "such as 'l_hand 0.5 0 0 0'")
    seed: int | None = _argument(
        None, 'Seed of all random numbers; empty: that of simulator_params; without that 1 in '
        'demos')
    rate: float | None = _argument(
        None, 'Messages of each sensor per second of simulated time, Hz; half as many, half the '
        'load of the nodes; empty: as simulator_params says, by default 500')
    least_rate: float | None = _argument(
        None, 'Rate down to which that of the sensors falls where the computer is too slow, Hz; '
        '0: it stays; empty: as simulator_params says; in demos 100 unless that or rate is given')
    virtual_joints: bool | None = _argument(
        None, "Whether the simulator's joint_states have the torso's virtual joints; if false, "
        'torso_controller publishes them there')
    simulator_params: str = _params('simulator')

    # -- demos
    chapters: str = _argument(
        'all', 'Chapters to run, separated by commas: measure, calibration, gravity, steps, '
        'slope, rail, push; or all, but slope and rail; or none: the robot stands')
    once: bool = _argument(False, 'End after the last chapter')
    duration: float = _argument(0.0, 'Time after which the demo ends, s; 0: at Ctrl-C')
    picture: str = _argument('', 'SVG file for the last table with results; empty: none')
    tour: bool = _argument(
        True, 'Move the torso to the border of its range and around; false: by the topic joy')
    keys: bool = _argument(
        False, 'Control the torso by the arrow keys of this terminal; needs run_launch '
        '--foreground torso_teleop')

    # -- page and RViz
    viewer: bool = _argument(True, 'Serve a page for the browser, if viser is installed')
    port: int | None = _argument(None, 'Port of the page; if it is in use, the next free one')
    host: str = _argument(
        '', 'Address to serve: 127.0.0.1 for this computer only, 0.0.0.0 for the whole network, '
        'with a token')
    controls: str = _argument(
        '', 'Groups of controls that may be used: all, none, or some of tare, feedforward, '
        'simulator, torso, walk, record, calibration, separated by commas')
    viewer_params: str = _params('viewer')
    view: bool = _argument(False, 'Show it in RViz (needs an installed ROS 2)')
    state_publisher: bool | None = _argument(
        None, 'Start robot_state_publisher for the frames of the links; by default if a robot is '
        'given')
    rviz_config: str = _argument(
        '', 'Configuration of RViz, whose frames get frame_prefix; empty: that of this package')

    # -- Gazebo
    gui: bool = _argument(True, "Show Gazebo's window")
    command: str = _argument(
        'position', 'Command interface of the controllers', 'position', 'effort')
    height: float | None = _argument(
        None, 'Initial height of the root link, m; empty: the soles are just above the ground')
    controllers: str = _argument(
        '', 'Parameter file of the controllers, and of gravity_compensation; empty: made for the '
        'robot')
    bridge: str = _argument('', 'Configuration file of ros_gz_bridge; empty: made for the robot')
    world: str = _argument(
        '', "World file of Gazebo; needs the systems of this package's flat.sdf, which is the "
        'default')


FIELDS = {field.name: field for field in dataclasses.fields(LaunchArguments)}
_TYPES = typing.get_type_hints(LaunchArguments)


def choices_of(name: str) -> tuple[str, ...]:
    """Return what an argument may be; () for anything."""
    return ('true', 'false') if _is(name, bool) else FIELDS[name].metadata['choices']


def text_of(value: Any) -> str:
    """Return a value as it is written on a command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return _SEPARATOR.join(value)
    return '' if value is None else str(value)


def read_arguments(given: Mapping[str, str], defaults: Mapping[str, Any]) -> LaunchArguments:
    """
    Return the arguments of a launch file.

    Parameters
    ----------
    given
        Texts by name; an empty one counts as not given.
    defaults
        In place of those of :class:`LaunchArguments`.

    Raises
    ------
    ConfigurationError
        If a value is not valid; the message names it.

    """
    values = {name: _read(name, text) for name, text in given.items() if text}
    return LaunchArguments(**{**defaults, **values})


def _is(name: str, kind: type) -> bool:
    return kind in (_TYPES[name], *typing.get_args(_TYPES[name]))


def _read(name: str, text: str) -> Any:
    choices = choices_of(name)
    if choices and text not in choices:
        raise UnknownNameError(f"value of argument '{name}'", text, choices)
    if _is(name, bool):
        return _BOOLEANS[text]
    if typing.get_origin(_TYPES[name]) is tuple:
        return tuple(part.strip() for part in text.split(_SEPARATOR) if part.strip())
    for kind, what in ((int, 'a whole number'), (float, 'a number')):
        if _is(name, kind):
            try:
                return kind(text)
            except ValueError:
                raise ConfigurationError(f"argument '{name}': '{text}' is not {what}") from None
    return text
