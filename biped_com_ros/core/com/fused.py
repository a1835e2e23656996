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
The fused CoM: constants of the robot and its foot sensors by one linear estimate.

The wrenches of the feet and the motion of the model have to balance. About the model's centre of
mass, along the axes of the base:

    y = (force, moment of the feet) - (rate of the model's momentum, less its weight) = H x + noise

x are errors that stay as they are: mass and first moment of each body, a load on the trunk, and of
each foot sensor the bias, gains and cross-talk, orientation and place, and the delay of all. With
their prior deviations the problem is linear and Gaussian, so that the estimate cannot be worse
than the URDF in the mean of the robots that these describe. A load is a hypothesis beside the one
of none: as a prior that is always open it would throw away what the URDF knows.

Cross-talk and orientation are not estimated; their covariance with the others is kept
(Schmidt-Kalman). Columns that multiply readings contain the noise of these, and would explain it:
at rest they are of means over two seconds.

That sensors are far better than usual is another hypothesis, a rare one: what they cannot explain
is then in the links. Evidence is that of estimates of all numbers, since innovations of a
Schmidt-Kalman filter depend on each other.

Rows are means under a triangular window, whose derivative lets the white noise of joint velocities
cancel: one each 0.2 s while the robot stands, and each 0.1 s while it steps, since steps are what
tells of heights. The noise of a row comes from second differences of its residuals, in which what
lasts cancels. While nothing carries the robot, or readings are missing, there are no rows: the
constants stay, and the place comes from kinematics.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
import math

from biped_com_ros.core.com.estimate import com_velocity_along_base
from biped_com_ros.core.constants import NEVER_NS
from biped_com_ros.core.geometry.pose import Array, cross, Pose
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.model.frames import FrameSet, ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import (
    gravity_setting, Settings, wrench_delay_setting)
from biped_com_ros.core.signals.filters import MovingAverage
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pinocchio as pin

#: Numbers of x that a foot sensor has: bias 6, gains and cross-talk 36, rotation 3, place 3.
PER_SENSOR = 48
#: Longest time between two instants, s.
_GAP = 0.1
#: Time over which the wrenches of a robot at rest are averaged, s.
_RESTING = 2.0
#: Shortest step, s.
_SHORTEST = 1e-3
#: Length of a mean, s, and means from one row to the next: while the robot stands, and steps.
_MEAN, _PER_ROW = 0.02, (10, 5)
_WINDOWS = tuple(np.array((*range(1, n + 1), *range(n - 1, 0, -1))) / n ** 2 for n in _PER_ROW)
#: Time after the last step for which it counts as stepping, s.
_STEPPING = 2.0
#: Share of the weight that the feet carry at least in a row, and below which a foot is lifted.
_GROUNDED, _LIFTED = 0.3, 0.05
#: Factor of the noise while a foot is lifted: errors repeat with the stride.
_STRIDE = 10.0
#: The external force is a mean over so long, s, of a mean: impacts are misplaced in time by less.
_PUSH_WINDOW = 0.019
#: Lever of a push from the CoM, as a share of the height of the CoM; level force that needs no
#: push, as a share of the weight.
_PUSH_LEVER, _NO_PUSH = 0.75, 0.007
#: Spectral density of the acceleration by forces, m^2/s^3: what sensors and pushes leave unknown.
_UNKNOWN = 1.6e-5
#: Time over which the noise of the kinematic velocity is measured, s.
_NOISE_MEMORY = 0.5
#: Share of its rate of momentum that the model may be wrong.
_MODEL = 0.01
#: Level acceleration, as a share of gravity, and joint speed, rad/s, above which a row is not one
#: of rest.
_MOVES, _TURNS = 0.003, 0.025
#: Prior probability of a load, its largest log odds, and random walks of load and bias per root
#: of a second, as a share of their deviations.
_LOADED, _LARGEST_ODDS, _LOAD_DRIFT, _BIAS_DRIFT = 0.3, 12.0, 3e-3, 3e-3
#: Deviations of good sensors, as a share of the usual ones: of what they read, and of their place
#: and orientation, which contain joint offsets; and the prior probability of such sensors.
_GOOD, _GOOD_PLACE, _GOOD_PRIOR = 0.02, 1.0 / 3.0, 0.01
_SPREADS = np.repeat((1.0, _GOOD ** 2, 1.0), 2)
#: Share of the evidence of a row that is new, and largest change of the log odds by one.
_INDEPENDENT, _OF_ONE_ROW = 0.67, 3.0
#: Normalised square of a row beyond which, so many times in turn, something was taken or put down.
_CHANGED, _SURE_CHANGES = 60.0, 3
#: Of each of the six numbers of a sensor: where its share of each axis is among its columns.
_READS = 6 + np.arange(6)[:, np.newaxis] + 6 * np.arange(6)
#: Which of its numbers are estimated: bias, gains and place.
_ESTIMATED = np.isin(np.arange(PER_SENSOR), (*range(6), *range(6, 42, 7), *range(45, 48)))
#: How many times as far a load may be up or down the robot as it is to a side.
_TALL = 3.0
#: Levers of moments per force, as shares of the height of the CoM: of biases, and of cross-talk.
_BIAS_LEVER, _CROSS_LEVER = 0.075, 0.25
#: Deviation of the velocity of a base that has no filter: m/s, and as a share, since legs give.
_LEAST_SPEED, _GIVES = 2e-3, 0.1
#: Share of the robot's mass above which no load is credible; what may be missing of the URDF's.
_LARGEST_LOAD, _MISSING = 0.5, 0.15
#: Standard deviations of links and load, as they are before any measurement, beyond which a centre
#: of mass is not credible.
_CREDIBLE = 6.0
#: Variance that is left where nothing may be wrong, m^2.
_ROUNDING = 1e-12
#: Least deviations of a row over the weight: moment, m, vertical and level force.
_LEAST = np.array((1e-5, 1e-5, 1e-5, 1e-4, 5e-3, 5e-3, 5e-3))

#: A mean: y and H of force and moment, spin, vertical force, and the smallest one of a foot.
_Mean = tuple[Array, Array, float, float, float]


@dataclass(frozen=True, kw_only=True)
class FusedComSettings(Settings):
    """Standard deviations of what may be wrong; where a calibration left less, that counts."""

    #: Of a load, as a share of the robot's mass.
    load_mass: float = 0.1
    #: Of a load's first moment about the trunk's CoM over the robot's mass, as a share of the
    #: height of the CoM.
    load_moment: float = 0.015
    #: Of the mass of each link of the URDF, as a share of it.
    link_mass: float = 0.08
    #: Of the centre of mass of each link of the URDF, per axis, m.
    link_com: float = 0.005
    #: Of each foot sensor, as a share of the weight (moments: of a lever, too): that of one that
    #: drifted for half an hour.
    sensor_bias: float = 0.01
    #: Of each of its axes.
    sensor_gain: float = 0.02
    #: Of what an axis has of the others (moments over a lever).
    sensor_crosstalk: float = 0.01
    #: Of its orientation, with the effect of joint offsets, rad.
    sensor_rotation: float = 0.003
    #: Of its place, with the effect of joint offsets, m.
    sensor_frame: float = 0.003
    wrench_delay: float = wrench_delay_setting()
    #: Standard deviation of wrench_delay, whose error is estimated, s.
    delay_deviation: float = 0.003
    #: Of the CoM by joint offsets and the mounting of the IMU: never observable, m.
    kinematics: float = 0.0007
    gravity: float = gravity_setting()


class _Motion:
    """
    Motion of the root from the twist of the base: no IMU is needed.

    Attributes
    ----------
    v, rate
        Pinocchio's velocity with a root that does not move linearly, and acceleration with the
        proper acceleration of the root, (nv,), of the middle of the last step.

    """

    def __init__(self, model: RobotModel, gravity: float) -> None:
        root = model.state(np.zeros(len(model.joint_names))).placements_in_base(
            model.frames(model.frame_names[:1]))[0]
        self.R_root_base, self.root = root[:3].copy(), root[3].copy()
        self._up, self._is_offset = np.array((0.0, 0.0, gravity)), bool(self.root.any())
        self.reset()

    def reset(self) -> None:
        """Forget the instant before."""
        self._before: tuple[Array, Array] | None = None

    def update(self, dt: float, state: RobotState, twist: Twist) -> bool:
        """Update with an instant `dt` after the one before; return whether there is a motion."""
        v = state.v.copy()
        v[3:6] = self.R_root_base.dot(twist.angular)
        before, self._before = self._before, (v, twist.linear)
        if before is None:
            return False
        omega = self.R_root_base.T.dot(0.5 * (v + before[0])[3:6])
        linear = 0.5 * (twist.linear + before[1])
        proper = ((twist.linear - before[1]) / dt + cross(omega, linear)
                  + state.base.rotation.T.dot(self._up))
        self.v, self.rate = 0.5 * (v + before[0]), (v - before[0]) / dt
        if self._is_offset:
            turning = self.R_root_base.T.dot(self.rate[3:6])
            proper += cross(turning, self.root) + cross(omega, cross(omega, self.root))
        self.v[:3], self.rate[:3] = 0.0, self.R_root_base.dot(proper)
        return True


class FusedComEstimator:
    """
    Estimates the CoM of a robot that stands or walks.

    Parameters
    ----------
    model
        The robot.
    settings
        What may be wrong.
    load_link
        Link to which a load is fixed; '' for the trunk.

    Attributes
    ----------
    external_force
        Force on the robot other than at its feet, in the world, (3,), N.
    is_started
        Whether there is an estimate.
    uses_wrenches
        Whether the feet have sensors that measure whole wrenches.
    unexplained, changes
        Number of rows so far that fit neither hypothesis, and of changes of the load that several
        such rows in turn show. What is put down fits the one of no load, and is none of them.
    unexplained_ns
        Stamp of the last of these rows; :data:`NEVER_NS` without any.
    refused
        Number of the latest rows in turn of that kind; 0 once one is used.

    """

    def __init__(self, model: RobotModel, settings: FusedComSettings | None = None,
                 load_link: str = '') -> None:
        self._model = model
        self.settings = _after_calibration(settings or FusedComSettings(), model)
        self._weight, self._height = model.mass * self.settings.gravity, model.com_height
        self._pin = pin.Model(model.pin_model)
        self._pin.gravity = pin.Motion.Zero()
        self._data = pin.Data(self._pin)
        self._motion = _Motion(model, self.settings.gravity)
        #: Wrenches of virtual feet come from the balance itself, and vertical forces alone do not
        #: balance.
        self.uses_wrenches = not model.config.feet_with_force_z and not any(
            foot.is_virtual for foot in model.config.feet.values())
        self._sensors = sensors_in_soles(model)
        self._set_bodies(load_link or trunk(model))
        self._prior = self._prior_covariance(load_link or trunk(model))
        n = self._first_sensor  # links and a load, whose centre of mass a robot may have
        self._loaded = self._prior[:n, :n].copy()
        self._loaded[self._load, self._load] = self._load_prior
        self.reset()

    # -- what is estimated

    def _set_bodies(self, load_link: str) -> None:
        """Group the links by joint, and by whether foot sensors weigh them; last is the load."""
        model, config = self._model, self._model.config
        beyond = {int(i) for foot in config.feet.values() for name in foot.wrench_sensors
                  for i in model.subtree_links(
                      config.wrench_sensors[name].link or config.wrench_sensors[name].frame)}
        groups: dict[tuple[int, bool], list[int]] = {}
        for i, joint in enumerate(model.frames(model.link_names).joints.tolist()):
            if model.link_masses[i] > 0.0:
                groups.setdefault((joint, i not in beyond), []).append(i)
        self._groups = groups
        load = int(model.frames((load_link,)).joints[0])
        self._joints = np.array([joint for joint, _ in groups] + [load])
        self._weighed = np.repeat([weighed for _, weighed in groups] + [True], 4)
        self._columns = (10 * (self._joints[:, np.newaxis] - 1) + np.arange(4)).ravel()
        self._first_sensor = 4 * len(self._joints)
        #: Which numbers are estimated. The covariance of the others, cross-talk and orientation,
        #: with these is kept (Schmidt-Kalman).
        self._is_estimated = np.concatenate((
            np.ones(self._first_sensor), np.tile(_ESTIMATED, len(self._sensors)),
            (1.0,)))[:, np.newaxis]
        self._load = slice(self._first_sensor - 4, self._first_sensor)
        self._size = self._first_sensor + PER_SENSOR * len(self._sensors) + 1
        self._bodies = FrameSet([f'body {k}' for k in range(len(self._joints))],
                                self._joints.tolist(), [Pose.identity()] * len(self._joints))

    def _prior_covariance(self, load_link: str) -> Array:
        model, s, n = self._model, self.settings, self._size
        links = model.frames(model.link_names)
        coms = [pose.apply(com) for pose, com in zip(
            links.poses_in_joint(), model.link_coms_in_link)]
        prior = np.zeros((n, n))

        def spread(com: Array, mass: float, moment: float) -> Array:
            column = np.array((1.0, *com))
            return (mass ** 2 * np.outer(column, column)
                    + moment ** 2 * np.diag((0.0, 1.0, 1.0, 1.0)))
        for k, members in enumerate(self._groups.values()):
            for i in members:
                mass = float(model.link_masses[i])
                prior[4 * k:4 * k + 4, 4 * k:4 * k + 4] += spread(
                    coms[i], s.link_mass * mass, s.link_com * mass)
        com = (coms[model.link_names.index(load_link)] if load_link in model.link_names
               else np.zeros(3))
        moment = s.load_moment * self._height * model.mass
        self._load_prior = spread(com, s.load_mass * model.mass, moment)
        frame = model.frames((load_link,))
        up = model.state(model.usual_posture()).placements_in_base(frame)[0, :3, 2]
        up = frame.poses_in_joint()[0].rotation.dot(up)
        self._load_prior[1:, 1:] += (_TALL ** 2 - 1.0) * moment ** 2 * np.outer(up, up)
        units = np.repeat((1.0, _CROSS_LEVER * self._height), 3)
        reads = s.sensor_crosstalk * np.outer(units, 1.0 / units) * (1.0 - np.eye(6))
        reads += s.sensor_gain * np.eye(6)
        bias = self._weight * np.repeat((1.0, _BIAS_LEVER * self._height), 3)
        of_sensor = np.concatenate((s.sensor_bias * bias, reads.ravel(),
                                    np.full(3, s.sensor_rotation), np.full(3, s.sensor_frame)))
        first, count = self._first_sensor, len(self._sensors)
        prior[range(first, n), range(first, n)] = np.square(
            (*np.tile(of_sensor, count), s.delay_deviation))
        self._drift = np.zeros(n)
        for k in range(count):
            at = first + PER_SENSOR * k
            self._drift[at:at + 6] = (_BIAS_DRIFT * s.sensor_bias * bias) ** 2
        return prior

    def reset(self) -> None:
        """Reset all estimates."""
        n = self._size
        #: Of the hypotheses, without a load and with one each: usual sensors, good ones, and usual
        #: ones of which all is estimated, for the evidence only.
        self._x, self._P = np.zeros((6, n)), np.array([self._prior] * 6)
        self._P[1::2, self._load, self._load] = self._load_prior
        good = np.repeat((_GOOD, _GOOD_PLACE), (PER_SENSOR - 6, 6)) ** 2
        sensors = range(self._first_sensor, n - 1)
        self._P[2:4, sensors, sensors] *= np.tile(good, len(self._sensors))
        #: Logarithms of probabilities: of the sensors, and of no load or one.
        self._logs = np.log(np.outer((1.0 - _GOOD_PRIOR, _GOOD_PRIOR), (1.0 - _LOADED, _LOADED)))
        self.refused, self._learnt = 0, [0, 0]
        self._variances: list[Array | None] = [None, None]
        self._rests: deque[tuple[Array, Array]] = deque(maxlen=3)
        self._noise = 0.0
        self._idle, self._is_idle, self._moves = 0.0, False, False
        self.unexplained = self.changes = 0
        self.unexplained_ns = NEVER_NS
        self.is_started, self._mass = False, float(self._model.mass)
        self._restart()

    def _restart(self) -> None:
        """Begin anew after a gap; what has been estimated is kept."""
        self._motion.reset()
        self._time = self._mean_time = self._short = 0.0
        self._rows_of_model: deque[tuple[float, Array]] = deque()
        self._sum: Array | None = None
        self._count = self._fresh = 0
        self._calm, self._stepping = _STEPPING, False
        self._means: deque[_Mean] = deque(maxlen=len(_WINDOWS[0]))
        self._rests.clear()
        self._measured: Array | None = None
        self._resting: Array | None = None
        self.external_force, self._explained, self._of_sensors = np.zeros((3, 3))
        self._averages = [MovingAverage(_PUSH_WINDOW, 3) for _ in range(2)]
        self._late: Array | None = None
        self._accelerated = np.zeros(3)
        self._differences: deque[Array] = deque(maxlen=3)

    # -- instants

    def update(self, dt: float, located: LocatedState) -> None:
        """
        Update with one instant.

        Parameters
        ----------
        dt
            Time since the one before, s; not positive, or infinite, after a gap.
        located
            The robot, with wrenches of the feet where they are measured.

        """
        state, twist = located.state, located.twist
        self._located, is_first, self.is_started = located, not self.is_started, True
        if is_first:
            self._update_output()
        if located.wrenches is None or twist is None or not self.uses_wrenches:
            self._go_idle(dt)
            self._now = self._by_kinematics()
            return
        self._is_idle, self._now = False, self._by_kinematics()
        dt += self._short
        if 0.0 <= dt < _SHORTEST and not located.restarted:  # stamps of arrival come in bunches
            self._short = dt
            self._now = self._now[0], self._velocity(self._now[1])
            return
        self._short = 0.0
        if not 0.0 < dt < _GAP or located.restarted:
            self._restart()
        if not self._motion.update(dt, state, twist):
            self._update_output()
            return
        self._time += dt
        wrenches = np.array(located.wrenches)
        self._integrate(dt, self._add(dt, state, wrenches))
        if self._count == 1 or self._mean_time - 0.5 * dt <= 0.5 * _MEAN:
            self._middle = state
        if self._mean_time >= _MEAN - 1e-6:
            self._end_mean(len(wrenches))

    def _go_idle(self, dt: float) -> None:
        """Go on without a balance; the posture may change."""
        if not self._is_idle:
            self._restart()
        self._is_idle, self._idle = True, self._idle + (dt if 0.0 < dt < _GAP else _MEAN)
        if self._idle >= _MEAN:
            self._idle = 0.0
            self._update_output()

    def _velocity(self, by_kinematics: Array) -> Array:
        """Return the velocity of now; that by kinematics before there is another."""
        if self._late is None:
            return by_kinematics
        return self._late + self.settings.wrench_delay * self._accelerated

    def _add(self, dt: float, state: RobotState, wrenches: Array) -> Array:
        """Add an instant, and the motion of its wrenches; return their force in the world, N."""
        motion, soles, com = self._motion, state.placements_in_base(
            self._model.soles), state.com_in_base
        wrench = pin.rnea(self._pin, self._data, state.q, motion.v, motion.rate)[:6]
        R, p = motion.R_root_base.T, motion.root - com
        force = R.dot(wrench[:3])
        # Differences of one step belong to its middle.
        self._rows_of_model.append((self._time - 0.5 * dt, np.concatenate(
            (force, R.dot(wrench[3:]) + cross(p, force), R.dot(motion.rate[:3])))))
        of_model = self._of_model(self._time - self.settings.wrench_delay)
        pairs = np.matmul(wrenches.reshape(-1, 2, 3), soles[:, :3])  # force and moment
        pairs[:, 1] += np.matmul(skew(soles[:, 3] - com), pairs[:, 0, :, np.newaxis])[:, :, 0]
        measured = pairs.sum(axis=0).ravel()
        sample = np.concatenate((measured - of_model[:6], of_model[6:], measured,
                                 wrenches.ravel(), motion.rate, motion.v))
        self._sum = dt * sample if self._sum is None else self._sum + dt * sample
        self._count += 1
        self._mean_time += dt
        R_world_base = state.base.rotation
        added = self._mass - self._model.mass
        force = R_world_base.dot(self._explained + added * of_model[6:] - sample[:3])
        for average in self._averages:
            force = average.update(force, dt)
        self.external_force = force
        force_in_world: Array = R_world_base.dot(measured[:3])
        return force_in_world

    def _integrate(self, dt: float, force: Array) -> None:
        """Update the velocity with the force of the feet, (3,), N, in the world."""
        position, velocity = self._now
        R_world_base = self._located.state.base.rotation
        force = force + self.external_force - R_world_base.dot(self._of_sensors)
        acceleration = force / self._mass - np.array((0.0, 0.0, self.settings.gravity))
        before, self._accelerated = self._accelerated, acceleration
        delay = self.settings.wrench_delay
        if self._late is None:
            self._late, before = velocity, acceleration
        late = self._late + 0.5 * dt * (before + acceleration)
        # What forces explain is as late as they are.
        error = velocity - delay * acceleration - late
        self._differences.append(error)
        if len(self._differences) == 3:
            first, second, third = self._differences
            bend = first - 2.0 * second + third
            self._noise += min(dt / _NOISE_MEMORY, 1.0) * (bend.dot(bend) / 18.0 - self._noise)
        share = dt / max(math.sqrt(self._noise * dt / _UNKNOWN), dt)
        self._late = late + share * error
        self._now = position, self._velocity(velocity)

    def _of_model(self, time: float) -> Array:
        """Return wrench and proper acceleration of the model at a time, s, interpolated, (9,)."""
        rows = self._rows_of_model
        while len(rows) > 2 and rows[1][0] <= time:
            rows.popleft()
        (begin, first), (end, last) = rows[0], rows[min(1, len(rows) - 1)]
        share = min(max((time - begin) / (end - begin), 0.0), 1.0) if end > begin else 0.0
        return first + share * (last - first)

    def _end_mean(self, feet: int) -> None:
        """Add a mean over 20 ms with its columns, and learn where a row is complete."""
        assert self._sum is not None
        mean, state, nv = self._sum / self._mean_time, self._middle, self._pin.nv
        elapsed, self._sum, self._count, self._mean_time = self._mean_time, None, 0, 0.0
        y, acceleration, measured = mean[:6], mean[6:9], mean[9:15]
        wrenches, rate, v = mean[15:15 + 6 * feet].reshape(feet, 6), mean[-2 * nv:-nv], mean[-nv:]
        up = state.base.rotation[2]
        if self._resting is None or self._moves:
            self._resting = wrenches
        self._resting = self._resting + elapsed / _RESTING * (wrenches - self._resting)
        H = self._balance_columns(state, wrenches, self._resting, rate, v, up)
        if self._measured is not None and self._moves:
            H[:, -1] = (self._measured - measured) / elapsed
        self._measured = measured
        self._update_output()
        x, first = self.x, self._first_sensor
        # Beside the added mass, which accelerates as the root does, at each instant.
        self._explained = H[:3].dot(x) - (self._mass - self._model.mass) * acceleration
        self._of_sensors = H[:3, first:].dot(x[first:])
        self._means.append((y, H, float(np.linalg.norm((measured - y)[3:5])),
                            float(up.dot(measured[:3])), float(wrenches[:, 2].min())))
        self._fresh += 1
        self._calm = 0.0 if self._means[-1][4] < _LIFTED * self._weight else self._calm + _MEAN
        if self._stepping != (self._calm < _STEPPING):
            self._stepping = not self._stepping
            self._rests.clear()
        window = _WINDOWS[self._stepping]
        if len(self._means) >= len(window) and self._fresh >= _PER_ROW[self._stepping]:
            self._fresh = 0
            self._learn(up, window, list(self._means)[-len(window):])

    def _balance_columns(self, state: RobotState, wrenches: Array, resting: Array, rate: Array,
                         v: Array, up: Array) -> Array:
        """Return what each number of x adds to the balance, (6, n)."""
        motion, com = self._motion, state.com_in_base
        R, p = motion.R_root_base.T, motion.root - com
        level = R.dot(rate[:3]) - up * up.dot(R.dot(rate[:3]))
        self._moves = (math.sqrt(level.dot(level)) > _MOVES * self.settings.gravity
                       or np.abs(v[6:]).max() > _TURNS)
        if not self._moves:
            # At rest noise must not look like a motion, which tells of heights.
            v, rate, wrenches = np.zeros_like(v), np.zeros_like(rate), resting
            rate[:3] = self.settings.gravity * R.T.dot(up)
        Y = pin.computeJointTorqueRegressor(
            self._pin, self._data, state.q, v, rate)[:6, self._columns] * self._weighed
        H, first = np.zeros((6, self._size)), self._first_sensor
        H[:3, :first] = R.dot(Y[:3])
        H[3:, :first] = R.dot(Y[3:]) + skew(p).dot(H[:3, :first])
        soles = state.placements_in_base(self._model.soles)
        for k, pose in enumerate(self._sensors):
            R_sole = soles[k, :3].T
            at = soles[k, 3] + R_sole.dot(pose.position) - com
            force = pose.rotation.T.dot(wrenches[k, :3])
            moment = pose.rotation.T.dot(wrenches[k, 3:] - cross(pose.position, wrenches[k, :3]))
            columns = np.zeros((6, PER_SENSOR))
            columns[:, :6] = np.eye(6)
            columns[range(6), _READS] = np.concatenate((force, moment))[:, np.newaxis]
            columns[:3, 42:45] = columns[3:, 45:] = -skew(force)
            columns[3:, 42:45] = -skew(moment)
            R_sensor = R_sole.dot(pose.rotation)
            forces = R_sensor.dot(columns[:3])
            block = slice(first + PER_SENSOR * k, first + PER_SENSOR * (k + 1))
            H[:3, block] = forces
            H[3:, block] = R_sensor.dot(columns[3:]) + skew(at).dot(forces)
        return H

    # -- estimation

    def _learn(self, up: Array, window: Array, means: list[_Mean]) -> None:
        """Update all hypotheses with a row."""
        n, elapsed = self._size, _MEAN * _PER_ROW[self._stepping]
        self._P.reshape(6, -1)[:, ::n + 1] += np.outer(_SPREADS, self._drift * elapsed)
        self._P[1::2, self._load, self._load] += _LOAD_DRIFT ** 2 * elapsed * self._load_prior
        if min([mean[3] for mean in means]) < _GROUNDED * self._weight:
            self._rests.clear()
            return
        y, H = self._row(up, window, means)
        if y[3] < -_MISSING * self._weight:  # something else carries, or a sensor fails
            self._refuse()
            return
        self._rests.append((y, H))
        white = self._white_noise()
        if white is None:
            return
        S, push = self._noise_of_row(y - H.dot(self.x), white, means)
        innovations = [self._innovation(k, y, H, S) for k in range(6)]
        if not push and min([nis for nis, *_ in innovations]) > _CHANGED:
            # Something was taken up, or this is an outlier: the next rows tell.
            self._refuse()
            if self.refused < _SURE_CHANGES:
                return
            self.changes += 1
            self._open_load()
            innovations = [self._innovation(k, y, H, S) for k in range(6)]
        self.refused = 0
        for k, (nis, _, innovation, gain, PHt, total) in enumerate(innovations):
            if push or nis < _CHANGED:  # else its constants would take what it cannot explain
                change = gain.dot(PHt.T)
                self._x[k] += gain.dot(innovation)
                if k < 2:  # not the optimal gain
                    change += change.T - gain.dot(total).dot(gain.T)
                self._P[k] -= change
        # Rows overlap by half, and none decides alone; a push hides what is constant.
        if not push:
            logs = _INDEPENDENT * np.array([
                innovations[k][1] for k in (4, 5, 2, 3)]).reshape(2, 2)
            logs = self._logs + np.maximum(logs - logs.max(), -_OF_ONE_ROW)
            self._logs = np.maximum(logs - logs.max(), -_LARGEST_ODDS)
        self._update_output()

    @staticmethod
    def _row(up: Array, window: Array, means: list[_Mean]) -> tuple[Array, Array]:
        """Return y and H of the moment, the vertical and the level force, (7,) and (7, n)."""
        T = np.zeros((7, 6))
        T[:3, 3:], T[3, :3], T[4:, :3] = np.eye(3), up, np.eye(3) - np.outer(up, up)
        return (T.dot(sum([k * mean[0] for k, mean in zip(window, means)])),
                T.dot(sum([k * mean[1] for k, mean in zip(window, means)])))

    def _noise_of_row(self, rest: Array, white: Array, means: list[_Mean]) -> tuple[Array, float]:
        """Return the covariance of a row, (7, 7), and the square of the push in it, N^2."""
        # A level force that nothing explains acts at an unknown height.
        known = 9.0 * (np.trace(white[4:, 4:]) + (_NO_PUSH * self._weight) ** 2)
        push = max(float(rest[4:].dot(rest[4:])) - known, 0.0)
        spin = max([mean[2] for mean in means])
        is_lifted = min([mean[4] for mean in means]) < _LIFTED * self._weight
        noise = np.array((1.0, 1.0, 1.0, 0.3, 10.0, 10.0, 10.0)) ** 2 * (
            (_PUSH_LEVER * self._height) ** 2 * push + (_MODEL * spin) ** 2)
        noise += (_LEAST * self._weight) ** 2
        return np.diag(noise) + white * (1.0 + _STRIDE * is_lifted), push

    def _refuse(self) -> None:
        """Count a row that fits nothing."""
        self.refused += 1
        self.unexplained, self.unexplained_ns = self.unexplained + 1, self._located.stamp_ns

    def _innovation(self, hypothesis: int, y: Array, H: Array, S: Array,
                    ) -> tuple[float, float, Array, Array, Array, Array]:
        """Return normalised square, log likelihood, innovation, gain, P H' and its covariance."""
        PHt = self._P[hypothesis].dot(H.T)
        total, innovation = H.dot(PHt) + S, y - H.dot(self._x[hypothesis])
        gain = np.linalg.solve(total, PHt.T).T
        if hypothesis < 2:
            gain *= self._is_estimated
        nis = float(innovation.dot(np.linalg.solve(total, innovation)))
        return nis, -0.5 * (nis + float(np.linalg.slogdet(total)[1])), innovation, gain, PHt, total

    def _white_noise(self) -> Array | None:
        """Return the covariance (7, 7) of the noise of a row, by second differences."""
        if len(self._rests) == 3:
            difference = sum([k * (y - H.dot(self.x)) for k, (y, H) in zip(
                (1.0, -2.0, 1.0), self._rests)])
            found = np.outer(difference, difference) / 4.0  # rows overlap by half
            kind = self._stepping
            self._learnt[kind] += 1
            before = self._variances[kind]
            if before is None:
                before = np.diag(np.diag(found) + (_LEAST * self._weight) ** 2)
            self._variances[kind] = before + (found - before) / min(self._learnt[kind] + 1, 50)
        return self._variances[self._stepping]

    def _open_load(self) -> None:
        """Forget the load: something was taken or put down, so that there may be one again."""
        for P in self._P:
            P[self._load] = P[:, self._load] = 0.0
        self._P[1::2, self._load, self._load] = self._load_prior
        self._x[::2, self._load] = 0.0
        self._logs[:] = self._logs.max(axis=1, keepdims=True)

    @property
    def load_probability(self) -> float:
        """Probability that the robot carries a load."""
        return float(self._probabilities[1::2].sum())

    @property
    def _probabilities(self) -> Array:
        """Of usual and good sensors, without a load and with one each, (4,)."""
        found: Array = np.exp(self._logs).ravel()
        return found / found.sum()

    @property
    def x(self) -> Array:
        """Mean of the hypotheses, (n,)."""
        mean: Array = self._probabilities.dot(self._x[:4])
        return mean

    # -- what follows

    @property
    def mass(self) -> float:
        """Estimated mass of robot and load, kg."""
        return self._mass

    @property
    def is_credible(self) -> bool:
        """Whether mass and place are those of the robot with a load."""
        return (-_MISSING < self.mass / self._model.mass - 1.0 < _LARGEST_LOAD
                and self._place < _CREDIBLE ** 2
                and math.isfinite(float(self._x.sum())))

    def _update_output(self) -> None:
        """Compute the error of the CoM in this posture, along the axes of the base."""
        state, twist = self._located.state, self._located.twist
        com, n = state.com_in_base, self._first_sensor
        placements = state.placements_in_base(self._bodies)
        C = np.zeros((3, n))
        C.reshape(3, -1, 4)[:, :, 0] = (placements[:, 3] - com).T
        C.reshape(3, -1, 4)[:, :, 1:] = placements[:, :3].transpose(2, 0, 1)
        p, covariances = self._probabilities, []
        totals = self._model.mass + self._x[:4, 0:n:4].sum(axis=1)
        errors = self._x[:4, :n].dot(C.T) / totals[:, np.newaxis]
        for total, error, P in zip(totals, errors, self._P):
            J = C / total
            J[:, ::4] -= (error / total)[:, np.newaxis]
            covariances.append(J.dot(P[:n, :n]).dot(J.T))
        self._error, self._rate = p.dot(errors), np.zeros(3)
        between = errors - self._error
        self._covariance = (p.dot(np.reshape(covariances, (4, 9))).reshape(3, 3)
                            + (p * between.T).dot(between)
                            + self.settings.kinematics ** 2 * np.eye(3))
        x = self.x[:n].reshape(-1, 4)
        self._mass = float(self._model.mass + x[:, 0].sum())
        possible = (C.dot(self._loaded).dot(C.T) / self._model.mass ** 2
                    + (self.settings.kinematics ** 2 + _ROUNDING) * np.eye(3))
        self._place = float(self._error.dot(np.linalg.solve(possible, self._error)))
        if twist is not None:  # how the joints change it
            still = np.array(com_velocity_along_base(state, twist)) - twist.linear - cross(
                twist.angular, com)
            moments = np.matmul(x[:, np.newaxis, 1:], placements[:, :3])[:, 0]
            linear, angular = state.twists_in_base(self._bodies, placements).transpose(1, 0, 2)
            turned = np.matmul(skew(angular), moments[:, :, np.newaxis]).sum(axis=0)[:, 0]
            self._rate = (x[:, 0].dot(linear - still) + turned) / self._mass

    def _by_kinematics(self) -> tuple[Array, Array]:
        """Return the CoM and its velocity in the world, by kinematics and x."""
        state, twist = self._located.state, self._located.twist
        R, velocity = state.base.rotation, np.zeros(3)
        if twist is not None:
            velocity = (np.array(com_velocity_along_base(state, twist)) + self._rate
                        + cross(twist.angular, self._error))
        return state.base.position + R.dot(state.com_in_base + self._error), R.dot(velocity)

    def now(self) -> tuple[Array, Array]:
        """Return centre of mass, m, and its velocity, m/s, in the world, (3,) each."""
        return self._now

    @property
    def bias(self) -> Array:
        """Error of the kinematic CoM, along the axes of the world, (3,), m."""
        bias: Array = self._located.state.com_in_world - self._now[0]
        return bias

    @property
    def com_covariance(self) -> Array:
        """Covariance of the centre of mass, relative to the base, (3, 3), m^2."""
        R = self._located.state.base.rotation
        covariance: Array = R.dot(self._covariance).dot(R.T)
        return covariance

    @property
    def position_covariance(self) -> Array:
        """Covariance of the centre of mass in the world, with that of a filtered base, (3, 3)."""
        filtered, covariance = self._located.filtered, self.com_covariance
        if filtered is not None:
            arm = self._now[0] - self._located.state.base.position
            J = np.hstack((np.eye(3), -skew(arm)))
            covariance = covariance + J.dot(filtered.pose_covariance).dot(J.T)
        return covariance

    @property
    def velocity_covariance(self) -> Array:
        """Covariance of its velocity in the world, (3, 3), m^2/s^2."""
        located = self._located
        R, twist = located.state.base.rotation, located.twist
        if twist is None:
            return np.full((3, 3), np.inf)
        turn = skew(twist.angular)
        found = turn.dot(self._covariance).dot(turn.T)
        if located.filtered is None:
            speed = float(np.linalg.norm(twist.linear))
            found += (_LEAST_SPEED ** 2 + (_GIVES * speed) ** 2) * np.eye(3)
            return np.array(R.dot(found).dot(R.T))
        J = np.hstack((np.eye(3), -skew(located.state.com_in_base + self._error)))
        found += J.dot(located.filtered.twist_covariance).dot(J.T)
        moves = skew(self._now[1])
        of_attitude = moves.dot(located.filtered.pose_covariance[3:, 3:]).dot(moves.T)
        return np.array(R.dot(found).dot(R.T) + of_attitude)


def _after_calibration(settings: FusedComSettings, model: RobotModel) -> FusedComSettings:
    """Return settings with what a calibration left unknown, by the robot's YAML, where less."""
    return replace(settings, **{name: min(deviation, getattr(settings, name)) for name, deviation
                                in model.config.instruments.deviations.items()})


def sensors_in_soles(model: RobotModel) -> list[Pose]:
    """
    Return the pose of the sensor of each foot in its sole.

    A foot with several sensors, or one that moves relative to its sole, counts as one with a
    sensor at the sole.
    """
    config, found = model.config, []
    for sole, joint, foot in zip(
            model.soles.poses_in_joint(), model.soles.joints, config.feet.values()):
        pose = Pose.identity()
        if len(foot.wrench_sensors) == 1:
            sensor = model.frames((config.wrench_sensors[foot.wrench_sensors[0]].frame,))
            if sensor.joints[0] == joint:
                pose = sole.inverse() @ sensor.poses_in_joint()[0]
        found.append(pose)
    return found


def trunk(model: RobotModel) -> str:
    """Return the heaviest link that is not part of a leg, beyond the base if there is one."""
    leg_joints = {joint for sole in model.soles.joints.tolist()
                  for joint in model.pin_model.supports[sole].tolist() if joint > ROOT}
    joints = model.frames(model.link_names).joints.tolist()
    candidates = [
        (joint != ROOT, mass, name) for name, joint, mass in zip(
            model.link_names, joints, model.link_masses.tolist())
        if not leg_joints & set(model.pin_model.supports[joint].tolist())]
    return max(candidates)[2]
