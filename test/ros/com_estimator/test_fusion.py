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

from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.com_estimator.parameters import FusionParameters
from biped_com_ros.ros.node.parameters import settings_from
from biped_com_ros.sim.interface import PlantOptions
from examples.com_filter import HIDDEN
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import Imu, JointState
from support.messages import imu, joint_state, nanoseconds, parameters, vector, wrench_stamped
from support.ros_rig import NodeRig
from support.zmp_pipeline import Pipeline

SECONDS = 3.0


@pytest.fixture(scope='module')
def recording():
    """Return (ns, positions, velocities, quaternion, gyro, wrenches, true CoM) per instant."""
    pipeline = Pipeline('biped', PlantOptions(dt=0.004, tendons=False, errors=HIDDEN))

    def sway(t):
        ramp = min(t, 1.0)
        return (0.012 * ramp * np.sin(4.4 * t), 0.02 * ramp * np.sin(2.0 * np.pi * t), 0.0)
    rows = []
    for t, _, truth in pipeline.run(0.6 + SECONDS, sway):
        observation = pipeline.observation
        if t > 0.6:
            rows.append((10**9 + round(1e9 * observation.time), observation.joint_positions.copy(),
                         observation.joint_velocities.copy(),
                         observation.imu_quaternions[0].copy(),
                         observation.angular_velocities[0].copy(), pipeline.wrenches.copy(),
                         truth.com))
    return pipeline.model, rows


class EstimatorWithDrivers(NodeRig):
    """The node, the drivers of a robot, and a subscriber."""

    def __init__(self, **values):
        super().__init__(node=ComEstimator(
            namespace='/fusion', cli_args=['--ros-args', '-r', '/diagnostics:=diagnostics'],
            parameter_overrides=parameters(max_stamp_age=0.0, **values)))
        self.record_statuses('/fusion/diagnostics')
        self.joints = self.publisher(JointState, '/fusion/joint_states')
        self.imu = self.publisher(Imu, '/fusion/imu')
        self.feet = [self.peer.create_publisher(
            WrenchStamped, f'/fusion/wrench_aggregator/{foot}/wrench', 10)
            for foot in ('left', 'right')]
        self.com = self.collect(PointStamped, '/fusion/com_estimator/com')

    def subscribe_to_fusion(self):
        for name, kind in (('com_fused', Odometry), ('com_bias', Vector3Stamped),
                           ('external_force', WrenchStamped)):
            setattr(self, name, self.collect(kind, f'/fusion/com_estimator/{name}'))
        self.until(lambda: all(foot.get_subscription_count() for foot in self.feet),
                   what='subscriptions of the fusion')
        self.spin(0.2)  # publishers look for subscribers ten times a second

    def fusion_status(self):
        """Return the message of the line about the fusion; '' while there is none."""
        return self.statuses.get('com_fused', (None, ''))[1]

    def play(self, model, rows, wrenches=True, sign=1.0, has_imu=True, is_live=False):
        for ns, positions, velocities, quaternion, gyro, feet, _ in rows:
            stamp = (self.peer.get_clock().now() if is_live
                     else rclpy.time.Time(nanoseconds=ns)).to_msg()
            if has_imu:
                self.imu.publish(imu(stamp, 'imu_link', quaternion, gyro))
            if wrenches:
                for publisher, frame, wrench in zip(
                        self.feet, ('l_sole', 'r_sole'), sign * feet):
                    publisher.publish(wrench_stamped(stamp, frame, wrench))
            self.spin(0.003)
            self.joints.publish(joint_state(stamp, model.joint_names, positions, velocities))
            self.spin(0.002)
        self.spin(0.1)


def test_the_fused_com_is_right_where_the_kinematic_one_is_not(recording):
    model, rows = recording
    rig = EstimatorWithDrivers()
    try:
        rig.subscribe_to_fusion()
        rig.play(model, rows)
        assert len(rig.com_fused) > 0.9 * len(rows)
        last = rig.com_fused[-1]
        truth = next(row[-1] for row in rows
                     if row[0] == nanoseconds(last.header.stamp))
        kinematic, fused = vector(rig.com[-1].point), vector(last.pose.pose.position)
        assert np.linalg.norm((kinematic - truth)[:2]) > 4e-3
        assert np.linalg.norm((fused - truth)[:2]) < 1e-3
        bias = vector(rig.com_bias[-1].vector)
        np.testing.assert_allclose(bias[:2], (kinematic - truth)[:2], atol=1e-3)
        assert (last.header.frame_id, last.child_frame_id) == ('odom', 'com')
        covariance = np.reshape(last.pose.covariance, (6, 6))[:3, :3]
        assert (np.linalg.eigvalsh(covariance) > 0.0).all()
        assert np.sqrt(covariance[0, 0]) < 5e-3
        assert np.linalg.norm(vector(rig.external_force[-1].wrench.force)) < 0.5
        assert rig.node.fusion.standing.filter.mass == pytest.approx(model.mass + 0.288, rel=0.02)
    finally:
        rig.close()


def test_an_estimate_that_is_not_finite_is_not_published_and_begins_anew(recording):
    model, rows = recording
    rig = EstimatorWithDrivers()
    try:
        rig.subscribe_to_fusion()
        rig.play(model, rows[:60])
        rig.node.fusion.standing.filter.state[:3] = np.nan
        rig.com_fused.clear()
        rig.play(model, rows[60:160])
        assert len(rig.com_fused) > 50
        assert all(np.isfinite(vector(m.pose.pose.position)).all() for m in rig.com_fused)
    finally:
        rig.close()


def test_contacts_of_the_fusion_follow_their_parameters(recording):
    model, rows = recording
    rig = EstimatorWithDrivers()
    try:
        rig.subscribe_to_fusion()
        rig.play(model, rows[:60])
        rejected, = rig.node.set_parameters(parameters(contact_release=0.2))
        assert not rejected.successful and 'engage' in rejected.reason
        # Each foot carries half of the weight, and less than the new threshold.
        rig.node.set_parameters_atomically(parameters(contact_engage=0.9, contact_release=0.8))
        rig.play(model, rows[60:120])
        rig.until(lambda: 'no foot carries the robot' in rig.fusion_status(), what='diagnostics')
    finally:
        rig.close()


def test_the_fusion_can_be_turned_off(recording):
    model, rows = recording
    rig = EstimatorWithDrivers(fused_com=False)
    try:
        rig.play(model, rows[:50])
        assert len(rig.com) > 40 and rig.node.fusion is None
        for name in ('com_fused', 'com_bias', 'external_force'):
            assert not rig.peer.count_publishers(f'/fusion/com_estimator/{name}')
        assert not any(foot.get_subscription_count() for foot in rig.feet)
        assert rig.fusion_status() == ''
    finally:
        rig.close()


def test_a_late_subscriber_gets_the_same_bits(recording):
    model, rows = recording
    received = []
    for early in (True, False):
        rig = EstimatorWithDrivers()
        try:
            if early:
                rig.subscribe_to_fusion()
            rig.until(lambda rig=rig: all(foot.get_subscription_count() for foot in rig.feet))
            rig.play(model, rows[:150])
            if not early:
                rig.subscribe_to_fusion()
            rig.play(model, rows[150:220])
            received.append([
                {nanoseconds(message.header.stamp): numbers(message) for message in messages
                 if nanoseconds(message.header.stamp) >= rows[150][0]}
                for messages, numbers in (
                    (rig.com_fused, lambda m: (
                        m.pose.pose.position, m.twist.twist.linear,
                        m.pose.covariance.tolist(), m.twist.covariance.tolist())),
                    (rig.com_bias, lambda m: m.vector),
                    (rig.external_force, lambda m: m.wrench))])
        finally:
            rig.close()
    for always, late in zip(*received):
        assert len(late) > 50
        assert late == {stamp: always[stamp] for stamp in late}


def test_without_foot_wrenches_it_reports_so_and_goes_on_by_kinematics(recording):
    model, rows = recording
    rig = EstimatorWithDrivers()
    try:
        rig.subscribe_to_fusion()
        rig.play(model, rows[:60], wrenches=False)
        last = rig.com_fused[-1]
        kinematic = next(com for com in rig.com if com.header.stamp == last.header.stamp)
        fused = vector(last.pose.pose.position)
        assert np.linalg.norm(fused - vector(kinematic.point)) < 2e-3
        rest = iter(range(60, len(rows) - 20, 20))
        while 'no foot wrenches: nothing received on' not in rig.fusion_status():
            start = next(rest)
            rig.play(model, rows[start:start + 20], wrenches=False)
    finally:
        rig.close()


def test_a_lost_imu_stops_the_fusion_until_it_is_back(recording):
    model, rows = recording
    rig = EstimatorWithDrivers()

    def play_until(text, **options):
        for start in range(0, 600, 20):
            start %= len(rows) - 20
            rig.play(model, rows[start:start + 20], is_live=True, **options)
            rig.node.diagnostics.publish()
            rig.spin(0.05)
            if text in rig.fusion_status():
                return
        raise AssertionError(rig.statuses)
    try:
        rig.subscribe_to_fusion()
        play_until('kinematics and foot wrenches')
        assert rig.com_fused
        play_until('stopped: nothing received on /fusion/imu', has_imu=False)
        rig.com_fused.clear()
        rig.play(model, rows[:20], is_live=True, has_imu=False)
        assert not rig.com_fused
        play_until('kinematics and foot wrenches')
        last = vector(rig.com_fused[-1].pose.pose.position)
        assert np.isfinite(last).all() and np.linalg.norm(last) < 1.0
    finally:
        rig.close()


def test_the_parameters_are_those_of_the_filter():
    assert settings_from(FusionParameters(), ComFilterSettings, 'fusion_') == ComFilterSettings()
    changed = FusionParameters(fusion_moment=0.01)
    assert settings_from(changed, ComFilterSettings, 'fusion_').moment == 0.01


def test_forces_of_the_wrong_sign_are_reported(recording):
    model, rows = recording
    rig = EstimatorWithDrivers()
    try:
        rig.subscribe_to_fusion()
        for start in range(0, len(rows) - 20, 20):
            rig.play(model, rows[start:start + 20], sign=-1.0)
            rig.node.diagnostics.publish()
            if 'sign is wrong' in rig.fusion_status():
                break
        assert 'no foot carries the robot' in rig.fusion_status()
        assert rig.com and not rig.com_fused, 'nothing wrong is published'
    finally:
        rig.close()
