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
"""Every special way has a public one, which is taken where rclpy's private part is missing."""

from __future__ import annotations

from dataclasses import dataclass
import sys
from types import SimpleNamespace

from biped_com_ros.core.settings import setting
from biped_com_ros.ros.fast import compat
from biped_com_ros.ros.fast.codec import Decoder, Template
from biped_com_ros.ros.fast.subscription_pool import (
    pool_of, shared_subscriptions, SubscriptionPool)
from biped_com_ros.ros.node.parameters import declare_parameters
from biped_com_ros.ros.topics.inputs import PointInput
from geometry_msgs.msg import PointStamped
import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from support.input_feed import Feed

PLAIN = 'BIPED_COM_PLAIN'
GIVEN = {'rate': 50, 'names': ['a', 'b'], 'flag': False, 'rat': 3.0}


@dataclass(frozen=True)
class Declared:
    """Some of the parameters that are given."""

    rate: float = setting(10.0, 'How often', 'Hz', 0.0, 100.0)
    names: list[str] = setting(['x'], 'Who')


@pytest.fixture(params=['missing', 'not to be used'])
def public_only(request, monkeypatch):
    """Remove what `compat` uses and rclpy does not promise, or turn it off."""
    monkeypatch.setenv(PLAIN, str(int(request.param != 'missing')))
    if request.param == 'missing':
        monkeypatch.setitem(sys.modules, 'rclpy.experimental', None)
    return request.param


def test_the_environment_turns_every_special_way_off(rig, monkeypatch):
    for value, plain in (('0', False), ('1', True)):
        monkeypatch.setenv(PLAIN, value)
        assert compat.plain_requested() == plain
        with shared_subscriptions(SubscriptionPool(rig.node)):
            assert (pool_of(rig.peer) is None) == plain
        assert Template(Bool(), {'data': 'data'}).plain == plain
        assert Decoder(Bool, lambda message: None).plain == plain


def given_node(way=''):
    """Return a node that was given parameters; it hides them in the way 'missing'."""
    node = Node('given', parameter_overrides=[
        Parameter(name, value=value) for name, value in GIVEN.items()])
    if way == 'missing':
        given, node._parameter_overrides = node._parameter_overrides, None

        def declare(*arguments, **options):  # as ever, which needs what it hides from others
            node._parameter_overrides = given
            try:
                return Node.declare_parameter(node, *arguments, **options)
            finally:
                node._parameter_overrides = None
        node.declare_parameter = declare
    return node


def check_overrides(node, overrides):
    assert {name: compat.parameter_override(node, name) for name in GIVEN} == GIVEN
    assert compat.parameter_override(node, 'other') is None
    assert not any(node.has_parameter(name) for name in (*GIVEN, 'other'))
    assert compat.parameter_overrides(node) == overrides
    node.destroy_node()


def test_private_parts_are_used_where_they_are(monkeypatch):
    monkeypatch.delenv(PLAIN, raising=False)
    executor = compat.make_executor()
    assert compat.is_events_executor(executor)
    executor.shutdown()
    check_overrides(given_node(), GIVEN)


def test_public_ones_take_their_place(public_only):
    executor = compat.make_executor()
    assert isinstance(executor, SingleThreadedExecutor)
    assert not compat.is_events_executor(executor)
    executor.shutdown()
    check_overrides(given_node(public_only), {})  # misspelt ones are not warned of
    node = given_node(public_only)
    declared = declare_parameters(node, Declared)
    assert declared == Declared(rate=50.0, names=['a', 'b'])
    assert isinstance(declared.rate, float)
    assert node.get_parameter('rate').value == 50.0
    node.destroy_node()


@pytest.mark.parametrize('way', ['private', 'missing', 'not to be used'])
def test_bytes_are_published_in_every_way_until_the_publisher_is_destroyed(rig, monkeypatch, way):
    monkeypatch.setenv(PLAIN, '1' if way == 'not to be used' else '0')
    publisher = rig.node.create_publisher(Bool, 'flag', 1)
    send = compat.raw_publish(SimpleNamespace(publish=publisher.publish) if way == 'missing'
                              else publisher)
    assert (send == publisher.publish) == (way != 'private')
    received = rig.collect(Bool, 'flag')
    rig.until(publisher.get_subscription_count)
    send(serialize_message(Bool(data=True)))
    rig.until(lambda: received)
    assert received[0].data
    rig.node.destroy_publisher(publisher)
    with pytest.raises(Exception, match='(?i)publisher|publish|destr'):
        send(serialize_message(Bool()))


class Wrapped:
    """A callback in the place of another one."""

    def __init__(self, callback):
        self.callback = callback

    def __call__(self, *arguments):
        return ['wrapped', self.callback(*arguments)]


def wrapped_callbacks(*entities):
    return [isinstance(entity.callback, Wrapped) for entity in entities]


@pytest.fixture
def served():
    """Return a node with a callback of every kind, and these by name."""
    async def later(message):
        return message

    node = Node('served')
    yield node, SimpleNamespace(
        timer=node.create_timer(9.0, lambda: 'tick'),
        plain=node.create_subscription(Bool, 'one', lambda message: message.data, 1),
        raw=node.create_subscription(Bool, 'two', len, 1, raw=True),
        informed=node.create_subscription(Bool, 'three', lambda message, info: None, 1),
        later=node.create_subscription(Bool, 'four', later, 1),
        service=node.create_service(Trigger, 'serve', lambda request, response: response))
    node.destroy_node()


def test_callbacks_are_wrapped_once(served):
    node, made = served
    for _ in range(2):
        compat.wrap_callbacks(node, Wrapped, Wrapped)
    assert made.timer.callback() == ['wrapped', 'tick']
    assert made.plain.callback(Bool(data=True)) == ['wrapped', True]
    assert made.service.callback(None, 'response') == ['wrapped', 'response']
    assert wrapped_callbacks(made.raw, made.informed, made.later) == [False] * 3


def test_callbacks_stay_as_they_are_where_they_cannot_be_wrapped(served):
    node, made = served
    hidden = SimpleNamespace(timers=[SimpleNamespace(is_ready=lambda: True)],
                             subscriptions=[SimpleNamespace(raw=False), made.plain],
                             services=[object()])
    compat.wrap_callbacks(hidden, Wrapped, Wrapped)
    assert wrapped_callbacks(made.plain, made.timer) == [True, False]
    assert not any(hasattr(entity, 'callback') for entity in (*hidden.timers, *hidden.services))


def test_in_plain_mode_only_services_are_wrapped(served, monkeypatch):
    monkeypatch.setenv(PLAIN, '1')
    node, made = served
    compat.wrap_callbacks(node, Wrapped, Wrapped)
    assert wrapped_callbacks(made.timer, made.plain, made.service) == [False, False, True]
    assert compat.callback_of(made.raw) is len


def test_an_input_is_read_differently_by_the_same_subscription(rig):
    feed = Feed(rig, PointInput, 'point', '', max_age=0.5)
    feed.send(PointStamped(), shift=-1.0)
    assert feed.source.refused and not feed.received
    feed.source.max_age = 5.0
    feed.send(PointStamped(), shift=-1.0)
    assert len(feed.received) == 1
