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
"""Statics of the torso: virtual work by finite differences, figures, round trips."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.torso.arc import array_of, vector_of, wrench_of
from biped_com_ros.core.torso.constant_curvature import Backbone, make_shape
from biped_com_ros.core.torso.statics import constant_load, Stiffness, TorsoStatics, Weight
from biped_com_ros.papers.russo_2021 import VirtualWork
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

ANGLES = np.radians((180.0, 270.0, 0.0, 90.0))
BACKBONE = Backbone(0.129, 0.034, ANGLES)
STATICS = TorsoStatics(BACKBONE, Stiffness(bending=2.6, torsion=10.0, axial=5e4))
VIRTUAL_WORK = VirtualWork(BACKBONE, STATICS.stiffness)
SHAPE = make_shape(0.2, 0.8, 0.03, -0.001)
ARC = BACKBONE.arc_of(SHAPE)
TENSIONS = np.array((12.0, 7.0, 21.0, 15.0))
COM, GRAVITY = np.array((0.02, -0.01, 0.11)), np.array((0.5, 0.2, -9.79))
WEIGHT = Weight(1.26, vector_of(COM), vector_of(GRAVITY))


def energy(shape):
    """Elastic energy, the tendons' (at constant tension) and the weight's, J."""
    tip = BACKBONE.tip(shape)
    com = tip.position + tip.rotation @ COM
    return (0.5 * shape @ np.diag((2.6, 2.6, 10.0, 5e4)) @ shape
            + TENSIONS @ BACKBONE.lengths(shape) - WEIGHT.mass * (GRAVITY @ com))


def test_forces_are_the_slope_of_the_energy():
    steps = 1e-6 * np.eye(4)
    slope = np.array([(energy(SHAPE + d) - energy(SHAPE - d)) / 2e-6 for d in steps])
    np.testing.assert_allclose(
        VIRTUAL_WORK.imbalance(SHAPE, TENSIONS, WEIGHT), -slope, atol=1e-6)


def test_the_tangent_is_the_curvature_of_the_energy():
    steps = 1e-4 * np.eye(4)
    curvature = np.array([[
        sum(a * b * energy(SHAPE + a * d + b * e) for a in (1, -1) for b in (1, -1)) / 4e-8
        for e in steps] for d in steps])
    np.testing.assert_allclose(VIRTUAL_WORK.tangent(SHAPE, TENSIONS, WEIGHT), curvature, rtol=1e-4,
                               atol=1e-4)


def test_tendons_of_a_straight_torso():
    """Equation (6) with its signs put right: moments, and all tensions compress."""
    f1, f2, f3, f4 = TENSIONS
    mx, my = 0.034 * (f2 - f4), 0.034 * (f3 - f1)
    np.testing.assert_allclose(
        STATICS.of_tendons(np.zeros(4), TENSIONS), (my, -mx, 0.0, -TENSIONS.sum()), atol=1e-12)


def test_a_force_bends_towards_where_it_points():
    shape = STATICS.equilibrium(np.zeros(4), constant_load((5.0, 0, 0, 0, 0, 0)))
    assert np.degrees(shape[0]) == pytest.approx(7.08, abs=0.005)
    left = STATICS.equilibrium(np.zeros(4), constant_load((0.0, 5.0, 0, 0, 0, 0)))
    np.testing.assert_allclose(left[:2], (0.0, shape[0]), atol=1e-9)


def test_torsion_is_stiffened_by_tension():
    load = constant_load((0.0, 0, 0, 0, 0, 0.3))
    shape = STATICS.equilibrium(TENSIONS * 0.0 + 40.0, load)
    length = 0.129 + shape[3]
    assert shape[2] == pytest.approx(0.3 / (10.0 + 0.034 ** 2 * 160.0 / length), rel=1e-4)
    assert shape[3] == pytest.approx(-160.0 / 5e4, rel=1e-3)


def test_equilibrium_balances_and_passive_parts_are_its():
    shape = STATICS.equilibrium(TENSIONS, WEIGHT)
    np.testing.assert_allclose(STATICS.imbalance(shape, TENSIONS, WEIGHT), 0.0, atol=1e-7)
    bare = shape * (1.0, 1.0, 0.0, 0.0)
    passive = STATICS.with_passive_parts(bare, TENSIONS, WEIGHT)
    np.testing.assert_allclose(passive[2:], shape[2:], rtol=0.03, atol=1e-6)
    np.testing.assert_allclose(
        STATICS.bending_moment(shape, WEIGHT), STATICS.of_tendons(shape, TENSIONS)[:2], atol=1e-7)


def test_weight_is_taken_about_the_tip_and_wrenches_on_the_hands_turn_with_it():
    R, force = BACKBONE.tip(SHAPE).rotation, 1.26 * GRAVITY
    expected = np.concatenate((force, np.cross(R @ COM, force)))
    np.testing.assert_allclose(array_of(WEIGHT(ARC)), expected, atol=1e-12)
    contact = np.array((1.0, -2.0, 3.0, 0.1, 0.2, -0.3))
    both = replace(WEIGHT, contact_in_tip=wrench_of(contact))
    np.testing.assert_allclose(
        array_of(both(ARC)), expected + (contact.reshape(2, 3) @ R.T).ravel(), atol=1e-12)


def test_four_combinations_of_the_wrench_are_estimated():
    wrench = np.array((3.0, -1.0, -9.0, 0.2, -0.1, 0.05))
    load = constant_load(wrench)
    shape = VIRTUAL_WORK.equilibrium(TENSIONS, load)
    found = STATICS.estimate_wrench(shape, TENSIONS)
    np.testing.assert_allclose(found.directions @ wrench, found.generalized, atol=1e-7)
    np.testing.assert_allclose(found.directions @ found.wrench, found.generalized, atol=1e-7)
    # What is missing leaves no trace, and all that is missing is of that kind.
    np.testing.assert_allclose(found.directions @ found.unobservable, 0.0, atol=1e-12)
    missing = wrench - found.wrench
    inside = found.unobservable @ (found.unobservable.T @ missing)
    np.testing.assert_allclose(missing, inside, atol=1e-6)
    assert np.linalg.norm(missing) > 0.1


def test_the_column_effect_of_a_known_load_is_not_taken_for_another():
    shape = STATICS.equilibrium(TENSIONS, WEIGHT)
    found = STATICS.estimate_wrench(shape, TENSIONS, WEIGHT)
    np.testing.assert_allclose(found.generalized, 0.0, atol=1e-7)
    # Under 12 N along and 0.7 N across, both in newton metres per radian and newton.
    effect = STATICS.column_effect(ARC, WEIGHT(ARC))
    assert 1e-3 < abs(effect) < 0.05 * STATICS.stiffness.bending * 0.2


def test_the_column_effect_is_smooth_where_it_vanishes():
    effects = [STATICS.column_effect(ARC, (3.0 - 1j, force, 0j, 0.0))
               for force in (-0.0202, -0.0200, 0.0, 0.0200, 0.0202)]
    np.testing.assert_allclose(np.diff(effects, axis=0)[0], np.diff(effects, axis=0)[3], rtol=0.01)
    np.testing.assert_allclose(effects[2], 0.0, atol=1e-15)


def test_a_torso_turned_over_hangs():
    """The same with everything upside down and turned: gravity in the base decides."""
    turn = Rotation.from_euler('z', 1.1).as_matrix()
    upright, other, hanging = (
        STATICS.equilibrium(np.zeros(4), Weight(0.3, (0j, 0.1), vector_of(gravity)))
        for gravity in (np.array((2.0, 0.0, -9.6)), turn @ (2.0, 0.0, -9.6),
                        np.array((2.0, 0.0, 9.6))))
    np.testing.assert_allclose(other[:2], turn[:2, :2] @ upright[:2], atol=1e-9)
    assert 0.0 < hanging[0] < upright[0]


def test_a_load_too_great_is_refused():
    with pytest.raises(InputError, match='no equilibrium'):
        STATICS.equilibrium(np.zeros(4), constant_load((5000.0, 0.0, -5000.0, 0, 0, 0)))
    with pytest.raises(InputError, match='no equilibrium'):
        STATICS.equilibrium(np.full(4, np.nan))


@pytest.mark.parametrize('value, name', [
    (-1.0, 'bending'), (0.0, 'torsion'), (np.nan, 'axial')])
def test_stiffness_must_be_positive(value, name):
    problem = f"the backbone's stiffness: {name} must be positive"
    with pytest.raises(ConfigurationError, match=problem):
        Stiffness(**{'bending': 2.6, 'torsion': 10.0, 'axial': 5e4, name: value})


@pytest.mark.parametrize('direction', (0.0, 0.7, 1.5707963))
def test_bending_stiffness_is_moment_over_bend(direction):
    """A small moment on the tip, and the shape that is in equilibrium with it."""
    assert STATICS.bending_stiffness(np.zeros(4), direction=direction) == pytest.approx(2.6)
    axis = np.array((-np.sin(direction), np.cos(direction), 0.0))  # bends along `direction`
    shape = STATICS.equilibrium(TENSIONS, WEIGHT)
    found = STATICS.bending_stiffness(shape, TENSIONS, WEIGHT, direction)
    moment = 1e-4

    def bent(sign):
        more = wrench_of(np.concatenate((np.zeros(3), sign * moment * axis)))
        return STATICS.equilibrium(
            TENSIONS, lambda arc: tuple(a + b for a, b in zip(WEIGHT(arc), more)), shape)

    along = np.array((np.cos(direction), np.sin(direction)))
    bend = along @ (bent(1.0) - bent(-1.0))[:2]
    assert found == pytest.approx(2.0 * moment / bend, rel=1e-4)
    assert found < 2.0  # the weight takes off
