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
"""Newman 2013: groups of links by finite differences and sums; efforts as the model's."""

from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.papers.newman_2013 import (
    com_jacobian, droop, fixed_base_efforts, LinkGroup, single_support_efforts)
import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.spatial.transform import Rotation

UP = Rotation.from_rotvec((0.3, -0.2, 1.0)).as_matrix().T[:, 2]


@pytest.fixture(scope='module', params=['biped', 'talos'])
def robot(request):
    return RobotModel.load(request.param)


@pytest.fixture(scope='module')
def biped():
    return RobotModel.load('biped')


def posture(model, seed):
    return model.posture('stand') + np.random.default_rng(seed).uniform(
        -0.3, 0.3, len(model.joint_names))


@pytest.mark.parametrize('group', ['left_arm', 'right_arm', 'right_leg'])
def test_the_slope_of_the_energy_is_the_effort_that_holds_the_group(biped, group):
    """Equations (5) to (10) by central differences, on a tilted base."""
    found, positions = LinkGroup(biped, group), posture(biped, 5)
    efforts = GravityModel(biped).load(biped.state(positions), UP).fixed_base_efforts()
    joints = biped.joint_index(biped.config.groups[group])
    assert np.abs(efforts[joints]).max() > 1e-3
    assert_allclose(fixed_base_efforts(found, positions, UP)[joints], efforts[joints], atol=1e-9)
    for joint in joints:
        step = np.zeros(len(positions))
        step[joint] = 1e-5
        slope = (found.potential_energy(biped.state(positions + step), UP)
                 - found.potential_energy(biped.state(positions - step), UP)) / 2e-5
        assert slope == pytest.approx(efforts[joint], abs=1e-8)


def test_6_is_the_slope_of_the_centre_of_mass(biped):
    group, positions = LinkGroup(biped, 'torso'), posture(biped, 7)
    numeric = np.array([(group.com_in_base(biped.state(positions + step))
                         - group.com_in_base(biped.state(positions - step))) / 2e-6
                        for step in 1e-6 * np.eye(len(positions))]).T
    assert_allclose(com_jacobian(group, positions), numeric, atol=1e-8)


def test_10_and_12_are_what_the_model_computes(robot):
    positions, model = posture(robot, 8), GravityModel(robot)
    load = model.load(robot.state(positions), UP)
    driven = ~np.isin(robot.joint_names, list(robot.config.passive_joints))
    assert_allclose(fixed_base_efforts(LinkGroup(robot), positions, UP)[driven],
                    load.fixed_base_efforts()[driven], atol=1e-9)
    foot = list(robot.config.feet)[1]
    assert_allclose(single_support_efforts(robot, positions, UP, foot)[driven],
                    load.on_contacts([0.0, 1.0]).efforts[driven], atol=1e-8)


def test_a_droop_is_effort_over_stiffness():
    assert_allclose(np.degrees(droop(np.array((20.4, 0.0)), 600.0)), (1.948, 0.0), atol=1e-3)


def test_groups_and_the_rest_add_up_to_the_robot(biped):
    """The arms and the head are on the torso, which stands beside the legs on the pelvis."""
    state = biped.state(posture(biped, 6))
    parts = [LinkGroup(biped, group) for group in ('torso', 'left_leg', 'right_leg')]
    assert set(LinkGroup(biped, 'left_arm').link_names) < set(parts[0].link_names)
    rest = [i for i, name in enumerate(biped.link_names)
            if not any(name in part.link_names for part in parts)]
    masses = biped.link_masses[rest]
    total = sum(masses) + sum(part.mass for part in parts)
    moments = masses @ state.link_coms_in_base[rest] + sum(
        part.mass * part.com_in_base(state) for part in parts)
    assert total == pytest.approx(biped.mass, rel=1e-12)
    assert LinkGroup(biped).mass == pytest.approx(total, rel=1e-12)
    assert_allclose(moments / total, state.com_in_base, atol=1e-12)
    base = Pose(Rotation.from_rotvec((0.1, 0.4, -2.0)).as_matrix(), np.array((3.0, -1.0, 0.7)))
    found = parts[1].com_in_world(state.in_world(base))
    assert_allclose(found, base.apply(parts[1].com_in_base(state)), atol=1e-12)


def test_an_unknown_group_is_named(biped):
    with pytest.raises(UnknownNameError, match="'left_arms'.*left_arm"):
        LinkGroup(biped, 'left_arms')
