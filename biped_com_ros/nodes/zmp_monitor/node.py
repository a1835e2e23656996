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
Tells how far the robot is from falling: ZMP, support polygon, margins, divergent component.

Everything belongs to one instant: joint states, base and foot wrenches are brought together by
their stamps, and what is published carries the stamp of the joint states. So a recording that is
played again gives the same to the last bit. While something is missing nothing goes out, and
``/diagnostics`` says what.

===================== ================================ =======================================
topic                 type                             what
===================== ================================ =======================================
joint_states          sensor_msgs/JointState           in
imu (robot's YAML)    sensor_msgs/Imu                  in, with base_source imu
odom                  nav_msgs/Odometry                in, with base_source odometry
<foot>/wrench         geometry_msgs/WrenchStamped      in; see the parameter wrench_topics
~/zmp                 geometry_msgs/PointStamped       measured, on the plane of support
~/zmp_model           geometry_msgs/PointStamped       what the motion demands; late by a filter
~/zmp_difference      geometry_msgs/Vector3Stamped     the model's minus the measured, both
                                                       filtered alike
~/dcm                 geometry_msgs/PointStamped       divergent component on that plane
~/support_polygon     geometry_msgs/PolygonStamped     of the soles in contact
~/margin              std_msgs/Float64                 of the measured ZMP, m; negative outside
~/dcm_margin          std_msgs/Float64                 of the divergent component, m
~/time_to_edge        std_msgs/Float64                 until the DCM is out if the ZMP stays, s
~/support_phase       std_msgs/String, latched         double, single <foot>, flight
~/event               diagnostic_msgs/DiagnosticArray, each change of the level of stability
                      latched
~/markers             visualization_msgs/MarkerArray   all of it, for RViz
===================== ================================ =======================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import sys
import time
from typing import Any

from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.model.sole_geometry import sole_polygon
from biped_com_ros.core.stability.levels import Level, StabilityThresholds
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor, StabilityReport
from biped_com_ros.core.stability.zmp import METHODS
from biped_com_ros.core.state.leg_odometry import Twist
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.core.wrench.weight_check import WEIGHING_RATE, WeightCheck
from biped_com_ros.nodes.com_estimator.outputs import Pace
from biped_com_ros.nodes.zmp_monitor.outputs import (
    describe_change, SEVERITY, StabilityMarkers, StabilityOutputs)
from biped_com_ros.ros.node.common_parameters import (
    ContactParameters, EstimatorParameters, gravity_parameter, WeightParameters)
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import InputWatch
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.topics.stability_inputs import StabilityInputs, Wrenches
import numpy as np
from rclpy.node import Node


@dataclass(frozen=True)
class ZmpMonitorParameters(EstimatorParameters, ContactParameters, WeightParameters):
    """Parameters of `zmp_monitor`."""

    wrench_topics: list[str] = parameter(
        [], 'Topics (geometry_msgs/WrenchStamped) of what the ground does to each foot, in any '
        "frame fixed to the foot, in the order of the robot's feet; empty: "
        'wrench_aggregator/<foot>/wrench', read_only=True)
    polygon_source: str = parameter(
        'configuration', "Outlines of the soles: from the robot's YAML, or from the collision "
        'geometry of its URDF', options=('configuration', 'collision'), read_only=True)
    contact_engage_dwell: float = parameter(
        0.0, 'How long the force has to stay there for a contact to begin: at once, since a foot '
        'that lands carries its share of the ZMP at once', 's', 0.0, 1.0, read_only=True)
    contact_tolerance: float = parameter(
        0.01, 'Where feet do not feel: how far above the lowest sole another one is still '
        'assumed to stand', 'm', 0.0, 1.0, read_only=True)
    min_force_share: float = parameter(
        0.03, 'Least normal force, as a share of body weight, for a ZMP or CoP', '', 0.001, 0.9,
        read_only=True)
    model_method: str = parameter(
        'full', "How the model's ZMP is found: with all angular momentum, by links as point "
        'masses, by one point mass, or as if at rest', options=METHODS, read_only=True)
    model_cutoff: float = parameter(
        15.0, "Bandwidth of the model's ZMP; it is late by 0.225 / cutoff", 'Hz', 0.1, 1000.0,
        read_only=True)
    margin_warning: float = parameter(
        0.01, 'Margin of ZMP or DCM below which the robot is marginal', 'm', -1.0, 1.0,
        read_only=True)
    dcm_margin_unstable: float = parameter(
        0.0, 'Margin of the DCM below which the robot is unstable', 'm', -1.0, 1.0,
        read_only=True)
    tilt_unstable: float = parameter(
        0.35, 'Tilt of the base above which the robot is unstable', 'rad', 0.01, 3.0,
        read_only=True)
    tilt_fallen: float = parameter(
        1.0, 'Tilt of the base above which the robot has fallen', 'rad', 0.02, 3.1,
        read_only=True)
    margin_hysteresis: float = parameter(
        0.005, 'By how much margins have to be better for a level to end', 'm', 0.0, 1.0,
        read_only=True)
    tilt_hysteresis: float = parameter(
        0.05, 'By how much the tilt has to be less for a level to end', 'rad', 0.0, 1.0,
        read_only=True)
    level_dwell: float = parameter(
        0.01, 'How long a threshold has to be passed for a level to begin', 's', 0.0, 10.0,
        read_only=True)
    recovery_time: float = parameter(
        0.3, 'How long all has to be well for a level to end', 's', 0.0, 60.0, read_only=True)
    unevenness_warning: float = parameter(
        0.01, 'Distance of a sole from the plane of support above which soles do not lie in one '
        'plane', 'm', 0.0, 10.0)
    difference_warning: float = parameter(
        0.03, "Root mean square difference of model's and measured ZMP that is too large", 'm',
        0.0, 10.0)
    trail: int = parameter(
        60, 'Number of past points of the trails of ZMP markers', '', 2, 10000, read_only=True)
    force_scale: float = parameter(
        0.0, "Length of force arrows; 0: the robot's weight is half a metre", 'm/N', 0.0, 10.0,
        read_only=True)
    gravity: float = gravity_parameter()


class ZmpMonitor(Node):
    """Joint states, base and foot wrenches in, stability out, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('zmp_monitor', **node_kwargs)
        self.params = declare_parameters(self, ZmpMonitorParameters, self._change)
        self.monitor: StabilityMonitor | None = None
        self.diagnostics = Diagnostics(self)
        self._source = RobotSource(self, self.params, self._start, self.diagnostics)

    # -- set-up

    def _start(self, model: RobotModel) -> None:
        params = self.params
        polygons = self._polygons(model)
        self.monitor = StabilityMonitor(model, _settings(params), polygons)
        self._outputs = StabilityOutputs(self, params.world_frame, model.soles.names)
        self._markers = StabilityMarkers(self, model, params, sum(map(len, polygons)))
        self._marker_pace = Pace(params.marker_rate)
        self._accounts = Accounts(model, params)
        for name, report in (('stability', self._report_stability), ('zmp', self._report_zmp),
                             ('support', self._report_support), ('weight', self._report_weight)):
            self.diagnostics.add(name, report)
        self.inputs = StabilityInputs(
            self, model, params, self.monitor.feel, self._on_instant, self.monitor.reset,
            diagnostics=self.diagnostics, timeout=params.sensor_timeout,
            max_age=params.max_stamp_age)
        self._waiting = InputWatch(self, self.inputs.inputs)

    def _polygons(self, model: RobotModel) -> list[Sequence[Point]]:
        if self.params.polygon_source == 'collision':
            return [sole_polygon(model, foot) for foot in model.config.feet]
        return [foot.polygon for foot in model.config.feet.values()]

    def _change(self, params: ZmpMonitorParameters) -> None:
        """Use parameters that were set at run time."""
        self.params = params
        if self.monitor is not None:
            self._marker_pace.set_rate(params.marker_rate)

    # -- on every instant

    def _on_instant(self, stamp_ns: int, state: RobotState, twist: Twist | None,
                    wrenches: Wrenches | None) -> None:
        monitor = self.monitor
        assert monitor is not None
        if wrenches is None:
            monitor.in_contact = self.inputs.base.stance.in_contact
        monitor.every_model = self._outputs.models_wanted or self._markers.has_current_subscribers
        monitor.every_margin = self._outputs.margins_wanted
        report = monitor.update(stamp_ns, state, twist, wrenches)
        self._outputs.publish(stamp_ns, report, monitor.in_contact)
        self._accounts.add(stamp_ns, report, wrenches)
        if report.change is not None:
            self._outputs.announce(stamp_ns, report.change, report)
            self._log(report)
        if self._marker_pace.is_due(stamp_ns):
            self._markers.publish(stamp_ns, report, monitor.watch.level)

    def _log(self, report: StabilityReport) -> None:
        change, logger = report.change, self.get_logger()
        assert change is not None
        # One call each: rclpy does not let a line of code change its severity.
        if change.now >= Level.UNSTABLE:
            logger.error(describe_change(change))
        elif change.now == Level.MARGINAL:
            logger.warning(describe_change(change))
        else:
            logger.info(describe_change(change))

    # -- diagnostics

    def _report_stability(self) -> Report:
        assert self.monitor is not None
        watch, values = self.monitor.watch, self._accounts.values()
        missing = self._waiting.missing
        if missing:
            return ERROR, f'unknown: waiting for {", ".join(missing)}', values
        if self.inputs.base.problem:
            return ERROR, f'unknown: {self.inputs.base.problem}', values
        if self.monitor.problem:
            return ERROR, self.monitor.problem, values
        if not any(self.monitor.in_contact):
            return WARN, 'no foot on the ground', values
        reasons = f': {"; ".join(watch.reasons)}' if watch.reasons else ''
        return SEVERITY[watch.level], f'{watch.level.name.lower()}{reasons}', values

    def _report_zmp(self) -> Report:
        instants, rate, difference = self._accounts.take()
        values = {'rate [Hz]': rate, 'rms difference [m]': difference,
                  'method': self.params.model_method,
                  'delay of the model [s]': self.monitor.delay if self.monitor else 0.0}
        if not self.inputs.feels:
            return WARN, ('not measured: the feet have no wrench sensors; name topics in '
                          'wrench_topics'), values
        if not rate:
            return ERROR, f'not measured: {self._why_no_zmp(instants)}', values
        if difference > self.params.difference_warning:
            return WARN, (f"the model's ZMP is {1e3 * difference:.0f} mm from the measured one: "
                          'check masses (calibrate), offsets of the sensors (tare), and whether '
                          'something else carries or pushes the robot'), values
        return OK, f'{rate:.0f} Hz', values

    def _why_no_zmp(self, instants: int) -> str:
        silent = [name for name, source in self.inputs.inputs.items() if source.stale()]
        if silent:
            return f'waiting for {", ".join(silent)}'
        if not instants:
            return ('the inputs are never from the same instant: check that the stamps of joint '
                    'states, IMU and wrenches come from one clock')
        return 'the ground does not push: see the line on the weight'

    def _report_support(self) -> Report:
        assert self.monitor is not None
        worst = self._accounts.unevenness
        values = {'out of plane [m]': worst, 'phase': self._accounts.phase}
        if worst > self.params.unevenness_warning:
            return WARN, (
                f'the soles in contact are up to {1e3 * worst:.0f} mm out of one plane: stairs, '
                'a foot on its edge, or joint offsets; the ZMP is on a plane between them'), values
        return OK, 'the soles in contact lie in one plane', values

    def _report_weight(self) -> Report:
        if not self.inputs.feels:
            return OK, 'not measured', {}
        verdict = self._accounts.weight.verdict()
        if verdict is None:
            return WARN, 'not measured', {}
        return (OK if verdict.plausible else WARN), verdict.message, {'ratio': verdict.ratio}


class Accounts:
    """What the diagnostics tell about the time since the last report."""

    def __init__(self, model: RobotModel, params: ZmpMonitorParameters) -> None:
        feet = model.config.feet
        self.weight = WeightCheck(
            model.mass * params.gravity,
            {name: foot.wrench_sensors for name, foot in feet.items()},
            params.weight_tolerance, f'the YAML of robot {model.config.name}')
        self._feet = tuple(feet)
        self._report: StabilityReport | None = None
        self.instants = 0
        self._measured, self._squares, self._compared = 0, 0.0, 0
        self._weighs = Pace(WEIGHING_RATE)
        self._since = time.monotonic()

    def add(self, ns: int, report: StabilityReport, wrenches: Wrenches | None) -> None:
        """Take an instant."""
        self._report = report
        self.instants += 1
        self._measured += report.zmp_in_world is not None
        if report.difference is not None:
            self._squares += report.difference.dot(report.difference).item()
            self._compared += 1
        if wrenches is not None and self._weighs.is_due(ns):
            self.weight.add(report.vertical_force, [wrench[2] for wrench in wrenches],
                            any(report.feet.in_contact))

    @property
    def unevenness(self) -> float:
        """By how much the soles in contact are out of one plane at the last instant, m."""
        report = self._report
        return 0.0 if report is None or report.support is None else report.support.unevenness

    @property
    def phase(self) -> str:
        """Return which feet stood at the last instant."""
        in_contact = () if self._report is None else self._report.feet.in_contact
        return ', '.join(f for f, stands in zip(self._feet, in_contact) if stands)

    def take(self) -> tuple[int, float, float]:
        """Return instants, rate of measured ZMPs, Hz, and rms difference, m; begin anew."""
        now = time.monotonic()
        rate = self._measured / max(now - self._since, 1e-6)
        rms = float(np.sqrt(self._squares / self._compared)) if self._compared else 0.0
        self._since, self._measured, self._squares, self._compared = now, 0, 0.0, 0
        instants, self.instants = self.instants, 0
        return instants, rate, rms

    def values(self) -> dict[str, Any]:
        """Return the margins of the last instant."""
        report = self._report
        if report is None:
            return {}
        found = {'margin [m]': report.zmp_distance, 'dcm margin [m]': report.dcm_distance,
                 'time to the edge [s]': report.time_to_edge}
        return {key: 'unknown' if value is None else value for key, value in found.items()}


def _settings(params: ZmpMonitorParameters) -> MonitorSettings:
    return MonitorSettings(
        ContactThresholds(
            engage=params.contact_engage, release=params.contact_release,
            engage_dwell=params.contact_engage_dwell,
            release_dwell=params.contact_release_dwell),
        StabilityThresholds(
            params.margin_warning, params.dcm_margin_unstable, params.tilt_unstable,
            params.tilt_fallen, params.margin_hysteresis, params.tilt_hysteresis,
            params.level_dwell, params.recovery_time),
        params.min_force_share, params.model_method, params.model_cutoff, params.gravity)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ZmpMonitor, argv)


if __name__ == '__main__':
    sys.exit(main())
