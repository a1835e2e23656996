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
From the readings of all force-torque sensors to foot wrenches, contacts and the total.

A reading takes this way, all of it linear: sign, offset, low-pass, minus the weight of what hangs
on the sensor, moved to the sole (or hand) and added to the foot's other sensors. The feet and
hands add up to the total in ``base_footprint``.

Relative poses come from the latest joint positions, the direction of gravity from the latest
orientation of the IMU; the inertial force of what hangs on a sensor is ignored
(:func:`biped_com_ros.core.wrench.weight_matrix`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import math

from biped_com_ros.core.config import WrenchSensorConfig
from biped_com_ros.core.contact import ContactDetector, ContactThresholds
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.filters import LowPass
from biped_com_ros.core.footprint import mean_sole
from biped_com_ros.core.pose import Array, Pose
from biped_com_ros.core.robot import FrameSet, RobotModel, RobotState
from biped_com_ros.core.synchronizer import Synchronizer
from biped_com_ros.core.wrench import set_weight_matrix, wrench_adjoint
import numpy as np

LONGEST_STEP_NS = 500_000_000
"""After a longer silence, or a step back in time, the low-pass starts anew."""


@dataclass(frozen=True)
class AggregationSettings:
    """
    How readings are treated.

    Attributes
    ----------
    low_pass_cutoff, low_pass_order
        Butterworth low-pass of every reading, Hz (0: off) and 1 or 2.
    thresholds
        When a foot is on the ground.
    gravity
        m/s2.

    """

    low_pass_cutoff: float = 0.0
    low_pass_order: int = 2
    thresholds: ContactThresholds = field(default_factory=ContactThresholds)
    gravity: float = 9.81


class SensorChannel:
    """
    One sensor: sign, offset and low-pass.

    Attributes
    ----------
    offset
        What it reads too much, shape (6,); subtracted from the signed reading.
    signed
        The last reading after the sign, before the offset, shape (6,).
    filtered
        The last reading after everything, shape (6,).
    low_pass
        May be replaced at any time.

    """

    def __init__(self, name: str, config: WrenchSensorConfig,
                 settings: AggregationSettings) -> None:
        self.name, self.config, self._sign = name, config, config.sign
        self.offset = np.zeros(6)
        self.signed, self.filtered = np.zeros(6), np.zeros(6)
        self.low_pass = LowPass(settings.low_pass_cutoff, 6, settings.low_pass_order)
        self._stamp_ns = 0

    def take(self, raw: Array, stamp_ns: int) -> None:
        """Take a reading (6,) as it came from the sensor."""
        np.multiply(raw, self._sign, self.signed)
        step_ns, self._stamp_ns = stamp_ns - self._stamp_ns, stamp_ns
        if not 0 < step_ns < LONGEST_STEP_NS:
            self.low_pass.reset()
        self.filtered = self.low_pass.update(self.signed - self.offset, 1e-9 * step_ns)

    def set_offset(self, offset: Sequence[float] | Array) -> None:
        """Use another offset from the next reading on, without a step of the low-pass."""
        self.offset[:] = offset
        self.low_pass.reset()


class ContactBody:
    """
    A foot or hand: what its sensors feel, in its own frame.

    Attributes
    ----------
    name
        Name of the foot or hand.
    sensors
        Where its sensors stand among the channels.
    wrench, numbers
        Environment on robot in the sole (or hand) frame, shape (6,), and as plain numbers.
    detector
        Whether it is on the ground; None for a hand.
    in_contact
        Whether the foot is on the ground; a hand never counts.
    place
        Where it stands among the bodies.

    """

    def __init__(self, name: str, sensors: tuple[int, ...],
                 detector: ContactDetector | None) -> None:
        self.name, self.sensors, self.detector = name, sensors, detector
        self.wrench = np.zeros(6)
        self.numbers: list[float] = self.wrench.tolist()
        self.in_contact, self.place = False, 0
        self.samples = Synchronizer(len(sensors))

    def judge(self, stamp_ns: int) -> None:
        """Take over a new wrench, of a time (ns)."""
        self.numbers = numbers = self.wrench.tolist()
        if self.detector is not None:
            self.in_contact = self.detector.update(numbers[2], stamp_ns)


class WrenchAggregation:
    """
    All sensors, feet and hands of a robot.

    Parameters
    ----------
    model
        The robot.
    settings
        How readings are treated.

    Attributes
    ----------
    channels
        The sensors as :class:`SensorChannel`, in the order of ``config.wrench_sensors``.
    bodies
        Feet, then hands, those that have sensors.
    body_weight
        N, of the model.
    expected
        What each sensor reads when nothing touches what hangs on it, shape (S, 6); set by
        :meth:`set_state`.

    Raises
    ------
    ConfigurationError
        If a foot or hand shares a sensor, or one sensor hangs on another, so that the total
        would count a force twice.

    """

    #: The bodies in level axes as plain numbers; None until they are asked for.
    _places: list[list[list[float]]] | None

    def __init__(self, model: RobotModel, settings: AggregationSettings) -> None:
        self.model, self.settings = model, settings
        self.body_weight = model.mass * settings.gravity
        sensors = model.config.wrench_sensors
        self.channels = [SensorChannel(name, c, settings) for name, c in sensors.items()]
        self._subtrees = [model.subtree_links(c.link or c.frame) for c in sensors.values()]
        self.bodies = self._make_bodies()
        for place, body in enumerate(self.bodies):
            body.place = place
        self._samples = Synchronizer(len(self.bodies))
        self._refuse_double_counting()
        self._prepare_frames()
        self.ready = False

    def set_state(self, state: RobotState, R_world_imu: Array) -> None:
        """
        Take the robot's posture and attitude.

        Parameters
        ----------
        state
            The robot seen from its base.
        R_world_imu
            Orientation of the IMU's link, shape (3, 3), z up; its heading does not matter.

        """
        in_base = state.placements_in_base(self._frames)
        self._refresh_moving(state, in_base)
        R_world_base = R_world_imu.dot(in_base[-1, :3])  # the row is R_base_imu transposed
        # Level axes headed like the base: those of base_footprint.
        in_base.reshape(-1, 3).dot(level_rotation(R_world_base).T, self._level_rows)
        # Of the axes of each sensor, the vertical parts: what weight its load exerts along them.
        self._weights_of_all.dot(self._verticals.take(self._sensor_axes), self._expected)
        self._places = None
        self.ready = True

    def take(self, sensor: int, raw: Array, stamp_ns: int) -> ContactBody | None:
        """
        Take a reading.

        Parameters
        ----------
        sensor
            Which of :attr:`channels`.
        raw
            Shape (6,), as it came.
        stamp_ns
            Its time, ns.

        Returns
        -------
        ContactBody or None
            The foot or hand whose wrench is complete with this reading.

        """
        channel, (body, member) = self.channels[sensor], self._owners[sensor]
        channel.take(raw, stamp_ns)
        if body is None or not self.ready:
            return None
        np.subtract(channel.filtered, self._expected_of[sensor], self._contact)
        if len(body.sensors) == 1:
            self._to_body_of[sensor].dot(self._contact, body.wrench)
        elif body.samples.add(member, stamp_ns, self._to_body_of[sensor].dot(self._contact)):
            np.add.reduce(body.samples.latest, axis=0, out=body.wrench)
        else:
            return None
        body.judge(stamp_ns)
        return body

    @property
    def stands(self) -> bool:
        """Whether any foot is on the ground."""
        return True in [body.in_contact for body in self.bodies]

    def total(self, body: ContactBody, stamp_ns: int) -> Array | None:
        """
        Take a new wrench of a foot or hand.

        Returns
        -------
        numpy.ndarray or None
            If with it all feet and hands are there for one instant, the sum in
            ``base_footprint``, shape (6,); valid until the next call.

        """
        if not self._samples.add(body.place, stamp_ns, body.numbers):
            return None
        places = self._places
        if places is None:
            n = len(self.channels)
            self._places = places = self._in_level[n:n + len(self.bodies)].tolist()
        self._total[:] = add_up(self._samples.latest, places, self.footprint_in_level())
        return self._total

    @property
    def foot_forces(self) -> list[float]:
        """Return the normal force on each foot with sensors as of the last total, N."""
        return [numbers[2] for numbers in self._samples.latest[:self._foot_count]]

    def footprint_in_level(self) -> tuple[float, float, float]:
        """Return the origin of ``base_footprint`` from the base, in level axes, m."""
        return mean_sole(
            self._soles_in_level.tolist(),
            [foot is not None and foot.in_contact for foot in self._feet])

    def _make_bodies(self) -> tuple[ContactBody, ...]:
        config = self.model.config
        self._owners: list[tuple[ContactBody | None, int]] = [(None, 0)] * len(self.channels)
        self._feet = [
            self._make_body(name, foot.wrench_sensors, ContactDetector(
                self.settings.thresholds, self.body_weight)) if foot.wrench_sensors else None
            for name, foot in config.feet.items()]
        hands = [self._make_body(name, hand.wrench_sensors, None)
                 for name, hand in config.hands.items() if hand.wrench_sensors]
        return (*(foot for foot in self._feet if foot is not None), *hands)

    def _make_body(self, name: str, sensors: tuple[str, ...],
                   detector: ContactDetector | None) -> ContactBody:
        index = {channel.name: i for i, channel in enumerate(self.channels)}
        body = ContactBody(name, tuple(index[sensor] for sensor in sensors), detector)
        for member, sensor in enumerate(body.sensors):
            self._refuse_second_owner(sensor, name)
            self._owners[sensor] = (body, member)
        return body

    def _refuse_second_owner(self, sensor: int, name: str) -> None:
        owner = self._owners[sensor][0]
        if owner is not None:
            raise ConfigurationError(
                f"wrench sensor '{self.channels[sensor].name}' of '{self.model.config.name}' is "
                f"listed for '{owner.name}' and for '{name}'; its force would count twice")

    def _refuse_double_counting(self) -> None:
        used = [i for i, (body, _) in enumerate(self._owners) if body is not None]
        for i in used:
            for j in used:
                if i < j and np.intersect1d(self._subtrees[i], self._subtrees[j]).size:
                    raise ConfigurationError(
                        f"wrench sensors '{self.channels[i].name}' and '{self.channels[j].name}' "
                        f"of '{self.model.config.name}' carry the same links, so a force would "
                        'count twice; list only one of them under feet and hands, or set their '
                        "'link'")

    def _prepare_frames(self) -> None:
        """Stack sensors, bodies and soles, so that one product places them all."""
        model, config, n = self.model, self.model.config, len(self.channels)
        soles = list(zip(model.soles.joints, _poses(model.soles)))
        hands = model.frames(h.frame for h in config.hands.values() if h.wrench_sensors)
        sensors = model.frames(c.config.frame for c in self.channels)
        imu = model.frames((config.imu.frame,))
        rows = [*zip(sensors.joints, _poses(sensors)),
                *(sole for sole, foot in zip(soles, self._feet) if foot is not None),
                *zip(hands.joints, _poses(hands)), *soles, *zip(imu.joints, _poses(imu))]
        self._frames = FrameSet(map(str, range(len(rows))), *zip(*rows))
        self._in_level = np.zeros((len(rows), 4, 3))
        self._level_rows = self._in_level.reshape(-1, 3)
        self._soles_in_level = self._in_level[-1 - len(soles):-1, 3]
        self._foot_count = sum(foot is not None for foot in self._feet)
        self._places = None
        self._total, self._contact = np.zeros(6), np.zeros(6)
        self._prepare_weights(n)
        self._weigh_subtrees()
        self._sort_moving_from_rigid()

    def _prepare_weights(self, n: int) -> None:
        """Lay out one product for what all sensors read of what hangs on them."""
        # Gravity is -g times the vertical parts of a sensor's axes: rows 0-2 of its placement.
        self._verticals = self._level_rows[:4 * n, 2]
        self._sensor_axes = np.array([4 * i + axis for i in range(n) for axis in range(3)],
                                     np.intp)
        self._weights_of_all = np.zeros((6 * n, 3 * n))
        self._weights = [self._weights_of_all[6 * i:6 * i + 6, 3 * i:3 * i + 3]
                         for i in range(n)]
        self._expected = np.zeros(6 * n)
        self.expected = self._expected.reshape(n, 6)
        self._expected_of = list(self.expected)
        self._to_body = np.zeros((n, 6, 6))
        self._to_body_of = list(self._to_body)

    def _sort_moving_from_rigid(self) -> None:
        """Compute once what no joint changes, and note what one does."""
        link_joints = self.model.frames(self.model.link_names).joints
        joints, n = self._frames.joints, len(self.channels)
        row = {id(body): n + i for i, body in enumerate(self.bodies)}
        self._body_row = [row.get(id(body)) for body, _ in self._owners]
        everything = list(range(n))
        self._moving_weights, self._moving_frames = everything, everything
        state = self.model.state(np.zeros(len(self.model.joint_names)))
        self._refresh_moving(state, state.placements_in_base(self._frames))
        self._moving_weights = [
            i for i in everything if np.any(link_joints[self._subtrees[i]] != joints[i])]
        self._moving_frames = [i for i in everything if (r := self._body_row[i]) is not None
                               and joints[i] != joints[r]]

    def _refresh_moving(self, state: RobotState, in_base: Array) -> None:
        for i in self._moving_weights:
            mass, shares, links = self._carried[i]
            com_in_base = shares.dot(state.link_coms_in_base[links])
            R_sensor_base, p_sensor_in_base = in_base[i, :3], in_base[i, 3]
            set_weight_matrix(self._weights[i], -self.settings.gravity * mass,
                              R_sensor_base.dot(com_in_base - p_sensor_in_base))
        for i in self._moving_frames:
            if (r := self._body_row[i]) is not None:
                R_body_base = in_base[r, :3]
                self._to_body[i] = wrench_adjoint(
                    R_body_base @ in_base[i, :3].T,
                    R_body_base @ (in_base[i, 3] - in_base[r, 3]))

    def _weigh_subtrees(self) -> None:
        """Note what hangs on each sensor: its mass, the share of each link, the links."""
        self._carried = []
        for links in self._subtrees:
            masses = self.model.link_masses[links]
            mass = float(masses.sum())
            self._carried.append((mass, masses / mass if mass else masses, links))


def add_up(wrenches: Sequence[Sequence[float]], places: Sequence[Sequence[Sequence[float]]],
           point: Sequence[float]) -> tuple[float, float, float, float, float, float]:
    """
    Return the sum of wrenches about a point.

    Plain numbers: for two feet, half the time of :class:`biped_com_ros.core.wrench.WrenchSum`.

    Parameters
    ----------
    wrenches
        K times six numbers, each in its own frame.
    places
        Of these frames: the axes and the origin in common axes, (K, 4, 3).
    point
        In the same axes, m.

    """
    px, py, pz = point
    sum_fx = sum_fy = sum_fz = sum_mx = sum_my = sum_mz = 0.0
    for (a, b, c, d, e, f), ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz), (rx, ry, rz)) in zip(
            wrenches, places):
        fx = a * xx + b * yx + c * zx
        fy = a * xy + b * yy + c * zy
        fz = a * xz + b * yz + c * zz
        rx -= px
        ry -= py
        rz -= pz
        sum_fx += fx
        sum_fy += fy
        sum_fz += fz
        sum_mx += d * xx + e * yx + f * zx + ry * fz - rz * fy
        sum_my += d * xy + e * yy + f * zy + rz * fx - rx * fz
        sum_mz += d * xz + e * yz + f * zz + rx * fy - ry * fx
    return sum_fx, sum_fy, sum_fz, sum_mx, sum_my, sum_mz


def level_rotation(R_world_base: Array) -> Array:
    """Return the attitude (3, 3) of the base in level axes that share its heading."""
    x, y = R_world_base.item(0, 0), R_world_base.item(1, 0)
    length = math.hypot(x, y)
    c, s = (x / length, y / length) if length else (1.0, 0.0)
    turn_back = np.array((c, s, 0.0, -s, c, 0.0, 0.0, 0.0, 1.0)).reshape(3, 3)
    levelled: Array = turn_back.dot(R_world_base)
    return levelled


def _poses(frames: FrameSet) -> list[Pose]:
    """Return the poses of frames in the joints that carry them."""
    return [Pose(row[:3, :3].T, row[3, :3]) for row in frames.placement_in_joint]
