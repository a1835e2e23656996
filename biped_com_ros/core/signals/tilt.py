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
"""The direction of gravity from an IMU that publishes no orientation."""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY, LONGEST_STEP_NS
from biped_com_ros.core.geometry.pose import Array
import numpy as np
import pinocchio as pin

TIME_CONSTANT = 1.0
"""Of the accelerometer, s: accelerations of steps average out over it, and a bias of the gyroscope
of 0.01 rad/s turns the vertical by 0.01 rad."""

LARGEST_DIFFERENCE = 0.2
"""A specific force whose size differs more from gravity, as a share of it, has no direction of
gravity."""

_UP = np.array((0.0, 0.0, 1.0))


class TiltFilter:
    """
    Complementary filter: the gyroscope turns the orientation, the accelerometer levels it.

    The heading begins anywhere and follows the gyroscope.

    Parameters
    ----------
    gravity
        m/s^2.

    Attributes
    ----------
    R_world_imu
        Orientation, (3, 3), z up; None before the first credible acceleration.
    problem
        Why there is none; '' if there is one.

    """

    def __init__(self, gravity: float = GRAVITY) -> None:
        self.gravity, self._last_ns = gravity, 0
        self.R_world_imu: Array | None = None
        self.problem = ''

    def update(self, stamp_ns: int, gyro: Array, acceleration: Array) -> Array | None:
        """
        Take a sample.

        Parameters
        ----------
        stamp_ns
            Its time, ns; a step back or a long one begins anew.
        gyro, acceleration
            Along the axes of the IMU, (3,), rad/s and m/s^2; at rest the latter is g, upward.

        Returns
        -------
        numpy.ndarray or None
            :attr:`R_world_imu`.

        """
        step_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        if not 0 <= step_ns < LONGEST_STEP_NS:
            self.R_world_imu = None
        dt, size = 1e-9 * step_ns, float(np.linalg.norm(acceleration))
        is_credible = abs(size - self.gravity) < LARGEST_DIFFERENCE * self.gravity
        if self.R_world_imu is None:
            self.problem = '' if is_credible else (
                f'the accelerometer measures {size:.2f} m/s^2 instead of about '
                f'{self.gravity:.2f}: check its unit, and whether gravity was taken off')
            if is_credible:
                self.R_world_imu = pin.Quaternion.FromTwoVectors(
                    acceleration / size, _UP).toRotationMatrix()
            return self.R_world_imu
        R = self.R_world_imu @ pin.exp3(dt * gyro)
        if is_credible:
            up = R @ acceleration / size
            R = pin.exp3(dt / (TIME_CONSTANT + dt) * np.cross(up, _UP)) @ R
        self.R_world_imu = R
        return R
