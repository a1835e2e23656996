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
Friction of joints: Coulomb, viscous, and breakaway with the Stribeck effect.

At the speed ``v`` the joint is braked by at most ``F(v) = Fc + (Fs - Fc) exp(-(v / vs)^2)``, and
by ``b v``. At rest, friction balances any effort up to ``Fs`` (Armstrong-Helouvry, Dupont and
Canudas de Wit 1994, "A survey of models, analysis tools and compensation methods for the control
of machines with friction", equation (5) with exponent 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.sim.description import Joint
from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.instruments import ErrorSource
from biped_com_ros.sim.interface import DriveOptions
import numpy as np


@dataclass(frozen=True, kw_only=True)
class JointFriction:
    """
    Friction of joints.

    Attributes
    ----------
    coulomb, breakaway
        ``Fc`` and ``Fs >= Fc``, (n,), N m or N.
    viscous
        ``b``, (n,), N m s/rad or N s/m.
    stribeck_velocity
        ``vs``, rad/s or m/s.

    """

    coulomb: Array
    breakaway: Array
    viscous: Array
    stribeck_velocity: float

    @staticmethod
    def draw(joints: Sequence[Joint], options: DriveOptions,
             source: ErrorSource) -> JointFriction:
        """
        Return the friction of joints by their limits, with its scatter.

        Joints without an effort limit have none, and those without a speed limit no viscous one,
        unless it is given.
        """
        names, o = tuple(joint.name for joint in joints), options
        limits = _finite([joint.effort for joint in joints])
        speeds = np.array([joint.velocity for joint in joints])
        # As many joints are stiffer than the mean as are freer by the same factor.
        scatter = np.exp(source.sample('friction', names, o.friction_scatter))

        def of(what: str, values: Array) -> Array:
            return source.settle(what, names, values[:, np.newaxis])[:, 0]

        coulomb = of('friction', o.joint_friction * limits * scatter)
        stiction = of('stiction', o.joint_stiction * limits * scatter)
        viscous = of('viscous', o.viscous_friction * limits * scatter / speeds)
        return JointFriction(coulomb=coulomb, breakaway=coulomb + stiction, viscous=viscous,
                             stribeck_velocity=o.stribeck_velocity)

    @property
    def depends_on_speed(self) -> bool:
        """Whether breakaway is above Coulomb friction anywhere."""
        return bool((self.breakaway > self.coulomb).any())

    def dry(self, velocities: Array) -> Array:
        """Return the largest dry friction (n,) at velocities (n,), N m."""
        share = np.exp(-np.square(velocities / self.stribeck_velocity))
        return np.asarray(self.coulomb + (self.breakaway - self.coulomb) * share)


def _finite(values: Sequence[float]) -> Array:
    return np.array([value if np.isfinite(value) else 0.0 for value in values])
