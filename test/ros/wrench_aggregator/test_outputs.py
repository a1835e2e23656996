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
What the node publishes over DDS: readings of known forces go in, these forces have to come out.

The forces, the weight of the feet, offsets and reversed signs come from ``wrench_oracle``, which
knows nothing of the package.
"""

import dataclasses

from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from rclpy.parameter import Parameter
from std_msgs.msg import Bool
from support.messages import nanoseconds, vector, wrench
from support.wrench_oracle import TiltedRobot, YAML
from tf2_msgs.msg import TFMessage
import yaml


@pytest.mark.parametrize('seed', [1, 2])
def test_known_forces_come_out(rig, seed):
    rig.robot = TiltedRobot.somewhere(seed)
    rig.contacts = rig.robot.standing(seed)
    rig.play(5)
    rig.assert_forces()
    for foot, sole in (('left', 'l_sole'), ('right', 'r_sole')):
        assert rig.got[f'{foot}/wrench'][-1].header.frame_id == sole
        assert rig.got[f'{foot}/cop'][-1].header.frame_id == sole
        _, _, fz, mx, my, _ = rig.robot.foot_wrench(foot, rig.contacts)
        np.testing.assert_allclose(
            vector(rig.got[f'{foot}/cop'][-1].point), [-my / fz, mx / fz, 0.0], atol=1e-12)
    assert rig.got['left_hand/wrench'][-1].header.frame_id == 'finger'
    for topic in ('wrench', 'line/point', 'line/direction'):
        assert rig.got[topic][-1].header.frame_id == 'base_footprint'
    com = rig.robot.footprint().actInv(rig.robot.com)
    point = vector(rig.got['line/point'][-1].point)
    direction = vector(rig.got['line/direction'][-1].vector)
    assert (point[2], direction[2]) == (0.0, 1.0)
    np.testing.assert_allclose(point + com[2] * direction, com, atol=1e-9)


def test_stamps_are_those_of_the_readings_and_each_instant_comes_once(rig):
    rig.play(20)
    stamps = [m.header.stamp for m in rig.got['wrench']]
    assert len(stamps) == 20 and stamps == sorted(stamps, key=nanoseconds)
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
    rig.clear()
    rig.play(60)
    assert len(rig.got['left/contact']) in (2, 3)  # every 0.1 s, not with every reading
    late = []
    subscription = rig.peer.create_subscription(
        Bool, 'wrench_aggregator/left/contact', late.append, LATCHED)
    rig.until(lambda: late)
    assert late[0].data
    rig.peer.destroy_subscription(subscription)


def test_contacts_of_all_feet_carry_the_stamp_of_their_instant(rig):
    rig.play(40)
    contacts = rig.got['contacts']
    assert contacts and len(contacts) < 20  # not with every reading
    assert list(contacts[-1].name) == ['left', 'right']
    assert list(contacts[-1].position) == [1.0, 1.0]
    np.testing.assert_allclose(
        contacts[-1].effort, [rig.robot.foot_wrench(foot, rig.contacts)[2]
                              for foot in ('left', 'right')], atol=1e-9)
    rig.clear()
    rig.contacts = {'right_foot': rig.contacts['right_foot']}
    rig.play(10)
    stamps = [m.header.stamp for m in rig.got['wrench']]
    lifted = next(m for m in rig.got['contacts'] if list(m.position) == [0.0, 1.0])
    since_ns = nanoseconds(lifted.header.stamp) - nanoseconds(stamps[0])
    assert lifted.header.stamp in stamps
    # As soon as the force has been gone for the dwell time.
    assert since_ns >= 1e9 * ContactThresholds().release_dwell > 0.0
    assert stamps.index(lifted.header.stamp) <= 3
    assert lifted.effort[0] == pytest.approx(0.0, abs=1e-9)


def test_contacts_need_all_feet_and_no_hand(rig):
    rig.silent = {'left_hand'}
    rig.play(60)
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
    assert 'negate wrench_sensors.right_foot.scale in the YAML of robot wrench_robot' in message


def test_the_mean_of_the_total_is_published_while_the_robot_rests(rig):
    rig.noise, received = 1.0, []
    subscription = rig.peer.create_subscription(
        WrenchStamped, 'wrench_aggregator/resting_wrench', received.append, 10)
    rig.until(lambda: rig.node.count_subscribers(subscription.topic_name))
    # The first ones may have begun before the robot stood as it does now.
    rig.until(lambda: rig.play(20, 0.01) and len(received) > 2, what='a mean')
    assert received[2].header.frame_id == 'base_footprint'
    deviation = wrench(received[2]) - rig.robot.total_wrench(rig.contacts)
    assert np.abs(deviation[:3]).max() < 1.0 and np.abs(deviation[3:]).max() < 0.5
    rig.joint_speed = 0.5
    rig.play(30, 0.01)
    received.clear()
    rig.play(100, 0.015)  # longer than a mean takes
    assert not received
    rig.peer.destroy_subscription(subscription)


def test_a_sole_that_is_no_link_gets_a_frame_of_its_own(own_rig, tmp_path):
    """The same sole, given as a place on the ankle instead of as a link."""
    config = yaml.safe_load(YAML.read_text())
    config['feet']['left'].update(
        sole='l_ankle', sole_origin=[0.02, 0.005, -0.08], sole_rpy=[0.05, -0.1, 0.3])
    (tmp_path / 'robot.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
    rig, received = own_rig(robot_file=str(tmp_path / 'robot.yaml')), []
    rig.peer.create_subscription(TFMessage, '/tf_static', received.append, LATCHED)
    rig.contacts = rig.robot.standing(0)
    rig.play(5)
    rig.assert_forces()
    assert rig.got['left/wrench'][-1].header.frame_id == 'left_sole_frame'
    rig.until(lambda: received)
    (transform,) = received[-1].transforms
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
