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
"""From the simulated robot's sensors to stability reports, as the nodes do it, without ROS."""

from dataclasses import replace

from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.leg_odometry import LegOdometry
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import numpy as np


class Pipeline:
    """
    A simulated robot, what estimates its stability, and the truth.

    Attributes
    ----------
    plant, model
        The robot as it is and as it is believed to be.
    monitor
        The stability monitor under test.
    wrenches, base
        Of the last instant: of the feet in their sole frames, and where the base is.

    """

    def __init__(self, robot='biped', options=PlantOptions(tendons=False), settings=None,
                 aggregation=None):
        self.model = RobotModel.load(robot)
        model = self.model
        self.plant = Plant(model.config, model.urdf, options, model.joint_names,
                           model.link_names)
        self.ik = PostureIk(model, model.posture())
        self._aggregation = WrenchAggregation(
            model, aggregation or AggregationSettings(low_pass_cutoff=0.0))
        self._base = LegOdometry(model, model.config.imu.frame)
        self.monitor = StabilityMonitor(model, settings or MonitorSettings())
        self._contacts = FootContacts(
            ContactThresholds(engage_dwell=0.0), model.mass * self.monitor.settings.gravity,
            len(model.soles.names))
        self._actuated = model.joint_index(self.plant.actuated_joint_names)
        self._imu = list(model.config.imus).index(
            next(n for n, i in model.config.imus.items() if i is model.config.imu))
        self.observation = self.plant.observation

    def command(self, offset=(0.0, 0.0, 0.0)):
        """Return a command that moves the hips over the feet."""
        hold = self.plant.hold()
        positions = self.ik.positions(Pose.translation(offset))[self._actuated]
        return replace(hold, position=positions)

    def step(self, command=None):
        """Let time pass; return the report and the truth of the same instant."""
        observed = self.observation = self.plant.step(command)
        ns = round(1e9 * observed.time)
        state = self.model.state(observed.joint_positions, observed.joint_velocities)
        R_world_imu = rotation_from_quaternion(observed.imu_quaternions[self._imu])
        self._aggregation.set_state(state, R_world_imu)
        for i, wrench in enumerate(observed.wrenches):
            self._aggregation.update(i, wrench, ns)
        self.wrenches = wrenches = np.array([
            body.wrench for body in self._aggregation.bodies if body.detector is not None])
        contacts = self._contacts.update(wrenches[:, 2].tolist(), ns)
        self.base = self._base.update(
            state, R_world_imu, contacts, loads=wrenches[:, 2].tolist())
        gyro = observed.angular_velocities[self._imu]
        report = self.monitor.update(LocatedState(
            ns, state.in_world(self.base, self._base.sole_placements), self._base.stance, True,
            lambda state: self._base.twist(state, gyro), wrenches=wrenches.tolist()))
        return report, self.plant.truth()

    def run(self, seconds, offset_at=lambda t: (0.0, 0.0, 0.0)):
        """Step for a while with the hips at `offset_at(t)`; yield (t, report, truth)."""
        for i in range(round(seconds / self.plant.dt)):
            t = i * self.plant.dt
            yield (t, *self.step(self.command(offset_at(t))))
