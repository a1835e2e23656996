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
"""Feet without sensors: what the node publishes for a robot that stands in the simulator."""

from __future__ import annotations

from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from support.messages import parameters, wrench
from support.plant_rig import biped_file, PlantRig

FEET = ('left', 'right')


class VirtualRig(PlantRig):
    """
    The node, and a robot that leans to one side.

    The left foot's sensor is compared, the right foot has none; with `bare` no foot has one.
    """

    def __init__(self, path, bare=False):
        def edit(config):
            if bare:
                del config['wrench_sensors']
                for foot in config['feet'].values():
                    foot['wrench_sensors'] = []
            else:
                config['feet']['left']['source'] = 'both'
        super().__init__(WrenchAggregator(
            namespace=f'virtual_rig_{int(bare)}', parameter_overrides=parameters(
                robot=biped_file(path, 'virtual', edit=edit), low_pass_cutoff=0.0)),
            1000, lean=0.03, has_sensors=not bare)
        self.wrenches = {foot: self.collect(WrenchStamped, f'wrench_aggregator/{foot}/wrench')
                         for foot in FEET}
        self.got = {topic: self.collect(kind, f'wrench_aggregator/{topic}') for topic, kind in (
            ('wrench', WrenchStamped), ('wrench_covariance', Float64MultiArray),
            ('contact_probabilities', JointState), ('contacts', JointState))}
        self.virtual_left = [] if bare else self.collect(
            WrenchStamped, 'wrench_aggregator/left/virtual_wrench')
        self.spin(0.2)  # publishers look for subscribers ten times a second
        self.play(200)

    def assert_virtual(self, received, i):
        """Check the newest virtual wrench of a foot."""
        np.testing.assert_allclose(
            wrench(received[-1]), self.plant.truth().sole_wrenches[i],
            atol=0.02 * 9.81 * self.model.mass)


@pytest.fixture(scope='module')
def rig(tmp_path_factory):
    rig = VirtualRig(tmp_path_factory.mktemp('virtual'))
    yield rig
    rig.close()


def test_the_virtual_foot_and_the_total_carry_the_simulators_forces(rig):
    rig.play(40)
    weight, truth = 9.81 * rig.model.mass, rig.plant.truth().sole_wrenches
    assert abs(truth[0, 2] - truth[1, 2]) > 0.01 * weight
    rig.assert_virtual(rig.wrenches['right'], 1)
    rig.assert_virtual(rig.virtual_left, 0)
    np.testing.assert_allclose(wrench(rig.wrenches['left'][-1]), truth[0], atol=1e-3 * weight)
    assert wrench(rig.got['wrench'][-1])[2] == pytest.approx(weight, rel=0.01)
    assert rig.wrenches['right'][-1].header.frame_id == 'r_sole'


def test_another_cutoff_takes_effect_at_once(rig):
    before, count = rig.node.virtual.feet, len(rig.wrenches['right'])
    assert rig.node.set_parameters(parameters(virtual_cutoff=20.0))[0].successful
    feet = rig.node.virtual.feet
    assert feet is not before and feet.sensors._settings.cutoff == 20.0
    rig.play(100)
    assert len(rig.wrenches['right']) > count + 20
    rig.assert_virtual(rig.wrenches['right'], 1)
    assert rig.node.set_parameters(parameters(virtual_cutoff=65.0))[0].successful
    rig.play(40)


def test_covariance_and_probabilities_of_all_feet(rig):
    message = rig.got['wrench_covariance'][-1]
    stamps = {(m.header.stamp.sec, m.header.stamp.nanosec) for m in rig.wrenches['right']}
    assert tuple(message.data[:2]) in stamps
    covariance = np.array(message.data[message.layout.data_offset:]).reshape(12, 12)
    assert [d.size for d in message.layout.dim] == [12, 12]
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    probabilities, contacts = rig.got['contact_probabilities'][-1], rig.got['contacts'][-1]
    assert list(probabilities.name) == ['left', 'right'] and min(probabilities.position) > 0.95
    assert list(contacts.position) == [1.0, 1.0]


def test_a_sensor_that_disagrees_with_joint_torques_is_reported(rig):
    def report_after(instants):
        rig.play(instants)
        return rig.report('left foot')

    assert report_after(200)[0] == DiagnosticStatus.OK
    rig.sign = -1.0
    report_after(200)  # it is about the time since the last one
    level, message = report_after(200)
    assert level == DiagnosticStatus.WARN and 'wrench_sensors.left_foot' in message
    rig.sign = 1.0
    rig.until(lambda: report_after(50)[0] == DiagnosticStatus.OK)


def test_without_efforts_nothing_is_published_and_the_reason_is_named(rig):
    rig.with_efforts = False
    rig.play(5)
    rig.wrenches['right'].clear()
    rig.play(50)
    assert not rig.wrenches['right'] and 'no efforts' in rig.report('total wrench')[1]
    rig.with_efforts = True
    rig.play(100)
    assert rig.wrenches['right']


def test_a_robot_without_any_sensor(tmp_path):
    """All feet are virtual: there are no offsets, and nothing fails."""
    bare = VirtualRig(tmp_path, bare=True)
    try:
        assert len(bare.got['wrench']) > 20
        for i, foot in enumerate(FEET):
            bare.assert_virtual(bare.wrenches[foot], i)
        assert bare.report('callbacks')[0] == DiagnosticStatus.OK
    finally:
        bare.close()
