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
from dataclasses import dataclass, field, fields, replace
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting, Settings
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
class SensorNoise(Settings):
    """
    Standard deviations of sensors, in addition to the variation within a capture.

    What is estimated has the prior deviation; zero: exact. Gains, drifts and places are estimated
    per sensor, and what is constant over all poses once.
    """

    force: float = setting(0.5, 'Noise of forces', 'N', 1e-9, 1e4, name='force_noise')
    moment: float = setting(0.02, 'Noise of moments', 'N m', 1e-9, 1e3, name='moment_noise')
    torque: float = setting(
        0.3, 'Noise of joint torques', 'N m or N', 1e-9, 1e4, name='torque_noise')
    encoder: float = setting(
        math.radians(0.1), 'Noise of joint positions', 'rad', 0.0, 0.1, name='encoder_noise')
    #: Noise of the positions of prismatic joints, m.
    slide: float = 1e-4
    tilt: float = setting(
        math.radians(0.05), 'Noise of the direction of gravity', 'rad', 0.0, 0.1,
        name='tilt_noise')
    encoder_offset: float = setting(0.005, 'Bias of joint positions', 'rad', 0.0, 0.1)
    #: Bias of the positions of prismatic joints, m.
    slide_offset: float = 0.001
    force_bias: float = setting(3.0, 'Constant bias of forces', 'N', 0.0, 1e4)
    moment_bias: float = setting(0.1, 'Constant bias of moments', 'N m', 0.0, 1e3)
    torque_bias: float = setting(0.3, 'Bias of joint torques', 'N m', 0.0, 1e4)
    tilt_bias: float = setting(0.005, 'Bias of the direction of gravity', 'rad', 0.0, 0.1)
    recording_gain: float = setting(
        0.02, 'Gain of all wrenches and torques from one recording to the next (temperature, '
        'mounting, electronics), as a share; it looks like mass, is not estimated, but part of '
        'the stated deviations', '', 0.0, 0.5)
    wrench_gain: float = setting(
        0.02, "Gain errors of a wrench sensor's axes, as shares", '', 0.0, 0.5)
    cross_talk: float = setting(
        0.01, 'Cross-talk of a wrench sensor: the share of one axis that another one measures; '
        '1 N m counts as 10 N', '', 0.0, 0.2)
    force_drift: float = setting(
        3.0, 'Change of the bias of forces from the first to the last pose', 'N', 0.0, 1e4)
    moment_drift: float = setting(
        0.1, 'Change of the bias of moments from the first to the last pose', 'N m', 0.0, 1e3)
    sensor_shift: float = setting(
        0.003, "Misplacement of wrench sensors' frames, per axis", 'm', 0.0, 0.1)
    sensor_turn: float = setting(
        0.005, "How wrench sensors' frames are turned, about each axis", 'rad', 0.0, 0.2)
    torque_gain: float = setting(0.02, 'Errors of torque constants, as shares', '', 0.0, 0.5)
    friction: float = setting(
        0.02, "Joints' static friction, as a share of the effort limit; estimated where the "
        'approach of poses shows it with both signs, else noise', '', 0.0, 1.0)
    floor_tilt: float = setting(
        0.0087, 'Tilt of the floor, about each horizontal axis', 'rad', 0.0, 0.2)
    sole_turn: float = setting(
        0.005, "How soles' frames are turned, about x and y", 'rad', 0.0, 0.2)
    sole_height: float = setting(
        0.003, "Misplacement of soles' frames along z, relative to the first sole's", 'm', 0.0,
        0.1)
    sole_contact: float = setting(
        0.003, 'Angle between the floor and a sole that stands on it, about each axis; 0.1 m '
        'times this in height; 0: soles are not used to calibrate joint offsets and IMU', 'rad',
        0.0, 0.2)

    @staticmethod
    def exact(**noise: float) -> SensorNoise:
        """
        Return sensors without errors, as of simulations.

        Parameters
        ----------
        **noise
            Fields that have another value: noise, or an error that there is.

        """
        none = dict.fromkeys((each.name for each in fields(SensorNoise)), 0.0)
        return SensorNoise(**{**none, **_LEAST_NOISE, **noise})

    def scaled(self, scale: float) -> SensorNoise:
        """Return the noise with everything in N and N m multiplied; see :func:`noise_scale`."""
        return replace(self, **{name: scale * getattr(self, name) for name in (
            'force', 'moment', 'torque', 'force_bias', 'moment_bias', 'torque_bias',
            'force_drift', 'moment_drift')})


#: Of a robot, kg.
_LEAST_MASS = 1e-3
#: What is weighted by noise needs some; far less than any sensor has.
_LEAST_NOISE = {'force': 1e-6, 'moment': 1e-7, 'torque': 1e-6, 'encoder': 1e-9, 'slide': 1e-9,
                'tilt': 1e-9}


def noise_scale(mass: float, at_mass: float) -> float:
    """
    Return by what errors in N and N m are multiplied.

    Parameters
    ----------
    mass
        Of the robot, kg.
    at_mass
        Of a robot for whose sensors they hold, kg: those of a lighter one are finer. 0: as given.

    Raises
    ------
    ConfigurationError
        If it is no mass of a robot.

    """
    if 0.0 < abs(at_mass) < _LEAST_MASS:
        raise ConfigurationError(
            f'no robot has {at_mass:g} kg: give the mass for whose sensors errors hold, or 0')
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
