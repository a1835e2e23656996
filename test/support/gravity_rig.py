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
"""The node gravity_compensation, a standing robot around it, and checks of all it publishes."""

from __future__ import annotations

import itertools

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
import numpy as np
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from support.messages import imu, joint_state, parameters, stamp_of, wrench_stamped
from support.ros_rig import NodeRig

COUNTER = itertools.count()
CLAMP, RATE, MAX_STEP = 0.8, 10.0, 0.01
FAST = {'effort_clamp': CLAMP, 'effort_rate': RATE, 'start_time': 0.2, 'stop_time': 0.2,
        'hold_time': 0.1, 'input_timeout': 0.1, 'settle_time': 0.2}


class GravityRig(NodeRig):
    """
    The node, and its peer as the robot.

    Whatever happens, every effort published is finite, within the clamp, and near to the one
    before.

    Parameters
    ----------
    model
        The robot.
    remap
        Rule of a remapping.
    values
        Parameters of the node.

    """

    def __init__(self, model, remap='', **values):
        self.model, self.gravity_model = model, GravityModel(model)
        self.positions = model.posture()
        self.forces = 0.5 * self.gravity_model.weight * np.ones(2)
        self.missing, self.skew, self.sim_time = set(), 0.0, None
        self.imu_delay, self.gyro, self.frame = 0.0, 0.0, ''
        self.period = 0.005
        self.lean(0.0)
        self.joint_names = list(model.joint_names)
        self.efforts, self.commands, self.modes, self.wrenches = [], [], [], []
        self.namespace = f'gravity_{next(COUNTER)}'
        super().__init__(namespace=self.namespace, node=GravityCompensation(
            namespace=self.namespace,
            cli_args=['--ros-args', '-r', remap] if remap else None,
            parameter_overrides=parameters(robot='talos', **{**FAST, **values})))
        self._joints = self.peer.create_publisher(JointState, 'joint_states', 10)
        self._imu = self.peer.create_publisher(Imu, 'imu', 10)
        self._clock = self.peer.create_publisher(Clock, '/clock', 10)
        self._wrenches = [self.peer.create_publisher(
            WrenchStamped, f'wrench_aggregator/{foot}/wrench', 10) for foot in ('left', 'right')]
        for kind, topic, messages, qos in (
                (JointState, 'effort', self.efforts, 100),
                (Float64MultiArray, 'commands', self.commands, 100),
                (WrenchStamped, 'left/wrench', self.wrenches, 10),
                (String, 'support', self.modes, LATCHED)):
            self.peer.create_subscription(
                kind, f'gravity_compensation/{topic}', messages.append, qos)
        self.record_statuses()

    def lean(self, roll):
        """Tilt the base, as the IMU measures it wherever it is mounted."""
        frame = self.model.config.imu.frame
        base = Pose.from_rpy((roll, 0.0, 0.0), np.zeros(3))
        pose = base @ self.model.state(self.positions).pose_in_base(frame)
        self.quaternion = pose.quaternion.tolist()

    def step(self, period=None):
        """Publish one instant of all sensors and run callbacks."""
        period = period or self.period
        now = self.peer.get_clock().now().nanoseconds
        if self.sim_time is not None:
            self.sim_time += period
            now = round(1e9 * self.sim_time)
            self._clock.publish(Clock(clock=stamp_of(now)))
        now += round(1e9 * self.skew)
        if 'imu' not in self.missing:
            self._imu.publish(imu(
                stamp_of(now - round(1e9 * self.imu_delay)), self.model.config.imu.frame,
                self.quaternion, (self.gyro, 0.0, 0.0)))
        for foot, force, publisher in zip(('left', 'right'), self.forces, self._wrenches):
            if foot not in self.missing:
                publisher.publish(wrench_stamped(
                    stamp_of(now), self.frame or self.model.config.feet[foot].sole,
                    (0.0, 0.0, force, 0.0, 0.0, 0.0)))
        if 'joints' not in self.missing:
            index = self.model.joint_index(self.joint_names)
            self._joints.publish(joint_state(
                stamp_of(now), self.joint_names, self.positions[index]))
        self.spin(period)

    def until(self, condition, what='condition', timeout=10.0):
        """Publish and run callbacks until the condition holds."""
        super().until(condition, timeout, what)
        self.check()

    def wait(self):
        self.step()

    def play(self, seconds):
        """Publish and run callbacks for some time."""
        for _ in range(round(seconds / self.period)):
            self.step()
        self.check()

    def check(self):
        """Nothing that was ever published may be NaN, too large or a jump."""
        limits = self.gravity_model.effort_limits
        index = self.model.joint_index(
            self.node.params.command_joints or self.model.actuated_joint_names)
        if self.efforts:
            _check_all([message.effort for message in self.efforts], limits, np.zeros(len(limits)))
        if self.commands:
            commands = [message.data for message in self.commands]
            _check_all(commands, limits[index], np.array(commands[0]))

    def close(self):
        """Destroy everything; the next node of this name is no successor."""
        if self.node.compensator is not None:
            self.node.takeover.record.clear()
            self.node.takeover.end()
        super().close()

    @property
    def last(self):
        return np.array(self.efforts[-1].effort) if self.efforts else np.zeros(1)

    def expected(self, shares=(0.5, 0.5)):
        """Return the support with these shares."""
        return self.load().on_contacts(shares)

    def load(self):
        """Return gravity's load on the upright robot."""
        return self.gravity_model.load(
            self.model.state(self.positions), np.array([0.0, 0.0, 1.0]))

    def is_balanced(self):
        return len(self.last) > 1 and np.allclose(self.last, self.expected().efforts, atol=0.01)

    def is_zero(self):
        return not self.last.any()

    def status(self):
        """Return level and message of the diagnostics of the efforts."""
        return self.statuses.get('effort', (b'', ''))

    def has_error(self, *texts):
        level, message = self.status()
        return level == DiagnosticStatus.ERROR and all(text in message for text in texts)

    def call(self, kind, service, request):
        """Call a service of the node and return the response."""
        client = self.peer.create_client(kind, f'gravity_compensation/{service}')
        self.until(client.service_is_ready, what=service)
        future = client.call_async(request)
        self.until(future.done, what=service)
        return future.result()

    def change(self, transition):
        return self.call(ChangeState, 'change_state', ChangeState.Request(
            transition=Transition(id=transition))).success

    def state(self):
        return self.call(GetState, 'get_state', GetState.Request()).current_state.label


def largest_step(rig, applied):
    """
    Return the largest change of efforts, as a ratio of what the rate limit permits.

    Parameters
    ----------
    rig
        The robot.
    applied
        What a controller applied that began at zero, k arrays (n,).

    """
    applied = np.array([0.0 * applied[0], *applied])
    permitted = RATE * MAX_STEP * rig.gravity_model.effort_limits
    return float((np.abs(np.diff(applied, axis=0)) / permitted).max())


def _check_all(efforts, limits, before):
    efforts = np.array(efforts)
    assert np.isfinite(efforts).all()
    assert (np.abs(efforts) <= CLAMP * limits + 1e-9).all()
    steps = np.abs(np.diff(np.vstack((before, efforts)), axis=0))
    assert (steps <= RATE * MAX_STEP * limits + 1e-9).all()
