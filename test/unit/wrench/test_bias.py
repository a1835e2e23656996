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
"""Biases that drift are followed while feet swing, and never while they are loaded."""

import functools
import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.wrench import centre_of_pressure, wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.bias import BiasFilter, BiasSettings
from biped_com_ros.core.wrench.bias_tracking import BiasTracking
from biped_com_ros.core.wrench.weight_check import WeightCheck
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

MS = 1_000_000
DRIFT = np.array((30.0, -20.0, 30.0, 1.0, -1.0, 0.5)) / 3600.0
"""N/s and N m/s: 30 N and 1 N m per hour."""
GAIN, NOTHING = 1.1, np.zeros(6)
COEFFICIENT = np.array((0.3, -0.2, 0.8, 0.01, -0.02, 0.005))
"""N/K and N m/K."""


@pytest.fixture
def found():
    return BiasFilter(BiasSettings())


def swing(found, start, reading, count=40, expected=NOTHING):
    """Hold a foot in the air from a time on, s, reading at 100 Hz; return whether it counts."""
    for i in range(count):
        t = start + 0.01 * i
        found.add_in_air(reading(t), expected, round(1e9 * t))
    return found.finish_swing()


def noisy(rng, force, moment):
    return rng.standard_normal(6) * np.repeat((force, moment), 3)


def test_the_filter_follows_a_drift_within_its_covariance(found):
    rng, errors = np.random.default_rng(1), []
    start = noisy(rng, 3.0, 0.1)
    for lift in 2.0 * np.arange(60):
        assert swing(found, lift, lambda t, lift=lift: (
            start + DRIFT * t + 0.05 * rng.standard_normal(6)
            + np.sin(2.0 * np.pi * (t - lift) / 0.39) * np.repeat((1.0, 0.05), 3)))
        found.predict(round(1e9 * (lift + 1.5)))
        errors.append((found.bias - start - DRIFT * (lift + 1.5)) / found.deviation)
    assert found.updates == 60 and not found.rejected
    assert 0.05 < (np.array(errors)[10:] ** 2).mean() < 3.0
    assert_allclose(found.bias[:3], (start + DRIFT * 119.5)[:3], atol=0.2)


def test_a_mean_that_is_not_credible_or_of_a_short_time_is_refused(found):
    assert not swing(found, 0.0, lambda t: np.ones(6), count=10) and not found.bias.any()
    found = BiasFilter(BiasSettings(force=1.0))
    swing(found, 0.0, lambda t: np.full(6, 40.0), count=50)
    assert found.rejected == 1 and not found.updates and not found.bias.any()


def test_a_wrong_weight_of_the_foot_is_no_contradiction_in_another_posture(found):
    """What hangs below a sensor is 8 % lighter than in the URDF: that turns with it."""
    upright = np.array((0.0, 0.0, -15.0, 0.0, 0.0, 0.0))
    tilted = 15.0 * np.array((np.sin(0.5), 0.0, -np.cos(0.5), 0.0, 0.0, 0.0))
    for start in range(20):
        expected = upright if start < 10 else tilted
        swing(found, start, lambda t, expected=expected: 0.92 * expected + 0.02 * np.sin(
            100.0 * (t % 1.0)), 100, expected)
        assert (np.abs(found.bias) < 1.96 * found.deviation + 0.01).all()
    assert found.updates == 20 and not found.rejected
    # A calibrated URDF has the true weight: no bias is left.
    assert np.abs(found.bias).max() > 1.0
    found.shift(-0.08 * upright)
    assert np.abs(found.bias).max() < 0.1


def test_neither_is_a_wrong_centre_of_mass_below_the_sensor(found):
    """It moves the moment about an axis about which none was expected."""
    for lift, pitch in enumerate((0.0, 0.3, -0.3, 0.0)):
        force = -2.0 * np.array((math.sin(pitch), 0.0, math.cos(pitch)))
        expected = np.concatenate((force, np.cross((0.01, 0.0, 0.0), force)))
        error = np.concatenate((np.zeros(3), np.cross((0.0, 0.005, 0.0), force)))
        assert swing(found, lift, lambda t, r=expected + error: r, expected=expected)
    assert found.updates == 4 and not found.rejected
    # What hangs below the sensor may have such an error about each axis.
    assert (found.deviation[3:] >= 0.9 * 0.01 * 2.0).all()


def walk_while_warming(measured, seed=1):
    """Return a filter after 30 swings in a minute, in which the sensor warms from 20 to 26 deg."""
    rng, found = np.random.default_rng(seed), BiasFilter(BiasSettings())
    for step in range(30):
        warmer = 0.2 * step
        if measured:
            found.set_temperature(20.0 + warmer)
        assert swing(found, 2.0 * step, lambda t, warmer=warmer: (
            1.0 + COEFFICIENT * warmer + noisy(rng, 0.1, 0.005)))
    return found


@pytest.mark.parametrize('seed', range(5))
def test_a_sensor_that_stands_follows_its_temperature(seed):
    found = walk_while_warming(measured=True, seed=seed)
    assert (np.abs(found.coefficient - COEFFICIENT) < 3.0 * found.coefficient_deviation).all()
    assert (found.coefficient_deviation[:3] < 0.3).all()  # of 0.5 N/K at first
    for minute in range(1, 6):  # on both feet, up to 41 deg
        found.set_temperature(26.0 + 3.0 * minute)
        found.predict(round(60e9 * (1 + minute)))
    error = np.abs(found.bias - 1.0 - 21.0 * COEFFICIENT)
    assert (error < 3.0 * found.deviation).all()
    blind = walk_while_warming(measured=False, seed=seed)
    blind.predict(round(60e9 * 6))
    assert error[2] < 0.5 * abs(blind.bias - 1.0 - 21.0 * COEFFICIENT)[2]
    assert not blind.coefficient.any()


def test_a_tare_keeps_the_temperature_coefficient_and_counts_from_its_own_temperature():
    found = walk_while_warming(measured=True)
    before, deviation = found.coefficient.copy(), found.coefficient_deviation
    found.set_temperature(40.0)
    found.set_bias(np.full(6, 7.0), np.full(6, 0.1))
    assert_array_equal(found.bias, 7.0)
    assert_array_equal(found.deviation, 0.1)
    found.set_temperature(42.0)
    assert_allclose(found.bias, 7.0 + 2.0 * before, rtol=1e-12)
    assert_allclose(found.deviation ** 2, 0.01 + 4.0 * deviation ** 2, rtol=1e-12)


@pytest.mark.parametrize(('scatter', 'is_followed'), [(0.0, True), (6.0, False)])
def test_a_bias_that_jumped_is_followed_after_a_few_swings(found, scatter, is_followed):
    """A sensor that was knocked; contacts that are taken for swings scatter."""
    rng = np.random.default_rng(1)
    for start in range(40):
        bias = np.full(6, 0.1) if start < 30 else (
            np.repeat((8.0, 0.1), 3) + scatter * (-1) ** start)
        swing(found, start, lambda t, bias=bias: bias + noisy(rng, 0.5, 0.01))
    assert found.rejected == (5 if is_followed else 10)
    assert_allclose(found.bias[:3], 8.0 if is_followed else 0.1, atol=0.5)


def test_a_drift_found_in_a_minute_does_not_carry_the_bias_away_in_a_day(found):
    for step in range(30):
        swing(found, 2.0 * step, lambda t: DRIFT * t)
    before, drift = found.bias.copy(), np.abs(found.drift)
    assert (drift[:3] > 5.0).all()
    for hour in range(1, 25):
        found.predict(round(1e9 * (60.0 + 3600.0 * hour)))
    assert (np.abs(found.bias - before) < 1.1 * drift).all(), 'what it drifts in an hour'
    assert (np.abs(found.drift) < 1e-6).all() and np.isfinite(found.deviation).all()


def test_what_two_times_in_the_air_differ_by_does_not_carry_the_bias_on(found):
    for start, mean in ((0.0, 0.0), (3.0, -0.1)):  # hoisted twice
        swing(found, start, lambda t, mean=mean: np.full(6, mean))
    before = found.bias.copy()
    found.predict(300_000 * MS)
    assert (np.abs(found.bias - before)[:3] < 0.15).all(), 'as much as they differ by'


def test_settings_have_to_be_positive():
    with pytest.raises(ConfigurationError, match="'force' is 0.0; it must be 0.001 to 10000"):
        BiasSettings(force=0.0)


def drifting(t):
    return DRIFT * t


def warming(t):
    """Return the bias of a sensor that warms up in a minute: it drifts four times as fast."""
    return 4.0 * DRIFT * 60.0 * (1.0 - np.exp(-t / 60.0))


UP = np.array((0.0, 0.0, 1.0, 0.0, 0.0, 0.0))


class Stepping:
    """The demo robot steps in place, by statics; its sensors drift, with gains 10 % too high."""

    COP = (0.02, 0.01)

    def __init__(self, bend=1.3, bias=drifting, gain=GAIN):
        self.model = model = RobotModel.load('biped')
        self.aggregation = WrenchAggregation(model, AggregationSettings(low_pass_cutoff=0.0))
        self.tracking = BiasTracking(self.aggregation, BiasSettings())
        self.filters = list(self.tracking.filters.values())
        self.bend, self.weight = bend, self.aggregation.body_weight
        self.bias, self.gain, self.postures = bias, gain, {}
        self.adjoints = []
        for sole, channel in zip(model.soles.poses_in_joint(), self.aggregation.channels):
            sensor = model.frames((channel.config.frame,)).poses_in_joint()[0]
            to_sole = sensor.inverse() @ sole
            self.adjoints.append(wrench_adjoint(to_sole.rotation, to_sole.position))

    def step(self, t, track=True):
        """Play one instant, 100 Hz; return the errors of the CoPs of the loaded feet, m."""
        return self.measure(t, *self.posture_at(round(100.0 * t) % 200), track)

    def posture_at(self, k):
        """Return the state and shares of the weight on the feet, k instants after a step began."""
        if k not in self.postures:
            positions, loads = self.model.posture(), [0.5, 0.5]
            if k % 100 >= 30:
                swinging = k // 100
                bend = self.bend * np.sin(np.pi * (k % 100 - 30) / 70)
                joints = [f'{"lr"[swinging]}_{name}'
                          for name in ('hip_pitch', 'knee', 'ankle_pitch')]
                positions[self.model.joint_index(joints)] += np.array((-0.5, 1.0, -0.5)) * bend
                loads = [float(swinging), 1.0 - swinging]
            self.postures[k] = self.model.state(positions), loads
        return self.postures[k]

    def measure(self, t, state, loads, track=True):
        """Play one instant with these shares of the weight on the feet."""
        aggregation, stamp = self.aggregation, round(1e9 * t)
        aggregation.set_state(state, state.pose_in_base(self.model.config.imu.frame).rotation)
        x, y = self.COP
        for i, adjoint in enumerate(self.adjoints):
            contact = loads[i] * self.weight * np.array((0.0, 0.0, 1.0, y, -x, 0.0))
            reading = self.gain * (adjoint @ contact + aggregation.expected[i]) + self.bias(t)
            aggregation.update(i, reading * aggregation.channels[i].config.factors, stamp)
        done = [aggregation.total(aggregation.bodies[i], stamp) is not None for i in (1, 0)]
        if any(done) and track:
            self.tracking.update(stamp)
        points = [centre_of_pressure(body.wrench_values, minimum_force=0.4 * self.weight)
                  for body in aggregation.feet]
        return max((np.hypot(point[0] - x, point[1] - y) for point in points if point is not None),
                   default=0.0)


UNTIL = {drifting: 66.0, warming: 90.0}
"""How long a robot steps, s."""


@functools.cache
def stepped(bias, gain, track):
    """
    Return a robot that has stepped, its errors, and how its weight was from 60 to 66 s.

    One whose bias is not tracked remembers nothing, and begins at 59 s.
    """
    robot, errors = Stepping(bias=bias, gain=gain), []
    check = WeightCheck(robot.weight, {'left': ['left_foot'], 'right': ['right_foot']}, 0.05,
                        'the YAML')
    for i in range(0 if track else 5900, round(100 * UNTIL[bias])):
        errors.append(robot.step(0.01 * i, track))
        if i == 6000:
            check.result()  # of what was before
        if i < 6600:
            forces = robot.aggregation.foot_forces
            check.add(round(1e7 * i), sum(forces), np.multiply.outer(forces, UP),
                      robot.aggregation.any_foot_in_contact)
    return robot, np.array(errors), check.result()


def test_after_a_minute_of_stepping_the_cop_is_right_to_a_millimetre():
    (robot, errors, _), (_, without, _) = (stepped(drifting, GAIN, t) for t in (True, False))
    assert errors[6000:].max() < 0.001 < without[100:300].max()
    for found in robot.filters:
        assert found.updates > 20 and not found.rejected
        # 10 % of the foot's own weight cannot be told from a bias.
        error = np.abs(found.bias - DRIFT * 66.0)
        assert (error < 2.0 * found.deviation + np.repeat((0.01, 0.001), 3)).all()
        assert error[2] > 0.1


@pytest.mark.parametrize(('bias', 'least', 'gain', 'is_plausible'), [
    (drifting, 0.25, 1.0, True), (drifting, 0.25, GAIN, False), (warming, 1.0, GAIN, False),
    pytest.param(warming, 1.0, 1.0, True, marks=pytest.mark.thorough)])
def test_the_weight_warning_is_right_after_a_minute_of_stepping(bias, least, gain, is_plausible):
    """A drift is no reason to warn, a wrong gain is; warming is a drift, as it is not measured."""
    (robot, _, tracked), (_, _, free) = (stepped(bias, gain, track) for track in (True, False))
    assert tracked.plausible == is_plausible and ('calibrate' in tracked.message) != is_plausible
    assert tracked.values['ratio'] == pytest.approx(gain, abs=0.01)
    assert abs(free.values['ratio'] - gain) * robot.weight > least  # N, of both sensors


def test_while_a_sensor_warms_up_the_cop_stays_right():
    (_, errors, _), (_, without, _) = (stepped(warming, GAIN, t) for t in (True, False))
    assert errors.max() < 0.001 and errors[6000:].max() < 0.0001
    assert without.max() > 0.003


@pytest.mark.parametrize('bend', [0.0, 0.15])
def test_a_foot_that_is_not_lifted_clearly_is_never_used(bend):
    robot = Stepping(bend)
    for i in range(800):
        robot.step(0.01 * i)
    assert all(not found.updates for found in robot.filters)
    assert not any(channel.offset.any() for channel in robot.aggregation.channels)


def test_what_a_hanging_robot_carries_when_it_is_lowered_is_no_bias():
    lowered, hanging = Stepping(), Stepping()
    posture = lowered.model.state(lowered.model.posture())
    for i in range(1600):  # hangs for 6 s, is lowered for 5 s, and touches the ground lightly
        share = 0.015 * np.clip((0.01 * i - 6.0) / 5.0, 0.0, 1.0)
        lowered.measure(0.01 * i, posture, [share, share])
        hanging.measure(0.01 * i, posture, [0.0, 0.0])
        if i == 599:
            known = [found.bias.copy() for found in lowered.filters]
    for found, bias in zip(lowered.filters, known):
        assert found.updates > 2 and found.consecutive_rejected >= 3
        assert abs(found.bias[2] - bias[2]) < 0.1 * 0.015 * lowered.weight
    for found in hanging.filters:  # a hanging robot's biases are followed
        error = np.abs(found.bias - DRIFT * 15.0)
        assert (error < 2.0 * found.deviation + 0.02).all() and not found.rejected


def test_biases_are_followed_after_the_clock_was_set_back():
    robot = Stepping(bias=lambda _: drifting(5.0))
    posture = robot.model.state(robot.model.posture())
    for begin in (100.0, 50.0):
        before = [found.updates for found in robot.filters]
        for i in range(1000):
            robot.measure(begin + 0.01 * i, posture, [0.0, 0.0])
        for found, count in zip(robot.filters, before):
            assert found.updates > count


def test_other_settings_keep_what_a_tare_measured():
    """Its deviation, the posture, and the temperature at which it was made."""
    expected, deviation = np.arange(6.0), np.full(6, 0.1)
    filters = [BiasFilter(BiasSettings()) for _ in range(2)]
    for found in filters:
        found.set_temperature(20.0)
        found.set_bias(np.ones(6), deviation, expected)
        found.set_temperature(30.0)
    filters[0].configure(BiasSettings(force=50.0))
    filters[0].configure(BiasSettings())
    assert_allclose(filters[0].deviation, filters[1].deviation)
    for found in filters:
        assert swing(found, 10.0, lambda t: expected + 1.05 + 0.01 * np.sin(9.0 * t), 60, expected)
    assert filters[1].updates == 1
    assert_allclose(filters[0].bias, filters[1].bias)
    untared = BiasFilter(BiasSettings())
    untared.configure(BiasSettings(force=50.0))
    assert_allclose(untared.deviation, BiasFilter(BiasSettings(force=50.0)).deviation)
