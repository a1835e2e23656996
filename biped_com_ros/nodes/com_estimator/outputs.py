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
"""What is known of the centre of mass at one instant; its transforms, at their own rate."""

from __future__ import annotations

import math
from typing import Any, Protocol

from biped_com_ros.core.com.kinematics import com_velocity_along_base, divergent_point
from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.footprint import footprint_pose
from biped_com_ros.core.geometry.pose import Array, Pose, Vector
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.leg_odometry import Stance
from biped_com_ros.ros.topics.base_sources import BaseSource
from biped_com_ros.ros.topics.tf import TransformBroadcaster
import numpy as np

Motion = tuple['Vector | None', 'Vector | None', str]


class FrameParameters(Protocol):
    """The parameters of the two outputs."""

    @property
    def base_source(self) -> str:
        """Where the base comes from: a base given by TF is not sent again."""

    @property
    def world_frame(self) -> str:
        """Frame of everything."""

    @property
    def com_frame(self) -> str:
        """TF frame at the centre of mass."""

    @property
    def footprint_frame(self) -> str:
        """TF frame on the ground between the feet."""

    @property
    def publish_base_tf(self) -> bool:
        """Whether the base and its footprint are sent."""

    @property
    def publish_link_tf(self) -> bool:
        """Whether a frame per link is sent."""

    @property
    def marker_density(self) -> float:
        """Density of the balls that show masses, kg/m3."""


class Instant:
    """
    What is known at one instant, in the world; what nobody asks for is not computed.

    Parameters
    ----------
    stamp_ns
        When.
    state
        The robot, with its base in the world.
    base
        Where that base comes from; not to be asked for another instant meanwhile.
    gravity
        m/s^2.

    """

    __slots__ = ('stamp_ns', 'state', 'base', '_gravity', '_xyz', '_motion')

    def __init__(self, stamp_ns: int, state: RobotState, base: BaseSource,
                 gravity: float) -> None:
        self.stamp_ns, self.state, self.base = stamp_ns, state, base
        self._gravity = gravity
        self._xyz: Vector | None = None
        self._motion: Motion | None = None

    @property
    def xyz(self) -> Vector:
        """Centre of mass, m."""
        if self._xyz is None:
            state = self.state
            self._xyz = state.base.place(*state.com_in_base.tolist())
        return self._xyz

    @property
    def com(self) -> Array:
        """Centre of mass (3,), m."""
        return np.array(self.xyz)

    @property
    def stance(self) -> Stance:
        """Return the robot's soles."""
        return self.base.stance

    @property
    def motion(self) -> Motion:
        """Velocity, m/s, and divergent component, m, or None; why there is no DCM."""
        if self._motion is None:
            self._motion = self._find_motion()
        return self._motion

    def _find_motion(self) -> Motion:
        state = self.state
        twist = self.base.twist(state)
        if twist is None:
            return None, None, ''
        velocity = state.base.turn(*com_velocity_along_base(state, twist))
        try:
            return velocity, divergent_point(
                self.xyz, velocity, self.stance.ground_height, self._gravity), ''
        except InputError as error:
            return velocity, None, str(error)


class Pace:
    """Lets through at most so many instants per second, by their stamps."""

    def __init__(self, rate: float) -> None:
        self.set_rate(rate)

    def set_rate(self, rate: float) -> None:
        """Change the rate, Hz; 0 lets nothing through."""
        self._period_ns = nanoseconds(1.0 / rate) if rate > 0.0 else 0
        #: The last instant let through, and the next one; never without a rate.
        self._last_ns, self._next_ns = (0.0, 0.0) if rate > 0.0 else (-math.inf, math.inf)

    def is_due(self, ns: int) -> bool:
        """Tell whether this instant is let through."""
        # An instant before the last one is due as well: the clock was set back.
        if self._last_ns <= ns < self._next_ns:
            return False
        self._last_ns, self._next_ns = ns, ns + self._period_ns
        return True


class FrameOutput:
    """
    Sends world -> root link, base -> footprint, world -> com and world -> <link>_com.

    The root link and not the base, since where they differ robot_state_publisher sends
    root -> base, and a frame has but one parent.
    """

    def __init__(self, node: Any, model: RobotModel, params: FrameParameters) -> None:
        base, root, world = model.config.base_link, model.frame_names[0], params.world_frame
        self._sends_footprint = params.publish_base_tf
        self._sends_base = params.publish_base_tf and params.base_source != 'tf'
        self._sends_links = params.publish_link_tf
        pairs = [(world, root)] * self._sends_base
        pairs += [(base, params.footprint_frame)] * self._sends_footprint
        self._com_row = len(pairs)
        pairs.append((world, params.com_frame))
        if self._sends_links:
            pairs += [(world, f'{link}_com') for link in model.link_names]
        self.bundle = TransformBroadcaster(node, later=True).bundle(pairs)
        self._pose_base_link = Pose.from_rpy(model.config.base_rpy, np.zeros(3)).inverse()
        # Both are fixed to the root, so that any positions of the joints will do.
        self._pose_base_root = model.state(model.positions({})).pose_in_base(root)

    def publish(self, instant: Instant) -> None:
        """Send all transforms of an instant, if anybody listens."""
        bundle, row = self.bundle, self._com_row
        if not bundle.has_subscribers:
            return
        if self._sends_footprint:
            self._set_base(instant.state.base, instant.stance)
        bundle.positions[row] = instant.com
        if self._sends_links:
            bundle.positions[row + 1:] = instant.state.link_coms_in_world
        bundle.publish(instant.stamp_ns)

    def _set_base(self, base: Pose, stance: Stance) -> None:
        footprint = (base @ self._pose_base_link).inverse() @ footprint_pose(
            base, stance.soles_in_world, stance.in_contact)
        poses = (base @ self._pose_base_root, footprint) if self._sends_base else (footprint,)
        for i, pose in enumerate(poses):
            self.bundle.positions[i], self.bundle.quaternions[i] = pose.position, pose.quaternion
