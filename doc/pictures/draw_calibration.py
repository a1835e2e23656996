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
Draws the moving picture of the README, and records the scene that the documentation plays.

::

    MUJOCO_GL=egl python doc/pictures/draw_calibration.py

Calibrates the sample recording (``doc/sample``), and moves the robot that it was recorded of in
MuJoCo. ``calibration.webp`` compares the centre of mass by the URDF, and by the calibrated one,
with the true one, at the same instants. ``calibration.viser`` is the scene of the page, first with
the URDF, then with the calibrated one. Both are written beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
import io
from pathlib import Path
import sys
import tempfile

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.keyframes import Keyframe, KeyframeMotion
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.support import support_polygon
from biped_com_ros.offline.calibrate import main as calibrate
from biped_com_ros.sim.interface import PlantOptions, Truth
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
from biped_com_ros.viz.palette import MARKS
from biped_com_ros.viz.scene import Scene
from biped_com_ros.viz.server import open_server
from biped_com_ros.viz.view import ContactView, View
from draw_robot import ball
import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / 'sample'
sys.path.insert(0, str(SAMPLE))
from record import HIDDEN, ROBOT, SEED, true_urdf  # noqa: E402, I100, I202

FRAMES = 8.0  # per s
SIZE = (320, 400)  # pixels of each of two robots side by side
MAGNIFIED, BALL = 20.0, 0.05  # distance of the balls: millimetres could not be seen; radius, m
BEFORE = 0.5  # share of the distance from the eye at which they are drawn
LINE, PAPER, INK = 26, (255, 255, 255), (50, 56, 66)  # height of a line, pixels


@dataclass(frozen=True)
class Moment:
    """The robot at one instant: joint positions (n,), base in the world, and the truth."""

    positions: Array
    base: Pose
    truth: Truth

    def error(self, model: RobotModel) -> Array:
        """Return the CoM by a model minus the true one, along the ground, (3,), m."""
        by_model = model.state(self.positions).in_world(self.base).com_in_world
        return np.asarray(by_model - self.truth.com) * (1.0, 1.0, 0.0)


def main() -> None:
    """Calibrate, simulate, draw, write the files."""
    model = RobotModel.load(ROBOT)
    plant = Plant(model.config, model.urdf, PlantOptions(
        seed=SEED, world=WorldOptions(visuals=True),
        com_sigma=HIDDEN['hidden_com_sigma'], mass_sigma=HIDDEN['hidden_mass_sigma']),
        joint_names=model.joint_names, link_names=model.link_names)
    truth = RobotModel(model.config, true_urdf(model))
    if abs(truth.mass - plant.mass) > 1e-6:
        raise SystemExit('the simulated robot is not the one that was recorded')
    models = {'by the URDF': model, 'by the calibrated URDF': calibrate_sample(model)}
    renderer, camera = scene_of(plant)
    moments: list[Moment] = []
    frames = []
    for moment in simulate(plant, model):
        moments.append(moment)
        frames.append(Image.fromarray(np.concatenate(
            [draw(renderer, camera, plant, name, moment.error(by))
             for name, by in models.items()], axis=1)))
    frames[0].save(HERE / 'calibration.webp', save_all=True, append_images=frames[1:],
                   duration=round(1000.0 / FRAMES), loop=0, quality=40, method=4)
    (HERE / 'calibration.viser').write_bytes(record(moments, *models.values()))


def calibrate_sample(model: RobotModel) -> RobotModel:
    """Return the robot as `calibrate` finds it in the sample."""
    with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()):
        if calibrate([str(SAMPLE / f'{ROBOT}.mcap'), '--robot', ROBOT, '--out', out]):
            raise SystemExit('the sample cannot be calibrated')
        return RobotModel(model.config, (Path(out) / 'calibrated.urdf').read_text())


def simulate(plant: Plant, model: RobotModel) -> Iterator[Moment]:
    """Move the robot; yield ``FRAMES`` moments per second."""
    motion = KeyframeMotion(model, [
        Keyframe(0.5), Keyframe(1.1, offset=(0.0, 0.05, 0.0)),
        Keyframe(1.7, offset=(0.0, -0.05, 0.0)), Keyframe(1.1), Keyframe(0.6),
        Keyframe(1.7, 'arms_up'), Keyframe(0.7, 'arms_up', (0.012, 0.0, 0.0)),
        Keyframe(0.7, 'arms_up'), Keyframe(1.4)])
    command, motors = plant.hold(), model.joint_index(plant.actuated_joint_names)
    every = round(1.0 / FRAMES / plant.dt)
    for step in range(int(motion.duration / plant.dt)):
        if step % every == 0:
            truth = deepcopy(plant.truth())  # parts of it are views of the simulator's
            yield Moment(plant.observation.joint_positions.copy(), Pose.from_quaternion(
                truth.base_quaternion, truth.base_position), truth)
        command.position[:] = motion.positions(step * plant.dt)[motors]
        plant.step(command)


# -------------------------------------------------------------------------------- the picture

def scene_of(plant: Plant) -> tuple[mujoco.Renderer, mujoco.MjvCamera]:
    """Return what draws the robot, and from where."""
    width, height = SIZE[0], SIZE[1] - 3 * LINE
    visual = plant.model.vis
    visual.global_.offwidth, visual.global_.offheight = width, height
    visual.headlight.ambient[:], visual.headlight.diffuse[:] = 0.55, 0.45
    visual.map.znear, visual.map.zfar = 0.05, 30.0
    floor = plant.model.geom('floor')
    floor.matid, floor.rgba[:] = -1, (0.93, 0.94, 0.96, 1.0)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = 0.0, 0.0, 0.91
    camera.distance, camera.azimuth, camera.elevation = 2.15, 145.0, -28.0
    return mujoco.Renderer(plant.model, height, width), camera


def draw(renderer: mujoco.Renderer, camera: mujoco.MjvCamera, plant: Plant, name: str,
         error: Array) -> Array:
    """Return the robot with its true centre of mass and the estimated one, (h, w, 3)."""
    renderer.update_scene(plant.data, camera)
    for geom in renderer.scene.geoms[:renderer.scene.ngeom]:
        if geom.type != mujoco.mjtGeom.mjGEOM_PLANE:
            geom.rgba[3] = 0.3
    renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
    com = plant.truth().com
    eye = np.mean([camera.pos for camera in renderer.scene.camera], axis=0)  # of both eyes
    for kind, at in (('truth', com), ('com', com + MAGNIFIED * error)):
        # Before the robot, and smaller in proportion: no link hides them.
        ball(renderer.scene, eye + BEFORE * (at - eye), BEFORE * BALL,
             np.array((*MARKS[kind].colour, 255)) / 255.0)
    picture = Image.new('RGB', SIZE, PAPER)
    picture.paste(Image.fromarray(renderer.render()), (0, 2 * LINE))
    pen, middle = ImageDraw.Draw(picture), SIZE[0] // 2
    pen.text((middle, 0.5 * LINE), f'centre of mass {name}', MARKS['com'].colour, font(16), 'mm')
    pen.text((middle, 1.5 * LINE), f'{1e3 * np.linalg.norm(error):.1f} mm off', INK, font(22),
             'mm')
    pen.text((middle, SIZE[1] - 0.5 * LINE),
             f'true centre of mass (distance drawn x {MAGNIFIED:.0f})', MARKS['truth'].colour,
             font(14), 'mm')
    return np.array(picture)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return a font of some pixels."""
    return ImageFont.load_default(size)


# ------------------------------------------------------------------------------ the recording

def record(moments: list[Moment], model: RobotModel, calibrated: RobotModel) -> bytes:
    """Return the scene of the page, once with each model, as viser's client plays it."""
    server, _ = open_server('127.0.0.1', 0, 'biped_com_ros')
    try:
        scene = Scene(server, model)
        scene.set_opacity(0.45)
        serializer = server.get_scene_serializer()
        for by in (model, calibrated):
            for moment in moments:
                scene.draw(view_of(moment, model, by), model.state(
                    moment.positions).in_world(moment.base))
                serializer.insert_sleep(1.0 / FRAMES)
        return bytes(serializer.serialize())
    finally:
        server.stop()


def view_of(moment: Moment, model: RobotModel, by: RobotModel) -> View:
    """Return what the page shows of a moment, the centre of mass by one of the models."""
    state, truth = by.state(moment.positions).in_world(moment.base), moment.truth
    points = {'truth': truth.com, 'com': state.com_in_world, 'zmp': truth.zmp}
    if by is not model:
        points['uncalibrated'] = model.state(
            moment.positions).in_world(moment.base).com_in_world
    feet = model.config.feet
    poses = [moment.base @ state.pose_in_base(foot.sole) for foot in feet.values()]
    support = support_polygon(poses, [foot.polygon for foot in feet.values()])
    return View(
        positions=moment.positions, base=moment.base, points=points, link_coms=truth.link_coms,
        feet={name: ContactView(w, np.array((-w[4], w[3], 0.0)) / max(w[2], 1e-3))
              for name, w in zip(feet, truth.sole_wrenches)},
        polygon=support.corners_in_world, margin=support.margin(truth.zmp).distance,
        is_calibrated=by is not model)


if __name__ == '__main__':
    main()
