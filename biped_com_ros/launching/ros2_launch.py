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
Gives what a launch file starts to ROS 2's launch.

``ros2 launch`` ends every launch whose process shuts it down with exit code 0. An exception in the
handler of an event shuts everything down, too, and then the exit code is 1 (launch 3.4.3,
launch_service.py): so a process whose end ends the launch, and that failed, raises one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from biped_com_ros.launching.arguments import FIELDS
from biped_com_ros.launching.files import LAUNCH_FILES, LaunchFile
from biped_com_ros.launching.programs import (
    ForeignLaunchFile, Program, RESPAWN_DELAY, temporary_directory)
from launch import LaunchContext, LaunchDescription  # type: ignore[attr-defined]
from launch.actions import (
    DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction, RegisterEventHandler,
    Shutdown)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch_ros.actions import Node


def description(name: str) -> LaunchDescription:
    """Return what ``ros2 launch`` executes for a launch file of this package."""
    file = LAUNCH_FILES[name]
    arguments = [DeclareLaunchArgument(
        argument, default_value=file.default(argument),
        description=FIELDS[argument].metadata['description'],
        choices=file.choices(argument) or None) for argument in file.takes]
    return LaunchDescription([*arguments, OpaqueFunction(function=_start, args=[file])])


def _start(context: LaunchContext, file: LaunchFile) -> list[Any]:
    """Return the actions that start the programs with the arguments of the context."""
    given = {name: context.launch_configurations[name] for name in file.takes}
    directory = temporary_directory('biped_com_launch.')
    return [RegisterEventHandler(OnProcessExit(on_exit=raise_if_failed)),
            *(action_of(program, directory) for program in file.plan(given))]


def action_of(program: Program | ForeignLaunchFile, directory: Path) -> Any:
    """Return the action that starts a program; its parameters are written to a directory."""
    if isinstance(program, ForeignLaunchFile):
        share = get_package_share_directory(program.package)
        return IncludeLaunchDescription(
            str(Path(share, 'launch', program.file)),
            launch_arguments=list(program.arguments.items()))
    # Names through the action, so that a user's PushRosNamespace and SetRemap count as usual.
    return Node(
        package=program.package, executable=program.executable, output='screen',
        name=program.name or None, namespace=program.namespace.lstrip('/') or None,
        parameters=list(map(str, program.parameter_files(directory))),
        remappings=list(program.remappings.items()), arguments=list(program.arguments),
        ros_arguments=program.ros_arguments(), respawn=program.respawns,
        respawn_delay=RESPAWN_DELAY, sigterm_timeout=str(program.sigterm_timeout),
        sigkill_timeout=str(program.sigkill_timeout),
        on_exit=[Shutdown()] if program.ends_launch else None)


def raise_if_failed(event: ProcessExited, context: LaunchContext) -> None:
    """
    Raise an exception if a process failed whose end ends the launch.

    Raises
    ------
    RuntimeError
        If the process ended with an exit code other than 0, and not because of a shutdown.

    """
    ends_launch = any(isinstance(action, Shutdown) for action in event.action.get_sub_entities())
    if ends_launch and event.returncode and not context.is_shutdown:
        raise RuntimeError(
            f"'{event.process_name}' failed (exit code {event.returncode}), and its end ends the "
            'launch: see its output above')
