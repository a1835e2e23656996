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
"""Processes that are started again when they end."""

from __future__ import annotations

from pathlib import Path
import re
import signal

import pytest
from support.scripted_launch import node, Start


def test_the_delay_doubles_while_a_process_keeps_failing(start: Start) -> None:
    runner = start(node('fails', 'respawn="true" respawn_delay="0.1" respawn_max_retries="3"'))
    assert runner.process.wait(timeout=100) == 7
    assert runner.output.count('process started') == 4
    assert re.findall(r'respawning in (\S+) s', runner.output) == ['0.1', '0.2', '0.4']


@pytest.mark.parametrize(('script', 'code', 'started'), [
    ('refuses', 1, 1),  # it would print the same reason for ever
    ('crashes', 128 + signal.SIGSEGV, 2)])  # killed at its start
def test_what_refuses_its_arguments_is_not_respawned(
        start: Start, script: str, code: int, started: int) -> None:
    runner = start(node(script, 'respawn="true" respawn_delay="0.1" respawn_max_retries="1"'))
    assert runner.process.wait(timeout=100) == code
    assert runner.output.count('process started') == started


def test_a_success_after_respawning_is_a_success(start: Start, tmp_path: Path) -> None:
    mark = tmp_path / 'mark'
    runner = start(f'<executable cmd="test -e {mark} || (touch {mark}; exit 3)" shell="true" '
                   'respawn="true" respawn_max_retries="1"/>')
    assert runner.process.wait(timeout=100) == 0
    assert 'exit code 3' in runner.output and 'finished cleanly' in runner.output


def test_respawn_stops_on_ctrl_c(start: Start) -> None:
    runner = start(node('ends', 'respawn="true" respawn_delay="30" output="screen"'))
    runner.wait_for('finished cleanly')
    code, duration = runner.end()
    assert code == 0 and duration < 1.5
    assert runner.output.count('process started') == 1
