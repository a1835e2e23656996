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
"""Approaching poses from both sides."""

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.identification.poses.pose_design import PoseDesigner
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions, PoseSafety
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

ANGLE = 0.05
OPTIONS = {'count': 4, 'candidates': 12, 'hoisted': 1, 'double_support': 1.0, 'torso_bend': 0.0,
           'margin': 0.02}


@pytest.fixture(scope='module', params=['sabian', 'talos'])
def planned(request):
    """Return a designer that approaches from both sides, its design and all visits."""
    designer = PoseDesigner(RobotModel.load(request.param), DesignOptions(
        approach='both', approach_angle=ANGLE, **OPTIONS))
    design = designer.design()
    return designer, design, designer.remaining(design, ())


def last_moves(visit):
    """Return the directions of the joints' last moves on a path, and how far these went."""
    steps = np.diff(visit.path, axis=0)
    ends = visit.path[-1] - visit.path
    moved = np.zeros(len(visit.positions))
    for joint in range(len(moved)):
        turns = np.flatnonzero(steps[:, joint] * steps[-1, joint] <= 0.0)
        moved[joint] = ends[turns[-1] + 1 if len(turns) else 0, joint]
    return moved


def test_joints_come_to_rest_from_opposite_sides(planned):
    designer, design, visits = planned
    model = designer.model
    motors = model.joint_index([
        name for name in model.actuated_joint_names if 'gripper' not in name])
    assert [visit.name for visit in visits] == [
        name for pose in design.poses for name in (pose.name, f'{pose.name} again')]
    assert all(0 < visit.slow_steps < len(visit.path) for visit in visits)
    shares = []
    for one, other, pose in zip(visits[::2], visits[1::2], design.poses):
        np.testing.assert_array_equal(one.path[-1], pose.positions)
        np.testing.assert_array_equal(other.path[-1], pose.positions)
        moves = [last_moves(visit)[motors] for visit in (one, other)]
        opposite = (moves[0] > 0.0) != (moves[1] > 0.0)
        far = np.minimum(*np.abs(moves)) >= 0.25 * ANGLE
        shares.append(np.mean(opposite & far))
    assert min(shares) > 0.75 and np.mean(shares) > 0.9


def test_the_second_visit_stays_beside_the_pose(planned):
    """Arms by the angle, legs by little more: a few degrees, not another pose."""
    _, _, visits = planned
    for visit in visits[1::2]:
        assert np.abs(visit.path - visit.positions).max() < 4.0 * ANGLE


def test_every_step_is_safe(planned):
    designer, _, visits = planned
    safety = PoseSafety(designer._estimator.regressor, designer._stances, designer.options)
    for visit in visits:
        standing = visit.standing
        assert all(safety.is_safe_on_path(q, standing) for q in visit.path)


def test_a_visit_that_is_done_is_not_planned_again(planned):
    designer, design, _ = planned
    done = {'pose 1', 'pose 1 again', 'pose 2'}
    left = [visit.name for visit in designer.remaining(design, done)]
    assert left == ['pose 2 again', 'pose 3', 'pose 3 again', 'pose 4', 'pose 4 again']


def test_shortest_paths_visit_once():
    designer = PoseDesigner(RobotModel.load('sabian'), DesignOptions(**OPTIONS))
    design = designer.design()
    assert [visit.name for visit in designer.remaining(design, ())] == [
        pose.name for pose in design.poses]
    assert designer.options.visits == 4
    assert not any(visit.slow_steps for visit in designer.remaining(design, ()))


def test_wrong_options_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'both'"):
        DesignOptions(approach='boht')
    with pytest.raises(ConfigurationError, match='approach_angle'):
        DesignOptions(approach_angle=0.0)
