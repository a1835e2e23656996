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
"""Which reports of a stability monitor keep a robot from walking, and for how long."""

from biped_com_ros.core.legs.stability_gate import RECOVERY_TIME, StabilityGate
import pytest

MS = 1_000_000
START = 5_000 * MS
LOST = True, 'stability lost', False


@pytest.fixture
def gate():
    gate = StabilityGate('zmp_monitor', 5.0)
    gate.set_report('', 10.0)
    return gate


def test_without_reports_the_robot_must_not_walk(gate):
    assert 'no reports of zmp_monitor' in StabilityGate('zmp_monitor', 5.0).problem(START, 10.0)
    for tenth in range(100, 150):
        gate.check(0.1 * tenth)
    assert not gate.problem(START, 14.95)
    assert 'no reports of zmp_monitor' in gate.problem(START, 15.1)
    gate.set_report('zmp: no wrench', 20.0)
    assert gate.problem(START, 20.0) == 'zmp: no wrench'
    gate.set_report('', 21.0)
    assert not gate.problem(START, 21.0)


def test_the_monitor_is_not_silent_while_this_process_does_not_run(gate):
    assert not gate.problem(START, 18.0)  # 8 s without a check: reports may wait
    for tenth in range(180, 224):
        gate.check(0.1 * tenth)
    assert not gate.problem(START, 22.4)
    assert 'no reports of zmp_monitor' in gate.problem(START, 22.6)
    gate.set_report('', 30.0)
    for second in range(31, 39):  # many short pauses: busy all the time
        gate.check(float(second))
    assert not gate.problem(START, 39.0)
    assert 'no reports of zmp_monitor' in [gate.problem(START, s) for s in (40.0, 41.0)][1]


def test_an_event_counts_until_it_is_withdrawn(gate):
    gate.set_event(*LOST, START)
    assert gate.problem(START, 10.0) == gate.stability_error(START) == 'stability lost'
    gate.set_event(False, 'recovered', False, START + 1)
    assert not gate.problem(START + 1, 10.0) and not gate.stability_error(START + 1)


def test_a_tolerated_fall_counts_when_it_lasts_too_long(gate):
    gate.tolerated_time = 0.3
    gate.set_dcm_margin(-0.01, START)
    gate.set_event(*LOST, START)
    assert not gate.stability_error(START + 299 * MS)
    assert gate.stability_error(START + 301 * MS)
    gate.set_dcm_margin(-0.02, START + 200 * MS)  # still outside since the start
    assert gate.stability_error(START + 301 * MS)
    gate.set_dcm_margin(0.01, START + 250 * MS)
    assert not gate.stability_error(START + 301 * MS)
    # An event that lasts counts, wherever the DCM is.
    late = START + round(1e3 * (0.3 + RECOVERY_TIME)) * MS
    assert not gate.stability_error(late - MS) and gate.stability_error(late + MS)
    assert gate.stability_error(START - 1000 * MS)  # nor after a step back of the clock
    gate.tolerated_time = 10.0
    gate.set_event(True, 'fallen', True, START)
    assert gate.has_fallen and gate.stability_error(START) == 'fallen'
