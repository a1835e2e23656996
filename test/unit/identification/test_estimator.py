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
"""The estimate against the truth: accuracy, uncertainty, and warnings about bad data."""

from dataclasses import replace
import math
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.estimation.estimates import (
    com_offset_of_whole, residuals_of)
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.prior import (
    com_bounds, Prior, PriorTerms, Spread, with_known_masses)
from biped_com_ros.core.identification.output.report import html_report
from biped_com_ros.core.identification.output.results import summary
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np
import pytest
from support.statics_data import (
    com_error, instrument_errors, NOISE, PERFECT, TrueRobot, without_torques)

EXACT = SensorNoise(**PERFECT)
FEET = (('left',), ('right',), ('left', 'right'))


@pytest.fixture(scope='module')
def sabian():
    return TrueRobot('sabian', seed=1)


@pytest.fixture(scope='module')
def solved():
    """Return a robot of SABIAN's size with 5 kg hidden, its captures and the estimate."""
    true = TrueRobot('sabian', seed=4)
    captures = true.captures(40)
    estimator = Estimator(true.model, EXACT)
    return true, captures, estimator, estimator.solve(captures)


def test_masses_and_held_out_poses(solved):
    true, _, estimator, found = solved
    assert abs(true.static.mass - true.model.mass) > 4.9
    assert abs(found.mass - true.static.mass) < min(4.0 * found.mass_std, 0.1)
    assert found.mass_std < 0.05
    poses = [true.positions(('left',)) for _ in range(20)]
    cad = parameters_of(true.model)
    before, after = (com_error(true, estimator, theta, poses)
                     for theta in (cad, found.parameters))
    assert before > 4e-3 and after < 0.5e-3
    exact = [true.capture(('left',), None, q) for q in poses]
    torques = [residuals_of(estimator.regressor, exact, theta).torque_rms
               for theta in (cad, found.parameters)]
    assert torques[0] > 6.0 * torques[1]


def test_links_and_their_uncertainty(solved):
    true, _, _, found = solved
    errors = {when: np.array([getattr(link, when) - true.static.link_coms[link.name]
                              for link in found.links]) for when in ('com', 'com_before')}
    assert np.sqrt((errors['com'] ** 2).mean()) < np.sqrt((errors['com_before'] ** 2).mean())
    inside = np.abs(errors['com']) < 1.96 * np.array([link.com_std for link in found.links])
    assert 0.88 < inside.mean() <= 1.0
    for link in found.links:
        assert link.mass > 0.0 and ((link.data_share >= 0.0) & (link.data_share <= 1.0)).all()


def test_deviations_are_those_of_draws_from_the_posterior(solved):
    found = solved[-1]
    # small draws, for which the quotient of a moment and a mass is linear
    draws = np.random.default_rng(0).multivariate_normal(
        found.parameters.ravel(), 1e-8 * found.covariance, 4000,
        method='eigh').reshape(4000, -1, 4)
    drawn = 1e4 * (draws[:, :, 1:] / draws[:, :, :1]).std(axis=0)
    claimed = np.array([link.com_std for link in found.links])
    np.testing.assert_allclose(claimed, drawn, rtol=0.06)


def test_residuals_before_after_and_left_out(solved):
    _, captures, _, found = solved
    assert found.before.com.shape == found.validated.com.shape == (len(captures), 2)
    assert found.after.com_rms < 0.5 * found.before.com_rms
    # Poses that were left out are explained almost as well: it is no fit to noise.
    assert found.after.com_rms < found.validated.com_rms < 1.3 * found.after.com_rms
    assert found.after.torque_rms < found.validated.torque_rms < 1.6 * found.after.torque_rms
    assert found.noise_scale < 1.2 and not found.warnings


def test_left_out_and_true_errors_of_the_com_are_as_predicted(solved):
    true, captures, estimator, found = solved
    assert found.validated_com == pytest.approx(found.validated.com_rms, rel=0.2)
    actual = com_error(true, estimator, found.parameters, [c.positions for c in captures])
    assert 0.5 * found.com_error < actual < 1.5 * found.com_error
    assert found.com_error < 0.8 * found.validated_com  # no sensor is noisy in it
    page, text = html_report(true.model, captures, found), summary(found)
    for value in (found.validated_com, found.com_error):
        assert f'{1e3 * value:.2f} mm' in page and f'{1e3 * value:.2f}' in text


@pytest.mark.parametrize('standing', FEET)
def test_residual_of_the_com_follows_from_those_of_the_whole(solved, standing):
    true, _, estimator, _ = solved
    capture, theta = true.capture(standing), true.theta
    matrix = com_offset_of_whole(estimator.regressor, capture, theta)
    by_wrench, by_com = [], []
    for step in np.eye(12)[::3]:
        ends = [replace(capture, wrenches=capture.wrenches + sign * 1e-3 * step.reshape(2, 6))
                for sign in (1.0, -1.0)]
        whole = [estimator.regressor.residual(c, theta)[1][:6] for c in ends]
        by_wrench.append(matrix @ (whole[0] - whole[1]))
        com = residuals_of(estimator.regressor, ends, theta).com
        by_com.append(com[0] - com[1])
    assert np.abs(by_com).max() > 1e-7
    np.testing.assert_allclose(by_wrench, by_com, atol=0.03 * np.abs(by_com).max())


def test_identifiability(solved):
    true, captures, estimator, found = solved
    report = found.identifiability
    assert report.unknowns == 4 * len(true.model.link_names)
    assert 0 < report.determined <= report.rank < report.unknowns
    assert report.prior_only == report.unknowns - report.rank > 0
    assert report.condition_number > 10.0
    assert (report.repeat_gain > 0.0).all() and len(report.repeat_gain) == len(captures)
    std = found.com_std(estimator.regressor, true.model.posture('stand'))
    assert (std[:2] < 1e-3).all() and std[2] < 0.02


def test_without_torques_less_is_known(solved):
    true, captures, estimator, found = solved
    without = estimator.solve(without_torques(captures))
    assert without.identifiability.determined < found.identifiability.determined
    assert np.isnan(without.before.torque_rms)
    poses = [true.positions(('left',)) for _ in range(10)]
    assert com_error(true, estimator, without.parameters, poses) < 1.5e-3


@pytest.mark.thorough
def test_the_same_data_give_the_same_estimate(solved):
    _, captures, estimator, found = solved
    again = estimator.solve(list(captures))
    np.testing.assert_array_equal(again.parameters, found.parameters)


@pytest.mark.thorough
def test_an_imu_mounted_askew_and_biased_torques_are_found():
    true = TrueRobot('sabian', seed=4)
    tilt = np.array((0.006, -0.009, 0.0))
    torques = true.rng.normal(size=len(true.model.joint_names))
    wrong = [replace(c, up=c.up + np.cross(tilt, c.up), torques=c.torques + torques)
             for c in true.captures(30)]
    unaware, aware = (Estimator(true.model, n).solve(wrong) for n in (
        EXACT, replace(EXACT, tilt_bias=0.01, torque_bias=1.0)))
    found = instrument_errors(aware, true.model)
    np.testing.assert_allclose(found.tilts[true.model.config.imu.frame][:2], tilt[:2], atol=3e-4)
    assert np.corrcoef(found.torque_offsets, torques)[0, 1] > 0.8
    # Taken off, they leave no more than noise.
    assert aware.after.com_rms < 0.5 * unaware.after.com_rms
    assert aware.after.torque_rms < 0.5 * unaware.before.torque_rms


@pytest.mark.thorough
def test_noise_beyond_what_was_assumed_widens_the_uncertainty(sabian):
    loud = SensorNoise(force=2.0, moment=0.1, torque=1.0, encoder=np.radians(0.4), tilt=4e-3,
                       **PERFECT)
    captures = sabian.captures(30, loud)
    found, expected = (Estimator(sabian.model, n).solve(captures) for n in (EXACT, loud))
    assert 2.5 < found.noise_scale < 5.0 and expected.noise_scale < 1.15
    assert any('times the assumed noise' in warning for warning in found.warnings)
    assert found.mass_std > 0.4 * expected.mass_std


def test_feet_are_weighed_once_they_were_lifted_or_the_robot_was_hoisted(sabian):
    """No foot on the ground: the sensors weigh what hangs on them."""
    estimator = Estimator(sabian.model, EXACT)
    both = [sabian.capture(FEET[2], NOISE, name=str(i)) for i in range(12)]
    air = replace(both[0], in_contact=np.zeros(2, dtype=bool), name='hoisted')
    readings = estimator.regressor.readings(air, {}, sabian.theta)
    air = replace(air, wrenches=readings,
                  torques=estimator.regressor.torques(air, readings, sabian.theta))
    never, lifted, hoisted = (estimator.solve([*both, *more]) for more in (
        (), [sabian.capture(feet, NOISE) for feet in FEET[:2]], [air]))
    assert any('foot' in w and 'in the air' in w for w in never.warnings)
    assert not any('in the air' in w for w in lifted.warnings)
    assert max(lifted.mass_std, hoisted.mass_std) < 0.5 * never.mass_std
    assert hoisted.mass == pytest.approx(sabian.static.mass, abs=0.15)
    assert np.isnan(hoisted.before.com[-1]).all() and np.isfinite(hoisted.validated.com_rms)
    page = html_report(sabian.model, [*both, air], hoisted)
    assert 'hoisted, where the feet measure no centre of mass' in page
    assert 'without a dot' not in html_report(sabian.model, both, never)
    numbers = re.findall(r'text-anchor="middle">(\d+)<', page)
    assert numbers[:3] == ['1', '2', '3']  # one for each pose, below its dots


def test_a_dead_torque_sensor_is_named_and_left_out(sabian):
    joint = sabian.model.joint_names.index('l_shoulder_pitch')
    dead = [replace(c, torques=np.where(np.arange(len(c.torques)) == joint, 0.0, c.torques))
            for c in sabian.captures(24)]
    found = Estimator(sabian.model, EXACT).solve(dead)
    assert any("'l_shoulder_pitch'" in w and 'check the torque sensor' in w
               for w in found.warnings)
    assert np.isnan(found.after.torque[:, joint]).all()


def test_torques_at_an_end_stop_are_left_out(sabian):
    """A joint that leans on its limit: the end stop carries load, too."""
    joint = sabian.model.joint_names.index('l_elbow')
    captures, leaning = [], []
    for i in range(10):
        q = sabian.positions(FEET[i % 3])
        if i in (2, 5, 8):
            q[joint] = position_limits(sabian.model)[1][joint]
        captures.append(sabian.capture(FEET[i % 3], NOISE, q))
        carried = 15.0 * (i in (2, 5, 8)) * np.eye(len(q))[joint]
        leaning.append(replace(captures[i], torques=captures[i].torques + carried))
    found, clean = (Estimator(sabian.model, EXACT).solve(data) for data in (leaning, captures))
    assert any('end stop' in w and 'l_elbow (3 of 10)' in w for w in found.warnings)
    np.testing.assert_allclose(found.parameters, clean.parameters)


def test_a_link_with_a_shape_but_no_mass_is_named(sabian):
    urdf = ElementTree.fromstring(sabian.model.urdf)
    head = urdf.find("link[@name='head']")
    head.remove(head.find('inertial'))
    model = RobotModel(sabian.model.config, ElementTree.tostring(urdf, encoding='unicode'))
    found = Estimator(model, EXACT).solve(sabian.captures(6))
    assert any("'head' of the URDF: a shape but no mass" in w for w in found.warnings)


@pytest.mark.parametrize(('count', 'problem'), [
    (0, 'no capture'), (1, 'at least 2'), (5, 'are one pose')])
def test_too_little_data_is_refused(sabian, count, problem):
    with pytest.raises(InputError, match=problem):
        Estimator(sabian.model).solve([sabian.capture(('left',), NOISE)] * count)


@pytest.mark.thorough
def test_centres_of_mass_stay_within_the_geometry():
    true = TrueRobot('sabian', seed=6, com_sigma=0.03)
    bounds = com_bounds(true.model)
    found = Estimator(true.model, EXACT, Prior(com_sigma=0.05, com_bounds=bounds)).solve(
        true.captures(30))
    for link in found.links:
        low, high = bounds[link.name]
        assert (link.com > np.array(low) - 0.026).all(), link.name
        assert (link.com < np.array(high) + 0.026).all(), link.name
    with pytest.raises(UnknownNameError, match='torsoo'):
        PriorTerms(true.model, Prior(com_bounds={'torsoo': bounds['torso']}))


def test_prior_derivatives():
    """Gradient and Hessian of every term, barriers included, against differences."""
    model = RobotModel.load('sabian')
    terms = PriorTerms(model, Prior(com_bounds=com_bounds(model), consistency=0.3))
    rng, step, spread = np.random.default_rng(0), 1e-5, Spread(0.3, 0.7)
    terms.reference = terms.masses * rng.uniform(0.5, 2.0, len(terms.masses))
    x = 0.05 * rng.normal(size=4 * len(terms.masses))
    assert terms.is_inside(x)
    gradient, hessian = terms.derivatives(x, spread)
    directions = step * np.eye(len(x))
    numeric = [(terms.value(x + d, spread) - terms.value(x - d, spread)) / (2 * step)
               for d in directions]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    numeric = [(terms.derivatives(x + d, spread)[0] - terms.derivatives(x - d, spread)[0])
               / (2 * step) for d in directions]
    np.testing.assert_allclose(hessian, numeric, atol=1e-5)


def test_masses_stay_positive():
    """The barrier is in the prior itself, however the data pull."""
    model = RobotModel.load('sabian')
    terms = PriorTerms(model, Prior())
    x = np.zeros(4 * len(terms.masses))
    x[12] = -1.0 + 1e-12
    assert terms.value(x, Spread(0.5)) > 50.0
    x[12] = -1.0 - 1e-9
    assert not terms.is_inside(x)


@pytest.mark.parametrize('options', ({'com_sigma': 0.0}, {'mass_sigma': -0.1},
                                     {'mass_sigma': math.nan}))
def test_nonsense_priors_are_refused(options):
    with pytest.raises(ConfigurationError, match='sigma'):
        Prior(**options)


@pytest.mark.thorough
def test_known_masses_stay_and_centres_of_mass_are_found():
    true = TrueRobot('sabian', seed=4, extra=0.0)
    model, captures = true.model, true.captures(25)
    found, free = (Estimator(model, EXACT, prior).solve(captures)
                   for prior in (with_known_masses(Prior()), Prior()))
    masses, free_masses = (np.array([link.mass for link in f.links]) for f in (found, free))
    np.testing.assert_allclose(masses, model.link_masses, rtol=5e-4)
    assert np.abs(free_masses / model.link_masses - 1.0).max() > 2e-3
    poses = [true.positions(('left',)) for _ in range(20)]
    before, after = (com_error(true, Estimator(model), theta, poses)
                     for theta in (parameters_of(model), found.parameters))
    assert after < 0.2 * before
    assert found.mass_std < 1e-3 * model.mass


def test_a_robot_that_cannot_stand_on_both_feet_is_named_instead_of_tried_for_ever():
    with pytest.raises(InputError, match='three_link cannot stand on both feet in .* poses: '):
        TrueRobot('three_link').captures(3)
