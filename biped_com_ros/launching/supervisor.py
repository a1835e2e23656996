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
Starts executables as processes, prints their output, ends them, and reports how each one ended.

Every process leads a session of its own: Ctrl-C in the terminal reaches the runner only and is
forwarded exactly once, and the children of a process can be ended with it.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
import contextlib
import ctypes
from dataclasses import dataclass
import importlib.util
import os
from pathlib import Path
import signal
import sys
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.model.resources import PACKAGE, package_share
from biped_com_ros.launching.console import Console
from biped_com_ros.launching.programs import Program, RESPAWN_DELAY

_NODES = 'biped_com_ros.nodes'


def executable_command(package: str, name: str, environment: Mapping[str, str]) -> list[str]:
    """
    Return the command that starts an executable of a package.

    Installed ones (``<prefix>/lib/<package>/<name>``) come first. The nodes of this package run
    as modules of this Python where they are not installed, and always when this runs from the
    source tree: an older installation must not be started there.

    Raises
    ------
    ConfigurationError
        If there is no such executable; the message lists those that exist.

    """
    is_ours = package == PACKAGE and _is_node(name)
    module = [sys.executable, '-m', f'{_NODES}.{name}.node'] if is_ours else []
    if module and package_share() == Path(__file__).resolve().parents[2]:
        return module
    for directory in _directories(package, environment):
        if (directory / name).is_file() and os.access(directory / name, os.X_OK):
            return [str(directory / name)]
    if not module:
        raise _not_found(package, name, environment)
    return module


def _directories(package: str, environment: Mapping[str, str]) -> Iterator[Path]:
    prefixes = environment.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    for prefix in [*filter(None, prefixes), sys.prefix]:
        yield Path(prefix) / 'lib' / package


def _is_node(name: str) -> bool:
    return name.isidentifier() and importlib.util.find_spec(f'{_NODES}.{name}') is not None


def _not_found(package: str, name: str, environment: Mapping[str, str]) -> ConfigurationError:
    found = {file.name for directory in _directories(package, environment)
             if directory.is_dir() for file in directory.iterdir() if os.access(file, os.X_OK)}
    if package == PACKAGE:
        nodes = Path(__file__).resolve().parents[1] / 'nodes'
        found |= {file.parent.name for file in nodes.glob('*/node.py')}
    if found or package == PACKAGE:
        return UnknownNameError('executable', name, found, where=f"package '{package}'")
    return ConfigurationError(
        f"executable '{name}': package '{package}' is not installed; on a machine with ROS 2: "
        f"sudo apt install ros-{environment.get('ROS_DISTRO', '<distro>')}-"
        f"{package.replace('_', '-')}")


_PR_SET_PDEATHSIG = 1
# Exit codes after the signals sent here, as Python and as shells report them.
_INTERRUPTED = (0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGTERM)
# First lines of Python's report of an error, and of one before it has started.
_TRACES = (b'Traceback (most', b'Fatal Python error')
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Time after which a process counts as started, s; one that fails sooner keeps its delay.
_START_TIME = 20.0
#: The delay before a process is respawned doubles up to this while it keeps failing so soon, s.
_LONGEST_DELAY = 60.0


@dataclass(frozen=True)
class Process:
    """A program, the command that starts it, and the name under which its output is printed."""

    name: str
    program: Program
    command: tuple[str, ...]


class Supervisor:
    """
    Runs processes until all have ended.

    Parameters
    ----------
    plans
        Processes; all are started at once.
    console
        Prints output and reports.
    environment
        Variables of the processes.
    foreground
        Executable whose standard input and output are the terminal itself, without prefix (for
        tables, menus). Its log lines and the output of the others go to the log file only.

    """

    def __init__(self, plans: Sequence[Process], console: Console,
                 environment: Mapping[str, str], foreground: str = '') -> None:
        self._plans, self._environment = plans, environment
        self._console = console
        self._foreground = foreground
        self._ending = asyncio.Event()
        self._signals = 0
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._last_line: dict[str, bytes] = {}
        self._interrupted: set[str] = set()
        self._reasons: set[bytes] = set()
        self._exit_code = 0

    async def run(self) -> int:
        """
        Start everything and wait for the end of the last process.

        Returns
        -------
        int
            0, or the exit code of the first process that ended with an error.

        """
        loop = asyncio.get_running_loop()
        for number in _FORWARDED:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            await asyncio.gather(*(self._run_process(plan) for plan in self._plans))
        finally:
            for number in _FORWARDED:
                loop.remove_signal_handler(number)
        return self._exit_code

    def end(self, reason: str) -> None:
        """Interrupt every process, once."""
        if not self._ending.is_set():
            self._console.report('INFO', f'[launch]: shutting down: {reason}')
            self._ending.set()

    def _on_signal(self, number: int) -> None:
        self._signals += 1
        if self._signals == 1:
            self.end(f'{signal.Signals(number).name} received')
        else:
            # Ctrl-C again: send the next stronger signal at once.
            stronger = signal.SIGTERM if self._signals == 2 else signal.SIGKILL
            for process in self._running.values():
                _signal_group(process.pid, stronger)

    async def _run_process(self, plan: Process) -> None:
        """Run a process, again as often as it is to be respawned."""
        loop, delay, has_started = asyncio.get_running_loop(), 0.0, False
        while not self._ending.is_set():
            begin = loop.time()
            code = await self._exit_code_of(plan)
            if plan.program.ends_launch:
                self.end(f'{plan.name} has ended')
            if loop.time() - begin > _START_TIME:
                has_started, delay = True, 0.0
            # It has logged what is wrong with its arguments, which stay the same.
            is_misconfigured = code == 1 and not has_started
            respawns = plan.program.respawns and not is_misconfigured
            if not respawns or self._ending.is_set():
                self._exit_code = self._exit_code or (128 - code if code < 0 else code)
                break
            delay = max(RESPAWN_DELAY, min(2.0 * delay, _LONGEST_DELAY))
            self._console.report('INFO', f'[{plan.name}]: respawning in {delay:g} s')
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ending.wait(), delay)

    async def _exit_code_of(self, plan: Process) -> int:
        """Run a process; return its exit code, or 0 if it ended as requested."""
        async with contextlib.AsyncExitStack() as outputs:
            try:
                process = await self._start(plan, outputs)
            except OSError as error:
                self._console.report('ERROR', f'[{plan.name}]: cannot be started: {error}')
                return 127
            self._running[plan.name] = process
            self._console.report(
                'INFO', f'[{plan.name}]: process started with pid [{process.pid}]')
            ender = asyncio.ensure_future(self._end_on_request(plan, process))
            code = await process.wait()
            ender.cancel()
            _signal_group(process.pid, signal.SIGKILL)  # its children
            del self._running[plan.name]
        return self._report(plan, process.pid, code)

    async def _start(self, plan: Process,
                     outputs: contextlib.AsyncExitStack) -> asyncio.subprocess.Process:
        # The logs of the nodes go to that of the launch: one place, also where home is read-only.
        environment = {'PYTHONUNBUFFERED': '1', **self._environment,
                       'ROS_LOG_DIR': str(self._console.log_file.parent)}
        if self._console.colour:
            environment.setdefault('RCUTILS_COLORIZED_OUTPUT', '1')
        options: dict[str, Any] = {
            'env': environment, 'start_new_session': True,
            'preexec_fn': _end_with_parent(os.getpid()),
            'stderr': await outputs.enter_async_context(self._relayed(plan.name))}
        if self._foreground != plan.program.executable:
            options |= {
                'stdin': DEVNULL,
                'stdout': await outputs.enter_async_context(self._relayed(plan.name))}
        return await asyncio.create_subprocess_exec(*plan.command, **options)

    @contextlib.asynccontextmanager
    async def _relayed(self, name: str) -> AsyncIterator[int]:
        """
        Yield a file descriptor whose lines are printed; at the end, print what is left in it.

        asyncio's own pipes cannot be used: with them a process counts as ended only after its
        children have closed them, too.
        """
        read, write = os.pipe()
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(read, 'rb', buffering=0))
        relay = asyncio.ensure_future(self._relay(name, stream))
        try:
            yield write
        finally:
            os.close(write)
            await asyncio.wait([relay], timeout=0.5)
            transport.close()

    async def _relay(self, name: str, stream: asyncio.StreamReader) -> None:
        rest, visible = b'', True
        while chunk := await stream.read(65536):
            self._last_line.setdefault(name, b'')
            *lines, rest = (rest + chunk).split(b'\n')
            for line in lines:
                self._last_line[name] = line
                if line.startswith(b'KeyboardInterrupt'):
                    self._interrupted.add(name)
                # Of a Python that was interrupted while it starts; of an error, it is shown later.
                visible = visible and not (self._ending.is_set() and line.startswith(_TRACES))
                self._console.line(name, line.decode(errors='replace').rstrip('\r'), visible)
        if rest:
            self._console.line(name, rest.decode(errors='replace'), visible)

    async def _end_on_request(self, plan: Process, process: asyncio.subprocess.Process) -> None:
        await self._ending.wait()
        _signal_group(process.pid, signal.SIGINT)
        await asyncio.sleep(plan.program.sigterm_timeout)
        self._escalate(plan, process, signal.SIGTERM, plan.program.sigterm_timeout)
        await asyncio.sleep(plan.program.sigkill_timeout)
        self._escalate(plan, process, signal.SIGKILL,
                       plan.program.sigterm_timeout + plan.program.sigkill_timeout)

    def _escalate(self, plan: Process, process: asyncio.subprocess.Process, number: signal.Signals,
                  after: float) -> None:
        self._console.report(
            'WARNING', f'[{plan.name}]: still running {after:.1f} s after SIGINT, sending '
            f'{number.name}')
        _signal_group(process.pid, number)

    def _report(self, plan: Process, pid: int, code: int) -> int:
        """Report how a process ended; return its exit code, or 0 if it ended as requested."""
        if code == 0 or (self._ending.is_set() and (
                code in _INTERRUPTED or self._interrupted_at_start(plan.name, code))):
            self._console.report(
                'INFO', f'[{plan.name}]: process has finished cleanly [pid {pid}]')
            return 0
        command = f", cmd '{' '.join(plan.command)}'"
        if code == 1 and plan.name in self._last_line:
            # The process has logged the reason itself: leave the long command out, and print a
            # reason that several nodes have in common (such as an unknown robot) once.
            self._console.log('ERROR', f'[{plan.name}]: process has died{command}')
            command, reason = '', self._last_line[plan.name].partition(b']: ')[2]
            if reason in self._reasons:
                return code
            self._reasons.update((reason,) if reason else ())
        self._console.show_hidden(plan.name)
        self._console.report(
            'ERROR', f'[{plan.name}]: process has died [pid {pid}, {_describe(code)}{command}]; '
            f'all output: {self._console.log_file}')
        return code

    def _interrupted_at_start(self, name: str, code: int) -> bool:
        """
        Whether it ended as Python does when interrupted while it starts.

        The last line may be another: extension modules report it as a failed import.
        """
        return code == 1 and name in self._interrupted


def _describe(code: int) -> str:
    if code >= 0:
        return f'exit code {code}'
    return f'exit code {code} ({signal.Signals(-code).name})'


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _end_with_parent(parent: int) -> Callable[[], None] | None:
    """Return a hook that ends a child when this process is killed (Linux only)."""
    if not sys.platform.startswith('linux'):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
