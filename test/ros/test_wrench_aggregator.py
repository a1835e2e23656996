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
The whole node over DDS: readings of known forces go in, these forces have to come out.

The forces, the weight of the feet, offsets and reversed signs come from ``wrench_oracle``, which
knows nothing of the package.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.wrench.tare import save_offsets, SensorOffset
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator, WrenchAggregatorParameters
from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
import numpy as np
import pytest
import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import Trigger
from support.ros_rig import ServedNodes
from support.wrench_oracle import Robot, SENSORS, URDF, YAML
from tf2_msgs.msg import TFMessage
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'wrench_aggregator.yaml'
OUTPUTS = {
    'left/wrench': WrenchStamped, 'right/wrench': WrenchStamped, 'wrench': WrenchStamped,
    'left/contact': Bool, 'right/contact': Bool, 'left/cop': PointStamped,
    'right/cop': PointStamped, 'line/point': PointStamped, 'line/direction': Vector3Stamped,
    'contacts': JointState}
COUNTER = itertools.count()
OFFSETS = {name: np.random.default_rng(i).normal(size=6) * [4, 4, 4, 0.4, 0.4, 0.4]
           for i, name in enumerate(SENSORS)}


class Rig(ServedNodes):
    """The node, a robot's drivers around it and a listener, all on one executor."""

    def __init__(self, robot=None, robot_file=str(YAML), **parameters):
        self.robot = robot or Robot.somewhere(0)
        self.contacts, self.offsets, self.noise = {}, {}, 0.0
        self.silent, self.late = set(), {}
        self.joint_speed, self.joints_usable = 0.0, True
        self.rng = np.random.default_rng(0)
        self.got = {topic: [] for topic in OUTPUTS}
        self.diagnostics = {}
        self.executor = make_executor()
        namespace = f'rig_{next(COUNTER)}'  # no rig may hear another one
        self.peer = Node('driver', namespace=namespace)
        self._publishers = {name: self.peer.create_publisher(
            WrenchStamped, f'{name}/wrench', qos_profile_sensor_data) for name in SENSORS}
        self._joints = self.peer.create_publisher(JointState, 'joint_states', 10)
        self._imu = self.peer.create_publisher(Imu, 'imu', qos_profile_sensor_data)
        self.node = make_node(namespace=namespace, robot=robot_file, **parameters)
        for topic, kind in OUTPUTS.items():
            self.peer.create_subscription(
                kind, f'wrench_aggregator/{topic}', self.got[topic].append, 10)
        self.peer.create_subscription(DiagnosticArray, '/diagnostics', self._diagnose, 10)
        self.executor.add_node(self.peer)
        self.executor.add_node(self.node)
        self.connect()

    def connect(self):
        """Wait until both sides know each other, and the node hears all drivers."""
        topics = [f'{name}/wrench' for name in SENSORS] + ['joint_states', 'imu']
        self.until(lambda: all(self.peer.count_subscribers(t) for t in topics) and all(
            self.peer.count_publishers(f'wrench_aggregator/{t}') for t in OUTPUTS))
        inputs = [*self.node.sensors, self.node.joints, self.node.imu]
        self.until(lambda: self.knock() or all(i.stamp_ns is not None for i in inputs))
        self.until(lambda: self.knock() or (self.got['left/wrench'] and self.got['wrench']
                                            and self.got['right/wrench']))
        self.flush()

    def knock(self):
        """Publish once and do not wait for it."""
        stamp = self.peer.get_clock().now().to_msg()
        self.publish_state(stamp)
        for name in SENSORS:
            self.publish_wrench(name, stamp)
        self.spin(0.02)

    def play(self, instants, period=0.004):
        """Let all drivers publish `instants` times, each time until the node has it all."""
        for _ in range(instants):
            time.sleep(period)
            now = self.peer.get_clock().now()
            self.publish_state(now.to_msg())
            if self.joints_usable:
                self.wait_for(now, [self.node.joints, self.node.imu])
            for name, sensor in zip(SENSORS, self.node.sensors):
                if name not in self.silent:
                    stamp = now - Duration(seconds=self.late.get(name, 0.0))
                    self.publish_wrench(name, stamp.to_msg())
                    self.wait_for(stamp, [sensor])
        self.flush()
        return now.to_msg()

    def wait_for(self, stamp, inputs):
        """Let the node work until `inputs` have the messages of this stamp."""
        ns = stamp.nanoseconds
        self.until(lambda: all(i.stamp_ns == ns for i in inputs))

    def flush(self):
        """Let everything arrive that is under way."""
        quiet_since, heard = time.monotonic(), -1
        while time.monotonic() - quiet_since < 0.1:
            self.executor.spin_once(timeout_sec=0.005)
            now_heard = sum(map(len, self.got.values()))
            if now_heard != heard:
                quiet_since, heard = time.monotonic(), now_heard

    def publish_state(self, stamp):
        """Publish joints in reverse order with a stranger among them, and an IMU with drift."""
        robot, message = self.robot, JointState()
        message.header.stamp = stamp
        message.name = [*robot.joint_names[::-1], 'stranger']
        message.position = [*robot.joints[::-1], 9.0]
        message.velocity = [self.joint_speed] * len(message.name)
        self._joints.publish(message)
        imu = Imu()
        imu.header.stamp, imu.header.frame_id = stamp, 'imu_link'
        q, x = imu.orientation, robot.imu_quaternion(heading_error=0.8)
        q.x, q.y, q.z, q.w = map(float, x)
        self._imu.publish(imu)

    def publish_wrench(self, name, stamp, frame=None, values=None):
        message = WrenchStamped()
        message.header.stamp, message.header.frame_id = stamp, frame or SENSORS[name][0]
        if values is None:
            noise = self.noise * self.rng.normal(size=6) * [1, 1, 1, 0.05, 0.05, 0.05]
            values = self.robot.reading(name, self.contacts, self.offsets.get(name, 0.0) + noise)
        f, t = message.wrench.force, message.wrench.torque
        f.x, f.y, f.z, t.x, t.y, t.z = map(float, values)
        self._publishers[name].publish(message)

    def clear(self):
        for messages in self.got.values():
            messages.clear()

    def call(self, service):
        client = self.peer.create_client(Trigger, f'wrench_aggregator/{service}')
        self.until(client.service_is_ready)
        future = client.call_async(Trigger.Request())
        self.until(future.done)
        self.peer.destroy_client(client)
        return future.result()

    def health(self, line):
        """Return (level, message) of a diagnostics line that covers the present only."""
        for _ in range(2):  # what a report says is about the second before it
            self.diagnostics.clear()
            end = time.monotonic() + 10.0
            while line not in self.diagnostics and time.monotonic() < end:
                self.play(5)
        return self.diagnostics[line]

    def _diagnose(self, array):
        for status in array.status:
            prefix = 'wrench_aggregator: '
            if status.name.startswith(prefix):
                self.diagnostics[status.name[len(prefix):]] = (status.level, status.message)


def make_node(namespace='', **parameters):
    values = {'robot': str(YAML), 'urdf': str(URDF), 'low_pass_cutoff': 0.0, 'tare_samples': 50,
              **parameters}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    return WrenchAggregator(namespace=namespace, parameter_overrides=overrides)


@pytest.fixture(scope='module')
def shared_rig():
    rig = Rig()
    yield rig
    rig.close()


@pytest.fixture
def rig(shared_rig):
    """Return the shared rig with the robot standing and everything in order."""
    shared_rig.robot = Robot.somewhere(0)
    shared_rig.contacts = shared_rig.robot.standing(0)
    shared_rig.offsets, shared_rig.noise = {}, 0.0
    shared_rig.silent, shared_rig.late, shared_rig.joint_speed = set(), {}, 0.0
    shared_rig.play(3)
    shared_rig.clear()
    yield shared_rig
    shared_rig.call('untare')


@pytest.fixture
def own_rig():
    """Return a maker of rigs with parameters of their own."""
    rigs = []

    def make(*args, **parameters):
        rigs.append(Rig(*args, **parameters))
        return rigs[-1]
    yield make
    for rig in rigs:
        rig.close()


def vector(message):
    return np.array([message.x, message.y, message.z])


def wrench(message):
    return np.concatenate([vector(message.wrench.force), vector(message.wrench.torque)])


def assert_forces(rig, atol=1e-9):
    """Check that the newest outputs are the true forces."""
    for foot in ('left', 'right'):
        np.testing.assert_allclose(wrench(rig.got[f'{foot}/wrench'][-1]),
                                   rig.robot.foot_wrench(foot, rig.contacts), atol=atol)
    np.testing.assert_allclose(
        wrench(rig.got['wrench'][-1]), rig.robot.total_wrench(rig.contacts), atol=atol)


@pytest.mark.parametrize('seed', [1, 2])
def test_known_forces_come_out(rig, seed):
    rig.robot = Robot.somewhere(seed)
    rig.contacts = rig.robot.standing(seed)
    rig.play(5)
    assert_forces(rig)
    for foot, sole in (('left', 'l_sole'), ('right', 'r_sole')):
        assert rig.got[f'{foot}/wrench'][-1].header.frame_id == sole
        assert rig.got[f'{foot}/cop'][-1].header.frame_id == sole
        _, _, fz, mx, my, _ = rig.robot.foot_wrench(foot, rig.contacts)
        np.testing.assert_allclose(
            vector(rig.got[f'{foot}/cop'][-1].point), [-my / fz, mx / fz, 0.0], atol=1e-12)
    for topic in ('wrench', 'line/point', 'line/direction'):
        assert rig.got[topic][-1].header.frame_id == 'base_footprint'


def test_line_holds_the_com(rig):
    rig.play(5)
    com = rig.robot.footprint().actInv(rig.robot.com)
    point = vector(rig.got['line/point'][-1].point)
    direction = vector(rig.got['line/direction'][-1].vector)
    assert (point[2], direction[2]) == (0.0, 1.0)
    np.testing.assert_allclose(point + com[2] * direction, com, atol=1e-9)


def test_stamps_are_those_of_the_readings_and_each_instant_comes_once(rig):
    rig.play(20)
    stamps = [m.header.stamp for m in rig.got['wrench']]
    assert len(stamps) == 20 and stamps == sorted(stamps, key=lambda s: (s.sec, s.nanosec))
    assert [m.header.stamp for m in rig.got['left/wrench']] == stamps
    assert [m.header.stamp for m in rig.got['line/point']] == stamps
    last = rig.play(1)
    assert rig.got['wrench'][-1].header.stamp == last


def test_lifting_a_foot_moves_the_footprint_and_ends_its_contact(rig):
    rig.play(40)
    assert rig.got['left/contact'][-1].data and rig.got['right/contact'][-1].data
    rig.contacts = {'right_foot': rig.contacts['right_foot']}
    rig.play(10)
    assert not rig.got['left/contact'][-1].data and rig.got['right/contact'][-1].data
    np.testing.assert_allclose(wrench(rig.got['wrench'][-1]),
                               rig.robot.total_wrench(rig.contacts, ['right']), atol=1e-9)
    rig.clear()
    rig.play(5)
    assert not rig.got['left/cop'] and rig.got['right/cop']


def test_contacts_are_read_by_late_joiners_and_repeated(rig):
    start = time.monotonic()
    rig.play(60)
    # Every 0.1 s, not with every reading.
    assert 2 <= len(rig.got['left/contact']) <= 2 + (time.monotonic() - start) / 0.1
    late = []
    subscription = rig.peer.create_subscription(
        Bool, 'wrench_aggregator/left/contact', late.append, LATCHED)
    rig.until(lambda: late)
    assert late[0].data
    rig.peer.destroy_subscription(subscription)


def test_contacts_of_all_feet_carry_the_stamp_of_their_instant(rig):
    rig.play(40)
    told = rig.got['contacts']
    assert told and len(told) < 20  # not with every reading
    assert list(told[-1].name) == ['left', 'right'] and list(told[-1].position) == [1.0, 1.0]
    np.testing.assert_allclose(
        told[-1].effort, [rig.robot.foot_wrench(foot, rig.contacts)[2]
                          for foot in ('left', 'right')], atol=1e-9)
    rig.clear()
    rig.contacts = {'right_foot': rig.contacts['right_foot']}
    rig.play(10)
    stamps = [m.header.stamp for m in rig.got['wrench']]
    lifted = next(m for m in rig.got['contacts'] if list(m.position) == [0.0, 1.0])
    since_ns = (1e9 * (lifted.header.stamp.sec - stamps[0].sec)
                + lifted.header.stamp.nanosec - stamps[0].nanosec)
    assert lifted.header.stamp in stamps
    # As soon as the force has been gone for contact_release_dwell.
    assert since_ns >= 6e6 and stamps.index(lifted.header.stamp) <= 3
    assert lifted.effort[0] == pytest.approx(0.0, abs=1e-9)


def test_contacts_need_all_feet_and_no_hand(rig):
    rig.silent = {'left_hand'}
    rig.play(40)
    assert len(rig.got['wrench']) <= 1 and len(rig.got['contacts']) >= 2
    rig.silent = {'right_foot'}
    rig.play(2)
    rig.clear()
    rig.play(40)
    assert rig.got['left/wrench'] and not rig.got['contacts']


def test_weight_is_compared_with_the_model(rig):
    level, message = rig.health('weight')
    assert level == DiagnosticStatus.OK and '(ratio 1.0000)' in message
    assert rig.health('total wrench')[0] == DiagnosticStatus.OK


def test_wrong_sign_is_named_with_its_remedy(rig):
    rig.contacts = {'right_foot': [
        dataclasses.replace(c, force=-c.force) for c in rig.contacts['right_foot']]}
    level, message = rig.health('weight')
    assert level == DiagnosticStatus.WARN
    assert 'flip wrench_sensors.right_foot.sign in the YAML of robot wrench_robot' in message


def test_the_mean_of_the_total_is_told_while_the_robot_rests(rig):
    rig.noise, heard = 1.0, []
    subscription = rig.peer.create_subscription(
        WrenchStamped, 'wrench_aggregator/resting_wrench', heard.append, 10)
    rig.until(lambda: rig.node.count_subscribers(subscription.topic_name))
    # The first one may have begun before the robot stood as it does now.
    rig.until(lambda: rig.play(20, 0.01) and len(heard) > 1, 20.0, 'a mean')
    assert heard[1].header.frame_id == 'base_footprint'
    deviation = wrench(heard[1]) - rig.robot.total_wrench(rig.contacts)
    assert np.abs(deviation[:3]).max() < 1.0 and np.abs(deviation[3:]).max() < 0.5
    rig.joint_speed = 0.5
    rig.play(30, 0.01)
    heard.clear()
    rig.play(100, 0.015)  # longer than a mean takes
    assert not heard
    rig.peer.destroy_subscription(subscription)


def test_a_sole_that_is_no_link_gets_a_frame_of_its_own(own_rig, tmp_path):
    """The same sole, given as a place on the ankle instead of as a link."""
    config = yaml.safe_load(YAML.read_text())
    config['feet']['left'].update(
        sole='l_ankle', sole_origin=[0.02, 0.005, -0.08], sole_rpy=[0.05, -0.1, 0.3])
    (tmp_path / 'robot.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
    rig, heard = own_rig(robot_file=str(tmp_path / 'robot.yaml')), []
    rig.peer.create_subscription(TFMessage, '/tf_static', heard.append, LATCHED)
    rig.contacts = rig.robot.standing(0)
    rig.play(5)
    assert_forces(rig)
    assert rig.got['left/wrench'][-1].header.frame_id == 'left_sole_frame'
    rig.until(lambda: heard)
    (transform,) = heard[-1].transforms
    assert (transform.header.frame_id, transform.child_frame_id) == ('l_ankle', 'left_sole_frame')
    np.testing.assert_allclose(vector(transform.transform.translation), [0.02, 0.005, -0.08])


def test_the_low_pass_can_be_changed_at_run_time(rig):
    rig.node.set_parameters([Parameter('low_pass_cutoff', value=1.0)])
    rig.play(3)
    rig.contacts = {}
    rig.play(3)
    assert wrench(rig.got['wrench'][-1])[2] > 50.0  # still on its way down from 112 N
    rig.node.set_parameters([Parameter('low_pass_cutoff', value=0.0)])
    rig.play(3)
    np.testing.assert_allclose(wrench(rig.got['wrench'][-1]), np.zeros(6), atol=1e-9)


# -- tare


def hang(rig, noise=0.2):
    """Lift the robot, with sensors that are off."""
    rig.contacts, rig.offsets, rig.noise = {}, OFFSETS, noise
    rig.play(60)


def test_tare_finds_the_offsets_and_untare_forgets_them(rig):
    hang(rig)
    answer = rig.call('tare')
    assert answer.success, answer.message
    for name in SENSORS:
        assert f"'{name}': offset (" in answer.message
    assert 'mean of 50 readings' in answer.message and 'offsets_file' in answer.message
    rig.noise, rig.contacts = 0.0, rig.robot.standing(0)
    rig.play(5)
    assert_forces(rig, atol=0.5)
    assert not np.allclose(OFFSETS['left_toe'], 0.0, atol=1.0)
    assert rig.call('untare').success
    rig.play(5)
    off = wrench(rig.got['right/wrench'][-1]) - rig.robot.foot_wrench('right', rig.contacts)
    assert np.linalg.norm(off[:3]) == pytest.approx(np.linalg.norm(OFFSETS['right_foot'][:3]))


def test_one_sensor_is_tared_alone(rig):
    hang(rig, noise=0.0)
    answer = rig.call('right_foot/tare')
    assert answer.success and "'right_foot'" in answer.message
    assert 'left_toe' not in answer.message
    rig.clear()
    rig.play(3)
    np.testing.assert_allclose(wrench(rig.got['right/wrench'][-1]), np.zeros(6), atol=1e-9)
    assert np.linalg.norm(wrench(rig.got['left/wrench'][-1])) > 1.0


def test_one_sensor_is_untared_alone(own_rig, tmp_path):
    path = tmp_path / 'offsets.yaml'
    rig = own_rig(offsets_file=str(path))
    hang(rig, noise=0.0)
    assert rig.call('tare').success
    answer = rig.call('right_foot/untare')
    assert answer.success and "'right_foot'" in answer.message
    assert 'left_toe' not in answer.message
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
def test_tare_is_refused_and_says_what_to_do(rig, change, message):
    hang(rig)
    if change.get('contacts'):
        change = {'contacts': rig.robot.standing(0)}
    for name, value in change.items():
        setattr(rig, name, value)
    rig.play(160 if 'silent' in change else 60)
    answer = rig.call('tare')
    assert not answer.success and message in answer.message
    assert all(not np.any(c.offset) for c in rig.node.aggregation.channels)


def test_late_joiners_read_the_offsets(rig):
    hang(rig, noise=0.0)
    rig.call('tare')
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
    answer = first.call('tare')
    assert answer.success and f'saved to {path}' in answer.message
    first.node.destroy_node()
    second = own_rig(offsets_file=path)
    second.offsets, second.contacts = OFFSETS, second.robot.standing(0)
    second.play(5)
    assert_forces(second)
    assert second.call('untare').success
    assert yaml.safe_load(Path(path).read_text())['sensors'] == {}


def test_offsets_that_cannot_be_kept_are_said_so(own_rig, tmp_path):
    (tmp_path / 'file').write_text('')
    rig = own_rig(offsets_file=str(tmp_path / 'file' / 'offsets.yaml'))
    hang(rig)
    answer = rig.call('tare')
    assert not answer.success and 'in use until this node ends, but' in answer.message


def test_offsets_of_another_robot_are_refused_at_start(tmp_path):
    save_offsets(tmp_path / 'o.yaml', 'talos', {'left_toe': SensorOffset('l_toe', 1.0)})
    with pytest.raises(ConfigurationError, match="of robot 'talos', not of 'wrench_robot'"):
        make_node(offsets_file=str(tmp_path / 'o.yaml'))


# -- bad input


def test_a_dead_sensor_stops_the_total_and_is_named(rig):
    rig.silent = {'left_heel'}
    rig.play(3)
    rig.clear()
    level, message = rig.health('total wrench')
    assert level == DiagnosticStatus.ERROR
    assert "no readings of 'left_heel' (" in message and '/left_heel/wrench)' in message
    assert not rig.got['wrench'] and not rig.got['left/wrench'] and not rig.got['line/point']
    assert rig.got['right/wrench']
    rig.silent = set()
    rig.play(5)
    assert_forces(rig)


@pytest.mark.parametrize('spoil, reason', [
    ({'values': [1.0, 2.0, np.nan, 0.0, 0.0, 0.0]}, 'wrench.force.z = nan'),
    ({'values': [1.0, 2.0, 3.0, 0.0, np.inf, 0.0]}, 'wrench.torque.y = inf'),
    ({'values': [1.0, 2.0, 3.0, 1e150, 0.0, 0.0]}, 'wrench.torque.x = 1e+150 cannot be true'),
    ({'values': [1.0, 2.0, 1e6, 0.0, 0.0, 0.0]}, 'wrench.force.z = 1e+06 cannot be true'),
    ({'frame': 'l_sole'}, "its frame_id is 'l_sole'; valid: 'r_ft'"),
])
def test_a_bad_reading_is_refused(rig, spoil, reason):
    rig.silent = {'right_foot'}
    rig.play(2)
    rig.clear()
    refused = sum(rig.node.sensors[2].refused.values())
    for _ in range(5):
        rig.publish_wrench('right_foot', rig.play(1), **spoil)
    rig.until(lambda: sum(rig.node.sensors[2].refused.values()) == refused + 5)
    rig.flush()
    assert not rig.got['right/wrench'] and not rig.got['wrench'] and rig.got['left/wrench']
    assert reason in rig.node.sensors[2].last_error
    rig.silent = set()
    rig.play(5)
    assert_forces(rig)


def test_a_stamp_going_backward_is_refused(rig):
    rig.play(3)
    rig.clear()
    old = (rig.peer.get_clock().now() - Duration(seconds=0.3)).to_msg()
    rig.publish_wrench('right_foot', old)
    rig.until(lambda: rig.node.sensors[2].refused.get('stamp going backward'))
    rig.flush()
    assert not rig.got['right/wrench']


def test_missing_joints_stop_everything_and_are_named(own_rig):
    robot = Robot.somewhere(0)
    rig = own_rig(robot)
    robot.joint_names = ['x' if name == 'l_hip' else name for name in robot.joint_names]
    rig.contacts, rig.joints_usable = robot.standing(0), False
    time.sleep(0.2)
    rig.play(1)
    rig.clear()
    rig.play(40, period=0.02)
    assert not any(rig.got[topic] for topic in ('left/wrench', 'right/wrench', 'wrench'))
    assert 'l_hip' in rig.node.joints.last_error
    assert 'joint_states' in rig.health('total wrench')[1]
    assert not rig.call('tare').success


def test_readings_at_different_instants_make_no_total(own_rig):
    """The right foot's clock is 3 s late: no half a period holds all readings."""
    rig = own_rig(state_timeout=5.0, sensor_timeout=5.0, max_stamp_age=5.0)
    rig.contacts, rig.late = rig.robot.standing(0), {'right_foot': 3.0}
    rig.play(3)
    rig.clear()
    level, message = rig.health('total wrench')
    assert level == DiagnosticStatus.ERROR and 'never read at the same instant' in message
    assert not rig.got['wrench'] and rig.got['left/wrench'] and rig.got['right/wrench']
    rig.late = {}
    rig.play(5)
    rig.clear()
    rig.play(10)
    assert len(rig.got['wrench']) == 10


def test_nonsense_parameters_are_refused():
    with pytest.raises(ConfigurationError, match='contact_engage'):
        make_node(contact_engage=2.0)
    with pytest.raises(ConfigurationError, match='release < engage'):
        make_node(contact_engage=0.05, contact_release=0.08)


def test_a_robot_without_sensors_is_refused(tmp_path):
    config = yaml.safe_load(YAML.read_text())
    for key in ('wrench_sensors', 'hands'):
        del config[key]
    for foot in config['feet'].values():
        del foot['wrench_sensors']
    (tmp_path / 'bare.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
    with pytest.raises(ConfigurationError, match='no wrench sensors'):
        make_node(robot=str(tmp_path / 'bare.yaml'))


def run_node(*arguments):
    return subprocess.Popen(
        [sys.executable, '-m', 'biped_com_ros.nodes.wrench_aggregator.node', '--ros-args',
         *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=Path(__file__).resolve().parents[2], env=dict(os.environ))


def test_an_unknown_key_ends_the_process_with_one_line(tmp_path):
    (tmp_path / 'bad.yaml').write_text(YAML.read_text().replace('wrench_sensors:\n', 'wrenchs:\n'))
    process = run_node('-p', f'robot:={tmp_path / "bad.yaml"}')
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "unknown key 'wrenchs'" in output and "did you mean 'wrench_sensors'?" in output
    assert 'Traceback' not in output


def test_the_process_ends_cleanly_on_interrupt():
    process = run_node('-r', '__ns:=/alone', '--params-file', str(CONFIG),
                       '-p', f'robot:={YAML}', '-p', f'urdf:={URDF}')
    watcher = Node('watcher')
    client = watcher.create_client(Trigger, '/alone/wrench_aggregator/tare')
    assert client.wait_for_service(20.0)
    future = client.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(watcher, future, timeout_sec=10.0)
    assert 'not tared' in future.result().message
    watcher.destroy_node()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=5)
    assert process.returncode == 0 and 'Traceback' not in output, output


def test_the_configuration_file_says_what_the_code_does():
    values = yaml.safe_load(CONFIG.read_text())['/**/wrench_aggregator']['ros__parameters']
    assert values == dataclasses.asdict(WrenchAggregatorParameters())
