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
Where the base of the robot is in the world, from one of four sources.

======== ==================================== =================================================
name     pose                                 velocity
======== ==================================== =================================================
imu      orientation from the IMU, position   gyroscope and joint velocities above the
         from the soles that stand            soles that stand
odometry ``odom`` (nav_msgs/Odometry)         the twist of the same message
tf       world frame -> base_link, latest     joint velocities above the soles that stand
fixed    a parameter                          zero
======== ==================================== =================================================

Which soles stand is told by ``wrench_aggregator/contacts``, at the stamps of the readings, or by
topics without stamps (the parameter ``contact_topics``); else the lowest ones are assumed to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
import time
from typing import Any, Protocol

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_from_quaternion, turned
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.leg_odometry import (
    ContactGuess, Stance, StanceBase, Twist, twist_from_stance)
from biped_com_ros.ros.topics.inputs import (
    BoolInput, ImuInput, Input, JointStateInput, OdometryInput)
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from biped_com_ros.ros.topics.tf import TransformLookup
import numpy as np

#: Upward share of the base's z axis below which it lies, and above which it stands again.
_LYING, _UPRIGHT = 0.5, 0.87
#: So many changes of contact are remembered.
_CHANGES = 16


class LocationParameters(Protocol):
    """The parameters that a base source itself reads."""

    @property
    def base_source(self) -> str:
        """One of ``common_parameters.BASE_SOURCES``."""

    @property
    def world_frame(self) -> str:
        """Frame in which the base is."""

    @property
    def base_timeout(self) -> float:
        """Largest difference between the stamps of the joints and of the base, s."""

    @property
    def contact_tolerance(self) -> float:
        """Height within which the lowest soles are assumed to stand, m."""

    @property
    def fixed_base(self) -> list[float]:
        """Pose of base_link for ``fixed``: x, y, z, roll, pitch, yaw."""


class BaseParameters(LocationParameters, Protocol):
    """Those, and where contacts are told."""

    @property
    def contact_topics(self) -> list[str]:
        """One per foot, in the order of the configuration; empty for the stamped topic."""

    @property
    def contact_timeout(self) -> float:
        """Silence after which a contact is unknown, s."""


class Contacts:
    """
    Which feet stand, as other nodes tell.

    What has a stamp holds from that time on, however early or late it comes.

    Attributes
    ----------
    inputs
        Empty if nobody is expected to tell.
    revised_ns
        Since when (ns) other feet stood than :meth:`told` said before, if it was told late; to
        be set to None by who takes that into account.

    """

    revised_ns: int | None = None

    def __init__(self, node: Any, model: RobotModel, params: BaseParameters,
                 **options: Any) -> None:
        self._until_ns, self._until = 0, 0.0
        self._timeout = params.contact_timeout
        #: What was told last, each since a time (ns).
        self._told: deque[tuple[int, tuple[bool, ...]]] = deque(maxlen=_CHANGES)
        options.update(required=False, timeout=params.contact_timeout)
        self.inputs: list[Input] = []
        if params.contact_topics:
            self._take_bools(node, model, params, options)
        elif all(foot.wrench_sensors for foot in model.config.feet.values()):
            self.inputs.append(JointStateInput(
                node, tuple(model.config.feet), self._on_contacts, 'wrench_aggregator/contacts',
                qos=COMMAND_INPUT, **options))

    def _take_bools(self, node: Any, model: RobotModel, params: BaseParameters,
                    options: dict[str, Any]) -> None:
        feet, topics = tuple(model.config.feet), list(params.contact_topics)
        if len(topics) != len(feet):
            raise ConfigurationError(
                f"parameter 'contact_topics': {topics} must be {len(feet)} topics, one per foot, "
                f'in the order {", ".join(feet)}; or empty')
        self._values: list[bool | None] = [None] * len(feet)
        self._arrivals = [(0, 0.0)] * len(feet)
        self.inputs += [BoolInput(node, topic, partial(self._on_bool, i), **options)
                        for i, topic in enumerate(topics)]

    def clock_was_reset(self) -> None:
        """Forget by which time of the old clock what was told will be too old."""
        if self._told:
            latest = self._told[-1][1]
            self._told.clear()
            self._told.append((0, latest))
        self._until_ns, self.revised_ns = 0, None

    def told(self, now_ns: int) -> tuple[bool, ...] | None:
        """Return which feet stand, or None if nobody has told of each of them recently."""
        # By either clock: simulated time may stand still, recorded stamps may be old.
        if not self._told or (now_ns > self._until_ns and time.monotonic() > self._until):
            return None
        for since_ns, in_contact in reversed(self._told):
            if now_ns >= since_ns:
                return in_contact
        return self._told[0][1]

    def _on_contacts(self, stamp_ns: int, values: Array, *_: Array) -> None:
        in_contact = tuple([value > 0.5 for value in values.tolist()])
        if self._told and stamp_ns < self._told[-1][0]:
            self._told.clear()  # the clock was set anew
        if not self._told or in_contact != self._told[-1][1]:
            self._told.append((stamp_ns, in_contact))
            self.revised_ns = min(stamp_ns, self.revised_ns or stamp_ns)
        self._holds_until(stamp_ns, time.monotonic())

    def _on_bool(self, foot: int, stamp_ns: int, value: bool) -> None:
        self._values[foot] = value
        self._arrivals[foot] = stamp_ns, time.monotonic()
        if None not in self._values:
            self._told.clear()
            self._told.append((0, tuple(map(bool, self._values))))
            self._holds_until(*map(min, zip(*self._arrivals)))

    def _holds_until(self, ns: int, monotonic: float) -> None:
        self._until_ns = ns + nanoseconds(self._timeout)
        self._until = monotonic + self._timeout


class BaseSource:
    """
    What all sources share: contacts, the stance, and what is missing.

    Attributes
    ----------
    inputs
        What has to arrive, by what to call it.
    problem
        Why the last :meth:`locate` returned None; '' if it did not.
    has_stood_up
        Whether at the last :meth:`locate` a robot that had lain began anew, at the origin.

    """

    name = ''
    has_stood_up = False

    def __init__(self, model: RobotModel, params: LocationParameters, contacts: Contacts) -> None:
        count = len(model.soles.names)
        self.inputs: dict[str, Input] = {}
        self._stance: Stance | None = Stance(np.zeros((count, 3)), (False,) * count)
        self._located: tuple[RobotState, int] | None = None
        self._contacts_told = False
        self.problem = ''
        self.is_held = False
        self.contacts = contacts
        self._guess = ContactGuess(params.contact_tolerance)
        self._timeout_ns = nanoseconds(params.base_timeout)
        self._pose_link_base = Pose.from_rpy(model.config.base_rpy, np.zeros(3))

    @property
    def stance(self) -> Stance:
        """Return the soles after the last :meth:`locate`; found when first asked for."""
        if self._stance is None:
            assert self._located is not None
            self._stance = self._stand(*self._located)
        return self._stance

    @property
    def contacts_told(self) -> bool:
        """Whether the contacts of `stance` were told by topics, not assumed."""
        _ = self.stance  # found together with it
        return self._contacts_told

    def locate(self, state: RobotState, stamp_ns: int) -> RobotState | None:
        """Return the state with its base in the world, or None if that is unknown (`problem`)."""
        raise NotImplementedError

    def twist(self, state: RobotState) -> Twist | None:
        """Return how the base moves at the last instant located, if that is known."""
        raise NotImplementedError

    def continue_from(self, other: BaseSource) -> None:
        """Start where another source of the same kind has the base."""

    def reset(self) -> None:
        """Start over after the clock was set anew."""
        self.contacts.clock_was_reset()

    def _place(self, state: RobotState, base: Pose, stamp_ns: int) -> RobotState:
        """Put the base where it is known to be, whatever the soles do."""
        located = state.in_world(base)
        self._located, self._stance, self.problem = (located, stamp_ns), None, ''
        return located

    def _stand(self, state: RobotState, stamp_ns: int) -> Stance:
        """Find which soles stand, given the base."""
        soles = state.soles_in_world
        told = self.contacts.told(stamp_ns)
        self._contacts_told = told is not None
        return self._guess.stance(soles) if told is None else Stance(soles, told)

    def _is_late(self, late_ns: int, what: str) -> bool:
        if -self._timeout_ns <= late_ns <= self._timeout_ns:
            return False
        silent = [source for source in self.inputs.values() if source.stamp_ns is None]
        self.problem = silent[0].report()[1] if silent else (
            f'the stamps of joint_states and {what} are {abs(late_ns) / SECOND_NS:.3f} s apart '
            f'(base_timeout {self._timeout_ns / SECOND_NS:g} s): check that it publishes, and its '
            'clock')
        return True


class ImuBase(BaseSource):
    """
    Orientation from the IMU, position from the soles that stand.

    Soles do not tell where a robot rolls to that lies: once it stands again, on all feet, it
    begins at the origin.
    """

    name = 'imu'

    def __init__(self, node: Any, model: RobotModel, params: LocationParameters,
                 contacts: Contacts, **options: Any) -> None:
        super().__init__(model, params, contacts)
        imu = model.config.imu
        self._estimator = StanceBase(model, imu.frame, self._guess)
        self._quaternion, self._gyro, self._ns = np.zeros(4), np.zeros(3), -SECOND_NS * 1000
        self._lies = False
        self._input = ImuInput(node, imu.topic, imu.frame, self._on_imu, **options)
        self.inputs = {'orientation': self._input}

    def locate(self, state: RobotState, stamp_ns: int) -> RobotState | None:
        """Locate by the orientation, carried on by the gyroscope to the stamp."""
        late_ns = stamp_ns - self._ns
        if late_ns and self._is_late(late_ns, 'the IMU'):
            return None
        told = self.contacts.told(stamp_ns)
        self._contacts_told = told is not None
        self.problem = ''
        estimator, quaternion, contacts = self._estimator, self._quaternion, self.contacts
        if contacts.revised_ns is not None:
            estimator.revise(contacts.revised_ns, contacts.told)
            contacts.revised_ns = None
        if late_ns:
            quaternion = turned(quaternion, self._gyro, late_ns / SECOND_NS)
        R_world_imu = rotation_from_quaternion(quaternion)
        # What nobody tells is never revised.
        base = estimator.update(
            state, R_world_imu, told, stamp_ns if contacts.inputs else None)
        upward = base.rotation.item(8)
        if upward < _LYING:
            self._lies = True
        # On all feet: the origin is between those that stand, and for every node at one place.
        self.has_stood_up = (
            self._lies and upward > _UPRIGHT and all(estimator.stance.in_contact))
        if self.has_stood_up:
            self._lies = False
            estimator.reset()
            base = estimator.update(state, R_world_imu, told, stamp_ns)
        self._stance, self.is_held = estimator.stance, estimator.is_held
        return state.in_world(base, estimator.sole_placements)

    def twist(self, state: RobotState) -> Twist | None:
        """Return the twist from gyroscope and joints; None while no sole stands."""
        return self._estimator.twist(state, self._gyro)

    def continue_from(self, other: BaseSource) -> None:
        """Start where another source has the base, not at the origin."""
        if isinstance(other, ImuBase):
            self._estimator.continue_from(other._estimator)

    def reset(self) -> None:
        """Start at the origin again."""
        super().reset()
        self._estimator.reset()
        self._lies = False

    def _on_imu(self, stamp_ns: int, quaternion: Array, gyro: Array, _: Array) -> None:
        self._quaternion[:], self._gyro[:], self._ns = quaternion, gyro, stamp_ns


class OdometryBase(BaseSource):
    """Pose and twist from ``nav_msgs/Odometry``."""

    name = 'odometry'

    def __init__(self, node: Any, model: RobotModel, params: LocationParameters,
                 contacts: Contacts, **options: Any) -> None:
        super().__init__(model, params, contacts)
        self._position, self._quaternion = np.zeros(3), np.zeros(4)
        self._twist, self._ns = np.zeros((2, 3)), -SECOND_NS * 1000
        self._input = OdometryInput(node, 'odom', self._on_odometry, params.world_frame,
                                    model.config.base_link, **options)
        self.inputs = {'odometry': self._input}

    def locate(self, state: RobotState, stamp_ns: int) -> RobotState | None:
        """Locate by the odometry, carried on by its twist to the stamp."""
        late_ns = stamp_ns - self._ns
        if self._is_late(late_ns, 'the odometry'):
            return None
        dt = late_ns / SECOND_NS
        linear, angular = self._twist
        rotation = rotation_from_quaternion(turned(self._quaternion, angular, dt))
        link = Pose(rotation, self._position + rotation.dot(linear) * dt)
        return self._place(state, link @ self._pose_link_base, stamp_ns)

    def twist(self, state: RobotState) -> Twist | None:
        """Return the message's twist along the axes of the base."""
        return Twist(*self._twist.dot(self._pose_link_base.rotation))

    def _on_odometry(self, stamp_ns: int, position: Array, quaternion: Array,
                     twist: Array) -> None:
        self._position[:], self._quaternion[:] = position, quaternion
        self._twist[:], self._ns = twist.reshape(2, 3), stamp_ns


class TfBase(BaseSource):
    """Pose from the latest transform world frame -> base_link."""

    name = 'tf'

    def __init__(self, node: Any, model: RobotModel, params: LocationParameters,
                 contacts: Contacts) -> None:
        super().__init__(model, params, contacts)
        self._lookup = TransformLookup(node)
        self._frames = params.world_frame, model.config.base_link

    def locate(self, state: RobotState, stamp_ns: int) -> RobotState | None:
        """Locate by the latest transform, if it is not too old."""
        try:
            link, at_ns = self._lookup.latest(*self._frames)
        except InputError as error:
            self.problem = str(error)
            return None
        if self._is_late(stamp_ns - at_ns, f'the transform {" -> ".join(self._frames)}'):
            return None
        return self._place(state, link @ self._pose_link_base, stamp_ns)

    def twist(self, state: RobotState) -> Twist | None:
        """Return the twist that keeps the standing soles at rest; None if none stands."""
        return twist_from_stance(state, self.stance.in_contact)


class FixedBase(BaseSource):
    """A base that does not move."""

    name = 'fixed'

    def __init__(self, model: RobotModel, params: LocationParameters, contacts: Contacts) -> None:
        super().__init__(model, params, contacts)
        if len(params.fixed_base) != 6:
            raise ConfigurationError(
                f"parameter 'fixed_base': {params.fixed_base} must be six numbers: x, y, z (m), "
                'roll, pitch, yaw (rad)')
        values = np.array(params.fixed_base)
        self._base = Pose.from_rpy(values[3:], values[:3]) @ self._pose_link_base
        self._at_rest = Twist(np.zeros(3), np.zeros(3))

    def locate(self, state: RobotState, stamp_ns: int) -> RobotState | None:
        """Locate by the parameter."""
        return self._place(state, self._base, stamp_ns)

    def twist(self, state: RobotState) -> Twist | None:
        """Return zeros."""
        return self._at_rest


def make_base_source(node: Any, model: RobotModel, params: BaseParameters,
                     **options: Any) -> BaseSource:
    """
    Return the source that the parameter `base_source` names, subscribed to what it needs.

    Parameters
    ----------
    node
        The rclpy node.
    model
        The robot.
    params
        The node's parameters.
    options
        For the inputs; see `inputs.Input`.

    Raises
    ------
    ConfigurationError
        If the source lacks something: an IMU in the robot's YAML, tf2_ros.

    """
    contacts = Contacts(node, model, params, **options)
    if params.base_source == 'imu':
        return ImuBase(node, model, params, contacts, **options)
    if params.base_source == 'odometry':
        return OdometryBase(node, model, params, contacts, **options)
    if params.base_source == 'tf':
        return TfBase(node, model, params, contacts)
    return FixedBase(model, params, contacts)


def describe_contacts(feet: Sequence[str], in_contact: Sequence[bool]) -> str:
    """Return the names of the standing feet in words."""
    return ', '.join(foot for foot, stands in zip(feet, in_contact) if stands) or 'no foot'
