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
from support.wrench_oracle import FEET, SENSORS, TiltedRobot, URDF, YAML

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


def with_soles(config, **changes):
    """Return the robot with one sensor per foot, at its sole frame."""
    sensors, like = {'left_toe': 'left_sole_frame', 'right_foot': 'right_sole_frame'}, (
        config.wrench_sensors['left_toe'])
    return dataclasses.replace(
        config, hands={}, wrench_sensors={
            name: dataclasses.replace(like, topic=name, frame=frame, **changes)
            for name, frame in sensors.items()},
        feet={foot: dataclasses.replace(its, wrench_sensors=(name,))
              for (foot, its), name in zip(config.feet.items(), sensors)})


def feed_soles(config, robot, readings):
    """Return the aggregation, its total and the wrenches of the feet for readings (2, 6)."""
    aggregation = WrenchAggregation(RobotModel(config, URDF.read_text()), PLAIN)
    place(aggregation, robot)
    for i, reading in enumerate(readings):
        body = aggregation.update(i, reading, 10 * MS)
        total = aggregation.total(body, 10 * MS)
    return aggregation, total, [foot.wrench for foot in aggregation.feet]


def test_wrenches_given_at_soles_carry_nothing_whatever_link_the_sole_is(config):
    """Also where the URDF's only link there is the foot, whose weight a link would bring."""
    robot = TiltedRobot.somewhere(3)
    contacts = robot.standing(3, pull_by_hand=False)
    truth = [robot.foot_wrench(foot, contacts) for foot in ('left', 'right')]
    aggregation, total, wrenches = feed_soles(with_soles(config), robot, truth)
    assert_allclose(wrenches, truth, atol=1e-12)
    assert_allclose(total, robot.total_wrench(contacts), atol=1e-9)
    assert_allclose(aggregation.expected, 0.0, atol=0.0)
    # A sole frame beside its link: as far from it as configured, and at its angle.
    offset = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 0.3), np.array([0.02, -0.01, -0.03]))
    feet = {**config.feet, 'right': dataclasses.replace(
        config.feet['right'], sole='r_foot', sole_origin=tuple(offset.translation),
        sole_rpy=(0.1, -0.2, 0.3))}
    model = RobotModel(with_soles(dataclasses.replace(config, feet=feet)), URDF.read_text())
    state = model.state(np.zeros(len(model.joint_names)))
    link, sole = (state.pose_in_base(name) for name in ('r_foot', 'right_sole_frame'))
    assert_allclose(sole.position, link.apply(offset.translation), atol=1e-12)
    assert_allclose(sole.rotation, link.rotation @ offset.rotation, atol=1e-12)
    assert model.config.sole_frame('right') == 'right_sole_frame'
    assert model.subtree_links('right_sole_frame').size == 0 < model.subtree_links('r_foot').size


def mirrored(contacts, frame):
    """Return what an instrument reads whose y axis points the other way, from first principles."""
    flip = np.diag([1.0, -1.0, 1.0])
    force, moment = np.zeros(3), np.zeros(3)
    for c in contacts:
        f, p = (flip @ frame.rotation.T @ v for v in (c.force, c.point - frame.translation))
        # A free torque as a pair of forces at the ends of a lever across it.
        lever = np.cross(c.torque, [0.3, -0.7, 0.6])
        pair = np.cross(c.torque, lever) / (lever @ lever)
        for end, push in ((0.5 * lever, pair), (-0.5 * lever, -pair)):
            moment += np.cross(*(flip @ frame.rotation.T @ v for v in (end, push)))
        force, moment = force + f, moment + np.cross(p, f)
    return np.concatenate([force, moment])


def test_units_and_left_handed_axes_are_scaled_away(config):
    robot = TiltedRobot.somewhere(4)
    contacts = robot.standing(4, pull_by_hand=False)
    truth = [robot.foot_wrench(foot, contacts) for foot in FEET]
    for scale, readings in (
            (9.80665, np.array(truth) / 9.80665),
            (-1.0, np.negative(truth)),
            ((1.0, 1.0, 1.0, 1e-3, 1e-3, 1e-3), truth * np.repeat([1.0, 1e3], 3)),
            ((1.0, -1.0, 1.0, -1.0, 1.0, -1.0), [
                mirrored([c for s in sensors for c in contacts.get(s, ())], robot.frames[sole])
                for sole, sensors in FEET.values()])):
        _, _, wrenches = feed_soles(with_soles(config, scale=scale), robot, readings)
        assert_allclose(wrenches, truth, atol=1e-9)


def test_of_a_vertical_force_nothing_else_is_made_up(config):
    robot = TiltedRobot.somewhere(5)
    contacts = robot.standing(5, pull_by_hand=False)
    truth = np.array([robot.foot_wrench(foot, contacts) for foot in ('left', 'right')])
    # What it sends in the other fields, zeros or not, changes nothing.
    for others in (0.0, 7.0):
        readings = np.where([0, 0, 1, 0, 0, 0], truth, others)
        aggregation, _, wrenches = feed_soles(
            with_soles(config, measures='force_z'), robot, readings)
        assert_allclose(wrenches, truth * [0, 0, 1, 0, 0, 0], atol=1e-12)
        assert all(foot.has_force_z_only for foot in aggregation.feet)
    assert with_soles(config, measures='force_z').feet_with_force_z == ('left', 'right')
    assert config.feet_with_force_z == ()


def test_a_vertical_force_along_another_axis_than_the_normal_is_refused(config):
    sensors = {**config.wrench_sensors, 'right_foot': dataclasses.replace(
        config.wrench_sensors['right_foot'], measures='force_z')}
    with pytest.raises(ConfigurationError, match="z of its frame 'r_ft' is not the normal"):
        WrenchAggregation(RobotModel(
            dataclasses.replace(config, wrench_sensors=sensors), URDF.read_text()), PLAIN)


def test_a_sensor_that_is_late_gives_a_total_nonetheless_and_is_named(aggregation):
    """Queues are limited by time: at 1 kHz 17 ms are as many readings."""
    robot, late, totals = TiltedRobot.somewhere(0), len(aggregation.channels) - 1, 0
    place(aggregation, robot)
    for i in range(300):
        for sensor in range(late + 1):
            at = i - 17 * (sensor == late)
            body = None if at < 0 else aggregation.update(sensor, np.zeros(6), at * MS)
            totals += body is not None and aggregation.total(body, at * MS) is not None
    assert totals == 300 - 17
    name, seconds = aggregation.lateness
    assert seconds == pytest.approx(0.017)
    assert name in {aggregation.channels[late].name, *(
        body.name for body in aggregation.bodies if late in body.sensors)}
