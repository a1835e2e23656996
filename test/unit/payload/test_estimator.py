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
"""The payload that joint torques show: large ones, and how large its errors are."""

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.efforts import effort_scales
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.core.payload.estimator import PayloadEstimator, PayloadSettings
from biped_com_ros.core.payload.residuals import EFFORT_DEVIATION, PayloadMeasurement
import numpy as np
import pytest

UP = np.array((0.0, 0.0, 1.0))
STEP_NS = 20_000_000


class TorquesAtRest:
    """A robot at rest whose joint torques alone are measured."""

    def __init__(self, name, seed, settings):
        self.model, rng = RobotModel.load(name), np.random.default_rng(seed)
        self.positions = self.model.posture('stand') + rng.uniform(
            -0.3, 0.3, len(self.model.joint_names))
        self.carried = CarriedPayload(self.model, rate=10.0)
        self.gravity_model = GravityModel(self.model)
        self.estimator, self.stamp_ns = PayloadEstimator(self.model, settings), 0

    def hold(self, mass, com=(0.05, 0.02, 0.1)):
        """Carry a mass in the left hand."""
        for k in range(1000):  # until the ramp has ended
            self.carried.receive(self.model.config.hands['left'].frame, mass, com, k * STEP_NS)
            self.carried.update(k * STEP_NS)
        self.gravity_model.payload = self.carried
        self.gravity_model.use_inertials()

    def wait(self, duration, errors=0.0):
        """Estimate at each instant; `errors` are those of the joint torques, (n,)."""
        model = self.model
        state = model.state(self.positions, np.zeros(len(self.positions)))
        load = self.gravity_model.load(model.state(self.positions), UP).on_contacts((0.4, 0.6))
        R_base_imu = state.pose_in_base(model.config.imu.frame).rotation
        measured = PayloadMeasurement(
            state, load.efforts + errors, np.zeros(3), R_base_imu.T @ (GRAVITY * UP), None, None)
        for _ in range(round(1e9 * duration / STEP_NS)):
            self.stamp_ns += STEP_NS
            self.estimator.update(self.stamp_ns, measured)
        return self.estimator.payload


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('mass', (10.0, 20.0, 35.0))
def test_a_large_payload_is_not_drawn_to_a_small_one(mass, seed):
    """What is likely before the data goes by the largest payload that the user expects."""
    robot = TorquesAtRest('talos', seed, PayloadSettings(least_mass=1.0, largest_mass=45.0))
    assert robot.wait(3.0) is None
    robot.hold(mass)
    payload = robot.wait(5.0)
    assert payload.hand == 'left'
    assert payload.mass == pytest.approx(mass, rel=0.05, abs=0.7 * payload.mass_deviation)


def test_errors_are_as_large_as_stated():
    """Torques change by as much as is assumed when the payload is taken, in 40 draws."""
    scores, rng = [], np.random.default_rng(2)
    for seed in range(40):
        robot = TorquesAtRest('talos', seed % 4, PayloadSettings())
        robot.wait(1.5)
        robot.hold(6.0)
        deviations = EFFORT_DEVIATION * effort_scales(robot.model)
        payload = robot.wait(1.5, deviations * rng.normal(size=len(deviations)))
        error = payload.inertial - 6.0 * np.array((1.0, 0.05, 0.02, 0.1))
        scores.append(error @ np.linalg.solve(payload.covariance, error) / 4.0)
    assert 0.5 < np.mean(scores) < 1.7  # of 160 numbers: 1 +- 0.11
