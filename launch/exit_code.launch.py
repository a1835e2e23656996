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
Lets ``ros2 launch`` end with exit code 1 if a process failed whose end ends the launch.

Its ``on_exit="shutdown"`` alone ends every launch with 0. An exception in the handler of an event
shuts everything down, too, and then the exit code is 1 (launch 3.4.3, launch_service.py). The
other launch files include this one; ``run_launch`` skips it and returns the code of the process.
"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited


def generate_launch_description() -> LaunchDescription:
    """Return what is executed when this file is included."""
    return LaunchDescription([RegisterEventHandler(OnProcessExit(on_exit=raise_if_failed))])


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
