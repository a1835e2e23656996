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
"""The gains of the controllers in Gazebo, in MuJoCo: standing, lifting the arms, a step."""

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.legs.gait import single_step
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.plant import Plant, PlantOptions
import numpy as np
import pytest
from support.gazebo_twin import (
    damping_in, gazebo_files, GazeboTwin, start_posture, TwinTrajectory)
from support.levels import thorough_but

ROBOTS = ('biped', 'talos', 'g1')
#: Where each robot's arms go, from the posture in which it stands.
LIFTED = {'biped': 'arms_forward', 'talos': 'arms_up', 'g1': 'arms_forward'}


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


def held(twin, posture, efforts=None):
    """Return a trajectory of one point, twice."""
    zeros = np.zeros_like(posture)
    efforts = zeros if efforts is None else efforts
    return TwinTrajectory((0.0, 1.0), (posture,) * 2, (zeros,) * 2, (efforts,) * 2)


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
    assert twin.model.opt.timestep == 0.001 and files.rate == 500
    assert not twin.model.dof_armature.any()
    assert twin.model.body_mass.sum() == pytest.approx(nominal.mass, rel=2e-3)
    assert set(files.gains) == set(nominal.joint_names)
    assert start_posture(files.simulated) == pytest.approx(
        dict(zip(nominal.joint_names, nominal.posture())))
    damping = damping_in(files.simulated)
    for name, gains in files.gains.items():
        assert twin.model.joint(name).damping[0] == pytest.approx(damping[name])
        # What damping takes from a motion the controller adds.
        assert gains['ff_velocity_scale'] == pytest.approx(damping[name])
        assert gains['d'] == 0.0


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
    assert np.abs(twin.data.qvel).max() < 1e-3
    assert twin.data.ncon == corners(robot)
    lifted = model.posture(LIFTED[robot])[model.joint_index(twin.joints)]
    assert np.abs(lifted - twin.stand).max() > 1.2
    twin.run(moved(twin, twin.stand, lifted, 3.0), 3.0)
    # The velocity that is fed forward leaves the droop by gravity only.
    error = lifted - twin.data.qpos[twin.q]
    assert np.abs(error).max() < 0.06
    twin.run(held(twin, lifted), 5.0)
    assert twin.saturated == 0 and twin.largest_tilt < 3.0
    assert np.abs(twin.data.qvel).max() < 5e-3


@pytest.mark.thorough
@pytest.mark.parametrize('robot', ['icub', 'romeo', 'sabian', 'three_link', 'bioloid_legs'])
def test_other_robots_stand_as_well(files, robot):
    twin = GazeboTwin(files(robot, hidden='masses', seed=3))
    twin.put_down(twin.stand)
    assert twin.spectral_radius() < 0.999
    twin.run(held(twin, twin.stand), 3.0)
    assert twin.saturated == 0 and twin.largest_tilt < 1.0
    assert np.abs(twin.stand - twin.data.qpos[twin.q]).max() < 0.05
    assert twin.data.ncon == corners(robot)


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
    loaded = parse(files(robot, load=f'{nominal.link_names[heaviest]} 0.5 0 0 0').simulated)
    assert loaded.links[nominal.link_names[heaviest]].mass == pytest.approx(
        nominal.link_masses[heaviest] + 0.5)


def test_a_push_decays(files):
    twin = GazeboTwin(files())
    twin.put_down(twin.stand)
    twin.run(held(twin, twin.stand), 2.0)
    twin.data.qvel[:2] = 0.06, 0.06
    twin.run(held(twin, twin.stand), 4.0)
    assert twin.largest_tilt < 5.0 and np.abs(twin.data.qvel).max() < 1e-2


@pytest.mark.thorough
@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_it_steps_with_the_efforts_of_gravity_compensation(files, rate):
    model, twin = RobotModel.load('biped'), GazeboTwin(files())
    gait, gravity = single_step(model, 0.05), GravityModel(model)
    joints = model.joint_index(twin.joints)

    def point(time):
        sample = gait.at(time)
        load = gravity.load(model.state(sample.positions), np.array((0.0, 0.0, 1.0)))
        efforts = load.on_contacts(sample.shares).efforts
        return sample.positions[joints], sample.velocities[joints], efforts[joints]

    first = point(0.0)
    twin.put_down(first[0])
    twin.run(held(twin, first[0], first[2]), 3.0)
    feet = [twin.model.body(name).id for name in ('l_ankle', 'r_ankle')]
    before = twin.data.xpos[feet].copy()
    times = np.arange(0.0, gait.duration + 0.5 / rate, 1.0 / rate)
    twin.run(TwinTrajectory(times, *zip(*map(point, times))), gait.duration + 2.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    moved_by = twin.data.xpos[feet] - before
    assert moved_by[:, 0] == pytest.approx([0.0, 0.05], abs=0.003)
    assert np.abs(moved_by[:, 1:]).max() < 0.003
    assert np.abs(twin.data.qvel).max() < 1e-2
