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

from functools import cache
from pathlib import Path
import tempfile

from biped_com_ros.core.geometry.wrench import ComLine
from biped_com_ros.core.identification import fleet
from biped_com_ros.core.identification.captures import capture
from biped_com_ros.core.identification.equations import (
    com_measurements, first_moments, instruments)
from biped_com_ros.core.identification.estimation import (
    confounding, estimator, noise_scales, prior)
from biped_com_ros.core.model.corrections import InstrumentCorrections
from biped_com_ros.papers import muscolo_2017
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import robots as r, values as v
from support.any_input.files import changed, written
from support.statics_data import TrueRobot

_DIRECTORY = tempfile.TemporaryDirectory(prefix='any_input_')
_HERE = Path(_DIRECTORY.name)
_NOT_MEASURED = 'not measured, or no foot stands'
_NAN = {'nan_means': _NOT_MEASURED}
_NOISE = capture.SensorNoise()
_COMS = '- {com: [0.1, null, 0.3], sd: [0.1, 1, 0.2], positions: {}, frame: l_foot}\n'


@cache
def _solved():
    """Return a robot, captures of it, and the estimate."""
    true = TrueRobot('three_link')
    taken = [true.capture((foot,), _NOISE) for foot in ('left', 'right') * 2]
    return true.model, taken, estimator.Estimator(true.model).solve(taken, folds=2)


@cache
def _fleet_report():
    unit = fleet.unit_result('unit', _solved()[0], _solved()[2])
    return fleet.fleet_report([unit, unit])


@cache
def _prior_text():
    path = _HERE / 'prior.json'
    fleet.write_prior(path, _fleet_report())
    return path.read_text()


def _captures(least=0, plausible=True):
    one = r.plausible_captures if plausible else r.wild_captures
    return lambda model: st.lists(one(model), min_size=least, max_size=4)


_SOLVED = {'model': st.builds(lambda: _solved()[0]), 'captures': st.builds(lambda: _solved()[1]),
           'found': st.builds(lambda: _solved()[2])}


def _measurement(plausible=True):
    numbers, half = v.lengths if plausible else v.anything, v.vectors((3, 3), st.floats(-0.1, 0.1))
    return lambda model: st.builds(
        com_measurements.ComMeasurement, v.vectors(len(model.joint_names), numbers),
        v.vectors(3, numbers), half.map(lambda L: L @ L.T + 1e-8 * np.eye(3) if plausible else L),
        st.sampled_from(('', *model.link_names)))


_populations = st.tuples(st.integers(0, 6), st.integers(1, 3)).flatmap(lambda shape: st.tuples(
    arrays(float, (*shape, shape[1]), elements=st.floats(-30.0, 30.0)).map(
        lambda H: np.einsum('nki,nkj->nij', H, H)),
    arrays(float, shape, elements=v.lengths),
    v.vectors(shape[1], st.floats(1e-3, 10.0))))
_numbers = st.floats(0.0, 1e6)
_instruments = st.builds(
    instruments.InstrumentEstimate, kind=st.sampled_from(list(instruments.InstrumentKind)),
    name=v.names, axis=st.sampled_from(('', 'x', 'fx')), unit=v.names, prior_sd=_numbers,
    estimate=v.credible, sd=_numbers)


@st.composite
def _covariances(draw):
    found = draw(st.lists(_instruments, max_size=3))
    links = draw(st.lists(v.names, min_size=1, max_size=2))
    n = 4 * len(links) + len(found)
    L = draw(arrays(float, (n, n), elements=st.floats(-1.0, 1.0)))
    return L @ L.T + 0.1 * np.eye(n), found, links


_noises = st.builds(
    noise_scales.NoiseEstimate, kind=st.sampled_from(
        ('encoder', 'tilt', 'force', 'moment', 'sole tilt', 'sole height', 'torque')),
    name=v.names, unit=v.names, assumed=st.floats(1e-3, 1e3), estimated=st.floats(1e-3, 1e3),
    count=st.floats(1.0, 1e6))
_rows = st.integers(1, 4).flatmap(lambda d: st.lists(
    st.integers(1, 3).flatmap(lambda k: arrays(float, (k, d), elements=st.floats(-9.0, 9.0))),
    min_size=1, max_size=5))
_no_times = st.sampled_from((0.0, -1.0, np.nan, np.inf))
_lines = st.builds(ComLine, *[v.lengths] * 4)

TABLES = {
    'identification': {
        'model': r.light_robots, 'captures': _captures(), 'noise': _NOISE,
        'theta': r.parameters},
    # -- captures
    'identification.captures.capture': {'calls': 50, 'capture': r.wild_captures},
    'identification.captures.stillness': {
        'wrenches': lambda model: v.vectors((len(model.config.wrench_sensors), 6))},
    'identification.equations.instruments': {'capture': r.wild_captures},
    'identification.poses.stances': {
        'foot': lambda model: st.sampled_from(list(model.config.feet.values()))},
    # -- equations
    'identification.equations.first_moments': {
        **_NAN, 'standing': lambda model: st.lists(
            st.sampled_from(list(model.config.feet)), unique=True)},
    'identification.equations.com_measurements': {'calls': 50, 'measurement': _measurement()},
    'identification.equations.com_measurements.check_measurement': {
        'measurement': _measurement(plausible=False)},
    'identification.equations.com_measurements.read_com_measurements': {
        **_SOLVED, 'path': changed(_COMS).map(written), 'nan_means': 'the axis is not known'},
    # -- estimation
    'identification.estimation.estimates': _NAN,
    'identification.estimation.estimates.level_rotation': {'nan_means': ''},
    'identification.estimation.estimates.root_mean': {
        'squares': st.lists(_numbers | st.just(np.nan), max_size=4)},
    'identification.estimation.plausibility.check_variety': {
        'captures': _captures(plausible=False)},
    'identification.estimation.plausibility.without_end_stop_torques': {
        **_NAN, 'captures': _captures(least=1)},
    'identification.estimation.plausibility.without_constant_torques': _NAN,
    'identification.estimation.plausibility.fit_warnings': {
        'captures': _captures(least=1), 'misfit': lambda captures: np.ones(len(captures)),
        'noise': st.lists(_noises, max_size=3)},
    'identification.estimation.plausibility.model_warnings': {
        'information': lambda model: np.eye(4 * len(model.link_names))},
    'identification.estimation.turned_sensors': {
        'theta': lambda model: st.none() | r.parameters(model)},
    'identification.estimation.prior': {
        'margin': st.floats(0.0, 1.0), 'com_sigma': v.anything | st.floats(1e-3, 0.1),
        'prior': st.builds(prior.Prior), 'moments': lambda theta: np.ones(len(theta))},
    'identification.estimation.confounding': {
        'ambiguities': _covariances().map(
            lambda drawn: confounding.confounded(*drawn))},
    'identification.estimation.confounding.confounded': {'arguments': _covariances()},
    'identification.estimation.confounding.candidates_of': {
        'calls': 20, **_NAN, 'captures': _captures(least=1)},
    'identification.estimation.confounding.best_candidates': {
        'nan_means': '', 'arguments': _covariances().map(lambda drawn: (
            drawn[0], [0, len(drawn[0]) - 1], [('a', drawn[0][:2]), ('b', drawn[0][2:3])]))},
    # -- fleets
    'identification.population': {
        'calls': 50, 'arguments': _populations,
        'nan_means': 'the data of a unit say too little'},
    'identification.fleet': {
        **_SOLVED, 'calls': 1, 'report': st.builds(_fleet_report), 'path': _HERE / 'written.json'},
    'identification.fleet.fleet_report': {'calls': 3, 'units': st.integers(0, 3).flatmap(
        lambda n: st.builds(lambda: n * [fleet.unit_result(
            'unit', _solved()[0], _solved()[2])]))},
    'identification.fleet.read_prior': {
        'calls': 30, 'path': st.builds(_prior_text).flatmap(changed).map(written)},
    # -- poses
    'identification.poses.pose_candidates': {
        'rows': _rows, 'count': st.integers(0, 3),
        'A': arrays(float, (2, 4), elements=st.floats(-9.0, 9.0))},
    'identification.poses.pose_candidates.exchange': {
        'chosen': lambda rows: st.lists(st.integers(0, len(rows) - 1), unique=True)},
    'identification.poses.transfer': {'calls': 30, 'arguments': st.tuples(
        st.integers(1, 3), st.integers(0, 4)).flatmap(lambda shape: st.tuples(
            v.vectors(shape[0], v.angles), arrays(float, shape[::-1], elements=v.angles),
            st.floats(0.05, 5.0) | _no_times, st.floats(0.1, 2.0) | _no_times))},
    # -- Muscolo's procedures
    'identification.estimation.two_poses': _NAN,
    'identification.estimation.two_poses.com_from_captures': {'nan_means': ''},
    'identification.estimation.moments_from_com.rank_of': {'may_be_infinite': True},
    'identification.estimation.moments_from_com.describe_poses': {'calls': 5},
    'papers.muscolo_2017': {
        'calls': 30, 'leg': v.plain(5, v.positive).map(lambda p: muscolo_2017.TwoLinkLeg(*p)),
        'com_b': v.vectors(2, v.lengths), 'com_c': v.vectors(2, v.lengths),
        'level_ground': v.flags, 'as_printed': v.flags, 'count': st.integers(0, 5),
        'ankles': lambda count: v.plain(count, v.angles),
        'knees': lambda count: v.plain(count, v.angles),
        'lines': lambda count: v.plain(count, _lines),
        'line_a': _lines, 'line_b': _lines, 'tilt': v.anything | v.angles,
        'mass': v.anything | v.positive,
        'wrench': v.vectors(6, v.anything), 'joint_torque_sum': v.vectors(3, v.anything),
        'ankle': st.builds(muscolo_2017.AnkleLink, *[v.positive] * 4)},
    'papers.muscolo_2017.standard_deviations': {
        'mass': v.positive,
        'noise': st.builds(muscolo_2017.LineNoise, v.positive, v.positive, v.positive)},
    # -- virtual feet
    'identification.captures.virtual_contacts': {
        'sensor': lambda model: st.sampled_from(list(model.config.wrench_sensors)),
        'covariance': lambda model: v.vectors(6 * len(model.config.feet), v.positive).map(
            np.diag)},
    # -- results
    'identification.output': {**_SOLVED, 'calls': 1, 'directory': _HERE},
    'identification.output.results.numbers': _NAN,
    'identification.output.results.solve_and_write': {
        **_NAN, 'calls': 4, 'model': r.light_robots, 'captures': _captures(), 'com_sigma': 0.015},
    'identification.output.pose_figures': {
        'calls': 15, 'model': r.light_robots, 'captures': _captures(least=1),
        'marks': lambda model: [(first_moments.parameters_of(model), 'red')]},
    'identification.output.exports.with_mjcf_inertials': {
        'calls': 50, 'urdf': lambda model: model.urdf, 'model': r.light_robots,
        'mjcf': changed('<mujoco><worldbody><body name="base_link"/></worldbody></mujoco>')},
    'identification.output.exports.inertials_yaml': {'urdf': lambda model: model.urdf},
    'identification.output.robot_yaml': {
        'calls': 15, 'model': r.light_robots, 'config': lambda model: model.config,
        'joints': lambda model: model.joint_names,
        'found': lambda model: instruments.InstrumentCalibration().errors(
            model.joint_names, tuple(model.config.wrench_sensors))},
    'identification.output.robot_yaml.corrections_after': {
        'biases': lambda model: v.vectors((len(model.config.wrench_sensors), 6))},
    'identification.output.robot_yaml.calibrated_robot_yaml': {
        'calls': 50, 'text': changed(r.WRENCH_ROBOT.read_text()),
        'corrections': InstrumentCorrections()},
    'identification.output.robot_yaml.write_calibrated_robot': {
        'calls': 5, 'robot': st.just('three_link') | v.names},
    'identification.output.robot_yaml.errors_of': {**_SOLVED, 'calls': 1},
    'identification.output.robot_yaml.deviations_after': {**_SOLVED, 'calls': 1},
}
