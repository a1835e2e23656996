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
"""Position and effort limits of the measured joints."""

from __future__ import annotations

import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

#: Stands for a missing limit in some URDFs, N m or N.
_UNLIMITED = 1e9


def position_limits(model: RobotModel) -> tuple[Array, Array]:
    """Return the URDF's lower and upper limits of ``model.joint_names``, (n,) each, rad or m."""
    pin_model = model.pin_model
    index = [pin_model.joints[pin_model.getJointId(name)].idx_q for name in model.joint_names]
    return (np.array(pin_model.lowerPositionLimit)[index],
            np.array(pin_model.upperPositionLimit)[index])


def effort_limits(model: RobotModel) -> Array:
    """Return the effort limit of each joint, (n,), N m or N; inf if passive or unknown."""
    pin_model = model.pin_model
    effort = getattr(pin_model, 'upperEffortLimit', None)
    if effort is None:
        effort = pin_model.effortLimit
    limits = []
    for name in model.joint_names:
        limit = float(effort[pin_model.joints[pin_model.getJointId(name)].idx_v])
        passive = name in model.config.passive_joints
        limits.append(limit if 0.0 < limit < _UNLIMITED and not passive else math.inf)
    return np.array(limits)
