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

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.launched import launched
import yaml

LIMIT, CAPTURES = 400.0, 2  # s, on a busy machine
SEED = 1
#: What is reported of motions that are refused, or go past the node.
INTERFERING = ('reference', 'other publisher', 'a goal of')
pytestmark = pytest.mark.timeout(900)


class CaptureObserver:
    """What the robot does, and its captures."""

    def __init__(self, directory):
        rclpy.init()
        self.node, self._file = Node('observer'), directory / 'biped' / 'captures.json'
        self.joints, self.efforts, self.largest = {}, np.zeros(1), []
        subscribe = self.node.create_subscription
        subscribe(JointState, 'joint_states', self._on_joints, qos_profile_sensor_data)
        subscribe(JointState, 'gravity_compensation/effort', self._on_efforts, 10)
        subscribe(DiagnosticArray, '/diagnostics', self._on_diagnostics, 100)
        self.statuses, self.problems = {}, set()

    def _on_joints(self, message):
        self.joints = dict(zip(message.name, message.position))

    def _on_efforts(self, message):
        self.efforts = np.array(message.effort)
        self.largest.append(np.abs(self.efforts).max())

    def _on_diagnostics(self, message):
        for status in message.status:
            self.statuses[status.name] = status.level, status.message
            if status.name == 'gravity_compensation: effort':
                self.problems |= {text for text in INTERFERING if text in status.message}

    def captures(self):
        return json.loads(self._file.read_text())['captures'] if self._file.exists() else []

    def solve(self):
        client = self.node.create_client(Trigger, 'com_calibrator/solve')
        self.until(client.service_is_ready, 'com_calibrator')
        client.call_async(Trigger.Request())

    def until(self, condition, what, *processes):
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f'waited in vain for {what}: {self.statuses}'
            assert all(process.poll() is None for process in processes), self.statuses
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def close(self):
        self.node.destroy_node()
        rclpy.shutdown()


def com_errors(calibrated):
    """
    Return how far the URDF's CoM and the calibrated one are from the simulator's, level, in m.

    Two upright poses say little about its height.
    """
    model = RobotModel.load('biped')
    file = package_share() / 'config' / 'hidden' / 'masses.yaml'
    hidden = yaml.safe_load(file.read_text())['/**/simulator']['ros__parameters']
    options = SimulatorParameters(robot='biped', seed=SEED, **hidden).plant_options(model.mass)
    plant = Plant(model.config, model.urdf, options, model.joint_names, model.link_names)
    plant.reset('stand')
    truth = plant.truth()
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    com_in_base = base.inverse().apply(truth.com)
    return [np.linalg.norm(m.state(model.posture('stand')).com_in_base[:2] - com_in_base[:2])
            for m in (model, calibrated)]


def test_a_robot_is_calibrated_while_gravity_compensation_is_on(tmp_path):
    file = package_share() / 'config' / 'demo' / 'calibration.yaml'
    params = yaml.safe_load(file.read_text())
    section = next(iter(params.values()))['ros__parameters']
    # On its feet: the torso's tendons are not driven by trajectories of joints with efforts.
    section.update(poses=6, candidates=24, max_stamp_age=10.0, sensor_timeout=5.0, hoisted=0,
                   hoist_service='', torso_bend=0.0)
    (tmp_path / 'calibration.yaml').write_text(yaml.safe_dump(params))
    urdf = tmp_path / 'biped' / 'calibrated.urdf'
    observer = CaptureObserver(tmp_path)
    try:
        with launched('gravity_simulation.launch.xml', 'trajectory_rate:=100.0', 'hidden:=masses',
                      f'seed:={SEED}', 'respawn:=none') as robot:
            observer.until(lambda: observer.efforts.any(), 'efforts', robot)
            with launched('calibration.launch.xml', 'robot:=biped', 'move:=true',
                          'use_sim_time:=true', f'directory:={tmp_path}',
                          'trajectory_topic:=gravity_compensation/reference_trajectory',
                          f'com_calibrator_params:={tmp_path / "calibration.yaml"}') as calibrator:
                observer.until(observer.captures, 'a capture', robot, calibrator)
                observer.largest.clear()
                observer.until(lambda: len(observer.captures()) >= CAPTURES, 'another', robot,
                               calibrator)
                observer.solve()
                observer.until(urdf.exists, 'the calibrated URDF', robot, calibrator)
                assert len(observer.largest) > 100 and min(observer.largest) > 0.2  # N m: on
    finally:
        observer.close()
    # Joint states that are late on a busy machine are none of them.
    assert not observer.problems and 'gravity_compensation: effort' in observer.statuses
    captures = observer.captures()
    model = RobotModel.load('biped')
    postures = np.array([capture['positions'] for capture in captures])
    assert postures.shape[1] == len(model.joint_names)
    assert np.ptp(postures, axis=0).max() > 0.1  # it did move
    before, after = com_errors(RobotModel(model.config, urdf.read_text()))
    assert after < 0.5 * before
