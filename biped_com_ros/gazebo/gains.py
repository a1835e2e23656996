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
Gains of joint controllers and damping of joints for a robot without rotor inertia, as in Gazebo.

Links of 1e-5 kg m^2 take no damping that a controller computes every few milliseconds. That of a
URDF's joints is integrated implicitly by Gazebo's engine (DART), which is stable for any inertia;
with it a controller's stiffness is stable as long as it changes the position by a small share of
the error from one update to the next.

DART leaves this damping out of the impulses of contacts: of an effort at a joint whose foot the
floor holds, the share h c / (J + h c) is lost, with the step h, the damping c and the inertia J of
the foot. Links of legs therefore get the inertia of a rotor, as a real robot's have.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import motor_effort_limits, RobotModel
import numpy as np
import pinocchio as pin

STANCE_STIFFNESS = 20.0
"""Stiffness of a leg joint over m g h, if the effort limits allow it."""

SAG = math.radians(1.0)
"""Largest sag of a limb under its own weight without feedforward, in any orientation, rad."""

SAG_LENGTH = 0.001
"""The same of a prismatic joint, m."""

BANDWIDTH = 2.0 * math.pi * 3.0
"""Smallest natural frequency of a joint that carries its own limb only, rad/s."""

STANCE_DAMPING, DAMPING = 0.4, 0.8
"""Damping ratios of leg joints (under the whole robot) and of the others, at least."""

UPDATES = 10.0
"""Time constant of a joint without inertia over the time between updates, at least."""

TOP_SPEED, TOP_SLIDING_SPEED = 5.0 / 3.0, 0.5
"""Speed at which the damping takes all of a joint's effort, at least, rad/s and m/s."""


PHYSICS_STEP = 0.001
"""Step of the engine in ``config/gazebo/flat.sdf``, s."""

ROTOR = 4.0
"""Inertia of a leg joint's rotor over what its damping is in a step: 80 % of an effort remain."""


@dataclass(frozen=True)
class ServoGains:
    """
    Gains of a joint in Gazebo.

    Attributes
    ----------
    stiffness
        Of its controller, N m/rad or N/m.
    damping
        Of the joint, N m s/rad or N s/m.
    rotor_inertia
        That its child link gets about the joint's axis, kg m^2.

    """

    stiffness: float
    damping: float
    rotor_inertia: float = 0.0


@dataclass(frozen=True)
class _Servo:
    """
    What a joint moves.

    Attributes
    ----------
    inertia
        With all other joints still, kg m^2 or kg.
    weight
        Below the joint, N.
    arm
        Distance of that weight from the joint, m.
    is_leg, slides
        Whether it is between the base and a sole, and whether it is prismatic.
    effort
        Its limit, N m or N; infinite if it has none.

    """

    inertia: float
    weight: float
    arm: float
    is_leg: bool
    slides: bool
    effort: float


def servo_gains(model: RobotModel, rate: float) -> dict[str, ServoGains]:
    """
    Return the gains of each measured joint, by name.

    Parameters
    ----------
    model
        The robot, in its usual posture.
    rate
        Updates of the controller per second.

    """
    if not (rate > 0.0 and math.isfinite(rate)):
        raise ConfigurationError(f'the update rate must be above zero, not {rate:g} Hz')
    height = _height(model)
    tilting = model.mass * GRAVITY * height, model.mass * height ** 2
    return {name: _gains(servo, rate, *tilting) for name, servo in _servos(model).items()}


def _gains(servo: _Servo, rate: float, toppling: float, pendulum: float) -> ServoGains:
    """Return the gains for m g h, N m, and m h^2, kg m^2, of the whole robot."""
    if servo.is_leg:
        stiffness, inertia, ratio = STANCE_STIFFNESS * toppling, pendulum, STANCE_DAMPING
    else:
        inertia, ratio = servo.inertia, DAMPING
        sagging = servo.weight / SAG_LENGTH if servo.slides else servo.weight * servo.arm / SAG
        stiffness = max(BANDWIDTH ** 2 * inertia, sagging)
    top = TOP_SLIDING_SPEED if servo.slides else TOP_SPEED
    damping = min(max(2.0 * ratio * math.sqrt(stiffness * inertia), UPDATES * stiffness / rate),
                  servo.effort / top)
    rotates = servo.is_leg and not servo.slides
    return ServoGains(
        _rounded(min(stiffness, damping * rate / UPDATES)), _rounded(damping),
        _rounded(ROTOR * damping * PHYSICS_STEP) if rotates else 0.0)


def _rounded(value: float) -> float:
    return float(f'{value:.3g}')


def _height(model: RobotModel) -> float:
    """Return the height of the centre of mass above the lowest sole, m."""
    state = model.state(model.usual_posture())
    soles = state.placements_in_base(model.soles)[:, 3, 2]
    return float(state.com_in_base[2] - soles.min())


def _servos(model: RobotModel) -> dict[str, _Servo]:
    pin_model, q = model.pin_model, model.configuration(model.usual_posture())
    data = pin_model.createData()
    inertia: Array = np.diagonal(pin.crba(pin_model, data, q))
    pin.centerOfMass(pin_model, data, q, True)
    legs = {int(joint) for sole in model.soles.joints for joint in pin_model.supports[int(sole)]}
    servos = {}
    for name, effort in zip(model.joint_names, motor_effort_limits(model).tolist()):
        i = pin_model.getJointId(name)
        servos[name] = _Servo(
            float(inertia[pin_model.joints[i].idx_v]), GRAVITY * float(data.mass[i]),
            float(np.linalg.norm(data.com[i])), i in legs,
            pin_model.joints[i].shortname().startswith('JointModelP'), effort)
    return servos
