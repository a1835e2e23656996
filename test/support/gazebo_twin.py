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
A twin of `gazebo_gravity.launch.py`: the same robot and controller in DART, at Gazebo's step.

DART is the engine that Gazebo uses, with ODE's detection of contacts, too. The robot is the URDF
that Gazebo gets; efforts are limited to those of the URDF (SDFFeatures.cc of gz-physics). The
controller is that of ros2_controllers 4.42.1, joint_trajectory_controller.cpp, ``update``:
``u = ff + ff_velocity_scale v_d + p (q_d - q) + d (v_d - v)``, held between its updates, with the
interpolation of trajectory.cpp: cubic between points that have velocities, and linear of their
efforts.
"""

from __future__ import annotations

from xml.etree import ElementTree

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.gazebo_files import flat_world, gazebo_step, joints_of, start_posture

dart = pytest.importorskip('dartpy', reason='dartpy, the engine of Gazebo, is not installed')


def simulated(text):
    """Return the robot as DART's skeleton; of its links only soles can touch anything."""
    robot = ElementTree.fromstring(text)
    for tag in ('gazebo', 'ros2_control'):
        for element in robot.findall(tag):
            robot.remove(element)
    for link in robot.findall('link'):  # only soles touch the floor of a robot that stands
        for shape in (*link.findall('visual'), *link.findall('collision')):
            if shape.tag == 'visual' or shape.find('geometry/mesh') is not None:
                link.remove(shape)
    loader, options = dart.utils.DartLoader(), dart.utils.DartLoaderOptions()
    # Links without inertial are fixed to others; DART would give them 1 kg.
    options.mDefaultInertia = dart.dynamics.Inertia(1e-9, np.zeros(3), 1e-12 * np.eye(3))
    loader.setOptions(options)
    return loader.parseSkeletonString(
        ElementTree.tostring(robot, encoding='unicode'), dart.common.Uri(''),
        dart.utils.DartResourceRetriever())


def world_of(skeleton):
    """Return the world of ``flat.sdf`` with a robot in it."""
    world = dart.simulation.World()
    world.setTimeStep(gazebo_step())
    world.setGravity([float(x) for x in flat_world().find('.//gravity').text.split()])
    world.setCollisionDetector(dart.simulation.CollisionDetectorType.ODE)
    floor = dart.dynamics.Skeleton('floor')
    _, body = floor.createWeldJointAndBodyNodePair()
    shape = body.createShapeNode(dart.dynamics.PlaneShape([0.0, 0.0, 1.0], 0.0))
    shape.createCollisionAspect()
    shape.createDynamicsAspect()
    world.addSkeleton(floor)
    world.addSkeleton(skeleton)
    return world


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
        self.skeleton = simulated(text)
        self.world = world_of(self.skeleton)
        self.step = self.world.getTimeStep()
        self.joints = list(gains)
        numbers = {self.skeleton.getDof(i).getName(): i
                   for i in range(self.skeleton.getNumDofs())}
        self.dofs = np.array([numbers[name] for name in self.joints])
        self.p, self.d, self.ff = (np.array([gains[name].get(key, 0.0) for name in self.joints])
                                   for key in ('p', 'd', 'ff_velocity_scale'))
        limits = joints_of(text)
        self.limits = np.array([float(limits[name].find('limit').get('effort'))
                                for name in self.joints])
        self._steps = round(1.0 / (rate or files.rate) / self.step)
        self.saturated, self.largest_tilt = 0, 0.0
        start = start_posture(text)
        self.stand = np.array([start[name] for name in self.joints])
        self._height = files.create['z']

    def put_down(self, posture):
        """Put the robot down upright, in a posture (n,), the base at the height of the launch."""
        positions = np.zeros(self.skeleton.getNumDofs())
        positions[5] = self._height
        positions[self.dofs] = posture
        self.skeleton.setPositions(positions)
        self.skeleton.setVelocities(np.zeros_like(positions))

    def put_base(self, rotation, position):
        """Set the pose of the root link, by a rotation vector, (3,), and a position, (3,), m."""
        positions = self.skeleton.getPositions()
        positions[:6] = *rotation, *position
        self.skeleton.setPositions(positions)

    def push(self, velocity):
        """Set the level velocity of the base, (2,), m/s."""
        velocities = self.skeleton.getVelocities()
        velocities[3:5] = velocity
        self.skeleton.setVelocities(velocities)

    def run(self, trajectory, duration):
        """
        Follow a trajectory from its beginning on; later points than its last hold that one.

        A trajectory has a method `at(time)`. Ends early where the robot has fallen.
        """
        period, forces = self._steps * self.step, np.zeros(self.skeleton.getNumDofs())
        for k in range(round(duration / period)):
            target, speed, effort = trajectory.at((k + 1) * period)
            command = (effort + self.ff * speed + self.p * (target - self.positions)
                       + self.d * (speed - self.velocities))
            self.saturated += bool((np.abs(command) > self.limits).any())
            forces[self.dofs] = np.clip(command, -self.limits, self.limits)
            for _ in range(self._steps):
                self.skeleton.setForces(forces)
                self.world.step()
            self.largest_tilt = max(self.largest_tilt, self.tilt)
            if self.largest_tilt > 45.0:
                return

    @property
    def positions(self):
        """Of the joints, (n,), rad or m."""
        return self.skeleton.getPositions()[self.dofs]

    @property
    def velocities(self):
        """Of the joints, (n,), rad/s or m/s."""
        return self.skeleton.getVelocities()[self.dofs]

    @property
    def speed(self):
        """Largest of all velocities, those of the base among them."""
        return float(np.abs(self.skeleton.getVelocities()).max())

    @property
    def contacts(self):
        """Return the number of points at which the robot touches the floor."""
        return self.world.getLastCollisionResult().getNumContacts()

    @property
    def tilt(self):
        """Tilt of the base, deg."""
        up = self.skeleton.getBodyNode(0).getWorldTransform().rotation()[2, 2]
        return float(np.degrees(np.arccos(np.clip(up, -1.0, 1.0))))

    def place(self, link):
        """Return the position of a link's frame, (3,), m."""
        return self.skeleton.getBodyNode(link).getWorldTransform().translation()

    def damping(self):
        """Return the damping of each joint, (n,)."""
        return np.array([self.skeleton.getDof(int(i)).getDampingCoefficient() for i in self.dofs])

    def spectral_radius(self):
        """
        Return that of the joints in the air from one update of the controller to the next.

        Steps of the engine treat the damping of the joints implicitly; efforts are held.
        """
        n, h, inertia = len(self.joints), self.step, self.skeleton.getMassMatrix()
        base = [dof for dof in range(len(inertia)) if dof not in self.dofs]
        joints = inertia[np.ix_(self.dofs, self.dofs)]
        coupling = inertia[np.ix_(self.dofs, base)]
        joints = joints - coupling @ np.linalg.solve(inertia[np.ix_(base, base)], coupling.T)
        damped = np.linalg.inv(joints + h * np.diag(self.damping()))
        step = np.block([[np.eye(n), h * damped @ joints], [np.zeros((n, n)), damped @ joints]])
        push = np.vstack((h * h * damped, h * damped))
        update, response = np.eye(2 * n), np.zeros((2 * n, n))
        for _ in range(self._steps):
            update, response = step @ update, step @ response + push
        closed = update - response @ np.hstack((np.diag(self.p), np.diag(self.d)))
        return float(np.abs(np.linalg.eigvals(closed)).max())


def held(twin, posture, efforts=None):
    """Return a trajectory of one point, twice."""
    zeros = np.zeros_like(posture)
    efforts = zeros if efforts is None else efforts
    return TwinTrajectory((0.0, 1.0), (posture,) * 2, (zeros,) * 2, (efforts,) * 2)


class Compensated:
    """Efforts against gravity, in the order of a twin."""

    def __init__(self, robot):
        self.model = RobotModel.load(robot)
        self._gravity = GravityModel(self.model)

    def efforts(self, twin, positions, shares):
        index = self.model.joint_index(twin.joints)
        measured = np.zeros(len(self.model.joint_names))
        measured[index] = positions
        load = self._gravity.load(self.model.state(measured), np.array((0.0, 0.0, 1.0)))
        return load.on_contacts(shares).efforts[index]

    def along(self, twin, gait, rate):
        """Return a gait with its efforts as a trajectory of so many points per second."""
        index = self.model.joint_index(twin.joints)
        times = np.arange(0.0, gait.duration + 0.5 / rate, 1.0 / rate)
        samples = [gait.at(time) for time in times]
        positions = [sample.positions[index] for sample in samples]
        return TwinTrajectory(
            times, positions, [sample.velocities[index] for sample in samples],
            [self.efforts(twin, q, sample.shares) for q, sample in zip(positions, samples)])
