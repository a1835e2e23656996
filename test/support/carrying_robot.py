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
"""A simulated robot that estimates what it carries, and compensates gravity with it."""

from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.core.gravity.compensation import CompensationSettings, GravityCompensator
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.core.payload.estimator import PayloadEstimator
from biped_com_ros.core.payload.residuals import PayloadMeasurement
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.sim.interface import SensorOptions
import numpy as np
from support.simulated import SimulatedRobot

NOISE = SensorOptions(
    encoder_noise=2e-4, velocity_noise=0.01, effort_noise=0.1, force_noise=1.0, torque_noise=0.05,
    gyro_noise=0.002, accelerometer_noise=0.03)
#: Instants between two estimates, at 500 Hz.
EVERY = 10


class CarryingRobot(SimulatedRobot):
    """
    A robot in MuJoCo whose nodes' core runs as in the nodes: averages at 50 Hz, efforts at 500 Hz.

    `measured` are those that the estimator has, of 'feet', 'efforts' and 'hands'.
    """

    def __init__(self, name, measured=('feet', 'efforts', 'hands'), compensates=False, **options):
        super().__init__(name, **options)
        model = self.model
        self.aggregation = WrenchAggregation(model, AggregationSettings(low_pass_cutoff=0.0))
        self.aggregation.is_state_current = True
        self.estimator, self.carried = PayloadEstimator(model), CarriedPayload(model)
        self.measured = measured
        self.command, self.stamp_ns = self.plant.hold(), 10 ** 9
        self.compensator = GravityCompensator(model, CompensationSettings(support='all'))
        self.compensator.gravity_model.payload = self.carried
        self.actuated = model.joint_index(model.actuated_joint_names)
        self.passes_on = compensates  # whether the payload is passed on
        if compensates:
            self.compensator.limiter.start()
        self.sums, self.count = 0.0, 0
        self.efforts = []

    @property
    def payload(self):
        return self.estimator.payload

    @property
    def time(self):
        return 1e-9 * self.stamp_ns - 1.0

    def hand(self, name='left'):
        return self.model.config.hands[name].frame

    def put(self, mass, hand='left', com=(0.0, 0.0, -0.08)):
        self.plant.put_load(self.hand(hand), mass, com)

    def com_error(self):
        """Return the horizontal error of the CoM of model and payload, m."""
        state = self.state
        load = self.carried.motion(state)
        com = state.com_in_base if load is None else load.com_with(
            self.model.mass, state.com_in_base)
        truth = self.plant.truth()
        R = rotation_from_quaternion(truth.base_quaternion)
        return float(np.hypot(*(R.dot(com) + truth.base_position - truth.com)[:2]))

    def step(self):
        observation = self.observation = self.plant.step(self.command)
        self.stamp_ns += round(1e9 * self.plant.dt)
        attitude, angular_velocity, acceleration = self.inertial(observation)
        self.state = self.model.state(observation.joint_positions, observation.joint_velocities)
        self.aggregation.set_state(self.state, attitude)
        for i, wrench in enumerate(observation.wrenches):
            self.aggregation.update(i, wrench, self.stamp_ns)
        feet, hands = (np.array([body.wrench for body in self.aggregation.bodies
                                 if body.is_foot == is_foot]) for is_foot in (True, False))
        sample = observation.joint_efforts, angular_velocity, acceleration, feet, hands
        self.sums = [a + b for a, b in zip(self.sums, sample)] if self.count else list(sample)
        self.count += 1
        if self.count == EVERY:
            self._estimate([each / EVERY for each in self.sums])
            self.count = 0
        if self.compensator.limiter.active:
            self._compensate(observation)

    def _estimate(self, means):
        efforts, gyro, acceleration, feet, hands = means
        has = self.measured
        payload = self.estimator.update(self.stamp_ns, PayloadMeasurement(
            self.state, efforts if 'efforts' in has else None, gyro, acceleration,
            feet if 'feet' in has and len(feet) else None,
            hands if 'hands' in has and len(hands) else None))
        if not self.passes_on:
            return
        if payload is None:
            self.carried.receive('', 0.0, (0.0, 0.0, 0.0), self.stamp_ns)
        else:
            self.carried.receive(self.hand(payload.hand), payload.mass, payload.com_in_hand,
                                 self.stamp_ns)

    def _compensate(self, observation):
        compensator = self.compensator
        compensator.update_payload(self.stamp_ns)
        compensator.imu.update(observation.imu_quaternions[self.imu].copy())
        target = compensator.efforts_at(observation.joint_positions, self.stamp_ns)
        efforts = compensator.limiter.update(target, self.plant.dt)
        self.efforts.append(efforts)
        self.command.effort = efforts[self.actuated]

    def run(self, seconds, until=lambda: False):
        """Go on for a time, or until something; return how long that took, s."""
        start = self.stamp_ns
        while self.stamp_ns - start < 1e9 * seconds and not until():
            self.step()
        return 1e-9 * (self.stamp_ns - start)
