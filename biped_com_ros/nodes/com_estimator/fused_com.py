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
The fused CoM of `com_estimator`: kinematics and foot wrenches of the same instants.

See :mod:`biped_com_ros.core.com.fused`.
Samples are synchronized by their stamps, as in `zmp_monitor`: a replayed recording gives bitwise
identical results, independently of subscribers.
"""

from __future__ import annotations

from copy import copy
import math
from typing import Any

from biped_com_ros.core.com.fused import FusedComEstimator
from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload, LoadMotion, without_load
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.wrench.weight_check import UPRIGHT
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.ros.node.diagnostics import OK, Report, WARN
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import Input
from biped_com_ros.ros.topics.outputs import (
    LINEAR, TemplatePublisher, vector_publisher, wrench_publisher)
from biped_com_ros.ros.topics.state_inputs import StateInputs
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.node import Node
from std_msgs.msg import Header

#: The covariances are computed once in so long: they change slowly.
_COVARIANCE_NS = nanoseconds(0.01)
#: Number of readings in turn that fit no load where one was taken up.
_TAKEN_UP = 3


class FusedComOutput:
    """
    Publishes the fused CoM with its covariance, the model's bias and the external force.

    Parameters
    ----------
    node
        The node.
    inputs
        Its subscriptions; those to the foot wrenches are added.
    payload
        What a hand carries. It is subtracted from the foot wrenches and added to the result, so
        that the estimated load of the robot itself does not change.

    Attributes
    ----------
    estimate
        What estimates.
    states
        The synchronized states from which it does.

    """

    def __init__(self, node: RobotNode[ComEstimatorParameters], inputs: StateInputs,
                 payload: CarriedPayload) -> None:
        self._payload = payload
        self._load: LoadMotion | None = None
        params, model = node.params, node.model
        self._fused = _fused_publisher(node, params.world_frame, params.com_frame)
        self._bias = vector_publisher(node, '~/com_bias', params.world_frame)
        self._force = wrench_publisher(
            node, '~/external_force', params.com_frame)
        self._node = node
        self.reset()
        self._last_ns = NEVER_NS
        self._instants = 0
        self._last: LocatedState | None = None
        self._inputs = inputs
        self.states = inputs.estimate_synchronized(
            self._on_state, params, thresholds=params.contact,
            body_weight=model.mass * params.gravity, wrenches_required=False)
        node.diagnostics.add('com_fused', self._report)

    def reset(self) -> None:
        """Reset the estimate, with the present masses and parameters."""
        model, params = self._node.model, self._node.params
        self._covariance_slot: int | None = None
        self.estimate = make_fused_estimator(model, params)

    @property
    def bias(self) -> Array | None:
        """Error of the kinematic CoM in the world, shape (3,), m; None before the estimate."""
        return self.estimate.bias if self.estimate.is_started else None

    def _on_state(self, located: LocatedState) -> None:
        step_ns, self._last_ns = located.stamp_ns - self._last_ns, located.stamp_ns
        self._last = located = self._without_payload(located)
        self._instants += 1
        if step_ns < 0:  # the clock was set back
            self.estimate.reset()
        # After a restart of the base the constants are kept.
        self.estimate.update(math.inf if located.restarted else 1e-9 * step_ns, located)
        if not self.estimate.is_credible:
            self._node.get_logger().error(
                'the fused CoM or its mass became implausible: the filter is restarted; check the '
                'masses of the URDF and the units of the inputs', throttle_duration_sec=5.0)
            self.reset()
        elif located.twist is not None:
            self._publish(located.stamp_ns)

    def _without_payload(self, located: LocatedState) -> LocatedState:
        """Update the payload, and subtract its weight from the foot wrenches."""
        payload, state, wrenches = self._payload, located.state, located.wrenches
        payload.update(located.stamp_ns)
        self._load = payload.motion(state)
        if self._load is not None and wrenches is not None:
            located = copy(located)  # other callbacks get the same object
            located.wrenches = without_load(
                wrenches, state.sole_placements_in_world, self._load.place(state),
                self._load.mass * self._node.params.gravity)
        return located

    def _with_payload(self, com: Any, velocity: Any) -> tuple[Any, Any]:
        """Return centre of mass and velocity of robot and payload in the world."""
        load, last = self._load, self._last
        if load is None or last is None or last.twist is None:
            return com, velocity
        return load.joined_with(self.estimate.mass, com, velocity, last.state, last.twist)

    def _publish(self, stamp_ns: int) -> None:
        """Publish the estimate; messages without subscribers are not built."""
        estimate = self.estimate
        if self._fused.has_subscribers:
            fields = self._fused.fields
            fields['position'][...], fields['velocity'][...] = self._with_payload(*estimate.now())
            if stamp_ns // _COVARIANCE_NS != self._covariance_slot:
                self._covariance_slot = stamp_ns // _COVARIANCE_NS
                fields['position_covariance'][LINEAR] = estimate.position_covariance.reshape(-1)
                fields['velocity_covariance'][LINEAR] = estimate.velocity_covariance.reshape(-1)
            self._fused.publish(stamp_ns)
        if self._bias.has_subscribers:
            self._bias.fields['vector'][...] = estimate.bias
            self._bias.publish(stamp_ns)
        if self._force.has_subscribers:
            self._force.fields['wrench'][:3] = estimate.external_force
            self._force.publish(stamp_ns)

    @property
    def _unmatched(self) -> str:
        return ('no inputs with matching stamps; if this stays, check that all drivers use the '
                f'same clock ({self.states.estimator.describe_lateness()})')

    def _report(self) -> Report:
        estimate, inputs, last = self.estimate, self._inputs, self._last
        instants, self._instants = self._instants, 0
        if last is not None and instants and last.twist is None:
            if last.state.uprightness < UPRIGHT:
                return WARN, ('no foot carries the robot: it does not stand upright; if it does, '
                              'check the orientation of the IMU'), {}
            return WARN, ('no foot carries the robot: it is in the air; if it stands, see weight '
                          'of wrench_aggregator, and check wrench_sensors.<sensor>.scale'), {}
        if not estimate.is_started:
            missing = _stale(*inputs.inputs.values())
            return WARN, f'waiting: {missing or self._unmatched}', {}
        values = {'estimated mass [kg]': estimate.mass,
                  'bias of the model [m]': ', '.join(f'{b:.4f}' for b in estimate.bias),
                  'probability of a load': estimate.load_probability,
                  'changes of the load': estimate.changes,
                  'readings that fit no load': estimate.unexplained,
                  'standard deviation [m]': float(np.sqrt(np.trace(estimate.com_covariance)))}
        if estimate.unexplained and last is not None:
            values['last of these [s ago]'] = 1e-9 * (last.stamp_ns - estimate.unexplained_ns)
        if not instants:
            missing = _stale(*(source for source in inputs.inputs.values() if source.required))
            return WARN, f'stopped: {missing or self._unmatched}', values
        if restriction := self._node.model.config.force_z_restriction:
            return OK, f'from kinematics alone: {restriction}', values
        if last is not None and last.wrenches is None:
            missing = _stale(*inputs.wrenches)
            return WARN, ('from kinematics and the load estimated so far; no foot wrenches'
                          f': {missing or self.states.estimator.describe_lateness()}'), values
        if not estimate.uses_wrenches:
            return OK, ('that of the URDF: the wrenches of virtual feet come from the same masses'
                        ), values
        if estimate.refused > _TAKEN_UP:
            return WARN, ('foot wrenches fit neither the masses nor a load, so the estimate stays '
                          'as it was: something else carries the robot, or a foot sensor fails; '
                          'see weight'), values
        return OK, 'from kinematics and foot wrenches', values


def make_fused_estimator(model: RobotModel,
                         params: ComEstimatorParameters) -> FusedComEstimator:
    """Return the estimator that the parameters describe; a BipedComError if there is none."""
    return FusedComEstimator(model, params.fusion, params.load_link)


def _stale(*sources: Input) -> str:
    """Name the topics on which nothing arrives; '' if there are none."""
    topics = ', '.join(source.topic for source in sources if source.stale())
    return f'nothing received on {topics}' if topics else ''


def _fused_publisher(node: Node, world_frame: str, com_frame: str) -> TemplatePublisher:
    prototype = Odometry(header=Header(frame_id=world_frame), child_frame_id=com_frame)
    prototype.pose.pose.orientation.w = 1.0
    return TemplatePublisher(node, '~/com_fused', prototype, {
        'position': 'pose.pose.position', 'position_covariance': 'pose.covariance',
        'velocity': 'twist.twist.linear', 'velocity_covariance': 'twist.covariance'})
