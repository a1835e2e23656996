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
Balancing while the robot stands.

``~/balance`` with ``data: true`` lets the feedback of walks act at rest, too: the robot comes
upright where it stands on a slope, and yields to pushes. It goes on in walks and after them, until
``data: false``. While inputs are stale the robot keeps its posture; if this node ends, the
controller keeps it.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.legs.walk_session import WalkSession
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gait_player.inputs import WalkInputs
from biped_com_ros.nodes.gait_player.outputs import TrajectoryPublisher
from biped_com_ros.nodes.gait_player.parameters import GaitPlayerParameters, POSTURE_TOLERANCE
from biped_com_ros.nodes.gait_player.shifts import WalkingState
from biped_com_ros.ros.node.background import BackgroundTask

_WHAT = 'balance'


class BalancingNode(WalkingState, Protocol):
    """What balancing uses of the node."""

    params: GaitPlayerParameters
    model: RobotModel

    @property
    def is_planning(self) -> bool:
        """Whether a motion is planned, or will be."""

    @property
    def standing_positions(self) -> Array:
        """Return the measured positions of the joints without what balancing adds, (n,), rad."""

    def com_offset(self, inputs: WalkInputs) -> Array:
        """Return the measured offset of the centre of mass, (2,), m."""

    def subscribe_to_walk_inputs(self) -> WalkInputs:
        """Make the subscriptions that balancing needs."""

    def drop_walk_inputs(self) -> None:
        """Destroy them, unless the robot balances with them."""

    def get_logger(self) -> Any:
        """Return the logger."""


class StandingBalance:
    """
    Begins and ends balancing, and publishes its trajectories.

    Parameters
    ----------
    node
        The node.
    session
        Has the feedback.
    trajectories
        Publishes the motions.
    background
        Plans one motion at a time.

    Attributes
    ----------
    is_requested
        Whether balancing will begin as soon as the inputs have settled.

    """

    def __init__(self, node: BalancingNode, session: WalkSession,
                 trajectories: TrajectoryPublisher, background: BackgroundTask[Any]) -> None:
        self._node, self._session = node, session
        self._trajectories, self._background = trajectories, background
        self.is_requested = self._is_pending = self._is_stale = False

    def switch(self, value: bool) -> str:
        """Begin or end balancing; return what happens."""
        return self._request() if value else self.end()

    def _request(self) -> str:
        node = self._node
        if self._session.is_balancing:
            return 'the robot balances already'
        if not node.params.feedback:
            raise InputError("cannot balance: set the parameter 'feedback' to true")
        node.require_ready(_WHAT)
        node.require_rest('balancing')
        node.subscribe_to_walk_inputs()
        self.is_requested = self._is_pending = True
        node.publish_state()
        return 'balancing as soon as IMU and foot wrenches are received'

    def plan(self, inputs: WalkInputs) -> None:
        """Plan in the background to balance as the robot stands now."""
        node, player = self._node, self._session.player
        self.is_requested = False
        if missing := self._missing(inputs):
            raise InputError(f'cannot balance: {missing}')
        positions, offset = node.standing_positions, node.com_offset(inputs)
        tolerance, urdf = POSTURE_TOLERANCE, node.model.urdf

        def plan() -> Gait:
            player.use_inertials(urdf)
            return player.plan_stance(positions, offset, tolerance)

        self._background.start(plan, self._begin)

    def _begin(self, gait: Gait) -> None:
        """Begin to balance, unless the request was dropped while this was planned."""
        node = self._node
        if not self._is_pending:
            node.drop_walk_inputs()
            return
        self._is_pending = False
        node.require_ready(_WHAT)
        assert node.joints.stamp_ns is not None
        self._session.begin_balancing(gait, node.joints.stamp_ns)
        node.get_logger().info('balancing')

    def cancel(self) -> None:
        """Drop a request that was not executed yet."""
        self.is_requested = self._is_pending = False

    def end(self) -> str:
        """Balance no longer; return what happens."""
        node, session = self._node, self._session
        was_balancing = session.is_balancing
        self.cancel()
        motion = session.end_balancing()
        if motion is not None:
            self._trajectories.publish(session.last_ns, motion)
        if session.is_resting and not node.is_planning:
            node.drop_walk_inputs()
        node.publish_state()
        if not was_balancing:
            return 'the robot does not balance'
        return ('standing without feedback' if session.is_resting
                else 'standing without feedback after this walk')

    def advance(self, stamp_ns: int, positions: Array | None) -> None:
        """Balance at a time, ns, with the measured positions of the joints (n,), rad."""
        inputs = self._node.subscribe_to_walk_inputs()
        measured = None if positions is None else inputs.balance(stamp_ns, positions)
        self._is_stale = measured is None
        if self._session.stand(stamp_ns, positions, measured):
            self._trajectories.publish(stamp_ns, self._session.motion(stamp_ns))
        self._node.publish_state()

    @property
    def problem(self) -> str:
        """Return why the robot does not balance although it should; '' if it does."""
        session, inputs = self._session, self._node.subscribe_to_walk_inputs
        if not (session.is_balancing and session.is_resting and self._is_stale):
            return ''
        return f'balancing is suspended, the posture is kept: {self._missing(inputs())}'

    def values(self) -> dict[str, object]:
        """Return what a diagnostic shows."""
        feedback = self._session.feedback
        if not self._session.is_balancing or feedback is None:
            return {}
        roll, pitch = (math.degrees(angle) for angle in feedback.ground_tilt.tolist())
        x, y = (1e3 * feedback.dcm_error).tolist()
        return {'tilt of the ground [deg]': f'roll {roll:.1f}, pitch {pitch:.1f}',
                'DCM error [mm]': f'{x:.1f}, {y:.1f}'}

    def _missing(self, inputs: WalkInputs) -> str:
        """Return which inputs of the feedback are missing; '' if none is."""
        return inputs.missing_for_balance(self._node.params.feedback_timeout)
