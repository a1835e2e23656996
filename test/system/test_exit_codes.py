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

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
import sys

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launch_runner.launch import main
from biped_com_ros.launch_runner.xml_reader import Element, read_xml
from biped_com_ros.nodes.gravity_compensation.parameters import GravityCompensationParameters
from biped_com_ros.ros.node import ending, executor
import pytest
from support import launch_stand_in
from support.launch_stand_in import LaunchService, NodeElement, Shutdown

LAUNCH = package_share() / 'launch'
FILE = LAUNCH / 'exit_code.launch.py'


@pytest.fixture
def service(monkeypatch):
    """Return a launch that has included the file, and has started nothing."""
    launch_stand_in.install(monkeypatch)
    spec = importlib.util.spec_from_file_location('exit_code_launch', FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    service = LaunchService()
    service.include(module.generate_launch_description())
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


def test_without_the_file_the_code_is_lost():
    """The fault that it is for: so the stand-in, as launch itself."""
    service = LaunchService()
    service.end(started(service, 'suite-1', True), -9)
    assert (service.is_shutdown, service.return_code) == (True, 0)


def elements(element: Element):
    """Yield an element of a launch file and all that are in it or in the files it includes."""
    yield element
    for child in element.children:
        yield from elements(child)
    name = element.get('file').partition('biped_com_ros)/launch/')[2]
    if element.tag == 'include' and name.endswith('.xml'):
        yield from elements(read_xml(LAUNCH / name))


def longest_end(node: str) -> float:
    """Return how long a node may take to end after SIGINT, s, as its process limits itself."""
    end = executor._SLICE_EVENTS + ending._LONGEST_HANG
    if node != 'gravity_compensation':
        return end
    ramp = GravityCompensationParameters().stop_time + executor._LONGEST_SOFT_END
    return end + ramp + executor._DELIVERY_TIME


@pytest.mark.parametrize('file', sorted(LAUNCH.glob('*.xml')), ids=lambda file: file.name)
def test_what_ends_a_launch_is_watched_and_nodes_end_by_themselves_first(file: Path):
    found = list(elements(read_xml(file)))
    ends = any('on_exit' in element.attributes for element in found)
    assert ends is any(element.get('file').endswith(FILE.name) for element in found)
    for node in found:
        if node.tag == 'node' and node.get('pkg') == 'biped_com_ros':
            assert float(node.get('sigterm_timeout')) > longest_end(node.get('exec')), node.where
            assert float(node.get('sigkill_timeout')) >= 2.0, node.where


def write(tmp_path: Path, code: int) -> Path:
    """Write a launch file with a process that ends with this code."""
    file = tmp_path / 'short.launch.xml'
    file.write_text(f"""<launch>
      <include file="{FILE}"/>
      <executable cmd="{sys.executable} -c 'exit({code})'" on_exit="shutdown"/>
      <executable cmd="sleep 60"/>
    </launch>""")
    return file


@pytest.mark.parametrize('code', (0, 7))
def test_run_launch_returns_the_code_itself(tmp_path: Path, code: int):
    assert main([str(write(tmp_path, code))]) == code


def test_a_copy_that_is_missing_is_an_error(tmp_path: Path, capsys):
    file = tmp_path / 'short.launch.xml'
    file.write_text('<launch><include file="/nowhere/exit_code.launch.py"/></launch>')
    assert main([str(file)]) == 2
    assert '/nowhere/exit_code.launch.py' in capsys.readouterr().err


@pytest.mark.parametrize('code', (0, 7))
def test_the_real_ros2_launch_fails_too(tmp_path: Path, code: int):
    launch = pytest.importorskip('launch')
    sources = pytest.importorskip('launch.launch_description_sources')
    pytest.importorskip('launch_xml')
    os.environ.setdefault('ROS_LOG_DIR', str(tmp_path))
    service = launch.LaunchService(noninteractive=True)
    service.include_launch_description(launch.LaunchDescription([
        launch.actions.IncludeLaunchDescription(
            sources.AnyLaunchDescriptionSource(str(write(tmp_path, code))))]))
    assert service.run() == (1 if code else 0)
