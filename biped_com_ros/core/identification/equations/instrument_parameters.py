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
"""Which errors of instruments are unknown, and how each of them enters the equations of rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import Equations, StaticsRegressor
from biped_com_ros.core.identification.equations.instruments import (
    AXES, directions_of, InstrumentErrors, InstrumentEstimate, InstrumentKind, MATRIX_AXES,
    MOMENT_ARM, XYZ)
import numpy as np
import pinocchio as pin

K = InstrumentKind
_ARM = np.array([1.0] * 3 + [MOMENT_ARM] * 3)


@dataclass(frozen=True)
class _Block:
    """Errors of one kind: names, axes of each, standard deviations (names, axes), unit."""

    kind: InstrumentKind
    names: Sequence[str]
    axes: Sequence[str]
    sigma: Array
    units: Sequence[str]


class InstrumentParameters:
    """
    The unknown errors of a robot's instruments, as one vector.

    Parameters
    ----------
    regressor
        Of the robot.
    noise
        Standard deviations of the errors; those that are zero are not unknown.
    captures
        What no capture measures is not unknown either.
    strength
        Largest torque of each joint, (n,), by which friction is scaled.

    Attributes
    ----------
    sigma
        Standard deviation of each unknown before the data, (V,).
    group
        Number of the group of each unknown that shares a scale, (V,).

    """

    def __init__(self, regressor: StaticsRegressor, noise: SensorNoise,
                 captures: Sequence[Capture], strength: Array) -> None:
        model = regressor.model
        self._joints, self._sensors = model.joint_names, tuple(model.config.wrench_sensors)
        self._feet = model.config.feet
        self._frames = tuple(sorted({capture.up_frame for capture in captures}))
        self._blocks = self._make_blocks(regressor, noise, captures, strength)
        sigma = np.concatenate([block.sigma.ravel() for block in self._blocks])
        group = np.concatenate([self._groups(i, b) for i, b in enumerate(self._blocks)])
        self._used: IndexArray = np.flatnonzero(sigma)
        self.sigma: Array = sigma[self._used]
        self.group: IndexArray = np.unique(group[self._used], return_inverse=True)[1]
        self._size = len(sigma)

    def errors(self, values: Array) -> InstrumentErrors:
        """Return the errors that a vector (V,) stands for."""
        full = np.zeros(self._size)
        full[self._used] = values
        ends = np.cumsum([block.sigma.size for block in self._blocks])[:-1]
        parts = dict(zip([b.kind for b in self._blocks], np.split(full, ends)))
        return InstrumentErrors(
            positions=parts[K.JOINT_OFFSET], torque_gains=parts[K.TORQUE_GAIN],
            torque_offsets=parts[K.TORQUE_OFFSET], friction=parts[K.FRICTION],
            tilts=dict(zip(self._frames, parts[K.TILT].reshape(-1, 3))),
            wrench_matrices=parts[K.WRENCH_MATRIX].reshape(-1, 6, 6),
            wrench_biases=parts[K.WRENCH_BIAS].reshape(-1, 6),
            wrench_drifts=parts[K.WRENCH_DRIFT].reshape(-1, 6),
            shifts=parts[K.SENSOR_SHIFT].reshape(-1, 3),
            turns=parts[K.SENSOR_TURN].reshape(-1, 3), floor=parts[K.FLOOR_TILT],
            soles=np.column_stack((
                parts[K.SOLE_TURN].reshape(-1, 2), parts[K.SOLE_HEIGHT])))

    def estimates(self, values: Array, sd: Array) -> tuple[InstrumentEstimate, ...]:
        """Return values (V,) and their standard deviations (V,) with their names."""
        entries = list(self._entries())
        return tuple(
            InstrumentEstimate(kind=kind, name=name, axis=axis, unit=unit, prior_sd=float(before),
                               estimate=float(value), sd=float(after))
            for (kind, name, axis, unit), before, value, after in zip(
                (entries[i] for i in self._used), self.sigma, values, sd))

    def columns(self, capture: Capture, e: Equations, theta: Array, errors: InstrumentErrors,
                when: float = 0.0) -> Array:
        """
        Return the derivative of the residual by the unknowns, (rows, V).

        Parameters
        ----------
        capture
            Corrected by `errors`.
        e
            The equations of that capture.
        theta
            Masses and first moments (L, 4).
        errors
            At which it is taken.
        when
            See :func:`instruments.times_of`.

        """
        gain = 1.0 / (1.0 + errors.torque_gains)
        # Predicted, because noise of the measured torque would pull the gain down.
        predicted = np.nan_to_num(capture.torques) + _by_joint(e, e.residual(theta))
        tilts = [-e.J_up @ pin.Jexp3(errors.tilts[frame]) if frame == capture.up_frame
                 else np.zeros_like(e.J_up) for frame in self._frames]
        matrix, bias, shift, turn = self._wrench_columns(capture, e, errors)
        soles = e.J_ground[:, 2:].reshape(len(e.rows), -1, 3)
        parts = {
            K.JOINT_OFFSET: -e.J_position, K.TORQUE_GAIN: -e.J_torque * (gain * predicted),
            K.TORQUE_OFFSET: -e.J_torque * gain,
            K.FRICTION: -e.J_torque * (gain * directions_of(capture)),
            K.TILT: np.concatenate(tilts, axis=1), K.WRENCH_MATRIX: matrix, K.WRENCH_BIAS: bias,
            K.WRENCH_DRIFT: when * bias, K.SENSOR_SHIFT: shift, K.SENSOR_TURN: turn,
            K.FLOOR_TILT: e.J_ground[:, :2], K.SOLE_HEIGHT: soles[:, :, 2],
            K.SOLE_TURN: soles[:, :, :2].reshape(len(e.rows), -1)}
        full = np.concatenate([parts[block.kind] for block in self._blocks], axis=1)
        return np.asarray(full[:, self._used])

    def _wrench_columns(self, capture: Capture, e: Equations,
                        errors: InstrumentErrors) -> tuple[Array, Array, Array, Array]:
        """Return derivatives by matrices, biases, shifts and turns."""
        rows, parts = len(e.rows), []
        for i, wrench in enumerate(np.nan_to_num(capture.wrenches)):
            J = e.J_reading[:, 6 * i:6 * i + 6]
            correction, shift = errors.corrections[i], errors.shifts[i]
            X = correction @ (np.eye(6) + errors.wrench_matrices[i])
            own = np.linalg.solve(X, wrench)  # in the sensor's true frame
            force, moment = wrench[:3], wrench[3:] - np.cross(shift, wrench[:3])
            by_shift = np.concatenate((np.zeros((3, 3)), -skew(force)))
            by_turn = np.concatenate(
                (-skew(force), -skew(moment) - skew(shift) @ skew(force)))
            by_turn = by_turn @ pin.Jexp3(-errors.turns[i])  # the left Jacobian
            by_bias = -J @ correction
            matrix = (by_bias[:, :, np.newaxis] * own).reshape(rows, 36)
            parts.append((matrix, by_bias, J @ by_shift, J @ by_turn))
        if not parts:
            none = np.zeros((rows, 0))
            return none, none, none, none
        matrix, bias, shifts, turns = (np.concatenate(p, axis=1) for p in zip(*parts))
        return matrix, bias, shifts, turns

    def _make_blocks(self, regressor: StaticsRegressor, noise: SensorNoise,
                     captures: Sequence[Capture], strength: Array) -> tuple[_Block, ...]:
        torques, sided, used = (
            np.asarray(known, dtype=float).reshape(-1, 1) for known in (
                np.isfinite([c.torques for c in captures]).any(axis=0),
                np.any([directions_of(c) != 0.0 for c in captures], axis=0),
                np.isfinite([c.wrenches for c in captures]).all(axis=2).any(axis=0)))
        revolute = ~regressor.is_prismatic[:, np.newaxis]
        share = np.where(np.eye(6, dtype=bool), noise.wrench_gain, noise.cross_talk)
        matrix = (share * np.outer(_ARM, 1.0 / _ARM)).reshape(1, 36)
        bias = np.array([[noise.force_bias] * 3 + [noise.moment_bias] * 3])
        drift = np.array([[noise.force_drift] * 3 + [noise.moment_drift] * 3])
        turning = ['N' if prismatic else 'N m' for prismatic in regressor.is_prismatic]
        joints, sensors, frames = self._joints, self._sensors, self._frames
        newtons = ['N'] * 3 + ['N m'] * 3
        soles = [foot.sole for foot in self._feet.values()]
        stands = noise.sole_contact > 0.0 and any(c.in_contact.any() for c in captures)
        # Gravity "measured" in a sole is the floor's normal, which was taken as vertical.
        tilt = np.where(np.isin(frames, soles), math.hypot(
            noise.tilt_bias, noise.floor_tilt, noise.sole_turn), noise.tilt_bias)
        ground = float(stands) * np.ones((len(soles), 2))
        # Only differences of heights count: the first sole is where the URDF has it.
        height = math.sqrt(2.0) * noise.sole_height * (np.arange(len(soles)) > 0)[:, np.newaxis]
        return (
            _Block(K.JOINT_OFFSET, joints, ('',), noise.encoder_offset * revolute, ('rad',)),
            _Block(K.TORQUE_GAIN, joints, ('',), noise.torque_gain * torques, ('',)),
            _Block(K.TORQUE_OFFSET, joints, ('',), noise.torque_bias * torques, turning),
            _Block(K.FRICTION, joints, ('',), noise.friction * strength[:, np.newaxis]
                   * torques * sided, turning),
            _Block(K.TILT, frames, XYZ, np.repeat(tilt[:, np.newaxis], 3, axis=1), ('rad',)),
            _Block(K.WRENCH_MATRIX, sensors, MATRIX_AXES, matrix * used, ('',)),
            _Block(K.WRENCH_BIAS, sensors, AXES, bias * used, newtons * len(sensors)),
            _Block(K.WRENCH_DRIFT, sensors, AXES, drift * used, newtons * len(sensors)),
            _Block(K.SENSOR_SHIFT, sensors, XYZ, noise.sensor_shift * used * np.ones(3), ('m',)),
            _Block(K.SENSOR_TURN, sensors, XYZ, noise.sensor_turn * used * np.ones(3), ('rad',)),
            _Block(K.FLOOR_TILT, ('floor',), XYZ[:2], noise.floor_tilt * ground[:1], ('rad',)),
            _Block(K.SOLE_TURN, tuple(self._feet), XYZ[:2], noise.sole_turn * ground, ('rad',)),
            _Block(K.SOLE_HEIGHT, tuple(self._feet), XYZ[2:], height * ground[:, :1], ('m',)))

    def _groups(self, number: int, block: _Block) -> Array:
        """Return the group of each of a block's errors; gains and cross-talk are two."""
        is_moment = np.arange(6) > 2
        second = {K.WRENCH_MATRIX: np.eye(6).ravel() == 0.0, K.WRENCH_BIAS: is_moment,
                  K.WRENCH_DRIFT: is_moment}.get(block.kind, np.zeros(len(block.axes)))
        return np.asarray(np.tile(2 * number + second, len(block.names)))

    def _entries(self) -> Iterator[tuple[InstrumentKind, str, str, str]]:
        for block in self._blocks:
            pairs = [(name, axis) for name in block.names for axis in block.axes]
            units = (len(pairs) // len(block.units)) * list(block.units) if pairs else []
            for (name, axis), unit in zip(pairs, units):
                yield block.kind, name, axis, unit


def _by_joint(e: Equations, residual: Array) -> Array:
    """Return the residuals of the joints' torques, (n,), zero where there is none."""
    return np.asarray(-e.J_torque.T @ residual)
