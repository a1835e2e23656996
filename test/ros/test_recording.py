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
"""What the simulator records calibrates the robot without it."""

from contextlib import closing
import json

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.offline.calibrate import main as calibrate
import pytest
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from support.messages import parameters
from support.ros_rig import NodeRig
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

HIDDEN = 0.3  # kg in the torso
TARGETS = ({'l_shoulder_pitch': -1.0, 'r_elbow': -1.2},
           {'l_elbow': -1.3, 'r_shoulder_roll': -0.9},
           {'l_shoulder_roll': 0.9, 'r_shoulder_pitch': 0.8})
MOVE, REST = 1.0, 1.5  # s


def record(rig):
    """Move a simulated robot from pose to pose, and record its sensors."""
    states = rig.collect(JointState, 'joint_states')
    mover = rig.publisher(
        JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
    for target in TARGETS:
        point = JointTrajectoryPoint(positions=list(target.values()))
        point.time_from_start = Duration(seconds=MOVE).to_msg()
        mover.publish(JointTrajectory(joint_names=list(target), points=[point]))
        end = seconds(states[-1]) + MOVE + REST if states else MOVE + REST
        rig.until(lambda end=end: states and seconds(states[-1]) > end, 30.0, 'rest')


def seconds(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


EXACT = [f'--{name}=0' for name in (
    'force-bias', 'moment-bias', 'force-drift', 'moment-drift', 'wrench-gain', 'cross-talk',
    'sensor-shift', 'sensor-turn', 'torque-bias', 'torque-gain', 'friction')]
"""Those of the simulator's sensors; the defaults are those of a robot as heavy as a person."""


def test_a_recording_is_calibrated(tmp_path):
    bag, out = tmp_path / 'bag', tmp_path / 'out'
    with closing(NodeRig(node=Simulator(parameter_overrides=parameters(
            record=str(bag), rate=100.0, real_time_factor=0.0,
            hidden_errors=[f'torso {HIDDEN} 0 0 0'])))) as rig:
        record(rig)
    assert {path.suffix for path in bag.iterdir()} == {'.mcap', '.yaml'}
    assert calibrate([str(bag), '--robot=biped', f'--out={out}', '--still=0.5',
                      '--force-noise=0.05', '--torque-noise=0.01', *EXACT]) == 0
    found = json.loads((out / 'calibration.json').read_text())
    assert len(json.loads((out / 'captures.json').read_text())['captures']) >= len(TARGETS)
    truth = RobotModel.load('biped').mass + HIDDEN
    assert found['mass'] == pytest.approx(truth, abs=0.1 * HIDDEN)
