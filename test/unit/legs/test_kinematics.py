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
"""Wang's leg in closed form, against the paper's chain, Pinocchio and finite differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
import re
import runpy
from timeit import repeat
from types import SimpleNamespace

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.ik import legs_of
from biped_com_ros.core.legs.kinematics import KNEE_BACKWARD, KNEE_FORWARD, Leg, RobotLeg
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.papers.wang_2013 import (
    LegGeometry, positions_of_wang, straight_chain, WANG, wang_angles, wang_matrices)
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

EXAMPLE = Path(__file__).resolve().parents[3] / 'examples' / 'wang_errata.py'
ROBOTS = ('biped', 'sabian', 'bioloid_legs', 'talos')
# Wang's axes in ROS's: his y is forward, his x is to the right.
WANG_ROS = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))


@pytest.fixture(scope='module', params=ROBOTS)
def model(request):
    return RobotModel.load(request.param)


@pytest.fixture(scope='module', params=('left', 'right'))
def leg(model, request):
    return RobotLeg(model, request.param)


@pytest.fixture
def wang():
    return Leg(straight_chain(WANG))


def random_positions(leg, count, seed=1):
    return np.random.default_rng(seed).uniform(leg.lower, leg.upper, (count, 6))


def by_pinocchio(model, leg, positions):
    """Return the pose of the sole, and the Jacobians along the axes of the base and of it."""
    everything = np.zeros(len(model.joint_names))
    everything[leg.index] = positions
    pin_model, foot = model.pin_model, next(i for i, n in enumerate(model.soles.names)
                                            if n in leg.name)
    names = [model.joint_names[i] for i in leg.index]
    columns = [pin_model.joints[pin_model.getJointId(name)].idx_v for name in names]
    data, joint = pin_model.createData(), int(model.soles.joints[foot])
    pin.computeJointJacobians(pin_model, data, model.configuration(everything))
    row = model.soles.placement_in_joint[foot]
    sole = pin.SE3(row[:3, :3].T.copy(), row[3, :3].copy())
    in_sole = (sole.toActionMatrixInverse() @ pin.getJointJacobian(
        pin_model, data, joint, pin.ReferenceFrame.LOCAL))[:, columns]
    R = data.oMi[joint].rotation @ sole.rotation
    row = model.state(everything).placements_in_base(model.soles)[foot]
    return Pose(row[:3].T, row[3]), np.vstack((R @ in_sole[:3], R @ in_sole[3:])), in_sole


def assert_same_pose(found, expected, tolerance=1e-9):
    assert np.abs(found.position - expected.position).max() < tolerance
    assert np.abs(found.rotation - expected.rotation).max() < tolerance


# ---- forward


def test_forward_kinematics_and_jacobians_are_pinocchios(model, leg):
    for positions in random_positions(leg, 100):
        sole, in_base, in_sole = by_pinocchio(model, leg, positions)
        assert_same_pose(leg.pose(positions), sole, 1e-12)
        np.testing.assert_allclose(leg.jacobian_in_base(positions), in_base, rtol=0, atol=1e-12)
        np.testing.assert_allclose(leg.jacobian_in_sole(positions), in_sole, rtol=0, atol=1e-12)


@pytest.mark.parametrize('geometry', (WANG, LegGeometry(0.05, 0.11, 0.17, 0.02)))
def test_forward_kinematics_are_the_papers_chain(geometry):
    """(2): the matrices from the sole to the hip yaw, in axes turned by 90 deg."""
    leg = Leg(straight_chain(geometry))
    assert leg.pose(np.zeros(6)).position == pytest.approx((0, 0, -sum(geometry)))
    for positions in np.random.default_rng(2).uniform(-1.5, 1.5, (100, 6)):
        np.testing.assert_allclose(positions_of_wang(wang_angles(positions)), positions)
        chain = np.linalg.multi_dot(list(wang_matrices(wang_angles(positions), geometry)))
        base_in_sole = leg.pose(positions).inverse()
        assert chain[:3, 3] == pytest.approx(WANG_ROS @ base_in_sole.position, abs=1e-14)
        assert chain[:3, :3] == pytest.approx(
            WANG_ROS @ base_in_sole.rotation @ WANG_ROS.T, abs=1e-14)


# ---- inverse


def test_random_poses_are_recovered(leg):
    """
    Position (m) and orientation to 1e-9: any posture of the box, not only sensible ones.

    Where the hip is above the ankle, the joint positions too; elsewhere they are another one of
    the eight solutions.
    """
    recovered = 0
    for k, positions in enumerate(random_positions(leg, 1250)):
        expected = leg.pose(positions)
        solution = leg.inverse(expected, KNEE_FORWARD if positions[3] > 0.0 else KNEE_BACKWARD)
        assert solution.is_reachable and not solution.singular
        assert_same_pose(leg.pose(solution.positions), expected)
        if leg.ankle_target(expected)[1][2] > 0.0:
            np.testing.assert_allclose(solution.positions, positions, rtol=0.0, atol=1e-9)
            recovered += 1
        if k < 100:
            solutions = leg.solutions(expected)
            for one in solutions:
                assert_same_pose(leg.pose(one.positions), expected)
            assert min(np.abs(s.positions - positions).max() for s in solutions) < 1e-9
            assert solutions[0].is_valid
    assert recovered > 500


def test_the_knee_bends_to_the_requested_side(leg):
    pose = leg.pose(np.array((0.1, 0.05, -0.4, 0.7, -0.3, -0.1)))
    forward, backward = leg.inverse(pose, KNEE_FORWARD), leg.inverse(pose, KNEE_BACKWARD)
    assert forward.positions == pytest.approx((0.1, 0.05, -0.4, 0.7, -0.3, -0.1))
    assert backward.positions[3] < -0.5 and backward.outside == (3,)
    assert_same_pose(leg.pose(backward.positions), pose)


@pytest.mark.parametrize('knee', (KNEE_FORWARD, KNEE_BACKWARD))
def test_axes_may_point_either_way(wang, knee):
    chain = straight_chain(WANG)
    signs = np.array((-1.0, 1.0, -1.0, -1.0, 1.0, -1.0))
    other = Leg(replace(chain, signs=signs))
    pose = wang.pose(np.array((0.2, 0.1, -0.5, 0.8, -0.2, 0.3)))
    assert other.inverse(pose, knee).positions == pytest.approx(
        signs * wang.inverse(pose, knee).positions)


@pytest.mark.parametrize('turns', (-1.0, 1.0))
@pytest.mark.parametrize('joint', (0, 5))
def test_limits_may_be_beyond_half_a_turn(joint, turns):
    """As of a joint whose zero is behind."""
    chain = straight_chain(WANG)
    lower, upper = np.full(6, -1.5), np.full(6, 1.5)
    lower[joint], upper[joint] = sorted((1.8 * turns, 4.5 * turns))
    leg = Leg(replace(chain, lower=lower, upper=upper))
    for angle in (2.5, 3.0, 3.1, 3.2, 3.5, 4.4):
        positions = np.array((0.2, 0.1, -0.4, 0.8, -0.4, 0.05))
        positions[joint] = turns * angle
        solution = leg.inverse(leg.pose(positions))
        assert_same_pose(leg.pose(solution.positions), leg.pose(positions))
        if joint == 0:
            assert solution.is_valid
            np.testing.assert_allclose(solution.positions, positions, atol=1e-9)


def test_a_knee_off_the_line_of_a_straight_leg_is_allowed_for():
    chain = straight_chain(LegGeometry(0.05, 0.12, 0.2, 0.03))
    chain = replace(chain, knee=chain.knee + (0.02, 0.0, 0.0), ankle=chain.ankle - (0.01, 0, 0),
                    sole=Pose.from_rpy((0.02, 0.1, -0.3), chain.sole.position + (0.01, 0.02, 0)))
    leg = Leg(chain)
    assert_same_pose(leg.pose(np.zeros(6)), chain.sole, 1e-15)
    for positions in np.random.default_rng(3).uniform(-1.0, 1.0, (100, 6)):
        side = KNEE_FORWARD if leg.angles(positions)[3] > 0.0 else KNEE_BACKWARD
        assert leg.inverse(leg.pose(positions), side).positions == pytest.approx(
            positions, abs=1e-9)


# ---- out of reach


def test_too_near_is_reported_where_shin_and_thigh_differ():
    leg = Leg(straight_chain(LegGeometry(0.05, 0.1, 0.2, 0.03)))
    solution = leg.inverse(Pose(np.eye(3), np.array((0.02, 0.0, -0.10))))
    assert solution.excess == pytest.approx(np.hypot(0.02, 0.02) - 0.1)


def test_unreachable_poses_are_those_beyond_the_legs_length(wang):
    """Random poses, classified by the distance from hip to ankle; the orientation is kept."""
    random, unreachable = np.random.default_rng(4), 0
    for _ in range(2000):
        pose = Pose(Rotation.random(random_state=random).as_matrix(),
                    random.uniform(-0.25, 0.25, 3))
        ankle = pose.apply(np.array((0.0, 0.0, WANG.ankle)))
        distance = np.linalg.norm(ankle - (0.0, 0.0, -WANG.hip))
        solution = wang.inverse(pose)
        assert solution.is_reachable == (distance <= 0.15)
        found = wang.pose(solution.positions)
        np.testing.assert_allclose(found.rotation, pose.rotation, rtol=0.0, atol=1e-9)
        if solution.is_reachable:
            assert_same_pose(found, pose)
        unreachable += not solution.is_reachable
    assert 200 < unreachable < 1900


def test_out_of_reach_is_reported_with_the_distance_and_the_remedy(leg):
    straight = leg.pose(np.zeros(6))
    for rotation in (straight.rotation, np.eye(3)):
        far = Pose(rotation, straight.position - (0.0, 0.0, 0.013))
        solution, ankle = leg.inverse(far), leg.ankle_target(far)[1]
        assert not solution.is_reachable and not solution.is_valid
        assert solution.excess == pytest.approx(np.linalg.norm(ankle) - leg.shin - leg.thigh)
        assert leg.angles(solution.positions)[3] == pytest.approx(0.0)
        with pytest.raises(InputError, match=r'beyond the stretched leg.*lower the hips'):
            leg.positions(far)


def test_joints_beyond_their_limits_are_named(leg):
    positions = np.array((0.0, 0.0, -0.3, 0.6, -0.3, 0.0))
    positions[5] = leg.upper[5] + 0.1
    solution = leg.inverse(leg.pose(positions))
    assert solution.is_reachable and solution.outside == (5,) and not solution.is_valid
    with pytest.raises(InputError, match=re.escape(leg.joint_names[5]) + r' at .*limits'):
        leg.positions(leg.pose(positions))


# ---- singular


@pytest.mark.parametrize('positions, name, is_singular', (
    *(((0.4, side * (np.pi / 2 - off), -0.5, 0.9, -0.3, 0.2), 'hip roll', off <= 1e-10)
      for off in (0.0, 1e-12, 1e-10, 1e-8, 1e-5) for side in (1.0, -1.0)),
    *(((0.2, 0.1, -0.3, bend, -0.1, 0.1), 'knee', bend < 1e-7)
      for bend in (0.0, 1e-13, 1e-9, 1e-6)),
    ((0.2, 0.3, -1.0, np.pi, 0.4, 0.1), 'knee', True)))
def test_poses_are_recovered_at_and_near_singularities(wang, positions, name, is_singular):
    """Wang's theta_5, where yaw and pitch turn about the same axis; knees, straight or folded."""
    pose = wang.pose(np.array(positions))
    solution = wang.inverse(pose)
    assert solution.is_reachable
    assert_same_pose(wang.pose(solution.positions), pose)
    assert (name in solution.singular) == is_singular
    if abs(positions[1]) == np.pi / 2:
        assert solution.positions[0] == pytest.approx(0.0, abs=1e-9)


def test_poses_are_recovered_with_the_hip_on_the_ankle_roll_axis(wang):
    """Shin leaning forward, thigh back down to the height of the ankle."""
    pose = wang.pose(np.array((0.2, 0.3, -1.0, np.pi - 1.0, 0.0, 0.4)))
    hip = wang.ankle_target(pose)[1]
    shift = pose.rotation @ np.array((0.0, hip[1], hip[2]))
    pose = Pose(pose.rotation, pose.position + shift)
    solution = wang.inverse(pose)
    assert 'ankle roll' in solution.singular
    assert_same_pose(wang.pose(solution.positions), pose)


# ---- Jacobians and velocities


def test_velocities_go_forth_and_back(leg):
    positions = np.array((0.1, -0.05, -0.4, 0.7, -0.3, 0.1))
    velocities = np.array((0.3, -1.0, 0.7, 2.0, -0.4, 0.9))
    twist = leg.jacobian_in_base(positions) @ velocities
    step = 1e-7
    moved = leg.pose(positions + step * velocities).position - leg.pose(positions).position
    assert twist[:3] == pytest.approx(moved / step, abs=1e-5)
    assert leg.joint_velocities(positions, twist) == pytest.approx(velocities)


@pytest.mark.parametrize('positions', (
    (0.1, 0.2, -0.3, 0.0, -0.1, 0.0), (0.1, np.pi / 2, -0.3, 0.5, -0.1, 0.0)))
def test_velocities_at_a_singularity_are_refused(wang, positions):
    with pytest.raises(InputError, match=r'singular.*bend the knee'):
        wang.joint_velocities(np.array(positions), np.array((0.0, 0.0, 0.1, 0.0, 0.0, 0.0)))


# ---- which robots


def test_the_demo_robots_legs_have_its_proportions():
    legs = legs_of(RobotModel.load('biped'))
    assert list(legs) == ['left', 'right']
    for leg in legs.values():
        assert (leg.thigh, leg.shin) == pytest.approx((0.165, 0.165))
        assert leg.pose(np.zeros(6)).position[2] == pytest.approx(-0.415)


@pytest.mark.parametrize('robot, foot, error, complaint', (
    ('g1', 'left', ConfigurationError,
     'axis of .left_hip_pitch_joint., which should be the hip yaw.*core.legs.limb'),
    ('icub', 'left', ConfigurationError, 'axis of .l_hip_pitch..*core.legs.limb'),
    ('three_link', 'left', ConfigurationError, 'it has 2 joints.*core.legs.limb'),
    ('biped', 'middle', UnknownNameError, 'middle')))
def test_other_legs_are_refused_with_the_difference(robot, foot, error, complaint):
    with pytest.raises(error, match=complaint):
        RobotLeg(RobotModel.load(robot), foot)


def test_locked_joints_are_refused():
    config = replace(load_robot_config('biped'), locked_joints={'l_knee': 0.3}, postures={})
    with pytest.raises(ConfigurationError, match=r"'l_knee' follows another or is locked"):
        RobotLeg(RobotModel(config, load_urdf(config)), 'left')


@pytest.mark.parametrize('origin, moved, complaint', (
    ('0 0 -0.03', '0.004 0 -0.03', r'hip yaw axis passes the hip pitch axis at.*0\.0040'),
    ('0 0 -0.03', '0 0.002 -0.03', r'hip roll axis passes the hip yaw axis at.*0\.0020')))
def test_axes_that_miss_each_other_are_refused(origin, moved, complaint):
    config = load_robot_config('bioloid_legs')
    urdf = load_urdf(config)
    start = urdf.index('<joint name="l_hip_roll"')
    urdf = urdf[:start] + urdf[start:].replace(f'xyz="{origin}"', f'xyz="{moved}"', 1)
    with pytest.raises(ConfigurationError, match=complaint):
        RobotLeg(RobotModel(config, urdf), 'left')


# ---- fast


def test_a_leg_is_solved_in_60_microseconds(leg):
    pose = leg.pose(np.array((0.1, -0.05, -0.4, 0.7, -0.3, 0.1)))
    assert min(repeat(lambda: leg.inverse(pose), number=20, repeat=50)) / 20 < 60e-6


# ---- what the paper prints


@pytest.fixture(scope='module')
def errata():
    return SimpleNamespace(**runpy.run_path(str(EXAMPLE)))


def test_printed_angles_are_wrong_and_corrected_ones_right(errata):
    leg, printed, ours = Leg(straight_chain(WANG)), [], []
    for theta in np.random.default_rng(5).uniform(*errata.RANGES.T, (200, 6)):
        pose = errata.pose_of(theta)
        printed.append(errata.printed_angles(pose) - theta)
        ours.append(wang_angles(leg.inverse(errata.in_ros(pose)).positions) - theta)
    assert np.abs(ours).max() < 1e-9
    median = np.degrees(np.median(np.abs(printed), axis=0))
    assert (median[[1, 2, 3, 4]] > 20.0).all() and (median[[0, 5]] < 1e-9).all()


def test_jacobian_7_is_right_with_its_indices_corrected(errata):
    theta = np.array((0.2, -0.4, 0.8, -0.3, 0.1, 0.5))
    numeric = np.array([errata.differentiated(theta, i) for i in range(6)])
    printed, corrected = (
        np.array([column(errata.transform_from_axis(theta, i)) for i in range(6)])
        for column in (errata.printed_column, errata.jacobian_column))
    assert corrected == pytest.approx(numeric, abs=1e-6)
    assert np.abs(printed - numeric).max() > 10.0


def test_the_example_names_the_misprinted_matrices(errata, capsys):
    errata.main(20)
    wrong = [line.split(':')[0].strip() for line in capsys.readouterr().out.splitlines()
             if 'misprinted' in line]
    assert wrong == ['M_23', 'M_45', 'M_56']
