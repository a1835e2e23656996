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

from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pytest
from std_msgs.msg import String
from support.messages import parameters
from support.ros_rig import NodeRig

EXTRA, FORWARD = 0.3, 0.08  # kg more in the torso, and its centre of mass so far ahead, m
TIMED = parameters(use_sim_time=True, max_stamp_age=0.0)


def calibrated_description(model):
    """Return the URDF of the robot with its load."""
    torso = model.link_names.index('torso')
    mass, com = model.link_masses[torso], model.link_coms_in_link[torso]
    # The load is at the torso's centre of mass, which is ahead (sim.hidden).
    new = NewInertial(mass + EXTRA, com + np.array((FORWARD, 0.0, 0.0)))
    return with_inertials(model.urdf, {'torso': new})


@pytest.mark.thorough
def test_a_hidden_load_is_reported_with_the_remedy_until_the_masses_are_calibrated():
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
        offset = lines['com_estimator: centre of mass']
        distance, = (float(pair.value) for pair in offset.values)
        weight = lines['com_estimator: weight']
        ratio, = (float(pair.value) for pair in weight.values)
        publisher = rig.peer.create_publisher(String, 'calibrated_description', LATCHED)
        publisher.publish(String(data=calibrated_description(model)))
        names = 'com_estimator: centre of mass', 'com_estimator: weight'
        rig.until(lambda: all(
            lines[name].level == DiagnosticStatus.OK
            and not lines[name].message.startswith('not compared') for name in names),
            30.0, 'OK after the calibration')
        distance_after, = (float(pair.value) for pair in lines[names[0]].values)
        ratio_after, = (float(pair.value) for pair in lines[names[1]].values)
    finally:
        for node in others:
            node.destroy_node()
        rig.close()
    torso = model.link_masses[model.link_names.index('torso')]
    com = model.state(model.posture()).com_in_base
    torso_com = model.state(model.posture()).link_coms_in_base[model.link_names.index('torso'), 0]
    shift = ((torso + EXTRA) * FORWARD + EXTRA * (torso_com - com[0])) / (model.mass + EXTRA)
    assert distance == pytest.approx(abs(shift), abs=1e-3)
    assert 'forward +' in offset.message and 'calibration.launch.xml' in offset.message
    assert ratio == pytest.approx(1.0 + EXTRA / model.mass, abs=2e-3)
    assert weight.level == DiagnosticStatus.WARN and 'tare' in weight.message
    assert 'calibration.launch.xml' in weight.message
    assert distance_after < 1e-3 and ratio_after == pytest.approx(1.0, abs=2e-3)
