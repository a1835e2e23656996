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
"""Joint states over DDS: put in order, put together, checked; and the checks of stamps."""

from __future__ import annotations


from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.topics.inputs import (
    JointStateInput, PointInput)
from biped_com_ros.ros.topics.stamp import ns_of_msg, stamp_to_msg
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from support.input_feed import Feed, keep, stamp_of
from support.ros_rig import NodeRig

NAN, INF = float('nan'), float('inf')
JOINTS = ('hip', 'knee', 'ankle')


@pytest.fixture
def joints(rig, plain):
    received = []
    source = JointStateInput(rig.node, JOINTS, keep(received), plain=plain)
    return Feed(rig, source, JointState, received)


def whole(order=(0, 1, 2), scale=1.0, extra=()):
    """Return a JointState whose values tell which joint they belong to."""
    names = [JOINTS[i] for i in order] + list(extra)
    values = [scale * (i + 1.0) for i in order] + [99.0] * len(extra)
    return JointState(name=names, position=values, velocity=[10 * v for v in values],
                      effort=[100 * v for v in values])


def test_joints_arrive_in_the_requested_order(joints):
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        message = joints.send(whole(order))
        stamp, positions, velocities, efforts = joints.received[-1]
        assert positions.tolist() == [1.0, 2.0, 3.0]
        assert velocities.tolist() == [10.0, 20.0, 30.0]
        assert efforts.tolist() == [100.0, 200.0, 300.0]
        assert stamp == ns_of_msg(message.header.stamp)
    assert joints.source.velocities_measured and joints.source.efforts_measured
    assert not joints.source.refused


def test_stream_keeps_flowing_on_the_fast_path(joints):
    for i in range(20):
        joints.send(whole((2, 1, 0), scale=i + 1.0))
        assert joints.received[-1][1].tolist() == [i + 1.0, 2 * (i + 1.0), 3 * (i + 1.0)]
    assert joints.source.count == 20


def test_what_comes_over_dds_is_recognised_by_its_bytes(rig, monkeypatch):
    """Neither converted anew nor compared the slow way, as padding of any value would need."""
    source = JointStateInput(rig.node, JOINTS, lambda *a: None, plain=False)
    feed = Feed(rig, source, JointState, [])
    feed.send(whole((1, 2, 0), extra=('a', 'longer_name')))

    def fail(self, raw):
        raise AssertionError('took the slow way')
    monkeypatch.setattr(codec.Plan, 'matches_despite_padding', fail)
    for _ in range(100):
        feed.send(whole((1, 2, 0), extra=('a', 'longer_name')))
    assert source.count == 101


def test_offsets_are_subtracted_once_and_by_joint(rig, plain):
    received = []
    source = JointStateInput(rig.node, JOINTS, keep(received), plain=plain,
                             offsets=(0.1, 0.0, -0.2), limits=((-9.0, 9.0),) * 3)
    joints = Feed(rig, source, JointState, received)
    for order in ((0, 1, 2), (2, 0, 1), (2, 0, 1)):
        joints.send(whole(order))
        assert received[-1][1].tolist() == pytest.approx([0.9, 2.0, 3.2])
        assert received[-1][2].tolist() == [10.0, 20.0, 30.0]
        assert received[-1][3].tolist() == [100.0, 200.0, 300.0]
    source.timeout = 1.0  # reconnects
    joints.send(whole((1, 2, 0), extra=('gripper',)))
    assert received[-1][1].tolist() == pytest.approx([0.9, 2.0, 3.2])


def test_efforts_are_corrected_once_and_by_joint(rig, plain):
    received = []
    source = JointStateInput(rig.node, JOINTS, keep(received), plain=plain, offsets=(0.1, 0, 0),
                             torque_offsets=(10.0, 0.0, -20.0), torque_gains=(0.0, 0.25, -0.2))
    joints = Feed(rig, source, JointState, received)
    for order in ((0, 1, 2), (2, 0, 1), (2, 0, 1)):
        joints.send(whole(order))
        assert received[-1][1].tolist() == pytest.approx([0.9, 2.0, 3.0])
        assert received[-1][2].tolist() == [10.0, 20.0, 30.0]
        assert received[-1][3].tolist() == pytest.approx([90.0, 160.0, 400.0])
    source.timeout = 1.0  # reconnects
    joints.send(JointState(name=['ankle', 'hip', 'knee'], position=[3.0, 1.0, 2.0],
                           effort=[300.0, 100.0, 200.0]))
    assert received[-1][3].tolist() == pytest.approx([90.0, 160.0, 400.0])
    no_efforts = JointState(name=list(JOINTS), position=[1.0, 2.0, 3.0])
    joints.send(no_efforts)
    assert received[-1][1].tolist() == pytest.approx([0.9, 2.0, 3.0])


def test_offsets_of_parts_from_several_publishers(rig, plain):
    received = []
    source = JointStateInput(rig.node, JOINTS, keep(received), plain=plain,
                             offsets=(0.1, 0.2, 0.3))
    joints = Feed(rig, source, JointState, received)
    ns = stamp_of(joints.send(JointState(name=['hip'], position=[1.0])))
    joints.send(JointState(name=['ankle', 'knee'], position=[3.0, 2.0]), stamp=ns)
    assert received[-1][1].tolist() == pytest.approx([0.9, 1.8, 2.7])


def test_extra_joints_are_ignored(joints):
    joints.send(whole((1, 0, 2), extra=('gripper', 'neck')))
    assert joints.received[-1][1].tolist() == [1.0, 2.0, 3.0]
    assert not joints.source.refused


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


def test_duplicate_joint_is_named(joints):
    joints.send(JointState(name=['hip', 'knee', 'ankle', 'hip'], position=[1.0] * 4))
    assert joints.source.refused == {'duplicate joints': 1}
    assert "'hip' more than once" in joints.source.last_error and not joints.received


def test_duplicates_among_joints_of_others_do_not_matter(joints):
    joints.send(whole(extra=('finger', 'finger')))
    assert len(joints.received) == 1


def test_missing_joint_is_named_once_it_is_clear_that_it_does_not_come(joints):
    part = JointState(name=['ankle', 'hip'], position=[3.0, 1.0])
    joints.send(part)
    assert not joints.source.last_error  # another node may publish it
    joints.rig.spin(0.6)
    joints.send(part)
    assert joints.source.refused == {'missing joints': 2}
    assert "joint 'knee' was never received" in joints.source.last_error
    assert not joints.received


def test_optional_joints_may_be_missing(rig, plain):
    received = []
    source = JointStateInput(rig.node, JOINTS[:2], keep(received), optional_joints=JOINTS[2:],
                             plain=plain)
    feed = Feed(rig, source, JointState, received)
    feed.send(JointState(name=['knee', 'hip'], position=[2.0, 1.0]))
    assert received[-1][1].tolist() == [1.0, 2.0, 0.0]
    feed.send(whole((2, 1, 0)))
    assert received[-1][1].tolist() == [1.0, 2.0, 3.0]


def test_parts_from_several_publishers_are_put_together(joints):
    small = JointState(name=['hip'], position=[1.0], velocity=[0.1], effort=[10.0])
    large = JointState(name=['ankle', 'knee'], position=[3.0, 2.0], velocity=[0.3, 0.2],
                       effort=[30.0, 20.0])
    other = JointState(name=['gripper'], position=[9.0])
    joints.send(small)
    for _ in range(3):
        large_message = joints.send(large)
        rig_count = len(joints.received)
        joints.publisher.publish(other)
        small.header.stamp = joints.rig.peer.get_clock().now().to_msg()
        joints.publisher.publish(small)
        joints.rig.spin(0.05)
        assert len(joints.received) == rig_count  # the largest part sets the pace
    stamp, positions, velocities, efforts = joints.received[-1]
    assert len(joints.received) == 3
    assert stamp == ns_of_msg(large_message.header.stamp)
    assert positions[1:].tolist() == [2.0, 3.0]
    assert 1.0 < positions[0] < 1.01  # brought to the stamp by its velocity
    assert velocities.tolist() == [0.1, 0.2, 0.3]
    assert efforts.tolist() == [10.0, 20.0, 30.0]
    assert joints.source.last_error == '' or 'gripper' not in joints.source.last_error


@pytest.mark.parametrize('lag, expected', [(0.02, 1.2), (-0.01, 0.9), (0.4, 2.0)])
def test_late_parts_are_brought_to_the_stamp_by_their_velocities(joints, lag, expected):
    large = JointState(name=['ankle', 'knee'], position=[3.0, 2.0], velocity=[0.3, 0.2])
    now = joints.rig.peer.get_clock().now().nanoseconds
    joints.send(JointState(name=['hip'], position=[1.0], velocity=[10.0]), stamp=now)
    joints.send(large, stamp=now + int(lag * 1e9))
    np.testing.assert_allclose(joints.received[-1][1], (expected, 2.0, 3.0), atol=1e-9)
    still = JointState(name=['hip'], position=[1.0])
    still.header.stamp = stamp_to_msg(now + 440_000_000)
    joints.publisher.publish(still)
    joints.send(large, stamp=now + 460_000_000)  # no velocity told: as it was
    np.testing.assert_allclose(joints.received[-1][1], (1.0, 2.0, 3.0), atol=1e-9)


def test_part_that_falls_silent_is_named(joints):
    hip = JointState(name=['hip'], position=[1.0])
    others = JointState(name=['ankle', 'knee'], position=[3.0, 2.0])
    ns = stamp_of(joints.send(hip))
    joints.send(others, stamp=ns)
    assert len(joints.received) == 1
    joints.send(others, stamp=ns + 600_000_000)
    assert len(joints.received) == 1
    assert "joint 'hip' not received for 0.60 s" in joints.source.last_error


def test_names_may_change_in_mid_stream(joints):
    joints.send(whole((0, 1, 2)))
    joints.send(whole((2, 1, 0), extra=('new_tool',)))
    joints.send(whole((1, 0, 2), scale=2.0))
    assert [r[1].tolist() for r in joints.received] == [[1, 2, 3], [1, 2, 3], [2, 4, 6]]


def test_names_may_change_in_a_part_of_the_robot(joints):
    joints.send(JointState(name=['hip'], position=[1.0]))
    for names in (['knee', 'ankle'], ['ankle', 'knee'], ['knee', 'ankle']):
        before = len(joints.received)
        joints.send(JointState(name=names, position=[2.0 + (name == 'ankle') for name in names]))
        assert len(joints.received) == before + 1
        assert joints.received[-1][1].tolist() == [1.0, 2.0, 3.0]


def test_a_joint_where_it_cannot_be_is_named_and_not_used(rig, plain):
    received = []
    source = JointStateInput(
        rig.node, JOINTS, keep(received), plain=plain,
        limits=((-2.0, 2.0), (0.0, 2.5), (-float('inf'), float('inf'))))
    feed = Feed(rig, source, JointState, received)
    ns = stamp_of(feed.send(JointState(name=['ankle', 'knee', 'hip'], position=[90.0, 2.4, -2.0])))
    assert len(received) == 1
    degrees = JointState(name=['ankle', 'knee', 'hip'], position=[5.0, 28.6, 1.0])
    for step in (1, 2, 30):
        feed.send(degrees, stamp=ns + step * 1_000_000)
    assert source.refused == {'impossible position': 3} and len(received) == 1
    assert "position of 'knee' = 28.6 is implausible (valid: 0 to 2.5): check its unit" in (
        source.last_error)
    feed.send(whole(), stamp=ns + 31_000_000)
    assert len(received) == 2


def test_velocities_not_measured_are_filtered_differences(joints):
    start = joints.rig.peer.get_clock().now().nanoseconds
    for k, position in enumerate((1.0, 1.5, 1.25)):
        joints.send(JointState(name=['knee', 'hip', 'ankle'], position=[position, 0.0, 4.0]),
                    stamp=start + k * 10_000_000)
    assert not joints.source.velocities_measured and not joints.source.efforts_measured
    np.testing.assert_allclose([r[2] for r in joints.received],
                               [[0, 0, 0], [0, 25, 0], [0, 0, 0]], atol=1e-6)
    assert joints.received[-1][3].tolist() == [0.0, 0.0, 0.0]


def test_interfaces_that_ros2_control_reports_as_nan_are_not_measured(joints):
    start = joints.rig.peer.get_clock().now().nanoseconds
    for k, position in enumerate((1.0, 1.5)):
        joints.send(JointState(name=list(JOINTS), position=[position, 2.0, 3.0],
                               velocity=[NAN] * 3, effort=[NAN, 5.0, NAN]),
                    stamp=start + k * 10_000_000)
    assert joints.received[-1][2].tolist() == pytest.approx([25.0, 0.0, 0.0])
    assert joints.received[-1][3].tolist() == [0.0, 0.0, 0.0]
    assert not joints.source.efforts_measured and not joints.source.refused


def test_the_filter_takes_noise_out_of_differences(joints):
    start, rng = joints.rig.peer.get_clock().now().nanoseconds, np.random.default_rng(1)
    for k in range(200):
        joints.send(JointState(name=list(JOINTS), position=[
            0.5e-3 * k + 1e-4 * rng.normal(), 2.0, 3.0]), stamp=start + k * 2_000_000)
    speeds = np.array([r[2][0] for r in joints.received[50:]])
    assert speeds.mean() == pytest.approx(0.25, abs=0.01)
    assert speeds.std() < 0.3 * np.sqrt(2.0) * 1e-4 / 0.002


@pytest.mark.parametrize('velocity', [[], [NAN] * 3])
def test_a_driver_that_comes_back_without_velocities_is_used_again(rig, plain, velocity):
    received = []
    source = JointStateInput(
        rig.node, JOINTS, keep(received), plain=plain, uses_velocities=True)
    feed, start = Feed(rig, source, JointState, received), rig.peer.get_clock().now().nanoseconds

    def send(ms, velocity):
        feed.send(JointState(name=list(JOINTS), position=[1.0 + 1e-3 * ms, 2.0, 3.0],
                             velocity=velocity), stamp=start + ms * 1_000_000)
    send(0, [1.0, 0.0, 0.0])
    assert source.velocities_measured
    for ms in range(10, 700, 10):
        send(ms, velocity)
    assert not source.velocities_measured
    assert received[-1][0] == start + 690_000_000
    assert received[-1][2].tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)
    assert 'no velocities: differences of positions are used' in source.report()[1]
    send(700, [0.5, 0.0, 0.0])
    assert source.velocities_measured and received[-1][2][0] == 0.5
    assert 'velocities' not in source.report()[1]


def test_nan_between_good_velocities_is_refused_however_often(joints):
    start, good = joints.rig.peer.get_clock().now().nanoseconds, 0
    for k in range(90):
        is_good = k % 10 == 0
        joints.send(JointState(
            name=list(JOINTS), position=[1.0, 2.0, 3.0],
            velocity=[0.0 if is_good else NAN, 0.0, 0.0]), stamp=start + k * 10_000_000)
        good += is_good
    assert len(joints.received) == good and joints.source.velocities_measured


@pytest.mark.parametrize('message, complaint', [
    (JointState(name=list(JOINTS), position=[1.0, 2.0]), '3 names but 2 values of position'),
    (JointState(name=list(JOINTS), position=[1.0] * 3, velocity=[1.0]),
     '3 names but 1 values of velocity'),
    (JointState(name=list(JOINTS), effort=[1.0] * 3), '3 names but 0 values of position'),
    (JointState(name=['wheel'], position=[1.0]),
     "none of the joints 'hip', 'knee', 'ankle'; it has 'wheel'"),
    (JointState(), 'it has no joints at all')])
def test_errors_of_malformed_joint_states_name_what_is_wrong(joints, message, complaint):
    joints.send(message)
    assert complaint in joints.source.last_error and not joints.received
    joints.send(whole())
    assert len(joints.received) == 1


# -- stamps


def test_stamp_going_backward_is_refused_with_its_amount(joints):
    ns = stamp_of(joints.send(whole()))
    joints.send(whole(), stamp=ns - 250_000_000)
    assert joints.source.refused == {'stamp going backward': 1}
    assert 'is 0.250000 s before the last one' in joints.source.last_error
    joints.send(whole())
    assert len(joints.received) == 2


def test_two_publishers_of_one_topic_are_hinted_at(joints):
    ns = stamp_of(joints.send(whole()))
    second = joints.rig.peer.create_publisher(JointState, 'joint_states', 10)
    joints.rig.until(lambda: joints.rig.node.count_publishers('joint_states') == 2)
    joints.send(whole((2, 1, 0)), stamp=ns - 100_000_000)
    assert '2 nodes publish' in joints.source.last_error
    joints.rig.peer.destroy_publisher(second)


def test_repeated_stamp_is_refused(joints):
    joints.send(whole(), stamp=stamp_of(joints.send(whole())))
    assert joints.source.refused == {'repeated stamp': 1}


def test_zero_stamp_is_refused(joints):
    joints.send(whole(), stamp=0)
    assert joints.source.refused == {'zero stamp': 1}
    assert 'header.stamp' in joints.source.last_error


@pytest.mark.parametrize('shift, reason, words', [
    (-3.0, 'stale stamp', "behind the computer's clock"),
    (3.0, 'stamp from the future', "ahead of the computer's clock")])
def test_stamps_far_from_the_clock_are_refused(joints, shift, reason, words):
    joints.send(whole(), shift=shift)
    assert joints.source.refused == {reason: 1}
    assert words in joints.source.last_error and 'use_sim_time' in joints.source.last_error
    joints.send(whole())
    assert len(joints.received) == 1


def test_stale_stamps_in_mid_stream_are_refused_too(joints):
    """The clock is asked only now and then; a jump must not slip through in between."""
    joints.send(whole())
    joints.send(whole(), shift=5.0)
    assert joints.source.refused == {'stamp from the future': 1}
    joints.send(whole())
    assert len(joints.received) == 2


def test_clock_set_anew_starts_over(rig, plain):
    """As when a simulation restarts or a bag loops."""
    received = []
    source = JointStateInput(rig.node, JOINTS, keep(received), max_age=0.0, plain=plain)
    feed = Feed(rig, source, JointState, received)
    for ns in (100_000_000_000, 100_010_000_000, 2_000_000_000, 2_010_000_000):
        feed.send(JointState(name=list(JOINTS), position=[ns * 1e-9] * 3), stamp=ns)
    assert not source.refused
    assert [r[0] for r in received][2:] == [2_000_000_000, 2_010_000_000]
    # No velocity across the jump, and the filter begins at zero again.
    np.testing.assert_allclose([r[2][0] for r in received], [0.0, 0.5, 0.0, 0.5], atol=1e-6)


def test_simulated_time_is_the_measure_where_it_is_used(plain):
    rig = NodeRig(parameter_overrides=[Parameter('use_sim_time', value=True)])
    try:
        received = []
        source = PointInput(rig.node, 'com', 'odom', keep(received), plain=plain)
        feed = Feed(rig, source, PointStamped, received)
        point = PointStamped(header=Header(frame_id='odom'))
        feed.send(point, stamp=5_000_000_000)
        assert source.refused == {'no clock': 1} and not source.last_error  # still starting
        clock = rig.publisher(Clock, '/clock')
        clock.publish(Clock(clock=stamp_to_msg(10_000_000_000)))
        rig.until(lambda: rig.node.get_clock().now().nanoseconds == 10_000_000_000)
        feed.send(point, stamp=5_000_000_000)
        assert 'behind the simulated clock' in source.last_error
        feed.send(point, stamp=9_900_000_000)
        assert len(received) == 1
        assert source.age() == pytest.approx(0.1) and not source.stale()
        assert source.age(11_900_000_000) == pytest.approx(2.0)
        clock.publish(Clock(clock=stamp_to_msg(10_600_000_000)))
        rig.until(source.stale)
    finally:
        rig.close()


@pytest.mark.parametrize('field, good, bad, limit', [
    ('position', 9e5, -1.1e6, '1e+06 rad or m'), ('velocity', 999.0, -1001.0, '1000 rad/s or m/s'),
    ('effort', -9e5, 1.1e6, '1e+06 N m or N'), ('effort', 5000.0, 1e200, '1e+06 N m or N')])
def test_values_too_large_to_be_true_are_refused_by_joint(joints, field, good, bad, limit):
    message = whole()
    getattr(message, field)[1] = bad
    joints.send(message)
    assert joints.source.refused == {'too large': 1} and not joints.received
    assert (f"{field} of 'knee' = {bad:g} is implausible (limit {limit}): check its unit"
            in joints.source.last_error)
    getattr(message, field)[1] = good
    joints.send(message)
    assert len(joints.received) == 1


def test_unmeasured_efforts_do_not_hide_other_values_too_large_to_be_true(joints):
    message = whole()
    message.effort = [NAN] * 3
    joints.send(message)
    message.velocity[2] = 2000.0
    joints.send(message)
    assert joints.source.refused == {'too large': 1} and len(joints.received) == 1
    assert "velocity of 'ankle' = 2000 is implausible" in joints.source.last_error
