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
"""What the simulated ground gives a moving robot is what its momentum needs."""

from biped_com_ros.core.legs.keyframes import Keyframe, KeyframeMotion
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.plant import Plant
import numpy as np
import pytest

GRAVITY = 9.81


@pytest.mark.parametrize('robot', ['biped', pytest.param('talos', marks=pytest.mark.thorough)])
def test_ground_force_is_weight_and_acceleration_while_the_knees_bend(robot):
    model = RobotModel.load(robot)
    plant = Plant(model.config, model.urdf, joint_names=model.joint_names)
    motion = KeyframeMotion(model, [Keyframe(1.5, offset=(0.0, 0.0, -0.03))])
    motors = model.joint_index(plant.actuated_joint_names)
    command = plant.hold()
    forces, velocities = [], []
    for step in range(int(motion.duration / plant.dt)):
        command.position[:] = motion.positions(step * plant.dt)[motors]
        plant.step(command)
        truth = plant.truth()
        forces.append(truth.sole_wrenches[:, 2].sum())
        velocities.append(truth.com_velocity[2])
    weight = GRAVITY * plant.mass
    acceleration = np.gradient(velocities, plant.dt)
    error = np.array(forces) - weight - plant.mass * acceleration
    blocks = error[:600].reshape(6, 100).mean(axis=1)
    assert np.ptp(velocities) > 0.02, 'it did not bend its knees'
    np.testing.assert_allclose(blocks / weight, 0.0, atol=2e-3)
