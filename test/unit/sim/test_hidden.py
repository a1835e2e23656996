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
"""Hidden errors are what was asked for, no more and no less."""

from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.sim import hidden
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.hidden import LinkError
import numpy as np
import pytest

URDF = (Path(__file__).parents[2] / 'data' / 'sim_robot.urdf').read_text()


@pytest.fixture
def robot():
    return parse(URDF)


def test_an_error_changes_its_link_only(robot):
    changed = hidden.apply(robot, {'chest': LinkError(1.5, (0.01, -0.02, 0.03))})
    assert changed.links['chest'].mass == 4.5
    np.testing.assert_allclose(changed.links['chest'].com, (0.02, -0.015, 0.11))
    np.testing.assert_allclose(changed.links['chest'].inertia, 1.5 * robot.links['chest'].inertia)
    for name, link in robot.links.items():
        assert name == 'chest' or changed.links[name] is link


def test_a_seed_gives_the_same_robot(robot):
    first, again = (hidden.draw(robot, 3, 0.01, 0.1) for _ in range(2))
    assert first == again
    assert first != hidden.draw(robot, 4, 0.01, 0.1)
    assert set(first) == {name for name, link in robot.links.items() if link.mass > 0.0}


def test_draws_have_the_requested_sigma(robot):
    draws = [hidden.draw(robot, seed, 0.01, 0.1) for seed in range(100)]
    coms = np.array([error.com for errors in draws for error in errors.values()])
    shares = np.array([error.mass / robot.links[name].mass
                       for errors in draws for name, error in errors.items()])
    np.testing.assert_allclose(coms.std(axis=0), 0.01, rtol=0.08)
    np.testing.assert_allclose(shares.std(), 0.1, rtol=0.08)
    np.testing.assert_allclose(coms.mean(axis=0), 0.0, atol=0.001)


def test_no_draw_makes_a_link_weightless(robot):
    errors = hidden.draw(robot, 1, 0.0, 5.0)
    changed = hidden.apply(robot, errors)
    for name, link in robot.links.items():
        assert changed.links[name].mass >= 0.199 * link.mass


def test_lines_are_read():
    assert hidden.parse_errors(['chest 1.2 0.01 0 -0.02', ' arm  0 0 1e-3 0 ']) == {
        'chest': LinkError(1.2, (0.01, 0.0, -0.02)), 'arm': LinkError(0.0, (0.0, 0.001, 0.0))}


@pytest.mark.parametrize('line', [
    '', 'chest', 'chest 1 2 3', 'chest 1 2 3 four', 'chest nan 0 0 0', 'chest 1 2 3 4 5'])
def test_bad_lines_are_refused(line):
    with pytest.raises(ConfigurationError, match='four finite numbers'):
        hidden.parse_errors([line])


def test_impossible_errors_are_refused(robot):
    with pytest.raises(UnknownNameError, match="did you mean 'chest'"):
        hidden.apply(robot, {'chst': LinkError(1.0)})
    with pytest.raises(UnknownNameError, match='link with mass'):
        hidden.apply(robot, {'left_sole': LinkError(1.0)})
    with pytest.raises(ConfigurationError, match=r"link 'chest': -3.000 kg on 3.000 kg"):
        hidden.apply(robot, {'chest': LinkError(-3.0)})
    with pytest.raises(ConfigurationError, match='negative'):
        hidden.draw(robot, 0, -0.1, 0.0)
