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
"""Two simulations on one machine do not see each other, and nobody else sees them."""

from contextlib import contextmanager
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.thorough
VARIABLES = ('ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE')
#: Prints the nodes that it has found once the expected one is among them and no other appears.
LOOK = """
import sys, time
import rclpy
rclpy.init()
node = rclpy.create_node('looking_on')
due = time.monotonic() + 100.0
settled = None
while time.monotonic() < (settled or due):
    rclpy.spin_once(node, timeout_sec=0.1)
    found = set(node.get_node_names()) - {'looking_on'}
    if settled is None and set(sys.argv[1:]) <= found:
        settled = time.monotonic() + 3.0
print(*sorted(found))
"""


@contextmanager
def isolated(tmp_path, file):
    """Launch a node; yield the variables that the launch says to look with."""
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    with subprocess.Popen(
            [sys.executable, '-m', 'biped_com_ros.launching.run', '--isolated', file,
             'robot:=biped'],
            env={**environment, 'ROS_LOG_DIR': str(tmp_path / 'log')}, text=True,
            stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            while not (line := process.stdout.readline()).strip().startswith('export '):
                assert line, 'the launch has ended'
            yield environment | dict(word.split('=') for word in line.split()[1:])
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=100.0)


def visible_nodes(environment, *expected):
    """Return the names of the nodes that ROS finds with these variables."""
    return subprocess.run([sys.executable, '-c', LOOK, *expected], env=environment, check=True,
                          text=True, stdout=subprocess.PIPE, timeout=300.0).stdout.split()


def test_two_on_one_machine_do_not_mix(tmp_path):
    with isolated(tmp_path, 'payload') as first, isolated(tmp_path, 'gait') as second:
        assert first['ROS_DOMAIN_ID'] != second['ROS_DOMAIN_ID']
        assert first['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
        assert visible_nodes(first, 'payload_estimator') == ['payload_estimator']
        assert visible_nodes(second, 'gait_player') == ['gait_player']
