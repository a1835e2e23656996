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
    cross, heading_of, Pose, quaternion_from_rotation, rotation_about, rotation_from_quaternion,
    turned, yaw_of)
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

RNG = np.random.default_rng(7)


def random_pose():
    return Pose(Rotation.random(random_state=RNG.integers(1 << 31)).as_matrix(),
                RNG.normal(size=3))


@pytest.mark.parametrize('seed', range(5))
def test_quaternions_are_xyzw_and_are_normalised(seed):
    rotation = Rotation.random(random_state=seed)
    np.testing.assert_allclose(
        rotation_from_quaternion(3.7 * rotation.as_quat()), rotation.as_matrix(), atol=1e-14)
    back = quaternion_from_rotation(rotation.as_matrix())
    np.testing.assert_allclose(back * np.sign(back @ rotation.as_quat()), rotation.as_quat(),
                               atol=1e-14)
    pose = Pose.from_quaternion(rotation.as_quat(), np.ones(3))
    np.testing.assert_allclose(pose.rotation, rotation.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(np.abs(pose.quaternion @ rotation.as_quat()), 1.0)


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


def test_quaternion_as_a_plain_list():
    np.testing.assert_allclose(rotation_from_quaternion([0, 0, 1, 0]), np.diag([-1.0, -1.0, 1.0]))


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
    np.testing.assert_allclose(pose.rotation, Rotation.from_euler('xyz', rpy).as_matrix())
    np.testing.assert_array_equal(pose.position, [1.0, 2.0, 3.0])


def test_chaining_is_the_product_of_homogeneous_matrices():
    a, b = random_pose(), random_pose()
    point = RNG.normal(size=3)
    np.testing.assert_allclose((a @ b).apply(point), a.apply(b.apply(point)))
    np.testing.assert_allclose(a.apply(point), a.rotation @ point + a.position)


def test_apply_takes_one_point_or_many():
    pose, points = random_pose(), RNG.normal(size=(4, 2, 3))
    many = pose.apply(points)
    np.testing.assert_allclose(many[3, 1], pose.apply(points[3, 1]))
    assert many.shape == points.shape


def test_plain_numbers_are_placed_and_turned_as_arrays_are():
    pose, point = random_pose(), RNG.normal(size=3)
    np.testing.assert_allclose(pose.place(*point), pose.apply(point), atol=1e-14)
    np.testing.assert_allclose(pose.turn(*point), pose.rotation @ point, atol=1e-14)


def test_inverse_undoes():
    pose = random_pose()
    for chain in (pose @ pose.inverse(), pose.inverse() @ pose):
        np.testing.assert_allclose(chain.rotation, np.eye(3), atol=1e-14)
        np.testing.assert_allclose(chain.position, 0.0, atol=1e-14)


def test_identity_changes_nothing():
    point = RNG.normal(size=3)
    np.testing.assert_array_equal(Pose.identity().apply(point), point)


def test_cross_product():
    a, b = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(cross(a, b), np.cross(a, b), atol=1e-15)


@pytest.mark.parametrize('axis', (0, 1, 2))
def test_a_rotation_about_an_axis_is_scipys(axis):
    for angle in (-2.0, 0.0, 0.3, 3.0):
        np.testing.assert_allclose(
            rotation_about(axis, angle), Rotation.from_euler('xyz'[axis], angle).as_matrix(),
            atol=1e-15)


def test_yaw_is_the_heading_of_the_x_axis():
    rotation = Rotation.from_euler('ZYX', (2.5, 0.4, -0.9)).as_matrix()
    assert yaw_of(rotation) == pytest.approx(2.5)


def test_the_heading_ignores_the_lean():
    assert heading_of(Rotation.from_euler('xyz', (0.2, -0.3, 2.5)).as_matrix()) == pytest.approx(
        (np.cos(2.5), np.sin(2.5)))
    straight_up = Rotation.from_euler('y', -np.pi / 2).as_matrix()
    straight_up[:2, 0] = 0.0
    assert heading_of(straight_up) == (1.0, 0.0)
