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
The fused CoM of a robot that walks dynamically: an unknown load by the equations of motion.

In the frame of the root, with its proper acceleration a, angular velocity w and acceleration w',
the wrench of all feet is that of the model's motion (:mod:`biped_com_ros.core.wrench.dynamics`,
whose first six rows need neither joint torques nor attitude) plus that of a load of mass m and
first moment h that is fixed to the root:

    force = m a + w' x h + w x (w x h)        moment = h x a

This is linear in (m, h): least squares with a prior, averaged rows and an exponential memory.
Joint offsets and the mounting of the IMU move the line of action of each foot's force, above all
forwards or backwards, where three joints of a leg add up. So an offset of each foot along x of
the root is estimated with the load; what the feet have in common, and cannot be distinguished from
a load, is in the covariance. (Sideways offsets alternate with the sway, and would be taken for
height: they are left out.) The estimator needs no rest and no assumption on momentum, as the
filter for standing robots does (:mod:`biped_com_ros.core.com.com_filter`). The height of the load
is observed as soon as the robot accelerates horizontally. The rest is the external force. At
impacts delays and soft ground produce spurious forces as large as the impact, but hardly an
impulse: they are gone in a mean over the time since before them. So rows and force are means of
means, triangular windows, and never wait for impacts to be over.

Wrenches are late; the rows of the motion wait for them. Assumptions: the load is fixed to the root
link, and nothing but the feet touches. Instants with a horizontal external force are left out. A
lasting vertical force is taken for weight. Wrenches of virtual feet contain the model's own weight
and motion, and do not measure a load: with them it stays that of the prior, and no external force
is computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.com.kinematics import com_velocity_along_base
from biped_com_ros.core.com.settings import is_credible_mass
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import skew, sum_wrenches
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.filters import MovingAverage
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.wrench.dynamics import ExternalForces
import numpy as np

#: Numbers of a row: wrench of the motion, how it depends on mass and first moment, and where the
#: soles are.
_MOTION, _BY_LOAD, _SOLES = slice(0, 6), slice(6, 30), slice(30, None)
#: Longest time that the rows of the motion wait for wrenches, s.
_LONGEST_DELAY = 0.1
#: Shares of the weight: vertical force that a robot on the ground has at least, and horizontal
#: external force above which instants are left out.
_GROUNDED, _PUSHED = 0.3, 0.06
#: Time constant of the variance of residuals, s, and least deviation, as a share of the first.
_LEARNING, _LEAST = 2.0, 0.03
#: Instants between two steps of the least squares.
_EVERY = 4


@dataclass(frozen=True, kw_only=True)
class WalkingComSettings:
    """
    Uncertainties of the load.

    Attributes
    ----------
    initial_mass, initial_moment
        Prior deviation of the mass, as a share of the robot's, and of the first moment over the
        robot's mass, m.
    force_deviation, moment_deviation
        Deviation of the averaged forces, as a share of the weight, and of the moments, as a
        lever of the weight, m: at first; then that of the residuals is used.
    window, push_window
        Over which the mean of the mean is taken, of the equations and of the external force, s.
    memory
        Time constant with which the past is forgotten, s.
    wrench_delay
        By how much the wrenches are late, s.
    com_deviation
        Of the centre of mass of the model, per axis, m, by joint offsets and the mounting of the
        IMU.
    foot_deviation
        Of the place of the force of each foot along x of the root, m, by the same causes:
        constant, and estimated.
    gravity
        m/s^2.

    """

    initial_mass: float = 0.1
    initial_moment: float = 0.015
    force_deviation: float = 0.01
    moment_deviation: float = 0.005
    window: float = 0.1
    push_window: float = 0.019
    memory: float = 60.0
    wrench_delay: float = 0.0045
    com_deviation: float = 0.0015
    foot_deviation: float = 0.005
    gravity: float = GRAVITY


class WalkingComEstimator:
    """
    Estimates load, centre of mass and external force of a walking robot.

    Parameters
    ----------
    model
        The robot, which has an IMU.
    settings
        Uncertainties.

    Attributes
    ----------
    load_covariance
        Of :attr:`load`, (4, 4).
    external_force
        Force on the robot other than at its feet, in the world, averaged, (3,), N.
    is_started
        Whether there is an estimate.

    """

    def __init__(self, model: RobotModel, settings: WalkingComSettings | None = None) -> None:
        self._model, self.settings = model, settings or WalkingComSettings()
        self._motion = ExternalForces(model)
        #: Whether the wrenches do not come from the model itself.
        self._is_measured = not any(foot.is_virtual for foot in model.config.feet.values())
        self._no_efforts = np.zeros(len(model.joint_names))
        self._weight = model.mass * self.settings.gravity
        self._place_root()
        s = self.settings
        self._first_variances = (self._weight * np.repeat(
            (s.force_deviation, s.moment_deviation), 3)) ** 2
        self._feet = len(model.soles.names)
        of_load = model.mass * np.array((s.initial_mass, *[s.initial_moment] * 3))
        self._prior = np.diag(np.concatenate(
            (of_load, np.full(self._feet, s.foot_deviation))) ** -2.0)
        # Of six rows: what is missing, how it depends on the load, and two on each foot's offset.
        size = 6 + 24 + 2 * self._feet
        self._means = [MovingAverage(s.window, size) for _ in range(2)]
        self._push_means = [MovingAverage(s.push_window, 3) for _ in range(2)]
        self.reset()

    def _place_root(self) -> None:
        """Find the root in the base, which do not move relative to each other."""
        model = self._model
        root = model.frames(model.frame_names[:1])
        placement = model.state(np.zeros(len(model.joint_names))).placements_in_base(root)[0]
        self._R_root_base, self._root = placement[:3], placement[3]

    def reset(self) -> None:
        """Reset all estimates, the load too."""
        count = len(self._prior)
        self._information, self._found = np.zeros((count, count)), np.zeros(count)
        self._variances = self._first_variances.copy()
        self._parameters = np.zeros(count)
        self.load_covariance = np.linalg.inv(self._prior)[:4, :4]
        self.is_started = False
        self._located: LocatedState | None = None
        self._restart()

    def _restart(self) -> None:
        """Restart after a gap; the estimated load is kept."""
        self._motion.reset()
        self._rows: deque[tuple[float, Array]] = deque()
        self._time, self._count = 0.0, 0
        self._acceleration: Array | None = None
        self.external_force = np.zeros(3)
        for mean in (*self._means, *self._push_means):
            mean.reset()

    @property
    def load(self) -> Array:
        """Mass, kg, and first moment in the root frame, kg m, of the load, (4,)."""
        load: Array = self._parameters[:4]
        return load

    @property
    def foot_offsets(self) -> Array:
        """Offset of the force of each foot along x of the root, (F,), m."""
        offsets: Array = self._parameters[4:]
        return offsets

    @property
    def is_credible(self) -> bool:
        """Whether the estimate is finite, and its mass that of the robot with a load."""
        return is_credible_mass(self.mass, self._model.mass) and math.isfinite(
            float(self.load.sum() + self.external_force.sum()))

    @property
    def mass(self) -> float:
        """Estimated mass of robot and load, kg."""
        return float(self._model.mass + self.load[0])

    def update(self, dt: float, located: LocatedState) -> None:
        """
        Update with one instant of the base filter.

        Parameters
        ----------
        dt
            Time since the one before, s; not positive, or infinite, after a gap.
        located
            The robot; `filtered` has the motion of the IMU.

        """
        filtered = located.filtered
        if filtered is None or located.twist is None:
            return
        if not 0.0 < dt < _LONGEST_DELAY or located.restarted:
            self._restart()
        self._located, self.is_started = located, True
        before, self._acceleration = self._acceleration, filtered.acceleration
        mean = filtered.acceleration if before is None else 0.5 * (before + filtered.acceleration)
        dt = dt if math.isfinite(dt) else 0.0
        if not self._motion.update(max(dt, 1e-6), located.state, self._no_efforts, filtered.gyro,
                                   mean):
            return
        self._time += dt
        # Differences of one step belong to its middle.
        self._rows.append((self._time - 0.5 * dt, self._row(located)))
        if located.wrenches is not None and self._is_measured:
            self._balance(dt, located, located.wrenches)

    def _row(self, located: LocatedState) -> Array:
        motion = self._motion
        a, turn = motion.rate[:3], skew(motion.omega)
        by_load = np.zeros((6, 4))
        by_load[:3, 0] = a
        by_load[:3, 1:] = skew(motion.rate[3:6]) + turn.dot(turn)
        by_load[3:, 1:] = -skew(a)
        soles = located.state.placements_in_base(self._model.soles)
        return np.concatenate((motion.raw[:6], by_load.reshape(-1), soles.reshape(-1)))

    def _row_at(self, time: float) -> Array | None:
        """Return the row of a time, interpolated; None if it is too long ago."""
        rows = self._rows
        while len(rows) > 2 and rows[1][0] <= time:
            rows.popleft()
        (begin, first), (end, last) = rows[0], rows[min(1, len(rows) - 1)]
        if time < begin:
            return None
        share = min((time - begin) / (end - begin), 1.0) if end > begin else 0.0
        return first + share * (last - first)

    def _balance(self, dt: float, located: LocatedState,
                 wrenches: Sequence[Sequence[float]]) -> None:
        """Compare the wrenches with the motion of the time that they are of."""
        row = self._row_at(self._time - self.settings.wrench_delay)
        if row is None:
            return
        soles = row[_SOLES].reshape(-1, 4, 3)
        measured = self._at_root(soles, wrenches)
        by_load = row[_BY_LOAD].reshape(6, 4)
        missing = measured - row[_MOTION]
        R_world_root = located.state.base.rotation.dot(self._R_root_base.T)
        push = R_world_root.dot(by_load[:3].dot(self.load) - missing[:3])
        for mean in self._push_means:
            push = mean.update(push, dt)
        self.external_force = push
        sample = np.concatenate((missing, row[_BY_LOAD], self._by_offsets(soles, wrenches)))
        for mean in self._means:
            sample = mean.update(sample, dt)
        self._count += 1
        level = math.hypot(*self.external_force[:2].tolist())
        if self._count % _EVERY == 0 and level < _PUSHED * self._weight and (
                R_world_root.dot(measured[:3])[2] > _GROUNDED * self._weight):
            self._learn(_EVERY * dt, sample)

    def _at_root(self, soles: Array, wrenches: Sequence[Sequence[float]]) -> Array:
        """Return the sum of the wrenches of the feet at and along the root, (6,)."""
        total = np.array(sum_wrenches(wrenches, soles.tolist(), self._root.tolist()))
        return total.reshape(2, 3).dot(self._R_root_base.T).reshape(-1)

    def _by_offsets(self, soles: Array, wrenches: Sequence[Sequence[float]]) -> Array:
        """Return moments about y and z by offsets of the feet along x of the root, (2 F,)."""
        forces = np.matmul(np.array(wrenches)[:, np.newaxis, :3], soles[:, :3])[:, 0]
        along_y, along_z = forces.dot(self._R_root_base.T).T[1:]
        return np.concatenate((-along_z, along_y))

    def _learn(self, dt: float, sample: Array) -> None:
        missing, by_all = sample[:6], np.zeros((6, len(self._prior)))
        by_all[:, :4] = sample[6:30].reshape(6, 4)
        by_all[4:, 4:] = sample[30:].reshape(2, -1)
        residual = missing - by_all.dot(self._parameters)
        self._variances = np.maximum(
            self._variances + dt / _LEARNING * (residual * residual - self._variances),
            _LEAST ** 2 * self._first_variances)
        # Number of independent samples per second: the integral of the squared window.
        weighted = by_all.T * (dt / (1.5 * self.settings.window) / self._variances)
        keep = math.exp(-dt / self.settings.memory)
        self._information = keep * self._information + weighted.dot(by_all)
        self._found = keep * self._found + weighted.dot(missing)
        covariance = np.linalg.inv(self._prior + self._information)
        self._parameters = covariance.dot(self._found)
        self.load_covariance = covariance[:4, :4]

    # -- what follows from the load

    def now(self) -> tuple[Array, Array]:
        """Return centre of mass, m, and its velocity, m/s, in the world, (3,) each."""
        located = self._located
        assert located is not None and located.twist is not None
        state, (linear, angular) = located.state, located.twist
        moment, m = self._moment_in_base(), self._model.mass
        com = (m * state.com_in_base + moment) / self.mass
        momentum = m * np.array(com_velocity_along_base(state, located.twist))
        momentum += self.load[0] * linear + np.cross(angular, moment)
        return (np.array(state.base.place(*com.tolist())),
                np.array(state.base.turn(*(momentum / self.mass).tolist())))

    @property
    def bias(self) -> Array:
        """Error of the kinematic CoM, along the axes of the world, (3,), m."""
        located = self._located
        return np.zeros(3) if located is None else located.state.com_in_world - self.now()[0]

    @property
    def com_covariance(self) -> Array:
        """Covariance of the centre of mass, relative to the base, (3, 3), m^2."""
        located = self._located
        assert located is not None
        state, m = located.state, self._model.mass
        com = (m * state.com_in_base + self._moment_in_base()) / self.mass
        J = np.column_stack((self._root - com, self._R_root_base.T)) / self.mass
        found = J.dot(self.load_covariance).dot(J.T)
        found += self.settings.com_deviation ** 2 * np.eye(3)
        R = state.base.rotation
        covariance: Array = R.dot(found).dot(R.T)
        return covariance

    @property
    def velocity_covariance(self) -> Array:
        """Covariance of its velocity, (3, 3), m^2/s^2."""
        located = self._located
        assert located is not None and located.filtered is not None and located.twist is not None
        R, turn = located.state.base.rotation, skew(located.twist.angular)
        relative = R.T.dot(self.com_covariance).dot(R)
        found = located.filtered.twist_covariance[:3, :3] + turn.dot(relative).dot(turn.T)
        covariance: Array = R.dot(found).dot(R.T)
        return covariance

    def _moment_in_base(self) -> Array:
        """Return the first moment of the load about the base's origin, (3,), kg m."""
        moment: Array = self._R_root_base.T.dot(self.load[1:]) + self.load[0] * self._root
        return moment
