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
"""Launch files as users start them, for the time of a test."""

import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import time
import uuid

import yaml

LIMIT = 600.0
"""For starting, running and ending on a busy machine, s."""

MARK = 'BIPED_COM_ROS_TEST_RUN'
"""Environment variable by which the processes of a launch are found."""


class Launched:
    """
    A process of ``run_launch``, its output in a file.

    Parameters
    ----------
    directory
        For output and logs.
    words
        Of the command line.
    prefix
        A further prefix of installed packages.
    stdout
        File descriptor that gets the output instead.
    before
        Command in front of it.

    """

    def __init__(self, directory, *words, prefix='', stdout=None, before=()):
        self.mark = uuid.uuid4().hex
        self._file = directory / f'output-{self.mark}.txt'
        environment = {**os.environ, MARK: self.mark, 'COLUMNS': '100',
                       'ROS_LOG_DIR': str(directory / 'log'),
                       'AMENT_PREFIX_PATH': os.pathsep.join(filter(None, [
                           prefix, os.environ.get('AMENT_PREFIX_PATH', '')]))}
        with self._file.open('w') as output:
            self.process = subprocess.Popen(
                [*before, sys.executable, '-m', 'biped_com_ros.launching.run', *words],
                stdin=subprocess.DEVNULL, stdout=stdout or output, stderr=subprocess.STDOUT,
                env=environment, start_new_session=True)

    @property
    def output(self):
        return self._file.read_text(errors='replace')

    @property
    def is_running(self):
        return self.process.poll() is None

    def pids(self):
        return [int(pid) for pid in re.findall(r'process started with pid \[(\d+)\]', self.output)]

    def commands(self):
        """Return the command lines of its processes that live, by their environment."""
        found = []
        for path in Path('/proc').glob('[0-9]*/environ'):
            try:
                if f'{MARK}={self.mark}'.encode() in path.read_bytes():
                    found.append((path.parent / 'cmdline').read_text().replace('\0', ' '))
            except OSError:
                pass
        return found

    def interrupt(self):
        """Send SIGINT; return the exit code and the seconds until the end."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LIMIT), time.monotonic() - start

    def end(self):
        """End it if the test did not, hard if it does not react."""
        if self.is_running:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60.0)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


class Processes:
    """Nodes in processes of their own, ended by SIGINT."""

    def __init__(self, directory):
        self.directory = directory
        self._running = []

    def start(self, node, *arguments):
        """Start a node of the package; return the file that gets its output."""
        output = self.directory / f'{node}-{len(self._running)}.log'
        self._running.append(subprocess.Popen(
            [sys.executable, '-m', f'biped_com_ros.nodes.{node}.node', '--ros-args', *arguments],
            stdout=output.open('a'), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, 'PYTHONUNBUFFERED': '1'}))
        return output

    def kill_last(self):
        """Let the one that was started last end at once."""
        process = self._running.pop()
        process.kill()
        process.wait()

    def end(self):
        """End all, the simulator gently so that it finishes its recording; return exit codes."""
        for process in self._running:
            process.send_signal(signal.SIGINT)
        codes = []
        for process in self._running:
            try:
                codes.append(process.wait(60.0))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait())
        return codes


def wait_for(condition, log):
    """Wait until a condition holds; show the end of a log if it does not."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, log()[-3000:]
        time.sleep(0.1)


def changed_parameters(source, directory, /, **values):
    """Return a copy of a parameter file of one node with other values."""
    document = yaml.safe_load(source.read_text())
    section, = document.values()
    section['ros__parameters'].update(values)
    file = directory / source.name
    file.write_text(yaml.safe_dump(document))
    return file


def busyness():
    """Return how many processes wait for each core, at least 1: ends take so much longer."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def foreground(chapters, robot='biped'):
    """Return the words that `make demo` launches with, but for the page."""
    return ('--foreground', 'demo', 'demo.launch.py', 'viewer:=false', f'robot:={robot}',
            f'chapters:={chapters}')
