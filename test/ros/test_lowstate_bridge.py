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
"""
A recording of Unitree's LowState becomes joint states and IMU, and foot wrenches behind them.

The recording is made from a simulated G1; rosbags writes it from the vendor's definitions.
"""

from contextlib import closing

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.lowstate_bridge.node import LowstateBridge
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from sensor_msgs.msg import Imu, JointState
from support.low_states import LowStates
from support.messages import nanoseconds, parameters
from support.ros_rig import NodeRig

STEP_MS, COUNT = 4, 250
BEGIN = 1_600_000_000_000_000_000
DAMAGED = 50
SHARES = {'hip_pitch': -0.05, 'knee': 0.1, 'ankle_pitch': -0.05}


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('g1_as_sold')


@pytest.fixture(scope='module')
def walked(model):
    """Return what a simulated G1 measures while it bends its knees."""
    plant = Plant(model.config, model.urdf, PlantOptions(dt=1e-3 * STEP_MS), model.joint_names,
                  model.link_names)
    plant.reset()
    command, found = plant.hold(), []
    start = command.position.copy()
    bend = np.array([sum(share for part, share in SHARES.items() if part in name)
                     for name in model.joint_names])
    for i in range(COUNT):
        command.position[:] = start + bend * np.sin(0.01 * i)
        found.append(plant.step(command))
    return found


def messages(states, model, observations):
    """Yield (ns, message) as the robot would send them; arrival is uneven by up to 1 ms."""
    imu = list(model.config.imus.values()).index(model.config.imu)
    order = model.joint_index(model.config.low_state.motors)
    late = np.random.default_rng(0).integers(0, 1_000_000, COUNT)
    for i, observation in enumerate(observations):
        message = states.message()
        message.tick = 77_000 + STEP_MS * i
        for motor, k in zip(message.motor_state, order):
            motor.q, motor.dq, motor.tau_est = (float(values[k]) for values in (
                observation.joint_positions, observation.joint_velocities,
                observation.joint_efforts))
        x, y, z, w = observation.imu_quaternions[imu]
        message.imu_state.quaternion[:] = w, x, y, z
        message.imu_state.gyroscope[:] = observation.angular_velocities[imu]
        message.imu_state.accelerometer[:] = observation.linear_accelerations[imu]
        message.mode_pr = int(i == DAMAGED)
        message.motor_state[3].motorstate = 5 * (i == COUNT - 1)
        yield BEGIN + 1_000_000 * STEP_MS * i + int(late[i]), message


@pytest.mark.parametrize('storage', ['MCAP', pytest.param('SQLITE3', marks=pytest.mark.thorough)])
def test_a_recording_is_played_as_if_the_robot_were_there(model, walked, tmp_path, storage):
    bag = LowStates('unitree_hg').write_bag(
        tmp_path / 'bag', '/lowstate', messages(LowStates('unitree_hg'), model, walked), storage)
    with closing(NodeRig(node=WrenchAggregator(parameter_overrides=parameters(
            robot='g1_as_sold', frame_prefix='g1/')))) as rig:
        rig.executor.add_node(player := LowstateBridge(parameter_overrides=parameters(
            recording=str(bag), frame_prefix='g1/')))
        joints = rig.collect(JointState, 'joint_states', 1000)
        imus = rig.collect(Imu, model.config.imu.topic, 1000)
        wrenches = [rig.collect(WrenchStamped, f'wrench_aggregator/{foot}/wrench', 1000)
                    for foot in model.config.feet]
        rig.until(lambda: player.player.finished, what='the end of the recording')
        rig.spin(0.3)
        level, problem, values = player.player.report()
        motors, counts = player._report_motors(), player._report_messages()[2]
        player.destroy_node()
    # A subscriber that is discovered late misses the first messages.
    assert len(joints) > 0.8 * COUNT and len(imus) > 0.8 * COUNT
    stamps = np.array([nanoseconds(message.header.stamp) for message in joints])
    ticks = np.round((stamps - stamps[-1]) / 1e6 / STEP_MS).astype(int) + COUNT - 1
    assert DAMAGED not in ticks and len(set(ticks)) == len(joints)
    order = model.joint_index(model.config.low_state.motors)
    for i, message in zip(ticks, joints):
        assert message.name == list(model.config.low_state.motors)
        for values_of, truth in ((message.position, walked[i].joint_positions),
                                 (message.velocity, walked[i].joint_velocities),
                                 (message.effort, walked[i].joint_efforts)):
            np.testing.assert_allclose(values_of, truth[order], rtol=1e-6, atol=1e-6)
    last, imu = imus[-1], list(model.config.imus.values()).index(model.config.imu)
    q = last.orientation
    np.testing.assert_allclose(
        (q.x, q.y, q.z, q.w), walked[-1].imu_quaternions[imu], atol=1e-6)
    assert last.linear_acceleration.z == pytest.approx(9.81, abs=1.0)
    assert last.header.frame_id == 'g1/' + model.config.imu.frame
    spaces = np.diff(stamps[COUNT // 2:])
    assert spaces.std() < 0.1e6 and spaces.mean() == pytest.approx(1e6 * STEP_MS, rel=0.01)
    total = sum(received[-1].wrench.force.z for received in wrenches)
    assert total == pytest.approx(9.81 * model.mass, rel=0.05)
    assert (level, problem) == (DiagnosticStatus.WARN, (
        'messages of the recording are refused: its ankles and waist are positions of the motors '
        'A and B (mode_pr 1), not of pitch and roll: switch the robot to mode PR'))
    assert values['played'] == COUNT - 1
    assert motors[0] == DiagnosticStatus.ERROR and 'left_knee_joint (code 5)' in motors[1]
    assert counts == {'lost': 1, 'restarts of the robot': 0, 'jumps of a clock': 0}
