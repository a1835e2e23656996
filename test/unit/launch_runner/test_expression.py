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
"""The expressions of $(eval): what they give, and that nothing else is evaluated."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.launch_runner.expression import evaluate_expression
from hypothesis import given
from hypothesis import strategies as st
import pytest


@pytest.mark.parametrize(('text', 'result'), [
    ("'biped' == 'biped'", 'True'),
    ("'biped' != 'biped'", 'False'),
    ("'a' in ['a', 'b'] and not 'c' in ('a',)", 'True'),
    ('1 < 2 < 3', 'True'),
    ('1 < 3 < 3', 'False'),
    ("'x' if 2 > 1 else 'y'", 'x'),
    ("'' or 'default'", 'default'),
    ('0 and 1', '0'),
    ("'talos' and 'biped'", 'biped'),
    (' True ', 'True'),
    ('2 + 3 * 4 - 1', '13'),
    ('7 // 2 + 7 % 4 + 1 / 4', '6.25'),
    ('-(2 + 3)', '-5'),
    ("'a' + 'b'", 'ab'),
])
def test_gives_what_python_gives(text: str, result: str) -> None:
    assert evaluate_expression(text) == result
    assert evaluate_expression(text) == str(eval(text.strip()))  # the oracle


@given(st.tuples(*[st.integers(0, 3)] * 3),
       st.tuples(*[st.sampled_from(
           ['<', '<=', '==', '!=', '>', '>=', 'and', 'or', '+', '-', '*'])] * 2),
       st.tuples(*[st.sampled_from(['', 'not ', '-'])] * 2))
def test_precedence_is_pythons(numbers: tuple[int, ...], operators: tuple[str, ...],
                               negations: tuple[str, ...]) -> None:
    (a, b, c), (first, second), (outer, inner) = numbers, operators, negations
    text = f'{outer}{a} {first} {b} {second} ({inner}{c})'
    assert evaluate_expression(text) == str(eval(text))


@pytest.mark.parametrize('text', [
    '__import__("os").getcwd()', 'open("/etc/passwd")', '().__class__', 'x', '2 ** 9999999',
    '[i for i in (1, 2)]', 'lambda: 1', '{1: 2}', '(1).real', "f'{1}'", '1 << 99', "b'x'", '...',
    'None is None', '~1', '1 @ 2',
])
def test_refuses_everything_else(text: str) -> None:
    with pytest.raises(ConfigurationError, match='valid: numbers'):
        evaluate_expression(text)


def test_an_unquoted_string_gets_a_hint() -> None:
    with pytest.raises(ConfigurationError, match="quote it \\('biped'\\)"):
        evaluate_expression("biped == 'biped'")


@pytest.mark.parametrize('text', [
    '', '1 +', "'open", "'a' < 1", "'a' + 1", '1 / 0', "'a' * 10000000000", "'%d' % 1"])
def test_names_what_cannot_be_computed(text: str) -> None:
    with pytest.raises(ConfigurationError, match='expression'):
        evaluate_expression(text)
