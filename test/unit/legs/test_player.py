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
"""Requests to walk, pause and stop become motions that end where the robot can stand."""

import copy
from dataclasses import replace
from xml.etree import ElementTree

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.legs.gait import GaitOptions, QUICK
from biped_com_ros.core.legs.player import WalkPlayer, WalkRequest, WalkState
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

DT = 0.02
ANKLES = ('l_ankle_pitch', 'r_ankle_pitch')
HIPS = ('l_hip_roll', 'r_hip_roll')
STEP = WalkRequest(count=1, length=0.05)


@pytest.fixture
def player(model):
    return WalkPlayer(model, lead=0.1)


@pytest.fixture(scope='module')
def planned(model):
    """Return three quick steps, planned once."""
    return WalkPlayer(model, lead=0.1).plan(
        WalkRequest(count=3, length=0.05, options=QUICK), model.posture())


@pytest.fixture(scope='module')
def planned_step(model):
    """Return a quasi-static step, planned once."""
    return WalkPlayer(model, lead=0.1).plan(STEP, model.posture())


@pytest.fixture
def walking(player, planned_step):
    """Return a player of a quasi-static step."""
    player.begin(copy.copy(planned_step))
    return player


def play(player, duration):
    return [player.advance(DT) for _ in range(round(duration / DT))]


def soles(model, positions):
    return model.state(positions).placements_in_base(model.soles)[:, 3]


def changed(model, change):
    """Return the robot of a URDF of which a function has changed elements."""
    robot = ElementTree.fromstring(model.urdf)
    change(robot)
    return RobotModel(model.config, ElementTree.tostring(robot, encoding='unicode'))


def test_a_walk_names_the_ankle_that_bends_too_little_and_what_helps(model, planned):
    needed = planned.gait.positions[:, model.joint_index(ANKLES)].min()

    def limit_ankles(robot):
        for name in ANKLES:
            robot.find(f"joint[@name='{name}']/limit").set('lower', str(needed + 0.01))

    stiff = changed(model, limit_ankles)
    request = WalkRequest(count=3, length=0.05, options=QUICK)
    with pytest.raises(InputError, match=r'_ankle_pitch at .*lower the hips less \(crouch\)'):
        WalkPlayer(stiff).plan(request, stiff.posture())
    lower = replace(request, options=replace(QUICK, crouch=0.5 * model.config.walking.crouch))
    assert WalkPlayer(stiff).plan(lower, stiff.posture()).gait.duration > 0.0


def test_hips_that_hardly_turn_inwards_carry_the_weight_nearer_to_the_other_foot(model, planned):
    rolls = planned.gait.positions[:, model.joint_index(HIPS)]
    assert planned.gait.inward == 0.1
    inwards = rolls[np.abs(rolls).argmax(axis=0), range(2)]

    def limit_hips(robot):
        for name, needed in zip(HIPS, inwards):
            robot.find(f"joint[@name='{name}']/limit").set(
                'lower' if needed < 0.0 else 'upper', str(0.9 * needed))

    stiff = changed(model, limit_hips)
    gait = WalkPlayer(stiff).plan(
        WalkRequest(count=3, length=0.05, options=QUICK), stiff.posture()).gait
    assert gait.inward == 0.3
    apart = [np.ptp(each.zmp_reference[:, 1]) for each in (planned.gait, gait)]
    half_width = 0.5 * np.ptp(np.array(model.config.feet['left'].polygon)[:, 1])
    assert apart[0] - apart[1] == pytest.approx(2.0 * 0.2 * half_width, abs=1e-6)


def test_steps_too_long_are_refused_as_before(model):
    with pytest.raises(InputError, match='lower the hips or step shorter'):
        WalkPlayer(model).plan(WalkRequest(count=2, length=0.11), model.posture())


def test_the_remaining_motion_is_what_is_played(walking, model):
    player = walking
    remaining = player.remaining_motion(DT)
    made = play(player, remaining.times[-1] + 0.1)
    count = len(remaining.times)
    assert remaining.positions[1:] == pytest.approx(
        np.array([sample.positions for sample in made[:count - 1]]), abs=1e-9)
    assert remaining.positions[:5] == pytest.approx(
        np.tile(model.posture(), (5, 1)), abs=1e-9)  # the lead
    assert not remaining.velocities[-1].any()
    middle = 0.5 * DT * (remaining.velocities[1:] + remaining.velocities[:-1])
    assert np.diff(remaining.positions, axis=0) == pytest.approx(middle, abs=2e-4)
    gain = 0.5 * DT * (remaining.accelerations[1:] + remaining.accelerations[:-1])
    assert np.diff(remaining.velocities, axis=0) == pytest.approx(gain, abs=0.03)
    assert player.state is WalkState.STANDING and player.step == (1, 1)
    left, right = soles(model, made[-1].positions)
    assert right[0] - left[0] == pytest.approx(0.05, abs=1e-9)


def test_from_one_foot_ahead_the_rear_one_goes_next(walking, model):
    player = walking
    ahead = play(player, 6.0)[-1].positions
    where = player.origin.apply(soles(model, ahead)[1])
    player.begin(player.plan(STEP, ahead))
    assert player.advance(0.0).positions == pytest.approx(ahead, abs=1e-9)
    after = play(player, 6.0)[-1].positions
    left, right = soles(model, after)
    assert left[0] - right[0] == pytest.approx(0.05, abs=1e-9)
    # In the world the foot that stood has not moved, though each walk has a world of its own.
    assert player.origin.apply(soles(model, after)[1])[:2] == pytest.approx(where[:2], abs=1e-9)
    standing = model.state(model.posture()).placements_in_base(model.soles)[:, 3, 2]
    assert soles(model, after)[:, 2] == pytest.approx(standing, abs=1e-9)  # no lower than before


def test_a_walk_does_not_begin_with_a_jump(player, model, planned):
    """A reset, or a hand, may move the legs while a walk is planned, which takes seconds."""
    moved = model.posture()
    moved[model.joint_index(['torso_x'])] += 1.0  # what is no leg may move
    player.require_start(planned, moved, 0.05)
    moved[model.joint_index(['r_knee'])] += 0.06
    with pytest.raises(InputError, match="'r_knee' moved by 0.06 rad .* plan it again"):
        player.require_start(planned, moved, 0.05)
    moved[model.joint_index(['r_knee'])] = np.nan
    with pytest.raises(InputError):
        player.require_start(planned, moved, 0.05)


@pytest.mark.parametrize('time', (0.05, 1.0, 1.6, 1.9, 2.5, 3.2))
def test_a_stop_ends_on_both_soles_and_the_robot_stands_up(player, model, planned, time):
    player.begin(copy.copy(planned))
    before = play(player, time)[-1]
    player.stop()
    assert player.state is WalkState.STOPPING
    remaining = player.remaining_motion(DT)
    assert remaining.positions[0] == pytest.approx(before.positions, abs=1e-9)
    assert remaining.times[-1] < 1.6
    sample = play(player, remaining.times[-1] + DT)[-1]
    assert player.has_stopped and all(sample.in_contact)
    assert sample.positions == pytest.approx(remaining.positions[-1], abs=1e-9)
    player.begin(player.plan_standing_up())
    assert player.state is WalkState.STOPPING
    assert player.advance(0.0).positions == pytest.approx(sample.positions, abs=1e-9)
    after = play(player, 3.0)[-1]
    assert player.state is WalkState.STANDING
    feet = soles(model, sample.positions)
    up = soles(model, after.positions)
    assert up[1] - up[0] == pytest.approx(feet[1] - feet[0], abs=1e-9)
    height = soles(model, model.posture())[:, 2]
    assert up[:, 2] == pytest.approx(height, abs=1e-9) and (feet[:, 2] > height - 1e-9).all()
    assert not after.velocities.any()


def test_the_remaining_motion_of_a_pause_and_of_resuming_is_played(walking):
    play(walking, 2.63)
    walking.pause()
    assert walking.state is WalkState.PAUSING
    remaining = walking.remaining_motion(DT)
    coarse = walking.remaining_motion(0.05)
    assert coarse.positions[-1] == pytest.approx(remaining.positions[-1], abs=1e-9)
    held = [walking.advance(0.007) for _ in range(200)][-1]  # other steps of time, the same end
    assert walking.state is WalkState.PAUSED
    assert held.positions == pytest.approx(remaining.positions[-1], abs=1e-9)
    walking.resume()
    remaining = walking.remaining_motion(DT)
    assert remaining.positions[:5] == pytest.approx(np.tile(held.positions, (5, 1)), abs=1e-9)
    assert play(walking, 1.0)[24].positions == pytest.approx(remaining.positions[25], abs=1e-9)
    assert walking.state is WalkState.WALKING


@pytest.mark.parametrize('paused_for', (0.3, 1.0))
def test_a_stop_of_a_pause_on_one_foot_puts_the_other_one_down(walking, paused_for):
    """Also while the pause brakes."""
    play(walking, 2.6)
    walking.pause()
    assert not all(play(walking, paused_for)[-1].in_contact)
    assert walking.state is (WalkState.PAUSED if paused_for == 1.0 else WalkState.PAUSING)
    walking.stop()
    assert walking.state is WalkState.STOPPING
    remaining = walking.remaining_motion(DT)
    sample = play(walking, remaining.times[-1] + DT)[-1]
    assert all(sample.in_contact) and walking.has_stopped
    assert sample.positions == pytest.approx(remaining.positions[-1], abs=1e-9)


@pytest.mark.parametrize('is_stopping', (False, True))
def test_a_halt_is_wherever_it_is_and_the_next_walk_needs_a_posture(
        walking, planned_step, is_stopping):
    """Also while a stop is still pending when the robot falls."""
    play(walking, 2.6)
    if is_stopping:
        walking.stop()
    walking.halt()
    sample = play(walking, 1.0)[-1]
    assert not all(sample.in_contact) and walking.state is WalkState.HALTED
    with pytest.raises(InputError, match='does not stand in its posture'):
        walking.plan(STEP, sample.positions + 0.2)
    walking.begin(copy.copy(planned_step))  # the robot has been put on its feet again
    assert walking.state is WalkState.WALKING
    walking.abandon()
    assert walking.state is WalkState.HALTED and walking.progress == 1.0
    with pytest.raises(InputError, match='halted, no motion remains'):
        walking.remaining_motion(DT)


@pytest.mark.parametrize('options, tolerance', ((GaitOptions(), 1e-4), (QUICK, 5e-4)),
                         ids=('static', 'preview'))
def test_the_true_centre_of_mass_is_what_is_moved(player, model, options, tolerance):
    """A robot whose weight is off: the whole gait shifts against it, but where it stands."""
    offset = np.array((0.006, -0.004))
    request = WalkRequest(count=1, length=0.05, options=options)
    plain = player.plan(request, model.posture()).gait
    shifted = player.plan(request, model.posture(), offset).gait
    middle = len(plain.times) // 2
    time = plain.times[middle]
    assert shifted.plan.zmp(time) == pytest.approx(plain.plan.zmp(time), abs=1e-9)
    coms = [sample.base.apply(model.state(sample.positions).com_in_base)[:2]
            for sample in (plain.at(time), shifted.at(time))]
    assert coms[1] - coms[0] == pytest.approx(-offset, abs=tolerance)
    for k in (0, -1):
        assert shifted.positions[k] == pytest.approx(plain.positions[k], abs=1e-6)
    error = shifted.zmp - shifted.zmp_reference
    assert np.abs(error).max() < 1.2 * np.abs(plain.zmp - plain.zmp_reference).max() + 1e-4


def test_arms_stay_where_they_are_and_their_weight_counts(player, model):
    measured, arms = model.posture(), model.group_index('left_arm')
    measured[arms] += 0.3
    gait = player.plan(STEP, measured).gait
    assert gait.positions[:, arms] == pytest.approx(np.tile(measured[arms], (len(gait.times), 1)))
    assert gait.com[0] == pytest.approx(model.state(measured).com_in_base[:2], abs=1e-9)


def test_requests_in_another_state_are_refused(player, model, planned_step):
    for request, words in ((player.pause, 'standing, there is nothing to pause'),
                           (player.resume, 'nothing to resume'),
                           (player.plan_standing_up, 'stands up after a stop')):
        with pytest.raises(InputError, match=words):
            request()
    player.stop()
    assert player.state is WalkState.STANDING
    player.begin(copy.copy(planned_step))
    with pytest.raises(InputError, match='stop it before the next walk'):
        player.plan(STEP, model.posture())
    measured, joint = model.posture(), player.leg_joints[3]
    measured[joint] += 0.2
    with pytest.raises(InputError, match=f"'{model.joint_names[joint]}' is at .* rad instead of"):
        WalkPlayer(model).plan(STEP, measured)


def test_it_plans_with_inertials_that_were_calibrated_meanwhile(model):
    def scale_masses(robot):
        for element in (*robot.iter('mass'), *robot.iter('inertia')):
            for key, value in element.items():
                element.set(key, repr(1.1 * float(value)))

    player, before = WalkPlayer(RobotModel(model.config, model.urdf)), model.mass
    for urdf, mass in ((model.urdf, before), (changed(model, scale_masses).urdf, 1.1 * before)):
        player.use_inertials(urdf)
        assert player.model.mass == pytest.approx(mass, rel=1e-12)
    assert player.plan_stance(model.posture()).model.mass == pytest.approx(1.1 * before)
