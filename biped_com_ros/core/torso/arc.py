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
The backbone in one shape: pose and velocity of the tip, and virtual work of wrenches on it.

Vectors are pairs here: the part in the plane of the backbone's base as a complex number,
forward + i left, and the part along its z axis. A control loop computes a dozen of them per
update, which takes a tenth of the time of arrays with three elements.
:class:`~.constant_curvature.Backbone` returns the same quantities as arrays.
"""

from __future__ import annotations

from cmath import rect
import math

from biped_com_ros.core.geometry.pose import Array
import numpy as np

Vector = tuple[complex, float]
"""Part in the x-y plane of the backbone's base, forward + i left, and part along z."""

Wrench = tuple[complex, float, complex, float]
"""Force and moment, a :data:`Vector` each."""

SERIES_BELOW = 0.09
"""Square of the bend below which :func:`stumpff` uses series, rad^2."""


def vector_of(values: Array) -> Vector:
    """Return a vector (3,) as a pair."""
    x, y, z = values.tolist()
    return complex(x, y), z


def wrench_of(values: Array) -> Wrench:
    """Return a wrench (6,), force first, as two pairs."""
    fx, fy, fz, mx, my, mz = values.tolist()
    return complex(fx, fy), fz, complex(mx, my), mz


def array_of(pairs: Vector | Wrench) -> Array:
    """Return one pair as (3,), two as (6,)."""
    return np.array([x for across, along in zip(pairs[::2], pairs[1::2])
                     for x in (across.real, across.imag, along.real)])


class Arc:
    """
    A backbone bent with constant curvature.

    With ``rho = i bend``, the axis of bending times its angle, the tip is rotated by
    ``R = exp(rho) Rz(torsion)``, equation (2) of Russo et al. (2021) without its singularity at
    zero bend.

    Parameters
    ----------
    bend
        Angle times direction, forward + i left, rad.
    torsion
        rad.
    elongation, rest
        Elongation of the backbone, and its length without elongation, m.

    """

    __slots__ = ('bend', 'torsion', 'elongation', 'length', 'cos', 'sinc', 'versine', 'defect',
                 'second', 'turn', '_back')

    def __init__(self, bend: complex, torsion: float, elongation: float, rest: float) -> None:
        self.bend, self.torsion, self.elongation = bend, torsion, elongation
        self.length, self._back = rest + elongation, bend.conjugate()
        self.cos, self.sinc, self.versine, self.defect, self.second = stumpff(
            bend.real * bend.real + bend.imag * bend.imag)
        self.turn = rect(1.0, torsion)

    @property
    def shape(self) -> Array:
        """Shape, an array (4,)."""
        return np.array((self.bend.real, self.bend.imag, self.torsion, self.elongation))

    # -- the tip, in the base

    @property
    def position(self) -> Vector:
        """Position of the tip, m."""
        return self.length * self.versine * self.bend, self.length * self.sinc

    def rotate(self, across: complex, along: float) -> Vector:
        """Return ``R v``: a vector from the axes of the tip to those of the base."""
        across *= self.turn
        leaning = (self._back * across).real
        return (across + (self.sinc * along - self.versine * leaning) * self.bend,
                self.cos * along - self.sinc * leaning)

    def rotate_back(self, across: complex, along: float) -> Vector:
        """Return ``R' v``: a vector from the axes of the base to those of the tip."""
        leaning = (self._back * across).real
        turned = across - (self.sinc * along + self.versine * leaning) * self.bend
        return turned * self.turn.conjugate(), self.cos * along + self.sinc * leaning

    # -- motion

    def twist(self, bend: complex, torsion: float, elongation: float = 0.0) -> Wrench:
        """Return velocity and angular velocity of the tip, in the base, for rates of the shape."""
        product = self._back * bend
        stretching, turning = product.real, product.imag
        slope = self.length * (2.0 * self.second - self.defect) * stretching
        return (self.length * self.versine * bend + (
                    slope + elongation * self.versine) * self.bend,
                self.length * (self.defect - self.versine) * stretching + elongation * self.sinc,
                1j * bend + (self.defect * turning + self.sinc * torsion) * self.bend,
                self.versine * turning + self.cos * torsion)

    def work(self, wrench: Wrench) -> tuple[complex, float, float]:
        """Return the generalized force of a wrench on the tip: the transpose of :meth:`twist`."""
        force, up, moment, about = wrench
        pushing, leaning = (self._back * force).real, (self._back * moment).real
        along = self.length * (2.0 * self.second - self.defect) * pushing + (
            self.length * (self.defect - self.versine) * up)
        swinging = self.defect * leaning + self.versine * about
        return (self.length * self.versine * force - 1j * moment
                + complex(along, swinging) * self.bend,
                self.sinc * leaning + self.cos * about, self.versine * pushing + self.sinc * up)

    def rates(self, across: complex, along: float) -> tuple[complex, float]:
        """Return the rates of bend and torsion for an angular velocity of the tip, in the base."""
        sideways, scale = -1j * across, 1.0 / self.sinc
        bend = scale * (self.cos * sideways + (self.versine - self.defect) * (
            self._back * sideways).real * self.bend) + 1j * along * self.bend
        return bend, (self.sinc * (self._back * across).real + self.cos * along
                      + self.versine * (self._back * bend).imag)


def stumpff(square: float) -> tuple[float, float, float, float, float]:
    """
    Return ``cos x, sin x / x, (1 - cos x) / x^2, (x - sin x) / x^3`` and the next such quotient.

    Each is the difference of the last but one to its value at 0, divided by ``-x^2``.

    Parameters
    ----------
    square
        ``x^2``, rad^2.

    """
    if square < SERIES_BELOW:
        third = 1 / 6 - square * (1 / 120 - square * (
            1 / 5040 - square * (1 / 362880 - square / 39916800)))
        fourth = 1 / 24 - square * (1 / 720 - square * (
            1 / 40320 - square * (1 / 3628800 - square / 479001600)))
        second = 0.5 - square * fourth
        return 1.0 - square * second, 1.0 - square * third, second, third, fourth
    x = math.sqrt(square)
    first, second = math.sin(x) / x, 0.5 * (math.sin(0.5 * x) / (0.5 * x)) ** 2
    return math.cos(x), first, second, (1.0 - first) / square, (0.5 - second) / square


def sinc(x: float) -> float:
    """Return ``sin x / x``."""
    return math.sin(x) / x if abs(x) > 1e-4 else 1.0 - x * x / 6.0
