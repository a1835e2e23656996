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
Muscolo, Caldwell, Cannella 2017: centres of mass from foot wrenches, equation by equation.

*Calculation of the Center of Mass Position of Each Link of Multibody Biped Robots*, Applied
Sciences 7, 724. For tables and tests, in the paper's plane; robots are calibrated by
:mod:`biped_com_ros.core.identification`, which has the paper's two procedures for any robot.

=============== ===================================================================================
(1)-(15)        :func:`.com_line` of :func:`.sum_wrenches`; :func:`com_line_as_printed`
(16)-(20)       :func:`com_from_two_poses`; of captures :func:`.com_from_captures`
(21), (26)      :func:`.moments_from_com` and :func:`.rank_of`: n + 1 poses of any robot
(23), (30)-(31) :func:`leaning_com`; the angles of (25), (32)-(33) in :class:`.MeasuredCom`
(34)-(37)       :meth:`TwoLinkLeg.com`
(38)            :func:`two_link_matrix`
(39)            :func:`two_link_right_side`
(40)-(43)       :func:`solve_two_link`; from foot wrenches alone :func:`two_link_from_lines`
listing         :func:`solve_reduced`
=============== ===================================================================================

Section 2 is in a frame at the sole, z against gravity; a positive tilt leans towards x. On level
ground the foot wrenches of one pose do not depend on the height of the centre of mass. With
everything above the ankles leaning by a known angle they do: the x of the leaning body is the
height of the upright one times the sine of the angle. Equation (18) and the listing count the foot
in `m2`, the list of symbols does not. Here `mass` is everything that the sensors carry, the ankle
link included; with sensors above that link pass ``AnkleLink(0, 0, 0, U)``.

Section 3 has a foot on the ground, then links b and c, which hinge at the ankle and at the knee;
the paper's three poses are upright, leaning about the ankle by theta_b, and bent at the knee by
theta_c. Unknown are the centres of mass of b and c, each in its own link: r forward, l along the
link. Errors of the printed equations, corrected here unless ``as_printed``:

- (36): the last sign is +, ``m_c (l_c sin + r_c cos)``;
- (38), (40)-(43): entry (3,3) is ``+m_c cos``, entry (4,4) is ``m_c cos``, not ``m_c sin``;
- (24) repeats (23); the listing's undefined ``mu`` is ``ma``;
- (22), (28), (29) find the height by a rigid tilt about the ankle; they do not hold for the pose
  bent at the knee. Its total centre of mass must be known otherwise (the paper's bypass,
  :func:`solve_two_link`), or only the measured x is used, from four poses
  (:func:`two_link_from_lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import com_line, ComLine
from biped_com_ros.core.identification.estimation.two_poses import SMALLEST_TILT
import numpy as np
from numpy.typing import ArrayLike

WORST_CONDITION = 1e4
"""Condition number of the links' equations above which poses count as equal."""


# -- section 2: the total centre of mass


def com_line_as_printed(wrench: ArrayLike, joint_torque_sum: ArrayLike) -> ComLine:
    """
    Return the line of (8)-(15) with the sum of joint torques M2 in it, as printed.

    Joint torques are internal and cancel; with them X moves by ``-M_Y2 / F_Z``, up to 0.1 m.

    Parameters
    ----------
    wrench
        Total (6,), as for :func:`.com_line`.
    joint_torque_sum
        M2 of (3), shape (3,), N m.

    """
    return com_line(np.asarray(wrench, dtype=float) + (
        0.0, 0.0, 0.0, *np.asarray(joint_torque_sum, dtype=float)))


class AnkleLink(NamedTuple):
    """
    The part between floor and ankle joint, which does not lean.

    Attributes
    ----------
    mass
        The paper's m_u, kg.
    r, l
        x and z of its centre of mass in the sole frame, m (r_u, l_u).
    height
        z of the ankle joint, m (U).

    """

    mass: float
    r: float
    l: float  # noqa: E741 - the paper's name
    height: float


class TwoPoseCom(NamedTuple):
    """
    Centre of mass from an upright pose A and a leaning pose B.

    Attributes
    ----------
    r_w, l_w
        Centre of mass of the leaning part when upright, from the ankle joint: x and z, m.
    com_a, com_b
        Total centre of mass in the two poses, shape (3,), m.

    """

    r_w: float
    l_w: float
    com_a: Array
    com_b: Array


class LineNoise(NamedTuple):
    """
    Standard deviations of the inputs of :func:`com_from_two_poses`.

    Attributes
    ----------
    alpha
        Of alpha and gamma, m.
    beta
        Of beta and delta.
    tilt
        Of the tilt, rad; take it from differences of an IMU's pitch, not from ankle encoders,
        which do not measure deflection of the sole.

    """

    alpha: float
    beta: float
    tilt: float = 0.0

    @staticmethod
    def of_sensors(force: float, torque: float, weight: float, feet: int = 2) -> LineNoise:
        """
        Return the noise of the coefficients that white sensor noise causes.

        Parameters
        ----------
        force, torque
            Standard deviation per axis of each foot's sensor, N and N m.
        weight
            Of the robot, N.
        feet
            Number of sensors that are summed.

        """
        share = math.sqrt(feet) / weight
        return LineNoise(torque * share, force * share)


def com_from_two_poses(line_a: ComLine, line_b: ComLine, tilt: float, mass: float,
                       ankle: AnkleLink, level_ground: bool = True) -> TwoPoseCom:
    """
    Solve (14) and (16)-(20) of the paper for both poses in closed form.

    Parameters
    ----------
    line_a, line_b
        Lines on which the centre of mass is, upright and leaning.
    tilt
        Lean of everything above the ankles in B, rad.
    mass
        Everything that the sensors carry, m2, kg.
    ankle
        The part that does not lean.
    level_ground
        Set beta = delta = 0, which holds for any robot at rest in a frame that is exactly
        along gravity. Measured values only add the noise of the horizontal forces: at 10 deg and
        0.5 N that is several times all other noise.

    Raises
    ------
    InputError
        If the tilt, or the determinant D that replaces it where beta is not zero, is too small
        to determine the height.

    """
    if level_ground:
        line_a, line_b = (line._replace(beta=0.0, delta=0.0) for line in (line_a, line_b))
    m_w = _leaning_mass(mass, ankle)
    if math.isinf(tilt):
        raise InputError(f'the tilt is {tilt}; it must be an angle, rad')
    s, c = math.sin(tilt), math.cos(tilt)
    D = s * (1.0 + line_a.beta * line_b.beta) + c * (line_a.beta - line_b.beta)
    _check_tilt(tilt, D)
    static, U = ankle.mass * ankle.l, ankle.height
    a, b = ((mass * line.alpha + line.beta * (static + m_w * U) - ankle.mass * ankle.r) / m_w
            for line in (line_a, line_b))
    l_w = (b - a * (c + line_b.beta * s)) / D
    r_w = a + line_a.beta * l_w
    z_a = (static + m_w * (U + l_w)) / mass
    z_b = (static + m_w * (U + l_w * c - r_w * s)) / mass
    return TwoPoseCom(r_w, l_w, line_a.at_height(z_a), line_b.at_height(z_b))


def standard_deviations(line_a: ComLine, line_b: ComLine, tilt: float, mass: float,
                        ankle: AnkleLink, noise: LineNoise, level_ground: bool = True) -> Array:
    """
    Return the standard deviations of :func:`com_from_two_poses`, to first order.

    Returns
    -------
    numpy.ndarray
        Of r_w, l_w, and of x, y, z of the centre of mass in pose A and in B, shape (8,), m.

    """
    def solve(values: Array) -> Array:
        solution = com_from_two_poses(ComLine(*values[:4]), ComLine(*values[4:8]),
                                      float(values[8]), mass, ankle, level_ground)
        return np.array([solution.r_w, solution.l_w, *solution.com_a, *solution.com_b])

    at = np.array([*line_a, *line_b, tilt])
    sigma = np.array([noise.alpha, noise.beta] * 4 + [noise.tilt])
    step = 1e-6
    jacobian = np.array([
        (solve(at + step * e) - solve(at - step * e)) / (2.0 * step) for e in np.eye(9)])
    return np.linalg.norm(jacobian * sigma[:, np.newaxis], axis=0)


def leaning_com(x: float, z: float, mass: float, ankle: AnkleLink) -> tuple[float, float]:
    """
    Return r_w and l_w of (23), (30), (31): the centre of mass of what leans, from the ankle, m.

    Parameters
    ----------
    x, z
        Total centre of mass in the pose, m.
    mass, ankle
        As for :func:`com_from_two_poses`.

    """
    m_w = _leaning_mass(mass, ankle)
    return ((mass * x - ankle.mass * ankle.r) / m_w,
            (mass * z - ankle.mass * ankle.l) / m_w - ankle.height)


def _leaning_mass(mass: float, ankle: AnkleLink) -> float:
    m_w = mass - ankle.mass
    if not m_w > 0.0:
        raise InputError(
            f'the total mass {mass} kg must be above that of the ankle link, {ankle.mass} kg')
    return m_w


def _check_tilt(tilt: float, D: float) -> None:
    smallest = math.sin(SMALLEST_TILT)
    if not min(abs(math.sin(tilt)), abs(D)) >= smallest:
        raise InputError(
            f'the two poses differ by a tilt of {math.degrees(tilt):.3f} deg (determinant '
            f'{D:.2e}), below the {math.degrees(SMALLEST_TILT):.0f} deg that determine the height '
            'of the centre of mass: lean further about the ankles, 5 to 10 deg')


# -- section 3: the links' centres of mass


class LinkComs(NamedTuple):
    """Centres of mass of links b and c in their links: r forward, l along the link, m."""

    r_b: float
    l_b: float
    r_c: float
    l_c: float


class TwoLinkLeg(NamedTuple):
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
