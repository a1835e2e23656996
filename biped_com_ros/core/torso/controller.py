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
Tendon lengths that bend the torso: feedforward by its model, feedback by IMUs.

Feedforward: the tensions that hold the reference against spring, weight and inertia, and the
lengths at which tendons of a known stiffness have these tensions. Feedback: proportional and
integral on the bend measured by the IMUs. A disturbance observer adds the moment that measured
shape and tensions do not explain (an unknown load, a wrong stiffness) to the feedforward. While a
measured tension is below its minimum, all tensions are raised (see :mod:`.slack`).

Feedback is used while the IMUs are fresh and the tendon lengths do not rule them out. Otherwise
the torso is moved in open loop, with its last correction. Commands are always within the limits of
bend and tension.

Lengths give the bend as far as tendons are taut and do not stretch, see :class:`LengthErrors`:
IMUs are judged by what slack and elasticity allow.

An update consists of steps, each with inputs of its own:
:meth:`~TendonController.set_tendons`, :meth:`~TendonController.plan`,
:meth:`~TendonController.set_orientation`, and at the end :meth:`~TendonController.command`.

Bends are complex numbers, forward + i left, see :mod:`.arc`.
"""

from __future__ import annotations

from cmath import isfinite, phase
from collections.abc import Sequence
import math
from operator import mul, sub
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.signals.filters import limited_step
from biped_com_ros.core.torso.arc import Arc
from biped_com_ros.core.torso.constant_curvature import Backbone, ELONGATION, TORSION, Workspace
from biped_com_ros.core.torso.options import ControllerOptions
from biped_com_ros.core.torso.orientation import TorsoOrientation, YawOffsetEstimator
from biped_com_ros.core.torso.reference import as_complex, BendReference, clamped
from biped_com_ros.core.torso.slack import SlackDetector, SlackPrevention
from biped_com_ros.core.torso.statics import Load, no_load, TorsoStatics
from biped_com_ros.core.torso.tension import TensionDistributor
import numpy as np

#: Largest correction by feedback, rad.
_MAX_CORRECTION = math.radians(8.0)
#: Error of the bend by IMUs: above this and the errors of the bend by tendon lengths (root of the
#: sum of squares) the IMU is ignored, rad.
_DISAGREEMENT = math.radians(10.0)

CORRECTION_DECAY = 1.0
"""Time constant with which the corrections by an IMU that is found wrong decay, s."""

LEVEL_RATE = 0.25
"""Largest rate of the common tension of all tendons, in maximum tensions per s."""

SPEED_MARGIN = 2.0
"""Fastest change of a tendon's length over what the fastest bend takes."""

TENSION_TIME = 0.25
"""Time in which a length may change by the stretch of all of a tendon's tension, s."""

ESTIMATION_PERIOD = 0.02
"""Period of the estimates that change slowly: disturbance, trim, yaw offset; s."""

MAX_UPDATE_STEP = 0.03
"""Longer time steps count as this long, s: the torso is late instead of jerking."""

MAX_GYRO = 1000.0
"""Sum of rates above which gyroscopes are ignored, rad/s; none has that range."""

AT_REST: tuple[complex, float] = 0j, 0.0
"""Rates of bend and torsion while they are unknown."""


class Measurement(NamedTuple):
    """
    Measured values; None if missing or stale.

    Attributes
    ----------
    orientation
        By the IMUs, corrected by their relative yaw.
    lengths, tensions
        Of the tendons, m and N.
    load, inertia
        On the tip, and about it across the backbone, kg m^2.
    tendons_age
        Age of lengths and tensions with respect to the orientation, s.

    """

    orientation: TorsoOrientation = TorsoOrientation()
    lengths: Sequence[float] | None = None
    tensions: Sequence[float] | None = None
    load: Load = no_load
    inertia: float = 0.0
    tendons_age: float = 0.0


class LengthErrors(NamedTuple):
    """
    Largest errors of the bend by tendon lengths, rad.

    Attributes
    ----------
    stretch
        By the elasticity of drives and tendons under the measured tensions, if the lengths are
        those of the drives: along the pull, so that the direction of a bend hardly changes.
    slack
        The whole bend by lengths, where a tendon is loose or tensions are unknown: what the drives
        have wound up may then have compressed the backbone or slackened tendons instead.

    """

    stretch: float
    slack: float

    @property
    def deviation(self) -> float:
        """Return the standard deviation, rad: each error is anything from none to the largest."""
        return math.hypot(*self) / math.sqrt(3.0)


class TorsoCommand(NamedTuple):
    """
    Command and state of the controller after an update.

    Attributes
    ----------
    commanded, expected
        Commanded lengths of the tendons, m, and the tensions expected with them, N.
    reference_arc
        Reference of the backbone.
    arc, rates
        Backbone by the IMUs, or the reference in open loop; and the rates of its bend and torsion
        by the gyroscopes.
    is_closed_loop
        Whether the IMUs are used.
    problems
        Descriptions of what is wrong; empty if nothing is.

    """

    commanded: list[float]
    expected: list[float]
    reference_arc: Arc
    arc: Arc
    rates: tuple[complex, float]
    is_closed_loop: bool
    problems: tuple[str, ...] = ()

    @property
    def lengths(self) -> Array:
        """Return the commanded lengths as an array (n,), m."""
        return np.array(self.commanded)

    @property
    def tensions(self) -> Array:
        """Return the expected tensions as an array (n,), N."""
        return np.array(self.expected)

    @property
    def reference(self) -> Array:
        """Return the reference as a shape (4,)."""
        return self.reference_arc.shape

    @property
    def shape(self) -> Array:
        """Return the backbone as an array (4,)."""
        return self.arc.shape


class TendonController:
    """
    From targets and measurements to tendon lengths.

    Parameters
    ----------
    statics, max_bend
        The torso, and its largest bend, rad.
    options
        Settings; None for the defaults of :class:`.ControllerOptions`.

    Attributes
    ----------
    yaw_offset
        Estimator of the relative yaw of the IMUs, by which orientations have to be corrected.
    slack_prevention, slack
        Raises tensions, and detects slack tendons.
    arc, rates
        Backbone, and rates of its bend and torsion, see :meth:`set_orientation`.
    reference_arc
        Reference of the backbone.
    length_limits
        Smallest and largest length that is ever commanded, m.
    largest_rate
        Of a commanded length, m/s; whatever changes, settings among it, no command steps.
    limited_updates, since_limited
        Number of commands that these limits changed, and time since the last one, s.

    """

    def __init__(self, statics: TorsoStatics, max_bend: float,
                 options: ControllerOptions | None = None) -> None:
        options = options or ControllerOptions()
        self.statics, self.backbone, self._max_bend = statics, statics.backbone, max_bend
        self._bend_of_lengths = _bend_of_lengths(self.backbone)
        self.reference = BendReference(options.motion)
        self.yaw_offset = YawOffsetEstimator(options.yaw_offset_time)
        self.slack = SlackDetector(options, self.backbone.count)
        self.slack_prevention = SlackPrevention(self.backbone, options)
        self._commanded: list[float] | None = None
        self.limited_updates, self.since_limited = 0, math.inf
        self.set_options(options)
        self.reset()

    def set_options(self, options: ControllerOptions) -> None:
        """Continue from the present state with other settings."""
        self.options, count = options, self.backbone.count
        limits, axial = options.tensions, self.statics.stiffness.axial
        self.distributor = TensionDistributor(self.backbone, limits)
        self.workspace = Workspace(self.backbone, self._max_bend, (
            -count * (limits.highest - options.co_contraction) / axial,
            count * (options.co_contraction - limits.lowest) / axial))
        self.reference.limits, self.yaw_offset.time = options.motion, options.yaw_offset_time
        self.slack.options = self.slack_prevention.options = options
        self.length_limits = self._length_limits()
        self.largest_rate = (
            SPEED_MARGIN * self.backbone.radius * options.motion.speed
            + (limits.highest - limits.lowest) / (options.drive.stiffness * TENSION_TIME))
        self._taut_tension = max(limits.lowest, options.slack_tension)

    def reset(self, shape: Array | None = None) -> None:
        """Rest at a shape (4,), straight by default, without corrections."""
        self._commanded = None
        start = np.zeros(4) if shape is None else self.workspace.clamp(shape).shape
        self._target, self._elongation, self._target_problem = as_complex(start[:2]), 0.0, ''
        self.reference.reset(start[:2])
        self._integral = self._disturbance = self._filtered_residual = 0j
        self._level = self.options.co_contraction
        self._torsion, self._stretch = float(start[TORSION]), 0.0
        self._tensions = [self.options.co_contraction] * self.backbone.count
        self._is_saturated, self._estimation_time = False, ESTIMATION_PERIOD
        self.slack_prevention.reset()
        self.slack.reset()
        self._bend_by_lengths: complex | None = None
        self._measured_tensions: Sequence[float] | None = None
        #: Bend by lengths and tensions of the last command, for the slow estimates.
        self._last_tendons: tuple[complex | None, Sequence[float] | None] | None = None
        self._orientation, self._imu_problem = TorsoOrientation(), ''
        self._measured_arc: Arc | None = None
        self.arc = self.reference_arc = self.backbone.arc(self._target, self._torsion)
        self.rates = AT_REST
        self._is_imu_missing = False
        self._feedforward(no_load, 0.0)
        self._distribute()

    def resume(self, shape: Array, lengths: Sequence[float] | None = None) -> None:
        """
        Rest at a shape (4,) where commands were interrupted, with the corrections so far.

        Commands go on from the last ones, which drives hold. Where measured lengths contradict
        these by more than tendons can stretch, or there were none, they go on from the measured.

        Parameters
        ----------
        shape
            The present one.
        lengths
            Measured ones of all tendons, m; None if unknown.

        """
        kept, last = (self._integral, self._disturbance, self._filtered_residual), self._commanded
        self.reset(shape)
        self._integral, self._disturbance, self._filtered_residual = kept
        self._commanded = last
        if lengths is not None:
            stretch = self.options.tensions.highest / self.options.drive.stiffness
            if last is None or max(map(abs, map(sub, lengths, last))) > stretch:
                self._commanded = list(lengths)

    @property
    def target(self) -> Array:
        """Target as a shape (4,)."""
        return np.array((self._target.real, self._target.imag, 0.0, self._elongation))

    def set_target(self, shape: Array) -> str:
        """
        Set the target to the shape (4,) of the workspace next to a given one.

        Its elongation counts from the straight backbone under co-contraction, and is reached by a
        higher or lower common tension. Its torsion is ignored, since tendons do not control it.

        Returns
        -------
        str
            Description of how the workspace limits the target; '' if it does not.

        Raises
        ------
        InputError
            If a number is not finite; the target stays as it was.

        """
        limited = self.workspace.clamp(shape)
        self._target = as_complex(limited.shape[:2])
        self._elongation = float(limited.shape[ELONGATION])
        self._target_problem = limited.reason
        return limited.reason

    def hold(self) -> None:
        """Come to rest as soon as the limits of the motion allow."""
        self._target = clamped(self.reference.stopping_point(), self.workspace.max_bend)
        self._target_problem = ''

    # -- step by step

    def update(self, dt: float, measured: Measurement) -> TorsoCommand:
        """
        Make all the steps below, with values measured at one time.

        Parameters
        ----------
        dt
            Time since the last update, positive, s.
        measured
            Measured values.

        Raises
        ------
        InputError
            If a measurement is not finite.

        """
        _validate(dt, measured, self.backbone.count)
        dt = min(dt, MAX_UPDATE_STEP)
        self.set_tendons(dt, measured.lengths, measured.tensions)
        self.plan(dt, measured.load, measured.inertia)
        self.set_orientation(measured.orientation)
        return self.command(dt, measured.tendons_age)

    def set_tendons(self, dt: float, lengths: Sequence[float] | None = None,
                    tensions: Sequence[float] | None = None) -> None:
        """
        Set the measurements of the tendons, finite numbers; what is None is unknown from now on.

        Parameters
        ----------
        dt
            Time since their last measurement, s.
        lengths, tensions
            Of all tendons, m and N.

        """
        self._bend_by_lengths = None if lengths is None else sum(
            map(mul, self._bend_of_lengths, lengths), 0j)
        self._measured_tensions = tensions
        if tensions is None:
            return
        is_calm = not self.slack_prevention.level and self.slack.are_all_taut
        if is_calm and min(tensions) >= self._taut_tension:
            return
        dt = min(max(dt, 0.0), MAX_UPDATE_STEP)
        self.slack.update(dt, tensions)
        if not self.slack.broken:
            self.slack_prevention.update(dt, tensions)

    def plan(self, dt: float, load: Load, inertia: float) -> None:
        """
        Advance the reference by `dt` seconds and find the moment that holds it.

        `load` and `inertia` are those of a :class:`Measurement`; more than `MAX_UPDATE_STEP`
        counts as that.
        """
        dt = min(dt, MAX_UPDATE_STEP)
        self._estimation_time += dt
        if self._estimation_time >= ESTIMATION_PERIOD and self._last_tendons is not None:
            self._estimate(load, inertia, *self._last_tendons)
        if self.slack.broken:
            self.hold()
        self.reference.update(self._target, dt)
        self._update_level(dt)
        self._feedforward(load, inertia)

    def _distribute(self) -> None:
        """Distribute the planned pull to the tendons."""
        level = self.slack_prevention.level
        found = self.distributor.distribute(self._pull, self._level + level, level)
        self._tensions, self._is_feasible = found.tensions, found.is_feasible
        if self._is_imu_missing:
            self._predict_passive_parts()
        else:
            self._stretch = (self._axial - sum(self._tensions)) / self.statics.stiffness.axial
        drive = self.options.drive
        pretension, compliance = drive.pretension, 1.0 / drive.stiffness
        # Stretched tendons are longer than commanded.
        self._shortened = [compliance * (tension + trim - pretension)
                           for tension, trim in zip(self._tensions, self.slack_prevention.trim)]

    def set_orientation(self, orientation: TorsoOrientation) -> None:
        """Set the measurement of the IMUs; :attr:`arc` and :attr:`rates` follow from it."""
        self._orientation, self._is_imu_missing = orientation, orientation.bend is None
        self._measured_arc, self.arc, self.rates = None, self.reference_arc, AT_REST
        problem = self.find_imu_problem(orientation.bend)
        self._imu_problem = f'open loop: {problem}' if problem else ''
        if problem or orientation.bend is None:
            return
        arc = Arc(orientation.bend, orientation.torsion, self._stretch, self.backbone.length)
        bend_rate, torsion_rate = rates = orientation.rates(arc)
        if abs(bend_rate.real) + abs(bend_rate.imag) + abs(torsion_rate) < MAX_GYRO:
            self._measured_arc, self.arc, self.rates = arc, arc, rates
        else:
            self._imu_problem = (
                f'open loop: IMUs that turn by {orientation.gyros} rad/s; check their units')

    def command(self, dt: float, tendons_age: float = 0.0) -> TorsoCommand:
        """
        Return the lengths for the planned reference, with feedback.

        Parameters
        ----------
        dt
            Time since the last command, s.
        tendons_age
            Age of the tendon measurements with respect to the orientation, s.

        Raises
        ------
        InputError
            If lengths would not be finite.

        """
        self._distribute()
        dt = min(dt, MAX_UPDATE_STEP)
        lengths = self._limited(self._lengths(self._feedback(dt)), dt)
        bend = self._bend_by_lengths
        self._last_tendons = (
            None if bend is None else bend + tendons_age * self.rates[0], self._measured_tensions)
        return TorsoCommand(
            lengths, self._tensions, self.reference_arc, self.arc, self.rates,
            self._measured_arc is not None, self._problems())

    # -- bend by lengths

    @property
    def bend_by_tendons(self) -> complex:
        """Bend by the measured lengths, else that of the reference, rad."""
        bend = self._bend_by_lengths
        return self.reference.motion[0] if bend is None else bend

    @property
    def length_errors(self) -> LengthErrors:
        """Largest errors of :attr:`bend_by_tendons`."""
        tensions, drive = self._measured_tensions, self.options.drive
        if tensions is None:
            return LengthErrors(0.0, abs(self.bend_by_tendons))
        stretch = sum((bend * (tension - drive.pretension)
                       for bend, tension in zip(self._bend_of_lengths, tensions)), 0j)
        is_loose = min(tensions) < self.options.slack_tension
        return LengthErrors(abs(stretch) / drive.stiffness,
                            abs(self.bend_by_tendons) if is_loose else 0.0)

    def find_imu_problem(self, bend: complex | None) -> str:
        """Describe why a bend by the IMUs cannot be used; '' if it can."""
        if bend is None:
            return 'no recent data of the torso IMU'
        expected, least = self.bend_by_tendons, _DISAGREEMENT
        difference = abs(bend - expected)
        if difference <= least:
            return ''
        errors = self.length_errors
        if difference <= math.hypot(least, *errors):
            return ''
        return (f'bend {_describe(bend)} by the torso IMU, {_describe(expected)} with a deviation '
                f'of {math.degrees(errors.deviation):.0f} deg by the tendons: check whether the '
                'IMU is flipped, and its mounting in the URDF')

    def estimate_yaw_offset(self, dt: float, orientation: TorsoOrientation,
                            bend_by_lengths: complex | None = None) -> None:
        """Update :attr:`yaw_offset`; with the last bend by lengths unless one is given."""
        if bend_by_lengths is None:
            bend_by_lengths = self._bend_by_lengths
        self.yaw_offset.update(dt, orientation, bend_by_lengths, self.length_errors.slack)

    # -- inside

    def _estimate(self, load: Load, inertia: float, bend_by_lengths: complex | None,
                  tensions: Sequence[float] | None) -> None:
        """Update the estimates that change slowly."""
        dt, self._estimation_time = self._estimation_time, 0.0
        self.estimate_yaw_offset(dt, self._orientation, bend_by_lengths)
        if tensions is None:
            return
        if not self.slack.broken:
            self.slack_prevention.update_trim(dt, self._tensions, tensions)
        if self._measured_arc is not None and self.options.observer_time:
            self._observe(dt, self._measured_arc, tensions, load, inertia)

    def _feedback(self, dt: float) -> complex:
        """Return the correction of the bend."""
        o, arc = self.options, self._measured_arc
        if arc is None:
            if not self._is_imu_missing:
                self._integral *= math.exp(-dt / CORRECTION_DECAY)
            return self._integral
        position, velocity, _ = self.reference.motion
        error = position - arc.bend
        winds_up = self._is_saturated and (error * self._integral.conjugate()).real > 0.0
        if not winds_up:
            self._integral = clamped(self._integral + o.integral * dt * error, _MAX_CORRECTION)
        self._torsion += min(1.0, 20.0 * dt) * (arc.torsion - self._torsion)
        if self._orientation.gyros is not None:
            error += o.anticipation * (velocity - self.rates[0])
        return clamped(self._integral + o.proportional * error, _MAX_CORRECTION)

    def _observe(self, dt: float, arc: Arc, tensions: Sequence[float], load: Load,
                 inertia: float) -> None:
        """Update the moment on the tip that the model does not explain, N m."""
        if self.slack.broken:
            self._disturbance *= math.exp(-dt / CORRECTION_DECAY)
            self._filtered_residual = self._disturbance
            return
        statics, backbone = self.statics, self.backbone
        residual = (statics.stiffness.bending * arc.bend - statics.work(arc, load)[0]
                    - backbone.lever(arc) * backbone.pull(tensions)
                    + inertia * self.reference.motion[2])
        share = -math.expm1(-dt / self.options.observer_time)
        # Two poles: with one, the inertia that is not modelled would act as negative damping.
        self._filtered_residual += share * (residual - self._filtered_residual)
        self._disturbance = clamped(
            self._disturbance + share * (self._filtered_residual - self._disturbance),
            0.5 * backbone.radius * self.options.tensions.highest)

    def _feedforward(self, load: Load, inertia: float) -> None:
        """Find the pull that holds the reference against spring, load and inertia."""
        position, _, acceleration = self.reference.motion
        self.reference_arc = arc = Arc(
            position, self._torsion, self._stretch, self.backbone.length)
        bending, _, self._axial = self.statics.work(arc, load)
        moment = (self.statics.stiffness.bending * position - bending
                  + inertia * acceleration - self._disturbance)
        self._pull, self._load = moment / self.backbone.lever(arc), load

    def _lengths(self, correction: complex) -> list[float]:
        """Return the lengths for reference and correction, within the limits of the bend."""
        position, velocity, _ = self.reference.motion
        required = position + self.options.drive.lead * velocity + correction
        bend = clamped(required, self._widest_bend)
        lengths = list(map(sub, self.backbone.lengths_at(
            bend, self.reference_arc.torsion, self.backbone.length + self._stretch),
            self._shortened))
        if not math.isfinite(sum(lengths)):
            raise InputError(
                f'the tendon lengths for a bend of {bend} rad and tensions {self._tensions} N are '
                'not finite: check the torso and its stiffness in the YAML of the robot')
        low, high = self.length_limits
        is_within = low <= min(lengths) and max(lengths) <= high
        self._is_saturated = not (self._is_feasible and bend == required and is_within)
        return lengths

    def _limited(self, lengths: list[float], dt: float) -> list[float]:
        """Return what may be commanded: at most so far from the last ones, and in the range."""
        last = lengths if self._commanded is None else self._commanded
        low, high = self.length_limits
        self._commanded = limited_step(
            np.array(lengths), np.array(last), self.largest_rate * dt, low, high).tolist()
        self.since_limited += dt
        if self._commanded != lengths:
            self.limited_updates, self.since_limited = self.limited_updates + 1, 0.0
        return self._commanded

    def _predict_passive_parts(self) -> None:
        """Predict elongation and torsion in open loop."""
        expected = self.statics.with_passive_parts(
            self.reference_arc.shape, np.array(self._tensions), self._load)
        self._stretch, self._torsion = float(expected[ELONGATION]), float(expected[TORSION])

    def _update_level(self, dt: float) -> None:
        """Bring the common tension to that of co-contraction and the elongation of the target."""
        o = self.options
        pull = self.statics.stiffness.axial * self._elongation / self.backbone.count
        largest = LEVEL_RATE * o.tensions.highest * dt
        self._level += min(max(o.co_contraction - pull - self._level, -largest), largest)

    def _problems(self) -> tuple[str, ...]:
        saturation = ('tendons cannot hold this bend within their limits' if self._is_saturated
                      else '')
        return tuple(filter(None, (
            self._target_problem, self._imu_problem, self.slack.problem, saturation)))

    def _length_limits(self) -> tuple[float, float]:
        o, backbone = self.options, self.backbone
        self._widest_bend = self.workspace.max_bend + 0.5 * _MAX_CORRECTION
        reach = self._widest_bend * backbone.radius
        least, most = o.tensions.lowest, o.tensions.highest
        shortened = backbone.count * most / self.statics.stiffness.axial
        return (backbone.length - reach - shortened - (most - o.drive.pretension)
                / o.drive.stiffness,
                backbone.length + reach + (o.drive.pretension - least) / o.drive.stiffness)


def _bend_of_lengths(backbone: Backbone) -> tuple[complex, ...]:
    """Return the bend per length of each tendon, near straight, for any elongation, rad/m."""
    columns = backbone.moment_columns(np.zeros(4))
    x, y, _ = np.linalg.pinv(np.column_stack((-columns.T, np.ones(backbone.count))))
    return tuple(map(complex, x.tolist(), y.tolist()))


def _describe(bend: complex) -> str:
    return f'{math.degrees(abs(bend)):.0f} deg towards {math.degrees(phase(bend)):.0f} deg'


def _validate(dt: float, measured: Measurement, count: int) -> None:
    if not dt > 0.0:
        raise InputError(f'the time between updates must be positive, not {dt} s')
    for name, values in (('lengths', measured.lengths), ('tensions', measured.tensions)):
        # NaN and infinity survive the sum.
        if values is not None and (len(values) != count or not math.isfinite(sum(values))):
            raise InputError(f'tendon {name} must be {count} finite numbers, not {list(values)}')
    _, bend, torsion, gyros = measured.orientation
    total = torsion + (bend or 0j)
    for across, along in gyros or ():
        total += across + along
    if not isfinite(total):
        raise InputError(f'bend, torsion and angular velocities by IMUs must be finite, not '
                         f'{bend}, {torsion} rad and {gyros} rad/s')
