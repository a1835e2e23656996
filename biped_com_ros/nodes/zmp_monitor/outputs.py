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
"""What `zmp_monitor` publishes: points, margins, the polygon, the phase, events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.stability.levels import Change, Level
from biped_com_ros.core.stability.monitor import StabilityReport
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.node.diagnostics import ERROR, OK, status_name, WARN
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.outputs import (
    float_publisher, LINEAR, point_publisher, TemplatePublisher, vector_publisher)
from biped_com_ros.ros.topics.qos import LATCHED, overridable
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point32, Polygon, PolygonStamped, PoseWithCovarianceStamped
from rclpy.node import Node
from std_msgs.msg import Header, String

SEVERITY = {Level.STABLE: OK, Level.MARGINAL: WARN, Level.UNSTABLE: ERROR, Level.FALLEN: ERROR}

#: A publisher, the field of its message, and what of a report it gets; None is not published.
_Output = tuple[TemplatePublisher, str, Callable[[StabilityReport], Any]]


class PolygonOutput(TemplatePublisher):
    """Publishes polygons; one template for each number of corners."""

    def __init__(self, node: Node, topic: str, frame_id: str) -> None:
        self._frame_id, self._templates = frame_id, dict[int, Template]()
        super().__init__(node, topic, self._prototype_of(4), {'points': 'polygon.points'})
        self._frame_id = frame_prefix(node) + frame_id

    def publish_corners(self, stamp_ns: int, corners: Array) -> None:
        """Publish corners (k, 3)."""
        template = self._templates.get(len(corners))
        if template is None:
            template = self._templates[len(corners)] = Template(
                self._prototype_of(len(corners)), {'points': 'polygon.points'})
        template.fields['points'][...] = corners
        self.send(template.serialize(stamp_ns))

    def _prototype_of(self, count: int) -> PolygonStamped:
        return PolygonStamped(header=Header(frame_id=self._frame_id), polygon=Polygon(
            points=[Point32() for _ in range(count)]))


class StabilityOutputs:
    """
    Publishes reports with their stamps; what is unknown is not published.

    Parameters
    ----------
    node, world_frame, feet
        The rclpy node, the frame of everything, and the names of the feet.

    """

    def __init__(self, node: Node, world_frame: str, feet: Sequence[str]) -> None:
        self._node, self._feet = node, tuple(feet)

        def point(topic: str, field: str) -> _Output:
            return point_publisher(node, topic, world_frame), 'point', attrgetter(field)

        def number(topic: str, field: str) -> _Output:
            return float_publisher(node, topic), 'data', attrgetter(field)

        self._outputs: tuple[_Output, ...] = (
            point('~/zmp', 'zmp_in_world'), point('~/zmp_model', 'zmp_model'),
            point('~/dcm', 'dcm_in_world'),
            (vector_publisher(node, '~/zmp_difference', world_frame), 'vector',
             attrgetter('zmp_difference')),
            number('~/margin', 'zmp_margin'), number('~/dcm_margin', 'dcm_margin'),
            number('~/com_margin', 'com_margin'), number('~/time_to_edge', 'time_to_edge'))
        self._polygons = tuple(
            (PolygonOutput(node, topic, world_frame), attrgetter(field))
            for topic, field in (
                ('~/support_polygon', 'support'), ('~/com_region', 'com_region')))
        options: dict[str, Any] = {'qos_overriding_options': overridable()}
        self._uncertain = _uncertain_publisher(node, world_frame)
        self._phase = node.create_publisher(String, '~/support_phase', LATCHED, **options)
        self._event = node.create_publisher(DiagnosticArray, '~/event', LATCHED, **options)
        self._in_contact: tuple[bool, ...] | None = None

    def publish(self, report: StabilityReport) -> None:
        """Publish an instant; messages without subscribers are not built."""
        stamp_ns, in_contact = report.located.stamp_ns, report.located.stance.in_contact
        for output, field, value_of in self._outputs:
            if output.has_subscribers and (value := value_of(report)) is not None:
                output.fields[field][...] = value
                output.publish(stamp_ns)
        for polygon, region_of in self._polygons:
            if polygon.has_subscribers and (region := region_of(report)) is not None:
                polygon.publish_corners(stamp_ns, region.corners_in_world)
        self._publish_uncertain(report)
        if in_contact != self._in_contact:
            self._in_contact = in_contact
            self._phase.publish(String(data=support_phase(self._feet, in_contact)))
        if report.change is not None:
            self._publish_event(report, report.change)

    def _publish_uncertain(self, report: StabilityReport) -> None:
        """Publish the ZMP with its covariance, where the wrenches have one."""
        if self._uncertain.has_subscribers and report.zmp_covariance is not None:
            fields = self._uncertain.fields
            fields['position'][...] = report.zmp_in_world
            fields['covariance'][LINEAR] = report.zmp_covariance.reshape(-1)
            self._uncertain.publish(report.located.stamp_ns)

    def _publish_event(self, report: StabilityReport, change: Change) -> None:
        """Publish and log a change of level."""
        located, text = report.located, describe_change(change)
        status = DiagnosticStatus(
            level=SEVERITY[change.now], name=status_name(self._node, 'stability'), message=text,
            values=[KeyValue(key=key, value=value) for key, value in (
                ('before', change.before.name), ('now', change.now.name),
                ('support phase', support_phase(self._feet, located.stance.in_contact)),
                ('margin [m]', _number(report.zmp_margin)),
                ('dcm margin [m]', _number(report.dcm_margin)),
                ('time to the edge [s]', _number(report.time_to_edge)))])
        message = DiagnosticArray(status=[status])
        message.header.stamp = stamp_to_msg(located.stamp_ns)
        self._event.publish(message)
        logger = self._node.get_logger()
        # One call each: rclpy does not let a line of code change its severity.
        if change.now >= Level.UNSTABLE:
            logger.error(text)
        elif change.now == Level.MARGINAL:
            logger.warning(text)
        else:
            logger.info(text)


def _uncertain_publisher(node: Node, world_frame: str) -> TemplatePublisher:
    prototype = PoseWithCovarianceStamped(header=Header(frame_id=world_frame))
    prototype.pose.pose.orientation.w = 1.0
    return TemplatePublisher(node, '~/zmp_with_covariance', prototype, {
        'position': 'pose.pose.position', 'covariance': 'pose.covariance'})


def support_phase(feet: Sequence[str], in_contact: Sequence[bool]) -> str:
    """Return ``flight``, ``single <foot>``, ``double`` or the names of the feet in contact."""
    touching = [foot for foot, touches in zip(feet, in_contact) if touches]
    if len(touching) == len(feet) == 2:
        return 'double'
    if len(touching) == 1:
        return f'single {touching[0]}'
    return ', '.join(touching) or 'flight'


def describe_change(change: Change) -> str:
    """Return a change of level in words."""
    reasons = f': {"; ".join(change.reasons)}' if change.reasons else ''
    if change.now == Level.FALLEN:
        return f'fallen{reasons}'
    if change.is_loss:
        return f'stability lost{reasons}'
    if change.now == Level.UNSTABLE:
        return f'not fallen, but unstable{reasons}'
    if change.before >= Level.UNSTABLE:
        return f'recovered, now {change.now.name.lower()}{reasons}'
    return f'{change.now.name.lower()}{reasons}'


def _number(value: float | None) -> str:
    return 'unknown' if value is None else f'{value:.4f}'
