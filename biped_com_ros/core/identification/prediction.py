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
"""Predicted measurements of a robot of given masses in a pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture
from biped_com_ros.core.identification.first_moments import StaticsRegressor
import numpy as np

UP = np.array((0.0, 0.0, 1.0))


def predict_capture(regressor: StaticsRegressor, positions: Array, standing: Sequence[str],
                    theta: Array, name: str = '') -> Capture:
    """
    Return the predicted capture of a robot at rest on level soles.

    Parameters
    ----------
    regressor
        Of the robot.
    positions
        Of its joints, shape (n,), rad or m.
    standing
        Names of the feet on the ground, the first sole is level; none: hanging, the base is level.
    theta
        Masses and first moments (L, 4), kg and kg m.
    name
        Of the capture.

    Notes
    -----
    Statics does not determine how several feet share the weight; here the share grows with the
    nearness to the centre of mass.

    """
    model, feet = regressor.model, list(regressor.model.config.feet)
    rows = model.state(positions).placements_in_base(model.soles)
    chosen = [feet.index(foot) for foot in standing]
    up = rows[chosen[0], 2] if chosen else UP  # third column of R_base_sole
    up_frame = model.config.feet[standing[0]].sole if chosen else ''
    R_base_link = (model.state(positions).pose_in_base(up_frame).rotation if chosen
                   else np.eye(3))
    draft = Capture(
        positions, np.zeros((len(model.config.wrench_sensors), 6)),
        np.array([foot in standing for foot in feet]), R_base_link.T @ up, up_frame,
        np.full(len(model.joint_names), np.nan), name=name)
    wrenches = _contacts(regressor, positions, rows[chosen, 3], up, theta) if chosen else ()
    readings = regressor.readings(draft, dict(zip(standing, wrenches)), theta)
    torques = regressor.torques(draft, readings, theta)
    return replace(draft, wrenches=readings, torques=torques)


def _contacts(regressor: StaticsRegressor, positions: Array, soles: Array, up: Array,
              theta: Array) -> Array:
    """Return wrenches (feet, 6) about the base's origin, base axes, that carry the weight."""
    mass = float(theta[:, 0].sum())
    com = regressor.com_matrix(positions) @ theta.ravel() / mass
    weight = mass * GRAVITY * up
    offsets = soles - com
    level = offsets - np.outer(offsets @ up, up)
    nearness = 1.0 / (np.linalg.norm(level, axis=1) + 0.05)
    shares = nearness / nearness.sum()
    wrenches = np.zeros((len(soles), 6))
    wrenches[:, :3] = np.outer(shares, weight)
    wrenches[:, 3:] = np.cross(soles, wrenches[:, :3])
    missing = np.cross(com, weight) - wrenches[:, 3:].sum(axis=0)
    wrenches[:, 3:] += np.outer(shares, missing)
    return wrenches
