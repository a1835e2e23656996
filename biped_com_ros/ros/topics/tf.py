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
Transforms on ``/tf`` and ``/tf_static``, published without tf2_ros; looked up with it.

tf2_ros is not on PyPI, and its Python broadcaster creates each message from scratch. Here
the message of a set of frames is serialized once and its numbers are replaced (see `codec`).
"""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Pose, quaternion_from_rotation
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.outputs import TemplatePublisher
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from geometry_msgs.msg import Quaternion, Transform, TransformStamped, Vector3
import numpy as np
from rclpy.clock import ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

_FIELDS = {'positions': 'transforms[*].transform.translation',
           'quaternions': 'transforms[*].transform.rotation'}
_TF_QOS = QoSProfile(depth=100)
#: A time further back than this is that of a clock that was set back, ns. Longer than elsewhere,
#: since transforms of several publishers come in any order, and late.
_SET_BACK_NS = nanoseconds(1.0)


def transform_message_type() -> Any:
    """
    Return the class of messages on ``/tf``.

    Raises
    ------
    ConfigurationError
        If tf2_msgs is not installed; names the package to install.

    """
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        distribution = os.environ.get('ROS_DISTRO', '<distro>')
        raise ConfigurationError(
            f'transforms need tf2_msgs: install ros-{distribution}-tf2-msgs (apt); where ROS 2 '
            'comes from PyPI, `make setup` builds it') from None
    return TFMessage


def pose_from_transform(stamped: TransformStamped) -> Pose:
    """Return the pose of the child frame in its parent."""
    q, p = stamped.transform.rotation, stamped.transform.translation
    return Pose.from_quaternion(np.array((q.x, q.y, q.z, q.w)), np.array((p.x, p.y, p.z)))


class TransformOutput(TemplatePublisher):
    """
    Transforms of a fixed set of frames, published on ``/tf`` with one stamp.

    Parameters
    ----------
    node
        The rclpy node.
    pairs
        (parent, child) frames.
    options
        See `TemplatePublisher`.

    """

    def __init__(self, node: Node, pairs: Sequence[tuple[str, str]], **options: Any) -> None:
        super().__init__(node, '/tf', transform_message_type()(transforms=[
            TransformStamped(header=Header(frame_id=parent), child_frame_id=child,
                             transform=Transform(rotation=Quaternion(w=1.0)))
            for parent, child in pairs]), _FIELDS, _TF_QOS, **options)

    @property
    def positions(self) -> Any:
        """Origins of the children in their parents (n, 3), m; assign with ``[...] =``."""
        return self.fields['positions']

    @property
    def quaternions(self) -> Any:
        """Orientations of the children in their parents (n, 4), xyzw; assign with ``[...] =``."""
        return self.fields['quaternions']


def publish_static_transforms(node: Node, stamp_ns: int,
                              poses: Sequence[tuple[str, str, Pose]]) -> None:
    """
    Publish transforms that never change, latched on ``/tf_static``; once per node.

    Parameters
    ----------
    node
        The rclpy node.
    stamp_ns
        Stamp of the transforms.
    poses
        (parent, child, pose of the child in the parent).

    """
    message, prefix = transform_message_type()(), frame_prefix(node)
    for parent, child, pose in poses:
        transform = TransformStamped(
            header=Header(frame_id=prefix + parent, stamp=stamp_to_msg(stamp_ns)),
            child_frame_id=prefix + child)
        x, y, z = pose.position.tolist()
        transform.transform.translation = Vector3(x=x, y=y, z=z)
        x, y, z, w = quaternion_from_rotation(pose.rotation).tolist()
        transform.transform.rotation = Quaternion(x=x, y=y, z=z, w=w)
        message.transforms.append(transform)
    node.create_publisher(type(message), '/tf_static', LATCHED).publish(message)


class TransformLookup:
    """
    Looks transforms up with tf2_ros.

    Raises
    ------
    ConfigurationError
        If tf2_ros is not installed; names the package to install.

    """

    def __init__(self, node: Node) -> None:
        try:
            import tf2_ros
        except ImportError:
            distribution = os.environ.get('ROS_DISTRO', '<distro>')
            raise ConfigurationError(
                f'looking transforms up needs tf2_ros: install ros-{distribution}-tf2-ros-py '
                '(apt); it is not on PyPI: without it choose another base_source, e.g. imu or '
                'odometry') from None
        self._tf2_ros = tf2_ros
        self._buffer = tf2_ros.Buffer(node=node)
        self._listener = tf2_ros.TransformListener(self._buffer, node, spin_thread=False)
        self._last_ns = 0

    def at(self, target: str, source: str, stamp_ns: int) -> Pose:
        """
        Return the pose of frame `source` in frame `target` at a time, interpolated.

        A time further back than any before means that the clock was set back: the buffer is
        cleared, since it takes no transforms that are 10 s older than its latest one.

        Parameters
        ----------
        target, source
            Frames: the result takes coordinates in `source` to `target`.
        stamp_ns
            Time, ns.

        Raises
        ------
        InputError
            If it is not known (yet).

        """
        from rclpy.time import Time
        if stamp_ns < self._last_ns - _SET_BACK_NS:
            self._buffer.clear()
            self._last_ns = stamp_ns
        self._last_ns = max(self._last_ns, stamp_ns)
        try:
            found = self._buffer.lookup_transform(
                target, source, Time(nanoseconds=stamp_ns, clock_type=ClockType.ROS_TIME))
        except self._tf2_ros.TransformException as error:
            raise InputError(f"no transform from '{source}' to '{target}' at the time of the "
                             f'joint states: {error}') from None
        return pose_from_transform(found)
