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
Draw ``gazebo_step.png``: the robot steps forward in DART, Gazebo's engine, under effort control.

::

    MUJOCO_GL=egl PYTHONPATH=test python doc/pictures/draw_gazebo.py

DART has no renderer in Python: its positions are drawn by MuJoCo's.
"""

from __future__ import annotations

from pathlib import Path
import tempfile
from typing import Any

from biped_com_ros.core.legs.gait import single_step
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
from draw_robot import camera_at, write_png
import mujoco
import numpy as np
from support.gazebo_files import gazebo_files
from support.gazebo_twin import Compensated, GazeboTwin, held

ROBOT, LENGTH = 'biped', 0.05  # m
SHARES = 0.0, 0.3, 0.45, 0.6, 1.0  # of the gait's duration
WIDTH, HEIGHT = 260, 440


def main() -> None:
    """Simulate the step up to each moment, and draw them side by side."""
    with tempfile.TemporaryDirectory() as directory:
        twin = GazeboTwin(gazebo_files(Path(directory), ROBOT))
    compensation = Compensated(ROBOT)
    model, gait = compensation.model, single_step(compensation.model, LENGTH)
    plant = Plant(model.config, model.urdf, PlantOptions(world=WorldOptions(visuals=True)),
                  joint_names=model.joint_names, link_names=model.link_names)
    trajectory, pictures = compensation.along(twin, gait, 100.0), []
    for share in SHARES:
        twin.put_down(trajectory.positions[0])
        twin.run(held(twin, trajectory.positions[0], trajectory.efforts[0]), 3.0)
        twin.run(trajectory, share * gait.duration)
        pictures.append(draw(plant, model, twin))
    print(f'largest tilt {twin.largest_tilt:.2f} deg, saturated {twin.saturated}')
    write_png(Path(__file__).parent / 'gazebo_step.png', np.concatenate(pictures, axis=1))


def draw(plant: Plant, model: RobotModel, twin: Any) -> np.ndarray:
    """Return the image (HEIGHT, WIDTH, 3) of the twin's present state."""
    root, joints = twin.skeleton.getBodyNode(0).getWorldTransform(), twin.joints
    plant.data.qpos[:3] = root.translation()
    mujoco.mju_mat2Quat(plant.data.qpos[3:7], root.rotation().ravel())
    for name, position in zip(joints, twin.positions):
        if name in model.config.torso.joints:  # MuJoCo's is a chain of vertebrae, and straight
            continue
        plant.data.joint(f'joint/{name}').qpos[0] = position
    mujoco.mj_forward(plant.model, plant.data)
    camera = camera_at(plant, 1.3, 125.0, (WIDTH, HEIGHT))
    with mujoco.Renderer(plant.model, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(plant.data, camera)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        return np.array(renderer.render())


if __name__ == '__main__':
    main()
