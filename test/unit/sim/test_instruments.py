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
"""Systematic errors of instruments: their laws, without MuJoCo and ROS."""

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.sim.instruments import (
    ErrorSource, ImuMounting, LEVER, parse_instrument_errors, WrenchErrors)
from biped_com_ros.sim.interface import SensorOptions
import numpy as np
import pytest
from support.sim_robot import rotation

SENSORS = ('left', 'right')
NO_BIAS = np.zeros((2, 6))


def errors_of(given=None, biases=NO_BIAS, seed=0, **options):
    source = ErrorSource(seed, given or {})
    return WrenchErrors(SENSORS, SensorOptions(**options), source, biases)


def read(errors, wrenches, time=0.0):
    wrenches = np.array(wrenches, dtype=float)
    errors.apply(wrenches, time)
    return errors.saturate(wrenches)


def random_wrenches(seed=1):
    return np.random.default_rng(seed).normal(size=(2, 6)) * ([300.0] * 3 + [20.0] * 3)


@pytest.mark.parametrize('given', [
    {}, {('left', 'gain'): (0.0,) * 6, ('right', 'drift'): (0.0,) * 6}])
def test_without_errors_no_bit_changes(given):
    exact = random_wrenches()
    assert read(errors_of(given), exact, 1e4).tobytes() == exact.tobytes()


def test_a_gain_scales_its_axis_and_a_bias_adds_to_it():
    given = {('left', 'gain'): (0.02, 0.0, 0.0, 0.0, -0.1, 0.0),
             ('right', 'bias'): (3.0, 0.0, 0.0, 0.0, 0.0, -0.5)}
    exact, expected = random_wrenches(), random_wrenches()
    expected[0, (0, 4)] *= 1.02, 0.9
    expected[1, (0, 5)] += 3.0, -0.5
    np.testing.assert_allclose(read(errors_of(given), exact), expected, rtol=1e-14)


def test_a_misplaced_sensor_measures_about_its_true_origin_in_its_true_axes():
    position, turn = np.array((0.003, -0.002, 0.001)), np.array((0.0, 0.0, 0.01))
    errors = errors_of({('left', 'position'): tuple(position), ('left', 'rotation'): tuple(turn)})
    exact = random_wrenches()
    found = read(errors, exact)
    c, s = np.cos(0.01), np.sin(0.01)
    R = np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))
    force, moment = exact[0, :3], exact[0, 3:]
    np.testing.assert_allclose(R @ found[0, :3], force)
    np.testing.assert_allclose(R @ found[0, 3:], moment - np.cross(position, force))
    np.testing.assert_array_equal(found[1], exact[1])


def test_cross_talk_mixes_axes_by_its_share():
    shares = []
    for seed in range(40):
        C = errors_of(cross_talk=0.01, seed=seed).matrices
        np.testing.assert_allclose(C[:, range(6), range(6)], 1.0, atol=1e-15)
        E = C - np.eye(6)
        shares.append([E[:, :3, :3].std() * np.sqrt(9 / 6), E[:, 3:, :3].std() / LEVER,
                       E[:, :3, 3:].std() * LEVER])
    np.testing.assert_allclose(np.mean(shares, axis=0), 0.01, rtol=0.1)


def test_a_bias_drifts_by_the_stated_amount_per_hour_and_follows_the_temperature():
    rate = np.array((30.0, 0.0, -6.0, 0.0, 0.0, 0.1))
    errors = errors_of({('left', 'drift'): tuple(rate)})
    for minutes in (1.0, 60.0, 90.0):
        drift = read(errors, NO_BIAS, 60.0 * minutes)
        np.testing.assert_allclose(drift[0], rate * minutes / 60.0)
        np.testing.assert_array_equal(drift[1], 0.0)
    warm = errors_of({('right', 'temperature'): (0.5, 0.0, 0.0, 0.0, 0.0, 0.0)},
                     warming=20.0, warming_time=300.0)
    for time, bias in ((0.0, 0.0), (300.0, 10.0 * (1.0 - np.exp(-1.0))), (1e5, 10.0)):
        assert read(warm, NO_BIAS, time)[1, 0] == pytest.approx(bias)


def test_saturation_clips_both_signs():
    errors = errors_of(force_range=100.0, torque_range=2.0)
    found = read(errors, [[150.0, -150.0, 50.0, 3.0, -3.0, 1.0], [0.0] * 6])
    np.testing.assert_array_equal(found[0], (100.0, -100.0, 50.0, 2.0, -2.0, 1.0))


def test_an_imu_is_turned_in_its_own_axes():
    """Whatever its orientation: the world's gravity stays where it is."""
    vector = np.array((0.02, -0.03, 0.05))
    mounting = ImuMounting(vector[np.newaxis])
    half = 0.7
    imu = np.array([[np.sin(half), 0.0, 0.0, np.cos(half), 0.1, 0.2, 0.3, *[0.0] * 3]])
    R_before = rotation(imu[0, :4])
    imu[0, 7:] = R_before.T @ (0.0, 0.0, 9.81)
    mounting.apply(imu)
    R_after = rotation(imu[0, :4])
    np.testing.assert_allclose(R_after @ imu[0, 7:], (0.0, 0.0, 9.81), atol=1e-12)
    np.testing.assert_allclose(R_after @ imu[0, 4:7], R_before @ (0.1, 0.2, 0.3), atol=1e-12)
    turn = R_before.T @ R_after
    np.testing.assert_allclose(
        0.5 * np.array((turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0],
                        turn[1, 0] - turn[0, 1])),
        vector * np.sinc(np.linalg.norm(vector) / np.pi), atol=1e-12)
    straight = imu.copy()
    ImuMounting(np.zeros((1, 3))).apply(straight)
    assert straight.tobytes() == imu.tobytes()


def test_draws_are_reproducible_and_independent_of_each_other():
    alone, after = ErrorSource(4, {}), ErrorSource(4, {})
    after.draw('drift', SENSORS, 1.0)
    first = alone.draw('gain', SENSORS, 0.01)
    np.testing.assert_array_equal(first, after.draw('gain', SENSORS, 0.01))
    assert (first != ErrorSource(5, {}).draw('gain', SENSORS, 0.01)).all()
    assert (first != alone.draw('gain', ('a', 'b'), 0.01)).all()
    draws = [ErrorSource(seed, {}).draw('gain', SENSORS, 0.01) for seed in range(100)]
    assert np.std(draws) == pytest.approx(0.01, rel=0.1)
    np.testing.assert_array_equal(alone.values['gain']['right'], first[1])


def test_errors_from_text():
    assert parse_instrument_errors(['left bias 3 0 0 0 0.1 0', ' knee  friction 0.5 ']) == {
        ('left', 'bias'): (3.0, 0.0, 0.0, 0.0, 0.1, 0.0), ('knee', 'friction'): (0.5,)}


@pytest.mark.parametrize('line, message', [
    ('left bias 3', "'<name> bias <value> <value>"), ('knee friction much', 'finite values'),
    ('knee friction inf', 'finite values'), ('knee fricton 1', "did you mean 'friction'"),
    ('knee', "unknown error ''")])
def test_wrong_text_is_refused(line, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_instrument_errors([line])


def test_an_error_of_what_does_not_exist_is_refused():
    source = ErrorSource(0, {('left', 'gain'): (0.0,) * 6, ('lft', 'bias'): (0.0,) * 6})
    WrenchErrors(SENSORS, SensorOptions(), source, NO_BIAS)
    with pytest.raises(UnknownNameError, match="did you mean 'left'"):
        source.require_all_used()
