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
"""Leg odometry on synthetic motion whose base pose is known."""

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import yaw_of
from biped_com_ros.core.model.robot import SharedRobotModel
from biped_com_ros.core.state.leg_odometry import LegOdometry, twist_from_stance
from biped_com_ros.core.state.stance import LowestSoles, Stance
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.stance_motion import BOTH, H, LEFT, NONE, RIGHT, SwayingMotion
from support.zmp_pipeline import Pipeline


@pytest.fixture(params=[{}, {'imu': 'backpack'}, {'base_rpy': [0.1, -0.2, np.pi]}],
                ids=['imu on the chest', 'imu fixed to the base', 'base_rpy'])
def motion(request):
    return SwayingMotion(3, **request.param)


def test_the_base_moves_as_the_truth_on_one_foot(motion):
    estimator = LegOdometry(motion.model, motion.imu)
    offset = None
    for t in np.linspace(0.0, 2.0, 40):
        estimate = estimator.update(motion.state(t), motion.R_world_imu(t), LEFT)
        truth = motion.base(t)
        np.testing.assert_allclose(estimate.rotation, truth.rotation, atol=1e-12)
        offset = truth.position - estimate.position if offset is None else offset
        np.testing.assert_allclose(estimate.position + offset, truth.position, atol=1e-12)
    # The first anchor, hence the nailed sole, is the origin.
    np.testing.assert_allclose(offset, motion.sole_in_world.position, atol=1e-12)
    np.testing.assert_allclose(estimator.stance.soles_in_world[0], 0.0, atol=1e-12)
    assert estimator.stance.in_contact == LEFT
    assert not estimator.is_airborne


def test_changing_feet_keeps_following_the_truth(motion):
    """Left, both at once for one instant, right; errors must not creep in at any switch."""
    estimator = LegOdometry(motion.model, motion.imu)
    start = motion.sole_in_world.position.copy()
    for t in np.linspace(0.0, 1.0, 20):
        estimator.update(motion.state(t), motion.R_world_imu(t), LEFT)
    motion.step_onto(1, 1.0)
    for t in np.linspace(1.0, 2.5, 20):
        contacts = BOTH if t == 1.0 else RIGHT
        estimate = estimator.update(motion.state(t), motion.R_world_imu(t), contacts)
        np.testing.assert_allclose(estimate.position + start, motion.base(t).position, atol=1e-12)
        np.testing.assert_allclose(estimate.rotation, motion.base(t).rotation, atol=1e-12)


def test_two_that_share_the_states_of_a_robot_keep_their_own_stance():
    motion = SwayingMotion(7)
    motion.model = SharedRobotModel(motion.model.config, motion.model.urdf)
    together = [LegOdometry(motion.model, motion.imu) for _ in range(2)]
    alone = [LegOdometry(motion.model, motion.imu) for _ in range(2)]
    for t in np.linspace(0.0, 1.0, 20):
        R_world_imu = motion.R_world_imu(t)
        shared = R_world_imu.copy()
        shared.setflags(write=False)
        state = motion.state(t)
        for one, other, contacts in zip(together, alone, (LEFT, BOTH if t < 0.5 else RIGHT)):
            base, expected = (one.update(state, shared, contacts),
                              other.update(state, R_world_imu, contacts))
            np.testing.assert_array_equal(base.position, expected.position)
            np.testing.assert_array_equal(base.rotation, expected.rotation)
            np.testing.assert_array_equal(one.sole_placements, other.sole_placements)
    assert np.abs(together[0].sole_placements - together[1].sole_placements).max() > 0.01


def walk(late_by, revised=True):
    """Left, right, left, on motion whose truth is known; changes arrive some instants late."""
    motion = SwayingMotion(4)
    estimator = LegOdometry(motion.model, motion.imu)
    times, changes = np.linspace(0.0, 1.2, 121), {0: LEFT, 40: RIGHT, 80: LEFT}
    known, pending, errors = {0: LEFT}, [], []

    def contacts_at(ns):
        return known[max(since for since in known if since <= ns)]

    start = motion.sole_in_world.position.copy()
    for ns, t in enumerate(times):
        if ns and ns in changes:
            # Both feet rest at the instant of the change itself.
            motion.step_onto(int(changes[ns] == RIGHT), t)
            pending += [(since + late_by, since, contacts)
                        for since, contacts in ((ns, BOTH), (ns + 1, changes[ns]))]
        for arrives, since, contacts in pending:
            if arrives == ns:
                known[since] = contacts
                if revised:
                    estimator.revise(since, contacts_at)
        estimate = estimator.update(motion.state(t), motion.R_world_imu(t), contacts_at(ns), ns)
        errors.append(np.linalg.norm(estimate.position + start - motion.base(t).position))
    return errors


@pytest.mark.parametrize('late', [0, 1, 7, 30])
def test_contacts_that_arrive_late_leave_no_error(late):
    errors = walk(late)
    # From the change until it arrives, the swinging foot counts as in contact.
    trusted = [n for n in range(121) if not 0 <= (n - 40) % 40 <= late + 1 or n < 40]
    assert max(errors[n] for n in trusted) < 1e-12
    assert late < 7 or max(errors) > 1e-3


def test_without_going_back_late_contacts_leave_an_error():
    assert walk(7, revised=False)[-1] > 1e-3


@pytest.mark.parametrize('sequence', [
    (LEFT, RIGHT), (BOTH, LEFT), (BOTH, RIGHT), (LEFT, BOTH, RIGHT), (LEFT, NONE, RIGHT),
    (NONE, LEFT), (BOTH, NONE, BOTH)])
def test_the_base_never_jumps_at_a_switch_even_when_feet_have_slipped(sequence):
    """Every contact pattern while only the left sole really is at rest, so that anchors differ."""
    motion, estimator = SwayingMotion(5), None
    estimator = LegOdometry(motion.model, 'imu_link')
    t = 0.0
    for contacts in sequence:
        for _ in range(20):
            before = estimator.update(motion.state(t), motion.R_world_imu(t), contacts)
            t += 0.01
        # The same instant seen with the old and the new contacts.
        last = t - 0.01
        following = sequence[(sequence.index(contacts) + 1) % len(sequence)]
        after = estimator.update(motion.state(last), motion.R_world_imu(last), following)
        known = 2 if contacts == NONE else 3  # in the air nothing measures the height
        np.testing.assert_allclose(after.position[:known], before.position[:known], atol=1e-12)


@pytest.mark.parametrize('stood, stands', [
    (BOTH, BOTH), (BOTH, LEFT), (BOTH, RIGHT), (LEFT, LEFT), (RIGHT, RIGHT)])
def test_a_robot_that_was_in_the_air_lands_where_its_soles_last_stood(stood, stands):
    """Whatever the legs did meanwhile, and on whatever steps the feet stood."""
    motion = SwayingMotion(12)
    estimator = LegOdometry(motion.model, 'imu_link')
    estimator.update(motion.state(0.0), motion.R_world_imu(0.0), stood)
    estimator.update(motion.state(0.1), motion.R_world_imu(0.1), stood)
    steps = estimator.stance.soles_in_world[:, 2].copy()
    for t in (0.1, 0.5, 0.9):
        held = estimator.update(motion.state(t), motion.R_world_imu(t), NONE)
    landed = estimator.update(motion.state(0.9), motion.R_world_imu(0.9), stands)
    touching = np.array(stands)
    off = (estimator.stance.soles_in_world[:, 2] - steps)[touching]
    assert off.mean() == pytest.approx(0.0, abs=1e-12)
    assert abs(landed.position[2] - held.position[2]) > 0.01
    np.testing.assert_allclose(landed.position[:2], held.position[:2], atol=1e-12)


def test_a_landing_that_arrives_late_gives_the_same():
    motion, heights = SwayingMotion(12), []
    for late in (False, True):
        estimator = LegOdometry(motion.model, 'imu_link')
        for ms in range(0, 500, 10):
            t = 1e-3 * ms
            contacts = NONE if 100 <= ms < (450 if late else 400) else BOTH
            estimator.update(motion.state(t), motion.R_world_imu(t), contacts, ms)
            if late and ms == 450:
                estimator.revise(400, lambda at: BOTH)
        heights.append(estimator.stance.soles_in_world.copy())
    np.testing.assert_allclose(*heights, atol=1e-12)


def test_a_hoisted_robot_that_bends_its_knees_is_put_down_on_the_same_floor():
    pipeline = Pipeline()

    def run(seconds, height):
        for _ in pipeline.run(seconds, lambda t: (0.0, 0.0, height)):
            pass
        return pipeline.base.position - pipeline.plant.truth().base_position
    np.testing.assert_allclose(run(0.2, 0.0), 0.0, atol=1e-4)
    pipeline.plant.hoist.lift()
    assert run(2.1, 0.0)[2] < -0.09  # nothing measures how high it hangs
    run(0.3, -0.015)
    pipeline.plant.hoist.lower()
    x, y, z = run(2.5, -0.015)
    assert abs(z) < 1e-4
    assert max(abs(x), abs(y)) < 1e-3  # how it swung before its feet stood firmly
    assert not pipeline.plant.hoist.holds


def test_two_feet_share_the_base_evenly():
    motion = SwayingMotion(6)
    estimator = LegOdometry(motion.model, 'imu_link')
    estimator.update(motion.state(0.0), motion.R_world_imu(0.0), BOTH)
    both = estimator.update(motion.state(0.3), motion.R_world_imu(0.3), BOTH)
    ones = []
    for contacts in (LEFT, RIGHT):
        one = LegOdometry(motion.model, 'imu_link')
        one.update(motion.state(0.0), motion.R_world_imu(0.0), BOTH)
        one.update(motion.state(0.0), motion.R_world_imu(0.0), contacts)
        ones.append(one.update(motion.state(0.3), motion.R_world_imu(0.3), contacts).position)
    assert np.linalg.norm(ones[0] - ones[1]) > 0.01
    np.testing.assert_allclose(both.position, np.mean(ones, axis=0), atol=1e-12)


def test_the_world_begins_below_the_feet_with_the_heading_of_the_imu():
    motion = SwayingMotion(7)
    estimator = LegOdometry(motion.model, 'imu_link')
    pose = estimator.update(motion.state(0.0), motion.R_world_imu(0.0), BOTH)
    soles = estimator.stance.soles_in_world
    np.testing.assert_allclose(soles.mean(axis=0)[:2], 0.0, atol=1e-12)
    assert soles[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    assert estimator.stance.ground_height == pytest.approx(0.0, abs=1e-12)
    assert yaw_of(pose.rotation) == pytest.approx(yaw_of(motion.base(0.0).rotation))


def test_in_the_air_the_position_is_marked_airborne():
    motion = SwayingMotion(8)
    estimator = LegOdometry(motion.model, 'imu_link')
    stood = estimator.update(motion.state(0.0), motion.R_world_imu(0.0), LEFT)
    flying = estimator.update(motion.state(0.4), motion.R_world_imu(0.4), NONE)
    assert estimator.is_airborne
    # It moved until the sample of the lift-off, and not afterwards.
    later = estimator.update(motion.state(0.8), motion.R_world_imu(0.8), NONE)
    assert np.linalg.norm(flying.position - stood.position) > 0.01
    np.testing.assert_array_equal(later.position, flying.position)
    np.testing.assert_allclose(later.rotation, motion.base(0.8).rotation, atol=1e-12)
    assert estimator.twist(motion.state(0.8), motion.gyro(0.8)) is None
    estimator.update(motion.state(0.8), motion.R_world_imu(0.8), LEFT)
    assert not estimator.is_airborne


def test_before_the_first_contact_the_feet_are_above_the_origin():
    motion = SwayingMotion(8)
    estimator = LegOdometry(motion.model, 'imu_link')
    pose = estimator.update(motion.state(0.0), motion.R_world_imu(0.0), NONE)
    assert estimator.is_airborne
    assert np.isfinite(pose.position).all()
    assert estimator.stance.soles_in_world[:, 2].min() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize('t', [0.0, 0.7, 1.4])
def test_the_twist_is_the_derivative_of_the_pose(motion, t):
    estimator = LegOdometry(motion.model, motion.imu)
    estimator.update(motion.state(t), motion.R_world_imu(t), LEFT)
    expected = motion.base_twist(t)
    assert np.abs(expected).min() > 1e-3
    np.testing.assert_allclose(
        estimator.twist(motion.state(t), motion.gyro(t)), expected, atol=1e-6)
    np.testing.assert_allclose(twist_from_stance(motion.state(t), LEFT), expected, atol=1e-6)


def test_the_twist_follows_the_mean_of_both_feet():
    motion = SwayingMotion(9)
    estimator = LegOdometry(motion.model, 'imu_link')
    positions = []
    for t in (0.5, 0.5 - H, 0.5 + H):
        positions.append(
            estimator.update(motion.state(t), motion.R_world_imu(t), BOTH).position)
    numeric = motion.base(0.5).rotation.T @ (positions[2] - positions[1]) / (2.0 * H)
    twist = estimator.twist(motion.state(0.5), motion.gyro(0.5))
    np.testing.assert_allclose(twist.linear, numeric, atol=1e-6)


def test_no_stance_no_twist():
    assert twist_from_stance(SwayingMotion(9).state(0.0), NONE) is None


def test_reset_begins_at_the_origin_again():
    motion = SwayingMotion(10)
    estimator = LegOdometry(motion.model, 'imu_link')
    first = estimator.update(motion.state(0.0), motion.R_world_imu(0.0), LEFT)
    estimator.update(motion.state(0.5), motion.R_world_imu(0.5), RIGHT)
    estimator.reset()
    again = estimator.update(motion.state(0.0), motion.R_world_imu(0.0), LEFT)
    np.testing.assert_array_equal(again.position, first.position)


def test_unmeasured_contacts_are_those_of_the_lowest_soles():
    motion = SwayingMotion(11)
    estimator = LegOdometry(motion.model, 'imu_link', LowestSoles(0.01))
    # The left sole is nailed; turn the world so that the right one is far above or far below.
    down = motion.state(0.0).placements_in_base(motion.model.soles)[:, 3]
    lean = Rotation.align_vectors([[0.0, 0.0, 1.0]], [down[1] - down[0]])[0].as_matrix()
    R_base_imu = motion.state(0.0).pose_in_base('imu_link').rotation
    estimator.update(motion.state(0.0), lean @ R_base_imu)
    assert estimator.stance.in_contact == LEFT
    estimator.update(motion.state(0.0), np.diag([1.0, -1.0, -1.0]) @ lean @ R_base_imu)
    assert estimator.stance.in_contact == RIGHT


def test_the_lowest_soles_have_hysteresis():
    guess = LowestSoles(0.01)

    def at(height):
        return guess.update(np.array([[0.0, 0.1, -1.0], [0.0, -0.1, -1.0 + height]]))
    assert at(0.015) == LEFT
    assert at(0.009) == BOTH
    assert at(0.015) == BOTH
    assert at(0.021) == LEFT
    assert at(-0.5) == RIGHT


def test_the_ground_is_the_lowest_sole_that_touches():
    soles = np.array([[0.0, 0.1, 0.03], [0.0, -0.1, -0.2]])
    assert Stance(soles, LEFT).ground_height == 0.03
    assert Stance(soles, BOTH).ground_height == -0.2
    assert Stance(soles, NONE).ground_height == -0.2


def test_contacts_for_other_feet_are_refused():
    motion = SwayingMotion(12)
    with pytest.raises(InputError, match=r'2 values, one per foot \(left, right\), not 3'):
        LegOdometry(motion.model, 'imu_link').update(motion.state(0.0), np.eye(3), (True,) * 3)
