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
"""The leg of Wang, Zhu and Han in the paper's own conventions: proportions, angles, chain (2)."""

from __future__ import annotations

import math
from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.kinematics import Chain
import numpy as np
from numpy.typing import ArrayLike

#: Order and signs of the paper's joints, which count from the foot; rolls and yaw are opposite.
ORDER = [5, 4, 3, 2, 1, 0]
SIGNS = np.array((-1.0, 1.0, 1.0, 1.0, -1.0, -1.0))


class LegGeometry(NamedTuple):
    """
    Proportions of a leg.

    Attributes
    ----------
    ankle, shin, thigh, hip
        From the sole up to the ankle's axes, to the knee's, to the hip's centre and on to the
        joint of the hip yaw, m.

    """

    ankle: float
    shin: float
    thigh: float
    hip: float


WANG = LegGeometry(0.032, 0.075, 0.075, 0.030)
"""The paper's leg."""


def straight_chain(geometry: LegGeometry) -> Chain:
    """Return a leg of the paper's kind below a base at its hip yaw joint, without limits."""
    hip = np.array((0.0, 0.0, -geometry.hip))
    knee = hip - (0.0, 0.0, geometry.thigh)
    ankle = knee - (0.0, 0.0, geometry.shin)
    sole = Pose(np.eye(3), ankle - (0.0, 0.0, geometry.ankle))
    return Chain(hip, knee, ankle, sole, np.ones(6), np.full(6, -np.inf), np.full(6, np.inf))


def wang_angles(positions: Array) -> Array:
    """
    Return the paper's theta_1 to theta_6, from the foot, of joint positions from the base.

    Pitches are the same (the paper's x axis is -y of ROS and its chain has the opposite direction:
    two signs cancel), rolls and yaw are opposite. For axes along +z, +x, +y.
    """
    return SIGNS * positions[ORDER]


def positions_of_wang(theta: ArrayLike) -> Array:
    """Return the joint positions from the base, (6,), of the paper's theta_1 to theta_6."""
    return (SIGNS * np.asarray(theta, dtype=float))[ORDER]


def wang_matrices(theta: ArrayLike, geometry: LegGeometry = WANG) -> Array:
    """
    Return M_01 to M_56, of which (2) is the product: from the sole to the hip yaw, paper's axes.

    The inverses of the matrices in the corrected (3).

    Parameters
    ----------
    theta
        The paper's angles, shape (6,), rad.
    geometry
        Lengths, m.

    Returns
    -------
    numpy.ndarray
        Shape (6, 4, 4).

    """
    (c1, s1), (c2, s2), (c3, s3), (c4, s4), (c5, s5), (c6, s6) = (
        (math.cos(t), math.sin(t)) for t in np.asarray(theta, dtype=float).tolist())
    ankle, shin, thigh, hip = geometry
    end = (0.0, 0.0, 0.0, 1.0)
    return np.array((
        ((-c1, s1, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (s1, c1, 0.0, ankle), end),
        ((0.0, 0.0, -1.0, 0.0), (s2, c2, 0.0, 0.0), (c2, -s2, 0.0, 0.0), end),
        ((c3, -s3, 0.0, 0.0), (s3, c3, 0.0, shin), (0.0, 0.0, 1.0, 0.0), end),
        ((c4, -s4, 0.0, 0.0), (s4, c4, 0.0, thigh), (0.0, 0.0, 1.0, 0.0), end),
        ((0.0, 0.0, 1.0, 0.0), (s5, c5, 0.0, 0.0), (-c5, s5, 0.0, 0.0), end),
        ((-c6, s6, 0.0, 0.0), (0.0, 0.0, 1.0, hip), (s6, c6, 0.0, 0.0), end)))
