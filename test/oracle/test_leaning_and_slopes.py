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
"""The demo robot leans on a rail and walks down a slope in MuJoCo, as the examples show it."""

from __future__ import annotations

from biped_com_ros.core.legs.gait import QUICK, walk
from biped_com_ros.core.model.robot import RobotModel
from examples.rail import lean, OVERHANG
from examples.slope import row, walk_down
from examples.stepping import LENGTH
import numpy as np
import pytest

MODEL = RobotModel.load('biped')


def test_without_hands_it_falls_where_its_region_ends():
    run = lean(MODEL, ())
    assert run.has_fallen
    # It leaves its region where its centre of mass passes the toes.
    assert np.abs(run.margin + run.beyond)[run.margin < 0.02].max() < 0.02


def test_with_its_hands_on_a_rail_it_stays_beyond_the_toes():
    run = lean(MODEL, tuple(MODEL.config.hands))
    assert not run.has_fallen
    assert run.beyond[-1] == pytest.approx(OVERHANG, abs=5e-3)
    assert np.nanmin(run.margin) > 0.1


@pytest.mark.thorough
def test_feedback_takes_most_of_the_error_of_a_slope():
    gait = walk(MODEL, 4, LENGTH, options=QUICK)
    records = {feedback: walk_down(gait, 6.0, 1, feedback=feedback) for feedback in (False, True)}
    errors = {feedback: record.zmp_rms[0] for feedback, record in records.items()}
    assert errors[True] < 0.5 * errors[False]
    assert not any(record.has_fallen for record in records.values())
    assert row(6.0, True, [records[True]])[:2] == ('6 deg', 'with')
