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
"""Tensions against a general optimiser; the workspace; the joystick."""

from __future__ import annotations

import contextlib
from functools import partial
import itertools
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.torso.constant_curvature import Backbone, make_shape, Workspace
from biped_com_ros.core.torso.reference import Joystick
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics, Weight
from biped_com_ros.core.torso.tension import (
    antagonists, distribute, map_closure, moment_reserve, TensionDistributor, TensionLimits)
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from shapely import MultiPoint, Point

EVEN = np.radians((180.0, 270.0, 0.0, 90.0))
UNEVEN = np.radians((10.0, 95.0, 200.0, 260.0, 320.0))
LIMITS = TensionLimits(lowest=2.0, highest=40.0)


def backbone(angles):
    return Backbone(0.129, 0.034, angles)


def columns(bone, shape):
    return -bone.length_jacobian(shape)[:, :2].T


def pull(bone, shape, moment):
    return complex(*moment) / bone.lever(bone.arc_of(shape))


def directions(bone):
    return np.vstack((np.cos(bone.angles), np.sin(bone.angles)))


def optimum(a, moment, preferred, limits):
    """Solve the same problem by sequential quadratic programming, scaled to newtons."""
    found = minimize(
        lambda f: 0.5 * ((f - preferred) ** 2).sum(), np.clip(preferred, 2.0, 40.0),
        jac=lambda f: f - preferred, bounds=[(limits.lowest, limits.highest)] * len(preferred),
        constraints={'type': 'eq', 'fun': lambda f: (a @ f - moment) / 0.034,
                     'jac': lambda f: a / 0.034}, method='SLSQP', options={'ftol': 1e-14})
    return found.x


def is_possible(a, moment, limits):
    bounds = [(limits.lowest, limits.highest)] * a.shape[1]
    return linprog(np.zeros(a.shape[1]), A_eq=a, b_eq=moment, bounds=bounds).status == 0


@pytest.mark.parametrize('angles', [EVEN, UNEVEN])
def test_tensions_are_the_nearest_to_the_preferred(angles):
    random, bone = np.random.default_rng(5), backbone(angles)
    possible = 0
    for _ in range(40):
        shape = make_shape(random.uniform(0, 0.26), random.uniform(-3, 3), random.normal(0, 0.02))
        moment, preferred = random.normal(0.0, 0.8, 2), np.full(len(angles), 15.0)
        required, a = pull(bone, shape, moment), directions(bone)
        tensions = distribute(a, np.array((required.real, required.imag)), preferred, LIMITS)
        assert (tensions >= 2.0).all() and (tensions <= 40.0).all()
        is_reached = np.allclose(a @ tensions, (required.real, required.imag), atol=1e-5)
        assert is_reached == is_possible(columns(bone, shape), moment, LIMITS)
        assert is_reached == (moment_reserve(bone, shape, moment, LIMITS) >= 0.0)
        if is_reached:
            possible += 1
            best = optimum(bone.moment_columns(shape), moment, preferred, LIMITS)
            np.testing.assert_allclose(tensions, best, atol=1e-5)
        if len(angles) > 4:
            found = TensionDistributor(bone, LIMITS).distribute(required, 15.0)
            np.testing.assert_allclose(found.tensions, tensions, atol=1e-9)
            assert found.is_feasible == is_reached
            assert found.shortfall == pytest.approx(required - bone.pull(found.tensions))
    assert 10 < possible < 40


def test_the_closed_form_of_two_pairs():
    random, bone = np.random.default_rng(6), backbone(EVEN + 0.3)
    distributor = TensionDistributor(bone, LIMITS)
    for _ in range(60):
        shape = make_shape(random.uniform(0, 0.26), random.uniform(-3, 3), random.normal(0, 0.02))
        moment, level = random.normal(0.0, 0.6, 2), random.uniform(0.0, 45.0)
        required = pull(bone, shape, moment)
        found = distributor.distribute(required, level)
        general = distribute(directions(bone), np.array((required.real, required.imag)),
                             np.full(4, level), LIMITS)
        np.testing.assert_allclose(found.tensions, general, atol=1e-5)
        assert min(found.tensions) >= 2.0 and max(found.tensions) <= 40.0
        assert found.shortfall == pytest.approx(required - bone.pull(found.tensions), abs=1e-9)


def test_signs_of_the_tensions():
    """To bend forward the front tendon (0 deg) pulls, its opposite lets go."""
    found = TensionDistributor(backbone(EVEN), LIMITS).distribute(0.34 / 0.034, 10.0)
    np.testing.assert_allclose(found.tensions, (5.0, 10.0, 15.0, 10.0), atol=1e-12)
    # Where that would let one go slack, both go up.
    found = TensionDistributor(backbone(EVEN), LIMITS).distribute(0.68j / 0.034, 10.0)
    np.testing.assert_allclose(found.tensions, (10.0, 2.0, 10.0, 22.0), atol=1e-12)


def test_pairs_are_found_in_any_order():
    assert antagonists(EVEN) == ((2, 0), (3, 1))
    assert antagonists(UNEVEN) is None and antagonists(np.radians((0.0, 80, 180, 270))) is None


@pytest.mark.parametrize('degrees, closes', [
    ((0, 90, 180, 270), True), ((0, 120, 240), True), ((0, 90, 180), False),
    ((0, 120, 179), False), ((10, 95, 200, 260, 320), True), ((0, 180), False)])
def test_closure_is_that_a_positive_combination_vanishes(degrees, closes):
    angles = np.radians(degrees)
    with contextlib.nullcontext() if closes else pytest.raises(ConfigurationError):
        backbone(angles)
    a = np.vstack((np.cos(angles), np.sin(angles)))
    found = linprog(np.ones(len(degrees)), A_eq=a, b_eq=np.zeros(2), bounds=(1.0, None))
    assert (found.status == 0 and np.linalg.matrix_rank(a) == 2) == closes or degrees == (0, 180)


def test_the_closure_map():
    statics = TorsoStatics(backbone(EVEN), Stiffness(bending=2.6, torsion=10.0, axial=5e4))
    bends, directions = np.radians((0.0, 7.5, 15.0)), np.radians((0.0, 45.0, 180.0))
    free = map_closure(statics, LIMITS, bends, directions)
    assert free.is_held.all() and free.is_held.shape == (3, 3)
    heavy = Weight(2.5, (0j, 0.25), (-1.5 + 0j, -9.6))
    loaded = map_closure(statics, LIMITS, bends, directions, heavy)
    assert loaded.is_held[0, 0] and not loaded.is_held[2, 2]
    for i, bend in enumerate(bends):
        for k, direction in enumerate(directions):
            shape = make_shape(bend, direction)
            moment = statics.bending_moment(shape, heavy)
            assert loaded.is_held[i, k] == is_possible(
                columns(statics.backbone, shape), moment, LIMITS)


@pytest.mark.parametrize('make, words', [
    *((partial(TensionLimits, lowest=low, highest=high), 'must be (below|0)')
      for low, high in ((-1.0, 5.0), (5.0, 5.0), (0.0, math.inf), (math.nan, 1.0))),
    *((partial(Workspace, Backbone(0.129, 0.034, EVEN), *workspace), None) for workspace in (
        (0.0,), (-0.1,), (4.0,), (0.2, (0.1, 0.0)), (0.2, (-0.2, 0.0)), (math.nan,))),
    *((partial(Joystick, *joystick), 'joystick')
      for joystick in ((0.0, 0.1), (0.2, 1.0), (0.2, -0.1)))])
def test_settings_make_sense(make, words):
    with pytest.raises(ConfigurationError, match=words):
        make()


def test_reachable_points_are_a_convex_cap():
    workspace = Workspace(backbone(EVEN), math.radians(15.0))
    points = workspace.points(8, 36)
    assert points.shape == (288, 3)
    across = np.hypot(points[:, 0], points[:, 1])
    assert across.max() == pytest.approx(0.129 * (1 - math.cos(math.radians(15.0)))
                                         / math.radians(15.0))
    assert points[:, 2].max() == pytest.approx(0.129)
    np.testing.assert_allclose(np.hypot(*workspace.points(2, 12)[12:, :2].T), across.max())


def test_targets_are_taken_into_the_workspace():
    workspace = Workspace(backbone(EVEN), math.radians(15.0), (-0.002, 0.001))
    inside = workspace.clamp(make_shape(0.2, 1.0, 0.0, -0.001))
    assert not inside.reason
    clamped = workspace.clamp(make_shape(0.5, 1.0, 0.0, -0.003))
    np.testing.assert_allclose(
        clamped.shape, make_shape(math.radians(15.0), 1.0, 0.0, -0.002), atol=1e-15)
    assert 'bend 28.6 deg is more than 15.0 deg' in clamped.reason
    assert 'elongation -3.00 mm' in clamped.reason
    for bad in ((math.nan, 0, 0, 0), (0, 0, 0, math.inf), (0, 0)):
        with pytest.raises(InputError, match='four finite numbers'):
            workspace.clamp(bad)


@pytest.mark.parametrize('forward, left, expected', [
    (0.0, 0.0, (0.0, 0.0)), (0.05, 0.0, (0.0, 0.0)), (1.0, 0.0, (0.2, 0.0)),
    (0.0, -1.0, (0.0, -0.2)), (0.55, 0.0, (0.1, 0.0)),
    (1.0, 1.0, (0.2 / math.sqrt(2), 0.2 / math.sqrt(2)))])
def test_the_joystick(forward, left, expected):
    np.testing.assert_allclose(Joystick(0.2, 0.1).bend(forward, left), expected, atol=1e-12)
    with pytest.raises(InputError, match='finite'):
        Joystick(0.2).bend(math.nan, 0.0)


@pytest.mark.parametrize('apart', [0.0, 0.5, 1.0, 3.0, 5.0, 20.0, 60.0])
def test_tendons_nearly_parallel_lack_no_more_than_limits_require(apart):
    """What they can pull is the convex hull of the sums of extreme tensions."""
    bone = backbone(np.radians((0.0, apart, 150.0, 200.0)))
    random, a = np.random.default_rng(7), directions(bone)
    corners = np.array(list(itertools.product((LIMITS.lowest, LIMITS.highest), repeat=4)))
    reach = MultiPoint(corners @ a.T).convex_hull
    distributor = TensionDistributor(bone, LIMITS)
    possible = 0
    for _ in range(100):
        required = complex(*random.normal(0.0, 40.0, 2))
        found = distributor.distribute(required, 15.0)
        assert LIMITS.lowest <= min(found.tensions) and max(found.tensions) <= LIMITS.highest
        distance = reach.distance(Point(required.real, required.imag))
        assert abs(found.shortfall) == pytest.approx(distance, abs=1e-6)
        assert found.shortfall == pytest.approx(required - bone.pull(found.tensions))
        possible += found.is_feasible
    assert 10 < possible < 90
