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
"""A node under test and its peer on one executor, over real DDS."""

import time

from biped_com_ros.ros.node.diagnostics import status_name
from biped_com_ros.ros.node.executor import make_executor
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger
from support.driven_time import run_ready, STEP


class ServedNodes:
    """
    Runs the callbacks of nodes while a test waits for something.

    Attributes
    ----------
    time
        Drives the clocks of the nodes; the fixture `driven_time` sets it.
    step_time
        Time between two rounds of callbacks, s.
    executor, node, peer
        The executor, the node under test, and a node that plays the rest of the robot; a
        subclass creates them.

    """

    time = None
    step_time = STEP

    def until(self, condition, timeout=100.0, what='condition'):
        """
        Let time pass until the condition holds; fails when it does not.

        The timeout is of the computer's time, in which participants discover each other.
        """
        end = time.monotonic() + timeout
        run_ready(self.executor)
        while not condition():
            assert time.monotonic() < end, f'timeout while waiting for {what}'
            self.wait()
            self.executor.spin_once(timeout_sec=0.0005)

    def wait(self):
        """Let some time pass, while something is waited for."""
        self.spin(self.step_time)

    def spin(self, seconds):
        """Run callbacks while so much time passes."""
        self.time.executors.add(self.executor)
        self.time.run_ready()
        steps = max(round(seconds / self.step_time), 1)
        for _ in range(steps):
            self.time.advance(seconds / steps)
            self.time.run_ready()

    def call(self, client, request):
        """Call a service and return its response."""
        self.until(client.service_is_ready, what=client.srv_name)
        future = client.call_async(request)
        self.until(future.done, what=f'response of {client.srv_name}')
        return future.result()

    def trigger(self, service):
        """Call a service of type Trigger and return its response."""
        client = self.peer.create_client(Trigger, service)
        response = self.call(client, Trigger.Request())
        self.peer.destroy_client(client)
        return response

    def set_parameters(self, node=None, **values):
        """Set all parameters of a node, or none; return the reason of a refusal, else ''."""
        name = (node or self.node).get_fully_qualified_name()
        client = self.peer.create_client(
            SetParametersAtomically, f'{name}/set_parameters_atomically')
        request = SetParametersAtomically.Request(parameters=[
            Parameter(key, Parameter.Type.STRING_ARRAY if value == [] else None, value)
            .to_parameter_msg() for key, value in values.items()])
        result = ServedNodes.call(self, client, request).result
        self.peer.destroy_client(client)
        return '' if result.successful else result.reason or 'refused'

    def close(self):
        """Destroy everything."""
        self.time.executors.discard(self.executor)
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()


class NodeRig(ServedNodes):
    """
    A node under test and its peer.

    Parameters
    ----------
    name, node
        The node under test, or the name of an empty one.
    namespace
        Of the peer.
    options
        For the empty node.

    Attributes
    ----------
    statuses
        (level, message) of the node's lines on /diagnostics, by name; see `record_statuses`.

    """

    def __init__(self, name='node', node=None, namespace='', **options):
        self.executor = make_executor()
        self.node = node or Node(name, namespace=namespace, **options)
        self.peer = Node('peer', namespace=namespace)
        self.statuses = {}
        self.executor.add_node(self.node)
        self.executor.add_node(self.peer)

    def publisher(self, message_type, topic, qos=10):
        """Return a publisher of the peer that has found its subscriber."""
        publisher = self.peer.create_publisher(message_type, topic, qos)
        self.until(lambda: publisher.get_subscription_count() > 0, what=f'subscriber of {topic}')
        return publisher

    def collect(self, message_type, topic, qos=10, publishers=1):
        """Return a list that fills with the messages of a topic."""
        messages = []
        self.peer.create_subscription(message_type, topic, messages.append, qos)
        self.until(lambda: self.peer.count_publishers(topic) >= publishers,
                   what=f'publisher of {topic}')
        return messages

    def record_statuses(self, topic='/diagnostics'):
        """Keep `statuses` up to date."""
        prefix = status_name(self.node, '')

        def record(array):
            for status in array.status:
                if status.name.startswith(prefix):
                    self.statuses[status.name.removeprefix(prefix)] = (
                        status.level, status.message)
        self.peer.create_subscription(DiagnosticArray, topic, record, 100)
