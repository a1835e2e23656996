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
"""The calibrator over DDS: captures, what it refuses, what survives a crash, results."""

import dataclasses
from dataclasses import replace
import os
from pathlib import Path
import re
import time

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.files import KEPT_DAYS
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.session import SessionState
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.inputs import AXES
from biped_com_ros.nodes.com_calibrator.node import ComCalibrator
from biped_com_ros.nodes.com_calibrator.parameters import (
    ComCalibratorParameters, results_directory, sensor_noise)
from biped_com_ros.ros.topics.outputs import float_array_publisher
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
import rclpy
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from support.messages import imu, joint_state, wrench_stamped
from support.ros_rig import NodeRig
from support.statics_data import NOISE, TrueRobot
from support.written_files import written_files
from trajectory_msgs.msg import JointTrajectory
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'com_calibrator.yaml'


@pytest.fixture(scope='module', autouse=True)
def ros():
    """Begin and end ROS."""
    rclpy.init()
    yield
    rclpy.shutdown()


class CalibratorRig:
    """A robot that stands still in captured poses, as topics; and the calibrator."""

    def __init__(self, directory, true=None, **parameters):
        self.true = true or TrueRobot('sabian', seed=2)
        values = {'robot': self.true.model.config.name, 'directory': str(directory),
                  'poses': 4, 'candidates': 8, 'hoisted': 0, 'still_duration': 0.3,
                  'still_force_deviation': 50.0, **parameters}
        node = ComCalibrator(parameter_overrides=[
            Parameter(name, value=value) for name, value in values.items()])
        self.rig, self.node, self._last = NodeRig(node=node), node, 0.0
        config = self.true.model.config
        self._joints = self.rig.publisher(JointState, 'joint_states')
        self._imu = self.rig.publisher(Imu, config.imu.topic)
        self._wrenches = [(sensor, self.rig.publisher(WrenchStamped, sensor.topic))
                          for sensor in config.wrench_sensors.values()]

    def stand(self, capture, until, timeout=20.0):
        """Publish one pose until something has happened."""
        def step():
            if time.monotonic() > self._last + 0.01:  # more would only be dropped
                self._last = time.monotonic()
                self.publish(capture)
            return until()

        self.rig.until(step, timeout, 'the calibrator')

    def publish(self, capture):
        """Publish one pose once."""
        stamp = self.rig.peer.get_clock().now().to_msg()
        true = self.true.model
        self._joints.publish(joint_state(
            stamp, true.joint_names, capture.positions, [0.0] * len(capture.positions),
            capture.torques))
        self._imu.publish(imu(stamp, true.config.imu.frame, quaternion_with(capture.up)))
        for (sensor, publisher), wrench in zip(self._wrenches, capture.wrenches):
            publisher.publish(wrench_stamped(stamp, sensor.frame, wrench))

    def trigger(self, name):
        """Call a service of the calibrator."""
        return self.rig.trigger(f'com_calibrator/{name}')

    @property
    def session(self):
        """Return the calibration; the model is read from a file, so it is there at once."""
        return self.node.session

    def wait_for_plan(self):
        """Wait until poses are planned and the first is next."""
        self.rig.until(lambda: self.session.state is SessionState.WAITING, 60.0, 'planned poses')

    def close(self):
        self.rig.close()


def quaternion_with(up):
    """Return an orientation (x, y, z, w) whose inverse turns the vertical into `up`."""
    x, y, z = up
    q = np.array((y, -x, 0.0, 1.0 + z))
    return (q / np.linalg.norm(q)).tolist()


@pytest.fixture
def robot(tmp_path):
    """Yield a robot with good foot sensors, and a calibrator that a person drives."""
    found = CalibratorRig(tmp_path, automatic=False, wrench_gain=0.005, cross_talk=0.005)
    yield found
    found.close()


def take(robot, standing, name):
    """Stand in a random pose and capture it by the service."""
    capture = robot.true.capture(standing, NOISE, name=name)
    count = len(robot.session.log.captures)
    robot.session.window.clear()
    robot.stand(capture, lambda: not robot.session.window.problem)
    response = robot.trigger('capture')
    assert response.success, response.message
    assert len(robot.session.log.captures) == count + 1
    return response


def test_by_hand_from_captures_to_results(robot, tmp_path):
    robot.wait_for_plan()
    refused = robot.trigger('solve')
    assert not refused.success and 'too few' in refused.message
    assert not robot.trigger('publish').success
    feet = (('left',), ('right',), ('left', 'right'))
    for i in range(9):
        response = take(robot, feet[i % 3], str(i))
    assert 'CoM uncertainty' in response.message
    assert robot.trigger('solve').success
    robot.rig.until(lambda: robot.session.identification is not None, 30.0, 'the estimate')
    found, model = robot.session.identification, robot.true.model
    # One draw of nine noisy poses: within what it says of itself, which is not much.
    assert abs(found.mass - robot.true.static.mass) < 3.0 * found.mass_std < 0.6
    assert found.validated.com_rms < 0.7 * found.before.com_rms
    directory = tmp_path / 'sabian'
    for name in ('calibrated.urdf', 'report.html', 'calibration.json', 'captures.json'):
        assert (directory / name).stat().st_size > 1000
    received = robot.rig.peer.create_subscription(String, 'robot_description', lambda m: None, 1)
    robot.rig.peer.destroy_subscription(received)
    assert robot.trigger('publish').success
    messages = []
    robot.rig.peer.create_subscription(String, 'robot_description', messages.append, LATCHED)
    robot.rig.until(lambda: messages, what='robot_description')
    assert RobotModel(model.config, messages[0].data).mass == pytest.approx(found.mass)


def test_services_write_below_their_directory_only(tmp_path):
    """As SECURITY.md promises."""
    directory = tmp_path / 'results'
    robot = CalibratorRig(directory, automatic=False)
    try:
        robot.wait_for_plan()
        with written_files() as written:
            for i, feet in enumerate(3 * (('left',), ('right',), ('left', 'right'))):
                take(robot, feet, str(i))
            assert robot.trigger('solve').success
            robot.rig.until(lambda: robot.session.identification is not None, 30.0, 'results')
            robot.rig.until(lambda: (directory / 'sabian' / 'report.html').exists(), 30.0,
                            'the report')
            for name in ('publish', 'skip', 'reset'):
                robot.trigger(name)
    finally:
        robot.close()
    names = {path.name for path in written}
    assert {'captures.json', 'calibrated.urdf', 'report.html', 'captures.1.json'} <= names
    assert [path for path in written if directory not in (path, *path.parents)] == []


def test_captures_survive_a_restart(tmp_path):
    first = CalibratorRig(tmp_path, automatic=False)
    first.wait_for_plan()
    take(first, ('left', 'right'), 'one')
    planned = first.session.queue[0]
    at = first.true.capture(planned.standing, None, planned.positions)
    first.session.window.clear()
    first.stand(at, lambda: not first.session.window.problem)
    assert 'captured pose 1' in first.trigger('capture').message
    first.close()
    second = CalibratorRig(tmp_path, automatic=False)
    try:
        second.wait_for_plan()
        assert len(second.session.log.captures) == 2
        assert [pose.name for pose in second.session.queue] == ['pose 2', 'pose 3', 'pose 4']
        assert 'pose 2 skipped' in second.trigger('skip').message
        response = second.trigger('reset')
        assert response.success and 'captures.1.json' in response.message
        assert (Path(tmp_path) / 'sabian' / 'captures.1.json').exists()
    finally:
        second.close()


def test_a_moving_robot_is_not_captured(robot):
    robot.wait_for_plan()
    capture, count = robot.true.capture(('left', 'right'), None), [0]

    def moving():
        capture.positions[0] += 0.001
        count[0] += 1
        return count[0] > 60 and 'moved' in robot.session.window.problem

    robot.stand(capture, moving)
    response = robot.trigger('capture')
    assert not response.success and 'hold the robot still' in response.message
    assert not robot.session.log.captures


def test_poses_are_captured_as_they_are_reached(tmp_path):
    robot = CalibratorRig(tmp_path, poses=2, candidates=4)
    try:
        robot.wait_for_plan()
        targets = robot.rig.collect(JointState, 'com_calibrator/target', LATCHED)
        robot.rig.until(lambda: targets, what='the next pose')
        while robot.session.queue:
            pose, left = robot.session.queue[0], len(robot.session.queue)
            at = robot.true.capture(pose.standing, NOISE, pose.positions)
            robot.stand(at, lambda left=left: len(robot.session.queue) < left, 30.0)
        robot.rig.until(lambda: robot.session.state is SessionState.SOLVED, 30.0, 'the estimate')
        assert robot.session.identification.mass_std < 5.0
    finally:
        robot.close()


def test_a_pose_that_cannot_be_captured_is_skipped(tmp_path):
    robot = CalibratorRig(tmp_path, poses=3, candidates=6, move=True, pose_timeout=1.0,
                          joint_speed=5.0, ramp=0.05)
    try:
        sent = robot.rig.collect(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
        at = robot.true.capture(('left', 'right'), NOISE, robot.true.model.posture('stand'))
        robot.stand(at, lambda: sent, 60.0)
        progress = robot.rig.collect(String, 'com_calibrator/progress', LATCHED)
        restless, *others = robot.session.queue
        at = robot.true.capture(restless.standing, None, restless.positions)

        def trembles():
            at.positions[0] = restless.positions[0] + 0.02 * np.sin(20.0 * time.monotonic())
            return any('pose 1 skipped after 1 s: ' in text.data for text in progress)

        robot.stand(at, trembles, 30.0)
        assert any('moved' in text.data for text in progress)
        robot.stand(at, lambda: robot.session.state is SessionState.MOVING)
        assert [pose.name for pose in robot.session.queue] == [pose.name for pose in others]
        for pose in others:
            at = robot.true.capture(pose.standing, NOISE, pose.positions)
            robot.stand(at, lambda pose=pose: any(
                c.name == pose.name for c in robot.session.log.captures), 30.0)
        robot.stand(at, lambda: robot.session.identification is not None, 30.0)
        assert [c.name for c in robot.session.log.captures] == [
            'pose 1 again', 'pose 2', 'pose 2 again', 'pose 3', 'pose 3 again']
    finally:
        robot.close()


def test_offsets_of_a_tare_are_taken_off(robot):
    robot.wait_for_plan()
    offsets = float_array_publisher(
        robot.rig.peer, 'wrench_aggregator/offsets', 12,
        [f'{sensor}/{axis}' for sensor in ('right_foot', 'left_foot') for axis in AXES],
        qos=LATCHED)
    offsets.fields['data'][...] = np.arange(12.0)
    offsets.publish()
    robot.rig.until(lambda: robot.node.inputs.offsets.any(), what='offsets')
    capture = robot.true.capture(('left', 'right'), None)
    robot.stand(capture, lambda: not robot.session.window.problem)
    assert robot.trigger('capture').success
    found = robot.session.log.captures[0].wrenches
    names = list(robot.true.model.config.wrench_sensors)
    for sensor, first in (('right_foot', 0.0), ('left_foot', 6.0)):
        i = names.index(sensor)
        np.testing.assert_allclose(
            capture.wrenches[i] - found[i], first + np.arange(6.0), atol=1e-9)


def without_inertials(urdf):
    """Return a URDF as CAD exports that forgot the masses write it."""
    return re.sub('(?s)<inertial>.*?</inertial>', '', urdf)


def make_calibrator(directory, urdf):
    values = {'robot': 'sabian', 'directory': str(directory), 'poses': 2, 'candidates': 4,
              'hoisted': 0, 'automatic': False, 'urdf': urdf}
    return ComCalibrator(parameter_overrides=[
        Parameter(name, value=value) for name, value in values.items()])


def test_a_urdf_without_inertials_is_refused_with_what_is_needed(tmp_path):
    urdf = tmp_path / 'empty.urdf'
    urdf.write_text(without_inertials(RobotModel.load('sabian').urdf))
    with pytest.raises(RobotDescriptionError, match='export the URDF with its inertials'):
        make_calibrator(tmp_path, str(urdf))


def test_a_description_without_inertials_is_reported_and_a_complete_one_used(tmp_path):
    urdf = RobotModel.load('sabian').urdf
    rig = NodeRig(node=make_calibrator(tmp_path, 'topic'))
    try:
        received = rig.collect(DiagnosticArray, '/diagnostics')
        description = rig.publisher(String, 'robot_description', LATCHED)
        description.publish(String(data=without_inertials(urdf)))
        rig.until(lambda: any(
            status.level == DiagnosticStatus.ERROR
            and 'no link of the URDF has an <inertial>' in status.message
            and 'export the URDF with its inertials' in status.message
            for array in received for status in array.status), what='the diagnostics')
        assert rig.node.session is None
        description.publish(String(data=urdf))
        rig.until(lambda: rig.node.session is not None
                  and rig.node.session.state is SessionState.WAITING, 60.0, 'planned poses')
    finally:
        rig.close()


def test_noise_grows_with_the_mass_where_it_is_given_for_another_robot(tmp_path):
    node = ComCalibrator(parameter_overrides=[Parameter(name, value=value) for name, value in {
        'robot': 'sabian', 'directory': str(tmp_path), 'autostart': False, 'force_noise': 0.05,
        'noise_at_mass': 4.0}.items()])
    try:
        heavier = node.model.mass / 4.0
        noise, defaults = node.session.estimator.noise, ComCalibratorParameters()
        assert heavier > 10.0 and noise.force == pytest.approx(0.05 * heavier)
        for name in ('moment_bias', 'torque_bias', 'force_drift', 'moment_drift'):
            assert getattr(noise, name) == pytest.approx(getattr(defaults, name) * heavier)
        for name in ('wrench_gain', 'cross_talk', 'sensor_shift', 'torque_gain', 'friction'):
            assert getattr(noise, name) == getattr(defaults, name)
        still = node.session.window.options.force_deviation
        assert still == pytest.approx(defaults.still_force_deviation * heavier)
        assert noise.encoder == defaults.encoder_noise and noise.tilt == defaults.tilt_noise
    finally:
        node.destroy_node()


def test_the_node_assumes_what_the_estimator_does():
    """Its defaults are those of the library, so that calibrate finds the same."""
    assert sensor_noise(ComCalibratorParameters(), 64.0) == replace(
        SensorNoise(), encoder=0.00175, tilt=0.0009)


def test_the_parameter_file_holds_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/com_calibrator']['ros__parameters']
    defaults = ComCalibratorParameters()
    assert text == {field.name: getattr(defaults, field.name)
                    for field in dataclasses.fields(ComCalibratorParameters)}


def test_temporary_results_of_long_ago_are_removed_by_those_that_have_no_directory_either(
        tmp_path, monkeypatch):
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    three_link, params = RobotModel.load('three_link'), ComCalibratorParameters(directory='')
    old = results_directory(params, three_link).parent
    long_ago = time.time() - 86400.0 * (KEPT_DAYS + 1.0)
    os.utime(old, (long_ago, long_ago))
    kept = replace(params, directory=str(tmp_path / 'mine'))
    assert results_directory(kept, three_link) == tmp_path / 'mine' / 'three_link'
    assert old.exists()
    new = results_directory(params, three_link).parent
    assert new.exists() and not old.exists()
    results_directory(params, three_link)
    assert new.exists()


def test_the_papers_robot_goes_through_its_poses_a_and_b(tmp_path):
    true = TrueRobot('three_link', seed=3, extra=0.0, com_sigma=0.0)
    robot = CalibratorRig(tmp_path, true, autostart=False)
    try:
        refused = robot.trigger('two_pose')
        assert not refused.success and 'capture an upright pose' in refused.message
        for name in 'ab':
            pose = true.capture(('left', 'right'), positions=true.model.posture(name))
            robot.stand(pose, lambda: not robot.session.window.problem)
            assert robot.trigger('capture').success
        response = robot.trigger('two_pose')
        assert response.success and 'two poses, 10.00 deg apart' in response.message
        found = {name: 1e-3 * float(value) for name, value in re.findall(
            r'([rl]_w) = (-?[\d.]+) ', response.message)}
        report = robot.trigger('poses')
        assert report.success and 'poses determine 3 of 11 combinations' in report.message
        assert 'confounded: ' in report.message and 'move ' in report.message
        state = true.model.state(true.model.posture('a'))
        leaning = [i for i, link in enumerate(true.model.link_names) if not link.endswith('foot')]
        masses = true.model.link_masses[leaning]
        com = masses @ state.link_coms_in_base[leaning] / masses.sum()
        ankles = state.placements_in_base(true.model.frames(('l_foot', 'r_foot')))[:, 3]
        expected = com - ankles.mean(axis=0)
        assert (found['r_w'], found['l_w']) == pytest.approx(expected[[0, 2]], abs=1.1e-5)
    finally:
        robot.close()
