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
"""Russo et al. 2021: tendon lengths hole by hole, tables, what is wrong in print."""

from __future__ import annotations

import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.torso.constant_curvature import (
    Backbone, bend_and_direction, make_shape, Workspace)
from biped_com_ros.core.torso.statics import constant_load, Stiffness, TorsoStatics
from biped_com_ros.papers.russo_2021 import (
    backbone_reactions, chord_lengths, helix_lengths, length_range, printed_bend, printed_lengths,
    tendon_moments, VirtualWork)
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

LENGTH, RADIUS = 0.129, 0.034
EVEN = np.radians((180.0, 270.0, 0.0, 90.0))
UNEVEN = np.radians((10.0, 95.0, 200.0, 260.0, 320.0))
BACKBONE, OTHER = Backbone(LENGTH, RADIUS, EVEN), Backbone(LENGTH, RADIUS, UNEVEN)
STIFFNESS = Stiffness(bending=2.6, torsion=10.0, axial=5e4)
SHAPES = [np.zeros(4), make_shape(1e-9, 2.0, 0.1), make_shape(1e-5, -1.0, 0.02),
          make_shape(0.2, 1.0, 0.03), make_shape(0.26, -2.0, -0.05),
          make_shape(0.299999, 2.5, 0.1), make_shape(0.300001, 2.5, 0.1),
          make_shape(1.6, 0.4, 0.2)]


def turned(shape, share=1.0):
    """Rz(phi) Ry(theta) Rz(psi - phi), equation (2), at a share of the backbone."""
    bend, direction = bend_and_direction(shape)
    return Rotation.from_euler(
        'ZYZ', (direction, share * bend, share * shape[2] - direction)).as_matrix()


@pytest.mark.parametrize('shape', SHAPES)
def test_lengths_are_those_of_the_curve_through_the_holes(shape):
    """As many disks as one likes, each placed by equation (2): chords tend to the helix."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    centers = LENGTH * np.array([
        0.5 * u * sum(w * turned(shape, 0.5 * u * (x + 1.0))[:, 2] for x, w in
                      zip(nodes, weights)) for u in np.linspace(0.0, 1.0, 101)])
    ring = RADIUS * np.column_stack((np.cos(UNEVEN), np.sin(UNEVEN), np.zeros(5)))
    holes = np.array([c + ring @ turned(shape, u).T
                      for c, u in zip(centers, np.linspace(0.0, 1.0, 101))])
    measured = np.linalg.norm(np.diff(holes, axis=0), axis=2).sum(axis=0)
    np.testing.assert_allclose(helix_lengths(OTHER, shape), measured, atol=3e-6)
    np.testing.assert_allclose(chord_lengths(OTHER, shape, 100), measured, atol=1e-12)


@pytest.mark.parametrize('bend, torsion, tolerance', [(15.0, 1.54, 1e-9), (90.0, 10.0, 1e-6)])
def test_the_closed_form(bend, torsion, tolerance):
    for direction in np.radians(np.arange(0, 360, 5)):
        shape = make_shape(math.radians(bend), direction, math.radians(torsion))
        np.testing.assert_allclose(BACKBONE.lengths(shape), helix_lengths(BACKBONE, shape),
                                   atol=tolerance)


def test_4_as_printed_swaps_two_tendons_and_the_sense_of_torsion():
    shape = make_shape(0.25, 0.9)
    np.testing.assert_allclose(
        printed_lengths(BACKBONE, shape)[[0, 3, 2, 1]], BACKBONE.lengths(shape), atol=1e-12)
    twisted = make_shape(0.25, 0.9, 0.03)
    printed = printed_lengths(BACKBONE, twisted)[[0, 3, 2, 1]]
    assert np.abs(printed - BACKBONE.lengths(twisted)).max() > 1e-4


def test_tendons_run_through_a_disk():
    with pytest.raises(ConfigurationError, match='one disk'):
        chord_lengths(BACKBONE, np.zeros(4), 0)


def test_table_2():
    workspace = Workspace(BACKBONE, math.radians(15.0))
    np.testing.assert_allclose(length_range(workspace), (0.120099, 0.137901), atol=5e-7)
    lengths = np.array([BACKBONE.lengths(make_shape(math.radians(15.0), d))
                        for d in np.radians(np.arange(0, 360, 10))])
    np.testing.assert_allclose((lengths.min(), lengths.max()), length_range(workspace))


def test_5_and_6_hold_each_other_in_equilibrium():
    """The corrected moment along the bend is that of the spring; printed, neither sign is."""
    tensions = np.array((12.0, 14.0, 21.0, 15.0))
    shape = TorsoStatics(BACKBONE, STIFFNESS).equilibrium(tensions)
    bend, direction = bend_and_direction(shape)
    moments, reactions = tendon_moments(BACKBONE, tensions, direction), backbone_reactions(
        STIFFNESS, shape)
    assert (moments.m_x, moments.m_y) == pytest.approx((-RADIUS, RADIUS * 9.0))
    # Tensions bend little more than the spring resists: by the column effect.
    assert reactions == pytest.approx((0.0, moments.f_z, moments.m_theta), rel=0.02, abs=1e-3)
    assert reactions.bending == pytest.approx(2.6 * bend)
    printed = tendon_moments(BACKBONE, tensions, direction, as_printed=True)
    assert printed.f_z == -moments.f_z and abs(printed.m_theta - moments.m_theta) > 0.05


def test_7_as_printed_bends_twice_as_far():
    load = constant_load((5.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    virtual = VirtualWork(BACKBONE, STIFFNESS).equilibrium(np.zeros(4), load)
    assert math.degrees(printed_bend(BACKBONE, STIFFNESS, 5.0)) == pytest.approx(14.1, abs=0.05)
    assert math.degrees(virtual[0]) == pytest.approx(7.08, abs=0.05)
