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
"""Calibration of a robot without foot sensors, by joint torques alone."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.captures.stillness import CaptureWindow
from biped_com_ros.core.identification.captures.virtual_contacts import (
    frame_of_readings, reading_to_sensor, with_virtual_sensors)
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.statics_data import TrueRobot


@pytest.fixture(scope='module')
def model():
    return with_virtual_sensors(RobotModel.load('g1_as_sold'))


@pytest.fixture(scope='module')
def solved(model):
    """Return a robot, captures without foot sensors, and the estimate."""
    true = TrueRobot('g1', seed=0)
    weight = 9.81 * model.mass  # as the model's, which is 5 kg too light
    captures = [replace(capture, wrenches=np.outer(
        capture.in_contact, (0.0, 0.0, weight / capture.in_contact.sum(), 0.0, 0.0, 0.0)))
        for capture in true.captures(30)]
    estimator = Estimator(model)
    return true, captures, estimator, estimator.solve(captures)


def com_errors(true, regressor, theta):
    poses = [true.positions(('left',)) for _ in range(12)]
    coms = [[regressor.com_matrix(q) @ t.ravel() / t[:, 0].sum() for q in poses]
            for t in (theta, true.theta)]
    return np.sqrt(((np.array(coms[0]) - coms[1]) ** 2).mean(axis=0))


def test_centre_of_mass_and_weight_are_found_by_joint_torques(solved, model):
    true, _, estimator, found = solved
    before = com_errors(true, estimator.regressor, parameters_of(model))
    after = com_errors(true, estimator.regressor, found.parameters)
    assert before.max() > 4e-3 and after.max() < 2e-3
    true_mass = true.theta[:, 0].sum()
    assert abs(true_mass - model.mass) > 4.0
    assert found.parameters[:, 0].sum() == pytest.approx(true_mass, abs=0.3)


def test_virtual_sensors_are_not_among_the_instruments(solved):
    _, _, _, found = solved
    names = {e.name for e in found.instruments.estimates}
    assert 'left_knee_joint' in names and not any('virtual' in name for name in names)


def test_residuals_are_those_of_joint_torques_after_the_contacts(solved):
    _, _, _, found = solved
    assert found.before.torque_rms > 3.0 * found.after.torque_rms
    assert found.after.torque_rms < 0.5  # the noise is 0.3 N m
    assert np.isnan(found.after.com_rms)  # nothing measures it


def test_the_value_of_the_virtual_wrench_does_not_matter(solved, model):
    """It depends on the masses that are sought."""
    true, captures, estimator, found = solved
    other = estimator.solve([replace(c, wrenches=1.2 * c.wrenches) for c in captures])
    mass = found.parameters[:, 0].sum()
    assert other.parameters[:, 0].sum() == pytest.approx(mass, abs=0.02 * abs(mass - model.mass))


def test_without_torques_poses_are_refused(solved):
    _, captures, estimator, _ = solved
    without_efforts = [replace(c, torques=np.full_like(c.torques, np.nan)) for c in captures[:6]]
    with pytest.raises(InputError, match='no joint torques.*motor_constants'):
        estimator.solve(without_efforts)


def test_readings_arrive_at_the_sole_and_count_at_its_link(model):
    assert frame_of_readings(model, 'left_virtual') == 'left_sole_frame'
    wrench = reading_to_sensor(model, 'left_virtual') @ np.array((5.0, 0.0, 100.0, 0.0, 0.0, 0.0))
    # The sole is 35 mm below its link.
    np.testing.assert_allclose(wrench, (5.0, 0.0, 100.0, 0.0, -0.175, 0.0), atol=1e-12)


def test_a_hoisted_virtual_foot_is_in_the_air_and_a_loaded_one_stands(model):
    window = CaptureWindow(model, model.config.imu.frame)
    for load, stands in ((0.5, False), (160.0, True)):
        window.clear()
        for k in range(300):
            wrenches = np.zeros((2, 6))
            wrenches[:, 2] = load + 20.0 * (-1) ** k  # noise of velocities, not hands
            window.add(0.005 * k, model.posture(), np.zeros(len(model.joint_names)), wrenches,
                       np.array((0.0, 0.0, 1.0)))
        assert not window.problem
        assert window.capture().in_contact.tolist() == [stands, stands]


def test_a_robot_with_sensors_stays_as_it_is():
    talos = RobotModel.load('talos')
    assert with_virtual_sensors(talos) is talos
    np.testing.assert_array_equal(reading_to_sensor(talos, 'left_foot'), np.eye(6))
    assert frame_of_readings(talos, 'left_foot') == talos.config.wrench_sensors['left_foot'].frame
