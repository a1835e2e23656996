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
"""Fleets of simulated units: what they teach about the CAD, and about the next unit."""

from copy import copy
from dataclasses import replace
import json

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture import noise_scale, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.equations.instruments import (
    InstrumentCalibration, InstrumentEstimate, InstrumentKind)
from biped_com_ros.core.identification.estimation.estimates import DataInformation
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.posterior import NormalEquations
from biped_com_ros.core.identification.estimation.prior import Prior, PriorTerms, Spread
from biped_com_ros.core.identification.fleet import (
    describe_fleet, fleet_report, read_prior, unit_result, UnitResult, write_prior)
from biped_com_ros.core.identification.population import estimate_population, SHARE
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.statics_data import NOISE, PERFECT, total_com, TrueRobot

UNITS, POSES = 40, 18
SCATTER = (0.01, 0.0015)  # of masses, and of centres of mass in m


class SimulatedFleet:
    """Units whose data are drawn from the linear equations of poses, instruments included."""

    def __init__(self):
        true = TrueRobot('three_link', seed=1, extra=0.0)
        self.model, self.rng = true.model, np.random.default_rng(5)
        self.estimator = Estimator(
            self.model, SensorNoise().scaled(noise_scale(self.model.mass, 64.0)))
        self.rows = [self.estimator.rows(true.capture((('left',), ('right',))[i % 2]))
                     for i in range(2 * POSES)]
        self.cad = parameters_of(self.model)
        self.common = self.drawn(0.06, 0.008)

    def drawn(self, mass, com):
        """Return random deviations of parameters from the URDF, (4 L,)."""
        m, c = self.cad[:, :1], self.cad[:, 1:] / self.cad[:, :1]
        change = mass * self.rng.normal(size=m.shape)
        shift = com * self.rng.normal(size=c.shape)
        return np.concatenate((m * change, m * (1 + change) * (c + shift) - m * c), axis=1).ravel()

    def unit(self, name, more=0.0, poses=POSES, truth=None):
        """Return what poses of a unit say of it, without any prior."""
        truth = self.common + self.drawn(*SCATTER) + more if truth is None else truth
        picked = self.rng.choice(len(self.rows), poses, replace=False)
        H = np.concatenate([self.rows[i] for i in picked])
        inverse = np.linalg.inv(self.estimator.prior_scaling())
        x = np.concatenate((
            inverse @ truth, self.rng.normal(size=H.shape[1] - len(truth))))
        y = H @ x + self.rng.normal(size=len(H))
        equations = NormalEquations(PriorTerms(self.model, Prior()), H.T @ H, H.T @ y)
        return UnitResult(
            name=name, robot='three_link', poses=poses, links=tuple(self.model.link_names),
            cad=self.cad, instruments=InstrumentCalibration(), data=DataInformation(
                inverse.T @ equations.G @ inverse, inverse.T @ equations.g, np.zeros(0),
                np.array((0.1, 0.015))))


@pytest.fixture(scope='module')
def fleet():
    """Return a simulated fleet, its units, and the report of them."""
    simulated = SimulatedFleet()
    units = [simulated.unit(f'unit {i}') for i in range(UNITS)]
    return simulated, units, fleet_report(units)


def test_a_new_unit_needs_a_third_of_the_poses(fleet):
    simulated, report = copy(fleet[0]), fleet[2]
    simulated.rng = np.random.default_rng(7)
    mean = (report.prior.mean - simulated.cad).ravel()
    own = np.diag((simulated.estimator.prior_scaling() ** 2).sum(axis=1))
    priors = {'alone': (POSES, 0.0 * mean, own), 'few, alone': (POSES // 3, 0.0 * mean, own),
              'few, fleet': (POSES // 3, mean, report.prior.covariance)}
    stand, rng = simulated.model.posture('stand'), simulated.rng
    J = np.concatenate([simulated.estimator.regressor.com_derivative(q, simulated.cad)[:2]
                        for q in stand + rng.uniform(-0.4, 0.4, (6, len(stand)))])
    errors, normal = {name: [] for name in priors}, []
    for _ in range(30):
        truth = simulated.common + simulated.drawn(*SCATTER)
        for name, (poses, expected, covariance) in priors.items():
            unit = simulated.unit('new', poses=poses, truth=truth)
            P = np.linalg.inv(covariance)
            V = np.linalg.inv(unit.data.matrix + P)
            error = J @ (V @ (unit.data.vector + P @ expected) - truth)
            errors[name].append(error)
            if name == 'few, fleet':
                normal.append(error / np.sqrt(np.diag(J @ V @ J.T)))
    rms = {name: np.sqrt(np.mean(np.square(found))) for name, found in errors.items()}
    assert rms['few, fleet'] <= rms['alone'] < rms['few, alone'], rms
    assert np.mean(np.abs(normal) < 1.96) > 0.92
    assert np.mean(np.square(normal)) > 0.3  # nor is the uncertainty much too large


def test_errors_of_the_cad_are_found_and_scatter_is_that_of_production(fleet):
    simulated, _, report = fleet
    truth = np.linalg.solve(simulated.estimator.prior_scaling(1.0), simulated.common)
    masses = [e for e in report.errors if e.name.startswith('mass of ')]
    cad = simulated.cad[:, 0]
    error = np.array([e.mean for e in masses]) - cad * truth[::4]
    sd = np.array([e.mean_std for e in masses])
    assert (np.abs(error) < 3.5 * sd).mean() > 0.93
    assert any(e.is_significant for e in masses)
    heavy = max(masses, key=lambda e: abs(e.mean) / e.mean_std)
    assert heavy.mean * truth[4 * masses.index(heavy)] > 0.0
    known = [e for e in report.errors if e.unit == 'm' and e.known > 0.3 * UNITS]
    assert known and np.median([e.scatter for e in known]) == pytest.approx(SCATTER[1], rel=0.6)
    text = describe_fleet(report)
    assert 'off in all units: correct the CAD' in text and heavy.name in text


def test_a_unit_with_a_wrong_part_is_named(fleet):
    simulated, units, clean = fleet
    assert not clean.outliers
    links = np.array(simulated.model.link_names)
    wrong = np.where(links[:, np.newaxis] == 'l_thigh', 0.4 * simulated.cad, 0.0).ravel()
    report = fleet_report([*units, simulated.unit('odd', wrong)])
    assert report.outliers[0].unit == 'odd' and 'l_thigh' in report.outliers[0].name
    assert {d.unit for d in report.outliers} == {'odd'}
    assert f'odd: {report.outliers[0].name}' in describe_fleet(report)
    np.testing.assert_allclose(report.prior.covariance, clean.prior.covariance, rtol=1e-6)


def test_instruments_over_units(fleet):
    """One sensor reads too much in all units, another in one unit only."""
    _, units, _ = fleet
    rng, kind = np.random.default_rng(0), InstrumentKind.WRENCH_BIAS
    own = []
    for k, unit in enumerate(units):
        values = (1.5 + 0.1 * rng.normal(), 0.1 * rng.normal() + (4.0 if k == 3 else 0.0))
        own.append(replace(unit, instruments=InstrumentCalibration(tuple(
            InstrumentEstimate(kind=kind, name=name, axis='fz', unit='N', prior_sd=2.0,
                               estimate=v + 0.05 * rng.normal(), sd=0.05)
            for name, v in zip(('left', 'right'), values))),
            data=unit.data._replace(instrument_spread=np.full(2, 2.0))))
    report = fleet_report(own)
    left, right = report.instruments
    assert left.is_significant and left.mean == pytest.approx(1.5, abs=0.1)
    assert left.scatter == pytest.approx(0.1, rel=0.5) and not right.is_significant
    assert [(d.unit, d.name) for d in report.outliers] == [('unit 3', 'bias fz of right')]
    plain = json.loads(json.dumps(own[3].to_plain()))
    again = UnitResult.from_plain(plain)
    np.testing.assert_allclose(again.data.matrix, own[3].data.matrix, rtol=1e-7)
    assert fleet_report([*own[:3], again, *own[4:]]).outliers == report.outliers


def test_the_prior_of_a_fleet_in_a_file(fleet, tmp_path):
    simulated, _, report = fleet
    path = tmp_path / 'prior.json'
    write_prior(path, report)
    prior = read_prior(path, simulated.model)
    np.testing.assert_array_equal(prior.mean, report.prior.mean)
    np.testing.assert_array_equal(prior.covariance, report.prior.covariance)
    with pytest.raises(ConfigurationError, match="of 'three_link', whose links are not those of"):
        read_prior(path, RobotModel.load('biped'))
    for text in ('{}', '[]', path.read_text().replace('"format": 1', '"format": 2')):
        path.write_text(text)
        with pytest.raises(ConfigurationError, match='is damaged'):
            read_prior(path, simulated.model)


def test_the_prior_of_a_fleet_is_that_of_the_estimate(fleet):
    """Its derivatives are those of its value, and it is minimal at the fleet's mean."""
    simulated, _, report = fleet
    terms = PriorTerms(simulated.model, Prior(fleet=report.prior))
    (spread,) = terms.prior.spreads
    x = np.linalg.solve(terms.scaling(), (report.prior.mean - simulated.cad).ravel())
    x += 0.01 * np.random.default_rng(0).normal(size=len(x))
    gradient, hessian = terms.derivatives(x, spread)
    for i in (0, 5, len(x) - 1):
        step = 1e-5 * np.eye(len(x))[i]
        difference = (terms.value(x + step, spread) - terms.value(x - step, spread)) / 2e-5
        assert gradient[i] == pytest.approx(difference, rel=1e-4, abs=1e-4)
        beside = terms.derivatives(x + step, spread)[0]
        np.testing.assert_allclose((beside - gradient) / 1e-5, hessian[i], rtol=1e-3, atol=0.1)
    assert terms.deviations(Spread(0.1))[0] < 0.1


def test_units_of_different_robots_and_none(fleet):
    _, units, _ = fleet
    with pytest.raises(InputError, match='have different URDFs'):
        fleet_report([units[0], replace(units[1], cad=1.1 * units[1].cad, name='new CAD')])
    with pytest.raises(InputError, match='no unit of the fleet'):
        fleet_report([])
    with pytest.raises(ConfigurationError, match='not the result of a unit'):
        UnitResult.from_plain({'format': 1})


def test_an_estimate_with_the_prior_of_a_fleet():
    """Three units of the paper's robot, solved as a whole: the fourth is closer with less."""
    noise = SensorNoise(**PERFECT)
    true = TrueRobot('three_link', seed=3, extra=1.0, com_sigma=0.02)
    estimator = Estimator(true.model, noise)

    def captures(count):
        return [true.capture((('left',), ('right',))[i % 2], NOISE) for i in range(count)]
    units = [unit_result(str(i), true.model, estimator.solve(captures(12))) for i in range(3)]
    report = fleet_report(units)
    few = captures(3)
    alone = estimator.solve(few)
    found = Estimator(true.model, noise, Prior(fleet=report.prior)).solve(few)
    q = true.positions(('left',))
    com = [total_com(estimator.regressor, theta, q)
           for theta in (alone.parameters, found.parameters, true.theta)]
    assert np.linalg.norm(com[1] - com[2]) < 0.7 * np.linalg.norm(com[0] - com[2])
    assert (found.com_std(estimator.regressor, q) < alone.com_std(estimator.regressor, q)).all()


D = 6
SIGMA = np.array((1.0, 0.5, 2.0, 1.0, 1.0, 3.0))
SPREAD = np.array((0.05, 0.1, 0.3, 0.02, 0.4, 0.2))


def drawn(rng, units, mean, scatter=SPREAD, rows=4, noise=0.1):
    """Return truths, and what few equations per unit say: no unit alone is determined."""
    truth = mean + scatter * rng.normal(size=(units, D))
    H = rng.normal(size=(units, rows, D)) / noise
    y = np.einsum('nij,nj->ni', H, truth) + rng.normal(size=(units, rows))
    return truth, np.einsum('nki,nkj->nij', H, H), np.einsum('nki,nk->ni', H, y)


def posterior(G, g, mean, covariance):
    """Return what data and a prior say of one unit."""
    P = np.linalg.inv(covariance)
    V = np.linalg.inv(G + P)
    return V @ (g + P @ mean), V


def test_mean_and_scatter_of_units_none_of_which_is_determined():
    rng = np.random.default_rng(1)
    mean = SIGMA * rng.normal(size=D) * 0.5
    _, G, g = drawn(rng, 200, mean)
    assert (np.linalg.matrix_rank(G) < D).all()
    found = estimate_population(G, g, SIGMA)
    assert (np.abs(found.mean - mean) < 3.0 * found.mean_std).all()
    assert (found.mean_std < 0.1 * SIGMA).all()
    ratio = found.scatter / SPREAD
    assert (ratio[[1, 2, 4, 5]] > 0.75).all() and (ratio[[1, 2, 4, 5]] < 1.3).all(), ratio
    # Below the noise of each unit: bounded, and never too small.
    small = [0, 3]
    assert (ratio[small] > 0.75).all() and (found.scatter[small] < 0.1 * SIGMA[small]).all()


def test_a_new_unit_is_covered_and_closer():
    rng = np.random.default_rng(2)
    inside, errors = [], []
    for _ in range(40):
        mean = np.sqrt(1.0 - SHARE) * SIGMA * rng.normal(size=D)
        _, G, g = drawn(rng, 30, mean)
        found = estimate_population(G, g, SIGMA)
        (truth,), (G1,), (g1,) = drawn(rng, 1, mean)
        for at, prior in enumerate(((found.mean, found.covariance),
                                    (np.zeros(D), np.diag(SIGMA ** 2)))):
            x, V = posterior(G1, g1, *prior)
            errors.append((at, np.mean(((x - truth) / SIGMA) ** 2)))
            if not at:
                inside.append(np.abs(x - truth) < 1.96 * np.sqrt(np.diag(V)))
    assert 0.90 < np.mean(inside) < 0.99, np.mean(inside)
    new_error, own_error = (np.mean([e for at, e in errors if at == k]) for k in (0, 1))
    assert new_error < 0.15 * own_error


def test_what_no_data_show_is_known_as_well_as_before():
    G = np.zeros((50, D, D))
    G[:, 0, 0] = 1e6
    found = estimate_population(G, np.zeros((50, D)), SIGMA)
    np.testing.assert_allclose(found.covariance[1:, 1:], np.diag(SIGMA[1:] ** 2), atol=1e-9)
    np.testing.assert_allclose(found.mean, 0.0, atol=1e-9)
    assert found.covariance[0, 0] < 0.05 and (found.known[1:] < 1e-6).all()
    assert np.isnan(found.scores[:, 1:]).all()


def test_order_and_units_do_not_matter():
    rng = np.random.default_rng(4)
    _, G, g = drawn(rng, 30, np.zeros(D))
    found = estimate_population(G, g, SIGMA)
    order, scale = rng.permutation(30), np.array((1e3, 1.0, 2.0, 0.1, 1.0, 5.0))
    again = estimate_population(
        (G / np.outer(scale, scale))[order], (g / scale)[order], SIGMA * scale)
    np.testing.assert_allclose(again.mean, found.mean * scale, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(again.scatter, found.scatter * scale, rtol=1e-6)


def test_one_unit_and_none():
    _, G, g = drawn(np.random.default_rng(6), 1, np.zeros(D))
    one = estimate_population(G, g, SIGMA)
    assert (np.sqrt(np.diag(one.covariance)) <= 1.3 * SIGMA).all() and one.members.all()
    with pytest.raises(InputError, match='there is no unit'):
        estimate_population(G[:0], g[:0], SIGMA)
