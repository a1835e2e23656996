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

"""The example of doc/extending.rst works as the page shows it."""

import subprocess
import sys

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from support.messages import joint_state

DOC = package_share() / 'doc'
EXAMPLE = DOC / 'examples' / 'com_height'


@pytest.fixture
def com_height():
    """Run the example as a user would."""
    process = subprocess.Popen(
        [sys.executable, EXAMPLE / 'node.py', '--ros-args', '--params-file',
         EXAMPLE / 'com_height.yaml'])
    yield process
    process.terminate()
    assert process.wait(timeout=60.0) == 0


def expected_height(model, positions):
    """Return the height by forward kinematics: link masses times the heights of their CoMs."""
    state = model.state(positions)
    com = model.link_masses @ state.link_coms_in_base / model.link_masses.sum()
    return com[2] - min(state.pose_in_base(name).position[2] for name in ('l_sole', 'r_sole'))


def test_the_example_publishes_the_height_and_reports_it(com_height, rig):
    model, latest = RobotModel.load('biped'), {}
    positions = model.posture('stand')
    height = expected_height(model, positions)
    positions[next(i for i, name in enumerate(model.joint_names) if 'knee' in name)] += 0.4
    assert abs(expected_height(model, positions) - height) > 1e-3  # the posture matters
    rig.peer.create_subscription(DiagnosticArray, '/diagnostics', lambda array: latest.update(
        {status.name: status for status in array.status}), 10)
    publisher = rig.publisher(JointState, 'joint_states')
    heights = rig.collect(Float64, '/com_height/height')

    def wait_for(condition, what):
        def published():
            publisher.publish(joint_state(
                rig.peer.get_clock().now().to_msg(), model.joint_names, positions))
            return condition()
        rig.until(published, 120.0, what)

    def reports(level):
        report = latest.get('com_height: height')
        return report is not None and report.level == level and report.message

    wait_for(lambda: heights, 'a height')
    assert heights[-1].data == pytest.approx(expected_height(model, positions), abs=1e-9)
    wait_for(lambda: reports(DiagnosticStatus.OK), 'an OK report')
    client = rig.peer.create_client(SetParameters, '/com_height/set_parameters')
    request = SetParameters.Request(
        parameters=[Parameter('minimum_height', value=9.0).to_parameter_msg()])
    assert rig.call(client, request).results[0].successful
    wait_for(lambda: reports(DiagnosticStatus.WARN), 'a warning')
    assert 'minimum_height 9 m' in latest['com_height: height'].message
    request.parameters[0].value.double_value = -1.0
    assert not rig.call(client, request).results[0].successful


@pytest.mark.parametrize('name', ['node.py', 'com_height.yaml'])
def test_the_page_shows_the_files_that_are_tested(name):
    assert f'.. literalinclude:: examples/com_height/{name}' in (DOC / 'extending.rst').read_text()
