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
Draws the moving picture of the README: the centre of mass before and after a calibration.

::

    MUJOCO_GL=egl python doc/pictures/draw_calibration.py

Calibrates the sample recording (``doc/sample``), moves the robot that it was recorded of in
MuJoCo, and draws how far the centre of mass by the URDF, then by the calibrated one, is from the
true one. Writes ``calibration.webp`` beside this file.
"""

from __future__ import annotations

from contextlib import redirect_stdout
import io
from pathlib import Path
import sys
import tempfile

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.keyframes import Keyframe, KeyframeMotion, minimum_jerk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.calibrate import main as calibrate
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
from biped_com_ros.viz.palette import css, MARKS
from draw_robot import ball
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
import mujoco
import numpy as np
from PIL import Image

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / 'sample'
sys.path.insert(0, str(SAMPLE))
from record import HIDDEN, ROBOT, SEED, true_urdf  # noqa: E402, I100, I202

FRAMES = 8.0  # per s
SIZE = (320, 400)  # pixels of the robot, and of the chart beside it
MAGNIFIED = 15.0  # distance of the balls: millimetres could not be seen
TOP = 10.0  # mm, of the chart
CALIBRATED_AT, TAKES = 4.6, 1.0  # s
RED, GREEN = (css(MARKS[name].colour) for name in ('com', 'truth'))


def main() -> None:
    """Calibrate, simulate, draw, write the file."""
    model = RobotModel.load(ROBOT)
    plant = Plant(model.config, model.urdf, PlantOptions(
        seed=SEED, world=WorldOptions(visuals=True),
        com_sigma=HIDDEN['hidden_com_sigma'], mass_sigma=HIDDEN['hidden_mass_sigma']),
        joint_names=model.joint_names, link_names=model.link_names)
    truth = RobotModel(model.config, true_urdf(model))
    if abs(truth.mass - plant.mass) > 1e-6:
        raise SystemExit('the simulated robot is not the one that was recorded')
    calibrated, captures = calibrate_sample(model)
    views, times, errors = simulate(plant, model, calibrated)
    chart = CalibrationChart(f'calibrated from {captures} poses\nof the sample recording')
    frames = [Image.fromarray(np.concatenate(
        (view, chart.draw(times[:i + 1], errors[:i + 1])), axis=1))
        for i, view in enumerate(views)]
    frames[0].save(HERE / 'calibration.webp', save_all=True, append_images=frames[1:],
                   duration=round(1000.0 / FRAMES), loop=0, quality=60, method=4)


def calibrate_sample(model: RobotModel) -> tuple[RobotModel, int]:
    """Return the robot as `calibrate` finds it in the sample, and the number of its poses."""
    with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()):
        if calibrate([str(SAMPLE / f'{ROBOT}.mcap'), '--robot', ROBOT, '--out', out]):
            raise SystemExit('the sample cannot be calibrated')
        found = RobotModel(model.config, (Path(out) / 'calibrated.urdf').read_text())
        captures = (Path(out) / 'captures.json').read_text().count('"name"')
    return found, captures


def simulate(plant: Plant, model: RobotModel, calibrated: RobotModel) -> tuple[
        list[Array], Array, Array]:
    """Return the views of the robot, their times (n,), s, and the CoM's errors (n, 3), m."""
    motion = KeyframeMotion(model, [
        Keyframe(0.5), Keyframe(1.1, offset=(0.0, 0.05, 0.0)),
        Keyframe(1.7, offset=(0.0, -0.05, 0.0)), Keyframe(1.1), Keyframe(1.4),
        Keyframe(1.7, 'arms_up'), Keyframe(0.7, 'arms_up', (0.012, 0.0, 0.0)),
        Keyframe(0.7, 'arms_up'), Keyframe(1.4)])
    command, motors = plant.hold(), model.joint_index(plant.actuated_joint_names)
    renderer, camera = scene_of(plant)
    views, times, errors = [], [], []
    for step in range(int(motion.duration / plant.dt)):
        time = step * plant.dt
        if time * FRAMES >= len(views):
            share = minimum_jerk(min(max((time - CALIBRATED_AT) / TAKES, 0.0), 1.0))
            error = ((1.0 - share) * error_of(plant, model) + share * error_of(plant, calibrated))
            views.append(draw(renderer, camera, plant, error))
            times.append(time)
            errors.append(error)
        command.position[:] = motion.positions(time)[motors]
        plant.step(command)
    return views, np.array(times), np.array(errors)


def error_of(plant: Plant, model: RobotModel) -> Array:
    """Return the CoM by a model minus the true one, along the ground, (3,), m, in the world."""
    truth = plant.truth()
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    by_model = model.state(plant.observation.joint_positions).in_world(base).com_in_world
    return np.asarray(by_model - truth.com) * (1.0, 1.0, 0.0)


def scene_of(plant: Plant) -> tuple[mujoco.Renderer, mujoco.MjvCamera]:
    """Return what draws the robot, and from where."""
    width, height = SIZE
    visual = plant.model.vis
    visual.global_.offwidth, visual.global_.offheight = width, height
    visual.headlight.ambient[:], visual.headlight.diffuse[:] = 0.4, 0.5
    visual.map.znear, visual.map.zfar = 0.05, 30.0
    plant.model.geom('floor').rgba[:] = 0.36, 0.42, 0.5, 1.0
    camera = mujoco.MjvCamera()
    camera.lookat[:] = 0.0, 0.0, 0.74
    camera.distance, camera.azimuth, camera.elevation = 2.5, 145.0, -26.0
    return mujoco.Renderer(plant.model, height, width), camera


def draw(renderer: mujoco.Renderer, camera: mujoco.MjvCamera, plant: Plant,
         error: Array) -> Array:
    """Return the robot with its true centre of mass and the estimated one, (h, w, 3)."""
    renderer.update_scene(plant.data, camera)
    for geom in renderer.scene.geoms[:renderer.scene.ngeom]:
        if geom.type != mujoco.mjtGeom.mjGEOM_PLANE:
            geom.rgba[3] = 0.3
    renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
    com = plant.truth().com
    ball(renderer.scene, com, 0.035, rgba('truth'))
    ball(renderer.scene, com + MAGNIFIED * error, 0.035, rgba('com'))
    return np.array(renderer.render())


def rgba(name: str) -> Array:
    """Return the page's colour of a point."""
    return np.array((*MARKS[name].colour, 255)) / 255.0


class CalibrationChart:
    """The distances so far, beside the robot; `note` is shown from the calibration on."""

    def __init__(self, note: str) -> None:
        width, height = SIZE
        figure = Figure(figsize=(width / 100.0, height / 100.0), dpi=100)
        self._canvas = FigureCanvasAgg(figure)
        figure.text(0.06, 0.93, 'true centre of mass', color=GREEN, size=11, weight='bold')
        figure.text(0.06, 0.82, f'distance in the picture: x {MAGNIFIED:.0f}', color='0.4', size=8)
        self._name = figure.text(0.06, 0.87, '', color=RED, size=11, weight='bold')
        self._value = figure.text(0.06, 0.72, '', size=24, weight='bold', color=RED)
        self._note = figure.text(0.52, 0.715, '', size=8, color='0.25')
        self._text = note
        axes = figure.add_axes((0.12, 0.12, 0.83, 0.5))
        self._line = axes.plot([], [], color=RED, linewidth=2.0)[0]
        axes.set_xlim(0.0, 10.3)
        axes.set_ylim(0.0, TOP)
        axes.set_xlabel('time [s]', size=8)
        axes.set_title('error along the ground [mm]', size=8, loc='left')
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)

    def draw(self, times: Array, errors: Array) -> Array:
        """Return the picture (h, w, 3); times (n,), s, errors (n, 3), m."""
        distances = 1e3 * np.linalg.norm(errors, axis=1)
        is_calibrated = times[-1] >= CALIBRATED_AT
        self._line.set_data(times, distances)
        self._name.set_text(f'by the {"calibrated " if is_calibrated else ""}URDF')
        self._value.set_text(f'{distances[-1]:.1f} mm')
        self._note.set_text(self._text if is_calibrated else '')
        self._canvas.draw()
        return np.array(self._canvas.buffer_rgba())[:, :, :3]


if __name__ == '__main__':
    main()
