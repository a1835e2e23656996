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
Kinematics of a backbone of constant curvature with torsion and elongation, and its workspace.

After Russo, Ceccarelli and Cafolla (2021), equations (1)-(4), in shapes ``(theta cos phi,
theta sin phi, psi, elongation)``. With ``rho = theta (-sin phi, cos phi, 0)`` their (2) reads
``R = exp(rho) Rz(psi)``, smooth at zero bend. What is printed, and exact helices:
:mod:`biped_com_ros.papers.russo_2021`.

Frames: *base* is at the lower end of the backbone, z along the straight backbone, x forward; *tip*
is at its upper end.
"""

from __future__ import annotations

from cmath import rect
from collections.abc import Iterable
import math
from operator import mul
from typing import NamedTuple

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.config import TorsoConfig
from biped_com_ros.core.torso.arc import Arc, array_of, sinc, stumpff
import numpy as np

BEND_X, BEND_Y, TORSION, ELONGATION = range(4)

AXES = ((1.0 + 0j, 0.0), (1j, 0.0), (0j, 1.0))
"""Unit vectors, as :mod:`.arc` writes them."""

RATES = ((1.0 + 0j, 0.0), (1j, 0.0), (0j, 1.0), (0j, 0.0, 1.0))
"""Unit rates of a shape."""

LARGEST_GAP = math.pi - 1e-9
"""Angle between neighbouring tendons from which on they cannot bend towards the gap, rad."""


class Backbone:
    """
    Geometry of the backbone and its tendons.

    Parameters
    ----------
    length, radius
        Of the straight, unloaded backbone and of the tendon circle, m.
    angles
        Attachment angles of the tendons, shape (n,), n >= 3, rad.

    Attributes
    ----------
    directions
        Unit vectors towards the attachments, forward + i left.
    shares
        The real part of ``share * pull`` is the tension of each tendon in the least-norm solution
        for a pull.

    Raises
    ------
    ConfigurationError
        If a size is not positive, or neighbouring tendons are half a turn or more apart.

    """

    def __init__(self, length: float, radius: float, angles: Array) -> None:
        self.length, self.radius = _positive('length', length), _positive('radius', radius)
        self.angles = np.array(angles, dtype=float)
        _check_angles(self.angles)
        self.count = len(self.angles)
        self._cos, self._sin = np.cos(self.angles), np.sin(self.angles)
        self._circle = np.column_stack((self._cos, self._sin))
        self.directions = tuple(map(complex, self._cos.tolist(), self._sin.tolist()))
        least = np.linalg.pinv(self._circle.T)
        self.shares = tuple(complex(x, -y) for x, y in least.tolist())

    @staticmethod
    def from_config(config: TorsoConfig) -> Backbone:
        """Build from the robot's YAML."""
        return Backbone(config.backbone_length, config.radius,
                        np.radians(config.attachment_angles_deg))

    def arc(self, bend: complex, torsion: float = 0.0, elongation: float = 0.0) -> Arc:
        """Return the backbone with a bend, forward + i left, rad, torsion, rad, elongation, m."""
        return Arc(bend, torsion, elongation, self.length)

    def arc_of(self, shape: Array, along: float = 1.0) -> Arc:
        """Return the backbone in a shape (4,), or the share `along` of it from the base on."""
        a, b, torsion, elongation = np.asarray(shape).tolist()
        return Arc(along * complex(a, b), along * torsion, along * elongation, along * self.length)

    # -- the tip

    def tip(self, shape: Array, along: float = 1.0) -> Pose:
        """
        Return the pose of the tip in the base, equations (1)-(3).

        Parameters
        ----------
        shape
            (4,)
        along
            Share of the backbone's length, 0 at the base and 1 at the tip.

        """
        arc = self.arc_of(shape, along)
        axes = np.array([array_of(arc.rotate(*axis)) for axis in AXES])
        return Pose(np.ascontiguousarray(axes.T), array_of(arc.position))

    def tip_jacobian(self, shape: Array) -> Array:
        """
        Return the Jacobian of the tip with respect to the shape.

        Returns
        -------
        array (6, 4)
            Linear velocity of the tip, then angular velocity, both in the base, per rate of the
            shape. Its transpose takes a wrench at the tip, force first, to generalized forces.

        """
        arc = self.arc_of(shape)
        return np.column_stack([array_of(arc.twist(*rate)) for rate in RATES])

    def points(self, shape: Array, count: int) -> Array:
        """Return `count` points from base to tip on the backbone, (count, 3), in the base."""
        return np.array([self.tip(shape, u).position for u in np.linspace(0.0, 1.0, count)])

    def holes(self, shape: Array, along: float) -> Array:
        """Return the holes of the tendons in a disk at the share `along`, (n, 3), in the base."""
        ring = np.column_stack((self._cos, self._sin, np.zeros(self.count)))
        return self.tip(shape, along).apply(self.radius * ring)

    # -- tendons

    def lengths_at(self, bend: complex, torsion: float, length: float) -> list[float]:
        """
        Return tendon lengths, m, of a backbone of a `length`, m, in closed form.

        ``l = l0 + (r psi)^2 / (2 l0)`` with ``l0 = l' - theta r sinc(psi/2) cos(beta - phi +
        psi/2)``: within 1e-6 mm of exact helices at a bend of 15 and a torsion of 1.54 deg, and
        1e-3 mm at 90 and 10 deg; with ``2 l'`` as divisor it would be 2.4e-4 and 0.1 mm.
        """
        half = 0.5 * torsion
        reach = rect(self.radius * sinc(half), half) * bend.conjugate()
        twist = self.radius * torsion
        extra = 0.5 * twist * twist
        return [(bent := length - (direction * reach).real) + extra / bent
                for direction in self.directions]

    def lengths(self, shape: Array) -> Array:
        """Return :meth:`lengths_at` of a shape (4,) as (n,), m."""
        arc = self.arc_of(shape)
        return np.array(self.lengths_at(arc.bend, arc.torsion, arc.length))

    def pull(self, tensions: Iterable[float]) -> complex:
        """Return the sum of tensions, N, times the directions of their tendons, N."""
        return sum(map(mul, self.directions, tensions), 0j)

    def lever(self, arc: Arc) -> complex:
        """
        Return the moment on the bend per newton of :meth:`pull`, m.

        The derivative of the lengths by the bend. That torsion shortens all levers by the same
        share is right within 1e-4 up to 5 deg.
        """
        half, twist = 0.5 * arc.torsion, self.radius * arc.torsion / arc.length
        return rect(self.radius * sinc(half) * (1.0 - 0.5 * twist * twist), half)

    def moment_columns(self, shape: Array) -> Array:
        """Return the bending moment (2, n) of each tendon per newton, m; see :meth:`lever`."""
        columns = self.lever(self.arc_of(shape)) * np.array(self.directions)
        return np.array((columns.real, columns.imag))

    def length_jacobian(self, shape: Array) -> Array:
        """Return the derivative (n, 4) of :meth:`lengths`."""
        a, b, psi, elongation = np.asarray(shape).tolist()
        k, slope = self.radius * sinc(0.5 * psi), 0.5 * self.radius * _sinc_rate(0.5 * psi)
        c, s = math.cos(0.5 * psi), math.sin(0.5 * psi)
        p, q = slope * a + 0.5 * k * b, slope * b - 0.5 * k * a
        jacobian = np.empty((self.count, 4))
        # Columns of cosines and sines of the tendons' angles, turned by psi / 2.
        jacobian[:, :3] = self._circle.dot(np.array((
            -k * c, -k * s, -p * c - q * s, k * s, -k * c, p * s - q * c)).reshape(2, 3))
        jacobian[:, 3] = 1.0
        bent = (self.length + elongation) + jacobian[:, :2].dot((a, b))
        twist = self.radius * psi / bent
        jacobian *= (1.0 - 0.5 * twist * twist)[:, np.newaxis]
        jacobian[:, 2] += self.radius * twist
        return jacobian

    def shape_from_lengths(self, lengths: Array, torsion: float = 0.0) -> Array:
        """
        Return the shape whose tendon lengths are nearest to given ones, by least squares.

        Torsion cannot be observed from lengths: it rotates the circle of the tendons, which is
        equivalent to another direction, and lengthens all of them, which is equivalent to
        elongation. It is measured by an IMU, or predicted by statics.

        Parameters
        ----------
        lengths
            (n,), m.
        torsion
            rad.

        Raises
        ------
        InputError
            If lengths are not finite, of the wrong number, or belong to no shape.

        """
        lengths = self._checked(lengths, torsion)
        shape, free = np.array((0.0, 0.0, torsion, 0.0)), [BEND_X, BEND_Y, ELONGATION]
        for _ in range(20):  # Gauss-Newton
            step = np.linalg.lstsq(self.length_jacobian(shape)[:, free],
                                   lengths - self.lengths(shape), rcond=None)[0]
            shape[free] += step
            if np.abs(step).max() < 1e-13:
                break
        if not np.isfinite(shape).all() or self.length + shape[ELONGATION] <= 0.0:
            raise InputError(f'tendon lengths {lengths.tolist()} m belong to no shape of a '
                             f'backbone of {self.length} m')
        return shape

    def _checked(self, lengths: Array, torsion: float) -> Array:
        lengths = np.array(lengths, dtype=float)
        if lengths.shape != (self.count,) or not np.isfinite(lengths).all():
            raise InputError(f'tendon lengths must be {self.count} finite numbers (m), not '
                             f'{lengths.tolist()}')
        if not math.isfinite(torsion):
            raise InputError(f'torsion must be finite (rad), not {torsion}')
        return lengths


def make_shape(bend: float, direction: float = 0.0, torsion: float = 0.0,
               elongation: float = 0.0) -> Array:
    """Return the shape (4,) of a bend towards a direction, a torsion (rad) and elongation (m)."""
    return np.array((bend * math.cos(direction), bend * math.sin(direction), torsion, elongation))


def bend_and_direction(shape: Array) -> tuple[float, float]:
    """Return bend (not negative) and its direction, rad; direction 0 if straight."""
    a, b = float(shape[BEND_X]), float(shape[BEND_Y])
    return math.hypot(a, b), math.atan2(b, a)


def shape_from_rotation(rotation: Array) -> Array:
    """
    Return the shape (4,) with a rotation of the tip and no elongation.

    Parameters
    ----------
    rotation
        ``R_base_tip``, shape (3, 3), bent by less than half a turn.

    """
    r = np.asarray(rotation)
    sine = math.hypot(r[0, 2], r[1, 2])
    bend = math.atan2(sine, r[2, 2])
    scale = bend / sine if sine > 1e-12 else 1.0
    torsion = math.atan2(r[1, 0] - r[0, 1], r[0, 0] + r[1, 1])
    return np.array((scale * r[0, 2], scale * r[1, 2], torsion, 0.0))


def _sinc_rate(x: float) -> float:
    """Return ``d sinc / d x``."""
    _, _, second, third, _ = stumpff(x * x)
    return x * (third - second)


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < math.inf:
        raise ConfigurationError(f'backbone {name} must be positive (m), not {value}')
    return float(value)


def largest_gap(angles: Array) -> float:
    """Return the largest angle between neighbouring attachments, rad."""
    ordered = np.sort(np.mod(angles, 2.0 * math.pi))
    return float(np.diff(ordered, append=ordered[0] + 2.0 * math.pi).max())


def _check_angles(angles: Array) -> None:
    if angles.ndim != 1 or len(angles) < 3 or not np.isfinite(angles).all():
        raise ConfigurationError(
            f'a torso needs three or more attachment angles, all finite, not {angles.tolist()}')
    gap = largest_gap(angles)
    if gap >= LARGEST_GAP:
        shown = ', '.join(f'{math.degrees(a):g}' for a in angles)
        raise ConfigurationError(
            f'attachment angles {shown} deg leave a gap of {math.degrees(gap):g} deg; tendons can '
            'bend the torso only towards gaps below 180 deg')


class LimitedShape(NamedTuple):
    """A shape (4,) within the workspace, and a description of what was limited; '' if nothing."""

    shape: Array
    reason: str


class Workspace:
    """
    All shapes up to a bend, within a range of elongation.

    Parameters
    ----------
    backbone
        Geometry of the torso.
    max_bend
        rad, above 0 and below a half turn.
    elongations
        Smallest and largest elongation, m.

    """

    def __init__(self, backbone: Backbone, max_bend: float,
                 elongations: tuple[float, float] = (0.0, 0.0)) -> None:
        if not 0.0 < max_bend < math.pi:
            raise ConfigurationError(
                f'largest bend {math.degrees(max_bend):g} deg must be between 0 and 180 deg')
        low, high = elongations
        if not -backbone.length < low <= high < math.inf:
            raise ConfigurationError(
                f'range of elongation {low} to {high} m must ascend and leave a positive length')
        self.backbone, self.max_bend, self.elongations = backbone, max_bend, (low, high)

    def points(self, bends: int = 16, directions: int = 72) -> Array:
        """Return positions of the tip without elongation, (bends * directions, 3), in the base."""
        return np.array([
            self.backbone.tip(make_shape(float(bend), float(direction))).position
            for bend in np.linspace(0.0, self.max_bend, bends)
            for direction in np.linspace(0.0, 2.0 * math.pi, directions, endpoint=False)])

    def clamp(self, shape: Array) -> LimitedShape:
        """
        Return the nearest shape (4,) inside, in the same direction.

        Raises
        ------
        InputError
            If the shape is not four finite numbers.

        """
        shape = np.array(shape, dtype=float)
        if shape.shape != (4,) or not np.isfinite(shape).all():
            raise InputError(f'a shape of the torso is four finite numbers, not {shape.tolist()}')
        reasons = []
        bend, _ = bend_and_direction(shape)
        if bend > self.max_bend:
            shape[:2] *= self.max_bend / bend
            reasons.append(f'bend {math.degrees(bend):.1f} deg is more than '
                           f'{math.degrees(self.max_bend):.1f} deg')
        low, high = self.elongations
        if not low <= shape[3] <= high:
            reasons.append(f'elongation {1e3 * shape[3]:.2f} mm is not within '
                           f'{1e3 * low:.2f} and {1e3 * high:.2f} mm')
            shape[3] = min(max(shape[3], low), high)
        return LimitedShape(shape, '; '.join(reasons))
