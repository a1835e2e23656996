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
"""Rigs of the node gait_player."""

import pytest
from support.gait_rig import GaitRig


@pytest.fixture
def make(model):
    """
    Return a function that makes a rig with other parameters, whose robot stands.

    It takes the place of the one before: each publishes a time of its own on ``/clock``.
    """
    rigs = []

    def close():
        while rigs:
            rigs.pop().close()

    def make_rig(kind=GaitRig, **parameters):
        close()
        rigs.append(kind(model, **parameters))
        rigs[-1].stand()
        return rigs[-1]

    yield make_rig
    close()


@pytest.fixture
def rig(make):
    """Return a rig that may walk."""
    return make().until_it_may()
