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
"""Sensors that died or are turned are told from lifted feet, and their wrenches are withheld."""

import time
from types import SimpleNamespace

from biped_com_ros.nodes.wrench_aggregator.faults import SensorFaults
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.statics_data import NOISE, TrueRobot

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
def test_by_its_height_a_dead_sensor_is_distinguished_from_a_lifted_foot(lift, is_dead):
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


class Resting:
    """A robot at rest whose left sensor is turned, and what watches it, at 100 Hz."""

    def __init__(self):
        self.true = TrueRobot('g1', seed=1)
        model = self.true.model
        self.capture = self.true.capture(
            ('left', 'right'), NOISE, positions=model.posture('stand'))
        self.channels = [SimpleNamespace(name=name, config=sensor, signed=None, filtered=None)
                         for name, sensor in model.config.wrench_sensors.items()]
        self.bodies = [SimpleNamespace(name=name, index=i, sensors=(i,), detector=True)
                       for i, name in enumerate(model.config.feet)]
        self.model, self.body_weight = model, 9.81 * model.mass
        self.faults, self.stamp_ns, self.moved_ns = SensorFaults(self, 0.25), 0, 0
        self.turn(False)

    def turn(self, is_turned):
        """Turn the left sensor upside down, or back."""
        for channel, wrench in zip(self.channels, self.capture.wrenches):
            channel.filtered = wrench.copy()
        if is_turned:
            self.channels[0].filtered[[1, 2, 4, 5]] *= -1.0

    def rest(self, seconds, moves=False):
        """Let time pass, and threads finish."""
        for _ in range(round(100 * seconds)):
            self.stamp_ns += 10 * MS
            self.moved_ns = self.stamp_ns if moves else self.moved_ns
            capture = self.capture
            self.faults.turned.add(self.stamp_ns, self.moved_ns, capture.positions,
                                   capture.torques, capture.up)
            while self.faults.turned._task.is_busy:
                time.sleep(0.005)
                self.faults.turned._task.poll()


def test_a_turned_sensor_is_withheld_after_two_results_and_used_again_when_right():
    robot = Resting()
    left, right = robot.bodies
    robot.rest(8.0)
    assert not robot.faults.found and not robot.faults.is_faulty(left)
    robot.turn(True)
    robot.rest(20.0, moves=True)
    assert not robot.faults.found  # only while it rests
    robot.rest(40.0)
    assert robot.faults.found and robot.faults.is_faulty(left)
    assert not robot.faults.is_faulty(right)
    level, message, _ = robot.faults.report()
    assert level == DiagnosticStatus.ERROR
    name = robot.channels[0].name
    assert f"withheld: the sensor '{name}' is mounted turned by 180 deg" in message
    robot.turn(False)
    robot.rest(40.0)
    assert not robot.faults.found and robot.faults.report()[0] == DiagnosticStatus.OK
