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
Long tests by turns: `make test` runs all, continuous integration a third of them.

A test that takes long carries ``@pytest.mark.turn(0)`` (or 1, 2); with ``BIPED_COM_TURN=0`` in the
environment those of the other turns are skipped. Of three commits in a row each has another turn.
"""

from __future__ import annotations

import os

import pytest

TURNS = 3
VARIABLE = 'BIPED_COM_TURN'


def chosen_turn(environment=os.environ):
    """Return the turn that the environment asks for; None: all."""
    text = environment.get(VARIABLE, '')
    if not text:
        return None
    if text not in map(str, range(TURNS)):
        raise pytest.UsageError(f'{VARIABLE} is {text!r}; valid: 0 to {TURNS - 1}, or empty')
    return int(text)


def skip_others(items, turn):
    """Skip the tests of other turns."""
    for item in items:
        mark = item.get_closest_marker('turn')
        if mark is None:
            continue
        if len(mark.args) != 1 or mark.args[0] not in range(TURNS):
            raise pytest.UsageError(f'{item.nodeid}: turn(0) to turn({TURNS - 1}) is possible')
        if turn is not None and mark.args[0] != turn:
            item.add_marker(pytest.mark.skip(reason=f'of turn {mark.args[0]}, not {turn}'))
