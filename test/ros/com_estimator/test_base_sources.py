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
"""The sources of the pose of the base: odometry, TF, fixed."""

from importlib.util import find_spec

from biped_com_ros.core.errors import ConfigurationError
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.com_estimator_rig import make_node, transforms
from support.messages import nanoseconds, stamp_of, vector
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
