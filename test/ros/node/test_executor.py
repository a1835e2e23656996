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
"""Running nodes: clean ends, clear failures, callbacks that raise; one process or several."""

from __future__ import annotations

import os
from pathlib import Path
import queue
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.nodes import NODES
from biped_com_ros.nodes.suite import node as suite
from biped_com_ros.ros.node import executor
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from support import faulty_nodes

PARTICIPANT_PER_TEST = True  # see conftest.py

SCRIPT = faulty_nodes.__file__


@pytest.fixture(params=['events', 'plain'])
def kind(request):
    return request.param


class PythonProcess:
    """A Python process whose output is collected."""

    def __init__(self, *arguments, kind='events'):
        root = Path(SCRIPT).resolve().parents[2]
        path = [str(root), str(root / 'test'), os.environ.get('PYTHONPATH', '')]
        environment = {**os.environ, 'BIPED_COM_PLAIN': str(int(kind == 'plain')),
                       'PYTHONPATH': os.pathsep.join(path)}
        self.popen = subprocess.Popen(
            [sys.executable, *map(str, arguments)], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.put(line.rstrip('\n'))

    def end(self, number=None):
        """Send a signal, wait; returns (exit code, seconds it took, output)."""
        start = time.monotonic()
        if number is not None:
            self.popen.send_signal(number)
        try:
            code = self.popen.wait(15)
        except subprocess.TimeoutExpired:
            self.popen.send_signal(signal.SIGUSR1)
            self.reader.join(1.0)
            pytest.fail('does not end: ' + '\n'.join(self.lines.queue))
        taken = time.monotonic() - start
        self.reader.join(1.0)
        return code, taken, '\n'.join(self.lines.queue)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.popen.kill()
        self.popen.wait()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signals_end_cleanly_within_a_second(rig, kind, number):
    with PythonProcess(SCRIPT, 'Healthy', kind=kind) as process:
        rig.until(lambda: rig.peer.count_publishers('out'), what='the node')
        rig.spin(0.2)
        code, taken, output = process.end(number)
    assert code == 0 and taken < 1.0 and 'Traceback' not in output, output


def test_files_are_completed_however_long_it_takes(rig):
    with PythonProcess(SCRIPT, 'Writing') as process:
        rig.until(lambda: rig.peer.count_publishers('out'), what='the node')
        rig.spin(0.2)
        code, taken, output = process.end(signal.SIGINT)
    assert code == 0 and taken > 2.5, output
    assert output.splitlines()[-1] == 'the file is complete'


@pytest.mark.parametrize('name, expected, is_reported', [
    ('HangingInside', 0, False), ('Hanging', 1, True)])
def test_an_end_that_hangs_is_cut_short(rig, name, expected, is_reported):
    """A hanging middleware is no failure of the node; its own code is, and is named."""
    with PythonProcess(SCRIPT, name) as process:
        rig.until(lambda: rig.peer.count_publishers('out'), what='the node')
        rig.spin(0.2)
        code, taken, output = process.end(signal.SIGINT)
    assert code == expected and taken < 5.0, output
    assert ('in destroy_node' in output) == is_reported, output


def test_callbacks_that_raise_do_not_end_the_node(rig, kind):
    with PythonProcess(SCRIPT, 'Faulty', kind=kind) as process:
        ticks = rig.collect(String, 'tick')
        diagnostics = rig.collect(DiagnosticArray, '/diagnostics')
        sender = rig.publisher(Float64, 'in')
        client = rig.peer.create_client(Trigger, '/faulty/serve')
        for _ in range(3):
            sender.publish(Float64())
        response = rig.call(client, Trigger.Request())
        assert not response.success and 'log of faulty' in response.message
        rig.until(lambda: all([t.data for t in ticks].count(what) >= 3
                              for what in ('tick', 'late', 'received')), what='three of each')
        rig.until(lambda: any(s.name == 'faulty: callbacks' and s.level == DiagnosticStatus.ERROR
                              and 'failed' in s.message for d in diagnostics for s in d.status))
        code, _, output = process.end(signal.SIGINT)
    assert code == 0
    # Each kind of error is logged once in 5 s, under the node's name, the deliberate ones
    # without a traceback.
    assert output.count('ZeroDivisionError: failed to tick') == 1
    assert output.count('ValueError: failed late') == 1
    assert 'KeyError' in output and '[faulty]' in output
    assert output.count('failed to hear') == 1
    assert 'ConfigurationError' not in output


def test_node_that_cannot_start_reports_so_in_one_line(kind):
    with PythonProcess(SCRIPT, 'Stillborn', kind=kind) as process:
        code, _, output = process.end()
    assert code == 1
    assert output.splitlines()[-1].endswith(": the widget 'x' is missing (valid: a, b)")
    assert 'Traceback' not in output


def test_bad_arguments_are_reported_in_one_line():
    with PythonProcess(SCRIPT, 'Healthy', '--ros-args', '-p', 'gain') as process:
        code, _, output = process.end()
    assert code == 1 and 'Traceback' not in output and 'gain' in output.splitlines()[-1]
    with PythonProcess(SCRIPT, 'Healthy', '--ros-args', '-p', 'gain:=-1.0') as process:
        code, _, output = process.end()
    assert code == 1 and "'gain': -1.0 is out of range; valid: at least 0" in output
    assert 'Traceback' not in output


def test_a_bug_keeps_its_traceback():
    with PythonProcess(SCRIPT, 'Buggy') as process:
        code, _, output = process.end()
    assert code == 1 and 'Traceback' in output and 'AttributeError: a bug' in output


# -- suite


def test_several_nodes_in_one_process_keep_names_parameters_and_remappings(rig, tmp_path, kind):
    parameters = tmp_path / 'suite.yaml'
    parameters.write_text('healthy:\n  ros__parameters: {gain: 2.0}\n'
                          '/robot/second:\n  ros__parameters: {gain: 3}\n')
    with PythonProcess(SCRIPT, 'suite', '--ros-args', '-p', 'nodes:=[healthy, second]',
                       '-r', 'second:__ns:=/robot', '-r', 'second:in:=/in',
                       '-r', 'healthy:out:=doubled', '--params-file', parameters,
                       kind=kind) as process:
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
        code, taken, output = process.end(signal.SIGTERM)
    assert code == 0 and taken < 1.0, output


def test_one_faulty_node_leaves_the_others_alone(rig):
    with PythonProcess(SCRIPT, 'suite', '--ros-args', '-p', 'nodes:=[faulty, healthy]') as process:
        received = rig.collect(Float64, 'out')
        sender = rig.publisher(Float64, 'in')
        rig.until(lambda: sender.get_subscription_count() == 2)
        for _ in range(20):
            sender.publish(Float64(data=1.0))
        rig.until(lambda: len(received) >= 10)
        assert process.end(signal.SIGINT)[0] == 0


def start_suite(nodes, *arguments):
    with PythonProcess(
            SCRIPT, 'suite', '--ros-args', '-p', f'nodes:={nodes}', *arguments) as process:
        code, _, output = process.end()
    assert 'Traceback' not in output
    return code, output.splitlines()[-1]


@pytest.mark.parametrize('nodes, text', [
    ('[helthy]', "unknown node 'helthy' in parameter 'nodes'; did you mean 'healthy'?"),
    ('[healthy, healthy]', "names 'healthy' more than once"),
    ('[healthy, stillborn]', "node 'stillborn' cannot start: the widget 'x' is missing"),
    ('3', "parameter 'nodes': 3 has to be a list of str")])
def test_suite_that_cannot_start_names_the_node(nodes, text):
    code, line = start_suite(nodes)
    assert code == 1 and text in line, line


def test_suite_must_not_be_renamed():
    code, line = start_suite('[healthy]', '-r', '__node:=other')
    assert code == 1 and 'com_estimator:__node:=other' in line


def test_suite_without_nodes_lists_them():
    with PythonProcess('-m', 'biped_com_ros.nodes.suite.node') as process:
        code, _, output = process.end()
    assert code == 1 and all(name in output for name in NODES)


def test_suite_fails_as_a_whole():
    with pytest.raises(ConfigurationError, match='stillborn'):
        suite._start_all(['healthy', 'stillborn'], faulty_nodes.NODES)
    with pytest.raises(UnknownNameError):
        suite._check_names(['walker'], NODES)


@pytest.mark.parametrize('urdf', ['', 'topic'])
def test_an_optional_node_that_the_robot_does_not_need_exits_without_an_error(urdf):
    arguments = ('--ros-args', '-p', 'robot:=talos', '-p', 'optional:=true', '-p',
                 f'urdf:={urdf!r}')
    with PythonProcess('-m', 'biped_com_ros.nodes.torso_controller.node', *arguments) as process:
        code, _, output = process.end()
        assert code == 0 and "robot 'talos' has no tendon-driven torso" in output
    with PythonProcess('-m', 'biped_com_ros.nodes.suite.node', *arguments, '-p',
                       'nodes:=[torso_controller, com_estimator]') as process:
        code, _, output = process.end()
        assert code == 1 and "leave it out of the parameter 'nodes'" in output


def test_without_optional_a_robot_without_tendons_is_an_error():
    with PythonProcess('-m', 'biped_com_ros.nodes.torso_controller.node', '--ros-args', '-p',
                       'robot:=talos') as process:
        code, _, output = process.end()
    assert code == 1 and "robot 'talos' has no tendon-driven torso" in output


def test_registry_names_classes_that_exist():
    for location in NODES.values():
        assert callable(suite.load_class(location))


def test_a_node_that_commands_has_five_seconds_to_end_softly(monkeypatch):
    """Launch sends SIGTERM after five; a ramp of 1 s that began late takes two."""
    clock, stopped = [0.0], []

    class Ramping:

        def stop(self):
            stopped.append(clock[0])

        def busy(self):
            return 'efforts are still ramping down' if clock[0] < self.until else ''

    class Executor:

        def spin_until_future_complete(self, future, seconds):
            clock[0] += seconds

    monkeypatch.setattr(executor, 'time', SimpleNamespace(
        monotonic=lambda: clock[0], sleep=lambda seconds: None))
    monkeypatch.setattr(executor, 'rclpy', SimpleNamespace(ok=lambda: True))
    node = Ramping()
    for node.until, expected in (3.0, 3.0), (99.0, 5.0):
        clock[0] = 0.0
        executor._end_softly(Executor(), [node], [node])
        assert clock[0] == pytest.approx(expected, abs=0.05)
    assert stopped == [0.0, 0.0]
