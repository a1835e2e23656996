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
"""Where ``base_footprint`` of REP-120 is: on the floor between the feet, level."""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.geometry.pose import Array, heading_of, Pose, Vector
import numpy as np


def footprint_position(soles_in_world: Array, in_contact: Sequence[bool] | Array) -> Array:
    """
    Return the origin of ``base_footprint``.

    Parameters
    ----------
    soles_in_world
        Origins of the soles, shape (n, 3), m, z up.
    in_contact
        Which of them are on the ground, n booleans. With none, all count.

    Returns
    -------
    numpy.ndarray
        Shape (3,), m: x and y are the mean of these soles, z is the lowest of them.

    """
    return np.array(mean_sole(soles_in_world.tolist(), in_contact))


def mean_sole(soles_in_world: Sequence[Sequence[float]],
              in_contact: Sequence[bool] | Array) -> Vector:
    """Return :func:`footprint_position` on plain numbers: with few soles twice as fast."""
    supporting = [sole for sole, touches in zip(soles_in_world, in_contact) if touches]
    xs, ys, zs = zip(*(supporting or soles_in_world))
    return sum(xs) / len(xs), sum(ys) / len(ys), min(zs)


def footprint_pose(base: Pose, soles_in_world: Array,
                   in_contact: Sequence[bool] | Array) -> Pose:
    """
    Return ``base_footprint`` (REP-120): level, heading as the base, on the floor.

    Parameters
    ----------
    base
        Pose of the base frame (x forward, REP-103) in a world frame with z up.
    soles_in_world, in_contact
        As in :func:`footprint_position`, in the same world.

    """
    c, s = heading_of(base.rotation)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return Pose(rotation, footprint_position(soles_in_world, in_contact))
