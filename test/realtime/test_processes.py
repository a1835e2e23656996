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
"""Processes of nodes: interrupted, hanging, failing in callbacks, several nodes in one."""

import os
from pathlib import Path
import queue
import re
import signal
import subprocess
import sys
import threading
import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from support import faulty_nodes
from support.launched import busyness

PARTICIPANT_PER_TEST = True  # see support/ros_fixtures.py

ROOT = Path(__file__).parents[2]
FAULTY = faulty_nodes.__file__
#: Runs a module, and prints when Python itself has started.
ANNOUNCED = (
    'import importlib, runpy, sys; module = sys.argv.pop(1); '
    "sys.orig_argv[1:3] = ['-m', module]; importlib.import_module(module.rsplit('.', 1)[0]); "
    "print('ready', flush=True); runpy.run_module(module, run_name='__main__')")


class PythonProcess:
    """A Python process whose output is collected."""

    def __init__(self, *arguments, plain=False):
        environment = {**os.environ, 'BIPED_COM_PLAIN': str(int(plain)),
                       'PYTHONPATH': os.pathsep.join(path for path in sys.path if path)}
        self.popen = subprocess.Popen(
            [sys.executable, *map(str, arguments)], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines, self._shown = queue.Queue(), []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.put(line.rstrip('\n'))

    def until_printed(self, text):
        while not self._shown or text not in self._shown[-1]:
            self._shown.append(self.lines.get(timeout=100.0))

    def end(self, number=None):
        """Send a signal, wait; returns (exit code, seconds it took, output)."""
        start = time.monotonic()
        if number is not None:
            self.popen.send_signal(number)
        try:
            code = self.popen.wait(15.0 * busyness())
        except subprocess.TimeoutExpired:
            self.popen.send_signal(signal.SIGUSR1)
            self._reader.join(1.0)
            pytest.fail('does not end: ' + '\n'.join(self.lines.queue))
        taken = time.monotonic() - start
        self._reader.join(1.0)
        return code, taken, '\n'.join([*self._shown, *self.lines.queue])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.popen.kill()
        self.popen.wait()


def test_ends_that_take_long_and_ends_that_hang(rig):
    """Files are completed; a hanging middleware is no failure of the node; its own code is."""
    with PythonProcess(FAULTY, 'Writing') as writing, \
            PythonProcess(FAULTY, 'HangingInside') as inside, \
            PythonProcess(FAULTY, 'Hanging') as hanging:
        rig.until(lambda: rig.peer.count_publishers('out') == 3, what='the nodes')
        rig.spin(0.2)
        for process in (inside, hanging):
            process.popen.send_signal(signal.SIGINT)
        code, taken, output = writing.end(signal.SIGINT)
        assert code == 0 and taken > 2.5, output
        assert output.splitlines()[-1] == 'the file is complete'
        for process, expected, is_reported in ((inside, 0, False), (hanging, 1, True)):
            code, more, output = process.end()
            assert code == expected and taken + more < 5.0 * busyness(), output
            assert ('in destroy_node' in output) == is_reported, output


@pytest.mark.parametrize(('plain', 'number'), [(False, signal.SIGINT), (True, signal.SIGTERM)])
def test_callbacks_that_raise_end_neither_their_node_nor_another_one(rig, plain, number):
    with PythonProcess(FAULTY, 'suite', '--ros-args', '-p', 'nodes:=[faulty, healthy]',
                       plain=plain) as process:
        ticks = rig.collect(String, 'tick')
        received = rig.collect(Float64, 'out')
        diagnostics = rig.collect(DiagnosticArray, '/diagnostics')
        sender = rig.publisher(Float64, 'in')
        rig.until(lambda: sender.get_subscription_count() == 2, what='both nodes')
        client = rig.peer.create_client(Trigger, '/faulty/serve')
        response = rig.call(client, Trigger.Request())
        assert not response.success and 'log of faulty' in response.message
        rig.until(lambda: sender.publish(Float64()) or len(received) >= 10)
        rig.until(lambda: all([t.data for t in ticks].count(what) >= 3
                              for what in ('tick', 'late', 'received')), what='three of each')
        rig.until(lambda: any(s.name == 'faulty: callbacks' and s.level == DiagnosticStatus.ERROR
                              and 'failed' in s.message for d in diagnostics for s in d.status))
        code, taken, output = process.end(number)
    assert code == 0 and taken < busyness(), output
    # Each kind of error is logged once in 5 s, under the node's name, the deliberate ones
    # without a traceback.
    for text in ('ZeroDivisionError: failed to tick', 'ValueError: failed late', 'failed to hear'):
        assert 1 <= output.count(text) <= busyness()
    assert 'KeyError' in output and '[faulty]' in output
    assert 'ConfigurationError' not in output


@pytest.mark.parametrize(('plain', 'number'), [(False, signal.SIGTERM), (True, signal.SIGINT)])
def test_several_nodes_in_one_process_keep_names_parameters_and_remappings(
        rig, tmp_path, plain, number):
    parameters = tmp_path / 'suite.yaml'
    parameters.write_text('healthy:\n  ros__parameters: {gain: 2.0}\n'
                          '/robot/second:\n  ros__parameters: {gain: 3}\n')
    with PythonProcess(FAULTY, 'suite', '--ros-args', '-p', 'nodes:=[healthy, second]',
                       '-r', 'second:__ns:=/robot', '-r', 'second:in:=/in',
                       '-r', 'healthy:out:=doubled', '--params-file', parameters,
                       plain=plain) as process:
        doubled = rig.collect(Float64, 'doubled')
        tripled = rig.collect(Float64, '/robot/second/out')
        sender = rig.publisher(Float64, '/in')
        rig.until(lambda: sender.get_subscription_count() == 2)
        rig.until(lambda: sender.publish(Float64(data=1.5)) or (doubled and tripled))
        assert (doubled[0].data, tripled[0].data) == (3.0, 4.5)
        client = rig.peer.create_client(GetParameters, '/robot/second/get_parameters')
        value = rig.call(client, GetParameters.Request(names=['gain'])).values[0]
        assert value.double_value == 3.0
        rig.until(lambda: 'healthy_suite' in rig.peer.get_node_names(), what='its name')
        assert 'suite' not in rig.peer.get_node_names()
        code, taken, output = process.end(number)
    assert code == 0 and taken < busyness() and 'Traceback' not in output, output


def later(*values):
    return [pytest.param(*row, marks=pytest.mark.thorough) for row in values]


@pytest.mark.parametrize(('module', 'words'), [
    ('nodes.simulator.node', ('--help',)), *later(
        ('nodes.simulator.node', ()),
        ('nodes.suite.node', ('--ros-args', '-p', 'nodes:=[simulator]')))])
def test_without_mujoco_one_line_names_what_to_install(module, words):
    code = "import sys; sys.modules['mujoco'] = None; " + ANNOUNCED
    with PythonProcess('-c', code, f'biped_com_ros.{module}', *words) as process:
        code, _, output = process.end()
    ready, problem = (line for line in output.splitlines() if line)
    assert code == 1 and ready == 'ready'
    assert 'needs the Python package mujoco' in problem and 'pip install mujoco' in problem


NODE = ('biped_com_ros.nodes.zmp_monitor.node',)
TOOL = ('biped_com_ros.offline.calibrate', ROOT / 'doc/sample/sabian.mcap', '--robot', 'sabian')


@pytest.mark.parametrize(('words', 'progress', 'delay'), [
    (NODE, 'ready', 0.3), (TOOL, 'ready', 0.5), *later(
        *((NODE, 'ready', delay) for delay in (0.1, 0.2, 0.45, 0.6, 0.8)), (TOOL, 'ready', 0.1),
        (TOOL, 'captures of', 0.0))])
def test_an_interrupt_leaves_no_traceback(tmp_path, words, progress, delay):
    if words is TOOL:
        words = (*TOOL, '--out', tmp_path)
    with PythonProcess('-c', ANNOUNCED, *words) as process:
        process.until_printed(progress)
        time.sleep(delay)
        code, _, output = process.end(signal.SIGINT)
    assert not re.search('Traceback|KeyboardInterrupt', output), output
    assert code in ((0, -signal.SIGINT) if words is NODE else (-signal.SIGINT,))


INTERRUPTED = """
import os, signal, sys, weakref
sys.orig_argv = ['', 'biped_com_ros']
import biped_com_ros.nodes

class Module: pass

def on_end(_):  # as importlib's, in which exceptions get lost
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass

def main():
    try:
        on_end(None)
    finally:
        print('ended in order', flush=True)

module = Module()
reference = weakref.ref(module, on_end)
if sys.argv[1] == 'importing':
    del module
    print('goes on', flush=True)
elif sys.argv[1] == 'failing':
    1 / 0
else:
    main()
"""


@pytest.mark.parametrize(('when', 'printed'), [
    ('importing', '^$'), ('running', '^ended in order$'), ('failing', 'ZeroDivisionError')])
def test_an_interrupt_is_not_lost_in_a_callback_of_an_import_and_errors_are_shown(when, printed):
    with PythonProcess('-c', INTERRUPTED, when) as process:
        code, _, output = process.end()
    assert re.search(printed, output) and code != 0, output
