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
Estimates the centre of mass of the whole robot and of each link.

Everything is published once per message of `joint_states`, with its stamp, in `world_frame`; TF
and markers at their own rates. While the base is unknown nothing is published, and
``/diagnostics`` and the log name what is missing.

==================== ============================== =========================================
topic                type                           what
==================== ============================== =========================================
joint_states         sensor_msgs/JointState         in
imu (robot's YAML)   sensor_msgs/Imu                in, with base_source imu or filter
odom                 nav_msgs/Odometry              in, with base_source odometry
contacts             sensor_msgs/JointState         in, of wrench_aggregator
<foot>/wrench        geometry_msgs/WrenchStamped    in, for what is fused, and for the filter
resting_wrench       geometry_msgs/WrenchStamped    in, once per second at rest, compared with the
                                                    model: see /diagnostics
payload              geometry_msgs/InertiaStamped   in, of payload_estimator
~/com                geometry_msgs/PointStamped     centre of mass
~/com_velocity       geometry_msgs/Vector3Stamped   its velocity; not while no sole is in contact
~/dcm                geometry_msgs/PointStamped     divergent component, on the ground
~/com_fused          nav_msgs/Odometry              CoM and velocity with covariance, from
                                                    kinematics and foot wrenches
~/com_bias           geometry_msgs/Vector3Stamped   estimated error of ~/com
~/external_force     geometry_msgs/WrenchStamped    estimated force other than at the feet
~/odometry           nav_msgs/Odometry              base_link with covariance, with base_source
                                                    filter
~/link_coms          geometry_msgs/PoseArray        in the order of the parameter link_names
~/markers            visualization_msgs/MarkerArray all of this, for RViz
/tf                  tf2_msgs/TFMessage             world -> root link, base_link -> footprint,
                                                    world -> com, world -> <link>_com
==================== ============================== =========================================
"""

from __future__ import annotations

from collections.abc import Sequence
import sys
from typing import Any

from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.core.state.base import BaseSource, LocatedState
from biped_com_ros.nodes.com_estimator.fused_com import (
    FusedComOutput, make_fused_estimator)
from biped_com_ros.nodes.com_estimator.markers import MarkerOutput
from biped_com_ros.nodes.com_estimator.model_check import ModelCheck
from biped_com_ros.nodes.com_estimator.outputs import BaseOutput, ComOutputs, FrameOutput
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import waiting_for
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.located_states import LocatedStates
from biped_com_ros.ros.topics.payload_input import PayloadInput
from biped_com_ros.ros.topics.state_inputs import ContactInputs, describe_contacts, StateInputs
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.parameter import Parameter


class ComEstimator(RobotNode[ComEstimatorParameters]):
    """
    Located states in, centre of mass out, see the module.

    Attributes
    ----------
    inputs, contacts
        What it subscribes to.
    last
        The last estimate; None before the first.
    fusion
        Estimates the fused CoM; None if the parameter `fused_com` is off.

    """

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('com_estimator', ComEstimatorParameters, **node_kwargs)

    # -- set-up

    def build(self, model: RobotModel) -> None:
        """Make outputs and inputs for the robot."""
        params, options = self.params, self.input_options(self.params.sensor_timeout)
        # First, since they check the parameters.
        self.contacts = ContactInputs(self, model, params, **options)
        self.inputs = StateInputs(self, model, params, **options)
        self._states = self._estimate(model)
        self.watch_inputs(dict(self.inputs.inputs))
        self._declare_links(model)
        self._outputs = ComOutputs(self, model, params.world_frame)
        self._frames = FrameOutput(self, model, params)
        self._base_output = (
            BaseOutput(self, model, params) if params.base.source == 'filter' else None)
        self._markers = MarkerOutput(self, model, params)
        self._frame_throttle = StampThrottle(params.tf_rate)
        self._marker_throttle = StampThrottle(params.marker_rate)
        self._model_check = ModelCheck(self, lambda: self.last)
        self.payload = PayloadInput(self, params)
        self._published, self._reported_at = 0, steady_time()
        self.last: ComEstimate | None = None
        self.diagnostics.add('base', self._report_base)
        self.diagnostics.add('com', self._report_com)
        self.fusion = FusedComOutput(
            self, self.inputs, self.payload.carried) if params.fused_com else None

    @property
    def base(self) -> BaseSource:
        """Return what locates the base."""
        return self._states.estimator.base

    def _estimate(self, model: RobotModel) -> LocatedStates:
        """Call `_on_state` at each sample of the joints; the filter needs wrenches, too."""
        params = self.params
        if params.base.source != 'filter':
            return self.inputs.estimate_latest(self._on_state, self.contacts.history)
        return self.inputs.estimate_synchronized(
            self._on_state, params, thresholds=params.contact,
            body_weight=model.mass * params.gravity, wrenches_required=False)

    def _declare_links(self, model: RobotModel) -> None:
        """Declare what the entries of ``~/link_coms`` are."""
        for name, value, text, is_constant in (
                ('link_names', list(model.link_names), 'Order of ~/link_coms', True),
                ('link_masses', model.link_masses.tolist(),
                 'Masses in the same order, as the node uses them [kg]', False)):
            self.declare_parameter(
                name, value, ParameterDescriptor(description=text, read_only=is_constant),
                ignore_override=True)
        self.add_on_set_parameters_callback(self._check_link_masses)

    def _check_link_masses(self, changes: list[Any]) -> SetParametersResult:
        """Refuse other masses than the model's, which the parameter follows."""
        masses = self.model.link_masses.tolist()
        is_wrong = any(change.name == 'link_masses' and (
            change.value is None or list(change.value) != masses) for change in changes)
        return SetParametersResult(successful=not is_wrong, reason=(
            'link_masses follows from the URDF: publish it on calibrated_description'
            if is_wrong else ''))

    def use_inertials(self) -> None:
        """Publish the calibrated masses, and reset the estimates that depend on them."""
        self.inputs.use(self.params, **self._contact_settings(self.params))
        self.set_parameters([Parameter('link_masses', value=self.model.link_masses.tolist())])
        self._model_check.use_inertials()
        if self.fusion is not None:
            self.fusion.reset()

    def check_parameters(self, params: ComEstimatorParameters) -> None:
        """Refuse a link that the robot does not have."""
        if params.fused_com:
            make_fused_estimator(self.model, params)

    def apply_parameters(self, params: ComEstimatorParameters) -> None:
        """Use other rates, limits and noise; other noise of the fused CoM resets it."""
        before, self.params = self.params, params
        self._frame_throttle.set_rate(params.tf_rate)
        self._marker_throttle.set_rate(params.marker_rate)
        self.inputs.use(params, **self._contact_settings(params))
        self.contacts.use(params)
        self._model_check.configure()
        if self.fusion is not None and (
                params.fusion, params.load_link) != (before.fusion, before.load_link):
            self.fusion.reset()

    def _contact_settings(self, params: ComEstimatorParameters) -> dict[str, Any]:
        return {'thresholds': params.contact,
                'body_weight': self.model.mass * params.gravity}

    # -- on every message

    def _on_state(self, located: LocatedState) -> None:
        carried = self.payload.carried
        carried.update(located.stamp_ns)
        self.last = estimate = ComEstimate(
            located, self.params.gravity, carried.motion(located.state))
        self._published += 1
        self._outputs.publish(estimate)
        if self._base_output is not None:
            self._base_output.publish(located)
        if self._frame_throttle.is_due(located.stamp_ns):
            self._frames.publish(estimate)
        if self._marker_throttle.is_due(located.stamp_ns):
            self._markers.publish(estimate, None if self.fusion is None else self.fusion.bias)

    # -- diagnostics

    def _report_base(self) -> Report:
        base, source, last = self.base, self.params.base.source, self.last
        stance = None if last is None else last.located.stance
        in_contact = describe_contacts(
            tuple(self.model.config.feet), () if stance is None else stance.in_contact)
        measured = last is not None and last.located.contacts_measured
        values = {'source': source, 'in contact': in_contact,
                  'contacts': 'measured' if measured else 'assumed', **base.figures}
        if missing := self.missing_inputs:
            return ERROR, f'unknown: {waiting_for(missing)}', values
        if base.problem:
            return ERROR, f'unknown: {base.problem}', values
        if base.is_held:
            return WARN, ('position of the base held: no foot is in contact; if the robot stands, '
                          'see weight of wrench_aggregator'), values
        if not measured:
            return WARN, self._assumption(in_contact), values
        if base.warning:
            return WARN, base.warning, values
        return OK, f'base from {source}; feet in contact: {in_contact}', values

    def _assumption(self, in_contact: str) -> str:
        topic = self.contacts.input.topic
        remedy = (f'nothing received on {topic}: start wrench_aggregator'
                  if self.model.config.has_foot_wrenches else
                  f'the robot has no wrench sensors: publish its contacts on {topic}')
        return f'assuming that the lowest soles are in contact ({in_contact}); {remedy}'

    def _report_com(self) -> Report:
        now = steady_time()
        rate = self._published / (now - self._reported_at)
        self._published, self._reported_at = 0, now
        values = {'rate [Hz]': rate}
        if not rate or self.last is None:
            return ERROR, 'not published: no pose of the base; see base', values
        if self.last.dcm_problem:
            return WARN, f'DCM not published: {self.last.dcm_problem}', values
        if not self.inputs.joints.velocities_measured:
            return WARN, ('joint_states has no velocities: they are differences of the positions, '
                          'so com_velocity and dcm are noisy'), values
        return OK, f'{rate:.0f} Hz', values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ComEstimator, argv)


if __name__ == '__main__':
    sys.exit(main())
