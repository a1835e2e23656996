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
"""The com_estimator as one writes it first: clear, complete, and no thought for speed."""

from __future__ import annotations

import math
import os
from typing import Any

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.urdf import link_inertials, load_urdf, parse_urdf
from geometry_msgs.msg import PointStamped, Pose, PoseArray, Vector3Stamped
import numpy as np
import pinocchio as pin
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

ROBOT = 'BENCHMARK_ROBOT'


class NaiveEstimator(Node):
    """
    JointState in; CoM, its velocity, DCM, link CoMs and markers out.

    Parameters
    ----------
    complete
        Whether it publishes velocity and DCM, too.

    """

    def __init__(self, complete: bool = True, **node_kwargs: Any) -> None:
        super().__init__('naive' if complete else 'naive_three', **node_kwargs)
        self.complete = complete
        config = load_robot_config(os.environ.get(ROBOT, 'talos'))
        urdf = load_urdf(config)
        self.model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        self.data = self.model.createData()
        self.links = [(self.model.getFrameId(link.link), link.com_in_link)
                      for link in link_inertials(parse_urdf(urdf))]
        self.create_subscription(
            JointState, 'joint_states', self.on_joints,
            QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT))
        self.com = self.create_publisher(PointStamped, '~/com', 10)
        self.com_velocity = self.create_publisher(Vector3Stamped, '~/com_velocity', 10)
        self.dcm = self.create_publisher(PointStamped, '~/dcm', 10)
        self.link_coms = self.create_publisher(PoseArray, '~/link_coms', 10)
        self.markers = self.create_publisher(MarkerArray, '~/markers', 10)

    def on_joints(self, message: JointState) -> None:
        """Compute and publish everything."""
        q = pin.neutral(self.model)
        v = np.zeros(self.model.nv)
        for name, position, velocity in zip(message.name, message.position, message.velocity):
            if self.model.existJointName(name):
                joint = self.model.joints[self.model.getJointId(name)]
                if joint.nq == 1:
                    q[joint.idx_q] = position
                else:
                    q[joint.idx_q:joint.idx_q + 2] = math.cos(position), math.sin(position)
                v[joint.idx_v] = velocity
        pin.forwardKinematics(self.model, self.data, q, v)
        pin.updateFramePlacements(self.model, self.data)
        com = pin.centerOfMass(self.model, self.data, q, v)
        velocity = self.data.vcom[0]
        self.publish_points(message.header.stamp, com, velocity)
        points = [self.data.oMf[frame].act(com) for frame, com in self.links]
        self.publish_links(message.header.stamp, points)
        self.publish_markers(message.header.stamp, com, points)

    def publish_points(self, stamp: Any, com: np.ndarray, velocity: np.ndarray) -> None:
        """Publish CoM, its velocity and the DCM."""
        out = PointStamped()
        out.header.stamp, out.header.frame_id = stamp, 'odom'
        out.point.x, out.point.y, out.point.z = com
        self.com.publish(out)
        if not self.complete:
            return
        vector = Vector3Stamped()
        vector.header = out.header
        vector.vector.x, vector.vector.y, vector.vector.z = velocity
        self.com_velocity.publish(vector)
        omega = math.sqrt(9.81 / (abs(com[2]) + 0.5))
        dcm = PointStamped()
        dcm.header = out.header
        dcm.point.x, dcm.point.y, dcm.point.z = com + velocity / omega
        self.dcm.publish(dcm)

    def publish_links(self, stamp: Any, points: list[np.ndarray]) -> None:
        """Publish the CoM of each link."""
        out = PoseArray()
        out.header.stamp, out.header.frame_id = stamp, 'odom'
        for point in points:
            pose = Pose()
            pose.position.x, pose.position.y, pose.position.z = point
            out.poses.append(pose)
        self.link_coms.publish(out)

    def publish_markers(self, stamp: Any, com: np.ndarray, points: list[np.ndarray]) -> None:
        """Publish a sphere per link and one for the whole."""
        out = MarkerArray()
        for index, point in enumerate([com, *points]):
            marker = Marker()
            marker.header.stamp, marker.header.frame_id = stamp, 'odom'
            marker.ns, marker.id, marker.type = 'com', index, Marker.SPHERE
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = point
            marker.scale.x = marker.scale.y = marker.scale.z = 0.03
            marker.color.r, marker.color.a = 1.0, 0.8
            out.markers.append(marker)
        self.markers.publish(out)
