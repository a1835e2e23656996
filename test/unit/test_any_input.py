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
Whatever the input, the public functions of the core give finite numbers, or an error of ours.

Random robots, postures, contacts and files. What each function is called with is in
``test/support/any_input``, by the names of its parameters; a public function with a parameter that
is not there fails. Objects with a state get sequences of calls of their methods.

A quarter of the inputs is in ``make test``. They are the same in each run, unless
``BIPED_COM_FUZZ_CALLS`` asks for so many times as many of them: then they follow from the seed
``BIPED_COM_FUZZ_SEED``, a random one by default, which a failure prints. ``make fuzz`` does so.
"""

import math
import os
import random

from hypothesis import given, HealthCheck, Phase, seed, settings, strategies as st
import pytest
from support.any_input import files, geometry, identification, motion, objects
from support.any_input.contract import Arguments, check, check_object, public_functions

FACTOR = float(os.environ.get('BIPED_COM_FUZZ_CALLS', '1'))
SEED = int(os.environ.get('BIPED_COM_FUZZ_SEED') or random.SystemRandom().randrange(10 ** 6))
IS_RANDOM = 'BIPED_COM_FUZZ_CALLS' in os.environ
CALLS_OF_OBJECTS = 60

ARGUMENTS = Arguments(*[part.TABLES for part in (geometry, motion, files, identification)])
FUNCTIONS = public_functions()
#: A quarter of the inputs, and the others.
PARTS = pytest.mark.parametrize('part', [0, pytest.param(1, marks=pytest.mark.thorough)])


@PARTS
@pytest.mark.parametrize('name', sorted(FUNCTIONS))
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_results_are_finite_or_an_error_of_ours(name, part):
    find = ARGUMENTS.find

    @given(ARGUMENTS.of(FUNCTIONS[name]))
    def calls(arguments):
        check(FUNCTIONS[name], arguments, find('use', name), find('may_be_infinite', name),
              bool(find('nan_means', name)))
    repeat(calls, find('calls', name), part)


@PARTS
@pytest.mark.parametrize('kind', sorted(objects.OBJECTS, key=lambda kind: kind.__name__))
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_objects_stay_finite_whatever_their_methods_get(kind, part):
    @given(st.data())
    def calls(data):
        check_object(kind, objects.OBJECTS[kind], data)
    repeat(calls, CALLS_OF_OBJECTS, part)


def repeat(calls, count, part):
    """Run a property with the part of so many inputs, times `FACTOR`."""
    print(f'BIPED_COM_FUZZ_SEED={SEED}' if IS_RANDOM else 'the same inputs in each run')
    first = math.ceil(FACTOR * count / 4)
    count = first if part == 0 else round(FACTOR * count) - first
    if count == 0:
        return
    calls = settings(
        max_examples=count, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck))(calls)
    seed(part + (2 * SEED if IS_RANDOM else 0))(calls)()


def test_no_scope_is_left_over():
    assert [scope for scope in ARGUMENTS.tables if scope and not any(
        f'{name}.'.startswith(f'{scope}.') for name in FUNCTIONS)] == []
