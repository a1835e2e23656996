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
"""A robot whose hands have wrenches, over DDS: ZMP and support with what they hold."""

import dataclasses

from biped_com_ros.core.model.config import robot_file
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseWithCovarianceStamped
import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support.messages import float_matrix
from support.monitored_robot import MonitoredRobot, record, shifted, vectors
from visualization_msgs.msg import Marker
import yaml

LIFT = 4.0  # N, at a robot of 35 N


@pytest.fixture(scope='module')
def standing():
    return record(0.3)


@pytest.fixture
def robot(tmp_path):
    """Return a maker of nodes for the biped; its left hand has a sensor, or is virtual."""
    config = yaml.safe_load(robot_file('biped').read_text())
    made = []

    def make(**hand):
        if hand.get('source') != 'virtual':
            config['wrench_sensors']['left_wrist'] = {
                'frame': 'l_gripper', 'topic': 'left_hand/wrench'}
            hand['wrench_sensors'] = ['left_wrist']
        config['hands']['left'].update(hand)
        path = tmp_path / 'handy.yaml'
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        made.append(MonitoredRobot(robot=str(path)))
        return made[-1]
    yield make
    for rig in made:
        rig.close()


def touching(rig, samples, force_in_world):
    """Add a force on the left hand; the feet keep what they carry. Return where the hand is."""
    hand = rig.node.model.frames(['l_gripper'])
    added, placed = [], []
    for s in samples:
        state = rig.node.model.state(s.positions, s.velocities)
        in_base = state.placements_in_base(hand)[0]
        R_world_hand = s.base.rotation @ in_base[:3].T
        force_in_hand = R_world_hand.T @ force_in_world
        placed.append(s.base.apply(in_base[3]))
        added.append(dataclasses.replace(
            s, wrenches=np.vstack((s.wrenches, (*force_in_hand, 0.0, 0.0, 0.0)))))
    return added, np.array(placed)


ORDER = ('joints', 'base', 'left', 'right', 'hand')


def play(rig, samples, before=lambda s: None):
    """Play with the hand's wrench as one more message of each instant."""
    for s in samples:
        before(s)
        send = rig.senders(s, frames=('l_sole', 'r_sole', 'l_gripper'))
        for name in ORDER:
            send[name]()
            rig.spin(0.0015)
    rig.spin(0.2)


def corners(rig, topic='support_polygon'):
    return np.array([[p.x, p.y] for p in rig.got[topic][-1].polygon.points])


def test_a_hand_that_is_pushed_up_shifts_the_zmp_and_extends_the_support(robot, standing):
    _, samples = standing
    rig = robot()
    free, _ = touching(rig, samples, (0.0, 0.0, 0.0))
    play(rig, free)
    zmp, alone = vectors(rig.got['zmp'], 'point')[-1], corners(rig)
    leaning, hands = touching(rig, shifted(samples, 1.0), (0.0, 0.0, LIFT))
    play(rig, leaning)
    moved, extended = vectors(rig.got['zmp'], 'point')[-1], corners(rig)
    weight = samples[-1].report.wrench[2]
    expected = (weight * zmp + LIFT * hands[-1]) / (weight + LIFT)
    np.testing.assert_allclose(moved[:2], expected[:2], atol=1e-4)
    outward = hands[-1][:2] - zmp[:2]
    outward /= np.linalg.norm(outward)
    # The hand may carry 30 % of the weight: that far on the way to it, from the nearest corners.
    assert (extended @ outward).max() > (alone @ outward).max() + 0.01
    assert (extended @ -outward).max() < (alone @ -outward).max() + 0.01
    assert rig.latched['support_phase'][-1].data == 'double'
    margin, com_margin = rig.got['margin'][-1].data, rig.got['com_margin'][-1].data
    assert 0.0 < margin < 0.1 and 0.0 < com_margin < 0.1
    rig.got['support_polygon'].clear()
    play(rig, [dataclasses.replace(s, ns=s.ns + 2_000_000_000) for s in free])
    np.testing.assert_allclose(corners(rig), alone, atol=1e-6)


def test_a_grip_extends_the_support_to_both_sides_and_is_named(robot, standing):
    _, samples = standing
    rig = robot(contact='grip')
    free, _ = touching(rig, samples, (0.0, 0.0, 0.0))
    play(rig, free)
    alone = corners(rig, 'com_region')
    holding, _ = touching(rig, shifted(samples, 1.0), (LIFT, 0.0, 0.0))
    play(rig, holding)
    region = corners(rig, 'com_region')
    for direction in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        assert (region @ direction).max() > (alone @ direction).max() + 0.02
    rig.node.diagnostics.publish()
    rig.spin(0.2)
    level, message = rig.health['support']
    assert level == DiagnosticStatus.OK and 'hands left' in message


def test_a_hand_that_touches_its_force_and_the_region_of_the_com_are_drawn(robot, standing):
    _, samples = standing
    rig = robot()
    free, _ = touching(rig, samples, (0.0, 0.0, 0.0))
    play(rig, free)
    of_a_hand = [('com_region', 0), ('hand', 0), ('hand_force', 0)]
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    assert [shown[key].action for key in of_a_hand] == [Marker.DELETE] * 3
    force = np.array((1.0, -2.0, LIFT))
    leaning, hands = touching(rig, shifted(samples, 1.0), force)
    play(rig, leaning)
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    assert [shown[key].action for key in of_a_hand] == [Marker.ADD] * 3
    ball = shown['hand', 0].pose.position
    np.testing.assert_allclose((ball.x, ball.y, ball.z), hands[-1], atol=1e-4)
    tail, head = ((p.x, p.y, p.z) for p in shown['hand_force', 0].points)
    np.testing.assert_allclose(tail, hands[-1], atol=1e-4)
    of_foot = np.subtract(*[(p.x, p.y, p.z) for p in shown['force', 1].points][::-1])
    scale = of_foot[2] / samples[-1].report.forces_in_world[1, 2]
    np.testing.assert_allclose(np.subtract(head, tail), scale * force, rtol=0.01)
    outline = {(round(p.x, 5), round(p.y, 5)) for p in shown['com_region', 0].points}
    region = {tuple(point) for point in np.round(corners(rig, 'com_region'), 5)}
    assert len(region) > 4 and outline == region


def test_a_hand_whose_sensor_is_silent_holds_nothing_and_nothing_waits_for_it(robot, standing):
    _, samples = standing
    rig = robot()
    rig.play(samples)
    rig.play(shifted(samples, 1.0))
    assert len(rig.got['zmp']) > len(samples)
    np.testing.assert_array_equal(
        vectors(rig.got['zmp'], 'point')[-1], samples[-1].report.zmp_in_world)


def test_a_virtual_hand_that_touches_makes_the_zmp_uncertain(robot, standing):
    """Its force up alone is uncertain: the ZMP is along the line to the hand."""
    _, samples = standing
    rig = robot(source='virtual')
    covariances = rig.publisher(
        Float64MultiArray, f'{rig.space}/wrench_aggregator/hand_covariance')
    uncertain = rig.collect(
        PoseWithCovarianceStamped, f'{rig.space}/zmp_monitor/zmp_with_covariance')
    rig.spin(0.5)
    free, _ = touching(rig, samples, (0.0, 0.0, 0.0))
    leaning, hands = touching(rig, shifted(samples, 1.0), (0.0, 0.0, LIFT))

    def send(s):
        up = rig.node.model.state(s.positions, s.velocities).placements_in_base(
            rig.node.model.frames(['l_gripper']))[0, :3].dot(s.base.rotation[2])
        covariances.publish(float_matrix(s.ns, 4.0 * np.outer(up, up)))
    play(rig, free, send)
    assert not uncertain
    play(rig, leaning, send)
    rig.until(lambda: uncertain)
    zmp = vectors(rig.got['zmp'], 'point')[-1]
    lever = (hands[-1] - zmp)[:2] / (samples[-1].report.wrench[2] + LIFT)
    stated = np.array(uncertain[-1].pose.covariance).reshape(6, 6)[:2, :2]
    np.testing.assert_allclose(stated, 4.0 * np.outer(lever, lever), rtol=0.05, atol=1e-8)
    assert np.trace(stated) > 1e-6
