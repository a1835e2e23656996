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
A twin of `gazebo_gravity.launch.py`: the same robot and controller in MuJoCo, at Gazebo's step.

The robot is the URDF that Gazebo gets, without rotor inertia; the damping of its joints is
integrated implicitly, as DART does (SingleDofJoint::updateInvProjArtInertiaImplicitDynamic), and
efforts are limited to those of the URDF (SDFFeatures.cc of gz-physics). The controller is that of
ros2_controllers 4.42.1, joint_trajectory_controller.cpp, ``update``: ``u = ff + ff_velocity_scale
v_d + p (q_d - q) + d (v_d - v)``, held between its updates, with the interpolation of
trajectory.cpp: cubic between points that have velocities, and linear of their efforts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.gazebo.files import main
from biped_com_ros.sim.gains import joint_space_inertia
import mujoco
import numpy as np
import yaml

SHARE = package_share()


@dataclass(frozen=True)
class GazeboFiles:
    """What `gazebo.launch.py` writes for a robot: texts and parameters."""

    simulated: str
    description: str
    controllers: dict[str, Any]
    create: dict[str, Any]
    bridge: list[dict[str, str]]

    @property
    def gains(self):
        """Gains by joint."""
        return self.controllers['/**/joint_trajectory_controller']['ros__parameters']['gains']

    @property
    def rate(self):
        """Rate of the controller, Hz."""
        return self.controllers['/**/controller_manager']['ros__parameters']['update_rate']


def gazebo_files(directory, robot='biped', command='effort', **options):
    """Write the files of a robot; options are those of the command line."""
    words = [word for name, value in options.items() for word in (f'--{name}', str(value))]
    assert main([robot, '--command', command, '--directory', str(directory), *words]) == 0
    return read_gazebo_files(directory)


def read_gazebo_files(directory):
    """Return what is in a directory that `gazebo_files` or a launch file wrote."""
    directory = Path(directory)
    read = {name: yaml.safe_load((directory / f'{name}.yaml').read_text())
            for name in ('description', 'create', 'controllers', 'bridge')}
    create = read['create']['/**']['ros__parameters']
    return GazeboFiles(
        Path(create['file']).read_text(),
        read['description']['/**']['ros__parameters']['robot_description'],
        read['controllers'], create, read['bridge'])


def gazebo_step():
    """Return the step of the world, s."""
    world = ElementTree.parse(SHARE / 'config' / 'gazebo' / 'flat.sdf')
    return float(world.find('.//max_step_size').text)


def _joints_of(text):
    return {joint.get('name'): joint for joint in ElementTree.fromstring(text).findall('joint')}


def damping_in(text):
    """Return the damping of each joint that has some."""
    return {name: float(joint.find('dynamics').get('damping', 0.0))
            for name, joint in _joints_of(text).items() if joint.find('dynamics') is not None}


def start_posture(text):
    """Return the initial position of each driven joint."""
    driven = ElementTree.fromstring(text).findall('ros2_control/joint')
    return {joint.get('name'): float(joint.find(
        "state_interface[@name='position']/param[@name='initial_value']").text)
        for joint in driven}


def simulated(text):
    """Return the robot on a floor, as MuJoCo's model; its parts do not collide with each other."""
    robot = ElementTree.fromstring(text)
    for tag in ('gazebo', 'ros2_control'):
        for element in robot.findall(tag):
            robot.remove(element)
    for link in robot.findall('link'):  # only soles touch the floor of a robot that stands
        for shape in link.findall('collision'):
            if shape.find('geometry/mesh') is not None:
                link.remove(shape)
    children = {joint.find('child').get('link') for joint in robot.findall('joint')}
    root, = {link.get('name') for link in robot.findall('link')} - children
    ElementTree.SubElement(robot, 'link', name='outside')
    floating = ElementTree.SubElement(robot, 'joint', name='floating', type='floating')
    ElementTree.SubElement(floating, 'parent', link='outside')
    ElementTree.SubElement(floating, 'child', link=root)
    extension = ElementTree.SubElement(robot, 'mujoco')
    ElementTree.SubElement(extension, 'compiler', fusestatic='true', discardvisual='true',
                           inertiafromgeom='false')
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding='unicode'))
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 1, 0
    floor = spec.worldbody.add_geom()
    floor.type, floor.size = mujoco.mjtGeom.mjGEOM_PLANE, [10.0, 10.0, 0.1]
    floor.contype, floor.conaffinity = 0, 1
    spec.option.timestep = gazebo_step()
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return spec.compile()


class TwinTrajectory:
    """Points of positions, velocities and efforts, (points, n), at times, s."""

    def __init__(self, times, positions, velocities, efforts):
        self.times, self.positions, self.velocities, self.efforts = map(
            np.asarray, (times, positions, velocities, efforts))

    def at(self, time):
        """Return positions, velocities and efforts, as joint_trajectory_controller samples."""
        i = int(np.searchsorted(self.times, time, side='right')) - 1
        if i < 0 or i >= len(self.times) - 1:
            i = max(i, 0)
            return self.positions[i], np.zeros_like(self.positions[i]), self.efforts[i]
        h = self.times[i + 1] - self.times[i]
        s = time - self.times[i]
        (q, r), (v, w) = self.positions[i:i + 2], self.velocities[i:i + 2]
        b = (3.0 * (r - q) / h - 2.0 * v - w) / h
        c = (2.0 * (q - r) / h + v + w) / h ** 2
        share = s / h
        return (q + s * (v + s * (b + s * c)), v + s * (2.0 * b + 3.0 * c * s),
                (1.0 - share) * self.efforts[i] + share * self.efforts[i + 1])


class GazeboTwin:
    """
    The robot with its controller.

    Attributes
    ----------
    joints
        Names in the controller's order.
    saturated
        Number of updates in which an effort was limited.
    largest_tilt
        Of the base since the start, deg.

    """

    def __init__(self, files, rate=None):
        gains, text = files.gains, files.simulated
        self.model = simulated(text)
        self.data = mujoco.MjData(self.model)
        self.joints = list(gains)
        ids = [self.model.joint(name).id for name in self.joints]
        self.q, self.v = self.model.jnt_qposadr[ids], self.model.jnt_dofadr[ids]
        self.p, self.d, self.ff = (np.array([gains[name].get(key, 0.0) for name in self.joints])
                                   for key in ('p', 'd', 'ff_velocity_scale'))
        limits = _joints_of(text)
        self.limits = np.array([float(limits[name].find('limit').get('effort'))
                                for name in self.joints])
        self._steps = round(1.0 / (rate or files.rate) / self.model.opt.timestep)
        self.saturated, self.largest_tilt = 0, 0.0
        start = start_posture(text)
        self.stand = np.array([start[name] for name in self.joints])
        self._height = files.create['z']

    def put_down(self, posture):
        """Put the robot down upright, in a posture (n,), the base at the height of the launch."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[2:4] = self._height, 1.0
        self.data.qpos[self.q] = posture
        mujoco.mj_forward(self.model, self.data)

    def run(self, trajectory, duration):
        """Follow a trajectory from its beginning on; later points than its last hold that one."""
        period = self._steps * self.model.opt.timestep
        for k in range(round(duration / period)):
            target, speed, effort = trajectory.at((k + 1) * period)
            position, velocity = self.data.qpos[self.q], self.data.qvel[self.v]
            command = (effort + self.ff * speed + self.p * (target - position)
                       + self.d * (speed - velocity))
            self.saturated += bool((np.abs(command) > self.limits).any())
            self.data.qfrc_applied[self.v] = np.clip(command, -self.limits, self.limits)
            for _ in range(self._steps):
                mujoco.mj_step(self.model, self.data)
            self.largest_tilt = max(self.largest_tilt, self.tilt)

    @property
    def tilt(self):
        """Tilt of the base, deg."""
        _, x, y, _ = self.data.qpos[3:7]
        return float(np.degrees(np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0))))

    def spectral_radius(self):
        """
        Return that of the joints in the air from one update of the controller to the next.

        Steps of the engine treat the damping of the joints implicitly; efforts are held.
        """
        n, h = len(self.joints), self.model.opt.timestep
        inertia = joint_space_inertia(self.model, self.data)
        base = [dof for dof in range(self.model.nv) if dof not in self.v]
        joints = inertia[np.ix_(self.v, self.v)]
        coupling = inertia[np.ix_(self.v, base)]
        joints = joints - coupling @ np.linalg.solve(inertia[np.ix_(base, base)], coupling.T)
        damped = np.linalg.inv(joints + h * np.diag(self.model.dof_damping[self.v]))
        step = np.block([[np.eye(n), h * damped @ joints], [np.zeros((n, n)), damped @ joints]])
        push = np.vstack((h * h * damped, h * damped))
        update, response = np.eye(2 * n), np.zeros((2 * n, n))
        for _ in range(self._steps):
            update, response = step @ update, step @ response + push
        closed = update - response @ np.hstack((np.diag(self.p), np.diag(self.d)))
        return float(np.abs(np.linalg.eigvals(closed)).max())
