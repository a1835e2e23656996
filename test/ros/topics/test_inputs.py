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

from __future__ import annotations

import time

from biped_com_ros.core.errors import InputError
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, WARN
from biped_com_ros.ros.topics import inputs
from biped_com_ros.ros.topics.inputs import (
    ArrayInput, BoolInput, ImuInput, OdometryInput, PointInput, StampedArrayInput, WrenchInput)
from biped_com_ros.ros.topics.outputs import StampedArrayPublisher
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, PointStamped, Quaternion, Vector3, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool, Float64, Float64MultiArray, Header, MultiArrayLayout
from support.input_feed import Feed, keep

NAN, INF = float('nan'), float('inf')
JOINTS = ('hip', 'knee', 'ankle')


# -- the other inputs


def test_wrench(rig, plain):
    received = []
    source = WrenchInput(rig.node, 'left/wrench', 'l_foot', keep(received), plain=plain)
    feed = Feed(rig, source, WrenchStamped, received)
    good = WrenchStamped(header=Header(frame_id='l_foot'))
    good.wrench.force, good.wrench.torque = Vector3(x=1.0, y=2.0, z=3.0), Vector3(x=4.0, z=6.0)
    feed.send(good)
    assert received[-1][1].tolist() == [1.0, 2.0, 3.0, 4.0, 0.0, 6.0]
    for frame in ('l_toe', '', 'r_foot', 'l_foot2'):
        feed.send(WrenchStamped(header=Header(frame_id=frame)))
        assert f"its frame_id is '{frame}'; valid: 'l_foot'" in source.last_error
    good.wrench.torque.y = NAN
    feed.send(good)
    assert 'wrench.torque.y = nan' in source.last_error
    assert source.refused == {'wrong frame': 4, 'not finite': 1} and len(received) == 1
    assert source.values.tolist() == [1.0, 2.0, 3.0, 4.0, 0.0, 6.0]


@pytest.mark.parametrize('value', [1e3 + 1.0, -1e200])
def test_what_is_too_large_to_be_true_is_refused(rig, plain, value):
    received = []
    source = WrenchInput(
        rig.node, 'left/wrench', 'l_foot', keep(received), largest=1e3, plain=plain)
    feed = Feed(rig, source, WrenchStamped, received)
    message = WrenchStamped(header=Header(frame_id='l_foot'))
    message.wrench.force.z, message.wrench.torque.x = value, -999.0
    feed.send(message)
    assert f'wrench.force.z = {value:g} is implausible (limit 1000 N): check' in source.last_error
    message.wrench.force.z = 999.0  # each by itself is small enough
    feed.send(message)
    assert source.refused == {'too large': 1} and len(received) == 1


def good_imu():
    return Imu(header=Header(frame_id='imu_link'), orientation=Quaternion(w=1.0),
               linear_acceleration=Vector3(z=9.81))


@pytest.mark.parametrize('quantity, value, limit', [
    ('angular_velocity', 1e5, '100 rad/s'), ('angular_velocity', -101.0, '100 rad/s'),
    ('linear_acceleration', 1001.0, '1000 m/s^2'), ('linear_acceleration', -1e308, '1000 m/s^2')])
@pytest.mark.parametrize('axis', 'xyz')
def test_what_no_imu_measures_is_refused_with_its_limit(rig, plain, quantity, value, limit, axis):
    received = []
    source = ImuInput(rig.node, 'imu', 'imu_link', keep(received), plain=plain)
    feed = Feed(rig, source, Imu, received)
    message = good_imu()
    setattr(getattr(message, quantity), axis, value)
    feed.send(message)
    assert source.last_error == (
        f"'/imu': {quantity}.{axis} = {value:g} is implausible (limit {limit}): check its unit, "
        'and the sensor')
    message = good_imu()
    message.angular_velocity.y, message.linear_acceleration.x = -99.0, 999.0
    feed.send(message)  # a hard fall
    assert source.refused == {'too large': 1} and len(received) == 1


@pytest.mark.parametrize('part, value, words', [
    ('pose.pose.position', 1e8, 'pose.pose.position.y = 1e+08 is implausible (limit 1e+07 m)'),
    ('twist.twist.linear', -200.0, 'twist.twist.linear.y = -200 is implausible (limit 100 m/s)'),
    ('twist.twist.angular', 200.0, 'twist.twist.angular.y = 200 is implausible (limit 100 rad/s)'),
])
def test_odometry_that_no_robot_drives_is_refused(rig, plain, part, value, words):
    received = []
    source = OdometryInput(rig.node, 'odom', keep(received), plain=plain)
    feed = Feed(rig, source, Odometry, received)
    message = Odometry()
    message.pose.pose.orientation.w, message.pose.pose.position.x = 1.0, 5e6  # UTM
    feed.send(message)
    vector = message
    for name in part.split('.'):
        vector = getattr(vector, name)
    vector.y = value
    feed.send(message)
    assert words in source.last_error
    assert source.refused == {'too large': 1} and len(received) == 1


def test_a_tilted_imu_is_turned_back(rig, plain):
    """Of a link in any attitude, an IMU that is turned in it measures turned vectors."""
    received, tilt = [], Rotation.from_rotvec((0.1, -0.15, 0.05))
    source = ImuInput(rig.node, 'imu', 'imu_link', keep(received), plain=plain,
                      tilt=tuple(tilt.as_rotvec().tolist()))
    feed = Feed(rig, source, Imu, received)
    rng = np.random.default_rng(2)
    for _ in range(3):
        link = Rotation.random(random_state=rng)
        rate, acceleration = rng.normal(size=(2, 3))
        x, y, z, w = (link * tilt.inv()).as_quat()
        message = Imu(header=Header(frame_id='imu_link'),
                      orientation=Quaternion(x=x, y=y, z=z, w=w))
        message.angular_velocity = Vector3(**dict(zip('xyz', tilt.apply(rate))))
        message.linear_acceleration = Vector3(**dict(zip('xyz', tilt.apply(acceleration))))
        feed.send(message)
        _, quaternion, angular_velocity, linear_acceleration = received[-1]
        assert (Rotation.from_quat(quaternion) * link.inv()).magnitude() < 1e-9
        assert angular_velocity == pytest.approx(rate)
        assert linear_acceleration == pytest.approx(acceleration)


def test_any_frame_is_passed_on(rig, plain):
    received = []
    source = PointInput(rig.node, 'point', '', keep(received), plain=plain)
    feed = Feed(rig, source, PointStamped, received)
    for frame in ('odom', 'map', 'odom'):
        feed.send(PointStamped(header=Header(frame_id=frame), point=Point(y=2.0)))
        assert source.frame == frame
    assert len(received) == 3


def test_imu(rig, plain):
    received = []
    source = ImuInput(rig.node, 'imu', 'imu_link', keep(received), plain=plain)
    feed = Feed(rig, source, Imu, received)
    good = Imu(header=Header(frame_id='imu_link'), orientation=Quaternion(x=0.6, w=0.8),
               angular_velocity=Vector3(x=1.0, y=2.0, z=3.0),
               linear_acceleration=Vector3(x=4.0, y=5.0, z=6.0))
    feed.send(good)
    _, quaternion, rate, acceleration = received[-1]
    assert quaternion.tolist() == [0.6, 0.0, 0.0, 0.8]
    assert rate.tolist() == [1.0, 2.0, 3.0] and acceleration.tolist() == [4.0, 5.0, 6.0]
    good.orientation.w = 0.0
    feed.send(good)
    assert 'has length 0.6; valid: 1' in source.last_error
    good.orientation.w, good.orientation_covariance[0] = 0.8, -1.0
    feed.send(good)
    assert source.refused == {'not a unit quaternion': 1, 'no orientation': 1}
    assert len(received) == 1


def test_imu_without_orientation_where_it_is_not_needed(rig, plain):
    received = []
    source = ImuInput(rig.node, 'imu', '', keep(received), need_orientation=False, plain=plain)
    feed = Feed(rig, source, Imu, received)
    message = Imu(angular_velocity=Vector3(z=3.0))
    message.orientation_covariance[0] = -1.0
    feed.send(message)
    assert received[-1][2].tolist() == [0.0, 0.0, 3.0]


def test_odometry(rig, plain):
    received = []
    source = OdometryInput(rig.node, 'odom', keep(received), 'odom', 'base_link', plain=plain)
    feed = Feed(rig, source, Odometry, received)
    good = Odometry(header=Header(frame_id='odom'), child_frame_id='base_link')
    good.pose.pose.position = Point(x=1.0, y=2.0, z=3.0)
    good.pose.pose.orientation = Quaternion(y=0.6, w=0.8)
    good.twist.twist.linear, good.twist.twist.angular = Vector3(x=4.0), Vector3(z=5.0)
    feed.send(good)
    _, position, quaternion, twist = received[-1]
    assert position.tolist() == [1.0, 2.0, 3.0] and quaternion.tolist() == [0.0, 0.6, 0.0, 0.8]
    assert twist.tolist() == [4.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    good.child_frame_id = 'base'
    feed.send(good)
    assert "child_frame_id is 'base'; valid: 'base_link'" in source.last_error
    good.child_frame_id, good.header.frame_id = 'base_link', 'map'
    feed.send(good)
    assert "its frame_id is 'map'; valid: 'odom'" in source.last_error and len(received) == 1


def test_bool_and_array(rig, plain):
    flags, rows = [], []
    flag = BoolInput(rig.node, 'contact', lambda stamp, value: flags.append(value), plain=plain)
    array = ArrayInput(rig.node, 'commands', 2, keep(rows), plain=plain)
    feed = Feed(rig, flag, Bool, flags)
    for value in (True, False, True):
        feed.send(Bool(data=value))
    assert flags == [True, False, True] and flag.value is True
    feed = Feed(rig, array, Float64MultiArray, rows)
    feed.send(Float64MultiArray(data=[1.0, 2.0]))
    feed.send(Float64MultiArray(data=[1.0]))
    assert 'it has 1 values; valid: 2' in array.last_error
    feed.send(Float64MultiArray(data=[1.0, INF]))
    assert 'data[1] = inf' in array.last_error
    feed.send(Float64MultiArray(data=[1e300, 1.0]))
    assert 'data[0] = 1e+300 is implausible (limit 1e+09)' in array.last_error
    feed.send(Float64MultiArray(data=[3.0, 4.0]))
    assert [row[1].tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]


def test_an_array_behind_its_stamp(rig, plain):
    """As `StampedArrayPublisher` publishes it; 0.1 s after a second, so that digits count."""
    rows = []
    source = StampedArrayInput(rig.node, 'covariance', 4, keep(rows), plain=plain)
    output = StampedArrayPublisher(rig.node, 'covariance', 2, plain=plain)
    rig.until(lambda: output.publisher.get_subscription_count())
    now = rig.node.get_clock().now().nanoseconds // 10 ** 9 * 10 ** 9 + 100_000_001

    def send(values, stamp, count):
        output.publish_matrix(np.array(values).reshape(2, 2), stamp)
        rig.until(lambda: len(rows) + sum(source.refused.values()) == count)
    send((1.0, 2.0, 3.0, 4.0), now, 1)
    send((5.0, 6.0, 7.0, 8.0), now + 1, 2)
    assert [(row[0], row[1].tolist()) for row in rows] == [
        (now, [1.0, 2.0, 3.0, 4.0]), (now + 1, [5.0, 6.0, 7.0, 8.0])]
    send((1.0, 1.0, 1.0, 1.0), now + 1, 3)
    send((1.0, 1.0, 1.0, 1.0), now - 60 * 10 ** 9, 4)
    send((1.0, 1.0, INF, 1.0), now + 2, 5)
    assert source.refused == {'repeated stamp': 1, 'stale stamp': 1, 'not finite': 1}
    assert len(rows) == 2


def test_an_array_without_a_stamp_is_refused(rig, plain):
    rows = []
    source = StampedArrayInput(rig.node, 'covariance', 4, keep(rows), plain=plain)
    feed = Feed(rig, source, Float64MultiArray, rows)
    feed.send(Float64MultiArray(data=[1.0] * 6))
    assert 'data_offset 0; valid: 6 and 2' in source.last_error
    layout = MultiArrayLayout(data_offset=2)
    feed.send(Float64MultiArray(layout=layout, data=[-1.0, 0.5, *[1.0] * 4]))
    assert 'its stamp is -1.0 s' in source.last_error and not rows


# -- accounts


def test_log_is_throttled_by_reason_and_counts_go_on(rig):
    errors = []
    source = PointInput(rig.node, 'point', 'odom', lambda *a: None)
    rig.node.get_logger().error = errors.append
    feed = Feed(rig, source, PointStamped, [])
    for _ in range(5):
        feed.send(PointStamped(header=Header(frame_id='map')))
    feed.send(PointStamped(header=Header(frame_id='odom')), stamp=0)
    assert source.refused == {'wrong frame': 5, 'zero stamp': 1}
    assert len(errors) == 2
    again = PointInput(rig.node, 'point', 'odom', lambda *a: None)
    feed.send(PointStamped(header=Header(frame_id='map')))
    rig.until(lambda: again.refused, what='a second look at the topic')
    assert len(errors) == 2 and "'map'" in again.last_error


def test_what_a_callback_raises_is_reported_and_the_input_goes_on(rig):
    calls = []

    def fail(stamp, point):
        calls.append(stamp)
        raise InputError('cannot use this')
    diagnostics = Diagnostics(rig.node)
    source = PointInput(rig.node, 'point', 'odom', fail, diagnostics=diagnostics)
    feed = Feed(rig, source, PointStamped, [])
    for _ in range(3):
        feed.send(PointStamped(header=Header(frame_id='odom')))
    assert len(calls) == 3
    status = diagnostics.status('callbacks')
    assert status.level == ERROR and 'cannot use this' in status.message
    assert {value.key: value.value for value in status.values}['failed'] == '3'


def lines(messages):
    """Return the latest status of each name."""
    return {status.name: status for array in messages for status in array.status}


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
    diagnostics = Diagnostics(rig.node, 'robby', period=0.1)
    source = PointInput(rig.node, 'point', 'odom', lambda *a: None, diagnostics=diagnostics)
    reports = rig.collect(DiagnosticArray, '/diagnostics')

    def status():
        reports.clear()
        rig.until(lambda: 'node: input /point' in lines(reports), what='diagnostics')
        return lines(reports)['node: input /point']
    silent = status()
    assert silent.level == ERROR and silent.hardware_id == 'robby'
    assert "'/point' yet: no publisher" in silent.message
    feed = Feed(rig, source, PointStamped, [])
    assert '/peer publishes this topic, but nothing arrives' in status().message
    point = PointStamped(header=Header(frame_id='odom'))
    feed.send(point)
    assert status().level == OK
    point.header.frame_id = 'map'
    feed.send(point)
    refusing = status()
    assert refusing.level == WARN and "'map'; valid: 'odom'" in refusing.message
    assert {v.key: v.value for v in refusing.values}['refused: wrong frame'] == '1'
    rig.spin(0.6)
    dead = status()
    assert dead.level == ERROR and 'no valid message' in dead.message
    point.header.frame_id = 'odom'
    feed.send(point)
    assert source.stale(timeout=0.0) and not source.stale()


def test_a_sensor_that_hangs_is_reported_until_it_sends_again(rig, monkeypatch):
    monkeypatch.setattr(inputs, 'FROZEN_AFTER', 0.3)
    source = WrenchInput(rig.node, 'wrench', 'foot', lambda *a: None)
    feed = Feed(rig, source, WrenchStamped, [])
    message = WrenchStamped(header=Header(frame_id='foot'))

    def play(step):
        source.report()
        for _ in range(inputs.FROZEN_COUNT + 1):
            message.wrench.force.z += step
            feed.send(message)
            rig.spin(0.007)
        return source.report()[:2]
    assert play(1e-9)[0] == OK
    play(0.0)
    level, words = play(0.0)
    assert level == WARN and 'their values have not changed' in words
    assert play(1e-9)[0] == OK
    play(0.0)
    assert play(0.0)[0] == WARN
    source.noisy = False
    assert play(0.0)[0] == OK


def test_two_publishers_of_a_sensor_are_reported(rig):
    source = WrenchInput(rig.node, 'wrench', 'foot', lambda *a: None)
    feed = Feed(rig, source, WrenchStamped, [])
    feed.send(WrenchStamped(header=Header(frame_id='foot')))
    assert source.report()[0] == OK
    second = rig.publisher(WrenchStamped, 'wrench')
    rig.until(lambda: rig.node.count_publishers('wrench') == 2, what='the second publisher')
    feed.send(WrenchStamped(header=Header(frame_id='foot')))
    level, words, _ = source.report()
    assert level == WARN and '2 publishers, whose messages are mixed: end all but one' in words
    rig.peer.destroy_publisher(second)
    rig.until(lambda: rig.node.count_publishers('wrench') == 1, what='its end')
    feed.send(WrenchStamped(header=Header(frame_id='foot')))
    assert source.report()[0] == OK


def test_rate(rig):
    source = PointInput(rig.node, 'point', '', lambda *a: None)
    feed = Feed(rig, source, PointStamped, [])
    rig.spin(0.95)
    assert source.rate == 0.0  # and a new second begins
    begun, sent = time.monotonic(), 0
    while time.monotonic() < begun + 0.95:
        feed.send(PointStamped())
        sent += 1
        rig.spin(0.01)
    assert source.rate == pytest.approx(sent / (time.monotonic() - begun), rel=0.05)
