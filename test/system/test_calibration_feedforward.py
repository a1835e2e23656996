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
"""Calibration with feedforward on: com_calibrator moves the robot through gravity_compensation."""

from __future__ import annotations

import json
import time

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from support.launched import launched
import yaml

LIMIT, CAPTURES = 400.0, 2  # s, on a busy machine
#: What is reported of motions that are refused, or go past the node.
INTERFERING = ('reference', 'other publisher', 'a goal of')
pytestmark = pytest.mark.timeout(900)


class CaptureObserver:
    """What the robot does, and its captures."""

    def __init__(self, directory):
        rclpy.init()
        self.node, self._file = Node('observer'), directory / 'biped' / 'captures.json'
        self.joints, self.efforts, self.errors = {}, np.zeros(1), []
        subscribe = self.node.create_subscription
        subscribe(JointState, 'joint_states', self._on_joints, qos_profile_sensor_data)
        subscribe(JointState, 'gravity_compensation/effort', self._on_efforts, 10)
        subscribe(DiagnosticArray, '/diagnostics', self._on_diagnostics, 100)
        self.statuses, self.problems = {}, set()

    def _on_joints(self, message):
        self.joints = dict(zip(message.name, message.position))

    def _on_efforts(self, message):
        self.efforts = np.array(message.effort)

    def _on_diagnostics(self, message):
        for status in message.status:
            self.statuses[status.name] = status.level, status.message
            if status.name == 'gravity_compensation: effort':
                self.problems |= {text for text in INTERFERING if text in status.message}

    def captures(self):
        return json.loads(self._file.read_text())['captures'] if self._file.exists() else []

    def until(self, condition, what, *processes):
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f'waited in vain for {what}: {self.statuses}'
            assert all(process.poll() is None for process in processes), self.statuses
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def close(self):
        self.node.destroy_node()
        rclpy.shutdown()


def test_a_robot_is_calibrated_while_gravity_compensation_is_on(tmp_path):
    file = package_share() / 'config' / 'demo' / 'calibration.yaml'
    params = yaml.safe_load(file.read_text())
    section = next(iter(params.values()))['ros__parameters']
    # On its feet: the torso's tendons are not driven by trajectories of joints with efforts.
    section.update(poses=6, candidates=24, max_stamp_age=10.0, sensor_timeout=5.0, hoisted=0,
                   hoist_service='', torso_bend=0.0)
    (tmp_path / 'calibration.yaml').write_text(yaml.safe_dump(params))
    observer = CaptureObserver(tmp_path)
    try:
        with launched('gravity_simulation.launch.xml', 'trajectory_rate:=100.0',
                      'respawn:=none') as robot:
            observer.until(lambda: observer.efforts.any(), 'efforts', robot)
            with launched('calibration.launch.xml', 'robot:=biped', 'move:=true',
                          'use_sim_time:=true', f'directory:={tmp_path}',
                          'trajectory_topic:=gravity_compensation/reference_trajectory',
                          f'com_calibrator_params:={tmp_path / "calibration.yaml"}') as calibrator:
                observer.until(lambda: len(observer.captures()) >= CAPTURES, 'captures', robot,
                               calibrator)
                assert observer.efforts.any()
    finally:
        observer.close()
    # Joint states that are late on a busy machine are none of them.
    assert not observer.problems and 'gravity_compensation: effort' in observer.statuses
    captures = observer.captures()
    model = RobotModel.load('biped')
    postures = np.array([capture['positions'] for capture in captures[:CAPTURES]])
    assert postures.shape[1] == len(model.joint_names)
    assert np.abs(postures - model.posture()).max() > 0.1  # it did move
