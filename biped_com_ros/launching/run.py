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
``run_launch``: the launch files of this package where ``ros2 launch`` is not installed.

::

    run_launch bringup robot:=talos
    run_launch biped_com_ros bringup.launch.py robot:=talos    (as ros2 launch writes it)
    run_launch --show-args demo
    run_launch --isolated demo                                 (as make demo does)
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
import os
from pathlib import Path
import shlex
import shutil
import sys

from biped_com_ros.core.errors import BipedComError, ConfigurationError, UnknownNameError
from biped_com_ros.core.files import make_temporary_directory
from biped_com_ros.core.model.resources import PACKAGE
from biped_com_ros.launching.arguments import FIELDS
from biped_com_ros.launching.console import Console, discard_output
from biped_com_ros.launching.files import launch_file, LaunchFile
from biped_com_ros.launching.isolation import Isolation
from biped_com_ros.launching.programs import ForeignLaunchFile, Program
from biped_com_ros.launching.supervisor import executable_command, Process, Supervisor

_ARGUMENT = ':='
_BAD_USE = 2


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
        file = named_file([word for word in options.arguments if _ARGUMENT not in word])
        given = given_arguments(options.arguments)
        if options.show_args:
            print(describe_arguments(file))
            return 0
        if options.isolated:
            return _launch_isolated(file, given, options)
        return _launch(file, given, options, os.environ)
    except BrokenPipeError:  # `| head`
        discard_output()
        return 0
    except BipedComError as error:
        print(f'run_launch: {error}', file=sys.stderr)
        return _BAD_USE


def named_file(words: Sequence[str]) -> LaunchFile:
    """
    Return the launch file given as ``FILE`` or ``PACKAGE FILE``.

    Raises
    ------
    ConfigurationError
        If there is none, or a word is meant as an argument.

    """
    for word in words:
        name, equals, value = word.partition('=')
        if equals:
            raise ConfigurationError(
                f"'{word}' is no launch argument: write {name}:={value} (NAME:=VALUE)")
    if len(words) == 2 and words[0] != PACKAGE:
        launch_file(words[0])  # names the file if it is wrong
        raise ConfigurationError(
            f"'{words[1]}' is neither a launch file nor an argument NAME:=VALUE; put a value with "
            'spaces in quotes')
    if len(words) not in (1, 2):
        raise ConfigurationError(
            f"expected FILE or PACKAGE FILE, got '{' '.join(words)}' (launch arguments have the "
            'form NAME:=VALUE)')
    return launch_file(words[-1])


def describe_arguments(file: LaunchFile) -> str:
    """Text of ``--show-args``."""
    lines = ['Arguments (pass arguments as NAME:=VALUE):']
    for name in file.takes:
        choices = ', '.join(choice or "''" for choice in file.choices(name))
        lines += ['', f'  {name}', f'      {FIELDS[name].metadata["description"]}',
                  f"      (default: '{file.default(name)}'{'; one of: ' if choices else ''}"
                  f'{choices})']
    return '\n'.join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='run_launch', description='Run a launch file without ros2 launch.',
        usage='run_launch [-h] [-s] [-n] [--foreground EXEC] [--isolated] [PACKAGE] FILE '
              '[NAME:=VALUE ...]')
    parser.add_argument('arguments', nargs='+', metavar='[PACKAGE] FILE [NAME:=VALUE ...]',
                        help='name of a launch file of this package, and its launch arguments')
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


def _launch_isolated(file: LaunchFile, given: Mapping[str, str],
                     options: argparse.Namespace) -> int:
    with closing(Isolation(os.environ)) as isolation:
        print(isolation.describe(), flush=True)
        return _launch(file, given, options, isolation.environment)


def _launch(file: LaunchFile, given: Mapping[str, str], options: argparse.Namespace,
            environment: Mapping[str, str]) -> int:
    directory = make_temporary_directory('run_launch_')
    try:
        processes = processes_of(file.plan(given), directory, environment)
        _check_foreground(processes, options.foreground)
        if options.dry_run:
            for process in processes:
                print(f'[{process.name}] {shlex.join(process.command)}')
            return 0
        return _supervise(processes, options.foreground, environment)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def processes_of(programs: Sequence[Program | ForeignLaunchFile], directory: Path,
                 environment: Mapping[str, str]) -> list[Process]:
    """
    Return how to start programs.

    Raises
    ------
    ConfigurationError
        If one is not installed, or needs ROS 2's launch.

    """
    processes = []
    for number, program in enumerate(programs, 1):
        if isinstance(program, ForeignLaunchFile):
            raise ConfigurationError(
                f"'{program.file}' of package '{program.package}' is a launch file of ROS 2: use "
                'ros2 launch')
        command = executable_command(program.package, program.executable, environment)
        processes.append(Process(f'{program.executable}-{number}', program, (
            *command, *program.command_line(directory))))
    return processes


def _check_foreground(processes: Sequence[Process], foreground: str) -> None:
    names = {process.program.executable for process in processes}
    if foreground and foreground not in names:
        raise UnknownNameError('executable', foreground, names, where='--foreground')


def _supervise(processes: Sequence[Process], foreground: str,
               environment: Mapping[str, str]) -> int:
    console = Console()
    try:
        console.report('INFO', f'[launch]: all output is logged to {console.log_file}')
        console.quiet = console.quiet or bool(foreground)
        return asyncio.run(Supervisor(processes, console, environment, foreground).run())
    finally:
        console.close()


if __name__ == '__main__':
    sys.exit(main())
