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

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.gravity.joint_trajectory import joint_trajectory, JointTrajectory
from biped_com_ros.core.gravity.reference import (
    GoalCheck, Outcome, PositionReference, prevent_overshoot, Tolerance, tolerances, UNKNOWN_SPEED)
import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicHermiteSpline

NAMES = ('hip', 'knee', 'ankle', 'slide')
LOWER, UPPER = np.array([-1.0, -2.0, -0.5, -np.inf]), np.array([1.0, 0.0, 0.5, np.inf])
FAST = np.full(4, np.inf)
START = np.array([0.1, -0.2, 0.05, 3.0])


def reference(max_velocity=FAST, start=START):
    """Return a reference that holds its start since 10 s."""
    result = PositionReference(NAMES, LOWER, UPPER, max_velocity)
    result.begin(start, 10.0)
    return result


def trajectory(joints=('knee', 'hip'), times=(1.0, 2.0), positions=((-0.5, 0.3), (-1.0, 0.8)),
               velocities=((), ()), accelerations=((), ())):
    return joint_trajectory(joints, times, positions, velocities, accelerations)


def test_linear_cubic_and_quintic_segments_are_those_of_an_independent_library():
    rng = np.random.default_rng(3)
    times = np.array([0.0, 0.4, 1.5, 1.7])
    q, v, a = rng.normal(size=(3, 4, 2))
    v[-1] = a[-1] = 0.0
    at = np.linspace(0.0, 1.699, 50)
    for velocities, accelerations, oracle in (
            (None, None, lambda t: np.stack([np.interp(t, times, q[:, i]) for i in (0, 1)])),
            (v, None, CubicHermiteSpline(times, q, v)),
            (v, a, BPoly.from_derivatives(times, np.stack((q, v, a), axis=1)))):
        motion = JointTrajectory(joints=('hip', 'knee'), times=times, positions=q,
                                 velocities=velocities, accelerations=accelerations)
        np.testing.assert_allclose([motion.at(t)[0] for t in at], [oracle(t) for t in at],
                                   atol=1e-12)
        if velocities is not None:
            slopes = oracle.derivative()
            np.testing.assert_allclose([motion.at(t)[1] for t in at],
                                       [slopes(t) for t in at], atol=1e-10)
    np.testing.assert_array_equal(motion.at(9.0)[0], q[-1])
    assert not motion.at(9.0)[1].any()


def test_a_trajectory_begins_where_the_joints_are_commanded():
    ref = reference()
    ref.follow(trajectory(velocities=((0.0, 0.0), (0.0, 0.0))), 10.0, 10.0)
    times = np.linspace(10.0, 11.0, 101)
    way = np.array([ref.at(t)[0] for t in times])
    np.testing.assert_allclose(way[0], START)
    np.testing.assert_allclose(way[-1], [0.3, -0.5, 0.05, 3.0])
    speeds = np.array([ref.at(t)[1] for t in times])
    np.testing.assert_allclose(speeds[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.gradient(way, times, axis=0)[1:-1], speeds[1:-1], atol=1e-3)


def test_a_stamp_to_come_leaves_time_until_the_first_point():
    ref = reference()
    ref.follow(trajectory(times=(0.0, 1.0)), 12.0, 10.0)
    np.testing.assert_allclose(ref.at(11.0)[0][:2], [0.2, -0.35])  # half way to the first point
    np.testing.assert_allclose(ref.at(12.0)[0][:2], [0.3, -0.5])
    np.testing.assert_allclose(ref.at(12.5)[0][:2], [0.55, -0.75])


def test_a_stamp_in_the_past_skips_what_is_past_but_not_the_velocity_limit():
    ref = reference(max_velocity=np.full(4, 0.5))
    ref.follow(trajectory(times=(0.0, 1.0)), 9.5, 10.0)
    np.testing.assert_allclose(ref.at(10.0)[0][:2], [0.55, -0.75])
    previous, _ = ref.command(10.0, 0.0)
    np.testing.assert_allclose(previous, START)
    for k in range(1, 400):
        positions, velocities = ref.command(10.0 + 0.01 * k, 0.0)
        assert np.abs(positions - previous).max() <= 0.5 * 0.01 + 1e-12
        assert np.abs(velocities).max() <= 0.5 + 1e-12
        previous = positions
    np.testing.assert_allclose(previous[:2], [0.8, -1.0])
    assert not velocities.any()


def test_the_continuation_is_what_is_commanded_later_within_the_limits():
    ref = reference()
    ref.follow(trajectory(times=(1.0, 2.0)), 10.0, 10.0)
    ref.command(11.0, 0.02)
    positions, velocities = ref.continuation(np.array([11.02, 11.04, 11.5, 12.5]))
    for time, position, velocity in zip((11.04, 11.5, 12.5), positions, velocities):
        np.testing.assert_allclose((position, velocity), ref.at(time))
    np.testing.assert_allclose(ref.command(11.48, 0.02)[0], positions[1])
    ref = reference(max_velocity=np.full(4, 0.5))
    ref.hold(('hip',), np.array((0.8,)))
    first, _ = ref.command(10.01, 0.02)
    positions, velocities = ref.continuation(np.array([10.03, 10.13, 20.0, 20.1]))
    assert positions[0, 0] - first[0] == pytest.approx(0.05)
    np.testing.assert_allclose(positions[1:, 0], 0.8)
    assert velocities[0, 0] == pytest.approx(0.5) and velocities[2, 0] == 0.0
    np.testing.assert_array_equal(ref.clamp(START + 100.0)[:3], UPPER[:3])


def message_of(ref, now, brake=0.2):
    """Return times, positions and velocities of the points that are sent at a time."""
    ahead = 0.02 * np.arange(1, 6)
    first = ref.command(now, ahead[0])
    later = ref.continuation(now + ahead)
    positions, velocities = (np.vstack((one, rest)) for one, rest in zip(first, later))
    last = ref.clamp(positions[-1] + 0.5 * brake * velocities[-1])
    return (np.append(ahead, ahead[-1] + brake), np.vstack((positions, last)),
            np.vstack((velocities, np.zeros(4))))


def test_curves_of_a_controller_do_not_pass_the_target_or_a_limit():
    """A step of the reference, followed at 7 rad/s; a cubic between the points overshoots."""
    target, farthest, in_all = 0.937, {False: -1.0, True: -1.0}, {False: -1.0, True: -1.0}
    for prevented in farthest:
        ref = reference(max_velocity=np.full(4, 7.0), start=np.array([-0.9, -0.2, 0.05, 3.0]))
        ref.hold(('hip',), np.array((target,)))
        for now in np.arange(10.01, 10.6, 0.01):
            times, positions, velocities = message_of(ref, now)
            if prevented:
                prevent_overshoot(times, positions, velocities)
            curve = CubicHermiteSpline(times, positions[:, 0], velocities[:, 0])
            farthest[prevented] = max(
                farthest[prevented], curve(np.linspace(times[0], times[-2], 200)).max())
            # Without another message it brakes, maybe beyond the target, but not beyond the limit.
            in_all[prevented] = max(
                in_all[prevented], curve(np.linspace(times[0], times[-1], 300)).max())
    assert farthest[False] > target + 0.002 and farthest[True] <= target + 1e-12
    assert in_all[False] > UPPER[0] + 0.1 and in_all[True] <= UPPER[0] + 1e-12


def test_a_motion_that_comes_to_rest_smoothly_is_left_as_it_is():
    times = np.linspace(0.0, 1.0, 11)
    s = times[:, np.newaxis]
    positions = 0.4 * (10.0 * s ** 3 - 15.0 * s ** 4 + 6.0 * s ** 5) * (1.0, -1.0)
    velocities = 0.4 * (30.0 * s ** 2 - 60.0 * s ** 3 + 30.0 * s ** 4) * (1.0, -1.0)
    # Then a constant deceleration, as at the end of each message.
    times, velocities[5] = np.append(times[:6], times[5] + 0.2), velocities[5]
    positions = np.vstack((positions[:6], positions[5] + 0.1 * velocities[5]))
    velocities = np.vstack((velocities[:6], np.zeros(2)))
    before = velocities.copy()
    prevent_overshoot(times, positions, velocities)
    np.testing.assert_array_equal(velocities, before)
    velocities[:-1] *= -1.0  # away from where it comes to rest
    prevent_overshoot(times, positions, velocities)
    assert not velocities[-2].any()


def test_joints_that_a_new_trajectory_does_not_name_go_on():
    ref = reference()
    first = ref.follow(trajectory(times=(1.0, 2.0)), 10.0, 10.0)
    second = ref.follow(trajectory(('hip',), (1.0,), ((0.0,),), ((),), ((),)), 11.0, 11.0)
    assert first.is_replaced and not second.is_replaced
    np.testing.assert_allclose(ref.at(11.5)[0], [0.15, -0.75, 0.05, 3.0])
    third = ref.follow(trajectory(('hip', 'knee'), (1.0,), ((0.2, -0.1),), ((),), ((),)),
                       11.5, 11.5)
    assert second.is_replaced and ref.motions == [third]
    ref.command(20.0, 0.0)
    assert not ref.motions
    np.testing.assert_allclose(ref.at(21.0)[0], [0.2, -0.1, 0.05, 3.0])


def test_braking_takes_the_velocity_evenly_to_zero():
    ref = reference()
    motion = ref.follow(trajectory(), 10.0, 10.0)
    before, speed = ref.at(11.5)
    motion.brake(11.5, 0.2)
    np.testing.assert_allclose(ref.at(11.5)[0], before)
    np.testing.assert_allclose(ref.at(11.6)[1], 0.5 * speed)
    np.testing.assert_allclose(ref.at(11.7)[0], before + 0.1 * speed)


def test_positions_stay_within_limits_except_where_the_robot_was():
    start = np.array([1.3, -0.2, 0.05, 3.0])
    ref = reference(start=start)
    np.testing.assert_allclose(ref.command(10.01, 0.02)[0], start)  # no jump to the limit
    for positions in ((0.0, -2.1), (0.0, 0.5)):
        with pytest.raises(InputError, match="'knee' is beyond"):
            ref.hold(('hip', 'knee'), np.array(positions))
    # A cubic overshoots between points that are allowed.
    ref.begin(START, 10.0)
    ref.follow(trajectory(('ankle',), (1.0, 2.0), ((0.45,), (0.45,)), ((2.0,), (0.0,)),
                          ((), ())), 10.0, 10.0)
    assert max(ref.at(t)[0][2] for t in np.linspace(11.0, 12.0, 50)) > 0.6
    way = np.array([ref.command(10.0 + 0.01 * k, 0.0)[0][2] for k in range(300)])
    assert way.max() == pytest.approx(0.5) and way[-1] == pytest.approx(0.45)


@pytest.mark.parametrize('change, text', [
    ({'joints': ('hip', 'hip')}, 'each once'),
    ({'joints': ()}, 'each once|for 0'),
    ({'times': (1.0, 1.0)}, 'ascend'),
    ({'times': (-1.0, 1.0)}, 'ascend'),
    ({'positions': ((1.0,), (0.0, 1.0))}, 'point 0 has 1 positions'),
    ({'positions': ((np.nan, 0.0), (0.0, 0.0))}, 'positions of the trajectory are not finite'),
    ({'velocities': ((0.0, 0.0), ())}, 'only some points have velocities'),
    ({'velocities': ((0.0, 0.0), (0.0,))}, '1 velocities for 2'),
    ({'velocities': ((0.0, 0.0), (0.0, 0.1))}, 'last point'),
    ({'accelerations': ((0.0, 0.0), (0.0, 0.1))}, 'need velocities'),
    ({'times': (), 'positions': (), 'velocities': (), 'accelerations': ()}, 'no points'),
])
def test_invalid_trajectories_are_refused(change, text):
    with pytest.raises(InputError, match=text):
        trajectory(**change)


def test_a_refused_trajectory_changes_nothing():
    ref = reference()
    ref.follow(trajectory(), 10.0, 10.0)
    expected = ref.at(11.3)[0]
    with pytest.raises(UnknownNameError, match='elbow'):
        ref.follow(trajectory(('hip', 'elbow')), 11.0, 11.0)
    with pytest.raises(InputError, match=r'ended 1\.000 s ago'):
        ref.follow(trajectory(), 8.0, 11.0)
    with pytest.raises(InputError, match='beyond its limits'):
        ref.follow(trajectory(positions=((-0.5, 0.3), (-1.0, 1.2))), 11.0, 11.0)
    with pytest.raises(InputError, match='finite'):
        ref.hold(('hip',), np.array([np.nan]))
    np.testing.assert_array_equal(ref.at(11.3)[0], expected)


def check_of(path=0.0, goal=0.0):
    ref = reference()
    motion = ref.follow(trajectory(), 10.0, 10.0)
    joints = motion.trajectory.joints
    return ref, GoalCheck(motion, tolerances(joints, path), tolerances(joints, goal), 1.0)


def outcome(check, time, *positions):
    """Return the outcome with errors of the positions of knee and hip."""
    return check.check(time, np.zeros((2, 2)), np.array([positions, (0.0, 0.0)]))


def test_a_goal_is_reached_only_within_its_tolerance_and_if_its_joints_are_not_taken_over():
    ref, check = check_of(goal=0.02)
    assert outcome(check, 11.9, 0.5, 0.5) is Outcome.RUNNING  # the path has no tolerance
    assert outcome(check, 12.1, 0.0, 0.021) is Outcome.RUNNING
    assert outcome(check, 13.1, 0.0, -0.021) is Outcome.NOT_REACHED
    assert "position error of 'hip' is 0.021, tolerance 0.02" in check.reason
    ref.hold(('ankle',), np.array([0.2]))
    assert outcome(check, 12.1, -0.019, 0.019) is Outcome.REACHED
    ref.hold(('knee',), np.array([-0.2]))
    assert outcome(check, 11.0, 0.0, 0.0) is Outcome.REPLACED
    _, check = check_of(path=0.1)
    assert outcome(check, 10.5, 0.09, 0.0) is Outcome.RUNNING
    assert outcome(check, 10.5, -0.11, 0.0) is Outcome.OFF_PATH
    assert "'knee'" in check.reason


def test_tolerances_of_a_goal_replace_the_defaults():
    given = (Tolerance('knee', -1.0, 0.5), Tolerance('hip', 0.3, 0.0))
    np.testing.assert_array_equal(tolerances(('hip', 'knee'), 0.1, given),
                                  [[0.3, np.inf], [np.inf, 0.5]])
    np.testing.assert_array_equal(tolerances(('hip', 'knee'), 0.0), np.full((2, 2), np.inf))
    with pytest.raises(InputError, match='elbow'):
        tolerances(('hip',), 0.1, (Tolerance('elbow', 0.1, 0.0),))
    with pytest.raises(InputError, match='not finite'):
        tolerances(('hip',), 0.1, (Tolerance('hip', np.nan, 0.0),))


def test_joints_without_a_velocity_limit_have_a_speed_that_no_drive_is_harmed_by():
    result = reference(max_velocity=np.array([2.0, np.inf, np.inf, np.inf]))
    result.command(10.0, 0.02)
    result.hold(['hip', 'ankle'], np.array([0.9, -0.5]))
    before = START
    for k in range(1, 60):
        positions, velocities = result.command(10.0 + 0.01 * k, 0.02)
        assert abs(positions - before)[0] <= 0.02 + 1e-12
        assert abs(positions - before).max() <= 0.01 * UNKNOWN_SPEED + 1e-12
        assert abs(velocities).max() <= UNKNOWN_SPEED
        before = positions
    np.testing.assert_allclose(before[[0, 2]], (0.9, -0.5))
