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
"""Loads on links of the simulated robot."""

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.sim.loads import TAKING
import numpy as np
import pytest
from support.sim_robot import make_plant, MASS, run


def settle(plant):
    """Return the true CoM and the vertical force of the ground."""
    run(plant, 1.0)
    truth = plant.truth()
    return truth.com, float(truth.sole_wrenches[:, 2].sum())


def test_a_load_moves_the_com_and_is_carried_by_the_feet():
    plant = make_plant()
    link = plant.link_names[0]
    body, mass, com = plant.body_index(link), 1.3, np.array((0.02, -0.03, 0.1))
    before, weight = settle(plant)
    assert weight == pytest.approx(9.81 * MASS, rel=2e-3)
    plant.put_load(link, mass, com, np.diag((0.01, 0.02, 0.03)))
    after, loaded = settle(plant)
    assert plant.mass == pytest.approx(MASS + mass)
    assert loaded == pytest.approx(9.81 * (MASS + mass), rel=2e-3)
    R = plant.data.xmat[body].reshape(3, 3)
    place = plant.data.xpos[body] + R @ com
    np.testing.assert_allclose(
        after, (MASS * before + mass * place) / (MASS + mass), atol=2e-3)


def test_what_is_taken_off_leaves_nothing_behind():
    plant = make_plant()
    link, model = plant.link_names[0], plant.model
    body = plant.body_index(link)
    values = [v.copy() for v in (model.body_mass, model.body_ipos, model.body_subtreemass)]
    inertia = np.sort(model.body_inertia[body])
    plant.put_load(link, 2.0, (0.0, 0.1, 0.0))
    masses = []
    for _ in range(round(TAKING / plant.dt) + 5):
        plant.step()
        masses.append(plant.mass)
    assert masses[-1] == pytest.approx(MASS + 2.0)
    assert np.diff(masses).max() < 2.0 * 2.0 * plant.dt / TAKING  # gradually
    plant.put_load(link, 0.0, (0.0, 0.0, 0.0))
    run(plant, TAKING + 0.05)
    for value, name in zip(values, ('body_mass', 'body_ipos', 'body_subtreemass')):
        np.testing.assert_allclose(getattr(model, name), value, atol=1e-9)
    np.testing.assert_allclose(np.sort(model.body_inertia[body]), inertia, atol=1e-9)
    plant.put_load(link, 2.0, (0.0, 0.1, 0.0))
    run(plant, TAKING)
    plant.reset()
    np.testing.assert_allclose(model.body_mass, values[0], atol=1e-9)


def test_loads_that_make_no_sense_are_refused():
    plant = make_plant()
    link = plant.link_names[0]
    for mass, com, inertia in ((-1.0, (0, 0, 0), None), (float('nan'), (0, 0, 0), None),
                               (1000.0, (0, 0, 0), None), (1.0, (9.0, 0, 0), None),
                               (1.0, (0, float('nan'), 0), None), (1.0, (0, 0, 0), -np.eye(3)),
                               (1.0, (0, 0, 0), np.full((3, 3), np.nan))):
        with pytest.raises(InputError):
            plant.put_load(link, mass, com, inertia)
    with pytest.raises(UnknownNameError):
        plant.put_load('no_link', 1.0, (0, 0, 0))
    plant.step()
    assert plant.mass == pytest.approx(MASS)
