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

from itertools import count

from biped_com_ros.nodes.gait_player.node import GaitPlayer
from biped_com_ros.ros.node.diagnostics import status_name
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PointStamped, Vector3Stamped
import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64, Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from support.messages import (
    imu, joint_state, parameters as to_parameters, set_fields, stamp_of)
from support.ros_rig import NodeRig
from trajectory_msgs.msg import JointTrajectory

COUNTER = count()
#: Simulated seconds per second.
SPEED = 4.0
PERIOD = 0.02
OPTIONS = {'use_sim_time': True, 'max_stamp_age': 0.0, 'input_timeout': 8.0, 'steps': 3}
YAW = 0.6
SERVICES = {Trigger: ('single_step', 'walk', 'stop', 'pause', 'resume', 'shift_com', 'shift_back'),
            SetBool: ('balance',)}


class GaitRig(NodeRig):
    """
    The node, and a robot that follows trajectories exactly.

    Attributes
    ----------
    now, pace
        Simulated time, s, and how much of it passes per second.

    """

    def __init__(self, model, **parameters):
        self.model, namespace = model, f'gait_{next(COUNTER)}'
        super().__init__(node=GaitPlayer(namespace=namespace, parameter_overrides=to_parameters(
            **{**OPTIONS, **parameters})), namespace=namespace)
        self.monitor, self.silent, self.is_stuck = f'{namespace}/zmp_monitor', set(), False
        self.positions, self.bias, self.dcm_margin = model.posture(), np.zeros(3), 0.02
        self.trajectories, self.states, self.references = [], [], []
        self.shares, self.progress, self.lines = [], [], {}
        self.now, self.pace = 100.0, SPEED
        self._publishers = {topic: self.peer.create_publisher(kind, topic, qos)
                            for topic, kind, qos in (
            ('/clock', Clock, 10), ('joint_states', JointState, 10), ('imu', Imu, 10),
            ('com_estimator/com', PointStamped, 10),
            ('com_estimator/com_bias', Vector3Stamped, 10), ('zmp_monitor/zmp', PointStamped, 10),
            ('/diagnostics', DiagnosticArray, 10), ('zmp_monitor/event', DiagnosticArray, LATCHED),
            ('zmp_monitor/dcm_margin', Float64, 10),
            ('zmp_monitor/support_phase', String, LATCHED))}
        self.controller, *_ = [
            self.peer.create_subscription(kind, topic, receive, qos)
            for topic, kind, receive, qos in (
                ('joint_trajectory_controller/joint_trajectory', JointTrajectory,
                 self.trajectories.append, 10),
                ('gait_player/state', String, lambda m: self.states.append(m.data), LATCHED),
                ('gait_player/zmp_reference', PointStamped, self.references.append, 50),
                ('gait_player/shares', Float64MultiArray, self.shares.append, 50),
                ('gait_player/progress', Float64, lambda m: self.progress.append(m.data), LATCHED),
                ('/diagnostics', DiagnosticArray, self._on_diagnostics, 50))]
        self._services = {name: self.peer.create_client(kind, f'gait_player/{name}')
                          for kind, names in SERVICES.items() for name in names}
        self.peer.create_timer(PERIOD, self._step)
        self.peer.create_timer(0.3, self._monitor)

    def publish(self, topic, message):
        """Publish as the rest of the robot does."""
        self._publishers[topic].publish(message)

    def _on_diagnostics(self, array):
        for status in array.status:
            if status.name.startswith(prefix := status_name(self.node, '')):
                self.lines[status.name.removeprefix(prefix)] = status

    def _step(self):
        self.now += self.pace * PERIOD
        now = self.now
        stamp = stamp_of(round(1e9 * now))
        self.publish('/clock', Clock(clock=stamp))
        if not self.is_stuck:
            self._follow(now)
        self.publish('imu', imu(stamp, self.model.config.imu.frame, self.attitude()))
        self.publish('zmp_monitor/dcm_margin', Float64(data=self.dcm_margin))
        for topic, message, field, xyz in (
                ('com_estimator/com', PointStamped(), 'point', (1.0, 2.0, 0.4)),
                ('zmp_monitor/zmp', PointStamped(), 'point', (1.0, 2.0, 0.0)),
                ('com_estimator/com_bias', Vector3Stamped(), 'vector', self.bias)):
            message.header.stamp, message.header.frame_id = stamp, 'odom'
            set_fields(getattr(message, field), 'xyz', xyz)
            self.publish(topic, message)
        if 'joints' not in self.silent:
            self.publish('joint_states', joint_state(
                stamp, self.model.joint_names, self.positions))

    def attitude(self):
        """Return what the IMU measures, (x, y, z, w)."""
        return 0.0, 0.0, np.sin(0.5 * YAW), np.cos(0.5 * YAW)

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
        self.publish('/diagnostics', DiagnosticArray(status=[DiagnosticStatus(
            name=f'{self.monitor}: zmp', level=DiagnosticStatus.OK, message='500 Hz')]))

    def report(self, level, message, now):
        """Let the monitor announce a level."""
        self.publish('zmp_monitor/event', DiagnosticArray(status=[DiagnosticStatus(
            name=f'{self.monitor}: stability', level=level, message=message,
            values=[KeyValue(key='now', value=now)])]))

    def stand(self, phase='double'):
        self.publish('zmp_monitor/support_phase', String(data=phase))

    def request(self, name):
        return self.call(self._services[name], Trigger.Request())

    def balance(self, value):
        return self.call(self._services['balance'], SetBool.Request(data=value))

    def begin(self, name, state, *states):
        """Request something, and wait for states that it leads to."""
        assert self.request(name).success
        self.pass_states(state, *states)

    def pass_states(self, *states):
        for state in states:
            self.until(lambda state=state: self.states[-1:] == [state], 60.0,
                       f'{state}, but {self.states}')

    def warns(self, text):
        """Wait until the diagnostics have a text."""
        self.until(lambda: 'gait' in self.lines and text in self.lines['gait'].message, what=text)

    def is_at(self, positions, tolerance=1e-6):
        """Wait until the joints are somewhere."""
        self.until(lambda: self.positions == pytest.approx(positions, abs=tolerance), what='rest')

    def value(self, key):
        """Return a value of the diagnostics."""
        return {v.key: v.value for v in self.lines['gait'].values}[key]

    def pass_time(self, seconds):
        """Let simulated time pass."""
        end = self.now + seconds
        self.until(lambda: self.now > end - 1e-9, what=f'{seconds} s to pass')

    def until_it_may(self):
        """Wait until nothing keeps the robot from walking."""
        self.until(lambda: 'gait' in self.lines and self.value('may walk') == 'yes', what='gait')
        return self

    def soles(self, positions):
        state = self.model.state(positions)
        return state.placements_in_base(self.model.soles)[:, 3]

    def postures(self, trajectory):
        """Return the positions of all joints at the points of a trajectory."""
        postures = np.tile(self.model.posture(), (len(trajectory.points), 1))
        postures[:, self.model.joint_index(trajectory.joint_names)] = [
            point.positions for point in trajectory.points]
        return postures

    def last_pose(self):
        """Return where the last trajectory ends, of all joints."""
        return self.postures(self.trajectories[-1])[-1]


def seconds(trajectory):
    return np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec
                     for p in trajectory.points])
