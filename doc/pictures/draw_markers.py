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
Draws what RViz shows: the markers of running nodes, as a picture.

    python doc/pictures/draw_markers.py PICTURE [TOPIC ...] [--least SECONDS]

Waits for a message on each topic (visualization_msgs/MarkerArray; by default those of
`zmp_monitor` and `com_estimator`) and draws all markers with Matplotlib: in 3-D, and what lies on
the ground from above. With ``--least`` it watches for so many seconds and draws the moment of the
least margin of stability (``zmp_monitor/margin``), as while the demo's robot is pushed.
"""

from __future__ import annotations

import argparse
from functools import partial
import math
import sys
import time
from typing import Any

from geometry_msgs.msg import Point
from matplotlib import pyplot as plt
import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.utilities import remove_ros_args
from std_msgs.msg import Float64
from visualization_msgs.msg import Marker, MarkerArray

TOPICS = ('zmp_monitor/markers', 'com_estimator/markers')
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BALLS = (Marker.SPHERE, Marker.CYLINDER)
ON_GROUND = {
    'support_polygon': 'support polygon', 'com': 'below the CoM', 'zmp': 'ZMP, measured',
    'zmp_model': 'ZMP, by the model', 'dcm': 'DCM', 'cop': 'CoP of a foot',
    'zmp_trail': 'trail of the ZMP', 'zmp_model_trail': "trail of the model's"}


class MarkerListener(Node):
    """Keeps the last message of each topic, and what they were when the margin was least."""

    def __init__(self, topics: list[str]) -> None:
        super().__init__('marker_picture')
        self.arrays: dict[str, MarkerArray] = {}
        self.at_least: dict[str, MarkerArray] = {}
        self._topics, self._margin, self._least = topics, math.inf, math.inf
        for topic in topics:
            self.create_subscription(MarkerArray, topic, partial(self._on_markers, topic), LATCHED)
        self.create_subscription(Float64, 'zmp_monitor/margin', self._on_margin, 10)

    @property
    def is_complete(self) -> bool:
        """Whether all topics have spoken."""
        return len(self.arrays) == len(self._topics)

    def _on_margin(self, message: Float64) -> None:
        self._margin = message.data

    def _on_markers(self, topic: str, message: MarkerArray) -> None:
        self.arrays[topic] = message
        if self.is_complete and topic == self._topics[0] and self._margin <= self._least:
            self._least, self.at_least = self._margin, dict(self.arrays)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('picture', help='file, e.g. scene.png or scene.svg')
    parser.add_argument('topics', nargs='*', default=list(TOPICS), metavar='TOPIC')
    parser.add_argument('--least', type=float, default=0.0, metavar='SECONDS',
                        help='watch for so long, and draw the moment of the least margin')
    options = parser.parse_args(remove_ros_args(sys.argv)[1:])
    rclpy.init()
    node = MarkerListener(options.topics)
    node.get_logger().info(f'waiting for markers on {", ".join(options.topics)}')
    while not node.is_complete:
        rclpy.spin_once(node, timeout_sec=1.0)
    end = time.monotonic() + options.least
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    draw([marker for array in (node.at_least or node.arrays).values()
          for marker in array.markers], options.picture)
    node.get_logger().info(f'drew {options.picture}')
    node.destroy_node()
    rclpy.shutdown()
    return 0


def draw(markers: list[Marker], path: str) -> None:
    """Draw the markers that are there, from the side and what is on the ground from above."""
    shown = [marker for marker in markers if marker.action == Marker.ADD]
    figure = plt.figure(figsize=(9.6, 5.6))
    draw_scene(figure.add_subplot(1, 2, 1, projection='3d'), shown)
    draw_ground(figure.add_subplot(1, 2, 2), shown)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_scene(axes: Any, markers: list[Marker]) -> None:
    """Draw everything in 3-D."""
    extent = np.concatenate([places(marker) for marker in markers])
    low, high = extent.min(axis=0), extent.max(axis=0)
    sides = np.maximum(high - low, 0.4 * float((high - low).max()))
    low, high = 0.5 * (low + high - sides), 0.5 * (low + high + sides)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]),
             xlabel='x [m]', ylabel='y [m]')
    axes.set_zlabel('z [m]', labelpad=14.0)
    axes.set_box_aspect(sides, zoom=1.1)
    axes.locator_params(nbins=5)
    axes.view_init(elev=20.0, azim=40.0)
    points_per_metre = 250.0 / float(sides.max())
    for marker in markers:
        xyz, colour = places(marker), rgba(marker)
        if marker.type in BALLS:
            axes.scatter(*xyz.T, s=(points_per_metre * marker.scale.x) ** 2, color=[colour],
                         linewidths=0.0, depthshade=False)
        elif marker.type == Marker.ARROW and len(xyz) == 2:
            axes.quiver(*xyz[0], *(xyz[1] - xyz[0]), color=colour, linewidth=2.0,
                        arrow_length_ratio=0.08)
        elif marker.type == Marker.LINE_STRIP:
            axes.plot(*xyz.T, color=colour,
                      linewidth=max(1.0, points_per_metre * marker.scale.x))


def draw_ground(axes: Any, markers: list[Marker]) -> None:
    """Draw from above what `zmp_monitor` shows on the ground."""
    axes.locator_params(nbins=6)
    floor = next((places(m)[:, 2].mean() for m in markers if m.ns == 'support_polygon'), 0.0)
    named = set()
    for marker in markers:
        xyz, colour = places(marker), rgba(marker)
        if np.abs(xyz[:, 2] - floor).max() > 0.02 or marker.ns not in ON_GROUND:
            continue
        words = ON_GROUND[marker.ns] if marker.ns not in named else ''
        named.add(marker.ns)
        if marker.type in BALLS:
            axes.scatter(xyz[:, 0], xyz[:, 1], s=90.0, color=[colour], edgecolors='black',
                         linewidths=0.6, label=words, zorder=3)
        else:
            axes.plot(xyz[:, 0], xyz[:, 1], color=colour, label=words, linewidth=2.0)
    axes.set(xlabel='x [m]', ylabel='y [m]', aspect='equal', title='on the ground, from above')
    axes.legend(loc='upper center', bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)


def places(marker: Marker) -> np.ndarray:
    """Return the points of a marker, (n, 3), m; its position if it has none."""
    at = coordinates(marker.pose.position)
    if not marker.points:
        return at[np.newaxis]
    return np.array([coordinates(point) for point in marker.points]) + at


def coordinates(point: Point) -> np.ndarray:
    """Return x, y, z."""
    return np.array((point.x, point.y, point.z))


def rgba(marker: Marker) -> tuple[float, float, float, float]:
    """Return the colour."""
    colour = marker.color
    return colour.r, colour.g, colour.b, colour.a


if __name__ == '__main__':
    sys.exit(main())
