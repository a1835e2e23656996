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
"""
The demo robot walks in the simulator, which knows nothing of the model that planned the walk.

Its zero-moment point, soles and forces are MuJoCo's. Only the efforts that hold the weight are
fed forward; no sensor is looked at, except with feedback.
"""

from dataclasses import replace
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.legs.balance import BalanceSettings, MAX_TILT_ACCELERATION, stepping
from biped_com_ros.core.legs.footsteps import StepTiming
from biped_com_ros.core.legs.gait import GaitOptions, QUICK, single_step, walk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from examples.stepping import LENGTH, MASS_SIGMA, row, SEEDS, StepRecord, Walker
from examples.stepping_figures import draw
import numpy as np
import pytest


@pytest.fixture(scope='module')
def step(model):
    return single_step(model, LENGTH)


@pytest.fixture(scope='module')
def record(model, step):
    return Walker(model).walk(step)


@pytest.fixture(scope='module')
def quick(model):
    return walk(model, 10, LENGTH, options=QUICK)


def assert_good(record, gait, feet_down):
    """Hold to the issue: margin above zero, slip below 1 mm, reference within 10 mm rms."""
    assert not record.has_fallen
    assert len(record.slips()) == feet_down and max(record.slips()) < 0.5e-3
    assert not np.isnan(record.margins).any() and record.margins.min() > 0.015
    assert record.zmp_rms.max() < 0.010
    assert record.placement_error(gait) < 0.004


def test_single_step(record, step):
    assert_good(record, step, 3)
    assert record.zmp_rms.max() < 0.004 and record.placement_error(step) < 0.5e-3
    # The right foot really was in the air, and the left one carried all.
    swings = (step.plan.phases[1].start + 0.2 < record.times) & (
        record.times < step.plan.phases[1].end - 0.2)
    assert (record.forces[swings, 1] == 0.0).all()
    assert record.soles[swings, 1, 3, 2].max() == pytest.approx(0.02, abs=0.003)
    assert record.forces[swings, 0] == pytest.approx(record.weight, rel=0.1)


def test_drives_follow_the_planned_joint_speeds(record, step, model):
    legs = np.concatenate([model.group_index('left_leg'), model.group_index('right_leg')])
    planned = np.array([step.at(t).velocities[legs] for t in record.times])
    error = record.velocities[:, legs] - planned
    assert np.sqrt((error ** 2).mean()) < 0.02 * np.abs(planned).max()


@pytest.mark.thorough
def test_gravity_feedforward_is_what_makes_it_precise(model, step, record):
    without = Walker(model, feedforward=False).walk(step)
    assert without.zmp_rms.max() > 2.0 * record.zmp_rms.max()
    assert without.placement_error(step) > 5.0 * record.placement_error(step)


@pytest.mark.thorough
@pytest.mark.parametrize('seed', SEEDS)
def test_ten_quick_steps_with_other_masses_than_the_urdf(model, quick, seed):
    record = Walker(model, PlantOptions(seed=seed, mass_sigma=MASS_SIGMA)).walk(quick)
    assert_good(record, quick, 12)


@pytest.mark.thorough
def test_quasi_static_steps_with_other_masses_than_the_urdf(model):
    gait = walk(model, 4, LENGTH, options=GaitOptions())
    record = Walker(model, PlantOptions(seed=1, mass_sigma=MASS_SIGMA)).walk(gait)
    assert_good(record, gait, 6)


def timing_of(single, double, pause, lift):
    return StepTiming(single_support=single, double_support=double, start=pause, stop=pause,
                      rest=pause, lift=lift)


@pytest.mark.thorough
@pytest.mark.parametrize('robot, length, timing, options, margin, zmp', (
    ('sabian', 0.09, (0.8, 0.4, 1.4, 0.035), {'crouch': 0.1}, 0.03, 0.010),
    ('talos', 0.10, (0.9, 0.4, 1.5, 0.04), {'crouch': 0.1}, 0.03, 0.010),
    ('bioloid_legs', 0.02, (0.6, 0.3, 1.0, 0.01), {'crouch': 0.1}, 0.02, 0.010),
    # Legs without a closed form.
    ('g1', 0.08, (0.8, 0.4, 1.4, 0.03), {'dt': 0.01}, 0.008, 0.012),
    ('icub', 0.03, (0.8, 0.4, 1.4, 0.03), {'dt': 0.01}, 0.015, 0.012),
    ('doc/jvrc1.yaml', 0.1, (0.8, 0.4, 1.4, 0.03), {'dt': 0.01}, 0.015, 0.012)))
def test_other_robots_step_too(robot, length, timing, options, margin, zmp):
    try:
        model = RobotModel.load(robot)
    except BipedComError as error:
        pytest.skip(str(error))
    single, double, pause, lift = timing
    steps = StepTiming(single_support=single, double_support=double, start=pause, stop=pause,
                       rest=pause, lift=lift)
    gait = walk(model, 2, length, options=replace(QUICK, timing=steps, **options))
    record = Walker(model).walk(gait)
    assert not record.has_fallen and max(record.slips()) < 1e-3
    assert record.margins.min() > margin and record.zmp_rms.max() < zmp
    assert record.placement_error(gait) < 0.004
    # It came forward.
    assert (record.soles[-1] - record.soles[0])[:, 3, 0].min() > 0.8 * length


def test_slips_of_standing_soles_are_found():
    """One foot stands, slips by 3 mm, leaves, comes back elsewhere and stays."""
    count = 400
    soles, forces = np.zeros((count, 2, 4, 3)), np.zeros((count, 2))
    forces[:, 1] = forces[:150, 0] = forces[250:, 0] = 10.0
    soles[100:150, 0, 3, :2] = 0.0, 0.003
    soles[200:, 0, 3, 0] = 0.1
    zeros = np.zeros(count)
    record = StepRecord(zeros, np.zeros((count, 2)), np.zeros((count, 2)), soles, forces,
                        np.zeros((count, 1)), zeros, 20.0, False)
    assert record.slips() == pytest.approx([0.003, 0.0, 0.0])


@pytest.mark.thorough
def test_figures_and_table_are_made(record, step, tmp_path):
    pytest.importorskip('matplotlib', reason='figures are drawn with it')
    files = draw(step, record, tmp_path)
    assert sorted(file.name for file in files) == [
        'step_speeds_left_leg.svg', 'step_speeds_right_leg.svg', 'step_zmp_path.svg',
        'step_zmp_time.svg']
    for name, words in (('zmp_path', 'ideal'), ('zmp_time', 'left, actual'),
                        ('speeds_left_leg', 'ankle pitch')):
        assert f'<!-- {words} -->' in (tmp_path / f'step_{name}.svg').read_text()
    assert row('one', 'robot', step, record)[-1] == ''


def pushed(gait, force, heading, balance, seed=1):
    """Return whether a robot that is pushed in the middle of its second swing walks on."""
    walker = Walker(gait.model, PlantOptions(seed=seed, mass_sigma=MASS_SIGMA, tendons=False),
                    balance=balance)
    swing = gait.swings[1]
    times = walker.play(gait)
    while next(times) < 0.5 * (swing.start + swing.end):
        pass
    walker.push(force, heading)
    for _ in times:
        pass
    return not walker.has_fallen


@pytest.mark.thorough
@pytest.mark.parametrize('heading, force, seed', (
    (90.0, 6.0, 1), (270.0, 7.5, 1), (0.0, 15.0, 2), (180.0, 13.0, 2), (180.0, 13.0, 8),
    (270.0, 5.75, 2), (180.0, 11.75, 3)))
def test_a_push_that_fells_a_robot_is_survived_with_adjusted_steps(model, heading, force, seed):
    """
    To the foot in the air, which lands elsewhere, and away from it: the walk has to wait.

    Forward and backward, the robot comes to stand on the edges of both soles, which have to lie
    flat again before the walk goes on. Its next foot stands when it comes back, and after the walk
    it comes to rest: in the last two it fell while a foot that was due drew back from the ground,
    and while feedback drove a robot that rocked from foot to foot.
    """
    gait = walk(model, 4, LENGTH, options=QUICK)
    assert not pushed(gait, force, heading, None, seed)
    assert pushed(gait, force, heading, stepping(0.15), seed)


@pytest.mark.thorough
@pytest.mark.parametrize('balance', (BalanceSettings(), stepping(0.15)))
def test_with_feedback_a_robot_on_a_slope_walks_upright(model, balance):
    """
    At first the centre of mass leans by height times slope, 41 mm at 6 deg.

    Coming upright with a limited acceleration about the feet adds that times h^2 / g, 6 mm.
    """
    slope = math.radians(6.0)
    options = PlantOptions(world=WorldOptions(floor_pitch=slope))
    gait = walk(model, 1, LENGTH, options=QUICK)
    record = Walker(model, options, balance=balance).walk(gait)
    off = record.zmp - record.reference
    height = gait.base[0, 2] + model.state(gait.positions[0]).com_in_base[2]
    upright = MAX_TILT_ACCELERATION * height ** 2 / GRAVITY
    assert off[:20, 0].mean() == pytest.approx(height * math.tan(slope) + upright, rel=0.05)
    walked = record.times > gait.plan.phases[1].end
    assert np.sqrt((off[walked] ** 2).mean(axis=0)).max() < 0.008
    assert np.nanmin(record.margins[walked]) > 0.02 and not record.has_fallen


@pytest.mark.thorough
def test_balancing_at_rest_a_robot_walks_down_a_slope_on_which_it_could_not_stand(model):
    """At 15 deg the centre of mass of a robot that leans with the floor is beyond its toes."""
    gait, slope = walk(model, 2, LENGTH, options=QUICK), math.radians(15.0)
    settings = BalanceSettings(max_tilt=0.35)
    late = Walker(model, balance=settings)  # feedback begins with the walk
    assert not any(True for _ in late.play(gait, slope)) and late.has_fallen
    record = Walker(model, balance=settings, balances_at_rest=True).walk(gait, slope)
    assert not record.has_fallen and record.zmp_rms.max() < 0.010
    assert np.nanmin(record.margins) > 0.015
    # Its soles are flat on the floor wherever they stand.
    for foot in (0, 1):
        stands = record.forces[:, foot] > 0.3 * record.weight
        normals = record.soles[stands, foot, 2]
        assert normals[:, 0] == pytest.approx(math.sin(slope), abs=0.01)
