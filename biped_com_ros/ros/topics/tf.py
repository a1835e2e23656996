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
Transforms on ``/tf`` and ``/tf_static``, broadcast without tf2_ros; looked up with it.

tf2_ros is not on PyPI, and its Python broadcaster builds each message anew. Here the message
of a set of frames is serialized once and patched (see `codec`).
"""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Pose, quaternion_from_rotation
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.topics.outputs import Output
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import Quaternion, Transform, TransformStamped
import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

#: (parent frame, child frame, rotation R_parent_child (3, 3) or None, position (3,))
Entry = tuple[str, str, 'np.ndarray | None', Any]
Pairs = tuple[tuple[str, str], ...]

_FIELDS = {'positions': 'transforms[*].transform.translation',
           'quaternions': 'transforms[*].transform.rotation'}
_TF_QOS = QoSProfile(depth=100)
_MAX_BUNDLES = 32


def _tf_message_type() -> Any:
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        distribution = os.environ.get('ROS_DISTRO', '<distro>')
        raise ConfigurationError(
            f'transforms need tf2_msgs: install ros-{distribution}-tf2-msgs (apt); where ROS 2 '
            'comes from PyPI, `make setup` builds it') from None
    return TFMessage


class _TransformPublisher:
    """The publisher that several bundles share, created when it is first used."""

    def __init__(self, node: Node, topic: str, qos: QoSProfile, later: bool = False) -> None:
        self.node, self.later, self._topic, self._qos = node, later, topic, qos
        self._type = _tf_message_type()
        self._publisher: Publisher | None = None
        if not later:
            self.get()

    def get(self) -> Publisher:
        """Return the rclpy publisher."""
        if self._publisher is None:
            self._publisher = self.node.create_publisher(self._type, self._topic, self._qos)
        return self._publisher


class TransformBundle(Output):
    """Transforms that are always sent together."""

    def __init__(self, publisher: _TransformPublisher, pairs: Pairs,
                 plain: bool | None = None) -> None:
        super().__init__(publisher.node, publisher.get, publisher.later)
        self._pairs, self._plain = pairs, plain
        self._serialized: Template | None = None

    @property
    def _template(self) -> Template:
        if self._serialized is None:
            self._serialized = Template(self.publisher.msg_type(transforms=[
                TransformStamped(header=Header(frame_id=parent), child_frame_id=child,
                                 transform=Transform(rotation=Quaternion(w=1.0)))
                for parent, child in self._pairs]), _FIELDS, self._plain)
        return self._serialized

    @property
    def positions(self) -> Any:
        """Origins of the children in their parents (n, 3), m; assign with ``[...] =``."""
        return self._template.fields['positions']

    @property
    def quaternions(self) -> Any:
        """Orientations of the children in their parents (n, 4), xyzw; assign with ``[...] =``."""
        return self._template.fields['quaternions']

    def publish(self, stamp_ns: int) -> None:
        """Send all of them with one stamp."""
        self.publisher.publish(self._template.serialize(stamp_ns))


class TransformBroadcaster:
    """
    Sends transforms on ``/tf``.

    Parameters
    ----------
    node
        The rclpy node.
    plain
        Use rclpy's own conversion; default: as the environment says.
    later
        Whether the publisher can be created right after the node's start.

    """

    def __init__(self, node: Node, plain: bool | None = None, later: bool = False) -> None:
        self._publisher = _TransformPublisher(node, '/tf', _TF_QOS, later)
        self._plain = plain
        self._bundles: dict[Pairs, TransformBundle] = {}

    @property
    def publisher(self) -> Publisher:
        """Return the rclpy publisher."""
        return self._publisher.get()

    def bundle(self, pairs: Sequence[tuple[str, str]]) -> TransformBundle:
        """
        Return the means to send a fixed set of transforms as arrays.

        Parameters
        ----------
        pairs
            (parent, child) frames.

        """
        key = tuple(pairs)
        if key not in self._bundles:
            if len(self._bundles) >= _MAX_BUNDLES:
                self._bundles.clear()
            self._bundles[key] = TransformBundle(self._publisher, key, self._plain)
        return self._bundles[key]

    def send(self, stamp_ns: int, transforms: Sequence[Entry]) -> None:
        """
        Send transforms.

        Parameters
        ----------
        stamp_ns
            When they hold.
        transforms
            (parent, child, R, p): R_parent_child (3, 3) or None for no rotation; p the origin
            of child in parent (3,).

        """
        if not transforms:
            return
        bundle = self.bundle([(parent, child) for parent, child, _, _ in transforms])
        bundle.positions[...] = [p for _, _, _, p in transforms]
        bundle.quaternions[...] = [_quaternion(R) for _, _, R, _ in transforms]
        bundle.publish(stamp_ns)


class StaticTransformBroadcaster:
    """Sends transforms that never change, latched on ``/tf_static``."""

    def __init__(self, node: Node) -> None:
        self._publisher = _TransformPublisher(node, '/tf_static', LATCHED)
        self._transforms: dict[str, Entry] = {}

    @property
    def publisher(self) -> Publisher:
        """Return the rclpy publisher."""
        return self._publisher.get()

    def send(self, stamp_ns: int, transforms: Sequence[Entry]) -> None:
        """Add or replace transforms (by child frame) and send all that there are."""
        self._transforms.update({entry[1]: entry for entry in transforms})
        entries = list(self._transforms.values())
        bundle = TransformBundle(self._publisher, tuple((e[0], e[1]) for e in entries))
        bundle.positions[...] = [entry[3] for entry in entries]
        bundle.quaternions[...] = [_quaternion(entry[2]) for entry in entries]
        bundle.publish(stamp_ns)


def _quaternion(R: np.ndarray | None) -> Any:
    return (0.0, 0.0, 0.0, 1.0) if R is None else quaternion_from_rotation(R)


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

    def latest(self, target: str, source: str) -> tuple[Pose, int]:
        """
        Return the latest pose of frame `source` in frame `target`, and when it held.

        Parameters
        ----------
        target, source
            Frames: the result takes coordinates in `source` to `target`.

        Raises
        ------
        InputError
            If it is not known (yet).

        """
        from rclpy.time import Time
        try:
            found = self._buffer.lookup_transform(target, source, Time())
        except self._tf2_ros.TransformException as error:
            raise InputError(f"no transform from '{source}' to '{target}': {error}") from None
        q, p = found.transform.rotation, found.transform.translation
        return (Pose.from_quaternion(np.array([q.x, q.y, q.z, q.w]), np.array([p.x, p.y, p.z])),
                ns_of_msg(found.header.stamp))
