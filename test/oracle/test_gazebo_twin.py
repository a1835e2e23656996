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

from __future__ import annotations

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.legs.gait import single_step
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.gazebo_twin import controller, damping_in, GazeboTwin, Trajectory, urdf

#: What was shipped before: damping by the controller, hardly any in the joints.
BEFORE = {'drive_damping': '0.01', 'slide_damping': '0', 'hinge_damping': '0'}


def gains_before():
    legs, arms = {'p': 60.0, 'd': 1.0}, {'p': 8.0, 'd': 0.1}
    slides, hinges = {'p': 20000.0, 'd': 200.0}, {'p': 40.0, 'd': 1.0}
    return {name: slides if name in ('torso_x', 'torso_y', 'torso_z') else
            hinges if name.startswith('torso') else
            legs if name[2:].startswith(('hip', 'knee', 'ankle')) else arms
            for name in controller()[0]}


def held(twin, posture, efforts=None):
    """Return a trajectory of one point, twice."""
    zeros = np.zeros_like(posture)
    efforts = zeros if efforts is None else efforts
    return Trajectory((0.0, 1.0), (posture,) * 2, (zeros,) * 2, (efforts,) * 2)


def moved(twin, start, end, duration, count=50):
    """Return a smooth motion whose points have velocities, as MoveIt and gait_player send them."""
    times = np.linspace(0.0, duration, count)
    share = 0.5 - 0.5 * np.cos(np.pi * times / duration)
    rate = 0.5 * np.pi / duration * np.sin(np.pi * times / duration)
    return Trajectory(times, start + np.outer(share, end - start), np.outer(rate, end - start),
                      np.zeros((count, len(start))))


def test_the_twin_is_what_gazebo_gets():
    twin = GazeboTwin()
    assert twin.model.opt.timestep == 0.001
    assert not twin.model.dof_armature.any()
    assert twin.model.body_mass.sum() == pytest.approx(3.6 + 0.005)
    damping = damping_in(urdf())
    for name, gains in controller()[0].items():
        assert twin.model.joint(name).damping[0] == pytest.approx(damping[name])
        # What damping takes from a motion the controller adds.
        assert gains['ff_velocity_scale'] == pytest.approx(damping[name])
        assert gains['d'] == 0.0


def test_the_damping_is_for_gazebo_only():
    from biped_com_ros.core.model.urdf import load_urdf
    text = load_urdf(RobotModel.load('biped').config)
    damping = damping_in(text)
    assert damping['l_knee'] == pytest.approx(0.04) and damping['torso_x'] == 0.0


def test_updates_are_stable_in_all_postures():
    twin, rng = GazeboTwin(), np.random.default_rng(1)
    for posture in (twin.stand, *(twin.stand + rng.uniform(-0.4, 0.4, (10, len(twin.stand))))):
        twin.put_down(posture)
        assert twin.spectral_radius() < 0.999
    half = GazeboTwin(rate=250)
    half.put_down(half.stand)
    assert half.spectral_radius() < 0.999


def test_damping_by_the_controller_is_not_stable_without_rotor_inertia():
    twin = GazeboTwin(urdf(**BEFORE), gains_before())
    twin.put_down(twin.stand)
    assert twin.spectral_radius() == pytest.approx(10.6, abs=0.1)
    twin.run(held(twin, twin.stand), 1.5)
    assert twin.largest_tilt > 45.0


def test_it_stands_for_10_s_and_lifts_its_arms():
    twin = GazeboTwin()
    twin.put_down(twin.stand)
    twin.run(held(twin, twin.stand), 10.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    assert np.abs(twin.data.qvel).max() < 1e-3
    arms = twin.stand.copy()
    for side in 'lr':
        arms[twin.joints.index(f'{side}_shoulder_pitch')] -= 1.2
    motion = moved(twin, twin.stand, arms, 2.0)
    twin.run(motion, 2.0)
    # The velocity that is fed forward leaves the droop by gravity only.
    error = arms - twin.data.qpos[twin.q]
    assert np.abs(error).max() < 0.06
    twin.run(held(twin, arms), 3.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    assert np.abs(twin.data.qvel).max() < 1e-3


def test_a_push_dies_away():
    twin = GazeboTwin()
    twin.put_down(twin.stand)
    twin.run(held(twin, twin.stand), 2.0)
    twin.data.qvel[:2] = 0.06, 0.06
    twin.run(held(twin, twin.stand), 4.0)
    assert twin.largest_tilt < 5.0 and np.abs(twin.data.qvel).max() < 1e-2


@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_it_steps_with_the_efforts_of_gravity_compensation(rate):
    model, twin = RobotModel.load('biped'), GazeboTwin()
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
    twin.run(Trajectory(times, *zip(*map(point, times))), gait.duration + 2.0)
    assert twin.saturated == 0 and twin.largest_tilt < 2.0
    moved_by = twin.data.xpos[feet] - before
    assert moved_by[:, 0] == pytest.approx([0.0, 0.05], abs=0.003)
    assert np.abs(moved_by[:, 1:]).max() < 0.003
    assert np.abs(twin.data.qvel).max() < 1e-2
