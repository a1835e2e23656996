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
"""Joints, checks, errors of motors and stamps, from messages of both kinds of robots."""

from dataclasses import replace
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.low_state_config import LowStateConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.unitree.low_state import HEADER, LowStateDecoder
from biped_com_ros.core.unitree.stream import (
    LowStateStream, read_low_states, RefusedLowState, TickClock)
import numpy as np
import pytest
from support.low_states import LowStates

ROBOTS = {'g1_as_sold': 'unitree_hg', 'h1': 'unitree_go'}


def made(robot):
    """Return a stream, its messages, and one in which the number of a motor is its position."""
    states = LowStates(ROBOTS[robot])
    message = states.message()
    for i, motor in enumerate(message.motor_state):
        motor.q, motor.dq, motor.tau_est = 0.1 * i, 1.0 * i, 2.0 * i
    message.imu_state.quaternion[0] = 1.0
    return LowStateStream(load_robot_config(robot)), states, message


MOTORS = {'g1_as_sold': {'left_knee_joint': 3, 'right_hip_pitch_joint': 6, 'waist_yaw_joint': 12,
                         'right_wrist_yaw_joint': 28},
          'h1': {'right_hip_roll_joint': 0, 'left_hip_yaw_joint': 7, 'left_ankle_joint': 10,
                 'right_shoulder_pitch_joint': 12, 'left_elbow_joint': 19}}


@pytest.mark.parametrize('robot', ROBOTS)
def test_each_joint_gets_its_motor(robot):
    stream, states, message = made(robot)
    assert stream.update(states.serialize(message), 10**9) == 10**9
    motors = load_robot_config(robot).low_state.motors
    for name, motor in MOTORS[robot].items():
        i = stream.joints.index(name)
        assert motors[motor] == name
        assert (stream.positions[i], stream.velocities[i], stream.efforts[i]) == pytest.approx(
            (0.1 * motor, motor, 2.0 * motor))


def test_the_g1_has_motors_for_all_joints_of_its_model():
    model = RobotModel.load('g1_as_sold')
    assert set(LowStateStream(model.config).joints) == set(model.joint_names)


def refusal(stream, states, message, **options):
    """Return the error of a message."""
    raw = message if isinstance(message, bytes) else states.serialize(message, **options)
    with pytest.raises(RefusedLowState) as caught:
        stream.update(raw, 10**9)
    assert stream.state is None
    return caught.value


@pytest.mark.parametrize('robot', ROBOTS)
def test_a_wrong_checksum_is_refused(robot):
    stream, states, message = made(robot)
    raw = bytearray(states.serialize(message))
    raw[200] ^= 1
    assert refusal(stream, states, bytes(raw)).reason == 'wrong checksum'
    message.crc = 0
    assert 'check_crc' in str(refusal(stream, states, message, sign=False))
    trusting = LowStateStream(load_robot_config(robot), check_crc=False)
    assert trusting.update(states.serialize(message, sign=False), 10**9) == 10**9


@pytest.mark.parametrize('field', ['q', 'dq', 'tau_est'])
def test_a_number_that_is_not_finite_is_refused_with_its_joint(field):
    stream, states, message = made('h1')
    setattr(message.motor_state[10], field, np.nan)
    assert str(refusal(stream, states, message)) == (
        f"{field} of 'left_ankle_joint' is not a finite number")
    setattr(message.motor_state[10], field, 0.0)
    setattr(message.motor_state[9], field, np.nan)  # a motor that the robot does not have
    assert stream.update(states.serialize(message), 10**9)


@pytest.mark.parametrize('field', ['quaternion', 'gyroscope', 'accelerometer', 'mode_pr'])
def test_an_imu_that_is_not_finite_and_positions_of_parallel_motors_are_refused(field):
    stream, states, message = made('g1_as_sold')
    if field == 'mode_pr':
        message.mode_pr = 1
        assert 'mode PR' in str(refusal(stream, states, message))
    else:
        getattr(message.imu_state, field)[2] = np.inf
        assert f'imu_state.{field} is not finite' in str(refusal(stream, states, message))


@pytest.mark.parametrize('robot', ROBOTS)
def test_whatever_arrives_it_is_refused_or_finite_and_has_a_stamp_of_now(robot):
    """Numbers that no robot sends, wrong sizes, and random bytes, with the right checksum."""
    stream, states, message = made(robot)
    valid, rng, used = states.serialize(message), np.random.default_rng(20), 0
    decoder = LowStateDecoder(ROBOTS[robot])
    tick, crc = (HEADER + decoder.layout.numbers[name].cdr for name in ('tick', 'crc'))
    words = np.array([np.nan, np.inf, -np.inf, 3e38, -1e30, 1e-45, 0.0], '<f4').view('<u4')
    for number in range(2000):
        raw = bytearray(valid)
        raw[tick:tick + 4] = (2 * number).to_bytes(4, 'little')
        for _ in range(rng.integers(1, 6)):
            at = 4 * rng.integers(1, len(raw) // 4)
            word = rng.choice(words) if rng.random() < 0.5 else rng.integers(2 ** 32)
            raw[at:at + 4] = int(word).to_bytes(4, 'little')
        if number % 10:
            raw[crc:crc + 4] = decoder.checksum(bytes(raw)).to_bytes(4, 'little')
        if number % 7 == 0:
            raw = raw[:rng.integers(len(raw))]
        now = (1000 + 2 * number) * 10 ** 6
        try:
            stamp = stream.update(bytes(raw), now)
        except RefusedLowState:
            continue
        if stamp is not None:
            used += 1
            assert abs(stamp - now) <= 10 ** 9
            for values in (stream.positions, stream.velocities, stream.efforts,
                           stream.state.quaternion, stream.state.angular_velocity,
                           stream.state.acceleration):
                assert np.isfinite(values).all()
    assert used > 100
    assert stream.update(valid, 10 ** 10) is not None


@pytest.mark.parametrize(('robot', 'motor', 'field', 'values', 'name', 'recent', 'counts'), [
    ('g1_as_sold', 3, 'motorstate', (0, 7, 8, 0), 'left_knee_joint', (0, 1, 1, 0), (0, 1, 2, 2)),
    # Packets that a motor loses count from the first message on.
    ('h1', 11, 'lost', (100, 100, 103), 'right_ankle_joint', (0, 0, 1), (0, 0, 3))])
def test_errors_of_motors_are_counted(robot, motor, field, values, name, recent, counts):
    stream, states, message = made(robot)
    for tick, value, is_recent, count in zip((2, 4, 6, 8), values, recent, counts):
        message.tick = tick
        setattr(message.motor_state[motor], field, value)
        stream.update(states.serialize(message), tick * 10**6)
        assert stream.errors.recent == ((name,) if is_recent else ())
        assert stream.errors.counts == ({name: count} if count else {})
    if field == 'motorstate':
        assert stream.errors.codes == {name: 8}


def test_the_hottest_motor_is_named():
    stream, states, message = made('g1_as_sold')
    message.motor_state[4].temperature[1] = 88
    message.motor_state[30].temperature[0] = 99  # no motor of a G1
    stream.update(states.serialize(message), 10**9)
    assert stream.hottest == ('left_ankle_pitch_joint', 88)


@pytest.mark.parametrize('low_state, words', [
    (LowStateConfig('unitree_b2', ('left_knee_joint',)), "'unitree_b2'; use unitree_hg or"),
    (LowStateConfig('unitree_hg', ('left_knee_joint',) * 2), "'left_knee_joint' twice"),
    (LowStateConfig('unitree_hg', ('', '')), 'names no joint'),
    (LowStateConfig('unitree_hg', ('left_knee_joint',), 'low state'), 'not a valid topic')])
def test_a_bad_configuration_is_an_error(low_state, words):
    with pytest.raises(ConfigurationError, match=words):
        replace(load_robot_config('g1_as_sold'), low_state=low_state)


def test_a_robot_without_the_message_is_an_error():
    with pytest.raises(ConfigurationError, match="'talos' has no low_state; add it"):
        LowStateStream(load_robot_config('talos'))
    many = LowStateConfig('unitree_go', tuple(f'joint_{i}' for i in range(21)))
    config = replace(load_robot_config('h1'), low_state=many)
    with pytest.raises(ConfigurationError, match='21 joints.*20 motors'):
        LowStateStream(config)


def test_a_recording_that_is_not_there_or_has_another_topic_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no recording '/none'"):
        next(read_low_states(Path('/none'), 'lowstate'))
    states = LowStates('unitree_hg')
    bag = states.write_bag(tmp_path / 'bag', '/robot/state', [(1, states.message())])
    with pytest.raises(InputError, match='have the topic lowstate; it has /robot/state'):
        next(read_low_states(bag, 'lowstate'))


# -- stamps of the robot's counter

BEGIN = 1_700_000_000_000_000_000
MS = 1_000_000


def delays(count, seed=0):
    """Return delays of a network, ns: 0.3 ms and more, with rare bursts of 20 ms."""
    rng = np.random.default_rng(seed)
    return (3e5 + 2e6 * rng.exponential(size=count)
            + 2e7 * (rng.random(count) < 0.02)).astype(int)


def stamps(clock, ticks, late, begin=BEGIN, rate=1.0):
    """Return the stamps of messages whose sender's clock runs at a rate."""
    return np.array([clock.stamp(tick % 2**32, begin + round(tick * MS / rate) + int(delay))
                     for tick, delay in zip(ticks, late)])


def test_stamps_are_even_although_messages_are_not():
    ticks = np.arange(0, 20_000, 2)
    found = stamps(TickClock(), ticks, delays(len(ticks)))
    arrivals = BEGIN + ticks * MS + delays(len(ticks))
    assert (np.diff(found) > 0).all()
    assert 1000.0 * np.diff(found)[2000:].std() < np.diff(arrivals)[2000:].std()
    error = found - (BEGIN + ticks * MS)
    assert 0.0 < error[2000:].mean() < 0.6e6
    assert (error > 0).all()  # never before it was sent


@pytest.mark.parametrize('rate', [
    1.0 - 1e-4, pytest.param(1.0 + 1e-4, marks=pytest.mark.thorough)])
def test_stamps_follow_a_clock_that_drifts(rate):
    ticks = np.arange(0, 200_000, 2)
    found = stamps(TickClock(), ticks, delays(len(ticks)), rate=rate)
    error = found - (BEGIN + ticks * MS / rate)
    assert np.abs(error[2000:]).max() < 1.5e6  # 20 ms without following
    assert (np.diff(found) > 0).all()


def test_a_first_message_that_is_late_does_not_turn_stamps_back():
    ticks, late = np.arange(0, 2000, 2), delays(1000)
    late[0] = 300 * MS
    found = stamps(TickClock(), ticks, late)
    assert (np.diff(found) >= MS).all()
    assert abs(found[-1] - BEGIN - ticks[-1] * MS) < MS


def test_the_counter_wraps_after_49_days():
    ticks = np.arange(2**32 - 100, 2**32 + 100, 2)
    clock = TickClock()
    found = stamps(clock, ticks, np.full(len(ticks), 1000))
    np.testing.assert_allclose(np.diff(found), 2 * MS)
    assert (clock.restarts, clock.jumps, clock.lost) == (0, 0, 0)


@pytest.mark.parametrize(('first', 'then', 'moved', 'counts'), [
    (500_000, 10, 600_000, (1, 0)),  # a restart of the robot
    (0, 100, -3_600_000, (0, 1))])  # this computer's clock is set
def test_a_restart_and_a_clock_that_is_set_are_followed_and_counted(first, then, moved, counts):
    clock = TickClock()
    before = stamps(clock, range(first, first + 100, 2), np.zeros(50))
    after = stamps(clock, range(then, then + 100, 2), np.zeros(50), begin=BEGIN + moved * MS)
    assert (clock.restarts, clock.jumps) == counts
    assert after[-1] == BEGIN + (moved + then + 98) * MS
    if clock.restarts:
        assert after[0] == BEGIN + 600_010 * MS and after[0] > before[-1]
        np.testing.assert_allclose(np.diff(after), 2 * MS)


@pytest.mark.parametrize('step', [1, 2, 5])
def test_missing_messages_are_counted_and_a_jitter_of_1_ms_is_no_loss(step):
    ticks = np.arange(0, 1000 * step, step)
    clock, steady = TickClock(), TickClock()
    stamps(clock, np.delete(ticks, [100, 300, 301, 302, 900]), np.zeros(995))
    assert clock.lost == 5
    jitter = np.random.default_rng(0).integers(0, 2, 1000)
    stamps(steady, np.arange(0, 2000, 2) + jitter, np.zeros(1000))
    assert steady.lost == 0


def test_a_repeated_counter_has_no_stamp():
    clock = TickClock()
    assert clock.stamp(5, BEGIN) == BEGIN
    assert clock.stamp(5, BEGIN + MS) is None
