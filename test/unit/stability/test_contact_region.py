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
"""Regions of support of feet and hands at any height: statics by hand, flat feet, limits."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.stability.contact_region import com_region, zmp_region
from biped_com_ros.core.stability.contacts import grip_contact, surface_contact
from biped_com_ros.core.stability.support import support_polygon
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

FOOT = ((0.12, 0.05), (-0.08, 0.04), (-0.08, -0.06), (0.12, -0.03))
POINT = ((0.0, 0.0),)
WEIGHT = 350.0


def pose(position, *rotation_vector):
    turn = Rotation.from_rotvec(rotation_vector or (0.0, 0.0, 0.0))
    return Pose(turn.as_matrix(), np.asarray(position, dtype=float))


def facing(position, normal):
    """Return a pose whose z axis is the normal."""
    turn, _ = Rotation.align_vectors([normal], [(0.0, 0.0, 1.0)])
    return Pose(turn.as_matrix(), np.asarray(position, dtype=float))


def feet(friction=0.7, step=0.0):
    poses = [pose((0.03, 0.11, 0.0), 0.0, 0.0, 0.3), pose((-0.02, -0.1, step), 0.0, 0.0, -0.1)]
    return poses, [surface_contact(p, FOOT, friction) for p in poses]


def parallel_feet(friction=0.7):
    """Return soles whose toes and heels are in line, at x = 0.12 and -0.08."""
    outline = ((0.12, 0.05), (-0.08, 0.05), (-0.08, -0.05), (0.12, -0.05))
    return [surface_contact(pose((0.0, y, 0.0)), outline, friction) for y in (0.1, -0.1)]


def reach(region, direction):
    """Return how far a region goes in a level direction, m."""
    return (region.corners_in_world[:, :2] @ direction).max()


def directions(count=16):
    angles = 2.0 * math.pi * np.arange(count) / count
    return np.column_stack((np.cos(angles), np.sin(angles)))


@pytest.mark.parametrize('friction', [0.05, 0.7, 3.0])
def test_feet_on_level_ground_span_their_polygon_whatever_the_friction(friction):
    poses, contacts = feet(friction)
    region, polygon = com_region(contacts, WEIGHT), support_polygon(poses, [FOOT] * 2)
    assert region.area == pytest.approx(polygon.area, abs=1e-9)
    for direction in directions():
        assert reach(region, direction) == pytest.approx(reach(polygon, direction), abs=1e-9)


def test_the_zmp_of_a_pendulum_over_level_feet_is_held_back_by_friction_only():
    poses, contacts = feet(friction=0.9)
    com = np.array((0.01, 0.02, 0.8))
    region = zmp_region(contacts, WEIGHT, com, Plane.level(0.0))
    polygon = support_polygon(poses, [FOOT] * 2)
    for direction in directions():
        assert reach(region, direction) == pytest.approx(reach(polygon, direction), abs=1e-9)
    # The force leans by 0.02 at most, so the point stays within 0.02 x 0.8 m.
    slippery = parallel_feet(friction=0.02 * math.sqrt(2.0))
    region = zmp_region(slippery, WEIGHT, com, Plane.level(0.0))
    assert reach(region, (1.0, 0.0)) == pytest.approx(0.01 + 0.02 * 0.8, abs=1e-9)
    assert reach(region, (0.0, -1.0)) == pytest.approx(-0.02 + 0.02 * 0.8, abs=1e-9)


def test_one_sole_on_a_slope_carries_over_its_shadow_until_it_slips():
    sole = pose((0.4, -0.2, 0.3), 0.0, 0.3, 0.0)
    region = com_region([surface_contact(sole, FOOT, 0.5)], WEIGHT)
    expected = sole.apply(np.array([(x, y, 0.0) for x, y in FOOT]))
    for direction in directions():
        assert reach(region, direction) == pytest.approx(
            (expected[:, :2] @ direction).max(), abs=1e-9)
    assert com_region([surface_contact(sole, FOOT, 0.3)], WEIGHT) is None  # tan 0.3 = 0.309


def test_a_grip_behind_lets_the_robot_lean_forward_by_its_moment():
    """A pull of F at the height h balances W dx = F h, and the soles' friction balances F."""
    pull, height = 60.0, 0.9
    grip = grip_contact(pose((-0.3, 0.0, height)), pull)
    region = com_region([*parallel_feet(), grip], WEIGHT)
    assert reach(region, (1.0, 0.0)) == pytest.approx(0.12 + pull * height / WEIGHT, abs=1e-9)
    assert reach(region, (-1.0, 0.0)) == pytest.approx(0.08 + pull * height / WEIGHT, abs=1e-9)


def test_a_hand_that_leans_on_a_wall_only_pushes():
    """The wall ahead pushes back: the robot may lean forward on it, and gains nothing behind."""
    push, height = 40.0, 1.1
    wall = surface_contact(facing((0.5, 0.0, height), (-1.0, 0.0, 0.0)), POINT, 1e-6, push)
    region = com_region([*parallel_feet(), wall], WEIGHT)
    assert reach(region, (1.0, 0.0)) == pytest.approx(0.12 + push * height / WEIGHT, abs=1e-6)
    assert reach(region, (-1.0, 0.0)) == pytest.approx(0.08, abs=1e-6)


def test_a_hand_on_a_level_rail_is_a_foot_until_its_limit():
    """The rail carries N at its x, the toes the rest: ``x = toe + N (rail - toe) / W``."""
    rail, largest = 0.6, 100.0
    hand = surface_contact(pose((rail, 0.0, 0.8)), POINT, 1e-6, largest)
    region = com_region([*parallel_feet(), hand], WEIGHT)
    assert reach(region, (1.0, 0.0)) == pytest.approx(
        0.12 + largest * (rail - 0.12) / WEIGHT, abs=1e-6)
    assert (region.corners_in_world[:, 2] == 0.0).all()


def test_feet_on_stairs_span_their_shadow_and_more_by_friction():
    """Level forces of F on soles that differ in height by d move it by F d / W further."""
    step, friction = 0.2, 0.5
    poses, contacts = feet(friction=1e-7, step=step)
    points = np.concatenate([p.apply(np.array([(*c, 0.0) for c in FOOT])) for p in poses])
    for direction in directions():
        shadow = (points[:, :2] @ direction).max()
        assert reach(com_region(contacts, WEIGHT), direction) == pytest.approx(shadow, abs=1e-6)
    # Points at one y: loads a and 1 - a, and F <= friction / sqrt(2) of the smaller one.
    ends = [surface_contact(pose((x, 0.0, z)), POINT, friction)
            for x, z in ((-0.1, 0.0), (0.1, step))]
    tangent = friction / math.sqrt(2.0)
    loads = np.linspace(0.0, 1.0, 10001)
    expected = (-0.1 * (1 - loads) + 0.1 * loads
                + step * tangent * np.minimum(loads, 1 - loads)).max()
    assert reach(com_region(ends, WEIGHT), (1.0, 0.0)) == pytest.approx(expected, abs=1e-9)


def test_the_zmp_of_a_robot_at_rest_is_inside_exactly_where_its_com_is():
    """Both regions agree where they must: the point below a resting centre of mass."""
    rng = np.random.default_rng(3)
    _, contacts = feet(friction=0.6, step=0.1)
    contacts += [surface_contact(facing((0.5, 0.2, 1.0), (-1.0, 0.2, 0.4)), POINT, 0.5, 120.0),
                 grip_contact(pose((-0.1, -0.4, 0.9)), 50.0)]
    region = com_region(contacts, WEIGHT)
    inside = 0
    for x, y in rng.uniform((-0.4, -0.4), (0.6, 0.4), (100, 2)):
        distance = region.distance((x, y, 0.0))
        zmps = zmp_region(contacts, WEIGHT, np.array((x, y, 0.8)), Plane.level(0.05))
        is_inside = zmps is not None and zmps.distance((x, y, 0.05)) > -1e-9
        assert abs(distance) < 1e-6 or is_inside == (distance > 0.0)
        inside += is_inside
    assert 20 < inside < 80


def test_the_zmp_region_moves_with_world_and_plane():
    """A turn about the vertical and a shift of everything shift and turn the region."""
    _, contacts = feet(friction=0.6, step=0.1)
    com, plane = np.array((0.02, 0.0, 0.8)), Plane.with_normal((0.1, -0.05, 1.0), (0.0, 0.0, 0.02))
    region = zmp_region(contacts, WEIGHT, com, plane)
    move = pose((3.0, -7.0, 0.4), 0.0, 0.0, 1.1)
    moved = [type(c)(move @ c.pose, c.generators, c.largest_force) for c in contacts]
    turned = zmp_region(moved, WEIGHT, move.apply(com), Plane.with_normal(
        move.rotation @ plane.normal, move.apply(np.array(plane.origin))))
    expected = move.apply(region.corners_in_world)
    for direction in directions():
        assert reach(turned, direction) == pytest.approx(
            (expected[:, :2] @ direction).max(), abs=1e-9)


def test_soles_that_slip_carry_nothing():
    steep = [surface_contact(facing((0.0, side * 0.2, 0.0), (0.0, 1.0, 0.5)), FOOT, 0.3)
             for side in (-1, 1)]
    assert com_region(steep, WEIGHT) is None
    with pytest.raises(InputError, match='below the plane'):
        zmp_region(steep, WEIGHT, np.zeros(3), Plane.level(0.5))


@pytest.mark.parametrize('weight', [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_cannot_be_is_refused(weight):
    with pytest.raises(InputError, match='weight'):
        com_region(feet()[1], weight)


def test_contacts_that_cannot_be_are_refused():
    with pytest.raises(InputError, match='friction'):
        surface_contact(pose((0, 0, 0)), FOOT, 0.0)
    with pytest.raises(InputError, match='grip'):
        grip_contact(pose((0, 0, 0)), math.inf)
    with pytest.raises(InputError, match='finite'):
        com_region([surface_contact(pose((math.nan, 0, 0)), FOOT, 0.5)], WEIGHT)
