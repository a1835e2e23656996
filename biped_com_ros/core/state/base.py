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
Where the base of the robot is in the world, from one of five sources.

======== ===================================== ================================================
source   pose                                  twist
======== ===================================== ================================================
imu      orientation from the IMU, position    gyroscope and joint velocities above the soles
         from the soles in contact             in contact
filter   an invariant filter of gyroscope,     of the same filter
         accelerometer and foot wrenches
odometry an odometry message                   of the same message
tf       a transform world -> base_link at     joint velocities above the soles in contact
         the time of the joint positions
fixed    a parameter                           zero
======== ===================================== ================================================

Samples of the IMU or the odometry are propagated by their angular (and linear) velocity to the
time of the joint positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_from_quaternion, turned
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import setting, Settings, settings
from biped_com_ros.core.signals.age import age_of
from biped_com_ros.core.state.base_filter import BaseFilter, FilteredBase, FilterSettings
from biped_com_ros.core.state.leg_odometry import LegOdometry, twist_from_stance
from biped_com_ros.core.state.stance import LowestSoles, Stance, Twist
import numpy as np

BASE_SOURCES = ('imu', 'filter', 'odometry', 'tf', 'fixed')

#: Upward component of the base's z axis below which the robot lies, and above which it is upright.
_LYING, _UPRIGHT = 0.5, 0.87

#: Returns the pose of base_link in the world at a time (ns), or raises InputError.
Lookup = Callable[[int], Pose]


#: Where contacts are not measured: height above the lowest sole below which a sole is assumed to
#: be in contact, m.
_CONTACT_TOLERANCE = 0.01


@dataclass(frozen=True, kw_only=True)
class BaseSettings(Settings):
    """How the base is located."""

    source: str = setting(
        'imu', 'Source of the pose of base_link: imu (orientation from the IMU, position from the '
        'soles in contact), filter (gyroscope, accelerometer and foot wrenches), odometry (topic '
        'odom), tf, or fixed (parameter fixed_base)', options=BASE_SOURCES, read_only=True)
    timeout: float = setting(
        0.1, 'Largest difference between the stamps of joint_states and of IMU, odometry or TF',
        's', 0.0001, 60.0)
    fixed_base: tuple[float, ...] = setting(
        (0.0,) * 6, 'Pose of base_link with base_source fixed: x, y, z (m), roll, pitch, yaw '
        '(rad)', read_only=True, name='fixed_base')
    base_filter: FilterSettings = settings(FilterSettings, 'filter_{}')


@dataclass(slots=True, eq=False)
class LocatedState:
    """
    The robot at one instant, with its base in the world.

    Attributes
    ----------
    stamp_ns
        Time of the joint positions, ns.
    state
        The robot.
    stance
        Its soles and their contacts.
    contacts_measured
        Whether the contacts were measured, not assumed from the heights of the soles.
    find_twist
        Computes :attr:`twist`; None once that is known.
    wrenches
        Environment on each foot in its sole frame, F times six numbers, N and N m; None if not
        measured.
    wrench_covariance
        Of all wrenches of the feet, foot by foot, (6 F, 6 F); None if not known, as with sensors.
    hand_wrenches
        Environment on each hand that has a wrench topic, in the hand's frame; None while its
        sensor is silent.
    hand_covariance
        Of the forces on all virtual hands along the axes of their frames, hand by hand,
        (3 V, 3 V); None if not known.
    restarted
        Whether the position does not continue that of the instant before.
    filtered
        The base with its uncertainty, of the source ``filter``; None of the others.

    """

    stamp_ns: int
    state: RobotState
    stance: Stance
    contacts_measured: bool
    find_twist: Callable[[RobotState], Twist | None] | None
    wrenches: Sequence[Sequence[float]] | None = None
    wrench_covariance: Array | None = None
    hand_wrenches: Sequence[Sequence[float] | None] = ()
    hand_covariance: Array | None = None
    restarted: bool = False
    filtered: FilteredBase | None = None
    _twist: Twist | None = field(default=None, init=False)

    @property
    def twist(self) -> Twist | None:
        """Twist of the base, computed at the first access; None if unknown."""
        if self.find_twist is not None:
            self._twist, self.find_twist = self.find_twist(self.state), None
        return self._twist


class BaseSource:
    """
    Base class of the sources.

    Attributes
    ----------
    problem
        Why the last :meth:`locate` returned None; '' if it did not.

    """

    #: What a sample of the source is called in messages; '' if it needs none.
    sample_name = ''
    #: Whether the source takes each sample with its own stamp, not only one per instant.
    takes_all_samples = False
    #: Whether :meth:`can_locate` may become true while the robot waits.
    may_wait = False

    def __init__(self, model: RobotModel, settings: BaseSettings) -> None:
        self._lowest_soles = LowestSoles(_CONTACT_TOLERANCE)
        self._timeout_ns = nanoseconds(settings.timeout)
        self._pose_link_base = Pose.from_rpy(model.config.base_rpy, np.zeros(3))
        self._stamp_ns: int | None = None
        self.problem = ''

    def configure(self, settings: BaseSettings) -> None:
        """Use other tolerances, timeout and noise; the base stays where it is."""
        self._lowest_soles.tolerance = _CONTACT_TOLERANCE
        self._timeout_ns = nanoseconds(settings.timeout)

    @property
    def is_held(self) -> bool:
        """Whether the position is held because no sole is in contact."""
        return False

    @property
    def warning(self) -> str:
        """Return what makes the base doubtful, with cause and remedy; '' if nothing does."""
        return ''

    @property
    def figures(self) -> dict[str, float]:
        """Return what a user may want to know of the estimate, with units, by name."""
        return {}

    def set_sample(self, stamp_ns: int, *sample: Array) -> None:
        """Take the latest sample of the source; its arrays are kept."""

    def add_odometry(self, stamp_ns: int, position: Array, quaternion: Array) -> None:
        """Take base_link in a level frame of odometry from elsewhere: (3,), m, and xyzw (4,)."""

    def locate(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...] | None,
               wrenches: Sequence[Sequence[float]] | None = None,
               loads: Sequence[float] | None = None) -> LocatedState | None:
        """
        Return the state with its base in the world.

        Parameters
        ----------
        stamp_ns
            Time of the state, ns.
        state
            The robot state, in the frame of its base.
        in_contact
            Measured contacts; None: the lowest soles are assumed to be in contact.
        wrenches
            Environment on each foot in its sole frame, N and N m, where they are measured.
        loads
            Normal force on each foot, N, where it is measured.

        Returns
        -------
        LocatedState or None
            None if the base is unknown (:attr:`problem`).

        """
        raise NotImplementedError

    def revise(self, since_ns: int, contacts_at: Callable[[int], tuple[bool, ...] | None]) -> None:
        """Take into account contacts that arrived late; see :meth:`LegOdometry.revise`."""

    def reset(self) -> None:
        """Start over after the clock was set back."""

    def can_locate(self, stamp_ns: int) -> bool:
        """Return whether waiting cannot help to locate the robot at a time, ns."""
        return True

    def _place(self, stamp_ns: int, state: RobotState, base: Pose,
               in_contact: tuple[bool, ...] | None,
               find_twist: Callable[[RobotState], Twist | None] | None = None) -> LocatedState:
        """Put the base where it is known to be, wherever the soles are."""
        self.problem = ''
        located = state.in_world(base)
        soles = located.soles_in_world
        contacts = self._lowest_soles.update(soles) if in_contact is None else in_contact
        return LocatedState(
            stamp_ns, located, Stance(soles, contacts), in_contact is not None,
            find_twist or (lambda state: twist_from_stance(state, contacts)))

    def _check_age(self, stamp_ns: int, sample_ns: int | None) -> bool:
        """Return whether a sample is near enough in time to the joint positions."""
        if sample_ns is None:
            self.problem = f'nothing received yet from {self.sample_name}'
            return False
        difference_ns = age_of(sample_ns, stamp_ns)
        if difference_ns <= self._timeout_ns:
            return True
        self.problem = (
            f'the stamps of joint_states and {self.sample_name} differ by '
            f'{1e-9 * difference_ns:.3f} s (base_timeout {1e-9 * self._timeout_ns:g} s): check '
            f'that {self.sample_name} still publishes, and that both drivers use the same clock')
        return False


class ImuBase(BaseSource):
    """
    Orientation from the IMU, position by leg odometry.

    Leg odometry does not know where a robot rolls that lies on the ground: when it is upright
    again, with all feet in contact, it starts at the origin.
    """

    sample_name = 'the IMU'

    def __init__(self, model: RobotModel, settings: BaseSettings) -> None:
        super().__init__(model, settings)
        self._odometry = LegOdometry(model, model.config.imu.frame, self._lowest_soles)
        self._quaternion, self._gyro = np.zeros(4), np.zeros(3)
        self._is_lying = False

    @property
    def is_held(self) -> bool:
        """Whether the position is held because no sole is in contact."""
        return self._odometry.is_airborne

    def set_sample(self, stamp_ns: int, *sample: Array) -> None:
        """Take orientation xyzw (4,) and angular velocity (3,), rad/s."""
        self._stamp_ns = stamp_ns
        self._quaternion, self._gyro = sample

    def locate(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...] | None,
               wrenches: Sequence[Sequence[float]] | None = None,
               loads: Sequence[float] | None = None) -> LocatedState | None:
        """Locate by the orientation, propagated by the gyroscope to the time of the state."""
        if not self._check_age(stamp_ns, self._stamp_ns):
            return None
        assert self._stamp_ns is not None
        self.problem = ''
        quaternion, ahead_ns = self._quaternion, stamp_ns - self._stamp_ns
        if ahead_ns:
            quaternion = turned(quaternion, self._gyro, 1e-9 * ahead_ns)
        R_world_imu = rotation_from_quaternion(quaternion)
        odometry = self._odometry
        base = odometry.update(state, R_world_imu, in_contact, stamp_ns, loads)
        restarted = self._stood_up(base.rotation.item(2, 2))
        if restarted:
            odometry.reset()
            base = odometry.update(state, R_world_imu, in_contact, stamp_ns, loads)
        gyro, weights = self._gyro, odometry.weights
        return LocatedState(
            stamp_ns, state.in_world(base, odometry.sole_placements), odometry.stance,
            in_contact is not None, lambda state: odometry.twist(state, gyro, weights),
            restarted=restarted)

    def _stood_up(self, upward: float) -> bool:
        """Return whether a robot that lay on the ground is upright again, on all feet."""
        self._is_lying = self._is_lying or upward < _LYING
        if self._is_lying and upward > _UPRIGHT and all(self._odometry.stance.in_contact):
            self._is_lying = False
            return True
        return False

    def revise(self, since_ns: int, contacts_at: Callable[[int], tuple[bool, ...] | None]) -> None:
        """Take into account contacts that arrived late."""
        self._odometry.revise(since_ns, contacts_at)

    def reset(self) -> None:
        """Start at the origin again."""
        self._odometry.reset()
        self._is_lying = False


class FilterBase(BaseSource):
    """Pose and twist by the invariant filter; see `base_filter`."""

    sample_name = 'the IMU'
    takes_all_samples = True

    def __init__(self, model: RobotModel, settings: BaseSettings) -> None:
        super().__init__(model, settings)
        self._filter = BaseFilter(model, settings.base_filter)
        self._is_held = False

    def configure(self, settings: BaseSettings) -> None:
        """Use other tolerances, timeout and noise; the estimate is kept."""
        super().configure(settings)
        self._filter.configure(settings.base_filter)

    @property
    def is_held(self) -> bool:
        """Whether the position is held, after a long time without contacts."""
        return self._is_held

    @property
    def estimate(self) -> BaseFilter:
        """Return what estimates."""
        return self._filter

    @property
    def warning(self) -> str:
        """Return that IMU, legs and contacts contradict each other; '' if they do not."""
        return self._filter.warning

    @property
    def figures(self) -> dict[str, float]:
        """Return slides, consistency, noise of the legs, and biases of the IMU."""
        return self._filter.figures

    def set_sample(self, stamp_ns: int, *sample: Array) -> None:
        """Take orientation xyzw (4,), angular velocity (3,) and proper acceleration (3,)."""
        self._stamp_ns = stamp_ns
        self._filter.add_reading(stamp_ns, *sample)

    def add_odometry(self, stamp_ns: int, position: Array, quaternion: Array) -> None:
        """Use it in the filter."""
        self._filter.external.add(
            stamp_ns, Pose.from_quaternion(quaternion, position) @ self._pose_link_base)

    def locate(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...] | None,
               wrenches: Sequence[Sequence[float]] | None = None,
               loads: Sequence[float] | None = None) -> LocatedState | None:
        """Locate by the filter, which is propagated to the time of the state."""
        if not self._check_age(stamp_ns, self._stamp_ns):
            return None
        self.problem = ''
        contacts = in_contact
        if contacts is None:
            contacts = self._lowest_soles.update(self._filter.soles_from_imu(state))
        found = self._filter
        if not found.is_started:
            self.problem = found.starting_problem(state, contacts) if any(contacts) else (
                'waiting for the first contact of a foot')
            if self.problem:
                return None
        base = found.update(stamp_ns, state, contacts, wrenches)
        if found.imu_problem:
            self.problem = found.imu_problem
            return None
        self._is_held = base.restarted and not any(contacts)
        return LocatedState(
            stamp_ns, state.in_world(base.pose, found.sole_placements), found.stance,
            in_contact is not None, lambda state: found.twist(state, base),
            restarted=base.restarted, filtered=base)

    def reset(self) -> None:
        """Start at the origin again; what is known of the IMU's biases stays."""
        self._filter.reset()


class OdometryBase(BaseSource):
    """Pose and twist from odometry messages."""

    sample_name = 'the odometry'

    def set_sample(self, stamp_ns: int, *sample: Array) -> None:
        """Take position (3,), quaternion (4,) and twist (6,) of base_link, along its axes."""
        self._stamp_ns = stamp_ns
        self._position, self._quaternion, twist = sample
        self._twist = twist.reshape(2, 3)

    def locate(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...] | None,
               wrenches: Sequence[Sequence[float]] | None = None,
               loads: Sequence[float] | None = None) -> LocatedState | None:
        """Locate by the odometry, propagated by its twist to the time of the state."""
        if not self._check_age(stamp_ns, self._stamp_ns):
            return None
        assert self._stamp_ns is not None
        dt, (linear, angular) = 1e-9 * (stamp_ns - self._stamp_ns), self._twist
        rotation = rotation_from_quaternion(turned(self._quaternion, angular, dt))
        link = Pose(rotation, self._position + rotation.dot(linear) * dt)
        twist = Twist(*self._twist.dot(self._pose_link_base.rotation))
        return self._place(stamp_ns, state, link @ self._pose_link_base, in_contact,
                           lambda _: twist)


class TransformBase(BaseSource):
    """
    Pose from a transform world frame -> base_link, which may arrive later than joint positions.

    Parameters
    ----------
    model, settings
        See :class:`BaseSource`.
    lookup
        Returns the pose of base_link at a time.

    """

    may_wait = True

    def __init__(self, model: RobotModel, settings: BaseSettings, lookup: Lookup) -> None:
        super().__init__(model, settings)
        self._lookup, self._error = lookup, ''
        self._found: tuple[int, Pose] | None = None

    def can_locate(self, stamp_ns: int) -> bool:
        """Return whether the transform at a time, ns, is known."""
        try:
            self._found = stamp_ns, self._lookup(stamp_ns)
        except InputError as error:
            self._found, self._error = None, str(error)
        return self._found is not None

    def locate(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...] | None,
               wrenches: Sequence[Sequence[float]] | None = None,
               loads: Sequence[float] | None = None) -> LocatedState | None:
        """Locate by the transform at this time."""
        if self._found is None or self._found[0] != stamp_ns:
            self.can_locate(stamp_ns)
        if self._found is None:
            self.problem = self._error
            return None
        return self._place(stamp_ns, state, self._found[1] @ self._pose_link_base, in_contact)

    def reset(self) -> None:
        """Start over after the clock was set back."""
        self._found = None


class FixedBase(BaseSource):
    """A base that does not move."""

    def __init__(self, model: RobotModel, settings: BaseSettings) -> None:
        super().__init__(model, settings)
        if len(settings.fixed_base) != 6:
            raise ConfigurationError(
                f"parameter 'fixed_base': {list(settings.fixed_base)} must be six numbers: x, y, "
                'z (m), roll, pitch, yaw (rad)')
        values = np.array(settings.fixed_base)
        self._base = Pose.from_rpy(values[3:], values[:3]) @ self._pose_link_base
        self._at_rest = Twist(np.zeros(3), np.zeros(3))

    def locate(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...] | None,
               wrenches: Sequence[Sequence[float]] | None = None,
               loads: Sequence[float] | None = None) -> LocatedState | None:
        """Locate by the setting."""
        return self._place(stamp_ns, state, self._base, in_contact, lambda _: self._at_rest)


def make_base(model: RobotModel, settings: BaseSettings, lookup: Lookup | None = None,
              ) -> BaseSource:
    """
    Return the estimator for ``settings.source``.

    Parameters
    ----------
    model
        The robot.
    settings
        How the base is located.
    lookup
        For the source ``tf``; see :class:`TransformBase`.

    Raises
    ------
    ConfigurationError
        If the source lacks something: an IMU in the robot's YAML, a lookup.

    """
    if settings.source == 'tf':
        if lookup is None:
            raise ConfigurationError("base_source 'tf' needs a lookup of transforms")
        return TransformBase(model, settings, lookup)
    return {'imu': ImuBase, 'filter': FilterBase, 'odometry': OdometryBase,
            'fixed': FixedBase}[settings.source](model, settings)
