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
Reproduction of Muscolo et al. 2017, section 2: total CoM from two balance configurations.

On level ground the foot wrenches of one pose do not depend on the height of the centre of mass
(:func:`biped_com_ros.core.geometry.wrench.com_line`). With everything above the ankles leaning by
a known angle they do: the x of the leaning body is the height of the upright one times the sine of
the angle.

Everything is in a frame at the sole, z against gravity; a positive tilt leans towards x.

Ambiguity of the print: equation (18) and the listing count the foot in `m2`, the list of symbols
does not. Here `mass` is everything that the sensors carry, the ankle link included; with sensors
above that link pass ``AnkleLink(0, 0, 0, U)``.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import ComLine
import numpy as np

SMALLEST_TILT = math.radians(1.0)
"""Below this tilt an error of 0.1 deg in it, or 1 mm in a line, moves the height by 0.1 m."""


@dataclass(frozen=True)
class AnkleLink:
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


@dataclass(frozen=True)
class TwoPoseCom:
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


@dataclass(frozen=True)
class LineNoise:
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
    Solve (14), (16), (17) of the paper for both poses in closed form.

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
        line_a, line_b = _level(line_a), _level(line_b)
    m_w = _leaning_mass(mass, ankle)
    if math.isinf(tilt):
        raise InputError(f'the tilt is {tilt}; it must be an angle, rad')
    s, c = math.sin(tilt), math.cos(tilt)
    D = s * (1.0 + line_a.beta * line_b.beta) + c * (line_a.beta - line_b.beta)
    _check_tilt(tilt, D)
    a, b = (_offset(line, mass, m_w, ankle) for line in (line_a, line_b))
    l_w = (b - a * (c + line_b.beta * s)) / D
    r_w = a + line_a.beta * l_w
    static, U = ankle.mass * ankle.l, ankle.height
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


def _level(line: ComLine) -> ComLine:
    return line._replace(beta=0.0, delta=0.0)


def _offset(line: ComLine, mass: float, m_w: float, ankle: AnkleLink) -> float:
    """Return ``a`` of the paper's X equation: x of the leaning part, m."""
    static = ankle.mass * ankle.l
    return (mass * line.alpha + line.beta * (static + m_w * ankle.height)
            - ankle.mass * ankle.r) / m_w


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
