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
"""Commands become setpoints that drives can follow."""

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.sim.setpoints import Setpoints, Trajectory
import numpy as np
import pytest
from support.sim_robot import make_plant

NECK, ELBOW = 'neck', 'elbow'


@pytest.fixture(scope='module')
def plant():
    return make_plant(tendons=True)


@pytest.fixture
def setpoints(plant):
    plant.reset()
    return Setpoints(plant)


def history(setpoints, joint, start, seconds):
    """Positions and velocities of one joint's setpoint during some time."""
    i = setpoints.names.index(joint)
    rows = []
    for k in range(round(seconds / 0.002)):
        command = setpoints.command(start + 0.002 * k)
        rows.append((command.position[i], command.velocity[i]))
    return np.array(rows).T


def positions_with(setpoints, **values):
    positions = setpoints.plant.hold().position.copy()
    for name, value in values.items():
        positions[setpoints.names.index(name)] = value
    return positions


def test_without_commands_the_start_is_held(setpoints, plant):
    command, hold = setpoints.command(1.0), plant.hold()
    for name, value in vars(hold).items():
        np.testing.assert_array_equal(getattr(command, name), value)


def test_a_stream_is_followed_smoothly_though_it_comes_irregularly(setpoints):
    """Commands along a ramp of 0.5 rad/s, some of them late, give that velocity nearly always."""
    rng, now, rows = np.random.default_rng(0), 0.0, []
    for k in range(60):
        setpoints.set_positions(positions_with(setpoints, neck=0.5 * now))
        wait = 0.01 if k < 40 else 0.002 * rng.integers(1, 10)
        rows.append(history(setpoints, NECK, now, wait))
        now += wait
    position, velocity = np.concatenate(rows, axis=1)
    np.testing.assert_allclose(velocity[100:200], 0.5, atol=0.06)
    np.testing.assert_allclose(velocity[200:], 0.5, atol=0.2)
    times = 0.002 * np.arange(1, len(position) + 1)
    # 2 / 60 s behind the commands, which are themselves half an interval old.
    np.testing.assert_allclose(position[100:200], 0.5 * (times[100:200] - 0.038), atol=0.003)
    np.testing.assert_allclose(np.diff(position), 0.002 * velocity[1:], atol=1.2e-4)


def test_a_lone_command_is_reached_without_overshoot_and_then_rests(setpoints):
    setpoints.set_positions(positions_with(setpoints, elbow=0.05))
    position, velocity = history(setpoints, ELBOW, 3.0, 0.6)
    assert position.max() <= 0.05 + 1e-12
    assert position[100] == pytest.approx(0.05, abs=1e-4)
    assert position[-1] == 0.05
    assert velocity[-1] == 0.0


def test_no_setpoint_is_faster_than_its_joint(setpoints):
    setpoints.set_positions(positions_with(setpoints, elbow=1.5))
    position, velocity = history(setpoints, ELBOW, 0.0, 0.8)
    assert velocity.max() == pytest.approx(10.0)  # The URDF's limit.
    assert np.diff(position).max() <= 0.002 * 10.0 + 1e-12
    assert position[-1] == pytest.approx(1.5)
    assert position.max() < 1.5 + 0.02


def test_a_trajectory_with_velocities_is_cubic():
    trajectory = Trajectory(np.array((0,)), np.array((1.0, 3.0)), np.array(((0.0,), (1.0,))),
                            np.array(((0.4,), (-0.2,))))
    at, h = trajectory.at, 1e-6
    np.testing.assert_allclose([at(1.0)[0][0], at(1.0)[1][0], at(3.0)[0][0]], (0.0, 0.4, 1.0))
    np.testing.assert_allclose(at(3.0 - 1e-9)[1], -0.2, atol=1e-6)
    for t in (1.2, 2.0, 2.9):
        np.testing.assert_allclose((at(t + h)[0] - at(t - h)[0]) / (2.0 * h), at(t)[1], atol=1e-8)
    # A cubic has a constant third derivative.
    thirds = np.diff([at(t)[0][0] for t in np.linspace(1.0, 3.0, 9)], 3)
    np.testing.assert_allclose(thirds, thirds[0], atol=1e-12)


def test_a_trajectory_of_some_joints_leaves_the_others(setpoints):
    setpoints.set_trajectory([ELBOW, NECK], (0.1, 0.3), [(0.2, -0.1), (0.4, 0.0)], None, 5.0)
    elbow, velocity = history(setpoints, ELBOW, 5.0, 0.4)
    assert elbow[49] == pytest.approx(0.2)
    assert elbow[99] == pytest.approx(0.3)
    assert elbow[-1] == pytest.approx(0.4)
    np.testing.assert_allclose((velocity[20], velocity[100], velocity[-1]), (2.0, 1.0, 0.0))
    np.testing.assert_array_equal(
        np.delete(setpoints.command(6.0).position, setpoints.names.index(ELBOW)),
        np.delete(positions_with(setpoints), setpoints.names.index(ELBOW)))


def test_positions_end_a_trajectory(setpoints):
    setpoints.set_trajectory([ELBOW], (1.0,), [(1.0,)], None, 0.0)
    history(setpoints, ELBOW, 0.0, 0.1)
    setpoints.set_positions(positions_with(setpoints, elbow=0.1))
    assert history(setpoints, ELBOW, 0.1, 0.6)[0][-1] == pytest.approx(0.1)


def last(setpoints, steps):
    """Return the command after some steps."""
    for k in steps:
        command = setpoints.command(0.002 * k)
    return command


def test_positions_leave_a_joint_that_is_not_theirs_where_the_trajectory_had_it(plant):
    plant.reset()
    setpoints = Setpoints(plant, [NECK])
    setpoints.set_trajectory([ELBOW], (0.2,), [(0.4,)], None, 0.0)
    elbow = plant.actuated_joint_names.index(ELBOW)
    reached = last(setpoints, range(50)).position[elbow]
    assert reached == pytest.approx(0.2)
    setpoints.set_positions(np.zeros(1))
    assert last(setpoints, range(50, 400)).position[elbow] == reached


@pytest.mark.parametrize('first', (0.0, 0.1))
def test_a_trajectory_that_starts_later_lets_the_joints_rest_until_then(setpoints, first):
    setpoints.set_trajectory([ELBOW], (first,), [(0.3,)], None, 0.2)
    elbow, velocity = history(setpoints, ELBOW, 0.0, 0.4)
    np.testing.assert_array_equal(elbow[:99], 0.0)
    np.testing.assert_array_equal(velocity[:99], 0.0)
    assert elbow[99 + round(first / 0.002)] == pytest.approx(0.3)
    assert velocity[-1] == 0.0


def test_a_late_trajectory_leads_on_from_where_the_joints_are(setpoints):
    """As if it had come in time, from its first knot on that is still to come."""
    history(setpoints, ELBOW, 0.0, 0.1)
    setpoints.set_trajectory([ELBOW], (0.2, 0.4), [(0.3,), (0.5,)], None, 0.0)
    late, _ = history(setpoints, ELBOW, 0.1, 0.1)
    np.testing.assert_allclose(np.diff(late, prepend=0.0), 0.006, atol=1e-9)
    assert late[-1] == pytest.approx(0.3)
    setpoints.set_trajectory([ELBOW], (0.05, 0.3), [(9.0,), (0.4,)], None, 0.0)
    assert setpoints.command(0.298).position[setpoints.names.index(ELBOW)] == pytest.approx(0.4)


def test_efforts_go_to_their_joints_in_the_requested_order(plant):
    plant.reset()
    names = plant.actuated_joint_names[::-1]
    setpoints = Setpoints(plant, names)
    efforts = np.arange(len(names), dtype=float)
    setpoints.set_efforts(efforts)
    np.testing.assert_array_equal(setpoints.command(0.0).effort, efforts[::-1])


def test_efforts_of_a_trajectory_are_added_until_the_next_one(setpoints):
    index = setpoints.plant.actuated_joint_names.index(ELBOW)
    setpoints.set_efforts(np.full(len(setpoints.names), 1.0))
    setpoints.set_trajectory([ELBOW], (0.2, 0.4), [(0.3,), (0.3,)], None, 0.0, [(2.0,), (3.0,)])
    efforts = np.array([setpoints.command(0.002 * k).effort.copy() for k in range(300)])
    times = 0.002 * np.arange(1, 301)
    np.testing.assert_allclose(
        efforts[:, index], 1.0 + np.interp(times, [0.0, 0.2, 0.4], [0.0, 2.0, 3.0]), atol=1e-9)
    np.testing.assert_array_equal(np.delete(efforts, index, axis=1), 1.0)
    setpoints.set_trajectory([ELBOW], (0.2,), [(0.1,)], None, 1.0)
    np.testing.assert_array_equal(setpoints.command(1.0).effort, 1.0)


def test_virtual_torso_joints_pull_tendons(plant):
    """Pitching forward shortens the tendon in front (0 deg) and lengthens that behind (180)."""
    plant.reset()
    setpoints = Setpoints(plant)
    start = plant.hold().tendon_lengths
    setpoints.set_trajectory(['torso_pitch'], (0.5,), [(0.2,)], None, 0.0)
    back, right, front, left = last(setpoints, range(260)).tendon_lengths - start
    assert back == pytest.approx(0.2 * 0.034, rel=0.02)
    assert front == pytest.approx(-0.2 * 0.034, rel=0.02)
    assert left == pytest.approx(right)
    setpoints.set_tendons(start)
    np.testing.assert_array_equal(setpoints.command(1.0).tendon_lengths, start)
    setpoints.set_positions(setpoints.command(1.0).position)  # Says nothing about tendons.
    np.testing.assert_array_equal(setpoints.command(1.0).tendon_lengths, start)


@pytest.mark.parametrize('arguments, message', [
    ((['elbow'], [1.0], [[np.nan]], None), 'positions of the trajectory are not finite'),
    ((['elbow'], [1.0, 0.5], [[0.0], [0.0]], None), 'must ascend from 0'),
    ((['elbow'], [-1.0], [[0.0]], None), 'must ascend from 0'),
    ((['elbow'], [1.0], [[0.0, 1.0]], None), 'one position for each of its 1 joints'),
    ((['elbow'], [], [], None), 'one position for each of its 1 joints'),
    ((['elbow'], [1.0], [[0.0]], [[0.0, 0.0]]), r'valid: \(1, 1\), or none'),
])
def test_bad_trajectories_are_refused(setpoints, arguments, message):
    before = setpoints.command(0.0).position.copy()
    with pytest.raises(InputError, match=message):
        setpoints.set_trajectory(*arguments, start=0.0)
    np.testing.assert_array_equal(setpoints.command(2.0).position, before)


@pytest.mark.parametrize('error, message, method, arguments', [
    (UnknownNameError, "did you mean 'elbow'", 'set_trajectory',
     (['elbo'], [1.0], [[0.0]], None, 0.0)),
    (InputError, 'positions: 3 values; valid: 14', 'set_positions', (np.zeros(3),)),
    (InputError, 'efforts of neck are not finite', 'set_efforts', None),
    (InputError, 'has 4 tendons, not 3', 'set_tendons', (np.zeros(3),)),
    (InputError, 'must be within half of', 'set_tendons', (np.zeros(4),))])
def test_bad_commands_are_refused(setpoints, error, message, method, arguments):
    bad = np.where(np.array(setpoints.names) == NECK, np.inf, 0.0)
    with pytest.raises(error, match=message):
        getattr(setpoints, method)(*arguments or (bad,))
    with pytest.raises(UnknownNameError, match="'antenna'"):
        Setpoints(setpoints.plant, ['antenna'])
