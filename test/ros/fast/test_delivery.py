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
"""What nodes of one process publish for each other goes straight to them; else all is as ever."""

from __future__ import annotations

from biped_com_ros.ros.fast import delivery
from biped_com_ros.ros.fast.sharing import Exchange, shared_inputs
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.inputs import PointInput
from biped_com_ros.ros.topics.outputs import point_publisher
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, LATCHED, SENSOR_INPUT
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from geometry_msgs.msg import PointStamped
import pytest
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from support.ros_rig import NodeRig


class Chain(NodeRig):
    """
    A node that repeats on ``/out`` what comes on ``/in``, and one that listens, in one process.

    Attributes
    ----------
    got
        What the second one got.
    log
        What happened, in order.

    """

    def __init__(self, output_qos=COMMAND_INPUT, input_qos=SENSOR_INPUT):
        super().__init__('hub')
        self.nodes = [Node('first'), Node('second')]
        self.exchange = Exchange(self.node)
        self.got, self.log, self.repeat = [], [], 1
        with shared_inputs(self.exchange):
            first, second = self.nodes
            self.out = point_publisher(first, '/out', 'there', qos=output_qos)
            self.source = PointInput(first, '/in', '', self.on_in, max_age=0.0)
            self.sink = PointInput(second, '/out', '', self.on_out, max_age=0.0, qos=input_qos)
        for node in self.nodes:
            self.executor.add_node(node)
        self.driver = self.publisher(PointStamped, '/in')
        self._ns = 10**9

    def on_in(self, stamp, point):
        self.log.append(('first begins', point[0]))
        for repetition in range(self.repeat):
            self.say(point[0] + 0.1 * repetition, stamp + repetition)
        self.log.append(('first ends', point[0]))

    def on_out(self, stamp, point):
        self.got.append(round(point[0], 1))
        self.log.append(('second', round(point[0], 1)))

    def say(self, value, stamp):
        self.out.fields['point'][...] = value, 0.0, 0.0
        self.out.publish(stamp)

    def send(self, *values, wait=True):
        """Bring values to the first node; wait until the last one is through both."""
        for value in values:
            self.driver.publish(self.message(value))
            if wait:
                self.until(lambda value=value: ('first ends', value) in self.log, what='a value')
                self.until(lambda value=value: value in self.got, what='its repetition')

    def message(self, value):
        message = PointStamped()
        message.header.stamp = stamp_to_msg(self.next_stamp())
        message.point.x = float(value)
        return message

    def next_stamp(self):
        self._ns += 1_000_000
        return self._ns

    def close(self):
        super().close()
        for node in self.nodes:
            node.destroy_node()


@pytest.fixture
def sent(monkeypatch):
    """Return a list of all bytes that were given to the middleware on routes within a process."""
    sent, original = [], delivery.raw_publish

    def recording(publisher):
        send = original(publisher)
        return lambda raw: (sent.append(raw), send(raw))
    monkeypatch.setattr(delivery, 'raw_publish', recording)
    return sent


@pytest.fixture
def chain(sent):
    chain = Chain()
    yield chain
    chain.close()


def test_nothing_is_given_to_the_middleware_where_nobody_else_listens(chain, sent):
    chain.send(1, 2, 3)
    chain.spin(0.2)
    assert chain.got == [1, 2, 3] and not sent
    assert chain.sink.count == 3 and not chain.sink.refused
    assert chain.peer.count_publishers('/out') == chain.peer.count_subscribers('/out') == 1


def test_it_is_read_when_the_callback_that_published_it_has_ended(chain):
    chain.repeat = 3
    chain.send(1)
    assert chain.log == [('first begins', 1), ('first ends', 1), ('second', 1.0), ('second', 1.1),
                         ('second', 1.2)]


def test_who_listens_outside_gets_it_and_nobody_gets_it_twice(chain, sent):
    chain.send(1)
    heard = []
    listener = chain.peer.create_subscription(
        PointStamped, '/out', lambda message: heard.append(message.point.x), 10)
    chain.until(lambda: chain.out.publisher.get_subscription_count() == 2, what='the listener')
    chain.spin(0.12)
    chain.send(2, 3)
    chain.until(lambda: heard == [2, 3], what='what is heard outside')
    assert len(sent) == 2
    chain.peer.destroy_subscription(listener)
    chain.until(lambda: chain.out.publisher.get_subscription_count() == 1, what='its end')
    chain.spin(0.12)
    chain.send(4, 5)
    assert len(sent) == 2 and chain.got == [1, 2, 3, 4, 5] and not chain.sink.refused


def test_what_the_middleware_still_has_comes_first(chain, sent):
    """As after a listener left, or where a timer has published."""
    chain.send(1)
    chain.say(2, chain.next_stamp())
    assert len(sent) == 1 and chain.got == [1]
    chain.source.subscription.callback(rclpy.serialization.serialize_message(chain.message(3)))
    assert chain.got == [1, 2, 3] and len(sent) == 1
    chain.spin(0.1)
    assert chain.got == [1, 2, 3] and not chain.sink.refused


def test_what_a_timer_publishes_wakes_the_executor(chain, sent):
    timer = chain.nodes[0].create_timer(0.01, lambda: (
        chain.say(7, chain.next_stamp()), timer.cancel()))
    chain.until(lambda: chain.got == [7], what='what the timer said')
    assert len(sent) == 1


def test_who_publishes_from_outside_is_heard(chain, sent):
    chain.send(1)
    other = chain.publisher(PointStamped, '/out')
    other.publish(chain.message(5))
    chain.until(lambda: chain.got == [1, 5], what='the other publisher')
    chain.send(6)
    assert chain.got == [1, 5, 6] and not sent


@pytest.mark.parametrize('output_qos, input_qos', [(LATCHED, SENSOR_INPUT), (LATCHED, LATCHED)])
def test_what_has_to_be_kept_is_given_to_the_middleware(output_qos, input_qos):
    chain = Chain(output_qos, input_qos)
    try:
        chain.send(1, 2)
        heard = chain.collect(PointStamped, '/out', LATCHED)
        chain.until(lambda: [message.point.x for message in heard] == [2], what='the last one')
        assert chain.got == [1, 2]
    finally:
        chain.close()


def test_qualities_of_service_that_do_not_fit_do_not_here_either():
    """Best effort offered, reliable wanted."""
    chain = Chain(SENSOR_INPUT, COMMAND_INPUT)
    try:
        chain.driver.publish(chain.message(1))
        chain.until(lambda: ('first ends', 1) in chain.log, what='the first node')
        chain.spin(0.1)
        assert not chain.got
    finally:
        chain.close()


def test_those_who_read_it_otherwise_get_it_too(chain, sent):
    other = []
    with shared_inputs(chain.exchange):
        PointInput(chain.nodes[0], '/out', 'there', lambda _, point: other.append(point[0]),
                   max_age=0.0, qos=COMMAND_INPUT)
    assert len({subscription for subscription in chain.node.subscriptions
                if subscription.topic_name == '/out'}) == 2
    chain.until(lambda: chain.out.publisher.get_subscription_count() == 2, what='both')
    chain.send(1, 2)
    assert chain.got == other == [1, 2] and not sent


def test_what_a_reader_raises_is_its_own_affair(chain):
    chain.sink.callback = None
    chain.driver.publish(chain.message(1))
    chain.until(lambda: callback_errors(chain.nodes[1]).count == 1, what='the mishap')
    assert ('first ends', 1) in chain.log and callback_errors(chain.nodes[0]).count == 0
    chain.sink.callback = chain.on_out
    chain.send(2)
    assert chain.got == [2]


def test_readers_and_outputs_come_and_go(chain, sent):
    chain.send(1)
    chain.sink.destroy()
    chain.driver.publish(chain.message(2))
    chain.until(lambda: ('first ends', 2) in chain.log, what='the first node')
    with shared_inputs(chain.exchange):
        chain.sink = PointInput(chain.nodes[1], '/out', '', chain.on_out, max_age=0.0)
    chain.send(3)
    assert chain.got == [1, 3]
    chain.out.destroy()
    chain.driver.publish(chain.message(4))
    chain.until(lambda: callback_errors(chain.nodes[0]).count == 1, what='the complaint')
    assert chain.got == [1, 3]


# -- /clock


class Suite(NodeRig):
    """Nodes of one process: two by simulated time, one by another topic, one by the computer's."""

    def __init__(self):
        super().__init__('hub')
        simulated = {'parameter_overrides': [Parameter('use_sim_time', value=True)]}
        self.nodes = [Node('one', **simulated), Node('two', **simulated), Node(
            'other', cli_args=['--ros-args', '-r', '/clock:=/time'], **simulated), Node('real')]
        exchange = Exchange(self.node)
        for node in self.nodes:
            exchange.adopt(node)
            exchange.adopt(node)
            self.executor.add_node(node)
        self.clocks = {topic: self.publisher(Clock, topic) for topic in ('/clock', '/time')}

    def set_clock(self, topic, seconds):
        self.clocks[topic].publish(Clock(clock=rclpy.time.Time(seconds=seconds).to_msg()))

    def times(self):
        return [node.get_clock().now().nanoseconds * 1e-9 for node in self.nodes[:3]]

    def close(self):
        super().close()
        for node in self.nodes:
            node.destroy_node()


@pytest.fixture
def suite():
    suite = Suite()
    yield suite
    suite.close()


def test_one_subscription_sets_all_clocks(suite):
    assert suite.peer.count_subscribers('/clock') == suite.peer.count_subscribers('/time') == 1
    suite.set_clock('/clock', 5.0)
    suite.until(lambda: suite.times() == [5.0, 5.0, 0.0], what='the clock')
    suite.set_clock('/time', 7.0)
    suite.until(lambda: suite.times() == [5.0, 5.0, 7.0], what='the other one')
    suite.set_clock('/clock', 3.0)
    suite.until(lambda: suite.times() == [3.0, 3.0, 7.0], what='a clock that was set back')
    assert suite.nodes[3].get_clock().now().nanoseconds > 10**18


def test_each_node_still_decides_by_which_clock_it_goes(suite):
    suite.set_clock('/clock', 5.0)
    suite.until(lambda: suite.times()[:2] == [5.0, 5.0], what='the clock')
    suite.nodes[0].set_parameters([Parameter('use_sim_time', value=False)])
    suite.set_clock('/clock', 6.0)
    suite.until(lambda: suite.times()[1] == 6.0, what='the clock')
    assert suite.times()[0] > 1e9
    suite.nodes[0].set_parameters([Parameter('use_sim_time', value=True)])
    suite.set_clock('/clock', 8.0)
    suite.until(lambda: suite.times()[:2] == [8.0, 8.0], what='both again')


def test_timers_go_by_the_clock_that_is_shared(suite):
    calls = []
    suite.nodes[1].create_timer(1.0, lambda: calls.append(suite.times()[1]))
    suite.set_clock('/clock', 100.0)
    suite.until(lambda: suite.times()[1] == 100.0, what='the clock')
    for seconds in (101.5, 102.5):
        suite.set_clock('/clock', seconds)
        suite.until(lambda seconds=seconds: seconds in calls, what='the timer')


def test_a_node_that_ends_takes_its_clock_along(suite):
    suite.executor.remove_node(suite.nodes[0])
    suite.nodes.pop(0).destroy_node()
    suite.set_clock('/clock', 5.0)
    suite.until(lambda: suite.times()[0] == 5.0, what='the clock of the other one')
