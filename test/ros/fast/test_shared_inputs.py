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
"""Inputs of several nodes in one process: what they all take comes and is read once."""

from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.fast.compat import callback_of
from biped_com_ros.ros.fast.message_reader import RefusedMessage
from biped_com_ros.ros.fast.subscription_pool import (
    pool_of, shared_subscriptions, SubscriptionPool)
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.inputs import ImuInput, JointStateInput, PointInput
from biped_com_ros.ros.topics.outputs import point_publisher
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, LATCHED
from biped_com_ros.ros.topics.stamp import now_ns, stamp_to_msg
from geometry_msgs.msg import Point, PointStamped
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

JOINTS = ('hip', 'knee', 'ankle')
NAN = float('nan')


class InputListener:
    """A node with an input, and what it got; messages are handed over as the executor does."""

    def __init__(self, node, joints=JOINTS, **options):
        self.node, self.got = node, []
        self.source = JointStateInput(node, joints, self.on_joints, **options)

    def on_joints(self, stamp, *arrays):
        self.got.append((stamp, *(array.tolist() for array in arrays)))

    def take(self, raw):
        callback_of(self.source.subscription)(raw)

    @property
    def positions(self):
        return [got[1] for got in self.got]


class SharedInputRig:
    """Nodes that share their inputs, and the robot that they listen to."""

    def __init__(self):
        self.context = rclpy.Context()
        self.context.init()
        self.nodes = []
        self.hub = self.node('hub')
        self.pool = SubscriptionPool(self.hub)
        self._ns = self.hub.get_clock().now().nanoseconds

    def node(self, name, **options):
        self.nodes.append(Node(name, context=self.context, **options))
        return self.nodes[-1]

    def listener(self, *arguments, node=None, **options):
        node = node or self.node(f'listener_{len(self.nodes)}')
        with shared_subscriptions(self.pool):
            return InputListener(node, *arguments, **options)

    def send(self, value=0.0, velocity=2.0, step=1_000_000, names=JOINTS):
        """Bring joint states, each a millisecond after the other, to all."""
        self._ns += step
        message = JointState(name=list(names), position=[value + i for i in range(len(names))],
                             velocity=[velocity] * len(names), effort=[3.0] * len(names))
        message.header.stamp = stamp_to_msg(self._ns)
        for subscription in self.subscriptions:
            callback_of(subscription)(bytes(serialize_message(message)))

    @property
    def subscriptions(self):
        return [subscription for node in self.nodes for subscription in node.subscriptions
                if subscription.raw]

    def close(self):
        for node in self.nodes:
            node.destroy_node()
        self.context.shutdown()


@pytest.fixture
def company(closing):
    return closing(SharedInputRig())


@pytest.fixture
def read(monkeypatch):
    """Return a list of all messages that were read."""
    read, plan_for = [], codec.Decoder.plan_for
    monkeypatch.setattr(codec.Decoder, 'plan_for', lambda decoder, raw: (
        read.append(raw) or plan_for(decoder, raw)))
    return read


def test_a_message_is_received_and_read_once_for_all_in_the_order_of_the_inputs(company, read):
    listeners = [company.listener() for _ in range(3)]
    backward = company.listener(JOINTS[::-1])
    assert [s.topic_name for s in company.subscriptions] == ['/joint_states']
    assert company.subscriptions == list(company.hub.subscriptions)
    company.send()  # learn how it is built
    del read[:]
    for value in (1.0, 2.0, 3.0):
        company.send(value)
    assert len(read) == 6, 'once for each order of the joints'
    for listener in listeners:
        assert listener.positions[1:] == [[v, v + 1.0, v + 2.0] for v in (1.0, 2.0, 3.0)]
        assert listener.got == listeners[0].got, 'and with the same stamps'
        assert listener.source.count == 4 and not listener.source.refused
        assert listener.source.stamp_ns == listener.got[-1][0]
    assert backward.positions == [p[::-1] for p in listeners[0].positions]
    order = []
    for name, listener in zip('abc', listeners):
        listener.source.callback = lambda *_, name=name: order.append(name)
    company.send()
    company.send()
    assert order == list('abcabc')


def test_an_input_with_a_longer_period_gets_each_part_of_the_robot_as_often(company):
    everything = company.listener(('left', 'rite'))
    seldom = company.listener(('left', 'rite'), period=0.01)
    for i in range(60):  # in turns, a millisecond after each other; their messages are as long
        company.send(0.002 * i, velocity=2.0, names=(('left', 'rite')[i % 2],))
    full = {stamp: positions for stamp, positions, *_ in everything.got}
    times = [stamp for stamp, *_ in seldom.got]
    assert len(full) == 29 and np.diff(times).tolist() == [10_000_000] * 4
    assert seldom.source.count == 5 and seldom.source.refused == everything.source.refused
    for (_, positions, *_), ns in zip(seldom.got, times):
        assert positions == pytest.approx(full[ns])  # carried on from further back


@pytest.mark.parametrize(('option', 'value', 'later'), [
    ('max_age', 0.0, False), ('timeout', 9.0, False),
    ('max_age', 0.0, True), ('max_age', 60.0, True), ('timeout', 9.0, True)])
def test_inputs_with_other_options_have_their_own_reader(company, option, value, later):
    first, second = company.listener(), company.listener(**({} if later else {option: value}))
    if later:
        assert first.source.reader is second.source.reader
        company.send(1.0)
        setattr(second.source, option, value)
        assert second.source.positions.tolist() == [1.0, 2.0, 3.0], 'until more arrive'
    assert first.source.reader is not second.source.reader
    assert first.source.subscription is second.source.subscription
    assert len(company.subscriptions) == 1
    company.send(2.0)
    company.send(3.0, step=5_000_000_000)
    accepted, late = option == 'max_age', {'stamp from the future': 1}
    assert first.source.refused == late and second.source.refused == ({} if accepted else late)
    assert first.positions == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]][not later:]
    assert second.positions == first.positions + [[3.0, 4.0, 5.0]] * accepted
    setattr(second.source, option, getattr(first.source, option))
    assert first.source.reader is second.source.reader
    company.send(4.0)
    assert second.source.refused['stamp from the future'] == 2 - accepted
    assert len(second.got) == len(first.got) + accepted


def test_options_of_diagnostics_do_not_need_another_reader(company):
    first, second = company.node('first'), company.node('second')
    with shared_subscriptions(company.pool):
        inputs = [ImuInput(first, 'imu', '', lambda *_: None, timeout=0.1),
                  ImuInput(second, 'imu', '', lambda *_: None, timeout=2.0, required=False)]
    assert inputs[0].reader is inputs[1].reader
    assert [source.timeout for source in inputs] == [0.1, 2.0]
    assert inputs[0].report()[0] != inputs[1].report()[0]


def test_another_qos_is_another_subscription(company):
    """A second one of a latched topic would not get the last message."""
    node = company.node('special', parameter_overrides=[
        Parameter('qos_overrides./joint_states.subscription.depth', value=3)])
    usual, special, reliable = (
        company.listener(), company.listener(node=node), company.listener(qos=COMMAND_INPUT))
    latched = [company.listener(qos=LATCHED) for _ in range(2)]
    assert len({listener.source.subscription for listener in (
        usual, special, reliable, *latched)}) == 5
    assert special.source.subscription.qos_profile.depth == 3
    assert usual.source.subscription.qos_profile.depth == 10
    assert usual.node.get_parameter(
        'qos_overrides./joint_states.subscription.reliability').value == 'best_effort'
    wrong = company.node('wrong', parameter_overrides=[
        Parameter('qos_overrides./joint_states.subscription.reliability', value='certain')])
    with pytest.raises(UnknownNameError, match="'certain'.*best_effort"):
        company.listener(node=wrong)


def test_remappings_of_each_node_apply(company):
    renamed = company.node('renamed', cli_args=['--ros-args', '-r', 'joint_states:=other'])
    same = company.node('same', cli_args=['--ros-args', '-r', 'arms:=joint_states'])
    usual, other, arms = (company.listener(), company.listener(node=renamed),
                          company.listener(node=same, topic='arms'))
    assert other.source.topic == '/other'
    assert arms.source.topic == '/joint_states'
    assert arms.source.reader is usual.source.reader is not other.source.reader


def test_each_input_uses_the_clock_of_its_node(company):
    simulated = company.node('simulated', parameter_overrides=[
        Parameter('use_sim_time', value=True)])
    real, other = company.listener(), company.listener(node=simulated)
    company.send(1.0)
    assert real.positions == [[1.0, 2.0, 3.0]]
    assert other.source.refused == {'no clock': 1}


def test_errors_of_one_callback_do_not_affect_the_others_and_each_counts_its_own(company):
    listeners = [company.listener() for _ in range(4)]

    def fail(*_):
        raise ValueError('of one callback')

    def refuse(*_):
        raise RefusedMessage('implausible', 'it is not plausible')

    def write(stamp, positions, velocities, efforts):
        positions += 1.0
    for listener, callback in zip(listeners, (fail, refuse, write)):
        listener.source.callback = callback
    company.send(1.0)
    company.send(NAN)
    company.send(2.0, step=0)
    failing, refusing, writing, good = listeners
    assert good.positions == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    assert [callback_errors(listener.node).count for listener in listeners] == [2, 0, 2, 0]
    assert refusing.source.refused == {'implausible': 2, 'not finite': 1}
    assert refusing.source.last_error == "'/joint_states': it is not plausible"
    assert failing.source.refused == good.source.refused == {'not finite': 1}
    assert "'hip' = nan" in good.source.last_error


def test_nodes_come_and_go(company):
    first, second = company.listener(), company.listener()
    company.send(1.0)
    first.source.destroy()
    company.send(2.0)
    third = company.listener(node=first.node)
    company.send(3.0)
    assert [p[0] for p in first.positions] == [1.0]
    assert [p[0] for p in second.positions] == [1.0, 2.0, 3.0]
    assert [p[0] for p in third.positions] == [3.0] and third.source.count == 1
    for listener in (second, third):
        assert len(company.subscriptions) == 1
        listener.source.destroy()
    assert not company.subscriptions
    fourth = company.listener()
    company.send(4.0)
    assert [p[0] for p in fourth.positions] == [4.0]


def test_an_input_destroyed_during_delivery_does_not_get_the_message(company):
    first, second = company.listener(), company.listener()
    first.source.callback = lambda *_: second.source.destroy()
    company.send(1.0)
    company.send(2.0)
    assert not second.got and first.source.count == 2


@pytest.mark.parametrize('is_shared', (True, False))
def test_a_message_that_was_taken_before_the_input_was_destroyed_is_ignored(company, is_shared):
    listener = company.listener() if is_shared else InputListener(company.node('alone'))
    company.send(1.0)
    taken = callback_of(company.subscriptions[0])
    late = JointState(name=list(JOINTS), position=[1.0] * len(JOINTS))
    late.header.stamp = stamp_to_msg(listener.got[0][0] + 200_000_000)
    listener.source.destroy()
    reader = listener.source.reader
    for deliver in (taken, reader.receive):
        deliver(bytes(serialize_message(late)))
    assert len(listener.got) == reader.count == 1


@pytest.mark.parametrize('is_shared', (True, False))
def test_differences_of_positions_go_on_with_another_limit(company, is_shared):
    steady, changed = company.listener(), (
        company.listener() if is_shared else InputListener(company.node('alone')))
    for i in range(40):
        company.send(0.01 * i * i, velocity=NAN)
        if i == 20:
            changed.source.max_age = 2.0
    assert len(changed.got) == 40 and changed.got[39][2][0] > 10.0
    assert changed.got == steady.got
    company.send(velocity=NAN, step=0)
    assert changed.source.refused == {'repeated stamp': 1}
    company.send(1.0)
    changed.source.max_age = 3.0
    assert changed.source.velocities_measured and changed.source.efforts_measured
    company.send(2.0, velocity=NAN)
    assert changed.source.refused['not finite'] == 1, 'what was once measured is missed'


def test_the_frame_of_a_vector_stays_known_with_another_limit(company):
    with shared_subscriptions(company.pool):
        source = PointInput(company.node('one'), 'point', '', lambda *_: None)
    message = PointStamped(point=Point(x=1.0, y=2.0, z=3.0), header=Header(
        frame_id='there', stamp=stamp_to_msg(now_ns(company.hub.get_clock()))))
    callback_of(company.subscriptions[0])(bytes(serialize_message(message)))
    source.max_age = 5.0
    assert (source.frame, source.values.tolist()) == ('there', [1.0, 2.0, 3.0])


def test_inputs_that_a_node_creates_later_are_shared_too(company):
    node, stranger = company.node('late'), company.node('stranger')
    assert pool_of(node) is None
    company.pool.add_node(node)
    assert pool_of(node) is company.pool and pool_of(stranger) is None
    early, late, alone = company.listener(), InputListener(node), InputListener(stranger)
    assert late.source.reader is early.source.reader
    assert alone.source.subscription in stranger.subscriptions


def test_nodes_of_a_process_get_each_message_once_and_so_do_others(rig):
    """As everything else: through the middleware, in order, whoever else subscribes."""
    first, second, got, received = Node('first'), Node('second'), [], []
    out = point_publisher(first, '/out', 'there')

    def repeat(stamp_ns, point):
        out.fields['point'][...] = point
        out.publish(stamp_ns)
    with shared_subscriptions(SubscriptionPool(rig.node)):
        PointInput(first, '/in', '', repeat, max_age=0.0)
        PointInput(second, '/in', '', lambda _, point: received.append(point[0]), max_age=0.0)
        PointInput(second, '/out', '', lambda _, point: got.append(point[0]), max_age=0.0)
    try:
        publisher, outside = rig.publisher(PointStamped, '/in'), rig.collect(PointStamped, '/out')
        assert rig.peer.count_subscribers('/in') == 1
        for number in (1, 2, 3):
            publisher.publish(PointStamped(
                header=Header(stamp=stamp_to_msg(number)), point=Point(x=float(number))))
        rig.until(lambda: len(got) == len(outside) == 3, what='all three')
        assert got == received == [message.point.x for message in outside] == [1.0, 2.0, 3.0]
    finally:
        for node in (first, second):
            node.destroy_node()


def test_an_imu_shows_what_callbacks_get(company):
    got = []
    with shared_subscriptions(company.pool):
        sources = [ImuInput(company.node(name), 'imu', '', lambda stamp, *arrays: got.append(
            np.concatenate(arrays))) for name in ('one', 'other')]
    message = Imu()
    message.header.frame_id = 'imu_link'
    message.header.stamp = stamp_to_msg(now_ns(company.hub))
    message.linear_acceleration.z = 9.81
    callback_of(sources[0].subscription)(bytes(serialize_message(message)))
    assert len(got) == 2
    for source, values in zip(sources, got):
        assert values.tolist() == source.values[:10].tolist() == [0.0] * 3 + [1.0] + [0.0] * 5 + [
            9.81]
        assert source.frame == 'imu_link'
        with pytest.raises(ValueError, match='read-only'):
            source.values[0] = 1.0
