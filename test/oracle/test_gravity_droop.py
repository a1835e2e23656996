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
"""In MuJoCo: arms and legs without droop, and a step in place without steps in torque."""

from dataclasses import replace
import importlib.util
from pathlib import Path
import sys

from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.levels import thorough_but

EXAMPLE = Path(__file__).resolve().parents[2] / 'examples' / 'gravity_droop.py'


@pytest.fixture(scope='module')
def example():
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location('gravity_droop', EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize('robot', thorough_but('g1', 'biped', 'talos', 'icub'))
def test_droop_is_at_least_500_times_smaller_with_feedforward(example, robot):
    without = example.droop(robot, None)
    held = example.droop(robot, RobotModel.load(robot))
    assert without.arm_deg > 0.5 and without.hand_mm > 1.0
    assert held.arm_deg < without.arm_deg / 500.0
    assert held.hand_mm < without.hand_mm / 500.0
    assert held.leg_deg < without.leg_deg / 500.0


@pytest.mark.thorough
def test_a_calibrated_model_leaves_far_less_than_the_urdf(example):
    """With noisy sensors; the wrists' light last links are identified least well."""
    model, options = RobotModel.load('biped'), example.HIDDEN
    without, urdf = example.droop('biped', None, options), example.droop('biped', model, options)
    calibrated = example.droop(
        'biped', example.calibrated_model('biped', options, poses=40), options)
    assert urdf.hand_mm < 0.1 * without.hand_mm
    assert calibrated.hand_mm < 0.2 * urdf.hand_mm


@pytest.mark.thorough
@pytest.mark.parametrize('robot', ('biped', 'talos'))
def test_weight_goes_to_one_foot_and_back_with_continuous_torques(example, robot):
    """At 500 Hz and without a rate limit: only the shares limit the steps."""
    assert example.UNLIMITED.safety.max_rate == 1000.0
    shift = example.shift_weight(robot)
    assert not shift.fell
    assert shift.shares[:, 1].min() == 0.0
    assert abs(shift.shares[-1, 1] - 0.5) < 0.1
    assert 0.0 < shift.largest_step < 0.005
    rest = shift.efforts[-200:]
    assert np.ptp(rest, axis=0).max() < 0.5


@pytest.mark.thorough
@pytest.mark.parametrize('robot, newtons', [('g1', 40.0), ('talos', 100.0)])
def test_by_measured_wrenches_a_push_leaves_no_more_internal_forces_than_by_statics(
        example, robot, newtons):
    """Internal forces move nothing: a feedforward of all that is measured makes them grow."""
    left = {}
    for distribution in ('closed_form', 'measured'):
        settings = replace(example.UNLIMITED, distribution=distribution)
        held = example.Robot(robot, RobotModel.load(robot), settings=settings)
        held.run(2.0)
        before = held.plant.truth().sole_wrenches.copy()
        push = (0.3 * newtons, newtons, 0.0, 0.0, 0.0, 0.0)
        held.plant.push(held.model.config.base_link, push, 0.2)
        held.run(0.2)
        assert np.abs(held.plant.truth().sole_wrenches - before)[:, 1].max() > 0.2 * newtons
        held.run(3.0)
        truth = held.plant.truth()
        assert np.abs(truth.base_twist).max() < 1e-4
        errors = held.observation.joint_positions[held.actuated] - held.command.position
        left[distribution] = (
            np.abs(truth.sole_wrenches - before)[:, :2].max(), np.abs(errors).max())
    (force, error), (by_statics, error_by_statics) = left['measured'], left['closed_form']
    assert force < by_statics + 1.0
    assert error < error_by_statics
