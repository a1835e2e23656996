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
"""Trajectories of joints, interpolated as by ros2_control's joint_trajectory_controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
import numpy as np

#: Velocities below this count as rest, rad/s or m/s.
_AT_REST = 1e-5
_MIXED = 'only some points have {what}; valid: all or none'


@dataclass(frozen=True, kw_only=True)
class JointTrajectory:
    """
    Points through which some joints move.

    Between them linear, cubic or quintic, by what they have besides positions.

    Attributes
    ----------
    joints
        Their names.
    times
        Since the start, ascending from 0 or later, (k,), s.
    positions
        (k, j), rad or m.
    velocities, accelerations
        (k, j) each; None: they are not given. The last velocities are zero.

    Raises
    ------
    InputError
        If shapes or values are invalid, or the joints do not end at rest.

    """

    joints: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array | None = None
    accelerations: Array | None = None

    def __post_init__(self) -> None:
        """Check everything."""
        if not self.joints or len(set(self.joints)) < len(self.joints):
            raise InputError(f'joint_names {list(self.joints)} must be joints, each once')
        if not len(self.times):
            raise InputError('the trajectory has no points')
        self._check_values()
        if self.times[0] < 0.0 or (np.diff(self.times) <= 0.0).any():
            raise InputError(f'time_from_start must ascend from 0, not {self.times.tolist()}')
        if self.accelerations is not None and self.velocities is None:
            raise InputError('accelerations need velocities, too')
        if self.velocities is not None and np.abs(self.velocities[-1]).max() > _AT_REST:
            raise InputError(
                f'the velocities of the last point are {self.velocities[-1].tolist()}; valid: '
                'zero, because the joints stay there')

    def _check_values(self) -> None:
        shape = (len(self.times), len(self.joints))
        for what, values in (('positions', self.positions), ('velocities', self.velocities),
                             ('accelerations', self.accelerations)):
            if values is None:
                continue
            if values.shape != shape:
                raise InputError(f'{what} have shape {values.shape}; valid: {shape}, one for each '
                                 'point and joint')
            if not np.isfinite(values).all():
                raise InputError(f'{what} of the trajectory are not finite')
        if not np.isfinite(self.times).all():
            raise InputError('time_from_start is not finite')

    @property
    def duration(self) -> float:
        """Time from the start to the last point, s."""
        return float(self.times[-1])

    def at(self, time: float) -> tuple[Array, Array]:
        """Return positions and velocities, (j,) each, at a time since the start, s."""
        if not self.times[0] <= time < self.times[-1]:
            row = 0 if time < self.times[0] else -1
            return self.positions[row], np.zeros(len(self.joints))
        k = int(np.searchsorted(self.times, time, side='right')) - 1
        span = float(self.times[k + 1] - self.times[k])
        coefficients = self._coefficients(k, span)
        s = (time - float(self.times[k])) / span
        position, slope = coefficients[-1], np.zeros(len(self.joints))
        for coefficient in coefficients[-2::-1]:
            slope = slope * s + position
            position = position * s + coefficient
        return position, slope / span

    def _coefficients(self, k: int, span: float) -> list[Array]:
        """Return those of the polynomial of segment `k` in time / span, lowest power first."""
        start, change = self.positions[k], self.positions[k + 1] - self.positions[k]
        if self.velocities is None:
            return [start, change]
        v0, v1 = span * self.velocities[k], span * self.velocities[k + 1]
        if self.accelerations is None:
            return [start, v0, 3.0 * change - 2.0 * v0 - v1, v0 + v1 - 2.0 * change]
        a0, a1 = (span * span * self.accelerations[i] for i in (k, k + 1))
        return [start, v0, 0.5 * a0,
                10.0 * change - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1,
                -15.0 * change + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1,
                6.0 * change - 3.0 * (v0 + v1) + 0.5 * (a1 - a0)]


def joint_trajectory(joints: Sequence[str], times: Sequence[float],
                     positions: Sequence[Sequence[float]],
                     velocities: Sequence[Sequence[float]],
                     accelerations: Sequence[Sequence[float]]) -> JointTrajectory:
    """
    Make a trajectory of the fields of its points, one item per point, that may be empty.

    Raises
    ------
    InputError
        If the trajectory is invalid.

    """
    for i, point in enumerate(positions):
        if len(point) != len(joints):
            raise InputError(f'point {i} has {len(point)} positions for {len(joints)} '
                             'joint_names; valid: one each')
    return JointTrajectory(
        joints=tuple(joints), times=np.array(times, dtype=float),
        positions=np.array(positions, dtype=float).reshape(len(times), len(joints)),
        velocities=_optional('velocities', velocities, len(joints)),
        accelerations=_optional('accelerations', accelerations, len(joints)))


def _optional(what: str, points: Sequence[Sequence[float]], count: int) -> Array | None:
    sizes = {len(point) for point in points}
    if sizes <= {0}:
        return None
    if 0 in sizes:
        raise InputError(_MIXED.format(what=what))
    if sizes != {count}:
        raise InputError(f'a point has {max(sizes - {count})} {what} for {count} joint_names; '
                         'valid: one each, or none')
    return np.array(points, dtype=float)


def braking(joints: Sequence[str], positions: Array, velocities: Array,
            duration: float) -> JointTrajectory:
    """Return the trajectory that brings joints to rest from positions and velocities, (j,)."""
    return JointTrajectory(
        joints=tuple(joints), times=np.array([0.0, duration]),
        positions=np.stack((positions, positions + 0.5 * duration * velocities)),
        velocities=np.stack((velocities, np.zeros_like(velocities))))
