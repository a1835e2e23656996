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
"""Wrench transforms and sums against Pinocchio's spatial algebra and first principles."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.wrench import (
    about_origin, centre_of_pressure, com_line, cop_on_sole, inverse_wrench_adjoint,
    pressure_covariance, set_weight_matrix, set_wrench_adjoint, skew, sum_covariance, sum_wrenches,
    wrench_adjoint)
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random_placements(rng, n):
    """Return n placements of frames in A, far from the origin and turned by anything."""
    return [pin.SE3(pin.Quaternion(*rng.normal(size=4)).normalized().matrix(),
                    rng.uniform(-2.0, 2.0, 3)) for _ in range(n)]


def in_numbers(placements):
    """Return placements as plain numbers: the axes, then the origin."""
    return [[*m.rotation.T.tolist(), m.translation.tolist()] for m in placements]


def test_skew_is_the_cross_product(rng):
    a, b = rng.normal(size=(2, 5, 3))
    assert_allclose((skew(a) @ b[..., None])[..., 0], np.cross(a, b))


def test_adjoints_are_those_of_spatial_algebra(rng):
    """Of many frames, of one, inverted by blocks, and written to any memory."""
    placements, wrenches = random_placements(rng, 20), rng.normal(size=(20, 6)) * 100.0
    rotations = np.array([m.rotation for m in placements])
    origins = np.array([m.translation for m in placements])
    expected = np.array([m.toDualActionMatrix() for m in placements])
    adjoints = wrench_adjoint(rotations, origins)
    assert_allclose(adjoints, expected, atol=1e-13)
    assert_allclose(wrench_adjoint(rotations[3], origins[3]), expected[3], atol=1e-13)
    assert_allclose(inverse_wrench_adjoint(adjoints), np.linalg.inv(expected), atol=1e-12)
    memory = np.zeros((20, 6, 6))
    set_wrench_adjoint(memory.transpose(0, 2, 1), rotations, origins)  # of twists
    assert_allclose(memory, adjoints.transpose(0, 2, 1), rtol=0.0, atol=1e-15)
    for wrench, point in zip(wrenches, origins):
        assert_allclose(about_origin(wrench.tolist(), point.tolist()),
                        pin.SE3(np.eye(3), point).act(pin.Force(wrench)).vector, atol=1e-11)


@pytest.mark.parametrize('n', [1, 2, 5])
def test_sum_agrees_with_spatial_algebra(rng, n):
    placements = random_placements(rng, n)
    wrenches = rng.normal(size=(n, 6)) * 100.0
    expected = sum((m.act(pin.Force(w)) for m, w in zip(placements, wrenches)), pin.Force.Zero())
    assert_allclose(sum_wrenches(wrenches.tolist(), in_numbers(placements)),
                    expected.vector, rtol=1e-12, atol=1e-10)
    point = rng.normal(size=3)
    assert_allclose(sum_wrenches(wrenches.tolist(), in_numbers(placements), point.tolist()),
                    pin.SE3(np.eye(3), -point).act(expected).vector, rtol=1e-12, atol=1e-10)


def random_covariance(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T


def test_covariance_of_a_sum(rng):
    """By the sums of unit wrenches: what two frames have in common counts, too."""
    placements, covariance = in_numbers(random_placements(rng, 2)), random_covariance(rng, 12)
    to_sum = np.array([
        sum_wrenches(unit.reshape(2, 6).tolist(), placements) for unit in np.eye(12)]).T
    assert_allclose(sum_covariance(covariance, np.array(placements)),
                    to_sum @ covariance @ to_sum.T, rtol=1e-10)


def test_covariance_of_the_centre_of_pressure(rng):
    """By differences of `centre_of_pressure` on a tilted plane off the origin."""
    normal, covariance = pin.exp3(rng.normal(size=3))[2], random_covariance(rng, 6)
    wrench = np.concatenate((rng.normal(size=3) + 20.0 * normal, rng.normal(size=3)))

    def point(change):
        return np.array(centre_of_pressure(wrench + change, normal.tolist(), 0.4))
    J = np.array([(point(step) - point(-step)) / 2e-4 for step in 1e-4 * np.eye(6)]).T
    assert_allclose(
        pressure_covariance(point(0.0), normal.tolist(), 0.4, wrench[:3] @ normal, covariance),
        J @ covariance @ J.T, rtol=1e-6, atol=1e-8)


def test_the_centre_of_pressure_on_a_sole_is_that_of_the_plane_of_its_frame(rng):
    for wrench in (rng.normal(size=(50, 6)) + [0.0, 0.0, 9.0, 0.0, 0.0, 0.0]).tolist():
        assert (*cop_on_sole(wrench), 0.0) == centre_of_pressure(wrench)


def test_at_the_centre_of_pressure_there_is_only_a_moment_along_the_normal(rng):
    for placement in random_placements(rng, 10):
        normal, wrench = placement.rotation[:, 2], rng.normal(size=6) * 50.0
        wrench[:3] += (200.0 - normal @ wrench[:3]) * normal
        point = centre_of_pressure(wrench, normal, height=0.37)
        moment = wrench[3:] - np.cross(point, wrench[:3])
        assert_allclose(np.cross(normal, moment), np.zeros(3), atol=1e-9)
        assert normal @ point == pytest.approx(0.37)


@pytest.mark.parametrize('force_z', [0.0, -300.0, 4.9, math.nan, math.inf])
def test_no_centre_of_pressure_without_force(force_z):
    assert centre_of_pressure((1.0, 2.0, force_z, 3.0, 4.0, 5.0), minimum_force=5.0) is None
    assert centre_of_pressure((0.0, 0.0, 5.1, 0.102, -0.153, 0.0), minimum_force=5.0) == (
        pytest.approx((0.03, 0.02, 0.0)))


def test_line_is_the_published_formula_for_two_contacts(rng):
    """FORMULAS: (8)-(9) of Muscolo et al. spelled out for contacts anywhere, on tilted ground."""
    w, p = rng.normal(size=(2, 6)) * 30.0, rng.uniform(-0.4, 0.4, (2, 3))
    w[:, 2] += 300.0
    fx, fy, fz, mx, my, _ = w.T
    px, py, pz = p.T
    level = in_numbers([pin.SE3(np.eye(3), point) for point in p])
    line, z = com_line(sum_wrenches(w.tolist(), level)), 0.83
    x = (-my.sum() - (pz * fx - px * fz).sum() + z * fx.sum()) / fz.sum()
    y = (mx.sum() + (py * fz - pz * fy).sum() + z * fy.sum()) / fz.sum()
    assert_allclose(line.at_height(z), [x, y, z], rtol=1e-12)
    assert line.beta == pytest.approx(fx.sum() / fz.sum())
    assert line.delta == pytest.approx(fy.sum() / fz.sum())


@pytest.mark.parametrize('force_z', [0.0, -1.0, float('nan')])
def test_no_line_without_weight(force_z):
    with pytest.raises(InputError, match='vertical force'):
        com_line([0.0, 0.0, force_z, 1.0, 1.0, 1.0])


def test_weight_of_what_hangs_on_a_sensor(rng):
    """Point masses pulled one by one, in a sensor frame turned by anything."""
    masses, points = rng.uniform(0.1, 1.0, 4), rng.uniform(-0.2, 0.2, (4, 3))
    (placement,) = random_placements(rng, 1)
    gravity_in_sensor = placement.rotation.T @ [0.0, 0.0, -9.81]
    forces = masses[:, None] * gravity_in_sensor
    expected = np.concatenate([forces.sum(axis=0), np.cross(points, forces).sum(axis=0)])
    W = set_weight_matrix(
        np.zeros((6, 3)), masses.sum(), masses @ points / masses.sum())
    assert_allclose(W @ gravity_in_sensor, expected, atol=1e-14)
