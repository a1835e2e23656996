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
"""Measurements of the demo."""

from __future__ import annotations

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.measurements import Measurements
import numpy as np
import pytest
from rclpy.node import Node
from support.sim_robot import CONFIG, URDF


@pytest.fixture
def measurements():
    node = Node('subscriber')
    found = Measurements(node, RobotModel(CONFIG, URDF), exact_sensors=True)
    found.start(0)
    yield found
    node.destroy_node()


def measure(found, instants, error, force, contact=None):
    """Receive some instants with an error of the CoM and a force at each foot."""
    for foot in CONFIG.feet if contact is not None else ():
        found.on_contact(foot, instants[0], contact)
    for ns in instants:
        for foot in CONFIG.feet:
            found.on_foot(foot, ns, np.array((0.0, 0.0, force, 0.0, 0.0, 0.0)))
        found.on_truth(ns, np.array((0.1, 0.2, 0.9)))
        found.on_com(ns, np.array((0.1, 0.2, 0.9 + error)))


def snapshot(found):
    return found.period_snapshot('stands', 500.0, (0, ''), ())


def test_while_the_robot_hangs_nothing_is_measured(measurements):
    measure(measurements, range(10), 0.003, 100.0, contact=True)
    stands = snapshot(measurements)
    measure(measurements, range(10, 90), -0.1, 0.0, contact=False)
    hangs = snapshot(measurements)
    measure(measurements, range(90, 100), 0.003, 100.0, contact=True)
    for shot in (stands, snapshot(measurements), measurements.whole_snapshot(500.0, (0, ''), ())):
        np.testing.assert_allclose(shot.com_error, (0.0, 0.0, 0.003), atol=1e-12)
        assert shot.com_error_largest == pytest.approx(0.003)
        assert shot.weight == pytest.approx(200.0)
    assert np.isnan(hangs.com_distance) and np.isnan(hangs.weight)
    assert hangs.contacts == dict.fromkeys(CONFIG.feet, (0.0, False))


def test_a_robot_without_contact_states_is_measured(measurements):
    measure(measurements, range(10), 0.003, 100.0)
    assert snapshot(measurements).com_distance == pytest.approx(0.003)


def test_a_fallen_robot_is_not_measured_until_it_stands_again(measurements):
    measure(measurements, range(10), 0.003, 100.0)
    for ns in range(10, 20):
        measurements.on_truth(ns, np.array((0.5, 0.2, 0.1)))
        assert measurements.has_fallen
        measurements.on_com(ns, np.array((0.1, 0.2, 0.9)))
    measure(measurements, range(20, 30), 0.003, 100.0)
    assert not measurements.has_fallen
    assert snapshot(measurements).com_error_largest == pytest.approx(0.003)
