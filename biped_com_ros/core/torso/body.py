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
"""The tendon torso as a part of a robot: its virtual joints, its IMUs, its load."""

from __future__ import annotations

from cmath import phase
from collections.abc import Sequence
import math

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about
from biped_com_ros.core.geometry.wrench import sum_wrenches
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.torso.arc import Arc, sinc, Vector, vector_of, wrench_of
from biped_com_ros.core.torso.constant_curvature import Backbone, ELONGATION, shape_from_rotation
from biped_com_ros.core.torso.orientation import ImuPair
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics, Weight
import numpy as np

IDENTITY = Pose.identity()


class TorsoBody:
    """
    The backbone in a robot: virtual joints, poses and load.

    Its six virtual joints are x, y, z and then roll, pitch, yaw or yaw, pitch, roll, without
    offsets between them. Zero of the z joint is the base of the backbone if the length of the
    backbone is within the limits of the joint, otherwise it is the straight tip.

    Parameters
    ----------
    model
        A robot with a torso.

    Attributes
    ----------
    statics, max_bend
        Of the backbone; largest bend in rad.
    mass
        Of the upper body: all links above the backbone, kg.
    lower_to_base
        Pose of the base of the backbone in link `lower`.
    imus
        The IMUs below and above the backbone, see :meth:`use_imus`.

    Raises
    ------
    ConfigurationError
        If the robot has no torso, or its values are not valid.
    RobotDescriptionError
        If the virtual joints are not as described above.

    """

    def __init__(self, model: RobotModel) -> None:
        torso = model.config.required_torso
        self.model, self.config = model, torso
        self.statics = TorsoStatics(Backbone.from_config(torso), Stiffness.from_config(torso))
        self.max_bend = math.radians(torso.max_bend_deg)
        self.joint_names = torso.joints
        self._find_joints()
        self._find_upper_body()

    @property
    def backbone(self) -> Backbone:
        """Geometry of the backbone."""
        return self.statics.backbone

    # -- virtual joints

    def joint_positions(self, shape: Array) -> Array:
        """Return the positions (6,) of the joints x, y, z, roll, pitch, yaw in a shape (4,)."""
        return np.array(self.positions(self.backbone.arc_of(shape)))

    def positions(self, arc: Arc) -> tuple[float, ...]:
        """Return the positions of the joints x, y, z, roll, pitch, yaw, m and rad."""
        # Axes of :meth:`.Arc.rotate` and its inverse: the tip's z, then its x, or the base's.
        bend, turn = arc.bend, arc.turn
        if self._is_yaw_first:
            last = arc.sinc * bend * turn.conjugate()
            yaw = phase(turn - arc.versine * (bend.conjugate() * turn).real * bend)
        else:
            last = arc.sinc * bend
            yaw = -phase((1.0 - arc.versine * bend.real * bend) * turn.conjugate())
        across = arc.length * arc.versine * bend
        return (across.real, across.imag, arc.length * arc.sinc + self._z_offset,
                math.atan2(-last.imag, arc.cos),
                math.atan2(last.real, math.hypot(last.imag, arc.cos)), yaw)

    def velocities(self, arc: Arc, rates: tuple[complex, float],
                   positions: tuple[float, ...]) -> tuple[float, ...]:
        """
        Return the velocities of the virtual joints, m/s and rad/s.

        Parameters
        ----------
        arc, rates
            The backbone, and the rates of its bend and torsion, rad/s.
        positions
            :meth:`positions` of `arc`.

        """
        velocity, vz, turning, wz = arc.twist(*rates)
        vx, vy, wx, wy = velocity.real, velocity.imag, turning.real, turning.imag
        _, _, _, roll, pitch, yaw = positions
        sine, cosine = math.sin(pitch), math.cos(pitch)
        # Angular velocity in the frame after the first rotation; the second one is about its y.
        if self._is_yaw_first:
            c, s = math.cos(yaw), math.sin(yaw)
            roll_rate, pitch_rate = (c * wx + s * wy) / cosine, c * wy - s * wx
            return vx, vy, vz, roll_rate, pitch_rate, wz + roll_rate * sine
        c, s = math.cos(roll), math.sin(roll)
        yaw_rate, pitch_rate = (c * wz - s * wy) / cosine, c * wy + s * wz
        return vx, vy, vz, wx - yaw_rate * sine, pitch_rate, yaw_rate

    def shape(self, joint_positions: Array) -> Array:
        """Convert positions (6,) of the virtual joints to bend, torsion and elongation, (4,)."""
        x, y, z = map(rotation_about, range(3), joint_positions[3:].tolist())
        shape = shape_from_rotation(z @ y @ x if self._is_yaw_first else x @ y @ z)
        bend = math.hypot(shape[0], shape[1])
        chord = math.hypot(*joint_positions[:2].tolist(),
                           float(joint_positions[2]) - self._z_offset)
        shape[ELONGATION] = chord / sinc(0.5 * bend) - self.backbone.length
        return shape

    # -- IMUs and load

    def use_imus(self, lower: str, upper: str) -> None:
        """
        Set :attr:`imus` by the URDF links that they are fixed to.

        Raises
        ------
        ConfigurationError
            If they are not fixed to the two ends of the backbone.

        """
        model = self.model
        frames = model.frames((self.config.lower, lower, upper))
        if frames.joints[1] != frames.joints[0] or frames.joints[2] != self._tip.joints[0]:
            raise ConfigurationError(
                f"IMU links '{lower}' and '{upper}' must be fixed to the torso's two ends, "
                f"'{self.config.lower}' and '{self.config.upper}'")
        poses = frames.poses_in_joint()
        self.imus = ImuPair((poses[0] @ self.lower_to_base).rotation.T @ poses[1].rotation,
                            poses[2].rotation)

    def upper_body(self, state: RobotState, gravity_in_base: Vector,
                   hand_wrenches: Array | None = None) -> tuple[Weight, float]:
        """
        Return the load on the tip, and the inertia across the backbone about it, kg m^2.

        The inertia is that of point masses, for a bend with its motion of the tip: a rotation
        about half of the length of the backbone below it.

        Parameters
        ----------
        state
            The robot's posture.
        gravity_in_base
            Acceleration of gravity, m/s^2.
        hand_wrenches
            Wrenches (h, 6) of the environment on the hands of :meth:`use_hands`, force first,
            each in its frame and about its origin.

        """
        tip, coms = state.placements_in_base(self._tip)[0], state.link_coms_in_base
        axes, origin, mass = tip[:3], tip[3], self.mass
        # First and second moments of the masses about the base, then about the tip.
        first, second = self._masses.dot(coms), coms.T.dot(self._mass_column * coms)
        com = vector_of(axes.dot(first / mass - origin))
        up, height, half = axes[2], com[1], 0.5 * self.backbone.length
        below = float(up.dot(origin))
        along = float(up.dot(second).dot(up)) - mass * below * (below + 2.0 * height)
        total = float(second.trace() - origin.dot(2.0 * first - mass * origin))
        # Of (z + l / 2)^2 + (x^2 + y^2) / 2.
        inertia = 0.5 * (along + total) + mass * half * (2.0 * height + half)
        contact = (None if hand_wrenches is None
                   else wrench_of(self._contact(state, tip, hand_wrenches)))
        return Weight(mass, com, gravity_in_base, contact), inertia

    def use_hands(self, frames: Sequence[str]) -> None:
        """
        Set the URDF links of the hands whose wrenches are given to :meth:`upper_body`.

        Raises
        ------
        ConfigurationError
            If one of them is not part of the upper body.

        """
        hands = self.model.frames(tuple(frames))
        for name, joint in zip(frames, hands.joints.tolist()):
            if not self._stands_on_tip(joint):
                raise ConfigurationError(
                    f"hand frame '{name}' is not above '{self.config.upper}', the upper end "
                    'of the torso')
        self._hands = hands

    def _stands_on_tip(self, joint: int) -> bool:
        tip = int(self._tip.joints[0])
        while joint > tip:
            joint = int(self.model.pin_model.parents[joint])
        return joint == tip

    def _contact(self, state: RobotState, tip: Array, wrenches: Array) -> Array:
        """Return the sum (6,) of the hands' wrenches about the tip, along its axes."""
        total = sum_wrenches(wrenches.tolist(), state.placements_in_base(self._hands).tolist(),
                             tip[3].tolist())
        R_tip_base = tip[:3]
        return np.reshape(total, (2, 3)).dot(R_tip_base.T).ravel()

    def _find_joints(self) -> None:
        model, names = self.model.pin_model, self.config.joints
        ids = [model.getJointId(name) for name in names]
        first = ids[0]
        orders = [first + i for i in range(6)], [first, first + 1, first + 2, first + 5,
                                                 first + 4, first + 3]
        is_chain = all(int(model.parents[i]) == i - 1 for i in range(first + 1, first + 6))
        if ids not in orders or not is_chain:
            raise RobotDescriptionError(
                f'the torso joints {", ".join(names)} must follow one another in the URDF, as x, '
                'y, z, roll, pitch, yaw or x, y, z, yaw, pitch, roll')
        self._is_yaw_first = ids == orders[1]
        self._tip = FrameSet(('tip',), [first + 5], [IDENTITY])
        index = model.joints[ids[2]].idx_q
        low, high = model.lowerPositionLimit[index], model.upperPositionLimit[index]
        length = self.backbone.length
        self._z_offset = 0.0 if low <= length <= high else -length
        lower = self.model.frames((self.config.lower,)).poses_in_joint()[0]
        start = model.jointPlacements[first]
        foot = Pose(start.rotation.copy(), start.translation.copy()) @ Pose(
            np.eye(3), np.array((0.0, 0.0, self._z_offset)))
        self.lower_to_base = lower.inverse() @ foot
        self.imus = ImuPair(np.eye(3), np.eye(3))

    def use_inertials(self) -> None:
        """Compute again what follows from masses, after the model's have changed."""
        self._find_upper_body()

    def _find_upper_body(self) -> None:
        links, masses = self.model.subtree_links(self.config.upper), self.model.link_masses
        # Of all links, zero for those below: multiplying is faster than selecting.
        self._masses = np.zeros(len(masses))
        self._masses[links] = masses[links]
        self._mass_column = self._masses[:, np.newaxis].copy()
        self.mass = float(self._masses.sum())
