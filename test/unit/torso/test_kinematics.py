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
"""
Kinematics of the torso: figures of the formula sheet, finite differences, inverse of forward.

The tip is integrated along the backbone here, and tendons are measured hole by hole, so that
nothing is compared with itself.
"""

from __future__ import annotations

import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.torso.arc import array_of, vector_of, wrench_of
from biped_com_ros.core.torso.constant_curvature import (
    Backbone, bend_and_direction, make_shape, shape_from_rotation)
from biped_com_ros.core.torso.orientation import ImuPair, UPRIGHT
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

LENGTH, RADIUS = 0.129, 0.034
EVEN = np.radians((180.0, 270.0, 0.0, 90.0))
UNEVEN = np.radians((10.0, 95.0, 200.0, 260.0, 320.0))
BACKBONE, OTHER = Backbone(LENGTH, RADIUS, EVEN), Backbone(LENGTH, RADIUS, UNEVEN)
SHAPES = [np.zeros(4), make_shape(1e-9, 2.0, 0.1), make_shape(1e-5, -1.0, 0.02, -0.001),
          make_shape(0.2, 1.0, 0.03, -0.002), make_shape(0.26, -2.0, -0.05, 0.001),
          make_shape(0.299999, 2.5, 0.1), make_shape(0.300001, 2.5, 0.1),
          make_shape(1.6, 0.4, 0.2, -0.003)]

shapes = st.builds(
    make_shape, st.floats(0.0, math.radians(20.0)), st.floats(-math.pi, math.pi),
    st.floats(-0.1, 0.1), st.floats(-0.005, 0.005))


def turned(shape, share=1.0):
    """Rz(phi) Ry(theta) Rz(psi - phi), equation (2), at a share of the backbone."""
    bend, direction = bend_and_direction(shape)
    return Rotation.from_euler(
        'ZYZ', (direction, share * bend, share * shape[2] - direction)).as_matrix()


def differences(function, shape, step=1e-6):
    """Central differences of a function of the shape, last axis the shape's."""
    steps = step * np.eye(4)
    return np.stack([(function(shape + d) - function(shape - d)) / (2.0 * step) for d in steps],
                    axis=-1)


@pytest.mark.parametrize('shape', SHAPES)
def test_the_tip_is_the_integral_of_the_tangent(shape):
    tip = BACKBONE.tip(shape)
    np.testing.assert_allclose(tip.rotation, turned(shape), atol=1e-9)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    tangents = np.array([turned(shape, u)[:, 2] for u in 0.5 * (nodes + 1.0)])
    np.testing.assert_allclose(
        tip.position, (LENGTH + shape[3]) * 0.5 * (weights @ tangents), atol=1e-10)


@pytest.mark.parametrize('shape', SHAPES)
def test_the_third_column_is_the_tangent(shape):
    before, after = (BACKBONE.tip(shape, u).position for u in (1.0 - 1e-5, 1.0 + 1e-5))
    tangent = (after - before) / np.linalg.norm(after - before)
    share = shape[3] / LENGTH  # Elongation is not scaled along the way; the direction is.
    assert abs(share) < 0.05
    np.testing.assert_allclose(BACKBONE.tip(shape).rotation[:, 2], tangent, atol=1e-6)


@pytest.mark.parametrize('shape', SHAPES)
def test_jacobian_of_the_tip(shape):
    jacobian = BACKBONE.tip_jacobian(shape)
    np.testing.assert_allclose(
        jacobian[:3], differences(lambda s: BACKBONE.tip(s).position, shape), atol=1e-7)
    rotation = BACKBONE.tip(shape).rotation
    spins = differences(lambda s: Rotation.from_matrix(
        BACKBONE.tip(s).rotation @ rotation.T).as_rotvec(), shape)
    np.testing.assert_allclose(jacobian[3:], spins, atol=1e-7)


@pytest.mark.parametrize('shape', SHAPES)
def test_twist_and_work_are_one_law_and_rates_undo_it(shape):
    arc, random = BACKBONE.arc_of(shape), np.random.default_rng(3)
    wrench, rate = random.normal(size=6), random.normal(size=4)
    twist = arc.twist(complex(*rate[:2]), rate[2], rate[3])
    bending, twisting, stretching = arc.work(wrench_of(wrench))
    power = (bending.conjugate() * complex(*rate[:2])).real + twisting * rate[2] + (
        stretching * rate[3])
    assert power == pytest.approx(wrench @ array_of(twist), abs=1e-13)
    assert arc.rates(*twist[2:]) == pytest.approx((complex(*rate[:2]), rate[2]), abs=1e-12)
    there = arc.rotate(*vector_of(wrench[:3]))
    np.testing.assert_allclose(array_of(arc.rotate_back(*there)), wrench[:3], atol=1e-14)


@pytest.mark.parametrize('shape', SHAPES)
def test_imus_give_the_shape(shape):
    """Both mounted askew and turned anywhere; the upper one's world is turned about z."""
    below, above, world = Rotation.random(3, random_state=4)
    tip = Rotation.from_matrix(BACKBONE.tip(shape).rotation)
    imus = ImuPair(below.as_matrix(), above.as_matrix())
    yaw = Rotation.from_euler('z', 2.0)
    lower, upper = world * below, yaw * world * tip * above
    sight = imus.read(*(np.array((*imu.as_quat(), 0.0, 0.0, 0.0)) for imu in (lower, upper)), 2.0)
    np.testing.assert_allclose(
        (sight.bend.real, sight.bend.imag, sight.torsion), shape[:3], atol=1e-9)
    np.testing.assert_allclose(array_of(sight.up), world.inv().as_matrix()[:, 2], atol=1e-12)
    # One that is turned over is a bend of half a turn.
    over = ImuPair(np.eye(3), np.eye(3)).read(UPRIGHT, np.array((1.0, *np.zeros(6))))
    assert abs(over.bend) == pytest.approx(math.pi)


@pytest.mark.parametrize('backbone', [BACKBONE, OTHER])
@pytest.mark.parametrize('shape', SHAPES)
def test_jacobian_of_the_lengths(backbone, shape):
    np.testing.assert_allclose(
        backbone.length_jacobian(shape), differences(backbone.lengths, shape), atol=1e-8)


@pytest.mark.parametrize('backbone', [BACKBONE, OTHER])
@pytest.mark.parametrize('torsion, tolerance', [(0.0, 1e-12), (0.03, 2e-5), (0.09, 2e-4)])
def test_columns_of_the_moment(backbone, torsion, tolerance):
    shape = make_shape(0.26, 0.8, torsion, -0.001)
    np.testing.assert_allclose(
        backbone.moment_columns(shape), -backbone.length_jacobian(shape)[:, :2].T,
        atol=tolerance * backbone.radius)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_the_inverse_of_forward(shape):
    for backbone in (BACKBONE, OTHER):
        found = backbone.shape_from_lengths(backbone.lengths(shape), shape[2])
        np.testing.assert_allclose(found, shape, atol=1e-9)
        np.testing.assert_allclose(backbone.lengths(found), backbone.lengths(shape), atol=1e-12)
    rotation = BACKBONE.tip(shape).rotation
    np.testing.assert_allclose(shape_from_rotation(rotation)[:3], shape[:3], atol=1e-9)


def test_even_tendons_without_torsion_have_the_inverse_of_the_sheet():
    lengths = np.array((0.130, 0.127, 0.126, 0.1285))
    deviation = lengths - lengths.mean()
    expected = -0.5 / RADIUS * np.array((deviation @ np.cos(EVEN), deviation @ np.sin(EVEN)))
    found = BACKBONE.shape_from_lengths(lengths)
    np.testing.assert_allclose(found[:2], expected, atol=1e-12)
    # Opposite tendons do not have the same mean: no shape has these lengths.
    assert np.sqrt(np.mean((lengths - BACKBONE.lengths(found)) ** 2)) == pytest.approx(
        abs(0.130 + 0.126 - 0.127 - 0.1285) / 4)


@pytest.mark.parametrize('length, radius, angles, words', [
    (0.0, RADIUS, EVEN, 'length must be positive'), (LENGTH, 0.0, EVEN, 'radius must be positive'),
    (LENGTH, math.nan, EVEN, 'radius'), (LENGTH, RADIUS, EVEN[:2], 'three or more'),
    (LENGTH, RADIUS, np.array((0.0, math.nan, 2.0)), 'finite'),
    (LENGTH, RADIUS, np.radians((0.0, 90.0, 180.0)), 'gap of 180 deg'),
    (LENGTH, RADIUS, np.radians((0.0, 30.0, 60.0)), 'gap of 300 deg')])
def test_torsos_that_make_no_sense(length, radius, angles, words):
    with pytest.raises(ConfigurationError, match=words):
        Backbone(length, radius, angles)


@pytest.mark.parametrize('lengths, torsion, words', [
    ((0.1, 0.1, 0.1), 0.0, '4 finite'), ((0.1, 0.1, math.nan, 0.1), 0.0, '4 finite'),
    ((0.129,) * 4, math.inf, 'torsion'), ((-0.1,) * 4, 0.0, 'no shape')])
def test_lengths_that_make_no_sense(lengths, torsion, words):
    with pytest.raises(InputError, match=words):
        BACKBONE.shape_from_lengths(np.array(lengths), torsion)
