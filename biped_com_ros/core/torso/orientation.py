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
"""Bend, torsion and their rates from the IMUs below and above the backbone; their relative yaw."""

from __future__ import annotations

from cmath import phase, rect
from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array, quaternion_from_rotation
from biped_com_ros.core.torso.arc import Arc, Vector
import numpy as np

UPRIGHT = np.array((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
"""Quaternion and angular velocity of an IMU at rest whose axes are those of the world."""

MAX_ADVANCE = 0.3
"""Angle from which an orientation is not advanced by its gyroscope: it is stale or wrong, rad."""


class TorsoOrientation(NamedTuple):
    """
    Orientation of the torso as measured by its IMUs.

    Attributes
    ----------
    up
        Vertical unit vector in the base.
    bend
        Forward + i left, rad; None without a measurement of the upper IMU.
    torsion
        rad.
    gyros
        Angular velocity of the base along its axes, and of the tip along its own, rad/s.

    """

    up: Vector = (0j, 1.0)
    bend: complex | None = None
    torsion: float = 0.0
    gyros: tuple[Vector, Vector] | None = None

    def rates(self, arc: Arc) -> tuple[complex, float]:
        """Return the rates of bend and torsion by the gyroscopes, rad/s, in shape `arc`."""
        if self.gyros is None:
            return 0j, 0.0
        (lower, lower_up), upper = self.gyros
        across, along = arc.rotate(*upper)
        return arc.rates(across - lower, along - lower_up)


class BaseReading(NamedTuple):
    """
    Measurement of the lower IMU, in the base of the backbone.

    Attributes
    ----------
    up
        Vertical unit vector in the base.
    conj_a, b
        The quaternion of the base is a + b j with complex numbers a = w + k z and b = x + k y;
        `conj_a` is the conjugate of a.
    gyro
        Angular velocity of the base along its axes, rad/s.

    """

    up: Vector
    conj_a: complex
    b: complex
    gyro: Vector


TipReading = Sequence[float]
"""Quaternion x, y, z, w of the tip, and its angular velocity along its axes, rad/s."""


class ImuPair:
    """
    The two IMUs of the torso and their mounting.

    Parameters
    ----------
    R_base_lower, R_tip_upper
        Orientation of the lower IMU in the base of the backbone and of the upper one in its tip.

    """

    def __init__(self, R_base_lower: Array, R_tip_upper: Array) -> None:
        self._lower_to_base = _mounting_matrix(R_base_lower)
        self._upper_to_tip = _mounting_matrix(R_tip_upper)

    def read(self, lower: Array, upper: Array | None = None,
             relative_yaw: float = 0.0) -> TorsoOrientation:
        """
        Return the orientation of the torso.

        Parameters
        ----------
        lower, upper
            Orientation, a quaternion x, y, z, w, and angular velocity along the IMU's own axes,
            rad/s, (7,) each; `upper` None if unknown.
        relative_yaw
            Yaw of the upper IMU's world against the lower one's, rad.

        """
        return self.combine(
            self.read_base(lower), None if upper is None else self.read_tip(upper), relative_yaw)

    def read_base(self, lower: Array, age: float = 0.0) -> BaseReading:
        """
        Return the measurement of the lower IMU, advanced by its gyroscope.

        Parameters
        ----------
        lower
            Values (7,) as for :meth:`read`.
        age
            Time by which to advance the orientation, s; not by more than :data:`MAX_ADVANCE`.

        """
        x, y, z, w, gyro_x, gyro_y, gyro_z = self._lower_to_base.dot(lower).tolist()
        if 0.0 < abs(age) * math.hypot(gyro_x, gyro_y, gyro_z) < MAX_ADVANCE:
            # To first order: a quaternion's derivative is half its product with the rates.
            h = 0.5 * age
            x, y, z, w = (x + h * (w * gyro_x + y * gyro_z - z * gyro_y),
                          y + h * (w * gyro_y + z * gyro_x - x * gyro_z),
                          z + h * (w * gyro_z + x * gyro_y - y * gyro_x),
                          w - h * (x * gyro_x + y * gyro_y + z * gyro_z))
        conj_a, b = complex(w, -z), complex(x, y)
        square_a, square_b = w * w + z * z, x * x + y * y
        scale = 1.0 / (square_a + square_b)
        return BaseReading((2j * scale * b * conj_a, scale * (square_a - square_b)), conj_a, b,
                           (complex(gyro_x, gyro_y), gyro_z))

    def read_tip(self, upper: Array) -> TipReading:
        """Return the measurement of the upper IMU; its values (7,) as for :meth:`read`."""
        return self._upper_to_tip.dot(upper).tolist()

    @staticmethod
    def combine(base: BaseReading, tip: TipReading | None,
                relative_yaw: float) -> TorsoOrientation:
        """Return the orientation of the torso by both measurements; see :meth:`read`."""
        if tip is None:
            return TorsoOrientation(base.up)
        up, conj_a, base_b, lower_gyro = base
        x, y, z, w, gyro_x, gyro_y, gyro_z = tip
        turn = rect(1.0, -0.5 * relative_yaw)
        c, d = turn * complex(w, z), turn * complex(x, y)
        # The quaternion of the tip in the base is a + b j.
        a, b = conj_a * c + base_b * d.conjugate(), conj_a * d - base_b * c.conjugate()
        size_a, size_b = abs(a), abs(b)
        bend, size = complex(2.0 * math.atan2(size_b, size_a)), size_a * size_b
        if size > 1e-12:
            bend *= -1j * b * a / size
        return TorsoOrientation(
            up, bend, phase(a * a), (lower_gyro, (complex(gyro_x, gyro_y), gyro_z)))


def _mounting_matrix(R_link_imu: Array) -> Array:
    """Return the matrix (7, 7) from quaternion and gyro of an IMU to those of its link."""
    x, y, z, w = quaternion_from_rotation(R_link_imu.T).tolist()
    matrix: Array = np.zeros((7, 7))
    matrix[:4, :4] = ((w, z, -y, x), (-z, w, x, y), (y, -x, w, z), (-x, -y, -z, w))
    matrix[4:, 4:] = R_link_imu
    return matrix


TORSION_SIGMA, BEND_SIGMA = 0.05, 0.002
"""Standard deviations of torsion, and of the bend by IMUs against the bend by lengths, rad."""

MAX_BEND = 0.5 * math.pi
"""Larger bends by IMU are a wrong mounting rather than a yaw offset, rad."""


class YawOffsetEstimator:
    """
    Estimates the relative yaw of the two IMUs from bend and torsion.

    IMUs without a compass have an arbitrary yaw, which drifts. An error of the relative yaw
    rotates the tip about the vertical: it turns the direction of the bend and adds to torsion.
    The tendon lengths, evaluated without torsion, give the bend turned back by half the torsion,
    so that yaw offset and torsion can be separated the better the more the torso bends or leans.
    In addition torsion is small. The two are combined by weighted least squares; lengths of
    tendons that may be slack hardly count.

    Parameters
    ----------
    time
        Time constant of the low-pass of the estimate, s; 0: the offset is always 0.

    Attributes
    ----------
    value
        Yaw of the upper IMU in excess of the lower one's, rad; the first estimate is not
        filtered.

    """

    def __init__(self, time: float) -> None:
        self.time, self.value, self._is_known = time, 0.0, False

    def update(self, dt: float, orientation: TorsoOrientation,
               bend_by_lengths: complex | None, largest_error: float = 0.0) -> None:
        """
        Update the estimate.

        Parameters
        ----------
        dt
            Time since the last call, s.
        orientation
            Measurement of the IMUs, corrected by `value`.
        bend_by_lengths
            Bend by the tendon lengths, torsion neglected; None if unknown.
        largest_error
            Of the bend by lengths, where tendons may be slack, rad.

        """
        if not self.time:
            self.value = 0.0
            return
        if orientation.bend is None or abs(orientation.bend) > MAX_BEND:
            return
        error = self._error(orientation.bend, orientation.torsion, bend_by_lengths,
                            BEND_SIGMA ** 2 + largest_error ** 2 / 3.0, orientation.up)
        share = min(1.0, dt / self.time) if self._is_known else 1.0
        self.value = math.remainder(self.value + share * error, 2.0 * math.pi)
        self._is_known = True

    @staticmethod
    def _error(bend: complex, torsion: float, bend_by_lengths: complex | None,
               variance: float, up: Vector) -> float:
        """Return the remaining yaw offset by weighted least squares of bend and torsion."""
        across, z = up
        weight = 1.0 / TORSION_SIGMA ** 2
        information, evidence = weight * z * z, weight * z * torsion
        if bend_by_lengths is not None:
            back = rect(1.0, -0.5 * torsion)
            slope = back * (0.5j * z * bend - 1j * across)
            weight = 1.0 / variance
            information += weight * abs(slope) ** 2
            evidence += weight * (slope.conjugate() * (back * bend - bend_by_lengths)).real
        return evidence / information if information > 0.0 else 0.0
