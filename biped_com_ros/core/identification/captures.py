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
"""Measurements in one pose at rest, their file, and the noise of the sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
import json
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import (
    check_positive, ConfigurationError, InputError, UnknownNameError)
from biped_com_ros.core.files import write_atomically
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

SMALLEST_LOAD = 0.02
"""A standing foot carries at least this share of the weight."""


@dataclass(frozen=True)
class Capture:
    """
    Averages over a short time at rest.

    Attributes
    ----------
    positions
        Of ``model.joint_names``, shape (n,), rad or m.
    wrenches
        Readings of ``config.wrench_sensors`` in their order, environment on robot, each in the
        frame of its sensor, shape (sensors, 6), N and N m; NaN where not measured.
    in_contact
        Which of ``config.feet`` stand, shape (feet,); nothing else may touch the environment.
    up
        Unit vector against gravity in `up_frame`, shape (3,).
    up_frame
        URDF link: that of the IMU, or the sole on a level floor; empty means the base frame.
    torques
        Of ``model.joint_names``, from the motor on the link beyond, shape (n,), N m or N;
        NaN where not measured.
    position_variance, wrench_variance, torque_variance
        Of these averages where measured; added to those of :class:`SensorNoise`.
    name
        For messages.
    approach
        Direction in which each joint moved last before it came to rest, shape (n,): 1, -1, or 0
        where it has not moved since the start; friction acts against it. None: not known.

    """

    positions: Array
    wrenches: Array
    in_contact: BoolArray
    up: Array
    up_frame: str
    torques: Array
    position_variance: Array | None = None
    wrench_variance: Array | None = None
    torque_variance: Array | None = None
    name: str = ''
    approach: Array | None = None


@dataclass(frozen=True, kw_only=True)
class SensorNoise:
    """
    Standard deviations of sensors, in addition to the variation within a capture.

    Attributes
    ----------
    force, moment
        Of wrench sensors, per axis, N and N m.
    torque
        Of joint torques, N m (N for prismatic joints).
    encoder, slide
        Of positions of revolute joints, rad, and of prismatic ones, m.
    tilt
        Of the direction of gravity, rad.
    encoder_offset, force_bias, moment_bias, torque_bias, tilt_bias
        Of errors that are constant over all poses; they are estimated. Zero: none.
    wrench_gain, cross_talk
        Of the gains of a wrench sensor's axes, and of how one axis enters the reading of another
        (moments count by :data:`instruments.MOMENT_ARM`), which are estimated. Zero: none.
    force_drift, moment_drift
        Of the change of a wrench sensor's bias from the first to the last capture, N and N m;
        estimated. Zero: none.
    sensor_shift, sensor_turn
        Of the places of wrench sensors' frames in the URDF, m and rad; estimated. Zero: exact.
    torque_gain
        Of the torque constants, as a share; estimated. Zero: exact.
    friction
        Of static friction, as a share of a motor's largest torque. Where it is known from which
        side a joint came to rest it is estimated; else it counts as noise. Zero: none.

    """

    force: float = 0.5
    moment: float = 0.02
    torque: float = 0.3
    encoder: float = math.radians(0.1)
    slide: float = 1e-4
    tilt: float = math.radians(0.05)
    encoder_offset: float = 0.004
    force_bias: float = 2.0
    moment_bias: float = 0.1
    torque_bias: float = 0.3
    tilt_bias: float = 0.005
    wrench_gain: float = 0.02
    cross_talk: float = 0.01
    force_drift: float = 1.0
    moment_drift: float = 0.05
    sensor_shift: float = 0.003
    sensor_turn: float = 0.005
    torque_gain: float = 0.02
    friction: float = 0.02

    def __post_init__(self) -> None:
        check_positive('the noise', self, 'force', 'moment', 'torque')
        check_positive('the noise', self, or_zero=True)


@dataclass(frozen=True)
class MotorConstants:
    """Torque per current by joint name, N m/A at the joint (the paper's K, equation (4))."""

    torque_per_ampere: Mapping[str, float] = field(default_factory=dict)

    def torques(self, model: RobotModel, currents: Array) -> Array:
        """
        Return ``K I`` of each joint, shape (n,), N m; NaN for joints without a constant.

        Parameters
        ----------
        model
            The robot.
        currents
            Of ``model.joint_names``, shape (n,), A.

        Raises
        ------
        UnknownNameError
            If there is a constant for a joint that the robot does not have.

        """
        for name in self.torque_per_ampere:
            if name not in model.joint_names:
                raise UnknownNameError('joint', name, model.joint_names, 'the motor constants')
        K = np.array([self.torque_per_ampere.get(n, math.nan) for n in model.joint_names])
        return K * currents

    def torques_of_efforts(self, model: RobotModel, efforts: Array) -> Array:
        """
        Return measured torques, shape (n,), N m: efforts, where a constant is given times it.

        Parameters
        ----------
        model
            The robot.
        efforts
            Of ``model.joint_names``, shape (n,); N m, or A for joints with a constant.

        """
        if not self.torque_per_ampere:
            return efforts
        driven = self.torques(model, efforts)
        return np.where(np.isfinite(driven), driven, efforts)


def check_capture(model: RobotModel, capture: Capture) -> None:
    """
    Check that a capture can be used.

    Raises
    ------
    InputError
        If it does not fit the robot, is not finite, or a standing foot carries nothing.

    """
    where = f"capture '{capture.name}'" if capture.name else 'the capture'
    _check_shapes(model, capture, where)
    for what in ('positions', 'up'):
        if not np.isfinite(getattr(capture, what)).all():
            raise InputError(f'{what} of {where} are not finite: {getattr(capture, what)}')
    if not 0.9 < float(np.linalg.norm(capture.up)) < 1.1:
        raise InputError(f"'up' of {where} must be a unit vector, not {capture.up}")
    _check_torques(model, capture, where)
    for (foot, config), stands in zip(model.config.feet.items(), capture.in_contact):
        if stands:
            _check_foot(model, capture, foot, config.wrench_sensors, where)


def _check_torques(model: RobotModel, capture: Capture, where: str) -> None:
    """Raise an error where neither foot sensors that can be trusted nor joint torques measure."""
    config = model.config
    unknown = [foot for (foot, f), stands in zip(config.feet.items(), capture.in_contact)
               if stands and any(config.wrench_sensors[s].deviation for s in f.wrench_sensors)]
    if unknown and not np.isfinite(capture.torques).any():
        raise InputError(
            f"{where} has no joint torques, and foot '{unknown[0]}' has no sensor: publish "
            'efforts on joint_states, or set motor_constants')


def _check_shapes(model: RobotModel, capture: Capture, where: str) -> None:
    n, sensors = len(model.joint_names), len(model.config.wrench_sensors)
    expected = {'positions': (n,), 'torques': (n,), 'wrenches': (sensors, 6), 'up': (3,),
                'in_contact': (len(model.config.feet),), 'position_variance': (n,),
                'wrench_variance': (sensors, 6), 'torque_variance': (n,), 'approach': (n,)}
    for what, shape in expected.items():
        value = getattr(capture, what)
        if value is not None and np.shape(value) != shape:
            raise InputError(f'{what} of {where} must have shape {shape} for robot '
                             f"'{model.config.name}', not {np.shape(value)}")


def _check_foot(model: RobotModel, capture: Capture, foot: str, sensors: tuple[str, ...],
                where: str) -> None:
    if not sensors:
        raise InputError(f"foot '{foot}' of {where} stands but has no wrench sensor; set "
                         f'feet.{foot}.wrench_sensors or feet.{foot}.source, or capture with '
                         'that foot in the air')
    names = tuple(model.config.wrench_sensors)
    readings = np.array([capture.wrenches[names.index(name)] for name in sensors])
    if not np.isfinite(readings).all():
        raise InputError(f"wrench sensor of foot '{foot}' of {where} was not measured: "
                         f'{", ".join(sensors)} read {readings.tolist()}')
    force, needed = float(np.linalg.norm(readings[:, :3].sum(axis=0))), SMALLEST_LOAD * model.mass
    if force < needed * GRAVITY:
        raise InputError(
            f"foot '{foot}' of {where} is marked as standing but carries {force:.1f} N of "
            f'{GRAVITY * model.mass:.0f} N; put it down, or mark it as in the air')


FORMAT = 1
_ARRAYS = ('positions', 'wrenches', 'in_contact', 'up', 'torques', 'position_variance',
           'wrench_variance', 'torque_variance', 'approach')


class CaptureLog:
    """
    Captures of one robot in a JSON file, which is rewritten with every capture.

    Parameters
    ----------
    path
        The file; read if it exists.
    model
        The robot; a file of another one is not used, nor changed.

    Attributes
    ----------
    captures
        In the sequence in which they were taken.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or is of another robot.

    """

    def __init__(self, path: Path, model: RobotModel) -> None:
        self.path, self._model = path, model
        self.captures: list[Capture] = self._read() if path.exists() else []

    def append(self, capture: Capture) -> None:
        """Add a capture and write the file; one of the same name is replaced."""
        same = [i for i, c in enumerate(self.captures) if capture.name and c.name == capture.name]
        if same:
            self.captures[same[0]] = capture
        else:
            self.captures.append(capture)
        self._write()

    def clear(self) -> Path | None:
        """Remove all captures; the old file is kept under the returned path."""
        kept = None
        if self.path.exists():
            kept = _unused(self.path)
            self.path.replace(kept)
        self.captures = []
        return kept

    def _read(self) -> list[Capture]:
        try:
            values = json.loads(self.path.read_text(encoding='utf-8'))
            self._check(values)
            return [_capture(item) for item in values['captures']]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"captures in '{self.path}' cannot be read ({error}); move the file away to "
                'begin again') from None

    def _check(self, values: dict[str, Any]) -> None:
        for key, value in self._header().items():
            if values.get(key, {} if key == 'instruments' else None) != value:
                raise ConfigurationError(
                    f"captures in '{self.path}' are of another robot or version: {key} is "
                    f'{values.get(key)}, here it is {value}; give another directory')

    def _header(self) -> dict[str, Any]:
        config = self._model.config
        return {'format': FORMAT, 'robot': config.name,
                'joints': list(self._model.joint_names),
                'wrench_sensors': list(config.wrench_sensors), 'feet': list(config.feet),
                'instruments': config.instruments.to_plain()}

    def _write(self) -> None:
        values = {**self._header(), 'captures': [_plain(c) for c in self.captures]}
        write_atomically(self.path, json.dumps(values, indent=1))


def _plain(capture: Capture) -> dict[str, Any]:
    plain: dict[str, Any] = {'name': capture.name, 'up_frame': capture.up_frame}
    for key in _ARRAYS:
        value = getattr(capture, key)
        plain[key] = None if value is None else _without_nan(np.asarray(value).tolist())
    return plain


def _without_nan(value: Any) -> Any:
    """Replace NaN by None, because JSON has no NaN."""
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _capture(plain: dict[str, Any]) -> Capture:
    plain = {'approach': None, **plain}  # files of 0.1.0 do not have it
    arrays: dict[str, Any] = {key: None if plain[key] is None else np.array(
        plain[key], dtype=bool if key == 'in_contact' else float) for key in _ARRAYS}
    return Capture(up_frame=str(plain['up_frame']), name=str(plain['name']), **arrays)


def _unused(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f'{path.stem}.{number}{path.suffix}')).exists():
        number += 1
    return candidate
