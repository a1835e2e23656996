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
A right-invariant extended Kalman filter of an IMU and of points of feet that do not slip.

The state is the attitude R of the IMU in the world, its velocity v and position p, one anchor d
per foot (the point of the ground on which the foot stands), and the biases of gyroscope and
accelerometer. After Hartley, Ghaffari, Eustice and Grizzle, "Contact-aided invariant extended
Kalman filtering for robot state estimation" (IJRR 2020): the error ``xi`` of an estimate is
``estimate = exp(xi) truth`` on the group SE_{2+F}(3). Without biases the propagation of ``xi``
depends neither on the estimate nor on the motion, so that the covariance is right however wrong
the estimate is, and heading and position, which nothing here measures, gain no false certainty.

One thing differs from the paper: anchors may move. A foot that rolls from heel to toe has its
centre of pressure, and with it its point at rest, at another place of the sole at each instant
(:meth:`InvariantFilter.move_anchors`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import skew
import eigenpy  # comes with Pinocchio; its decomposition takes a third of NumPy's solution
import numpy as np
import pinocchio as pin

#: Rows of the error: attitude, velocity, position; then the anchors, and last the two biases.
ATTITUDE, VELOCITY, POSITION = slice(0, 3), slice(3, 6), slice(6, 9)
_FIRST_ANCHOR = 9


@dataclass(frozen=True, kw_only=True)
class ImuNoise:
    """
    How good an IMU is.

    Attributes
    ----------
    gyro, accelerometer
        Spectral density of the white noise, rad/s/sqrt(Hz) and m/s^2/sqrt(Hz).
    gyro_walk, accelerometer_walk
        Random walk of the biases, rad/s/sqrt(s) and m/s^2/sqrt(s).
    gyro_bias, accelerometer_bias
        Standard deviation of the unknown biases at the start, rad/s and m/s^2.

    """

    gyro: float = 3e-4
    accelerometer: float = 4e-3
    gyro_walk: float = 1e-5
    accelerometer_walk: float = 1e-4
    gyro_bias: float = 0.02
    accelerometer_bias: float = 0.05


class InvariantFilter:
    """
    The filter; instants and samples come from the caller.

    Parameters
    ----------
    feet
        Number of feet, F.
    noise
        Of the IMU.
    gravity
        m/s^2.

    Attributes
    ----------
    R_world_imu
        Attitude, shape (3, 3).
    vectors
        Velocity (m/s), position (m) and the anchors (m) in the world, shape (2 + F, 3).
    biases
        Of the gyroscope, rad/s, and the accelerometer, m/s^2, along the axes of the IMU, (2, 3).
    covariance
        Of the error, shape (n, n) with n = 15 + 3 F. Arrays are replaced, never written to, so
        that references to them stay valid.

    """

    def __init__(self, feet: int, noise: ImuNoise = ImuNoise(), gravity: float = GRAVITY) -> None:
        self._feet, self.size = feet, 15 + 3 * feet
        first = self.size - 6
        self.gyro_bias_rows = slice(first, first + 3)
        self._accelerometer_bias_rows = slice(first + 3, first + 6)
        self._gravity = np.array((0.0, 0.0, -gravity))
        self.noise, self._eye, self._dt = noise, np.eye(3), 0.0
        self._transition, self._variances = np.eye(self.size), np.zeros(self.size)
        self._spread = np.zeros((first, 3))
        self._decompositions: dict[int, Any] = {}
        self.R_world_imu = np.eye(3)
        self.vectors = np.zeros((2 + feet, 3))
        self.biases = np.zeros((2, 3))
        self.covariance = np.zeros((self.size, self.size))
        self.covariance[first:, first:] = np.diag(
            (noise.gyro_bias ** 2,) * 3 + (noise.accelerometer_bias ** 2,) * 3)

    @property
    def velocity(self) -> Array:
        """Velocity of the IMU in the world, shape (3,), m/s."""
        velocity: Array = self.vectors[0]
        return velocity

    @property
    def position(self) -> Array:
        """Position of the IMU in the world, shape (3,), m."""
        position: Array = self.vectors[1]
        return position

    @property
    def anchors(self) -> Array:
        """Points of the ground on which the feet stand, in the world, shape (F, 3), m."""
        return self.vectors[2:]

    def anchor_rows(self, foot: int) -> slice:
        """Return the rows of the error that belong to the anchor of a foot."""
        start = _FIRST_ANCHOR + 3 * foot
        return slice(start, start + 3)

    def start(self, R_world_imu: Array, velocity: Array, position: Array, deviations: Array,
              pivot: Array | None = None) -> None:
        """
        Start anew; the biases, which belong to the IMU and not to the place, stay.

        Parameters
        ----------
        R_world_imu, velocity, position
            The estimate.
        deviations
            Standard deviations of the errors of attitude (rad), velocity (m/s) and position (m),
            along the world's axes, shape (3, 3); of the velocity along the axes of the robot,
            with which an error of the attitude turns it.
        pivot
            Point in the world about which an error of the attitude turns the position, (3,), m,
            such as the place where the robot stands; by default the position itself.

        """
        self.R_world_imu = np.array(R_world_imu)
        self.vectors = np.array((velocity, *(position,) * (1 + self._feet)))
        first = self.gyro_bias_rows.start
        P = np.zeros_like(self.covariance)
        P[first:, first:] = self.covariance[first:, first:]
        # From errors along the world's axes to those of the group: xi = error + vector x angle.
        J = np.eye(9)
        J[POSITION, ATTITUDE] = skew(position if pivot is None else pivot)
        P[:9, :9] = (J * deviations.reshape(-1) ** 2).dot(J.T)
        self.covariance = P

    def restart_velocity(self, velocity: Array, deviation: float) -> None:
        """
        Use another velocity (3,), m/s, whose components have this standard deviation.

        It is known along the axes of the robot, so that an error of the attitude turns it, too:
        its error on the group does not depend on that of the attitude.
        """
        self.vectors = self.vectors.copy()
        self.vectors[0] = velocity
        self.covariance = self.covariance.copy()
        self.covariance[VELOCITY] = self.covariance[:, VELOCITY] = 0.0
        self.covariance[VELOCITY, VELOCITY] = deviation ** 2 * self._eye

    @property
    def place_deviations(self) -> Array:
        """Return deviations of x and y, m, and of the heading, rad, along the world's axes."""
        J = np.zeros((3, 9))
        J[:2, ATTITUDE], J[:2, POSITION] = -skew(self.position)[:2], self._eye[:2]
        J[2, 2] = 1.0
        deviations: Array = np.sqrt(np.diag(J.dot(self.covariance[:9, :9]).dot(J.T)))
        return deviations

    def widen_gyro_bias(self, deviation: float) -> None:
        """Add to the uncertainty of the gyroscope's bias, rad/s; nothing below zero."""
        if deviation > 0.0:
            self.covariance = self.covariance.copy()
            self.covariance[self.gyro_bias_rows, self.gyro_bias_rows] += (
                deviation ** 2 * self._eye)

    # -- propagation

    def propagate(self, gyro: Array, acceleration: Array, dt: float,
                  anchor_walks: Array, unknown: tuple[float, float] = (0.0, 0.0)) -> None:
        """
        Propagate over an interval with constant readings.

        Parameters
        ----------
        gyro, acceleration
            Angular velocity, rad/s, and proper acceleration, m/s^2, in the IMU, shape (3,).
        dt
            Length of the interval, s.
        anchor_walks
            Variance of the random walk of each anchor along the world's axes, (3 F,), m^2/s.
        unknown
            Spectral density of the noise in addition to the IMU's, rad^2/s and m^2/s^3.

        """
        half_turn = pin.exp3(0.5 * dt * (gyro - self.biases[0]))
        R_middle = self.R_world_imu.dot(half_turn)
        change = dt * (R_middle.dot(acceleration - self.biases[1]) + self._gravity)
        middle = self.vectors.copy()
        middle[0] += 0.5 * change
        travel = dt * middle[0]
        middle[1] += 0.5 * travel
        self.vectors = self.vectors.copy()
        self.vectors[0] += change
        self.vectors[1] += travel
        self.R_world_imu = R_middle.dot(half_turn)
        self._propagate_covariance(R_middle, middle, dt, anchor_walks, *unknown)

    def _propagate_covariance(self, R: Array, vectors: Array, dt: float, anchor_walks: Array,
                              unknown_turn: float, unknown_push: float) -> None:
        """Propagate the covariance by the derivative in the middle of the interval."""
        if dt != self._dt:
            self._set_step(dt)
        Phi, G, variances = self._transition, self._spread, self._variances
        biases = self.gyro_bias_rows.start
        G[:3] = R
        np.dot(skew(vectors).reshape(-1, 3), R, out=G[3:])
        Phi[:biases, self.gyro_bias_rows] = -dt * G
        Phi[VELOCITY, self._accelerometer_bias_rows] = -dt * R
        Phi[POSITION, self._accelerometer_bias_rows] = (-0.5 * dt * dt) * R
        P = Phi.dot(self.covariance).dot(Phi.T)
        P[:biases, :biases] += (dt * (self.noise.gyro ** 2 + unknown_turn)) * G.dot(G.T)
        variances[VELOCITY] = dt * (self.noise.accelerometer ** 2 + unknown_push)
        variances[_FIRST_ANCHOR:biases] = dt * anchor_walks
        P.reshape(-1)[::self.size + 1] += variances
        self.covariance = P

    def _set_step(self, dt: float) -> None:
        """Compute what depends on the length of the interval only."""
        Phi, noise, variances, self._dt = self._transition, self.noise, self._variances, dt
        Phi[VELOCITY, ATTITUDE] = dt * skew(self._gravity)
        Phi[POSITION, ATTITUDE] = 0.5 * dt * dt * skew(self._gravity)
        Phi[POSITION, VELOCITY] = dt * self._eye
        variances[self.gyro_bias_rows] = dt * noise.gyro_walk ** 2
        variances[self._accelerometer_bias_rows] = dt * noise.accelerometer_walk ** 2

    # -- anchors

    def move_anchors(self, moves: Array) -> None:
        """
        Move the anchors by known vectors of the moving robot.

        Parameters
        ----------
        moves
            Known along the axes of the IMU and turned by the attitude, shape (F, 3), m. An error
            of the attitude turns them like the anchors themselves, so that the error of the
            estimate stays as it is.

        """
        self.vectors = self.vectors.copy()
        self.vectors[2:] += moves

    def set_anchor(self, foot: int, from_imu: Array, variance: float) -> None:
        """
        Put the anchor of a foot where the foot is now.

        Parameters
        ----------
        foot
            Its index.
        from_imu
            The point of the foot from the IMU, turned by the attitude, shape (3,), m.
        variance
            Of each component of this vector, m^2.

        """
        self.vectors = self.vectors.copy()
        self.vectors[2 + foot] = self.vectors[1] + from_imu
        P, rows = self.covariance.copy(), self.anchor_rows(foot)
        P[rows] = P[POSITION]
        P[:, rows] = P[:, POSITION]
        P[rows, rows] += variance * self._eye
        self.covariance = P

    def anchor_jacobian(self, feet: tuple[int, ...]) -> Array:
        """Return H of :meth:`update` for points of feet from the IMU, shape (3 k, n)."""
        H = np.zeros((3 * len(feet), self.size))
        for row, foot in enumerate(feet):
            H[3 * row:3 * row + 3, POSITION] = self._eye
            H[3 * row:3 * row + 3, self.anchor_rows(foot)] = -self._eye
        return H

    def height_jacobian(self, foot: int) -> Array:
        """Return H of :meth:`update` for the height of an anchor, shape (1, n)."""
        H = np.zeros((1, self.size))
        x, y, _ = self.anchors[foot].tolist()
        H[0, :2] = y, -x
        H[0, self.anchor_rows(foot).stop - 1] = 1.0
        return H

    # -- measurements

    def anchor_variance(self, foot: int) -> float:
        """Return the variance of an anchor from the IMU, the trace over three axes, m^2."""
        P, rows = self.covariance, self.anchor_rows(foot)
        return float((P[POSITION, POSITION] + P[rows, rows] - 2.0 * P[POSITION, rows]).trace())

    def update(self, H: Array, innovation: Array, variance: float | Array,
               gate: float = np.inf) -> bool:
        """
        Update with a measurement: estimated minus measured ``innovation = H xi + noise``.

        Parameters
        ----------
        H, innovation
            Shapes (k, n) and (k,).
        variance
            Of the noise of each component, a number or shape (k,).
        gate
            Largest normalised square of the innovation.

        Returns
        -------
        bool
            Whether the innovation passes the gate; if not, nothing is changed.

        """
        HP = H.dot(self.covariance)
        S = HP.dot(H.T)
        k = len(S)
        S.reshape(-1)[::k + 1] += variance
        solve = self._solver(S)
        weighed = solve(innovation)
        if not innovation.dot(weighed) <= gate:
            return False
        P = self.covariance - HP.T.dot(solve(HP))
        # What rounding makes unsymmetric would grow.
        P += P.T
        P *= 0.5
        self.covariance = P
        self.correct(weighed.dot(HP))
        return True

    def _solver(self, S: Array) -> Callable[[Array], Array]:
        """Return what solves equations with a symmetric, positive definite matrix, (k, k)."""
        k = len(S)
        if k == 1:
            variance = S.item(0)
            return lambda right: right / variance
        if k not in self._decompositions:
            self._decompositions[k] = eigenpy.LLT(k)
        decomposition = self._decompositions[k]
        decomposition.compute(S)
        solve: Callable[[Array], Array] = decomposition.solve
        return solve

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: not the working memory of decompositions."""
        return {**self.__dict__, '_decompositions': {}}

    def correct(self, error: Array) -> None:
        """Take an estimated error (n,) off the estimate: ``exp(-error) estimate``."""
        turn, biases = -error[ATTITUDE], self.gyro_bias_rows.start
        R = pin.exp3(turn)
        self.R_world_imu = R.dot(self.R_world_imu)
        self.vectors = (self.vectors.dot(R.T)
                        - error[3:biases].reshape(-1, 3).dot(left_jacobian(turn).T))
        self.biases = self.biases - error[biases:].reshape(2, 3)


def left_jacobian(turn: Array) -> Array:
    """Return J (3, 3) of ``exp((turn, u)) = (exp(turn), J u)`` on SE(3)."""
    jacobian: Array = pin.Jexp3(-turn)
    return jacobian
