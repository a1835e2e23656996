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
The likeliest meaning of a name that does not exist.

Names of frames and joints are made of words (``root_link_imu_frame``). Of words that both names
have *link*, *frame* and the like mean little, and left and right are never confused.
"""

from __future__ import annotations

from collections.abc import Iterable
import difflib
import re

_WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+')
#: Words that only name which kind of thing a name belongs to.
_GENERIC = frozenset(('link', 'frame', 'joint', 'body', 'base', 'root', 'sensor', 'origin', 'mesh',
                      'of', 'to', 'in', 'fixed', 'virtual', 'std'))
_SIDES = {'l': 'left', 'left': 'left', 'r': 'right', 'right': 'right'}
#: Least similarity of two names of which a word is the same.
_SHARED = 0.4
#: Longer names are no misspelt ones, and comparing them takes minutes: 1 MB may come in a message.
_LONGEST = 200


def likeliest_name(name: str, valid: Iterable[str]) -> str | None:
    """
    Return the valid name that `name` most probably stands for; None if there is none.

    Parameters
    ----------
    name
        A name that does not exist.
    valid
        The names that do.

    """
    if len(name) > _LONGEST:
        return None
    words, side = _words(name)
    described = {candidate: _words(candidate) for candidate in valid}
    candidates = [each for each, (_, other) in described.items()
                  if not side or other in ('', side)]
    sharing = [each for each in candidates if words & described[each][0]]
    close = (difflib.get_close_matches(name, sharing, 1, _SHARED)
             or difflib.get_close_matches(name, candidates, 1))
    return close[0] if close else None


def _words(name: str) -> tuple[frozenset[str], str]:
    """Return the words that identify what is meant, and its side."""
    words = {_SIDES.get(word, word) for word in map(str.lower, _WORD.findall(name))}
    sides = words & {'left', 'right'}
    return frozenset(words - sides - _GENERIC), sides.pop() if len(sides) == 1 else ''
