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
"""The payload over DDS: `payload_estimator` finds it, and gravity_compensation adds it."""

from __future__ import annotations

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload, CarriedSettings
from biped_com_ros.nodes.payload_estimator.node import PayloadEstimation
from biped_com_ros.ros.topics.input_base import inputs_of
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from geometry_msgs.msg import InertiaStamped, WrenchStamped
import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import Imu, JointState
from support.gravity_rig import GravityRig
from support.messages import imu, joint_state, parameters, stamp_of, wrench_stamped
from support.ros_rig import NodeRig

#: Instants of the plant between two messages.
EVERY = 10


class FedEstimator(NodeRig):
    """The node, fed with the readings of a simulated robot, message by message."""

    def __init__(self):
        self.model = model = RobotModel.load('biped')
        self.plant = Plant(model.config, model.urdf, PlantOptions(), model.joint_names,
                           model.link_names)
        self.plant.reset()
        super().__init__(node=PayloadEstimation(parameter_overrides=parameters(
            robot='biped', max_stamp_age=0.0)))
        self.ns, self.payloads = 10 ** 9, self.collect(
            InertiaStamped, 'payload_estimator/payload')
        self.feet = [self.publisher(WrenchStamped, f'wrench_aggregator/{foot}/wrench')
                     for foot in model.config.feet]
        self.imu = self.publisher(Imu, model.config.imu.topic)
        self.joints = self.publisher(JointState, 'joint_states')

    def step(self, is_due=True):
        """Publish the readings of one instant, and wait for the answer if one is due."""
        for _ in range(EVERY):
            observation = self.plant.step()
        self.ns += round(1e9 * EVERY * self.plant.dt)
        stamp, config, count = stamp_of(self.ns), self.model.config, len(self.payloads)
        wrenches = self.plant.truth().sole_wrenches
        for publisher, wrench, foot in zip(self.feet, wrenches, config.feet):
            publisher.publish(wrench_stamped(stamp, config.sole_frame(foot), wrench))
        means = self.node.wrench_means.values()
        self.until(lambda: all(mean.stamp_ns == self.ns for mean in means), what='the wrenches')
        message = imu(stamp, config.imu.frame, observation.imu_quaternions[0],
                      observation.angular_velocities[0])
        a = message.linear_acceleration
        a.x, a.y, a.z = observation.linear_accelerations[0].tolist()
        self.imu.publish(message)
        self.until(lambda: self.node.imu_mean.stamp_ns == self.ns, what='the IMU')
        self.joints.publish(joint_state(
            stamp, self.model.joint_names, observation.joint_positions,
            observation.joint_velocities, observation.joint_efforts))
        if is_due:
            self.until(lambda: len(self.payloads) > count, what='the payload', timeout=10.0)
        else:
            self.until(lambda: self.node.joints.stamp_ns == self.ns, what='the joints')

    def run(self, steps, until=lambda: False):
        for _ in range(steps):
            self.step()
            if until():
                return

    @property
    def mass(self):
        return self.payloads[-1].inertia.m


@pytest.fixture
def ros():
    rclpy.init()
    yield
    rclpy.try_shutdown()


def test_the_node_reports_a_payload_and_that_it_is_gone(ros):
    rig = FedEstimator()
    try:
        rig.run(75)
        assert rig.mass == 0.0 and not rig.node.estimator.problem
        rig.plant.put_load('r_gripper', 1.0, (0.0, 0.0, -0.05))
        rig.run(100, lambda: rig.mass > 0.95)
        last = rig.payloads[-1]
        assert last.header.frame_id == 'r_gripper'
        assert last.inertia.m == pytest.approx(1.0, abs=0.05)
        assert abs(last.header.stamp.sec + 1e-9 * last.header.stamp.nanosec - 1e-9 * rig.ns) < 1e-6
        rig.plant.put_load('r_gripper', 0.0, (0.0, 0.0, 0.0))
        rig.run(100, lambda: rig.mass == 0.0)
        assert rig.mass == 0.0
        assert rig.trigger('payload_estimator/reset').success
        assert rig.node.estimator.problem
        rig.step()
        count, age = len(rig.payloads), EVERY * rig.plant.dt
        assert age > 1.0 / 50.0 - 1e-9  # each instant was due
        rig.node.set_parameters(parameters(rate=0.25 / age, sensor_timeout=3.0))
        assert {source.timeout for source in inputs_of(rig.node)} == {3.0}
        rig.step()
        for _ in range(3):  # not due
            rig.step(is_due=False)
        assert len(rig.payloads) == count + 1
        rig.step()
    finally:
        rig.close()


def inertia(ns, link, mass, com):
    message = InertiaStamped()
    message.header.stamp, message.header.frame_id = stamp_of(ns), link
    message.inertia.m = mass
    message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = com
    return message


def test_gravity_compensation_carries_it_and_lets_it_fade_out(ros):
    """The rig checks that no effort is beyond the clamp or the rate limit."""
    model = RobotModel.load('talos')
    link, com = model.config.hands['left'].frame, (0.0, 0.0, -0.08)
    rig = GravityRig(model, support='fixed', payload_timeout=0.3)
    try:
        publisher = rig.publisher(InertiaStamped, 'payload_estimator/payload')
        carried = CarriedPayload(model, CarriedSettings(rate=1000.0))
        expected = {}
        for mass in (0.0, 2.0):
            carried.receive(link, mass, com, 10 ** 9)
            carried.update(10 ** 9)
            carried.update(10 ** 9 + 50_000_000)
            rig.gravity_model.payload = carried
            rig.gravity_model.use_inertials()
            expected[mass] = rig.load().fixed_base_efforts()

        def has(mass):
            return len(rig.last) > 1 and np.allclose(rig.last, expected[mass], atol=0.05)
        assert not np.allclose(expected[0.0], expected[2.0], atol=1.0)
        rig.until(lambda: has(0.0), what='the efforts of empty hands')

        def carry(mass=2.0, link=link):
            now = rig.peer.get_clock().now().nanoseconds
            publisher.publish(inertia(now, link, mass, com))
        rig.until(lambda: carry() or has(2.0), what='the efforts with the payload')
        rig.until(lambda: has(0.0), what='the fading of the payload')
        # What makes no sense is refused, and changes nothing.
        source = rig.node.payload.input
        rig.until(lambda: carry(500.0) or '500 kg' in source.last_error, what='a refusal')
        rig.until(lambda: carry(1.0, 'no_link') or 'no_link' in source.last_error,
                  what='a refusal')
        assert has(0.0)
    finally:
        rig.close()
