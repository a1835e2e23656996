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
"""Gaits of the demo robot that are planned once per run."""

from biped_com_ros.core.legs.gait import QUICK, single_step, walk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest


@pytest.fixture(scope='module', params=['biped', 'talos', 'g1', 'icub'])
def robot(request):
    return RobotModel.load(request.param)


@pytest.fixture(scope='session')
def legs(model):
    """Return the indices of the joints of its legs."""
    return np.concatenate([model.group_index('left_leg'), model.group_index('right_leg')])


@pytest.fixture(scope='session')
def step(model):
    """Return a quasi-static step."""
    return single_step(model, 0.05)


@pytest.fixture(scope='session')
def quick(model):
    """Return three steps by preview."""
    return walk(model, 3, 0.05, options=QUICK)
