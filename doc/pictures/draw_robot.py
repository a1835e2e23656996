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
Draws the picture of the demo robot in doc/concepts.rst from the simulation that the demo runs.

::

    MUJOCO_GL=egl python doc/pictures/draw_robot.py

White balls are the links' true centres of mass, green the true one of the whole, red the estimate
by the URDF; arrows are the ground's forces.
"""

from __future__ import annotations

from pathlib import Path
import struct
from typing import Any
import zlib

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.keyframes import Keyframe, KeyframeMotion
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
from biped_com_ros.viz import palette
import mujoco
import numpy as np

WIDTH, HEIGHT = 320, 520
MOMENTS = {'stands': 0.9, 'sways': 3.0, 'lifts its arms': 5.99}
LINK = (1.0, 1.0, 1.0, 0.55)  # not the grey of the page, which cannot be seen in the grey robot
TRUE, URDF, FORCE = ((*(value / 255.0 for value in colour), alpha) for colour, alpha in (
    (palette.MARKS['truth'].colour, 1.0), (palette.MARKS['com'].colour, 1.0),
    (palette.FORCE, 0.9)))  # MuJoCo draws last what is a little transparent: before the legs
SHINE = 0.4  # of the balls, whose colours are those of the page also in the shade
NEWTON = 0.011  # m of arrow


def main() -> None:
    """Simulate, draw at some moments side by side, write the file."""
    model = RobotModel.load('biped')
    plant = Plant(model.config, model.urdf, PlantOptions(
        seed=1, com_sigma=0.012, mass_sigma=0.15, world=WorldOptions(visuals=True)),
        joint_names=model.joint_names, link_names=model.link_names)
    motion = KeyframeMotion(model, [
        Keyframe(1.0), Keyframe(2.0, offset=(0.0, 0.028, 0.0)), Keyframe(3.0, 'arms_up')])
    pictures = []
    command, motors = plant.hold(), model.joint_index(plant.actuated_joint_names)
    for step in range(int(max(MOMENTS.values()) / plant.dt) + 1):
        time = step * plant.dt
        command.position[:] = motion.positions(min(time, motion.duration - 1e-6))[motors]
        plant.step(command)
        if any(abs(time - moment) < 0.5 * plant.dt for moment in MOMENTS.values()):
            pictures.append(draw(plant, model))
    write_png(Path(__file__).parent / 'robot.png', np.concatenate(pictures, axis=1))


def camera_at(plant: Plant, distance: float, azimuth: float, size: tuple[int, int]
              ) -> mujoco.MjvCamera:
    """Return a camera of width and height, in pixels, that looks at the robot; light it."""
    plant.model.vis.global_.offwidth, plant.model.vis.global_.offheight = size
    plant.model.vis.headlight.ambient[:], plant.model.vis.headlight.diffuse[:] = 0.35, 0.45
    plant.model.vis.map.znear, plant.model.vis.map.zfar = 0.1, 20.0
    plant.model.geom('floor').rgba[:] = 0.36, 0.42, 0.5, 1.0
    camera = mujoco.MjvCamera()
    camera.lookat[:] = 0.0, 0.0, 0.43
    camera.distance, camera.azimuth, camera.elevation = distance, azimuth, -28.0
    return camera


def draw(plant: Plant, model: RobotModel) -> np.ndarray:
    """Return the image (HEIGHT, WIDTH, 3) of the present state."""
    camera = camera_at(plant, 1.4, 150.0, (WIDTH, HEIGHT))
    with mujoco.Renderer(plant.model, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(plant.data, camera)
        for geom in renderer.scene.geoms[:renderer.scene.ngeom]:
            if geom.type != mujoco.mjtGeom.mjGEOM_PLANE:
                geom.rgba[3] = 0.3
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        mark(renderer.scene, plant, model)
        return np.array(renderer.render())


def mark(scene: Any, plant: Plant, model: RobotModel) -> None:
    """Add centres of mass and ground forces."""
    truth, observed = plant.truth(), plant.observation
    for com, mass in zip(truth.link_coms, plant.link_masses):
        ball(scene, com, 0.012 * np.cbrt(mass / 0.3), LINK)
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    estimate = model.state(observed.joint_positions).in_world(base).com_in_world
    ball(scene, truth.com, 0.02, TRUE)
    ball(scene, estimate, 0.02, URDF)
    for foot, wrench in enumerate(truth.sole_wrenches):
        sole = plant.data.site(f'sole/{tuple(model.config.feet)[foot]}')
        force = sole.xmat.reshape(3, 3) @ wrench[:3]
        arrow(scene, sole.xpos, sole.xpos + NEWTON * force, FORCE)


def ball(scene: Any, position: Any, radius: float, colour: Any) -> None:
    """Add a ball to the scene."""
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(geom, mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, radius),
                        np.asarray(position, dtype=float), np.eye(3).ravel(),
                        np.array(colour, dtype=np.float32))
    geom.emission = SHINE
    scene.ngeom += 1


def arrow(scene: Any, start: Any, end: Any, colour: Any) -> None:
    """Add an arrow to the scene."""
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(geom, mujoco.mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3),
                        np.eye(3).ravel(), np.array(colour, dtype=np.float32))
    mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_ARROW, 0.008,
                         np.asarray(start, dtype=float), np.asarray(end, dtype=float))
    scene.ngeom += 1


def write_png(path: Path, image: np.ndarray) -> None:
    """Write an image (h, w, 3) of bytes."""
    height, width, _ = image.shape
    rows = b''.join(b'\0' + row.tobytes() for row in image)

    def chunk(name: bytes, data: bytes) -> bytes:
        return (struct.pack('>I', len(data)) + name + data
                + struct.pack('>I', zlib.crc32(name + data)))

    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(
        b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
        + chunk(b'IDAT', zlib.compress(rows, 9)) + chunk(b'IEND', b''))


if __name__ == '__main__':
    main()
