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

Names of frames and joints are made of words (``root_link_imu_frame``). Words that name a device or
part of the body identify what is meant; *link*, *frame* and the like hardly do, and left and right
are never confused. Edit distance alone would suggest ``root_link`` for the frame of an IMU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import difflib
import math
import re

_WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+')
#: Words that only name which kind of thing a name belongs to.
_GENERIC = frozenset(('link', 'frame', 'joint', 'body', 'base', 'root', 'sensor', 'origin', 'mesh',
                      'of', 'to', 'in', 'fixed', 'virtual', 'std'))
_GENERIC_WEIGHT = 0.2
#: Words of which one names what a thing is.
_MEANINGS = {
    'imu': 'imu accelerometer gyro gyroscope inertial ahrs',
    'ft': 'ft force torque wrench loadcell',
    'left': 'left l lft',
    'right': 'right r rgt',
    'foot': 'foot feet sole toe',
    'hand': 'hand gripper tcp',
    'pelvis': 'pelvis hips',
    'head': 'head skull',
    'torso': 'torso chest trunk waist thorax',
}
_DEVICES = ('imu', 'ft')
_DEVICE_WEIGHT = 3.0
_MEANING_OF = {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
_SAME_WORD = 0.75  # least similarity of two spellings of one word
_CLOSE = 0.6  # least similarity of two spellings of one name, as difflib's default
_SHARED = 0.45  # least share of common meaning
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
    candidates = tuple(valid)
    words = {candidate: _meanings(candidate) for candidate in (*candidates, name)}
    counts = Counter(word for candidate in candidates for word in set(words[candidate]))
    best, best_score = None, 0.0
    for candidate in candidates:
        score = _similarity(name, candidate, words[name], words[candidate], counts)
        if score > best_score:
            best, best_score = candidate, score
    return best


def _similarity(name: str, candidate: str, words: Sequence[str], others: Sequence[str],
                counts: Mapping[str, int]) -> float:
    """Return how probable it is that two names mean the same, 0: not at all."""
    if {'left', 'right'} == {*words, *others} & {'left', 'right'} and not (
            {'left', 'right'} <= {*words} or {'left', 'right'} <= {*others}):
        return 0.0
    spelling = difflib.SequenceMatcher(None, name, candidate).ratio()
    shared = _shared_meaning(words, others, counts)
    if spelling < _CLOSE and shared < _SHARED:
        return 0.0
    return shared + spelling


def _shared_meaning(words: Sequence[str], others: Sequence[str],
                    counts: Mapping[str, int]) -> float:
    """Return the weight of the words that both names have, over that of all of them."""
    left = list(others)
    common = total = 0.0
    for word in words:
        match, similarity = _closest(word, left)
        if match is None:
            total += _weight(word, counts)
            continue
        left.remove(match)
        weight = _weight(match, counts)
        common, total = common + 2.0 * similarity * weight, total + 2.0 * weight
    total += sum(_weight(word, counts) for word in left)
    return common / total if total else 0.0


def _closest(word: str, words: Sequence[str]) -> tuple[str | None, float]:
    """Return the spelling of a word among others, with its similarity; None if there is none."""
    if word in words:
        return word, 1.0
    ratios = [(difflib.SequenceMatcher(None, word, other).ratio(), other) for other in words]
    ratio, other = max(ratios, default=(0.0, ''))
    return (other, ratio) if ratio >= _SAME_WORD else (None, 0.0)


def _weight(word: str, counts: Mapping[str, int]) -> float:
    if word in _GENERIC:
        return _GENERIC_WEIGHT
    return (_DEVICE_WEIGHT if word in _DEVICES else 1.0) / math.sqrt(max(counts.get(word, 1), 1))


def _meanings(name: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(name))
    return list(dict.fromkeys(_MEANING_OF.get(word, word) for word in words))
