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
"""The paper's two poses with a robot that stands in MuJoCo: its contacts, drives and sensors."""

from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.two_poses import com_from_captures, last_pair
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.interface import Command, SensorOptions
import numpy as np
import pytest
from support.simulated import SimulatedRobot

MOVING, SETTLING = 1.0, 2.5  # s
FORCE, MOMENT = 0.5, 0.02  # N and N m, of one reading


class TiltStage(SimulatedRobot):
    """The paper's robot on foot sensors, moved by position control."""

    def __init__(self, **options):
        super().__init__('three_link', **options)
        self.regressor = StaticsRegressor(self.model)
        self._motors = self.model.joint_index(self.plant.actuated_joint_names)
        self._at = self.model.posture('stand')[self._motors]

    def go(self, posture):
        """Move into a posture and come to rest."""
        end, count = self.model.posture(posture)[self._motors], len(self._motors)
        for i in range(round((MOVING + SETTLING) / self.plant.dt)):
            share = min(1.0, i * self.plant.dt / MOVING)
            self.plant.step(Command(
                position=self._at + share ** 2 * (3.0 - 2.0 * share) * (end - self._at),
                velocity=np.zeros(count), effort=np.zeros(count), tendon_lengths=np.zeros(0)))
        self._at = end

    def captured(self, name='', readings=1):
        """Return the mean of some readings, and the true centre of mass in the base, m."""
        capture = self.capture(readings, name)
        return capture, self.true_base().inverse().apply(self.plant.truth().com)


@pytest.fixture(scope='module')
def played():
    """Play a, b and c with exact sensors."""
    stage, found = TiltStage(), []
    for posture in 'abc':
        stage.go(posture)
        found.append(stage.captured(posture))
    return stage, found


def test_exact_sensors_give_a_hundredth_of_a_millimetre(played):
    stage, captured = played
    (a, com_a), (b, com_b), _ = captured
    found = com_from_captures(stage.regressor, a, b, SensorNoise())
    np.testing.assert_allclose(found.com_in_base, (com_a, com_b), atol=1e-5)
    # Of Table 1: shins, thighs and waist above the ankles.
    l_w = (2.0 * 0.95 * 0.2 + 2.0 * 1.16 * 0.65 + 0.94 * 0.9) / (2.0 * (0.95 + 1.16) + 0.94)
    assert (found.r_w, found.q_w, found.l_w) == pytest.approx((0.0, 0.0, l_w), abs=1e-5)


def test_joints_that_yield_to_the_load_are_taken_into_account(played):
    """Position control lets knees bend by a milliradian, which moved the result by 0.15 mm."""
    stage, captured = played
    (a, _), (b, _), _ = captured
    knee = stage.model.joint_index(('l_knee',))[0]
    assert abs(b.positions[knee] - a.positions[knee]) > 5e-4
    found = com_from_captures(stage.regressor, b, a, SensorNoise())  # from the other one, too
    np.testing.assert_allclose(found.com_in_base, (captured[1][1], captured[0][1]), atol=1e-5)


def test_a_pose_that_bends_another_joint_is_not_taken_for_a_lean(played):
    stage, captured = played
    first, second, _ = last_pair(stage.regressor, [one for one, _ in captured], SensorNoise())
    assert (first.name, second.name) == ('a', 'b')


def test_hidden_masses_above_the_ankles_do_not_matter():
    stage = TiltStage(errors={'base_link': LinkError(1.5, (0.02, 0.01, 0.1)),
                              'l_thigh': LinkError(0.3, (0.0, 0.0, -0.05))})
    captured = []
    for posture in 'ab':
        stage.go(posture)
        captured.append(stage.captured(posture))
    (a, com_a), (b, com_b) = captured
    by_urdf = stage.model.state(a.positions).com_in_base
    assert np.linalg.norm(by_urdf - com_a) > 0.005
    found = com_from_captures(stage.regressor, a, b, SensorNoise())
    np.testing.assert_allclose(found.com_in_base, (com_a, com_b), atol=1e-4)


@pytest.mark.thorough
def test_noise_is_as_predicted():
    """The errors of many draws of the readings' noise have the stated standard deviations."""
    stage = TiltStage(sensors=SensorOptions(force_noise=FORCE, torque_noise=MOMENT), seed=1)
    draws, readings = 60, 4
    captured = []
    for posture in 'ab':
        stage.go(posture)
        captured.append([stage.captured(readings=readings) for _ in range(draws)])
    noise = SensorNoise.exact(force=FORCE / np.sqrt(readings), moment=MOMENT / np.sqrt(readings))
    found = [com_from_captures(stage.regressor, a, b, noise)
             for (a, _), (b, _) in zip(*captured)]
    truth = np.array((captured[0][0][1], captured[1][0][1]))
    errors = np.array([one.com_in_base - truth for one in found])
    spread = np.std([(one.r_w, one.q_w, one.l_w) for one in found], axis=0)
    ratios = spread / found[0].deviations
    assert ratios.min() > 0.7 and ratios.max() < 1.35, ratios
    assert np.abs(errors.mean(axis=0)).max() < 3.0 * errors.std(axis=0).max() / np.sqrt(draws)
