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
"""Executes a launch file; the result is a list of processes to start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
import re
import shlex
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.launch_runner.context import Context, join_namespace
from biped_com_ros.launch_runner.errors import LaunchFileError, unknown
from biped_com_ros.launch_runner.packages import executable_command
from biped_com_ros.launch_runner.parameters import (
    coerce, parameter, parameter_file, ParameterFiles)
from biped_com_ros.launch_runner.schema import check
from biped_com_ros.launch_runner.substitutions import is_true, parse, perform, perform_pieces
from biped_com_ros.launch_runner.xml_reader import Element, read_xml

OUTPUTS = ('screen', 'log', 'both')
# Defaults, s: with them all processes have ended 3 s after Ctrl-C.
SIGTERM_TIMEOUT = 1.8
SIGKILL_TIMEOUT = 0.8
#: Included for `ros2 launch`, which learns from it what `supervisor` does by itself.
_EXIT_CODE_FILE = 'exit_code.launch.py'
_NODE_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_NAMESPACE = re.compile(r'/|(/[A-Za-z_][A-Za-z0-9_]*)+')


@dataclass(frozen=True, kw_only=True)
class ProcessPlan:
    """How to start and to end one process; times in seconds."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    cwd: str | None = None
    shell: bool = False
    output: str = 'log'
    respawn: bool = False
    respawn_delay: float = 0.0
    respawn_max_retries: float = -1
    shuts_down: bool = False
    sigterm_timeout: float = SIGTERM_TIMEOUT
    sigkill_timeout: float = SIGKILL_TIMEOUT


def load(file: Path) -> Element:
    """Read and check one launch file."""
    root = read_xml(file.resolve())
    check(root)
    return root


class Planner:
    """
    Executes the actions of launch files in a context and collects processes and messages.

    Parameters
    ----------
    context
        Its configurations begin with the arguments given by the user.
    files
        Writes the parameter files.

    Attributes
    ----------
    processes
        Result of `run`: processes to start, in the order of the file.
    messages
        Texts of ``<log>``.

    """

    def __init__(self, context: Context, files: ParameterFiles) -> None:
        self.processes: list[ProcessPlan] = []
        self.messages: list[str] = []
        self._context = context
        self._files = files
        self._including: list[Path] = []
        self._actions: dict[str, Callable[[Element], None]] = {
            'arg': self._arg, 'let': self._let, 'include': self._include, 'group': self._group,
            'node': self._node, 'executable': self._executable, 'log': self._log,
            'push_ros_namespace': self._push_namespace, 'push-ros-namespace': self._push_namespace,
            'set_parameter': self._set_parameter, 'set_remap': self._set_remap,
            'set_env': self._set_env, 'unset_env': self._unset_env}

    def run(self, root: Element) -> None:
        """Execute a whole file."""
        if root.file in self._including:
            chain = ' -> '.join(map(str, [*self._including, root.file]))
            raise LaunchFileError(root.where, f'the file includes itself: {chain}')
        self._including.append(root.file)
        self._execute(root.children)
        self._including.pop()

    def _execute(self, elements: list[Element]) -> None:
        for element in elements:
            if self._condition(element):
                self._actions[element.tag](element)

    def _condition(self, element: Element) -> bool:
        for attribute, required in (('if', True), ('unless', False)):
            if attribute in element.attributes:
                text = self._text(element, attribute)
                return is_true(text, element.where, f"condition '{attribute}'") == required
        return True

    def _text(self, element: Element, attribute: str) -> str:
        return perform(element.get(attribute), self._context, element.where)

    def _arg(self, element: Element) -> None:
        name, configurations = element.get('name'), self._context.configurations
        if name not in configurations:
            if 'default' not in element.attributes:
                raise LaunchFileError(
                    element.where, f"argument '{name}' ({element.get('description')}) has no "
                    f'default and was not given; give {name}:=VALUE')
            configurations[name] = self._text(element, 'default')
        choices = [choice.get('value') for choice in element.children]
        if choices and configurations[name] not in choices:
            raise unknown(element.where, f"value of argument '{name}'",
                          configurations[name], choices)

    def _let(self, element: Element) -> None:
        name = self._text(element, 'name')
        self._context.configurations[name] = self._text(element, 'value')

    def _include(self, element: Element) -> None:
        root = load_included(element, self._context)
        given = {self._text(arg, 'name'): self._text(arg, 'value') for arg in element.children}
        self._context.configurations.update(given)
        valid = [arg.name for arg in declared_arguments(root, self._context)]
        for arg in element.children:
            if self._text(arg, 'name') not in valid:
                raise unknown(arg.where, f'argument of {root.file.name}',
                              self._text(arg, 'name'), valid)
        self.run(root)

    def _group(self, element: Element) -> None:
        scoped = element.get('scoped', 'true').lower() == 'true'
        with self._context.scope() if scoped else nullcontext():
            self._execute(element.children)

    def _push_namespace(self, element: Element) -> None:
        namespace = join_namespace(self._context.namespace, self._text(element, 'namespace'))
        self._context.namespace = _valid_namespace(namespace, element)

    def _set_parameter(self, element: Element) -> None:
        name, value = self._text(element, 'name'), self._text(element, 'value')
        self._context.parameters[name] = coerce(value, '', element.where, name)

    def _set_env(self, element: Element) -> None:
        self._context.environment[self._text(element, 'name')] = self._text(element, 'value')

    def _unset_env(self, element: Element) -> None:
        self._context.environment.pop(self._text(element, 'name'), None)

    def _log(self, element: Element) -> None:
        self.messages.append(self._text(element, 'message'))

    def _set_remap(self, element: Element) -> None:
        self._context.remappings.append((self._text(element, 'from'), self._text(element, 'to')))

    def _node(self, element: Element) -> None:
        package, executable = self._text(element, 'pkg'), self._text(element, 'exec')
        try:
            command = executable_command(package, executable, self._context.environment)
        except ConfigurationError as error:
            raise LaunchFileError(element.where, str(error)) from error
        self._plan(element, executable, [
            *command, *self._split(element, 'args'), '--ros-args',
            *self._split(element, 'ros_args'), *self._names(element),
            *self._parameters(element), *self._remappings(element)])

    def _executable(self, element: Element) -> None:
        command = self._split(element, 'cmd')
        if not command:
            raise LaunchFileError(element.where, "attribute 'cmd' is empty")
        self._plan(element, self._text(element, 'name') or Path(command[0]).name, command)

    def _plan(self, element: Element, name: str, command: list[str]) -> None:
        own_environment = {self._text(env, 'name'): self._text(env, 'value')
                           for env in element.nested('env')}
        self.processes.append(ProcessPlan(
            name=f'{name}-{len(self.processes) + 1}',
            command=(*self._split(element, 'launch-prefix'), *command),
            environment=self._context.environment | own_environment,
            cwd=self._text(element, 'cwd') or None, shell=self._flag(element, 'shell'),
            output=self._output(element), respawn=self._flag(element, 'respawn'),
            respawn_delay=self._number(element, 'respawn_delay', 0.0),
            respawn_max_retries=self._number(element, 'respawn_max_retries', -1, minimum=-1),
            shuts_down='on_exit' in element.attributes,
            sigterm_timeout=self._number(element, 'sigterm_timeout', SIGTERM_TIMEOUT),
            sigkill_timeout=self._number(element, 'sigkill_timeout', SIGKILL_TIMEOUT)))

    def _names(self, element: Element) -> list[str]:
        rules = []
        if 'name' in element.attributes:
            name = self._text(element, 'name')
            if not _NODE_NAME.fullmatch(name):
                raise LaunchFileError(
                    element.where, f"node name '{name}' is not valid (letters, digits, "
                    'underscores, not starting with a digit)')
            rules += ['-r', f'__node:={name}']
        namespace = self._namespace(element)
        return rules if namespace is None else [*rules, '-r', f'__ns:={namespace}']

    def _namespace(self, element: Element) -> str | None:
        given = self._text(element, 'namespace') if 'namespace' in element.attributes else None
        return _valid_namespace(join_namespace(self._context.namespace, given), element)

    def _parameters(self, element: Element) -> list[str]:
        """``--params-file`` per file and per group of inline values, in the order written."""
        arguments = self._inline_file(self._context.parameters, '/**')
        inline: dict[str, Any] = {}
        target = self._parameter_target(element)
        for child in element.nested('param'):
            if 'from' in child.attributes:
                arguments += self._inline_file(inline, target)
                inline = {}
                file = parameter_file(child, self._context, self._files)
                arguments += ['--params-file', str(file)]
            else:
                inline.update([parameter(child, self._context)])
        return arguments + self._inline_file(inline, target)

    def _parameter_target(self, element: Element) -> str:
        """Full name of the node if the file gives one, else every node in the process."""
        namespace, name = self._namespace(element), self._text(element, 'name')
        return f"{namespace.rstrip('/')}/{name}" if name and namespace else '/**'

    def _inline_file(self, parameters: dict[str, Any], target: str) -> list[str]:
        if not parameters:
            return []
        return ['--params-file', str(self._files.write(parameters, target))]

    def _remappings(self, element: Element) -> list[str]:
        rules = [*self._context.remappings,
                 *((self._text(remap, 'from'), self._text(remap, 'to'))
                   for remap in element.nested('remap'))]
        return [part for source, target in rules for part in ('-r', f'{source}:={target}')]

    def _output(self, element: Element) -> str:
        output = self._text(element, 'output') or 'log'
        if output not in OUTPUTS:
            raise unknown(element.where, 'output', output, OUTPUTS)
        return output

    def _flag(self, element: Element, attribute: str) -> bool:
        return is_true(self._text(element, attribute) or 'false', element.where, attribute)

    def _number(self, element: Element, attribute: str, default: float,
                minimum: float = 0.0) -> float:
        text = self._text(element, attribute) or str(default)
        try:
            number = float(text)
        except ValueError:
            number = float('nan')
        if not minimum <= number < float('inf'):
            raise LaunchFileError(
                element.where, f"{attribute} is '{text}' (valid: a number >= {minimum:g})")
        return number

    def _split(self, element: Element, attribute: str) -> list[str]:
        """Split an attribute as a shell does, but never inside the value of a substitution."""
        pieces = parse(element.get(attribute), element.where)
        values = [perform_pieces((piece,), self._context, element.where) for piece in pieces]
        marked = ''.join(piece if isinstance(piece, str) else f'\0{index}\0'
                         for index, piece in enumerate(pieces))
        try:
            parts = shlex.split(marked)
        except ValueError as error:
            raise LaunchFileError(element.where, f"attribute '{attribute}': {error}") from error
        return [re.sub('\0(\\d+)\0', lambda match: values[int(match[1])], part) for part in parts]


@dataclass(frozen=True)
class LaunchArgument:
    """One ``<arg>`` of a launch file."""

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...]


def load_included(element: Element, context: Context) -> Element:
    """Load the file of an ``<include>``."""
    file = Path(perform(element.get('file'), context, element.where))
    if not file.is_absolute():
        raise LaunchFileError(
            element.where, f"file '{file}' depends on the current directory; begin it with "
            '$(dirname)/ or $(find-pkg-share PACKAGE)/')
    if file.name == _EXIT_CODE_FILE and file.is_file():
        return Element('launch', {}, file, line=1)
    try:
        return load(file)
    except LaunchFileError as error:
        raise LaunchFileError(element.where, f'in the included file: {error}') from error


def declared_arguments(root: Element, context: Context) -> list[LaunchArgument]:
    """
    Arguments that a file and its includes declare, each once, in order.

    Arguments that an include sets are left out: they cannot be given from outside. An include
    whose file is not known before the launch is skipped, as ``ros2 launch`` does.
    """
    trial = Context(dict(context.configurations), dict(context.environment))
    found: dict[str, LaunchArgument] = {}
    _collect(root.children, trial, found, fixed=set(), depth=0)
    return list(found.values())


def _collect(elements: list[Element], trial: Context, found: dict[str, LaunchArgument],
             fixed: set[str], depth: int) -> None:
    for element in elements:
        if element.tag == 'arg':
            _collect_argument(element, trial, found, fixed)
        elif element.tag == 'group':
            _collect(element.children, trial, found, fixed, depth)
        elif element.tag == 'include' and depth < 20:
            names = {arg.get('name') for arg in element.children}
            try:
                included = load_included(element, trial).children
            except LaunchFileError:
                continue
            _collect(included, trial, found, fixed | (names - found.keys()), depth + 1)


def _collect_argument(element: Element, trial: Context, found: dict[str, LaunchArgument],
                      fixed: set[str]) -> None:
    name, default = element.get('name'), element.attributes.get('default')
    if name not in fixed and name not in found:
        choices = tuple(choice.get('value') for choice in element.children)
        found[name] = LaunchArgument(name, default, element.get('description'), choices)
    if name not in trial.configurations and default is not None:
        with suppress(LaunchFileError):
            trial.configurations[name] = perform(default, trial, element.where)


def _valid_namespace(namespace: str | None, element: Element) -> str | None:
    if namespace is not None and not _NAMESPACE.fullmatch(namespace):
        raise LaunchFileError(
            element.where, f"namespace '{namespace}' is not valid (letters, digits and "
            'underscores between slashes, none starting with a digit)')
    return namespace
