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
Centres of mass from Pinocchio's kinematics against MuJoCo's, on random poses.

Nothing is shared between the two but the URDF text and the robot's YAML: the simulator reads the
URDF itself.
"""

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import mujoco
import numpy as np
import pytest
from support.small_robot import random_rotation

ROBOTS = ('biped', 'sabian', 'talos', 'g1', 'icub')
TOLERANCE = 1e-6  # m


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    """Return the same robot in Pinocchio and in MuJoCo (with stiff virtual torso joints)."""
    model = RobotModel.load(request.param)
    plant = Plant(model.config, model.urdf, PlantOptions(tendons=False),
                  model.joint_names, model.link_names)
    return model, plant


def random_joints(model, plant, rng):
    """Joint positions within the URDF's limits, of joints without any within half a turn."""
    limits = parse(model.urdf).joints
    joints = [limits[name] for name in plant.joint_names]
    lower = np.clip([joint.lower for joint in joints], -np.pi, None)
    upper = np.clip([joint.upper for joint in joints], None, np.pi)
    return rng.uniform(lower, upper)


def put(plant, joints, base):
    """Set MuJoCo's configuration so that the base frame is at `base`; run its kinematics."""
    plant.reset(dict(zip(plant.joint_names, joints.tolist())))
    data = plant.data
    data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    mujoco.mj_kinematics(plant.model, data)
    site = data.site('base')
    root_base = Pose(site.xmat.reshape(3, 3).copy(), site.xpos.copy())
    root = base @ root_base.inverse()
    x, y, z, w = root.quaternion
    data.qpos[:7] = *root.position, w, x, y, z
    mujoco.mj_kinematics(plant.model, data)
    mujoco.mj_comPos(plant.model, data)


@pytest.mark.parametrize('seed', range(20))
def test_com_and_link_coms(robot, seed):
    model, plant = robot
    rng = np.random.default_rng(seed)
    joints = random_joints(model, plant, rng)
    base = Pose(random_rotation(rng), rng.uniform(-2.0, 2.0, 3))
    put(plant, joints, base)
    state = model.state(joints).in_world(base)
    np.testing.assert_allclose(state.com_in_world, plant.data.subtree_com[0], atol=TOLERANCE)
    np.testing.assert_allclose(state.link_coms_in_world, plant.truth().link_coms, atol=TOLERANCE)


def test_masses(robot):
    model, plant = robot
    assert plant.link_names == model.link_names
    np.testing.assert_allclose(plant.link_masses, model.link_masses, rtol=1e-12)
    assert plant.mass == pytest.approx(model.mass, abs=1e-6)
    assert plant.joint_names == model.joint_names
    if model.config.torso is None:
        assert plant.actuated_joint_names == model.actuated_joint_names


def test_sole_and_sensor_frames(robot):
    model, plant = robot
    rng = np.random.default_rng(99)
    joints = random_joints(model, plant, rng)
    base = Pose(random_rotation(rng), rng.uniform(-2.0, 2.0, 3))
    put(plant, joints, base)
    state = model.state(joints).in_world(base)
    for name, placement in zip(model.config.feet, state.placements_in_base(model.soles)):
        sole = base @ Pose(placement[:3].T, placement[3])
        check(plant, f'sole/{name}', sole)
    for kind, sensors in (('wrench', model.config.wrench_sensors), ('imu', model.config.imus)):
        for name, sensor in sensors.items():
            check(plant, f'{kind}/{name}', state.base @ state.pose_in_base(sensor.frame))


def check(plant, site, pose):
    found = plant.data.site(site)
    np.testing.assert_allclose(found.xpos, pose.position, atol=TOLERANCE)
    np.testing.assert_allclose(found.xmat.reshape(3, 3), pose.rotation, atol=1e-6)
