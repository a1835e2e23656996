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
import sys
import types

from biped_com_ros.core.errors import ConfigurationError
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import TransformStamped
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.com_estimator_rig import make_node, transforms
from support.messages import set_fields, vector
from support.stance_motion import Motion

OK, ERROR = DiagnosticStatus.OK, DiagnosticStatus.ERROR


@pytest.mark.parametrize('rpy', [[0.0, 0.0, 0.0], [0.1, -0.2, np.pi]])
def test_odometry_gives_base_and_velocity(own_rig, rpy):
    rig = own_rig(Motion(5, base_rpy=rpy), {'base_rpy': rpy}, base_source='odometry')
    rig.silent.add('imu')
    rig.warm_up()
    rig.play(10)
    rig.assert_truth(np.zeros(3))
    assert 'by odometry, in contact: left' in rig.health('base', OK)


def test_odometry_of_other_frames_is_refused(own_rig):
    rig = own_rig(base_source='odometry')
    rig.warm_up()
    rig.bad = {'odom_child': 'base_footprint'}
    message = rig.health(f'input {rig.space}/odom', ERROR)
    assert "child_frame_id is 'base_footprint'; valid: 'base_link'" in message
    rig.clear()
    rig.play(5)
    assert not rig.got['com']
    rig.bad = {'odom_frame': 'map'}
    rig.play(3)
    assert "frame_id is 'map'; valid: 'odom'" in rig.health(f'input {rig.space}/odom', ERROR)


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


def test_tf_as_source_says_what_to_install(files):
    if find_spec('tf2_ros'):
        pytest.skip('tf2_ros is installed')
    with pytest.raises(ConfigurationError, match='needs tf2_ros: install ros-.*-tf2-ros-py .apt.'):
        make_node(files(), base_source='tf')


def fake_tf2(monkeypatch):
    """Install a tf2_ros that answers from a dictionary; returns it."""
    answers = {}
    module = types.ModuleType('tf2_ros')
    module.TransformException = type('TransformException', (Exception,), {})

    class Buffer:

        def __init__(self, node):
            pass

        def lookup_transform(self, target, source, when):
            if (target, source) not in answers:
                raise module.TransformException(f'"{source}" does not exist')
            return answers[target, source]
    module.Buffer, module.TransformListener = Buffer, lambda *args, **kwargs: None
    monkeypatch.setitem(sys.modules, 'tf2_ros', module)
    return answers


def test_tf_gives_the_base_and_its_absence_is_reported(own_rig, monkeypatch):
    answers = fake_tf2(monkeypatch)
    rig = own_rig(base_source='tf', sensor_timeout=5.0)
    rig.silent.add('imu')
    message = rig.health('base', ERROR)
    assert "no transform from 'base_link' to 'odom': \"base_link\" does not exist" in message
    assert not rig.got['com']

    def answer(stamp):
        pose, found = rig.motion.base(rig.t), TransformStamped()
        found.header.stamp = stamp
        set_fields(found.transform.translation, 'xyz', pose.position)
        set_fields(found.transform.rotation, 'xyzw', pose.quaternion)
        answers['odom', 'base_link'] = found
    for _ in range(200):
        stamp = rig.peer.get_clock().now().to_msg()
        rig.t += 0.004
        answer(stamp)
        rig.step(dt=0.0, stamp=stamp)
        if all(rig.got.values()):
            break
    rig.assert_truth(np.zeros(3))
    assert {'base_footprint', 'com'} <= set(transforms(rig.transforms[-1]))
    assert not {'base_link', 'trunk'} & set(transforms(rig.transforms[-1]))
    rig.spin(0.2)
    rig.clear()
    assert 'joint_states and the transform to base_link differ by' in rig.health('base', ERROR)
    assert not rig.got['com']
