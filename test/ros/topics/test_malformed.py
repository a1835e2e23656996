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
"""Bytes and stamps over DDS that no driver should send: refused by name, and at little cost."""

import struct
import time

from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.inputs import (
    ArrayInput, BoolInput, ImuInput, JointStateInput, PointInput, VectorInput, WrenchInput)
from geometry_msgs.msg import (
    Point, PointStamped, Pose, PoseArray, Quaternion, WrenchStamped)
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, Header
from support.input_feed import Feed, stamp_of

JOINTS = ('hip', 'knee', 'ankle')


@pytest.fixture
def points(rig, plain):
    return Feed(rig, PointInput, 'point', '')


@pytest.fixture
def joints(rig, plain):
    return Feed(rig, JointStateInput, JOINTS)


def whole():
    return JointState(name=list(JOINTS), position=[1.0, 2.0, 3.0], velocity=[0.1] * 3)


# -- stamps


@pytest.mark.parametrize('parts, words', [
    ({'nanoseconds': 10 ** 9}, 'its stamp has 1000000000 nanoseconds; valid: less than'),
    ({'nanoseconds': 2 ** 32 - 1}, 'its stamp has 4294967295 nanoseconds'),
    ({'seconds': -5}, 'is negative')])
def test_impossible_stamps_are_refused(rig, plain, parts, words):
    points = Feed(rig, PointInput, 'point', '', max_age=0.0)
    point = PointStamped(header=Header(frame_id='odom'))
    points.send(point)
    points.send_raw(points.bytes_of(point, **parts))
    assert points.source.refused == {'malformed': 1} and words in points.source.last_error
    points.send(point)
    assert len(points.received) == 2


@pytest.mark.parametrize('age', [2.0, 30.0, 1e6])
@pytest.mark.parametrize(('x', 'refused'), [(0.0, {}), (float('nan'), {'not finite': 1})])
def test_neither_a_new_frame_nor_refused_values_make_way_for_an_old_stamp(points, age, x, refused):
    """The clock, which was asked just before, vouches for stamps near to that of the other."""
    points.send(PointStamped(header=Header(frame_id='odom'), point=Point(x=x)))
    points.send(PointStamped(header=Header(frame_id='map')), shift=-age)
    assert points.source.refused == {**refused, 'stale stamp': 1}
    points.send(PointStamped(header=Header(frame_id='map')), shift=-0.0005)
    assert len(points.received) == 2 - len(refused)


# -- bytes


def big_endian_point(ns, x, frame):
    """Serialize a PointStamped as a big-endian machine does."""
    text = frame.encode() + b'\0'
    body = struct.pack('>iII', *divmod(ns, 10 ** 9), len(text)) + text
    body += b'\0' * (-len(body) % 8)
    return b'\x00\x00\x00\x00' + body + struct.pack('>ddd', x, 0.0, 0.0)


def test_big_endian_messages_are_read_with_their_stamps_and_the_next_ones_fast(points, plain):
    now = points.now
    for k in range(3):
        points.send_raw(raw := big_endian_point(now + k, 1.5 + k, 'odom'))
        plan = points.source.reader._decoder.plan_for(raw)
        assert isinstance(plan, codec.PlainPlan) and plan.values_of(raw)[0] == 1.5 + k
    assert [(stamp - now, point[0]) for stamp, point in points.received] == [
        (0, 1.5), (1, 2.5), (2, 3.5)]
    points.send_raw(big_endian_point(now - 5 * 10 ** 9, 1.5, 'odom'))
    assert points.source.refused == {'stale stamp': 1}
    points.send(PointStamped(header=Header(frame_id='odom'), point=Point(x=4.0)))
    assert points.received[-1][1].tolist() == [4.0, 0.0, 0.0]
    plan = points.source.reader._decoder.plan_for(bytes(points.bytes_of(PointStamped())))
    assert isinstance(plan, codec.PlainPlan) is plain
    assert points.source.reader.plain_reason is None


@pytest.mark.parametrize('make, arguments, message', [
    (WrenchInput, ['topic', 'foot'], WrenchStamped(header=Header(frame_id='foot'))),
    (ImuInput, ['topic', ''], Imu(orientation=Quaternion(w=1.0))),
    (JointStateInput, [JOINTS], whole()),
    (ArrayInput, ['topic', 2], Float64MultiArray(data=[1.0, 2.0])),
    (BoolInput, ['topic'], Bool(data=True))], ids=['wrench', 'imu', 'joints', 'array', 'bool'])
def test_truncated_messages_are_malformed(rig, plain, make, arguments, message):
    feed = Feed(rig, make, *arguments)
    feed.send(message)
    has_stamp = hasattr(message, 'header')
    size = len(serialize_message(message)) if make is ArrayInput else codec.Layout(message).size
    for length in {*range(4, size - 1, 9), size - 1}:
        raw = feed.bytes_of(message) if has_stamp else serialize_message(message)
        feed.send_raw(raw[:length])
    assert set(feed.source.refused) == {'malformed'} and len(feed.received) == 1
    assert 'cannot be read: its ' in feed.source.last_error
    feed.send(message)
    assert len(feed.received) == 2


def test_lengths_that_cannot_be_are_malformed(joints):
    joints.send(whole())
    at = 4 + 8 + 8  # behind the stamp and an empty frame_id: the number of names
    for length in (0xFFFFFFFF, 0x7FFFFFFF, 100_000, 4):
        raw = joints.bytes_of(whole())
        struct.pack_into('<I', raw, at, length)
        joints.send_raw(raw)
    assert joints.source.refused == {'malformed': 4}
    joints.send(whole())
    assert len(joints.received) == 2


def test_an_array_with_too_few_elements_is_malformed(rig, plain):
    feed = Feed(rig, VectorInput, PoseArray, 'poses', ['poses.1.position.x'])
    feed.send(PoseArray(poses=[Pose()]))
    assert feed.source.refused == {'malformed': 1} and 'fewer elements' in feed.source.last_error
    feed.send(PoseArray(poses=[Pose(), Pose()]))
    assert len(feed.received) == 1 and callback_errors(rig.node).count == 0


def test_nul_in_a_string_slows_one_message_only(rig):
    points = Feed(rig, PointInput, 'point', '')
    point = PointStamped(header=Header(frame_id='odometry'))
    raw = points.bytes_of(point)
    raw[raw.index(b'etry')] = 0
    points.send_raw(raw)
    assert points.source.frame == 'odom'  # what rclpy reads
    points.send(point)
    assert points.source.reader.plain_reason is None
    plan = points.source.reader._decoder.plan_for(bytes(points.bytes_of(point)))
    assert isinstance(plan, codec.Plan) and points.source.frame == 'odometry'


# -- sizes


def test_large_messages_are_refused_before_they_are_converted(joints):
    """0.45 MB took 0.35 to 0.56 s each."""
    many = [f'j{k}' for k in range(20_000)]
    large = [JointState(name=many, position=[0.0]), JointState(position=[0.0] * 60_000),
             JointState(header=Header(frame_id='x' * 450_000), **{
                 field: getattr(whole(), field) for field in ('name', 'position')})]
    raws = [bytes(joints.bytes_of(message)) for message in large]
    receive = joints.source.reader.receive
    begun = time.process_time()
    for raw in raws:
        assert len(raw) > 200_000
        receive(raw)
    assert time.process_time() - begun < 0.02
    assert joints.source.refused == {'malformed': 3}
    assert 'bytes; limit 65536' in joints.source.last_error
    joints.send(whole())
    assert len(joints.received) == 1


@pytest.mark.parametrize('names, positions', [
    ([''] * 7500, 1), ([f'j{k}' for k in range(3000)], 3000), (['hip'] * 3000, 3000)])
def test_malformed_joint_states_of_any_length_cost_little(joints, names, positions):
    receive, begun = joints.source.reader.receive, time.process_time()
    for k in range(5):
        receive(bytes(joints.bytes_of(
            JointState(name=[*names, str(k)], position=[0.0] * positions))))
    assert (time.process_time() - begun) / 5 < 0.05
    assert sum(joints.source.refused.values()) == 5


def test_long_names_are_not_repeated(rig, joints):
    joints.send(JointState(name=['wheel' * 5000], position=[1.0]))
    assert "it has 'wheelwheel" in joints.source.last_error
    framed = Feed(rig, WrenchInput, 'wrench', 'foot')
    framed.send(WrenchStamped(header=Header(frame_id='toe\n' * 5000)))
    assert "its frame_id is 'toe\\ntoe" in framed.source.last_error
    for source in (joints.source, framed.source):
        assert len(source.last_error) < 400 and '\n' not in source.last_error


def test_old_stamps_of_one_part_do_not_pass_behind_another(joints):
    ns = stamp_of(joints.send(JointState(name=['hip'], position=[1.0])))
    joints.send(JointState(name=['knee', 'ankle'], position=[1.0, 2.0]), stamp=ns - 30 * 10 ** 9)
    assert joints.source.refused['stale stamp'] == 1 and not joints.received
