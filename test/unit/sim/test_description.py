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
"""The simulator's own reading of a URDF."""

from __future__ import annotations

import math
from pathlib import Path

from biped_com_ros.core.errors import RobotDescriptionError, UnknownNameError
from biped_com_ros.sim.description import (
    parse, quaternion_wxyz, resolve_mimics, rotation_about, rotation_from_rpy, Transform)
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

URDF = (Path(__file__).parents[2] / 'data' / 'sim_robot.urdf').read_text()
angles = st.floats(-3.2, 3.2)


@pytest.fixture
def robot():
    return parse(URDF)


@settings(deadline=None)
@given(angles, angles, angles)
def test_quaternion_gives_the_rotation_back(roll, pitch, yaw):
    rotation = rotation_from_rpy((roll, pitch, yaw))
    w, x, y, z = quaternion_wxyz(rotation)
    angle = 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), w)
    if angle > 1e-6:
        axis = np.array((x, y, z)) / math.sin(0.5 * angle)
        np.testing.assert_allclose(rotation_about(axis, angle), rotation, atol=1e-9)


def test_half_turns_have_a_quaternion():
    for axis in np.eye(3):
        quaternion = quaternion_wxyz(rotation_about(axis, math.pi))
        np.testing.assert_allclose(np.abs(quaternion), [0.0, *axis], atol=1e-12)


def test_rpy_is_about_fixed_axes():
    """Roll 90 deg then yaw 90 deg takes y to z, and leaves it there."""
    rotation = rotation_from_rpy((math.pi / 2, 0.0, math.pi / 2))
    np.testing.assert_allclose(rotation @ (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), atol=1e-15)
    np.testing.assert_allclose(rotation @ (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), atol=1e-15)


def test_transforms_chain_and_invert():
    A_B = Transform.from_rpy((1.0, 2.0, 3.0), (0.1, 0.2, 0.3))
    B_C = Transform.from_rpy((-0.5, 0.4, 0.3), (1.1, -0.7, 2.0))
    back = (A_B @ B_C).inverse() @ A_B @ B_C
    np.testing.assert_allclose(back.rotation, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(back.position, 0.0, atol=1e-14)
    np.testing.assert_allclose(
        (A_B @ B_C).position, A_B.rotation @ B_C.position + A_B.position)


def test_an_inertial_frame_may_be_turned(robot):
    """The chest's inertia is given in a frame rolled by 0.1 rad."""
    turn = rotation_from_rpy((0.1, 0.0, 0.0))
    given_inertia = np.array(((0.02, 0.002, 0.0), (0.002, 0.02, 0.0), (0.0, 0.0, 0.015)))
    np.testing.assert_allclose(
        robot.links['chest'].inertia, turn @ given_inertia @ turn.T, atol=1e-17)
    np.testing.assert_allclose(robot.links['chest'].com, (0.01, 0.005, 0.08))


def test_joints_keep_their_particulars(robot):
    assert robot.root == 'base_link'
    assert robot.joints['neck'].lower == -math.inf
    assert robot.joints['neck'].effort == 8.0
    assert robot.joints['antenna'].effort == math.inf  # 0 in the file: no limit given.
    assert parse(URDF.replace('effort="8"', 'effort="-8"')).joints['neck'].effort == math.inf
    np.testing.assert_allclose(robot.joints['shoulder'].axis, (0.0, 1.0, 0.0))
    assert resolve_mimics(robot) == {'thumb': ('grip', -1.5, 0.1)}


def test_relative_pose_across_the_legs(robot):
    """Both soles are 0.16 m apart; with the left hip rolled by 90 deg its leg points aside."""
    apart = robot.relative('left_sole', 'right_sole', {})
    np.testing.assert_allclose(apart.position, (0.0, -0.16, 0.0), atol=1e-15)
    pose = robot.relative('pelvis', 'left_sole', {'left_hip_roll': math.pi / 2})
    np.testing.assert_allclose(pose.position, (0.01, 0.08 + 0.49, -0.05), atol=1e-12)


def test_path_leads_up_and_down(robot):
    names = [joint.name for joint in robot.path('left_talus', 'right_hip')]
    assert names == ['left_ankle_pitch', 'left_knee', 'left_hip_pitch', 'left_hip_roll',
                     'right_hip_roll']


@pytest.mark.parametrize('urdf, message', [
    ('<robot', 'not well-formed'),
    ('<robot><link name="a"/><link name="b"/></robot>', 'exactly one root'),
    ('<robot><link name="a"><inertial><mass value="-1"/></inertial></link></robot>',
     "link 'a': the mass is -1.0"),
    ('<robot><link name="a"><inertial><mass value="heavy"/></inertial></link></robot>',
     "value='heavy' is not a number"),
    ('<robot><link name="a"/><link name="b"/><joint name="j" type="ball"/></robot>',
     "joint 'j' has type 'ball'; valid: revolute, continuous, prismatic, fixed"),
    ('<robot><link name="a"/><joint name="j" type="fixed"><child link="a"/></joint></robot>',
     "joint 'j' has no <parent>"),
    ('<robot><link name="a"/><link name="b"/><joint name="j" type="revolute">'
     '<parent link="a"/><child link="b"/><axis xyz="0 0 0"/></joint></robot>', 'length zero'),
    ('<robot><link name="a"/><link name="b"/><joint name="j" type="fixed">'
     '<parent link="a"/><child link="b"/><origin xyz="0 nan 0"/></joint></robot>',
     "xyz='0 nan 0' is not three finite numbers"),
])
def test_broken_urdfs_are_named(urdf, message):
    with pytest.raises(RobotDescriptionError, match=message):
        assert parse(urdf).root


def test_unknown_links_and_circular_mimics_are_named(robot):
    urdf = ('<robot><link name="torso"/><joint name="j" type="fixed"><parent link="torsoo"/>'
            '<child link="torso"/></joint></robot>')
    with pytest.raises(UnknownNameError, match="did you mean 'torso'"):
        parse(urdf)
    with pytest.raises(UnknownNameError, match='left_foot'):
        robot.relative('pelvis', 'left_fot', {})
    joint = ('<joint name="{0}" type="revolute"><parent link="a"/><child link="{0}"/>'
             '<mimic joint="{1}"/></joint>')
    urdf = ('<robot><link name="a"/><link name="b"/><link name="c"/>'
            + joint.format('b', 'c') + joint.format('c', 'b') + '</robot>')
    with pytest.raises(RobotDescriptionError, match='circle'):
        resolve_mimics(parse(urdf))
