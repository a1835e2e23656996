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
"""A simulator of a small robot, and a peer that has its sensors and diagnostics."""

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.node import Simulator
from sensor_msgs.msg import JointState
from support.messages import parameters
from support.ros_rig import NodeRig
from support.sim_robot import CONFIG, SIMULATOR, URDF


def simulator(**values):
    return Simulator(parameter_overrides=parameters(**{**SIMULATOR, **values}))


class SimulatorRig(NodeRig):
    """A simulator and a peer that has its sensors and diagnostics."""

    step_time = 0.001

    def __init__(self, **parameters):
        super().__init__(node=simulator(**parameters))
        self.joints = self.collect(JointState, 'joint_states')
        self.record_statuses()

    def position(self, joint):
        return self.joints[-1].position[self.joints[-1].name.index(joint)]

    def hold(self):
        """Positions that keep the posture, in the order of commands."""
        return [CONFIG.postures['stand'].get(name, 0.0)
                for name in RobotModel(CONFIG, URDF).actuated_joint_names]

    def health(self, line):
        """Return (level, message) of the next report of a line."""
        self.statuses.clear()
        self.until(lambda: line in self.statuses, what=f'diagnostics of {line}')
        return self.statuses[line]
