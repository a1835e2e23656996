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
"""The information in the captures so far, without solving."""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture
from biped_com_ros.core.identification.estimator import Estimator
import numpy as np


class CaptureInformation:
    """
    Sums the information of captures, in units of the prior.

    Parameters
    ----------
    estimator
        Of the robot.
    captures
        Those there are at the start.

    """

    def __init__(self, estimator: Estimator, captures: Sequence[Capture]) -> None:
        self._estimator = estimator
        self._information: Array = np.eye(4 * len(estimator.model.link_names))
        self._poses: list[Array] = [estimator.model.posture('stand')]
        for capture in captures:
            self.add(capture)

    def add(self, capture: Capture) -> None:
        """Add the information of one more."""
        rows = self._estimator.rows(capture)
        self._information += rows.T @ rows
        self._poses.append(capture.positions)

    @property
    def com_std(self) -> float:
        """Return the predicted standard deviation of the total CoM over the poses, m per axis."""
        return self._estimator.predicted_com_std(self._information, self._poses[-20:])

    def describe(self) -> str:
        """Return the predicted uncertainty as text."""
        return f'CoM uncertainty {1e3 * self.com_std:.2f} mm'
