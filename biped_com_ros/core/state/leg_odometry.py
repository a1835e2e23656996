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
Where the base is: orientation from an IMU on any link, position from the soles on the ground.

The IMU gives ``R_world_imu``; with the joints that is ``R_world_base``. A sole that stands does
not move, so the base is where the legs put it: ``p = anchor - R_world_base p_base_sole``, averaged
over the soles in contact. When the contacts change, the anchors are taken anew from the estimate
of that moment, whatever the feet have slipped: the base never jumps. Where a change is told late,
what came since is gone through again, so that a foot that swung meanwhile has moved nothing.
A robot that hung in the air is put down where it was, its soles as high as they last stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.footprint import footprint_position
from biped_com_ros.core.geometry.pose import Array, combined, cross, Pose, Vector
from biped_com_ros.core.model.robot import RobotModel, RobotState, ROOT
import numpy as np

#: So many instants can be gone through again.
_REMEMBERED = 128


class Twist(NamedTuple):
    """
    How a base moves in the world, along the axes of the base.

    Attributes
    ----------
    linear
        Velocity of the base's origin, shape (3,), m/s.
    angular
        Angular velocity, shape (3,), rad/s.

    """

    linear: Array
    angular: Array


class Stance:
    """
    Which soles carry the robot, and where they are; not to be changed.

    Attributes
    ----------
    soles_in_world
        Origins of all soles, shape (F, 3), m, in the order of ``config.feet``.
    in_contact
        Which of them are on the ground.

    """

    __slots__ = ('soles_in_world', 'in_contact', '_ground_height')

    def __init__(self, soles_in_world: Array, in_contact: tuple[bool, ...]) -> None:
        self.soles_in_world, self.in_contact = soles_in_world, in_contact
        self._ground_height: float | None = None

    @property
    def ground_height(self) -> float:
        """Height of the lowest sole in contact (of all soles, if none is), m."""
        if self._ground_height is None:  # several outputs ask for it
            heights: list[float] = self.soles_in_world[:, 2].tolist()
            self._ground_height = min(
                [z for z, touches in zip(heights, self.in_contact) if touches] or heights)
        return self._ground_height

    @classmethod
    def on_lowest(cls, soles_in_world: Array, in_contact: tuple[bool, ...],
                  floor: float) -> Stance:
        """Return a stance whose lowest sole, at height `floor`, is in contact."""
        stance = cls(soles_in_world, in_contact)
        stance._ground_height = floor
        return stance


class ContactGuess:
    """
    Which soles stand, for robots that do not feel it: the lowest ones.

    Parameters
    ----------
    tolerance
        A sole less than this above the lowest one begins to stand, m; it ends to stand at twice
        as much, so that noise does not make it flutter.

    """

    def __init__(self, tolerance: float = 0.01) -> None:
        self.tolerance = tolerance
        self._in_contact: tuple[bool, ...] = ()

    def update(self, soles: Array) -> tuple[bool, ...]:
        """Return which of the soles (F, 3), in axes with z up, are in contact."""
        return self._update(soles[:, 2].tolist())[0]

    def stance(self, soles_in_world: Array) -> Stance:
        """Update, and return the whole stance."""
        return Stance.on_lowest(soles_in_world, *self._update(soles_in_world[:, 2].tolist()))

    def _update(self, heights: list[float]) -> tuple[tuple[bool, ...], float]:
        """Return which soles are in contact, and the height of the lowest one."""
        floor, tolerance = min(heights), self.tolerance
        if max(heights) <= floor + tolerance:  # mostly, and much faster told
            self._in_contact = (True,) * len(heights)
        else:
            limits = floor + tolerance, floor + 2.0 * tolerance
            before = self._in_contact or (False,) * len(heights)
            self._in_contact = tuple([
                height <= limits[stood] for height, stood in zip(heights, before)])
        return self._in_contact, floor


class StanceBase:
    """
    Leg odometry: the pose of the base from an IMU and the soles on the ground.

    The first estimate puts ``base_footprint`` (the mean of the soles in contact) at the origin of
    the world, z = 0; the heading is the IMU's. While no sole is in contact the position is held;
    whichever touches the ground then is as high as when it last stood.

    Parameters
    ----------
    model
        The robot.
    imu_frame
        URDF link that carries the IMU; need not be the base.
    guess
        Used when :meth:`update` is not told about contacts.

    Attributes
    ----------
    stance
        The soles after the last :meth:`update`.
    sole_placements
        The same as :attr:`RobotState.sole_placements_in_world`, shape (F, 4, 3).
    is_held
        Whether no sole is in contact, so that the position is the last one known.

    """

    def __init__(self, model: RobotModel, imu_frame: str,
                 guess: ContactGuess | None = None) -> None:
        self._feet = model.soles.names
        frames = model.soles + model.frames((imu_frame,))
        usual = model.stance_frames
        self._frames = usual if usual.names == frames.names else frames
        #: Mostly the IMU is on the base itself, and no joint moves it.
        self._imu_moves = bool(self._frames.joints[-1] != ROOT)
        self._moving_frames = self._frames if self._imu_moves else model.soles
        self._soles_in_joints = model.soles.placement_in_joint[:, 3, :3].tolist()
        self._guess = guess or ContactGuess()
        self.reset()

    def reset(self) -> None:
        """Forget where the robot is; the next update starts at the origin again."""
        self._position: Array | None = None
        count = len(self._feet)
        #: Share of each sole in carrying the robot, and where the mean of them stands.
        self._weights, self._anchor = np.zeros(count), np.zeros(3)
        #: How high each sole stood when it last did, m.
        self._heights = np.zeros(count)
        self.is_held = True
        self.sole_placements = np.zeros((count, 4, 3))
        self.stance = Stance(self.sole_placements[:, 3], (False,) * count)
        #: Time (ns), soles from the base, contacts, and the estimate before it.
        self._past: deque[tuple[int, Array, tuple[bool, ...], Any]] = deque(maxlen=_REMEMBERED)

    def continue_from(self, other: StanceBase) -> None:
        """Go on from another estimate, whose soles stay where they are."""
        self._position, self._anchor = other._position, other._anchor
        self._weights, self.is_held, self.stance = other._weights, other.is_held, other.stance
        self._heights = other._heights
        self.sole_placements = other.sole_placements
        self._past.clear()

    def update(self, state: RobotState, R_world_imu: Array,
               in_contact: Sequence[bool] | None = None, stamp_ns: int | None = None) -> Pose:
        """
        Return the pose of the base in the world.

        Parameters
        ----------
        state
            The robot seen from its base.
        R_world_imu
            Orientation of the IMU's link, shape (3, 3), z up.
        in_contact
            Which soles stand, in the order of ``config.feet``; guessed if left out.
        stamp_ns
            Time of the state, ns, for :meth:`revise`.

        """
        R_world_base, along_world = state.along_world(self._frames, R_world_imu)
        soles_from_base = along_world[:-1, 3]
        contacts = self._contacts(soles_from_base, in_contact)
        if stamp_ns is not None:
            self._remember(stamp_ns, soles_from_base, contacts)
        position = self._follow(soles_from_base, contacts)
        self.sole_placements = along_world[:-1].copy()
        soles = self.sole_placements[:, 3]
        soles += position
        self.stance = Stance(soles, contacts)
        return Pose(R_world_base, position)

    def revise(self, since_ns: int,
               contacts_at: Callable[[int], tuple[bool, ...] | None]) -> None:
        """
        Go again through the instants since a time, with contacts that were told late.

        Parameters
        ----------
        since_ns
            Time from which on the contacts were others, ns.
        contacts_at
            Returns which soles stood at a time (ns); None leaves what was assumed.

        """
        again = []
        while self._past and self._past[-1][0] >= since_ns:
            again.append(self._past.pop())
        if not again:
            return
        (self._position, self._anchor, self._weights, self._heights, self.is_held,
         self.stance) = again[-1][3]
        for stamp_ns, soles_from_base, assumed, _ in reversed(again):
            contacts = contacts_at(stamp_ns) or assumed
            self._remember(stamp_ns, soles_from_base, contacts)
            position = self._follow(soles_from_base, contacts)
            self.stance = Stance(soles_from_base + position, contacts)

    def _remember(self, stamp_ns: int, soles_from_base: Array,
                  contacts: tuple[bool, ...]) -> None:
        self._past.append((stamp_ns, soles_from_base, contacts, (
            self._position, self._anchor, self._weights, self._heights, self.is_held,
            self.stance)))

    def _follow(self, soles_from_base: Array, contacts: tuple[bool, ...]) -> Array:
        """Take the soles (F, 3) from the base, in axes of the world; return where the base is."""
        if contacts != self.stance.in_contact or self._position is None:
            self._change_stance(soles_from_base, contacts)
        if not self.is_held:
            self._position = self._anchor - self._weights.dot(soles_from_base)
        assert self._position is not None
        return self._position

    def twist(self, state: RobotState, angular_velocity_in_imu: Array) -> Twist | None:
        """
        Return how the base moves, by the stance of the last :meth:`update`.

        Parameters
        ----------
        state
            The same state as at the last :meth:`update`, with joint velocities.
        angular_velocity_in_imu
            The gyroscope's reading, shape (3,), rad/s.

        Returns
        -------
        Twist or None
            None while the position is held: in the air, nothing tells the velocity.

        Notes
        -----
        The gyroscope feels the base and the joints between: ``omega = R_base_imu gyro -
        omega_base_imu``. A standing sole is at rest: ``0 = v + omega x p + p'``.

        """
        if self.is_held:
            return None
        # In plain numbers, and only what counts: a third of the time of arrays.
        placements, twists = state.joints_of(self._moving_frames)
        joints, motions = placements.tolist(), twists.tolist()
        *soles, imu = state.placements_in_base(self._frames).tolist()
        wx, wy, wz = omega = combined(imu[:3], *angular_velocity_in_imu.tolist())
        if self._imu_moves:
            dx, dy, dz = combined(joints[-1][:3], *motions[-1][3:])
            wx, wy, wz = omega = wx - dx, wy - dy, wz - dz
        vx = vy = vz = 0.0
        for share, (_, _, _, (x, y, z)), joint, motion, point in zip(
                self._weights.tolist(), soles, joints, motions, self._soles_in_joints):
            if share:
                dx, dy, dz = _velocity(joint, motion, point)
                vx += share * (y * wz - z * wy - dx)
                vy += share * (z * wx - x * wz - dy)
                vz += share * (x * wy - y * wx - dz)
        return Twist(np.array((vx, vy, vz)), np.array(omega))

    def _contacts(self, soles: Array, told: Sequence[bool] | None) -> tuple[bool, ...]:
        if told is None:
            return self._guess.update(soles)
        if len(told) != len(self._feet):
            raise InputError(
                f'contacts must be {len(self._feet)} values, one per foot '
                f'({", ".join(self._feet)}), not {len(told)}')
        return tuple(told)

    def _change_stance(self, soles_from_base: Array, contacts: tuple[bool, ...]) -> None:
        """Continue from the last estimate, by the soles that stood since and still do."""
        if self._position is None:
            self._position = -footprint_position(soles_from_base, contacts)
        elif self.is_held:
            # In the air the posture may have changed, and nothing told how high it was.
            x, y, _ = self._position
            z = _weights(contacts).dot(self._heights - soles_from_base[:, 2])
            self._position = np.array((x, y, z))
        else:
            stood = self.stance.in_contact
            stayed = tuple(before and now for before, now in zip(stood, contacts))
            weights = _weights(stayed if any(stayed) else stood)
            self._position = weights.dot(self.stance.soles_in_world - soles_from_base)
            self._heights = np.where(stood, self.stance.soles_in_world[:, 2], self._heights)
        self._weights = _weights(contacts)
        self._anchor = self._weights.dot(soles_from_base) + self._position
        self.is_held = not any(contacts)


def _velocity(joint: Sequence[Sequence[float]], motion: Sequence[float],
              point: Sequence[float]) -> Vector:
    """Return the velocity in the base of a point of a joint, by what `joints_of` returns."""
    (u, v, w, p, q, r), (x, y, z) = motion, point
    return combined(joint[:3], u + q * z - r * y, v + r * x - p * z, w + p * y - q * x)


def twist_from_stance(state: RobotState, in_contact: Sequence[bool]) -> Twist | None:
    """
    Return how the base moves when no gyroscope tells: the soles in contact neither move nor turn.

    Parameters
    ----------
    state
        The robot with its joint velocities.
    in_contact
        Which soles stand flat, in the order of ``config.feet``.

    Returns
    -------
    Twist or None
        None if no sole stands.

    """
    if not any(in_contact):
        return None
    weights, soles = _weights(in_contact), state.model.soles
    placements = state.placements_in_base(soles)
    twists = state.twists_in_base(soles, placements)
    return _above(weights, placements[:, 3], twists[:, 0], -weights.dot(twists[:, 1]))


def _weights(in_contact: Sequence[bool]) -> Array:
    weights: Array = np.array(in_contact, dtype=float)
    weights /= max(float(weights.sum()), 1.0)
    return weights


def _above(weights: Array, soles: Array, velocities: Array, angular: Array) -> Twist:
    """Twist of a base that turns at `angular` above soles at rest; all seen from the base."""
    # The velocity is linear in the sole, so the mean of the soles stands for all of them.
    linear = cross(weights.dot(soles), angular)
    linear -= weights.dot(velocities)
    return Twist(linear, angular)
