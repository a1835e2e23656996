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
Gravity compensation as one thing: sensor values in, efforts out, or the reason why not.

Chooses the support (`auto`: by the vertical forces), checks that attitude and support are
plausible, and leaves what is commanded to
:class:`~biped_com_ros.core.gravity.effort_guard.EffortGuard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import math

from biped_com_ros.core.constants import GRAVITY, LONGEST_STEP_NS, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.effort_guard import EffortGuard, SafetySettings, UprightCheck
from biped_com_ros.core.gravity.load_sharing import LoadSharing, SharingSettings
from biped_com_ros.core.gravity.model import (
    ContactPoint, GravityLoad, GravityModel, MINIMUM_NORM, Support, Wrench, WrenchDistribution)
from biped_com_ros.core.gravity.support_qp import BoundedNorm, SupportLimits
from biped_com_ros.core.model.robot import RobotModel, RobotState
import numpy as np

#: Time of what did not happen yet, ns, and how long the contacts' axes of the last time will do.
_AXES_LAST_NS = 50_000_000
#: Of the weight: a contact that has to pull with less does not.
_PULL = 1e-6
#: Of the weight: the contacts do not feel more for longer than an impact.
_HEAVIEST = 5.0
AUTO, FIXED, ALL = 'auto', 'fixed', 'all'
CLOSED_FORM, BOUNDED = 'closed_form', 'bounded'
Polygon = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class CompensationSettings:
    """
    What is assumed, and how far efforts go.

    Attributes
    ----------
    support
        ``auto``: the contacts that measure force; ``fixed``: something holds the torso;
        ``all``: every contact alike; else contacts by name, separated by commas, alike.
    distribution
        ``closed_form`` or ``bounded`` (quadratic program with `limits`).
    gravity
        m/s2.
    lever
        L of the feet, m: see :mod:`biped_com_ros.core.gravity.model`.
    contacts
        Feet and hands that may carry; empty: the feet.
    limits
        Of the contacts, with ``bounded``.
    sharing, safety
        Load sharing; clamp, rates and ramps.
    max_tilt, max_turn_rate, settle_time
        What attitude is believed: rad, rad/s, s.
    cop_tolerance
        How far outside its sole a contact that carries everything may need its centre of
        pressure, m; a contact that carries less, further.

    """

    support: str = AUTO
    distribution: str = CLOSED_FORM
    gravity: float = GRAVITY
    lever: float = 0.1
    contacts: tuple[str, ...] = ()
    limits: SupportLimits = field(default_factory=SupportLimits)
    sharing: SharingSettings = field(default_factory=SharingSettings)
    safety: SafetySettings = field(default_factory=SafetySettings)
    max_tilt: float = math.radians(60.0)
    max_turn_rate: float = 10.0
    settle_time: float = 0.5
    cop_tolerance: float = 0.02


class GravityCompensator:
    """
    A robot's gravity compensation.

    Parameters
    ----------
    model
        The robot.
    settings
        What is assumed.

    Attributes
    ----------
    gravity_model
        What gravity asks of its joints.
    guard
        What may be commanded.
    sharing
        How the contacts share the weight in ``auto``.
    support
        The support of the last call that succeeded; None with ``fixed`` and before.

    Raises
    ------
    UnknownNameError, ConfigurationError
        If a setting makes no sense for this robot.

    """

    def __init__(self, model: RobotModel, settings: CompensationSettings | None = None) -> None:
        self.model = model
        self.settings = settings = settings or CompensationSettings()
        self.gravity_model = GravityModel(
            model, settings.gravity, settings.contacts or None, settings.lever)
        self.guard = EffortGuard(self.gravity_model.effort_limits, settings.safety)
        self._gains: Array | None = None
        self._edges = [
            _edges(contact.polygon_about_centre) for contact in self.gravity_model.contacts]
        # Of the circle about the centre that fits into the sole, the squared radius.
        self._circles = [max(min((e for e, _, _ in edges), default=0.0), 0.0) ** 2
                         for edges in self._edges]
        self.support: Support | None = None
        self._forget()
        self.configure(settings)

    def configure(self, settings: CompensationSettings) -> None:
        """
        Use other settings; contacts, gravity and lever stay.

        Raises
        ------
        UnknownNameError, ConfigurationError
            If they make no sense; the old ones then stay in use.

        """
        shares = self._fixed_shares(settings.support)
        distribution: WrenchDistribution = (
            MINIMUM_NORM if settings.distribution == CLOSED_FORM
            else BoundedNorm(self.gravity_model, settings.limits))
        self._given_shares, self._distribution, self.settings = shares, distribution, settings
        self._planned: list[float] = []
        self._planned_until_ns = -1
        self.guard.configure(settings.safety)
        self.sharing = LoadSharing(
            len(self.gravity_model.contacts), self.gravity_model.weight, settings.sharing)
        self.upright = UprightCheck(
            settings.max_tilt, settings.max_turn_rate, settings.settle_time)

    def reset(self) -> None:
        """Forget what was measured."""
        self.sharing.reset()
        self.upright.reset()
        self.support = None
        self._forget()

    def _forget(self) -> None:
        count = len(self.gravity_model.contacts)
        self._felt: list[Wrench] = [()] * count
        self._felt_ns = [NEVER_NS] * count
        #: Of all contacts at one time, and whether the shares have yet to follow them.
        self._forces: list[float] = []
        self._are_new = True
        self._load: GravityLoad | None = None
        self._load_ns = self._shared_ns = NEVER_NS

    def enable(self, groups: Sequence[str]) -> None:
        """Let only the joints of some groups take part; none named: all actuated joints."""
        enabled = np.array([not groups] * len(self.model.joint_names))
        for group in groups:
            enabled[self.model.group_index(group)] = True
        self.guard.enabled = enabled

    def expect(self, shares: Array, until_ns: int) -> None:
        """
        Take what a walk plans the contacts to carry; with ``auto``, instead of what they feel.

        A foot that lands feels nothing until somebody leans on it, and efforts by what it feels
        would hold the robot on the other one.

        Parameters
        ----------
        shares
            Shape (K,), not negative, sum 1.
        until_ns
            How long it holds without being told again, ns.

        Raises
        ------
        InputError
            If these are no shares.

        """
        if not (shares >= 0.0).all() or not abs(shares.sum() - 1.0) < 1e-6:
            raise InputError(f'planned shares {shares.tolist()} must be positive with the sum 1')
        self._planned, self._planned_until_ns = (shares / shares.sum()).tolist(), until_ns

    def feel(self, contact: int, wrench: Wrench, stamp_ns: int) -> None:
        """
        Take what a contact feels; needed with ``auto``.

        When all contacts have told of an instant, the shares follow at once, with the contacts'
        axes of the last time the robot was held; else when it is held next.

        Parameters
        ----------
        contact
            Index of the contact.
        wrench
            In its own axes, environment on robot, force first, six plain numbers, N and N m.
        stamp_ns
            Time of the measurement, ns.

        """
        self._felt[contact] = wrench
        felt_ns = self._felt_ns
        felt_ns[contact] = stamp_ns
        self._are_new = True
        if (felt_ns.count(stamp_ns) == len(felt_ns) and self._load is not None
                and abs(stamp_ns - self._load_ns) < _AXES_LAST_NS):
            self._share(self._load, stamp_ns)

    def wanted(self, state: RobotState, up_in_base: Array, stamp_ns: int,
               wrenches: Array | None = None) -> Array:
        """
        Return the efforts that hold the robot, before the guard.

        Parameters
        ----------
        state
            Its kinematics.
        up_in_base
            Unit vector against gravity, base axes, (3,).
        stamp_ns
            Time of the state, ns.
        wrenches
            Measured at each contact in its own axes, environment on robot, (K, 6), N and N m;
            needed with ``auto``.

        Returns
        -------
        numpy.ndarray
            Shape (n,), N m or N.

        Raises
        ------
        InputError
            If attitude or support are not plausible; says why.

        """
        self._load = None  # for the axes of this state
        for contact, wrench in enumerate([] if wrenches is None else wrenches.tolist()):
            self.feel(contact, wrench, stamp_ns)
        return self.hold(self.gravity_model.load(state, up_in_base), stamp_ns)

    def hold(self, load: GravityLoad, stamp_ns: int) -> Array:
        """Return what :meth:`wanted` does, of a robot that was weighed, by what it felt last."""
        if not self.upright.follow(load.up_parts, stamp_ns):
            raise InputError(self.upright.problem)
        if self.settings.support == FIXED:
            self.support, efforts = None, load.held
        else:
            # Not by `GravityLoad.standing`: these shares need no examination.
            support = self._distribution.support(load, self._shares(load, stamp_ns))
            if not self._is_plausible(support):
                raise InputError(support_problem(support, self.settings.cop_tolerance))
            self.support, efforts = support, support.efforts
        return efforts if self._gains is None else efforts * self._gains

    @property
    def gains(self) -> Array:
        """Share of the computed effort that is wanted, by joint, (n,); assign to change."""
        gains = np.ones(len(self.model.joint_names)) if self._gains is None else self._gains
        gains.flags.writeable = False
        return gains

    @gains.setter
    def gains(self, gains: Array) -> None:
        self._gains = None if bool((gains == 1.0).all()) else gains.copy()

    @property
    def mode(self) -> str:
        """Return in words on what the robot stands: ``left, right``, or ``fixed``."""
        if self.support is None:
            return FIXED if self.settings.support == FIXED else 'unknown'
        return ', '.join(contact.name for contact, carries in zip(
            self.gravity_model.contacts, self.support.carrying) if carries)

    def _is_plausible(self, support: Support) -> bool:
        """Tell what :func:`support_problem` puts in words, on plain numbers."""
        weight = self.gravity_model.weight
        pull, outside = -_PULL * weight, -self.settings.cop_tolerance * weight
        for edges, circle, (x, y, z, _), (fx, fy, fz, mx, my, mz) in zip(
                self._edges, self._circles, support.load.rows, support.rows):
            normal = z[0] * fx + z[1] * fy + z[2] * fz
            if not normal >= pull:
                return False
            # The whole moment is no smaller than its part that moves the centre of pressure.
            if mx * mx + my * my + mz * mz <= circle * normal * normal:
                continue
            about_x, about_y = (x[0] * mx + x[1] * my + x[2] * mz,
                                y[0] * mx + y[1] * my + y[2] * mz)
            for e, n, m in edges:
                if not e * normal + n * about_x + m * about_y >= outside:
                    return False
        return True

    def _fixed_shares(self, support: str) -> list[float] | None:
        if support in (AUTO, FIXED):
            return None
        names = [contact.name for contact in self.gravity_model.contacts]
        wanted = names if support == ALL else [name.strip() for name in support.split(',')]
        for name in wanted:
            if name not in names:
                raise UnknownNameError(
                    'support', name, (AUTO, FIXED, ALL, *names), self.model.config.name)
        shares: list[float] = self.gravity_model.shares_of(wanted).tolist()
        return shares

    def _shares(self, load: GravityLoad, stamp_ns: int) -> list[float]:
        if self._given_shares is not None:
            return self._given_shares
        self._load, self._load_ns = load, stamp_ns
        if self._are_new or not self.sharing.settled:
            self._share(load, stamp_ns)
        felt, weight = sum(self._forces), self.gravity_model.weight
        if self.sharing.in_air:
            raise InputError(
                f'the contacts feel {felt:.0f} N of {weight:.0f} N: the robot is in the air; set '
                "support to 'fixed' if something holds it by the torso")
        if felt > _HEAVIEST * weight:
            raise InputError(
                f'the contacts feel {felt:.0f} N of {weight:.0f} N, which cannot be true: check '
                'the units of their sensors')
        if stamp_ns <= self._planned_until_ns:
            return self.sharing.impose(self._planned)
        shares = self.sharing.values
        if not any(shares):
            raise InputError('no contact carries more than a trace of the weight')
        return shares

    def _share(self, load: GravityLoad, stamp_ns: int) -> None:
        """Let the shares follow what is felt along gravity."""
        if NEVER_NS in self._felt_ns:
            raise ConfigurationError("support 'auto' needs the measured wrenches of the contacts")
        ux, uy, uz = load.up_parts
        # Of each contact: its axes' parts along the vertical, times its force.
        self._forces = [(ax * ux + ay * uy + az * uz) * fx + (bx * ux + by * uy + bz * uz) * fy
                        + (cx * ux + cy * uy + cz * uz) * fz
                        for ((ax, ay, az), (bx, by, bz), (cx, cy, cz), _), (fx, fy, fz, _, _, _)
                        in zip(load.rows, self._felt)]
        # Joints and wrenches do not come in one order: nothing that is a little late is a step
        # back in time.
        if not 0 <= self._shared_ns - stamp_ns < LONGEST_STEP_NS:
            self._shared_ns = stamp_ns
        self.sharing.follow(self._forces, self._shared_ns)
        self._are_new = False


def support_problem(support: Support, tolerance: float) -> str:
    """
    Tell what keeps a support from being real, or ''.

    Parameters
    ----------
    support
        Contacts and wrenches.
    tolerance
        How far outside a sole the centre of pressure may be where a contact carries everything,
        m; where it carries less, further.

    """
    weight = support.load.gravity_model.weight
    for contact, wrench in zip(support.load.gravity_model.contacts, support.wrenches.tolist()):
        _, _, fz, mx, my, _ = wrench
        if fz < -_PULL * weight:
            return (f"'{contact.name}' would have to pull with {-fz:.1f} N: the centre of mass is "
                    'not over the contacts')
        excess = _moment_outside(contact, fz, mx, my)
        if excess > tolerance * weight:
            return (f"the centre of pressure of '{contact.name}' would have to be "
                    f'{1e3 * excess / fz:.0f} mm outside its sole: the centre of mass is not over '
                    'the contacts')
    return ''


def _moment_outside(contact: ContactPoint, fz: float, mx: float, my: float) -> float:
    """Return normal force times distance of the centre of pressure from the sole, N m."""
    return max((-(e * fz + n * mx + m * my) for e, n, m in _edges(contact.polygon)), default=0.0)


def _edges(corners: Polygon) -> list[tuple[float, float, float]]:
    """Return what fz, mx and my are multiplied by for fz times the distance inside each edge."""
    edges = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]):
        length = math.hypot(x1 - x0, y1 - y0)
        # The inward normal of a counter-clockwise polygon; the centre of pressure is at
        # (-my, mx) / fz.
        nx, ny = (y0 - y1) / length, (x1 - x0) / length
        edges.append((-nx * x0 - ny * y0, ny, -nx))
    return edges
