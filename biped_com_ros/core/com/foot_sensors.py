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
Constant errors of the sensors of the feet: small rotations, gains, and places.

What a sensor measures differs from the truth by a wrench that is linear in its errors:

    dF = r x F + g_F F        dM = r x M + d x F + g_M M

with rotations r about its x and y axes, displacements d along them, and gains g of each force and
of the moments about x and y. Errors about and along the sensor's z axis hardly matter for the
CoM: it is nearly vertical.
"""

from __future__ import annotations

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

PER_FOOT, ROTATIONS = 9, 2
"""Number of errors of a foot: two rotations, two displacements, five gains; of its rotations."""
_X, _Y = np.eye(3)[:2]


class FootSensorErrors:
    """
    How errors of the sensors of all feet act.

    Parameters
    ----------
    model
        The robot. A foot with several sensors, or one that moves relative to its sole, counts as
        one with a sensor at the sole.
    rotation, frame, gain
        Standard deviations, rad, m, and shares.

    Attributes
    ----------
    variances
        Of all errors, shape (9 F,).

    """

    def __init__(self, model: RobotModel, rotation: float, frame: float, gain: float) -> None:
        poses = _sensors_in_soles(model)
        self.variances = np.tile(np.square((*[rotation] * 2, *[frame] * 2, *[gain] * 5)),
                                 len(poses))
        # From the wrench at the sole to what each error changes of it: (F, 6, 6 x 9).
        self._effects = np.array([_effects(pose) for pose in poses])

    def change(self, wrenches: Array, R_world_soles: Array) -> tuple[Array, Array]:
        """
        Return what errors change of forces and moments, each (F, 3, 9), along the world's axes.

        Parameters
        ----------
        wrenches
            On each foot in its sole frame, shape (F, 6), N and N m.
        R_world_soles
            Orientations of the soles, (F, 3, 3).

        """
        by = np.matmul(wrenches[:, np.newaxis], self._effects).reshape(-1, 6, PER_FOOT)
        return np.matmul(R_world_soles, by[:, :3]), np.matmul(R_world_soles, by[:, 3:])


def _effects(pose: Pose) -> Array:
    to_sole = wrench_adjoint(pose.rotation, pose.position)
    to_sensor = np.linalg.inv(to_sole)
    changes = np.zeros((PER_FOOT, 6, 6))
    for i, axis in enumerate((_X, _Y)):
        turned = np.cross(axis, np.eye(3)).T
        changes[i, :3, :3] = changes[i, 3:, 3:] = changes[2 + i, 3:, :3] = turned
    for i in range(5):
        changes[4 + i, i, i] = 1.0
    in_sole = to_sole @ changes @ to_sensor
    return in_sole.transpose(2, 1, 0).reshape(6, 6 * PER_FOOT)


def _sensors_in_soles(model: RobotModel) -> list[Pose]:
    config, found = model.config, []
    for sole, joint, foot in zip(
            model.soles.poses_in_joint(), model.soles.joints, config.feet.values()):
        pose = Pose.identity()
        if len(foot.wrench_sensors) == 1:
            sensor = model.frames((config.wrench_sensors[foot.wrench_sensors[0]].frame,))
            if sensor.joints[0] == joint:
                pose = sole.inverse() @ sensor.poses_in_joint()[0]
        found.append(pose)
    return found
