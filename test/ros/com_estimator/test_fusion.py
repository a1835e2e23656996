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
"""com_estimator's fused CoM over DDS: a swaying robot that carries what its URDF does not know."""

from examples.com_filter import HIDDEN
from geometry_msgs.msg import Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from support.com_estimator_rig import DT
from support.messages import nanoseconds, vector
from support.recorded_robot import record

OUTPUTS = {'com_fused': Odometry, 'com_bias': Vector3Stamped, 'external_force': WrenchStamped}


@pytest.fixture(scope='module')
def recording():
    """Return the model that the node has, and samples of the true robot."""
    def sway(t):
        ramp = min(t, 1.0)
        return (0.012 * ramp * np.sin(4.4 * t), 0.02 * ramp * np.sin(2.0 * np.pi * t), 0.0)
    return record(3.6, sway, since=0.6, dt=DT, errors=HIDDEN)


def test_the_fused_com_is_right_where_the_kinematic_one_is_not(recording, recorded):
    model, samples = recording
    rig = recorded(OUTPUTS)
    rig.play(samples)
    fused = rig.got['com_fused']
    assert len(fused) > 0.9 * len(samples)
    last = fused[-1]
    truth = rig.played[nanoseconds(last.header.stamp)].true_com
    kinematic, found = vector(rig.got['com'][-1].point), vector(last.pose.pose.position)
    assert np.linalg.norm((kinematic - truth)[:2]) > 4e-3
    assert np.linalg.norm((found - truth)[:2]) < 1e-3
    bias = vector(rig.got['com_bias'][-1].vector)
    np.testing.assert_allclose(bias[:2], (kinematic - truth)[:2], atol=1e-3)
    assert (last.header.frame_id, last.child_frame_id) == ('odom', 'com')
    covariance = np.reshape(last.pose.covariance, (6, 6))[:3, :3]
    assert (np.linalg.eigvalsh(covariance) > 0.0).all()
    assert np.sqrt(covariance[0, 0]) < 5e-3
    assert np.linalg.norm(vector(rig.got['external_force'][-1].wrench.force)) < 0.5
    assert rig.node.fusion.estimate.mass == pytest.approx(model.mass + 0.288, rel=0.02)


def test_what_is_not_finite_is_not_published(recording, recorded):
    _, samples = recording
    rig = recorded(OUTPUTS)
    rig.play(samples[:60])
    rig.node.fusion.estimate._x[:] = np.nan
    rig.got['com_fused'].clear()
    rig.play(samples[60:160])
    assert len(rig.got['com_fused']) > 50
    assert all(np.isfinite(vector(m.pose.pose.position)).all() for m in rig.got['com_fused'])


def test_sensors_that_measure_too_little_are_reported_and_not_used(recording, recorded):
    _, samples = recording
    rig = recorded(OUTPUTS)
    rig.play(samples[:400])
    before = rig.node.fusion.bias
    rig.play(samples[400:], sign=0.5)
    assert 'foot wrenches fit neither the masses nor a load' in rig.report('com_fused')
    np.testing.assert_allclose(rig.node.fusion.bias, before, atol=0.01)


def test_the_fusion_can_be_turned_off(recording, recorded):
    _, samples = recording
    rig = recorded({}, fused_com=False)
    rig.play(samples[:50])
    assert len(rig.got['com']) > 40 and rig.node.fusion is None
    assert not any(rig.peer.count_publishers(f'com_estimator/{name}') for name in OUTPUTS)
    assert not any(foot.get_subscription_count() for foot in rig.wrenches)
    assert rig.report('com_fused') == ''


def test_a_late_subscriber_gets_the_same_bits(recording, recorded):
    _, samples = recording
    received = []
    for early in (OUTPUTS, {}):
        rig = recorded(early)
        rig.play(samples[:150])
        for topic, kind in OUTPUTS.items():
            if early:
                rig.got[topic].clear()
            else:
                rig.got[topic] = rig.collect(kind, f'com_estimator/{topic}')
        rig.spin(0.2)
        rig.play(samples[150:220])
        received.append([[values(message) for message in rig.got[topic]] for topic, values in (
            ('com_fused', lambda m: (
                m.pose.pose.position, m.twist.twist.linear,
                m.pose.covariance.tolist(), m.twist.covariance.tolist())),
            ('com_bias', lambda m: m.vector), ('external_force', lambda m: m.wrench))])
    always, late = received
    assert late == always and {len(messages) for messages in late} == {70}


def test_without_foot_wrenches_it_reports_so_and_goes_on_by_kinematics(recording, recorded):
    _, samples = recording
    rig = recorded(OUTPUTS)
    rig.play(samples[:150], silent={'feet'})
    last = rig.got['com_fused'][-1]
    kinematic = next(com for com in rig.got['com'] if com.header.stamp == last.header.stamp)
    assert np.linalg.norm(vector(last.pose.pose.position) - vector(kinematic.point)) < 2e-3
    rig.play(samples[150:290], silent={'feet'})
    assert 'no foot wrenches: nothing received on' in rig.report('com_fused')


def test_a_lost_imu_stops_the_fusion_until_it_is_back(recording, recorded):
    _, samples = recording
    rig = recorded(OUTPUTS)
    rig.play(samples[:150])
    assert 'kinematics and foot wrenches' in rig.report('com_fused')
    assert rig.got['com_fused']
    rig.play(samples[150:300], silent={'imu'})
    assert f'stopped: nothing received on {rig.space}/imu' in rig.report('com_fused')
    rig.got['com_fused'].clear()
    rig.play(samples[300:320], silent={'imu'})
    assert not rig.got['com_fused']
    rig.play(samples[320:470])
    assert 'kinematics and foot wrenches' in rig.report('com_fused')
    last = vector(rig.got['com_fused'][-1].pose.pose.position)
    assert np.isfinite(last).all() and np.linalg.norm(last) < 1.0


def test_forces_of_the_wrong_sign_are_reported(recording, recorded):
    _, samples = recording
    rig = recorded(OUTPUTS)
    rig.play(samples[:300], sign=-1.0)
    report = rig.report('com_fused')
    assert 'no foot carries the robot' in report and 'wrench_sensors.<sensor>.scale' in report
    assert rig.got['com'] and not rig.got['com_fused'], 'nothing wrong is published'
