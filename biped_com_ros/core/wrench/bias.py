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
The bias of a force-torque sensor, estimated whenever what it carries is in the air.

Of each axis a Kalman filter has three states, the bias b, its drift r, and the coefficient c by
which it follows the temperature T of the sensor, where that is known:

    b' = r        r' = noise - r / 1 h        c' = 0
    mean of the readings in the air = b + c (T - T_0) + expected + noise

One swing gives one measurement, the mean over it: a foot starts and ends at rest, so that its mean
acceleration, and with it the inertial force, nearly vanishes. The noise of that mean follows from
the scatter of the readings during the swing, inertial forces included.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.settings import setting, Settings
import numpy as np

_CORRELATED = 0.05
"""Readings closer than this are counted as one, since inertial forces last, s."""
_FORGETTING = 3600.0
"""Time constant of the drift, s."""
_EXTRAPOLATED = 10.0
"""Time constant of the drift that the bias follows without measurements, s."""
_GATE = 6.0
"""Gate of the innovation, standard deviations."""
_JUMP_COUNT = 5
"""Number of consecutive rejected means that agree with each other after which the bias counts as
changed in a step, as by an impact."""


#: Standard deviation of the torque bias of a sensor that was not tared, N m.
_TORQUE = 0.2
#: Standard deviations of the drift of biases, N/h and N m/h.
_FORCE_DRIFT, _TORQUE_DRIFT = 30.0, 1.0
#: Standard deviations of their temperature coefficients, N/K and N m/K.
_FORCE_TEMPERATURE, _TORQUE_TEMPERATURE = 0.5, 0.02
#: Standard deviation of the gains, and of the weight below the sensor: a share of that weight
#: cannot be distinguished from a bias.
_GAIN = 0.1
#: That of the centre of mass below the sensor, m.
_LEVER = 0.01
#: Shortest time in the air that is used, s.
_LEAST_TIME = 0.15


@dataclass(frozen=True, kw_only=True)
class BiasSettings(Settings):
    """Uncertainty of a sensor's bias."""

    force: float = setting(
        5.0, 'Standard deviation of the force bias of a sensor that was not tared', 'N', 0.001,
        1e4)


class BiasFilter:
    """
    Estimates the bias of one sensor.

    Parameters
    ----------
    settings
        Its uncertainty.

    Attributes
    ----------
    updates, rejected
        Number of swings whose mean was used, and was outside the gate.
    consecutive_rejected
        Number of the latter since the last mean that was used.
    temperature
        Last one of the sensor, deg C; NaN until it is set.

    """

    def __init__(self, settings: BiasSettings) -> None:
        self._use(settings)
        self.temperature = self._reference = math.nan
        self._state, self._covariance = np.zeros((6, 3)), np.zeros((6, 3, 3))
        self._covariance[:, 2, 2] = np.repeat(
            (_FORCE_TEMPERATURE, _TORQUE_TEMPERATURE), 3) ** 2
        self.set_bias(np.zeros(6))

    def _use(self, settings: BiasSettings) -> None:
        self._settings = settings
        self._drift = np.repeat((_FORCE_DRIFT, _TORQUE_DRIFT), 3) / 3600.0
        self._initial = np.repeat((settings.force, _TORQUE), 3)
        self._least_ns = nanoseconds(_LEAST_TIME)

    def configure(self, settings: BiasSettings) -> None:
        """Use other settings from now on; the bias stays, and so does what a tare measured."""
        self._use(settings)
        if not self.updates and not self._is_tared:
            self._covariance[:, 0, 0] = self._initial ** 2  # still that of the settings

    def set_bias(self, bias: Array, deviation: Array | None = None,
                 expected: Array | None = None) -> None:
        """
        Start from a bias at the present temperature; what is known of its coefficient stays.

        Parameters
        ----------
        bias
            N and N m, (6,).
        deviation
            Its standard deviation, (6,); None: that of the settings.
        expected
            Reading of a perfect sensor, (6,), where it was measured; None: unknown.

        """
        self._reference = self.temperature
        self._is_tared = deviation is not None
        self._state[:, 0] = bias
        self._reset_covariance(self._initial if deviation is None else deviation)
        self.consecutive_rejected, self._agreeing, self._rejected_mean = 0, 0, np.zeros(6)
        self._stamp_ns: int | None = None
        self.updates = self.rejected = 0
        self._carried = np.zeros(6)
        # Where the bias was measured: a wrong weight below the sensor looks like a bias there, and
        # like another one in another orientation.
        self._measured_at = None if expected is None else expected.copy()
        self.discard()

    def shift(self, change: Array) -> None:
        """Take off the bias what the readings expected in the air have become larger, (6,)."""
        self._state[:, 0] -= change
        self._carried = self._carried + change
        if self._measured_at is not None:
            self._measured_at += change
        self.discard()

    def set_temperature(self, temperature: float) -> None:
        """Set the present temperature of the sensor, deg C."""
        self.temperature = temperature
        if math.isnan(self._reference):
            self._reference = temperature

    @property
    def _parts(self) -> Array:
        """Return what the present bias consists of: of bias, drift and coefficient; (3,)."""
        is_known = not math.isnan(self.temperature)
        return np.array((1.0, 0.0, self.temperature - self._reference if is_known else 0.0))

    def _reset_covariance(self, deviation: Array) -> None:
        """Set the standard deviation (6,) of the bias; the drift becomes unknown."""
        self._state[:, 1] = 0.0
        of_coefficient = self._covariance[:, 2, 2].copy()
        self._covariance = np.zeros((6, 3, 3))
        self._covariance[:, 0, 0] = deviation * deviation
        self._covariance[:, 1, 1] = self._drift ** 2
        self._covariance[:, 2, 2] = of_coefficient

    @property
    def bias(self) -> Array:
        """Bias at the present temperature, shape (6,), N and N m."""
        return self._state @ self._parts

    @property
    def coefficient(self) -> Array:
        """Temperature coefficient, shape (6,), N/K and N m/K; zero without temperatures."""
        return self._state[:, 2]

    @property
    def coefficient_deviation(self) -> Array:
        """Return the standard deviation of the coefficient, shape (6,)."""
        return np.sqrt(self._covariance[:, 2, 2])

    @property
    def deviation(self) -> Array:
        """Return the standard deviation of the bias, shape (6,), N and N m."""
        by_weight = self._of_weight(self._carried)
        parts = self._parts
        return np.sqrt(self._covariance @ parts @ parts + by_weight * by_weight)

    @property
    def drift(self) -> Array:
        """Drift, shape (6,), N/h and N m/h."""
        return 3600.0 * self._state[:, 1]

    def add_in_air(self, reading: Array, expected: Array, stamp_ns: int) -> None:
        """Add a signed reading (6,) in the air, and the expected one of a perfect sensor."""
        if not self._count:
            self._began_ns = stamp_ns
        error = reading - expected
        self._sum += error
        self._squares += error * error
        self._expected_sum += expected
        self._count += 1
        self._newest_ns, self._carried = stamp_ns, expected

    def finish_swing(self, may_jump: bool = True) -> bool:
        """
        Update with the mean of this swing; return whether it was long enough.

        Parameters
        ----------
        may_jump
            Whether a mean outside the gate may be a step of the bias, not a load.

        """
        count, duration_ns = self._count, self._newest_ns - self._began_ns
        total, squares, stamp_ns = self._sum, self._squares, (
            self._began_ns + self._newest_ns) // 2
        expected = self._expected_sum / max(count, 1)
        self.discard()
        if count < 2 or duration_ns < self._least_ns:
            return False
        mean = total / count
        scatter = np.maximum(squares / count - mean * mean, 0.0)
        variance = scatter / max(1e-9 * duration_ns / _CORRELATED, 1.0)
        if self._measured_at is not None:
            variance += self._of_weight(expected - self._measured_at) ** 2
        self.predict(stamp_ns)
        if not self._is_credible(mean, variance):
            self.rejected += 1
            self.consecutive_rejected += 1
            if may_jump:
                parts = self._parts
                self._reject(mean, self._covariance @ parts @ parts + variance)
            return True
        self._correct(mean, variance, expected)
        return True

    def _of_weight(self, change: Array) -> Array:
        """Return deviations (6,) by a wrong weight whose expected reading changes, on any axis."""
        force, torque = np.linalg.norm(change.reshape(2, 3), axis=1).tolist()
        return np.repeat((_GAIN * force, math.hypot(_GAIN * torque, _LEVER * force)), 3)

    def predict(self, stamp_ns: int) -> None:
        """Propagate to the time `stamp_ns`."""
        before, self._stamp_ns = self._stamp_ns, stamp_ns
        dt = 0.0 if before is None else max(1e-9 * (stamp_ns - before), 0.0)
        # The drift is extrapolated for seconds only, from one swing to the next: the difference
        # of two swings must not change the bias while the robot stands. The variance grows by the
        # whole drift.
        self._state = self._state @ _transition(dt, _EXTRAPOLATED).T
        A = _transition(dt, _FORGETTING)
        kept = A[1, 1]
        self._covariance = A @ self._covariance @ A.T
        self._covariance[:, 1, 1] += (1.0 - kept * kept) * self._drift ** 2

    def _is_credible(self, mean: Array, variance: Array) -> bool:
        innovation, parts = mean - self.bias, self._parts
        expected = self._covariance @ parts @ parts + variance
        return not (innovation * innovation > _GATE ** 2 * expected).any()

    def _correct(self, mean: Array, variance: Array, expected: Array) -> None:
        innovation, parts = mean - self.bias, self._parts
        with_bias = self._covariance @ parts
        gain = with_bias / (with_bias @ parts + variance)[:, np.newaxis]
        self._state = self._state + gain * innovation[:, np.newaxis]
        self._covariance = self._covariance - gain[:, :, np.newaxis] * with_bias[:, np.newaxis, :]
        if self._measured_at is None:
            self._measured_at = expected
        else:
            self._measured_at += gain @ parts * (expected - self._measured_at)
        self.updates += 1
        self.consecutive_rejected = self._agreeing = 0

    def _reject(self, mean: Array, variance: Array) -> None:
        """Restart from the initial covariance after rejected means that agree: a step."""
        step, self._rejected_mean = mean - self._rejected_mean, mean
        agrees = self._agreeing and (step * step < _GATE ** 2 * variance).all()
        self._agreeing = self._agreeing + 1 if agrees else 1
        if self._agreeing == _JUMP_COUNT:
            self._agreeing = 0
            self._reset_covariance(self._initial)

    def discard(self) -> None:
        """Discard the readings of this swing."""
        self._count, self._sum, self._squares = 0, np.zeros(6), np.zeros(6)
        self._expected_sum = np.zeros(6)
        self._began_ns = self._newest_ns = 0


def _transition(dt: float, forgetting: float) -> Array:
    """Return the transition (3, 3) of bias, drift and coefficient in dt, s; the drift decays."""
    kept = math.exp(-dt / forgetting)
    return np.array(((1.0, forgetting * (1.0 - kept), 0.0), (0.0, kept, 0.0), (0.0, 0.0, 1.0)))
