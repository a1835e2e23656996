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
Tendon lengths that bend the torso as wanted: feedforward by the model, feedback by an IMU.

Feedforward: the tensions that hold the reference against spring, weight and inertia, and the
lengths at which tendons of a known stiffness pull so. Feedback: the bend measured by an IMU,
proportional and integral, and the moment that shape and measured tensions leave unexplained (an
unknown load, a wrong stiffness), which goes into the feedforward. Measured tensions keep the
tendons taut: while one falls below the least tension, all pull more.
Both are used while the IMU is fresh and agrees with the tendons' lengths; without it the torso
goes on in open loop, its last correction kept. What goes out stays within the limits of bend and
tension in any case.

The IMUs below and above need not agree about north: their relative yaw, which drifts, turns
direction and torsion alike, and is told from both by :class:`YawDrift`.

Inside, bends are complex numbers, forward + i left, which cost a tenth of small arrays.
"""

from __future__ import annotations

from cmath import phase, rect
from dataclasses import dataclass, field
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.pose import Array
from biped_com_ros.core.torso.constant_curvature import (
    Backbone, ELONGATION, shape_from_rotation, TORSION)
from biped_com_ros.core.torso.reference import (
    as_complex, as_vector, BendReference, MotionLimits)
from biped_com_ros.core.torso.statics import Load, no_load, TorsoStatics
from biped_com_ros.core.torso.tension import TensionDistributor, TensionLimits
from biped_com_ros.core.torso.workspace import Workspace
import numpy as np

MISTRUST_DECAY = 1.0
"""Time constant with which corrections by an IMU that turned out wrong are forgotten, s."""

GUARD_GAIN, GUARD_DECAY = 6.0, 1.0
"""How fast the least tension rises for every newton missing, 1/s, and falls again, N/s."""

LEVEL_RATE = 0.25
"""How fast what all tendons share follows what is asked for, of the largest tension per s."""

TRIM_RATE = 4.0
"""How fast tensions that cancel one another are brought to what is expected, 1/s."""

TORSION_SPREAD, LENGTHS_SPREAD = 0.05, 0.002
"""How large torsion may be, and how far bends by IMU and by lengths are apart anyhow, rad."""

LARGEST_SEEN = 1.0
"""Bend by IMU from which on it is flipped rather than turned, rad."""

LONGEST_STEP = 0.03
"""Longer gaps between updates count as this long, s: late is better than jerky."""


@dataclass(frozen=True)
class TendonDrive:
    """
    What pulls a tendon: ``F = pretension + stiffness (l - command) + damping dl/dt``.

    Attributes
    ----------
    stiffness
        Of drive and tendon in series, N/m; infinite where nothing gives way.
    pretension
        Tension where the length is the one commanded, N; 0 where commands are unloaded lengths.
    lead
        Damping over stiffness, s: by so much the drive lags behind.

    """

    stiffness: float = 7000.0
    pretension: float = 0.0
    lead: float = 0.0

    def __post_init__(self) -> None:
        if not (self.stiffness > 0.0 and 0.0 <= self.pretension < math.inf
                and 0.0 <= self.lead < 1.0):
            raise ConfigurationError(
                f'a tendon drive needs a positive stiffness, not {self.stiffness} N/m, a '
                f'pretension of 0 or more, not {self.pretension} N, and a lead between 0 and 1 s, '
                f'not {self.lead}')


@dataclass(frozen=True)
class ControllerOptions:
    """
    How the torso is controlled.

    Attributes
    ----------
    motion, drive, tensions
        Limits of the motion, the tendons' drives, limits of the tensions.
    co_contraction
        Tension of every tendon of a straight torso that carries nothing, N.
    proportional, integral
        Gains of the feedback, of bend on bend and 1/s.
    anticipation
        How far ahead the proportional part looks, by the rate of the bend, s: it damps, and makes
        up for delays.
    max_correction
        Most that the feedback adds, rad.
    observer_time
        Time constant with which unexplained moments are taken in, s; 0 leaves them to the gains.
    disagreement
        Bend between IMU and tendon lengths from which the IMU is not believed, rad.
    drift_time
        Time constant with which the relative yaw of the IMUs is learnt, s; 0: they agree on it.
    slack_tension, slack_time, broken_time
        A tendon that pulls less, N, for so long counts as slack, and as broken, s.

    """

    motion: MotionLimits = MotionLimits()
    drive: TendonDrive = TendonDrive()
    tensions: TensionLimits = TensionLimits(3.0, 60.0)
    co_contraction: float = 12.0
    proportional: float = 0.4
    integral: float = 4.0
    anticipation: float = 0.06
    max_correction: float = math.radians(8.0)
    observer_time: float = 0.3
    disagreement: float = math.radians(10.0)
    drift_time: float = 5.0
    slack_tension: float = 0.3
    slack_time: float = 0.05
    broken_time: float = 1.0

    def __post_init__(self) -> None:
        if not self.tensions.lowest <= self.co_contraction <= self.tensions.highest:
            raise ConfigurationError(
                f'co-contraction {self.co_contraction} N is not within the tension limits '
                f'{self.tensions.lowest} and {self.tensions.highest} N')
        for name in ('proportional', 'integral', 'anticipation', 'max_correction',
                     'observer_time', 'drift_time', 'slack_tension', 'slack_time'):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigurationError(f'{name} must not be negative: {getattr(self, name)}')
        if not self.disagreement > 0.0 or not self.broken_time > self.slack_time:
            raise ConfigurationError(
                f'disagreement {self.disagreement} rad must be positive and broken_time '
                f'{self.broken_time} s longer than slack_time {self.slack_time} s')


@dataclass(frozen=True)
class Measurement:
    """
    What is measured; None for what is missing or too old.

    Attributes
    ----------
    rotation
        ``R_base_tip`` by IMUs, shape (3, 3), their relative yaw taken out.
    lengths, tensions
        Of the tendons, (n,), m and N.
    load, inertia
        On the tip, and about it across the backbone, kg m^2.
    up
        The vertical in the base, shape (3,).
    rate
        How fast the shape changes by gyroscopes, (4,), rad/s.

    """

    rotation: Array | None = None
    lengths: Array | None = None
    tensions: Array | None = None
    load: Load = no_load
    inertia: float = 0.0
    up: Array = field(default_factory=lambda: np.array((0.0, 0.0, 1.0)))
    rate: Array | None = None


@dataclass(frozen=True)
class TorsoCommand:
    """
    What the controller wants and knows after an update.

    Attributes
    ----------
    lengths, tensions
        Commanded lengths and the tensions expected of them, (n,), m and N.
    reference
        Shape (4,) where the torso should be now.
    shape
        Shape (4,) where it is: by IMU, or by the model in open loop.
    measured_bend
        Bend (2,) by the IMU, whether or not it is believed; None without one.
    is_closed_loop
        Whether the IMU is used.
    problems
        In words, empty while all is well.

    """

    lengths: Array
    tensions: Array
    reference: Array
    shape: Array
    measured_bend: Array | None
    is_closed_loop: bool
    problems: tuple[str, ...] = field(default=())


class TorsoController:
    """
    From targets and measurements to tendon lengths.

    Parameters
    ----------
    statics, max_bend
        The torso.
    options
        How it is controlled.

    Attributes
    ----------
    drift
        The relative yaw of the IMUs: what measured rotations have to be corrected by.

    """

    def __init__(self, statics: TorsoStatics, max_bend: float,
                 options: ControllerOptions = ControllerOptions()) -> None:
        self.statics, self.backbone, self._max_bend = statics, statics.backbone, max_bend
        self._bend_of_lengths, self._internal = _maps(self.backbone)
        self.reference = BendReference(options.motion)
        self.drift = YawDrift(options.drift_time)
        self.slack = SlackDetector(options, self.backbone.count)
        self.use(options)
        self.reset()

    def use(self, options: ControllerOptions) -> None:
        """Go on with other options, from where the torso is."""
        self.options, count = options, self.backbone.count
        limits, axial = options.tensions, self.statics.stiffness.axial
        self.distributor = TensionDistributor(self.backbone, limits)
        self.workspace = Workspace(self.backbone, self._max_bend, (
            -count * (limits.highest - options.co_contraction) / axial,
            count * (options.co_contraction - limits.lowest) / axial))
        self.reference.limits, self.drift.time = options.motion, options.drift_time
        self.slack.options = options
        self.length_limits = self._length_limits()

    def reset(self, shape: Array | None = None) -> None:
        """Rest at a shape (4,), straight by default, and forget corrections."""
        start = np.zeros(4) if shape is None else self.workspace.clamp(shape).shape
        self._target, self._elongation, self._target_problem = start[:2].copy(), 0.0, ''
        self.reference.reset(start[:2])
        self._integral = self._unexplained = self._half_explained = 0j
        self._guard, self._trim = 0.0, np.zeros(self.backbone.count)
        self._level = self.options.co_contraction
        self._torsion, self._stretch = float(start[TORSION]), 0.0
        self._tensions = np.full(self.backbone.count, self.options.co_contraction)
        self._is_saturated = False
        self.slack.reset()

    @property
    def target(self) -> Array:
        """Return where the torso goes, a shape (4,) with the elongation aimed at."""
        return np.array((*self._target, 0.0, self._elongation))

    def set_target(self, shape: Array) -> str:
        """
        Go to a shape (4,), as near as the workspace allows.

        Its elongation counts from the straight backbone under co-contraction, and is reached by
        pulling more or less; its torsion is not used, since tendons have no hold on it.

        Returns
        -------
        str
            What the workspace does not allow; empty if nothing.

        Raises
        ------
        InputError
            If a number is not finite; the torso goes on to its last target.

        """
        clamped = self.workspace.clamp(shape)
        self._target, self._elongation = clamped.shape[:2].copy(), float(clamped.shape[ELONGATION])
        self._target_problem = clamped.reason
        return clamped.reason

    def hold(self) -> None:
        """Come to rest as soon as the limits of the motion allow, and stay."""
        self._target = self.workspace.clamp(
            np.array((*self.reference.stopping_point(), 0.0, 0.0))).shape[:2].copy()
        self._target_problem = ''

    def update(self, dt: float, measured: Measurement) -> TorsoCommand:
        """
        Let `dt` seconds (positive) pass.

        Raises
        ------
        InputError
            If a measurement is not finite.

        """
        dt = _checked(dt, measured, self.backbone.count)
        self._watch_tensions(dt, measured.tensions)
        self.reference.update(self._target, dt)
        self._contract(dt)
        seen = None if measured.rotation is None else shape_from_rotation(measured.rotation)
        by_lengths = None if measured.lengths is None else self._told_by(measured.lengths)
        problem = self._mistrust(seen, by_lengths)
        believed = None if problem else seen
        if seen is not None:
            self.drift.update(dt, seen, by_lengths, measured.up)
        correction = self._feedback(dt, believed, seen is not None, measured.rate)
        self._observe(dt, believed, measured)
        lengths = self._feedforward(correction, measured)
        reference = self._shape(self.reference.motion[0])
        return TorsoCommand(
            lengths, self._tensions.copy(), reference, self._estimate(believed, reference),
            None if seen is None else seen[:2].copy(), not problem, tuple(filter(None, (
                self._target_problem, problem, self.slack.problem, self._saturation()))))

    def _watch_tensions(self, dt: float, tensions: Array | None) -> None:
        self.slack.update(dt, tensions)
        if self.slack.broken:
            self.hold()
        elif tensions is not None:
            self._keep_taut(dt, tensions)

    def _keep_taut(self, dt: float, tensions: Array) -> None:
        """
        Raise what all tendons pull at least while one falls below its limit, and lower it slowly.

        What tensions do among themselves, without a moment, is held to what was expected of them:
        an elongation or a pretension that the model has wrong would let all of them go loose.
        """
        limits = self.options.tensions
        trim = self._trim
        trim += min(1.0, TRIM_RATE * dt) * self._internal.dot(self._tensions - tensions)
        if trim.dot(trim) > limits.highest * limits.highest:
            trim *= limits.highest / math.sqrt(trim.dot(trim))
        missing = limits.lowest - min(tensions.tolist())
        rate = GUARD_GAIN * missing if missing > 0.0 else -GUARD_DECAY
        most = 0.5 * (limits.highest - self.options.co_contraction)
        self._guard = min(max(self._guard + rate * dt, 0.0), most)

    def _mistrust(self, seen: Array | None, by_lengths: complex | None) -> str:
        """Return why the IMU is not used; empty if it is."""
        if seen is None:
            return 'open loop: no fresh torso IMU'
        expected = self.reference.motion[0] if by_lengths is None else by_lengths
        bend = as_complex(seen[:2])
        if abs(bend - expected) <= self.options.disagreement:
            return ''
        return (f'open loop: the torso IMU says {_words(bend)}, tendons '
                f'{_words(expected)}; is it flipped, or mounted otherwise than in the URDF?')

    def _told_by(self, lengths: Array) -> complex:
        """Return the bend that lengths mean, torsion neglected."""
        return as_complex(self._bend_of_lengths.dot(lengths))

    def _feedback(self, dt: float, seen: Array | None, is_wrong: bool,
                  rate: Array | None) -> complex:
        """Return the correction of the bend that goes into the lengths."""
        o = self.options
        if seen is None:
            if is_wrong:
                self._integral *= math.exp(-dt / MISTRUST_DECAY)
            return self._integral
        a, b, torsion, _ = seen.tolist()
        error = self.reference.motion[0] - complex(a, b)
        winds_up = self._is_saturated and (error * self._integral.conjugate()).real > 0.0
        if not winds_up:
            self._integral = _limited(self._integral + o.integral * dt * error, o.max_correction)
        self._torsion += min(1.0, 20.0 * dt) * (torsion - self._torsion)
        if rate is not None:
            error += o.anticipation * (self.reference.motion[1] - as_complex(rate[:2]))
        return _limited(self._integral + o.proportional * error, o.max_correction)

    def _observe(self, dt: float, seen: Array | None, measured: Measurement) -> None:
        """Take in the moment on the tip that the model does not explain."""
        tensions, time = measured.tensions, self.options.observer_time
        if seen is None or tensions is None or not time:
            return
        if self.slack.broken:
            self._unexplained *= math.exp(-dt / MISTRUST_DECAY)
            self._half_explained = self._unexplained
            return
        shape = np.array((*seen[:3].tolist(), self._stretch))
        pull = as_complex(self.backbone.moment_columns(shape).dot(tensions))
        moment = (as_complex(self.statics.bending_moment(shape, measured.load)) - pull
                  + measured.inertia * self.reference.motion[2])
        share = -math.expm1(-dt / time)
        # Two poles: one alone would turn what the torso's inertia leaves into negative damping.
        self._half_explained += share * (moment - self._half_explained)
        most = 0.5 * self.backbone.radius * self.options.tensions.highest
        self._unexplained = _limited(
            self._unexplained + share * (self._half_explained - self._unexplained), most)

    def _feedforward(self, correction: complex, measured: Measurement) -> Array:
        """Return the lengths (n,) for reference and correction, within all limits."""
        o, (position, velocity, acceleration) = self.options, self.reference.motion
        shape = self._shape(position)
        force = self.statics.of_load(shape, measured.load)
        moment = (self.statics.stiffness.bending * position - as_complex(force[:2])
                  + measured.inertia * acceleration - self._unexplained)
        found = self.distributor.distribute(
            shape, as_vector(moment), self._level + self._guard, self._guard)
        self._tensions = found.tensions
        self._expect(shape, float(force[ELONGATION]), measured)
        wanted = position + o.drive.lead * velocity + correction
        bend = _limited(wanted, self._widest_bend)
        stretch = (self._tensions + self._trim - o.drive.pretension) / o.drive.stiffness
        lengths = self.backbone.approximate_lengths(self._shape(bend)) - stretch
        low, high = self.length_limits
        within = np.minimum(np.maximum(lengths, low), high)
        self._is_saturated = not found.is_feasible or bend != wanted or (
            within.tolist() != lengths.tolist())
        return within

    def _expect(self, shape: Array, axial: float, measured: Measurement) -> None:
        """Learn what follows of itself: elongation, and in open loop torsion."""
        if measured.rotation is not None:
            self._stretch = (axial - float(self._tensions.sum())) / self.statics.stiffness.axial
            return
        expected = self.statics.with_passive_parts(shape, self._tensions, measured.load)
        self._stretch, self._torsion = float(expected[ELONGATION]), float(expected[TORSION])

    def _contract(self, dt: float) -> None:
        """Bring what all tendons share towards what co-contraction and elongation ask for."""
        o = self.options
        pull = self.statics.stiffness.axial * self._elongation / self.backbone.count
        change, most = o.co_contraction - pull - self._level, LEVEL_RATE * o.tensions.highest * dt
        self._level += min(max(change, -most), most)

    def _estimate(self, seen: Array | None, reference: Array) -> Array:
        """Return the shape (4,) the torso has, as far as is known."""
        if seen is None:
            return reference.copy()
        return np.array((*seen[:3].tolist(), self._stretch))

    def _shape(self, bend: complex) -> Array:
        return np.array((bend.real, bend.imag, self._torsion, self._stretch))

    def _saturation(self) -> str:
        return 'tendons cannot hold this bend within their limits' if self._is_saturated else ''

    def _length_limits(self) -> tuple[float, float]:
        """Return the least and largest length ever sent."""
        o, backbone = self.options, self.backbone
        self._widest_bend = self.workspace.max_bend + 0.5 * o.max_correction
        reach = self._widest_bend * backbone.radius
        least, most = o.tensions.lowest, o.tensions.highest
        shortened = backbone.count * most / self.statics.stiffness.axial
        return (backbone.length - reach - shortened - (most - o.drive.pretension)
                / o.drive.stiffness,
                backbone.length + reach + (o.drive.pretension - least) / o.drive.stiffness)


class YawDrift:
    """
    The relative yaw of the two IMUs, told from bend and torsion.

    An error of it turns the tip about the vertical: the bend in another direction, the torsion by
    as much. Lengths of the tendons, read without torsion, show the bend turned back by half of
    the torsion, so that the two are told apart the better the more the torso bends or leans.
    Besides, torsion is small. Both are weighed by how well they are known.

    Parameters
    ----------
    time
        Time constant, s; 0: there is no error.

    Attributes
    ----------
    yaw
        By how much the upper IMU's yaw is too large, rad; the first look counts in full.

    """

    def __init__(self, time: float) -> None:
        self.time, self.yaw, self._is_known = time, 0.0, False

    def update(self, dt: float, seen: Array, by_lengths: complex | None, up: Array) -> None:
        """
        Learn.

        Parameters
        ----------
        dt
            Time since the last look, s.
        seen
            Shape (4,) by IMU, corrected by `yaw`.
        by_lengths
            Bend that lengths mean, torsion neglected; None if they are not known.
        up
            The vertical in the base, (3,).

        """
        if not self.time:
            self.yaw = 0.0
            return
        a, b, torsion, _ = seen.tolist()
        if abs(complex(a, b)) > LARGEST_SEEN:
            return  # flipped: not a matter of yaw
        error = self._error(complex(a, b), torsion, by_lengths, up)
        share = min(1.0, dt / self.time) if self._is_known else 1.0
        self.yaw = math.remainder(self.yaw + share * error, 2.0 * math.pi)
        self._is_known = True

    def _error(self, bend: complex, torsion: float, by_lengths: complex | None,
               up: Array) -> float:
        """Return the yaw that is left, by weighted least squares of bend and torsion."""
        x, y, z = up.tolist()
        weight = 1.0 / TORSION_SPREAD ** 2
        information, evidence = weight * z * z, weight * z * torsion
        if by_lengths is not None:
            back = rect(1.0, -0.5 * torsion)
            slope = back * (complex(y, -x) + 0.5j * z * bend)
            weight = 1.0 / LENGTHS_SPREAD ** 2
            information += weight * abs(slope) ** 2
            evidence += weight * (slope.conjugate() * (back * bend - by_lengths)).real
        return evidence / information if information > 0.0 else 0.0


class SlackDetector:
    """
    Which tendons hang loose.

    Attributes
    ----------
    slack, broken
        Indices of the tendons without tension for a while, and for so long that pulling more did
        not help.

    """

    def __init__(self, options: ControllerOptions, count: int) -> None:
        self.options, self._count = options, count
        self.reset()

    def reset(self) -> None:
        """Take all tendons for taut."""
        self._loose_for, self._is_any_loose = np.zeros(self._count), False
        self.slack: tuple[int, ...] = ()
        self.broken: tuple[int, ...] = ()

    @property
    def problem(self) -> str:
        """Return what is wrong, in words."""
        if self.broken:
            return (f'tendon {", ".join(map(str, self.broken))} stays without tension: broken, or '
                    'its sensor is; holding')
        if self.slack:
            return f'tendon {", ".join(map(str, self.slack))} is slack; pulling all more'
        return ''

    def update(self, dt: float, tensions: Array | None) -> None:
        """Take tensions (n,), N; None if they are not known."""
        if tensions is None:
            return
        if not self._is_any_loose and min(tensions.tolist()) >= self.options.slack_tension:
            return
        is_loose = tensions < self.options.slack_tension
        self._is_any_loose = bool(is_loose.any())
        self._loose_for = np.where(is_loose, self._loose_for + dt, 0.0)
        self.slack = tuple(np.flatnonzero(self._loose_for > self.options.slack_time).tolist())
        self.broken = tuple(np.flatnonzero(self._loose_for > self.options.broken_time).tolist())


def _maps(backbone: Backbone) -> tuple[Array, Array]:
    """
    Return what lengths and tensions mean near the straight torso.

    Two rows that take lengths to a bend whatever the elongation, (2, n), and what takes tensions
    to those of them that have no moment, (n, n).
    """
    columns = backbone.moment_columns(np.zeros(4))
    bends = np.linalg.pinv(np.column_stack((-columns.T, np.ones(backbone.count))))[:2]
    return bends, np.eye(backbone.count) - np.linalg.pinv(columns) @ columns


def _limited(bend: complex, most: float) -> complex:
    size = abs(bend)
    return bend * (most / size) if size > most else bend


def _words(bend: complex) -> str:
    return f'{math.degrees(abs(bend)):.0f} deg towards {math.degrees(phase(bend)):.0f}'


def _checked(dt: float, measured: Measurement, count: int) -> float:
    if not dt > 0.0:
        raise InputError(f'time must pass between updates, not {dt} s')
    for name, values in (('tendon lengths', measured.lengths),
                         ('tendon tensions', measured.tensions)):
        # NaN and infinity survive the product; it costs a tenth of ``np.isfinite().all()``.
        if values is not None and (
                values.shape != (count,) or not values.dot(values) < math.inf):
            raise InputError(f'{name} must be {count} finite numbers, not {values.tolist()}')
    if measured.rate is not None and not math.isfinite(float(measured.rate.sum())):
        raise InputError('the angular velocity of an IMU is not finite')
    if measured.rotation is not None and not math.isfinite(float(measured.rotation.sum())):
        raise InputError('the orientation of the torso IMU is not finite')
    return min(dt, LONGEST_STEP)
