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
``test/support/any_input``; a public function that is not there fails a test.
"""

from __future__ import annotations

from hypothesis import given, HealthCheck, Phase, settings
import pytest
from support.any_input import files, geometry, identification, motion
from support.any_input.contract import check, public_functions

CASES = {name: case for part in (geometry, motion, files, identification)
         for name, case in part.CASES.by_name.items()}


@pytest.mark.parametrize('name', sorted(CASES))
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_results_are_finite_or_an_error_of_ours(name):
    case = CASES[name]

    @settings(max_examples=case.calls, derandomize=True, database=None, deadline=None,
              phases=(Phase.explicit, Phase.generate, Phase.shrink),
              suppress_health_check=list(HealthCheck))
    @given(case.arguments)
    def calls(arguments):
        check(case, arguments)
    calls()


def test_no_public_function_is_left_out():
    assert public_functions() == set(CASES)
