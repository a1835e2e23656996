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
"""Feedback of a gait: what its increments do, by the robot's own kinematics."""

from dataclasses import replace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import rotation_about
from biped_com_ros.core.legs.balance import BalanceSettings, stepping
from biped_com_ros.core.legs.corrected_motion import CorrectedMotion
from biped_com_ros.core.legs.feedback import GaitFeedback, WalkMeasurement
from biped_com_ros.core.legs.gait import Gait, GaitOptions, walk
from biped_com_ros.core.legs.player import RemainingMotion
from biped_com_ros.core.legs.stance_ik import StanceIk
from biped_com_ros.core.model.robot import velocity_limits
import numpy as np
import pytest

DT = 0.02
SLOPE = rotation_about(1, 0.12) @ rotation_about(0, -0.05)


@pytest.fixture(scope='module')
def gait(model):
    return Gait(StanceIk(model, model.posture('stand')), [], GaitOptions(dt=0.02))


def soles_of(gait, increments):
    """Return poses (2, 4, 3) of the soles in the base."""
    model = gait.model
    return model.state(gait.positions[0] + increments).placements_in_base(model.soles)


def on_ground(gait, increments, ground, yaw=0.7):
    """Return the measurement of a robot whose left sole is flat on the ground."""
    model = gait.model
    row = soles_of(gait, increments)[0]
    R_world_base = rotation_about(2, yaw) @ ground @ row[:3]
    soles = soles_of(gait, increments)
    state = model.state(gait.positions[0] + increments)
    wrenches = np.zeros((2, 6))
    middle = state.com_in_base - soles[:, 3].mean(axis=0)
    for wrench, sole in zip(wrenches, soles):
        # The centre of mass stands above the centre of pressure.
        along = R_world_base @ middle
        point = sole[:3] @ R_world_base.T @ np.array((along[0], along[1], 0.0))
        force = 0.5 * GRAVITY * model.mass
        wrench[2], wrench[3], wrench[4] = force, force * point[1], -force * point[0]
    return WalkMeasurement(gait.positions[0] + increments, R_world_base, wrenches)


def follow(feedback, gait, ground, count):
    for _ in range(count):
        feedback.update(DT, 0.0, on_ground(gait, feedback.increments, ground))
    return feedback.increments


def test_on_a_slope_the_robot_becomes_upright_over_the_same_soles(gait):
    feedback = GaitFeedback(gait, BalanceSettings(sole_gain=0.0))
    assert np.abs(on_ground(gait, np.zeros(len(gait.positions[0])), SLOPE)
                  .R_world_base[2, :2]).max() > 0.1  # it leans with the ground
    increments = follow(feedback, gait, SLOPE, 400)
    before, soles = soles_of(gait, 0.0)[:, 3], soles_of(gait, increments)
    for row in soles:  # with an upright base, the soles lie on the ground
        np.testing.assert_allclose(row[:3].T, SLOPE, atol=2e-3)
    apart = [np.linalg.norm(right - left) for left, right in (before, soles[:, 3])]
    assert apart[1] == pytest.approx(apart[0], abs=1e-6)
    coms = [gait.model.state(gait.positions[0] + one).com_in_base for one in (0.0, increments)]
    assert (coms[1] - soles[:, 3].mean(axis=0))[:2] == pytest.approx(
        (coms[0] - before.mean(axis=0))[:2], abs=3e-3)


def test_on_level_ground_nothing_changes(gait):
    feedback = GaitFeedback(gait, BalanceSettings())
    assert np.abs(follow(feedback, gait, np.eye(3), 50)).max() < 1e-6
    assert np.abs(feedback.dcm_error).max() < 1e-6


def test_pressure_ahead_moves_the_centre_of_mass_ahead(gait):
    feedback = GaitFeedback(gait, BalanceSettings(sole_gain=0.0))
    for _ in range(15):
        measured = on_ground(gait, np.zeros_like(feedback.increments), np.eye(3))
        measured.wrenches[:, 4] -= 0.03 * measured.wrenches[:, 2]
        feedback.update(DT, 0.0, measured)
    moved = soles_of(gait, feedback.increments)[:, 3] - soles_of(gait, 0.0)[:, 3]
    assert feedback.com_shift[0] > 1e-3
    assert moved == pytest.approx(np.tile((*-feedback.com_shift, 0.0), (2, 1)), abs=1e-5)


@pytest.mark.parametrize('stale', (None, 'not finite'))
def test_increments_fade_out_without_measurements(gait, stale):
    feedback = GaitFeedback(gait, BalanceSettings())
    assert np.abs(follow(feedback, gait, SLOPE, 150)).max() > 0.05
    measured = on_ground(gait, feedback.increments, SLOPE)
    if stale:
        measured.wrenches[0, 2] = np.nan
    for _ in range(400):
        feedback.update(DT, 0.0, measured if stale else None)
    assert np.abs(feedback.increments).max() < 2e-3


@pytest.mark.parametrize('scale', (1e4, 1e308))
@pytest.mark.parametrize('settings', (BalanceSettings(), stepping(0.15)))
def test_whatever_is_measured_increments_are_limited(gait, settings, scale):
    settings = replace(settings, max_increment=0.1, max_increment_rate=0.5)
    feedback, rng = GaitFeedback(gait, settings), np.random.default_rng(3)
    legs = np.concatenate([gait.model.joint_index(gait.model.config.groups[name])
                           for name in ('left_leg', 'right_leg')])
    for _ in range(60):
        before = feedback.increments.copy()
        feedback.update(DT, 0.0, WalkMeasurement(
            rng.normal(size=len(before)), rotation_about(1, rng.normal()),
            rng.normal(scale=scale, size=(2, 6))))
        assert np.isfinite(feedback.increments).all()
        assert np.abs(feedback.increments - before).max() <= 0.5 * DT + 1e-12
        assert np.abs(feedback.increments).max() <= 0.1
    assert not np.delete(feedback.increments, legs).any()
    before = feedback.increments.copy()
    feedback.update(10.0, 0.0, None)  # after a gap
    assert np.abs(feedback.increments - before).max() <= 0.5 * 0.05 + 1e-12


def test_in_the_air_nothing_changes(gait):
    feedback = GaitFeedback(gait, BalanceSettings())
    held = follow(feedback, gait, SLOPE, 300).copy()
    measured = on_ground(gait, held, SLOPE)
    measured.wrenches[:] = 0.0
    for _ in range(20):
        feedback.update(DT, 0.0, measured)
    assert feedback.increments == pytest.approx(held, abs=0.01)


# -- trajectories


@pytest.fixture(scope='module')
def steps(model):
    """Return a gait of two steps, the right foot first."""
    return walk(model, 2, 0.05, options=GaitOptions(dt=0.02))


def leaning(gait, increments, time, roll, edge=1.0):
    """Return a robot that turns about the outer (1) or inner (-1) edge of its left sole."""
    model, positions = gait.model, gait.at(time).positions + increments
    left = model.state(positions).placements_in_base(model.soles)[0]
    R_world_base = rotation_about(2, 0.4) @ rotation_about(0, roll) @ left[:3]
    force = GRAVITY * model.mass
    edge *= max(y for _, y in model.config.feet['left'].polygon)
    wrenches = np.array(((0.0, 0.0, force, force * edge, 0.0, 0.0), np.zeros(6)))
    return WalkMeasurement(positions, R_world_base, wrenches)


def tip_inwards(gait, roll, *feedbacks):
    """
    Let a robot turn over the inner edge of its left foot while the right one swings.

    By a roll as a function of the time since its start; return the last measurement.
    """
    phase = gait.swings[0]
    for time in np.arange(phase.start + 0.1, phase.end - 0.05, DT):
        for feedback in feedbacks:
            measured = leaning(gait, np.zeros_like(feedback.increments), time,
                               roll(time - phase.start), -1.0)
            feedback.update(DT, time, measured)
    return measured


def test_the_foot_in_the_air_stays_level_while_the_robot_leans(steps):
    """Its height over the ground is that of the plan, although the robot turns about an edge."""
    phase = steps.swings[0]
    time, roll = 0.6 * phase.start + 0.4 * phase.end, -0.12
    feedback = GaitFeedback(steps, stepping(0.05, sole_gain=0.0, max_wait=1e-3))
    for _ in range(20):
        measured = leaning(steps, feedback.increments, time, roll)
        feedback.update(DT, time, measured)
    measured = leaning(steps, feedback.increments, time, roll)
    rows = steps.model.state(measured.positions).placements_in_base(steps.model.soles)
    R, edge = measured.R_world_base, np.array((0.0, 0.04, 0.0))
    on_edge = R @ (edge @ rows[0, :3] + rows[0, 3])
    right = R @ rows[1, 3] - on_edge
    assert (R @ rows[1, :3].T)[2, 2] == pytest.approx(1.0, abs=1e-3)
    assert right[2] == pytest.approx(steps.plan.soles(time)[1, 2], abs=2e-3)
    assert (R @ rows[0, :3].T)[2, 2] < 0.995  # the stance foot is held


def test_a_foot_that_should_have_landed_does_not_draw_back_from_a_robot_that_leans_on_it(steps):
    phase, roll = steps.swings[0], 0.05
    feedback = GaitFeedback(steps, stepping(0.05, sole_gain=0.0, max_wait=1e-3))
    for time in (*np.arange(phase.start + 0.1, phase.end, DT), *[phase.end + DT] * 5):
        # It turns over the inner edge of the left foot as soon as the right one should stand.
        feedback.update(DT, time, leaning(
            steps, feedback.increments, time, roll * (time > phase.end), -1.0))
    measured = leaning(steps, feedback.increments, time, roll)
    rows = steps.model.state(measured.positions).placements_in_base(steps.model.soles)
    edge = np.array((0.0, -0.04, 0.0)) @ rows[0, :3] + rows[0, 3]
    # A rigid robot's is down by the roll times the 70 mm from the edge; one that draws back, not.
    assert (measured.R_world_base @ (rows[1, 3] - edge))[2] < -0.7 * roll * 0.07


def test_a_robot_that_rocks_from_foot_to_foot_is_not_driven(gait):
    """Where both soles should stand and one does, its pressure is not where joints put it."""
    shifts = []
    for settings in (BalanceSettings(), stepping(0.05)):
        feedback = GaitFeedback(gait, settings)
        for _ in range(20):
            measured = on_ground(gait, np.zeros_like(feedback.increments), np.eye(3))
            measured.wrenches[0] *= 2.0
            measured.wrenches[1] = 0.0
            feedback.update(DT, 0.0, measured)
        shifts.append(float(np.hypot(*feedback.com_shift)))
    assert shifts[0] > 1e-3 and shifts[1] == 0.0


def test_a_foot_that_has_far_to_go_is_held_up_only_while_it_is_measured(steps):
    far, near = (GaitFeedback(steps, stepping(0.1, step_gain=gain, max_step_speed=0.1))
                 for gain in (0.7, 0.0))
    measured = tip_inwards(steps, lambda t: 0.2 * t ** 2, far, near)

    def raised(R_world_base):
        """Return by how much the foot that has far to go is higher, m."""
        near_z, far_z = ((R_world_base @ soles_of(
            steps, measured.positions - steps.positions[0] + feedback.increments)[1, 3])[2]
            for feedback in (near, far))
        return far_z - near_z

    assert raised(measured.R_world_base) > 0.003
    for _ in range(150):
        for feedback in (far, near):
            feedback.update(DT, steps.swings[0].end - 0.05 - DT, None)
    assert raised(np.eye(3)) == pytest.approx(0.0, abs=1e-3)  # as the gait has the base


def on_heels(gait, increments, time, shares):
    """Return the measurement of a robot that has turned about its heels, as its base is held."""
    positions = gait.at(time).positions + increments
    heel = min(x for x, _ in gait.model.config.feet['left'].polygon)
    forces = GRAVITY * gait.model.mass * np.array(shares)
    wrenches = np.zeros((2, 6))
    wrenches[:, 2], wrenches[:, 4] = forces, -heel * forces
    return WalkMeasurement(positions, rotation_about(2, 0.7) @ rotation_about(1, -0.15), wrenches)


def tilts_of_soles(gait, measured):
    rows = gait.model.state(measured.positions).placements_in_base(gait.model.soles)
    return [float(np.arccos(min((measured.R_world_base @ row[:3].T)[2, 2], 1.0))) for row in rows]


@pytest.mark.parametrize('has_tipped', (False, True))
def test_soles_that_came_to_stand_on_their_heels_turn_to_the_ground(steps, has_tipped):
    """Not those of a robot that did not turn about an edge before: it stands on a slope."""
    feedback = GaitFeedback(steps, stepping(0.05, sole_gain=0.0, start_time=DT))
    landing, tilts = steps.swings[0].end, []
    for _ in range(has_tipped):
        feedback.update(DT, landing - 1e-3,
                        on_heels(steps, feedback.increments, landing - 1e-3, (1.0, 0.0)))
    for _ in range(12):
        measured = on_heels(steps, feedback.increments, landing, (0.5, 0.5))
        feedback.update(DT, landing, measured)
        tilts.append(tilts_of_soles(steps, measured))
    assert min(tilts[0]) > 0.1
    if not has_tipped:
        assert min(tilts[-1]) > 0.1
        return
    assert max(tilts[-1]) < 0.07
    # While it comes upright, no pressure moves its centre of mass, and the walk waits.
    shift = feedback.com_shift.copy()
    for _ in range(5):
        measured = on_heels(steps, feedback.increments, landing, (0.5, 0.5))
        row = steps.model.state(measured.positions).placements_in_base(steps.model.soles)[0]
        measured.wrenches[:, 4] *= -1.0
        feedback.update(DT, landing, measured._replace(R_world_base=row[:3]))
    np.testing.assert_allclose(feedback.com_shift, shift, atol=1e-3)
    assert feedback.rate == 0.0


def test_without_step_adjustment_the_foot_in_the_air_leans_with_the_robot(steps):
    phase = steps.swings[0]
    time = 0.5 * (phase.start + phase.end)
    feedback = GaitFeedback(steps, BalanceSettings(sole_gain=0.0))
    for _ in range(3):
        feedback.update(DT, time, leaning(steps, feedback.increments, time, -0.12))
    assert not feedback.step_offsets.any() and feedback.rate == 1.0 and feedback.is_on_plan


def test_a_push_to_the_side_of_the_foot_in_the_air_moves_it_there(steps):
    feedback = GaitFeedback(steps, stepping(0.1))
    tip_inwards(steps, lambda t: 0.6 * t ** 2, feedback)  # faster and faster
    assert feedback.step_offsets[1, 1] < -0.02 and not feedback.step_offsets[0].any()
    assert feedback.rate > 1.0 and not feedback.is_on_plan  # it lands earlier, too
    feedback.update(DT, steps.swings[0].end, None)
    assert feedback.step_offsets[1, 1] < -0.02  # the foot stays where it landed


def planned():
    times = np.arange(0.0, 2.001, 0.04)
    waves = [np.sin(np.outer(times, (1.0, 2.0)) + 0.5 * np.pi * k) * np.array((1.0, 2.0)) ** k
             for k in range(3)]
    waves[1][-1] = 0.0
    return RemainingMotion(times, *waves)


def value(motion, time):
    """Return positions by the cubic polynomials that a controller uses."""
    k = min(int(np.searchsorted(motion.times, time, side='right')) - 1, len(motion.times) - 2)
    h = motion.times[k + 1] - motion.times[k]
    s = (time - motion.times[k]) / h
    basis = ((1 + 2 * s) * (1 - s) ** 2, h * s * (1 - s) ** 2, s * s * (3 - 2 * s),
             h * s * s * (s - 1))
    return sum(b * v for b, v in zip(basis, (
        motion.positions[k], motion.velocities[k], motion.positions[k + 1],
        motion.velocities[k + 1])))


def test_a_trajectory_that_arrives_late_continues_the_last_one():
    corrected, before = CorrectedMotion(planned(), 0, 1.0), None
    assert corrected.is_neutral
    for k in range(1, 20):
        corrected.add(0.02 * np.array((1 - np.cos(0.2 * k), np.sin(0.1 * k))), DT)
        motion = corrected.trajectory(k * 20_000_000, DT)
        if before is not None:  # up to one period later both say the same
            for late in (0.0, 0.25 * DT, 0.75 * DT):
                assert value(motion, late) == pytest.approx(value(before, DT + late), abs=2e-5)
        before = motion
    assert not corrected.is_neutral


@pytest.mark.parametrize('wait, ns, rate, at', (
    (300_000_000, 1_000_000_000, 0.5, 0.7), (300_000_000, 1_000_000_000, 0.0, 0.7),
    (-100_000_000, 500_000_000, 1.6, 0.6)))
def test_a_motion_that_waits_goes_on_later_and_slower_one_that_hurries_earlier(wait, ns, rate, at):
    corrected, plan = CorrectedMotion(planned(), 0, 1.0), planned()
    corrected.add(np.array((0.0, 0.0)), DT)
    corrected.wait(wait)
    motion = corrected.trajectory(ns, DT, rate)
    assert motion.positions[0] == pytest.approx(value(plan, at), abs=1e-5)
    at += 2.0 * rate * DT  # 2 periods later
    assert motion.positions[2] == pytest.approx(value(plan, at), abs=1e-5)
    assert rate or not motion.velocities[:3].any()
    assert (np.diff(motion.times) > 0.0).all() and not motion.velocities[-1].any()
    assert motion.positions[-1] == pytest.approx(plan.positions[-1], abs=1e-12)
    if rate > 1.0:  # afterwards at full rate, from where it was then
        assert value(motion, 0.5) == pytest.approx(value(plan, at + 0.5 - 2.0 * DT), abs=1e-4)


def test_a_walk_hurries_as_much_as_its_joints_can(steps):
    limited, free = (GaitFeedback(steps, stepping(0.1, max_rate=rate)) for rate in (1.3, 50.0))
    tip_inwards(steps, lambda _: 0.3, limited, free)
    assert limited.rate == pytest.approx(1.3)
    fastest = np.abs(steps.velocities).max(axis=0)
    assert (free.rate * fastest / velocity_limits(steps.model)).max() == pytest.approx(1.0)


def test_a_trajectory_ends_at_rest_where_the_plan_ends():
    corrected, plan = CorrectedMotion(planned(), 0, 1.0), planned()
    for _ in range(4):
        corrected.add(np.array((0.1, -0.2)), DT)
    for ns in (500_000_000, 1_900_000_000, 3_000_000_000):
        motion = corrected.trajectory(ns, DT)
        assert (np.diff(motion.times) > 0.0).all() and motion.times[0] == 0.0
        assert motion.positions[0] == pytest.approx(
            value(plan, min(1e-9 * ns, 2.0)) + (0.1, -0.2), abs=1e-5)
        assert motion.positions[-1] == pytest.approx(plan.positions[-1], abs=1e-12)
        assert not motion.velocities[-1].any()
        assert motion.times[-1] >= 1.0
