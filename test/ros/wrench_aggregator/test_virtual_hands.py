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
"""A robot without sensors in its hands, over DDS: wrenches, ZMP and support with what it holds."""

from __future__ import annotations

import time

from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics import inputs
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PolygonStamped, WrenchStamped
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
HAND = 'l_gripper'


class HandsRig(NodeRig):
    """
    Both nodes, and a robot in the simulator whose left hand has no sensors.

    Its feet have sensors, or with `feet` 'virtual' none.
    """

    def __init__(self, path, name, feet='sensor'):
        self.space, loaded = f'/virtual_hands_{name}', RobotModel.load('biped')
        config = yaml.safe_load(CONFIG.read_text())
        config['hands']['left'].update(source='virtual', contact='grip')
        for foot in config['feet'].values():
            foot['source'] = feet
        (path / 'hands.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
        (path / 'robot.urdf').write_text(loaded.urdf)
        values = {'robot': str(path / 'hands.yaml'), 'urdf': str(path / 'robot.urdf'),
                  'max_stamp_age': 0.0}
        arguments = ['--ros-args', '-r', '/diagnostics:=diagnostics']
        super().__init__(namespace=self.space, node=WrenchAggregator(
            namespace=self.space, cli_args=arguments, parameter_overrides=parameters(**values)))
        self.monitor = ZmpMonitor(
            namespace=self.space, cli_args=arguments, parameter_overrides=parameters(**values))
        self.executor.add_node(self.monitor)
        self.model, self.feet = loaded, feet
        self.weight = 9.81 * loaded.mass
        self.plant = Plant(loaded.config, loaded.urdf, PlantOptions(), loaded.joint_names,
                           loaded.link_names)
        self.plant.reset()
        self.command, self.with_efforts = self.plant.hold(), True
        for _ in range(500):
            self.plant.step(self.command)
        self._joints = self.publisher(JointState, 'joint_states')
        self._imu = self.publisher(Imu, 'imu', qos_profile_sensor_data)
        self._sensors = [self.publisher(WrenchStamped, f'{foot}_foot/wrench',
                                        qos_profile_sensor_data) for foot in ('left', 'right')]
        self.health, self.zmp = {}, []
        self.peer.create_subscription(DiagnosticArray, 'diagnostics', self._diagnose, 100)
        self.hand = self.collect(WrenchStamped, 'wrench_aggregator/left_hand/wrench')
        self.total = self.collect(WrenchStamped, 'wrench_aggregator/wrench')
        self.covariances = self.collect(Float64MultiArray, 'wrench_aggregator/hand_covariance')
        self.zmp = self.collect(PointStamped, 'zmp_monitor/zmp')
        self.region = self.collect(PolygonStamped, 'zmp_monitor/com_region')

    def close(self):
        super().close()
        self.monitor.destroy_node()

    def _diagnose(self, array):
        for status in array.status:
            node, _, line = status.name.rpartition('/')[2].partition(': ')
            self.health[node, line] = self.health[status.name] = status.level, status.message

    def play(self, instants):
        """Let the robot stand, and its drivers publish."""
        for _ in range(instants):
            observation = self.plant.step(self.command)
            stamp = self.peer.get_clock().now().to_msg()
            for publisher, name, values in zip(
                    self._sensors, ('l_ankle_ft', 'r_ankle_ft'), observation.wrenches):
                publisher.publish(wrench_stamped(stamp, name, values))
            message = imu(stamp, 'imu_link', observation.imu_quaternions[0],
                          observation.angular_velocities[0])
            set_fields(message.linear_acceleration, 'xyz', observation.linear_accelerations[0])
            self._imu.publish(message)
            self._joints.publish(joint_state(
                stamp, self.model.joint_names, observation.joint_positions,
                observation.joint_velocities,
                observation.joint_efforts if self.with_efforts else ()))
            self._wait_for(stamp)

    def _wait_for(self, stamp):
        """Let both nodes process an instant: until its ZMP is there, or for a while."""
        end = time.monotonic() + 0.03
        while time.monotonic() < end and not (self.zmp and self.zmp[-1].header.stamp == stamp):
            self.executor.spin_once(timeout_sec=0.002)

    def hold_on(self):
        """Grip, and pull on what is gripped."""
        self.plant.grip(HAND, 0.15 * self.weight)
        self.command.position[self.plant.actuated_joint_names.index('l_shoulder_pitch')] += 0.4
        self.play(150)

    def release(self):
        self.plant.grip(HAND, 0.0)
        self.command = self.plant.hold()
        self.play(150)

    def true_force(self):
        """Return the force on the hand in its frame, N."""
        body = self.plant.body_index(HAND)
        axes = self.plant.data.xmat[body].reshape(3, 3)
        return axes.T @ self.plant.grips.forces[body]

    def measured_zmp(self):
        """Return the ZMP on the ground, as published, m."""
        point = self.zmp[-1].point
        return np.array((point.x, point.y))

    def true_zmp(self, with_hand=True):
        """Return the ZMP of the contacts, from the mean of the soles, in the simulator's axes."""
        truth, plant, model = self.plant.truth(), self.plant, self.model
        state = model.state(plant.observation.joint_positions)
        R = rotation_from_quaternion(truth.base_quaternion)
        points, forces, moments = [], [], []
        for placement, its in zip(state.placements_in_base(model.soles), truth.sole_wrenches):
            axes = R @ placement[:3].T
            points.append(R @ placement[3] + truth.base_position)
            forces.append(axes @ its[:3])
            moments.append(axes @ its[3:])
        body = plant.body_index(HAND)
        points.append(plant.data.xpos[body])
        forces.append(with_hand * plant.grips.forces.get(body, np.zeros(3)))
        origin = np.mean(points[:2], axis=0)
        force, moment = sum(forces), sum(moments) + sum(
            np.cross(point - origin, each) for point, each in zip(points, forces))
        return np.array((-moment[1], moment[0])) / force[2]


def spread(rig):
    """Return how wide the region of the CoM is, m."""
    return np.ptp([[p.x, p.y] for p in rig.region[-1].polygon.points], axis=0)


@pytest.fixture(scope='module', params=['sensor', 'virtual'])
def rig(request, tmp_path_factory):
    rig = HandsRig(tmp_path_factory.mktemp('hands'), request.param, request.param)
    while not (rig.hand and rig.total and rig.zmp and rig.region and rig.covariances):
        rig.play(5)
    yield rig
    rig.close()


def test_an_idle_hand_publishes_exactly_zero(rig):
    rig.play(100)
    rig.hand.clear()
    rig.play(50)
    assert rig.hand[-1].header.frame_id == HAND
    for message in rig.hand:
        np.testing.assert_array_equal(wrench(message), np.zeros(6))
    rig.until(lambda: rig.play(5) or ('wrench_aggregator', 'virtual hands') in rig.health)
    assert rig.health['wrench_aggregator', 'virtual hands'] == (
        DiagnosticStatus.OK, 'no hand touches')


def test_an_idle_hand_is_no_sensor_that_hangs(rig, monkeypatch):
    monkeypatch.setattr(inputs, 'FROZEN_AFTER', 1.0)
    monkeypatch.setattr(inputs, 'FROZEN_COUNT', 10)
    end = time.monotonic() + 4.0
    while time.monotonic() < end:
        rig.play(5)
    (level, text), = (status for name, status in rig.health.items() if isinstance(name, str)
                      and 'zmp_monitor: input' in name and name.endswith('left_hand/wrench'))
    assert level == DiagnosticStatus.OK, text


def test_a_hand_that_holds_on_is_in_total_zmp_and_support(rig):
    rig.play(50)
    alone, zmp, true_zmp = spread(rig), rig.measured_zmp(), rig.true_zmp()
    rig.hold_on()
    force, tolerance = rig.true_force(), 0.03 * rig.weight
    assert np.linalg.norm(force) > 0.1 * rig.weight
    found = wrench(rig.hand[-1])
    np.testing.assert_allclose(found[:3], force, atol=tolerance)
    np.testing.assert_array_equal(found[3:], np.zeros(3))
    covariance = np.array(rig.covariances[-1].data[2:]).reshape(3, 3)
    error = found[:3] - force
    assert error @ np.linalg.solve(covariance, error) < 9.0
    assert wrench(rig.total[-1])[2] == pytest.approx(
        rig.plant.truth().sole_wrenches[:, 2].sum() + rig.plant.grips.forces[
            rig.plant.body_index(HAND)][2], abs=tolerance)
    # The region with a grip reaches further to all sides.
    assert (spread(rig) > alone + 0.02).all()
    assert rig.monitor.monitor.hands.touching[0].name == 'left'
    # At rest the ZMP of all contacts is below the centre of mass; that of the feet alone is not.
    moved, truly_moved = rig.measured_zmp() - zmp, rig.true_zmp() - true_zmp
    assert np.linalg.norm(rig.true_zmp(with_hand=False) - true_zmp) > 0.03
    np.testing.assert_allclose(moved, truly_moved, atol=0.008)
    print(f'{rig.feet}: ZMP {1e3 * np.linalg.norm(moved - truly_moved):.1f} mm off, of feet alone '
          f'{1e3 * np.linalg.norm(rig.true_zmp(with_hand=False) - true_zmp):.0f} mm')
    rig.until(lambda: rig.play(5) or 'touching: left' in rig.health[
        'wrench_aggregator', 'virtual hands'][1])
    rig.until(lambda: rig.play(5) or 'hands left' in rig.health['zmp_monitor', 'support'][1])
    rig.release()
    np.testing.assert_array_equal(wrench(rig.hand[-1]), np.zeros(6))
    np.testing.assert_allclose(spread(rig), alone, atol=2e-3)


def test_other_deviations_take_effect_at_once(rig):
    rig.play(20)
    before = rig.covariances[-1].data[2]
    parameter = Parameter('virtual_hand_effort_deviation', value=0.2)
    assert rig.node.set_parameters([parameter])[0].successful
    rig.play(50)
    assert rig.covariances[-1].data[2] > 4.0 * before
    assert rig.node.set_parameters(
        [Parameter('virtual_hand_effort_deviation', value=0.02)])[0].successful
    rig.play(50)


def test_without_efforts_nothing_is_published_and_the_reason_is_named(rig):
    rig.with_efforts = False
    rig.play(20)
    rig.until(lambda: rig.play(5) or 'no efforts' in rig.health[
        'wrench_aggregator', 'virtual hands'][1])
    assert rig.health['wrench_aggregator', 'virtual hands'][0] == DiagnosticStatus.ERROR
    rig.until(lambda: rig.play(5) or 'no efforts' in rig.health[
        'wrench_aggregator', 'total wrench'][1])
    rig.hand.clear()
    rig.total.clear()
    rig.play(20)
    assert not rig.hand and not rig.total
    rig.with_efforts = True
    rig.until(lambda: rig.play(5) or (rig.hand and rig.total))
