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
"""What `zmp_monitor` does with bad input, and what it reports on /diagnostics."""

import dataclasses
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.keyframes import HipShift
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.nodes.zmp_monitor.parameters import ZmpMonitorParameters
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from rclpy.parameter import Parameter
from support.monitored_robot import MonitoredRobot, record, vectors
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'zmp_monitor.yaml'
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture(scope='module')
def swaying():
    return record(0.6, lambda t: (0.01 * np.sin(9.0 * t), 0.015 * np.sin(6.0 * t), 0.0))


@pytest.fixture
def robot(request):
    robots = []

    def make(**parameters):
        robots.append(MonitoredRobot(**parameters))
        return robots[-1]
    yield make
    for made in robots:
        made.close()


def test_wrong_sign_is_named_and_nothing_bogus_is_published(robot, swaying):
    _, samples = swaying
    rig = robot()
    pulled = [dataclasses.replace(s, wrenches=-s.wrenches) for s in samples]
    rig.diagnosis('weight', WARN, pulled, words=(
        'flip wrench_sensors.left_foot.sign, wrench_sensors.right_foot.sign'))
    assert not rig.got['zmp'] and not rig.got['margin'] and not rig.got['zmp_difference']
    rig.diagnosis('zmp', ERROR, pulled, words='no ground reaction force')


def test_a_fall_is_named_by_the_lean_alone_whatever_touches_the_ground(robot, swaying):
    _, samples = swaying
    rig = robot()
    lying = Pose.from_rpy((0.0, 1.4, 0.0), np.zeros(3)).quaternion
    for share in (1.0, 0.0):
        message = rig.diagnosis('stability', ERROR, [
            dataclasses.replace(s, quaternion=lying, wrenches=share * s.wrenches)
            for s in samples], words='fallen: the base leans by 80.2 deg')
        assert 'ZMP' not in message and 'DCM' not in message
    event, = (status for array in rig.latched['event'] for status in array.status
              if status.message.startswith('fallen'))
    assert event.message == message
    report = rig.node.diagnostics.status('stability')
    assert [value.value for value in report.values if value.key == 'level'] == ['FALLEN']


@pytest.mark.parametrize(('silent', 'named'), [
    ('right', 'wrench of the right foot'), ('base', 'IMU'), ('joints', 'joint states')])
def test_a_dead_sensor_stops_everything_and_is_named(robot, swaying, silent, named):
    _, samples = swaying
    rig = robot(sensor_timeout=0.2)
    rig.play(samples[:20])
    assert rig.got['zmp']
    for messages in rig.got.values():
        messages.clear()
    rest = tuple(name for name in ('joints', 'base', 'left', 'right') if name != silent)
    rig.diagnosis('stability', ERROR, samples, f'waiting for {named}', order=rest)
    assert not any(rig.got.values())
    rig.diagnosis('zmp', ERROR, samples, f'waiting for {named}', order=rest)


def test_numbers_that_are_not_finite_are_refused(robot, swaying):
    _, samples = swaying
    rig = robot()
    broken = np.array(samples[0].wrenches)
    broken[0, 2] = np.nan
    rig.play([dataclasses.replace(s, wrenches=broken) for s in samples[:10]])
    assert not rig.got['zmp']
    assert 'wrench.force.z = nan' in rig.node.inputs.wrenches[0].last_error


def test_any_frame_of_the_foot_will_do_but_no_other(robot, swaying):
    model, samples = swaying
    rig = robot()
    state = model.state(model.posture())
    moved = []
    for sample in samples[:40]:
        wrenches = sample.wrenches.copy()
        for i, (sole, ankle) in enumerate((('l_sole', 'l_ankle_ft'), ('r_sole', 'r_ankle_ft'))):
            pose = state.pose_in_base(ankle).inverse() @ state.pose_in_base(sole)
            force = pose.rotation @ wrenches[i, :3]
            wrenches[i] = *force, *(
                pose.rotation @ wrenches[i, 3:] + np.cross(pose.position, force))
        moved.append(dataclasses.replace(sample, wrenches=wrenches))
    rig.play(moved, frames=('l_ankle_ft', 'r_ankle_ft'))
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point'), [
        s.report.zmp_in_world for s in samples[:40]], atol=1e-9)
    for frames, words in ((('torso', 'r_sole'), "frame 'torso', which is not fixed to its sole"),
                          (('l_sol', 'r_sole'), "unknown frame 'l_sol'")):
        rig.diagnosis('callbacks', ERROR, samples, words, frames=frames)


def test_soles_out_of_plane_and_a_wrong_model_are_reported(robot, swaying):
    model, samples = swaying
    rig = robot()
    knee = model.joint_index(['l_knee'])[0]

    bent = []
    for s in samples:
        positions = s.positions.copy()
        positions[knee] += 0.5
        bent.append(dataclasses.replace(s, positions=positions))
    rig.diagnosis('support', WARN, bent,
                  'mm out of one plane (unevenness_warning: 10 mm), and the ZMP')
    pushed = np.array([[0.0, 0.0, 0.0, 0.0, 2.5, 0.0]] * 2)
    shoved = [dataclasses.replace(s, wrenches=s.wrenches + pushed) for s in samples]
    rig.diagnosis('zmp', WARN, shoved, 'mm rms (difference_warning: 30 mm): calibrate')


def test_on_stairs_support_is_between_the_soles_and_reported(robot, swaying):
    """The left foot stands 60 mm higher; the base is known from elsewhere."""
    model, samples = swaying
    hips = HipShift(model, model.posture())
    climbing = hips.positions(
        (0.0, 0.0, -0.02), sole_moves={0: Pose(np.eye(3), np.array((0.05, 0.0, 0.06)))})
    state = model.state(climbing)
    soles = state.placements_in_base(model.soles)[:, 3]
    base = Pose(np.eye(3), np.array((12.0, -7.0, 3.0)) - soles[1])
    wrench = np.array((0.0, 0.0, 0.5 * 9.81 * model.mass, 0.0, 0.0, 0.0))
    stairs = [dataclasses.replace(
        s, positions=climbing, velocities=np.zeros_like(climbing), base=base,
        wrenches=np.array((wrench, wrench))) for s in samples[:40]]
    rig = robot(base_source='odometry')
    rig.play(stairs)
    middle = (12.0, -7.0, 3.0) + 0.5 * (soles[0] - soles[1])
    assert middle[2] == pytest.approx(3.03)
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point')[-1], middle, atol=1e-9)
    corners = np.array([[p.x, p.y, p.z] for p in rig.got['support_polygon'][-1].polygon.points])
    np.testing.assert_allclose(corners[:, 2], 3.03, atol=1e-6)
    shown = {(m.ns, m.id): m for m in rig.got['markers'][-1].markers}
    assert shown['cop', 0].pose.position.z == pytest.approx(3.06)
    assert shown['cop', 1].pose.position.z == pytest.approx(3.0)
    assert shown['com', 1].pose.position.z == pytest.approx(3.03, abs=1e-6)
    rig.diagnosis('support', OK, stairs, 'support region computed from friction: soles on steps')


def test_the_parameter_file_has_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/zmp_monitor']['ros__parameters']
    defaults = ZmpMonitorParameters()
    assert text == {f.name: getattr(defaults, f.name)
                    for f in dataclasses.fields(ZmpMonitorParameters)}


@pytest.mark.parametrize(('parameters', 'message'), [
    ({'wrench_topics': ['one']}, 'must be 2 topics, one per foot, in the order left, right'),
    ({'base_source': 'gps'}, "'imu', 'filter', 'odometry', 'tf', 'fixed'"),
    ({'tilt_unstable': 1.5},
     "'tilt_unstable' is 1.5 rad; it must be below 'tilt_fallen', 1.0 rad: lower it"),
    ({'model_method': 'guess'}, "'full', 'links', 'point', 'static'"),
    ({'contact_release': 0.5},
     "'contact_release' is 0.5; it must be below 'contact_engage', 0.06 .* lower it"),
])
def test_a_start_that_makes_no_sense_is_one_clear_error(parameters, message):
    with pytest.raises(ConfigurationError, match=message):
        ZmpMonitor(parameter_overrides=[Parameter(n, value=v) for n, v in parameters.items()])
