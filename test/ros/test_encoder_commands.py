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
"""Commanded positions are those of the drives, which control what their encoders measure."""

from dataclasses import replace
from types import SimpleNamespace

from biped_com_ros.core.legs.player import RemainingMotion
from biped_com_ros.core.model.corrections import InstrumentCorrections
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.node import PoseDriver
from biped_com_ros.nodes.gait_player.outputs import TrajectoryPublisher
import numpy as np
import pytest

OFFSETS = {'l_knee': 0.02, 'r_hip_yaw': -0.03}


@pytest.fixture(scope='module')
def model():
    """Return a robot whose encoders have known offsets."""
    model = RobotModel.load('biped')
    return RobotModel(
        replace(model.config, instruments=InstrumentCorrections(
            joint_offsets=OFFSETS)), model.urdf)


@pytest.fixture
def node():
    """Return a node that keeps what it publishes."""
    sent = []
    publisher = SimpleNamespace(publish=sent.append, topic_name='t',
                                get_subscription_count=lambda: 1)
    return SimpleNamespace(create_publisher=lambda *_, **__: publisher, sent=sent)


def commanded(model, message, point):
    """Return the true positions at which the encoders measure what a message commands."""
    names = list(message.joint_names)
    return np.array(message.points[point].positions) - [OFFSETS.get(name, 0.0) for name in names]


def test_the_calibrator_reaches_its_poses(model, node):
    joints = model.actuated_joint_names
    driver = PoseDriver(node, model, 'topic', joints, hoist='', speed=1.0, ramp=0.2)
    start, goal = model.posture('stand'), model.posture('arms_up')
    driver.send(start, np.array((start, goal)))
    message, index = node.sent[-1], model.joint_index(joints)
    assert commanded(model, message, 0) == pytest.approx(start[index], abs=0.05)
    assert commanded(model, message, -1) == pytest.approx(goal[index], abs=1e-9)
    assert message.points[-1].positions[joints.index('l_knee')] == pytest.approx(
        goal[model.joint_index(('l_knee',))[0]] + 0.02)


def test_a_gait_is_walked_at_its_true_positions(model, node):
    output = TrajectoryPublisher(node, model, ('r_hip_yaw', 'l_knee'))
    n = len(model.joint_names)
    positions = np.linspace(0.0, 1.0, 2 * n).reshape(2, n)
    motion = RemainingMotion(np.array((0.0, 0.1)), positions, positions + 5.0, positions + 9.0)
    output.publish(10**9, motion)
    index = model.joint_index(('r_hip_yaw', 'l_knee'))
    for i in range(2):
        point = node.sent[-1].points[i]
        assert commanded(model, node.sent[-1], i) == pytest.approx(positions[i, index])
        assert list(point.velocities) == pytest.approx((positions[i, index] + 5.0).tolist())
        assert list(point.accelerations) == pytest.approx((positions[i, index] + 9.0).tolist())
    output.publish_hold(positions[1], 0.5)
    assert commanded(model, node.sent[-1], 0) == pytest.approx(positions[1, index])
