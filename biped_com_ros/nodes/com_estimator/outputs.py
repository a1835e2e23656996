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
"""What `com_estimator` publishes with every joint state, and its transforms at their own rate."""

from __future__ import annotations

from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.geometry.pose import footprint_pose, Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.ros.topics.outputs import (
    point_publisher, pose_array_publisher, TemplatePublisher, vector_publisher)
from biped_com_ros.ros.topics.tf import TransformOutput
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.node import Node
from std_msgs.msg import Header


class ComOutputs:
    """Publishes the CoM, its velocity, the DCM and the links' CoMs."""

    def __init__(self, node: Node, model: RobotModel, world_frame: str) -> None:
        self._com = point_publisher(node, '~/com', world_frame)
        self._velocity = vector_publisher(node, '~/com_velocity', world_frame)
        self._dcm = point_publisher(node, '~/dcm', world_frame)
        self._links = pose_array_publisher(
            node, '~/link_coms', world_frame, len(model.link_names))

    def publish(self, estimate: ComEstimate) -> None:
        """Publish an estimate; messages without subscribers are not built."""
        stamp_ns = estimate.located.stamp_ns
        if self._com.has_subscribers:
            self._com.fields['point'][...] = estimate.position
            self._com.publish(stamp_ns)
        if self._links.has_subscribers:
            self._links.fields['position'][...] = estimate.located.state.link_coms_in_world
            self._links.publish(stamp_ns)
        if self._velocity.has_subscribers and (velocity := estimate.velocity) is not None:
            self._velocity.fields['vector'][...] = velocity
            self._velocity.publish(stamp_ns)
        if self._dcm.has_subscribers and (dcm := estimate.dcm) is not None:
            self._dcm.fields['point'][...] = dcm
            self._dcm.publish(stamp_ns)


class BaseOutput:
    """
    Publishes pose and twist of ``base_link`` with their covariances, of the base filter.

    As ``nav_msgs/Odometry`` has it: the pose and its covariance along the axes of the world, the
    twist and its covariance along those of ``base_link``.
    """

    def __init__(self, node: Node, model: RobotModel, params: ComEstimatorParameters) -> None:
        prototype = Odometry(header=Header(frame_id=params.world_frame),
                             child_frame_id=model.config.base_link)
        prototype.pose.pose.orientation.w = 1.0
        self._out = TemplatePublisher(node, '~/odometry', prototype, {
            'position': 'pose.pose.position', 'orientation': 'pose.pose.orientation',
            'pose_covariance': 'pose.covariance', 'linear': 'twist.twist.linear',
            'angular': 'twist.twist.angular', 'twist_covariance': 'twist.covariance'})
        self._R_link_base = Pose.from_rpy(model.config.base_rpy, np.zeros(3)).rotation

    def publish(self, located: LocatedState) -> None:
        """Publish the base of an instant."""
        filtered, twist, fields = located.filtered, located.twist, self._out.fields
        if not self._out.has_subscribers or filtered is None or twist is None:
            return
        R_link_base = self._R_link_base
        link = Pose(filtered.pose.rotation.dot(R_link_base.T), filtered.pose.position)
        turn = np.kron(np.eye(2), R_link_base)
        fields['position'][...], fields['orientation'][...] = link.position, link.quaternion
        fields['pose_covariance'][...] = filtered.pose_covariance.reshape(-1)
        fields['linear'][...] = R_link_base.dot(twist.linear)
        fields['angular'][...] = R_link_base.dot(twist.angular)
        fields['twist_covariance'][...] = turn.dot(filtered.twist_covariance).dot(
            turn.T).reshape(-1)
        self._out.publish(located.stamp_ns)


class FrameOutput:
    """
    Broadcasts world -> root link, base -> footprint, world -> com and world -> <link>_com.

    On request also root link -> links of feet and hands, for systems without
    robot_state_publisher: what is published in their frames can be shown then.

    The root link and not the base, since where they differ robot_state_publisher broadcasts
    root -> base, and a frame has only one parent.
    """

    def __init__(self, node: Node, model: RobotModel, params: ComEstimatorParameters) -> None:
        base, root, world = model.config.base_link, model.frame_names[0], params.world_frame
        self._sends_footprint = params.publish_base_tf
        self._sends_base = params.publish_base_tf and params.base.source != 'tf'
        self._sends_links = params.publish_link_tf
        pairs = [(world, root)] * self._sends_base
        pairs += [(base, params.footprint_frame)] * self._sends_footprint
        self._com_row = len(pairs)
        pairs.append((world, params.com_frame))
        if self._sends_links:
            pairs += [(world, f'{link}_com') for link in model.link_names]
        self._contact_row, contact_links = len(pairs), _contact_links(model, params)
        pairs += [(root, link) for link in contact_links]
        self._contact_frames = model.frames(contact_links) if contact_links else None
        self._transforms = TransformOutput(node, pairs)
        self._pose_base_link = Pose.from_rpy(model.config.base_rpy, np.zeros(3)).inverse()
        # Both are fixed to the root, so any joint positions will do.
        self._pose_base_root = model.state(model.positions({})).pose_in_base(root)
        self._pose_root_base = self._pose_base_root.inverse()

    def publish(self, estimate: ComEstimate) -> None:
        """Broadcast all transforms of an instant."""
        transforms, row, located = self._transforms, self._com_row, estimate.located
        if not transforms.has_subscribers:
            return
        if self._sends_footprint:
            self._set_base(located)
        transforms.positions[row] = estimate.position
        if self._sends_links:
            transforms.positions[row + 1:self._contact_row] = located.state.link_coms_in_world
        if self._contact_frames is not None:
            placements = located.state.placements_in_base(self._contact_frames)
            for row, placement in enumerate(placements, start=self._contact_row):
                self._set(row, self._pose_root_base @ Pose(placement[:3].T, placement[3]))
        transforms.publish(located.stamp_ns)

    def _set_base(self, located: LocatedState) -> None:
        base, stance = located.state.base, located.stance
        footprint = (base @ self._pose_base_link).inverse() @ footprint_pose(
            base, stance.soles_in_world, stance.in_contact)
        poses = (base @ self._pose_base_root, footprint) if self._sends_base else (footprint,)
        for row, pose in enumerate(poses):
            self._set(row, pose)

    def _set(self, row: int, pose: Pose) -> None:
        self._transforms.positions[row] = pose.position
        self._transforms.quaternions[row] = pose.quaternion


def _contact_links(model: RobotModel, params: ComEstimatorParameters) -> list[str]:
    """Return the links whose frames are broadcast: those of feet and hands, none by default."""
    if not params.publish_contact_tf:
        return []
    config, root = model.config, model.frame_names[0]
    links = [foot.sole for foot in config.feet.values()]
    links += [hand.frame for hand in config.hands.values()]
    return [link for link in dict.fromkeys(links) if link != root]
