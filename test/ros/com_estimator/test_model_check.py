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
"""A simulated robot whose masses differ from its URDF: com_estimator reports it."""

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
from support.messages import parameters
from support.ros_rig import NodeRig

EXTRA, FORWARD = 0.3, 0.08  # kg more in the torso, and its centre of mass so far ahead, m
TIMED = parameters(use_sim_time=True, max_stamp_age=0.0)


def test_a_hidden_load_is_reported_with_the_remedy():
    model = RobotModel.load('biped')
    rig = NodeRig(node=Simulator(parameter_overrides=parameters(
        rate=200.0, hidden_errors=[f'torso {EXTRA} {FORWARD} 0 0'])))
    others = [kind(parameter_overrides=TIMED) for kind in (WrenchAggregator, ComEstimator)]
    lines = {}

    def receive(array):
        lines.update({status.name: status for status in array.status})

    try:
        for node in others:
            rig.executor.add_node(node)
        rig.peer.create_subscription(DiagnosticArray, '/diagnostics', receive, 10)

        def is_reported():
            line = lines.get('com_estimator: centre of mass')
            return line is not None and line.level == DiagnosticStatus.WARN

        rig.until(is_reported, 30.0, 'a warning')
        distance, = (float(pair.value) for pair in lines['com_estimator: centre of mass'].values)
        weight = lines['com_estimator: weight']
        ratio, = (float(pair.value) for pair in weight.values)
    finally:
        for node in others:
            node.destroy_node()
        rig.close()
    torso = model.link_masses[model.link_names.index('torso')]
    com = model.state(model.posture()).com_in_base
    torso_com = model.state(model.posture()).link_coms_in_base[model.link_names.index('torso'), 0]
    shift = ((torso + EXTRA) * FORWARD + EXTRA * (torso_com - com[0])) / (model.mass + EXTRA)
    assert distance == pytest.approx(abs(shift), abs=1e-3)
    assert 'forward +' in lines['com_estimator: centre of mass'].message
    assert 'calibration.launch.xml' in lines['com_estimator: centre of mass'].message
    assert ratio == pytest.approx(1.0 + EXTRA / model.mass, abs=2e-3)
    assert weight.level == DiagnosticStatus.WARN and 'tare' in weight.message
    assert 'calibration.launch.xml' in weight.message
