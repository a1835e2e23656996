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
Records walks of learned policies in MuJoCo, with the truth, for ``benchmarks.walks``.

::

    python -m benchmarks.record_walks --policies DIR --out DIR [--seconds 20] [--push-every 4]
                                      [NAME ...]

``DIR`` is a checkout of unitree_rl_gym, which has policies and models of Unitree G1, H1 and H1-2;
PyTorch is needed to evaluate them (``pip install torch``). Neither belongs to this project, nor
does the motion, which is why it can judge the estimators. Each instant is recorded before it is
integrated, so that positions, accelerations and contact forces belong together. Command, push and
friction of each walk are in `WALKS`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
import math
from pathlib import Path
import sys
from typing import Any
import xml.etree.ElementTree as ElementTree

from benchmarks.common import console
from biped_com_ros.core.geometry.pose import Array
import mujoco
import numpy as np
import yaml

TIMESTEP = 0.002
#: Of the phase that the policies get, s.
_PERIOD = 0.8
#: Of a push, s.
_PUSH_FOR = 0.2
_FALLEN = 0.6
"""A robot whose pelvis is lower than this share of its first height has fallen."""


@dataclass(frozen=True, kw_only=True)
class RobotFiles:
    """Where a checkout has what belongs to a robot: model for MuJoCo, URDF."""

    scene: str
    urdf: str


ROBOTS = {
    'g1': RobotFiles(scene='g1_description/scene.xml', urdf='g1_description/g1_12dof.urdf'),
    'h1': RobotFiles(scene='h1/scene.xml', urdf='h1/urdf/h1.urdf'),
    'h1_2': RobotFiles(scene='h1_2/scene.xml', urdf='h1_2/h1_2_12dof.urdf')}


@dataclass(frozen=True, kw_only=True)
class CommandedWalk:
    """
    What is asked of a robot.

    Attributes
    ----------
    robot
        Of `ROBOTS`.
    commands
        Velocities forward and to the left and turning rate, m/s and rad/s, in equal parts of the
        time.
    push
        Level force on the pelvis, N, in directions drawn at random.
    friction
        Coulomb friction of each joint, N m.

    """

    robot: str
    commands: tuple[tuple[float, float, float], ...]
    push: float = 0.0
    friction: float = 0.1


_FORWARD, _FAST = (0.5, 0.0, 0.0), (0.8, 0.0, 0.0)
_VARIED = ((0.6, 0.0, 0.0), (0.0, 0.0, 0.8), (0.3, 0.2, -0.4), (0.0, 0.0, 0.0), (-0.3, 0.0, 0.0))
WALKS = {f'{robot}_{name}': CommandedWalk(robot=robot, **walk)
         for robot in ROBOTS for name, walk in {
             'fast': {'commands': (_FAST,)},
             'backward': {'commands': ((-0.4, 0.0, 0.0),)},
             'sideways': {'commands': ((0.1, 0.3, 0.0),)},
             'varied': {'commands': _VARIED},
             'pushed60': {'commands': ((0.4, 0.0, 0.0),), 'push': 60.0},
             'friction1': {'commands': (_FORWARD,), 'friction': 1.1}}.items()}


class WalkingPolicy:
    """A learned policy: 50 times per second positions of the joints, for their drives."""

    def __init__(self, directory: Path, robot: str) -> None:
        import torch
        self._torch = torch
        settings = yaml.safe_load(
            (directory / f'deploy/deploy_mujoco/configs/{robot}.yaml').read_text())
        self._network = torch.jit.load(str(directory / f'deploy/pre_train/{robot}/motion.pt'))
        self.rest = np.array(settings['default_angles'], dtype=float)
        self.stiffness, self.damping = (np.array(settings[k], dtype=float) for k in ('kps', 'kds'))
        self.every = int(settings['control_decimation'])
        self._scales = {key: np.array(settings[f'{key}_scale'], dtype=float)
                        for key in ('ang_vel', 'dof_pos', 'dof_vel', 'action', 'cmd')}
        self._action = np.zeros(len(self.rest))

    def act(self, time: float, data: mujoco.MjData, command: Sequence[float]) -> Array:
        """Return the positions that the drives shall reach, rad."""
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
        phase, scales = 2.0 * math.pi * (time / _PERIOD % 1.0), self._scales
        observed = np.concatenate((
            data.qvel[3:6] * scales['ang_vel'], -rotation[6:], np.array(command) * scales['cmd'],
            (data.qpos[7:] - self.rest) * scales['dof_pos'], data.qvel[6:] * scales['dof_vel'],
            self._action, (math.sin(phase), math.cos(phase)))).astype(np.float32)
        with self._torch.no_grad():
            found = self._network(self._torch.from_numpy(observed[np.newaxis]))
        self._action = found.numpy().squeeze().astype(float)
        target: Array = self.rest + scales['action'] * self._action
        return target


class WalkRecorder:
    """The robot of a walk in MuJoCo, and what is recorded of it."""

    def __init__(self, directory: Path, walk: CommandedWalk, push_every: float) -> None:
        self.walk, self.policy = walk, WalkingPolicy(directory, walk.robot)
        self._push_every = push_every
        self.model = load_model(directory / 'resources/robots' / ROBOTS[walk.robot].scene)
        self.model.dof_frictionloss[6:] = walk.friction
        self.data = mujoco.MjData(self.model)
        self.data.qpos[7:] = self.policy.rest
        self._feet = [b for b in range(self.model.nbody) if self._is_foot(b)]
        self.rows: dict[str, list[Array]] = {}

    def run(self, seconds: float, seed: int) -> None:
        """Let it walk; a robot that falls ends the recording with a ValueError."""
        model, data, policy = self.model, self.data, self.policy
        random, count = np.random.default_rng(seed), round(seconds / TIMESTEP)
        target, parts, push = policy.rest, self.walk.commands, np.zeros(3)
        height = data.qpos[2]
        for i in range(count):
            time = i * TIMESTEP
            if i and i % policy.every == 0:
                target = policy.act(time, data, parts[i * len(parts) // count])
            data.ctrl[:] = (policy.stiffness * (target - data.qpos[7:])
                            - policy.damping * data.qvel[6:])
            push = self._push(time, push, random)
            data.xfrc_applied[1, :3] = push
            mujoco.mj_forward(model, data)
            self._record(time, push)
            mujoco.mj_step(model, data)
            if data.qpos[2] < _FALLEN * height:
                raise ValueError(f'fell after {time:.1f} s')

    def save(self, file: Path) -> None:
        """Write the recording."""
        model, arrays = self.model, {key: np.array(rows) for key, rows in self.rows.items()}
        np.savez_compressed(
            file, **{key: values if key == 't' else values.astype(np.float32)
                     for key, values in arrays.items()},
            joint_names=np.array([model.joint(j).name for j in range(1, model.njnt)]),
            feet=np.array([model.body(b).name for b in self._feet]),
            total_mass=model.body_mass.sum(), timestep=TIMESTEP, armature=model.dof_armature[6:],
            frictionloss=model.dof_frictionloss[6:], damping=model.dof_damping[6:])

    def _is_foot(self, body: int) -> bool:
        """Whether nothing hangs on a body that an ankle moves."""
        return ('ankle' in self.model.body(body).name
                and not np.any(self.model.body_parentid == body))

    def _push(self, time: float, push: Array, random: np.random.Generator) -> Array:
        """Return the force on the pelvis, N."""
        since = time % self._push_every
        if self.walk.push == 0.0 or time < self._push_every or since >= _PUSH_FOR:
            return np.zeros(3)
        if push.any():
            return push
        angle = random.uniform(-math.pi, math.pi)
        return self.walk.push * np.array((math.cos(angle), math.sin(angle), 0.0))

    def _record(self, time: float, push: Array) -> None:
        data, pelvis = self.data, 1
        rotation = data.xmat[pelvis].reshape(3, 3)
        # Subtree velocities are not computed by default.
        mujoco.mj_subtreeVel(self.model, data)
        acceleration = rotation.T @ (data.qacc[:3] - self.model.opt.gravity)
        row = {'t': time, 'base_position': data.qpos[:3], 'base_quaternion_wxyz': data.qpos[3:7],
               'base_linear_velocity_in_world': data.qvel[:3],
               'base_angular_velocity_in_base': data.qvel[3:6],
               'base_proper_acceleration_in_base': acceleration,
               'positions': data.qpos[7:], 'velocities': data.qvel[6:],
               'efforts': data.actuator_force, 'foot_wrenches_in_world': self._wrenches(),
               'foot_positions': data.xpos[self._feet], 'com': data.subtree_com[pelvis],
               'com_velocity': data.subtree_linvel[pelvis], 'push': push}
        for key, value in row.items():
            self.rows.setdefault(key, []).append(np.array(value))

    def _wrenches(self) -> Array:
        """Return what the ground does to each foot at its origin, along the world, (F, 6)."""
        model, data = self.model, self.data
        found, wrench = np.zeros((len(self._feet), 6)), np.empty(6)
        for k, contact in enumerate(data.contact[:data.ncon]):
            bodies = [int(model.geom_bodyid[geom]) for geom in contact.geom]
            for sign, body in zip((-1.0, 1.0), bodies):
                if body in self._feet and 0 in bodies:
                    foot = self._feet.index(body)
                    mujoco.mj_contactForce(model, data, k, wrench)
                    # Rows of the frame are its axes; the force is that on the second body.
                    force, torque = sign * wrench.reshape(2, 3) @ contact.frame.reshape(3, 3)
                    arm = contact.pos - data.xpos[body]
                    found[foot] += *force, *(torque + np.cross(arm, force))
        return found


def load_model(scene: Path) -> mujoco.MjModel:
    """Read a model; meshes whose files are missing are left out, masses do not depend on them."""
    spec = mujoco.MjSpec.from_file(str(scene))
    meshes = scene.parent / 'meshes'
    lost = {mesh.name for mesh in spec.meshes if not (meshes / mesh.file).exists()}
    for geom in [geom for geom in spec.geoms if geom.meshname in lost]:
        spec.delete(geom)
    for mesh in [mesh for mesh in spec.meshes if mesh.name in lost]:
        spec.delete(mesh)
    spec.option.timestep = TIMESTEP
    return spec.compile()


def write_urdf(source: Path, file: Path) -> None:
    """Copy a URDF without what needs meshes."""
    tree = ElementTree.parse(source)
    for link in tree.getroot().iter('link'):
        for what in [*link.findall('visual'), *link.findall('collision')]:
            link.remove(what)
    tree.write(file)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('names', nargs='*', metavar='NAME',
                        help=f'default: all of {", ".join(WALKS)}')
    parser.add_argument('--policies', type=Path, required=True,
                        help='a checkout of unitree_rl_gym')
    parser.add_argument('--out', type=Path, required=True, help='directory of the recordings')
    parser.add_argument('--seconds', type=float, default=20.0, help='of each')
    parser.add_argument('--push-every', type=float, default=4.0,
                        help='time between pushes, s; 4 is five periods of the gait')
    parser.add_argument('--seed', type=int, default=0, help='of the directions of pushes')
    options: Any = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in WALKS]:
        parser.error(f"no walk '{unknown[0]}'; there are {', '.join(WALKS)}")
    if not (options.policies / 'deploy/pre_train').is_dir():
        parser.error(f"'{options.policies}' is no checkout of unitree_rl_gym: it has no folder "
                     'deploy/pre_train')
    if find_spec('torch') is None:
        parser.error('the policies need PyTorch: pip install torch')
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or WALKS:
        walk = WALKS[name]
        urdf = ROBOTS[walk.robot].urdf
        write_urdf(options.policies / 'resources/robots' / urdf,
                   options.out / Path(urdf).name)
        recorder = WalkRecorder(options.policies, walk, options.push_every)
        try:
            recorder.run(options.seconds, options.seed)
        except ValueError as error:
            console.print(f'{name}: {error}, not recorded')
            continue
        recorder.save(options.out / f'{name}.npz')
        console.print(f'{name}: {options.seconds:g} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
