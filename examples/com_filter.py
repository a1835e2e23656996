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
How good the fused CoM is where the model is wrong, in the simulator.

    python -m examples.com_filter            a table for every motion
    python -m examples.com_filter --seeds 8  over more robots
    python -m examples.com_filter --robot g1 --rate 250
    python -m examples.com_filter --world real

The robots are not what their URDF says, in one of these worlds; the filter has its defaults:

load   8 % of the mass on the torso, somewhere else for every seed
links  each link is wrong, by 8 % of its mass and 5 mm
real   the same, and so are the instruments: 3 ms of delay, 0.1 deg of rotation, 2 % of gain per
       axis, 3 mm of place of each foot sensor, each a standard deviation
all    the same, and biases of foot sensors of 0.5 % of the weight, 1 % of cross-talk, joints
       0.1 deg and the direction of gravity 3 mrad off

They sway at 1 Hz, step in place, are pushed after they have swayed, or without, and stand; Talos
bends its trunk; biped sways with its tendon-driven torso bent, whose virtual joints are 0.1 deg
and 1.75 mm off in the last world. The wrenches pass the low-pass of wrench_aggregator. Errors are
against the simulator's truth, root mean square, after two seconds; the base is the true one, so
that drift of leg odometry, which no CoM filter can see, stays out.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
import math
import sys
from typing import Any

from biped_com_ros import RobotModel
from biped_com_ros.core.com import FusedComEstimator, FusedComSettings
from biped_com_ros.core.com.estimate import com_velocity_in_world
from biped_com_ros.core.com.fused import trunk
from biped_com_ros.core.geometry import Pose
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model import RobotState
from biped_com_ros.core.state import LocatedState, Twist
from biped_com_ros.core.state.stance import Stance
from biped_com_ros.core.wrench import AggregationSettings, WrenchAggregation
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.interface import Command, Observation, PlantOptions, SensorOptions
from biped_com_ros.sim.plant import Plant
import numpy as np
import pinocchio as pin

SHARE = 0.08
"""Of its mass that each robot hides."""
HIDDEN = {'torso': LinkError(0.288, (0.02, -0.015, 0.03))}
"""For 'biped': 8 % of its mass, and where that leaves the torso's centre of mass."""
SETTLED = 0.6
"""The robot is put down, and estimated from here on, s."""
PUSH_AT, PUSH_FOR, PUSH = 4.0, 0.5, (2.0, 1.2, 0.0)
NOISE = SensorOptions(encoder_noise=0.0002, velocity_noise=0.01, force_noise=0.1,
                      torque_noise=0.005, gyro_noise=0.002)
C, V = slice(0, 3), slice(3, 6)
STEPPING = {'hip_pitch': -0.25, 'knee': 0.5, 'ankle_pitch': -0.25}
"""How 'biped' lifts a leg, rad."""
INSTRUMENTS = {'delay': 0.003, 'rotation': 0.00175, 'gain': 0.02, 'frame': 0.003}
"""Standard deviations of the errors of the foot sensors in the world 'real': s, rad, -, m."""
OTHER_INSTRUMENTS = {'bias': 0.005, 'cross_talk': 0.01, 'joint_offset': 0.00175, 'tilt': 0.003}
"""Of errors that no world has: biases of foot sensors as a share of the weight (of moments over
0.03 m), their cross-talk (over 0.1 m), joint offsets and the direction of gravity, rad."""
WRONG_INSTRUMENTS: dict[str, Mapping[str, float]] = {
    'real': INSTRUMENTS, 'all': {**INSTRUMENTS, **OTHER_INSTRUMENTS}}
WORLDS = ('load', 'links', 'real', 'all')
"""What is wrong with the robots; the filter is not told."""
LOW_PASS = 50.0
"""Of wrench_aggregator, Hz."""
BENDING = {'talos': 'torso_2_joint'}
"""Joints that bend the trunk forward, of robots that can."""
BENT = (0.12, 0.16)
"""Roll and pitch of a tendon-driven torso that is held bent, rad."""
MOTIONS = {'sway': 4.5, 'sway bent': 4.5, 'step': 8.5, 'push': 5.5, 'push at rest': 5.5,
           'stand': 20.0, 'bend': 8.0}
"""And how long each lasts, s."""


def hidden_load(seed: int, model: RobotModel, link: str) -> dict[str, LinkError]:
    """Return a load of 8 % of a robot on one of its links; of 'biped', 0 is :data:`HIDDEN`."""
    if not seed and model.config.name == 'biped':
        return HIDDEN
    x, y, z = (0.02 * np.random.default_rng(seed).standard_normal(3)).tolist()
    return {link: LinkError(SHARE * model.mass, (x, y, z))}


@dataclass
class FilterResult:
    """What came out, one row per instant."""

    times: list[float] = field(default_factory=list)
    kinematic: list[Any] = field(default_factory=list)
    fused: list[Any] = field(default_factory=list)
    truth: list[Any] = field(default_factory=list)
    forces: list[Any] = field(default_factory=list)
    nees: list[Any] = field(default_factory=list)
    deviations: list[Any] = field(default_factory=list)

    def errors(self, estimate: str, since: float = 2.0) -> np.ndarray:
        """Return errors of `kinematic` or `fused`, (n, 6): position, velocity."""
        late = np.array(self.times) > since
        return (np.array(getattr(self, estimate)) - np.array(self.truth))[late]

    def rms(self, estimate: str, axes: slice, since: float = 2.0) -> float:
        """Return the root mean square length of an error."""
        errors = self.errors(estimate, since)[:, axes]
        return float(np.sqrt((errors ** 2).sum(axis=1).mean()))

    def covered(self, since: float = 2.0) -> np.ndarray:
        """Return the share of the time in which 1.96 deviations cover position, velocity, (6,)."""
        late = np.array(self.deviations)[np.array(self.times) > since]
        return (np.abs(self.errors('fused', since)) < 1.96 * late).mean(axis=0)

    def mean_nees(self, since: float = 2.0) -> np.ndarray:
        """Return the mean normalised squared errors of position and velocity; 3 is perfect."""
        return np.array(self.nees)[np.array(self.times) > since].mean(axis=0)


class Instruments:
    """
    Foot sensors with constant errors.

    Parameters
    ----------
    count
        Number of sensors.
    seed
        Of the random errors.
    delay, rotation, gain, frame, cross_talk, bias
        Standard deviations: s (a delay is positive), rad, share of each axis, m, share of the
        others' force or moment over 0.1 m, N (moments: over 0.03 m).

    """

    def __init__(self, count: int, seed: int, delay: float = 0.0, rotation: float = 0.0,
                 gain: float = 0.0, frame: float = 0.0, cross_talk: float = 0.0,
                 bias: float = 0.0) -> None:
        rng = np.random.default_rng(1000 + seed)
        self.delay = delay * abs(rng.standard_normal())
        self._reads = [
            pin.SE3(pin.exp3(rotation * rng.standard_normal(3)),
                    frame * rng.standard_normal(3)).toDualActionMatrix()
            * (1.0 + gain * rng.standard_normal(6)) for _ in range(count)]
        units = np.repeat((1.0, 0.1), 3)
        for X in self._reads:
            talk = cross_talk * rng.standard_normal((6, 6)) * (1.0 - np.eye(6))
            X += (units[:, np.newaxis] * talk / units) @ X
        self._biases = bias * np.repeat((1.0, 0.03), 3) * rng.standard_normal((count, 6))
        self._past: deque[tuple[float, np.ndarray]] = deque(maxlen=8)

    def read(self, time: float, wrenches: np.ndarray) -> np.ndarray:
        """Return what the sensors read of the wrenches (S, 6) at a time, s."""
        self._past.append((time, wrenches.copy()))
        times = [t for t, _ in self._past]
        late = time - self.delay
        after = min(int(np.searchsorted(times, late)), len(times) - 1)
        before = max(after - 1, 0)
        span = times[after] - times[before]
        share = min(max((late - times[before]) / span, 0.0), 1.0) if span else 0.0
        delayed = (1.0 - share) * self._past[before][1] + share * self._past[after][1]
        return np.array([X @ wrench for X, wrench in zip(self._reads, delayed)]) + self._biases


class Rig:
    """A simulated robot with a hidden load, and the fusion."""

    def __init__(self, settings: FusedComSettings | None = None,
                 sensors: SensorOptions | None = None, robot: str = 'biped',
                 errors: Mapping[str, LinkError] | None = None, load_link: str = '',
                 seed: int = 0, dt: float = 0.002, world: str = 'load',
                 instruments: Mapping[str, float] | None = None, tendons: bool = False,
                 left: float = 1.0) -> None:
        self.model = model = RobotModel.load(robot)
        loaded = load_link or trunk(model)
        wrong = {'com_sigma': 0.005 * left, 'mass_sigma': 0.08 * left}
        if world == 'load':
            wrong = {'errors': hidden_load(seed, model, loaded) if errors is None else errors}
        self.plant = Plant(
            model.config, model.urdf, PlantOptions(
                dt=dt, seed=seed, sensors=sensors or SensorOptions(), tendons=tendons, **wrong),
            model.joint_names, model.link_names)
        if instruments is None:
            instruments = WRONG_INSTRUMENTS.get(world, {})
        instruments = dict(instruments)
        rng = np.random.default_rng(2000 + seed)
        self._offsets = instruments.pop('joint_offset', 0.0) * rng.standard_normal(
            len(model.joint_names)) * np.isin(model.joint_names, (
                *self.plant.actuated_joint_names, *self.plant.virtual_joint_names))
        self._tilt = pin.exp3(instruments.pop('tilt', 0.0) * np.array(
            (*rng.standard_normal(2), 0.0)))
        instruments['bias'] = instruments.get('bias', 0.0) * 9.81 * model.mass
        self.instruments = Instruments(len(self.model.config.wrench_sensors), seed, **instruments)
        self.fusion = FusedComEstimator(model, settings, loaded)
        self.result = FilterResult()
        self._ik = PostureIk(model, model.posture())
        self._half_stance = 0.5 * float(np.ptp(model.state(model.posture()).soles_in_world[:, 1]))
        self._aggregation = WrenchAggregation(
            model, AggregationSettings(low_pass_cutoff=LOW_PASS))
        self._time = -1.0

    def run(self, motion: str, seconds: float) -> FilterResult:
        """Let the robot move and estimate."""
        for i in range(round(seconds / self.plant.dt)):
            t = i * self.plant.dt
            if motion.startswith('push') and abs(t - PUSH_AT) < 1e-9:
                self.plant.push('torso', (*PUSH, 0.0, 0.0, 0.0), PUSH_FOR)
            self.plant.step(self._command(motion, t))
            if t >= SETTLED:
                self._estimate()
        return self.result

    def _command(self, motion: str, t: float) -> Command:
        hold, plant = self.plant.hold(), self.plant
        offset, moves = (0.0, 0.0, 0.0), {}
        if motion in ('sway', 'sway bent', 'push'):
            until = PUSH_AT - 1.0 if motion == 'push' else math.inf
            ramp = max(min(t, until - t, 1.0), 0.0)
            offset = (0.012 * ramp * math.sin(1.4 * math.pi * t),
                      0.02 * ramp * math.sin(2.0 * math.pi * t), 0.0)
        elif motion == 'step':
            side, leg = (1.0, 'r') if t % 8.0 < 4.0 else (-1.0, 'l')
            shift = _smooth(t % 4.0, (0.0, 0.8, 1.0, 2.6, 3.0, 4.0), (0, .85, 1, 1, 1, 0))
            lift = _smooth(t % 4.0, (1.3, 1.8, 2.1, 2.6), (0, 1, 1, 0))
            moves = {f'{leg}_{joint}': lift * angle for joint, angle in STEPPING.items()}
            offset = (0.0, side * self._half_stance * shift, 0.0)
        elif motion == 'bend':
            moves = {BENDING[self.model.config.name]:
                     0.2 * min(t, 1.0) * math.sin(0.6 * math.pi * t)}
        actuated = self.model.joint_index(plant.actuated_joint_names)
        positions = self._ik.positions(Pose.translation(offset))[actuated]
        for joint, angle in moves.items():
            positions[plant.actuated_joint_names.index(joint)] += angle
        bent = np.array((0.0, 0.0, 0.0, *BENT, 0.0)) * min(t, 1.0) * (motion == 'sway bent')
        lengths = plant.tendon_lengths_for(bent)
        return replace(hold, position=positions, tendon_lengths=lengths)

    def _estimate(self) -> None:
        observed, truth, model = self.plant.observation, self.plant.truth(), self.model
        link = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
        R_link_base = Pose.from_rpy(model.config.base_rpy, np.zeros(3)).rotation
        base = Pose(self._tilt @ link.rotation @ R_link_base, link.position)
        twist = Twist(*truth.base_twist.reshape(2, 3) @ R_link_base)
        state = model.state(
            observed.joint_positions + self._offsets, observed.joint_velocities).in_world(base)
        dt = observed.time - self._time if self._time >= 0.0 else 0.0
        self._time = observed.time
        wrenches = self._measure(observed, state, base)
        self.fusion.update(dt, LocatedState(
            round(1e9 * observed.time), state,
            Stance(state.soles_in_world, (True,) * len(wrenches)), True, lambda _: twist,
            wrenches=wrenches.tolist()))
        velocity = com_velocity_in_world(state, twist)
        self._note(observed.time, np.concatenate((state.com_in_world, velocity)),
                   np.concatenate((truth.com, truth.com_velocity)))

    def _measure(self, observed: Observation, state: RobotState, base: Pose) -> np.ndarray:
        """Return the wrenches of the feet in their sole frames, (F, 6)."""
        ns = round(1e9 * observed.time)
        self._aggregation.set_state(
            state, base.rotation @ state.pose_in_base(self.model.config.imu.frame).rotation)
        for i, wrench in enumerate(self.instruments.read(observed.time, observed.wrenches)):
            self._aggregation.update(i, wrench, ns)
        return np.array([body.wrench for body in self._aggregation.bodies
                         if body.detector is not None])

    def _note(self, time: float, kinematic: np.ndarray, truth: np.ndarray) -> None:
        result, found = self.result, self.fusion
        result.times.append(time)
        result.kinematic.append(kinematic)
        result.truth.append(truth)
        fused = np.concatenate(self.fusion.now())
        result.fused.append(fused)
        result.forces.append(found.external_force.copy())
        result.deviations.append(np.sqrt(np.concatenate((
            np.diag(found.com_covariance), np.diag(found.velocity_covariance)))))
        result.nees.append([
            float(error @ np.linalg.solve(covariance, error)) for error, covariance in (
                (fused[C] - truth[C], found.com_covariance),
                (fused[V] - truth[V], found.velocity_covariance))])


def _smooth(t: float, times: Sequence[float], values: Sequence[float]) -> float:
    phase = float(np.interp(t, times, values))
    return phase * phase * (3.0 - 2.0 * phase)


def push_estimate(result: FilterResult, after: float) -> np.ndarray:
    """Return the external force felt so long after the push began, (3,), N."""
    at = int(np.searchsorted(result.times, PUSH_AT + after))
    return np.array(result.forces[at])


def chi_square_bounds(count: int) -> tuple[float, float]:
    """
    Return the 95 % bounds of the mean of `count` chi-square numbers with three degrees of freedom.

    By Wilson and Hilferty's cube root, good to 1 % from nine degrees of freedom on.
    """
    variance = 2.0 / (9.0 * 3 * count)
    low, high = (3.0 * (1.0 - variance + z * math.sqrt(variance)) ** 3 for z in (-1.96, 1.96))
    return low, high


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0].strip())
    parser.add_argument('--seeds', type=int, default=4, help='number of robots')
    parser.add_argument('--robot', default='biped', help='another one only sways and stands')
    parser.add_argument('--rate', type=float, default=500.0, help='Hz')
    parser.add_argument('--world', choices=WORLDS, default='load', help='what is wrong')
    options = parser.parse_args(arguments)
    seeds, robot = options.seeds, options.robot
    able = {*MOTIONS} - {'bend'} if robot == 'biped' else {
        'sway', 'stand', *(['bend'] if robot in BENDING else [])}
    motions = {motion: seconds for motion, seconds in MOTIONS.items() if motion in able}
    low, high = chi_square_bounds(seeds)
    print(f'{seeds} robots; a consistent filter has a NEES of 3, and its mean over them lies '
          f'between {low:.1f} and {high:.1f} in 95 % of cases')
    print('motion       sensors  CoM level [mm]   CoM height [mm]  CoM [mm]        '
          'velocity [mm/s]  NEES c, v')
    print('                      kinem.  fused    kinem.  fused    kinem.  fused   '
          'kinem.  fused')
    for motion, seconds in motions.items():
        for name, sensors in (('exact', SensorOptions()), ('noisy', NOISE)):
            runs = [Rig(sensors=sensors, robot=robot, seed=seed, dt=1.0 / options.rate,
                        world=options.world, tendons=motion == 'sway bent').run(motion, seconds)
                    for seed in range(seeds)]
            print(f'{motion:13}{name:6}', describe(motion, runs), flush=True)
    return 0


def describe(motion: str, results: Sequence[FilterResult]) -> str:
    """Return the numbers of a line: root mean squares over all robots."""
    numbers = [1e3 * math.sqrt(np.mean([result.rms(estimate, axes) ** 2 for result in results]))
               for axes in (slice(0, 2), slice(2, 3), C, V) for estimate in ('kinematic', 'fused')]
    nees = np.mean([result.mean_nees() for result in results], axis=0)
    covered = 100.0 * np.mean([result.covered() for result in results], axis=0)
    line = ''.join(f'{n:8.2f}' for n in numbers) + f'   {nees[0]:5.2f} {nees[1]:5.2f}'
    line += '   covered ' + ' '.join(f'{share:3.0f}' for share in covered) + ' %'
    if motion.startswith('push'):
        worst = max(np.linalg.norm(push_estimate(result, 0.3) - PUSH) for result in results)
        line += f'   {100.0 * worst / np.linalg.norm(PUSH):.1f} % off after 0.3 s at worst'
    if motion == 'stand':
        creep = max(np.ptp(result.errors('fused')[:, 2]) for result in results)
        line += f'   height moves by {1e3 * creep:.1f} mm at worst'
    return line


if __name__ == '__main__':
    sys.exit(main())
