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
"""Readings of a wrench sensor, turned into wrenches of the environment on the robot."""

from __future__ import annotations

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import RobotConfig
import numpy as np


class ReadingCorrection:
    """
    Scale, bias and matrix of one sensor: ``true = matrix @ (scale * reading - bias)``.

    Parameters
    ----------
    config
        The robot's configuration.
    sensor
        Name of the wrench sensor.

    Attributes
    ----------
    scale
        Of the reading, by the configuration, shape (6,).
    bias
        Offset that the configuration gives, shape (6,), N and N m; a tare uses another one.
    matrix
        Shape (6, 6); None for a sensor without known errors.

    """

    def __init__(self, config: RobotConfig, sensor: str) -> None:
        known = config.instruments.sensor(sensor)
        self.scale = np.array(config.wrench_sensors[sensor].factors)
        self.bias = np.array(known.bias)
        self.matrix: Array | None = known.matrix if known.correction else None

    def corrected(self, scaled: Array, offset: Array) -> Array:
        """Return the wrench (6,) of a scaled reading: here the offset of a tare is subtracted."""
        unbiased = scaled - offset
        if self.matrix is not None:
            unbiased = self.matrix.dot(unbiased)
        return unbiased

    def reading_of(self, wrench: Array) -> Array:
        """Return the reading (6,), after the scale and without bias, of a true wrench."""
        return wrench if self.matrix is None else np.array(np.linalg.solve(self.matrix, wrench))
