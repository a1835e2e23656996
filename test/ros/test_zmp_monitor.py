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

from dataclasses import replace
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
from support.messages import nanoseconds, vector
from support.monitored_robot import (
    MonitoredRobot, OUTPUTS, record, shifted, swaying, vectors)
from visualization_msgs.msg import Marker, MarkerArray

WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture(scope='module')
def samples():
    return swaying()


@pytest.fixture
def robot():
    """Return a function that makes the node with its drivers."""
    robots = []

    def make(**parameters):
        robots.append(MonitoredRobot(**parameters))
        return robots[-1]
    yield make
    for made in robots:
        made.close()


def expected(samples, name):
    return [value for s in samples if (value := getattr(s.report, name)) is not None]


def in_the_air(samples):
    return [replace(s, wrenches=np.zeros((2, 6))) for s in samples]


@pytest.mark.parametrize('order', [None, 'random'])
def test_everything_equals_the_core_to_the_last_bit_whatever_arrives_first(robot, order, samples):
    """So a recording gives the same results as it gave live."""
    rig = robot()
    rig.play(samples, order=order)
    for topic, field, name in (('zmp', 'point', 'zmp_in_world'),
                               ('zmp_model', 'point', 'zmp_model'),
                               ('zmp_difference', 'vector', 'zmp_difference'),
                               ('dcm', 'point', 'dcm_in_world')):
        np.testing.assert_array_equal(vectors(rig.got[topic], field), expected(samples, name))
    for topic, name in (('margin', 'zmp_margin'), ('dcm_margin', 'dcm_margin'),
                        ('time_to_edge', 'time_to_edge')):
        assert [m.data for m in rig.got[topic]] == expected(samples, name)
    assert [nanoseconds(m.header.stamp) for m in rig.got['zmp']] == [
        s.ns for s in samples if s.report.zmp_in_world is not None]
    np.testing.assert_allclose(
        rig.corners(), samples[-1].report.support.corners_in_world, atol=1e-6)
    for topic in ('support_polygon', 'zmp'):
        assert rig.got[topic][-1].header.frame_id == 'odom'
    assert rig.latched['support_phase'][-1].data == 'double'


def test_a_late_subscriber_gets_what_others_always_got(robot, samples):
    """The markers, with their trails, too."""
    trails = []
    for subscribed in (True, False):
        rig = robot()
        for subscription in tuple(rig.peer.subscriptions):
            if not subscribed:
                rig.peer.destroy_subscription(subscription)
        rig.spin(0.3)
        rig.play(samples[:100])
        late = rig.collect(PointStamped, 'zmp_monitor/zmp_model')
        markers = rig.collect(MarkerArray, 'zmp_monitor/markers', LATCHED)
        rig.spin(0.3)
        rig.play(samples[100:])
        trails.append({marker.ns: [(p.x, p.y, p.z) for p in marker.points]
                       for marker in markers[-1].markers})
        np.testing.assert_array_equal(
            vectors(late, 'point'), expected(samples[100:], 'zmp_model'))
    assert trails[0] == trails[1]
    assert len(set(trails[0]['zmp_trail'])) > 50


def test_far_from_the_origin_and_high_up(robot, samples):
    rig, shift = robot(base_source='odometry'), np.array((812.0, -455.0, 37.0))
    rig.play(samples, shift=shift)
    np.testing.assert_allclose(
        vectors(rig.got['zmp'], 'point'), np.array(expected(samples, 'zmp_in_world')) + shift,
        atol=1e-9)
    assert len(rig.got['zmp']) == len(samples)
    x, _, z = rig.corners()[0]
    assert abs(z - 37.0) < 1e-3 and abs(x - 812.0) < 0.2


def test_markers_show_what_is_known_and_remove_what_is_not(robot, samples):
    rig = robot()
    rig.play(samples[:60])
    shown = rig.markers()
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
    np.testing.assert_array_equal(vector(shown['zmp', 0].pose.position), report.zmp_in_world)
    tail, head = map(vector, shown['force', 0].points)
    np.testing.assert_allclose(tail, report.cops_in_world[0])
    assert 0.1 < head[2] - tail[2] < 0.4, 'half of the weight is a quarter of a metre'
    outline = shown['support_polygon', 0]
    corners = {(round(p.x, 9), round(p.y, 9)) for p in outline.points}
    assert corners == {tuple(np.round(c[:2], 9)) for c in report.support.corners_in_world}
    assert outline.color.g > outline.color.r, 'green while stable'
    rig.play(in_the_air(samples[60:120]))
    shown = rig.markers()
    gone = {key for key, m in shown.items() if m.action == Marker.DELETE}
    assert gone >= {('com_line', 0), ('zmp', 0),
                    ('support_polygon', 0), ('cop', 0), ('force', 1), ('com', 1)}
    assert shown['com', 0].action == Marker.ADD


def test_lifting_feet_changes_the_phase_and_what_is_published(robot, samples):
    rig = robot()
    rig.play(samples[:30])
    rig.play([replace(s, wrenches=s.wrenches * [[2.0], [0.0]]) for s in samples[30:80]])
    assert [m.data for m in rig.latched['support_phase']] == ['double', 'single left']
    assert len(rig.corners()) == 4
    rig.play(in_the_air(samples[80:110]))
    rig.clear()
    assert rig.diagnosis('stability', WARN, in_the_air(samples)) == (
        'no foot on the ground: none carries enough of the weight (contact_engage 0.06); if the '
        'robot stands, see zmp and weight')
    assert rig.latched['support_phase'][-1].data == 'flight'
    assert not any(rig.got[topic] for topic in OUTPUTS if topic != 'markers')


def test_a_fall_is_announced_and_the_event_is_latched(robot):
    _, samples = record(0.7, push=(0.1, (40.0, 0, 0, 0, 0, 0), 0.15))
    rig = robot()
    rig.play(samples)
    events = rig.latched['event']
    changes = [(s.ns, s.report.change) for s in samples if s.report.change is not None]
    assert len(events) == len(changes) and callback_errors(rig.node).count == 0
    lost = next(m for m in events if m.status[0].message.startswith('stability lost:'))
    assert lost.status[0].level == ERROR
    assert 'outside the edge of the support' in lost.status[0].message
    assert nanoseconds(lost.header.stamp) == next(ns for ns, change in changes if change.is_loss)
    late = rig.collect(DiagnosticArray, 'zmp_monitor/event', LATCHED)
    rig.until(lambda: late, what='the latched event')
    assert late[-1].status[0].message == events[-1].status[0].message
    assert any('time to the edge' in v.key for v in late[-1].status[0].values)


def test_when_the_clock_is_set_back_all_starts_anew(robot, samples):
    rig = robot()
    rig.play(shifted(samples[:30], 500.0))
    rig.clear()
    rig.play(samples[:60])
    # The very first instant is lost in the change, so the floor is slightly lower.
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point')[-20:],
                               expected(samples[40:60], 'zmp_in_world'), atol=1e-6)


def test_polygons_from_collision_geometry(robot, samples):
    rig = robot(polygon_source='collision')
    rig.play(samples[:20])
    np.testing.assert_allclose(
        sorted(rig.corners()[:, :2].tolist()),
        sorted(samples[19].report.support.corners_in_world[:, :2].tolist()), atol=1e-5)


def test_an_instant_costs_little(robot, samples):
    """Guards against something quadratic; benchmarks measure."""
    monitor, located = robot(marker_rate=0.0).node.monitor, samples[5].report.located
    monitor.update(located)
    start = time.process_time()
    for _ in range(300):
        located.stamp_ns += 1_000_000
        monitor.update(located)
    assert (time.process_time() - start) / 300 < 5e-3


def test_calibrated_inertials_give_what_a_restart_would_give(robot, tmp_path, samples):
    running = robot()
    urdf = with_inertials(running.node.model.urdf, {
        'torso': NewInertial(1.5, np.array((0.02, 0.01, 0.15)))})
    (tmp_path / 'calibrated.urdf').write_text(urdf)
    restarted = robot(urdf=str(tmp_path / 'calibrated.urdf'))
    publisher = running.peer.create_publisher(String, 'calibrated_description', LATCHED)
    publisher.publish(String(data=urdf))
    running.until(lambda: running.node.model.urdf == urdf)
    for rig in (restarted, running):
        rig.play(samples)
    for topic in ('zmp', 'zmp_model', 'dcm'):
        np.testing.assert_array_equal(
            vectors(running.got[topic], 'point'), vectors(restarted.got[topic], 'point'))
    assert np.abs(vectors(running.got['dcm'], 'point') - expected(
        samples, 'dcm_in_world')).max() > 1e-3
