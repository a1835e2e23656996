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
"""Feet without sensors: `zmp_monitor` uses the contacts that `wrench_aggregator` decides on."""

from biped_com_ros.core.model.config import robot_file
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from support.messages import stamp_of
from support.monitored_robot import FEET_ONLY, MonitoredRobot, record, shifted
import yaml


@pytest.fixture
def rig(tmp_path):
    config = yaml.safe_load(robot_file('biped').read_text())
    for foot in config['feet'].values():
        foot['source'] = 'virtual'
    path = tmp_path / 'as_sold.yaml'
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    made = MonitoredRobot(robot=str(path))
    made.probabilities = made.publisher(
        JointState, f'{made.space}/wrench_aggregator/contact_probabilities')
    made.spin(0.5)
    yield made
    made.close()


def play(rig, samples, probabilities):
    """Play with one more message of each instant; the feet are named in another order."""
    for sample in samples:
        left, right = probabilities
        rig.probabilities.publish(JointState(
            header=Header(stamp=stamp_of(sample.ns)), name=['right', 'left'],
            position=[right, left]))
        send = rig.senders(sample)
        for name in FEET_ONLY:
            send[name]()
            rig.spin(0.0015)
    rig.spin(0.2)


def test_contacts_of_virtual_feet_are_those_of_the_aggregator(rig):
    """Both feet carry half of the weight: forces alone never lift one."""
    _, samples = record(0.1)
    play(rig, samples, (0.99, 0.99))
    phases = [message.data for message in rig.latched['support_phase']]
    assert phases == ['double']
    assert len(rig.got['support_polygon'][-1].polygon.points) > 4
    play(rig, shifted(samples, 1.0), (0.45, 0.05))  # the left one stays: hysteresis
    assert rig.latched['support_phase'][-1].data == 'single left'
    assert len(rig.got['support_polygon'][-1].polygon.points) == 4
    play(rig, shifted(samples, 2.0), (0.3, 0.95))
    assert rig.latched['support_phase'][-1].data == 'single right'


def test_without_probabilities_forces_decide(rig):
    _, samples = record(0.3)
    rig.play(samples)
    assert rig.latched['support_phase'][-1].data == 'double'
