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
Control cycles with their measurements in any order, late, missing, or with stamps of their own.

The measurements are those of a torso that has the shape its tendons are commanded to.
"""

from __future__ import annotations

import itertools
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import quaternion_from_rotation, rotation_about
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.controller import MAX_UPDATE_STEP, Measurement, TendonController
from biped_com_ros.core.torso.cycle import ControlCycle, StepTimer, TargetInput
from biped_com_ros.core.torso.options import ControllerOptions, TendonDrive
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

MS = 1_000_000
PERIOD = 2 * MS
START = 1_700_000_000_000_000_000
LOWER, UPPER, TENDONS = 'imu', 'torso_imu', 'tendon_states'
ORDERS = list(itertools.permutations((LOWER, UPPER, TENDONS)))
SETTLED = 25
"""Cycles after which the first ones no longer count."""


@pytest.fixture(scope='module')
def body():
    model = RobotModel.load('biped')
    body = TorsoBody(model)
    body.use_imus('imu_link', 'torso_imu_link')
    body.use_hands([])
    return body


class CommandedTorso:
    """
    Control cycles, and a torso that has the shape its tendons are commanded to.

    Attributes
    ----------
    lengths, shapes
        Measurement with which they were published: (name, number of the cycle), and then what.

    """

    def __init__(self, body):
        drive = TendonDrive(stiffness=7000.0, pretension=11.9, lead=0.025)
        self.controller = TendonController(
            body.statics, body.max_bend, ControllerOptions(drive=drive))
        self.cycle = ControlCycle(
            body, self.controller, self._on_shape, self._on_end, gravity=9.81, imu_timeout=0.1,
            fallback_period=0.01)
        load, inertia = body.upper_body(
            body.model.state(body.model.posture()), self.cycle.gravity_in_base)
        self.cycle.set_load(load, inertia)
        self.cycle.activate(START)
        self.shape, self._velocity = np.zeros(4), 0j
        self._now, self.lengths, self.shapes = ('', 0), [], []
        self._lengths_of, self._tip = body.backbone.lengths, body.backbone.tip

    def _on_shape(self, ns, arc, rates):
        self.shapes.append((*self._now, (ns - START) // PERIOD))

    def _on_end(self, ns, arc, command):
        if command is not None:
            low, high = self.controller.length_limits
            assert (command.lengths >= low).all() and (command.lengths <= high).all()
            self.lengths.append((*self._now, command.lengths))

    def measure(self, name, number, shift=0):
        """Add the measurement of a sensor."""
        ns, self._now = START + number * PERIOD + shift, (name, number)
        if name == TENDONS:
            command = self.cycle.command
            self.cycle.add_tendons(ns, self._lengths_of(self.shape).tolist(),
                                   command.expected if command else [12.0] * 4)
        elif name == UPPER:
            rotation = self._tip(self.shape).rotation
            self.cycle.add_upper(ns, np.array(
                (*quaternion_from_rotation(rotation), *self._angular_velocity())))
        else:
            self.cycle.add_lower(ns, np.array((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)))

    def _angular_velocity(self):
        """Return that of a torso that moves as planned, along the IMU's axes."""
        arc = self.controller.backbone.arc(complex(*self.shape[:2]))
        across, along = arc.rotate_back(*arc.twist(self._velocity, 0.0)[2:])
        return across.real, across.imag, along

    def cycles(self, order, first, count, without=(), shifts=None):
        for number in range(first, first + count):
            position, self._velocity, _ = self.controller.reference.motion
            self.shape[:2] = position.real, position.imag
            for name in order:
                if (name, number) not in without and name not in without:
                    self.measure(name, number, (shifts or {}).get(name, 0))

    def check(self, number):
        """Check for late measurements at the time of a cycle."""
        return self.cycle.check(START + number * PERIOD)

    def sent_with(self, first=0):
        """Return with which measurements lengths were commanded, from a cycle on."""
        return [name for name, number, _ in self.lengths if number >= first]


@pytest.fixture
def robot(body):
    return CommandedTorso(body)


@pytest.mark.parametrize('order', ORDERS, ids=' '.join)
def test_each_measurement_of_the_torsos_imu_gives_one_shape_and_one_command(robot, order):
    count = 60
    robot.controller.set_target(make_shape(0.2, 0.7))
    robot.cycles(order, 1, count)
    assert [at for *_, at in robot.shapes] == list(range(1, count + 1))
    assert [(name, number) for name, number, _ in robot.lengths] == [
        (UPPER, number) for number in range(1, count + 1)]
    assert 0.02 < robot.controller.reference.position[0] < 0.2


def test_commands_do_not_depend_on_the_order(body):
    sent = []
    for order in ORDERS:
        robot = CommandedTorso(body)
        robot.cycles(order, 1, SETTLED)
        robot.controller.reset()
        robot.controller.set_target(make_shape(0.2, 0.7))
        robot.cycles(order, SETTLED + 1, 120)
        sent.append([values for *_, values in robot.lengths[SETTLED:]])
    changes = np.abs(np.diff(sent[0], axis=0)).max()
    spread = np.ptp(np.array(sent), axis=0).max()
    assert spread < 0.05 * changes < 1e-5  # m: a twentieth of what an instant changes


@pytest.mark.parametrize('age', (-0.5, 0.0, 0.5, 1.0))
def test_the_lower_imu_is_advanced_to_the_time_of_the_upper_one(body, age):
    """A torso that turns as a whole has no bend, whichever IMU was read first."""
    found, rate = [], np.array((0.6, -1.1, 0.4))
    cycle = ControlCycle(
        body, TendonController(body.statics, body.max_bend),
        lambda ns, arc, rates: found.append(abs(arc.bend)), lambda *_: None,
        gravity=9.81, imu_timeout=0.1, fallback_period=0.01)
    for number in range(20):
        for add, late in ((cycle.add_lower, round(age * PERIOD)), (cycle.add_upper, 0)):
            ns = number * PERIOD - late
            turn = Rotation.from_rotvec(1e-9 * ns * rate).as_quat()
            add(START + ns, np.array((*turn, *rate)))
    assert max(found) < 1e-5 < 1e-9 * PERIOD * np.linalg.norm(rate) / 100.0


@pytest.mark.parametrize('stopped', [LOWER, TENDONS])
def test_a_sensor_that_stops_is_not_waited_for(robot, stopped):
    robot.cycles((LOWER, UPPER, TENDONS), 1, SETTLED)
    robot.cycles((LOWER, UPPER, TENDONS), SETTLED + 1, 100, without={stopped})
    assert len(robot.lengths) == SETTLED + 100
    assert ('open loop' in robot.cycle.problem) == (stopped == LOWER), robot.cycle.problem


@pytest.mark.parametrize('shifts', [{TENDONS: PERIOD // 3}, {LOWER: -PERIOD // 2},
                                    {LOWER: PERIOD // 5, TENDONS: -PERIOD // 4}])
def test_sensors_may_have_stamps_of_their_own(robot, shifts):
    robot.cycles((LOWER, UPPER, TENDONS), 1, 2 * SETTLED, shifts=shifts)
    assert robot.sent_with() == [UPPER] * 2 * SETTLED and len(robot.shapes) == 2 * SETTLED
    assert not robot.cycle.problem


def test_without_messages_the_periodic_check_continues(robot):
    robot.cycles((LOWER, UPPER, TENDONS), 1, SETTLED)
    assert not robot.check(SETTLED + 1) and not robot.check(SETTLED + 40)
    assert len(robot.lengths) == SETTLED and not robot.cycle.problem
    assert robot.check(SETTLED + 60)
    assert len(robot.lengths) == SETTLED + 1
    assert 'no recent data of the torso IMU' in robot.cycle.problem


def test_the_reference_does_not_run_away_while_the_torsos_imu_is_silent(robot):
    robot.controller.set_target(make_shape(0.26, 0.0))
    robot.cycles((LOWER, UPPER, TENDONS), 1, 60)
    before, sent = robot.controller.reference.position, len(robot.lengths)
    assert np.hypot(*robot.controller.reference.velocity) > 0.5
    robot.cycles((LOWER, TENDONS), 61, 45)
    assert len(robot.lengths) == sent
    robot.cycles((LOWER, UPPER, TENDONS), 106, 1)
    assert len(robot.lengths) == sent + 1
    way = np.hypot(*(robot.controller.reference.position - before))
    assert 0.0 < way < 1.5 * MAX_UPDATE_STEP + 0.003


def test_nothing_goes_out_after_deactivation(robot):
    robot.cycles((LOWER, UPPER, TENDONS), 1, SETTLED)
    robot.cycle.deactivate()
    robot.cycles((LOWER, UPPER, TENDONS), SETTLED + 1, 3)
    robot.check(SETTLED + 60)
    assert len(robot.lengths) == SETTLED and robot.shapes[-1][2] == SETTLED + 60


def test_an_inactive_torso_is_shown_as_its_imu_measures_it_where_tendons_may_be_slack(body):
    """Half the bend by lengths, the IMUs' yaws 2 rad apart; a wrong IMU leaves the lengths."""
    found, backbone = [], body.backbone
    for mounting in (0.0, -0.6):
        cycle = ControlCycle(
            body, TendonController(body.statics, body.max_bend),
            lambda ns, arc, rates: found.append(arc.bend), lambda *_: None,
            gravity=9.81, imu_timeout=0.1, fallback_period=0.01)
        R = rotation_about(2, 2.0) @ backbone.tip(make_shape(0.1)).rotation @ rotation_about(
            1, mounting)
        for number in range(1, 4):
            ns = START + number * PERIOD
            cycle.add_tendons(ns, backbone.lengths(make_shape(0.2)).tolist(), None)
            cycle.add_lower(ns, np.array((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)))
            cycle.add_upper(ns, np.array((*quaternion_from_rotation(R), 0.0, 0.0, 0.0)))
    # Torsion, which is zero, gives the yaw.
    assert found[2] == pytest.approx(0.1, abs=1e-3)
    assert found[5] == pytest.approx(0.2, abs=1e-6)


def test_tensions_that_fall_count_by_the_time_between_them(robot):
    """A tendon is slack after 0.05 s, however many updates there are meanwhile."""
    robot.cycles((LOWER, UPPER, TENDONS), 1, SETTLED)
    controller = robot.controller
    for k in range(1, 30):
        robot.cycles((LOWER, UPPER), SETTLED + k, 1)
        controller.set_tendons(1e-9 * PERIOD, None, [12.0, 0.0, 12.0, 12.0])
        if k != 25:  # that is 0.05 s sharp
            assert bool(controller.slack.slack) == (k > 25)
    assert math.isclose(controller.slack_prevention.level, min(
        3.0 / 0.02 * 29 * PERIOD * 1e-9, 0.5 * (60.0 - 12.0)), rel_tol=1e-6)


# ---- time between updates

@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.lists(st.integers(0, 40), max_size=4)),
                min_size=1, max_size=50))
def test_looking_at_a_clock_that_is_behind_lets_no_time_pass(steps):
    """Steps are ms to the next stamp, and how far behind it a clock is when it is asked, ms."""
    elapsed, now, total = StepTimer(), START, 0.0
    elapsed.advance(now)
    for step, behind in steps:
        now += step * MS
        total += elapsed.advance(now)
        for late in behind:
            assert elapsed.time_since(now - late * MS) == pytest.approx(-1e-3 * late)
    assert total == pytest.approx(1e-9 * (now - START))


def test_a_stamp_that_is_not_later_is_no_update_and_the_time_to_the_next_one_counts():
    elapsed = StepTimer()
    elapsed.advance(START)
    assert elapsed.advance(START) == elapsed.advance(START - 900 * MS) == 0.0
    assert elapsed.advance(START + 2 * MS) == pytest.approx(0.002)
    for _ in range(2):
        assert elapsed.time_since(START + 152 * MS) == pytest.approx(0.15)
    assert elapsed.advance(START + 152 * MS) == pytest.approx(0.15)


@pytest.mark.parametrize('first', [StepTimer.time_since, StepTimer.advance])
def test_time_goes_on_after_the_clock_was_set_back(first):
    elapsed = StepTimer()
    elapsed.advance(START)
    assert first(elapsed, 7 * MS) == 0.0
    assert elapsed.advance(9 * MS) == pytest.approx(0.002)


@pytest.mark.parametrize('dead', (UPPER, TENDONS))
def test_a_sensor_that_died_is_not_used_after_the_clock_was_set_back(body, dead):
    commands, controller = [], TendonController(body.statics, body.max_bend)
    cycle = ControlCycle(
        body, controller, lambda *_: None, lambda ns, arc, command: commands.append(command),
        gravity=9.81, imu_timeout=0.1, fallback_period=0.01)
    upright, lengths = np.array((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)), body.backbone.lengths(
        make_shape(0.05)).tolist()

    def run(begin_ns, missing=''):
        commands.clear()
        for ns in range(begin_ns, begin_ns + 500 * MS, 10 * MS):
            cycle.add_lower(ns, upright)
            if missing != TENDONS:
                cycle.add_tendons(ns, lengths, [12.0] * 4)
            if missing != UPPER:
                cycle.add_upper(ns, upright)
            cycle.check(ns)
    cycle.activate(START)
    run(START)
    assert commands[-1].is_closed_loop and cycle.tensions is not None
    run(START - 50_000 * MS, missing=dead)
    assert len(commands) > 30
    if dead == UPPER:
        assert not any(command.is_closed_loop for command in commands[1:])
    else:
        assert cycle.tensions is None


# ---- targets

FAR, NEAR = make_shape(0.2, 0.5), make_shape(0.05, 0.5)


@pytest.fixture
def target(body):
    target = TargetInput(TendonController(body.statics, body.max_bend))
    target.timeouts = {'joy': 0.5}
    target.enable(True)
    return target


def move(target, seconds):
    for _ in range(round(seconds / 0.002)):
        target.controller.update(0.002, Measurement())


def test_a_source_that_stops_holds_the_torso(target):
    assert target.set_target('joy', FAR, START)
    move(target, 0.1)
    assert not target.check(START + 500 * MS)
    np.testing.assert_array_equal(target.controller.target, FAR)
    assert target.check(START + 700 * MS) == 'no message from joy for 0.7 s: holding'
    held = target.controller.target
    assert 0.0 < np.hypot(*held[:2]) < 0.2
    move(target, 0.05)
    assert target.check(START + 800 * MS)
    np.testing.assert_array_equal(target.controller.target, held)  # held once
    assert target.set_target('joy', NEAR, START + 900 * MS) and not target.check(START + 900 * MS)
    np.testing.assert_array_equal(target.controller.target, NEAR)


def test_a_clock_that_is_set_back_restarts_the_timeout(target):
    target.set_target('~/target', FAR, START)  # which has none
    assert not target.check(START + 100_000 * MS)
    np.testing.assert_array_equal(target.controller.target, FAR)
    target.set_target('joy', FAR, START)
    assert not target.check(7 * MS) and not target.check(400 * MS)
    assert 'for 0.6 s' in target.check(607 * MS)


def test_frozen_or_disabled_it_accepts_no_targets(target):
    target.set_target('joy', FAR, START)
    target.freeze(True)
    assert np.hypot(*target.controller.target[:2]) < 1e-12  # it has not moved yet
    assert not target.set_target('joy', FAR, START)
    target.freeze(False)
    assert target.set_target('joy', NEAR, START)
    target.enable(False)
    assert not target.set_target('joy', FAR, START) and not target.source
    assert not target.check(START + 10_000 * MS)
    np.testing.assert_array_equal(target.controller.target, NEAR)


def test_targets_that_are_not_finite_are_refused(target):
    target.set_target('joy', NEAR, START)
    with pytest.raises(InputError, match='four finite numbers'):
        target.set_target('~/target', np.full(4, math.nan), START)
    assert target.source == 'joy'
    np.testing.assert_array_equal(target.controller.target, NEAR)
