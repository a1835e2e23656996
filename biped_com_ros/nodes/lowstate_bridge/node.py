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
Converts Unitree's LowState to joint states and IMU, for G1, H1 and their kind.

The bytes are decoded by the known layout (`biped_com_ros.core.unitree`). Subscribing needs the
vendor's message package, since DDS matches topics by their type; playing a recording does not.
Stamps come from the counter in the message, which is more even than arrival times.
Messages with a wrong checksum are refused; those, missing messages and errors of motors are on
``/diagnostics``.

===================== ================================ =======================================
topic                 type                             what
===================== ================================ =======================================
lowstate              unitree_hg/LowState or           in; topic, type and order of the motors
                      unitree_go/LowState              by low_state in the robot's YAML
joint_states          sensor_msgs/JointState           positions, velocities, torques
imu (robot's YAML)    sensor_msgs/Imu                  of the base
===================== ================================ =======================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import sys
from typing import Any

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.unitree.stream import LowStateStream
from biped_com_ros.nodes.lowstate_bridge.sources import (
    low_state_type, LowStateInput, LowStatePlayer)
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import read_only
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.outputs import joint_state_publisher, TemplatePublisher
from rclpy.node import Node
from sensor_msgs.msg import Imu
from std_msgs.msg import Header


@dataclass(frozen=True)
class LowstateBridgeParameters(RobotChoice):
    """Parameters of `lowstate_bridge`."""

    robot: str = read_only(
        'g1_as_sold', 'Name of a robot of this package, or path of a YAML file; it has low_state')
    recording: str = read_only(
        '', 'Play this rosbag2 (directory, .mcap or .db3) instead of subscribing to the topic; '
        'the package of the message is not needed. Stamps are moved to the present')
    check_crc: bool = read_only(
        True, 'Whether to refuse messages with a wrong checksum; simulators leave it at 0')
    sensor_timeout: float = read_only(
        0.5, 'Time without messages after which the input is stale', 's', 0.001, 60.0)


_IMU_FIELDS = 'orientation', 'angular_velocity', 'linear_acceleration'
#: Temperature of a motor that is reported, deg C.
_HOT = 90


class LowstateBridge(RobotNode[LowstateBridgeParameters]):
    """LowState in, joint states and IMU out, see the module."""

    takes_inertials = False

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('lowstate_bridge', LowstateBridgeParameters, **node_kwargs)

    def build(self, model: RobotModel) -> None:
        """Subscribe to the robot, or play the recording."""
        config, params = model.config, self.params
        self.stream = stream = LowStateStream(config, params.check_crc)
        model.joint_index(name for name in stream.joints if name not in config.locked_joints)
        self._joints = joint_state_publisher(self, 'joint_states', stream.joints)
        self._imu = imu_publisher(self, config.imu.topic, config.imu.frame)
        self._counted_before: dict[str, int] = {}
        self.diagnostics.add('messages', self._report_messages)
        self.diagnostics.add('motors', self._report_motors)
        assert config.low_state is not None  # LowStateStream raises without it
        topic = config.low_state.topic
        if params.recording:
            self.player = LowStatePlayer(self, params.recording, topic, stream, self._on_state)
            self.diagnostics.add('recording', self.player.report)
            return
        source = LowStateInput(
            self, topic, low_state_type(config.low_state.message), stream, self._on_state,
            diagnostics=self.diagnostics, timeout=params.sensor_timeout)
        self.watch_inputs({'LowState of the robot': source})

    def _on_state(self, stamp_ns: int) -> None:
        stream, joints, imu = self.stream, self._joints.fields, self._imu.fields
        state = stream.state
        assert state is not None
        imu['orientation'][...] = state.quaternion
        imu['angular_velocity'][...] = state.angular_velocity
        imu['linear_acceleration'][...] = state.acceleration
        self._imu.publish(stamp_ns)
        joints['position'][...] = stream.positions
        joints['velocity'][...] = stream.velocities
        joints['effort'][...] = stream.efforts
        self._joints.publish(stamp_ns)

    def _report_messages(self) -> Report:
        clock = self.stream.clock
        values = {'lost': clock.lost, 'restarts of the robot': clock.restarts,
                  'jumps of a clock': clock.jumps}
        before, self._counted_before = self._counted_before, values
        new = {name: count - before.get(name, 0) for name, count in values.items()
               if count > before.get(name, 0)}
        if not new:
            return OK, 'no message lost', values
        counts = ', '.join(f'{name}: {count}' for name, count in new.items())
        return WARN, (f"in the last second: {counts}; check the network's load, and that nothing "
                      'else publishes this topic'), values

    def _report_motors(self) -> Report:
        errors, (hottest, temperature) = self.stream.errors, self.stream.hottest
        values = {'hottest': f'{hottest} {temperature} deg C',
                  **{f'errors of {name}': n for name, n in errors.counts.items()}}
        if errors.recent:
            named = ', '.join(
                f'{name} (code {errors.codes[name]})' if name in errors.codes
                else f'{name} ({errors.counts[name]} packets lost)' for name in errors.recent)
            return ERROR, f"error of {named}: see the robot's manual", values
        if temperature >= _HOT:
            return WARN, (f'the motor of {hottest} is at {temperature} deg C (limit {_HOT}): '
                          'let it cool'), values
        return OK, 'no error', values


def imu_publisher(node: Node, topic: str, frame_id: str) -> TemplatePublisher:
    """Publish an IMU whose covariances are not known."""
    prototype = Imu(header=Header(frame_id=frame_id))
    return TemplatePublisher(node, topic, prototype, {name: name for name in _IMU_FIELDS})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(LowstateBridge, argv)


if __name__ == '__main__':
    sys.exit(main())
