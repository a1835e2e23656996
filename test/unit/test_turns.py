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
"""Every long test has its turn, and runs where no turn is chosen."""

from types import SimpleNamespace

import pytest
from support.turns import chosen_turn, skip_others, TURNS


def skipped(turn, *args):
    """Return whether a test with a mark of these arguments is skipped."""
    added = []
    item = SimpleNamespace(nodeid='test', add_marker=added.append, get_closest_marker=lambda name:
                           SimpleNamespace(args=args) if name == 'turn' and args else None)
    skip_others([item], turn)
    return bool(added)


def test_a_long_test_runs_in_one_turn_and_where_none_is_chosen():
    for mine in range(TURNS):
        assert [skipped(turn, mine) for turn in range(TURNS)].count(False) == 1
        assert not skipped(mine, mine) and not skipped(None, mine)


def test_others_always_run():
    assert not any(skipped(turn) for turn in (None, *range(TURNS)))


@pytest.mark.parametrize('args', [(3,), (-1,), (0, 1), ('0',)])
def test_a_turn_that_never_comes_is_an_error(args):
    with pytest.raises(pytest.UsageError):
        skipped(None, *args)


def test_the_environment_chooses():
    assert chosen_turn({}) is chosen_turn({'BIPED_COM_TURN': ''}) is None
    assert chosen_turn({'BIPED_COM_TURN': '2'}) == 2
    with pytest.raises(pytest.UsageError, match='valid: 0 to 2'):
        chosen_turn({'BIPED_COM_TURN': '3'})
