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
"""What the node does with bad messages, bad parameters and signals."""

import dataclasses
from pathlib import Path
import signal
import time

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.nodes.com_estimator.node import ComEstimatorParameters
from biped_com_ros.ros.node import input_watch
from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.ros.topics.qos import LATCHED
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pytest
from rclpy.node import Node
from std_msgs.msg import String
from support.com_estimator_rig import make_node
from support.node_process import start_node
from support.small_robot import URDF
from support.stance_motion import RIGHT
import yaml

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'com_estimator.yaml'
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def test_inputs_that_are_missing_and_arrive_are_logged(own_rig, monkeypatch, capfd):
    monkeypatch.setattr(input_watch, '_FIRST_REMINDER', 0.6)
    rig = own_rig(sensor_timeout=5.0)
    log = ''

    def has_logged(*texts):
        nonlocal log
        log += capfd.readouterr().err
        return all(text in log for text in texts)
    rig.until(lambda: has_logged('waiting for joint states for ', 'waiting for IMU for ',
                                 f"on '{rig.space}/imu'"))
    assert not any(rig.got.values())
    rig.warm_up()
    log = ''
    rig.until(lambda: rig.step() and has_logged('received joint states', 'received IMU'))
    rig.spin(0.6)
    has_logged()
    assert log.count(f"received joint states on '{rig.space}/joint_states'") == 1
    assert log.count(f"received IMU on '{rig.space}/imu'") == 1
    assert 'waiting' not in log


@pytest.mark.parametrize(('changes', 'message'), [
    ({'left_knee': float('nan')}, "position of 'left_knee' = nan"),
    ({'waist': float('inf')}, "position of 'waist' = inf"),
])
def test_values_that_are_not_finite_are_named_and_not_used(rig, changes, message):
    bad = []
    for _ in range(5):
        rig.t += 0.004
        bad.append(rig.peer.get_clock().now().to_msg())
        rig.send_imu(bad[-1])
        rig.spin(0.004)
        rig.joints.publish(rig.joint_state(bad[-1], **changes))
        rig.spin(0.004)
    rig.until(lambda: message in (rig.node.inputs.joints.last_error or ''))
    rig.spin(0.05)
    assert not [com for com in rig.got['com'] if com.header.stamp in bad]
    assert message in rig.health(f'input {rig.space}/joint_states', WARN)
    assert rig.got['com'], 'and the node keeps running'
    rig.assert_truth(rig.motion.sole_in_world.position)


def test_a_value_too_large_to_be_true_is_named_and_not_used(rig):
    for _ in range(3):
        stamp = rig.peer.get_clock().now().to_msg()
        rig.send_imu(stamp)
        rig.spin(0.004)
        rig.joints.publish(rig.joint_state(stamp, neck=1e15))
        rig.spin(0.01)
    assert not rig.got['com']
    assert "position of 'neck' = 1e+15 is implausible" in rig.health(
        f'input {rig.space}/joint_states', WARN)
    assert rig.got['com'], 'and the node keeps running'


def test_missing_and_duplicate_joints_are_named_and_not_used(own_rig):
    rig = own_rig()
    rig.warm_up()

    def send(edit):
        for _ in range(int(0.8 / 0.008)):
            stamp = rig.peer.get_clock().now().to_msg()
            rig.send_imu(stamp)
            message = rig.joint_state(stamp)
            edit(message)
            rig.joints.publish(message)
            rig.spin(0.008)

    def without(message):
        i = message.name.index('left_knee')
        message.name = [n for n in message.name if n != 'left_knee']
        message.position = np.delete(message.position, i).tolist()
        message.velocity = np.delete(message.velocity, i).tolist()
    send(without)
    rig.clear()
    send(without)
    assert not rig.got['com']
    assert "joint 'left_knee' " in rig.node.inputs.joints.last_error

    def twice(message):
        message.name = [*message.name, 'waist']
        message.position = [*message.position, 0.1]
        message.velocity = [*message.velocity, 0.1]
    send(twice)
    assert not rig.got['com']
    assert "names joint 'waist' more than once" in rig.node.inputs.joints.last_error
    rig.until(lambda: rig.step() and rig.got['com'])


def test_stamps_going_backward_or_stale_are_refused(rig):
    stamp = rig.play(3)
    rig.clear()
    back = Time(sec=stamp.sec, nanosec=max(stamp.nanosec - 50_000_000, 0))
    rig.joints.publish(rig.joint_state(back))
    rig.spin(0.05)
    assert not rig.got['com'] and 's before the last one' in rig.node.inputs.joints.last_error
    rig.joints.publish(rig.joint_state(Time(sec=stamp.sec - 60)))
    rig.spin(0.05)
    assert not rig.got['com'] and 'behind the' in rig.node.inputs.joints.last_error


def test_an_imu_that_stops_stops_everything_and_is_named(rig):
    rig.silent.add('imu')
    rig.play(40)
    rig.clear()
    rig.play(10)
    assert not any(rig.got.values())
    rig.health('base', ERROR, text='unknown: waiting for IMU')
    rig.silent.clear()
    rig.until(lambda: rig.step() and rig.got['com'])
    assert rig.health('base', OK)


def test_joint_states_that_stop_are_named(rig):
    rig.silent.add('joints')
    assert 'waiting for joint states' in rig.health('base', ERROR)
    assert 'not published' in rig.health('com', ERROR)


def test_an_imu_in_another_frame_is_refused(rig):
    rig.bad = {'imu_frame': 'camera_imu'}
    rig.play(40)
    rig.clear()
    rig.play(5)
    assert not rig.got['com']
    message = rig.health(f'input {rig.space}/imu', ERROR)
    assert "frame_id is 'camera_imu'; valid: 'imu_link'" in message


def test_after_the_clock_was_set_back_the_world_begins_anew(own_rig):
    rig = own_rig(max_stamp_age=0.0)
    before, after = (iter([Time(sec=second, nanosec=n * 4_000_000) for n in range(1, 250)])
                     for second in (1000, 10))
    rig.until(lambda: rig.step(stamp=next(before)) and rig.got['com'])
    rig.motion.step_onto(1, rig.t)
    rig.contacts = RIGHT
    for _ in range(20):
        rig.step(stamp=next(before))
    assert np.linalg.norm(rig.node.last.located.stance.soles_in_world[1]) > 0.01
    rig.until(lambda: rig.step(stamp=next(after)) and rig.got['com'][-1].header.stamp.sec == 10)
    rig.play(0)
    np.testing.assert_allclose(rig.node.last.located.stance.soles_in_world[1], 0.0, atol=1e-9)


def test_after_a_broken_urdf_on_the_topic_a_good_one_is_used(files):
    peer, executor = Node('describer'), make_executor()
    node = make_node(files(), urdf='topic')
    out = peer.create_publisher(String, 'robot_description', LATCHED)
    reports = {}
    peer.create_subscription(
        DiagnosticArray, '/diagnostics',
        lambda array: reports.update({s.name: s.message for s in array.status}), 10)
    executor.add_node(peer)
    executor.add_node(node)

    def until(condition):
        end = time.monotonic() + 10.0
        while not condition():
            assert time.monotonic() < end, reports
            executor.spin_once(timeout_sec=0.05)
    try:
        for broken, text in (
                (URDF[:-20], 'not well-formed XML'),
                (URDF.replace('<mass value=', '<mas value='), "<inertial> of link 'trunk'"),
                (URDF.replace('imu_link', 'imu_lnk'), "unknown frame 'imu_link'")):
            out.publish(String(data=broken))
            until(lambda: text in reports.get('com_estimator: robot', ''))  # noqa: B023
            assert not node.is_built
        out.publish(String(data=URDF))
        until(lambda: node.is_built)
        until(lambda: 'waiting for joint states' in reports.get('com_estimator: base', ''))
    finally:
        executor.shutdown()
        node.destroy_node()
        peer.destroy_node()


@pytest.mark.parametrize(('changes', 'parameters', 'message'), [
    ({'imus': {}}, {}, "robot 'small' has no IMU"),
    ({'feets': {}}, {}, "unknown key 'feets' in small.yaml; did you mean 'feet'"),
    ({'base_link': 'pelvis'}, {}, "unknown frame 'pelvis'"),
    ({}, {'base_source': 'gps'},
     "'base_source': 'gps' .*'imu', 'filter', 'odometry', 'tf', 'fixed'"),
    ({}, {'fixed_base': [0.0], 'base_source': 'fixed'}, 'must be six numbers: x, y, z'),
    ({}, {'contact_topics': ['left']}, 'must be 2 topics, one per foot, in the order left, right'),
    ({}, {'tf_rate': -3.0}, "'tf_rate': -3.0 is out of range; valid: 0 to 10000 Hz"),
])
def test_a_start_that_makes_no_sense_is_one_clear_error(files, changes, parameters, message):
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        make_node(files(**changes), **parameters)


def test_a_parameter_that_does_not_exist_is_named(files, capfd):
    node = make_node(files(), tf_rat=3.0, base_sourc='imu', nodes=['com_estimator'])
    node.destroy_node()
    log = capfd.readouterr().err
    assert "parameter 'tf_rat' = 3.0 does not exist" in log and "did you mean 'tf_rate'" in log
    assert "'base_sourc' = 'imu' does not exist" in log
    assert 'valid: base_source, base_timeout, ' in log
    assert "'nodes'" not in log, 'it belongs to another node of the process'


def test_the_dcm_of_a_com_below_the_ground_is_not_published(own_rig):
    rig = own_rig(base_source='fixed', fixed_base=[0.0, 0.0, 0.0, np.pi, 0.0, 0.0])
    rig.until(lambda: rig.step() and rig.got['com'] and rig.got['com_velocity'])
    rig.play(10)
    assert not rig.got['dcm']
    assert 'DCM not published: the centre of mass is -' in rig.health('com', WARN)


def test_the_parameter_file_has_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/com_estimator']['ros__parameters']
    defaults = ComEstimatorParameters()
    assert text == {f.name: getattr(defaults, f.name)
                    for f in dataclasses.fields(ComEstimatorParameters)}


def test_the_process_ends_cleanly_on_an_interrupt(files):
    peer = Node('watcher')
    process = start_node('com_estimator', '--params-file', str(CONFIG), '-p', f'robot:={files()}')
    end = time.monotonic() + 20.0
    while not peer.count_publishers('/com_estimator/com'):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=10.0)
    peer.destroy_node()
    assert process.returncode == 0, output
    assert 'Traceback' not in output


def test_the_process_reports_in_one_line_why_it_cannot_start(tmp_path):
    process = start_node('com_estimator', '-p', f'robot:={tmp_path / "none.yaml"}')
    output, _ = process.communicate(timeout=20.0)
    assert process.returncode == 1
    assert len(output.strip().splitlines()) == 1
    assert "none.yaml' cannot be read" in output
