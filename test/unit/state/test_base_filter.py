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

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.state.base import BaseSettings
from biped_com_ros.core.state.base_filter import FilterSettings
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.small_robot import small_robot
from support.stance_motion import SwayingMotion

MS = 1_000_000
START = 1_000 * MS
H = 1e-3
NOT_LEVEL = FilterSettings(floor_deviation=0.0)


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
        before, here, after = (self.pose(t + s).position for s in (-H, 0.0, H))
        proper = (before - 2.0 * here + after) / H ** 2 + (0.0, 0.0, 9.81)
        R = self.pose(t).rotation
        return (Rotation.from_matrix(R).as_quat(), self.motion.gyro(t) + self.bias, proper @ R)


def wrench(model, share, centre):
    """Return a vertical force with its centre of pressure in the sole frame."""
    force = share * 9.81 * model.mass
    return np.array((0.0, 0.0, force, centre[1] * force, -centre[0] * force, 0.0))


def samples(motion, times, centres, shares=(1.0, 0.0), imu=None, imu_rate=1):
    """Return (key, stamp, arguments) of all samples of a motion at times, 2 ms apart."""
    found, imu = [], imu or Imu(motion)
    for t in times:
        ns = START + round(1e9 * t)
        found.append(('joints', ns, (motion.state(t),)))
        for part in range(imu_rate):
            early = 0.002 * part / imu_rate
            found.append(('base', ns - round(1e9 * early), imu(t - early)))
        found += [(foot, ns, (wrench(motion.model, share, centre(t)),))
                  for foot, (share, centre) in enumerate(zip(shares, centres))]
    return sorted(found, key=lambda sample: sample[1])


def feed(estimate, found):
    config, located = estimate.model.config, []
    frames = [config.sole_frame(foot) for foot in config.feet]
    for key, ns, arguments in found:
        if key == 'joints':
            located += estimate.add_joints(ns, *arguments)
        elif key == 'base':
            located += estimate.add_base(ns, *arguments)
        else:
            located += estimate.add_wrench(key, ns, *arguments, frames[key])
    return located


def middle(t):
    return 0.0, 0.0


def wandering(t):
    return 0.05 * np.sin(9.0 * t), 0.02 * np.cos(7.0 * t)


def times(seconds, since=0.0):
    return since + 0.002 * np.arange(round(seconds / 0.002))


def offset_of(located, motion, t):
    return located.state.base.position - motion.base(t).position


@pytest.mark.parametrize('imu_rate', [1, 3])
def test_above_a_sole_at_rest_pose_and_twist_are_the_truth(imu_rate):
    """Wherever the centre of pressure wanders meanwhile, and on a sole that is not level."""
    motion = SwayingMotion(3)
    located = feed(estimator(motion.model), samples(
        motion, times(0.6), (wandering, middle), imu_rate=imu_rate))
    assert len(located) == 300
    offset = offset_of(located[0], motion, 0.0)
    for k in range(200, 300, 20):
        t, state = 0.002 * k, located[k]
        truth = motion.base(t)
        np.testing.assert_allclose(state.state.base.rotation, truth.rotation, atol=2e-3)
        np.testing.assert_allclose(state.state.base.position - offset, truth.position, atol=2e-3)
        np.testing.assert_allclose(state.twist, motion.base_twist(t), atol=1.5e-2)
        assert state.stance.in_contact == (True, False)
        np.testing.assert_allclose(
            state.state.sole_placements_in_world[0, 3] - offset, motion.sole_in_world.position,
            atol=2e-3)


class Rolling(SwayingMotion):
    """The left sole tips over its toe; the edge stays where it is."""

    TOE = np.array((0.1, 0.0, 0.0))

    @property
    def sole_in_world(self):
        return self.sole_at(self.t)

    @sole_in_world.setter
    def sole_in_world(self, pose):
        self.flat = pose

    def sole_at(self, t):
        tip = Rotation.from_euler('y', 0.5 * (1.0 - np.cos(2.0 * t))).as_matrix()
        return self.flat @ Pose(tip, self.TOE - tip @ self.TOE)

    def base(self, t):
        self.t = t
        return super().base(t)


@pytest.mark.parametrize(('centre', 'largest'), [(lambda t: (0.1, 0.0), 4e-3), (middle, None)])
def test_a_foot_that_tips_over_its_toe_is_anchored_there(centre, largest):
    """By the middle of the sole the same base would be 20 mm off, and move at 0.1 m/s."""
    motion = Rolling(3)
    located = feed(estimator(motion.model), samples(motion, times(1.0), (centre, middle)))
    offset = offset_of(located[0], motion, 0.0)
    error = np.linalg.norm(
        located[-1].state.base.position - offset - motion.base(0.998).position)
    if largest is None:
        assert error > 0.02
    else:
        assert error < largest
        np.testing.assert_allclose(
            located[-1].twist.linear, motion.base_twist(0.998)[0], atol=0.04)


def steps(motion, count=4, seconds=0.4):
    """Return samples of steps from foot to foot; all joints rest where the feet change."""
    motion.rate = np.pi / seconds * np.ones_like(motion.rate)
    motion.phase = 0.5 * np.pi * np.ones_like(motion.phase)
    found, imu = [], Imu(motion)
    for step in range(count):
        since, foot = seconds * step, step % 2
        if step:
            motion.step_onto(foot, since)
        shares = (1.0, 0.0) if foot == 0 else (0.0, 1.0)
        found += samples(motion, times(seconds, since), (middle, middle), shares, imu)
    return found


def test_steps_do_not_move_the_world_and_distances_are_known():
    motion = SwayingMotion(4)
    found = steps(motion)
    located = feed(estimator(motion.model), found)
    beginning = SwayingMotion(4)
    steps(beginning, count=1)
    offset = offset_of(located[0], beginning, 0.0)
    error = located[-1].state.base.position - offset - motion.base(0.002 * 799).position
    deviation = np.sqrt(np.diag(located[-1].filtered.pose_covariance)[:3])
    assert np.linalg.norm(error) < 0.02 and (np.abs(error) < 4.0 * deviation).all()
    assert deviation.max() < 0.05
    # Nothing measures the heading: its uncertainty has grown.
    first, half, last = (located[k].filtered.pose_covariance[5, 5] for k in (0, 400, -1))
    assert first < half < last


def test_the_bits_do_not_depend_on_the_order_of_arrival():
    found = steps(SwayingMotion(5), count=2, seconds=0.2)
    expected = feed(estimator(small_robot()), found)
    rng = np.random.default_rng(0)
    delay = {key: rng.integers(0, 6) for key in ('joints', 'base', 0, 1)}
    shuffled = sorted(found, key=lambda sample: sample[1] + 2 * MS * delay[sample[0]])
    located = feed(estimator(small_robot()), shuffled)
    assert len(located) > 180
    for state, same in zip(located, expected):
        np.testing.assert_array_equal(state.state.base.position, same.state.base.position)
        np.testing.assert_array_equal(state.twist, same.twist)
        np.testing.assert_array_equal(state.filtered.covariance, same.filtered.covariance)


def standing(bias, seconds):
    """Return samples of a robot at rest on both feet, with a bias of the gyroscope."""
    motion = SwayingMotion(3)
    motion.amplitude = np.zeros_like(motion.amplitude)
    return motion, samples(motion, times(seconds), (middle, middle), (0.5, 0.5),
                           Imu(motion, bias))


def test_at_rest_the_bias_of_the_gyroscope_is_estimated_and_survives_a_reset():
    bias = np.array((0.011, -0.017, 0.014))
    motion, found = standing(bias, 2.6)
    estimate = estimator(motion.model)
    located = feed(estimate, found)
    known = located[-1].filtered
    turned = Rotation.from_matrix(
        located[-1].state.base.rotation @ located[0].state.base.rotation.T).magnitude()
    assert turned < 0.02  # 0.07 rad by the gyroscope alone
    np.testing.assert_allclose(known.gyro, np.zeros(3), atol=1e-3)
    assert np.diag(known.covariance[15:18, 15:18]).max() < 1e-3 ** 2
    again = feed(estimate, found[:40])  # the clock was set back
    assert again[0].restarted
    np.testing.assert_allclose(again[0].filtered.gyro, np.zeros(3), atol=1e-3)


def test_a_foot_that_slips_does_not_take_the_base_with_it():
    """The right foot jumps by 40 mm while the left one stands."""
    motion, found = standing(0.0, 0.8)
    jump = 0.3 * np.eye(len(motion.model.joint_names))[
        motion.model.joint_index(('right_ankle',))[0]]
    slipped = [(key, ns, (motion.model.state(motion.joints(0.0)[0] + jump, np.zeros_like(jump)),))
               if key == 'joints' and ns > START + 600 * MS else (key, ns, arguments)
               for key, ns, arguments in found]
    estimate = estimator(motion.model)
    located = feed(estimate, slipped)
    soles = [state.state.sole_placements_in_world[1, 3] for state in (located[290], located[-1])]
    moved = located[-1].state.base.position - located[290].state.base.position
    assert np.linalg.norm(soles[1] - soles[0]) > 0.01 > 5.0 * np.linalg.norm(moved)
    assert estimate.base.slips == 1


def displaced(motion, offset):
    """Return changes of the joints that move the right sole by an offset in the world, m."""
    model, rest, h = motion.model, motion.joints(0.0)[0], 1e-6
    index = model.joint_index(('right_hip_roll', 'right_knee', 'right_ankle'))

    def sole(change):
        row = model.state(rest + change).placements_in_base(model.soles)[1]
        return (motion.base(0.0) @ Pose(row[:3].T, row[3])).position
    units = np.eye(len(rest))[index]
    J = np.array([(sole(h * unit) - sole(-h * unit)) / (2.0 * h) for unit in units]).T
    return np.linalg.solve(J, offset) @ units


@pytest.mark.parametrize(('settings', 'is_right'), [
    (NOT_LEVEL, True), (FilterSettings(floor_deviation=0.0, sinking=0.02, settling=0.0), False)])
def test_a_foot_that_sinks_in_at_its_touch_down_does_not_move_the_base(settings, is_right):
    """By 6 mm in 20 ms, and it comes up again in the next 100 ms; the other one stands."""
    motion, _ = standing(0.0, 0.0)
    down = displaced(motion, np.array((0.0, 0.0, -0.006)))
    landed, found = 0.6, samples(motion, times(0.6), (middle, middle))
    for key, ns, arguments in samples(motion, times(0.3, landed), (middle, middle), (0.5, 0.5)):
        t = 1e-9 * (ns - START) - landed
        depth = np.interp(t, (0.0, 0.02, 0.12), (0.0, 1.0, 0.0))
        speed = (depth - np.interp(t - 1e-4, (0.0, 0.02, 0.12), (0.0, 1.0, 0.0))) / 1e-4
        found.append((key, ns, (motion.model.state(
            motion.joints(0.0)[0] + depth * down, speed * down),) if key == 'joints'
            else arguments))
    located = feed(estimator(motion.model, settings), found)
    heights = [state.state.base.position[2] for state in located]
    moved = np.abs(np.array(heights[300:]) - heights[295]).max()
    assert moved < 4e-4 if is_right else moved > 1e-3


def velocity_error(located, motion, t):
    return np.linalg.norm(located.twist.linear - motion.base_twist(t)[0])


def test_a_wrong_velocity_is_found_out_by_feet_that_never_agree_with_it():
    """After a shock of the accelerometer; feet that slip for so long would have felled a robot."""
    motion = SwayingMotion(3)
    shock = (np.zeros(4), np.zeros(3), np.array((300.0, -450.0, 80.0)))
    found = [(key, ns, tuple(a + b for a, b in zip(arguments, shock)))
             if key == 'base' and 500 * MS < ns - START <= 510 * MS else (key, ns, arguments)
             for key, ns, arguments in samples(motion, times(1.2), (middle, middle))]
    located = feed(estimator(motion.model), found)
    assert velocity_error(located[249], motion, 0.498) < 0.02
    assert velocity_error(located[350], motion, 0.7) > 1.0  # not at once: feet may slip
    assert velocity_error(located[450], motion, 0.9) < 0.05
    assert [state.restarted for state in located].count(True) == 2  # with the start


def test_a_swinging_foot_taken_for_one_at_rest_does_not_spoil_the_start():
    """As where the node is started, or its sensors return, in the middle of a walk."""
    motion, t = SwayingMotion(3), times(0.3)
    model, swing = motion.model, np.zeros(len(motion.model.joint_names))
    swing[model.joint_index(('right_hip_roll', 'right_knee'))] = 8.0, -6.0
    found = samples(motion, t, (middle, middle))
    first = [(key, ns, (model.state(motion.joints(0.0)[0], motion.joints(0.0)[1] + swing),))
             if key == 'joints' else (key, ns, (wrench(model, 0.5, (0.0, 0.0)),))
             if isinstance(key, int) else (key, ns, arguments)
             for key, ns, arguments in found if ns == START]
    located = feed(estimator(model), first + [sample for sample in found if sample[1] > START])
    assert velocity_error(located[0], motion, 0.0) > 0.5
    assert velocity_error(located[50], motion, 0.1) < 0.05


def test_without_wrenches_or_contacts_it_goes_on_with_a_growing_covariance():
    motion = SwayingMotion(3)
    estimate = estimator(motion.model)
    feed(estimate, samples(motion, times(0.5), (middle, middle)))
    falling = feed(estimate, samples(
        motion, times(0.4, 0.5), (middle, middle), shares=(0.0, 0.0)))
    first, last = (np.trace(state.filtered.twist_covariance[:3, :3])
                   for state in (falling[0], falling[-1]))
    assert last > 2.0 * first and falling[-1].twist is not None
    np.testing.assert_allclose(
        falling[-1].twist.linear, motion.base_twist(0.898)[0], atol=5.0 * last ** 0.5)


def test_the_filter_needs_synchronized_wrenches():
    with pytest.raises(ConfigurationError, match="'filter' needs the wrenches of the feet"):
        StateEstimator(small_robot(), BaseSettings(source='filter'))
