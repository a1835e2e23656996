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
"""The state machine of the efforts: every transition, times at the limits, and invariants."""

from __future__ import annotations

from dataclasses import replace
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.gravity.effort_limiter import (
    ACTIVE, EffortLimiter, HOLDING, IDLE, RAMPING, SafetySettings, STARTING, WAITING)
from biped_com_ros.core.gravity.supervisor import EffortSupervisor, JOINT_STATES
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

LIMITS = np.array([100.0, 10.0])
TARGET = np.array([30.0, -2.0])
SAFETY = SafetySettings(
    clamp=0.5, max_rate=2.0, start_time=1.0, stop_time=0.5, hold_time=0.2)
MS = 1_000_000
IMU, LEFT = 'the IMU', "the wrench of 'left'"


class Compensator:
    """Has a real limiter, and targets as a test sets them."""

    def __init__(self, safety=SAFETY):
        self.limiter = EffortLimiter(LIMITS, safety)
        self.target, self.error, self.resets = TARGET, None, 0

    def efforts_at(self, positions, stamp_ns):
        if self.error is not None:
            raise self.error
        return self.target

    def reset(self):
        self.resets += 1


class SupervisedInputs:
    """Joint states and other inputs at a rate, and the watchdog every 10 ms while they lack."""

    def __init__(self, rate=500.0, safety=SAFETY):
        self.compensator = Compensator(safety)
        self.stale = {}
        self.supervisor = EffortSupervisor(
            self.compensator, lambda name: self.stale.get(name, ''))
        self.supervisor.configure((IMU, LEFT), 0.1)
        self.now, self.period, self.offset = 100.0, 1.0 / rate, 0.0
        self.delays = {IMU: 0.0, LEFT: 0.0}
        self.missing, self.inhibited = set(), ''
        self.states, self.efforts = [], []

    @property
    def stamp_ns(self):
        return round(1e9 * (self.now + self.offset))

    def step(self):
        """Let one period pass, or 10 ms without joint states."""
        is_missing = JOINT_STATES in self.missing
        self.now += 0.01 if is_missing else self.period
        for name in {IMU, LEFT} - self.missing:
            self.supervisor.receive(name, self.stamp_ns - round(1e9 * self.delays[name]))
        if is_missing:
            efforts = self.supervisor.watch(self.now)
        else:
            efforts = self.supervisor.update(
                np.zeros(2), self.stamp_ns, self.now, self.inhibited)
        if efforts is not None:
            self.efforts.append(efforts.copy())
        if not self.states or self.states[-1] != self.supervisor.limiter.state:
            self.states.append(self.supervisor.limiter.state)
        return efforts

    def run(self, seconds):
        """Let time pass, and return the last efforts."""
        end, efforts = self.now + seconds - 1e-9, None
        while self.now < end:
            efforts = self.step()
        return efforts

    def started(self):
        """Return itself, balanced."""
        self.supervisor.start(self.now)
        self.run(8.0)
        assert self.supervisor.limiter.state == ACTIVE
        self.states.clear()
        self.efforts.clear()
        return self


@pytest.fixture
def robot():
    return SupervisedInputs().started()


def test_goes_from_idle_to_active_and_back():
    robot = SupervisedInputs()
    assert robot.step() is None and robot.supervisor.limiter.state == IDLE
    robot.supervisor.start(robot.now)
    assert robot.supervisor.limiter.state == WAITING
    np.testing.assert_allclose(robot.run(2.0), TARGET)
    robot.supervisor.stop()
    assert robot.run(1.0) is None
    assert robot.states == [IDLE, STARTING, ACTIVE, RAMPING, IDLE]
    assert not robot.efforts[-1].any() and robot.supervisor.limiter.idle


def test_a_stop_while_holding_ramps_at_once_and_a_start_while_ramping_ramps_up(robot):
    robot.missing = {JOINT_STATES}
    robot.run(0.1)
    robot.supervisor.stop()
    assert robot.supervisor.limiter.state == RAMPING
    robot.run(0.2)
    robot.missing.clear()
    robot.supervisor.start(robot.now)
    np.testing.assert_allclose(robot.run(2.0), TARGET)
    assert robot.states == [ACTIVE, HOLDING, RAMPING, STARTING, ACTIVE]


@pytest.mark.parametrize('missing', (IMU, LEFT, JOINT_STATES))
@pytest.mark.parametrize('seconds, states', (
    (0.15, [ACTIVE, HOLDING, ACTIVE]),  # shorter than hold_time
    (0.5, [ACTIVE, HOLDING, RAMPING, STARTING, ACTIVE]),
    (6.0, [ACTIVE, HOLDING, RAMPING, WAITING, STARTING, ACTIVE])))
def test_holds_then_ramps_to_zero_and_recovers_at_once(robot, missing, seconds, states):
    robot.step()
    robot.missing = {missing}
    robot.run(0.15)
    np.testing.assert_allclose(robot.efforts, np.tile(TARGET, (len(robot.efforts), 1)))
    robot.run(seconds - 0.15)
    assert robot.efforts[-1].any() == (seconds < 1.0)
    robot.missing.clear()
    np.testing.assert_allclose(robot.run(2.0), TARGET)
    assert robot.states == states and robot.supervisor.problem == ''


def test_waits_for_inputs_that_have_never_arrived():
    robot = SupervisedInputs()
    robot.missing = {LEFT}
    robot.supervisor.start(robot.now)
    assert not robot.run(1.0).any()  # zero is commanded
    assert robot.supervisor.limiter.state == WAITING
    assert f'{LEFT} has not arrived yet' in robot.supervisor.problem
    robot.missing.clear()
    np.testing.assert_allclose(robot.run(2.0), TARGET)
    assert robot.states == [WAITING, STARTING, ACTIVE]


@pytest.mark.parametrize('rate, limit', ((25.0, 0.1), (50.0, 0.05), (500.0, 0.03)))
@pytest.mark.parametrize('name', (JOINT_STATES, IMU, LEFT))
def test_at_every_rate_an_input_that_stops_ends_in_zero_in_time(rate, limit, name):
    robot = SupervisedInputs(rate).started()
    since, robot.missing = robot.now, {name}
    assert robot.supervisor.joint_state_timeout == pytest.approx(limit, abs=1e-3)
    while robot.supervisor.limiter.state != WAITING:
        robot.step()
    duration, took = SAFETY.hold_time + SAFETY.stop_time, robot.now - since
    if name == JOINT_STATES:
        assert took == pytest.approx(duration, abs=0.03)
    else:
        assert duration < took < 0.1 + duration + 3.0 / rate  # with the timeout


@pytest.mark.parametrize('stop', (
    lambda robot: robot.supervisor.stop(), lambda robot: robot.missing.add(IMU)))
@pytest.mark.parametrize('rate', (5.0, 10.0, 30.0, 100.0, 500.0))
def test_at_every_rate_of_joint_states_a_ramp_to_zero_takes_its_time_in_small_steps(rate, stop):
    robot = SupervisedInputs(rate, replace(SAFETY, start_time=0.1, max_rate=20.0)).started()
    largest = 20.0 * LIMITS * robot.supervisor.limiter.settings.max_dt
    stop(robot)
    begin = end = None
    time, before, next_state, next_watch = robot.now, robot.supervisor.limiter.efforts, 0.0, 0.0
    while end is None:
        time += 1e-3
        efforts = None
        if time >= next_state:
            next_state, robot.now = time + robot.period, time
            if IMU not in robot.missing:
                robot.supervisor.receive(IMU, robot.stamp_ns)
            robot.supervisor.receive(LEFT, robot.stamp_ns)
            efforts = robot.supervisor.update(np.zeros(2), robot.stamp_ns, time)
        elif time >= next_watch:
            efforts = robot.supervisor.watch(time)
            next_watch = time + (0.03 if efforts is None else 0.01)  # as the watchdog
        if efforts is None:
            continue
        assert (np.abs(efforts - before) <= largest + 1e-9).all()
        if begin is None and (efforts != before).any():
            begin = time
        before, end = efforts, None if efforts.any() else time
    # The first step may be that of a whole period of joint states.
    assert -robot.period - 0.06 < end - begin - SAFETY.stop_time < 0.06


@pytest.mark.parametrize('rate', (5.0, 10.0, 25.0, 33.0, 50.0, 500.0))
def test_at_every_rate_regular_joint_states_are_never_late(rate):
    robot = SupervisedInputs(rate, replace(SAFETY, start_time=0.1, max_dt=1.0)).started()
    for _ in range(200):
        before = robot.now
        robot.step()
        for part in (0.25, 0.5, 0.99):  # the watchdog between the joint states
            assert robot.supervisor.watch(before + robot.period * (1.0 + part)) is None
    assert robot.states == [ACTIVE]


def test_the_rate_is_learned_and_a_stall_does_not_unlearn_it(robot):
    assert robot.supervisor.joint_state_timeout == pytest.approx(0.03)
    robot.now += 0.4
    robot.step()  # the first one after a stall
    assert robot.supervisor.joint_state_timeout == pytest.approx(0.03)
    robot.period = 0.1
    robot.run(6.0)
    assert robot.supervisor.joint_state_timeout == pytest.approx(0.25, rel=0.02)
    robot.period = 0.002
    robot.run(0.5)
    assert robot.supervisor.joint_state_timeout == pytest.approx(0.03)
    robot.period = 1.0
    robot.run(60.0)
    assert robot.supervisor.joint_state_timeout == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize('name', (IMU, LEFT))
@pytest.mark.parametrize(('delay', 'is_usable'), (
    (0.1, True), (0.100_000_001, False), (-0.1, True), (-0.100_000_001, False)))
def test_inputs_exactly_at_the_limit_of_their_age(robot, name, delay, is_usable):
    supervisor, stamp_ns = robot.supervisor, robot.stamp_ns + 200 * MS
    for other in (IMU, LEFT):
        supervisor.receive(other, stamp_ns)
    supervisor.receive(name, stamp_ns - round(1e9 * delay))
    supervisor.update(np.zeros(2), stamp_ns, robot.now + 0.002)
    assert (supervisor.problem == '') is is_usable
    assert supervisor.limiter.state == (ACTIVE if is_usable else HOLDING)
    if not is_usable:
        side = 'behind' if delay > 0.0 else 'ahead of'
        assert supervisor.problem == (
            f'the stamps of {name} are 0.10 s {side} those of joint_states (input_timeout 0.1 s): '
            'check its clock and the load of the computer')


def test_joint_states_exactly_at_the_limit_of_their_age(robot):
    supervisor, limit = robot.supervisor, robot.supervisor.joint_state_timeout
    assert supervisor.watch(robot.now + limit - 1e-9) is None
    assert supervisor.limiter.state == ACTIVE
    assert supervisor.watch(robot.now + limit + 1e-3) is not None
    assert supervisor.limiter.state == HOLDING
    assert 'the last joint_states arrived 31 ms ago (limit 30 ms): check' in supervisor.problem


def test_the_reason_is_that_of_the_input_where_it_has_one(robot):
    robot.stale = {IMU: "the IMU is stale: nobody publishes '/imu'",
                   JOINT_STATES: 'joint_states is stale'}
    for missing in (IMU, JOINT_STATES):
        robot.missing = {missing}
        robot.run(0.2)
        assert robot.supervisor.problem == robot.stale[missing]


@pytest.mark.parametrize('missing', (IMU, JOINT_STATES))
def test_an_input_that_cannot_be_described_does_not_keep_efforts_from_ramping(robot, missing):
    robot.missing, robot.stale = {missing}, None  # which raises a TypeError
    assert not robot.run(1.0).any()
    assert f'{missing} is not usable' in robot.supervisor.problem


def test_only_required_inputs_count(robot):
    robot.missing = {LEFT}
    robot.supervisor.configure((IMU,), 0.1)
    robot.run(1.0)
    assert robot.states == [ACTIVE]


@pytest.mark.parametrize('name, value, words', (
    ('error', InputError('the robot is in the air'), 'the robot is in the air'),
    ('error', ValueError('shapes'), 'shapes'),
    *(('target', np.array([30.0, value]), 'are not finite: check')
      for value in (math.nan, math.inf, -math.inf)),
    ('target', np.array([30.0]), '')))
def test_errors_of_the_computation_hold_then_ramp_to_zero(robot, name, value, words):
    good = getattr(robot.compensator, name)
    setattr(robot.compensator, name, value)
    assert not robot.run(1.0).any()
    assert robot.states == [HOLDING, RAMPING, WAITING]
    assert robot.supervisor.problem and words in robot.supervisor.problem
    setattr(robot.compensator, name, good)
    np.testing.assert_allclose(robot.run(2.0), TARGET)


def test_inhibited_efforts_ramp_to_zero(robot):
    robot.inhibited = "controller 'c' does not run"
    assert not robot.run(1.0).any()
    assert robot.supervisor.problem == robot.inhibited
    assert robot.supervisor.target is not None  # the support is known all the same
    robot.inhibited = ''
    np.testing.assert_allclose(robot.run(2.0), TARGET)


def test_a_problem_is_kept_until_it_is_reported(robot):
    robot.compensator.error = InputError('a jump')
    robot.step()
    robot.compensator.error = None
    robot.step()
    assert robot.supervisor.problem == ''
    assert [robot.supervisor.take_problem() for _ in range(2)] == ['a jump', '']


@pytest.mark.parametrize('by_watchdog', (True, False))
def test_a_clock_that_is_set_back_starts_anew_without_a_jump(robot, by_watchdog):
    robot.now -= 50.0
    if by_watchdog:
        assert robot.supervisor.watch(robot.now) is None
    robot.run(2.0)
    assert robot.compensator.resets == 1
    np.testing.assert_allclose(robot.efforts, np.tile(TARGET, (len(robot.efforts), 1)))
    robot.now += 50.0  # set forward, it ramps down and up again
    robot.supervisor.watch(robot.now)
    assert robot.supervisor.limiter.state == RAMPING
    np.testing.assert_allclose(robot.run(2.0), TARGET)
    assert robot.compensator.resets == 1


def test_joint_states_that_are_a_little_behind_the_watchdog_count_no_time_twice():
    """Simulated time: the clock of the watchdog is ahead of the stamps."""
    robot = SupervisedInputs(safety=SafetySettings(clamp=1.0, max_rate=1.0, start_time=0.01))
    supervisor, now = robot.supervisor, 5.0
    supervisor.start(now)
    robot.compensator.target = LIMITS
    for i in range(50):
        now += 0.01
        stamp_ns = round(1e9 * (now - 0.005))
        for name in (IMU, LEFT):
            supervisor.receive(name, stamp_ns)
        supervisor.update(np.zeros(2), stamp_ns, now - 0.005)
        supervisor.watch(now + 0.04 if i % 2 else now)
    assert (np.abs(supervisor.watch(now + 1.0)) <= 1.0 * LIMITS * (now + 1.0 - 5.0)).all()
    assert np.abs(robot.compensator.limiter.efforts[0]) <= 100.0 * (now + 0.05 - 5.0)


STAMPS, TIMES = st.integers(-10 ** 10, 10 ** 10), st.floats(-2.0, 2.0)
TARGETS = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2)
EVENTS = st.one_of(
    st.tuples(st.just('start')), st.tuples(st.just('stop')),
    st.tuples(st.just('receive'), st.sampled_from([IMU, LEFT, JOINT_STATES]), STAMPS),
    st.tuples(st.just('update'), TIMES, STAMPS, TARGETS, st.booleans()),
    st.tuples(st.just('good'), TARGETS), st.tuples(st.just('watch'), TIMES),
    st.tuples(st.just('fail')))


class AnySequence:
    """Drives a supervisor by random events, and checks what it commands."""

    def __init__(self):
        self.compensator = Compensator()
        self.supervisor = EffortSupervisor(self.compensator, lambda name: '')
        self.supervisor.configure((IMU,), 0.1)
        self.supervisor.start(0.0)
        self.now, self.before = 0.0, np.zeros(2)

    def apply(self, kind, *values):
        """Apply one event."""
        if kind == 'start':
            self.supervisor.start(self.now)
        elif kind == 'fail':
            self.compensator.error = None if self.compensator.error else InputError('failed')
        elif kind == 'good':  # 20 good joint states
            for _ in range(20):
                stamp_ns = round(1e9 * (self.now + 0.005))
                self.supervisor.receive(IMU, stamp_ns)
                self.update(0.005, stamp_ns, *values, False)
        elif kind in ('update', 'watch'):
            getattr(self, kind)(*values)
        else:
            getattr(self.supervisor, kind)(*values)

    def update(self, dt, stamp_ns, target, is_inhibited):
        self.now += dt
        self.compensator.target = np.array(target)
        self.check(self.supervisor.update(
            np.zeros(2), stamp_ns, self.now, 'inhibited' if is_inhibited else ''))

    def watch(self, dt):
        self.now += dt
        self.check(self.supervisor.watch(self.now))

    def check(self, efforts):
        if efforts is not None:
            assert np.isfinite(efforts).all()
            assert (np.abs(efforts) <= SAFETY.clamp * LIMITS).all()
            assert (np.abs(efforts - self.before)
                    <= SAFETY.max_rate * SAFETY.max_dt * LIMITS + 1e-12).all()
            self.before = efforts.copy()


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS, max_size=60))
def test_whatever_happens_efforts_are_within_clamp_and_rate_limit(events):
    sequence = AnySequence()
    with np.errstate(all='ignore'):
        for event in events:
            sequence.apply(*event)
        # However it got there, without joint states it comes to rest: the longest timeout, the
        # hold and the ramp take 1.2 s together.
        for _ in range(125):
            sequence.watch(0.01)
    assert sequence.supervisor.limiter.state in (WAITING, IDLE)
    assert not sequence.compensator.limiter.efforts.any()
