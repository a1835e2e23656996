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
"""The chain of joints between the base and a sole, for numerical inverse kinematics."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
import pinocchio as pin


class LegChain:
    """
    The joints between the base and one sole.

    Parameters
    ----------
    model
        The robot.
    foot
        Index of the foot in ``model.soles``.

    Attributes
    ----------
    name
        Of the foot.
    joints
        Indices of its actuated joints, into ``model.joint_names``.

    Raises
    ------
    ConfigurationError
        If no actuated joint moves the foot.

    """

    def __init__(self, model: RobotModel, foot: int) -> None:
        pin_model, soles = model.pin_model, model.soles
        self.name = soles.names[foot]
        self._joint = int(soles.joints[foot])
        pose = soles.poses_in_joint()[foot]
        self._sole_in_joint = pin.SE3(pose.rotation, pose.position)
        chain = [pin_model.names[i] for i in pin_model.supports[self._joint]]
        actuated = [name for name in chain if name in model.actuated_joint_names]
        if not actuated:
            raise ConfigurationError(f"no joint moves foot '{self.name}' of {model.config.name}")
        self.joints = model.joint_index(actuated)
        self._columns = [int(pin_model.joints[pin_model.getJointId(n)].idx_v) for n in actuated]

    def sole(self, data: pin.Data) -> pin.SE3:
        """Return the pose of the sole in the base."""
        return data.oMi[self._joint] * self._sole_in_joint

    def jacobian(self, data: pin.Data) -> Array:
        """
        Return the Jacobian (6, joints) of the twist of the sole at its origin, base axes.

        Joint Jacobians must have been computed in `data`.
        """
        jacobian: Array = self.columns(data.J).copy()
        # From the origin of the base to that of the sole: v + w x p.
        jacobian[:3] -= pin.skew(self.sole(data).translation) @ jacobian[3:]
        return jacobian

    def columns(self, matrix: Array) -> Array:
        """Return the columns of this leg's joints in a matrix (k, nv)."""
        return matrix[:, self._columns]
