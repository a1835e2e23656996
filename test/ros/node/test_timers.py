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
"""Tests of the timer that goes on in place of messages, on both executors."""

from biped_com_ros.ros.node.clock import steady_time, watchdog
import pytest
from support.ros_rig import NodeRig

PERIOD, SELDOM = 0.005, 0.03


@pytest.mark.parametrize('plain', ['0', '1'])
def test_looks_seldom_until_it_is_needed_and_again_after(monkeypatch, plain, closing):
    monkeypatch.setenv('BIPED_COM_PLAIN', plain)
    rig, looks, silent = closing(NodeRig()), [], False

    def look():
        looks.append(steady_time())
        return silent

    def steps(seconds):
        looks.clear()
        rig.spin(seconds)
        return [b - a for a, b in zip(looks, looks[1:])]
    watchdog(rig.node, PERIOD, look)
    assert steps(0.2) == pytest.approx([SELDOM] * 5)
    silent = True
    assert steps(0.2)[-30:] == pytest.approx([PERIOD] * 30)
    silent = False
    assert steps(0.2)[1:] == pytest.approx([SELDOM] * 5)
