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
"""Stability in RViz: polygon, region of the CoM, CoM, ZMP, DCM, forces of feet and hands."""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.hands import Hands
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import StabilityReport
from biped_com_ros.nodes.zmp_monitor.parameters import ZmpMonitorParameters
from biped_com_ros.ros.topics import markers
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.viz import palette
from biped_com_ros.viz.arrows import arrow_scale
import numpy as np
from rclpy.node import Node
from visualization_msgs.msg import Marker

_GOOD = markers.rgba(palette.GOOD)
_COLOURS = {Level.STABLE: _GOOD, Level.MARGINAL: markers.rgba(palette.FAIR),
            Level.UNSTABLE: markers.rgba(palette.BAD), Level.FALLEN: markers.rgba(palette.BAD)}
_FORCE = markers.rgba(palette.FORCE)
_COM, _ZMP, _MODEL, _DCM = (markers.rgba(palette.MARKS[name].colour)
                            for name in ('com', 'zmp', 'zmp_model', 'dcm'))
_TRAIL, _MODEL_TRAIL = (markers.rgba(palette.MARKS[name].colour, 0.35)
                        for name in ('zmp', 'zmp_model'))

#: Length of the line on which the CoM is at rest, over the height of the CoM.
_LINE_LENGTH = 1.2
#: Number of past points of the trails.
_TRAIL_LENGTH = 60

#: Of the polygon that is drawn; a region of support may have more.
_MOST_CORNERS = 40


class StabilityMarkers:
    """
    Polygon coloured by level, CoM and its projection, ZMPs with trails, DCM, forces.

    Where hands touch or soles stand on steps, also the region where the CoM may be at rest.

    The line through the ZMP along the total force is where the CoM is at rest: what the CoM is
    beside it is an error of masses.
    """

    def __init__(self, node: Node, model: RobotModel, params: ZmpMonitorParameters) -> None:
        frame, feet = params.world_frame, len(model.soles.names)
        self._hands = tuple(Hands.measured(model.config))
        size = 0.06 * math.sqrt(model.mass / 60.0) + 0.004
        self.set_force_scale(model, params)
        shown = [
            markers.sphere(frame, 'com', 0, _COM, size),
            markers.cylinder(frame, 'com', 1, _COM, size, 0.002),
            markers.sphere(frame, 'zmp', 0, _ZMP, 0.6 * size),
            markers.sphere(frame, 'zmp_model', 0, _MODEL, 0.5 * size),
            markers.sphere(frame, 'dcm', 0, _DCM, 0.6 * size),
            markers.line_strip(frame, 'support_polygon', _MOST_CORNERS + 1, 0, _GOOD,
                               0.12 * size),
            markers.line_strip(frame, 'zmp_trail', _TRAIL_LENGTH, 0, _TRAIL, 0.1 * size),
            markers.line_strip(frame, 'zmp_model_trail', _TRAIL_LENGTH, 0, _MODEL_TRAIL,
                               0.1 * size),
            markers.line_strip(frame, 'com_line', 2, 0, _ZMP, 0.06 * size),
            markers.line_strip(frame, 'com_region', _MOST_CORNERS + 1, 0, _COM, 0.08 * size)]
        for ball, force, count in (
                ('cop', 'force', feet), ('hand', 'hand_force', len(self._hands))):
            for i in range(count):
                shown += [
                    markers.sphere(frame, ball, i, markers.WHITE, 0.4 * size),
                    markers.arrow(frame, force, i, _FORCE, 0.15 * size, 0.4 * size, 0.5 * size)]
        self._rows = {(marker.ns, marker.id): row for row, marker in enumerate(shown)}
        self._position, self._action = np.zeros((len(shown), 3)), np.zeros(len(shown), dtype=int)
        polygon = self._rows['support_polygon', 0]
        self.output = markers.marker_publisher(node, shown, {
            'position': 'markers[*].pose.position', 'action': 'markers[*].action',
            'colour': f'markers[{polygon}].color',
            **{f'{name} {i}': f'markers[{row}].points'
               for (name, i), row in self._rows.items() if shown[row].points}}, qos=LATCHED)
        self._trails = {name: _Trail(_TRAIL_LENGTH) for name in ('zmp_trail', 'zmp_model_trail')}

    def set_force_scale(self, model: RobotModel, params: ZmpMonitorParameters) -> None:
        """Draw forces by the robot's weight and height."""
        self._force_scale = arrow_scale(model, params.gravity)

    def publish(self, report: StabilityReport, level: Level) -> None:
        """Publish an instant."""
        for trail, point in zip(self._trails.values(), (report.zmp_in_world, report.zmp_model)):
            trail.add(point)
        self._draw(report, level)
        self.output.publish(report.located.stamp_ns)

    def _draw(self, report: StabilityReport, level: Level) -> None:
        """Fill the markers of an instant; those of unknown quantities are deleted."""
        self._action[:], self._position[:] = Marker.DELETE, 0.0
        com, support = report.com_in_world, report.support
        self._place('com', 0, com)
        self._place('com', 1, None if support is None else support.plane.below(com))
        for name, point in (('zmp', report.zmp_in_world), ('zmp_model', report.zmp_model),
                            ('dcm', report.dcm_in_world)):
            self._place(name, 0, point)
        for i, (cop, force) in enumerate(zip(report.cops_in_world, report.forces_in_world)):
            if not math.isnan(cop[0]):
                self._draw_force('cop', 'force', i, cop, force)
        for hand in report.hands:
            self._draw_force('hand', 'hand_force', self._hands.index(hand.name),
                             np.array(hand.point_in_world), np.array(hand.force_in_world))
        if support is not None:
            self._trace('support_polygon', 0, _outline(support.corners_in_world))
            self.output.fields['colour'][...] = _COLOURS[level]
        for name, trail in self._trails.items():
            self._trace(name, 0, trail.points if trail.count else None)
        self._trace('com_line', 0, _line(report))
        region = report.com_region if report.contacts else None
        self._trace('com_region', 0, None if region is None else _outline(region.corners_in_world))
        fields = self.output.fields
        fields['position'][...], fields['action'][...] = self._position, self._action

    def _draw_force(self, ball: str, arrow: str, i: int, point: Array, force: Array) -> None:
        self._place(ball, i, point)
        self._trace(arrow, i, np.array((point, point + self._force_scale * force)))

    def _place(self, name: str, i: int, point: Sequence[float] | Array | None) -> None:
        """Show a marker at a point if that is known."""
        if point is not None:
            row = self._rows[name, i]
            self._action[row], self._position[row] = Marker.ADD, point

    def _trace(self, name: str, i: int, points: Array | None) -> None:
        """Show a line or an arrow along points if these are known."""
        if points is not None:
            self._action[self._rows[name, i]] = Marker.ADD
            self.output.fields[f'{name} {i}'][...] = points


def _outline(corners: Array) -> Array:
    """Return a closed line of as many points as its marker has."""
    if len(corners) > _MOST_CORNERS:
        corners = corners[np.linspace(0, len(corners) - 1, _MOST_CORNERS).astype(int)]
    outline = np.empty((_MOST_CORNERS + 1, 3))
    outline[:len(corners)], outline[len(corners):] = corners, corners[0]
    return outline


def _line(report: StabilityReport) -> Array | None:
    """Return both ends (2, 3) of the line on which the CoM is at rest; None without a ZMP."""
    if report.zmp_in_world is None or report.wrench is None or report.wrench[2] <= 0.0:
        return None
    zmp, force = np.array(report.zmp_in_world), np.array(report.wrench[:3])
    height = _LINE_LENGTH * (report.com_in_world[2] - zmp[2])
    return np.array((zmp, zmp + height / force[2] * force))


class _Trail:
    """The last n points, the oldest first; while there are fewer, the oldest is repeated."""

    def __init__(self, n: int) -> None:
        self.points, self.count = np.zeros((n, 3)), 0

    def add(self, point: Sequence[float] | Array | None) -> None:
        if point is None:
            return
        if not self.count:
            self.points[:] = point
        self.points[:-1] = self.points[1:]
        self.points[-1] = point
        self.count += 1
