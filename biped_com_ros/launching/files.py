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
"""The launch files: what each starts, and which arguments it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.model.config import check_topic, load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.demo import chapter_names
from biped_com_ros.launching import nodes, simulations
from biped_com_ros.launching.arguments import (
    choices_of, FIELDS, LaunchArguments, read_arguments, text_of)
from biped_com_ros.launching.programs import Programs

_ROBOT = ('robot', 'urdf', 'namespace', 'frame_prefix', 'respawn', 'log_level')
_NODE = (*_ROBOT, 'use_sim_time')
_ESTIMATORS = ('base_source', 'composed', 'wrench_aggregator_params', 'com_estimator_params',
               'zmp_monitor_params')
_GRAVITY = ('support', 'distribution', 'controller', 'commands_topic', 'trajectory_topic',
            'trajectory_rate')
_TORSO = ('torso_controller_params', 'joy')
_BRINGUP = (*_ROBOT, *_ESTIMATORS, 'gravity', *_GRAVITY, 'gravity_compensation_params', 'torso',
            'tendon_commands', *_TORSO)
_SIMULATOR = ('hidden', 'load', 'seed', 'rate', 'least_rate', 'simulator_params')
_ALONE = (*_ROBOT, *_SIMULATOR, *_ESTIMATORS)
_CALIBRATION = ('move', 'trajectory_topic', 'poses', 'postures', 'lift_feet', 'approach',
                'hoist_service', 'torso_bend', 'autostart', 'directory', 'com_calibrator_params')
_PAGE = ('port', 'host', 'controls', 'viewer_params')
_VIEW = ('state_publisher', 'rviz_config')
#: Gazebo has no tendons, and its bridge and controllers no namespace.
_NOT_IN_GAZEBO = ('torso', 'tendon_commands', *_TORSO, 'namespace', 'frame_prefix')
_GAZEBO = ('hidden', 'load', 'seed', 'gui', 'height', 'controllers', 'bridge', 'world', 'view',
           'rviz_config')


@dataclass(frozen=True)
class LaunchFile:
    """
    A launch file.

    Attributes
    ----------
    name
        Without ``.launch.py``.
    programs
        Returns what it starts.
    takes
        Names of its arguments, see :class:`~biped_com_ros.launching.arguments.LaunchArguments`.
    defaults
        Other ones than there.

    """

    name: str
    programs: Callable[[LaunchArguments], Programs]
    takes: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def plan(self, given: Mapping[str, str]) -> Programs:
        """
        Return what it starts.

        Raises
        ------
        ConfigurationError
            If an argument does not exist or has no valid value, or a file is missing.

        """
        for name in given:
            if name not in self.takes:
                raise UnknownNameError(
                    'argument', name, self.takes, where=f'{self.name}.launch.py')
        arguments = read_arguments(given, self.defaults)
        _check(arguments)
        return self.programs(arguments)

    def default(self, name: str) -> str:
        """Return the default of an argument as text."""
        return text_of(self.defaults.get(name, FIELDS[name].default))

    def choices(self, name: str) -> tuple[str, ...]:
        """Return what an argument may be, with '' where it need not be given; () for anything."""
        choices = choices_of(name)
        return choices if not choices or self.default(name) else ('', *choices)


def _check(a: LaunchArguments) -> None:
    """Refuse at once what each node would refuse when it has started."""
    chapter_names(a.chapters)
    for name, argument in FIELDS.items():
        if argument.metadata.get('is_name') and getattr(a, name):
            check_topic(f"argument '{name}'", getattr(a, name).removeprefix('~/'))
    if a.robot:
        load_robot_config(a.robot)


def _file(programs: Callable[[LaunchArguments], Programs], *takes: str,
          without: tuple[str, ...] = (), **defaults: Any) -> LaunchFile:
    names = dict.fromkeys(name for name in takes if name not in without)
    return LaunchFile(programs.__name__, programs, tuple(names), defaults)


_ALL = (
    _file(nodes.bringup, *_BRINGUP, 'use_sim_time', 'torso_joint_states'),
    _file(nodes.gravity_compensation, *_NODE, *_GRAVITY, 'autostart', 'params'),
    _file(nodes.torso, *_NODE, *_TORSO, 'commands', 'joint_states', 'optional', 'autostart'),
    _file(nodes.gait, *_NODE, 'trajectory_topic', 'params'),
    _file(nodes.payload, *_NODE, 'params'),
    _file(nodes.lowstate, *_NODE, 'low_state_topic', 'recording', 'check_crc', 'params'),
    _file(nodes.viewer, *_NODE, *_PAGE, 'optional'),
    _file(simulations.simulation, *_BRINGUP, *_SIMULATOR, 'virtual_joints'),
    _file(simulations.calibration, 'simulation', *_NODE, *_CALIBRATION, *_ALONE),
    _file(simulations.two_pose, *_ALONE, *_CALIBRATION, without=('move',), robot='three_link',
          postures=('a', 'b', 'c')),
    _file(simulations.gravity_simulation, *_ALONE, *_GRAVITY, 'gravity_compensation_params',
          'active', robot='biped'),
    _file(simulations.gait_simulation, *_ALONE, *_GRAVITY, 'gravity_compensation_params', 'active',
          'gait_player_params', without=('trajectory_topic',), robot='biped'),
    _file(simulations.torso_demo, 'tour', 'keys', *_ALONE, *_TORSO, 'commands', 'joint_states',
          'optional', 'autostart', 'viewer', *_PAGE, 'view', *_VIEW, robot='biped',
          viewer=False),
    _file(simulations.demo, 'chapters', 'once', 'duration', 'picture', *_ALONE, *_GRAVITY,
          'gravity_compensation_params', 'commands', *_TORSO, 'gait_player_params', 'postures',
          'lift_feet', 'approach', 'viewer', *_PAGE, 'view', *_VIEW,
          without=('trajectory_topic', 'trajectory_rate')),
    _file(simulations.view, *_NODE, *_VIEW, without=('respawn', 'log_level'), use_sim_time=False),
    _file(simulations.gazebo, *_BRINGUP, 'command', *_GAZEBO,
          without=(*_NOT_IN_GAZEBO, 'gravity_compensation_params'),
          robot='biped', hidden='none'),
    _file(simulations.gazebo_gravity, *_BRINGUP, *_GAZEBO,
          without=(*_NOT_IN_GAZEBO, 'gravity', 'gravity_compensation_params'),
          robot='biped', hidden='none'))
#: By name, without ``.launch.py``.
LAUNCH_FILES: Mapping[str, LaunchFile] = {file.name: file for file in _ALL}


def launch_file(name: str) -> LaunchFile:
    """
    Return a launch file of this package by its name, with or without ``.launch.py``, or its path.

    Raises
    ------
    UnknownNameError
        If there is none.

    """
    own, stem = package_share() / 'launch', Path(name).name.removesuffix('.launch.py')
    is_path = Path(name).name != name
    if stem not in LAUNCH_FILES or (
            is_path and Path(name).resolve() != (own / f'{stem}.launch.py').resolve()):
        raise UnknownNameError(
            'launch file', name, [f'{known}.launch.py' for known in LAUNCH_FILES], where=str(own))
    return LAUNCH_FILES[stem]
