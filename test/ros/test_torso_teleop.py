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

import math
import os
import pty
import subprocess
import sys
import termios

from biped_com_ros.nodes.torso_teleop.node import TorsoTeleop
from biped_com_ros.ros.topics.qos import LATCHED, STATE_OUTPUT
from geometry_msgs.msg import PointStamped, Vector3Stamped
import pytest
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import SetBool
from support.ros_rig import NodeRig


class Terminal(NodeRig):
    """The node on a terminal of its own, and a robot that it moves."""

    def __init__(self, monkeypatch, capfd):
        self._master, slave = pty.openpty()
        self._stdin, self._capfd, self._output = os.fdopen(slave), capfd, ''
        self.frozen, self.refusal, settings = [], '', self.settings()
        monkeypatch.setattr(sys, 'stdin', self._stdin)
        super().__init__(node=TorsoTeleop())
        assert self.settings() != settings  # keys come one by one
        self.offer()
        self.sticks = self.collect(Joy, 'joy')
        self.until(lambda: self.sticks)

    def offer(self):
        self.service = self.peer.create_service(SetBool, 'torso_controller/freeze', self._freeze)

    def _freeze(self, request, response):
        self.frozen.append(request.data)
        response.success, response.message = not self.refusal, self.refusal
        return response

    def press(self, keys):
        os.write(self._master, keys)
        self.spin(0.05)

    @property
    def stick(self):
        return tuple(self.sticks[-1].axes)

    @property
    def shown(self):
        self._output += ''.join(self._capfd.readouterr())
        return self._output

    def shows(self, text):
        """Wait until a text is shown."""
        self.until(lambda: text in self.shown, what=text)

    def settings(self):
        return termios.tcgetattr(self._stdin)

    def close(self):
        super().close()
        os.close(self._master)
        self._stdin.close()


@pytest.fixture
def terminal(monkeypatch, capfd, closing):
    return closing(Terminal(monkeypatch, capfd))


def test_keys_of_a_terminal_move_the_stick(terminal):
    assert terminal.stick == (0.0, 0.0)
    terminal.press(b'\x1b[D\x1b[D\x1b[A')
    assert terminal.stick == pytest.approx((0.2, 0.1))
    terminal.press(b' ')
    assert terminal.stick == (0.0, 0.0)
    terminal.press(b'f')
    terminal.until(lambda: terminal.frozen == [True])
    terminal.shows('frozen\x1b[K')
    terminal.press(b'u')
    terminal.until(lambda: terminal.frozen == [True, False])
    terminal.until(lambda: 'frozen' not in terminal.shown.split('\r')[-1])
    terminal.press(b'\x1a')  # ctrl-Z
    assert 'q quits\n' in terminal.shown.split('ctrl-Z')[-1]
    assert 'arrows: push the stick' in terminal.shown
    assert 'stick forward +0.1 left +0.2' in terminal.shown
    with pytest.raises(SystemExit) as end:
        terminal.press(b'q')
    assert end.value.code == 0


def test_the_terminal_is_given_back(monkeypatch):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, 'stdin', stdin)
        node = TorsoTeleop()
        assert termios.tcgetattr(slave) != before
        node.destroy_node()
        assert termios.tcgetattr(slave) == before
    os.close(master)


def test_the_line_shows_the_torso_the_centre_of_mass_and_the_page(terminal):
    shape, com = Vector3Stamped(), PointStamped()
    shape.vector.x, shape.vector.y = math.radians(12.34), math.radians(-135.0)
    com.header.stamp.sec = 1
    com.point.x, com.point.y, com.point.z = 0.012, -0.003, 0.4
    for topic, message, qos in (
            ('torso_controller/shape', shape, STATE_OUTPUT), ('com_estimator/com', com, 10),
            ('viewer/url', String(data='http://127.0.0.1:8080'), LATCHED)):
        terminal.publisher(type(message), topic, qos).publish(message)
    terminal.shows('left +0.0  bent by 12.3 deg towards -135 deg  CoM +12 -3 +400 mm')
    terminal.shows('Page for the browser: http://127.0.0.1:8080')


def test_what_others_publish_neither_controls_the_terminal_nor_ends_the_node(terminal):
    url = terminal.publisher(String, 'viewer/url', LATCHED)
    for message, text in (
            (String(data='http://a\n\x1b[31mb'), r'Page for the browser: http://a\n\x1b[31mb'),
            (String(data='x' * 1_000_000), 'it has 1000009 bytes; limit 65536'),
            (b'\0\1\0\0\xff\xff', 'bytes are no String')):
        url.publish(message)
        terminal.shows(text)
    assert 'x' * 1000 not in terminal.shown
    count = len(terminal.sticks)
    terminal.spin(0.5)
    assert len(terminal.sticks) > count + 10


def test_freezing_waits_for_the_controller_and_reports_if_there_is_none(terminal):
    def end_service():
        terminal.peer.destroy_service(terminal.service)
        terminal.until(lambda: not terminal.node._freeze.service_is_ready())
    end_service()
    terminal.press(b'f')
    terminal.spin(1.0)
    terminal.offer()
    terminal.until(lambda: terminal.frozen == [True])
    end_service()
    terminal.press(b'u')
    terminal.shows('not unfrozen: no service /torso_controller/freeze')
    assert terminal.frozen == [True]


def test_a_controller_that_refuses_to_freeze_is_not_shown_as_frozen(terminal):
    terminal.refusal = 'the torso is not active'
    terminal.press(b'f')
    terminal.shows('\r\x1b[Knot frozen: the torso is not active')
    count = terminal.shown.count('stick forward')
    terminal.spin(0.1)
    assert terminal.shown.count('stick forward') > count + 3
    assert '  frozen\x1b[K' not in terminal.shown


@pytest.mark.parametrize(('arguments', 'text'), (
    # As with `keys:=true` under `ros2 launch`, which gives no terminal to its nodes.
    ((), 'ros2 run biped_com_ros torso_teleop'),
    # Else the keys of `make torso ROBOT=talos` would move nothing.
    (('--ros-args', '-p', 'robot:=talos'),
     "robot 'talos' has no tendon-driven torso; choose biped or sabian")))
def test_what_cannot_work_is_refused_at_once(arguments, text):
    result = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.nodes.torso_teleop.node', *arguments], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=100.0)
    assert result.returncode == 1
    assert text in result.stderr
    assert 'Traceback' not in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not result.stdout
