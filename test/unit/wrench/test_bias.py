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

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.wrench import centre_of_pressure, wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.bias import BiasFilter, BiasSettings
from biped_com_ros.core.wrench.bias_tracking import BiasTracking
from biped_com_ros.core.wrench.weight_check import WeightCheck
import numpy as np
import pytest

MS = 1_000_000
DRIFT = np.array((30.0, -20.0, 30.0, 1.0, -1.0, 0.5)) / 3600.0
"""N/s and N m/s: 30 N and 1 N m per hour."""
GAIN = 1.1


def test_the_filter_follows_a_drift_within_its_covariance():
    rng, found, errors = np.random.default_rng(1), BiasFilter(BiasSettings()), []
    start = rng.standard_normal(6) * (3.0, 3.0, 3.0, 0.1, 0.1, 0.1)
    for swing in range(60):
        for i in range(40):
            t = 2.0 * swing + 0.01 * i
            inertia = np.sin(2.0 * np.pi * i / 39.0) * np.array((1.0, 1.0, 1.0, 0.05, 0.05, 0.05))
            reading = start + DRIFT * t + inertia + 0.05 * rng.standard_normal(6)
            found.add_in_air(reading, np.zeros(6), round(1e9 * t))
        assert found.finish_swing()
        found.predict(round(1e9 * (2.0 * swing + 1.5)))
        errors.append((found.bias - start - DRIFT * (2.0 * swing + 1.5)) / found.deviation)
    assert found.updates == 60 and not found.rejected
    late = np.array(errors)[10:]
    assert 0.05 < (late ** 2).mean() < 3.0
    np.testing.assert_allclose(found.bias[:3], (start + DRIFT * 119.5)[:3], atol=0.2)


def test_a_mean_that_is_not_credible_is_refused():
    found = BiasFilter(BiasSettings(force=1.0))
    for i in range(50):
        found.add_in_air(np.full(6, 40.0), np.zeros(6), 10 * MS * i)
    found.finish_swing()
    assert found.rejected == 1 and not found.updates and not found.bias.any()


def test_a_wrong_weight_of_the_foot_is_no_contradiction_in_another_posture():
    """What hangs below a sensor is 8 % lighter than in the URDF: that turns with it."""
    found, upright = BiasFilter(BiasSettings()), np.array((0.0, 0.0, -15.0, 0.0, 0.0, 0.0))
    tilted = 15.0 * np.array((np.sin(0.5), 0.0, -np.cos(0.5), 0.0, 0.0, 0.0))
    for swing in range(20):
        expected = upright if swing < 10 else tilted
        for i in range(100):
            noise = 0.02 * np.sin(i)
            found.add_in_air(0.92 * expected + noise, expected, 10 ** 9 * swing + 10 * MS * i)
        found.finish_swing()
        assert (np.abs(found.bias) < 1.96 * found.deviation + 0.01).all()
    assert found.updates == 20 and not found.rejected
    # A calibrated URDF has the true weight: no bias is left.
    assert np.abs(found.bias).max() > 1.0
    found.use_inertials(-0.08 * upright)
    assert np.abs(found.bias).max() < 0.1


COEFFICIENT = np.array((0.3, -0.2, 0.8, 0.01, -0.02, 0.005))
"""N/K and N m/K."""


def walk_while_warming(measured, seed=1):
    """Return a filter after 30 swings in a minute, in which the sensor warms from 20 to 26 deg."""
    rng, found = np.random.default_rng(seed), BiasFilter(BiasSettings())
    for swing in range(30):
        temperature = 20.0 + 0.2 * swing
        if measured:
            found.set_temperature(temperature)
        for i in range(40):
            noise = rng.standard_normal(6) * (0.1, 0.1, 0.1, 0.005, 0.005, 0.005)
            found.add_in_air(1.0 + COEFFICIENT * (temperature - 20.0) + noise, np.zeros(6),
                             2000 * MS * swing + 10 * MS * i)
        assert found.finish_swing()
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
    np.testing.assert_array_equal(found.bias, 7.0)
    np.testing.assert_array_equal(found.deviation, 0.1)
    found.set_temperature(42.0)
    np.testing.assert_allclose(found.bias, 7.0 + 2.0 * before, rtol=1e-12)
    np.testing.assert_allclose(found.deviation ** 2, 0.01 + 4.0 * deviation ** 2, rtol=1e-12)


@pytest.mark.parametrize(('scatter', 'is_followed'), [(0.0, True), (6.0, False)])
def test_a_bias_that_jumped_is_followed_after_a_few_swings(scatter, is_followed):
    """A sensor that was knocked; contacts that are taken for swings scatter."""
    rng, found = np.random.default_rng(1), BiasFilter(BiasSettings())
    for swing in range(40):
        bias = np.full(6, 0.1) if swing < 30 else (
            np.array((8.0, 8.0, 8.0, 0.1, 0.1, 0.1)) + scatter * (-1) ** swing)
        for i in range(40):
            noise = rng.standard_normal(6) * (0.5, 0.5, 0.5, 0.01, 0.01, 0.01)
            found.add_in_air(bias + noise, np.zeros(6), 1000 * MS * swing + 10 * MS * i)
        found.finish_swing()
    assert found.rejected == (5 if is_followed else 10)
    expected = 8.0 if is_followed else 0.1
    np.testing.assert_allclose(found.bias[:3], expected, atol=0.5)


def test_a_short_time_in_the_air_is_not_used():
    found = BiasFilter(BiasSettings())
    for i in range(10):
        found.add_in_air(np.ones(6), np.zeros(6), 10 * MS * i)
    assert not found.finish_swing() and not found.bias.any()


def test_a_drift_found_in_a_minute_does_not_carry_the_bias_away_in_a_day():
    found = BiasFilter(BiasSettings())
    for swing in range(30):
        for i in range(40):
            t = 2.0 * swing + 0.01 * i
            found.add_in_air(DRIFT * t, np.zeros(6), round(1e9 * t))
        found.finish_swing()
    before, drift = found.bias.copy(), np.abs(found.drift)
    assert (drift[:3] > 5.0).all()
    for hour in range(1, 25):
        found.predict(round(1e9 * (60.0 + 3600.0 * hour)))
    assert (np.abs(found.bias - before) < 1.1 * drift).all(), 'what it drifts in an hour'
    assert (np.abs(found.drift) < 1e-6).all() and np.isfinite(found.deviation).all()


def test_what_two_times_in_the_air_differ_by_does_not_carry_the_bias_on():
    found = BiasFilter(BiasSettings())
    for swing, mean in enumerate((0.0, -0.1)):  # hoisted twice, 3 s apart
        for i in range(40):
            found.add_in_air(np.full(6, mean), np.zeros(6), 3000 * MS * swing + 10 * MS * i)
        found.finish_swing()
    before = found.bias.copy()
    found.predict(300_000 * MS)
    assert (np.abs(found.bias - before)[:3] < 0.15).all(), 'as much as they differ by'


def test_settings_have_to_be_positive():
    with pytest.raises(ConfigurationError, match='force_drift must be positive'):
        BiasSettings(force_drift=0.0)


class Stepping:
    """The demo robot steps in place, by statics; its sensors drift, with gains 10 % too high."""

    def __init__(self, bend=1.3, bias=lambda t: DRIFT * t, gain=GAIN):
        self.model = model = RobotModel.load('biped')
        self.aggregation = WrenchAggregation(model, AggregationSettings())
        self.tracking = BiasTracking(self.aggregation, BiasSettings())
        self.bend, self.weight = bend, self.aggregation.body_weight
        self.bias, self.gain = bias, gain
        self.soles = model.soles.poses_in_joint()
        self.adjoints = []
        for i, channel in enumerate(self.aggregation.channels[:2]):
            sensor = model.frames((channel.config.frame,)).poses_in_joint()[0]
            to_sole = sensor.inverse() @ self.soles[i]
            self.adjoints.append(wrench_adjoint(to_sole.rotation, to_sole.position))

    def step(self, t, track=True):
        """Play one instant, 100 Hz; return the errors of the CoPs of the loaded feet, m."""
        phase = t % 2.0
        swinging = None if phase < 0.3 or 1.0 <= phase < 1.3 else int(phase >= 1.0)
        positions = self.model.posture()
        if swinging is not None:
            bend = self.bend * np.sin(np.pi * (phase % 1.0 - 0.3) / 0.7)
            leg = ('l', 'r')[swinging]
            for joint, share in (('hip_pitch', -0.5), ('knee', 1.0), ('ankle_pitch', -0.5)):
                positions[self.model.joint_index([f'{leg}_{joint}'])] += share * bend
        loads = [0.5, 0.5]
        if swinging is not None:
            loads = [1.0, 1.0]
            loads[swinging] = 0.0
        return self.measure(t, positions, loads, track)

    def measure(self, t, positions, loads, track=True):
        """Play one instant with these shares of the weight on the feet."""
        state = self.model.state(positions)
        imu = state.pose_in_base(self.model.config.imu.frame).rotation
        self.aggregation.set_state(state, imu)
        errors, true, stamp = [], [], round(1e9 * t)
        for i in range(2):
            fz = loads[i] * self.weight
            contact = np.array((0.0, 0.0, fz, 0.01 * fz, -0.02 * fz, 0.0))
            true.append((0.02, 0.01))
            reading = self.gain * (self.adjoints[i] @ contact + self.aggregation.expected[i])
            self.aggregation.update(i, (reading + self.bias(t)) * np.asarray(
                self.aggregation.channels[i].config.sign), stamp)
        done = self.aggregation.total(self.aggregation.bodies[1], stamp)
        for body in self.aggregation.bodies[:1]:
            done = self.aggregation.total(body, stamp) if done is None else done
        if done is not None and track:
            self.tracking.update(stamp)
        for i, body in enumerate(self.aggregation.feet):
            point = centre_of_pressure(body.wrench_values, minimum_force=0.4 * self.weight)
            if point is not None:
                errors.append(np.hypot(point[0] - true[i][0], point[1] - true[i][1]))
        return max(errors, default=0.0)


def test_after_a_minute_of_stepping_the_cop_is_right_to_a_millimetre():
    tracked, free = Stepping(), Stepping()
    errors = [tracked.step(0.01 * i) for i in range(6600)]
    without = max(free.step(60.0 + 0.01 * i, track=False) for i in range(200))
    assert max(errors[6000:]) < 0.001 < without
    feet = list(tracked.tracking.filters.values())
    assert all(found.updates > 20 and not found.rejected for found in feet)
    for found in feet:
        # 10 % of the foot's own weight cannot be told from a bias.
        error = np.abs(found.bias - DRIFT * 66.0)
        assert (error < 2.0 * found.deviation + (0.01, 0.01, 0.01, 0.001, 0.001, 0.001)).all()
        assert error[2] > 0.1


WARMING = 60.0
"""Time constant with which sensors get warm after they are switched on, s."""


def warming(t):
    """Return the bias of a sensor that warms up: at first it drifts four times as fast."""
    return 4.0 * DRIFT * WARMING * (1.0 - np.exp(-t / WARMING))


@pytest.mark.parametrize(
    ('bias', 'least'), [(lambda t: DRIFT * t, 0.25), (warming, 1.0)])
@pytest.mark.parametrize(('gain', 'is_plausible'), [(1.0, True), (GAIN, False)])
def test_the_weight_warning_is_right_after_a_minute_of_stepping(bias, least, gain, is_plausible):
    """A drift is no reason to warn, a wrong gain is; warming is a drift, as it is not measured."""
    results = []
    for track in (True, False):
        robot = Stepping(bias=bias, gain=gain)
        check = WeightCheck(robot.weight, {'left': ['left_foot'], 'right': ['right_foot']},
                            0.05, 'the YAML')
        for i in range(6600):
            robot.step(0.01 * i, track)
            if i == 6000:
                check.result()  # of what was before
            forces = robot.aggregation.foot_forces
            check.add(sum(forces), forces, robot.aggregation.any_foot_in_contact)
        results.append(check.result())
    tracked, free = results
    assert tracked.plausible == is_plausible and ('calibrate' in tracked.message) != is_plausible
    assert tracked.ratio == pytest.approx(gain, abs=0.01)
    assert abs(free.ratio - gain) * robot.weight > least  # N, of both sensors


def test_while_a_sensor_warms_up_the_cop_stays_right():
    robot, free = Stepping(bias=warming), Stepping(bias=warming)
    errors = [robot.step(0.01 * i) for i in range(9000)]
    without = max(free.step(88.0 + 0.01 * i, track=False) for i in range(200))
    assert max(errors) < 0.001 and max(errors[6000:]) < 0.0001
    assert without > 0.003


@pytest.mark.parametrize('bend', [0.0, 0.15])
def test_a_foot_that_is_not_lifted_clearly_is_never_used(bend):
    robot = Stepping(bend)
    for i in range(800):
        robot.step(0.01 * i)
    assert all(not found.updates for found in robot.tracking.filters.values())
    assert not any(channel.offset.any() for channel in robot.aggregation.channels)


def test_what_a_hanging_robot_carries_when_it_is_lowered_is_no_bias():
    robot = Stepping()
    for i in range(1600):  # hangs for 6 s, is lowered for 5 s, and touches the ground lightly
        share = 0.015 * np.clip((0.01 * i - 6.0) / 5.0, 0.0, 1.0)
        robot.measure(0.01 * i, robot.model.posture(), [share, share])
        if i == 599:
            known = [found.bias.copy() for found in robot.tracking.filters.values()]
    for found, bias in zip(robot.tracking.filters.values(), known):
        assert found.updates > 2 and found.consecutive_rejected >= 3
        assert abs(found.bias[2] - bias[2]) < 0.1 * 0.015 * robot.weight
    robot = Stepping()
    for i in range(1600):
        robot.measure(0.01 * i, robot.model.posture(), [0.0, 0.0])
    for found in robot.tracking.filters.values():  # a hanging robot's biases are followed
        error = np.abs(found.bias - DRIFT * 15.0)
        assert (error < 2.0 * found.deviation + 0.02).all() and not found.rejected
