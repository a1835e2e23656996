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
"""Prototypes of RViz markers, and the publisher that patches them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from biped_com_ros.ros.topics.outputs import TemplatePublisher
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

Colour = Sequence[float]

WHITE = (1.0, 1.0, 1.0, 1.0)


def rgba(colour: tuple[int, int, int], alpha: float = 1.0) -> Colour:
    """Return a colour of `viz.palette`, 0 to 255, as markers have it."""
    red, green, blue = colour
    return red / 255.0, green / 255.0, blue / 255.0, alpha


def _marker(kind: int, frame_id: str, namespace: str, identifier: int, colour: Colour,
            scale: Sequence[float]) -> Marker:
    return Marker(
        header=Header(frame_id=frame_id), ns=namespace, id=identifier, type=kind,
        action=Marker.ADD, pose=Pose(orientation=Quaternion(w=1.0)), frame_locked=False,
        scale=Vector3(x=float(scale[0]), y=float(scale[1]), z=float(scale[2])),
        color=ColorRGBA(**dict(zip('rgba', map(float, colour)))))


def sphere(frame_id: str, namespace: str, identifier: int = 0, colour: Colour = WHITE,
           diameter: float = 0.05) -> Marker:
    """Sphere; patch ``pose.position``."""
    return _marker(Marker.SPHERE, frame_id, namespace, identifier, colour, (diameter,) * 3)


def cylinder(frame_id: str, namespace: str, identifier: int = 0, colour: Colour = WHITE,
             diameter: float = 0.05, height: float = 0.01) -> Marker:
    """Upright cylinder; patch ``pose.position``."""
    return _marker(Marker.CYLINDER, frame_id, namespace, identifier, colour,
                   (diameter, diameter, height))


def arrow(frame_id: str, namespace: str, identifier: int = 0, colour: Colour = WHITE,
          shaft_diameter: float = 0.01, head_diameter: float = 0.02,
          head_length: float = 0.03) -> Marker:
    """Arrow between two points; patch ``points`` (2, 3): tail, head."""
    marker = _marker(Marker.ARROW, frame_id, namespace, identifier, colour,
                     (shaft_diameter, head_diameter, head_length))
    marker.points = [Point(), Point()]
    return marker


def line_strip(frame_id: str, namespace: str, n: int, identifier: int = 0,
               colour: Colour = WHITE, width: float = 0.005) -> Marker:
    """Line through n points; patch ``points`` (n, 3)."""
    marker = _marker(Marker.LINE_STRIP, frame_id, namespace, identifier, colour, (width, 0, 0))
    marker.points = [Point() for _ in range(n)]
    return marker


def marker_publisher(node: Node, markers: Iterable[Marker], fields: dict[str, str],
                     **options: Any) -> TemplatePublisher:
    """Publish a MarkerArray on ``~/markers``; `fields` are the ones to patch."""
    return TemplatePublisher(
        node, '~/markers', MarkerArray(markers=list(markers)), fields, **options)
