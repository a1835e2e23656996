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
"""Checks of captures and estimates; problems are described with their remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
import math

from biped_com_ros.core.errors import InputError, some_of
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.estimation.estimates import residuals_of
from biped_com_ros.core.identification.estimation.noise_scales import NoiseEstimate
from biped_com_ros.core.identification.estimation.prior import missing_inertials, unreadable_shapes
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np

SMALLEST_MOTION = 0.02
"""Captures whose joints all stay within this, rad, are of one pose."""

END_STOP = (0.02, 0.003)
"""
From so far beyond its limit to so far before it, rad, a joint may lean on the end stop.

Its motor then does not carry the whole load. Further beyond, the limit in the URDF is wrong.
"""


def check_variety(model: RobotModel, captures: Sequence[Capture]) -> None:
    """Raise InputError unless there are at least two different poses."""
    if len(captures) < 2:
        raise InputError(
            f'{len(captures)} captures are too few: capture at least 2 different poses, better '
            '40')
    motion = float(np.ptp([capture.positions for capture in captures], axis=0).max())
    tilt = float(np.ptp([capture.up for capture in captures], axis=0).max())
    if max(motion, tilt) < SMALLEST_MOTION:
        raise InputError(
            f'all {len(captures)} captures are one pose: no joint of {model.config.name} moves '
            f'by more than {math.degrees(motion):.2f} deg; move arms, legs and trunk between '
            'captures')


def without_constant_torques(regressor: StaticsRegressor, captures: Sequence[Capture],
                             noise: SensorNoise) -> tuple[list[Capture], list[str]]:
    """
    Return captures without the torques that never change although the load does, and warnings.

    Raises
    ------
    InputError
        If there is no capture.

    """
    if not captures:
        raise InputError('there is no capture: capture at least 2 poses at rest')
    model = regressor.model
    expected = residuals_of(regressor, captures, parameters_of(model)).torque_expected
    measured = np.array([capture.torques for capture in captures])
    warnings, is_constant = [], np.zeros(measured.shape[1], dtype=bool)
    for j, name in enumerate(model.joint_names):
        both = np.isfinite(measured[:, j]) & np.isfinite(expected[:, j])
        if both.sum() < 3:
            continue
        spread = float(np.std(expected[both, j]))
        if np.ptp(measured[both, j]) < 1e-3 * noise.torque and spread > 3.0 * noise.torque:
            is_constant[j] = True
            warnings.append(
                f"the torque of joint '{name}' is always {measured[both, j][0]:.3g} N m while the "
                f'load changes by {spread:.1f} N m: it is ignored; check the torque sensor')
    return [_without_torques(capture, is_constant) for capture in captures], warnings


def without_end_stop_torques(model: RobotModel,
                             captures: Sequence[Capture]) -> tuple[list[Capture], list[str]]:
    """Return captures without the torques of joints at their limits, and warnings."""
    lower, upper = position_limits(model)
    q = np.array([capture.positions for capture in captures])
    is_measured = np.isfinite([capture.torques for capture in captures])
    beyond, before = END_STOP
    at_limit = np.zeros(q.shape, dtype=bool)
    for over in (lower - q, q - upper):
        at_limit |= (over > -before) & (over < beyond)
    ignored, measured = (at_limit & is_measured).sum(axis=0), is_measured.sum(axis=0)
    names = [f'{model.joint_names[j]} ({ignored[j]} of {measured[j]})'
             for j in np.flatnonzero(ignored > 0.1 * measured)]
    warnings = [
        'torques of joints at their limits are ignored, because the end stop may carry load: '
        f'{", ".join(names)}; capture these joints away from their limits'] if names else []
    return [_without_torques(c, row) for c, row in zip(captures, at_limit)], warnings


def _without_torques(capture: Capture, ignored: Array) -> Capture:
    return replace(capture, torques=np.where(ignored, np.nan, capture.torques))


def model_warnings(model: RobotModel, information: Array) -> list[str]:
    """
    Return warnings about links without mass, unreadable shapes, and links that are not measured.

    Parameters
    ----------
    model
        The robot.
    information
        Of all captures, (4 L or more, the same).

    """
    unmeasured = [name for name, value in zip(model.link_names, information.diagonal()[::4])
                  if not value > 1e-9]
    missing = missing_inertials(model)
    warnings = [missing] if missing else []
    warnings += [f"the centre of mass of link '{name}' is not kept within its shape: {reason}"
                 for name, reason in unreadable_shapes(model).items()]
    if unmeasured:
        warnings.append(
            f'no capture measures the mass of {", ".join(unmeasured)}, below the sensors of '
            'standing feet: add captures with each foot in the air, or weigh them')
    return warnings


def fit_warnings(captures: Sequence[Capture], misfit: Array,
                 noise: Sequence[NoiseEstimate]) -> list[str]:
    """
    Return warnings about captures that do not fit, and sensors that contradict their noise.

    Parameters
    ----------
    captures, misfit
        With their mean squared normalised residuals, (captures,).
    noise
        Of the sensors.

    """
    usual = max(1.0, float(np.median(misfit)))
    warnings = [
        f"capture '{capture.name}' does not fit the others ({math.sqrt(value):.1f} times the "
        'noise): the robot moved or touched something; its weight is reduced; capture it again'
        for capture, value in zip(captures, misfit) if value > 6.0 * usual]
    # More than sampling explains, and more than a careful guess of the noise.
    loud = [n for n in noise if n.scale > max(1.5, 1.0 + 4.0 / math.sqrt(2.0 * n.count))]
    worst = {(n.kind, n.name): n for n in sorted(loud, key=lambda n: n.scale)}
    warnings += [_contradiction(n) for n in worst.values() if n.kind != 'torque']
    torques = sorted((n for n in loud if n.kind == 'torque'), key=lambda n: -n.scale)
    if torques:
        named = some_of([f'{n.name} ({n.estimated:.2g} {n.unit}, {n.scale:.1f} times)'
                         for n in torques])
        warnings.append(
            f'torques scatter by several times the assumed noise: {named}; they count '
            'less; friction: approach poses from both sides')
    return warnings


def _contradiction(n: NoiseEstimate) -> str:
    what, remedy = {
        'encoder': ('joint positions', 'check encoders and play'),
        'tilt': ('the direction of gravity', 'check the IMU and its filter'),
        'force': (f"forces of sensor '{n.name}'", 'check its mounting and cables, and tare it'),
        'moment': (f"moments of sensor '{n.name}'", 'check its mounting and cables, and tare it'),
        'sole tilt': ('directions of the soles', 'put all soles flat on a hard floor'),
        'sole height': ('heights of the soles', 'put all soles flat on a hard floor'),
    }[n.kind]
    axis = f' ({n.axis}, the worst axis)' if n.axis else ''
    return (f'{what} contradict the other sensors: they scatter by {n.estimated:.2g} {n.unit}'
            f'{axis}, {n.scale:.1f} times the assumed noise, and their weight is reduced; '
            f'{remedy}')
