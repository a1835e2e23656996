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
"""Where a gait is in the world: exact inverses, with lever arms, at any heading."""

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.gait import single_step
from biped_com_ros.core.legs.walk_session import com_offset, gait_origin
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.mark.parametrize('yaw', [0.0, 0.7, -2.8])
def test_the_soles_of_the_gait_are_where_the_soles_of_the_robot_are(model, yaw):
    gait = single_step(model, 0.05)
    base = Pose.from_rpy((0.01, -0.02, yaw), np.array((3.0, -2.0, 0.4)))
    state = model.state(model.posture('stand')).in_world(base)
    origin = gait_origin(state, state.com_in_world, gait)
    in_gait = np.array([(x, y, 0.0) for x, y, *_ in gait.plan.soles(0.0)])
    np.testing.assert_allclose(origin.apply(in_gait).mean(axis=0),
                               state.soles_in_world.mean(axis=0), atol=1e-12)
    apart = np.diff(origin.apply(in_gait), axis=0) - np.diff(state.soles_in_world, axis=0)
    assert np.abs(apart[:, :2]).max() < 0.01  # but for the lean of the base


def test_the_position_of_the_base_does_not_matter(model):
    gait, R = single_step(model, 0.05), Pose.from_rpy((0.0, 0.1, 1.0), np.zeros(3)).rotation
    com = np.array((5.0, 6.0, 0.5))
    origins = [gait_origin(model.state(model.posture('stand')).in_world(Pose(R, position)),
                           com, gait) for position in (np.zeros(3), np.array((9.0, -9.0, 2.0)))]
    np.testing.assert_array_equal(origins[0].position, origins[1].position)


def test_the_offset_is_opposite_to_the_bias_in_the_axes_of_the_gait():
    heading = Pose.from_rpy((0.0, 0.0, 0.5 * np.pi), np.zeros(3)).rotation
    # The kinematic CoM is 10 mm too far along the world's y, so the true one is 10 mm behind.
    np.testing.assert_allclose(
        com_offset(heading, np.array((0.0, 0.01, 0.3)), 0.03), (-0.01, 0.0), atol=1e-15)
    np.testing.assert_allclose(
        com_offset(heading, np.array((0.01, 0.0, 0.3)), 0.03), (0.0, 0.01), atol=1e-15)


def test_an_offset_that_is_too_large_is_refused():
    with pytest.raises(InputError, match='50 mm from where the URDF has it .max_com_offset 30 mm'):
        com_offset(np.eye(3), np.array((0.03, 0.04, 0.0)), 0.03)
