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
"""What an IMU that is wrong shows while the robot stands, and the bias of its gyroscope."""

from biped_com_ros.core.state.rest import (
    accelerometer_problem, GyroBias, gyroscope_problem, StandingMean, starting_problem)
import numpy as np
import pytest

UP = np.array((0.0, 0.0, 1.0))
NOTHING = np.zeros(3)


def mean(acceleration, turn=NOTHING, gyro=NOTHING, normal=UP):
    return StandingMean(0.5, np.array(turn), 0.0, np.array(gyro), np.array(acceleration),
                        np.array(normal))


@pytest.mark.parametrize(('acceleration', 'words'), [
    ((0.0, 0.1, 1.0), 'multiply by 9.80665'),
    ((0.01, 0.0, 0.02), 'raw (proper) acceleration'),
    ((0.0, 0.2, -9.8), 'its sign is reversed'),
    ((0.0, 0.0, 11.5), 'm/s^2'),
    ((9.7, 0.0, 0.5), 'how it is mounted'),
])
def test_units_sign_and_mounting_of_an_accelerometer_are_named(acceleration, words):
    assert words in accelerometer_problem(mean(acceleration), None, 9.81)


def test_an_accelerometer_that_contradicts_the_orientation_is_named():
    tilted = (9.81 * np.sin(0.3), 0.0, 9.81 * np.cos(0.3))
    assert accelerometer_problem(mean(tilted), None, 9.81) == ''  # soles may be on a slope
    assert "17 deg off the IMU's orientation" in accelerometer_problem(mean(tilted), UP, 9.81)
    along = np.array(tilted) / 9.81
    assert accelerometer_problem(mean(tilted), along, 9.81) == ''


def test_a_gyroscope_in_degrees_is_named_as_soon_as_the_joints_turn_it():
    turn = np.array((0.0, 0.06, 0.0))
    right, degrees = turn / 0.5, np.degrees(turn) / 0.5
    assert gyroscope_problem(mean(9.81 * UP, turn, right)) == ''
    assert 'deg/s' in gyroscope_problem(mean(9.81 * UP, turn, degrees))
    assert gyroscope_problem(mean(9.81 * UP, gyro=degrees)) is None
    assert accelerometer_problem(mean(UP, turn), None, 9.81) is None


@pytest.mark.parametrize('acceleration', [(0.0, 0.0, 9.3), (2.0, -3.0, 14.0), (8.0, 0.0, 5.0)])
def test_a_robot_that_moves_may_start(acceleration):
    assert starting_problem(mean(acceleration), 9.81) == ''


def bias_after(values, bias=NOTHING, deviation=1e-3, gate=None):
    """Return the biases that windows with these mean rates about z give."""
    gate = gate or GyroBias()
    return [gate.measure(mean(9.81 * UP, gyro=(0.0, 0.0, value)), bias, deviation)
            for value in values]


def test_a_bias_counts_where_two_windows_agree():
    first, second = bias_after((0.012, 0.013), deviation=0.02)
    assert first is None and second.tolist() == [0.0, 0.0, 0.013]
    assert bias_after((0.012, 0.05), deviation=0.02) == [None, None]


def test_a_slow_turn_on_both_feet_is_no_bias():
    """Of 0.1 rad/s for two seconds; a bias that lasts for long is one after all."""
    assert bias_after((0.0, 0.1, 0.1, 0.1, 0.1, 0.0))[1:5] == [None] * 4
    found = bias_after((0.05,) * 14)
    assert found[5] is None and found[-1].tolist() == [0.0, 0.0, 0.05]


def test_what_joints_turn_is_no_bias():
    gate = GyroBias()
    turning = mean(9.81 * UP, turn=(0.0, 0.0, 0.01), gyro=(0.0, 0.0, 0.023))
    gate.measure(turning, NOTHING, 0.02)
    assert gate.measure(turning, NOTHING, 0.02)[2] == pytest.approx(0.003)
    moving = mean(9.81 * UP, turn=(0.0, 0.0, 0.1), gyro=(0.0, 0.0, 0.2))
    assert gate.measure(moving, NOTHING, 0.02) is None


def test_windows_with_steps_between_do_not_agree():
    gate = GyroBias()
    assert bias_after((0.05,) * 3, gate=gate) == [None] * 3 and gate.rejected == 2
    gate.interrupt()
    assert gate.rejected == 0
    assert bias_after((0.0,), gate=gate) == [None]  # the first of two
