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
The whole, as a user starts it: simulator, estimators and demo, each a process, over DDS.

What the estimators publish is compared with the simulator's truth here, by code of its own.
"""

from __future__ import annotations

from collections import defaultdict
import os
from pathlib import Path
import pty
import re
import select
import signal
import threading
import time
import uuid

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from geometry_msgs.msg import PointStamped, WrenchStamped
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from scipy.spatial.transform import Rotation
from std_msgs.msg import Float64MultiArray
from support.demo_run import demo, LIMIT, MARK, run
from tf2_msgs.msg import TFMessage
import yaml

GRAVITY = 9.81
ERROR = re.compile(r'CoM off by [\d.]+ mm \(x ([-+][\d.]+), y ([-+][\d.]+), z ([-+][\d.]+)\)')
WEIGHT = re.compile(r'by the URDF: ([-+][\d.]+) %')


class TopicRecorder:
    """Keeps every message of some topics, undecoded, by topic."""

    TOPICS = {
        'com_estimator/com': PointStamped, 'simulator/truth/com': PointStamped,
        'simulator/truth/zmp': PointStamped, 'simulator/truth/contacts': Float64MultiArray,
        'wrench_aggregator/wrench': WrenchStamped, 'tf': TFMessage}

    def __init__(self):
        rclpy.init()
        self.node, self._executor = Node('recorder'), make_executor()
        self._raw = defaultdict(list)
        qos = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
        for topic, kind in self.TOPICS.items():
            self.node.create_subscription(
                kind, topic, self._raw[topic].append, qos, raw=True)
        self._executor.add_node(self.node)
        self._is_open = True
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self):
        while self._is_open:
            self._executor.spin_until_future_complete(Future(), 0.2)

    def close(self):
        self._is_open = False
        self._thread.join(5.0)
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown()

    def messages(self, topic):
        return [deserialize_message(raw, self.TOPICS[topic]) for raw in self._raw[topic]]

    def points(self, topic):
        """Return points by stamp, ns."""
        return {_ns(m.header.stamp): np.array([m.point.x, m.point.y, m.point.z])
                for m in self.messages(topic)}

    def wrenches(self):
        return {_ns(m.header.stamp): np.array([getattr(part, axis) for part in
                                               (m.wrench.force, m.wrench.torque)
                                               for axis in 'xyz'])
                for m in self.messages('wrench_aggregator/wrench')}

    def footprints(self):
        """Return (R, p) of base_footprint in odom by stamp, ns, from TF."""
        poses = defaultdict(dict)
        for message in self.messages('tf'):
            for t in message.transforms:
                q, p = t.transform.rotation, t.transform.translation
                poses[_ns(t.header.stamp)][t.header.frame_id, t.child_frame_id] = (
                    Rotation.from_quat([q.x, q.y, q.z, q.w]), np.array([p.x, p.y, p.z]))
        found = {}
        for stamp, tree in poses.items():
            if {('odom', 'base_link'), ('base_link', 'base_footprint')} <= tree.keys():
                R1, p1 = tree['odom', 'base_link']
                R2, p2 = tree['base_link', 'base_footprint']
                found[stamp] = (R1 * R2, p1 + R1.apply(p2))
        return found


def _ns(stamp):
    return stamp.sec * 10**9 + stamp.nanosec


@pytest.fixture
def recorder():
    recorder = TopicRecorder()
    yield recorder
    recorder.close()


def left_behind(mark):
    """Return the processes that carry the mark in their environment."""
    found = []
    for path in Path('/proc').glob('[0-9]*/environ'):
        try:
            if f'{MARK}={mark}'.encode() in path.read_bytes():
                found.append((path.parent / 'cmdline').read_text().replace('\0', ' '))
        except OSError:
            pass
    return found


def measured(recorder, settle=1.5):
    """Return, after the start has settled, arrays of what belongs to the same stamps."""
    com, truth = recorder.points('com_estimator/com'), recorder.points('simulator/truth/com')
    wrench, zmp = recorder.wrenches(), recorder.points('simulator/truth/zmp')
    footprints = recorder.footprints()
    begin = min(com) + settle * 1e9
    com_errors = np.array([com[s] - truth[s] for s in com if s in truth and s > begin])
    forces = np.array([w[2] for s, w in wrench.items() if s > begin])
    cop_errors = []
    for stamp in (s for s in wrench if s > begin and s in zmp and s in footprints):
        w, (R, p) = wrench[stamp], footprints[stamp]
        cop = p + R.apply([-w[4] / w[2], w[3] / w[2], 0.0])
        cop_errors.append(cop[:2] - zmp[stamp][:2])
    contacts = recorder.messages('simulator/truth/contacts')
    weights = np.array([sum(m.data) for m in contacts[len(contacts) // 2:]])
    return com_errors, forces, np.array(cop_errors), weights


@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize('robot', ['biped', 'talos'])
def test_standing_exact_robot_is_measured_right(robot, recorder):
    output = run(f'robot:={robot}', 'hidden:=none', 'chapters:=none', 'duration:=6.0')
    com_errors, forces, cop_errors, weights = measured(recorder)
    assert len(com_errors) > 300 and len(forces) > 300 and len(cop_errors) > 30
    weight = GRAVITY * RobotModel.load(robot).mass
    assert np.linalg.norm(com_errors, axis=1).max() < 0.5e-3
    assert forces.mean() == pytest.approx(weight, rel=1e-3)
    assert weights.mean() == pytest.approx(weight, rel=1e-3)
    assert np.linalg.norm(cop_errors.mean(axis=0)) < 0.5e-3
    assert 'the URDF describes this robot' in output


@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize('robot', ['biped', 'talos'])
def test_hidden_error_is_shown_as_it_is(robot, recorder):
    output = run(f'robot:={robot}', 'hidden:=masses', 'seed:=3', 'chapters:=none',
                 'duration:=6.0')
    com_errors, _, _, weights = measured(recorder)
    summary = output[output.index('Over '):]
    shown = 1e-3 * np.array([float(text) for text in ERROR.search(summary).groups()])
    error = com_errors.mean(axis=0)
    assert np.linalg.norm(error) > 1e-3, 'the error of this seed is too small for the test'
    np.testing.assert_allclose(shown, error, atol=5e-5)
    model = RobotModel.load(robot)
    weight = GRAVITY * model.mass
    below = GRAVITY * model.link_masses[links_below_sensors(model)].sum()
    share = (weights.mean() - GRAVITY * unseen_mass(model, seed=3) - below) / (
        weight - below) - 1.0
    assert abs(share) > 2e-3, 'the mass error of this seed is too small for the test'
    assert float(WEIGHT.search(summary).group(1)) == pytest.approx(100.0 * share, abs=0.1)
    assert 'calibrate it' in summary


def links_below_sensors(model):
    return np.concatenate([
        model.subtree_links(sensor.link or sensor.frame) for foot in model.config.feet.values()
        for sensor in map(model.config.wrench_sensors.get, foot.wrench_sensors)])


def unseen_mass(model, seed):
    """Return the hidden mass below the feet's sensors, which no sensor that is not tared feels."""
    values = yaml.safe_load((package_share() / 'config/hidden/masses.yaml').read_text())
    hidden = values['/**/simulator']['ros__parameters']
    plant = Plant(model.config, model.urdf, PlantOptions(
        seed=seed, com_sigma=hidden['hidden_com_sigma'],
        mass_sigma=hidden['hidden_mass_sigma']), link_names=model.link_names)
    errors = plant.link_masses - model.link_masses
    return errors[links_below_sensors(model)].sum()


@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize('robot', ['biped', 'talos'])
def test_moving_robot_stays_on_its_feet_and_is_followed(robot, recorder):
    output = run(f'robot:={robot}', 'hidden:=none', 'chapters:=measure',
                 'duration:=12.0')
    com_errors, _, _, _ = measured(recorder)
    truth = np.array(list(recorder.points('simulator/truth/com').values()))
    assert 'lifts its arms' in output
    assert np.ptp(truth[:, 1]) > 0.01, 'it did not sway'
    assert np.ptp(truth[:, 2]) < 0.2 * truth[:, 2].mean(), 'it fell'
    assert np.linalg.norm(com_errors, axis=1).max() < 3e-3


@pytest.mark.timeout(LIMIT + 20)
def test_interrupt_ends_everything_within_three_seconds():
    mark = uuid.uuid4().hex
    terminal, inside = pty.openpty()
    with demo(stdout=inside, mark=mark) as process:
        os.close(inside)
        text = _read_until(terminal, 'sways to the left')
        assert 'error of the CoM' in text and 'real masses differ' in text
        assert len(left_behind(mark)) >= 4
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = threading.Thread(target=_drain, args=(terminal,), daemon=True)
        rest.start()
        assert process.wait(10.0) == 0
        assert time.monotonic() - begun < 3.0
    assert left_behind(mark) == []


def _read_until(terminal, words):
    text, until = '', time.monotonic() + LIMIT
    while words not in text:
        assert time.monotonic() < until, text[-3000:]
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 65536).decode(errors='replace')
    return text


def _drain(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # the other side is closed
