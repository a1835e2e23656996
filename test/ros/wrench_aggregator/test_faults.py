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
"""Sensors that died are told from feet that are lifted, and their wrenches are withheld."""

from types import SimpleNamespace

from biped_com_ros.nodes.wrench_aggregator.faults import SensorFaults
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest

WEIGHT, MS = 900.0, 1_000_000


class Aggregation:
    """Two feet as `SensorFaults` needs them."""

    def __init__(self, heights):
        self.body_weight, self.sole_heights = WEIGHT, heights
        names = ('left', 'right')
        self.bodies = [SimpleNamespace(name=name, index=i, sensors=(i,), detector=True)
                       for i, name in enumerate(names)]
        self.model = SimpleNamespace(config=SimpleNamespace(feet=dict.fromkeys(names)))
        self.channels = [SimpleNamespace(name=f'{name}_ft', config=SimpleNamespace(topic=name),
                                         signed=np.zeros(6)) for name in names]
        self.foot_forces = [0.0, 0.0]


@pytest.mark.parametrize(('lift', 'is_dead'), [(0.002, True), (0.06, False)])
def test_by_its_height_a_dead_sensor_is_told_from_a_lifted_foot(lift, is_dead):
    aggregation = Aggregation([-0.8, -0.8 + lift])
    faults = SensorFaults(aggregation, 0.25)
    for i in range(100):
        aggregation.foot_forces = [0.5 * WEIGHT, 1.0]
        faults.add_forces(0.5 * WEIGHT + 1.0, 10 * MS * i)
    left, right = aggregation.bodies
    assert faults.is_faulty(right) == is_dead and not faults.is_faulty(left)
    level, message, _ = faults.report()
    assert level == (DiagnosticStatus.ERROR if is_dead else DiagnosticStatus.WARN)
    assert ('withheld' if is_dead else 'a foot is lifted') in message
    aggregation.foot_forces = [0.5 * WEIGHT, 0.5 * WEIGHT]
    faults.add_forces(WEIGHT, 1000 * MS)
    assert not faults.found


@pytest.mark.parametrize(('carried', 'is_frozen'), [(WEIGHT, False), (0.5 * WEIGHT, True)])
def test_zeros_that_repeat_are_true_while_the_other_foot_carries_all(carried, is_frozen):
    """Soles that measure pressure have nothing to measure in the air."""
    aggregation, rng = Aggregation([-0.8, -0.75]), np.random.default_rng(1)
    faults = SensorFaults(aggregation, 0.25)
    for i in range(60):
        aggregation.foot_forces = [carried, 0.0]
        aggregation.channels[0].signed = carried + rng.standard_normal(6)
        for sensor in range(2):
            faults.add_reading(sensor, 10 * MS * i, 10 * MS * i)
        faults.add_forces(carried, 10 * MS * i)
    assert faults.is_faulty(aggregation.bodies[1]) == is_frozen
    aggregation.channels[1].signed = np.full(6, 7.0)  # what froze is no zero
    for i in range(60, 90):
        aggregation.channels[0].signed = carried + rng.standard_normal(6)
        for sensor in range(2):
            faults.add_reading(sensor, 10 * MS * i, 10 * MS * i)
    assert faults.is_faulty(aggregation.bodies[1])
