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
How well masses and centres of mass are found, on robots whose truth is known.

For each seed a robot is drawn that differs from its URDF: every link's centre of mass by 15 mm
per axis, 5 kg more on three links. It takes the planned poses, and MuJoCo's inverse statics gives
what its sensors read; noise is added. The estimate from these is tested on other poses. Beside
it: ordinary least squares on the same equations, and the estimates of the figaroh package
(pip install figaroh picos cvxopt) where that is installed. iDynTree has a regressor, which is the
same as ours (``test/oracle/test_com_against_idyntree.py``), and no fit of consistent links.

    python benchmarks/identification.py [--quick] [--robot NAME] [--seeds N] [--poses K]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
import sys
import time

from benchmarks.common import console, machine, print_table, print_targets, Target
from benchmarks.figaroh_fits import FITS, fits, missing, RANK_TOLERANCE
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.estimation.estimates import residuals_of
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.poses.pose_design import PoseDesign, PoseDesigner
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.model.robot import RobotModel
from examples.static_robot import hidden_lumps, StaticReading, StaticRobot
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROBOTS = ('sabian', 'talos', 'g1')
NOISE = SensorNoise(force=0.5, moment=0.02, torque=0.3, encoder=np.radians(0.1),
                    tilt=np.radians(0.05))
METHODS = ('CAD', 'MAP', 'least squares', *FITS)


@dataclass
class Score:
    """
    How good parameters are.

    Attributes
    ----------
    com
        Root mean square error of the total centre of mass, horizontally, on held-out poses, m.
    torque, torque_max
        Root mean square and largest error of the joint torques on held-out poses, N m.
    mass
        Error of the total mass, kg.
    links
        Root mean square error per axis of the links' centres of mass, m.

    """

    com: float
    torque: float
    torque_max: float
    mass: float
    links: float


class IdentificationStudy:
    """One robot, its poses, and what is to be found out."""

    def __init__(self, name: str, poses: int, progress: Progress) -> None:
        self.model = RobotModel.load(name)
        self.estimator = Estimator(self.model, NOISE)
        self.cad = parameters_of(self.model)
        started = time.perf_counter()
        self.design = self._design(name, poses, progress)
        self.design_time = time.perf_counter() - started
        others = PoseDesigner(self.model, DesignOptions(count=1, candidates=24, seed=77), NOISE)
        self.held_out = [(c.positions, c.placement.standing) for c in others.candidates()]

    def _design(self, name: str, poses: int, progress: Progress) -> PoseDesign:
        task = progress.add_task(f'{name}: poses', total=None)

        def report(what: str, done: int, total: int) -> None:
            progress.update(task, description=f'{name}: {what}', completed=done, total=total)

        options = DesignOptions(count=poses, candidates=max(300, 5 * poses))
        design = PoseDesigner(self.model, options, NOISE).design(report)
        progress.remove_task(task)
        return design

    def draw(self, seed: int) -> StaticRobot:
        """Return a robot that differs from its URDF."""
        masses = dict(zip(self.model.link_names, self.model.link_masses.tolist()))
        return StaticRobot(self.model.config, self.model.urdf, hidden_lumps(masses, seed),
                           self.model.joint_names)

    def captures(self, robot: StaticRobot, rng: np.random.Generator) -> list[Capture]:
        """Take the planned poses with noise."""
        return [self._capture(robot, pose.positions, pose.standing, rng)
                for pose in self.design.poses]

    def _capture(self, robot: StaticRobot, q: np.ndarray, standing: tuple[str, ...],
                 rng: np.random.Generator) -> Capture:
        reading = robot.read(q, standing).noisy(
            rng, NOISE.force, NOISE.moment, NOISE.torque, NOISE.tilt)
        is_prismatic = self.estimator.regressor.is_prismatic
        q = q + rng.normal(size=len(q)) * np.where(is_prismatic, NOISE.slide, NOISE.encoder)
        return capture_of(self.model, reading, q, standing)

    def score(self, theta: np.ndarray, robot: StaticRobot) -> Score:
        """Compare parameters with the truth on held-out poses."""
        return scores_of(self.model, theta, robot, self.held_out)


def capture_of(model: RobotModel, reading: StaticReading, q: np.ndarray,
               standing: tuple[str, ...]) -> Capture:
    """Return a reading as a capture."""
    contact = np.array([foot in standing for foot in model.config.feet])
    return Capture(
        positions=q, wrenches=reading.wrenches, in_contact=contact, up=reading.up,
        up_frame=model.config.imu.frame, torques=reading.torques)


def scores_of(model: RobotModel, theta: np.ndarray, robot: StaticRobot,
              held_out: list[tuple[np.ndarray, tuple[str, ...]]]) -> Score:
    """Compare masses and first moments (L, 4) with the truth on poses and their feet."""
    masses = np.array([robot.link_masses[name] for name in model.link_names])
    coms = np.array([robot.link_coms[name] for name in model.link_names])
    true = np.column_stack((masses, masses[:, np.newaxis] * coms))
    regressor = StaticsRegressor(model)
    exact = [capture_of(model, robot.read(q, s), q, s) for q, s in held_out]
    torque = residuals_of(regressor, exact, theta).torque
    torque = torque[np.isfinite(torque)]
    with np.errstate(divide='ignore', invalid='ignore'):
        links = theta[:, 1:] / theta[:, :1] - coms
    return Score(
        float(np.sqrt(np.mean([com_error(regressor, c, theta, true) for c in exact]))),
        float(np.sqrt((torque ** 2).mean())), float(np.abs(torque).max()),
        float(theta[:, 0].sum() - masses.sum()), float(np.sqrt(np.mean(links ** 2))))


def com_error(regressor: StaticsRegressor, capture: Capture, theta: np.ndarray,
              true: np.ndarray) -> float:
    """Return the squared horizontal error of the centre of mass in a pose, m^2."""
    C, up = regressor.com_matrix(capture.positions), regressor.up_in_base(capture)
    apart = C @ theta.ravel() / theta[:, 0].sum() - C @ true.ravel() / true[:, 0].sum()
    return float(((apart - up * (up @ apart)) ** 2).sum())


@dataclass
class IdentificationTrial:
    """One seed: scores by method, honesty of the intervals, time of the estimate."""

    scores: dict[str, Score]
    coverage: float
    solve_time: float


def run_trial(study: IdentificationStudy, seed: int) -> IdentificationTrial:
    """Draw a robot, measure, estimate in every way, compare."""
    robot = study.draw(seed)
    captures = study.captures(robot, np.random.default_rng(1000 + seed))
    started = time.process_time()
    found = study.estimator.solve(captures)
    solve_time = time.process_time() - started
    thetas = {'CAD': study.cad, 'MAP': found.parameters,
              'least squares': least_squares(study, captures)}
    if not missing():
        thetas |= fits(study.model, *stacked(study, captures), study.cad)
    errors = np.array([(link.com - robot.link_coms[link.name]) / link.com_std
                       for link in found.links])
    return IdentificationTrial({name: study.score(theta, robot) for name, theta in thetas.items()},
                               float(np.mean(np.abs(errors) < 1.96)), solve_time)


def stacked(study: IdentificationStudy, captures: list[Capture]) -> tuple[np.ndarray, np.ndarray]:
    """Return all equations, as they are."""
    equations = [study.estimator.regressor.equations(c, study.cad, NOISE) for c in captures]
    return np.concatenate([e.A for e in equations]), -np.concatenate([e.b for e in equations])


def least_squares(study: IdentificationStudy, captures: list[Capture]) -> np.ndarray:
    """Solve without prior and without weights; the smallest solution where there are many."""
    A, y = stacked(study, captures)
    theta: np.ndarray = np.linalg.lstsq(A, y, rcond=RANK_TOLERANCE)[0]
    return theta.reshape(-1, 4)


def summarise(name: str, study: IdentificationStudy,
              trials: list[IdentificationTrial]) -> list[Target]:
    """Print the table of one robot and return its targets."""
    rows = []
    for method in METHODS:
        scores = [t.scores[method] for t in trials if method in t.scores]
        if not scores:
            continue
        rows.append((method, *(cell(scores, what, scale) for what, scale in (
            ('com', 1e3), ('torque', 1.0), ('torque_max', 1.0), ('mass', 1.0),
            ('links', 1e3)))))
    print_table(f'{name}: {len(trials)} seeds, {len(study.design.poses)} poses, held-out poses: '
                'mean (worst)', ('', 'CoM mm', 'torque rms Nm', 'torque max Nm', 'total mass kg',
                                 'link CoMs mm'), rows)
    console.print(f'  pose design {study.design_time:.1f} s: {study.design.summary()}')
    return targets(name, study, trials)


def cell(scores: list[Score], what: str, scale: float) -> str:
    """Format mean and worst of a figure."""
    values = scale * np.abs([getattr(score, what) for score in scores])
    if not np.isfinite(values).all():
        return 'none'  # masses of zero have no centre
    return f'{values.mean():.3g} ({values.max():.3g})'


def targets(name: str, study: IdentificationStudy,
            trials: list[IdentificationTrial]) -> list[Target]:
    """Return what is demanded of one robot."""
    cad, ours = ([t.scores[m] for t in trials] for m in ('CAD', 'MAP'))
    worse = sum(a.com > b.com or a.torque > b.torque or a.torque_max > b.torque_max
                or abs(a.mass) > abs(b.mass) for a, b in zip(ours, cad))
    return [
        Target(name, 'held-out CoM, mean', 1e3 * mean(ours, 'com'), 0.5, unit='mm'),
        Target(name, 'torque residual smaller', mean(cad, 'torque') / mean(ours, 'torque'),
               10.0, at_least=True),
        Target(name, 'total mass, worst', max(abs(s.mass) for s in ours), 0.1, unit='kg'),
        Target(name, 'link CoMs against CAD, mean', mean(ours, 'links') / mean(cad, 'links'), 1.0),
        Target(name, 'seeds where a held-out figure is worse than CAD', worse, 0, unit=''),
        Target(name, '95 % intervals cover, at least',
               100.0 * float(np.mean([t.coverage for t in trials])), 90.0, True, unit='%'),
        Target(name, '95 % intervals cover, at most',
               100.0 * float(np.mean([t.coverage for t in trials])), 99.0, unit='%'),
        Target(name, 'processor time of the estimate, worst',
               max(t.solve_time for t in trials), 2.0, unit='s'),
        Target(name, 'pose design', study.design_time, 60.0, unit='s')]


def mean(scores: list[Score], what: str) -> float:
    """Return the mean of a figure over seeds."""
    return float(np.mean([getattr(score, what) for score in scores]))


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', action='append', help='default: ' + ', '.join(ROBOTS))
    parser.add_argument('--seeds', type=int, default=20)
    parser.add_argument('--poses', type=int, default=40)
    parser.add_argument('--quick', action='store_true', help='one robot, three seeds')
    options = parser.parse_args(argv)
    robots = options.robot or (ROBOTS[:1] if options.quick else ROBOTS)
    console.print(machine())
    if missing():
        console.print(missing())
    found: list[Target] = []
    for name in robots:
        found += study_robot(name, options.poses, 3 if options.quick else options.seeds)
    print_targets(found)
    return 0 if all(target.met for target in found) else 1


def study_robot(name: str, poses: int, seeds: int) -> list[Target]:
    """Run all seeds of one robot, showing how far it is."""
    columns = (TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        study = IdentificationStudy(name, poses, progress)
        trials: list[IdentificationTrial] = []
        for seed in progress.track(range(seeds), description=f'{name}: seeds'):
            trials.append(run_trial(study, seed))
    return summarise(name, study, trials)


if __name__ == '__main__':
    sys.exit(main())
