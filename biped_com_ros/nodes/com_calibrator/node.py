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
Finds out where the masses really are: takes poses, measures at rest, corrects the URDF.

Poses are planned (safe, and those that tell most), sent one after the other as trajectories to a
joint trajectory controller, and captured as soon as the robot is still there. Without `move` the
next pose is only shown, and a person brings the robot to it or to any other. The first poses are
hoisted ones: with its feet in the air a robot tells the mass below the sensors of its feet; a
person lifts it, or `hoist_service` does. Every capture is on disk before the next movement;
started again, the node goes on with the poses that are left. When
all are taken, or on ``~/solve``, it writes ``calibrated.urdf``, ``calibration.json`` and
``report.html`` into its directory.

======================= ========================================== ===========================
topic or service        type                                       what
======================= ========================================== ===========================
joint_states            sensor_msgs/JointState                     in; efforts are torques, or
                                                                   currents (motor_constants)
each wrench sensor      geometry_msgs/WrenchStamped                in
wrench_aggregator/      std_msgs/Float64MultiArray                 in, latched; what a tare found
offsets                                                            is taken off the readings
imu (robot's YAML)      sensor_msgs/Imu                            in
joint_trajectory_       trajectory_msgs/JointTrajectory            out; with `move`
controller/
joint_trajectory
`hoist_service`         std_srvs/SetBool                           called; true lifts the robot
~/target                sensor_msgs/JointState                     out, latched; the next pose
~/progress              std_msgs/String                            out, latched
robot_description       std_msgs/String                            out, latched, on ~/publish
~/start                 std_srvs/Trigger                           begin, without `autostart`
~/capture ~/skip        std_srvs/Trigger                           capture now; leave a pose out
~/solve ~/reset         std_srvs/Trigger                           estimate now; begin anew
~/publish               std_srvs/Trigger                           publish the calibrated URDF
======================= ========================================== ===========================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
import sys
import tempfile
from typing import Any

from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.core.identification.captures import Capture, MotorConstants, SensorNoise
from biped_com_ros.core.identification.estimator import Estimator, Identification
from biped_com_ros.core.identification.geometry import missing_inertials
from biped_com_ros.core.identification.pose_design import (
    DesignOptions, PlannedPose, PoseDesign, PoseDesigner)
from biped_com_ros.core.identification.prior import Prior, prior_of
from biped_com_ros.core.identification.progress import InformationSoFar
from biped_com_ros.core.identification.report import calibrated_urdf, summary, write_results
from biped_com_ros.core.identification.stillness import (
    carried_share, StillnessOptions, CaptureWindow)
from biped_com_ros.core.identification.storage import CaptureLog, make_directory
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.pose_driver import PoseDriver
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import InputWatch
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.topics.inputs import ImuInput, JointStateInput, WrenchInput
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.services import trigger_service
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

PERIOD = 0.1
AXES = ('force.x', 'force.y', 'force.z', 'torque.x', 'torque.y', 'torque.z')
REMIND_AFTER = 5.0  # s after arrival, before it is said what keeps a pose from being captured
HANGS, STANDS = 0.3, 0.8  # shares of the weight on the feet, below and above which it does
HOIST_SETTLES = 3.0  # s that it must have been so
LOOK_AGAIN = 1.0  # s until a robot that is nowhere known is looked for again


@dataclass(frozen=True)
class ComCalibratorParameters(RobotNodeParameters):
    """Parameters of `com_calibrator`."""

    directory: str = parameter(
        '~/.ros/biped_com_calibration', 'Where captures and results are written, in a directory '
        'of the name of the robot; empty: in a temporary one', read_only=True)
    autostart: bool = parameter(
        True, 'Whether to begin at once; else on ~/start', read_only=True)
    poses: int = parameter(40, 'How many poses are planned', '', 2, 500, read_only=True)
    candidates: int = parameter(
        300, 'From how many safe random ones they are chosen', '', 2, 10000, read_only=True)
    hoisted: int = parameter(
        2, 'How many of them are taken with the robot hoisted, its feet in the air: only these '
        "tell the mass below the feet's sensors", '', 0, 20, read_only=True)
    hoist_service: str = parameter(
        '', 'std_srvs/SetBool that lifts the robot (true) and lets it down (false), as '
        'simulator/hang does; empty: a person does', read_only=True)
    lift_feet: bool = parameter(
        False, 'Whether poses on one foot are planned too; they tell more, and the robot must '
        'keep its balance on one foot under joint position control', read_only=True)
    margin: float = parameter(
        0.02, 'Distance kept from the edge of the support polygon', 'm', 0.001, 0.5,
        read_only=True)
    spread: float = parameter(
        1.2, 'How far joints outside of the legs go from posture stand', 'rad', 0.05, 3.2,
        read_only=True)
    lean: float = parameter(
        0.2, 'How far the base leans and turns', 'rad', 0.0, 0.8, read_only=True)
    torso_bend: float = parameter(
        0.0, 'How far a tendon torso bends; its virtual joints are sent with the others. 0: it '
        'stays straight', 'rad', 0.0, 0.5, read_only=True)
    torque_share: float = parameter(
        0.8, "Largest share of a motor's torque that is used", '', 0.05, 1.0, read_only=True)
    seed: int = parameter(0, 'Of the random poses', '', 0, 1000000, read_only=True)
    move: bool = parameter(
        False, 'Whether to send trajectories; else a person moves the robot', read_only=True)
    automatic: bool = parameter(
        True, 'Whether to capture by itself once the robot is still in the next pose, and to '
        'solve after the last one')
    trajectory_topic: str = parameter(
        'joint_trajectory_controller/joint_trajectory', 'Where trajectories go', read_only=True)
    joint_speed: float = parameter(
        0.4, 'Largest speed of a joint between poses', 'rad/s', 0.01, 5.0, read_only=True)
    ramp: float = parameter(
        1.0, 'Time from rest to that speed and back: the longer, the less the robot sways', 's',
        0.05, 20.0, read_only=True)
    arrival_tolerance: float = parameter(
        0.3, 'Largest distance of a joint from the pose for the robot to have arrived', 'rad',
        0.001, 1.0, read_only=True)
    patience: float = parameter(
        60.0, 'How long a pose is waited for, after the robot went there by itself, before it is '
        'left out; 0: for ever', 's', 0.0, 3600.0)
    still_duration: float = parameter(
        1.0, 'How long the robot has to be still, and what is averaged', 's', 0.1, 30.0,
        read_only=True)
    still_joint_range: float = parameter(
        0.004, 'Largest movement of a joint meanwhile', 'rad', 1e-6, 0.1, read_only=True)
    still_force_deviation: float = parameter(
        6.0, 'Largest standard deviation of a force meanwhile', 'N', 0.001, 1000.0,
        read_only=True)
    motor_joints: list[str] = parameter(
        [''], 'Joints whose efforts are motor currents', read_only=True)
    motor_constants: list[float] = parameter(
        [0.0], 'Their torque per current, K, in the order of motor_joints [N m/A]',
        read_only=True)
    force_noise: float = parameter(
        0.5, 'Standard deviation of forces over and above what varies in a capture', 'N', 1e-4,
        100.0, read_only=True)
    moment_noise: float = parameter(
        0.02, 'The same of moments', 'N m', 1e-5, 10.0, read_only=True)
    torque_noise: float = parameter(
        0.3, 'The same of joint torques, friction included', 'N m', 1e-4, 100.0, read_only=True)
    encoder_noise: float = parameter(
        0.00175, 'The same of joint positions', 'rad', 0.0, 0.1, read_only=True)
    tilt_noise: float = parameter(
        0.0009, 'The same of the direction of gravity', 'rad', 0.0, 0.1, read_only=True)
    force_bias: float = parameter(
        0.5, 'Standard deviation of constant offsets of forces, which are estimated along; 0: '
        'there are none', 'N', 0.0, 100.0, read_only=True)
    moment_bias: float = parameter(
        0.02, 'The same of moments', 'N m', 0.0, 10.0, read_only=True)
    encoder_offset: float = parameter(
        0.002, 'The same of joint positions', 'rad', 0.0, 0.1, read_only=True)
    tilt_bias: float = parameter(
        0.003, 'The same of the direction of gravity', 'rad', 0.0, 0.1, read_only=True)
    noise_at_mass: float = parameter(
        0.0, 'Mass of the robot for which noise and bias of forces, moments and torques are '
        'given: for another one they grow with its mass. 0: they are those of this one', 'kg',
        0.0, 1000.0, read_only=True)
    offsets_topic: str = parameter(
        'wrench_aggregator/offsets', 'Where the offsets of the wrench sensors are told; they are '
        'taken off. Empty: nowhere', read_only=True)
    com_sigma: float = parameter(
        0.015, 'How far a centre of mass may be from the URDF, per axis', 'm', 1e-4, 0.5,
        read_only=True)
    sensor_timeout: float = parameter(
        0.5, 'Silence after which an input counts as dead', 's', 0.001, 60.0, read_only=True)


class ComCalibrator(Node):
    """Poses out, captures in, a corrected URDF at the end, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('com_calibrator', **node_kwargs)
        self.params = declare_parameters(self, ComCalibratorParameters, self._change)
        self.diagnostics = Diagnostics(self)
        self.state = 'starting'
        self.found: Identification | None = None
        self.queue: list[PlannedPose] = []
        self._source = RobotSource(self, self.params, self._start, self.diagnostics)

    # -- set-up

    def _start(self, model: RobotModel) -> None:
        params = self.params
        heavier = model.mass / params.noise_at_mass if params.noise_at_mass else 1.0
        self.model, self._noise = model, _noise(params, heavier)
        self._prior, self._motors = Prior(com_sigma=params.com_sigma), _motors(params)
        top = params.directory or tempfile.mkdtemp(prefix='biped_com_calibration.')
        self.directory = Path(top).expanduser() / model.config.name
        make_directory(self.directory)
        self.log = CaptureLog(self.directory / 'captures.json', model)
        self.estimator = Estimator(model, self._noise, self._prior)
        self._so_far = InformationSoFar(self.estimator, self.log.captures)
        self.watch = CaptureWindow(model, model.config.imu.frame, StillnessOptions(
            duration=params.still_duration, joint_range=params.still_joint_range,
            force_deviation=params.still_force_deviation))
        self._stopped, self._planning, self._results = False, '', ''
        self._job: BackgroundTask[Any] = BackgroundTask()
        self._last: PlannedPose | None = None
        self._throttle = Throttle(REMIND_AFTER)
        self._legs: list[np.ndarray | bool] = []
        self._detour: list[np.ndarray | bool] = []
        self._left_out: set[str] = set()
        self._arrives_at = self._supported_since = 0.0
        self._make_outputs()
        self._make_inputs(model)
        self.diagnostics.add('calibration', self._report)
        if missing := missing_inertials(model):
            self.get_logger().warning(missing)
        if self.log.captures:
            self.get_logger().info(
                f'{len(self.log.captures)} captures found in {self.log.path}: going on')
        if params.autostart:
            self._plan()
        else:
            self.state = 'idle'
            self._tell('ready: ~/start begins')
        self.create_timer(PERIOD, self._tick)

    def _make_outputs(self) -> None:
        params, model = self.params, self.model
        torso = model.config.torso.joints if model.config.torso and params.torso_bend else ()
        self._driver = PoseDriver(self, model, params.trajectory_topic,
                                  (*model.actuated_joint_names, *torso), params.hoist_service)
        self._target = self.create_publisher(JointState, '~/target', LATCHED)
        self._progress = self.create_publisher(String, '~/progress', LATCHED)
        self._description: Any = None
        for name, action in (('start', self._begin), ('capture', self._capture_now),
                             ('skip', self._skip), ('solve', self._solve_now),
                             ('reset', self._reset), ('publish', self._publish_urdf)):
            trigger_service(self, f'~/{name}', action)

    def _make_inputs(self, model: RobotModel) -> None:
        options: dict[str, Any] = {
            'diagnostics': self.diagnostics, 'timeout': self.params.sensor_timeout,
            'max_age': self.params.max_stamp_age}
        sensors = model.config.wrench_sensors
        self._wrenches = np.full((len(sensors), 6), np.nan)
        self._up = np.full(3, np.nan)
        self._positions = np.full(len(model.joint_names), np.nan)
        self._sensors = [
            WrenchInput(self, sensor.topic, sensor.frame, partial(self._on_wrench, i, sensor.sign),
                        **options) for i, sensor in enumerate(sensors.values())]
        imu = model.config.imu
        self._imu = ImuInput(self, imu.topic, imu.frame, self._on_imu, **options)
        self.joints = JointStateInput(self, model.joint_names, self._on_joints,
                                      limits=model.credible_positions, **options)
        self._offsets = np.zeros_like(self._wrenches)
        if self.params.offsets_topic:
            self.create_subscription(
                Float64MultiArray, self.params.offsets_topic, self._on_offsets, LATCHED)
        named = {f'wrench of {name}': one for name, one in zip(sensors, self._sensors)}
        self._waiting = InputWatch(self, {'joint states': self.joints, 'imu': self._imu, **named})

    def _change(self, params: ComCalibratorParameters) -> None:
        self.params = params

    # -- measurements

    def _on_wrench(self, index: int, sign: float, stamp_ns: int, wrench: np.ndarray) -> None:
        self._wrenches[index] = sign * wrench - self._offsets[index]

    def _on_offsets(self, message: Float64MultiArray) -> None:
        """Take the offsets of a tare: six per sensor, the labels tell of which."""
        offsets = np.zeros_like(self._offsets)
        sensors = tuple(self.model.config.wrench_sensors)
        for dimension, value in zip(message.layout.dim, message.data):
            sensor, _, axis = dimension.label.partition('/')
            if sensor in sensors and axis in AXES and np.isfinite(value):
                offsets[sensors.index(sensor), AXES.index(axis)] = value
        self._offsets = offsets
        self.watch.clear()

    def _on_imu(self, stamp_ns: int, quaternion: np.ndarray, *_: Any) -> None:
        self._up = rotation_from_quaternion(quaternion)[2]

    def _on_joints(self, stamp_ns: int, positions: np.ndarray, velocities: np.ndarray,
                   efforts: np.ndarray) -> None:
        self._positions = positions.copy()
        if self._imu.stale() or any(sensor.stale() for sensor in self._sensors):
            self.watch.clear()
            return
        self.watch.add(
            1e-9 * stamp_ns, positions, self._torques(efforts), self._wrenches, self._up)

    def _torques(self, efforts: np.ndarray) -> np.ndarray:
        if not self.joints.efforts_measured:
            return np.full(len(efforts), np.nan)
        if not self._motors.torque_per_ampere:
            return efforts
        driven = self._motors.torques(self.model, efforts)
        return np.where(np.isfinite(driven), driven, efforts)

    # -- poses

    def _plan(self) -> None:
        self.state = 'planning'
        self._tell('planning poses')
        self._job.start(self._design, self._planned)

    def _design(self) -> tuple[PoseDesigner, PoseDesign]:
        """Run in the background, on a model of its own: Pinocchio's memory is not shared."""
        params = self.params
        fixed = () if params.torso_bend else tuple(self.model.config.passive_joints)
        options = DesignOptions(
            count=params.poses, candidates=max(params.candidates, params.poses),
            hoisted=min(params.hoisted, params.poses - 1),
            double_support=0.34 if params.lift_feet else 1.0, margin=params.margin,
            torque_share=params.torque_share, spread=params.spread, lean=params.lean,
            torso_bend=params.torso_bend, fixed_joints=fixed, seed=params.seed)
        model = RobotModel(self.model.config, self.model.urdf)
        designer = PoseDesigner(model, options, self._noise, self._prior)
        return designer, designer.design(self._on_planning)

    def _on_planning(self, what: str, done: int, total: int) -> None:
        """Keep how far planning is; give it up when the node ends."""
        if self._stopped:
            raise InputError('the node ends')
        self._planning = f'planning poses: {what}, {done} of {total}'

    def _planned(self, result: tuple[PoseDesigner, PoseDesign]) -> None:
        self._designer, self._plan_made = result
        self.get_logger().info(self._plan_made.summary())
        self._locate()

    def _locate(self) -> None:
        """Find out where the robot is, and how the poses that are left are reached from there."""
        self.state = 'locating'
        unknown = self.params.move and not np.isfinite(self._positions).all()
        if unknown or self._now() < self._arrives_at:
            return  # the next tick tries again
        done = {capture.name for capture in self.log.captures} | self._left_out
        self._job.start(partial(self._ways, done, self._positions.copy()), self._located)

    def _ways(self, done: set[str], positions: np.ndarray) -> tuple[
            str, PlannedPose | None, list[PlannedPose]]:
        designer, plan, here, lost = self._designer, self._plan_made, None, ''
        if self.params.move:
            try:
                here = designer.whereabouts(plan, positions, self.params.arrival_tolerance)
            except InputError as error:
                lost = str(error)
        return lost, here, designer.remaining(plan, done)

    def _located(self, result: tuple[str, PlannedPose | None, list[PlannedPose]]) -> None:
        lost, self._last, self.queue = result
        if lost and self.queue:
            self._arrives_at = self._now() + LOOK_AGAIN
            self._remind(lost)
            return
        self._detour = [self._designer.way_home(self._last)] if self._last else []
        self._next()

    def _next(self) -> None:
        if not self.queue:
            self._finish()
            return
        pose = self.queue[0]
        target = JointState(name=list(self.model.joint_names), position=pose.positions.tolist())
        target.header.stamp = self.get_clock().now().to_msg()
        self._target.publish(target)
        self._legs = self._legs_to(pose)
        self.state = 'going'
        self._tell(self._words(pose))

    def _words(self, pose: PlannedPose) -> str:
        return f'{pose.name} of {self.params.poses}, {pose.support}'

    def _legs_to(self, pose: PlannedPose) -> list[np.ndarray | bool]:
        """Return paths to go and, in their place, whether to hoist or to let down."""
        before, self._detour = self._detour, []
        change = bool(pose.standing) == self._hangs
        if change and self._last is not None and not before:
            before = [self._designer.way_home(self._last)]
        hoist = [not pose.standing] if change else []
        return [*before, *hoist, pose.path] if self.params.move else list(hoist)

    def _tick(self) -> None:
        """Look ten times per second whether there is something to do."""
        if self._end_job():
            return
        if self.state == 'planning' and self._planning:
            self._remind(self._planning, 'planning')
        elif self.state == 'locating' and not self._job.is_busy:
            self._locate()
        elif self.state in ('going', 'returning'):
            self._go_on()
        elif self.state == 'waiting' and self.params.automatic and self.queue:
            self._capture_if_there()

    def _end_job(self) -> bool:
        """Use what was done in the background, if there is something; return whether."""
        try:
            return self._job.poll()
        except BipedComError as error:
            # An estimate that was asked for too early does not keep from going on.
            if not self.queue:
                self.state = 'failed'
            self._tell(str(error), error=True)
            return True

    def _go_on(self) -> None:
        """Begin the next leg when the one before is done; after the last, wait for stillness."""
        if self._now() < self._arrives_at:
            return
        if not self._legs:
            self.watch.clear()
            ended = 'solved' if self.found is not None else 'done'
            returned = self.state == 'returning' and self.params.move
            self.state = 'waiting' if self.state == 'going' else ended
            if returned:
                self._tell('the robot is back in posture stand')
            return
        leg = self._legs[0]
        if isinstance(leg, bool):
            if not self._hoist(leg):
                return
        elif self._driver.problem or not np.isfinite(self._positions).all():
            self._remind(self._driver.problem or 'no joint states yet')
            return
        else:
            params = self.params
            self._arrives_at = self._now() + self._driver.send(
                self._positions, leg, params.joint_speed, params.ramp)
        self._legs.pop(0)

    def _hoist(self, up: bool) -> bool:
        """Have the robot lifted or let down; return whether it hangs or stands for a while."""
        problem, share = self._driver.hoist(up), self._carried()
        reached = share < HANGS if up else share > STANDS
        if not reached:
            self._supported_since = self._now()
            if problem or not self.params.hoist_service:
                self._remind(problem or self._hoist_words(up))
            return False
        if self._now() < self._supported_since + HOIST_SETTLES:
            return False
        self._driver.hoisted()
        return True

    def _hoist_words(self, up: bool) -> str:
        if not up:
            return 'put the robot down on its feet'
        plan = self._plan_made
        return ('hoist the robot, its feet free in the air: only so its feet are weighed, and the '
                f'centre of mass gets known to {1e3 * plan.com_std:.2f} instead of '
                f'{1e3 * plan.grounded_com_std:.2f} mm; ~/skip leaves a hoisted pose out')

    def _carried(self) -> float:
        return carried_share(self.model, self._wrenches)

    @property
    def _hangs(self) -> bool:
        return self._carried() < HANGS

    def _remind(self, words: str, about: str = '') -> None:
        """Say what is waited for, now and then."""
        if self._throttle(about or words):
            self._tell(words)

    def _capture_if_there(self) -> None:
        pose = self.queue[0]
        problem = self._away_from(pose) or self._wrong_support(pose) or self.watch.problem
        if problem:
            self._bear(pose, problem)
            return
        try:
            self._take(self.watch.capture(pose.name))
        except InputError as error:
            self._remind(str(error))
            return
        self._last = self.queue.pop(0)
        self._next()

    def _bear(self, pose: PlannedPose, problem: str) -> None:
        """Say what keeps a pose from being captured; in the end go on without it."""
        waited, patience = self._now() - self._arrives_at, self.params.patience
        if not self.params.move:
            return  # a person needs time to get there; a robot that sent itself does not
        if 0.0 < patience < waited and not self._job.is_busy:
            self._tell(f'{pose.name} is left out after {patience:g} s: {problem}', error=True)
            self._leave_out()
        elif waited > REMIND_AFTER:
            self._remind(f'{pose.name}: {problem}')

    def _wrong_support(self, pose: PlannedPose) -> str:
        if bool(pose.standing) != self._hangs:
            return ''
        share = f'the feet carry {100.0 * self._carried():.0f} % of the weight'
        return f'{share}: put the robot down' if pose.standing else f'{share}: hoist the robot'

    def _away_from(self, pose: PlannedPose) -> str:
        """Return which joint is not where the pose wants it, or ''."""
        names, tolerance = self.model.actuated_joint_names, self.params.arrival_tolerance
        away = np.abs(self._positions - pose.positions)[self.model.joint_index(names)]
        worst = int(np.argmax(away))
        if away[worst] < tolerance:
            return ''
        return (f"joint '{names[worst]}' is {away[worst]:.3f} rad away (allowed "
                f'{tolerance}); ~/capture takes the posture as it is, ~/skip the next one')

    def _take(self, capture: Capture) -> None:
        self.log.append(capture)
        self._so_far.add(capture)
        self.watch.clear()

    def _finish(self) -> None:
        if self.params.move and self._last is not None:
            self._legs = [self._designer.way_home(self._last)]
        if self._hangs:
            self._legs.append(False)
        self.state = 'returning'
        self._tell('all poses are taken')
        if not self.params.automatic:
            return
        try:
            self._solve_now()
        except InputError as error:
            self._tell(str(error), error=True)

    # -- services

    def _begin(self) -> str:
        if self.state != 'idle':
            raise InputError(f'begun already: {self.state}')
        self._plan()
        return f'results go to {self.directory}'

    def _capture_now(self) -> str:
        pose = self.queue[0].name if self.queue else ''
        there = bool(pose) and not self._away_from(self.queue[0])
        name = pose if there else f'by hand {len(self.log.captures) + 1}'
        self._take(self.watch.capture(name))
        if there:
            self._last = self.queue.pop(0)
            self._next()
        else:  # what is told has how many there are
            self._tell(self._words(self.queue[0]) if self.queue else f'captured {name}')
        return f'captured {name}; {self._so_far.describe()}'

    def _skip(self) -> str:
        self._require_idle()
        if not self.queue:
            raise InputError('there is no pose to skip')
        return f'{self._leave_out()} is left out'

    def _leave_out(self) -> str:
        skipped = self.queue.pop(0)
        self._left_out.add(skipped.name)
        self._driver.hoisted()
        if self.params.move:
            self._locate()  # the way on begins where the robot is
        else:
            self._next()
        return skipped.name

    def _reset(self) -> str:
        self._require_idle()
        kept = self.log.clear()
        self._left_out.clear()
        self._so_far = InformationSoFar(self.estimator, [])
        self.found, self._results = None, ''
        self._plan()
        return f'begun anew; what was captured is in {kept}' if kept else 'begun anew'

    def _solve_now(self) -> str:
        captures = list(self.log.captures)
        self._require_idle()
        if len(captures) < 2:
            raise InputError(f'{len(captures)} captures are too few: at least 2, better 40')
        self._results = ''
        self._job.start(partial(self._solve, captures), self._solved)
        return f'solving with {len(captures)} captures; results go to {self.directory}'

    def _solve(self, captures: list[Capture]) -> tuple[Identification, dict[str, Path]]:
        model = RobotModel(self.model.config, self.model.urdf)
        prior = prior_of(model, self.params.com_sigma)
        found = Estimator(model, self._noise, prior).solve(captures)
        return found, write_results(self.directory, model, captures, found)

    def _solved(self, result: tuple[Identification, dict[str, Path]]) -> None:
        found, paths = result
        self.found = found
        for line in summary(found).splitlines():
            self.get_logger().info(line)
        self._results = f'solved: {paths["urdf"]}, {paths["report"]}'
        self._tell(self._results)
        if not self.queue and self.state == 'done':
            self.state = 'solved'

    def _publish_urdf(self) -> str:
        if self.found is None:
            raise InputError('there is no estimate yet: call ~/solve first')
        if self._description is None:
            self._description = self.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=calibrated_urdf(self.model, self.found)))
        return f'published on {self._description.topic_name}'

    def _require_idle(self) -> None:
        if self._job.is_busy:
            raise InputError(f'busy: {self.state}; try again in a moment')

    # -- words

    def _tell(self, words: str, error: bool = False) -> None:
        if self._results and not self.queue and words != self._results:
            # What is said of the way back does not hide where the results are.
            words = f'{self._results}; {words}'
        text = (f'{words} ({len(self.log.captures)} of {self.params.poses} captured, '
                f'{self._so_far.describe()})')
        if text != getattr(self, '_told', ''):
            self._told = text
            if error:  # rclpy wants a place of its own for each severity
                self.get_logger().error(text)
            else:
                self.get_logger().info(text)
            self._progress.publish(String(data=text))

    def _now(self) -> float:
        return float(self.get_clock().now().nanoseconds) * 1e-9

    def _report(self) -> Report:
        values = {'captured': len(self.log.captures), 'poses': self.params.poses,
                  'state': self.state, 'predicted': self._so_far.describe(),
                  'still': self.watch.problem or 'yes'}
        if self._waiting.missing:
            return ERROR, f'waiting for {", ".join(self._waiting.missing)}', values
        if self.state == 'failed':
            return ERROR, self._told, values
        if self.state == 'waiting' and self.watch.problem:
            return WARN, f'not still: {self.watch.problem}', values
        return OK, f'{self.state}, {len(self.log.captures)} of {self.params.poses}', values

    def destroy_node(self) -> None:
        """Stop working in the background, too."""
        self._stopped = True
        super().destroy_node()


def _noise(p: ComCalibratorParameters, heavier: float) -> SensorNoise:
    return SensorNoise(
        force=heavier * p.force_noise, moment=heavier * p.moment_noise,
        torque=heavier * p.torque_noise, encoder=p.encoder_noise, tilt=p.tilt_noise, encoder_offset=p.encoder_offset,
        force_bias=heavier * p.force_bias, moment_bias=heavier * p.moment_bias,
        tilt_bias=p.tilt_bias)


def _motors(p: ComCalibratorParameters) -> MotorConstants:
    joints = [name for name in p.motor_joints if name]
    constants = list(p.motor_constants)[:len(joints)] if joints else []
    if len(constants) != len(joints):
        raise ConfigurationError(
            f'motor_constants must be {len(joints)} numbers, one per joint of motor_joints')
    return MotorConstants(dict(zip(joints, constants)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ComCalibrator, argv)


if __name__ == '__main__':
    sys.exit(main())
