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
What a node publishes does not depend on who listens to its other outputs.

Messages without subscribers are not built, which must change nothing else: a recording is played
to a node all of whose outputs have a subscriber, and then once for each output, which alone has
one. Its messages have to be equal to the last bit.
"""

from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.fast.compat import callback_of
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from support.ros_rig import NodeRig
from support.swaying_robot import swaying_robot

COUNT = 60
NODES = {'zmp_monitor': ZmpMonitor, 'com_estimator': ComEstimator}
#: Of every node, and not of what it estimates.
COMMON = ('/diagnostics', '/parameter_events', '/rosout', '/transition_event')


@pytest.fixture(scope='module')
def recording():
    """Return (topic, serialized message) of all sensors of a swaying robot, by instants."""
    return [[(topic, serialize_message(message)) for topic, message in reversed(found.items())]
            for _, found in swaying_robot(COUNT)]


class Listeners(NodeRig):
    """
    A node, and subscribers of some of its outputs.

    Parameters
    ----------
    name
        Of the node.
    chosen
        Topics of the outputs with a subscriber; default: all of them.

    """

    def __init__(self, name, chosen=()):
        self.space = f'/{name}_listeners'
        super().__init__(node=NODES[name](
            namespace=self.space, cli_args=['--ros-args', '-r', '/tf:=tf'],
            parameter_overrides=[Parameter('robot', value='biped'),
                                 Parameter('max_stamp_age', value=0.0),
                                 Parameter('marker_rate', value=1e4)]))
        self.spin(0.5)  # some publishers are created later
        self.until(lambda: set(chosen) <= self.outputs().keys(), what='publishers')
        outputs = self.outputs()
        self.types = {topic: output.msg_type for topic, output in outputs.items()}
        self.received = {topic: [] for topic in chosen or outputs}
        for topic, received in self.received.items():
            self.peer.create_subscription(
                self.types[topic], topic, received.append, LATCHED
                if outputs[topic].qos_profile.durability == LATCHED.durability else 50, raw=True)
        self.until(lambda: all(outputs[topic].get_subscription_count() == 1
                               for topic in self.received), what='subscribers')
        self.spin(0.25)  # publishers look for subscribers ten times a second
        for received in self.received.values():
            received.clear()
        assert not any(publisher.get_subscription_count() for topic, publisher in outputs.items()
                       if topic not in self.received)

    def outputs(self):
        """Return the publishers of what the node estimates, by topic."""
        return {publisher.topic_name: publisher for publisher in self.node.publishers
                if not publisher.topic_name.endswith(COMMON)}

    def play(self, recording, expected=None):
        """Hand messages to the node, and wait until its own have been received."""
        callbacks = {subscription.topic_name: callback_of(subscription)
                     for subscription in self.node.subscriptions}
        for instant in recording:
            for topic, raw in instant:
                if (callback := callbacks.get(f'{self.space}/{topic}')) is not None:
                    callback(raw)
            self.spin(0.002)
        count = {topic: len(got) for topic, got in (expected or {}).items()}
        self.until(lambda: all(len(got) >= count.get(topic, 0)
                               for topic, got in self.received.items()), what='the messages')
        self.spin(0.0 if expected else 0.5)
        return {topic: [deserialize_message(raw, self.types[topic]) for raw in got]
                for topic, got in self.received.items()}


def play(name, recording, chosen=(), expected=None):
    rig = Listeners(name, chosen)
    try:
        return rig.play(recording, expected)
    finally:
        rig.close()


def by_stamp(arrays):
    """Return arrays of markers by their stamps: of latched messages only the last one is kept."""
    return {str(array.markers[0].header.stamp): array for array in arrays}


@pytest.mark.parametrize('name', NODES)
def test_an_output_does_not_depend_on_other_subscribers(recording, name):
    together = play(name, recording)
    assert sum(len(messages) >= COUNT for messages in together.values()) >= 7
    for topic, expected in together.items():
        latched = topic.endswith('/markers')
        alone = play(name, recording, (topic,), {} if latched else together)[topic]
        if latched:
            alone, expected = by_stamp(alone), by_stamp(expected)
            common = alone.keys() & expected.keys()
            assert len(common) > COUNT // 4, topic
            alone, expected = ({stamp: each[stamp] for stamp in common}
                               for each in (alone, expected))
        assert alone == expected, topic
