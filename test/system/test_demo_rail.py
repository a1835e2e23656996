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
"""The chapter rail, through all nodes: hands without sensors hold a robot that would fall."""

from __future__ import annotations

import re

import pytest
from support.demo_run import LIMIT, run

ROW = re.compile(r'CoM 18 mm beyond the toes, (\w+ \w+) .*?(-?\d+) mm +(.+)')


@pytest.mark.timeout(LIMIT + 20)
def test_hands_on_a_rail_hold_a_robot_that_falls_without_them():
    output = run('hidden:=none', 'chapters:=rail', 'once:=true')
    rows = {how: (int(margin), rest) for how, margin, rest in ROW.findall(output)}
    assert set(rows) == {'without hands', 'hands on'}, output[-2000:]
    margin, rest = rows['without hands']
    assert margin < 0 and 'fallen: ' in rest
    margin, rest = rows['hands on']
    left, right = (float(force) for force in re.findall(r'([\d.]+) N', rest))
    # By moments about the toes: about 5 N each, of which the weight's lever needs 0.5.
    assert margin > 20 and min(left, right) > 2.0 and max(left, right) < 8.0
    assert rest.endswith('stays stable') and '\nrail: shown' in output
