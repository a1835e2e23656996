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
f      external force other than at the feet, in the world                    N
s      mass of the unknown load, as a share of the robot's
====== ====================================================================== ====

The carrier is the link to which the load is fixed: its centre of mass p by the model, its
orientation R.

    k' = v + s (v_kin - p') - R' h
    v' = (1 - s) (F + f) / m + g      f' = -f / tau + noise      h', s' = noise

    c_kin = k + noise                                    kinematics
    v_kin = v + s (v_kin - p') - R' h + noise            kinematics
    residual = s (residual + rows_u) + rows_h h + noise  feet, :mod:`hidden_load`

    c = k - s (c_kin - p) + R h                          the centre of mass

with the measured foot force F and the model's mass m. All but ``(1 - s) f`` is linear, and an
estimate of the load holds in any posture. The place of the load, h, is estimated from the moments
of the feet alone: its effect on velocities is smaller than their other errors.

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
covariance. Feet with little normal force are ignored. At rest the height of the CoM is not
observable: it is estimated while the robot accelerates horizontally, and until then rests on the
assumption that the load is near the carrier's centre of mass. Mass errors of what lies beyond the
foot sensors are not observable. The covariance contains no other model error than that one load:
with 5 % and 5 mm of error in every link, the horizontal CoM was off by 0.3 mm instead of 0.06. The
height suffers more, since errors of links that accelerate differently look like a load's height:
with 8 % and 5 mm of error in every link it was 12 to 16 mm off after slow motions (3.5 mm by the
URDF), while its standard deviation was 1 mm.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.com.hidden_load import Carrier, LoadEquation
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import check_positive
from biped_com_ros.core.geometry.pose import Array, Vector
from biped_com_ros.core.signals.filters import NoiseMeter
import eigenpy
import numpy as np

K, V, H, F, S = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12), 12
SIZE = 13

_MOVING = np.ones(SIZE)
_MOVING[H] = 0.0
_CORRECTED = 1.0 - np.outer(1.0 - _MOVING, 1.0 - _MOVING)
"""Entries of the covariance that a correction by kinematics reduces."""
_NO_LOAD = np.eye(3, SIZE, 3)
_KINEMATIC = np.eye(6, SIZE)
_RESPONSE, _SINGLE = 0.01, 1.5
"""
While the effect of an unknown force may exceed noise within the first time, s, every sample is
used. The threshold of a single sample is the second factor times that of a mean.
"""
_NO_DETECTION = [(0.0, 0.0, math.inf, 0.0)] * 3
_OUTLIER = 4.0
"""Squared innovations of a moment beyond this multiple of their variance count less."""
_MEAN_OVER = 0.01
"""The settings give the noise of means over this time, s."""
_WORST = (*[0.001] * 3, *[0.02] * 3)
"""Noise of kinematic position, m, and velocity, m/s, until it has been measured."""


@dataclass(frozen=True, kw_only=True)
class ComFilterSettings:
    """
    Uncertainties: standard deviations, those of forces as shares of the weight.

    Attributes
    ----------
    kinematic_position, kinematic_velocity, acceleration
        Of the kinematic CoM, m and m/s, and of the acceleration by the foot forces, m/s^2, all as
        means over 10 ms: the least ones, to which measured white noise is added.
    moment, momentum
        Of the horizontal CoM by the moments of the feet, m, and the relative error of the model's
        rate of angular momentum; measured white noise is added.
    load_cutoff
        Bandwidth of the comparison of moments, Hz.
    initial_moment, moment_drift
        Of h initially, m, and its random walk, m per square root of a second.
    initial_mass, mass_drift
        Of s initially, and its random walk per square root of a second.
    force_drift, force_time
        Random walk of the external force without a push, share of the weight per square root of a
        second, and the time constant with which it decays, s.
    push_sigmas, push_delay, push_force
        A push begins or ends where the kinematic velocity, smoothed over `push_delay`, s, differs
        by more than `push_sigmas` standard deviations from what the known forces explain. At each
        such sample `push_force`, share of the weight, is added to the external force's deviation.
    push_lever
        Of the point where a push acts from the CoM, m.
    least_acceleration
        Horizontal acceleration, m/s^2, above which moments determine the height of the load, if
        it exceeds measured noise, too.
    push_calm, push_hold
        Moments are used where the external force is less than this share of the weight, and no
        push begins within `push_hold`, s, after them.
    unknown_acceleration
        Of the CoM while the foot forces are unknown, m/s^2.
    longest_gap
        Gap in the inputs after which position and velocity are initialized again, s; the
        estimated load is kept.

    """

    kinematic_position: float = 0.00001
    kinematic_velocity: float = 0.0001
    acceleration: float = 0.02
    moment: float = 0.00001
    momentum: float = 0.005
    load_cutoff: float = 3.0
    initial_moment: float = 0.015
    moment_drift: float = 0.00001
    initial_mass: float = 0.1
    mass_drift: float = 0.0003
    force_drift: float = 0.0003
    force_time: float = 10.0
    push_sigmas: float = 3.8
    push_delay: float = 0.02
    push_force: float = 0.1
    push_lever: float = 0.3
    least_acceleration: float = 0.02
    push_calm: float = 0.003
    push_hold: float = 0.1
    unknown_acceleration: float = 3.0
    longest_gap: float = 0.5

    def __post_init__(self) -> None:
        check_positive('the CoM filter', self)


class KinematicCom(NamedTuple):
    """
    The kinematic CoM at an instant, in the world.

    Attributes
    ----------
    com, velocity
        Centre of mass by the model, m, and its velocity, m/s; shape (3,).
    carrier
        Motion of the link with the unknown load.

    """

    com: Array
    velocity: Array
    carrier: Carrier


class ComFilter:
    """
    Estimates the fused centre of mass.

    Parameters
    ----------
    mass
        Of the model, kg.
    settings
        Uncertainties.
    gravity
        m/s^2.

    Attributes
    ----------
    state, covariance
        Shape (13,) and (13, 13) in the order k, v, h, f, s.
    is_started
        Whether there is an estimate.
    velocity_change
        Change of the velocity by the samples since the last update, m/s; see
        :meth:`detects_push`.

    """

    def __init__(self, mass: float, settings: ComFilterSettings = ComFilterSettings(),
                 gravity: float = GRAVITY) -> None:
        self._mass, self._gravity, self._weight = mass, gravity, mass * gravity
        self.settings = settings
        self._motion: tuple[Vector, Vector, Vector, float] | None = None
        self.state, self.covariance = np.zeros(SIZE), np.zeros((SIZE, SIZE))
        self._transition = A = np.eye(SIZE)
        # Views of what changes in it: writing by lists of indices takes several times as long.
        self._force_share, self._force_decay = (
            np.einsum('ii->i', A[V, F]), np.einsum('ii->i', A[F, F]))
        self._drift = np.zeros(SIZE)
        self._drift[H], self._drift[S] = settings.moment_drift ** 2, settings.mass_drift ** 2
        self._drift[F] = (settings.force_drift * self._weight) ** 2
        self._least_noise = np.repeat(
            (settings.kinematic_position ** 2, settings.kinematic_velocity ** 2), 3)
        self._kinematic_noise, self._force_noise = NoiseMeter(_WORST), NoiseMeter(
            [0.01 * self._weight] * 3)
        self.reset()

    @property
    def com(self) -> Array:
        """Centre of mass, shape (3,), m."""
        return self.state[K] - self.bias

    @property
    def com_covariance(self) -> Array:
        """Of :attr:`com`, shape (3, 3), m^2."""
        rows = np.eye(3, SIZE)
        rows[:, H], rows[:, S] = self._rotation, -self._lever
        return rows @ self.covariance @ rows.T

    @property
    def velocity(self) -> Array:
        """Its velocity, shape (3,), m/s."""
        return self.state[V]

    @property
    def velocity_covariance(self) -> Array:
        """Of :attr:`velocity`, shape (3, 3), m^2/s^2."""
        return self.covariance[V, V]

    @property
    def bias(self) -> Array:
        """Error of the kinematic CoM, along the axes of the world, shape (3,), m."""
        x = self.state
        return x.item(S) * self._lever - self._rotation.dot(x[H])

    def detects_push(self, dt: float, difference: Vector) -> bool:
        """
        Return whether a kinematic velocity indicates a push; call it for every sample.

        Parameters
        ----------
        dt
            Time since the sample before, s.
        difference
            Kinematic velocity minus the velocity propagated by :attr:`motion`, m/s.

        """
        share, one = min(dt / self.settings.push_delay, 1.0), _SINGLE * self.settings.push_sigmas
        found, mean_innovation, change = (
            self._responds, self._mean_innovation, self.velocity_change)
        for axis, (now, (expected, per_metre, limit, gain)) in enumerate(
                zip(difference, self._detection)):
            now -= expected
            change[axis] += gain * (now - change[axis])
            # In standard deviations, which change as the noise of the sensors gets known.
            now *= per_metre
            mean_innovation[axis] = mean = mean_innovation[axis] + share * (
                now - mean_innovation[axis])
            if abs(now) > one or abs(mean) > limit:
                found = True
        return found

    @property
    def motion(self) -> tuple[Vector, Vector, Vector, float]:
        """
        Return what the estimate is propagated by.

        Centre of mass, m, velocity, m/s, the part of the acceleration that is not caused by the
        feet, m/s^2, and the inverse of the estimated mass, 1/kg.
        """
        if self._motion is None:
            x, share = self.state, (1.0 - self.state.item(S)) / self._mass
            beside = share * x[F]
            beside[2] -= self._gravity
            self._motion = _numbers(self.com), _numbers(x[V]), _numbers(beside), share
        return self._motion

    @property
    def external_force(self) -> Array:
        """Force on the robot other than at its feet, shape (3,), N."""
        return self.state[F]

    @property
    def mass(self) -> float:
        """Mass estimated from the foot forces, kg."""
        return self._mass / (1.0 - self.state.item(S))

    def reset(self) -> None:
        """Forget everything, the load too."""
        self.is_started = False
        self._motion = None
        self.velocity_change = [0.0] * 3
        self._mean_innovation = [0.0] * 3
        self._held: deque[LoadEquation] = deque()
        self._held_time = 0.0
        self._rotation, self._lever, self._velocity_rows = np.eye(3), np.zeros(3), _NO_LOAD
        self._detection, self._responds = _NO_DETECTION, False
        self._kinematic_noise.reset()
        self._force_noise.reset()
        self.state[:] = 0.0
        self.covariance[:] = 0.0
        diagonal = self.covariance.reshape(-1)[::SIZE + 1]
        diagonal[H] = self.settings.initial_moment ** 2
        diagonal[S] = self.settings.initial_mass ** 2

    def update(self, dt: float, kinematic_com: KinematicCom | None, force: Array | None,
               equation: LoadEquation | None = None, count: int = 1) -> None:
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

        """
        self._motion, self.velocity_change = None, [0.0] * 3
        if self.is_started and 0.0 < dt <= self.settings.longest_gap:
            self._predict(dt, force, count)
        elif kinematic_com is None:
            return
        else:
            self._start(kinematic_com)
        if kinematic_com is None:
            self._velocity_rows, self._detection = _NO_LOAD, _NO_DETECTION
        else:
            self._correct_by_kinematics(kinematic_com, dt, count)
        self._apply_held(equation)

    def _start(self, kinematic_com: KinematicCom) -> None:
        """Start at the kinematic CoM, with the load as far as it is known."""
        s, x, P = self.settings, self.state, self.covariance
        self.is_started = True
        self._mean_innovation = [0.0] * 3
        self._kinematic_noise.reset()
        self._force_noise.reset()
        moving = [*range(6), *range(9, 12)]
        x[moving], P[moving], P[:, moving] = 0.0, 0.0, 0.0
        by_load = self._rows(kinematic_com)[3:]
        x[K], x[V] = kinematic_com.com, kinematic_com.velocity - by_load @ x
        by_load[:, V] = 0.0
        P[V] = -by_load @ P
        P[:, V] = P[V].T
        P[V, V] = -by_load @ P[:, V] + 0.1 ** 2 * np.eye(3)
        P[K, K] = _WORST[0] ** 2 * np.eye(3)
        P[F, F] = (s.force_drift * self._weight) ** 2 * np.eye(3)

    def _rows(self, kinematic_com: KinematicCom) -> Array:
        """Return the observation rows of the kinematic CoM and its velocity, (6, 13)."""
        carrier = kinematic_com.carrier
        rows = _KINEMATIC.copy()
        rows[3:, H] = -carrier.turning
        rows[3:, S] = kinematic_com.velocity - carrier.velocity
        self._rotation, self._lever = carrier.rotation, kinematic_com.com - carrier.point
        self._velocity_rows = rows[3:]
        return rows

    def _predict(self, dt: float, force: Array | None, count: int) -> None:
        s, x, A = self.settings, self.state, self._transition
        share, decay = (1.0 - x.item(S)) / self._mass, math.exp(-dt / s.force_time)
        if force is None:  # it may be supported, or not
            acceleration, rough = share * x[F], s.unknown_acceleration ** 2
            A[V, S] = 0.0
        else:
            push = x[F] + force
            acceleration = share * push
            acceleration[2] -= self._gravity
            noise = self._force_noise.update(force, dt, count).max().item()
            rough = s.acceleration ** 2 * _MEAN_OVER / dt + noise * share ** 2
            A[V, S] = (-dt / self._mass) * push
        x[K] += dt * (self._velocity_rows.dot(x) + 0.5 * dt * acceleration)
        x[V] += dt * acceleration
        x[F] *= decay
        A[K, 3:] = dt * self._velocity_rows[:, 3:]
        self._force_share[:], self._force_decay[:] = dt * share, decay
        self.covariance = P = A.dot(self.covariance).dot(A.T)
        diagonal = P.reshape(-1)[::SIZE + 1]
        diagonal += dt * self._drift
        diagonal[V] += rough * dt * dt

    def _correct_by_kinematics(self, kinematic_com: KinematicCom, dt: float, count: int) -> None:
        rows = self._rows(kinematic_com)
        residual = np.concatenate((kinematic_com.com, kinematic_com.velocity))
        noise = self._kinematic_noise.update(residual, dt, count) + self._least_noise
        residual -= rows.dot(self.state)
        PHt = self.covariance.dot(rows.T)
        innovation = rows.dot(PHt)
        diagonal = innovation.reshape(-1)[::7]
        if self._detect_push(residual[3:], diagonal[3:], noise[3:], dt, count):
            np.dot(self.covariance, rows.T, out=PHt)
            np.dot(rows, PHt, out=innovation)
        variances = diagonal[3:].copy(), count * noise[3:]
        diagonal += noise
        weights = eigenpy.LLT(innovation).solve(PHt.T)  # less than half of NumPy's time
        # The load is not corrected by it, but its uncertainty is taken into account.
        self.state += _MOVING * residual.dot(weights)
        P = self.covariance
        P -= _CORRECTED * PHt.dot(weights)
        self.covariance = 0.5 * (P + P.T)
        self._prepare_detection(
            rows[3:].dot(self.state) - self.state[V], *variances, dt / count, count)

    def _prepare_detection(self, mean: Array, expected: Array, white: Array, dt: float,
                           count: int) -> None:
        """Prepare the thresholds of :meth:`detects_push`, by variances of samples `dt` apart."""
        s = self.settings
        # Of force and mass together: here it has no effect which of them is uncertain.
        by = self._transition[V, 9:]
        drift = (by.dot(self.covariance[9:, 9:]) * by).sum(axis=1)
        white_in_response = (count * dt / _RESPONSE) ** 2 * white
        self._responds = bool((drift > white_in_response).any())
        passed = 0.5 * min(dt / s.push_delay, 1.0)
        self._detection = [
            (offset, (variance + noise) ** -0.5,
             s.push_sigmas * math.sqrt((variance + passed * noise) / (variance + noise)),
             variance / (variance + noise))
            for offset, variance, noise in zip(
                mean.tolist(), expected.tolist(), white.tolist())]

    def _detect_push(self, innovation: Array, expected: Array, noise: Array, dt: float,
                     count: int) -> bool:
        """
        Increase the uncertainty of the external force along axes with a large innovation.

        Takes innovations of the velocity and their variances, expected and by noise; returns
        whether there is such an axis.
        """
        s = self.settings
        limit, passed = s.push_sigmas ** 2, 0.5 * min(dt / (count * s.push_delay), 1.0)
        missed, pushed = [0.0] * 3, [False] * 3
        for axis, (now, variance, white) in enumerate(zip(
                innovation.tolist(), expected.tolist(), noise.tolist())):
            each, squared = count * white, now * now
            missed[axis] = self._mean_innovation[axis] ** 2 * (variance + each)
            pushed[axis] = missed[axis] > limit * (variance + passed * each)
            if squared > _SINGLE ** 2 * limit * (variance + white):
                missed[axis], pushed[axis] = squared, True
        # A push may have any direction, but is seldom vertical.
        pushed[0] = pushed[1] = pushed[0] or pushed[1]
        for axis in range(3):
            if pushed[axis]:
                self._inflate(axis, missed[axis])
        return any(pushed)

    def _inflate(self, axis: int, missed: float) -> None:
        """Allow any force along an axis; `missed`: squared error of the velocity, m^2/s^2."""
        # How long it has acted is unknown: the velocity becomes uncertain, too, and moments
        # measured meanwhile contain the push.
        self._held.clear()
        self._held_time = 0.0
        self.covariance[3 + axis, 3 + axis] += missed
        self.covariance[9 + axis, 9 + axis] += (self.settings.push_force * self._weight) ** 2

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
        s, rotation = self.settings, self._rotation
        rows = np.zeros((2, SIZE))
        rows[:, H], rows[:, S] = equation.rows[:, :3], equation.rows[:, 3] + equation.residual
        residual = equation.residual - rows.dot(self.state)
        # Noise of the velocities would look like height: the gain of the height uses the
        # acceleration by the foot forces, whose noise is independent of it.
        in_world, height = equation.rows[:, :3].dot(rotation.T), equation.height
        kinematic = in_world[:, 2]  # a larger or opposite value would make it diverge
        measured = np.clip(height, np.minimum(kinematic, 0.0), np.maximum(kinematic, 0.0))
        instrument = rows.copy()
        in_world[:, 2] = measured
        instrument[:, H] = in_world.dot(rotation)
        in_world[:, 2] = np.where(measured != 0.0, kinematic, 0.0)
        rows[:, H] = in_world.dot(rotation)
        wrong = (s.moment ** 2 + (s.momentum * equation.spin) ** 2
                 + (s.push_lever * equation.push) ** 2)
        excess = 0.5 * (float(residual.dot(residual)) - _OUTLIER * np.einsum(
            'ij,jk,ik', rows, self.covariance, rows).item())
        wrong += max(excess - _OUTLIER * (equation.scatter + wrong), 0.0)
        self._correct(rows, instrument, residual,
                      equation.noise / equation.span + equation.repeats * wrong,
                      None if measured.any() else rotation[2])

    def _correct(self, rows: Array, instrument: Array, residual: Array, variance: float,
                 unobserved: Array | None) -> None:
        """
        Correct by rows whose noise is correlated with that of the residual.

        The gain is computed with an instrumental variable, `instrument`, the part of the rows that
        is free of that noise. Along the direction `unobserved`, (3,), the first moment is not
        corrected.
        """
        P = self.covariance
        PRt = P.dot(rows.T)
        innovation = rows.dot(PRt)
        innovation[0, 0] += variance
        innovation[1, 1] += variance
        gain = eigenpy.LLT(innovation).solve(instrument.dot(P)).T
        if unobserved is not None:
            gain[H] -= np.outer(unobserved, unobserved.dot(gain[H]))
        self.state += gain.dot(residual)
        lost = gain.dot(PRt.T)
        P = P - lost - lost.T + gain.dot(innovation).dot(gain.T)
        self.covariance = 0.5 * (P + P.T)


def _numbers(vector: Array) -> Vector:
    x, y, z = vector.tolist()
    return x, y, z
