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
"""Sensors of the plant: they agree with its truth and have the errors of their options."""

from dataclasses import replace
import math

from biped_com_ros.sim.interface import DriveOptions, PlantOptions, SensorOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, rotation, run, URDF

FLOATING = WorldOptions(gravity=0.0, floor=False)


def ground_and_sensor(plant, foot):
    """Return the ground's wrench at a sole, in the world, its place, and the sensor's pose."""
    sole, sensor = plant.data.site(f'sole/{foot}'), plant.data.site(f'wrench/{foot}_foot')
    R, wrench = sole.xmat.reshape(3, 3), plant.truth().sole_wrenches[list(CONFIG.feet).index(foot)]
    return R @ wrench[:3], R @ wrench[3:], sole.xpos, sensor.xmat.reshape(3, 3), sensor.xpos


@pytest.mark.parametrize('foot, sign', [('left', 1.0), ('right', -1.0)])
def test_a_wrench_sensor_measures_ground_and_foot(standing, foot, sign):
    """Environment on robot: the ground's wrench plus the foot's weight, in the turned sensor."""
    ground, ground_moment, p_sole, R_sensor, p_sensor = ground_and_sensor(standing, foot)
    weight = np.array((0.0, 0.0, -0.6 * 9.81))
    com_foot = standing.data.xipos[standing.model.body(f'link/{foot}_foot').id]
    moment = (ground_moment + np.cross(p_sole - p_sensor, ground)
              + np.cross(com_foot - p_sensor, weight))
    expected = sign * np.concatenate((R_sensor.T @ (ground + weight), R_sensor.T @ moment))
    reading = standing.observation.wrenches[list(CONFIG.feet).index(foot)]
    np.testing.assert_allclose(reading, expected, atol=2e-3)
    assert sign * expected[2] < -10.0  # The sensor's z points down here.


def test_the_centre_of_pressure_follows_from_the_sensors(standing):
    """Taking the foot's weight off and moving to the floor gives the ZMP within 0.5 mm."""
    total = np.zeros(6)
    for foot, reading in zip(CONFIG.feet, standing.observation.wrenches):
        *_, R, p = ground_and_sensor(standing, foot)
        force, moment = CONFIG.wrench_sensors[f'{foot}_foot'].scale * reading.reshape(2, 3) @ R.T
        com_foot = standing.data.xipos[standing.model.body(f'link/{foot}_foot').id]
        up = np.array((0.0, 0.0, 0.6 * 9.81))
        total += *(force + up), *(moment + np.cross(p, force) + np.cross(com_foot, up))
    cop = np.array((-total[4], total[3])) / total[2]
    np.testing.assert_allclose(cop, standing.truth().zmp[:2], atol=5e-4)


@pytest.mark.parametrize('frame, sole', [
    ('{}_ft', True),  # a frame that nothing hangs on, fixed to the foot
    ('{}_sole_frame', True), ('{}_sole_frame', False)])
def test_a_sensor_that_does_not_carry_its_sole_measures_the_ground_alone(frame, sole):
    sensors = {f'{foot}_foot': replace(
        CONFIG.wrench_sensors[f'{foot}_foot'], frame=frame.format(foot), link='')
        for foot in ('left', 'right')}
    feet = CONFIG.feet if sole else {foot: replace(
        CONFIG.feet[foot], sole=f'{foot}_foot', sole_origin=(0.01, 0.0, -0.05))
        for foot in CONFIG.feet}
    plant = make_plant(replace(CONFIG, wrench_sensors=sensors, feet=feet))
    readings = run(plant, 2.0).wrenches
    for foot, reading in zip(CONFIG.feet, readings):
        ground, moment, p_sole, R, p = ground_and_sensor(plant, foot)
        expected = np.concatenate((R.T @ ground, R.T @ (moment + np.cross(p_sole - p, ground))))
        sign = CONFIG.wrench_sensors[f'{foot}_foot'].scale
        np.testing.assert_allclose(sign * reading, expected, atol=5e-3)
    assert abs(readings[:, 2]).sum() == pytest.approx(9.81 * plant.mass, rel=2e-3)


def test_of_two_pads_under_a_foot_each_measures_what_touches_it():
    frames = {'front': 'left_ft', 'rear': 'left_sole'}
    sensors = {name: replace(CONFIG.wrench_sensors['left_foot'], frame=frame, link='', topic=name)
               for name, frame in frames.items()}
    left = replace(CONFIG.feet['left'], sole='left_foot', sole_origin=(0.01, 0.0, -0.05),
                   wrench_sensors=tuple(sensors))
    config = replace(CONFIG, feet={**CONFIG.feet, 'left': left},
                     wrench_sensors={**CONFIG.wrench_sensors, **sensors})
    urdf = URDF.replace('"0.005 0.002 -0.01" rpy="3.14159265358979 0 0.4"',
                        '"0.10 0 -0.05" rpy="0 0 0"', 1)
    plant = Plant(config, urdf, PlantOptions(tendons=False))
    wrenches = dict(zip(config.wrench_sensors, run(plant, 2.0).wrenches))
    ground, *_ = ground_and_sensor(plant, 'left')
    assert wrenches['front'][2] > 5.0 and wrenches['rear'][2] > 5.0
    np.testing.assert_allclose(
        wrenches['front'][:3] + wrenches['rear'][:3], ground, atol=0.05)  # it tilts a little


def squat(plant, i):
    """Bend the knees sinusoidally, so that the readings of every sensor change."""
    command = plant.hold()
    phase = 0.15 * (1.0 - math.cos(2.0 * math.pi * i * plant.dt))
    for name, share in (('hip_pitch', -1.0), ('knee', 2.0), ('ankle_pitch', -1.0)):
        for side in ('left', 'right'):
            command.position[plant.actuated_joint_names.index(f'{side}_{name}')] += share * phase
    return command


@pytest.mark.parametrize('kind, arrays', [
    ('joint', ('joint_positions', 'joint_velocities', 'joint_efforts')),
    ('wrench', ('wrenches',)),
    ('imu', ('imu_quaternions', 'angular_velocities', 'linear_accelerations')),
])
def test_a_sensor_delay_is_so_many_steps(kind, arrays):
    prompt = make_plant()
    late = make_plant(sensors=SensorOptions(**{f'{kind}_delay': 0.014}))
    history = []
    for i in range(60):
        command = squat(prompt, i)
        observation, delayed = prompt.step(command), late.step(command)
        history.append({name: np.copy(value) for name, value in vars(observation).items()
                        if name != 'time'})
        if i >= 7:
            for name, value in history[-1].items():
                expected = history[-8][name] if name in arrays else value
                np.testing.assert_array_equal(getattr(delayed, name), expected)
    assert np.ptp([h[arrays[0]].ravel()[1] for h in history]) > 1e-6


def test_a_command_delay_is_so_many_steps():
    plant = make_plant(world=FLOATING, drives=DriveOptions(command_delay=0.01))
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
    """The reading reaches the command; the joint itself is off by the offset."""
    plant = make_plant(world=FLOATING, sensors=SensorOptions(encoder_offset=0.02), seed=9)
    reading = run(plant, 2.0).joint_positions
    elbow = plant.joint_names.index('elbow')
    real = plant.data.joint('joint/elbow').qpos[0]
    assert reading[elbow] == pytest.approx(0.0, abs=1e-4)
    assert abs(real) > 1e-3
    offsets = reading[elbow] - real
    assert offsets == pytest.approx(run(plant, 0.1).joint_positions[elbow] - real, abs=1e-5)


#: The sigma of each kind of noise, and where it is in an observation.
NOISE = {'force_noise': (0.5, 'wrenches', (0, 2)), 'torque_noise': (0.02, 'wrenches', (0, 4)),
         'encoder_noise': (1e-3, 'joint_positions', 1),
         'velocity_noise': (1e-2, 'joint_velocities', 1),
         'effort_noise': (0.1, 'joint_efforts', 1),
         'gyro_noise': (1e-3, 'angular_velocities', (0, 1)),
         'accelerometer_noise': (0.02, 'linear_accelerations', (0, 1))}


def test_noise_and_bias_have_their_sigma():
    plant, exact = make_plant(sensors=SensorOptions(
        **{name: sigma for name, (sigma, _, _) in NOISE.items()})), make_plant()
    residuals = []
    for _ in range(400):
        noisy, clean = plant.step(), exact.step()
        residuals.append([getattr(noisy, name)[index] - getattr(clean, name)[index]
                          for _, name, index in NOISE.values()])
    np.testing.assert_allclose(
        np.std(residuals, axis=0), [sigma for sigma, _, _ in NOISE.values()], rtol=0.15)
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
