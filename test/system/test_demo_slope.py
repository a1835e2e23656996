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
"""The slope chapter of the demo, live: feedback halves the error of the zero-moment point."""

import os
import re

import pytest
from support.demo_run import run

LIMIT = 700.0
"""For about 40 s of simulated time in slow motion on a busy machine, s."""

EVERY = 'BIPED_COM_ROS_ALL_CHAPTERS'
"""Environment variable that has the demo's chapters in slow motion tested."""

ROW = re.compile(r'6\.0 deg down, (\S+) feedback +(\d) of 6 +([\d.]+) mm +(-?\d+) mm')


@pytest.mark.skipif(not os.environ.get(EVERY), reason=f'takes minutes; {EVERY}=1 tests it')
@pytest.mark.timeout(LIMIT + 20)
def test_feedback_halves_the_error_on_a_slope_and_the_floor_is_level_afterwards():
    output = run('hidden:=none', 'chapters:=slope,measure', 'once:=true', limit=LIMIT)
    rows = {how: (int(steps), float(error), int(margin))
            for how, steps, error, margin in ROW.findall(output)}
    assert set(rows) == {'without', 'with'}, output[-2000:]
    assert rows['without'][0] == rows['with'][0] == 6
    assert rows['with'][1] < 0.5 * rows['without'][1]
    assert '\nslope: shown\nmeasure: shown' in output
