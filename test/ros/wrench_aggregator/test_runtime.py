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
"""Parameters of the aggregator that are changed while it runs."""

from __future__ import annotations

import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from support import wrench_oracle
from support.messages import wrench

BIAS = np.array([0.5, -0.4, 0.6, 0.05, -0.08, 0.06])
FEET = ('left_toe', 'left_heel', 'right_foot')


def change(rig, **values):
    """Set parameters over DDS; fail if they are refused."""
    client = rig.peer.create_client(SetParameters, 'wrench_aggregator/set_parameters')
    request = SetParameters.Request(parameters=[
        Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
    results = rig.call(client, request).results
    rig.peer.destroy_client(client)
    assert all(result.successful for result in results), results
    assert all(getattr(rig.node.params, name) == value for name, value in values.items())


def test_the_weight_below_sensors_follows_gravity(rig, monkeypatch):
    rig.play(3)
    rig.assert_forces()
    before = wrench(rig.got['left_hand/wrench'][-1])
    monkeypatch.setattr(wrench_oracle, 'GRAVITY', np.array([0.0, 0.0, -3.7]))
    change(rig, gravity=3.7)
    rig.clear()
    rig.play(5)
    rig.assert_forces()
    assert rig.node.aggregation.body_weight == pytest.approx(3.7 * rig.node.model.mass)
    monkeypatch.undo()
    rig.clear()
    rig.play(5)  # gravity that is not the robot's shows in what sensors carry
    off = wrench(rig.got['left_hand/wrench'][-1]) - before
    assert np.linalg.norm(off[:3]) > 0.1
    change(rig, gravity=9.81)
    rig.play(5)
    rig.assert_forces()


def test_numbers_of_readings_and_the_largest_speed_of_a_tare_take_effect(rig):
    rig.contacts, rig.offsets = {}, {'right_foot': BIAS}
    rig.play(60)
    for samples, readings, success, words in (
            (80, 1, False, 'of the 80 readings'), (80, 80, True, 'mean of 80 readings'),
            (20, 1, True, 'mean of 20 readings')):
        change(rig, tare_samples=samples)
        rig.play(readings)
        response = rig.tare('right_foot/tare')
        assert response.success == success and words in response.message
    rig.joint_speed = 0.03
    rig.play(30)
    assert rig.tare('right_foot/tare').success
    change(rig, tare_max_joint_speed=0.02)
    rig.play(30)
    response = rig.tare('right_foot/tare')
    assert not response.success and 'above 0.02 rad/s' in response.message
    change(rig, tare_samples=50, tare_max_joint_speed=0.05)


def offsets_of(rig):
    return np.array([rig.node.aggregation.channels[i].offset for i in range(len(FEET))])


def test_biases_are_followed_from_the_change_on(rig):
    rig.contacts, rig.offsets = {}, dict.fromkeys(FEET, BIAS)
    rig.play(30)
    assert not offsets_of(rig).any()
    change(rig, bias_tracking=True, bias_force=6.0)
    filters = rig.node.offsets.tracking.filters
    assert all(found._covariance[0, 0, 0] == 36.0 for found in filters.values())
    # What is learned while the robot hangs is used three seconds later.
    rig.until(lambda: rig.play(20, 0.02) and np.abs(offsets_of(rig) - BIAS).max() < 0.1,
              what='the biases')
    found = offsets_of(rig)
    change(rig, bias_force=4.0, bias_lift=0.02)  # what is known stays
    assert np.abs(offsets_of(rig) - BIAS).max() < 0.1
    assert all(found.updates >= 1 for found in rig.node.offsets.tracking.filters.values())
    change(rig, bias_tracking=False)
    rig.offsets = dict.fromkeys(FEET, BIAS + 1.0)
    found = offsets_of(rig)
    rig.play(250, 0.02)
    np.testing.assert_array_equal(offsets_of(rig), found)
