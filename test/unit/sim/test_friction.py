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
"""Friction, rotors and drives: laws that hold whatever the numbers are."""

from biped_com_ros.core.identification.poses.transfer import travel
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.drives import Drives, JointFriction, SpeedLimit
from biped_com_ros.sim.gains import Gains
from biped_com_ros.sim.instruments import ErrorSource
from biped_com_ros.sim.interface import Command, DriveOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.setpoints import Setpoints
import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, run, URDF, with_simulation

FLOATING = WorldOptions(gravity=0.0, floor=False)
LIMP = with_simulation(stiffness={'neck': 0.0}, damping={'neck': 0.0})
JOINTS = list(parse(URDF).joints.values())


def neck_plant(friction=0.5, stiction=0.0, viscous=0.0):
    """Return a robot in free space whose neck is a motor without control."""
    plant = make_plant(LIMP, world=FLOATING, instrument_errors={
        ('neck', 'friction'): (friction,), ('neck', 'stiction'): (stiction,),
        ('neck', 'viscous'): (viscous,)})
    return plant, plant.actuated_joint_names.index('neck'), plant.model.joint('joint/neck')


def push_neck(plant, index, effort, seconds):
    command = plant.hold()
    command.effort[index] = effort
    run(plant, seconds, command)


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_static_friction_holds_a_joint_below_the_breakaway(sign):
    plant, index, joint = neck_plant(friction=0.4, stiction=0.2)
    push_neck(plant, index, sign * 0.55, 1.0)
    assert abs(plant.data.joint('joint/neck').qpos[0]) < 2e-3
    push_neck(plant, index, sign * 0.65, 0.2)
    assert sign * plant.data.joint('joint/neck').qvel[0] > 0.1


def test_once_moving_it_takes_less_to_keep_a_joint_moving():
    plant, index, _ = neck_plant(friction=0.2, stiction=0.4)
    push_neck(plant, index, 0.7, 0.1)
    before = plant.data.joint('joint/neck').qvel[0]
    push_neck(plant, index, 0.3, 0.1)  # below the breakaway, above Coulomb friction
    assert plant.data.joint('joint/neck').qvel[0] > before > 0.1


def test_dry_friction_brakes_with_its_force():
    """The speed falls by F / I per s: measured against the law, at two speeds."""
    plant, index, joint = neck_plant(friction=0.05)
    dof = joint.dofadr[0]
    for speed in (3.0, -1.5):
        plant.reset()
        plant.data.qvel[dof] = speed
        force = []
        for _ in range(5):
            plant.step()
            force.append(plant.data.qfrc_constraint[dof])
        np.testing.assert_allclose(force, -0.05 * np.sign(speed), rtol=1e-3)


def test_friction_only_dissipates():
    """It takes power from the joints, whatever the motion; viscous friction included."""
    plant = make_plant(drives=DriveOptions(
        joint_friction=0.03, joint_stiction=0.02, viscous_friction=0.05, friction_scatter=0.3))
    rng = np.random.default_rng(0)
    dofs = [plant.model.joint(f'joint/{n}').dofadr[0] for n in plant.actuated_joint_names]
    plant.push('chest', (20.0, -15.0, 0.0, 0.0, 0.0, 0.0), 0.2)
    powers, moving = [], 0
    for _ in range(300):
        command = plant.hold()
        command.effort[:] = 2.0 * rng.standard_normal(len(command.effort))
        plant.step(command)
        v = plant.data.qvel[dofs]
        friction = dry_forces(plant)[dofs] - plant.friction.viscous * v
        powers.append(friction @ v)
        moving += bool(np.abs(v).max() > 0.05)
    assert moving > 100 and min(powers) < -0.05
    # A joint that turns about within a step may get some power back: the solver is soft.
    powers = np.array(powers)
    assert powers[powers > 0.0].sum() < 1e-3 * -powers.sum()


def dry_forces(plant):
    """Return the forces of the solver's friction constraints alone, (nv,), N m."""
    import mujoco
    data, force = plant.data, np.zeros(plant.model.nv)
    rows = np.flatnonzero(data.efc_type[:data.nefc] == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
    np.add.at(force, data.efc_id[rows], data.efc_force[rows])
    return force


def test_the_law_between_rest_and_motion():
    friction = JointFriction.draw(JOINTS, DriveOptions(
        joint_friction=0.02, joint_stiction=0.01, stribeck_velocity=0.1), ErrorSource(0, {}))
    limits = np.array([joint.effort for joint in JOINTS])
    limited = np.isfinite(limits)
    assert limited.any() and not limited.all()
    rest, fast = friction.dry(np.zeros(len(JOINTS))), friction.dry(np.full(len(JOINTS), -5.0))
    np.testing.assert_allclose(rest[limited], 0.03 * limits[limited])
    np.testing.assert_allclose(fast[limited], 0.02 * limits[limited])
    assert not rest[~limited].any() and not friction.viscous.any()
    middle = friction.dry(np.full(len(JOINTS), 0.1))
    np.testing.assert_allclose(
        middle[limited], (0.02 + 0.01 * np.exp(-1.0)) * limits[limited])


def test_without_options_nothing_is_there():
    friction = JointFriction.draw(JOINTS, DriveOptions(), ErrorSource(0, {}))
    assert not (friction.breakaway.any() or friction.viscous.any() or friction.depends_on_speed)
    plant, plain = make_plant(), make_plant(drives=DriveOptions(friction_scatter=0.5))
    for _ in range(20):
        assert plant.step().wrenches.tobytes() == plain.step().wrenches.tobytes()


def test_friction_leaves_no_joint_far_from_its_command():
    """Drives are as stiff as it takes: within 1 deg of a command 10 deg away."""
    plant = make_plant(world=FLOATING, drives=DriveOptions(
        joint_friction=0.05, joint_stiction=0.02))
    command, names = plant.hold(), plant.actuated_joint_names
    joints = [*CONFIG.groups['left_leg'], *CONFIG.groups['right_leg'], 'neck']
    moved = [names.index(name) for name in joints]
    command.position[moved] += np.radians(10.0)
    reached = run(plant, 2.0, command).joint_positions
    off = reached[[plant.joint_names.index(name) for name in joints]] - command.position[moved]
    assert np.degrees(np.abs(off).max()) < 1.05
    assert (plant.gains.stiffness >= make_plant().gains.stiffness).all()


def test_a_slow_approach_shows_friction_with_the_sign_of_the_move():
    """
    Half the difference of the efforts from both sides is the friction, their mean the weight.

    At rest it is near the breakaway, less what the joint crept back.
    """
    given = {('shoulder', 'friction'): (0.3,), ('shoulder', 'stiction'): (0.1,)}
    plant, plain = make_plant(instrument_errors=given), make_plant()
    setpoints, name = Setpoints(plant), 'shoulder'
    joint, target = plant.joint_names.index(name), CONFIG.postures['stand'][name]
    efforts = {}
    for sign in (1.0, -1.0):
        for goal, speed in ((target - 0.05 * sign, 0.3), (target, 0.03)):
            way = travel(setpoint_of(setpoints, name), np.array([[goal]]), speed, 1.0)
            setpoints.set_trajectory(
                [name], way.times, way.positions, way.velocities, plant.observation.time)
            for _ in range(round((way.duration + 0.3) / plant.dt)):
                plant.step(setpoints.command(plant.observation.time))
        efforts[sign] = plant.observation.joint_efforts[joint]
    assert 0.36 < 0.5 * (efforts[1.0] - efforts[-1.0]) < 0.401
    weight = run(plain, 2.0).joint_efforts[joint]
    assert abs(weight) > 0.4
    assert 0.5 * (efforts[1.0] + efforts[-1.0]) == pytest.approx(weight, rel=0.03)


def setpoint_of(setpoints, name):
    """Return the present setpoint of a joint, (1,)."""
    command = setpoints.command(setpoints.plant.observation.time)
    return command.position[[setpoints.plant.actuated_joint_names.index(name)]]


def test_rotors_add_to_the_inertia_that_joints_move():
    plant, plain = make_plant(drives=DriveOptions(rotor_inertia=0.5)), make_plant()
    with_rotors = plant.instrument_errors['rotor_inertia']
    for name in plant.actuated_joint_names:
        dof = plant.model.joint(f'joint/{name}').dofadr[0]
        assert plant.model.dof_armature[dof] == max(
            with_rotors[name][0], plain.model.dof_armature[dof])
    assert any(plant.model.dof_armature[6:] > plain.model.dof_armature[6:])


def test_a_drive_is_no_faster_than_its_limit():
    limit = SpeedLimit(np.array((2.0, np.inf)), 0.01)
    limit.follow(np.zeros(2))
    path = np.array([limit.follow(np.array((0.1, 0.1))) for _ in range(8)])
    np.testing.assert_allclose(path[:, 0], np.minimum(0.02 * np.arange(1, 9), 0.1))
    np.testing.assert_array_equal(path[:, 1], 0.1)
    limit.clear()
    np.testing.assert_array_equal(limit.follow(np.array((-1.0, 0.0))), (-1.0, 0.0))


def drives(options):
    """Return the drives of two joints and two tendons."""
    return Drives(options, Gains(np.array((30.0, 20.0)), np.array((1.0, 2.0))),
                  offsets=np.array((0.01, 0.0)), effort_limits=np.array((10.0, np.inf)),
                  velocity_limits=np.array((3.0, np.inf)), tendons=2, dt=0.002, seed=1)


def command(tendons=(0.1, 0.1)):
    return Command(position=np.array((0.2, -0.1)), velocity=np.array((0.0, 0.5)),
                   effort=np.array((0.3, 0.0)), tendon_lengths=np.array(tendons))


def test_a_drive_controls_what_its_encoder_measures_with_noise_by_its_effort_limit():
    exact = drives(DriveOptions()).controls(command())
    np.testing.assert_allclose(exact, (30.0 * 0.19 + 0.3, -20.0 * 0.1 + 2.0 * 0.5))
    noisy = drives(DriveOptions(drive_noise=0.01))
    noise = [noisy.controls(command()) - exact for _ in range(2000)]
    np.testing.assert_allclose(np.std(noise, axis=0), (0.1, 0.0), rtol=0.05)


def test_tendon_commands_are_late_slow_and_noisy():
    late = drives(DriveOptions(tendon_delay=0.01, tendon_speed=0.05))
    lengths = [late.tendon_lengths(command()) for _ in range(2)]
    lengths += [late.tendon_lengths(command((0.102, 0.098))) for _ in range(40)]
    np.testing.assert_allclose(lengths[:7], 0.1, atol=1e-12)  # five steps later
    np.testing.assert_allclose(lengths[7], (0.1001, 0.0999), atol=1e-12)  # 0.05 m/s
    np.testing.assert_allclose(lengths[-1], (0.102, 0.098), atol=1e-12)
    noisy = drives(DriveOptions(tendon_noise=1e-4))
    lengths = [noisy.tendon_lengths(command()) for _ in range(1000)]
    np.testing.assert_allclose(np.std(lengths, axis=0), 1e-4, rtol=0.1)
