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
"""What the demo prints, and when."""

from __future__ import annotations

from biped_com_ros.demo.measure import Measure
from biped_com_ros.demo.screen import LiveScreen, make_screen, PlainScreen
from biped_com_ros.viz.terminal import Comparison, Snapshot
import numpy as np


def snapshot(doing, waiting=()):
    return Snapshot(1.0, doing, np.zeros(3), 0.0, 10.0, 10.0, 9.81, {}, {}, 1.0, (0, 'well'),
                    waiting)


def lines(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_plain_lines_come_when_the_robot_does_something_else_or_seldom(capsys):
    screen = PlainScreen()
    for doing in ['stands'] * 3 + ['sways'] * 7:
        screen.show(snapshot(doing), snapshot(doing))
    printed = lines(capsys)
    assert ['stands' in line for line in printed] == [True, False, False]


def test_what_is_waited_for_is_said_every_time(capsys):
    screen = PlainScreen()
    for _ in range(3):
        screen.show(snapshot('settles', ['the simulator']), snapshot('settles'))
    assert lines(capsys) == ['waiting for the simulator'] * 3


def test_chapters_are_announced_and_their_outcome_told(capsys):
    screen, chapter = make_screen('plain', 'the title'), Measure()
    screen.begin(2, 5, chapter)
    screen.end(chapter, Comparison(('x',), [('row', '1 mm')]))
    screen.end(chapter, 'skipped: no feet')
    text = capsys.readouterr().out
    assert 'the title' in text and f'[2/5] {chapter.title} (measure)' in text
    assert 'row  1 mm' in text and '    skipped: no feet' in text


def test_the_table_stays_below_what_is_told_and_brackets_stay_brackets(capsys):
    screen, chapter = LiveScreen('the title'), Measure()
    screen.show(snapshot('sways'), snapshot(''))
    screen.begin(1, 1, chapter)
    screen.end(chapter, 'skipped: no [feet]')
    screen.show(snapshot('stands'), snapshot(''))
    screen.close('last words')
    text = capsys.readouterr().out
    assert 'the title' in text and '[1/1]' in text and 'no [feet]' in text
    assert '[/]' not in text and 'last words' in text
