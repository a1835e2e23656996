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

from collections.abc import Mapping, Sequence
from itertools import product
import math

from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import Equations, StaticsRegressor
from biped_com_ros.core.identification.equations.instruments import (
    directions_of, InstrumentErrors, InstrumentEstimate, InstrumentKind, K, MOMENT_ARM, OF_JOINTS,
    OF_SENSORS)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin

_ARM = np.array([1.0] * 3 + [MOMENT_ARM] * 3)
_UNITS = {K.TORQUE_GAIN: '', K.TILT: 'rad', K.WRENCH_MATRIX: '',
          K.SENSOR_SHIFT: 'm', K.SENSOR_TURN: 'rad', K.FLOOR_TILT: 'rad', K.SOLE_TURN: 'rad',
          K.SOLE_HEIGHT: 'm'}
"""Of the others, forces and moments or torques, it depends on axis and joint."""


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
        self._frames = tuple(sorted({capture.up_frame for capture in captures}))
        self._names = _names_of(model, self._frames)
        self._slides = dict(zip(model.joint_names, regressor.is_prismatic.tolist()))
        sigmas = self._sigmas(regressor, noise, captures, strength)
        self._kinds = tuple(sigmas)
        self._ends = np.cumsum([block.size for block in sigmas.values()])
        sigma = np.concatenate([block.ravel() for block in sigmas.values()])
        group = np.concatenate([self._groups(i, kind) for i, kind in enumerate(self._kinds)])
        self._used: IndexArray = np.flatnonzero(sigma)
        self.sigma: Array = sigma[self._used]
        self.group: IndexArray = np.unique(group[self._used], return_inverse=True)[1]

    def errors(self, values: Array) -> InstrumentErrors:
        """Return the errors that a vector (V,) stands for."""
        full = np.zeros(self._ends[-1])
        full[self._used] = values
        return InstrumentErrors.of(
            dict(zip(self._kinds, np.split(full, self._ends[:-1]))), self._frames)

    def estimates(self, values: Array, sd: Array) -> tuple[InstrumentEstimate, ...]:
        """Return values (V,) and their standard deviations (V,) with their names."""
        entries = [(kind, name, axis) for kind in self._kinds
                   for name, axis in product(self._names[kind], kind.axes)]
        return tuple(
            InstrumentEstimate(kind=kind, name=name, axis=axis, unit=self._unit(kind, name, axis),
                               prior_sd=float(before), estimate=float(value), sd=float(after))
            for (kind, name, axis), before, value, after in zip(
                (entries[i] for i in self._used), self.sigma, values, sd))

    def _unit(self, kind: InstrumentKind, name: str, axis: str) -> str:
        is_force = self._slides[name] if kind in OF_JOINTS else axis.startswith('f')
        if kind is K.JOINT_OFFSET:
            return 'm' if is_force else 'rad'
        return _UNITS.get(kind, 'N' if is_force else 'N m')

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
        J_up, J_torque = e.J[:, e.inputs.up], e.J[:, e.inputs.torques]
        # Predicted, because noise of the measured torque would pull the gain down.
        predicted = np.nan_to_num(capture.torques) - J_torque.T @ e.residual(theta)
        tilts = [-J_up @ pin.Jexp3(errors.tilts[frame]) if frame == capture.up_frame
                 else np.zeros_like(J_up) for frame in self._frames]
        matrix, bias, shift, turn = self._wrench_columns(capture, e, errors)
        soles = e.J_ground[:, 2:].reshape(len(e.rows), -1, 3)
        parts = {
            K.JOINT_OFFSET: -e.J[:, e.inputs.positions],
            K.TORQUE_GAIN: -J_torque * (gain * predicted),
            K.TORQUE_OFFSET: -J_torque * gain,
            K.FRICTION: -J_torque * (gain * directions_of(capture)),
            K.TILT: np.concatenate(tilts, axis=1), K.WRENCH_MATRIX: matrix, K.WRENCH_BIAS: bias,
            K.WRENCH_DRIFT: when * bias, K.SENSOR_SHIFT: shift, K.SENSOR_TURN: turn,
            K.FLOOR_TILT: e.J_ground[:, :2], K.SOLE_HEIGHT: soles[:, :, 2],
            K.SOLE_TURN: soles[:, :, :2].reshape(len(e.rows), -1)}
        full = np.concatenate([parts[kind] for kind in self._kinds], axis=1)
        return np.asarray(full[:, self._used])

    def position_columns(self, J_position: Array) -> Array:
        """Return the derivative (rows, V) of what depends on joint positions alone, (rows, n)."""
        full = np.zeros((len(J_position), self._ends[-1]))
        full[:, :J_position.shape[1]] = -J_position  # offsets of joints come first
        return np.asarray(full[:, self._used])

    def _wrench_columns(self, capture: Capture, e: Equations,
                        errors: InstrumentErrors) -> tuple[Array, Array, Array, Array]:
        """Return derivatives by matrices, biases, shifts and turns."""
        rows, parts, J_reading = len(e.rows), [], e.J[:, e.inputs.readings]
        for i, wrench in enumerate(np.nan_to_num(capture.wrenches)):
            J = J_reading[:, 6 * i:6 * i + 6]
            correction, shift = errors.corrections[i], errors.shifts[i]
            X = correction @ (np.eye(6) + errors.wrench_matrices[i])
            own = np.linalg.solve(X, wrench)  # in the sensor's true frame
            force, moment = wrench[:3], wrench[3:] - np.cross(shift, wrench[:3])
            by_shift = np.concatenate((np.zeros((3, 3)), -skew(force)))
            by_turn = np.concatenate((-skew(force), -skew(moment) - skew(shift) @ skew(force)))
            by_turn = by_turn @ pin.Jexp3(-errors.turns[i])  # the left Jacobian
            by_bias = -J @ correction
            matrix = (by_bias[:, :, np.newaxis] * own).reshape(rows, 36)
            parts.append((matrix, by_bias, J @ by_shift, J @ by_turn))
        if not parts:
            none = np.zeros((rows, 0))
            return none, none, none, none
        matrix, bias, shifts, turns = (np.concatenate(p, axis=1) for p in zip(*parts))
        return matrix, bias, shifts, turns

    def _sigmas(self, regressor: StaticsRegressor, noise: SensorNoise,
                captures: Sequence[Capture], strength: Array) -> dict[InstrumentKind, Array]:
        """Return the standard deviations before the data, each (names, axes)."""
        torques, sided, used = (
            np.asarray(known, dtype=float).reshape(-1, 1) for known in (
                np.isfinite([c.torques for c in captures]).any(axis=0),
                np.any([directions_of(c) != 0.0 for c in captures], axis=0),
                np.isfinite([c.wrenches for c in captures]).all(axis=2).any(axis=0)))
        share = np.where(np.eye(6, dtype=bool), noise.wrench_gain, noise.cross_talk)
        matrix = (share * np.outer(_ARM, 1.0 / _ARM)).reshape(1, 36)
        bias = np.repeat((noise.force_bias, noise.moment_bias), 3)
        drift = np.repeat((noise.force_drift, noise.moment_drift), 3)
        soles = [foot.sole for foot in regressor.model.config.feet.values()]
        stands = noise.sole_contact > 0.0 and any(c.in_contact.any() for c in captures)
        # Gravity "measured" in a sole is the floor's normal, which was taken as vertical.
        tilt = np.where(np.isin(self._frames, soles), math.hypot(
            noise.tilt_bias, noise.floor_tilt, noise.sole_turn), noise.tilt_bias)
        ground = float(stands) * np.ones((len(soles), 2))
        # Only differences of heights count: the first sole is where the URDF has it.
        height = math.sqrt(2.0) * noise.sole_height * (np.arange(len(soles)) > 0)[:, np.newaxis]
        return {
            K.JOINT_OFFSET: np.where(regressor.is_prismatic, noise.slide_offset,
                                     noise.encoder_offset)[:, np.newaxis],
            K.TORQUE_GAIN: noise.torque_gain * torques,
            K.TORQUE_OFFSET: noise.torque_bias * torques,
            K.FRICTION: noise.friction * strength[:, np.newaxis] * torques * sided,
            K.TILT: np.repeat(tilt[:, np.newaxis], 3, axis=1),
            K.WRENCH_MATRIX: matrix * used, K.WRENCH_BIAS: bias * used,
            K.WRENCH_DRIFT: drift * used, K.SENSOR_SHIFT: noise.sensor_shift * used * np.ones(3),
            K.SENSOR_TURN: noise.sensor_turn * used * np.ones(3),
            K.FLOOR_TILT: noise.floor_tilt * ground[:1], K.SOLE_TURN: noise.sole_turn * ground,
            K.SOLE_HEIGHT: height * ground[:, :1]}

    def _groups(self, number: int, kind: InstrumentKind) -> Array:
        """Return the group of each error of a kind; cross-talk and slides are of their own."""
        is_moment = np.arange(6) > 2
        if kind is K.JOINT_OFFSET:
            return 2 * number + np.array([*self._slides.values()], dtype=int)
        second = {K.WRENCH_MATRIX: np.eye(6).ravel() == 0.0, K.WRENCH_BIAS: is_moment,
                  K.WRENCH_DRIFT: is_moment}.get(kind, np.zeros(len(kind.axes)))
        return np.asarray(np.tile(2 * number + second, len(self._names[kind])))


def _names_of(model: RobotModel,
              frames: Sequence[str]) -> Mapping[InstrumentKind, tuple[str, ...]]:
    """Return the names of the instruments that have errors of each kind."""
    feet = tuple(model.config.feet)
    return {**dict.fromkeys(OF_JOINTS, tuple(model.joint_names)), K.TILT: tuple(frames),
            **dict.fromkeys(OF_SENSORS, tuple(model.config.wrench_sensors)),
            K.FLOOR_TILT: ('floor',), K.SOLE_TURN: feet, K.SOLE_HEIGHT: feet}
