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
"""Inputs over DDS: good data arrives, bad data is refused by name and nothing breaks."""

from biped_com_ros.core.geometry.wrench import cop_on_sole
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, WARN
from biped_com_ros.ros.topics import inputs
from biped_com_ros.ros.topics.inputs import (
    ArrayInput, BoolInput, ImuInput, OdometryInput, PointInput, StampedArrayInput, WrenchInput)
from biped_com_ros.ros.topics.outputs import StampedArrayPublisher
from biped_com_ros.ros.topics.state_inputs import force_at_middle
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, Vector3, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool, Float64, Float64MultiArray, Header, MultiArrayLayout
from support.driven_time import run_ready
from support.input_feed import Feed
from support.messages import imu, odometry

NAN, INF = float('nan'), float('inf')
JOINTS = ('hip', 'knee', 'ankle')


# -- the other inputs


def test_wrench(rig, plain):
    feed = Feed(rig, WrenchInput, 'left/wrench', 'l_foot')
    good = WrenchStamped(header=Header(frame_id='l_foot'))
    good.wrench.force, good.wrench.torque = Vector3(x=1.0, y=2.0, z=3.0), Vector3(x=4.0, z=6.0)
    feed.send(good)
    assert feed.received[-1][1].tolist() == [1.0, 2.0, 3.0, 4.0, 0.0, 6.0]
    for frame in ('l_toe', '', 'r_foot', 'l_foot2'):
        feed.send(WrenchStamped(header=Header(frame_id=frame)))
        assert f"its frame_id is '{frame}'; valid: 'l_foot'" in feed.source.last_error
    assert 'frame_prefix' not in feed.source.last_error
    feed.send(WrenchStamped(header=Header(frame_id='robot1/l_foot')))
    assert "valid: 'l_foot'; set the parameter frame_prefix to 'robot1/'" in (
        feed.source.last_error)
    good.wrench.torque.y = NAN
    feed.send(good)
    assert 'wrench.torque.y = nan' in feed.source.last_error
    assert feed.source.refused == {'wrong frame': 5, 'not finite': 1} and len(feed.received) == 1
    assert feed.source.values.tolist() == [1.0, 2.0, 3.0, 4.0, 0.0, 6.0]


def test_of_a_vertical_force_nothing_else_is_read(rig, plain):
    feed = Feed(rig, WrenchInput, 'left/wrench', 'pad', force_z=True, largest=1e3)
    message = WrenchStamped(header=Header(frame_id='pad'))
    message.wrench.force = Vector3(x=NAN, y=1e300, z=3.0)
    message.wrench.torque = Vector3(x=NAN, y=NAN, z=INF)
    feed.send(message)
    assert feed.received[-1][1].tolist() == [0.0, 0.0, 3.0, 0.0, 0.0, 0.0]
    for value, reason in ((NAN, 'wrench.force.z = nan'), (2e3, 'implausible (limit 1000 N)')):
        message.wrench.force.z = value
        feed.send(message)
        assert reason in feed.source.last_error
    assert len(feed.received) == 1


def test_what_is_too_large_in_other_units_is_so_in_newtons(rig, plain):
    """Of 1 kN and 1 kN m at most, in kgf and N mm."""
    feed = Feed(rig, WrenchInput, 'left/wrench', 'foot', largest=1e3,
                factors=(-9.80665,) * 3 + (1e-3,) * 3)
    message = WrenchStamped(header=Header(frame_id='foot'))
    message.wrench.force.z, message.wrench.torque.x = 100.0, 9e5
    feed.send(message)
    assert feed.received[-1][1].tolist() == [0.0, 0.0, 100.0, 9e5, 0.0, 0.0]
    message.wrench.force.z = 103.0
    feed.send(message)
    assert 'wrench.force.z = 103 is implausible (limit 101.972)' in feed.source.last_error
    message.wrench.force.z, message.wrench.torque.x = 0.0, 1.1e6
    feed.send(message)
    assert 'wrench.torque.x = 1.1e+06 is implausible (limit 1e+06)' in feed.source.last_error


def test_a_load_is_in_the_middle_of_the_sole():
    wrench = 300.0 * force_at_middle([(0.15, 0.06), (-0.05, 0.06), (-0.05, -0.02), (0.15, -0.02)])
    assert cop_on_sole(wrench) == pytest.approx((0.05, 0.02)) and wrench[2] == 300.0
    assert not wrench[[0, 1, 5]].any()


def message_with(message_type, values):
    """Return a message with values at paths, and with an orientation if it has one."""
    message = message_type()
    for path, value in {'orientation.w': 1.0, 'pose.pose.orientation.w': 1.0, **values}.items():
        *owners, name = path.split('.')
        owner = message
        for part in owners:
            owner = getattr(owner, part, None)
        if owner is not None:
            setattr(owner, name, value)
    return message


IMU, ODOMETRY = (ImuInput, Imu, ('imu', '')), (OdometryInput, Odometry, ('odom',))
WRENCH = WrenchInput, WrenchStamped, ('left/wrench', '')
HARD_FALL = {'angular_velocity.y': -99.0, 'linear_acceleration.x': 999.0}
UTM = {'pose.pose.position.x': 5e6}


@pytest.mark.parametrize(('kind', 'path', 'value', 'limit', 'good'), [
    *((WRENCH, 'wrench.force.z', value, '1000 N', {  # each by itself is small enough
        'wrench.force.z': 999.0, 'wrench.torque.x': -999.0}) for value in (1001.0, -1e200)),
    *((IMU, f'{quantity}.{axis}', value, limit, HARD_FALL) for axis in 'xyz'
      for quantity, value, limit in (
          ('angular_velocity', 1e5, '100 rad/s'), ('angular_velocity', -101.0, '100 rad/s'),
          ('linear_acceleration', 1001.0, '1000 m/s^2'),
          ('linear_acceleration', -1e308, '1000 m/s^2'))),
    (ODOMETRY, 'pose.pose.position.y', 1e8, '1e+07 m', UTM),
    (ODOMETRY, 'twist.twist.linear.y', -200.0, '100 m/s', UTM),
    (ODOMETRY, 'twist.twist.angular.y', 200.0, '100 rad/s', UTM)])
def test_what_is_too_large_to_be_true_is_refused_with_its_limit(
        rig, plain, kind, path, value, limit, good):
    make, message_type, arguments = kind
    feed = Feed(rig, make, *arguments, **(
        {'largest': 1e3} if make is WrenchInput else {}))
    feed.send(message_with(message_type, {path: value}))
    assert f'{path} = {value:g} is implausible (limit {limit}): check' in feed.source.last_error
    feed.send(message_with(message_type, good))
    assert feed.source.refused == {'too large': 1} and len(feed.received) == 1


def test_a_tilted_imu_is_turned_back(rig, plain):
    """Of a link in any attitude, an IMU that is turned in it measures turned vectors."""
    tilt = Rotation.from_rotvec((0.1, -0.15, 0.05))
    feed = Feed(rig, ImuInput, 'imu', 'imu_link',
                tilt=tuple(tilt.as_rotvec().tolist()))
    rng = np.random.default_rng(2)
    for _ in range(3):
        link = Rotation.random(random_state=rng)
        rate, acceleration = rng.normal(size=(2, 3))
        feed.send(imu(Time(), 'imu_link', (link * tilt.inv()).as_quat(), tilt.apply(rate),
                      tilt.apply(acceleration)))
        _, quaternion, angular_velocity, linear_acceleration = feed.received[-1]
        assert (Rotation.from_quat(quaternion) * link.inv()).magnitude() < 1e-9
        assert angular_velocity == pytest.approx(rate)
        assert linear_acceleration == pytest.approx(acceleration)


def test_imu(rig, plain):
    feed = Feed(rig, ImuInput, 'imu', 'imu_link')
    good = imu(Time(), 'imu_link', (0.6, 0.0, 0.0, 0.8), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    feed.send(good)
    _, quaternion, rate, acceleration = feed.received[-1]
    assert quaternion.tolist() == [0.6, 0.0, 0.0, 0.8]
    assert rate.tolist() == [1.0, 2.0, 3.0] and acceleration.tolist() == [4.0, 5.0, 6.0]
    good.orientation.w = 0.0
    feed.send(good)
    assert 'has length 0.6; valid: 1' in feed.source.last_error
    good.orientation.w, good.orientation_covariance[0] = 0.8, -1.0
    good.linear_acceleration.z = 60.0
    feed.send(good)
    assert feed.source.refused == {'not a unit quaternion': 1, 'no orientation': 1}
    assert 'and the accelerometer measures 60.34 m/s^2' in feed.source.last_error
    assert len(feed.received) == 1
    relaxed = Feed(rig, ImuInput, 'imu', '', need_orientation=False)
    relaxed.send(good)
    assert relaxed.received[-1][2].tolist() == [1.0, 2.0, 3.0]
    assert not relaxed.source.has_orientation
    good.orientation_covariance[0] = 0.0
    relaxed.send(good)
    assert relaxed.source.has_orientation
    good.orientation.x = good.orientation.w = 0.0  # as drivers without a filter have it
    before = feed.source.refused['no orientation']
    relaxed.send(good)  # to both
    assert not relaxed.source.has_orientation and not any(relaxed.received[-1][1])
    assert feed.source.refused['no orientation'] == before + 1


@pytest.mark.parametrize('zeros', (False, True))
def test_an_imu_without_orientation_is_levelled_and_turned(rig, plain, zeros):
    """By its accelerometer, and by its gyroscope; the heading begins anywhere."""
    feed, link = Feed(rig, ImuInput, 'imu', ''), Rotation.from_euler('xyz', (0.3, -0.2, 0.0))
    message = imu(Time(), '', (0.0, 0.0, 0.0, 0.0 if zeros else 1.0), (0.0, 0.0, 0.0),
                  link.inv().apply((0.0, 0.0, 9.81)))
    message.orientation_covariance[0] = 0.0 if zeros else -1.0
    feed.send(message)
    before = Rotation.from_quat(feed.received[-1][1])
    assert before.inv().apply((0.0, 0.0, 1.0)) == pytest.approx(link.inv().apply((0.0, 0.0, 1.0)))
    rate = link.inv().apply((0.0, 0.0, 2.0))  # about the vertical
    message.angular_velocity.x, message.angular_velocity.y, message.angular_velocity.z = rate
    for _ in range(10):
        feed.send(message)
    turned = Rotation.from_quat(feed.received[-1][1]) * before.inv()
    spent = 1e-9 * (feed.received[-1][0] - feed.received[0][0])
    assert turned.as_rotvec() == pytest.approx((0.0, 0.0, 2.0 * spent), abs=1e-3) and spent > 0.0
    assert 'no orientation' in feed.source.report()[1] and not feed.source.refused


QUATERNION, GYRO, ACCELERATION = 'orientation', 'angular_velocity', 'linear_acceleration'


@pytest.mark.parametrize('value', (NAN, INF))
@pytest.mark.parametrize(('options', 'is_oriented', 'bad', 'is_used'), [
    ({}, True, ACCELERATION, True), ({}, True, GYRO, False), ({}, True, QUATERNION, False),
    ({'need_acceleration': True}, True, ACCELERATION, False),
    ({'need_orientation': False}, True, ACCELERATION, True),
    ({'need_orientation': False}, False, ACCELERATION, False),
    ({'need_orientation': False}, False, QUATERNION, True),
    ({'need_orientation': False, 'need_acceleration': True}, True, ACCELERATION, False),
    ({'need_orientation': False, 'need_acceleration': True}, False, QUATERNION, True),
    ({'need_orientation': False, 'tilt': (0.1, 0.0, 0.0)}, False, QUATERNION, True)])
def test_of_an_imu_what_is_not_used_may_be_nan(
        rig, plain, options, is_oriented, bad, is_used, value):
    """REP-145: it is to be ignored, and drivers write what they like."""
    feed = Feed(rig, ImuInput, 'imu', '', **options)
    message = imu(Time(), '', (0.0, 0.0, 0.0, 1.0 if is_oriented else 0.0), (1.0, 2.0, 3.0),
                  (0.0, 0.0, 9.81))
    message.orientation_covariance[0] = 0.0 if is_oriented else -1.0
    vector = getattr(message, bad)
    for axis in ('xyzw' if bad == QUATERNION else 'xyz'):
        setattr(vector, axis, value)
    feed.send(message)
    assert len(feed.received) == is_used
    if is_used:
        assert all(np.isfinite(values).all() for values in feed.received[0][1:])
        assert feed.source.has_orientation is is_oriented
    else:
        assert f'{bad}.x = {value}' in feed.source.last_error


@pytest.mark.parametrize('needs', (True, False))
def test_of_odometry_a_twist_that_is_not_used_may_be_nan(rig, plain, needs):
    feed = Feed(rig, OdometryInput, 'odom', need_twist=needs)
    feed.send(odometry(Time(), 'odom', '', (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), (NAN,) * 6))
    assert len(feed.received) == (not needs)
    feed.send(odometry(Time(), 'odom', '', (NAN, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)))
    assert 'pose.pose.position.x = nan' in feed.source.last_error


def test_odometry(rig, plain):
    feed = Feed(rig, OdometryInput, 'odom', frame_id='odom', child_frame_id='base_link')
    good = odometry(Time(), 'odom', 'base_link', (1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8),
                    (4.0, 0.0, 0.0, 0.0, 0.0, 5.0))
    feed.send(good)
    _, position, quaternion, twist = feed.received[-1]
    assert position.tolist() == [1.0, 2.0, 3.0] and quaternion.tolist() == [0.0, 0.6, 0.0, 0.8]
    assert twist.tolist() == [4.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    good.child_frame_id = 'base'
    feed.send(good)
    assert "child_frame_id is 'base'; valid: 'base_link'" in feed.source.last_error
    good.child_frame_id, good.header.frame_id = 'base_link', 'map'
    feed.send(good)
    assert "its frame_id is 'map'; valid: 'odom'" in feed.source.last_error
    assert len(feed.received) == 1


def test_bool_and_array(rig, plain):
    feed = Feed(rig, BoolInput, 'contact')
    for value in (True, False, True):
        feed.send(Bool(data=value))
    assert [got[1] for got in feed.received] == [True, False, True] and feed.source.value is True
    feed = Feed(rig, ArrayInput, 'commands', 2)
    feed.send(Float64MultiArray(data=[1.0, 2.0]))
    for data, complaint in (([1.0], 'it has 1 values; valid: 2'), ([1.0, INF], 'data[1] = inf'), (
            [1e300, 1.0], 'data[0] = 1e+300 is implausible (limit 1e+09)')):
        feed.send(Float64MultiArray(data=data))
        assert complaint in feed.source.last_error
    feed.send(Float64MultiArray(data=[3.0, 4.0]))
    assert [row[1].tolist() for row in feed.received] == [[1.0, 2.0], [3.0, 4.0]]


def test_an_array_behind_its_stamp(rig, plain):
    """As `StampedArrayPublisher` publishes it; 0.1 s after a second, so that digits count."""
    feed = Feed(rig, StampedArrayInput, 'covariance', 4)
    output = StampedArrayPublisher(rig.node, 'covariance', 2)
    rig.until(lambda: output.publisher.get_subscription_count())
    now = feed.now // 10 ** 9 * 10 ** 9 + 100_000_001
    for values, stamp in (
            ((1.0, 2.0, 3.0, 4.0), now), ((5.0, 6.0, 7.0, 8.0), now + 1), ((1.0,) * 4, now + 1),
            ((1.0,) * 4, now - 60 * 10 ** 9), ((1.0, 1.0, INF, 1.0), now + 2)):
        output.publish_matrix(np.array(values).reshape(2, 2), stamp)
        run_ready(rig.executor)
    assert [(row[0], row[1].tolist()) for row in feed.received] == [
        (now, [1.0, 2.0, 3.0, 4.0]), (now + 1, [5.0, 6.0, 7.0, 8.0])]
    assert feed.source.refused == {'repeated stamp': 1, 'stale stamp': 1, 'not finite': 1}


def test_an_array_without_a_stamp_is_refused(rig, plain):
    feed = Feed(rig, StampedArrayInput, 'covariance', 4)
    feed.send(Float64MultiArray(data=[1.0] * 6))
    assert 'data_offset 0; valid: 6 and 2' in feed.source.last_error
    layout = MultiArrayLayout(data_offset=2)
    feed.send(Float64MultiArray(layout=layout, data=[-1.0, 0.5, *[1.0] * 4]))
    assert 'its stamp is -1.0 s' in feed.source.last_error and not feed.received


# -- accounts


def test_log_is_throttled_by_reason_and_counts_go_on(rig):
    errors = []
    rig.node.get_logger().error = errors.append
    feed = Feed(rig, PointInput, 'point', 'odom')
    for _ in range(5):
        feed.send(PointStamped(header=Header(frame_id='map')))
    feed.send(PointStamped(header=Header(frame_id='odom')), stamp=0)
    assert feed.source.refused == {'wrong frame': 5, 'zero stamp': 1}
    assert len(errors) == 2
    again = Feed(rig, PointInput, 'point', 'odom')  # a second look at the topic
    again.send(PointStamped(header=Header(frame_id='map')))
    assert len(errors) == 2 and "'map'" in again.source.last_error


def test_a_topic_of_another_type_is_named_as_that(rig):
    source = PointInput(rig.node, 'point', 'odom', lambda *a: None)
    context = rclpy.Context()
    rclpy.init(context=context)  # a participant has one type per topic
    other = rclpy.create_node('other', context=context)
    try:
        other.create_publisher(Float64, 'point', 10)
        rig.until(lambda: rig.node.count_publishers('point'), what='the publisher')
        assert source.report()[1] == (
            "no valid message on '/point' yet: it is published as std_msgs/msg/Float64, and "
            'geometry_msgs/msg/PointStamped is needed; correct the topic in the robot file or the '
            'remapping')
    finally:
        other.destroy_node()
        rclpy.shutdown(context=context)


def test_diagnostics_follow_a_sensor_from_start_to_end(rig):
    diagnostics = Diagnostics(rig.node, 'robby')
    feed = Feed(rig, PointInput, 'point', 'odom', diagnostics=diagnostics)
    rig.peer.destroy_publisher(feed.publisher)
    rig.until(lambda: not rig.node.count_publishers('point'))

    def status():
        return diagnostics.status('input /point')
    assert status().level == ERROR and status().hardware_id == 'robby'
    assert "'/point' yet: no publisher" in status().message
    feed.publisher = rig.publisher(PointStamped, 'point')
    assert '/peer publishes this topic, but nothing arrives' in status().message
    point = PointStamped(header=Header(frame_id='odom'))
    feed.send(point)
    assert status().level == OK
    point.header.frame_id = 'map'
    feed.send(point)
    assert status().level == WARN and "'map'; valid: 'odom'" in status().message
    assert {v.key: v.value for v in status().values}['refused: wrong frame'] == '1'
    rig.spin(0.6)
    assert status().level == ERROR and 'no valid message' in status().message
    point.header.frame_id = 'odom'
    feed.send(point)
    rig.time.advance(1e-3)
    assert feed.source.stale(timeout=0.0) and not feed.source.stale()


def test_a_sensor_that_hangs_is_reported_until_it_sends_again(rig, monkeypatch):
    monkeypatch.setattr(inputs, 'FROZEN_AFTER', 0.3)
    feed = Feed(rig, WrenchInput, 'wrench', 'foot')
    message = WrenchStamped(header=Header(frame_id='foot'))

    def play(step):
        feed.source.report()
        for _ in range(inputs.FROZEN_COUNT + 1):
            message.wrench.force.z += step
            rig.time.advance(0.007)
            feed.send(message)
        return feed.source.report()[:2]
    assert play(1e-9)[0] == OK
    play(0.0)
    level, words = play(0.0)
    assert level == WARN and 'their values have not changed' in words
    assert play(1e-9)[0] == OK
    play(0.0)
    assert play(0.0)[0] == WARN
    feed.source.noisy = False
    assert play(0.0)[0] == OK


def test_two_publishers_of_a_sensor_are_reported(rig):
    feed = Feed(rig, WrenchInput, 'wrench', 'foot')

    def report():
        feed.send(WrenchStamped(header=Header(frame_id='foot')))
        return feed.source.report()
    assert report()[0] == OK
    second = rig.publisher(WrenchStamped, 'wrench')
    rig.until(lambda: rig.node.count_publishers('wrench') == 2, what='the second publisher')
    level, words, _ = report()
    assert level == WARN and '2 publishers, whose messages are mixed: end all but one' in words
    rig.peer.destroy_publisher(second)
    rig.until(lambda: rig.node.count_publishers('wrench') == 1, what='its end')
    assert report()[0] == OK


def test_rate(rig):
    feed = Feed(rig, PointInput, 'point', '')
    rig.spin(1.0)
    assert feed.source.rate == 0.0  # and a new second begins
    for _ in range(95):
        rig.time.advance(0.009)
        feed.send(PointStamped())  # a millisecond later
    assert feed.source.rate == pytest.approx(100.0, rel=0.02)
