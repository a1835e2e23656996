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
Gravity compensation as a whole: sensor values in, target efforts or an error out.

Chooses the support (`auto`: by the vertical forces) and checks that attitude and support are
plausible. What may be commanded of these efforts is decided by
:class:`~biped_com_ros.core.gravity.supervisor.EffortSupervisor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import math

from biped_com_ros.core.constants import LONGEST_STEP_NS, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.attitude import MountedImu, UprightCheck
from biped_com_ros.core.gravity.effort_limiter import EffortLimiter, SafetySettings
from biped_com_ros.core.gravity.load_sharing import LoadSharing, SharingSettings
from biped_com_ros.core.gravity.measured import MeasuredWrenches
from biped_com_ros.core.gravity.model import (
    ContactSolution, Distribution, GravityLoad, GravityModel, minimum_norm)
from biped_com_ros.core.gravity.support_qp import BoundedNorm, SupportLimits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import gravity_setting, setting, Settings, settings
from biped_com_ros.core.signals.age import is_recent
from biped_com_ros.core.wrench.sensor_faults import WeightBalance, WeightBalanceSettings
import numpy as np

#: How long the contacts' axes of the last posture are used for new forces, ns.
_AXES_LIFETIME_NS = 50_000_000
#: How long the shares that a gait plans are used after its last message, ns.
_PLAN_LIFETIME_NS = 200_000_000
#: Tolerated negative normal force of a contact, as a fraction of the body weight.
_PULL = 1e-6
#: Largest plausible total force of the contacts, as a fraction of the body weight.
_LARGEST_FORCE = 5.0
AUTO, FIXED, ALL = 'auto', 'fixed', 'all'
CLOSED_FORM, BOUNDED, MEASURED = 'closed_form', 'bounded', 'measured'


#: Largest plausible speed of a turn, rad/s.
_MAX_TURN_RATE = 10.0
#: How long the IMU has to be steady after a jump, s.
_SETTLE_TIME = 0.5
#: Torque length L of the feet: see :mod:`biped_com_ros.core.gravity.contacts`, m.
_CHARACTERISTIC_LENGTH = 0.1


@dataclass(frozen=True, kw_only=True)
class CompensationSettings(Settings):
    """Settings of a :class:`GravityCompensator`."""

    support: str = setting(
        AUTO, "Contacts that support the robot: 'auto' (by the measured forces), 'fixed' "
        "(something holds the base), 'all' (every contact alike), or by name, separated by "
        'commas')
    contacts: tuple[str, ...] = setting(
        (), 'Feet and hands that may be loaded; empty: the feet', read_only=True)
    distribution: str = setting(
        CLOSED_FORM, 'How contact wrenches are chosen: the least ones in closed form, the least '
        'ones within friction, soles and efforts (bounded; needs proxsuite), or the measured '
        'ones, for dynamic walking', options=(CLOSED_FORM, BOUNDED, MEASURED))
    #: Bandwidth of the wrenches of the contacts, with distribution 'measured', Hz.
    wrench_cutoff: float = 20.0
    safety: SafetySettings = settings(SafetySettings)
    limits: SupportLimits = settings(SupportLimits)
    sharing: SharingSettings = settings(SharingSettings, 'share_{}')
    balance: WeightBalanceSettings = settings(WeightBalanceSettings, 'weight_{}')
    max_tilt: float = setting(
        60.0, 'Largest tilt of the base by the IMU that is plausible', 'deg', 1.0, 180.0)
    gravity: float = gravity_setting()
    #: How far outside its sole the centre of pressure of a contact that has all of the weight may
    #: have to be; of a contact that has less, further, m.
    cop_tolerance: float = 0.02


class GravityCompensator:
    """
    A robot's gravity compensation.

    Parameters
    ----------
    model
        The robot.
    settings
        Default: those of :class:`CompensationSettings`.

    Attributes
    ----------
    gravity_model
        Gravity's load on its joints.
    limiter
        Limits what may be commanded.
    imu
        The IMU that measures the attitude for :meth:`efforts_at`.
    sharing
        Estimates the shares of the weight with ``auto``.
    balance
        Whether the measured forces contradict the weight; shares are held then.
    support
        The support of the last call that succeeded; None with ``fixed`` and before.
    gains
        Share of the computed effort that is used, by joint, (n,); None: all of it.

    Raises
    ------
    UnknownNameError, ConfigurationError
        If a setting makes no sense for this robot.

    """

    def __init__(self, model: RobotModel, settings: CompensationSettings | None = None) -> None:
        self.model = model
        self.settings = settings = settings or CompensationSettings()
        self.gravity_model = GravityModel(
            model, settings.gravity, settings.contacts or None, _CHARACTERISTIC_LENGTH)
        self.limiter = EffortLimiter(self.gravity_model.effort_limits, settings.safety)
        self.imu = MountedImu(model, model.config.imu.frame)
        self.gains: Array | None = None
        count, weight = len(self.gravity_model.contacts), self.gravity_model.weight
        self._measured = MeasuredWrenches(count, settings.wrench_cutoff)
        self.sharing = LoadSharing(count, weight, settings.sharing)
        self.balance = WeightBalance(
            [contact.name for contact in self.gravity_model.contacts], weight)
        self.upright = UprightCheck(*_attitude_limits(settings))
        self._planned: list[float] = []
        self.configure(settings)
        self.reset()

    def configure(self, settings: CompensationSettings) -> None:
        """
        Use other settings; contacts, gravity and lever stay, and so does what is measured.

        Raises
        ------
        UnknownNameError, ConfigurationError
            If they make no sense; the old ones then stay in use.

        """
        shares = self._fixed_shares(settings.support)
        distribution: Distribution = (
            BoundedNorm(self.gravity_model, replace(
                settings.limits, effort_fraction=settings.safety.clamp))
            if settings.distribution == BOUNDED else minimum_norm)
        if settings.distribution == MEASURED and settings.support != AUTO:
            raise ConfigurationError(
                f"distribution '{MEASURED}' needs support '{AUTO}', which measures the contacts, "
                f"not '{settings.support}'")
        restriction = self.model.config.force_z_restriction
        if settings.distribution == MEASURED and restriction:
            raise ConfigurationError(
                f"distribution '{MEASURED}' needs whole wrenches, but {restriction}: use "
                f"'{CLOSED_FORM}'")
        self._given_shares, self._distribution, self.settings = shares, distribution, settings
        self.limiter.configure(settings.safety)
        self._measured.set_cutoff(settings.wrench_cutoff)
        self.sharing.settings = settings.sharing
        self.balance.settings = replace(settings.balance, unloaded=settings.sharing.lift)
        self.upright.configure(*_attitude_limits(settings))

    def use_inertials(self) -> None:
        """
        Recompute the weight after masses of the model or of the payload have changed.

        The limiter bounds the rate of the step in the efforts.
        """
        self.gravity_model.use_inertials()
        self.sharing.body_weight = self.balance.body_weight = self.gravity_model.weight
        self._load_ns = NEVER_NS

    def update_payload(self, stamp_ns: int) -> None:
        """Advance the payload to the time `stamp_ns`, and balance it."""
        payload = self.gravity_model.payload
        if payload is not None and payload.update(stamp_ns):
            self.use_inertials()

    def reset(self) -> None:
        """Discard measurements and plans, except for the IMU's orientation."""
        self.sharing.reset()
        self.balance.reset()
        self.upright.reset()
        self.support: ContactSolution | None = None
        self._planned_ns = NEVER_NS
        count = len(self.gravity_model.contacts)
        self._measured = MeasuredWrenches(count, self.settings.wrench_cutoff)
        self._wrenches: list[Sequence[float]] = [()] * count
        self._stamps_ns = [NEVER_NS] * count
        #: Of all contacts along gravity, N, and whether the shares have yet to follow them.
        self._forces: list[float] = []
        self._has_new_forces = True
        self._deviations: Sequence[float] = ()
        self._deviations_ns = NEVER_NS
        self._load: GravityLoad | None = None
        self._load_ns = self._shared_ns = NEVER_NS

    def enable(self, groups: Sequence[str]) -> None:
        """Enable only the joints of some groups; no group: all actuated joints."""
        enabled = np.array([not groups] * len(self.model.joint_names))
        for group in groups:
            enabled[self.model.group_index(group)] = True
        self.limiter.enabled = enabled

    def plan_shares(self, shares: Array, stamp_ns: int) -> None:
        """
        Use the contacts' shares that a gait plans, with ``auto``, instead of the measured ones.

        A foot that lands measures no force until it is loaded, and efforts by the measured
        forces would not load it.

        Parameters
        ----------
        shares
            Shape (K,), not negative, sum 1.
        stamp_ns
            Of the plan, ns; it is used for 0.2 s.

        Raises
        ------
        InputError
            If a share is negative or their sum is not 1.

        """
        if not (shares >= 0.0).all() or not abs(shares.sum() - 1.0) < 1e-6:
            raise InputError(
                f'planned shares {shares.tolist()} must be zero or more, and their sum 1')
        self._planned, self._planned_ns = (shares / shares.sum()).tolist(), stamp_ns

    def update_wrench(self, contact: int, wrench: Sequence[float], stamp_ns: int) -> None:
        """
        Use the measured wrench of a contact; needed with ``auto``.

        When all contacts have been measured at an instant, the shares follow at once, with the
        contacts' axes of the last posture; else at the next posture.

        Parameters
        ----------
        contact
            Index of the contact.
        wrench
            In its own axes, environment on robot, force first, six floats, N and N m.
        stamp_ns
            Time of the measurement, ns.

        """
        self._wrenches[contact] = wrench
        if self._uses_measured:
            self._measured.add(contact, wrench, stamp_ns)
        stamps_ns = self._stamps_ns
        stamps_ns[contact] = stamp_ns
        self._has_new_forces = True
        if (stamps_ns.count(stamp_ns) == len(stamps_ns) and self._load is not None
                and is_recent(self._load_ns, stamp_ns, _AXES_LIFETIME_NS)):
            self._share(self._load, stamp_ns)

    def update_deviations(self, deviations: Sequence[float], stamp_ns: int) -> None:
        """
        Use the standard deviations of the normal forces of all contacts, where they are uncertain.

        Parameters
        ----------
        deviations
            One number for each contact, N.
        stamp_ns
            Of their wrenches, ns; they are used for 50 ms.

        """
        self._deviations, self._deviations_ns = deviations, stamp_ns

    def efforts_at(self, positions: Array, stamp_ns: int) -> Array:
        """Return :meth:`efforts` for joint positions (n,) and the orientation of :attr:`imu`."""
        return self.efforts(self.gravity_model.load_at(positions, self.imu), stamp_ns)

    def efforts(self, load: GravityLoad, stamp_ns: int) -> Array:
        """
        Return the efforts that balance gravity, before the limiter.

        Parameters
        ----------
        load
            Gravity's load in the present posture and attitude.
        stamp_ns
            Its time, ns.

        Returns
        -------
        numpy.ndarray
            Shape (n,), N m or N.

        Raises
        ------
        InputError
            If attitude or support are not plausible.

        """
        if not self.upright.update(load.up, stamp_ns):
            raise InputError(self.upright.problem)
        if self.settings.support == FIXED:
            self.support = None
            return self._scaled(load.fixed_base_efforts())
        shares = self._shares(load, stamp_ns)
        if self._uses_measured:
            self.support = self._measured.support(load, stamp_ns)
            return self._scaled(self.support.efforts)
        support = self._distribution(load, shares)
        if problem := support_problem(support, self.settings.cop_tolerance):
            raise InputError(problem)
        self.support = support
        return self._scaled(support.efforts)

    @property
    def mode(self) -> str:
        """Names of the contacts that have a share (``left, right``), or ``fixed``."""
        if self.support is None:
            return FIXED if self.settings.support == FIXED else 'unknown'
        return ', '.join(contact.name for contact, is_loaded in zip(
            self.gravity_model.contacts, self.support.loaded) if is_loaded)

    @property
    def _uses_measured(self) -> bool:
        return self.settings.distribution == MEASURED

    def _scaled(self, efforts: Array) -> Array:
        return efforts if self.gains is None else efforts * self.gains

    def _fixed_shares(self, support: str) -> list[float] | None:
        if support in (AUTO, FIXED):
            return None
        names = [contact.name for contact in self.gravity_model.contacts]
        chosen = names if support == ALL else [name.strip() for name in support.split(',')]
        for name in chosen:
            if name not in names:
                raise UnknownNameError(
                    'support', name, (AUTO, FIXED, ALL, *names), self.model.config.name)
        return [(name in chosen) / len(set(chosen)) for name in names]

    def _shares(self, load: GravityLoad, stamp_ns: int) -> list[float]:
        if self._given_shares is not None:
            return self._given_shares
        self._load, self._load_ns = load, stamp_ns
        if self._has_new_forces or not self.sharing.settled:
            self._share(load, stamp_ns)
        total, weight = sum(self._forces), self.gravity_model.weight
        measured = f'the contacts measure {total:.0f} N of a weight of {weight:.0f} N: '
        if not -math.inf < total <= _LARGEST_FORCE * weight:
            raise InputError(
                measured + f'more than {_LARGEST_FORCE:g} times the weight is not plausible; '
                'check the units of their sensors')
        if self.sharing.in_air:
            raise InputError(
                measured + "the robot is in the air; set support to 'fixed' if something holds "
                'its base')
        if self.balance.problem:
            raise InputError(self.balance.problem)
        if is_recent(self._planned_ns, stamp_ns, _PLAN_LIFETIME_NS):
            return self.sharing.impose(self._planned)
        shares = self.sharing.values
        if not any(shares):
            raise InputError(
                measured + 'none has carried more than unload_threshold, '
                f'{self.settings.sharing.lift:g} of the weight; check the wrench topics')
        return shares

    def _share(self, load: GravityLoad, stamp_ns: int) -> None:
        """Update the shares by the measured forces along gravity."""
        if NEVER_NS in self._stamps_ns:
            names = [f"'{contact.name}'" for contact, stamp in zip(
                self.gravity_model.contacts, self._stamps_ns) if stamp == NEVER_NS]
            raise ConfigurationError(
                f"support 'auto' needs the measured wrenches of all contacts, and of "
                f"{', '.join(names)} none was received: check the wrench topics, or set support "
                "to 'all' or 'fixed'")
        ux, uy, uz = load.up
        # Vertical component of each contact's force.
        self._forces = [(ax * ux + ay * uy + az * uz) * fx + (bx * ux + by * uy + bz * uz) * fy
                        + (cx * ux + cy * uy + cz * uz) * fz
                        for ((ax, ay, az), (bx, by, bz), (cx, cy, cz), _), (fx, fy, fz, _, _, _)
                        in zip(load.placement_values, self._wrenches)]
        # Joint states and wrenches arrive in any order: what is a little late is no step back
        # in time.
        if not 0 <= self._shared_ns - stamp_ns < LONGEST_STEP_NS:
            self._shared_ns = stamp_ns
        if self.balance.update(self._forces, self._shared_ns) and any(self.sharing.values):
            self.sharing.hold(self._shared_ns)
        else:
            are_known = is_recent(self._deviations_ns, stamp_ns, _AXES_LIFETIME_NS)
            self.sharing.update(
                self._forces, self._shared_ns, self._deviations if are_known else ())
        self._has_new_forces = False


def _attitude_limits(settings: CompensationSettings) -> tuple[float, float, float]:
    """Return what `UprightCheck` takes."""
    return math.radians(settings.max_tilt), _MAX_TURN_RATE, _SETTLE_TIME


def support_problem(support: ContactSolution, tolerance: float) -> str:
    """
    Return why contact wrenches are physically impossible; '' if they are possible.

    Parameters
    ----------
    support
        The wrenches.
    tolerance
        How far outside a sole the centre of pressure of a contact with all of the weight may be,
        m; of a contact with less, further.

    """
    load, weight = support.load, support.load.gravity_model.weight
    pull, least = _PULL * weight, -tolerance * weight
    # With Python floats: at every message, for two contacts, arrays take three times as long.
    for contact, placement, (fx, fy, fz, mx, my, mz) in zip(
            load.gravity_model.contacts, load.placement_values, support.wrench_values):
        if contact.normal is None:
            continue
        (x_x, x_y, x_z), (y_x, y_y, y_z), (z_x, z_y, z_z), _ = placement
        nx, ny, nz = contact.normal
        normal = (nx * (x_x * fx + x_y * fy + x_z * fz) + ny * (y_x * fx + y_y * fy + y_z * fz)
                  + nz * (z_x * fx + z_y * fy + z_z * fz))
        if not normal >= -pull:
            return (f"balance requires contact '{contact.name}' to pull with {-normal:.1f} N, "
                    'but contacts only push: the centre of mass is not over the contacts; check '
                    'posture and wrenches')
        about_x = x_x * mx + x_y * my + x_z * mz
        about_y = y_x * mx + y_y * my + y_z * mz
        for offset, along_x, along_y in contact.edges:
            inside = offset * normal + along_x * about_x + along_y * about_y
            if not inside >= least:
                return (f"balance requires the centre of pressure of '{contact.name}' to be "
                        f'{-1e3 * inside / max(normal, pull):.0f} mm outside its sole '
                        f'({1e3 * tolerance:g} mm over its share of the weight are allowed): '
                        'the centre of mass is not over the contacts; check posture and wrenches')
    return ''
