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
"""The payload that `payload_estimator` publishes, as input of the nodes that add it."""

from __future__ import annotations

from typing import Any, cast

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.ros.fast.message_reader import RefusedMessage
from biped_com_ros.ros.node.common_parameters import PayloadParameters
from biped_com_ros.ros.node.diagnostics import OK, Report, WARN
from biped_com_ros.ros.node.robot_node import RobotNodeMixin
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.inputs import VectorInput
from geometry_msgs.msg import InertiaStamped
import numpy as np
from rclpy.node import Node

_FIELDS = 'inertia.m', 'inertia.com.x', 'inertia.com.y', 'inertia.com.z'


class PayloadInput:
    """
    Receives the payload.

    Parameters
    ----------
    node
        The node, whose parameters contain `PayloadParameters`.
    params
        Its parameters.

    Attributes
    ----------
    carried
        What the node adds to its model.

    """

    def __init__(self, node: RobotNodeMixin[Any], params: PayloadParameters) -> None:
        self.carried = CarriedPayload(node.model)
        self._prefix = frame_prefix(cast(Node, node))
        # Usually there is none: no line on /diagnostics reports it.
        self.input: VectorInput | None = None
        if params.payload_topic:
            self.input = VectorInput(
                cast(Node, node), InertiaStamped, params.payload_topic, _FIELDS, self._on_payload,
                required=False, max_age=params.max_stamp_age)
            node.diagnostics.add('payload', self._report)

    def destroy(self) -> None:
        """Unsubscribe."""
        if self.input is not None:
            self.input.destroy()

    def _on_payload(self, stamp_ns: int, values: np.ndarray) -> None:
        assert self.input is not None
        link = self.input.frame.removeprefix(self._prefix)
        mass, *com = values.tolist()
        try:
            self.carried.receive(link, mass, com, stamp_ns)
        except BipedComError as error:
            raise RefusedMessage('wrong payload', str(error)) from None

    def _report(self) -> Report:
        carried, source = self.carried, self.input
        assert source is not None
        values = {'mass [kg]': carried.mass, 'link': carried.link}
        if source.is_refusing:
            return WARN, f'refused: {source.last_error}', values
        if not carried.mass:
            return OK, 'nothing is carried', values
        if carried.is_stale:
            return WARN, (f"{carried.mass:.2f} kg in '{carried.link}' fades out: nothing received "
                          f'on {source.topic}; restart payload_estimator'), values
        return OK, f"{carried.mass:.2f} kg in '{carried.link}'", values
