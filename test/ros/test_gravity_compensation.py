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
The whole node over DDS: what it commands, and what it does when something goes wrong.

Whatever happens, every effort published is finite, within the clamp, and near to the one before.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gravity_compensation.node import (
    GravityCompensation, GravityCompensationParameters)
from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'gravity_compensation.yaml'
COUNTER = itertools.count()
CLAMP, RATE, MAX_STEP = 0.8, 10.0, 0.01
FAST = {'effort_clamp': CLAMP, 'effort_rate': RATE, 'start_time': 0.2, 'stop_time': 0.2,
        'hold_time': 0.1, 'input_timeout': 0.1, 'settle_time': 0.2}


@pytest.fixture(scope='module')
def talos():
    return RobotModel.load('talos')


class Rig:
    """The node, a standing robot around it, and a listener that trusts nothing."""

    def __init__(self, model, **parameters):
        self.model, self.gravity_model = model, GravityModel(model)
        self.positions = model.posture()
        self.forces = 0.5 * self.gravity_model.weight * np.ones(2)
        self.silent, self.skew, self.sim_time = set(), 0.0, None
        self.imu_behind, self.gyro, self.frame = 0.0, 0.0, ''
        self.lean(0.0)
        self.joint_names = list(model.joint_names)
        self.efforts, self.commands, self.diagnostics, self.modes = [], [], {}, []
        self.wrenches = []
        self.namespace = f'gravity_{next(COUNTER)}'
        self.executor = make_executor()
        self.peer = Node('robot', namespace=self.namespace)
        self._joints = self.peer.create_publisher(JointState, 'joint_states', 10)
        self._imu = self.peer.create_publisher(Imu, 'imu', 10)
        self._clock = self.peer.create_publisher(Clock, '/clock', 10)
        self._wrenches = [self.peer.create_publisher(
            WrenchStamped, f'wrench_aggregator/{foot}/wrench', 10) for foot in ('left', 'right')]
        for kind, topic, store, qos in (
                (JointState, 'effort', self.efforts, 100),
                (Float64MultiArray, 'commands', self.commands, 100),
                (WrenchStamped, 'left/wrench', self.wrenches, 10),
                (String, 'support', self.modes, LATCHED)):
            self.peer.create_subscription(
                kind, f'gravity_compensation/{topic}', store.append, qos)
        self.peer.create_subscription(DiagnosticArray, '/diagnostics', self._diagnose, 100)
        overrides = [Parameter(name, value=value) for name, value in {
            'robot': 'talos', **FAST, **parameters}.items()]
        self.node = GravityCompensation(
            namespace=self.namespace, parameter_overrides=overrides)
        self.executor.add_node(self.peer)
        self.executor.add_node(self.node)

    def lean(self, roll):
        """Tilt the base, as the IMU feels it wherever it is mounted."""
        frame = self.model.config.imu.frame
        base = Pose.from_rpy((roll, 0.0, 0.0), np.zeros(3))
        imu = base @ self.model.state(self.positions).pose_in_base(frame)
        self.quaternion = imu.quaternion.tolist()

    def _diagnose(self, array):
        for status in array.status:
            if status.name.startswith('gravity_compensation: '):
                self.diagnostics[status.name.removeprefix('gravity_compensation: ')] = status

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()

    def step(self, period=0.005):
        """Publish one instant of all sensors and serve callbacks."""
        now = self.peer.get_clock().now().nanoseconds
        if self.sim_time is not None:
            self.sim_time += period
            now = round(1e9 * self.sim_time)
            self._clock.publish(Clock(clock=rclpy.time.Time(nanoseconds=now).to_msg()))
        stamp = rclpy.time.Time(nanoseconds=now + round(1e9 * self.skew)).to_msg()
        if 'imu' not in self.silent:
            imu = Imu()
            behind = now + round(1e9 * (self.skew - self.imu_behind))
            imu.header.stamp = rclpy.time.Time(nanoseconds=behind).to_msg()
            imu.header.frame_id = self.model.config.imu.frame
            imu.angular_velocity.x = self.gyro
            o = imu.orientation
            o.x, o.y, o.z, o.w = self.quaternion
            self._imu.publish(imu)
        for foot, force, publisher in zip(('left', 'right'), self.forces, self._wrenches):
            if foot not in self.silent:
                wrench = WrenchStamped()
                wrench.header.stamp = stamp
                wrench.header.frame_id = self.frame or self.model.config.feet[foot].sole
                wrench.wrench.force.z = float(force)
                publisher.publish(wrench)
        if 'joints' not in self.silent:
            index = self.model.joint_index(self.joint_names)
            message = JointState(name=self.joint_names, position=self.positions[index].tolist())
            message.header.stamp = stamp
            self._joints.publish(message)
        end = time.monotonic() + period
        while (left := end - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=left)

    def until(self, condition, what='condition', timeout=10.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, (
                f'waited in vain for {what}; {self.node.problem}; {self.effort_line()}')
            self.step()
        self.check()

    def play(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()
        self.check()

    def check(self):
        """Nothing that was ever published may be NaN, too large or a leap."""
        if not self.efforts:
            return
        got = np.array([message.effort for message in self.efforts])
        limits = self.gravity_model.effort_limits
        assert np.isfinite(got).all()
        assert (np.abs(got) <= CLAMP * limits + 1e-9).all()
        steps = np.abs(np.diff(np.vstack((np.zeros(got.shape[1]), got)), axis=0))
        assert (steps <= RATE * MAX_STEP * limits + 1e-9).all()
        if self.commands:
            sent = np.array([message.data for message in self.commands])
            bounds = CLAMP * limits[self.model.joint_index(
                self.node.params.command_joints or self.model.actuated_joint_names)]
            assert np.isfinite(sent).all() and (np.abs(sent) <= bounds + 1e-9).all()
            steps = np.abs(np.diff(sent, axis=0))
            assert (steps <= RATE * MAX_STEP * bounds / CLAMP + 1e-9).all()

    @property
    def last(self):
        return np.array(self.efforts[-1].effort) if self.efforts else np.zeros(1)

    def expected(self, shares=(0.5, 0.5)):
        up = np.array([0.0, 0.0, 1.0])
        load = self.gravity_model.load(self.model.state(self.positions), up)
        return load.standing(np.array(shares))

    def holds(self):
        return len(self.last) > 1 and np.allclose(self.last, self.expected().efforts, atol=0.01)

    def effort_line(self):
        status = self.diagnostics.get('effort')
        return (status.level, status.message) if status else (b'', '')

    def fails(self, *words):
        level, message = self.effort_line()
        return level == DiagnosticStatus.ERROR and all(word in message for word in words)

    def call(self, kind, service, request):
        client = self.peer.create_client(kind, f'gravity_compensation/{service}')
        self.until(client.service_is_ready, service)
        future = client.call_async(request)
        self.until(future.done, service)
        return future.result()

    def change(self, transition):
        return self.call(ChangeState, 'change_state', ChangeState.Request(
            transition=Transition(id=transition))).success

    def state(self):
        return self.call(GetState, 'get_state', GetState.Request()).current_state.label


@pytest.fixture
def make(talos):
    rigs = []

    def _make(**parameters):
        rigs.append(Rig(talos, **parameters))
        return rigs[-1]
    yield _make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make):
    """Return a rig that holds its robot."""
    rig = make()
    rig.until(rig.holds, 'efforts')
    return rig


def test_holds_the_robot_and_says_what_it_assumes(rig):
    assert rig.state() == 'active'
    assert rig.efforts[-1].name == list(rig.model.actuated_joint_names)
    first = np.array(rig.efforts[0].effort)
    assert np.abs(first).max() < 0.2 * np.abs(rig.last).max()  # a soft start
    support = rig.expected()
    rig.until(lambda: rig.wrenches, 'wrench')
    force = rig.wrenches[-1].wrench.force
    np.testing.assert_allclose(
        [force.x, force.y, force.z], support.wrenches[0, :3], atol=1e-3)
    assert rig.wrenches[-1].header.frame_id == 'left_sole_link'
    assert rig.modes[-1].data == 'left, right'
    np.testing.assert_allclose(rig.commands[-1].data, rig.last, atol=0.5)
    rig.until(lambda: rig.effort_line()[0] == DiagnosticStatus.OK, 'diagnostics')


def test_a_walk_that_plans_shares_is_believed(rig):
    publisher = rig.peer.create_publisher(Float64MultiArray, 'gait_player/shares', 10)
    expected = rig.expected((0.54, 0.46)).efforts

    def is_followed():
        publisher.publish(Float64MultiArray(data=[0.54, 0.46]))
        return np.abs(rig.last - expected).max() < 0.05

    rig.until(is_followed, 'planned shares')
    rig.until(rig.holds, 'measured shares')


@pytest.mark.parametrize(('silent', 'words'), (
    ('joints', ('joint_states is silent',)), ('imu', ('the IMU is silent',)),
    ('left', ("wrench of 'left' is silent",))))
def test_silence_is_held_then_ramped_to_zero_then_forgiven(rig, silent, words):
    count, last = len(rig.efforts), rig.last
    rig.silent.add(silent)
    rig.until(lambda: not rig.last.any(), 'zero')
    late = [m.effort for m in rig.efforts[count:]]
    assert np.allclose(late[0], last, atol=0.02)  # held first
    assert len(late) > 5
    rig.until(lambda: rig.fails(*words), 'diagnostics')
    rig.silent.clear()
    rig.until(rig.holds, 'efforts again')


def test_stamps_do_not_go_back_when_late_joint_states_arrive(rig):
    count = len(rig.efforts)
    for _ in range(3):
        rig.silent.add('joints')
        rig.play(0.1)  # meanwhile the watchdog goes on, at the time of now
        rig.silent.clear()
        rig.skew = -0.03
        rig.play(0.1)
        rig.skew = 0.0
    stamps = [rclpy.time.Time.from_msg(message.header.stamp).nanoseconds
              for message in rig.efforts[count:]]
    assert len(stamps) > 20 and (np.diff(stamps) > 0).all()
    rig.until(rig.holds, 'efforts again')


def test_nan_is_not_used(rig):
    rig.positions = rig.positions.copy()
    good = rig.positions[3]
    rig.positions[3] = math.nan
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails(rig.model.joint_names[3]), 'diagnostics')
    rig.positions[3] = good
    rig.until(rig.holds, 'efforts again')
    rig.quaternion = [math.nan, 0.0, 0.0, 1.0]
    rig.until(lambda: not rig.last.any() and rig.fails('the IMU is silent'), 'zero')
    rig.lean(0.0)
    rig.until(rig.holds, 'efforts again')
    rig.forces[1] = math.nan
    rig.until(lambda: not rig.last.any() and rig.fails("wrench of 'right' is silent"), 'zero')
    rig.forces[1] = math.inf
    rig.play(0.05)
    rig.forces[1] = rig.forces[0]
    rig.until(rig.holds, 'efforts again')
    rig.gyro = math.nan
    rig.until(lambda: not rig.last.any() and rig.fails(
        'the IMU is silent', 'angular_velocity.x = nan'), 'zero')


@pytest.mark.parametrize(('shares', 'words'), (
    ([math.nan, 1.0], 'data[0] = nan'), ([0.5], 'it has 1 values; valid: 2')))
def test_a_plan_that_cannot_be_read_is_not_followed(rig, shares, words):
    publisher = rig.peer.create_publisher(Float64MultiArray, 'gait_player/shares', 10)

    def is_named():
        publisher.publish(Float64MultiArray(data=shares))
        level, message = rig.effort_line()
        return level == DiagnosticStatus.WARN and "gait_player/shares'" in message and (
            words in message)

    rig.until(is_named, 'diagnostics')
    assert rig.holds()


def test_a_plan_that_makes_no_sense_is_not_followed(rig):
    publisher = rig.peer.create_publisher(Float64MultiArray, 'gait_player/shares', 10)

    def is_named():
        publisher.publish(Float64MultiArray(data=[2.0, -1.0]))
        status = rig.diagnostics.get('callbacks')
        return status is not None and 'planned shares [2.0, -1.0]' in status.message

    rig.until(is_named, 'diagnostics')
    rig.until(rig.holds, 'efforts by what the feet feel')


def test_an_imu_on_another_clock_is_not_believed(rig):
    rig.imu_behind = 0.4
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails('of the IMU', 's behind those of joint_states', 'its clock'),
              'diagnostics')
    rig.imu_behind = 0.0
    rig.until(rig.holds, 'efforts again')


def test_imu_upside_down_is_not_believed(rig):
    rig.lean(math.pi)
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails('tilted by 180 deg'), 'diagnostics')


def test_imu_that_jumps_is_not_believed_at_once(rig):
    rig.lean(0.2)
    rig.until(lambda: 'jumped by 11.5 deg' in rig.node.problem, 'problem')
    rig.diagnostics.clear()
    rig.lean(0.0)
    rig.until(rig.holds, 'trust once it is steady')
    # Over before it was reported, perhaps, and told all the same.
    rig.until(lambda: rig.fails('jumped by 11.5 deg'), 'diagnostics')
    rig.until(lambda: rig.effort_line()[0] == DiagnosticStatus.OK, 'diagnostics')


def test_both_feet_in_the_air_lets_go(rig):
    rig.forces[:] = 3.0
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails('in the air'), 'diagnostics')
    rig.forces[:] = 0.5 * rig.gravity_model.weight
    rig.until(rig.holds, 'efforts again')


def test_somebody_else_who_commands_the_controller_is_told(rig):
    rival = rig.peer.create_publisher(
        Float64MultiArray, 'gravity_compensation/commands', 10)
    rig.until(lambda: rig.fails('1 more on', '/gravity_compensation/commands'), 'diagnostics')
    rig.peer.destroy_publisher(rival)
    rig.until(lambda: 'more on' not in rig.effort_line()[1], 'its end')


def test_wrenches_in_another_frame_let_go(rig):
    rig.frame = 'torso_2_link'
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails(
        "wrench of 'left' cannot be used", "frame_id is 'torso_2_link'; valid: 'left_sole_link'"),
        'diagnostics')
    rig.frame = ''
    rig.until(rig.holds, 'efforts again')


def test_forces_in_another_unit_let_go(rig):
    rig.forces[:] = 9.81 * 0.5 * rig.gravity_model.weight
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails('cannot be true', 'units of their sensors'), 'diagnostics')
    rig.forces[:] = 0.5 * rig.gravity_model.weight
    rig.until(rig.holds, 'efforts again')


def test_lifting_a_foot_that_cannot_be_lifted_is_refused(rig):
    """The centre of mass is between the feet: one foot alone would topple."""
    rig.forces[:] = rig.gravity_model.weight, 0.0
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails("centre of pressure of 'left'", 'outside'), 'diagnostics')


def test_missing_joint_is_named(rig):
    rig.joint_names = rig.joint_names[:-1]
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails(rig.model.joint_names[-1]), 'diagnostics')


@pytest.mark.parametrize('jump', (30.0, -30.0))
def test_clock_jump(rig, jump):
    rig.skew = jump
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails('silent'), 'diagnostics')
    rig.skew = 0.0
    rig.until(rig.holds, 'efforts again')


@pytest.mark.parametrize('to', (900.0, 2.0))
def test_simulated_clock_that_is_set_anew(make, to):
    """Forward it is silence; back it is another start. Never a leap."""
    rig = make(use_sim_time=True)
    rig.sim_time = 100.0
    rig.until(rig.holds, 'efforts')
    rig.sim_time = to
    count = len(rig.efforts)
    rig.until(lambda: len(rig.efforts) > count + 20, 'efforts')
    rig.until(rig.holds, 'efforts again')


def test_quaternion_that_is_no_rotation_is_not_used(rig):
    rig.quaternion = [2.0 * value for value in rig.quaternion]
    rig.until(lambda: not rig.last.any(), 'zero')
    rig.until(lambda: rig.fails('the IMU is silent', 'has length 2'), 'diagnostics')


def test_deactivation_while_loaded_and_restart(rig):
    assert rig.change(Transition.TRANSITION_DEACTIVATE)
    assert not rig.change(Transition.TRANSITION_CLEANUP)  # still ramping down
    rig.until(lambda: not rig.last.any(), 'zero')
    count = len(rig.efforts)
    rig.play(0.2)
    assert len(rig.efforts) <= count + 1  # silent once it is zero
    assert rig.state() == 'inactive'
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(rig.holds, 'efforts again')
    assert rig.change(Transition.TRANSITION_DEACTIVATE)
    rig.until(lambda: not rig.last.any(), 'zero')
    assert rig.change(Transition.TRANSITION_CLEANUP)
    rig.play(0.1)
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(rig.holds, 'efforts again')


def test_waits_for_a_lifecycle_manager_without_autostart(make):
    rig = make(autostart=False)
    rig.play(0.3)
    assert rig.state() == 'unconfigured' and not rig.efforts
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    rig.play(0.2)
    assert not rig.efforts
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(rig.holds, 'efforts')


def controller(rig, joints):
    """Start something with the parameters of an effort controller."""
    node = Node('effort_controller', namespace=rig.namespace)
    node.declare_parameter('joints', joints)
    rig.executor.add_node(node)
    return node


def test_controller_with_another_order_gets_nothing(make, talos):
    rig = make(controller='effort_controller')
    node = controller(rig, list(reversed(talos.actuated_joint_names)))
    rig.until(lambda: rig.fails("controller 'effort_controller' expects", 'at place 0'),
              'diagnostics')
    assert not rig.commands and not rig.last.any()
    node.destroy_node()


def test_controller_in_the_same_order_gets_commands(make, talos):
    order = list(reversed(talos.actuated_joint_names))
    rig = make(controller='effort_controller', command_joints=order)
    rig.play(0.3)
    assert not rig.commands  # nobody there yet
    node = controller(rig, order)
    rig.until(lambda: rig.commands and rig.holds(), 'commands')
    rig.until(lambda: np.allclose(rig.commands[-1].data, rig.expected().efforts[::-1], atol=0.01),
              'commands')
    node.destroy_node()


def test_a_controller_that_ends_without_an_answer_is_asked_again(make, talos):
    rig = make(controller='effort_controller')
    silent = Node('effort_controller', namespace=rig.namespace)  # no executor serves it
    rig.until(rig.node._controller._client.service_is_ready, 'its service')
    rig.play(1.2)  # it is asked
    silent.destroy_node()
    node = controller(rig, list(talos.actuated_joint_names))
    rig.until(lambda: rig.commands and rig.holds(), 'commands')
    node.destroy_node()


def test_groups_gains_and_support_change_at_run_time_as_ramps(rig):
    arms = rig.model.group_index('left_arm')
    rig.node.set_parameters([Parameter('groups', value=['left_arm'])])
    others = np.setdiff1d(np.arange(len(rig.model.joint_names)), arms)
    rig.until(lambda: not rig.last[others].any(), 'ramp of the others')
    np.testing.assert_allclose(rig.last[arms], rig.expected().efforts[arms], atol=0.01)
    joint = rig.model.joint_names[arms[0]]
    rig.node.set_parameters_atomically([
        Parameter('gain_joints', value=[joint]), Parameter('gains', value=[0.5])])
    rig.until(lambda: abs(rig.last[arms[0]] - 0.5 * rig.expected().efforts[arms[0]]) < 0.01,
              'gain')
    rig.node.set_parameters([
        Parameter('groups', Parameter.Type.STRING_ARRAY, []), Parameter('support', value='fixed')])
    up = np.array([0.0, 0.0, 1.0])
    held = rig.gravity_model.load(rig.model.state(rig.positions), up).held
    held[arms[0]] *= 0.5
    rig.until(lambda: np.allclose(rig.last, held, atol=0.01), 'held torso')


def test_trajectories_hold_positions_or_a_reference_and_carry_efforts(make, talos):
    rig, got = make(trajectory_rate=50.0), []
    rig.peer.create_subscription(
        JointTrajectory, 'gravity_compensation/joint_trajectory', got.append, 10)
    reference = rig.peer.create_publisher(JointState, 'gravity_compensation/reference', 10)
    rig.until(lambda: got and rig.holds() and np.allclose(
        got[-1].points[0].effort, rig.expected().efforts, atol=0.01), 'trajectory')
    assert got[-1].joint_names == list(talos.actuated_joint_names)
    np.testing.assert_allclose(got[-1].points[0].positions, rig.positions)
    assert got[-1].points[0].time_from_start.nanosec == 40_000_000
    # As joint_trajectory_controller asks: from now on, and at rest in the end.
    assert (got[-1].header.stamp.sec, got[-1].header.stamp.nanosec) == (0, 0)
    assert not any(got[-1].points[0].velocities) and not len(got[-1].points[0].accelerations)
    rig.until(reference.get_subscription_count, 'subscriber')
    reference.publish(JointState(name=[talos.joint_names[5]], position=[0.123]))
    rig.until(lambda: got[-1].points[0].positions[5] == 0.123, 'reference')


def test_bounded_distribution(make):
    pytest.importorskip('proxsuite')
    rig = make(distribution='bounded')
    rig.until(rig.holds, 'efforts')


def test_the_parameter_file_has_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/gravity_compensation']['ros__parameters']
    defaults = GravityCompensationParameters()
    assert text == {f.name: getattr(defaults, f.name)
                    for f in dataclasses.fields(GravityCompensationParameters)}


def start(module, *arguments):
    return subprocess.Popen(
        [sys.executable, '-m', f'biped_com_ros.nodes.{module}.node', '--ros-args', *arguments],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(p for p in sys.path if p)},
        stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(('module', 'arguments'), (
    ('gravity_compensation', ()),
    ('suite', ('-p', 'nodes:=[gravity_compensation, wrench_aggregator]'))))
def test_process_becomes_active_and_ends_cleanly(module, arguments):
    namespace = f'gravity_process_{next(COUNTER)}'
    process = start(module, '-r', f'__ns:=/{namespace}', '-p', 'robot:=talos', *arguments)
    peer = Node('peer', namespace=namespace)
    client = peer.create_client(GetState, 'gravity_compensation/get_state')
    executor = make_executor()
    executor.add_node(peer)
    try:
        assert client.wait_for_service(15.0)
        future = client.call_async(GetState.Request())
        executor.spin_until_future_complete(future, 10.0)
        assert future.result().current_state.label == 'active'
        process.send_signal(signal.SIGINT)
        assert process.wait(10.0) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
        executor.shutdown()
        peer.destroy_node()


@pytest.mark.parametrize(('parameters', 'words'), (
    ({'support': 'tail'}, 'tail'), ({'groups': ['wings']}, 'wings'),
    ({'gains': [1.0]}, 'gain_joints'), ({'share_lift': 0.3}, 'lift'),
    ({'contacts': ['left', 'nose']}, 'nose')))
def test_nonsense_ends_the_node_at_once(parameters, words):
    with pytest.raises(Exception, match=words):
        GravityCompensation(namespace=f'gravity_{next(COUNTER)}', parameter_overrides=[
            Parameter(name, value=value) for name, value in {
                'robot': 'talos', **parameters}.items()])
