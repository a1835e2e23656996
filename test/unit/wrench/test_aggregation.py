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
"""Readings made from known forces have to come out as those forces."""

from __future__ import annotations

import dataclasses

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.wrench import com_line
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
import pinocchio as pin
import pytest
from support.wrench_oracle import SENSORS, TiltedRobot, URDF, YAML

MS = 1_000_000
PLAIN = AggregationSettings(thresholds=ContactThresholds(
        engage=0.06, release=0.03, engage_dwell=0.0, release_dwell=0.0))


@pytest.fixture(scope='module')
def config():
    return load_robot_config(YAML)


@pytest.fixture(scope='module')
def model(config):
    return RobotModel(config, URDF.read_text())


def place(aggregation, robot, heading_error=0.0):
    """Tell the aggregation where the robot's joints are and how it leans."""
    names = aggregation.model.joint_names
    joints = np.array([robot.joints[robot.joint_names.index(name)] for name in names])
    drift = pin.rpy.rpyToMatrix(0.0, 0.0, heading_error)
    aggregation.set_state(
        aggregation.model.state(joints), drift @ robot.frames['imu_link'].rotation)


def feed(aggregation, robot, contacts, offsets=None, stamp_ns=10 * MS):
    """Hand over one reading per sensor; return the total and the bodies by name and kind."""
    done, total = {}, None
    for i, channel in enumerate(aggregation.channels):
        reading = robot.reading(channel.name, contacts, (offsets or {}).get(channel.name, 0.0))
        body = aggregation.update(i, reading, stamp_ns)
        if body is not None:
            done[body.name, body.detector is not None] = body
            assert total is None
            total = aggregation.total(body, stamp_ns)
    return total, done


@pytest.mark.parametrize('seed', range(5))
def test_known_forces_come_out(model, seed):
    robot, aggregation = TiltedRobot.somewhere(seed), WrenchAggregation(model, PLAIN)
    contacts = robot.standing(seed)
    place(aggregation, robot, heading_error=0.3 * seed)
    total, done = feed(aggregation, robot, contacts)
    for foot in ('left', 'right'):
        np.testing.assert_allclose(
            done[foot, True].wrench, robot.foot_wrench(foot, contacts), atol=1e-9)
    feet = [foot for foot in ('left', 'right') if done[foot, True].in_contact]
    np.testing.assert_allclose(
        total, robot.total_wrench(contacts, feet or ['left', 'right']), atol=1e-9)


def test_total_carries_the_weight_and_its_line_holds_the_com(model):
    robot, aggregation = TiltedRobot.somewhere(3), WrenchAggregation(model, PLAIN)
    place(aggregation, robot)
    total, done = feed(aggregation, robot, robot.standing())
    assert all(done[foot, True].in_contact for foot in ('left', 'right'))
    np.testing.assert_allclose(total[:3], [0.0, 0.0, aggregation.body_weight], atol=1e-9)
    com = robot.footprint().actInv(robot.com)
    np.testing.assert_allclose(com_line(total).at_height(com[2]), com, atol=1e-9)


def test_footprint_lies_between_the_feet_on_the_ground(model):
    robot, aggregation = TiltedRobot.somewhere(2), WrenchAggregation(model, PLAIN)
    place(aggregation, robot)
    contacts = robot.standing(pull_by_hand=False)
    contacts = {name: forces for name, forces in contacts.items() if name == 'right_foot'}
    total, _ = feed(aggregation, robot, contacts)
    expected = robot.footprint(['right'])
    np.testing.assert_allclose(
        robot.base.translation + aggregation.footprint_from_base(), expected.translation,
        atol=1e-12)
    np.testing.assert_allclose(
        total, robot.total_wrench(contacts, ['right']), atol=1e-9)


def test_expected_reading_is_what_hangs_in_the_air(model):
    robot, aggregation = TiltedRobot.somewhere(4), WrenchAggregation(model, PLAIN)
    place(aggregation, robot)
    for i, channel in enumerate(aggregation.channels):
        np.testing.assert_allclose(
            aggregation.expected[i], channel.config.sign * robot.reading(channel.name, {}),
            atol=1e-12)


def test_a_carried_joint_moves_the_expected_reading(model):
    aggregation = WrenchAggregation(model, PLAIN)
    hand = [c.name for c in aggregation.channels].index('left_hand')
    readings = []
    for angle in (-1.0, 1.0):
        place(aggregation, TiltedRobot({'knuckle': angle, 'elbow': 0.3}, pin.SE3.Random()))
        readings.append(aggregation.expected[hand].copy())
    assert np.abs(readings[0] - readings[1]).max() > 0.01


def test_offsets_are_taken_out(model):
    robot, aggregation = TiltedRobot.somewhere(5), WrenchAggregation(model, PLAIN)
    contacts, rng = robot.standing(5), np.random.default_rng(5)
    offsets = {name: rng.normal(size=6) * 10.0 for name in SENSORS}
    for channel in aggregation.channels:
        channel.set_offset(offsets[channel.name])
    place(aggregation, robot)
    total, _ = feed(aggregation, robot, contacts, offsets)
    np.testing.assert_allclose(total, robot.total_wrench(contacts), atol=1e-9)


def test_low_pass_smooths_and_settles(model):
    robot, contacts = TiltedRobot.somewhere(6), TiltedRobot.somewhere(6).standing(6)
    aggregation = WrenchAggregation(
        model, dataclasses.replace(PLAIN, low_pass_cutoff=20.0))
    place(aggregation, robot)
    rng, heights = np.random.default_rng(6), []
    for i in range(400):
        noise = {name: rng.normal(size=6) for name in SENSORS}
        total, _ = feed(aggregation, robot, contacts, noise, (i + 1) * 2 * MS)
        heights.append(total[2])
    assert np.std(heights[100:]) < 0.5 * np.sqrt(len(SENSORS))
    assert np.mean(heights[100:]) == pytest.approx(aggregation.body_weight, abs=0.2)


def test_nothing_comes_out_before_posture_and_attitude_are_known(model):
    robot, aggregation = TiltedRobot.somewhere(1), WrenchAggregation(model, PLAIN)
    assert feed(aggregation, robot, robot.standing()) == (None, {})


def test_a_foot_needs_all_its_sensors(model):
    robot, aggregation = TiltedRobot.somewhere(1), WrenchAggregation(model, PLAIN)
    place(aggregation, robot)
    assert aggregation.update(0, np.zeros(6), MS) is None
    assert aggregation.update(0, np.zeros(6), 2 * MS) is None
    assert aggregation.update(1, np.zeros(6), 2 * MS).name == 'left'


def test_two_sensors_in_series_are_refused(config):
    sensors = {**config.wrench_sensors, 'left_heel': dataclasses.replace(
        config.wrench_sensors['left_heel'], link='l_ankle')}
    with pytest.raises(ConfigurationError, match="'left_toe' and 'left_heel' .*count twice"):
        WrenchAggregation(RobotModel(dataclasses.replace(config, wrench_sensors=sensors),
                                     URDF.read_text()), PLAIN)


def test_one_sensor_in_two_feet_is_refused(config):
    feet = {**config.feet, 'right': dataclasses.replace(
        config.feet['right'], wrench_sensors=('left_toe',))}
    with pytest.raises(ConfigurationError, match="'left_toe' .*'left' and for 'right'"):
        WrenchAggregation(RobotModel(dataclasses.replace(config, feet=feet),
                                     URDF.read_text()), PLAIN)
