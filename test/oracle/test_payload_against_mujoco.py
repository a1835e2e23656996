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
"""A payload in a hand against MuJoCo, whose hand is as heavy as the true payload makes it."""

from biped_com_ros.sim.interface import DriveOptions
import numpy as np
import pytest
from support.carrying_robot import CarryingRobot, NOISE

FRICTION = DriveOptions(joint_friction=0.02)


@pytest.mark.thorough
def test_talos_takes_two_kilograms_and_sets_them_down():
    """
    Known in less than a second, and gone in less than a second, without sensors in the hand.

    The CoM is right then, and gravity compensation lets the arm sag at least ten times less.
    """
    robot = CarryingRobot('talos', measured=('feet', 'efforts'), compensates=True)
    robot.passes_on = False
    robot.run(2.2)
    start = robot.observation.joint_positions.copy()
    robot.put(2.0)
    robot.run(1.0)
    assert robot.payload is not None
    sag = np.abs(robot.observation.joint_positions - start)[robot.actuated].max()
    error = robot.com_error()
    robot.passes_on = True
    robot.run(2.0)
    assert robot.payload.hand == 'left'
    assert robot.payload.mass == pytest.approx(2.0, abs=0.03)
    print(f'CoM {1e3 * error:.2f} -> {1e3 * robot.com_error():.3f} mm')
    assert error > 0.008 and robot.com_error() < 0.0005
    left = np.abs(robot.observation.joint_positions - start)[robot.actuated].max()
    print(f'sag {sag:.5f} -> {left:.6f} rad')
    assert sag > 0.002 and left < 0.1 * sag
    robot.put(0.0)
    assert robot.run(2.0, lambda: robot.payload is None) < 1.0
    robot.run(1.5)
    assert robot.carried.mass == 0.0 and robot.payload is None
    assert np.abs(robot.observation.joint_positions - start)[robot.actuated].max() < 0.1 * sag
    steps = np.abs(np.diff(robot.efforts[1000:], axis=0))
    limiter = robot.compensator.limiter
    assert (steps <= limiter.settings.max_rate * robot.plant.dt
            * robot.compensator.gravity_model.effort_limits + 1e-9).all()


@pytest.mark.parametrize('sensors, mass, tolerance, name', [
    pytest.param(('feet', 'efforts'), 0.5, 0.05, 'g1', marks=pytest.mark.thorough),
    pytest.param(('efforts',), 2.0, 0.3, 'g1', marks=pytest.mark.thorough),
    (('feet',), 1.0, 0.05, 'biped')])
def test_with_friction_and_noise_it_is_detected_and_removed_again(sensors, mass, tolerance, name):
    robot = CarryingRobot(name, measured=sensors, drives=FRICTION, seed=1, sensors=NOISE)
    robot.run(1.6)
    assert robot.payload is None and not robot.estimator.problem
    robot.put(mass, 'right')
    assert robot.run(2.0, lambda: robot.payload is not None) < 1.0
    robot.run(0.6)
    assert robot.payload.hand == 'right'
    assert robot.payload.mass == pytest.approx(mass, abs=tolerance)
    robot.put(0.0, 'right')
    assert robot.run(2.0, lambda: robot.payload is None) < 1.0
    robot.run(1.0)
    assert robot.payload is None


@pytest.mark.thorough
def test_a_light_payload_is_not_lost_in_what_is_learnt():
    """At the limit of the evidence it takes longer than what it does not explain allows."""
    robot = CarryingRobot('talos', measured=('feet', 'efforts'), drives=FRICTION, seed=2,
                          sensors=NOISE)
    robot.run(2.2)
    robot.put(0.5)
    assert robot.run(2.0, lambda: robot.payload is not None) < 1.0
    robot.run(1.0)
    assert robot.payload.mass == pytest.approx(0.5, abs=0.05)


@pytest.mark.thorough
def test_arms_that_move_are_no_payload():
    """With wrong masses, friction and noise."""
    robot = CarryingRobot('biped', measured=('feet', 'efforts'), seed=5, com_sigma=0.01,
                          mass_sigma=0.08, drives=FRICTION, sensors=NOISE)
    arms = [i for i, name in enumerate(robot.model.actuated_joint_names)
            if 'shoulder' in name or 'elbow' in name]
    start = robot.command.position.copy()
    robot.run(1.5)
    for step in range(200):
        robot.command.position[arms] = start[arms] + 0.4 * min(1.0, 0.02 * step) * np.sin(
            0.05 * step + 0.7 * np.arange(len(arms)))
        robot.run(0.02)
        assert robot.payload is None
