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
Monitors how near the robot is to falling: ZMP, support polygon, margins, divergent component.

Joint states, base and foot wrenches are synchronized by their stamps; what is published carries
the stamp of the joint states. A recording that is played again therefore gives the same bits.
While an input is missing nothing is published, and ``/diagnostics`` names it.

===================== ================================ =======================================
topic                 type                             what
===================== ================================ =======================================
joint_states          sensor_msgs/JointState           in
imu (robot's YAML)    sensor_msgs/Imu                  in, with base_source imu or filter
odom                  nav_msgs/Odometry                in, with base_source odometry
<foot>/wrench         geometry_msgs/WrenchStamped      in; see the parameter wrench_topics
<hand>/wrench         geometry_msgs/WrenchStamped      in; see the parameter hand_wrench_topics
payload               geometry_msgs/InertiaStamped     in, of payload_estimator
~/zmp                 geometry_msgs/PointStamped       measured, on the plane of support
~/zmp_with_covariance                                  the same as PoseWithCovarianceStamped, of
                                                       feet and hands without sensors
~/zmp_model           geometry_msgs/PointStamped       required by the motion; delayed by a filter
~/zmp_difference      geometry_msgs/Vector3Stamped     the model's minus the measured, after
                                                       the same filter
~/dcm                 geometry_msgs/PointStamped       divergent component on that plane
~/support_polygon     geometry_msgs/PolygonStamped     of the soles in contact; on steps and with
                                                       hands the region where the ZMP may be
~/com_region          geometry_msgs/PolygonStamped     where the CoM may be at rest
~/com_margin          std_msgs/Float64                 of the CoM in it, m; negative outside
~/margin              std_msgs/Float64                 of the measured ZMP, m; negative outside
~/dcm_margin          std_msgs/Float64                 of the divergent component, m
~/time_to_edge        std_msgs/Float64                 until the DCM leaves if the ZMP stays, s
~/support_phase       std_msgs/String, latched         double, single <foot>, flight
~/event               diagnostic_msgs/DiagnosticArray, each change of the level of stability
                      latched
~/markers             visualization_msgs/MarkerArray   all of this, for RViz
===================== ================================ =======================================
"""

from __future__ import annotations

from collections.abc import Sequence
import sys
from typing import Any

from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.sole_geometry import sole_polygon
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.core.stability.monitor import StabilityMonitor
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.nodes.zmp_monitor.health import StabilityHealth
from biped_com_ros.nodes.zmp_monitor.markers import StabilityMarkers
from biped_com_ros.nodes.zmp_monitor.outputs import StabilityOutputs
from biped_com_ros.nodes.zmp_monitor.parameters import ZmpMonitorParameters
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.payload_input import PayloadInput
from biped_com_ros.ros.topics.state_inputs import hand_wrench_topics, StateInputs


class ZmpMonitor(RobotNode[ZmpMonitorParameters]):
    """Located states in, stability out, see the module."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('zmp_monitor', ZmpMonitorParameters, **node_kwargs)

    def build(self, model: RobotModel) -> None:
        """Make monitor, outputs and inputs for the robot."""
        params = self.params
        polygons = self._polygons(model)
        self.monitor = StabilityMonitor(model, params.monitor_settings(), polygons)
        self._payload = PayloadInput(self, params)
        self.monitor.payload = self._payload.carried
        self._outputs = StabilityOutputs(self, params.world_frame, model.soles.names)
        self._markers = StabilityMarkers(self, model, params)
        self._marker_throttle = StampThrottle(params.marker_rate)
        self.inputs = StateInputs(
            self, model, params, **self.input_options(params.sensor_timeout))
        self.states = self.inputs.estimate_synchronized(
            self._on_state, params, body_weight=model.mass * params.gravity,
            thresholds=params.contact,
            hand_topics=hand_wrench_topics(model, params.hand_wrench_topics),
            wrench_delay=params.aligned_delay)
        self.watch_inputs(self.inputs.inputs)
        self._health = StabilityHealth(self, self.inputs, self.states, self.monitor)

    def apply_parameters(self, params: ZmpMonitorParameters) -> None:
        """Evaluate with other settings from the next state on; level and contacts stay."""
        self.params = params
        self._marker_throttle.set_rate(params.marker_rate)
        self._markers.set_force_scale(self.model, params)
        self.inputs.use(params, thresholds=params.contact,
                        body_weight=self.model.mass * params.gravity,
                        wrench_delay=params.aligned_delay)
        self._replace_monitor(same_masses=True)

    def use_inertials(self) -> None:
        """Evaluate with calibrated masses from the next state on; the level stays."""
        self._replace_monitor(same_masses=False)

    def _replace_monitor(self, *, same_masses: bool) -> None:
        before = self.monitor
        self.monitor = StabilityMonitor(
            self.model, self.params.monitor_settings(), self._polygons(self.model))
        self.monitor.continue_from(before, same_masses=same_masses)
        self.monitor.payload = self._payload.carried
        self._health.configure(self.monitor)

    def _polygons(self, model: RobotModel) -> list[Sequence[Point]]:
        if self.params.polygon_source == 'collision':
            return [sole_polygon(model, foot) for foot in model.config.feet]
        return [foot.polygon for foot in model.config.feet.values()]

    def _on_state(self, located: LocatedState) -> None:
        report = self.monitor.update(located)
        self._outputs.publish(report)
        self._health.add(report)
        if self._marker_throttle.is_due(located.stamp_ns):
            self._markers.publish(report, self.monitor.classifier.level)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ZmpMonitor, argv)


if __name__ == '__main__':
    sys.exit(main())
