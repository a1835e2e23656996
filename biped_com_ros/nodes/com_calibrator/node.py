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
Identifies masses and centres of mass from poses at rest, and writes a corrected URDF.

Poses are planned (safe, and with the most information), sent one after the other as trajectories
to a joint trajectory controller, and captured as soon as the robot is still there. Without `move`
the next pose is only published, and an operator brings the robot to it or to any other. The first
poses are hoisted ones: only with its feet in the air can the mass below the feet's sensors be
measured; an operator lifts the robot, or `hoist_service` does. Every capture is on disk before
the next movement; a restarted node resumes with the poses that are left. After the last pose, or
on ``~/solve``, the node writes ``calibrated.urdf``, ``calibration.json`` and ``report.html`` into
its directory.

======================= ========================================== ===========================
topic or service        type                                       what
======================= ========================================== ===========================
joint_states            sensor_msgs/JointState                     in; efforts are torques, or
                                                                   currents (motor_constants)
each wrench sensor      geometry_msgs/WrenchStamped                in
wrench_aggregator/      std_msgs/Float64MultiArray                 in, latched; offsets of a tare,
offsets                                                            subtracted from the wrenches
imu (robot's YAML)      sensor_msgs/Imu                            in
joint_trajectory_       trajectory_msgs/JointTrajectory            out; with `move`
controller/
joint_trajectory
`hoist_service`         std_srvs/SetBool                           called; true lifts the robot
~/target                sensor_msgs/JointState                     out, latched; the next pose
~/progress              std_msgs/String                            out, latched
robot_description       std_msgs/String                            out, latched, on ~/publish
calibrated_description  std_msgs/String                            the same, for running nodes
~/start                 std_srvs/Trigger                           begin, without `autostart`
~/capture ~/skip        std_srvs/Trigger                           capture now; skip a pose
~/solve ~/reset         std_srvs/Trigger                           estimate now; begin again
~/two_pose              std_srvs/Trigger                           total CoM from the last two
                                                                   captures that lean
~/poses                 std_srvs/Trigger                           what the captures determine of
                                                                   the first moments
~/publish               std_srvs/Trigger                           publish the calibrated URDF
======================= ========================================== ===========================
"""

from __future__ import annotations

from collections.abc import Sequence
import sys
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.identification.estimation.prior import missing_inertials
from biped_com_ros.core.identification.poses.pose_design import PlannedPose
from biped_com_ros.core.identification.poses.transfer import HoistMove, travel
from biped_com_ros.core.identification.session import (
    CalibrationSession, SessionOptions, SessionState)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.inputs import CalibratorInputs
from biped_com_ros.nodes.com_calibrator.parameters import (
    ComCalibratorParameters, results_directory, sensor_noise, session_options)
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import waiting_for
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.node.robot_source import CALIBRATED_TOPIC
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.services import trigger_service
from biped_com_ros.ros.topics.stamp import now_ns
import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NEAR = 0.1
"""A path begins at the last command if all joints are this near to it, rad."""

_SLOW_SPEED = 0.03
"""Speed of the last move of each joint into a pose, rad/s."""
SLOW_RAMP = 1.0
"""Least time to brake at the end of a slow path, s: inertia must not overcome friction."""


class PoseDriver:
    """
    The `RobotDriver` of a calibration session.

    Parameters
    ----------
    node
        The rclpy node.
    model
        The robot.
    topic
        Of a joint trajectory controller.
    joints
        Names of the joints that it controls.
    hoist
        Name of a std_srvs/SetBool that lifts the robot (true) and lowers it; '' for none.
    speed, ramp
        See :func:`travel`.

    """

    def __init__(self, node: Node, model: RobotModel, topic: str, joints: Sequence[str], *,
                 hoist: str, speed: float, ramp: float) -> None:
        self._joints = tuple(joints)
        self.set_speeds(speed, ramp)
        self._index = model.joint_index(self._joints)
        self._offsets = model.joint_offsets[self._index]
        self._trajectory = node.create_publisher(JointTrajectory, topic, 10)
        self._hoist = node.create_client(SetBool, hoist) if hoist else None
        self._request: Any = None  # the future of the hoist's response
        self._commanded: Array | None = None

    def set_speeds(self, speed: float, ramp: float) -> None:
        """Use other speeds from the next path on."""
        self._speed, self._ramp = speed, ramp

    @property
    def has_hoist(self) -> bool:
        """Whether a service lifts and lowers the robot."""
        return self._hoist is not None

    @property
    def problem(self) -> str:
        """Why trajectories would not be executed, or ''."""
        if self._trajectory.get_subscription_count():
            return ''
        return (f"nothing subscribes to '{self._trajectory.topic_name}': start a joint trajectory "
                'controller, or set the parameter move to false')

    def send(self, positions: Array, path: Array, slowly: bool = False) -> float:
        """
        Send a path; the trajectory begins at the last command where the joints are near to it.

        Parameters
        ----------
        positions
            Measured, of all joints, (n,), rad.
        path
            Positions to go through, (steps, n), rad.
        slowly
            Whether to go so slowly that it is friction, not inertia, with which the joints come
            to rest.

        Returns
        -------
        float
            Its duration, s.

        """
        start = positions[self._index]
        if self._commanded is not None and np.abs(self._commanded - start).max() < NEAR:
            # Joints deflect under their load: to begin where they are would be a jerk.
            start = self._commanded
        speed, ramp = self._speed, self._ramp
        if slowly:
            speed, ramp = min(_SLOW_SPEED, speed), max(SLOW_RAMP, ramp)
        way = travel(start, path[:, self._index], speed, ramp)
        message = JointTrajectory(joint_names=list(self._joints))
        for time, q, v in zip(way.times, way.positions, way.velocities):
            message.points.append(JointTrajectoryPoint(
                # A drive controls what its encoder measures.
                positions=(q + self._offsets).tolist(), velocities=v.tolist(),
                time_from_start=Duration(seconds=float(time)).to_msg()))
        self._trajectory.publish(message)
        self._commanded = way.positions[-1]
        return way.duration

    def request_hoist(self, move: HoistMove) -> str:
        """Request a move once, until `end_hoist`; return why it is not done, or ''."""
        if self._hoist is None:
            return ''
        if self._request is None:
            if not self._hoist.service_is_ready():
                return (f"the service '{self._hoist.srv_name}' is not available: {move.value} the "
                        'robot by hand, or start the node that provides it')
            self._request = self._hoist.call_async(SetBool.Request(data=move is HoistMove.LIFT))
        if not self._request.done():
            return ''
        response = self._request.result()
        return '' if response.success else f'the hoist failed: {response.message}'

    def end_hoist(self) -> None:
        """Consider the requested move done."""
        self._request = None


PERIOD = 0.1  # s between updates of the session


class ComCalibrator(RobotNode[ComCalibratorParameters]):
    """Inputs, outputs and services of a session of `core.identification.session`."""

    session: CalibrationSession | None = None

    takes_inertials = False  # its prior is the URDF with which the poses were captured

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('com_calibrator', ComCalibratorParameters, **node_kwargs)

    def build(self, model: RobotModel) -> None:
        """Make the session and what connects it to ROS; begin with `autostart`."""
        params = self.params
        # Its own, since that of the other nodes of a process takes over what is calibrated.
        self.model = model = with_virtual_sensors(RobotModel(model.config, model.urdf))
        torso = (model.config.torso.joints
                 if model.config.torso and params.session.design.torso_bend else ())
        driver = PoseDriver(
            self, model, params.trajectory_topic, (*model.actuated_joint_names, *torso),
            hoist=params.hoist_service, speed=params.joint_speed, ramp=params.ramp)
        self._target = self.create_publisher(JointState, '~/target', LATCHED)
        self._progress = self.create_publisher(String, '~/progress', LATCHED)
        self._description: Any = None
        self.session = session = CalibrationSession(
            model, session_options(params, model, results_directory(params, model)),
            sensor_noise(params, model.mass), driver, BackgroundTask(), self)
        self._driver = driver
        self.inputs = CalibratorInputs(self, session)
        for name, action in (
                ('start', session.start), ('capture', session.capture), ('skip', session.skip),
                ('solve', session.solve), ('reset', session.reset),
                ('two_pose', session.two_pose), ('poses', session.poses),
                ('publish', self._publish_urdf)):
            trigger_service(self, f'~/{name}', action)
        self.diagnostics.add('calibration', self._report)
        if missing := missing_inertials(model):
            self.get_logger().warning(missing)
        if params.autostart:
            session.start()
        else:
            self.progress(f"ready: call {self.resolve_service_name('~/start')} to begin")
        self.create_timer(PERIOD, lambda: session.update(1e-9 * now_ns(self)))

    def check_parameters(self, params: ComCalibratorParameters) -> None:
        """Refuse other noise or poses while they are computed with."""
        assert self.session is not None
        self.session.check_options(*self._options(params))

    def apply_parameters(self, params: ComCalibratorParameters) -> None:
        """Use what to plan from the next plan on, all else at once."""
        assert self.session is not None
        self.session.use_options(*self._options(params))
        self._driver.set_speeds(params.joint_speed, params.ramp)
        self.inputs.set_timeout(params.sensor_timeout)

    def _options(self, params: ComCalibratorParameters) -> tuple[SessionOptions, SensorNoise]:
        assert self.session is not None
        options = session_options(params, self.model, self.session.options.directory)
        return options, sensor_noise(params, self.model.mass)

    # -- reports of the session

    def info(self, text: str) -> None:
        """Log a result."""
        self.get_logger().info(text)

    def progress(self, text: str, is_error: bool = False) -> None:
        """Log and publish what the session is doing."""
        if is_error:  # rclpy requires one place in the code per severity
            self.get_logger().error(text)
        else:
            self.get_logger().info(text)
        self._progress.publish(String(data=text))

    def target(self, pose: PlannedPose) -> None:
        """Publish the next pose."""
        target = JointState(name=list(self.model.joint_names), position=pose.positions.tolist())
        target.header.stamp = self.get_clock().now().to_msg()
        self._target.publish(target)

    # -- services and diagnostics

    def _publish_urdf(self) -> str:
        assert self.session is not None
        urdf = self.session.calibrated_urdf()
        if self._description is None:
            self._description = [self.create_publisher(String, topic, LATCHED)
                                 for topic in ('robot_description', CALIBRATED_TOPIC)]
        for publisher in self._description:
            publisher.publish(String(data=urdf))
        return f'published on {", ".join(publisher.topic_name for publisher in self._description)}'

    def _report(self) -> Report:
        assert self.session is not None
        session, values = self.session, self.session.describe()
        if self.missing_inputs:
            return ERROR, waiting_for(self.missing_inputs), values
        if session.state is SessionState.FAILED:
            return ERROR, session.status, values
        if session.waits_for:
            return WARN, session.waits_for, values
        return OK, f'{session.state.value}, {values["captured"]} of {values["poses"]}', values

    def destroy_node(self) -> None:
        """Stop planning, too."""
        if self.session is not None:
            self.session.stop()
        super().destroy_node()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(ComCalibrator, argv)


if __name__ == '__main__':
    sys.exit(main())
