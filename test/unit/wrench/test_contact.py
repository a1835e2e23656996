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

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.wrench.contact import ContactDetector, ContactThresholds
import pytest

MS = 1_000_000
WEIGHT = 500.0  # engages above 50 N, releases below 25 N


@pytest.fixture
def detector():
    return ContactDetector(ContactThresholds(
        engage=0.10, release=0.05, engage_dwell=0.010, release_dwell=0.020), WEIGHT)


def feed(detector, forces, start_ms=0):
    """Feed one force per millisecond and return the state after each."""
    return [detector.update(f, (start_ms + i) * MS) for i, f in enumerate(forces)]


def test_touch_down_after_its_dwell(detector):
    states = feed(detector, [0.0] * 5 + [60.0] * 20)
    assert states.index(True) == 15


def test_lift_off_after_its_own_dwell(detector):
    states = feed(detector, [100.0] * 5 + [20.0] * 40)
    assert states.index(False) == 25


def test_between_the_thresholds_nothing_changes(detector):
    assert not any(feed(detector, [0.0] + [40.0] * 100))
    assert all(feed(detector, [90.0] * 30, 200)[20:])
    assert all(feed(detector, [40.0] * 100, 300))


def test_a_spike_shorter_than_the_dwell_is_ignored(detector):
    assert not any(feed(detector, [0.0] * 3 + ([90.0] * 9 + [0.0]) * 5))


def test_dwell_counts_time_not_samples(detector):
    detector.update(0.0, 0)
    assert not detector.update(90.0, 100 * MS)
    assert detector.update(90.0, 110 * MS)


@pytest.mark.parametrize('force, contact', [(0.0, False), (-80.0, False), (300.0, True)])
def test_the_first_sample_decides_at_once(detector, force, contact):
    assert detector.update(force, 0) is contact


def test_a_pull_is_no_contact(detector):
    assert not any(feed(detector, [0.0] + [-200.0] * 50))


def test_no_dwell_switches_at_once():
    detector = ContactDetector(ContactThresholds(
        engage=0.10, release=0.05, engage_dwell=0.0, release_dwell=0.0), WEIGHT)
    assert feed(detector, [0.0, 51.0, 26.0, 24.0]) == [False, True, True, False]


def test_reset_clears_the_contact(detector):
    feed(detector, [300.0] * 3)
    detector.reset()
    assert not detector.update(0.0, 10 * MS)


@pytest.mark.parametrize(('engage', 'release', 'message'), [
    (0.05, 0.05, "'release' is 0.05; it must be below 'engage', 0.05 (shares of body weight): "
                 "lower it, or raise 'engage'"),
    (0.05, 0.1, "'release' is 0.1; it must be below 'engage', 0.05 (shares of body weight): "
                "lower it, or raise 'engage'"),
    (1.5, 0.1, "'engage' is 1.5; it must be below 1 (share of body weight)"),
    (0.1, 0.0, "'release' is 0.0; it must be above 0 (share of body weight)")])
def test_thresholds_that_cannot_work_are_refused(engage, release, message):
    with pytest.raises(ConfigurationError) as refusal:
        ContactThresholds(engage=engage, release=release)
    assert str(refusal.value) == message


def test_negative_dwell_is_refused():
    with pytest.raises(ConfigurationError) as refusal:
        ContactThresholds(engage=0.1, release=0.05, engage_dwell=-0.01, release_dwell=0.0)
    assert str(refusal.value) == "'engage_dwell' is -0.01 s; it must be zero or more"
