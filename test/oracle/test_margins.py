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
"""Margins of standing and of tipping robots, explained by what touches the simulator's floor."""

from biped_com_ros.core.geometry.polygon import convex_hull, margin
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.wrench.aggregation import AggregationSettings
from biped_com_ros.sim.interface import PlantOptions
import numpy as np
import pytest
from support.levels import thorough_but
from support.zmp_pipeline import Pipeline

OPTIONS = PlantOptions(tendons=False)


@pytest.mark.parametrize('robot', thorough_but(
    'biped', 'sabian', 'talos', 'romeo', 'bioloid_legs', 'g1', 'icub'))
def test_a_robot_that_stands_has_positive_margins(robot):
    """Its feet touch at the corners of its polygons, which can only push."""
    pipeline = Pipeline(robot, OPTIONS)
    margins = [(report.zmp_margin, report.dcm_margin)
               for t, report, _ in pipeline.run(0.8) if t > 0.6]
    assert np.min(margins) > 0.04, 'soles are 0.1 m long, or longer'
    assert pipeline.monitor.classifier.level == Level.STABLE


def true_margin(pipeline, truth):
    """Return how far MuJoCo's ZMP is inside the hull of all corners, flat or not, m."""
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    model = pipeline.model
    state = model.state(pipeline.observation.joint_positions).in_world(base)
    corners = [placement[:3].T @ (x, y, 0.0) + placement[3]
               for placement, foot in zip(
                   state.sole_placements_in_world, model.config.feet.values())
               for x, y in foot.polygon]
    return margin(convex_hull(np.array(corners)[:, :2].tolist()), truth.zmp[:2].tolist()).distance


@pytest.mark.parametrize('cutoff, worst', thorough_but((0.0, -0.003), (50.0, -0.010)))
def test_a_robot_that_tips_has_none_and_what_is_below_zero_is_measured_so(cutoff, worst):
    """The true ZMP is on the edge; behind the low-pass, moments follow its jumps 4 ms later."""
    pipeline = Pipeline('biped', OPTIONS, aggregation=AggregationSettings(low_pass_cutoff=cutoff))
    measured, true = [], []
    for t, report, truth in pipeline.run(1.6):
        if abs(t - 0.5) < 1e-9:
            pipeline.plant.push('torso', (5.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.2)
        if t > 0.5:
            measured.append(report.zmp_margin)
            true.append(true_margin(pipeline, truth))
    assert not pipeline.plant.has_fallen
    assert sum(distance < 1e-3 for distance in true) > 50, 'it tips for a while'
    assert min(true) > -1e-3
    assert worst < min(measured) < 0.0
    if cutoff:
        assert min(measured) < -0.004
