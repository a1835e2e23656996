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
from biped_com_ros.nodes.wrench_aggregator.parameters import WrenchAggregatorParameters
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.statics_data import NOISE, TrueRobot

WEIGHT, STEP_NS = 900.0, 10_000_000


class Watched:
    """Two feet with a sensor each as `SensorFaults` needs them, at 100 Hz, and it."""

    def __init__(self, model, sensors, weight, heights=()):
        self.model, self.body_weight, self.sole_heights = model, weight, heights
        self.bodies = [SimpleNamespace(name=name, index=i, sensors=(i,), detector=True)
                       for i, name in enumerate(model.config.feet)]
        self.channels = [
            SimpleNamespace(name=name, config=config, scaled=np.zeros(6), filtered=np.zeros(6))
            for name, config in sensors.items()]
        self.foot_forces, self.stamp_ns, self.moved_ns = [0.0, 0.0], 0, 0
        self.rng, self.faults = np.random.default_rng(1), SensorFaults(
            self, WrenchAggregatorParameters().balance)

    @classmethod
    def standing(cls, lift):
        """Return feet of which the right one is so much higher."""
        sensor = SimpleNamespace(topic='wrench')
        feet = {'left': None, 'right': None}
        return cls(SimpleNamespace(config=SimpleNamespace(
            feet=feet, feet_with_force_z=())),
                   {'left_ft': sensor, 'right_ft': sensor}, WEIGHT, [-0.8, -0.8 + lift])

    def carry(self, instants, *forces):
        """Let feet carry so much, while the left sensor measures it with noise."""
        self.foot_forces = list(forces)
        for _ in range(instants):
            self.stamp_ns += STEP_NS
            self.channels[0].scaled = forces[0] + self.rng.standard_normal(6)
            for sensor in range(2):
                self.faults.add_reading(sensor, self.stamp_ns, self.stamp_ns)
            self.faults.add_forces(sum(forces), self.stamp_ns)

    def rest(self, seconds, capture, moves=False):
        """Let time pass at a pose, and threads finish."""
        for _ in range(round(100 * seconds)):
            self.stamp_ns += STEP_NS
            self.moved_ns = self.stamp_ns if moves else self.moved_ns
            self.faults.turned.add(self.stamp_ns, self.moved_ns, capture.positions,
                                   capture.torques, capture.up)
            while self.faults.turned._task.is_busy:
                time.sleep(0.005)
                self.faults.turned._task.poll()

    def faulty(self):
        """Return which feet are faulty."""
        return [self.faults.is_faulty(body) for body in self.bodies]


@pytest.mark.parametrize(('lift', 'is_dead'), [(0.002, True), (0.06, False)])
def test_by_its_height_a_dead_sensor_is_distinguished_from_a_lifted_foot(lift, is_dead):
    feet = Watched.standing(lift)
    feet.foot_forces = [0.5 * WEIGHT, 1.0]
    for i in range(100):
        feet.faults.add_forces(0.5 * WEIGHT + 1.0, STEP_NS * i)
    assert feet.faulty() == [False, is_dead]
    level, message, _ = feet.faults.report()
    assert level == (DiagnosticStatus.ERROR if is_dead else DiagnosticStatus.WARN)
    assert ('withheld' if is_dead else 'a foot is lifted') in message
    feet.foot_forces = [0.5 * WEIGHT, 0.5 * WEIGHT]
    feet.faults.add_forces(WEIGHT, 100 * STEP_NS)
    assert not feet.faults.found


@pytest.mark.parametrize(('carried', 'is_frozen'), [(WEIGHT, False), (0.5 * WEIGHT, True)])
@pytest.mark.parametrize('digit', (0.0, 0.02 * WEIGHT))
def test_what_an_unloaded_foot_repeats_is_true_while_the_other_carries_all(
        carried, is_frozen, digit):
    """Soles that measure pressure have nothing to measure in the air, or less than a digit."""
    feet = Watched.standing(0.0)
    feet.channels[1].scaled = np.full(6, 7.0)  # not tared
    feet.channels[1].filtered[2] = digit
    feet.carry(60, carried, 0.0)
    assert feet.faulty()[1] == is_frozen
    feet.channels[1].filtered[2] = 0.2 * WEIGHT  # what froze is a load
    feet.carry(30, carried, 0.0)
    assert feet.faulty()[1]


@pytest.mark.parametrize('lift', (0.0, 0.03))
def test_what_a_lifted_foot_repeats_is_true_however_fast_the_robot_walks(lift):
    """The stance foot carries between 60 and 140 % of the weight; the other one is not tared."""
    feet = Watched.standing(lift)
    feet.channels[1].scaled = feet.channels[1].filtered = np.full(6, 0.1 * WEIGHT)
    found = False
    for i in range(60):
        feet.carry(1, WEIGHT * (1.0 + 0.4 * np.sin(0.2 * i)), 0.0)
        found |= feet.faulty()[1]
    assert found == (lift == 0.0)


def test_a_turned_sensor_is_withheld_after_two_results_and_used_again_when_right():
    true = TrueRobot('g1', seed=1)
    model = true.model
    capture = true.capture(('left', 'right'), NOISE, positions=model.posture('stand'))
    robot = Watched(model, model.config.wrench_sensors, 9.81 * model.mass)

    def turn(sign):
        """Turn the left sensor upside down, or back."""
        for channel, wrench in zip(robot.channels, capture.wrenches):
            channel.filtered = wrench.copy()
        robot.channels[0].filtered[[1, 2, 4, 5]] *= sign
    turn(1.0)
    robot.rest(8.0, capture)
    assert not robot.faults.found and robot.faulty() == [False, False]
    turn(-1.0)
    robot.rest(20.0, capture, moves=True)
    assert not robot.faults.found  # only while it rests
    robot.rest(40.0, capture)
    assert robot.faults.found and robot.faulty() == [True, False]
    level, message, _ = robot.faults.report()
    assert level == DiagnosticStatus.ERROR
    name = robot.channels[0].name
    assert f"withheld: the sensor '{name}' is mounted turned by 180 deg" in message
    turn(1.0)
    robot.rest(40.0, capture)
    assert not robot.faults.found and robot.faults.report()[0] == DiagnosticStatus.OK
