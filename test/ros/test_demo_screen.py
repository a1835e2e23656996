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
"""Output of the demo."""

from dataclasses import replace

from biped_com_ros.demo.measure import Measure
from biped_com_ros.demo.screen import LiveScreen, make_screen, Screen
from biped_com_ros.demo.terminal import Comparison, Snapshot
import numpy as np
import pytest


def snapshot(activity, waiting=()):
    return Snapshot(
        time=1.0, activity=activity, com_error=np.zeros(3), com_error_largest=0.0, base_drift=0.0,
        weight=10.0, model_weight=10.0, contacts={}, rates={}, real_time_factor=1.0,
        health=(0, 'well'), waiting=waiting)


def lines(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_plain_lines_come_when_the_robot_does_something_else_or_seldom(capsys):
    screen = Screen()
    for activity in ['stands'] * 3 + ['sways'] * 7:
        screen.update(snapshot(activity), snapshot(activity))
    printed = lines(capsys)
    assert ['stands' in line for line in printed] == [True, False, False]


def test_missing_inputs_are_printed_every_time(capsys):
    screen = Screen()
    for _ in range(3):
        screen.update(snapshot('settles', ['the simulator']), snapshot('settles'))
    assert lines(capsys) == ['waiting for the simulator'] * 3


def test_chapters_are_announced_with_their_outcome(capsys):
    screen, chapter = make_screen('the title'), Measure()
    screen.begin_chapter(2, 5, chapter)
    screen.end_chapter(chapter, Comparison(('x',), [('row', '1 mm')]))
    screen.end_chapter(chapter, 'skipped: no feet')
    text = capsys.readouterr().out
    assert 'the title' in text and f'[2/5] {chapter.title} (measure)' in text
    assert 'row  1 mm' in text and '    skipped: no feet' in text


def test_the_table_stays_below_what_is_printed_and_brackets_stay_brackets(capsys):
    screen, chapter = LiveScreen('the title'), Measure()
    screen.update(snapshot('sways'), snapshot(''))
    screen.begin_chapter(1, 1, chapter)
    screen.end_chapter(chapter, 'skipped: no [feet]')
    screen.update(snapshot('stands'), snapshot(''))
    screen.close('last words')
    text = capsys.readouterr().out
    assert 'the title' in text and '[1/1]' in text and 'no [feet]' in text
    assert '[/]' not in text and 'last words' in text


@pytest.mark.parametrize('seconds, stays', [(17.0, True), (0.2, False)])
def test_the_last_table_stays_if_it_has_results(seconds, stays, capsys):
    """After the last chapter measurements begin anew."""
    screen = LiveScreen('the title')
    screen.update(snapshot('stands up'), replace(snapshot(''), time=seconds))
    screen.close('last words')
    text = capsys.readouterr().out
    assert ('stands up' in text) == stays and 'last words' in text
