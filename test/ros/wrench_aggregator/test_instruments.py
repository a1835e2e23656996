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
"""
Instruments as robots have them, over DDS: IMUs without orientation, other units, soles, pads.

The true forces come from ``wrench_oracle``, which knows nothing of the package.
"""

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.messages import wrench
from support.wrench_aggregator_rig import WrenchAggregatorRig
from support.wrench_oracle import TiltedRobot, YAML
import yaml

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
SOLES = {'left_toe': 'left', 'right_foot': 'right'}


@pytest.mark.parametrize('orientation', ['none', 'zeros'])
def test_an_imu_without_orientation_gives_the_vertical_by_its_accelerometer(own_rig, orientation):
    rig = own_rig(bias_tracking=False)
    rig.contacts, rig.orientation = rig.robot.standing(0), orientation
    rig.play(5)
    rig.assert_forces()
    level, message = rig.health('total wrench')
    assert level == OK
    assert "the vertical is that of accelerometer and gyroscope, since '" in message
    assert "/imu' has no orientation" in message
    rig.orientation = 'measured'
    rig.play(2)
    rig.assert_forces()
    assert rig.health('total wrench') == (OK, 'published')


def test_why_there_is_no_vertical_is_named_and_no_clock_is_blamed(own_rig):
    rig = own_rig()
    rig.contacts = rig.robot.standing(0)
    rig.orientation, rig.acceleration_scale = 'none', 1.0 / 9.81
    rig.play(200, period=0.02)
    level, message = rig.health('total wrench')
    assert level == ERROR and 'clock' not in message
    assert 'it has no orientation (' in message
    assert ', and the accelerometer measures 1.00 m/s^2 instead of about 9.81' in message
    assert 'check its unit' in message
    rig.clear()
    rig.play(5)
    assert not rig.got['left/wrench']
    rig.silent = {'imu'}
    rig.play(100, period=0.02)
    level, message = rig.health('total wrench')
    assert level == ERROR and "/imu'" in message and 'clock' not in message


class SoleRig(WrenchAggregatorRig):
    """One instrument per foot, which gives the wrench at the sole, times `factors`."""

    factors = np.ones(6)

    def _connect(self):
        self.contacts = self.robot.standing(0, pull_by_hand=False)
        self.until(lambda: self.play(1) and self.got['left/wrench'] and self.got['right/wrench'])
        self.spin(0.2)  # publishers look for subscribers ten times a second
        self.play(3)
        self.clear()

    def publish_wrench(self, name, stamp, frame=None, values=None):
        if name in SOLES:
            foot = SOLES[name]
            super().publish_wrench(name, stamp, f'{foot}_sole_frame',
                                   self.factors * self.robot.foot_wrench(foot, self.contacts))


@pytest.fixture
def soles(tmp_path, closing):
    """Return a function that makes a robot with instruments at its soles."""
    def make(factors=1.0, **sensor):
        config = yaml.safe_load(YAML.read_text())
        del config['hands']
        config['wrench_sensors'] = {
            name: {'frame': f'{foot}_sole_frame', 'topic': f'{name}/wrench', **sensor}
            for name, foot in SOLES.items()}
        for name, foot in SOLES.items():
            config['feet'][foot]['wrench_sensors'] = [name]
        (tmp_path / 'soles.yaml').write_text(yaml.safe_dump(config))

        class InstrumentRig(SoleRig):
            pass
        InstrumentRig.factors = factors * np.ones(6)
        return closing(InstrumentRig(TiltedRobot.somewhere(0), str(tmp_path / 'soles.yaml')))
    return make


N_MM = np.repeat([1.0, 1e3], 3)


@pytest.mark.parametrize(('factors', 'sensor'), [
    (1.0, {}), (-1.0, {'scale': -1}), (N_MM, {'scale': [1, 1, 1, 1e-3, 1e-3, 1e-3]}),
    (1.0 / 9.80665, {'scale': 9.80665})])
def test_wrenches_at_the_soles_come_out_as_they_are(soles, factors, sensor):
    rig = soles(factors, **sensor)
    rig.play(5)
    for foot, sole in (('left', 'l_sole'), ('right', 'r_sole')):
        message = rig.got[f'{foot}/wrench'][-1]
        np.testing.assert_allclose(
            wrench(message), rig.robot.foot_wrench(foot, rig.contacts), atol=1e-9)
        assert message.header.frame_id == sole
    np.testing.assert_allclose(
        wrench(rig.got['wrench'][-1]), rig.robot.total_wrench(rig.contacts), atol=1e-9)
    level, message = rig.health('weight')
    assert level == OK and 'ratio 1.0000' in message


@pytest.mark.parametrize(('factors', 'words'), [
    (1.0 / 9.80665, ('measure in kgf', 'wrench_sensors.right_foot.scale to 9.80665')),
    (N_MM, ('m from its sole frame', 'in N mm', '.scale to [1, 1, 1, 0.001, 0.001, 0.001]'))])
def test_units_that_are_not_configured_are_named(soles, factors, words):
    rig = soles(factors)
    level, message = rig.health('weight')
    assert level == WARN and all(word in message for word in words), message


def test_a_vertical_force_alone_gives_contacts_and_weight_and_nothing_made_up(soles):
    rig = soles(np.where([0, 0, 1, 0, 0, 0], 1.0, np.nan), measures='force_z')
    rig.play(40)
    for foot in ('left', 'right'):
        force = rig.robot.foot_wrench(foot, rig.contacts)[2]
        np.testing.assert_allclose(  # what is not measured is NaN
            wrench(rig.got[f'{foot}/wrench'][-1]), np.where([0, 0, 1, 0, 0, 0], force, np.nan),
            atol=1e-9)
        assert rig.got[f'{foot}/contact'][-1].data
    np.testing.assert_allclose(rig.got['contacts'][-1].effort, [
        rig.robot.foot_wrench(foot, rig.contacts)[2] for foot in ('left', 'right')], atol=1e-9)
    assert not any(rig.got[topic] for topic in (
        'wrench', 'left/cop', 'right/cop', 'line/point', 'line/direction'))
    assert rig.health('total wrench') == (OK, (
        'not published, nor a CoP: the sensors of left and right measure the vertical force alone '
        '(measures: force_z), not where it acts'))
    assert rig.health('weight')[1] != 'not measured: there is no total wrench'
    for response in (rig.tare('tare'), rig.tare('untare')):  # it stands on its feet
        assert response.success or 'lift the robot' in response.message
