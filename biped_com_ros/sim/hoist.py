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
"""A hoist that lifts the simulated robot by its root link, and lowers it."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

from biped_com_ros.sim.frames import Array, quaternion_wxyz, rotation_about
import mujoco
import numpy as np

LIFT = 0.25
"""Height of the lift over that of the base while standing."""

LIFTING_TIME = 2.0
"""Duration of lifting or lowering, s."""

RELEASE_SHARE = 0.95
"""Share of the weight that the ground carries when the hook opens."""

HOOK = 'hook'
_AXIS_Z = np.array((0.0, 0.0, 1.0))


def add_hoist(spec: Any, root: str) -> None:
    """Add the hook and its weld to the body `root`, which is inactive at first."""
    spec.worldbody.add_body(name=HOOK, mocap=True)
    weld = spec.add_equality(
        name=HOOK, type=mujoco.mjtEq.mjEQ_WELD, objtype=mujoco.mjtObj.mjOBJ_BODY, name1=HOOK,
        name2=root, active=False, solref=(0.01, 1.0), solimp=(0.99, 0.999, 0.001, 0.5, 2.0))
    # No anchor, the pose in which they coincide, and torques as strong as forces.
    weld.data[:11] = (*np.zeros(6), 1.0, *np.zeros(3), 1.0)


class Hoist:
    """
    The hook of a plant.

    Parameters
    ----------
    model, data
        MuJoCo's.
    ground_force
        Returns the vertical force of the ground, N.

    Attributes
    ----------
    holds
        Whether the robot hangs on the hook, is being lifted or being lowered.

    """

    def __init__(self, model: Any, data: Any, ground_force: Callable[[], float]) -> None:
        self._data, self._ground_force = data, ground_force
        self._weld = model.equality(HOOK).id
        self._hook = int(model.body(HOOK).mocapid[0])
        self._root = int(model.eq_obj2id[self._weld])  # the welded body
        self._weight = -float(model.opt.gravity[2]) * float(model.body_subtreemass[self._root])
        self.holds, self._is_lowering = False, False
        self._time = self._duration = 0.0

    def put_down(self, base_height: float) -> None:
        """
        Open the hook at once, and store how the robot stands.

        Parameters
        ----------
        base_height
            Of the base over the ground while it stands, m.

        """
        data = self._data
        self._stand = data.xmat[self._root].reshape(3, 3).copy()
        self._stand_z = float(data.xpos[self._root, 2])
        self._lift = LIFT * base_height
        self._release()

    def lift(self) -> None:
        """Begin to lift the robot and to turn it upright."""
        data, hook = self._data, self._hook
        if not self.holds:
            data.mocap_pos[hook] = data.xpos[self._root]
            data.mocap_quat[hook] = data.xquat[self._root]
            data.eq_active[self._weld], self.holds = 1, True
        self._start(self._stand_z + self._lift)

    def lower(self) -> None:
        """Begin to lower the robot; once the ground carries it, the hook opens."""
        if self.holds:
            # Further than it stood: the posture may have changed, and legs are elastic.
            self._start(self._stand_z - 0.5 * self._lift)
            self._is_lowering = True

    def step(self, dt: float) -> None:
        """Move the hook by a time step `dt`, s."""
        if not self.holds or self._time >= self._duration:
            return
        self._time = min(self._time + dt, self._duration)
        share = 0.5 * (1.0 - math.cos(math.pi * self._time / self._duration))
        data, hook = self._data, self._hook
        data.mocap_pos[hook, 2] = self._from_z + share * (self._to_z - self._from_z)
        turned = self._from_quat + share * (self._to_quat - self._from_quat)
        data.mocap_quat[hook] = turned / np.linalg.norm(turned)
        if self._is_lowering and (
                share == 1.0 or self._ground_force() > RELEASE_SHARE * self._weight):
            self._release()

    def _start(self, to_z: float) -> None:
        data, hook = self._data, self._hook
        self._from_z, self._to_z = float(data.mocap_pos[hook, 2]), to_z
        self._from_quat = data.mocap_quat[hook].copy()
        self._to_quat = self._upright()
        if self._to_quat @ self._from_quat < 0.0:
            self._to_quat = -self._to_quat
        self._time, self._is_lowering = 0.0, False
        # A fallen robot is lifted further, and turned.
        distance = abs(to_z - self._from_z) / max(self._lift, 1e-6)
        self._duration = LIFTING_TIME * min(max(1.0, distance), 3.0)

    def _upright(self) -> Array:
        """Return the orientation (w, x, y, z) in which it stood, with the present heading."""
        turned = self._data.xmat[self._root].reshape(3, 3) @ self._stand.T
        heading = math.atan2(turned[1, 0], turned[0, 0])
        return np.asarray(quaternion_wxyz(rotation_about(_AXIS_Z, heading) @ self._stand))

    def _release(self) -> None:
        self._data.eq_active[self._weld] = 0
        self.holds, self._is_lowering, self._time, self._duration = False, False, 0.0, 0.0
