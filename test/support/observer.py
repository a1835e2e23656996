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
"""A node that observes a launched robot: it keeps what is published, and waits for events."""

import time

from lifecycle_msgs.srv import ChangeState, GetState
import numpy as np
from rcl_interfaces.srv import SetParameters
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger
from support.launched import LIMIT

PERIOD = 0.05  # s, between two looks at a condition
MANY = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)


class Observer:
    """
    A node in a context of its own.

    Attributes
    ----------
    launches
        What has to run while something is waited for.

    """

    def __init__(self):
        self._context = rclpy.Context()
        self._context.init()
        self.node = rclpy.create_node('observer', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.launches = []

    def keep(self, kind, topic, qos=MANY):
        """Return a list that gets all messages of a topic."""
        messages = []
        self.node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def first(self, kind, topic, qos=MANY, accepts=lambda message: True):
        """Wait for the first message of a topic that is as expected."""
        messages = []
        subscription = self.node.create_subscription(
            kind, topic, lambda message: messages.append(message) if accepts(message) else None,
            qos)
        self.until(lambda: messages, topic)
        self.node.destroy_subscription(subscription)
        return messages[0]

    def until(self, condition, what, runs=True):
        """Take messages until a condition holds, and, unless told otherwise, everything runs."""
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f'waited in vain for {what}:\n{self._logs()}'
            assert not runs or all(one.is_running for one in self.launches), self._logs()
            next_look = time.monotonic() + PERIOD
            while time.monotonic() < next_look:
                # Always with the same timeout: else the executor begins its round of callbacks
                # anew, and some subscriptions never get their turn.
                self._executor.spin_once(timeout_sec=PERIOD)

    def _logs(self):
        return '\n'.join(launched.output[-3000:] for launched in self.launches)

    def until_over(self):
        """Take messages until the last launch has ended by itself, well; return its output."""
        launched = self.launches[-1]
        self.until(lambda: not launched.is_running, 'the end', runs=False)
        assert launched.process.returncode == 0, launched.output
        return launched.output

    def call(self, kind, name, request):
        """Return the response of a service."""
        client = self.node.create_client(kind, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(request)
        self.until(future.done, f'a response of {name}')
        self.node.destroy_client(client)
        return future.result()

    def trigger(self, name):
        return bool(self.call(Trigger, name, Trigger.Request()).success)

    def change_state(self, node, transition):
        request = ChangeState.Request()
        request.transition.id = transition
        assert self.call(ChangeState, f'{node}/change_state', request).success

    def until_state(self, node, label):
        """Wait until a lifecycle node is in a state."""
        def state():
            return str(self.call(
                GetState, f'{node}/get_state', GetState.Request()).current_state.label)
        self.until(lambda: state() == label, f'{label} {node}')

    def set_parameters(self, node, **values):
        response = self.call(SetParameters, f'{node}/set_parameters', SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()
                        for name, value in values.items()]))
        assert all(result.successful for result in response.results)

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.shutdown()


def stamp(message):
    """Return when a message was true, ns."""
    return int(message.header.stamp.sec * 10**9 + message.header.stamp.nanosec)


def vectors(messages, field='point'):
    """Return what messages have in a field, (3,), by stamp, ns."""
    return {stamp(message): np.array([getattr(getattr(message, field), axis) for axis in 'xyz'])
            for message in messages}


def common(*by_stamp, after=-np.inf):
    """Return arrays of what belongs to the same stamps, only after one, ns."""
    stamps = sorted(set.intersection(*map(set, by_stamp)))
    return tuple(np.array([one[s] for s in stamps if s > after]) for one in by_stamp)
