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
"""
How well masses and instruments are found when nothing is ideal.

For each seed a robot is drawn whose links differ from the URDF (8 % and 5 mm per axis) and whose
instruments are wrong in one way, or in all. It takes the planned poses; MuJoCo's inverse statics
gives what perfect instruments would read, this module spoils that, and noise is added. The
estimate is tested on poses that were left out. One row per error: by the URDF (CAD), by an older
state of this package where ``--reference`` names a checkout of it, as it is now, with ``--others``
by least squares and by figaroh where that is installed (without any prior, weights, or errors of
instruments but what figaroh's consistent fits need), and without
joint torques, foot sensors or IMU (then the floor counts as level); how often the 95 % intervals
hold.

    python -m benchmarks.real [--quick] [--robot NAME] [--seeds N] [--error NAME]
                              [--minutes N] [--reference DIR] [--others]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
import json
import math
from pathlib import Path
import subprocess
import sys
import tempfile
import time

from benchmarks.common import console, machine, print_table
from benchmarks.fewer_sensors import FEWER, FewerSensors
from benchmarks.figaroh_fits import FITS, fits, missing, RANK_TOLERANCE
from benchmarks.identification import capture_of, com_error
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, predict_capture)
from biped_com_ros.core.identification.equations.instruments import (
    AXES, InstrumentErrors, InstrumentKind, MATRIX_AXES, XYZ)
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.poses.pose_design import PoseDesigner
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.model.efforts import effort_limits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.hidden import draw
from examples.static_robot import hidden_lumps, MisplacedSoles, StaticRobot
import numpy as np

ROBOTS = ('sabian', 'talos')
OWN = Path(__file__).parent / 'robots'
NOISE = SensorNoise()
STRONGEST = 10.0
"""Motors without a limit in the URDF are this many times as strong as posture stand needs."""


@dataclass(frozen=True, kw_only=True)
class WrongInstruments:
    """
    Standard deviations of what is wrong.

    Attributes
    ----------
    offset, tilt, turn
        Of joint positions, of the IMU's mounting and of sensors' frames, rad.
    floor
        Tilt of the floor, rad.
    gain, cross_talk
        Of wrench sensors; moments count by 0.1 m.
    shift
        Of the frames of wrench sensors, m.
    bias, drift
        Of wrench sensors: (force, moment), N and N m; drift from the first to the last pose.
    constant, friction
        Of torque constants, and friction as a share of the strongest torque.
    scatter
        Of friction from pose to pose, as a share of it.
    is_anywhere
        Whether friction is anywhere between both signs, instead of at one of them.
    is_known
        Whether it is recorded from which side joints came to rest.
    is_lumped
        Whether 5 kg are hidden in three links, instead of 8 % everywhere.
    sole
        Of soles in their feet: rotation about x and y, rad, and height, m.

    """

    offset: float = 0.0
    floor: float = 0.0
    tilt: float = 0.0
    gain: float = 0.0
    cross_talk: float = 0.0
    shift: float = 0.0
    turn: float = 0.0
    bias: tuple[float, float] = (0.0, 0.0)
    drift: tuple[float, float] = (0.0, 0.0)
    constant: float = 0.0
    friction: float = 0.0
    scatter: float = 0.0
    is_anywhere: bool = False
    is_known: bool = False
    is_lumped: bool = False
    sole: tuple[float, float] = (0.0, 0.0)


DEGREE = float(np.radians(1.0))
ALL = WrongInstruments(offset=0.3 * DEGREE, floor=DEGREE, tilt=0.3 * DEGREE, gain=0.02,
                       cross_talk=0.01, shift=0.003, turn=0.3 * DEGREE, bias=(3.0, 0.1),
                       drift=(3.0, 0.1), constant=0.02, friction=0.02, sole=(0.3 * DEGREE, 0.003))
ROWS = {
    'nothing': WrongInstruments(),
    '5 kg in three links': WrongInstruments(is_lumped=True),
    'floor tilted 1 deg': WrongInstruments(floor=DEGREE),
    'soles 3 mm, 0.3 deg': WrongInstruments(sole=(0.3 * DEGREE, 0.003)),
    'joint offsets 0.3 deg': WrongInstruments(offset=0.3 * DEGREE),
    'bias 3 N, 0.1 N m': WrongInstruments(bias=(3.0, 0.1)),
    'drift 3 N, 0.1 N m': WrongInstruments(drift=(3.0, 0.1)),
    'IMU mounting 0.3 deg': WrongInstruments(tilt=0.3 * DEGREE),
    'sensor gains 2 %': WrongInstruments(gain=0.02),
    'cross-talk 1 %': WrongInstruments(cross_talk=0.01),
    'sensor frames 3 mm': WrongInstruments(shift=0.003),
    'torque constants 2 %': WrongInstruments(constant=0.02),
    'friction 2 %': WrongInstruments(friction=0.02),
    'friction 2 %, sides known': WrongInstruments(friction=0.02, is_known=True),
    'friction 5 %': WrongInstruments(friction=0.05),
    'friction 5 %, anywhere between': WrongInstruments(friction=0.05, is_anywhere=True),
    'friction 5 %, scatters by 30 %': WrongInstruments(friction=0.05, scatter=0.3),
    'friction 5 %, sides known': WrongInstruments(friction=0.05, is_known=True),
    'friction 5 %, scatters by 30 %, sides known': WrongInstruments(
        friction=0.05, scatter=0.3, is_known=True),
    'all': ALL,
    'all, sides known': replace(ALL, is_known=True),
    'all, 5 kg in three links': replace(ALL, is_lumped=True)}


class Spoiler:
    """What one robot's instruments do to perfect readings, drawn by a seed."""

    def __init__(self, model: RobotModel, wrong: WrongInstruments, strength: np.ndarray,
                 revolute: np.ndarray, rng: np.random.Generator) -> None:
        n, s = len(model.joint_names), len(model.config.wrench_sensors)
        self._rng, self._wrong, self._revolute = rng, wrong, revolute
        self.floor = wrong.floor * rng.normal(size=2)
        units = np.outer([1.0] * 3 + [0.1] * 3, [1.0] * 3 + [10.0] * 3)
        share = np.where(np.eye(6, dtype=bool), wrong.gain, wrong.cross_talk)
        wrench = np.repeat([[1.0, 0.0], [0.0, 1.0]], 3, axis=0)
        self.friction = wrong.friction * strength * rng.uniform(0.7, 1.3, n)
        self.truth = InstrumentErrors(
            positions=wrong.offset * rng.normal(size=n) * revolute,
            torque_gains=wrong.constant * rng.normal(size=n), torque_offsets=np.zeros(n),
            friction=self.friction * wrong.is_known,
            tilts={model.config.imu.frame: wrong.tilt * rng.normal(size=3)},
            wrench_matrices=rng.normal(size=(s, 6, 6)) * share * units,
            # On the mean over the poses.
            wrench_biases=rng.normal(size=(s, 6)) * (wrench @ wrong.bias),
            wrench_drifts=rng.normal(size=(s, 6)) * (wrench @ wrong.drift),
            shifts=wrong.shift * rng.normal(size=(s, 3)),
            turns=wrong.turn * rng.normal(size=(s, 3)), floor=self.floor,
            # Of numbers of their own: the others stay what they were.
            soles=np.random.default_rng(rng.integers(2 ** 32)).normal(
                size=(len(model.config.feet), 3)) * [*[wrong.sole[0]] * 2, wrong.sole[1]])
        self.placed = MisplacedSoles(model, self.truth.soles, self.floor)

    def spoil(self, capture: Capture, time: float) -> Capture:
        """Return what these instruments measure; `time` from 0 to 1 over the poses."""
        rng, t = self._rng, self.truth
        side = rng.choice((-1.0, 1.0), len(t.positions))
        held = (rng.uniform(-1.0, 1.0, len(side)) if self._wrong.is_anywhere
                else 1.0 + self._wrong.scatter * rng.normal(size=len(side)))
        torques = (capture.torques * (1.0 + t.torque_gains) + self.friction * held * side
                   + NOISE.torque * rng.normal(size=len(side)))
        wrenches = [self._wrench(i, w) for i, w in enumerate(capture.wrenches)]
        noise = rng.normal(size=capture.wrenches.shape) * (
            [NOISE.force] * 3 + [NOISE.moment] * 3)
        tilt = t.tilts[capture.up_frame] + NOISE.tilt * rng.normal(size=3)
        encoder = np.where(self._revolute, NOISE.encoder, NOISE.slide)
        return replace(
            capture, torques=torques, up=_turned(tilt, capture.up),
            wrenches=np.array(wrenches).reshape(noise.shape) + noise
            + (time - 0.5) * t.wrench_drifts,
            positions=capture.positions + t.positions + encoder * rng.normal(size=len(side)),
            approach=side if self._wrong.is_known else None)

    def _wrench(self, sensor: int, wrench: np.ndarray) -> np.ndarray:
        t, force = self.truth, wrench[:3]
        moment = wrench[3:] - np.cross(t.shifts[sensor], force)
        own = np.concatenate([_turned(-t.turns[sensor], v) for v in (force, moment)])
        return np.asarray(own + t.wrench_matrices[sensor] @ own + t.wrench_biases[sensor])


def _turned(vector: np.ndarray, what: np.ndarray) -> np.ndarray:
    """Rotate by a rotation vector (Rodrigues)."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return what
    k = vector / angle
    return np.asarray(what * np.cos(angle) + np.cross(k, what) * np.sin(angle)
                      + k * (k @ what) * (1.0 - np.cos(angle)))


@dataclass
class Trial:
    """One seed of one error: CoM errors in m by method, coverage by what is covered, time."""

    errors: dict[str, float]
    covered: dict[str, list[bool]] = field(default_factory=dict)
    mass_error: float = 0.0
    mass_std: float = 0.0
    predicted: float = 0.0
    solve_time: float = 0.0
    warnings: tuple[str, ...] = ()


class Study:
    """One robot, its poses, and those that are left out."""

    def __init__(self, name: str, poses: int, fewer: Sequence[str] = FEWER) -> None:
        path = OWN / f'{name}.yaml'
        self.name = name
        self.model = RobotModel.load(str(path) if path.exists() else name)
        self.estimator = Estimator(self.model)
        self.regressor = self.estimator.regressor
        self.fewer = FewerSensors(self.estimator, fewer)
        self.cad = parameters_of(self.model)
        designed = PoseDesigner(self.model, DesignOptions(count=poses, hoisted=2)).design()
        self.poses = [(p.positions, p.standing) for p in designed.poses]
        others = PoseDesigner(self.model, DesignOptions(count=1, candidates=24, seed=77))
        self.held_out = [(c.positions, c.placement.standing) for c in others.candidates()]
        self.strength = self._strength()

    def _strength(self) -> np.ndarray:
        """Return the effort limits, (n,); where there is none, from what the poses need."""
        needed = np.array([np.nan_to_num(predict_capture(self.regressor, q, s, self.cad).torques)
                           for q, s in self.poses])
        guess = STRONGEST * np.sqrt((needed ** 2).mean(axis=0))
        limits = effort_limits(self.model)
        return np.where(limits < 1000.0, limits, guess)

    def draw(self, wrong: WrongInstruments,
             seed: int) -> tuple[StaticRobot, Spoiler, list[Capture]]:
        """Return the true robot, its instruments, and what they measure."""
        masses = dict(zip(self.model.link_names, self.model.link_masses.tolist()))
        hidden = (hidden_lumps(masses, seed, 0.005) if wrong.is_lumped
                  else draw(parse(self.model.urdf), seed, 0.005, 0.08))
        return self.measured(StaticRobot(
            self.model.config, self.model.urdf, hidden, self.model.joint_names), wrong, seed)

    def measured(self, robot: StaticRobot, wrong: WrongInstruments,
                 seed: int) -> tuple[StaticRobot, Spoiler, list[Capture]]:
        """Return a robot with its instruments, and what they measure."""
        rng = np.random.default_rng(5000 + seed)
        spoiler = Spoiler(
            self.model, wrong, self.strength, ~self.regressor.is_prismatic, rng)
        captures = []
        for i, (q, standing) in enumerate(self.poses):
            q = spoiler.placed.flat(q, standing)
            reading = robot.read(q, standing, spoiler.placed.tilt(q, standing))
            captures.append(spoiler.spoil(replace(capture_of(
                self.model, reading, q, standing), name=str(i)), i / (len(self.poses) - 1)))
        return robot, spoiler, captures

    def truth(self, robot: StaticRobot) -> np.ndarray:
        """Return the true masses and first moments, (L, 4)."""
        masses = np.array([robot.link_masses[name] for name in self.model.link_names])
        coms = np.array([robot.link_coms[name] for name in self.model.link_names])
        return np.column_stack((masses, masses[:, np.newaxis] * coms))

    def com_rms(self, theta: np.ndarray, robot: StaticRobot) -> float:
        """Return the horizontal error of the centre of mass on poses left out, rms, m."""
        exact = [capture_of(self.model, robot.read(q, s), q, s) for q, s in self.held_out]
        true = self.truth(robot)
        return float(np.sqrt(np.mean(
            [com_error(self.regressor, c, theta, true) for c in exact])))


OTHERS = ('least squares', *FITS)


def other_estimates(study: Study, captures: Sequence[Capture]) -> dict[str, np.ndarray]:
    """Return what others would estimate from the same equations; see `figaroh_fits`."""
    equations = [study.regressor.equations(c, study.cad, NOISE) for c in captures]
    A, y = (np.concatenate(parts) for parts in zip(*((e.A, -e.b) for e in equations)))
    theta = np.linalg.lstsq(A, y, rcond=RANK_TOLERANCE)[0].reshape(-1, 4)
    return {'least squares': theta, **({} if missing() else fits(study.model, A, y, study.cad))}


def run_trial(study: Study, wrong: WrongInstruments, seed: int, reference: Path | None = None,
              with_others: bool = False) -> Trial:
    """Draw, measure, estimate in every way, compare."""
    robot, spoiler, captures = study.draw(wrong, seed)
    started = time.process_time()
    found = study.estimator.solve(captures)
    took = time.process_time() - started
    thetas = {'CAD': study.cad, 'now': found.parameters, **study.fewer.estimates(captures)}
    if with_others:
        thetas |= other_estimates(study, captures)
    trial = Trial({}, solve_time=took, warnings=found.warnings, mass_std=found.mass_std,
                  mass_error=found.mass - robot.mass)
    if reference is not None:
        thetas['before'], covariance = solve_with(reference, study, captures)
        trial.covered['CoM before'] = _com_covered(
            study, robot, thetas['before'], covariance)[0]
    trial.errors = {name: study.com_rms(theta, robot) for name, theta in thetas.items()}
    trial.covered['CoM'], trial.predicted = _com_covered(
        study, robot, found.parameters, found.covariance)
    trial.covered.update(_links_covered(found, robot))
    trial.covered.update(_instruments_covered(study, found, spoiler.truth))
    return trial


def run_trials(study: Study, errors: Sequence[str], seeds: int, end: float,
               reference: Path | None, with_others: bool) -> dict[str, list[Trial]]:
    """Return trials by error; none begins after `end`, on the monotonic clock in s."""
    trials: dict[str, list[Trial]] = {error: [] for error in errors}
    for seed, error in product(range(seeds), errors):
        if time.monotonic() < end or not any(trials.values()):
            trials[error].append(run_trial(
                study, ROWS[error], seed, reference, with_others))
    return trials


SOLVE = """
import json, sys
from pathlib import Path
import numpy as np
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.estimation.estimator import Estimator
try:
    from biped_com_ros.core.identification.captures.capture_log import CaptureLog
    from biped_com_ros.core.model.robot import RobotModel
except ImportError:  # as in e5f4f29
    from biped_com_ros.core.identification.storage import CaptureLog
    from biped_com_ros.core.robot import RobotModel
model = RobotModel.load(sys.argv[2])
noise = SensorNoise(encoder_offset=0.002, force_bias=0.5, moment_bias=0.02, tilt_bias=0.003)
found = Estimator(model, noise).solve(CaptureLog(Path(sys.argv[1]), model).captures)
json.dump([found.parameters.tolist(), found.covariance.tolist()], sys.stdout)
"""


def solve_with(checkout: Path, study: Study,
               captures: Sequence[Capture]) -> tuple[np.ndarray, np.ndarray]:
    """Return parameters and covariance by the package in a checkout, with its defaults."""
    with tempfile.TemporaryDirectory() as directory:
        log = CaptureLog(Path(directory) / 'captures.json', study.model)
        for capture in captures:
            log.append(capture)
        own = OWN / f'{study.name}.yaml'
        robot = str(own.resolve()) if own.exists() else study.name
        output = subprocess.run(
            [sys.executable, '-c', SOLVE, str(log.path), robot], cwd=checkout, check=True,
            capture_output=True, text=True, env={'PYTHONPATH': str(checkout)}).stdout
    theta, covariance = json.loads(output)
    return np.array(theta), np.array(covariance)


def _com_covered(study: Study, robot: StaticRobot, theta: np.ndarray,
                 covariance: np.ndarray) -> tuple[list[bool], float]:
    """Return whether the intervals hold, by pose left out and horizontal axis, and their rms."""
    covered, variances, true = [], [], study.truth(robot)
    for q, standing in study.held_out:
        C = study.regressor.com_matrix(q)
        apart = C @ theta.ravel() / theta[:, 0].sum() - C @ true.ravel() / true[:, 0].sum()
        D = study.regressor.com_derivative(q, theta)
        foot = study.model.config.feet[standing[0]].sole
        R = study.model.state(q).pose_in_base(foot).rotation.T[:2]
        variance = np.einsum('ij,jk,ik->i', R @ D, covariance, R @ D)
        covered += (np.abs(R @ apart) < 1.96 * np.sqrt(variance)).tolist()
        variances.append(float(variance.sum()))
    return covered, float(np.sqrt(np.mean(variances)))


OBSERVED = 0.3
"""An axis of a link's centre of mass counts as observed from this share of data on."""


def _links_covered(found: Identification, robot: StaticRobot) -> dict[str, list[bool]]:
    coms, masses = [], []
    for link in found.links:
        apart = np.abs(link.com - robot.link_coms[link.name]) < 1.96 * link.com_std
        coms += apart[link.data_share > OBSERVED].tolist()
        masses.append(abs(link.mass - robot.link_masses[link.name]) < 1.96 * link.mass_std)
    return {'links': coms, 'masses': masses,
            'mass': [abs(found.mass - robot.mass) < 1.96 * found.mass_std]}


def _instruments_covered(study: Study, found: Identification,
                         truth: InstrumentErrors) -> dict[str, list[bool]]:
    """Return whether the intervals hold, by kind of what is wrong."""
    joints, sensors = study.model.joint_names, tuple(study.model.config.wrench_sensors)
    true = true_values(truth, joints, sensors, tuple(study.model.config.feet))
    covered: dict[str, list[bool]] = {}
    for e in found.instruments.estimates:
        covered.setdefault(e.kind.value, []).append(
            abs(e.estimate - true[e.kind, e.name, e.axis]) < 1.96 * e.sd)
    return covered


def true_values(truth: InstrumentErrors, joints: Sequence[str],
                sensors: Sequence[str],
                feet: Sequence[str]) -> dict[tuple[InstrumentKind, str, str], float]:
    """Return errors by kind, name and axis."""
    K, tilts = InstrumentKind, truth.tilts
    blocks = [(K.JOINT_OFFSET, joints, ('',), truth.positions),
              (K.TORQUE_GAIN, joints, ('',), truth.torque_gains),
              (K.TORQUE_OFFSET, joints, ('',), truth.torque_offsets),
              (K.FRICTION, joints, ('',), truth.friction),
              (K.TILT, list(tilts), XYZ, np.array(list(tilts.values()))),
              (K.WRENCH_MATRIX, sensors, MATRIX_AXES, truth.wrench_matrices),
              (K.WRENCH_BIAS, sensors, AXES, truth.wrench_biases),
              (K.WRENCH_DRIFT, sensors, AXES, truth.wrench_drifts),
              (K.SENSOR_SHIFT, sensors, XYZ, truth.shifts),
              (K.SENSOR_TURN, sensors, XYZ, truth.turns),
              (K.FLOOR_TILT, ('floor',), XYZ[:2], truth.floor),
              (K.SOLE_TURN, feet, XYZ[:2], truth.soles[:, :2]),
              (K.SOLE_HEIGHT, feet, XYZ[2:], truth.soles[:, 2] - truth.soles[:1, 2])]
    return {(kind, name, axis): float(value) for kind, names, axes, values in blocks
            for (name, axis), value in zip(product(names, axes), values.ravel())}


def summarise(name: str, trials: list[Trial], others: Sequence[str],
              fewer: Sequence[str] = FEWER) -> tuple[str, ...]:
    """Return the row of one error."""
    def rms(what: str) -> str:
        values = [t.errors[what] for t in trials if what in t.errors]
        return f'{1e3 * np.mean(values):.2f}' if values else '-'

    now, *compared = (np.array([t.errors[k] for t in trials]) for k in ('now', 'CAD', *fewer))
    worst = f'{1e3 * now.max():.2f}'
    worse = ' / '.join(str((now > other).sum()) for other in compared)
    predicted = f'{1e3 * np.mean([t.predicted for t in trials]):.2f}'
    instruments = sorted({k for t in trials for k in t.covered} - SHARES)
    bad = [f'{k} {share(trials, k):.0f}' for k in instruments if share(trials, k) < 90.0]
    return (name, str(len(trials)), rms('CAD'), rms('before'), rms('now'), worst, predicted,
            *map(rms, (*others, *fewer)), worse, *(f'{share(trials, k):.0f}' for k in (
                'CoM before', 'CoM', 'links', 'masses', 'mass')), ', '.join(bad) or '-')


SHARES = {'CoM before', 'CoM', 'links', 'masses', 'mass'}


def share(trials: list[Trial], what: str) -> float:
    """Return how often intervals held, %; NaN if there are none."""
    values = [value for t in trials for value in t.covered.get(what, ())]
    return 100.0 * float(np.mean(values)) if values else float('nan')


HEADER = ('wrong', 'seeds', 'CAD', 'before', 'now', 'worst', 'predicted')
COVERED = ('worse', 'before %', 'CoM %', 'links %', 'masses %', 'mass %', 'instruments below 90 %')


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', action='append', help='default: ' + ', '.join(ROBOTS))
    parser.add_argument('--error', action='append', choices=ROWS, help='default: all')
    parser.add_argument('--seeds', type=int, default=20)
    parser.add_argument('--poses', type=int, default=40)
    parser.add_argument('--quick', action='store_true', help='two seeds of one robot')
    parser.add_argument('--minutes', type=float, default=math.inf, help='begin no trial after '
                        'this time, shared by the robots; all errors of one seed come first')
    parser.add_argument('--others', action='store_true',
                        help='least squares and figaroh on the same captures as well')
    parser.add_argument('--fewer', action='append', choices=FEWER,
                        help='estimate without this kind of sensor as well; default: each')
    parser.add_argument('--reference', type=Path, help='checkout of an older state')
    options = parser.parse_args(argv)
    console.print(machine())
    others = OTHERS if options.others else ()
    robots = options.robot or (ROBOTS[-1:] if options.quick else ROBOTS)
    for name in robots:
        study = Study(name, options.poses, options.fewer or FEWER)
        end = time.monotonic() + 60.0 * options.minutes / len(robots)
        trials = run_trials(study, options.error or [*ROWS], 2 if options.quick else options.seeds,
                            end, options.reference, options.others)
        print_study(f'{name}: {len(study.poses)} poses', trials, others, options.fewer or FEWER)
    if options.others and missing():
        console.print(missing())
    return 0


def print_study(title: str, trials: dict[str, list[Trial]], others: Sequence[str],
                fewer: Sequence[str]) -> None:
    """Print the table of one robot."""
    rows = [summarise(error, done, others, fewer) for error, done in trials.items() if done]
    compared = ' / '.join(('CAD', *fewer))
    print_table(f'{title}; CoM on poses left out, mm; "worse": seeds worse than {compared}',
                (*HEADER, *others, *fewer, *COVERED), rows)
    slowest = max(t.solve_time for done in trials.values() for t in done)
    console.print(f'  slowest estimate {slowest:.1f} s of processor time')


if __name__ == '__main__':
    sys.exit(main())
