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
"""Processes of gravity_compensation that are killed or interrupted while they command."""

from contextlib import contextmanager
import signal
import time

from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.effort_controller import EffortController
from support.gravity_rig import GravityRig, RATE
from support.node_process import start_node

PARTICIPANT_PER_TEST = True  # see ros_fixtures.py

PARAMETERS = ('robot:=talos', f'effort_rate:={RATE}', 'start_time:=0.3', 'stop_time:=0.6',
              'effort_clamp:=0.8', 'input_timeout:=0.5')


@pytest.fixture
def robot(closing):
    """Return a rig that is a robot only: its own node commands nothing."""
    rig = closing(GravityRig(RobotModel.load('talos'), remap='__node:=idle', autostart=False))
    rig.is_new = True  # what it publishes before it is discovered is not received
    return rig


@contextmanager
def running(rig, module, *arguments):
    """Run the node as a process; it ends softly, which leaves nothing for a successor."""
    values = [word for value in PARAMETERS for word in ('-p', value)]
    process = start_node(module, '-r', f'__ns:=/{rig.namespace}', *values, *arguments)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        print(process.communicate(timeout=100.0)[0])  # beside a failure


@pytest.mark.thorough
@pytest.mark.parametrize(('number', 'module', 'arguments'), (
    (signal.SIGINT, 'gravity_compensation', ()),
    (signal.SIGTERM, 'suite', ('-p', 'nodes:=[gravity_compensation, wrench_aggregator]'))))
def test_an_interrupted_process_ramps_to_zero_first(robot, capfd, number, module, arguments):
    """The rig checks that no command is a jump."""
    with running(robot, module, *arguments) as process:
        robot.until(robot.is_balanced, 'efforts')
        process.send_signal(number)
        begin = time.monotonic()
        robot.until(lambda: process.poll() is not None, 'its end', timeout=100.0)
        assert 0.5 < time.monotonic() - begin < 5.0
        assert process.returncode == 0
    assert 'Traceback' not in capfd.readouterr().out
    robot.play(0.3)  # what has arrived may still wait for this test's executor
    assert not np.any(robot.commands[-1].data)


@pytest.mark.thorough
def test_killed_nodes_are_continued_by_a_second_and_by_a_restarted_one(robot):
    """The controller checks that there is no step, and none between commands of two nodes."""
    controller = EffortController(robot, robot.model.actuated_joint_names, is_active=True)
    names = ('-r', '__node:=node', '-r', '~/commands:=gravity_compensation/commands')

    def is_full():
        return np.allclose(controller.efforts, robot.expected().efforts, atol=0.5)

    def kill(process):
        process.kill()
        process.wait()
        begin = time.monotonic()
        robot.play(0.2)  # what it has sent arrives
        return begin, len(controller.applied)
    with running(robot, 'gravity_compensation', *names) as first:
        robot.until(is_full, 'efforts')
        with running(robot, 'gravity_compensation', *names) as second:
            robot.until(lambda: robot.peer.count_publishers('gravity_compensation/commands') > 1)
            robot.play(2.0)  # it has started, and commands nothing
            assert second.poll() is None
            begin, count = kill(first)
            robot.until(lambda: len(controller.applied) > count + 50, 'its commands')
            assert time.monotonic() < begin + 3.0
            robot.until(is_full, 'efforts')
            begin, count = kill(second)
    applied = np.abs(controller.efforts).sum()
    with running(robot, 'gravity_compensation', *names):
        robot.until(lambda: len(controller.applied) > count, 'its first command')
        assert np.abs(controller.applied[count]).sum() > 0.9 * applied
        robot.until(is_full, 'efforts')
        assert time.monotonic() < begin + 15.0, 'its predecessor is discovered for up to 20 s'
    robot.executor.remove_node(controller.node)
    controller.node.destroy_node()
