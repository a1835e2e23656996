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
"""Postures of the robot's YAML instead of planned poses, and a calibration that plays them."""

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.identification.poses.posture_plan import PosturePlanner
from biped_com_ros.core.identification.session import SessionState
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.calibration_bench import CalibrationBench, true_robot

LEAN = np.radians(10.0)


def planner(*postures, **others):
    """Return a planner for the paper's robot with further postures, (joint, rad) by name."""
    model = RobotModel.load('three_link')
    config: RobotConfig = model.config
    config = type(config)(**{**vars(config), 'postures': {**config.postures, **others}})
    return PosturePlanner(RobotModel(config, model.urdf), DesignOptions(postures=postures))


def test_they_are_taken_in_sequence_by_straight_ways():
    plan = planner('a', 'b', 'a', 'c')
    design = plan.design()
    assert [pose.name for pose in design.poses] == [
        'posture a', 'posture b', 'posture a, time 2', 'posture c']
    at = plan.model.posture('stand')
    for pose in design.poses:
        np.testing.assert_array_equal(pose.path[-1], pose.positions)
        steps = np.diff(np.concatenate((at[np.newaxis], pose.path)), axis=0)
        assert np.abs(steps).max() <= plan.options.step + 1e-12
        np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-12)
        at = pose.positions
    assert 'posture b' in design.summary() and ' mm inside the edges' in design.summary()
    # Shins, thighs and waist, 5.16 of 18.6 kg, lean over soles that reach 130 mm forward.
    forward = 5.16 / 18.6 * 0.52984 * np.sin(LEAN)
    assert design.poses[1].margin == pytest.approx(0.13 - forward, abs=1e-5)


def test_those_that_are_left_begin_where_the_robot_is():
    plan = planner('a', 'b')
    design = plan.design()
    left, = plan.remaining(design, {'posture a'})
    np.testing.assert_array_equal(left.path[-1], plan.model.posture('b'))
    stand = plan.model.posture('stand')
    np.testing.assert_array_equal(plan.way_home(left)[-1], stand)
    assert plan.locate(design, stand + 0.01, 0.05) is None
    assert plan.locate(design, plan.model.posture('b') - 0.01, 0.05) is design.poses[1]
    with pytest.raises(InputError, match='0.20 rad away .* bring it to posture stand'):
        plan.locate(design, plan.model.posture('b') - 0.2, 0.05)


@pytest.mark.parametrize(('joints', 'problem'), [
    ({'l_ankle_pitch': -0.9, 'r_ankle_pitch': -0.9}, 'centre of mass too near the edge'),
    ({'l_ankle_pitch': -1.0, 'r_ankle_pitch': -1.0}, "limit of joint 'l_ankle_pitch'"),
    ({'l_ankle_pitch': -0.1}, 'legs of both sides must move alike'),
    ({'l_knee': 0.2, 'l_ankle_pitch': -0.2}, 'soles would move against each other, by up to')])
def test_what_is_not_safe_is_refused_with_the_reason(joints, problem):
    with pytest.raises(InputError, match=problem) as refused:
        planner('a', 'd', d=joints).design()
    assert "'d'" in str(refused.value)


def test_names_that_do_not_exist():
    with pytest.raises(UnknownNameError, match="posture 'upright' in three_link .valid: a, b, c"):
        planner('upright').design()


def test_a_session_plays_them_and_gives_the_total_centre_of_mass(tmp_path):
    true = true_robot('three_link', ('seed', 3), ('extra', 0.0), ('com_sigma', 0.0))
    bench = CalibrationBench(tmp_path, true, design={'postures': ('a', 'b', 'c'), 'hoisted': 0},
                             settling_time=2.0, arrival_tolerance=0.05)
    assert bench.session.options.design.visits == 3
    bench.session.start()
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == ['posture a', 'posture b', 'posture c']
    for capture, name in zip(bench.session.log.captures, 'abc'):
        np.testing.assert_allclose(capture.positions, true.model.posture(name), atol=1e-9)
    result, = [text for text in bench.infos if 'two poses' in text]
    assert "'posture a' and 'posture b': two poses, 10.00 deg apart" in result
    assert not bench.driver.moves  # it stands all the time
    np.testing.assert_allclose(bench.driver.positions, true.model.posture('stand'))


def test_it_waits_for_the_robot_to_settle(tmp_path):
    true = true_robot('three_link', ('seed', 3), ('extra', 0.0), ('com_sigma', 0.0))
    times = []
    for settling in (0.0, 3.0):
        bench = CalibrationBench(tmp_path / str(settling), true,
                                 design={'postures': ('a',), 'hoisted': 0}, settling_time=settling)
        bench.session.start()
        bench.run(lambda session=bench.session: len(session.log.captures) == 1)
        times.append(bench.now)
    assert times[1] - times[0] == pytest.approx(3.0, abs=0.15)
