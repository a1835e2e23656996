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
"""Simulated robots and their nodes, RViz, and robots in Gazebo: one function per launch file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
import shlex
import sys
from typing import TYPE_CHECKING

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.files import read_text, write_atomically
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import PACKAGE, package_share
from biped_com_ros.core.plain_yaml import load_yaml
from biped_com_ros.demo import chapter_names
from biped_com_ros.launching.arguments import LaunchArguments
from biped_com_ros.launching.nodes import (
    bringup, calibrator, gait, gravity_compensation, torso, viewer)
from biped_com_ros.launching.programs import (
    ForeignLaunchFile, namespace_of, node, parameter_file, Program, Programs, temporary_directory,
    tf_remappings)
from biped_com_ros.viz.rviz_file import with_arrows, with_prefix
import yaml

if TYPE_CHECKING:
    from biped_com_ros.core.model.robot import RobotModel


def view(a: LaunchArguments) -> Programs:
    """Show a robot in RViz, with the frames of its links if a robot is given."""
    namespace, time = namespace_of(a.namespace), {'use_sim_time': bool(a.use_sim_time)}
    programs: Programs = []
    if bool(a.robot) if a.state_publisher is None else a.state_publisher:
        programs.append(_state_publisher(a))
    programs.append(Program(
        package='rviz2', executable='rviz2', namespace=namespace, parameters=time,
        remappings=tf_remappings(a),
        arguments=('-d', str(_rviz_file(a)), '-f', f'{a.frame_prefix}odom')))
    return programs


def _state_publisher(a: LaunchArguments) -> Program:
    model = _model(a.robot, a.urdf)
    _warn(model.warnings)
    return Program(
        package='robot_state_publisher', executable='robot_state_publisher',
        namespace=namespace_of(a.namespace), remappings=tf_remappings(a), parameters={
            'robot_description': model.urdf,
            'frame_prefix': a.frame_prefix, 'use_sim_time': bool(a.use_sim_time)})


def _model(robot: str, urdf: str) -> RobotModel:
    # Slow to import, as below, and no other launch file needs it.
    from biped_com_ros.core.model.robot import RobotModel
    from biped_com_ros.core.model.urdf import load_urdf
    config = load_robot_config(robot)
    return RobotModel(config, load_urdf(config, urdf))


def _warn(problems: Iterable[str]) -> None:
    for problem in problems:
        print(f'warning: {problem}', file=sys.stderr)


def _rviz_file(a: LaunchArguments) -> Path:
    """Return the configuration of RViz, adapted to the robot if it is known."""
    source = Path(a.rviz_config or package_share() / 'rviz' / 'biped.rviz').expanduser()
    if not a.robot and not a.frame_prefix:
        return source
    document = load_yaml(read_text(source, 'configuration of RViz'), str(source))
    if a.robot:
        from biped_com_ros.viz.arrows import arrow_scale
        model = _model(a.robot, '' if a.urdf == 'topic' else a.urdf)
        scale = arrow_scale(model)
        document = with_arrows(document, scale, scale * model.mass * GRAVITY)
    path = temporary_directory('biped_com_rviz.') / 'robot.rviz'
    write_atomically(path, yaml.safe_dump(
        with_prefix(document, a.frame_prefix), sort_keys=False))
    return path


def gazebo(a: LaunchArguments) -> Programs:
    """
    Start a robot in Gazebo with ros2_control, and its nodes but for torso_controller.

    Gazebo has no tendons. URDF, controllers and bridge are made from the robot's YAML. It needs an
    installed ROS 2 with ros_gz_sim, ros_gz_bridge, gz_ros2_control, ros2_controllers,
    controller_manager and robot_state_publisher.
    """
    from biped_com_ros.gazebo.files import HIDDEN, write_files
    if a.hidden not in HIDDEN:
        raise UnknownNameError("value of argument 'hidden'", a.hidden, HIDDEN)
    files = temporary_directory('biped_com_gazebo.')
    _warn(write_files(
        files, robot=a.robot, urdf=a.urdf, command=a.command, hidden=a.hidden, load=a.load,
        seed=a.seed or 0, height=a.height, controllers=a.controllers, bridge=a.bridge))
    world = a.world or package_share() / 'config' / 'gazebo' / 'flat.sdf'
    # From the topic, because links without mass have some in Gazebo.
    nodes = bringup(replace(
        a, urdf='topic', use_sim_time=True, torso=False,
        gravity_compensation_params=str(files / 'controllers.yaml')))
    return [
        ForeignLaunchFile(package='ros_gz_sim', file='gz_sim.launch.py', arguments={
            # It is given to a shell.
            'gz_args': f'-r {"" if a.gui else "-s "}{shlex.quote(str(world))}',
            'on_exit_shutdown': 'true'}),
        Program(package='robot_state_publisher', executable='robot_state_publisher',
                files=(files / 'description.yaml',), parameters={'use_sim_time': True}),
        # From a file: with hidden masses it differs from the description that nodes use.
        Program(package='ros_gz_sim', executable='create', files=(files / 'create.yaml',)),
        Program(package='ros_gz_bridge', executable='parameter_bridge', parameters={
            'config_file': str(files / 'bridge.yaml'), 'use_sim_time': True}),
        Program(package='controller_manager', executable='spawner', arguments=(
            'joint_state_broadcaster', 'joint_trajectory_controller', '--param-file',
            str(files / 'controllers.yaml'))),
        *nodes, _truth(a, files),
        *(view(replace(a, state_publisher=False, use_sim_time=True)) if a.view else [])]


def gazebo_gravity(a: LaunchArguments) -> Programs:
    """Start a robot in Gazebo that is commanded by efforts, with gravity compensation."""
    return gazebo(replace(a, command='effort', gravity='active'))


def _truth(a: LaunchArguments, files: Path) -> Program:
    """
    Return what publishes the true centre of mass.

    It is of the masses in Gazebo, at the true pose of the base. It takes over no calibrated masses
    and no payload.
    """
    name = 'gazebo_truth'
    estimator = node(
        replace(a, urdf=str(files / 'robot.urdf'), use_sim_time=True, namespace='',
                frame_prefix=''), 'com_estimator', respawns=a.respawn != 'none',
        base_source='odometry', fused_com=False, publish_base_tf=False, publish_link_tf=False,
        tf_rate=0.0)
    return replace(
        estimator, name=name, enclave=f'/{PACKAGE}/{name}',
        parameters={**estimator.parameters, 'payload_topic': ''}, remappings={
            'calibrated_description': '~/calibrated_description', **{
                f'~/{topic}': f'simulator/truth/{topic}'
                for topic in ('com', 'com_velocity', 'link_coms')}})


#: Time that the simulator has to complete a recording, s.
_RECORDING = 20.0
#: Rate down to which that of the sensors falls in demos on a slow computer, Hz.
_LEAST_RATE = 100.0
_OTHER_JOINT_STATES = 'torso_controller/joint_states'


def simulation(a: LaunchArguments) -> Programs:
    """Start a simulated robot and its nodes (bringup)."""
    # In a process of its own: the physics and the other nodes must not block each other.
    files = [parameter_file(a.simulator_params, 'simulator.yaml')]
    if a.hidden:
        files.append(parameter_file('', f'hidden/{a.hidden}.yaml'))
    simulator = node(
        replace(a, use_sim_time=None), 'simulator', *files, ends_launch=True,
        sigkill_timeout=_RECORDING, hidden_errors=a.load, seed=a.seed, rate=a.rate,
        least_rate=a.least_rate,
        virtual_joints=a.virtual_joints)
    return [simulator, *bringup(replace(
        a, use_sim_time=True, torso_joint_states=(
            'joint_states' if a.virtual_joints is False else _OTHER_JOINT_STATES)))]


def _alone(a: LaunchArguments) -> Programs:
    """Return a simulated robot whose motors are commanded by what else is started."""
    return simulation(replace(a, gravity='none', torso=False))


def calibration(a: LaunchArguments) -> Programs:
    """Estimate the masses and centres of mass of the links, and write a corrected URDF."""
    if not a.simulation:
        return [calibrator(a, 'com_calibrator.yaml')]
    return [*_alone(_seeded(a, hidden='masses')), calibrator(a, 'demo/simulated_calibration.yaml')]


def two_pose(a: LaunchArguments) -> Programs:
    """Measure the total centre of mass of a simulated robot in postures that differ by a lean."""
    return [*_alone(_seeded(a)),
            calibrator(replace(a, move=True, use_sim_time=True), 'demo/two_pose.yaml')]


def gravity_simulation(a: LaunchArguments) -> Programs:
    """Start a simulated robot with gravity compensation."""
    return [*_alone(_seeded(a)), *gravity_compensation(replace(
        a, params=a.gravity_compensation_params, autostart=a.active, use_sim_time=True))]


def gait_simulation(a: LaunchArguments) -> Programs:
    """Start a simulated robot with gravity compensation and the gait player."""
    through = 'gravity_compensation/reference_trajectory' if a.trajectory_rate else ''
    return [*gravity_simulation(a), *gait(replace(
        a, params=a.gait_player_params, trajectory_topic=through, use_sim_time=True))]


def torso_demo(a: LaunchArguments) -> Programs:
    """
    Bend the tendon-driven torso of a simulated robot; the CoM of the whole body follows.

    With ``tour:=false``, control the torso by ``ros2 run biped_com_ros torso_teleop`` in another
    terminal, or by a joystick on the topic joy.
    """
    timed = replace(a, use_sim_time=True)
    # The torso's virtual joints come from torso_controller only: no encoder measures a backbone.
    # It is not started by bringup: here a robot without a torso is an error.
    programs = [*_alone(_slowing(replace(a, virtual_joints=False))), *torso(timed)]
    teleop = {'tour': node(timed, 'torso_teleop', motion='tour', ends_launch=True),
              'keys': node(a, 'torso_teleop', ends_launch=True)}
    programs += [program for name, program in teleop.items() if getattr(a, name)]
    return programs + _shown(a)


def demo(a: LaunchArguments) -> Programs:
    """
    Show a simulated robot in chapters: it is measured, calibrated, pushed, ...

    Nodes of single chapters are idle until their chapter begins. torso_controller is activated
    after the last chapter: until then the chapters bend the torso.
    """
    # In chapter rail the hands of the biped have virtual sensors.
    chapters = set(chapter_names(a.chapters))
    own = str(package_share() / 'config/demo/rail.yaml') if 'rail' in chapters else 'biped'
    a = replace(a, robot=a.robot or own)
    seeded = _slowing(_seeded(a, hidden='masses'))
    timed = replace(a, use_sim_time=True, autostart=False)
    programs = [*_alone(seeded), *torso(replace(
        timed, joint_states=_OTHER_JOINT_STATES, optional=True))]
    if chapters & {'gravity', 'steps', 'slope'}:
        programs += gravity_compensation(replace(timed, params=a.gravity_compensation_params))
    if chapters & {'steps', 'slope'}:
        programs += gait(replace(timed, params=a.gait_player_params))
    if 'calibration' in chapters:
        real = 'real_' if seeded.hidden == 'real' else ''
        programs.append(calibrator(replace(
            # Of 8, 0.35 mm rms of the horizontal CoM are left in other poses, of 10, 0.27; and its
            # report calls fewer few (FEW_POSES, which is not imported, since it needs Pinocchio).
            timed, move=True, poses=10, hoist_service='simulator/hang', torso_bend=0.2,
            log_level='error'), f'demo/{real}calibration.yaml'))
    programs.append(node(
        replace(a, use_sim_time=True), 'demo', ends_launch=True, chapters=a.chapters, once=a.once,
        hidden=seeded.hidden, duration=a.duration, picture=a.picture))
    return programs + _shown(a)


def _seeded(a: LaunchArguments, hidden: str = '') -> LaunchArguments:
    """Return arguments with errors and seed, unless the user's file has these."""
    if a.simulator_params:
        return a
    return replace(a, hidden=a.hidden or hidden, seed=1 if a.seed is None else a.seed)


def _slowing(a: LaunchArguments) -> LaunchArguments:
    """Return arguments with a rate that falls on a slow computer, unless one is given."""
    if a.rate or a.simulator_params or a.least_rate is not None:
        return a
    return replace(a, least_rate=_LEAST_RATE)


def _shown(a: LaunchArguments) -> Programs:
    """Return page and RViz."""
    programs = viewer(replace(a, optional=True)) if a.viewer else []
    return programs + (view(replace(a, use_sim_time=True)) if a.view else [])
