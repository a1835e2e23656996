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
The fused CoM of a robot, from its kinematics and the wrenches of its feet.

The filter is updated about 45 times a second with means: the mean of the instants since its last
update stands for the one in the middle. From there position and velocity are propagated to
the last instant by the impulse of the foot forces (Newton), so the estimate is not delayed. White
noise is averaged as the filter itself would do. Of the motion within 10 ms to either side of the
middle, all that the foot forces explain is taken into account; what is neglected of the kinematics
grows with the square of that time: two micrometres where 8 % of the mass turn with 2 rad/s^2.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.com.carrier import CarrierFrame
from biped_com_ros.core.com.com_filter import ComFilter, FootForce, KinematicCom
from biped_com_ros.core.com.hidden_load import LoadWrench
from biped_com_ros.core.com.kinematics import com_velocity_along_base
from biped_com_ros.core.com.settings import ComFilterSettings, is_credible_mass
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, Pose, Vector
from biped_com_ros.core.geometry.wrench import sum_covariance, sum_wrenches
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.stance import Twist
import numpy as np

UNLOADED, LOADED = 0.005, 0.02
"""
Normal force of a foot as a share of the body weight. Below the first its wrench is ignored (the
foot is in the air; its sensor measures an offset, or the inertia of the foot), above the second it
counts fully. In between it is faded, so that no force disappears at once. This does not decide
which feet are in contact.
"""
LONGEST = 0.0231
"""Longest time over which instants are averaged, s: eleven at 500 Hz."""
AVERAGED = 0.0101
"""Instants are averaged if they follow each other within this time, s: three at 100 Hz."""


class FootImpulse(NamedTuple):
    """
    Impulse of the foot forces since an instant, and its integral.

    Attributes
    ----------
    time, half_square
        Time since that instant, s, and half of its square.
    jx, jy, jz
        Impulse, N s.
    dx, dy, dz
        Its integral, N s^2.

    """

    time: float = 0.0
    half_square: float = 0.0
    jx: float = 0.0
    jy: float = 0.0
    jz: float = 0.0
    dx: float = 0.0
    dy: float = 0.0
    dz: float = 0.0

    def after(self, dt: float, before: Vector, now: Vector) -> FootImpulse:
        """Return the impulse `dt` later, with the force, N, before and now (trapezoidal rule)."""
        time, _, jx, jy, jz, dx, dy, dz = self
        h = 0.5 * dt
        hx, hy, hz = (
            h * (before[0] + now[0]), h * (before[1] + now[1]), h * (before[2] + now[2]))
        time += dt
        return FootImpulse(
            time, 0.5 * time * time, jx + hx, jy + hy, jz + hz, dx + dt * jx + h * hx,
            dy + dt * jy + h * hy, dz + dt * jz + h * hz)

    def since(self, other: FootImpulse) -> FootImpulse:
        """Return the impulse since a later instant, whose impulse is `other`."""
        t, _, jx, jy, jz, dx, dy, dz = other
        time = self.time - t
        return FootImpulse(
            time, 0.5 * time * time, self.jx - jx, self.jy - jy, self.jz - jz,
            self.dx - dx - time * jx, self.dy - dy - time * jy, self.dz - dz - time * jz)


_NO_IMPULSE = FootImpulse()
_STILL: Vector = (0.0, 0.0, 0.0)
Numbers6 = tuple[float, float, float, float, float, float]


class _Instant(NamedTuple):
    """Arguments of `StandingComEstimator.update`, and the impulse until then."""

    state: RobotState
    twist: Twist | None
    wrenches: Array | None
    impulse: FootImpulse
    covariance: Array | None = None


class StandingComEstimator:
    """
    Estimates the CoM of a standing robot: averages instants for :class:`ComFilter`.

    The estimate of the filter is propagated to the last instant.

    Parameters
    ----------
    model
        The robot.
    settings
        Uncertainties.
    carrier
        Link to which the unknown load is fixed; '' for the heaviest one above the base.
    gravity
        m/s^2.

    Attributes
    ----------
    filter
        The estimate, as of the middle of the last instants it was updated with; see :meth:`now`.
    updates
        Number of updates of the filter.

    """

    def __init__(self, model: RobotModel, settings: ComFilterSettings | None = None,
                 carrier: str = '', gravity: float = GRAVITY) -> None:
        settings = settings or ComFilterSettings()
        self._sensors, links = settings.sensor_errors(model), settings.link_errors(model)
        self.filter, self.updates = ComFilter(
            model.mass, settings, gravity, self._sensors, links), 0
        self._carrier = CarrierFrame(model, carrier)
        self._load = LoadWrench(
            model, settings.load_cutoff, gravity, settings.least_acceleration,
            settings.wrench_delay, self._sensors, links)
        self._mass, self._weight = model.mass, model.mass * gravity
        # Turns forces of all feet into the world and adds them.
        self._turn = np.zeros((3, len(model.soles.names), 6))
        self._instants: list[_Instant] = []
        self._restart()

    def _restart(self) -> None:
        self._instants.clear()
        self._is_first = True
        self._impulse, self._begun = _NO_IMPULSE, 0.0
        self._force: Vector | None = None
        self._middle_force: Vector = _STILL

    @property
    def is_credible(self) -> bool:
        """
        Whether the estimate is finite, and its mass that of the robot with a load.

        One that is not stays so: after wrong readings, covariances are too small to leave it.
        """
        (position, velocity), mass = self.now(), self.filter.mass
        return is_credible_mass(mass, self._mass) and math.isfinite(sum(position) + sum(velocity))

    def reset(self) -> None:
        """Reset all estimates."""
        self.filter.reset()
        self._load.reset()
        self._restart()

    def now(self) -> tuple[Vector, Vector]:
        """Return centre of mass, m, and its velocity, m/s, as of the last instant."""
        (cx, cy, cz), (vx, vy, vz), (ax, ay, az), share = self.filter.motion
        t, half, jx, jy, jz, dx, dy, dz = self._impulse
        ex, ey, ez = self.filter.push_detector.velocity_change
        # The velocity that the wrenches explain is as late as they are.
        late = self.filter.delay
        half += late * t
        dx, dy, dz = dx + late * jx, dy + late * jy, dz + late * jz
        if self._force is not None:
            fx, fy, fz = self._force
            t, jx, jy, jz = t + late, jx + late * fx, jy + late * fy, jz + late * fz
        since = self._impulse.time
        return ((cx + since * vx + half * ax + share * dx,
                 cy + since * vy + half * ay + share * dy,
                 cz + since * vz + half * az + share * dz),
                (vx + t * ax + share * jx + ex, vy + t * ay + share * jy + ey,
                 vz + t * az + share * jz + ez))

    def update(self, dt: float, state: RobotState, twist: Twist | None,
               wrenches: Array | None, covariance: Array | None = None) -> None:
        """
        Update with the values of one instant.

        Parameters
        ----------
        dt
            Time since the instant before, s; not used for the first.
        state
            The robot with its base in the world and its joint velocities.
        twist
            Of that base; None while no sole is in contact.
        wrenches
            Of the ground on each foot in its sole frame, shape (F, 6), N and N m; None if unknown.
        covariance
            Of all of them, (6 F, 6 F), beyond the noise that shows in the wrenches; None: the
            settings have all.

        """
        follows = 0.0 < dt <= self.filter.settings.longest_gap and not self._is_first
        alone = twist is None or wrenches is None or not follows
        if alone:
            self._update_filter()
            self._load.reset()
        if not follows:
            self._restart()
            self._set_orientations(state.sole_placements_in_world)
            self._is_first = False
        if wrenches is not None:
            wrenches = self._loaded(wrenches)
        # The time since what it does not follow may be infinite.
        self._impulse = self._impulse.after(
            dt if follows else 0.0, *self._forces(wrenches, follows))
        if not alone and self._may_be_push(dt, state, twist):
            self._update_filter()
            alone = True
        self._instants.append(_Instant(state, twist, wrenches, self._impulse, covariance))
        # An odd number has a middle.
        if alone or (len(self._instants) % 2 and (
                self._impulse.time - self._begun + 2.0 * dt > LONGEST)
                and not (len(self._instants) == 1 and dt <= AVERAGED)):
            self._update_filter()

    def _set_orientations(self, placements: Array) -> None:
        self._turn[:, :, :3] = placements[:, :3].transpose(2, 0, 1)

    def _may_be_push(self, dt: float, state: RobotState, twist: Twist | None) -> bool:
        """Return whether a push may begin here; it must not be averaged with what was before."""
        if twist is None:
            return False
        x, y, z = state.base.turn(*com_velocity_along_base(state, twist))
        _, (vx, vy, vz), (ax, ay, az), share = self.filter.motion
        t, _, jx, jy, jz, *_ = self._impulse
        late = self.filter.delay
        if self._force is not None and late:
            (fx, fy, fz), (mx, my, mz) = self._force, self._middle_force
            jx, jy, jz = jx + late * (fx - mx), jy + late * (fy - my), jz + late * (fz - mz)
        return self.filter.push_detector.update(dt, (
            x - vx - t * ax - share * jx, y - vy - t * ay - share * jy,
            z - vz - t * az - share * jz))

    def _loaded(self, wrenches: Array) -> Array:
        """Return a copy of the wrenches in which those of unloaded feet are faded out."""
        if min(wrenches[:, 2].tolist()) >= LOADED * self._weight:
            return wrenches.copy()
        share = wrenches[:, 2:3] / self._weight
        return wrenches * np.clip((share - UNLOADED) / (LOADED - UNLOADED), 0.0, 1.0)

    def _forces(self, wrenches: Array | None, follows: bool) -> tuple[Vector, Vector]:
        """Return the force of all feet in the world at the instant before and at this one, N."""
        if wrenches is None:
            self._force = None
            return _STILL, _STILL
        # Loaded soles hardly turn until the next update of the filter.
        x, y, z = self._turn.reshape(3, -1).dot(wrenches.reshape(-1)).tolist()
        before, self._force = self._force, (x, y, z)
        return before if follows and before else self._force, self._force

    def _update_filter(self) -> None:
        """Update the filter with the mean of the collected instants, as of their middle."""
        instants = self._instants
        if not instants:
            return
        middle = instants[(len(instants) - 1) // 2]
        self._update_by_mean(instants, middle)
        instants.clear()
        self._impulse = self._impulse.since(middle.impulse)
        self._begun = self._impulse.time
        self.updates += 1

    def _update_by_mean(self, instants: Sequence[_Instant], middle: _Instant) -> None:
        state, twist, wrenches = _mean(instants, middle)
        dt, count, force = middle.impulse.time, len(instants), None
        placements = state.sole_placements_in_world
        self._set_orientations(placements)
        if wrenches is not None:
            force = np.array(middle.impulse[2:5])
            force *= 1.0 / dt if dt > 0.0 else 0.0
        if twist is None:
            self.filter.update(dt, None, force)
            return
        carrier, equation, acting = self._carrier.motion(state, twist), None, None
        uncertain = None if middle.covariance is None else sum_covariance(
            middle.covariance, placements)
        if wrenches is not None:
            measured = np.array(sum_wrenches(wrenches.tolist(), placements.tolist()))
            x, y, z = measured[:3].tolist()
            self._middle_force = x, y, z
            acting = FootForce(measured[:3], (
                None if self._sensors is None else self._sensors.change(
                    wrenches, placements[:, :3].transpose(0, 2, 1))[0]))
            equation = self._load.update(
                state, twist, carrier, dt, measured, self.filter.external_force, count,
                (wrenches, placements), uncertain)
        measured = np.array((
            *state.base.place(*state.com_in_base.tolist()),
            *state.base.turn(*com_velocity_along_base(state, twist))))
        if count > 1:
            measured -= self._mean_error(instants, middle.impulse)
        self.filter.update(
            dt, KinematicCom(measured[:3], measured[3:], carrier, self._load.link_effects),
            force, equation, count, acting,
            None if uncertain is None else uncertain.diagonal()[:3])

    def _mean_error(self, instants: Sequence[_Instant], middle: FootImpulse) -> Numbers6:
        """Return the difference of mean position and velocity from those in the middle."""
        share_of_one = 1.0 / len(instants)
        t, half, jx, jy, jz, dx, dy, dz = [
            share_of_one * sum(column) - there for column, there in zip(
                zip(*[instant.impulse for instant in instants]), middle)]
        _, (vx, vy, vz), (ax, ay, az), share = self.filter.motion
        return (t * vx + half * ax + share * dx, t * vy + half * ay + share * dy,
                t * vz + half * az + share * dz,
                t * ax + share * jx, t * ay + share * jy, t * az + share * jz)


def _mean(instants: Sequence[_Instant], middle: _Instant,
          ) -> tuple[RobotState, Twist | None, Array | None]:
    """Return the mean of instants with the same contacts; orientations are those in the middle."""
    state, twist, wrenches = middle[:3]
    count = len(instants)
    if count == 1 or twist is None or wrenches is None:
        return state, twist, wrenches
    rows = np.array([_row(instant) for instant in instants])
    mean = np.full(count, 1.0 / count).dot(rows)
    found = state.averaged(
        [instant.state for instant in instants], Pose(state.base.rotation, mean[:3]))
    return found, Twist(mean[3:6], mean[6:9]), mean[9:].reshape(wrenches.shape)


def _row(instant: _Instant) -> Array:
    """Return the averaged quantities beside the state."""
    state, twist, wrenches = instant[:3]
    assert twist is not None and wrenches is not None
    return np.concatenate((
        state.base.position, twist.linear, twist.angular, wrenches.reshape(-1)))
