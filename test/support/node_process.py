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
"""Starts nodes as processes."""

import os
import subprocess
import sys
import time

import rclpy


def start_node(name, *arguments):
    """
    Start a node of the package.

    Parameters
    ----------
    name
        Of the executable.
    arguments
        What comes behind ``--ros-args``.

    Returns
    -------
    subprocess.Popen
        Its standard output has everything it prints.

    """
    return subprocess.Popen(
        [sys.executable, '-m', f'biped_com_ros.nodes.{name}.node', '--ros-args', *arguments],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def call_until_response(node, client, request, executor=None, timeout=100.0):
    """
    Call a service of another process and return its response.

    A server that has not discovered its client yet drops the response, so that the request is
    sent again every 2 s: it must be one that may be repeated.

    """
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, executor, timeout_sec=2.0)
        if future.done():
            return future.result()
        client.remove_pending_request(future)
    raise AssertionError(f'no response of {client.srv_name} for {timeout} s')
