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
"""A node that commands is killed: the next one begins with what the controller applies."""

from __future__ import annotations

from contextlib import contextmanager
import signal
import time

import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support.gravity_rig import largest_step, RATE
from support.node_process import start_node

PARTICIPANT_PER_TEST = True  # see conftest.py

PARAMETERS = ('robot:=talos', f'effort_rate:={RATE}', 'start_time:=0.3', 'stop_time:=0.6',
              'effort_clamp:=0.8', 'input_timeout:=0.5')


class HoldingController:
    """Holds the last command, as effort controllers do, and notes each one that it gets."""

    def __init__(self, rig):
        self.rig, self.applied = rig, []
        rig.peer.declare_parameter('joints', list(rig.model.actuated_joint_names))
        self._subscribe()

    def _subscribe(self):
        self._subscription = self.rig.peer.create_subscription(
            Float64MultiArray, 'node/commands',
            lambda message: self.applied.append(np.array(message.data)), 1000)

    def restart(self):
        """Begin anew: nothing is applied until the next command."""
        self.rig.peer.destroy_subscription(self._subscription)
        self.applied = [0.0 * self.applied[-1]]
        self._subscribe()

    @property
    def is_full(self):
        return bool(self.applied) and np.allclose(
            self.applied[-1], self.rig.expected().efforts, atol=0.5)

    def check(self):
        """No command may be a step from what was applied before."""
        assert largest_step(self.rig, self.applied) <= 1.0 + 1e-9


@contextmanager
def running(rig):
    """Run the node as a process; it ends softly, which leaves nothing for a successor."""
    arguments = [word for value in PARAMETERS for word in ('-p', value)]
    process = start_node('gravity_compensation', '-r', f'__ns:=/{rig.namespace}',
                         '-r', '__node:=node', *arguments)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        print(process.communicate(timeout=20.0)[0])  # beside a failure


@pytest.fixture
def robot(make):
    """Return a rig that is a robot only: its own node commands nothing."""
    return make(autostart=False)


def kill(robot, process):
    process.kill()
    process.wait()
    robot.play(0.3)  # what it has sent arrives


def test_a_restarted_node_begins_with_the_efforts_that_are_applied(robot):
    controller = HoldingController(robot)
    with running(robot) as process:
        robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
        kill(robot, process)
    count, applied = len(controller.applied), np.abs(controller.applied[-1]).sum()
    begin = time.monotonic()
    with running(robot):
        robot.until(lambda: len(controller.applied) > count, 'its first command', timeout=30.0)
        assert np.abs(controller.applied[count]).sum() > 0.9 * applied
        robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
        assert time.monotonic() < begin + 15.0, 'its predecessor is discovered for up to 20 s'
    controller.check()


def test_a_second_node_takes_over_without_a_step(robot):
    controller = HoldingController(robot)
    with running(robot) as first:
        robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
        with running(robot) as second:
            robot.play(5.0)  # it has started, and commands nothing
            assert second.poll() is None
            controller.check()
            kill(robot, first)
            count = len(controller.applied)
            begin = time.monotonic()
            robot.until(lambda: len(controller.applied) > count + 50, 'its commands')
            assert time.monotonic() < begin + 3.0
            robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
    controller.check()


def test_a_controller_that_was_restarted_meanwhile_begins_at_zero(robot):
    controller = HoldingController(robot)
    with running(robot) as process:
        robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
        kill(robot, process)
    controller.check()
    controller.restart()
    with running(robot):
        robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
    controller.check()


def test_a_restarted_node_without_sensors_ramps_to_zero(robot):
    controller = HoldingController(robot)
    with running(robot) as process:
        robot.until(lambda: controller.is_full, 'efforts', timeout=30.0)
        kill(robot, process)
    robot.missing.update(('joints', 'imu'))
    with running(robot):
        robot.until(lambda: not controller.applied[-1].any(), 'zero', timeout=30.0)
    controller.check()
