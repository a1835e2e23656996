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
"""What `zmp_monitor` publishes: points, margins, the polygon, events, markers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from operator import attrgetter
from time import monotonic
from typing import Any, Protocol

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.levels import Change, Level
from biped_com_ros.core.stability.monitor import StabilityReport
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.node.diagnostics import ERROR, OK, WARN
from biped_com_ros.ros.topics import markers
from biped_com_ros.ros.topics.outputs import (
    float_publisher, marker_array_publisher, point_publisher, TemplatePublisher,
    vector_publisher)
from biped_com_ros.ros.topics.qos import LATCHED, overridable
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point32, Polygon, PolygonStamped
import numpy as np
from std_msgs.msg import Header, String
from visualization_msgs.msg import Marker

SEVERITY = {Level.STABLE: OK, Level.MARGINAL: WARN, Level.UNSTABLE: ERROR, Level.FALLEN: ERROR}

_COLOURS = {Level.STABLE: markers.GREEN, Level.MARGINAL: markers.YELLOW,
            Level.UNSTABLE: markers.RED, Level.FALLEN: markers.RED}
_FAINT_BLUE, _FAINT_ORANGE = (*markers.BLUE[:3], 0.35), (*markers.ORANGE[:3], 0.35)


_ASK_EVERY = 0.1
"""How often it is asked whether anybody listens, s."""

#: An output, the field of its message, and what goes there; nothing goes out for None.
_Find = Callable[[StabilityReport], Any]
_Finder = tuple[TemplatePublisher, str, _Find]


class MarkerParameters(Protocol):
    """The parameters of the markers."""

    @property
    def world_frame(self) -> str:
        """Frame of everything."""

    @property
    def force_scale(self) -> float:
        """Length of the arrows, m/N; 0: a robot's weight is as long as it is high."""

    @property
    def trail(self) -> int:
        """Return how many past points are shown."""

    @property
    def gravity(self) -> float:
        """m/s2."""


class PolygonOutput:
    """
    The polygon, whose number of corners changes; one template for each number.

    Attributes
    ----------
    has_subscribers
        Whether anything subscribes to it.

    """

    def __init__(self, node: Any, topic: str, frame_id: str) -> None:
        self._frame_id = frame_id
        self._out = TemplatePublisher(node, topic, self._prototype(4), {
            'points': 'polygon.points'})
        self._templates: dict[int, Template] = {4: self._out.template}

    @property
    def has_subscribers(self) -> bool:
        return self._out.has_subscribers

    def publish(self, stamp_ns: int, corners: Array) -> None:
        """Publish corners (k, 3)."""
        template = self._templates.get(len(corners))
        if template is None:
            template = self._templates[len(corners)] = Template(
                self._prototype(len(corners)), {'points': 'polygon.points'})
        template.fields['points'][...] = corners
        self._out.publisher.publish(template.serialize(stamp_ns))

    def _prototype(self, count: int) -> PolygonStamped:
        return PolygonStamped(header=Header(frame_id=self._frame_id), polygon=Polygon(
            points=[Point32() for _ in range(count)]))


class StabilityOutputs:
    """
    Publishes reports with their stamps; what is unknown is not published.

    Parameters
    ----------
    node, world_frame, feet
        The rclpy node, the frame of everything, and the names of the feet.

    Attributes
    ----------
    models_wanted, margins_wanted
        Whether anybody listens to what the model says; to margins or the support polygon.

    """

    def __init__(self, node: Any, world_frame: str, feet: Sequence[str]) -> None:
        self._node, self._feet = node, tuple(feet)
        self._points = {
            'zmp': point_publisher(node, '~/zmp', world_frame),
            'zmp_model': point_publisher(node, '~/zmp_model', world_frame),
            'dcm': point_publisher(node, '~/dcm', world_frame)}
        self._difference = vector_publisher(node, '~/zmp_difference', world_frame)
        self._polygon = PolygonOutput(node, '~/support_polygon', world_frame)
        self._numbers = {
            'zmp_distance': float_publisher(node, '~/margin'),
            'dcm_distance': float_publisher(node, '~/dcm_margin'),
            'time_to_edge': float_publisher(node, '~/time_to_edge')}
        self._finders: tuple[_Finder, ...] = (
            (self._points['zmp'], 'point', attrgetter('zmp_in_world')),
            (self._points['zmp_model'], 'point', attrgetter('zmp_model')),
            (self._points['dcm'], 'point', attrgetter('dcm_in_world')),
            (self._difference, 'vector', attrgetter('difference')),
            *((out, 'data', attrgetter(name)) for name, out in self._numbers.items()))
        #: Of those that somebody listens to, what finds, holds and publishes the numbers: what
        #: nobody hears is not even found.
        self._heard: list[tuple[_Find, Any, Callable[[int], None]]] = []
        self._polygon_heard = self.models_wanted = self.margins_wanted = False
        self._ask_again = 0.0
        options = {'qos_overriding_options': overridable()}
        self._phase = node.create_publisher(String, '~/support_phase', LATCHED, **options)
        self._event = node.create_publisher(DiagnosticArray, '~/event', LATCHED, **options)
        self._in_contact: tuple[bool, ...] | None = None

    def publish(self, stamp_ns: int, report: StabilityReport, in_contact: tuple[bool, ...]) -> None:
        """Publish an instant."""
        if monotonic() > self._ask_again:
            self._ask()
        for find, numbers, publish in self._heard:
            found = find(report)
            if found is not None:
                numbers[...] = found
                publish(stamp_ns)
        if self._polygon_heard and report.support is not None:
            self._polygon.publish(stamp_ns, report.support.corners_in_world)
        if in_contact != self._in_contact:
            self._in_contact = in_contact
            self._phase.publish(String(data=support_phase(self._feet, in_contact)))

    def _ask(self) -> None:
        """Find out who is listened to, of all at once: ten times a second."""
        self._ask_again = monotonic() + _ASK_EVERY
        self._heard = [(find, out.fields[field], out.publish)
                       for out, field, find in self._finders if out.has_subscribers]
        self._polygon_heard = self._polygon.has_subscribers
        self.models_wanted = (
            self._points['zmp_model'].has_subscribers or self._difference.has_subscribers)
        self.margins_wanted = self._polygon_heard or any(
            out.has_subscribers for out in self._numbers.values())

    def announce(self, stamp_ns: int, change: Change, report: StabilityReport) -> None:
        """Publish a change of level, latched."""
        status = DiagnosticStatus(
            level=SEVERITY[change.now], name=f'{self._node.get_name()}: stability',
            message=describe_change(change), values=[
                KeyValue(key=key, value=value) for key, value in (
                    ('before', change.before.name), ('now', change.now.name),
                    ('support phase', support_phase(self._feet, self._in_contact or ())),
                    ('margin [m]', _number(report.zmp_distance)),
                    ('dcm margin [m]', _number(report.dcm_distance)),
                    ('time to the edge [s]', _number(report.time_to_edge)))])
        message = DiagnosticArray(status=[status])
        message.header.stamp = stamp_to_msg(stamp_ns)
        self._event.publish(message)


class StabilityMarkers:
    """
    Polygon coloured by level, CoM and its projection, ZMPs with trails, DCM, foot forces.

    Attributes
    ----------
    has_current_subscribers
        Whether anybody listened when last it was asked to publish.

    """

    def __init__(self, node: Any, model: RobotModel, params: MarkerParameters,
                 corner_count: int) -> None:
        frame, feet = params.world_frame, len(model.soles.names)
        size = 0.06 * math.sqrt(model.mass / 60.0) + 0.004
        self._force_scale = params.force_scale or 0.5 / (model.mass * params.gravity)
        shown = [
            markers.sphere(frame, 'com', 0, markers.ORANGE, size),
            markers.cylinder(frame, 'com', 1, markers.ORANGE, size, 0.002),
            markers.sphere(frame, 'zmp', 0, markers.BLUE, 0.6 * size),
            markers.sphere(frame, 'zmp_model', 0, markers.YELLOW, 0.5 * size),
            markers.sphere(frame, 'dcm', 0, markers.CYAN, 0.6 * size),
            *(markers.sphere(frame, 'cop', i, markers.WHITE, 0.4 * size) for i in range(feet)),
            *(markers.arrow(frame, 'force', i, markers.RED, 0.15 * size, 0.4 * size, 0.5 * size)
              for i in range(feet)),
            markers.line_strip(frame, 'support_polygon', corner_count + 1, 0, markers.GREEN,
                               0.12 * size),
            markers.line_strip(frame, 'zmp_trail', params.trail, 0, _FAINT_BLUE, 0.1 * size),
            markers.line_strip(frame, 'zmp_model_trail', params.trail, 0, _FAINT_ORANGE,
                               0.1 * size)]
        self._feet, self._first_arrow = feet, 5 + feet
        self._polygon = 5 + 2 * feet
        fields = {'position': 'markers[*].pose.position', 'action': 'markers[*].action',
                  'colour': f'markers[{self._polygon}].color',
                  'polygon': f'markers[{self._polygon}].points',
                  'trail': f'markers[{self._polygon + 1}].points',
                  'model_trail': f'markers[{self._polygon + 2}].points'}
        for i in range(feet):
            fields[f'arrow_{i}'] = f'markers[{self._first_arrow + i}].points'
        self._out = marker_array_publisher(
            node, '~/markers', markers.marker_array(*shown), fields, qos=LATCHED)
        self._trails = (_Trail(params.trail), _Trail(params.trail))
        self.has_current_subscribers, self._drawn_ns = False, 0

    def publish(self, stamp_ns: int, report: StabilityReport, level: Level) -> None:
        """Publish an instant, while nobody listens one per second."""
        for trail, point in zip(self._trails, (report.zmp, report.zmp_model)):
            trail.add(point)
        self.has_current_subscribers = self._out.has_current_subscribers
        age_ns = stamp_ns - self._drawn_ns
        if self.has_current_subscribers or not 0 <= age_ns < markers.UNSUBSCRIBED_PERIOD_NS:
            self._drawn_ns = stamp_ns
            self._draw(report, level)
            self._out.publish(stamp_ns)

    def _draw(self, report: StabilityReport, level: Level) -> None:
        """Show an instant; what is unknown disappears."""
        fields, support = self._out.fields, report.support
        actions = np.full(self._polygon + 3, Marker.ADD)
        position = np.zeros((self._polygon + 3, 3))
        shadow = None if support is None else support.plane.below(report.com)
        points = (report.com, shadow, report.zmp, report.zmp_model, report.dcm)
        for i, point in enumerate(points):
            actions[i] = _action(point)
            position[i] = 0.0 if point is None else point
        for i, (cop, force) in enumerate(zip(report.cops, report.forces)):
            known = not math.isnan(cop[0])
            actions[[5 + i, self._first_arrow + i]] = Marker.ADD if known else Marker.DELETE
            if known:
                position[5 + i] = cop
                fields[f'arrow_{i}'][...] = cop, cop + self._force_scale * force
        actions[self._polygon] = _action(support)
        if support is not None:
            self._draw_polygon(support.corners_in_world, level)
        for i, (trail, name) in enumerate(zip(self._trails, ('trail', 'model_trail'))):
            actions[self._polygon + 1 + i] = Marker.ADD if trail.count else Marker.DELETE
            fields[name][...] = trail.points
        fields['position'][...], fields['action'][...] = position, actions

    def _draw_polygon(self, corners: Array, level: Level) -> None:
        fields = self._out.fields
        outline = np.empty((len(fields['polygon'][...]), 3))
        outline[:len(corners)], outline[len(corners):] = corners, corners[0]
        fields['polygon'][...], fields['colour'][...] = outline, _COLOURS[level]


class _Trail:
    """The last n points, the oldest first; as long as there are fewer, the oldest repeats."""

    def __init__(self, n: int) -> None:
        self.points, self.count = np.zeros((n, 3)), 0

    def add(self, point: Array | None) -> None:
        if point is None:
            return
        if not self.count:
            self.points[:] = point
        self.points[:-1] = self.points[1:]
        self.points[-1] = point
        self.count += 1


def support_phase(feet: Sequence[str], in_contact: Sequence[bool]) -> str:
    """Return ``flight``, ``single <foot>``, ``double`` or the names of the standing feet."""
    standing = [foot for foot, stands in zip(feet, in_contact) if stands]
    if len(standing) == len(feet) == 2:
        return 'double'
    if len(standing) == 1:
        return f'single {standing[0]}'
    return ', '.join(standing) or 'flight'


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


def _action(value: Any) -> int:
    return int(Marker.DELETE if value is None else Marker.ADD)


def _number(value: float | None) -> str:
    return 'unknown' if value is None else f'{value:.4f}'
