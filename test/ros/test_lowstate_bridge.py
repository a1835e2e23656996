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

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.lowstate_bridge.node import LowstateBridge
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from support.low_states import LowStates
from support.node_process import start_node
from support.ros_rig import NodeRig

STEP_MS, COUNT = 4, 500
BEGIN = 1_600_000_000_000_000_000
DAMAGED = 50


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('g1_as_sold')


@pytest.fixture(scope='module')
def walked(model):
    """Return what a simulated G1 measures while it bends its knees: (observations, weight)."""
    plant = Plant(model.config, model.urdf, PlantOptions(dt=1e-3 * STEP_MS), model.joint_names,
                  model.link_names)
    plant.reset()
    command, found = plant.hold(), []
    start = command.position.copy()
    for i in range(COUNT):
        for k, name in enumerate(model.joint_names):
            share = {'hip_pitch': -0.05, 'knee': 0.1, 'ankle_pitch': -0.05}
            command.position[k] = start[k] + sum(
                size * np.sin(0.01 * i) for part, size in share.items() if part in name)
        found.append(plant.step(command))
    return found, 9.81 * model.mass


def messages(states, model, observations):
    """Yield (ns, message) as the robot would send them; arrival is uneven by up to 1 ms."""
    motors = model.config.low_state.motors
    imu = list(model.config.imus.values()).index(model.config.imu)
    late = np.random.default_rng(0).integers(0, 1_000_000, COUNT)
    for i, observation in enumerate(observations):
        message = states.message()
        message.tick = 77_000 + STEP_MS * i
        for motor, name in zip(message.motor_state, motors):
            k = model.joint_names.index(name)
            motor.q, motor.dq, motor.tau_est = (
                float(values[k]) for values in (
                    observation.joint_positions, observation.joint_velocities,
                    observation.joint_efforts))
        x, y, z, w = observation.imu_quaternions[imu]
        message.imu_state.quaternion[:] = w, x, y, z
        message.imu_state.gyroscope[:] = observation.angular_velocities[imu]
        message.imu_state.accelerometer[:] = observation.linear_accelerations[imu]
        if i == DAMAGED:
            message.mode_pr = 1
        if i == COUNT - 1:
            message.motor_state[3].motorstate = 5
        yield BEGIN + 1_000_000 * STEP_MS * i + int(late[i]), message


@pytest.fixture(scope='module', params=['MCAP', 'SQLITE3'])
def bag(request, model, walked, tmp_path_factory):
    states = LowStates('unitree_hg')
    return states.write_bag(tmp_path_factory.mktemp('recording') / 'bag', '/lowstate',
                            messages(states, model, walked[0]), request.param)


def stamps(received):
    return np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in received])


def test_a_recording_is_played_as_if_the_robot_were_there(model, walked, bag):
    observations, weight = walked
    prefix = Parameter('frame_prefix', value='g1/')
    aggregator = WrenchAggregator(
        parameter_overrides=[Parameter('robot', value='g1_as_sold'), prefix])
    rig = NodeRig(node=aggregator)
    rig.executor.add_node(player := LowstateBridge(
        parameter_overrides=[Parameter('recording', value=str(bag)), prefix]))
    try:
        joints, imus = rig.collect(JointState, 'joint_states', 1000), rig.collect(
            Imu, model.config.imu.topic, 1000)
        wrenches = [rig.collect(WrenchStamped, f'wrench_aggregator/{foot}/wrench', 1000)
                    for foot in model.config.feet]
        rig.until(lambda: player.player.finished, 20.0, 'the end of the recording')
        rig.spin(0.3)
        levels = {name: report() for name, report in (
            ('recording', player.player.report), ('motors', player._report_motors),
            ('messages', player._report_messages))}
    finally:
        player.destroy_node()
        rig.close()
    # A subscriber that is discovered late misses the first messages.
    assert len(joints) > 0.8 * COUNT and len(imus) > 0.8 * COUNT
    by_tick = {round((stamp - stamps(joints)[-1]) / 1e6 / STEP_MS) + COUNT - 1: message
               for stamp, message in zip(stamps(joints), joints)}
    assert DAMAGED not in by_tick and len(by_tick) == len(joints)
    for i, message in by_tick.items():
        assert message.name == list(model.config.low_state.motors)
        order = model.joint_index(message.name)
        for values, truth in ((message.position, observations[i].joint_positions),
                              (message.velocity, observations[i].joint_velocities),
                              (message.effort, observations[i].joint_efforts)):
            np.testing.assert_allclose(values, truth[order], rtol=1e-6, atol=1e-6)
    last, imu = imus[-1], list(model.config.imus.values()).index(model.config.imu)
    q = last.orientation
    np.testing.assert_allclose((q.x, q.y, q.z, q.w), observations[-1].imu_quaternions[imu],
                               atol=1e-6)
    assert last.linear_acceleration.z == pytest.approx(9.81, abs=1.0)
    assert last.header.frame_id == 'g1/' + model.config.imu.frame
    spaces = np.diff(stamps(joints)[COUNT // 2:])
    assert spaces.std() < 0.1e6 and spaces.mean() == pytest.approx(1e6 * STEP_MS, rel=0.01)
    total = sum(received[-1].wrench.force.z for received in wrenches)
    assert total == pytest.approx(weight, rel=0.05)
    assert levels['recording'][:2] == (DiagnosticStatus.WARN, (
        'messages of the recording are refused: its ankles and waist are positions of the motors '
        'A and B (mode_pr 1), not of pitch and roll: switch the robot to mode PR'))
    assert levels['recording'][2]['played'] == COUNT - 1
    assert levels['motors'][0] == DiagnosticStatus.ERROR
    assert 'left_knee_joint (code 5)' in levels['motors'][1]
    assert levels['messages'][2] == {
        'lost': 1, 'restarts of the robot': 0, 'jumps of a clock': 0}


@pytest.mark.parametrize('arguments, line', [
    (('-p', 'robot:=g1_as_sold'), "the package 'unitree_hg' with the message LowState is not "
     'installed: build unitree_ros2'),
    (('-p', 'robot:=talos'), "robot 'talos' has no low_state; add it to its YAML"),
    (('-p', 'recording:=/none'), "there is no recording '/none'")])
def test_what_is_missing_is_one_line(arguments, line):
    process = start_node('lowstate_bridge', *arguments)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert printed.count('\n') == 1 and line in printed, printed


def test_a_recording_without_the_topic_names_those_it_has(tmp_path):
    states = LowStates('unitree_hg')
    bag = states.write_bag(tmp_path / 'bag', '/robot/state', [(1, states.message())])
    process = start_node('lowstate_bridge', '-p', f'recording:={bag}')
    printed, _ = process.communicate(timeout=30)
    assert 'does not have the topic lowstate; it has /robot/state' in printed
