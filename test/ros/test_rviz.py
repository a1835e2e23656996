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

import importlib
import json
from pathlib import Path
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes import NODES
from biped_com_ros.nodes.com_estimator.markers import MarkerOutput
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.nodes.zmp_monitor.markers import StabilityMarkers
from biped_com_ros.nodes.zmp_monitor.parameters import ZmpMonitorParameters
from biped_com_ros.viz import palette
from biped_com_ros.viz.arrows import arrow_scale
from biped_com_ros.viz.rviz_file import with_prefix
import pytest
import rclpy
from support.documented_interfaces import documented_interfaces, NAMESPACE
from support.planned import plan
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


@pytest.fixture
def ros_node():
    context = rclpy.Context()
    context.init()
    node = rclpy.create_node('drawing', context=context)
    yield node
    node.destroy_node()
    context.try_shutdown()


def colour_of(marker):
    return tuple(round(255 * getattr(marker.color, channel)) for channel in 'rgb')


def configuration():
    return yaml.safe_load((package_share() / 'rviz' / 'biped.rviz').read_text())


def walk(node):
    """Go through all mappings."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(
            node, list) else ():
        yield from walk(child)


def displays(node):
    """Return (topic with its quality of service, class) of all displays with a topic."""
    return [(part['Topic'], part['Class']) for part in walk(node)
            if 'Topic' in part and part.get('Class') in KINDS]


def published_by_all_nodes():
    """Return the types of all topics, relative to the robot's namespace, by name."""
    return {topic.removeprefix(f'{NAMESPACE}/'): kind
            for name in NODES for part in documented_interfaces(name)
            for (direction, topic), kind in part.items() if direction == 'publishes'}


def test_every_topic_of_rviz_is_published_with_the_type_that_its_display_takes():
    published, shown = published_by_all_nodes(), displays(configuration())
    assert len(shown) > 10
    for topic, display in shown:
        name = topic['Value']  # relative: the view of a namespaced robot shows that robot
        assert published.get(name) == KINDS[display], name
        # All outputs are reliable, but not all are latched: this fits each of them.
        assert topic['Durability Policy'] == 'Volatile', name
        assert topic['Reliability Policy'] in ('Reliable', 'Best Effort'), name


def test_what_users_compare_and_all_markers_are_shown():
    shown = {topic['Value'] for topic, _ in displays(configuration())}
    assert {'gait_player/zmp_reference', 'wrench_aggregator/line/point', 'com_estimator/com_fused',
            'com_estimator/com', 'wrench_aggregator/wrench', 'wrench_aggregator/right/cop',
            'zmp_monitor/com_region', 'simulator/truth/com'} <= shown
    assert {topic for topic, kind in published_by_all_nodes().items()
            if kind == 'visualization_msgs/MarkerArray'} <= shown


def test_everything_is_of_the_plugins_that_rviz_has():
    document = configuration()
    assert document['Visualization Manager']['Global Options']['Fixed Frame'] == 'odom'
    names = {part['Class'].partition('/') for part in walk(document) if part.get('Class')}
    assert {package for package, _, _ in names} == {'rviz_common', 'rviz_default_plugins'}
    assert {name for package, _, name in names if package == 'rviz_common'} <= {
        'Displays', 'Group', 'Selection', 'Time', 'Tool Properties', 'Views'}
    assert {name for package, _, name in names if package != 'rviz_common'} <= {
        *(kind.partition('/')[2] for kind in KINDS), 'Axes', 'Grid', 'RobotModel', 'TF',
        'FocusCamera', 'Interact', 'Measure', 'MoveCamera', 'PublishPoint', 'Select', 'Orbit'}


def test_the_window_leaves_most_of_its_width_to_the_robot():
    # As Qt saves it; 000000fd: docks, then the size of what is left in the middle.
    window = configuration()['Window Geometry']
    state = bytes.fromhex(window['QMainWindow State'])
    assert state[:12].hex() == '000000ff' + '00000000' + 'fd000000'
    corners = bytes.fromhex(''.join(f'{corner:08x}' for corner in (4, 4, 8, 8)))
    at = state.index(corners) - 8
    width, height = (int.from_bytes(state[i:i + 4], 'big') for i in (at, at + 4))
    assert window['Width'] == 1400 and width > 1000 and height > 700
    names = [name.encode('utf-16-be') for name in ('Displays', 'Views')]
    is_shown = [state[state.index(name) + len(name)] for name in names]
    assert is_shown == [1, 0]


def test_arrows_of_wrenches_are_longer_than_they_are_thick():
    # Else RViz draws none: it compares force times scale with the width.
    wrenches = [d for d in walk(configuration()) if d.get('Class', '').endswith('/Wrench')]
    assert len(wrenches) == 3
    for display in wrenches:
        assert 0.5 * 3.6 * 9.81 * display['Force Arrow Scale'] > 10 * display['Arrow Width']
        assert 0.2 * display['Torque Arrow Scale'] > display['Arrow Width']


@pytest.mark.parametrize('robot', ['biped', 'talos'])
def test_wrenches_of_feet_are_shown_in_the_size_of_the_robot(robot):
    rviz, = (program for program in plan('view', robot=robot) if program.package == 'rviz2')
    document = yaml.safe_load(Path(rviz.arguments[1]).read_text())
    model = RobotModel.load(robot)
    weight, height = model.mass * 9.81, {'biped': 0.85, 'talos': 1.75}[robot]
    wrenches = {d['Topic']['Value']: d for d in walk(document)
                if d.get('Class', '').endswith('/Wrench')}
    for name, display in wrenches.items():
        assert display['Enabled'] == display['Value'] == (name != 'wrench_aggregator/wrench')
        length = weight * display['Force Arrow Scale']
        assert length == pytest.approx(palette.ARROW * height, rel=0.15)
        # The torque of the weight at a lever of as much is as long.
        assert display['Torque Arrow Scale'] * weight * length == pytest.approx(length)
        assert display['Arrow Width'] < 0.05 * length
        assert f"{display['Force Arrow Scale']:.2g} m per N" in display['Name']
    assert len(wrenches) == 3


def test_the_fused_com_is_no_arrow():
    display, = (d for d in walk(configuration()) if d.get('Class', '').endswith('/Odometry'))
    assert display['Shape']['Value'] == 'Axes' and display['Shape']['Axes Length'] <= 0.1


@pytest.mark.parametrize(('topic', 'colour'), [
    ('com_estimator/com', palette.MARKS['com'].colour),
    ('com_estimator/com_fused', palette.MARKS['fused'].colour),
    ('com_estimator/link_coms', palette.LINK_COM),
    ('zmp_monitor/zmp', palette.MARKS['zmp'].colour),
    ('zmp_monitor/zmp_model', palette.MARKS['zmp_model'].colour),
    ('zmp_monitor/dcm', palette.MARKS['dcm'].colour),
    ('wrench_aggregator/left/wrench', palette.FORCE),
    ('simulator/truth/com', palette.MARKS['truth'].colour)])
def test_colours_are_those_of_the_page(topic, colour):
    display, = (d for d in walk(configuration())
                if isinstance(d.get('Topic'), dict) and d['Topic']['Value'] == topic)
    shown = display.get('Color') or display.get('Force Color') or display['Shape']['Color']
    assert tuple(map(int, shown.split(';'))) == colour


def test_markers_have_the_colours_of_the_page_and_arrows_the_size_of_the_robot(ros_node):
    for robot in ('biped', 'talos'):
        model = RobotModel.load(robot)
        stability = StabilityMarkers(ros_node, model, ZmpMonitorParameters())
        shown = {marker.ns: marker for marker in stability.output.prototype.markers}
        for name in ('com', 'zmp', 'zmp_model', 'dcm'):
            assert colour_of(shown[name]) == palette.MARKS[name].colour
        assert colour_of(shown['force']) == palette.FORCE
        weight = model.mass * 9.81
        height = {'biped': 0.85, 'talos': 1.75}[robot]
        assert arrow_scale(model) * weight == pytest.approx(palette.ARROW * height, rel=0.15)
        links = MarkerOutput(ros_node, model, ComEstimatorParameters())
        assert {colour_of(marker) for marker in links.output.prototype.markers} == {
            palette.LINK_COM, *(palette.MARKS[name].colour for name in ('com', 'dcm', 'fused'))}
        stability.output.destroy()
        links.output.destroy()


def field_of(kind, path):
    """Return the type of a field of a message, by names that are separated by dots."""
    for part in path.split('.'):
        package, name = kind.split('/')
        message = getattr(importlib.import_module(f'{package}.msg'), name)
        kind = message.get_fields_and_field_types()[part]
    return kind


def assert_is_a_number(topic, field, published):
    assert field_of(published[topic], field) in ('double', 'float', 'int32'), (topic, field)


def test_the_layout_of_foxglove_shows_what_is_published():
    layout = json.loads((package_share() / 'rviz' / 'foxglove.json').read_text())
    published, panels = published_by_all_nodes(), layout['configById']
    points = panels['3D!robot']['topics']
    kinds = {published[topic.lstrip('/')] for topic in points}
    assert kinds == {'geometry_msgs/PointStamped', 'geometry_msgs/PolygonStamped',
                     'visualization_msgs/MarkerArray'}
    for topic, options in points.items():
        name = topic.rpartition('/')[2]
        if name == 'com_region':
            assert options['color'] == palette.css(palette.MARKS['com'].colour)
        if 'color' in options and name in palette.MARKS and 'truth' not in topic:
            assert options['color'] == palette.css(palette.MARKS[name].colour)
    paths = [path['value'] for panel in panels.values() for path in panel.get('paths', ())]
    assert len(paths) > 8
    for path in paths:
        assert_is_a_number(*path.lstrip('/').split('.', 1), published)

    def leaves(node):
        if isinstance(node, str):
            return {node}
        return leaves(node['first']) | leaves(node['second'])
    assert leaves(layout['layout']) == panels.keys()


def test_the_layout_of_plotjuggler_shows_what_is_published():
    published = published_by_all_nodes()
    layout = ElementTree.parse(package_share() / 'rviz' / 'plotjuggler.xml')
    curves = [curve.get('name') for curve in layout.iter('curve')]
    assert len(curves) > 8
    for curve in curves:
        topic = max((topic for topic in published if curve.startswith(f'/{topic}/')), key=len)
        assert_is_a_number(topic, curve[len(topic) + 2:].replace('/', '.'), published)


# -- frame prefixes

def viewing(**arguments):
    """Return what view.launch.py starts, RViz, and the file that it loads."""
    programs = plan('view', **arguments)
    rviz, = (program for program in programs if program.executable == 'rviz2')
    return programs, rviz, yaml.safe_load(Path(option(rviz, '-d')).read_text())


def option(program, flag):
    return program.arguments[program.arguments.index(flag) + 1]


def frames_of(document):
    """Return the values of all properties that name a frame."""
    return [part[key] for part in walk(document) for key in part
            if key.endswith(' Frame') and isinstance(part[key], str)]


def models(document):
    return [part for part in walk(document) if part.get('Class', '').endswith('/RobotModel')]


def test_without_a_robot_and_a_prefix_rviz_loads_the_file_of_the_package():
    programs = plan('view')
    rviz, = (program for program in programs if program.executable == 'rviz2')
    assert option(rviz, '-d') == str(package_share() / 'rviz' / 'biped.rviz')
    assert programs == [rviz]


def test_the_model_of_a_robot_with_a_prefix_has_its_frames():
    programs, rviz, document = viewing(namespace='r1', robot='biped', frame_prefix='r1/')
    assert option(rviz, '-f') == 'r1/odom' and rviz.namespace == '/r1'
    publisher, = (program.parameters for program in programs
                  if program.executable == 'robot_state_publisher')
    model, = models(document)
    # RViz puts a slash between its prefix and the link (tf_link_updater.cpp of rviz 14).
    assert model['TF Prefix'] + '/' + 'l_sole' == publisher['frame_prefix'] + 'l_sole'
    assert set(frames_of(document)) == {'<Fixed Frame>', 'r1/odom', 'r1/base_footprint'}
    # Its topics stay relative to the namespace of RViz.
    assert [topic for topic, _ in displays(document)] == [
        topic for topic, _ in displays(configuration())]


def test_a_prefix_that_cannot_be_shown_is_named():
    with pytest.raises(ConfigurationError, match="frame prefix 'r1_' does not end with '/'"):
        plan('view', frame_prefix='r1_')


def test_frames_that_have_the_prefix_keep_it():
    document = {'Visualization Manager': {
        'Displays': [], 'Global Options': {'Fixed Frame': 'r1/odom'}}}
    assert frames_of(with_prefix(document, 'r1/')) == ['r1/odom']
