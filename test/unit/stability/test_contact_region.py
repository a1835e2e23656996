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
"""Regions of support of feet and hands, by hand; see the oracle for any height and tilt."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.stability.contact_region import com_region, LastZmpRegion, zmp_region
from biped_com_ros.core.stability.contacts import grip_contact, surface_contact
from biped_com_ros.core.stability.support import support_polygon
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

FOOT = ((0.12, 0.05), (-0.08, 0.04), (-0.08, -0.06), (0.12, -0.03))
POINT = ((0.0, 0.0),)
WEIGHT = 350.0


def pose(position, normal=(0.0, 0.0, 1.0), yaw=0.0):
    """Return a pose whose z axis is the normal."""
    turn, _ = Rotation.align_vectors([normal], [(0.0, 0.0, 1.0)])
    turn = turn * Rotation.from_euler('z', yaw)
    return Pose(turn.as_matrix(), np.asarray(position, dtype=float))


def feet(friction=0.7):
    poses = [pose((0.03, 0.11, 0.0), yaw=0.3), pose((-0.02, -0.1, 0.0), yaw=-0.1)]
    return [surface_contact(p, FOOT, friction) for p in poses], support_polygon(poses, [FOOT] * 2)


def parallel_feet(friction=0.7):
    """Return soles whose toes and heels are in line, at x = 0.12 and -0.08."""
    outline = ((0.12, 0.05), (-0.08, 0.05), (-0.08, -0.05), (0.12, -0.05))
    return [surface_contact(pose((0.0, y, 0.0)), outline, friction) for y in (0.1, -0.1)]


def reach(region, direction):
    """Return how far a region goes in a level direction, m."""
    return (region.corners_in_world[:, :2] @ direction).max()


def assert_equal_reach(region, polygon):
    for angle in 2.0 * math.pi * np.arange(16) / 16:
        direction = (math.cos(angle), math.sin(angle))
        assert reach(region, direction) == pytest.approx(reach(polygon, direction), abs=1e-9)


@pytest.mark.parametrize('friction', [0.05, 0.7, 3.0])
def test_feet_on_level_ground_span_their_polygon_whatever_the_friction(friction):
    contacts, polygon = feet(friction)
    region = com_region(contacts, WEIGHT)
    assert region.area == pytest.approx(polygon.area, abs=1e-9)
    assert_equal_reach(region, polygon)
    assert (region.corners_in_world[:, 2] == 0.0).all()


def test_the_zmp_of_a_pendulum_over_level_feet_is_held_back_by_friction_only():
    contacts, polygon = feet(friction=0.9)
    com = np.array((0.01, 0.02, 0.8))
    assert_equal_reach(zmp_region(contacts, WEIGHT, com, Plane.level(0.0)), polygon)
    # The force leans by 0.02 at most, so the point stays within 0.02 x 0.8 m.
    slippery = parallel_feet(friction=0.02 * math.sqrt(2.0))
    region = zmp_region(slippery, WEIGHT, com, Plane.level(0.0))
    assert reach(region, (1.0, 0.0)) == pytest.approx(0.01 + 0.02 * 0.8, abs=1e-9)
    assert reach(region, (0.0, -1.0)) == pytest.approx(-0.02 + 0.02 * 0.8, abs=1e-9)


@pytest.mark.parametrize(('hand', 'ahead', 'behind', 'accuracy'), [
    (grip_contact(pose((-0.3, 0.0, 0.9)), 60.0), 60.0 * 0.9, 60.0 * 0.9, 1e-9),
    (surface_contact(pose((0.5, 0.0, 1.1), (-1.0, 0.0, 0.0)), POINT, 1e-6, 40.0), 40.0 * 1.1, 0.0,
     1e-6),
    (surface_contact(pose((0.6, 0.0, 0.8)), POINT, 1e-6, 100.0), 100.0 * (0.6 - 0.12), 0.0, 1e-6),
], ids=['grip', 'wall', 'rail'])
def test_a_hand_lets_the_robot_lean_by_its_moment(hand, ahead, behind, accuracy):
    """
    A moment balances ``W dx``: of a pull F at the height h by F h, on both sides.

    A wall ahead only pushes back, so that nothing is gained behind; a level rail carries N at its
    x and the toes the rest, up to its limit.
    """
    region = com_region([*parallel_feet(), hand], WEIGHT)
    assert reach(region, (1.0, 0.0)) == pytest.approx(0.12 + ahead / WEIGHT, abs=accuracy)
    assert reach(region, (-1.0, 0.0)) == pytest.approx(0.08 + behind / WEIGHT, abs=accuracy)


def test_soles_that_slip_carry_nothing():
    steep = [surface_contact(pose((0.0, y, 0.0), (0.0, 1.0, 0.5)), FOOT, 0.3) for y in (-0.2, 0.2)]
    assert com_region(steep, WEIGHT) is None
    with pytest.raises(InputError, match='below the plane'):
        zmp_region(steep, WEIGHT, np.zeros(3), Plane.level(0.5))


@pytest.mark.parametrize(('make', 'problem'), [
    *((lambda weight=weight: com_region(feet()[0], weight), 'weight')
      for weight in (0.0, -1.0, math.nan, math.inf)),
    *((lambda friction=friction: surface_contact(pose((0, 0, 0)), FOOT, friction), 'friction')
      for friction in (0.0, math.nan, math.inf)),
    (lambda: grip_contact(pose((0, 0, 0)), math.inf), 'grip'),
    (lambda: com_region([surface_contact(pose((math.nan, 0, 0)), FOOT, 0.5)], WEIGHT), 'finite')])
def test_weights_and_contacts_that_cannot_be_are_refused(make, problem):
    with pytest.raises(InputError, match=problem):
        make()


def on_stairs(shift=0.0, friction=0.7, rail=100.0):
    """Return contacts of a robot on a step whose hand holds a rail, one foot moved, m."""
    poses = [pose(at) for at in ((shift, 0.1, 0.0), (0.3, -0.1, 0.15))]
    return [*(surface_contact(each, FOOT, friction) for each in poses),
            grip_contact(pose((0.3, -0.4, 0.9)), rail)]


def test_the_region_is_computed_anew_only_when_something_has_moved():
    last, plane = LastZmpRegion(), Plane.level(0.07)
    com = np.array((0.15, 0.0, 0.8))
    first = last.update(on_stairs(), 600.0, com, plane)
    rng = np.random.default_rng(1)
    for _ in range(20):  # noise of joints at rest
        noisy = com + rng.uniform(-2e-4, 2e-4, 3)
        assert last.update(on_stairs(rng.uniform(-2e-4, 2e-4)), 600.0, noisy, plane) is first
        exact = zmp_region(on_stairs(), 600.0, noisy, plane)
        for way in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)):
            assert reach(first, way) == pytest.approx(reach(exact, way), abs=1e-3)
    for changed in ((on_stairs(0.002), 600.0, com, plane), (on_stairs(), 600.0, 1.01 * com, plane),
                    (on_stairs(friction=0.6), 600.0, com, plane),
                    (on_stairs(rail=90.0), 600.0, com, plane),
                    (on_stairs(), 630.0, com, plane), (on_stairs()[:2], 600.0, com, plane),
                    (on_stairs(), 600.0, com, Plane.level(0.1))):
        found = last.update(*changed)
        assert found is not first and found.corners == zmp_region(*changed).corners
        first = last.update(on_stairs(), 600.0, com, plane)
