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
"""Feet without sensors: what the node publishes for a robot that stands in the simulator."""

from __future__ import annotations

import time

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from support.messages import imu, joint_state, parameters, set_fields, wrench, wrench_stamped
from support.ros_rig import NodeRig
import yaml

CONFIG = package_share() / 'config' / 'robots' / 'biped.yaml'


class VirtualRig(NodeRig):
    """
    The node and a robot in the simulator.

    The left foot's sensor is compared, the right foot has none; with `bare` no foot has one.
    """

    def __init__(self, path, bare=False):
        loaded, namespace = RobotModel.load('biped'), f'virtual_rig_{int(bare)}'
        config = yaml.safe_load(CONFIG.read_text())
        config['feet']['left']['source'], config['feet']['right']['source'] = 'both', 'virtual'
        if bare:
            del config['wrench_sensors'], config['feet']['right']['wrench_sensors']
            config['feet']['left'] = {**config['feet']['left'], 'source': 'virtual',
                                      'wrench_sensors': []}
        (path / 'virtual.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
        (path / 'robot.urdf').write_text(loaded.urdf)
        super().__init__(node=WrenchAggregator(namespace=namespace, parameter_overrides=parameters(
            robot=str(path / 'virtual.yaml'), urdf=str(path / 'robot.urdf'), low_pass_cutoff=0.0)),
            namespace=namespace)
        self.model = loaded
        self.plant = Plant(loaded.config, loaded.urdf, PlantOptions(), loaded.joint_names,
                           loaded.link_names)
        self.plant.reset()
        command = self.plant.hold()  # leaning to one side
        for joint, shift in (('hip_roll', 0.03), ('ankle_roll', -0.03)):
            for side in 'lr':
                command.position[loaded.joint_names.index(f'{side}_{joint}')] += shift
        for _ in range(1000):
            self.plant.step(command)
        self.sign, self.with_efforts = 1.0, True
        self._joints = self.publisher(JointState, 'joint_states')
        self._imu = self.publisher(Imu, 'imu', qos_profile_sensor_data)
        self._sensors = [self.publisher(WrenchStamped, f'{foot}_foot/wrench',
                                        qos_profile_sensor_data)
                         for foot in (() if bare else ('left', 'right'))]
        prefix = 'wrench_aggregator/'
        self.wrenches = {foot: self.collect(WrenchStamped, f'{prefix}{foot}/wrench')
                         for foot in ('left', 'right')}
        self.total = self.collect(WrenchStamped, f'{prefix}wrench')
        self.virtual_left = [] if bare else self.collect(
            WrenchStamped, f'{prefix}left/virtual_wrench')
        self.covariances = self.collect(Float64MultiArray, f'{prefix}wrench_covariance')
        self.probabilities = self.collect(JointState, f'{prefix}contact_probabilities')
        self.contacts = self.collect(JointState, f'{prefix}contacts')
        self.record_statuses()

    def play(self, instants):
        """Let the robot stand, and its drivers publish."""
        for _ in range(instants):
            observation = self.plant.step()
            stamp = self.peer.get_clock().now().to_msg()
            self._joints.publish(joint_state(
                stamp, self.model.joint_names, observation.joint_positions,
                observation.joint_velocities,
                observation.joint_efforts if self.with_efforts else ()))
            message = imu(stamp, 'imu_link', observation.imu_quaternions[0],
                          observation.angular_velocities[0])
            set_fields(message.linear_acceleration, 'xyz', observation.linear_accelerations[0])
            self._imu.publish(message)
            for publisher, name, values in zip(
                    self._sensors, ('l_ankle_ft', 'r_ankle_ft'), observation.wrenches):
                publisher.publish(wrench_stamped(stamp, name, self.sign * values))
            time.sleep(0.002)
            self.spin(0.002)


@pytest.fixture(scope='module')
def rig(tmp_path_factory):
    rig = VirtualRig(tmp_path_factory.mktemp('virtual'))
    while not (rig.total and rig.virtual_left and rig.covariances and rig.probabilities):
        rig.play(5)
    yield rig
    rig.close()


def test_the_virtual_foot_and_the_total_carry_the_simulators_forces(rig):
    rig.play(40)
    weight, truth = 9.81 * rig.model.mass, rig.plant.truth().sole_wrenches
    assert abs(truth[0, 2] - truth[1, 2]) > 0.01 * weight
    np.testing.assert_allclose(wrench(rig.wrenches['right'][-1]), truth[1], atol=0.02 * weight)
    np.testing.assert_allclose(wrench(rig.virtual_left[-1]), truth[0], atol=0.02 * weight)
    np.testing.assert_allclose(wrench(rig.wrenches['left'][-1]), truth[0], atol=1e-3 * weight)
    assert wrench(rig.total[-1])[2] == pytest.approx(weight, rel=0.01)
    assert rig.wrenches['right'][-1].header.frame_id == 'r_sole'


def test_another_cutoff_takes_effect_at_once(rig):
    rig.play(5)
    before = rig.node.virtual.feet
    assert rig.node.set_parameters([Parameter('virtual_cutoff', value=20.0)])[0].successful
    feet = rig.node.virtual.feet
    assert feet is not before and feet.sensors._settings.cutoff == 20.0
    count = len(rig.wrenches['right'])
    while len(rig.wrenches['right']) <= count + 20:
        rig.play(5)
    np.testing.assert_allclose(
        wrench(rig.wrenches['right'][-1]), rig.plant.truth().sole_wrenches[1],
        atol=0.02 * 9.81 * rig.model.mass)
    assert rig.node.set_parameters([Parameter('virtual_cutoff', value=65.0)])[0].successful
    rig.play(40)


def test_covariance_and_probabilities_of_all_feet(rig):
    def of_a_wrench():
        stamps = {(m.header.stamp.sec, m.header.stamp.nanosec) for m in rig.wrenches['right']}
        return [m for m in rig.covariances if tuple(m.data[:2]) in stamps]
    rig.until(lambda: rig.play(5) or of_a_wrench())
    message = of_a_wrench()[-1]
    covariance = np.array(message.data[message.layout.data_offset:]).reshape(12, 12)
    assert [d.size for d in message.layout.dim] == [12, 12]
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    assert list(rig.probabilities[-1].name) == ['left', 'right']
    assert min(rig.probabilities[-1].position) > 0.95
    assert list(rig.contacts[-1].position) == [1.0, 1.0]


def test_a_sensor_that_disagrees_with_joint_torques_is_reported(rig):
    rig.play(200)
    rig.statuses.clear()
    rig.until(lambda: rig.play(5) or 'left foot' in rig.statuses)
    assert rig.statuses['left foot'][0] == DiagnosticStatus.OK
    rig.sign = -1.0
    rig.until(lambda: rig.play(5) or rig.statuses['left foot'][0] == DiagnosticStatus.WARN)
    rig.sign = 1.0
    assert 'wrench_sensors.left_foot' in rig.statuses['left foot'][1]
    rig.until(lambda: rig.play(5) or rig.statuses['left foot'][0] == DiagnosticStatus.OK)


def test_without_efforts_nothing_is_published_and_the_reason_is_named(rig):
    rig.with_efforts = False
    # Until then messages with efforts may be on their way.
    rig.until(lambda: rig.play(5) or 'no efforts' in rig.statuses['total wrench'][1])
    rig.wrenches['right'].clear()
    rig.play(50)
    assert not rig.wrenches['right']
    rig.with_efforts = True
    rig.until(lambda: rig.play(5) or rig.wrenches['right'])


def test_a_robot_without_any_sensor(tmp_path):
    """All feet are virtual: there are no offsets, and nothing fails."""
    bare = VirtualRig(tmp_path, bare=True)
    try:
        bare.until(lambda: bare.play(5) or len(bare.total) > 20)
        truth, weight = bare.plant.truth().sole_wrenches, 9.81 * bare.model.mass
        for foot, true in zip(('left', 'right'), truth):
            np.testing.assert_allclose(
                wrench(bare.wrenches[foot][-1]), true, atol=0.02 * weight)
        bare.until(lambda: 'callbacks' in bare.statuses)
        assert bare.statuses['callbacks'][0] == DiagnosticStatus.OK
    finally:
        bare.close()
