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

from __future__ import annotations

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.wrench import (
    about_origin, centre_of_pressure, com_line, cop_on_sole, inverse_wrench_adjoint,
    pressure_covariance, set_wrench_adjoint, skew, sum_covariance, sum_wrenches, transform_wrench,
    weight_matrix, wrench_adjoint)
import numpy as np
import pinocchio as pin
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random_placements(rng, n):
    """Return n placements of frames in A, far from the origin and turned by anything."""
    return [pin.SE3(pin.Quaternion(*rng.normal(size=4)).normalized().matrix(),
                    rng.uniform(-2.0, 2.0, 3)) for _ in range(n)]


def arrays(placements):
    return (np.array([m.rotation for m in placements]),
            np.array([m.translation for m in placements]))


def in_numbers(placements):
    """Return placements as plain numbers: the axes, then the origin."""
    return [[*m.rotation.T.tolist(), m.translation.tolist()] for m in placements]


def at(points):
    """Return placements in plain numbers of frames at `points` whose axes are not turned."""
    return [[*np.eye(3).tolist(), point] for point in points.tolist()]


def test_skew_is_the_cross_product(rng):
    a, b = rng.normal(size=(2, 5, 3))
    np.testing.assert_allclose((skew(a) @ b[..., None])[..., 0], np.cross(a, b))


def test_transform_agrees_with_spatial_algebra(rng):
    placements = random_placements(rng, 20)
    wrenches = rng.normal(size=(20, 6)) * 100.0
    expected = [m.act(pin.Force(w)).vector for m, w in zip(placements, wrenches)]
    np.testing.assert_allclose(
        transform_wrench(*arrays(placements), wrenches), expected, rtol=1e-12, atol=1e-11)


def test_transform_of_a_force_with_a_lever():
    """A push of 10 N along x, 2 m above the origin of A, tips it forward about +y by 20 N m."""
    R_A_B = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # y_B points to -x_A
    wrench = transform_wrench(R_A_B, [0.0, 0.0, 2.0], [0.0, -10.0, 0.0, 0.0, 0.0, 3.0])
    np.testing.assert_allclose(wrench, [10.0, 0.0, 0.0, 0.0, 20.0, 3.0], atol=1e-14)


def test_about_the_origin_agrees_with_spatial_algebra(rng):
    for wrench, point in zip(100.0 * rng.normal(size=(20, 6)), rng.normal(size=(20, 3))):
        expected = pin.SE3(np.eye(3), point).act(pin.Force(wrench)).vector
        np.testing.assert_allclose(
            about_origin(wrench.tolist(), point.tolist()), expected, atol=1e-11)


def test_adjoints_chain_and_invert(rng):
    (m_ab, m_bc) = random_placements(rng, 2)
    x_ab, x_bc = (wrench_adjoint(m.rotation, m.translation) for m in (m_ab, m_bc))
    m_ac, m_ba = m_ab * m_bc, m_ab.inverse()
    np.testing.assert_allclose(
        x_ab @ x_bc, wrench_adjoint(m_ac.rotation, m_ac.translation), atol=1e-13)
    np.testing.assert_allclose(
        np.linalg.inv(x_ab), wrench_adjoint(m_ba.rotation, m_ba.translation), atol=1e-13)


def test_an_adjoint_is_inverted_by_its_blocks(rng):
    adjoints = wrench_adjoint(*arrays(random_placements(rng, 20)))
    np.testing.assert_allclose(
        inverse_wrench_adjoint(adjoints), np.linalg.inv(adjoints), rtol=1e-12, atol=1e-12)


def test_an_adjoint_is_written_to_any_memory_and_the_same_for_one_frame(rng):
    rotations, origins = arrays(random_placements(rng, 5))
    memory = np.zeros((5, 6, 6))
    set_wrench_adjoint(memory.transpose(0, 2, 1), rotations, origins)  # of twists
    expected = [wrench_adjoint(*each).T for each in zip(rotations, origins)]
    np.testing.assert_allclose(memory, expected, rtol=0.0, atol=1e-15)


def test_power_does_not_depend_on_the_frame(rng):
    """Wrench times twist is the same number in every frame: pins the adjoint's duality."""
    (m,) = random_placements(rng, 1)
    wrench, twist = rng.normal(size=(2, 6))
    power_in_a = transform_wrench(m.rotation, m.translation, wrench) @ m.act(
        pin.Motion(twist)).vector
    assert power_in_a == pytest.approx(wrench @ twist)


@pytest.mark.parametrize('n', [1, 2, 5])
def test_sum_agrees_with_spatial_algebra(rng, n):
    placements = random_placements(rng, n)
    wrenches = rng.normal(size=(n, 6)) * 100.0
    expected = sum((m.act(pin.Force(w)) for m, w in zip(placements, wrenches)), pin.Force.Zero())
    np.testing.assert_allclose(sum_wrenches(wrenches.tolist(), in_numbers(placements)),
                               expected.vector, rtol=1e-12, atol=1e-10)
    point = rng.normal(size=3)
    np.testing.assert_allclose(
        sum_wrenches(wrenches.tolist(), in_numbers(placements), point.tolist()),
        pin.SE3(np.eye(3), -point).act(expected).vector, rtol=1e-12, atol=1e-10)


def random_covariance(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T


def test_covariance_of_a_sum(rng):
    """By the sums of unit wrenches: what two frames have in common counts, too."""
    placements, covariance = in_numbers(random_placements(rng, 2)), random_covariance(rng, 12)
    to_sum = np.array([
        sum_wrenches(unit.reshape(2, 6).tolist(), placements) for unit in np.eye(12)]).T
    np.testing.assert_allclose(sum_covariance(covariance, np.array(placements)),
                               to_sum @ covariance @ to_sum.T, rtol=1e-10)


def test_internal_forces_leave_the_sum_certain(rng):
    """A wrench that one foot adds and the other takes away does not move the sum."""
    placements = random_placements(rng, 2)
    shared = rng.normal(size=6)
    column = np.concatenate([m.actInv(pin.Force(sign * shared)).vector
                             for m, sign in zip(placements, (1.0, -1.0))])
    found = sum_covariance(np.outer(column, column), np.array(in_numbers(placements)))
    np.testing.assert_allclose(found, 0.0, atol=1e-9)


def test_covariance_of_the_centre_of_pressure(rng):
    """By differences of `centre_of_pressure` on a tilted plane off the origin."""
    normal, covariance = pin.exp3(rng.normal(size=3))[2], random_covariance(rng, 6)
    wrench = np.concatenate((rng.normal(size=3) + 20.0 * normal, rng.normal(size=3)))

    def point(change):
        return np.array(centre_of_pressure(wrench + change, normal.tolist(), 0.4))
    J = np.array([(point(step) - point(-step)) / 2e-4 for step in 1e-4 * np.eye(6)]).T
    np.testing.assert_allclose(
        pressure_covariance(point(0.0), normal.tolist(), 0.4, wrench[:3] @ normal, covariance),
        J @ covariance @ J.T, rtol=1e-6, atol=1e-8)


def pressure_distribution(rng, R_A_plane, p_plane_in_A, n=30):
    """Return the wrench in A of normal forces scattered over a plane, and their centre in A."""
    points = np.column_stack([rng.uniform(-0.1, 0.1, (n, 2)), np.zeros(n)])
    points = points @ R_A_plane.T + p_plane_in_A
    sizes = rng.uniform(0.0, 20.0, n)
    forces = sizes[:, None] * R_A_plane[:, 2]
    wrench = np.concatenate([forces.sum(axis=0), np.cross(points, forces).sum(axis=0)])
    return wrench, sizes @ points / sizes.sum()


def test_centre_of_pressure_is_the_mean_of_the_pressure(rng):
    for placement in random_placements(rng, 10):
        wrench, centre = pressure_distribution(rng, placement.rotation, placement.translation)
        normal = placement.rotation[:, 2]
        found = centre_of_pressure(wrench, normal, float(normal @ placement.translation))
        np.testing.assert_allclose(found, centre, atol=1e-12)


def test_the_centre_of_pressure_on_a_sole_is_that_of_the_plane_of_its_frame(rng):
    for wrench in (rng.normal(size=(50, 6)) + [0.0, 0.0, 9.0, 0.0, 0.0, 0.0]).tolist():
        assert (*cop_on_sole(wrench), 0.0) == centre_of_pressure(wrench)


def test_centre_of_pressure_with_friction_has_only_a_moment_along_the_normal(rng):
    for placement in random_placements(rng, 10):
        normal, wrench = placement.rotation[:, 2], rng.normal(size=6) * 50.0
        wrench[:3] += (200.0 - normal @ wrench[:3]) * normal
        point = centre_of_pressure(wrench, normal, height=0.37)
        moment = wrench[3:] - np.cross(point, wrench[:3])
        np.testing.assert_allclose(np.cross(normal, moment), np.zeros(3), atol=1e-9)
        assert normal @ point == pytest.approx(0.37)


@pytest.mark.parametrize('force_z', [0.0, -300.0, 4.9, math.nan, math.inf])
def test_no_centre_of_pressure_without_force(force_z):
    assert centre_of_pressure((1.0, 2.0, force_z, 3.0, 4.0, 5.0), minimum_force=5.0) is None
    assert centre_of_pressure((0.0, 0.0, 100.0, 2.0, -3.0, 0.0), minimum_force=5.0) == (
        pytest.approx((0.03, 0.02, 0.0)))


def body_at_rest_on_contacts(rng, n, mass=60.0):
    """Return contact wrenches (n in the world axes at n points) that carry a body, and its CoM."""
    com, points = rng.uniform(-0.5, 1.0, 3), rng.uniform(-0.5, 0.5, (n, 3))
    wrenches = rng.normal(size=(n, 6)) * 20.0
    wrenches[0] = 0.0
    weight = np.array([0.0, 0.0, -mass * 9.81])
    force = -weight - wrenches[:, :3].sum(axis=0)
    moment = np.cross(points, wrenches[:, :3]).sum(axis=0) + wrenches[:, 3:].sum(axis=0)
    wrenches[0, :3] = force
    wrenches[0, 3:] = -np.cross(com, weight) - np.cross(points[0], force) - moment
    return wrenches, points, com


@pytest.mark.parametrize('n', [1, 2, 4])
def test_line_holds_the_com_at_rest(rng, n):
    wrenches, points, com = body_at_rest_on_contacts(rng, n)
    line = com_line(sum_wrenches(wrenches.tolist(), at(points)))
    np.testing.assert_allclose(line.at_height(com[2]), com, atol=1e-12)
    assert line.beta == pytest.approx(0.0, abs=1e-12)
    assert line.delta == pytest.approx(0.0, abs=1e-12)


def test_line_is_the_published_formula_for_two_contacts(rng):
    """FORMULAS: (8)-(9) of Muscolo et al. spelled out for contacts anywhere, on tilted ground."""
    w, p = rng.normal(size=(2, 6)) * 30.0, rng.uniform(-0.4, 0.4, (2, 3))
    w[:, 2] += 300.0
    fx, fy, fz, mx, my, _ = w.T
    px, py, pz = p.T
    line, z = com_line(sum_wrenches(w.tolist(), at(p))), 0.83
    x = (-my.sum() - (pz * fx - px * fz).sum() + z * fx.sum()) / fz.sum()
    y = (mx.sum() + (py * fz - pz * fy).sum() + z * fy.sum()) / fz.sum()
    np.testing.assert_allclose(line.at_height(z), [x, y, z], rtol=1e-12)
    assert line.beta == pytest.approx(fx.sum() / fz.sum())
    assert line.delta == pytest.approx(fy.sum() / fz.sum())


def test_line_on_tilted_axes_leans_with_gravity():
    """Axes pitched forward by 10 deg: the vertical through the CoM leans back in them."""
    R_world_tilted = pin.rpy.rpyToMatrix(0.0, np.radians(10.0), 0.0)
    com_in_world, force = np.array([0.03, -0.02, 0.8]), np.array([0.0, 0.0, 600.0])
    wrench_in_world = np.concatenate([force, np.cross(com_in_world, force)])
    line = com_line(transform_wrench(R_world_tilted.T, np.zeros(3), wrench_in_world))
    com_in_tilted = R_world_tilted.T @ com_in_world
    np.testing.assert_allclose(line.at_height(com_in_tilted[2]), com_in_tilted, atol=1e-12)
    assert line.beta == pytest.approx(-np.tan(np.radians(10.0)))


def test_joint_torques_as_printed_bias_the_line():
    wrench = [0.0, 0.0, 500.0, 5.0, -10.0, 0.0]
    as_printed = com_line(wrench, joint_torque_sum=[15.0, 20.0, 3.0])
    assert as_printed.alpha - com_line(wrench).alpha == pytest.approx(-20.0 / 500.0)
    assert as_printed.gamma - com_line(wrench).gamma == pytest.approx(15.0 / 500.0)


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
    W = weight_matrix(masses.sum(), masses @ points / masses.sum())
    np.testing.assert_allclose(W @ gravity_in_sensor, expected, atol=1e-14)
