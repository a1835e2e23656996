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
"""The torso's keyboard on a pseudo-terminal: keys in, a stick out, the terminal given back."""

from __future__ import annotations

import math
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

from biped_com_ros.ros.topics.qos import LATCHED, STATE_OUTPUT
from geometry_msgs.msg import PointStamped, Vector3Stamped
import pytest
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import SetBool

LIMIT = 60.0  # s, for starting on a busy machine


class Terminal:
    """The node on a terminal of its own, and a robot that hears it."""

    def __init__(self):
        self.node, self.sticks, self.frozen, self.refusal = Node('robot'), [], [], ''
        self.node.create_subscription(
            Joy, 'joy', lambda joy: self.sticks.append(tuple(joy.axes)), 10)
        self.offer()
        self._master, slave = pty.openpty()
        self.settings = termios.tcgetattr(slave)
        self._slave, self.shown = slave, b''
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'biped_com_ros.nodes.torso_teleop.node'], stdin=slave,
            stdout=slave, stderr=slave, start_new_session=True)

    def offer(self):
        self.service = self.node.create_service(SetBool, 'torso_controller/freeze', self._freeze)

    def _freeze(self, request, response):
        self.frozen.append(request.data)
        response.success, response.message = not self.refusal, self.refusal
        return response

    def press(self, keys):
        os.write(self._master, keys)

    def until(self, condition):
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end
            while select.select([self._master], [], [], 0.0)[0]:
                self.shown += os.read(self._master, 4096)
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def settings_now(self):
        return termios.tcgetattr(self._slave)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.node.destroy_node()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_keys_of_a_terminal_move_the_stick(terminal):
    terminal.until(lambda: terminal.sticks)
    assert terminal.sticks[-1] == (0.0, 0.0)
    assert terminal.settings_now() != terminal.settings  # keys come one by one
    terminal.press(b'\x1b[D\x1b[D\x1b[A')
    terminal.until(lambda: terminal.sticks[-1] == pytest.approx((0.2, 0.1)))
    terminal.press(b' ')
    terminal.until(lambda: terminal.sticks[-1] == (0.0, 0.0))
    terminal.press(b'f')
    terminal.until(lambda: terminal.frozen == [True] and b'frozen\x1b[K' in terminal.shown)
    terminal.press(b'u')
    terminal.until(lambda: terminal.frozen == [True, False])
    terminal.until(lambda: b'frozen' not in terminal.shown.split(b'\r')[-2])
    com = PointStamped()
    com.point.x, com.point.y, com.point.z = 0.012, -0.003, 0.4
    publisher = terminal.node.create_publisher(PointStamped, 'com_estimator/com', 10)
    url = terminal.node.create_publisher(String, 'viewer/url', LATCHED)
    url.publish(String(data='http://127.0.0.1:8080'))

    def is_shown(text):
        com.header.stamp.sec += 1
        publisher.publish(com)
        return text in terminal.shown

    terminal.until(lambda: is_shown(b'CoM +12 -3 +400 mm'))
    terminal.until(lambda: b'Page for the browser: http://127.0.0.1:8080' in terminal.shown)
    terminal.press(b'\x1a')  # ctrl-Z
    terminal.until(lambda: b'q quits\r\n' in terminal.shown.split(b'ctrl-Z')[-1])
    assert terminal.process.poll() is None
    terminal.press(b'q')
    terminal.until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    assert terminal.settings_now() == terminal.settings
    assert b'arrows: push the stick' in terminal.shown
    assert b'stick forward +0.1 left +0.2' in terminal.shown


def test_the_line_shows_how_the_torso_is_bent(terminal):
    terminal.until(lambda: terminal.sticks)
    publisher = terminal.node.create_publisher(
        Vector3Stamped, 'torso_controller/shape', STATE_OUTPUT)
    shape = Vector3Stamped()
    shape.vector.x, shape.vector.y = math.radians(12.34), math.radians(-135.0)

    def is_shown():
        publisher.publish(shape)
        return b'left +0.0  bent by 12.3 deg towards -135 deg  ' in terminal.shown

    terminal.until(is_shown)


def test_what_others_publish_neither_controls_the_terminal_nor_ends_the_node(terminal):
    terminal.until(lambda: terminal.sticks)
    url = terminal.node.create_publisher(String, 'viewer/url', LATCHED)
    url.publish(String(data='http://a\n\x1b[31mb'))
    terminal.until(lambda: rb'Page for the browser: http://a\n\x1b[31mb' in terminal.shown)
    url.publish(String(data='x' * 1_000_000))
    terminal.until(lambda: b'it has 1000009 bytes; limit 65536' in terminal.shown)
    assert b'x' * 1000 not in terminal.shown
    url.publish(b'\0\1\0\0\xff\xff')
    terminal.until(lambda: b'bytes are no String' in terminal.shown)
    count = len(terminal.sticks)
    terminal.until(lambda: len(terminal.sticks) > count + 10)


def test_freezing_waits_for_the_controller_and_reports_if_there_is_none(terminal):
    terminal.node.destroy_service(terminal.service)
    terminal.until(lambda: terminal.sticks)
    terminal.press(b'f')
    terminal.until(lambda: terminal.shown.count(b'stick forward') > 60)  # a second
    terminal.offer()
    terminal.until(lambda: terminal.frozen == [True])
    terminal.node.destroy_service(terminal.service)
    terminal.spin(1.0)  # until it is known to be gone
    terminal.press(b'u')
    terminal.until(lambda: b'not unfrozen: no service /torso_controller/freeze' in terminal.shown)
    assert terminal.frozen == [True]


def test_a_controller_that_refuses_to_freeze_is_not_shown_as_frozen(terminal):
    terminal.refusal = 'the torso is not active'
    terminal.until(lambda: terminal.sticks)
    terminal.press(b'f')
    terminal.until(lambda: b'\r\x1b[Knot frozen: the torso is not active' in terminal.shown)
    count = terminal.shown.count(b'stick forward')
    terminal.until(lambda: terminal.shown.count(b'stick forward') > count + 3)
    assert b'  frozen\x1b[K' not in terminal.shown


def test_without_a_terminal_it_names_what_to_run_instead():
    """As with `keys:=true` under `ros2 launch`, which gives no terminal to its nodes."""
    result = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.nodes.torso_teleop.node'], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LIMIT)
    assert result.returncode == 1
    assert 'ros2 run biped_com_ros torso_teleop' in result.stderr
    assert 'Traceback' not in result.stderr


def test_a_robot_without_a_torso_is_refused_at_once():
    """Else the keys of `make torso ROBOT=talos` would move nothing."""
    result = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.nodes.torso_teleop.node', '--ros-args', '-p',
         'robot:=talos'], text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        timeout=LIMIT)
    assert result.returncode == 1
    assert "robot 'talos' has no tendon-driven torso; choose biped or sabian" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not result.stdout
