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
"""Support polygons of soles in space: tilted, on stairs, far away; margins; time to the edge."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import convex_hull, margin
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.support import Soles, support_polygon, SupportPolygon
import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.spatial.transform import Rotation

FOOT = ((0.12, 0.05), (-0.08, 0.04), (-0.08, -0.06), (0.12, -0.03))
SQUARE = ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0))


def pose(yaw, position, tilt=0.0, axis=(1.0, 0.0, 0.0)):
    """Heading, then a tilt about a level axis, both in the world."""
    turn = Rotation.from_rotvec(tilt * np.asarray(axis)) * Rotation.from_euler('z', yaw)
    return Pose(turn.as_matrix(), np.asarray(position, dtype=float))


def corners_of(poses, frame=None):
    """Return corners of all soles, in the world or in a frame."""
    points = [p.apply(np.array([(*corner, 0.0) for corner in FOOT])) for p in poses]
    return (frame or Pose.identity()).inverse().apply(np.concatenate(points))


def test_one_sole_has_its_own_polygon_plane_and_margin():
    sole = pose(0.7, (3.0, -2.0, 1.4), 0.3, (0.6, 0.8, 0.0))
    polygon = support_polygon([sole], [FOOT])
    assert_allclose(polygon.plane.normal, sole.rotation[:, 2], atol=1e-15)
    assert polygon.unevenness < 1e-15
    assert polygon.area == pytest.approx(0.2 * 0.5 * (0.08 + 0.10))
    inside = sole.apply(np.array((0.0, 0.0, 0.5)))  # the height over the sole does not count
    expected = margin(convex_hull(FOOT), (0.0, 0.0)).distance
    assert polygon.margin(inside).distance == pytest.approx(expected)
    assert expected > 0.03


def test_soles_on_one_slope_span_a_polygon_in_the_slope():
    """All corners lie in the plane, at any heading and far from the origin."""
    slope = pose(0.0, (400.0, -300.0, 50.0), 0.2, (0.0, 1.0, 0.0))
    soles = [slope @ pose(0.4, (0.1, 0.12, 0.0)), slope @ pose(-0.2, (-0.05, -0.15, 0.0))]
    polygon = support_polygon(soles, [FOOT, FOOT])
    assert polygon.unevenness < 1e-12
    assert_allclose(polygon.plane.normal, slope.rotation[:, 2], atol=1e-12)
    # Against the hull taken in axes of the slope.
    expected = convex_hull(corners_of(soles, slope)[:, :2].tolist())
    found = slope.inverse().apply(polygon.corners_in_world)
    assert len(found) == len(expected)
    for corner in expected:
        assert np.abs(found[:, :2] - corner).sum(axis=1).min() < 1e-11
    assert SupportPolygon(Plane.level(0.0), expected).area == pytest.approx(polygon.area)


def test_stairs_are_projected_onto_a_plane_halfway():
    soles = [pose(0.3, p) for p in ((0.3, 0.1, 0.15), (0.0, -0.1, 0.0))]
    polygon = support_polygon(soles, [FOOT, FOOT])
    assert_allclose(polygon.plane.normal, (0.0, 0.0, 1.0), atol=1e-15)
    assert_allclose(polygon.corners_in_world[:, 2], 0.075, atol=1e-15)
    assert polygon.unevenness == pytest.approx(0.075)
    expected = convex_hull(corners_of(soles)[:, :2].tolist())
    assert_allclose(sorted(polygon.corners_in_world[:, :2].tolist()), sorted(expected), atol=1e-14)


def test_only_soles_in_contact_count():
    poses = [pose(0.0, (0.0, y, 0.0)) for y in (0.1, -0.1)]
    both = support_polygon(poses, [FOOT, FOOT])
    right = support_polygon(poses, [FOOT, FOOT], (False, True))
    assert support_polygon(poses, [FOOT, FOOT], (False, False)) is None
    assert both.corners_in_world[:, 1].max() == pytest.approx(0.15)
    assert right.corners_in_world[:, 1].max() == pytest.approx(-0.05)


@pytest.mark.parametrize('tilt', [math.pi, 0.5 * math.pi])
def test_a_sole_that_looks_down_or_sideways_is_refused(tilt):
    with pytest.raises(InputError, match='check the direction of the sole frames'):
        support_polygon([pose(0.3, (0, 0, 0), tilt)], [FOOT])


def test_a_model_brings_its_configured_polygons():
    model = RobotModel.load('biped')
    state = model.state(model.posture())
    polygon = Soles.of(model).support(state.placements_in_base(model.soles), (True, True))
    assert np.ptp(polygon.corners_in_world[:, 0]) == pytest.approx(0.15, abs=1e-3)
    assert polygon.unevenness < 1e-4


def test_time_to_the_edge_is_that_of_the_pendulum():
    polygon = SupportPolygon(Plane.level(0.3), convex_hull(SQUARE))
    omega_0, zmp, dcm = 3.2, np.array((0.9, 0.4, 0.3)), np.array((0.95, 0.47, 0.3))
    found = polygon.time_to_edge(tuple(dcm), tuple(zmp), omega_0)
    assert 0.3 < found < 1.5
    for t, distance in ((found, 0.0), (0.9 * found, None)):
        reached = polygon.margin(zmp + math.exp(omega_0 * t) * (dcm - zmp)).distance
        assert reached > 0.01 if distance is None else reached == pytest.approx(0.0, abs=1e-12)


def test_time_to_the_edge_at_its_limits():
    polygon = SupportPolygon(Plane.level(0.0), convex_hull(SQUARE))
    centre, outside = (1.0, 0.5, 0.0), (1.0, 1.2, 0.0)
    assert polygon.time_to_edge(centre, centre, 3.0) == math.inf
    assert polygon.time_to_edge(outside, centre, 3.0) == 0.0
    # A ZMP beyond the DCM drives it through the polygon to the far edge.
    driven = polygon.time_to_edge(centre, (1.0, 0.9, 0.0), 3.0)
    assert driven == pytest.approx(math.log(0.9 / 0.4) / 3.0)
