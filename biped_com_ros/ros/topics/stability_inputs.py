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
Joint states, base and foot wrenches of one instant, brought together by their stamps.

There is an instant for every message of joint states. What comes out depends on the messages and
their stamps only, not on the order in which the topics happen to arrive: a recording that is
played again gives the same to the last bit. For that an instant waits until no message of another
topic can be nearer: where all stamp alike, until the last one is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import largest_credible_load, wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.signals.synchronizer import ReferenceSynchronizer
from biped_com_ros.core.state.leg_odometry import Twist
from biped_com_ros.ros.topics.base_sources import (
    BaseSource, Contacts, FixedBase, ImuBase, LocationParameters, OdometryBase, TfBase)
from biped_com_ros.ros.topics.inputs import Input, JointStateInput, WrenchInput

#: How far the stamp of a wrench may be from that of the joint states, ns.
_WRENCH_TOLERANCE = 20_000_000

#: Of all feet in their sole frames, six plain numbers each.
Wrenches = Sequence[Sequence[float]]

#: Called with stamp, state in the world, twist of the base, foot wrenches.
Callback = Callable[[int, RobotState, Twist | None, Wrenches | None], None]

#: Called with the time (ns) and arrays of a message of the base.
Collect = Callable[..., None]


class StabilityParameters(LocationParameters, Protocol):
    """The parameters that are read here."""

    @property
    def wrench_topics(self) -> list[str]:
        """One per foot, in the order of the configuration; empty for the default names."""


class FeltContacts(Contacts):
    """Which feet stand, by the wrenches of the same instant."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.in_contact: tuple[bool, ...] | None = None

    def told(self, now_ns: int) -> tuple[bool, ...] | None:
        """Return what was felt; None where feet feel nothing."""
        return self.in_contact

    def clock_was_reset(self) -> None:
        """Nothing here is tied to a clock."""


class _TimedImuBase(ImuBase):
    """An IMU whose readings are collected first and loaded when their instant is complete."""

    def __init__(self, collect: Collect, *arguments: Any, **options: Any) -> None:
        self._collect = collect
        super().__init__(*arguments, **options)

    def _on_imu(self, stamp_ns: int, quaternion: Array, gyro: Array, _: Array) -> None:
        self._collect(stamp_ns, quaternion.copy(), gyro.copy())

    def load(self, ns: int, quaternion: Array, gyro: Array) -> None:
        """Use a reading."""
        self._ns, self._quaternion, self._gyro = ns, quaternion, gyro


class _TimedOdometryBase(OdometryBase):
    """Odometry that is collected first and loaded when its instant is complete."""

    def __init__(self, collect: Collect, *arguments: Any, **options: Any) -> None:
        self._collect = collect
        super().__init__(*arguments, **options)

    def _on_odometry(self, stamp_ns: int, position: Array, quaternion: Array,
                     twist: Array) -> None:
        self._collect(stamp_ns, position.copy(), quaternion.copy(), twist.copy())

    def load(self, ns: int, position: Array, quaternion: Array, twist: Array) -> None:
        """Use a message."""
        self._ns, self._position, self._quaternion = ns, position, quaternion
        self._twist = twist.reshape(2, 3)


class SoleWrench:
    """
    Wrenches on a foot in its sole frame, from whatever frame of that foot they come.

    Parameters
    ----------
    model
        The robot.
    foot
        Which of its soles.

    """

    def __init__(self, model: RobotModel, foot: int) -> None:
        self._model, self._foot = model, foot
        self.sole_frame = model.config.sole_frame(model.soles.names[foot])
        #: None for the sole frame itself.
        self._to_sole: dict[str, Array | None] = {self.sole_frame: None}

    def move(self, wrench: Array, frame: str) -> list[float]:
        """
        Return a wrench (6,) of a frame in the sole frame, in plain numbers.

        Raises
        ------
        UnknownNameError
            If the robot has no such frame.
        ConfigurationError
            If the frame is not fixed to the sole.

        """
        if frame not in self._to_sole:
            self._to_sole[frame] = self._adjoint(frame)
        to_sole = self._to_sole[frame]
        moved: list[float] = (wrench if to_sole is None else to_sole.dot(wrench)).tolist()
        return moved

    def _adjoint(self, frame: str) -> Array:
        model, soles = self._model, self._model.soles
        if frame not in model.frame_names:
            raise UnknownNameError('frame', frame, (self.sole_frame, *model.frame_names),
                                   f"the wrench of foot '{soles.names[self._foot]}'")
        frames = model.frames((frame,))
        if frames.joints[0] != soles.joints[self._foot]:
            raise ConfigurationError(
                f"the wrench of foot '{soles.names[self._foot]}' is in frame '{frame}', which "
                f"is not fixed to its sole '{self.sole_frame}': set wrench_topics to a topic "
                'whose frame moves with the sole')
        pose = soles.poses_in_joint()[self._foot].inverse() @ frames.poses_in_joint()[0]
        return wrench_adjoint(pose.rotation, pose.position)


class StabilityInputs:
    """
    Subscribes to all that stability is judged by.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, the node's parameters.
    feel
        Tells which feet stand at a time (ns) by their wrenches.
    callback
        Called once per instant.
    on_reset
        Called before the first instant after the clock was set back.
    continue_from
        Another source of the base, from whose position to go on at the first instant.
    needs_wrenches
        Whether nothing comes without wrenches; else they are None while a sensor is silent.
    options
        For the inputs; see `inputs.Input`.

    Attributes
    ----------
    inputs
        By what to call them.
    base
        Where the base is known from.

    """

    def __init__(self, node: Any, model: RobotModel, params: StabilityParameters,
                 feel: Callable[[int, Wrenches], tuple[bool, ...]], callback: Callback,
                 on_reset: Callable[[], None], *,
                 continue_from: BaseSource | None = None, needs_wrenches: bool = True,
                 **options: Any) -> None:
        self._model, self._feel = model, feel
        self._callback, self._on_reset = callback, on_reset
        self._predecessor = continue_from
        self.contacts = FeltContacts()
        topics = _wrench_topics(model, params)
        self._is_timed = params.base_source in ('imu', 'odometry')
        self._first_foot = 1 + self._is_timed
        self._instants = ReferenceSynchronizer(
            [nanoseconds(params.base_timeout)] * self._is_timed
            + [_WRENCH_TOLERANCE] * len(topics),
            [False] * self._is_timed + [not needs_wrenches] * len(topics))
        self._last_ns = 0
        self.base = self._make_base(node, params, options)
        self.joints = JointStateInput(node, model.joint_names, self._on_joints,
                                      limits=model.credible_positions, **options)
        self.soles = [SoleWrench(model, foot) for foot in range(len(topics))]
        self.wrenches: list[WrenchInput] = []
        for foot, topic in enumerate(topics):
            self.wrenches.append(WrenchInput(
                node, topic, '', partial(self._on_wrench, foot),
                **{**options, 'largest': largest_credible_load(model.mass),
                   'required': needs_wrenches}))
        feet = model.soles.names
        self.inputs: dict[str, Input] = {
            'joint states': self.joints, **self.base.inputs,
            **{f'wrench of the {foot} foot': source
               for foot, source in zip(feet, self.wrenches)}}

    @property
    def feels(self) -> bool:
        """Whether the feet feel the ground."""
        return bool(self.wrenches)

    def _make_base(self, node: Any, params: StabilityParameters,
                   options: dict[str, Any]) -> BaseSource:
        model, contacts = self._model, self.contacts
        if params.base_source == 'imu':
            return _TimedImuBase(self._on_base, node, model, params, contacts, **options)
        if params.base_source == 'odometry':
            return _TimedOdometryBase(
                self._on_base, node, model, params, contacts, **options)
        if params.base_source == 'tf':
            return TfBase(node, model, params, contacts)
        return FixedBase(model, params, contacts)

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array, _: Array) -> None:
        state = self._model.state(positions, velocities)
        state.placements_in_base(self._model.stance_frames)  # kept by it, and nobody waits yet
        for samples in self._instants.add(0, stamp_ns, (stamp_ns, state)):
            self._complete(samples)

    def _on_wrench(self, foot: int, stamp_ns: int, wrench: Array) -> None:
        moved = self.soles[foot].move(wrench, self.wrenches[foot].frame)
        for samples in self._instants.add(self._first_foot + foot, stamp_ns, moved):
            self._complete(samples)

    def _on_base(self, ns: int, *values: Array) -> None:
        for samples in self._instants.add(1, ns, (ns, *values)):
            self._complete(samples)

    def _complete(self, samples: Sequence[Any]) -> None:
        """Take one sample of each source; the instant is that of the joint states."""
        stamp_ns, state = samples[0]
        if stamp_ns < self._last_ns:  # the world begins anew where the robot stands
            self.base.reset()
            self._on_reset()
        self._last_ns = stamp_ns
        if self._predecessor is not None:
            self.base.continue_from(self._predecessor)
            self._predecessor = None
        if self._is_timed:
            self.base.load(*samples[1])  # type: ignore[attr-defined]
        felt = samples[self._first_foot:]
        wrenches = None if not felt or None in felt else felt
        self.contacts.in_contact = None if wrenches is None else self._feel(stamp_ns, wrenches)
        located = self.base.locate(state, stamp_ns)
        if located is not None:
            self._callback(stamp_ns, located, self.base.twist(located), wrenches)


def _wrench_topics(model: RobotModel, params: StabilityParameters) -> Sequence[str]:
    """Return one topic per foot; none where feet have no sensors."""
    feet = model.config.feet
    if not params.wrench_topics:
        if not all(foot.wrench_sensors for foot in feet.values()):
            return ()
        return [f'wrench_aggregator/{foot}/wrench' for foot in feet]
    if len(params.wrench_topics) != len(feet):
        raise ConfigurationError(
            f"parameter 'wrench_topics': {params.wrench_topics} must be {len(feet)} topics, one "
            f'per foot, in the order {", ".join(feet)}; or empty')
    return params.wrench_topics
