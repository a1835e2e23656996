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
The whole node over DDS, fed with what the simulated robot's sensors said.

What has to come out is what the same formulas give without ROS, to the last bit.
"""

import dataclasses
import time

from biped_com_ros.core.geometry.wrench import com_line
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from std_msgs.msg import String
from support.monitored_robot import MonitoredRobot, OUTPUTS, record, shifted, vectors
from visualization_msgs.msg import Marker, MarkerArray

WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture(scope='module')
def swaying():
    return record(0.6, lambda t: (0.01 * np.sin(9.0 * t), 0.015 * np.sin(6.0 * t), 0.0))


@pytest.fixture(scope='module')
def falling():
    return record(1.2, push=(0.3, (18.0, 0, 0, 0, 0, 0), 0.25), since=0.2)


@pytest.fixture
def robot(request):
    robots = []

    def make(**parameters):
        robots.append(MonitoredRobot(**parameters))
        return robots[-1]
    yield make
    for made in robots:
        made.close()


def expected(samples, name):
    return [value for s in samples if (value := getattr(s.report, name)) is not None]


def test_everything_equals_the_core_to_the_last_bit(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(samples)
    for topic, field, name in (('zmp', 'point', 'zmp_in_world'),
                               ('zmp_model', 'point', 'zmp_model'),
                               ('zmp_difference', 'vector', 'zmp_difference'),
                               ('dcm', 'point', 'dcm_in_world')):
        np.testing.assert_array_equal(vectors(rig.got[topic], field), expected(samples, name))
    for topic, name in (('margin', 'zmp_margin'), ('dcm_margin', 'dcm_margin')):
        assert [m.data for m in rig.got[topic]] == expected(samples, name)
    assert [m.data for m in rig.got['time_to_edge']] == expected(samples, 'time_to_edge')
    stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in rig.got['zmp']]
    assert stamps == [s.ns for s in samples if s.report.zmp_in_world is not None]
    last = rig.got['support_polygon'][-1]
    np.testing.assert_allclose(
        [(p.x, p.y, p.z) for p in last.polygon.points],
        samples[-1].report.support.corners_in_world, atol=1e-6)
    assert last.header.frame_id == rig.got['zmp'][-1].header.frame_id == 'odom'
    assert [m.data for m in rig.latched['support_phase']][-1] == 'double'


def test_the_order_in_which_topics_arrive_does_not_matter(robot, swaying):
    """So a recording gives the same results as it gave live."""
    _, samples = swaying
    rig = robot()
    rig.play(samples, order='random')
    for topic, field, name in (('zmp', 'point', 'zmp_in_world'),
                               ('zmp_model', 'point', 'zmp_model'),
                               ('dcm', 'point', 'dcm_in_world')):
        np.testing.assert_array_equal(vectors(rig.got[topic], field), expected(samples, name))


def test_what_is_published_does_not_depend_on_the_subscribers(robot, swaying):
    """The latched markers, with their trails, of a node that nothing else subscribes to."""
    _, samples = swaying
    trails = []
    for subscribed in (True, False):
        rig = robot()
        if not subscribed:
            for subscription in tuple(rig.peer.subscriptions):
                if not subscription.topic_name.endswith('/diagnostics'):
                    rig.peer.destroy_subscription(subscription)
            rig.spin(0.3)
        rig.play(samples[:100])
        late = rig.collect(PointStamped, f'{rig.space}/zmp_monitor/zmp_model')
        markers = rig.collect(MarkerArray, f'{rig.space}/zmp_monitor/markers', LATCHED)
        rig.spin(0.3)
        rig.play(samples[100:150])
        trails.append({marker.ns: [(p.x, p.y, p.z) for p in marker.points]
                       for marker in markers[-1].markers})
        np.testing.assert_array_equal(
            vectors(late, 'point'), [s.report.zmp_model for s in samples[100:150]])
    assert trails[0] == trails[1]
    assert len(set(trails[0]['zmp_trail'])) > 50


def test_far_from_the_origin_and_high_up(robot, swaying):
    _, samples = swaying
    rig, shift = robot(base_source='odometry'), np.array((812.0, -455.0, 37.0))
    rig.play(samples, shift=shift)
    np.testing.assert_allclose(
        vectors(rig.got['zmp'], 'point'), np.array(expected(samples, 'zmp_in_world')) + shift,
        atol=1e-9)
    assert len(rig.got['zmp']) == len(samples)
    polygon = rig.got['support_polygon'][-1].polygon.points
    assert abs(polygon[0].z - 37.0) < 1e-3 and abs(polygon[0].x - 812.0) < 0.2


def test_markers_show_what_is_known_and_remove_what_is_not(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(samples[:60])
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    # Flat feet alone: the CoM may rest above the polygon.
    assert shown.pop(('com_region', 0)).action == Marker.DELETE
    assert all(m.action == Marker.ADD for m in shown.values())
    assert set(shown) == {
        ('com', 0), ('com', 1), ('zmp', 0), ('zmp_model', 0), ('dcm', 0), ('cop', 0),
        ('cop', 1), ('force', 0), ('force', 1), ('support_polygon', 0), ('zmp_trail', 0),
        ('zmp_model_trail', 0), ('com_line', 0)}
    report = samples[59].report
    # On a line with the moment of the wrench, which is vertical there, the CoM is at rest.
    line, ends = com_line(report.wrench), shown['com_line', 0].points
    for end in ends:
        np.testing.assert_allclose((end.x, end.y), (
            line.alpha + line.beta * end.z, line.gamma + line.delta * end.z), atol=1e-7)
    assert ends[0].z < report.com_in_world[2] < ends[1].z
    zmp = shown['zmp', 0].pose.position
    np.testing.assert_array_equal((zmp.x, zmp.y, zmp.z), report.zmp_in_world)
    tail, head = shown['force', 0].points
    np.testing.assert_allclose((tail.x, tail.y, tail.z), report.cops_in_world[0])
    assert 0.1 < head.z - tail.z < 0.4, 'half of the weight is a quarter of a metre'
    outline = shown['support_polygon', 0]
    corners = {(round(p.x, 9), round(p.y, 9)) for p in outline.points}
    assert corners == {tuple(np.round(c[:2], 9)) for c in report.support.corners_in_world}
    assert outline.color.g > outline.color.r, 'green while stable'
    lifted = [dataclasses.replace(s, wrenches=np.zeros((2, 6))) for s in samples[60:120]]
    rig.play(lifted)
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    gone = {key for key, m in shown.items() if m.action == Marker.DELETE}
    assert gone >= {('com_line', 0), ('zmp', 0),
                    ('support_polygon', 0), ('cop', 0), ('force', 1), ('com', 1)}
    assert shown['com', 0].action == Marker.ADD


def test_lifting_feet_changes_the_phase_and_what_is_published(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(samples[:30])
    on_left = [dataclasses.replace(s, wrenches=s.wrenches * [[2.0], [0.0]])
               for s in samples[30:80]]
    rig.play(on_left)
    assert [m.data for m in rig.latched['support_phase']] == ['double', 'single left']
    assert len(rig.got['support_polygon'][-1].polygon.points) == 4
    rig.play([dataclasses.replace(s, wrenches=np.zeros((2, 6))) for s in samples[80:110]])
    for messages in rig.got.values():
        messages.clear()
    flying = [dataclasses.replace(s, wrenches=np.zeros((2, 6))) for s in samples]
    assert rig.diagnosis('stability', WARN, flying) == (
        'no foot on the ground: none carries enough of the weight (contact_engage 0.06); if the '
        'robot stands, see zmp and weight')
    assert rig.latched['support_phase'][-1].data == 'flight'
    assert not any(rig.got[topic] for topic in OUTPUTS if topic != 'markers')


def test_a_fall_is_announced_and_the_event_is_latched(robot, falling):
    _, samples = falling
    rig = robot()
    rig.play(samples)
    events = [(m.status[0].level, m.status[0].message) for m in rig.latched['event']]
    kinds = [message.partition(':')[0] for _, message in events]
    assert 'stability lost' in kinds
    lost = rig.latched['event'][kinds.index('stability lost')]
    assert lost.status[0].level == ERROR
    assert 'outside the edge of the support' in lost.status[0].message
    assert callback_errors(rig.node).count == 0
    changes = [(s.ns, s.report.change) for s in samples if s.report.change is not None]
    assert len(events) == len(changes)
    when = lost.header.stamp.sec * 10**9 + lost.header.stamp.nanosec
    assert when == next(ns for ns, change in changes if change.is_loss)
    late = rig.collect(DiagnosticArray, f'{rig.space}/zmp_monitor/event', LATCHED)
    rig.until(lambda: late, what='the latched event')
    assert late[-1].status[0].message == events[-1][1]
    assert any('time to the edge' in v.key for v in late[-1].status[0].values)


def test_when_the_clock_is_set_back_all_starts_anew(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(shifted(samples[:30], 500.0))
    for messages in rig.got.values():
        messages.clear()
    rig.play(samples[:60])
    found = vectors(rig.got['zmp'], 'point')
    # The very first instant is lost in the change, so the floor is slightly lower.
    np.testing.assert_allclose(
        found[-20:], [s.report.zmp_in_world for s in samples[40:60]], atol=1e-6)


def test_polygons_from_collision_geometry(robot, swaying):
    _, samples = swaying
    rig = robot(polygon_source='collision')
    rig.play(samples[:20])
    polygon = rig.got['support_polygon'][-1].polygon.points
    np.testing.assert_allclose(
        sorted((p.x, p.y) for p in polygon),
        sorted(map(tuple, samples[19].report.support.corners_in_world[:, :2])), atol=1e-5)


def test_an_instant_costs_little(robot, swaying):
    """Guards against something quadratic; benchmarks measure."""
    _, samples = swaying
    monitor, located = robot(marker_rate=0.0).node.monitor, samples[5].report.located
    monitor.update(located)
    start = time.perf_counter()
    for _ in range(300):
        located.stamp_ns += 1_000_000
        monitor.update(located)
    assert (time.perf_counter() - start) / 300 < 5e-3


def test_calibrated_inertials_give_what_a_restart_would_give(robot, swaying, tmp_path):
    model, samples = swaying
    urdf = with_inertials(model.urdf, {'torso': NewInertial(1.5, np.array((0.02, 0.01, 0.15)))})
    (tmp_path / 'calibrated.urdf').write_text(urdf)
    restarted, running = robot(urdf=str(tmp_path / 'calibrated.urdf')), robot()
    publisher = running.peer.create_publisher(
        String, f'{running.space}/calibrated_description', LATCHED)
    publisher.publish(String(data=urdf))
    running.until(lambda: running.node.model.urdf == urdf)
    for rig in (restarted, running):
        rig.play(samples)
    for topic, field in (('zmp', 'point'), ('zmp_model', 'point'), ('dcm', 'point')):
        values = vectors(running.got[topic], field)
        np.testing.assert_array_equal(values, vectors(restarted.got[topic], field))
    assert np.abs(vectors(running.got['dcm'], 'point') - expected(
        samples, 'dcm_in_world')).max() > 1e-3
