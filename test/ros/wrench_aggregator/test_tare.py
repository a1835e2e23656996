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
"""Taring and untaring sensors of the node, and the file of the offsets."""

from __future__ import annotations

from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.wrench.tare import save_offsets, SensorOffset
from biped_com_ros.ros.topics.qos import LATCHED
import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray, String
from support.messages import wrench
from support.wrench_aggregator_rig import make_node
from support.wrench_oracle import SENSORS
import yaml

OFFSETS = {name: np.random.default_rng(i).normal(size=6) * [4, 4, 4, 0.4, 0.4, 0.4]
           for i, name in enumerate(SENSORS)}


def hang(rig, noise=0.2):
    """Lift the robot, whose sensors have offsets."""
    rig.contacts, rig.offsets, rig.noise = {}, OFFSETS, noise
    rig.play(60)


def test_tare_finds_the_offsets_and_untare_clears_them(rig):
    hang(rig)
    response = rig.tare('tare')
    assert response.success, response.message
    for name in SENSORS:
        assert f"'{name}': offset (" in response.message
    assert 'mean of 50 readings' in response.message and 'offsets_file' in response.message
    rig.noise, rig.contacts = 0.0, rig.robot.standing(0)
    rig.play(5)
    rig.assert_forces(atol=0.5)
    assert not np.allclose(OFFSETS['left_toe'], 0.0, atol=1.0)
    assert rig.tare('untare').success
    rig.play(5)
    off = wrench(rig.got['right/wrench'][-1]) - rig.robot.foot_wrench('right', rig.contacts)
    assert np.linalg.norm(off[:3]) == pytest.approx(np.linalg.norm(OFFSETS['right_foot'][:3]))


def test_one_sensor_is_tared_and_untared_alone(own_rig, tmp_path):
    path = tmp_path / 'offsets.yaml'
    rig = own_rig(offsets_file=str(path))
    hang(rig, noise=0.0)
    response = rig.tare('right_foot/tare')
    assert response.success and "'right_foot'" in response.message
    assert 'left_toe' not in response.message
    rig.play(3)
    np.testing.assert_allclose(wrench(rig.got['right/wrench'][-1]), np.zeros(6), atol=1e-9)
    assert np.linalg.norm(wrench(rig.got['left/wrench'][-1])) > 1.0
    assert rig.tare('tare').success
    response = rig.tare('right_foot/untare')
    assert response.success and "'right_foot'" in response.message
    assert 'left_toe' not in response.message
    for channel in rig.node.aggregation.channels:
        expected = np.zeros(6) if channel.name == 'right_foot' else OFFSETS[channel.name]
        np.testing.assert_allclose(channel.offset, expected, atol=1e-9)
    assert set(yaml.safe_load(path.read_text())['sensors']) == set(SENSORS) - {'right_foot'}


@pytest.mark.parametrize('change, message', [
    ({'noise': 10.0}, 'let the robot come to rest'),
    ({'joint_speed': 0.3}, 'hold the robot still'),
    ({'contacts': 'standing'}, 'lift the robot'),
    ({'silent': {'left_heel'}}, "'left_heel' not tared: its last reading is"),
])
def test_a_refused_tare_names_the_remedy(rig, change, message):
    hang(rig)
    if change.get('contacts'):
        change = {'contacts': rig.robot.standing(0)}
    for name, value in change.items():
        setattr(rig, name, value)
    rig.play(160 if 'silent' in change else 60)
    response = rig.tare('tare')
    assert not response.success and message in response.message
    assert all(not np.any(c.offset) for c in rig.node.aggregation.channels)


def test_late_joiners_read_the_offsets(rig):
    hang(rig, noise=0.0)
    rig.tare('tare')
    late = []
    subscription = rig.peer.create_subscription(
        Float64MultiArray, 'wrench_aggregator/offsets', late.append, LATCHED)
    rig.until(lambda: late)
    rig.peer.destroy_subscription(subscription)
    labels = [dim.label for dim in late[0].layout.dim]
    values = dict(zip(labels, late[0].data))
    axes = ('force.x', 'force.y', 'force.z', 'torque.x', 'torque.y', 'torque.z')
    for name, offset in OFFSETS.items():
        np.testing.assert_allclose([values[f'{name}/{axis}'] for axis in axes], offset, atol=1e-9)


def test_a_restart_loads_the_offsets(own_rig, tmp_path):
    path = str(tmp_path / 'deep' / 'offsets.yaml')
    first = own_rig(offsets_file=path)
    hang(first, noise=0.0)
    response = first.tare('tare')
    assert response.success and f'saved to {path}' in response.message
    first.node.destroy_node()
    second = own_rig(offsets_file=path)
    second.offsets, second.contacts = OFFSETS, second.robot.standing(0)
    second.play(5)
    second.assert_forces()
    assert second.tare('untare').success
    assert yaml.safe_load(Path(path).read_text())['sensors'] == {}


def calibrate(rig, robot):
    """Publish a URDF with the robot's true links, and wait until it is in use."""
    model = rig.node.model
    before = model.mass
    rig.peer.create_publisher(String, 'calibrated_description', LATCHED).publish(String(
        data=with_inertials(model.urdf, {
            link: NewInertial(mass, com) for link, (mass, com) in robot.links.items()})))
    rig.until(lambda: model.mass != before, what='calibrated inertials')


def test_calibrated_weights_are_taken_off_the_offsets_that_were_measured_with_others(
        own_rig, tmp_path):
    """In the air the URDF's error in what is below a sensor looks like an offset."""
    path = tmp_path / 'offsets.yaml'
    rig = own_rig(offsets_file=str(path))
    robot = rig.robot
    robot.links = {link: (1.2 * mass, com + 0.01) for link, (mass, com) in robot.links.items()}
    hang(rig, noise=0.0)
    assert rig.tare('right_foot/tare').success
    channel = rig.node.aggregation.channels[2]
    error = np.abs(channel.offset - OFFSETS['right_foot'])
    assert error[:3].max() > 0.2 and error[3:].max() > 0.01
    calibrate(rig, robot)
    rig.play(5)
    np.testing.assert_allclose(channel.offset, OFFSETS['right_foot'], atol=1e-6)
    saved = yaml.safe_load(path.read_text())['sensors']
    np.testing.assert_allclose(saved['right_foot']['offset'], OFFSETS['right_foot'], atol=1e-6)
    assert not rig.node.aggregation.channels[0].offset.any(), 'it was not tared'
    restarted = own_rig(offsets_file=str(path))
    calibrate(restarted, robot)
    restarted.robot.links, restarted.offsets = robot.links, {'right_foot': OFFSETS['right_foot']}
    restarted.play(20)
    np.testing.assert_allclose(
        restarted.node.aggregation.channels[2].offset, OFFSETS['right_foot'], atol=1e-6)
    rig.clear()
    rig.play(5)
    np.testing.assert_allclose(wrench(rig.got['right/wrench'][-1]), 0.0, atol=1e-6)


def test_offsets_that_cannot_be_saved_are_reported(own_rig, tmp_path):
    (tmp_path / 'file').write_text('')
    rig = own_rig(offsets_file=str(tmp_path / 'file' / 'offsets.yaml'))
    hang(rig)
    response = rig.tare('tare')
    assert not response.success and 'in use until this node ends, but' in response.message


def test_offsets_of_another_robot_are_refused_at_start(tmp_path):
    save_offsets(tmp_path / 'o.yaml', 'talos', {'left_toe': SensorOffset(frame='l_toe', sign=1.0)})
    with pytest.raises(ConfigurationError, match="of robot 'talos', not of 'wrench_robot'"):
        make_node(offsets_file=str(tmp_path / 'o.yaml'))


def test_biases_are_followed_while_the_robot_hangs_and_not_while_it_stands(own_rig):
    rig = own_rig(bias_tracking=True)
    rig.offsets = {name: 0.2 * offset for name, offset in OFFSETS.items()}
    rig.contacts, rig.noise = rig.robot.standing(0), 0.02
    rig.play(200, 0.02)
    assert not any(c.offset.any() for c in rig.node.aggregation.channels)
    rig.contacts = {}
    rig.until(lambda: rig.play(5, 0.02) and rig.node.aggregation.channels[2].offset.any())
    rig.contacts, rig.noise = rig.robot.standing(0), 0.0
    rig.play(5)
    rig.clear()
    rig.play(5)
    for foot, atol in (('left', 0.15), ('right', 0.1)):
        np.testing.assert_allclose(
            wrench(rig.got[f'{foot}/wrench'][-1]), rig.robot.foot_wrench(foot, rig.contacts),
            atol=atol)
    assert np.abs(rig.offsets['right_foot']).max() > 0.4
    values = rig.node.offsets.report()[2]
    assert 'standard deviation up to' in values['bias of right_foot']
    assert rig.trigger('wrench_aggregator/untare').success
