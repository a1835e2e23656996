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
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from support.stance_motion import BOTH, H, LEFT, NONE, RIGHT, SwayingMotion


class Legs:
    """A motion and its odometry."""

    def __init__(self, seed=8, motion=None):
        self.motion = motion or SwayingMotion(seed)
        self.odometry = LegOdometry(self.motion.model, self.motion.imu)

    def at(self, t, contacts, *ns):
        """Update with an instant; return the pose of the base."""
        state, R_world_imu = self.motion.state(t), self.motion.R_world_imu(t)
        return self.odometry.update(state, R_world_imu, contacts, *ns)

    @property
    def soles(self):
        return self.odometry.stance.soles_in_world

    def twist(self, t):
        return self.odometry.twist(self.motion.state(t), self.motion.gyro(t))


@pytest.fixture(params=[{}, {'imu': 'backpack'}, {'base_rpy': [0.1, -0.2, np.pi]}],
                ids=['imu on the chest', 'imu fixed to the base', 'base_rpy'])
def motion(request):
    return SwayingMotion(3, **request.param)


def test_the_base_moves_as_the_truth_on_one_foot_and_on_the_other(motion):
    """Left, both at once for one instant, right; errors must not creep in at any switch."""
    legs, start = Legs(motion=motion), motion.sole_in_world.position.copy()

    def follow(times, contacts):
        for t in times:
            estimate, truth = legs.at(t, contacts), motion.base(t)
            assert_allclose(estimate.rotation, truth.rotation, atol=1e-12)
            # The first anchor, hence the nailed sole, is the origin.
            assert_allclose(estimate.position + start, truth.position, atol=1e-12)
    follow(np.linspace(0.0, 1.0, 20), LEFT)
    assert_allclose(legs.soles[0], 0.0, atol=1e-12)
    assert legs.odometry.stance.in_contact == LEFT and not legs.odometry.is_airborne
    motion.step_onto(1, 1.0)
    follow([1.0], BOTH)
    follow(np.linspace(1.0, 2.5, 20)[1:], RIGHT)


def test_a_foot_that_carries_little_moves_the_base_by_the_square_of_its_load(motion):
    """The right foot is in contact and moves, as one that lands or leaves; then not at all."""
    moved = []
    for loads in (None, (280.0, 120.0), (390.0, 10.0)):
        legs = Legs(motion=motion)
        first, last = (legs.odometry.update(
            motion.state(t), motion.R_world_imu(t), BOTH, round(1e9 * t), loads)
            for t in (0.0, 0.1))
        truth = motion.base(0.1).position - motion.base(0.0).position
        moved.append(np.linalg.norm(last.position - first.position - truth))
    assert moved[0] > 1e-3
    share = 120.0 ** 2 / (280.0 ** 2 + 120.0 ** 2)
    assert_allclose(moved[1:], [2.0 * share * moved[0], 0.0], atol=1e-12)


def test_two_that_share_the_states_of_a_robot_keep_their_own_stance():
    motion = SwayingMotion(7)
    motion.model = SharedRobotModel(motion.model.config, motion.model.urdf)
    together, alone = ([LegOdometry(motion.model, motion.imu) for _ in range(2)] for _ in range(2))
    for t in np.linspace(0.0, 1.0, 20):
        state, R_world_imu = motion.state(t), motion.R_world_imu(t)
        shared = R_world_imu.copy()
        shared.setflags(write=False)
        for one, other, contacts in zip(together, alone, (LEFT, BOTH if t < 0.5 else RIGHT)):
            base, expected = (one.update(state, shared, contacts),
                              other.update(state, R_world_imu, contacts))
            assert_array_equal(base.position, expected.position)
            assert_array_equal(base.rotation, expected.rotation)
            assert_array_equal(one.sole_placements, other.sole_placements)
    assert np.abs(together[0].sole_placements - together[1].sole_placements).max() > 0.01


def walk(late_by, revised=True):
    """Left, right, left, on motion whose truth is known; changes arrive some instants late."""
    legs, changes = Legs(4), {0: LEFT, 40: RIGHT, 80: LEFT}
    known, pending, errors = {0: LEFT}, [], []

    def contacts_at(ns):
        return known[max(since for since in known if since <= ns)]

    start = legs.motion.sole_in_world.position.copy()
    for ns, t in enumerate(np.linspace(0.0, 1.2, 121)):
        if ns and ns in changes:
            # Both feet rest at the instant of the change itself.
            legs.motion.step_onto(int(changes[ns] == RIGHT), t)
            pending += [(since + late_by, since, contacts)
                        for since, contacts in ((ns, BOTH), (ns + 1, changes[ns]))]
        for arrives, since, contacts in pending:
            if arrives == ns:
                known[since] = contacts
                if revised:
                    legs.odometry.revise(since, contacts_at)
        position = legs.at(t, contacts_at(ns), ns).position
        errors.append(np.linalg.norm(position + start - legs.motion.base(t).position))
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
    legs, t = Legs(5), 0.0
    for contacts in sequence:
        for _ in range(20):
            before, last = legs.at(t, contacts), t
            t += 0.01
        # The same instant with the old and the new contacts.
        following = sequence[(sequence.index(contacts) + 1) % len(sequence)]
        after = legs.at(last, following)
        known = 2 if contacts == NONE else 3  # in the air nothing measures the height
        assert_allclose(after.position[:known], before.position[:known], atol=1e-12)


@pytest.mark.parametrize('stood, stands', [
    (BOTH, BOTH), (BOTH, LEFT), (BOTH, RIGHT), (LEFT, LEFT), (RIGHT, RIGHT)])
def test_a_robot_that_was_in_the_air_lands_where_its_soles_last_stood(stood, stands):
    """Whatever the legs did meanwhile, and on whatever steps the feet stood."""
    legs = Legs(12)
    for t in (0.0, 0.1):
        legs.at(t, stood)
    steps = legs.soles[:, 2].copy()
    for t in (0.1, 0.5, 0.9):
        held = legs.at(t, NONE)
    landed = legs.at(0.9, stands)
    off = (legs.soles[:, 2] - steps)[np.array(stands)]
    assert off.mean() == pytest.approx(0.0, abs=1e-12)
    assert abs(landed.position[2] - held.position[2]) > 0.01
    assert_allclose(landed.position[:2], held.position[:2], atol=1e-12)


def test_a_landing_that_arrives_late_gives_the_same():
    soles = []
    for landed in (400, 450):
        legs = Legs(12)
        for ms in range(0, 500, 10):
            legs.at(1e-3 * ms, NONE if 100 <= ms < landed else BOTH, ms)
            if ms == 450 == landed:
                legs.odometry.revise(400, lambda at: BOTH)
        soles.append(legs.soles.copy())
    assert_allclose(*soles, atol=1e-12)


def test_two_feet_share_the_base_evenly():
    both, left, right = Legs(6), Legs(6), Legs(6)
    positions = []
    for legs, contacts in ((both, BOTH), (left, LEFT), (right, RIGHT)):
        legs.at(0.0, BOTH)
        legs.at(0.0, contacts)
        positions.append(legs.at(0.3, contacts).position)
    assert np.linalg.norm(positions[1] - positions[2]) > 0.01
    assert_allclose(positions[0], np.mean(positions[1:], axis=0), atol=1e-12)


def test_the_world_begins_below_the_feet_with_the_heading_of_the_imu():
    legs = Legs(7)
    pose = legs.at(0.0, BOTH)
    assert_allclose(legs.soles.mean(axis=0)[:2], 0.0, atol=1e-12)
    assert legs.soles[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    assert legs.odometry.stance.ground_height == pytest.approx(0.0, abs=1e-12)
    assert yaw_of(pose.rotation) == pytest.approx(yaw_of(legs.motion.base(0.0).rotation))


def test_in_the_air_the_position_is_held_and_marked_airborne():
    legs = Legs()
    assert np.isfinite(legs.at(0.0, NONE).position).all() and legs.odometry.is_airborne
    assert legs.soles[:, 2].min() == pytest.approx(0.0, abs=1e-12), 'before the first contact'
    legs.odometry.reset()
    stood, flying = legs.at(0.0, LEFT), legs.at(0.4, NONE)
    assert legs.odometry.is_airborne
    # It moved until the sample of the lift-off, and not afterwards.
    later = legs.at(0.8, NONE)
    assert np.linalg.norm(flying.position - stood.position) > 0.01
    assert_array_equal(later.position, flying.position)
    assert_allclose(later.rotation, legs.motion.base(0.8).rotation, atol=1e-12)
    assert legs.twist(0.8) is None and twist_from_stance(legs.motion.state(0.0), NONE) is None
    legs.at(0.8, LEFT)
    assert not legs.odometry.is_airborne


@pytest.mark.parametrize('t', [0.0, 0.7, 1.4])
def test_the_twist_is_the_derivative_of_the_pose(motion, t):
    legs, expected = Legs(motion=motion), motion.base_twist(t)
    legs.at(t, LEFT)
    assert np.abs(expected).min() > 1e-3
    assert_allclose(legs.twist(t), expected, atol=1e-6)
    assert_allclose(twist_from_stance(motion.state(t), LEFT), expected, atol=1e-6)


def test_the_twist_follows_the_mean_of_both_feet():
    legs = Legs(9)
    _, before, after = (legs.at(t, BOTH).position for t in (0.5, 0.5 - H, 0.5 + H))
    numeric = legs.motion.base(0.5).rotation.T @ (after - before) / (2.0 * H)
    assert_allclose(legs.twist(0.5).linear, numeric, atol=1e-6)


def test_reset_begins_at_the_origin_again():
    legs = Legs(10)
    first = legs.at(0.0, LEFT).position
    legs.at(0.5, RIGHT)
    legs.odometry.reset()
    assert_array_equal(legs.at(0.0, LEFT).position, first)


def test_the_lowest_soles_have_hysteresis_and_the_lowest_that_touches_is_the_ground():
    guess = LowestSoles(0.01)
    for height, expected in ((0.015, LEFT), (0.009, BOTH), (0.015, BOTH), (0.021, LEFT),
                             (-0.5, RIGHT)):
        soles = np.array([[0.0, 0.1, -1.0], [0.0, -0.1, -1.0 + height]])
        assert guess.update(soles) == expected
    soles = np.array([[0.0, 0.1, 0.03], [0.0, -0.1, -0.2]])
    for contacts, ground in ((LEFT, 0.03), (BOTH, -0.2), (NONE, -0.2)):
        assert Stance(soles, contacts).ground_height == ground


def test_contacts_for_other_feet_are_refused():
    with pytest.raises(InputError, match=r'2 values, one per foot \(left, right\), not 3'):
        Legs().at(0.0, (True,) * 3)
