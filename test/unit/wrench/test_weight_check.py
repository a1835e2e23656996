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
"""What the weight check says about sensors that are right, reversed, or not tared."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.weight_check import weight_below_sensors, WeightCheck
import numpy as np
import pytest


@pytest.fixture
def check():
    return WeightCheck(500.0, {'left': ('l_toe', 'l_heel'), 'right': ('r_ft',)}, 0.03, 'my.yaml')


def judge(check, left, right, in_contact=True, uprightness=1.0):
    for wobble in (-5.0, 5.0):
        check.add(left + right, np.array([left + wobble, right - wobble]), in_contact,
                  uprightness)
    return check.result()


def test_the_right_weight_is_plausible(check):
    result = judge(check, 260.0, 250.0)
    assert result.plausible and result.ratio == pytest.approx(1.02)
    assert '510.0 N, model 500.0 N' in result.message


def test_a_foot_in_the_air_is_plausible(check):
    assert judge(check, 0.0, 500.0).plausible


def test_hanging_is_plausible(check):
    result = judge(check, 1.0, -1.0, in_contact=False)
    assert result.plausible and 'no foot on the ground' in result.message


def test_everything_reversed_names_all_signs(check):
    result = judge(check, -240.0, -255.0, in_contact=False)
    assert not result.plausible
    for sensor in ('l_toe', 'l_heel', 'r_ft'):
        assert f'wrench_sensors.{sensor}.sign' in result.message
    assert 'my.yaml' in result.message


def test_one_foot_reversed_names_its_sensor_only(check):
    result = judge(check, 240.0, -255.0)
    assert 'wrench_sensors.r_ft.sign' in result.message and 'l_toe' not in result.message


def test_the_message_of_a_wrong_weight_names_the_remedy(check):
    result = judge(check, 240.0, 200.0)
    assert not result.plausible
    assert '440.0 N' in result.message and 'tare' in result.message


def test_a_result_covers_only_what_came_since_the_last(check):
    judge(check, 240.0, 200.0)
    assert judge(check, 250.0, 250.0).plausible
    assert check.result() is None


def test_a_fallen_robot_gives_no_advice_to_flip_sensors(check):
    result = judge(check, 240.0, -255.0, uprightness=0.1)
    assert not result.plausible
    assert 'fallen' in result.message and 'sign' not in result.message
    assert 'wrench_sensors.r_ft.sign' in judge(check, 240.0, -255.0, uprightness=0.9).message


def test_the_weight_below_the_sensors_is_that_of_all_links_that_hang_from_them():
    model = RobotModel.load('biped')
    feet = [model.link_names.index(name) for name in ('l_foot', 'r_foot')]
    assert weight_below_sensors(model) == pytest.approx(GRAVITY * model.link_masses[feet].sum())
    config = model.config
    higher = replace(config.wrench_sensors['left_foot'], link='l_shin')
    sensors = {**config.wrench_sensors, 'left_foot': higher}
    shin = model.link_names.index('l_shin')
    assert weight_below_sensors(RobotModel(
        replace(config, wrench_sensors=sensors), model.urdf)) > GRAVITY * model.link_masses[
            [*feet, shin]].sum() * 0.999
    blind = {name: replace(foot, wrench_sensors=()) for name, foot in config.feet.items()}
    assert weight_below_sensors(RobotModel(replace(config, feet=blind), model.urdf)) == 0.0
