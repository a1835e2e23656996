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
Stability at one instant: support, ZMP, DCM, margins, level.

Measured quantities are not delayed. The model-based ZMP is filtered, and therefore delayed by
:attr:`StabilityMonitor.delay`. It is compared with the ZMP of the measured wrench after the same
filter, so that the difference shows errors of the model and of the sensors, not the delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from biped_com_ros.core.com.kinematics import com_velocity_along_base, natural_frequency
from biped_com_ros.core.constants import GRAVITY, LONGEST_STEP_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array, combined, Placement, Vector
from biped_com_ros.core.geometry.wrench import centre_of_pressure, sum_wrenches, Wrench
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.stability.levels import (
    Change, FallWatch, lean_of, StabilityThresholds, tilt_of)
from biped_com_ros.core.stability.steps import StepWatch
from biped_com_ros.core.stability.support import Soles, SupportPolygon
from biped_com_ros.core.stability.zmp import FilteredWrenches, ModelWrench
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Twist
import numpy as np


@dataclass(frozen=True, kw_only=True)
class MonitorSettings:
    """
    How stability is evaluated.

    Attributes
    ----------
    stability
        Thresholds of the levels.
    min_share
        Least normal force, as a share of body weight, for a ZMP or CoP.
    method, cutoff
        How the model-based wrench is computed, and its bandwidth, Hz; see :class:`ModelWrench`.
    gravity
        Gravitational acceleration, m/s^2.
    wrench_delay
        By how much the wrenches are late, s; undone where they are compared with the model.

    """

    stability: StabilityThresholds = field(default_factory=StabilityThresholds)
    min_share: float = 0.03
    method: str = 'full'
    cutoff: float = 15.0
    gravity: float = GRAVITY
    wrench_delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityReport:
    """
    Stability at one instant; unknown quantities are None. Positions are in the world frame.

    Attributes
    ----------
    located
        The robot, its contacts and the wrenches of its feet.
    support
        The support polygon; None while no sole is in contact.
    wrench
        Sum of the foot wrenches about the world's origin, N and N m; None if not measured.
    zmp_in_world, dcm_in_world
        Measured ZMP, and divergent component of motion, on the plane of support, m.
    zmp_margin, dcm_margin
        Distance of these two from the nearest edge of the support, m; negative outside.
    omega_0
        Natural frequency of the pendulum, rad/s; zero without a DCM.
    filtered
        The wrench that the motion requires, and the measured one, filtered; None while the twist
        of the base is unknown.
    change
        Change of the level at this instant; None if it stays.
    least_force
        Least normal force on a foot for a CoP, N.

    """

    located: LocatedState
    support: SupportPolygon | None
    wrench: Wrench | None
    zmp_in_world: Vector | None
    dcm_in_world: Vector | None
    zmp_margin: float | None
    dcm_margin: float | None
    omega_0: float
    filtered: FilteredWrenches | None
    change: Change | None
    least_force: float

    @property
    def time_to_edge(self) -> float | None:
        """When the DCM will leave the support if the ZMP stays where it is, s."""
        if self.support is None or self.zmp_in_world is None or self.dcm_in_world is None:
            return None
        return self.support.time_left(self.dcm_in_world, self.zmp_in_world, self.omega_0)

    @property
    def zmp_model(self) -> Vector | None:
        """Model-based ZMP, from the motion, m."""
        return None if self.filtered is None else self._zmp_of(self.filtered.model)

    @property
    def zmp_difference(self) -> Array | None:
        """Model's ZMP minus the measured one, after the same filter, shape (3,), m."""
        model, filtered = self.zmp_model, self.filtered
        if model is None or filtered is None or filtered.measured is None:
            return None
        measured = self._zmp_of(filtered.measured)
        return None if measured is None else np.subtract(model, measured)

    def _zmp_of(self, wrench: Array) -> Vector | None:
        if self.support is None:
            return None
        plane = self.support.plane
        return centre_of_pressure(wrench.tolist(), plane.normal, plane.height, self.least_force)

    @property
    def com_in_world(self) -> Array:
        """Centre of mass by the model, shape (3,), m."""
        return self.located.state.com_in_world

    @property
    def forces_in_world(self) -> Array:
        """Force of the ground on each foot, shape (F, 3), N; zero if not measured."""
        soles, wrenches = self.located.state.sole_placements_in_world, self.located.wrenches
        if wrenches is None:
            return np.zeros((len(soles), 3))
        return np.array([combined(sole[:3].tolist(), *wrench[:3])
                         for sole, wrench in zip(soles, wrenches)])

    @property
    def cops_in_world(self) -> Array:
        """Centre of pressure of each foot, (F, 3), m; NaN for a foot without one."""
        soles = self.located.state.sole_placements_in_world
        cops = np.full((len(soles), 3), np.nan)
        for foot, wrench in enumerate(self.located.wrenches or ()):
            touches = self.located.stance.in_contact[foot]
            point = centre_of_pressure(
                wrench, minimum_force=self.least_force) if touches else None
            if point is not None:
                cops[foot] = soles[foot, 3] + np.array(point).dot(soles[foot, :3])
        return cops


class StabilityMonitor:
    """
    Evaluates the stability of a robot, instant by instant.

    Parameters
    ----------
    model
        The robot.
    settings
        How stability is evaluated.
    polygons
        Outline of each sole, m; by default those of the configuration.

    Attributes
    ----------
    problem
        Why there is no support polygon or DCM; '' if nothing is wrong.
    watch
        Determines the level.

    """

    def __init__(self, model: RobotModel, settings: MonitorSettings,
                 polygons: Sequence[Sequence[Point]] | None = None) -> None:
        self.model, self.settings = model, settings
        self._least_force = settings.min_share * model.mass * settings.gravity
        self._soles = Soles.of(model) if polygons is None else Soles(polygons)
        self._model_wrench = ModelWrench(
            model, settings.cutoff, settings.method, settings.gravity, settings.wrench_delay)
        self._last_ns = 0
        self._restart()
        self.problem = ''

    def _restart(self) -> None:
        self.watch = FallWatch(self.settings.stability)
        self._steps = StepWatch(self.settings.stability.walking_timeout)

    @property
    def delay(self) -> float:
        """Delay of the model's ZMP, s."""
        return self._model_wrench.delay

    def update(self, located: LocatedState) -> StabilityReport:
        """Evaluate the next instant; after a step back in time the past is forgotten."""
        step_ns, self._last_ns = located.stamp_ns - self._last_ns, located.stamp_ns
        if step_ns < 0:
            self._restart()
        self.problem = ''
        soles = located.state.sole_placements_in_world.tolist()
        support = self._support(soles, located.stance.in_contact)
        wrench = None if located.wrenches is None else sum_wrenches(located.wrenches, soles)
        zmp, dcm, omega_0 = None, None, 0.0
        if support is not None:
            if wrench is not None:
                zmp = self._zmp(wrench, support.plane)
            dcm, omega_0 = self._dcm(located.state, located.twist, support.plane)
        zmp_margin, dcm_margin = (
            None if support is None or point is None else support.distance(point)
            for point in (zmp, dcm))
        filtered = self._filter_model(step_ns, located, wrench)
        change = self._watch_fall(located, zmp_margin, dcm_margin)
        return StabilityReport(
            located=located, support=support, wrench=wrench, zmp_in_world=zmp, dcm_in_world=dcm,
            zmp_margin=zmp_margin, dcm_margin=dcm_margin, omega_0=omega_0, filtered=filtered,
            change=change, least_force=self._least_force)

    def _watch_fall(self, located: LocatedState, zmp_margin: float | None,
                    dcm_margin: float | None) -> Change | None:
        rotation, twist = located.state.base.rotation, located.twist
        if located.filtered is not None and not located.filtered.knows_velocity:
            return self.watch.update(
                located.stamp_ns, zmp_margin, None, tilt_of(rotation.item(2, 2)))
        walks = self._steps.update(located.stamp_ns, located.stance.in_contact, dcm_margin)
        lean = None if twist is None else lean_of(
            rotation, twist.angular, self.settings.stability.lean_time)
        return self.watch.update(
            located.stamp_ns, zmp_margin, dcm_margin, tilt_of(rotation.item(2, 2)), lean,
            walks=walks)

    def _support(self, soles: Sequence[Placement],
                 in_contact: Sequence[bool]) -> SupportPolygon | None:
        try:
            plane = self._soles.plane(soles, in_contact)
        except InputError as error:
            self.problem = str(error)
            return None
        return None if plane is None else self._soles.polygon(plane, soles, in_contact)

    def _dcm(self, state: RobotState, twist: Twist | None,
             plane: Plane) -> tuple[Vector | None, float]:
        """Return the DCM on the plane of support, and omega_0 of the pendulum, rad/s."""
        if twist is None:
            return None, 0.0
        x, y, z = state.base.place(*state.com_in_base.tolist())
        vx, vy, _ = state.base.turn(*com_velocity_along_base(state, twist))
        try:
            omega_0 = natural_frequency(z - plane.height_at(x, y), self.settings.gravity)
        except InputError as error:
            self.problem = str(error)
            return None, 0.0
        x, y = x + vx / omega_0, y + vy / omega_0
        return (x, y, plane.height_at(x, y)), omega_0

    def _filter_model(self, step_ns: int, located: LocatedState,
                      wrench: Wrench | None) -> FilteredWrenches | None:
        """Return the wrench that the motion requires and the measured one, both filtered."""
        twist = located.twist
        if not 0 < step_ns < LONGEST_STEP_NS or twist is None:
            self._model_wrench.reset()
        if twist is None:
            return None
        return self._model_wrench.update(
            located.state, twist, 1e-9 * step_ns, None if wrench is None else np.array(wrench))

    def _zmp(self, wrench: Sequence[float], plane: Plane) -> Vector | None:
        return centre_of_pressure(wrench, plane.normal, plane.height, self._least_force)
