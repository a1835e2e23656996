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
"""One immutable snapshot of a robot's kinematics."""

from __future__ import annotations

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.frames import FrameSet, RobotFrames
import numpy as np

_IDENTITY = Pose.identity()


class RobotState:
    """
    One instant of a robot: immutable, one kinematics pass, everything later reads from it.

    Made by :meth:`RobotModel.state`.

    Parameters
    ----------
    model
        The robot.
    q, v
        Pinocchio's configuration (nq,) and velocity (nv,) with the base frame as origin, at rest.
    com_in_base, com_velocity_in_base
        Centre of mass and its velocity relative to the base, shape (3,), m and m/s.
    joint_placements, joint_twists
        As :meth:`joints_of` returns them, of all joints.
    base
        Pose of the base in the world; identity until :meth:`in_world`.

    Attributes
    ----------
    model, q, v, com_in_base, com_velocity_in_base, base
        The same.

    """

    __slots__ = ('model', 'q', 'v', 'com_in_base', 'com_velocity_in_base', 'base',
                 '_placements', '_twists', '_points_in_base', '_points_in_world', '_stance',
                 '_soles', '_along_world')

    def __init__(self, model: RobotFrames, q: Array, v: Array, com_in_base: Array,
                 com_velocity_in_base: Array, joint_placements: Array, joint_twists: Array,
                 base: Pose = _IDENTITY) -> None:
        self.model, self.q, self.v, self.base = model, q, v, base
        self.com_in_base, self.com_velocity_in_base = com_in_base, com_velocity_in_base
        self._placements, self._twists = joint_placements, joint_twists
        self._points_in_base: Array | None
        self._points_in_world: Array | None
        self._stance: Array | None
        self._soles: Array | None
        #: An attitude of the IMU, and the result of `along_world` for it.
        self._along_world: tuple[Array, tuple[Array, Array]] | None
        self._points_in_base = self._points_in_world = self._stance = None
        self._soles = self._along_world = None

    def in_world(self, base: Pose, sole_placements: Array | None = None) -> RobotState:
        """
        Return the same state with the base at pose `base` in the world.

        Parameters
        ----------
        base
            The pose.
        sole_placements
            :attr:`sole_placements_in_world`, if they are known already.

        """
        state = RobotState(
            self.model, self.q, self.v, self.com_in_base, self.com_velocity_in_base,
            self._placements, self._twists, base)
        state._points_in_base, state._stance = self._points_in_base, self._stance
        state._soles = sole_placements
        return state

    @property
    def com_in_world(self) -> Array:
        """Centre of mass, shape (3,), m."""
        com: Array = self.base.rotation.dot(self.com_in_base)
        com += self.base.position
        return com

    @property
    def link_coms_in_base(self) -> Array:
        """Centre of mass of each link of ``model.link_names``, shape (L, 3), m."""
        coms = self._all_points_in_base()[self.model.com_part]
        coms.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
        return coms

    @property
    def link_coms_in_world(self) -> Array:
        """Centre of mass of each link, shape (L, 3), m."""
        return self._all_points_in_world()[:len(self.model.link_names)]

    @property
    def soles_in_world(self) -> Array:
        """Origin of each sole, in the order of ``config.feet``, shape (F, 3), m."""
        return self._all_points_in_world()[len(self.model.link_names):]

    @property
    def uprightness(self) -> float:
        """Least vertical part of the z axes of base and soles: 1 upright, 0 lying."""
        return min(self.base.rotation.item(2, 2),
                   float(self.sole_placements_in_world[:, 2, 2].min()))

    @property
    def sole_placements_in_world(self) -> Array:
        """Poses of the soles as of :meth:`placements_in_base`, but in the world, (F, 4, 3)."""
        if self._soles is None:
            # All rows in one product: half the time of a stack of products.
            self._soles = placed = self.placements_in_base(self.model.soles).reshape(
                -1, 3).dot(self.base.rotation.T).reshape(-1, 4, 3)
            placed[:, 3] += self.base.position
        return self._soles

    def _all_points_in_base(self) -> Array:
        if self._points_in_base is None:
            self._points_in_base = self.model.points.in_base(self._placements)
        return self._points_in_base

    def _all_points_in_world(self) -> Array:
        if self._points_in_world is None:
            points = self._all_points_in_base()
            # Homogeneous: one product takes two thirds of the time of one and a sum.
            points[:, 3] = 1.0
            points = self._points_in_world = points.dot(self.base.rows)
            points.setflags(False)
        return self._points_in_world

    def placements_in_base(self, frames: FrameSet) -> Array:
        """
        Return the poses of frames in the base.

        Those of ``model.stance_frames``, of which the soles are the first, are computed once; they
        cannot be written to.

        Returns
        -------
        numpy.ndarray
            Shape (F, 4, 3): rows 0-2 are ``R_base_frame`` transposed, row 3 the position, m.

        """
        model = self.model
        if frames is not model.stance_frames and frames is not model.soles:
            return self._place(frames)
        if self._stance is None:
            self._stance = self._place(model.stance_frames)
            self._stance.setflags(write=False)
        return self._stance if frames is model.stance_frames else (
            self._stance[:len(frames.joints)])

    def along_world(self, frames: FrameSet, R_world_imu: Array) -> tuple[Array, Array]:
        """
        Return the attitude of the base by that of an IMU, and frames along the world's axes.

        Several nodes that locate one robot need the same: for ``model.stance_frames`` and an
        attitude that cannot be written to, it is computed once. What is returned cannot be
        written to.

        Parameters
        ----------
        frames
            The last of them is the IMU's.
        R_world_imu
            Its orientation, shape (3, 3).

        Returns
        -------
        tuple of numpy.ndarray
            ``R_world_base``, shape (3, 3); and as :meth:`placements_in_base`, from the base's
            origin too, but along the axes of the world, shape (F, 4, 3).

        """
        is_usual, kept = frames is self.model.stance_frames, self._along_world
        if is_usual and kept is not None and kept[0] is R_world_imu:
            return kept[1]
        in_base = self.placements_in_base(frames)
        R_world_base = R_world_imu.dot(in_base[-1, :3])  # the rows are R_imu_base
        # All rows in one product: half the time of a stack of products.
        placed = in_base.reshape(-1, 3).dot(R_world_base.T).reshape(in_base.shape)
        R_world_base.setflags(write=False)
        placed.setflags(write=False)
        if is_usual and not R_world_imu.flags.writeable:
            self._along_world = R_world_imu, (R_world_base, placed)
        return R_world_base, placed

    def _place(self, frames: FrameSet) -> Array:
        return np.matmul(frames.placement_in_joint, self._placements.take(frames.joints, axis=0))

    def joints_of(self, frames: FrameSet) -> tuple[Array, Array]:
        """
        Return poses and twists of the joints that carry frames.

        Returns
        -------
        tuple of numpy.ndarray
            Shape (F, 4, 3): rows 0-2 are ``R_base_joint`` transposed, row 3 the position, m; and
            (F, 6): velocity relative to the base of the joint's origin, m/s, then the angular
            one, rad/s, both along the axes of the joint.

        """
        joints = frames.joints
        return self._placements.take(joints, 0), self._twists.take(joints, 0)

    def twists_in_base(self, frames: FrameSet, placements: Array | None = None) -> Array:
        """
        Return the velocities of frames relative to the base.

        Parameters
        ----------
        frames
            The frames.
        placements
            Their :meth:`placements_in_base`, if they are known already: half of the time.

        Returns
        -------
        numpy.ndarray
            Shape (F, 2, 3), along the axes of the base: row 0 the velocity of the frame's
            origin, m/s, row 1 the angular velocity, rad/s.

        """
        if placements is None:
            placements = self.placements_in_base(frames)
        in_frame = np.matmul(
            self._twists.take(frames.joints, axis=0)[:, np.newaxis], frames.twist_transfer)
        return np.matmul(in_frame.reshape(-1, 2, 3), placements[:, :3])

    def poses_in_base(self, frames: FrameSet) -> list[Pose]:
        """Return the poses of frames in the base; faster: :meth:`placements_in_base`."""
        return [Pose(row[:3].T, row[3]) for row in self.placements_in_base(frames)]

    def pose_in_base(self, frame: str) -> Pose:
        """Pose of one URDF link in the base; for loops, prefer :meth:`poses_in_base`."""
        return self.poses_in_base(self.model.frames((frame,)))[0]
