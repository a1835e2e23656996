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
"""Velocity of the centre of mass and divergent component, against differences and the pendulum."""

from biped_com_ros.core.com.estimate import (
    com_velocity_in_world, divergent_component, natural_frequency)
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.state.stance import Twist
import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from support.small_robot import random_joints, small_robot


@pytest.mark.parametrize('seed', range(5))
def test_velocity_is_the_derivative_of_the_com_with_everything_moving(seed):
    """The base moves and turns while the joints move; every term is larger than the tolerance."""
    rng, model, h = np.random.default_rng(seed), small_robot(), 1e-6
    positions, velocities = random_joints(model, rng)
    base = Pose(Rotation.random(random_state=seed).as_matrix(), rng.normal(size=3))
    twist = Twist(*rng.normal(size=(2, 3)))

    def com_at(t):
        turned = base.rotation @ Rotation.from_rotvec(twist.angular * t).as_matrix()
        moved = Pose(turned, base.position + base.rotation @ twist.linear * t)
        return model.state(positions + velocities * t).in_world(moved).com_in_world

    state = model.state(positions, velocities).in_world(base)
    numeric = (com_at(h) - com_at(-h)) / (2.0 * h)
    assert_allclose(com_velocity_in_world(state, twist), numeric, atol=1e-7)
    assert np.linalg.norm(state.com_velocity_in_base) > 0.01
    assert np.linalg.norm(np.cross(twist.angular, state.com_in_base)) > 0.01


def test_natural_frequency_of_a_pendulum_above_its_sole():
    assert natural_frequency(GRAVITY) == pytest.approx(1.0)
    assert natural_frequency(1.0, gravity=4.0) == pytest.approx(2.0)
    for height in (0.0, -0.3, np.nan):
        with pytest.raises(InputError, match='must be above zero'):
            natural_frequency(height)


def test_the_pendulum_stops_above_its_divergent_component():
    """Put the centre of pressure on it and integrate: the CoM comes to rest right there."""
    ground, height = 0.1, 0.7
    com, velocity = np.array([0.2, -0.1, ground + height]), np.array([0.5, -0.3, 0.02])
    target = np.array(divergent_component(com.tolist(), velocity.tolist(), ground))
    assert target[2] == ground
    end = solve_ivp(
        lambda _, s: np.concatenate((s[2:], GRAVITY / height * (s[:2] - target[:2]))),
        (0.0, 2.0), np.concatenate((com[:2], velocity[:2])), rtol=1e-12, atol=1e-12).y[:, -1]
    assert_allclose(end[:2], target[:2], atol=1e-3)
    assert_allclose(end[2:], 0.0, atol=1e-2)
    assert np.linalg.norm(target[:2] - com[:2]) > 0.1
