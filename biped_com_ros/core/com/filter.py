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
A centre of mass that stays right when the model is not: kinematics and foot forces fused.

Kinematics tell how the CoM moves, quickly but with the URDF's error; the feet tell how much weight
there is and where, slowly. A Kalman filter joins them. Its state:

====== ====================================================================== ====
k      centre of mass in the world as kinematics show it                      m
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

with the measured foot force F and the model's mass m. All but ``(1 - s) f`` is linear, and what
is learnt in one posture holds in another. Where the load is, h, is learnt from the moments of the
feet alone: its traces in velocities are smaller than what else is wrong with those.

How noisy velocities, forces and moments are is measured: white noise shows in the fourth
differences of signals that are smooth themselves (:class:`NoiseMeter`). With good sensors the
estimate follows the kinematics, with bad ones it is calmer. What no meter sees counts by its
surprise: a moment that is off by more than twice what is expected, as at the touch of a foot, is
taken to be as wrong as it surprises.

The rows of the height of h are accelerations. By noisy joint velocities, whose noise is in the
residual, too, they would teach a height where nothing accelerates. So what is learnt of it goes by
accelerations that stand out against noise, mostly those that the feet feel: instruments, in the
words of regression. Where none does the height stays, and only levels are learnt.

Assumptions. The load is fixed to the carrier. Where an external force acts is unknown: while one
is felt, and shortly before it was, the moments of the feet do not count. A lasting vertical force
cannot be told from weight: what lasts is weight. A push is noticed 20 ms after it began, by what
it has done to the velocity; until then the velocity is off by more than its covariance says. Feet
that press less than a threshold carry nothing. At rest the feet say nothing on the height of the
CoM: it is learnt while the robot accelerates horizontally, and until then is as good as the
assumption that the load is near the carrier's centre of mass. Errors of the masses of what lies
beyond the foot sensors are not seen. The covariance knows of no other errors than that one load's:
where every link was wrong by 5 % and 5 mm, the level CoM was off by 0.3 mm instead of 0.06. The
height suffers more: what links that accelerate differently are wrong by looks like a load's
height. Where every link was wrong by 8 % and 5 mm it was 12 to 16 mm off after slow motions, by
the URDF 3.5 mm, while its standard deviation was 1 mm.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.com.hidden_load import Carrier, LoadEquation
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, Vector
from biped_com_ros.core.signals.filters import NoiseMeter
import eigenpy
import numpy as np

K, V, H, F, S = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12), 12
SIZE = 13

_MOVING = np.ones(SIZE)
_MOVING[H] = 0.0
_LEARNT = 1.0 - np.outer(1.0 - _MOVING, 1.0 - _MOVING)
"""What kinematics teach, and of which covariances they take something."""
_UNSEEN = np.eye(3, SIZE, 3)
_KINEMATIC = np.eye(6, SIZE)
_SOON, _SURE = 0.01, 1.5
"""
While an unknown force may move more than noise in so much time, s, each reading counts. A single
one has to surprise by so many times more than a mean, since there are many.
"""
_UNWATCHED = [(0.0, 0.0, math.inf, 0.0)] * 3
_SURPRISING = 4.0
"""A moment that surprises by the root of so many times what is expected counts little."""
_MEAN_OVER = 0.01
"""For which the settings give the noise of means, s."""
_WORST = (*[0.001] * 3, *[0.02] * 3)
"""Noise of kinematic position, m, and velocity, m/s, until it has been measured."""


@dataclass(frozen=True)
class ComFilterSettings:
    """
    How uncertain everything is; standard deviations, those of forces as shares of the weight.

    Attributes
    ----------
    kinematic_position, kinematic_velocity, acceleration
        Of the kinematic CoM, m and m/s, and of what the foot forces say, m/s^2, all as means over
        10 ms: what there is at least; measured white noise comes on top.
    moment, momentum
        Of the horizontal CoM that the moments of the feet tell, m, and in addition the error of
        the model's rate of angular momentum as a share of it; measured white noise comes on top.
    load_cutoff
        Bandwidth of the comparison of moments, Hz.
    initial_moment, moment_drift
        Of h at first, m, and how it wanders, m per square root of a second.
    initial_mass, mass_drift
        Of s at first, and how it wanders per square root of a second.
    force_drift, force_time
        How the external force wanders while nobody pushes, share of the weight per square root
        of a second, and how soon it is forgotten, s.
    push_sigmas, push_delay, push_force
        A push begins or ends where the kinematic velocity, smoothed over `push_delay`, s, differs
        by more than so many standard deviations from what the known forces explain. At each such
        sample the external force becomes uncertain by `push_force`, share of the weight.
    push_lever
        Of the point where a push acts from the CoM, m.
    least_acceleration
        Horizontal one, m/s^2, from which on the moments tell the height of the load, if it stands
        out against measured noise, too.
    push_calm, push_hold
        Moments count where less external force than this is felt, share of the weight, and for so
        long after them no push begins, s.
    unknown_acceleration
        Of the CoM while the foot forces are unknown, m/s^2.
    longest_gap
        After a longer silence position and velocity begin anew, s; the load is kept.

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
        for name, value in vars(self).items():
            if not 0.0 < value < np.inf:
                raise ConfigurationError(
                    f'{name} of the CoM filter is {value}; it must be a positive number')


class Seen(NamedTuple):
    """
    What kinematics tell of an instant, in the world.

    Attributes
    ----------
    com, velocity
        Centre of mass by the model, m, and its velocity, m/s; shape (3,).
    carrier
        How the link with the unknown load moves.

    """

    com: Array
    velocity: Array
    carrier: Carrier


class ComFilter:
    """
    The fused centre of mass.

    Parameters
    ----------
    mass
        Of the model, kg.
    settings
        How uncertain everything is.
    gravity
        m/s^2.

    Attributes
    ----------
    state, covariance
        Shape (13,) and (13, 13) in the order k, v, h, f, s.
    is_started
        Whether there is an estimate.
    ahead
        What readings since the last update make of the velocity, m/s; see :meth:`surprises`.

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
        com: Array = self.state[K] - self.bias
        return com

    @property
    def com_covariance(self) -> Array:
        """Of :attr:`com`, shape (3, 3), m^2."""
        rows = np.eye(3, SIZE)
        rows[:, H], rows[:, S] = self._rotation, -self._lever
        covariance: Array = rows @ self.covariance @ rows.T
        return covariance

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
        bias: Array = x.item(S) * self._lever - self._rotation.dot(x[H])
        return bias

    def surprises(self, dt: float, apart: Vector) -> bool:
        """
        Tell whether a kinematic velocity shows a push; to be asked for every reading.

        Parameters
        ----------
        dt
            Time since the reading before, s.
        apart
            By how much it differs from the velocity that goes on by :attr:`motion`, m/s.

        """
        share, one = min(dt / self.settings.push_delay, 1.0), _SURE * self.settings.push_sigmas
        found, surprise, ahead = self._hurries, self._surprise, self.ahead
        for axis, (now, (expected, per_metre, limit, gain)) in enumerate(zip(apart, self._watch)):
            now -= expected
            ahead[axis] += gain * (now - ahead[axis])
            # In standard deviations: what was little while sensors were not known stays little.
            now *= per_metre
            surprise[axis] = mean = surprise[axis] + share * (now - surprise[axis])
            if abs(now) > one or abs(mean) > limit:
                found = True
        return found

    @property
    def motion(self) -> tuple[Vector, Vector, Vector, float]:
        """
        Return by what it goes on.

        Centre of mass, m, velocity, m/s, the part of the acceleration that is not by the feet,
        m/s^2, and by how much an impulse of the feet moves it, 1/kg.
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
        """Return the mass that the feet have felt, kg."""
        return self._mass / (1.0 - self.state.item(S))

    def reset(self) -> None:
        """Forget everything, the load too."""
        self.is_started = False
        self._motion = None
        self.ahead = [0.0] * 3
        self._surprise = [0.0] * 3
        self._held: deque[LoadEquation] = deque()
        self._held_time = 0.0
        self._rotation, self._lever, self._shown = np.eye(3), np.zeros(3), _UNSEEN
        self._watch, self._hurries = _UNWATCHED, False
        self._kinematic_noise.reset()
        self._force_noise.reset()
        self.state[:] = 0.0
        self.covariance[:] = 0.0
        diagonal = self.covariance.reshape(-1)[::SIZE + 1]
        diagonal[H] = self.settings.initial_moment ** 2
        diagonal[S] = self.settings.initial_mass ** 2

    def update(self, dt: float, seen: Seen | None, force: Array | None,
               equation: LoadEquation | None = None, count: int = 1) -> None:
        """
        Take an instant.

        Parameters
        ----------
        dt
            Time since the instant before, s; not used for the first.
        seen
            What kinematics tell; None while no sole stands.
        force
            Sum of the foot forces in the world, (3,), N; zero in the air; None if unknown.
        equation
            What the moments of the feet tell; None if unknown.
        count
            Of how many readings all that is the mean.

        """
        self._motion, self.ahead = None, [0.0] * 3
        if self.is_started and 0.0 < dt <= self.settings.longest_gap:
            self._predict(dt, force, count)
        elif seen is None:
            return
        else:
            self._start(seen)
        if seen is None:
            self._shown, self._watch = _UNSEEN, _UNWATCHED
        else:
            self._correct_by_kinematics(seen, dt, count)
        self._hear_out(equation)

    def _start(self, seen: Seen) -> None:
        """Begin where the kinematics say, by the load as far as it is known."""
        s, x, P = self.settings, self.state, self.covariance
        self.is_started = True
        self._surprise = [0.0] * 3
        self._kinematic_noise.reset()
        self._force_noise.reset()
        moving = [*range(6), *range(9, 12)]
        x[moving], P[moving], P[:, moving] = 0.0, 0.0, 0.0
        by_load = self._rows(seen)[3:]
        x[K], x[V] = seen.com, seen.velocity - by_load @ x
        by_load[:, V] = 0.0
        P[V] = -by_load @ P
        P[:, V] = P[V].T
        P[V, V] = -by_load @ P[:, V] + 0.1 ** 2 * np.eye(3)
        P[K, K] = _WORST[0] ** 2 * np.eye(3)
        P[F, F] = (s.force_drift * self._weight) ** 2 * np.eye(3)

    def _rows(self, seen: Seen) -> Array:
        """Return how the kinematic CoM and its velocity depend on the state, (6, 13)."""
        carrier = seen.carrier
        rows = _KINEMATIC.copy()
        rows[3:, H] = -carrier.turning
        rows[3:, S] = seen.velocity - carrier.velocity
        self._rotation, self._lever = carrier.rotation, seen.com - carrier.point
        self._shown = rows[3:]
        return rows

    def _predict(self, dt: float, force: Array | None, count: int) -> None:
        s, x, A = self.settings, self.state, self._transition
        share, decay = (1.0 - x.item(S)) / self._mass, math.exp(-dt / s.force_time)
        if force is None:  # the ground may carry it, or not
            acceleration, rough = share * x[F], s.unknown_acceleration ** 2
            A[V, S] = 0.0
        else:
            push = x[F] + force
            acceleration = share * push
            acceleration[2] -= self._gravity
            noise = self._force_noise.update(force, dt, count).max().item()
            rough = s.acceleration ** 2 * _MEAN_OVER / dt + noise * share ** 2
            A[V, S] = (-dt / self._mass) * push
        x[K] += dt * (self._shown.dot(x) + 0.5 * dt * acceleration)
        x[V] += dt * acceleration
        x[F] *= decay
        A[K, 3:] = dt * self._shown[:, 3:]
        self._force_share[:], self._force_decay[:] = dt * share, decay
        self.covariance = P = A.dot(self.covariance).dot(A.T)
        diagonal = P.reshape(-1)[::SIZE + 1]
        diagonal += dt * self._drift
        diagonal[V] += rough * dt * dt

    def _correct_by_kinematics(self, seen: Seen, dt: float, count: int) -> None:
        rows = self._rows(seen)
        residual = np.concatenate((seen.com, seen.velocity))
        noise = self._kinematic_noise.update(residual, dt, count) + self._least_noise
        residual -= rows.dot(self.state)
        PHt = self.covariance.dot(rows.T)
        innovation = rows.dot(PHt)
        diagonal = innovation.reshape(-1)[::7]
        if self._notice_push(residual[3:], diagonal[3:], noise[3:], dt, count):
            np.dot(self.covariance, rows.T, out=PHt)
            np.dot(rows, PHt, out=innovation)
        variances = diagonal[3:].copy(), count * noise[3:]
        diagonal += noise
        weights = eigenpy.LLT(innovation).solve(PHt.T)  # less than half of NumPy's time
        # The load is not learnt from it, but counts with its uncertainty.
        self.state += _MOVING * residual.dot(weights)
        P = self.covariance
        P -= _LEARNT * PHt.dot(weights)
        self.covariance = 0.5 * (P + P.T)
        self._watch_out(rows[3:].dot(self.state) - self.state[V], *variances, dt / count, count)

    def _watch_out(self, apart: Array, expected: Array, white: Array, dt: float,
                   count: int) -> None:
        """Prepare what :meth:`surprises` compares, by variances of readings `dt` apart."""
        s = self.settings
        # Of force and mass together: which of them it is takes long to tell, but moves nothing.
        by = self._transition[V, 9:]
        drift = (by.dot(self.covariance[9:, 9:]) * by).sum(axis=1)
        white_soon = (count * dt / _SOON) ** 2 * white
        self._hurries = bool((drift > white_soon).any())
        passed = 0.5 * min(dt / s.push_delay, 1.0)
        self._watch = [
            (mean, (variance + noise) ** -0.5,
             s.push_sigmas * math.sqrt((variance + passed * noise) / (variance + noise)),
             variance / (variance + noise))
            for mean, variance, noise in zip(
                apart.tolist(), expected.tolist(), white.tolist())]

    def _notice_push(self, innovation: Array, expected: Array, noise: Array, dt: float,
                     count: int) -> bool:
        """
        Open up for an external force along the axes where the velocity surprises.

        Innovations and their variances, expected and by noise; returns whether there is such a
        force.
        """
        s = self.settings
        limit, passed = s.push_sigmas ** 2, 0.5 * min(dt / (count * s.push_delay), 1.0)
        missed, pushed = [0.0] * 3, [False] * 3
        for axis, (now, variance, white) in enumerate(zip(
                innovation.tolist(), expected.tolist(), noise.tolist())):
            each, squared = count * white, now * now
            missed[axis] = self._surprise[axis] ** 2 * (variance + each)
            pushed[axis] = missed[axis] > limit * (variance + passed * each)
            if squared > _SURE ** 2 * limit * (variance + white):
                missed[axis], pushed[axis] = squared, True
        # It may have any direction, but seldom is one that lifts.
        pushed[0] = pushed[1] = pushed[0] or pushed[1]
        for axis in range(3):
            if pushed[axis]:
                self._open_up(axis, missed[axis])
        return any(pushed)

    def _open_up(self, axis: int, missed: float) -> None:
        """Expect any force along an axis; the velocity is off by the root of `missed`, m/s."""
        # Nobody knows for how long it has acted: the velocity begins anew, too, and what the
        # moments told meanwhile was told of the push.
        self._held.clear()
        self._held_time = 0.0
        self.covariance[3 + axis, 3 + axis] += missed
        self.covariance[9 + axis, 9 + axis] += (self.settings.push_force * self._weight) ** 2

    def _hear_out(self, equation: LoadEquation | None) -> None:
        """Use what the moments told a moment ago, if nobody has been found to push since."""
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
        # Noise of the velocities would look like height: whether and how much is learnt of that
        # goes by the acceleration that the feet feel, which has nothing to do with it.
        in_world, height = equation.rows[:, :3].dot(rotation.T), equation.height
        seen = in_world[:, 2]  # more than that, or the opposite, would make it diverge
        felt = np.clip(height, np.minimum(seen, 0.0), np.maximum(seen, 0.0))
        witness = rows.copy()
        in_world[:, 2] = felt
        witness[:, H] = in_world.dot(rotation)
        in_world[:, 2] = np.where(felt != 0.0, seen, 0.0)
        rows[:, H] = in_world.dot(rotation)
        wrong = (s.moment ** 2 + (s.momentum * equation.spin) ** 2
                 + (s.push_lever * equation.push) ** 2)
        surprise = 0.5 * (float(residual.dot(residual)) - _SURPRISING * np.einsum(
            'ij,jk,ik', rows, self.covariance, rows).item())
        wrong += max(surprise - _SURPRISING * (equation.scatter + wrong), 0.0)
        self._correct(rows, witness, residual,
                      equation.noise / equation.span + equation.repeats * wrong,
                      None if felt.any() else rotation[2])

    def _correct(self, rows: Array, witness: Array, residual: Array, variance: float,
                 unfelt: Array | None) -> None:
        """
        Correct by rows whose noise is that of the residual, too.

        A `witness`, the part of them that is free of that noise, says how much is learnt, and of
        what: an instrumental variable. Along the direction `unfelt`, (3,), the first moment stays:
        what noise of orientations would tell of it is none.
        """
        P = self.covariance
        PRt = P.dot(rows.T)
        innovation = rows.dot(PRt)
        innovation[0, 0] += variance
        innovation[1, 1] += variance
        gain = eigenpy.LLT(innovation).solve(witness.dot(P)).T
        if unfelt is not None:
            gain[H] -= np.outer(unfelt, unfelt.dot(gain[H]))
        self.state += gain.dot(residual)
        lost = gain.dot(PRt.T)
        P = P - lost - lost.T + gain.dot(innovation).dot(gain.T)
        self.covariance = 0.5 * (P + P.T)


def _numbers(vector: Array) -> Vector:
    x, y, z = vector.tolist()
    return x, y, z
