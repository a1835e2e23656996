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
"""Identification: captures, their equations, estimates and reports."""

from __future__ import annotations

from functools import cache
from pathlib import Path
import tempfile

from biped_com_ros.core.geometry.wrench import ComLine
from biped_com_ros.core.identification import fleet, population
from biped_com_ros.core.identification.captures import capture, stillness, virtual_contacts
from biped_com_ros.core.identification.equations import (
    com_measurements, first_moments, instruments)
from biped_com_ros.core.identification.estimation import (
    confounding, estimates, estimator, noise_scales, plausibility, prior, problem, remedies,
    turned_sensors)
from biped_com_ros.core.identification.output import (
    exports, pose_figures, report, results, robot_yaml, urdf_inertials)
from biped_com_ros.core.identification.paper import (
    captures as paper, planar, poses as paper_poses, two_pose)
from biped_com_ros.core.identification.poses import pose_candidates, pose_safety, stances, transfer
from biped_com_ros.core.model.corrections import InstrumentCorrections
from biped_com_ros.core.model.robot import RobotModel
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import robots as r, values as v
from support.any_input.contract import Cases
from support.any_input.files import changed, written
from support.statics_data import TrueRobot

CASES = Cases()
add, add_drawn = CASES.add, CASES.add_drawn

_DIRECTORY = tempfile.TemporaryDirectory(prefix='any_input_')
_directories = st.just(Path(_DIRECTORY.name))
_NOT_MEASURED = 'not measured, or no foot stands'
_NOISE = capture.SensorNoise()
_noise = st.just(_NOISE)
_models = r.light_robots


@cache
def _solved():
    """Return a robot, captures of it, and the estimate."""
    true = TrueRobot('three_link')
    taken = [true.capture((foot,), _NOISE) for foot in ('left', 'right') * 2]
    return true.model, taken, estimator.Estimator(true.model).solve(taken, folds=2)


_found = st.builds(lambda: _solved()[2])
_solved_model = st.builds(lambda: _solved()[0])
_solved_captures = st.builds(lambda: _solved()[1])

# -- captures
add(capture.noise_scale, v.positive, v.positive | st.just(0.0))
_wild = r.recordings(plausible=False, most=1)
add_drawn(capture.check_capture, _wild.map(lambda drawn: (drawn[0], drawn[1][0])), calls=50)
add_drawn(capture.check_values, _wild.map(lambda drawn: (drawn[0], drawn[1][0])), calls=50)
add_drawn(plausibility.check_variety, r.recordings(plausible=False, least=0))
add_drawn(plausibility.without_end_stop_torques, r.recordings(),
          nan_means=_NOT_MEASURED)
add_drawn(stillness.carried_share, _models.flatmap(lambda model: st.tuples(
    st.just(model), arrays(float, (len(model.config.wrench_sensors), 6), elements=v.credible))))
add(instruments.times_of, st.integers(0, 5))
add_drawn(instruments.directions_of, _wild.map(lambda drawn: (drawn[1][0],)))
add_drawn(stances.sole_corners, _models.flatmap(lambda model: st.tuples(
    arrays(float, (4, 3), elements=v.lengths),
    st.sampled_from(list(model.config.feet.values())))))


# -- equations
@st.composite
def _equations(draw, *more, plausible=True, least=1):
    """Draw a regressor, captures, and what else an equation takes."""
    model, taken = draw(r.recordings(plausible, least=least))
    return (r.regressor_of(model), taken,
            *[draw(r.parameters(model)) if part == 'theta' else draw(part) for part in more])


add_drawn(first_moments.parameters_of, _models.map(lambda model: (model,)))
add_drawn(first_moments.stack_equations, _equations('theta', _noise, least=0),
          nan_means=_NOT_MEASURED)
add_drawn(estimates.residuals_of, _equations('theta', least=0), nan_means=_NOT_MEASURED)
add_drawn(estimates.com_offset_of_whole, _equations('theta').map(
    lambda drawn: (drawn[0], drawn[1][0], drawn[2])), nan_means=_NOT_MEASURED)
add_drawn(problem.strength_of, _equations(least=0))


@st.composite
def _noisy(draw):
    model, (capture,) = draw(r.recordings(most=1))
    count = 2 * len(capture.positions) + 3 + capture.wrenches.size
    return capture, draw(v.vectors(count, st.floats(-1.0, 1.0)))


add_drawn(problem.without_noise, _noisy(), nan_means=_NOT_MEASURED)
add_drawn(plausibility.without_constant_torques, _equations(_noise, least=0),
          nan_means=_NOT_MEASURED)
add_drawn(paper_poses.rank_of, _equations(least=0), may_be_infinite=True)
add_drawn(turned_sensors.find_turned_sensor, _equations().map(
    lambda drawn: (drawn[0], drawn[1][0])))
add_drawn(paper.best_pair, _equations(_noise, least=0), nan_means=_NOT_MEASURED)
add_drawn(paper.last_pair, _equations(_noise, least=0), nan_means=_NOT_MEASURED)
add_drawn(paper.com_from_captures, _equations(_noise, least=2).map(
    lambda drawn: (drawn[0], *drawn[1][:2], drawn[2])))


# -- known centres of mass
@st.composite
def _measured(draw, model, plausible=True):
    wild = v.lengths if plausible else v.anything
    half = draw(arrays(float, (3, 3), elements=st.floats(-0.1, 0.1)))
    covariance = half @ half.T + 1e-8 * np.eye(3) if plausible else half
    return com_measurements.ComMeasurement(
        draw(v.vectors(len(model.joint_names), wild)), draw(v.vectors(3, wild)), covariance,
        draw(st.sampled_from(('', *model.link_names))))


@st.composite
def _known(draw, *, plausible=True):
    model, q = draw(r.postures(models=_models))
    return model, draw(_measured(model, plausible))


@st.composite
def _com_equations(draw):
    model, measurement = draw(_known())
    return r.regressor_of(model), measurement, draw(r.parameters(model))


add_drawn(com_measurements.check_measurement, _known(plausible=False), calls=50)
add_drawn(com_measurements.com_rows, _com_equations())
add_drawn(com_measurements.information_of, st.integers(1, 3).flatmap(lambda n: st.tuples(
    st.lists(st.tuples(arrays(float, (n, 4), elements=v.lengths), v.vectors(n, v.lengths),
                       st.just(np.eye(n))), max_size=3), st.just(np.asarray), st.just(4))))
_COMS = '- {com: [0.1, null, 0.3], sd: [0.1, 1, 0.2], positions: {}, frame: l_foot}\n'
add_drawn(com_measurements.read_com_measurements, st.tuples(
    changed(_COMS).map(written), _solved_model, _solved_captures), calls=50,
    nan_means='the axis is not known')
add_drawn(paper_poses.moments_from_com, _equations(_noise, least=0))
add_drawn(paper_poses.describe_poses, _equations(_noise, least=0), calls=5)

# -- fleets
_units = st.builds(lambda: fleet.unit_result('unit', _solved()[0], _solved()[2]))
_fleets = st.integers(1, 3).flatmap(lambda n: st.lists(_units, min_size=n, max_size=n))
_reports = st.builds(lambda: _fleet_report())


@cache
def _fleet_report():
    unit = fleet.unit_result('unit', _solved()[0], _solved()[2])
    return fleet.fleet_report([unit, unit])


@cache
def _prior_text():
    path = Path(_DIRECTORY.name) / 'prior.json'
    fleet.write_prior(path, _fleet_report())
    return path.read_text()


_populations = st.tuples(st.integers(0, 6), st.integers(1, 3)).flatmap(lambda shape: st.tuples(
    arrays(float, (*shape, shape[1]), elements=st.floats(-30.0, 30.0)).map(
        lambda H: np.einsum('nki,nkj->nij', H, H)),
    arrays(float, shape, elements=v.lengths),
    v.vectors(shape[1], st.floats(1e-3, 10.0))))
add_drawn(population.estimate_population, _populations, calls=50,
          nan_means='the data of a unit say too little')
add(fleet.unit_result, v.names, _solved_model, _found, calls=1)
add(fleet.fleet_report, _fleets | st.just([]), calls=3)
add(fleet.describe_fleet, _reports, calls=1)
add(fleet.fleet_numbers, _reports, calls=1)
add(fleet.write_prior, st.just(Path(_DIRECTORY.name) / 'written.json'), _reports, calls=1)
add_drawn(fleet.read_prior, st.tuples(
    st.builds(_prior_text).flatmap(changed).map(written), _solved_model), calls=30)


@st.composite
def _predictions(draw):
    model, q = draw(r.postures(models=_models))
    standing = draw(st.lists(st.sampled_from(list(model.config.feet)), unique=True))
    return r.regressor_of(model), q, standing, draw(r.parameters(model))


add_drawn(first_moments.predict_capture, _predictions(), nan_means=_NOT_MEASURED)
add(estimates.level_rotation, v.rotations.map(lambda R: R[2]))
add_drawn(estimator.whiten, st.integers(1, 4).flatmap(lambda n: st.tuples(
    arrays(float, (n, n), elements=st.floats(-3.0, 3.0)).map(
        lambda L: L @ L.T + 0.1 * np.eye(len(L))),
    arrays(float, (n, 2), elements=v.credible))))
add(estimator.gravity_frame, _models)
add(estimator.planned_instruments, _models.map(r.regressor_of), _noise)

# -- the prior
add(prior.spread_of_links, _models)
add(prior.com_bounds, _models, st.floats(0.0, 1.0))
add(prior.missing_inertials, _models)
add(prior.prior_of, _models, v.anything | st.floats(1e-3, 0.1))
add(prior.with_known_masses, st.builds(prior.Prior))
_symmetric = arrays(float, (3, 3), elements=st.floats(-10.0, 10.0)).map(lambda half: half + half.T)
add(urdf_inertials.consistent_inertia, _symmetric, calls=50)
_numbers = st.floats(0.0, 1e6)
_kinds = st.sampled_from(list(instruments.InstrumentKind))
_instruments = st.builds(
    instruments.InstrumentEstimate, kind=_kinds, name=v.names,
    axis=st.sampled_from(('', 'x', 'fx')), unit=v.names, prior_sd=_numbers, estimate=v.credible,
    sd=_numbers)
add(confounding.describe_instrument, _instruments)


@st.composite
def _covariances(draw):
    found = draw(st.lists(_instruments, max_size=3))
    links = draw(st.lists(v.names, min_size=1, max_size=2))
    n = 4 * len(links) + len(found)
    L = draw(arrays(float, (n, n), elements=st.floats(-1.0, 1.0)))
    return L @ L.T + 0.1 * np.eye(n), found, links


add_drawn(confounding.confounded, _covariances())
add_drawn(confounding.describe_ambiguities, _covariances().map(
    lambda drawn: (confounding.confounded(*drawn),)))
add_drawn(remedies.best_candidates, _covariances().map(lambda drawn: (
    drawn[0], [0, len(drawn[0]) - 1], [('a', drawn[0][:2]), ('b', drawn[0][2:3])])))
add_drawn(remedies.candidates_of, _equations('theta'), calls=20, nan_means=_NOT_MEASURED)
_noises = st.builds(
    noise_scales.NoiseEstimate, kind=st.sampled_from(
        ('encoder', 'tilt', 'force', 'moment', 'sole tilt', 'sole height', 'torque')),
    name=v.names, unit=v.names, assumed=st.floats(1e-3, 1e3), estimated=st.floats(1e-3, 1e3),
    count=st.floats(1.0, 1e6))
add_drawn(plausibility.fit_warnings, st.tuples(r.recordings(), st.lists(_noises, max_size=3)).map(
    lambda drawn: (drawn[0][1], np.ones(len(drawn[0][1])), drawn[1])))
add_drawn(plausibility.model_warnings, _models.flatmap(lambda model: st.tuples(
    st.just(model), st.just(np.eye(4 * len(model.link_names))))))

# -- poses
_rows = st.integers(1, 4).flatmap(lambda d: st.lists(
    st.integers(1, 3).flatmap(lambda k: arrays(float, (k, d), elements=st.floats(-9.0, 9.0))),
    min_size=1, max_size=5))
add(pose_safety.no_progress, v.names, st.integers(), st.integers())
add(pose_candidates.choose_greedily, _rows, st.integers(0, 3))
add_drawn(pose_candidates.exchange, _rows.flatmap(lambda rows: st.tuples(
    st.just(rows), st.lists(st.integers(0, len(rows) - 1), unique=True))))
add(pose_candidates.compress, arrays(float, (2, 4), elements=st.floats(-9.0, 9.0)))
add(pose_candidates.project, _rows)
add(pose_candidates.total_information, _rows)
add_drawn(transfer.travel, st.tuples(st.integers(1, 3), st.integers(0, 4)).flatmap(
    lambda shape: st.tuples(
        v.vectors(shape[0], v.angles), arrays(float, shape[::-1], elements=v.angles),
        st.floats(0.05, 5.0) | st.sampled_from((0.0, -1.0, np.nan, np.inf)),
        st.floats(0.1, 2.0) | st.sampled_from((0.0, -1.0, np.nan, np.inf)))), calls=30)

# -- the paper
_legs = st.builds(planar.TwoLinkLeg, *[v.positive] * 5)
_lines = st.builds(ComLine, *[v.lengths] * 4)
_pairs = v.vectors(2, v.lengths)
add(planar.two_link_matrix, _legs, v.angles, v.angles, v.flags)
add(planar.two_link_right_side, _legs, _pairs, _pairs, v.angles)
add(planar.solve_two_link, _legs, _pairs, _pairs, v.angles, v.angles, v.flags, calls=30)
add(planar.reduced_determinant, _legs, v.angles, v.angles)
add(planar.solve_reduced, _legs, v.lengths, v.lengths, v.angles, v.angles, calls=30)
add_drawn(planar.two_link_from_lines, st.integers(0, 5).flatmap(lambda n: st.tuples(
    _legs, st.lists(v.angles, min_size=n, max_size=n), st.lists(v.angles, min_size=n, max_size=n),
    st.lists(_lines, min_size=n, max_size=n))), calls=30)
_ankles = st.builds(two_pose.AnkleLink, *[v.positive] * 4)
add(two_pose.com_from_two_poses, _lines, _lines, v.anything | v.angles, v.anything | v.positive,
    _ankles, v.flags, calls=30)
add(two_pose.standard_deviations, _lines, _lines, v.angles, v.positive, _ankles, st.builds(
    two_pose.LineNoise, v.positive, v.positive, v.positive), v.flags, calls=30)

# -- virtual feet
add(virtual_contacts.with_virtual_sensors, _models)
_sensors = _models.flatmap(lambda model: st.tuples(
    st.just(model), st.sampled_from(list(model.config.wrench_sensors))))
add_drawn(virtual_contacts.frame_of_readings, _sensors)
add_drawn(virtual_contacts.reading_to_sensor, _sensors)
add(virtual_contacts.virtual_sensors, _models)
add_drawn(virtual_contacts.force_deviations, _models.flatmap(lambda model: st.tuples(
    st.just(model), v.vectors(6 * len(model.config.feet), v.positive).map(np.diag))))

# -- results
add(results.calibrated_urdf, _solved_model, _found, calls=1)
add(results.numbers, _found, calls=1, nan_means=_NOT_MEASURED)
add(results.summary, _found, calls=1)
add(report.html_report, _solved_model, _solved_captures, _found, calls=1)
add(results.write_results, _directories, _solved_model, _solved_captures, _found, calls=1)
add_drawn(pose_figures.pose_figures, r.recordings().map(lambda drawn: (
    *drawn, [(first_moments.parameters_of(drawn[0]), 'red')])))
add_drawn(results.solve_and_write, st.tuples(_directories, r.recordings(least=0, most=3)).map(
    lambda drawn: (drawn[0], *drawn[1], _NOISE, 0.015)), calls=4, nan_means=_NOT_MEASURED)
add(exports.write_exports, _directories, _solved_model, _found, calls=1)
add_drawn(exports.link_inertias, _models.map(
    lambda model: (exports.parse_urdf(model.urdf),)))
add_drawn(exports.with_mjcf_inertials, st.tuples(
    changed('<mujoco><worldbody><body name="base_link"/></worldbody></mujoco>'),
    _models.map(lambda model: model.urdf)), calls=50)
add_drawn(exports.inertials_yaml, st.tuples(_found, _solved_model.map(
    lambda model: model.urdf)), calls=1)
_errors = _models.flatmap(lambda model: st.tuples(
    st.just(model.config), st.just(model.joint_names), v.vectors(len(model.joint_names)),
    arrays(float, (len(model.config.wrench_sensors), 6), elements=v.credible)))
add_drawn(robot_yaml.corrections_after, _errors.map(lambda drawn: (
    drawn[0], drawn[1], instruments.InstrumentErrors.none(
        len(drawn[1]), len(drawn[0].wrench_sensors)), drawn[3])))
add_drawn(robot_yaml.friction_after, _errors.map(lambda drawn: (
    drawn[0], drawn[1], instruments.InstrumentErrors.none(
        len(drawn[1]), len(drawn[0].wrench_sensors)))))
add_drawn(robot_yaml.calibrated_robot_yaml, st.tuples(
    changed((Path(__file__).parents[2] / 'data/wrench_robot.yaml').read_text()),
    st.just(InstrumentCorrections()), v.names), calls=50)
add(robot_yaml.write_calibrated_robot, _directories, st.just('three_link') | v.names,
    st.builds(lambda: RobotModel.load('three_link')), st.just(
        instruments.InstrumentErrors.none(4, 2)), calls=5)
add(robot_yaml.errors_of, _found, _solved_model, calls=1)
