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

import re

from support.scripted_launch import node


def test_the_delay_doubles_while_a_process_keeps_failing(start):
    runner = start(node('fails', respawns=True))
    runner.wait_for('respawning', 4)
    assert runner.end()[0] == 0
    assert re.findall(r'respawning in (\S+) s', runner.output) == ['0.1', '0.2', '0.4', '0.8']


def test_what_refuses_its_arguments_is_not_respawned(start):
    """It would print the same reason for ever; what is killed at its start is respawned."""
    runner = start(node('refuses', respawns=True))
    assert runner.process.wait(timeout=100) == 1
    assert runner.output.count('process started') == 1
    runner = start(node('crashes', respawns=True))
    runner.wait_for('process started', 2)
    assert runner.end()[0] == 0


def test_a_success_after_respawning_is_a_success(start, tmp_path):
    runner = start(node('fails_once', respawns=True, arguments=(str(tmp_path / 'mark'),)))
    runner.wait_for('ready')
    assert runner.end()[0] == 0
    assert 'exit code 3' in runner.output and 'finished cleanly' in runner.output


def test_respawn_stops_on_ctrl_c(start):
    runner = start(node('ends', respawns=True))
    runner.wait_for('respawning in 1.6 s')
    code, duration = runner.end()
    assert code == 0 and duration < 1.5
    assert 'finished cleanly' in runner.output
