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
What the torso's node does with the messages of an instant, in whatever order they come.

Its callbacks get the messages as the executor hands them over, one by one, so that it is seen with
which of them something goes out.
"""

from __future__ import annotations

from collections import Counter
import itertools
import math
import time

from biped_com_ros.core.geometry.pose import quaternion_from_rotation
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.controller import LONGEST_STEP
from biped_com_ros.core.torso.message_groups import MIN_IN_STEP
from biped_com_ros.nodes.torso_controller import node as torso_node
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from geometry_msgs.msg import Quaternion, Vector3
import numpy as np
import pytest
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

PERIOD = 2_000_000
LOWER, UPPER, TENDONS = 'imu', 'torso_imu', 'tendon_states'
ORDERS = list(itertools.permutations((LOWER, UPPER, TENDONS)))
SETTLED = MIN_IN_STEP + 5
"""MessageGroups after which all are in step."""


class Robot:
    """
    The node, and a torso that has the shape its tendons ask for.

    Attributes
    ----------
    lengths, shapes
        With which message they went out: (topic, number of the instant), and then what went out.

    """

    def __init__(self):
        self.node = TorsoController(parameter_overrides=[
            Parameter(name, value=value) for name, value in {
                'robot': 'biped', 'max_stamp_age': 0.0, 'imu_timeout': 0.1}.items()])
        self._callbacks = {s.topic_name.lstrip('/'): s.callback for s in self.node.subscriptions}
        self.shape, self._velocity = np.zeros(4), 0j
        self._start, self._now = time.time_ns(), ('', 0)
        self.lengths, self.shapes = [], []
        outputs, backbone = self.node._outputs, self.node.body.backbone
        outputs._lengths.on_publish = lambda raw, stamp: self._on_lengths()
        outputs._joints.on_publish = lambda raw, stamp: self.shapes.append(
            (*self._now, (stamp - self._start) // PERIOD))
        self._lengths_of, self._tip = backbone.lengths, backbone.tip

    @property
    def controller(self):
        return self.node.controller

    def _on_lengths(self):
        values = self.node._outputs._lengths.fields['data'].copy()
        low, high = self.controller.length_limits
        assert (values >= low).all() and (values <= high).all()
        self.lengths.append((*self._now, values))

    def stamp(self, instant, shift=0):
        return self._start + instant * PERIOD + shift

    def tell(self, topic, instant, shift=0):
        """Hand over the message of a sensor."""
        header = Header(stamp=stamp_to_msg(self.stamp(instant, shift)), frame_id={
            LOWER: 'imu_link', UPPER: 'torso_imu_link'}.get(topic, ''))
        if topic == TENDONS:
            command = self.node.command
            message = JointState(
                header=header, name=[f'tendon_{i}' for i in range(4)],
                effort=command.expected if command else [12.0] * 4,
                position=self._lengths_of(self.shape).tolist())
        else:
            rotation = self._tip(self.shape).rotation if topic == UPPER else np.eye(3)
            x, y, z, w = quaternion_from_rotation(rotation).tolist()
            message = Imu(header=header, orientation=Quaternion(x=x, y=y, z=z, w=w))
            if topic == UPPER:
                message.angular_velocity = self._turning()
        self._now = topic, instant
        self._callbacks[topic](bytes(serialize_message(message)))

    def _turning(self):
        """Return how the torso turns when it moves as planned, along the IMU's axes."""
        arc = self.controller.backbone.arc(complex(*self.shape[:2]))
        across, along = arc.rotate_back(*arc.twist(self._velocity, 0.0)[2:])
        return Vector3(x=across.real, y=across.imag, z=along)

    def instants(self, order, first, count, without=(), shifts=None):
        for instant in range(first, first + count):
            position, self._velocity, _ = self.controller.reference.motion
            self.shape[:2] = position.real, position.imag
            for topic in order:
                if (topic, instant) not in without and topic not in without:
                    self.tell(topic, instant, (shifts or {}).get(topic, 0))

    def sent_with(self, first=0):
        """Return with which topics lengths went out, from an instant on."""
        return [topic for topic, instant, _ in self.lengths if instant >= first]


@pytest.fixture
def robot():
    robot = Robot()
    yield robot
    robot.node.destroy_node()


@pytest.mark.parametrize('order', ORDERS, ids=' '.join)
def test_each_instant_is_told_and_controlled_once_with_the_last_of_its_messages(robot, order):
    count = 3 * MIN_IN_STEP
    robot.controller.set_target(make_shape(0.2, 0.7))
    robot.instants(order, 1, count)
    assert [at for *_, at in robot.shapes] == list(range(1, count + 1))
    # Until all are in step, with the torso's IMU, with which the first message may be alone.
    assert robot.sent_with()[:MIN_IN_STEP] == [UPPER] * MIN_IN_STEP
    assert [instant for _, instant, _ in robot.lengths] == list(range(1, count + 1))
    assert set(robot.sent_with(SETTLED)) == {order[-1]}
    both = max((LOWER, UPPER), key=order.index)
    assert {topic for topic, instant, _ in robot.shapes if instant >= SETTLED} == {both}
    assert 0.02 < robot.controller.reference.position[0] < 0.2


def test_what_is_sent_does_not_depend_on_the_order():
    sent = []
    for order in ORDERS:
        robot = Robot()
        robot.instants(order, 1, SETTLED)
        robot.controller.reset()
        robot.controller.set_target(make_shape(0.2, 0.7))
        robot.instants(order, SETTLED + 1, 120)
        sent.append([values for *_, values in robot.lengths[SETTLED:]])
        robot.node.destroy_node()
    changes = np.abs(np.diff(sent[0], axis=0)).max()
    spread = np.ptp(np.array(sent), axis=0).max()
    assert spread < 0.05 * changes < 1e-5  # m: a twentieth of what an instant changes


@pytest.mark.parametrize('order', ORDERS, ids=' '.join)
@pytest.mark.parametrize('late', [LOWER, TENDONS])
def test_who_lets_an_instant_pass_is_waited_for_until_the_next_one(robot, order, late):
    missed, end = SETTLED + 1, SETTLED + 2 * MIN_IN_STEP
    robot.instants(order, 1, end, without={(late, missed)})
    assert [at for *_, at in robot.shapes] == list(range(1, end + 1))
    sent = Counter(instant for _, instant, _ in robot.lengths)
    expected = dict.fromkeys(range(1, end + 1), 1)
    expected[missed + 1] += expected.pop(missed)
    assert sent == expected
    # It did not wait for the rest of the next instant.
    first = robot.sent_with(missed)[0]
    assert order.index(first) <= order.index(UPPER)
    assert set(robot.sent_with(missed + MIN_IN_STEP + 2)) == {order[-1]}


@pytest.mark.parametrize('silent', [LOWER, TENDONS])
def test_who_falls_silent_is_done_without(robot, silent):
    order = LOWER, UPPER, TENDONS
    robot.instants(order, 1, SETTLED)
    robot.instants(order, SETTLED + 1, 100, without={silent})
    assert len(robot.lengths) == SETTLED + 100
    words = robot.node.problem
    assert ('open loop' in words) == (silent == LOWER), words


@pytest.mark.parametrize('shifts', [{TENDONS: PERIOD // 3}, {LOWER: -PERIOD // 2},
                                    {LOWER: PERIOD // 5, TENDONS: -PERIOD // 4}])
def test_with_other_stamps_all_is_done_with_the_torsos_imu(robot, shifts):
    order = (LOWER, UPPER, TENDONS) if len(shifts) > 1 else (UPPER, LOWER, TENDONS)
    robot.instants(order, 1, 2 * SETTLED, shifts=shifts)
    assert len(robot.lengths) == len(robot.shapes) == 2 * SETTLED
    if len(shifts) > 1:
        assert set(robot.sent_with()) == {UPPER}
    assert not robot.node.problem


def test_when_nothing_comes_any_more_the_watchdog_goes_on(robot, monkeypatch):
    def look_at(instant):
        monkeypatch.setattr(torso_node, 'now_ns', lambda node: robot.stamp(instant))
        return robot.node._watch()

    robot.instants((LOWER, UPPER, TENDONS), 1, SETTLED)
    assert not look_at(SETTLED + 1)
    robot.tell(LOWER, SETTLED + 1)
    robot.tell(UPPER, SETTLED + 1)
    assert len(robot.lengths) == SETTLED
    assert look_at(SETTLED + 2)  # it may have come this very moment
    assert len(robot.lengths) == SETTLED
    assert not look_at(SETTLED + 3)
    assert len(robot.lengths) == SETTLED + 1 and not robot.node.problem
    assert look_at(SETTLED + 60)
    assert len(robot.lengths) == SETTLED + 2 and 'no fresh torso IMU' in robot.node.problem


def test_the_plan_does_not_run_away_from_what_is_sent(robot):
    """The others go on telling while the torso's IMU is silent; then it goes on as from rest."""
    robot.controller.set_target(make_shape(0.26, 0.0))
    robot.instants((LOWER, UPPER, TENDONS), 1, 60)
    before, sent = robot.controller.reference.position, len(robot.lengths)
    speed = np.hypot(*robot.controller.reference.velocity)
    robot.instants((LOWER, TENDONS), 61, 45)
    assert len(robot.lengths) == sent and speed > 0.5
    way = np.hypot(*(robot.controller.reference.position - before))
    assert 0.0 < way < 1.5 * LONGEST_STEP + 1e-9
    robot.instants((LOWER, UPPER, TENDONS), 106, 1)
    assert len(robot.lengths) == sent + 1
    assert np.hypot(*(robot.controller.reference.position - before)) < 1.5 * LONGEST_STEP + 0.003


def test_nothing_goes_out_after_deactivation(robot):
    robot.instants((LOWER, UPPER, TENDONS), 1, SETTLED)
    robot.tell(LOWER, SETTLED + 1)
    robot.tell(UPPER, SETTLED + 1)
    assert robot.node._instants.missing
    robot.node.trigger_deactivate()
    robot.tell(TENDONS, SETTLED + 1)
    for _ in range(3):
        robot.node._watch()
    assert len(robot.lengths) == SETTLED
    robot.instants((LOWER, UPPER, TENDONS), SETTLED + 2, 3)
    assert len(robot.lengths) == SETTLED and robot.shapes[-1][2] == SETTLED + 4


def test_tensions_that_fall_count_by_the_time_between_them(robot):
    """A tendon is slack after 0.05 s, however many updates there are meanwhile."""
    robot.instants((LOWER, UPPER, TENDONS), 1, SETTLED)
    controller = robot.controller
    for k in range(1, 30):
        robot.instants((LOWER, UPPER), SETTLED + k, 1)
        controller.set_tendons(1e-9 * PERIOD, None, [12.0, 0.0, 12.0, 12.0])
        if k != 25:  # that is 0.05 s sharp
            assert bool(controller.slack.slack) == (k > 25)
    assert math.isclose(controller.slack_prevention.level, min(
        3.0 / 0.02 * 29 * PERIOD * 1e-9, 0.5 * (60.0 - 12.0)), rel_tol=1e-6)
