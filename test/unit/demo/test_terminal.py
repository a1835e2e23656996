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
"""The text and the table of the demo's measurements."""

import math
import re

from biped_com_ros.demo.terminal import (
    Comparison, comparison_table, comparison_text, line, Mean, Period, save_picture, Snapshot,
    summary, table)
import numpy as np
import pytest
from rich.console import Console
from support.demo_snapshot import snapshot


def printed(what, width=120):
    """Return what the console of a width shows."""
    console = Console(width=width, record=True, file=open('/dev/null', 'w'))
    console.print(what)
    return console.export_text()


def rendered(shot, whole=None):
    return printed(table(shot, whole or shot, 'the title'))


def test_mean_and_largest_of_vectors():
    mean = Mean(2)
    assert np.isnan(mean.mean).all()
    mean.add(np.array([3.0, 4.0]))
    mean.add(np.array([-1.0, 0.0]))
    np.testing.assert_allclose(mean.mean, [1.0, 2.0])
    assert mean.largest == 5.0


def test_weight_is_the_sum_over_the_feet_once_all_are_known():
    period = Period()
    for force in (10.0, 12.0):
        period.vertical_forces.setdefault('left', Mean(1)).add(force)
    assert math.isnan(period.weight(2))
    period.vertical_forces.setdefault('right', Mean(1)).add(5.0)
    assert period.weight(2) == 16.0


def test_what_is_stale_has_its_age():
    assert ' ago' not in rendered(snapshot())
    text = rendered(snapshot(com_error=np.full(3, math.nan), ages={'com': 12.0, 'left': 7.0}))
    assert '- 12 s ago' in text and 'left 20.5 N, 7 s ago' in text
    assert '● left' not in text and 'right 0.4 N' in text and 'right 0.4 N,' not in text


@pytest.mark.parametrize('show', [line, rendered])
def test_shows_the_measured_errors_with_their_signs(show):
    text = show(snapshot())
    assert '13.00 mm' in text and '+1.94 %, +0.070 kg' in text
    assert re.search(r'x \+3.00,? +y -4.00,? +z \+12.00', text)
    assert 'sways to the left' in text and 'all 12 checks well' in text
    assert '20.5' in text and '0.98' in text
    assert all(part in text for part in (
        ['right=0.4N(free)'] if show is line else ['○ right', '● left']))
    brackets = "com: link 'a[0]' [/dev/imu] [bold]"
    assert brackets in show(snapshot(health=(2, brackets)))


def test_missing_inputs_are_shown_instead_of_numbers():
    shot = snapshot(waiting=['joint_states (the simulator)'], com_error=np.full(3, math.nan),
                    weight=math.nan)
    assert line(shot) == 'waiting for joint_states (the simulator)'
    assert 'waiting for joint_states (the simulator)' in rendered(shot)
    assert 'nan' not in rendered(shot) + rendered(snapshot(real_time_factor=math.nan))
    assert 'No measurements: waiting for joint_states' in summary(shot)


def test_what_moves_is_judged_by_a_second_not_by_an_instant():
    early, enough = snapshot(time=0.1), snapshot(time=1.0)
    for show in (rendered, summary):
        assert 'calibrate the URDF' in show(enough) and 'calibrate the URDF' not in show(early)


def test_while_measuring_is_paused_no_time_is_shown():
    paused = Snapshot(activity='is lifted')
    text = rendered(snapshot(), paused)
    assert 't = 12.3 s' in text and 'x 0.00' not in text and 'nan' not in text
    text = rendered(paused, paused)
    assert 'measuring is paused' in text and 't = ' not in text and 'nan' not in text


def test_what_is_not_measured_just_now_is_a_dash():
    hangs = snapshot(com_error=np.full(3, math.nan), weight=math.nan, activity='hangs',
                     health=(1, 'held where it was: no foot stands'))
    assert line(hangs) == 'hangs; held where it was: no foot stands'
    text = rendered(hangs, snapshot())
    assert 'nan' not in text and re.search(r'error of the CoM.* - .*13\.00 mm', text)


#: Of height, which standing poses hardly determine.
HIGH = (3e-4, 0.0, -1.1e-3)


@pytest.mark.parametrize('changes, conclusion', [
    ({'com_error': (0.0, 1e-4, 0.0), 'weight': 35.32, 'exact_sensors': True},
     'describes this robot'),
    ({'com_error': (0.0, 5e-3, 0.0), 'weight': 35.32, 'exact_sensors': True},
     'wrong in the URDF: the centre of mass; calibrate it'),
    ({'com_error': (0.0, 1e-4, 0.0), 'weight': 36.00, 'exact_sensors': True},
     'wrong in the URDF: the weight; calibrate it'),
    ({'com_error': (0.0, 5e-3, 0.0), 'weight': 34.00, 'exact_sensors': True},
     'wrong in the URDF: the centre of mass and the weight; calibrate it'),
    ({'com_error': HIGH, 'weight': 35.316, 'exact_sensors': True},
     'wrong in the URDF: the centre of mass'),
    ({'com_error': (0.0, 0.0, 0.0), 'weight': 35.316, 'is_calibrated': True},
     'the calibrated URDF describes this robot'),
    ({'weight': 35.316, 'is_calibrated': True, 'exact_sensors': True},
     'still wrong after the calibration: the centre of mass (limits: 1 mm horizontally, 0.2 %)'),
    ({'com_error': HIGH, 'weight': 35.316, 'is_calibrated': True},
     'the calibrated URDF describes this robot, but for 1.1 mm of height'),
    ({'com_error': (1.1e-3, 0.0, 0.0), 'weight': 35.316, 'is_calibrated': True},
     'take more poses'),
    ({'com_error': (0.0, 0.0, 0.0), 'weight': 36.0, 'is_calibrated': True},
     'tare the sensors in the air'),
    ({'com_error': (0.0, 5e-3, 0.0), 'weight': 35.32},
     'wrong: the centre of mass; tare the sensors, or calibrate the URDF'),
    ({'com_error': (0.0, 5e-3, 0.0), 'weight': 35.32, 'has_sensors': False},
     'wrong in the URDF: the centre of mass; calibrate it'),
    ({'com_error': (0.0, 0.0, 0.0), 'weight': 36.0, 'is_calibrated': True, 'has_sensors': False},
     'take more poses')])
def test_judges_the_urdf_in_use(changes, conclusion):
    """After a calibration the weight has another remedy than the centre of mass."""
    shot = snapshot(**{name: np.array(value) if name == 'com_error' else value
                       for name, value in changes.items()})
    assert conclusion in summary(shot) and conclusion in printed(table(shot, shot, ''), 200)
    assert not ('is_calibrated' in changes and 'calibrate it' in summary(shot))
    assert shot.has_sensors or 'tare' not in summary(shot)
    # The table judges by the whole run, not by the last second.
    assert conclusion in printed(table(snapshot(), shot, ''), 200)


def test_a_robot_that_fell_is_reported_as_fallen_and_nothing_else():
    fallen = snapshot(has_fallen=True)
    assert line(fallen) == 'sways to the left: the robot has fallen'
    assert summary(fallen) == 'The robot has fallen'
    text = rendered(fallen)
    assert 'the robot has fallen' in text
    assert 'mm' not in text and 'weight' not in text and 'Hz' not in text


def test_weight_that_no_sensor_measures_is_left_out():
    """3 N of feet: what the sensors weigh is 33 N, where the URDF says 32.316."""
    assert 'with 3.0 N below the sensors' in rendered(snapshot(unmeasured=3.0))
    assert 'below the sensors' not in rendered(snapshot())
    text = summary(snapshot(unmeasured=3.0))
    assert 'weight above the feet 33.00 N measured, 32.32 N by the URDF: +2.12 %, +0.070' in text
    text = line(snapshot(weight=math.nan)) + summary(snapshot(weight=math.nan))
    assert 'weight not measured' in text and 'nan' not in text
    assert 'the weight' not in text


def test_the_drift_of_leg_odometry_is_shown_by_itself():
    assert 'base by leg odometry off by 33.0 mm' in line(snapshot())
    assert 'leg odometry off by 33.0 mm' in summary(snapshot())
    assert '33.0 mm off' in rendered(snapshot())
    assert '-' in rendered(snapshot(base_drift=math.nan)).split('leg odometry')[1].split('\n')[0]


def test_the_picture_needs_nothing_from_the_web(tmp_path):
    path = tmp_path / 'table.svg'
    save_picture(snapshot(), snapshot(), 'a title', str(path))
    text = path.read_text()
    assert '13.00' in text  # millimetres, the norm of the error
    assert '@font-face' not in text and 'https://cdn' not in text


COMPARISON = Comparison(('before', 'after'), [
    ('a hand off by', '13.2 mm', '0.02 mm'), ('joints [all]', '', '1 %')], 'better [by far]')


def test_a_comparison_is_aligned_in_plain_lines_and_a_table_keeps_its_brackets():
    head, hand, joints, conclusion = comparison_text(COMPARISON).splitlines()
    assert head.index('before') == hand.index('13.2 mm')
    assert head.index('after') == hand.index('0.02 mm') == joints.index('1 %')
    assert conclusion == 'better [by far]'
    text = printed(comparison_table(COMPARISON), 100)
    assert 'joints [all]' in text and 'better [by far]' in text and '0.02 mm' in text
    partly = Comparison(('x',), [('1 of 6 steps', '3 mm')], problem='1 of 6 steps, then [halted]')
    assert comparison_text(partly).splitlines()[-1] == 'not done: 1 of 6 steps, then [halted]'
    assert '1 of 6 steps, then [halted]' in printed(comparison_table(partly), 100)


LONG = '/home/somebody/a_directory/with_a_name/' + 'and_a_longer_one_' * 6 + '/report.html'


@pytest.mark.parametrize('width', [60, 100])
def test_a_long_path_is_never_cut(width):
    """A reader copies it; with an ellipsis it would open nothing."""
    found = Comparison(('file', 'x'), [(f'results {LONG}', LONG, '1')], f'see {LONG}', LONG)
    for shown in (table(*2 * (snapshot(activity=LONG, health=(1, LONG), waiting=[LONG]),), LONG),
                  table(*2 * (snapshot(activity=LONG, health=(1, LONG)),), LONG),
                  comparison_table(found)):
        text = printed(shown, width)
        assert '\N{HORIZONTAL ELLIPSIS}' not in text
        assert LONG[-12:] in text
    # Below a table it stays in one piece, over several lines with nothing in between.
    below = comparison_table(Comparison(('x',), [('row', '1')], f'results in {LONG}'))
    assert LONG in printed(below, width).replace('\n', '')
