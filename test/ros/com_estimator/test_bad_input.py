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
"""What the node does with bad messages, bad parameters and clocks that are set back."""

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.com_estimator_rig import make_node
from support.stance_motion import RIGHT

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def test_joint_states_that_cannot_be_right_are_named_and_not_used(rig):
    """For whatever reason, see ``test_joint_state_input``."""
    rig.silent, reason = {'joints'}, "position of 'left_knee' = nan"
    for _ in range(10):
        rig.joints.publish(rig.joint_state(rig.step(dt=0.02), left_knee=float('nan')))
        rig.spin(0.001)
    assert not rig.got['com'] and reason in rig.node.inputs.joints.last_error
    rig.silent = set()
    assert reason in rig.health(f'input {rig.space}/joint_states', WARN)
    rig.assert_truth(rig.motion.sole_in_world.position)


@pytest.mark.parametrize(('silent', 'bad', 'line', 'reason'), [
    ({'imu'}, {}, 'base', 'unknown: waiting for IMU'),
    ({'joints'}, {}, 'base', 'waiting for joint states'), ({'joints'}, {}, 'com', 'not published'),
    ((), {'imu_frame': 'camera_imu'}, 'input {space}/imu',
     "frame_id is 'camera_imu'; valid: 'imu_link'")])
def test_a_sensor_that_stops_or_is_another_stops_everything_and_is_named(
        rig, silent, bad, line, reason):
    rig.silent, rig.bad = set(silent), bad
    rig.health(line.format(space=rig.space), ERROR, reason)
    rig.clear()
    rig.play(10)
    assert not any(rig.got.values())
    rig.silent, rig.bad = set(), {}
    rig.play(2)
    assert rig.got['com'] and rig.health('base', OK)


def test_after_the_clock_was_set_back_the_world_begins_anew(own_rig):
    rig = own_rig(max_stamp_age=0.0)

    def play(steps, second):
        for n in range(1, steps):
            rig.step(stamp=Time(sec=second, nanosec=n * 4_000_000))
    play(10, 1000)
    rig.motion.step_onto(1, rig.t)
    rig.contacts = RIGHT
    play(20, 1001)
    assert np.linalg.norm(rig.node.last.located.stance.soles_in_world[1]) > 0.01
    play(10, 10)
    assert rig.got['com'][-1].header.stamp.sec == 10
    np.testing.assert_allclose(rig.node.last.located.stance.soles_in_world[1], 0.0, atol=1e-9)


@pytest.mark.parametrize(('changes', 'parameters', 'message'), [
    ({'imus': {}}, {}, "robot 'small' has no IMU"),
    ({'base_link': 'pelvis'}, {}, "unknown frame 'pelvis'"),
    ({}, {'fixed_base': [0.0], 'base_source': 'fixed'}, 'must be six numbers: x, y, z'),
])
def test_a_start_that_makes_no_sense_is_one_clear_error(files, changes, parameters, message):
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        make_node(files(**changes), **parameters)


def test_the_dcm_of_a_com_below_the_ground_is_not_published(own_rig):
    rig = own_rig(base_source='fixed', fixed_base=[0.0, 0.0, 0.0, np.pi, 0.0, 0.0])
    rig.until(lambda: rig.step() and rig.got['com'] and rig.got['com_velocity'])
    rig.play(10)
    assert not rig.got['dcm']
    assert 'DCM not published: the centre of mass is -' in rig.health('com', WARN)
