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
"""Rigs of the node gravity_compensation."""

import pytest
from support.gravity_rig import GravityRig


@pytest.fixture
def make(talos, closing):
    """Return a function that makes a rig with other parameters."""
    return lambda **values: closing(GravityRig(talos, **values))


@pytest.fixture(scope='module')
def shared(talos, closing_later):
    """Return a rig for all tests of a file."""
    return closing_later(GravityRig(talos))


@pytest.fixture
def rig(shared):
    """Return that rig, whose robot is balanced."""
    shared.stand()
    shared.period = 0.005
    shared.step()
    shared.until(shared.is_balanced, 'efforts')
    shared.statuses.clear()
    return shared
