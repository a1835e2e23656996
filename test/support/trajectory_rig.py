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
"""A rig of `gravity_compensation` with a trajectory controller."""

from builtin_interfaces.msg import Duration
import numpy as np
from sensor_msgs.msg import JointState
from support.gravity_rig import GravityRig
from support.trajectory_controller import NAME, TrajectoryController
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

ELBOW, OTHER = 'arm_left_4_joint', 'arm_right_4_joint'


class TrajectoryRig(GravityRig):
    """
    The rig, and a controller by which its joints move.

    Parameters
    ----------
    model
        The robot.
    compliance
        By which joints hang below their commands per effort that is missing, rad/(N m).
    controlled
        How many joints the controller has.
    controller
        Its options.
    values
        Parameters of the node.

    """

    def __init__(self, model, compliance=0.0, controlled=None, controller=None, **values):
        super().__init__(
            model, remap=f'~/joint_trajectory:={NAME}/joint_trajectory', **{
                'trajectory_rate': 100.0, 'command_joints': list(model.actuated_joint_names),
                'input_timeout': 1.0, 'hold_time': 1.0, **values})
        self.joints = list(model.actuated_joint_names)[::-1]  # any order will do
        self.index = model.joint_index(self.joints)
        self.is_blocked, self.compliance = False, compliance
        self.full = self.expected().efforts[self.index]
        commanded = self.measured(self.joints)
        self.move(self.joints, commanded, 0.0 * commanded)
        self.play(0.5, 0.02)
        self.controller = TrajectoryController(
            self, self.joints[:controlled], **(controller or {}))
        self.controller.desired = commanded[:controlled]
        self.controller.switch(on=True)
        self._publishers = {
            kind: self.publisher(kind, f'gravity_compensation/{topic}') for kind, topic in (
                (JointState, 'reference'), (JointTrajectory, 'reference_trajectory'))}

    def move(self, joints, positions, efforts):
        """Let joints go to where their drives hold them."""
        if self.is_blocked:
            return
        index = self.model.joint_index(joints)
        self.positions[index] = positions
        if self.compliance:
            self.positions[index] -= self.compliance * (self.full - efforts)
            self.lean(0.0)  # the IMU is above joints that move

    def measured(self, joints):
        """Return the positions of joints."""
        return self.positions[self.model.joint_index(joints)].copy()

    def begin(self):
        """Wait until efforts balance gravity, and joints are at rest in their posture."""
        self.is_blocked = False
        if not self.node.supervisor.limiter.active:
            self.node.trigger_activate()
        self.until(lambda: self.is_balanced() and self.controller.received, 'efforts')
        rest = self.model.posture()[self.index]
        if np.abs(self.controller.desired - rest).max() > 1e-9:
            self.send(JointState(name=self.joints, position=rest.tolist()))
            self.until(lambda: np.abs(self.controller.desired - rest).max() < 1e-9, 'the posture')
            self.until(self.is_balanced, 'efforts')
        self.statuses.clear()
        self.controller.history.clear()
        self.controller.received.clear()
        return self

    def send(self, message):
        self._publishers[type(message)].publish(message)

    def at(self, joint):
        return self.controller.desired[self.joints.index(joint)]

    def reach(self, joint, position, tolerance=1e-6):
        """Wait until a joint is commanded to be somewhere."""
        self.until(lambda: abs(self.at(joint) - position) < tolerance, f'the motion of {joint}')

    def column(self, joint, since=0.0):
        """Return times and commanded positions of a joint."""
        column = self.joints.index(joint)
        rows = [(t, q[column]) for t, q, _ in self.controller.history if t >= since]
        return np.array(rows).T

    def largest_motion(self, *joints):
        """Return by how much joints were moved, by default all."""
        return max(np.ptp(self.column(joint)[1]) for joint in joints or self.joints)

    def close(self):
        self.controller.close()
        super().close()


def trajectory(joint, *points):
    """Return a trajectory of one joint: (time, position, velocity)..."""
    message = JointTrajectory(joint_names=[joint])
    for seconds, position, velocity in points:
        message.points.append(JointTrajectoryPoint(
            positions=[position], velocities=[velocity], time_from_start=Duration(
                sec=int(seconds), nanosec=round(1e9 * (seconds % 1.0)))))
    return message
