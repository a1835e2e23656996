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
Publishes the height of the centre of mass above the lower sole.

The base is assumed to be level. One message per message of `joint_states`.

============ ==================== ==========================================
topic        type                 what
============ ==================== ==========================================
joint_states sensor_msgs/JointState in
~/height     std_msgs/Float64     height of the centre of mass, m
============ ==================== ==========================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import sys

from biped_com_ros import RobotModel
from biped_com_ros.core.model import RobotState
from biped_com_ros.core.settings import setting
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import float_publisher
import numpy as np


# What is computed: without ROS, so that a unit test needs no node.
def com_height(state: RobotState) -> float:
    """
    Return the height of the centre of mass above the lower sole.

    Parameters
    ----------
    state
        The robot; its base is assumed to be level.

    Returns
    -------
    float
        Height, m.

    """
    sole_heights = state.placements_in_base(state.model.soles)[:, 3, 2]
    return float(state.com_in_base[2] - sole_heights.min())


# What users can set.
@dataclass(frozen=True)
class ComHeightParameters(RobotNodeParameters):
    """Parameters of `com_height`; `robot`, `urdf` and `max_stamp_age` are inherited."""

    minimum_height: float = setting(
        0.3, 'Height below which /diagnostics warns', unit='m', minimum=0.0, maximum=10.0)


# What connects both to ROS.
class ComHeight(RobotNode[ComHeightParameters]):
    """Joint states in, height of the centre of mass out."""

    def __init__(self, **node_kwargs: object) -> None:
        super().__init__('com_height', ComHeightParameters, **node_kwargs)

    def build(self, model: RobotModel) -> None:
        """Create output, input and diagnostics as soon as the model is known."""
        self._height = float('nan')
        self._output = float_publisher(self, '~/height')
        joints = JointStateInput(
            self, model.joint_names, self._on_joint_states, **self.input_options())
        self.watch_inputs({'joint states': joints})
        self.diagnostics.add('height', self._report)

    def _on_joint_states(self, stamp_ns: int, positions: np.ndarray, velocities: np.ndarray,
                         efforts: np.ndarray) -> None:
        self._height = com_height(self.model.state(positions))
        self._output.fields['data'][0] = self._height
        self._output.publish(stamp_ns)

    def _report(self) -> Report:
        height, minimum = self._height, self.params.minimum_height
        values = {'height [m]': height}
        if self.missing_inputs:
            return ERROR, f'no height: waiting for {", ".join(self.missing_inputs)}', values
        if height < minimum:
            return WARN, (f'height {height:.3f} m is less than minimum_height {minimum:g} m: '
                          'stretch the legs, or lower minimum_height'), values
        return OK, f'{height:.3f} m', values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ComHeight, argv)


if __name__ == '__main__':
    sys.exit(main())
