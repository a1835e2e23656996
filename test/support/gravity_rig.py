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

from functools import partial
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
        'hold_time': 0.1, 'input_timeout': 0.1}
FEET = ('left', 'right')
SETTLED = 3.0
"""Age at which the node takes controllers for inactive that it discovers, s."""


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
        self.sim_time, self.period, self.has_controller = None, 0.005, False
        self.is_new = False
        self.stand()
        self.efforts, self.commands, self.modes, self.wrenches = [], [], [], []
        self.namespace = f'gravity_{next(COUNTER)}'
        self._options = {
            'namespace': self.namespace,
            'cli_args': ['--ros-args', '-r', remap] if remap else None,
            'parameter_overrides': parameters(robot='talos', **{**FAST, **values})}
        super().__init__(namespace=self.namespace, node=GravityCompensation(**self._options))
        self._start = self._now()
        make = self.peer.create_publisher
        self._joints, self._imu = make(JointState, 'joint_states', 10), make(Imu, 'imu', 10)
        self._clock = make(Clock, '/clock', 10)
        self._wrenches = {foot: make(WrenchStamped, f'wrench_aggregator/{foot}/wrench', 10)
                          for foot in FEET}
        limits = self.gravity_model.effort_limits
        index = model.joint_index(values.get('command_joints') or model.actuated_joint_names)
        for kind, topic, receive, qos in (
                (JointState, 'effort', partial(self._on_efforts, limits), 1000),
                (Float64MultiArray, 'commands', partial(self._on_commands, limits[index]), 1000),
                (WrenchStamped, 'left/wrench', self.wrenches.append, 10),
                (String, 'support', self.modes.append, LATCHED)):
            self.peer.create_subscription(kind, f'gravity_compensation/{topic}', receive, qos)
        self._services = {kind: self.peer.create_client(kind, f'gravity_compensation/{name}')
                          for kind, name in ((ChangeState, 'change_state'),
                                             (GetState, 'get_state'))}
        self.record_statuses()

    def stand(self, roll=0.0, joint_names=None, positions=None, length=1.0, **changed):
        """
        Let the robot stand well, and its sensors measure that, but for what is changed.

        Parameters
        ----------
        roll
            Tilt of the base, rad.
        joint_names
            Of the joint states.
        positions
            Of some joints, by their index.
        length
            Of the quaternion of the IMU.
        changed
            Of the attributes of the next lines: sensors that are missing, by how much all stamps
            are ahead, s, those of the IMU late, s, its angular velocity, rad/s, frame of
            wrenches, and what part of the weight each foot measures.

        """
        self.missing, self.skew, self.imu_delay = set(), 0.0, 0.0
        self.gyro, self.frame, self.shares = 0.0, '', (0.5, 0.5)
        self.__dict__.update(changed)
        self.joint_names = list(joint_names or self.model.joint_names)
        self.positions = self.model.posture()
        self.lean(roll)
        self.quaternion = [length * value for value in self.quaternion]
        for joint, position in (positions or {}).items():
            self.positions[joint] = position

    def lean(self, roll):
        """Tilt the base, as the IMU measures it wherever it is mounted."""
        frame = self.model.config.imu.frame
        base = Pose.from_rpy((roll, 0.0, 0.0), np.zeros(3))
        pose = base @ self.model.state(self.positions).pose_in_base(frame)
        self.quaternion = pose.quaternion.tolist()

    def step(self, period=None):
        """Publish one instant of all sensors and run callbacks."""
        period = period or self.period
        now = self._now()
        if self.sim_time is not None:
            self.sim_time += period
            now = round(1e9 * self.sim_time)
            self._clock.publish(Clock(clock=stamp_of(now)))
        now += round(1e9 * self.skew)
        if 'imu' not in self.missing:
            self._imu.publish(imu(
                stamp_of(now - round(1e9 * self.imu_delay)), self.model.config.imu.frame,
                self.quaternion, (self.gyro, 0.0, 0.0)))
        for share, (foot, publisher) in zip(self.shares, self._wrenches.items()):
            if foot not in self.missing:
                publisher.publish(wrench_stamped(
                    stamp_of(now), self.frame or self.model.config.feet[foot].sole,
                    (0.0, 0.0, share * self.gravity_model.weight, 0.0, 0.0, 0.0)))
        if 'joints' not in self.missing:
            index = self.model.joint_index(self.joint_names)
            self._joints.publish(joint_state(
                stamp_of(now), self.joint_names, self.positions[index]))
        self.spin(period)

    def _now(self):
        return self.peer.get_clock().now().nanoseconds

    def until(self, condition, what='condition', timeout=100.0):
        """Publish and run callbacks until the condition holds."""
        super().until(condition, timeout, what)

    def wait(self):
        self.step()

    def play(self, seconds, period=None):
        """Publish and run callbacks for some time."""
        period = period or self.period
        for _ in range(round(seconds / period)):
            self.step(period)

    def settle(self):
        """Play until controllers that come from now on were loaded after the node."""
        self.play(SETTLED - 1e-9 * (self._now() - self._start), 0.02)

    def _on_efforts(self, limits, message):
        self.check(limits, message.effort, message.effort if self.is_new else self.last)
        self.is_new = False
        self.efforts.append(message)

    def _on_commands(self, limits, message):
        # A controller checks what it applies, and may have been there before.
        if self.commands and not self.has_controller:
            self.check(limits, message.data, self.commands[-1].data)
        self.commands.append(message)

    def check(self, limits, efforts, before):
        """Nothing that is ever published may be NaN, too large or a jump."""
        assert np.isfinite(efforts).all()
        assert (np.abs(efforts) <= CLAMP * limits + 1e-9).all()
        assert (np.abs(np.subtract(efforts, before)) <= RATE * MAX_STEP * limits + 1e-9).all()

    def kill(self):
        """End the node as if its process had been killed."""
        self.node.takeover.record.release()
        self.executor.remove_node(self.node)
        self.node.destroy_node()

    def restart(self):
        """Start the node anew."""
        self.is_new = True  # it may begin with any efforts
        self.node = GravityCompensation(**self._options)
        self.executor.add_node(self.node)

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

    def reports(self, *texts):
        """Wait until the diagnostics have an error with these texts."""
        self.until(lambda: self.has_error(*texts), f'an error with {texts}')

    def change(self, *transitions):
        """Return whether the node makes one transition after the other."""
        return all(self.call(self._services[ChangeState], ChangeState.Request(
            transition=Transition(id=transition))).success for transition in transitions)

    def state(self):
        return self.call(self._services[GetState], GetState.Request()).current_state.label
