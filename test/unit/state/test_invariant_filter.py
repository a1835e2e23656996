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
"""The invariant filter: laws of its error, Jacobians by differences, exactness without noise."""

from biped_com_ros.core.state.invariant_filter import ImuNoise, InvariantFilter, left_jacobian
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest

G = np.array((0.0, 0.0, -9.81))
SILENT = ImuNoise(gyro=0.0, accelerometer=0.0, gyro_walk=0.0, accelerometer_walk=0.0)
NO_WALK = np.zeros(6)
N = 21


def random_filter(seed, noise=SILENT):
    rng = np.random.default_rng(seed)
    made = InvariantFilter(2, noise)
    made.R_world_imu = pin.exp3(rng.normal(size=3))
    made.vectors = rng.normal(size=(4, 3))
    made.biases = 0.1 * rng.normal(size=(2, 3))
    root = rng.normal(size=(N, N))
    made.covariance = root @ root.T
    return made


def copy_of(other, error=None):
    """Return a filter with the state of another one, or with ``exp(-error)`` times it."""
    made = InvariantFilter(2, SILENT)
    made.R_world_imu, made.vectors, made.biases = (other.R_world_imu, other.vectors, other.biases)
    if error is not None:
        made.correct(error)
    return made


def error_between(estimate, truth):
    """Return xi of ``estimate = exp(xi) truth``, by the definition of the group."""
    turn = estimate.R_world_imu @ truth.R_world_imu.T
    angle = pin.log3(turn)
    steps = (estimate.vectors - truth.vectors @ turn.T) @ np.linalg.inv(left_jacobian(angle)).T
    return np.concatenate((angle, steps.ravel(), (estimate.biases - truth.biases).ravel()))


def test_correct_takes_off_a_large_error_exactly():
    truth = random_filter(0)
    error = 0.7 * np.random.default_rng(1).normal(size=N)
    estimate = copy_of(truth, -error)
    assert_allclose(error_between(estimate, truth), error, atol=1e-12)
    estimate.correct(error)
    assert_allclose(error_between(estimate, truth), np.zeros(N), atol=1e-12)


def test_without_biases_a_large_error_propagates_linearly_whatever_the_motion():
    """The log-linear property: half a radian wrong, and still exactly Phi xi."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth, error = random_filter(seed), 0.5 * rng.normal(size=N)
        error[15:] = 0.0
        estimate = copy_of(truth, -error)
        for _ in range(50):
            gyro, acceleration = 2.0 * rng.normal(size=3), 9.0 * rng.normal(size=3)
            for one in (truth, estimate):
                one.propagate(gyro, acceleration, 0.01, NO_WALK)
        angle, velocity, position = error[:3], error[3:6], error[6:9]
        expected = error.copy()
        expected[3:6] += 0.5 * np.cross(G, angle)
        expected[6:9] = position + 0.5 * velocity + 0.125 * np.cross(G, angle)
        assert_allclose(error_between(estimate, truth), expected, atol=1e-9)


def covariance_mismatch(dt, h=1e-5):
    """Return how far a propagated covariance is from the one by differences."""
    filtered = random_filter(2)
    gyro, acceleration = np.array((0.7, -1.1, 0.4)), np.array((3.0, -2.0, 11.0))
    before, reached = filtered.covariance, copy_of(filtered)
    reached.propagate(gyro, acceleration, dt, NO_WALK)
    columns = []
    for step in h * np.eye(N):
        # The estimate stays where it is; the truth is elsewhere.
        truth = copy_of(filtered, step)
        truth.propagate(gyro, acceleration, dt, NO_WALK)
        columns.append(error_between(reached, truth) / h)
    filtered.propagate(gyro, acceleration, dt, NO_WALK)
    Phi = np.array(columns).T
    assert np.abs(filtered.covariance - before).max() > 100.0 * dt
    return np.abs(filtered.covariance - Phi @ before @ Phi.T).max()


def test_covariance_propagates_by_the_derivative_of_the_error():
    """To second order: with half the step the difference is a quarter."""
    coarse, fine = covariance_mismatch(0.004), covariance_mismatch(0.002)
    assert fine < 5e-4 and fine < 0.3 * coarse


def test_noise_adds_what_readings_spread():
    """By each reading alone, one deviation to either side."""
    noise, dt = ImuNoise(gyro=0.02, accelerometer=0.3, gyro_walk=0.0, accelerometer_walk=0.0), 0.01
    filtered = random_filter(3, noise)
    filtered.biases, filtered.covariance = np.zeros((2, 3)), np.zeros((N, N))
    start, errors = copy_of(filtered), []
    walks = np.array((0.0, 0.0, 0.04, 0.01, 0.01, 0.01))
    filtered.propagate(np.ones(3), -G, dt, walks)
    deviations = np.diag(np.repeat((0.02, 0.3), 3)) / dt ** 0.5
    for step in deviations:
        ends = [copy_of(start) for _ in range(2)]
        for end, sign in zip(ends, (1.0, -1.0)):
            end.propagate(np.ones(3) + sign * step[:3], -G + sign * step[3:], dt, NO_WALK)
        errors.append(0.5 * error_between(*ends))
    spread, expected = np.array(errors).T @ np.array(errors), filtered.covariance.copy()
    expected[9:15, 9:15] -= np.diag(dt * walks)
    assert_allclose(spread, expected, atol=0.02 * expected.max())


@pytest.mark.parametrize('foot', [0, 1])
def test_jacobians_of_measurements_by_differences(foot):
    truth, h = random_filter(4), 1e-6
    point_in_imu = truth.R_world_imu.T @ (truth.anchors[foot] - truth.position)

    def innovations(estimate):
        point = estimate.R_world_imu @ point_in_imu
        return np.append(point - (estimate.anchors[foot] - estimate.position),
                         estimate.anchors[foot, 2] - truth.anchors[foot, 2])
    differences = [(innovations(copy_of(truth, -step)) - innovations(copy_of(truth, step)))
                   / (2.0 * h) for step in h * np.eye(N)]
    H = np.concatenate((truth.anchor_jacobian((foot,)), truth.height_jacobian(foot)))
    assert_allclose(H, np.array(differences).T, atol=1e-6)


def test_a_new_anchor_is_where_the_foot_is_with_the_errors_of_the_imu():
    filtered = random_filter(5)
    from_imu = np.array((0.1, -0.2, -0.8))
    filtered.set_anchor(1, from_imu, 1e-4)
    assert_allclose(filtered.anchors[1], filtered.position + from_imu)
    P = filtered.covariance
    assert_allclose(P[12:15, 12:15], P[6:9, 6:9] + 1e-4 * np.eye(3))
    assert_allclose(P[12:15, :12], P[6:9, :12])
    # Of the difference of both only the foot's error is left.
    H = filtered.anchor_jacobian((1,))
    assert_allclose(H @ P @ H.T, 1e-4 * np.eye(3), atol=1e-9)


def test_what_does_not_pass_the_gate_changes_nothing():
    filtered = random_filter(6)
    H, before = filtered.anchor_jacobian((0,)), filtered.covariance
    vectors = filtered.vectors
    assert not filtered.update(H, np.array((50.0, 0.0, 0.0)), 1e-4, gate=9.0)
    assert filtered.covariance is before and filtered.vectors is vectors
    assert filtered.update(H, np.array((0.5, 0.0, 0.0)), 1e-4, gate=9.0)
    assert np.trace(filtered.covariance) < np.trace(before)


FEET = np.array(((0.1, 0.1, -0.8), (0.0, -0.1, -0.7)))


def started(deviations, noise=SILENT):
    """Return a level filter at rest, on two feet."""
    made = InvariantFilter(2, noise)
    made.covariance[15:, 15:] *= 1e-6
    made.start(np.eye(3), np.zeros(3), np.zeros(3), np.array(deviations))
    for foot, point in enumerate(FEET):
        made.set_anchor(foot, point, 1e-12)
    return made


def walk_in_place(truth, filtered, seconds, walks=NO_WALK):
    """Move an IMU above two fixed points on a random curve that ends where it will."""
    rng = np.random.default_rng(1)
    for k in range(round(seconds / 0.002)):
        if k % 50 == 0:
            in_world = -8.0 * truth.position - 3.0 * truth.velocity + 2.0 * rng.normal(size=3)
            acceleration = truth.R_world_imu.T @ (in_world - G)
            gyro = rng.normal(size=3) - 2.0 * pin.log3(truth.R_world_imu)
        truth.propagate(gyro, acceleration, 0.002, NO_WALK)
        filtered.propagate(gyro, acceleration, 0.002, walks)
        for foot in range(2):
            point = truth.R_world_imu.T @ (truth.anchors[foot] - truth.position)
            filtered.update(
                filtered.anchor_jacobian((foot,)),
                filtered.R_world_imu @ point - (filtered.anchors[foot] - filtered.position), 1e-6)


def test_right_from_the_start_it_stays_exact():
    filtered = started(((0.01,) * 3, (0.1,) * 3, (0.01,) * 3))
    truth = copy_of(filtered)
    walk_in_place(truth, filtered, 1.0)
    assert_allclose(error_between(filtered, truth), np.zeros(N), atol=1e-8)


def test_wrong_tilt_and_velocity_are_found():
    filtered, error = started(((0.2, 0.2, 1e-6), (0.5,) * 3, (1e-6,) * 3)), np.zeros(N)
    truth = copy_of(filtered)
    error[:2], error[3:6] = (0.2, -0.15), (0.5, 0.4, -0.3)
    filtered.correct(-error)
    for foot, point in enumerate(FEET):
        filtered.set_anchor(foot, filtered.R_world_imu @ point, 1e-12)
    walk_in_place(truth, filtered, 2.0)
    found = error_between(filtered, truth)
    assert np.abs(found[:2]).max() < 2e-3 and np.abs(found[3:6]).max() < 5e-3, found


def test_heading_and_position_are_never_known_better_than_at_the_start():
    filtered = started(((0.1, 0.1, 0.03), (0.2,) * 3, (0.05,) * 3),
                       ImuNoise(gyro=1e-3, accelerometer=1e-2))
    truth = copy_of(filtered)
    heading, position = [], []
    for _ in range(4):
        walk_in_place(truth, filtered, 0.25, walks=np.full(6, 1e-6))
        heading.append(filtered.covariance[2, 2])
        position.append(np.diag(filtered.covariance)[6:9].min())
    assert heading[0] >= 0.03 ** 2 and position[0] >= 0.05 ** 2
    assert (np.diff(heading) > 0.0).all() and (np.diff(position) > 0.0).all()
    # What is measured is known better.
    assert np.diag(filtered.covariance)[:2].max() < 0.03 ** 2
    assert np.diag(filtered.covariance)[3:6].max() < 0.05 ** 2


def test_deviations_of_the_place_are_those_of_draws():
    """Of filters that are wrong by what their covariance says, 2,000 draws."""
    truth, rng = random_filter(4), np.random.default_rng(3)
    truth.covariance *= 1e-7
    root, places = np.linalg.cholesky(truth.covariance), []
    for error in (root @ rng.normal(size=(N, 2000))).T:
        other = copy_of(truth, error)
        turn = other.R_world_imu @ truth.R_world_imu.T
        places.append((*(other.position - truth.position)[:2], pin.log3(turn)[2]))
    assert_allclose(np.std(places, axis=0), truth.place_deviations, rtol=0.08)
