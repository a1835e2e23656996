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

from dataclasses import replace
import os
import re
import time

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.files import KEPT_DAYS
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.identification.session import SessionState
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.inputs import AXES
from biped_com_ros.nodes.com_calibrator.node import ComCalibrator
from biped_com_ros.nodes.com_calibrator.parameters import (
    ComCalibratorParameters, results_directory)
from biped_com_ros.ros.topics.outputs import float_array_publisher
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from support.messages import imu, joint_state, parameters, wrench_stamped
from support.ros_rig import NodeRig
from support.settings import lines
from support.statics_data import NOISE, TrueRobot
from support.written_files import written_files
from trajectory_msgs.msg import JointTrajectory


class CalibratorRig(NodeRig):
    """A robot that stands still in captured poses, as topics; and the calibrator."""

    def __init__(self, directory, true=None, **values):
        self.true = true or TrueRobot('sabian', seed=2)
        config = self.true.model.config
        super().__init__(node=ComCalibrator(parameter_overrides=parameters(**{
            'robot': config.name, 'directory': str(directory), 'poses': 4, 'candidates': 8,
            'hoisted': 0, 'still_duration': 0.3, 'still_force_deviation': 50.0, **values})))
        self._joints = self.publisher(JointState, 'joint_states')
        self._imu = self.publisher(Imu, config.imu.topic)
        self._wrenches = [(sensor, self.publisher(WrenchStamped, sensor.topic))
                          for sensor in config.wrench_sensors.values()]
        if self.node.params.autostart and not self.node.params.session.move:
            self.until(lambda: self.session.state is SessionState.WAITING, 60.0, 'planned poses')

    @property
    def session(self):
        """Return the calibration; the model is read from a file, so it is there at once."""
        return self.node.session

    def stand(self, capture, until):
        """Publish one pose until something has happened."""
        self.until(lambda: self.publish(capture) or until(), what='the calibrator')

    def publish(self, capture):
        """Publish one pose once."""
        stamp, true = self.peer.get_clock().now().to_msg(), self.true.model
        x, y, z = capture.up
        self._joints.publish(joint_state(
            stamp, true.joint_names, capture.positions, [0.0] * len(capture.positions),
            capture.torques))
        # An orientation whose inverse turns the vertical into `up`.
        self._imu.publish(imu(stamp, true.config.imu.frame, np.array(
            (y, -x, 0.0, 1.0 + z)) / np.linalg.norm((y, -x, 0.0, 1.0 + z))))
        for (sensor, publisher), wrench in zip(self._wrenches, capture.wrenches):
            publisher.publish(wrench_stamped(stamp, sensor.frame, wrench))
        self.spin(0.01)

    def do(self, name):
        """Call a service of the calibrator."""
        return self.trigger(f'com_calibrator/{name}')

    def take(self, standing, positions=None):
        """Stand in a pose, default: a random one, and capture it by the service."""
        capture, count = self.true.capture(
            standing, NOISE, positions), len(self.session.log.captures)
        self.session.window.clear()
        self.stand(capture, lambda: not self.session.window.problem)
        response = self.do('capture')
        assert response.success, response.message
        assert len(self.session.log.captures) == count + 1
        return response.message


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the rig, of which one is there at a time."""
    rigs = []

    def make_rig(*arguments, **values):
        while rigs:
            rigs.pop().close()
        rigs.append(CalibratorRig(tmp_path / 'results', *arguments, **values))
        return rigs[-1]
    yield make_rig
    for rig in rigs:
        rig.close()


@pytest.fixture
def robot(make):
    """Return a robot with good foot sensors, and a calibrator that a person drives."""
    return make(automatic=False, noise=lines(
        recording_gain=0.0, wrench_gain=0.005, cross_talk=0.005))


def test_by_hand_from_captures_to_results_below_the_directory_only(robot, tmp_path):
    """SECURITY.md promises where services write."""
    refused = robot.do('solve')
    assert not refused.success and 'too few' in refused.message
    assert not robot.do('publish').success
    with written_files() as written:
        for feet in 3 * (('left',), ('right',), ('left', 'right')):
            assert 'CoM uncertainty' in robot.take(feet)
        assert robot.do('solve').success
        robot.until(lambda: robot.session.identification is not None, what='the estimate')
        found, model = robot.session.identification, robot.true.model
        # One draw of nine noisy poses: within what it says of itself, which is not much.
        assert abs(found.mass - robot.true.static.mass) < 3.0 * found.mass_std < 0.6
        assert found.validated.com_rms < 0.7 * found.before.com_rms
        results = tmp_path / 'results' / 'sabian'
        robot.until(lambda: (results / 'report.html').exists(), what='the report')
        for name in ('calibrated.urdf', 'report.html', 'calibration.json', 'captures.json'):
            assert (results / name).stat().st_size > 1000
        assert robot.do('publish').success
        messages = robot.collect(String, 'robot_description', LATCHED)
        robot.until(lambda: messages, what='robot_description')
        assert RobotModel(model.config, messages[0].data).mass == pytest.approx(found.mass)
        for name in ('skip', 'reset'):
            robot.do(name)
    names = {path.name for path in written}
    assert {'captures.json', 'calibrated.urdf', 'report.html', 'captures.1.json'} <= names
    assert [path for path in written if tmp_path / 'results' not in (path, *path.parents)] == []


@pytest.mark.thorough
def test_captures_survive_a_restart(make, tmp_path):
    first = make(automatic=False)
    first.take(('left', 'right'))
    planned = first.session.queue[0]
    assert 'captured pose 1' in first.take(planned.standing, planned.positions)
    second = make(automatic=False)
    assert len(second.session.log.captures) == 2
    assert [pose.name for pose in second.session.queue] == ['pose 2', 'pose 3', 'pose 4']
    assert 'pose 2 skipped' in second.do('skip').message
    response = second.do('reset')
    assert response.success and 'captures.1.json' in response.message
    assert (tmp_path / 'results' / 'sabian' / 'captures.1.json').exists()


def test_a_moving_robot_is_not_captured(robot):
    capture = robot.true.capture(('left', 'right'), None)
    for _ in range(60):
        capture.positions[0] += 0.001
        robot.publish(capture)
    assert 'moved' in robot.session.window.problem
    response = robot.do('capture')
    assert not response.success and 'hold the robot still' in response.message
    assert not robot.session.log.captures


def test_poses_are_captured_as_they_are_reached(make):
    robot = make(poses=2, candidates=4)
    targets = robot.collect(JointState, 'com_calibrator/target', LATCHED)
    robot.until(lambda: targets, what='the next pose')
    while robot.session.queue:
        pose, left = robot.session.queue[0], len(robot.session.queue)
        at = robot.true.capture(pose.standing, NOISE, pose.positions)
        robot.stand(at, lambda left=left: len(robot.session.queue) < left)
    robot.until(lambda: robot.session.state is SessionState.SOLVED, what='the estimate')
    assert robot.session.identification.mass_std < 5.0


@pytest.mark.thorough
def test_a_pose_that_cannot_be_captured_is_skipped(make):
    robot = make(poses=3, candidates=6, move=True, pose_timeout=1.0, joint_speed=5.0, ramp=0.05)
    sent = robot.collect(JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
    progress = robot.collect(String, 'com_calibrator/progress', LATCHED)
    at = robot.true.capture(('left', 'right'), NOISE, robot.true.model.posture('stand'))
    robot.stand(at, lambda: sent)
    restless, *others = robot.session.queue
    at = robot.true.capture(restless.standing, None, restless.positions)

    def trembles():
        now = 1e-9 * (robot.peer.get_clock().now().nanoseconds % 10**12)
        at.positions[0] = restless.positions[0] + 0.02 * np.sin(20.0 * now)
        return any('pose 1 skipped after 1 s: ' in text.data for text in progress)

    robot.stand(at, trembles)
    assert any('moved' in text.data for text in progress)
    robot.stand(at, lambda: robot.session.state is SessionState.MOVING)
    assert [pose.name for pose in robot.session.queue] == [pose.name for pose in others]
    for pose in others:
        at = robot.true.capture(pose.standing, NOISE, pose.positions)
        robot.stand(at, lambda pose=pose: any(
            c.name == pose.name for c in robot.session.log.captures))
    robot.stand(at, lambda: robot.session.identification is not None)
    assert [c.name for c in robot.session.log.captures] == [
        'pose 1 again', 'pose 2', 'pose 2 again', 'pose 3', 'pose 3 again']


def test_offsets_of_a_tare_are_taken_off(robot):
    offsets = float_array_publisher(
        robot.peer, 'wrench_aggregator/offsets', 12,
        [f'{sensor}/{axis}' for sensor in ('right_foot', 'left_foot') for axis in AXES],
        qos=LATCHED)
    offsets.fields['data'][...] = np.arange(12.0)
    offsets.publish()
    robot.until(lambda: robot.node.inputs.offsets.any(), what='offsets')
    capture = robot.true.capture(('left', 'right'), None)
    robot.stand(capture, lambda: not robot.session.window.problem)
    assert robot.do('capture').success
    found = dict(zip(robot.true.model.config.wrench_sensors,
                     capture.wrenches - np.array(robot.session.log.captures[0].wrenches)))
    np.testing.assert_allclose(
        [*found['right_foot'], *found['left_foot']], np.arange(12.0), atol=1e-9)


def without_inertials(urdf):
    """Return a URDF as CAD exports that forgot the masses write it."""
    return re.sub('(?s)<inertial>.*?</inertial>', '', urdf)


def make_calibrator(directory, urdf):
    return ComCalibrator(parameter_overrides=parameters(
        robot='sabian', directory=str(directory), poses=2, candidates=4, hoisted=0,
        automatic=False, urdf=urdf))


def test_a_urdf_without_inertials_is_refused_with_what_is_needed(tmp_path):
    urdf = tmp_path / 'empty.urdf'
    urdf.write_text(without_inertials(RobotModel.load('sabian').urdf))
    with pytest.raises(RobotDescriptionError, match='export the URDF with its inertials'):
        make_calibrator(tmp_path, str(urdf))


def test_a_description_without_inertials_is_reported_and_a_complete_one_used(tmp_path, closing):
    urdf = RobotModel.load('sabian').urdf
    rig = closing(NodeRig(node=make_calibrator(tmp_path, 'topic')))
    rig.record_statuses()
    description = rig.publisher(String, 'robot_description', LATCHED)
    description.publish(String(data=without_inertials(urdf)))
    words = 'no link of the URDF has an <inertial>', 'export the URDF with its inertials'
    rig.until(lambda: any(
        level == DiagnosticStatus.ERROR and all(word in message for word in words)
        for level, message in rig.statuses.values()), what='the diagnostics')
    assert rig.node.session is None
    description.publish(String(data=urdf))
    rig.until(lambda: rig.node.session is not None
              and rig.node.session.state is SessionState.WAITING, 60.0, 'planned poses')


def test_noise_grows_with_the_mass_where_it_is_given_for_another_robot(tmp_path, closing):
    node = closing(ComCalibrator(parameter_overrides=parameters(
        robot='sabian', directory=str(tmp_path), autostart=False,
        noise=['force_noise 0.05'], noise_at_mass=4.0)))
    heavier = node.model.mass / 4.0
    noise, defaults = node.session.estimator.noise, SensorNoise()
    assert heavier > 10.0 and noise.force == pytest.approx(0.05 * heavier)
    for name in ('moment_bias', 'torque_bias', 'force_drift', 'moment_drift'):
        assert getattr(noise, name) == pytest.approx(getattr(defaults, name) * heavier)
    for name in ('recording_gain', 'wrench_gain', 'cross_talk', 'sensor_shift', 'torque_gain',
                 'friction'):
        assert getattr(noise, name) == getattr(defaults, name)
    still = node.session.window.options.force_deviation
    assert still == pytest.approx(StillnessOptions().force_deviation * heavier)
    assert noise.encoder == defaults.encoder and noise.tilt == defaults.tilt


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


def test_the_papers_robot_goes_through_its_poses_a_and_b(make):
    true = TrueRobot('three_link', seed=3, extra=0.0, com_sigma=0.0)
    robot, model = make(true, autostart=False), true.model
    refused = robot.do('two_pose')
    assert not refused.success and 'capture an upright pose' in refused.message
    for name in 'ab':
        pose = true.capture(('left', 'right'), positions=model.posture(name))
        robot.stand(pose, lambda: not robot.session.window.problem)
        assert robot.do('capture').success
    response = robot.do('two_pose')
    assert response.success and 'two poses, 10.00 deg apart' in response.message
    found = {name: 1e-3 * float(value) for name, value in re.findall(
        r'([rl]_w) = (-?[\d.]+) ', response.message)}
    report = robot.do('poses')
    assert report.success and 'poses determine 3 of 11 combinations' in report.message
    assert 'confounded: ' in report.message and 'move ' in report.message
    state = model.state(model.posture('a'))
    leaning = [i for i, link in enumerate(model.link_names) if not link.endswith('foot')]
    masses = model.link_masses[leaning]
    com = masses @ state.link_coms_in_base[leaning] / masses.sum()
    ankles = state.placements_in_base(model.frames(('l_foot', 'r_foot')))[:, 3]
    expected = com - ankles.mean(axis=0)
    assert (found['r_w'], found['l_w']) == pytest.approx(expected[[0, 2]], abs=1.1e-5)
