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
"""base_source filter over DDS: odometry of a simulated robot that sways, within what it states."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.sim.interface import LinkError, PlantOptions
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import Imu, JointState
from support.com_estimator_rig import make_node
from support.messages import (
    imu, joint_state, nanoseconds, odometry, parameters, set_fields, vector, wrench_stamped)
from support.ros_rig import NodeRig
from support.zmp_pipeline import Pipeline

SPACE = '/filtered'


@pytest.fixture(scope='module')
def recording():
    """Return the model, and the messages' values and the true base of each instant."""
    return record(PlantOptions(dt=0.004, tendons=False))


def record(options):
    pipeline = Pipeline('biped', options)

    def sway(t):
        ramp = min(max(t - 0.6, 0.0), 1.0)
        return (0.015 * ramp * np.sin(4.4 * t), 0.025 * ramp * np.sin(6.3 * t), 0.0)
    rows = []
    for t, _, truth in pipeline.run(2.6, sway):
        observation = pipeline.observation
        if t > 0.6:
            rows.append((
                10**9 + round(1e9 * observation.time), observation.joint_positions.copy(),
                observation.joint_velocities.copy(), observation.angular_velocities[0].copy(),
                observation.linear_accelerations[0].copy(), pipeline.wrenches.copy(),
                Pose.from_quaternion(truth.base_quaternion, truth.base_position.copy()),
                truth.base_twist.copy(), truth.com - truth.base_position))
    return pipeline.model, rows


class DriversWithoutOrientation(NodeRig):
    """The node and the drivers of a robot whose IMU has no orientation."""

    def __init__(self, **options):
        super().__init__(node=ComEstimator(
            namespace=SPACE, cli_args=['--ros-args', '-r', '/diagnostics:=diagnostics'],
            parameter_overrides=parameters(
                max_stamp_age=0.0, base_source='filter', **{'fused_com': False, **options})))
        self.joints = self.publisher(JointState, f'{SPACE}/joint_states')
        self.imu = self.publisher(Imu, f'{SPACE}/imu')
        self.feet = [self.publisher(WrenchStamped, f'{SPACE}/wrench_aggregator/{foot}/wrench')
                     for foot in ('left', 'right')]
        self.odometry = self.collect(Odometry, f'{SPACE}/com_estimator/odometry')
        self.spin(0.2)  # publishers look for subscribers ten times a second

    def play(self, model, rows):
        """Publish the rows, and wait for the node every 20 of them: it is to miss none."""
        for i, (ns, positions, velocities, gyro, acceleration, feet, *_) in enumerate(rows):
            stamp = rclpy.time.Time(nanoseconds=ns).to_msg()
            message = imu(stamp, 'imu_link', (0.0, 0.0, 0.0, 0.0), gyro)
            message.orientation_covariance[0] = -1.0
            set_fields(message.linear_acceleration, 'xyz', acceleration)
            self.imu.publish(message)
            for publisher, frame, wrench in zip(self.feet, ('l_sole', 'r_sole'), feet):
                publisher.publish(wrench_stamped(stamp, frame, wrench))
            self.joints.publish(joint_state(stamp, model.joint_names, positions, velocities))
            self.spin(0.002)
            if i % 20 == 0 and self.odometry:
                self.wait_for(ns)
        self.wait_for(rows[-1][0])

    def wait_for(self, ns):
        self.until(lambda: self.odometry and nanoseconds(
            self.odometry[-1].header.stamp) == ns, what=f'the instant {ns}')


def pose_of(odometry):
    q = odometry.pose.pose.orientation
    return Pose(rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w))),
                vector(odometry.pose.pose.position))


def test_odometry_is_right_within_its_covariance(recording):
    model, rows = recording
    rig = DriversWithoutOrientation()
    try:
        rig.play(model, rows)
        assert not rig.node.base.problem and not rig.node.base.is_held
        assert rig.odometry[0].child_frame_id == 'base_link'
        assert len(rig.odometry) > 0.9 * len(rows)
        truths = {row[0]: row[6:8] for row in rows}
        found = {nanoseconds(message.header.stamp): message for message in rig.odometry}
        first, *_, last = sorted(found)
        # The filter begins at an origin and heading of its own.
        to_filter = pose_of(found[first]) @ truths[first][0].inverse()
        moved = 0.0
        for ns in sorted(found)[250:]:
            truth, twist = truths[ns]
            expected, pose = to_filter @ truth, pose_of(found[ns])
            covariance = np.reshape(found[ns].pose.covariance, (6, 6))
            error = pose.position - expected.position
            moved = max(moved, np.linalg.norm(truth.position - truths[first][0].position))
            # The origin itself was placed with the attitude of the start, 0.1 rad uncertain.
            assert np.linalg.norm(error) < 0.004
            assert (np.linalg.eigvalsh(covariance) > 0.0).all()
            assert np.sqrt(np.trace(covariance[:3, :3])) < 0.03
            deviation = np.sqrt(np.diag(np.reshape(found[ns].twist.covariance, (6, 6))))
            spoken = found[ns].twist.twist
            missed = np.concatenate((vector(spoken.linear), vector(spoken.angular))) - twist
            assert (np.abs(missed[:3]) < 4.0 * deviation[:3] + 2e-3).all(), (missed, deviation)
            assert np.abs(missed[:3]).max() < 0.02
        assert moved > 0.02
    finally:
        rig.close()


def test_odometry_of_a_camera_is_followed(recording):
    """It moves away from what legs and IMU say, by 5 cm per second, in a frame of its own."""
    model, rows = recording
    rig = DriversWithoutOrientation(
        filter_odometry_topic='camera/odometry', filter_odometry_deviation=0.001,
        filter_odometry_delay=0.02)
    try:
        camera = rig.publisher(Odometry, f'{SPACE}/camera/odometry')
        rig.until(camera.get_subscription_count)
        for row in rows[:300]:
            rig.play(model, [row])
            t = 1e-9 * (row[0] - rows[0][0])
            camera.publish(odometry(
                rclpy.time.Time(nanoseconds=row[0]).to_msg(), 'camera_odom', 'base_link',
                row[6].position + (0.0, 0.0, 0.05 * t), row[6].quaternion))
        first, last = (pose_of(rig.odometry[i]).position[2] - rows[k][6].position[2]
                       for i, k in ((0, 0), (-1, 299)))
        assert last - first == pytest.approx(0.05 * 299 * 0.004, abs=0.01)
    finally:
        rig.close()


def test_a_hidden_load_is_weighed_and_the_fused_com_is_that_of_the_robot():
    """The kinematic CoM misses it by a centimetre."""
    hidden = 0.4
    model, rows = record(PlantOptions(dt=0.004, tendons=False, errors={
        'pelvis': LinkError(hidden, (0.02, -0.02, -0.05))}))
    rig = DriversWithoutOrientation(fused_com=True, fusion_wrench_delay=0.0)
    try:
        fused = rig.collect(Odometry, f'{SPACE}/com_estimator/com_fused')
        forces = rig.collect(WrenchStamped, f'{SPACE}/com_estimator/external_force')
        rig.spin(0.2)
        rig.play(model, rows)
        rig.spin(0.2)
        estimate = rig.node.fusion.walking
        assert estimate.mass == pytest.approx(model.mass + hidden, abs=0.03 * hidden)
        truths = {row[0]: row for row in rows}
        bases = {nanoseconds(message.header.stamp): message for message in rig.odometry}
        checked = 0
        for message in fused[300:]:
            ns = nanoseconds(message.header.stamp)
            if ns not in bases:
                continue
            base, row = pose_of(bases[ns]), truths[ns]
            found = base.rotation.T @ (vector(message.pose.pose.position) - base.position)
            expected = row[6].rotation.T @ row[8]
            kinematic = model.state(row[1]).com_in_base
            assert np.abs(kinematic - expected)[2] > 0.009
            np.testing.assert_allclose(found[:2], expected[:2], atol=1e-3)
            covariance = np.reshape(message.pose.covariance, (6, 6))[:3, :3]
            deviations = np.sqrt(np.diag(covariance))
            # Two seconds of gentle swaying tell little of the height, and it says so.
            assert abs(found[2] - expected[2]) < 2.0 * deviations[2]
            assert (deviations[:2] < 4e-3).all()
            checked += 1
        assert checked > 100
        weight = 9.81 * model.mass
        assert max(abs(m.wrench.force.x) + abs(m.wrench.force.z) for m in forces[300:]) < (
            0.02 * weight)
    finally:
        rig.close()


def test_without_foot_wrenches_the_filter_is_refused(files):
    with pytest.raises(ConfigurationError, match="'filter' needs the wrenches of all feet"):
        make_node(files(), base_source='filter')
