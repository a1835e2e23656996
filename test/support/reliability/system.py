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
"""The nodes as processes of a launch file, which can be killed, stopped and doubled."""

import contextlib
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import tempfile
import time

from support.launched import Launched

NODES = ('wrench_aggregator', 'com_estimator', 'zmp_monitor', 'gravity_compensation')
#: Nodes that others do without, by what `System` starts them with.
OTHERS = {
    'payload_estimator': ('payload.launch.py', ()),
    'com_calibrator': ('calibration.launch.py', ('directory:=$TEMPORARY',)),
    'gait_player': ('gait.launch.py', ()),
    'torso_controller': ('torso.launch.py', (  # the robot has the backbone's joints already
        'autostart:=true', 'joint_states:=torso_controller/joint_states')),
    'viewer': ('viewer.launch.py', ('port:=0',))}


class System:
    """
    The estimators and gravity compensation, respawned when they end.

    Parameters
    ----------
    namespace, robot
        Of the nodes.
    simulated
        Whether they run on simulated time.
    composed
        Whether the estimators share a process.
    file
        Launch file, with the arguments `more`, in which ``$TEMPORARY`` is a directory.
    prefix
        Command in front of the launch runner.

    """

    def __init__(self, namespace, robot, simulated=False,
                 composed=False, file='bringup.launch.py',
                 more=('gravity:=active', 'torso:=false'),
                 prefix=()):
        self.namespace, self.robot, self._simulated = namespace, robot, simulated
        self._directory = tempfile.TemporaryDirectory(prefix='reliability_')
        directory = self._directory.name
        arguments = [f'robot:={robot}', f'namespace:={namespace}', 'respawn:=all', *(
            argument.replace('$TEMPORARY', directory) for argument in more)]
        if simulated:
            arguments.append('use_sim_time:=true')
        if file == 'bringup.launch.py':
            arguments.append(f'composed:={str(composed).lower()}')
        self._launched = Launched(Path(directory), file, *arguments, before=prefix)

    def pid(self, node):
        """Return the process of a node that was started last."""
        output = self._launched.output
        found = re.findall(rf'\[{node}-\d+\]: process started with pid \[(\d+)\]', output)
        if not found:
            raise RuntimeError(f'{node} was not started:\n{output}')
        return int(found[-1])

    def send(self, node, number):
        """Send a signal to a node."""
        os.kill(self.pid(node), number)

    @contextlib.contextmanager
    def beside(self, node, *arguments):
        """Run a second node of the same name."""
        clock = ('-p', f'use_sim_time:={str(self._simulated).lower()}')
        with process(['-m', f'biped_com_ros.nodes.{node}.node', '--ros-args',
                      '-r', f'__ns:=/{self.namespace}', '-p', f'robot:={self.robot}',
                      '-r', f'{node}:~/commands:=effort_controller/commands',
                      *clock, *arguments]) as second:
            yield second

    def close(self):
        """End all processes."""
        self._launched.end()
        self._directory.cleanup()


class SimulatorProcess:
    """
    The simulator as a process.

    Parameters
    ----------
    namespace, robot
        Of its topics.

    """

    def __init__(self, namespace, robot):
        self._arguments = ['-m', 'biped_com_ros.nodes.simulator.node', '--ros-args',
                           '-r', f'__ns:=/{namespace}', '-p', f'robot:={robot}', '-p',
                           'rate:=200.0']
        self.start()

    def start(self):
        """Start it, again if it was killed."""
        self._stack = contextlib.ExitStack()
        self._process = self._stack.enter_context(process(self._arguments))

    def send(self, number):
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self):
        """Kill it at once."""
        self._process.kill()
        self._process.wait()

    def close(self):
        """End it."""
        self._stack.close()


@contextlib.contextmanager
def process(arguments):
    """Run a Python process; it is interrupted at the end, and killed if that does not end it."""
    running = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGCONT)
        running.send_signal(signal.SIGINT)
        try:
            running.wait(8.0)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextlib.contextmanager
def busy_cores(per_core=2):
    """Have so many busy loops on each core."""
    count = per_core * (os.cpu_count() or 1)
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(process(['-c', 'while True: pass']))
        time.sleep(0.1)
        yield
