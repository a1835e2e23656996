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
"""
Faults of sensors, clocks, processes and the computer, on running nodes.

The same harness writes the table of doc/reliability.rst (``python -m benchmarks.reliability``).
Whatever else the computer does, efforts are finite, within the clamp and the rate limit. Times are
those of a quiet computer, times ``BIPED_COM_PATIENCE``: ``make faults-check`` runs the tests with
the mark ``checked`` on a busy one.
"""

import os

import numpy as np
import pytest
import rclpy
from support.reliability.bench import (
    CLOCK_TIMEOUT, HOLD_TIME, INPUT_TIMEOUT, STOP_TIME, ZERO)
from support.reliability.running import running
from support.reliability.system import OTHERS

PATIENCE = float(os.environ.get('BIPED_COM_PATIENCE', '1'))
#: Of the watchdog, of DDS and of a busy machine, s.
_MARGIN = 0.6
#: What another process does to the computer may interrupt efforts, too.
_ATTEMPTS = 3
#: Largest change of a tendon's length from one command to the next: 30 ms at the largest speed of
#: the bend; and of a torso that keeps its shape, m.
_LENGTH_STEP, _LENGTH_CHANGE = 0.03 * 1.5 * 0.034, 0.0005
#: Of the table: those of each kind that find most; the first ones within minutes, for each change.
CHECKED = (
    'joint states lost', 'joint states late by 0.3 s', 'IMU frozen', 'a foot sensor lost',
    "robot's clock steps by +3600 s", 'wrench_aggregator: kill -9',
    'gravity_compensation: kill -9', 'gravity_compensation: restart (SIGINT)',
    'gravity_compensation: SIGSTOP for 3 s', 'a second gravity_compensation')
STANDING = (
    'IMU lost', 'a foot sensor dead', 'com_estimator: kill -9',
    'effort controller: restart in 0.5 s', '2 busy loops per core')
ENDS = ('kill -9', 'restart (SIGINT)', 'SIGSTOP for 3 s')
SIMULATED = ('simulator: kill -9', 'simulator: SIGSTOP for 3 s')


@pytest.fixture(scope='module', autouse=True)
def ros():
    rclpy.init()
    yield
    rclpy.shutdown()


@pytest.fixture(scope='module')
def system(request):
    """Return the bench of a running system and its faults; `running` says which there are."""
    with running(request.param) as found:
        yield found


def with_system(kind):
    return pytest.mark.parametrize('system', [kind], indirect=True)


@with_system('standing')
@pytest.mark.timeout(180 * PATIENCE)
@pytest.mark.parametrize('name', [
    *(pytest.param(name, marks=pytest.mark.checked) for name in CHECKED), *STANDING])
def test_efforts_are_safe_in_time_and_come_back_without_a_step(system, name):
    check(*system, name)


@with_system('others')
@pytest.mark.timeout(240)  # with the start of all nodes
@pytest.mark.parametrize('end', ENDS)
@pytest.mark.parametrize('node', OTHERS)
def test_what_efforts_do_not_depend_on_comes_back_and_leaves_them_alone(system, node, end):
    check(*system, f'{node}: {end}')


@with_system('others')
@pytest.mark.timeout(240)
@pytest.mark.parametrize('name', (
    'tendon states lost', 'tendon states frozen', 'tendon states late by 0.3 s'))
def test_a_torso_without_tendon_states_is_bent_on_and_reports_so(system, name):
    bench, faults = system
    bench.robot.lengths.clear()
    check(bench, faults, name)
    times, lengths = zip(*bench.robot.lengths)
    print(f'{len(times)} lengths, at most {max(np.diff(times)):.3f} s apart, '
          f'{1e3 * np.ptp(lengths, axis=0).max():.3f} mm')
    assert max(np.diff(times)) < PATIENCE * _MARGIN
    assert np.abs(np.diff(lengths, axis=0)).max() < _LENGTH_STEP
    if name == 'tendon states lost':  # else it goes on correcting them
        assert np.ptp(lengths, axis=0).max() < _LENGTH_CHANGE


@with_system('composed')
@pytest.mark.checked
@pytest.mark.parametrize('name', (
    'odometry lost', 'odometry frozen', 'odometry late by 0.3 s', 'suite: kill -9'))
def test_they_are_so_with_all_estimators_in_one_process(system, name):
    check(*system, name)


@with_system('hands')
@pytest.mark.timeout(240)
@pytest.mark.parametrize('name', (
    'a hand sensor lost', 'a hand sensor frozen', 'a hand sensor late by 0.3 s'))
def test_they_do_not_depend_on_hands_that_hold_nothing(system, name):
    check(*system, name)


@with_system('simulated')
@pytest.mark.parametrize('name', SIMULATED)
def test_they_do_so_too_when_simulated_time_stands_still(system, name):
    check(*system, name, CLOCK_TIMEOUT)


def check(bench, faults, name, delay=0.0):
    """Measure a fault, again if something else has interrupted the efforts; never a step."""
    [fault] = [fault for fault in faults if fault.name == name]
    latest = INPUT_TIMEOUT + HOLD_TIME + STOP_TIME + delay + PATIENCE * _MARGIN
    for _ in range(_ATTEMPTS):
        result = bench.measure(fault, timeout=40.0 * PATIENCE)
        print(result)
        assert result.is_finite and result.is_clamped, result
        assert result.largest_step <= 1.0 + 1e-9, result
        assert result.is_named, result
        if (result.outcome in fault.expected
                and result.recovered_after < PATIENCE * fault.limit
                and (result.outcome != ZERO or result.safe_after < latest)):
            return
    raise AssertionError(result)
