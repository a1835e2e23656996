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
Everything about stability at one instant: contacts, support, ZMP, DCM, margins, level.

What is measured is of the very instant. The model's ZMP comes out of a filter, late by
:attr:`StabilityMonitor.delay`; the difference is between it and the measured wrench through the
same filter, so that it shows errors of the model and of the sensors, not the delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from biped_com_ros.core.base import Twist
from biped_com_ros.core.com import com_velocity_in_world, divergent_component, natural_frequency
from biped_com_ros.core.contact import ContactThresholds, FootContacts
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.pose import Array
from biped_com_ros.core.robot import RobotModel, RobotState
from biped_com_ros.core.stability import Change, FallWatch, StabilityThresholds, tilt_of
from biped_com_ros.core.support import Margin, Point, Soles, SupportPolygon
from biped_com_ros.core.wrench import WrenchSum
from biped_com_ros.core.zmp import ModelWrench, zmp_in_plane
import numpy as np

LONGEST_STEP_NS = 500_000_000
"""After a longer silence, or a step back in time, filters start anew."""
_UNHEARD_STEP_NS = 10_000_000
"""How often the model's ZMP is found where nobody asks for every one."""


_NO_FORCE = np.zeros(3)


@dataclass(frozen=True)
class MonitorSettings:
    """
    How stability is judged.

    Attributes
    ----------
    contacts
        When a foot is on the ground: at once when it lands, or else the ZMP would be on its way
        to a foot that does not count yet, and outside of the support.
    stability
        When which level begins.
    min_share
        Least normal force, as a share of body weight, for a ZMP or CoP.
    method, cutoff
        Of the model's wrench; see :class:`ModelWrench`.
    gravity
        m/s2.

    """

    contacts: ContactThresholds = ContactThresholds(engage_dwell=0.0)
    stability: StabilityThresholds = field(default_factory=StabilityThresholds)
    min_share: float = 0.03
    method: str = 'full'
    cutoff: float = 15.0
    gravity: float = 9.81


@dataclass
class Report:
    """
    One instant, in the world; what cannot be known is None.

    Attributes
    ----------
    com
        Centre of mass, shape (3,), m.
    support
        The support polygon.
    force
        Of all feet, shape (3,), N; zero where they do not feel.
    zmp, zmp_model
        Measured and by the model, (3,), m.
    difference
        The model's minus the measured one, both filtered alike, (3,), m.
    dcm
        Divergent component on the plane of support, (3,), m.
    zmp_margin, dcm_margin
        Inside the support polygon.
    time_to_edge
        When the DCM will leave the polygon if the ZMP stays, s.
    change
        The level, if it has just changed.
    feet
        What :attr:`cops` and :attr:`forces` are found from when they are asked for.

    """

    com: Array
    support: SupportPolygon | None
    force: Array
    zmp: Array | None
    zmp_model: Array | None
    difference: Array | None
    dcm: Array | None
    zmp_margin: Margin | None
    dcm_margin: Margin | None
    time_to_edge: float | None
    change: Change | None
    feet: _Feet

    @cached_property
    def forces(self) -> Array:
        """Force of each foot, shape (F, 3), N; zero where it does not feel."""
        placements, wrenches, _ = self.feet
        if wrenches is None:
            return np.zeros((len(placements), 3))
        forces: Array = np.matmul(wrenches[:, np.newaxis, :3], placements[:, :3])[:, 0]
        return forces

    @cached_property
    def cops(self) -> Array:
        """Centre of pressure of each foot, (F, 3), m; NaN where none stands or feels."""
        placements, wrenches, pressing = self.feet
        cops = np.full((len(placements), 3), np.nan)
        if wrenches is None:
            return cops
        for i, presses in enumerate(pressing):
            if presses:
                _, _, fz, mx, my, _ = wrenches[i].tolist()
                cops[i] = placements[i, 3] + np.array((-my / fz, mx / fz)).dot(placements[i, :2])
        return cops


class _Feet(NamedTuple):
    """Placements and wrenches of the soles, and which press hard enough for a CoP."""

    placements: Array
    wrenches: Array | None
    pressing: tuple[bool, ...]


class StabilityMonitor:
    """
    Watches a robot, instant by instant.

    First :meth:`feel` tells the contacts, with them the base is found, then :meth:`update` does
    the rest.

    Parameters
    ----------
    model
        The robot.
    settings
        How stability is judged.
    polygons
        Outline of each sole, m; by default those of the configuration.

    Attributes
    ----------
    in_contact
        Which feet are on the ground.
    problem
        Why there is no support polygon or DCM; '' if nothing is wrong.
    watch
        The level.
    every_model
        Whether the model's ZMP is wanted at every instant; else a hundred times a second will do,
        for the statistics of its difference.

    """

    def __init__(self, model: RobotModel, settings: MonitorSettings,
                 polygons: Sequence[Sequence[Point]] | None = None) -> None:
        self.model, self.settings = model, settings
        weight = model.mass * settings.gravity
        self._least_force = settings.min_share * weight
        self._soles = Soles.of(model) if polygons is None else Soles(polygons)
        count = len(model.soles.names)
        self._contacts = FootContacts(settings.contacts, weight, count)
        self._sum = WrenchSum(count)
        self.watch = FallWatch(settings.stability)
        self._model_wrench = ModelWrench(model, settings.cutoff, settings.method,
                                         settings.gravity)
        self._model_ns = 0
        self.every_model = True
        self.in_contact: tuple[bool, ...] = (False,) * count
        self.problem = ''

    @property
    def delay(self) -> float:
        """By how much the model's ZMP is late, s."""
        return self._model_wrench.delay

    def reset(self) -> None:
        """Forget the past."""
        self._contacts.reset()
        self.watch = FallWatch(self.settings.stability)
        self._model_wrench.reset()

    def feel(self, ns: int, wrenches: Array) -> tuple[bool, ...]:
        """Return which feet are on the ground, by wrenches (F, 6) in the sole frames."""
        self.in_contact = self._contacts.update(wrenches[:, 2].tolist(), ns)
        return self.in_contact

    def update(self, ns: int, state: RobotState, twist: Twist | None,
               wrenches: Array | None) -> Report:
        """
        Judge an instant.

        Parameters
        ----------
        ns
            Its time.
        state
            The robot with its base in the world.
        twist
            Of the base; None while it is unknown.
        wrenches
            Environment on robot in each sole frame, shape (F, 6); None for a robot that does not
            feel its feet, whose contacts are then :attr:`in_contact` as set from outside.

        """
        placements = state.placements_in_base(self.model.soles).dot(state.base.rotation.T)
        placements[:, 3] += state.base.position
        self.problem = ''
        support = self._support(placements)
        total = None if wrenches is None else self._sum.into(
            np.empty(6), placements[:, :3].transpose(0, 2, 1), placements[:, 3], wrenches)
        com = state.com_in_world
        zmp = None if support is None or total is None else zmp_in_plane(
            total, support.plane, minimum_force=self._least_force)
        zmp_model, difference = self._modelled(ns, state, twist, total, support)
        dcm, omega_0 = self._dcm(state, twist, com, support)
        zmp_margin = support.margin(zmp) if support is not None and zmp is not None else None
        dcm_margin = support.margin(dcm) if support is not None and dcm is not None else None
        time_to_edge = None if support is None or dcm is None or zmp is None else (
            support.time_to_edge(dcm, zmp, omega_0, dcm_margin))
        change = self.watch.update(
            ns, zmp_margin and zmp_margin.distance, dcm_margin and dcm_margin.distance,
            tilt_of(state.base.rotation.item(2, 2)))
        return Report(com, support, _NO_FORCE if total is None else total[:3], zmp, zmp_model,
                      difference, dcm, zmp_margin, dcm_margin, time_to_edge, change,
                      self._feet(placements, wrenches))

    def _feet(self, placements: Array, wrenches: Array | None) -> _Feet:
        if wrenches is None:
            return _Feet(placements, None, self.in_contact)
        return _Feet(placements, wrenches.copy(), tuple([
            stands and force > self._least_force
            for stands, force in zip(self.in_contact, wrenches[:, 2].tolist())]))

    def _support(self, placements: Array) -> SupportPolygon | None:
        try:
            return self._soles.support(placements, self.in_contact)
        except InputError as error:
            self.problem = str(error)
            return None

    def _modelled(self, ns: int, state: RobotState, twist: Twist | None, total: Array | None,
                  support: SupportPolygon | None) -> tuple[Array | None, Array | None]:
        """Return the model's ZMP and its difference from the measured one, both filtered."""
        step_ns = ns - self._model_ns
        if 0 < step_ns < _UNHEARD_STEP_NS and not self.every_model:
            return None, None
        self._model_ns = ns
        if not 0 < step_ns < LONGEST_STEP_NS or twist is None:
            self._model_wrench.reset()
        if twist is None:
            return None, None
        found = self._model_wrench.update(state, twist, 1e-9 * step_ns, total)
        if support is None:
            return None, None
        least, plane = self._least_force, support.plane
        zmp_model = zmp_in_plane(found.model, plane, minimum_force=least)
        measured = None if found.measured is None else (
            zmp_in_plane(found.measured, plane, minimum_force=least))
        if zmp_model is None or measured is None:
            return zmp_model, None
        return zmp_model, zmp_model - measured

    def _dcm(self, state: RobotState, twist: Twist | None, com: Array,
             support: SupportPolygon | None) -> tuple[Array | None, float]:
        """Return the DCM on the plane of support and the pendulum's frequency, rad/s."""
        if support is None or twist is None:
            return None, 0.0
        ground, gravity = support.plane.below(com).item(2), self.settings.gravity
        try:
            omega_0 = natural_frequency(com.item(2) - ground, gravity)
        except InputError as error:
            self.problem = str(error)
            return None, 0.0
        velocity = com_velocity_in_world(state, twist)
        dcm = divergent_component(com, velocity, ground, gravity)
        return support.plane.below(dcm), omega_0
