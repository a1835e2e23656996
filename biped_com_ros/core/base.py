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
of that moment, whatever the feet have slipped: the base never jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.footprint import footprint_position
from biped_com_ros.core.pose import Array, cross, Pose
from biped_com_ros.core.robot import RobotModel, RobotState
import numpy as np

@dataclass(frozen=True)
class Stance:
    """
    Which soles carry the robot, and where they are.

    Attributes
    ----------
    soles_in_world
        Origins of all soles, shape (F, 3), m, in the order of ``config.feet``.
    in_contact
        Which of them are on the ground.

    """

    soles_in_world: Array
    in_contact: tuple[bool, ...]

    @property
    def ground_height(self) -> float:
        """Height of the lowest sole in contact (of all soles, if none is), m."""
        heights: list[float] = self.soles_in_world[:, 2].tolist()
        return min((z for z, touches in zip(heights, self.in_contact) if touches),
                   default=min(heights))


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
        heights = soles[:, 2].tolist()
        floor = min(heights)
        before = self._in_contact or (False,) * len(heights)
        self._in_contact = tuple(
            height - floor <= (2.0 * self.tolerance if stood else self.tolerance)
            for height, stood in zip(heights, before))
        return self._in_contact


class _ImuMount:
    """How the IMU is turned against the base, and how fast it turns against it."""

    def __init__(self, model: RobotModel, imu_frame: str) -> None:
        self._frame = model.frames((imu_frame,))
        # On most robots the joints have no say in it.
        self._R_imu_base: Array | None = None
        if self._frame.are_fixed_to_base:
            at_rest = model.state(np.zeros(len(model.joint_names)))
            self._R_imu_base = self._rotation(at_rest)

    def R_imu_base(self, state: RobotState) -> Array:
        """Return the rotation (3, 3) that takes coordinates in the base to the IMU."""
        return self._rotation(state) if self._R_imu_base is None else self._R_imu_base

    def angular_velocity_of_base(self, state: RobotState, gyro: Array) -> Array:
        """Return the base's angular velocity along its own axes: what the joints add is gone."""
        in_base: Array = gyro.dot(self.R_imu_base(state))
        if self._R_imu_base is None:
            in_base -= state.twists_in_base(self._frame)[0, 1]
        return in_base

    def _rotation(self, state: RobotState) -> Array:
        return state.placements_in_base(self._frame)[0, :3].copy()


class StanceBase:
    """
    Leg odometry: the pose of the base from an IMU and the soles on the ground.

    The first estimate puts ``base_footprint`` (the mean of the soles in contact) at the origin of
    the world, z = 0; the heading is the IMU's. While no sole is in contact the position is held.

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
    is_held
        Whether no sole is in contact, so that the position is the last one known.

    """

    def __init__(self, model: RobotModel, imu_frame: str,
                 guess: ContactGuess | None = None) -> None:
        self._soles = model.soles
        self._mount = _ImuMount(model, imu_frame)
        self._guess = guess or ContactGuess()
        self.reset()

    def reset(self) -> None:
        """Forget where the robot is; the next update starts at the origin again."""
        self._position: Array | None = None
        self._anchors = np.zeros((len(self._soles.names), 3))
        self._weights = np.zeros(len(self._anchors))
        self.is_held = True
        self.stance = Stance(self._anchors, (False,) * len(self._anchors))

    def update(self, state: RobotState, R_world_imu: Array,
               in_contact: Sequence[bool] | None = None) -> Pose:
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

        """
        R_world_base = R_world_imu.dot(self._mount.R_imu_base(state))
        soles_from_base = state.positions_in_base(self._soles).dot(R_world_base.T)
        contacts = self._contacts(soles_from_base, in_contact)
        if contacts != self.stance.in_contact or self._position is None:
            self._change_stance(soles_from_base, contacts)
        if not self.is_held:
            self._position = self._weights.dot(self._anchors - soles_from_base)
        assert self._position is not None
        soles_from_base += self._position
        self.stance = Stance(soles_from_base, contacts)
        return Pose(R_world_base, self._position)

    def twist_in_base(self, state: RobotState, angular_velocity_in_imu: Array) -> Array | None:
        """
        Return how the base moves, for the stance of the last :meth:`update`.

        Parameters
        ----------
        state
            The robot seen from its base, with joint velocities.
        angular_velocity_in_imu
            The gyroscope's reading, shape (3,), rad/s.

        Returns
        -------
        numpy.ndarray or None
            Shape (2, 3), along the axes of the base: velocity of the base's origin in the world,
            m/s, and angular velocity of the base, rad/s. None while the position is held: in the
            air, nothing tells the velocity.

        Notes
        -----
        The gyroscope feels the base and the joints between: ``omega = R_base_imu gyro -
        omega_base_imu``. A standing sole is at rest: ``0 = v + omega x p + p'``.

        """
        if self.is_held:
            return None
        angular = self._mount.angular_velocity_of_base(state, angular_velocity_in_imu)
        return _twist_above(state, self._weights, angular)

    def _contacts(self, soles: Array, told: Sequence[bool] | None) -> tuple[bool, ...]:
        if told is None:
            return self._guess.update(soles)
        if len(told) != len(self._anchors):
            raise InputError(
                f'contacts must be {len(self._anchors)} values, one per foot '
                f'({", ".join(self._soles.names)}), not {len(told)}')
        return tuple(told)

    def _change_stance(self, soles_from_base: Array, contacts: tuple[bool, ...]) -> None:
        """Continue from the last estimate, by the soles that stood since and still do."""
        if self._position is None:
            self._position = -footprint_position(soles_from_base, contacts)
        elif not self.is_held:
            stood = self.stance.in_contact
            stayed = tuple(before and now for before, now in zip(stood, contacts))
            weights = _weights(stayed if any(stayed) else stood)
            self._position = weights.dot(self.stance.soles_in_world - soles_from_base)
        self._anchors = soles_from_base + self._position
        self._weights = _weights(contacts)
        self.is_held = not any(contacts)


def twist_from_stance(state: RobotState, in_contact: Sequence[bool]) -> Array | None:
    """
    Return how the base moves when no gyroscope tells: the soles in contact neither move nor turn.

    Parameters
    ----------
    state
        The robot seen from its base, with joint velocities.
    in_contact
        Which soles stand flat.

    Returns
    -------
    numpy.ndarray or None
        As :meth:`StanceBase.twist_in_base`; None if no sole stands.

    """
    if not any(in_contact):
        return None
    weights = _weights(in_contact)
    angular = -weights.dot(state.twists_in_base(state.model.soles)[:, 1])
    return _twist_above(state, weights, angular)


def _weights(in_contact: Sequence[bool]) -> Array:
    weights: Array = np.array(in_contact, dtype=float)
    weights /= max(float(weights.sum()), 1.0)
    return weights


def _twist_above(state: RobotState, weights: Array, angular: Array) -> Array:
    """Twist (2, 3) of a base that turns at `angular` above soles at rest; all in the base."""
    soles = state.model.soles
    # The velocity is linear in the sole, so the mean of the soles stands for all of them.
    sole = weights.dot(state.positions_in_base(soles))
    linear = cross(sole, angular) - weights.dot(state.velocities_in_base(soles))
    return np.array((linear, angular))
