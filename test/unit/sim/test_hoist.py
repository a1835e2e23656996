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
"""The hoist: lifts, holds still, lets down to where the robot stands as before."""

import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, MASS, run

WEIGHT = 9.81 * MASS


@pytest.fixture(scope='module')
def lifted():
    """Return a plant that hangs, and its observation before."""
    plant = make_plant()
    before = run(plant, 1.0).wrenches.copy()
    plant.hoist.lift()
    run(plant, 3.0)
    return plant, before


def test_the_feet_come_off_the_ground_and_it_hangs_still(lifted):
    plant, before = lifted
    assert plant.hoist.holds
    first = plant.truth()
    assert not first.sole_wrenches.any()
    readings = np.linalg.norm(plant.observation.wrenches[:, :3], axis=1)
    assert (readings < 0.2 * np.linalg.norm(before[:, :3], axis=1)).all()
    assert (readings > 0.0).all()
    second = (run(plant, 0.5), plant.truth())[1]
    np.testing.assert_allclose(first.base_position, second.base_position, atol=2e-5)
    np.testing.assert_allclose(first.base_quaternion, second.base_quaternion, atol=1e-4)
    assert np.abs(second.base_twist).max() < 1e-3


def test_it_stands_again_as_before():
    plant = make_plant()
    plant.hoist.lower()  # of what does not hang changes nothing
    before = (run(plant, 1.0), plant.truth())[1]
    np.testing.assert_array_equal(
        plant.observation.joint_positions, run(make_plant(), 1.0).joint_positions)
    plant.hoist.lift()
    run(plant, 2.5)
    plant.hoist.lower()
    run(plant, 4.0)
    after = plant.truth()
    assert not plant.hoist.holds and not plant.has_fallen
    np.testing.assert_allclose(after.sole_wrenches[:, 2].sum(), WEIGHT, rtol=1e-3)
    np.testing.assert_allclose(after.base_position, before.base_position, atol=2e-3)
    np.testing.assert_allclose(after.com, before.com, atol=2e-3)


@pytest.mark.thorough
def test_a_fallen_robot_is_picked_up_and_stands():
    plant = make_plant()
    plant.push(CONFIG.base_link, (400.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.3)
    run(plant, 2.0)
    assert plant.has_fallen
    plant.hoist.lift()
    run(plant, 7.0)
    plant.hoist.lower()
    run(plant, 7.0)
    assert not plant.has_fallen and not plant.hoist.holds
    np.testing.assert_allclose(plant.truth().sole_wrenches[:, 2].sum(), WEIGHT, rtol=5e-3)


def test_a_reset_takes_it_off_the_hook():
    plant = make_plant()
    plant.hoist.lift()
    run(plant, 1.0)
    plant.reset()
    assert not plant.hoist.holds
    run(plant, 1.0)
    np.testing.assert_allclose(plant.truth().sole_wrenches[:, 2].sum(), WEIGHT, rtol=1e-3)
