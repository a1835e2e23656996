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
What functions of the core cost, some against the bare Pinocchio calls that give the same result.

::

    python benchmarks/core.py [--robot talos] [--quick]

Both sides begin with the same joint positions (q is made of them by the same function, mimicking
joints included: whoever calls Pinocchio has to make it, too) and end with the same outputs as
NumPy arrays that outlive the next call; Pinocchio's are read in the obvious way. They take turns,
so that a ratio compares what ran side by side. Efforts within limits are those of loads for which
limits are active, each time of another one, as in the loop.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
import itertools

from benchmarks.common import (
    alternate, console, machine, microseconds, print_table, print_targets, ratio, Target)
from biped_com_ros.core.com.fused import FusedComEstimator
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.geometry.wrench import sum_wrenches, wrench_adjoint
from biped_com_ros.core.gravity.model import GravityLoad, GravityModel
from biped_com_ros.core.gravity.support_qp import BoundedNorm, SupportLimits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.leg_odometry import LegOdometry
import numpy as np
import pinocchio as pin
from rich.markup import escape

Call = Callable[[], object]
POSITIONS_TO_COM = 'positions -> CoM'


@dataclass
class Pair:
    """A function of ours and Pinocchio's way to the same numbers."""

    ours: Call
    bare: Call
    what_is_bare: str


class Inputs:
    """A random state of a robot, in our terms and in Pinocchio's."""

    def __init__(self, robot: str) -> None:
        generator = np.random.default_rng(1)
        self.robot = RobotModel.load(robot)
        self.model = self.robot.pin_model
        self.data = self.model.createData()
        n = len(self.robot.joint_names)
        self.positions, self.velocities = generator.uniform(-0.5, 0.5, (2, n))
        self.q = self.robot.configuration(self.positions)
        self.v = self.robot.velocity(self.velocities)
        self.frames = [self.model.getFrameId(name) for name in self.robot.link_names]
        coms = self.robot.link_coms_in_link
        self.inertials = list(zip(self.frames, coms))
        self.link_frames = self.robot.frames(self.robot.link_names)
        self.base = Pose.from_rpy((0.1, -0.2, 0.3), np.array([0.4, -0.5, 0.9]))
        self.wrenches = generator.normal(size=(4, 6))
        poses = [pin.SE3.Random() for _ in range(4)]
        self.rotations = np.array([p.rotation for p in poses])
        self.origins = np.array([p.translation for p in poses])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', default='talos', help='name or YAML of the robot')
    parser.add_argument('--quick', action='store_true', help='a few seconds, for CI')
    options = parser.parse_args()
    inputs = Inputs(options.robot)
    console.print(machine())
    rounds = 160 if options.quick else 800
    print_targets([*measure(inputs, rounds), *measure_estimates(inputs.robot, rounds // 8)])


class Trembling:
    """Instants of a robot that trembles on its feet, 2 ms apart."""

    def __init__(self, model: RobotModel) -> None:
        self.model, self.ns = model, 0
        self._positions, self._speed = model.posture(), np.full(len(model.joint_names), 0.01)
        imu = model.config.imu.frame
        self.base = LegOdometry(model, imu)
        self._orientation = model.state(self._positions).pose_in_base(imu).rotation
        self._wrenches = np.zeros((len(model.soles.names), 6))
        self._wrenches[:, 2] = model.mass * GRAVITY / len(self._wrenches)

    def following(self) -> LocatedState:
        """Return the robot in the world, as the nodes locate it."""
        self.ns += 2_000_000
        self._positions += 1e-9
        state = self.model.state(self._positions, self._speed)
        pose = self.base.update(state, self._orientation, (True,) * len(self._wrenches))
        return LocatedState(
            self.ns, state.in_world(pose, self.base.sole_placements), self.base.stance, True,
            lambda state: self.base.twist(state, np.zeros(3)), wrenches=self._wrenches.tolist())


CLOSED, WITHIN_LIMITS = 'efforts on two feet, closed form', 'efforts within limits'
TWIST, STABILITY, FUSED = 'kinematics, base and twist', 'and stability', 'or the fused CoM'


def measure_estimates(model: RobotModel, rounds: int) -> list[Target]:
    """Time estimates that nodes make at every instant, and return the targets."""
    gravity, positions = GravityModel(model), model.posture()
    up, shares = np.array((0.0, 0.0, 1.0)), np.array((0.4, 0.6))
    state = model.state(positions)
    bounded, hard = BoundedNorm(gravity, SupportLimits(sole_margin=0.03)), hard_cases(gravity)
    monitor, fusion = StabilityMonitor(model, MonitorSettings()), FusedComEstimator(model)
    alone, watched, fused = (Trembling(model) for _ in range(3))

    def within_limits() -> object:
        load, hard_shares = next(hard)
        return load.on_contacts(hard_shares, bounded)
    times = alternate({
        CLOSED: lambda: gravity.load(state, up).on_contacts(shares),
        WITHIN_LIMITS: within_limits,
        TWIST: lambda: alone.following().twist,
        STABILITY: lambda: monitor.update(watched.following()),
        FUSED: lambda: fusion.update(2e-3, fused.following())}, rounds, budget=2e-3)
    print_table('Estimates at an instant', ('what', 'us'), [
        (name, f'{microseconds(values):.1f}') for name, values in times.items()])
    return [
        Target('G1', CLOSED, microseconds(times[CLOSED]), 40.0, unit='us'),
        Target('G2', WITHIN_LIMITS, microseconds(times[WITHIN_LIMITS]), 150.0, unit='us'),
        Target('Z1', 'stability against kinematics alone', ratio(times, STABILITY, TWIST), 4.0)]


def hard_cases(gravity: GravityModel) -> Iterator[tuple[GravityLoad, np.ndarray]]:
    """Return an endless series of (load, shares) beyond the limits of the closed form."""
    model, cases = gravity.model, []
    probe = BoundedNorm(gravity, SupportLimits(sole_margin=0.03))
    for phase in np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False):
        up = np.array((0.02 * np.sin(phase), 0.02 * np.cos(phase), 1.0))
        load = gravity.load(model.state(model.posture()), up / np.linalg.norm(up))
        shares = np.array((0.1, 0.9)) + 0.02 * np.sin(phase) * np.array((1.0, -1.0))
        load.on_contacts(shares, probe)
        if probe.iterations:
            cases.append((load, shares))
    return itertools.cycle(cases)


def measure(inputs: Inputs, rounds: int) -> list[Target]:
    """Time every pair, print the table and return the targets."""
    pairs = make_pairs(inputs)
    check_same(pairs)
    data, q, model = inputs.data, inputs.q, inputs.model
    calls: dict[str, Call] = {
        'centerOfMass(q)': lambda: pin.centerOfMass(model, data, q).copy(),
        POSITIONS_TO_COM: lambda: pin.centerOfMass(
            model, data, inputs.robot.configuration(inputs.positions)).copy()}
    for name, pair in pairs.items():
        calls[name], calls[f'bare {name}'] = pair.ours, pair.bare
    calls['all link CoMs, loop'] = lambda: link_coms_one_by_one(inputs)
    times = alternate(calls, rounds)
    print_table(
        f'{inputs.robot.config.name}: {len(inputs.robot.joint_names)} joints, '
        f'{len(inputs.robot.link_names)} links with mass',
        ('function', 'us', 'bare us', 'ratio', 'to positions -> CoM', 'bare Pinocchio'),
        [row(times, name, pair) for name, pair in pairs.items()])
    console.print(
        f'positions -> q -> centerOfMass(q) takes {microseconds(times[POSITIONS_TO_COM]):.2f} us, '
        f'centerOfMass(q) alone {microseconds(times["centerOfMass(q)"]):.2f} us; against the '
        f'latter all link CoMs take {ratio(times, "all link CoMs", "centerOfMass(q)"):.2f} x')
    return targets(times, pairs)


def row(times: dict[str, np.ndarray], name: str, pair: Pair) -> tuple[str, ...]:
    """Return the table's row of one pair."""
    bare = f'bare {name}'
    return (name, f'{microseconds(times[name]):.2f}', f'{microseconds(times[bare]):.2f}',
            f'{ratio(times, name, bare):.2f}', f'{ratio(times, name, POSITIONS_TO_COM):.2f}',
            escape(pair.what_is_bare))


def targets(times: dict[str, np.ndarray], pairs: dict[str, Pair]) -> list[Target]:
    """Return target 5 and the demand on every function."""
    worst = max(pairs, key=lambda name: ratio(times, name, f'bare {name}'))
    return [
        Target('5a', 'all link CoMs against the CoM, both from joint positions',
               ratio(times, 'all link CoMs', POSITIONS_TO_COM), 3.0),
        Target('5b', 'all link CoMs faster than the loop',
               ratio(times, 'all link CoMs, loop', 'all link CoMs'), 10.0, at_least=True),
        Target('', f'every function against bare Pinocchio (worst: {worst})',
               ratio(times, worst, f'bare {worst}'), 1.3)]


def make_pairs(i: Inputs) -> dict[str, Pair]:
    """Return what is compared, by name."""
    state = i.robot.state(i.positions, i.velocities)
    rotation, origin, wrench = i.rotations[0], i.origins[0], i.wrenches[0]
    wrenches = i.wrenches.tolist()
    placements = [[*R.T.tolist(), p.tolist()] for R, p in zip(i.rotations, i.origins)]
    return {
        'CoM, velocity and placements': Pair(
            lambda: read_state(i), lambda: bare_state(i), 'centerOfMass(q, v), read oMi'),
        'all link CoMs': Pair(
            lambda: i.robot.state(i.positions).link_coms_in_base,
            lambda: link_coms_one_by_one(i), 'framesForwardKinematics, oMf[i].act(c)'),
        'all link frames': Pair(
            lambda: i.robot.state(i.positions).placements_in_base(i.link_frames),
            lambda: bare_frames(i), 'framesForwardKinematics, read oMf'),
        'state in the world': Pair(
            lambda: state.in_world(i.base).com_in_world,
            lambda: pin.SE3(i.base.rotation, i.base.position).act(state.com_in_base),
            'SE3(R, p).act(com)'),
        'transform a wrench': Pair(
            lambda: wrench_adjoint(rotation, origin) @ wrench,
            lambda: pin.SE3(rotation, origin).act(pin.Force(wrench)).vector.copy(),
            'SE3(R, p).act(Force(w))'),
        'wrench adjoint': Pair(
            lambda: wrench_adjoint(rotation, origin),
            lambda: pin.SE3(rotation, origin).toDualActionMatrix(),
            'SE3(R, p).toDualActionMatrix'),
        'sum 4 wrenches': Pair(
            lambda: np.array(sum_wrenches(wrenches, placements)),
            lambda: bare_sum(i), 'sum of SE3.act(Force(w))'),
    }


def check_same(pairs: dict[str, Pair]) -> None:
    """Make sure that both sides of every pair compute the same numbers."""
    for name, pair in pairs.items():
        ours, bare = pair.ours(), pair.bare()
        for a, b in zip(ours if isinstance(ours, tuple) else (ours,),
                        bare if isinstance(bare, tuple) else (bare,)):
            np.testing.assert_allclose(a, b, atol=1e-10, err_msg=name)


def read_state(i: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return CoM and velocity by way of a RobotState, which also keeps all placements."""
    state = i.robot.state(i.positions, i.velocities)
    return state.com_in_base, state.com_velocity_in_base


def bare_state(i: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return the same by Pinocchio alone, placements read as arrays."""
    q, v = i.robot.configuration(i.positions), i.robot.velocity(i.velocities)
    pin.centerOfMass(i.model, i.data, q, v, False)
    placements = [(m.rotation.copy(), m.translation.copy()) for m in i.data.oMi]
    del placements
    return i.data.com[0].copy(), i.data.vcom[0].copy()


def link_coms_one_by_one(i: Inputs) -> np.ndarray:
    """Return the CoM of each link, as everybody writes it first."""
    pin.framesForwardKinematics(i.model, i.data, i.robot.configuration(i.positions))
    return np.array([i.data.oMf[frame].act(com) for frame, com in i.inertials])


def bare_frames(i: Inputs) -> np.ndarray:
    """Return the pose of each link as RobotState does, frame by frame."""
    pin.framesForwardKinematics(i.model, i.data, i.robot.configuration(i.positions))
    return np.array([
        (*i.data.oMf[frame].rotation.T, i.data.oMf[frame].translation) for frame in i.frames])


def bare_sum(i: Inputs) -> np.ndarray:
    """Return the total of four wrenches by Pinocchio's types."""
    total = pin.Force.Zero()
    for rotation, origin, wrench in zip(i.rotations, i.origins, i.wrenches):
        total += pin.SE3(rotation, origin).act(pin.Force(wrench))
    return total.vector.copy()


if __name__ == '__main__':
    main()
