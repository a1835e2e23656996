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
from biped_com_ros.sim.description import parse, prepare
from biped_com_ros.sim.frames import (
    joints_between, quaternion_wxyz, relative, rotation_about, rotation_from_rpy, Transform)
from hypothesis import given, settings, strategies as st
import mujoco
import numpy as np
import pytest
from support.sim_robot import make_plant

URDF = (Path(__file__).parents[2] / 'data' / 'sim_robot.urdf').read_text()
angles = st.floats(-3.2, 3.2)


@pytest.fixture
def robot():
    return parse(URDF)


@pytest.fixture(scope='module')
def at_zero():
    """Return MuJoCo's model of the URDF and its data with all joints at zero."""
    description = parse(URDF)
    model = description.load(prepare(description.urdf), {}).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return model, data


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
    A_B = Transform(rotation_from_rpy((0.1, 0.2, 0.3)), np.array((1.0, 2.0, 3.0)))
    B_C = Transform(rotation_from_rpy((1.1, -0.7, 2.0)), np.array((-0.5, 0.4, 0.3)))
    back = (A_B @ B_C).inverse() @ A_B @ B_C
    np.testing.assert_allclose(back.rotation, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(back.position, 0.0, atol=1e-14)
    np.testing.assert_allclose(
        (A_B @ B_C).position, A_B.rotation @ B_C.position + A_B.position)


def test_an_inertial_frame_may_be_turned(robot):
    """The chest's inertia is given in a frame rolled by 0.1 rad."""
    turn = rotation_from_rpy((0.1, 0.0, 0.0))
    given_inertia = np.array(((0.02, 0.002, 0.0), (0.002, 0.02, 0.0), (0.0, 0.0, 0.015)))
    expected = turn @ given_inertia @ turn.T
    np.testing.assert_allclose(robot.links['chest'].inertia, expected, atol=1e-17)
    np.testing.assert_allclose(robot.links['chest'].com, (0.01, 0.005, 0.08))
    model = make_plant().model
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body('link/chest').iquat)
    axes = axes.reshape(3, 3)
    # MuJoCo 3.2 finds principal axes to some 1e-7.
    is_old = tuple(map(int, mujoco.__version__.split('.')[:2])) < (3, 3)
    np.testing.assert_allclose((axes * model.body('link/chest').inertia) @ axes.T, expected,
                               atol=1e-8 if is_old else 1e-16)


def test_an_inertia_that_no_body_has_is_made_valid():
    """What is missing is added to all principal moments; a mass may have no inertia at all."""
    no_body = URDF.replace('iyy="0.006" iyz="0" izz="0.001"', 'iyy="0.001" iyz="0" izz="0.001"')
    description = parse(no_body.replace(
        '<inertia ixx="0.0002" ixy="0" ixz="0" iyy="0.0002" iyz="0" izz="0.0002"/>', ''))
    model = description.load(prepare(description.urdf), {}).compile()
    np.testing.assert_allclose(
        np.sort(model.body('link/left_thigh').inertia), (0.005, 0.005, 0.01), rtol=1e-5)
    assert model.body('link/left_talus').mass[0] == 0.2
    np.testing.assert_allclose(model.body('link/left_talus').inertia, 1e-9)


@pytest.mark.parametrize('moments', np.array((6e-8, 8e-8, 2e-8)) * ((1.0,), (0.93,)))
def test_a_flat_body_is_valid_whatever_rounding_makes_of_its_inertia(moments):
    """The largest moment is exactly the sum of the others."""
    xx, yy, zz = moments
    robot = parse(URDF.replace(
        '<inertia ixx="1e-05" ixy="0" ixz="0" iyy="1e-05" iyz="0" izz="1e-05"/>',
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/>', 1))
    model = robot.load(prepare(robot.urdf), {}).compile()
    np.testing.assert_allclose(
        np.sort(model.body('link/finger').inertia), np.sort(moments), rtol=1e-5, atol=1e-9)


def test_joints_keep_their_particulars(robot):
    assert robot.joints['neck'].lower == -math.inf
    assert robot.joints['neck'].effort == 8.0
    assert robot.joints['antenna'].effort == math.inf  # 0 in the file: no limit given.
    assert parse(URDF.replace('effort="8"', 'effort="-8"')).joints['neck'].effort == math.inf
    np.testing.assert_allclose(robot.joints['shoulder'].axis, (0.0, 1.0, 0.0))
    assert robot.mimics == {'thumb': ('grip', -1.5, 0.1)}


def test_relative_pose_across_the_legs(at_zero):
    """Both soles are 0.16 m apart; with the left hip rolled by 90 deg its leg points aside."""
    model, data = at_zero
    left, right, pelvis = (
        model.body(f'link/{name}').id for name in ('left_sole', 'right_sole', 'pelvis'))
    np.testing.assert_allclose(
        relative(data, left, right).position, (0.0, -0.16, 0.0), atol=1e-15)
    description, locked = parse(URDF), {'left_hip_roll': math.pi / 2}
    model = description.load(prepare(description.urdf, locked), locked).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(
        relative(data, pelvis, left).position, (0.01, 0.08 + 0.49, -0.05), atol=1e-12)


def test_joints_between_lead_up_and_down(at_zero):
    model, _ = at_zero
    names = [model.joint(joint).name.removeprefix('joint/') for joint in joints_between(
        model, model.body('link/left_talus').id, model.body('link/right_hip').id)]
    assert names == ['left_ankle_pitch', 'left_knee', 'left_hip_pitch', 'left_hip_roll',
                     'right_hip_roll']


LINKS = '<robot><link name="a"/><link name="b"/>'


def test_a_free_joint_below_an_empty_root_is_that_of_the_base():
    body = '<link name="a"><inertial><mass value="1"/></inertial></link>'
    free = ('<link name="world"/><joint name="root" type="floating"><parent link="world"/>'
            '<child link="a"/></joint>')
    assert [*parse(f'<robot name="r">{free}{body}</robot>').links] == ['a']


@pytest.mark.parametrize('urdf, message', [
    ('<robot', 'not well-formed'),
    (f'{LINKS}</robot>', 'exactly one root'),
    ('<robot><link name="a"><inertial><mass value="heavy"/></inertial></link></robot>',
     'MuJoCo cannot read the URDF'),
    ('<robot><link name="a"><inertial><mass value="-1"/></inertial></link></robot>',
     "link 'a': the mass is -1.0"),
    (f'{LINKS}<joint name="j" type="ball"/></robot>',
     "joint 'j' has type 'ball'; valid: revolute, continuous, prismatic, fixed"),
    ('<robot><link name="a"/><joint name="j" type="fixed"><child link="a"/></joint></robot>',
     "joint 'j' has no <parent>"),
    (f'{LINKS}<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
     '<limit lower="low"/></joint></robot>', "joint 'j': lower='low' is not a number"),
    (f'{LINKS}<joint name="j" type="fixed"><parent link="a"/><child link="c"/></joint></robot>',
     'MuJoCo cannot read the URDF')])
def test_broken_urdfs_are_named(urdf, message):
    with pytest.raises(RobotDescriptionError, match=message):
        parse(urdf)


def test_unknown_links_and_circular_mimics_are_named(robot):
    with pytest.raises(UnknownNameError, match='left_foot'):
        robot.require_link('left_fot')
    joint = ('<joint name="{0}" type="continuous"><parent link="a"/><child link="{0}"/>'
             '<mimic joint="{1}"/></joint>')
    urdf = ('<robot><link name="a"/><link name="b"/><link name="c"/>'
            + joint.format('b', '{}') + joint.format('c', 'b') + '</robot>')
    with pytest.raises(RobotDescriptionError, match='circle'):
        parse(urdf.format('c'))
    with pytest.raises(UnknownNameError, match="the mimic of 'b'"):
        parse(urdf.format('d'))
