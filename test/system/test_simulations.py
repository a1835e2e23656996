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
"""Simulated robots that users start, each node or group of them a process, over DDS."""

import re

from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics.qos import LATCHED
from geometry_msgs.msg import (
    PointStamped, PoseWithCovarianceStamped, Vector3Stamped, WrenchStamped)
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, String
from support.launched import LIMIT
from support.observer import common, stamp, vectors
import yaml

SHARE = package_share()
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2 * LIMIT)]


# ------------------------------------------------------------------------ a walk

class Walk:
    """What gait_player, the monitors and the simulator publish of a walk."""

    def __init__(self, observer):
        self._observer, keep = observer, observer.keep
        self._planned = keep(PointStamped, 'gait_player/zmp_reference')
        self._zmp = keep(PointStamped, 'simulator/truth/zmp')
        self._com = keep(PointStamped, 'simulator/truth/com')
        self._forces = keep(Float64MultiArray, 'simulator/truth/contacts')
        self._margins = keep(Float64, 'zmp_monitor/margin')
        self._efforts = keep(JointState, 'gravity_compensation/effort')
        self.states = keep(String, 'gait_player/state', LATCHED)
        self.standing = 0.0  # effort, N m

    def _rests_with_feedforward(self):
        """Return whether efforts have ramped up: in the last half second they did not change."""
        last = [np.abs(message.effort).max() for message in self._efforts[-50:]]
        return len(last) == 50 and last[-1] > 0.1 and np.ptp(last) < 0.01 * last[-1]

    def play(self, service):
        """Call until the response is yes, once everything arrives; return how far the CoM went."""
        until = self._observer.until
        until(lambda: self._zmp and self._forces and self._margins
              and self._rests_with_feedforward(), 'the truth, a margin and efforts')
        for messages in (self._planned, self._forces, self._margins, self._efforts, self.states):
            messages.clear()
        begin = self._com_now()
        while not self._observer.trigger(f'gait_player/{service}'):
            pass
        until(lambda: 'walking' in self._labels(), 'the walk')
        until(lambda: self._labels()[-1] != 'walking', 'the end of the walk')
        assert self._labels()[-1] == 'standing', 'stopped on the way'
        count = len(self._com)
        until(lambda: len(self._com) > count + 10, 'the truth')
        return self._com_now() - begin

    def _labels(self):
        return [message.data for message in self.states]

    def _com_now(self):
        point = self._com[-1].point
        return np.array((point.x, point.y, point.z))

    def check(self):
        """Check the ZMP, margins and efforts; return the forces of the feet, (N, 2)."""
        planned, true = common(vectors(self._planned), vectors(self._zmp))
        assert len(planned) > 60
        assert np.sqrt(((true - planned)[:, :2] ** 2).mean(axis=0)).max() < 0.010
        assert min(message.data for message in self._margins) > 0.005
        # Gravity compensation was on all the time: standing with feet side by side takes least.
        begin, *_, end = (stamp(message) for message in self._planned)
        efforts = [np.abs(message.effort).max() for message in self._efforts
                   if begin <= stamp(message) <= end]
        self.standing = self.standing or efforts[0]
        assert len(efforts) > 60 and min(efforts) > 0.9 * self.standing > 0.09
        assert max(efforts) > 1.0  # on one foot
        return np.array([message.data for message in self._forces])


def test_a_step_and_a_walk_with_efforts_in_trajectories(launch, observer, steady):
    launch('gait_simulation.launch.py', 'hidden:=masses', 'trajectory_rate:=100.0', *steady)
    walk = Walk(observer)
    moved = walk.play('single_step')
    forces = walk.check()
    lifted = forces.min(axis=0) < 0.02 * forces.sum(axis=1).mean()
    assert lifted.tolist() == [False, True]
    # Half a step: one foot is ahead.
    np.testing.assert_allclose(moved[[0, 2]], (0.025, 0.0), atol=0.003)
    observer.set_parameters('gait_player', steps=3)
    moved = walk.play('walk')
    # Left to 0.1 m, right to 0.15 m; the last step brings the feet side by side.
    np.testing.assert_allclose(moved, (0.15 - 0.025, 0.0, 0.0), atol=0.003)
    forces = walk.check()
    assert (forces.min(axis=0) < 0.02 * forces.sum(axis=1).mean()).all()  # both were in the air


# ------------------------------------------------------------------------ the paper's postures

L_W = 1e3 * (2.0 * 0.95 * 0.2 + 2.0 * 1.16 * 0.65 + 0.94 * 0.9) / (2.0 * (0.95 + 1.16) + 0.94)


def test_postures_a_b_and_c_are_played_and_the_centre_of_mass_logged(
        launch, observer, brisk, tmp_path):
    launched = launch('two_pose.launch.py', f'directory:={tmp_path}', *brisk)
    observer.until(lambda: 'back in posture stand' in launched.output, 'the postures')
    launched.interrupt()
    model = RobotModel.load('three_link')
    captures = CaptureLog(tmp_path / 'three_link' / 'captures.json', model).captures
    assert [capture.name for capture in captures] == ['posture a', 'posture b', 'posture c']
    for capture, name in zip(captures, 'abc'):
        np.testing.assert_allclose(capture.positions, model.posture(name), atol=0.01)
    result = re.search(
        r'r_w = (\S+) .*q_w = (\S+) .*l_w = (\S+) .*total (\S+) and', launched.output)
    assert result, launched.output[-3000:]
    r_w, q_w, l_w, height = map(float, result.groups())
    # Printed in hundredths of a millimetre.
    assert (r_w, q_w, l_w) == pytest.approx((0.0, 0.0, L_W), abs=0.0151)
    assert height == pytest.approx(
        (2.0 * 6.72 * 26.32 + 5.16 * (100.0 + L_W)) / 18.6, abs=0.0151)


# ------------------------------------------------------------------------ the torso

ALL_TORSO = ('torso_x', 'torso_y', 'torso_z', 'torso_roll', 'torso_pitch', 'torso_yaw')


def test_the_torso_follows_the_tour(launch, observer, tmp_path):
    keep = observer.keep
    true = keep(PointStamped, 'simulator/truth/com')
    estimated = keep(PointStamped, 'com_estimator/com')
    references = keep(Vector3Stamped, 'torso_controller/reference')
    states = keep(JointState, 'joint_states')
    launch('torso_demo.launch.py')
    observer.until(lambda: references and true and
                   stamp(true[-1]) - stamp(references[0]) > 6e9, 'six seconds of the tour')
    # The backbone's joints come from the controller alone.
    names = {tuple(message.name) for message in states}
    assert len(names) == 2 and min(names, key=len) == ALL_TORSO
    assert not set(max(names, key=len)) & set(ALL_TORSO)
    moving = stamp(references[0]) + 0.5e9
    # The torso's pose comes from torso_controller alone, and the whole body's CoM follows it.
    found, expected = common(vectors(estimated), vectors(true), after=moving)
    assert np.ptp(found, axis=0)[:2].max() > 0.01
    assert np.sqrt(((found - expected) ** 2).sum(axis=1).mean()) < 2e-3


# ------------------------------------------------------------------------ no foot sensors

def end_well(launched):
    code, _ = launched.interrupt()
    assert code == 0, launched.output
    assert not re.search('Traceback|has died', launched.output), launched.output


def test_a_robot_without_foot_sensors_stands_with_all_nodes(launch, observer, brisk):
    launched = launch('simulation.launch.py', 'robot:=g1_as_sold', 'gravity:=active', *brisk)
    observer.until_state('gravity_compensation', 'active')
    weight = 9.81 * RobotModel.load('g1_as_sold').mass
    total = observer.first(WrenchStamped, 'wrench_aggregator/wrench')
    assert total.wrench.force.z == pytest.approx(weight, rel=0.1)
    # What is true of one instant is compared with another one: the robot has to rest by then.
    zmp = observer.first(
        PoseWithCovarianceStamped, 'zmp_monitor/zmp_with_covariance',
        accepts=lambda message: message.header.stamp.sec >= 1)
    truth = observer.first(PointStamped, 'simulator/truth/zmp')
    assert abs(zmp.pose.pose.position.x - truth.point.x) < 0.02
    assert 1e-8 < zmp.pose.covariance[0] < 0.05 ** 2
    fused = observer.first(Odometry, 'com_estimator/com_fused')
    assert fused.pose.pose.position.z == pytest.approx(
        observer.first(PointStamped, 'simulator/truth/com').point.z, abs=0.02)
    observer.first(JointState, 'gravity_compensation/effort',
                   accepts=lambda message: any(message.effort))  # they ramp up from zero
    end_well(launched)


def test_feet_that_nothing_measures_are_reported_and_end_nothing(
        launch, observer, brisk, tmp_path):
    config = yaml.safe_load((SHARE / 'config' / 'robots' / 'g1_as_sold.yaml').read_text())
    for foot in config['feet'].values():
        del foot['source']
    robot = tmp_path / 'blind.yaml'
    robot.write_text(yaml.safe_dump(config))
    launched = launch('simulation.launch.py', f'robot:={robot}', *brisk)
    assert observer.first(PointStamped, 'com_estimator/com').point.z > 0.5
    assert observer.first(PointStamped, 'zmp_monitor/dcm').header.frame_id == 'odom'
    line, = (line for line in launched.output.splitlines() if 'nothing measures the feet' in line)
    assert "'source: virtual'" in line
    end_well(launched)
