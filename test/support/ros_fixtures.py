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
"""What tests of nodes share; the conftest.py of their folder imports it, with one of the times."""

from contextlib import ExitStack
import time

import pytest
import rclpy
from rclpy.node import Node
from support.driven_time import DrivenTime, RealTime
from support.ros_rig import NodeRig, ServedNodes

_DISCOVERY = 0.1
"""Time in which other participants have discovered what has changed, s."""


@pytest.fixture(scope='module', autouse=True)
def ros(request):
    """
    Have rclpy ready for the tests of a file.

    The participant of the process is deleted with its last node. One node stays until the end of
    the file: Fast DDS 2.14 hangs if other participants of the process discover it just then. Not
    in a file with ``PARTICIPANT_PER_TEST``, whose tests kill processes: a participant that has
    discovered those counts their nodes for 20 s more.
    """
    rclpy.init()
    if getattr(request.module, 'PARTICIPANT_PER_TEST', False):
        yield
    else:
        last = Node('last', start_parameter_services=False, enable_rosout=False)
        yield
        time.sleep(_DISCOVERY)
        last.destroy_node()
    rclpy.shutdown()


@pytest.fixture(scope='module', autouse=True)
def driven_time():
    """Let time pass for nodes only as a test lets it."""
    with DrivenTime() as ServedNodes.time:
        yield ServedNodes.time


@pytest.fixture(scope='module', autouse=True)
def real_time():
    """Let time pass for nodes as for everybody."""
    with RealTime() as ServedNodes.time:
        yield ServedNodes.time


@pytest.fixture
def rig():
    """Return a node under test and its peer, which are served while something is waited for."""
    rig = NodeRig()
    yield rig
    rig.close()


def _closing():
    """Yield a function that returns what it is given: a rig or a node, which ends at the end."""
    with ExitStack() as stack:
        def close_later(thing):
            stack.callback(getattr(thing, 'close', None) or thing.destroy_node)
            return thing
        yield close_later


#: At the end of the test, or of the file.
closing = pytest.fixture(_closing)
closing_later = pytest.fixture(_closing, scope='module')


@pytest.fixture(params=[False, True], ids=['bytes', 'plain'])
def plain(request, monkeypatch):
    """Tell whether inputs and outputs that are made now leave messages to rclpy."""
    monkeypatch.setenv('BIPED_COM_PLAIN', str(int(request.param)))
    return request.param
