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
Wang, Zhu and Han's single step, of their own legs, too, and ten steps of the demo robot.

The gait is played to the drives with the efforts that hold the weight, open loop: no sensor is
looked at. Printed is how far the zero-moment point was off its reference, how near it came to the
edge of the support, and how far the soles slipped; for several robots whose true masses differ
from the URDF's. With a directory, draws what the paper shows in its Figures 2, 4, 5 and 6, of the
demo robot (``step_*.svg``) and of the paper's legs (``wang_*.svg``)::

    python -m examples.stepping [DIRECTORY]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import math
from pathlib import Path
import sys

from biped_com_ros import RobotModel
from biped_com_ros.core.geometry import Pose
from biped_com_ros.core.geometry.pose import Array, rotation_from_quaternion
from biped_com_ros.core.gravity import GravityModel
from biped_com_ros.core.legs import Gait, GaitOptions, single_step, walk
from biped_com_ros.core.legs.balance import BalanceSettings
from biped_com_ros.core.legs.feedback import GaitFeedback, WalkMeasurement
from biped_com_ros.core.legs.gait import GaitSample, QUICK
from biped_com_ros.core.stability import support_polygon
from biped_com_ros.sim.interface import Command, PlantOptions
from biped_com_ros.sim.plant import Plant
from examples.stepping_figures import draw
import numpy as np

LENGTH, WANG_LENGTH = 0.05, 0.03
"""Of a step of the demo robot and of the paper's legs, which does not state it, m."""

SEEDS = range(1, 6)
MASS_SIGMA = 0.03
"""Share by which each link's mass differs from the URDF's, standard deviation."""

SETTLING, AFTERWARDS = 1.0, 1.0
"""Time of standing before and after the gait, s."""

CONTACT_SHARE = 0.02
"""Share of the weight from which on a sole counts as standing."""

PUSHED, PUSH_TIME = 'torso', 0.1
"""Link that is pushed, and for how long, s."""

TILT_RATE = math.radians(4.0)
"""At which a floor tilts under the standing robot, rad/s."""

_EFFORT_PERIOD = 5
"""Steps of the simulation between two computations of the efforts that hold the weight."""

_FEEDBACK_PERIOD = 10
"""Steps of the simulation between two increments."""


@dataclass(frozen=True)
class StepRecord:
    """
    A walk in the simulator, in the gait's world, row by row.

    Attributes
    ----------
    times
        Of the gait, shape (N,), s.
    reference, zmp
        Planned and true zero-moment point, (N, 2), m.
    soles
        Poses of both soles, (N, 2, 4, 3): rows 0-2 are their axes, row 3 their position, m.
    forces
        Vertical force on each sole, (N, 2), N.
    velocities
        Of all joints as measured, (N, n), rad/s.
    margins
        Distance of the true zero-moment point from the edge of what the soles on the ground
        span, (N,), m.
    weight
        N.
    has_fallen
        Whether it fell.

    """

    times: Array
    reference: Array
    zmp: Array
    soles: Array
    forces: Array
    velocities: Array
    margins: Array
    weight: float
    has_fallen: bool

    @property
    def zmp_rms(self) -> Array:
        """Deviation of the true zero-moment point, forward and sideways, (2,), m."""
        return np.sqrt(((self.zmp - self.reference) ** 2).mean(axis=0))

    def slips(self) -> list[float]:
        """Return how far each sole moved over the ground each time that it stood, m."""
        found = []
        for foot in (0, 1):
            stands = self.forces[:, foot] > CONTACT_SHARE * self.weight
            starts = np.flatnonzero(np.diff(np.concatenate(([False], stands, [False]))))
            for begin, end in starts.reshape(-1, 2):
                if end - begin > 50:  # not the tap before the sole is down
                    xy = self.soles[begin:end, foot, 3, :2]
                    found.append(float(np.linalg.norm(xy - xy[0], axis=1).max()))
        return found

    def placement_error(self, gait: Gait) -> float:
        """Return how far from the plan a sole stands at the end, m."""
        planned = gait.plan.soles(gait.duration)[:, :2]
        return float(np.linalg.norm(self.soles[-1, :, 3, :2] - planned, axis=1).max())


class Walker:
    """
    A simulated robot that plays a gait.

    Parameters
    ----------
    model
        The robot as the gait knows it.
    options
        How it is simulated.
    feedforward
        Whether the drives get the efforts that hold the weight.
    balance
        Settings of the feedback; None: open loop. It has the true attitude and wrenches of the
        soles at 50 Hz, and its increments are reached one period later.
    balances_at_rest
        Whether it acts also while the robot stands before the gait.

    """

    def __init__(self, model: RobotModel, options: PlantOptions = PlantOptions(),
                 feedforward: bool = True, balance: BalanceSettings | None = None,
                 balances_at_rest: bool = False) -> None:
        self._model, self._feedforward, self._balance = model, feedforward, balance
        self._balances_at_rest = balances_at_rest
        self._origin: Array = np.zeros(3)
        self._feedback: GaitFeedback | None = None
        self._increments = np.zeros((2, len(model.joint_names)))
        self._plant = Plant(model.config, model.urdf, options, model.joint_names)
        self._actuated = model.joint_index(self._plant.actuated_joint_names)
        self._gravity = GravityModel(model)
        self._soles = [self._plant.data.site(f'sole/{name}') for name in model.soles.names]
        self._polygons = [foot.polygon for foot in model.config.feet.values()]

    def walk(self, gait: Gait, floor_pitch: float = 0.0) -> StepRecord:
        """Stand, play a gait, stand again; return what happened from its beginning on."""
        rows = [self._row(gait, time) for time in self.play(gait, floor_pitch)]
        columns = [np.array(column) for column in zip(*rows)]
        return StepRecord(*columns, 9.81 * self._plant.mass, self._plant.has_fallen)

    def play(self, gait: Gait, floor_pitch: float = 0.0) -> Iterator[float]:
        """
        Do the same; yield the time of the gait after each period of the simulation, s.

        Parameters
        ----------
        gait
            The gait.
        floor_pitch
            To which the floor tilts while the robot stands before the gait, rad; positive lets
            the robot walk down.

        """
        dt, command = self._plant.dt, self._plant.hold()
        self._feedback = None if self._balance is None else GaitFeedback(gait, self._balance)
        self._stand(gait, command, SETTLING)
        if floor_pitch:
            self._stand(gait, command, abs(floor_pitch) / TILT_RATE, floor_pitch)
            self._stand(gait, command, SETTLING)
        self._origin = self._find_origin(gait)
        time, k = 0.0, 0
        while time < gait.duration + AFTERWARDS and not self._plant.has_fallen:
            rate = self._rate
            self._step(gait, time, command, k)
            yield time
            time, k = time + rate * dt, k + 1

    def _stand(self, gait: Gait, command: Command, duration: float,
               floor_pitch: float = 0.0) -> None:
        """Stand for some time, s, in which the floor tilts."""
        steps, point = round(duration / self._plant.dt), self._plant.ground_point()
        for k in range(steps):
            if floor_pitch:
                self._plant.tilt_floor(0.0, floor_pitch * (k + 1) / steps, point)
            self._step(gait, 0.0, command, k, stands=True)

    @property
    def has_fallen(self) -> bool:
        """Whether the robot fell."""
        return self._plant.has_fallen

    def push(self, force: float, heading: float, duration: float = PUSH_TIME) -> None:
        """Push the torso from now on with a force, N, forward at 0 and to the left at 90 deg."""
        angle = math.radians(heading)
        self._plant.push(PUSHED, (force * math.cos(angle), force * math.sin(angle),
                                  0.0, 0.0, 0.0, 0.0), duration)

    @property
    def _rate(self) -> float:
        """Rate of the time of the gait."""
        return 1.0 if self._feedback is None else self._feedback.rate

    def _step(self, gait: Gait, time: float, command: Command, count: int,
              stands: bool = False) -> None:
        sample = gait.at(0.0 if stands else time + self._rate * self._plant.dt)
        sample = sample._replace(velocities=self._rate * sample.velocities)
        if self._balances_at_rest or not stands:
            sample = self._corrected(sample, time, count)
        command.position[:] = sample.positions[self._actuated]
        command.velocity[:] = sample.velocities[self._actuated]
        if self._feedforward and count % _EFFORT_PERIOD == 0:
            load = self._gravity.load(self._model.state(sample.positions), np.array((0.0, 0.0, 1)))
            command.effort[:] = load.on_contacts(sample.shares).efforts[self._actuated]
        self._plant.step(command)

    def _corrected(self, sample: GaitSample, time: float, count: int) -> GaitSample:
        """Return a sample with the increments of the feedback."""
        if self._feedback is None:
            return sample
        period, passed = _FEEDBACK_PERIOD * self._plant.dt, count % _FEEDBACK_PERIOD
        if passed == 0:
            truth = self._plant.truth()
            measured = WalkMeasurement(
                self._plant.observation.joint_positions.copy(),
                rotation_from_quaternion(truth.base_quaternion), truth.sole_wrenches)
            self._increments = np.array((
                self._increments[1], self._feedback.update(period, time, measured)))
        before, after = self._increments
        share = (passed + 1) / _FEEDBACK_PERIOD
        return sample._replace(positions=sample.positions + before + share * (after - before),
                               velocities=sample.velocities + (after - before) / period)

    def _find_origin(self, gait: Gait) -> Array:
        """Return the gait's origin in the simulator's world: by where the soles stand."""
        here = np.mean([sole.xpos for sole in self._soles], axis=0)
        there = gait.plan.soles(0.0)[:, :3].mean(axis=0)
        origin: Array = here - there
        return origin

    def _row(self, gait: Gait, time: float) -> tuple[object, ...]:
        origin = self._origin
        truth, sample = self._plant.truth(), gait.plan.zmp(time)
        soles = np.array([(*sole.xmat.reshape(3, 3).T, sole.xpos - origin)
                          for sole in self._soles])
        forces = truth.sole_wrenches[:, 2]
        zmp = truth.zmp - origin
        touching = forces > CONTACT_SHARE * 9.81 * self._plant.mass
        polygon = support_polygon(
            [Pose(row[:3].T, row[3]) for row in soles], self._polygons, touching.tolist())
        margin = np.nan if polygon is None else polygon.margin(zmp).distance
        velocities = self._plant.observation.joint_velocities.copy()
        return time, sample, zmp[:2], soles, forces, velocities, margin


def main(directory: str = '') -> None:
    """Walk, print, and draw."""
    from benchmarks.common import console, print_table  # which tests of a walk do not need
    model = RobotModel.load('biped')
    steps = {'step': single_step(model, LENGTH),
             'wang': single_step(RobotModel.load('bioloid_legs'), WANG_LENGTH)}
    records = {name: Walker(gait.model).walk(gait) for name, gait in steps.items()}
    rows = [row(name, robot, steps[key], records[key]) for key, name, robot in (
        ('step', 'single step', 'as URDF'), ('wang', "the same, Wang's legs", 'as URDF'))]
    for name, options in (('ten steps', GaitOptions()), ('ten quick steps', QUICK)):
        gait = walk(model, 10, LENGTH, options=options)
        for seed in SEEDS:
            plant = PlantOptions(seed=seed, mass_sigma=MASS_SIGMA)
            rows.append(row(name, f'masses {seed}', gait, Walker(model, plant).walk(gait)))
            name = ''
    print_table('Steps of the demo robot, open loop, with gravity feedforward', (
        'gait', 'robot', 'ZMP rms x, y [mm]', 'least margin [mm]', 'largest slip [mm]',
        'placement [mm]', ''), rows)
    if directory:
        for name, gait in steps.items():
            for path in draw(gait, records[name], Path(directory), name):
                console.print(f'wrote {path}')


def row(name: str, robot: str, gait: Gait, record: StepRecord) -> tuple[str, ...]:
    """Return a line of the table."""
    x, y = 1e3 * record.zmp_rms
    return (name, robot, f'{x:.1f}, {y:.1f}', f'{1e3 * np.nanmin(record.margins):.1f}',
            f'{1e3 * max(record.slips()):.2f}', f'{1e3 * record.placement_error(gait):.2f}',
            'FELL' if record.has_fallen else '')


if __name__ == '__main__':
    main(*sys.argv[1:])
