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
"""Units of foot sensors that readings of a standing robot suggest."""

from biped_com_ros.core.wrench.units import UnitCheck
import numpy as np
import pytest

WEIGHT = 500.0
#: Wrenches at both soles, N and N m: CoPs at (0.02, 0.01) and (-0.03, 0.02) m.
STANDING = np.array([[5.0, -2.0, 200.0, 2.0, -4.0, 0.1], [-5.0, 2.0, 300.0, 6.0, 9.0, 0.0]])


def problem(wrenches, weight=WEIGHT):
    check = UnitCheck({'left': ['toe', 'heel'], 'right': ['ft']})
    for noise in (-1.0, 1.0):
        check.add(wrenches + noise, float(wrenches[:, 2].sum() + noise))
    return check.problem(weight)


def test_right_units_and_hanging_robots_give_no_hint():
    assert problem(STANDING) == ''
    assert problem(0.002 * STANDING) == ''
    assert UnitCheck({'left': ['ft']}).problem(WEIGHT) == ''


@pytest.mark.parametrize('mass_error', [0.94, 1.06])
@pytest.mark.parametrize(('unit', 'newtons'), [('kgf', 9.80665), ('lbf', 4.4482216)])
def test_a_known_share_of_the_weight_is_a_unit_of_force(unit, newtons, mass_error):
    text = problem(mass_error * STANDING / newtons)
    assert f'the sensors measure in {unit}' in text
    assert (f'set wrench_sensors.toe.scale, wrench_sensors.heel.scale, wrench_sensors.ft.scale to '
            f'{newtons:g}') in text


def test_a_half_of_the_weight_is_none():
    assert problem(0.5 * STANDING) == ''


def test_a_centre_of_pressure_in_metres_is_a_unit_of_moments():
    text = problem(STANDING * [1, 1, 1, 1e3, 1, 1e3])  # of the left one: 10 m along y
    assert text.startswith('the centre of pressure of foot left is 10.0 m from its sole frame')
    assert 'wrench_sensors.toe.scale, wrench_sensors.heel.scale to [1, 1, 1, 0.001' in text
    assert 'ft' not in text.replace('left', '')
    # Moments of a foot that carries little are moved by errors alone.
    little = np.array([[0.0, 0.0, 20.0, 30.0, 0.0, 0.0], STANDING[1]])
    assert problem(little) == ''
