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
"""
The torso's node over DDS, with a made-up torso that follows its tendons.

Whatever happens, every length sent is finite, within the limits, and near to the one before.
"""

import itertools
import math
import os
from pathlib import Path

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import make_settings
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.controller import MAX_UPDATE_STEP
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.nodes.torso_controller.parameters import (
    find_weakness, make_controller, TorsoControllerParameters)
from biped_com_ros.ros.node.clock import steady_time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Vector3, Vector3Stamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import numpy as np
import pytest
from rclpy.parameter import Parameter
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState, Joy
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from support.messages import imu, joint_state, parameters, wrench_stamped
from support.ros_rig import NodeRig
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'torso_controller.yaml'
COUNTER = itertools.count()
PARAMETERS = TorsoControllerParameters()


@pytest.fixture(scope='module')
def body():
    body = TorsoBody(RobotModel.load('biped'))
    body.use_imus('imu_link', 'torso_imu_link')
    return body


class TorsoRig(NodeRig):
    """The node, a torso with the shape that its tendons command, and a subscriber."""

    def __init__(self, body, **values):
        self.body, self.limits = body, make_controller(body, PARAMETERS).length_limits
        self.lean = Rotation.from_euler('xyz', (0.05, -0.1, 0.6))  # of the pelvis in the world
        self.sound()
        self.shape, self.lengths, self.shapes, self.joints, self.got = np.zeros(4), [], [], [], {}
        space = f'torso_{next(COUNTER)}'
        super().__init__(namespace=space, node=TorsoController(
            namespace=space, parameter_overrides=parameters(**{
                'robot': 'biped', 'max_acceleration': 10.0, **values})))
        create = self.peer.create_publisher
        self._imus = create(Imu, 'imu', 10), create(Imu, 'torso_imu', 10)
        self._tendons = create(JointState, 'tendon_states', 10)
        self._hand = create(WrenchStamped, 'left_hand/wrench', 10)
        for kind, topic, store in (
                (Float64MultiArray, 'torso_controller/tendon_lengths', self._on_lengths),
                (Vector3Stamped, 'torso_controller/shape', self.shapes.append),
                (JointState, 'torso_controller/joint_states', self.joints.append),
                (Vector3Stamped, 'torso_controller/reference', self._keep('reference')),
                (Float64MultiArray, 'torso_controller/tensions', self._keep('tensions')),
                (WrenchStamped, 'torso_controller/wrench', self._keep('wrench')),
                (MarkerArray, 'torso_controller/markers', self._keep('markers')),
                (TFMessage, '/tf', self._keep('tf'))):
            self.peer.create_subscription(kind, topic, store, 100)
        self.record_statuses()
        self.peer.create_timer(0.005, self.sense)
        self.target = self.publisher(Vector3Stamped, 'torso_controller/target')
        self._services = {
            kind: self.peer.create_client(kind, f'torso_controller/{name}') for kind, name in (
                (SetBool, 'freeze'), (ChangeState, 'change_state'))}
        self.until(lambda: self.lengths and self.shapes and 'tensions' in self.got, what='lengths')

    def sound(self, silent=(), spoilt=(), flip=None):
        """
        Let all sensors and tendons be sound, but for some.

        Parameters
        ----------
        silent, spoilt
            Sensors that send nothing, or no numbers; 'unit': lengths in millimetres.
        flip
            How the torso's IMU is mounted wrongly.

        """
        self.silent, self.spoilt, self.flip = silent, spoilt, flip or Rotation.identity()
        self.cut, self.hand_force = (), None

    def _keep(self, name):
        return lambda message: self.got.__setitem__(name, message)

    @property
    def status(self):
        """(level, message) of the line about the torso."""
        return self.statuses.get('torso', (None, ''))

    def _on_lengths(self, message):
        lengths = np.array(message.data)
        assert np.isfinite(lengths).all()
        assert (lengths >= self.limits[0]).all() and (lengths <= self.limits[1]).all()
        if self.lengths:
            assert np.abs(lengths - self.lengths[-1]).max() < 0.004
        self.lengths.append(lengths)
        # Stiff enough tendons: where they ask to be, sharing out the stretch they mean.
        self.shape[:2] = self.body.backbone.shape_from_lengths(lengths)[:2] * 0.95

    def sense(self):
        """Publish what the sensors measure."""
        stamp = self.peer.get_clock().now().to_msg()
        upper = self.lean * Rotation.from_matrix(self.body.backbone.tip(self.shape).rotation)
        for name, publisher, frame, attitude in (
                ('imu', self._imus[0], 'imu_link', self.lean),
                ('torso_imu', self._imus[1], 'torso_imu_link', upper * self.flip)):
            if name not in self.silent:
                gyro = (0.0, math.nan if name in self.spoilt else 0.0, 0.0)
                publisher.publish(imu(stamp, frame, attitude.as_quat(), gyro))
        if self.hand_force is not None:
            self._hand.publish(wrench_stamped(stamp, 'l_gripper', (*self.hand_force, 0, 0, 0)))
        if 'tendons' not in self.silent:
            # What holds the bend against the spring: k_b theta / 2 r, more or less.
            angles, (a, b) = np.radians((180.0, 270.0, 0.0, 90.0)), self.shape[:2]
            tensions = 12.0 + 2.6 / 0.068 * (a * np.cos(angles) + b * np.sin(angles))
            tensions[list(self.cut)] = 0.0
            message = joint_state(
                stamp, [f'tendon_{i}' for i in range(4)], (
                    self.lengths[-1] if self.lengths else self.body.backbone.lengths(self.shape)),
                efforts=np.clip(tensions, 1e-3, None))
            if 'tendons' in self.spoilt:
                message.effort[1] = math.inf
            if 'unit' in self.spoilt:
                message.position = [1e3 * length for length in message.position]
            self._tendons.publish(message)

    def send(self, bend, direction=0.0, elongation=0.0):
        self.target.publish(Vector3Stamped(vector=Vector3(x=bend, y=direction, z=elongation)))

    def bend(self):
        v = self.shapes[-1].vector
        return v.x * np.array((math.cos(v.y), math.sin(v.y)))

    def bends_to(self, x, y, tolerance=0.01):
        """Wait until the torso is bent so."""
        self.until(lambda: np.hypot(*(self.bend() - (x, y))) < tolerance, what='bend')

    @property
    def tensions(self):
        return np.array(self.got['tensions'].data)

    def change(self, *transitions):
        return all(self.call(self._services[ChangeState], ChangeState.Request(
            transition=Transition(id=transition))).success for transition in transitions)

    def freeze(self, on):
        return self.call(self._services[SetBool], SetBool.Request(data=on)).success

    def reports(self, text):
        """Wait until the line about the torso has a text."""
        self.until(lambda: text in self.status[1], what=text)

    def is_well(self):
        """Wait until nothing is wrong with the torso."""
        self.until(lambda: self.status[0] == DiagnosticStatus.OK, what='OK')


@pytest.fixture
def rig(body, closing):
    """Return a function that makes a rig with other parameters."""
    return lambda **values: closing(TorsoRig(body, **values))


@pytest.fixture(scope='module')
def shared(body, closing_later):
    return closing_later(TorsoRig(body))


@pytest.fixture
def robot(shared):
    """Return the rig of all tests of this file, whose torso is upright and well."""
    shared.sound()
    shared.statuses.clear()
    shared.send(0.0)
    shared.is_well()
    shared.bends_to(0.0, 0.0)
    return shared


def test_it_goes_to_the_target_and_publishes_the_shape(robot, body):
    robot.send(0.2, 0.8)
    robot.bends_to(*make_shape(0.2, 0.8)[:2], math.radians(0.5))
    joints = robot.joints[-1]
    assert tuple(joints.name) == body.joint_names
    np.testing.assert_allclose(body.shape(np.array(joints.position))[:2], robot.bend(), atol=0.01)
    robot.until(lambda: {'tf', 'markers', 'reference', 'wrench'} <= set(robot.got), what='all')
    transform = robot.got['tf'].transforms[0]
    assert (transform.header.frame_id, transform.child_frame_id) == ('pelvis', 'torso_tip')
    tip = robot.got['markers'].markers[0].points[-1]
    assert tip.x > 0.003 and tip.y > 0.003 and tip.z > 0.1


def test_a_joystick_drives_it_and_its_silence_stops_it(rig):
    robot = rig(joy_timeout=0.3, max_speed=0.05)
    joy = robot.publisher(Joy, 'joy')
    for _ in range(10):
        joy.publish(Joy(axes=[1.0, 0.0]))  # left
        robot.spin(0.05)
    robot.reports('no message from joy')
    held = robot.bend()
    assert 0.005 < held[1] < 0.1 and abs(held[0]) < 0.01
    robot.spin(0.5)
    np.testing.assert_allclose(robot.bend(), held, atol=0.01)
    for axes, text in (([math.nan, 0.0], 'joystick axes must be finite'), ([], 'joy has 0 axes')):
        joy.publish(Joy(axes=axes))
        robot.reports(text)


def test_the_silence_of_who_sets_targets_stops_it(rig):
    robot = rig(target_timeout=0.3, max_speed=0.1)
    robot.send(0.2)
    robot.reports('no message from ~/target')
    held = robot.bend()
    assert 0.005 < held[0] < 0.15
    robot.spin(0.3)
    np.testing.assert_allclose(robot.bend(), held, atol=0.01)
    robot.send(0.2)
    robot.until(lambda: robot.bend()[0] > held[0] + 0.015, what='motion again')


def test_targets_that_cannot_be_are_named_and_lengths_stay_inside(robot):
    robot.send(1.0, 2.0)
    robot.reports('bend 57.3 deg is more than 15.0 deg')
    robot.send(math.nan)
    robot.reports('must be finite')
    assert np.isfinite(robot.lengths[-1]).all()
    robot.send(0.05)
    robot.bends_to(0.05, 0.0)


NO_DATA = 'open loop: no recent data of the torso IMU'


@pytest.mark.parametrize(('fault', 'words', 'topic', 'value'), (
    ({'silent': ('torso_imu',)}, NO_DATA, '', ''),
    ({'spoilt': ('imu',)}, NO_DATA, '/imu', 'nan'),
    ({'spoilt': ('torso_imu',)}, NO_DATA, '/torso_imu', 'nan'),
    ({'spoilt': ('tendons',)}, '', '/tendon_states', 'inf'),
    # Nothing is learnt from lengths in millimetres.
    ({'spoilt': ('unit',)}, '', '/tendon_states', 'is implausible (valid: 0.0645'),
    ({'flip': Rotation.from_euler('x', 180, degrees=True)}, 'the IMU is flipped', '', '')))
def test_what_is_measured_wrongly_is_named_and_the_torso_goes_on_without(
        robot, fault, words, topic, value):
    robot.sound(**fault)
    robot.reports(words)
    robot.until(lambda: any(topic in name and value in line
                            for name, (_, line) in robot.statuses.items()), what='the reason')
    count = len(robot.lengths)
    robot.send(0.15, math.pi / 2)
    robot.until(lambda: abs(robot.shape[1] - 0.15) < 0.03, what='bend')
    assert len(robot.lengths) > count + 5
    assert abs(robot.node.controller.yaw_offset.value) < 0.1
    robot.sound()
    robot.is_well()


def test_a_broken_tendon_is_an_error_and_holds(rig):
    robot = rig()
    robot.cut = (2,)
    robot.reports('tendon 2 stays without tension')
    assert robot.status[0] == DiagnosticStatus.ERROR
    before = robot.bend()
    robot.send(0.2)
    robot.spin(0.5)
    np.testing.assert_allclose(robot.bend(), before, atol=0.02)


def test_gains_limits_and_co_contraction_can_be_set_while_it_runs(rig):
    robot = rig()
    assert not robot.set_parameters(co_contraction=20.0, integral_gain=2.0, max_speed=0.3,
                                    marker_rate=5.0, imu_timeout=0.2)
    robot.until(lambda: np.mean(robot.tensions) > 19.5, what='co-contraction')
    assert robot.node.controller.options.motion.speed == 0.3
    start = steady_time()
    robot.send(0.2)
    robot.until(lambda: robot.bend()[0] > 0.18, what='bend')
    assert steady_time() - start > 0.18 / 0.3
    # What does not go together is refused, and nothing of it is used.
    for text, values in (("it must be below 'max_tension'", {'min_tension': 90.0}),
                         ('within the limits of the tensions', {'co_contraction': 70.0}),
                         ('out of range', {'integral_gain': -1.0}), ('', {'max_speed': 'fast'}),
                         ('', {'lower_imu': 'torso'})):  # read-only
        reason = robot.set_parameters(**values)
        assert reason and text in reason
    assert robot.node.params.control.co_contraction == 20.0
    assert robot.node.params.control.integral == 2.0


def test_the_wrench_on_a_hand_goes_into_the_tensions(rig, body):
    robot = rig(hand_topics=['left_hand/wrench', 'right_hand/wrench'])
    robot.is_well()
    at_rest = robot.tensions
    # 5 N down in the left hand, whose frame the standing posture gives.
    state = body.model.state(body.model.posture())
    pose = state.placements_in_base(body.model.frames(('l_gripper',)))[0]
    robot.hand_force = pose[:3] @ (0.0, 0.0, -5.0)
    # The right tendon (270 deg) has to pull more than the left one by what the lever asks for.
    expected = 5.0 * pose[3, 1] / 0.034
    robot.until(lambda: abs(robot.tensions - at_rest)[1] > 0.45 * expected,
                what='tensions for the load')
    change = robot.tensions - at_rest
    assert change[1] - change[3] == pytest.approx(expected, rel=0.05)
    robot.hand_force = None
    robot.until(lambda: np.abs(robot.tensions - at_rest).max() < 0.3,
                what='the load to be forgotten')


def test_freezing(robot):
    assert robot.freeze(True)
    robot.send(0.2)
    robot.reports('frozen')
    assert np.hypot(*robot.bend()) < 0.01
    assert robot.freeze(False)
    robot.send(0.2)
    robot.until(lambda: robot.bend()[0] > 0.15, what='bend')


def test_inactive_it_sends_nothing_and_it_starts_from_where_it_is(rig):
    robot = rig()
    robot.send(0.15, 1.0)
    robot.until(lambda: np.hypot(*robot.bend()) > 0.13, what='bend')
    assert robot.change(Transition.TRANSITION_DEACTIVATE)
    count, shape_count = len(robot.lengths), len(robot.shapes)
    robot.spin(0.3)
    assert len(robot.lengths) == count and len(robot.shapes) > shape_count
    assert robot.change(Transition.TRANSITION_ACTIVATE)
    robot.until(lambda: len(robot.lengths) > count + 20, what='lengths again')
    assert np.hypot(*(robot.bend() - make_shape(0.15, 1.0)[:2])) < 0.03
    assert robot.change(Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)
    assert not any(out.topic_name in ('/tf', f'{robot.node.get_fully_qualified_name()}/shape')
                   for out in robot.node.publishers)
    assert robot.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)


@pytest.mark.parametrize('parameters, words', [
    ({'robot': 'talos'}, 'has no tendon-driven torso'),
    ({'upper_imu': 'head'}, "has no IMU 'head'"),
    ({'upper_imu': 'base'}, 'must be fixed to the torso'),
    ({'min_tension': 80.0}, "it must be below 'max_tension'"),
    ({'co_contraction': 1.0}, 'within the limits of the tensions'),
    ({'hand_topics': ['a']}, 'has 1 topics; .* 2 hands'),
    ({'max_speed': 0.0}, 'out of range')])
def test_settings_that_make_no_sense_end_the_node(parameters, words):
    overrides = [Parameter(k, value=v) for k, v in {'robot': 'biped', **parameters}.items()]
    with pytest.raises(Exception, match=words):
        TorsoController(parameter_overrides=overrides)


@pytest.mark.parametrize('change, words', [
    ({'attachment_angles_deg': [0.0, 60.0, 120.0, 170.0]}, 'gap of 190 deg'),
    ({'attachment_angles_deg': [0.0, math.nan, 180.0, 270.0]}, 'attachment_angles_deg'),
    ({'radius': 0.0}, 'torso.radius is 0, in metres: it must be above 0'),
    ({'backbone_length': -0.1}, 'torso.backbone_length is -0.1, in metres: it must be above 0'),
    ({'bending_stiffness': -2.6}, "the backbone's stiffness: bending must be positive"),
    ({'axial_stiffness': 0.0}, 'axial'), ({'torsion_stiffness': math.nan}, 'torsion'),
    ({'max_bend_deg': 0.0}, 'torso.max_bend_deg is 0, in degrees: it must be above 0')])
def test_torsos_that_make_no_sense_end_the_node(change, words, tmp_path):
    robot = yaml.safe_load((CONFIG.parent / 'robots' / 'biped.yaml').read_text())
    robot['torso'].update(change)
    path = tmp_path / 'robot.yaml'
    path.write_text(yaml.safe_dump(robot))
    with pytest.raises(Exception, match=words):
        TorsoController(parameter_overrides=[Parameter('robot', value=str(path))])


def test_tendons_of_another_robot_are_found_too_weak(body):
    assert find_weakness(body, PARAMETERS) == ''
    sabian = TorsoBody(RobotModel.load('sabian'))
    assert 'cannot bend this torso by 15 deg' in find_weakness(sabian, PARAMETERS)
    own = yaml.safe_load((CONFIG.parent / 'torso' / 'sabian.yaml').read_text())
    values = own['/**/torso_controller']['ros__parameters']
    assert find_weakness(sabian, make_settings(TorsoControllerParameters, values)) == ''


def test_its_own_virtual_joints_on_joint_states_are_no_error(robot):
    publisher = robot.publisher(JointState, 'joint_states')
    source, names = robot.node.joint_states, list(robot.body.joint_names)
    for joints in (names, [*names, 'wing']):
        assert source.last_error == ''
        publisher.publish(joint_state(
            robot.node.get_clock().now().to_msg(), joints, [0.0] * len(joints)))
        robot.spin(0.01)
        assert source.refused['other joints'] == 1
    assert 'has none of the joints' in source.last_error and "'wing'" in source.last_error


def test_whatever_is_set_stops_or_restarts_no_length_steps(rig):
    """Sixty changes in random order: settings, targets, silent and wrong inputs, life cycle."""
    robot = rig(hand_topics=['left_hand/wrench', 'right_hand/wrench'])
    random = np.random.default_rng(int(os.environ.get('BIPED_COM_FUZZ_SEED', 5)))
    robot.is_well()
    inactive = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE
    changes = (
        lambda: robot.send(random.uniform(-0.3, 0.3), random.uniform(-3.0, 3.0),
                           random.uniform(-0.005, 0.005)),
        lambda: robot.sound(silent=random.choice(('imu', 'torso_imu', 'tendons'), 2)),
        lambda: robot.sound(spoilt=random.choice(('imu', 'torso_imu', 'tendons', 'unit'), 2)),
        lambda: setattr(robot, 'hand_force', (
            None, (0.0, 0.0, -8.0), (6.0, 0.0, 0.0))[random.integers(3)]),
        lambda: robot.sound(),
        lambda: robot.freeze(bool(random.integers(2))),
        lambda: robot.change(*inactive),
        lambda: robot.set_parameters(**{
            name: float(random.choice(values)) for name, values in (
                ('co_contraction', (10.0, 30.0)),
                ('integral_gain', (0.0, 4.0)), ('max_speed', (0.1, 0.5)))}))
    largest, first = 0.0, len(robot.lengths)
    for _ in range(60):
        changes[random.integers(len(changes))]()
        largest = max(largest, robot.node.controller.largest_rate * MAX_UPDATE_STEP)
        robot.spin(0.06)
    steps = np.abs(np.diff(robot.lengths[first:], axis=0)).max(axis=1)
    assert len(steps) > 200 and 1e-4 < steps.max() < largest * (1.0 + 1e-9)
