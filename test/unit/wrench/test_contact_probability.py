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
"""Probabilities of contact by force and by height."""

from biped_com_ros.core.wrench.contact import ContactProbabilities
import numpy as np
import pytest

WEIGHT, STEP = 400.0, 0.002


@pytest.fixture
def contacts(model):
    return ContactProbabilities(model, WEIGHT)


def soles(heights, pitch=0.0):
    """Return placements of level soles, or of the second one turned by `pitch` about y."""
    placements = np.zeros((2, 4, 3))
    placements[:, :3] = np.eye(3)
    c, s = np.cos(pitch), np.sin(pitch)
    placements[1, :3] = np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
    placements[:, 3, 2] = heights
    return placements


def feed(contacts, forces, deviation=5.0, heights=(-0.7, -0.7), steps=20, pitch=0.0, anew=False):
    """Return probabilities after some instants, begun anew or not."""
    if anew:
        contacts.reset()
    for _ in range(steps):
        contacts.update(STEP, np.array(forces, float), np.full(2, deviation),
                        soles(heights, pitch))
    return contacts.probabilities


def test_a_loaded_foot_is_in_contact_and_an_unloaded_one_is_not(contacts):
    probabilities = feed(contacts, (400.0, 0.0))
    assert probabilities[0] > 0.99 and probabilities[1] < 0.05
    assert contacts.in_contact == (True, False)
    feed(contacts, (400.0, 60.0), steps=1)
    feed(contacts, (400.0, 0.0), steps=1)
    assert contacts.in_contact == (True, False), 'one outlier does not begin a contact'


def test_touch_down_and_lift_off_within_ten_milliseconds(contacts):
    feed(contacts, (400.0, 0.0), heights=(-0.7, -0.69))
    feed(contacts, (300.0, 100.0), steps=5)
    assert contacts.in_contact == (True, True)
    feed(contacts, (0.0, 400.0), steps=5)
    assert contacts.in_contact == (False, True)


def test_an_uncertain_force_has_less_weight(contacts):
    assert feed(contacts, (400.0, 45.0), deviation=4.0)[1] > 0.95
    assert feed(contacts, (400.0, 45.0), deviation=40.0, anew=True)[1] < 0.5


def test_a_foot_that_is_higher_with_its_lowest_corner_needs_more_force(contacts, model):
    """A sole whose origin is high may touch with its toe."""
    light = {'forces': (370.0, 30.0), 'deviation': 8.0, 'steps': 60, 'anew': True}
    low = feed(contacts, **light)[1]
    assert feed(contacts, heights=(-0.7, -0.62), **light)[1] < 0.3 * low
    # But force decides in the end: stairs exist.
    assert feed(contacts, (200.0, 200.0), heights=(-0.7, -0.5), steps=30)[1] > 0.95
    pitch = 0.6
    toe = max(x for x, _ in model.config.feet['right'].polygon)
    heights = (-0.7, -0.7 + toe * np.sin(pitch))
    raised = feed(contacts, heights=heights, **light)[1]
    assert feed(contacts, heights=heights, pitch=pitch, **light)[1] > 2.0 * raised
