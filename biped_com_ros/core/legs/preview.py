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
From a reference of the zero-moment point to a motion of the centre of mass: the cart-table.

A point mass at a constant height h over the plane has its zero-moment point at
``p = c - h/g c''``.
:class:`PreviewController` chooses the jerk of c by optimal control of that system with an
integrator on the error, from a reference that is known some time ahead (Kajita et al. 2003, after
Katayama et al. 1985). The jerk is constant over each interval, so that the acceleration is
continuous.
"""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
import numpy as np

_MAX_DOUBLINGS = 60


class PreviewController:
    """
    Moves a cart on a table so that its zero-moment point follows a reference.

    Parameters
    ----------
    height
        Of the centre of mass over the ground, m.
    dt
        Interval, s.
    horizon
        Time for which the reference is known ahead, s; several times the time constant
        ``sqrt(h/g)`` of the pendulum is needed.
    error_weight, jerk_weight
        Q and R of the quadratic costs.

    Attributes
    ----------
    A, B, C
        State (position, velocity, acceleration) from one interval to the next, (3, 3) and (3,),
        and the zero-moment point from it, (3,).
    preview_gains
        On the reference 1, 2, ... intervals ahead, (N,).
    state_gains, integral_gain
        On the state, (3,), and on the sum of errors.

    Raises
    ------
    ConfigurationError
        If a parameter is not positive.

    """

    def __init__(self, height: float, dt: float = 0.005, horizon: float = 1.6,
                 error_weight: float = 1.0, jerk_weight: float = 1e-6) -> None:
        for name, value in (('height', height), ('dt', dt), ('horizon', horizon),
                            ('error_weight', error_weight), ('jerk_weight', jerk_weight)):
            if not 0.0 < value < np.inf:
                raise ConfigurationError(f'{name} of the preview must be positive, not {value}')
        self.height, self.dt = height, dt
        self.A = np.array(((1.0, dt, 0.5 * dt * dt), (0.0, 1.0, dt), (0.0, 0.0, 1.0)))
        self.B = np.array((dt ** 3 / 6.0, 0.5 * dt * dt, dt))
        self.C = np.array((1.0, 0.0, -height / GRAVITY))
        self._solve(error_weight, jerk_weight, max(round(horizon / dt), 1))

    @property
    def horizon_samples(self) -> int:
        """Return the number of future samples of the reference that are used."""
        return len(self.preview_gains)

    def track(self, reference: Array, start: Array) -> Array:
        """
        Return the motion of the cart for a whole reference.

        Parameters
        ----------
        reference
            Zero-moment point every `dt`, shape (n, axes), m; constant after its end.
        start
            State at the first sample: position, velocity and acceleration, shape (3, axes).

        Returns
        -------
        numpy.ndarray
            Shape (n, 3, axes): states at the samples.

        """
        ahead = np.concatenate((reference, np.repeat(reference[-1:], self.horizon_samples, 0)))
        states = np.empty((len(reference), *start.shape))
        state, total = start.astype(float), np.zeros(start.shape[1])
        for k in range(len(reference)):
            states[k] = state
            total += self.C @ state - reference[k]
            jerk = self.jerk(state, total, ahead[k + 1:k + 1 + self.horizon_samples])
            state = self.A @ state + np.outer(self.B, jerk)
        return states

    def jerk(self, state: Array, error_sum: Array, reference_ahead: Array) -> Array:
        """
        Return the jerk until the next sample, m/s^3, shape (axes,).

        Parameters
        ----------
        state
            Shape (3, axes).
        error_sum
            Sum of the zero-moment point's errors until now, (axes,), m.
        reference_ahead
            Reference at the next samples, (N, axes), m.

        """
        return (self.preview_gains @ reference_ahead - self.state_gains @ state
                - self.integral_gain * error_sum)

    def _solve(self, error_weight: float, jerk_weight: float, count: int) -> None:
        """Find all gains from the Riccati equation of the system with its integrator."""
        A, B = np.eye(4), np.empty((4, 1))
        A[0, 1:], A[1:, 1:] = self.C @ self.A, self.A
        B[0, 0], B[1:, 0] = self.C @ self.B, self.B
        costs = np.diag((error_weight, 0.0, 0.0, 0.0))
        P = riccati(A, B, costs, jerk_weight)
        denominator = jerk_weight + float((B.T @ P @ B)[0, 0])
        gains = (B.T @ P @ A)[0] / denominator
        self.integral_gain, self.state_gains = float(gains[0]), gains[1:]
        closed = A - B @ gains[np.newaxis]
        self.preview_gains = np.empty(count)
        weights = P[:, 0].copy()
        for i in range(count):
            self.preview_gains[i] = float(B[:, 0] @ weights) / denominator
            weights = closed.T @ weights


def riccati(A: Array, B: Array, Q: Array, R: float) -> Array:
    """
    Return P of ``P = A'PA - A'PB (R + B'PB)^-1 B'PA + Q``, by structured doubling.

    Parameters
    ----------
    A, B, Q
        Shapes (n, n), (n, 1), (n, n).
    R
        Positive.

    Raises
    ------
    ConfigurationError
        If it does not converge: the system cannot be stabilised.

    """
    identity = np.eye(len(A))
    F, G, P = A, B @ B.T / R, Q
    for _ in range(_MAX_DOUBLINGS):
        W = np.linalg.inv(identity + G @ P)
        P_next = P + F.T @ P @ W @ F
        G = G + F @ W @ G @ F.T
        F = F @ W @ F
        if np.abs(P_next - P).max() <= 1e-13 * np.abs(P_next).max():
            return 0.5 * (P_next + P_next.T)
        P = P_next
    raise ConfigurationError('the Riccati equation of the preview does not converge')
