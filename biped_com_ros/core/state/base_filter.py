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
The base by an invariant filter of the IMU and of the points on which the feet stand.

Anchors are the centres of pressure, not the origins of the soles: a foot that lands on its heel,
rolls, and leaves from its toes turns about its centre of pressure, which is at rest, while the
origin of the sole rises and falls. A foot slides more easily the less it carries, and the faster
it turns the more an error of the centre of pressure matters: its anchor moves at random
accordingly.

How well the legs tell where the feet are is learnt (`leg_noise`), and what the IMU does between
its samples is taken from their differences (`imu_readings`), since robots differ in both by a
factor of ten. No measurement is rejected: one that is too far off counts the less. A foot that
slides (`slips`) is not at rest, and its anchor goes with it. Feet that all seem to slide for long
show that the velocity is wrong: it is taken from them.

The filter needs each sample of the IMU, and the wrenches of the feet at the instants of the
joints. While the robot stands still, with all feet in contact, the bias of the gyroscope is
measured, since nothing else shows the part of it that turns the heading, and the units and axes
of the IMU are checked (`rest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import math
from typing import NamedTuple

from biped_com_ros.core.constants import LONGEST_STEP_NS
from biped_com_ros.core.geometry.pose import (
    Array, footprint_position, Pose, rotation_from_quaternion, yaw_of)
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.model.frames import ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import gravity_setting, setting, Settings, settings
from biped_com_ros.core.state.external_odometry import ExternalOdometry, ExternalSettings
from biped_com_ros.core.state.feet import FootPressure, LegNoise, SlipDetector
from biped_com_ros.core.state.imu_readings import ImuInterval, ImuReadings
from biped_com_ros.core.state.invariant_filter import (
    ATTITUDE, InvariantFilter, POSITION, VELOCITY)
from biped_com_ros.core.state.leg_odometry import twist_from_stance
from biped_com_ros.core.state.rest import (
    accelerometer_problem, GyroBias, gyroscope_problem, StandingMean, StandingWindow,
    starting_problem)
from biped_com_ros.core.state.stance import Stance, Twist
import numpy as np
import pinocchio as pin

#: Share of the weight below which a foot moves the more easily, and how much at most.
_FULL_GRIP, _LEAST_GRIP = 0.8, 1600.0
#: Share of the weight from which on a foot stands on the floor.
_STANDS = 0.3
#: Standard deviation of the height of a level floor, m.
_FLOOR = 0.005
#: Normalised square of the innovation beyond which a floor has another height.
_FLOOR_GATE = 9.0
#: Standard deviations at the start: attitude by an orientation or else by the accelerometer, rad;
#: velocity, m/s.
_ORIENTED, _LEVELLED, _STARTING_SPEED = 0.02, 0.1, 0.2
#: Standard deviations of what a robot may do unseen, per second: m/s and rad/s.
_WANDERING, _TURNING = 0.2, 0.1
#: Standard deviation of the velocity, m/s, from which on it counts as unknown.
_LOST = 1.0
#: And up to which the DCM is known to a few centimetres.
_KNOWN_SPEED = 0.1
#: Squared innovations per expected ones, over a second, beyond which sensors contradict.
_CONTRADICTION = 4.0
#: Where all feet slide for this long they do not: the velocity is wrong.
_LONGEST_SLIDE_NS = 300_000_000
#: Deviation of a foot's position by the legs where it gets an anchor, m.
_PLACED = 5e-4
_CERTAIN = 1e-6
#: Random walk of a foot that carries the robot, m/sqrt(s).
_SLIP = 5e-3
#: Random walk of a foot in addition, per speed of its rotation, m/sqrt(s) per rad/s.
_ROLLING = 1e-2


@dataclass(frozen=True, kw_only=True)
class FilterSettings(Settings):
    """What the filter assumes."""

    level_floor: bool = setting(
        True, 'With base_source filter: whether the floor is level, within 5 mm; false on stairs '
        'and slopes')
    external: ExternalSettings = settings(ExternalSettings, 'filter_odometry_{}')
    gravity: float = gravity_setting()


class FilteredBase(NamedTuple):
    """
    The base at one instant.

    Attributes
    ----------
    pose
        Of the base in the world.
    base_from_imu
        Vector from the IMU to the origin of the base along the world's axes, (3,), m.
    R_world_imu, velocity, covariance, gyro_bias_rows
        Attitude, velocity in the world (m/s) and uncertainty of the IMU; see
        :class:`InvariantFilter`.
    gyro, gyro_variance
        Angular velocity of the IMU along its axes, (3,), rad/s, and the variance of the noise of
        each component.
    acceleration
        Its proper acceleration, (3,), m/s^2.
    restarted
        Whether the position does not continue that of the instant before.

    """

    pose: Pose
    base_from_imu: Array
    R_world_imu: Array
    velocity: Array
    covariance: Array
    gyro_bias_rows: slice
    gyro: Array
    gyro_variance: float
    acceleration: Array
    restarted: bool

    @property
    def is_velocity_known(self) -> bool:
        """Whether the velocity is known well enough for the DCM; not so just after the start."""
        return float(self.covariance[VELOCITY, VELOCITY].trace()) < _KNOWN_SPEED ** 2

    @property
    def pose_covariance(self) -> Array:
        """Covariance of position (m) and rotation (rad) along the world's axes, (6, 6)."""
        J = np.zeros((6, len(self.covariance)))
        J[:3, ATTITUDE], J[:3, POSITION] = -skew(self.pose.position), np.eye(3)
        J[3:, ATTITUDE] = np.eye(3)
        covariance: Array = J.dot(self.covariance).dot(J.T)
        return covariance

    @property
    def twist_covariance(self) -> Array:
        """Covariance of the twist along the axes of the base, (6, 6): m/s, then rad/s."""
        R_base_world, J = self.pose.rotation.T, np.zeros((6, len(self.covariance)))
        R_base_imu = R_base_world.dot(self.R_world_imu)
        J[:3, VELOCITY] = R_base_world
        J[:3, self.gyro_bias_rows] = R_base_world.dot(skew(self.base_from_imu)).dot(
            self.R_world_imu)
        J[3:, self.gyro_bias_rows] = -R_base_imu
        covariance: Array = J.dot(self.covariance).dot(J.T)
        # The noise of the gyroscope is in the reading as its bias is.
        by_noise = J[:, self.gyro_bias_rows]
        covariance += self.gyro_variance * by_noise.dot(by_noise.T)
        return covariance


class BaseFilter:
    """
    Pose and twist of the base, instant by instant.

    Parameters
    ----------
    model
        The robot.
    settings
        What the filter assumes.

    Attributes
    ----------
    filter
        The invariant filter of the IMU's link.
    stance
        The soles after the last update.
    sole_placements
        The same as :attr:`RobotState.sole_placements_in_world`, shape (F, 4, 3).
    legs
        The noise of the legs.
    slips
        Which feet slide.
    external
        Odometry from elsewhere.

    """

    def __init__(self, model: RobotModel, settings: FilterSettings) -> None:
        self._settings = settings
        self._soles, self._frames = model.soles, model.stance_frames
        self._imu = model.frames((model.config.imu.frame,))
        self._imu_moves = bool(self._imu.joints[0] != ROOT)
        self._feet = range(len(model.soles.names))
        self._drop_imu()
        self._jacobians: dict[tuple[int, ...], Array] = {}
        self._pressure = FootPressure(
            [foot.polygon for foot in model.config.feet.values()], model.mass * settings.gravity)
        self._readings = ImuReadings()
        self._standing = StandingWindow()
        self.slips = SlipDetector(
            [float(np.ptp(foot.polygon, axis=0).max()) for foot in model.config.feet.values()],
            float(np.linalg.norm(self.soles_of(model.state(model.usual_posture())), axis=1).max()))
        self.external = ExternalOdometry(settings.external)
        self._other_heights = 0
        self._other_height_ns: int | None = None
        self.reset()

    def configure(self, settings: FilterSettings) -> None:
        """Use other noise from now on; the gravitational acceleration stays."""
        self._settings = replace(settings, gravity=self._settings.gravity)
        self.external.settings = settings.external

    @property
    def imu_problem(self) -> str:
        """Return what is wrong with the IMU, found while the robot stands; '' if nothing."""
        return next(filter(None, self._problems.values()), '')

    def _judge(self, part: str, problem: str | None) -> None:
        """Take what a window shows of a part of the IMU; None: nothing."""
        # One window may have been a motion that joints and contacts do not show.
        if problem is not None:
            if bool(problem) == self._suspected.get(part, False):
                if problem:
                    self._problems[part] = problem
                elif len(self._problems) > 1:
                    self._problems.pop(part, None)
                elif part in self._problems:
                    self._is_mended = True  # of this instant nothing is right yet
            self._suspected[part] = bool(problem)

    def _drop_imu(self) -> None:
        """Start anew after an IMU that was wrong: its biases and all noise, too."""
        self.filter = InvariantFilter(len(self._feet), gravity=self._settings.gravity)
        self.legs, self._gyro_bias = LegNoise(len(self._feet)), GyroBias()
        self._problems: dict[str, str] = {}
        self._suspected: dict[str, bool] = {}
        self._is_mended = False

    def reset(self) -> None:
        """Start at the origin at the next update; biases and noise stay."""
        self._time_ns: int | None = None
        self._agreed_ns = 0
        self._standing.reset()
        self.external.reset()
        self._reset_stance()

    def _reset_stance(self) -> None:
        self._anchored, self._levelled = [[False] * len(self._feet) for _ in range(2)]
        self._travel, self._shifted = np.zeros(3), np.zeros((len(self._feet), 3))
        self.slips.reset()

    def add_reading(self, stamp_ns: int, quaternion: Array, gyro: Array,
                    acceleration: Array) -> None:
        """Take a sample of the IMU; its orientation is used only to start."""
        self._readings.add(stamp_ns, np.concatenate((gyro, acceleration)), quaternion)

    def update(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...],
               wrenches: Sequence[Sequence[float]] | None) -> FilteredBase:
        """
        Update with the joints of an instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns; samples of the IMU up to then have been added.
        state
            The robot in the frame of its base.
        in_contact
            Which feet are on the ground.
        wrenches
            Environment on each foot in its sole frame, (F, 6), N and N m; None if not measured.

        """
        intervals = self._readings.advance(stamp_ns)
        before_ns, self._time_ns = self._time_ns, stamp_ns
        if self._is_mended:
            self._drop_imu()
            self.external.reset()
            before_ns = None
        restarted = before_ns is None or stamp_ns < before_ns
        elapsed = 0.0
        if restarted:
            self._start(state, in_contact)
        else:
            assert before_ns is not None
            elapsed = 1e-9 * (stamp_ns - before_ns)
            restarted = not self._propagate(intervals, state, in_contact)
        shifts = self._pressure.update(wrenches)
        agrees = self._use_feet(stamp_ns, elapsed, state, in_contact, shifts)
        if restarted or agrees:
            self._agreed_ns = stamp_ns
        elif stamp_ns - self._agreed_ns > _LONGEST_SLIDE_NS:
            self._agreed_ns, restarted = stamp_ns, True
            self._go_on(*self._starting_velocity(state, in_contact))
        self._check_imu(stamp_ns, state, in_contact)
        if not self.external.is_used:
            return self._place(state, in_contact, restarted)
        if restarted:
            self.external.reset()
        self.external.correct(stamp_ns, self.filter)
        placed = self._place(state, in_contact, restarted)
        self.external.record(stamp_ns, placed.pose)
        return placed

    def _propagate(self, intervals: Sequence[ImuInterval], state: RobotState,
                   in_contact: tuple[bool, ...]) -> bool:
        """Propagate; return False where the velocity does not continue that of before."""
        before, walks = self.filter.position, self._walks(state)
        hole = sum([dt for _, dt, _ in intervals if dt > 1e-9 * LONGEST_STEP_NS])
        if hole:
            self._start(state, in_contact, hole)
            return False
        for reading, dt, unknown in intervals:
            self.filter.propagate(reading[:3], reading[3:], dt, walks, unknown)
        self._travel += self.filter.position - before
        if self._is_lost():
            self._go_on(np.zeros(3), 0.5 * _LOST)
            return False
        return True

    def starting_problem(self, state: RobotState, in_contact: tuple[bool, ...]) -> str:
        """Return why the filter cannot start from the last sample of the IMU; '' if it can."""
        sample = StandingMean.of_sample(
            self._readings.latest, state.placements_in_base(self._frames), in_contact)
        return starting_problem(sample, self._settings.gravity)

    @property
    def warning(self) -> str:
        """Return what measurements contradict, with cause and remedy; '' if none do."""
        if self.legs.consistency > _CONTRADICTION:
            return (f'the feet move by {math.sqrt(self.legs.consistency):.1f} times what IMU and '
                    'joints allow: their stamps, the frame of the IMU, or joint positions may be '
                    'wrong, or contacts are those of feet in the air; check clocks and the URDF')
        if self.slips.is_frequent:
            return ('feet slide again and again: the floor is slippery, or what carries the robot '
                    'is not its feet; check contacts and the stamps of joints and IMU')
        if self._gyro_bias.rejected:
            return (f'at rest the gyroscope has measured another bias '
                    f'{self._gyro_bias.rejected} times in turn: the robot turns with its feet, or '
                    'the bias jumped; it is used after 5 s')
        return ''

    @property
    def figures(self) -> dict[str, float]:
        """Return what a user may want to know, with units, by name."""
        gyro, accelerometer = np.linalg.norm(self.filter.biases, axis=1).tolist()
        figures = {'slides': float(self.slips.count),
                   'steps onto another height': float(self._other_heights),
                   'IMU samples that waited too long': float(self._readings.dropped)}
        for name, ns in (('last slide [s ago]', self.slips.last_ns),
                         ('last step onto another height [s ago]', self._other_height_ns)):
            if ns is not None and self._time_ns is not None:
                figures[name] = 1e-9 * (self._time_ns - ns)
        return {
            **figures, 'innovations (1 is right)': self.legs.consistency,
            'stamps uneven by [s]': self.slips.unevenness,
            'noise of the legs [m sqrt(s)]': max(self.legs.deviations),
            'gyroscope bias [rad/s]': gyro, 'accelerometer bias [m/s2]': accelerometer}

    @property
    def is_started(self) -> bool:
        """Whether there is an estimate to continue from."""
        return self._time_ns is not None

    @property
    def gyro(self) -> Array:
        """Angular velocity of the IMU along its axes at the last instant, shape (3,), rad/s."""
        return self._readings.values[:3] - self.filter.biases[0]

    # -- start

    def _start(self, state: RobotState, in_contact: tuple[bool, ...], hole: float = 0.0) -> None:
        """
        Put the mean of the soles in contact at the origin, as leg odometry does.

        After a hole in the samples, s, it is put where it was before, with the heading of then:
        nothing tells what the robot did meanwhile.
        """
        R_world_imu, deviation = self._attitude()
        self._standing.reset()
        footprint, known = np.zeros(3), np.full(3, _CERTAIN)  # x, y, heading
        if hole:
            heading = yaw_of(self.filter.R_world_imu) - yaw_of(R_world_imu)
            R_world_imu = pin.exp3(np.array((0.0, 0.0, heading))).dot(R_world_imu)
            footprint = footprint_position(self.stance.soles_in_world, self.stance.in_contact)
            known = np.hypot(self.filter.place_deviations,
                             hole * np.array((_WANDERING, _WANDERING, _TURNING)))
        placed = state.along_world(self._frames, R_world_imu)[1]
        position = placed[-1, 3] - footprint_position(placed[:-1, 3], in_contact) + footprint
        height = _FLOOR if self._settings.level_floor else _CERTAIN
        self.filter.R_world_imu = R_world_imu
        velocity, speed = self._starting_velocity(state, in_contact)
        x, y, heading = known
        self.filter.start(R_world_imu, velocity, position, np.array((
            (deviation, deviation, heading), (speed,) * 3, (x, y, height))),
            footprint if hole else None)
        self._reset_stance()

    def _starting_velocity(self, state: RobotState,
                           in_contact: tuple[bool, ...]) -> tuple[Array, float]:
        """Return the velocity by the feet and its deviation: a foot may be taken for at rest."""
        velocity = self.filter.R_world_imu.dot(self._velocity_in_imu(state, in_contact))
        return velocity, _STARTING_SPEED + float(np.linalg.norm(velocity))

    def _velocity_in_imu(self, state: RobotState, in_contact: tuple[bool, ...]) -> Array:
        """Return the velocity of the IMU above soles that do not move, along its axes."""
        twist = twist_from_stance(state, in_contact)
        if twist is None:
            return np.zeros(3)
        imu = state.placements_in_base(self._imu)
        moves = state.twists_in_base(self._imu, imu)[0, 0]
        velocity: Array = imu[0, :3].dot(twist.linear + skew(twist.angular).dot(imu[0, 3]) + moves)
        return velocity

    def _attitude(self) -> tuple[Array, float]:
        """Return the attitude by the IMU's orientation, or else by its accelerometer."""
        oriented = self._orientation()
        if oriented is not None:
            return oriented, _ORIENTED
        up = self._readings.values[3:]
        level = pin.Quaternion.FromTwoVectors(up, np.array((0.0, 0.0, 1.0))).toRotationMatrix()
        deviation = _LEVELLED + abs(1.0 - float(np.linalg.norm(up)) / self._settings.gravity)
        return pin.exp3(np.array((0.0, 0.0, -yaw_of(level)))).dot(level), deviation

    def _orientation(self) -> Array | None:
        """Return the attitude by the IMU itself; None where it has none."""
        quaternion = self._readings.orientation
        # Drivers without an orientation send zeros, or no rotation.
        if abs(quaternion.dot(quaternion) - 1.0) < 0.05 and quaternion.item(3) != 1.0:
            return rotation_from_quaternion(quaternion)
        return None

    def _is_lost(self) -> bool:
        """Return whether the velocity has become unknown, without any contact for long."""
        if any(self._anchored):
            return False
        variance, first = self.filter.covariance.item, VELOCITY.start
        return sum([variance(i, i) for i in range(first, first + 3)]) > _LOST ** 2

    def _go_on(self, velocity: Array, deviation: float) -> None:
        """Go on from this place at another velocity with this standard deviation, m/s."""
        self.filter.restart_velocity(velocity, deviation)
        self._reset_stance()

    # -- feet

    def soles_of(self, state: RobotState) -> Array:
        """Return the origins of the soles from the IMU along the axes of the base, (F, 3), m."""
        placed = state.placements_in_base(self._frames)
        soles: Array = placed[:-1, 3] - placed[-1, 3]
        return soles

    def soles_from_imu(self, state: RobotState) -> Array:
        """Return the origins of the soles from the IMU by the attitude so far, (F, 3), m."""
        placed = state.along_world(self._frames, self.filter.R_world_imu)[1]
        soles: Array = placed[:-1, 3] - placed[-1, 3]
        return soles

    def _walks(self, state: RobotState) -> Array:
        """Return the variance of the random walk of each anchor, (3 F,), m^2/s."""
        gyro_in_base = self.gyro.dot(state.placements_in_base(self._frames)[-1, :3])
        placements, twists = state.joints_of(self._soles)
        # Along the axes of the joint that carries the sole: of a turn only its size matters.
        turns = placements[:, :3].dot(gyro_in_base) + twists[:, 3:]
        variances: list[float] = []  # as Python floats: for a few feet half the time of arrays
        for share, (x, y, z) in zip(self._pressure.shares, turns.tolist()):
            grip = min(max((_FULL_GRIP / max(share, 1e-3)) ** 2, 1.0), _LEAST_GRIP)
            walk = _SLIP ** 2 * grip + _ROLLING ** 2 * (x * x + y * y + z * z)
            variances += (walk,) * 3
        return np.array(variances)

    def _use_feet(self, stamp_ns: int, elapsed: float, state: RobotState,
                  in_contact: tuple[bool, ...], shifts: Array) -> bool:
        """
        Update with the feet in contact; those that were not before, or slide, get an anchor.

        Returns
        -------
        bool
            False if all feet that are in contact slide.

        """
        placed = state.along_world(self._frames, self.filter.R_world_imu)[1]
        # Centres of pressure are points, and their shifts vectors, of the soles.
        points, moves = np.matmul(shifts, placed[:-1]).transpose(1, 0, 2)
        points -= placed[-1, 3]
        self.filter.move_anchors(moves)
        self._shifted += moves
        slips = self.slips.update(
            stamp_ns, self._travel.copy(), points - self._shifted, self._pressure.shares,
            in_contact, math.sqrt(max(self.filter.covariance.diagonal()[VELOCITY][:2])))
        held = tuple([foot for foot in self._feet
                      if in_contact[foot] and self._anchored[foot] and not slips[foot]])
        if held:
            self._measure(held, points, elapsed)
        for foot, touches in enumerate(in_contact):
            if not touches:
                self._anchored[foot] = False
            elif not self._anchored[foot] or slips[foot]:
                self.filter.set_anchor(foot, points[foot], _PLACED ** 2)
                self._anchored[foot], self._levelled[foot] = True, False
            elif not self._levelled[foot] and self._pressure.shares[foot] > _STANDS:
                self._levelled[foot] = True
                self._measure_height(foot)
        return bool(held) or not any(in_contact) or not any(slips)

    def _measure(self, feet: tuple[int, ...], points: Array, elapsed: float) -> None:
        """Update with where feet are: at their anchors."""
        H = self._jacobians.get(feet)
        if H is None:
            H = self._jacobians[feet] = self.filter.anchor_jacobian(feet)
        innovation = (points - self.filter.anchors + self.filter.position)[list(feet)]
        variances = [
            self.legs.variance(foot, error, self.filter.anchor_variance(foot), elapsed)
            for foot, error in zip(feet, innovation)]
        self.filter.update(H, innovation.reshape(-1), np.array(variances).repeat(3))

    def _measure_height(self, foot: int) -> None:
        """Update with the height of the floor, where it is level, once per step."""
        if self._settings.level_floor and not self.filter.update(
                self.filter.height_jacobian(foot), self.filter.anchors[foot, 2:],
                _FLOOR ** 2, _FLOOR_GATE):
            self._other_heights, self._other_height_ns = self._other_heights + 1, self._time_ns

    def _check_imu(self, stamp_ns: int, state: RobotState, in_contact: tuple[bool, ...]) -> None:
        """Compare the IMU with the joints while the robot stands; measure the gyroscope's bias."""
        mean = self._standing.update(
            stamp_ns, self._readings.values, state.placements_in_base(self._frames),
            all(in_contact))
        if not all(in_contact):
            self._gyro_bias.interrupt()
        if mean is None:
            return
        oriented = self._orientation()
        self._judge('gyroscope', gyroscope_problem(mean))
        self._judge('accelerometer', accelerometer_problem(
            mean, None if oriented is None else oriented[2], self._settings.gravity))
        rows, found = self.filter.gyro_bias_rows, self.filter
        deviation = math.sqrt(max(found.covariance.diagonal()[rows]))
        measured = self._gyro_bias.measure(mean, found.biases[0], deviation)
        if measured is not None:
            H, error = np.zeros((3, found.size)), found.biases[0] - measured
            H[:, rows] = np.eye(3)
            found.widen_gyro_bias(np.abs(error).max() - 4.0 * deviation)
            found.update(H, error, GyroBias.DEVIATION ** 2)

    # -- result

    def _place(self, state: RobotState, in_contact: tuple[bool, ...],
               restarted: bool) -> FilteredBase:
        found = self.filter
        R_world_base, placed = state.along_world(self._frames, found.R_world_imu)
        position = found.position - placed[-1, 3]
        self.sole_placements = placed[:-1].copy()
        self.sole_placements[:, 3] += position
        self.stance = Stance(self.sole_placements[:, 3], in_contact)
        return FilteredBase(
            Pose(R_world_base, position), -placed[-1, 3], found.R_world_imu, found.velocity,
            found.covariance, found.gyro_bias_rows, self.gyro, self._readings.gyro_variance,
            self._readings.values[3:] - found.biases[1], restarted)

    def twist(self, state: RobotState, base: FilteredBase) -> Twist:
        """
        Return the twist of the base along its axes.

        Parameters
        ----------
        state
            With joint velocities.
        base
            Its :meth:`update`.

        """
        imu = state.placements_in_base(self._imu)
        R_imu_base, point = imu[0, :3], imu[0, 3]
        angular = base.gyro.dot(R_imu_base)
        linear = base.velocity.dot(base.pose.rotation)
        if self._imu_moves:
            moves, turns = state.twists_in_base(self._imu, imu)[0]
            angular, linear = angular - turns, linear - moves
        return Twist(linear - skew(angular).dot(point), angular)
