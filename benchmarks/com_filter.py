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

    python -m benchmarks.com_filter            a table for every motion

The robot carries something that its URDF does not know: 8 % of its mass on the torso, off-centre.
It sways at 1 Hz, steps in place, and is pushed. Errors are against the simulator's truth, root
mean square, after two seconds; the base is the true one, so that drift of leg odometry, which no
CoM filter can see, stays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import math
import sys
from typing import Any

from biped_com_ros.core.base import Twist
from biped_com_ros.core.com import com_velocity_in_world
from biped_com_ros.core.com_filter import C, ComFilter, ComFilterSettings, V
from biped_com_ros.core.contact import ContactDetector, ContactThresholds
from biped_com_ros.core.motion import HipShift
from biped_com_ros.core.pose import Pose
from biped_com_ros.core.robot import RobotModel
from biped_com_ros.core.wrench import WrenchSum
from biped_com_ros.core.wrench_aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.zmp import ModelWrench
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.interface import Command, PlantOptions, SensorOptions
from biped_com_ros.sim.plant import Plant
import numpy as np

HIDDEN = {'torso': LinkError(0.288, (0.02, -0.015, 0.03))}
SETTLED = 0.6
"""The robot is put down, and estimated from here on, s."""
PUSH_AT, PUSH_FOR, PUSH = 2.5, 0.5, (2.0, 1.2, 0.0)
NOISE = SensorOptions(encoder_noise=0.0002, velocity_noise=0.01, force_noise=0.1,
                      torque_noise=0.005, gyro_noise=0.002)
MOTIONS = {'sway': 8.5, 'step': 8.5, 'push': 4.5}


@dataclass
class Result:
    """What came out, one row per instant."""

    times: list[float] = field(default_factory=list)
    kinematic: list[Any] = field(default_factory=list)
    fused: list[Any] = field(default_factory=list)
    truth: list[Any] = field(default_factory=list)
    forces: list[Any] = field(default_factory=list)
    nees: list[Any] = field(default_factory=list)

    def errors(self, estimate: str, since: float = 2.0) -> np.ndarray:
        """Return errors of `kinematic` or `fused`, (n, 6): position, velocity."""
        late = np.array(self.times) > since
        return (np.array(getattr(self, estimate)) - np.array(self.truth))[late]

    def rms(self, estimate: str, axes: slice, since: float = 2.0) -> float:
        """Return the root mean square length of an error."""
        errors = self.errors(estimate, since)[:, axes]
        return float(np.sqrt((errors ** 2).sum(axis=1).mean()))


class Rig:
    """A simulated robot with a hidden load, and the filter."""

    def __init__(self, settings: ComFilterSettings | None = None,
                 sensors: SensorOptions | None = None, robot: str = 'biped',
                 errors: Any = None) -> None:
        self.model = model = RobotModel.load(robot)
        self.plant = Plant(
            model.config, model.urdf, PlantOptions(
                tendons=False, errors=HIDDEN if errors is None else errors,
                sensors=sensors or SensorOptions()),
            model.joint_names, model.link_names)
        self.filter = ComFilter(model.mass, settings or ComFilterSettings())
        self.result = Result()
        self._hips = HipShift(model, model.posture())
        self._half_stance = 0.5 * float(np.ptp(model.state(model.posture()).soles_in_world[:, 1]))
        self._aggregation = WrenchAggregation(model, AggregationSettings())
        self._wrench = ModelWrench(model)
        feet = len(model.soles.names)
        self._detectors = [ContactDetector(ContactThresholds(), model.mass * 9.81)
                           for _ in range(feet)]
        self._sum, self._time = WrenchSum(feet), -1.0

    def run(self, motion: str, seconds: float) -> Result:
        """Let the robot move and estimate."""
        for i in range(round(seconds / self.plant.dt)):
            t = i * self.plant.dt
            if motion == 'push' and abs(t - PUSH_AT) < 1e-9:
                self.plant.push('torso', (*PUSH, 0.0, 0.0, 0.0), PUSH_FOR)
            self.plant.step(self._command(motion, t))
            if t >= SETTLED:
                self._estimate()
        return self.result

    def _command(self, motion: str, t: float) -> Command:
        hold, plant = self.plant.hold(), self.plant
        offset, lift, leg = (0.0, 0.0, 0.0), 0.0, 'l'
        if motion == 'sway':
            ramp = min(t, 1.0)
            offset = (0.012 * ramp * math.sin(1.4 * math.pi * t),
                      0.02 * ramp * math.sin(2.0 * math.pi * t), 0.0)
        elif motion == 'step':
            side, leg = (1.0, 'r') if t % 8.0 < 4.0 else (-1.0, 'l')
            shift = _smooth(t % 4.0, (0.0, 0.8, 1.0, 2.6, 3.0, 4.0), (0, .85, 1, 1, 1, 0))
            lift = _smooth(t % 4.0, (1.3, 1.8, 2.1, 2.6), (0, 1, 1, 0))
            offset = (0.0, side * self._half_stance * shift, 0.0)
        actuated = self.model.joint_index(plant.actuated_joint_names)
        positions = self._hips.positions(offset)[actuated]
        for joint, angle in (('hip_pitch', -0.25), ('knee', 0.5), ('ankle_pitch', -0.25)):
            positions[plant.actuated_joint_names.index(f'{leg}_{joint}')] += lift * angle
        return Command(positions, hold.velocity, hold.effort, hold.tendon_lengths)

    def _estimate(self) -> None:
        seen, truth, model = self.plant.observation, self.plant.truth(), self.model
        base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
        twist = Twist(truth.base_twist[:3], truth.base_twist[3:])
        state = model.state(seen.joint_positions, seen.joint_velocities).in_world(base)
        total = self._feel(seen, state, base)
        dt = seen.time - self._time if self._time >= 0.0 else 0.0
        self._time = seen.time
        comparison = self._wrench.update(state, twist, dt, total)
        com, velocity = state.com_in_world, com_velocity_in_world(state, twist)
        self.filter.update(dt, com, velocity, base.rotation[:, 0], total[:3], comparison,
                           self._wrench.delay)
        self._note(seen.time, np.concatenate((com, velocity)),
                   np.concatenate((truth.com, truth.com_velocity)))

    def _feel(self, seen: Any, state: Any, base: Pose) -> np.ndarray:
        """Return the wrench of the feet that stand, about the world's origin."""
        ns = round(1e9 * seen.time)
        self._aggregation.set_state(
            state, base.rotation @ state.pose_in_base(model_imu(self.model)).rotation)
        for i, wrench in enumerate(seen.wrenches):
            self._aggregation.take(i, wrench, ns)
        wrenches = np.array([body.wrench for body in self._aggregation.bodies
                             if body.detector is not None])
        stands = [d.update(f, ns) for d, f in zip(self._detectors, wrenches[:, 2].tolist())]
        wrenches[~np.array(stands)] = 0.0
        placements = state.placements_in_base(self.model.soles).dot(base.rotation.T)
        placements[:, 3] += base.position
        return self._sum.into(np.empty(6), placements[:, :3].transpose(0, 2, 1),
                              placements[:, 3], wrenches)

    def _note(self, time: float, kinematic: np.ndarray, truth: np.ndarray) -> None:
        result, found = self.result, self.filter
        result.times.append(time)
        result.kinematic.append(kinematic)
        result.truth.append(truth)
        result.fused.append(found.state[:6].copy())
        result.forces.append(found.external_force.copy())
        error = found.state[:6] - truth
        result.nees.append([float(error[part] @ np.linalg.solve(
            found.covariance[part, part], error[part])) for part in (C, V)])


def _smooth(t: float, times: Sequence[float], values: Sequence[float]) -> float:
    phase = float(np.interp(t, times, values))
    return phase * phase * (3.0 - 2.0 * phase)


def model_imu(model: RobotModel) -> str:
    """Return the frame of the IMU that tells the base's orientation."""
    return model.config.imu.frame


def push_estimate(result: Result, after: float) -> np.ndarray:
    """Return the external force felt so long after the push began, (3,), N."""
    at = int(np.searchsorted(result.times, PUSH_AT + after))
    return np.array(result.forces[at])


def main() -> int:
    """Print the table."""
    print('motion sensors   CoM level [mm]   CoM height [mm]  velocity [mm/s]  NEES c, v   push')
    print('                 kinem.  fused    kinem.  fused    kinem.  fused   (3 expected)')
    for motion, seconds in MOTIONS.items():
        for name, sensors in (('exact', SensorOptions()), ('noisy', NOISE)):
            result = Rig(sensors=sensors).run(motion, seconds)
            numbers = [1e3 * result.rms(estimate, axes) for axes in (
                slice(0, 2), slice(2, 3), V) for estimate in ('kinematic', 'fused')]
            nees = np.mean(np.array(result.nees)[np.array(result.times) > 2.0], axis=0)
            push = ''
            if motion == 'push':
                error = np.linalg.norm(push_estimate(result, 0.3)[:2] - PUSH[:2])
                push = f'{100.0 * error / np.linalg.norm(PUSH):.1f} % off after 0.3 s'
            print(f'{motion:6} {name:6}' + ''.join(f'{n:9.2f}' for n in numbers)
                  + f'   {nees[0]:5.2f} {nees[1]:5.2f}   {push}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
