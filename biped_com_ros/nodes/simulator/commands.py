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
"""Command inputs of `simulator`, as a robot with ros2_control has them."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import OK, Report, WARN
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import ArrayInput
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from biped_com_ros.ros.topics.whole_messages import LONGEST_TRAJECTORY, subscribe
from biped_com_ros.sim.pacing import Pacer
from biped_com_ros.sim.setpoints import Setpoints
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory


_REFUSED = 10.0
"""A refused command is a warning for so long, s."""


class CommandInputs:
    """
    Passes commands to the setpoints; after an invalid one, the last valid one stays in use.

    Parameters
    ----------
    node, setpoints, pacer
        The simulator's.
    now
        Returns the simulated time, s.
    on_command
        Called after each array of commands.

    Attributes
    ----------
    arrays
        Inputs of arrays, which count refused messages themselves.
    refused, last_error
        Number of other refused commands, and the reason of the last one.

    """

    def __init__(self, node: Node, setpoints: Setpoints, now: Callable[[], float],
                 pacer: Pacer, on_command: Callable[[], None]) -> None:
        self._node, self._setpoints, self._now = node, setpoints, now
        self._pacer, self._on_command = pacer, on_command
        self._throttle = Throttle(5.0)
        self.refused, self.last_error = 0, ''
        self._reported, self._refused_at = 0, -math.inf
        count = len(setpoints.names)
        self.arrays = [
            self._array(names.POSITION_COMMANDS, count, setpoints.set_positions),
            self._array(names.EFFORT_COMMANDS, count, setpoints.set_efforts)]
        if setpoints.tendon_count:
            self.arrays.append(self._array(
                names.TENDON_COMMANDS, setpoints.tendon_count, setpoints.set_tendons))
        subscribe(
            node, JointTrajectory, names.JOINT_TRAJECTORY, self._on_trajectory, COMMAND_INPUT,
            longest=LONGEST_TRAJECTORY)

    def _array(self, topic: str, count: int, use: Callable[[Any], None]) -> ArrayInput:
        stream = self._pacer.add_stream()

        def on_command(_: int, values: Any) -> None:
            self.execute(topic, lambda: use(values))
            stream.on_command()
            self._on_command()
        return ArrayInput(self._node, topic, count, on_command, qos=COMMAND_INPUT)

    def _on_trajectory(self, message: Any) -> None:
        self.execute(names.JOINT_TRAJECTORY, lambda: self._set_trajectory(message))

    def _set_trajectory(self, message: Any) -> None:
        points = message.points
        if not points:
            raise InputError('the trajectory has no points')
        for point in points:
            if len(point.positions) != len(message.joint_names):
                raise InputError(
                    f'a point has {len(point.positions)} positions for '
                    f'{len(message.joint_names)} joint_names; valid: one each')
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
        velocities, efforts = (
            _of_all_or_none(points, field) for field in ('velocities', 'effort'))
        stamp = message.header.stamp
        start = stamp.sec + 1e-9 * stamp.nanosec or self._now()
        if start + times[-1] < self._now():
            raise InputError(
                f'the trajectory ended {self._now() - start - times[-1]:.3f} s ago; a stamp of '
                'zero starts it at once')
        self._setpoints.set_trajectory(
            message.joint_names, times, [list(p.positions) for p in points], velocities, start,
            efforts)

    def execute(self, topic: str, use: Callable[[], None]) -> None:
        """Use a command; if it is invalid, count it and log why."""
        try:
            use()
        except BipedComError as error:
            self.refused += 1
            self.last_error = f"'{topic}': {error}"
            if self._throttle(topic):
                self._node.get_logger().error(f'{self.last_error}; command ignored')

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        refused = self.refused + sum(sum(a.refused.values()) for a in self.arrays)
        errors = [a.last_error for a in self.arrays if a.last_error]
        values: dict[str, float] = {f'received: {a.topic}': a.count for a in self.arrays}
        if refused > self._reported:
            self._reported, self._refused_at = refused, steady_time()
        values['refused'] = refused
        if not refused:
            return OK, 'no command refused', values
        last, age = self.last_error or errors[-1], steady_time() - self._refused_at
        values['age of the last refusal [s]'] = age
        return (WARN if age < _REFUSED else OK), (
            f'{refused} commands refused; last, {age:.0f} s ago: {last}'), values


def _of_all_or_none(points: Any, field: str) -> list[list[float]] | None:
    """Return a field of all points, None if it is empty; InputError if only some have it."""
    values = [list(getattr(point, field)) for point in points]
    if any(values) and not all(values):
        raise InputError(f'only some points of the trajectory have {field}; valid: all or none')
    return values if any(values) else None
