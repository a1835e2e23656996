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
from typing import NamedTuple

from biped_com_ros.core.com.kinematics import com_velocity_along_base, natural_frequency
from biped_com_ros.core.constants import GRAVITY, LONGEST_STEP_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import Margin, Point
from biped_com_ros.core.geometry.pose import Array, combined, Placement, Vector
from biped_com_ros.core.geometry.wrench import centre_of_pressure, sum_wrenches, Wrench
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.stability.levels import Change, FallWatch, StabilityThresholds, tilt_of
from biped_com_ros.core.stability.support import NOTHING_KNOWN, Soles, SupportPolygon
from biped_com_ros.core.stability.zmp import ModelWrench
from biped_com_ros.core.state.leg_odometry import Twist
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
import numpy as np

_UNHEARD_STEP_NS = 20_000_000
"""How often the model's ZMP is found where nobody asks for every one."""

_WORLD = Plane.level(0.0)


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
    gravity: float = GRAVITY


@dataclass(slots=True)
class StabilityReport:
    """
    One instant; what cannot be known is None.

    Most is found when it is asked for: few outputs ever have a listener. Positions are in the
    world.

    Attributes
    ----------
    state
        The robot with its base in the world.
    stands
        Whether there is a support polygon.
    plane
        That of support; the level plane through the world's origin where there is none.
    wrench
        Of all feet about the world's origin, N and N m; None where the feet do not feel.
    zmp_in_world, dcm_in_world
        Measured, and the divergent component on the plane of support, m, in plain numbers.
    omega_0
        Natural frequency of the pendulum, rad/s.
    zmp_model
        By the model, (3,), m.
    difference
        The model's minus the measured one, both filtered alike, (3,), m.
    feet
        What all that is about single feet is found from.
    change
        The level, if it has just changed.

    """

    state: RobotState
    stands: bool
    plane: Plane
    wrench: Wrench | None
    zmp_in_world: Vector | None
    dcm_in_world: Vector | None
    omega_0: float
    zmp_model: Array | None
    difference: Array | None
    feet: _Feet
    change: Change | None = None
    _support: SupportPolygon | None = None
    _zmp_distance: float | None = None
    _dcm_distance: float | None = None

    # Not cached_property, which locks: three times as long.

    @property
    def support(self) -> SupportPolygon | None:
        """Return the support polygon."""
        if self._support is None and self.stands:
            feet = self.feet
            self._support = feet.outlines.polygon(self.plane, feet.placements, feet.in_contact)
        return self._support

    @property
    def com(self) -> Array:
        """Centre of mass, shape (3,), m."""
        return self.state.com_in_world

    @property
    def force(self) -> Array:
        """Of all feet, shape (3,), N; zero where they do not feel."""
        return np.array((0.0,) * 3 if self.wrench is None else self.wrench[:3])

    @property
    def vertical_force(self) -> float:
        """Return the last number of :attr:`force`, N."""
        return 0.0 if self.wrench is None else self.wrench[2]

    @property
    def zmp(self) -> Array | None:
        """Measured, (3,), m."""
        return None if self.zmp_in_world is None else np.array(self.zmp_in_world)

    @property
    def dcm(self) -> Array | None:
        """Divergent component on the plane of support, (3,), m."""
        return None if self.dcm_in_world is None else np.array(self.dcm_in_world)

    @property
    def zmp_margin(self) -> Margin | None:
        """Of the ZMP inside the support polygon."""
        return self._margin(self.zmp_in_world)

    @property
    def dcm_margin(self) -> Margin | None:
        """Of the DCM inside the support polygon."""
        return self._margin(self.dcm_in_world)

    @property
    def zmp_distance(self) -> float | None:
        """Distance of the :attr:`zmp_margin`, m."""
        if self._zmp_distance is None:
            self._zmp_distance = self._distance(self.zmp_in_world)
        return self._zmp_distance

    @property
    def dcm_distance(self) -> float | None:
        """Distance of the :attr:`dcm_margin`, m."""
        if self._dcm_distance is None:
            self._dcm_distance = self._distance(self.dcm_in_world)
        return self._dcm_distance

    def _distance(self, point: Vector | None) -> float | None:
        return None if point is None or self.support is None else self.support.distance(point)

    def _margin(self, point: Vector | None) -> Margin | None:
        return None if point is None or self.support is None else self.support.margin(
            np.array(point))

    @property
    def time_to_edge(self) -> float | None:
        """When the DCM will leave the polygon if the ZMP stays, s."""
        zmp, dcm = self.zmp_in_world, self.dcm_in_world
        if self.support is None or zmp is None or dcm is None:
            return None
        return self.support.time_left(dcm, zmp, self.omega_0)

    @property
    def forces(self) -> Array:
        """Force of each foot, shape (F, 3), N; zero where it does not feel."""
        soles, wrenches = self.state.sole_placements_in_world, self.feet.wrenches
        if wrenches is None:
            return np.zeros((len(soles), 3))
        return np.array([combined(sole[:3].tolist(), *wrench[:3])
                         for sole, wrench in zip(soles, wrenches)])

    @property
    def cops(self) -> Array:
        """Centre of pressure of each foot, (F, 3), m; NaN where none stands or feels."""
        soles, feet = self.state.sole_placements_in_world, self.feet
        cops = np.full((len(soles), 3), np.nan)
        wrenches = () if feet.wrenches is None else feet.wrenches
        for i, (stands, wrench) in enumerate(zip(feet.in_contact, wrenches)):
            point = centre_of_pressure(
                wrench, minimum_force=feet.least_force) if stands else None
            if point is not None:
                cops[i] = soles[i, 3] + np.array(point).dot(soles[i, :3])
        return cops


class _Feet(NamedTuple):
    """
    What is known of the soles: outlines, placements in the world, wrenches in their frames.

    And which stand, and the least force for a CoP.
    """

    outlines: Soles
    placements: list[Placement]
    wrenches: Sequence[Sequence[float]] | None
    in_contact: tuple[bool, ...]
    least_force: float


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
    every_margin
        Whether margins or the polygon are wanted at every instant; else they are found when
        somebody asks, or they might be small.
    every_model
        Whether the model's ZMP is wanted at every instant; else fifty times a second will do,
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
        self.watch = FallWatch(settings.stability)
        self._model_wrench = ModelWrench(model, settings.cutoff, settings.method,
                                         settings.gravity)
        self._model_ns = 0
        self._known = NOTHING_KNOWN
        self.every_margin = self.every_model = True
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

    def feel(self, ns: int, wrenches: Sequence[Sequence[float]]) -> tuple[bool, ...]:
        """Return which feet are on the ground, by wrenches (F, 6) in the sole frames."""
        self.in_contact = self._contacts.update([wrench[2] for wrench in wrenches], ns)
        return self.in_contact

    def update(self, ns: int, state: RobotState, twist: Twist | None,
               wrenches: Sequence[Sequence[float]] | None) -> StabilityReport:
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
            Environment on robot in each sole frame, (F, 6), in plain numbers; None for a robot
            that does not feel its feet, whose contacts are then :attr:`in_contact` as set from
            outside.

        """
        soles = state.sole_placements_in_world.tolist()
        plane, stands = self._plane(soles)
        wrench = None if wrenches is None else sum_wrenches(wrenches, soles)
        zmp = None if wrench is None or not stands else centre_of_pressure(
            wrench, plane.normal, plane.height, self._least_force)
        dcm, omega_0 = None, 0.0
        if stands and twist is not None:
            dcm, omega_0 = self._dcm(state, twist, plane)
        report = StabilityReport(
            state, stands, plane, wrench, zmp, dcm, omega_0,
            *self._modelled(ns, state, twist, plane, wrench, stands),
            _Feet(self._soles, soles, wrenches, self.in_contact, self._least_force))
        report.change = self._watch(ns, report, tilt_of(state.base.rotation.item(2, 2)))
        return report

    def _plane(self, soles: Sequence[Placement]) -> tuple[Plane, bool]:
        """Return the plane of support and whether there is one; else it is a level plane."""
        self.problem = ''
        try:
            plane = self._soles.plane(soles, self.in_contact)
        except InputError as error:
            self.problem = str(error)
            plane = None
        return (_WORLD, False) if plane is None else (plane, True)

    def _watch(self, ns: int, report: StabilityReport, tilt: float) -> Change | None:
        """Return a change of level; mostly it is seen without the polygon that there is none."""
        if report.stands and not self.every_margin:
            plane, soles = report.plane, report.feet.placements
            points = report.zmp_in_world, report.dcm_in_world
            zmp, dcm = self._known.least(plane.normal, soles, self.in_contact, points)
            if self.watch.ignores(zmp, dcm, tilt):
                return None
            self._known = self._soles.known(
                plane, soles, self.in_contact, points,
                (report.zmp_distance, report.dcm_distance))
        return self.watch.update(ns, report.zmp_distance, report.dcm_distance, tilt)

    def _modelled(self, ns: int, state: RobotState, twist: Twist | None, plane: Plane,
                  wrench: Wrench | None, stands: bool) -> tuple[Array | None, Array | None]:
        """Return the model's ZMP and its difference from the measured one, both filtered."""
        step_ns = ns - self._model_ns
        if 0 < step_ns < _UNHEARD_STEP_NS and not self.every_model:
            return None, None
        self._model_ns = ns
        if not 0 < step_ns < LONGEST_STEP_NS or twist is None:
            self._model_wrench.reset()
        if twist is None:
            return None, None
        found = self._model_wrench.update(
            state, twist, 1e-9 * step_ns, None if wrench is None else np.array(wrench))
        if not stands:
            return None, None
        points = [None if contact is None else centre_of_pressure(
            contact.tolist(), plane.normal, plane.height, self._least_force) for contact in found]
        model, measured = (None if point is None else np.array(point) for point in points)
        if model is None or measured is None:
            return model, None
        return model, model - measured

    def _dcm(self, state: RobotState, twist: Twist,
             plane: Plane) -> tuple[Vector | None, float]:
        """Return the DCM on the plane of support, and the frequency of the pendulum, rad/s."""
        x, y, z = state.base.place(*state.com_in_base.tolist())
        vx, vy, _ = state.base.turn(*com_velocity_along_base(state, twist))
        try:
            omega_0 = natural_frequency(z - plane.height_at(x, y), self.settings.gravity)
        except InputError as error:
            self.problem = str(error)
            return None, 0.0
        x, y = x + vx / omega_0, y + vy / omega_0
        return (x, y, plane.height_at(x, y)), omega_0
