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
"""Terminal output of the processes, and the log file that keeps all of it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
import contextlib
from datetime import datetime
import os
from pathlib import Path
import re
import sys

from biped_com_ros.core.files import make_temporary_directory, remove_old_directories

_COLOURS = (36, 32, 35, 34, 33, 96, 92, 95)
_KEPT_LINES = 10  # hidden lines per process, shown when it fails
_LEVEL_COLOURS = {'INFO': '', 'WARNING': '33', 'ERROR': '31'}
#: Names of the directories of launches.
LOG_DIRECTORY = re.compile(r'\d{4}(-\d\d){5}-\d{6}-launch-\d+')


class Console:
    """
    Prints lines prefixed with the name of their process, and writes all to a log file.

    Names and levels are coloured on a terminal, unless NO_COLOR is set. The log file is in a new
    directory under ``ROS_LOG_DIR`` or ``~/.ros/log``, line by line: what a killed launch has
    printed is in it. If it cannot be written, as on a full disk, that is reported once.
    """

    def __init__(self) -> None:
        self._stream = sys.stdout
        self.colour = self._stream.isatty() and 'NO_COLOR' not in os.environ
        self.log_file = new_log_directory(os.environ) / 'launch.log'
        remove_old_directories(self.log_file.parent.parent, LOG_DIRECTORY)
        self.log_file.touch(mode=0o600)  # nodes print secrets, such as the token of the page
        self._log = self.log_file.open('a', buffering=1, encoding='utf-8', errors='replace')
        self._colours: dict[str, int] = {}
        self._hidden: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=_KEPT_LINES))
        self.quiet = self._is_unwritable = False

    def close(self) -> None:
        """Close the log file."""
        with contextlib.suppress(OSError):
            self._log.close()

    def line(self, name: str, text: str, visible: bool = True) -> None:
        """Show one line of a process's output; only log it if not visible."""
        self._write(f'[{name}] {text}\n')
        if visible and not self.quiet:
            self._print_line(name, text)
        else:
            self._hidden[name].append(text)

    def show_hidden(self, name: str) -> None:
        """Show the last lines of a process that were only logged."""
        for text in self._hidden.pop(name, ()):
            self._print_line(name, text)

    def report(self, level: str, text: str) -> None:
        """Print a message of the launch itself; when quiet, errors only. All are logged."""
        self.log(level, text)
        if not self.quiet or level == 'ERROR':
            self._print(f'{self._painted(f"[{level}]", _LEVEL_COLOURS[level])} {text}')

    def log(self, level: str, text: str) -> None:
        """Write a message of the launch itself to the log file only."""
        self._write(f'{datetime.now().isoformat(timespec="milliseconds")} [{level}] {text}\n')

    def _write(self, line: str) -> None:
        try:
            self._log.write(line)
        except OSError as error:
            if not self._is_unwritable:
                self._is_unwritable = True
                self._print(f'[WARNING] [launch]: {self.log_file} cannot be written: '
                            f'{error.strerror}; free space on the disk, or set ROS_LOG_DIR')

    def _print_line(self, name: str, text: str) -> None:
        self._print(f'{self._painted(f"[{name}]", self._colour_of(name))} {text}')

    def _print(self, text: str) -> None:
        try:
            print(text, file=self._stream, flush=True)
        except (BrokenPipeError, ValueError):
            # The reading end of the pipe is closed (`| head`); the log file gets everything.
            self.quiet = True
            discard_output()

    def _colour_of(self, name: str) -> str:
        return str(self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)]))

    def _painted(self, text: str, colour: str) -> str:
        return f'\033[{colour}m{text}\033[0m' if self.colour and colour else text


def discard_output() -> None:
    """Write no more to a closed pipe: the interpreter flushes once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def new_log_directory(environment: Mapping[str, str]) -> Path:
    """
    Create the directory for the logs of one launch; a temporary one if home cannot be written.

    Raises
    ------
    ConfigurationError
        If there is no temporary one, either.

    """
    name = f'{datetime.now():%Y-%m-%d-%H-%M-%S-%f}-launch-{os.getpid()}'
    try:
        path = _log_parent(environment) / name
        path.mkdir(parents=True)
        return path.absolute()
    except (OSError, RuntimeError):  # the latter: a user without a home
        return make_temporary_directory(f'{name}-')


def _log_parent(environment: Mapping[str, str]) -> Path:
    if environment.get('ROS_LOG_DIR'):
        return Path(environment['ROS_LOG_DIR'])
    return Path(environment.get('ROS_HOME') or Path.home() / '.ros') / 'log'
