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
"""Launch files of small scripts, run by the launch runner as a process."""

from collections.abc import Callable
import json
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import time

from biped_com_ros.launching import run, supervisor
from biped_com_ros.launching.files import LAUNCH_FILES, LaunchFile
from biped_com_ros.launching.programs import Program

# Each script says when it is ready, so that no test has to guess how long a start takes.
SCRIPTS = {
    'polite': """
        count = 0
        def on_signal(number, frame):
            print('got', signal.Signals(number).name, flush=True)
            time.sleep(0.3)  # a second, unwanted signal would be visible
            sys.exit(0)
        signal.signal(signal.SIGINT, on_signal)
        signal.signal(signal.SIGTERM, on_signal)
        print('ready', flush=True)
        while True:
            time.sleep(1)
        """,
    'default': """
        print('ready', flush=True)
        time.sleep(100)
        """,
    'stubborn': """
        for number in (signal.SIGINT, signal.SIGTERM):
            # In one write: two processes share the pipe.
            signal.signal(number, lambda number, frame: os.write(1, b'ignored %d\\n' % number))
        child = subprocess.Popen([sys.executable, __file__, 'grandchild']) \\
            if 'grandchild' not in sys.argv else None
        os.write(1, b'ready\\n')
        while True:
            time.sleep(1)
        """,
    'leaves_child': """
        subprocess.Popen(['sleep', '1000'], close_fds=False)
        print('ready', flush=True)
        """,
    'fails': """
        print('about to fail', file=sys.stderr)
        sys.exit(7)
        """,
    'fails_once': """
        if not os.path.exists(sys.argv[1]):
            open(sys.argv[1], 'w').close()
            sys.exit(3)
        print('ready', flush=True)
        time.sleep(100)
        """,
    'refuses': """
        print('the table')
        print("unknown robot 'x'", file=sys.stderr)
        sys.exit(1)
        """,
    'fatal': """
        print(f"[FATAL] [{os.getpid()}]: unknown robot 'x'", file=sys.stderr)
        sys.exit(1)
        """,
    'logs': """
        print('the table')
        print('[INFO] a line that would break it', file=sys.stderr)
        """,
    'crashes': """
        os.kill(os.getpid(), signal.SIGSEGV)
        """,
    'ends_with': """
        def on_signal(number, frame):
            print(sys.argv[2].replace('|', '\\n'), file=sys.stderr)
            sys.exit(int(sys.argv[1]))
        signal.signal(signal.SIGINT, on_signal)
        print('ready', flush=True)
        time.sleep(100)
        """,
    'ends': """
        print('done')
        """,
    'talks': """
        print('on stdout\\nsecond')
        print('on stderr', file=sys.stderr)
        sys.stdout.write('no newline at the end')
        """,
    'environment': """
        print('TMPDIR is', os.environ['TMPDIR'], 'tty', sys.stdout.isatty())
        print('logs in', os.environ['ROS_LOG_DIR'])
        """,
}


#: For processes that end by themselves: however busy the machine is, nobody hurries them.
PATIENT = {'sigterm_timeout': 15.0, 'sigkill_timeout': 15.0}
#: Variable with the programs of the launch file `x`, and what it waits for, as JSON.
SCRIPTED = 'SCRIPTED_LAUNCH_FILE'


def node(name, **options):
    """Return a program of the scripts; see `Program`."""
    return {'package': 'fake', 'executable': name, 'sigterm_timeout': 1.8, 'sigkill_timeout': 0.8,
            **options}


def scripted_command(words, slow=''):
    """Return command and environment of run_launch with programs and options."""
    programs = [word for word in words if isinstance(word, dict)]
    options = [word for word in words if isinstance(word, str)]
    tests = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, SCRIPTED: json.dumps({'programs': programs, 'slow': slow}),
                   'PYTHONPATH': os.pathsep.join((tests, os.environ.get('PYTHONPATH', '')))}
    return [sys.executable, '-m', 'support.scripted_launch', 'x', *options], environment


def scripted_file():
    """Return the launch file that the environment describes."""
    description = json.loads(os.environ[SCRIPTED])

    def programs(arguments):
        if description['slow']:
            subprocess.run(description['slow'].split())
        return [Program(**program) for program in description['programs']]
    return LaunchFile('x', programs, ('robot', 'composed'))


class Runner:
    """A run_launch process and its output."""

    def __init__(self, tmp_path, package, *words, slow=''):
        command, environment = scripted_command(words, slow)
        self.directory = tmp_path
        self._mark = str(package)
        self._output = tmp_path / 'output.txt'
        environment |= {'AMENT_PREFIX_PATH': str(package),
                        'ROS_LOG_DIR': str(tmp_path / 'log'), 'TMPDIR': str(tmp_path)}
        with self._output.open('w') as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)

    @property
    def output(self):
        return self._output.read_text()

    @property
    def log(self):
        log, = (self.directory / 'log').glob('*/launch.log')
        return log.read_text()

    def wait_for(self, text, count=1):
        deadline = time.monotonic() + 20
        while len(re.findall(text, self.output)) < count:
            assert time.monotonic() < deadline, f'no "{text}" in:\n{self.output}'
            time.sleep(0.02)

    def end(self, number=signal.SIGINT):
        """Send a signal; return the exit code and how long the end took, s."""
        start = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout=100)
        return code, time.monotonic() - start

    def survivors(self):
        """Command lines of processes of the fake package that still live."""
        return living(lambda command, group: self._mark in command)


def living(matches):
    """Command lines of the processes that match by command and group, without zombies."""
    found = []
    for entry in Path('/proc').glob('[0-9]*'):
        try:
            command = (entry / 'cmdline').read_text().replace('\0', ' ')
            state, _, group = (entry / 'stat').read_text().rpartition(')')[2].split()[:3]
        except OSError:
            continue
        if state != 'Z' and matches(command, int(group)):
            found.append(command)
    return found


Start = Callable[..., Runner]


if __name__ == '__main__':
    LAUNCH_FILES['x'] = scripted_file()
    supervisor.RESPAWN_DELAY = 0.1
    sys.exit(run.main())
