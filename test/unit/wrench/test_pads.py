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
"""What robots whose soles measure the vertical force alone do without, and say so."""

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.gravity.compensation import (
    AUTO, CompensationSettings, GravityCompensator, MEASURED)
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.core.wrench.virtual_feet import SensorComparison
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
from biped_com_ros.offline.robot_check import check_robot
import numpy as np
import pytest
from support.gripping_robot import with_virtual_hands
from support.pads import with_pads

RESTRICTION = 'the sensors of left and right measure the vertical force alone'


@pytest.fixture(scope='module')
def model():
    config = with_pads('biped')
    return RobotModel(config, load_urdf(config))


def test_a_pad_carries_nothing_and_its_feet_are_known(model):
    assert model.config.feet_with_force_z == ('left', 'right')
    assert model.config.has_foot_wrenches
    virtual = {name: replace(foot, source='virtual') for name, foot in model.config.feet.items()}
    assert replace(model.config, feet=virtual).feet_with_force_z == ()


def test_a_calibration_is_refused(model):
    with pytest.raises(ConfigurationError, match='left_foot, right_foot of biped measure'):
        with_virtual_sensors(model)


def test_efforts_by_measured_wrenches_are_refused_and_others_are_not(model):
    settings = CompensationSettings(distribution=MEASURED, support=AUTO)
    with pytest.raises(ConfigurationError, match=f'needs whole wrenches, but {RESTRICTION}'):
        GravityCompensator(model, settings)
    GravityCompensator(model, CompensationSettings(support=AUTO))


def test_virtual_hands_do_without_the_feet(model):
    whole = with_virtual_hands(RobotModel.load('biped'))
    sensors = model.config.wrench_sensors
    pads = RobotModel(replace(whole.config, wrench_sensors=sensors), whole.urdf)
    assert [VirtualHandForces(robot, VirtualHandSettings()).uses_feet
            for robot in (whole, pads)] == [True, False]


def test_joint_torques_are_compared_with_the_vertical_force_alone():
    measured, virtual = np.array([0.0, 0.0, 300.0, 0.0, 0.0, 0.0]), np.array(
        [80.0, -60.0, 305.0, 30.0, -40.0, 9.0])
    for force_z, error, plausible in (
            (True, 0.0, True), (False, 0.0, False), (True, 200.0, False)):
        comparison = SensorComparison(('pad',), 600.0, 0.2, force_z)
        comparison.add(measured + [0, 0, error, 0, 0, 0], virtual, np.ones(6))
        assert comparison.result().plausible is plausible


def test_check_lists_them_with_what_the_nodes_do(model):
    found = {entry.name: entry.text for entry in check_robot(model)}
    assert "the vertical force alone in frame 'left_sole_frame'" in found['sensor left_foot']
    assert '0.00 kg are beyond it' in found['sensor left_foot']
    assert found['node zmp_monitor'].startswith(f'runs; the ZMP by the model only: {RESTRICTION}')
    assert found['node com_estimator'].startswith('runs; the fused CoM is by kinematics alone')
    assert 'does not run: left_foot, right_foot' in found['node com_calibrator']
