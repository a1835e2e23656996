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
Kinematics of a backbone of constant curvature with torsion and elongation.

After Russo, Ceccarelli and Cafolla (2021), equations (1)-(4), in shapes ``(theta cos phi,
theta sin phi, psi, elongation)``. With ``rho = theta (-sin phi, cos phi, 0)`` their (2) reads
``R = exp(rho) Rz(psi)``, smooth at zero bend. Differences to print, derived in FORMULAS section 4:
attachment angles are parameters, since (4) and (6) route tendons 2 and 4 differently; torsion
enters (4) with the wrong sign and double phase, see :meth:`Backbone.printed_lengths`.

Frames: *base* is the backbone's foot, z along the straight backbone, x forward; *tip* its far end.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.config import TorsoConfig
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.pose import Array, Pose
import numpy as np

BEND_X, BEND_Y, TORSION, ELONGATION = range(4)

SERIES_BELOW = 0.3
"""Bend under which quotients such as ``(1 - cos x) / x^2`` are summed as series, rad."""

QUADRATURE_NODES, QUADRATURE_WEIGHTS = np.polynomial.legendre.leggauss(12)
NODES: Array = 0.5 * (QUADRATURE_NODES + 1.0)
WEIGHTS: Array = 0.5 * QUADRATURE_WEIGHTS

LARGEST_GAP = math.pi - 1e-9
"""Where neighbouring tendons are further apart, they cannot bend the torso towards the gap."""


@dataclass(frozen=True)
class LengthFit:
    """
    What tendon lengths say of the shape.

    Attributes
    ----------
    shape
        Shape (4,), its torsion as it was given.
    residual
        Root mean square of what no shape explains, m: a tendon off its disk, a wrong zero.

    """

    shape: Array
    residual: float


class Backbone:
    """
    Geometry of the backbone and its tendons.

    Parameters
    ----------
    length, radius
        Of the straight, unloaded backbone and of the tendon circle, m.
    angles
        Attachment angles of the tendons, shape (n,), n >= 3, rad.

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
        self._circle_rows = np.ascontiguousarray(self._circle.T)

    @staticmethod
    def from_config(config: TorsoConfig) -> Backbone:
        """Build from the robot's YAML."""
        return Backbone(config.backbone_length, config.radius,
                        np.radians(config.attachment_angles_deg))

    # -- the tip

    def tip(self, shape: Array, along: float = 1.0) -> Pose:
        """
        Return the pose of the far end in the base, equations (1)-(3).

        Parameters
        ----------
        shape
            (4,)
        along
            Share of the backbone's length, 0 at the base and 1 at the tip.

        """
        a, b, psi, elongation = (along * np.asarray(shape)).tolist()
        theta = math.hypot(a, b)
        s1, s2 = sinc(theta), versine(theta)
        length = along * self.length + elongation
        position = np.array((length * a * s2, length * b * s2, length * s1))
        c, s = math.cos(psi), math.sin(psi)
        # exp(rho), its first two columns then turned by psi.
        xx, xy, yy = 1.0 - s2 * a * a, -s2 * a * b, 1.0 - s2 * b * b
        rotation = np.array((
            xx * c + xy * s, xy * c - xx * s, s1 * a, xy * c + yy * s, yy * c - xy * s, s1 * b,
            -s1 * (a * c + b * s), s1 * (a * s - b * c), math.cos(theta))).reshape(3, 3)
        return Pose(rotation, position)

    def tip_jacobian(self, shape: Array) -> Array:
        """
        Return how the tip moves with the shape.

        Returns
        -------
        array (6, 4)
            Linear velocity of the tip, then angular velocity, both in the base, per rate of the
            shape. Its transpose takes a wrench at the tip, force first, to generalized forces.

        """
        a, b, _, elongation = np.asarray(shape).tolist()
        theta, length = math.hypot(a, b), self.length + elongation
        s1, s2, s3 = sinc(theta), versine(theta), sine_defect(theta)
        d1, d2 = _sinc_slope(theta), _versine_slope(theta)
        return np.array((
            length * (s2 + a * a * d2), length * a * b * d2, 0.0, a * s2,
            length * a * b * d2, length * (s2 + b * b * d2), 0.0, b * s2,
            length * a * d1, length * b * d1, 0.0, s1,
            # Left Jacobian of exp at rho = (-b, a, 0), times d rho / d (a, b).
            -s3 * a * b, s3 * a * a - 1.0, s1 * a, 0.0,
            1.0 - s3 * b * b, s3 * a * b, s1 * b, 0.0,
            -s2 * b, s2 * a, math.cos(theta), 0.0)).reshape(6, 4)

    def points(self, shape: Array, count: int) -> Array:
        """Return `count` places along the backbone from base to tip, (count, 3), in the base."""
        return np.array([self.tip(shape, u).position for u in np.linspace(0.0, 1.0, count)])

    def holes(self, shape: Array, along: float) -> Array:
        """Return where the tendons pass a disk, shape (n, 3), in the base."""
        ring = np.column_stack((self._cos, self._sin, np.zeros(self.count)))
        return self.tip(shape, along).apply(self.radius * ring)

    # -- tendons

    def lengths(self, shape: Array) -> Array:
        """Return how long the tendons are, (n,), m: exact helices parallel to the backbone."""
        along, across, _ = self._strides(shape)
        lengths: Array = np.sqrt(along * along + across * across) @ WEIGHTS
        return lengths

    def length_jacobian(self, shape: Array) -> Array:
        """Return the derivative (n, 4) of :meth:`lengths`."""
        along, across, angles = self._strides(shape)
        a, b, psi, _ = np.asarray(shape).tolist()
        weights = WEIGHTS / np.sqrt(along * along + across * across)
        cos, sin = np.cos(angles), np.sin(angles)
        jacobian = np.empty((self.count, 4))
        share = weights * along
        jacobian[:, 0] = -self.radius * (share * cos).sum(axis=1)
        jacobian[:, 1] = -self.radius * (share * sin).sum(axis=1)
        turning = self.radius * NODES * (a * sin - b * cos)
        jacobian[:, 2] = (share * turning).sum(axis=1) + (
            self.radius * self.radius * psi * weights.sum(axis=1))
        jacobian[:, 3] = share.sum(axis=1)
        return jacobian

    def approximate_lengths(self, shape: Array) -> Array:
        """
        Return tendon lengths (n,), m, in closed form.

        ``l = l0 + (r psi)^2 / (2 l0)`` with ``l0 = l' - theta r sinc(psi/2) cos(beta - phi +
        psi/2)``: within 1e-6 mm of :meth:`lengths` at a bend of 15 and a torsion of 1.54 deg, and
        1e-3 mm at 90 and 10 deg; dividing by ``2 l'`` instead, 2.4e-4 and 0.1 mm.
        """
        a, b, psi, elongation = np.asarray(shape).tolist()
        x, y = self._turned(a, b, psi)
        lengths: Array = (self.length + elongation) - self._circle.dot((x, y))
        twist = self.radius * psi
        lengths += (0.5 * twist * twist) / lengths
        return lengths

    def moment_columns(self, shape: Array) -> Array:
        """
        Return the bending moment (2, n) of each tendon per newton, m.

        Minus the first columns of :meth:`approximate_length_jacobian`, at a third of their cost:
        torsion shortens all by the same share, which is right to 1e-4 of them up to 5 deg.
        """
        _, _, psi, elongation = shape.tolist()
        k, twist = self.radius * sinc(0.5 * psi), self.radius * psi / (self.length + elongation)
        k *= 1.0 - 0.5 * twist * twist
        c, s = k * math.cos(0.5 * psi), k * math.sin(0.5 * psi)
        columns: Array = np.array((c, -s, s, c)).reshape(2, 2).dot(self._circle_rows)
        return columns

    def approximate_length_jacobian(self, shape: Array) -> Array:
        """Return the derivative (n, 4) of :meth:`approximate_lengths`."""
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

    def chord_lengths(self, shape: Array, disks: int) -> Array:
        """
        Return tendon lengths (n,), m, straight between `disks` disks beyond the base.

        Without torsion this is ``sinc(theta / 2n) (l' - theta r cos(beta - phi))``.
        """
        if disks < 1:
            raise ConfigurationError(f'tendons run through one disk or more, not {disks}')
        holes = np.array([self.holes(shape, k / disks) for k in range(disks + 1)])
        lengths: Array = np.linalg.norm(np.diff(holes, axis=0), axis=2).sum(axis=0)
        return lengths

    def printed_lengths(self, shape: Array) -> Array:
        """
        Return the lengths of four tendons (4,), m, by equation (4) as it is printed.

        ``l' + theta r cos(phi + psi + (i - 1) 90 deg)``: tendons 2 and 4 are swapped against (6),
        torsion has the wrong sign and twice the phase. For reproduction only.
        """
        a, b, psi, elongation = np.asarray(shape).tolist()
        phase = math.atan2(b, a) + psi + 0.5 * math.pi * np.arange(4)
        lengths: Array = (
            self.length + elongation + math.hypot(a, b) * self.radius * np.cos(phase))
        return lengths

    def shape_from_lengths(self, lengths: Array, torsion: float = 0.0) -> LengthFit:
        """
        Return the shape whose tendons are nearest to given lengths.

        Lengths do not tell torsion: it turns the tendons' circle, which looks like another
        direction, and lengthens all alike, which looks like elongation. It comes from an IMU or
        from statics. Gauss-Newton on the exact helices, from the closed form.

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
        shape = self._first_guess(lengths, torsion)
        free = (BEND_X, BEND_Y, ELONGATION)
        for _ in range(20):
            error = lengths - self.lengths(shape)
            step = np.linalg.lstsq(self.length_jacobian(shape)[:, free], error, rcond=None)[0]
            shape[list(free)] += step
            if np.abs(step).max() < 1e-13:
                break
        error = lengths - self.lengths(shape)
        if not np.isfinite(shape).all() or self.length + shape[ELONGATION] <= 0.0:
            raise InputError(f'tendon lengths {lengths.tolist()} m belong to no shape of a '
                             f'backbone of {self.length} m')
        return LengthFit(shape, float(np.sqrt(np.mean(error * error))))

    def _checked(self, lengths: Array, torsion: float) -> Array:
        lengths = np.array(lengths, dtype=float)
        if lengths.shape != (self.count,) or not np.isfinite(lengths).all():
            raise InputError(f'tendon lengths must be {self.count} finite numbers (m), not '
                             f'{lengths.tolist()}')
        if not math.isfinite(torsion):
            raise InputError(f'torsion must be finite (rad), not {torsion}')
        return lengths

    def _first_guess(self, lengths: Array, torsion: float) -> Array:
        columns = self.approximate_length_jacobian(np.array((0.0, 0.0, torsion, 0.0)))
        offset = self.length + 0.5 * (self.radius * torsion) ** 2 / self.length
        a, b, elongation = np.linalg.lstsq(
            columns[:, (BEND_X, BEND_Y, ELONGATION)], lengths - offset, rcond=None)[0]
        return np.array((a, b, torsion, elongation))

    def _strides(self, shape: Array) -> tuple[Array, float, Array]:
        """Tendon per share of backbone: along it (n, nodes), across it; and angles (n, nodes)."""
        a, b, psi, elongation = np.asarray(shape).tolist()
        angles = self.angles[:, np.newaxis] + psi * NODES
        along = (self.length + elongation) - self.radius * (
            a * np.cos(angles) + b * np.sin(angles))
        return along, self.radius * psi, angles

    def _turned(self, a: float, b: float, psi: float) -> tuple[float, float]:
        """Bend times radius, seen from the tendons half-way up: turned back by psi / 2."""
        k = self.radius * sinc(0.5 * psi)
        c, s = math.cos(0.5 * psi), math.sin(0.5 * psi)
        return k * (c * a + s * b), k * (c * b - s * a)


def make_shape(bend: float, direction: float = 0.0, torsion: float = 0.0,
               elongation: float = 0.0) -> Array:
    """Return the shape (4,) of a bend towards a direction, a torsion (rad) and elongation (m)."""
    return np.array((bend * math.cos(direction), bend * math.sin(direction), torsion, elongation))


def bend_and_direction(shape: Array) -> tuple[float, float]:
    """Return bend (not negative) and its direction, rad; 0 for the direction where straight."""
    a, b = float(shape[BEND_X]), float(shape[BEND_Y])
    return math.hypot(a, b), math.atan2(b, a)


def shape_from_rotation(rotation: Array) -> Array:
    """
    Return the shape (4,) that turns the tip like this against the base; its elongation is 0.

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


def sinc(x: float) -> float:
    """Return ``sin x / x``."""
    return math.sin(x) / x if abs(x) > 1e-4 else 1.0 - x * x / 6.0


def versine(x: float) -> float:
    """Return ``(1 - cos x) / x^2``."""
    return 0.5 * sinc(0.5 * x) ** 2


def sine_defect(x: float) -> float:
    """Return ``(x - sin x) / x^3``."""
    if abs(x) > SERIES_BELOW:
        return (x - math.sin(x)) / x ** 3
    y = x * x
    return 1 / 6 - y * (1 / 120 - y * (1 / 5040 - y * (1 / 362880 - y / 39916800)))


def _sinc_slope(x: float) -> float:
    """Return ``(d sinc / d x) / x``."""
    if abs(x) > SERIES_BELOW:
        return (math.cos(x) - math.sin(x) / x) / (x * x)
    y = x * x
    return -1 / 3 + y * (1 / 30 - y * (1 / 840 - y * (1 / 45360 - y / 3991680)))


def _sinc_rate(x: float) -> float:
    """Return ``d sinc / d x``."""
    return x * _sinc_slope(x)


def _versine_slope(x: float) -> float:
    """Return ``(d versine / d x) / x``."""
    if abs(x) > SERIES_BELOW:
        return (sinc(x) - 2.0 * versine(x)) / (x * x)
    y = x * x
    return -1 / 12 + y * (1 / 180 - y * (1 / 6720 - y * (1 / 453600 - y / 47900160)))


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
            f'attachment angles {shown} deg leave a gap of {math.degrees(gap):g} deg: tendons '
            'only pull, so that the torso could not bend towards it; keep gaps below 180 deg')
