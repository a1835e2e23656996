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
"""Chapter: the robot sways, and estimates are compared with the truth."""

from __future__ import annotations

import math

from biped_com_ros.core.legs.keyframes import KeyframeMotion, show_keyframes
from biped_com_ros.demo.chapter import Chapter, ChapterRun, Comparison
from biped_com_ros.demo.stage import Stage
from biped_com_ros.demo.terminal import Snapshot
import numpy as np


class Measure(Chapter):
    """One round of swaying, arms up, leaning and bending the knees."""

    name = 'measure'
    title = 'The URDF compared with the truth'
    description = (
        'The robot sways, lifts its arms and bends its knees. Its centre of mass by '
        'the URDF is compared with the true one, and its weight by the URDF with the '
        'one that foot sensors measure, if it has any: that of everything above them.')

    def run(self, stage: Stage) -> ChapterRun:
        """Run the motion once."""
        motion = KeyframeMotion(stage.model, show_keyframes(stage.model))
        begin = stage.time
        while stage.time < begin + motion.duration:
            stage.set_activity(motion.label(stage.time - begin))
            yield motion.positions(stage.time - begin)
        shot = stage.measurements.whole_snapshot(0.0, (0, ''), ())
        error = 1e3 * shot.com_error
        return Comparison(('by the URDF', 'measured', 'off by'), [
            ('centre of mass, in 3-D', '', 'against the truth',
             f'{np.linalg.norm(error):.2f} mm '
             f'(x {error[0]:+.2f}, y {error[1]:+.2f}, z {error[2]:+.2f})'),
            *weight_rows(shot)], shot.conclusion)


def weight_rows(shot: Snapshot) -> list[tuple[str, str, str, str]]:
    """Return rows of the weights: what the sensors measure, and what is only assumed."""
    if math.isnan(shot.weight):
        return [('weight', f'{shot.model_weight:.1f} N', 'no sensor of the feet measures it', '')]
    rows = [('weight above the foot sensors' if shot.unmeasured else 'weight',
             f'{shot.model_weight - shot.unmeasured:.1f} N',
             f'{shot.weight - shot.unmeasured:.1f} N', f'{100.0 * shot.weight_error:+.2f} %')]
    if shot.unmeasured:
        rows.append(('weight below them', f'{shot.unmeasured:.1f} N',
                     'only while it hangs', 'unknown'))
    return rows
