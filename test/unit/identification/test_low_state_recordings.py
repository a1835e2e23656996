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
"""A robot without foot sensors is calibrated from a recording of Unitree's LowState alone."""

from itertools import islice
import json

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.calibrate import main
import numpy as np
import pytest
from support.low_states import LowStates
from support.statics_data import TrueRobot

RATE, PAUSE, POSES = 50, 0.8, 15
MOTORS = load_robot_config('g1_as_sold').low_state.motors


@pytest.fixture(scope='module')
def true():
    """Return a G1 with 5 kg that its URDF does not have, and poses of it."""
    robot = TrueRobot('g1', seed=0)
    return robot, robot.captures(POSES)


def messages(states, true):
    """Yield (ns, message): the robot is still in each pose."""
    robot, poses = true
    names = robot.model.joint_names
    for i in range(int(POSES * PAUSE * RATE)):
        pose = poses[int(i / (PAUSE * RATE))]
        message = states.message()
        message.tick = 20 * i
        for motor, name in zip(message.motor_state, MOTORS):
            k = names.index(name)
            motor.q, motor.tau_est = float(pose.positions[k]), float(pose.torques[k])
        x, y, z = up = pose.up / np.linalg.norm(pose.up)
        quaternion = np.array((1.0 + z, y, -x, 0.0))
        message.imu_state.quaternion[:] = quaternion / np.linalg.norm(quaternion)
        message.imu_state.accelerometer[:] = 9.81 * up
        yield 10**9 + 20_000_000 * i, message


def calibrate(bag, out):
    return main([str(bag), '--robot=g1_as_sold', f'--out={out}', '--still=0.5',
                 '--torque-bias=0', '--torque-gain=0', '--friction=0', '--encoder-offset=0'])


@pytest.mark.parametrize(('topic', 'storage'), [
    ('/lowstate', 'MCAP'),
    pytest.param('/robot/lowstate', 'SQLITE3', marks=pytest.mark.thorough)])
def test_masses_are_found_and_damaged_messages_left_out(true, tmp_path, topic, storage):
    states = LowStates('unitree_hg')

    def damaged():
        for i, (ns, message) in enumerate(messages(states, true)):
            if i % 10 == 5:
                message.mode_pr = 1
                message.motor_state[3].q = 1e9
            yield ns, message

    bag = states.write_bag(tmp_path / 'bag', topic, damaged(), storage)
    assert calibrate(bag, tmp_path / 'out') == 0
    captures = json.loads((tmp_path / 'out/captures.json').read_text())['captures']
    assert len(captures) == POSES
    assert [c['in_contact'] for c in captures] == [c.in_contact.tolist() for c in true[1]]
    found = json.loads((tmp_path / 'out/calibration.json').read_text())['mass']
    mass = true[0].theta[:, 0].sum()
    assert abs(RobotModel.load('g1_as_sold').mass - mass) > 4.0
    assert found == pytest.approx(mass, abs=0.5)


def test_a_recording_of_nothing_that_can_be_used_is_an_error(true, tmp_path, capsys):
    states = LowStates('unitree_hg')

    def parallel():
        for ns, message in islice(messages(states, true), 100):
            message.mode_pr = 1
            yield ns, message

    bag = states.write_bag(tmp_path / 'bag', '/lowstate', parallel())
    assert calibrate(bag, tmp_path / 'out') == 1
    assert 'motors A and B' in capsys.readouterr().err
