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
"""Captures from a stream of readings: stillness, averages, and which feet stand."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.constants import CERTAIN, GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting, Settings
import numpy as np

LEAST_UPRIGHTNESS = 0.5
"""Least vertical part of the base's z axis in a capture: of a robot that has not fallen."""


@dataclass(frozen=True, kw_only=True)
class StillnessOptions(Settings):
    """What counts as still."""

    duration: float = setting(
        1.0, 'Duration for which the robot must be still, and over which a capture averages', 's',
        0.1, 30.0)
    #: Largest movement of a joint within duration, after averaging over the noise of the encoders,
    #: rad.
    joint_range: float = 0.004
    #: Largest range of the direction of gravity, rad.
    tilt_range: float = 0.004
    force_deviation: float = setting(
        6.0, 'Largest standard deviation of a force within still_duration', 'N', 1e-4, 1e5)
    #: Smallest number of readings in a capture.
    min_samples: int = 10


class LargestMotion(NamedTuple):
    """
    What moved most within the duration of a capture.

    Attributes
    ----------
    excess
        Relative to its limit: up to 1 the robot is still.
    limit
        Name of the limit in `StillnessOptions`.
    value
        What was measured, in the unit of the limit.
    text
        Description, with the value.

    """

    excess: float
    limit: str
    value: float
    text: str


class MotionDirections:
    """
    Directions in which joints moved last, on which friction depends.

    A joint drags a follower with play along: noise within the play moves nothing, and a turn
    counts from twice the play on.

    Parameters
    ----------
    count
        Number of joints.
    play
        rad or m.

    Attributes
    ----------
    directions
        Shape (count,): 1, -1, or 0 for a joint that has not moved yet.

    """

    def __init__(self, count: int, play: float) -> None:
        self._play = play
        self._follower = np.full(count, np.nan)
        self.directions = np.zeros(count)

    def update(self, positions: Array) -> None:
        """Use positions (count,), rad or m; those that are not finite change nothing."""
        before = np.where(np.isnan(self._follower), positions, self._follower)
        self._follower = np.fmin(np.fmax(before, positions - self._play), positions + self._play)
        moved = self._follower - before
        self.directions[moved > 0.0] = 1.0
        self.directions[moved < 0.0] = -1.0


class CaptureWindow:
    """
    Keeps the last readings, decides whether the robot is still, and averages them.

    Parameters
    ----------
    model
        The robot.
    up_frame
        URDF link in which the direction of gravity is measured.
    options
        What counts as still.
    hangs
        Whether no foot touches the ground, whatever its sensor reads, at any tilt of the base.

    Attributes
    ----------
    force_deviations
        Standard deviation of the vertical force of each sensor of ``config.wrench_sensors``, (S,),
        N: zero of a real one. A foot whose load is not certain to carry or to hang free is
        refused.

    """

    def __init__(self, model: RobotModel, up_frame: str,
                 options: StillnessOptions | None = None, hangs: bool = False) -> None:
        self.model, self.up_frame, self._hangs = model, up_frame, hangs
        self.options = options or StillnessOptions()
        #: Sensors whose noise shows hands on the robot.
        self._trusted = [not s.deviation for s in model.config.wrench_sensors.values()]
        self.force_deviations = np.zeros(len(self._trusted))
        # Time, positions, torques, wrenches, up.
        self._samples: deque[tuple[float, Array, Array, Array, Array]] = deque()
        self._motions = MotionDirections(len(model.joint_names), 0.5 * self.options.joint_range)

    def clear(self) -> None:
        """Drop all readings, as after a movement; the directions of the movements are kept."""
        self._samples.clear()

    def add(self, time: float, positions: Array, torques: Array, wrenches: Array,
            up: Array) -> None:
        """
        Add the readings of an instant.

        Parameters
        ----------
        time
            s; if it goes back, earlier readings are dropped.
        positions, torques
            Of ``model.joint_names``, (n,); torques may be NaN.
        wrenches
            Of ``config.wrench_sensors``, environment on robot, (sensors, 6); may be NaN.
        up
            Unit vector against gravity in `up_frame`, (3,).

        """
        samples = self._samples
        if samples and time < samples[-1][0]:
            samples.clear()
        self._motions.update(positions)
        samples.append((time, positions.copy(), torques.copy(), wrenches.copy(), up.copy()))
        while time - samples[0][0] > self.options.duration * 1.001:
            samples.popleft()

    @property
    def is_full(self) -> bool:
        """Whether there are readings of nearly the whole duration, and enough of them."""
        samples = self._samples
        return len(samples) >= self.options.min_samples and (
            samples[-1][0] - samples[0][0] >= 0.9 * self.options.duration)

    @property
    def problem(self) -> str:
        """Return what keeps the readings from being captured, or ''."""
        o, samples = self.options, self._samples
        if not self.is_full:
            return (f'only {len(samples)} readings in the last {o.duration} s'
                    if len(samples) < o.min_samples else
                    f'only {samples[-1][0] - samples[0][0]:.1f} of {o.duration} s of readings')
        motion = self.motion()
        if motion.excess <= 1.0:
            return ''
        if motion.limit != 'force_deviation':
            return motion.text
        return (f'{motion.text} (still_force_deviation {o.force_deviation:.3g} N): keep hands off '
                'the robot, and let it settle')

    def capture(self, name: str = '') -> Capture:
        """
        Return the averages with their variances.

        Raises
        ------
        InputError
            If the robot is not still, or a foot carries too little weight to stand.

        """
        if self.problem:
            raise InputError(f'the robot cannot be captured: {self.problem}; hold the robot still')
        times, positions, torques, wrenches, up = map(np.array, zip(*self._samples))
        mean_up = up.mean(axis=0)
        mean_up /= np.linalg.norm(mean_up)
        means = positions.mean(axis=0), wrenches.mean(axis=0), torques.mean(axis=0)
        standing = self.standing(means[1], means[0], mean_up)
        return Capture(
            positions=means[0], wrenches=means[1], in_contact=standing, up=mean_up,
            up_frame=self.up_frame, torques=means[2],
            position_variance=_variance_of_mean(positions),
            wrench_variance=np.nan_to_num(_variance_of_mean(wrenches)),
            torque_variance=np.nan_to_num(_variance_of_mean(torques)), name=name,
            time=float(times.mean()), approach=self._motions.directions.copy())

    def motion(self) -> LargestMotion:
        """Return what moved most within the readings, relative to its limit."""
        o, (_, positions, _, wrenches, up) = self.options, map(np.array, zip(*self._samples))
        ranges = np.ptp(_smoothed(positions), axis=0)
        worst = int(ranges.argmax())
        tilt = float(np.ptp(_smoothed(up), axis=0).max())
        deviation = float(np.nan_to_num(
            wrenches[:, self._trusted, :3].std(axis=0)).max(initial=0.0))
        measured = (
            ('joint_range', float(ranges[worst]), f"joint '{self.model.joint_names[worst]}' moved "
             f'by {ranges[worst]:.4f} rad or m (at most {o.joint_range:g})'),
            ('tilt_range', tilt, f'the robot tilted by {math.degrees(tilt):.2f} deg (at most '
             f'{math.degrees(o.tilt_range):.2f} deg)'),
            ('force_deviation', deviation, f'a force varies by {deviation:.1f} N'))
        return max(LargestMotion(value / getattr(o, limit), limit, value, text)
                   for limit, value, text in measured)

    def standing(self, wrenches: Array, positions: Array, up: Array) -> BoolArray:
        """
        Return which feet are on the ground, by the load of their sensors, (feet,).

        Raises
        ------
        InputError
            If that is not certain, or the robot lies.

        """
        model, names = self.model, tuple(self.model.config.wrench_sensors)
        if self._hangs:
            return np.zeros(len(model.config.feet), dtype=bool)
        state = model.state(positions)
        up_in_base = state.pose_in_base(self.up_frame).rotation @ up
        if up_in_base[2] < LEAST_UPRIGHTNESS:
            tilt = math.degrees(math.acos(max(float(up_in_base[2]), -1.0)))
            raise InputError(
                f'the base is tilted by {tilt:.0f} deg: stand the robot up; if it stands, check '
                f"the frame of the IMU ('{self.up_frame}'), its driver, and base_rpy")
        standing = []
        for foot, config in model.config.feet.items():
            load, hanging = 0.0, 0.0
            sensors = [names.index(sensor) for sensor in config.wrench_sensors]
            uncertain = CERTAIN * math.hypot(*self.force_deviations[sensors].tolist())
            for sensor in config.wrench_sensors:
                frame = model.config.wrench_sensors[sensor]
                R = state.pose_in_base(frame.frame).rotation
                load += float(up_in_base @ (R @ wrenches[names.index(sensor), :3]))
                if frame.deviation:  # of a virtual sensor: the ground's wrench alone
                    continue
                links = model.subtree_links(frame.link or frame.frame)
                hanging += GRAVITY * float(model.link_masses[links].sum())
            standing.append(self._stands(foot, load, hanging, uncertain))
        return np.array(standing)

    def _stands(self, foot: str, load: float, hanging: float, uncertain: float) -> bool:
        """Return whether a load, N, that may be wrong by `uncertain` is of a standing foot."""
        weight = GRAVITY * self.model.mass
        if not math.isfinite(load):
            raise InputError(f"the wrench sensor of foot '{foot}' has no readings: check its "
                             'driver and topic')
        if load < -hanging - 0.2 * weight:
            sensors = ', '.join(f'wrench_sensors.{name}.scale' for name in
                                self.model.config.feet[foot].wrench_sensors)
            raise InputError(
                f"the vertical force on foot '{foot}' is negative, {load:.1f} N: negate {sensors} "
                f'in the YAML of robot {self.model.config.name}')
        if load > 0.04 * weight + uncertain:
            return True
        # Halfway between hanging and no load, or the largest offset of a sensor.
        if load > -hanging + max(0.5 * hanging, 0.02 * weight, uncertain):
            about = f' +- {uncertain:.0f}' if uncertain else ''
            raise InputError(
                f"foot '{foot}' carries {load:.1f}{about} N of {weight:.0f} N: it hardly touches "
                'the ground; put it down or lift it, and tare the sensors if it is clear '
                '(calibrate --hanging: no foot touches in the whole recording)')
        return False


def carried_share(model: RobotModel, wrenches: Array) -> float:
    """
    Return the approximate share of the weight that the feet carry, in any orientation.

    Parameters
    ----------
    model
        The robot.
    wrenches
        Of ``config.wrench_sensors``, (sensors, 6), N and N m.

    """
    names = list(model.config.wrench_sensors)
    forces = [sum(wrenches[names.index(name), :3] for name in foot.wrench_sensors)
              for foot in model.config.feet.values() if foot.wrench_sensors]
    total = sum(float(np.linalg.norm(force)) for force in forces)
    return total / (GRAVITY * model.mass)


def _smoothed(values: Array) -> Array:
    """Return means over a tenth of the time each, which reduces noise but not movements."""
    return np.array([part.mean(axis=0) for part in np.array_split(values, min(10, len(values)))])


def _variance_of_mean(values: Array) -> Array:
    """Return the variance of the mean; ten correlated readings count as one."""
    independent = max(1.0, len(values) / 10.0)
    return values.var(axis=0) / independent
