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
"""Sources of the pose of the base: odometry, TF, fixed, and the filter of a robot that sways."""

from dataclasses import replace
from importlib.util import find_spec

from biped_com_ros.core.com.fused import FusedComEstimator
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.sim.interface import LinkError
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.com_estimator_rig import DT, make_node, transforms
from support.messages import nanoseconds, odometry, stamp_of, vector
from support.pads import pads_file, vertical
from support.recorded_robot import record
from support.stance_motion import SwayingMotion
from support.tf2_stand_in import provide_tf2, transform_stamped
from tf2_msgs.msg import TFMessage


OK, ERROR = DiagnosticStatus.OK, DiagnosticStatus.ERROR


@pytest.mark.parametrize('rpy', [[0.0, 0.0, 0.0], [0.1, -0.2, np.pi]])
def test_odometry_gives_base_and_velocity(own_rig, rpy):
    rig = own_rig(SwayingMotion(5, base_rpy=rpy), {'base_rpy': rpy}, base_source='odometry')
    rig.silent.add('imu')
    rig.warm_up()
    rig.play(10)
    rig.assert_truth(np.zeros(3))
    assert 'base from odometry; feet in contact: left' in rig.health('base', OK)


def test_odometry_of_other_frames_is_refused(own_rig):
    rig = own_rig(base_source='odometry')
    rig.warm_up()
    for rig.bad, reason in (
            ({'odom_child': 'base_footprint'},
             "child_frame_id is 'base_footprint'; valid: 'base_link'"),
            ({'odom_frame': 'map'}, "frame_id is 'map'; valid: 'odom'")):
        rig.health(f'input {rig.space}/odom', ERROR, reason)
        rig.clear()
        rig.play(5)
        assert not rig.got['com']


def test_a_fixed_base(own_rig):
    pose = [0.1, 0.2, 1.3, 0.1, 0.2, 0.3]
    rig = own_rig(base_source='fixed', fixed_base=pose)
    rig.silent |= {'imu', 'contacts'}
    rig.warm_up()
    rig.play(3)
    state = rig.motion.state(rig.t)
    rotation = Rotation.from_euler('xyz', pose[3:]).as_matrix()
    np.testing.assert_allclose(vector(rig.got['com'][-1].point),
                               rotation @ state.com_in_base + pose[:3], atol=1e-9)
    np.testing.assert_allclose(vector(rig.got['com_velocity'][-1].vector),
                               rotation @ state.com_velocity_in_base, atol=1e-9)


def test_tf_as_source_names_what_to_install(files):
    if find_spec('tf2_ros'):
        pytest.skip('tf2_ros is installed')
    with pytest.raises(ConfigurationError, match='needs tf2_ros: install ros-.*-tf2-ros-py .apt.'):
        make_node(files(), base_source='tf')


STEP_NS = 4_000_000


def play_with_transforms(rig, steps, delay, every):
    """
    Play with transforms that arrive some steps late, of one in `every` steps.

    Returns the time in the motion of each stamp, ns.
    """
    publisher = rig.publisher(TFMessage, 'tf')
    start, t0 = rig.peer.get_clock().now().nanoseconds, rig.t
    times = {start + k * STEP_NS: t0 + 0.004 * k for k in range(steps)}
    for k, stamp_ns in enumerate(times):
        known = k - delay
        if known >= 0 and known % every == 0:
            publisher.publish(TFMessage(transforms=[transform_stamped(
                stamp_of(start + known * STEP_NS), 'odom', 'base_link',
                rig.motion.base(t0 + 0.004 * known))]))
        rig.t = times[stamp_ns]
        rig.step(dt=0.0, stamp=stamp_of(stamp_ns))
    rig.spin(0.1)
    rig.peer.destroy_publisher(publisher)
    return times


@pytest.mark.parametrize(('delay', 'every', 'atol'), [(0, 1, 1e-9), (3, 1, 1e-9), (6, 5, 4e-4)])
def test_tf_gives_the_base_at_the_time_of_the_joints(own_rig, monkeypatch, delay, every, atol):
    provide_tf2(monkeypatch)
    rig = own_rig(base_source='tf', base_timeout=0.2, max_stamp_age=60.0)
    rig.silent.add('imu')
    rig.spin(0.5)  # until the node has discovered everything
    times = play_with_transforms(rig, 60, delay, every)
    coms = {nanoseconds(m.header.stamp): vector(m.point) for m in rig.got['com']}
    assert len(coms) > 30

    def com_at(t, of_base=0.0):
        return rig.motion.state(t).in_world(rig.motion.base(t - of_base)).com_in_world
    errors = [np.abs(com - com_at(times[ns])).max() for ns, com in coms.items()]
    assert max(errors) < atol
    # Nothing is estimated before its transform is there: that of the latest one would be wrong.
    latest = max(k for k in range(60 - delay) if k % every == 0)
    assert max(coms) <= list(times)[latest]
    if delay:
        assert max(np.abs(com_at(t, 0.004 * delay) - com_at(t)).max()
                   for t in times.values()) > 4.0 * atol


def test_missing_and_late_transforms_are_reported(own_rig, monkeypatch):
    provide_tf2(monkeypatch)
    rig = own_rig(base_source='tf', sensor_timeout=5.0, max_stamp_age=60.0)
    rig.silent.add('imu')
    message = rig.health('base', ERROR)
    assert "no transform from 'base_link' to 'odom' at the time of the joint states" in message
    assert 'does not exist' in message and not rig.got['com']
    last = max(play_with_transforms(rig, 40, 0, 1))
    assert rig.got['com']
    assert {'base_footprint', 'com'} <= {
        child for m in rig.transforms for child in transforms(m)}
    rig.clear()
    rig.health('base', ERROR, 'extrapolation into the future')
    assert all(nanoseconds(message.header.stamp) <= last for message in rig.got['com'])


FILTER = {'base_source': 'filter', 'fused_com': False}


def sway(t):
    ramp = min(max(t - 0.6, 0.0), 1.0)
    return (0.015 * ramp * np.sin(4.4 * t), 0.025 * ramp * np.sin(6.3 * t), 0.0)


@pytest.fixture(scope='module')
def recording():
    return record(2.6, sway, since=0.6, dt=DT)[1]


def pose_of(odometry):
    q = odometry.pose.pose.orientation
    return Pose(rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w))),
                vector(odometry.pose.pose.position))


def test_odometry_is_right_within_its_covariance(recording, recorded):
    rig = recorded({'odometry': Odometry}, **FILTER)
    rig.play(recording, has_orientation=False)
    assert not rig.node.base.problem and not rig.node.base.is_held
    found = rig.got['odometry']
    assert found[0].child_frame_id == 'base_link' and len(found) > 0.9 * len(recording)
    samples = [rig.played[nanoseconds(message.header.stamp)] for message in found]
    # The filter begins at an origin and heading of its own.
    begin = samples[0].true_base
    to_filter, moved = pose_of(found[0]) @ begin.inverse(), 0.0
    for message, sample in zip(found[250:], samples[250:]):
        error = pose_of(message).position - (to_filter @ sample.true_base).position
        moved = max(moved, np.linalg.norm(sample.true_base.position - begin.position))
        # The origin itself was placed with the attitude of the start, 0.1 rad uncertain.
        assert np.linalg.norm(error) < 0.004
        covariance = np.reshape(message.pose.covariance, (6, 6))
        assert (np.linalg.eigvalsh(covariance) > 0.0).all()
        assert np.sqrt(np.trace(covariance[:3, :3])) < 0.03
        deviation = np.sqrt(np.diag(np.reshape(message.twist.covariance, (6, 6))))
        missed = vector(message.twist.twist.linear) - sample.true_twist[:3]
        assert (np.abs(missed) < 4.0 * deviation[:3] + 2e-3).all(), (missed, deviation)
        assert np.abs(missed).max() < 0.02
    assert moved > 0.02


def test_odometry_of_a_camera_is_followed(recording, recorded):
    """It moves away from what legs and IMU say, by 5 cm per second, in a frame of its own."""
    rig = recorded({'odometry': Odometry}, filter_odometry_topic='camera/odometry',
                   filter_odometry_deviation=0.001, filter_odometry_delay=0.02, **FILTER)
    camera = rig.publisher(Odometry, 'camera/odometry')
    for i, sample in enumerate(recording[:300]):
        rig.play([sample], has_orientation=False)
        camera.publish(odometry(
            stamp_of(max(rig.played)), 'camera_odom', 'base_link',
            sample.true_base.position + (0.0, 0.0, 0.05 * DT * i), sample.true_base.quaternion))
    found = rig.got['odometry']
    first, last = (pose_of(found[i]).position[2] - recording[k].true_base.position[2]
                   for i, k in ((0, 0), (-1, 299)))
    assert last - first == pytest.approx(0.05 * 299 * DT, abs=0.01)


#: Of the fused CoM: nothing but a load differs from the URDF.
EXACT = """
extends: biped
name: exact
instruments: {deviations: {link_mass: 0.0, link_com: 0.0, sensor_gain: 0.0, sensor_crosstalk: 0.0,
                           sensor_rotation: 0.0, sensor_frame: 0.0}}
"""


@pytest.mark.thorough
def test_a_hidden_load_is_weighed_and_the_fused_com_is_that_of_the_robot(recorded, tmp_path):
    """The kinematic CoM misses it by a centimetre."""
    hidden, robot = 0.4, tmp_path / 'exact.yaml'
    robot.write_text(EXACT)
    model, samples = record(2.6, sway, since=0.6, dt=DT, errors={
        'pelvis': LinkError(hidden, (0.02, -0.02, -0.05))})
    rig = recorded(
        {'odometry': Odometry, 'com_fused': Odometry, 'external_force': WrenchStamped},
        base_source='filter', wrench_delay=0.0, robot=str(robot))
    rig.node.fusion.estimate = FusedComEstimator(
        rig.node.model, replace(rig.node.params.fusion, delay_deviation=0.0))
    rig.play(samples, has_orientation=False)
    assert rig.node.fusion.estimate.mass == pytest.approx(
        model.mass + hidden, abs=0.03 * hidden)
    bases = {nanoseconds(message.header.stamp): pose_of(message)
             for message in rig.got['odometry']}
    fused = rig.got['com_fused'][300:]
    assert len(fused) > 100
    for message in fused:
        ns = nanoseconds(message.header.stamp)
        base, sample = bases[ns], rig.played[ns]
        found = base.rotation.T @ (vector(message.pose.pose.position) - base.position)
        expected = sample.true_base.rotation.T @ (sample.true_com - sample.true_base.position)
        kinematic = model.state(sample.positions).com_in_base
        assert np.abs(kinematic - expected)[2] > 0.009
        np.testing.assert_allclose(found[:2], expected[:2], atol=1e-3)
        deviations = np.sqrt(np.diag(np.reshape(message.pose.covariance, (6, 6))[:3, :3]))
        # Two seconds of gentle swaying tell little of the height, and it says so.
        assert abs(found[2] - expected[2]) < 2.0 * deviations[2]
    # What is published contains the uncertainty of the base; beside it that is little.
    beside = np.sqrt(np.diag(rig.node.fusion.estimate.com_covariance))
    assert (beside[:2] < 4e-3).all() and (beside < deviations).all()
    assert abs(found[2] - expected[2]) < 2.0 * beside[2]
    assert max(abs(m.wrench.force.x) + abs(m.wrench.force.z)
               for m in rig.got['external_force'][300:]) < 0.02 * 9.81 * model.mass


def test_without_foot_wrenches_the_filter_is_refused(files):
    with pytest.raises(ConfigurationError, match="'filter' needs the wrenches of all feet"):
        make_node(files(), base_source='filter')


def test_vertical_forces_are_enough_for_the_base_and_the_fused_com_is_kinematic(
        recording, recorded, tmp_path):
    rig = recorded({'odometry': Odometry, 'com_fused': Odometry, 'external_force': WrenchStamped},
                   robot=pads_file(tmp_path, 'biped'), base_source='filter')
    rig.play([replace(s, wrenches=vertical(s.wrenches)) for s in recording],
             has_orientation=False)
    assert not rig.node.base.problem and not rig.node.base.is_held
    found = rig.got['odometry']
    assert len(found) > 0.9 * len(recording)
    samples = [rig.played[nanoseconds(message.header.stamp)] for message in found]
    to_filter = pose_of(found[0]) @ samples[0].true_base.inverse()
    for message, sample in zip(found[250:], samples[250:]):
        error = pose_of(message).position - (to_filter @ sample.true_base).position
        assert np.linalg.norm(error) < 0.004  # as with whole wrenches
    kinematic = {nanoseconds(m.header.stamp): vector(m.point) for m in rig.got['com']}
    assert len(rig.got['com_fused']) > 0.9 * len(recording)
    for message in rig.got['com_fused']:
        np.testing.assert_allclose(vector(message.pose.pose.position), kinematic[
            nanoseconds(message.header.stamp)], atol=1e-9)
        assert np.sqrt(np.trace(np.reshape(message.pose.covariance, (6, 6))[:3, :3])) > 2e-3
    assert rig.report('com_fused') == (
        'from kinematics alone: the sensors of left and right measure the vertical force alone '
        '(measures: force_z), not where it acts')
    assert rig.report('weight') == ''  # there is no total to compare with
