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
Draws the figures of doc/concepts.rst and doc/calibration.rst from the models of robots.

::

    python doc/figures.py [DIRECTORY]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
import sys

from biped_com_ros import RobotModel
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry import Pose
from biped_com_ros.core.geometry.pose import footprint_pose
from biped_com_ros.core.model import RobotState
from biped_com_ros.core.stability import Soles, SupportPolygon
from biped_com_ros.core.torso import Backbone, make_shape
from biped_com_ros.viz import palette
from biped_com_ros.viz.palette import css, MARKS
import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
import matplotlib.pyplot as plt
import numpy as np

AXES_COLOURS = ('#c0392b', '#1e8449', '#2471a3')  # x, y, z, as everywhere in robotics
# As on the page and in RViz.
COM, ZMP, DCM = (css(MARKS[name].colour) for name in ('com', 'zmp', 'dcm'))
FORCE, WEIGHT, SUPPORT = css(palette.FORCE), css(palette.LINK_COM), css(palette.GOOD)
BODY, GROUND, SENSOR, BEND = '#566573', '#d5d8dc', '#117864', '#c0392b'
LINES = ('#a04000', '#117864')  # of the two poses
TENDONS = ('#b7950b', '#6c3483', '#117864', '#a04000')
SIDE, FRONT = (0, 2), (1, 2)  # axes of the world that a view shows


def standing(model: RobotModel) -> tuple[RobotState, Pose]:
    """Return a state with one knee bent more, and the pose of its base over level ground."""
    positions = model.positions({
        **model.config.postures['stand'], 'l_hip_pitch': -0.65, 'l_knee': 1.3,
        'l_ankle_pitch': -0.65, 'l_shoulder_pitch': -0.7, 'r_shoulder_pitch': 0.4,
        'torso_pitch': 0.12, 'torso_x': 0.008})
    state = model.state(positions)
    right = state.pose_in_base(model.config.feet['right'].sole)
    return state, Pose(np.eye(3), np.array((0.0, 0.0, -right.position[2])))


# ------------------------------------------------------------------------------- parts of figures

def plain(axes: Axes, title: str = '') -> Axes:
    """Give both axes the same scale, and no frame."""
    axes.set_aspect('equal')
    axes.set_axis_off()
    axes.set_title(title, fontsize=10)
    return axes


def draw_skeleton(axes: Axes, model: RobotModel, state: RobotState, base: Pose,
                  view: Sequence[int]) -> None:
    """Draw a line from each joint to those that hang on it, and the soles."""
    for name in model.joint_names:
        child = model.pin_model.getJointId(name)
        parent = model.pin_model.parents[child]
        ends = [joint_position(model, state, base, joint) for joint in (parent, child)]
        axes.plot(*np.array(ends)[:, view].T, color=BODY, lw=4, alpha=0.45,
                  solid_capstyle='round')
    for foot in model.config.feet.values():
        sole = base @ state.pose_in_base(foot.sole)
        corners = sole.position + np.array([(*corner, 0.0) for corner in foot.polygon]
                                           ) @ sole.rotation.T
        axes.fill(*corners[:, view].T, facecolor=BODY, edgecolor=BODY, alpha=0.5, lw=3)


def joint_position(model: RobotModel, state: RobotState, base: Pose, joint: int) -> np.ndarray:
    """Return where the child link of a joint has its origin in the world."""
    if joint <= 1:
        return base.position
    frames = model.pin_model.frames
    link = next(frame.name for frame in frames
                if frame.parentJoint == joint and frame.name in model.frame_names
                and np.allclose(frame.placement.homogeneous, np.eye(4)))
    return (base @ state.pose_in_base(link)).position


def draw_frame(axes: Axes, pose: Pose, name: str, view: Sequence[int], size: float = 0.06,
               at: tuple[float, float] = (5.0, 5.0)) -> None:
    """Draw the axes of a frame that are not seen end on, and its name `at` points beside it."""
    origin = pose.position[list(view)]
    for column, colour in enumerate(AXES_COLOURS):
        tip = size * pose.rotation[list(view), column]
        if np.hypot(*tip) > 0.2 * size:
            axes.annotate('', origin + tip, origin, arrowprops={
                'arrowstyle': '-|>', 'color': colour, 'lw': 1.6, 'shrinkA': 0, 'shrinkB': 0})
    axes.annotate(name, origin, at, textcoords='offset points', fontsize=8, family='monospace',
                  bbox={'facecolor': 'white', 'alpha': 0.75, 'lw': 0, 'pad': 1},
                  ha='right' if at[0] < 0.0 else 'left', va='center')


def draw_arrow(axes: Axes, start: Sequence[float], vector: Sequence[float], colour: str,
               text: str, at: tuple[float, float] = (0.006, 0.0)) -> None:
    """Draw a vector in the plane of the figure, labelled at its tip."""
    tip = np.add(start, vector)
    axes.annotate('', tip, start, arrowprops={
        'arrowstyle': '-|>', 'color': colour, 'lw': 2.2, 'shrinkA': 0, 'shrinkB': 0})
    axes.text(*(tip + at), text, color=colour, fontsize=8, va='center')


def draw_ground(axes: Axes, left: float, right: float) -> None:
    """Draw level ground at height zero."""
    axes.fill_between((left, right), -0.012, 0.0, color=GROUND, zorder=0)


# -------------------------------------------------------------------------------------- figures

def frames(model: RobotModel) -> Figure:
    """Show where the frames are, from the side and from the front."""
    state, base = standing(model)
    soles = [base @ state.pose_in_base(foot.sole) for foot in model.config.feet.values()]
    footprint = footprint_pose(base, np.array([pose.position for pose in soles]), [False, True])
    com = Pose(np.eye(3), state.in_world(base).com_in_world)
    figure, (side, front) = plt.subplots(1, 2, figsize=(8.5, 6.2))
    for axes, view, title in ((side, SIDE, 'from its right side'), (front, FRONT, 'from behind')):
        plain(axes, title)
        draw_ground(axes, -0.36, 0.3)
        draw_skeleton(axes, model, state, base, view)
        axes.plot(*com.position[list(view)], 'o', color=COM, ms=11, mec='white')
        draw_frame(axes, com, 'com', view, 0.05, at=(18, 14))
        draw_frame(axes, base, 'base_link', view, at=(24, -12))
        draw_frame(axes, base @ state.pose_in_base('imu_link'), 'imu_link', view, 0.03,
                   at=(-20, 8))
        draw_frame(axes, soles[1], 'r_sole', view, at=(12, -16))
        draw_frame(axes, soles[0], 'l_sole', view, at=(-24, 10))
        draw_frame(axes, base @ state.pose_in_base('r_ankle'), 'r_ankle', view, 0.05, at=(24, 10))
    # Where the right foot stands alone, base_footprint is at its sole.
    draw_frame(side, footprint, 'base_footprint', SIDE, at=(-12, -16))
    draw_frame(front, footprint, 'base_footprint', FRONT, at=(-12, -16))
    for axes, view, place in ((side, SIDE, -0.33), (front, FRONT, 0.27)):
        draw_frame(axes, Pose(np.eye(3), np.full(3, place) * (1.0, 1.0, 0.0)), 'odom', view,
                   at=(-2, -16))
    front.invert_xaxis()
    return figure


def wrenches(model: RobotModel) -> Figure:
    """Show the sole's wrench and a sensor's reading, from the side of a standing foot."""
    state = model.state(model.posture())
    foot, sensor = model.config.feet['right'], model.config.wrench_sensors['right_foot']
    sole = state.pose_in_base(foot.sole)
    sensor_in_sole = sole.inverse() @ state.pose_in_base(sensor.frame)
    below = model.subtree_links(sensor.link or sensor.frame)
    below_mass = model.link_masses[below].sum()
    p_mass = model.link_masses[below] @ state.link_coms_in_base[below] / below_mass
    p_mass_in_sole = sole.rotation.T @ (p_mass - sole.position)
    ground = 0.5 * GRAVITY * model.mass
    weight = GRAVITY * below_mass
    cop = state.com_in_base[0] - sole.position[0]
    figure, axes = plt.subplots(figsize=(7.4, 4.2))
    plain(axes)
    draw_ground(axes, -0.12, 0.2)
    xs = [corner[0] for corner in foot.polygon]
    axes.fill_between((min(xs), max(xs)), 0.0, 0.018, color=BODY, alpha=0.45, lw=0)
    axes.plot((0.0, 0.0), (0.024, 0.16), color=BODY, lw=16, alpha=0.25, solid_capstyle='butt')
    draw_frame(axes, Pose.identity(), foot.sole, SIDE, 0.035, at=(-8, -16))
    draw_frame(axes, sensor_in_sole, sensor.frame, SIDE, 0.035, at=(-14, 12))
    scale = 0.12 / ground
    draw_arrow(axes, (cop, 0.0), (0.0, scale * ground), FORCE,
               f'ground on robot, at the CoP\n{ground:.2f} N', at=(0.006, -0.012))
    draw_arrow(axes, p_mass_in_sole[[0, 2]], (0.0, -scale * weight), WEIGHT, '')
    axes.text(p_mass_in_sole[0] + 0.07, -0.035, 'weight beyond the sensor, negative z: '
              f'{-weight:.2f} N', color=WEIGHT, fontsize=8, ha='center')
    draw_arrow(axes, (0.0, sensor_in_sole.position[2]), (0.0, scale * (ground - weight)), SENSOR,
               f'reading of the sensor: both together\n{ground - weight:.2f} N',
               at=(-0.175, 0.0))
    return figure


def stability(model: RobotModel) -> Figure:
    """Show support polygon, CoM, ZMP, DCM and margins from above, the robot moving forward."""
    soles = Soles.of(model)
    config = model.config
    state = model.state(model.posture())
    base = Pose(np.eye(3), np.array((0.0, 0.0, -state.pose_in_base('r_sole').position[2])))
    poses = [base @ state.pose_in_base(foot.sole) for foot in config.feet.values()]
    poses[0] = Pose(poses[0].rotation, poses[0].position + (0.06, 0.02, 0.0))
    support = soles.support(
        np.array([(*pose.rotation.T, pose.position) for pose in poses]), [True, True])
    com, velocity = np.array((0.03, -0.005, base.position[2] + 0.06)), np.array((0.22, 0.05))
    omega = np.sqrt(GRAVITY / com[2])
    dcm = np.array((*(com[:2] + velocity / omega), 0.0))
    zmp = np.array((0.012, -0.03, 0.0))
    figure, axes = plt.subplots(figsize=(7.6, 4.6))
    plain(axes)
    draw_support(axes, model, poses, support)
    for point, colour, name, at in (
            (com, COM, 'CoM', (-0.02, 0.008)), (zmp, ZMP, 'ZMP', (-0.025, 0.002)),
            (dcm, DCM, 'DCM', (0.004, 0.006))):
        axes.plot(*point[:2], 'o', color=colour, ms=9, mec='white', zorder=5)
        axes.text(*(point[:2] + at), name, color=colour, fontsize=9, weight='bold')
    draw_arrow(axes, com[:2], dcm[:2] - com[:2], COM, '', at=(0.0, 0.0))
    for point, name, at in ((zmp, 'margin', (0.003, 0.0)), (dcm, 'dcm_margin', (0.006, 0.008))):
        margin = support.margin(point)
        nearest = support.plane.to_world(np.array([margin.nearest]))[0]
        axes.plot(*np.array((point, nearest))[:, :2].T, ':', color='black', lw=1.2)
        axes.text(*(0.5 * (point + nearest)[:2] + at),
                  f'~/{name}\n{1e3 * margin.distance:.0f} mm', fontsize=7.5, family='monospace',
                  va='center')
    seconds = support.time_to_edge(tuple(dcm), tuple(zmp), omega)
    axes.text(0.02, -0.14, f'DCM = CoM + velocity / ω,  ω = √(g / height) = {omega:.2f}/s;  '
              f'~/time_to_edge = {seconds:.2f} s', ha='center', fontsize=9)
    return figure


def draw_support(axes: Axes, model: RobotModel, poses: Sequence[Pose],
                 support: SupportPolygon) -> None:
    """Draw the soles and what they span, from above, x upwards being x to the right."""
    corners = support.corners_in_world[:, :2]
    axes.fill(*corners.T, facecolor=SUPPORT, alpha=0.12, edgecolor=SUPPORT, lw=1.5)
    for pose, foot in zip(poses, model.config.feet.values()):
        outline = pose.position[:2] + np.array(foot.polygon) @ pose.rotation[:2, :2].T
        axes.fill(*outline.T, facecolor=BODY, alpha=0.35, edgecolor=BODY)
        axes.text(*(outline.min(axis=0) + (0.004, 0.004)), foot.sole, fontsize=8,
                  family='monospace')


def torso(model: RobotModel) -> Figure:
    """Show bend, direction and tendons of the torso, from the side and from above."""
    backbone = Backbone.from_config(model.config.torso)
    theta, phi = np.radians(model.config.torso.max_bend_deg), np.radians(40.0)
    figure, (side, above) = plt.subplots(1, 2, figsize=(8.5, 4.6), width_ratios=(1.25, 1.0))
    draw_bent(plain(side, f'bent forward, in its plane: θ = {np.degrees(theta):.0f} deg'),
              backbone, make_shape(theta))
    draw_routing(plain(above, f'from above: direction φ = {np.degrees(phi):.0f} deg'),
                 backbone, make_shape(theta, phi))
    return figure


def draw_bent(axes: Axes, backbone: Backbone, shape: np.ndarray) -> None:
    """Draw the backbone and its tendons in the plane of the bend (x, z)."""
    along = np.linspace(0.0, 1.0, 41)
    axes.plot(*np.array([backbone.tip(shape, s).position for s in along])[:, SIDE].T,
              color=BODY, lw=5, alpha=0.6)
    holes = np.array([backbone.holes(shape, s) for s in along])
    lengths = backbone.lengths(shape)
    for number in range(backbone.count):
        axes.plot(*holes[:, number][:, SIDE].T, color=TENDONS[number % 4], lw=1.6)
        if abs(np.cos(backbone.angles[number])) > 0.5:
            axes.text(*(holes[12, number][[0, 2]] + (0.003, 0.0)), f'l{number} = '
                      f'{1e3 * lengths[number]:.2f} mm', color=TENDONS[number % 4], fontsize=8,
                      bbox={'facecolor': 'white', 'edgecolor': 'none', 'pad': 0.5}, zorder=5)
    for s in np.linspace(0.0, 1.0, 7):
        tip = backbone.tip(shape, s)
        ends = tip.apply(backbone.radius * np.array(((-1.0, 0.0, 0.0), (1.0, 0.0, 0.0))))
        axes.plot(*ends[:, SIDE].T, color=BODY, lw=1, alpha=0.6)
    draw_frame(axes, Pose.identity(), 'lower', SIDE, 0.025, at=(-8, -12))
    draw_frame(axes, backbone.tip(shape), 'upper (tip)', SIDE, 0.025, at=(10, 14))
    axes.plot((0.0, 0.0), (0.0, 1.1 * backbone.length), '--', color='black', lw=0.8)
    axes.text(-0.03, 0.5 * backbone.length, f'backbone\n{1e3 * backbone.length:.0f} mm',
              fontsize=8, ha='right')


def draw_routing(axes: Axes, backbone: Backbone, shape: np.ndarray) -> None:
    """Draw where the tendons are attached, and where the tip goes, along x and y."""
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    axes.plot(backbone.radius * np.cos(turn), backbone.radius * np.sin(turn), color=BODY, lw=1)
    lengths = backbone.lengths(shape)
    for number, angle in enumerate(backbone.angles):
        point = backbone.radius * np.array((np.cos(angle), np.sin(angle)))
        axes.plot(*point, 'o', color=TENDONS[number % 4], ms=9)
        axes.text(*(1.6 * point), f'tendon {number}\n{np.degrees(angle):.0f} deg\n'
                  f'{1e3 * lengths[number]:.2f} mm', fontsize=8, ha='center', va='center',
                  color=TENDONS[number % 4])
    tip = backbone.tip(shape).position
    draw_arrow(axes, (0.0, 0.0), tip[:2], BEND, 'tip', at=(0.002, 0.002))
    phi = np.arctan2(tip[1], tip[0])
    arc = np.linspace(0.0, phi, 30)
    axes.plot(0.012 * np.cos(arc), 0.012 * np.sin(arc), color=BEND, lw=1)
    axes.text(0.014, 0.003, 'φ', color=BEND, fontsize=9)
    draw_frame(axes, Pose.identity(), '', (0, 1), 0.02)
    axes.text(0.0, -0.074, f'tendon circle: radius {1e3 * backbone.radius:.0f} mm', fontsize=8,
              ha='center')
    axes.set_xlim(-0.07, 0.07)
    axes.set_ylim(-0.078, 0.066)


# ------------------------------------------------------------------------ the paper's two poses

def two_pose(model: RobotModel) -> Figure:
    """Show poses A and B of Muscolo et al., and how their lines meet, with the paper's robot."""
    model = RobotModel.load('three_link')
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 5.4), width_ratios=(1.0, 1.0, 1.0))
    found = [draw_pose(plain(axes, title), model, name) for axes, title, name in zip(
        panels, ('pose A: upright', 'pose B: leaning by θ = 10 deg'), 'ab')]
    draw_intersection(plain(panels[2], 'both lines in the leaning body'), model, found)
    for axes in panels:
        axes.set_xlim(-0.22, 0.34)
        axes.set_ylim(-0.08, 1.12)
    return figure


def draw_pose(axes: Axes, model: RobotModel, posture: str) -> Pose:
    """Draw a posture on level soles, its forces and its centre of mass; return the base's pose."""
    state = model.state(model.posture(posture))
    sole = state.pose_in_base('r_sole')
    base = Pose(sole.rotation.T, -sole.rotation.T @ sole.position)
    com = state.in_world(base).com_in_world
    draw_ground(axes, -0.2, 0.24)
    draw_skeleton(axes, model, state, base, SIDE)
    axes.plot((0.0, 0.0), (0.0, 0.1), color=BODY, lw=4, alpha=0.45)
    axes.plot((com[0], com[0]), (0.0, 1.05), '--', color=COM, lw=1.2)
    axes.plot(com[0], com[2], 'o', color=COM, ms=10, mec='white', zorder=5)
    axes.text(com[0] + 0.03, com[2], f'CoM\n{1e3 * com[0]:.1f}, {1e3 * com[2]:.1f} mm',
              color=COM, fontsize=8, va='center')
    draw_arrow(axes, (com[0], -0.07), (0.0, 0.07), FORCE, '')
    axes.text(com[0] + 0.02, -0.05, 'ground force, at the CoP', color=FORCE, fontsize=8)
    return base


def draw_intersection(axes: Axes, model: RobotModel, bases: Sequence[Pose]) -> None:
    """Draw the leaning part upright, and on which line each pose has its centre of mass."""
    state, base = model.state(model.posture('a')), bases[0]
    links = [i for i, name in enumerate(model.link_names) if not name.endswith('foot')]
    body = model.link_masses[links] @ state.link_coms_in_base[links] / (
        model.link_masses[links].sum())
    ankle = base.apply(state.pose_in_base('r_foot').position)
    draw_skeleton(axes, model, state, base, SIDE)
    axes.plot((0.0, 0.0), (0.0, 0.1), color=BODY, lw=4, alpha=0.45)
    com = base.apply(body)
    for turned, colour, name in zip(bases, LINES, 'AB'):
        up = base.rotation @ turned.rotation[2]  # the vertical of that pose, in the body
        ends = np.array([com + reach * up for reach in (-0.62, 0.42)])
        axes.plot(*ends[:, SIDE].T, '--', color=colour, lw=1.4)
        axes.text(*(ends[0, [0, 2]] + (0.012, 0.0)), name, color=colour, fontsize=10,
                  weight='bold')
    axes.plot(com[0], com[2], 'o', color=COM, ms=10, mec='white', zorder=5)
    axes.annotate('', (0.12, com[2]), (0.12, ankle[2]), arrowprops={
        'arrowstyle': '<|-|>', 'color': BODY, 'shrinkA': 0, 'shrinkB': 0})
    axes.plot((0.0, 0.14), (ankle[2], ankle[2]), color=BODY, lw=0.8)
    axes.plot((com[0], 0.14), (com[2], com[2]), color=BODY, lw=0.8)
    axes.text(0.13, 0.5 * (com[2] + ankle[2]), f'l_w = {1e3 * (com[2] - ankle[2]):.2f} mm\n'
              f'r_w = {1e3 * (com[0] - ankle[0]):.2f} mm', fontsize=8, va='center')


FIGURES = {'concept_frames': frames, 'concept_wrenches': wrenches,
           'concept_stability': stability, 'concept_torso': torso, 'two_pose': two_pose}


def main(directory: str = str(Path(__file__).parent / 'pictures')) -> None:
    """Draw all of them into a directory, the same bytes each time."""
    matplotlib.use('svg')
    matplotlib.rcParams.update({'svg.hashsalt': 'biped_com_ros', 'font.size': 9,
                                'svg.fonttype': 'path'})
    model = RobotModel.load('biped')
    for name, draw in FIGURES.items():
        figure = draw(model)
        figure.savefig(Path(directory) / f'{name}.svg', bbox_inches='tight',
                       metadata={'Date': None, 'Creator': None})
        plt.close(figure)


if __name__ == '__main__':
    main(*sys.argv[1:])
