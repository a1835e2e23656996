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
Russo, Ceccarelli, Cafolla 2021: the tendon-driven torso, equation by equation.

*Kinematic Modelling and Motion Analysis of a Humanoid Torso Mechanism*, Applied Sciences 11, 2607.
The controller uses shapes ``(theta cos phi, theta sin phi, psi, elongation)`` and is in
:mod:`biped_com_ros.core.torso`.

=============== ===================================================================================
(1)-(3)         :meth:`.Backbone.tip` of :func:`.make_shape`
(4)             :func:`printed_lengths` as printed; exact :func:`helix_lengths`; through disks
                :func:`chord_lengths`; what the controller uses :meth:`.Backbone.lengths`
(5)             :func:`backbone_reactions`
(6)             :func:`tendon_moments`; in shapes :meth:`.TorsoStatics.of_tendons`
(7)             :func:`printed_bend` as printed; by virtual work :class:`VirtualWork`, with the
                column effect :meth:`.TorsoStatics.equilibrium`
Table 2         :func:`length_range`
Figures 5, 6    :class:`.Workspace`, :class:`.Joystick`; Figures 8 to 12 ``examples/torso.py``
=============== ===================================================================================

What is wrong in print: (4) and (6) disagree on the routing, tendons 2 and 4 are swapped, so that
attachment angles are parameters here (180, 270, 0, 90 deg are those of (6)); torsion enters (4)
with the wrong sign and twice the phase; (6) has ``M_theta = My sin - Mx cos`` for
``My cos - Mx sin``; (6)-(7) have the wrong sign of F_z; (7), a moment equilibrium of the tip
alone, bends about twice as far as a rod does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.torso.arc import Arc, Wrench
from biped_com_ros.core.torso.constant_curvature import (
    Backbone, bend_and_direction, ELONGATION, TORSION, Workspace)
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics
import numpy as np

_GAUSS = np.polynomial.legendre.leggauss(12)
NODES: Array = 0.5 * (_GAUSS[0] + 1.0)
WEIGHTS: Array = 0.5 * _GAUSS[1]
"""Nodes and weights of the Gauss-Legendre quadrature over [0, 1]."""


# -- (4): lengths of the tendons


def printed_lengths(backbone: Backbone, shape: Array) -> Array:
    """
    Return the lengths of four tendons (4,), m, by equation (4) as it is printed.

    ``l' + theta r cos(phi + psi + (i - 1) 90 deg)``: tendons 2 and 4 are swapped against (6),
    torsion has the wrong sign and twice the phase. Only for reproducing the paper.
    """
    bend, direction = bend_and_direction(shape)
    phase = direction + float(shape[TORSION]) + 0.5 * math.pi * np.arange(4)
    return backbone.length + float(shape[ELONGATION]) + bend * backbone.radius * np.cos(phase)


def helix_lengths(backbone: Backbone, shape: Array) -> Array:
    """
    Return the lengths of the tendons (n,), m: exact helices parallel to the backbone.

    ``int_0^1 sqrt((l' - theta r cos(beta - phi + psi u))^2 + (r psi)^2) du``
    """
    a, b, psi, elongation = np.asarray(shape, dtype=float).tolist()
    angles = backbone.angles[:, np.newaxis] + psi * NODES
    along = backbone.length + elongation - backbone.radius * (
        a * np.cos(angles) + b * np.sin(angles))
    return np.sqrt(along * along + (backbone.radius * psi) ** 2) @ WEIGHTS


def chord_lengths(backbone: Backbone, shape: Array, disks: int) -> Array:
    """
    Return tendon lengths (n,), m, straight between `disks` disks beyond the base.

    Without torsion this is ``sinc(theta / 2n) (l' - theta r cos(beta - phi))``.
    """
    if disks < 1:
        raise ConfigurationError(f'tendons run through one disk or more, not {disks}')
    holes = np.array([backbone.holes(shape, k / disks) for k in range(disks + 1)])
    return np.linalg.norm(np.diff(holes, axis=0), axis=2).sum(axis=0)


def length_range(workspace: Workspace) -> tuple[float, float]:
    """Return the smallest and largest length of a tendon in the workspace, m (Table 2)."""
    backbone, (low, high) = workspace.backbone, workspace.elongations
    reach = workspace.max_bend * backbone.radius
    return backbone.length + low - reach, backbone.length + high + reach


# -- (5) to (7): statics


class Reactions(NamedTuple):
    """
    Reactions of the backbone.

    Attributes
    ----------
    twisting, axial, bending
        M_z, N m, F_z, N, and M_theta, N m.

    """

    twisting: float
    axial: float
    bending: float


def backbone_reactions(stiffness: Stiffness, shape: Array) -> Reactions:
    """Return (5): ``k_t psi``, ``k_c elongation`` and ``k_b theta``."""
    bend, _ = bend_and_direction(shape)
    return Reactions(stiffness.torsion * float(shape[TORSION]),
                     stiffness.axial * float(shape[ELONGATION]), stiffness.bending * bend)


class TendonMoments(NamedTuple):
    """
    Moments and force of the tendons on the tip.

    Attributes
    ----------
    m_x, m_y, m_theta
        About the axes, and across the direction of the bend, N m.
    f_z
        Along the backbone, N.

    """

    m_x: float
    m_y: float
    m_theta: float
    f_z: float


def tendon_moments(backbone: Backbone, tensions: Array, direction: float,
                   as_printed: bool = False) -> TendonMoments:
    """
    Return (6) for tensions (n,), N, and the direction of the bend, rad.

    ``M_x = -r sum F_i sin beta_i`` and ``M_y = r sum F_i cos beta_i`` for any attachments; as
    printed, M_theta and F_z have other signs.
    """
    pull = backbone.radius * backbone.pull(np.asarray(tensions).tolist())
    m_x, m_y, total = -pull.imag, pull.real, float(np.sum(tensions))
    s, c = math.sin(direction), math.cos(direction)
    if as_printed:
        return TendonMoments(m_x, m_y, m_y * s - m_x * c, total)
    return TendonMoments(m_x, m_y, m_y * c - m_x * s, -total)


def printed_bend(backbone: Backbone, stiffness: Stiffness, force: float) -> float:
    """
    Return the bend by (7) as printed under a force across the tip, rad, without tendons.

    ``k_b theta = P l sin(theta) / theta``: twice that of a rod, as the lever is the whole length.

    Parameters
    ----------
    backbone, stiffness
        The torso.
    force
        P_x, N, not negative.

    """
    bend = 0.0
    for _ in range(100):
        bend = force * backbone.length * float(np.sinc(bend / math.pi)) / stiffness.bending
    return bend


class VirtualWork(TorsoStatics):
    """What corrects (7): plain virtual work, without the column effect of axial loads."""

    def column_effect(self, arc: Arc, wrench: Wrench) -> complex:
        """Return zero, N m: the curvature counts as constant."""
        return 0j
