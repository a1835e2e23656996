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
Reproduction of Muscolo et al. 2017, section 3: link CoMs of a planar two-link leg.

A foot on the ground, then links b and c, which hinge at the ankle and at the knee; the paper's
three poses are upright, leaning about the ankle by theta_b, and bent at the knee by theta_c. The
unknowns are the centres of mass of b and c, each in its own link: r forward, l along the link.

Errors of the printed equations, corrected here unless ``as_printed``:

- (36): the last sign is +, ``m_c (l_c sin + r_c cos)``;
- (38), (40)-(43): entry (3,3) is ``+m_c cos``, entry (4,4) is ``m_c cos``, not ``m_c sin``;
- the listing's undefined ``mu`` is ``ma``;
- (22), (28), (29) find the height by a rigid tilt about the ankle; they do not hold for the pose
  bent at the knee. Its total centre of mass must be known otherwise (the paper's bypass,
  :func:`solve_two_link`), or only the measured x is used, from four poses
  (:func:`two_link_from_lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import ComLine
import numpy as np
from numpy.typing import ArrayLike

WORST_CONDITION = 1e4
"""Condition number of the links' equations above which poses count as equal."""


@dataclass(frozen=True)
class TwoLinkLeg:
    """
    Known properties of the leg.

    Attributes
    ----------
    mass_a, mass_b, mass_c
        Of foot, shin and everything above the knee, kg.
    length_a, length_b
        From floor to ankle and from ankle to knee, m (L_a, L_b).
    r_a, l_a
        Centre of mass of the foot in the sole frame, x and z, m.

    """

    mass_a: float
    mass_b: float
    mass_c: float
    length_a: float
    length_b: float
    r_a: float = 0.0
    l_a: float = 0.0

    @property
    def mass(self) -> float:
        """Total mass, m2, kg."""
        return self.mass_a + self.mass_b + self.mass_c

    def com(self, links: LinkComs, ankle: float, knee: float) -> Array:
        """
        Return the total centre of mass (x, z), m.

        Parameters
        ----------
        links
            Centres of mass in the links.
        ankle, knee
            Joint angles, rad; positive leans forward.

        """
        b, c = ankle, ankle + knee
        knee_x, knee_z = self.length_b * math.sin(b), self.length_a + self.length_b * math.cos(b)
        x = (self.mass_a * self.r_a
             + self.mass_b * (links.l_b * math.sin(b) + links.r_b * math.cos(b))
             + self.mass_c * (knee_x + links.l_c * math.sin(c) + links.r_c * math.cos(c)))
        z = (self.mass_a * self.l_a
             + self.mass_b * (self.length_a + links.l_b * math.cos(b) - links.r_b * math.sin(b))
             + self.mass_c * (knee_z + links.l_c * math.cos(c) - links.r_c * math.sin(c)))
        return np.array((x, z)) / self.mass


@dataclass(frozen=True)
class LinkComs:
    """Centres of mass of links b and c in their links: r forward, l along the link, m."""

    r_b: float
    l_b: float
    r_c: float
    l_c: float


def two_link_matrix(leg: TwoLinkLeg, theta_b: float, theta_c: float,
                    as_printed: bool = False) -> Array:
    """
    Return A (4, 4) of (38): rows are x and z of pose b, then of c; columns r_b, l_b, r_c, l_c.

    Its determinant is ``2 m_b^2 m_c^2 (1 - cos theta_c)``: the ankle's angle does not matter, the
    knee's does.

    Parameters
    ----------
    leg
        Its masses are used, kg.
    theta_b, theta_c
        Ankle angle of pose b and knee angle of pose c, rad.
    as_printed
        The paper's two misprints, for comparison only.

    """
    mb, mc = leg.mass_b, leg.mass_c
    sb, cb, sc, cc = math.sin(theta_b), math.cos(theta_b), math.sin(theta_c), math.cos(theta_c)
    entry_33, entry_44 = (-mc * cc, mc * sc) if as_printed else (mc * cc, mc * cc)
    return np.array([
        [mb * cb, mb * sb, mc * cb, mc * sb],
        [-mb * sb, mb * cb, -mc * sb, mc * cb],
        [mb, 0.0, entry_33, mc * sc],
        [0.0, mb, -mc * sc, entry_44]])


def two_link_right_side(leg: TwoLinkLeg, com_b: ArrayLike, com_c: ArrayLike,
                        theta_b: float) -> Array:
    """Return (39), shape (4,), kg m, from the total centres of mass (x, z) of poses b and c."""
    first_moments = leg.mass * np.array((com_b, com_c), dtype=float)
    first_moments -= leg.mass_a * np.array((leg.r_a, leg.l_a))
    La, Lb, mb, mc = leg.length_a, leg.length_b, leg.mass_b, leg.mass_c
    known_b = (mc * Lb * math.sin(theta_b), (mb + mc) * La + mc * Lb * math.cos(theta_b))
    known_c = (0.0, (mb + mc) * La + mc * Lb)
    return (first_moments - (known_b, known_c)).ravel()


def solve_two_link(leg: TwoLinkLeg, com_b: ArrayLike, com_c: ArrayLike, theta_b: float,
                   theta_c: float, as_printed: bool = False) -> LinkComs:
    """
    Return the links' centres of mass where the total one is known (the paper's bypass).

    Parameters
    ----------
    leg
        Known properties.
    com_b, com_c
        Total centre of mass (x, z) leaning about the ankle and bent at the knee, m.
    theta_b, theta_c
        Those two angles, rad.
    as_printed
        Use the paper's matrix with its misprints, for comparison only.

    Raises
    ------
    InputError
        If the poses do not separate the links: theta_c near zero.

    """
    A = two_link_matrix(leg, theta_b, theta_c, as_printed)
    right = two_link_right_side(leg, com_b, com_c, theta_b)
    _check_condition(A, f'a knee angle of {math.degrees(theta_c):.3f} deg')
    return LinkComs(*np.linalg.solve(A, right).tolist())


def reduced_determinant(leg: TwoLinkLeg, theta_b: float, theta_c: float) -> float:
    """Return ``det_A`` of the paper's listing, which solves for l_b and l_c alone, kg^2."""
    return leg.mass_b * leg.mass_c * math.cos(theta_b) * (math.cos(theta_c) - 1.0)


def solve_reduced(leg: TwoLinkLeg, z_b: float, z_c: float, theta_b: float,
                  theta_c: float) -> tuple[float, float]:
    """
    Return l_b and l_c as the paper's listing does, taking r_b = r_c = 0.

    Parameters
    ----------
    leg
        Known properties.
    z_b, z_c
        Heights of the total centre of mass leaning and bent, m.
    theta_b, theta_c
        Those two angles, rad.

    Raises
    ------
    InputError
        If theta_c is near zero.

    """
    determinant = reduced_determinant(leg, theta_b, theta_c)
    if not abs(determinant) > 1e-6 * leg.mass_b * leg.mass_c:
        raise InputError(_singular(f'a knee angle of {math.degrees(theta_c):.3f} deg'))
    _, B, _, C = two_link_right_side(leg, (0.0, z_b), (0.0, z_c), theta_b)
    cb, cc = math.cos(theta_b), math.cos(theta_c)
    return (float(leg.mass_c * (B * cc - C * cb) / determinant),
            float(leg.mass_b * (C * cb - B) / determinant))


def two_link_from_lines(leg: TwoLinkLeg, ankles: Sequence[float], knees: Sequence[float],
                        lines: Sequence[ComLine]) -> LinkComs:
    """
    Return the links' centres of mass from foot wrenches alone.

    Every pose gives one equation, ``X - beta Z = alpha``, without assumptions on the
    pose; least squares over all.

    Parameters
    ----------
    leg
        Known properties.
    ankles, knees
        Joint angles of the poses, rad.
    lines
        Measured in the same poses.

    Raises
    ------
    InputError
        If there are fewer than four poses, or they are too similar.

    """
    if not len(ankles) == len(knees) == len(lines) >= 4:
        raise InputError(
            f'{len(ankles)} ankle angles, {len(knees)} knee angles and {len(lines)} lines: four '
            'unknowns need as many poses, one equation each')
    zero, unit = LinkComs(0.0, 0.0, 0.0, 0.0), [LinkComs(*row) for row in np.eye(4).tolist()]
    rows, right = [], []
    for ankle, knee, line in zip(ankles, knees, lines):
        across = leg.mass * np.array((1.0, -line.beta))
        known = leg.com(zero, ankle, knee)
        rows.append([across @ (leg.com(e, ankle, knee) - known) for e in unit])
        right.append(leg.mass * line.alpha - across @ known)
    A = np.array(rows)
    _check_condition(A, f'{len(lines)} poses')
    return LinkComs(*np.linalg.lstsq(A, np.array(right), rcond=None)[0].tolist())


def _check_condition(A: Array, poses: str) -> None:
    if not np.linalg.cond(A) < WORST_CONDITION:
        raise InputError(_singular(poses))


def _singular(poses: str) -> str:
    return (f'{poses} cannot separate the links, because the equations are singular; bend ankle '
            'and knee further, each by 5 deg or more, and not always by the same angles')
