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
Motion and efforts in one trajectory, for controllers that take both from there.

The controller replaces its trajectory by each message, so nothing else may send it one: who wants
the robot to move sends the motion to this node, as to the controller. Positions are those of the
drives here, as in ``joint_states``: joint offsets are neither added nor taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from biped_com_ros.core.constants import nanoseconds, SECOND_NS, SET_BACK_NS
from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.joint_trajectory import joint_trajectory, JointTrajectory
from biped_com_ros.core.gravity.reference import (
    Motion, PositionReference, prevent_overshoot, UNKNOWN_SPEED)
from biped_com_ros.core.model.robot import (FASTEST, position_limits, RobotModel, velocity_limits)
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.nodes.gravity_compensation.outputs import ControllerOutput
from biped_com_ros.nodes.gravity_compensation.parameters import GravityCompensationParameters
from biped_com_ros.nodes.gravity_compensation.trajectory_controller import (
    CommandedPositions, OtherGoals)
from biped_com_ros.nodes.gravity_compensation.trajectory_goals import TrajectoryGoals
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.topics.outputs import TemplatePublisher
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, overridable
from biped_com_ros.ros.topics.stamp import ns_of_msg
from biped_com_ros.ros.topics.whole_messages import LONGEST_TRAJECTORY, subscribe
import numpy as np
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMsg, JointTrajectoryPoint

TRAJECTORY_TOPIC = '~/joint_trajectory'
#: Time that the points of a message cover, and time between them, s.
_REACH, _STEP = 0.1, 0.02
#: Time after the last of these points in which the joints come to rest if no message follows, s.
_BRAKE_TIME = 0.2
_INACTIVE = 'gravity_compensation is not active: activate it'
_AWAITED = 'waiting for the state of the controller, to begin at the positions that it commands'
_FIELDS = {'positions': 'points[*].positions', 'velocities': 'points[*].velocities',
           'efforts': 'points[*].effort'}


class TrajectoryOutput(ControllerOutput):
    """
    Publishes the commanded positions with the efforts; follows trajectories, goals and positions.

    Each message has a point in `2 / trajectory_rate` from now, further ones as far as `_REACH`,
    and one in which the joints are at rest again: without another message the controller stops
    them. It starts at the stamp of the joint states, which is of the controller's clock: however
    late it arrives, positions are reached in time.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, the node's parameters.
    joints
        In the order of the messages.
    is_commanding
        Returns whether efforts are commanded.
    events
        What to call when a subscriber comes or goes.

    """

    def __init__(self, node: Node, model: RobotModel, params: GravityCompensationParameters,
                 joints: Sequence[str], is_commanding: Callable[[], bool],
                 events: PublisherEventCallbacks) -> None:
        super().__init__(model, joints)
        self._node, self._params, rate = node, params, params.trajectory_rate
        self._pace, self._ahead = StampThrottle(rate), _times_ahead(rate)
        self._offsets = model.joint_offsets[self._index]
        lower, upper = (limits[self._index] + self._offsets for limits in position_limits(model))
        speeds = velocity_limits(model)[self._index]
        self._reference = PositionReference(joints, lower, upper, speeds)
        if unlimited := [name for name, speed in zip(joints, speeds) if not np.isfinite(speed)]:
            self.restriction = (
                f'{", ".join(unlimited)}: no velocity limit below {FASTEST:g} in the URDF; '
                f'positions are commanded at most at {UNKNOWN_SPEED:g} rad/s or m/s: give '
                '<limit velocity="..."/>')
            node.get_logger().warning(self.restriction)
        self._now_ns, self._refusal = 0, _INACTIVE
        self._throttle, self._last_error = Throttle(), ''
        self._has_efforts = False
        self._make_publisher(events)
        self.remedy = ('the controller follows whichever message was last; let them publish to '
                       f"'{node.get_fully_qualified_name()}/reference_trajectory'")
        self._subscriptions: list[Subscription] = []
        self._goals = TrajectoryGoals(node, params, self.joints, self.follow)
        topic = self.publisher.topic
        self._other_goals = OtherGoals(node, topic, is_commanding, self._after_other_goal)
        self._commanded = CommandedPositions(node, topic, self.joints)

    def _make_publisher(self, events: PublisherEventCallbacks) -> None:
        zeros = [0.0] * len(self.joints)
        self._times = np.append(self._ahead, self._ahead[-1] + _BRAKE_TIME)
        times = self._times.tolist()
        points = [JointTrajectoryPoint(positions=zeros, velocities=zeros, effort=zeros)
                  for _ in times]
        for point, time in zip(points, times):
            seconds, point.time_from_start.nanosec = divmod(nanoseconds(time), SECOND_NS)
            point.time_from_start.sec = seconds
        self.publisher = TemplatePublisher(
            self._node, TRAJECTORY_TOPIC, JointTrajectoryMsg(
                joint_names=list(self.joints), points=points), _FIELDS, event_callbacks=events)

    def awaited(self) -> str:
        """Return what is needed before commands begin, and comes soon; '' if nothing."""
        return _AWAITED if not self._reference.is_set and self._commanded.must_wait() else ''

    def conflict(self) -> str:
        """Return which goal of the controller is running; '' if none."""
        return self._other_goals.problem

    def cancel_other_goals(self) -> None:
        """Cancel goals that others send to the controller, if efforts are commanded."""
        self._other_goals.cancel()

    def report(self) -> str:
        """Return what was refused last, or what interferes, for diagnostics; '' if nothing."""
        error, self._last_error = self._last_error, ''
        return error or self._other_goals.recent

    # -- life

    def start(self) -> None:
        """Accept motions, from the positions on that the controller commands then."""
        self.interrupt('gravity_compensation was activated')
        self._commanded.subscribe()
        if not self._subscriptions:
            self._subscriptions = [
                self._subscribe(JointState, '~/reference', self._on_positions),
                self._subscribe(JointTrajectoryMsg, '~/reference_trajectory', self.follow)]

    def _subscribe(self, kind: type, topic: str,
                   callback: Callable[[Any], object]) -> Subscription:
        def on_message(message: Any) -> None:
            try:
                callback(message)
            except BipedComError as error:
                self._last_error = f"'{topic}': {error}"
                if self._throttle(topic):
                    self._node.get_logger().error(f'{self._last_error} (message not used)')
        return subscribe(
            self._node, kind, topic, on_message, COMMAND_INPUT, longest=LONGEST_TRAJECTORY,
            qos_overriding_options=overridable())

    def stop(self) -> None:
        """Accept no more motions; the present one is followed while efforts ramp to zero."""
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        self._commanded.ignore()
        self._goals.abort(_INACTIVE)

    def interrupt(self, reason: str) -> None:
        """Drop all positions, since nothing is commanded; the next ones are read anew."""
        if reason not in (self._refusal, _AWAITED):
            self._commanded.clear()  # the controller may have begun anew since
        self._refusal = reason
        if not self._reference.is_set:
            return
        if self._reference.motions:
            self._node.get_logger().error(
                f'motion aborted: {reason}; send it again once efforts are commanded')
        self._reference.clear()
        if self._subscriptions:
            self._commanded.subscribe()
        self._goals.abort(reason)

    def destroy(self) -> None:
        """Destroy everything."""
        self.stop()
        super().destroy()
        self._goals.destroy()
        self._other_goals.destroy()

    # -- motion in

    def follow(self, message: JointTrajectoryMsg, only_check: bool = False) -> Motion | None:
        """
        Follow a trajectory from now on, or only check it.

        Raises
        ------
        BipedComError
            If it cannot be followed.

        """
        self._require_open()
        trajectory, now = _trajectory(message), self._now_ns / SECOND_NS
        start = ns_of_msg(message.header.stamp) / SECOND_NS or now
        if only_check:
            self._reference.check(trajectory, start, now)
            return None
        return self._reference.follow(trajectory, start, now)

    def _require_open(self) -> None:
        if not self._subscriptions:
            raise InputError(_INACTIVE)
        if not self._reference.is_set:
            raise InputError(self._refusal)

    def _on_positions(self, message: JointState) -> None:
        self._require_open()
        self._reference.hold(message.name, np.array(message.position))

    def _after_other_goal(self) -> None:
        """Command at once: a trajectory of somebody else has replaced the last one."""
        self._pace.set_rate(self._params.trajectory_rate)

    # -- commands out

    def publish(self, stamp_ns: int, efforts: Array, record: Array, *measured: Array) -> None:
        """Publish, if it is time to; see `ControllerOutput`."""
        if stamp_ns < self._now_ns - SET_BACK_NS:
            self.interrupt('the clock was set back')
            self._now_ns = stamp_ns
        self._now_ns = max(self._now_ns, stamp_ns)
        now = self._now_ns / SECOND_NS
        if not self._reference.is_set:
            if not measured:
                return
            commanded = self._commanded.positions()
            self._reference.begin(
                self._of_drives(measured[0]) if commanded is None else commanded, now)
            self._commanded.ignore()
        had_efforts, self._has_efforts = self._has_efforts, bool(efforts.any())
        # The last message of a ramp to zero, after which none may come, is always sent.
        if self._pace.is_due(self._now_ns) or (had_efforts and not self._has_efforts):
            record[...] = efforts.take(self._index)
            self._write(now, record)
            # While joint states are late, the stamp is of this computer's clock.
            self.publisher.publish(self._now_ns if measured else 0)
        if self._goals.are_active and measured:
            positions, velocities = measured
            self._goals.update(now, self._reference, self._of_drives(positions),
                               velocities[self._index])

    def _of_drives(self, positions: Array) -> Array:
        """Return what the encoders of the joints measure at positions, (n,)."""
        return positions[self._index] + self._offsets

    def _write(self, now: float, efforts: Array) -> None:
        reference, fields = self._reference, self.publisher.fields
        positions, velocities = fields['positions'], fields['velocities']
        positions[0], velocities[0] = reference.command(now, float(self._ahead[0]))
        if len(self._ahead) > 1:
            positions[1:-1], velocities[1:-1] = reference.continuation(now + self._ahead)
        positions[-1] = reference.clamp(positions[-2] + 0.5 * _BRAKE_TIME * velocities[-2])
        prevent_overshoot(self._times, positions, velocities)
        fields['efforts'][...] = efforts


def _times_ahead(rate: float) -> Array:
    """Return times of the points of a message, (k,), s, from its stamp on."""
    first = 2.0 / rate
    count = max(round((_REACH - first) / _STEP), 0) + 1
    return np.linspace(first, first + _STEP * (count - 1), count, dtype=np.float64)


def _trajectory(message: JointTrajectoryMsg) -> JointTrajectory:
    """
    Return the trajectory of a message.

    Raises
    ------
    InputError
        If it is invalid.

    """
    points = message.points
    if any(len(point.effort) for point in points):
        raise InputError('the trajectory has efforts, which gravity_compensation computes: leave '
                         'effort empty')
    return joint_trajectory(
        message.joint_names,
        [point.time_from_start.sec + point.time_from_start.nanosec / SECOND_NS
         for point in points],
        *([getattr(point, field) for point in points]
          for field in ('positions', 'velocities', 'accelerations')))
