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
from biped_com_ros.sim.interface import LinkError
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from support.com_estimator_rig import DT, make_node, RecordedEstimator
from support.messages import nanoseconds, odometry, stamp_of, vector
from support.recorded_robot import record


def sway(t):
    ramp = min(max(t - 0.6, 0.0), 1.0)
    return (0.015 * ramp * np.sin(4.4 * t), 0.025 * ramp * np.sin(6.3 * t), 0.0)


@pytest.fixture(scope='module')
def recording():
    return record(2.6, sway, since=0.6, dt=DT)[1]


@pytest.fixture
def make():
    """Return a function that makes the node and drivers whose IMU has no orientation."""
    rigs = []

    def make_rig(*outputs, **values):
        rigs.append(RecordedEstimator(
            {'odometry': Odometry, **dict(outputs)},
            **{'base_source': 'filter', 'fused_com': False, **values}))
        rigs[-1].until(lambda: all(
            foot.get_subscription_count() for foot in rigs[-1].wrenches[:2]), what='the node')
        return rigs[-1]
    yield make_rig
    for rig in rigs:
        rig.close()


def pose_of(odometry):
    q = odometry.pose.pose.orientation
    return Pose(rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w))),
                vector(odometry.pose.pose.position))


def test_odometry_is_right_within_its_covariance(recording, make):
    rig = make()
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


def test_odometry_of_a_camera_is_followed(recording, make):
    """It moves away from what legs and IMU say, by 5 cm per second, in a frame of its own."""
    rig = make(filter_odometry_topic='camera/odometry', filter_odometry_deviation=0.001,
               filter_odometry_delay=0.02)
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


@pytest.mark.thorough
def test_a_hidden_load_is_weighed_and_the_fused_com_is_that_of_the_robot(make):
    """The kinematic CoM misses it by a centimetre."""
    hidden = 0.4
    model, samples = record(2.6, sway, since=0.6, dt=DT, errors={
        'pelvis': LinkError(hidden, (0.02, -0.02, -0.05))})
    rig = make(('com_fused', Odometry), ('external_force', WrenchStamped),
               fused_com=True, fusion_wrench_delay=0.0)
    rig.play(samples, has_orientation=False)
    assert rig.node.fusion.walking.mass == pytest.approx(model.mass + hidden, abs=0.03 * hidden)
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
        assert (deviations[:2] < 4e-3).all()
    assert max(abs(m.wrench.force.x) + abs(m.wrench.force.z)
               for m in rig.got['external_force'][300:]) < 0.02 * 9.81 * model.mass


def test_without_foot_wrenches_the_filter_is_refused(files):
    with pytest.raises(ConfigurationError, match="'filter' needs the wrenches of all feet"):
        make_node(files(), base_source='filter')
