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
The robot's YAML with the estimated errors of its instruments and the calibrated URDF.

It is the user's own text: only the keys ``urdf`` and ``instruments`` are replaced, and ``drives``
where friction was estimated; comments and sequence stay. What was estimated adds to what was
corrected while the poses were captured; friction, which was not, replaces the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
import math
from pathlib import Path
import re
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import read_text, write_atomically
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.equations.instruments import (
    AXES, InstrumentErrors, InstrumentKind, MOMENT_ARM)
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.model.config import robot_config_from_mapping, robot_file, RobotConfig
from biped_com_ros.core.model.corrections import (
    InstrumentCorrections, LARGEST_DEVIATIONS, SensorCorrection)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.plain_yaml import load_yaml
import numpy as np
import pinocchio as pin
import yaml

CALIBRATED_URDF = 'calibrated.urdf'
"""Name of the URDF beside the YAML."""

_SMALLEST = 1e-7
_DIGITS = 7
#: What is unknown of masses, as a share, where centres are unknown by 1 m: 8 % and 5 mm.
_MASS_PER_COM = 16.0
_GAINS = tuple(f'{axis},{axis}' for axis in AXES)
_COMMENT = '# Errors estimated by a calibration; taken out where readings enter the nodes.\n'


def corrections_after(config: RobotConfig, joints: Sequence[str], found: InstrumentErrors,
                      biases: Array | None = None) -> InstrumentCorrections:
    """
    Return the corrections that a robot's YAML should hold after a calibration.

    Parameters
    ----------
    config
        With the corrections that were applied while the poses were captured.
    joints
        Names of the joints in `found`.
    found
        Errors that were left, as estimated.
    biases
        Biases that were subtracted then, of all wrench sensors, (sensors, 6), N and N m, for
        example those of a tare; default: those of `config`.

    """
    old = config.instruments
    offsets = {name: old.joint_offsets.get(name, 0.0) + float(value)
               for name, value in zip(joints, found.positions)}
    gains, torques = {}, {}
    for name, gain, torque in zip(joints, found.torque_gains, found.torque_offsets):
        before = 1.0 + old.torque_gains.get(name, 0.0)
        gains[name] = before * (1.0 + float(gain)) - 1.0
        # What was left is of torques that were divided by the old gain already.
        torques[name] = old.torque_offsets.get(name, 0.0) + before * float(torque)
    sensors = {}
    for i, name in enumerate(config.wrench_sensors):
        matrix = old.sensor(name).matrix
        used = np.array(old.sensor(name).bias) if biases is None else biases[i]
        sensors[name] = _sensor(
            found.correction(i) @ matrix, used + np.linalg.solve(matrix, found.wrench_biases[i]))
    tilts = {link: _combined_tilt(old.tilt(link), found.tilts.get(link))
             for link in {**old.tilts, **found.tilts}}
    return InstrumentCorrections(
        joint_offsets=_significant(offsets), torque_gains=_significant(gains),
        torque_offsets=_significant(torques),
        wrench_sensors={
            name: sensor for name, sensor in sensors.items() if sensor != SensorCorrection()},
        tilts={link: tilt for link, tilt in tilts.items() if any(tilt)})


def friction_after(config: RobotConfig, joints: Sequence[str],
                   found: InstrumentErrors) -> dict[str, float]:
    """
    Return Coulomb friction by joint or group, N m, as ``drives.friction`` should hold it.

    Joints whose friction was not estimated keep what they have. It is one of true torques, as the
    nodes see them after the calibration.
    """
    true = found.friction / (1.0 + found.torque_gains)
    return {**config.drives.friction, **{
        name: max(_rounded(value), 0.0) for name, value in zip(joints, true) if value}}


def calibrated_robot_yaml(text: str, corrections: InstrumentCorrections, urdf: str,
                          friction: Mapping[str, float] | None = None) -> str:
    """
    Return a robot's YAML with other corrections, another URDF and other friction.

    Parameters
    ----------
    text
        Of the robot's YAML.
    corrections
        Of its instruments; replace those in the text.
    urdf
        New value of the key ``urdf``.
    friction
        New value of ``drives.friction``, by joint or group, N m; None: as it is.

    Raises
    ------
    ConfigurationError
        If the text is no YAML of a robot, or the corrections are impossible.

    """
    values = {**load_yaml(text, 'the robot file'), 'urdf': urdf}
    if block := corrections.to_plain():
        values['instruments'] = block
    else:
        values.pop('instruments', None)
    edited = _replaced(_replaced(text, 'instruments', ''), 'urdf', f'urdf: {urdf}\n')
    drives = dict(values.get('drives') or {})
    if friction is not None and dict(friction) != drives.get('friction', {}):
        values['drives'] = {**drives, 'friction': dict(friction)}
        edited = (f'{_replaced(edited, "drives", "").rstrip()}\n\n'
                  f'{_dump({"drives": values["drives"]})}')
    expected = robot_config_from_mapping(values)
    if block:
        edited = f'{edited.rstrip()}\n\n{_COMMENT}{_dump({"instruments": block})}'
    try:
        if robot_config_from_mapping(load_yaml(edited, '')) == expected:
            return edited
    except ConfigurationError:
        pass
    return _dump(values)  # a text that is laid out in another way loses its comments


def write_calibrated_robot(directory: Path, robot: str, model: RobotModel, found: InstrumentErrors,
                           biases: Array | None = None,
                           deviations: Mapping[str, float] | None = None) -> Path:
    """
    Write the YAML of a robot after a calibration beside its ``calibrated.urdf``.

    Parameters
    ----------
    directory
        Of the results.
    robot
        Name of a robot of the package, or path of its YAML.
    model
        The robot as it was while the poses were captured.
    found, biases
        See `corrections_after`.
    deviations
        See `deviations_after`.

    Returns
    -------
    Path
        ``<name of the robot>.yaml`` in that directory.

    Raises
    ------
    ConfigurationError
        If the robot's file cannot be read, or is the one to be written.

    """
    source, path = robot_file(robot), directory / f'{model.config.name}.yaml'
    if source.resolve() == path.resolve():
        raise ConfigurationError(
            f"'{path}' is the robot's own YAML, which is not overwritten; give another directory")
    text = read_text(source, 'robot file')
    corrections = replace(corrections_after(model.config, model.joint_names, found, biases),
                          deviations=_rounded_all(deviations or {}))
    sensors = robot_config_from_mapping(load_yaml(text, f"robot file '{source}'")).wrench_sensors
    corrections = replace(corrections, wrench_sensors={  # without the virtual ones of the model
        name: known for name, known in corrections.wrench_sensors.items() if name in sensors})
    write_atomically(path, calibrated_robot_yaml(
        text, corrections, CALIBRATED_URDF,
        friction_after(model.config, model.joint_names, found)))
    return path


def deviations_after(found: Identification, model: RobotModel) -> dict[str, float]:
    """
    Return what the calibration leaves unknown, as `InstrumentCorrections.deviations`.

    Those of the links are such that errors of single links, independent of each other, move the
    robot's centre of mass by as much as the calibration states for it, in the posture in which
    that is most. They are no bounds of single links.
    """
    regressor = StaticsRegressor(model)
    unit = np.zeros_like(found.covariance)
    for i, (mass, *moment) in enumerate(found.parameters):
        column = np.array((mass, *moment))
        unit[4 * i:4 * i + 4, 4 * i:4 * i + 4] = (
            _MASS_PER_COM ** 2 * np.outer(column, column)
            + mass ** 2 * np.diag((0.0, 1.0, 1.0, 1.0)))
    postures = (model.usual_posture(), *map(model.posture, model.config.postures))
    ratios = []
    for positions in postures:
        C = regressor.com_derivative(positions, found.parameters)
        ratios.append(np.trace(C @ found.covariance @ C.T) / np.trace(C @ unit @ C.T))
    link_com = math.sqrt(max(ratios))
    known = {'link_mass': _MASS_PER_COM * link_com, 'link_com': link_com}
    feet = {name for foot in model.config.feet.values() for name in foot.wrench_sensors}
    of_feet = [e for e in found.instruments.estimates if e.name in feet]
    matrix = [e for e in of_feet if e.kind is InstrumentKind.WRENCH_MATRIX]
    for name, estimates, count in (
            ('sensor_gain', [e for e in matrix if e.axis in _GAINS], 6),
            ('sensor_crosstalk', [e for e in matrix if e.axis not in _GAINS], 30),
            ('sensor_rotation', [e for e in of_feet if e.kind is InstrumentKind.SENSOR_TURN], 3),
            ('sensor_frame', [e for e in of_feet if e.kind is InstrumentKind.SENSOR_SHIFT], 3)):
        if feet and len(estimates) == count * len(feet):  # else some are as unknown as before
            known[name] = math.sqrt(np.mean([(e.sd / _scale(e.axis)) ** 2 for e in estimates]))
    return {name: min(value, LARGEST_DEVIATIONS[name]) for name, value in known.items()}


def _scale(axis: str) -> float:
    """Return the unit of an element of a sensor's matrix: its lever between force and moment."""
    row, _, column = axis.partition(',')
    return MOMENT_ARM ** ((row[0] == 't') - (column[:1] == 't'))


def errors_of(found: Identification, model: RobotModel) -> InstrumentErrors:
    """Return the errors of the instruments that were estimated with the masses."""
    return found.instruments.errors(model.joint_names, tuple(model.config.wrench_sensors))


def _sensor(matrix: Array, bias: Array) -> SensorCorrection:
    is_identity = np.abs(matrix - np.eye(6)).max() < _SMALLEST
    rows: Any = () if is_identity else tuple(tuple(map(_rounded, row)) for row in matrix)
    values: Any = tuple(map(_rounded, bias))
    return SensorCorrection(rows, values)


def _combined_tilt(old: Sequence[float] | None, new: Array | None) -> tuple[float, float, float]:
    first, second = (np.zeros(3) if tilt is None else np.array(tilt) for tilt in (old, new))
    x, y, z = map(_rounded, pin.log3(pin.exp3(first) @ pin.exp3(second)))
    return x, y, z


def _rounded_all(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _rounded(value) for name, value in values.items()}


def _significant(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _rounded(value) for name, value in values.items() if abs(value) > _SMALLEST}


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0  # no minus before zero


def _replaced(text: str, key: str, replacement: str) -> str:
    """Return a YAML text with another top-level key, or with a new one at its beginning."""
    block = re.compile(
        rf'(?m)^(?:{re.escape(_COMMENT)})?{key}[ \t]*:.*\n?(?:(?:[ \t].*|[ \t]*)\n)*')
    if found := block.search(text):
        return text[:found.start()] + replacement + text[found.end():]
    name = re.search(r'(?m)^name[ \t]*:.*\n', text)
    at = name.end() if name else 0
    return text[:at] + replacement + text[at:]


def _dump(values: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(
        dict(values), sort_keys=False, default_flow_style=None, width=99, allow_unicode=True))
