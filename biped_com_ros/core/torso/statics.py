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
Statics of the torso with linear stiffness, by virtual work.

Russo et al. (2021), equations (5)-(7), in shapes (see :mod:`.constant_curvature`): with stiffness
``K = diag(k_b, k_b, k_t, k_c)``, tensions F and a wrench w of the environment on the tip,

    K shape = J_tip^T w - J_lengths^T F

Its rows are ``k_b theta = M_tendons + w . dt/dtheta``, ``k_t psi = M_z - r^2 sum(F) psi / l'``
and ``k_c elongation = P_z - sum(F)``. In print, (6) has ``M_theta = My sin - Mx cos`` for
``My cos - Mx sin``, (6)-(7) the wrong sign of F_z, and (7), a moment equilibrium of the tip alone,
bends about twice as far as a rod does (14.1 instead of 7.07 deg for 5 N and 2.6 N m/rad).

Under an axial load the curvature is not constant, as in a bent column. The resulting additional
moment, :meth:`TorsoStatics.column_effect`, follows from the linear theory of beam-columns, whose
end rotates by ``k_b theta = (M + (P L / 2) tan(r/2) / (r/2)) tan(r) / r`` under
a moment M, a force P across and N along, ``r^2 = N L / k_b``; constant curvature has
``k_b theta (1 - r^2 / 3) = M + P L / 2`` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import check_positive, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import TorsoConfig
from biped_com_ros.core.torso.arc import Arc, Vector, Wrench, wrench_of
from biped_com_ros.core.torso.constant_curvature import Backbone, ELONGATION, TORSION
import numpy as np

Load = Callable[[Arc], Wrench]
"""
Returns the wrench of the environment on the tip of a backbone in some shape.

About the tip, along the axes of the base, N and N m.
"""

LARGEST_BEND = math.pi
"""Bend at which the search for an equilibrium is stopped, rad."""

EULER = 0.25 * math.pi ** 2
"""Buckling load of a column with a free end, times length over stiffness."""


@dataclass(frozen=True, kw_only=True)
class Stiffness:
    """Stiffness of the whole backbone: bending and torsion in N m/rad, axial in N/m."""

    bending: float
    torsion: float
    axial: float

    def __post_init__(self) -> None:
        check_positive("the backbone's stiffness", self)

    @staticmethod
    def from_config(config: TorsoConfig) -> Stiffness:
        """Build from the robot's YAML."""
        return Stiffness(
            bending=config.bending_stiffness, torsion=config.torsion_stiffness,
            axial=config.axial_stiffness)

    @property
    def diagonal(self) -> Array:
        """Diagonal of K, (4,), in the order of a shape."""
        return np.array((self.bending, self.bending, self.torsion, self.axial))


@dataclass(slots=True)
class Weight:
    """
    Load of the upper body on the tip, a :data:`Load`: weight, and measured wrenches of the hands.

    Attributes
    ----------
    mass
        kg.
    com_in_tip
        Centre of mass, m.
    gravity_in_base
        Acceleration of gravity, m/s^2; for an upright base ``(0j, -GRAVITY)``.
    contact_in_tip
        Measured wrench of the environment on the upper body, about the tip and along its axes;
        None without such measurements.

    """

    mass: float
    com_in_tip: Vector
    gravity_in_base: Vector
    contact_in_tip: Wrench | None = None

    def __call__(self, arc: Arc) -> Wrench:
        """Return the wrench on the tip."""
        lever, height = arc.rotate(*self.com_in_tip)
        force, up = self.mass * self.gravity_in_base[0], self.mass * self.gravity_in_base[1]
        moment = 1j * (height * force - up * lever)
        about = (lever.conjugate() * force).imag
        if self.contact_in_tip is None:
            return force, up, moment, about
        x, z, turning, twisting = self.contact_in_tip
        (x, z), (turning, twisting) = arc.rotate(x, z), arc.rotate(turning, twisting)
        return force + x, up + z, moment + turning, about + twisting


@dataclass(frozen=True)
class WrenchEstimate:
    """
    Estimate of the wrench on the tip: four combinations of its six components are observable.

    Attributes
    ----------
    generalized
        ``J^T w``, the observable combinations: bending moments in the sense of the shape (two,
        N m), torsion moment (N m), axial force (N).
    directions
        ``J^T``, shape (4, 6).
    wrench
        Wrench (6,) with these combinations and the least norm, moments divided by the length of
        the backbone.

    """

    generalized: Array
    directions: Array
    wrench: Array

    @property
    def unobservable(self) -> Array:
        """
        Return an orthonormal basis (6, 2) of the wrenches that cannot be observed.

        Each is a force across the tip with the moment that cancels its bending.
        """
        return np.linalg.svd(self.directions)[2][4:].T


def constant_load(wrench: Array) -> Load:
    """Return the load of a wrench (6,) that does not depend on the shape."""
    fixed = wrench_of(np.asarray(wrench, dtype=float))
    return lambda arc: fixed


def no_load(arc: Arc) -> Wrench:
    """Return the zero wrench: a :data:`Load`."""
    return 0j, 0.0, 0j, 0.0


class TorsoStatics:
    """
    Generalized forces on the shape, and equilibria.

    Parameters
    ----------
    backbone, stiffness
        Geometry and stiffness of the backbone.

    """

    def __init__(self, backbone: Backbone, stiffness: Stiffness) -> None:
        self.backbone, self.stiffness = backbone, stiffness
        self._diagonal = stiffness.diagonal

    def elastic(self, shape: Array) -> Array:
        """Return the generalized force (4,) of the elasticity, ``K shape``."""
        return self._diagonal * shape

    def of_tendons(self, shape: Array, tensions: Array) -> Array:
        """Return the generalized force (4,) of tensions (n,), ``-J_lengths^T F``."""
        return -self.backbone.length_jacobian(shape).T.dot(tensions)

    def work(self, arc: Arc, load: Load) -> tuple[complex, float, float]:
        """
        Return the generalized force of a load, ``J_tip^T w`` and the column effect.

        Its parts: on the bend, forward + i left, and on torsion, N m, and on elongation, N.
        """
        wrench = load(arc)
        bending, twisting, stretching = arc.work(wrench)
        return bending + self.column_effect(arc, wrench), twisting, stretching

    def of_load(self, shape: Array, load: Load) -> Array:
        """Return :meth:`work` on a shape (4,) as (4,)."""
        bending, twisting, stretching = self.work(self.backbone.arc_of(shape), load)
        return np.array((bending.real, bending.imag, twisting, stretching))

    def column_effect(self, arc: Arc, wrench: Wrench) -> complex:
        """
        Return the additional moment on the bend, N m, by uneven curvature under a wrench.

        With ``r^2`` as above, ``1 - r^2 / 3 - r / tan r`` of the bending stiffness is lost, and
        ``tan(r/2) / (r/2) - 1`` of the moment of a force across comes on top; hyperbolic where the
        load pulls. The bend is within 1 % of that of an elastica up to 15 deg and nine tenths of
        the buckling load; larger loads count as nine tenths of it.
        """
        stiffness, length = self.stiffness.bending, arc.length
        load = min(-wrench[1] * length / stiffness, 0.9 * EULER)
        if abs(load) < 1e-3:  # series: the quotients below lose all digits
            softer, stronger = load * load / 45.0, load / 12.0
        else:
            r, tan = math.sqrt(abs(load)), math.tan if load > 0.0 else math.tanh
            softer, stronger = 1.0 - load / 3.0 - r / tan(r), tan(0.5 * r) / (0.5 * r) - 1.0
        return softer * stiffness * arc.bend + 0.5 * length * stronger * wrench[0]

    def imbalance(self, shape: Array, tensions: Array, load: Load = no_load) -> Array:
        """Return the sum of generalized forces (4,); zero in equilibrium."""
        return self.of_load(shape, load) + self.of_tendons(shape, tensions) - self.elastic(shape)

    def equilibrium(self, tensions: Array, load: Load = no_load,
                    guess: Array | None = None) -> Array:
        """
        Return the shape (4,) in equilibrium with tensions and a load.

        By a damped Newton method.

        Raises
        ------
        InputError
            If there is none: the backbone buckles, or numbers are not finite.

        """
        shape = np.zeros(4) if guess is None else np.array(guess, dtype=float)
        tensions = np.asarray(tensions, dtype=float)
        for _ in range(50):
            force = self.imbalance(shape, tensions, load)
            if not np.isfinite(force).all() or np.abs(shape).max() > LARGEST_BEND:
                break
            step = np.linalg.solve(self.tangent(shape, tensions, load), force)
            shape = shape + step * min(1.0, 0.5 / max(float(np.abs(step[:3]).max()), 1e-12))
            if np.abs(step).max() < 1e-12:
                return shape
        raise InputError(
            f'no equilibrium with tensions {tensions.tolist()} N: the load is more than the '
            'backbone and these tensions hold; reduce it, or check the stiffness of the backbone')

    def tangent(self, shape: Array, tensions: Array, load: Load = no_load,
                step: float = 1e-6) -> Array:
        """Return the stiffness (4, 4) at constant tensions, minus the slope of `imbalance`."""
        steps = step * np.eye(4)
        return np.column_stack([
            (self.imbalance(shape - d, tensions, load) - self.imbalance(shape + d, tensions, load))
            / (2.0 * step) for d in steps])

    def bending_stiffness(self, shape: Array, tensions: Array | None = None,
                          load: Load = no_load, direction: float = 0.0) -> float:
        """
        Return the stiffness against a pure moment on the tip, N m/rad.

        It is the change of a moment on the tip over the change of the bend along it, with
        tensions and load kept and the other coordinates of the shape free: torsion, elongation
        and the bend across settle anew. Straight and without load it is the backbone's k_b; weight
        on the tip takes off, until it topples at zero. Tensions that are kept hardly matter.

        Parameters
        ----------
        shape
            In equilibrium, (4,).
        tensions
            (n,), N; default: none.
        load
            On the tip.
        direction
            In which it bends, rad: 0 forward, pi/2 left.

        """
        forces = np.zeros(self.backbone.count) if tensions is None else np.asarray(tensions)
        c, s = math.cos(direction), math.sin(direction)
        unit_moment = self.of_load(shape, constant_load(np.array((0.0, 0.0, 0.0, -s, c, 0.0))))
        change = np.linalg.solve(self.tangent(shape, forces, load), unit_moment)
        return 1.0 / float(c * change[0] + s * change[1])

    def bending_moment(self, shape: Array, load: Load = no_load) -> Array:
        """Return the moment (2,) that holds a bend, ``k_b bend - J_tip^T w``, N m."""
        return (self.elastic(shape) - self.of_load(shape, load))[:2]

    def with_passive_parts(self, shape: Array, tensions: Array, load: Load = no_load) -> Array:
        """
        Return a shape (4,) of the same bend with torsion and elongation in equilibrium.

        Elongation follows from the load and the sum of tensions; torsion from the load and, where
        the tendons' moment is not along the bend, from half of their cross product.
        """
        backbone, total = self.backbone, float(np.sum(tensions))
        passive = np.array(shape, dtype=float)
        passive[TORSION] = 0.0
        force = self.of_load(passive, load) + self.of_tendons(passive, tensions)
        passive[ELONGATION] = force[ELONGATION] / self.stiffness.axial
        length = backbone.length + passive[ELONGATION]
        passive[TORSION] = force[TORSION] / (
            self.stiffness.torsion + backbone.radius ** 2 * total / length)
        return passive

    def estimate_wrench(self, shape: Array, tensions: Array,
                        known: Load = no_load) -> WrenchEstimate:
        """
        Estimate the wrench on the tip from a measured shape and measured tensions.

        The column effect of the known load is included; that of the unknown one is small.

        Parameters
        ----------
        shape
            (4,): bend and torsion by IMU, elongation by the tendons' lengths.
        tensions
            (n,), N.
        known
            Load to leave out of the estimate, such as the weight.

        """
        generalized = (self.elastic(shape) - self.of_tendons(shape, np.asarray(tensions))
                       - self.of_load(shape, known))
        directions = self.backbone.tip_jacobian(shape).T
        # In units of force, a moment counts by the backbone's length.
        scale = np.array((1.0, 1.0, 1.0) + 3 * (self.backbone.length,))
        scaled = directions * scale
        wrench = scale * scaled.T.dot(np.linalg.solve(scaled.dot(scaled.T), generalized))
        return WrenchEstimate(generalized, directions, wrench)
