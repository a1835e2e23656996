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
Wang, Zhu and Han's leg in closed form: forward and inverse kinematics, Jacobians, velocities.

From the base: hip yaw (z), hip roll (x), hip pitch, knee and ankle pitch (y), ankle roll (x). The
three axes of the hip meet in one point and the two of the ankle in another, so the vector between
these points alone gives ankle roll and knee, and the rest is orientation. Here shin and thigh may
differ in length and be offset forward, the axes may point either way, and sole and base may
have any offset: all of it is read from the robot's model.

Positions are those of the URDF in ROS axes (x forward), in the order of the chain from the base.
The paper counts from the foot in axes turned by 90 deg (its y is forward).

Corrections to the printed equations:

- (3): the third rows of the inverses of M_23 and M_56 and a sign in that of M_45;
- theta_2 and theta_3: quotients that are no angles; here from the cosine rule;
- theta_4, which depends on them; theta_5: from the components of a; singular at 90 deg;
- arctan of a quotient is an atan2 throughout;
- (7): ``(p x n)_z = -n_x p_y + n_y p_x``, and the last entry is a_z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about
from biped_com_ros.core.legs.limb import LEG_MOTORS, LegSolution, Limb
from biped_com_ros.core.model.pinocchio_model import pose_of
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np
import pinocchio as pin

KNEE_FORWARD, KNEE_BACKWARD = 1, -1
"""Side of the line from hip to ankle on which the knee is."""

JOINTS = ('hip yaw', 'hip roll', 'hip pitch', 'knee', 'ankle pitch', 'ankle roll')
"""The six joints, from the base."""

#: Distance by which the hip may be out of reach because of rounding, m.
_REACH_TOLERANCE = 1e-9
#: A sine or a length (m) below which a direction is undefined.
_SINGULAR = 1e-9
#: Smaller bends of the knee are lost in the rounding of the distance from hip to ankle, rad.
_STRAIGHT = 1e-7
_KNEE = 3
#: A knee that is bent backward by more in posture ``stand`` stays so, rad.
_BENT = 0.1
#: Of the direction of axes, and of distances between them, m.
_STRUCTURE_TOLERANCE = 1e-6
_AXES = np.array(((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0),
                  (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)))
#: Axes i and j meet, or lie in the plane of the leg, if they have this coordinate in common.
_MEETINGS = ((0, 2, 0), (1, 2, 2), (1, 0, 1), (5, 4, 2), (5, 0, 1))


@dataclass(frozen=True)
class Chain:
    """
    A leg with all joints at zero, base axes.

    Attributes
    ----------
    hip, knee, ankle
        Centre of the hip, of the knee's axis and of the ankle in the base, shape (3,), m.
    sole
        Pose of the sole in the base.
    signs
        Of each axis against z, x, y, y, y, x, shape (6,).
    lower, upper
        Limits, shape (6,), rad.

    """

    hip: Array
    knee: Array
    ankle: Array
    sole: Pose
    signs: Array
    lower: Array
    upper: Array


class Leg(Limb):
    """
    One leg of a robot.

    Parameters
    ----------
    chain
        Its structure.
    name
        For messages.
    joint_names
        Of the six joints, from the base.

    Attributes
    ----------
    knee
        Side of the line from hip to ankle on which the knee is: ``KNEE_FORWARD`` or
        ``KNEE_BACKWARD``.
    shin, thigh
        Between the centres of ankle, knee and hip, m.
    length
        Of the stretched leg from hip to ankle, m.

    """

    def __init__(self, chain: Chain, name: str = 'leg',
                 joint_names: Sequence[str] = JOINTS) -> None:
        super().__init__(name, tuple(joint_names), chain.lower, chain.upper)
        self.knee = KNEE_FORWARD
        thigh, shin = chain.hip - chain.knee, chain.knee - chain.ankle
        self.thigh, self.shin = math.hypot(*thigh), math.hypot(*shin)
        self.length = self.thigh + self.shin
        lean_thigh = math.atan2(thigh[0], thigh[2])
        lean_shin = math.atan2(shin[0], shin[2])
        # Angles between the straight lines hip - knee - ankle are the joints' plus these.
        self._offsets = (0.0, 0.0, lean_thigh, lean_shin - lean_thigh, -lean_shin, 0.0)
        self._signs = tuple(chain.signs.tolist())
        self._hip = tuple(chain.hip.tolist())
        self._sole_in_ankle = Pose(chain.sole.rotation, chain.sole.position - chain.ankle)
        self._ankle_in_sole = self._sole_in_ankle.inverse()

    def angles(self, positions: Array) -> list[float]:
        """Return the six angles of the straight chain for joint positions (6,), rad."""
        return [s * q + o for s, q, o in zip(self._signs, positions.tolist(), self._offsets)]

    def pose(self, positions: Array) -> Pose:
        """Return the pose of the sole in the base for joint positions (6,)."""
        _, centres, R_base_ankle = self._centres(positions)
        return Pose(R_base_ankle, centres[5]) @ self._sole_in_ankle

    def inverse(self, sole_in_base: Pose, knee: int | None = None) -> LegSolution:
        """
        Return the joint positions that bring the sole to a pose.

        Of the eight solutions, the one with the hip above the ankle (along the sole's z) and the
        hip roll within 90 deg; :meth:`solutions` has them all.

        Parameters
        ----------
        sole_in_base
            Required pose of the sole.
        knee
            Its side, instead of :attr:`knee`.

        """
        R, d = self.ankle_target(sole_in_base)
        return self._solve(R, d, knee or self.knee, 1, 1)

    def solutions(self, sole_in_base: Pose) -> list[LegSolution]:
        """Return all eight solutions, valid ones first."""
        R, d = self.ankle_target(sole_in_base)
        found = [self._solve(R, d, knee, above, hip)
                 for hip in (1, -1) for above in (1, -1) for knee in (1, -1)]
        return sorted(found, key=lambda solution: not solution.is_valid)

    def jacobian_in_base(self, positions: Array) -> Array:
        """
        Return the sole's Jacobian along the axes of the base ("world"), (6, 6).

        Times joint velocities: velocity of the sole's origin, m/s, and angular velocity, rad/s,
        relative to the base.
        """
        axes, centres, R_base_ankle = self._centres(positions)
        sole = R_base_ankle @ self._sole_in_ankle.position + centres[5]
        return np.concatenate((np.cross(axes, sole - centres).T, axes.T))

    def jacobian_in_sole(self, positions: Array) -> Array:
        """Return the Jacobian along the axes of the sole ("body"), (6, 6)."""
        R_sole_base = self.pose(positions).rotation.T
        jacobian = self.jacobian_in_base(positions)
        return np.concatenate((R_sole_base @ jacobian[:3], R_sole_base @ jacobian[3:]))

    def joint_velocities(self, positions: Array, sole_twist: Array) -> Array:
        """
        Return the joint velocities (6,), rad/s, that move the sole with a twist.

        Parameters
        ----------
        positions
            Of the joints, shape (6,).
        sole_twist
            Velocity and angular velocity relative to the base along its axes, (6,).

        Raises
        ------
        InputError
            If the leg is too near a singularity.

        """
        jacobian = self.jacobian_in_base(positions)
        # In units of the length of the leg, so that it does not depend on the size.
        determinant = np.linalg.det(jacobian) / (self.shin + self.thigh) ** 3
        if abs(determinant) < _SINGULAR:
            raise InputError(
                f'{self.name} is singular at {np.round(positions, 4).tolist()} rad (knee '
                'straight, hip roll at 90 deg or hip on the ankle roll axis): its sole cannot '
                'move in every direction; bend the knee')
        return np.asarray(np.linalg.solve(jacobian, sole_twist), dtype=float)

    def _describe_excess(self, solution: LegSolution) -> str:
        if solution.excess > 0.0:
            return (f'the ankle is {solution.excess:.4f} m beyond the stretched leg of '
                    f'{self.shin + self.thigh:.4f} m; lower the hips or step shorter')
        return f'the ankle is {-solution.excess:.4f} m too near to the hip'

    def _centres(self, positions: Array) -> tuple[Array, Array, Array]:
        """Return axes (6, 3), centres (6, 3) on them, and the ankle's rotation, in the base."""
        yaw, roll, pitch, knee, ankle, tilt = self.angles(positions)
        R_hip = rotation_about(2, yaw) @ rotation_about(0, roll)
        R_foot = R_hip @ rotation_about(1, pitch + knee + ankle)
        hip_at = np.array(self._hip)
        knee_at = hip_at - self.thigh * (R_hip @ rotation_about(1, pitch))[:, 2]
        ankle_at = knee_at - self.shin * (R_hip @ rotation_about(1, pitch + knee))[:, 2]
        forward, left = R_hip[:, 0], R_hip[:, 1]
        axes = np.array(((0.0, 0.0, 1.0), forward, left, left, left, R_foot[:, 0]))
        centres = np.array((hip_at, hip_at, hip_at, knee_at, ankle_at, ankle_at))
        return (np.array(self._signs)[:, np.newaxis] * axes, centres,
                R_foot @ rotation_about(0, tilt))

    def ankle_target(self, sole_in_base: Pose) -> tuple[list[list[float]], list[float]]:
        """Return rotation of the ankle in the base, and position of the hip in the ankle, m."""
        ankle = sole_in_base @ self._ankle_in_sole
        from_ankle = ankle.rotation.T.dot(np.array(self._hip) - ankle.position)
        rows: list[list[float]] = ankle.rotation.tolist()
        return rows, from_ankle.tolist()

    def _solve(self, R: list[list[float]], d: list[float], knee_side: int, above: int,
               hip_side: int) -> LegSolution:
        x, side, height = d
        z = math.hypot(side, height)
        singular = ['ankle roll'] if z < _SINGULAR else []
        tilt = math.atan2(above * side, above * height) if z >= _SINGULAR else 0.0
        knee, ankle, excess = self._bend(x, above * z, knee_side)
        if abs(math.sin(knee)) < _STRAIGHT:
            singular.append('knee')
        yaw, roll, lean, is_singular = _yaw_roll_pitch(R, tilt, hip_side)
        if is_singular:
            singular.append('hip roll')
        angles = yaw, roll, lean - knee - ankle, knee, ankle, tilt
        positions = [middle + math.remainder(sign * (angle - offset) - middle, 2.0 * math.pi)
                     for sign, angle, offset, middle in zip(
                         self._signs, angles, self._offsets, self._middles.tolist())]
        return LegSolution(np.array(positions), excess, self._outside(positions), tuple(singular))

    def _bend(self, x: float, z: float, side: int) -> tuple[float, float, float]:
        """Return knee, ankle pitch and excess for a hip at (x, z) in the plane of the leg."""
        shin, thigh = self.shin, self.thigh
        distance = math.hypot(x, z)
        longest, shortest = shin + thigh, abs(shin - thigh)
        beyond, within = distance - longest, distance - shortest
        excess = (beyond if beyond > _REACH_TOLERANCE
                  else within if within < -_REACH_TOLERANCE else 0.0)
        # The cosine rule for half of the angle is accurate near the straight leg.
        knee = 2.0 * side * math.atan2(
            math.sqrt(max(-beyond, 0.0) * (longest + distance)),
            math.sqrt(max(within, 0.0) * (shortest + distance)))
        shank = math.atan2(x, z) + math.atan2(
            thigh * math.sin(knee), shin + thigh * math.cos(knee))
        return knee, -shank, excess


class RobotLeg(Leg):
    """
    The leg between the base and one sole of a robot.

    Parameters
    ----------
    model
        The robot.
    foot
        Name of a foot in its configuration.

    Attributes
    ----------
    index
        Indices of its joints in ``model.joint_names``, shape (6,).

    Raises
    ------
    UnknownNameError
        If there is no such foot.
    ConfigurationError
        If the structure of the leg is not the paper's, with the difference.

    """

    def __init__(self, model: RobotModel, foot: str) -> None:
        names, chain = _read_chain(model, model.foot_index(foot))
        self.index = model.joint_index(names)
        super().__init__(chain, f'the {foot} leg of {model.config.name}', names)
        if self.angles(model.usual_posture()[self.index])[_KNEE] < -_BENT:
            self.knee = KNEE_BACKWARD


def _yaw_roll_pitch(R: list[list[float]], tilt: float,
                    side: int) -> tuple[float, float, float, bool]:
    """Split R Rx(-tilt) into Rz(yaw) Rx(roll) Ry(pitch); also whether that is singular."""
    c, s = math.cos(tilt), math.sin(tilt)
    # R Rx(-tilt), column by column; the first column is that of R.
    (a, _, _), (b, _, _), (u, _, _) = R
    upward = [row[1] * s + row[2] * c for row in R]
    sideways = R[2][1] * c - R[2][2] * s
    level = math.hypot(u, upward[2])
    if level < _SINGULAR:
        pitch = math.atan2(upward[0], a)
    else:
        pitch = math.atan2(-side * u, side * upward[2])
    roll = math.atan2(sideways, side * level)
    cp, sp = math.cos(pitch), math.sin(pitch)
    # From the rotation without pitch: exact near the singularity, too.
    yaw = math.atan2(b * cp + upward[1] * sp, a * cp + upward[0] * sp)
    return yaw, roll, pitch, level < _SINGULAR


def _read_chain(model: RobotModel, foot: int) -> tuple[tuple[str, ...], Chain]:
    """Read a leg from the robot's model, all joints at zero."""
    pin_model = model.pin_model
    joint = int(model.soles.joints[foot])
    chain = [int(i) for i in pin_model.supports[joint] if i > 1]
    names = tuple(pin_model.names[i] for i in chain)
    label = f'the {model.soles.names[foot]} leg of {model.config.name}'
    _check_joints(label, names, model.joint_names)
    data = pin.Data(pin_model)
    pin.computeJointJacobians(
        pin_model, data, model.configuration(np.zeros(len(model.joint_names))))
    columns = [pin_model.joints[i].idx_v for i in chain]
    twists = data.J[:, columns].T  # along the base's axes, about its origin: moment first
    points = np.array([data.oMi[i].translation for i in chain])
    signs = _check_axes(label, names, twists)
    _check_centres(label, points)
    sole = pose_of(data.oMi[joint]) @ model.soles.poses_in_joint()[foot]
    hip, knee, ankle = points[2], points[3], points[4]
    hip[1] = knee[1] = ankle[1] = points[0, 1]  # pitch axes run along y: any of their points
    index = model.joint_index(names)
    lower, upper = (limits[index] for limits in position_limits(model))
    return names, Chain(hip, knee, ankle, sole, signs, lower, upper)


def _check_joints(label: str, names: tuple[str, ...], measured: tuple[str, ...]) -> None:
    if len(names) != LEG_MOTORS:
        raise _not_wang(label, f'it has {len(names)} joints ({", ".join(names) or "none"})')
    for name in names:
        if name not in measured:
            raise _not_wang(label, f"its joint '{name}' follows another or is locked")


def _check_axes(label: str, names: tuple[str, ...], twists: Array) -> Array:
    """Return the signs of the axes; every axis must be one of the base's."""
    along = np.einsum('ij,ij->i', twists[:, 3:], _AXES)
    for name, kind, axis, cosine in zip(names, JOINTS, twists[:, 3:], along):
        if abs(abs(cosine) - 1.0) > _STRUCTURE_TOLERANCE:
            raise _not_wang(label, f"at zero, the axis of '{name}', which should be the {kind}, "
                            f'is {np.round(axis, 4).tolist()} in the base')
    return np.sign(along)


def _check_centres(label: str, points: Array) -> None:
    """Check that the axes of the hip meet in one point, those of the ankle, and the plane."""
    for i, j, coordinate in _MEETINGS:
        distance = points[i, coordinate] - points[j, coordinate]
        if abs(distance) > _STRUCTURE_TOLERANCE:
            raise _not_wang(label, f'its {JOINTS[i]} axis passes the {JOINTS[j]} axis at a '
                            f'distance of {abs(distance):.4f} m')


def _not_wang(label: str, difference: str) -> ConfigurationError:
    return ConfigurationError(
        f'{label} has no closed form: {difference}; needed are {", ".join(JOINTS)} from base to '
        'foot, with the axes of the hip in one point and those of the ankle in one. Use '
        'numerical inverse kinematics for this robot (core.legs.limb)')
