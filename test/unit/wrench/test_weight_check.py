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
from biped_com_ros.core.wrench.weight_check import (
    weight_below_sensors, WeightCheck, WINDOW_NS)
import numpy as np
import pytest


UP = np.array((0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
#: Wrenches at both soles, N and N m: CoPs at (0.02, 0.01) and (-0.03, 0.02) m.
STANDING = np.array([[5.0, -2.0, 200.0, 2.0, -4.0, 0.1], [-5.0, 2.0, 300.0, 6.0, 9.0, 0.0]])


@pytest.fixture
def check():
    return WeightCheck(500.0, {'left': ('l_toe', 'l_heel'), 'right': ('r_ft',)}, 0.03, 'my.yaml')


def judge(check, left, right, in_contact=True, uprightness=1.0):
    for stamp_ns, wobble in ((0, -5.0), (WINDOW_NS, 5.0)):
        check.add(stamp_ns, left + right, np.multiply.outer([left + wobble, right - wobble], UP),
                  in_contact, uprightness)
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


def test_feet_without_sensors_are_not_tared():
    check = WeightCheck(500.0, {'left': (), 'right': ()}, 0.03, 'my.yaml')
    message = judge(check, 240.0, 200.0).message
    assert '440.0 N' in message and 'calibrate' in message and 'tare' not in message


def test_a_calibrated_robot_is_not_to_be_calibrated(check):
    assert 'calibrate' in judge(check, 240.0, 200.0).message
    check.use_weight(500.0, is_calibrated=True)
    message = judge(check, 240.0, 200.0).message
    assert '440.0 N' in message and 'tare' in message and 'launch' not in message


def test_what_a_robot_weighs_for_an_instant_is_not_compared(check):
    """It falls by 1 m/s^2 for 0.1 s, as in a slow simulation the only one between reports."""
    def add(begin, end, force):
        for i in range(begin, end):
            check.add(10_000_000 * i, force, np.multiply.outer([0.5 * force] * 2, UP), True)
        return check.result()

    falls = add(0, 11, 450.0)
    assert falls.plausible and falls.message == 'not compared yet: 0.1 s are too short'
    assert add(11, 110, 500.0).message == '495.0 N, model 500.0 N (ratio 0.9900)'
    assert add(110, 111, 450.0).message.startswith('495.0 N')


def test_a_result_covers_only_what_came_since_the_last(check):
    assert judge(check, 240.0, 200.0).values['ratio'] == pytest.approx(0.88)
    result = judge(check, 260.0, 250.0)
    assert result.plausible and result.values['ratio'] == pytest.approx(1.02)
    assert check.result() is None


def of_wrenches(check, wrenches):
    """Return the message for wrenches of feet that are not known to be in contact."""
    for stamp_ns, noise in ((0, -1.0), (WINDOW_NS, 1.0)):
        check.add(stamp_ns, float(wrenches[:, 2].sum() + noise), wrenches + noise, False)
    return check.result().message


def test_right_units_and_hanging_robots_give_no_hint(check):
    assert 'scale' not in of_wrenches(check, STANDING)
    assert 'scale' not in of_wrenches(check, 0.002 * STANDING)
    assert 'scale' not in of_wrenches(check, 0.5 * STANDING)


@pytest.mark.parametrize('mass_error', [0.94, 1.06])
@pytest.mark.parametrize(('unit', 'newtons'), [('kgf', 9.80665), ('lbf', 4.4482216)])
def test_a_known_share_of_the_weight_is_a_unit_of_force(check, unit, newtons, mass_error):
    text = of_wrenches(check, mass_error * STANDING / newtons)
    assert f'the sensors measure in {unit}' in text
    assert ('set wrench_sensors.l_toe.scale, wrench_sensors.l_heel.scale, '
            f'wrench_sensors.r_ft.scale to {newtons:g}') in text


def test_a_centre_of_pressure_in_metres_is_a_unit_of_moments(check):
    text = of_wrenches(check, STANDING * [1, 1, 1, 1e3, 1, 1e3])  # of the left one: 10 m along y
    assert text.startswith('the centre of pressure of foot left is 10.0 m from its sole frame')
    assert 'wrench_sensors.l_toe.scale, wrench_sensors.l_heel.scale to [1, 1, 1, 0.001' in text
    assert 'r_ft' not in text
    # Moments of a foot that carries little are moved by errors alone.
    little = np.array([[0.0, 0.0, 20.0, 30.0, 0.0, 0.0], STANDING[1]])
    assert 'scale' not in of_wrenches(check, little)


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
