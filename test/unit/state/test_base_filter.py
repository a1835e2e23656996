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
"""The base by the invariant filter, against motion whose truth is known."""

import functools

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.state import base_filter
from biped_com_ros.core.state.base import BaseSettings
from biped_com_ros.core.state.base_filter import FilterSettings
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from scipy.spatial.transform import Rotation
from support.small_robot import small_robot
from support.stamped_samples import delayed, feed, MS, START
from support.stance_motion import SwayingMotion

H = 1e-3
NOT_LEVEL = FilterSettings(level_floor=False)


def estimator(model, settings=NOT_LEVEL):
    return StateEstimator(
        model, BaseSettings(source='filter', base_filter=settings),
        synchronized=SynchronizedSettings(
            wrenches=True, body_weight=9.81 * model.mass,
            thresholds=ContactThresholds(engage_dwell=0.0, release_dwell=0.0)))


class Imu:
    """What an IMU of a motion measures: orientation, gyroscope, accelerometer."""

    def __init__(self, motion, bias=0.0):
        self.motion, self.bias = motion, bias

    def pose(self, t):
        return self.motion.base(t) @ self.motion.state(t).pose_in_base(self.motion.imu)

    def __call__(self, t):
        before, here, after = (self.pose(t + s) for s in (-H, 0.0, H))
        R = here.rotation
        acceleration = (before.position - 2.0 * here.position + after.position) / H ** 2
        return (Rotation.from_matrix(R).as_quat(), self.motion.gyro(t) + self.bias,
                (acceleration + (0.0, 0.0, 9.81)) @ R)


def wrench(model, share, centre):
    """Return a vertical force with its centre of pressure in the sole frame."""
    force = share * 9.81 * model.mass
    return np.array((0.0, 0.0, force, centre[1] * force, -centre[0] * force, 0.0))


def middle(t):
    return 0.0, 0.0


def wandering(t):
    return 0.05 * np.sin(9.0 * t), 0.02 * np.cos(7.0 * t)


def samples(motion, times, centre=middle, shares=(1.0, 0.0), imu=None, imu_rate=1):
    """Return (key, stamp, arguments) of all samples of a motion at times, 2 ms apart."""
    found, imu = [], imu or Imu(motion)
    for t in times:
        ns = START + round(1e9 * t)
        found.append(('joints', ns, (motion.state(t),)))
        for part in range(imu_rate):
            early = 0.002 * part / imu_rate
            found.append(('base', ns - round(1e9 * early), imu(t - early)))
        found += [(foot, ns, (wrench(motion.model, share, (centre, middle)[foot](t)),))
                  for foot, share in enumerate(shares)]
    return sorted(found, key=lambda sample: sample[1])


def changed(found, changes, since_ms=-1, until_ms=10 ** 9):
    """Return samples with those in a time changed by functions of key, stamp and arguments."""
    return [(key, ns, changes[key](ns, *arguments) if key in changes
             and since_ms * MS < ns - START <= until_ms * MS else arguments)
            for key, ns, arguments in found]


def times(seconds, since=0.0):
    return since + 0.002 * np.arange(round(seconds / 0.002))


@functools.cache
def swaying(seconds):
    """Return a motion on the left sole and its samples."""
    motion = SwayingMotion(3)
    return motion, samples(motion, times(seconds))


def offset_of(located, motion, t):
    return located.state.base.position - motion.base(t).position


def velocity_error(located, motion, t):
    return np.linalg.norm(located.twist.linear - motion.base_twist(t)[0])


@pytest.mark.parametrize('imu_rate', [1, 3])
def test_above_a_sole_at_rest_pose_and_twist_are_the_truth(imu_rate):
    """Wherever the centre of pressure wanders meanwhile, and on a sole that is not level."""
    motion = SwayingMotion(3)
    located = feed(estimator(motion.model), samples(
        motion, times(0.6), wandering, imu_rate=imu_rate))
    assert len(located) == 300
    offset = offset_of(located[0], motion, 0.0)
    for k in range(200, 300, 20):
        t, state = 0.002 * k, located[k].state
        truth = motion.base(t)
        assert_allclose(state.base.rotation, truth.rotation, atol=2e-3)
        assert_allclose(state.base.position - offset, truth.position, atol=2e-3)
        assert_allclose(located[k].twist, motion.base_twist(t), atol=1.5e-2)
        assert located[k].stance.in_contact == (True, False)
        assert_allclose(state.sole_placements_in_world[0, 3] - offset,
                        motion.sole_in_world.position, atol=2e-3)


class Rolling(SwayingMotion):
    """The left sole tips over its toe; the edge stays where it is."""

    TOE = np.array((0.1, 0.0, 0.0))

    def base(self, t):
        tip = Rotation.from_euler('y', 0.5 * (1.0 - np.cos(2.0 * t))).as_matrix()
        tipped = self.sole_in_world @ Pose(tip, self.TOE - tip @ self.TOE)
        return tipped @ self.sole_in_base(t, self.foot).inverse()


@pytest.mark.parametrize(('centre', 'largest'), [(lambda t: (0.1, 0.0), 4e-3), (middle, None)])
def test_a_foot_that_tips_over_its_toe_is_anchored_there(centre, largest):
    """By the middle of the sole the same base would be 20 mm off, and move at 0.1 m/s."""
    motion = Rolling(3)
    first, *_, last = feed(estimator(motion.model), samples(motion, times(1.0), centre))
    error = np.linalg.norm(offset_of(last, motion, 0.998) - offset_of(first, motion, 0.0))
    if largest is None:
        assert error > 0.02
    else:
        assert error < largest
        assert_allclose(last.twist.linear, motion.base_twist(0.998)[0], atol=0.04)


def steps(motion, count=4, seconds=0.4):
    """Return samples of steps from foot to foot; all joints rest where the feet change."""
    motion.rate = np.pi / seconds * np.ones_like(motion.rate)
    motion.phase = 0.5 * np.pi * np.ones_like(motion.phase)
    found, start = [], motion.base(0.0).position
    for step in range(count):
        since, foot = seconds * step, step % 2
        if step:
            motion.step_onto(foot, since)
        shares = (1.0, 0.0) if foot == 0 else (0.0, 1.0)
        found += samples(motion, times(seconds, since), shares=shares)
    return found, start


def test_steps_do_not_move_the_world_and_distances_are_known():
    motion = SwayingMotion(4)
    found, start = steps(motion)
    located = feed(estimator(motion.model), found)
    offset = located[0].state.base.position - start
    error = offset_of(located[-1], motion, 0.002 * 799) - offset
    deviation = np.sqrt(np.diag(located[-1].filtered.pose_covariance)[:3])
    assert np.linalg.norm(error) < 0.02 and (np.abs(error) < 4.0 * deviation).all()
    assert deviation.max() < 0.05
    # Nothing measures the heading: its uncertainty has grown.
    first, half, last = (located[k].filtered.pose_covariance[5, 5] for k in (0, 400, -1))
    assert first < half < last


def test_the_bits_do_not_depend_on_the_order_of_arrival():
    found, _ = steps(SwayingMotion(5), count=2, seconds=0.2)
    rng = np.random.default_rng(0)
    late = delayed(found, {key: rng.integers(0, 6) for key in ('joints', 'base', 0, 1)}, 2 * MS)
    expected, located = (feed(estimator(small_robot()), each) for each in (found, late))
    assert len(located) > 180
    for state, same in zip(located, expected):
        assert_array_equal(state.state.base.position, same.state.base.position)
        assert_array_equal(state.twist, same.twist)
        assert_array_equal(state.filtered.covariance, same.filtered.covariance)


def standing(seconds, bias=0.0, shares=(0.5, 0.5), since=0.0):
    """Return samples of a robot at rest, with a bias of the gyroscope."""
    motion = SwayingMotion(3)
    motion.amplitude = np.zeros_like(motion.amplitude)
    measured, state = Imu(motion, bias)(0.0), motion.state(0.0)
    motion.state = lambda t: state
    return motion, samples(motion, times(seconds, since), shares=shares, imu=lambda t: measured)


def test_at_rest_the_bias_of_the_gyroscope_is_estimated_and_survives_a_reset():
    motion, found = standing(2.6, np.array((0.011, -0.017, 0.014)))
    estimate = estimator(motion.model)
    first, *_, last = feed(estimate, found)
    turned = last.state.base.rotation @ first.state.base.rotation.T
    assert Rotation.from_matrix(turned).magnitude() < 0.02  # 0.07 rad by the gyroscope alone
    assert_allclose(last.filtered.gyro, np.zeros(3), atol=1e-3)
    assert np.diag(last.filtered.covariance[15:18, 15:18]).max() < 1e-3 ** 2
    again = feed(estimate, found[:40])  # the clock was set back
    assert again[0].restarted
    assert_allclose(again[0].filtered.gyro, np.zeros(3), atol=1e-3)


def moved_joints(motion, changes, speeds=None):
    """Return the robot with joints that differ by some angles from those at rest."""
    names = tuple(changes)
    joints = np.zeros((2, len(motion.model.joint_names)))
    joints[0, motion.model.joint_index(names)] = list(changes.values())
    joints[1, motion.model.joint_index(names)] = list((speeds or {}).values()) or 0.0
    return motion.model.state(motion.joints(0.0)[0] + joints[0], joints[1])


def test_a_foot_that_slips_does_not_take_the_base_with_it():
    """The right foot jumps by 40 mm while the left one stands."""
    motion, found = standing(0.8)
    slipped = moved_joints(motion, {'right_ankle': 0.3})
    estimate = estimator(motion.model)
    located = feed(estimate, changed(found, {'joints': lambda ns, state: (slipped,)}, 600))
    before, after = located[290].state, located[-1].state
    moved = np.linalg.norm(after.base.position - before.base.position)
    sole = after.sole_placements_in_world[1, 3] - before.sole_placements_in_world[1, 3]
    assert np.linalg.norm(sole) > 0.01 > 5.0 * moved
    assert estimate.base.estimate.slips.count == 1


RIGHT_LEG = ('right_hip_roll', 'right_knee', 'right_ankle')


def displacing(motion, offset, h=1e-6):
    """Return angles of the right leg that move its sole by an offset in the world, m."""
    def sole(change):
        state = moved_joints(motion, dict(zip(RIGHT_LEG, change)))
        return motion.base(0.0).apply(state.placements_in_base(motion.model.soles)[1, 3])
    J = np.array([(sole(step) - sole(-step)) / (2.0 * h) for step in h * np.eye(3)]).T
    return np.linalg.solve(J, offset)


def test_a_foot_that_sinks_in_at_its_touch_down_does_not_move_the_base():
    """By 6 mm in 20 ms, and it comes up again in the next 100 ms; the other one stands."""
    motion, found = standing(0.6, shares=(1.0, 0.0))
    down = displacing(motion, np.array((0.0, 0.0, -0.006)))

    def sinking(ns, state):
        t = 1e-9 * (ns - START) - 0.6
        depth, before = (np.interp(at, (0.0, 0.02, 0.12), (0.0, 1.0, 0.0)) for at in (t, t - 1e-4))
        speed = (depth - before) / 1e-4
        return moved_joints(motion, dict(zip(RIGHT_LEG, depth * down)),
                            dict(zip(RIGHT_LEG, speed * down))),
    found = found + changed(standing(0.3, since=0.6)[1], {'joints': sinking})
    located = feed(estimator(motion.model), found)
    heights = [state.state.base.position[2] for state in located]
    assert np.abs(np.array(heights[300:]) - heights[295]).max() < 4e-4


def test_a_shock_of_the_accelerometer_counts_little():
    """It would change the velocity by 5 m/s; the difference to the samples around it shows it."""
    motion, found = swaying(1.2)
    shock = np.array((300.0, -450.0, 80.0))
    found = changed(found, {'base': lambda ns, q, gyro, acceleration: (
        q, gyro, acceleration + shock)}, 500, 510)
    located = feed(estimator(motion.model), found)
    assert velocity_error(located[249], motion, 0.498) < 0.02
    assert velocity_error(located[350], motion, 0.7) < 0.05
    assert velocity_error(located[450], motion, 0.9) < 0.05
    assert [state.restarted for state in located].count(True) == 1  # the start


def test_a_wrong_velocity_is_found_out_by_feet_that_never_agree_with_it():
    """After a push that no sensor felt: feet that slide for so long would have felled a robot."""
    motion, found = swaying(1.2)
    estimate = estimator(motion.model)
    located = feed(estimate, [sample for sample in found if sample[1] < START + 500 * MS])
    estimate.base.estimate.filter.restart_velocity(np.array((3.0, -2.0, 0.5)), 1e-3)
    located += feed(estimate, [sample for sample in found if sample[1] >= START + 500 * MS])
    assert velocity_error(located[252], motion, 0.504) > 1.0
    assert velocity_error(located[450], motion, 0.9) < 0.05


def test_a_swinging_foot_taken_for_one_at_rest_does_not_spoil_the_start():
    """As where the node is started, or its sensors return, in the middle of a walk."""
    motion, found = swaying(1.2)
    model, swing = motion.model, np.zeros(len(motion.model.joint_names))
    swing[model.joint_index(('right_hip_roll', 'right_knee'))] = 8.0, -6.0
    joints, speeds = motion.joints(0.0)
    half = wrench(model, 0.5, (0.0, 0.0))
    found = changed(found[:4 * 150], {'joints': lambda *_: (model.state(joints, speeds + swing),),
                                      0: lambda *_: (half,), 1: lambda *_: (half,)}, until_ms=0)
    located = feed(estimator(model), found)
    assert velocity_error(located[0], motion, 0.0) > 0.5
    assert velocity_error(located[50], motion, 0.1) < 0.05


def test_without_wrenches_or_contacts_it_goes_on_with_a_growing_covariance():
    motion, found = swaying(1.2)
    found = changed(found[:4 * 450], dict.fromkeys((0, 1), lambda ns, wrench: (0.0 * wrench,)),
                    499)
    falling = feed(estimator(motion.model), found)[250:]
    first, last = (np.trace(state.filtered.twist_covariance[:3, :3])
                   for state in (falling[0], falling[-1]))
    assert last > 2.0 * first and falling[-1].twist is not None
    assert_allclose(falling[-1].twist.linear, motion.base_twist(0.898)[0], atol=5.0 * last ** 0.5)


def with_imu(found, change, since_ms=-1, until_ms=10 ** 9):
    return changed(found, {'base': lambda ns, q, gyro, acceleration: (
        q, *change(gyro, acceleration))}, since_ms, until_ms)


@pytest.mark.parametrize(('change', 'words'), [
    (lambda gyro, acceleration: (gyro, acceleration / 9.81), 'it is in g'),
    (lambda gyro, acceleration: (gyro, -acceleration), 'sign is reversed'),
    (lambda gyro, acceleration: (gyro, 0.01 * acceleration), 'gravity was taken off'),
])
def test_nothing_is_estimated_by_an_accelerometer_that_is_wrong(change, words):
    """And all is well as soon as it is right."""
    motion, found = standing(1.0)
    estimate = estimator(motion.model)
    assert feed(estimate, with_imu(found, change)) == []
    assert words in estimate.base.problem
    located = feed(estimate, standing(1.0, since=1.1)[1])
    assert located and estimate.base.problem == '' and np.isfinite(
        located[-1].state.base.position).all()


def test_an_accelerometer_that_was_wrong_leaves_nothing_behind():
    """Of 8 m/s^2 for two seconds, then right; motion of the joints proves nothing."""
    motion, found = standing(4.0)
    estimate = estimator(motion.model)
    located = feed(estimate, with_imu(found, lambda gyro, acceleration: (
        gyro, acceleration * (8.0 / 9.81)), until_ms=2000))
    wrong = [one for one in located if 1100 * MS < one.stamp_ns - START < 2000 * MS]
    assert not wrong
    right = [one for one in located if one.stamp_ns - START > 2000 * MS]
    assert right[0].restarted and len(right) > 200
    assert max(np.linalg.norm(one.twist.linear) for one in right) < 0.02
    assert estimate.base.problem == ''


def test_what_is_not_used_is_counted_and_has_an_age(monkeypatch):
    """A floor of another height after a step, and a foot that slides."""
    motion = SwayingMotion(4)
    found, _ = steps(motion, count=2)
    monkeypatch.setattr(base_filter, '_FLOOR', 1e-4)
    estimate = estimator(motion.model, FilterSettings())
    feed(estimate, found)
    figures = estimate.base.figures
    assert figures['steps onto another height'] == 1.0
    assert 0.0 < figures['last step onto another height [s ago]'] < 0.4
    assert figures['slides'] == 0.0 and 'last slide [s ago]' not in figures


def test_a_slow_turn_on_both_feet_does_not_spoil_the_heading():
    """By 0.1 rad/s for two seconds, which neither joints nor accelerometer show."""
    motion, found = standing(5.0)
    found = with_imu(found, lambda gyro, acceleration: (
        gyro + acceleration / 98.1, acceleration), 2000, 4000)
    estimate = estimator(motion.model)
    first, *_, last = feed(estimate, found)
    turned = Rotation.from_matrix(last.state.base.rotation @ first.state.base.rotation.T)
    assert turned.as_rotvec() == pytest.approx((0.0, 0.0, 0.2), abs=5e-3)
    assert np.abs(last.filtered.gyro).max() < 1e-3


@pytest.mark.parametrize('keys', [('base',), ()])
def test_after_a_gap_of_the_joints_it_goes_on_from_where_the_robot_was(keys):
    """With the IMU it is propagated meanwhile; without, the place is less certain."""
    motion = SwayingMotion(4)
    found, _ = steps(motion)
    state = motion.state(1.6)
    motion.state = lambda t: state
    stands = samples(motion, times(1.2, since=1.6), shares=(0.0, 1.0))
    lost = [sample for sample in stands if sample[0] in keys]
    gap = START + 1700 * MS, START + 2400 * MS
    estimate = estimator(motion.model)
    before = feed(estimate, found + [sample for sample in stands if sample[1] < gap[0]])[-1]
    after = feed(estimate, [sample for sample in lost if gap[0] <= sample[1] < gap[1]]
                 + [sample for sample in stands if sample[1] >= gap[1]])[0]
    moved = after.state.base.position - before.state.base.position
    turned = after.state.base.rotation @ before.state.base.rotation.T
    first, last = (np.trace(one.filtered.pose_covariance[:2, :2]) for one in (before, after))
    assert np.linalg.norm(before.state.base.position) > 0.1 > 5.0 * np.linalg.norm(moved)
    assert abs(Rotation.from_matrix(turned).as_rotvec()[2]) < 0.02
    assert after.restarted == (not keys)
    assert last > first + (0.0 if keys else 0.1 ** 2)


def test_the_angular_velocity_is_as_uncertain_as_the_gyroscope_is_noisy():
    motion, found = standing(2.0)
    rng = np.random.default_rng(0)
    found = with_imu(found, lambda gyro, acceleration: (
        gyro + 0.02 * rng.normal(size=3), acceleration))
    located = feed(estimator(motion.model), found)[200:]
    errors = np.array([state.twist.angular for state in located])
    stated = np.mean([np.diag(state.filtered.twist_covariance)[3:] for state in located], axis=0)
    assert errors.var(axis=0) == pytest.approx(stated, rel=0.3)


def test_the_filter_needs_synchronized_wrenches():
    with pytest.raises(ConfigurationError, match="'filter' needs the wrenches of the feet"):
        StateEstimator(small_robot(), BaseSettings(source='filter'))
