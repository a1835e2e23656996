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
The demo robot holds a rail and leans until it tips: where the region of support ends.

Gravity turns slowly instead of the robot: its joints hold the posture, and nothing else moves.
"""

from __future__ import annotations

import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Pose, rotation_about
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.contact_region import com_region
from biped_com_ros.core.stability.contacts import grip_contact, surface_contact
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import pytest

HAND, SHARE, PLAY = 'l_gripper', 0.12, 0.001
"""The hand that holds, its largest force over the weight, and its motion at that force, m."""

QUICKLY, SLOWLY, TIPPED = 0.25, 0.03, math.radians(0.1)
"""Rates at which gravity turns, rad/s, and tilt of a robot that tips, rad."""


class LeaningRobot:
    """A robot in a world whose gravity turns about the y axis: forwards or backwards."""

    def __init__(self, model, sign):
        self.plant = Plant(model.config, model.urdf, PlantOptions(tendons=False, dt=0.004))
        self.model, self._sign, self.lean = model, sign, 0.0
        self.plant.reset('arms_forward')
        self._command = self.plant.hold()
        for _ in range(100):
            self.plant.step(self._command)
        data = self.plant.data
        self._soles = [data.site(f'sole/{name}') for name in model.soles.names]
        self.largest_force = SHARE * GRAVITY * self.plant.mass
        self.plant.grip(HAND, self.largest_force, play=PLAY)
        self._hand = data.body(f'link/{HAND}')

    def lean_on(self, rate):
        """Let gravity turn at a rate for one period."""
        self.lean += rate * self.plant.dt
        angle = self._sign * self.lean
        self.plant.model.opt.gravity[:] = (
            GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle))
        self.plant.step(self._command)

    @property
    def has_tipped(self):
        return min(sole.xmat[8] for sole in self._soles) < math.cos(TIPPED)

    def distance(self, with_hand):
        """Return how far the centre of mass is inside of the region, gravity being vertical, m."""
        R = rotation_about(1, self._sign * self.lean)
        contacts = [
            surface_contact(Pose(R @ sole.xmat.reshape(3, 3), R @ sole.xpos), foot.polygon, 1.0)
            for sole, foot in zip(self._soles, self.model.config.feet.values())]
        if with_hand:
            contacts.append(grip_contact(Pose(R, R @ self._hand.xpos), self.largest_force))
        x, y, _ = (R @ self.plant.truth().com).tolist()
        region = com_region(contacts, GRAVITY * self.plant.mass)
        return region.distance((x, y, 0.0))


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.mark.thorough
@pytest.mark.parametrize('sign', (1.0, -1.0))
def test_a_robot_that_holds_a_rail_tips_where_the_region_ends(model, sign):
    """Within 5 mm; the hand holds it for 20 mm or more after it would have tipped without."""
    robot = LeaningRobot(model, sign)
    while robot.distance(True) > 0.012:
        robot.lean_on(QUICKLY)
        assert not robot.has_tipped
    before = robot.distance(True)
    while not robot.has_tipped:
        before = robot.distance(True)
        robot.lean_on(SLOWLY)
        assert robot.lean < 1.0
    assert before == pytest.approx(0.0, abs=0.005)
    assert robot.distance(False) < -0.02


def test_a_robot_that_does_not_hold_on_tips_where_its_soles_end(model):
    robot = LeaningRobot(model, 1.0)
    robot.plant.grip(HAND, 0.0)
    while robot.distance(False) > 0.012:
        robot.lean_on(QUICKLY)
    while not robot.has_tipped:
        before = robot.distance(False)
        robot.lean_on(SLOWLY)
    assert before == pytest.approx(0.0, abs=0.005)
