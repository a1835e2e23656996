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
"""The stick and the keys of the torso's demo, and robots without such a torso."""

from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.reference import Joystick, tour, TOUR_PERIOD
from biped_com_ros.nodes.torso_teleop.node import split_keys, Stick
import numpy as np
import pytest


@pytest.mark.thorough
@pytest.mark.parametrize('arguments, most', [
    ((), 2), (('--foreground', 'torso_teleop', 'tour:=false', 'keys:=true'), 1)])
def test_a_robot_without_a_torso_ends_the_launch(launch, observer, arguments, most):
    """The second one is what `make torso ROBOT=talos` runs; in the first both nodes say it."""
    launched = launch('torso_demo.launch.py', 'robot:=talos', *arguments)
    observer.until(lambda: not launched.is_running, 'the end', runs=False)
    assert launched.process.returncode == 1
    assert 0 < launched.output.count(
        "robot 'talos' has no tendon-driven torso; choose biped or sabian, or ") <= most
    assert 'Traceback' not in launched.output


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
