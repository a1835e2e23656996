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
"""What the IMUs below and above the backbone say of it, by quaternions."""

from __future__ import annotations

from cmath import phase, rect
from collections.abc import Callable, Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array, quaternion_from_rotation
from biped_com_ros.core.torso.arc import Arc, Vector
import numpy as np

UPRIGHT = np.array((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
"""An IMU at rest that is not turned against the world."""


class TorsoOrientation(NamedTuple):
    """
    What IMUs say of the torso.

    Attributes
    ----------
    up
        The vertical in the base.
    bend
        Forward + i left, rad; None where they do not tell.
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
        """Return how fast bend and torsion change by the gyroscopes, the shape being `arc`."""
        if self.gyros is None:
            return 0j, 0.0
        (lower, lower_up), upper = self.gyros
        across, along = arc.rotate(*upper)
        return arc.rates(across - lower, along - lower_up)


class Foot(NamedTuple):
    """
    What the lower IMU says by itself.

    Attributes
    ----------
    up
        The vertical in the base.
    back, b
        Of the quaternion a + b i of the base, the conjugate of a, and b: see :meth:`ImuPair.foot`.
    gyro
        Angular velocity of the base along its axes, rad/s.

    """

    up: Vector
    back: complex
    b: complex
    gyro: Vector


Tip = Sequence[float]
"""Quaternion x, y, z, w of the tip, and its angular velocity along its axes, rad/s."""


class ImuPair:
    """
    Two IMUs, and how they are mounted.

    Parameters
    ----------
    R_base_lower, R_tip_upper
        Orientation of the lower IMU in the backbone's foot and of the upper one in its far end.

    """

    def __init__(self, R_base_lower: Array, R_tip_upper: Array) -> None:
        self._of_base = _carried(R_base_lower)
        #: Returns what the upper IMU says by itself; its values (7,) as for :meth:`see`.
        self.tip: Callable[[Array], Tip] = _carried(R_tip_upper)

    def read(self, lower: Array, upper: Array | None = None, relative_yaw: float = 0.0) -> TorsoOrientation:
        """
        Return what the IMUs say.

        Parameters
        ----------
        lower, upper
            Orientation, a quaternion x, y, z, w, and angular velocity along the IMU's own axes,
            rad/s, (7,) each; `upper` None where it is not known.
        relative_yaw
            By how much the upper one's world is turned against the lower one's, rad.

        """
        return self.sight(
            self.foot(lower), None if upper is None else self.tip(upper), relative_yaw)

    def foot(self, lower: Array) -> Foot:
        """Return what the lower IMU says by itself; its values as for :meth:`see`."""
        # A quaternion is a + b i with the complex numbers a = w + k z and b = x + k y.
        x, y, z, w, gyro_x, gyro_y, gyro_z = self._of_base(lower)
        back, b = complex(w, -z), complex(x, y)
        square_a, square_b = w * w + z * z, x * x + y * y
        scale = 1.0 / (square_a + square_b)
        return Foot((2j * scale * b * back, scale * (square_a - square_b)), back, b,
                    (complex(gyro_x, gyro_y), gyro_z))

    def sight(self, foot: Foot, tip: Tip | None, relative_yaw: float) -> TorsoOrientation:
        """Return what both say together, as :meth:`see` does."""
        if tip is None:
            return TorsoOrientation(foot.up)
        up, back, b, lower_gyro = foot
        x, y, z, w, gyro_x, gyro_y, gyro_z = tip
        turn = rect(1.0, -0.5 * relative_yaw)
        c, d = turn * complex(w, z), turn * complex(x, y)
        # The tip is turned by a + b i against the base.
        a, b = back * c + b * d.conjugate(), back * d - b * c.conjugate()
        size_a, size_b = abs(a), abs(b)
        bend, size = complex(2.0 * math.atan2(size_b, size_a)), size_a * size_b
        if size > 1e-12:
            bend *= -1j * b * a / size
        return TorsoOrientation(up, bend, phase(a * a), (lower_gyro, (complex(gyro_x, gyro_y), gyro_z)))


def _carried(R_link_imu: Array) -> Callable[[Array], Tip]:
    """Return what takes an IMU's values (7,) to those of its link."""
    if (R_link_imu == np.eye(3)).all():
        return np.ndarray.tolist
    x, y, z, w = quaternion_from_rotation(R_link_imu.T).tolist()
    matrix = np.zeros((7, 7))
    matrix[:4, :4] = ((w, z, -y, x), (-z, w, x, y), (y, -x, w, z), (-x, -y, -z, w))
    matrix[4:, 4:] = R_link_imu
    return lambda values: matrix.dot(values).tolist()
