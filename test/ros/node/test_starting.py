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
"""Starting executables: help, wrong words, and why a node or a suite of nodes cannot start."""

import os
from pathlib import Path
import re
import runpy
import signal
import sys
from types import SimpleNamespace

import biped_com_ros
from biped_com_ros.nodes import NODES
from biped_com_ros.nodes.suite import node as suite
from biped_com_ros.ros.node import ending, executor
import pytest
import rclpy

OF_ROS = sorted({path.parent.name for path in (
    Path(biped_com_ros.__file__).parent / 'nodes').glob('*/node.py')} - {'robot_description'})
TOOLS = ['nodes.robot_description.node', 'offline.calibrate', 'offline.check',
         'launching.run']
FAULTY = 'support.faulty_nodes'


def of_node(name):
    return f'biped_com_ros.nodes.{name}.node'


@pytest.fixture(scope='module', autouse=True)
def ros():
    """Leave rclpy to what is started here."""


@pytest.fixture(autouse=True)
def as_before():
    """Leave neither a context nor the signal ignored that a node of this process has set."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    rclpy.try_shutdown()
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def start(capfd, monkeypatch):
    """Return a function that runs a module to its end: returns exit code, output, errors."""
    # A slow end would end this process, which runs the tests.
    monkeypatch.setattr(ending, 'LONGEST_END', 100.0)
    monkeypatch.setattr(ending, 'LONGEST_HANG', 100.0)

    def run(module, *words):
        monkeypatch.setattr(sys, 'argv', [module, *words])
        with pytest.raises(SystemExit) as end:
            runpy.run_module(module, run_name='__main__', alter_sys=True)
        return end.value.code or 0, *capfd.readouterr()
    return run


@pytest.mark.parametrize('module', [
    *map(of_node, OF_ROS), *(f'biped_com_ros.{name}' for name in TOOLS)])
def test_every_executable_explains_itself(start, module):
    code, output, errors = start(module, '--help')
    assert code == 0 and not errors
    assert len(output.splitlines()) > 5
    assert 'node.py' not in output
    assert not re.search(':[a-z]+:`', output), 'a role of Sphinx'
    if (name := module.split('.')[2]) in OF_ROS:
        assert f'ros2 run biped_com_ros {name} --ros-args' in output
        assert '\nParameters:\n' in output


@pytest.mark.parametrize(('name', 'words', 'corrected'), [
    *((name, ['-p', 'robot:=talos'], '-p robot:=talos') for name in OF_ROS),
    ('zmp_monitor', ['robot:=talos', '--params-file', 'a.yaml'],
     '-p robot:=talos --params-file a.yaml')])
def test_arguments_without_ros_args_are_refused_with_the_right_call(start, name, words, corrected):
    code, _, errors = start(of_node(name), *words)
    assert code == 2 and len(errors.splitlines()) == 1
    assert f'ros2 run biped_com_ros {name} --ros-args {corrected}' in errors


NO_TORSO = ['robot:=talos', 'optional:=true']


@pytest.mark.parametrize(('module', 'words', 'given', 'begin', 'text'), [
    # All of their files are called node.py.
    (of_node('com_estimator'), [], ['robot:=tallos'], '[FATAL] [com_estimator]: ', "'talos'"),
    (of_node('demo'), [], ['robot:=tallos'], '[FATAL] [demo]: ', "'talos'"),
    (of_node('com_calibrator'), [], ['robot:=talos', 'move:=true', 'hoist_service:=7up'],
     '[FATAL] [com_calibrator]: ', 'Invalid service name: topic name token must not start'),
    (of_node('suite'), [], [], '', ', '.join(sorted(NODES))),
    (of_node('torso_controller'), [], NO_TORSO[:1], '',
     "robot 'talos' has no tendon-driven torso"),
    (of_node('suite'), [], [*NO_TORSO, 'nodes:=[torso_controller, com_estimator]'], '',
     "leave it out of the parameter 'nodes'"),
    (of_node('com_estimator'), [], ["use_sim_time:='True'"], '', 'without quotes'),
    (FAULTY, ['Stillborn'], [], '', ": the widget 'x' is missing (valid: a, b)"),
    (FAULTY, ['Healthy'], ['gain'], '', 'gain'),
    (FAULTY, ['Healthy'], ['gain:=-1.0'], '', "'gain': -1.0 is out of range; valid: at least 0"),
    (FAULTY, ['suite'], ['nodes:=[helthy]'], '',
     "unknown node 'helthy' in parameter 'nodes'; did you mean 'healthy'?"),
    (FAULTY, ['suite'], ['nodes:=[healthy, healthy]'], '', "names 'healthy' more than once"),
    (FAULTY, ['suite'], ['nodes:=[healthy, stillborn]'], '',
     "node 'stillborn' cannot start: the widget 'x' is missing"),
    (FAULTY, ['suite'], ['nodes:=3'], '', "parameter 'nodes': 3 has to be a list of str"),
    (FAULTY, ['suite', '--ros-args', '-r', '__node:=other'], ['nodes:=[healthy]'], '',
     'com_estimator:__node:=other')])
def test_what_cannot_start_reports_so_in_one_line(start, module, words, given, begin, text):
    code, output, errors = start(module, *words, '--ros-args', *(
        word for parameter in given for word in ('-p', parameter)))
    line = errors.splitlines()[-1]
    assert code == 1 and line.startswith(begin) and text in line
    assert 'Traceback' not in output + errors


@pytest.mark.parametrize('urdf', ['', 'topic'])
def test_an_optional_node_that_the_robot_does_not_need_exits_without_an_error(start, urdf):
    words = [word for value in (*NO_TORSO, f'urdf:={urdf!r}') for word in ('-p', value)]
    code, *output = start(of_node('torso_controller'), '--ros-args', *words)
    assert code == 0 and "robot 'talos' has no tendon-driven torso" in ''.join(output)


def test_without_a_directory_for_logs_the_remedy_is_named(start, tmp_path, monkeypatch):
    (tmp_path / 'file').touch()
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path / 'file' / 'log'))
    code, _, errors = start(of_node('com_estimator'))
    assert code == 1
    assert errors.startswith('[FATAL] [com_estimator]: cannot start: ')
    assert errors.endswith('; set ROS_LOG_DIR to a directory that can be written\n')


def test_a_bug_keeps_its_traceback(start):
    with pytest.raises(AttributeError, match='a bug'):
        start(FAULTY, 'Buggy')


def test_nodes_do_not_choose_a_profile_of_dds_themselves():
    """A profile changes how all topics of a process behave: that is for users to decide."""
    before = dict(os.environ)
    assert executor.run(lambda: rclpy.shutdown() or [], []) == 0
    assert dict(os.environ) == before


def test_registry_names_classes_that_exist():
    assert all(callable(suite.load_class(location)) for location in NODES.values())


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
