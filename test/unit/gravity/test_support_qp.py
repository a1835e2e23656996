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
"""Contact wrenches within limits: every limit by itself, the optimum, and what is impossible."""

from __future__ import annotations

from dataclasses import replace
import math
import subprocess
import sys

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.gravity.compensation import support_problem
from biped_com_ros.core.gravity.contacts import ContactPoint
from biped_com_ros.core.gravity.model import GravityModel, minimum_norm
from biped_com_ros.core.gravity.support_qp import BoundedNorm, contact_rows, SupportLimits
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np
import pytest
from scipy.optimize import minimize
from support.contact_balance import residual

pytest.importorskip('proxsuite')

ROBOTS = ('biped', 'talos', 'g1', 'icub')
SQUARE = ((0.1, -0.05), (0.1, 0.05), (-0.1, 0.05), (-0.1, -0.05))
EVEN = np.array([0.5, 0.5])


@pytest.fixture(scope='module', params=ROBOTS)
def gravity(request):
    """Return one of the robots."""
    return GravityModel(RobotModel.load(request.param))


@pytest.fixture(scope='module')
def talos():
    return GravityModel(RobotModel.load('talos'))


def tilted(gravity, roll, pitch):
    """Return the load of a robot whose base leans."""
    up = np.array([np.sin(pitch), np.sin(roll), 1.0])
    return gravity.load(gravity.model.state(gravity.model.posture()), up / np.linalg.norm(up))


def centroid(corners):
    """Return the middle of the triangles of a convex polygon, weighted by their areas."""
    fans = [np.array([corners[0], *pair]) for pair in zip(corners[1:-1], corners[2:])]
    areas = [0.5 * np.linalg.det(np.column_stack((fan, np.ones(3)))) for fan in fans]
    return np.average([fan.mean(axis=0) for fan in fans], axis=0, weights=areas)


def excess(support, limits):
    """By how much each kind of limit is exceeded, in parts of the normal force or effort."""
    gravity, worst = support.load.gravity_model, {'unilateral': 0.0}
    for contact, wrench in zip(gravity.contacts, support.wrenches):
        fx, fy, fz, mx, my, mz = wrench.tolist()
        worst['unilateral'] = max(worst['unilateral'], -fz / gravity.weight)
        if fz < 1e-6 * gravity.weight:
            continue
        corners = np.array(contact.polygon)
        edges = np.roll(corners, -1, axis=0) - corners
        to_cop = np.array([-my, mx]) / fz - corners
        inside = (edges[:, 0] * to_cop[:, 1] - edges[:, 1] * to_cop[:, 0]) / np.hypot(*edges.T)
        x, y = centroid(corners)
        for kind, value in (('friction', np.hypot(fx, fy) / fz - limits.friction),
                            ('torsion', abs(mz - x * fy + y * fx) / fz
                             - limits.torsional_friction),
                            ('sole', limits.sole_margin - inside.min())):
            worst[kind] = max(worst.get(kind, -np.inf), value)
    moving = gravity.to_measured_joints(gravity.joint_moves_contact.max(axis=0)) != 0.0
    share = np.abs(support.efforts[moving]) / gravity.effort_limits[moving]
    worst['effort'] = share.max() - limits.effort_fraction
    return worst


def assert_kept(support, limits):
    np.testing.assert_allclose(residual(support), 0.0, atol=1e-9)
    assert {k: v for k, v in excess(support, limits).items() if v > 1e-6} == {}


def test_is_the_closed_form_where_that_keeps_all_limits(gravity):
    bounded, load = BoundedNorm(gravity), tilted(gravity, 0.0, 0.0)
    np.testing.assert_array_equal(
        load.on_contacts(EVEN, bounded).efforts, load.on_contacts(EVEN).efforts)
    assert bounded.iterations == 0


def test_keeps_all_limits_where_the_closed_form_does_not(gravity):
    rng, limits = np.random.default_rng(1), SupportLimits(
        friction=0.3, torsional_friction=0.01, sole_margin=0.01)
    bounded, solved, kinds = BoundedNorm(gravity, limits), 0, set()
    for _ in range(200):
        load = tilted(gravity, *rng.uniform(-0.15, 0.15, 2))
        shares = rng.dirichlet((1.0, 1.0))
        try:
            support = load.on_contacts(shares, bounded)
        except InputError:
            continue
        assert_kept(support, limits)
        if bounded.iterations:
            solved += 1
            broken = excess(load.on_contacts(shares), limits)
            kinds |= {kind for kind, value in broken.items() if value > 0.0}
    assert solved > 10
    assert 'sole' in kinds


def test_effort_limits_are_kept_by_other_internal_forces(talos):
    load = tilted(talos, 0.0, 0.02)
    shares = np.array([0.3, 0.7])
    free = load.on_contacts(shares)
    used = np.max(np.abs(free.efforts) / talos.effort_limits)
    limits = SupportLimits(effort_fraction=0.9 * used)
    support = load.on_contacts(shares, BoundedNorm(talos, limits))
    assert_kept(support, limits)
    assert np.abs(support.efforts - free.efforts).max() > 0.1


def test_is_the_optimum(talos):
    """A general solver, given the same limits, finds nothing cheaper."""
    limits = SupportLimits(torsional_friction=0.01, sole_margin=0.02, effort_fraction=np.inf)
    bounded, shares = BoundedNorm(talos, limits), np.array([0.1, 0.9])
    load = tilted(talos, 0.01, 0.03)
    support = load.on_contacts(shares, bounded)
    assert bounded.iterations > 0
    metric = np.tile([1.0, 1.0, 1.0, 100.0, 100.0, 100.0], 2) / np.repeat(shares, 6)
    metric /= talos.weight ** 2
    rows = np.kron(np.eye(2), contact_rows(talos.contacts[0], limits))
    grasp = np.hstack([grasp_of(row) for row in load.placements])
    total = grasp @ support.wrenches_at_centres.ravel()
    found = minimize(
        lambda f: f @ (metric * f), load.on_contacts(shares).wrenches_at_centres.ravel(),
        jac=lambda f: 2.0 * metric * f, method='SLSQP', options={'ftol': 1e-14, 'maxiter': 500},
        constraints=[
            {'type': 'eq', 'fun': lambda f: (grasp @ f - total) / talos.weight,
             'jac': lambda f: grasp / talos.weight},
            {'type': 'ineq', 'fun': lambda f: rows @ f / talos.weight,
             'jac': lambda f: rows / talos.weight}])
    assert found.success
    np.testing.assert_allclose(
        support.wrenches_at_centres.ravel(), found.x, atol=1e-3 * talos.weight)
    cost = support.wrenches_at_centres.ravel() @ (metric * support.wrenches_at_centres.ravel())
    assert cost == pytest.approx(found.fun, rel=1e-6)


def grasp_of(row):
    """Return the total about the base of a wrench at a contact, in its own axes."""
    x, y, z = row[3]
    lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[row[:3].T, np.zeros((3, 3))], [lever @ row[:3].T, row[:3].T]])


def test_a_single_foot_has_one_solution_or_none(talos):
    bounded, one = BoundedNorm(talos), np.array([1.0, 0.0])
    load = tilted(talos, 0.0, 0.0)
    with pytest.raises(InputError, match='cannot balance'):
        load.on_contacts(one, bounded)  # the CoM is between the feet
    # The solver starts anew after a problem without solution.
    np.testing.assert_allclose(residual(load.on_contacts(EVEN, bounded)), 0.0, atol=1e-9)
    over = tilted(talos, -0.1, 0.0)
    np.testing.assert_allclose(
        over.on_contacts(one, bounded).efforts, over.on_contacts(one).efforts, atol=1e-9)


def test_is_continuous_while_limits_are_active(talos):
    limits = SupportLimits(torsional_friction=0.005, sole_margin=0.03, effort_fraction=np.inf)
    bounded, before, worst, solved = BoundedNorm(talos, limits), None, 0.0, 0
    load = tilted(talos, 0.01, 0.03)
    for share in np.linspace(0.3, 0.05, 600):
        efforts = load.on_contacts(np.array([share, 1.0 - share]), bounded).efforts
        solved += bounded.iterations > 0
        if before is not None:
            worst = max(worst, np.max(np.abs(efforts - before) / talos.effort_limits))
        before = efforts
    assert solved > 300
    assert worst < 0.005


def with_hand(**changes):
    """Return Talos' load with a share on the left hand."""
    config = load_robot_config('talos')
    hands = {**config.hands, 'left': replace(config.hands['left'], **changes)}
    model = RobotModel(replace(config, hands=hands), load_urdf(config))
    gravity = GravityModel(model, contacts=('left', 'right', 'left_hand'))
    return tilted(gravity, 0.0, 0.03), np.array([0.45, 0.45, 0.1])


@pytest.mark.parametrize('normal', [
    (0.0, 0.0, 1.0), (0.0, 0.0, -2.0), (0.5, 0.0, 0.0), (-0.3, 0.4, 0.2)])
def test_hands_push_inside_the_cone_about_their_normal_without_torque(talos, normal):
    load, shares = with_hand(normal=normal)
    limits = SupportLimits(sole_margin=0.03)
    bounded = BoundedNorm(load.gravity_model, limits)
    support = load.on_contacts(shares, bounded)
    force, torque = support.wrenches[2, :3], support.wrenches[2, 3:]
    pressing = force @ normal / np.linalg.norm(normal)
    assert pressing > -1e-6
    assert np.sqrt(max(force @ force - pressing ** 2, 0.0)) <= limits.friction * pressing + 1e-6
    np.testing.assert_allclose(torque, 0.0, atol=1e-9)
    np.testing.assert_allclose(residual(support), 0.0, atol=1e-9)
    # The closed form does not keep the direction; it is checked afterwards.
    free = load.on_contacts(shares, minimum_norm)
    pushes = free.wrenches[2, :3] @ normal > 0.0
    assert ('left_hand' not in support_problem(free, math.inf)) == pushes
    assert contact_rows(load.gravity_model.contacts[2], limits) @ np.array(
        (*normal, 0.0, 0.0, 0.0)) == pytest.approx(np.linalg.norm(normal) * contact_rows(
            ContactPoint('hand', (), 0.0), limits)[:, 2])


def test_a_hand_that_grips_also_pulls():
    load, shares = with_hand(contact='grip', normal=(0.0, 0.0, 1.0))
    bounded = BoundedNorm(load.gravity_model, SupportLimits(sole_margin=0.0, friction=9.0))
    free = load.on_contacts(shares, minimum_norm)
    assert 'left_hand' not in support_problem(free, math.inf)
    assert load.on_contacts(shares, bounded).wrenches == pytest.approx(free.wrenches, abs=1e-6)
    for sign in (1.0, -1.0):
        assert load.gravity_model.contacts[2].pressing((0, 0, sign * 3.0, 0, 0, 0)) == 3.0


def test_a_hand_that_leans_in_an_unknown_direction_needs_a_normal():
    load, shares = with_hand()
    assert 'left_hand' not in support_problem(load.on_contacts(shares, minimum_norm), math.inf)
    with pytest.raises(ConfigurationError, match="'left_hand' leans on .*give the hand a normal"):
        BoundedNorm(load.gravity_model, SupportLimits())


def test_rows_are_negative_outside_of_the_limits():
    limits = SupportLimits(friction=0.5, torsional_friction=0.02, sole_margin=0.01)
    rows = contact_rows(ContactPoint('left', SQUARE, 0.1), limits)
    for wrench, inside in (
            ((0, 0, 10, 0, 0, 0), True), ((0, 0, -10, 0, 0, 0), False),
            ((4.5, 0, 10, 0, 0, 0), True), ((0, 5.1, 10, 0, 0, 0), False),
            ((0, 0, 10, 0, 0, 0.19), True), ((0, 0, 10, 0, 0, -0.21), False),
            ((0, 0, 10, 0, -0.89, 0), True), ((0, 0, 10, 0, -0.91, 0), False),  # x = 0.09
            ((0, 0, 10, -0.39, 0, 0), True), ((0, 0, 10, 0.41, 0, 0), False)):
        assert bool((rows @ np.array(wrench, dtype=float)).min() >= 0.0) is inside, wrench


@pytest.mark.parametrize(('values', 'message'), (
    ({'friction': 0.0}, "'friction' is 0.0; it must be 0.01 to 10"),
    ({'friction': float('nan')}, "'friction' is nan; it must be 0.01 to 10")))
def test_invalid_limits_are_refused(values, message):
    with pytest.raises(ConfigurationError) as refusal:
        SupportLimits(**values)
    assert str(refusal.value) == message


def test_a_margin_that_leaves_no_sole_is_refused():
    with pytest.raises(ConfigurationError, match="leaves nothing of the sole of 'left'"):
        contact_rows(ContactPoint('left', SQUARE, 0.1), SupportLimits(sole_margin=0.06))


def test_solver_is_imported_when_used_and_named_if_missing(talos, monkeypatch):
    subprocess.run([sys.executable, '-c', 'import sys, biped_com_ros.core.gravity.support_qp; '
                    'assert "proxsuite" not in sys.modules'], check=True)
    monkeypatch.setitem(sys.modules, 'proxsuite', None)
    bounded = BoundedNorm(talos, SupportLimits(sole_margin=0.03))
    with pytest.raises(ConfigurationError, match='pip install proxsuite'):
        tilted(talos, 0.0, 0.03).on_contacts(np.array([0.1, 0.9]), bounded)
