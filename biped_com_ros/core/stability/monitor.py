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
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from biped_com_ros.core.com.estimate import (
    com_in_world, com_velocity_in_world, natural_frequency)
from biped_com_ros.core.constants import LONGEST_STEP_NS, nanoseconds, NEVER_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array, combined, Placement, Vector
from biped_com_ros.core.geometry.wrench import (
    centre_of_pressure, pressure_covariance, sum_covariance, Wrench)
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.payload.carried import CarriedPayload, LoadMotion
from biped_com_ros.core.settings import gravity_setting, setting, Settings, settings
from biped_com_ros.core.stability.contact_region import com_region, LastZmpRegion
from biped_com_ros.core.stability.contacts import Contact
from biped_com_ros.core.stability.hands import Hands, hands_covariance, HandSettings, HandTouch
from biped_com_ros.core.stability.levels import (
    Change, lean_of, LEAN_TIME, StabilityClassifier, StabilityThresholds, StepWatch, tilt_of)
from biped_com_ros.core.stability.rolling import Part, RollingSoles
from biped_com_ros.core.stability.support import Soles, SupportPolygon
from biped_com_ros.core.stability.zmp import FilteredWrenches, measured_wrench, ModelWrench
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Twist
import numpy as np

#: The support is computed once in so long, while the same parts touch: what stands does not move.
_SUPPORT_NS = nanoseconds(0.01)


#: Least normal force, as a share of body weight, for a ZMP or CoP.
_MIN_SHARE = 0.03
#: Bandwidth of the model's ZMP, Hz; it is delayed by 0.225 over this.
_CUTOFF = 15.0
#: Distance of parallel soles from their mean plane above which they stand on steps, m.
_STEP_HEIGHT = 0.02


@dataclass(frozen=True, kw_only=True)
class MonitorSettings(Settings):
    """How stability is evaluated."""

    stability: StabilityThresholds = settings(StabilityThresholds)
    gravity: float = gravity_setting()
    #: Delay of the wrenches; compensated where they are compared with the model, s.
    wrench_delay: float = 0.0
    foot_friction: float = setting(
        0.7, 'Coefficient of friction of the soles, for the region of support on steps and with '
        'hands', '', 0.01, 10.0)
    #: Height of a corner above the lowest corner of a rolling sole below which it still touches
    #: the ground, since sole and ground give way; 0: whole soles always touch; see
    #: :class:`RollingSoles`, m.
    edge_height: float = 0.003
    hands: HandSettings = settings(HandSettings, 'hand_{}')

    @property
    def model_wrench_args(self) -> tuple[float, float, float]:
        """Return the arguments of :class:`ModelWrench` after the robot."""
        return _CUTOFF, self.gravity, self.wrench_delay


@dataclass(frozen=True, kw_only=True)
class StabilityReport:
    """
    Stability at one instant; unknown quantities are None. Positions are in the world frame.

    Attributes
    ----------
    located
        The robot, its contacts and the wrenches of its feet.
    support
        The support polygon, or the region of the ZMP where soles stand on steps or hands touch;
        None while no sole is in contact.
    contacts
        All contacts, where the support is such a region; else empty.
    hands
        The hands that touch.
    wrench
        Sum of the wrenches of feet and hands about the world's origin, N and N m; None if not
        measured.
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
    weight
        Body weight by the model, with the payload, N.
    load
        The payload in a hand; None: nothing is carried.

    """

    located: LocatedState
    support: SupportPolygon | None
    contacts: Sequence[Contact]
    hands: Sequence[HandTouch]
    wrench: Wrench | None
    zmp_in_world: Vector | None
    dcm_in_world: Vector | None
    zmp_margin: float | None
    dcm_margin: float | None
    omega_0: float
    filtered: FilteredWrenches | None
    change: Change | None
    least_force: float
    weight: float
    load: LoadMotion | None = None

    @cached_property
    def com_region(self) -> SupportPolygon | None:
        """Where the centre of mass can be at rest, projected down; None if nowhere."""
        if self.support is None or not self.contacts:
            return self.support
        return com_region(self.contacts, self.weight, self.support.plane.origin[2])

    @property
    def com_margin(self) -> float | None:
        """Distance of the projected centre of mass from the edge of that region, m."""
        region = self.com_region
        if region is None:
            return None
        x, y, _ = self.com_in_world.tolist()
        return region.distance((x, y, region.plane.height_at(x, y)))

    @property
    def time_to_edge(self) -> float | None:
        """When the DCM will leave the support if the ZMP stays where it is, s."""
        if self.support is None or self.zmp_in_world is None or self.dcm_in_world is None:
            return None
        return self.support.time_to_edge(self.dcm_in_world, self.zmp_in_world, self.omega_0)

    @cached_property
    def zmp_covariance(self) -> Array | None:
        """
        Covariance of the measured ZMP by that of the wrenches, (3, 3), m^2; None if unknown.

        That of virtual feet and hands; noise of sensors is not in it. That of the base is left
        out: it moves ZMP and support together.
        """
        covariance, wrench = self._wrench_covariance, self.wrench
        if covariance is None or wrench is None or self.zmp_in_world is None:
            return None
        assert self.support is not None
        plane = self.support.plane
        return pressure_covariance(
            self.zmp_in_world, plane.normal, plane.height, float(np.dot(plane.normal, wrench[:3])),
            covariance)

    @property
    def _wrench_covariance(self) -> Array | None:
        """
        Return the covariance of :attr:`wrench`, (6, 6); None if unknown, as with sensors alone.

        Virtual feet are estimated with the force of virtual hands in the equation of the whole
        robot: a hand's error is in them with the opposite sign. Added as if it were independent,
        it makes the sum too uncertain rather than too certain.
        """
        located, virtual = self.located, self.located.state.model.config.virtual_hands
        feet, hands = located.wrench_covariance, located.hand_covariance
        found = None if feet is None else sum_covariance(
            feet, located.state.sole_placements_in_world)
        if not any(hand.name in virtual for hand in self.hands):
            return found
        if hands is None:
            return None
        by_hands = hands_covariance(self.hands, virtual, hands)
        return by_hands if found is None else found + by_hands

    @property
    def zmp_model(self) -> Vector | None:
        """Model-based ZMP, from the motion, on the plane of support, m."""
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
        """Centre of mass by the model, with the payload, shape (3,), m."""
        return np.array(com_in_world(self.located.state, self.load))

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
        """Centre of pressure of each foot, (F, 3), m; NaN for a foot where it is not measured."""
        config = self.located.state.model.config
        unknown = [name in config.feet_with_force_z for name in config.feet]
        soles = self.located.state.sole_placements_in_world
        cops = np.full((len(soles), 3), np.nan)
        for foot, wrench in enumerate(self.located.wrenches or ()):
            touches = self.located.stance.in_contact[foot] and not unknown[foot]
            point = centre_of_pressure(wrench, minimum_force=self.least_force) if touches else None
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
    payload
        What the robot carries besides, as of each instant; None: nothing.
    problem
        Why there is no support polygon or DCM; '' if nothing is wrong.
    parts
        Of each sole the corners that touch, if it rolls; empty if no sole does; see
        :class:`RollingSoles`.
    classifier
        Determines the level.

    """

    def __init__(self, model: RobotModel, settings: MonitorSettings,
                 polygons: Sequence[Sequence[Point]] | None = None) -> None:
        self.model, self.settings = model, settings
        self._measures_whole = not model.config.feet_with_force_z
        self._least_force = _MIN_SHARE * model.mass * settings.gravity
        self.payload: CarriedPayload | None = None
        self._load: LoadMotion | None = None
        outlines = ([foot.polygon for foot in model.config.feet.values()] if polygons is None
                    else polygons)
        self._soles = Soles(outlines)
        self.rolling = RollingSoles(
            outlines, settings.edge_height, self._least_force, self._weight)
        self.hands = Hands(model, settings.hands, self._weight)
        self._region = LastZmpRegion()
        self._model_wrench = ModelWrench(model, *settings.model_wrench_args)
        self._last_ns = NEVER_NS
        self._restart()
        self.problem = ''
        self.parts: Sequence[Part] = ()

    def _restart(self) -> None:
        self.classifier = StabilityClassifier(self.settings.stability)
        self._steps = StepWatch()
        self.hands.reset()
        self.rolling.reset()
        #: What the support follows from besides its place; support, contacts and problem.
        self._touching: object = None
        self._standing: tuple[SupportPolygon | None, list[Contact], str] = None, [], ''

    def continue_from(self, other: StabilityMonitor, *, same_masses: bool) -> None:
        """
        Continue with the level and the steps of another monitor of the same robot.

        With the same masses and settings the state of its filters is kept, too.
        """
        self.classifier, self._steps = other.classifier, other._steps
        self._last_ns = other._last_ns
        self.classifier.configure(self.settings.stability)
        self.hands.continue_from(other.hands)
        self.rolling.continue_from(other.rolling)
        self._touching, self._standing = other._touching, other._standing
        if same_masses and self.settings.model_wrench_args == other.settings.model_wrench_args:
            self._model_wrench = other._model_wrench

    @property
    def _weight(self) -> float:
        load = 0.0 if self._load is None else self._load.mass
        return (self.model.mass + load) * self.settings.gravity

    @property
    def delay(self) -> float:
        """Delay of the model's ZMP, s."""
        return self._model_wrench.delay

    def update(self, located: LocatedState) -> StabilityReport:
        """Evaluate the next instant; a step back in time resets all filters."""
        step_ns, self._last_ns = located.stamp_ns - self._last_ns, located.stamp_ns
        if step_ns < 0:
            self._restart()
        located = self._without_payload(self._with_all_hands(located))
        soles = located.state.sole_placements_in_world.tolist()
        hands, hand_contacts = self._touching_hands(located)
        support, contacts = self._support(located, soles, hand_contacts)
        wrenches = self._whole_wrenches(located)
        wrench = None if wrenches is None else measured_wrench(
            wrenches, soles, located.hand_wrenches, hands)
        zmp, dcm, omega_0 = None, None, 0.0
        if support is not None:
            if wrench is not None:
                zmp = centre_of_pressure(
                    wrench, support.plane.normal, support.plane.height, self._least_force)
            dcm, omega_0 = self._dcm(located.state, located.twist, support.plane)
        zmp_margin, dcm_margin = (
            None if support is None or point is None else support.distance(point)
            for point in (zmp, dcm))
        filtered = self._filter_model(step_ns, located, wrench)
        change = self._watch_fall(located, zmp_margin, dcm_margin)
        return StabilityReport(
            located=located, support=support, contacts=contacts, hands=self.hands.touching,
            wrench=wrench, zmp_in_world=zmp, dcm_in_world=dcm, zmp_margin=zmp_margin,
            dcm_margin=dcm_margin, omega_0=omega_0, filtered=filtered, change=change,
            least_force=self._least_force, weight=self._weight, load=self._load)

    def _whole_wrenches(self, located: LocatedState) -> Sequence[Sequence[float]] | None:
        """Return the wrenches of the feet; None if of one the vertical force alone is measured."""
        return located.wrenches if self._measures_whole else None

    def _with_all_hands(self, located: LocatedState) -> LocatedState:
        """Complete the wrenches of hands of which a message is late or lost."""
        wrenches = self.hands.with_last(located.stamp_ns, located.hand_wrenches)
        if wrenches is not located.hand_wrenches:
            located = copy(located)  # other callbacks get the same object
            located.hand_wrenches = wrenches
        return located

    def _without_payload(self, located: LocatedState) -> LocatedState:
        """Update the payload, and subtract its weight from the wrench of the hand with it."""
        payload, self._load = self.payload, None
        if payload is None:
            return located
        payload.update(located.stamp_ns)
        self._load = payload.motion(located.state)
        if self._load is not None and any(located.hand_wrenches):
            located = copy(located)  # other callbacks get the same object
            located.hand_wrenches = self.hands.without_payload(
                located.state, located.hand_wrenches, payload, self.settings.gravity)
        return located

    def _touching_hands(self, located: LocatedState) -> tuple[list[Placement], list[Contact]]:
        """Return the placements of the hands, and the contacts of those that touch."""
        if not any(located.hand_wrenches):
            if self.hands.touching:  # their sensors are silent
                self.hands.reset()
            return [], []
        placements = self.hands.placements(located.state)
        return placements, self.hands.contacts(located.stamp_ns, placements, located.hand_wrenches)

    def _watch_fall(self, located: LocatedState, zmp_margin: float | None,
                    dcm_margin: float | None) -> Change | None:
        rotation, twist = located.state.base.rotation, located.twist
        if located.filtered is not None and not located.filtered.is_velocity_known:
            return self.classifier.update(
                located.stamp_ns, zmp_margin, None, tilt_of(rotation.item(2, 2)))
        walks = self._steps.update(located.stamp_ns, located.stance.in_contact, dcm_margin)
        lean = None if twist is None else lean_of(rotation, twist.angular, LEAN_TIME)
        return self.classifier.update(
            located.stamp_ns, zmp_margin, dcm_margin, tilt_of(rotation.item(2, 2)), lean,
            walks=walks)

    def _support(self, located: LocatedState, soles: Sequence[Placement],
                 hands: list[Contact]) -> tuple[SupportPolygon | None, list[Contact]]:
        """Return the support, and all contacts where it depends on more than soles."""
        self.parts = self.rolling.update(
            located.stamp_ns, soles, located.stance.in_contact, self._whole_wrenches(located))
        touching = (located.stamp_ns // _SUPPORT_NS, located.stance.in_contact, self.parts,
                    [hand.name for hand in self.hands.touching], self._weight, self.settings)
        if touching != self._touching:
            self._touching, self._standing = touching, self._stand(located, soles, hands)
        support, contacts, self.problem = self._standing
        return support, contacts

    def _stand(self, located: LocatedState, soles: Sequence[Placement], hands: list[Contact],
               ) -> tuple[SupportPolygon | None, list[Contact], str]:
        """Compute the support, and say why there is none."""
        in_contact, settings, parts = located.stance.in_contact, self.settings, self.parts
        try:
            plane = self._soles.plane(soles, in_contact, parts, self.rolling.normal)
            if plane is None:
                return None, [], ''
            if not (hands or self._soles.are_steps(
                    plane, soles, in_contact, _STEP_HEIGHT)):
                return self._soles.polygon(plane, soles, in_contact, parts), [], ''
            contacts = self._soles.contacts(
                soles, in_contact, settings.foot_friction, parts, self.rolling.normal) + hands
            region = self._region.update(
                contacts, self._weight, np.array(com_in_world(located.state, self._load)),
                plane)
        except InputError as error:
            return None, [], str(error)
        return region, contacts, '' if region is not None else (
            'no forces within friction and limits of the contacts hold the robot')

    def _dcm(self, state: RobotState, twist: Twist | None,
             plane: Plane) -> tuple[Vector | None, float]:
        """Return the DCM on the plane of support, and omega_0 of the pendulum, rad/s."""
        if twist is None:
            return None, 0.0
        x, y, z = com_in_world(state, self._load)
        vx, vy, _ = com_velocity_in_world(state, twist, self._load)
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
            located.state, twist, 1e-9 * step_ns, None if wrench is None else np.array(wrench),
            self._load)
