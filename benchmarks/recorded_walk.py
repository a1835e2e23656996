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
Recorded walks with their truth, as measurements with injected errors.

The recordings are not part of the package. Their directory is given by an option or by the
environment variable ``BIPED_COM_WALKS``; it holds ``<robot>_<what>.npz`` and the URDFs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
import os
from pathlib import Path
from typing import Any

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.config import robot_config_from_mapping
from biped_com_ros.core.model.frames import sole_in_link
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

VARIABLE = 'BIPED_COM_WALKS'
#: By robot, with which names of recordings begin: URDF, link of the soles without its side, origin
#: and outline of the sole there, m.
_ROBOTS: dict[str, tuple[str, str, float, list[list[float]]]] = {
    'g1': ('g1_12dof.urdf', 'ankle_roll_link', -0.035,
           [[0.12, 0.03], [-0.05, 0.025], [-0.05, -0.025], [0.12, -0.03]]),
    'h1': ('h1.urdf', 'ankle_link', -0.07,
           [[0.197, 0.0145], [-0.097, 0.0145], [-0.097, -0.0145], [0.197, -0.0145]]),
    'h1_2': ('h1_2_12dof.urdf', 'ankle_roll_link', -0.045,
             [[0.17, 0.0234], [0.133, 0.0403], [-0.0759, 0.0405], [-0.0835, 0.0329],
              [-0.0835, -0.0329], [-0.0759, -0.0405], [0.133, -0.0403], [0.17, -0.0234]])}


@dataclass(frozen=True, kw_only=True)
class InjectedErrors:
    """
    What the sensors of a walk measure wrongly; all zero: the truth.

    Attributes
    ----------
    gyroscope, accelerometer
        Standard deviation of the noise of each sample, rad/s and m/s^2.
    encoders, joint_speeds
        Of the joint positions and velocities, rad and rad/s.
    efforts
        Of the joint torques, N m.
    forces, torques
        Of real foot sensors, N and N m.
    wrench_delay
        How late the foot sensors are, s.
    gyroscope_bias, accelerometer_bias
        Standard deviation of the constant bias of each axis, rad/s and m/s^2.
    joint_offsets
        Of the constant offset of each encoder, rad.
    imu_mounting
        Of the rotation of the IMU about each axis, rad.
    friction
        Coulomb friction of each joint in addition to the recording's, N m: the same motion would
        have needed motors stronger by that much.

    """

    gyroscope: float = 0.0
    accelerometer: float = 0.0
    encoders: float = 0.0
    joint_speeds: float = 0.0
    efforts: float = 0.0
    forces: float = 0.0
    torques: float = 0.0
    wrench_delay: float = 0.0
    gyroscope_bias: float = 0.0
    accelerometer_bias: float = 0.0
    joint_offsets: float = 0.0
    imu_mounting: float = 0.0
    friction: float = 0.0


USUAL = InjectedErrors(gyroscope=0.005, accelerometer=0.05, encoders=1e-4, joint_speeds=0.02,
                       efforts=0.1, forces=1.0, torques=0.05, wrench_delay=0.002)
"""Errors of good sensors."""


@dataclass(frozen=True, kw_only=True)
class RecordedWalk:
    """
    A walk: measurements of T instants, and the truth.

    Attributes
    ----------
    name
        As of its file.
    model
        The robot; `base_link` and the IMU's link are the pelvis.
    times
        s, (T,).
    positions, velocities, efforts
        Of the joints, (T, n), in the order of ``model.joint_names``.
    angular_velocity, acceleration
        What the IMU measures: rad/s and proper m/s^2 in its frame, (T, 3).
    wrenches
        What foot sensors measure, environment on robot, at and along the soles, (T, F, 6).
    armature
        Inertia of the rotors, reflected to the joints, kg m^2, (n,).
    friction, damping
        Coulomb and viscous friction of the joints in the recording, N m and N m s/rad, (n,).
    truth
        Arrays of the recording by name (see its README).
    true_wrenches
        As `wrenches`, without errors.

    """

    name: str
    model: RobotModel
    times: Array
    positions: Array
    velocities: Array
    efforts: Array
    angular_velocity: Array
    acceleration: Array
    wrenches: Array
    armature: Array
    friction: Array
    damping: Array
    truth: dict[str, Any]
    true_wrenches: Array

    @property
    def true_rotations(self) -> Array:
        """Return ``R_world_base`` of each instant, (T, 3, 3)."""
        return rotations(self.truth['base_quaternion_wxyz'])

    @property
    def true_contacts(self) -> np.ndarray:
        """Return whether each foot carries more than a hundredth of the weight, (T, F)."""
        return self.true_wrenches[:, :, 2] > 0.01 * self.model.mass * 9.81


def directory(given: str = '') -> Path | None:
    """Return where the recordings are, by an option or the environment; None without them."""
    path = Path(given or os.environ.get(VARIABLE, '/nowhere'))
    return path if path.is_dir() else None


def names(path: Path) -> list[str]:
    """Return the walks in a directory of which the robot is known."""
    return sorted(file.stem for file in path.glob('*.npz') if robot_of(file.stem))


def robot_of(name: str) -> str:
    """Return the robot of a recording, the longest that its name begins with; '' without one."""
    return max((robot for robot in _ROBOTS if name.startswith(f'{robot}_')), key=len, default='')


def urdf_of(path: Path, robot: str) -> Path:
    """Return the URDF of a robot among the recordings."""
    return path / _ROBOTS[robot][0]


def walk_model(path: Path, robot: str) -> RobotModel:
    """Return the model of the recordings of `robot`."""
    _, link, height, polygon = _ROBOTS[robot]
    feet = {side: {'sole': f'{side}_{link}', 'sole_origin': [0.0, 0.0, height],
                   'ankle': f'{side}_{link}', 'polygon': polygon, 'wrench_sensors': [side]}
            for side in ('left', 'right')}
    config = robot_config_from_mapping({
        'name': robot, 'base_link': 'pelvis', 'feet': feet,
        'wrench_sensors': {side: {'frame': f'{side}_{link}', 'topic': f'{side}/wrench'}
                           for side in feet},
        'imus': {'base': {'frame': 'pelvis', 'topic': 'imu'}}})
    return RobotModel(config, urdf_of(path, robot).read_text())


def load_walk(path: Path, name: str, errors: InjectedErrors | None = None,
              seed: int = 0) -> RecordedWalk:
    """
    Read a walk.

    Parameters
    ----------
    path
        Directory of the recordings.
    name
        One of :func:`names`.
    errors
        To be injected; none if left out.
    seed
        Of the random numbers of `errors`.

    """
    model = walk_model(path, robot_of(name))
    with np.load(path / f'{name}.npz') as file:
        truth = {key: file[key].astype(float) if file[key].dtype == np.float32 else file[key]
                 for key in file.files}
    order = [truth['joint_names'].tolist().index(joint) for joint in model.joint_names]
    joints = {key: truth[key][:, order] for key in ('positions', 'velocities', 'efforts')}
    wrenches = sole_wrenches(model, truth)
    walk = RecordedWalk(
        name=name, model=model, times=truth['t'], **joints,
        angular_velocity=truth['base_angular_velocity_in_base'],
        acceleration=truth['base_proper_acceleration_in_base'], wrenches=wrenches,
        true_wrenches=wrenches, truth=truth,
        **{key: truth[source][order] for key, source in (
            ('armature', 'armature'), ('friction', 'frictionloss'), ('damping', 'damping'))})
    return walk if errors is None else inject(walk, errors, np.random.default_rng(seed))


def inject(walk: RecordedWalk, errors: InjectedErrors,
           random: np.random.Generator) -> RecordedWalk:
    """Return a walk with errors in its measurements."""
    def noisy(values: Array, deviation: float, bias: float = 0.0) -> Array:
        return (values + deviation * random.standard_normal(values.shape)
                + bias * random.standard_normal(values.shape[1:]))
    R_imu_base = Pose.from_rpy(
        errors.imu_mounting * random.standard_normal(3), np.zeros(3)).rotation.T
    late = round(errors.wrench_delay / float(walk.truth['timestep']))
    index = np.maximum(np.arange(len(walk.times)) - late, 0)
    scale = np.repeat((errors.forces, errors.torques), 3)
    return replace(
        walk,
        positions=noisy(walk.positions, errors.encoders, errors.joint_offsets),
        velocities=noisy(walk.velocities, errors.joint_speeds),
        efforts=noisy(walk.efforts + errors.friction * np.sign(walk.velocities), errors.efforts),
        angular_velocity=noisy(walk.angular_velocity @ R_imu_base.T, errors.gyroscope,
                               errors.gyroscope_bias),
        acceleration=noisy(walk.acceleration @ R_imu_base.T, errors.accelerometer,
                           errors.accelerometer_bias),
        wrenches=walk.wrenches[index] + scale * random.standard_normal(walk.wrenches.shape))


def rotations(quaternions_wxyz: Array) -> Array:
    """Return the rotation matrices (T, 3, 3) of quaternions (w, x, y, z), (T, 4)."""
    w, x, y, z = quaternions_wxyz.T
    return np.moveaxis(np.array((
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)))), 2, 0)


def sole_wrenches(model: RobotModel, truth: dict[str, Any]) -> Array:
    """Return the true wrenches at and along the soles, (T, F, 6)."""
    at_links = truth['foot_wrenches_in_world']
    R_world_base = rotations(truth['base_quaternion_wxyz'])
    result = np.empty_like(at_links)
    soles = model.soles
    origins = [sole_in_link(foot).position for foot in model.config.feet.values()]
    for i, (position, R) in enumerate(zip(truth['positions'], R_world_base)):
        placements = model.state(position).placements_in_base(soles)
        for foot, origin in enumerate(origins):
            R_sole_world = placements[foot, :3] @ R.T
            force, torque = at_links[i, foot].reshape(2, 3) @ R_sole_world.T
            result[i, foot] = *force, *(torque - np.cross(origin, force))
    return result


def walks(path: Path, errors: InjectedErrors | None = None,
          seed: int = 0) -> Iterator[RecordedWalk]:
    """Load all walks, one after another."""
    for name in names(path):
        yield load_walk(path, name, errors, seed)
