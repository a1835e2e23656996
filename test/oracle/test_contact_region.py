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
Regions of support against others: linear programmes by HiGHS, and robots that tip in MuJoCo.

The linear programmes are written from the contact forces themselves, one force per edge of a
friction cone in the world, so that they share no code with the regions.
"""

import math

from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.stability.contact_region import com_region, LARGEST_LOAD, zmp_region
from biped_com_ros.core.stability.contacts import grip_contact, surface_contact
import mujoco
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

WEIGHT = 500.0
SOLE = ((0.12, 0.05), (-0.08, 0.05), (-0.08, -0.05), (0.12, -0.05))


class RandomContacts:
    """A few contacts, and their forces as points, directions and limits in the world."""

    def __init__(self, rng):
        self.contacts, self.points, self.forces, self.limits = [], [], [], []
        for _ in range(rng.integers(1, 5)):
            turn = Rotation.from_rotvec(rng.uniform(-0.6, 0.6, 3))
            self._add(rng, Pose(turn.as_matrix(), rng.uniform(-0.5, 0.5, 3)))

    def _add(self, rng, pose):
        kind = rng.choice(['sole', 'hand', 'grip'], p=[0.6, 0.25, 0.15])
        limit = math.inf if kind == 'sole' else rng.uniform(0.1, 0.5) * WEIGHT
        columns = len(self.points)
        if kind == 'grip':
            self.contacts.append(grip_contact(pose, limit))
            for direction in np.vstack((np.eye(3), -np.eye(3))):
                self._add_force(pose, (0.0, 0.0), direction)
        else:
            outline = SOLE if kind == 'sole' else ((0.0, 0.0),)
            friction = rng.uniform(0.3, 0.9)
            self.contacts.append(surface_contact(pose, outline, friction, limit))
            level = friction / math.sqrt(2.0)
            for corner in outline:
                for x, y in ((level, level), (-level, level), (-level, -level), (level, -level)):
                    self._add_force(pose, corner, (x, y, 1.0))
        self.limits.append((columns, len(self.points), limit))

    def _add_force(self, pose, corner, direction):
        self.points.append(pose.apply(np.array((*corner, 0.0))))
        self.forces.append(pose.rotation @ direction)

    def furthest(self, direction, com, plane):
        """Return the reach along a direction (3,) by HiGHS, m; None if there are no forces."""
        points, forces = np.array(self.points), np.array(self.forces)
        upper = [np.ones(len(points))]
        bounds = [LARGEST_LOAD * WEIGHT]
        for begin, end, limit in self.limits:
            if limit < math.inf:
                row = np.zeros(len(points))
                row[begin:end] = 1.0
                upper.append(row)
                bounds.append(limit)
        if com is None:  # at rest: M = c x (0, 0, W)
            moments = np.cross(points, forces)
            equations = np.column_stack((forces, moments[:, 2]))
            right = (0.0, 0.0, WEIGHT, 0.0)
            gains, offset = np.column_stack((-moments[:, 1], moments[:, 0])), np.zeros(2)
            gains = (gains @ direction[:2]) / WEIGHT
            offset = 0.0
        else:
            normal = np.array(plane.normal)
            height = normal @ (com - plane.origin)
            equations = np.column_stack((np.cross(points - com, forces), forces @ normal))
            right = (0.0, 0.0, 0.0, WEIGHT * normal[2])
            gains = -height / (WEIGHT * normal[2]) * forces @ direction
            offset = com @ direction
        result = linprog(-gains, A_eq=equations.T, b_eq=right, A_ub=np.array(upper), b_ub=bounds,
                         bounds=(0.0, None), method='highs')
        assert result.status in (0, 2)
        return None if result.status == 2 else offset - result.fun


@pytest.mark.parametrize('seed', range(60))
def test_regions_reach_as_far_as_linear_programmes(seed):
    """Within 1e-6 m, for the centre of mass at rest and for the zero-moment point on a plane."""
    rng = np.random.default_rng(seed)
    drawn = RandomContacts(rng)
    com = np.mean([c.pose.position for c in drawn.contacts], axis=0) + (0.02, -0.03, 0.9)
    plane = Plane.with_normal((0.1, -0.05, 1.0), (0.0, 0.0, -0.1))
    regions = ((com_region(drawn.contacts, WEIGHT), None, np.eye(3)[:2]),
               (zmp_region(drawn.contacts, WEIGHT, com, plane), com, np.array(plane[:2])))
    for region, centre, axes in regions:
        for angle in rng.uniform(0.0, 2.0 * math.pi, 8):
            direction = np.array((math.cos(angle), math.sin(angle))) @ axes
            expected = drawn.furthest(direction, centre, plane)
            if expected is None:
                assert region is None
            else:
                found = (region.corners_in_world @ direction).max()
                assert found == pytest.approx(expected, abs=1e-6)


ROBOT = """
<mujoco>
  <option timestep="0.001" cone="elliptic" impratio="20" integrator="implicitfast"
          noslip_iterations="3"/>
  <default><geom solref="0.004 1" friction="0.8 0 0"/></default>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    {rail}
    <body name="robot">
      <freejoint/>
      <geom type="box" size="0.1 0.08 0.02" pos="0 0 0.02" mass="20"/>
      {hand}
      <body pos="0 0 0.6">
        <joint name="slide" type="slide" axis="{x} {y} 0" damping="5000"/>
        <geom type="sphere" size="0.05" mass="60" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  {grip}
  <actuator>
    <position joint="slide" kp="20000"/>
    {arm}
  </actuator>
</mujoco>
"""
"""A rigid robot on one sole, with a load that is shifted level, and with a hand."""
OUTLINE = ((0.1, 0.08), (-0.1, 0.08), (-0.1, -0.08), (0.1, -0.08))
HAND = np.array((0.35, 0.0, 0.9))


def tips_at(heading, *, rail='', hand='', grip='', arm=''):
    """Return how far the CoM got along the heading until the robot tips, m, and its weight, N."""
    x, y, _ = direction = _along(heading)
    model = mujoco.MjModel.from_xml_string(
        ROBOT.format(x=x, y=y, rail=rail, hand=hand, grip=grip, arm=arm))
    data = mujoco.MjData(model)
    reached = 0.0
    for step in range(100_000):
        data.ctrl[0] = 1e-5 * step  # 1 cm/s
        mujoco.mj_step(model, data)
        if data.body('robot').xmat[8] < math.cos(math.radians(0.3)):
            return reached, 9.81 * model.body_subtreemass[1]
        reached = data.subtree_com[1] @ direction
    raise AssertionError('the robot does not tip')


def edge_along(region, heading):
    """Return where the region ends on the way from the origin, m."""
    direction, low, high = _along(heading), 0.0, 3.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = ((middle, high) if region.distance(tuple(middle * direction)) > 0.0
                     else (low, middle))
    return low


def _along(heading):
    angle = math.radians(heading)
    return np.array((math.cos(angle), math.sin(angle), 0.0))


@pytest.mark.thorough
@pytest.mark.parametrize('tilt', [0.0, -25.0, -45.0])
@pytest.mark.parametrize('heading', [0.0, 25.0])
def test_a_robot_with_its_hand_on_a_rail_tips_where_the_region_ends(tilt, heading):
    """
    Within 5 mm; the hand moves that by 20 mm at least.

    The rail is slippery: with friction, the region says what a robot can hold that presses its
    hand and its foot apart, which a rigid one does not.
    """
    turn = Rotation.from_euler('y', tilt, degrees=True)
    touch = HAND - 0.02 * turn.apply((0.0, 0.0, 1.0))
    x, y, z = touch - 0.02 * turn.apply((0.0, 0.0, 1.0))
    found, weight = tips_at(
        heading, hand=f'<geom type="sphere" size="0.02" pos="{HAND[0]} 0 {HAND[2]}" mass="0.1"/>',
        rail=f'<geom type="box" size="0.1 0.5 0.02" pos="{x} {y} {z}" euler="0 {tilt} 0" '
             'priority="1" friction="0.01 0 0"/>')
    sole = surface_contact(Pose(np.eye(3), np.zeros(3)), OUTLINE, 0.8, edges=32)
    rail = surface_contact(Pose(turn.as_matrix(), touch), ((0.0, 0.0),), 0.01, edges=32)
    predicted = edge_along(com_region([sole, rail], weight), heading)
    assert predicted > edge_along(com_region([sole], weight), heading) + 0.02
    assert found == pytest.approx(predicted, abs=0.005)


@pytest.mark.parametrize('heading', [0.0, 180.0])
def test_a_robot_that_grips_a_rail_tips_where_its_arm_gives_way(heading):
    """An arm of at most 60 N, which pulls or pushes along x, 0.9 m above the ground."""
    arm = 60.0
    found, weight = tips_at(
        heading,
        hand=f"""<body name="arm" pos="0 0 {HAND[2]}">
                   <joint name="lift" type="slide" axis="0 0 1"/>
                   <geom type="sphere" size="0.01" mass="0.01" contype="0" conaffinity="0"/>
                   <body name="hand" pos="{HAND[0]} 0 0">
                     <joint name="reach" type="slide" axis="1 0 0"/>
                     <geom type="sphere" size="0.01" mass="0.01" contype="0" conaffinity="0"/>
                   </body>
                 </body>""",
        grip='<equality><connect body1="hand" anchor="0 0 0" solref="0.004 1"/></equality>',
        arm=f'<position joint="reach" kp="200000" forcerange="-{arm} {arm}"/>')
    sole = surface_contact(Pose(np.eye(3), np.zeros(3)), OUTLINE, 0.8)
    grip = grip_contact(Pose(np.eye(3), HAND), arm)
    predicted = edge_along(com_region([sole, grip], weight), heading)
    assert predicted == pytest.approx(0.1 + arm * HAND[2] / weight, abs=1e-6)
    assert found == pytest.approx(predicted, abs=0.005)
