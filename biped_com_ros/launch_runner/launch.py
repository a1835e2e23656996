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
``run_launch``: the XML launch files of this package where ``ros2 launch`` is not installed.

::

    run_launch bringup.launch.xml robot:=talos
    run_launch biped_com_ros demo.launch.xml     (as ros2 launch writes it)
    run_launch --show-args demo.launch.xml
    run_launch --isolated demo.launch.xml        (as make demo does)
"""

from __future__ import annotations

import signal

if __name__ == '__main__':
    # Ctrl-C while the rest is imported: end, without a traceback. `make` blocks it until here.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

import argparse  # noqa: I100 - the signal comes first
import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
import shlex
import shutil
import sys

from biped_com_ros.core.errors import BipedComError, ConfigurationError, UnknownNameError
from biped_com_ros.core.files import make_temporary_directory
from biped_com_ros.core.model.resources import find_package, PACKAGE
from biped_com_ros.launch_runner.actions import declared_arguments, load, Planner
from biped_com_ros.launch_runner.console import Console, discard_output
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.isolation import Isolation
from biped_com_ros.launch_runner.parameters import ParameterFiles
from biped_com_ros.launch_runner.supervisor import Supervisor
from biped_com_ros.launch_runner.xml_reader import Element

_ARGUMENT = ':='
_BAD_USE = 2
_NUMBERS = frozenset({'rate', 'seed', 'duration', 'port'})  # in every file that has them


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    Returns
    -------
    int
        0; 2 if the launch file or an argument is wrong; else the exit code of the first process
        that ended with an error. Ctrl-C before there are processes ends it by the signal.

    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return _run(argv)
    except KeyboardInterrupt:  # temporary files have been removed
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        raise


def _run(argv: Sequence[str] | None) -> int:
    options = _parser().parse_intermixed_args(argv)
    try:
        files = [word for word in options.arguments if _ARGUMENT not in word]
        root = load(find_launch_file(files))
        context = Context(given_arguments(options.arguments))
        if options.show_args:
            print(describe_arguments(root, context))
            return 0
        _check_arguments(root, context)
        if options.isolated:
            return _launch_isolated(root, context, options)
        return _launch(root, context, options)
    except BrokenPipeError:  # `| head`
        discard_output()
        return 0
    except BipedComError as error:
        print(f'run_launch: {error}', file=sys.stderr)
        return _BAD_USE


def find_launch_file(arguments: Sequence[str]) -> Path:
    """
    Find the file given as ``FILE`` or ``PACKAGE FILE``.

    ``FILE`` is a path, or the name of a file in the package's ``launch`` directory.
    """
    if len(arguments) not in (1, 2):
        raise ConfigurationError(
            f"expected FILE or PACKAGE FILE, got '{' '.join(arguments)}' "
            '(launch arguments have the form NAME:=VALUE)')
    _check_words(arguments)
    name = arguments[-1]
    if len(arguments) == 1 and Path(name).is_file():
        return Path(name)
    directory = find_package(arguments[0] if len(arguments) == 2 else PACKAGE) / 'launch'
    if not (directory / name).is_file():
        raise UnknownNameError('launch file', name, sorted(
            file.name for file in directory.glob('*.launch.xml')), where=str(directory))
    return directory / name


def _check_words(arguments: Sequence[str]) -> None:
    """Refuse words that are meant as launch arguments, which would be taken for a package."""
    files = [word for word in arguments if word.endswith('.xml')]
    for word in arguments:
        name, equals, value = word.partition('=')
        if equals and word not in files:
            raise ConfigurationError(
                f"'{word}' is no launch argument: write {name}:={value} (NAME:=VALUE)")
    if len(arguments) == 2 and not arguments[1].endswith('.xml') and files:
        raise ConfigurationError(
            f"'{arguments[1]}' is neither a launch file nor an argument NAME:=VALUE; put a value "
            'with spaces in quotes')


def describe_arguments(root: Element, context: Context) -> str:
    """Text of ``--show-args``."""
    lines = ['Arguments (pass arguments as NAME:=VALUE):']
    for argument in declared_arguments(root, context):
        default = 'required' if argument.default is None else f"default: '{argument.default}'"
        choices = ', '.join(choice or "''" for choice in argument.choices)
        lines += ['', f'  {argument.name}', f'      {argument.description or "no description"}',
                  f'      ({default}{"; one of: " if choices else ""}{choices})']
    return '\n'.join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='run_launch', description='Run an XML launch file without ros2 launch.',
        usage='run_launch [-h] [-s] [-n] [--foreground EXEC] [--isolated] [PACKAGE] FILE '
              '[NAME:=VALUE ...]')
    parser.add_argument('arguments', nargs='+', metavar='[PACKAGE] FILE [NAME:=VALUE ...]',
                        help='path of a launch file, or name of one of PACKAGE (default: '
                        'biped_com_ros), and its launch arguments')
    parser.add_argument('-s', '--show-args', action='store_true',
                        help='list the arguments of the launch file, and exit')
    parser.add_argument('-n', '--dry-run', action='store_true',
                        help='print the commands instead of starting them')
    parser.add_argument('--foreground', metavar='EXEC', default='',
                        help='connect this executable to the terminal; the output of the others '
                        'goes to the log file only')
    parser.add_argument('--isolated', action='store_true',
                        help='communicate on this machine only, in a ROS domain of its own; '
                        'ROS_AUTOMATIC_DISCOVERY_RANGE and ROS_DOMAIN_ID, where set, are kept')
    return parser


def given_arguments(arguments: Sequence[str]) -> dict[str, str]:
    """
    Return the launch arguments; the last of several with one name, as ``ros2 launch``.

    Raises
    ------
    ConfigurationError
        If one has no name or no value.

    """
    given = {}
    for word in arguments:
        name, mark, value = word.partition(_ARGUMENT)
        if mark and not (name and value):
            raise ConfigurationError(
                f"malformed launch argument '{word}', expected NAME:=VALUE; leave it out for its "
                'default')
        if mark:
            given[name] = value
    return given


def _check_arguments(root: Element, context: Context) -> None:
    valid = [argument.name for argument in declared_arguments(root, context)]
    for name in context.configurations:
        if name not in valid:
            raise UnknownNameError('argument', name, valid, where=root.file.name)
    if root.file.parent == find_package(PACKAGE) / 'launch':
        _check_values(context.configurations)


def _check_values(given: Mapping[str, str]) -> None:
    """Refuse at once what the nodes of this package would refuse when they have started."""
    if robot := given.get('robot'):
        from biped_com_ros.core.model.config import load_robot_config
        load_robot_config(robot)
    if chapters := given.get('chapters'):
        from biped_com_ros.demo import chapter_names
        chapter_names(chapters)
    for name in _NUMBERS & given.keys():
        try:
            float(given[name])
        except ValueError:
            raise ConfigurationError(
                f"argument '{name}': '{given[name]}' is not a number") from None


def _launch_isolated(root: Element, context: Context, options: argparse.Namespace) -> int:
    with closing(Isolation(context.environment)) as isolation:
        context.environment = isolation.environment
        print(isolation.describe(), flush=True)
        return _launch(root, context, options)


def _launch(root: Element, context: Context, options: argparse.Namespace) -> int:
    directory = make_temporary_directory('run_launch_')
    try:
        context.runs_commands = not options.dry_run
        planner = Planner(context, ParameterFiles(directory))
        planner.run(root)
        _check_foreground(planner, options.foreground)
        if options.dry_run:
            for plan in planner.processes:
                print(f'[{plan.name}] {shlex.join(plan.command)}')
            return 0
        return _supervise(planner, options.foreground)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _check_foreground(planner: Planner, foreground: str) -> None:
    names = {plan.name.rpartition('-')[0] for plan in planner.processes}
    if foreground and foreground not in names:
        raise UnknownNameError('executable', foreground, names, where='--foreground')


def _supervise(planner: Planner, foreground: str) -> int:
    console = Console()
    try:
        console.report('INFO', f'[launch]: all output is logged to {console.log_file}')
        for message in planner.messages:
            console.report('INFO', f'[launch.user]: {message}')
        console.quiet = console.quiet or bool(foreground)
        return asyncio.run(Supervisor(planner.processes, console, foreground).run())
    finally:
        console.close()


if __name__ == '__main__':
    sys.exit(main())
