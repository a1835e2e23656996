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
How well masses and instruments are found, on robots whose truth is known.

For each seed a robot is drawn whose links differ from the URDF (8 % and 5 mm per axis) and whose
instruments are wrong in one way, or in all. It takes the planned poses; MuJoCo's inverse statics
gives what perfect instruments would read, this module spoils that, and noise is added. The
estimate is tested on poses that were left out. One row per error: by the URDF (CAD), as found, and
without joint torques; how often the 95 % intervals hold.

    python -m benchmarks.identification [--quick] [--robot NAME] [--seeds N] [--error NAME]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
import sys
import time

from benchmarks.common import console, machine, print_table, print_targets, Target
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, predict_capture, StaticsRegressor)
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
from examples.static_robot import MisplacedSoles, StaticReading, StaticRobot
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
    sole: tuple[float, float] = (0.0, 0.0)


DEGREE = float(np.radians(1.0))
ALL = WrongInstruments(offset=0.3 * DEGREE, floor=DEGREE, tilt=0.3 * DEGREE, gain=0.02,
                       cross_talk=0.01, shift=0.003, turn=0.3 * DEGREE, bias=(3.0, 0.1),
                       drift=(3.0, 0.1), constant=0.02, friction=0.02, sole=(0.3 * DEGREE, 0.003))
ROWS = {
    'nothing': WrongInstruments(),
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
    'all, sides known': replace(ALL, is_known=True)}


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
    predicted: float = 0.0
    solve_time: float = 0.0


class Study:
    """One robot, its poses, and those that are left out."""

    def __init__(self, name: str, poses: int) -> None:
        path = OWN / f'{name}.yaml'
        self.name = name
        self.model = RobotModel.load(str(path) if path.exists() else name)
        self.estimator = Estimator(self.model)
        self.regressor = self.estimator.regressor
        self.cad = parameters_of(self.model)
        designed = PoseDesigner(self.model, DesignOptions(
            count=poses, approach='shortest')).design()
        self.poses = [(p.positions, p.standing) for p in designed.poses]
        others = PoseDesigner(self.model, DesignOptions(
            count=1, candidates=24, seed=77, approach='shortest'))
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
        hidden = draw(parse(self.model.urdf), seed, 0.005, 0.08)
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


def capture_of(model: RobotModel, reading: StaticReading, q: np.ndarray,
               standing: tuple[str, ...]) -> Capture:
    """Return a reading as a capture."""
    contact = np.array([foot in standing for foot in model.config.feet])
    return Capture(
        positions=q, wrenches=reading.wrenches, in_contact=contact, up=reading.up,
        up_frame=model.config.imu.frame, torques=reading.torques)


def com_error(regressor: StaticsRegressor, capture: Capture, theta: np.ndarray,
              true: np.ndarray) -> float:
    """Return the squared horizontal error of the centre of mass in a pose, m^2."""
    C, up = regressor.com_matrix(capture.positions), regressor.up_in_base(capture)
    apart = C @ theta.ravel() / theta[:, 0].sum() - C @ true.ravel() / true[:, 0].sum()
    return float(((apart - up * (up @ apart)) ** 2).sum())


def run_trial(study: Study, wrong: WrongInstruments, seed: int) -> Trial:
    """Draw, measure, estimate with and without torques, compare."""
    robot, spoiler, captures = study.draw(wrong, seed)
    started = time.process_time()
    found = study.estimator.solve(captures)
    trial = Trial({}, solve_time=time.process_time() - started)
    without = study.estimator.solve(
        [replace(c, torques=np.full_like(c.torques, np.nan)) for c in captures])
    trial.errors = {name: study.com_rms(theta, robot) for name, theta in (
        ('CAD', study.cad), ('now', found.parameters), ('no torques', without.parameters))}
    trial.covered['CoM'], trial.predicted = com_covered(
        study, robot, found.parameters, found.covariance)
    trial.covered.update(_links_covered(found, robot))
    trial.covered.update(_instruments_covered(study, found, spoiler.truth))
    return trial


def com_covered(study: Study, robot: StaticRobot, theta: np.ndarray,
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


def share(trials: list[Trial], what: str) -> float:
    """Return how often intervals held, %; NaN if there are none."""
    values = [value for t in trials for value in t.covered.get(what, ())]
    return 100.0 * float(np.mean(values)) if values else float('nan')


SHARES = ('CoM', 'links', 'masses', 'mass')
HEADER = ('wrong', 'seeds', 'CAD', 'now', 'worst', 'predicted', 'no torques', 'worse',
          *(f'{what} %' for what in SHARES), 'instruments below 90 %')


def summarise(name: str, trials: list[Trial]) -> tuple[str, ...]:
    """Return the row of one error."""
    errors = {k: 1e3 * np.array([t.errors[k] for t in trials]) for k in trials[0].errors}
    now, predicted = errors['now'], 1e3 * np.mean([t.predicted for t in trials])
    worse = ' / '.join(str((now > errors[other]).sum()) for other in ('CAD', 'no torques'))
    bad = [f'{k} {share(trials, k):.0f}' for k in sorted(
        {k for t in trials for k in t.covered}.difference(SHARES)) if share(trials, k) < 90.0]
    return (name, str(len(trials)), f'{errors["CAD"].mean():.2f}', f'{now.mean():.2f}',
            f'{now.max():.2f}', f'{predicted:.2f}', f'{errors["no torques"].mean():.2f}', worse,
            *(f'{share(trials, k):.0f}' for k in SHARES), ', '.join(bad) or '-')


def targets(name: str, trials: dict[str, list[Trial]]) -> list[Target]:
    """Return what is demanded of one robot."""
    found = [t for done in trials.values() for t in done]
    worse = sum(t.errors['now'] > t.errors['CAD'] for t in found)
    ideal = [1e3 * t.errors['now'] for t in trials.get('nothing', ())]
    return [
        Target(name, 'CoM with nothing wrong, mean', float(np.mean(ideal)) if ideal else None, 0.5,
               unit='mm'),
        Target(name, 'seeds worse than CAD', worse, 0, unit=''),
        Target(name, '95 % intervals of the CoM hold, at least',
               min(share(done, 'CoM') for done in trials.values()), 90.0, True, unit='%')]


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--robot', action='append', help='default: ' + ', '.join(ROBOTS))
    parser.add_argument('--error', action='append', choices=ROWS, help='default: all')
    parser.add_argument('--seeds', type=int, default=20)
    parser.add_argument('--poses', type=int, default=40)
    parser.add_argument('--quick', action='store_true',
                        help='two seeds of one robot, with nothing and with all wrong')
    options = parser.parse_args(argv)
    console.print(machine())
    errors = options.error or (['nothing', 'all'] if options.quick else [*ROWS])
    found: list[Target] = []
    for name in options.robot or ROBOTS[:1 if options.quick else None]:
        study = Study(name, options.poses)
        trials: dict[str, list[Trial]] = {error: [] for error in errors}
        for seed, error in product(range(2 if options.quick else options.seeds), errors):
            trials[error].append(run_trial(study, ROWS[error], seed))
        print_table(f'{name}: {options.poses} poses; CoM on poses left out, mm; "worse": seeds '
                    'worse than CAD / no torques', HEADER,
                    [summarise(error, done) for error, done in trials.items()])
        slowest = max(t.solve_time for done in trials.values() for t in done)
        console.print(f'  slowest estimate {slowest:.1f} s of processor time')
        found += targets(name, trials)
    print_targets(found)
    return 0


if __name__ == '__main__':
    sys.exit(main())
