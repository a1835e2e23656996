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
Moves the torso from the keyboard, or on the tour of Russo et al. (2021), like a joystick.

Arrow keys push the stick, space centres it, f freezes and u unfreezes the torso, q quits. The
node publishes ``joy`` (sensor_msgs/Joy, axes left and forward); when it ends, the torso holds. Its
line shows the stick, the bend of the torso and the centre of mass, and the page's address comes
above it. Ctrl-Z does nothing: a stopped launch would leave this node reading the shell's keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
from dataclasses import dataclass
import math
import os
import re
import select
import sys
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, printable
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.torso.reference import tour
from biped_com_ros.ros.node.clock import steady_clock, steady_time
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, read_only
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import PointInput
from biped_com_ros.ros.topics.qos import LATCHED, STATE_OUTPUT
from biped_com_ros.ros.topics.whole_messages import subscribe
from geometry_msgs.msg import Vector3Stamped
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import SetBool

#: Forward and left of the arrow keys, as terminals send them.
ARROWS = {b'\x1b[A': (1.0, 0.0), b'\x1b[B': (-1.0, 0.0), b'\x1b[D': (0.0, 1.0),
          b'\x1b[C': (0.0, -1.0)}

SUSPEND = b'\x1a'
"""Ctrl-Z, as a terminal sends it."""

_FREEZE = names.TORSO_FREEZE
_COM_PERIOD = 0.1  # s between centres of mass that are shown
_LONGEST_WAIT = 5.0  # s for the service that freezes: later it would come unexpected


@dataclass(frozen=True)
class TorsoTeleopParameters:
    """Parameters of `torso_teleop`."""

    robot: str = read_only(
        '', 'Name of a robot of this package, or path of a YAML file: the node exits with an '
        'error if this robot has no tendon-driven torso; empty: any robot')
    motion: str = read_only(
        'keys', 'What moves the stick: the keyboard (keys), or a tour from the centre to the '
        'border, once around and back (tour)', options=('keys', 'tour'))
    rate: float = read_only(50.0, 'Rate of the messages on joy', 'Hz', 5.0, 200.0)
    step: float = read_only(
        0.1, 'Change of the deflection of the stick per key press', '', 0.01, 1.0)


class Stick:
    """
    A virtual joystick that is moved by keys.

    Attributes
    ----------
    forward, left
        Deflection, together at most 1.

    """

    def __init__(self, step: float) -> None:
        self.step, self.forward, self.left = step, 0.0, 0.0

    def press(self, key: bytes) -> None:
        """Push the stick by an arrow key, or centre it by space; other keys do nothing."""
        if key == b' ':
            self.forward = self.left = 0.0
        forward, left = ARROWS.get(key, (0.0, 0.0))
        self.forward += self.step * forward
        self.left += self.step * left
        size = max(math.hypot(self.forward, self.left), 1.0)
        self.forward, self.left = self.forward / size, self.left / size


class TorsoTeleop(Node):
    """Publishes the position of a virtual joystick."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('torso_teleop', **node_kwargs)
        self._params = declare_parameters(self, TorsoTeleopParameters)
        if self._params.robot:  # before the terminal is touched
            _ = load_robot_config(self._params.robot).required_torso
        self.stick = Stick(self._params.step)
        self._keys = _Keyboard() if self._params.motion == 'keys' else None
        self._joy = self.create_publisher(Joy, 'joy', 10)
        self._freeze = self.create_client(SetBool, _FREEZE)
        self._start, self._shape, self._com, self._frozen = 0, '', '', ''
        self._request: tuple[bool, float] | None = None  # freeze or unfreeze, until when
        if self._keys:  # the tour prints nothing
            subscribe(self, Vector3Stamped, names.TORSO_SHAPE, self._on_shape, STATE_OUTPUT)
            PointInput(self, names.COM, '', self._on_com, max_age=0.0, period=_COM_PERIOD)
            subscribe(self, String, names.PAGE_URL, self._on_url, LATCHED)
        # Keys are read in real time; the tour follows simulated time.
        self.create_timer(1.0 / self._params.rate, self._tick,
                          clock=steady_clock() if self._keys else self.get_clock())

    def _on_shape(self, message: Vector3Stamped) -> None:
        bend, direction = math.degrees(message.vector.x), math.degrees(message.vector.y)
        self._shape = f'bent by {bend:4.1f} deg towards {direction:4.0f} deg'

    def _on_com(self, _: int, point: Array) -> None:
        x, y, z = 1e3 * point
        self._com = f'CoM {x:+.0f} {y:+.0f} {z:+.0f} mm'

    def _on_url(self, message: String) -> None:
        print(f'\r\x1b[KPage for the browser: {printable(message.data)}', flush=True)

    def _tick(self) -> None:
        if self._keys is None:
            now = self.get_clock().now().nanoseconds
            self._start = self._start or now
            self.stick.forward, self.stick.left = tour(1e-9 * (now - self._start))
        else:
            self._read(self._keys)
        self._joy.publish(Joy(axes=[self.stick.left, self.stick.forward]))

    def _read(self, keyboard: _Keyboard) -> None:
        for key in keyboard.pressed():
            if key == b'q':
                raise SystemExit(0)
            if key == SUSPEND:
                print('\r\x1b[Kctrl-Z does nothing here; q quits', flush=True)
            if key in (b'f', b'u'):
                self._request = (key == b'f', steady_time() + _LONGEST_WAIT)
            self.stick.press(key)
        self._send_request()
        print(f'\rstick forward {self.stick.forward:+.1f} left {self.stick.left:+.1f}  '
              f'{self._shape}  {self._com}{self._frozen}\x1b[K', end='', flush=True)

    def _send_request(self) -> None:
        """Freeze or unfreeze as soon as the controller is there."""
        if self._request is None:
            return
        freezes, end = self._request
        if self._freeze.service_is_ready():
            self._freeze.call_async(SetBool.Request(data=freezes)).add_done_callback(
                lambda future: self._show_frozen(freezes, future.result()))
            self._request = None
        elif steady_time() > end:
            self._show_failure(freezes, f'no service {self.resolve_service_name(_FREEZE)}; is '
                               'torso_controller running?')
            self._request = None

    def _show_frozen(self, is_frozen: bool, response: SetBool.Response) -> None:
        if response.success:
            self._frozen = '  frozen' if is_frozen else ''
        else:
            self._show_failure(is_frozen, printable(response.message))

    @staticmethod
    def _show_failure(freezes: bool, reason: str) -> None:
        print(f'\r\x1b[Knot {"" if freezes else "un"}frozen: {reason}', flush=True)

    def destroy_node(self) -> None:
        """Restore the terminal."""
        if self._keys is not None:
            self._keys.close()
        super().destroy_node()


class _Keyboard:
    """
    Keys of the terminal as they are pressed.

    Raises
    ------
    ConfigurationError
        If there is no terminal.

    """

    def __init__(self) -> None:
        import termios
        import tty
        if not sys.stdin.isatty():
            raise ConfigurationError(
                'no terminal to read keys from (ros2 launch gives none to its nodes); start in '
                'another terminal: ros2 run biped_com_ros torso_teleop; or motion:=tour')
        self._file = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        modes = termios.tcgetattr(self._file)
        modes[6][termios.VSUSP] = b'\0'  # _POSIX_VDISABLE of Linux: ctrl-Z is a key
        termios.tcsetattr(self._file, termios.TCSANOW, modes)
        print('arrows: push the stick, space: centre it, f: freeze, u: unfreeze, q: quit\n'
              'The tendons bend the torso where the stick is; the line below has the stick, the '
              'bend,\nand the centre of mass of the whole robot, which follows.')

    def pressed(self) -> Iterator[bytes]:
        """Yield the keys pressed since the last call."""
        while select.select([self._file], [], [], 0.0)[0]:
            raw = os.read(self._file, 64)
            if not raw:
                return
            yield from split_keys(raw)

    def close(self) -> None:
        """Restore the terminal."""
        import termios
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)
        print()


def split_keys(pressed: bytes) -> list[bytes]:
    """Split the bytes read from a terminal into keys; arrows have three bytes."""
    return re.findall(rb'(?s)\x1b\[[A-D]|.', pressed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(TorsoTeleop, argv)


if __name__ == '__main__':
    sys.exit(main())
