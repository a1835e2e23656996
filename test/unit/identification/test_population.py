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
"""Mean and scatter of populations, by law: with truths that are drawn from the model."""

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.population import estimate_population, SHARE
import numpy as np
import pytest

D = 6
SIGMA = np.array((1.0, 0.5, 2.0, 1.0, 1.0, 3.0))
SCATTER = np.array((0.05, 0.1, 0.3, 0.02, 0.4, 0.2))


def drawn(rng, units, mean, scatter=SCATTER, rows=4, noise=0.1):
    """Return truths, and what few equations per unit say: no unit alone is determined."""
    truth = mean + scatter * rng.normal(size=(units, D))
    H = rng.normal(size=(units, rows, D)) / noise
    y = np.einsum('nij,nj->ni', H, truth) + rng.normal(size=(units, rows))
    return truth, np.einsum('nki,nkj->nij', H, H), np.einsum('nki,nk->ni', H, y)


def posterior(G, g, mean, covariance):
    """Return what data and a prior say of one unit."""
    P = np.linalg.inv(covariance)
    V = np.linalg.inv(G + P)
    return V @ (g + P @ mean), V


def test_mean_and_scatter_of_units_none_of_which_is_determined():
    rng = np.random.default_rng(1)
    mean = SIGMA * rng.normal(size=D) * 0.5
    _, G, g = drawn(rng, 200, mean)
    assert (np.linalg.matrix_rank(G) < D).all()
    found = estimate_population(G, g, SIGMA)
    assert (np.abs(found.mean - mean) < 3.0 * found.mean_std).all()
    assert (found.mean_std < 0.1 * SIGMA).all()
    ratio = found.scatter / SCATTER
    assert (ratio[[1, 2, 4, 5]] > 0.75).all() and (ratio[[1, 2, 4, 5]] < 1.3).all(), ratio
    # Below the noise of each unit: bounded, and never too small.
    small = [0, 3]
    assert (ratio[small] > 0.75).all() and (found.scatter[small] < 0.1 * SIGMA[small]).all()


def test_a_new_unit_is_covered_and_closer():
    rng = np.random.default_rng(2)
    inside, errors = [], []
    for _ in range(40):
        mean = np.sqrt(1.0 - SHARE) * SIGMA * rng.normal(size=D)
        _, G, g = drawn(rng, 30, mean)
        fleet = estimate_population(G, g, SIGMA)
        (truth,), (G1,), (g1,) = drawn(rng, 1, mean)
        for at, prior in enumerate(((fleet.mean, fleet.covariance),
                                    (np.zeros(D), np.diag(SIGMA ** 2)))):
            x, V = posterior(G1, g1, *prior)
            errors.append((at, np.mean(((x - truth) / SIGMA) ** 2)))
            if not at:
                inside.append(np.abs(x - truth) < 1.96 * np.sqrt(np.diag(V)))
    assert 0.90 < np.mean(inside) < 0.99, np.mean(inside)
    fleet_error, own_error = (np.mean([e for at, e in errors if at == k]) for k in (0, 1))
    assert fleet_error < 0.15 * own_error


def test_what_no_data_show_is_known_as_well_as_before():
    G = np.zeros((50, D, D))
    G[:, 0, 0] = 1e6
    found = estimate_population(G, np.zeros((50, D)), SIGMA)
    np.testing.assert_allclose(found.covariance[1:, 1:], np.diag(SIGMA[1:] ** 2), atol=1e-9)
    np.testing.assert_allclose(found.mean, 0.0, atol=1e-9)
    assert found.covariance[0, 0] < 0.05 and (found.known[1:] < 1e-6).all()
    assert np.isnan(found.scores[:, 1:]).all()


def test_units_that_are_known_exactly_give_their_own_mean_and_scatter():
    rng = np.random.default_rng(3)
    truth = 0.3 + SCATTER * rng.normal(size=(400, D))
    G = np.tile(1e8 * np.eye(D), (400, 1, 1))
    found = estimate_population(G, 1e8 * truth, SIGMA)
    np.testing.assert_allclose(found.mean, truth.mean(axis=0), atol=2e-3)
    np.testing.assert_allclose(found.scatter[[1, 2, 4, 5]],
                               truth.std(axis=0, ddof=1)[[1, 2, 4, 5]], rtol=0.08)


def test_order_and_units_do_not_matter():
    rng = np.random.default_rng(4)
    _, G, g = drawn(rng, 30, np.zeros(D))
    found = estimate_population(G, g, SIGMA)
    order, scale = rng.permutation(30), np.array((1e3, 1.0, 2.0, 0.1, 1.0, 5.0))
    again = estimate_population(
        (G / np.outer(scale, scale))[order], (g / scale)[order], SIGMA * scale)
    np.testing.assert_allclose(again.mean, found.mean * scale, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(again.scatter, found.scatter * scale, rtol=1e-6)


def test_an_outlier_is_named_and_does_not_count():
    rng = np.random.default_rng(5)
    truth, G, g = drawn(rng, 40, np.zeros(D), rows=12)
    clean = estimate_population(G, g, SIGMA)
    assert clean.members.all()
    wrong = np.zeros(D)
    wrong[4] = 8.0 * SCATTER[4]
    g[7] += G[7] @ wrong
    found = estimate_population(G, g, SIGMA)
    assert np.flatnonzero(~found.members).tolist() == [7]
    assert int(np.nanargmax(np.abs(found.scores[7]))) == 4 and found.scores[7, 4] > 0.0
    np.testing.assert_allclose(found.scatter, clean.scatter, rtol=0.2)


def test_one_unit_and_none():
    _, G, g = drawn(np.random.default_rng(6), 1, np.zeros(D))
    one = estimate_population(G, g, SIGMA)
    assert (np.sqrt(np.diag(one.covariance)) <= 1.3 * SIGMA).all() and one.members.all()
    with pytest.raises(InputError, match='there is no unit'):
        estimate_population(G[:0], g[:0], SIGMA)
