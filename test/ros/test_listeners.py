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

gravity_compensation is the exception: its efforts begin when a controller subscribes to them.
"""

from contextlib import closing

from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.fast.compat import callback_of
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from support.driven_time import run_ready
from support.messages import parameters
from support.plant_rig import biped_file
from support.ros_rig import NodeRig
from support.swaying_robot import swaying_robot

COUNT = 30
#: Of every node, and not of what it estimates.
COMMON = ('/diagnostics', '/parameter_events', '/rosout', '/transition_event')
pytestmark = pytest.mark.thorough


@pytest.fixture(scope='module')
def recording():
    """Return (topic, serialized message) of all sensors of a swaying robot, by instants."""
    return [[(topic, serialize_message(message)) for topic, message in reversed(found.items())]
            for _, found in swaying_robot(COUNT, foot_sensors=True)]


class Listeners(NodeRig):
    """A node, and subscribers of the chosen ones of its outputs; default: of all of them."""

    def __init__(self, node_class, robot, values, chosen=()):
        self.space = f'/{node_class.__name__.lower()}_listeners'
        super().__init__(node=node_class(
            namespace=self.space, cli_args=['--ros-args', '-r', '/tf:=tf'],
            parameter_overrides=parameters(
                robot=robot, max_stamp_age=0.0, marker_rate=1e4, **values)))
        self.spin(0.5)  # some publishers are created later
        outputs = {publisher.topic_name: publisher for publisher in self.node.publishers
                   if not publisher.topic_name.endswith(COMMON)}
        self.types = {topic: output.msg_type for topic, output in outputs.items()}
        self.received = {topic: [] for topic in chosen or outputs}
        for topic, received in self.received.items():
            self.peer.create_subscription(
                self.types[topic], topic, received.append, LATCHED
                if outputs[topic].qos_profile.durability == LATCHED.durability else 50, raw=True)
        self.until(lambda: all(output.get_subscription_count() == (topic in self.received)
                               for topic, output in outputs.items()), what='subscribers')
        self.until(lambda: all(received for topic, received in self.received.items()
                               if topic.endswith('/offsets')), what='what was published at start')
        self.spin(0.25)  # publishers look for subscribers ten times a second
        for received in self.received.values():
            received.clear()

    def play(self, recording):
        """Hand messages to the node, and return its own by topic."""
        callbacks = {subscription.topic_name: callback_of(subscription)
                     for subscription in self.node.subscriptions}
        for instant in recording:
            for topic, raw in instant:
                if (callback := callbacks.get(f'{self.space}/{topic}')) is not None:
                    callback(raw)
            run_ready(self.executor)
        return {topic: [deserialize_message(raw, self.types[topic]) for raw in got]
                for topic, got in self.received.items()}


@pytest.mark.parametrize(('node_class', 'feet', 'values'), [
    (ZmpMonitor, 'sensor', {}), (ComEstimator, 'sensor', {}),
    (ComEstimator, 'sensor', {'base_source': 'filter'}), (WrenchAggregator, 'sensor', {}),
    (WrenchAggregator, 'virtual', {})])
def test_an_output_does_not_depend_on_other_subscribers(
        recording, tmp_path, node_class, feet, values):
    case = node_class, biped_file(tmp_path, feet), values
    with closing(Listeners(*case)) as rig:
        together = rig.play(recording)
    # A wrench of the first instant comes before the posture that it needs.
    least = COUNT - (node_class is WrenchAggregator)
    assert sum(len(messages) >= least for messages in together.values()) >= 7
    for topic, expected in together.items():
        with closing(Listeners(*case, (topic,))) as rig:
            assert rig.play(recording)[topic] == expected, topic
