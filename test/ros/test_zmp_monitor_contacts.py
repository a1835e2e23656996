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
"""Hands, and feet without sensors, in `zmp_monitor`: ZMP, support, and how sure they are."""

from dataclasses import replace

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseWithCovarianceStamped
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from support.messages import float_matrix, joint_state, nanoseconds, stamp_of, vector
from support.monitored_robot import MonitoredRobot, record, shifted
from support.plant_rig import biped_file
from visualization_msgs.msg import Marker

LIFT = 4.0  # N, at a robot of 35 N


@pytest.fixture(scope='module')
def standing():
    return record(0.12)[1]


@pytest.fixture
def make(tmp_path, closing):
    """Return a function that makes the biped with such wrenches, see `biped_file`."""
    def prepare(covariance=None, **variant):
        rig = closing(MonitoredRobot(robot=biped_file(tmp_path, **variant)))
        if covariance:
            rig.covariance = rig.publisher(
                Float64MultiArray, f'wrench_aggregator/{covariance}_covariance')
            rig.uncertain = rig.collect(
                PoseWithCovarianceStamped, 'zmp_monitor/zmp_with_covariance')
            rig.spin(0.2)
        return rig
    return prepare


@pytest.fixture
def robot(make):
    """Return a function that makes the biped with a sensor in its left hand."""
    def make_rig(**hand):
        def add_sensor(config):
            config['wrench_sensors']['left_wrist'] = {
                'frame': 'l_gripper', 'topic': 'left_hand/wrench'}
        return make(hand={'wrench_sensors': ['left_wrist'], **hand}, edit=add_sensor)
    return make_rig


def touching(rig, samples, force_in_world):
    """Add a force on the left hand; the feet keep what they carry. Return where the hand is."""
    hand = rig.node.model.frames(['l_gripper'])
    added, placed = [], []
    for s in samples:
        in_base = rig.node.model.state(s.positions, s.velocities).placements_in_base(hand)[0]
        force_in_hand = in_base[:3] @ s.base.rotation.T @ force_in_world
        placed.append(s.base.apply(in_base[3]))
        added.append(replace(s, wrenches=np.vstack((s.wrenches, (*force_in_hand, 0, 0, 0)))))
    return added, np.array(placed)


def play_touching(rig, samples, force_in_world, after=0.0, **options):
    """Play with such a force on the hand; return where the hand is at the end."""
    touched, hands = touching(rig, shifted(samples, after), force_in_world)
    rig.play(touched, **options)
    return hands[-1]


def zmp_of(rig):
    return vector(rig.got['zmp'][-1].point)


def test_a_hand_that_is_pushed_up_shifts_the_zmp_and_extends_the_support(robot, standing):
    rig = robot()
    play_touching(rig, standing, (0.0, 0.0, 0.0))
    zmp, alone = zmp_of(rig), rig.corners()[:, :2]
    hand = play_touching(rig, standing, (0.0, 0.0, LIFT), 1.0)
    extended = rig.corners()[:, :2]
    weight = standing[-1].report.wrench[2]
    expected = (weight * zmp + LIFT * hand) / (weight + LIFT)
    np.testing.assert_allclose(zmp_of(rig)[:2], expected[:2], atol=1e-4)
    outward = (hand - zmp)[:2] / np.linalg.norm((hand - zmp)[:2])
    # The hand may carry 30 % of the weight: that far on the way to it, from the nearest corners.
    assert (extended @ outward).max() > (alone @ outward).max() + 0.01
    assert (extended @ -outward).max() < (alone @ -outward).max() + 0.01
    assert rig.latched['support_phase'][-1].data == 'double'
    for margin in ('margin', 'com_margin'):
        assert 0.0 < rig.got[margin][-1].data < 0.1
    play_touching(rig, standing, (0.0, 0.0, 0.0), 2.0)
    np.testing.assert_allclose(rig.corners()[:, :2], alone, atol=1e-6)


def test_a_grip_extends_the_support_to_both_sides_and_is_named(robot, standing):
    rig = robot(contact='grip')
    play_touching(rig, standing, (0.0, 0.0, 0.0))
    alone = rig.corners('com_region')
    play_touching(rig, standing, (LIFT, 0.0, 0.0), 1.0)
    region = rig.corners('com_region')
    for direction in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        assert (region[:, :2] @ direction).max() > (alone[:, :2] @ direction).max() + 0.02
    status = rig.node.diagnostics.status('support')
    assert status.level == DiagnosticStatus.OK and 'hands left' in status.message


def test_a_hand_that_touches_its_force_and_the_region_of_the_com_are_drawn(robot, standing):
    rig, force = robot(), np.array((1.0, -2.0, LIFT))
    play_touching(rig, standing, (0.0, 0.0, 0.0))
    of_a_hand = [('com_region', 0), ('hand', 0), ('hand_force', 0)]
    assert [rig.markers()[key].action for key in of_a_hand] == [Marker.DELETE] * 3
    hand, shown = play_touching(rig, standing, force, 1.0), rig.markers()
    assert [shown[key].action for key in of_a_hand] == [Marker.ADD] * 3
    tail, head = map(vector, shown['hand_force', 0].points)
    for found in (vector(shown['hand', 0].pose.position), tail):
        np.testing.assert_allclose(found, hand, atol=1e-4)
    foot, of_foot = map(vector, shown['force', 1].points)
    scale = (of_foot - foot)[2] / standing[-1].report.forces_in_world[1, 2]
    np.testing.assert_allclose(head - tail, scale * force, rtol=0.01)
    outline = {(round(p.x, 5), round(p.y, 5)) for p in shown['com_region', 0].points}
    region = {tuple(point) for point in np.round(rig.corners('com_region')[:, :2], 5)}
    assert len(region) > 4 and outline == region


def test_a_hand_whose_sensor_is_silent_holds_nothing_and_nothing_waits_for_it(robot, standing):
    rig = robot()
    rig.play(standing)
    rig.play(shifted(standing, 1.0))
    assert len(rig.got['zmp']) > len(standing)
    np.testing.assert_array_equal(zmp_of(rig), standing[-1].report.zmp_in_world)


def test_a_virtual_hand_that_touches_makes_the_zmp_uncertain(make, standing):
    """Its force up alone is uncertain: the ZMP is along the line to the hand."""
    rig = make('hand', hand={'source': 'virtual'})

    def send(s):
        up = rig.node.model.state(s.positions, s.velocities).placements_in_base(
            rig.node.model.frames(['l_gripper']))[0, :3].dot(s.base.rotation[2])
        rig.covariance.publish(float_matrix(s.ns, 4.0 * np.outer(up, up)))
    play_touching(rig, standing, (0.0, 0.0, 0.0), before=send)
    assert not rig.uncertain
    hand = play_touching(rig, standing, (0.0, 0.0, LIFT), 1.0, before=send)
    lever = (hand - zmp_of(rig))[:2] / (standing[-1].report.wrench[2] + LIFT)
    stated = np.array(rig.uncertain[-1].pose.covariance).reshape(6, 6)[:2, :2]
    np.testing.assert_allclose(stated, 4.0 * np.outer(lever, lever), rtol=0.05, atol=1e-8)
    assert np.trace(stated) > 1e-6


def test_contacts_of_virtual_feet_are_those_of_the_aggregator(make, standing):
    """Both feet carry half of the weight: forces alone never lift one, and decide at first."""
    rig, samples = make('wrench', feet='virtual'), standing[:50]
    rig.play(shifted(standing, -1.0))
    assert rig.latched['support_phase'][-1].data == 'double'
    publisher = rig.publisher(JointState, 'wrench_aggregator/contact_probabilities')
    for i, (left, right, phase, corners) in enumerate((
            (0.99, 0.99, 'double', 6),
            (0.45, 0.05, 'single left', 4),  # the left one stays: hysteresis
            (0.3, 0.95, 'single right', 4))):
        def send(s, feet=(right, left)):  # they are named in another order
            rig.covariance.publish(float_matrix(s.ns, np.eye(12)))
            publisher.publish(joint_state(stamp_of(s.ns), ['right', 'left'], feet))
        rig.play(shifted(samples, 1.0 + i), before=send)
        assert rig.latched['support_phase'][-1].data == phase
        assert len(rig.corners()) == corners


def test_the_zmp_has_the_covariance_of_the_wrenches(make, standing):
    """The normal force of the left foot alone is uncertain: the ZMP is along the line to it."""
    rig = make('wrench', feet='virtual')
    rig.play(standing, before=lambda s: rig.covariance.publish(
        float_matrix(s.ns, np.diag([0.0, 0.0, 4.0, *[0.0] * 9]))))
    found = rig.uncertain[-1]
    report = next(s.report for s in standing if s.ns == nanoseconds(found.header.stamp))
    zmp = vector(found.pose.pose.position)
    np.testing.assert_allclose(zmp, report.zmp_in_world, atol=1e-4)
    lever = (report.located.state.sole_placements_in_world[0, 3] - zmp) / report.wrench[2]
    stated = np.array(found.pose.covariance).reshape(6, 6)
    np.testing.assert_allclose(stated[:2, :2], 4.0 * np.outer(lever, lever)[:2, :2], rtol=0.05,
                               atol=1e-7)
    assert stated[1, 1] > 5e-6 and not stated[3:].any()
