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
"""Whether a robot walks by steps that catch it."""

from biped_com_ros.core.stability.levels import StepWatch
import pytest

BOTH, LEFT, RIGHT, NONE = (True, True), (True, False), (False, True), (False, False)
INSIDE, OUTSIDE = 0.02, -0.1
STANDS = (500, BOTH, INSIDE, False)


@pytest.mark.parametrize('phases', [
    # Nobody knows yet that the foot will land in time; standing ends the walk.
    [STANDS, (50, BOTH, OUTSIDE, None), (300, LEFT, OUTSIDE, False), (100, BOTH, OUTSIDE, True),
     (300, RIGHT, OUTSIDE, None), (100, BOTH, OUTSIDE, True), (250, BOTH, INSIDE, False)],
    [STANDS, (600, LEFT, INSIDE, None), (200, BOTH, INSIDE, None), (600, RIGHT, INSIDE, None),
     (100, BOTH, INSIDE, False)],
    # The foot left the ground 0.7 s ago, before the DCM left the support; the timeout is 1 s.
    [STANDS, (100, LEFT, INSIDE, False), (600, LEFT, OUTSIDE, True), (250, LEFT, OUTSIDE, True),
     (100, LEFT, OUTSIDE, False)],
    [STANDS, (2, LEFT, OUTSIDE, True), (950, LEFT, OUTSIDE, True), (100, LEFT, OUTSIDE, False)],
    [STANDS, (10, BOTH, OUTSIDE, None), (10, LEFT, OUTSIDE, False)],
    [STANDS, (60, LEFT, OUTSIDE, None), (50, BOTH, OUTSIDE, False)],
    [(400, BOTH, INSIDE, None), (300, LEFT, OUTSIDE, None), (40, BOTH, OUTSIDE, None),
     (900, RIGHT, OUTSIDE, True), (200, RIGHT, OUTSIDE, False)],
    [(2, LEFT, OUTSIDE, True)], [(2, LEFT, INSIDE, False)], [(2, BOTH, OUTSIDE, True)],
    [(2, NONE, None, True)],
], ids=['a step that catches the DCM', 'slow steps whose DCM stays inside',
        'the first step of a gait', 'outside as soon as a foot is lifted',
        'pushed on both feet', 'a foot that bounces', 'no further step',
        *(f'the first instant {i} in the midst of a step' for i in range(4))])
def test_steps_that_catch_the_dcm_are_a_walk(phases):
    """Phases are duration in ms, contacts, margin of the DCM, and whether it walks at the end."""
    watch, ms = StepWatch(), 0
    for duration, in_contact, margin, expected in phases:
        for _ in range(0, duration, 2):
            walks = watch.update(1_000_000 * ms, in_contact, margin)
            ms += 2
        assert expected is None or walks is expected
