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
"""What `zmp_monitor` reports on ``/diagnostics``, and what it measures for that."""

from __future__ import annotations

from typing import Any

from biped_com_ros.core.constants import CERTAIN
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import StabilityMonitor, StabilityReport
from biped_com_ros.core.wrench.weight_check import WEIGHING_RATE, WeightCheck
from biped_com_ros.nodes.zmp_monitor.outputs import SEVERITY
from biped_com_ros.nodes.zmp_monitor.parameters import ZmpMonitorParameters
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, report_of, WARN
from biped_com_ros.ros.node.input_watch import waiting_for
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.located_states import LocatedStates
from biped_com_ros.ros.topics.state_inputs import describe_contacts, StateInputs
import numpy as np


class StabilityHealth:
    """
    Reports stability, ZMP, support and weight, of the time since the last report.

    Parameters
    ----------
    node, inputs, states, monitor
        The node, what it subscribes to, the states that it gets, and what it computes.

    """

    def __init__(self, node: RobotNode[ZmpMonitorParameters], inputs: StateInputs,
                 states: LocatedStates, monitor: StabilityMonitor) -> None:
        self._node, self._inputs, self._monitor = node, inputs, monitor
        self._states = states
        model, params = node.model, node.params
        self._weight = WeightCheck(
            model.mass * params.gravity,
            {name: foot.wrench_sensors for name, foot in model.config.feet.items()},
            params.weight_tolerance, f'the YAML of robot {model.config.name}')
        self._weighing = StampThrottle(WEIGHING_RATE)
        self._last: StabilityReport | None = None
        self._restart()
        for name, report in (('stability', self._report_stability), ('zmp', self._report_zmp),
                             ('support', self._report_support), ('weight', self._report_weight)):
            node.diagnostics.add(name, report)

    def configure(self, monitor: StabilityMonitor) -> None:
        """Report a monitor with other masses or settings, and compare with its weight."""
        self._monitor, node = monitor, self._node
        self._weight.use_weight(
            node.model.mass * node.params.gravity, is_calibrated=node.model.is_calibrated)
        self._weight.tolerance = node.params.weight_tolerance

    def add(self, report: StabilityReport) -> None:
        """Add the report of one instant."""
        self._last, located = report, report.located
        self._instants += 1
        self._measured += report.zmp_in_world is not None
        if report.wrench is not None and self._weighing.is_due(located.stamp_ns):
            difference = report.zmp_difference
            if difference is not None:
                self._squares += difference.dot(difference).item()
                self._compared += 1
            if report.zmp_covariance is not None:
                self._variances += float(np.trace(report.zmp_covariance))
                self._uncertain += 1
            assert located.wrenches is not None
            self._weight.body_weight = report.weight
            self._weight.add(located.stamp_ns, report.wrench[2], located.wrenches,
                             any(located.stance.in_contact), located.state.uprightness)

    def _restart(self) -> None:
        self._since = steady_time()
        self._instants = self._measured = self._compared = 0
        self._squares = self._variances = 0.0
        self._uncertain = 0

    def _report_stability(self) -> Report:
        watch, last = self._monitor.classifier, self._last
        values: dict[str, Any] = {} if last is None else {
            'margin [m]': _known(last.zmp_margin), 'dcm margin [m]': _known(last.dcm_margin),
            'time to the edge [s]': _known(last.time_to_edge)}
        if missing := self._node.missing_inputs:
            return ERROR, f'unknown: {waiting_for(missing)}', values
        if self._states.estimator.base.problem:
            return ERROR, f'unknown: {self._states.estimator.base.problem}', values
        if self._monitor.problem:
            return ERROR, self._monitor.problem, values
        values.update({'level': watch.level.name, **self._states.estimator.base.figures})
        has_contact = last is not None and any(last.located.stance.in_contact)
        if not has_contact and watch.level != Level.FALLEN:
            return WARN, (
                'no foot on the ground: none carries enough of the weight (contact_engage '
                f'{self._node.params.contact.engage:g}); if the robot stands, see zmp and weight'
                ), values
        if watch.level == Level.STABLE and self._states.estimator.base.warning:
            return WARN, self._states.estimator.base.warning, values
        reasons = f': {"; ".join(watch.reasons)}' if watch.reasons else ''
        return SEVERITY[watch.level], f'{watch.level.name.lower()}{reasons}', values

    def _report_zmp(self) -> Report:
        params, instants = self._node.params, self._instants
        rate = self._measured / max(steady_time() - self._since, 1e-6)
        difference = float(np.sqrt(self._squares / self._compared)) if self._compared else 0.0
        deviation = float(np.sqrt(self._variances / self._uncertain)) if self._uncertain else 0.0
        self._restart()
        values = {'rate [Hz]': rate, 'rms difference [m]': difference,
                  'delay of the model [s]': self._monitor.delay}
        if deviation:
            values['standard deviation [m]'] = deviation
        if not self._inputs.wrenches:
            return WARN, ('not measured: the feet have no wrench sensors; set wrench_topics to '
                          'the topics of their wrenches'), values
        if restriction := self._node.model.config.force_z_restriction:
            return OK, f'not measured: {restriction}', values
        if not rate:
            return ERROR, f'not measured: {self._why_no_zmp(instants)}', values
        if difference > np.hypot(params.difference_warning, CERTAIN * deviation):
            model = self._node.model
            tare = 'tare the sensors, ' if model.config.wrench_sensors else ''
            masses = '' if model.is_calibrated else 'calibrate the masses, '
            return WARN, (f"the model's ZMP differs from the measured one by "
                          f'{1e3 * difference:.0f} mm rms (difference_warning: '
                          f'{1e3 * params.difference_warning:.0f} mm): {masses}'
                          f'{tare}and check whether anything else carries or pushes the robot'
                          ), values
        return OK, f'{rate:.0f} Hz', values

    def _why_no_zmp(self, instants: int) -> str:
        stale = [name for name, source in self._inputs.inputs.items() if source.stale()]
        if stale:
            return waiting_for(stale)
        if not instants:
            return ('the stamps of joint states, IMU and wrenches never match: check that all '
                    f'drivers use the same clock ({self._states.estimator.describe_lateness()})')
        return ('no ground reaction force: the robot is in the air, or a sensor is wrong (see '
                'weight)')

    def _report_support(self) -> Report:
        last = self._last
        support = None if last is None else last.support
        unevenness = 0.0 if support is None else support.unevenness
        values = {'out of plane [m]': unevenness, 'CoM margin [m]': _known(
            None if last is None else last.com_margin), 'phase': '' if last is None else (
            describe_contacts(tuple(self._node.model.config.feet),
                              last.located.stance.in_contact))}
        if last is not None and last.contacts:
            hands = ', '.join(hand.name for hand in last.hands)
            limbs = f'soles in contact, hands {hands}' if hands else 'soles on steps'
            return OK, f'support region computed from friction: {limbs}', values
        if unevenness > self._node.params.unevenness_warning:
            return WARN, (
                f'the soles in contact are up to {1e3 * unevenness:.0f} mm out of one plane '
                f'(unevenness_warning: {1e3 * self._node.params.unevenness_warning:g} mm), and '
                'the ZMP is on a plane between them; on flat ground, look for a foot on its edge, '
                'and check joint offsets and sole_origin'
                ), values
        return OK, 'the soles in contact lie in one plane', values

    def _report_weight(self) -> Report:
        if not self._inputs.wrenches:
            return OK, 'not measured: the feet have no wrench sensors', {}
        if self._node.model.config.feet_with_force_z:
            return OK, 'see weight of wrench_aggregator: the wrenches here are not whole', {}
        result = self._weight.result()
        if result is None:
            return WARN, 'not measured: no wrenches of all feet with the same stamp; see zmp', {}
        return report_of(result)


def _known(value: float | None) -> Any:
    return 'unknown' if value is None else value
