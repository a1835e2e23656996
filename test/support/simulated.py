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
"""A robot in MuJoCo, and what its sensors tell an oracle's subject."""

from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import numpy as np


class SimulatedRobot:
    """
    A robot whose model shares nothing with its simulation but URDF and YAML.

    Parameters
    ----------
    name
        Of the robot.
    plant_options
        Those of the simulation, or fields of them.
    posture
        At the beginning.

    """

    def __init__(self, name, plant_options=None, posture='stand', **fields):
        self.model = model = RobotModel.load(name)
        self.plant = Plant(model.config, model.urdf, plant_options or PlantOptions(**fields),
                           model.joint_names, model.link_names)
        self.plant.reset(posture)
        self.weight = 9.81 * model.mass
        self.imu = list(model.config.imus.values()).index(model.config.imu)

    def push(self, share, seconds):
        """Push the base by a share of the weight, (3,), in the world."""
        self.plant.push(self.model.config.base_link, np.concatenate(
            (self.weight * np.array(share), np.zeros(3))), seconds)

    def run(self, seconds):
        """Stand for some time; return the last readings."""
        for _ in range(round(seconds / self.plant.dt)):
            observation = self.plant.step()
        return observation

    def inertial(self, observation):
        """Return what the IMU measures: orientation (3, 3), angular velocity, acceleration."""
        return (rotation_from_quaternion(observation.imu_quaternions[self.imu]),
                observation.angular_velocities[self.imu],
                observation.linear_accelerations[self.imu])

    def true_base(self):
        """Return the true pose of the base in the world."""
        truth = self.plant.truth()
        link = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
        return link @ Pose.from_rpy(self.model.config.base_rpy, np.zeros(3))

    def capture(self, readings, name=''):
        """Return the mean of some readings of a robot on all its feet."""
        config = self.model.config
        wrenches = np.mean(
            [self.plant.step().wrenches.copy() for _ in range(readings)], axis=0)
        observation = self.plant.observation
        signs = np.array([sensor.factors for sensor in config.wrench_sensors.values()])
        return Capture(
            positions=observation.joint_positions.copy(), wrenches=wrenches * signs,
            in_contact=np.ones(len(config.feet), dtype=bool),
            up=self.inertial(observation)[0][2].copy(), up_frame=config.imu.frame,
            torques=observation.joint_efforts.copy(), name=name)
