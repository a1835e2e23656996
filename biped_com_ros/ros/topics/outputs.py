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
"""Publishers that patch a serialized message in place instead of building one each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.fast.compat import raw_publish
from biped_com_ros.ros.fast.vector_reader import STAMP_NUMBERS
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.topics.frames import frame_prefix, with_prefix
from biped_com_ros.ros.topics.qos import copy_of, overridable, STATE_OUTPUT
from geometry_msgs.msg import (PointStamped, Pose, PoseArray, Vector3Stamped, WrenchStamped)
import numpy as np
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import (
    Bool, Float64, Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout)

_CHECK_PERIOD = 0.1  # s

LINEAR = np.arange(36).reshape(6, 6)[:3, :3].ravel()
"""Indices of the (3, 3) block of positions or velocities in a flattened (6, 6) covariance."""


class TemplatePublisher:
    """
    Publishes one message again and again with new numbers in it.

    The message is serialized when it is first written: most outputs never have a subscriber.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Topic name, relative to the node's namespace, or ``~/...``.
    prototype
        The message with its strings set and its sequences at their final length; its frames get
        the node's `frame_prefix`.
    fields
        Name -> path pattern of the numbers that change; see `codec.Template`.
    qos
        Quality of service; users override it with ``qos_overrides.<topic>.publisher.*``.
    event_callbacks
        rclpy's PublisherEventCallbacks.

    Attributes
    ----------
    publisher
        The rclpy publisher.
    send : callable
        Publishes a serialized message.
    prototype
        The message as it was set up.
    on_publish : callable or None
        Called with each message and its stamp, (bytes, int or None).

    Examples
    --------
    >>> if out.has_subscribers:
    ...     out.fields['point'][...] = com_in_world
    ...     out.publish(stamp_ns)

    """

    def __init__(self, node: Node, topic: str, prototype: Any, fields: dict[str, str],
                 qos: QoSProfile = STATE_OUTPUT,
                 event_callbacks: PublisherEventCallbacks | None = None) -> None:
        self._node, self._patterns = node, fields
        self.prototype = with_prefix(prototype, frame_prefix(node))
        self.on_publish: Callable[[bytes, int | None], None] | None = None
        self.publisher = node.create_publisher(
            type(prototype), topic, copy_of(qos), event_callbacks=event_callbacks,
            qos_overriding_options=overridable())
        self.send = raw_publish(self.publisher)
        self._is_latched = self.publisher.qos_profile.durability == (
            DurabilityPolicy.TRANSIENT_LOCAL)
        self._has_subscribers, self._next_check = False, 0.0

    @property
    def has_subscribers(self) -> bool:
        """
        Whether anything subscribes; if not, computing and publishing can be left out.

        Looked up ten times per second. True for latched topics, whose subscribers may come later.
        """
        now = steady_time()
        if now > self._next_check:
            self._next_check = now + _CHECK_PERIOD
            self._has_subscribers = (
                self._is_latched or self.publisher.get_subscription_count() > 0)
        return self._has_subscribers

    @cached_property
    def template(self) -> Template:
        """Return the serialized message, made when it is first used."""
        template = Template(self.prototype, self._patterns)
        if template.plain_reason:
            self._node.get_logger().warning(
                f"'{self.topic}' is serialized by rclpy, which is slower: "
                f'{template.plain_reason}')
        return template

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Arrays of the numbers that change: assign with ``fields['point'][...] = value``."""
        return self.template.fields

    @property
    def topic(self) -> str:
        """Return the full topic name."""
        return str(self.publisher.topic_name)

    def publish(self, stamp_ns: int | None = None) -> None:
        """Publish the message with its present numbers and this stamp in its headers."""
        raw = self.template.serialize(stamp_ns)
        self.send(raw)
        if self.on_publish is not None:
            self.on_publish(raw, stamp_ns)

    def publish_value(self, value: Any, stamp_ns: int | None = None) -> None:
        """Publish a value of the first field, if there is a subscriber."""
        if self.has_subscribers:
            next(iter(self.fields.values()))[...] = value
            self.publish(stamp_ns)

    def destroy(self) -> None:
        """Withdraw the topic."""
        self._node.destroy_publisher(self.publisher)


def _stamped_publisher(message_type: type, field: str, node: Node, topic: str, frame_id: str,
                       **options: Any) -> TemplatePublisher:
    """Publish a message that has a header and one field of that name."""
    return TemplatePublisher(
        node, topic, message_type(header=Header(frame_id=frame_id)), {field: field}, **options)


#: Take node, topic and frame. PointStamped; field ``point`` (3,).
point_publisher = partial(_stamped_publisher, PointStamped, 'point')
#: Vector3Stamped; field ``vector`` (3,).
vector_publisher = partial(_stamped_publisher, Vector3Stamped, 'vector')
#: WrenchStamped; field ``wrench`` (6,), force first.
wrench_publisher = partial(_stamped_publisher, WrenchStamped, 'wrench')


def pose_array_publisher(node: Node, topic: str, frame_id: str, n: int,
                         **options: Any) -> TemplatePublisher:
    """Publish a PoseArray; fields ``position`` (n, 3) and ``orientation`` (n, 4) xyzw."""
    prototype = PoseArray(header=Header(frame_id=frame_id), poses=[Pose() for _ in range(n)])
    return TemplatePublisher(
        node, topic, prototype,
        {'position': 'poses[*].position', 'orientation': 'poses[*].orientation'}
        if n else {}, **options)


def joint_state_publisher(node: Node, topic: str, names: Sequence[str],
                          fields: Sequence[str] = ('position', 'velocity', 'effort'),
                          **options: Any) -> TemplatePublisher:
    """JointState; fields ``position``, ``velocity``, ``effort`` (n,), those not named empty."""
    zeros = [0.0] * len(names)
    prototype = JointState(name=list(names), **{field: list(zeros) for field in fields})
    return TemplatePublisher(
        node, topic, prototype, {f: f for f in fields} if names else {}, **options)


def float_array_publisher(node: Node, topic: str, n: int, labels: Sequence[str] = (),
                          **options: Any) -> TemplatePublisher:
    """
    Publish Float64MultiArray; field ``data`` (n,).

    `labels` name the entries: one dimension of size 1 and stride 1 per entry.
    """
    layout = MultiArrayLayout(
        dim=[MultiArrayDimension(label=label, size=1, stride=1) for label in labels])
    prototype = Float64MultiArray(layout=layout, data=[0.0] * n)
    return TemplatePublisher(node, topic, prototype, {'data': 'data'} if n else {}, **options)


class StampedArrayPublisher(TemplatePublisher):
    """
    Float64MultiArray of a square matrix; field ``data`` (n + 2,).

    The message type has no header. Its stamp, seconds and nanoseconds, is in the two numbers of
    padding before the matrix that ``layout.data_offset`` declares.
    """

    def __init__(self, node: Node, topic: str, rows: int, **options: Any) -> None:
        layout = MultiArrayLayout(data_offset=STAMP_NUMBERS, dim=[
            MultiArrayDimension(label='row', size=rows, stride=rows * rows),
            MultiArrayDimension(label='column', size=rows, stride=rows)])
        prototype = Float64MultiArray(layout=layout, data=[0.0] * (STAMP_NUMBERS + rows * rows))
        super().__init__(node, topic, prototype, {'data': 'data'}, **options)

    def publish_matrix(self, matrix: Array, stamp_ns: int) -> None:
        """Publish a matrix with a stamp, ns."""
        data = self.fields['data']
        data[:STAMP_NUMBERS] = divmod(stamp_ns, SECOND_NS)
        data[STAMP_NUMBERS:] = matrix.reshape(-1)
        self.publish()


def float_publisher(node: Node, topic: str, **options: Any) -> TemplatePublisher:
    """Float64; field ``data`` (1,)."""
    return TemplatePublisher(node, topic, Float64(), {'data': 'data'}, **options)


def bool_publisher(node: Node, topic: str, **options: Any) -> TemplatePublisher:
    """Bool; field ``data`` (1,)."""
    return TemplatePublisher(node, topic, Bool(), {'data': 'data'}, **options)
