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
"""The centre of mass in RViz; in a file of its own, since its messages are slow to import."""

from __future__ import annotations

import math

from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.ros.topics import markers
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.viz.palette import LINK_COM, MARKS
import numpy as np
from rclpy.node import Node
from visualization_msgs.msg import Marker

#: Each link is shown as a sphere of its mass and this density, kg/m^3.
_DENSITY = 8000.0
#: The arrow of the velocity ends where the CoM would be after this time, s.
_ARROW_TIME = 0.5
_ACTIONS = {True: Marker.ADD, False: Marker.DELETE}
_ROBOT, _LINKS, _WITH_FORCES = 'robot_com', 'link_coms', 'fused_com'
_COM, _DCM = markers.rgba(MARKS['com'].colour), markers.rgba(MARKS['dcm'].colour)
_LINK, _FUSED = markers.rgba(LINK_COM, 0.6), markers.rgba(MARKS['fused'].colour)


class MarkerOutput:
    """
    Balls at the centres of mass, the robot's on the ground, the DCM, the velocity.

    A line from the CoM to the fused one is the estimated error of the former.
    """

    def __init__(self, node: Node, model: RobotModel, params: ComEstimatorParameters) -> None:
        shown = _shown(model, params.world_frame, _DENSITY)
        self._position = np.zeros((len(shown), 3))
        dcm, fused, arrow, bias = (len(shown) - i for i in (4, 3, 2, 1))
        self.output = markers.marker_publisher(node, shown, {
            'position': 'markers[*].pose.position', 'tail': f'markers[{arrow}].points[0]',
            'head': f'markers[{arrow}].points[1]',
            'fused_action': f'markers[{fused}].action',
            'bias': f'markers[{bias}].points', 'bias_action': f'markers[{bias}].action',
            'dcm_action': f'markers[{dcm}].action', 'arrow_action': f'markers[{arrow}].action',
        }, qos=LATCHED)

    def publish(self, estimate: ComEstimate, bias: Array | None = None) -> None:
        """
        Publish the markers of an instant; those of unknown quantities are deleted.

        Parameters
        ----------
        estimate
            By kinematics.
        bias
            Its error by the foot forces, in the world, shape (3,), m; None where unknown.

        """
        fields, located = self.output.fields, estimate.located
        position, velocity, dcm = self._position, estimate.velocity, estimate.dcm
        x, y, z = estimate.position
        position[0] = x, y, z
        position[1] = x, y, located.stance.ground_height
        position[2:-4] = located.state.link_coms_in_world
        if dcm is not None:
            position[-4] = dcm
        if bias is not None:
            position[-3] = np.subtract((x, y, z), bias)
            fields['bias'][...] = (x, y, z), position[-3]
        fields['position'][...] = position  # in one go: they do not lie evenly
        fields['fused_action'][...] = fields['bias_action'][...] = _ACTIONS[bias is not None]
        if velocity is not None:
            vx, vy, vz = velocity
            fields['tail'][...] = x, y, z
            fields['head'][...] = x + _ARROW_TIME * vx, y + _ARROW_TIME * vy, z + _ARROW_TIME * vz
        fields['dcm_action'][...] = _ACTIONS[dcm is not None]
        fields['arrow_action'][...] = _ACTIONS[velocity is not None]
        self.output.publish(located.stamp_ns)


def _shown(model: RobotModel, frame: str, density: float) -> list[Marker]:
    """Prototypes: CoM, its projection, a ball per link, DCM, the fused CoM, velocity, bias."""
    whole = _diameter(model.mass, density) / 2.0
    links = [markers.sphere(frame, _LINKS, i, _LINK, _diameter(mass, density))
             for i, mass in enumerate(model.link_masses.tolist())]
    return [markers.sphere(frame, _ROBOT, 0, _COM, whole),
            markers.cylinder(frame, _ROBOT, 1, _COM, whole, 0.002), *links,
            markers.cylinder(frame, _ROBOT, 2, _DCM, whole / 2.0, 0.004),
            markers.sphere(frame, _WITH_FORCES, 0, _FUSED, 0.9 * whole),
            markers.arrow(frame, _ROBOT, 3, _COM, whole / 6.0, whole / 3.0, whole / 3.0),
            markers.line_strip(frame, _WITH_FORCES, 2, 1, _FUSED, whole / 8.0)]


def _diameter(mass: float, density: float) -> float:
    """Diameter of a ball, m."""
    return 2.0 * (3.0 * mass / (4.0 * math.pi * density)) ** (1.0 / 3.0)
