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
"""Turned sensors of robots that stand in MuJoCo with every instrument wrong, also pushed."""

from dataclasses import replace

from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.turned_sensors import find_turned_sensor
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
import numpy as np
import pinocchio as pin
import pytest
from support.levels import thorough_but
from support.simulated import SimulatedRobot
import yaml

REAL = yaml.safe_load((package_share() / 'config' / 'hidden' / 'real.yaml').read_text())
PUSHES = (None, (0.0, 0.06, 0.0), (-0.04, 0.04, 0.0), (0.0, 0.0, 0.3), (0.03, 0.0, 0.1))


def capture(robot, push):
    """Return means of 0.2 s after 1.5 s."""
    if push is not None:
        robot.push(push, 20.0)
    robot.run(1.5)
    found = robot.capture(100)
    robot.plant.reset()
    return found


@pytest.mark.parametrize('name, seed', thorough_but(('biped', 0), ('talos', 1), ('g1', 0)))
def test_a_push_or_a_rope_is_no_fault_and_a_turn_is(name, seed):
    parameters = SimulatorParameters(**{
        **REAL['/**/simulator']['ros__parameters'], 'robot': name, 'seed': seed, 'tendons': False})
    robot = SimulatedRobot(name, parameters.plant_options(RobotModel.load(name).mass))
    regressor = StaticsRegressor(robot.model)
    for push in PUSHES:
        captured = capture(robot, push)
        assert find_turned_sensor(regressor, captured) is None, push
        if push is not None:
            continue
        for axis, foot in ((0, 'left'), (1, 'right')):
            sensor, = robot.model.config.feet[foot].wrench_sensors
            i = list(robot.model.config.wrench_sensors).index(sensor)
            R = pin.exp3(0.5 * np.pi * np.eye(3)[axis])
            wrenches = captured.wrenches.copy()
            wrenches[i] = np.concatenate((R.T @ wrenches[i, :3], R.T @ wrenches[i, 3:]))
            found = find_turned_sensor(regressor, replace(captured, wrenches=wrenches))
            assert found is not None and found.sensor == sensor and found.sign == 1
            assert np.linalg.norm(pin.log3(R.T @ found.rotation)) < 0.1
