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
Moves the centre of mass over a foot by increments of the leg joints, with standing feet.

Newman (2013), last section: relative to the pelvis, standing soles move by minus the motion of
the pelvis. With the base moved by d, axes kept, each leg follows by
``dq = J_leg^+ (-d, 0)``, and the centre of mass moves over the soles by

    A d,    A = I - sum J_com,leg J_leg^+ [I; 0]

so that the base has to be moved by ``d = A^-1 dc`` for an increment dc of the centre of mass.
Legs are solved by damped least squares, which keeps joint velocities small near a stretched knee.
"""

from __future__ import annotations

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.keyframes import LegChain, minimum_jerk
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np
import pinocchio as pin

#: Smallest distance of joints from their limits, rad (or m).
LIMIT_MARGIN = 0.01
#: Largest increment of the centre of mass, m.
_LARGEST_STEP = 0.01
#: By how much the base is lowered at a time if a leg does not reach, m.
_LOWER_BY = 0.005
#: A leg whose Jacobian's least singular value is below this counts as singular.
_SINGULAR = 0.02
_TOLERANCE = 1e-7
_MAX_STEPS = 200
_BASE_DOF = 6


class ComShift:
    """
    Moves the centre of mass of a standing robot.

    Parameters
    ----------
    model
        The robot.
    positions
        Joint positions to begin with, (n,), in the order of ``model.joint_names``; the soles stay
        where they are with respect to each other.
    max_lowering
        By how much the base may be lowered where a leg would be stretched, m.

    Attributes
    ----------
    positions
        Present positions, (n,).
    lowered
        By how much it has been lowered, m.

    """

    def __init__(self, model: RobotModel, positions: Array, max_lowering: float = 0.1) -> None:
        self._model, self._data = model, pin.Data(model.pin_model)
        self.positions: Array = np.array(positions, dtype=float)
        self._legs = [_Leg(model, foot) for foot in range(len(model.soles.names))]
        self._update()
        self._soles = [leg.sole(self._data).copy() for leg in self._legs]
        self._moved = np.zeros(3)
        self.lowered, self.max_lowering = 0.0, max_lowering
        self._lower, self._upper = _limits(model)
        self._is_leg = np.zeros(len(self.positions), dtype=bool)
        for leg in self._legs:
            self._is_leg[leg.joints] = True

    @property
    def least_singular_value(self) -> float:
        """Least singular value of the legs' Jacobians: zero if a leg is stretched."""
        return min(leg.least_singular_value(self._data) for leg in self._legs)

    def offset_from(self, foot: str, point: tuple[float, float] | None = None) -> Array:
        """
        Return the displacement (3,) of the centre of mass to a point of a sole, m.

        Parameters
        ----------
        foot
            Name of the foot.
        point
            (x, y) in its sole frame, m; default: below the ankle, or the origin of the sole if
            the configuration has no ankle.

        Returns
        -------
        numpy.ndarray
            In base axes, along the plane of the sole.

        """
        sole = self._legs[self._model.foot_index(foot)].sole(self._data)
        x, y = self._below_ankle(foot, sole) if point is None else point
        in_sole = sole.actInv(self._data.com[0])
        return sole.rotation @ np.array((x - in_sole[0], y - in_sole[1], 0.0))

    def increment(self, displacement: Array) -> Array:
        """
        Move the centre of mass by a small displacement.

        Parameters
        ----------
        displacement
            With respect to the soles, (3,), base axes, m; its part along the normal of the first
            sole raises or lowers the base instead.

        Returns
        -------
        numpy.ndarray
            :attr:`positions`; within limits, and with the soles where they were.

        Raises
        ------
        InputError
            If a joint limit or a singularity is reached, with the joint or foot; nothing has
            moved then.

        """
        step = self._base_step(np.asarray(displacement, dtype=float))
        before = self.positions.copy()
        self._moved += step
        try:
            self._follow()
        except InputError:
            self._moved -= step
            self.positions[:] = before
            self._update()
            raise
        return self.positions

    def over(self, foot: str, point: tuple[float, float] | None = None) -> Array:
        """
        Move the centre of mass over a foot, see :meth:`offset_from`.

        Returns
        -------
        numpy.ndarray
            Positions of all joints, (n,).

        Raises
        ------
        InputError
            If it cannot get there; it stays where it got.

        """
        for _ in range(_MAX_STEPS):
            offset = self.offset_from(foot, point)
            distance = float(np.linalg.norm(offset))
            if distance < _TOLERANCE:
                return self.positions.copy()
            self._advance(offset * min(1.0, _LARGEST_STEP / distance))
        raise InputError(f'the centre of mass of {self._model.config.name} cannot be moved over '
                         f"'{foot}': it stays {distance:.4f} m away; bend the knees, or move less")

    def path(self, foot: str, count: int, point: tuple[float, float] | None = None) -> Array:
        """
        Return positions (count, n) of a minimum-jerk motion over a foot, at equal time steps.

        Raises
        ------
        InputError
            If it cannot get there.

        """
        there = ComShift(self._model, self.positions, self.max_lowering - self.lowered)
        there.over(foot, point)
        whole, down, done = self.offset_from(foot, point), there.lowered, 0.0
        rows = np.empty((count, len(self.positions)))
        for i, phase in enumerate(np.linspace(0.0, 1.0, count)):
            share = minimum_jerk(float(phase))
            for part in self._parts(done, share, float(np.linalg.norm(whole))):
                left = self.offset_from(foot, point) - (1.0 - part) * whole
                self.increment(left - down * (part - done) * self._normal)
                done = part
            rows[i] = self.positions
        self.lowered += down
        return rows

    # -- inside

    @property
    def _normal(self) -> Array:
        """Return the normal of the first sole, base axes, (3,)."""
        return self._legs[0].sole(self._data).rotation[:, 2]

    @staticmethod
    def _parts(start: float, end: float, distance: float) -> list[float]:
        """Return shares from `start` to `end` in small steps of a distance."""
        count = max(int(np.ceil((end - start) * distance / _LARGEST_STEP)), 1)
        return [start + (end - start) * (k + 1) / count for k in range(count)]

    def _advance(self, offset: Array) -> None:
        """Move by an increment; if a leg does not reach, lower the base first."""
        while True:
            try:
                self.increment(offset)
                return
            except InputError:
                if self.lowered >= self.max_lowering:
                    raise
            self.increment(-_LOWER_BY * self._normal)
            self.lowered += _LOWER_BY

    def _below_ankle(self, foot: str, sole: pin.SE3) -> tuple[float, float]:
        ankle = self._model.config.feet[foot].ankle
        if not ankle:
            return 0.0, 0.0
        frame = self._model.frames((ankle,))
        placement = self._data.oMi[int(frame.joints[0])]
        x, y, _ = sole.actInv(placement.act(frame.placement_in_joint[0, 3, :3])).tolist()
        return float(x), float(y)

    def _update(self) -> None:
        # Joint Jacobians included, along the axes of the base.
        pin.jacobianCenterOfMass(
            self._model.pin_model, self._data, self._model.configuration(self.positions), True)

    def _base_step(self, displacement: Array) -> Array:
        """Return the displacement d of the base, see the module."""
        com = self._data.Jcom
        matrix: Array = np.eye(3)
        for leg in self._legs:
            matrix -= leg.columns(com) @ leg.inverse(self._data)[:, :3]
        normal = self._normal
        # Along the normal the displacement is that of the base.
        matrix += np.outer(normal, normal @ (np.eye(3) - matrix))
        return np.asarray(np.linalg.solve(matrix, displacement), dtype=float)

    def _follow(self) -> None:
        """Bring the soles back to their places on the ground after the base was moved."""
        for _ in range(20):
            worst = 0.0
            for leg, home in zip(self._legs, self._soles):
                target = pin.SE3(home.rotation, home.translation - self._moved)
                worst = max(worst, leg.approach(self._data, target, self.positions))
            self._require_within_limits()
            self._update()
            if worst < 1e-10:
                return
        raise InputError(self._describe_failure())

    def _require_within_limits(self) -> None:
        outside = (self.positions < self._lower) | (self.positions > self._upper)
        for i in np.flatnonzero(outside & self._is_leg):
            raise InputError(
                f"joint '{self._model.joint_names[i]}' would leave its limits, "
                f'{self._lower[i]:.3f} to {self._upper[i]:.3f}; bend the knees, or move less')

    def _describe_failure(self) -> str:
        values = {leg.name: leg.least_singular_value(self._data) for leg in self._legs}
        worst = min(values, key=lambda name: values[name])
        why = 'is stretched' if values[worst] < _SINGULAR else 'does not reach'
        return f"the leg of foot '{worst}' {why}; bend the knees, or move less"


class _Leg(LegChain):
    """A leg that is moved by damped least squares."""

    def inverse(self, data: pin.Data) -> Array:
        """Return the damped J_leg^+ (joints, 6) of the sole's twist at its origin, base axes."""
        J = self.jacobian(data)
        least = float(np.linalg.svd(J, compute_uv=False)[-1])
        damping = 1e-12 + (0.0 if least > _SINGULAR else 0.02 * (1.0 - least / _SINGULAR)) ** 2
        return J.T @ np.linalg.inv(J @ J.T + damping * np.eye(6))

    def least_singular_value(self, data: pin.Data) -> float:
        """Return the least singular value of the leg's Jacobian."""
        return float(np.linalg.svd(self.jacobian(data), compute_uv=False)[-1])

    def approach(self, data: pin.Data, target: pin.SE3, positions: Array) -> float:
        """Move the leg's joints towards a pose of the sole; return the largest error before."""
        sole = self.sole(data)
        error = np.concatenate((target.translation - sole.translation,
                                pin.log3(target.rotation @ sole.rotation.T)))
        positions[self.joints] += self.inverse(data) @ error
        return float(np.abs(error).max())


def _limits(model: RobotModel) -> tuple[Array, Array]:
    """Return lower and upper limits (n,) with the margin, in ascending order."""
    lower, upper = position_limits(model)
    margin = np.where(np.isfinite(upper - lower), np.minimum(LIMIT_MARGIN, (upper - lower) / 4), 0)
    return lower + margin, upper - margin
