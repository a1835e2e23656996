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
What holds the data of Pinocchio, up to a megabyte, is freed when it is replaced.

A reference cycle would keep it until the garbage collector comes: running nodes replace such
objects whenever masses or settings change, and grew by tens of megabytes.
"""

import gc

from biped_com_ros.core.com.fused import FusedComEstimator
from biped_com_ros.core.gravity.compensation import GravityCompensator
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.estimator import PayloadEstimator
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.stability.zmp import Momentum
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.virtual_foot_wrenches import (
    VirtualFootWrenches, VirtualWrenchSettings)
import pytest

MODEL = RobotModel.load('biped')
MAKERS = {
    'momentum': lambda: Momentum(MODEL),
    'fused': lambda: FusedComEstimator(MODEL),
    'gravity': lambda: GravityCompensator(MODEL), 'payload': lambda: PayloadEstimator(MODEL),
    'model': lambda: RobotModel(MODEL.config, MODEL.urdf),
    'stability': lambda: StabilityMonitor(MODEL, MonitorSettings()),
    'aggregation': lambda: WrenchAggregation(MODEL, AggregationSettings()),
    'virtual': lambda: VirtualFootWrenches(MODEL, VirtualWrenchSettings())}


@pytest.fixture
def no_collection():
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.parametrize('name', MAKERS)
def test_it_leaves_nothing_to_the_garbage_collector(name, no_collection):
    MAKERS[name]()  # what is imported then leaves cycles of its own
    gc.freeze()  # and whatever else there is so far needs no look
    MAKERS[name]()
    assert gc.collect() == 0, 'objects in reference cycles'
