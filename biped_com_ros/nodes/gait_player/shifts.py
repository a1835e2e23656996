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
"""Shifts of the centre of mass over a foot or a hand: planning, motions, and holding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.player import RemainingMotion
from biped_com_ros.core.legs.shift_session import PlannedShift, ShiftRequest, ShiftSession
from biped_com_ros.core.legs.walk_session import KNOT_PERIOD
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gait_player.inputs import WalkInputs
from biped_com_ros.nodes.gait_player.outputs import TrajectoryPublisher
from biped_com_ros.nodes.gait_player.parameters import (
    GaitPlayerParameters, LEAD, POSTURE_TOLERANCE)
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import JointStateInput
import numpy as np

HOLD_DURATION = 0.3
"""Time in which joints that are held come to rest, s."""

_GOAL_TIME = 1.0
"""Time that joints have to reach the end of a motion after it, s."""

_WHAT = 'shift the centre of mass'


class WalkingState(Protocol):
    """What a shift has to know of the node's other motions."""

    joints: JointStateInput

    def require_ready(self, what: str) -> None:
        """Raise InputError if inputs or the controller are missing."""

    def require_rest(self, what: str) -> None:
        """Raise InputError if another motion is planned or executed."""

    def subscribe_to_walk_inputs(self) -> WalkInputs:
        """Make the subscriptions with the IMU, and return them."""

    def drop_walk_inputs(self) -> None:
        """Destroy them, unless the robot balances with them."""

    def publish_state(self) -> None:
        """Publish what the node does now."""


class ComShifts:
    """
    Plans and begins shifts.

    Parameters
    ----------
    node
        The node, whose parameters and model are used.
    planning_model
        The model that planning uses, in the thread of `background`.
    trajectories
        Publishes the motions.
    background
        Plans one motion at a time.
    state
        Of the node; has the joints, too.

    Attributes
    ----------
    problem
        Which joint did not reach the end of the last motion; '' if all did.

    """

    def __init__(self, node: RobotNode[GaitPlayerParameters], planning_model: RobotModel,
                 trajectories: TrajectoryPublisher, background: BackgroundTask[Any],
                 state: WalkingState) -> None:
        self._node, self._planning_model, self._state = node, planning_model, state
        self._trajectories, self._background = trajectories, background
        self._session = ShiftSession(planning_model)
        self._pending: ShiftRequest | None = None
        self.problem = ''
        self._goal: tuple[int, Array] | None = None  # by when joints have to be where

    # -- requests

    def shift_com(self) -> str:
        """Plan a shift as the parameters specify; return what happens."""
        request = self._read_request()
        self._state.require_ready(_WHAT)
        self._state.require_rest('a shift')
        self.require_none()
        self._state.subscribe_to_walk_inputs()
        self._pending = request
        self._state.publish_state()
        return f"planning a shift of the centre of mass over '{request.contact}'"

    def _read_request(self) -> ShiftRequest:
        params, config = self._node.params, self._node.model.config
        contact, holding = params.shift_foot or next(iter(config.feet)), params.shift_holding
        known = (*config.feet, *(config.hand_label(hand) for hand in holding))
        if contact not in known:
            raise InputError(
                f"parameter 'shift_foot': the robot has no foot '{contact}'; valid: "
                f'{", ".join(known)}; hands only if they are in shift_holding')
        return ShiftRequest(contact=contact, holding=tuple(holding), share=params.shift_share,
                            duration=params.shift_time)

    def require_none(self) -> None:
        """Raise InputError while the centre of mass is shifted."""
        if contact := self._session.contact:
            raise InputError(f"the centre of mass is over '{contact}' already; call "
                             f"{self._node.resolve_service_name('~/shift_back')} first")

    # -- motions

    @property
    def is_pending(self) -> bool:
        """Whether a shift will be planned as soon as the inputs have settled."""
        return self._pending is not None

    def cancel(self) -> None:
        """Drop a request that is not planned yet."""
        self._pending = None

    def plan(self, inputs: WalkInputs) -> None:
        """Plan in the background what was requested, with the direction of gravity."""
        request, self._pending = self._pending, None
        assert request is not None and self._state.joints.stamp_ns is not None
        model, urdf = self._planning_model, self._node.model.urdf
        measured = self._state.joints.positions.copy()
        request = replace(request, up=inputs.up(self._state.joints.stamp_ns, measured))
        self._state.drop_walk_inputs()
        if request.up is None:
            self._node.get_logger().warning(
                'no data of an IMU: the shift is planned as if the floor were level')

        def plan() -> PlannedShift:
            if model.urdf != urdf:  # the masses were calibrated meanwhile
                model.use_inertials(urdf)
            return self._session.plan(measured, request, KNOT_PERIOD)

        self._background.start(plan, self._begin)

    def _begin(self, planned: PlannedShift) -> None:
        """Begin a planned shift, unless it has become impossible."""
        self._state.require_ready(_WHAT)
        motion, joints = planned.motion, planned.joints
        self._trajectories.require_moves(joints)
        moved = np.abs(motion.positions[0] - self._state.joints.positions)[joints].max()
        if not moved <= POSTURE_TOLERANCE:
            raise InputError(f'cannot shift the centre of mass: the joints moved by {moved:.2f} '
                             'rad while it was planned; try it again')
        self._session.begin(planned, self._send(motion))

    def shift_back(self) -> str:
        """Begin the way back; return what happens."""
        self._state.require_ready(_WHAT)
        self._state.require_rest('the way back')
        self._send(self._session.back(
            self._state.joints.positions, self._node.params.shift_time, KNOT_PERIOD,
            POSTURE_TOLERANCE, self._begin_ns()))
        self._state.publish_state()
        return 'shifting the centre of mass back'

    def _begin_ns(self) -> int:
        """Return when a motion begins that is sent now, ns."""
        stamp_ns = self._state.joints.stamp_ns
        assert stamp_ns is not None
        return stamp_ns + nanoseconds(LEAD)

    def _send(self, motion: RemainingMotion) -> int:
        begin = self._begin_ns()
        self._trajectories.publish(begin, motion)
        self.problem = ''
        self._goal = begin + nanoseconds(motion.times[-1] + _GOAL_TIME), motion.positions[-1]
        return begin

    # -- while it moves

    @property
    def is_moving(self) -> bool:
        """Whether a shift has begun and not ended."""
        ns = self._state.joints.stamp_ns
        return ns is not None and self._session.is_moving(ns)

    @property
    def progress(self) -> float:
        """Share of the time of the present motion that has gone by, 0 to 1."""
        ns = self._state.joints.stamp_ns
        return 0.0 if ns is None else self._session.progress(ns)

    def advance(self, stamp_ns: int) -> None:
        """Notice the end of a motion at a time, ns, and whether the joints have got there."""
        if self._goal is not None and stamp_ns >= self._goal[0]:
            self._check_goal(self._goal[1])
            self._goal = None
        if self._session.contact:
            self._session.advance(stamp_ns)
            self._state.publish_state()

    def _check_goal(self, goal: Array) -> None:
        try:
            self._state.require_rest(_WHAT)
        except InputError:  # the next motion has begun
            return
        joints = self._session.joints
        errors = np.abs(self._state.joints.positions - goal)[joints]
        worst = int(errors.argmax())
        if errors[worst] > POSTURE_TOLERANCE:
            name = self._node.model.joint_names[int(joints[worst])]
            self.problem = (
                f"joint '{name}' is {errors[worst]:.3f} rad from the end of the shift (at most "
                f'{POSTURE_TOLERANCE:g}): check that its controller follows')
            self._node.get_logger().error(self.problem)

    def hold(self) -> None:
        """Hold the joints of a shift."""
        self._goal = None
        self._session.interrupt()
        self._trajectories.publish_hold(self._state.joints.positions, HOLD_DURATION)
        self._state.publish_state()

    def check(self, problem: str) -> None:
        """Hold the joints if there is a problem while they move: something is stale or wrong."""
        if problem and self.is_moving:
            self.hold()
            self._node.get_logger().error(f'shift interrupted, joints held: {problem}')
