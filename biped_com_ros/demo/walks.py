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
"""Walks of `gait_player` in the demo, and what is measured meanwhile."""

from __future__ import annotations

from collections.abc import Generator
import math
from typing import Any, NamedTuple

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.stance_ik import StanceIk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import PointStamped
from std_msgs.msg import Float64, Int32, String

_RESTING = ('standing', 'halted')


def missing_gait(model: RobotModel) -> str:
    """Return why there is no gait for a robot; '' if there is one."""
    try:
        StanceIk(model, model.posture())
    except BipedComError as error:
        return str(error)
    return ''


class WalkResult(NamedTuple):
    """
    What was measured in a walk.

    Attributes
    ----------
    steps
        Finished ones.
    zmp_rms
        Distance of the measured zero-moment point from its reference, m; NaN if unknown.
    least_margin
        Of the measured zero-moment point, m; infinite if unknown.
    has_ended
        Whether the robot stands; else the walk was aborted.

    """

    steps: int
    zmp_rms: float
    least_margin: float
    has_ended: bool

    @property
    def cells(self) -> tuple[str, str]:
        """Return ZMP error and margin for a table."""
        margin = self.least_margin
        return 'unknown' if math.isnan(self.zmp_rms) else f'{1e3 * self.zmp_rms:.1f} mm', (
            'unknown' if math.isinf(margin) else f'{round(1e3 * margin)} mm')  # never -0 mm


class Walks:
    """
    Lets the robot walk, and compares the zero-moment point with its reference.

    Parameters
    ----------
    stage
        The robot.

    """

    def __init__(self, stage: Stage) -> None:
        self._stage, self._state = stage, ''
        self._clear()
        stage.subscribe(String, names.GAIT_STATE, self._on_state, LATCHED)
        stage.subscribe(Int32, names.STEPS_DONE, self._on_steps, LATCHED)
        stage.subscribe(Float64, names.MARGIN, self._on_margin)
        stage.subscribe(PointStamped, names.ZMP_REFERENCE, self._on_reference)
        stage.subscribe(PointStamped, names.ZMP, self._on_zmp)

    def wait(self) -> Commands:
        """Wait until a walk can begin."""
        yield from self._stage.wait_until(self._is_resting, 'state from gait_player', 10.0)

    def walk(self, service: str, **parameters: Any) -> Generator[Array | None, None, WalkResult]:
        """
        Let the robot walk with these parameters of `gait_player`.

        Raises
        ------
        ChapterFailed
            If the walk does not begin, or does not end.

        """
        stage = self._stage
        yield from stage.set_parameters('gait_player', **parameters)
        stage.release()
        self._clear()
        yield from stage.trigger(f'gait_player/{service}')
        yield from stage.wait_until(
            lambda: not self._is_resting(), 'plan from gait_player', 30.0)
        yield from stage.wait_until(
            lambda: self._is_resting() or stage.has_fallen, 'end of the walk', 60.0)
        rms = math.sqrt(self._squares / self._count) if self._count else math.nan
        return WalkResult(self._done, rms, self._least,
                          self._state == 'standing' and not stage.has_fallen)

    def _is_resting(self) -> bool:
        return self._state in _RESTING

    # -- measurements

    def _clear(self) -> None:
        self._least, self._squares, self._count, self._done = math.inf, 0.0, 0, 0
        self._planned: dict[int, tuple[float, float]] = {}

    def _on_state(self, message: Any) -> None:
        self._state = message.data

    def _on_steps(self, message: Any) -> None:
        self._done = message.data

    def _on_margin(self, message: Any) -> None:
        if not self._is_resting():
            self._least = min(self._least, message.data)

    def _on_reference(self, message: Any) -> None:
        self._planned[ns_of_msg(message.header.stamp)] = message.point.x, message.point.y

    def _on_zmp(self, message: Any) -> None:
        planned = self._planned.pop(ns_of_msg(message.header.stamp), None)
        if planned is not None:
            x, y = message.point.x - planned[0], message.point.y - planned[1]
            self._squares += x * x + y * y
            self._count += 1
