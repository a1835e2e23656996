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
The momentum of a robot about a point fixed in the world, and simplifications of it.

Its derivative is the wrench of all that acts on the robot: of gravity and of contacts.
"""

from __future__ import annotations

from collections.abc import Callable

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, cross, Pose
from biped_com_ros.core.model.frames import FrameSet, ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pinocchio as pin

METHODS = ('full', 'links', 'point', 'static')
"""
How momentum is computed: with the whole angular momentum; with each link as a point mass; with the
whole robot as one point mass; or as if at rest.
"""


class Momentum:
    """
    The momentum of a robot about the world's origin.

    Parameters
    ----------
    model
        The robot.
    method
        One of :data:`METHODS`.

    Raises
    ------
    ConfigurationError
        If there is no such method.

    """

    def __init__(self, model: RobotModel, method: str = 'full') -> None:
        # Unbound: with methods of this object a cycle would keep the data, up to a megabyte, until
        # the garbage collector comes.
        kinds: dict[str, Callable[[Momentum, RobotState, Twist], Array]] = {
            'full': Momentum._full, 'links': Momentum._links, 'point': Momentum._point,
            'static': Momentum._static}
        if method not in kinds:
            raise ConfigurationError(
                f"the model's ZMP has no method '{method}'; valid: {', '.join(METHODS)}")
        self._find, self._model = kinds[method], model.pin_model
        self._data = pin.Data(model.pin_model)  # createData() copies it twice
        q = model.configuration(np.zeros(len(model.joint_names)))
        pose = Pose.from_quaternion(q[3:7], q[:3])
        self._pose_root_base = None if _is_identity(pose) else pose.inverse()
        bodies = [(joint, inertia) for joint, inertia in enumerate(model.pin_model.inertias)
                  if joint >= ROOT and inertia.mass > 0.0]
        self._masses = np.array([inertia.mass for _, inertia in bodies])
        self._bodies = FrameSet(
            [str(joint) for joint, _ in bodies], [joint for joint, _ in bodies],
            [Pose(np.eye(3), inertia.lever.copy()) for _, inertia in bodies])

    def of(self, state: RobotState, twist: Twist) -> Array:
        """
        Return linear and angular momentum about the world's origin, shape (6,), kg m/s, kg m2/s.

        Parameters
        ----------
        state
            With its base in the world and its joint velocities.
        twist
            Of that base.

        """
        return self._find(self, state, twist)

    def _full(self, state: RobotState, twist: Twist) -> Array:
        v, root = state.v.copy(), self._pose_root_base
        if root is None:
            v[:3], v[3:6] = twist
        else:
            angular = root.rotation.dot(twist.angular)
            v[:3] = root.rotation.dot(twist.linear) + cross(root.position, angular)
            v[3:6] = angular
        momentum = pin.computeCentroidalMomentum(self._model, self._data, state.q, v).vector
        in_world = momentum.reshape(2, 3).dot(state.base.rotation.T)
        return _about_origin(state.com_in_world, *in_world)

    def _links(self, state: RobotState, twist: Twist) -> Array:
        placements = state.placements_in_base(self._bodies)
        coms = placements[:, 3]
        relative = state.twists_in_base(self._bodies, placements)[:, 0]
        velocities = relative + twist.linear + np.cross(twist.angular, coms)
        momenta = self._masses[:, np.newaxis] * velocities.dot(state.base.rotation.T)
        about_origin = np.cross(state.base.apply(coms), momenta)
        return np.concatenate((momenta.sum(axis=0), about_origin.sum(axis=0)))

    def _point(self, state: RobotState, twist: Twist) -> Array:
        velocity = twist.linear + cross(twist.angular, state.com_in_base)
        velocity += state.com_velocity_in_base
        momentum = self._masses.sum() * state.base.rotation.dot(velocity)
        return _about_origin(state.com_in_world, momentum, np.zeros(3))

    def _static(self, state: RobotState, twist: Twist) -> Array:
        return np.zeros(6)


def _is_identity(pose: Pose) -> bool:
    return not pose.position.any() and np.array_equal(pose.rotation, np.eye(3))


def _about_origin(com: Array, linear: Array, angular_about_com: Array) -> Array:
    (x, y, z), (px, py, pz) = com.tolist(), linear.tolist()
    lx, ly, lz = angular_about_com.tolist()
    return np.array((px, py, pz, lx + y * pz - z * py, ly + z * px - x * pz, lz + x * py - y * px))
