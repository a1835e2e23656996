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
Kalman filter of the fused CoM: kinematics and foot wrenches, with an unknown load.

Kinematics give the motion of the CoM quickly, but with the errors of the URDF; the foot wrenches
give the weight and its place slowly. A Kalman filter combines them. Its state:

====== ====================================================================== ====
k      kinematic centre of mass in the world                                  m
v      velocity of the true one                                               m/s
h      first moment of the unknown load over the robot's mass, along the
       axes of the carrier                                                    m
f      external force other than at the feet, times 1 - s, in the world       N
s      all unknown mass that the feet weigh, as a share of the robot's
d      delay of the foot wrenches beyond the known one                        s
j      error of the carrier's moments of inertia beyond that of the links,
       about its axes, over the robot's mass                                  m^2
r      errors of the foot sensors, :mod:`foot_sensors`
e      errors of the links' masses and first moments, :mod:`link_errors`
====== ====================================================================== ====

The carrier is the link to which the load is fixed: its centre of mass p by the model, its
orientation R.

    k' = v + D a + s (v_kin - p') - R' h
    v' = a = ((1 - s) F - F_r r + f) / m + g       f' = -f / tau + noise      h', s' = noise

    c_kin = k + noise                                       kinematics
    v_kin = v + D a + s (v_kin - p') - R' h + noise         kinematics
    residual = s (residual + rows_u) + rows_h h + rows_d d + rows_j j + rows_r r + rows_e e
             + noise                                        feet, :mod:`hidden_load`
    c = k - s (c_kin - p) + R h + C e                       the centre of mass

with the measured foot force F, what errors of the sensors change of it, F_r, the model's mass m,
and D, the sum of the known and the unknown delay: v is as late as the wrenches are. All is linear,
and an estimate of the load holds in any posture. The place of the load, h, is estimated from the
moments of the feet alone: its effect on velocities is smaller than their other errors. The errors
of the links are estimated from the moments, too; on velocities their effect is treated as noise.
Gains and places of the foot sensors and the moments of inertia are not estimated, but their
covariance is taken into account (Schmidt-Kalman). A bending trunk has the moment of the latter in
phase with the accelerations that make the height of the load observable: the two cannot be told
apart, however long it bends.

White noise of velocities, forces and moments is measured by the fourth differences of these smooth
signals (:class:`NoiseMeter`): with good sensors the estimate follows the kinematics, with noisy
ones it is smoother. Other errors are recognized by large innovations: a moment whose innovation is
more than twice the expected one, as at a touch-down, gets a variance of the size of its
innovation.

The rows of the height of h are accelerations. Those from noisy joint velocities, whose noise is in
the residual as well, would give a biased height where nothing accelerates. The gain of the height
therefore uses accelerations that exceed their noise, mostly those of the measured foot forces, as
instrumental variables. Where there are none, the height is not corrected.

Assumptions. The load is fixed to the carrier. The point where an external force acts is unknown:
while there is one, and shortly before, the moments of the feet are not used. A lasting vertical
force cannot be distinguished from weight and is taken for weight. A push is detected 20 ms after
it began, by its effect on the velocity; until then the error of the velocity exceeds its
covariance (:mod:`push_detection`). Feet with little normal force are ignored. At rest the height
of the CoM is not observable: it is estimated while the robot accelerates horizontally, and until
then rests on the assumption that the load is near the carrier's centre of mass. Mass errors beyond
the foot sensors are not observable. A tilted base, by an error of the IMU, is not modelled.
"""

from __future__ import annotations

from collections import deque
import math
from typing import NamedTuple

from biped_com_ros.core.com.carrier import Carrier
from biped_com_ros.core.com.foot_sensors import FootSensorErrors, PER_FOOT, ROTATIONS
from biped_com_ros.core.com.hidden_load import LoadEquation
from biped_com_ros.core.com.link_errors import LinkEffects, LinkErrorEstimate, LinkErrors
from biped_com_ros.core.com.push_detection import PushDetector
from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, Vector
from biped_com_ros.core.signals.filters import NoiseMeter
import eigenpy
import numpy as np

K, V, H, F, S, D = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12), 12, 13
J = slice(14, 17)
"""Index slices of the state vector; the errors of the foot sensors follow."""
_FORCE_AND_MASS = slice(F.start, S + 1)
SIZE = 17
_LINK_ERROR_CORRELATION_TIME = 0.15
"""Correlation time of the error of the kinematic velocity by errors of links, s."""
_OUTLIER = 4.0
"""Squared innovation of a moment over its variance above which its noise is increased."""
_INERTIA = 0.003
"""
Standard deviation of j, m^2: of 8 % of the mass 0.15 m away it is 0.002 m^2.
"""
_MEAN_OVER = 0.01
"""Averaging time for which the settings give the noise, s."""
UNMODELLED_COM, UNMODELLED_VELOCITY = 1.5, 2.0
"""
Stated variances over those of the filter, where foot sensors have errors.

Their biases and cross-talk, joint offsets and the direction of gravity are not among the states:
with all of them the mean NEES of the filter alone was 6 (position, G1) and 11 (velocity, demo
robot) instead of 3 (``python -m examples.com_filter --world all``).
"""
_WORST = (*[0.001] * 3, *[0.02] * 3)
"""Noise of kinematic position, m, and velocity, m/s, until it has been measured."""


class KinematicCom(NamedTuple):
    """
    The kinematic CoM at an instant, in the world.

    Attributes
    ----------
    com, velocity
        Centre of mass by the model, m, and its velocity, m/s; shape (3,).
    carrier
        Motion of the link with the unknown load.
    links
        Effects of errors of the links; None if there are none.

    """

    com: Array
    velocity: Array
    carrier: Carrier
    links: LinkEffects | None = None


class FootForce(NamedTuple):
    """
    The force of all feet at an instant, in the world.

    Attributes
    ----------
    force
        N, (3,).
    by_sensors
        What errors of their sensors change of the force of each foot, N, shape (F, 3, 9); None
        if they have none.

    """

    force: Array
    by_sensors: Array | None = None


class ComFilter:
    """
    Kalman filter of the fused centre of mass.

    Parameters
    ----------
    mass
        Of the model, kg.
    settings
        Uncertainties.
    gravity
        m/s^2.
    sensors, links
        Errors of the foot sensors and of the links; None if there are none.

    Attributes
    ----------
    state, covariance
        Shape (n,) and (n, n) in the order k, v, h, f, s, d, j, errors of the foot sensors.
    links
        Estimate of the errors of the links.
    is_started
        Whether there is an estimate.
    push_detector
        Detects pushes by the velocity.

    """

    def __init__(self, mass: float, settings: ComFilterSettings | None = None,
                 gravity: float = GRAVITY, sensors: FootSensorErrors | None = None,
                 links: LinkErrors | None = None) -> None:
        self._mass, self._gravity, self._weight = mass, gravity, mass * gravity
        self.settings = settings = settings or ComFilterSettings()
        self._sensors = sensors
        self._motion: tuple[Vector, Vector, Vector, float] | None = None
        size = self._size = SIZE + (0 if sensors is None else len(sensors.variances))
        self._prepare_masks()
        self.links = LinkErrorEstimate(size, links)
        self.state, self.covariance = np.zeros(size), np.zeros((size, size))
        self._transition = A = np.eye(size)
        # Views of what changes in it: writing by lists of indices takes several times as long.
        self._force_share, self._force_decay = (
            np.einsum('ii->i', A[V, F]), np.einsum('ii->i', A[F, F]))
        self._by_sensors, self._next_by_sensors = A[V, SIZE:], np.zeros((3, size - SIZE))
        self._before_by_sensors = self._next_by_sensors
        self._acting: Array | None = None
        self._drift = np.zeros(size)
        self._drift[H], self._drift[S] = settings.moment_drift ** 2, settings.mass_drift ** 2
        self._drift[F] = (settings.force_drift * self._weight) ** 2
        self._least_noise = np.repeat(
            (settings.kinematic_position ** 2, settings.kinematic_velocity ** 2), 3)
        self._kinematic_noise, self._force_noise = NoiseMeter(_WORST), NoiseMeter(
            [0.01 * self._weight] * 3)
        self.push_detector = PushDetector(settings)
        self.reset()

    def _prepare_masks(self) -> None:
        moving = self._moving = np.ones(self._size)
        moving[H] = 0.0
        # Rotations of the sensors are observed well. Estimated places and gains would turn small
        # errors of the model into large ones of the height: they are only taken into account.
        self._estimated = np.ones(self._size)
        self._estimated[J] = 0.0
        self._estimated[SIZE:] = np.arange(self._size - SIZE) % PER_FOOT < ROTATIONS
        moving *= self._estimated
        #: Entries of the covariance that a correction by kinematics reduces.
        self._corrected = 1.0 - np.outer(1.0 - moving, 1.0 - moving)
        self._no_load = np.eye(3, self._size, 3)
        self._kinematic = np.eye(6, self._size)

    @property
    def delay(self) -> float:
        """Estimated delay of the wrenches of the feet, s."""
        return self.settings.wrench_delay + self.state.item(D)

    @property
    def com(self) -> Array:
        """Centre of mass, shape (3,), m."""
        return self.state[K] - self.bias

    @property
    def com_covariance(self) -> Array:
        """Covariance of :attr:`com`, shape (3, 3), m^2."""
        rows = np.eye(3, self._size)
        rows[:, H], rows[:, S] = self._rotation, -self._lever
        found = rows @ self.covariance @ rows.T
        if self._effects is not None:
            found += self.links.com_covariance(rows, self._effects.com)
        return found if self._sensors is None else UNMODELLED_COM * found

    @property
    def velocity(self) -> Array:
        """Velocity of the centre of mass, shape (3,), m/s."""
        return self.state[V] + self.delay * self._acceleration

    @property
    def velocity_covariance(self) -> Array:
        """Covariance of :attr:`velocity`, shape (3, 3), m^2/s^2."""
        rows = np.eye(3, self._size, 3)
        rows[:, D] = self._acceleration
        found: Array = rows @ self.covariance @ rows.T
        return found if self._sensors is None else UNMODELLED_VELOCITY * found

    @property
    def bias(self) -> Array:
        """Error of the kinematic CoM, along the axes of the world, shape (3,), m."""
        x = self.state
        found = x.item(S) * self._lever - self._rotation.dot(x[H])
        if self._effects is not None:
            found -= self._effects.com.dot(self.links.errors)
        return found

    @property
    def motion(self) -> tuple[Vector, Vector, Vector, float]:
        """
        Return the quantities that propagate the estimate.

        Centre of mass, m, velocity, m/s, the part of the acceleration that is not caused by the
        feet, m/s^2, and the inverse of the estimated mass, 1/kg.
        """
        if self._motion is None:
            x, share = self.state, (1.0 - self.state.item(S)) / self._mass
            beside = x[F] / self._mass
            beside[2] -= self._gravity
            self._motion = _numbers(self.com), _numbers(x[V]), _numbers(beside), share
        return self._motion

    @property
    def external_force(self) -> Array:
        """Force on the robot other than at its feet, shape (3,), N."""
        return self.state[F] / (1.0 - self.state.item(S))

    @property
    def mass(self) -> float:
        """Mass estimated from the foot forces, kg."""
        return self._mass / (1.0 - self.state.item(S))

    def reset(self) -> None:
        """Reset all estimates, that of the load included."""
        self.is_started = False
        self._motion = None
        self.push_detector.reset()
        self._held: deque[LoadEquation] = deque()
        self._held_time = 0.0
        self._rotation, self._lever = np.eye(3), np.zeros(3)
        self._velocity_rows, self._acceleration = self._no_load, np.zeros(3)
        self._by_load = np.zeros(3)
        self._effects: LinkEffects | None = None
        self._kinematic_noise.reset()
        self._force_noise.reset()
        self.state[:] = 0.0
        self.covariance[:] = 0.0
        diagonal = self.covariance.reshape(-1)[::self._size + 1]
        diagonal[H] = self.settings.initial_moment ** 2
        diagonal[S] = self.settings.initial_mass ** 2 + self.links.reset(S)
        diagonal[D], diagonal[J] = self.settings.delay_deviation ** 2, _INERTIA ** 2
        if self._sensors is not None:
            diagonal[SIZE:] = self._sensors.variances
            self._sensor_deviations = np.sqrt(self._sensors.variances) + 1e-12

    def update(self, dt: float, kinematic_com: KinematicCom | None, force: Array | None,
               equation: LoadEquation | None = None, count: int = 1,
               acting: FootForce | None = None, force_variance: Array | None = None) -> None:
        """
        Update with the values of one instant.

        Parameters
        ----------
        dt
            Time since the instant before, s; not used for the first.
        kinematic_com
            The kinematic CoM; None while no sole is in contact.
        force
            Sum of the foot forces in the world, (3,), N; zero in the air; None if unknown.
        equation
            Equation of the load by the moments of the feet; None if unknown.
        count
            Number of samples of which all this is the mean.
        acting
            The force of the feet at this instant; None if unknown.
        force_variance
            Of the force along each axis, (3,), N^2, beyond its measured noise; None: none.

        """
        self._motion, self.push_detector.velocity_change = None, [0.0] * 3
        before = self._acting
        self._set_acting(acting)
        if self.is_started and 0.0 < dt <= self.settings.longest_gap:
            self._predict(dt, force, count, before, force_variance)
        elif kinematic_com is None:
            return
        else:
            self._start(kinematic_com)
        if kinematic_com is None:
            self._velocity_rows = self._no_load
            self.push_detector.clear_thresholds()
        else:
            self._correct_by_kinematics(kinematic_com, dt, count)
        self._apply_held(equation)

    def _set_acting(self, acting: FootForce | None) -> None:
        """Set the acceleration by the forces at this instant, and what errors change of it."""
        self._acceleration, self._acting = np.zeros(3), None
        if acting is None:
            return
        self._acting = acting.force
        share = (1.0 - self.state.item(S)) / self._mass
        self._acceleration = share * acting.force + self.state[F] / self._mass
        self._acceleration[2] -= self._gravity
        if acting.by_sensors is not None:
            # Linear in these errors and in s together: this keeps the unobservable subspace
            # unobservable (consistency).
            self._next_by_sensors = acting.by_sensors.transpose(1, 0, 2).reshape(3, -1)
            self._next_by_sensors *= -1.0 / self._mass

    def _nonlinear_velocity(self) -> Array:
        """
        Return the known part of the measured velocity that is not linear in the state, m/s.

        A row of s for it would contain the noise of the velocities, and seem informative.
        """
        return (self.settings.wrench_delay * self._acceleration
                + self.state.item(S) * self._by_load)

    def _start(self, kinematic_com: KinematicCom) -> None:
        """Start at the kinematic CoM, with the load as far as it is known."""
        s, x, P = self.settings, self.state, self.covariance
        self.is_started = True
        self.push_detector.restart_mean()
        self._kinematic_noise.reset()
        self._force_noise.reset()
        moving = [*range(K.start, V.stop), *range(F.start, F.stop)]
        x[moving], P[moving], P[:, moving] = 0.0, 0.0, 0.0
        by_load = self._rows(kinematic_com)[3:]
        known = s.wrench_delay * self._acceleration
        by_load[:, S] = self._by_load
        x[K], x[V] = kinematic_com.com, kinematic_com.velocity - known - by_load @ x
        by_load[:, V] = 0.0
        P[V] = -by_load @ P
        start = np.eye(self._size)
        start[moving] = 0.0
        start[V] = -by_load
        self.links.propagate(start)
        P[:, V] = P[V].T
        P[V, V] = -by_load @ P[:, V] + 0.1 ** 2 * np.eye(3)
        P[K, K] = _WORST[0] ** 2 * np.eye(3)
        P[F, F] = (s.force_drift * self._weight) ** 2 * np.eye(3)

    def _rows(self, kinematic_com: KinematicCom) -> Array:
        """Return the observation rows of the kinematic CoM and its velocity, (6, n)."""
        carrier = kinematic_com.carrier
        rows = self._kinematic.copy()
        rows[3:, H] = -carrier.turning
        rows[3:, D] = self._acceleration
        self._effects = kinematic_com.links
        self._by_load = kinematic_com.velocity - carrier.velocity
        self._rotation, self._lever = carrier.rotation, kinematic_com.com - carrier.point
        self._velocity_rows = rows[3:]
        return rows

    def _predict(self, dt: float, force: Array | None, count: int,
                 before: Array | None, force_variance: Array | None) -> None:
        s, x, A = self.settings, self.state, self._transition
        share, decay = (1.0 - x.item(S)) / self._mass, math.exp(-dt / s.force_time)
        if force is None:  # the robot may be standing or in flight
            acceleration, rough = x[F] / self._mass, s.unknown_acceleration ** 2
            self._by_sensors[:] = 0.0
            A[V, S] = 0.0
        else:
            acceleration = share * force + x[F] / self._mass
            acceleration[2] -= self._gravity
            if self._sensors is not None:
                by_sensors = 0.5 * (self._before_by_sensors + self._next_by_sensors)
                np.multiply(dt, by_sensors, out=self._by_sensors)
                acceleration += by_sensors.dot(x[SIZE:])
                self._before_by_sensors = self._next_by_sensors
            noise = self._force_noise.update(force, dt, count).max().item()
            rough = s.acceleration ** 2 * _MEAN_OVER / dt + noise * share ** 2
            # The same force as for the errors of the sensors, for consistency, too.
            alike = force if self._acting is None or before is None else (
                0.5 * (before + self._acting))
            A[V, S] = (-dt / self._mass) * alike
        known = self._nonlinear_velocity()
        x[K] += dt * (self._velocity_rows.dot(x) + known + 0.5 * dt * acceleration)
        x[V] += dt * acceleration
        x[F] *= decay
        A[K, 3:] = dt * self._velocity_rows[:, 3:]
        self._force_share[:], self._force_decay[:] = dt / self._mass, decay
        self.covariance = P = A.dot(self.covariance).dot(A.T)
        self.links.propagate(A)
        diagonal = P.reshape(-1)[::self._size + 1]
        diagonal += dt * self._drift
        diagonal[V] += rough * dt * dt
        if force is not None and force_variance is not None:
            diagonal[V] += (share * dt) ** 2 * force_variance

    def _correct_by_kinematics(self, kinematic_com: KinematicCom, dt: float, count: int) -> None:
        rows = self._rows(kinematic_com)
        residual = np.concatenate((kinematic_com.com, kinematic_com.velocity))
        noise = self._kinematic_noise.update(residual, dt, count) + self._least_noise
        if kinematic_com.links is not None:
            noise[3:] += kinematic_com.links.velocity ** 2 * (
                _LINK_ERROR_CORRELATION_TIME / max(dt, 1e-3))
        residual -= rows.dot(self.state)
        known = self._nonlinear_velocity()
        residual[3:] -= known
        noise[3:] += self.covariance.item(S, S) * self._by_load ** 2
        PHt = self.covariance.dot(rows.T)
        innovation = rows.dot(PHt)
        diagonal = innovation.reshape(-1)[::7]
        pushed = self.push_detector.pushed_axes(residual[3:], diagonal[3:], noise[3:], dt, count)
        if pushed:
            for axis, missed in pushed:
                self._inflate(axis, missed)
            np.dot(self.covariance, rows.T, out=PHt)
            np.dot(rows, PHt, out=innovation)
        variances = diagonal[3:].copy(), count * noise[3:]
        diagonal += noise
        weights = eigenpy.LLT(innovation).solve(PHt.T)  # less than half of NumPy's time
        # The load is not corrected by it, but its uncertainty is taken into account.
        self.state += self._moving * residual.dot(weights)
        P = self.covariance
        P -= self._corrected * PHt.dot(weights)
        self.covariance = 0.5 * (P + P.T)
        self.links.correct_others(weights.T * self._moving[:, np.newaxis], rows)
        self.push_detector.set_thresholds(
            rows[3:].dot(self.state) - self.state[V] + known, *variances, self._force_effect(),
            dt / count, count)

    def _force_effect(self) -> Array:
        """Return the variance of the velocity by an unknown force in an update, (3,)."""
        # Of force and mass together: here it has no effect which of them is uncertain.
        by, P = self._transition[V, _FORCE_AND_MASS], self.covariance
        found: Array = (by.dot(P[_FORCE_AND_MASS, _FORCE_AND_MASS]) * by).sum(axis=1)
        if self._sensors is not None:
            # Errors of the sensors are known to be constant: they hide no push.
            shared = by.dot(P[_FORCE_AND_MASS, SIZE:]) / self._sensor_deviations
            found -= (shared * shared).sum(axis=1)
        return found

    def _inflate(self, axis: int, missed: float) -> None:
        """Allow any force along an axis; `missed`: squared error of the velocity, m^2/s^2."""
        # How long it has acted is unknown: the velocity becomes uncertain, too, and moments
        # measured meanwhile contain the push.
        self._held.clear()
        self._held_time = 0.0
        v, f = V.start + axis, F.start + axis
        self.covariance[v, v] += missed
        self.covariance[f, f] += (self.settings.push_force * self._weight) ** 2

    def _apply_held(self, equation: LoadEquation | None) -> None:
        """Apply equations that are older than `push_hold`, if no push was detected since."""
        held = self._held
        if equation is None:
            return
        if equation.push < self.settings.push_calm:
            held.append(equation)
            self._held_time += equation.span
        while held and self._held_time > self.settings.push_hold:
            self._held_time -= held[0].span
            self._correct_by_moments(held.popleft())

    def _correct_by_moments(self, equation: LoadEquation) -> None:
        s, rows = self.settings, np.zeros((2, self._size))
        rows[:, H], rows[:, S] = equation.rows[:, :3], equation.rows[:, 3] + equation.residual
        rows[:, D], rows[:, J] = equation.late, equation.inertia
        if self._sensors is not None:
            rows[:, SIZE:] = equation.sensors
        links = equation.links
        residual = equation.residual - rows.dot(self.state) - links.dot(self.links.errors)
        # Noise of the velocities would look like height: the gain of the height uses the
        # acceleration by the foot forces, whose noise is independent of it.
        upward, height = equation.upward, equation.height
        kinematic = rows[:, H].dot(upward)  # a larger or opposite value would make it diverge
        measured = np.clip(height, np.minimum(kinematic, 0.0), np.maximum(kinematic, 0.0))
        instrumental_rows = rows.copy()
        instrumental_rows[:, H] += np.outer(measured - kinematic, upward)
        rows[:, H] -= np.outer(np.where(measured != 0.0, 0.0, kinematic), upward)
        wrong = (s.moment ** 2 + (s.momentum * equation.spin) ** 2
                 + (s.push_lever * equation.push) ** 2 + equation.uncertainty)
        crossed = self.links.crossed()
        PRt = self.covariance.dot(rows.T) + crossed.dot(links.T)
        QRt = crossed.T.dot(rows.T) + self.links.covariance.dot(links.T)
        innovation = rows.dot(PRt) + links.dot(QRt)
        excess = 0.5 * (float(residual.dot(residual))
                        - _OUTLIER * (innovation.item(0) + innovation.item(3)))
        wrong += max(excess - _OUTLIER * (equation.scatter + wrong), 0.0)
        variance = equation.noise / equation.span + equation.repeats * wrong
        innovation[0, 0] += variance
        innovation[1, 1] += variance
        self._correct(PRt, QRt, innovation, instrumental_rows, links, residual,
                      None if measured.any() else upward)

    def _correct(self, PRt: Array, QRt: Array, innovation: Array, instrumental_rows: Array,
                 links: Array, residual: Array, unobserved: Array | None) -> None:
        """
        Correct by rows whose noise is correlated with that of the residual.

        The gain is computed with `instrumental_rows`, the part of the rows that is free of that
        noise. Where the two differ much, such a gain may increase variances, again
        and again: its columns are reduced as far as the variance of the first moment demands.
        Along the direction `unobserved`, (3,), the first moment is not corrected.
        """
        P, crossed = self.covariance, self.links.crossed()
        factor = eigenpy.LLT(innovation)
        gain = factor.solve(instrumental_rows.dot(P) + links.dot(crossed.T)).T
        gain_links = factor.solve(
            instrumental_rows.dot(crossed) + links.dot(self.links.covariance)).T
        if unobserved is not None:
            gain[H] -= np.outer(unobserved, unobserved.dot(gain[H]))
        gain *= self._estimated[:, np.newaxis]
        share = _best_shares(gain[H], PRt[H], innovation)
        gain, gain_links = gain * share, gain_links * share
        self.state += gain.dot(residual)
        self.links.correct(gain, gain_links, PRt, QRt, innovation, residual)
        lost = gain.dot(PRt.T)
        P = P - lost - lost.T + gain.dot(innovation).dot(gain.T)
        self.covariance = 0.5 * (P + P.T)


def _best_shares(gain: Array, PRt: Array, innovation: Array) -> Array:
    """Return the shares, 0 to 1, of the columns of a gain that leave the least variances, (2,)."""
    size = innovation * gain.T.dot(gain) + 1e-30 * np.eye(2)
    a, b, c, d = size.ravel().tolist()
    one, two = (gain * PRt).sum(axis=0).tolist()
    scale = a * d - b * c
    return np.clip(((d * one - b * two) / scale, (a * two - c * one) / scale), 0.0, 1.0)


def _numbers(vector: Array) -> Vector:
    x, y, z = vector.tolist()
    return x, y, z
