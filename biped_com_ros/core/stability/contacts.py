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
What touches the environment and holds the robot: surfaces that push, points that push, grips.

A contact can exert the non-negative combinations of a few wrenches, its *generators*: the edges
of the friction cones at the corners of a surface or at a point, linearized from inside, so that
no wrench is assumed that the friction could not give (Caron, Pham, Nakamura 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import wrench_adjoint
import numpy as np

#: Edges of a linearized friction cone.
CONE_EDGES = 4


@dataclass(frozen=True)
class Contact:
    """
    A contact at a pose in the world; its z axis is the normal that points at the robot.

    Attributes
    ----------
    pose
        Of the contact in the world.
    generators
        Wrenches of the environment on the robot, shape (6, k), along the contact's axes, about
        its origin; each has a unit normal force, or is a unit force of a grip.
    largest_force
        Upper bound of the sum of their coefficients, N: of the normal force, or of a grip's
        force. Infinite for a foot.

    """

    pose: Pose
    generators: Array
    largest_force: float = math.inf

    @cached_property
    def generators_in_world(self) -> Array:
        """Return the generators along the world's axes, about its origin, shape (6, k)."""
        moved: Array = wrench_adjoint(self.pose.rotation, self.pose.position) @ self.generators
        return moved


def surface_contact(pose: Pose, outline: Sequence[Point], friction: float,
                    largest_force: float = math.inf, edges: int = CONE_EDGES) -> Contact:
    """
    Return a contact that only pushes, such as a sole, or a hand that leans.

    Parameters
    ----------
    pose
        Of the surface in the world, its z axis the normal.
    outline
        Corners of the surface, m; one corner is a point contact.
    friction
        Coefficient of friction.
    largest_force
        Of the normal force, N.
    edges
        Number of edges of the linearized friction cones.

    """
    if not (0.0 < friction < np.inf and largest_force > 0.0):
        raise InputError(f'friction {friction:g} and largest force {largest_force:g} N of a '
                         'contact must be positive, the former finite')
    # The edges lie between the axes: along these, friction is least.
    angles = 2.0 * math.pi * (np.arange(edges) + 0.5) / edges
    forces = np.array([friction * np.cos(angles), friction * np.sin(angles), np.ones(edges)])
    return Contact(pose, np.hstack([_at(x, y, forces) for x, y in outline]), largest_force)


def grip_contact(pose: Pose, largest_force: float) -> Contact:
    """
    Return the contact of a hand that holds on at a point: it pushes and pulls in all directions.

    Parameters
    ----------
    pose
        Of the hand in the world.
    largest_force
        Of the hand, N: the sum of the forces along the three axes.

    """
    if not 0.0 < largest_force < math.inf:
        raise InputError(f'the largest force of a grip must be positive and finite, not '
                         f'{largest_force:g} N')
    return Contact(pose, _at(0.0, 0.0, np.hstack([np.eye(3), -np.eye(3)])), largest_force)


def _at(x: float, y: float, forces: Array) -> Array:
    """Return the wrenches (6, k) about the origin of forces (3, k) at a point of the surface."""
    fx, fy, fz = forces
    return np.vstack([forces, y * fz, -x * fz, x * fy - y * fx])
