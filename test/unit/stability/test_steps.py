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

from biped_com_ros.core.stability.steps import StepWatch
import pytest

MS = 1_000_000
BOTH, LEFT, RIGHT = (True, True), (True, False), (False, True)
INSIDE, OUTSIDE = 0.02, -0.1


def feed(watch, start_ms, phases):
    """Feed (duration in ms, contacts, margin) one after another; return end and last result."""
    ms, walks = start_ms, False
    for duration, in_contact, margin in phases:
        for ms in range(start_ms, start_ms + duration, 2):
            walks = watch.update(ms * MS, in_contact, margin)
        start_ms += duration
    return start_ms, walks


def test_a_step_that_catches_the_dcm_begins_a_walk_and_standing_ends_it():
    watch = StepWatch(1.0)
    end, walks = feed(watch, 0, [(500, BOTH, INSIDE), (50, BOTH, OUTSIDE), (300, LEFT, OUTSIDE)])
    assert not walks  # nobody knows yet that the foot will land in time
    end, walks = feed(watch, end, [(100, BOTH, OUTSIDE)])
    assert walks
    end, walks = feed(watch, end, [(300, RIGHT, OUTSIDE), (100, BOTH, OUTSIDE)])
    assert walks
    assert feed(watch, end, [(250, BOTH, INSIDE)])[1] is False


def test_slow_steps_whose_dcm_stays_inside_are_no_walk():
    watch = StepWatch(1.0)
    phases = [(500, BOTH, INSIDE), (600, LEFT, INSIDE), (200, BOTH, INSIDE), (600, RIGHT, INSIDE)]
    assert not feed(watch, 0, phases + [(100, BOTH, INSIDE)])[1]


def test_the_first_step_of_a_gait_has_the_time_of_a_step_to_catch_the_dcm():
    watch = StepWatch(1.0)
    end, walks = feed(watch, 0, [(500, BOTH, INSIDE), (100, LEFT, INSIDE)])
    assert not walks
    end, walks = feed(watch, end, [(600, LEFT, OUTSIDE)])
    assert walks  # the foot left the ground 0.7 s ago, before the DCM left the support
    end, walks = feed(watch, end, [(250, LEFT, OUTSIDE)])
    assert walks  # the timeout is 1 s
    assert not feed(watch, end, [(100, LEFT, OUTSIDE)])[1]


def test_the_dcm_may_be_outside_the_smaller_support_as_soon_as_a_foot_is_lifted():
    watch = StepWatch(1.0)
    end, walks = feed(watch, 0, [(500, BOTH, INSIDE), (2, LEFT, OUTSIDE)])
    assert walks
    assert feed(watch, end, [(950, LEFT, OUTSIDE)])[1]
    assert not feed(watch, end + 950, [(100, LEFT, OUTSIDE)])[1]


def test_who_is_pushed_on_both_feet_makes_no_first_step():
    watch = StepWatch(1.0)
    assert not feed(watch, 0, [(500, BOTH, INSIDE), (10, BOTH, OUTSIDE), (10, LEFT, OUTSIDE)])[1]


def test_a_foot_that_bounces_has_made_no_step():
    watch = StepWatch(1.0)
    end, _ = feed(watch, 0, [(500, BOTH, INSIDE), (60, LEFT, OUTSIDE)])
    assert not feed(watch, end, [(50, BOTH, OUTSIDE)])[1]


def test_without_further_steps_the_walk_ends():
    watch = StepWatch(1.0)
    end, _ = feed(watch, 0, [(400, BOTH, INSIDE), (300, LEFT, OUTSIDE), (40, BOTH, OUTSIDE)])
    end, walks = feed(watch, end, [(900, RIGHT, OUTSIDE)])
    assert walks
    assert not feed(watch, end, [(200, RIGHT, OUTSIDE)])[1]


@pytest.mark.parametrize(('in_contact', 'margin', 'walks'), [
    (LEFT, OUTSIDE, True), (LEFT, INSIDE, False), (BOTH, OUTSIDE, True),
    ((False, False), None, True)])
def test_the_first_instant_may_be_in_the_midst_of_a_step(in_contact, margin, walks):
    assert StepWatch(1.0).update(7 * MS, in_contact, margin) is walks
