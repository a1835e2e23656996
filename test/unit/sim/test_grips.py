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
"""Hands that hold on: the limit of their force, and where they hold."""

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.contacts import limited_sum, PLAY
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import numpy as np
import pytest

HAND = 'l_gripper'


@pytest.fixture
def plant():
    model = RobotModel.load('biped')
    plant = Plant(model.config, model.urdf, PlantOptions(tendons=False))
    plant.reset('arms_forward')
    return plant


def test_the_limited_force_is_the_nearest_one_of_that_sum():
    rng = np.random.default_rng(2)
    for _ in range(50):
        force, largest = rng.normal(size=3), rng.uniform(0.1, 3.0)
        found = limited_sum(force, largest)
        assert np.abs(found).sum() <= largest + 1e-12
        # Nearest in a convex set: no other point of it is on the far side of the plane there.
        vertices = largest * np.vstack((np.eye(3), -np.eye(3)))
        assert ((vertices - found) @ (force - found)).max() <= 1e-12
        if np.abs(force).sum() <= largest:
            assert (found == force).all()


@pytest.mark.parametrize('largest', (0.5, 4.0))
def test_a_hand_that_is_pulled_holds_with_no_more_than_its_force(plant, largest):
    plant.grip(HAND, largest)
    before = plant.data.body(f'link/{HAND}').xpos.copy()
    plant.push('l_hand', (3.0, 0.0, 0.0, 0.0, 0.0, 0.0), 10.0)
    for _ in range(200):
        plant.step()
    moved = plant.data.body(f'link/{HAND}').xpos - before
    force = next(iter(plant.grips.forces.values()))
    assert np.abs(force).sum() <= largest + 1e-9
    assert force[0] < -0.4  # against the pull
    assert (abs(moved[0]) < PLAY) == (largest > 3.0)


def test_a_hand_releases_by_no_force_and_at_a_reset(plant):
    for release in (lambda: plant.grip(HAND, 0.0), lambda: plant.reset('arms_forward')):
        plant.grip(HAND, 5.0)
        plant.step()
        assert plant.grips.forces
        release()
        plant.step()
        assert not plant.grips.forces


def test_nonsense_is_refused(plant):
    for force, point in ((-1.0, (0, 0, 0)), (np.inf, (0, 0, 0)), (1.0, (0, 0)),
                         (1.0, (0, np.nan, 0))):
        with pytest.raises(InputError):
            plant.grip(HAND, force, point)
    with pytest.raises(InputError, match='play'):
        plant.grip(HAND, 1.0, play=0.0)
    with pytest.raises(UnknownNameError):
        plant.grip('no_hand', 1.0)
