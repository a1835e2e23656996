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
"""What the demo's numbers are made of."""

from __future__ import annotations

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.measurements import Measurements
import numpy as np
import pytest
from rclpy.node import Node
from support.sim_robot import CONFIG, URDF


@pytest.fixture
def measurements():
    node = Node('listener')
    found = Measurements(node, RobotModel(CONFIG, URDF), exact_sensors=True)
    found.begin(0)
    yield found
    node.destroy_node()


def feel(found, instants, error, force, contact=None):
    """Let some instants pass with the CoM off by an error and each foot carrying a force."""
    for foot in CONFIG.feet if contact is not None else ():
        found._on_contact(foot, instants[0], contact)
    for ns in instants:
        for foot in CONFIG.feet:
            found._on_foot(foot, ns, np.array((0.0, 0.0, force, 0.0, 0.0, 0.0)))
        found._on_truth(ns, np.array((0.1, 0.2, 0.9)))
        found._on_com(ns, np.array((0.1, 0.2, 0.9 + error)))


def shot(found):
    return found.take('stands', 500.0, (0, ''), ())


def test_while_the_robot_hangs_nothing_is_measured(measurements):
    feel(measurements, range(10), 0.003, 100.0, contact=True)
    stands = shot(measurements)
    feel(measurements, range(10, 90), -0.1, 0.0, contact=False)
    hangs = shot(measurements)
    feel(measurements, range(90, 100), 0.003, 100.0, contact=True)
    for seen in (stands, shot(measurements), measurements.whole(500.0, (0, ''), ())):
        np.testing.assert_allclose(seen.com_error, (0.0, 0.0, 0.003), atol=1e-12)
        assert seen.com_error_largest == pytest.approx(0.003)
        assert seen.weight == pytest.approx(200.0)
    assert np.isnan(hangs.com_distance) and np.isnan(hangs.weight)
    assert hangs.contacts == dict.fromkeys(CONFIG.feet, (0.0, False))


def test_a_robot_that_feels_no_contacts_is_measured_all_the_same(measurements):
    feel(measurements, range(10), 0.003, 100.0)
    assert shot(measurements).com_distance == pytest.approx(0.003)


def test_a_robot_that_lies_is_not_measured_until_it_stands_again(measurements):
    feel(measurements, range(10), 0.003, 100.0)
    for ns in range(10, 20):
        measurements._on_truth(ns, np.array((0.5, 0.2, 0.1)))
        assert measurements.has_fallen
        measurements._on_com(ns, np.array((0.1, 0.2, 0.9)))
    feel(measurements, range(20, 30), 0.003, 100.0)
    assert not measurements.has_fallen
    assert shot(measurements).com_error_largest == pytest.approx(0.003)
