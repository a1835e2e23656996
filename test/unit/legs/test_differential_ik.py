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
"""Differential inverse kinematics against the closed form, finite differences, other legs."""

from __future__ import annotations

import sys

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.differential_ik import DifferentialIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

pytest.importorskip('pink', reason='pip install pin-pink')


def sole_poses(plan, time):
    return [Pose.from_rpy((0.0, 0.0, yaw), np.array((x, y, z)))
            for x, y, z, yaw in plan.soles(time).tolist()]


@pytest.mark.parametrize('share', (0.2, 0.45, 0.55, 0.8))
def test_postures_of_a_step_are_those_of_the_closed_form(model, legs, step, share):
    """Soles, centre of mass, height and an upright trunk leave the legs no choice."""
    time = share * step.duration
    closed, soles = step.at(time), sole_poses(step.plan, time)
    com = closed.base.apply(model.state(closed.positions).com_in_base)
    ik = DifferentialIk(model, model.posture())
    found = ik.solve(com[:2], soles, closed.base.position[2])
    assert found[legs] == pytest.approx(closed.positions[legs], abs=1e-4)
    assert np.delete(found, legs) == pytest.approx(np.delete(closed.positions, legs))
    for pose, expected in zip(ik.soles, soles):
        assert pose.position == pytest.approx(expected.position, abs=2e-6)
        assert pose.rotation == pytest.approx(expected.rotation, abs=2e-6)
    assert ik.base.apply(model.state(found).com_in_base)[:2] == pytest.approx(com[:2], abs=2e-6)
    assert ik.base.rotation == pytest.approx(np.eye(3), abs=2e-6)


@pytest.mark.parametrize('velocity', ((0.03, 0.0), (0.0, -0.05), (0.02, 0.04)))
def test_rates_are_those_of_finite_differences(model, velocity):
    ik, h = DifferentialIk(model, model.posture()), 1e-5
    ik.over('left', 0.4)
    rates, before, soles = ik.rates(velocity), ik.com.copy(), ik.soles
    moved, at_first = (model.state(ik.positions + step * rates) for step in (h, 0.0))
    sole = [state.placements_in_base(model.soles)[:, 3] for state in (at_first, moved)]
    # Seen from a sole that stays put the centre of mass moves as ordered, and so does no sole.
    shift = (moved.com_in_base - sole[1][0]) - (at_first.com_in_base - sole[0][0])
    assert shift[:2] / h == pytest.approx(velocity, abs=1e-3)
    assert (sole[1][1] - sole[1][0]) == pytest.approx(sole[0][1] - sole[0][0], abs=1e-8)
    assert ik.com == pytest.approx(before)
    assert ik.soles[0].position == pytest.approx(soles[0].position)


@pytest.mark.parametrize('robot', ('talos', 'g1', 'icub'))
def test_the_weight_goes_over_a_foot_whatever_the_legs(robot):
    """Of a g1 and an iCub too, whose legs have no closed form here."""
    model = RobotModel.load(robot)
    ik = DifferentialIk(model, model.posture())
    soles = ik.soles
    foot = model.soles.names[0]
    positions = ik.over(foot, 0.8)
    state = model.state(positions)
    found = ik.base.apply(state.com_in_base)
    sideways = abs(found[1] - soles[0].position[1])
    assert sideways < 0.25 * abs(soles[1].position[1] - soles[0].position[1])
    for before, row in zip(soles, state.placements_in_base(model.soles)):
        assert ik.base.apply(row[3]) == pytest.approx(before.position, abs=2e-6)
    lower, upper = (getattr(model.pin_model, f'{side}PositionLimit')[7:]
                    for side in ('lower', 'upper'))
    q = model.configuration(positions)[7:]
    assert (q >= lower - 1e-9).all() and (q <= upper + 1e-9).all()


def test_a_foot_is_lifted_while_the_other_one_carries():
    model = RobotModel.load('talos')
    ik = DifferentialIk(model, model.posture())
    ik.over('left')
    left, right = ik.soles
    lifted = Pose(right.rotation, right.position + (0.05, 0.0, 0.04))
    positions = ik.solve(left.position[:2], [left, lifted])
    rows = model.state(positions).placements_in_base(model.soles)[:, 3]
    assert rows[1, 2] - rows[0, 2] == pytest.approx(0.04, abs=5e-6)
    assert ik.com[:2] == pytest.approx(left.position[:2], abs=2e-6)


@pytest.mark.parametrize('request_, error, words', (
    (lambda model: DifferentialIk(model, model.posture()).over('lefft'), UnknownNameError,
     "unknown foot 'lefft' in biped; did you mean"),
    (lambda model: DifferentialIk(model, model.posture()).solve((1.0, 0.0)), InputError,
     'cannot bring its centre of mass over'),
    (lambda model: DifferentialIk(model, model.posture(), 'simplex'), ConfigurationError,
     "no solver 'simplex'; installed: .*proxqp")))
def test_what_is_impossible_is_named(model, request_, error, words):
    with pytest.raises(error, match=words):
        request_(model)


def test_what_is_not_installed_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pink', None)
    with pytest.raises(ConfigurationError, match="'pin-pink'.*pip install pin-pink"):
        DifferentialIk(model, model.posture())
