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
"""Profiles for Fast DDS: named where nobody has others, and understood by it."""

from __future__ import annotations

import os
import subprocess
import sys

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.ros.fast import middleware
from biped_com_ros.ros.fast.middleware import tune_middleware
import pytest

NAME = 'FASTRTPS_DEFAULT_PROFILES_FILE'
PUBLISH = """
import rclpy
from rclpy.node import Node
from std_msgs.msg import Bool
rclpy.init()
Node('node').create_publisher(Bool, 'topic', 10).publish(Bool())
print(rclpy.get_rmw_implementation_identifier())
"""


@pytest.fixture
def fast_dds_2(monkeypatch):
    monkeypatch.setattr(middleware, 'is_fast_dds_2', lambda: True)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_profiles_are_named(fast_dds_2):
    environment = {}
    tune_middleware(environment)
    assert list(environment) == [NAME] and environment[NAME].endswith('config/fast_dds.xml')


def test_another_version_or_middleware_gets_none(monkeypatch):
    monkeypatch.setattr(middleware, 'is_fast_dds_2', lambda: False)
    environment = {}
    tune_middleware(environment)
    assert not environment


@pytest.mark.parametrize('name', [
    NAME, 'FASTDDS_DEFAULT_PROFILES_FILE', 'RMW_FASTRTPS_USE_QOS_FROM_XML'])
def test_those_of_the_user_come_first(fast_dds_2, name):
    environment = {name: 'mine'}
    tune_middleware(environment)
    assert environment == {name: 'mine'}


def test_a_file_in_the_working_directory_comes_first(fast_dds_2, tmp_path):
    (tmp_path / 'DEFAULT_FASTRTPS_PROFILES.xml').write_text('')
    environment = {}
    tune_middleware(environment)
    assert not environment


def test_nodes_run_without_them(fast_dds_2, monkeypatch):
    def find(uri):
        raise ConfigurationError(uri)
    monkeypatch.setattr(middleware, 'resolve_uri', find)
    environment = {}
    tune_middleware(environment)
    assert not environment


def run(file):
    return subprocess.run(
        [sys.executable, '-c', PUBLISH], env={**os.environ, NAME: str(file)}, text=True,
        capture_output=True, timeout=60.0, check=True)


def test_fast_dds_understands_them(tmp_path):
    environment = {}
    tune_middleware(environment)
    if not environment:
        pytest.skip('another version or middleware')
    understood = run(environment[NAME])
    if 'fastrtps' not in understood.stdout:
        pytest.skip('another middleware')
    assert not understood.stderr and 'XML' not in understood.stdout
    with open(environment[NAME]) as file:
        unknown = file.read().replace('heartbeatPeriod', 'heartBeatPeriod')
    (tmp_path / 'unknown.xml').write_text(unknown)
    assert 'XML' in run(tmp_path / 'unknown.xml').stdout, 'it says so where it does not'
