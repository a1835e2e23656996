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

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.wrench import transform_wrench
from biped_com_ros.core.state.base import BaseSettings
from biped_com_ros.core.state.contacts import ContactHistory
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.stance_motion import LEFT, RIGHT, SwayingMotion

MS = 1_000_000
START = 1_000 * MS
WEIGHT = 50.0


def imu(motion, t):
    return Rotation.from_matrix(motion.R_world_imu(t)).as_quat(), motion.gyro(t)


def odometry(motion, t):
    base = motion.base(t)
    return (base.position, Rotation.from_matrix(base.rotation).as_quat(),
            np.concatenate(motion.base_twist(t)))


def wrenches(t):
    """Return a wrench for each foot; the left one carries the robot."""
    return np.array([(1.0, 2.0, WEIGHT, 0.3, np.sin(t), 0.1), (0.0, 0.0, 0.5, 0.0, 0.0, 0.0)])


def synchronized(model, source='imu', **options):
    return StateEstimator(model, BaseSettings(source=source), synchronized=SynchronizedSettings(
        **{'wrenches': True, 'thresholds': ContactThresholds(engage_dwell=0.0),
           'body_weight': WEIGHT, **options}))


def samples(motion, count, sample_base=imu):
    """Return (source, stamp, arguments) of all samples of a motion, 4 ms apart."""
    found = []
    for k in range(count):
        t, ns = 0.004 * k, START + 4 * MS * k
        found += [('joints', ns, (motion.state(t),)), ('base', ns, sample_base(motion, t))]
        found += [('wrench', ns, (foot, wrench)) for foot, wrench in enumerate(wrenches(t))]
    return found


def feed(estimator, found):
    config, located = estimator.model.config, []
    frames = [config.sole_frame(foot) for foot in config.feet]
    for source, ns, arguments in found:
        if source == 'joints':
            located += estimator.add_joints(ns, *arguments)
        elif source == 'base':
            located += estimator.add_base(ns, *arguments)
        else:
            foot, wrench = arguments
            located += estimator.add_wrench(foot, ns, wrench, frames[foot])
    return located


@pytest.fixture
def motion():
    return SwayingMotion(3)


@pytest.mark.parametrize(('source', 'sample_base'), [('imu', imu), ('odometry', odometry)])
def test_synchronized_states_are_the_truth_with_contacts_twist_and_wrenches(
        motion, source, sample_base):
    located = feed(synchronized(motion.model, source), samples(motion, 40, sample_base))
    assert [state.stamp_ns for state in located] == [START + 4 * MS * k for k in range(40)]
    offset = None
    for k, state in enumerate(located):
        t, truth = 0.004 * k, motion.base(0.004 * k)
        np.testing.assert_allclose(state.state.base.rotation, truth.rotation, atol=1e-9)
        offset = state.state.base.position - truth.position if offset is None else offset
        np.testing.assert_allclose(state.state.base.position - offset, truth.position, atol=1e-9)
        np.testing.assert_allclose(state.twist, motion.base_twist(t), atol=1e-5)
        assert state.stance.in_contact == LEFT and state.contacts_measured
        np.testing.assert_allclose(state.wrenches, wrenches(t))


def test_synchronized_states_do_not_depend_on_the_order_of_arrival(motion):
    """Topics overtake each other by up to six instants; the bits are the same."""
    found = samples(motion, 40)
    expected = feed(synchronized(motion.model), found)
    rng = np.random.default_rng(0)
    delay = {key: rng.integers(0, 6) for key in ('joints', 'base', 0, 1)}

    def arrival(entry):
        source, ns, arguments = entry
        return ns + 4 * MS * delay[arguments[0] if source == 'wrench' else source]
    located = feed(synchronized(motion.model), sorted(found, key=arrival))
    assert len(located) > 30
    for state, same in zip(located, expected):
        assert state.stamp_ns == same.stamp_ns
        np.testing.assert_array_equal(state.state.base.position, same.state.base.position)
        np.testing.assert_array_equal(state.twist, same.twist)
        assert state.wrenches == same.wrenches


@pytest.mark.parametrize('required', [True, False])
def test_without_wrenches_there_is_a_state_only_where_they_are_optional(motion, required):
    found = [entry for entry in samples(motion, 80) if entry[0] != 'wrench']
    located = feed(synchronized(motion.model, wrenches_required=required), found)
    assert bool(located) is not required
    for state in located:
        assert state.wrenches is None and not state.contacts_measured


def test_wrenches_of_any_frame_of_the_foot_are_moved_to_its_sole(motion):
    estimator, model = synchronized(motion.model), motion.model
    link = model.config.feet['left'].sole
    pose = (model.state(motion.joints(0.0)[0]).pose_in_base(link).inverse()
            @ motion.sole_in_base(0.0, 0))
    feed(estimator, [entry for entry in samples(motion, 1) if entry[0] != 'wrench'])
    moved = transform_wrench(pose.rotation, pose.position, wrenches(0.0)[0])
    assert not estimator.add_wrench(0, START, moved, link)
    located, = estimator.add_wrench(1, START, wrenches(0.0)[1], model.config.sole_frame('right'))
    np.testing.assert_allclose(located.wrenches, wrenches(0.0), atol=1e-12)
    with pytest.raises(ConfigurationError, match='not fixed to its sole'):
        estimator.add_wrench(0, START + MS, moved, model.config.base_link)
    with pytest.raises(UnknownNameError, match="unknown frame 'l_shoe'"):
        estimator.add_wrench(0, START + MS, moved, 'l_shoe')


def test_the_latest_mode_locates_at_once_and_propagates_the_orientation(motion):
    estimator = StateEstimator(motion.model, BaseSettings())
    estimator.add_base(START, *imu(motion, 0.5))
    assert not estimator.add_base(START, *imu(motion, 0.5))
    located, = estimator.add_joints(START + 2 * MS, motion.state(0.502))
    np.testing.assert_allclose(
        located.state.base.rotation, motion.base(0.502).rotation, atol=1e-5)
    still = motion.base(0.5).rotation
    assert np.abs(located.state.base.rotation - still).max() > 1e-4
    assert not located.contacts_measured


def test_contacts_that_arrive_late_are_taken_into_account(motion):
    """The robot changes feet; the message says so seven instants later."""
    history = ContactHistory(2, 0.5)
    estimator = StateEstimator(motion.model, BaseSettings(), contacts=history)
    history.add(START, LEFT)
    start = motion.sole_in_world.position.copy()
    for k in range(60):
        t, ns = 0.004 * k, START + 4 * MS * k
        if k == 30:
            motion.step_onto(1, t)
        if k == 37:
            history.add(START + 4 * MS * 30, (True, True))
            history.add(START + 4 * MS * 31, RIGHT)
        estimator.add_base(ns, *imu(motion, t))
        located, = estimator.add_joints(ns, motion.state(t))
        error = np.linalg.norm(located.state.base.position + start - motion.base(t).position)
        assert error < 1e-9 or 31 <= k < 37, k
    assert located.contacts_measured and located.stance.in_contact == RIGHT


def test_an_unknown_base_is_explained(motion):
    estimator = StateEstimator(motion.model, BaseSettings(timeout=0.1))
    assert not estimator.add_joints(START, motion.state(0.0))
    assert estimator.base.problem == 'nothing received yet from the IMU'
    estimator.add_base(START, *imu(motion, 0.0))
    assert not estimator.add_joints(START + 101 * MS, motion.state(0.101))
    assert 'the IMU differ by 0.101 s (base_timeout 0.1 s)' in estimator.base.problem
    assert estimator.add_joints(START + 100 * MS, motion.state(0.1))
    assert not estimator.base.problem
    estimator.use(BaseSettings(timeout=0.05))
    assert not estimator.add_joints(START + 102 * MS, motion.state(0.102))
    assert '(base_timeout 0.05 s)' in estimator.base.problem


def test_after_the_clock_was_set_back_the_world_starts_anew(motion):
    def estimator(*contacts):
        history = ContactHistory(2, 1e6)
        for ns, in_contact in contacts:
            history.add(ns, in_contact)
        return StateEstimator(motion.model, BaseSettings(), contacts=history)

    def at(some, ns, t):
        some.add_base(ns, *imu(motion, t))
        return some.add_joints(ns, motion.state(t))[0].state.base.position
    walking = estimator((START, LEFT), (START + MS, RIGHT))
    at(walking, START, 1.0)
    before = at(walking, START + MS, 1.5)
    again = at(walking, 10 * MS, 1.5)
    np.testing.assert_array_equal(again, at(estimator((0, RIGHT)), 10 * MS, 1.5))
    assert np.abs(again - before).max() > 1e-3


@pytest.mark.parametrize('legs_measure', [True, False])
def test_a_robot_that_has_lain_starts_at_the_origin_once_it_stands_on_all_feet(legs_measure):
    motion = SwayingMotion(3)
    history = ContactHistory(2, 1e6)
    estimator = StateEstimator(motion.model, BaseSettings(), contacts=history)

    def at(k, roll, contacts):
        ns = START + k * MS
        R = Rotation.from_euler('x', roll).as_matrix() @ motion.R_world_imu(0.0)
        history.add(ns, contacts)
        estimator.add_base(ns, Rotation.from_matrix(R).as_quat(), np.zeros(3))
        return estimator.add_joints(ns, motion.state(0.0))[0]
    at(0, 0.0, LEFT)
    lean = 1.5 if legs_measure else 0.4
    states = [at(1, lean, LEFT), at(2, lean, (False, False)), at(3, 0.0, LEFT),
              at(4, 0.0, (True, True)), at(5, 0.0, (True, True))]
    assert [state.restarted for state in states] == [
        False, False, False, legs_measure, False]


def test_a_fixed_base_and_a_transform(motion):
    fixed = StateEstimator(motion.model, BaseSettings(
        source='fixed', fixed_base=[1.0, 2.0, 3.0, 0.0, 0.0, 0.5]))
    located, = fixed.add_joints(START, motion.state(0.0))
    np.testing.assert_allclose(located.state.base.position, (1.0, 2.0, 3.0))
    assert not np.any(located.twist)
    tracked = StateEstimator(
        motion.model, BaseSettings(source='tf'), lookup=lambda ns: motion.base(0.3))
    located, = tracked.add_joints(START, motion.state(0.3))
    np.testing.assert_allclose(located.state.base.position, motion.base(0.3).position)
    with pytest.raises(ConfigurationError, match='needs a lookup'):
        StateEstimator(motion.model, BaseSettings(source='tf'))


def test_instants_wait_for_their_transform_in_turn_and_not_for_ever(motion):
    known = set()

    def lookup(ns):
        if ns not in known:
            raise InputError(f'no transform at {ns}')
        return motion.base(1e-9 * (ns - START))
    estimator = StateEstimator(
        motion.model, BaseSettings(source='tf', timeout=0.1), lookup=lookup)

    def add(ms):
        return [state.stamp_ns for state in estimator.add_joints(
            START + ms * MS, motion.state(1e-3 * ms))]
    assert not add(0) and not add(10) and not estimator.base.problem
    known |= {START, START + 20 * MS}
    assert add(20) == [START]  # the next one waits, and so does what comes after it
    known.add(START + 10 * MS)
    states = estimator.add_joints(START + 30 * MS, motion.state(0.03))
    assert [state.stamp_ns for state in states] == [START + 10 * MS, START + 20 * MS]
    np.testing.assert_allclose(states[0].state.com_in_world, motion.state(0.01).in_world(
        motion.base(0.01)).com_in_world)
    assert not add(129) and not estimator.base.problem
    assert not add(130)  # 100 ms after the one of 30 ms
    assert f'no transform at {START + 30 * MS}' in estimator.base.problem
    known.add(START + 5 * MS)
    assert add(5) == [START + 5 * MS]  # the clock was set back


def late(found, delay_ms):
    """Return samples whose wrenches say what was so long before their stamps."""
    return [(source, ns, (arguments[0], wrenches(1e-9 * (ns - START - delay_ms * MS))[
        arguments[0]]) if source == 'wrench' else arguments) for source, ns, arguments in found]


def test_wrenches_that_are_late_are_paired_with_the_joints_that_they_belong_to(motion):
    """All that is known by the wrench of 8 ms later is located, with the stamp of the joints."""
    found = late(samples(motion, 40), 8)
    located = feed(synchronized(motion.model, wrench_delay=0.008), found)
    assert [state.stamp_ns for state in located] == [START + 4 * MS * k for k in range(38)]
    for k, state in enumerate(located):
        np.testing.assert_allclose(state.wrenches, wrenches(0.004 * k))
    plain = feed(synchronized(motion.model), found)
    assert len(plain) == 40
    assert np.abs(np.array(plain[20].wrenches) - wrenches(0.08)).max() > 1e-3


def test_another_delay_counts_from_the_next_wrench_on(motion):
    found, estimator = samples(motion, 40), synchronized(motion.model)
    first = feed(estimator, found[:80])
    estimator.set_wrench_delay(0.004)
    assert len(first) == 20
    assert len(feed(estimator, found[80:])) in (18, 19)


def probabilities(k):
    """Return the probability of contact of each foot: a hysteresis decides, not one threshold."""
    return (1.0, 0.7, 0.5, 0.3, 0.5)[k % 5], (0.1, 0.55, 0.9, 0.45, 0.2)[k % 5]


def with_probabilities(motion, count):
    return samples(motion, count) + [
        ('probabilities', START + 4 * MS * k, (probabilities(k),)) for k in range(count)]


def feed_probabilities(estimator, found):
    located = []
    for entry in sorted(found, key=lambda entry: entry[1]):
        if entry[0] == 'probabilities':
            located += estimator.add_contact_probabilities(entry[1], *entry[2])
        else:
            located += feed(estimator, [entry])
    return located


def test_probabilities_decide_on_the_contacts_of_the_feet_that_have_them(motion):
    """The wrenches say that the left foot alone carries the robot."""
    located = feed_probabilities(
        synchronized(motion.model, probabilities=(True, True)), with_probabilities(motion, 10))
    expected = [LEFT, LEFT, (True, True), RIGHT, (False, False)]
    assert [state.stance.in_contact for state in located] == [
        *expected, LEFT, LEFT, (True, True), RIGHT, (False, False)]
    located = feed_probabilities(
        synchronized(motion.model, probabilities=(False, True)), with_probabilities(motion, 5))
    assert [state.stance.in_contact for state in located] == [
        LEFT, LEFT, (True, True), (True, True), LEFT]


def test_contacts_by_probabilities_do_not_depend_on_the_order_of_arrival(motion):
    found = with_probabilities(motion, 40)
    expected = feed_probabilities(synchronized(motion.model, probabilities=(True, True)), found)
    for late in ('probabilities', 'wrench', 'base'):
        shifted = sorted(found, key=lambda entry: entry[1] + 12 * MS * (entry[0] == late))
        estimator, located = synchronized(motion.model, probabilities=(True, True)), []
        for entry in shifted:
            located += (estimator.add_contact_probabilities(entry[1], *entry[2])
                        if entry[0] == 'probabilities' else feed(estimator, [entry]))
        assert len(located) == len(expected) == 40
        for state, same in zip(located, expected):
            assert state.stance.in_contact == same.stance.in_contact
            np.testing.assert_array_equal(state.state.base.position, same.state.base.position)


def test_without_probabilities_the_wrenches_decide(motion):
    located = feed(synchronized(motion.model, probabilities=(True, True)), samples(motion, 80))
    assert len(located) > 40
    assert {state.stance.in_contact for state in located} == {LEFT}


def test_covariances_belong_to_the_wrenches_of_their_stamps(motion):
    estimator, located = synchronized(motion.model, covariance=True), []
    for source, ns, arguments in samples(motion, 80):
        located += feed(estimator, [(source, ns, arguments)])
        if source == 'joints' and ns < START + 80 * MS:  # they arrive first
            located += estimator.add_wrench_covariance(ns, float(ns) * np.eye(12))
    assert len(located) > 30
    for state in located:
        if state.stamp_ns < START + 80 * MS:
            assert state.wrench_covariance[0, 0] == state.stamp_ns
    assert located[-1].wrench_covariance is None  # none comes any more: nothing waits for ever


def test_covariances_of_hands_belong_to_the_instants_of_their_stamps(motion):
    """Beside those of the feet."""
    estimator, located = synchronized(
        motion.model, covariance=True, hand_covariance=True), []
    for source, ns, arguments in samples(motion, 40):
        located += feed(estimator, [(source, ns, arguments)])
        if source == 'joints':
            located += estimator.add_hand_covariance(ns, float(ns) * np.eye(6))
            located += estimator.add_wrench_covariance(ns, 2.0 * ns * np.eye(12))
    assert len(located) > 10
    for state in located:
        assert state.hand_covariance[0, 0] == state.stamp_ns
        assert state.wrench_covariance[0, 0] == 2.0 * state.stamp_ns
        assert not state.hand_wrenches
