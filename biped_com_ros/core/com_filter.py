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

Kinematics tell how the CoM moves, quickly but with the URDF's error; the feet tell where it really
is, through the moment that their force has about it, slowly and only as far as angular momentum
is known. A Kalman filter joins them. Its state, in the world:

====== ====================================================================== ====
c      centre of mass                                                         m
v      its velocity                                                           m/s
b      what the kinematic CoM is off by, along level axes headed like the base m
f      external force other than at the feet                                  N
w      weight that the model lacks                                            N
====== ====================================================================== ====

    c' = v      v' = (F + f - w e_z) / m + g      b' = noise      f' = -f / tau + noise
    c_kin = c + R_z b + noise                 kinematics
    v_kin = v + noise                         kinematics
    M - L' = c x F + noise                    feet, x and y; L' by :class:`ModelWrench`

with the measured foot wrench (F, M) about the world's origin and the mass m = m_model + w / g.

Assumptions. Where an external force acts is unknown: while one is felt the moment equation is
left out. The bias moves with the base's heading and changes slowly. A lasting vertical force
cannot be told from weight: what lasts is weight. Swing feet carry nothing: their forces are to be
left out of F. At rest the feet say nothing on the height of the CoM (Muscolo et al. 2017), so that
b_z is learnt from horizontal acceleration only, slowly, and as well as L' is known. Errors of the
masses of what lies beyond the foot sensors are not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.com import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.pose import Array, cross
from biped_com_ros.core.zmp import Comparison
import numpy as np

C, V, B, F, W = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12), 12
SIZE = 13


@dataclass(frozen=True)
class ComFilterSettings:
    """
    How uncertain everything is; standard deviations, those of forces as shares of the weight.

    Attributes
    ----------
    kinematic_position, kinematic_velocity
        Of the kinematic CoM apart from its bias, m, and of its velocity, m/s. Like the next two
        per sample, but large enough for errors that last over many samples.
    moment, momentum
        Of the horizontal CoM that the moments of the feet tell, m, and in addition the error of
        the model's rate of angular momentum as a share of it.
    initial_bias, bias_drift
        Of the bias at first, m, and how it wanders, m per square root of a second.
    force_drift, force_time
        How the external force wanders while nobody pushes, share of the weight per square root
        of a second, and how soon it is forgotten, s.
    push_velocity, push_speed, push_delay, push_force
        A push begins or ends where the kinematic velocity, smoothed over `push_delay`, s, differs
        by more than `push_velocity`, m/s, and `push_speed` times the speed from what the known
        forces explain. At each such sample the external force becomes uncertain by `push_force`,
        share of the weight.
    calm, push_time
        The moment equation is left out while the external force is above `calm`, share of the
        weight, and for `push_time`, s, after it and after any surprise: its lever is unknown.
    initial_weight, weight_drift
        Of the weight that the model lacks.
    acceleration, unknown_acceleration
        Of what the foot forces say, and of the CoM while they are unknown, m/s^2.
    longest_gap
        After a longer silence position and velocity begin anew, s; bias and weight are kept.

    """

    kinematic_position: float = 0.01
    kinematic_velocity: float = 0.02
    moment: float = 0.01
    momentum: float = 0.1
    initial_bias: float = 0.015
    bias_drift: float = 0.0005
    force_drift: float = 0.0003
    force_time: float = 10.0
    push_velocity: float = 0.008
    push_delay: float = 0.03
    push_speed: float = 0.06
    push_force: float = 0.1
    calm: float = 0.01
    push_time: float = 0.2
    initial_weight: float = 0.1
    weight_drift: float = 0.003
    acceleration: float = 0.02
    unknown_acceleration: float = 3.0
    longest_gap: float = 0.5

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < np.inf:
                raise ConfigurationError(
                    f'{name} of the CoM filter is {value}; it must be a positive number')


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
        Shape (13,) and (13, 13) in the order c, v, b, f, w.
    is_started
        Whether there is an estimate.

    """

    def __init__(self, mass: float, settings: ComFilterSettings = ComFilterSettings(),
                 gravity: float = GRAVITY) -> None:
        self._mass, self._gravity, self._weight = mass, gravity, mass * gravity
        self.settings = settings
        self.state, self.covariance = np.zeros(SIZE), np.zeros((SIZE, SIZE))
        self._transition = np.eye(SIZE)
        self.reset()

    @property
    def com(self) -> Array:
        """Centre of mass, shape (3,), m."""
        return self.state[C]

    @property
    def velocity(self) -> Array:
        """Its velocity, shape (3,), m/s."""
        return self.state[V]

    @property
    def bias(self) -> Array:
        """Offset of the kinematic CoM, along level axes headed like the base, (3,), m."""
        return self.state[B]

    @property
    def bias_in_world(self) -> Array:
        """Offset of the kinematic CoM, along the axes of the world, shape (3,), m."""
        return self._turn() @ self.state[B]

    @property
    def external_force(self) -> Array:
        """Force on the robot other than at its feet, shape (3,), N."""
        return self.state[F]

    @property
    def mass(self) -> float:
        """Return the mass that the feet have felt, kg."""
        return self._mass + float(self.state[W]) / self._gravity

    def reset(self) -> None:
        """Forget everything, the bias and the weight too."""
        s = self.settings
        self.is_started = False
        self._yaw, self._mistrust = (1.0, 0.0), 0.0
        self._surprise = np.zeros(3)
        self.state[:] = 0.0
        self.covariance[:] = 0.0
        diagonal = np.array([*[0.0] * 6, *[s.initial_bias ** 2] * 3, *[0.0] * 3,
                             (s.initial_weight * self._weight) ** 2])
        np.fill_diagonal(self.covariance, diagonal)

    def update(self, dt: float, com: Array | None, velocity: Array | None, heading: Array,
               force: Array | None, comparison: Comparison | None = None,
               delay: float = 0.0) -> None:
        """
        Take an instant.

        Parameters
        ----------
        dt
            Time since the instant before, s; not used for the first.
        com, velocity
            Kinematic, in the world, (3,); None while no sole stands.
        heading
            x axis of the base in the world; only its heading counts.
        force
            Sum of the foot forces in the world, (3,), N; zero in the air; None if unknown.
        comparison
            Filtered wrenches of :class:`ModelWrench`, for the moment equation; None if unknown
            or while no sole stands.
        delay
            Of that filter, s.

        """
        length = float(np.hypot(heading[0], heading[1])) or 1.0
        self._yaw = float(heading[0]) / length, float(heading[1]) / length
        if self.is_started and 0.0 < dt <= self.settings.longest_gap:
            self._predict(dt, force)
        elif com is None:
            return
        else:
            self._start(com, velocity)
        if com is not None:
            self._correct_by_kinematics(com, velocity, dt)
        if comparison is not None and comparison.measured is not None and self._is_calm(dt):
            self._correct_by_moment(comparison, comparison.measured, delay)

    def _start(self, com: Array, velocity: Array | None) -> None:
        """Begin where the kinematic CoM is; the bias, if known, stays."""
        s, P = self.settings, self.covariance
        self.is_started = True
        turn = self._turn()
        self.state[C] = com - turn @ self.state[B]
        self.state[V] = 0.0 if velocity is None else velocity
        self.state[F] = 0.0
        moving = [*range(6), *range(9, 12)]
        P[moving], P[:, moving] = 0.0, 0.0
        of_bias = turn @ P[B, B]
        P[C, B], P[B, C] = -of_bias, -of_bias.T
        P[C, C] = of_bias @ turn.T + s.kinematic_position ** 2 * np.eye(3)
        P[V, V] = (0.3 ** 2 if velocity is None else s.kinematic_velocity ** 2) * np.eye(3)
        P[F, F] = (s.force_drift * self._weight) ** 2 * np.eye(3)

    def _turn(self) -> Array:
        c, s = self._yaw
        return np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))

    def _predict(self, dt: float, force: Array | None) -> None:
        s, x, A = self.settings, self.state, self._transition
        mass, decay = self.mass, np.exp(-dt / s.force_time)
        push = x[F].copy()
        push[2] -= x[W] + self._weight
        if force is not None:
            push += force
        else:
            push[2] += x[W] + self._weight
        acceleration = push / mass
        x[C] += dt * x[V] + 0.5 * dt * dt * acceleration
        x[V] += dt * acceleration
        x[F] *= decay
        A[[0, 1, 2], [3, 4, 5]] = dt
        A[[0, 1, 2], [9, 10, 11]] = 0.5 * dt * dt / mass
        A[[3, 4, 5], [9, 10, 11]] = dt / mass
        A[2, W], A[5, W] = -0.5 * dt * dt / mass, -dt / mass
        A[[9, 10, 11], [9, 10, 11]] = decay
        P = A @ self.covariance @ A.T
        rough = s.acceleration if force is not None else s.unknown_acceleration
        diagonal = P.reshape(-1)[::SIZE + 1]
        diagonal[V] += (rough * dt) ** 2
        diagonal[B] += s.bias_drift ** 2 * dt
        diagonal[F] += (s.force_drift * self._weight) ** 2 * dt
        diagonal[W] += (s.weight_drift * self._weight) ** 2 * dt
        self.covariance = P

    def _correct_by_kinematics(self, com: Array, velocity: Array | None, dt: float) -> None:
        s, x = self.settings, self.state
        rows = 3 if velocity is None else 6
        H, r, noise = np.zeros((rows, SIZE)), np.zeros(rows), np.full(rows, s.kinematic_velocity)
        turn = self._turn()
        H[:3, C], H[:3, B] = np.eye(3), turn
        r[:3] = com - x[C] - turn @ x[B]
        noise[:3] = s.kinematic_position
        if velocity is not None:
            H[3:, V] = np.eye(3)
            r[3:] = velocity - x[V]
            self._notice_push(r[3:], dt)
        self._correct(H, r, noise ** 2)

    def _is_calm(self, dt: float) -> bool:
        """Tell whether no force other than at the feet turns the robot about its CoM."""
        s = self.settings
        self._mistrust = max(self._mistrust - dt, 0.0)
        pushed = float(np.abs(self.state[F]).max()) > s.calm * self._weight
        if pushed:
            self._mistrust = s.push_time
        return not self._mistrust

    def _notice_push(self, innovation: Array, dt: float) -> None:
        """Open up for an external force along the axes where the velocity surprises."""
        s, surprise = self.settings, self._surprise
        surprise += min(dt / s.push_delay, 1.0) * (innovation - surprise)
        limit = s.push_velocity + s.push_speed * float(np.abs(self.state[V]).max())
        if float(np.abs(surprise).max()) < limit:
            return
        self._mistrust = s.push_time
        for axis in np.flatnonzero(np.abs(surprise) > limit):
            self.covariance[9 + axis, 9 + axis] += (s.push_force * self._weight) ** 2

    def _correct_by_moment(self, model: Comparison, measured: Array, delay: float) -> None:
        """Use ``c_x F_z - c_z F_x = L'_y - M_y`` and ``c_y F_z - c_z F_y = M_x - L'_x``."""
        s, x = self.settings, self.state
        fx, fy, fz, mx, my, _ = measured.tolist()
        if not fz > 0.1 * self._weight:
            return
        rate_x, rate_y, _ = (model.model[3:] - cross(model.com, model.model[:3])).tolist()
        cx, cy, cz = (x[C] - delay * x[V]).tolist()
        H = np.zeros((2, SIZE))
        H[0, 0], H[0, 2], H[1, 1], H[1, 2] = 1.0, -fx / fz, 1.0, -fy / fz
        H[:, V] = -delay * H[:, C]
        r = np.array(((rate_y - my) / fz - cx + cz * fx / fz,
                      (mx - rate_x) / fz - cy + cz * fy / fz))
        spun = s.momentum * np.abs((rate_y, rate_x)) / fz
        self._correct(H, r, s.moment ** 2 + spun ** 2 * 100.0)

    def _correct(self, H: Array, residual: Array, variance: Array) -> None:
        P = self.covariance
        PHt = P @ H.T
        gain = np.linalg.solve(H @ PHt + np.diag(variance), PHt.T).T
        self.state += gain @ residual
        P = P - gain @ PHt.T
        self.covariance = 0.5 * (P + P.T)
