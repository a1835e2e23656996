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
"""Feedback that acts while a robot stands: trajectories, stale inputs, walks, and its end."""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import rotation_about
from biped_com_ros.core.legs.balance import BalanceSettings
from biped_com_ros.core.legs.feedback import WalkMeasurement
from biped_com_ros.core.legs.player import WalkPlayer, WalkRequest, WalkState
from biped_com_ros.core.legs.walk_session import WalkSession
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

PERIOD = 20_000_000
START = 5_000_000_000
FEEDBACK = BalanceSettings()
SLOPE = 0.12
"""Pitch of the ground, rad."""


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


class RobotOnSlope:
    """
    A session, and a robot that follows its trajectories with both soles on a slope.

    Attributes
    ----------
    positions
        Of its joints, (n,), rad.
    sent
        Trajectories, each with the time at which it begins, ns.
    largest_jump
        Largest distance between what two successive trajectories command at the same time, rad.
    is_measured
        Whether the feedback has its inputs.
    held
        Positions at which the joints were commanded to rest.

    """

    def __init__(self, model, balance=FEEDBACK):
        self.model, self.ns, self.positions = model, START, model.posture()
        self.sent, self.held, self.largest_jump, self.is_measured = [], [], 0.0, True
        self.session = WalkSession(
            WalkPlayer(model, lead=0.1), lambda ns: self.send(self.session.motion(ns)),
            self.held.append, follow_tolerance=0.3, follow_time=0.3, balance=balance)

    def balance(self):
        gait = self.session.player.plan_stance(self.positions)
        self.session.begin_balancing(gait, self.ns)

    def walk(self, count=1):
        player, standing = self.session.player, self.positions - self.session.increments
        self.session.begin(player.plan(WalkRequest(count=count, length=0.05), standing), self.ns)

    def send(self, motion):
        if self.sent:
            self.largest_jump = max(self.largest_jump, np.abs(
                motion.positions[0] - self.commanded(self.ns)).max())
        self.sent.append((self.ns, motion))

    def commanded(self, ns):
        begun, motion = self.sent[-1]
        return np.array([np.interp(1e-9 * (ns - begun), motion.times, column)
                         for column in motion.positions.T])

    def measured(self):
        """Return the attitude of a base whose soles are flat on the slope."""
        if not self.is_measured:
            return None
        row = self.model.state(self.positions).placements_in_base(self.model.soles)[0]
        in_base = np.arctan2(row[2, 0], row[2, 2])
        force = 0.5 * GRAVITY * self.model.mass
        return WalkMeasurement(self.positions.copy(), rotation_about(1, SLOPE - in_base),
                               np.tile((0.0, 0.0, force, 0.0, 0.0, 0.0), (2, 1)))

    def lean(self):
        """Return the pitch of the base, rad."""
        R_world_base = self.measured().R_world_base
        return np.arctan2(R_world_base[0, 2], R_world_base[2, 2])

    def advance(self, seconds):
        for _ in range(round(1e9 * seconds / PERIOD)):
            self.ns += PERIOD
            if self.sent:
                self.positions = self.commanded(self.ns)
            session, measured = self.session, self.measured()
            if session.is_balancing and session.is_resting:
                is_new = session.stand(self.ns, self.positions, measured)
            else:
                step = session.advance(self.ns, self.positions, None, measured)
                is_new = step is not None and step.has_new_motion
            if is_new:
                self.send(session.motion(self.ns))


@pytest.fixture
def robot(model):
    return RobotOnSlope(model)


def test_a_robot_that_stands_on_a_slope_comes_upright_and_stays_so(robot):
    robot.balance()
    assert robot.lean() == pytest.approx(SLOPE)
    robot.advance(3.0)
    assert robot.lean() == pytest.approx(0.0, abs=2e-3)
    assert robot.largest_jump < 1e-3
    _, motion = robot.sent[-1]
    assert not motion.velocities[-1].any()
    # Without further messages it stays as it is.
    final = motion.positions[-1]
    assert final == pytest.approx(robot.positions, abs=2e-3)
    assert np.abs(final - robot.model.posture()).max() > 0.5 * SLOPE


def test_the_last_trajectory_comes_to_rest_smoothly(robot):
    robot.balance()
    robot.advance(0.5)
    _, motion = robot.sent[-1]
    speeds = np.diff(motion.positions, axis=0) / np.diff(motion.times)[:, np.newaxis]
    assert np.abs(speeds).max() > 0.05
    # Its velocities are those of its positions, and it slows down evenly: half of the last one.
    assert speeds[1] == pytest.approx(motion.velocities[2], abs=1e-9)
    assert speeds[-1] == pytest.approx(0.5 * motion.velocities[-2], abs=1e-9)


def test_while_inputs_are_stale_the_posture_is_kept(robot):
    robot.balance()
    robot.advance(2.0)
    robot.is_measured, before = False, len(robot.sent)
    robot.advance(1.0)
    assert len(robot.sent) == before and robot.session.is_balancing
    robot.is_measured = True
    robot.advance(1.0)
    assert len(robot.sent) > before
    assert robot.lean() == pytest.approx(0.0, abs=2e-3) and robot.largest_jump < 1e-3


@pytest.mark.parametrize('stops', (False, True))
def test_it_goes_on_through_a_walk(robot, stops):
    robot.balance()
    robot.advance(3.0)
    robot.walk(count=2)
    session = robot.session
    assert session.state is WalkState.WALKING
    robot.advance(2.0)
    if stops:
        session.stop()
        while not session.player.has_stopped:
            robot.advance(0.1)
        session.begin(session.player.plan_standing_up(), robot.ns)
    while not session.is_resting:
        robot.advance(0.1)
        assert abs(robot.lean()) < 0.02
    robot.advance(2.0)
    assert session.is_balancing and session.state is WalkState.STANDING and not session.problem
    assert robot.lean() == pytest.approx(0.0, abs=2e-3)
    assert robot.largest_jump < 2e-3 and not robot.held
    robot.walk()  # from where it stands now
    assert session.state is WalkState.WALKING


def test_inputs_that_become_stale_in_a_walk_leave_the_robot_upright(robot):
    robot.balance()
    robot.advance(3.0)
    robot.walk()
    robot.advance(1.0)
    robot.is_measured = False
    robot.advance(2.0)
    robot.is_measured = True
    assert not robot.session.is_resting and abs(robot.lean()) < 0.01


def test_its_end_brings_the_robot_back_to_its_posture(robot):
    assert robot.session.end_balancing() is None
    robot.balance()
    robot.advance(3.0)
    robot.send(robot.session.end_balancing())
    robot.advance(2.0)
    assert not robot.session.is_balancing and robot.session.state is WalkState.STANDING
    assert robot.positions == pytest.approx(robot.model.posture(), abs=1e-6)
    assert robot.largest_jump < 1e-3
    assert not robot.session.increments.any()


def test_its_end_in_a_walk_lets_the_walk_end_where_it_was_planned(robot):
    robot.balance()
    robot.advance(3.0)
    robot.walk(count=2)
    end = robot.session.player.remaining_motion(0.04).positions[-1]
    robot.advance(1.0)
    assert robot.session.end_balancing() is None
    while not robot.session.is_resting:
        robot.advance(0.1)
        assert abs(robot.lean()) < 0.02  # feedback of the walk goes on
    _, motion = robot.sent[-1]
    assert motion.positions[-1] == pytest.approx(end, abs=1e-6)
    assert robot.session.state is WalkState.STANDING and not robot.session.is_balancing


def test_a_fall_ends_it(robot):
    robot.balance()
    robot.advance(1.0)
    before = len(robot.sent)
    assert not robot.session.stop_for('unstable')
    assert robot.session.is_balancing  # that is what it is for
    assert robot.session.stop_for('fallen', has_fallen=True) == 'halting'
    assert robot.session.state is WalkState.HALTED and robot.session.problem == 'fallen'
    robot.advance(0.5)
    assert len(robot.sent) == before and not robot.session.is_balancing


def test_joints_that_do_not_follow_end_it(robot):
    robot.balance()
    robot.advance(1.0)
    moved = robot.positions.copy()
    moved[robot.session.player.leg_joints[0]] += 0.5
    for _ in range(30):
        robot.ns += PERIOD
        robot.session.stand(robot.ns, moved, robot.measured())
    assert robot.session.state is WalkState.HALTED and len(robot.held) == 1
    assert robot.held[0] == pytest.approx(moved) and not robot.session.is_balancing


def test_it_begins_with_settings_and_a_robot_that_stands(model, robot):
    without = RobotOnSlope(model, balance=None)
    with pytest.raises(InputError, match="parameter 'feedback'"):
        without.balance()
    robot.walk()
    with pytest.raises(InputError, match='the robot is walking'):
        robot.balance()
    elsewhere = RobotOnSlope(model)
    elsewhere.positions[elsewhere.session.player.leg_joints[2]] += 0.2
    with pytest.raises(InputError, match='does not stand in its posture'):
        elsewhere.balance()


def test_it_does_not_use_the_model_with_which_another_thread_plans(model, monkeypatch):
    """Kinematics are computed in place: two threads would mix their results."""
    robot = RobotOnSlope(RobotModel.load('biped'))
    player = WalkPlayer(model, lead=0.1)
    robot.session = WalkSession(
        player, lambda ns: robot.send(robot.session.motion(ns)), robot.held.append,
        follow_tolerance=0.3, follow_time=0.3, balance=FEEDBACK, model=robot.model)
    robot.balance()
    monkeypatch.setattr(model, 'state', None)
    robot.advance(3.0)
    assert robot.lean() == pytest.approx(0.0, abs=2e-3)
