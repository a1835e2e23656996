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
"""Mass, centre of mass and energy of groups of joints: finite differences, sums, frames."""

from biped_com_ros.core.com.link_group import LinkGroup
from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.spatial.transform import Rotation


@pytest.fixture(scope='module')
def biped():
    return RobotModel.load('biped')


def posture(model, rng):
    return model.posture('stand') + rng.uniform(-0.3, 0.3, len(model.joint_names))


@pytest.mark.parametrize('group', ['left_arm', 'right_arm', 'right_leg'])
def test_the_slope_of_the_energy_is_the_effort_that_holds_the_group(biped, group):
    """Equations (5) to (10) by central differences, on a tilted base."""
    rng = np.random.default_rng(5)
    found, gravity = LinkGroup(biped, group), GravityModel(biped)
    positions = posture(biped, rng)
    up = Rotation.from_rotvec((0.3, -0.2, 1.0)).as_matrix().T[:, 2]
    efforts = gravity.load(biped.state(positions), up).fixed_base_efforts()
    joints = biped.joint_index(biped.config.groups[group])
    assert np.abs(efforts[joints]).max() > 1e-3
    for joint in joints:
        step = np.zeros(len(positions))
        step[joint] = 1e-5
        slope = (found.potential_energy(biped.state(positions + step), up)
                 - found.potential_energy(biped.state(positions - step), up)) / 2e-5
        assert slope == pytest.approx(efforts[joint], abs=1e-8)


def test_groups_and_the_rest_add_up_to_the_robot(biped):
    """The arms and the head are on the torso, which stands beside the legs on the pelvis."""
    state = biped.state(posture(biped, np.random.default_rng(6)))
    parts = [LinkGroup(biped, group) for group in ('torso', 'left_leg', 'right_leg')]
    assert set(LinkGroup(biped, 'left_arm').link_names) < set(parts[0].link_names)
    rest = [i for i, name in enumerate(biped.link_names)
            if not any(name in part.link_names for part in parts)]
    masses = biped.link_masses[rest]
    total = sum(masses) + sum(part.mass for part in parts)
    moments = masses @ state.link_coms_in_base[rest] + sum(
        part.mass * part.com_in_base(state) for part in parts)
    assert total == pytest.approx(biped.mass, rel=1e-12)
    assert_allclose(moments / total, state.com_in_base, atol=1e-12)
    base = Pose(Rotation.from_rotvec((0.1, 0.4, -2.0)).as_matrix(), np.array((3.0, -1.0, 0.7)))
    found = parts[1].com_in_world(state.in_world(base))
    assert_allclose(found, base.apply(parts[1].com_in_base(state)), atol=1e-12)


def test_an_unknown_group_is_named(biped):
    with pytest.raises(UnknownNameError, match="'left_arms'.*left_arm"):
        LinkGroup(biped, 'left_arms')
