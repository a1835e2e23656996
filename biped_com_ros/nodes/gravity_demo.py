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
``gravity_demo``: shows what gravity compensation does for the simulated robot, in plain lines.

The robot stretches its arms out, held by its position controllers alone, and sags; feedforward
starts, and the sag goes; then the weight goes over the left foot and back, and the largest step
of a torque within 2 ms is told. Ends by itself.

=========================== ======================= =========================================
topic                       type                    what
=========================== ======================= =========================================
joint_states                sensor_msgs/JointState  in; the clock of the motion
gravity_compensation/       sensor_msgs/JointState  in; the torques
effort
gravity_compensation/       std_msgs/               in; which foot carries how much
shares                      Float64MultiArray
gravity_compensation/       lifecycle_msgs/         called
change_state                ChangeState
position_controller/        std_msgs/               out; positions of the actuated joints
commands                    Float64MultiArray
=========================== ======================= =========================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import sys
from typing import Any

from biped_com_ros.core.gravity import GravityModel
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.motion import minimum_jerk
from biped_com_ros.core.pose import Array
from biped_com_ros.core.robot import RobotModel
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.executor import run
from biped_com_ros.ros.inputs import ArrayInput, JointStateInput
from biped_com_ros.ros.outputs import float_array_publisher
from biped_com_ros.ros.parameters import declare_parameters, parameter
from biped_com_ros.ros.qos import SENSOR_INPUT
from biped_com_ros.ros.robot import RobotSource
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

_PERIOD = 0.01  # s, of commands
_UPDATE = 0.002  # s, between two torques
_SETTLE = 3.0  # s, before something is measured


@dataclass(frozen=True)
class Parameters:
    """Parameters of the node."""

    robot: str = parameter('biped', 'Name of a robot or path of its YAML', read_only=True)
    urdf: str = parameter('', 'URDF to use instead of the one the robot names', read_only=True)
    posture: str = parameter('arms_out', 'Posture in which the sag is measured', read_only=True)


class GravityDemo(Node):
    """Goes through its story step by step, each step a posture for one period."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('gravity_demo', **node_kwargs)
        self.params = declare_parameters(self, Parameters)
        self._story: Iterator[Array] | None = None
        self._next_ns = 0
        self._largest_step, self._least_share = 0.0, 1.0
        self._last: Array | None = None
        self._last_ns = 0
        self._source = RobotSource(self, self.params, self._on_robot)

    def _on_robot(self, model: RobotModel) -> None:
        self._model = model
        self._limits = GravityModel(model).effort_limits[
            model.joint_index(model.actuated_joint_names)]
        self._actuated = model.joint_index(model.actuated_joint_names)
        self._positions = self._wanted = model.posture()
        self._out = float_array_publisher(
            self, 'position_controller/commands', len(self._actuated),
            labels=model.actuated_joint_names)
        self._client = self.create_client(ChangeState, 'gravity_compensation/change_state')
        self._joints = JointStateInput(self, model.joint_names, self._on_joints, max_age=0.0)
        self.create_subscription(
            JointState, 'gravity_compensation/effort', self._on_effort, SENSOR_INPUT)
        self._shares = ArrayInput(
            self, 'gravity_compensation/shares', len(model.config.feet), self._on_shares)

    # -- messages

    def _on_joints(self, stamp: Stamp, positions: Array, *_: Any) -> None:
        self._positions = positions.copy()
        if stamp.ns < self._next_ns or not self._client.service_is_ready():
            return
        self._next_ns = stamp.ns + round(1e9 * _PERIOD)
        if self._story is None:
            self._story = self._tell()
        wanted = next(self._story, None)
        if wanted is None:
            self.context.try_shutdown()
            return
        self._wanted = wanted
        self._out.fields['data'][...] = wanted[self._actuated]
        self._out.publish()

    def _on_effort(self, message: JointState) -> None:
        efforts, ns = np.array(message.effort), Stamp.from_msg(message.header.stamp).ns
        if self._last is not None and ns > self._last_ns:
            # Messages may be lost on a busy machine: what happened within 2 ms.
            periods = max(1e-9 * (ns - self._last_ns) / _UPDATE, 1.0)
            step = float(np.max(np.abs(efforts - self._last) / self._limits)) / periods
            self._largest_step = max(self._largest_step, step)
        self._last, self._last_ns = efforts, ns

    def _on_shares(self, stamp: Stamp, shares: Array) -> None:
        self._least_share = min(self._least_share, float(shares.min()))

    # -- the story

    def _tell(self) -> Iterator[Array]:
        """Yield what the joints are commanded, one period after the other."""
        model, name = self._model, self.params.posture
        stand = model.posture()
        raised = model.posture(name) if name in model.config.postures else stand
        self._say('stretches its arms out, held by position controllers alone')
        yield from _between(stand, raised, 2.0)
        yield from _wait(raised, _SETTLE)
        before = self._sag()
        self._say(f'sags: {_words(before)}; now feedforward starts')
        self._change(Transition.TRANSITION_CONFIGURE)
        yield from _wait(raised, 1.0)
        self._change(Transition.TRANSITION_ACTIVATE)
        yield from _wait(raised, _SETTLE + 2.0)
        after = self._sag()
        self._say(f'is held: {_words(after)}')
        yield from _between(raised, stand, 2.0)
        self._say('moves its weight over the left foot')
        self._largest_step, self._least_share = 0.0, 1.0
        foot = next(iter(model.config.feet))
        path = ComShift(model, stand).path(foot, round(3.0 / _PERIOD))
        yield from path
        yield from _wait(path[-1], 1.0)
        self._say('and back')
        yield from path[::-1]
        yield from _wait(stand, 1.0)
        self._say(f'carried {100.0 * self._least_share:.1f} % of its weight on the other foot; '
                  'the largest step of a torque in 2 ms was '
                  f'{100.0 * self._largest_step:.2f} % of its limit')

    def _say(self, words: str) -> None:
        print(f'{self._model.config.name} {words}', flush=True)

    def _change(self, transition: int) -> None:
        self._client.call_async(ChangeState.Request(transition=Transition(id=transition)))

    def _sag(self) -> tuple[float, float]:
        """Return the largest error of an actuated joint, deg, and of a hand, mm."""
        model = self._model
        wanted = self._positions.copy()
        wanted[self._actuated] = self._wanted[self._actuated]
        degrees = float(np.degrees(np.abs(self._positions - wanted).max()))
        hands = model.frames(hand.frame for hand in model.config.hands.values())
        if not hands.names:
            return degrees, 0.0
        found, ideal = (model.state(q).placements_in_base(hands)[:, 3]
                        for q in (self._positions, wanted))
        return degrees, 1e3 * float(np.linalg.norm(found - ideal, axis=1).max())


def _between(start: Array, end: Array, seconds: float) -> Iterator[Array]:
    for i in range(round(seconds / _PERIOD)):
        yield start + minimum_jerk((i + 1) * _PERIOD / seconds) * (end - start)


def _wait(positions: Array, seconds: float) -> Iterator[Array]:
    for _ in range(round(seconds / _PERIOD)):
        yield positions


def _words(sag: tuple[float, float]) -> str:
    return f'joints off by up to {sag[0]:.4f} deg, a hand by {sag[1]:.4f} mm'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(GravityDemo, argv)


if __name__ == '__main__':
    sys.exit(main())
