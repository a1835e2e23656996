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
"""The contact's Schmitt trigger: thresholds, hysteresis, dwell."""

import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.signals.schmitt import SchmittTrigger
from biped_com_ros.core.wrench.contact import ContactThresholds
import pytest

MS = 1_000_000
WEIGHT = 500.0  # engages above 50 N, releases below 25 N


@pytest.fixture
def detector():
    return ContactThresholds(
        engage=0.10, release=0.05, engage_dwell=0.010, release_dwell=0.020).trigger(WEIGHT)


def feed(detector, forces, start_ms=0):
    """Feed one force per millisecond and return the state after each."""
    return [detector.update(f, (start_ms + i) * MS) for i, f in enumerate(forces)]


@pytest.mark.parametrize(('forces', 'changes'), [
    ([0.0] * 5 + [60.0] * 20, [15]), ([100.0] * 5 + [20.0] * 40, [0, 25]),
    ([0.0] + [40.0] * 100, []), ([90.0] * 30 + [40.0] * 100, [0]),
    ([0.0] * 3 + ([90.0] * 9 + [0.0]) * 5, []), ([0.0] + [-200.0] * 50, [])],
    ids=['touch-down after its dwell', 'lift-off after its own dwell',
         'between the thresholds in the air', 'between the thresholds in contact',
         'spikes shorter than the dwell', 'a pull'])
def test_contacts_change_after_their_dwell(detector, forces, changes):
    states = [False, *feed(detector, forces)]
    assert [i for i, (a, b) in enumerate(zip(states, states[1:])) if a != b] == changes


def test_dwell_counts_time_not_samples(detector):
    detector.update(0.0, 0)
    assert not detector.update(90.0, 100 * MS)
    assert detector.update(90.0, 110 * MS)


@pytest.mark.parametrize('force, contact', [(0.0, False), (-80.0, False), (300.0, True)])
def test_the_first_sample_also_after_a_reset_decides_at_once(detector, force, contact):
    assert detector.update(force, 0) is contact
    feed(detector, [300.0 - force] * 30)
    detector.reset()
    assert detector.update(force, 40 * MS) is contact


def test_no_dwell_switches_at_once():
    detector = ContactThresholds(
        engage=0.10, release=0.05, engage_dwell=0.0, release_dwell=0.0).trigger(WEIGHT)
    assert feed(detector, [0.0, 51.0, 26.0, 24.0]) == [False, True, True, False]


def test_time_that_goes_back_does_not_set_it_and_what_is_unknown_keeps_it():
    trigger = SchmittTrigger(1.0, 0.0, 0.01, 0.1, initial=False)
    trigger.update(2.0, 1_000 * MS)
    assert not trigger.update(2.0, 10 * MS)
    assert trigger.update(2.0, 21 * MS)
    assert all(trigger.update(value, 1_000 * MS) for value in (-1.0, None, math.nan))


TOO_HIGH = ("it must be below 'engage', 0.05 (shares of body weight): lower it, or raise 'engage'")


@pytest.mark.parametrize(('changes', 'message'), [
    ({'engage': 0.05, 'release': 0.05}, f"'release' is 0.05; {TOO_HIGH}"),
    ({'engage': 0.05, 'release': 0.1}, f"'release' is 0.1; {TOO_HIGH}"),
    ({'engage': 1.5}, "'engage' is 1.5; it must be 0.001 to 0.9"),
    ({'release': 0.0}, "'release' is 0.0; it must be 0.001 to 0.9")])
def test_thresholds_that_cannot_work_are_refused(changes, message):
    with pytest.raises(ConfigurationError) as refusal:
        ContactThresholds(**{'engage': 0.1, 'release': 0.05, **changes})
    assert str(refusal.value) == message
