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
"""What is made when it is first asked for, and again after it was forgotten."""

from __future__ import annotations

from biped_com_ros.ros.node.later import once
import pytest


class Maker:
    """Counts how often something is made."""

    def __init__(self):
        self.made = 0

    @once
    def number(self):
        """Return how often this was made."""
        self.made += 1
        return self.made


class ParticularMaker(Maker):
    """Makes something else."""

    @once
    def number(self):
        return 'other'


def test_it_is_made_once_for_each_object():
    first, second = Maker(), Maker()
    assert first.made == 0
    assert [first.number, first.number, second.number, first.number] == [1, 1, 1, 1]
    assert first.made == second.made == 1


def test_it_is_made_again_after_it_was_forgotten():
    maker = Maker()
    Maker.number.forget(maker)
    assert maker.number == 1
    Maker.number.forget(maker)
    assert [maker.number, maker.number] == [2, 2]


def test_a_class_may_make_something_else():
    assert ParticularMaker().number == 'other' and Maker.number.__doc__.startswith('Return how')


def test_what_the_maker_raises_is_raised_each_time():
    class Failing:

        @once
        def number(self):
            raise ValueError('not now')
    failing = Failing()
    for _ in range(2):
        with pytest.raises(ValueError, match='not now'):
            _ = failing.number
