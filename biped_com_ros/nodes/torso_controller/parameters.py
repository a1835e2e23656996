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
from biped_com_ros.core.settings import gravity_setting, setting, settings
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.controller import TendonController
from biped_com_ros.core.torso.options import ControllerOptions
from biped_com_ros.core.torso.tension import map_closure
from biped_com_ros.ros.node.common_parameters import ManagedNodeParameters
from biped_com_ros.ros.node.parameters import read_only
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
    control: ControllerOptions = settings(ControllerOptions)
    imu_timeout: float = setting(
        0.1, 'Age from which IMU data and tendon states are not used', 's', 0.001, 10.0)
    joy_timeout: float = setting(
        0.5, 'Time without a message on joy after which the torso stops and holds', 's', 0.01,
        60.0)
    target_timeout: float = setting(
        0.0, 'Time without a message on ~/target after which the torso stops and holds; 0: it '
        'moves on to the last target', 's', 0.0, 60.0)
    joy_forward_axis: int = setting(1, 'Axis of the joystick that is 1 forward', '', 0, 31)
    joy_left_axis: int = setting(0, 'Axis of the joystick that is 1 to the left', '', 0, 31)
    tip_frame: str = read_only(
        'torso_tip', 'TF frame at the upper end of the backbone; empty: no TF. Use the name of '
        'the upper link only if no other node publishes it')
    tf_rate: float = setting(50.0, 'Rate of TF; 0 turns it off', 'Hz', 0.0, 10000.0)
    marker_rate: float = setting(15.0, 'Rate of markers; 0 turns them off', 'Hz', 0.0, 10000.0)
    gravity: float = gravity_setting()


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
        return TendonController(body.statics, body.max_bend, params.control)
    except BipedComError as error:
        raise ConfigurationError(f'parameters of torso_controller: {error}') from None


def find_weakness(body: TorsoBody, params: TorsoControllerParameters) -> str:
    """Describe where the tendons cannot hold the upper body in its first posture; '' if none."""
    load, _ = body.upper_body(body.model.state(body.model.usual_posture()), (0j, -params.gravity))
    tensions = params.control.tensions
    found = map_closure(
        body.statics, tensions, np.array((0.0, body.max_bend)),
        np.radians(np.arange(0.0, 360.0, 45.0)), load)
    if found.is_held.all():
        return ''
    return (f'tendons of {tensions.lowest:g} to {tensions.highest:g} N cannot bend this '
            f'torso by {math.degrees(body.max_bend):g} deg: {-found.reserve.min():.3g} N m are '
            'missing; set max_tension and the other parameters of the tendons for this robot')
