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
"""Rigs of the node wrench_aggregator."""

import pytest
from support.wrench_aggregator_rig import WrenchAggregatorRig
from support.wrench_oracle import TiltedRobot


@pytest.fixture(scope='module')
def shared_rig(closing_later):
    return closing_later(WrenchAggregatorRig())


@pytest.fixture
def rig(shared_rig):
    """Return the shared rig with the robot standing, and sensors without errors."""
    shared_rig.reset()
    shared_rig.robot = TiltedRobot.somewhere(0)
    shared_rig.contacts = shared_rig.robot.standing(0)
    shared_rig.play(3)
    shared_rig.clear()
    yield shared_rig
    shared_rig.tare('untare')


@pytest.fixture
def own_rig(closing):
    """Return a function that makes a rig with other parameters."""
    return lambda *arguments, **values: closing(WrenchAggregatorRig(*arguments, **values))
