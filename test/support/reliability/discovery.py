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
"""Whether a node on each of two hosts finds the other one, where multicast is blocked."""

import os
from pathlib import Path
import shutil
import subprocess
import sys
import time

import rclpy
from support.reliability.network import on_host, two_hosts

NAMES = ('robot', 'desk')
_COMMON = 'commands'  # nobody subscribes to it
_ENOUGH = 5  # messages
_CHOSEN = ('ROS_AUTOMATIC_DISCOVERY_RANGE', 'ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER',
           'FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')


def discovery_server():
    """Return the program of Fast DDS that is a discovery server; None if it is not installed."""
    return shutil.which('fast-discovery-server', path=os.pathsep.join(
        (str(Path(sys.executable).parent), os.environ.get('PATH', ''))))


def meet(environment, seconds, server=()):
    """
    Run a node on each of two hosts, between which no multicast is carried.

    Parameters
    ----------
    environment
        Of both nodes: how they find each other.
    seconds
        How long they may take.
    server
        Command that runs on the first host meanwhile.

    Returns
    -------
    tuple of bool
        Whether each one received the other one's messages, and knows of both publishers of a topic
        that neither subscribes to (by which ``gravity_compensation`` finds who else commands).

    """
    path = os.pathsep.join(os.path.abspath(part) for part in sys.path if part)
    inherited = {name: value for name, value in os.environ.items() if name not in _CHOSEN}
    everything = {**inherited, 'ROS_DOMAIN_ID': '1', 'PYTHONPATH': path, **environment}
    with two_hosts() as (hosts, wire):
        wire.impair(multicast=False)
        running = [subprocess.Popen(on_host(hosts[0], server), env=everything)] if server else []
        try:
            nodes = [_start(host, (name, other, str(seconds)), everything)
                     for host, name, other in zip(hosts, NAMES, reversed(NAMES))]
            running += nodes
            first, second = (node.wait(seconds + 60.0) == 0 for node in nodes)
            return first, second
        finally:
            for process in running:
                if process.poll() is None:
                    process.terminate()
                process.wait()


def _start(host, arguments, environment):
    command = [sys.executable, '-m', 'support.reliability.discovery', *arguments]
    return subprocess.Popen(on_host(host, command), env=environment)


def main(name, other, seconds):
    """Publish, and return 0 as soon as enough of the other node was received."""
    from std_msgs.msg import String
    rclpy.init()
    node = rclpy.create_node(name)
    publisher = node.create_publisher(String, name, 10)
    node.create_publisher(String, _COMMON, 10)
    received = []
    node.create_subscription(String, other, lambda message: received.append(message.data), 10)
    end = time.monotonic() + float(seconds)
    enough_at = None
    # The other one may still wait for what this one publishes.
    while time.monotonic() < min(end, (enough_at or end) + 5.0):
        publisher.publish(String(data=name))
        rclpy.spin_once(node, timeout_sec=0.1)
        if (enough_at is None and len(received) >= _ENOUGH
                and node.count_publishers(_COMMON) == len(NAMES)):
            enough_at = time.monotonic()
    # Without the middleware's own end, which may hang where the other host is gone already.
    os._exit(0 if set(received) == {other} and enough_at is not None else 1)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
