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
"""Derived gains, compared with gravity's torques in MuJoCo in any posture."""

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.gains import SAG_ANYWHERE
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import mujoco
import numpy as np
import pytest
from support.sim_robot import CONFIG, URDF


def plant_of(name):
    try:
        model = RobotModel.load(name)
    except BipedComError as error:
        pytest.skip(str(error))
    return Plant(model.config, model.urdf, PlantOptions(), link_names=model.link_names)


@pytest.mark.parametrize('name', ['biped', *[
    pytest.param(name, marks=pytest.mark.thorough) for name in ('g1', 'talos', 'icub')]])
def test_no_joint_gives_way_to_its_limb_in_any_posture(name):
    """Of all postures and orientations of the base, though gains are those of one of them."""
    plant, rng = plant_of(name), np.random.default_rng(1)
    model, data = plant.model, mujoco.MjData(plant.model)
    arms = [joint for group, joints in plant.config.groups.items() if 'leg' not in group
            for joint in joints]
    names = [joint for joint in plant.actuated_joint_names if joint in arms]
    ids = [model.joint(f'joint/{joint}').id for joint in names]
    revolute = [i for i in ids if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE]
    stiffness = np.array([plant.gains.stiffness[plant.actuated_joint_names.index(joint)]
                          for joint, i in zip(names, ids) if i in revolute])
    worst = np.zeros(len(revolute))
    for _ in range(400):
        mujoco.mj_resetData(model, data)
        quaternion = rng.normal(size=4)
        data.qpos[3:7] = quaternion / np.linalg.norm(quaternion)
        for i in revolute:
            data.qpos[model.jnt_qposadr[i]] = rng.uniform(*model.jnt_range[i])
        mujoco.mj_forward(model, data)
        worst = np.maximum(worst, np.abs(data.qfrc_bias[model.jnt_dofadr[revolute]]) / stiffness)
    assert worst.max() > 0.1 * SAG_ANYWHERE, 'gravity does not act'
    assert worst.max() < 1.05 * SAG_ANYWHERE, names[int(np.argmax(worst))]


def test_a_light_limb_whose_joint_is_damped_gets_where_it_is_sent():
    """A finger of some grams: gravity needs hardly any stiffness, its damping does."""
    damped = URDF.replace('<joint name="grip" type="revolute">', (
        '<joint name="grip" type="revolute"><dynamics damping="0.5"/>'))
    plant = Plant(CONFIG, damped, PlantOptions(tendons=False))
    grip = plant.actuated_joint_names.index('grip')
    assert 0.5 / plant.gains.stiffness[grip] < 0.1  # time constant, s
