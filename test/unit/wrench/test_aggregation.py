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

import dataclasses

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.wrench import com_line
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest
from support.wrench_oracle import SENSORS, TiltedRobot, URDF, YAML

MS = 1_000_000
PLAIN = AggregationSettings(thresholds=ContactThresholds(
    engage=0.06, release=0.03, engage_dwell=0.0, release_dwell=0.0))


@pytest.fixture(scope='module')
def config():
    return load_robot_config(YAML)


@pytest.fixture
def aggregation(config):
    return WrenchAggregation(RobotModel(config, URDF.read_text()), PLAIN)


def place(aggregation, robot, heading_error=0.0):
    """Tell the aggregation where the robot's joints are and how it leans."""
    names = aggregation.model.joint_names
    joints = np.array([robot.joints[robot.joint_names.index(name)] for name in names])
    drift = pin.rpy.rpyToMatrix(0.0, 0.0, heading_error)
    aggregation.set_state(
        aggregation.model.state(joints), drift @ robot.frames['imu_link'].rotation)


def feed(aggregation, robot, contacts, offsets=None):
    """Hand over one reading per sensor; return the total and the bodies by name and kind."""
    done, total = {}, None
    for i, channel in enumerate(aggregation.channels):
        reading = robot.reading(channel.name, contacts, (offsets or {}).get(channel.name, 0.0))
        body = aggregation.update(i, reading, 10 * MS)
        if body is not None:
            done[body.name, body.detector is not None] = body
            assert total is None
            total = aggregation.total(body, 10 * MS)
    return total, done


@pytest.mark.parametrize('seed', range(5))
def test_known_forces_come_out_without_offsets_and_what_hangs_on_sensors(aggregation, seed):
    """The total carries the weight, and its line holds the centre of mass."""
    robot, rng = TiltedRobot.somewhere(seed), np.random.default_rng(seed)
    contacts, offsets = robot.standing(seed), {name: rng.normal(size=6) * 10.0 for name in SENSORS}
    for channel in aggregation.channels:
        channel.set_offset(offsets[channel.name])
    place(aggregation, robot, heading_error=0.3 * seed)
    for channel, expected in zip(aggregation.channels, aggregation.expected):
        hanging = np.array(channel.config.factors) * robot.reading(channel.name, {})
        assert_allclose(expected, hanging, atol=1e-12)
    total, done = feed(aggregation, robot, contacts, offsets)
    for foot in ('left', 'right'):
        assert_allclose(done[foot, True].wrench, robot.foot_wrench(foot, contacts), atol=1e-9)
    feet = [foot for foot in ('left', 'right') if done[foot, True].in_contact] or ['left', 'right']
    assert_allclose(total, robot.total_wrench(contacts, feet), atol=1e-9)
    assert_allclose(total[:3], [0.0, 0.0, aggregation.body_weight], atol=1e-9)
    com = robot.footprint(feet).actInv(robot.com)
    assert_allclose(com_line(total).at_height(com[2]), com, atol=1e-9)


def test_footprint_lies_between_the_feet_on_the_ground(aggregation):
    robot = TiltedRobot.somewhere(2)
    place(aggregation, robot)
    contacts = {'right_foot': robot.standing(pull_by_hand=False)['right_foot']}
    total, _ = feed(aggregation, robot, contacts)
    assert_allclose(robot.base.translation + aggregation.footprint_from_base(),
                    robot.footprint(['right']).translation, atol=1e-12)
    assert_allclose(total, robot.total_wrench(contacts, ['right']), atol=1e-9)


def test_posture_and_attitude_and_all_sensors_of_a_foot_are_needed(aggregation):
    robot = TiltedRobot.somewhere(1)
    assert feed(aggregation, robot, robot.standing()) == (None, {})
    place(aggregation, robot)
    assert aggregation.update(0, np.zeros(6), 20 * MS) is None
    assert aggregation.update(0, np.zeros(6), 21 * MS) is None
    assert aggregation.update(1, np.zeros(6), 21 * MS).name == 'left'


@pytest.mark.parametrize(('kind', 'name', 'change', 'problem'), [
    ('wrench_sensors', 'left_heel', {'link': 'l_ankle'},
     "'left_toe' and 'left_heel' .*count twice"),
    ('feet', 'right', {'wrench_sensors': ('left_toe',)}, "'left_toe' .*'left' and for 'right'")])
def test_sensors_that_count_twice_are_refused(config, kind, name, change, problem):
    given = getattr(config, kind)
    changed = {**given, name: dataclasses.replace(given[name], **change)}
    with pytest.raises(ConfigurationError, match=problem):
        WrenchAggregation(RobotModel(
            dataclasses.replace(config, **{kind: changed}), URDF.read_text()), PLAIN)
