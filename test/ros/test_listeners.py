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

from biped_com_ros.core.model.config import robot_file
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.fast.compat import callback_of
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from support.ros_rig import NodeRig
from support.swaying_robot import swaying_robot
import yaml

COUNT = 60
#: Class, robot and parameters by case.
CASES = {
    'zmp_monitor': (ZmpMonitor, 'biped', {}),
    'com_estimator': (ComEstimator, 'biped', {}),
    'com_estimator, filter': (ComEstimator, 'biped', {'base_source': 'filter'}),
    'wrench_aggregator': (WrenchAggregator, 'biped', {}),
    'wrench_aggregator, virtual feet': (WrenchAggregator, 'as_sold', {})}
#: Of every node, and not of what it estimates.
COMMON = ('/diagnostics', '/parameter_events', '/rosout', '/transition_event')


@pytest.fixture(scope='module')
def recording():
    """Return (topic, serialized message) of all sensors of a swaying robot, by instants."""
    return [[(topic, serialize_message(message)) for topic, message in reversed(found.items())]
            for _, found in swaying_robot(COUNT, foot_sensors=True)]


class Listeners(NodeRig):
    """
    A node, and subscribers of some of its outputs.

    Parameters
    ----------
    node_class, robot, values
        The node, its robot and parameters.
    chosen
        Topics of the outputs with a subscriber; default: all of them.

    """

    def __init__(self, node_class, robot, values, chosen=()):
        self.space = f'/{node_class.__name__.lower()}_listeners'
        super().__init__(node=node_class(
            namespace=self.space, cli_args=['--ros-args', '-r', '/tf:=tf'],
            parameter_overrides=[Parameter(name, value=value) for name, value in {
                'robot': robot, 'max_stamp_age': 0.0, 'marker_rate': 1e4, **values}.items()]))
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


def play(case, recording, chosen=(), expected=None):
    rig = Listeners(*case, chosen)
    try:
        return rig.play(recording, expected)
    finally:
        rig.close()


def by_stamp(arrays):
    """Return arrays of markers by their stamps: of latched messages only the last one is kept."""
    return {str(array.markers[0].header.stamp): array for array in arrays}


@pytest.fixture
def case(request, tmp_path):
    """Return class, robot and parameters of a case; a robot as sold has virtual feet."""
    node_class, robot, values = CASES[request.param]
    if robot == 'as_sold':
        config = yaml.safe_load(robot_file('biped').read_text())
        for foot in config['feet'].values():
            foot['source'] = 'virtual'
        robot = str(tmp_path / 'as_sold.yaml')
        (tmp_path / 'as_sold.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
    return node_class, robot, values


@pytest.mark.parametrize('case', CASES, indirect=True)
def test_an_output_does_not_depend_on_other_subscribers(recording, case):
    together = play(case, recording)
    # A wrench of the first instant comes before the posture that it needs.
    least = COUNT - (case[0] is WrenchAggregator)
    assert sum(len(messages) >= least for messages in together.values()) >= 7
    for topic, expected in together.items():
        latched = topic.endswith('/markers')
        alone = play(case, recording, (topic,), {} if latched else together)[topic]
        if latched:
            alone, expected = by_stamp(alone), by_stamp(expected)
            common = alone.keys() & expected.keys()
            assert len(common) > COUNT // 4, topic
            alone, expected = ({stamp: each[stamp] for stamp in common}
                               for each in (alone, expected))
        assert alone == expected, topic
