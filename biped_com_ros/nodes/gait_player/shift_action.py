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
The action ``~/shift``: a shift of the centre of mass with feedback and result.

Its type is control_msgs/FollowJointTrajectory, whose multi_dof_trajectory describes the motion of
one frame. Here its only joint is ``com``, and one point has the goal, in the frame of the header:
a foot (or its sole frame), or a hand that holds on.

======================================= =========================================================
multi_dof_trajectory                    goal
======================================= =========================================================
``points[0].transforms[0].translation`` where the centre of mass goes in that sole frame, x and y
no transform                            below the ankle of that foot, or below that hand
``points[0].time_from_start``           duration; 0: parameter ``shift_time``
no points                               back to where the last shift began
======================================= =========================================================

Rotations, velocities and the stamp of the header are not used. Feedback has the desired and the
actual centre of mass (by the model) in the sole frame of the foot that it moves to or from, of the
first foot for a hand. A goal succeeds once all joints that move are within 0.05 rad of the
end; it is aborted if they are not, ``goal_time_tolerance`` (0: 1 s) after the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.com_shift import com_in_sole
from biped_com_ros.core.legs.shift_session import check_duration, ShiftSession
from biped_com_ros.nodes.gait_player.parameters import GaitPlayerParameters, POSTURE_TOLERANCE
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.goal_server import GoalServer
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Transform, Vector3
import numpy as np
from rclpy.task import Future
from trajectory_msgs.msg import MultiDOFJointTrajectoryPoint

_COM = 'com'
#: Time that joints have to reach the end, s, unless the goal gives one.
_GOAL_TIME = 1.0


class ShiftGoal(NamedTuple):
    """
    Where the centre of mass shall go.

    Attributes
    ----------
    contact
        Foot, or label of a hand that holds on; '' back to where the last shift began.
    point
        (x, y) in the sole frame, m; None: below the ankle, or the hand.
    duration
        s; 0: as the parameters specify.

    """

    contact: str
    point: tuple[float, float] | None
    duration: float


class ShiftCommands(NamedTuple):
    """
    What the node does for a goal.

    Attributes
    ----------
    check
        Raises an InputError if a shift cannot be started now.
    start
        Starts it.
    hold
        Cancels planning, or holds the joints.
    is_planning
        Whether a motion is planned, so that it has not begun yet.

    """

    check: Callable[[ShiftGoal], object]
    start: Callable[[ShiftGoal], object]
    hold: Callable[[], object]
    is_planning: Callable[[], bool]


class _ActiveGoal:
    """An accepted goal; `ended` is done when it is reached, aborted or cancelled."""

    def __init__(self, handle: Any, time: float) -> None:
        self.server_goal, self.time, self.has_begun = handle, time, False
        self.is_cancelled, self.error_code, self.reason, self.ended = False, 0, '', Future()


class ShiftAction:
    """
    Serves the action ``~/shift``, if control_msgs is installed.

    Parameters
    ----------
    node
        The node, whose parameters and model are used.
    session
        Of the shifts.
    commands
        What the node does.

    """

    def __init__(self, node: RobotNode[GaitPlayerParameters], session: ShiftSession,
                 commands: ShiftCommands) -> None:
        self._node, self._session, self._commands = node, session, commands
        self._prefix = frame_prefix(node)
        self._goals: list[_ActiveGoal] = []  # until their results are returned
        self._server = GoalServer(node, '~/shift', self._on_goal, self._on_accepted, self._execute)
        self._type = self._server.type
        if problem := self._server.problem:
            node.get_logger().info(f'{problem}, or use the services ~/shift_com and ~/shift_back')

    # -- the action

    def _on_goal(self, request: Any) -> None:
        """Raise InputError if a goal has to be rejected."""
        self._commands.check(self._read(request))

    def _read(self, request: Any) -> ShiftGoal:
        trajectory = request.multi_dof_trajectory
        others = (request.trajectory.joint_names, request.path_tolerance, request.goal_tolerance,
                  request.component_path_tolerance, request.component_goal_tolerance)
        if any(map(len, others)) or list(trajectory.joint_names) != [_COM]:
            raise InputError(f"multi_dof_trajectory must have the joint '{_COM}' alone; leave "
                             'trajectory and the tolerances of joints and components empty')
        if _seconds(request.goal_time_tolerance) < 0.0:
            raise InputError('goal_time_tolerance must not be negative')
        if not trajectory.points:
            return ShiftGoal('', None, 0.0)
        if len(trajectory.points) > 1:
            raise InputError('multi_dof_trajectory must have one point, the goal, or none, to go '
                             f'back; it has {len(trajectory.points)}')
        point, = trajectory.points
        duration = _seconds(point.time_from_start)
        if duration:
            check_duration(duration)
        return ShiftGoal(
            self._contact(trajectory.header.frame_id), _xy(point.transforms), duration)

    def _contact(self, frame: str) -> str:
        """Return the foot or hand of a frame."""
        config = self._node.model.config
        hands = map(config.hand_label, self._node.params.shift_holding)
        contacts = {name: name for name in (*config.feet, *hands)}
        contacts |= {config.sole_frame(foot): foot for foot in config.feet}
        found = contacts.get(frame.removeprefix(self._prefix))
        if found is None:
            raise InputError(f"frame_id '{frame}' of multi_dof_trajectory is no foot; valid: "
                             f'{", ".join(contacts)}; hands only if they are in shift_holding')
        return found

    def _on_accepted(self, handle: Any) -> None:
        active = _ActiveGoal(handle, _seconds(handle.request.goal_time_tolerance) or _GOAL_TIME)
        try:
            self._commands.start(self._read(handle.request))
        except BipedComError as error:
            self._end(active, self._type.Result.INVALID_GOAL, str(error))
        active.has_begun = not self._commands.is_planning()
        self._goals.append(active)

    async def _execute(self, handle: Any) -> Any:
        """Wait for the end of a goal, and return its result."""
        active = next((goal for goal in self._goals if goal.server_goal is handle), None)
        if active is None:  # it could not be started
            handle.abort()
            return self._type.Result(
                error_code=self._type.Result.INVALID_GOAL, error_string='failed; see the log')
        await active.ended
        self._goals.remove(active)
        if active.is_cancelled:
            handle.canceled()
        elif active.error_code:
            handle.abort()
        else:
            handle.succeed()
        return self._type.Result(error_code=active.error_code, error_string=active.reason)

    # -- while a goal is executed

    @property
    def is_active(self) -> bool:
        """Whether a goal is neither reached nor given up."""
        return self._active is not None

    @property
    def _active(self) -> _ActiveGoal | None:
        return next((goal for goal in self._goals if not goal.ended.done()), None)

    def on_motion(self) -> None:
        """Note that a planned motion has begun."""
        if (active := self._active) is not None:
            active.has_begun = True

    def abort(self, reason: str) -> None:
        """End a goal that cannot be reached any more."""
        if (active := self._active) is not None:
            self._end(active, self._type.Result.INVALID_GOAL, reason)

    def update(self, ns: int, positions: Array) -> None:
        """
        Publish feedback, and end a goal that is reached, failed or cancelled.

        Parameters
        ----------
        ns
            Time of the joints, ns.
        positions
            Of all joints, (n,), rad.

        """
        active = self._active
        if active is None:
            return
        if active.server_goal.is_cancel_requested:
            active.is_cancelled = True
            self._end(active, self._type.Result.SUCCESSFUL, 'cancelled')
            self._commands.hold()
        elif self._commands.is_planning():
            return
        elif not active.has_begun:
            self.abort('it could not be planned; see the log of this node')
        elif self._session.is_moving(ns):
            active.server_goal.publish_feedback(self._feedback(ns, positions))
        else:
            self._check_end(active, ns, positions)

    def _check_end(self, active: _ActiveGoal, ns: int, positions: Array) -> None:
        """End a goal when the joints are at the end of the motion, or have not got there."""
        late = self._session.time_since_end(ns)
        errors = np.abs(positions - self._session.end)[self._session.joints]
        worst, tolerance = int(errors.argmax()), POSTURE_TOLERANCE
        if late < 0.0:
            self.abort('the clock was set back')
        elif errors[worst] <= tolerance:
            self._end(active, self._type.Result.SUCCESSFUL, '')
        elif late > active.time:
            name = self._node.model.joint_names[self._session.joints[worst]]
            self._end(active, self._type.Result.GOAL_TOLERANCE_VIOLATED, (
                f"joint '{name}' is {errors[worst]:.3f} rad from the end of the shift "
                f'(at most {tolerance:g}): check that its controller follows'))

    def _end(self, active: _ActiveGoal, error_code: int, reason: str) -> None:
        if active.ended.done():
            return
        active.error_code, active.reason = error_code, reason
        if error_code:
            self._node.get_logger().warning(f'goal of ~/shift aborted: {reason}')
        active.ended.set_result(None)

    def _feedback(self, ns: int, positions: Array) -> Any:
        model, contact = self._node.model, self._session.contact
        foot = contact if contact in model.config.feet else next(iter(model.config.feet))
        desired, actual = (com_in_sole(model, foot, each)
                           for each in (self._session.desired(ns), positions))
        elapsed = self._session.elapsed(ns)
        feedback = self._type.Feedback(multi_dof_joint_names=[_COM])
        feedback.header.frame_id = self._prefix + model.config.sole_frame(foot)
        feedback.header.stamp.sec, feedback.header.stamp.nanosec = divmod(ns, SECOND_NS)
        for name, value in (('desired', desired), ('actual', actual), ('error', desired - actual)):
            setattr(feedback, f'multi_dof_{name}', MultiDOFJointTrajectoryPoint(
                transforms=[Transform(translation=Vector3(
                    **dict(zip('xyz', value.tolist()))))],
                time_from_start=Duration(
                    sec=int(elapsed), nanosec=int(elapsed % 1.0 * SECOND_NS))))
        return feedback


def _xy(transforms: Any) -> tuple[float, float] | None:
    """Return the goal in the sole frame; None if there is none."""
    if len(transforms) > 1:
        raise InputError(f'the point of multi_dof_trajectory has {len(transforms)} transforms; it '
                         f'must have one, of {_COM!r}, or none')
    if not transforms:
        return None
    goal = transforms[0].translation
    values = np.array((goal.x, goal.y, goal.z))
    if not np.isfinite(values).all() or goal.z:
        raise InputError(f'the translation of the goal is {values.tolist()} m; it must be finite, '
                         'and z 0: the height follows from the legs')
    return goal.x, goal.y


def _seconds(duration: Any) -> float:
    return float(duration.sec + duration.nanosec / SECOND_NS)
