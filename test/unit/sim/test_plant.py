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
"""The plant obeys mechanics, and its sensors and truth agree with each other."""

from __future__ import annotations

from dataclasses import replace
import math

from biped_com_ros.core.errors import (
    ConfigurationError, InputError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.interface import PlantOptions, SensorOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
import mujoco
import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, MASS, rotation, run, URDF, with_simulation

FLOATING = WorldOptions(gravity=0.0, floor=False)
FALLING = WorldOptions(floor=False)


@pytest.fixture(scope='module')
def standing():
    """Return a plant that has come to rest; for tests that only look."""
    plant = make_plant()
    run(plant, 3.0)
    return plant


def sole_and_sensor(plant, foot, sensor):
    """Poses (R, p) of a sole frame and a sensor's frame in the world."""
    sites = [plant.data.site(name) for name in (f'sole/{foot}', f'wrench/{sensor}')]
    return [(site.xmat.reshape(3, 3), site.xpos) for site in sites]


def test_soles_touch_the_floor_at_the_start():
    plant = make_plant()
    heights = [geom.xpos[2] - plant.options.world.sole_radius
               for geom in map(plant.data.geom, range(plant.model.ngeom))
               if geom.name.startswith('sole/')]
    assert len(heights) == 8
    np.testing.assert_allclose(heights, 0.0, atol=1e-9)


def test_the_ground_carries_the_weight(standing):
    truth = standing.truth()
    assert truth.sole_wrenches[:, 2].sum() == pytest.approx(9.81 * MASS, rel=1e-4)
    assert standing.mass == pytest.approx(MASS, abs=1e-7)
    np.testing.assert_allclose(truth.com_velocity, 0.0, atol=2e-4)
    np.testing.assert_allclose(truth.zmp, (*truth.com[:2], 0.0), atol=1e-4)


@pytest.mark.parametrize('foot, sign', [('left', 1.0), ('right', -1.0)])
def test_a_wrench_sensor_feels_ground_and_foot(standing, foot, sign):
    """Environment on robot: the ground's wrench plus the foot's weight, in the turned sensor."""
    index = list(CONFIG.feet).index(foot)
    (R_sole, p_sole), (R_sensor, p_sensor) = sole_and_sensor(standing, foot, f'{foot}_foot')
    wrench = standing.truth().sole_wrenches[index]
    ground, weight = R_sole @ wrench[:3], np.array((0.0, 0.0, -0.6 * 9.81))
    com_foot = standing.data.xipos[standing.model.body(f'link/{foot}_foot').id]
    force = ground + weight
    moment = (R_sole @ wrench[3:] + np.cross(p_sole - p_sensor, ground)
              + np.cross(com_foot - p_sensor, weight))
    expected = sign * np.concatenate((R_sensor.T @ force, R_sensor.T @ moment))
    np.testing.assert_allclose(standing.observation.wrenches[index], expected, atol=2e-3)
    assert sign * expected[2] < -10.0  # The sensor's z points down here.


def test_the_centre_of_pressure_follows_from_the_sensors(standing):
    """Taking the foot's weight off and moving to the floor gives the ZMP within 0.5 mm."""
    total = np.zeros(6)
    for i, foot in enumerate(CONFIG.feet):
        reading = standing.observation.wrenches[i] * CONFIG.wrench_sensors[f'{foot}_foot'].sign
        _, (R, p) = sole_and_sensor(standing, foot, f'{foot}_foot')
        force, moment = R @ reading[:3], R @ reading[3:]
        com_foot = standing.data.xipos[standing.model.body(f'link/{foot}_foot').id]
        up = np.array((0.0, 0.0, 0.6 * 9.81))
        total[:3] += force + up
        total[3:] += moment + np.cross(p, force) + np.cross(com_foot, up)
    cop = np.array((-total[4], total[3])) / total[2]
    np.testing.assert_allclose(cop, standing.truth().zmp[:2], atol=5e-4)


def test_the_robot_stands_for_a_minute():
    plant = make_plant()
    run(plant, 3.0)
    start = plant.truth()
    run(plant, 57.0)
    end = plant.truth()
    np.testing.assert_allclose(end.base_position, start.base_position, atol=1e-4)
    np.testing.assert_allclose(end.base_quaternion, start.base_quaternion, atol=1e-4)
    np.testing.assert_allclose(end.com, start.com, atol=1e-3)  # The antenna falls over.


def test_free_fall():
    plant = make_plant(world=FALLING)
    start = plant.truth().com
    observation = run(plant, 0.4)
    truth, t = plant.truth(), observation.time
    # Semi-implicit steps of 1 ms: half a step of velocity more than the parabola.
    np.testing.assert_allclose(
        truth.com - start, (0.0, 0.0, -0.5 * 9.81 * t * (t + 0.001)), atol=1e-6)
    np.testing.assert_allclose(truth.com_velocity, (0.0, 0.0, -9.81 * t), atol=1e-6)
    np.testing.assert_allclose(observation.wrenches, 0.0, atol=0.2)
    np.testing.assert_allclose(observation.linear_accelerations, 0.0, atol=0.2)
    assert np.isnan(truth.zmp).all()


def angular_momentum(plant):
    """About the centre of mass, from MuJoCo's own account."""
    mujoco.mj_subtreeVel(plant.model, plant.data)
    return plant.data.subtree_angmom[0].copy()


def test_a_push_gives_its_momentum():
    plant = make_plant(world=FLOATING)
    wrench, duration = np.array((12.0, -5.0, 3.0, 0.2, -0.1, 0.3)), 0.05
    arm = plant.truth().link_coms[plant.link_names.index('chest')] - plant.truth().com
    plant.push('chest', wrench, duration)
    run(plant, 0.05 + plant.dt)
    truth = plant.truth()
    np.testing.assert_allclose(plant.mass * truth.com_velocity, wrench[:3] * duration, rtol=1e-4)
    moment = np.cross(arm, wrench[:3]) + wrench[3:]
    np.testing.assert_allclose(angular_momentum(plant), moment * duration, atol=0.004)
    momentum = angular_momentum(plant)
    run(plant, 0.3)
    np.testing.assert_allclose(angular_momentum(plant), momentum, atol=2e-4)
    np.testing.assert_allclose(plant.truth().com_velocity, truth.com_velocity, atol=1e-5)


@pytest.mark.parametrize('duration', (0.0, 0.003))
def test_a_push_lasts_as_long_as_asked_even_between_observations(duration):
    plant = make_plant(world=FLOATING)
    plant.push('pelvis', (10.0, 0.0, 0.0, 0.0, 0.0, 0.0), duration)
    run(plant, 0.02)
    momentum = plant.mass * plant.truth().com_velocity[0]
    assert momentum == pytest.approx(10.0 * duration, rel=1e-6, abs=1e-12)


def test_energy_is_kept_without_drives():
    """A limp robot tumbling in the air neither gains nor loses energy."""
    limp = {joint: 0.0 for group in CONFIG.groups.values() for joint in group}
    limp.update({'neck': 0.0, 'grip': 0.0})
    plant = make_plant(with_simulation(stiffness=limp, damping=limp),
                       world=WorldOptions(gravity=0.0, floor=False, timestep=0.00025))
    plant.model.opt.enableflags |= 2  # mjENBL_ENERGY
    plant.push('arm', (3.0, 2.0, 5.0, 0.0, 0.0, 0.0), 0.05)
    run(plant, 0.06)
    before = plant.data.energy[1]
    run(plant, 0.2)
    assert before > 0.01
    assert plant.data.energy[1] == pytest.approx(before, rel=0.01)


def test_hidden_errors_are_in_the_truth():
    errors = {'chest': LinkError(0.7, (0.01, -0.02, 0.03)), 'left_shin': LinkError(-0.2)}
    believed, real = make_plant(), make_plant(errors=errors)
    assert real.mass - believed.mass == pytest.approx(0.5, abs=1e-9)
    chest = real.link_names.index('chest')
    R_world_chest = real.data.body('link/chest').xmat.reshape(3, 3)
    moved = real.truth().link_coms - believed.truth().link_coms
    np.testing.assert_allclose(moved[chest], R_world_chest @ (0.01, -0.02, 0.03), atol=1e-9)
    np.testing.assert_allclose(np.delete(moved, chest, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        real.truth().com, real.link_masses @ real.truth().link_coms / real.link_masses.sum(),
        atol=1e-8)


def test_drawn_errors_are_reproducible_and_felt():
    options = {'com_sigma': 0.01, 'mass_sigma': 0.1, 'seed': 4}
    first, again = make_plant(**options), make_plant(**options)
    np.testing.assert_array_equal(first.truth().com, again.truth().com)
    run(first, 2.0)
    ground = first.truth().sole_wrenches[:, 2].sum()
    assert ground == pytest.approx(9.81 * first.mass, rel=1e-3)
    assert abs(first.mass - MASS) > 0.01


def squat(plant, i):
    """Bend the knees sinusoidally, so that every sensor has something to say."""
    command = plant.hold()
    phase = 0.15 * (1.0 - math.cos(2.0 * math.pi * i * plant.dt))
    for name, share in (('hip_pitch', -1.0), ('knee', 2.0), ('ankle_pitch', -1.0)):
        for side in ('left', 'right'):
            command.position[plant.actuated_joint_names.index(f'{side}_{name}')] += share * phase
    return command


@pytest.mark.parametrize('delayed, arrays', [
    ('joint', ('joint_positions', 'joint_velocities', 'joint_efforts')),
    ('wrench', ('wrenches',)),
    ('imu', ('imu_quaternions', 'angular_velocities', 'linear_accelerations')),
])
def test_a_sensor_delay_is_so_many_steps(delayed, arrays):
    prompt = make_plant()
    late = make_plant(sensors=SensorOptions(**{f'{delayed}_delay': 0.014}))
    history = []
    for i in range(60):
        command = squat(prompt, i)
        observation, seen = prompt.step(command), late.step(command)
        history.append({name: getattr(observation, name).copy() for name in vars(observation)
                        if name != 'time'})
        if i >= 7:
            for name, value in history[-1].items():
                expected = history[-8][name] if name in arrays else value
                np.testing.assert_array_equal(getattr(seen, name), expected)
    assert np.ptp([h[arrays[0]].ravel()[1] for h in history]) > 1e-6


def test_a_command_delay_is_so_many_steps():
    plant = make_plant(world=FLOATING, command_delay=0.01)
    command, neck = plant.hold(), plant.actuated_joint_names.index('neck')
    command.effort[neck] = 0.5
    efforts = [plant.step(command).joint_efforts[plant.joint_names.index('neck')]
               for _ in range(8)]
    np.testing.assert_allclose(efforts[:5], 0.0, atol=1e-9)
    assert efforts[5] > 0.4


def test_an_imu_at_rest(standing):
    """It reads +g upwards, and its orientation is the base's times how it is mounted."""
    truth, observation = standing.truth(), standing.observation
    R_world_imu = rotation(observation.imu_quaternions[0])
    np.testing.assert_allclose(
        R_world_imu @ observation.linear_accelerations[0], (0.0, 0.0, 9.81), atol=0.01)
    np.testing.assert_allclose(observation.angular_velocities, 0.0, atol=2e-3)
    roll, pitch, yaw = 0.1, -0.2, 1.5  # imu_fixed in the URDF
    mount = (rotation((0, 0, math.sin(yaw / 2), math.cos(yaw / 2)))
             @ rotation((0, math.sin(pitch / 2), 0, math.cos(pitch / 2)))
             @ rotation((math.sin(roll / 2), 0, 0, math.cos(roll / 2))))
    np.testing.assert_allclose(R_world_imu, rotation(truth.base_quaternion) @ mount, atol=1e-9)


def test_gyro_and_twist_are_derivatives_of_poses():
    plant = make_plant(world=FLOATING)
    plant.push('chest', (8.0, -6.0, 4.0, 0.5, 0.3, -0.4), 0.1)
    run(plant, 0.3)
    before, imu_before = plant.truth(), plant.observation.imu_quaternions[0].copy()
    twist, gyro = before.base_twist, plant.observation.angular_velocities[0].copy()
    plant.step()
    after, imu_after = plant.truth(), plant.observation.imu_quaternions[0]
    R = rotation(before.base_quaternion)
    np.testing.assert_allclose(
        R.T @ (after.base_position - before.base_position) / plant.dt, twist[:3], atol=2e-3)
    for R_before, R_after, rate in (
            (R, rotation(after.base_quaternion), twist[3:]),
            (rotation(imu_before), rotation(imu_after), gyro)):
        turn = (R_before.T @ R_after - R_after.T @ R_before) / (2.0 * plant.dt)
        np.testing.assert_allclose((turn[2, 1], turn[0, 2], turn[1, 0]), rate, atol=0.02)
    assert np.linalg.norm(gyro) > 0.1


def test_encoder_offsets_fool_the_drive():
    """The drive brings the reading where it is told to; the joint itself is off by the offset."""
    plant = make_plant(world=FLOATING, sensors=SensorOptions(encoder_offset=0.02), seed=9)
    reading = run(plant, 2.0).joint_positions
    elbow = plant.joint_names.index('elbow')
    real = plant.data.joint('joint/elbow').qpos[0]
    assert reading[elbow] == pytest.approx(0.0, abs=1e-4)
    assert abs(real) > 1e-3
    offsets = reading[elbow] - real
    assert offsets == pytest.approx(run(plant, 0.1).joint_positions[elbow] - real, abs=1e-5)


def test_noise_and_bias_have_their_sigma():
    sensors = SensorOptions(encoder_noise=1e-3, velocity_noise=1e-2, effort_noise=0.1,
                            force_noise=0.5, torque_noise=0.02, gyro_noise=1e-3,
                            accelerometer_noise=0.02)
    plant = make_plant(sensors=sensors)
    exact = make_plant()
    residuals = []
    for _ in range(400):
        noisy, clean = plant.step(), exact.step()
        residuals.append([
            *(noisy.wrenches - clean.wrenches)[0, (2, 4)],
            noisy.joint_positions[1] - clean.joint_positions[1],
            noisy.joint_velocities[1] - clean.joint_velocities[1],
            noisy.joint_efforts[1] - clean.joint_efforts[1],
            noisy.angular_velocities[0, 1] - clean.angular_velocities[0, 1],
            noisy.linear_accelerations[0, 1] - clean.linear_accelerations[0, 1]])
    np.testing.assert_allclose(
        np.std(residuals, axis=0), (0.5, 0.02, 1e-3, 1e-2, 0.1, 1e-3, 0.02), rtol=0.15)
    biased = make_plant(sensors=SensorOptions(force_bias=2.0, torque_bias=0.1, tilt_bias=0.01))
    exact = make_plant()
    bias = biased.step().wrenches - exact.step().wrenches
    np.testing.assert_allclose(biased.step().wrenches - bias, exact.step().wrenches, atol=1e-9)
    assert 0.3 < np.abs(bias[:, :3]).mean() < 6.0
    assert np.abs(bias[:, 3:]).max() < 0.5


def test_a_tilted_imu_tilts_about_level_axes():
    plant = make_plant(sensors=SensorOptions(tilt_bias=0.02))
    exact = make_plant()
    wrong = (rotation(plant.observation.imu_quaternions[0])
             @ rotation(exact.observation.imu_quaternions[0]).T)
    roll_pitch_yaw = np.array((wrong[2, 1], wrong[0, 2], wrong[1, 0]))
    assert np.linalg.norm(roll_pitch_yaw[:2]) > 2e-3
    assert abs(roll_pitch_yaw[2]) < 1e-3


def test_efforts_are_clamped_to_the_urdf():
    plant = make_plant(world=FLOATING)
    command, neck = plant.hold(), plant.actuated_joint_names.index('neck')
    command.effort[neck] = 1000.0
    effort = plant.step(command).joint_efforts[plant.joint_names.index('neck')]
    assert effort == 8.0
    assert plant.saturated_joints() == ('neck',)


def test_feedforward_takes_the_droop_away():
    """An arm held by its drive alone hangs; with its own weight fed forward it does not."""
    plant = make_plant()
    shoulder = plant.joint_names.index('shoulder')
    command, motor = plant.hold(), plant.actuated_joint_names.index('shoulder')
    droop = run(plant, 2.0, command).joint_positions[shoulder] - 1.2
    command.effort[motor] = plant.observation.joint_efforts[shoulder]
    left = run(plant, 2.0, command).joint_positions[shoulder] - 1.2
    assert droop > math.radians(0.5)  # Positive pitch is downward for an arm along +x.
    assert abs(left) < 0.1 * droop


def test_velocity_commands_move_joints_whose_position_is_not_held():
    plant = make_plant(with_simulation(stiffness={'neck': 0.0}, damping={'neck': 1.0}),
                       world=FLOATING)
    command, neck = plant.hold(), plant.actuated_joint_names.index('neck')
    command.velocity[neck] = 0.4
    velocity = run(plant, 0.5, command).joint_velocities[plant.joint_names.index('neck')]
    assert velocity == pytest.approx(0.4, rel=1e-3)


def test_positions_beyond_the_limits_stop_there():
    plant = make_plant(world=FLOATING)
    command, elbow = plant.hold(), plant.actuated_joint_names.index('elbow')
    command.position[elbow] = 7.0
    observation = run(plant, 2.0, command)
    assert observation.joint_positions[plant.joint_names.index('elbow')] == pytest.approx(
        2.0, abs=0.01)


@pytest.mark.parametrize('name, value, complaint', [
    ('position', np.full(20, np.nan), 'position is not finite'),
    ('effort', np.full(20, np.inf), 'effort is not finite'),
    ('velocity', np.zeros(3), r'velocity must have shape \(20,\), not \(3,\)'),
    ('tendon_lengths', np.zeros(4), r'tendon_lengths must have shape \(0,\), not \(4,\)'),
])
def test_bad_commands_are_refused_and_the_last_good_one_kept(name, value, complaint):
    plant, reference = make_plant(), make_plant()
    good = plant.hold()
    good.position[0] += 0.05
    for p in (plant, reference):
        p.step(good)
    with pytest.raises(InputError, match=complaint):
        plant.step(replace(good, **{name: value}))
    for p in (plant, reference):
        run(p, 0.1)
    np.testing.assert_array_equal(plant.observation.joint_positions,
                                  reference.observation.joint_positions)


def test_followers_follow_and_locked_joints_stay():
    plant = make_plant(world=FLOATING)
    command, grip = plant.hold(), plant.actuated_joint_names.index('grip')
    command.position[grip] = 0.5
    run(plant, 1.0, command)
    angle = plant.data.joint('joint/grip').qpos[0]
    assert angle == pytest.approx(0.5, abs=0.01)
    assert plant.data.joint('joint/thumb').qpos[0] == pytest.approx(
        0.1 - 1.5 * angle, abs=1e-3)
    assert 'thumb' not in plant.joint_names and 'hook' not in plant.joint_names
    R_chest_hook = plant.data.body('link/chest').xmat.reshape(3, 3).T @ plant.data.body(
        'link/hook').xmat.reshape(3, 3)
    np.testing.assert_allclose(
        R_chest_hook, rotation((math.sin(0.2), 0, 0, math.cos(0.2))), atol=1e-12)


def test_a_follower_of_a_locked_joint_stays_where_that_leads_it():
    plant = make_plant(replace(CONFIG, locked_joints={**CONFIG.locked_joints, 'grip': 0.2}))
    run(plant, 0.3)
    assert plant.data.joint('joint/thumb').qpos[0] == pytest.approx(-1.5 * 0.2 + 0.1, abs=2e-3)


def test_reset_puts_everything_back():
    plant = make_plant()
    first = plant.truth()
    plant.push('chest', (30.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.2)
    run(plant, 0.1)
    observation = plant.reset()
    np.testing.assert_array_equal(plant.truth().com, first.com)
    assert observation.time == 0.0
    run(plant, 0.1)
    assert abs(plant.truth().com_velocity[0]) < 0.1  # The push is forgotten.
    plant.reset({'elbow': 1.0}, height=0.3)
    assert plant.observation.joint_positions[plant.joint_names.index('elbow')] == 1.0
    assert plant._lowest_corner() == pytest.approx(0.3)


def test_it_can_be_put_down_anywhere_and_heading_anywhere():
    plant = make_plant()
    at_origin = plant.truth()
    assert plant.place() == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    plant.reset(place=(0.3, -0.2, 0.5))
    assert plant.place() == pytest.approx((0.3, -0.2, 0.5), abs=1e-9)
    truth = plant.truth()
    c, s = math.cos(0.5), math.sin(0.5)
    turned = np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))
    np.testing.assert_allclose(truth.com, turned @ at_origin.com + (0.3, -0.2, 0.0), atol=1e-9)
    run(plant, 0.5)
    assert not plant.has_fallen
    assert plant.place() == pytest.approx((0.3, -0.2, 0.5), abs=2e-3)


def test_a_blown_up_simulation_starts_over():
    plant = make_plant()
    start = plant.truth().com
    run(plant, 0.1)
    plant.data.qvel[3] = np.nan
    observation = plant.step()
    assert plant.divergences == 1
    assert observation.time == 0.0
    np.testing.assert_array_equal(plant.truth().com, start)
    run(plant, 0.2)
    assert plant.divergences == 1


def test_a_lying_robot_has_fallen():
    plant = make_plant()
    assert not plant.has_fallen
    plant.push('chest', (300.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.2)
    run(plant, 1.5)
    assert plant.has_fallen
    plant.reset()
    assert not plant.has_fallen


def test_shapes_are_kept_for_pictures():
    config = load_robot_config('biped')
    urdf = load_urdf(config)
    plain, shown = (Plant(config, urdf, PlantOptions(world=WorldOptions(visuals=visuals)))
                    for visuals in (False, True))
    assert shown.model.ngeom > plain.model.ngeom + 20
    assert shown.mass == plain.mass
    run(plain, 0.1)
    run(shown, 0.1)
    np.testing.assert_allclose(shown.truth().com, plain.truth().com, atol=1e-12)


def test_orders_asked_for_are_kept():
    plain = make_plant()
    joints, links = plain.joint_names[::-1], plain.link_names[::-1]
    plant = Plant(CONFIG, URDF, PlantOptions(tendons=False), joints, links)
    assert plant.joint_names == joints
    np.testing.assert_allclose(plant.truth().link_coms, plain.truth().link_coms[::-1])
    command, reverse = plant.hold(), plain.hold()
    np.testing.assert_array_equal(command.position, reverse.position[::-1])
    np.testing.assert_allclose(run(plant, 0.1, command).joint_positions,
                               run(plain, 0.1, reverse).joint_positions[::-1], atol=1e-12)
    with pytest.raises(ConfigurationError, match='lacks'):
        Plant(CONFIG, URDF, PlantOptions(), joints[1:])
    with pytest.raises(UnknownNameError, match="unknown link 'tail'"):
        Plant(CONFIG, URDF, PlantOptions(), joints, (*links, 'tail'))


def test_nonsense_is_refused_by_name():
    with pytest.raises(ConfigurationError, match='multiple of the physics timestep'):
        make_plant(dt=0.0015)
    with pytest.raises(UnknownNameError, match="unknown joint or group 'lef_arm'"):
        make_plant(with_simulation(stiffness={'lef_arm': 1.0}))
    with pytest.raises(ConfigurationError, match='finite and not negative'):
        make_plant(with_simulation(damping={'elbow': -1.0}))
    moving = replace(CONFIG.wrench_sensors['left_foot'], frame='left_shin')
    with pytest.raises(RobotDescriptionError, match="moves against link 'left_foot' with joint"):
        make_plant(replace(CONFIG, wrench_sensors=dict(CONFIG.wrench_sensors, left_foot=moving)))
    plant = make_plant()
    with pytest.raises(UnknownNameError, match="unknown posture 'sit'"):
        plant.reset('sit')
    with pytest.raises(UnknownNameError, match="unknown joint 'tail'"):
        plant.reset({'tail': 1.0})
    with pytest.raises(ConfigurationError, match="'elbow' cannot be at 3; valid: -2 to 2"):
        plant.reset({'elbow': 3.0})
    with pytest.raises(UnknownNameError, match="did you mean 'chest'"):
        plant.push('chst', np.zeros(6), 0.1)
    with pytest.raises(InputError, match='six finite numbers'):
        plant.push('chest', np.full(6, np.nan), 0.1)
    with pytest.raises(InputError, match='between 0 and 60 s'):
        plant.push('chest', np.zeros(6), -1.0)
