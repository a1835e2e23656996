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
"""Parameters of `torso_controller`, and what it makes of them."""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.controller import TendonController
from biped_com_ros.core.torso.options import ControllerOptions, TendonDrive
from biped_com_ros.core.torso.reference import MotionLimits
from biped_com_ros.core.torso.tension import map_closure, TensionLimits
from biped_com_ros.ros.node.common_parameters import gravity_parameter, ManagedNodeParameters
from biped_com_ros.ros.node.parameters import parameter, read_only, settings_from
import numpy as np


@dataclass(frozen=True)
class TorsoControllerParameters(ManagedNodeParameters):
    """Parameters of `torso_controller`."""

    optional: bool = read_only(
        False, 'Whether to exit without an error if the robot has no tendon-driven torso')
    lower_imu: str = read_only('base', "IMU of the robot's YAML below the backbone")
    upper_imu: str = read_only('torso', "IMU of the robot's YAML above the backbone")
    hand_topics: list[str] = read_only(
        [], 'Topics (WrenchStamped, environment on robot, in the frame of the hand) of the '
        "wrenches on the robot's hands, in the order of its YAML; empty: no wrenches")
    max_speed: float = parameter(1.5, 'Largest speed of the bend', 'rad/s', 0.001, 10.0)
    max_acceleration: float = parameter(
        20.0, 'Largest angular acceleration of the reference; Russo et al. measured 36', 'rad/s2',
        0.01, 36.0)
    smoothing: float = parameter(
        0.03, 'Time constant of the two low-passes of the reference', 's', 0.0, 1.0)
    co_contraction: float = parameter(
        12.0, 'Tension of every tendon of a straight torso without load', 'N', 0.0, 1e4)
    min_tension: float = parameter(3.0, 'Smallest tension of a tendon', 'N', 0.0, 1e4)
    max_tension: float = parameter(60.0, 'Largest tension of a tendon', 'N', 0.1, 1e5)
    tendon_stiffness: float = parameter(
        7000.0, 'Stiffness of drive and tendon in series', 'N/m', 1.0, 1e9)
    tendon_pretension: float = parameter(
        11.9, 'Tension of a tendon whose length is the commanded one; 0 where commands are '
        'unloaded lengths', 'N', 0.0, 1e4)
    tendon_lead: float = parameter(
        0.025, 'Delay between a command and the bend, due to drives and backbone', 's',
        0.0, 0.5)
    proportional_gain: float = parameter(
        0.4, 'Proportional gain of the feedback, bend per bend', '', 0.0, 10.0)
    integral_gain: float = parameter(
        4.0, 'Integral gain of the feedback of the bend', '1/s', 0.0, 100.0)
    observer_time: float = parameter(
        0.3, 'Time constant of the disturbance observer; 0 turns it off', 's', 0.0, 60.0)
    yaw_drift_time: float = parameter(
        5.0, 'Time constant of the estimate of the relative yaw of the two IMUs; 0: both have '
        'the same yaw', 's', 0.0, 600.0)
    slack_tension: float = parameter(0.3, 'Tension below which a tendon is loose', 'N', 0.0, 100.0)
    broken_time: float = parameter(
        1.0, 'Time after which a loose tendon is reported as broken', 's', 0.06, 60.0)
    imu_timeout: float = parameter(
        0.1, 'Age from which IMU data and tendon states are not used', 's', 0.001, 10.0)
    joy_timeout: float = parameter(
        0.5, 'Time without a message on joy after which the torso stops and holds', 's', 0.01,
        60.0)
    target_timeout: float = parameter(
        0.0, 'Time without a message on ~/target after which the torso stops and holds; 0: it '
        'moves on to the last target', 's', 0.0, 60.0)
    joy_forward_axis: int = parameter(1, 'Axis of the joystick that is 1 forward', '', 0, 31)
    joy_left_axis: int = parameter(0, 'Axis of the joystick that is 1 to the left', '', 0, 31)
    joy_dead_zone: float = parameter(
        0.05, 'Deflection up to which the stick counts as centred', '', 0.0, 0.9)
    fallback_rate: float = read_only(
        100.0, 'Rate of commands while the torso IMU has no data', 'Hz', 1.0, 1000.0)
    tip_frame: str = read_only(
        'torso_tip', 'TF frame at the upper end of the backbone; empty: no TF. Use the name of '
        'the upper link only if no other node publishes it')
    tf_rate: float = parameter(50.0, 'Rate of TF; 0 turns it off', 'Hz', 0.0, 10000.0)
    marker_rate: float = parameter(15.0, 'Rate of markers; 0 turns them off', 'Hz', 0.0, 10000.0)
    gravity: float = gravity_parameter(read_only=False)

    def options(self) -> ControllerOptions:
        """Return the settings of the controller."""
        motion = settings_from(
            self, MotionLimits, speed=self.max_speed, acceleration=self.max_acceleration)
        return settings_from(
            self, ControllerOptions, motion=motion,
            drive=settings_from(self, TendonDrive, 'tendon_'),
            tensions=self.tension_limits(), proportional=self.proportional_gain,
            integral=self.integral_gain, yaw_offset_time=self.yaw_drift_time)

    def tension_limits(self) -> TensionLimits:
        """Return the limits of the tensions."""
        return TensionLimits(lowest=self.min_tension, highest=self.max_tension)


def make_body(model: RobotModel, params: TorsoControllerParameters) -> TorsoBody:
    """
    Return the torso with its IMUs and hands.

    Raises
    ------
    ConfigurationError
        If the robot has no tendon-driven torso, or lacks an IMU or a hand.

    """
    body, imus = TorsoBody(model), model.config.imus
    for name, value in (('lower_imu', params.lower_imu), ('upper_imu', params.upper_imu)):
        if value not in imus:
            raise ConfigurationError(
                f"parameter '{name}': robot '{model.config.name}' has no IMU '{value}'; its YAML "
                f'has {", ".join(sorted(imus)) or "none"}')
    body.use_imus(imus[params.lower_imu].frame, imus[params.upper_imu].frame)
    hands, topics = model.config.hands, params.hand_topics
    if topics and len(topics) != len(hands):
        raise ConfigurationError(
            f"parameter 'hand_topics' has {len(topics)} topics; robot '{model.config.name}' has "
            f'{len(hands)} hands: {", ".join(hands) or "none"}')
    body.use_hands([hand.frame for hand in hands.values()] if topics else [])
    return body


def make_controller(body: TorsoBody, params: TorsoControllerParameters) -> TendonController:
    """Return the controller; ConfigurationError if parameters contradict each other."""
    try:
        return TendonController(body.statics, body.max_bend, params.options())
    except BipedComError as error:
        raise ConfigurationError(f'parameters of torso_controller: {error}') from None


def find_weakness(body: TorsoBody, params: TorsoControllerParameters) -> str:
    """Describe where the tendons cannot hold the upper body in its first posture; '' if none."""
    load, _ = body.upper_body(
        body.model.state(body.model.usual_posture()), (0j, -params.gravity))
    found = map_closure(
        body.statics, params.tension_limits(), np.array((0.0, body.max_bend)),
        np.radians(np.arange(0.0, 360.0, 45.0)), load)
    if found.is_held.all():
        return ''
    return (f'tendons of {params.min_tension:g} to {params.max_tension:g} N cannot bend this '
            f'torso by {math.degrees(body.max_bend):g} deg: {-found.reserve.min():.3g} N m are '
            'missing; set max_tension and the other parameters of the tendons for this robot')
