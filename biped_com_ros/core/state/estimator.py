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
The state of the robot in the world, from the stamped samples of its sensors.

`StateEstimator` takes joint positions, samples of the base (IMU or odometry) and wrenches of the
feet, each with its stamp, and returns located states, in one of two ways:

* *Synchronized* (`zmp_monitor`, the fused CoM): a sample of the joints waits until no other source
  can still bring a sample nearer to its stamp. The contacts are those of the wrenches. The result
  depends on the samples and their stamps only, not on the order of their arrival: a recording that
  is played again gives the same bits.
* *Latest* (`com_estimator`, `gait_player`): each sample of the joints is located at once, by what
  has arrived from the other sources. Contacts come from a `ContactHistory`; those that arrive late
  are taken into account afterwards. The source ``filter`` needs the synchronized mode.

With the source ``tf`` instants wait, in either mode, until the transform at their time is known,
for the timeout of the base at most.

Wrenches are moved to the frame of their foot or hand, from whatever frame of it they are given in.

In the synchronized mode a sample whose stamp repeats is ignored, so that several nodes may feed
one estimator with the same messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SAME_INSTANT_NS
from biped_com_ros.core.errors import brief, ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.signals.synchronizer import MAX_AGE, Synchronizer, TIMEOUT_NS
from biped_com_ros.core.state.base import (
    BaseSettings, BaseSource, LocatedState, Lookup, make_base)
from biped_com_ros.core.state.contacts import ContactHistory
from biped_com_ros.core.wrench.contact import (
    ContactThresholds, FootContacts, probable_contacts)


def mover_to_sole(model: RobotModel, foot: int) -> WrenchMover:
    """Return what moves wrenches to the sole of a foot, by its index in ``config.feet``."""
    soles = model.soles
    name = soles.names[foot]
    return WrenchMover(model, f"foot '{name}'", 'sole', model.config.sole_frame(name),
                       int(soles.joints[foot]), soles.poses_in_joint()[foot])


def mover_to_hand(model: RobotModel, hand: str) -> WrenchMover:
    """Return what moves wrenches to the frame of a hand of the configuration."""
    frame = model.config.hands[hand].frame
    frames = model.frames((frame,))
    return WrenchMover(model, f"hand '{hand}'", 'frame', frame, int(frames.joints[0]),
                       frames.poses_in_joint()[0])


class WrenchMover:
    """
    Moves wrenches on one body to the frame of its contact.

    Parameters
    ----------
    model
        The robot.
    body, contact
        What the body and its contact's frame are called in messages.
    frame
        Name of the contact's frame, a link or the sole frame that the URDF lacks.
    joint, pose_in_joint
        The joint that moves it, and its pose in that joint.

    """

    def __init__(self, model: RobotModel, body: str, contact: str, frame: str, joint: int,
                 pose_in_joint: Pose) -> None:
        self._model, self._body, self._contact, self._frame = model, body, contact, frame
        self._joint, self._pose_in_joint = joint, pose_in_joint
        #: By frame; None for the contact's frame itself.
        self._adjoints: dict[str, Array | None] = {frame: None}

    def move(self, wrench: Array, frame: str) -> list[float]:
        """
        Return a wrench (6,) of a frame in the contact's frame, as six Python floats.

        Raises
        ------
        UnknownNameError
            If the robot has no such frame.
        ConfigurationError
            If the frame is not fixed to the body.

        """
        if frame not in self._adjoints:
            self._adjoints[frame] = self._adjoint(frame)
        X_contact_frame = self._adjoints[frame]
        return (wrench if X_contact_frame is None else X_contact_frame.dot(wrench)).tolist()

    def _adjoint(self, frame: str) -> Array:
        model = self._model
        if frame not in model.frame_names:
            known = max((name for name in model.frame_names if frame.endswith(name)), key=len,
                        default=frame)
            prefix = frame.removesuffix(known)
            raise UnknownNameError(
                'frame', frame, (self._frame, *model.frame_names), f'the wrench of {self._body}'
                + (f" (set the parameter frame_prefix to '{brief(prefix)}')" if prefix else ''))
        frames = model.frames((frame,))
        if frames.joints[0] != self._joint:
            raise ConfigurationError(
                f"the wrench of {self._body} is in frame '{frame}', which is not fixed to its "
                f"{self._contact} '{self._frame}': choose a topic (wrench_topics, "
                'hand_wrench_topics) whose frame moves with it')
        pose = self._pose_in_joint.inverse() @ frames.poses_in_joint()[0]
        return wrench_adjoint(pose.rotation, pose.position)


#: How late, by stamps, wrenches may be on a busy computer; where they are lost states wait so long
#: once.
_WAIT_NS = nanoseconds(0.5)
#: For how long contacts are those of the last wrenches where those of an instant are lost.
_HELD_NS = nanoseconds(0.1)
#: Sources of which a sample belongs to an instant only if its stamp is near enough.
_SAMPLED = ('imu', 'filter', 'odometry')


@dataclass(frozen=True, kw_only=True)
class SynchronizedSettings:
    """
    How samples of one instant are brought together.

    Attributes
    ----------
    wrenches
        Whether the feet have wrenches.
    wrenches_required
        Whether there is no located state without them; else they are None while a sensor is
        silent.
    hands
        Names of the hands that have wrenches; these are None while their sensor is silent.
    probabilities
        For which feet the probabilities of contact that come with the wrenches decide, instead of
        the wrenches; while there are none the wrenches decide for these, too. Empty: for none.
    covariance, hand_covariance
        Whether covariances of the wrenches come with them, of feet and of virtual hands.
    thresholds, body_weight
        When a foot is in contact, by its wrench; the weight in N.
    wrench_delay
        By how much wrenches are later than their stamps, s: they belong to joints of that much
        earlier, and located states wait for them.

    """

    wrenches: bool
    wrenches_required: bool = True
    hands: Sequence[str] = ()
    probabilities: Sequence[bool] = ()
    covariance: bool = False
    hand_covariance: bool = False
    thresholds: ContactThresholds = field(default_factory=ContactThresholds)
    body_weight: float = 0.0
    wrench_delay: float = 0.0


class StateEstimator:
    """
    Locates the robot from stamped samples.

    Parameters
    ----------
    model
        The robot.
    base
        How the base is located.
    lookup
        Of transforms, for the source ``tf``; see :class:`TransformBase`.
    contacts
        Contacts measured elsewhere, for the latest mode; None: the lowest soles are assumed to be
        in contact.
    synchronized
        Settings of the synchronized mode; None for the latest mode.
    max_age
        How late samples may be in the synchronized mode, s; see :class:`.Synchronizer`.

    Attributes
    ----------
    base
        The estimator of the base.

    """

    def __init__(self, model: RobotModel, base: BaseSettings, *, lookup: Lookup | None = None,
                 contacts: ContactHistory | None = None,
                 synchronized: SynchronizedSettings | None = None,
                 max_age: float = MAX_AGE) -> None:
        if base.source == 'filter' and synchronized is None:
            raise ConfigurationError(
                "base_source 'filter' needs the wrenches of the feet at the instants of the "
                'joints: choose imu here')
        self.model, self.contacts = model, contacts
        self.base: BaseSource = make_base(model, base, lookup)
        self._lookup = lookup
        #: Instants that wait for their base: stamp, and what locates them.
        self._waiting: deque[tuple[int, Callable[[], LocatedState | None]]] = deque()
        self._longest_wait_ns = nanoseconds(base.timeout)
        self._last_ns = self._wrench_delay_ns = 0
        self._odometry_ns = NEVER_NS
        self._synchronizer: Synchronizer | None = None
        if synchronized is not None:
            self._synchronize(base, synchronized, max_age)

    def _synchronize(self, base: BaseSettings, settings: SynchronizedSettings,
                     max_age: float) -> None:
        feet = self.model.soles.names if settings.wrenches else ()
        self._wrench_delay_ns = nanoseconds(settings.wrench_delay)
        self._has_base_samples = base.source in _SAMPLED
        #: The joints are source 0, then come the base, if it is sampled, feet, hands, the others.
        self._first_foot = 1 + self._has_base_samples
        self._first_hand = self._first_foot + len(feet)
        self._hands_end = self._first_hand + len(settings.hands)
        others = [name for name, is_used in (
            ('contact probabilities', settings.probabilities), ('covariance', settings.covariance),
            ('hand covariance', settings.hand_covariance)) if is_used]
        self._others = {name: i for i, name in enumerate(others, self._hands_end)}
        self._names = ('joint states', *[base.source] * self._has_base_samples,
                       *(f'wrench of {foot}' for foot in feet),
                       *(f'wrench of {hand}' for hand in settings.hands), *others)
        optional = len(settings.hands) + len(others)
        self._synchronizer = Synchronizer(
            len(self._names), max_age,
            tolerances_ns=self._tolerances(base),
            optional=[False] * self._has_base_samples
            + [not settings.wrenches_required] * len(feet) + [True] * optional,
            timeouts_ns=[TIMEOUT_NS] * self._has_base_samples
            + [_WAIT_NS] * len(feet) + [TIMEOUT_NS] * optional)
        self._movers = [mover_to_sole(self.model, foot) for foot in range(len(feet))]
        self._movers += [mover_to_hand(self.model, hand) for hand in settings.hands]
        self._foot_contacts = FootContacts(settings.thresholds, settings.body_weight, len(feet))
        self._by_probability = tuple(settings.probabilities)
        self._probable_contacts = probable_contacts(len(feet))
        self._last_contacts: tuple[int, tuple[bool, ...]] = NEVER_NS, ()

    def _tolerances(self, base: BaseSettings) -> list[int]:
        """Return how far the stamp of each source may be from that of the joints, ns."""
        count = len(self._names) - self._first_foot
        return [nanoseconds(base.timeout)] * self._has_base_samples + [SAME_INSTANT_NS] * count

    def configure(self, settings: BaseSettings, max_age: float = MAX_AGE,
                  synchronized: SynchronizedSettings | None = None) -> None:
        """
        Use other settings from the next sample on; base and contacts stay as they are.

        Parameters
        ----------
        settings
            Of the base; the source stays.
        max_age
            How late samples may be in the synchronized mode, s.
        synchronized
            Of the synchronized mode: thresholds, weight and delay of the wrenches; the sources
            stay.

        """
        self.base.configure(settings)
        self._longest_wait_ns = nanoseconds(settings.timeout)
        if self._synchronizer is not None:
            self._synchronizer.set_max_age(max_age)
            self._synchronizer.set_tolerances(self._tolerances(settings))
        if synchronized is not None:
            self._foot_contacts.configure(synchronized.thresholds, synchronized.body_weight)
            self._wrench_delay_ns = nanoseconds(synchronized.wrench_delay)

    def copy(self) -> StateEstimator:
        """Return another estimator that continues from the same state, of the same robot."""
        model = self.model
        return deepcopy(self, {id(each): each for each in (
            model, model.soles, model.stance_frames, self._lookup)})

    # -- samples

    def add_joints(self, stamp_ns: int, state: RobotState) -> Sequence[LocatedState]:
        """Take the robot in the frame of its base, at joint positions of this time (ns)."""
        if self._synchronizer is None:
            if not self.base.may_wait:
                located = self._locate_latest(stamp_ns, state)
                return () if located is None else (located,)
            state.placements_in_base(self.model.stance_frames)  # kept by the state while it waits
            return self._locate_in_turn(stamp_ns, partial(self._locate_latest, stamp_ns, state))
        if self._synchronizer.last_ns[0] == stamp_ns:
            return ()
        state.placements_in_base(self.model.stance_frames)  # kept by the state while it waits
        return self._complete(0, stamp_ns, state)

    def add_base(self, stamp_ns: int, *sample: Array) -> Sequence[LocatedState]:
        """Take what ``base.set_sample`` takes after the stamp; the arrays must not change."""
        if self._synchronizer is None:
            self.base.set_sample(stamp_ns, *sample)
            return ()
        if self._synchronizer.last_ns[1] == stamp_ns:
            return ()
        if self.base.takes_all_samples:
            self.base.set_sample(stamp_ns, *sample)
        return self._complete(1, stamp_ns, (stamp_ns, *sample))

    def add_odometry(self, stamp_ns: int, position: Array, quaternion: Array) -> None:
        """Take what ``base.add_odometry`` takes; the arrays must not change."""
        if stamp_ns != self._odometry_ns:
            self._odometry_ns = stamp_ns
            self.base.add_odometry(stamp_ns, position, quaternion)

    def add_wrench(self, contact: int, stamp_ns: int, wrench: Array, frame: str,
                   ) -> Sequence[LocatedState]:
        """
        Take the wrench (6,) of the environment on a foot or hand; synchronized mode only.

        Parameters
        ----------
        contact
            Index of the foot in ``config.feet``; the hands follow behind the feet.
        stamp_ns
            Its time, ns.
        wrench, frame
            Wrench, N and N m, and the name of its frame, which has to be fixed to the body.

        Raises
        ------
        UnknownNameError, ConfigurationError
            If the frame does not exist, or is not fixed to the foot or hand.

        """
        source, measured_ns = self._first_foot + contact, stamp_ns - self._wrench_delay_ns
        assert self._synchronizer is not None
        if self._synchronizer.last_ns[source] == measured_ns:
            return ()
        return self._complete(source, measured_ns, self._movers[contact].move(wrench, frame))

    def add_auxiliary(self, name: str, stamp_ns: int, values: Any) -> Sequence[LocatedState]:
        """
        Take what comes beside wrenches, with their stamp, ns; the values must not change.

        Parameters
        ----------
        name
            What it is: 'contact probabilities' of all feet, (F,), 'covariance' of their wrenches
            at the soles, (6 F, 6 F), or 'hand covariance' of the forces on all virtual hands along
            the axes of their frames, (3 V, 3 V); foot by foot, N and N m.
        stamp_ns, values
            As above.

        """
        return self._complete(self._others[name], stamp_ns - self._wrench_delay_ns, values)

    def describe_lateness(self) -> str:
        """Return in the synchronized mode which input is the farthest behind, and by how much."""
        assert self._synchronizer is not None
        return self._synchronizer.describe_lateness(self._names)

    # -- locating

    def _locate_in_turn(self, stamp_ns: int, locate: Callable[[], LocatedState | None],
                        ) -> Sequence[LocatedState]:
        """Locate all instants whose base is known, or has been waited for long enough."""
        waiting, located = self._waiting, []
        if waiting and stamp_ns < waiting[-1][0]:  # the clock was set back
            waiting.clear()
        waiting.append((stamp_ns, locate))
        while waiting and (self.base.can_locate(waiting[0][0])
                           or stamp_ns - waiting[0][0] >= self._longest_wait_ns):
            located.append(waiting.popleft()[1]())
        return [state for state in located if state is not None]

    def _locate_latest(self, stamp_ns: int, state: RobotState) -> LocatedState | None:
        in_contact, contacts = None, self.contacts
        if stamp_ns < self._last_ns:  # the clock was set back
            self.base.reset()
            if contacts is not None:
                contacts.reset()
        self._last_ns = stamp_ns
        loads = None
        if contacts is not None:
            in_contact = contacts.at(stamp_ns)
            loads = None if in_contact is None else contacts.loads
            if contacts.revised_ns is not None:
                self.base.revise(contacts.revised_ns, contacts.at)
                contacts.revised_ns = None
        return self.base.locate(stamp_ns, state, in_contact, loads=loads)

    def _complete(self, source: int, stamp_ns: int, sample: Any) -> Sequence[LocatedState]:
        """Add a sample and locate the instants that are complete with it."""
        assert self._synchronizer is not None
        complete = self._synchronizer.add(source, stamp_ns, sample)
        if self.base.may_wait:
            return [state for samples in complete for state in self._locate_in_turn(
                samples.stamp_ns, partial(self._locate_instant, *samples))]
        located = [self._locate_instant(*samples) for samples in complete]
        return [state for state in located if state is not None]

    def _locate_instant(self, stamp_ns: int, samples: Sequence[Any]) -> LocatedState | None:
        """Locate one sample of each source; the stamp is that of the joints."""
        state = samples[0]
        if stamp_ns < self._last_ns:  # the clock was set back
            self.base.reset()
            self._foot_contacts.reset()
            self._probable_contacts.reset()
            self._last_contacts = NEVER_NS, ()
        self._last_ns = stamp_ns
        if self._has_base_samples and not self.base.takes_all_samples:
            self.base.set_sample(*samples[1])
        wrenches = samples[self._first_foot:self._first_hand]
        if not wrenches or None in wrenches:
            measured_ns, last = self._last_contacts
            return self.base.locate(
                stamp_ns, state, last if stamp_ns - measured_ns < _HELD_NS else None)
        in_contact = self._in_contact(samples, wrenches, stamp_ns)
        self._last_contacts = stamp_ns, in_contact
        located = self.base.locate(stamp_ns, state, in_contact, wrenches,
                                   [wrench[2] for wrench in wrenches])
        if located is not None:
            located.wrenches = wrenches
            located.hand_wrenches = samples[self._first_hand:self._hands_end]
            others = {name: samples[source] for name, source in self._others.items()}
            located.wrench_covariance = others.get('covariance')
            located.hand_covariance = others.get('hand covariance')
        return located

    def _in_contact(self, samples: Sequence[Any], wrenches: Sequence[Sequence[float]],
                    stamp_ns: int) -> tuple[bool, ...]:
        """Return which feet are in contact by their wrenches, or else by probabilities."""
        in_contact = self._foot_contacts.update([wrench[2] for wrench in wrenches], stamp_ns)
        if not self._by_probability:
            return in_contact
        probabilities = samples[self._others['contact probabilities']]
        if probabilities is None:
            self._probable_contacts.reset()
            return in_contact
        probable = self._probable_contacts.update(probabilities, stamp_ns)
        return tuple([other if decides else touches for touches, other, decides in zip(
            in_contact, probable, self._by_probability)])
