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
"""Sends trajectories to a joint trajectory controller, and lift requests to a hoist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.poses.transfer import HoistMove, travel
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NEAR = 0.1
"""A path begins at the last command if all joints are this near to it, rad."""

_SLOW_SPEED = 0.03
"""Speed of the last move of each joint into a pose, rad/s."""
SLOW_RAMP = 1.0
"""Least time to brake at the end of a slow path, s: inertia must not overcome friction."""


class PoseDriver:
    """
    The `RobotDriver` of a calibration session.

    Parameters
    ----------
    node
        The rclpy node.
    model
        The robot.
    topic
        Of a joint trajectory controller.
    joints
        Names of the joints that it controls.
    hoist
        Name of a std_srvs/SetBool that lifts the robot (true) and lowers it; '' for none.
    speed, ramp
        See :func:`travel`.

    """

    def __init__(self, node: Node, model: RobotModel, topic: str, joints: Sequence[str], *,
                 hoist: str, speed: float, ramp: float) -> None:
        self._joints = tuple(joints)
        self.set_speeds(speed, ramp)
        self._index = model.joint_index(self._joints)
        self._offsets = model.joint_offsets[self._index]
        self._trajectory = node.create_publisher(JointTrajectory, topic, 10)
        self._hoist = node.create_client(SetBool, hoist) if hoist else None
        self._request: Any = None  # the future of the hoist's response
        self._commanded: Array | None = None

    def set_speeds(self, speed: float, ramp: float) -> None:
        """Use other speeds from the next path on."""
        self._speed, self._ramp = speed, ramp

    @property
    def has_hoist(self) -> bool:
        """Whether a service lifts and lowers the robot."""
        return self._hoist is not None

    @property
    def problem(self) -> str:
        """Why trajectories would not be executed, or ''."""
        if self._trajectory.get_subscription_count():
            return ''
        return (f"nothing subscribes to '{self._trajectory.topic_name}': start a joint trajectory "
                'controller, or set the parameter move to false')

    def send(self, positions: Array, path: Array, slowly: bool = False) -> float:
        """
        Send a path; the trajectory begins at the last command where the joints are near to it.

        Parameters
        ----------
        positions
            Measured, of all joints, (n,), rad.
        path
            Positions to go through, (steps, n), rad.
        slowly
            Whether to go so slowly that it is friction, not inertia, with which the joints come
            to rest.

        Returns
        -------
        float
            Its duration, s.

        """
        start = positions[self._index]
        if self._commanded is not None and np.abs(self._commanded - start).max() < NEAR:
            # Joints deflect under their load: to begin where they are would be a jerk.
            start = self._commanded
        speed, ramp = self._speed, self._ramp
        if slowly:
            speed, ramp = min(_SLOW_SPEED, speed), max(SLOW_RAMP, ramp)
        way = travel(start, path[:, self._index], speed, ramp)
        message = JointTrajectory(joint_names=list(self._joints))
        for time, q, v in zip(way.times, way.positions, way.velocities):
            message.points.append(JointTrajectoryPoint(
                # A drive controls what its encoder measures.
                positions=(q + self._offsets).tolist(), velocities=v.tolist(),
                time_from_start=Duration(seconds=float(time)).to_msg()))
        self._trajectory.publish(message)
        self._commanded = way.positions[-1]
        return way.duration

    def request_hoist(self, move: HoistMove) -> str:
        """Request a move once, until `end_hoist`; return why it is not done, or ''."""
        if self._hoist is None:
            return ''
        if self._request is None:
            if not self._hoist.service_is_ready():
                return (f"the service '{self._hoist.srv_name}' is not available: {move.value} the "
                        'robot by hand, or start the node that provides it')
            self._request = self._hoist.call_async(SetBool.Request(data=move is HoistMove.LIFT))
        if not self._request.done():
            return ''
        response = self._request.result()
        return '' if response.success else f'the hoist failed: {response.message}'

    def end_hoist(self) -> None:
        """Consider the requested move done."""
        self._request = None
