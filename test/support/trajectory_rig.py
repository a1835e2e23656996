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

from __future__ import annotations

from builtin_interfaces.msg import Duration
import numpy as np
from sensor_msgs.msg import JointState
from support.trajectory_controller import TrajectoryController
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

ELBOW, HIP = 'arm_left_4_joint', 'leg_left_3_joint'


class TrajectoryRig:
    """
    The rig, and a controller by which its joints move.

    Parameters
    ----------
    compliance
        By which joints hang below their commands per effort that is missing, rad/(N m).
    publishes_state
        Of the controller: as it does, if control_msgs is installed.
    interfaces
        What the controller commands.

    """

    def __init__(self, make, talos, compliance=0.0, publishes_state=True, interfaces=('effort',),
                 **values):
        self.joints = list(talos.actuated_joint_names)[::-1]  # any order will do
        self.index, self.is_blocked = talos.joint_index(self.joints), False
        self.rig = make(
            remap='~/joint_trajectory:=joint_trajectory_controller/joint_trajectory',
            trajectory_rate=100.0, command_joints=list(talos.actuated_joint_names), **values)
        commanded = self.rig.positions[self.index]
        self.compliance, self.load = compliance, np.zeros(len(self.joints))
        if compliance:
            self.load = self.rig.expected().efforts[self.index]
            self._move(commanded, 0.0)
        self.rig.play(0.5)
        self.controller = TrajectoryController(
            self.rig.executor, self.rig.namespace, self.joints, commanded, self._move,
            publishes_state=publishes_state, interfaces=interfaces,
            measured=lambda: self.rig.positions[self.index])
        self.controller.switch(on=True)

    def _move(self, positions, efforts):
        if not self.is_blocked:
            self.rig.positions[self.index] = positions - self.compliance * (self.load - efforts)
        if self.compliance:
            self.rig.lean(0.0)  # the IMU is above joints that move

    def begin(self):
        """Wait until efforts balance gravity, and motions are accepted."""
        self.rig.play(1.5)  # until the controller is recognised
        self.rig.until(lambda: self.rig.is_balanced() and self.controller.received, 'efforts')
        self.publishers = {
            kind: self.rig.peer.create_publisher(kind, f'gravity_compensation/{topic}', 10)
            for kind, topic in ((JointState, 'reference'), (JointTrajectory,
                                                            'reference_trajectory'))}
        self.rig.until(lambda: all(p.get_subscription_count() for p in
                                   self.publishers.values()), 'subscribers')
        return self

    def send(self, message):
        self.publishers[type(message)].publish(message)

    def at(self, joint):
        return self.controller.desired[self.joints.index(joint)]

    def column(self, joint, since=0.0):
        """Return times and commanded positions of a joint."""
        column = self.joints.index(joint)
        rows = [(t, q[column]) for t, q, _ in self.controller.history if t >= since]
        return np.array(rows).T


def trajectory(joint, *points, stamp=None):
    """Return a trajectory of one joint: (time, position, velocity)..."""
    message = JointTrajectory(joint_names=[joint])
    for seconds, position, velocity in points:
        message.points.append(JointTrajectoryPoint(
            positions=[position], velocities=[velocity], time_from_start=Duration(
                sec=int(seconds), nanosec=round(1e9 * (seconds % 1.0)))))
    return message
