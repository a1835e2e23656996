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
"""Nodes as processes: a start that cannot be is explained in one line, and an end is clean."""

import signal

from biped_com_ros.core.model.resources import package_share
import pytest
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from support.node_process import call_until_response, start_node
from support.wrench_oracle import URDF, YAML


def test_why_a_node_cannot_start_is_one_line():
    process = start_node('lowstate_bridge', '-p', 'robot:=g1_as_sold')
    printed, _ = process.communicate(timeout=120.0)
    assert process.returncode == 1
    assert printed.count('\n') == 1 and (
        "the package 'unitree_hg' with the message LowState is not installed: build unitree_ros2"
        ) in printed, printed


@pytest.mark.parametrize('name', [
    'com_estimator', pytest.param('wrench_aggregator', marks=pytest.mark.thorough)])
def test_a_node_with_its_parameter_file_ends_cleanly_on_an_interrupt(name):
    process = start_node(
        name, '-r', '__ns:=/alone', '--params-file',
        str(package_share() / 'config' / f'{name}.yaml'), '-p', f'robot:={YAML}',
        '-p', f'urdf:={URDF}')
    watcher = Node('watcher')
    client = watcher.create_client(GetParameters, f'/alone/{name}/get_parameters')
    request = GetParameters.Request(names=['robot'])
    assert client.wait_for_service(120.0)
    assert call_until_response(watcher, client, request).values[0].string_value == str(YAML)
    watcher.destroy_node()
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=100.0)
    assert process.returncode == 0 and 'Traceback' not in printed, printed
