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
from functools import cached_property
import math
from typing import Any

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.fast.compat import plain_requested, raw_publish
from biped_com_ros.ros.fast.vector_reader import STAMP_NUMBERS
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.timers import call_soon
from biped_com_ros.ros.topics.frames import frame_prefix, with_prefix
from biped_com_ros.ros.topics.qos import copy_of, overridable, STATE_OUTPUT
from geometry_msgs.msg import (
    PointStamped, Pose, PoseArray, Vector3Stamped, WrenchStamped)
import numpy as np
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
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
    later
        Create the publisher 20 ms after the node's start, or when it is first used. One takes
        0.5 ms to create, the first one of a message package several, since its libraries are
        loaded: that makes the first message of ``com_estimator`` 15 ms earlier.
    event_callbacks
        rclpy's PublisherEventCallbacks.

    Attributes
    ----------
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
                 qos: QoSProfile = STATE_OUTPUT, later: bool = False,
                 event_callbacks: PublisherEventCallbacks | None = None) -> None:
        self._node, self._patterns = node, fields
        self._name, self._qos = topic, qos
        self.prototype = with_prefix(prototype, frame_prefix(node))
        self._event_callbacks = event_callbacks
        self.on_publish: Callable[[bytes, int | None], None] | None = None
        self._publisher: Publisher | None = None
        self.send: Callable[[bytes], None] = self._create_and_send
        self._is_latched = self._has_subscribers = False
        self._next_check = math.inf
        if later and not plain_requested():
            call_soon(node, lambda: self.publisher)
        else:
            _ = self.publisher

    @property
    def publisher(self) -> Publisher:
        """Return the rclpy publisher."""
        if self._publisher is None:
            self._publisher = publisher = self._node.create_publisher(
                type(self.prototype), self._name, copy_of(self._qos),
                event_callbacks=self._event_callbacks, qos_overriding_options=overridable())
            self.send = raw_publish(publisher)
            self._is_latched = publisher.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
            self._next_check = 0.0
        return self._publisher

    def _create_and_send(self, raw: bytes) -> None:
        _ = self.publisher
        self.send(raw)

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


def point_publisher(node: Node, topic: str, frame_id: str, **options: Any) -> TemplatePublisher:
    """PointStamped; field ``point`` (3,)."""
    return TemplatePublisher(node, topic, PointStamped(header=Header(frame_id=frame_id)),
                             {'point': 'point'}, **options)


def vector_publisher(node: Node, topic: str, frame_id: str, **options: Any) -> TemplatePublisher:
    """Vector3Stamped; field ``vector`` (3,)."""
    return TemplatePublisher(node, topic, Vector3Stamped(header=Header(frame_id=frame_id)),
                             {'vector': 'vector'}, **options)


def wrench_publisher(node: Node, topic: str, frame_id: str, **options: Any) -> TemplatePublisher:
    """WrenchStamped; field ``wrench`` (6,), force first."""
    return TemplatePublisher(node, topic, WrenchStamped(header=Header(frame_id=frame_id)),
                             {'wrench': 'wrench'}, **options)


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
        prototype = Float64MultiArray(
            layout=layout, data=[0.0] * (STAMP_NUMBERS + rows * rows))
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
