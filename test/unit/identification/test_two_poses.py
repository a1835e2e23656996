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
"""Muscolo's procedures for captures of any robot: two poses, and the rank of n + 1."""

from dataclasses import replace
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.equations.instrument_parameters import InstrumentParameters
from biped_com_ros.core.identification.estimation.moments_from_com import rank_of
from biped_com_ros.core.identification.estimation.two_poses import best_pair, com_from_captures
import numpy as np
import pytest
from support.statics_data import measure, NOISE, rodrigues, total_com, TrueRobot

THETA = math.radians(10.0)
FEET = ('left', 'right')


def lean(model, angle):
    """Return posture a with both ankles bent; everything above leans."""
    ankles = [name for name in model.joint_names if name.endswith('ankle_pitch')]
    return model.positions(dict.fromkeys(ankles, angle))


@pytest.fixture(scope='module')
def three_link():
    """Return the paper's robot, whose masses differ from the URDF except for the feet."""
    true = TrueRobot('three_link', seed=3, extra=0.0, com_sigma=0.0)
    return true, StaticsRegressor(true.model)


@pytest.mark.parametrize('angle', (THETA, -THETA, np.radians(5.0)))
def test_the_papers_robot_with_exact_sensors(three_link, angle):
    true, regressor = three_link
    captures = [true.capture(FEET, positions=lean(true.model, a)) for a in (0.0, angle)]
    found = com_from_captures(regressor, *captures, NOISE)
    assert found.tilt == pytest.approx(abs(angle), abs=1e-9)
    assert found.mass == pytest.approx(true.static.mass, rel=1e-9)
    for com, capture in zip(found.com_in_base, captures):
        expected = total_com(regressor, true.theta, capture.positions)
        np.testing.assert_allclose(com, expected, atol=1e-5)  # 0.01 mm
    assert found.heights[0] > found.heights[1]
    distance, angle_of = found.polar
    assert distance * np.cos(angle_of) == pytest.approx(found.l_w)


@pytest.mark.parametrize(('name', 'feet', 'expected'), [
    ('three_link', ('left',), 2 * 4 + 2), ('g1', ('left',), 2 * 29 + 2),
    ('g1', ('left', 'right'), 2 * 29 + 3)])
def test_rank_of_poses(name, feet, expected):
    """The paper's n + 1 poses on one foot suffice; one more combination on alternating feet."""
    true = TrueRobot(name, seed=1)
    regressor, n = StaticsRegressor(true.model), len(true.model.joint_names)
    captures = [true.capture((feet[i % len(feet)],)) for i in range(n + 8)]
    whole = rank_of(regressor, captures)
    assert (whole.rank, whole.possible) == (expected, expected)
    assert 'poses suffice' in whole.describe()
    few = rank_of(regressor, captures[:2 * len(feet)])
    assert few.rank <= 4 * len(feet) < few.possible == expected
    assert 'more poses are needed' in few.describe()


def test_what_cannot_be_solved_is_named(three_link):
    true, regressor = three_link
    a, near = (true.capture(FEET, positions=lean(true.model, angle)) for angle in (0.0, 0.005))
    b = true.capture(FEET, positions=lean(true.model, 0.1))
    with pytest.raises(InputError, match='a lean of 0.29 deg: lean further about the ankles'):
        com_from_captures(regressor, a, near, NOISE)
    left = true.capture(('left',), positions=lean(true.model, 0.0))
    with pytest.raises(InputError, match='on the same feet'):
        com_from_captures(regressor, a, left, NOISE)
    with pytest.raises(InputError, match='no two poses differ by a lean'):
        best_pair(regressor, [a, near], NOISE)
    first, second, found = best_pair(regressor, [a, near, b], NOISE)
    assert (first, second) in ((a, b), (near, b)) and 'r_w = ' in found.describe()


@pytest.mark.parametrize(('name', 'draws', 'low', 'high'), [
    ('three_link', 25, 0.75, 1.3),
    pytest.param('sabian', 60, 0.8, 1.2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize('instruments', ('exact', 'with errors'))
def test_deviations_are_those_of_drawn_errors(name, draws, low, high, instruments):
    """
    Noise of all sensors, encoders and variances measured among them, and errors of instruments.

    Bounds: 3 standard deviations of the root mean square of as many drawn numbers, and more.
    """
    true = TrueRobot(name, seed=3)
    model, regressor = true.model, StaticsRegressor(true.model)
    noise = NOISE.scaled(model.mass / 64.0)
    if instruments == 'exact':
        noise = SensorNoise.exact(**{
            name: getattr(noise, name) for name in ('force', 'moment', 'encoder', 'tilt')})
    bent = model.posture('stand')
    bent[[i for i, joint in enumerate(model.joint_names) if 'ankle_pitch' in joint]] += THETA
    n = len(model.joint_names)
    exact = [replace(
        true.capture(FEET, positions=positions), torques=np.full(n, np.nan), approach=np.ones(n),
        position_variance=np.full(n, 1e-6), wrench_variance=np.full((2, 6), 1e-4))
        for positions in (model.posture('stand'), bent)]
    unknown = InstrumentParameters(regressor, noise, exact, np.zeros(n))
    expected, rng = com_from_captures(regressor, *exact, noise), np.random.default_rng(5)
    scores = []
    for _ in range(draws):
        errors = unknown.errors(unknown.sigma * rng.normal(size=len(unknown.sigma)))
        found = com_from_captures(regressor, *[
            _noisy(regressor, measure(capture, errors, when), noise, rng)
            for capture, when in zip(exact, (-0.5, 0.5))], noise)
        scores.append([(getattr(found, of) - getattr(expected, of)) / deviation
                       for of, deviation in zip(('r_w', 'q_w', 'l_w'), found.deviations)])
    assert low < np.sqrt(np.mean(np.square(scores))) < high
    assert found.com_in_base == pytest.approx(expected.com_in_base, abs=0.15)  # no other links


def _noisy(regressor, capture, noise, rng):
    """Return a capture with noise on each reading."""
    sd, inputs = np.sqrt(regressor.variances(capture, noise)), regressor.inputs
    drawn = sd * rng.normal(size=len(sd))
    return replace(
        capture, positions=capture.positions + drawn[inputs.positions],
        up=rodrigues(drawn[inputs.up]) @ capture.up,
        wrenches=capture.wrenches + drawn[inputs.readings].reshape(-1, 6))


def test_a_lean_that_encoders_cannot_show_is_refused(three_link):
    true, regressor = three_link
    captures = [true.capture(FEET, positions=lean(true.model, angle)) for angle in (0.0, 0.1)]
    with pytest.raises(InputError, match='the noise of the encoders hides what moved'):
        com_from_captures(regressor, *captures, replace(NOISE, encoder=0.05))
