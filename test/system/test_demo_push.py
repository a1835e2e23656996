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
"""The push chapter of the demo, live: the margin falls, it is warned of, the fall is announced."""

import re

import pytest
from support.demo_run import LIMIT, run

ROW = re.compile(r'push of ([\d.]+) N +(-?\d+) mm +(.+)')


@pytest.mark.timeout(LIMIT + 20)
def test_pushed_harder_and_harder_it_recovers_and_at_last_falls():
    """Twenty seconds long, since it takes so many pushes to bring the robot down."""
    output = run('hidden:=none', 'chapters:=push', 'once:=true')
    rows = [(float(force), float(margin), then) for force, margin, then in ROW.findall(output)]
    assert len(rows) >= 3, output[-2000:]
    forces, margins, ends = zip(*rows)
    assert forces == tuple(sorted(forces))
    assert margins[0] > 0.0 > min(margins), 'the margin falls, at last below zero'
    assert all('stable' in end or 'marginal' in end or 'recovered' in end for end in ends[:-1])
    assert 'fallen: ' in ends[-1] and 'the base leans by' in ends[-1]
    warned = re.search(r'(marginal: the ZMP is [\d.]+ mm from the edge|stability lost: )', output)
    fallen = re.search(r'zmp_monitor.*fallen: |fallen: ', output)
    assert warned and fallen and warned.start() < fallen.start()
