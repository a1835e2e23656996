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
"""Filters: low-pass against SciPy and its laws, means, tilt, and the limit of steps."""

import os
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.signals.filters import (
    Differentiator, limited_step, LowPass, MovingAverage, RecentMean, TiltFilter, TIME_CONSTANT)
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pinocchio as pin
import pytest

MS = 1_000_000


def run(low_pass, samples, steps):
    return np.array([np.copy(low_pass.update(s, dt)) for s, dt in zip(samples, steps)])


@pytest.mark.parametrize('cutoff', [3.0, 60.0, 180.0])
def test_even_steps_are_the_bilinear_butterworth(cutoff):
    signal = pytest.importorskip('scipy.signal')
    rate, samples = 500.0, np.random.default_rng(1).normal(size=(200, 6)) + 3.0
    b, a = signal.butter(2, cutoff, fs=rate)
    state = signal.lfilter_zi(b, a)[:, None] * samples[0]
    expected, _ = signal.lfilter(b, a, samples, axis=0, zi=state)
    found = run(LowPass(cutoff, 6), samples, np.full(200, 1.0 / rate))
    assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(('made', 'accuracy'), [
    (LowPass(20.0, 1), 5e-3), (Differentiator(20.0, 1), 2e-4)])
def test_uneven_steps_follow_the_continuous_filter(made, accuracy):
    """A 2 Hz sine through 20 Hz, sampled with 50 % jitter: gain and lag of the analogue filter."""
    steps, omega = 1e-3 * np.random.default_rng(2).uniform(0.5, 1.5, 2000), 4.0 * np.pi
    t, s = np.cumsum(steps), 0.1j
    found = run(made, np.sin(omega * t)[:, None], steps).reshape(2000, -1)
    response = 1.0 / (1.0 + np.sqrt(2.0) * s + s * s)
    wave = response * np.exp(1j * omega * t)
    assert_allclose(found[500:, 0], wave.imag[500:], atol=accuracy)
    if found.shape[1] > 1:  # the derivative
        assert_allclose(found[500:, 1], omega * wave.real[500:], atol=accuracy * omega)


def test_a_constant_passes_unchanged_whatever_the_steps():
    steps = np.random.default_rng(3).uniform(1e-4, 0.2, 50)
    found = run(LowPass(10.0, 6), np.tile(np.arange(6.0), (50, 1)), steps)
    assert_allclose(found, np.tile(np.arange(6.0), (50, 1)), atol=1e-12)


def test_the_first_sample_after_a_reset_and_everything_without_a_cutoff_passes_unchanged():
    low_pass, sample = LowPass(5.0, 2), np.array([4.0, -5.0])
    run(low_pass, np.zeros((10, 2)), np.full(10, 0.01))
    low_pass.reset()
    assert_array_equal(low_pass.update(sample, 0.01), [4.0, -5.0])
    assert LowPass(0.0, 2).update(sample, 0.01) is sample


def test_a_cutoff_above_what_the_rate_allows_stays_stable():
    samples = np.random.default_rng(4).normal(size=(500, 1))
    found = run(LowPass(400.0, 1), samples, np.full(500, 1e-2))
    assert np.abs(found).max() < 2.0 * np.abs(samples).max()


@pytest.mark.parametrize(('kind', 'arguments', 'problem'), [
    (LowPass, (-1.0, 6), 'low-pass'), (LowPass, (float('nan'), 6), 'low-pass'),
    (Differentiator, (0.0, 3), 'must be positive'),
    *((MovingAverage, (time, 3), 'must be positive') for time in (0.0, -1.0, np.nan, np.inf))])
def test_nonsense_is_refused(kind, arguments, problem):
    with pytest.raises(ConfigurationError, match=problem):
        kind(*arguments)


def test_differentiator_starts_at_rest_and_takes_uneven_steps():
    differentiator = Differentiator(10.0, 1)
    assert differentiator.update(np.array([7.0]), 0.0) == (7.0, 0.0)
    rng, t = np.random.default_rng(1), 0.0
    for _ in range(2000):
        dt = rng.uniform(0.001, 0.003)
        t += dt
        y, dy = differentiator.update(np.array([7.0 - 2.0 * t]), dt)
    assert dy == pytest.approx(-2.0, abs=1e-9)
    assert y == pytest.approx(7.0 - 2.0 * (t - differentiator.delay), abs=1e-9)
    differentiator.reset()
    assert differentiator.update(np.array([3.0]), 0.002)[1] == 0.0


def test_differentiator_stays_stable_whatever_the_steps():
    rng, differentiator = np.random.default_rng(5), Differentiator(20.0, 1)
    for _ in range(2000):
        y, dy = differentiator.update(rng.uniform(-1.0, 1.0, 1), 10.0 ** rng.uniform(-4.0, 0.0))
        assert abs(y[0]) < 3.0 and np.isfinite(dy[0])
    for _ in range(1000):
        y, dy = differentiator.update(np.zeros(1), 2e-3)
    assert abs(y[0]) < 1e-9 and abs(dy[0]) < 1e-9


@pytest.mark.parametrize('dt', [0.002, 0.003, 0.05])
def test_an_average_is_that_of_the_last_while_at_any_step(dt):
    average, rng = MovingAverage(0.019, 2), np.random.default_rng(5)
    times, samples = [0.0], []
    for _ in range(40):
        times.append(times[-1] + dt * rng.uniform(0.5, 1.5))
        samples.append(rng.standard_normal(2))
        found = average.update(samples[-1], times[-1] - times[-2])
        overlaps = np.diff(np.clip(times, times[-1] - 0.019, None))
        assert_allclose(found, overlaps @ np.array(samples) / 0.019, atol=1e-12)


def test_of_errors_that_cancel_each_other_an_average_has_nothing_left():
    average, found = MovingAverage(0.02, 1), []
    for k in range(40):
        found.append(average.update(np.array([{10: 500.0, 13: -500.0}.get(k, 0.0)]), 0.002)[0])
    assert found[10] == pytest.approx(50.0)
    assert_allclose(found[13:20] + found[23:], 0.0, atol=1e-12)
    average.reset()
    assert average.update(np.array([1.0]), 0.002)[0] == pytest.approx(0.1)


def test_a_mean_is_of_the_samples_since_it_was_taken():
    mean = RecentMean(3)
    for k, value in enumerate((1.0, 3.0)):
        mean.add(k * MS, np.array((value, -value)), np.array((2.0,)))
    assert_array_equal(mean.take(2 * MS), (2.0, -2.0, 2.0))
    mean.add(3 * MS, np.array((5.0, 6.0, 7.0)))
    assert_array_equal(mean.take(3 * MS), (5.0, 6.0, 7.0))
    assert mean.take(4 * MS) is None  # nothing since


def test_a_mean_of_long_ago_is_none_and_does_not_enter_the_next_one():
    mean = RecentMean(1)
    assert mean.take(0) is None
    mean.add(0, np.array((9.0,)))
    assert mean.take(51 * MS) is None
    mean.add(60 * MS, np.array((1.0,)))
    assert mean.take(110 * MS) == 1.0  # at the limit
    mean.add(200 * MS, np.array((1.0,)))
    assert mean.take(149 * MS) is None  # of the future, as after the clock was set back


# -- the direction of gravity, against rotations in closed form

G = np.array([0.0, 0.0, 9.81])
STEP_NS = 5_000_000
DT = 1e-9 * STEP_NS


def tilt_error(R, R_true):
    """Return the angle between the estimated and the true vertical, rad."""
    return np.linalg.norm(np.cross(R[2], R_true[2]))


def tilted(R_of, omega, seconds, acceleration=lambda t: np.zeros(3), gyro_bias=0.0, start=None):
    """Return the filter and the true orientation after a motion with angular velocity `omega`."""
    tilt = start or TiltFilter(9.81)
    for i in range(round(seconds / DT) + 1):
        R = R_of(i * DT)
        # The velocity of a step is that of its middle.
        tilt.update(10**9 + i * STEP_NS, omega((i - 0.5) * DT) + gyro_bias,
                    R.T @ (G + acceleration(i * DT)))
    return tilt, R


@pytest.mark.parametrize('seed', range(4))
def test_at_rest_it_is_gravity_at_once(seed):
    R_true = pin.rpy.rpyToMatrix(*np.random.default_rng(seed).uniform(-3.0, 3.0, 3))
    tilt = TiltFilter(9.81)
    R = tilt.update(10**9, np.zeros(3), R_true.T @ G)
    assert_allclose(R[2], R_true[2], atol=1e-12)
    assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) > 0.0


def test_the_gyroscope_turns_it_also_about_the_vertical():
    """A whole rotation in the world by heading and roll, where the accelerometer says nothing."""
    def R_of(t):
        return pin.rpy.rpyToMatrix(0.5 * np.sin(3.0 * t), 0.2, 0.8 * t)

    def omega(t):
        h = 1e-6
        return pin.log3(R_of(t - h).T @ R_of(t + h)) / (2.0 * h)
    far = 100.0 * np.ones(3)  # the specific force is not credible after the start
    tilt, R_true = tilted(R_of, omega, 2.0, lambda t: far if t else np.zeros(3))
    assert tilt_error(tilt.R_world_imu, R_true) < 1e-4
    # The heading began anywhere and has turned by as much as the true one.
    begun, _ = tilted(R_of, omega, 0.0)
    turned = tilt.R_world_imu @ begun.R_world_imu.T
    assert_allclose(turned @ R_of(0.0), R_true, atol=2e-4)


def test_a_bias_of_the_gyroscope_costs_its_product_with_the_time_constant():
    bias = np.array([0.01, 0.0, 0.0])
    tilt, R_true = tilted(lambda t: np.eye(3), lambda t: np.zeros(3), 8.0, gyro_bias=bias)
    assert tilt_error(tilt.R_world_imu, R_true) == pytest.approx(0.01 * TIME_CONSTANT, rel=0.02)


def test_accelerations_of_steps_average_out():
    """A trunk that sways by +-1.5 m/s^2 at 2 Hz would be 8.7 deg off by the accelerometer."""
    tilt, R_true = tilted(lambda t: np.eye(3), lambda t: np.zeros(3), 4.0,
                          lambda t: np.array([1.5 * np.sin(4.0 * np.pi * t), 0.0, 0.0]))
    assert tilt_error(tilt.R_world_imu, R_true) < np.radians(1.5)


def test_a_wrong_start_decays_with_the_time_constant():
    start = TiltFilter(9.81)
    start.update(10**9 - STEP_NS, np.zeros(3), pin.rpy.rpyToMatrix(0.0, 0.2, 0.0).T @ G)
    tilt, R_true = tilted(lambda t: np.eye(3), lambda t: np.zeros(3), 3.0 * TIME_CONSTANT,
                          start=start)
    assert tilt_error(tilt.R_world_imu, R_true) == pytest.approx(0.2 * np.exp(-3.0), rel=0.03)


@pytest.mark.parametrize('acceleration', [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 20.0, 0.0]])
def test_what_has_not_the_size_of_gravity_gives_nothing_and_is_named(acceleration):
    tilt = TiltFilter(9.81)
    assert tilt.update(10**9, np.zeros(3), np.array(acceleration)) is None
    assert f'{np.linalg.norm(acceleration):.2f} m/s^2 instead of about 9.81' in tilt.problem
    assert tilt.update(10**9 + STEP_NS, np.zeros(3), G) is not None and tilt.problem == ''


@pytest.mark.parametrize('step_ns', [-10**9, 5 * 10**9])
def test_after_a_gap_it_begins_anew(step_ns):
    tilt = TiltFilter(9.81)
    tilt.update(10**10, np.zeros(3), G)
    R_true = pin.rpy.rpyToMatrix(0.3, 0.0, 0.0)
    R = tilt.update(10**10 + step_ns, np.zeros(3), R_true.T @ G)
    assert_allclose(R[2], R_true[2], atol=1e-12)


DATA = Path(os.environ.get('BIPED_COM_REAL_DATA', '')) / 'icub_genova04'


@pytest.mark.skipif(not DATA.is_dir(), reason='BIPED_COM_REAL_DATA has no icub_genova04')
@pytest.mark.parametrize(('name', 'mean', 'largest'), [('sway', 1.5, 3.0), ('walk_1m', 1.5, 6.0)])
def test_on_a_measured_robot_it_is_within_degrees_of_the_cameras(name, mean, largest):
    """The accelerometer alone is 7.4 deg off in the mean of the walk, 47 deg at most."""
    model = pin.buildModelFromUrdf(str(DATA / 'model.urdf'))
    data, recording = model.createData(), np.load(DATA / f'{name}.npz')
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    root, imu = (data.oMf[model.getFrameId(frame)].rotation
                 for frame in ('root_link', 'root_link_imu_frame'))
    tilt, errors = TiltFilter(), []
    for t, gyro, acceleration, rpy in zip(*(recording[key] for key in (
            'time', 'gyroscope', 'accelerometer', 'vicon_rpy'))):
        R = tilt.update(round(1e9 * t), gyro, acceleration)
        if R is not None and t > recording['time'][0] + 0.5:
            errors.append(np.degrees(tilt_error(R, pin.rpy.rpyToMatrix(*rpy) @ root.T @ imu)))
    assert np.mean(errors) < mean and np.max(errors) < largest


# -- the last step before a command

VALUES = arrays(float, 3, elements=st.floats(-1e3, 1e3))
SIZES = arrays(float, 3, elements=st.floats(0.0, 1e3))


@given(VALUES, VALUES, SIZES, VALUES, SIZES)
def test_no_command_leaves_its_range_and_within_it_none_steps(
        target, previous, largest, low, width):
    high = low + width
    command = limited_step(target, previous, largest, low, high)
    assert (low <= command).all() and (command <= high).all()
    inside = (low <= previous) & (previous <= high)
    assert (np.abs(command - previous)[inside] <= largest[inside] * (1.0 + 1e-12) + 1e-9).all()
    # What is permitted is what is commanded.
    allowed = inside & (low <= target) & (target <= high) & (np.abs(target - previous) < largest)
    np.testing.assert_array_equal(command[allowed], target[allowed])
