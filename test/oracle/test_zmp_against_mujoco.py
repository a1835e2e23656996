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
"""The measured and the model's ZMP against the contact forces inside MuJoCo's solver."""

from biped_com_ros.core.stability.levels import Level
from biped_com_ros.sim.interface import PlantOptions
import numpy as np
import pytest
from support.levels import thorough_but
from support.zmp_pipeline import Pipeline

OPTIONS = PlantOptions(tendons=False)


@pytest.fixture(params=thorough_but('biped', 'talos'))
def pipeline(request):
    return Pipeline(request.param, OPTIONS)


def test_standing(pipeline):
    errors, differences, margins = [], [], []
    for t, report, truth in pipeline.run(1.6):
        if t > 1.2:
            errors.append(np.linalg.norm(report.zmp_in_world - truth.zmp))
            differences.append(np.linalg.norm(report.zmp_difference))
            margins.append(report.zmp_margin)
    assert max(errors) < 1e-3
    assert max(differences) < 2e-3
    assert min(margins) > 0.02
    assert pipeline.monitor.classifier.level == Level.STABLE


@pytest.mark.thorough
def test_swaying_at_1_hz(pipeline):
    """Measured within 3 mm of the truth; the model's within 3 mm of the measured one."""
    soles = pipeline.model.state(pipeline.model.posture()).soles_in_world
    side = 0.12 * np.ptp(soles[:, 1])

    def offset(t):
        return (0.0, side * min(t, 1.0) * np.sin(2.0 * np.pi * t), 0.0)
    errors, differences, sway = [], [], []
    for t, report, truth in pipeline.run(3.0, offset):
        if t > 1.0:
            errors.append(np.linalg.norm(report.zmp_in_world - truth.zmp))
            differences.append(np.linalg.norm(report.zmp_difference))
            sway.append((*report.com_in_world[:2], *report.zmp_in_world[:2]))
    moved = np.ptp(sway, axis=0)
    assert moved[3] > 1.2 * moved[1] > 0.02, 'the ZMP overshoots the CoM: this is no statics'
    assert max(errors) < 3e-3
    assert np.sqrt(np.mean(np.square(differences))) < 3e-3


def test_a_push_lowers_the_margin_and_the_fall_is_reported():
    pipeline = Pipeline('biped', OPTIONS)
    levels, times = [], []
    for t, report, _ in pipeline.run(2.5):
        if abs(t - 0.8) < 1e-9:
            pipeline.plant.push('torso', (18.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.25)
        if t > 0.8:
            times.append(report.time_to_edge)
        if report.change is not None:
            levels.append((report.change.now, t))
    order = [level for level, _ in levels if level > Level.STABLE]
    assert order == sorted(order), 'each level once, worse and worse'
    assert order[-2:] == [Level.UNSTABLE, Level.FALLEN]
    begins = dict(levels)
    assert 0.8 < begins[Level.UNSTABLE] < begins[Level.FALLEN] - 0.3, 'well before it lies there'
    assert pipeline.plant.has_fallen
    assert times[0] > 0.2 and 0.0 in times, 'the time to the edge runs out'


@pytest.mark.thorough
def test_a_small_push_is_no_fall():
    pipeline = Pipeline('biped', OPTIONS)
    worst, least = Level.STABLE, np.inf
    for t, report, _ in pipeline.run(2.0):
        if abs(t - 0.8) < 1e-9:
            pipeline.plant.push('torso', (2.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.2)
        if t > 0.8:
            least = min(least, report.zmp_margin)
        worst = max(worst, pipeline.monitor.classifier.level)
    assert worst < Level.UNSTABLE
    assert not pipeline.plant.has_fallen
