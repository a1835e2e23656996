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
"""Effort limits that nobody entered, beside what gravity needs."""

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.efforts import (
    effort_limits, effort_scales, needed_efforts, placeholders, urdf_effort_limits)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.robot_check import check_robot
import numpy as np
from numpy.testing import assert_allclose
import pytest


def with_limit(model, joint, limit):
    """Return the robot whose URDF has another effort limit of a joint."""
    begin = model.urdf.index(f'<joint name="{joint}"')
    at = model.urdf.index('effort="', begin) + len('effort="')
    end = model.urdf.index('"', at)
    return RobotModel(model.config, f'{model.urdf[:at]}{limit}{model.urdf[end:]}')


@pytest.fixture(scope='module')
def biped():
    return RobotModel.load('biped')


@pytest.mark.parametrize('name', ['biped', 'talos', 'g1', 'sabian', 'romeo', 'three_link'])
def test_limits_of_real_motors_are_plausible(name):
    model = RobotModel.load(name)
    assert not placeholders(model).any()
    assert_allclose(effort_limits(model), urdf_effort_limits(model))


def test_what_gravity_needs_is_the_weight_of_what_hangs_or_stands(biped):
    needed = needed_efforts(biped)
    ankle, foot = biped.joint_names.index('l_ankle_pitch'), biped.config.feet['left']
    state = biped.state(biped.usual_posture())
    sole = state.placements_in_base(biped.soles)[0]
    levers = [abs((sole[:3] @ [x, y, 0.0])[0]) for x, y in foot.polygon]
    # The ankle is above the sole's origin within some millimetres.
    assert needed[ankle] == pytest.approx(biped.mass * GRAVITY * max(levers), rel=0.5)
    arm = [biped.joint_names.index(f'l_{name}') for name in ('shoulder_pitch', 'elbow')]
    assert needed[arm[0]] > needed[arm[1]] > 0.0


@pytest.mark.parametrize('joint', ['l_elbow', 'l_knee'])
@pytest.mark.parametrize('limit', [1000, 50000, 1e8])
def test_a_placeholder_counts_as_unknown(biped, joint, limit):
    model, k = with_limit(biped, joint, limit), biped.joint_names.index(joint)
    assert placeholders(model).sum() == 1 and placeholders(model)[k]
    assert urdf_effort_limits(model)[k] == limit
    assert 0.1 < effort_limits(model)[k] / effort_limits(biped)[k] < 40.0
    problem, = [each for each in check_robot(model) if 'placeholder' in str(each)]
    assert joint in str(problem) and 'effort=' in str(problem)


@pytest.mark.parametrize('limit', [0, 1e9])
def test_a_missing_limit_has_a_scale(biped, limit):
    model, k = with_limit(biped, 'l_elbow', limit), biped.joint_names.index('l_elbow')
    assert np.isinf(effort_limits(model)[k])
    assert 0.1 < effort_scales(model)[k] < 10.0 and np.isfinite(effort_scales(model)).all()
