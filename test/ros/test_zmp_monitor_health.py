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

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.keyframes import HipShift
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.messages import parameters as parameters_of
from support.monitored_robot import FEET_ONLY, MonitoredRobot, swaying, vectors

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture(scope='module')
def samples():
    return swaying()


@pytest.fixture
def rig(request):
    """Return the node with its drivers, and parameters that a test gives."""
    rig = MonitoredRobot(**getattr(request, 'param', {}))
    yield rig
    rig.close()


def with_wrenches(samples, change):
    """Return samples whose wrenches, (2, 6), are changed."""
    return [replace(s, wrenches=change(s.wrenches)) for s in samples]


def test_wrong_sign_is_named_and_nothing_bogus_is_published(rig, samples):
    pulled = with_wrenches(samples, np.negative)
    rig.diagnosis('weight', WARN, pulled, words=(
        'flip wrench_sensors.left_foot.sign, wrench_sensors.right_foot.sign'))
    assert not rig.got['zmp'] and not rig.got['margin'] and not rig.got['zmp_difference']
    rig.diagnosis('zmp', ERROR, pulled, words='no ground reaction force')


def test_a_fall_is_named_by_the_lean_alone_whatever_touches_the_ground(rig, samples):
    lying = Pose.from_rpy((0.0, 1.4, 0.0), np.zeros(3)).quaternion
    for share in (1.0, 0.0):
        message = rig.diagnosis('stability', ERROR, [
            replace(s, quaternion=lying, wrenches=share * s.wrenches) for s in samples],
            words='fallen: the base leans by 80.2 deg')
        assert 'ZMP' not in message and 'DCM' not in message
    event, = (status for array in rig.latched['event'] for status in array.status
              if status.message.startswith('fallen'))
    assert event.message == message
    report = rig.node.diagnostics.status('stability')
    assert [value.value for value in report.values if value.key == 'level'] == ['FALLEN']


@pytest.mark.parametrize(('silent', 'named'), [
    ('right', 'wrench of the right foot'), ('base', 'IMU'), ('joints', 'joint states')])
@pytest.mark.parametrize('rig', [{'sensor_timeout': 0.2}], indirect=True)
def test_a_dead_sensor_stops_everything_and_is_named(rig, silent, named, samples):
    rig.play(samples[:20])
    assert rig.got['zmp']
    rig.clear()
    rest = tuple(name for name in FEET_ONLY if name != silent)
    for line in ('stability', 'zmp'):
        rig.diagnosis(line, ERROR, samples, f'waiting for {named}', order=rest)
        assert not any(rig.got.values())


def test_numbers_that_are_not_finite_are_refused(rig, samples):
    rig.play(with_wrenches(
        samples, lambda w: w + [[0.0, 0.0, np.nan, 0.0, 0.0, 0.0], [0.0] * 6]))
    assert not rig.got['zmp']
    assert 'wrench.force.z = nan' in rig.node.inputs.wrenches[0].last_error


def test_any_frame_of_the_foot_will_do_but_no_other(rig, samples):
    state = rig.node.model.state(rig.node.model.posture())

    def moved(wrenches):
        found = []
        for wrench, side in zip(wrenches, 'lr'):
            pose = state.pose_in_base(f'{side}_ankle_ft').inverse() @ state.pose_in_base(
                f'{side}_sole')
            force = pose.rotation @ wrench[:3]
            found.append((*force, *pose.rotation @ wrench[3:] + np.cross(pose.position, force)))
        return np.array(found)
    rig.play(with_wrenches(samples[:40], moved), frames=('l_ankle_ft', 'r_ankle_ft'))
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point'), [
        s.report.zmp_in_world for s in samples[:40]], atol=1e-9)
    for frames, words in ((('torso', 'r_sole'), "frame 'torso', which is not fixed to its sole"),
                          (('l_sol', 'r_sole'), "unknown frame 'l_sol'")):
        rig.diagnosis('callbacks', ERROR, samples, words, frames=frames)


def test_soles_out_of_plane_and_a_wrong_model_are_reported(rig, samples):
    knee = 0.5 * (np.array(rig.node.model.joint_names) == 'l_knee')
    rig.diagnosis('support', WARN, [replace(s, positions=s.positions + knee) for s in samples],
                  'mm out of one plane (unevenness_warning: 10 mm), and the ZMP')
    rig.diagnosis('zmp', WARN, with_wrenches(
        samples, lambda w: w + [0.0, 0.0, 0.0, 0.0, 2.5, 0.0]),
                  'mm rms (difference_warning: 30 mm): calibrate')


@pytest.mark.parametrize('rig', [{'base_source': 'odometry'}], indirect=True)
def test_on_stairs_support_is_between_the_soles_and_reported(rig, samples):
    """The left foot stands 60 mm higher; the base is known from elsewhere."""
    model = rig.node.model
    climbing = HipShift(model, model.posture()).positions(
        (0.0, 0.0, -0.02), sole_moves={0: Pose(np.eye(3), np.array((0.05, 0.0, 0.06)))})
    soles = model.state(climbing).placements_in_base(model.soles)[:, 3]
    base = Pose(np.eye(3), np.array((12.0, -7.0, 3.0)) - soles[1])
    stairs = [replace(
        s, positions=climbing, velocities=np.zeros_like(climbing), base=base,
        wrenches=np.array([(0.0, 0.0, 0.5 * 9.81 * model.mass, 0.0, 0.0, 0.0)] * 2))
        for s in samples[:40]]
    rig.play(stairs)
    middle = (12.0, -7.0, 3.0) + 0.5 * (soles[0] - soles[1])
    assert middle[2] == pytest.approx(3.03)
    np.testing.assert_allclose(vectors(rig.got['zmp'], 'point')[-1], middle, atol=1e-9)
    np.testing.assert_allclose(rig.corners()[:, 2], 3.03, atol=1e-6)
    shown = rig.markers()
    assert [shown[key].pose.position.z for key in (('cop', 0), ('cop', 1), ('com', 1))] == (
        pytest.approx([3.06, 3.0, 3.03], rel=1e-6))
    rig.diagnosis('support', OK, stairs, 'support region computed from friction: soles on steps')


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
        ZmpMonitor(parameter_overrides=parameters_of(**parameters))
