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
How long before a fall the level of stability is UNSTABLE, of robots that fall while they walk.

::

    python -m benchmarks.falls --walks DIR [--falls 6]

MuJoCo continues a recorded walk (see benchmarks/recorded_walk.py) from a random instant. The
motors repeat what the recording's did, with a spring to its joint positions: without the policy
that balanced it, and with a random push of up to 250 N for 0.2 s, the robot falls within two
seconds.
It has fallen when it leans by a radian, or its centre of mass is at 60 % of its height.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import math
from pathlib import Path
import sys
from typing import Any, NamedTuple

from benchmarks.common import console, print_table, print_targets, Target
from benchmarks.recorded_walk import (
    directory, names, robot_of, rotations, urdf_of, VARIABLE, walk_model)
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Stance, Twist
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
import mujoco
import numpy as np

_DT, _STEP_NS = 0.002, 2_000_000
_WALK_BEFORE = 900  # instants of the recording before the fall begins
_PUSH_AT, _PUSH_FOR, _STRONGEST = 0.1, 0.2, 250.0
_FALLEN_TILT, _FALLEN_HEIGHT = 1.0, 0.6


class FallInstant(NamedTuple):
    """Truth of an instant: pose, velocities in the world, joints, forces on the feet."""

    R_world_base: Array
    position: Array
    velocity: Array
    turning_in_base: Array
    joints: Array
    speeds: Array
    loads: Array
    com_height: float


class FallRecording:
    """
    A recorded walk and its robot in MuJoCo.

    Parameters
    ----------
    path, name
        Directory and name of the recording.

    """

    def __init__(self, path: Path, name: str) -> None:
        robot = robot_of(name)
        self.model = walk_model(path, robot)
        with np.load(path / f'{name}.npz') as file:
            self.arrays = {key: file[key] for key in file.files}
        order = [self.arrays['joint_names'].tolist().index(n) for n in self.model.joint_names]
        self.arrays |= {key: self.arrays[key][..., order] for key in (
            'positions', 'velocities', 'efforts', 'armature')}
        self.rotations = rotations(self.arrays['base_quaternion_wxyz'].astype(float))
        self.plant = _compile(urdf_of(path, robot), self.model)
        for joint, inertia in zip(self.model.joint_names, self.arrays['armature']):
            self.plant.dof_armature[self.plant.joint(joint).dofadr] = inertia

    def before(self, begin: int) -> Iterator[FallInstant]:
        """Yield what was recorded before an instant."""
        a = self.arrays
        for i in range(begin - _WALK_BEFORE, begin):
            yield FallInstant(
                self.rotations[i], *(a[key][i].astype(float) for key in (
                    'base_position', 'base_linear_velocity_in_world',
                    'base_angular_velocity_in_base', 'positions', 'velocities')),
                a['foot_wrenches_in_world'][i, :, 2].astype(float), float(a['com'][i, 2]))

    def fall(self, begin: int, push: Array) -> Iterator[FallInstant]:
        """Simulate from a recorded instant on until the robot has fallen."""
        data, a, plant = mujoco.MjData(self.plant), self.arrays, self.plant
        joints = [plant.joint(name).id for name in self.model.joint_names]
        q, v = plant.jnt_qposadr[joints], plant.jnt_dofadr[joints]
        data.qpos[:7] = *a['base_position'][begin], *a['base_quaternion_wxyz'][begin]
        data.qvel[:6] = (*a['base_linear_velocity_in_world'][begin],
                         *a['base_angular_velocity_in_base'][begin])
        data.qpos[q], data.qvel[v] = a['positions'][begin], a['velocities'][begin]
        stiffness = np.where(['ankle' in n for n in self.model.joint_names], 40.0, 150.0)
        pelvis, height = plant.body('pelvis').id, 0.0
        for i in range(begin, len(a['positions'])):
            pushed = _PUSH_AT <= data.time < _PUSH_AT + _PUSH_FOR
            data.xfrc_applied[pelvis, :3] = push if pushed else 0.0
            data.qfrc_applied[v] = np.clip(
                a['efforts'][i] + stiffness * (a['positions'][i] - data.qpos[q])
                + (1.0 + 0.02 * stiffness) * (a['velocities'][i] - data.qvel[v]), -150.0, 150.0)
            mujoco.mj_step(plant, data, 2)
            R = data.xmat[pelvis].reshape(3, 3).copy()
            com_height = float(data.subtree_com[pelvis, 2])
            height = height or com_height
            if math.acos(min(R[2, 2], 1.0)) > _FALLEN_TILT or (
                    com_height < _FALLEN_HEIGHT * height):
                return
            yield FallInstant(R, data.qpos[:3].copy(), data.qvel[:3].copy(), data.qvel[3:6].copy(),
                              data.qpos[q].copy(), data.qvel[v].copy(), self._loads(data),
                              com_height)

    def _loads(self, data: Any) -> Array:
        loads, force = np.zeros(len(self.model.soles.names)), np.zeros(6)
        for k, contact in enumerate(data.contact):
            mujoco.mj_contactForce(self.plant, data, k, force)
            body = self.plant.body(self.plant.geom_bodyid[contact.geom2]).name
            for foot, name in enumerate(self.model.config.feet):
                loads[foot] += force[0] * body.startswith(name)
        return loads


def _compile(urdf: Path, model: RobotModel) -> Any:
    """Return MuJoCo's model of a robot on a floor; its soles have spheres at their corners."""
    spec = mujoco.MjSpec.from_file(str(urdf))
    spec.option.timestep = 0.5 * _DT
    spec.body('pelvis').add_freejoint()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    for foot in model.config.feet.values():
        for x, y in foot.polygon:
            spec.body(foot.sole).add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.005, 0, 0], mass=0,
                pos=[x, y, foot.sole_origin[2] + 0.005])
    return spec.compile()


def lead(recording: FallRecording, begin: int, push: Array) -> tuple[float, float]:
    """Return how long the level was UNSTABLE at the fall, s, and its share before, while good."""
    model = recording.model
    monitor = StabilityMonitor(model, MonitorSettings())
    contacts = FootContacts(
        ContactThresholds(engage_dwell=0.0), GRAVITY * model.mass, len(model.soles.names))
    unstable = []
    instants = [*recording.before(begin), *recording.fall(begin, push)]
    for k, now in enumerate(instants):
        state = model.state(now.joints, now.speeds).in_world(Pose(now.R_world_base, now.position))
        twist = Twist(now.velocity @ now.R_world_base, now.turning_in_base)
        stance = Stance(
            state.soles_in_world, contacts.update(now.loads.tolist(), (k + 1) * _STEP_NS))
        monitor.update(LocatedState(
            (k + 1) * _STEP_NS, state, stance, True, lambda _, twist=twist: twist))
        unstable.append(monitor.watch.level >= Level.UNSTABLE)
    first = len(unstable) - (unstable[::-1] + [False]).index(False)
    return _DT * (len(unstable) - first), float(np.mean(unstable[_WALK_BEFORE // 3:_WALK_BEFORE]))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--walks', default='', help='directory of the recordings')
    parser.add_argument('--falls', type=int, default=6, help='of each recording')
    options = parser.parse_args()
    path = directory(options.walks)
    if path is None:
        console.print(f'skipped: no recorded walks; name their directory by --walks or {VARIABLE}')
        return 0
    random, rows, leads, shares = np.random.default_rng(0), [], [], []
    for name in names(path):
        recording = FallRecording(path, name)
        for _ in range(options.falls):
            angle, force = random.uniform(0.0, 2.0 * math.pi), random.uniform(0.0, _STRONGEST)
            begin = int(random.uniform(3.0, 15.0) / _DT)
            found, share = lead(recording, begin, force * np.array(
                (math.cos(angle), math.sin(angle), 0.0)))
            leads.append(found)
            shares.append(share)
            rows.append((name, f'{_DT * begin:.1f}', f'{force:.0f}', f'{found:.2f}',
                         f'{100.0 * share:.1f}'))
    print_table('Falls while walking', (
        'walk', 'at, s', 'push, N', 'UNSTABLE before the fall, s', 'before, while good, %'), rows)
    targets = [Target('1', 'least time of UNSTABLE before a fall', min(leads), 0.3,
                      at_least=True, unit='s'),
               Target('2', 'UNSTABLE while walking well', 100.0 * max(shares), 1.0, unit='%')]
    print_targets(targets)
    return 0 if all(target.met for target in targets) else 1


if __name__ == '__main__':
    sys.exit(main())
