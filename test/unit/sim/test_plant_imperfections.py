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
"""Imperfections of a whole simulated robot: floor, soles, sensors and friction together."""

import math

from biped_com_ros.sim.interface import DriveOptions, SensorOptions
from biped_com_ros.sim.mjcf import WorldOptions
import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, MASS, run

TILT = math.radians(2.0)


def soles(plant):
    """Return axes (3, 3) and origins of the soles in the world."""
    sites = [plant.data.site(f'sole/{foot}') for foot in CONFIG.feet]
    return [(site.xmat.reshape(3, 3), site.xpos) for site in sites]


def tilted_later(roll, pitch):
    """Return a plant whose floor was level, and then tilted."""
    plant = make_plant()
    run(plant, 0.1)
    plant.tilt_floor(roll, pitch)
    plant.reset()
    return plant


@pytest.mark.parametrize('roll, pitch', ((0.1, 0.0), (0.0, -0.1)))
def test_a_floor_that_tilts_where_a_robot_stands_leaves_it_there(roll, pitch):
    """It stands at a place and height other than the origin; the ZMP is on that floor."""
    place = (0.4, -0.3, 0.5)
    plant = make_plant()
    plant.tilt_floor(pitch, roll)
    plant.reset(place=place)
    before = plant.ground_point()
    np.testing.assert_allclose(before, (*place[:2], -0.3 * pitch - 0.4 * roll), rtol=0.02)
    plant.tilt_floor(roll, pitch, before)
    plant.reset(place=plant.place())
    np.testing.assert_allclose(plant.ground_point(), before, atol=1e-3)
    run(plant, 2.0)
    normal = np.array((math.sin(pitch), -math.sin(roll), math.cos(pitch) * math.cos(roll)))
    np.testing.assert_allclose([R[:, 2] for R, _ in soles(plant)], [normal] * 2, atol=2e-3)
    truth = plant.truth()
    assert abs((truth.zmp - before) @ normal) < 1e-12
    np.testing.assert_allclose(truth.zmp[:2], truth.com[:2], atol=5e-4)


def tilted_at_once(roll, pitch):
    return make_plant(world=WorldOptions(floor_roll=roll, floor_pitch=pitch))


@pytest.mark.parametrize('make', (tilted_at_once, tilted_later))
@pytest.mark.parametrize('roll, pitch', [(TILT, 0.0), (0.0, -TILT), (TILT, TILT)])
def test_a_robot_stands_on_a_tilted_floor(roll, pitch, make):
    """Its soles on it, its weight plumb, and the ZMP where the soles' pressure is."""
    plant = make(roll, pitch)
    run(plant, 2.0)
    normal = np.array((math.sin(pitch) * math.cos(roll), -math.sin(roll),
                       math.cos(pitch) * math.cos(roll)))
    truth, total = plant.truth(), np.zeros(6)
    for (R, p), wrench in zip(soles(plant), truth.sole_wrenches):
        np.testing.assert_allclose(R[:, 2], normal, atol=math.radians(0.1))
        force = R @ wrench[:3]
        total += np.concatenate((force, R @ wrench[3:] + np.cross(p, force)))
    np.testing.assert_allclose(total[:3], (0.0, 0.0, 9.81 * MASS), atol=0.05)
    assert abs(truth.zmp @ normal) < 1e-12
    moment = total[3:] - np.cross(truth.zmp, total[:3])
    np.testing.assert_allclose(np.cross(normal, moment), 0.0, atol=1e-9)
    # At rest the CoM is plumb over it; the robot on the tilted floor still stands.
    np.testing.assert_allclose(truth.zmp[:2], truth.com[:2], atol=5e-4)
    assert not plant.has_fallen
    plant.tilt_floor(0.0, 0.0)
    plant.reset()
    run(plant, 1.0)
    np.testing.assert_allclose([R[:, 2] for R, _ in soles(plant)], [(0.0, 0.0, 1.0)] * 2,
                               atol=math.radians(0.1))


def test_soles_are_misplaced_as_configured():
    given = {('left', 'position'): (0.003, -0.002, 0.0)}
    plant, plain = make_plant(instrument_errors=given), make_plant()
    off, true = soles(plant), soles(plain)
    foot = [p.data.body('link/left_foot') for p in (plant, plain)]
    (_, p), (R0, p0) = off[0], true[0]
    moved = (foot[0].xmat.reshape(3, 3).T @ (p - foot[0].xpos)
             - foot[1].xmat.reshape(3, 3).T @ (p0 - foot[1].xpos))
    np.testing.assert_allclose(
        R0.T @ foot[1].xmat.reshape(3, 3) @ moved, (0.003, -0.002, 0.0), atol=1e-9)
    drawn = make_plant(sole_position=0.003, seed=2).instrument_errors['position']
    assert 1e-4 < np.abs([drawn[foot] for foot in CONFIG.feet]).mean() < 0.01


def test_efforts_are_read_with_the_gain_of_their_motor():
    given = {('left_knee', 'effort_gain'): (0.05,)}
    plant, plain = make_plant(instrument_errors=given), make_plant()
    read, exact = run(plant, 0.5).joint_efforts, run(plain, 0.5).joint_efforts
    knee = plant.joint_names.index('left_knee')
    assert abs(exact[knee]) > 1.0
    expected = exact.copy()
    expected[knee] *= 1.05
    np.testing.assert_array_equal(read, expected)


def test_a_bias_drifts_on_through_a_reset():
    given = {('left_foot', 'drift'): (0.0, 0.0, 3600.0, 0.0, 0.0, 0.0)}  # 1 N/s
    plant, plain = make_plant(instrument_errors=given), make_plant()
    for _ in range(2):
        run(plant, 0.5)
        run(plain, 0.5)
        plant.reset()
        plain.reset()
    drift = plant.observation.wrenches - plain.observation.wrenches
    assert drift[0, 2] == pytest.approx(1.0, abs=0.01)
    assert not drift[1].any()


def test_faults_reach_the_observation():
    plant = make_plant()
    before = run(plant, 0.2).wrenches.copy()
    plant.faults.replace({'left_foot': ('dead', 0.0), 'right_foot': ('frozen', 0.0)})
    after = run(plant, 0.2).wrenches
    assert before[0].any() and not after[0].any()
    np.testing.assert_array_equal(after[1], before[1])
    plant.faults.replace({})
    assert run(plant, 0.01).wrenches[0].any()


def test_all_at_once_it_stands():
    """With everything wrong the robot stands, and creeps by less than what counts as still."""
    plant = make_plant(
        seed=5, com_sigma=0.005, mass_sigma=0.08, sole_position=0.002,
        world=WorldOptions(floor_roll=0.5 * TILT, floor_pitch=0.5 * TILT),
        sensors=SensorOptions(
            encoder_offset=0.002, effort_gain=0.02, wrench_gain=0.02, cross_talk=0.01,
            force_drift=3.0, wrench_position=0.003, imu_rotation=0.005, force_range=500.0),
        drives=DriveOptions(
            joint_friction=0.05, joint_stiction=0.02, viscous_friction=0.05, rotor_inertia=0.2,
            friction_scatter=0.3, command_delay=0.002, drive_noise=0.001))
    before = run(plant, 2.0).joint_positions.copy()
    assert np.abs(run(plant, 1.0).joint_positions - before).max() < 0.002
    assert not plant.has_fallen
