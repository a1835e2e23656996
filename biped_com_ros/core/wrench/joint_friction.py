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
Friction of the joints of the legs that the model lacks, learned while the robot moves.

The force of the environment on a joint is found by the torque of its motor, so friction that is
unknown is taken for a force. It changes its sign with the velocity, which nothing of the ground
does: recursive least squares with exponential forgetting find one Coulomb torque for each joint.
Wrenches of the feet are unknowns beside them (they are marginalized, with their prior). Friction
is observable from the root's equations of motion together with those of a leg, and from a leg that
swings; what could be a wrench on the foot as well carries no information. Least squares that take
the foot's wrench for known, or swinging legs alone, attribute part of the motion to friction.

A joint that hardly moves may stick anywhere between both signs. That is a variance.
"""

from __future__ import annotations

import math

from biped_com_ros.core.geometry.pose import Array
import numpy as np

#: Speed at which three quarters of friction act by the model, rad/s or m/s: noise of velocities is
#: small beside it.
_SPEED = 0.05


class LearnedFriction:
    """
    Coulomb friction of n joints.

    Parameters
    ----------
    deviation
        Its prior standard deviation, N m or N.
    cutoff
        Of the low-pass that the forces have passed, Hz.
    memory
        Time constant of forgetting, s.
    learns
        Whether each joint's torque is measured, (n,).

    Attributes
    ----------
    coefficients
        Friction beyond the model's, (n,), N m or N.
    torques
        With the signs of now, through the same low-pass, (n,).
    variance
        Of the torques of joints that may stick, (n,).

    """

    def __init__(self, deviation: float, cutoff: float, memory: float, learns: Array) -> None:
        count = len(learns)
        self._cutoff, self._memory, self._learns = cutoff, memory, learns.astype(float)
        self._prior = np.full(count, deviation ** -2.0)
        self._information = np.zeros((count, count))
        self.coefficients, self.torques = np.zeros(count), np.zeros(count)
        self.variance = np.zeros(count)
        self.reset()

    def reset(self) -> None:
        """Begin anew after a gap; what has been learned stays."""
        self._directions: Array | None = None

    def update(self, dt: float, velocities: Array) -> None:
        """Take the velocities of the joints, (n,), a time after the last ones, s."""
        now, before = np.tanh(velocities / _SPEED), self._directions
        if before is not None:
            share = -math.expm1(-2.0 * math.pi * self._cutoff * dt)
            now = before + share * (now - before)
        self._directions = now
        np.multiply(self.coefficients, now, out=self.torques)
        self.variance[:] = (self.coefficients * (1.0 - now * now)) ** 2

    def learn(self, information: Array, residual: Array, step: float) -> None:
        """
        Take what the wrenches leave unexplained.

        Parameters
        ----------
        information
            Of an error of each joint's force, the wrenches being unknown, (n, n).
        residual
            What is left of the forces, after friction, times the inverse of its covariance, (n,).
        step
            Time that it stands for, s.

        """
        assert self._directions is not None
        directions = self._directions * self._learns
        keep = math.exp(-step / self._memory)
        self._information *= keep
        self._information += information * np.outer(directions, directions)
        total = self._information.copy()
        total.flat[::len(total) + 1] += self._prior
        # Forgetting returns to the prior as slowly as it loses information.
        change = -directions * residual - (1.0 - keep) * self._prior * self.coefficients
        self.coefficients += np.linalg.solve(total, change)
