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
"""Located states from stamped samples, against motion whose truth is known."""

import threading

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.state.base import BaseSettings
from biped_com_ros.core.state.contacts import ContactHistory
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from scipy.spatial.transform import Rotation
from support.stamped_samples import delayed, feed, MS, START
from support.stance_motion import BOTH, LEFT, NONE, RIGHT, SwayingMotion

WEIGHT = 50.0


def quaternion(rotation):
    return Rotation.from_matrix(rotation).as_quat()


def imu(motion, t):
    return quaternion(motion.R_world_imu(t)), motion.gyro(t)


def odometry(motion, t):
    base = motion.base(t)
    return base.position, quaternion(base.rotation), np.concatenate(motion.base_twist(t))


def wrenches(t):
    """Return a wrench for each foot; the left one carries the robot."""
    return np.array([(1.0, 2.0, WEIGHT, 0.3, np.sin(t), 0.1), (0.0, 0.0, 0.5, 0.0, 0.0, 0.0)])


def probabilities(k):
    """Return the probability of contact of each foot: a hysteresis decides, not one threshold."""
    return (1.0, 0.7, 0.5, 0.3, 0.5)[k % 5], (0.1, 0.55, 0.9, 0.45, 0.2)[k % 5]


def synchronized_settings(**options):
    return SynchronizedSettings(**{
        'wrenches': True, 'thresholds': ContactThresholds(engage_dwell=0.0),
        'body_weight': WEIGHT, **options})


def synchronized(motion, source='imu', **options):
    return StateEstimator(motion.model, BaseSettings(source=source),
                          synchronized=synchronized_settings(**options))


def samples(motion, count, sample_base=imu, late_ms=0, keys=('joints', 'base', 0, 1)):
    """Return (key, stamp, arguments) of samples of a motion, 4 ms apart; wrenches may be late."""
    found = []
    for k in range(count):
        t, ns = 0.004 * k, START + 4 * MS * k
        left, right = wrenches(t - 0.001 * late_ms)
        of_all = {'joints': (motion.state(t),), 'base': sample_base(motion, t), 0: (left,),
                  1: (right,), 'probabilities': (probabilities(k),),
                  'feet': (2.0 * ns * np.eye(12),), 'hands': (float(ns) * np.eye(6),)}
        found += [(key, ns, of_all[key]) for key in keys]
    return found


WITH_PROBABILITIES = ('joints', 'base', 0, 1, 'probabilities')


@pytest.fixture
def motion():
    return SwayingMotion(3)


@pytest.mark.parametrize(('source', 'sample_base'), [('imu', imu), ('odometry', odometry)])
def test_synchronized_states_are_the_truth_with_contacts_twist_and_wrenches(
        motion, source, sample_base):
    located = feed(synchronized(motion, source), samples(motion, 40, sample_base))
    assert [state.stamp_ns for state in located] == [START + 4 * MS * k for k in range(40)]
    offset = located[0].state.base.position - motion.base(0.0).position
    for k, state in enumerate(located):
        t, truth = 0.004 * k, motion.base(0.004 * k)
        assert_allclose(state.state.base.rotation, truth.rotation, atol=1e-9)
        assert_allclose(state.state.base.position - offset, truth.position, atol=1e-9)
        assert_allclose(state.twist, motion.base_twist(t), atol=1e-5)
        assert state.stance.in_contact == LEFT and state.contacts_measured
        assert_allclose(state.wrenches, wrenches(t))


@pytest.mark.parametrize('late', [None, 'probabilities', 0, 'base'])
def test_synchronized_states_do_not_depend_on_the_order_of_arrival(motion, late):
    """Topics overtake each other by up to six instants; the bits are the same."""
    found, rng = samples(motion, 40, keys=WITH_PROBABILITIES), np.random.default_rng(0)
    delays = {late: 3, 1: 3 * (late == 0)} if late is not None else {
        key: rng.integers(0, 6) for key in WITH_PROBABILITIES}
    expected, located = (feed(synchronized(motion, probabilities=(True, True)), each)
                         for each in (found, delayed(found, delays, 4 * MS)))
    assert len(expected) == 40 and len(located) >= (31 if late is None else 40)
    for state, same in zip(located, expected):
        assert state.stamp_ns == same.stamp_ns and state.wrenches == same.wrenches
        assert state.stance.in_contact == same.stance.in_contact
        assert_array_equal(state.state.base.position, same.state.base.position)
        assert_array_equal(state.twist, same.twist)


@pytest.mark.parametrize('required', [True, False])
def test_without_wrenches_there_is_a_state_only_where_they_are_optional(motion, required):
    found = samples(motion, 200, keys=('joints', 'base'))
    located = feed(synchronized(motion, wrenches_required=required), found)
    assert bool(located) is not required
    for state in located:
        assert state.wrenches is None and not state.contacts_measured


def test_an_unknown_base_is_explained(motion):
    estimator = StateEstimator(motion.model, BaseSettings(timeout=0.1))
    assert not estimator.add_joints(START, motion.state(0.0))
    assert estimator.base.problem == 'nothing received yet from the IMU'
    estimator.add_base(START, *imu(motion, 0.0))
    assert not estimator.add_joints(START + 101 * MS, motion.state(0.101))
    assert 'the IMU differ by 0.101 s (base_timeout 0.1 s)' in estimator.base.problem
    assert estimator.add_joints(START + 100 * MS, motion.state(0.1))
    assert not estimator.base.problem
    estimator.configure(BaseSettings(timeout=0.05))
    assert not estimator.add_joints(START + 102 * MS, motion.state(0.102))
    assert '(base_timeout 0.05 s)' in estimator.base.problem


@pytest.mark.parametrize('legs_measure', [True, False])
def test_a_robot_that_has_lain_starts_at_the_origin_once_it_stands_on_all_feet(legs_measure):
    motion = SwayingMotion(3)
    history = ContactHistory(1e6)
    estimator = StateEstimator(motion.model, BaseSettings(), contacts=history)

    def at(k, roll, contacts):
        ns = START + k * MS
        R = Rotation.from_euler('x', roll).as_matrix() @ motion.R_world_imu(0.0)
        history.add(ns, contacts)
        estimator.add_base(ns, Rotation.from_matrix(R).as_quat(), np.zeros(3))
        return estimator.add_joints(ns, motion.state(0.0))[0]
    at(0, 0.0, LEFT)
    lean = 1.5 if legs_measure else 0.4
    states = [at(1, lean, LEFT), at(2, lean, NONE), at(3, 0.0, LEFT),
              at(4, 0.0, BOTH), at(5, 0.0, BOTH)]
    assert [state.restarted for state in states] == [False, False, False, legs_measure, False]


class Transforms:
    """What looks transforms up: has a lock, as a node has, so that it cannot be copied."""

    def __init__(self, motion):
        self.lock, self.motion = threading.Lock(), motion

    def look_up(self, ns):
        return self.motion.base(1e-9 * (ns - START))


def test_a_copy_looks_transforms_up_in_the_same_place(motion):
    estimator = StateEstimator(motion.model, BaseSettings(source='tf'), synchronized=(
        synchronized_settings()), lookup=Transforms(motion).look_up)
    found = samples(motion, 20, keys=('joints', 0, 1))
    before = feed(estimator, found[:30])
    located = feed(estimator.copy(), found[30:])
    assert len(before) == len(located) == 10
    for state in located:
        assert_array_equal(state.state.base.position,
                           motion.base(1e-9 * (state.stamp_ns - START)).position)


def test_a_transform_needs_a_lookup(motion):
    with pytest.raises(ConfigurationError, match='needs a lookup'):
        StateEstimator(motion.model, BaseSettings(source='tf'))


def test_instants_wait_for_their_transform_in_turn_and_not_for_ever(motion):
    known = set()

    def lookup(ns):
        if ns not in known:
            raise InputError(f'no transform at {ns}')
        return motion.base(1e-9 * (ns - START))
    estimator = StateEstimator(motion.model, BaseSettings(source='tf', timeout=0.1), lookup=lookup)

    def add(ms):
        return [state.stamp_ns for state in estimator.add_joints(
            START + ms * MS, motion.state(1e-3 * ms))]
    assert not add(0) and not add(10) and not estimator.base.problem
    known |= {START, START + 20 * MS}
    assert add(20) == [START]  # the next one waits, and so does what comes after it
    known.add(START + 10 * MS)
    states = estimator.add_joints(START + 30 * MS, motion.state(0.03))
    assert [state.stamp_ns for state in states] == [START + 10 * MS, START + 20 * MS]
    assert_allclose(states[0].state.com_in_world, motion.state(0.01).in_world(
        motion.base(0.01)).com_in_world)
    assert not add(129) and not estimator.base.problem
    assert not add(130)  # 100 ms after the one of 30 ms
    assert f'no transform at {START + 30 * MS}' in estimator.base.problem
    known.add(START + 5 * MS)
    assert add(5) == [START + 5 * MS]  # the clock was set back


def test_wrenches_that_are_late_are_paired_with_the_joints_that_they_belong_to(motion):
    """All that is known by the wrench of 8 ms later is located, with the stamp of the joints."""
    found = samples(motion, 40, late_ms=8)
    located = feed(synchronized(motion, wrench_delay=0.008), found)
    assert [state.stamp_ns for state in located] == [START + 4 * MS * k for k in range(38)]
    for k, state in enumerate(located):
        assert_allclose(state.wrenches, wrenches(0.004 * k))
    plain = feed(synchronized(motion), found)
    assert len(plain) == 40
    assert np.abs(np.array(plain[20].wrenches) - wrenches(0.08)).max() > 1e-3


def test_another_delay_counts_from_the_next_wrench_on(motion):
    found, estimator = samples(motion, 40), synchronized(motion)
    assert len(feed(estimator, found[:80])) == 20
    estimator.configure(BaseSettings(), synchronized=synchronized_settings(wrench_delay=0.004))
    assert len(feed(estimator, found[80:])) in (18, 19)


@pytest.mark.parametrize(('of_feet', 'expected'), [
    ((True, True), [LEFT, LEFT, BOTH, RIGHT, NONE, LEFT, LEFT, BOTH, RIGHT, NONE]),
    ((False, True), [LEFT, LEFT, BOTH, BOTH, LEFT])])
def test_probabilities_decide_on_the_contacts_of_the_feet_that_have_them(
        motion, of_feet, expected):
    """The wrenches say that the left foot alone carries the robot, and do without them."""
    found = samples(motion, len(expected), keys=WITH_PROBABILITIES)
    located = feed(synchronized(motion, probabilities=of_feet), found)
    assert [state.stance.in_contact for state in located] == expected
    located = feed(synchronized(motion, probabilities=of_feet), samples(motion, 200))
    assert len(located) > 40 and {state.stance.in_contact for state in located} == {LEFT}


def test_covariances_belong_to_the_instants_of_their_stamps(motion):
    """Of the feet and of the hands; where none comes any more, nothing waits for ever."""
    keys = 'joints', 'feet', 'hands', 'base', 0, 1
    found = samples(motion, 20, keys=keys) + samples(
        motion, 200, keys=(*keys[:1], *keys[3:]))[80:]
    located = feed(synchronized(motion, covariance=True, hand_covariance=True), found)
    assert len(located) > 30
    for state in located:
        if state.stamp_ns < START + 80 * MS:
            assert state.wrench_covariance[0, 0] == 2.0 * state.stamp_ns
            assert state.hand_covariance[0, 0] == state.stamp_ns
            assert not state.hand_wrenches
    assert located[-1].wrench_covariance is None


@pytest.mark.parametrize('source', ['imu', 'filter'])
def test_a_copy_continues_from_the_same_state_and_repeated_samples_change_nothing(motion, source):
    """As where several nodes feed one estimator, and one of them gets another setting."""
    def sample_base(motion, t):
        return (*imu(motion, t), motion.base(t).rotation.T @ [0.0, 0.0, 9.81])
    found = samples(motion, 60, imu if source == 'imu' else sample_base)
    once, again = (synchronized(motion, source) for _ in range(2))
    repeated = [sample for sample in found for _ in range(3)]
    expected = feed(once, found)
    located = feed(again, repeated[:3 * 118])
    copied = again.copy()
    of_both = [feed(each, repeated[3 * 118:]) for each in (again, copied)]
    assert len(expected) == 60 and len(located) == 29
    for rest in of_both:
        for state, same in zip(located + rest, expected, strict=True):
            assert state.stamp_ns == same.stamp_ns
            assert_array_equal(state.state.base.position, same.state.base.position)
            assert_array_equal(state.twist, same.twist)


def test_contacts_of_an_instant_without_wrenches_are_those_before_for_a_tenth_of_a_second(motion):
    found = samples(motion, 80)
    estimator = synchronized(motion, wrenches_required=False)
    located = feed(estimator, [sample for k, sample in enumerate(found)
                               if sample[0] != 0 or not 20 <= k // 4 < 60])
    without = [state for state in located if state.wrenches is None]
    held = [state for state in without if state.contacts_measured]
    assert 20 <= len(held) < len(without)
    assert all(state.stance.in_contact == LEFT for state in held)
