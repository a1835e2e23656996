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
"""The tendon torso of a running simulation, in terms of the URDF's six virtual joints."""

from __future__ import annotations

import math
from typing import Any

from biped_com_ros.core.model.config import TorsoConfig
from biped_com_ros.sim import torso
from biped_com_ros.sim.frames import Array, relative
from biped_com_ros.sim.gains import set_tendon_gains, UpperBody
import numpy as np


class TendonTorso:
    """
    Tendon servos and the shape of the backbone.

    The tension is ``pretension + k (l - command)`` plus damping, clamped to between zero and the
    servo's limit. At the commanded length it is the pretension.

    Parameters
    ----------
    model, data
        MuJoCo's, after ``mj_forward`` with the torso straight; the servos' gains are set here.
    mount, config
        Where the backbone is mounted, and what it is.
    nominal
        Upper body that the servos are tuned for; None: the true one.

    Attributes
    ----------
    count
        Number of tendons.
    pretension
        Shape (count,), N.
    compression
        Of the straight backbone under weight and pretensions, m.

    """

    def __init__(self, model: Any, data: Any, mount: torso.Mount, config: TorsoConfig,
                 nominal: UpperBody | None = None) -> None:
        self._data, self._mount, self._config = data, mount, config
        self.count, upper = len(config.attachment_angles_deg), UpperBody.of(model, data)
        self.pretension = set_tendon_gains(model, config, nominal or upper)
        self.compression = (upper.weight + float(self.pretension.sum())) / config.axial_stiffness
        self._motors = np.array([model.actuator(f'tendon/{i}').id for i in range(self.count)])
        self._stiffness = -model.actuator_biasprm[self._motors, 1]
        segments = range(1, torso.SEGMENTS + 1)
        self._qpos = np.array([[model.joint(f'vertebra/{k}/{n}').qposadr[0]
                                for n in ('z', 'roll', 'pitch', 'yaw')] for k in segments])
        self._ends = (model.body(f'link/{config.lower}').id,
                      model.body(f'vertebra/{torso.SEGMENTS}').id)

    def place(self, positions: Array) -> None:
        """
        Give the backbone the shape of virtual joint positions (6,), with its compression.

        The joint z is the backbone's elongation; x, y and the small change of z by bending follow
        from the bend.
        """
        bend, direction, twist, length = self._shape(positions)
        bend, shrink = bend / torso.SEGMENTS, length - self._config.backbone_length
        self._data.qpos[self._qpos] = (
            (shrink - self.compression) / torso.SEGMENTS, -bend * math.sin(direction),
            bend * math.cos(direction), twist / torso.SEGMENTS)

    def lengths_for(self, positions: Array) -> Array:
        """Return the tendon lengths (count,), m, for virtual joint positions; see `place`."""
        bend, direction, _, length = self._shape(positions)
        return torso.chord_lengths(bend, direction, length - self.compression, self._config)

    def drive(self, control: Array, lengths: Array) -> None:
        """Write the controls for tendon lengths (count,), m, to `control`."""
        control[self._motors] = self._stiffness * lengths - self.pretension

    def tensions(self, out: Array) -> None:
        """Write the tendons' tensions, N, to `out` (count,)."""
        np.negative(self._data.actuator_force[self._motors], out=out)

    def virtual_positions(self) -> Array:
        """Return the backbone's shape as the virtual joints x, y, z, roll, pitch, yaw (6,)."""
        tip = self._mount.lower_to_base.inverse() @ relative(self._data, *self._ends)
        return torso.virtual_positions(tip, self._mount, self._config)

    def _shape(self, positions: Array) -> tuple[float, float, float, float]:
        """Bend, its direction, torsion (rad) and length (m) of a constant curvature."""
        rotation = torso.virtual_rotation(positions[3:], self._mount)
        across = math.hypot(rotation[0, 2], rotation[1, 2])
        bend = math.atan2(across, rotation[2, 2])
        direction = math.atan2(rotation[1, 2], rotation[0, 2]) if across > 1e-12 else 0.0
        # R = Rz(direction) Ry(bend) Rz(twist - direction).
        twist = math.atan2(rotation[1, 0] - rotation[0, 1], rotation[0, 0] + rotation[1, 1])
        length = positions[2] + self._config.backbone_length - self._mount.rest
        return bend, direction, twist, length
