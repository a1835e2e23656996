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
A hand-written biped with one of everything that URDFs hold, placed off every axis.

The base is not the root, the IMU sits on a moving link, a sole needs an origin of its own; there
are continuous, prismatic, mimicking (also negative, chained and with offset), locked and passive
joints, and masses behind fixed joints.
"""

from biped_com_ros.core.model.config import robot_config_from_mapping
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


def _link(name, mass=0.0, com='0 0 0'):
    if not mass:
        return f'<link name="{name}"/>'
    return (f'<link name="{name}"><inertial><origin xyz="{com}" rpy="0.1 0.2 0.3"/>'
            f'<mass value="{mass}"/><inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0.001" '
            f'ixz="0" iyz="0.002"/></inertial><visual><geometry>'
            f'<mesh filename="package://nowhere/{name}.stl"/></geometry></visual></link>')


def _joint(name, kind, parent, child, xyz='0 0 0', rpy='0 0 0', axis='0 0 1', extra=''):
    limit = ('<limit lower="-2" upper="2" effort="9" velocity="9"/>'
             if kind in ('revolute', 'prismatic') else '')
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{limit}{extra}</joint>')


def _leg(side, y):
    return ''.join((
        _link(f'{side}_thigh', 1.5, '0.01 0.02 -0.15'), _link(f'{side}_shin', 1.0, '0 0.01 -0.1'),
        _link(f'{side}_foot', 0.5, '0.04 0 -0.03'), _link(f'{side}_sole'),
        _joint(f'{side}_hip_roll', 'revolute', 'trunk', f'{side}_thigh',
               f'0.02 {y} -0.1', '0.05 0 0', '1 0 0'),
        _joint(f'{side}_knee', 'revolute', f'{side}_thigh', f'{side}_shin',
               '0 0 -0.3', '0 0.1 0', '0 1 0'),
        _joint(f'{side}_ankle', 'revolute', f'{side}_shin', f'{side}_foot',
               '0 0 -0.3', '0 0 0.02', '0 1 0'),
        _joint(f'{side}_sole_fixed', 'fixed', f'{side}_foot', f'{side}_sole',
               '0.03 0 -0.05', '0 0 0.1')))


URDF = ''.join((
    '<?xml version="1.0"?><robot name="small">', _link('trunk', 5.0, '0.03 -0.02 0.1'),
    _link('base_link'), _joint('base_fixed', 'fixed', 'trunk', 'base_link',
                               '0.1 -0.05 0.2', '0.2 -0.1 0.4'),
    _link('backpack', 2.0, '0 0.01 0.02'),
    _joint('backpack_fixed', 'fixed', 'trunk', 'backpack', '-0.15 0 0.2', '0 0.3 0'),
    _leg('left', 0.1), _leg('right', -0.1),
    _link('chest', 4.0, '0.01 0 0.15'), _link('imu_link'), _link('head', 0.7, '0.02 0 0.05'),
    _joint('waist', 'continuous', 'trunk', 'chest', '0 0.01 0.3', '0.1 0 0', '0 0.6 0.8'),
    _joint('imu_fixed', 'fixed', 'chest', 'imu_link', '0.05 0.02 0.1', '0.3 -0.2 1.1'),
    _joint('neck', 'prismatic', 'chest', 'head', '0 0 0.3', '0 0.2 0', '0 0 1'),
    _link('finger_a', 0.1, '0.02 0 0'), _link('finger_b', 0.1, '0.02 0 0'),
    _link('finger_c', 0.05, '0.01 0 0'),
    _joint('grip', 'revolute', 'chest', 'finger_a', '0.1 -0.2 0.2', '0 0 0', '0 0 1'),
    _joint('grip_mimic', 'revolute', 'chest', 'finger_b', '0.1 -0.25 0.2', '0 0 0', '0 1 0',
           '<mimic joint="grip" multiplier="-0.5" offset="0.2"/>'),
    _joint('grip_chain', 'revolute', 'finger_b', 'finger_c', '0.04 0 0', '0 0 0', '0 0 1',
           '<mimic joint="grip_mimic" multiplier="2" offset="0.1"/>'),
    _link('door', 0.3, '0 0.05 0'), _link('latch', 0.1, '0 0.02 0'),
    _joint('hatch', 'revolute', 'backpack', 'door', '-0.05 0 0', '0 0 0', '0 0 1'),
    _joint('hatch_mimic', 'revolute', 'door', 'latch', '0 0.1 0', '0 0 0', '0 0 1',
           '<mimic joint="hatch" multiplier="3"/>'),
    '<transmission name="t"><joint name="waist"><hardwareInterface>x</hardwareInterface></joint>'
    '</transmission><gazebo><joint name="loop" type="ball"/></gazebo></robot>'))

MIMICS = {'grip_mimic': ('grip', -0.5, 0.2), 'grip_chain': ('grip', -1.0, 0.5)}
LOCKED = {'hatch': 0.3}
LOCKED_MIMICS = {'hatch_mimic': 0.9}

MAPPING = {
    'name': 'small', 'base_link': 'base_link',
    'feet': {
        'left': {'sole': 'left_sole', 'polygon': [[0.1, -0.05], [0.1, 0.05], [-0.1, 0.0]]},
        'right': {'sole': 'right_foot', 'sole_origin': [0.02, 0.01, -0.06],
                  'sole_rpy': [0.1, -0.2, 0.3],
                  'polygon': [[0.1, -0.05], [0.1, 0.05], [-0.1, 0.0]]}},
    'imus': {'base': {'frame': 'imu_link', 'topic': 'imu'}},
    'groups': {'left_leg': ['left_hip_roll', 'left_knee', 'left_ankle']},
    'postures': {'stand': {'left_knee': 0.3, 'right_knee': -0.2}},
    'passive_joints': ['neck'], 'locked_joints': LOCKED,
}


def small_config(**changes):
    """Return the configuration of the small robot, with top-level keys replaced."""
    return robot_config_from_mapping({**MAPPING, **changes}, 'small.yaml')


def small_robot(**changes):
    """Return the model of the small robot."""
    return RobotModel(small_config(**changes), URDF)


def random_joints(model, rng, size=0.8):
    """Return random positions and velocities for all measured joints."""
    count = len(model.joint_names)
    return rng.uniform(-size, size, count), rng.uniform(-2.0, 2.0, count)


def random_rotation(rng):
    """Return a rotation (3, 3) that is far from the identity."""
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return rotation * np.sign(np.linalg.det(rotation))
