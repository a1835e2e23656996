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
Converts commands to setpoints of the drives, as ros2_control's controllers do.

A filter smooths positions, so that commands at 100 Hz give smooth motions and velocities. The
setpoints keep to the URDF's velocity limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Any

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.interface import Command
from biped_com_ros.sim.plant import Plant
import numpy as np

SMOOTHING = 60.0
"""
Bandwidth of the critically damped filter of positions, rad/s.

Commands are followed with a delay of 2 / SMOOTHING (33 ms) and a steady velocity, even if the
messages are irregular; steps of stiff legs with every message would make the soles slip.
"""

AT_REST = 1e-9
"""Setpoints closer to the command than this (rad, m) have arrived."""


@dataclass(frozen=True)
class Trajectory:
    """
    Interpolation of knots as by ros2_control's joint_trajectory_controller.

    Cubic if velocities are given at the knots, else linear.

    Attributes
    ----------
    joints
        Indices of the joints, shape (j,).
    times
        Ascending, shape (k,), s.
    positions, velocities
        Shape (k, j); velocities None: linear.
    efforts
        Shape (k, j), linear; None: zero.

    """

    joints: Any
    times: Array
    positions: Array
    velocities: Array | None
    efforts: Array | None = None

    def at(self, time: float) -> tuple[Array, Array]:
        """Positions and velocities (j,) at a time; at rest before the first and after the last."""
        if not self.times[0] <= time < self.times[-1]:
            return self.positions[0 if time < self.times[0] else -1], np.zeros(len(self.joints))
        k = int(np.searchsorted(self.times, time, side='right')) - 1
        span = self.times[k + 1] - self.times[k]
        s = (time - self.times[k]) / span
        start, change = self.positions[k], self.positions[k + 1] - self.positions[k]
        if self.velocities is None:
            return start + s * change, change / span
        v0, v1 = span * self.velocities[k], span * self.velocities[k + 1]
        a, b = v0 + v1 - 2.0 * change, 3.0 * change - 2.0 * v0 - v1
        return start + s * (v0 + s * (b + s * a)), (v0 + s * (2.0 * b + 3.0 * s * a)) / span

    def effort_at(self, time: float) -> Array:
        """Efforts (j,) at a time."""
        if self.efforts is None:
            return np.zeros(len(self.joints))
        return np.array([np.interp(time, self.times, column) for column in self.efforts.T])


class Setpoints:
    """
    Setpoints of a plant's drives and tendons.

    Parameters
    ----------
    plant
        The robot.
    names
        Joints in the order of position and effort commands; by default the plant's actuated
        ones. Virtual torso joints are converted to tendon lengths.

    Attributes
    ----------
    plant, names
        As above.
    tendon_count
        Number of tendon lengths.

    """

    def __init__(self, plant: Plant, names: Sequence[str] | None = None) -> None:
        self.plant = plant
        self.names = tuple(plant.actuated_joint_names if names is None else names)
        self.tendon_count = plant.tendon_count
        self._joints = (*plant.actuated_joint_names, *plant.virtual_joint_names)
        self._index = {name: i for i, name in enumerate(self._joints)}
        for name in self.names:
            self._require(name)
        self._order = np.array([self._index[name] for name in self.names], dtype=int)
        self._count = len(plant.actuated_joint_names)
        self.reset()

    def reset(self) -> None:
        """Hold the posture of the plant's last reset."""
        command = self._command = self.plant.hold()
        self._now = np.concatenate((command.position, self.plant.start_of_virtual_joints))
        self._goal, self._velocity = self._now.copy(), np.zeros_like(self._now)
        self._is_moving = False
        self._trajectory: Trajectory | None = None
        #: Of the last command, s.
        self._time = -math.inf
        #: Efforts of commands, of trajectories, by joint.
        self._efforts, self._trajectory_efforts = np.zeros((2, len(self._joints)))
        self._tendons_are_direct = False
        self._applied_virtual = self._now[self._count:].copy()

    def set_positions(self, positions: Array) -> None:
        """Set positions in the order of `names`; ends a trajectory that is running."""
        positions = self._checked('positions', positions)
        if self._trajectory is not None:
            self._goal[:], self._trajectory = self._now, None  # the other joints stop here
        self._goal[self._order] = positions
        self._is_moving = True
        if (self._order >= self._count).any():
            self._release_tendons()

    def set_efforts(self, efforts: Array) -> None:
        """Set feedforward efforts in the order of `names`, added to those of the drives."""
        efforts = self._checked('efforts', efforts)
        self._efforts[self._order] = efforts

    def set_tendons(self, lengths: Array) -> None:
        """Set tendon lengths, m."""
        lengths = np.asarray(lengths, dtype=float)
        if lengths.shape != (self.tendon_count,):
            raise InputError(f'the robot has {self.tendon_count} tendons, not {lengths.size}')
        rest = self.plant.hold().tendon_lengths
        if not (np.isfinite(lengths).all() and (abs(lengths / rest - 1.0) < 0.5).all()):
            raise InputError(
                f'tendon lengths {lengths.tolist()} m must be within half of {rest.tolist()} m')
        self._command.tendon_lengths[:] = lengths
        self._tendons_are_direct = True

    def set_trajectory(self, joints: Sequence[str], times: Any, positions: Any,
                       velocities: Any, start: float, efforts: Any = None) -> None:
        """
        Follow knots, from the present setpoints.

        Parameters
        ----------
        joints
            Joints of the plant; the others stay where they are.
        times
            After `start`, ascending, shape (k,), s.
        positions, velocities
            Shape (k, j); `velocities` may be None.
        start
            Time at which it starts, s; may be past. Until the first knot joints go there from
            where they are, or, before the start, stay.
        efforts
            Shape (k, j), added to those of the drives until the next trajectory; None: zero.

        Raises
        ------
        InputError
            If shapes, times or numbers are invalid; a running trajectory is kept.
        UnknownNameError
            If a joint cannot be commanded.

        """
        for name in joints:
            self._require(name)
        times, positions, velocities, efforts = _checked_knots(
            joints, times, positions, velocities, efforts)
        index = np.array([self._index[name] for name in joints], dtype=int)
        elapsed = max(self._time - start, 0.0)
        if times[0] > elapsed:
            times = np.concatenate(((elapsed,), times))
            positions = np.concatenate((self._now[np.newaxis, index], positions))
            if velocities is not None:
                velocities = np.concatenate((self._velocity[np.newaxis, index], velocities))
            if efforts is not None:
                efforts = np.concatenate((self._trajectory_efforts[np.newaxis, index], efforts))
        self._goal[:] = self._now
        self._is_moving = False
        self._trajectory = Trajectory(index, start + times, positions, velocities, efforts)
        kept = self._trajectory_efforts[index]
        self._trajectory_efforts[:] = 0.0
        self._trajectory_efforts[index] = 0.0 if efforts is None else kept
        if (index >= self._count).any():
            self._release_tendons()

    def command(self, time: float) -> Command:
        """Return the command for the step that begins at `time`."""
        dt = self.plant.dt
        self._time = time + dt
        if self._trajectory is not None:
            self._follow(self._trajectory, time + dt)
        elif self._is_moving:
            self._approach(dt)
        command = self._command
        command.position[:] = self._now[:self._count]
        command.velocity[:] = self._velocity[:self._count]
        command.effort[:] = (self._efforts + self._trajectory_efforts)[:self._count]
        if not self._tendons_are_direct:
            self._bend(command)
        return command

    def _bend(self, command: Command) -> None:
        """Convert a change of the virtual joints' setpoints to tendon lengths."""
        virtual = self._now[self._count:]
        if not np.array_equal(virtual, self._applied_virtual):
            self._applied_virtual = virtual.copy()
            command.tendon_lengths[:] = self.plant.tendon_lengths_for(virtual)

    def _release_tendons(self) -> None:
        """Compute tendon lengths from the virtual joints' setpoints again."""
        self._tendons_are_direct = False
        self._applied_virtual = np.full(len(self._joints) - self._count, np.nan)

    def _follow(self, trajectory: Trajectory, time: float) -> None:
        self._velocity[:] = 0.0
        if time < trajectory.times[0]:
            return
        self._now[trajectory.joints], self._velocity[trajectory.joints] = trajectory.at(time)
        self._trajectory_efforts[trajectory.joints] = trajectory.effort_at(time)
        if time >= trajectory.times[-1]:
            self._goal[:] = self._now
            self._trajectory = None

    def _approach(self, dt: float) -> None:
        """Advance one step of the critically damped motion to the goal, within velocity limits."""
        limit, decay = self.plant.velocity_limits, math.exp(-SMOOTHING * dt)
        error = self._now - self._goal
        slope = self._velocity + SMOOTHING * error
        after = decay * (error + dt * slope) + self._goal
        np.clip(after, self._now - dt * limit, self._now + dt * limit, out=after)
        self._velocity[:] = np.clip(decay * (self._velocity - SMOOTHING * dt * slope),
                                    -limit, limit)
        self._now[:] = after
        if max(np.abs(after - self._goal).max(), np.abs(self._velocity).max()) < AT_REST:
            self._now[:], self._velocity[:] = self._goal, 0.0
            self._is_moving = False

    def _checked(self, what: str, values: Array) -> Array:
        values = np.asarray(values, dtype=float)
        if values.shape != (len(self.names),):
            raise InputError(f'{what}: {values.size} values; valid: {len(self.names)}, one for '
                             f'each of {", ".join(self.names)}')
        if not np.isfinite(values).all():
            bad = [name for name, value in zip(self.names, values) if not np.isfinite(value)]
            raise InputError(f'{what} of {", ".join(bad)} are not finite')
        return values

    def _require(self, joint: str) -> None:
        if joint not in self._index:
            raise UnknownNameError('joint', joint, self._joints, 'a command')


def _checked_knots(joints: Sequence[str], times: Any, positions: Any, velocities: Any,
                   efforts: Any) -> tuple[Array, Array, Array | None, Array | None]:
    times, positions = np.array(times, dtype=float), np.array(positions, dtype=float)
    shape = (len(times), len(joints))
    if not times.size or positions.shape != shape:
        raise InputError(f'a trajectory needs points of one position for each of its '
                         f'{len(joints)} joints, not {positions.shape}')
    velocities, efforts = (None if values is None else np.array(values, dtype=float)
                           for values in (velocities, efforts))
    for what, values in (('times', times), ('positions', positions), ('velocities', velocities),
                         ('efforts', efforts)):
        if values is None:
            continue
        if what != 'times' and values.shape != shape:
            raise InputError(f'{what} have shape {values.shape}; valid: {shape}, or none')
        if not np.isfinite(values).all():
            raise InputError(f'{what} of the trajectory are not finite')
    if times[0] < 0.0 or (np.diff(times) <= 0.0).any():
        raise InputError(f'times of the trajectory must ascend from 0, not {times.tolist()}')
    return times, positions, velocities, efforts
