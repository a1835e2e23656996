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
"""Drivers of the biped in the simulator, whose YAML says which feet and hands have sensors."""

from biped_com_ros.core.model.config import robot_file
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu, JointState
from support.driven_time import run_ready
from support.messages import imu, joint_state, wrench_stamped
from support.ros_rig import NodeRig
import yaml


def biped_file(directory, feet='sensor', hand=None, edit=lambda config: None):
    """
    Write a YAML of the biped; return its path.

    Parameters
    ----------
    directory
        Where to write it.
    feet
        Source of the wrenches of all feet.
    hand
        Entries of the left hand.
    edit
        Changes the mapping of the YAML further.

    """
    config = yaml.safe_load(robot_file('biped').read_text())
    for foot in config['feet'].values():
        foot['source'] = feet
    config['hands']['left'].update(hand or {})
    edit(config)
    path = directory / 'variant.yaml'
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return str(path)


class PlantRig(NodeRig):
    """
    A node, and the biped in the simulator.

    Attributes
    ----------
    model, plant, command
        The robot as it is believed to be and as it is, and what its joints are told.
    sign, with_efforts
        Of the readings of the foot sensors; whether joint states have efforts.

    """

    def __init__(self, node, instants, lean=0.0, has_sensors=True):
        super().__init__(node=node, namespace=node.get_namespace())
        self.model = model = RobotModel.load('biped')
        self.plant = Plant(model.config, model.urdf, PlantOptions(), model.joint_names,
                           model.link_names)
        self.plant.reset()
        self.command, self.sign, self.with_efforts = self.plant.hold(), 1.0, True
        for joint, shift in (('hip_roll', lean), ('ankle_roll', -lean)):
            for side in 'lr':
                self.command.position[model.joint_names.index(f'{side}_{joint}')] += shift
        for _ in range(instants):
            self.plant.step(self.command)
        self._joints = self.publisher(JointState, 'joint_states')
        self._imu = self.publisher(Imu, 'imu', qos_profile_sensor_data)
        self._sensors = [
            self.publisher(WrenchStamped, f'{foot}_foot/wrench', qos_profile_sensor_data)
            for foot in model.config.feet if has_sensors]

    def send_feet(self, stamp, observed):
        """Publish what the sensors of the feet measure."""
        for publisher, name, values in zip(
                self._sensors, ('l_ankle_ft', 'r_ankle_ft'), observed.wrenches):
            publisher.publish(wrench_stamped(stamp, name, self.sign * values))

    def play(self, instants, every=1):
        """Let the robot stand, and its drivers publish every so many steps of the simulator."""
        for _ in range(instants):
            for _ in range(every):
                observed = self.plant.step(self.command)
            self.time.advance(every * self.plant.dt)
            stamp = self.peer.get_clock().now().to_msg()
            self.send_feet(stamp, observed)
            self._imu.publish(imu(
                stamp, 'imu_link', observed.imu_quaternions[0], observed.angular_velocities[0],
                observed.linear_accelerations[0]))
            self._joints.publish(joint_state(
                stamp, self.model.joint_names, observed.joint_positions, observed.joint_velocities,
                observed.joint_efforts if self.with_efforts else ()))
            run_ready(self.executor)

    def report(self, line, node=None):
        """Return (level, message) of a line of the diagnostics."""
        status = (node or self.node).diagnostics.status(line)
        return status.level, status.message
