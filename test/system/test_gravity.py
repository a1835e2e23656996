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
"""Simulator, estimators and gravity compensation as processes: droop with and without."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

from biped_com_ros.core.model.robot import RobotModel
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState


class RunningRobot:
    """Processes of a robot, and what they publish."""

    def __init__(self, robot, namespace, process, output):
        self.model, self.process, self.output = RobotModel.load(robot), process, output
        rclpy.init()
        self.node, self.latest = Node('observer', namespace=namespace), None
        self.node.create_subscription(
            JointState, 'joint_states', self._take, rclpy.qos.qos_profile_sensor_data)
        self.client = self.node.create_client(ChangeState, 'gravity_compensation/change_state')
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)

    def _take(self, message):
        self.latest = dict(zip(message.name, message.position))

    def until(self, condition, what, timeout=40.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, (
                f'timeout while waiting for {what}:\n{self.output.read_text()}')
            assert self.process.poll() is None, self.output.read_text()
            self.executor.spin_once(timeout_sec=0.05)

    def droop(self):
        """Largest error of an arm joint, deg."""
        if self.latest is None:
            return np.inf
        arms = self.model.group_index('left_arm')
        commanded = self.model.posture()[arms]
        measured = [self.latest[self.model.joint_names[i]] for i in arms]
        return float(np.degrees(np.abs(measured - commanded).max()))

    def change(self, transition):
        self.until(self.client.service_is_ready, 'lifecycle')
        future = self.client.call_async(ChangeState.Request(transition=Transition(id=transition)))
        self.until(future.done, 'transition')
        assert future.result().success

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def robot(tmp_path):
    """Return a simulated robot with gravity compensation."""
    output = tmp_path / 'output.txt'
    with output.open('w') as file:
        process = subprocess.Popen(
            [sys.executable, '-m', 'biped_com_ros.launch_runner.launch',
             'gravity_simulation.launch.xml', 'robot:=talos', 'namespace:=gravity'],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            env={**os.environ, 'ROS_LOG_DIR': str(tmp_path / 'log')})
    running = RunningRobot('talos', 'gravity', process, output)
    yield running
    running.close()
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)


def test_no_droop_with_feedforward_and_droop_without(robot):
    robot.until(lambda: robot.droop() < 0.005, 'feedforward')
    robot.change(Transition.TRANSITION_DEACTIVATE)
    robot.until(lambda: robot.droop() > 0.3, 'droop')
    robot.change(Transition.TRANSITION_ACTIVATE)
    robot.until(lambda: robot.droop() < 0.005, 'feedforward again')


@pytest.mark.timeout(420)
def test_the_demo_shows_the_droop_and_continuous_torques(tmp_path):
    demo = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', '--foreground', 'demo',
         'demo.launch.xml', 'robot:=biped', 'namespace:=gravity_demo', 'hidden:=none',
         'chapters:=gravity', 'once:=true'],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, 'ROS_LOG_DIR': str(tmp_path / 'log')})
    assert demo.returncode == 0, demo.stderr
    without, held = map(float, re.search(
        r'largest error of a hand +([\d.]+) mm +([\d.]+) mm', demo.stdout).groups())
    assert without > 1.0 and held < without / 500.0, demo.stdout
    share = re.search(r'weight left on the lifted foot +([\d.]+) %', demo.stdout)
    step = re.search(r'largest jump of a torque in 2 ms +([\d.]+) % of its limit', demo.stdout)
    assert float(share[1]) == 0.0 and 0.0 < float(step[1]) < 0.5, demo.stdout
