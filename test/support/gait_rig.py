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
"""A gait_player over DDS with a robot that follows its trajectories exactly."""

from __future__ import annotations

from itertools import count

from biped_com_ros.nodes.gait_player.node import GaitPlayer
from biped_com_ros.ros.node.diagnostics import status_name
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PointStamped, Vector3Stamped
import numpy as np
import rclpy
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64, Float64MultiArray, String
from std_srvs.srv import Trigger
from support.messages import imu, joint_state, set_fields
from support.ros_rig import NodeRig
from trajectory_msgs.msg import JointTrajectory

COUNTER = count()
#: Simulated seconds per second.
SPEED = 4.0
PERIOD = 0.02
OPTIONS = {'use_sim_time': True, 'max_stamp_age': 0.0, 'input_timeout': 8.0, 'steps': 3}
YAW = 0.6


class GaitRig(NodeRig):
    """
    The node, and a robot that follows trajectories exactly.

    Attributes
    ----------
    pace
        Simulated seconds per second.

    """

    def __init__(self, model, **parameters):
        self.model, namespace = model, f'gait_{next(COUNTER)}'
        super().__init__(node=GaitPlayer(namespace=namespace, parameter_overrides=[
            Parameter(name, value=value) for name, value in {**OPTIONS, **parameters}.items()]),
            namespace=namespace)
        self.monitor = f'{namespace}/zmp_monitor'
        self.positions, self.silent, self.is_stuck = model.posture(), set(), False
        self.trajectories, self.states, self.references = [], [], []
        self.shares, self.progress, self.lines = [], [], {}
        self._time, self.pace = 100.0, SPEED
        make, subscribe = self.peer.create_publisher, self.peer.create_subscription
        self._clock = make(Clock, '/clock', 10)
        self._joints, self._imu = make(JointState, 'joint_states', 10), make(Imu, 'imu', 10)
        self._com = make(PointStamped, 'com_estimator/com', 10)
        self._bias = make(Vector3Stamped, 'com_estimator/com_bias', 10)
        self._zmp = make(PointStamped, 'zmp_monitor/zmp', 10)
        self.diagnostics = make(DiagnosticArray, '/diagnostics', 10)
        self._event = make(DiagnosticArray, 'zmp_monitor/event', LATCHED)
        self._dcm_margin, self.dcm_margin = make(Float64, 'zmp_monitor/dcm_margin', 10), 0.02
        self._phase = make(String, 'zmp_monitor/support_phase', LATCHED)
        self.controller = subscribe(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory',
            self.trajectories.append, 10)
        subscribe(String, 'gait_player/state', lambda m: self.states.append(m.data), LATCHED)
        subscribe(PointStamped, 'gait_player/zmp_reference', self.references.append, 50)
        subscribe(Float64MultiArray, 'gait_player/shares', self.shares.append, 50)
        subscribe(Float64, 'gait_player/progress', lambda m: self.progress.append(m.data), LATCHED)
        subscribe(DiagnosticArray, '/diagnostics', self._on_diagnostics, 50)
        self._services = {name: self.peer.create_client(Trigger, f'gait_player/{name}')
                          for name in ('single_step', 'walk', 'stop', 'pause', 'resume',
                                       'shift_com', 'shift_back')}
        self.peer.create_timer(PERIOD, self._step)
        self.peer.create_timer(0.3, self._monitor)
        self.bias = np.zeros(3)

    def _on_diagnostics(self, array):
        for status in array.status:
            if status.name.startswith(prefix := status_name(self.node, '')):
                self.lines[status.name.removeprefix(prefix)] = status

    def _step(self):
        # Only here, so that the robot's time does not pass while the computer stalls.
        self._time += self.pace * PERIOD
        now = self._time
        stamp = rclpy.time.Time(nanoseconds=round(1e9 * now)).to_msg()
        self._clock.publish(Clock(clock=stamp))
        if not self.is_stuck:
            self._follow(now)
        self._imu.publish(imu(
            stamp, self.model.config.imu.frame, (0.0, 0.0, np.sin(0.5 * YAW), np.cos(0.5 * YAW))))
        self._dcm_margin.publish(Float64(data=self.dcm_margin))
        for publisher, kind, xyz in ((self._com, 'point', (1.0, 2.0, 0.4)),
                                     (self._zmp, 'point', (1.0, 2.0, 0.0)),
                                     (self._bias, 'vector', self.bias)):
            message = PointStamped() if kind == 'point' else Vector3Stamped()
            message.header.stamp, message.header.frame_id = stamp, 'odom'
            set_fields(getattr(message, kind), 'xyz', xyz)
            publisher.publish(message)
        if 'joints' not in self.silent:
            self._joints.publish(joint_state(stamp, self.model.joint_names, self.positions))

    def _follow(self, now):
        """Do as the last trajectory says."""
        if not self.trajectories:
            return
        trajectory = self.trajectories[-1]
        start = trajectory.header.stamp.sec + 1e-9 * trajectory.header.stamp.nanosec or now
        times = start + seconds(trajectory)
        index = self.model.joint_index(trajectory.joint_names)
        positions = np.array([point.positions for point in trajectory.points])
        self.positions[index] = [np.interp(now, times, column) for column in positions.T]

    def _monitor(self):
        if 'monitor' in self.silent:
            return
        self.diagnostics.publish(DiagnosticArray(status=[DiagnosticStatus(
            name=f'{self.monitor}: zmp', level=DiagnosticStatus.OK, message='500 Hz')]))

    def report(self, level, message, now):
        """Let the monitor announce a level."""
        self._event.publish(DiagnosticArray(status=[DiagnosticStatus(
            name=f'{self.monitor}: stability', level=level, message=message,
            values=[KeyValue(key='now', value=now)])]))

    def stand(self, phase='double'):
        self._phase.publish(String(data=phase))

    def request(self, name):
        return self.call(self._services[name], Trigger.Request())

    def now(self):
        return self._time

    def freeze(self, on):
        """Let simulated time stand still, or go on."""
        self.pace = 0.0 if on else SPEED

    def set_time(self, seconds):
        """Set simulated time, s."""
        self._time = seconds

    def pass_time(self, seconds):
        """Let simulated time pass."""
        end = self._time + seconds
        self.until(lambda: self._time > end - 1e-9, what=f'{seconds} s to pass')

    def until_it_may(self):
        """Wait until nothing keeps the robot from walking."""
        self.until(lambda: 'gait' in self.lines and {
            v.key: v.value for v in self.lines['gait'].values}['may walk'] == 'yes', what='gait')
        return self

    def state_is(self, state):
        self.until(lambda: self.states[-1:] == [state], 40.0, f'{state}, but {self.states}')

    def soles(self, positions):
        state = self.model.state(positions)
        return state.placements_in_base(self.model.soles)[:, 3]

    def last_pose(self):
        """Return where the last trajectory ends, of all joints."""
        trajectory, positions = self.trajectories[-1], self.model.posture()
        positions[self.model.joint_index(trajectory.joint_names)] = trajectory.points[-1].positions
        return positions


def seconds(trajectory):
    return np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec
                     for p in trajectory.points])
