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
Soles that stand flat on one floor, as equations of joint offsets, IMU, soles and floor.

A sole that stands flat has the floor's normal, and all of them are in one plane. With u the
direction against gravity in the base, e_1 the horizontal mean direction of the standing soles' x
axes and e_2 = u x e_1, a floor that is turned by (f_x, f_y) about these has the normal
``n ~ u + f_y e_1 - f_x e_2``. With (R_i, p_i) the URDF's frame of sole i in the base, that is
turned by (t_x, t_y) and raised by h_i where the sole really is,

    exp(-t_i) R_i^T n = e_z,    n . (p_i + h_i z_i - p_1 - h_1 z_1) = 0,

each with a noise: soles are soft and floors are not flat. The floor is level within its prior;
the feet are taken to point in the same direction in all captures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
import math

from biped_com_ros.core.errors import some_of
from biped_com_ros.core.geometry.pose import Array, BoolArray, IndexArray
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import Equations, STEP
from biped_com_ros.core.identification.equations.instruments import InstrumentErrors
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

STEEPEST, HIGHEST, CREDIBLE = 0.05, 0.02, 5.0
"""A sole that is tilted by more (rad), or higher than another one by more (m), and by more than so
many standard deviations, does not stand flat on the same floor: it stands on an edge, a ramp or a
step."""

JOINTS, ARM = 6, 0.5
"""Number of joints of a leg, and their mean distance from the other foot, m: by these, offsets of
joints tilt and raise soles."""

NAMED = 4
"""Number of captures that are named in a warning."""


class SoleContacts:
    """
    Equations of the soles of standing feet.

    Parameters
    ----------
    model
        The robot.
    captures
        As they were measured.
    noise
        With ``sole_contact`` 0 there are no equations.

    Attributes
    ----------
    warnings
        Captures in which soles that stand are not used.

    """

    def __init__(self, model: RobotModel, captures: Sequence[Capture], noise: SensorNoise) -> None:
        self._model = model
        self._frames: dict[str, FrameSet] = {}
        feet = len(model.config.feet)
        by_joints = math.sqrt(JOINTS) * noise.encoder_offset
        self._steepest = max(STEEPEST, CREDIBLE * math.hypot(
            noise.floor_tilt, noise.sole_turn, noise.tilt_bias, by_joints))
        self._highest = max(HIGHEST, CREDIBLE * math.hypot(noise.sole_height, ARM * by_joints))
        self._used: list[BoolArray] = [
            self._flat(capture) if noise.sole_contact > 0.0 else np.zeros(feet, dtype=bool)
            for capture in captures]
        self._moving = self._moving_joints(captures)
        self.warnings = self._warnings(captures) if noise.sole_contact > 0.0 else ()

    def extended(self, number: int, capture: Capture, e: Equations, errors: InstrumentErrors,
                 noise: Array) -> Equations:
        """
        Return the equations of a capture with those of its soles after the others.

        Parameters
        ----------
        number
            Of the capture.
        capture
            Corrected by `errors`, and less its noise.
        e
            Its other equations.
        errors
            Of which the floor and the soles count.
        noise
            Of the soles, x, y and height by foot, (3 feet,), rad and m.

        """
        used = self._used[number]
        if not used.any():
            return e
        rows = _rows(used)
        ground = np.concatenate((errors.floor, errors.soles.ravel()))
        b, by_position, by_up, by_ground = self._linearised(capture, ground, used)
        by_noise = np.eye(len(b))
        by_noise[2::3, 3 * int(np.argmax(used)) + 2] -= 1.0
        inputs, more = e.inputs, len(rows)
        J = np.zeros((more, inputs.size))
        J[:, inputs.positions], J[:, inputs.up] = by_position[rows], by_up[rows]
        J[:, inputs.soles] = by_noise[rows]
        first = 6 + inputs.readings.stop - inputs.up.stop + len(capture.positions)
        return replace(
            e, A=np.concatenate((e.A, np.zeros((more, e.A.shape[1])))),
            b=np.concatenate((e.b, (b - by_noise @ noise)[rows])),
            rows=np.concatenate((e.rows, first + rows)), J=np.concatenate((e.J, J)),
            J_ground=np.concatenate((e.J_ground, by_ground[rows])))

    def _linearised(self, capture: Capture, ground: Array,
                    used: BoolArray) -> tuple[Array, Array, Array, Array]:
        """Return residuals (3 feet,), and derivatives by positions, `up`, and floor and soles."""
        q, moving, n = capture.positions, self._moving, len(capture.positions)
        positions = q + STEP * np.concatenate((np.zeros((1, n)), np.eye(n)[moving]))
        rows, ups = self._placed(positions, capture)
        turned = (np.eye(3) + STEP * skew(np.eye(3))) @ capture.up
        R = rows[0, -1, :3].T if capture.up_frame else np.eye(3)
        steps = STEP * np.eye(len(ground))
        count = 3 + len(steps)
        residuals = _residuals(
            np.concatenate((rows, np.repeat(rows[:1], count, axis=0)))[:, :len(used)],
            np.concatenate((ups, turned @ R.T, np.repeat(ups[:1], len(steps), axis=0))),
            np.concatenate((np.tile(ground, (len(rows) + 3, 1)), ground + steps)), used)
        derivatives = (residuals[1:] - residuals[0]).T / STEP
        by_position = np.zeros((len(derivatives), n))
        by_position[:, moving] = derivatives[:, :len(moving)]
        by_up, by_ground = np.split(derivatives[:, len(moving):], [3], axis=1)
        return residuals[0], by_position, by_up, by_ground

    def _placed(self, positions: Array, capture: Capture) -> tuple[Array, Array]:
        """Return soles (N, feet, 4, 3), the frame of `up` last, and `up` in the base (N, 3)."""
        frame = capture.up_frame
        if frame not in self._frames:
            self._frames[frame] = self._model.soles + self._model.frames((frame,) if frame else ())
        rows = np.array([self._model.state(q).placements_in_base(self._frames[frame])
                         for q in positions])
        up = capture.up / np.linalg.norm(capture.up)
        ups = up @ rows[:, -1, :3] if frame else np.broadcast_to(up, (len(rows), 3))
        return rows, ups

    def _flat(self, capture: Capture) -> BoolArray:
        """Return which of the standing soles are flat and in one plane, (feet,)."""
        rows, ups = self._placed(capture.positions[np.newaxis], capture)
        soles = rows[0, :len(self._model.config.feet)]
        flat = np.asarray(capture.in_contact, dtype=bool) & (
            soles[:, 2] @ ups[0] > math.cos(self._steepest))
        if not flat.any():
            return flat
        height = soles[:, 3] @ soles[flat, 2].mean(axis=0)  # a tilted floor has no step
        return np.asarray(flat & (np.abs(height - height[np.argmax(flat)]) < self._highest))

    def _moving_joints(self, captures: Sequence[Capture]) -> IndexArray:
        """Return the joints that move a sole against the frame of gravity or another sole."""
        found = np.zeros(len(self._model.joint_names), dtype=bool)
        for frame in {c.up_frame for c in captures}:
            capture = next(c for c in captures if c.up_frame == frame)
            rows, _ = self._placed(
                capture.positions + 0.1 * np.concatenate((
                    np.zeros((1, len(found))), np.eye(len(found)))), capture)
            found |= (np.abs(rows[1:] - rows[0]) > 1e-9).any(axis=(1, 2, 3))
        return np.flatnonzero(found)

    def _warnings(self, captures: Sequence[Capture]) -> tuple[str, ...]:
        bad = [capture.name or str(i + 1) for i, (capture, used) in enumerate(
            zip(captures, self._used)) if (used != capture.in_contact).any()]
        if not bad:
            return ()
        return (f'soles do not stand flat on one floor in captures {some_of(bad, NAMED)}: their '
                'directions are not used; put all soles flat on the same floor',)


def _rows(used: BoolArray) -> IndexArray:
    """Return which of three rows per foot are used: heights count from the first one on."""
    keep = np.repeat(used, 3).reshape(-1, 3)
    keep[np.argmax(used), 2] = False
    return np.flatnonzero(keep)


def _residuals(soles: Array, ups: Array, ground: Array, used: BoolArray) -> Array:
    """Return the residuals (N, 3 F) of soles (N, F, 4, 3), `ups` (N, 3), `ground` (N, 2 + 3 F)."""
    placement = ground[:, 2:].reshape(len(ground), -1, 3)
    ahead = soles[:, used, 0].mean(axis=1)
    ahead = ahead - (ahead * ups).sum(axis=1, keepdims=True) * ups
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    normal = ups + ground[:, 1:2] * ahead - ground[:, :1] * np.cross(ups, ahead)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    v = np.einsum('nfki,ni->nfk', soles[:, :, :3], normal)
    height = np.einsum('nfi,ni->nf', soles[:, :, 3] + placement[:, :, 2:] * soles[:, :, 2], normal)
    first = int(np.argmax(used))
    return np.stack((v[:, :, 0] - placement[:, :, 1] * v[:, :, 2],
                     v[:, :, 1] + placement[:, :, 0] * v[:, :, 2],
                     height - height[:, first:first + 1]), axis=2).reshape(len(ground), -1)
