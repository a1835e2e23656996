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

What has to come out is what the same formulas give without ROS, to the last bit; what it does
with bad input, and what it reports on /diagnostics.
"""

from dataclasses import replace
import time

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.geometry.wrench import com_line
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from std_msgs.msg import String
from support.messages import nanoseconds, parameters as parameters_of, vector
from support.monitored_robot import (
    FEET_ONLY, MonitoredRobot, OUTPUTS, record, shifted, swaying, vectors)
from support.pads import pads_file, vertical
from visualization_msgs.msg import Marker, MarkerArray

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture(scope='module')
def samples():
    return swaying()


@pytest.fixture
def robot(closing):
    """Return a function that makes the node with its drivers."""
    return lambda **values: closing(MonitoredRobot(**values))


@pytest.fixture
def rig(request, robot):
    """Return the node with its drivers, and parameters that a test gives."""
    return robot(**getattr(request, 'param', {}))


def expected(samples, name):
    return [value for s in samples if (value := getattr(s.report, name)) is not None]


def in_the_air(samples):
    return [replace(s, wrenches=np.zeros((2, 6))) for s in samples]


@pytest.mark.parametrize('order', [None, pytest.param('random', marks=pytest.mark.thorough)])
def test_everything_equals_the_core_to_the_last_bit_whatever_arrives_first(rig, order, samples):
    """So a recording gives the same results as it gave live."""
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


def test_markers_show_what_is_known_and_remove_what_is_not(rig, samples):
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


def test_lifting_feet_changes_the_phase_and_what_is_published(rig, samples):
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


def test_a_fall_is_announced_and_the_event_is_latched(rig):
    _, samples = record(0.7, push=(0.1, (40.0, 0, 0, 0, 0, 0), 0.15))
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


def test_when_the_clock_is_set_back_all_starts_anew(rig, samples):
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


@pytest.mark.thorough
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


def with_wrenches(samples, change):
    """Return samples whose wrenches, (2, 6), are changed."""
    return [replace(s, wrenches=change(s.wrenches)) for s in samples]


def test_wrong_sign_is_named_and_nothing_bogus_is_published(rig, samples):
    pulled = with_wrenches(samples, np.negative)
    rig.diagnosis('weight', WARN, pulled, words=(
        'negate wrench_sensors.left_foot.scale, wrench_sensors.right_foot.scale'))
    assert not rig.got['zmp'] and not rig.got['margin'] and not rig.got['zmp_difference']
    rig.diagnosis('zmp', ERROR, pulled, words='no ground reaction force')


def test_a_fall_is_named_by_the_lean_alone_whatever_touches_the_ground(rig, samples):
    lying = Pose.from_rpy((0.0, 1.4, 0.0), np.zeros(3)).quaternion
    for share in (1.0, 0.0):
        message = rig.diagnosis('stability', ERROR, [
            replace(s, quaternion=lying, wrenches=share * s.wrenches) for s in samples],
            words='fallen: the base leans by 80.2 deg')
        assert 'ZMP' not in message and 'DCM' not in message
    event, = (status for array in rig.latched['event'] for status in array.status
              if status.message.startswith('fallen'))
    assert event.message == message
    report = rig.node.diagnostics.status('stability')
    assert [value.value for value in report.values if value.key == 'level'] == ['FALLEN']


@pytest.mark.parametrize(('silent', 'named'), [
    ('right', 'wrench of the right foot'), ('base', 'IMU'), ('joints', 'joint states')])
@pytest.mark.parametrize('rig', [{'sensor_timeout': 0.2}], indirect=True)
def test_a_dead_sensor_stops_everything_and_is_named(rig, silent, named, samples):
    rig.play(samples[:20])
    assert rig.got['zmp']
    rig.clear()
    rest = tuple(name for name in FEET_ONLY if name != silent)
    for line in ('stability', 'zmp'):
        rig.diagnosis(line, ERROR, samples, f'waiting for {named}', order=rest)
        assert not any(rig.got.values())


def test_any_frame_of_the_foot_will_do_but_no_other(rig, samples):
    state = rig.node.model.state(rig.node.model.posture())

    def moved(wrenches):
        found = []
        for wrench, side in zip(wrenches, 'lr'):
            pose = state.pose_in_base(f'{side}_ankle_ft').inverse() @ state.pose_in_base(
                f'{side}_sole')
            force = pose.rotation @ wrench[:3]
            found.append((*force, *pose.rotation @ wrench[3:] + np.cross(pose.position, force)))
        return np.array(found)
    rig.play(with_wrenches(samples[:40], moved), frames=('l_ankle_ft', 'r_ankle_ft'))
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point'), [
        s.report.zmp_in_world for s in samples[:40]], atol=1e-9)
    for frames, words in ((('torso', 'r_sole'), "frame 'torso', which is not fixed to its sole"),
                          (('l_sol', 'r_sole'), "unknown frame 'l_sol'")):
        rig.diagnosis('callbacks', ERROR, samples, words, frames=frames)


def test_soles_out_of_plane_and_a_wrong_model_are_reported(rig, samples):
    knee = 0.5 * (np.array(rig.node.model.joint_names) == 'l_knee')
    rig.diagnosis('support', WARN, [replace(s, positions=s.positions + knee) for s in samples],
                  'mm out of one plane (unevenness_warning: 10 mm), and the ZMP')
    rig.diagnosis('zmp', WARN, with_wrenches(
        samples, lambda w: w + [0.0, 0.0, 0.0, 0.0, 2.5, 0.0]),
                  'mm rms (difference_warning: 30 mm): calibrate')


@pytest.mark.parametrize('rig', [{'base_source': 'odometry'}], indirect=True)
def test_on_stairs_support_is_between_the_soles_and_reported(rig, samples):
    """The left foot stands 60 mm higher; the base is known from elsewhere."""
    model = rig.node.model
    ik = PostureIk(model, model.posture())
    step = Pose.translation((0.05, 0.0, 0.06))
    climbing = ik.positions(
        Pose.translation((0.0, 0.0, -0.02)), [step @ ik.ends[0], ik.ends[1]])
    soles = model.state(climbing).placements_in_base(model.soles)[:, 3]
    base = Pose(np.eye(3), np.array((12.0, -7.0, 3.0)) - soles[1])
    stairs = [replace(
        s, positions=climbing, velocities=np.zeros_like(climbing), base=base,
        wrenches=np.array([(0.0, 0.0, 0.5 * 9.81 * model.mass, 0.0, 0.0, 0.0)] * 2))
        for s in samples[:40]]
    rig.play(stairs)
    middle = (12.0, -7.0, 3.0) + 0.5 * (soles[0] - soles[1])
    assert middle[2] == pytest.approx(3.03)
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point')[-1], middle, atol=1e-9)
    np.testing.assert_allclose(rig.corners()[:, 2], 3.03, atol=1e-6)
    shown = rig.markers()
    assert [shown[key].pose.position.z for key in (('cop', 0), ('cop', 1), ('com', 1))] == (
        pytest.approx([3.06, 3.0, 3.03], rel=1e-6))
    rig.diagnosis('support', OK, stairs, 'support region computed from friction: soles on steps')


@pytest.mark.parametrize(('parameters', 'message'), [
    ({'wrench_topics': ['one']}, 'must be 2 topics, one per foot, in the order left, right'),
    ({'tilt_unstable': 1.5},
     "'tilt_unstable' is 1.5 rad; it must be below 'tilt_fallen', 1.0 rad: lower it"),
    ({'contact_release': 0.5},
     "'contact_release' is 0.5; it must be below 'contact_engage', 0.06 .* lower it"),
])
def test_a_start_that_makes_no_sense_is_one_clear_error(parameters, message):
    with pytest.raises(ConfigurationError, match=message):
        ZmpMonitor(parameter_overrides=parameters_of(**parameters))


def test_of_vertical_forces_there_are_contacts_and_no_zmp(robot, tmp_path, samples):
    rig = robot(robot=pads_file(tmp_path, 'biped'))
    rig.play(with_wrenches(samples, vertical))
    for topic in ('zmp', 'zmp_difference', 'margin', 'time_to_edge'):
        assert not rig.got[topic], topic
    # But for the base, which moves a little by where the forces act.
    np.testing.assert_allclose(
        vectors(rig.got['dcm'], 'point'), expected(samples, 'dcm_in_world'), atol=1e-4)
    np.testing.assert_allclose(
        [m.data for m in rig.got['dcm_margin']], expected(samples, 'dcm_margin'), atol=1e-4)
    np.testing.assert_allclose(
        rig.corners(), samples[-1].report.support.corners_in_world, atol=1e-4)
    assert len(rig.got['zmp_model']) == len(expected(samples, 'zmp_model'))
    assert not any(ns in ('cop', 'zmp', 'com_line') and marker.action == Marker.ADD
                   for (ns, _), marker in rig.markers().items())
    again = with_wrenches(samples, vertical)
    assert rig.diagnosis('zmp', OK, again, words='not measured') == (
        'not measured: the sensors of left and right measure the vertical force alone '
        '(measures: force_z), not where it acts')
    rig.diagnosis('weight', OK, again, words='see weight of wrench_aggregator')
    rig.diagnosis('stability', OK, again, words='stable')


def test_a_monitor_of_whole_wrenches_refuses_what_is_not_measured(rig, samples):
    rig.play(with_wrenches(samples, vertical))
    assert not rig.got['zmp'] and not rig.got['dcm']
    source = rig.node.inputs.wrenches[0]
    assert 'wrench.force.x = nan' in source.last_error and not source.count
