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
"""The profile for Fast DDS that users may choose is understood by it."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

from biped_com_ros.core.model.resources import resolve_uri
import pytest
import rclpy

PROFILE = resolve_uri('config/fast_dds.xml')
PUBLISH = """
import rclpy
from rclpy.node import Node
from std_msgs.msg import Bool
rclpy.init()
Node('node').create_publisher(Bool, 'topic', 10).publish(Bool())
print(rclpy.get_rmw_implementation_identifier())
"""


def run(file):
    return subprocess.run(
        [sys.executable, '-c', PUBLISH], text=True, capture_output=True, timeout=60.0, check=True,
        env={**os.environ, 'FASTRTPS_DEFAULT_PROFILES_FILE': str(file)})


def test_fast_dds_understands_the_profile(tmp_path):
    understood = run(PROFILE)
    libraries = Path(rclpy.__file__).parents[3]  # of lib/python3.*/site-packages/rclpy
    if 'fastrtps' not in understood.stdout or not any(libraries.glob('libfastrtps.so*')):
        pytest.skip('Fast DDS 3, whose profiles have other words, or another middleware')
    assert not understood.stderr and 'XML' not in understood.stdout
    unknown = PROFILE.read_text().replace('heartbeatPeriod', 'heartBeatPeriod')
    (tmp_path / 'unknown.xml').write_text(unknown)
    assert 'XML' in run(tmp_path / 'unknown.xml').stdout, 'it reports words that it does not know'


def test_nodes_do_not_choose_it_themselves():
    """A profile changes how all topics of a process behave: that is for users to decide."""
    code = ('import os, biped_com_ros.ros.node.executor as e; before = dict(os.environ)\n'
            'import rclpy; e.run(lambda: rclpy.shutdown() or [], [])\n'
            'print(before == dict(os.environ))')
    result = subprocess.run([sys.executable, '-c', code], text=True, capture_output=True,
                            timeout=60.0, check=False)
    assert 'True' in result.stdout, result.stderr
