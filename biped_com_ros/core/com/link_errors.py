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
Errors of the masses and centres of mass of all links, as far as they matter for the fused CoM.

Links that one joint carries move as one body. Of body i, as shares of the robot's true mass: a
mass ``e_i`` and a first moment ``b_i`` about the body's centre of mass by the model, along the
axes of its joint. Bodies beyond the sensors of the feet are not weighed: their masses are unknown
to the end.
"""

from __future__ import annotations

from typing import NamedTuple

from biped_com_ros.core.com.carrier import Carrier
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.signals.filters import Differentiator
from biped_com_ros.core.state.stance import Twist
import numpy as np

_NEGLIGIBLE = 0.003
"""Share of the variance of the CoM; bodies that together contribute less are left out."""


class LinkEffects(NamedTuple):
    """
    How errors of links (e, b) act, (4 B,) of them: all masses, then all first moments.

    Attributes
    ----------
    com
        On the true centre of mass, m, shape (3, 4 B).
    velocity
        Standard deviation of the kinematic velocity by them, m/s, shape (3,).

    """

    com: Array
    velocity: Array


class LinkErrors:
    """
    The bodies of a robot, their motion, and how uncertain they are.

    Parameters
    ----------
    model
        The robot.
    mass
        Standard deviation of the mass of each link, as a share of it.
    com
        Standard deviation of its centre of mass along each axis, m.
    cutoff
        Of the filter of :class:`LoadWrench`, Hz.

    Attributes
    ----------
    frames
        At the centres of mass of the B bodies.
    covariance
        Of the errors, shape (4 B, 4 B).
    weighed
        1.0 for bodies whose weight the feet measure, 0.0 for those beyond their sensors, (B,).

    """

    def __init__(self, model: RobotModel, mass: float, com: float, cutoff: float) -> None:
        bodies = _bodies(model, mass, com)
        posture = model.state(model.usual_posture())
        frames = FrameSet([str(i) for i in range(len(bodies))], [b.joint for b in bodies],
                          [Pose(np.eye(3), b.com) for b in bodies])
        at = posture.placements_in_base(frames)[:, 3] - posture.com_in_base
        shares = [np.trace(b.covariance[1:, 1:]) + b.covariance[0, 0] * p.dot(p)
                  for b, p in zip(bodies, at)]
        order = np.argsort(shares)
        kept = sorted(order[np.cumsum(np.array(shares)[order]) > _NEGLIGIBLE * sum(shares)])
        bodies = [bodies[i] for i in kept]
        self.frames = FrameSet([str(i) for i in kept], [b.joint for b in bodies],
                               [Pose(np.eye(3), b.com) for b in bodies])
        self.weighed = np.array([float(b.weighed) for b in bodies])
        count = self.count = len(bodies)
        self.covariance = np.zeros((4 * count, 4 * count))
        for i, body in enumerate(bodies):
            at_body = [i, *range(count + 3 * i, count + 3 * i + 3)]
            self.covariance[np.ix_(at_body, at_body)] = body.covariance
        self._mass_deviation = np.sqrt(self.covariance.diagonal()[:count])
        # Of the carrier too, as the last one: position, velocity; then the axes of the bodies.
        self._filter = Differentiator(cutoff, 6 * (count + 1) + 9 * count)
        self._sample = np.zeros(6 * (count + 1) + 9 * count)
        self._points = self._sample[:3 * (count + 1)].reshape(-1, 3)
        self._velocities = self._sample[3 * (count + 1):6 * (count + 1)].reshape(-1, 3)
        self._axes = self._sample[6 * (count + 1):].reshape(-1, 3, 3)

    def reset(self) -> None:
        """Drop what came before."""
        self._filter.reset()

    def update(self, state: RobotState, twist: Twist, carrier: Carrier, com: Array,
               com_velocity: Array, dt: float) -> LinkEffects:
        """
        Update with the values of one instant; `dt` is the time since the one before, s.

        Masses that are weighed are moved from the carrier to their body; the others are added to
        the robot at their body.
        """
        placements = state.placements_in_base(self.frames)
        rotation = state.base.rotation.T
        linear = state.twists_in_base(self.frames, placements)[:, 0] + twist.linear
        linear += np.cross(twist.angular, placements[:, 3])
        self._points[:-1] = placements[:, 3].dot(rotation)
        self._points[:-1] += state.base.position
        self._velocities[:-1] = linear.dot(rotation)
        self._points[-1], self._velocities[-1] = carrier.point, carrier.velocity
        np.matmul(placements[:, :3], rotation, out=self._axes)
        self._filtered, self._rate = self._filter.update(self._sample, dt)
        weighed = self.weighed[:, np.newaxis]
        effect = self._points[:-1] - np.where(weighed, carrier.point, com)
        moving = self._velocities[:-1] - np.where(weighed, carrier.velocity, com_velocity)
        moving *= self._mass_deviation[:, np.newaxis]
        return LinkEffects(
            np.concatenate((effect, self._axes.reshape(-1, 3))).T,
            np.sqrt(np.einsum('ij,ij->j', moving, moving)))

    def moments(self, com: Array, upward: float, active: Array) -> Array:
        """
        Return the horizontal moments about `com` that errors require, (2, 4 B).

        Parameters
        ----------
        com
            Centre of mass through the same filter, m, (3,).
        upward
            Vertical specific force, m/s^2.
        active
            For both moments, whether the acceleration exceeds its noise and counts, (2,).

        """
        count = self.count
        rate = self._rate[3 * (count + 1):6 * (count + 1)].reshape(-1, 3)
        force = np.empty((count + 1, 3))
        force[:, :2], force[:, 2] = rate[:, :2] * active[::-1], upward
        points = self._filtered[:3 * (count + 1)].reshape(-1, 3) - com
        by_mass = _horizontal(points, force)
        by_mass[:-1] -= by_mass[-1]
        by_mass[:-1] *= self.weighed[:, np.newaxis]
        axes = self._filtered[6 * (count + 1):].reshape(-1, 3, 3)
        by_moment = _horizontal(axes, force[:-1, np.newaxis])
        by_moment *= self.weighed[:, np.newaxis, np.newaxis]
        return np.concatenate((by_mass[:-1], by_moment.reshape(-1, 2))).T


class LinkErrorEstimate:
    """
    Estimate of the errors of the links, and their covariance with the other states of a filter.

    What happens to the other states between two corrections of the errors is collected in a
    matrix, which is applied when it is needed: there are many more errors than other states.

    Parameters
    ----------
    size
        Number of the other states.
    prior
        The errors; None if there are none.

    Attributes
    ----------
    errors, covariance
        Estimate, (n,), and its covariance, (n, n).

    """

    def __init__(self, size: int, prior: LinkErrors | None) -> None:
        self._prior, self._weighed = np.zeros((0, 0)), np.zeros(0)
        if prior is not None:
            self._prior = prior.covariance
            self._weighed = np.concatenate((prior.weighed, np.zeros(3 * prior.count)))
        self._size = size
        self.reset(0)

    def reset(self, mass: int) -> float:
        """
        Reset all estimates.

        Parameters
        ----------
        mass
            Place of the other state that contains all masses that are weighed.

        Returns
        -------
        float
            What they contribute to the variance of that state.

        """
        self.errors, self.covariance = np.zeros(len(self._prior)), self._prior.copy()
        self._crossed = np.zeros((self._size, len(self._prior)))
        self._since: Array | None = None
        self._crossed[mass] = by_mass = self._prior.dot(self._weighed)
        return float(self._weighed.dot(by_mass))

    def crossed(self) -> Array:
        """Return the covariance of the other states with the errors, (size, n)."""
        if self._since is not None:
            self._crossed, self._since = self._since.dot(self._crossed), None
        return self._crossed

    def propagate(self, transition: Array) -> None:
        """Apply a transition of the other states, (size, size)."""
        if len(self.errors):
            self._since = transition.dot(self._unapplied())

    def correct_others(self, gain: Array, rows: Array) -> None:
        """Apply a correction of the other states by a measurement of theirs."""
        if len(self.errors):
            since = self._unapplied()
            since -= gain.dot(rows.dot(since))
            self._since = since

    def correct(self, gain: Array, gain_errors: Array, PRt: Array, QRt: Array, innovation: Array,
                residual: Array) -> None:
        """
        Apply a correction of all states.

        Parameters
        ----------
        gain, gain_errors
            For the other states and the errors, (size, 2) and (n, 2).
        PRt, QRt
            Covariance of the other states and of the errors with the measurement.
        innovation, residual
            Covariance of the innovation, (2, 2), and the innovation, (2,).

        """
        if not len(self.errors):
            return
        self.errors = self.errors + gain_errors.dot(residual)
        gain_innovation = innovation.dot(gain_errors.T)
        self._crossed = (self.crossed() - gain.dot(QRt.T) - PRt.dot(gain_errors.T)
                         + gain.dot(gain_innovation))
        lost = gain_errors.dot(QRt.T)
        found = self.covariance - lost - lost.T + gain_errors.dot(gain_innovation)
        self.covariance = 0.5 * (found + found.T)

    def com_covariance(self, rows: Array, effects: Array) -> Array:
        """Return what errors with `effects` (3, n) add where the others have `rows`, (3, 3)."""
        shared = rows.dot(self._unapplied()).dot(self._crossed.dot(effects.T))
        found: Array = shared + shared.T + effects.dot(self.covariance).dot(effects.T)
        return found

    def _unapplied(self) -> Array:
        if self._since is None:
            self._since = np.eye(self._size)
        return self._since


def _horizontal(points: Array, force: Array) -> Array:
    """Return x and y of the moments of forces (..., 3) at points (..., 3)."""
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    return np.stack((y * force[..., 2] - z * force[..., 1],
                     z * force[..., 0] - x * force[..., 2]), axis=-1)


class _Body(NamedTuple):
    joint: int
    weighed: bool
    com: Array
    covariance: Array


def _bodies(model: RobotModel, mass: float, com: float) -> list[_Body]:
    """Return what moves as one; links beyond the sensors of the feet apart from the others."""
    frames, config = model.frames(model.link_names), model.config
    coms = [pose.apply(c) for pose, c in zip(frames.poses_in_joint(), model.link_coms_in_link)]
    sensors = [config.wrench_sensors[name] for foot in config.feet.values()
               for name in foot.wrench_sensors]
    beyond = {int(i) for sensor in sensors
              for i in model.subtree_links(sensor.link or sensor.frame)}
    groups: dict[tuple[int, bool], list[int]] = {}
    for i, joint in enumerate(frames.joints.tolist()):
        groups.setdefault((joint, i not in beyond), []).append(i)
    found = []
    for (joint, weighed), links in groups.items():
        masses = model.link_masses[links]
        at = np.array([coms[i] for i in links])
        centre = masses.dot(at) / masses.sum()
        by_mass = mass * masses[:, np.newaxis] * np.column_stack(
            (np.ones(len(links)), at - centre))
        covariance = by_mass.T.dot(by_mass)
        covariance[range(1, 4), range(1, 4)] += (com * masses).dot(com * masses)
        found.append(_Body(joint, weighed, centre, covariance / model.mass ** 2))
    return found
