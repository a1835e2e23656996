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
"""The demo's chapter of gravity, on a robot that is at once where it is commanded to be."""

from dataclasses import replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.demo.chapter import ChapterFailed
from biped_com_ros.demo.gravity import Gravity
from biped_com_ros.ros.topics import names
import pytest
from sensor_msgs.msg import JointState
from support.walking_stage import play


class HeldStage:
    """A robot whose joints sag by a hundredth of a radian until there is feedforward."""

    def __init__(self, **changes):
        config = load_robot_config('biped')
        self.model = RobotModel(replace(config, **changes), load_urdf(config))
        self.commanded, self.sag = self.model.posture(), 0.01
        self.efforts, self.on_efforts = [0.0, 1.0], []
        self.shared, self.activities = {}, []
        self.set_activity = self.activities.append

    @property
    def positions(self):
        return self.commanded - self.sag

    def subscribe(self, kind, topic, callback):
        if topic == names.FEEDFORWARD and not self.on_efforts:
            self.on_efforts.append(callback)

    def wait(self, seconds):
        yield None

    def move_to(self, positions, seconds):
        self.commanded = positions
        yield None

    def follow(self, path, seconds):
        self.commanded = path[-1]
        yield None

    def ramp_up(self, urdf):
        self.sag = 0.0
        for callback in self.on_efforts:
            callback(JointState(effort=self.efforts))
        yield None

    def ramp_down(self):
        self.activities.append('ramped down')
        yield None


def without(*names):
    return {name: posture for name, posture in load_robot_config('biped').postures.items()
            if name not in names}


@pytest.mark.parametrize('missing, taken', [
    ((), 'arms_out'), (('arms_out',), 'arms_forward'),
    (('arms_out', 'arms_forward', 'arms_up'), 'stand')])
def test_the_posture_in_which_the_arms_sag_is_named(missing, taken):
    stage = HeldStage(postures=without(*missing))
    table = play(Gravity(), stage)
    assert stage.activities[0] == f'moves to the posture {taken}, with position control alone'
    assert not table.problem and len(table.rows) == 4
    assert table.rows[0] == ('largest joint error', '0.573 deg', '0.000 deg')


@pytest.mark.parametrize('efforts', ([], [0.0, 0.0]))
def test_torques_that_are_not_sent_are_no_result(efforts):
    stage = HeldStage()
    stage.efforts = efforts
    with pytest.raises(ChapterFailed, match='gravity_compensation sent no torques'):
        play(Gravity(), stage)


def test_a_robot_without_hands_has_no_error_of_a_hand():
    stage = HeldStage(hands={})
    assert [row[0].split()[-1] for row in play(Gravity(), stage).rows] == ['error', 'foot', 'ms']
    assert not any('hand' in activity for activity in stage.activities)


def test_the_sag_is_reported_where_the_weight_cannot_be_shifted(monkeypatch):
    def refuse(*_):
        raise InputError('a hip would exceed its limit')
    monkeypatch.setattr(ComShift, 'path', refuse)
    stage = HeldStage()
    table = play(Gravity(), stage)
    assert table.problem == 'the weight was not shifted: a hip would exceed its limit'
    assert [row[0] for row in table.rows] == ['largest joint error', 'largest error of a hand']
    assert stage.activities[-1] == 'ramped down'
