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
"""A chain by Denavit and Hartenberg is the one that Pinocchio reads from the URDF."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.legs.denavit_hartenberg import DenavitHartenberg
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest


@pytest.mark.parametrize('robot, start, end, count', [
    ('bioloid_legs', 'l_sole', 'r_sole', 12), ('bioloid_legs', 'base_link', 'l_sole', 6),
    ('sabian', 'l_sole', 'r_sole', 12)])
def test_the_chain_is_the_urdfs(robot, start, end, count):
    model = RobotModel.load(robot)
    chain, random = DenavitHartenberg(model, start, end), np.random.default_rng(5)
    index = model.joint_index(chain.joint_names)
    assert len(chain.joint_names) == count
    for _ in range(20):
        positions = random.uniform(-1.5, 1.5, len(model.joint_names))
        state = model.state(positions)
        expected = state.pose_in_base(start).inverse() @ state.pose_in_base(end)
        found = chain.pose(positions[index])
        np.testing.assert_allclose(found.position, expected.position, atol=1e-12)
        np.testing.assert_allclose(found.rotation, expected.rotation, atol=1e-12)


def test_from_foot_to_foot_wangs_lengths_are_in_the_table():
    chain = DenavitHartenberg(RobotModel.load('bioloid_legs'), 'l_sole', 'r_sole')
    lengths = 1e3 * np.abs([row.length for row in chain.rows])
    np.testing.assert_allclose(lengths, (0, 75, 75, 0, 0, 80, 0, 0, 75, 75, 0, 0), atol=1e-9)
    translations = 1e3 * np.abs([row.translation for row in chain.rows])
    np.testing.assert_allclose(translations[[5, 6]].sum(), 0.0, atol=1e-9)
    quarters = np.degrees([row.twist for row in chain.rows]) / 90.0
    np.testing.assert_allclose(quarters, np.round(quarters), atol=1e-12)
    np.testing.assert_allclose(1e3 * chain.first_in_start.position[2], 32.0, atol=1e-9)


def test_what_is_no_chain_is_refused_by_name(model):
    legs = RobotModel.load('bioloid_legs')
    for robot, start, end, words in (
            (legs, 'l_sole', 'l_sole', "no joint is between links 'l_sole'"),
            (model, 'r_sole', 'l_hand', "joint 'torso_.' is not revolute")):
        with pytest.raises(ConfigurationError, match=words):
            DenavitHartenberg(robot, start, end)
    with pytest.raises(ConfigurationError, match='2 positions were given, 12 are needed: l_ankle'):
        DenavitHartenberg(legs, 'l_sole', 'r_sole').pose((0.0, 0.0))
