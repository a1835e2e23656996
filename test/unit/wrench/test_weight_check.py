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
        check.add(left + right, np.array([left + wobble, right - wobble]), in_contact, uprightness)
    return check.result()


@pytest.mark.parametrize(('measured', 'plausible', 'named', 'not_named'), [
    ((260.0, 250.0), True, ['510.0 N, model 500.0 N'], []), ((0.0, 500.0), True, [], []),
    ((1.0, -1.0, False), True, ['no foot on the ground'], []),
    ((-240.0, -255.0, False), False,
     ['my.yaml', *(f'wrench_sensors.{name}.scale' for name in ('l_toe', 'l_heel', 'r_ft'))], []),
    ((240.0, -255.0), False, ['wrench_sensors.r_ft.scale'], ['l_toe']),
    ((240.0, 200.0), False, ['440.0 N', 'tare'], []),
    ((240.0, -255.0, True, 0.1), False, ['fallen'], ['scale']),
    ((240.0, -255.0, True, 0.9), False, ['wrench_sensors.r_ft.scale'], [])],
    ids=['the right weight', 'a foot in the air', 'hanging', 'everything reversed',
         'one foot reversed', 'a wrong weight', 'fallen', 'leaning'])
def test_a_problem_is_named_with_its_remedy(check, measured, plausible, named, not_named):
    result = judge(check, *measured)
    assert result.plausible == plausible
    assert all(part in result.message for part in named)
    assert not any(part in result.message for part in not_named)


def test_a_result_covers_only_what_came_since_the_last(check):
    assert judge(check, 240.0, 200.0).ratio == pytest.approx(0.88)
    result = judge(check, 260.0, 250.0)
    assert result.plausible and result.ratio == pytest.approx(1.02)
    assert check.result() is None


def test_the_weight_below_the_sensors_is_that_of_all_links_that_hang_from_them():
    model = RobotModel.load('biped')
    config, masses = model.config, dict(zip(model.link_names, model.link_masses))
    feet = GRAVITY * (masses['l_foot'] + masses['r_foot'])
    assert weight_below_sensors(model) == pytest.approx(feet)
    higher = replace(config.wrench_sensors['left_foot'], link='l_shin')
    changed = replace(config, wrench_sensors={**config.wrench_sensors, 'left_foot': higher})
    assert weight_below_sensors(RobotModel(changed, model.urdf)) > 0.999 * (
        feet + GRAVITY * masses['l_shin'])
    blind = {name: replace(foot, wrench_sensors=()) for name, foot in config.feet.items()}
    assert weight_below_sensors(RobotModel(replace(config, feet=blind), model.urdf)) == 0.0
