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
"""Robots under effort control in Gazebo's engine: standing, lifting the arms, a step."""

from biped_com_ros.core.legs.gait import single_step
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.gazebo.gains import PHYSICS_STEP
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.plant import Plant, PlantOptions
import numpy as np
import pinocchio as pin
import pytest
from support.gazebo_files import damping_in, gazebo_files, start_posture
from support.gazebo_twin import Compensated, GazeboTwin, held, TwinTrajectory
from support.levels import thorough_but

ROBOTS = ('biped', 'sabian', 'talos', 'g1')
LIFTED = {'talos': 'arms_up'}


def documented(what):
    """Return a row of the table of doc/gazebo.rst, by robot."""
    lines = (package_share() / 'doc' / 'gazebo.rst').read_text().splitlines()
    header = next(line for line in lines if line.startswith('robot   '))
    row = next(line for line in lines if line.startswith(f'{what}:'))
    assert tuple(header.split()[1:]) == ROBOTS
    return dict(zip(ROBOTS, map(float, row.split()[-len(ROBOTS):])))


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return a function that writes the files of a robot, once for each set of options."""
    written = {}

    def write(robot='biped', **options):
        key = (robot, *options.items())
        if key not in written:
            written[key] = gazebo_files(tmp_path_factory.mktemp('gazebo'), robot, **options)
        return written[key]
    return write


def corners(robot):
    """Return the number of points at which a robot touches the floor."""
    return sum(len(foot.polygon) for foot in load_robot_config(robot).feet.values())


def of_legs(twin, model):
    """Return which joints are between the base and a sole."""
    legs = {int(joint) for sole in model.soles.joints
            for joint in model.pin_model.supports[int(sole)]}
    return [model.pin_model.getJointId(name) in legs for name in twin.joints]


def moved(twin, start, end, duration, count=50):
    """Return a smooth motion whose points have velocities, as MoveIt and gait_player send them."""
    times = np.linspace(0.0, duration, count)
    share = 0.5 - 0.5 * np.cos(np.pi * times / duration)
    rate = 0.5 * np.pi / duration * np.sin(np.pi * times / duration)
    return TwinTrajectory(times, start + np.outer(share, end - start), np.outer(rate, end - start),
                          np.zeros((count, len(start))))


@pytest.mark.parametrize('robot', thorough_but(*ROBOTS))
def test_the_twin_is_what_gazebo_gets(files, robot):
    files, nominal = files(robot), RobotModel.load(robot)
    twin = GazeboTwin(files)
    assert twin.step == PHYSICS_STEP and files.rate == 500
    assert twin.skeleton.getMass() == pytest.approx(nominal.mass, rel=2e-3)
    assert set(files.gains) == set(nominal.joint_names)
    assert start_posture(files.simulated) == pytest.approx(
        dict(zip(nominal.joint_names, nominal.posture())))
    damping = damping_in(files.simulated)
    assert twin.damping() == pytest.approx([damping[name] for name in twin.joints])
    for name, gains in files.gains.items():
        # What damping takes from a motion the controller adds.
        assert gains['ff_velocity_scale'] == pytest.approx(damping[name])
        assert gains['d'] == 0.0


@pytest.mark.parametrize('robot', thorough_but(*ROBOTS))
def test_damping_leaves_leg_joints_most_of_their_efforts(files, robot):
    """
    Of an effort at a foot that the floor holds, DART passes on 1 - h c [(M + h C)^-1]_ii.

    Impulses of contacts ignore the damping C of the joints, which the step h treats implicitly.
    Without rotors an ankle keeps 3 to 30 %.
    """
    written, model = files(robot), RobotModel.load(robot)
    twin = GazeboTwin(written)
    twin.put_down(twin.stand)
    full = np.zeros(twin.skeleton.getNumDofs())
    full[twin.dofs] = twin.step * twin.damping()
    inverse = np.linalg.inv(twin.skeleton.getMassMatrix() + np.diag(full))
    passed = (1.0 - full * np.diagonal(inverse))[twin.dofs]
    legs = of_legs(twin, model)
    assert sum(legs) >= 12 and passed[legs].min() > 0.65


@pytest.mark.parametrize('robot', thorough_but(*ROBOTS))
def test_rotors_are_inertia_only_and_of_legs_only(files, robot):
    """Masses and centres of mass stay, and nodes know nothing of it."""
    written, model = files(robot), RobotModel.load(robot)
    simulated, described = parse(written.simulated), parse(written.description)
    for name, link in described.links.items():
        assert simulated.links[name].mass == pytest.approx(link.mass)
        np.testing.assert_allclose(simulated.links[name].com, link.com, atol=1e-9)
    # A disc adds half of its moment about each axis, and the rest along its own.
    twin = GazeboTwin(written)
    rotors = {name: 4.0 * damping * PHYSICS_STEP for name, damping, is_leg in zip(
        twin.joints, twin.damping(), of_legs(twin, model)) if is_leg}
    pin_model, data, before = inertias_about_joints(written.description)
    _, _, after = inertias_about_joints(written.simulated)
    for name in model.joint_names:
        i = pin_model.getJointId(name)
        gained = sum(
            0.5 * rotor * (1.0 + (axis_of(pin_model, data, i) @ axis_of(pin_model, data, j)) ** 2)
            for j, rotor in ((pin_model.getJointId(other), rotor)
                             for other, rotor in rotors.items()) if i in pin_model.supports[j])
        assert after[name] - before[name] == pytest.approx(gained, rel=2e-3, abs=2e-5), name
    assert len(rotors) >= 12 and min(rotors.values()) > 1e-4


def inertias_about_joints(text):
    """Return Pinocchio's model and data, and the inertia about each joint of a URDF at zeros."""
    pin_model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    data, q = pin_model.createData(), pin.neutral(pin_model)
    matrix = pin.crba(pin_model, data, q)
    pin.computeJointJacobians(pin_model, data, q)
    return pin_model, data, {name: matrix[i.idx_v, i.idx_v] for name, i in zip(
        pin_model.names, pin_model.joints)}


def axis_of(pin_model, data, joint):
    """Return the axis of a joint that turns in the world, (3,); zeros of one that slides."""
    return data.J[3:, pin_model.joints[joint].idx_v]


def test_the_damping_is_for_gazebo_only(files):
    damping = damping_in(files().description)
    assert damping['l_knee'] == pytest.approx(0.04) and damping['torso_x'] == 0.0


@pytest.mark.parametrize('robot', thorough_but(*ROBOTS))
def test_updates_are_stable_in_all_postures(files, robot):
    twin, rng = GazeboTwin(files(robot)), np.random.default_rng(1)
    for posture in (twin.stand, *(twin.stand + rng.uniform(-0.4, 0.4, (10, len(twin.stand))))):
        twin.put_down(posture)
        assert twin.spectral_radius() < 0.999
    half = GazeboTwin(files(robot), rate=250)
    half.put_down(half.stand)
    assert half.spectral_radius() < 0.999


@pytest.mark.thorough
@pytest.mark.parametrize('hidden', ['none', 'masses'])
@pytest.mark.parametrize('robot', thorough_but(*ROBOTS))
def test_it_stands_for_10_s_and_lifts_its_arms(files, robot, hidden):
    twin, model = GazeboTwin(files(robot, hidden=hidden, seed=3)), RobotModel.load(robot)
    twin.put_down(twin.stand)
    twin.run(held(twin, twin.stand), 10.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    if hidden == 'none':
        assert twin.largest_tilt == pytest.approx(documented('stands for 10 s')[robot], abs=0.1)
    assert twin.speed < 5e-3 and twin.contacts == corners(robot)
    lifted = model.posture(LIFTED.get(robot, 'arms_forward'))[model.joint_index(twin.joints)]
    assert np.abs(lifted - twin.stand).max() > 1.2
    twin.largest_tilt = 0.0
    twin.run(moved(twin, twin.stand, lifted, 3.0), 3.0)
    # The velocity that is fed forward leaves the droop by gravity only.
    error = lifted - twin.positions
    assert np.abs(error).max() < 0.06
    twin.run(held(twin, lifted), 5.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    if hidden == 'none':
        assert twin.largest_tilt == pytest.approx(documented('lifts its arms')[robot], abs=0.1)
    assert twin.speed < 5e-3


@pytest.mark.thorough
@pytest.mark.parametrize('robot', ['icub', 'romeo', 'three_link', 'bioloid_legs'])
def test_other_robots_stand_as_well(files, robot):
    twin = GazeboTwin(files(robot, hidden='masses', seed=3))
    twin.put_down(twin.stand)
    assert twin.spectral_radius() < 0.999
    twin.run(held(twin, twin.stand), 3.0)
    assert twin.saturated == 0 and twin.largest_tilt < 1.0
    assert np.abs(twin.stand - twin.positions).max() < 0.05
    assert twin.contacts == corners(robot)


@pytest.mark.parametrize('robot', thorough_but(*ROBOTS))
def test_hidden_masses_are_those_of_the_simulator(files, robot):
    """The same seed gives the same robot in Gazebo and in the package's own simulator."""
    config, nominal = load_robot_config(robot), RobotModel.load(robot)
    plant = Plant(config, nominal.urdf, PlantOptions(
        seed=3, mass_sigma=0.08, com_sigma=0.005, tendons=False))
    given = parse(files(robot, hidden='masses', seed=3).simulated).links
    for link, mass in zip(nominal.link_names, nominal.link_masses):
        true = plant.model.body(f'link/{link}')
        assert given[link].mass == pytest.approx(true.mass[0]) != pytest.approx(mass)
        np.testing.assert_allclose(given[link].com, true.ipos, atol=1e-9)
    # Of them neither nodes nor controllers know anything.
    assert files(robot, hidden='masses', seed=3).description == files(robot).description
    heaviest = int(nominal.link_masses.argmax())
    loaded = parse(files(robot, load=(f'{nominal.link_names[heaviest]} 0.5 0 0 0',)).simulated)
    assert loaded.links[nominal.link_names[heaviest]].mass == pytest.approx(
        nominal.link_masses[heaviest] + 0.5)


def test_a_push_decays(files):
    twin = GazeboTwin(files())
    twin.put_down(twin.stand)
    twin.run(held(twin, twin.stand), 2.0)
    twin.push((0.06, 0.06))
    twin.run(held(twin, twin.stand), 4.0)
    assert twin.largest_tilt < 5.0 and twin.speed < 1e-2


@pytest.mark.thorough
@pytest.mark.parametrize('robot', ROBOTS)
def test_gravity_compensation_takes_the_sag_away(files, robot):
    """Its efforts come on within a second, as it does, while the robot stands."""
    twin, compensation = GazeboTwin(files(robot)), Compensated(robot)
    twin.put_down(twin.stand)
    twin.run(held(twin, twin.stand), 3.0)
    legs = of_legs(twin, compensation.model)
    sag = np.abs(twin.stand - twin.positions)[legs].max()
    efforts = compensation.efforts(twin, twin.stand, (0.5, 0.5))
    ramp = TwinTrajectory((0.0, 1.0), (twin.stand,) * 2, (0.0 * twin.stand,) * 2,
                          (0.0 * efforts, efforts))
    twin.run(ramp, 1.0)
    twin.largest_tilt = 0.0
    twin.run(held(twin, twin.stand, efforts), 4.0)
    assert np.abs(twin.stand - twin.positions)[legs].max() < 0.5 * sag
    assert twin.largest_tilt == pytest.approx(
        documented('stands with gravity compensation')[robot], abs=0.1)
    assert twin.saturated == 0 and twin.speed < 5e-3


@pytest.mark.thorough
@pytest.mark.parametrize('robot, rate', [
    ('biped', 100.0), ('biped', 500.0), ('sabian', 100.0), ('talos', 100.0), ('g1', 100.0)])
def test_it_steps_with_the_efforts_of_gravity_compensation(files, robot, rate):
    twin, compensation = GazeboTwin(files(robot)), Compensated(robot)
    gait = single_step(compensation.model, 0.05)
    trajectory = compensation.along(twin, gait, rate)
    twin.put_down(trajectory.positions[0])
    twin.run(held(twin, trajectory.positions[0], trajectory.efforts[0]), 3.0)
    before = feet(twin, compensation.model)
    twin.run(trajectory, gait.duration + 2.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    moved_by = feet(twin, compensation.model) - before
    assert moved_by[:, 0] == pytest.approx([0.0, 0.05], abs=0.003)
    assert 1e3 * moved_by[1, 0] == pytest.approx(documented('steps by 50 mm')[robot], abs=0.5)
    assert np.abs(moved_by[:, 1:]).max() < 0.003
    assert twin.speed < 1e-2


def feet(twin, model):
    """Return the positions of the ankles, (2, 3), m."""
    return np.array([twin.place(foot.ankle) for foot in model.config.feet.values()])
