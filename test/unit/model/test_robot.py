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
"""The robot model against forward kinematics written here from the URDF alone."""

import math
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import (
    ConfigurationError, InputError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model import pinocchio_model
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel, SharedRobotModel, velocity_limits
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation
from support.small_robot import (
    LOCKED, LOCKED_MIMICS, MIMICS, random_joints, random_rotation, small_config, small_robot, URDF)
from support.urdf_oracle import pose, Tree

TREE = Tree(URDF)


def oracle(model, positions):
    """Return the poses of all links in the root, and name -> (mass, CoM there), by SciPy."""
    by_name = dict(zip(model.joint_names, positions))
    by_name.update({name: factor * by_name[leader] + offset
                    for name, (leader, factor, offset) in MIMICS.items()})
    poses = TREE.poses({**by_name, **LOCKED, **LOCKED_MIMICS})
    return poses, {name: TREE.com(None, [name], poses) for name, link in TREE.links.items()
                   if link.mass}


def assert_coms(state, coms, base):
    """Check all centres of mass against those of the oracle, given the pose of the base."""
    for name, mass, com in zip(state.model.link_names, state.model.link_masses,
                               state.link_coms_in_base):
        assert mass == coms[name][0]
        expected = np.linalg.solve(base, (*coms[name][1], 1.0))[:3]
        np.testing.assert_allclose(com, expected, atol=1e-12, err_msg=name)


def turned(*rpy, position=(0.0, 0.0, 0.0)):
    """Return the pose (4, 4) of what is turned, or moved."""
    return pose(ElementTree.Element('origin', rpy=' '.join(map(str, rpy)),
                                    xyz=' '.join(map(str, position))))


def assert_pose(found, expected, name=''):
    np.testing.assert_allclose(found.rotation, expected[:3, :3], atol=1e-12, err_msg=name)
    np.testing.assert_allclose(found.position, expected[:3, 3], atol=1e-12, err_msg=name)


@pytest.fixture(scope='module')
def model():
    return small_robot()


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_measured_joints_leave_out_fixed_mimicking_and_locked_ones(model):
    assert set(model.joint_names) == {
        *(f'{side}_{j}' for side in ('left', 'right') for j in ('hip_roll', 'knee', 'ankle')),
        'waist', 'neck', 'grip'}
    assert set(model.joint_names) - set(model.actuated_joint_names) == {'neck'}
    assert model.pin_model.nq == 7 + model.pin_model.nv - 6, 'one position per moving joint'


def test_a_continuous_joint_has_no_limits_and_turns_past_a_full_turn(model):
    index = model.pin_model.joints[model.pin_model.getJointId('waist')].idx_q
    assert model.pin_model.upperPositionLimit[index] == np.inf
    assert model.pin_model.lowerPositionLimit[index] == -np.inf
    once, turned_twice = (model.state(model.positions({'waist': 0.4 + angle})).com_in_base
                          for angle in (0.0, 4.0 * np.pi))
    assert np.allclose(once, turned_twice, atol=1e-12)


@pytest.mark.parametrize(('changes', 'message'), [
    ({'postures': {'sit': {'left_knee': 90.0}}},
     r"postures\.sit\.left_knee of 'small' is 90; the URDF limits that joint to -2 \.\.\. 2"),
    ({'locked_joints': {'hatch': -2.1}}, r"locked_joints\.hatch of 'small' is -2\.1; the URDF"),
    ({'passive_joints': ['hatch']}, 'hatch of small cannot be passive')])
def test_a_configured_position_beyond_its_limits_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        small_robot(**changes)
    # On its limit, or turning without one:
    assert small_robot(postures={'stand': {'left_knee': 2.001, 'waist': 90.0}})


def test_masses_are_those_of_the_urdf_also_behind_fixed_joints(model):
    assert 'backpack' in model.link_names
    assert 'base_link' not in model.link_names
    assert model.mass == pytest.approx(18.35)
    assert model.mass == pytest.approx(pin.computeTotalMass(model.pin_model), abs=1e-12)
    with pytest.raises(ValueError, match='read-only'):
        model.link_masses[0] = 0.0


@pytest.mark.parametrize('seed', range(5))
def test_coms_and_poses_match_a_walk_over_the_urdf(model, seed):
    positions, _ = random_joints(model, np.random.default_rng(seed))
    state, (poses, coms) = model.state(positions), oracle(model, positions)
    base = poses['base_link']
    assert_coms(state, coms, base)
    total = np.linalg.solve(base, (*TREE.com(None, poses=poses)[1], 1.0))[:3]
    np.testing.assert_allclose(state.com_in_base, total, atol=1e-12)
    for name in ('left_sole', 'imu_link', 'finger_c', 'latch', 'trunk'):
        assert_pose(state.pose_in_base(name), np.linalg.solve(base, poses[name]), name)
    assert model.soles.names == ('left', 'right')
    row = state.placements_in_base(model.soles)[1]
    assert_pose(Pose(row[:3].T, row[3]), np.linalg.solve(base, poses['right_foot']) @ turned(
        0.1, -0.2, 0.3, position=(0.02, 0.01, -0.06)))


def test_base_rpy_turns_what_is_expressed_in_the_base(rng):
    """As on robots whose base link points backward: the base is base_link turned by base_rpy."""
    rpy = (0.1, -0.2, np.pi)
    model, turn = small_robot(base_rpy=list(rpy)), turned(*rpy)
    positions, _ = random_joints(model, rng)
    state, (poses, coms) = model.state(positions), oracle(model, positions)
    assert_coms(state, coms, poses['base_link'] @ turn)
    assert_pose(state.pose_in_base('base_link'), turn.T)


def test_velocities_are_the_derivatives_of_com_and_poses(model, rng):
    p, v = random_joints(model, rng)
    h = 1e-6
    frames = model.soles + model.frames(('imu_link', 'finger_c', 'latch', 'head'))
    states = [model.state(p + s * h * v) for s in (1, -1)]
    (com_ahead, com_behind), (ahead, behind) = (
        [state.com_in_base for state in states],
        [state.placements_in_base(frames) for state in states])
    numeric = (com_ahead - com_behind) / (2.0 * h)
    assert np.linalg.norm(numeric) > 0.05
    here = model.state(p, v)
    np.testing.assert_allclose(here.com_velocity_in_base, numeric, atol=1e-8)
    twists = here.twists_in_base(frames)
    assert twists.shape == (6, 2, 3)
    np.testing.assert_array_equal(
        here.twists_in_base(frames, here.placements_in_base(frames)), twists)
    np.testing.assert_allclose(twists[:, 0], (ahead[:, 3] - behind[:, 3]) / (2 * h), atol=1e-7)
    for rate, before, after, name in zip(twists[:, 1], behind, ahead, frames.names):
        # R_after R_before^T is a small rotation along the axes of the base.
        turn = Rotation.from_matrix(after[:3].T @ before[:3]).as_rotvec() / (2 * h)
        np.testing.assert_allclose(rate, turn, atol=1e-6, err_msg=name)
    assert np.abs(twists[0]).min() > 1e-3, 'the motion exercises every component'


def test_in_world_moves_everything_and_leaves_the_state_as_it_was(model, rng):
    state = model.state(*random_joints(model, rng))
    before = state.com_in_world.copy()
    base = Pose(random_rotation(rng), rng.normal(size=3))
    moved = state.in_world(base)
    sole = moved.base @ moved.pose_in_base('left_sole')
    placement = moved.sole_placements_in_world[0]
    for found, expected in (
            (moved.com_in_world, base.rotation @ before + base.position),
            (moved.link_coms_in_world[3],
             base.rotation @ state.link_coms_in_base[3] + base.position),
            (model.link_masses @ moved.link_coms_in_world / model.mass, moved.com_in_world),
            (sole.position, base.apply(state.pose_in_base('left_sole').position)),
            (moved.soles_in_world,
             base.apply(state.placements_in_base(model.soles)[:, 3]))):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(moved.soles_in_world[0], sole.position, atol=1e-14)
    np.testing.assert_allclose(placement, (*sole.rotation.T, sole.position), atol=1e-14)
    np.testing.assert_array_equal(state.com_in_world, before)


def test_frames_along_the_world_are_found_once_and_only_for_what_cannot_change(model, rng):
    state, frames = model.state(*random_joints(model, rng)), model.stance_frames
    imu, tilt = frames.names[-1], random_rotation(rng)

    def check(found, R_world_imu):
        R_world_base, placed = found
        np.testing.assert_allclose(
            R_world_base @ state.pose_in_base(imu).rotation, R_world_imu, atol=1e-14)
        np.testing.assert_allclose(
            placed, state.placements_in_base(frames) @ R_world_base.T, atol=1e-14)

    first = state.along_world(frames, tilt)
    check(first, tilt)
    tilt[:] = random_rotation(rng)  # may be written to, so that nothing is kept of it
    check(state.along_world(frames, tilt), tilt)
    tilt.setflags(write=False)
    kept = state.along_world(frames, tilt)
    assert all(a is b for a, b in zip(state.along_world(frames, tilt), kept))
    others = model.soles + model.frames((imu,))
    check(state.along_world(others, tilt), tilt)
    other = random_rotation(rng)
    check(state.along_world(frames, other), other)
    for array in kept:
        with pytest.raises(ValueError, match='read-only'):
            array[:] = 0.0


def test_a_state_does_not_change_when_a_later_one_is_made(model, rng):
    positions, velocities = random_joints(model, rng)
    state = model.state(positions, velocities)
    com, links = state.com_in_base.copy(), model.state(positions, velocities).link_coms_in_base
    twists = state.twists_in_base(model.soles)
    model.state(-positions, -velocities)
    np.testing.assert_array_equal(state.com_in_base, com)
    np.testing.assert_array_equal(state.link_coms_in_base, links)
    np.testing.assert_array_equal(state.twists_in_base(model.soles), twists)


def test_reading_memory_and_reading_one_by_one_agree(model, monkeypatch, rng):
    motion = random_joints(model, rng)
    assert model.kinematics.views is not None, 'the fast path works with this Pinocchio'
    monkeypatch.setattr(pinocchio_model, 'view_memory', lambda data: None)
    fast, slow = model.state(*motion), small_robot().state(*motion)
    assert_same(fast, slow)
    np.testing.assert_array_equal(
        fast.twists_in_base(model.soles), slow.twists_in_base(slow.model.soles))


def test_a_wrong_memory_layout_is_detected_and_not_used(monkeypatch, rng):
    view_memory = pinocchio_model.view_memory

    def transposed(self):
        com, velocity, placements, twists = view_memory(self)
        wrong = placements.copy()
        wrong[:, :3] = placements[:, :3].transpose(0, 2, 1)
        return com, velocity, wrong, twists
    monkeypatch.setattr(pinocchio_model, 'view_memory', transposed)
    assert small_robot().kinematics.views is None


def test_subtree_links_hold_everything_below(model):
    names = np.array(model.link_names)
    assert set(names[model.subtree_links('left_shin')]) == {'left_shin', 'left_foot'}
    assert set(names[model.subtree_links('backpack')]) == {'backpack', 'door', 'latch'}
    assert len(model.subtree_links('trunk')) == len(names)
    assert len(model.subtree_links('left_sole')) == 0


def test_postures_and_groups_may_name_all_joints(model):
    """As lists of all joints do: those that follow others, or are locked, are where they are."""
    positions = {'grip': 0.2, 'left_knee': 0.3}
    q = model.configuration(model.positions(positions))
    everything = {name: float(q[model.pin_model.joints[i].idx_q])
                  for i, name in enumerate(model.pin_model.names) if i > 1}
    assert everything['grip_mimic'] == pytest.approx(0.1)
    assert everything['hatch_mimic'] == pytest.approx(0.9)
    group = ['grip', 'grip_chain', 'hatch', 'hatch_mimic', 'left_knee']
    same = small_robot(postures={'stand': everything}, groups={'all': group})
    assert same.posture() == pytest.approx(model.positions(positions))
    assert [same.joint_names[i] for i in same.group_index('all')] == ['grip', 'left_knee']
    for name in (*MIMICS, *LOCKED, *LOCKED_MIMICS):
        with pytest.raises(ConfigurationError, match=f'postures.stand.{name} of .* leave it out'):
            small_robot(postures={'stand': {**everything, name: everything[name] + 0.05}})


def test_positions_groups_and_postures_by_name(model):
    stand = model.posture('stand')
    assert stand[model.joint_index(['left_knee', 'right_knee'])].tolist() == [0.3, -0.2]
    assert np.count_nonzero(stand) == 2
    assert [model.joint_names[i] for i in model.group_index('left_leg')] == [
        'left_hip_roll', 'left_knee', 'left_ankle']
    for call in (lambda: model.posture('sit'), lambda: model.group_index('tail'),
                 lambda: model.joint_index(['left_kne']), lambda: model.frames(['left_hand']),
                 lambda: model.subtree_links('nothing'), lambda: model.positions({'nose': 1.0})):
        with pytest.raises(UnknownNameError, match='valid: '):
            call()
    with pytest.raises(UnknownNameError, match="did you mean 'left_knee'"):
        model.joint_index(['left_kne'])


@pytest.mark.filterwarnings('ignore::RuntimeWarning')
@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf, 1e300, -1e7])
def test_a_value_that_is_not_finite_is_refused_with_its_joint(model, value):
    bad, rest = np.zeros(9), np.zeros(9)
    bad[model.joint_names.index('left_knee')] = value
    number = f'{value:g}'.replace('+', r'\+')
    for values, message in (
            ([bad], f"^position of joint 'left_knee' is {number}; it must"),
            ([rest, bad], "^velocity of joint 'left_knee' is"),
            ([np.full(9, np.inf), np.full(9, -np.inf)], 'joint'),
            ([rest[:8]], 'positions must be 9 values.* not 8'),
            ([rest, np.zeros(10)], 'velocities must be 9 values.* not 10')):
        with pytest.raises(InputError, match=message):
            model.state(*values)


@pytest.mark.parametrize(('changes', 'message'), [
    ({'base_link': 'pelvis'}, "unknown frame 'pelvis' in base_link of small; the URDF has no"),
    ({'hands': {'left': {'frame': 'palm'}}}, "unknown frame 'palm' in hands.left.frame of small"),
    ({'imus': {'base': {'frame': 'imu_lnk', 'topic': 'imu'}}}, "did you mean 'imu_link'"),
    ({'passive_joints': ['nek']}, "did you mean 'neck'"),
    ({'locked_joints': {'door_hinge': 0.0}}, "unknown joint 'door_hinge' in locked_joints"),
    ({'groups': {'arm': ['elbow']}}, "unknown joint 'elbow' in groups.arm of small"),
    ({'postures': {'stand': {'elbow': 1.0}}}, "unknown joint 'elbow' in postures.stand of small"),
    ({'wrench_sensors': {'ft': {'frame': 'left_ft', 'topic': 'x'}}},
     "unknown frame 'left_ft' in wrench_sensors.ft.frame of small"),
])
def test_configured_names_must_exist_in_the_urdf(changes, message):
    with pytest.raises(UnknownNameError, match=message):
        small_robot(**changes)


def test_descriptions_that_cannot_be_are_refused():
    with pytest.raises(RobotDescriptionError, match="'chest' moves with joint 'waist'.*'trunk'"):
        small_robot(base_link='chest')
    broken = URDF.replace('<mimic joint="hatch"', '<mimic joint="hutch"')
    with pytest.raises(UnknownNameError, match="unknown joint 'hutch' in mimic of 'hatch_mimic'"):
        RobotModel(small_config(), broken)


def test_frame_sets_keep_their_names_when_added(model):
    both = model.soles + model.frames(('head',))
    assert isinstance(both, FrameSet)
    assert both.names == ('left', 'right', 'head')
    np.testing.assert_array_equal(both.placement_in_joint[2],
                                  model.frames(('head',)).placement_in_joint[0])


def assert_same(found, expected):
    """Check that two states are the same to the last bit."""
    for name in ('com_in_base', 'com_velocity_in_base', 'link_coms_in_base'):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_shared_model_computes_the_same_values_once(model):
    shared = SharedRobotModel(model.config, model.urdf)
    rng = np.random.default_rng(8)
    postures = [random_joints(model, rng)[0] for _ in range(6)]
    velocities = random_joints(model, rng)[1]
    first = shared.state(postures[0], velocities)
    assert shared.state(postures[0].copy(), velocities.copy()) is first
    at_rest = shared.state(postures[0])
    assert at_rest is not first and not at_rest.com_velocity_in_base.any()
    for posture in postures + postures[::-1]:  # more than it keeps, and back again
        for speeds in (velocities, None):
            assert_same(shared.state(posture, speeds), model.state(posture, speeds))
    assert len(shared.recent) <= 4, 'it keeps the latest only'
    values = random_joints(model, rng)[0]
    before = shared.state(values)
    values[0] += 0.5  # an input reuses its array
    assert_same(shared.state(values), model.state(values))
    assert np.abs(shared.state(values).com_in_base - before.com_in_base).max() > 1e-4
    values[0] = np.nan
    for _ in range(2):
        with pytest.raises(InputError, match='nan'):
            shared.state(values)


def test_inertials_are_taken_from_another_urdf():
    model, lighter = small_robot(), URDF.replace('<mass value="5.0"/>', '<mass value="3.5"/>')
    fresh, rng = RobotModel(small_config(), lighter), np.random.default_rng(3)
    shared = SharedRobotModel(small_config(), URDF)
    q, v = random_joints(model, rng)
    assert shared.state(q, v).com_in_base != pytest.approx(fresh.state(q, v).com_in_base)
    for one in (model, shared):
        one.use_inertials(lighter)
        state, expected = one.state(q, v), fresh.state(q, v)
        assert one.mass == fresh.mass and one.urdf == lighter
        assert one.is_calibrated and not fresh.is_calibrated
        assert state.com_in_base == pytest.approx(expected.com_in_base)
        assert state.com_velocity_in_base == pytest.approx(expected.com_velocity_in_base)
        assert state.link_coms_in_base == pytest.approx(expected.link_coms_in_base)
    for wrong in (URDF.replace('xyz="0 0 -0.3"', 'xyz="0 0 -0.31"', 1),
                  URDF.replace('upper="2"', 'upper="1.5"', 1)):
        with pytest.raises(RobotDescriptionError, match='cannot be used while running: .*restart'):
            model.use_inertials(wrong)
    assert model.mass == fresh.mass


@pytest.mark.parametrize(('written', 'used'), [
    ('37', 37.0), ('50000', math.inf), ('100', math.inf), ('1e9', math.inf), ('0', math.inf)])
def test_velocity_limits_that_no_joint_reaches_count_as_none(written, used):
    config = load_robot_config('bioloid_legs')
    urdf = re.sub(r'velocity="[^"]*"', f'velocity="{written}"', load_urdf(config), count=1)
    limits = velocity_limits(RobotModel(config, urdf))
    assert limits[0] == used and np.isfinite(limits[1:]).all()
