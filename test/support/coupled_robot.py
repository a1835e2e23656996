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
A robot with coupled joints in legs, arms and torso, and its twin without couplings.

In the twin every joint has a motor of its own. If its joints are where the coupled ones are, the
two are the same body; a motor of the coupled one has to hold what the twin's motors hold together.
"""

from dataclasses import replace
from xml.etree import ElementTree

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np

#: Leader, multiplier and offset of each follower; one is in the other arm, one in a chain.
MIMICS = {
    'l_ankle_pitch': ('l_knee', -0.6, 0.01), 'r_ankle_pitch': ('r_knee', -0.6, 0.01),
    'r_hip_yaw': ('l_hip_yaw', -1.0, 0.0), 'torso_pitch': ('torso_roll', 0.5, 0.02),
    'l_elbow': ('l_shoulder_pitch', 0.7, -0.2), 'neck_yaw': ('l_elbow', -1.5, 0.1),
    'r_shoulder_roll': ('l_shoulder_roll', -1.0, 0.0)}
#: The same with the leaders of leaders.
FOLLOWED = {**MIMICS, 'neck_yaw': ('l_shoulder_pitch', -1.05, 0.4)}


def _with_motors(config):
    """Return the configuration with a rigid torso, so that all joints are motors."""
    return replace(config, torso=None, passive_joints=(), postures={})


def twins(**changes):
    """Return the coupled robot and its twin; `changes` of the coupled one's configuration."""
    config = _with_motors(load_robot_config('biped'))
    urdf = load_urdf(config)
    root = ElementTree.fromstring(urdf)
    for follower, (leader, gain, offset) in MIMICS.items():
        joint = root.find(f"./joint[@name='{follower}']")
        ElementTree.SubElement(joint, 'mimic', joint=leader, multiplier=repr(gain),
                               offset=repr(offset))
        joint.find('limit').attrib.update(lower='-3.0', upper='3.0')
    groups = {name: tuple(joint for joint in joints if joint not in MIMICS)
              for name, joints in config.groups.items()}
    groups = {name: joints for name, joints in groups.items() if joints}
    coupled = RobotModel(replace(config, groups=groups, **changes),
                         ElementTree.tostring(root, encoding='unicode'))
    return coupled, RobotModel(replace(config, **changes), urdf)


def gains(coupled, twin):
    """Return G with ``twin velocities = G coupled velocities``, and the twin at zeros, (n,)."""
    matrix = np.zeros((len(twin.joint_names), len(coupled.joint_names)))
    offsets = np.zeros(len(twin.joint_names))
    for row, name in enumerate(twin.joint_names):
        leader, gain, offsets[row] = FOLLOWED.get(name, (name, 1.0, 0.0))
        matrix[row, coupled.joint_names.index(leader)] = gain
    return matrix, offsets
