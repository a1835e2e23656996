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

Each reading is processed linearly: scale, minus the offset, matrix of the sensor's known errors,
low-pass, minus the weight of what the sensor carries, moved to the sole (or hand) and added to the
foot's other sensors. The feet and hands are summed in ``base_footprint``.

Relative poses come from the latest joint positions, the direction of gravity from the latest
orientation of the IMU; the inertial force of what a sensor carries is ignored
(:func:`biped_com_ros.core.geometry.wrench.set_weight_matrix`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.constants import LONGEST_STEP_NS, NEVER_NS, SAME_INSTANT_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, heading_of, mean_sole, Vector
from biped_com_ros.core.geometry.wrench import set_weight_matrix, sum_wrenches, wrench_adjoint
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import gravity_setting, setting, Settings, settings
from biped_com_ros.core.signals.age import is_recent
from biped_com_ros.core.signals.filters import LowPass
from biped_com_ros.core.signals.schmitt import SchmittTrigger
from biped_com_ros.core.signals.synchronizer import Synchronizer
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np


class ReadingCorrection:
    """
    Scale, bias and matrix of one sensor: ``true = matrix @ (scale * reading - bias)``.

    Parameters
    ----------
    config
        The robot's configuration.
    sensor
        Name of the wrench sensor.

    Attributes
    ----------
    scale
        Of the reading, by the configuration, shape (6,).
    bias
        Offset that the configuration gives, shape (6,), N and N m; a tare uses another one.
    matrix
        Shape (6, 6); None for a sensor without known errors.

    """

    def __init__(self, config: RobotConfig, sensor: str) -> None:
        known = config.instruments.sensor(sensor)
        self.scale = np.array(config.wrench_sensors[sensor].factors)
        self.bias = np.array(known.bias)
        self.matrix: Array | None = known.matrix if known.correction else None

    def corrected(self, scaled: Array, offset: Array) -> Array:
        """Return the wrench (6,) of a scaled reading: here the offset of a tare is subtracted."""
        unbiased = scaled - offset
        if self.matrix is not None:
            unbiased = self.matrix.dot(unbiased)
        return unbiased

    def reading_of(self, wrench: Array) -> Array:
        """Return the reading (6,), after the scale and without bias, of a true wrench."""
        return wrench if self.matrix is None else np.array(np.linalg.solve(self.matrix, wrench))


FORCE_Z = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
"""Which numbers of a wrench a sensor of the vertical force measures."""

_ALONG_NORMAL = 0.99  # cosine of 8 deg, which 1 % of the force is lost by


@dataclass(frozen=True, kw_only=True)
class AggregationSettings(Settings):
    """How readings are processed."""

    low_pass_cutoff: float = setting(
        50.0, 'Cut-off frequency of the Butterworth low-pass of all readings; 0: off', 'Hz', 0.0,
        10000.0)
    thresholds: ContactThresholds = settings(ContactThresholds)
    gravity: float = gravity_setting()


class SensorChannel:
    """
    One sensor: scale, offset, known errors and low-pass.

    Attributes
    ----------
    offset
        Bias of the sensor, shape (6,): the configured one until it is tared; subtracted from the
        scaled reading.
    correction
        Known errors of the sensor.
    scaled
        The last reading after the scale, before the offset, shape (6,).
    filtered
        The last reading after scale, offset, known errors and low-pass, shape (6,).
    low_pass
        May be replaced at any time.

    """

    def __init__(self, name: str, robot: RobotConfig, settings: AggregationSettings) -> None:
        self.name, self.config = name, robot.wrench_sensors[name]
        self.correction = ReadingCorrection(robot, name)
        self._scale, self._corrected = self.correction.scale, self.correction.corrected
        self.offset = self.correction.bias.copy()
        self.scaled = self.filtered = np.zeros(6)
        self.low_pass = LowPass(settings.low_pass_cutoff, 6)
        self._stamp_ns = 0

    def update(self, reading: Array, stamp_ns: int) -> None:
        """Process a reading (6,) as it came from the sensor."""
        self.scaled = reading * self._scale
        step_ns, self._stamp_ns = stamp_ns - self._stamp_ns, stamp_ns
        if not 0 < step_ns < LONGEST_STEP_NS:
            self.low_pass.reset()
        self.filtered = self.low_pass.update(
            self._corrected(self.scaled, self.offset), 1e-9 * step_ns)

    def set_offset(self, offset: Sequence[float] | Array) -> None:
        """Use another offset from the next reading on, without a step of the low-pass."""
        self.offset[:] = offset
        self.low_pass.reset()


class ContactBody:
    """
    A foot or hand: the sum of its sensors in its own frame.

    Attributes
    ----------
    name
        Name of the foot or hand.
    sensors
        Indices of its sensors among the channels.
    wrench, wrench_values
        Environment on robot in the sole (or hand) frame, shape (6,), and as Python floats.
    is_foot
        Whether it is a foot.
    detector
        Contact detector of a foot with sensors; None for a hand, or a virtual foot.
    in_contact
        Whether the foot is in contact; always False for a hand.
    has_force_z_only
        Whether only its normal force is measured; the rest of :attr:`wrench` is zero then, and
        unknown.
    index
        Index of it among the bodies.
    stamp_ns
        Time of the wrench, ns.
    force_deviation
        Standard deviation of the normal force, N; zero where it is not known, as with
        sensors.
    samples
        Synchronizes the wrenches of its sensors.

    """

    def __init__(self, name: str, sensors: tuple[int, ...],
                 detector: SchmittTrigger | None, is_foot: bool,
                 has_force_z_only: bool = False) -> None:
        self.name, self.sensors, self.detector = name, sensors, detector
        self.is_foot, self.has_force_z_only = is_foot, has_force_z_only
        self.wrench = np.zeros(6)
        self.wrench_values: list[float] = self.wrench.tolist()
        self.in_contact, self.index, self.stamp_ns = False, 0, NEVER_NS
        self.force_deviation = 0.0
        self.samples = Synchronizer(len(sensors))

    def update(self, stamp_ns: int) -> None:
        """Detect contact after :attr:`wrench` has changed."""
        if self.has_force_z_only:
            self.wrench *= FORCE_Z
        self.wrench_values, self.stamp_ns = self.wrench.tolist(), stamp_ns
        if self.detector is not None:
            self.in_contact = self.detector.update(self.wrench_values[2], stamp_ns)

    def set_virtual(self, stamp_ns: int, wrench: Array, in_contact: bool,
                    force_deviation: float) -> None:
        """Use the wrench (6,) and the contact that joint torques give; the deviation in N."""
        self.force_deviation = force_deviation
        self.wrench[:], self.stamp_ns = wrench, stamp_ns
        self.wrench_values, self.in_contact = self.wrench.tolist(), in_contact


class WrenchAggregation:
    """
    All sensors, feet and hands of a robot.

    Parameters
    ----------
    model
        The robot.
    settings
        How readings are processed.

    Attributes
    ----------
    channels
        The sensors as :class:`SensorChannel`, in the order of ``config.wrench_sensors``.
    bodies
        Feet, then hands, those that have sensors or are virtual.
    virtual_feet
        The virtual feet with their index in ``config.feet``; their wrenches are set from outside.
    virtual_hands
        The virtual hands in the order of the configuration; likewise.
    body_weight
        N, of the model.
    expected
        Reading of each sensor without contact, (S, 6): the weight of what it carries; set by
        :meth:`set_state`.
    foot_forces
        Normal force on each foot with sensors as of the last total, N.
    is_state_current
        Whether posture and attitude are of the readings' time; while it is False, readings give
        no wrenches. :meth:`set_state` sets it; callers that compare stamps assign it before each
        reading.

    Raises
    ------
    ConfigurationError
        If one sensor carries another, so that the total would count a force twice.

    """

    def __init__(self, model: RobotModel, settings: AggregationSettings) -> None:
        self.model, self.settings = model, settings
        self.body_weight = model.mass * settings.gravity
        sensors = model.config.wrench_sensors
        self.channels = [SensorChannel(name, model.config, settings) for name in sensors]
        self._subtrees = [model.subtree_links(c.link or c.frame) for c in sensors.values()]
        self.bodies = self._make_bodies()
        for index, body in enumerate(self.bodies):
            body.index = index
        self._samples = Synchronizer(len(self.bodies))
        self.foot_forces: list[float] = []
        self._check_double_counting()
        self._prepare_frames()
        self.is_state_current = False

    def configure(self, settings: AggregationSettings) -> None:
        """Use other settings from the next reading on; contacts are kept."""
        before, self.settings = self.settings, settings
        if settings.low_pass_cutoff != before.low_pass_cutoff:
            for channel in self.channels:
                channel.low_pass = LowPass(settings.low_pass_cutoff, 6)
        self._configure_detectors()

    def update_inertials(self) -> None:
        """Recompute weights and thresholds after masses of the model have changed."""
        self.body_weight = self.model.mass * self.settings.gravity
        self._configure_detectors()
        self._prepare_frames()
        self.is_state_current = False  # until the next state

    def _configure_detectors(self) -> None:
        for body in self.bodies:
            if body.detector is not None:
                body.detector.configure(*self.settings.thresholds.values(self.body_weight))

    def set_max_age(self, seconds: float) -> None:
        """Accept readings that are as late, s; 0: see :class:`.Synchronizer`."""
        for synchronizer in (self._samples, *(body.samples for body in self.bodies)):
            synchronizer.set_max_age(seconds)

    def set_state(self, state: RobotState, R_world_imu: Array) -> None:
        """
        Set the robot's posture and attitude.

        Parameters
        ----------
        state
            Kinematics of the robot in its base.
        R_world_imu
            Orientation of the IMU's link, shape (3, 3), z up; its heading does not matter.

        """
        if self._moving_weights or self._moving_frames:
            self._refresh_moving(state)
        self._R_world_base, placed = state.along_world(self._frames, R_world_imu)
        self._placements: list[list[list[float]]] = placed.tolist()
        # The vertical parts of the axes times the weights.
        self._weights_of_all.dot(placed.take(self._verticals), self._expected)
        self.is_state_current = True

    def update(self, sensor: int, reading: Array, stamp_ns: int) -> ContactBody | None:
        """
        Process a reading.

        Parameters
        ----------
        sensor
            Index into :attr:`channels`.
        reading
            Shape (6,), as it came from the sensor.
        stamp_ns
            Its time, ns.

        Returns
        -------
        ContactBody or None
            The foot or hand whose wrench this reading completed.

        """
        channel, (body, member) = self.channels[sensor], self._owners[sensor]
        channel.update(reading, stamp_ns)
        if body is None or not self.is_state_current:
            return None
        np.subtract(channel.filtered, self._expected_of[sensor], self._contact)
        if channel.config.measures_force_z:
            self._contact *= FORCE_Z
        if len(body.sensors) == 1:
            self._to_body_of[sensor].dot(self._contact, body.wrench)
        elif sets := body.samples.add(
                member, stamp_ns, self._to_body_of[sensor].dot(self._contact)):
            np.add.reduce(sets[-1].samples, axis=0, out=body.wrench)
        else:
            return None
        body.update(stamp_ns)
        return body

    @property
    def any_foot_in_contact(self) -> bool:
        """Whether any foot is in contact."""
        return any(body.in_contact for body in self.bodies)

    def total(self, body: ContactBody, stamp_ns: int) -> Array | None:
        """
        Add the new wrench of a foot or hand to the total.

        Returns
        -------
        numpy.ndarray or None
            Once all feet and hands have a wrench of one instant, their sum in ``base_footprint``,
            shape (6,); valid until the next call.

        """
        sets = self._samples.add(body.index, stamp_ns, body.wrench_values)
        if not sets:
            return None
        wrenches = sets[-1].samples
        self.foot_forces = [values[2] for values in wrenches[:self._foot_count]]
        placements = self._placements
        fx, fy, fz, mx, my, mz = sum_wrenches(
            wrenches, [placements[row] for row in self._body_rows],
            self.footprint_from_base())
        # base_footprint is level and has the heading of the base.
        c, s = heading_of(self._R_world_base)
        self._total[:] = c * fx + s * fy, c * fy - s * fx, fz, c * mx + s * my, c * my - s * mx, mz
        return self._total

    @property
    def feet(self) -> list[ContactBody]:
        """Return the feet among the bodies."""
        return [body for body in self.bodies if body.is_foot]

    @property
    def lateness(self) -> tuple[str, float]:
        """Foot, hand or sensor that is the farthest behind the others, and by how much, s."""
        synchronizers = [(body.samples, [self.channels[i].name for i in body.sensors])
                         for body in self.bodies if body.sensors]
        if self.bodies:
            synchronizers.append((self._samples, [body.name for body in self.bodies]))
        found = [('', 0.0)]
        for synchronizer, names in synchronizers:
            latest, seconds = synchronizer.lateness
            found.append((names[latest], seconds))
        return max(found, key=lambda entry: entry[1])

    def measured_at(self, stamp_ns: int, with_feet: bool) -> list[list[float]] | None:
        """
        Return the wrenches (6,) of hands with sensors, behind those of the feet if asked for.

        None if there are no such ones, or not all are of the time `stamp_ns`.
        """
        bodies = [body for body in self.bodies if body.sensors and (with_feet or not body.is_foot)]
        is_current = all(is_recent(body.stamp_ns, stamp_ns, SAME_INSTANT_NS) for body in bodies)
        return [body.wrench_values for body in bodies] if bodies and is_current else None

    @property
    def uprightness(self) -> float:
        """Least vertical part of the z axes of base and soles: 1 upright, 0 lying."""
        return min(self._R_world_base.item(2, 2),
                   *(axes[2][2] for axes in self._placements[:len(self._feet)]))

    @property
    def sole_heights(self) -> list[float]:
        """Return the height of the sole of each foot with sensors, from the base, m."""
        return [self._placements[row][3][2] for row in self._body_rows[:self._foot_count]]

    def footprint_from_base(self) -> Vector:
        """Return the origin of ``base_footprint`` from the base, along the world's axes, m."""
        soles = [placement[3] for placement in self._placements[:len(self._feet)]]
        return mean_sole(soles, [foot is not None and foot.in_contact for foot in self._feet])

    def _make_bodies(self) -> tuple[ContactBody, ...]:
        config = self.model.config
        self._owners: list[tuple[ContactBody | None, int]] = [(None, 0)] * len(self.channels)
        self._feet = [
            self._make_body(name, foot.used_sensors, True) if foot.has_wrench else None
            for name, foot in config.feet.items()]
        self.virtual_feet = [
            (index, body) for index, (body, foot) in enumerate(
                zip(self._feet, config.feet.values())) if body is not None and foot.is_virtual]
        hands = [self._make_body(name, hand.wrench_sensors, False)
                 for name, hand in config.hands.items() if hand.has_wrench]
        self.virtual_hands = [hand for hand in hands if not hand.sensors]
        return (*(foot for foot in self._feet if foot is not None), *hands)

    def _make_body(self, name: str, sensors: tuple[str, ...], is_foot: bool) -> ContactBody:
        detector = (self.settings.thresholds.trigger(self.body_weight)
                    if is_foot and sensors else None)
        index = {channel.name: i for i, channel in enumerate(self.channels)}
        body = ContactBody(name, tuple(index[sensor] for sensor in sensors), detector, is_foot,
                           is_foot and name in self.model.config.feet_with_force_z)
        for member, sensor in enumerate(body.sensors):
            self._owners[sensor] = (body, member)
        return body

    def _check_double_counting(self) -> None:
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
        """Arrange soles, hands and sensors such that one product places them all."""
        model, config, count = self.model, self.model.config, len(self._feet)
        self._sensors = model.frames(channel.config.frame for channel in self.channels)
        hands = model.frames(h.frame for h in config.hands.values() if h.has_wrench)
        bodies = model.soles + hands
        self._body_rows = [i for i, foot in enumerate(self._feet) if foot is not None]
        self._body_rows += range(count, count + len(hands.names))
        lone = self._sort_moving_from_rigid(bodies)
        frames = bodies + model.frames(self._sensors.names[i] for i in lone)
        frames += model.frames((config.imu.frame,))
        # Without hands and lone sensors they are the stance frames, which a state keeps.
        stance = model.stance_frames
        self._frames = stance if stance.names == frames.names else frames
        self._foot_count = count - self._feet.count(None)
        self._total, self._contact = np.zeros(6), np.zeros(6)
        self._prepare_products(len(bodies.names), lone)

    def _sort_moving_from_rigid(self, bodies: FrameSet) -> list[int]:
        """Find what joints move; return the sensors that move relative to their body."""
        link_joints = self.model.frames(self.model.link_names).joints
        joints = self._sensors.joints
        self._rows = [None if body is None else self._body_rows[body.index]
                      for body, _ in self._owners]
        self._moving_weights = [i for i, links in enumerate(self._subtrees)
                                if np.any(link_joints[links] != joints[i])]
        self._moving_frames = [i for i, row in enumerate(self._rows)
                               if row is not None and joints[i] != bodies.joints[row]]
        return [i for i, row in enumerate(self._rows)
                if row is None or i in self._moving_weights or i in self._moving_frames]

    def _prepare_products(self, bodies: int, lone: Sequence[int]) -> None:
        """Arrange one product for the weights that all sensors carry."""
        self._weigh_subtrees()
        n, rows = len(self.channels), bodies + len(lone)
        # Gravity is -g times the vertical parts of the axes: rows 0-2 of a placement.
        self._verticals = np.array([12 * row + 3 * axis + 2 for row in range(rows)
                                    for axis in range(3)], np.intp)
        self._weights_of_all, self._expected = np.zeros((6 * n, 3 * rows)), np.zeros(6 * n)
        self.expected = self._expected.reshape(n, 6)
        self._expected_of = list(self.expected)
        self._to_body_of = list(np.zeros((n, 6, 6)))
        state = self.model.state(np.zeros(len(self.model.joint_names)))
        sensors, frames = map(state.placements_in_base, (self._sensors, self._frames))
        self._weights = []
        for i, row in enumerate(self._rows):
            # Along its own axes, or along those of its body, which are computed anyway.
            axes = bodies + lone.index(i) if i in lone or row is None else row
            block = self._weights_of_all[6 * i:6 * i + 6, 3 * axes:3 * axes + 3]
            self._weights.append(block)
            self._weigh(i, state, sensors)
            if axes == row:
                block[:] = block @ sensors[i, :3] @ frames[row, :3].T
            self._move_to_body(i, sensors, frames)
            self._check_force_z(i)

    def _check_force_z(self, i: int) -> None:
        """Raise an error for a vertical force along an axis that is not the sole's normal."""
        config = self.channels[i].config
        if (config.measures_force_z and self._owners[i][0] is not None
                and self._to_body_of[i][2, 2] < _ALONG_NORMAL):
            raise ConfigurationError(
                f"wrench_sensors.{self.channels[i].name} of '{self.model.config.name}' measures "
                f"force_z, but z of its frame '{config.frame}' is not the normal of the sole: "
                'give a frame of the sole, such as <foot>_sole_frame')

    def _refresh_moving(self, state: RobotState) -> None:
        sensors, frames = map(state.placements_in_base, (self._sensors, self._frames))
        for i in self._moving_weights:
            self._weigh(i, state, sensors)
        for i in self._moving_frames:
            self._move_to_body(i, sensors, frames)

    def _weigh(self, i: int, state: RobotState, sensors: Array) -> None:
        """Compute the weight matrix of what a sensor carries, along its axes."""
        mass, shares, links = self._carried[i]
        com_in_base = shares.dot(state.link_coms_in_base[links])
        R_sensor_base, p_sensor_in_base = sensors[i, :3], sensors[i, 3]
        set_weight_matrix(self._weights[i], -self.settings.gravity * mass,
                          R_sensor_base.dot(com_in_base - p_sensor_in_base))

    def _move_to_body(self, i: int, sensors: Array, frames: Array) -> None:
        """Compute the adjoint from a sensor to its foot or hand."""
        row = self._rows[i]
        if row is not None:
            R_body_base = frames[row, :3]
            self._to_body_of[i][:] = wrench_adjoint(
                R_body_base @ sensors[i, :3].T, R_body_base @ (sensors[i, 3] - frames[row, 3]))

    def _weigh_subtrees(self) -> None:
        """Find what each sensor carries: its mass, the share of each link, the links."""
        self._carried = []
        for links in self._subtrees:
            masses = self.model.link_masses[links]
            mass = float(masses.sum())
            self._carried.append((mass, masses / mass if mass else masses, links))
