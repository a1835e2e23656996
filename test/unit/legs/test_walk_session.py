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
"""What a walk session sends, when it stops, and what it measures, with a robot of its own."""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import rotation_about
from biped_com_ros.core.legs.balance import BalanceSettings
from biped_com_ros.core.legs.feedback import WalkMeasurement
from biped_com_ros.core.legs.player import WalkPlayer, WalkRequest, WalkState
from biped_com_ros.core.legs.walk_session import WalkSession, ZmpDeviation
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

PERIOD = 20_000_000
START = 5_000_000_000


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


class FollowingRobot:
    """A session, and a robot that follows it or has its first leg joint elsewhere."""

    def __init__(self, model):
        self.sent, self.held, self.ns, self.error = [], [], START, 0.0
        self.session = WalkSession(
            WalkPlayer(model, lead=0.1), self.sent.append, self.held.append,
            follow_tolerance=0.1, follow_time=0.3)
        self.player = self.session.player

    def walk(self):
        request = WalkRequest(count=1, length=0.05)
        self.session.begin(self.player.plan(request, self.player.model.posture()), self.ns)

    def advance(self, seconds, zmp_error=None):
        """Return the last step."""
        step = None
        for _ in range(round(1e9 * seconds / PERIOD)):
            self.ns += PERIOD
            measured = (self.player.sample.positions.copy() if self.player.sample is not None
                        else self.player.model.posture())
            measured[self.player.leg_joints[0]] += self.error
            zmp = None if zmp_error is None or step is None else step.zmp_reference + zmp_error
            step = self.session.advance(self.ns, measured, zmp)
        return step


@pytest.fixture
def robot(model):
    return FollowingRobot(model)


def test_each_command_sends_a_motion_and_the_walk_ends_at_rest(robot):
    session = robot.session
    assert session.is_resting and session.advance(START, None, None) is None
    robot.walk()
    step = robot.advance(1.0)
    assert step.shares.sum() == pytest.approx(1.0) and step.zmp_reference.shape == (3,)
    session.pause()
    robot.advance(1.0)
    session.resume()
    robot.advance(1.0)
    session.stop()
    session.stop()  # stops already
    assert len(robot.sent) == 4 and session.state is WalkState.STOPPING
    assert robot.sent[0] == START and robot.sent[-1] == robot.ns == session.last_ns
    with pytest.raises(InputError, match='nothing to pause'):
        session.pause()
    assert not robot.held and not session.problem


def test_an_error_stops_and_a_fall_halts(robot):
    session = robot.session
    assert not session.stop_for('stability lost') and not session.problem
    robot.walk()
    robot.advance(2.6)
    assert session.stop_for('stability lost') == 'stopping'
    assert session.problem == 'stability lost' and not session.stop_for('still lost')
    assert session.problem == 'stability lost' and len(robot.sent) == 2
    assert session.stop_for('fallen', has_fallen=True) == 'halting'
    robot.advance(1.0)
    assert session.state is WalkState.HALTED and session.problem == 'fallen'
    session.reset_results()
    assert not session.problem


def test_joints_that_do_not_follow_end_the_walk(robot, model):
    session = robot.session
    robot.walk()
    robot.advance(0.5)
    robot.error = 0.2
    robot.advance(0.3)
    assert session.state is WalkState.WALKING and not robot.held
    robot.error = 0.0
    robot.advance(0.1)
    robot.error = 0.2
    robot.advance(0.4)
    assert session.state is WalkState.HALTED and len(robot.held) == 1
    name = model.joint_names[robot.player.leg_joints[0]]
    assert f"do not follow: '{name}' is 0.20 rad off" in session.problem


def test_the_deviation_of_the_zmp(robot):
    assert ZmpDeviation().rms is None
    robot.walk()
    robot.advance(2.0, zmp_error=np.array((0.003, -0.004, 0.0)))
    # Of the reference of a step before: the reference itself moves a little in between.
    assert robot.session.deviation.rms == pytest.approx((0.003, 0.004), abs=1.5e-3)
    robot.session.reset_results()
    assert robot.session.deviation.rms is None


class Pushed:
    """Feedback of a robot that has stepped elsewhere, and waits."""

    rate, is_on_plan, is_kept = 0.25, False, False

    def __init__(self, feedback):
        self._feedback = feedback

    def __getattr__(self, name):
        return getattr(self._feedback, name)

    def keep_steps(self):
        self.is_kept = True


def test_a_walk_waits_and_stops_when_its_soles_are_beside_each_other(model):
    session = WalkSession(WalkPlayer(model, lead=0.1), lambda ns: None, lambda positions: None,
                          follow_tolerance=0.1, follow_time=0.3, balance=BalanceSettings())
    session.begin(session.player.plan(WalkRequest(count=2, length=0.05), model.posture()), START)
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
    sent, held = [], []
    session = WalkSession(
        WalkPlayer(model, lead=0.1), lambda ns: sent.append((ns, session.motion(ns))),
        held.append, follow_tolerance=0.1, follow_time=0.3, balance=BalanceSettings())
    ns, force = START, 0.5 * GRAVITY * model.mass
    wrenches = np.tile((0.0, 0.0, force, 0.0, 0.0, 0.0), (2, 1))
    session.begin(session.player.plan(WalkRequest(count=1, length=0.05), model.posture()), ns)
    plan, positions, largest = session.player.remaining_motion(0.04), model.posture(), 0.0
    while not session.is_resting:
        ns += round(1e9 * period)
        begun, motion = sent[-1]
        positions = np.array([np.interp(1e-9 * (ns - begun), motion.times, column)
                              for column in motion.positions.T])
        # Two thirds of the walk on a slope, then the attitude is missing.
        measured = WalkMeasurement(positions, rotation_about(1, 0.03), wrenches) if (
            session.player.progress < 0.67) else None
        step = session.advance(ns, positions, None, measured)
        if step is not None and step.has_new_motion:
            sent.append((ns, session.motion(ns)))
        if session.feedback is not None:
            largest = max(largest, np.abs(session.feedback.increments).max())
    assert not held and not session.problem
    assert largest > 0.03
    _, motion = sent[-1]
    assert motion.positions[-1] == pytest.approx(plan.positions[-1], abs=1e-6)
