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
"""Joint states in a fixed order, from one publisher or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from biped_com_ros.ros.fast.joint_state_reader import JointStateReader
from biped_com_ros.ros.topics.input_base import Input
import numpy as np
from sensor_msgs.msg import JointState


class JointStateInput(Input):
    """
    JointState in a fixed order of joints.

    Calls back with (stamp in ns, positions (n,), velocities (n,), efforts (n,)) in the order of
    `joint_names` followed by `optional_joints`; the order in the messages does not matter, other
    joints are ignored. Where several nodes publish parts of the robot on one topic, the parts
    are put together: once every joint was seen, each message of the largest part calls back, as
    long as no part is older than `timeout`. Smaller parts are mostly older, and still under way
    from their nodes; where they tell velocities, these bring them to the stamp of the largest.

    Velocities that are not measured (empty or, as ros2_control reports them, NaN) are backward
    differences of the positions; efforts that are not measured are zero (see
    `efforts_measured`). A velocity or effort that becomes NaN later is refused like a position.

    Parameters
    ----------
    node, topic
        Where to subscribe.
    joint_names
        Joints that have to be there.
    callback
        Gets good data; the arrays are reused.
    optional_joints
        Joints that may be missing; they are zero then.
    limits
        Least and largest position of each joint; what is beyond by more than a twentieth of the
        shortest range is refused. Default: none.
    options
        See `input_base.Input`.

    Attributes
    ----------
    joint_names
        All joints.

    """

    reader: JointStateReader

    def __init__(self, node: Any, joint_names: Sequence[str],
                 callback: Callable[[int, np.ndarray, np.ndarray, np.ndarray], None],
                 topic: str = 'joint_states', optional_joints: Sequence[str] = (),
                 timeout: float = 0.5, limits: tuple[tuple[float, float], ...] = (),
                 **options: Any) -> None:
        self.joint_names = (*joint_names, *optional_joints)
        super().__init__(
            node, JointState, topic, callback, JointStateReader,
            (self.joint_names, len(joint_names), timeout, limits), timeout=timeout, **options)

    @property
    def positions(self) -> np.ndarray:
        """Return the last good positions, shape (n,): the array that callbacks get."""
        return self.reader.arguments[0]

    @property
    def velocities(self) -> np.ndarray:
        """Return the last good velocities, shape (n,)."""
        return self.reader.arguments[1]

    @property
    def efforts(self) -> np.ndarray:
        """Return the last good efforts, shape (n,)."""
        return self.reader.arguments[2]

    @property
    def velocities_measured(self) -> bool:
        """Whether all velocities are measured."""
        return self.reader.measures('velocity')

    @property
    def efforts_measured(self) -> bool:
        """Whether all efforts are measured."""
        return self.reader.measures('effort')

    @property
    def timeout(self) -> float:
        """Seconds without good data after which the input, or a part of the robot, is dead."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        if seconds == self._timeout:
            return
        self._timeout = seconds
        names, count, _, limits = self.reader.spec.what
        self._reconnect((names, count, seconds, limits))
