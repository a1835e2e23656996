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
A stand-in of ``launch``: how ``ros2 launch`` runs handlers of events, and what code it ends with.

Read in ros2/launch 3.4.3 (branch jazzy, 09403fce), in the package's folder ``launch``:

- ``launch_context.py``: new handlers come before those that were registered earlier;
- ``launch_service.py``: every handler that matches an event is called, and the actions that it
  returns are executed; an exception in one of them keeps the others from being called, shuts the
  launch down, and makes the exit code 1, which is 0 otherwise; Ctrl-C sets `is_shutdown` at once,
  an event `Shutdown` when its turn comes;
- ``actions/execute_local.py``: a process registers a handler of its own end that returns its
  ``on_exit``, which ``get_sub_entities`` returns, too, if it is a list; a process that is
  respawned also emits `ProcessExited`;
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
import sys
from types import ModuleType


class Shutdown:
    """The action and the event."""


@dataclass(eq=False)
class NodeElement:
    """A process that is started."""

    name: str
    on_exit: object = None

    def get_sub_entities(self):
        return self.on_exit if isinstance(self.on_exit, list) else []


@dataclass(kw_only=True)
class Node(NodeElement):
    """Of ``launch_ros``."""

    package: str
    executable: str
    output: str
    namespace: str | None
    parameters: list
    remappings: list
    arguments: list
    ros_arguments: list
    respawn: bool
    respawn_delay: float
    sigterm_timeout: str
    sigkill_timeout: str
    name: str | None = None


@dataclass
class DeclareLaunchArgument:
    """Sets a launch configuration that was not given."""

    name: str
    default_value: str
    description: str
    choices: tuple | None


@dataclass
class IncludeLaunchDescription:
    """Includes a launch file."""

    source: str
    launch_arguments: list


@dataclass
class OpaqueFunction:
    """Returns actions when it is executed."""

    function: object
    args: list


@dataclass
class ProcessExited:
    """A process has ended."""

    action: NodeElement
    returncode: int

    @property
    def process_name(self):
        return self.action.name


class OnProcessExit:
    """Handles the end of one process, or of each."""

    def __init__(self, *, on_exit, target_action=None):
        self._on_exit, self._target = on_exit, target_action

    def matches(self, event):
        return isinstance(event, ProcessExited) and self._target in (None, event.action)

    def handle(self, event, context):
        return self._on_exit(event, context) if callable(self._on_exit) else self._on_exit


@dataclass
class RegisterEventHandler:
    """Action that adds a handler."""

    handler: OnProcessExit


@dataclass
class LaunchDescription:
    """What a launch file returns."""

    entities: list


@dataclass
class LaunchService:
    """
    Runs a launch; it is the context of handlers, too.

    Attributes
    ----------
    is_shutdown
        Whether it ends.
    return_code
        Exit code of ``ros2 launch``.
    errors
        What it logged.

    """

    is_shutdown: bool = False
    return_code: int = 0
    errors: list = field(default_factory=list)

    def __post_init__(self):
        self._handlers, self._events = deque(), deque()

    def include(self, description):
        for entity in description.entities:
            self._handlers.appendleft(entity.handler)

    def execute(self, description, given):
        """Return the actions of a description whose function decides what is started."""
        self.launch_configurations = dict(given)
        actions = []
        for entity in description.entities:
            if isinstance(entity, DeclareLaunchArgument):
                value = self.launch_configurations.setdefault(entity.name, entity.default_value)
                if entity.choices and value not in entity.choices:
                    raise RuntimeError(f'argument {entity.name}: {value}')
            else:
                actions += entity.function(self, *entity.args)
        return actions

    def start(self, process):
        self._handlers.appendleft(OnProcessExit(
            on_exit=process.on_exit, target_action=process))

    def interrupt(self):
        """Press Ctrl-C."""
        self.is_shutdown = True

    def end(self, process, code):
        """Let a process end, and handle what follows."""
        self._events.append(ProcessExited(process, code))
        while self._events:
            try:
                self._process(self._events.popleft())
            except Exception as error:  # noqa: B902 - as launch does
                self.errors.append(f'Caught exception in launch: {error}')
                self.is_shutdown, self.return_code = True, 1

    def _process(self, event):
        if isinstance(event, Shutdown):
            self.is_shutdown = True
        for handler in tuple(self._handlers):
            if handler.matches(event):
                actions = handler.handle(event, self)
                self._events.extend(
                    action for action in actions or () if isinstance(action, Shutdown))


def modules():
    """Return what can be imported of ``launch``, by name."""
    contents = {
        'launch': {'LaunchDescription': LaunchDescription, 'LaunchContext': LaunchService},
        'launch.actions': {kind.__name__: kind for kind in (
            DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction,
            RegisterEventHandler, Shutdown)},
        'launch_ros': {},
        'launch_ros.actions': {'Node': Node},
        'ament_index_python': {},
        'ament_index_python.packages': {
            'get_package_share_directory': lambda package: f'/share/{package}'},
        'launch.event_handlers': {'OnProcessExit': OnProcessExit},
        'launch.events': {},
        'launch.events.process': {'ProcessExited': ProcessExited}}
    found = {}
    for name, content in contents.items():
        found[name] = ModuleType(name)
        vars(found[name]).update(content)
    return found


def install(monkeypatch):
    """Let it be imported in place of the real one, anew by what is of ours."""
    ours = 'biped_com_ros.launching.ros2_launch'
    monkeypatch.setitem(sys.modules, ours, None)
    del sys.modules[ours]
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)
