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

The filter is asked seventy times a second, by means: the mean of the instants since it was asked
last stands for the one in the middle. From there the centre of mass goes on by the impulse of the
feet, as Newton says, so that it is as new as the last instant. White noise is averaged as the
filter would have done. Of the motion within the 7 ms to either side the filter sees all that the
feet explain; what it misses of kinematics grows with the square of that time: where 8 % of the
mass turn with 2 rad/s^2, a micrometre.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biped_com_ros.core.com.filter import ComFilter, ComFilterSettings, Seen
from biped_com_ros.core.com.hidden_load import CarrierFrame, LoadWrench
from biped_com_ros.core.com.kinematics import com_velocity_along_base
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, Pose, Vector
from biped_com_ros.core.geometry.wrench import sum_wrenches
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.stance import Twist
import numpy as np

UNFELT, FELT = 0.005, 0.02
"""
Shares of the weight. A foot that presses less than the first is in the air, what its sensor says
is an offset, or the inertia of the foot; one that presses more than the second counts fully. In
between it fades, so that no force gets lost at once.
"""
LONGEST = 0.0151
"""How long instants are collected at most, s: seven at 500 Hz, one at 100 Hz and below."""


class Path(NamedTuple):
    """
    What the feet did since an instant.

    Attributes
    ----------
    time, half_square
        How long that is, s, and half of its square.
    jx, jy, jz
        Their impulse, N s.
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

    def after(self, dt: float, before: Vector, now: Vector) -> Path:
        """Return what it is `dt` later; the force, N, was another `before`."""
        time, _, jx, jy, jz, dx, dy, dz = self
        h = 0.5 * dt
        hx, hy, hz = (
            h * (before[0] + now[0]), h * (before[1] + now[1]), h * (before[2] + now[2]))
        time += dt
        return Path(time, 0.5 * time * time, jx + hx, jy + hy, jz + hz, dx + dt * jx + h * hx,
                    dy + dt * jy + h * hy, dz + dt * jz + h * hz)

    def since(self, other: Path) -> Path:
        """Return what remains of it when it begins at a later instant."""
        t, _, jx, jy, jz, dx, dy, dz = other
        time = self.time - t
        return Path(time, 0.5 * time * time, self.jx - jx, self.jy - jy, self.jz - jz,
                    self.dx - dx - time * jx, self.dy - dy - time * jy, self.dz - dz - time * jz)


_NOTHING = Path()
_STILL: Vector = (0.0, 0.0, 0.0)
Numbers6 = tuple[float, float, float, float, float, float]


class _Instant(NamedTuple):
    """What was handed in, and what the feet did until then."""

    state: RobotState
    twist: Twist | None
    wrenches: Array | None
    path: Path


class FusedCom:
    """
    Makes of instants what :class:`ComFilter` takes.

    Parameters
    ----------
    model
        The robot.
    settings
        How uncertain everything is; by default as :class:`ComFilterSettings` has it.
    carrier
        Link that carries what the URDF does not know; '' for the link of the base.
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
        self.filter, self.updates = ComFilter(model.mass, settings, gravity), 0
        self._carrier = CarrierFrame(model, carrier)
        self._load = LoadWrench(
            model, settings.load_cutoff, gravity, settings.least_acceleration)
        self._weight = model.mass * gravity
        # Turns forces of all feet into the world and adds them.
        self._turn = np.zeros((3, len(model.soles.names), 6))
        self._instants: list[_Instant] = []
        self._begin()

    def _begin(self) -> None:
        self._instants.clear()
        self._path, self._begun = _NOTHING, 0.0
        self._force: Vector | None = None

    def reset(self) -> None:
        """Forget everything."""
        self.filter.reset()
        self._load.reset()
        self._begin()

    def now(self) -> tuple[Vector, Vector]:
        """Return centre of mass, m, and its velocity, m/s, as of the last instant."""
        (cx, cy, cz), (vx, vy, vz), (ax, ay, az), share = self.filter.motion
        t, half, jx, jy, jz, dx, dy, dz = self._path
        ex, ey, ez = self.filter.ahead
        return ((cx + t * vx + half * ax + share * dx, cy + t * vy + half * ay + share * dy,
                 cz + t * vz + half * az + share * dz),
                (vx + t * ax + share * jx + ex, vy + t * ay + share * jy + ey,
                 vz + t * az + share * jz + ez))

    def update(self, dt: float, state: RobotState, twist: Twist | None,
               wrenches: Array | None) -> None:
        """
        Take an instant.

        Parameters
        ----------
        dt
            Time since the instant before, s; not used for the first.
        state
            The robot with its base in the world and its joint velocities.
        twist
            Of that base; None while no sole stands.
        wrenches
            Of the ground on each foot in its sole frame, shape (F, 6), N and N m; None if unknown.

        """
        alone = twist is None or wrenches is None or not (
            0.0 < dt <= self.filter.settings.longest_gap)
        if alone:
            self._tell()
            self._load.reset()
        follows = 0.0 < dt <= self.filter.settings.longest_gap
        if not follows:
            self._begin()
        if wrenches is not None:
            wrenches = self._carried(wrenches)
        self._path = self._path.after(dt, *self._forces(wrenches, follows))
        if not alone and self._is_surprised(dt, state, twist):
            self._tell()
            alone = True
        self._instants.append(_Instant(state, twist, wrenches, self._path))
        # An odd number has a middle.
        if alone or (len(self._instants) % 2 and (
                self._path.time - self._begun + 2.0 * dt > LONGEST)):
            self._tell()

    def _is_surprised(self, dt: float, state: RobotState, twist: Twist | None) -> bool:
        """Tell whether this may be a push, which nothing of before should blur."""
        if twist is None:
            return False
        x, y, z = state.base.turn(*com_velocity_along_base(state, twist))
        _, (vx, vy, vz), (ax, ay, az), share = self.filter.motion
        t, _, jx, jy, jz, *_ = self._path
        return self.filter.surprises(dt, (
            x - vx - t * ax - share * jx, y - vy - t * ay - share * jy,
            z - vz - t * az - share * jz))

    def _carried(self, wrenches: Array) -> Array:
        """Return a copy of the wrenches without what feet in the air feel."""
        if min(wrenches[:, 2].tolist()) >= FELT * self._weight:
            return wrenches.copy()
        share = wrenches[:, 2:3] / self._weight
        carried: Array = wrenches * np.clip((share - UNFELT) / (FELT - UNFELT), 0.0, 1.0)
        return carried

    def _forces(self, wrenches: Array | None, follows: bool) -> tuple[Vector, Vector]:
        """Return the force of all feet in the world at the instant before and at this one, N."""
        if wrenches is None:
            self._force = None
            return _STILL, _STILL
        # Soles that carry turn too little until the filter is asked again to matter.
        x, y, z = self._turn.reshape(3, -1).dot(wrenches.reshape(-1)).tolist()
        before, self._force = self._force, (x, y, z)
        return before if follows and before else self._force, self._force

    def _tell(self) -> None:
        """Tell the filter the mean of what was collected, as of the middle."""
        instants = self._instants
        if not instants:
            return
        middle = instants[(len(instants) - 1) // 2]
        self._tell_mean(instants, middle)
        instants.clear()
        self._path = self._path.since(middle.path)
        self._begun = self._path.time
        self.updates += 1

    def _tell_mean(self, instants: Sequence[_Instant], middle: _Instant) -> None:
        state, twist, wrenches = _mean(instants, middle)
        dt, count, force = middle.path.time, len(instants), None
        placements = state.sole_placements_in_world
        self._turn[:, :, :3] = placements[:, :3].transpose(2, 0, 1)
        if wrenches is not None:
            force = np.array(middle.path[2:5])
            force *= 1.0 / dt if dt > 0.0 else 0.0
        if twist is None:
            self.filter.update(dt, None, force)
            return
        carrier, equation = self._carrier.motion(state, twist), None
        if wrenches is not None:
            equation = self._load.update(
                state, twist, carrier, dt,
                np.array(sum_wrenches(wrenches.tolist(), placements.tolist())),
                self.filter.external_force, count)
        seen = np.array((
            *state.base.place(*state.com_in_base.tolist()),
            *state.base.turn(*com_velocity_along_base(state, twist))))
        if count > 1:
            seen -= self._bend(instants, middle.path)
        self.filter.update(dt, Seen(seen[:3], seen[3:], carrier), force, equation, count)

    def _bend(self, instants: Sequence[_Instant], middle: Path) -> Numbers6:
        """Return by how much forces make the means of position and velocity miss the middle."""
        share_of_one = 1.0 / len(instants)
        t, half, jx, jy, jz, dx, dy, dz = [
            share_of_one * sum(column) - there for column, there in zip(
                zip(*[instant.path for instant in instants]), middle)]
        _, (vx, vy, vz), (ax, ay, az), share = self.filter.motion
        return (t * vx + half * ax + share * dx, t * vy + half * ay + share * dy,
                t * vz + half * az + share * dz,
                t * ax + share * jx, t * ay + share * jy, t * az + share * jz)


def _mean(instants: Sequence[_Instant], middle: _Instant,
          ) -> tuple[RobotState, Twist | None, Array | None]:
    """Return the mean of instants that are alike; orientations are those in the middle."""
    state, twist, wrenches, _ = middle
    count = len(instants)
    if count == 1 or twist is None or wrenches is None:
        return state, twist, wrenches
    rows = np.array([_row(instant) for instant in instants])
    mean = np.full(count, 1.0 / count).dot(rows)
    found = state.averaged(
        [instant.state for instant in instants], Pose(state.base.rotation, mean[:3]))
    return found, Twist(mean[3:6], mean[6:9]), mean[9:].reshape(wrenches.shape)


def _row(instant: _Instant) -> Array:
    """Return what means are made of, beside the state."""
    state, twist, wrenches, _ = instant
    assert twist is not None and wrenches is not None
    return np.concatenate((
        state.base.position, twist.linear, twist.angular, wrenches.reshape(-1)))
