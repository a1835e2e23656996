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
"""The nodes of a robot: one function per launch file."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.launching.arguments import LaunchArguments
from biped_com_ros.launching.programs import node, parameter_file, Program, Programs

ESTIMATORS = ('wrench_aggregator', 'com_estimator', 'zmp_monitor')
#: Of gravity_compensation, which ramps its efforts to zero, s.
_RAMP = 12.0
_TRAJECTORIES = 'joint_trajectory_controller/joint_trajectory'


def bringup(a: LaunchArguments) -> Programs:
    """
    Start the nodes of a robot.

    The estimators of foot wrenches, contacts, the centre of mass and stability run in one process;
    gravity_compensation, inactive until it is activated, and the torso's controller, if the robot
    has tendons, in processes of their own, because they command motors.
    """
    programs: Programs = [*_estimators(a)]
    if a.gravity != 'none':
        # Without a file of the user nobody requests to activate it.
        autostart = {'active': True, 'inactive': False}.get(
            a.gravity, None if a.gravity_compensation_params else False)
        programs += _gravity_compensation(
            replace(a, params=a.gravity_compensation_params, autostart=autostart), default=False)
    if a.torso:
        programs += torso(replace(a, commands=a.tendon_commands,
                                  joint_states=a.torso_joint_states, optional=True))
    return programs


def _estimators(a: LaunchArguments) -> list[Program]:
    files = {name: parameter_file(getattr(a, f'{name}_params'), f'{name}.yaml')
             for name in ESTIMATORS}
    respawns = a.respawn != 'none'
    if a.composed:  # no name: it would rename every node inside
        return [node(a, 'suite', *files.values(), nodes=ESTIMATORS, base_source=a.base_source,
                     respawns=respawns, ends_launch=not respawns)]
    return [node(a, name, file, respawns=respawns,
                 base_source='' if name == 'wrench_aggregator' else a.base_source)
            for name, file in files.items()]


def gravity_compensation(a: LaunchArguments) -> Programs:
    """Start gravity compensation for a robot whose estimators run (bringup)."""
    return _gravity_compensation(a, default=True)


def _gravity_compensation(a: LaunchArguments, default: bool) -> Programs:
    return [node(
        a, 'gravity_compensation', parameter_file(a.params, 'gravity_compensation.yaml'),
        defaults={'autostart': default}, respawns=a.respawn == 'all', sigterm_timeout=_RAMP,
        remappings={'~/commands': a.commands_topic,
                    '~/joint_trajectory': a.trajectory_topic or _TRAJECTORIES},
        support=a.support, distribution=a.distribution, controller=a.controller,
        trajectory_rate=a.trajectory_rate, autostart=a.autostart)]


def torso(a: LaunchArguments) -> Programs:
    """Start the controller of a tendon-driven torso."""
    default = 'torso/sabian' if a.robot == 'sabian' else 'torso_controller'
    controller = node(
        a, 'torso_controller', parameter_file(a.torso_controller_params, f'{default}.yaml'),
        remappings={'~/tendon_lengths': a.commands, '~/joint_states': a.joint_states},
        respawns=a.respawn == 'all' and not a.optional, autostart=a.autostart,
        optional=a.optional)
    joystick = Program(package='joy', executable='joy_node', namespace=controller.namespace)
    return [controller, joystick] if a.joy else [controller]


def gait(a: LaunchArguments) -> Programs:
    """Start the gait player, in a process of its own, because planning would block other nodes."""
    return [node(a, 'gait_player', parameter_file(a.params, 'gait_player.yaml'),
                 remappings={_TRAJECTORIES: a.trajectory_topic or _TRAJECTORIES},
                 respawns=a.respawn == 'all')]


def payload(a: LaunchArguments) -> Programs:
    """Start the estimator of a payload in a hand."""
    return [node(a, 'payload_estimator', parameter_file(a.params, 'payload_estimator.yaml'),
                 respawns=a.respawn != 'none')]


def lowstate(a: LaunchArguments) -> Programs:
    """Start what makes standard messages of those of a Unitree robot, or of a recording."""
    return [node(a, 'lowstate_bridge', parameter_file(a.params, 'lowstate_bridge.yaml'),
                 remappings={'lowstate': a.low_state_topic}, respawns=a.respawn != 'none',
                 recording=a.recording, check_crc=a.check_crc)]


def viewer(a: LaunchArguments) -> Programs:
    """Serve a page for the browser."""
    return [node(a, 'viewer', parameter_file(a.viewer_params, 'viewer.yaml'),
                 # Without viser an optional page ends at once, each time.
                 respawns=a.respawn != 'none' and not a.optional,
                 host=a.host, port=a.port, controls=a.controls, optional=a.optional)]


def calibrator(a: LaunchArguments, default: str) -> Program:
    """Return the node that estimates masses and centres of mass."""
    return node(
        a, 'com_calibrator', parameter_file(a.com_calibrator_params, default),
        respawns=a.respawn == 'all', move=a.move, trajectory_topic=a.trajectory_topic,
        poses=a.poses, postures=a.postures, approach=a.approach, lift_feet=a.lift_feet,
        hoist_service=a.hoist_service, torso_bend=a.torso_bend, autostart=a.autostart,
        directory=a.directory)
