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
"""The bias of a gyroscope, measured while a robot stands still on all feet."""

from __future__ import annotations

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.geometry.pose import Array
import numpy as np
import pinocchio as pin

_WINDOW_NS = nanoseconds(0.5)
#: Rotation of the IMU over the feet in a window, rad, up to which the robot stands still.
_LARGEST_TURN = 0.02
#: Mean angular velocity, rad/s, beyond which it is no bias.
_LARGEST_BIAS = 0.2


class StillWindow:
    """
    Compares the gyroscope with the joint positions over windows of half a second.

    Soles in contact neither move nor turn, so the joints give how far the IMU has turned in
    between; what the gyroscope measures more is its bias. Only standing still counts, where soles
    are flat.
    """

    #: Standard deviation of a measured bias, rad/s: noise of gyroscope and encoders, soft soles.
    DEVIATION = 1e-3

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a new window at the next instant."""
        self._since_ns: int | None = None

    def update(self, stamp_ns: int, gyro: Array, placements: Array,
               is_standing: bool) -> Array | None:
        """
        Update with an instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns.
        gyro
            Reading of the gyroscope, (3,), rad/s.
        placements
            Of the soles and, last, the IMU in the base: rows are axes, then the position.
        is_standing
            Whether all feet are in contact.

        Returns
        -------
        numpy.ndarray or None
            Bias, (3,), rad/s, where a window is complete.

        """
        if not is_standing:
            self._since_ns = None
            return None
        if self._since_ns is None:
            self._begin(stamp_ns, placements)
            return None
        self._sum += gyro
        self._count += 1
        if stamp_ns - self._since_ns < _WINDOW_NS:
            return None
        turns = [pin.log3(before.dot(after.T)) for before, after in zip(
            self._soles_in_imu, _soles_in_imu(placements))]
        duration, mean = 1e-9 * (stamp_ns - self._since_ns), self._sum / self._count
        self._begin(stamp_ns, placements)
        if np.abs(turns).max() > _LARGEST_TURN or np.abs(mean).max() > _LARGEST_BIAS:
            return None
        bias: Array = mean - np.mean(turns, axis=0) / duration
        return bias

    def _begin(self, stamp_ns: int, placements: Array) -> None:
        self._since_ns, self._sum, self._count = stamp_ns, np.zeros(3), 0
        self._soles_in_imu = _soles_in_imu(placements)


def _soles_in_imu(placements: Array) -> Array:
    """Return ``R_imu_sole`` of each foot, shape (F, 3, 3)."""
    R_imu_base: Array = placements[-1, :3]
    return np.matmul(R_imu_base, placements[:-1, :3].transpose(0, 2, 1))
