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
import math
from time import monotonic
from typing import Any, TYPE_CHECKING

from biped_com_ros.ros.fast.codec import raw_publish, Template
from biped_com_ros.ros.fast.sharing import sender_of
from biped_com_ros.ros.node.later import once
from biped_com_ros.ros.node.timers import call_soon
from biped_com_ros.ros.topics.qos import copy_of, overridable, STATE_OUTPUT
from geometry_msgs.msg import (
    PointStamped, Pose, PoseArray, Vector3Stamped, WrenchStamped)
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import (
    Bool, Float64, Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout)

if TYPE_CHECKING:
    from visualization_msgs.msg import MarkerArray  # takes a while, and not all need it


class Output:
    """
    A publisher, and whether anybody would receive what it sends, asked ten times a second.

    Parameters
    ----------
    node
        The rclpy node.
    create
        Returns the rclpy publisher.
    later
        Whether it can be created right after the node's start; until then nobody wants it.

    """

    def __init__(self, node: Any, create: Callable[[], Any], later: bool = False) -> None:
        self._create = create
        self._latched, self._wanted, self._ask_again = False, False, math.inf
        if later:
            call_soon(node, lambda: self.publisher)
        else:
            _ = self.publisher

    @once
    def publisher(self) -> Any:
        """Return the rclpy publisher, created now if it was not before."""
        publisher = self._create()
        self._latched = publisher.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        self._wanted, self._ask_again = self._latched, 0.0
        return publisher

    @once
    def _send(self) -> Callable[[bytes], None]:
        return raw_publish(self.publisher)

    @property
    def has_subscribers(self) -> bool:
        """
        Tell whether anybody listens: if not, computing and publishing can be left out.

        Latched topics are always wanted: subscribers may come later.
        """
        now = monotonic()
        if now > self._ask_again:
            self._ask_again = now + 0.1
            self._wanted = self._latched or self.has_current_subscribers
        return self._wanted

    @property
    def has_current_subscribers(self) -> bool:
        """Tell whether anybody listens now; asks the middleware."""
        return bool(self.publisher.get_subscription_count() > 0)


class Audiences:
    """
    Several audiences that are asked together, in half the time of two.

    Parameters
    ----------
    audiences
        The publishers.

    """

    def __init__(self, *audiences: Output) -> None:
        self._audiences = audiences
        self._wanted: tuple[bool, ...] = ()
        self._ask_again = 0.0

    def has_subscribers(self) -> tuple[bool, ...]:
        """Tell of each whether anybody listens, 0.15 s after somebody begins to at the latest."""
        now = monotonic()
        if now > self._ask_again:
            self._ask_again = now + 0.05  # they themselves ask every 0.1 s
            self._wanted = tuple([audience.has_subscribers for audience in self._audiences])
        return self._wanted


class TemplatePublisher(Output):
    """
    Publishes one message again and again with new numbers in it.

    What takes time is done when the first message is written: most outputs never have a listener.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Topic name, relative to the node's namespace, or ``~/...``.
    prototype
        The message with its strings set and its sequences at their final length.
    fields
        Name -> path pattern of the numbers that change; see `codec.Template`.
    qos
        Quality of service; users override it with ``qos_overrides.<topic>.publisher.*``.
    plain
        Use rclpy's own conversion; default: as the environment says.
    later
        Whether it can be created right after the node's start.

    Attributes
    ----------
    fields : dict of str to array
        Assign with ``fields['point'][...] = value``, then call `publish`.

    Examples
    --------
    >>> if out.has_subscribers:
    ...     out.fields['point'][...] = com_in_world
    ...     out.publish(stamp)

    """

    def __init__(self, node: Any, topic: str, prototype: Any, fields: dict[str, str],
                 qos: QoSProfile = STATE_OUTPUT, plain: bool | None = None,
                 later: bool = False) -> None:
        self._node, self._patterns, self._plain = node, fields, plain
        self._prototype = prototype
        super().__init__(node, lambda: node.create_publisher(
            type(prototype), topic, copy_of(qos), qos_overriding_options=overridable()), later)

    def set_prototype(self, prototype: Any) -> None:
        """Start over with a message of other strings or lengths (takes about a millisecond)."""
        self._prototype = prototype
        TemplatePublisher.template.forget(self)
        TemplatePublisher.fields.forget(self)

    @once
    def template(self) -> Template:
        """Return the message as bytes."""
        template = Template(self._prototype, self._patterns, self._plain)
        if template.plain_reason:
            self._node.get_logger().warning(
                f"'{self.topic}' is published the slow way: {template.plain_reason}")
        return template

    @once
    def fields(self) -> dict[str, Any]:
        """Arrays of the numbers that change."""
        return self.template.fields

    @property
    def topic(self) -> str:
        """Return the full topic name."""
        return str(self.publisher.topic_name)

    @once
    def _send(self) -> Callable[[bytes], None]:
        return sender_of(self._node, self)

    def find_way(self) -> None:
        """Look anew, when something is published again, who of the process gets it."""
        TemplatePublisher._send.forget(self)

    def publish(self, stamp_ns: int | None = None) -> None:
        """Publish the message with its present numbers and this stamp in its headers."""
        send = self._send  # as a method it would first be sought in the class
        send(self.template.serialize(stamp_ns))

    @property
    def prototype(self) -> Any:
        """Return the message as it was set up."""
        return self._prototype

    def tap(self, listen: Callable[[bytes, int | None], None]) -> None:
        """Give `listen` what is published from now on, too; others pay nothing for it."""
        def publish(stamp_ns: int | None = None) -> None:
            raw = self.template.serialize(stamp_ns)
            self._send(raw)
            listen(raw, stamp_ns)

        self.__dict__['publish'] = publish

    def destroy(self) -> None:
        """Withdraw the topic."""
        self.find_way()
        self._node.destroy_publisher(self.publisher)


def point_publisher(node: Any, topic: str, frame_id: str, **options: Any) -> TemplatePublisher:
    """PointStamped; field ``point`` (3,)."""
    return TemplatePublisher(node, topic, PointStamped(header=Header(frame_id=frame_id)),
                             {'point': 'point'}, **options)


def vector_publisher(node: Any, topic: str, frame_id: str, **options: Any) -> TemplatePublisher:
    """Vector3Stamped; field ``vector`` (3,)."""
    return TemplatePublisher(node, topic, Vector3Stamped(header=Header(frame_id=frame_id)),
                             {'vector': 'vector'}, **options)


def wrench_publisher(node: Any, topic: str, frame_id: str, **options: Any) -> TemplatePublisher:
    """WrenchStamped; field ``wrench`` (6,), force first."""
    return TemplatePublisher(node, topic, WrenchStamped(header=Header(frame_id=frame_id)),
                             {'wrench': 'wrench'}, **options)


def pose_array_publisher(node: Any, topic: str, frame_id: str, n: int,
                         **options: Any) -> TemplatePublisher:
    """Publish a PoseArray; fields ``position`` (n, 3) and ``orientation`` (n, 4) xyzw."""
    prototype = PoseArray(header=Header(frame_id=frame_id), poses=[Pose() for _ in range(n)])
    return TemplatePublisher(
        node, topic, prototype,
        {'position': 'poses[*].position', 'orientation': 'poses[*].orientation'}
        if n else {}, **options)


def joint_state_publisher(node: Any, topic: str, names: Sequence[str],
                          fields: Sequence[str] = ('position', 'velocity', 'effort'),
                          **options: Any) -> TemplatePublisher:
    """JointState; fields ``position``, ``velocity``, ``effort`` (n,), those not named empty."""
    zeros = [0.0] * len(names)
    prototype = JointState(name=list(names), **{field: list(zeros) for field in fields})
    return TemplatePublisher(
        node, topic, prototype, {f: f for f in fields} if names else {}, **options)


def float_array_publisher(node: Any, topic: str, n: int, labels: Sequence[str] = (),
                          **options: Any) -> TemplatePublisher:
    """
    Publish Float64MultiArray; field ``data`` (n,).

    `labels` name the entries: one dimension of size 1 and stride 1 per entry.
    """
    layout = MultiArrayLayout(
        dim=[MultiArrayDimension(label=label, size=1, stride=1) for label in labels])
    prototype = Float64MultiArray(layout=layout, data=[0.0] * n)
    return TemplatePublisher(node, topic, prototype, {'data': 'data'} if n else {}, **options)


def float_publisher(node: Any, topic: str, **options: Any) -> TemplatePublisher:
    """Float64; field ``data`` (1,)."""
    return TemplatePublisher(node, topic, Float64(), {'data': 'data'}, **options)


def bool_publisher(node: Any, topic: str, **options: Any) -> TemplatePublisher:
    """Bool; field ``data`` (1,)."""
    return TemplatePublisher(node, topic, Bool(), {'data': 'data'}, **options)


def marker_array_publisher(node: Any, topic: str, prototype: MarkerArray,
                           fields: dict[str, str] | None = None,
                           **options: Any) -> TemplatePublisher:
    """MarkerArray; field ``position`` (n, 3) of the markers' poses unless `fields` says else."""
    return TemplatePublisher(
        node, topic, prototype, fields or {'position': 'markers[*].pose.position'}, **options)
