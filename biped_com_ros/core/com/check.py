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
"""Compares the centre of pressure of a robot at rest with the model's centre of mass."""

from __future__ import annotations

import math

from biped_com_ros.core.check_result import CheckResult
from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.geometry.pose import Array
import numpy as np

#: Largest distance of the centre of pressure from the model's CoM at rest that is plausible, as a
#: share of the height of the CoM: 5 mm of the demo robot.
_TOLERANCE = 0.0125

LEAST_SHARE = 0.5
"""Least share of the weight on the feet for a comparison."""

SETTLING_NS = 500_000_000
"""Time without motion before averaging starts, ns."""

WINDOW_NS = SECOND_NS
"""Duration of averaging, ns."""

CONFIRMING_NS = 900_000_000
"""
Time without motion after a mean before it counts, ns, less than the next mean takes. A motion that
begins moves the centre of pressure before its joints are fast enough to count as moving: slow ones
take half a second and more.
"""

AT_REST = 0.01
"""Largest speed of a centre of mass that is where it was in the last mean, m/s."""

LATEST_NS = 500_000_000
"""Longest time between the mean and the centre of mass that it is compared with, ns."""

_DISTANCE = 'distance [m]'


class RestMean:
    """
    Averages a vector while the robot rests.

    Parameters
    ----------
    size
        Number of its entries.

    """

    def __init__(self, size: int) -> None:
        self._sum, self._count, self._began_ns = np.zeros(size), 0, 0
        self._complete: tuple[int, Array] | None = None

    def add(self, values: Array, stamp_ns: int, moved_ns: int) -> Array | None:
        """
        Update with the values of one instant.

        Parameters
        ----------
        values
            Of this instant, (size,).
        stamp_ns
            Its time, ns.
        moved_ns
            Time of the last motion, ns.

        Returns
        -------
        numpy.ndarray or None
            The mean (size,), once per :data:`WINDOW_NS` of rest, after :data:`CONFIRMING_NS`.

        """
        if stamp_ns - moved_ns < SETTLING_NS:
            self._count, self._complete = 0, None
            return None
        if not self._count or stamp_ns < self._began_ns:
            self._sum[:], self._count, self._began_ns = 0.0, 0, stamp_ns
        self._sum += values
        self._count += 1
        mean = self._confirmed(stamp_ns)
        if stamp_ns - self._began_ns >= WINDOW_NS:
            self._complete, self._count = (stamp_ns, self._sum / self._count), 0
        return mean

    def _confirmed(self, stamp_ns: int) -> Array | None:
        """Return the last complete mean once nothing has moved since it for long enough."""
        if self._complete is None or 0 <= stamp_ns - self._complete[0] < CONFIRMING_NS:
            return None
        (completed_ns, mean), self._complete = self._complete, None
        return mean if stamp_ns >= completed_ns else None  # else the clock was set back


class ComCheck:
    """
    Compares the centre of pressure of a robot at rest with the model's centre of mass.

    At rest one is above the other; in motion they differ by the effect of acceleration.

    Parameters
    ----------
    body_weight
        N, of the model.
    com_height
        Of the model's centre of mass above its soles, m.
    is_calibrated
        Whether the model's masses are calibrated: then no calibration is the remedy.

    """

    def __init__(self, body_weight: float, com_height: float,
                 is_calibrated: bool = False) -> None:
        self._weight, self._largest = body_weight, _TOLERANCE * com_height
        self._is_calibrated = is_calibrated

    @staticmethod
    def is_of_rest(estimate: ComEstimate, mean_ns: int) -> bool:
        """
        Return whether an estimate is that of the robot at rest that a mean is of.

        The mean arrives when it is complete, or later: by then the robot may have set off.

        Parameters
        ----------
        estimate
            The estimate.
        mean_ns
            Time of the mean, ns.

        """
        velocity = estimate.velocity
        return abs(estimate.located.stamp_ns - mean_ns) <= LATEST_NS and (
            velocity is None or math.hypot(*velocity) <= AT_REST)

    def result(self, total: Array, com: Array) -> CheckResult:
        """
        Compare the two of a robot at rest.

        Parameters
        ----------
        total
            Wrench of the ground about a point on it, level axes, (6,), N and N m.
        com
            The model's centre of mass from that point, same axes, (3,), m.

        """
        vertical = float(total[2])
        if vertical < LEAST_SHARE * self._weight:
            return CheckResult(True, 'not compared: the feet carry less than half the weight',
                               {_DISTANCE: math.nan})
        forward = -float(total[4]) / vertical - float(com[0])
        left = float(total[3]) / vertical - float(com[1])
        distance = math.hypot(forward, left)
        where = f'{1e3 * distance:.1f} mm (forward {1e3 * forward:+.1f}, left {1e3 * left:+.1f})'
        if distance <= self._largest:
            return CheckResult(True, f'centre of pressure within {where} of the model',
                               {_DISTANCE: distance})
        masses = ('look for a load that was not there in the calibration' if self._is_calibrated
                  else "the URDF's masses differ from the robot's: calibrate "
                  '(calibration.launch.py)')
        return CheckResult(False, (
            f"at rest the centre of pressure is {where} from the model's CoM: tare with the feet "
            f'in the air; if it stays, {masses}'), {_DISTANCE: distance})
