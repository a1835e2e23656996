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
"""What the sensors of the simulated biped say, and its drivers, which publish it to a node."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.sim.interface import PlantOptions
from geometry_msgs.msg import WrenchStamped
import numpy as np
from sensor_msgs.msg import Imu, JointState
from support.messages import imu, joint_state, wrench_stamped
from support.ros_rig import NodeRig
from support.zmp_pipeline import Pipeline


@dataclass
class RobotSample:
    """What the sensors measured at one instant, the report that the core gives, the truth."""

    ns: int
    positions: np.ndarray
    velocities: np.ndarray
    quaternion: np.ndarray
    gyro: np.ndarray
    acceleration: np.ndarray
    wrenches: np.ndarray
    base: Pose
    report: object
    true_base: Pose
    true_twist: np.ndarray
    true_com: np.ndarray


def record(seconds, offset=lambda t: (0.0, 0.0, 0.0), push=None, since=0.0, **options):
    """
    Return the model, and what happens to the robot from `since` on, while its hips move.

    Parameters
    ----------
    seconds, since
        How long the simulation is, and from when on it is recorded.
    offset
        Where the hips are by time.
    push
        Time, force and duration of a push.
    options
        Of the plant.

    """
    pipeline, samples = Pipeline('biped', PlantOptions(tendons=False, **options)), []
    dt = pipeline.plant.dt
    for i in range(round(seconds / dt)):
        if push and i == round(push[0] / dt):
            pipeline.plant.push('torso', *push[1:])
        report, truth = pipeline.step(pipeline.command(offset(i * dt)))
        if i * dt < since:
            continue
        observed = pipeline.observation
        samples.append(RobotSample(
            10**9 + round(1e9 * observed.time), observed.joint_positions.copy(),
            observed.joint_velocities.copy(), observed.imu_quaternions[0].copy(),
            observed.angular_velocities[0].copy(), observed.linear_accelerations[0].copy(),
            pipeline.wrenches.copy(), pipeline.base, report,
            Pose.from_quaternion(truth.base_quaternion, truth.base_position.copy()),
            truth.base_twist.copy(), truth.com.copy()))
    return pipeline.model, samples


class RecordedRobot(NodeRig):
    """A node with the topics of its drivers, in the node's namespace."""

    def __init__(self, node):
        super().__init__(node=node, namespace=node.get_namespace())
        self.space = node.get_namespace()
        self.joints = self.publisher(JointState, 'joint_states')
        config, create = node.model.config, self.peer.create_publisher
        self.imu = create(Imu, config.imu.topic, 10)
        self.wrenches = [create(WrenchStamped, f'wrench_aggregator/{name}/wrench', 10)
                         for name in (*config.feet, *(f'{hand}_hand' for hand in config.hands))]

    def send_joints(self, stamp, sample):
        """Publish the joint states of a sample."""
        self.joints.publish(joint_state(
            stamp, self.node.model.joint_names, sample.positions, sample.velocities))

    def send_imu(self, stamp, sample, has_orientation=True):
        """Publish what the IMU measured."""
        message = imu(stamp, 'imu_link', sample.quaternion, sample.gyro, sample.acceleration)
        if not has_orientation:
            message.orientation = imu(stamp, '', (0.0, 0.0, 0.0, 0.0)).orientation
            message.orientation_covariance[0] = -1.0
        self.imu.publish(message)

    def send_wrench(self, stamp, sample, i, frames=('l_sole', 'r_sole')):
        """Publish the wrench of a foot, or of a hand behind the feet."""
        self.wrenches[i].publish(wrench_stamped(stamp, frames[i], sample.wrenches[i]))
