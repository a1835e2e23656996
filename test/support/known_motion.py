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
"""A robot whose configuration in the world is a known function of time, by Pinocchio alone."""

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pinocchio as pin


class KnownMotion:
    """
    What the ground has to give to a robot that moves in a known way, by inverse dynamics.

    Parameters
    ----------
    model
        The robot as its URDF describes it.
    q_at
        Returns Pinocchio's configuration in the world at a time.
    true
        Pinocchio's model of what the robot really is; by default what its URDF describes.

    """

    def __init__(self, model, q_at, true=None):
        self.model, self.q_at = model, q_at
        self.true = (true or model.pin_model).copy()
        self.true.gravity.linear = np.array((0.0, 0.0, -GRAVITY))
        self.data = self.true.createData()
        self.mass = pin.computeTotalMass(self.true)

    def motion(self, t, h=1e-4):
        """Return configuration, velocity and acceleration by differences on the manifold."""
        before, q, after = (self.q_at(t + s) for s in (-h, 0.0, h))
        forward, backward = (pin.difference(self.true, q, other) for other in (after, before))
        return q, (forward - backward) / (2.0 * h), (forward + backward) / (h * h)

    def truth(self, t):
        """Return the contact wrench about the origin of the world, (6,), the CoM, its velocity."""
        q, v, a = self.motion(t)
        at_root = pin.Force(pin.rnea(self.true, self.data, q, v, a)[:6])
        com = pin.centerOfMass(self.true, self.data, q, v).copy()
        return pin.XYZQUATToSE3(q[:7]).act(at_root).vector, com, self.data.vcom[0].copy()

    def wrench(self, t):
        return self.truth(t)[0]

    def located(self, t):
        """Return the robot in the world as its URDF has it, and how its base moves."""
        q, v, _ = self.motion(t)
        root = pin.XYZQUATToSE3(self.model.configuration(self.model.posture())[:7])
        base, twist = pin.XYZQUATToSE3(q[:7]) * root.inverse(), root.act(pin.Motion(v[:6]))
        state = self.model.state(q[7:], v[6:]).in_world(
            Pose(base.rotation.copy(), base.translation.copy()))
        return state, Twist(twist.linear.copy(), twist.angular.copy())


def known_sway(motion, true=None):
    """Return a `SwayingMotion` as a known one."""
    def q_at(t):
        base, q = motion.base(t), motion.state(t).q.copy()
        root = pin.SE3(pin.Quaternion(q[3:7]).matrix(), q[:3])
        q[:7] = pin.SE3ToXYZQUAT(pin.SE3(base.rotation, base.position) * root)
        return q
    return KnownMotion(motion.model, q_at, true)
