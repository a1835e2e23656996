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

What an update takes is in steps, which can be taken as soon as what they need is there:
:meth:`~TendonController.feel` with the tendons' states, :meth:`~TendonController.plan` when an
instant begins, :meth:`~TendonController.prepare` then, :meth:`~TendonController.see` with both IMUs,
and last of all :meth:`~TendonController.command`.

The IMUs below and above need not agree about north: their relative yaw, which drifts, turns
direction and torsion alike, and is told from both by :class:`.YawOffsetEstimator`.

Bends are complex numbers here, forward + i left, see :mod:`.arc`.
"""

from __future__ import annotations

from cmath import isfinite, phase
from collections.abc import Sequence
import math
from operator import mul, sub
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.torso.arc import Arc
from biped_com_ros.core.torso.constant_curvature import Backbone, ELONGATION, TORSION
from biped_com_ros.core.torso.options import ControllerOptions
from biped_com_ros.core.torso.orientation import TorsoOrientation
from biped_com_ros.core.torso.reference import as_complex, BendReference
from biped_com_ros.core.torso.slack import SlackPrevention, SlackDetector
from biped_com_ros.core.torso.statics import Load, no_load, TorsoStatics
from biped_com_ros.core.torso.tension import CLOSE, TensionDistributor
from biped_com_ros.core.torso.workspace import Workspace
from biped_com_ros.core.torso.yaw_offset import YawOffsetEstimator
import numpy as np

MISTRUST_DECAY = 1.0
"""Time constant with which corrections by an IMU that turned out wrong are forgotten, s."""

LEVEL_RATE = 0.25
"""How fast what all tendons share follows what is asked for, of the largest tension per s."""

LEARN_EVERY = 0.02
"""Time between two looks at what changes slowly: loads, trim, north; s."""

LONGEST_STEP = 0.03
"""Longer gaps between updates count as this long, s: late is better than jerky."""

FASTEST = 1000.0
"""From here on gyroscopes are not believed, rad/s: none measures that."""

NOT_SHARED = -1.0
"""Instead of the level of the guard by which tendons share what is planned."""

AT_REST: tuple[complex, float] = 0j, 0.0
"""Rates of bend and torsion that are not known."""


class Measurement(NamedTuple):
    """
    What is measured; None for what is missing or too old.

    Attributes
    ----------
    sight
        What the IMUs say, their relative yaw taken out.
    lengths, tensions
        Of the tendons, m and N.
    load, inertia
        On the tip, and about it across the backbone, kg m^2.
    tendons_age
        How much older lengths and tensions are than the sight, s.

    """

    orientation: TorsoOrientation = TorsoOrientation()
    lengths: Sequence[float] | None = None
    tensions: Sequence[float] | None = None
    load: Load = no_load
    inertia: float = 0.0
    tendons_age: float = 0.0


class TorsoCommand(NamedTuple):
    """
    What the controller wants and knows after an update.

    Attributes
    ----------
    commanded, expected
        Lengths of the tendons and the tensions expected of them, m and N.
    reference_arc
        The backbone as it should be now.
    arc, rates
        The backbone as it is, by IMU, or by the model in open loop; and how fast its bend and
        torsion change by the gyroscopes.
    measured_bend
        Bend by the IMU, whether or not it is believed; None without one.
    is_closed_loop
        Whether the IMU is used.
    problems
        In words, empty while all is well.

    """

    commanded: list[float]
    expected: list[float]
    reference_arc: Arc
    arc: Arc
    rates: tuple[complex, float]
    measured_bend: complex | None
    is_closed_loop: bool
    problems: tuple[str, ...] = ()

    @property
    def lengths(self) -> Array:
        """Return what is commanded as an array (n,)."""
        return np.array(self.commanded)

    @property
    def tensions(self) -> Array:
        """Return what is expected as an array (n,)."""
        return np.array(self.expected)

    @property
    def reference(self) -> Array:
        """Return where the torso should be now, as an array (4,)."""
        return self.reference_arc.shape

    @property
    def shape(self) -> Array:
        """Return where it is, as an array (4,)."""
        return self.arc.shape


class TendonController:
    """
    From targets and measurements to tendon lengths.

    Parameters
    ----------
    statics, max_bend
        The torso.
    options
        How it is controlled; None: as :class:`ControllerOptions` says by default.

    Attributes
    ----------
    drift
        The relative yaw of the IMUs: what measured rotations have to be corrected by.
    arc, rates
        The backbone as it is, and how fast its bend and torsion change: see :meth:`see`.
    reference_arc
        As it is planned to be.

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
        self.set_options(options)
        self.reset()

    def set_options(self, options: ControllerOptions) -> None:
        """Go on with other options, from where the torso is."""
        self.options, count = options, self.backbone.count
        limits, axial = options.tensions, self.statics.stiffness.axial
        self.distributor = TensionDistributor(self.backbone, limits)
        self.workspace = Workspace(self.backbone, self._max_bend, (
            -count * (limits.highest - options.co_contraction) / axial,
            count * (options.co_contraction - limits.lowest) / axial))
        self.reference.limits, self.yaw_offset.time = options.motion, options.yaw_offset_time
        self.slack.options = self.slack_prevention.options = options
        self.length_limits = self._length_limits()
        self._taut = max(limits.lowest, options.slack_tension)
        self._guarded = NOT_SHARED  # by these options

    def reset(self, shape: Array | None = None) -> None:
        """Rest at a shape (4,), straight by default, and forget corrections."""
        start = np.zeros(4) if shape is None else self.workspace.clamp(shape).shape
        self._target, self._elongation, self._target_problem = as_complex(start[:2]), 0.0, ''
        self.reference.reset(start[:2])
        self._integral = self._unexplained = self._half_explained = 0j
        self._level = self.options.co_contraction
        self._torsion, self._stretch = float(start[TORSION]), 0.0
        self._tensions = [self.options.co_contraction] * self.backbone.count
        self._is_saturated, self._waited = False, LEARN_EVERY
        self.slack_prevention.reset()
        self.slack.reset()
        self._ahead, self._is_calm = 0.0, True
        self._by_lengths: complex | None = None
        self._felt: Sequence[float] | None = None
        self._told: tuple[complex | None, Sequence[float] | None] | None = None
        self._sight, self._mistrusted, self._is_blind = TorsoOrientation(), '', False
        self._seen: Arc | None = None
        self.arc = self.reference_arc = self.backbone.arc(self._target, self._torsion)
        self.rates = AT_REST
        self._feedforward(no_load, 0.0)
        self._share_out()

    @property
    def target(self) -> Array:
        """Return where the torso goes, a shape (4,) with the elongation aimed at."""
        return np.array((self._target.real, self._target.imag, 0.0, self._elongation))

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
        self._target = as_complex(clamped.shape[:2])
        self._elongation = float(clamped.shape[ELONGATION])
        self._target_problem = clamped.reason
        return clamped.reason

    def hold(self) -> None:
        """Come to rest as soon as the limits of the motion allow, and stay."""
        self._target = _limited(
            as_complex(self.reference.stopping_point()), self.workspace.max_bend)
        self._target_problem = ''

    # -- step by step

    def update(self, dt: float, measured: Measurement) -> TorsoCommand:
        """
        Let `dt` seconds (positive) pass: all the steps below, of what is measured at one instant.

        Raises
        ------
        InputError
            If a measurement is not finite.

        """
        dt = _checked(dt, measured, self.backbone.count)
        self.set_tendons(dt, measured.lengths, measured.tensions)
        self.plan(dt, measured.load, measured.inertia)
        self.set_orientation(measured.orientation)
        return self.command(dt, measured.tendons_age)

    def set_tendons(self, dt: float, lengths: Sequence[float] | None = None,
             tensions: Sequence[float] | None = None) -> None:
        """
        Take what tendons tell, finite numbers; what is not given is not known any more.

        Parameters
        ----------
        dt
            Time since they told last, s.
        lengths, tensions
            Of all tendons, m and N.

        """
        self._by_lengths = None if lengths is None else sum(
            map(mul, self._bend_of_lengths, lengths), 0j)
        self._felt = tensions
        if tensions is None or (min(tensions) >= self._taut and self._is_calm):
            return
        dt = min(max(dt, 0.0), LONGEST_STEP)
        self.slack.update(dt, tensions)
        if not self.slack.broken:
            self.slack_prevention.update(dt, tensions)
        self._is_calm = not self.slack_prevention.level and self.slack.are_all_taut

    def plan(self, dt: float, load: Load, inertia: float) -> None:
        """
        Let `dt` seconds pass: where the torso is to be, and which moment holds it there.

        This can be ahead of :meth:`see` and :meth:`command`, though by :data:`LONGEST_STEP` at
        most. `load` and `inertia` are those of a :class:`Measurement`.
        """
        if not self._ahead:
            self._waited += min(dt, LONGEST_STEP)
            if self._waited >= LEARN_EVERY and self._told is not None:
                self._learn(load, inertia, *self._told)
        dt = min(dt, LONGEST_STEP - self._ahead)
        if dt <= 0.0:
            return
        self._ahead += dt
        if self.slack.broken:
            self.hold()
        self.reference.update(self._target, dt)
        self._contract(dt)
        self._feedforward(load, inertia)

    def distribute(self) -> None:
        """Share among the tendons what was planned; otherwise :meth:`command` does it."""
        if self._guarded == NOT_SHARED:
            self._share_out()

    def set_orientation(self, sight: TorsoOrientation) -> None:
        """Take what the IMUs say: from now on :attr:`arc` and :attr:`rates`."""
        bend, by_lengths = sight.bend, self._by_lengths
        expected = self.reference.motion[0] if by_lengths is None else by_lengths
        self._sight, self._is_blind, self._mistrusted = sight, bend is None, ''
        if bend is None:
            self._mistrusted = 'open loop: no fresh torso IMU'
        elif not abs(bend - expected) <= self.options.disagreement:
            self._mistrusted = (
                f'open loop: the torso IMU says {_words(bend)}, tendons {_words(expected)}; is it '
                'flipped, or mounted otherwise than in the URDF?')
        else:
            arc = Arc(bend, sight.torsion, self._stretch, self.backbone.length)
            turning, twisting = rates = sight.rates(arc)
            if abs(turning.real) + abs(turning.imag) + abs(twisting) < FASTEST:
                self._seen, self.arc, self.rates = arc, arc, rates
                return
            self._mistrusted = f'open loop: IMUs that turn by {sight.gyros} rad/s'
        self._seen, self.arc, self.rates = None, self.reference_arc, AT_REST

    def command(self, dt: float, tendons_age: float = 0.0) -> TorsoCommand:
        """
        Return lengths for what was planned, by what was seen.

        Parameters
        ----------
        dt
            Time since the last command, s.
        tendons_age
            How much older what the tendons told is than what was seen, s.

        Raises
        ------
        InputError
            If lengths would not be finite.

        """
        self._ahead = 0.0
        if self.slack_prevention.level > self._guarded:
            self._share_out()
        lengths = self._lengths(self._feedback(min(dt, LONGEST_STEP)))
        by_lengths = self._by_lengths
        self._told = (None if by_lengths is None else by_lengths + tendons_age * self.rates[0],
                      self._felt)
        return TorsoCommand(
            lengths, self._tensions, self.reference_arc, self.arc, self.rates, self._sight.bend,
            self._seen is not None, self._problems())

    def _learn(self, load: Load, inertia: float, by_lengths: complex | None,
               tensions: Sequence[float] | None) -> None:
        """Take in what changes slowly, a few times less often than commands go out."""
        dt, self._waited = self._waited, 0.0
        self.yaw_offset.update(dt, self._sight, by_lengths)
        if tensions is None:
            return
        if not self.slack.broken:
            self.slack_prevention.learn(dt, self._tensions, tensions)
        if self._seen is not None and self.options.observer_time:
            self._observe(dt, self._seen, tensions, load, inertia)

    def _feedback(self, dt: float) -> complex:
        """Return the correction of the bend that goes into the lengths."""
        o, arc = self.options, self._seen
        if arc is None:
            if not self._is_blind:
                self._integral *= math.exp(-dt / MISTRUST_DECAY)
            return self._integral
        position, velocity, _ = self.reference.motion
        error = position - arc.bend
        winds_up = self._is_saturated and (error * self._integral.conjugate()).real > 0.0
        if not winds_up:
            self._integral = _limited(self._integral + o.integral * dt * error, o.max_correction)
        self._torsion += min(1.0, 20.0 * dt) * (arc.torsion - self._torsion)
        if self._sight.gyros is not None:
            error += o.anticipation * (velocity - self.rates[0])
        return _limited(self._integral + o.proportional * error, o.max_correction)

    def _observe(self, dt: float, arc: Arc, tensions: Sequence[float], load: Load,
                 inertia: float) -> None:
        """Take in the moment on the tip that the model does not explain."""
        if self.slack.broken:
            self._unexplained *= math.exp(-dt / MISTRUST_DECAY)
            self._half_explained = self._unexplained
            return
        statics, backbone = self.statics, self.backbone
        moment = (statics.stiffness.bending * arc.bend - statics.work(arc, load)[0]
                  - backbone.lever(arc) * backbone.pull(tensions)
                  + inertia * self.reference.motion[2])
        share = -math.expm1(-dt / self.options.observer_time)
        # Two poles: one alone would turn what the torso's inertia leaves into negative damping.
        self._half_explained += share * (moment - self._half_explained)
        most = 0.5 * backbone.radius * self.options.tensions.highest
        self._unexplained = _limited(
            self._unexplained + share * (self._half_explained - self._unexplained), most)

    def _feedforward(self, load: Load, inertia: float) -> None:
        """Find the moment that holds the reference against spring, load and inertia."""
        position, _, acceleration = self.reference.motion
        self.reference_arc = arc = Arc(
            position, self._torsion, self._stretch, self.backbone.length)
        bending, _, self._axial = self.statics.work(arc, load)
        moment = (self.statics.stiffness.bending * position - bending
                  + inertia * acceleration - self._unexplained)
        self._pull, self._load = moment / self.backbone.lever(arc), load
        self._guarded = NOT_SHARED

    def _share_out(self) -> None:
        """Share what is to be pulled among the tendons, and find the lengths that do it."""
        self._guarded = guard = self.slack_prevention.level
        self._tensions, shortfall = self.distributor.distribute(
            self._pull, self._level + guard, guard)
        self._is_held = abs(shortfall) < CLOSE
        if self._is_blind:
            self._expect()
        else:
            self._stretch = (self._axial - sum(self._tensions)) / self.statics.stiffness.axial
        drive = self.options.drive
        pretension, softness = drive.pretension, 1.0 / drive.stiffness
        # Drives pull as expected of tendons that are longer by what they are stretched.
        self._shortened = [softness * (tension + trim - pretension)
                           for tension, trim in zip(self._tensions, self.slack_prevention.trim)]

    def _lengths(self, correction: complex) -> list[float]:
        """Return the lengths for reference and correction, within all limits."""
        position, velocity, _ = self.reference.motion
        bend = wanted = position + self.options.drive.lead * velocity + correction
        if not abs(bend) <= self._widest_bend:
            bend = _limited(wanted, self._widest_bend)
        lengths = list(map(sub, self.backbone.lengths_at(
            bend, self.reference_arc.torsion, self.backbone.length + self._stretch),
            self._shortened))
        low, high = self.length_limits
        is_within = low <= min(lengths) and max(lengths) <= high
        if not is_within:
            lengths = [min(max(length, low), high) for length in lengths]
        if not math.isfinite(sum(lengths)):
            raise InputError(f'no lengths for a bend of {bend} rad, tensions {self._tensions} N')
        self._is_saturated = not (self._is_held and bend == wanted and is_within)
        return lengths

    def _expect(self) -> None:
        """Learn what follows of itself in open loop: elongation and torsion."""
        expected = self.statics.with_passive_parts(
            self.reference_arc.shape, np.array(self._tensions), self._load)
        self._stretch, self._torsion = float(expected[ELONGATION]), float(expected[TORSION])

    def _contract(self, dt: float) -> None:
        """Bring what all tendons share towards what co-contraction and elongation ask for."""
        o = self.options
        pull = self.statics.stiffness.axial * self._elongation / self.backbone.count
        change = o.co_contraction - pull - self._level
        if change:
            most = LEVEL_RATE * o.tensions.highest * dt
            self._level += min(max(change, -most), most)

    def _problems(self) -> tuple[str, ...]:
        """Return in words what is not as it should be."""
        if not (self._is_saturated or self._target_problem or self._mistrusted
                or self.slack.slack):
            return ()
        saturation = 'tendons cannot hold this bend within their limits'
        return tuple(filter(None, (
            self._target_problem, self._mistrusted, self.slack.problem,
            saturation if self._is_saturated else '')))

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


def _bend_of_lengths(backbone: Backbone) -> tuple[complex, ...]:
    """Return what each length says of the bend, near straight, whatever the elongation."""
    columns = backbone.moment_columns(np.zeros(4))
    x, y, _ = np.linalg.pinv(np.column_stack((-columns.T, np.ones(backbone.count))))
    return tuple(map(complex, x.tolist(), y.tolist()))


def _limited(bend: complex, most: float) -> complex:
    size = abs(bend)
    return bend * (most / size) if size > most else bend


def _words(bend: complex) -> str:
    return f'{math.degrees(abs(bend)):.0f} deg towards {math.degrees(phase(bend)):.0f}'


def _check_tendons(name: str, values: Sequence[float] | None, count: int) -> None:
    # NaN and infinity survive the sum.
    if values is not None and (len(values) != count or not math.isfinite(sum(values))):
        raise InputError(f'tendon {name} must be {count} finite numbers, not {list(values)}')


def _checked(dt: float, measured: Measurement, count: int) -> float:
    if not dt > 0.0:
        raise InputError(f'time must pass between updates, not {dt} s')
    sight, lengths, tensions, *_ = measured
    _check_tendons('lengths', lengths, count)
    _check_tendons('tensions', tensions, count)
    _, bend, torsion, gyros = sight
    total = torsion if bend is None else torsion + bend
    if gyros is not None:
        (lower, lower_up), (upper, upper_up) = gyros
        total += lower + lower_up + upper + upper_up
    if not isfinite(total):
        raise InputError(f'bend, torsion and angular velocities by IMUs must be finite, not '
                         f'{bend}, {torsion} rad and {gyros} rad/s')
    return min(dt, LONGEST_STEP)
