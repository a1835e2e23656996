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
"""Load sharing: zero before lift-off, bounded speed, and what happens in the air."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.load_sharing import LoadSharing, SharingSettings
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

WEIGHT = 900.0
FIRM = [450.0, 450.0]
STEP_NS = 2_000_000  # 500 Hz


@pytest.fixture
def sharing():
    return LoadSharing(2, WEIGHT)


def test_is_exactly_zero_before_lift_off(sharing):
    at_zero = None
    for i, force in enumerate(np.linspace(450.0, 0.0, 500)):  # of the right foot, in 1 s
        shares = sharing.update([WEIGHT - force, force], i * STEP_NS)
        assert sum(shares) == pytest.approx(1.0, abs=1e-12)
        if at_zero is None and shares[1] == 0.0:
            at_zero = force
    assert at_zero > 0.03 * WEIGHT  # the contact's release threshold
    assert sharing.values[0] > 0.0 == sharing.values[1]


def test_a_foot_that_is_pulled_a_little_has_no_negative_zero(sharing):
    assert not np.signbit(sharing.update([900.0, -0.1], 0)).any()
    for step in range(1, 1000):
        shares = sharing.update(FIRM if step < 100 else [900.0, -0.1], step * STEP_NS)
        assert not np.signbit(shares).any()
    assert sharing.values[0] > 0.0 == sharing.values[1]


def test_shares_never_change_faster_than_allowed():
    sharing, before = LoadSharing(2, WEIGHT, SharingSettings(max_rate=4.0)), None
    forces = [450.0] * 20 + [0.0] * 100 + [900.0] * 200 + [450.0] * 300
    for i, force in enumerate(forces):
        shares = np.array(sharing.update([WEIGHT - force, force], i * STEP_NS))
        if before is not None:
            assert np.abs(shares - before).max() <= 4.0 * 0.002 + 1e-12
        before = shares
    np.testing.assert_allclose(before, 0.5)


@pytest.mark.parametrize('robot', ('talos', 'g1'))
def test_efforts_are_continuous_from_double_to_single_support_and_back(robot):
    """The largest step of an effort stays below 0.5 % of the joint's limit at 500 Hz."""
    model = RobotModel.load(robot)
    gravity, up = GravityModel(model), np.array([0.0, 0.0, 1.0])
    sharing, ik = LoadSharing(2, gravity.weight), PostureIk(model, model.posture())
    stand = gravity.load(model.state(model.posture()), up)
    distance = 1.1 * (stand.placements[0, 3, 1] - stand.com[1])  # the legs stay behind
    before, worst, supports = None, 0.0, set()
    for i, phase in enumerate(np.linspace(0.0, 2.0 * np.pi, 1000)):  # 2 s there and back
        positions = ik.positions(Pose.translation(
            (0.0, 0.5 * (1.0 - np.cos(phase)) * distance, -0.02)))
        load = gravity.load(model.state(positions), up)
        left, right = load.placements[:, 3, 1]
        share = min(max((left - load.com[1]) / (left - right), 0.0), 1.0)
        shares = sharing.update([gravity.weight * (1.0 - share), gravity.weight * share],
                                i * STEP_NS)
        supports.add(tuple(share > 0.0 for share in shares))
        efforts = load.on_contacts(shares).efforts
        if before is not None:
            worst = max(worst, np.max(np.abs(efforts - before) / gravity.effort_limits))
        before = efforts
    assert supports == {(True, True), (True, False)}
    assert 0.0 < worst < 0.005


def test_in_the_air_shares_are_held_and_come_back_smoothly(sharing):
    sharing.update([800.0, 100.0], 0)
    held = list(sharing.values)
    sharing.update([10.0, 5.0], STEP_NS)
    assert sharing.in_air
    np.testing.assert_array_equal(sharing.values, held)
    sharing.update([200.0, 200.0], 2 * STEP_NS)  # 0.44: between `air` and `ground`
    assert sharing.in_air
    sharing.update(FIRM, 3 * STEP_NS)
    assert not sharing.in_air
    assert np.abs(np.subtract(sharing.values, held)).max() <= 2.0 * 0.002 + 1e-12


@pytest.mark.parametrize('forces', (
    [0.0, 0.0], *([450.0, force] for force in (float('nan'), float('inf'), float('-inf')))))
def test_the_first_stance_is_taken_at_once_and_forces_that_are_not_finite_not(sharing, forces):
    assert sharing.in_air and not any(sharing.update(forces, 0)) and sharing.in_air
    np.testing.assert_allclose(sharing.update(FIRM, STEP_NS), 0.5)
    if np.any(forces):
        np.testing.assert_allclose(sharing.update(forces, 2 * STEP_NS), 0.5)
    # After a step back of the clock it starts anew.
    np.testing.assert_allclose(sharing.update([600.0, 300.0], 0), [2.0 / 3.0, 1.0 / 3.0])


@pytest.mark.parametrize(('values', 'message'), (
    ({'lift': 0.2}, "'lift' is 0.2; it must be 0 to 0.19"),
    ({'lift': -0.1}, "'lift' is -0.1; it must be 0 to 0.19"),
    ({'lift': float('nan')}, "'lift' is nan; it must be 0 to 0.19")))
def test_nonsense_is_refused(values, message):
    with pytest.raises(ConfigurationError) as refusal:
        SharingSettings(**values)
    assert str(refusal.value) == message


def test_a_foot_that_may_be_in_the_air_gets_no_share():
    certain, uncertain = LoadSharing(2, WEIGHT), LoadSharing(2, WEIGHT)
    forces = [0.9 * WEIGHT, 0.1 * WEIGHT]
    assert certain.update(forces, 0)[1] > 0.0
    assert uncertain.update(forces, 0, [0.05 * WEIGHT, 0.05 * WEIGHT]) == [1.0, 0.0]


@pytest.mark.parametrize('deviations', ((), ([0.05 * WEIGHT] * 2,)))
def test_forces_of_feet_that_stand_firmly_are_shared_as_they_are(sharing, deviations):
    found = sharing.update([600.0, 300.0], 0, *deviations)
    np.testing.assert_allclose(found, [2 / 3, 1 / 3])
    assert all(sharing.values)
