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
"""What the page is tested with: a bystander with ROS 2, and nodes in processes of their own."""

import contextlib
import threading

from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.core.model.robot import RobotModel
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from lifecycle_msgs.srv import GetState
from nav_msgs.msg import Odometry
import numpy as np
from rcl_interfaces.srv import SetParameters
import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

MODEL = RobotModel.load('biped')
LATCHED = QoSProfile(depth=5, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class BystanderRobot:
    """What a bystander with ROS 2 sees, served by a thread."""

    def __init__(self):
        self._context = Context()
        rclpy.init(context=self._context)
        self.node = Node('bystander', context=self._context)
        self.last, self.all, self.joints = {}, {}, {}
        for kind, topic, qos in (
                (WrenchStamped, 'simulator/push', 10), (Odometry, 'odom', 10),
                (JointState, 'joint_states', 10),
                (Vector3Stamped, 'torso_controller/target', 10),
                (Vector3Stamped, 'torso_controller/shape', 10),
                (Vector3Stamped, 'simulator/truth/com_velocity', 10),
                (PointStamped, 'simulator/truth/com', 10), (String, 'gait_player/state', LATCHED),
                (String, 'robot_description', LATCHED),
                (Float64MultiArray, 'wrench_aggregator/offsets', LATCHED)):
            self.node.create_subscription(
                kind, topic, lambda message, topic=topic: self._take(topic, message), qos)
        self.positions = self.node.create_publisher(
            Float64MultiArray, 'position_controller/commands', 10)
        self._state = self.node.create_client(GetState, 'gravity_compensation/get_state')
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _take(self, topic, message):
        self.last[topic] = message
        if topic == 'joint_states':
            self.joints.update(zip(message.name, message.position))
        if topic in ('simulator/push', 'gait_player/state'):
            self.all.setdefault(topic, []).append(message)

    def _spin(self):
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()

    def height(self):
        """Return how high the base is, m."""
        return self.last['odom'].pose.pose.position.z

    def com_error(self, model):
        """Return how far from the truth a model has the centre of mass, level, m."""
        base, true = self.last['odom'].pose.pose, self.last['simulator/truth/com'].point
        q, p = base.orientation, base.position
        R_world_base = rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w)))
        com = R_world_base @ model.state(np.array([
            self.joints[name] for name in model.joint_names])).com_in_base
        return np.hypot(com[0] + p.x - true.x, com[1] + p.y - true.y)

    def position(self):
        """Return how far ahead the base is, m."""
        return self.last['odom'].pose.pose.position.x

    def gait(self):
        """Return what gait_player does."""
        return self.last['gait_player/state'].data

    def gaits(self):
        """Return all that gait_player did so far."""
        return [message.data for message in self.all['gait_player/state']]

    def stands_on_level_feet(self):
        """Tell whether the legs are as after a reset: no foot ahead of the other."""
        legs = [*MODEL.config.groups['left_leg'], *MODEL.config.groups['right_leg']]
        posture = MODEL.posture()[MODEL.joint_index(legs)]
        return np.abs([self.joints[name] for name in legs] - posture).max() < 0.03

    def feedforward_state(self):
        """Ask gravity_compensation for its state."""
        response = self._response(self._state, GetState.Request())
        return response and response.current_state.id

    def set_parameter(self, node, name, value):
        """Set a parameter of a node, which must take it."""
        client = self.node.create_client(SetParameters, f'{node}/set_parameters')
        assert client.wait_for_service(20.0), node
        response = self._response(client, SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()]), timeout=100.0)
        assert response and response.results[0].successful, response
        self.node.destroy_client(client)

    @staticmethod
    def _response(client, request, timeout=2.0):
        """Return the response of a service; None if there is none within the timeout, s."""
        future, done = client.call_async(request), threading.Event()
        future.add_done_callback(lambda _: done.set())
        return future.result() if done.wait(timeout) else None

    def close(self):
        """End it."""
        self._context.shutdown()
        self._thread.join(5.0)
        self.node.destroy_node()
