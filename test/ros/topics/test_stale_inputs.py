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
"""After the clock is set back, an input of any node that receives nothing any more is stale."""

from importlib import import_module

from biped_com_ros.nodes import NODES
from biped_com_ros.ros.node.diagnostics import OK
from biped_com_ros.ros.topics.input_base import inputs_of
from biped_com_ros.ros.topics.stamp import now_ns
import pytest
from support.messages import parameters
from support.ros_rig import NodeRig

SECOND = 1_000_000_000
#: The simulator has no inputs of sensors.
KINDS = sorted(set(NODES) - {'simulator'})


@pytest.fixture(params=KINDS)
def node(request, closing, tmp_path):
    """Return a node with all its inputs."""
    module, name = NODES[request.param].split(':')
    own = {'directory': str(tmp_path)} if request.param == 'com_calibrator' else {}
    rig = closing(NodeRig(node=getattr(import_module(module), name)(
        parameter_overrides=parameters(robot='biped', **own))))
    rig.until(lambda: len(inputs_of(rig.node)) > 0, what='the inputs')
    return rig.node


def test_what_is_no_longer_received_is_stale_whatever_its_stamp(node):
    for source in inputs_of(node):
        now = now_ns(node)
        source.stamp_ns = now + SECOND // 1000  # a simulated clock lags behind stamps
        assert not source.stale(), source.topic
        for seconds in (-50, 50):
            source.stamp_ns = now + seconds * SECOND
            assert source.stale() and source.age() == pytest.approx(50.0, abs=1.0), source.topic
            assert source.report()[0] > OK, source.topic
