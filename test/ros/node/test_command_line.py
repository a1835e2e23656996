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
"""The command lines of all executables: help, and words that ROS would ignore."""

from __future__ import annotations

import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import time

import biped_com_ros
import pytest

NODES = sorted(path.parent.name for path in (
    Path(biped_com_ros.__file__).parent / 'nodes').glob('*/node.py'))
OF_ROS = [name for name in NODES if name != 'robot_description']
ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / 'doc/sample/sabian.mcap'
#: Imports the package of an executable, says so, and runs the executable that is named.
_ANNOUNCED = (
    'import importlib, runpy, sys; module = sys.argv.pop(1); '
    "sys.orig_argv[1:3] = ['-m', module]; importlib.import_module(module.rsplit('.', 1)[0]); "
    "print('ready', flush=True); runpy.run_module(module, run_name='__main__')")
TOOLS = ['offline.calibrate', 'offline.check', 'launch_runner.launch', 'gazebo.files',
         'viz.rviz_file']


def run(module, *words, **environment):
    return subprocess.run([sys.executable, '-m', f'biped_com_ros.{module}', *words], text=True,
                          capture_output=True, check=False, timeout=60.0,
                          env={**os.environ, **environment})


@pytest.mark.parametrize('module', [*(f'nodes.{name}.node' for name in NODES), *TOOLS])
def test_every_executable_explains_itself(module):
    found = run(module, '--help')
    assert found.returncode == 0 and not found.stderr
    assert len(found.stdout.splitlines()) > 5
    assert 'node.py' not in found.stdout and ' files.py' not in found.stdout
    assert not re.search(':[a-z]+:`', found.stdout), 'a role of Sphinx'
    if module.split('.')[1] in OF_ROS:
        assert f"ros2 run biped_com_ros {module.split('.')[1]} --ros-args" in found.stdout
        assert '\nParameters:\n' in found.stdout


@pytest.mark.parametrize('name', ['com_estimator', 'demo'])
def test_a_node_that_cannot_start_is_named(name):
    """All of their files are called node.py."""
    found = run(f'nodes.{name}.node', '--ros-args', '-p', 'robot:=tallos')
    assert found.returncode == 1
    assert found.stderr.startswith(f'[FATAL] [{name}]: ') and "'talos'" in found.stderr


def test_without_a_directory_for_logs_the_remedy_is_named(tmp_path):
    (tmp_path / 'file').touch()
    found = run('nodes.com_estimator.node', ROS_LOG_DIR=str(tmp_path / 'file' / 'log'))
    assert found.returncode == 1
    assert found.stderr.startswith('[FATAL] [com_estimator]: cannot start: ')
    assert found.stderr.endswith('; set ROS_LOG_DIR to a directory that can be written\n')


@pytest.mark.parametrize('name', OF_ROS)
def test_arguments_without_ros_args_are_refused_with_the_right_call(name):
    found = run(f'nodes.{name}.node', '-p', 'robot:=talos')
    assert found.returncode == 2
    assert f'ros2 run biped_com_ros {name} --ros-args -p robot:=talos' in found.stderr
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize(('module', 'words'), [
    ('nodes.simulator.node', ()), ('nodes.simulator.node', ('--help',)),
    ('nodes.suite.node', ('--ros-args', '-p', 'nodes:=[simulator]')),
    ('gazebo.files', ('biped', '--hidden', 'masses'))])
def test_without_mujoco_one_line_names_what_to_install(module, words):
    code = "import sys; sys.modules['mujoco'] = None; " + _ANNOUNCED
    found = subprocess.run([sys.executable, '-c', code, f'biped_com_ros.{module}', *words],
                           text=True, capture_output=True, check=False, timeout=60.0)
    assert found.returncode == 1
    problem, = (line for line in found.stderr.splitlines() if line)
    assert 'needs the Python package mujoco' in problem and 'pip install mujoco' in problem


@pytest.mark.parametrize('delay', [0.1, 0.2, 0.3, 0.45, 0.6, 0.8])
def test_an_interrupt_while_starting_leaves_no_traceback(delay):
    with subprocess.Popen(
            [sys.executable, '-c', _ANNOUNCED, 'biped_com_ros.nodes.zmp_monitor.node'], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()  # Python itself has started
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20.0)
    assert 'Traceback' not in errors and 'KeyboardInterrupt' not in errors, errors
    assert process.returncode in (0, -signal.SIGINT)


def started_calibration(directory):
    """Return the process of a tool when Python itself has started."""
    process = subprocess.Popen(
        [sys.executable, '-c', _ANNOUNCED, 'biped_com_ros.offline.calibrate', str(SAMPLE),
         '--robot', 'sabian', '--out', str(directory)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    return process


def check_interrupted(process):
    """Interrupt a process, and check what it leaves."""
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20.0)
    assert 'Traceback' not in errors and 'KeyboardInterrupt' not in errors, errors
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize('delay', [0.1, 0.5])
def test_an_interrupt_of_a_tool_while_starting_leaves_no_traceback(delay, tmp_path):
    with started_calibration(tmp_path) as process:
        time.sleep(delay)
        check_interrupted(process)


def test_an_interrupt_of_a_tool_in_the_middle_of_its_work_leaves_no_traceback(tmp_path):
    with started_calibration(tmp_path) as process:
        assert any('not used of the recording' in line for line in process.stderr)
        check_interrupted(process)


_INTERRUPTED = """
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
else:
    main()
"""


@pytest.mark.parametrize(('when', 'printed'), [('importing', ''), ('running', 'ended in order\n')])
def test_an_interrupt_is_not_lost_in_a_callback_of_an_import(when, printed):
    found = subprocess.run([sys.executable, '-c', _INTERRUPTED, when], text=True,
                           capture_output=True, check=False, timeout=60.0)
    assert (found.stdout, found.stderr) == (printed, '')
    assert found.returncode != 0


def test_other_errors_while_starting_are_shown():
    script = "import sys; sys.orig_argv = ['', 'biped_com_ros']\nimport biped_com_ros.nodes\n1 / 0"
    found = subprocess.run([sys.executable, '-c', script], text=True, capture_output=True,
                           check=False)
    assert found.returncode == 1 and 'ZeroDivisionError' in found.stderr


def test_a_parameter_without_its_flag_gets_it():
    found = run('nodes.zmp_monitor.node', 'robot:=talos', '--params-file', 'a.yaml')
    assert found.returncode == 2
    assert '--ros-args -p robot:=talos --params-file a.yaml' in found.stderr
