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

from dataclasses import replace
import json

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture import noise_scale, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.equations.instruments import (
    InstrumentCalibration, InstrumentEstimate, InstrumentKind)
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.posterior import NormalEquations
from biped_com_ros.core.identification.estimation.prior import Prior, PriorTerms, Spread
from biped_com_ros.core.identification.fleet import (
    describe_fleet, fleet_report, read_prior, unit_result, UnitResult, write_prior)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.statics_data import NOISE, PERFECT, TrueRobot

UNITS, MANY, FEW, TESTED = 40, 18, 6, 30
SCATTER = (0.01, 0.0015)  # of masses, and of centres of mass in m


class SimulatedFleet:
    """Units whose data are drawn from the linear equations of poses, instruments included."""

    def __init__(self):
        true = TrueRobot('three_link', seed=1, extra=0.0)
        self.model, self.rng = true.model, np.random.default_rng(5)
        self.estimator = Estimator(
            self.model, SensorNoise().scaled(noise_scale(self.model.mass, 64.0)))
        self.rows = [self.estimator.rows(true.capture((('left',), ('right',))[i % 2]))
                     for i in range(2 * MANY)]
        L = len(self.model.link_names)
        self.cad = parameters_of(self.model)
        self.common = self.drawn(0.06, 0.008)
        self.T = self.estimator.prior_scaling(1.0)
        self.size = 4 * L
        self.poses = [self.model.posture('stand') + self.rng.uniform(
            -0.4, 0.4, len(self.model.joint_names)) for _ in range(6)]

    def drawn(self, mass, com):
        """Return random deviations of parameters from the URDF, (4 L,)."""
        m, c = self.cad[:, :1], self.cad[:, 1:] / self.cad[:, :1]
        change = mass * self.rng.normal(size=m.shape)
        shift = com * self.rng.normal(size=c.shape)
        return np.concatenate((m * change, m * (1 + change) * (c + shift) - m * c), axis=1).ravel()

    def unit(self, name, count, truth=None):
        """Return a unit's true deviation and what `count` of its poses say, without any prior."""
        truth = self.common + self.drawn(*SCATTER) if truth is None else truth
        picked = self.rng.choice(len(self.rows), count, replace=False)
        H = np.concatenate([self.rows[i] for i in picked])
        z = self.rng.normal(size=H.shape[1] - self.size)
        x = np.concatenate((np.linalg.solve(self.prior_T, truth), z))
        y = H @ x + self.rng.normal(size=len(H))
        equations = NormalEquations(PriorTerms(self.model, Prior()), H.T @ H, H.T @ y)
        inverse = np.linalg.inv(self.prior_T)
        return truth, UnitResult(
            name=name, robot='three_link', poses=count, links=tuple(self.model.link_names),
            cad=self.cad, matrix=inverse.T @ equations.G @ inverse, vector=inverse.T @ equations.g,
            instruments=InstrumentCalibration(), instrument_spread=np.zeros(0),
            link_spread=np.array((0.1, 0.015)))

    @property
    def prior_T(self):
        return self.estimator.prior_scaling()

    def com_error(self, unit, truth, mean, covariance):
        """Return errors of the total CoM over poses, m, and their standard deviations, (k,)."""
        P = np.linalg.inv(covariance)
        V = np.linalg.inv(unit.matrix + P)
        x = V @ (unit.vector + P @ mean)
        errors, sds = [], []
        for q in self.poses:
            J = self.estimator.regressor.com_derivative(q, self.cad)[:2]
            errors.append(J @ (x - truth))
            sds.append(np.sqrt(np.diag(J @ V @ J.T)))
        return np.ravel(errors), np.ravel(sds)


@pytest.fixture(scope='module')
def fleet():
    """Return a simulated fleet, its units, and the report of them."""
    simulated = SimulatedFleet()
    units = [simulated.unit(f'unit {i}', MANY)[1] for i in range(UNITS)]
    return simulated, units, fleet_report(units)


def test_a_new_unit_needs_a_third_of_the_poses(fleet):
    simulated, _, report = fleet
    own = np.diag((simulated.prior_T ** 2).sum(axis=1))
    mean = (report.prior.mean - simulated.cad).ravel()
    rms, normal = {}, []
    for name, count, prior in (('alone', MANY, (np.zeros_like(mean), own)),
                               ('few, alone', FEW, (np.zeros_like(mean), own)),
                               ('few, fleet', FEW, (mean, report.prior.covariance))):
        errors = []
        for _ in range(TESTED):
            truth, unit = simulated.unit('new', count)
            error, sd = simulated.com_error(unit, truth, *prior)
            errors.append(error)
            if name == 'few, fleet':
                normal.append(error / sd)
        rms[name] = 1e3 * np.sqrt(np.mean(np.square(errors)))
    assert rms['few, fleet'] <= rms['alone'] < rms['few, alone'], rms
    assert np.mean(np.abs(normal) < 1.96) > 0.92
    assert np.mean(np.square(normal)) > 0.3  # nor is the uncertainty much too large


def test_errors_of_the_cad_are_found_and_scatter_is_that_of_production(fleet):
    simulated, _, report = fleet
    truth = np.linalg.solve(simulated.T, simulated.common)
    masses = [e for e in report.errors if e.name.startswith('mass of ')]
    cad = simulated.cad[:, 0]
    error = np.array([e.mean for e in masses]) - cad * truth[:len(cad)]
    sd = np.array([e.mean_std for e in masses])
    assert (np.abs(error) < 3.5 * sd).mean() > 0.93
    assert any(e.is_significant for e in masses)
    heavy = max(masses, key=lambda e: abs(e.mean) / e.mean_std)
    assert heavy.mean * truth[masses.index(heavy)] > 0.0
    known = [e for e in report.errors if e.unit == 'm' and e.known > 0.3 * UNITS]
    assert known and np.median([e.scatter for e in known]) == pytest.approx(SCATTER[1], rel=0.6)
    text = describe_fleet(report)
    assert 'off in all units: correct the CAD' in text and heavy.name in text


def test_a_unit_with_a_wrong_part_is_named(fleet):
    simulated, units, clean = fleet
    assert not clean.outliers
    wrong, i = simulated.common.copy(), simulated.model.link_names.index('l_thigh')
    wrong[4 * i:4 * i + 4] += 0.4 * simulated.cad[i]
    _, odd = simulated.unit('odd', MANY, wrong)
    report = fleet_report([*units, odd])
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
            instrument_spread=np.full(2, 2.0)))
    report = fleet_report(own)
    left, right = report.instruments
    assert left.is_significant and left.mean == pytest.approx(1.5, abs=0.1)
    assert left.scatter == pytest.approx(0.1, rel=0.5) and not right.is_significant
    assert [(d.unit, d.name) for d in report.outliers] == [('unit 3', 'bias fz of right')]
    plain = json.loads(json.dumps(own[3].to_plain()))
    again = UnitResult.from_plain(plain)
    np.testing.assert_allclose(again.matrix, own[3].matrix, rtol=1e-7)
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
    C = estimator.regressor.com_matrix(q)
    com = [C @ theta.ravel() / theta[:, 0].sum()
           for theta in (alone.parameters, found.parameters, true.theta)]
    assert np.linalg.norm(com[1] - com[2]) < 0.7 * np.linalg.norm(com[0] - com[2])
    assert (found.com_std(estimator.regressor, q) < alone.com_std(estimator.regressor, q)).all()
