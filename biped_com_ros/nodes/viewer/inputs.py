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

"""Converts received messages to a `View`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.plain_xml import LARGEST_TEXT
from biped_com_ros.core.stability.hands import Hands
from biped_com_ros.core.wrench.weight_check import weight_below_sensors
from biped_com_ros.nodes.viewer.polled_node import latest, PolledNode
from biped_com_ros.ros.node.diagnostics import is_in_namespace, node_of
from biped_com_ros.ros.node.robot_source import CALIBRATED_TOPIC
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.inputs import (
    Input, JointStateInput, OdometryInput, PointInput, VectorInput, WrenchInput)
from biped_com_ros.ros.topics.qos import LATCHED, STATE_OUTPUT
from biped_com_ros.ros.topics.state_inputs import hand_wrench_topics
from biped_com_ros.ros.topics.tf import pose_from_transform
from biped_com_ros.viz.view import ContactView, HAND, HealthLine, POINT, View
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PolygonStamped, PoseArray, Vector3Stamped
import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, String

#: Time without messages after which data are stale, s; diagnostics are sent once per second.
_TIMEOUT, _HEALTH_TIMEOUT = 1.0, 6.0
_KEPT = 40  # true CoMs kept until the estimate of the same stamp has arrived
#: Lines of diagnostics that are kept, and characters of their names and texts.
_MOST_LINES, _LONGEST_NAME, _LONGEST_TEXT = 500, 200, 1000
#: Kind of point: topic.
_POINTS = {'zmp': names.ZMP, 'zmp_model': names.ZMP_MODEL,
           'dcm': names.DCM}
#: Text that is published when it changes: node that publishes it.
_TEXTS_OF = {'phase': 'zmp_monitor', 'level': 'zmp_monitor', 'gait': 'gait_player',
             'calibration': 'com_calibrator'}
#: Nodes of every robot, and seconds from the first joint states until they must have reported.
_EXPECTED, _STARTING = ('com_estimator', 'zmp_monitor'), 10.0
STALE = 3
"""Level of diagnostics of a node that no longer reports."""

_NUMBERS = {'margin': names.MARGIN, 'dcm_margin': names.DCM_MARGIN,
            'time_to_edge': names.TIME_TO_EDGE}
_POLYGONS = {'polygon': names.SUPPORT_POLYGON, 'com_region': names.COM_REGION}
_LATCHED_TEXTS = {'phase': names.SUPPORT_PHASE, 'gait': names.GAIT_STATE,
                  'calibration': names.CALIBRATION_PROGRESS}


_DEMO_TEXTS = {'story': names.DEMO_STORY, 'results': names.DEMO_RESULTS}


class PageInputs:
    """
    Subscribes to all that the page shows, and keeps a `View` of it.

    Parameters
    ----------
    polled
        Node for the subscriptions.
    model
        The robot.
    gravity
        m/s^2.

    Attributes
    ----------
    view : View
        Received data; without messages for a second they become unknown, and their last values
        are in `View.stale` with their ages.
    calibrated : RobotModel or None
        The robot by the calibrated URDF, which the nodes use.

    """

    def __init__(self, polled: PolledNode, model: RobotModel, gravity: float = GRAVITY) -> None:
        self.view = View(feet={foot: ContactView() for foot in model.config.feet},
                         hands={hand: ContactView() for hand in Hands.measured(model.config)})
        self._polled, self._model, self._gravity = polled, model, gravity
        self._links, self._frame_prefix = frozenset(model.frame_names), frame_prefix(polled.node)
        self._truths: OrderedDict[int, Array] = OrderedDict()
        self._com_stamp = 0
        self._now = 0.0
        self._received_at: dict[tuple[str, str], float] = {}
        self._last: dict[tuple[str, str], tuple[Any, float]] = {}  # of what is stale
        #: By the names of statuses, the last received at the end.
        self._health: dict[str, tuple[HealthLine, float]] = {}
        self._texts: dict[str, tuple[str, float]] = {}
        self._demo: dict[str, str] = {}
        self._joints_since: float | None = None
        #: Of the names of this robot's nodes.
        self._prefix = f"{polled.node.get_namespace().strip('/')}/".lstrip('/')
        self._expected = (
            *(('wrench_aggregator',) if model.config.has_foot_wrenches else ()), *_EXPECTED)
        self._weigh(model)
        self.calibrated: RobotModel | None = None
        self._subscribe_to_robot()
        self._subscribe_to_estimates()
        self._subscribe_to_contacts()
        self._subscribe_to_torso()
        self._subscribe_to_status()

    def update(self, now: float) -> View:
        """Process the messages since the last call; `now` in s, from a monotonic clock."""
        self._now = now
        self._polled.poll()
        self._expire()
        self._match_truth()
        self._assume_base()
        self._update_calibrated_com()
        reported_at: dict[str, float] = {}  # by node, without the namespace
        for line, at in self._health.values():
            name = node_of(line.name)
            reported_at[name] = max(at, reported_at.get(name, at))
        self.view.health = self._current_health(now, reported_at)
        self._update_texts(now, reported_at)
        for name, topic in _DEMO_TEXTS.items():
            # Its node has no diagnostics.
            is_there = self._polled.node.count_publishers(topic) > 0
            setattr(self.view, name, self._demo.get(name, '') if is_there else '')
        self.view.stale = {key: (value, now - at) for key, (value, at) in self._last.items()}
        return self.view

    def _update_texts(self, now: float, reported_at: dict[str, float]) -> None:
        """Show latched texts only while their node reports: they outlast it."""
        for name, (text, received_at) in self._texts.items():
            at = max(received_at, reported_at.get(_TEXTS_OF[name], received_at))
            is_stale = now - at > _HEALTH_TIMEOUT
            setattr(self.view, name, '' if is_stale else text)
            self._last.pop(('', name), None)
            if is_stale and text:
                self._last['', name] = text, at

    def _current_health(self, now: float, reported_at: dict[str, float]) -> list[HealthLine]:
        """Return the lines of nodes that report, and one for each that does not."""
        is_due = self._joints_since is not None and now - self._joints_since > _STARTING
        silent = {name: now - at for name, at in reported_at.items()
                  if now - at > _HEALTH_TIMEOUT}
        return [
            *(HealthLine(STALE, self._prefix + name, f'no diagnostics for {age:.0f} s: the node '
                         'has ended, or hangs') for name, age in silent.items()),
            *(HealthLine(STALE, self._prefix + name, 'no diagnostics yet: the node is not '
                         'running; start it with bringup.launch.py')
              for name in self._expected if is_due and name not in reported_at),
            *(line for line, at in self._health.values()
              if now - at < _HEALTH_TIMEOUT and node_of(line.name) not in silent)]

    # -- subscriptions

    def _subscribe_to_robot(self) -> None:
        node, model = self._polled.node, self._model
        torso = model.config.torso
        virtual = torso.joints if torso is not None else ()
        measured = [name for name in model.joint_names if name not in virtual]
        optional = [name for name in model.joint_names if name in virtual]
        self._order = np.argsort(model.joint_index((*measured, *optional)))
        self._joints = JointStateInput(
            node, measured, self.add_joints, optional_joints=optional, max_age=0.0,
            **model.corrections_of((*measured, *optional)))
        OdometryInput(node, 'odom', self._on_odometry, child_frame_id=model.config.base_link,
                      need_twist=False, max_age=0.0, qos=latest())
        try:
            from tf2_msgs.msg import TFMessage
        except ImportError:
            return
        self._polled.subscribe(TFMessage, '/tf', self._on_tf, latest(STATE_OUTPUT, 10))

    def _subscribe_to_estimates(self) -> None:
        node = self._polled.node
        PointInput(node, names.COM, '', self._on_com, max_age=0.0)
        PointInput(node, names.TRUE_COM, '', self._on_truth, max_age=0.0)
        OdometryInput(node, names.COM_FUSED, partial(self._keep, POINT, 'fused'),
                      need_twist=False, max_age=0.0)
        for kind, topic in _POINTS.items():
            self._show(PointInput, topic, POINT, kind)
        count = len(self._model.link_names)
        VectorInput(node, PoseArray, names.LINK_COMS,
                    [f'poses.{i}.position.{axis}' for i in range(count) for axis in 'xyz'],
                    self._on_links, max_age=0.0, qos=latest())
        for name, topic in _NUMBERS.items():
            self._subscribe(Float64, topic, name, lambda message: message.data)
        for name, topic in _POLYGONS.items():
            self._subscribe(PolygonStamped, topic, name, lambda message: np.array(
                [(p.x, p.y, p.z) for p in message.polygon.points]).reshape(-1, 3))

    def _subscribe_to_contacts(self) -> None:
        for name in self.view.feet:
            self._show(WrenchInput, names.wrench_of(name), name, 'wrench',
                       force_z=name in self._model.config.feet_with_force_z)
            self._show(PointInput, names.centre_of_pressure_of(name), name, 'cop')
        for name, topic in hand_wrench_topics(self._model, ()).items():
            self._show(WrenchInput, topic, HAND + name, 'wrench')

    def _subscribe_to_torso(self) -> None:
        self._subscribe(JointState, names.FEEDFORWARD, 'feedforward',
                        lambda message: dict(zip(message.name, message.effort)))
        if self._model.config.torso is None:
            return
        self._polled.subscribe(JointState, 'tendon_states', self._on_tendons, latest())
        self._subscribe(Float64MultiArray, names.TORSO_TENSIONS, 'expected_tensions',
                        lambda message: np.array(message.data))
        self._subscribe(Vector3Stamped, names.TORSO_SHAPE, 'torso', lambda message: np.array(
            (message.vector.x, message.vector.y, message.vector.z)))

    def _subscribe_to_status(self) -> None:
        subscribe = self._polled.subscribe
        subscribe(DiagnosticArray, '/diagnostics', self.add_diagnostics, latest(
            STATE_OUTPUT, 30))
        subscribe(DiagnosticArray, names.STABILITY_EVENT, self._on_event, LATCHED)
        for name, topic in _LATCHED_TEXTS.items():
            subscribe(String, topic, partial(self._on_text, name), LATCHED)
        for name, topic in _DEMO_TEXTS.items():
            subscribe(String, topic, partial(self._on_demo_text, name), LATCHED)
        subscribe(String, CALIBRATED_TOPIC, self._on_description, latest(LATCHED, 5),
                  longest=LARGEST_TEXT)

    def _show(self, kind: Callable[..., Input], topic: str, part: str, name: str,
              **options: Any) -> None:
        """Show the values of a point or a wrench in any frame."""
        kind(self._polled.node, topic, '', partial(self._keep, part, name), max_age=0.0,
             qos=latest(), **options)

    def _subscribe(self, kind: type, topic: str, name: str, value: Callable[[Any], Any]) -> None:
        """Show a value of whole messages."""
        self._polled.subscribe(
            kind, topic, lambda message: self._set('', **{name: value(message)}), latest())

    def _set(self, part: str, **values: Any) -> None:
        """Set attributes of a foot, or of the view (''), until they expire."""
        for name, value in values.items():
            if part == POINT:
                self.view.points[name] = value
            else:
                setattr(self.view.part(part), name, value)
            self._received_at[part, name] = self._now
            self._last.pop((part, name), None)

    def _expire(self) -> None:
        """Set what has not been received for some time to unknown; keep it as stale."""
        for (part, name), at in list(self._received_at.items()):
            if self._now - at > _TIMEOUT:
                del self._received_at[part, name]
                if part == POINT:
                    self._last[part, name] = self.view.points.pop(name), at
                    continue
                owner = self.view.part(part)
                self._last[part, name] = getattr(owner, name), at
                if name != 'positions':  # the robot is drawn as it was, and its age is shown
                    setattr(owner, name, getattr(type(owner)(), name))

    # -- the robot

    def add_joints(self, stamp_ns: int, positions: Array, velocities: Array,
                   efforts: Array) -> None:
        """Show these joint states, (n,) each, from the next frame on."""
        if self._joints_since is None:
            self._joints_since = self._now
        self._set('', positions=positions[self._order], efforts=efforts[self._order])

    def _on_odometry(self, stamp_ns: int, position: Array, quaternion: Array, _: Array) -> None:
        if self.view.base_from != 'tf':
            self.view.base = Pose.from_quaternion(quaternion, position.copy())
            self._set('', base_from='odom')

    def _on_tf(self, message: Any) -> None:
        for transform in message.transforms:
            parent, child = (name.removeprefix(self._frame_prefix) for name in (
                transform.header.frame_id, transform.child_frame_id))
            if child == self._model.config.base_link and parent not in self._links:
                self.view.base = pose_from_transform(transform)
                self._set('', base_from='tf')

    def _assume_base(self) -> None:
        """Assume, without data, a level base with the lowest sole on the ground."""
        if not self.view.base_from and self.view.positions is not None:
            state = self._model.state(self.view.positions)
            height = -float(state.placements_in_base(self._model.soles)[:, 3, 2].min())
            self.view.base = Pose(np.eye(3), np.array((0.0, 0.0, height)))

    def _on_description(self, message: String) -> None:
        """Note that the nodes use another URDF than the drawn one: the calibrated one."""
        if message.data == self._model.urdf:
            return
        try:
            self.calibrated = RobotModel(self._model.config, message.data)
        except BipedComError as error:
            self._polled.node.get_logger().warning(
                f'{CALIBRATED_TOPIC} is invalid and not used: {error}')
        else:
            self._weigh(self.calibrated)
            self.view.is_calibrated = True

    def _weigh(self, model: RobotModel) -> None:
        """Compare the weight on the feet with this model from now on."""
        self.view.weight = self._gravity * model.mass
        self.view.weight_below_sensors = weight_below_sensors(model, self._gravity)

    def _update_calibrated_com(self) -> None:
        """Compute where the CoM would be by the drawn URDF, if the nodes use a calibrated one."""
        self.view.points.pop('uncalibrated', None)
        calibrated, positions = self.calibrated, self.view.positions
        if (calibrated is not None and positions is not None and 'com' in self.view.points
                and calibrated.joint_names == self._model.joint_names):
            # The published CoM without the change by the calibration, since the joints may be a
            # few milliseconds newer than the base.
            moved = (calibrated.state(positions).com_in_base
                     - self._model.state(positions).com_in_base)
            self.view.points['uncalibrated'] = (
                self.view.points['com'] - self.view.base.rotation @ moved)

    # -- estimates

    def _on_com(self, stamp_ns: int, point: Array) -> None:
        self._com_stamp = stamp_ns
        self._keep(POINT, 'com', stamp_ns, point)

    def _on_truth(self, stamp_ns: int, point: Array) -> None:
        self._truths[stamp_ns] = point.copy()
        while len(self._truths) > _KEPT:
            self._truths.popitem(last=False)
        self._set(POINT, truth=self._truths[stamp_ns])

    def _match_truth(self) -> None:
        """Use the truth of the estimate's instant, or else the last one."""
        if 'truth' in self.view.points:
            last = next(reversed(self._truths.values()))
            self.view.points['truth'] = self._truths.get(self._com_stamp, last)

    def _keep(self, part: str, name: str, stamp_ns: int, values: Array, *_: Array) -> None:
        self._set(part, **{name: values.copy()})

    def _on_links(self, stamp_ns: int, values: Array) -> None:
        self._set('', link_coms=values.reshape(-1, 3).copy())

    # -- torso and efforts

    def _on_tendons(self, message: JointState) -> None:
        order = np.argsort(message.name)
        lengths, tensions = (
            np.array(values)[order] if len(values) == len(order) else np.empty(0)
            for values in (message.position, message.effort))
        self._set('', tendon_lengths=lengths, tensions=tensions)

    # -- status

    def add_diagnostics(self, message: DiagnosticArray) -> None:
        """Keep the lines of the nodes of this robot."""
        namespace = self._polled.node.get_namespace()
        for status in filter(lambda s: is_in_namespace(s, namespace), message.status):
            line = HealthLine(int.from_bytes(status.level, 'little'), status.name[:_LONGEST_NAME],
                              status.message[:_LONGEST_TEXT])
            self._health.pop(line.name, None)
            self._health[line.name] = line, self._now
            if line.name == f'{self._prefix}zmp_monitor: stability':
                self._use_level(status, 'level')
        while len(self._health) > _MOST_LINES:
            del self._health[next(iter(self._health))]

    def _on_event(self, message: DiagnosticArray) -> None:
        """Use a change of the level of stability at once; diagnostics repeat it each second."""
        for status in message.status:
            self._use_level(status, 'now')

    def _use_level(self, status: DiagnosticStatus, key: str) -> None:
        level = next((value.value for value in status.values if value.key == key), '')
        self._texts['level'] = level[:_LONGEST_NAME], self._now

    def _on_demo_text(self, name: str, message: String) -> None:
        self._demo[name] = message.data

    def _on_text(self, name: str, message: String) -> None:
        self._texts[name] = message.data, self._now
