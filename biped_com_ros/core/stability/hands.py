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
"""The hands that lean or hold on: their wrenches, which of them touch, and what they can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array, combined, Placement, Pose, Vector
from biped_com_ros.core.geometry.wrench import sum_covariance
from biped_com_ros.core.model.config import HandConfig, RobotConfig
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.core.settings import setting, Settings, settings
from biped_com_ros.core.signals.age import is_recent
from biped_com_ros.core.stability.contacts import Contact, grip_contact, surface_contact
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np

_POINT: tuple[Point, ...] = ((0.0, 0.0),)
#: For so long without messages a hand keeps its wrench: one that is lost lets nothing go.
_SILENCE_NS = 200_000_000


@dataclass(frozen=True, kw_only=True)
class HandSettings(Settings):
    """What hands can hold."""

    friction: float = setting(0.5, 'Coefficient of friction of hands that lean', '', 0.01, 10.0)
    #: Largest force of a hand, as a share of body weight: the normal force of one that leans, the
    #: sum along the three axes of one that grips.
    largest_force: float = 0.3
    thresholds: ContactThresholds = settings(ContactThresholds, engage_dwell=0.0)


class HandTouch(NamedTuple):
    """
    A hand that touches.

    Attributes
    ----------
    name
        Of the hand.
    placement
        Of its frame in the world: axes, then the origin, m.
    force_in_world
        Of the environment on it, N.

    """

    name: str
    placement: Placement
    force_in_world: Vector

    @property
    def point_in_world(self) -> Sequence[float]:
        """Return the origin of its frame, (3,), m."""
        return self.placement[3]


class Hands:
    """
    The hands of a robot whose wrenches are known, by sensors or joint torques.

    Parameters
    ----------
    model, settings
        The robot, and what its hands can hold.
    weight
        Body weight, N.

    Attributes
    ----------
    names
        In the order of all wrenches.
    touching
        Those that touch.

    """

    def __init__(self, model: RobotModel, settings: HandSettings, weight: float) -> None:
        measured = self.measured(model.config)
        self.names, self._hands = tuple(measured), tuple(measured.values())
        self._frames = model.frames([hand.frame for hand in self._hands])
        self._settings, self._weight = settings, weight
        self._largest = settings.largest_force * weight
        self._detectors = [settings.thresholds.trigger(weight) for _ in self.names]
        self._last: dict[int, tuple[int, Sequence[float]]] = {}
        self.touching: tuple[HandTouch, ...] = ()

    @staticmethod
    def measured(config: RobotConfig) -> dict[str, HandConfig]:
        """Return the hands whose wrenches are known, by name."""
        return {name: hand for name, hand in config.hands.items() if hand.has_wrench}

    def reset(self) -> None:
        """Reset which hands touch."""
        self.touching = ()
        self._last.clear()
        for detector in self._detectors:
            detector.reset()

    def continue_from(self, other: Hands) -> None:
        """Continue with the contacts of the hands of another monitor of the same robot."""
        self.touching, self._detectors = other.touching, other._detectors
        self._last = other._last
        for detector in self._detectors:
            detector.configure(*self._settings.thresholds.values(self._weight))

    def with_last(self, stamp_ns: int, wrenches: Sequence[Sequence[float] | None],
                  ) -> Sequence[Sequence[float] | None]:
        """
        Return the wrenches of an instant, in place of a missing one the last for up to 0.2 s.

        Where nothing is to be replaced, that is the very same object.

        Parameters
        ----------
        stamp_ns
            Of the instant, ns.
        wrenches
            On each hand; None where there is none of this instant.

        """
        found = None
        for i, wrench in enumerate(wrenches):
            if wrench is not None:
                self._last[i] = stamp_ns, wrench
            elif i in self._last and is_recent(self._last[i][0], stamp_ns, _SILENCE_NS):
                found = found or list(wrenches)
                found[i] = self._last[i][1]
        return found or wrenches

    def placements(self, state: RobotState) -> list[Placement]:
        """Return the hands in the world: their axes, then the position, m."""
        placed = state.placements_in_base(self._frames)
        in_world = placed.reshape(-1, 3).dot(state.base.rotation.T).reshape(-1, 4, 3)
        in_world[:, 3] += state.base.position
        found: list[Placement] = in_world.tolist()
        return found

    def without_payload(self, state: RobotState, wrenches: Sequence[Sequence[float] | None],
                        payload: CarriedPayload, gravity: float) -> list[Sequence[float] | None]:
        """
        Return the wrenches on the hands without the weight of what one of them carries.

        Of a virtual hand the force alone is known, and it is zero while it may be none: it
        contains no weight then.
        """
        found = list(wrenches)
        for i, hand in enumerate(self._hands):
            if hand.frame == payload.link and (wrench := wrenches[i]) is not None:
                axes = state.placements_in_base(self._frames)[i, :3]
                weight = payload.wrench_on_link(axes.dot(state.base.rotation[2]), gravity)
                if hand.is_virtual:
                    weight[3:] = 0.0
                if any(wrench) or not hand.is_virtual:
                    found[i] = (np.array(wrench) - weight).tolist()
        return found

    def contacts(self, stamp_ns: int, placements: Sequence[Placement],
                 wrenches: Sequence[Sequence[float] | None]) -> list[Contact]:
        """
        Return the contacts of the hands that touch.

        Parameters
        ----------
        stamp_ns
            Time of the wrenches, ns.
        placements
            Of :meth:`placements`.
        wrenches
            On each hand in its frame, N and N m; None where it is not measured.

        """
        contacts, touching = [], []
        hands = zip(self.names, self._hands, self._detectors, placements, wrenches)
        for name, hand, detector, placement, wrench in hands:
            force = 0.0 if wrench is None else math.hypot(*wrench[:3])
            # Without a force there is no direction; contact ends some milliseconds later.
            if wrench is not None and detector.update(force, stamp_ns) and force > 0.0:
                contacts.append(self._contact(hand, np.array(placement), np.array(wrench[:3])))
                touching.append(HandTouch(name, placement, combined(placement[:3], *wrench[:3])))
        self.touching = tuple(touching)
        return contacts

    def _contact(self, hand: HandConfig, placement: Array, force: Array) -> Contact:
        axes, position = placement[:3], placement[3]
        if hand.contact == 'grip':
            return grip_contact(Pose(axes.T, position), self._largest)
        normal = np.array(hand.normal) if any(hand.normal) else force
        return surface_contact(_facing(normal @ axes, position), _POINT, self._settings.friction,
                               self._largest)


def hands_covariance(touching: Sequence[HandTouch], virtual: Sequence[str],
                     covariance: Array) -> Array:
    """
    Return the covariance of the wrench of virtual hands about the world's origin, (6, 6).

    Parameters
    ----------
    touching
        The hands that touch.
    virtual
        Names of the virtual hands, in the order of `covariance`; of those that do not touch the
        force is none.
    covariance
        Of their forces along the axes of their frames, (3 V, 3 V), N^2.

    """
    used = [hand for hand in touching if hand.name in virtual]
    if not used:
        return np.zeros((6, 6))
    forces = np.arange(6 * len(used)).reshape(-1, 6)[:, :3].ravel()
    rows = np.concatenate([3 * virtual.index(hand.name) + np.arange(3) for hand in used])
    wrenches = np.zeros((6 * len(used), 6 * len(used)))
    wrenches[np.ix_(forces, forces)] = covariance[np.ix_(rows, rows)]
    return sum_covariance(wrenches, np.array([hand.placement for hand in used]))


def _facing(normal: Array, position: Array) -> Pose:
    """Return a pose whose z axis is along a vector (3,) of the world."""
    z = normal / np.linalg.norm(normal)
    x = np.zeros(3)
    x[np.abs(z).argmin()] = 1.0
    y = np.cross(z, x)
    y /= np.linalg.norm(y)
    return Pose(np.column_stack((np.cross(y, z), y, z)), position)
