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
"""What RViz is told to show, against what nodes publish by doc/interfaces.rst (tested, too)."""

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.nodes import NODES
import pytest
from support.documented_interfaces import documented_interfaces, NAMESPACE
import yaml

#: What each display of RViz takes, of those that are used.
KINDS = {
    'rviz_default_plugins/MarkerArray': 'visualization_msgs/MarkerArray',
    'rviz_default_plugins/Odometry': 'nav_msgs/Odometry',
    'rviz_default_plugins/PointStamped': 'geometry_msgs/PointStamped',
    'rviz_default_plugins/Polygon': 'geometry_msgs/PolygonStamped',
    'rviz_default_plugins/PoseArray': 'geometry_msgs/PoseArray',
    'rviz_default_plugins/Wrench': 'geometry_msgs/WrenchStamped'}


@pytest.fixture
def ros():
    """Need no middleware."""


def displays(node):
    """Go through (topic with its quality of service, class) of all displays with a topic."""
    if isinstance(node, dict):
        if 'Topic' in node and node.get('Class') in KINDS:
            yield node['Topic'], node['Class']
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from displays(child)


def test_every_topic_of_rviz_is_published_with_the_type_that_its_display_takes():
    published = {}
    for name in NODES:
        for part in documented_interfaces(name):
            published.update({topic: kind for (direction, topic), kind in part.items()
                              if direction == 'publishes'})
    shown = list(displays(yaml.safe_load((package_share() / 'rviz' / 'biped.rviz').read_text())))
    assert len(shown) > 10
    for topic, display in shown:
        name = topic['Value']
        assert published.get(f'{NAMESPACE}/{name}') == KINDS[display], name
        # All outputs are reliable, but not all are latched: this fits each of them.
        assert topic['Durability Policy'] == 'Volatile', name
        assert topic['Reliability Policy'] in ('Reliable', 'Best Effort'), name


def test_every_marker_topic_of_all_nodes_is_shown():
    shown = {topic['Value'] for topic, _ in displays(yaml.safe_load(
        (package_share() / 'rviz' / 'biped.rviz').read_text()))}
    for name in NODES:
        for part in documented_interfaces(name):
            markers = {topic for (_, topic), kind in part.items()
                       if kind == 'visualization_msgs/MarkerArray'}
            assert {topic.removeprefix(f'{NAMESPACE}/') for topic in markers} <= shown
