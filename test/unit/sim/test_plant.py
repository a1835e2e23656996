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

from dataclasses import replace
import math

from biped_com_ros.core.errors import (
    ConfigurationError, InputError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.placement import lowest_corner
from biped_com_ros.sim.plant import Plant
import mujoco
import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, MASS, rotation, run, URDF, with_simulation

FLOATING = WorldOptions(gravity=0.0, floor=False)
FALLING = WorldOptions(floor=False)


def drive(plant, joint, seconds, **values):
    """Command a joint for a while; return its index, and the observation."""
    command, motor = plant.hold(), plant.actuated_joint_names.index(joint)
    for kind, value in values.items():
        getattr(command, kind)[motor] = value
    return plant.joint_names.index(joint), run(plant, seconds, command)


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


@pytest.mark.thorough
@pytest.mark.parametrize('name, tolerance, of_com', [
    ('', 1e-4, 1e-3),  # The antenna falls over.
    ('biped', 1e-5, 1e-5), ('sabian', 1e-5, 1e-5)])
def test_robots_stand_for_a_minute(name, tolerance, of_com):
    config = load_robot_config(name) if name else CONFIG
    plant = Plant(config, load_urdf(config)) if name else make_plant()
    run(plant, 3.0)
    start = plant.truth()
    run(plant, 57.0)
    end = plant.truth()
    np.testing.assert_allclose(end.com, start.com, atol=of_com)
    np.testing.assert_allclose(end.base_position, start.base_position, atol=tolerance)
    np.testing.assert_allclose(end.base_quaternion, start.base_quaternion, atol=1e-4)
    assert end.sole_wrenches[:, 2].sum() == pytest.approx(9.81 * plant.mass, rel=1e-4)
    if name:
        torso = [plant.joint_names.index(joint) for joint in config.torso.joints[3:]]
        assert np.abs(plant.observation.joint_positions[torso]).max() < math.radians(1.0)


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
    """About the centre of mass, as computed by MuJoCo."""
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
def test_a_push_lasts_as_long_as_requested_even_between_observations(duration):
    plant = make_plant(world=FLOATING)
    plant.push('pelvis', (10.0, 0.0, 0.0, 0.0, 0.0, 0.0), duration)
    run(plant, 0.02)
    momentum = plant.mass * plant.truth().com_velocity[0]
    assert momentum == pytest.approx(10.0 * duration, rel=1e-6, abs=1e-12)


def test_energy_is_kept_without_drives():
    """A limp robot tumbling in the air neither gains nor loses energy."""
    limp = dict.fromkeys((*sum(CONFIG.groups.values(), ()), 'neck', 'grip'), 0.0)
    plant = make_plant(with_simulation(stiffness=limp, damping=limp),
                       world=replace(FLOATING, timestep=0.00025))
    plant.model.opt.enableflags |= 2  # mjENBL_ENERGY
    plant.push('arm', (3.0, 2.0, 5.0, 0.0, 0.0, 0.0), 0.05)
    run(plant, 0.06)
    before = plant.data.energy[1]
    run(plant, 0.2)
    assert before > 0.01
    assert plant.data.energy[1] == pytest.approx(before, rel=0.01)


def test_hidden_errors_are_in_the_truth():
    errors = {'chest': LinkError(0.7, (0.01, -0.02, 0.03)), 'left_shin': LinkError(-0.2)}
    nominal, real = make_plant(), make_plant(errors=errors)
    assert real.mass - nominal.mass == pytest.approx(0.5, abs=1e-9)
    chest = real.link_names.index('chest')
    R_world_chest = real.data.body('link/chest').xmat.reshape(3, 3)
    moved = real.truth().link_coms - nominal.truth().link_coms
    np.testing.assert_allclose(moved[chest], R_world_chest @ (0.01, -0.02, 0.03), atol=1e-9)
    np.testing.assert_allclose(np.delete(moved, chest, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        real.truth().com, real.link_masses @ real.truth().link_coms / real.link_masses.sum(),
        atol=1e-8)


def test_drawn_errors_are_reproducible_and_effective():
    options = {'com_sigma': 0.01, 'mass_sigma': 0.1, 'seed': 4}
    first, again = make_plant(**options), make_plant(**options)
    np.testing.assert_array_equal(first.truth().com, again.truth().com)
    run(first, 2.0)
    ground = first.truth().sole_wrenches[:, 2].sum()
    assert ground == pytest.approx(9.81 * first.mass, rel=1e-3)
    assert abs(first.mass - MASS) > 0.01


def test_efforts_and_positions_are_clamped_to_the_urdf():
    plant = make_plant(world=FLOATING)
    neck, observation = drive(plant, 'neck', plant.dt, effort=1000.0)
    assert observation.joint_efforts[neck] == 8.0
    assert plant.saturated_joints() == ('neck',)
    plant.reset()
    elbow, observation = drive(plant, 'elbow', 2.0, position=7.0)
    assert observation.joint_positions[elbow] == pytest.approx(2.0, abs=0.01)


def test_feedforward_takes_the_droop_away():
    """An arm held by its drive alone hangs; with its own weight fed forward it does not."""
    plant = make_plant()
    shoulder, sagged = drive(plant, 'shoulder', 2.0)
    droop = sagged.joint_positions[shoulder] - 1.2
    _, held = drive(plant, 'shoulder', 2.0, effort=sagged.joint_efforts[shoulder])
    assert droop > math.radians(0.5)  # Positive pitch is downward for an arm along +x.
    assert abs(held.joint_positions[shoulder] - 1.2) < 0.1 * droop


def test_velocity_commands_move_joints_whose_position_is_not_held():
    plant = make_plant(with_simulation(stiffness={'neck': 0.0}, damping={'neck': 1.0}),
                       world=FLOATING)
    neck, observation = drive(plant, 'neck', 0.5, velocity=0.4)
    assert observation.joint_velocities[neck] == pytest.approx(0.4, rel=1e-3)


@pytest.mark.parametrize('name, value, message', [
    ('position', np.full(20, np.nan), 'position is not finite'),
    ('effort', np.full(20, np.inf), 'effort is not finite'),
    ('velocity', np.zeros(3), r'velocity must have shape \(20,\), not \(3,\)'),
    ('tendon_lengths', np.zeros(4), r'tendon_lengths must have shape \(0,\), not \(4,\)'),
])
def test_bad_commands_are_refused_and_the_last_good_one_kept(name, value, message):
    plants = make_plant(), make_plant()
    good = plants[0].hold()
    good.position[0] += 0.05
    for plant in plants:
        plant.step(good)
    with pytest.raises(InputError, match=message):
        plants[0].step(replace(good, **{name: value}))
    np.testing.assert_array_equal(*[run(plant, 0.1).joint_positions for plant in plants])


def test_followers_follow_and_locked_joints_stay():
    plant = make_plant(world=FLOATING)
    drive(plant, 'grip', 1.0, position=0.5)
    angle = plant.data.joint('joint/grip').qpos[0]
    assert angle == pytest.approx(0.5, abs=0.01)
    assert plant.data.joint('joint/thumb').qpos[0] == pytest.approx(
        0.1 - 1.5 * angle, abs=1e-3)
    assert 'thumb' not in plant.joint_names and 'hook' not in plant.joint_names
    R_chest_hook = plant.data.body('link/chest').xmat.reshape(3, 3).T @ plant.data.body(
        'link/hook').xmat.reshape(3, 3)
    np.testing.assert_allclose(
        R_chest_hook, rotation((math.sin(0.2), 0, 0, math.cos(0.2))), atol=1e-12)
    locked = make_plant(replace(CONFIG, locked_joints={**CONFIG.locked_joints, 'grip': 0.2}))
    run(locked, 0.3)
    assert locked.data.joint('joint/thumb').qpos[0] == pytest.approx(-1.5 * 0.2 + 0.1, abs=2e-3)


def test_reset_puts_everything_back():
    plant = make_plant()
    first = plant.truth()
    plant.push('chest', (30.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.2)
    run(plant, 0.1)
    observation = plant.reset()
    np.testing.assert_array_equal(plant.truth().com, first.com)
    assert observation.time == 0.0
    run(plant, 0.1)
    assert abs(plant.truth().com_velocity[0]) < 0.1  # The push has ended.
    plant.reset({'elbow': 1.0}, height=0.3)
    assert plant.observation.joint_positions[plant.joint_names.index('elbow')] == 1.0
    assert lowest_corner(plant.data, CONFIG.feet) == pytest.approx(0.3)


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
    plain, shown = (Plant(config, load_urdf(config), PlantOptions(
        world=WorldOptions(visuals=visuals))) for visuals in (False, True))
    assert shown.model.ngeom > plain.model.ngeom + 20
    assert shown.mass == plain.mass
    for plant in (plain, shown):
        run(plant, 0.1)
    np.testing.assert_allclose(shown.truth().com, plain.truth().com, atol=1e-12)


def test_given_orders_are_used():
    plain = make_plant()
    joints, links = plain.joint_names[::-1], plain.link_names[::-1]
    plant = Plant(CONFIG, URDF, PlantOptions(tendons=False), joints, links)
    assert plant.joint_names == joints
    np.testing.assert_allclose(plant.truth().link_coms, plain.truth().link_coms[::-1])
    command, reverse = plant.hold(), plain.hold()
    np.testing.assert_array_equal(command.position, reverse.position[::-1])
    np.testing.assert_allclose(run(plant, 0.1, command).joint_positions,
                               run(plain, 0.1, reverse).joint_positions[::-1], atol=1e-12)
    with pytest.raises(ConfigurationError, match='lack '):
        Plant(CONFIG, URDF, PlantOptions(), joints[1:])
    with pytest.raises(UnknownNameError, match="unknown link 'tail'"):
        Plant(CONFIG, URDF, PlantOptions(), joints, (*links, 'tail'))


SENSOR = replace(CONFIG.wrench_sensors['left_foot'], frame='left_shin')


@pytest.mark.parametrize('error, message, arguments', [
    (ConfigurationError, 'multiple of the physics timestep', {'dt': 0.0015}),
    (UnknownNameError, "unknown joint or group 'lef_arm'",
     {'config': with_simulation(stiffness={'lef_arm': 1.0})}),
    (ConfigurationError, 'finite and not negative',
     {'config': with_simulation(damping={'elbow': -1.0})}),
    (RobotDescriptionError, "moves relative to link 'left_foot' with",
     {'config': replace(CONFIG, wrench_sensors={**CONFIG.wrench_sensors, 'left_foot': SENSOR})})])
def test_invalid_options_are_named(error, message, arguments):
    with pytest.raises(error, match=message):
        make_plant(**arguments)


@pytest.mark.parametrize('error, message, method, arguments', [
    (UnknownNameError, "unknown posture 'sit'", 'reset', ('sit',)),
    (UnknownNameError, "unknown joint 'tail'", 'reset', ({'tail': 1.0},)),
    (ConfigurationError, "'elbow' cannot be at 3; valid: -2 to 2", 'reset', ({'elbow': 3.0},)),
    (UnknownNameError, "did you mean 'chest'", 'push', ('chst', np.zeros(6), 0.1)),
    (InputError, 'six finite numbers', 'push', ('chest', np.full(6, np.nan), 0.1)),
    (InputError, 'between 0 and 60 s', 'push', ('chest', np.zeros(6), -1.0))])
def test_invalid_arguments_are_named(standing, error, message, method, arguments):
    with pytest.raises(error, match=message):
        getattr(standing, method)(*arguments)
