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
Finds a payload in a hand: when it is taken, its mass and place, and when it is set down.

A model that is not exact, friction and biases leave residuals without any payload. So a payload is
looked for in their *change*: from a baseline, the mean of the time before. What may change it
besides is in the weights of the rows: their noise, friction that turns round, a share of what
the model requires otherwise in the new posture, and the changes measured without a payload.

    d = value - baseline        |(d - Phi x) / s|^2 + |x|^2_P -> min        x = (m, h)

A payload is there when it explains much of the residuals, in one of the hands and better than
anything else does, for some time. Then the baseline is kept, and x follows its estimates. It
has left when the mass falls to a small part. Taking and setting down may each last a second.

Assumptions: one payload in one hand; the hands are empty at the start; apart from the feet nothing
else touches the robot for long. A hand that is pulled down cannot be distinguished from one that
carries.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.constants import LONGEST_STEP_NS, NEVER_NS
from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.residuals import (
    PayloadMeasurement, PayloadResiduals, ResidualSettings)
from biped_com_ros.core.settings import setting
from biped_com_ros.core.signals.schmitt import SchmittTrigger
from biped_com_ros.core.wrench.dynamics import OUTLIER
import numpy as np

#: Standard deviations of the prior: mass, as a share of the largest one, and distance from the
#: frame of the hand, m.
_MASS, _DISTANCE = 0.5, 0.1
#: Least mass at which the deviation of the distance counts, kg.
_LEAST_MOMENT = 0.3
#: Time constants, s: of the baseline, of learned variances, and of a payload that changes or
#: stays.
_BASELINE, _LEARNING, _QUICK, _SLOW = 2.0, 5.0, 0.1, 1.0
#: Age of the baseline, the time that taking a payload lasts, s, and period of its updates, s.
_AGE, _STEP = 1.0, 0.1
#: Time of residuals from which the first baseline is computed, s.
_FIRST = 1.0
#: Dwell time of a payload, or of its absence, before it is reported, s.
_DWELL = 0.1
#: After a payload has left, none is looked for, and the baseline begins anew after a part, s.
_PAUSE, _SETTLED = 1.0, 0.4
#: It has left below this share of its mass, and of the least mass.
_LEFT, _LEAST = 0.4, 0.7
#: Time constant of the mass with which that is compared, s.
_REFERENCE = 2.0
#: Largest share of what a payload explains that may remain.
_UNEXPLAINED = 0.7
#: Share of the evidence from which on a change may be a payload, and time for which it is kept out
#: of the baseline and of the learned variances, s: these would absorb a light one undetected.
_SUSPECTED, _SUSPENSION = 0.5, 1.0
#: Squared deviations at which an estimate counts as another payload, and not as noise.
_CHANGED = 4.0
#: Difference of the feet's force from the weight, over that of the largest payload, and time, s,
#: after which the feet do not carry the robot.
_LIFTED, _LIFTED_TIME = 2.0, 0.3


#: Time constant of the low-pass of the residuals, s.
_SMOOTHING = 0.08
#: Error of the model's forces, as a share of their change between two postures.
_MODEL_DEVIATION = 0.05
#: What a payload has to explain, in squared standard deviations.
_EVIDENCE = 25.0


@dataclass(frozen=True, kw_only=True)
class PayloadSettings(ResidualSettings):
    """How a payload is found."""

    least_mass: float = setting(0.3, 'Least mass of a payload', 'kg', 0.01, 100.0, read_only=True)
    largest_mass: float = setting(
        10.0, 'Largest mass of a payload', 'kg', 0.1, 100.0, read_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, 'least_mass', self.least_mass < self.largest_mass,
                      f"below 'largest_mass', {self.largest_mass} kg", 'kg')


class Payload(NamedTuple):
    """
    A payload in a hand.

    Attributes
    ----------
    hand
        Name of the hand in the robot's configuration.
    inertial
        Mass, kg, and first moment in the frame of the hand, kg m, (4,).
    covariance
        Of these, (4, 4).

    """

    hand: str
    inertial: Array
    covariance: Array

    @property
    def mass(self) -> float:
        """Mass, kg."""
        return float(self.inertial[0])

    @property
    def com_in_hand(self) -> Array:
        """Centre of mass in the frame of the hand, (3,), m."""
        com: Array = self.inertial[1:] / self.inertial[0]
        return com

    @property
    def mass_deviation(self) -> float:
        """Return the standard deviation of the mass, kg."""
        return math.sqrt(float(self.covariance[0, 0]))


class _Fit(NamedTuple):
    """What a payload in one hand explains; gain and rest are squared standard deviations."""

    hand: int
    parameters: Array
    covariance: Array
    gain: float
    rest: float


class PayloadEstimator:
    """
    Estimates the payload from successive measurements.

    Parameters
    ----------
    model
        The robot.
    settings
        How.

    Attributes
    ----------
    residuals
        Measurements minus model.
    payload
        What is carried; None while the hands are empty, as far as known.
    problem
        Why no payload can be found now; '' if one can.

    Raises
    ------
    ConfigurationError
        If the robot has no hands or no IMU.

    """

    def __init__(self, model: RobotModel, settings: PayloadSettings | None = None) -> None:
        self._settings = settings or PayloadSettings()
        self.residuals = PayloadResiduals(model, self._settings)
        lifted = _LIFTED * self._settings.largest_mass * self._settings.gravity
        self._lifted = SchmittTrigger(lifted, lifted, _LIFTED_TIME, _LIFTED_TIME, initial=False)
        self._learned = np.zeros(len(self.residuals.value))
        self._last_ns = NEVER_NS
        self.reset()

    def reset(self) -> None:
        """Begin anew, with empty hands; what was learned stays."""
        self.payload: Payload | None = None
        self._lifted.reset()
        self.residuals.reset()
        self._begin()

    def _begin(self) -> None:
        """Look for a new baseline."""
        self._smooth: tuple[Array, Array, Array] | None = None
        self._rows = self.residuals.is_measured.copy()
        self._history: deque[tuple[float, Array, Array]] = deque()
        self._baseline: tuple[Array, Array] | None = None
        self._time = self._next = self._detected_for = self._left_for = 0.0
        self._suspended_for = self._taken_for = 0.0
        self._pause = 0.0
        self._reference = 0.0
        self.problem = 'measuring the residuals without a payload: keep the hands empty'

    def update(self, stamp_ns: int, measured: PayloadMeasurement) -> Payload | None:
        """
        Take the measurements of one instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns; after a gap only the next instants are compared.
        measured
            The measurements.

        Returns
        -------
        Payload or None
            :attr:`payload`.

        """
        step_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        if not 0 < step_ns < LONGEST_STEP_NS:
            self.residuals.reset()
        dt = 1e-9 * step_ns
        if self.residuals.update(dt, measured):
            self._check_feet(stamp_ns)
            if not np.array_equal(self._rows, self.residuals.is_measured):
                self._begin()  # other sensors have other biases
            self._step(dt)
        return self.payload

    def _check_feet(self, stamp_ns: int) -> None:
        """Leave out the feet while something else carries the robot."""
        residuals = self.residuals
        if not residuals.is_measured[0]:
            self._lifted.reset()
        elif self._lifted.update(float(np.abs(residuals.value[:3]).max()), stamp_ns):
            residuals.is_measured[:6] = False

    def _step(self, dt: float) -> None:
        residuals = self.residuals
        now = residuals.value, residuals.required, residuals.columns
        if self._smooth is None:
            self._smooth = tuple(each.copy() for each in now)  # type: ignore[assignment]
        assert self._smooth is not None
        share = -math.expm1(-dt / _SMOOTHING)
        for smooth, new in zip(self._smooth, now):
            smooth += share * (new - smooth)
        self._time += dt
        self._pause = max(self._pause - dt, 0.0)
        self._update_baseline(dt)
        if self._baseline is None:
            return
        variances = self._variances()
        change = self._smooth[0] - self._baseline[0]
        fits = [self._fit(hand, change, variances) for hand in range(len(residuals.hands))]
        if self.payload is None:
            self._detect(fits, dt)
            if self.payload is None and not self._pause and not self._is_suspected:
                self._learn(change, variances, dt)
        else:
            self._follow(fits, change, variances, dt)

    # -- baseline

    def _update_baseline(self, dt: float) -> None:
        assert self._smooth is not None
        value, required, columns = self._smooth
        if self.payload is not None:
            if self._baseline is not None:
                return
            # Of sensors that were not there when it was taken.
            value = value - columns[self.residuals.hands.index(self.payload.hand)].dot(
                self.payload.inertial)
        if self._pause:  # a payload has just left
            if self._pause < _PAUSE - _SETTLED and self._baseline is not None:
                self._move_baseline(value, required, -math.expm1(-dt / _QUICK))
            return
        if self._time < self._next or self._is_suspected:
            return
        self._next = self._time + _STEP
        self._history.append((self._time, value.copy(), required.copy()))
        if self._baseline is None:
            if self._time >= _FIRST:
                _, values, needs = zip(*self._history)
                self._baseline = np.mean(values, axis=0), np.mean(needs, axis=0)
                self._history.clear()
                self.problem = '' if self._rows.any() else (
                    'nothing measures a payload: publish joint efforts, or wrenches of feet or '
                    'hands')
            return
        while self._history and self._history[0][0] <= self._time - _AGE:
            _, value, required = self._history.popleft()
            self._move_baseline(value, required, -math.expm1(-_STEP / _BASELINE))

    def _move_baseline(self, value: Array, required: Array, share: float) -> None:
        assert self._baseline is not None
        before, needed = self._baseline
        self._baseline = before + share * (value - before), needed + share * (required - needed)

    def _variances(self) -> Array:
        """Return the variances of the changes, (m,)."""
        assert self._smooth is not None and self._baseline is not None
        by_model = _MODEL_DEVIATION * (self._smooth[1] - self._baseline[1])
        variances: Array = self.residuals.deviations ** 2 + by_model ** 2 + self._learned
        return variances

    def _learn(self, change: Array, variances: Array, dt: float) -> None:
        """Learn how much the residuals change without a payload, besides what is known."""
        known = variances - self._learned
        excess = np.minimum(change * change, OUTLIER ** 2 * variances) - known
        self._learned += dt / _LEARNING * (np.maximum(excess, 0.0) - self._learned)

    # -- payload

    def _fit(self, hand: int, change: Array, variances: Array) -> _Fit:
        """Return the likeliest payload in one hand."""
        assert self._smooth is not None
        rows = self._rows
        weights = 1.0 / np.sqrt(variances[rows])
        columns = self._smooth[2][hand][rows] * weights[:, np.newaxis]
        scaled = change[rows] * weights
        information, found = columns.T.dot(columns), columns.T.dot(scaled)
        mass, prior = 1.0, (_MASS * self._settings.largest_mass) ** -2
        for _ in range(2):  # how far away its centre can be depends on its mass
            moment = _DISTANCE * max(mass, _LEAST_MOMENT)
            covariance = np.linalg.inv(information + np.diag((
                prior, moment ** -2, moment ** -2, moment ** -2)))
            parameters = covariance.dot(found)
            mass = float(parameters[0])
        gain = float(found.dot(parameters))
        left = scaled - columns.dot(parameters)
        return _Fit(hand, parameters, covariance, gain, float(left.dot(left)))

    def _detect(self, fits: list[_Fit], dt: float) -> None:
        best = max(fits, key=lambda fit: fit.gain)
        is_detected = self._is_payload(best) and not self._pause
        self._detected_for = self._detected_for + dt if is_detected else 0.0
        self._suspended_for = (self._suspended_for + dt if self._is_payload(best, _SUSPECTED)
                               else max(self._suspended_for - dt, 0.0))
        if self._detected_for >= _DWELL:
            self._take(best)

    @property
    def _is_suspected(self) -> bool:
        """Whether the change is kept apart because it may be a payload."""
        return 0.0 < self._suspended_for < _SUSPENSION

    def _is_payload(self, fit: _Fit, share: float = 1.0) -> bool:
        """Return whether it explains a share of the evidence, and leaves little, or noise."""
        settings = self._settings
        noise = int(self._rows.sum()) - len(fit.parameters)  # of the rows, in its mean
        return (settings.least_mass <= fit.parameters[0] <= settings.largest_mass
                and fit.gain >= share * _EVIDENCE
                and fit.rest <= max(_UNEXPLAINED * fit.gain, noise))

    def _take(self, fit: _Fit) -> None:
        self.payload = Payload(
            self.residuals.hands[fit.hand], fit.parameters.copy(), fit.covariance)
        self._reference, self._detected_for, self._left_for = float(fit.parameters[0]), 0.0, 0.0
        self._taken_for = 0.0
        self._history.clear()

    def _follow(self, fits: list[_Fit], change: Array, variances: Array, dt: float) -> None:
        """Update the payload, and find whether it left or went to another hand."""
        assert self.payload is not None and self._smooth is not None and self._baseline is not None
        fit = fits[self.residuals.hands.index(self.payload.hand)]
        mass, settings = float(fit.parameters[0]), self._settings
        gone = mass < max(_LEFT * self._reference, _LEAST * settings.least_mass)
        self._left_for = self._left_for + dt if gone else 0.0
        best = max(fits, key=lambda each: each.gain)
        moved = best is not fit and self._is_payload(best) and (
            best.gain > fit.gain + _EVIDENCE)
        self._detected_for = self._detected_for + dt if moved else 0.0
        if self._detected_for >= _DWELL:
            self._take(best)
        elif self._left_for >= _DWELL:
            self.payload, self._pause = None, _PAUSE
        elif not gone:
            self._reference = max(mass, self._reference + dt / _REFERENCE * (
                mass - self._reference))
            self._refine(fit, dt)

    def _refine(self, fit: _Fit, dt: float) -> None:
        assert self.payload is not None
        before = self.payload.inertial
        difference = fit.parameters - before
        has_changed = float(difference.dot(np.linalg.solve(fit.covariance, difference))) > _CHANGED
        self._taken_for += dt
        is_taken = self._taken_for < _AGE  # what was smoothed contains the time before
        share = -math.expm1(-dt / (_QUICK if has_changed or is_taken else _SLOW))
        parameters = before + share * difference
        if parameters[0] > self._settings.largest_mass:
            parameters = parameters * (self._settings.largest_mass / parameters[0])
        self.payload = Payload(self.payload.hand, parameters, fit.covariance)
