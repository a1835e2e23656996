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
from typing import Any

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
        self._hands = Hands.measured(model.config)
        size = 0.06 * math.sqrt(model.mass / 60.0) + 0.004
        self.set_force_scale(model, params)
        shown = [
            markers.sphere(frame, 'com', 0, _COM, size),
            markers.cylinder(frame, 'com', 1, _COM, size, 0.002),
            markers.sphere(frame, 'zmp', 0, _ZMP, 0.6 * size),
            markers.sphere(frame, 'zmp_model', 0, _MODEL, 0.5 * size),
            markers.sphere(frame, 'dcm', 0, _DCM, 0.6 * size),
            *(markers.sphere(frame, 'cop', i, markers.WHITE, 0.4 * size) for i in range(feet)),
            *(markers.arrow(frame, 'force', i, _FORCE, 0.15 * size, 0.4 * size, 0.5 * size)
              for i in range(feet)),
            markers.line_strip(frame, 'support_polygon', _MOST_CORNERS + 1, 0, _GOOD,
                               0.12 * size),
            markers.line_strip(frame, 'zmp_trail', _TRAIL_LENGTH, 0, _TRAIL, 0.1 * size),
            markers.line_strip(frame, 'zmp_model_trail', _TRAIL_LENGTH, 0, _MODEL_TRAIL,
                               0.1 * size),
            markers.line_strip(frame, 'com_line', 2, 0, _ZMP, 0.06 * size),
            markers.line_strip(frame, 'com_region', _MOST_CORNERS + 1, 0, _COM, 0.08 * size),
            *(markers.sphere(frame, 'hand', i, markers.WHITE, 0.4 * size)
              for i in range(len(self._hands))),
            *(markers.arrow(frame, 'hand_force', i, _FORCE, 0.15 * size, 0.4 * size, 0.5 * size)
              for i in range(len(self._hands)))]
        self._count = len(shown)
        self._feet, self._first_arrow = feet, 5 + feet
        self._polygon = 5 + 2 * feet
        fields = {'position': 'markers[*].pose.position', 'action': 'markers[*].action',
                  'colour': f'markers[{self._polygon}].color',
                  'polygon': f'markers[{self._polygon}].points',
                  'trail': f'markers[{self._polygon + 1}].points',
                  'model_trail': f'markers[{self._polygon + 2}].points',
                  'line': f'markers[{self._polygon + 3}].points',
                  'region': f'markers[{self._polygon + 4}].points'}
        for i in range(len(self._hands)):
            arrow = self._polygon + 5 + len(self._hands) + i
            fields[f'hand_arrow_{i}'] = f'markers[{arrow}].points'
        for i in range(feet):
            fields[f'arrow_{i}'] = f'markers[{self._first_arrow + i}].points'
        self.output = markers.marker_publisher(node, shown, fields, qos=LATCHED)
        self._trails: tuple[_Trail, ...] = (_Trail(_TRAIL_LENGTH), _Trail(_TRAIL_LENGTH))

    def set_force_scale(self, model: RobotModel, params: ZmpMonitorParameters) -> None:
        """Draw forces by the robot's weight and height."""
        self._force_scale = arrow_scale(model, params.gravity)

    def publish(self, report: StabilityReport, level: Level) -> None:
        """Publish an instant."""
        for trail, point in zip(self._trails, (report.zmp_in_world, report.zmp_model)):
            trail.add(point)
        self._draw(report, level)
        self.output.publish(report.located.stamp_ns)

    def _draw(self, report: StabilityReport, level: Level) -> None:
        """Fill the markers of an instant; those of unknown quantities are deleted."""
        fields, support = self.output.fields, report.support
        actions = np.full(self._count, Marker.ADD)
        position = np.zeros((self._count, 3))
        com = report.com_in_world
        projection = None if support is None else support.plane.below(com)
        points = (com, projection, report.zmp_in_world, report.zmp_model, report.dcm_in_world)
        for i, point in enumerate(points):
            actions[i] = _action(point)
            position[i] = 0.0 if point is None else point
        for i, (cop, force) in enumerate(zip(report.cops_in_world, report.forces_in_world)):
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
        line = _line(report)
        actions[self._polygon + 3] = _action(line)
        if line is not None:
            fields['line'][...] = line
        region = report.com_region if report.contacts else None
        actions[self._polygon + 4] = _action(region)
        if region is not None:
            fields['region'][...] = _outline(region.corners_in_world)
        self._draw_hands(report, actions, position)
        fields['position'][...], fields['action'][...] = position, actions

    def _draw_polygon(self, corners: Array, level: Level) -> None:
        fields = self.output.fields
        fields['polygon'][...], fields['colour'][...] = _outline(corners), _COLOURS[level]

    def _draw_hands(self, report: StabilityReport, actions: Array, position: Array) -> None:
        touching = {hand.name: hand for hand in report.hands}
        for i, name in enumerate(self._hands):
            hand = touching.get(name)
            ball, arrow = self._polygon + 5 + i, self._polygon + 5 + len(self._hands) + i
            actions[[ball, arrow]] = _action(hand)
            if hand is not None:
                position[ball] = point = np.array(hand.point_in_world)
                self.output.fields[f'hand_arrow_{i}'][...] = (
                    point, point + self._force_scale * np.array(hand.force_in_world))


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


def _action(value: Any) -> int:
    return int(Marker.DELETE if value is None else Marker.ADD)
