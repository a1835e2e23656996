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
"""Rigid placements against SciPy's rotations."""

from pathlib import Path

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import (
    cross, footprint_pose, heading_of, Pose, quaternion_from_rotation, rotation_about,
    rotation_from_quaternion, turned, yaw_of)
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from scipy.spatial.transform import Rotation

RNG = np.random.default_rng(7)
SOLES = np.array([[0.4, 0.3, -0.7], [0.1, -0.2, -0.6]])


def random_pose():
    return Pose(Rotation.random(random_state=RNG.integers(1 << 31)).as_matrix(),
                RNG.normal(size=3))


@pytest.mark.parametrize('seed', range(5))
def test_quaternions_are_xyzw_and_are_normalised(seed):
    rotation = Rotation.random(random_state=seed)
    expected, quaternion = rotation.as_matrix(), rotation.as_quat()
    assert_allclose(rotation_from_quaternion((3.7 * quaternion).tolist()), expected, atol=1e-14)
    back = quaternion_from_rotation(expected)
    assert_allclose(back * np.sign(back @ quaternion), quaternion, atol=1e-14)
    pose = Pose.from_quaternion(quaternion, np.ones(3))
    assert_allclose(pose.rotation, expected, atol=1e-14)
    assert_allclose(np.abs(pose.quaternion @ quaternion), 1.0)


@pytest.mark.skipif(not Path('/proc/self/statm').exists(), reason='memory is read from /proc')
@pytest.mark.parametrize('rotation', [
    np.eye(3), np.asfortranarray(np.eye(3)), np.eye(6)[::2, ::2], np.eye(3).tolist()],
    ids=['rows', 'columns', 'strides', 'lists'])
def test_quaternions_keep_no_memory(rotation):
    for _ in range(1000):
        quaternion_from_rotation(rotation)
    before = pages()
    for _ in range(20_000):
        quaternion_from_rotation(rotation)
    assert (pages() - before) * 4096 < 20_000 * 10  # bytes; a matrix has 72


def pages():
    return int(Path('/proc/self/statm').read_text().split()[1])


@pytest.mark.parametrize('bad', [
    (0.0, 0.0, 0.0, 0.0), (np.nan, 0.0, 0.0, 1.0), (0.0, np.inf, 0.0, 1.0), (1e200, 0, 0, 1)])
def test_what_is_no_rotation_is_refused(bad):
    with pytest.raises(InputError, match='not a rotation; its norm must be 1'):
        rotation_from_quaternion(np.array(bad))


@pytest.mark.parametrize('dt', [0.01, -0.01])
def test_an_orientation_is_carried_on_by_the_gyroscope(dt):
    """The rate is along the axes of the turning frame, so it multiplies from the right."""
    start, rate = Rotation.random(random_state=3), np.array([0.7, -1.1, 0.4])
    exact = start * Rotation.from_rotvec(rate * dt)
    ahead = Rotation.from_matrix(rotation_from_quaternion(turned(start.as_quat(), rate, dt)))
    assert (exact.inv() * ahead).magnitude() < (np.linalg.norm(rate) * 0.01) ** 3 / 11.0


def test_rpy_is_about_fixed_axes_as_in_urdf():
    rpy = (0.3, -0.7, 2.1)
    pose = Pose.from_rpy(rpy, np.array([1.0, 2.0, 3.0]))
    assert_allclose(pose.rotation, Rotation.from_euler('xyz', rpy).as_matrix())
    assert_array_equal(pose.position, [1.0, 2.0, 3.0])


def test_chain_inverse_and_identity_are_those_of_homogeneous_matrices():
    def homogeneous(pose):
        return np.block([[pose.rotation, pose.position[:, np.newaxis]], [0.0, 0.0, 0.0, 1.0]])
    a, b = random_pose(), random_pose()
    assert_allclose(homogeneous(a @ b), homogeneous(a) @ homogeneous(b), atol=1e-14)
    assert_allclose(homogeneous(a.inverse()) @ homogeneous(a), np.eye(4), atol=1e-14)
    assert_array_equal(homogeneous(Pose.identity()), np.eye(4))


def test_one_point_many_or_plain_numbers_are_placed():
    pose, points = random_pose(), RNG.normal(size=(4, 2, 3))
    point = points[3, 1]
    expected = pose.rotation @ point + pose.position
    many = pose.apply(points)
    assert many.shape == points.shape
    for found in (many[3, 1], pose.apply(point), pose.place(*point)):
        assert_allclose(found, expected, atol=1e-14)
    assert_allclose(pose.turn(*point), pose.rotation @ point, atol=1e-14)
    assert_allclose(cross(*points[:2, 0]), np.cross(*points[:2, 0]), atol=1e-15)


@pytest.mark.parametrize('axis', (0, 1, 2))
def test_a_rotation_about_an_axis_is_scipys(axis):
    for angle in (-2.0, 0.0, 0.3, 3.0):
        expected = Rotation.from_euler('xyz'[axis], angle).as_matrix()
        assert_allclose(rotation_about(axis, angle), expected, atol=1e-15)


def test_the_heading_is_that_of_the_x_axis_whatever_the_lean():
    leaning = Rotation.from_euler('ZYX', (2.5, 0.4, -0.9)).as_matrix()
    assert yaw_of(leaning) == pytest.approx(2.5)
    assert heading_of(leaning) == pytest.approx((np.cos(2.5), np.sin(2.5)))
    straight_up = Rotation.from_euler('y', -np.pi / 2).as_matrix()
    straight_up[:2, 0] = 0.0
    assert heading_of(straight_up) == (1.0, 0.0)


@pytest.mark.parametrize('in_contact, position', [
    ((True, True), (0.25, 0.05, -0.7)), ((True, False), (0.4, 0.3, -0.7)),
    ((False, True), (0.1, -0.2, -0.6)), ((False, False), (0.25, 0.05, -0.7))])
def test_the_footprint_is_level_and_on_the_floor_between_the_feet_that_touch(in_contact, position):
    soles, base = SOLES.copy(), Pose.from_rpy((0.2, -0.3, 2.1), np.array([1.0, 2.0, 0.8]))
    pose = footprint_pose(base, soles, in_contact)
    assert_allclose(pose.position, position)
    assert_allclose(pose.rotation, Rotation.from_euler('z', 2.1).as_matrix(), atol=1e-15)
    assert_array_equal(soles, SOLES)
