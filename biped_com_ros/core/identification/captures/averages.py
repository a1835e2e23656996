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
Averaged captures from CSV: one capture at rest per line.

The header line has ``name``, ``time`` (s), ``position/<joint>`` of every joint (rad, m),
``effort/<joint>`` where known (N m, N), ``<sensor>/fx fy fz tx ty tz`` of every wrench sensor of
the robot's YAML (N, N m), and ``up/x y z``, the unit vector against gravity in the frame of the
IMU (in the base without one). Values are as drivers publish them: signs and calibrated errors of
the YAML are applied.
"""

from __future__ import annotations

from collections.abc import Mapping
import csv
import math
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import (
    Capture, check_values, MotorConstants)
from biped_com_ros.core.identification.captures.recordings import AXES, recorded_sensors, require
from biped_com_ros.core.identification.captures.stillness import CaptureWindow
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.spelling import likeliest_name
from biped_com_ros.core.wrench.aggregation import ReadingCorrection
import numpy as np
import pinocchio as pin

UP = ('up/x', 'up/y', 'up/z')


def is_averages(path: Path) -> bool:
    """Return whether a file is a CSV of averaged captures, by its header."""
    if path.suffix != '.csv' or not path.is_file():
        return False
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:
            header = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return not any(key.startswith('imu/') for key in header) and (
        'name' in header or any(key in header for key in UP))


def read_averages(path: Path, model: RobotModel, motors: MotorConstants | None = None,
                  hangs: bool = False) -> list[Capture]:
    """
    Read a CSV in the format of this module.

    Parameters
    ----------
    path
        Of the file.
    model
        The robot.
    motors
        Of joints whose efforts are currents.
    hangs
        Whether no foot touches the ground in any capture; else which do follows from the forces.

    Raises
    ------
    ConfigurationError
        If the file cannot be read.
    InputError
        If a column is missing, or a value is not what has to be there.

    """
    columns = _Columns(path, model, motors or MotorConstants(), hangs)
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:
            lines = csv.DictReader(file)
            columns.check(tuple(lines.fieldnames or ()))
            captures = [columns.capture(line, lines.line_num) for line in lines]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"captures in '{path}' cannot be read: {error}") from None
    if not captures:
        raise InputError(f"'{path}' has a header and no captures; give one per line")
    return captures


class _Columns:
    """Converts the lines of a CSV of captures; errors name line and column."""

    def __init__(self, path: Path, model: RobotModel, motors: MotorConstants, hangs: bool) -> None:
        self._path, self._model, self._motors = path, model, motors
        config = model.config
        self._up_frame = config.imu.frame if config.imus else ''
        self._window = CaptureWindow(model, self._up_frame, hangs=hangs)
        tilt = config.instruments.tilt(self._up_frame) if self._up_frame else None
        self._tilt = np.eye(3) if tilt is None else np.asarray(pin.exp3(-np.array(tilt)))
        self._positions = [f'position/{name}' for name in model.joint_names]
        self._efforts = [f'effort/{name}' for name in model.joint_names]
        self._wrenches = {name: [f'{name}/{axis}' for axis in AXES]
                          for name in recorded_sensors(model)}
        self._corrections = {name: ReadingCorrection(config, name) for name in self._wrenches}
        self._lines: dict[str, int] = {}

    def check(self, header: tuple[str, ...]) -> None:
        """Check the names of the columns."""
        needed = ['name', 'time', *self._positions, *UP,
                  *(key for keys in self._wrenches.values() for key in keys)]
        require('columns', needed, header, str(self._path))
        known = [*needed, *self._efforts]
        for key in header:
            if key not in known or header.count(key) > 1:
                close = likeliest_name(key, [name for name in known if name not in header])
                hint = f", or call it '{close}'" if close else ''
                raise InputError(f"{self._path}: column '{key}' is "
                                 f"{'there twice' if key in known else 'not known'}; remove "
                                 f'it{hint}')

    def capture(self, line: Mapping[str, str], number: int) -> Capture:
        """Return the capture of a line."""
        model, where = self._model, f'{self._path}:{number}'
        name = self._name(line, number, where)
        up = np.array([_number(line, key, where, 'a share of a unit vector') for key in UP])
        if not 0.9 < float(np.linalg.norm(up)) < 1.1:
            raise InputError(f'{where}: columns up/x, up/y and up/z must be a unit vector, not '
                             f'{up.tolist()}; divide them by {np.linalg.norm(up):.4g}')
        positions = np.array([_number(line, key, where, 'rad or m') for key in self._positions])
        efforts = np.array([_number(line, key, where, 'N m or N') if key in line else math.nan
                            for key in self._efforts])
        up = self._tilt @ up / np.linalg.norm(up)
        wrenches, positions = self._readings(line, where), positions - model.joint_offsets
        for joint, position, (least, most) in zip(
                model.joint_names, positions, model.credible_positions):
            if not least <= position <= most:
                raise InputError(
                    f"{where}: column 'position/{joint}' is {position:g}, beyond {least:g} to "
                    f'{most:g}: give rad or m, and check the limits in the URDF')
        try:
            standing = self._window.standing(wrenches, positions, up)
        except InputError as error:
            raise InputError(f'{where}: {error}') from None
        capture = Capture(
            positions=positions, wrenches=wrenches, in_contact=standing, up=up,
            up_frame=self._up_frame, name=name, time=_number(line, 'time', where, 's'),
            torques=model.corrected_torques(self._motors.torques_of_efforts(model, efforts)))
        check_values(model, capture)
        return capture

    def _name(self, line: Mapping[str, str], number: int, where: str) -> str:
        if None in line or None in line.values():  # as csv.DictReader marks them
            raise InputError(f'{where}: there are more or fewer values than columns; give one '
                             'value per column of the header')
        name = line['name'].strip()
        if not name or name in self._lines:
            problem = (f"'{name}' is also that of line {self._lines[name]}" if name
                       else 'is empty')
            raise InputError(f"{where}: column 'name' {problem}; give each capture its own name")
        self._lines[name] = number
        return name

    def _readings(self, line: Mapping[str, str], where: str) -> Array:
        """Return the corrected readings of all sensors, (sensors, 6); NaN of virtual ones."""
        sensors = tuple(self._model.config.wrench_sensors)
        wrenches = np.full((len(sensors), 6), np.nan)
        for sensor, keys in self._wrenches.items():
            correction = self._corrections[sensor]
            wrenches[sensors.index(sensor)] = correction.corrected(correction.scale * np.array(
                [_number(line, key, where, 'N or N m') for key in keys]), correction.bias)
        return wrenches


def _number(line: Mapping[str, str], key: str, where: str, unit: str) -> float:
    try:
        value = float(line[key])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: column '{key}' is '{line[key]}', not a finite number; give "
                         f'{unit}')
    return value
