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
Every node over DDS among messages that no driver should send.

Each node runs as a process of its own, of a robot that stands still, whose valid messages are
mixed with mutated ones. All that the node publishes meanwhile is checked.
``BIPED_COM_FUZZ_MESSAGES`` and ``BIPED_COM_FUZZ_SEED`` set the number of messages per node and the
seed, which is printed.
"""

import contextlib
from importlib.metadata import version
import os
from pathlib import Path
import pty
import random
import re
import signal
import subprocess
import sys
import threading
import time

from biped_com_ros.core.model.resources import package_share, resolve_uri
from biped_com_ros.nodes import NODES as COMPOSABLE
import msgspec
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from support.fuzzed_messages import (
    BURST_COUNT, BURST_RATE, fields_of, LARGE_TEXT, Mutations, stamped, Stream)
from support.output_checks import OutputChecks
from support.standing_robot import message_class, StandingRobot
from websockets.sync.client import connect

MESSAGES = int(os.environ.get('BIPED_COM_FUZZ_MESSAGES', '1500'))
SEED = os.environ.get('BIPED_COM_FUZZ_SEED') or str(random.SystemRandom().randrange(10 ** 6))
RATE = 1000.0  # messages per second
#: Share of the messages after which memory may grow by this share only, if they are at least LONG
#: and the middleware keeps no buffers; else by so many MB: its queues grow with large messages.
#: The queues of com_calibrator fill by 27 MB within a thousand messages, and then no more.
GROWTH, LONG, SHORT_GROWTH = 0.01, 20_000, 25.0
WARM_UP = 0.2 if MESSAGES >= LONG else 0.6
#: Messages with 1 MB of text, and how many of them in a second.
FLOOD, FLOOD_RATE = 600, 200.0
#: What a node may have more after them, MB: the middleware keeps a few of the largest messages of
#: each topic, and nothing else may.
KEPT_OF_FLOOD = 130.0
#: Has Fast DDS keep none of them (doc/reliability.rst).
RELEASING = {'FASTRTPS_DEFAULT_PROFILES_FILE': str(resolve_uri('config/fast_dds.xml')),
             'RMW_FASTRTPS_USE_QOS_FROM_XML': '1', 'MALLOC_MMAP_THRESHOLD_': '131072'}
KEPT_WITH_RELEASING = 5.0
IS_RELEASING = MESSAGES >= LONG and 'fastrtps' in rclpy.get_rmw_implementation_identifier()
NAMESPACE = '/fuzz'
PARAMETERS = {
    'gravity_compensation': {
        'autostart': 'true', 'effort_clamp': '0.8', 'effort_rate': '10.0', 'start_time': '0.2',
        'stop_time': '0.2', 'hold_time': '0.1'},
    'torso_controller': {'autostart': 'true'},
    # It holds the posture meanwhile: chapters would end when the stamps jump.
    # Its recording is full soon, but for descriptions, which may be long.
    'viewer': {'port': '0', 'recording_memory': '1',
               'recording': '0.0' if IS_RELEASING else '60.0'},
}
#: What a browser sends first.
CAMERA = {
    'type': 'ViewerCameraMessage', 'wxyz': (1.0, 0.0, 0.0, 0.0), 'position': (1.0, 0.0, 1.0),
    'fov': 1.0, 'near': 0.1, 'far': 100.0, 'image_height': 480, 'image_width': 640,
    'look_at': (0.0, 0.0, 0.0), 'up_direction': (0.0, 0.0, 1.0)}
#: They publish nothing at rest but diagnostics, to which they subscribe, too.
SILENT = ('gait_player', 'viewer')
#: With a terminal of their own.
INTERACTIVE = ('torso_teleop',)
NODES = ('wrench_aggregator', 'com_estimator', 'zmp_monitor', 'gravity_compensation',
         'torso_controller', 'com_calibrator', 'gait_player', 'payload_estimator', 'simulator',
         'torso_teleop', 'viewer', 'demo')
#: Programs without inputs of their own, and one whose message is not installed.
NOT_FUZZED = {'robot_description', 'suite', 'lowstate_bridge'}


@pytest.fixture(scope='module', autouse=True)
def ros():
    rclpy.init()
    yield
    rclpy.shutdown()


@pytest.fixture(scope='module')
def robot():
    return StandingRobot()


class Fuzzed:
    """
    A node as a process, with publishers for all its inputs and checks of all its outputs.

    Parameters
    ----------
    name
        Of the executable.
    robot
        The robot.
    log : pathlib.Path
        Gets what the process prints.
    environment
        Variables of the process beside those of this one.

    """

    def __init__(self, name, robot, log, environment):
        self.name, self.robot, self.log = name, robot, log
        self.node = rclpy.create_node('fuzzer', namespace=NAMESPACE)
        self.executor = SingleThreadedExecutor()  # the EventsExecutor gives no time of sending
        self.executor.add_node(self.node)
        parameters = {'robot': 'biped', **PARAMETERS.get(name, {})}
        self._terminal = pty.openpty() if name in INTERACTIVE else ()
        self.process = subprocess.Popen(
            [sys.executable, '-m', f'biped_com_ros.nodes.{name}.node', '--ros-args',
             '-r', f'__ns:={NAMESPACE}',
             *(text for item in parameters.items() for text in ('-p', '{}:={}'.format(*item)))],
            env={**os.environ, **environment, 'PYTHONFAULTHANDLER': '1',
                 'PYTHONPATH': os.pathsep.join(path for path in sys.path if path)},
            stdin=self._terminal[1] if self._terminal else None, stdout=log.open('w'),
            stderr=subprocess.STDOUT)
        self.publishers, self.topics, self.burst_rates = {}, {}, []
        self.checks = None

    def connect(self):
        """Wait for the node, and publish and subscribe to all that it subscribes and publishes."""
        self.until(self._nodes, 'the node')
        if self.name == 'viewer':
            self._visit()
        self.until(self._has_settled, 'its topics')
        for name in self._nodes():
            for topic, kinds in self.node.get_subscriber_names_and_types_by_node(name, NAMESPACE):
                self._publish_to(topic, message_class(kinds[0]))
        own = {topic: message_class(kinds[0])
               for topic, kinds in self.node.get_publisher_names_and_types_by_node(
                   self.name, NAMESPACE)}
        self.checks = OutputChecks(
            self.node, self.robot, own, self.publishers, self.name == 'simulator')
        self.until(lambda: all(
            publisher.get_subscription_count() for publisher in self.publishers.values()),
            'its subscriptions')

    def _visit(self):
        """Open the page, which subscribes to nothing without a browser."""
        def address():
            return re.search(r'Open http://(\S+) in', self.log.read_text(errors='replace'))
        self.until(address, 'the page')
        host = address()[1]
        visitor = connect(f'ws://{host}', origin=f'http://{host}', max_size=None,
                          subprotocols=[f'viser-v{version("viser")}'])
        visitor.send(msgspec.msgpack.encode(CAMERA))  # from then on it counts as a visitor
        threading.Thread(target=lambda: list(visitor), daemon=True).start()

    def _nodes(self):
        """Return the names of the process's nodes."""
        return [name for name, space in self.node.get_node_names_and_namespaces()
                if space == NAMESPACE and name != 'fuzzer']

    def _has_settled(self):
        """Return whether the node has had the same inputs and outputs for 1 s."""
        queries = (self.node.get_subscriber_names_and_types_by_node,
                   self.node.get_publisher_names_and_types_by_node)
        topics = {topic for name in self._nodes() for query in queries
                  for topic, _ in query(name, NAMESPACE)}
        if topics != getattr(self, '_known', None):
            self._known, self._since = topics, time.monotonic()
        return len(topics) > 1 and time.monotonic() > self._since + 1.0

    def _publish_to(self, topic, kind):
        if topic in self.publishers or topic == '/clock':
            return
        durabilities = {info.qos_profile.durability
                        for info in self.node.get_subscriptions_info_by_topic(topic)}
        latched = DurabilityPolicy.TRANSIENT_LOCAL
        self.publishers[topic] = self.node.create_publisher(kind, topic, QoSProfile(
            depth=1 if latched in durabilities else 50, reliability=ReliabilityPolicy.RELIABLE,
            durability=latched if latched in durabilities else DurabilityPolicy.VOLATILE))
        short = topic.removeprefix(f'{NAMESPACE}/')
        self.topics[topic] = lambda now: self.robot.message(short, kind, now)

    def until(self, condition, what, timeout=60.0):
        """Run callbacks until the condition holds."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                self.abort()
                raise AssertionError(f'timeout while waiting for {what}\n{self.output()}')
            self.spin(0.02)

    def spin(self, seconds):
        """Run callbacks for some time; the process has to stay alive."""
        end = time.monotonic() + seconds
        # With another timeout at each call the executor begins its round of callbacks anew, and
        # some subscriptions never get their turn.
        self.executor.spin_once(timeout_sec=0.001)
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.001)
        assert self.process.poll() is None, f'{self.name} has ended\n{self.output()}'

    def now(self):
        return self.node.get_clock().now().nanoseconds

    def play(self, seconds):
        """Publish valid messages on all topics."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            now = self.now()
            for topic, make in self.topics.items():
                self.publishers[topic].publish(make(now))
            self.spin(0.01)

    def fuzz(self, stream, numbers):
        """Publish numbered messages of a stream; fail at the first wrong output."""
        begun = time.monotonic()
        for count, number in enumerate(numbers):
            what, messages = stream.message(number, self.now())
            for topic, raw in messages:
                self._publish(topic, raw)
            self.spin(max(0.0, begun + count / RATE - time.monotonic()))
            if topic := stream.burst_after(number):
                what = f'{BURST_RATE:.0f} Hz on {topic}'
                self.burst(topic)
                begun = time.monotonic() - count / RATE
            assert not self.checks.violations, (
                f'seed {stream.seed}, message {number} or before ({what}): '
                f'{self.checks.violations[:5]}\n{self.output()}')

    def burst(self, topic):
        """Publish valid messages on a topic at 5 kHz for a second."""
        begun, message_at = time.monotonic(), stamped(self.topics[topic](self.now()))
        for count in range(BURST_COUNT):
            self._publish(topic, message_at(self.now()))
            if (ahead := begun + count / BURST_RATE - time.monotonic()) > 0.001:
                self.spin(ahead)
        self.burst_rates.append(BURST_COUNT / (time.monotonic() - begun))

    def _publish(self, topic, raw):
        # The queue may be full of megabytes: RCLError, which has no public name.
        with contextlib.suppress(RuntimeError):
            self.publishers[topic].publish(raw)

    def flood(self, count):
        """Publish 1 MB of text on all topics that have any, in turns."""
        mutations = Mutations(random.Random(SEED))
        topics = [topic for topic in sorted(self.topics) if any(
            'string' in kind for *_, kind in fields_of(self.topics[topic](self.now())))]
        begun = time.monotonic()
        for number in range(count):
            topic = topics[number % len(topics)]
            self._publish(topic, bytes(mutations.large_text(self.topics[topic](self.now()))))
            self.spin(max(0.0, begun + number / FLOOD_RATE - time.monotonic()))

    def memory(self):
        """Return the resident memory, MB."""
        pages = int(Path(f'/proc/{self.process.pid}/statm').read_text().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE') / 1e6

    def output(self):
        """Return the end of what the process has printed."""
        return self.log.read_text(errors='replace')[-6000:]

    def abort(self):
        """End the process, which prints where it is."""
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(15.0)

    def close(self):
        """End the process; it has to react to SIGINT."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15.0)
        except subprocess.TimeoutExpired:
            self.abort()
            raise AssertionError(f'{self.name} does not end\n{self.output()}') from None
        finally:
            self.executor.shutdown()
            self.node.destroy_node()
            for descriptor in self._terminal:
                os.close(descriptor)


@pytest.fixture
def fuzzed(robot, tmp_path, request):
    name, environment = request.param if isinstance(request.param, tuple) else (request.param, {})
    rig = Fuzzed(name, robot, tmp_path / 'log', environment)
    yield rig
    rig.close()


def test_no_node_is_left_out():
    nodes = {file.parent.name for file in (package_share() / 'biped_com_ros' / 'nodes').glob(
        '*/node.py')}
    assert COMPOSABLE.keys() <= nodes
    assert set(NODES) == nodes - NOT_FUZZED


@pytest.mark.timeout(180 + MESSAGES // 20)
@pytest.mark.parametrize('fuzzed', [(name, RELEASING if IS_RELEASING else {}) for name in NODES],
                         indirect=True, ids=NODES)
def test_nothing_wrong_goes_out_whatever_comes_in(fuzzed):
    print(f'BIPED_COM_FUZZ_SEED={SEED}')
    fuzzed.connect()
    fuzzed.play(1.0)
    steady = {topic for topic, count in fuzzed.checks.counts.items()
              if count > 10 or topic == '/diagnostics'} - set(fuzzed.publishers)
    assert fuzzed.name in SILENT or steady, f'{fuzzed.name} published nothing before'
    fuzzed.checks.is_learning = False
    stream, warm_up = Stream(SEED, fuzzed.topics), round(WARM_UP * MESSAGES)
    memory = [fuzzed.memory()]
    fuzzed.fuzz(stream, range(warm_up))
    memory.append(fuzzed.memory())
    fuzzed.fuzz(stream, range(warm_up, MESSAGES))
    fuzzed.checks.received_at.clear()

    def recovered():
        fuzzed.play(0.1)
        return steady <= set(fuzzed.checks.received_at)
    fuzzed.until(recovered, f'what was published before, {steady}, of seed {SEED}', timeout=10.0)
    memory.append(fuzzed.memory())
    print(f'{fuzzed.name}: {MESSAGES} messages, MB at first, after {warm_up}, at last: '
          f'{", ".join(f"{value:.1f}" for value in memory)}; bursts at '
          f'{min(fuzzed.burst_rates, default=0.0):.0f} Hz at least; {fuzzed.checks.counts}, '
          f'{fuzzed.checks.lost} efforts lost on their way')
    allowed = GROWTH * memory[1] if IS_RELEASING else SHORT_GROWTH
    assert memory[2] < memory[1] + allowed, memory
    assert not fuzzed.checks.violations
    printed = fuzzed.log.read_text(errors='replace')
    assert 'Traceback' not in printed and 'callback failed' not in printed, printed[-6000:]


@pytest.mark.timeout(400)
@pytest.mark.parametrize('fuzzed', ['gait_player', 'com_calibrator', 'viewer'], indirect=True)
def test_megabytes_are_not_kept(fuzzed):
    assert_growth_by_flood(fuzzed, KEPT_OF_FLOOD)


@pytest.mark.timeout(400)
@pytest.mark.parametrize('fuzzed', [('gait_player', RELEASING)], indirect=True,
                         ids=['gait_player'])
def test_with_the_profile_the_middleware_keeps_none_either(fuzzed):
    """Of a node whose own memory is constant; without the profile it keeps 13 MB."""
    if 'fastrtps' not in rclpy.get_rmw_implementation_identifier():
        pytest.skip('another middleware')
    assert_growth_by_flood(fuzzed, KEPT_WITH_RELEASING)


def assert_growth_by_flood(fuzzed, limit):
    """Check that so many MB at most are added by a flood of large messages."""
    fuzzed.connect()
    fuzzed.play(1.0)
    before = fuzzed.memory()
    fuzzed.flood(FLOOD)
    during = fuzzed.memory()
    fuzzed.play(2.0)
    after = fuzzed.memory()
    print(f'{fuzzed.name}: {before:.1f} -> {during:.1f} -> {after:.1f} MB by {FLOOD} messages of '
          f'{LARGE_TEXT // 10 ** 6} MB')
    printed = fuzzed.log.read_text(errors='replace')
    assert 'limit 65536' in printed, printed[-6000:]  # they were received
    assert after < before + limit and during < before + KEPT_OF_FLOOD
