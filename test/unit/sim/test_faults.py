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
"""Faults of wrench sensors, switched while they run."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.sim.faults import parse_faults, WrenchFaults
import numpy as np
import pytest

DT = 0.002
SENSORS = ('left', 'right')


def wrenches(step):
    """Return readings that say which sensor, axis and step they are of."""
    return 1000.0 * step + np.arange(12.0).reshape(2, 6)


def run(changes, steps=40):
    """Return readings (steps, 2, 6) with faults that are set before steps."""
    faults, found = WrenchFaults(SENSORS, DT), []
    for step in range(steps):
        if step in changes:
            faults.replace(parse_faults(changes[step]))
        found.append(faults.apply(wrenches(step)).copy())
    return np.array(found)


EXACT = np.array([wrenches(step) for step in range(40)])


def test_without_faults_no_bit_changes():
    assert run({}).tobytes() == EXACT.tobytes() == run({5: []}).tobytes()


@pytest.mark.parametrize('line, expected', [
    ('left dead', lambda step: np.zeros(6)), ('left frozen', lambda step: EXACT[9, 0]),
    ('left late 0.02', lambda step: EXACT[max(9, step - 10), 0])])
def test_a_fault_lasts_while_it_is_on(line, expected):
    found = run({10: [line], 30: []})
    np.testing.assert_array_equal(found[:, 1], EXACT[:, 1])  # the other foot's
    np.testing.assert_array_equal(found[:10, 0], EXACT[:10, 0])
    np.testing.assert_array_equal(found[30:, 0], EXACT[30:, 0])
    for step in range(10, 30):
        np.testing.assert_array_equal(found[step, 0], expected(step))


def test_a_turned_sensor_measures_in_turned_axes():
    found = run({0: ['right turned 90']})
    exact = EXACT[:, 1]
    expected = np.stack((exact[:, 1], -exact[:, 0], exact[:, 2],
                         exact[:, 4], -exact[:, 3], exact[:, 5]), axis=1)
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-9)


def test_a_fault_that_goes_on_does_not_begin_again():
    found = run({10: ['left frozen'], 20: ['left frozen', 'right dead']})
    np.testing.assert_array_equal(found[10:, 0], np.broadcast_to(EXACT[9, 0], (30, 6)))
    assert not found[20:, 1].any() and found[19, 1].any()


@pytest.mark.parametrize('line, message', [
    ('left', "unknown fault ''"), ('left ded', "did you mean 'dead'"),
    ('left late', "'<sensor> late <value>'"), ('left late soon', "must be '<sensor> late"),
    ('left dead 3', "must be '<sensor> dead'"), ('left late 1 2', 'must be'),
    ('lft dead', "did you mean 'left'"), ('left late 60', 'between 0 and 10 s'),
    ('left late -1', 'between 0 and 10 s')])
def test_wrong_faults_are_refused_and_the_others_go_on(line, message):
    faults = WrenchFaults(SENSORS, DT)
    faults.replace(parse_faults(['right dead']))
    with pytest.raises(ConfigurationError, match=message):
        faults.replace(parse_faults([line]))
    assert not faults.apply(wrenches(1))[1].any()
