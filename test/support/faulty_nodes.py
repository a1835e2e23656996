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
"""Nodes for the tests of executor and suite: healthy ones and such as fail in every way."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
import faulthandler
import signal
import sys
import time

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.settings import setting
from biped_com_ros.nodes.suite import node as suite
from biped_com_ros.ros.node import ending
from biped_com_ros.ros.node.diagnostics import Diagnostics
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters
from biped_com_ros.ros.topics.services import trigger_service
from rclpy.node import Node
from std_msgs.msg import Float64, String


@dataclass(frozen=True)
class HealthyParameters:
    """Parameters of Healthy."""

    gain: float = setting(1.0, 'Factor', minimum=0.0)


class Healthy(Node):
    """Multiplies what it hears."""

    def __init__(self, **node_kwargs):
        super().__init__('healthy', **node_kwargs)
        self.gain = declare_parameters(self, HealthyParameters).gain
        self.publisher = self.create_publisher(Float64, 'out', 10)
        self.create_subscription(Float64, 'in', self.receive, 10)

    def receive(self, message):
        self.publisher.publish(Float64(data=self.gain * message.data))


class Writing(Healthy):
    """Has a large file to complete."""

    def close_files(self):
        """Take longer than a process may take for anything else when it ends."""
        time.sleep(2.5)
        print('the file is complete', flush=True)


class Hanging(Healthy):
    """Does not end: its own code hangs."""

    def __init__(self, **node_kwargs):
        super().__init__(**node_kwargs)
        ending.LONGEST_HANG = 30.0  # a busy computer reports what hangs late

    def destroy_node(self):
        """Hang as a thread that is joined."""
        time.sleep(30.0)


class HangingInside(Healthy):
    """Does not end: the middleware hangs, and holds Python's global lock."""

    def destroy_node(self):
        """Hang as Fast DDS 2 does in one of a hundred ends."""
        ctypes.PyDLL(None).sleep(30)


class Second(Healthy):
    """The same under another name."""

    def __init__(self, **node_kwargs):
        Node.__init__(self, 'second', **node_kwargs)
        self.gain = declare_parameters(self, HealthyParameters).gain
        self.publisher = self.create_publisher(Float64, '~/out', 10)
        self.create_subscription(Float64, 'in', self.receive, 10)


class Faulty(Node):
    """Raises in a timer, a late timer, a subscription and a service, and still ticks."""

    def __init__(self, **node_kwargs):
        super().__init__('faulty', **node_kwargs)
        self.diagnostics = Diagnostics(self, period=0.2)
        self.publisher = self.create_publisher(String, 'tick', 10)
        self.create_subscription(Float64, 'in', self.fail_in_callback, 10)
        trigger_service(self, '~/serve', self.fail_to_serve)
        self.create_timer(0.02, self.fail_to_tick)
        self.once = self.create_timer(0.1, self.create_late)

    def create_late(self):
        self.once.cancel()
        self.create_timer(0.02, self.fail_late)

    def fail_late(self):
        self.publisher.publish(String(data='late'))
        raise ValueError('failed late')

    def fail_to_tick(self):
        self.publisher.publish(String(data='tick'))
        raise ZeroDivisionError('failed to tick')

    def fail_in_callback(self, message):
        self.publisher.publish(String(data='received'))
        raise ConfigurationError('failed to hear')

    def fail_to_serve(self):
        raise KeyError('failed to serve')


class Stillborn(Node):
    """Cannot start."""

    def __init__(self, **node_kwargs):
        super().__init__('stillborn', **node_kwargs)
        raise ConfigurationError("the widget 'x' is missing\n(valid: a, b)")


class Buggy(Node):
    """Has a bug in its constructor."""

    def __init__(self, **node_kwargs):
        super().__init__('buggy', **node_kwargs)
        raise AttributeError('a bug')


NODES = {kind.__name__.lower(): f'support.faulty_nodes:{kind.__name__}'
         for kind in (Healthy, Second, Faulty, Stillborn, Buggy)}


if __name__ == '__main__':
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # tells where it hangs
    name = sys.argv.pop(1)
    if name == 'suite':
        sys.exit(run(lambda: suite.compose(NODES)))
    sys.exit(run(globals()[name]))
