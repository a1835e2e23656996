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
"""Measurements in one pose at rest, and the noise of the sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import check_positive, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

SMALLEST_LOAD = 0.02
"""A standing foot carries at least this share of the weight."""


@dataclass(frozen=True, kw_only=True)
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
    time
        At which it was taken, s of any clock, by which sensors drift; NaN: not known.

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
    time: float = math.nan


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
    recording_gain
        Of the gain of all wrench sensors and torques together, which differs from one recording to
        the next (temperature, mounting, electronics); within one it looks like mass. It is not
        estimated, but part of the stated deviations. Zero: none.
    wrench_gain, cross_talk
        Of the gains of a wrench sensor's axes, and of how one axis enters the reading of another
        (moments count by :data:`instruments.MOMENT_ARM`), which are estimated. Zero: none.
    force_drift, moment_drift
        Of the change of a wrench sensor's bias from the time of the first capture to that of the
        last, N and N m; estimated. Zero: none.
    sensor_shift, sensor_turn
        Of the places of wrench sensors' frames in the URDF, m and rad; estimated. Zero: exact.
    torque_gain
        Of the torque constants, as a share; estimated. Zero: exact.
    friction
        Of static friction, as a share of a motor's largest torque. Where it is known from which
        side a joint came to rest it is estimated; else it counts as noise. Zero: none.
    floor_tilt
        Of the floor, about each horizontal axis, rad; estimated. Zero: level.
    sole_turn, sole_height
        Of the placement of soles in the feet, about the x and y axes of the URDF's, rad, and along
        its z axis, m; estimated, heights relative to the first sole's. Zero: exact.
    sole_contact
        By how much standing soles are not flat on the floor, about each axis, rad; 0.1 m times
        this in height. Zero: not known, so that soles are not used.

    """

    force: float = 0.5
    moment: float = 0.02
    torque: float = 0.3
    encoder: float = math.radians(0.1)
    slide: float = 1e-4
    tilt: float = math.radians(0.05)
    encoder_offset: float = 0.005
    force_bias: float = 3.0
    moment_bias: float = 0.1
    torque_bias: float = 0.3
    tilt_bias: float = 0.005
    recording_gain: float = 0.02
    wrench_gain: float = 0.02
    cross_talk: float = 0.01
    force_drift: float = 3.0
    moment_drift: float = 0.1
    sensor_shift: float = 0.003
    sensor_turn: float = 0.005
    torque_gain: float = 0.02
    friction: float = 0.02
    floor_tilt: float = 0.0087
    sole_turn: float = 0.005
    sole_height: float = 0.003
    sole_contact: float = 0.003

    def __post_init__(self) -> None:
        check_positive('the noise', self, 'force', 'moment', 'torque')
        check_positive('the noise', self, or_zero=True)

    def scaled(self, scale: float) -> SensorNoise:
        """Return the noise with everything in N and N m multiplied; see :func:`noise_scale`."""
        return replace(self, **{name: scale * getattr(self, name) for name in (
            'force', 'moment', 'torque', 'force_bias', 'moment_bias', 'torque_bias',
            'force_drift', 'moment_drift')})


def noise_scale(mass: float, at_mass: float) -> float:
    """
    Return by what errors in N and N m are multiplied.

    Parameters
    ----------
    mass
        Of the robot, kg.
    at_mass
        Of a robot for whose sensors they hold, kg: those of a lighter one are finer. 0: as given.

    """
    return mass / at_mass if at_mass else 1.0


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
    where = _place(capture)
    check_values(model, capture)
    _check_torques(model, capture, where)
    for (foot, config), stands in zip(model.config.feet.items(), capture.in_contact):
        if stands:
            _check_foot(model, capture, foot, config.wrench_sensors, where)


def check_values(model: RobotModel, capture: Capture) -> None:
    """
    Check the shapes and values of a capture, without regard to what it is used for.

    Raises
    ------
    InputError
        If it does not fit the robot, or cannot have been measured.

    """
    where = _place(capture)
    _check_shapes(model, capture, where)
    for what in ('positions', 'up'):
        if not np.isfinite(getattr(capture, what)).all():
            raise InputError(f'{what} of {where} are not finite: {getattr(capture, what)}')
    for what in ('wrenches', 'torques'):
        if np.isinf(getattr(capture, what)).any():
            raise InputError(f'{what} of {where} are infinite: {getattr(capture, what)}')
    for what in ('position_variance', 'wrench_variance', 'torque_variance'):
        variance = getattr(capture, what)
        if variance is not None and (np.isinf(variance) | (variance < 0.0)).any():
            raise InputError(f'{what} of {where} must be finite and not negative: {variance}')
    if math.isinf(capture.time):
        raise InputError(f"'time' of {where} must be finite, not {capture.time} s")
    if not 0.9 < float(np.linalg.norm(capture.up)) < 1.1:
        raise InputError(f"'up' of {where} must be a unit vector, not {capture.up}")


def _place(capture: Capture) -> str:
    return f"capture '{capture.name}'" if capture.name else 'the capture'


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
