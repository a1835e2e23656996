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
"""ROS messages and parameters from plain values, and back."""

from geometry_msgs.msg import InertiaStamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.parameter import Parameter
from rclpy.time import Time
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Header, MultiArrayLayout


def parameters(**values):
    """Return parameters, as `parameter_overrides` of a node takes them."""
    return [Parameter(name, value=value) for name, value in values.items()]


def stamp_of(ns):
    """Return nanoseconds as builtin_interfaces/Time."""
    return Time(nanoseconds=ns).to_msg()


def nanoseconds(stamp):
    """Return a builtin_interfaces/Time in nanoseconds."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def set_fields(message, names, values):
    """Set fields of a message, such as 'xyz', to numbers."""
    for name, value in zip(names, values):
        setattr(message, name, float(value))


def joint_state(stamp, names, positions, velocities=(), efforts=()):
    """Return a JointState."""
    return JointState(
        header=Header(stamp=stamp), name=list(names), position=[float(x) for x in positions],
        velocity=[float(x) for x in velocities], effort=[float(x) for x in efforts])


def float_matrix(ns, matrix):
    """Return a Float64MultiArray with a stamp, ns, before the numbers of a matrix."""
    return Float64MultiArray(layout=MultiArrayLayout(data_offset=2), data=[
        *map(float, divmod(ns, 1_000_000_000)), *matrix.ravel().tolist()])


def imu(stamp, frame, quaternion, gyro=(0.0, 0.0, 0.0), acceleration=(0.0, 0.0, 0.0)):
    """Return an Imu: orientation (x, y, z, w), angular velocity, rad/s, acceleration, m/s^2."""
    message = Imu(header=Header(stamp=stamp, frame_id=frame))
    set_fields(message.orientation, 'xyzw', quaternion)
    set_fields(message.angular_velocity, 'xyz', gyro)
    set_fields(message.linear_acceleration, 'xyz', acceleration)
    return message


def wrench_stamped(stamp, frame, wrench):
    """Return a WrenchStamped of six values, force first."""
    message = WrenchStamped(header=Header(stamp=stamp, frame_id=frame))
    set_fields(message.wrench.force, 'xyz', wrench[:3])
    set_fields(message.wrench.torque, 'xyz', wrench[3:])
    return message


def odometry(stamp, frame, child, position, quaternion, twist=(0.0,) * 6):
    """Return an Odometry; the twist has the linear part first, in the child's frame."""
    message = Odometry(header=Header(stamp=stamp, frame_id=frame), child_frame_id=child)
    set_fields(message.pose.pose.position, 'xyz', position)
    set_fields(message.pose.pose.orientation, 'xyzw', quaternion)
    set_fields(message.twist.twist.linear, 'xyz', twist[:3])
    set_fields(message.twist.twist.angular, 'xyz', twist[3:])
    return message


def payload(stamp, link, mass, com=(0.0, 0.0, 0.0)):
    """Return an InertiaStamped: a mass, kg, at a place of a link, m."""
    message = InertiaStamped(header=Header(stamp=stamp, frame_id=link))
    message.inertia.m = mass
    set_fields(message.inertia.com, 'xyz', com)
    return message


def vector(message):
    """Return x, y, z of a message, (3,)."""
    return np.array([message.x, message.y, message.z])


def wrench(message):
    """Return the six values of a WrenchStamped, force first."""
    return np.concatenate([vector(message.wrench.force), vector(message.wrench.torque)])
