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
"""What tests of nodes share."""

import pytest
import rclpy
from support.ros_rig import NodeRig


@pytest.fixture(scope='module', autouse=True)
def ros():
    """Have rclpy ready for the tests of a file."""
    rclpy.init()
    yield
    rclpy.shutdown()


@pytest.fixture
def rig():
    """Return a node under test and its peer, which are served while something is waited for."""
    rig = NodeRig()
    yield rig
    rig.close()


@pytest.fixture(params=[False, True], ids=['bytes', 'plain'])
def plain(request):
    """Tell whether to do without the templates of bytes."""
    return request.param
