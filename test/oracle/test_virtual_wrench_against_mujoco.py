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
Foot wrenches from joint torques and an IMU against MuJoCo's contacts.

The robot stands or bends its knees; its sensors are noisy. Nothing but URDF and YAML is shared.
"""

from __future__ import annotations

import math

from biped_com_ros.core.wrench.virtual_feet import VirtualFeet
from biped_com_ros.core.wrench.virtual_foot_wrenches import VirtualWrenchSettings
from biped_com_ros.sim.interface import DriveOptions, SensorOptions
import numpy as np
import pytest
from support.levels import thorough_but
from support.simulated import SimulatedRobot

NOISE = SensorOptions(encoder_noise=2e-4, velocity_noise=0.01, effort_noise=0.1,
                      gyro_noise=0.002, accelerometer_noise=0.03)


class VirtualFeetRobot(SimulatedRobot):
    """A simulated robot with virtual foot sensors; its IMU may be on any link (Talos: torso)."""

    def __init__(self, name, **options):
        super().__init__(name, **options)
        self.feet = VirtualFeet(self.model, VirtualWrenchSettings())
        self.command, self.count = self.plant.hold(), 0
        self.start = self.command.position.copy()

    def bend(self, amount):
        """Command bent knees, rad."""
        for i, name in enumerate(self.model.joint_names):
            share = {'hip_pitch': -1.0, 'knee': 2.0, 'ankle_pitch': -1.0}
            for part, factor in share.items():
                if part in name:
                    self.command.position[i] = self.start[i] + factor * amount

    def step(self):
        """Go on by one instant; return wrenches, deviations and true wrenches, (F, 6)."""
        observation, plant = self.plant.step(self.command), self.plant
        self.count += 1
        stamp_ns = 10**9 + round(1e9 * plant.dt) * self.count
        state = self.model.state(observation.joint_positions, observation.joint_velocities)
        R_world_imu, *inertial = self.inertial(observation)
        self.feet.update(stamp_ns, state, observation.joint_efforts, *inertial, R_world_imu)
        return (self.feet.sensors.wrenches.copy(), self.feet.deviations,
                plant.truth().sole_wrenches.copy())

    def play(self, seconds, settling, motion=None):
        """Return wrenches, deviations and true wrenches after `settling` s, (T, F, 6)."""
        found = []
        for k in range(round(seconds / self.plant.dt)):
            if motion is not None:
                self.bend(motion(k * self.plant.dt))
            found.append(self.step())
        return (np.array(column) for column in zip(*found[round(settling / self.plant.dt):]))


@pytest.mark.parametrize('name', thorough_but('biped', 'talos', 'g1_as_sold'))
def test_at_rest_joint_torques_give_what_the_feet_carry(name):
    robot = VirtualFeetRobot(name)
    wrenches, _, truth = robot.play(1.5, 1.2)
    np.testing.assert_allclose(wrenches, truth, atol=5e-3 * robot.weight)
    np.testing.assert_allclose(wrenches.sum(1)[:, 2], robot.weight, rtol=5e-3)
    assert robot.feet.contacts.in_contact == (True, True)


def test_a_standing_g1_with_noisy_sensors():
    """The CoP is within 5 mm, and the errors are within their deviations."""
    robot = VirtualFeetRobot('g1_as_sold', sensors=NOISE, seed=1)
    wrenches, deviations, truth = robot.play(2.5, 1.0)
    for moment in (3, 4):
        cop, true_cop = (w[..., moment] / w[..., 2] for w in (wrenches, truth))
        assert np.sqrt(np.mean((cop - true_cop) ** 2)) < 0.005
    assert np.mean(np.abs(wrenches - truth) < 1.96 * deviations) > 0.9


@pytest.mark.parametrize('name', thorough_but('g1_as_sold', 'biped'))
@pytest.mark.parametrize('friction', (0.0, 0.02))
def test_a_hoist_carries_and_puts_down(name, friction):
    """Else the feet of a robot that hangs would carry its weight; unknown friction is learnt."""
    robot = VirtualFeetRobot(name, sensors=NOISE, seed=2,
                             drives=DriveOptions(joint_friction=friction))
    robot.play(1.5, 1.2, lambda t: 0.02 * math.sin(2.0 * math.pi * t))
    robot.plant.hoist.lift()
    wrenches, deviations, truth = robot.play(2.5, 1.0)
    assert not truth.any() and np.abs(wrenches.sum(1)[:, 2]).max() < 0.05 * robot.weight
    assert np.mean(np.abs(wrenches) < 1.96 * deviations) > 0.9
    assert robot.feet.sensors.is_carried and robot.feet.contacts.in_contact == (False, False)
    robot.plant.hoist.lower()
    wrenches, _, truth = robot.play(4.0, 3.5)
    np.testing.assert_allclose(
        wrenches.sum(1)[:, 2], truth.sum(1)[:, 2], atol=0.03 * robot.weight)
    assert not robot.feet.sensors.is_carried and robot.feet.contacts.in_contact == (True, True)


@pytest.mark.thorough
def test_bending_the_knees_fast():
    """Forces that change by a third of the weight are followed, as statics cannot."""
    robot = VirtualFeetRobot('biped')
    wrenches, deviations, truth = robot.play(
        3.0, 1.0, lambda t: 0.1 * min(t, 1.0) * (1.0 - math.cos(4.0 * math.pi * t)))
    assert np.ptp(truth.sum(1)[:, 2]) > 0.3 * robot.weight
    errors = (wrenches - truth)[..., 2]
    assert np.sqrt(np.mean(errors ** 2)) < 0.08 * robot.weight
    assert np.mean(np.abs(wrenches - truth) < 1.96 * deviations) > 0.9
    # Apart from instants at which the soles rattle.
    statics = 0.5 * robot.weight - truth[..., 2]
    assert np.median(np.abs(errors)) < 0.35 * np.median(np.abs(statics))
