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
import itertools
from pathlib import Path
import time

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.keyframes import HipShift
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor, ZmpMonitorParameters
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PolygonStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64, Header, String
from support.ros_rig import NodeRig
from support.zmp_pipeline import Pipeline
from visualization_msgs.msg import Marker, MarkerArray
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'zmp_monitor.yaml'
OUTPUTS = {'zmp': PointStamped, 'zmp_model': PointStamped, 'zmp_difference': Vector3Stamped,
           'dcm': PointStamped, 'support_polygon': PolygonStamped, 'margin': Float64,
           'dcm_margin': Float64, 'time_to_edge': Float64, 'markers': MarkerArray}
LATCHED_OUTPUTS = {'support_phase': String, 'event': DiagnosticArray}
COUNTER = itertools.count()
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
FEET = ('left', 'right')


@dataclasses.dataclass
class Sample:
    """What the sensors said at one instant, and the report that the core gives for it."""

    ns: int
    positions: np.ndarray
    velocities: np.ndarray
    quaternion: np.ndarray
    gyro: np.ndarray
    wrenches: np.ndarray
    base: object
    report: object


def record(seconds, offset=lambda t: (0.0, 0.0, 0.0), push=None, since=0.0):
    """Return what happens to the simulated robot from `since` on."""
    pipeline, samples, steps = Pipeline('biped'), [], round(seconds / 0.002)
    for i in range(steps):
        t = i * 0.002
        if push and abs(t - push[0]) < 1e-9:
            pipeline.plant.push('torso', push[1], push[2])
        report, _ = pipeline.step(pipeline.command(offset(t)))
        if t >= since:
            seen = pipeline.observation
            samples.append(Sample(
                1_000_000_000 + round(1e9 * seen.time), seen.joint_positions.copy(),
                seen.joint_velocities.copy(), seen.imu_quaternions[0].copy(),
                seen.angular_velocities[0].copy(), pipeline.wrenches.copy(), pipeline.base,
                report))
    return pipeline.model, samples


@pytest.fixture(scope='module')
def swaying():
    return record(0.6, lambda t: (0.01 * np.sin(9.0 * t), 0.015 * np.sin(6.0 * t), 0.0))


@pytest.fixture(scope='module')
def falling():
    return record(1.2, push=(0.3, (18.0, 0, 0, 0, 0, 0), 0.25), since=0.2)


class Robot(NodeRig):
    """The node, drivers of a robot around it and a listener."""

    def __init__(self, **parameters):
        self.space = f'/zmp_{next(COUNTER)}'
        values = {'robot': 'biped', 'max_stamp_age': 0.0, 'marker_rate': 1e4, **parameters}
        node = ZmpMonitor(
            namespace=self.space,
            cli_args=['--ros-args', '-r', '/diagnostics:=diagnostics'],
            parameter_overrides=[Parameter(name, value=value)
                                 for name, value in values.items()])
        super().__init__(node=node)
        self.names = list(node.inputs.joints.joint_names) if hasattr(
            node.inputs.joints, 'joint_names') else list(node._source.model.joint_names)
        self.joints = self._publisher(JointState, 'joint_states')
        self.wrenches = [self._publisher(WrenchStamped, source.topic)
                         for source in node.inputs.wrenches]
        kind = node.params.base_source
        self.imu = self._publisher(Imu, 'imu') if kind == 'imu' else None
        self.odom = self._publisher(Odometry, 'odom') if kind == 'odometry' else None
        self.got = {topic: self.collect(message_type, f'{self.space}/zmp_monitor/{topic}',
                                       LATCHED if topic == 'markers' else 10)
                    for topic, message_type in OUTPUTS.items()}
        self.latched = {topic: self.collect(kind, f'{self.space}/zmp_monitor/{topic}', LATCHED)
                        for topic, kind in LATCHED_OUTPUTS.items()}
        self.health = {}
        self.peer.create_subscription(
            DiagnosticArray, f'{self.space}/diagnostics', self._diagnose, 10)
        self.until(lambda: all(out.has_subscribers for out in self._wanted()), what='listeners')

    def _wanted(self):
        outputs = self.node._outputs
        return (*outputs._points.values(), outputs._difference, outputs._polygon,
                *outputs._numbers.values())

    def _publisher(self, message_type, topic):
        return self.publisher(
            message_type, topic if topic.startswith('/') else f'{self.space}/{topic}')

    def _diagnose(self, array):
        for status in array.status:
            self.health[status.name.partition(': ')[2]] = status.level, status.message

    def senders(self, sample, frames=('l_sole', 'r_sole'), shift=(0.0, 0.0, 0.0)):
        """Return functions that send one message each."""
        stamp = Header(stamp=rclpy.time.Time(nanoseconds=sample.ns).to_msg()).stamp

        def joints():
            self.joints.publish(JointState(
                header=Header(stamp=stamp), name=self.names,
                position=sample.positions.tolist(), velocity=sample.velocities.tolist()))

        def base():
            if self.imu:
                message = Imu(header=Header(stamp=stamp, frame_id='imu_link'))
                _set(message.orientation, 'xyzw', sample.quaternion)
                _set(message.angular_velocity, 'xyz', sample.gyro)
                self.imu.publish(message)
            if self.odom:
                message = Odometry(header=Header(stamp=stamp, frame_id='odom'))
                message.child_frame_id = 'base_link'
                _set(message.pose.pose.position, 'xyz', sample.base.position + shift)
                _set(message.pose.pose.orientation, 'xyzw', sample.base.quaternion)
                self.odom.publish(message)

        def foot(i):
            message = WrenchStamped(header=Header(stamp=stamp, frame_id=frames[i]))
            _set(message.wrench.force, 'xyz', sample.wrenches[i, :3])
            _set(message.wrench.torque, 'xyz', sample.wrenches[i, 3:])
            self.wrenches[i].publish(message)
        return {'joints': joints, 'base': base, 'left': lambda: foot(0),
                'right': lambda: foot(1)}

    def play(self, samples, order=('joints', 'base', 'left', 'right'), rest=0.1, **options):
        """Send samples, each in this order (or a random one), and let the node answer."""
        rng = np.random.default_rng(3)
        for sample in samples:
            send = self.senders(sample, **options)
            for name in (rng.permutation(list(send)) if order == 'random' else order):
                send[name]()
                self.spin(0.0015)
            self.spin(0.001)
        self.spin(rest)

    def diagnosis(self, line, level, samples, words='', **options):
        """
        Play by the present time, over and over, until a line says so; return its message.

        How long that takes does not count, but how much is played: the node is asked for its
        diagnostics after every few instants, while they are fresh.
        """
        self.health.clear()
        for i, sample in zip(range(1000), itertools.cycle(samples)):
            now = dataclasses.replace(sample, ns=self.peer.get_clock().now().nanoseconds)
            self.play([now], rest=0.0, **options)
            found, message = self.health.get(line, (None, ''))
            if found == level and words in message:
                return message
            if i % 20 == 19:
                self.node.diagnostics.publish()
        raise AssertionError(f'{line}: {self.health.get(line)}')


def _set(message, names, values):
    for name, value in zip(names, values):
        setattr(message, name, float(value))


def vectors(messages, field):
    return np.array([[getattr(getattr(m, field), axis) for axis in 'xyz'] for m in messages])


def shifted(samples, seconds):
    """Return the samples again, later."""
    return [dataclasses.replace(s, ns=s.ns + round(1e9 * seconds)) for s in samples]


@pytest.fixture
def robot(request):
    robots = []

    def make(**parameters):
        robots.append(Robot(**parameters))
        return robots[-1]
    yield make
    for made in robots:
        made.close()


def expected(samples, name):
    return [value for s in samples if (value := getattr(s.report, name)) is not None]


def test_everything_is_as_the_core_says_to_the_last_bit(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(samples)
    for topic, field, name in (('zmp', 'point', 'zmp'), ('zmp_model', 'point', 'zmp_model'),
                               ('zmp_difference', 'vector', 'difference'),
                               ('dcm', 'point', 'dcm')):
        np.testing.assert_array_equal(vectors(rig.got[topic], field), expected(samples, name))
    for topic, name in (('margin', 'zmp_margin'), ('dcm_margin', 'dcm_margin')):
        assert [m.data for m in rig.got[topic]] == [m.distance for m in expected(samples, name)]
    assert [m.data for m in rig.got['time_to_edge']] == expected(samples, 'time_to_edge')
    stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in rig.got['zmp']]
    assert stamps == [s.ns for s in samples if s.report.zmp is not None]
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
    for topic, field, name in (('zmp', 'point', 'zmp'), ('zmp_model', 'point', 'zmp_model'),
                               ('dcm', 'point', 'dcm')):
        np.testing.assert_array_equal(vectors(rig.got[topic], field), expected(samples, name))


def test_far_from_the_origin_and_high_up(robot, swaying):
    _, samples = swaying
    rig, shift = robot(base_source='odometry'), np.array((812.0, -455.0, 37.0))
    rig.play(samples, shift=shift)
    np.testing.assert_allclose(
        vectors(rig.got['zmp'], 'point'), np.array(expected(samples, 'zmp')) + shift, atol=1e-9)
    assert len(rig.got['zmp']) == len(samples)
    polygon = rig.got['support_polygon'][-1].polygon.points
    assert abs(polygon[0].z - 37.0) < 1e-3 and abs(polygon[0].x - 812.0) < 0.2


def test_markers_show_what_is_known_and_remove_what_is_not(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(samples[:60])
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    assert all(m.action == Marker.ADD for m in shown.values())
    assert set(shown) == {
        ('com', 0), ('com', 1), ('zmp', 0), ('zmp_model', 0), ('dcm', 0), ('cop', 0),
        ('cop', 1), ('force', 0), ('force', 1), ('support_polygon', 0), ('zmp_trail', 0),
        ('zmp_model_trail', 0)}
    report = samples[59].report
    zmp = shown['zmp', 0].pose.position
    np.testing.assert_array_equal((zmp.x, zmp.y, zmp.z), report.zmp)
    tail, head = shown['force', 0].points
    np.testing.assert_allclose((tail.x, tail.y, tail.z), report.cops[0])
    assert 0.1 < head.z - tail.z < 0.4, 'half of the weight is a quarter of a metre'
    outline = shown['support_polygon', 0]
    corners = {(round(p.x, 9), round(p.y, 9)) for p in outline.points}
    assert corners == {tuple(np.round(c[:2], 9)) for c in report.support.corners_in_world}
    assert outline.color.g > outline.color.r, 'green while stable'
    lifted = [dataclasses.replace(s, wrenches=np.zeros((2, 6))) for s in samples[60:120]]
    rig.play(lifted)
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    gone = {key for key, m in shown.items() if m.action == Marker.DELETE}
    assert gone >= {('zmp', 0), ('support_polygon', 0), ('cop', 0), ('force', 1), ('com', 1)}
    assert shown['com', 0].action == Marker.ADD


def test_markers_are_drawn_once_a_second_while_nobody_listens(robot, swaying):
    _, samples = swaying
    rig = robot()
    markers = rig.node._markers
    mine = next(s for s in rig.peer.subscriptions if s.topic_name.endswith('/markers'))
    rig.peer.destroy_subscription(mine)
    rig.until(lambda: not markers._out.publisher.get_subscription_count(), what='silence')
    stamps, publish = [], markers._out.publish
    markers._out.publish = lambda stamp: (stamps.append(stamp), publish(stamp))
    rig.play([s for k in range(4) for s in shifted(samples[::5], 0.6 * k)])
    assert np.diff(stamps).min() >= 1e9 and len(stamps) == 3
    late = rig.collect(MarkerArray, f'{rig.space}/zmp_monitor/markers', LATCHED)
    rig.until(lambda: late, what='the latched markers')
    trail = next(m for m in late[-1].markers if m.ns == 'zmp_trail')
    assert len({p.x for p in trail.points}) > 30, 'points of the time when nobody listened'
    rig.play(shifted(samples[:20], 2.5))
    assert len(late) > 10


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
    assert rig.diagnosis('stability', WARN, flying) == 'no foot on the ground'
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
    assert 'the DCM is outside the support' in lost.status[0].message
    assert callback_errors(rig.node).count == 0
    changes = [(s.ns, s.report.change) for s in samples if s.report.change is not None]
    assert len(events) == len(changes)
    when = lost.header.stamp.sec * 10**9 + lost.header.stamp.nanosec
    assert when == next(ns for ns, change in changes if change.is_loss)
    late = rig.collect(DiagnosticArray, f'{rig.space}/zmp_monitor/event', LATCHED)
    rig.until(lambda: late, what='the latched event')
    assert late[-1].status[0].message == events[-1][1]
    assert any('time to the edge' in v.key for v in late[-1].status[0].values)


def test_wrong_sign_is_named_and_nothing_bogus_comes_out(robot, swaying):
    _, samples = swaying
    rig = robot()
    pulled = [dataclasses.replace(s, wrenches=-s.wrenches) for s in samples]
    rig.diagnosis('weight', WARN, pulled, words=(
        'flip wrench_sensors.left_foot.sign, wrench_sensors.right_foot.sign'))
    assert not rig.got['zmp'] and not rig.got['margin'] and not rig.got['zmp_difference']
    rig.diagnosis('zmp', ERROR, pulled, words='the ground does not push')


@pytest.mark.parametrize(('silent', 'named'), [
    ('right', 'wrench of the right foot'), ('base', 'orientation'), ('joints', 'joint states')])
def test_a_dead_sensor_stops_everything_and_is_named(robot, swaying, silent, named):
    _, samples = swaying
    rig = robot(sensor_timeout=0.2)
    rig.play(samples[:20])
    assert rig.got['zmp']
    for messages in rig.got.values():
        messages.clear()
    rest = tuple(name for name in ('joints', 'base', 'left', 'right') if name != silent)
    rig.diagnosis('stability', ERROR, samples, f'waiting for {named}', order=rest)
    assert not any(rig.got.values())
    rig.diagnosis('zmp', ERROR, samples, f'waiting for {named}', order=rest)


def test_numbers_that_are_not_finite_are_refused(robot, swaying):
    _, samples = swaying
    rig = robot()
    broken = np.array(samples[0].wrenches)
    broken[0, 2] = np.nan
    rig.play([dataclasses.replace(s, wrenches=broken) for s in samples[:10]])
    assert not rig.got['zmp']
    assert 'wrench.force.z = nan' in rig.node.inputs.wrenches[0].last_error


def test_any_frame_of_the_foot_will_do_but_no_other(robot, swaying):
    model, samples = swaying
    rig = robot()
    state = model.state(model.posture())
    moved = []
    for sample in samples[:40]:
        wrenches = sample.wrenches.copy()
        for i, (sole, ankle) in enumerate((('l_sole', 'l_ankle_ft'), ('r_sole', 'r_ankle_ft'))):
            pose = state.pose_in_base(ankle).inverse() @ state.pose_in_base(sole)
            force = pose.rotation @ wrenches[i, :3]
            wrenches[i] = *force, *(
                pose.rotation @ wrenches[i, 3:] + np.cross(pose.position, force))
        moved.append(dataclasses.replace(sample, wrenches=wrenches))
    rig.play(moved, frames=('l_ankle_ft', 'r_ankle_ft'))
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point'), [
        s.report.zmp for s in samples[:40]], atol=1e-9)
    for frames, words in ((('torso', 'r_sole'), "frame 'torso', which is not fixed to its sole"),
                          (('l_sol', 'r_sole'), "unknown frame 'l_sol'")):
        rig.diagnosis('callbacks', ERROR, samples, words, frames=frames)


def test_soles_out_of_plane_and_a_wrong_model_are_told(robot, swaying):
    model, samples = swaying
    rig = robot()
    knee = model.joint_index(['l_knee'])[0]

    bent = []
    for s in samples:
        positions = s.positions.copy()
        positions[knee] += 0.5
        bent.append(dataclasses.replace(s, positions=positions))
    rig.diagnosis('support', WARN, bent, 'out of one plane')
    pushed = np.array([[0.0, 0.0, 0.0, 0.0, 2.5, 0.0]] * 2)
    shoved = [dataclasses.replace(s, wrenches=s.wrenches + pushed) for s in samples]
    rig.diagnosis('zmp', WARN, shoved, 'mm from the measured one: check masses (calibrate)')


def test_on_stairs_support_is_between_the_soles_and_it_is_told(robot, swaying):
    """The left foot stands 60 mm higher; the base is known from elsewhere."""
    model, samples = swaying
    hips = HipShift(model, model.posture())
    climbing = hips.positions(
        (0.0, 0.0, -0.02), sole_moves={0: Pose(np.eye(3), np.array((0.05, 0.0, 0.06)))})
    state = model.state(climbing)
    soles = state.placements_in_base(model.soles)[:, 3]
    base = Pose(np.eye(3), np.array((12.0, -7.0, 3.0)) - soles[1])
    wrench = np.array((0.0, 0.0, 0.5 * 9.81 * model.mass, 0.0, 0.0, 0.0))
    stairs = [dataclasses.replace(
        s, positions=climbing, velocities=np.zeros_like(climbing), base=base,
        wrenches=np.array((wrench, wrench))) for s in samples[:40]]
    rig = robot(base_source='odometry')
    rig.play(stairs)
    middle = (12.0, -7.0, 3.0) + 0.5 * (soles[0] - soles[1])
    assert middle[2] == pytest.approx(3.03)
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point')[-1], middle, atol=1e-9)
    corners = np.array([[p.x, p.y, p.z] for p in rig.got['support_polygon'][-1].polygon.points])
    np.testing.assert_allclose(corners[:, 2], 3.03, atol=1e-6)
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    assert shown['cop', 0].pose.position.z == pytest.approx(3.06)
    assert shown['cop', 1].pose.position.z == pytest.approx(3.0)
    assert shown['com', 1].pose.position.z == pytest.approx(3.03, abs=1e-6)
    message = rig.diagnosis('support', WARN, stairs, 'stairs, a foot on its edge')
    assert '30 mm out of one plane' in message


def test_when_the_clock_is_set_back_all_begins_anew(robot, swaying):
    _, samples = swaying
    rig = robot()
    rig.play(shifted(samples[:30], 500.0))
    for messages in rig.got.values():
        messages.clear()
    rig.play(samples[:60])
    found = vectors(rig.got['zmp'], 'point')
    # The very first instant is lost in the change, so that the floor is a whit lower.
    np.testing.assert_allclose(
        found[-20:], [s.report.zmp for s in samples[40:60]], atol=1e-6)


def test_the_parameter_file_has_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/zmp_monitor']['ros__parameters']
    defaults = ZmpMonitorParameters()
    assert text == {f.name: getattr(defaults, f.name)
                    for f in dataclasses.fields(ZmpMonitorParameters)}


@pytest.mark.parametrize(('parameters', 'message'), [
    ({'wrench_topics': ['one']}, 'must be 2 topics, one per foot, in the order left, right'),
    ({'base_source': 'gps'}, "'imu', 'odometry', 'tf', 'fixed'"),
    ({'tilt_unstable': 1.5}, 'below that of a fall, 1.0 rad'),
    ({'model_method': 'guess'}, "'full', 'links', 'point', 'static'"),
    ({'contact_release': 0.5}, 'shares of body weight with 0 < release < engage'),
])
def test_a_start_that_makes_no_sense_is_one_clear_error(parameters, message):
    with pytest.raises(ConfigurationError, match=message):
        ZmpMonitor(parameter_overrides=[Parameter(n, value=v) for n, v in parameters.items()])


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
    rig = robot(marker_rate=0.0)
    monitor, inputs = rig.node.monitor, rig.node.inputs
    rig.play(samples[:5])
    state, twist = None, None
    captured = []
    inputs._callback = lambda *instant: captured.append(instant)
    rig.play(samples[5:10])
    stamp, state, twist, wrenches = captured[-1]
    start = time.perf_counter()
    for i in range(300):
        monitor.update(stamp + i * 1_000_000, state, twist, wrenches)
    assert (time.perf_counter() - start) / 300 < 5e-3
