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
Total centres of mass that are known otherwise, as equations of the links (the paper's bypass).

A balance on an edge, a scale under each foot, a suspension by a rope or the two poses of
:mod:`paper.captures` give the total centre of mass in a pose without joint torques. In the base,
with C(q) of :meth:`first_moments.StaticsRegressor.com_matrix` and M the sum of all masses,

    C(q) theta - M com = noise,

linear in masses and first moments. The noise is that of the measurement times M, and that of the
joint positions, through which the links moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.files import read_text
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor, STEP
from biped_com_ros.core.identification.equations.instrument_parameters import InstrumentParameters
from biped_com_ros.core.identification.equations.instruments import InstrumentErrors
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.plain_yaml import LARGEST_TEXT, load_yaml
import numpy as np

_KEYS = ('positions', 'capture', 'com', 'sd', 'covariance', 'frame')


@dataclass(frozen=True)
class ComMeasurement:
    """
    Total centre of mass of the robot in one pose.

    Attributes
    ----------
    positions
        Of ``model.joint_names``, (n,), rad or m.
    com
        In `frame`, (3,), m; NaN along axes on which it is not known.
    covariance
        Of it, (3, 3), m^2; entries of unknown axes are not used.
    frame
        URDF link; '' is the base.
    name
        For messages.

    """

    positions: Array
    com: Array
    covariance: Array
    frame: str = ''
    name: str = ''


def check_measurement(model: RobotModel, measurement: ComMeasurement) -> None:
    """
    Check that a measurement can be used.

    Raises
    ------
    InputError
        If it does not fit the robot, has no axis, or has no valid covariance.
    UnknownNameError
        If the URDF does not have its frame.

    """
    where, n = f"measured CoM '{measurement.name}'", len(model.joint_names)
    for what, shape in (('positions', (n,)), ('com', (3,)), ('covariance', (3, 3))):
        if np.shape(getattr(measurement, what)) != shape:
            raise InputError(f'{what} of {where} must have shape {shape}, not '
                             f'{np.shape(getattr(measurement, what))}')
    if not np.isfinite(measurement.positions).all():
        raise InputError(f'positions of {where} are not finite: {measurement.positions}')
    known = np.isfinite(measurement.com)
    if not known.any() or np.isinf(measurement.com).any():
        raise InputError(f'{where} must be known along at least one axis: {measurement.com}')
    block = measurement.covariance[np.ix_(known, known)]
    if not np.isfinite(block).all() or not np.allclose(block, block.T) or (
            np.linalg.eigvalsh(block) <= 0.0).any():
        raise InputError(f'covariance of {where} must be symmetric and positive: {block.tolist()}')
    if measurement.frame:
        model.frames((measurement.frame,))


class ComRows(NamedTuple):
    """
    Equations ``A theta = noise`` of a measured centre of mass.

    Attributes
    ----------
    A
        (rows, 4 L), rows along the known axes of its frame, kg m.
    J_position
        Derivative of ``A theta`` by the joint positions, (rows, n).
    covariance
        Of the measurement times the squared mass, (rows, rows), kg^2 m^2.

    """

    A: Array
    J_position: Array
    covariance: Array


def com_rows(regressor: StaticsRegressor, measurement: ComMeasurement, theta: Array) -> ComRows:
    """
    Return the equations of a measurement.

    Parameters
    ----------
    regressor
        Of the robot.
    measurement
        Of its total centre of mass.
    theta
        Masses and first moments (L, 4) at which noise is propagated.

    """
    q, known = measurement.positions, np.isfinite(measurement.com)
    A, n = _matrix(regressor, measurement, q), len(q)
    at, flat = A @ theta.ravel(), theta.ravel()
    J = np.array([(_matrix(regressor, measurement, q + STEP * step) @ flat - at) / STEP
                  for step in np.eye(n)]).reshape(n, -1).T
    return ComRows(A, J, theta[:, 0].sum() ** 2 * measurement.covariance[np.ix_(known, known)])


def _matrix(regressor: StaticsRegressor, measurement: ComMeasurement, positions: Array) -> Array:
    known = np.isfinite(measurement.com)
    C = regressor.com_matrix(positions)
    if measurement.frame:
        pose = regressor.model.state(positions).pose_in_base(measurement.frame)
        C[:, ::4] -= pose.position[:, np.newaxis]
        C = pose.rotation.T @ C
    C[:, ::4] -= np.nan_to_num(measurement.com)[:, np.newaxis]
    return C[known]


class ComInformation:
    """
    Whitened equations of measured centres of mass, for the estimator.

    Parameters
    ----------
    regressor
        Of the robot.
    measurements
        Any number.
    noise
        Of the joint positions.

    """

    def __init__(self, regressor: StaticsRegressor, measurements: Sequence[ComMeasurement],
                 noise: SensorNoise) -> None:
        for measurement in measurements:
            check_measurement(regressor.model, measurement)
        self._regressor, self._measurements = regressor, tuple(measurements)
        self._variances = np.where(regressor.is_prismatic, noise.slide, noise.encoder) ** 2

    def linearised(self, instruments: InstrumentParameters, errors: InstrumentErrors,
                   values: Array, theta: Array, theta0: Array) -> list[tuple[Array, Array, Array]]:
        """
        Return each measurement's columns (rows, 4 L + V), right side (rows,) and Cholesky factor.

        Parameters
        ----------
        instruments, errors, values
            Of which the joint offsets count; as they are estimated so far.
        theta, theta0
            Masses and first moments, as estimated so far and by the URDF, (L, 4).

        """
        found = []
        for m in self._measurements:
            q = m.positions - errors.positions
            rows = com_rows(self._regressor, ComMeasurement(q, m.com, m.covariance, m.frame),
                            theta)
            C = instruments.position_columns(rows.J_position)
            covariance = rows.covariance + (rows.J_position * self._variances) @ rows.J_position.T
            found.append((np.concatenate((rows.A, C), axis=1),
                          C @ values - rows.A @ theta0.ravel(),
                          np.linalg.cholesky(covariance)))
        return found


def read_com_measurements(path: Path, model: RobotModel,
                          captures: Sequence[Capture] = ()) -> list[ComMeasurement]:
    """
    Read a YAML file of measured centres of mass.

    Parameters
    ----------
    path
        A list, each entry with ``com`` [x, y, z] in m (null where unknown), ``sd`` (a number or
        one per axis, m) or ``covariance`` (3 x 3, m^2), optionally ``frame`` (a link; the base),
        and the pose: ``positions`` by joint (others are zero) or ``capture``, the name of one.
    model
        The robot.
    captures
        Those that the file may refer to.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or an entry cannot be used.

    """
    what = f"file of measured CoMs '{path}'"
    entries = load_yaml(read_text(path, 'file of measured CoMs', LARGEST_TEXT), what)
    if not isinstance(entries, list) or not entries:
        raise ConfigurationError(f'{what} must hold a list of at least one measurement')
    found = []
    for i, entry in enumerate(entries):
        try:
            found.append(_measurement(entry, model, captures, f'{path.name} {i + 1}'))
            check_measurement(model, found[-1])
        except (BipedComError, TypeError, ValueError) as error:
            raise ConfigurationError(f'{what}, entry {i + 1}: {error}') from None
    return found


def _measurement(entry: Any, model: RobotModel, captures: Sequence[Capture],
                 name: str) -> ComMeasurement:
    if not isinstance(entry, Mapping) or not set(entry) <= set(_KEYS):
        raise InputError(f'must have the keys com, sd or covariance, positions or capture, '
                         f'frame; not {entry!r:.80}')
    missing = [group for group in (('com',), ('sd', 'covariance'), ('positions', 'capture'))
               if sum(key in entry for key in group) != 1]
    if missing:
        raise InputError(f'must have exactly one of {" and ".join(missing[0])}')
    com = np.array([np.nan if value is None else float(value) for value in entry['com']])
    covariance = (np.array(entry['covariance'], dtype=float) if 'covariance' in entry
                  else np.diag(np.square(np.broadcast_to(
                      np.array(entry['sd'], dtype=float), (3,)))))
    return ComMeasurement(_positions(entry, model, captures), com, covariance,
                          str(entry.get('frame') or ''), name)


def _positions(entry: Mapping[str, Any], model: RobotModel, captures: Sequence[Capture]) -> Array:
    if 'positions' in entry:
        if not isinstance(entry['positions'], Mapping):
            raise InputError('positions must be a mapping of joints to numbers')
        return model.positions({
            str(joint): float(value) for joint, value in entry['positions'].items()})
    for capture in captures:
        if capture.name == str(entry['capture']):
            return capture.positions
    raise InputError(f"there is no capture '{entry['capture']}' (there are "
                     f'{", ".join(capture.name for capture in captures) or "none"})')
