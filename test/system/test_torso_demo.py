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
"""The torso's demo as a whole: the stick goes round, torso and centre of mass follow."""

from __future__ import annotations

import subprocess
import sys
import time

from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.joystick import Joystick, tour, TOUR_PERIOD
from biped_com_ros.nodes.torso_teleop.node import split_keys, Stick
from geometry_msgs.msg import PointStamped, Vector3Stamped
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from support.launched import launched

ALL_TORSO = ('torso_x', 'torso_y', 'torso_z', 'torso_roll', 'torso_pitch', 'torso_yaw')
LIMIT = 250.0  # s, for starting and running on a busy machine
pytestmark = pytest.mark.timeout(LIMIT + 60)


@pytest.fixture
def listener():
    rclpy.init()
    node = Node('listener')
    yield node
    node.destroy_node()
    rclpy.shutdown()


@pytest.fixture
def demo():
    with launched('torso_demo.launch.xml') as process:
        yield process


def keep(node, kind, topic, field, times):
    """Return a dictionary that fills with a topic's vectors by stamp."""
    kept = {}

    def take(message):
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        value = getattr(message, field)
        kept[stamp] = np.array((value.x, value.y, value.z))
        times.append(stamp)
    node.create_subscription(kind, topic, take, 2000)
    return kept


def test_the_demo(demo, listener):
    times = []
    truth = keep(listener, PointStamped, 'simulator/truth/com', 'point', times)
    estimated = keep(listener, PointStamped, 'com_estimator/com', 'point', [])
    shape = keep(listener, Vector3Stamped, 'torso_controller/shape', 'vector', [])
    reference = keep(listener, Vector3Stamped, 'torso_controller/reference', 'vector', [])
    names = set()
    listener.create_subscription(
        JointState, 'joint_states', lambda message: names.add(tuple(message.name)), 10)
    end = time.monotonic() + LIMIT
    while not (reference and times and max(times) - min(reference) > 6.0):
        assert time.monotonic() < end and demo.poll() is None
        rclpy.spin_once(listener, timeout_sec=0.05)
    # The backbone's joints come from the controller alone.
    assert len(names) == 2 and min(names, key=len) == ALL_TORSO
    assert not set(max(names, key=len)) & set(ALL_TORSO)
    moving = min(reference) + 0.5
    stamps = [t for t in estimated if t in truth and t > moving]
    errors = np.array([estimated[t] - truth[t] for t in stamps])
    # The torso's pose comes from torso_controller alone, and the whole body's CoM follows it.
    assert np.ptp([estimated[t] for t in stamps], axis=0)[:2].max() > 0.01
    assert np.sqrt((errors ** 2).sum(axis=1).mean()) < 2e-3
    both = [t for t in shape if t in reference and t > moving]
    bends = np.array([(shape[t][0], reference[t][0]) for t in both])
    assert np.degrees(bends[:, 0].max()) > 10.0
    assert np.degrees(np.sqrt(np.mean((bends[:, 0] - bends[:, 1]) ** 2))) < 2.0
    # However late messages come, the reference moves no faster than it may.
    when = np.array(sorted(reference))
    bend, direction, _ = np.array([reference[t] for t in when]).T
    speeds = np.abs(np.diff(bend * np.exp(1j * direction))) / np.diff(when)
    assert 1.0 < speeds.max() < 1.5 + 1e-3


@pytest.mark.parametrize('arguments, most', [
    ((), 2), (('--foreground', 'torso_teleop', 'tour:=false', 'keys:=true'), 1)])
def test_a_robot_without_a_torso_ends_the_launch(arguments, most):
    """The second one is what `make torso ROBOT=talos` runs; in the first both nodes say it."""
    result = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', 'torso_demo.launch.xml',
         'robot:=talos', *arguments], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=LIMIT)
    assert result.returncode == 1
    assert 0 < result.stdout.count(
        "robot 'talos' has no tendon-driven torso; choose biped or sabian, or ") <= most
    assert 'Traceback' not in result.stdout


def test_the_stick_of_the_tour():
    assert tour(0.0) == tour(7.9) == (0.0, 0.0)
    bends = np.array([Joystick(0.26).bend(*tour(t)) for t in np.arange(0.6, 6.4, 0.05)])
    np.testing.assert_allclose(np.hypot(*bends.T), 0.26)
    np.testing.assert_allclose(bends[0], make_shape(0.26)[:2])
    assert bends[:, 1].min() < -0.25 and bends[:, 0].min() < -0.25  # all around
    assert tour(TOUR_PERIOD + 3.0) == tour(3.0)


def test_keys_push_the_stick():
    stick = Stick(0.4)
    for key in split_keys(b'\x1b[A\x1b[Dx'):
        stick.press(key)
    assert (stick.forward, stick.left) == (0.4, 0.4)
    for _ in range(5):
        stick.press(b'\x1b[A')
    assert np.hypot(stick.forward, stick.left) == pytest.approx(1.0)
    assert stick.forward > 2.0 * stick.left > 0.0
    stick.press(b' ')
    assert (stick.forward, stick.left) == (0.0, 0.0)
