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
Effort limits of a robot's joints, and which of them are placeholders.

Exporters of URDFs write 0, 1000, 50000 or 1e9 where nobody entered a limit. A share of such a
number says nothing about friction, noise or bounds of a drive. Gravity tells how strong a joint
has to be at least, and drives are seldom stronger than some ten times that.
"""

from __future__ import annotations

import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import motor_effort_limits, RobotModel
import numpy as np
import pinocchio as pin

#: A limit is a placeholder beyond so many times what its joint needs, or any joint of the robot.
_OF_OWN, _OF_ANY = 100.0, 20.0
#: How strong a drive is taken to be whose limit is unknown, in what its joint needs.
_USUAL = 10.0
#: Least torque that a joint needs, as a lever of the robot's weight, m, or force of a prismatic
#: one, as a share of it: wrists turn about axes through their centre of mass.
_LEAST = 0.001


def needed_efforts(model: RobotModel) -> Array:
    """
    Return what gravity asks of each joint of ``model.joint_names``, (n,), N m or N.

    In the posture that the robot stands in: what is beyond the joint, held in the worst direction,
    or the whole weight at a corner of the sole beyond it.
    """
    pin_model, weight = model.pin_model, model.mass * GRAVITY
    data, state = pin.Data(pin_model), model.state(model.usual_posture())
    pin.centerOfMass(pin_model, data, state.q)
    joints = list(range(2, pin_model.njoints))
    twists = pin.computeJointJacobians(pin_model, data, state.q)[:, 6:]
    slides = ~twists[3:].any(axis=0)
    levers = np.array([float(np.linalg.norm(data.com[joint])) for joint in joints])
    beyond = GRAVITY * np.array([data.mass[joint] for joint in joints])
    needed = beyond * np.where(slides, 1.0, levers)
    for foot, last, pose in zip(
            model.config.feet.values(), model.soles.joints, model.soles.poses_in_joint()):
        carries = np.isin(joints, list(pin_model.supports[int(last)]))
        for x, y in foot.polygon:
            x, y, _ = data.oMi[int(last)].act(pose.apply(np.array((x, y, 0.0))))
            # The power of a vertical force there, by the velocity of each joint.
            power = weight * np.abs(twists[2] + y * twists[3] - x * twists[4])
            needed = np.where(carries, np.maximum(needed, power), needed)
    # A motor also holds the joints that follow its own.
    return np.maximum(_LEAST * weight, needed.dot(np.abs(model.coupling)))


def urdf_effort_limits(model: RobotModel) -> Array:
    """Return the URDF's effort limits, (n,), N m or N; inf if passive or without a limit."""
    is_passive = np.isin(model.joint_names, model.config.passive_joints)
    return np.where(is_passive, math.inf, motor_effort_limits(model))


def placeholders(model: RobotModel) -> Array:
    """Return which effort limits are not plausible beside what gravity needs, (n,), bool."""
    limits, needed = urdf_effort_limits(model), needed_efforts(model)
    most = np.minimum(_OF_OWN * needed, _OF_ANY * needed.max(initial=0.0))
    found: Array = np.isfinite(limits) & (limits > most)
    return found


def effort_limits(model: RobotModel) -> Array:
    """
    Return the effort limit of each joint, (n,), N m or N; inf if passive or unknown.

    A placeholder counts as what drives usually have beside the torque that gravity needs.
    """
    return np.where(placeholders(model), _USUAL * needed_efforts(model), urdf_effort_limits(model))


def effort_scales(model: RobotModel) -> Array:
    """Return what shares of efforts refer to, (n,), N m or N: the limits, never infinite."""
    limits = effort_limits(model)
    return np.where(np.isfinite(limits), limits, _USUAL * needed_efforts(model))
