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
"""The estimate where instruments are wrong: derivatives, honesty, friction, outliers."""

from dataclasses import replace
import json
import math
import re

from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.equations.friction import UnknownFriction
from biped_com_ros.core.identification.equations.instrument_parameters import InstrumentParameters
from biped_com_ros.core.identification.equations.instruments import (
    InstrumentCalibration, InstrumentEstimate, InstrumentKind, MATRIX_AXES, times_of)
from biped_com_ros.core.identification.estimation.confounding import best_candidates
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.prior import Prior
from biped_com_ros.core.identification.output.report import html_report
from biped_com_ros.core.identification.output.results import summary
from biped_com_ros.core.model.efforts import effort_limits
import numpy as np
import pytest
from support.statics_data import (
    com_error, instrument_errors, measure, NOISE, PERFECT, TrueRobot, without_torques)

GROUND = {InstrumentKind.FLOOR_TILT, InstrumentKind.SOLE_TURN, InstrumentKind.SOLE_HEIGHT}
FEET = (('left',), ('right',), ('left', 'right'))


def unknowns(true, captures):
    """Return the instruments' unknowns of a robot whose motors are as strong as its URDF says."""
    regressor, limits = StaticsRegressor(true.model), effort_limits(true.model)
    return InstrumentParameters(
        regressor, NOISE, captures, np.where(np.isfinite(limits), limits, 0.0))


def draw(parameters, seed, factor=1.0):
    """Return errors as likely as assumed."""
    rng = np.random.default_rng(seed)
    values = factor * parameters.sigma * rng.normal(size=len(parameters.sigma))
    return parameters.errors(values), values


def measured(true, count, seed, kinds=None):
    """Return captures by instruments with random errors of some kinds, and all unknowns."""
    rng = np.random.default_rng(seed)
    exact = [replace(true.capture(FEET[i % 3], NOISE, name=str(i)), approach=rng.choice(
        (-1.0, 1.0), len(true.model.joint_names))) for i in range(count)]
    parameters = unknowns(true, exact)
    _, values = draw(parameters, seed)
    keep = [(kinds is None or e.kind in kinds) and e.kind not in GROUND
            for e in parameters.estimates(values, values)]
    values = np.where(keep, values, 0.0)
    errors = parameters.errors(values)
    return [measure(c, errors, t) for c, t in zip(exact, times_of(exact))], values


@pytest.mark.parametrize('name', ('sabian', pytest.param('talos', marks=pytest.mark.thorough)))
def test_derivatives_by_all_unknowns(name):
    """Corrected captures are exact; every column against differences of their residuals."""
    true = TrueRobot(name, seed=1)
    regressor, sides = StaticsRegressor(true.model), true.rng.choice(
        (-1.0, 1.0), len(true.model.joint_names))
    for standing in (('left',), ('left', 'right')):
        exact = replace(true.capture(standing), approach=sides)
        parameters = unknowns(true, [exact])
        errors, values = draw(parameters, 2, 2.0)
        capture = measure(exact, errors, 0.4)
        corrected = errors.corrected(capture, 0.4)
        for what in ('positions', 'torques', 'wrenches', 'up'):  # as of perfect instruments
            np.testing.assert_allclose(getattr(corrected, what), getattr(exact, what), atol=1e-9)
        e = regressor.equations(corrected, true.theta)
        analytic = parameters.columns(corrected, e, true.theta, errors, 0.4) * parameters.sigma

        def residual(at, parameters=parameters, capture=capture):
            moved = parameters.errors(at).corrected(capture, 0.4)
            return regressor.residual(moved, true.theta)[1]

        steps = 1e-4 * np.diag(parameters.sigma)
        numeric = np.array([residual(values + d) - residual(values - d) for d in steps]).T / 2e-4
        np.testing.assert_allclose(analytic, numeric, atol=1e-4)
        assert (np.abs(numeric).max(axis=0) > 0.0).mean() > 0.5


def test_intervals_hold_where_all_instruments_are_wrong():
    """Errors as likely as assumed, all at once: 95 % intervals cover the truth about as often."""
    coms, instruments, ratio = [], [], []
    for seed in (1, 2):
        true = TrueRobot('sabian', seed=seed, com_sigma=0.008)
        captures, values = measured(true, 30, seed)
        estimator = Estimator(true.model)
        found = estimator.solve(captures)
        z = [(e.estimate - value) / e.sd for e, value in zip(
            found.instruments.estimates, values, strict=True)]
        instruments += (np.abs(z) < 1.96).tolist()
        ratio.append(found.validation_ratio)
        for _ in range(8):
            q = true.positions(('left',))
            apart = (estimator.regressor.com_matrix(q) @ (
                found.parameters / found.mass - true.theta / true.static.mass).ravel())
            coms += (np.abs(apart) < 1.96 * found.com_std(estimator.regressor, q)).tolist()
        assert abs(found.mass - true.static.mass) < 3.0 * found.mass_std
    assert np.mean(coms) > 0.85 and 0.9 < np.mean(instruments) < 1.0
    assert 0.85 < np.mean(ratio) < 1.15


@pytest.mark.thorough
def test_noise_of_readings_does_not_pull_the_mass_down():
    """
    Sensors whose gains are right but not known, noise and its mirror image on a true URDF.

    What is linear in the noise cancels in the mean of both. What remains is the pull of noise in
    readings that multiply an unknown.
    """
    true = TrueRobot('biped', extra=0.0, lumps=1, com_sigma=0.0)
    noise = SensorNoise(**{**PERFECT, 'wrench_gain': 0.1})
    estimator = Estimator(true.model, noise, Prior(mass_sigma=0.35, com_factors=(1.0,)))
    exact, rng = true.captures(24, noise=None), true.rng
    sigma = np.where(estimator.regressor.is_prismatic, NOISE.slide, NOISE.encoder)
    scatter = [(sigma * rng.normal(size=len(sigma)), rng.normal(size=(2, 6)) * (
        [NOISE.force] * 3 + [NOISE.moment] * 3), NOISE.torque * rng.normal(size=len(sigma)))
        for _ in exact]
    found = [estimator.solve([replace(
        c, positions=c.positions + sign * q, wrenches=c.wrenches + sign * w,
        torques=c.torques + sign * t) for c, (q, w, t) in zip(exact, scatter)], folds=2)
        for sign in (-1, 1)]
    apart = [(f.mass - true.static.mass) / f.mass_std for f in found]
    assert abs(np.mean(apart)) < 0.2  # 1.3 with derivatives taken at the readings themselves


@pytest.mark.thorough
def test_friction_leaves_torques_better_than_none():
    """5 % of the effort limits, with unknown sign, and from known sides."""
    true = TrueRobot('sabian', seed=4)
    rng, limits = np.random.default_rng(3), effort_limits(true.model)
    friction = 0.05 * np.where(np.isfinite(limits), limits, 0.0)
    known = []
    for i in range(36):
        side = rng.choice((-1.0, 1.0), len(friction))
        c = true.capture(FEET[i % 3], NOISE, name=str(i))
        known.append(replace(c, torques=c.torques + side * friction, approach=side))
    estimator = Estimator(true.model)
    unknown = [replace(c, approach=None) for c in known]
    found = [estimator.solve(data) for data in (unknown, known, without_torques(known))]
    poses = [true.positions(('left',)) for _ in range(12)]
    by_unknown, by_known, without = (
        com_error(true, estimator, f.parameters, poses) for f in found)
    assert by_unknown < min(0.7 * without, 0.8e-3) and by_known < min(0.7 * without, 0.7e-3)
    estimate = instrument_errors(found[1], true.model).friction
    np.testing.assert_allclose(estimate, friction, atol=0.5)


def test_a_sensor_that_contradicts_its_noise_is_named_and_counts_less():
    true = TrueRobot('sabian', seed=4)
    rng, captures = np.random.default_rng(0), true.captures(30)
    loud = [replace(c, wrenches=c.wrenches + np.outer(
        (1.0, 0.0), [10.0] * 3 + [1.0] * 3) * rng.normal(size=(2, 6))) for c in captures]
    found = Estimator(true.model, SensorNoise(**PERFECT)).solve(loud)
    assert any("moments of sensor 'left_foot' contradict" in w for w in found.warnings)
    assert not any('right_foot' in w for w in found.warnings)
    scales = {(n.kind, n.name): n.scale for n in found.noise}
    assert scales['moment', 'left_foot'] > 10.0 and scales['moment', 'right_foot'] < 2.0


def test_one_axis_of_a_sensor_may_be_ten_times_as_noisy():
    """Each axis has its own scale, so that the others keep their weight."""
    true = TrueRobot('sabian', seed=4)
    rng, captures = np.random.default_rng(0), true.captures(30)
    loud = [replace(c, wrenches=c.wrenches + np.outer(
        (1.0, 0.0), (5.0, 0, 0, 0, 0, 0)) * rng.normal(size=(2, 6))) for c in captures]
    found = Estimator(true.model, SensorNoise(**PERFECT)).solve(loud)
    scales = {(n.name, n.axis): n.scale for n in found.noise if n.kind in ('force', 'moment')}
    assert len(scales) == 12
    assert scales.pop(('left_foot', 'fx')) == pytest.approx(10.0, rel=0.4)
    assert max(scales.values()) < 2.0
    named = [w for w in found.warnings if 'left_foot' in w]
    assert len(named) == 1 and '(fx, the worst axis)' in named[0]


def test_drift_goes_by_time_and_not_by_the_sequence_of_captures():
    """A bias that drifts, captures at uneven times: in any sequence the same, and right."""
    true, rng = TrueRobot('sabian', seed=3), np.random.default_rng(0)
    times = np.cumsum(rng.uniform(1.0, 200.0, 24))
    share = (times - times[0]) / np.ptp(times) - 0.5
    drift = np.zeros((2, 6))
    drift[0, 2] = 12.0
    captures = [replace(c, time=float(t), wrenches=c.wrenches + s * drift) for c, t, s in zip(
        true.captures(24), times, share)]
    estimator = Estimator(true.model, SensorNoise(**{**PERFECT, 'force_drift': 10.0}))
    shuffled = [captures[k] for k in rng.permutation(24)]
    found, same = estimator.solve(captures), estimator.solve(shuffled)
    by_sequence = estimator.solve([replace(c, time=math.nan) for c in shuffled])
    np.testing.assert_allclose(found.parameters, same.parameters, atol=1e-6)
    assert found.validation_ratio == pytest.approx(same.validation_ratio, rel=1e-6)
    fz = [instrument_errors(f, true.model).wrench_drifts[0, 2] for f in (found, by_sequence)]
    assert fz[0] == pytest.approx(12.0, abs=1.0) and abs(fz[1] - 12.0) > 4.0


def test_the_deviation_of_the_mass_contains_how_recordings_differ():
    """A gain of each recording, about as large as assumed, is within two deviations."""
    true, z, com = TrueRobot('sabian', seed=6), [], []
    quiet = SensorNoise(**PERFECT)
    for noise in (quiet, replace(quiet, recording_gain=0.02)):
        estimator = Estimator(true.model, noise)
        for gain in (-0.03, 0.02):
            recording = [replace(c, wrenches=(1.0 + gain) * c.wrenches,
                                 torques=(1.0 + gain) * c.torques) for c in true.captures(10)]
            found = estimator.solve(recording)
            z.append((found.mass - true.theta[:, 0].sum()) / found.mass_std)
            com.append(found.com_error)
    assert np.abs(z[:2]).min() > 5.0 and 0.5 < np.abs(z[2:]).max() < 1.96
    # A gain scales masses and first moments alike: the centre of mass is as certain as before.
    np.testing.assert_allclose(com[2:], com[:2], rtol=0.25)


@pytest.mark.thorough
def test_one_wrong_pose_is_named_and_hardly_counts():
    true = TrueRobot('sabian', seed=1)
    captures = true.captures(24)
    estimator = Estimator(true.model, SensorNoise(**PERFECT))
    wrong = list(captures)
    wrong[7] = replace(captures[7], positions=captures[8].positions)
    good, robust = estimator.solve(captures), estimator.solve(wrong)
    assert any("'7'" in w and 'capture it again' in w for w in robust.warnings)
    assert int(robust.pose_misfit.argmax()) == 7
    poses = [true.positions(('left',)) for _ in range(12)]
    errors = [com_error(true, estimator, f.parameters, poses) for f in (good, robust)]
    assert errors[1] < 2.0 * errors[0] + 0.2e-3


@pytest.mark.thorough
def test_what_cannot_be_distinguished_is_named():
    """A sensor's place and its cross-talk do the same."""
    true = TrueRobot('sabian', seed=1)
    captures, _ = measured(true, 24, 1, {InstrumentKind.SENSOR_SHIFT})
    found = Estimator(true.model, SensorNoise(sensor_shift=0.005)).solve(captures)
    by_kind = {a.kind: a for a in found.ambiguities}
    assert 'cross-talk' in by_kind[InstrumentKind.SENSOR_SHIFT].advice
    assert all(u.left > 0.4 and u.alone < 0.1 for a in found.ambiguities for u in a.unknowns)
    lines = summary(found).splitlines()
    count = sum(len(a.unknowns) for a in found.ambiguities)
    text, = (line for line in lines if line.startswith(f'{count} errors of instruments cannot'))
    assert text.count(' (with ') == min(count, 3) and 'report.html' in text
    page = html_report(true.model, captures, found)
    assert page.count('if all others were known') == len(found.ambiguities)


@pytest.mark.thorough
def test_the_posture_that_helps_most_is_named_and_helps():
    """All joints came to rest from one side: friction looks like a torque offset."""
    true = TrueRobot('sabian', seed=1)
    ones = np.ones(len(true.model.joint_names))
    exact = [replace(c, approach=ones) for c in true.captures(15)]
    parameters = unknowns(true, exact)
    _, values = draw(parameters, 1)
    errors = parameters.errors(np.where(
        [e.kind in (InstrumentKind.FRICTION, InstrumentKind.TORQUE_OFFSET)
         for e in parameters.estimates(values, values)], values, 0.0))
    captures = [measure(c, errors, 0.0) for c in exact]
    estimator = Estimator(true.model)
    found = estimator.solve(captures)
    advice = re.compile(
        r"; (torque offset of \w+): '(\d+)' with all joints approached from the other side "
        r'would reduce its variance by (\d+) %')
    what, number, share = next(
        match for a in found.ambiguities if (match := advice.search(a.advice))).groups()
    again = estimator.solve(
        [*captures, measure(replace(exact[int(number)], approach=-ones), errors, 0.0)])
    variance = [next(e.sd ** 2 for e in each.instruments.estimates
                     if e.describe() == what) for each in (found, again)]
    assert float(share) > 20.0
    # Scales, which one more capture narrows, are held in what is stated: it is a lower bound.
    assert 0.01 * float(share) - 0.05 < 1.0 - variance[1] / variance[0] < 1.0


def test_reduction_of_variance_is_that_of_more_equations():
    rng = np.random.default_rng(1)
    G = rng.normal(size=(30, 6))
    covariance = np.linalg.inv(G.T @ G + np.eye(6))
    rows = [(f'{k}', rng.normal(size=(2, 6)) * (0.3 + k)) for k in range(3)]
    rows[1][1][:, 4] = 5.0
    after = [np.diag(np.linalg.inv(np.linalg.inv(covariance) + H.T @ H)) for _, H in rows]
    shares = 1.0 - np.array(after) / np.diag(covariance)
    for unknown in range(6):
        best = int(np.argmax(shares[:, unknown]))
        found, = best_candidates(covariance, [unknown], rows)
        assert found.posture == str(best) and found.describe() == (
            f'{best} would reduce its variance by {100 * shares[best, unknown]:.0f} %')
        assert found.share == pytest.approx(shares[best, unknown])
    assert len(set(np.argmax(shares, axis=0))) > 1
    weak = [('none', 1e-3 * rows[0][1])]
    assert 'none of the known postures helps' in best_candidates(
        covariance, [2], weak)[0].describe()


def spreads(found):
    """Return the least learned spread of each kind of error, by unit, over the assumed one."""
    learned = {}
    for estimate, spread in zip(found.instruments.estimates, found.data.instrument_spread):
        key, ratio = (estimate.kind, estimate.unit), spread / estimate.prior_sd
        learned[key] = min(learned.get(key, ratio), ratio)
    return learned


@pytest.mark.thorough
def test_larger_errors_than_assumed_widen_a_spread_sooner_than_smaller_ones_narrow_it():
    """What nothing shows of a kind stays uncertain, however small its other errors are."""
    true = TrueRobot('sabian', seed=4)
    exact = true.captures(24)
    assert min(spreads(Estimator(true.model).solve(exact)).values()) > 0.5
    random = np.random.default_rng(0)
    offsets = 3.0 * NOISE.encoder_offset * random.normal(size=len(true.model.joint_names))
    wrong = [replace(c, positions=c.positions + offsets) for c in exact]
    assert spreads(Estimator(true.model).solve(wrong))[
        InstrumentKind.JOINT_OFFSET, 'rad'] > 2.0


JOINTS, SENSORS = ('hip', 'knee'), ('left', 'right')


def estimate(kind, name, axis='', value=0.01, sd=0.002, unit='rad'):
    return InstrumentEstimate(kind=kind, name=name, axis=axis, unit=unit, prior_sd=0.01,
                              estimate=value, sd=sd)


def test_a_calibration_survives_its_file():
    K = InstrumentKind
    found = InstrumentCalibration((
        estimate(K.JOINT_OFFSET, 'knee'), estimate(K.TORQUE_GAIN, 'hip', value=-0.03),
        estimate(K.FRICTION, 'hip', unit='N m'), estimate(K.TILT, 'imu', 'y', 0.004),
        estimate(K.WRENCH_MATRIX, 'left', 'tx,fz', 0.5),
        estimate(K.WRENCH_BIAS, 'left', 'fz', 2.0),
        estimate(K.SENSOR_SHIFT, 'left', 'x', 0.003), estimate(K.SENSOR_TURN, 'left', 'z')))
    again = InstrumentCalibration.from_json(json.loads(json.dumps(found.to_json())))
    assert set(again.estimates) == set(found.estimates)
    errors = again.errors(JOINTS, SENSORS)
    np.testing.assert_array_equal(errors.positions, (0.0, 0.01))
    np.testing.assert_array_equal(errors.torque_gains, (-0.03, 0.0))
    np.testing.assert_array_equal(errors.tilts['imu'], (0.0, 0.004, 0.0))
    assert errors.wrench_matrices[0, 3, 2] == 0.5 and not errors.wrench_matrices[1].any()
    written = found.to_json()['wrench_sensors']['left']
    np.testing.assert_allclose(written['correction'], errors.correction(0))
    np.testing.assert_allclose(written['bias'], (0.0, 0.0, 2.0, 0.0, 0.0, 0.0))
    assert MATRIX_AXES[6 * 3 + 2] == 'tx,fz'


def test_only_what_is_significant_has_a_remedy():
    sure = estimate(InstrumentKind.JOINT_OFFSET, 'knee', value=0.0175)
    assert sure.is_significant and sure.remedy.endswith('it reads 1.00 deg too much')
    other_way = estimate(InstrumentKind.JOINT_OFFSET, 'knee', value=-0.0175)
    assert other_way.remedy.endswith('it reads 1.00 deg too little')
    unsure = estimate(InstrumentKind.JOINT_OFFSET, 'knee', value=0.004)
    assert not unsure.is_significant and unsure.remedy == ''


def test_friction_is_not_negative():
    """A joint that still moves, or came from the other side, seems to have such friction."""
    friction = estimate(InstrumentKind.FRICTION, 'knee', value=0.5)
    assert friction.is_significant and friction.remedy.startswith('model 0.50 ')
    negative = estimate(InstrumentKind.FRICTION, 'knee', value=-0.5)
    assert negative.is_significant and 'model' not in negative.remedy
    assert negative.remedy.startswith('none is negative: rest longer')


COUNT, SIGMA, ASSUMED = 60, 0.3, 2.0


def samples(side=None):
    return [Capture(
        positions=np.zeros(1), wrenches=np.zeros((0, 6)), in_contact=np.zeros(0, dtype=bool),
        up=np.eye(3)[2], up_frame='', torques=np.zeros(1), approach=side) for _ in range(COUNT)]


def learn(error, known, passes=6):
    """
    Let the errors be learned, (COUNT,), of each of which other data say `known` +- its sd.

    Returns the means, and the variances, that stand for the mixture.
    """
    friction = UnknownFriction(samples(), np.array([ASSUMED]))
    rng, nominal = np.random.default_rng(1), np.full((COUNT, 1), SIGMA ** 2)
    estimates = (error + known * rng.normal(size=COUNT))[:, np.newaxis]
    variances = nominal + ASSUMED ** 2
    for _ in range(passes):
        share = variances / (variances + known ** 2)
        errors = share * (estimates - friction.means) / np.sqrt(variances)
        friction.update(errors, share, variances, nominal)
        variances = np.array([
            friction.variances(k, v + ASSUMED ** 2) for k, v in enumerate(nominal)])
    return friction, friction.means[:, 0], variances[:, 0]


def test_friction_is_subtracted_where_its_sign_is_evident():
    rng = np.random.default_rng(0)
    error = 3.0 * rng.choice((-1.0, 1.0), COUNT) + SIGMA * rng.normal(size=COUNT)
    friction, means, variances = learn(error, 0.5)
    assert friction.learned.all() and (np.sign(means) == np.sign(error)).all()
    np.testing.assert_allclose(np.abs(means), 3.0, rtol=0.15)
    assert np.sqrt(variances).max() < 0.8
    # The friction is larger than assumed, and that is said.
    assert friction.ratio[0] == pytest.approx(3.0 ** 2 / ASSUMED ** 2, rel=0.3)


def test_friction_is_noise_where_its_sign_is_open():
    rng = np.random.default_rng(0)
    _, means, variances = learn(2.0 * rng.choice((-1.0, 1.0), COUNT), 8.0)
    assert np.abs(means).max() < 0.3 and np.sqrt(variances).min() > 1.0


@pytest.mark.parametrize('known', (0.2, 1.0, 3.0))
def test_friction_anywhere_between_both_sides_is_not_trusted_too_much(known):
    """Of errors that fill the interval, nine in ten are within two standard deviations."""
    rng = np.random.default_rng(0)
    error = rng.uniform(-4.0, 4.0, COUNT)
    _, means, variances = learn(error, known)
    z = (error - means) / np.sqrt(variances)
    assert (np.abs(z) < 2.0).mean() > 0.9 and np.sqrt(np.mean(z ** 2)) < 1.3


def test_known_sides_are_left_to_the_estimate_of_friction():
    friction = UnknownFriction(samples(np.ones(1)), np.array([ASSUMED]))
    nominal = np.full((COUNT, 1), SIGMA ** 2)
    assert friction.update(nominal, 0.5 * np.ones((COUNT, 1)), nominal, nominal) == 0.0
    assert not friction.learned.any() and not friction.means.any()
    np.testing.assert_array_equal(friction.variances(0, nominal[0]), nominal[0])
