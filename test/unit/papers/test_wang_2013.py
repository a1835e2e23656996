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
"""
Wang et al. 2013: the chain is the one of the URDF, the ZMP that of inverse dynamics.

The closed form of the angles and (7): ``test/unit/legs/test_kinematics.py``.
"""

from dataclasses import replace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.wrench import centre_of_pressure
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.papers.wang_2013 import (
    DenavitHartenberg, link_motion, zmp_by_links, zmp_of_motion)
import numpy as np
from numpy.testing import assert_allclose
import pytest
from support.known_motion import known_sway
from support.stance_motion import SwayingMotion

H = 1e-4


@pytest.fixture(scope='module')
def motion():
    return SwayingMotion(5)


@pytest.fixture(scope='module')
def known(motion):
    return known_sway(motion)


@pytest.mark.parametrize('robot, start, end, count', [
    ('bioloid_legs', 'l_sole', 'r_sole', 12), ('bioloid_legs', 'base_link', 'l_sole', 6),
    ('sabian', 'l_sole', 'r_sole', 12)])
@pytest.mark.parametrize('base', [
    {}, {'base_link': 'imu_link', 'base_rpy': (0.3, -0.2, 1.0)}],
    ids=['at the root', 'off the root'])
def test_the_chain_is_the_urdfs(robot, start, end, count, base):
    model = RobotModel.load(robot)
    model = RobotModel(replace(model.config, **base), model.urdf)
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


def test_what_is_no_chain_is_refused_by_name():
    legs, model = RobotModel.load('bioloid_legs'), RobotModel.load('biped')
    for robot, start, end, words in (
            (legs, 'l_sole', 'l_sole', "no joint is between links 'l_sole'"),
            (model, 'r_sole', 'l_hand', "joint 'torso_.' is not revolute")):
        with pytest.raises(ConfigurationError, match=words):
            DenavitHartenberg(robot, start, end)
    with pytest.raises(ConfigurationError, match='2 positions were given, 12 are needed: l_ankle'):
        DenavitHartenberg(legs, 'l_sole', 'r_sole').pose((0.0, 0.0))


def test_link_motion_gives_the_rate_of_momentum(motion, known):
    links, wrench = link_motion(motion.model.pin_model, *known.motion(0.9)), known.wrench(0.9)
    assert_allclose(links.masses @ (links.accelerations + (0, 0, GRAVITY)), wrench[:3], atol=1e-6)
    zmp = zmp_by_links(*links, height=0.3)
    assert_allclose(zmp, centre_of_pressure(wrench, height=0.3), atol=1e-8)
    assert np.isnan(zmp_by_links([1.0], [[0, 0, 1]], [[0, 0, -10.0]])[0]), 'the ground pulls'


def test_zmp_of_a_motion_about_a_foot(motion, known):
    """Against inverse dynamics with a base whose motion is differentiated numerically."""
    model, sole = motion.model, motion.sole_in_world
    up = sole.rotation.T @ (0.0, 0.0, 1.0)
    foot = list(model.config.feet)[motion.foot]
    for t in (0.3, 0.7, 1.6):
        q, dq = motion.joints(t)
        ddq = (motion.joints(t + H)[1] - motion.joints(t - H)[1]) / (2.0 * H)
        wrench = known.wrench(t)
        force = sole.rotation.T @ wrench[:3]
        moment = sole.rotation.T @ (wrench[3:] - np.cross(sole.position, wrench[:3]))
        found = zmp_of_motion(model, q, dq, ddq, foot, up)
        assert_allclose(found, np.array((-moment[1], moment[0], 0.0)) / force[2], atol=2e-5)
        at_rest = zmp_of_motion(model, q, 0.0 * dq, 0.0 * ddq, foot, up)
        assert np.abs(at_rest - found).max() > 0.01
        com = motion.sole_in_base(t, motion.foot).inverse().apply(motion.state(t).com_in_base)
        assert_allclose(at_rest, com - up * com[2] / up[2], atol=1e-9)
    with pytest.raises(UnknownNameError, match="unknown foot 'lefd'"):
        zmp_of_motion(model, q, dq, ddq, 'lefd')
    with pytest.raises(InputError, match='the ground would have to pull'):
        zmp_of_motion(model, q, dq, ddq, foot, -up)
