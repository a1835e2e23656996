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
"""Feet without sensors: contacts and covariance of `wrench_aggregator` in `zmp_monitor`."""

from biped_com_ros.core.model.config import robot_file
from geometry_msgs.msg import PoseWithCovarianceStamped
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from support.messages import float_matrix, stamp_of
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
    made.covariance = made.publisher(
        Float64MultiArray, f'{made.space}/wrench_aggregator/wrench_covariance')
    made.uncertain = made.collect(
        PoseWithCovarianceStamped, f'{made.space}/zmp_monitor/zmp_with_covariance')
    made.spin(0.5)
    yield made
    made.close()


def send_covariance(rig, ns, covariance):
    rig.covariance.publish(float_matrix(ns, covariance))


def play(rig, samples, probabilities):
    """Play with two more messages of each instant; the feet are named in another order."""
    for sample in samples:
        left, right = probabilities
        send_covariance(rig, sample.ns, np.eye(12))
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


def test_the_zmp_has_the_covariance_of_the_wrenches(rig):
    """The normal force of the left foot alone is uncertain: the ZMP is along the line to it."""
    _, samples = record(0.2)
    for sample in samples:
        send_covariance(rig, sample.ns, np.diag([0.0, 0.0, 4.0, *[0.0] * 9]))
        send = rig.senders(sample)
        for name in FEET_ONLY:
            send[name]()
            rig.spin(0.0015)
    rig.until(lambda: rig.uncertain)
    found = rig.uncertain[-1]
    ns = found.header.stamp.sec * 10 ** 9 + found.header.stamp.nanosec
    report = next(sample.report for sample in samples if sample.ns == ns)
    point = found.pose.pose.position
    zmp = np.array((point.x, point.y, point.z))
    np.testing.assert_allclose(zmp, report.zmp_in_world, atol=1e-4)
    lever = (report.located.state.sole_placements_in_world[0, 3] - zmp) / report.wrench[2]
    stated = np.array(found.pose.covariance).reshape(6, 6)
    np.testing.assert_allclose(stated[:2, :2], 4.0 * np.outer(lever, lever)[:2, :2], rtol=0.05,
                               atol=1e-7)
    assert stated[1, 1] > 5e-6 and not stated[3:].any()


def test_without_probabilities_forces_decide(rig):
    _, samples = record(0.3)
    rig.play(samples)
    assert rig.latched['support_phase'][-1].data == 'double'
