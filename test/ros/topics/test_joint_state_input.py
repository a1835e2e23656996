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
Joint states over DDS: put in order, checked; and the checks of stamps.

How parts of the robot are put together, velocities are found and NaN is taken is tested by
``test/ros/fast/test_joint_states.py``.
"""

from biped_com_ros.ros.fast.codec import reading
from biped_com_ros.ros.node.diagnostics import ERROR, OK
from biped_com_ros.ros.topics.inputs import JointStateInput, PointInput
from biped_com_ros.ros.topics.stamp import ns_of_msg, stamp_to_msg
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from support.driven_time import run_ready
from support.input_feed import Feed, stamp_of
from support.ros_rig import NodeRig

NAN, INF = float('nan'), float('inf')
JOINTS = ('hip', 'knee', 'ankle')


@pytest.fixture
def joints(rig, plain):
    return Feed(rig, JointStateInput, JOINTS)


def whole(order=(0, 1, 2), scale=1.0, extra=()):
    """Return a JointState whose values tell which joint they belong to."""
    names = [JOINTS[i] for i in order] + list(extra)
    values = [scale * (i + 1.0) for i in order] + [99.0] * len(extra)
    return JointState(name=names, position=values, velocity=[10 * v for v in values],
                      effort=[100 * v for v in values])


def test_joints_arrive_in_the_requested_order_without_others(joints):
    for order, extra in (((0, 1, 2), ()), ((2, 0, 1), ()), ((1, 0, 2), ('gripper', 'neck')),
                         ((1, 0, 2), ('finger', 'finger'))):
        message = joints.send(whole(order, extra=extra))
        stamp, *values = joints.received[-1]
        assert [v.tolist() for v in values] == [[1, 2, 3], [10, 20, 30], [100, 200, 300]]
        assert stamp == ns_of_msg(message.header.stamp)
    assert joints.source.velocities_measured and joints.source.efforts_measured
    assert not joints.source.refused and joints.source.count == 4


def test_what_comes_over_dds_is_recognised_by_its_bytes(rig, monkeypatch):
    """Also where DDS leaves in the padding what the heap has."""
    feed = Feed(rig, JointStateInput, JOINTS)
    converted, convert = [], reading.deserialize_message
    monkeypatch.setattr(reading, 'deserialize_message', lambda raw, message_type: (
        converted.append(raw) or convert(raw, message_type)))
    for _ in range(100):
        feed.send(whole((1, 2, 0), extra=('a', 'longer_name')))
    assert len(converted) == 1
    assert feed.source.count == 100


def test_offsets_and_corrections_are_applied_once_and_by_joint(rig, plain):
    joints = Feed(rig, JointStateInput, JOINTS, offsets=(0.1, 0.0, -0.2),
                  limits=((-9.0, 9.0),) * 3, torque_offsets=(10.0, 0.0, -20.0),
                  torque_gains=(0.0, 0.25, -0.2))

    def check(message, velocities=(10.0, 20.0, 30.0), efforts=(90.0, 160.0, 400.0)):
        joints.send(message)
        _, *values = joints.received[-1]
        for found, expected in zip(values, ((0.9, 2.0, 3.2), velocities, efforts)):
            assert found.tolist() == pytest.approx(expected)
    for order in ((0, 1, 2), (2, 0, 1), (2, 0, 1)):
        check(whole(order))
    joints.source.timeout = 1.0  # reconnects
    check(whole((1, 2, 0), extra=('gripper',)))
    joints.send(JointState(name=list(JOINTS), position=[1.0, 2.0, 3.0]))
    assert joints.received[-1][1].tolist() == pytest.approx([0.9, 2.0, 3.2])


@pytest.mark.parametrize('value', [NAN, INF, -INF])
@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
def test_numbers_that_are_not_finite_are_refused_by_joint(joints, field, value):
    joints.send(whole())
    bad = whole((2, 1, 0))
    getattr(bad, field)[1] = value
    joints.send(bad)
    assert joints.source.refused == {'not finite': 1}
    assert field in joints.source.last_error
    assert f"'knee' = {value}" in joints.source.last_error
    assert len(joints.received) == 1
    assert np.isfinite(joints.source.positions).all()
    joints.send(whole())
    assert len(joints.received) == 2


def test_a_missing_joint_is_named_once_it_is_clear_that_it_does_not_come(joints):
    part = JointState(name=['ankle', 'hip'], position=[3.0, 1.0])
    joints.send(part)
    assert not joints.source.last_error  # another node may publish it
    joints.rig.spin(0.6)
    joints.send(part)
    assert joints.source.refused == {'missing joints': 2}
    assert "joint 'knee' was never received; if nothing publishes it" in joints.source.last_error
    assert 'locked_joints' in joints.source.last_error
    joints.publisher.publish(JointState(
        name=['knee'], position=[2.0], header=Header(stamp=stamp_to_msg(joints.now))))
    joints.send(part)
    assert [got[1].tolist() for got in joints.received] == [[1.0, 2.0, 3.0]]
    joints.send(part, shift=0.6)
    assert len(joints.received) == 1
    assert "joint 'knee' not received for 0.60 s" in joints.source.last_error


def test_a_joint_where_it_cannot_be_is_named_and_not_used(rig, plain):
    feed = Feed(rig, JointStateInput, JOINTS,
                limits=((-2.0, 2.0), (0.0, 2.5), (-INF, INF)))
    feed.send(JointState(name=['ankle', 'knee', 'hip'], position=[90.0, 2.4, -2.0]))
    assert len(feed.received) == 1
    for _ in range(3):
        feed.send(JointState(name=['ankle', 'knee', 'hip'], position=[5.0, 28.6, 1.0]))
    assert feed.source.refused == {'impossible position': 3} and len(feed.received) == 1
    assert "position of 'knee' = 28.6 is implausible (valid: 0 to 2.5): check its unit" in (
        feed.source.last_error)
    feed.send(whole())
    assert len(feed.received) == 2


@pytest.mark.parametrize('velocity', [[], [NAN] * 3])
def test_a_driver_that_comes_back_without_velocities_is_used_again(rig, plain, velocity):
    feed = Feed(rig, JointStateInput, JOINTS, uses_velocities=True)
    start = feed.now

    def send(ms, velocity):
        feed.send(JointState(name=list(JOINTS), position=[1.0 + 1e-3 * ms, 2.0, 3.0],
                             velocity=velocity), stamp=start + ms * 1_000_000)
    send(0, [1.0, 0.0, 0.0])
    assert feed.source.velocities_measured and not feed.source.efforts_measured
    for ms in range(10, 700, 10):
        send(ms, velocity)
    assert not feed.source.velocities_measured
    assert feed.received[-1][0] == start + 690_000_000
    assert feed.received[-1][2].tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)
    assert 'no velocities: differences of positions are used' in feed.source.report()[1]
    send(700, [0.5, 0.0, 0.0])
    assert feed.source.velocities_measured and feed.received[-1][2][0] == 0.5
    assert 'velocities' not in feed.source.report()[1]


@pytest.mark.parametrize('message, complaint', [
    (JointState(name=list(JOINTS), position=[1.0, 2.0]), '3 names but 2 values of position'),
    (JointState(name=list(JOINTS), position=[1.0] * 3, velocity=[1.0]),
     '3 names but 1 values of velocity'),
    (JointState(name=list(JOINTS), effort=[1.0] * 3), '3 names but 0 values of position'),
    (JointState(name=['wheel'], position=[1.0]),
     "none of the joints 'hip', 'knee', 'ankle'; it has 'wheel'"),
    (JointState(name=['hip', 'knee', 'ankle', 'hip'], position=[1.0] * 4), "'hip' more than once"),
    (JointState(), 'it has no joints at all')])
def test_errors_of_malformed_joint_states_name_what_is_wrong(joints, message, complaint):
    joints.send(message)
    assert complaint in joints.source.last_error and not joints.received
    joints.send(whole())
    assert len(joints.received) == 1


@pytest.mark.parametrize('field, good, bad, limit', [
    ('position', 9e5, -1.1e6, '1e+06 rad or m'), ('velocity', 999.0, -1001.0, '1000 rad/s or m/s'),
    ('effort', -9e5, 1.1e6, '1e+06 N m or N'), ('effort', 5000.0, 1e200, '1e+06 N m or N')])
def test_values_too_large_to_be_true_are_refused_by_joint(joints, field, good, bad, limit):
    message = whole()
    message.effort[0] = 100.0 if field == 'effort' else NAN  # unmeasured ones hide nothing
    getattr(message, field)[1] = bad
    joints.send(message)
    assert joints.source.refused == {'too large': 1} and not joints.received
    assert (f"{field} of 'knee' = {bad:g} is implausible (limit {limit}): check its unit"
            in joints.source.last_error)
    getattr(message, field)[1] = good
    joints.send(message)
    assert len(joints.received) == 1


# -- stamps


@pytest.mark.parametrize(('is_first', 'shift', 'reason', 'words'), [
    (False, -0.25, 'stamp going backward', 'is 0.249000 s before the last one'),
    (False, -0.001, 'repeated stamp', ''),
    # The clock is asked only now and then; a jump must not slip through in between.
    (False, 5.0, 'stamp from the future', 'use_sim_time'),
    (True, None, 'zero stamp', 'header.stamp'),
    (True, -3.0, 'stale stamp', 'use_sim_time'),
    (True, -3.1, 'stale stamp', "behind the computer's clock"),
    (True, 3.0, 'stamp from the future', "ahead of the computer's clock")])
def test_stamps_that_cannot_be_are_refused(joints, is_first, shift, reason, words):
    if not is_first:
        joints.send(whole())
    joints.send(whole(), shift or 0.0, stamp=0 if shift is None else None)
    assert joints.source.refused == {reason: 1} and words in joints.source.last_error
    joints.send(whole())
    assert len(joints.received) == 2 - is_first


def test_two_publishers_of_one_topic_are_hinted_at(joints):
    ns = stamp_of(joints.send(whole()))
    joints.rig.peer.create_publisher(JointState, 'joint_states', 10)
    joints.rig.until(lambda: joints.rig.node.count_publishers('joint_states') == 2)
    joints.send(whole((2, 1, 0)), stamp=ns - 100_000_000)
    assert '2 nodes publish' in joints.source.last_error


class Drivers:
    """Nodes that publish joint states of a robot whose joints are at 1, 2 and 3 rad."""

    def __init__(self, feed, *names):
        self.feed, self.rig = feed, feed.rig
        feed.rig.peer.destroy_publisher(feed.publisher)
        self.nodes = {name: Node(name, namespace='robot') for name in names}
        self.publishers = {name: node.create_publisher(JointState, '/joint_states', 10)
                           for name, node in self.nodes.items()}
        self.wait(len(names))

    def wait(self, count):
        self.rig.until(lambda: self.rig.node.count_publishers('joint_states') == count and all(
            publisher.get_subscription_count() for publisher in self.publishers.values()))
        self.rig.time.advance(0.06)  # after which the graph is looked at again

    def send(self, name, joints=JOINTS, offset=0.0, velocities=True):
        """Let a node send positions, and velocities or not; return whether it was used."""
        count = len(self.feed.received)
        message = JointState(
            name=list(joints), position=[1.0 + JOINTS.index(joint) + offset for joint in joints],
            velocity=[0.1] * len(joints) if velocities else [])
        self.rig.time.advance(1e-3)
        message.header.stamp = stamp_to_msg(self.feed.now)
        self.publishers[name].publish(message)
        run_ready(self.rig.executor)  # within a process, messages arrive at once
        return len(self.feed.received) > count

    def end(self, name):
        self.publishers.pop(name)
        self.nodes.pop(name).destroy_node()
        self.wait(len(self.nodes))

    def close(self):
        for node in self.nodes.values():
            node.destroy_node()


@pytest.fixture
def drivers(joints, closing):
    """Return a function that lets nodes publish joint states."""
    return lambda *names: closing(Drivers(joints, *names))


@pytest.mark.parametrize('others', (
    {'offset': -0.3, 'velocities': False}, {'offset': -0.3}, {'joints': JOINTS[:2]},
    {'joints': JOINTS[::-1], 'offset': 0.1}))
@pytest.mark.parametrize(('own', 'theirs'), ((1, 1), (5, 1), (2, 2), (3, 3), (50, 3), (250, 1)))
def test_two_nodes_that_give_the_same_joint_are_an_error_that_names_them(
        drivers, others, own, theirs):
    """As joint_state_publisher or a bag beside the driver, in its layout or another."""
    both = drivers('broadcaster', 'player')
    source = both.feed.source
    used = []
    for _ in range(max(5, 60 // own)):
        used += [both.send('broadcaster') for _ in range(own)]
        used += [both.send('player', **others) for _ in range(theirs)]
    assert not any(used[-40:]) and source.refused['several publishers'] >= 40
    level, message, _ = source.report()
    assert level == ERROR
    assert "joint 'hip' is published more than once at a time" in message
    assert 'by /robot/broadcaster and /robot/player: end all but one' in message
    # With one of them gone the other is believed again, after the timeout of a part.
    both.end('player')
    both.rig.time.advance(5.1)
    assert both.send('broadcaster') and both.send('broadcaster')
    assert source.report()[0] == OK
    assert source.positions.tolist() == [1.0, 2.0, 3.0]


def test_nodes_that_give_different_joints_complement_each_other(drivers):
    both = drivers('arms', 'legs')
    for i in range(100):
        # Fast motion, and a joint that wraps at every message.
        swing = 0.3 * np.sin(0.4 * i)
        both.send('arms', ['ankle'], offset=swing)
        both.send('legs', ['hip', 'knee'], offset=swing + 2.0 * np.pi * (i % 2))
    source = both.feed.source
    assert source.count > 98 and 'several publishers' not in source.refused
    assert source.report()[0] == OK


def test_a_slow_part_that_goes_forth_and_back_is_no_second_publisher(drivers):
    """A gripper at 10 Hz opens and closes by 0.2 rad from one message to the next."""
    both = drivers('gripper', 'legs')
    for i in range(40):
        both.send('legs', ['hip', 'knee'])
        both.rig.time.advance(0.1)
        both.send('gripper', ['ankle'], offset=0.2 * (i // 4 % 2))
    assert 'several publishers' not in both.feed.source.refused


def test_one_node_may_change_its_layout(drivers):
    alone = drivers('driver')
    for i in range(20):
        assert alone.send('driver', velocities=i % 2 == 0, offset=0.1 * (i % 2))
    assert not alone.feed.source.refused


def test_clock_set_anew_starts_over(rig, plain):
    """As when a simulation restarts or a bag loops."""
    feed = Feed(rig, JointStateInput, JOINTS, max_age=0.0)
    for ns in (100_000_000_000, 100_010_000_000, 2_000_000_000, 2_010_000_000):
        feed.send(JointState(name=list(JOINTS), position=[ns * 1e-9] * 3), stamp=ns)
    assert not feed.source.refused
    assert [r[0] for r in feed.received][2:] == [2_000_000_000, 2_010_000_000]
    # No velocity across the jump, and the filter begins at zero again.
    np.testing.assert_allclose([r[2][0] for r in feed.received], [0.0, 0.5, 0.0, 0.5], atol=1e-6)


def test_simulated_time_is_the_measure_where_it_is_used(plain, closing):
    rig = closing(NodeRig(parameter_overrides=[Parameter('use_sim_time', value=True)]))
    feed = Feed(rig, PointInput, 'com', 'odom')
    source, point = feed.source, PointStamped(header=Header(frame_id='odom'))
    feed.send(point, stamp=5_000_000_000)
    assert source.refused == {'no clock': 1} and not source.last_error  # still starting
    clock = rig.publisher(Clock, '/clock')
    clock.publish(Clock(clock=stamp_to_msg(10_000_000_000)))
    rig.until(lambda: rig.node.get_clock().now().nanoseconds == 10_000_000_000)
    feed.send(point, stamp=5_000_000_000)
    assert 'behind the simulated clock' in source.last_error
    feed.send(point, stamp=9_900_000_000)
    assert len(feed.received) == 1
    assert source.age() == pytest.approx(0.1) and not source.stale()
    assert source.age(11_900_000_000) == pytest.approx(2.0)
    clock.publish(Clock(clock=stamp_to_msg(10_600_000_000)))
    rig.until(source.stale)
