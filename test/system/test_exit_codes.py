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
How launches end: in time, and with which exit code.

That of ``ros2 launch`` by a stand-in, and by the real one where it is installed.
"""

import importlib
import os
import sys

from biped_com_ros.core.gravity.effort_limiter import SafetySettings
from biped_com_ros.ros.node import ending, executor
import pytest
from support import launch_stand_in
from support.launch_stand_in import (
    LaunchDescription, LaunchService, NodeElement, OnProcessExit, RegisterEventHandler, Shutdown)
from support.planned import each_of_nodes, plan


@pytest.fixture
def service(monkeypatch):
    """Return a launch of our launch files, that has started nothing."""
    launch_stand_in.install(monkeypatch)
    module = importlib.import_module('biped_com_ros.launching.ros2_launch')
    service = LaunchService()
    service.include(LaunchDescription([
        RegisterEventHandler(OnProcessExit(on_exit=module.raise_if_failed))]))
    return service


def started(service, name, ends_launch):
    process = NodeElement(name, [Shutdown()] if ends_launch else None)
    service.start(process)
    return process


@pytest.mark.parametrize('code', (0, 1, 7, -9))
def test_the_launch_fails_with_a_process_that_ends_it(service, code):
    """Unless it ends well; what ends after it changes nothing."""
    suite, other = started(service, 'suite-1', True), started(service, 'viewer-2', False)
    service.end(suite, code)
    assert (service.is_shutdown, service.return_code) == (True, int(code != 0))
    service.end(other, -2)
    assert service.return_code == int(code != 0) and len(service.errors) == int(code != 0)
    for error in service.errors:
        assert 'suite-1' in error and f'exit code {code}' in error


def test_a_process_that_may_fail_ends_nothing(service):
    suite, viewer = started(service, 'suite-1', True), started(service, 'viewer-2', False)
    service.end(viewer, 1)
    assert (service.is_shutdown, service.return_code) == (False, 0)
    service.interrupt()
    service.end(suite, 130)
    assert service.return_code == 0 and not service.errors


def test_without_the_handler_the_code_is_lost():
    """The fault that it is for: so the stand-in, as launch itself."""
    service = LaunchService()
    service.end(started(service, 'suite-1', True), -9)
    assert (service.is_shutdown, service.return_code) == (True, 0)


def longest_end(node):
    """Return how long a node may take to end after SIGINT, s, as its process limits itself."""
    end = executor._SLICE_EVENTS + ending.LONGEST_HANG
    if node != 'gravity_compensation':
        return end
    ramp = SafetySettings().stop_time + executor._LONGEST_SOFT_END
    return end + ramp + executor._DELIVERY_TIME


@each_of_nodes
def test_nodes_end_by_themselves_before_they_are_ended(file):
    for program in plan(file):
        if program.package == 'biped_com_ros':
            assert program.sigterm_timeout > longest_end(program.executable), program
            assert program.sigkill_timeout >= 2.0, program


@pytest.mark.parametrize('code', (0, 7))
def test_the_real_ros2_launch_fails_too(tmp_path, code):
    launch = pytest.importorskip('launch')
    pytest.importorskip('launch_ros')
    from biped_com_ros.launching.ros2_launch import raise_if_failed
    os.environ.setdefault('ROS_LOG_DIR', str(tmp_path))
    service = launch.LaunchService(noninteractive=True)
    service.include_launch_description(launch.LaunchDescription([
        launch.actions.RegisterEventHandler(
            launch.event_handlers.OnProcessExit(on_exit=raise_if_failed)),
        launch.actions.ExecuteProcess(
            cmd=[sys.executable, '-c', f'exit({code})'], on_exit=[launch.actions.Shutdown()]),
        launch.actions.ExecuteProcess(cmd=['sleep', '60'])]))
    assert service.run() == (1 if code else 0)
