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
"""Turned wrench sensors, told from lifted feet, dead sensors and pushes; MuJoCo has the truth."""

from dataclasses import replace

from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.turned_sensors import find_turned_sensor
import numpy as np
import pinocchio as pin
import pytest
from support.statics_data import NOISE, TrueRobot

BOTH = ('left', 'right')


def axis_turn(axis, degrees):
    """Return the rotation about an axis."""
    return pin.exp3(np.radians(degrees) * np.eye(3)['xyz'.index(axis)])


class ModelledCaptures:
    """A robot with other masses than its URDF, and what it measures."""

    def __init__(self, name, seed):
        self.true = TrueRobot(name, seed=seed)
        self.regressor, config = StaticsRegressor(self.true.model), self.true.model.config
        self.noise = NOISE.scaled(self.true.model.mass / 64.0)
        names = list(config.wrench_sensors)
        self.sensors = {foot: names.index(config.feet[foot].wrench_sensors[0]) for foot in BOTH}

    def capture(self, standing=BOTH):
        """Return what it measures in posture stand."""
        return self.true.capture(standing, self.noise, self.true.model.posture('stand'))

    def find(self, capture, foot='left', change=lambda wrench: wrench):
        """Return what is found if the sensor of a foot measures something else."""
        wrenches = capture.wrenches.copy()
        wrenches[self.sensors[foot]] = change(wrenches[self.sensors[foot]])
        return find_turned_sensor(self.regressor, replace(capture, wrenches=wrenches))


@pytest.fixture(scope='module', params=[('sabian', 0), ('g1', 1), ('talos', 2)],
                ids=lambda param: param[0])
def robot(request):
    return ModelledCaptures(*request.param)


def turned(R):
    """Return how a sensor that is turned by R measures a wrench."""
    return lambda wrench: np.concatenate((R.T @ wrench[:3], R.T @ wrench[3:]))


@pytest.mark.parametrize('foot', BOTH)
@pytest.mark.parametrize(('axis', 'degrees'), [
    ('x', 90), ('x', -90), ('x', 180), ('y', 90), ('y', 180), ('y', 45)])
def test_a_turn_that_moves_the_load_is_named_while_both_feet_stand(robot, foot, axis, degrees):
    R = axis_turn(axis, degrees)
    capture = robot.capture()
    found = robot.find(capture, foot, turned(R))
    assert found is not None and found.sign == 1
    assert found.sensor == robot.true.model.config.feet[foot].wrench_sensors[0]
    force = capture.wrenches[robot.sensors[foot], :3]
    back = found.rotation @ R.T @ force
    assert np.degrees(np.arccos(back @ force / (force @ force))) < 12.0  # it is undone
    text = found.describe()
    assert f"'{found.sensor}' is mounted turned by" in text and 'frame of the sensor' in text


def test_an_opposite_sign_is_distinguished_from_a_turn(robot):
    capture = robot.capture()
    found = robot.find(capture, 'right', lambda wrench: -wrench)
    assert found.sensor == robot.true.model.config.feet['right'].wrench_sensors[0]
    # Two half turns about horizontal axes differ from a sign by the moments only.
    force = capture.wrenches[robot.sensors['right'], :3]
    assert found.sign * (found.rotation @ -force) @ force > 0.95 * force @ force


@pytest.mark.parametrize('degrees', (90, -90, 180))
def test_a_turn_about_the_vertical_is_named_on_one_foot(robot, degrees):
    R = axis_turn('z', degrees)
    found = robot.find(robot.capture(('left',)), 'left', turned(R))
    assert found.sensor == robot.true.model.config.feet['left'].wrench_sensors[0]
    assert np.degrees(np.linalg.norm(pin.log3(R.T @ found.rotation))) < 15.0
    assert found.sign == 1


@pytest.mark.parametrize('standing', (BOTH, ('left',), ('right',)))
def test_right_sensors_and_lifted_feet_are_no_fault(robot, standing):
    for _ in range(5):
        assert robot.find(robot.capture(standing)) is None


@pytest.mark.parametrize('standing', (BOTH, ('left',), ('right',)))
def test_a_bias_that_was_not_tared_is_not_a_turn(robot, standing):
    rng, weight = np.random.default_rng(0), 9.81 * robot.true.model.mass
    for _ in range(12):
        capture = robot.capture(standing)
        biases = weight * rng.normal(0.0, [0.04] * 3 + [0.002] * 3, capture.wrenches.shape)
        assert find_turned_sensor(
            robot.regressor, replace(capture, wrenches=capture.wrenches + biases)) is None


@pytest.mark.parametrize('standing', (BOTH, ('left',)))
def test_a_dead_sensor_is_not_turned(robot, standing):
    assert robot.find(robot.capture(standing), 'left', np.zeros_like) is None


def test_weight_on_something_without_sensors_is_not_a_turn(robot):
    capture = robot.capture()
    assert robot.find(capture, 'left', lambda wrench: 0.3 * wrench) is None
    assert robot.find(capture, 'left', lambda wrench: 1.6 * wrench) is None


def test_calibrated_masses_are_used():
    robot = ModelledCaptures('g1', 3)
    heavy = robot.true.theta * 2.5
    capture = robot.capture()
    wrenches = capture.wrenches.copy()
    wrenches[0] = -wrenches[0]
    capture = replace(capture, wrenches=wrenches)
    assert find_turned_sensor(robot.regressor, capture, robot.true.theta) is not None
    assert find_turned_sensor(robot.regressor, capture, heavy) is None
