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
The experiment of Russo et al. (2021), section 3.2, on the simulated demo robot.

Four times from the centre to the border of the workspace, once around it and back, by joystick:
bend tracking in open and closed loop, angular acceleration, tensions; then the same with a wrong
stiffness and a load in one hand; and the paper's Table 3 beside ours. With a directory, draws what
the paper shows in its Figures 5 and 8 to 12::

    python -m examples.torso [DIRECTORY]
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
import math
from pathlib import Path
import sys
import timeit

from biped_com_ros import RobotModel
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.torso import (
    ControllerOptions, Joystick, Measurement, MotionLimits, TendonController, TendonDrive,
    TensionLimits, TorsoBody, Weight)
from biped_com_ros.core.torso.reference import tour, TOUR_PERIOD
from biped_com_ros.core.torso.tension import TensionDistributor
from biped_com_ros.sim.hidden import parse_errors
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from examples.torso_figures import draw
from examples.torso_power import Servo
import numpy as np

CYCLE, CYCLES = TOUR_PERIOD, 4
"""Seconds per round, and rounds."""

GRAVITY = 9.81

LATE = 0.04
"""How late measurements are where delay is shown, s."""

LOOSE = ControllerOptions().slack_tension
"""Tension under which a tendon hangs loose, N."""

PAPER = ('17.95', '1.54', '35.75', '8.32', '< 15')
"""Table 3, and the largest power in Figure 12, as the paper states them."""

LIMITED, UNLIMITED = MotionLimits(), MotionLimits(speed=10.0, acceleration=36.0)
"""The default; and the stick only smoothed."""

JOYSTICK_PERIOD = 0.02
"""Time between two messages of the joystick, s."""


@dataclass(frozen=True)
class TorsoRecord:
    """
    A run, row by row.

    Attributes
    ----------
    times
        (k,), s.
    targets, references, bends
        Where the stick points, where the torso should be and where it is, (k, 2), rad.
    torsions
        (k,), rad.
    gyro
        Angular velocity of the upper torso along its own axes, (k, 3), rad/s.
    tensions
        Measured, (k, 4), N.
    lengths
        Commanded to the tendons' servos, (k, 4), m.

    """

    times: Array
    targets: Array
    references: Array
    bends: Array
    torsions: Array
    gyro: Array
    tensions: Array
    lengths: Array

    @property
    def bend_errors(self) -> Array:
        """Bend less reference, (k,), rad."""
        return np.hypot(*self.bends.T) - np.hypot(*self.references.T)

    @property
    def direction_errors(self) -> Array:
        """Direction less reference where the bend is beyond 3 deg, rad."""
        far = np.hypot(*self.references.T) > math.radians(3.0)
        direction, reference = (
            np.arctan2(v[far, 1], v[far, 0]) for v in (self.bends, self.references))
        return np.angle(np.exp(1j * (direction - reference)))

    @property
    def longest_slack(self) -> float:
        """Longest time that a tendon hangs loose, s."""
        longest = waited = np.zeros(self.tensions.shape[1])
        for is_loose in self.tensions < LOOSE:
            waited = np.where(is_loose, waited + self.times[1] - self.times[0], 0.0)
            longest = np.maximum(longest, waited)
        return float(longest.max())

    @property
    def accelerations(self) -> Array:
        """Angular acceleration of the upper torso, (k - 1, 3), rad/s^2."""
        return np.diff(self.gyro, axis=0) / (self.times[1] - self.times[0])

    @property
    def power(self) -> Array:
        """Electric power of all tendon servos, (k - 1,), W."""
        winding = -np.diff(self.lengths, axis=0) / (self.times[1] - self.times[0])
        return Servo().power(self.tensions[1:], winding).sum(axis=1)

    def after(self, start: float) -> TorsoRecord:
        """Return the rows from a time on."""
        rows = self.times >= start
        return TorsoRecord(
            **{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


class Bench:
    """
    The simulated robot with its torso under control.

    Parameters
    ----------
    robot
        Name of a robot with a tendon torso.
    stiffness_error
        Share by which the controller's stiffnesses are wrong.
    motion
        Limits of the motion that the controller plans.
    errors
        Hidden errors of the simulated robot, as the simulator node takes them.
    yaw, yaw_rate
        By how much the IMUs disagree about north at the start, rad, and drift apart, rad/s.
    delay
        How late the controller gets all measurements, s.

    """

    def __init__(self, robot: str = 'biped', stiffness_error: float = 0.0,
                 errors: tuple[str, ...] = (), yaw: float = 0.0, yaw_rate: float = 0.0,
                 delay: float = 0.0, motion: MotionLimits = LIMITED) -> None:
        self._yaw, self._yaw_rate, self._delay = yaw, yaw_rate, delay
        true = RobotModel.load(robot)
        torso, factor = true.config.torso, 1.0 + stiffness_error
        assert torso is not None
        assumed = replace(
            torso, bending_stiffness=factor * torso.bending_stiffness,
            torsion_stiffness=factor * torso.torsion_stiffness,
            axial_stiffness=factor * torso.axial_stiffness)
        self.model = RobotModel(replace(true.config, torso=assumed), true.urdf)
        self.body = TorsoBody(self.model)
        lower, upper = (true.config.imus[name].frame for name in ('base', 'torso'))
        self.body.use_imus(lower, upper)
        self.plant = Plant(true.config, true.urdf, PlantOptions(errors=parse_errors(errors)),
                           self.model.joint_names, self.model.link_names)
        self._imus = [self.plant.imu_names.index(name) for name in ('base', 'torso')]
        # Of the simulator's tendon servos, see TendonTorso; 5 ms of lag are the backbone's.
        self.options = ControllerOptions(
            motion=motion, drive=TendonDrive(stiffness=7000.0, pretension=11.9, lead=0.025))

    def measure(self, relative_yaw: float = 0.0) -> Measurement:
        """Return the measurements of the robot, corrected by the relative yaw of the IMUs."""
        o, body = self.plant.observation, self.body
        lower, upper = (np.concatenate((o.imu_quaternions[i], o.angular_velocities[i]))
                        for i in self._imus)
        sight = body.imus.read(lower, upper, relative_yaw)
        across, along = sight.up
        weight, inertia = body.upper_body(
            self.model.state(o.joint_positions), (-GRAVITY * across, -GRAVITY * along))
        return Measurement(
            sight, o.tendon_lengths.tolist(), o.tendon_tensions.tolist(), weight, inertia)

    def run(self, seconds: float, is_closed: bool = True, motion=tour) -> TorsoRecord:
        """Let a stick move the torso for a while, from a robot standing still."""
        plant, body = self.plant, self.body
        plant.reset()
        controller = TendonController(body.statics, body.max_bend, self.options)
        joystick, command, rows = Joystick(body.max_bend), plant.hold(), []
        every = round(JOYSTICK_PERIOD / plant.dt)
        late: deque[Measurement] = deque(maxlen=1 + round(self._delay / plant.dt))
        for i in range(round(seconds / plant.dt)):
            time = i * plant.dt
            error = self._yaw + time * self._yaw_rate
            # What the controller learns is the error; that of the rotation is what is left.
            late.append(self.measure(controller.yaw_offset.value - error))
            measured = late[0]
            if i % every == 0:
                controller.set_target((*joystick.bend(*motion(time)), 0.0, 0.0))
            given = measured if is_closed else measured._replace(
                orientation=measured.orientation._replace(bend=None, gyros=None))
            out = controller.update(plant.dt, given)
            true, o = self.measure().orientation, plant.observation
            assert true.bend is not None
            rows.append((time, *controller.target[:2], *out.reference[:2],
                         true.bend.real, true.bend.imag, true.torsion,
                         *o.angular_velocities[self._imus[1]], *o.tendon_tensions,
                         *out.lengths))
            command.tendon_lengths[:] = out.lengths
            plant.step(command)
        r = np.array(rows)
        return TorsoRecord(r[:, 0], r[:, 1:3], r[:, 3:5], r[:, 5:7], r[:, 7], r[:, 8:11],
                           r[:, 11:15], r[:, 15:])


def rms_deg(errors: Array) -> float:
    """Root mean square, deg."""
    return math.degrees(math.sqrt(float(np.mean(errors ** 2))))


def row(name: str, record: TorsoRecord) -> str:
    """Return a line of the table."""
    direction = record.direction_errors
    return (f'{name:34s} {rms_deg(record.bend_errors):6.3f} {rms_deg(direction):6.3f} '
            f'{math.degrees(np.abs(direction).max()):7.3f} '
            f'{np.linalg.norm(record.accelerations[:, :2], axis=1).max():7.1f} '
            f'{np.abs(record.accelerations[:, 2]).max():6.1f} {record.tensions.min():7.2f}')


def table_3(ours: TorsoRecord, unlimited: TorsoRecord) -> str:
    """Return the paper's Table 3 and the largest power of its Figure 12, beside ours."""
    def largest(record: TorsoRecord) -> tuple[float, ...]:
        accelerations = record.accelerations
        return (math.degrees(np.hypot(*record.bends.T).max()),
                math.degrees(np.abs(record.torsions).max()),
                float(np.linalg.norm(accelerations[:, :2], axis=1).max()),
                float(np.abs(accelerations[:, 2]).max()), float(record.power.max()))
    names = ('bending [deg]', 'torsion [deg]', 'acceleration, bending [rad/s2]',
             'acceleration, torsion [rad/s2]', 'power [W]')
    lines = [f'{"largest":34s} {"paper":>6s} {"ours":>7s} {"without limits of the motion":>29s}']
    lines += [f'{name:34s} {paper:>6s} {value:7.2f} {free:29.2f}' for name, paper, value, free
              in zip(names, PAPER, largest(ours), largest(unlimited))]
    return '\n'.join(lines)


def update_time() -> float:
    """Return the time of kinematics, lengths and tensions, the best of several, s."""
    body = TorsoBody(RobotModel.load('biped'))
    statics, backbone = body.statics, body.backbone
    load = Weight(body.mass, (0.01 + 0j, 0.03), (0j, -GRAVITY))
    distributor = TensionDistributor(backbone, TensionLimits(lowest=3.0, highest=60.0))

    def update() -> None:
        arc = backbone.arc(0.1 + 0.17j, 0.01, -0.001)
        body.positions(arc)
        backbone.lengths_at(arc.bend, arc.torsion, arc.length)
        moment = statics.stiffness.bending * arc.bend - statics.work(arc, load)[0]
        distributor.distribute(moment / backbone.lever(arc), 12.0)

    return min(timeit.repeat(update, number=20, repeat=200)) / 20  # undisturbed by others


def main(arguments: list[str]) -> int:
    """Run the experiment, print the figures, and draw them into a directory if one is given."""
    print(f'{"":34s} {"bend":>6s} {"direction beyond 3 deg":>14s} {"acceleration":>8s}'
          f' {"tension":>9s}')
    print(f'{"":34s} {"rms":>6s} {"rms":>6s} {"max deg":>7s} {"bend":>7s} {"axis":>6s}'
          f' {"min N":>7s}')
    bench, seconds = Bench(), CYCLE * CYCLES
    closed, opened = bench.run(seconds), bench.run(seconds, is_closed=False)
    print(row('closed loop', closed))
    print(row('open loop', opened))
    wrong = Bench(stiffness_error=-0.2, errors=('l_hand 0.5 0 0 0',))
    print('stiffness 20 % too low, 0.5 kg in the left hand, from 1 s on:')
    loaded = wrong.run(seconds), wrong.run(seconds, is_closed=False)
    for name, record in zip(('closed loop', 'open loop'), loaded):
        print(row(name, record.after(1.0)))
    late = Bench(stiffness_error=-0.2, errors=('l_hand 0.5 0 0 0',), delay=LATE).run(CYCLE)
    print('the load appears at once: a tendon hangs loose for at most '
          f'{loaded[0].longest_slack:.3f} s; {late.longest_slack:.3f} s with measurements '
          f'{LATE} s late')
    apart = Bench(yaw=math.radians(20.0), yaw_rate=math.radians(0.1))
    print('IMUs that disagree about north by 20 deg, and 0.1 deg/s more, from 1 s on:')
    print(row('closed loop', apart.run(seconds).after(1.0)))
    print(table_3(closed, Bench(motion=UNLIMITED).run(seconds)))
    print(f'kinematics, lengths and tensions: {1e6 * update_time():.0f} us')
    if arguments:
        for path in draw(closed, opened, loaded, bench.body, Path(arguments[0])):
            print(f'drew {path}')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
