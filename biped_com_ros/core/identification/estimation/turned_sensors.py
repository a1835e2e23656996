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
Finds the wrench sensor of a foot that is mounted turned, or measures with the opposite sign.

At rest the readings of all feet balance the weight (forces and moments of the whole robot), and
hold the joints with the torques that the motors measure. If they do not as configured, but do with
the reading of one sensor turned, that sensor is turned. A lifted foot contradicts nothing: the
other one carries the weight. A dead sensor stays contradictory however it is turned, since it
measures nothing; so does a robot that something without sensors supports or pushes.

The true wrench is taken as ``s R`` times the reading, forces and moments alike, with any rotation
R about the sensor's origin and a sign s. Left-handed axes look like a turn in any one posture:
where they explain the readings as well as the turn does, both are named. Residuals are weighed by
what masses, centres of mass and instruments of a real robot may be off, so that an imperfect model
is not taken for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.identification.captures.capture import Capture, check_values, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.model.efforts import effort_scales
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin

LIFTED = 0.15
"""Where all other sensors measure less than this share of a force, its foot carries all."""
#: Standard deviations of what may be off without a sensor being turned. Of the mass of all links
#: together, and of each one, as a share.
_SCALE_SIGMA, _MASS_SIGMA = 0.08, 0.08
#: Of each link's centre of mass per axis, as a share of the height of the base.
_COM_SIGMA = 0.015
#: Of the sensors' readings, as a share.
_GAIN = 0.03
#: Of their forces, as a share of body weight; of moments 0.03 m times that.
_BIAS = 0.01
#: Of joint torques by friction and gain, as a share of the motor's largest.
_TORQUE = 0.06
#: Of joint positions and of the direction of gravity, rad.
_ANGLE = 0.01
#: Share of body weight that the sensor must measure: less, as of a lifted foot, may be a bias that
#: was not tared.
_LEAST_LOAD = 0.2
#: Turns of the measured force below this are left to the calibration, rad.
_LEAST_ANGLE = math.radians(20.0)
#: Least turn about the force itself, which is only looked for while one foot carries all: over two
#: feet a push explains as much, rad.
_LEAST_SPIN = math.radians(40.0)
#: By how much the weighed squares of all residuals must fall by the turn.
_GAIN_OF_FIT = 40.0
#: By how much the squares of the best sensor must be below those of any other.
_LEAD = 12.0
#: Largest weighed squares per equation that count as consistent after the turn: of the six of the
#: whole robot, and of all.
_CONSISTENT = 2.0
_ITERATIONS = 6
_SEEDS = 3
"""So many of the rotations onto axes are refined."""
SNAP = 9.0
"""A turn onto axes is named where its squares are at most this much above the least ones: turns
about a force that is nearly along an axis are hardly determined."""
DESCRIBED = math.radians(12.0)
"""Turns below this are not described beside an opposite sign."""
#: Factors of readings along left-handed axes: one axis points the other way, and moments are by
#: components, or each about its axis; or moments alone have the opposite sign.
_LEFT_HANDED = np.vstack([
    np.hstack((axes, sign * axes)) for axes, sign in (
        (1.0 - 2.0 * np.eye(3), -1.0), (1.0 - 2.0 * np.eye(3), 1.0), (np.ones((1, 3)), -1.0))])


@dataclass(frozen=True, kw_only=True)
class TurnedSensor:
    """
    A sensor that is turned.

    Attributes
    ----------
    sensor
        Its name.
    sign
        -1 if its readings have the opposite sign, as configured.
    rotation
        R, (3, 3): true wrench = sign * R * reading, in the frame as configured.
    gain_of_fit
        By how much the weighed squares fell.
    scale
        Of the sensor in the robot YAML, (6,), with which left-handed axes explain the readings as
        well as the turn; None if they do not.

    """

    sensor: str
    sign: int
    rotation: Array
    gain_of_fit: float
    scale: Array | None = None

    def describe(self) -> str:
        """Return problem, value, remedy."""
        vector = pin.log3(self.rotation)
        angle = math.degrees(float(np.linalg.norm(vector)))
        parts = ['measures with the opposite sign'] if self.sign < 0 else []
        is_turned = angle > math.degrees(DESCRIBED)
        if is_turned:
            parts.append(f'is mounted turned by {angle:.0f} deg about {_axis_name(vector)}')
        remedies = [f'negate wrench_sensors.{self.sensor}.scale in the robot YAML'] * (
            self.sign < 0) + [
            'turn the frame of the sensor in the URDF, or the sensor'] * is_turned
        if is_turned and self.scale is not None:
            factors = ', '.join(f'{factor:g}' for factor in self.scale)
            parts[-1] += ', or its axes are left-handed'
            remedies.append(f'if they are left-handed, set wrench_sensors.{self.sensor}.scale to '
                            f'[{factors}] instead')
        return (f"the sensor '{self.sensor}' {' and '.join(parts)} (weight, moments and joint "
                f'torques at rest agree then): {", and ".join(remedies)}')


def find_turned_sensor(regressor: StaticsRegressor, capture: Capture,
                       theta: Array | None = None) -> TurnedSensor | None:
    """
    Return the sensor of a foot that is turned; None if none is, or it is not clear which.

    Parameters
    ----------
    regressor
        Of the robot.
    capture
        Of a robot at rest, which stands with one or more of its feet; `in_contact` is not used.
    theta
        Masses and first moments (L, 4); by default the URDF's.

    Raises
    ------
    InputError
        If the capture has other sizes than the robot, or numbers that are not finite.

    """
    model = regressor.model
    check_values(model, capture)
    theta = parameters_of(model) if theta is None else theta
    names = tuple(model.config.wrench_sensors)
    feet = {name for foot in model.config.feet.values() for name in foot.wrench_sensors}
    if not feet or not np.isfinite(capture.wrenches).all():
        return None
    r, J = _weighed(regressor, capture, theta)
    present = float(r @ r)
    found = sorted(
        ((*_best_turn(r, J[:, 6 * i:6 * i + 6], np.asarray(capture.wrenches[i])), name)
         for i, name in enumerate(names) if name in feet), key=lambda best: best[0])
    cost, sign, R, name = found[0]
    i = names.index(name)
    left = r + J[:, 6 * i:6 * i + 6] @ (
        _turned(capture.wrenches[i], sign, R) - capture.wrenches[i])
    if (present - cost < _GAIN_OF_FIT or cost > _CONSISTENT * len(r)
            # The first rows are the balance of the whole; whitening leaves them the first.
            or left[:6] @ left[:6] > _CONSISTENT * 6
            or any(other[0] - cost < _LEAD for other in found[1:])):
        return None
    reading, J = np.asarray(capture.wrenches[i]), J[:, 6 * i:6 * i + 6]
    R = _snapped(r, J, reading, sign, R, cost)
    least_force = _LEAST_LOAD * model.mass * GRAVITY
    if not _is_credible(capture, i, sign, R, least_force):
        return None
    left, factors = min(((_squares(r, J, (factors - 1.0) * reading), factors)
                         for factors in _LEFT_HANDED), key=lambda one: one[0])
    scale = factors * model.config.wrench_sensors[name].factors if left < cost + SNAP else None
    return TurnedSensor(
        sensor=name, sign=sign, rotation=R, gain_of_fit=present - cost, scale=scale)


def _is_credible(capture: Capture, sensor: int, sign: int, R: Array,
                 least_force: float) -> bool:
    """Return whether neither a bias nor a push may be taken for this turn."""
    forces = np.nan_to_num(np.asarray(capture.wrenches)[:, :3])
    force, size = forces[sensor], float(np.linalg.norm(forces[sensor]))
    if size < least_force:
        return False
    if sign * (R @ force) @ force < math.cos(_LEAST_ANGLE) * size ** 2:
        return True
    others = np.delete(np.linalg.norm(forces, axis=1), sensor)
    alone = others.max(initial=0.0) < LIFTED * size
    return alone and bool(np.linalg.norm(pin.log3(R)) >= _LEAST_SPIN)


def _weighed(regressor: StaticsRegressor, capture: Capture,
             theta: Array) -> tuple[Array, Array]:
    """Return residuals and their derivatives by the readings, both of unit covariance."""
    model = regressor.model
    # A sensor of a foot in the air measures the weight below it, which is a contact like others.
    standing = np.ones(len(model.config.feet), dtype=bool)
    equations = regressor.linearised(
        replace(_with_variances(model, capture), in_contact=standing), theta,
        SensorNoise(tilt=_ANGLE, encoder=_ANGLE))
    spread = np.repeat(theta[:, :1], 4, axis=1)
    spread[:, 0] *= _MASS_SIGMA
    spread[:, 1:] *= _COM_SIGMA * _height(model, capture)
    # An error of a link's mass is at its centre of mass.
    spread[:, 1:] = np.hypot(spread[:, 1:], _MASS_SIGMA * np.abs(theta[:, 1:]))
    scale = _SCALE_SIGMA * equations.A @ theta.ravel()
    covariance = (equations.covariance + np.outer(scale, scale)
                  + (equations.A * spread.ravel() ** 2) @ equations.A.T)
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    return whiten @ equations.residual(theta), whiten @ equations.J[:, equations.inputs.readings]


def _with_variances(model: RobotModel, capture: Capture) -> Capture:
    """Set variances of readings and torques, alike along all axes so that turns keep them."""
    forces = np.linalg.norm(np.nan_to_num(capture.wrenches)[:, :3], axis=1)
    moments = np.linalg.norm(np.nan_to_num(capture.wrenches)[:, 3:], axis=1)
    bias = _BIAS * model.mass * GRAVITY
    force = (_GAIN * forces) ** 2 + bias ** 2
    moment = (_GAIN * moments) ** 2 + (0.03 * bias) ** 2
    torque = (_TORQUE * effort_scales(model)) ** 2
    return replace(
        capture, torque_variance=torque,
        wrench_variance=np.repeat(np.column_stack((force, moment)), 3, axis=1))


def _height(model: RobotModel, capture: Capture) -> float:
    soles = model.state(capture.positions).placements_in_base(model.soles)[:, 3]
    return float(np.linalg.norm(soles, axis=1).max())


@cache
def _turns() -> tuple[Array, ...]:
    """Return the 24 rotations that map axes onto axes."""
    signed = (np.array(signs)[:, np.newaxis] * rows for rows in permutations(np.eye(3))
              for signs in product((1.0, -1.0), repeat=3))
    return tuple(R for R in signed if np.linalg.det(R) > 0.0)


def _best_turn(r: Array, J: Array, reading: Array) -> tuple[float, int, Array]:
    """Return least squares of the residual, sign and rotation of a sensor, (6,) its reading."""
    best: list[tuple[float, int, Array]] = []
    for sign in (1, -1):
        starts = sorted(((_cost(r, J, reading, sign, R), i) for i, R in enumerate(_turns())))
        for _, i in starts[:_SEEDS]:
            best.append(_refined(r, J, reading, sign, _turns()[i]))
    # Where a rotation does as well, the sign is right.
    return min(best, key=lambda one: one[0] + (4.0 if one[1] < 0 else 0.0))


def _turned(reading: Array, sign: int, R: Array) -> Array:
    return sign * np.concatenate((R @ reading[:3], R @ reading[3:]))


def _cost(r: Array, J: Array, reading: Array, sign: int, R: Array) -> float:
    return _squares(r, J, _turned(reading, sign, R) - reading)


def _squares(r: Array, J: Array, change: Array) -> float:
    """Return the squares that are left if a reading changes."""
    left = r + J @ change
    return float(left @ left)


def _refined(r: Array, J: Array, reading: Array, sign: int, R: Array) -> tuple[float, int, Array]:
    """Turn further by Gauss-Newton steps, as long as they help."""
    cost = _cost(r, J, reading, sign, R)
    for _ in range(_ITERATIONS):
        true = _turned(reading, sign, R)
        D = -J @ np.concatenate((skew(true[:3]), skew(true[3:])))
        left = r + J @ (true - reading)
        step = np.linalg.solve(D.T @ D + 0.1 * np.eye(3), -D.T @ left)
        turned = pin.exp3(step) @ R
        less = _cost(r, J, reading, sign, turned)
        if not less < cost:
            break
        cost, R = less, turned
    return cost, sign, R


def _snapped(r: Array, J: Array, reading: Array, sign: int, R: Array, cost: float) -> Array:
    """Return the nearest rotation onto axes that explains as much; else the rotation itself."""
    enough = [turn for turn in _turns() if _cost(r, J, reading, sign, turn) < cost + SNAP]
    return min(enough, key=lambda turn: float(np.linalg.norm(pin.log3(turn.T @ R))), default=R)


def _axis_name(vector: Array) -> str:
    axis = vector / np.linalg.norm(vector)
    main = int(np.abs(axis).argmax())
    if abs(axis[main]) > 0.99:
        return ('' if axis[main] > 0.0 else '-') + 'xyz'[main]
    return f'({", ".join(f"{x:.2f}" for x in axis)})'
