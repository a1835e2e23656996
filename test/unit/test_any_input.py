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
``test/support/any_input``; a public function that is not there fails a test. Objects with a state
get sequences of calls of their methods.

The inputs are the same in each run, unless ``BIPED_COM_FUZZ_CALLS`` asks for so many times as many
of them: then they follow from the seed ``BIPED_COM_FUZZ_SEED``, a random one by default, which a
failure prints. ``make fuzz`` does so.
"""

from __future__ import annotations

import os
import random

from hypothesis import given, HealthCheck, Phase, seed, settings, strategies as st
import pytest
from support.any_input import files, geometry, identification, motion, objects
from support.any_input.contract import check, check_object, public_functions

FACTOR = float(os.environ.get('BIPED_COM_FUZZ_CALLS', '1'))
SEED = int(os.environ.get('BIPED_COM_FUZZ_SEED') or random.SystemRandom().randrange(10 ** 6))
IS_RANDOM = 'BIPED_COM_FUZZ_CALLS' in os.environ
CALLS_OF_OBJECTS = 60

CASES = {name: case for part in (geometry, motion, files, identification)
         for name, case in part.CASES.by_name.items()}
OBJECTS = objects.OBJECTS.by_class


@pytest.mark.parametrize('name', sorted(CASES))
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_results_are_finite_or_an_error_of_ours(name):
    case = CASES[name]

    @given(case.arguments)
    def calls(arguments):
        check(case, arguments)
    repeat(calls, case.calls)


@pytest.mark.parametrize('kind', sorted(OBJECTS, key=lambda kind: kind.__name__))
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_objects_stay_finite_whatever_their_methods_get(kind):
    @given(st.data())
    def calls(data):
        check_object(kind, OBJECTS[kind], data)
    repeat(calls, CALLS_OF_OBJECTS)


def repeat(calls, count):
    """Run a property with so many inputs, times `FACTOR`."""
    print(f'BIPED_COM_FUZZ_SEED={SEED}' if IS_RANDOM else 'the same inputs in each run')
    calls = settings(
        max_examples=round(FACTOR * count), derandomize=not IS_RANDOM, database=None,
        deadline=None, phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck))(calls)
    (seed(SEED)(calls) if IS_RANDOM else calls)()


def test_no_public_function_is_left_out():
    assert public_functions() == set(CASES)
