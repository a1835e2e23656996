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
"""What a walk session sends, measures and balances, and when it stops, with a robot of its own."""

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Pose, rotation_about
from biped_com_ros.core.legs.balance import BalanceSettings
from biped_com_ros.core.legs.feedback import WalkMeasurement
from biped_com_ros.core.legs.player import WalkPlayer, WalkRequest, WalkState
from biped_com_ros.core.legs.walk_session import com_offset, gait_origin, WalkSession, ZmpDeviation
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

PERIOD = 20_000_000
START = 5_000_000_000
SLOPE = 0.12
"""Pitch of the ground, rad."""


class WalkingRobot:
    """
    A session, and a robot that follows its trajectories with both soles on a slope.

    Attributes
    ----------
    positions
        Of its joints, (n,), rad.
    error
        By which its first leg joint is elsewhere than it is commanded to be, rad.
    sent
        Trajectories, each with the time at which it begins, ns.
    largest_jump
        Largest distance between what two successive trajectories command at the same time, rad.
    is_measured
        Whether the feedback has its inputs.
    held
        Positions at which the joints were commanded to rest.

    """

    def __init__(self, model, balance=None, period=PERIOD, planned_with=None):
        self.model, self.ns, self.positions, self.period = model, START, model.posture(), period
        self.sent, self.held, self.largest_jump = [], [], 0.0
        self.is_measured, self.error = True, 0.0
        self.session = WalkSession(
            WalkPlayer(planned_with or model, lead=0.1),
            lambda ns: self.send(self.session.motion(ns)), self.held.append,
            follow_tolerance=0.3, follow_time=0.3, balance=balance, model=model)
        self.player = self.session.player

    def balance(self, seconds=3.0):
        """Begin to balance, and do so for some time."""
        self.session.begin_balancing(self.player.plan_stance(self.positions), self.ns)
        self.advance(seconds)

    def walk(self, count=1):
        standing = self.positions - self.session.increments
        self.session.begin(
            self.player.plan(WalkRequest(count=count, length=0.05), standing), self.ns)

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

    def advance(self, seconds, zmp_error=None):
        """Return the last step of a walk."""
        session, step = self.session, None
        for _ in range(round(1e9 * seconds / self.period)):
            self.ns += self.period
            if self.sent:
                self.positions = self.commanded(self.ns)
                self.positions[self.player.leg_joints[0]] += self.error
            measured = self.measured()
            if session.is_balancing and session.is_resting:
                is_new = session.stand(self.ns, self.positions, measured)
            else:
                zmp = None if zmp_error is None or step is None else step.zmp_reference + zmp_error
                step = session.advance(self.ns, self.positions, zmp, measured)
                is_new = step is not None and step.has_new_motion
            if is_new:
                self.send(session.motion(self.ns))
        return step

    def arrive(self, most):
        """Let it walk until it rests, and lean by no more than that meanwhile, rad."""
        while not self.session.is_resting:
            self.advance(0.1)
            assert abs(self.lean()) < most


@pytest.fixture
def walker(model):
    """Return a robot without feedback."""
    return WalkingRobot(model)


@pytest.fixture
def robot(model):
    """Return a robot with feedback."""
    return WalkingRobot(model, BalanceSettings())


# ---- commands


def test_each_command_sends_a_motion_and_the_walk_ends_at_rest(walker):
    session = walker.session
    assert session.is_resting and session.advance(START, None, None) is None
    walker.walk()
    step = walker.advance(1.0)
    assert step.shares.sum() == pytest.approx(1.0) and step.zmp_reference.shape == (3,)
    session.pause()
    walker.advance(1.0)
    session.resume()
    walker.advance(1.0)
    session.stop()
    session.stop()  # stops already
    assert len(walker.sent) == 4 and session.state is WalkState.STOPPING
    assert walker.sent[0][0] == START and walker.sent[-1][0] == walker.ns == session.last_ns
    with pytest.raises(InputError, match='nothing to pause'):
        session.pause()
    assert not walker.held and not session.problem


def test_an_error_stops_and_a_fall_halts(walker):
    session = walker.session
    assert not session.stop_for('stability lost') and not session.problem
    walker.walk()
    walker.advance(2.6)
    assert session.stop_for('stability lost') == 'stopping'
    assert session.problem == 'stability lost' and not session.stop_for('still lost')
    assert session.problem == 'stability lost' and len(walker.sent) == 2
    assert session.stop_for('fallen', has_fallen=True) == 'halting'
    count = len(walker.sent)
    assert not session.stop_for('fallen', has_fallen=True) and len(walker.sent) == count
    walker.advance(1.0)
    assert session.state is WalkState.HALTED and session.problem == 'fallen'
    session.reset_results()
    assert not session.problem


def test_a_fall_in_a_pause_ends_the_walk(walker):
    session = walker.session
    walker.walk()
    walker.advance(0.5)
    session.pause()
    while session.state is not WalkState.PAUSED:
        walker.advance(0.1)
    assert session.stop_for('fallen', has_fallen=True) == 'halting'
    assert session.state is WalkState.HALTED and session.problem == 'fallen'
    assert not session.stop_for('fallen', has_fallen=True)
    with pytest.raises(InputError):
        session.resume()


@pytest.mark.parametrize('balances', (False, True))
def test_joints_that_do_not_follow_end_it(robot, balances):
    session = robot.session
    if balances:
        robot.balance(1.0)
    else:
        robot.walk()
        robot.advance(0.5)
    state = session.state
    for error, seconds in ((0.5, 0.3), (0.0, 0.1), (0.5, 0.4)):
        assert session.state is state and not robot.held
        robot.error = error
        robot.advance(seconds)
    assert session.state is WalkState.HALTED and not session.is_balancing
    assert len(robot.held) == 1 and np.abs(robot.held[0] - robot.commanded(robot.ns)).max() > 0.4
    name = robot.model.joint_names[robot.player.leg_joints[0]]
    assert f"do not follow: '{name}' is 0.50 rad off" in session.problem


def test_joints_that_do_not_follow_end_it_after_the_clock_was_set_back(robot):
    robot.balance(1.0)
    robot.ns, robot.error = robot.ns - 50 * 10 ** 9, 0.5
    robot.advance(0.2)
    assert robot.session.is_balancing
    robot.advance(0.2)
    assert 'do not follow' in robot.session.problem and robot.held


def test_the_deviation_of_the_zmp(walker):
    assert ZmpDeviation().rms is None
    walker.walk()
    walker.advance(2.0, zmp_error=np.array((0.003, -0.004, 0.0)))
    # Of the reference of a step before: the reference itself moves a little in between.
    assert walker.session.deviation.rms == pytest.approx((0.003, 0.004), abs=1.5e-3)
    walker.session.reset_results()
    assert walker.session.deviation.rms is None


class Pushed:
    """Feedback of a robot that has stepped elsewhere, and waits."""

    rate, is_on_plan, is_kept = 0.25, False, False

    def __init__(self, feedback):
        self._feedback = feedback

    def __getattr__(self, name):
        return getattr(self._feedback, name)

    def keep_steps(self):
        self.is_kept = True


def test_a_walk_waits_and_stops_when_its_soles_are_beside_each_other(robot):
    session = robot.session
    robot.walk(count=2)
    session.advance(START + PERIOD, None, None)
    session.feedback = Pushed(session.feedback)
    before, ns = session.player.time, START + PERIOD
    for _ in range(10):
        ns += PERIOD
        session.advance(ns, None, None)
    assert session.player.time - before == pytest.approx(0.25 * 10 * 1e-9 * PERIOD)
    session.stop()
    assert session.state is WalkState.WALKING and not session.feedback.is_kept
    session.feedback.is_on_plan = True
    session.advance(ns + PERIOD, None, None)
    assert session.state is WalkState.STOPPING and session.feedback.is_kept
    assert session.stop_for('fallen', has_fallen=True) == 'halting'
    before = session.player.time
    session.advance(ns + 2 * PERIOD, None, None)  # a halt does not wait
    assert session.player.time - before > 0.5e-9 * PERIOD


@pytest.mark.parametrize('period', (0.02, 0.08))
def test_with_feedback_trajectories_are_continuous_and_end_where_the_plan_ends(model, period):
    robot, largest = WalkingRobot(model, BalanceSettings(), round(1e9 * period)), 0.0
    robot.walk()
    end = robot.player.remaining_motion(0.04).positions[-1]
    while not robot.session.is_resting:
        # Two thirds of the walk on a slope, then the attitude is missing.
        robot.is_measured = robot.player.progress < 0.67
        robot.advance(period)
        if robot.session.feedback is not None:
            largest = max(largest, np.abs(robot.session.feedback.increments).max())
    assert not robot.held and not robot.session.problem
    assert largest > 0.03
    assert robot.sent[-1][1].positions[-1] == pytest.approx(end, abs=1e-6)


# ---- balancing


def test_a_robot_that_stands_on_a_slope_comes_upright_and_stays_so(robot):
    robot.balance(0.0)
    assert robot.lean() == pytest.approx(SLOPE)
    robot.advance(0.5)
    _, motion = robot.sent[-1]
    speeds = np.diff(motion.positions, axis=0) / np.diff(motion.times)[:, np.newaxis]
    assert np.abs(speeds).max() > 0.05
    # Its velocities are those of its positions, and it slows down evenly: half of the last one.
    assert speeds[1] == pytest.approx(motion.velocities[2], abs=1e-9)
    assert speeds[-1] == pytest.approx(0.5 * motion.velocities[-2], abs=1e-9)
    robot.advance(2.5)
    assert robot.lean() == pytest.approx(0.0, abs=2e-3)
    assert robot.largest_jump < 1e-3
    _, motion = robot.sent[-1]
    assert not motion.velocities[-1].any()
    # Without further messages it stays as it is.
    final = motion.positions[-1]
    assert final == pytest.approx(robot.positions, abs=2e-3)
    assert np.abs(final - robot.model.posture()).max() > 0.5 * SLOPE


def test_while_inputs_are_stale_the_posture_is_kept(robot):
    robot.balance(2.0)
    robot.is_measured, before = False, len(robot.sent)
    robot.advance(1.0)
    assert len(robot.sent) == before and robot.session.is_balancing
    robot.is_measured = True
    robot.advance(1.0)
    assert len(robot.sent) > before
    assert robot.lean() == pytest.approx(0.0, abs=2e-3) and robot.largest_jump < 1e-3
    robot.walk()  # and in a walk
    robot.advance(1.0)
    robot.is_measured = False
    robot.advance(2.0)
    robot.is_measured = True
    assert not robot.session.is_resting and abs(robot.lean()) < 0.01


@pytest.mark.parametrize('stops', (True, pytest.param(False, marks=pytest.mark.thorough)))
def test_it_goes_on_through_a_walk(robot, stops):
    robot.balance()
    robot.walk(count=2)
    session = robot.session
    assert session.state is WalkState.WALKING
    robot.advance(2.0)
    if stops:
        session.stop()
        while not session.player.has_stopped:
            robot.advance(0.1)
        session.begin(session.player.plan_standing_up(), robot.ns)
    robot.arrive(0.02)
    robot.advance(2.0)
    assert session.is_balancing and session.state is WalkState.STANDING and not session.problem
    assert robot.lean() == pytest.approx(0.0, abs=2e-3)
    assert robot.largest_jump < 2e-3 and not robot.held
    robot.walk()  # from where it stands now
    assert session.state is WalkState.WALKING


def test_its_end_brings_the_robot_back_to_its_posture(robot):
    assert robot.session.end_balancing() is None
    robot.balance()
    robot.send(robot.session.end_balancing())
    robot.advance(2.0)
    assert not robot.session.is_balancing and robot.session.state is WalkState.STANDING
    assert robot.positions == pytest.approx(robot.model.posture(), abs=1e-6)
    assert robot.largest_jump < 1e-3
    assert not robot.session.increments.any()


def test_its_end_in_a_walk_lets_the_walk_end_where_it_was_planned(robot):
    robot.balance()
    robot.walk(count=2)
    end = robot.player.remaining_motion(0.04).positions[-1]
    robot.advance(1.0)
    assert robot.session.end_balancing() is None
    robot.arrive(0.02)  # feedback of the walk goes on
    assert robot.sent[-1][1].positions[-1] == pytest.approx(end, abs=1e-6)
    assert robot.session.state is WalkState.STANDING and not robot.session.is_balancing


def test_a_fall_ends_it(robot):
    robot.balance(1.0)
    before = len(robot.sent)
    assert not robot.session.stop_for('unstable')
    assert robot.session.is_balancing  # that is what it is for
    assert robot.session.stop_for('fallen', has_fallen=True) == 'halting'
    assert robot.session.state is WalkState.HALTED and robot.session.problem == 'fallen'
    robot.advance(0.5)
    assert len(robot.sent) == before and not robot.session.is_balancing


def test_it_begins_with_settings_and_a_robot_that_stands(model, walker, robot):
    robot.walk()
    elsewhere = WalkingRobot(model, BalanceSettings())
    elsewhere.positions[elsewhere.player.leg_joints[2]] += 0.2
    for one, words in ((walker, "parameter 'feedback'"), (robot, 'the robot is walking'),
                       (elsewhere, 'does not stand in its posture')):
        with pytest.raises(InputError, match=words):
            one.balance()


def test_it_does_not_use_the_model_with_which_another_thread_plans(model, monkeypatch):
    """Kinematics are computed in place: two threads would mix their results."""
    planned_with = RobotModel(model.config, model.urdf)
    robot = WalkingRobot(model, BalanceSettings(), planned_with=planned_with)
    robot.balance(0.0)
    monkeypatch.setattr(planned_with, 'state', None)
    robot.advance(3.0)
    assert robot.lean() == pytest.approx(0.0, abs=2e-3)


# ---- where a gait is in the world


@pytest.mark.parametrize('yaw', [0.0, 0.7, -2.8])
def test_the_soles_of_the_gait_are_where_the_soles_of_the_robot_are(model, step, yaw):
    base = Pose.from_rpy((0.01, -0.02, yaw), np.array((3.0, -2.0, 0.4)))
    stand = model.state(model.posture('stand'))
    state = stand.in_world(base)
    origin = gait_origin(state, state.com_in_world, step)
    in_gait = np.array([(x, y, 0.0) for x, y, *_ in step.plan.soles(0.0)])
    np.testing.assert_allclose(origin.apply(in_gait).mean(axis=0),
                               state.soles_in_world.mean(axis=0), atol=1e-12)
    apart = np.diff(origin.apply(in_gait), axis=0) - np.diff(state.soles_in_world, axis=0)
    assert np.abs(apart[:, :2]).max() < 0.01  # but for the lean of the base
    # The position of the base does not matter.
    moved = stand.in_world(Pose(base.rotation, np.array((9.0, -9.0, 2.0))))
    np.testing.assert_array_equal(
        gait_origin(moved, state.com_in_world, step).position, origin.position)


def test_the_offset_is_opposite_to_the_bias_in_the_axes_of_the_gait():
    heading = rotation_about(2, 0.5 * np.pi)
    # The kinematic CoM is 10 mm too far along the world's y, so the true one is 10 mm behind.
    for bias, expected in (((0.0, 0.01, 0.3), (-0.01, 0.0)), ((0.01, 0.0, 0.3), (0.0, 0.01))):
        np.testing.assert_allclose(
            com_offset(heading, np.array(bias), 0.03), expected, atol=1e-15)
    with pytest.raises(InputError, match='50 mm from where the URDF has it .max_com_offset 30 mm'):
        com_offset(np.eye(3), np.array((0.03, 0.04, 0.0)), 0.03)
