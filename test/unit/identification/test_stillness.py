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
"""Directions in which joints moved last, that captures hold them, and which feet stand."""

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.stillness import (
    CaptureWindow, MotionDirections, StillnessOptions)
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.statics_data import TrueRobot

PLAY = 0.002


def directions_after(*paths):
    """Return the directions of one joint after it went along paths, rad."""
    motions = MotionDirections(1, PLAY)
    for q in np.concatenate(paths):
        motions.update(np.array([q]))
    return motions.directions[0]


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_the_last_motion_counts(sign):
    there, back = np.linspace(0.0, 0.1 * sign, 50), np.linspace(0.1 * sign, 0.06 * sign, 50)
    assert directions_after(there) == sign
    assert directions_after(there, back) == -sign
    assert directions_after(back, there[::-1], there) == sign


def test_noise_and_settling_do_not_turn_it():
    rng = np.random.default_rng(0)
    there = np.linspace(0.0, 0.1, 50)
    rest = 0.1 + 4e-4 * rng.standard_normal(2000)
    assert directions_after(rest) == 0.0
    assert directions_after(there, rest) == 1.0
    assert directions_after(there, [0.1 - 1.9 * PLAY]) == 1.0
    assert directions_after(there, [0.1 - 2.1 * PLAY]) == -1.0


def test_what_was_not_measured_changes_nothing():
    assert directions_after([np.nan, 0.0, 0.1, np.nan, np.nan]) == 1.0
    assert directions_after([np.nan, np.nan]) == 0.0


def test_a_capture_holds_how_each_joint_came_to_its_pose(tmp_path):
    """The movement is forgotten by the averages, not by the directions; the file keeps them."""
    true = TrueRobot('sabian')
    exact = true.capture(('left', 'right'))
    window = CaptureWindow(true.model, exact.up_frame, StillnessOptions(duration=0.5))
    turn = np.linspace(-1.0, 1.0, len(exact.positions)).round()
    for i in range(100):
        q = exact.positions - turn * 0.05 * max(0.0, 1.0 - 0.05 * i)
        window.add(0.01 * i, q, exact.torques, exact.wrenches, exact.up)
        if i == 20:
            window.clear()
    capture = window.capture('one')
    np.testing.assert_array_equal(capture.approach, turn)
    log = CaptureLog(tmp_path / 'captures.json', true.model)
    log.append(capture)
    text = log.path.read_text()
    np.testing.assert_array_equal(
        CaptureLog(log.path, true.model).captures[0].approach, turn)
    start = text.index(',\n   "approach"')
    log.path.write_text(text[:start] + text[text.index(']', start) + 1:])  # as by 0.1.0
    assert CaptureLog(log.path, true.model).captures[0].approach is None


@pytest.mark.parametrize(('deviation', 'share', 'stands'), [
    (0.0, 0.05, True), (0.03, 0.05, False), (0.03, 0.08, None), (0.03, 0.12, True),
    (0.03, -0.05, False)])
def test_a_foot_stands_if_its_load_is_certain(deviation, share, stands):
    """Loads and deviations are shares of the weight; of virtual sensors, that weigh no foot."""
    model = with_virtual_sensors(RobotModel.load('g1_as_sold'))
    window = CaptureWindow(model, 'pelvis', StillnessOptions(duration=0.5))
    weight = GRAVITY * model.mass
    wrenches = np.zeros((2, 6))
    wrenches[:, 2] = (1.0 - share) * weight, share * weight
    window.force_deviations[:] = deviation * weight
    for i in range(60):
        window.add(0.01 * i, model.posture(), np.zeros(len(model.joint_names)), wrenches,
                   np.array((0.0, 0.0, 1.0)))
    if stands is None:
        with pytest.raises(InputError, match='hardly touches'):
            window.capture()
    else:
        assert window.capture().in_contact.tolist() == [True, stands]
