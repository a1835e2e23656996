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
Measurements in the demo's table: errors of the estimates, rates, diagnostics.

Not measured are a robot without contact, whose height and weight cannot be estimated, one that is
pushed, and one that has fallen. Measuring begins anew once it has recovered, since the feet carry
something else already while it is lifted or begins to tip. The centre of mass is compared relative
to the base, since its place in the world also has the drift of leg odometry, which is shown by
itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
import math
import sys
from typing import Any

from biped_com_ros.core.constants import GRAVITY, nanoseconds
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about, yaw_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.weight_check import weight_below_sensors
from biped_com_ros.demo.terminal import Mean, Period, Snapshot
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import is_in_namespace, node_of
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.inputs import (
    BoolInput, Input, OdometryInput, PointInput, WrenchInput)
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from biped_com_ros.ros.topics.stamp import ns_of_msg
from biped_com_ros.ros.topics.tf import pose_from_transform, transform_message_type
from biped_com_ros.ros.topics.whole_messages import subscribe
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
import numpy as np
from rclpy.node import Node

#: Instants kept until both estimate and truth have arrived, and the parts of one.
_KEPT, _PARTS = 2000, 4
_DIAGNOSTICS_TIMEOUT = 6.0  # s
_OLD = 2.0  # s after which a value is stale
_STARTING = 15.0  # s, for a node until its first diagnostics
#: The robot has fallen when its centre of mass is below this share of its initial height.
_FALLEN = 0.75
_RECOVERY_NS = nanoseconds(5.0)  # until a robot rests that was pushed, or put down


class Measurements:
    """
    Compares the estimates with the simulator's truth, per period and since a start.

    Attributes
    ----------
    now_ns
        Simulated time, ns; set by the owner.
    truth
        True centre of mass in the world (3,), m; NaN before the first message.
    inputs
        Required inputs, by description.

    """

    def __init__(self, node: Node, model: RobotModel, exact_sensors: bool) -> None:
        self._exact_sensors, self._is_calibrated = exact_sensors, False
        self._has_sensors = bool(model.config.wrench_sensors)
        self._weigh(model)
        #: By stamp, ns, what has arrived: true and estimated centre of mass (3,), m, and base.
        self._instants: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._period, self._all = Period(), Period()
        self._contacts = dict.fromkeys(model.config.feet, (math.nan, False))
        self._received_at: dict[str, float] = {}
        self._height = math.nan
        self._start_ns = sys.maxsize
        self._shown_ns = self.now_ns = 0
        self._shown_at = self._started_at = steady_time()
        self.truth = np.full(3, math.nan)
        self.running = False
        self.inputs: dict[str, Input] = {
            'truth (the simulator)': PointInput(
                node, names.TRUE_COM, '', self.on_truth, max_age=0.0),
            'com (com_estimator)': PointInput(
                node, names.COM, '', self.on_com, max_age=0.0)}
        self._odometry = OdometryInput(
            node, 'odom', self.on_true_base, child_frame_id=model.config.base_link,
            need_twist=False, max_age=0.0)
        # com_estimator broadcasts the root link; odometry is that of the base link, fixed to it.
        root, state = model.frame_names[0], model.state(model.positions({}))
        self._root = frame_prefix(node) + root
        self._pose_root_link = state.pose_in_base(root).inverse() @ state.pose_in_base(
            model.config.base_link)
        subscribe(node, transform_message_type(), '/tf', self._on_transforms, STATE_OUTPUT)
        subscribe(node, WrenchStamped, names.PUSH, lambda push: self.disturb(), STATE_OUTPUT)
        if model.config.has_foot_wrenches and not model.config.force_z_restriction:
            self.inputs['wrench (wrench_aggregator)'] = WrenchInput(
                node, names.FEET_WRENCH, '', lambda stamp, wrench: None, max_age=0.0)
        self._feet = [
            (WrenchInput(node, names.wrench_of(foot), '',
                         partial(self.on_foot, foot), max_age=0.0,
                         force_z=foot in model.config.feet_with_force_z),
             BoolInput(node, names.contact_of(foot),
                       partial(self.on_contact, foot)))
            for foot in model.config.feet]

    def _weigh(self, model: RobotModel) -> None:
        self._weight = model.mass * GRAVITY
        self._unmeasured = weight_below_sensors(model)

    def use_calibrated(self, model: RobotModel) -> None:
        """Compare with the calibrated URDF from now on, since the nodes use it."""
        self._weigh(model)
        self._is_calibrated = True

    @property
    def has_fallen(self) -> bool:
        """Whether the simulated robot has fallen."""
        height = float(self.truth[2])
        if math.isnan(self._height):
            self._height = height
        return height < _FALLEN * self._height

    def start(self, ns: int) -> None:
        """Start again, with messages from `ns` on."""
        self._period, self._all = Period(), Period()
        self._start_ns = ns
        self._started_at = steady_time() + (ns - self.now_ns) * 1e-9
        self.running = True

    def pause(self) -> None:
        """Clear what was measured, and measure nothing until the next start."""
        self._period, self._all = Period(), Period()
        self._start_ns, self.running = sys.maxsize, False

    def disturb(self) -> None:
        """Measure anew once the robot has recovered from what the URDF is not to be judged by."""
        if self.running:
            self.start(max(self.now_ns + _RECOVERY_NS, self._start_ns))

    def period_snapshot(self, activity: str, joint_rate: float, health: tuple[int, str],
                        missing: Sequence[str]) -> Snapshot:
        """Return the measurements since the last call."""
        now = steady_time()
        begun = self._shown_ns > 0
        factor = (self.now_ns - self._shown_ns) * 1e-9 / (now - self._shown_at) if begun else 0.0
        period, self._period = self._period, Period()
        self._shown_ns, self._shown_at = self.now_ns, now
        return self._snapshot(period, activity, joint_rate, health, missing, factor)

    def whole_snapshot(self, joint_rate: float, health: tuple[int, str],
                       missing: Sequence[str]) -> Snapshot:
        """Return the measurements since the start."""
        elapsed = steady_time() - self._started_at
        factor = self._time() / elapsed if elapsed > 0.0 else math.nan
        return self._snapshot(self._all, '', joint_rate, health, missing, factor)

    def _snapshot(self, period: Period, activity: str, joint_rate: float,
                  health: tuple[int, str], missing: Sequence[str], factor: float) -> Snapshot:
        rates = {'joint_states': joint_rate, **{
            name.partition(' ')[0]: source.rate for name, source in self.inputs.items()}}
        now = steady_time()
        ages = {name: now - at for name, at in self._received_at.items() if now - at > _OLD}
        return Snapshot(
            time=self._time(), activity=activity, com_error=period.com_error.mean,
            com_error_largest=period.com_error.largest,
            base_drift=float(period.base_drift.mean[0]),
            # Without sensors the wrenches come from the URDF's own weight.
            weight=period.weight(len(self._feet)) if self._has_sensors else math.nan,
            model_weight=self._weight,
            contacts=dict(self._contacts), rates=rates,
            real_time_factor=factor, health=health, waiting=missing,
            exact_sensors=self._exact_sensors, has_sensors=self._has_sensors,
            unmeasured=self._unmeasured, is_calibrated=self._is_calibrated,
            has_fallen=self.has_fallen, ages=ages)

    def _time(self) -> float:
        """Return for how long has been measured, s; NaN while nothing is."""
        time = (self.now_ns - self._start_ns) * 1e-9
        return time if self.running and time >= 0.0 else math.nan

    def _counts(self, stamp_ns: int) -> bool:
        return stamp_ns >= self._start_ns and not self.has_fallen

    def on_truth(self, stamp_ns: int, point: Array) -> None:
        """Use the true centre of mass (3,), m, of an instant."""
        self.truth = point.copy()
        self._add(stamp_ns, 'true_com', self.truth)

    def on_com(self, stamp_ns: int, point: Array) -> None:
        """Use the estimated centre of mass (3,), m, of an instant."""
        self._received_at['com'] = steady_time()
        self._add(stamp_ns, 'com', point.copy())

    def on_true_base(self, stamp_ns: int, position: Array, quaternion: Array, _: Array) -> None:
        """Use the true pose of the base link: position (3,), m, and quaternion (4,), xyzw."""
        self._add(stamp_ns, 'true_base', Pose.from_quaternion(quaternion, position.copy()))

    def on_root(self, stamp_ns: int, root: Pose) -> None:
        """Use the estimated pose of the root link in the world."""
        self._add(stamp_ns, 'base', root @ self._pose_root_link)

    def _on_transforms(self, message: Any) -> None:
        for transform in message.transforms:
            if transform.child_frame_id == self._root:
                self.on_root(ns_of_msg(transform.header.stamp), pose_from_transform(transform))

    def _add(self, stamp_ns: int, what: str, value: Array | Pose) -> None:
        """Add a part of an instant; compare its parts once all have arrived."""
        instant = self._instants.setdefault(stamp_ns, {})
        instant[what] = value
        if len(instant) == _PARTS and self._counts(stamp_ns):
            self._compare(**instant)
            del self._instants[stamp_ns]
        elif len(self._instants) > _KEPT:
            self._instants.popitem(last=False)

    def _compare(self, com: Array, base: Pose, true_com: Array, true_base: Pose) -> None:
        """Add the CoM's error relative to the base, and the base's distance."""
        turn = rotation_about(2, yaw_of(base.rotation @ true_base.rotation.T))
        error = com - base.position - turn @ (true_com - true_base.position)
        for period in (self._period, self._all):
            period.com_error.add(error)
            period.base_drift.add(float(np.linalg.norm(base.position - true_base.position)))

    def on_foot(self, foot: str, stamp_ns: int, wrench: np.ndarray) -> None:
        """Use the wrench (6,) of a foot, N and N m."""
        force = float(wrench[2])
        self._contacts[foot] = (force, self._contacts[foot][1])
        self._received_at[foot] = steady_time()
        if self._counts(stamp_ns):
            for period in (self._period, self._all):
                period.vertical_forces.setdefault(foot, Mean(1)).add(force)

    def on_contact(self, foot: str, _: int, contact: bool) -> None:
        """Use the contact state of a foot."""
        self._contacts[foot] = (self._contacts[foot][0], contact)
        if not any(contact for _, contact in self._contacts.values()):
            self.disturb()


class Health:
    """
    The last diagnostics of every node in the namespace of a node.

    Parameters
    ----------
    node
        That subscribes.
    expected
        Names of nodes that have to report.

    """

    def __init__(self, node: Node, expected: Sequence[str] = ()) -> None:
        self._namespace = node.get_namespace()
        self._reports: dict[str, tuple[int, str, float]] = {}
        self._values: dict[str, dict[str, str]] = {}
        # By node; of an expected one as if it had reported at the start.
        self._received_at = dict.fromkeys(expected, steady_time() + _STARTING)
        node.create_subscription(DiagnosticArray, '/diagnostics', self.on_array, STATE_OUTPUT)

    def on_array(self, array: DiagnosticArray) -> None:
        """Use diagnostics."""
        now = steady_time()
        for status in filter(lambda s: is_in_namespace(s, self._namespace), array.status):
            self._reports[status.name] = (
                int.from_bytes(status.level, 'little'), status.message, now)
            self._values[status.name.rpartition('/')[2]] = {
                value.key: value.value for value in status.values}
            self._received_at[node_of(status.name)] = now

    def number(self, status: str, key: str) -> float:
        """Return a number of the last diagnostics with a name; NaN if there is none."""
        try:
            return float(self._values[status][key])
        except (KeyError, ValueError):
            return math.nan

    def worst(self) -> tuple[int, str]:
        """Return the worst level and its text; nodes that no longer report first."""
        now = steady_time()
        silent = [f'{name} for {now - at:.0f} s' for name, at in self._received_at.items()
                  if now - at > _DIAGNOSTICS_TIMEOUT]
        if silent:
            return 2, f'no diagnostics from {", ".join(silent)}: ended, or hangs'
        fresh = {name: (level, text) for name, (level, text, at) in self._reports.items()
                 if now - at < _DIAGNOSTICS_TIMEOUT}
        if not fresh:
            return 1, 'no diagnostics yet'
        name = max(fresh, key=lambda key: fresh[key][0])
        level, text = fresh[name]
        return (0, f'all {len(fresh)} checks OK') if level == 0 else (level, f'{name}: {text}')
