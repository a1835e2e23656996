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
The robot and its measurements in 3-D.

All parts of a robot are children of one frame, the base. What has not moved is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import (
    Array, Pose, quaternion_from_rotation, rotation_from_quaternion)
from biped_com_ros.core.geometry.shapes import cylinder, sphere
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.stability.hands import Hands
from biped_com_ros.viz import palette
from biped_com_ros.viz.clicks import Click, PointPush, push_of
from biped_com_ros.viz.view import View
from biped_com_ros.viz.visuals import Looks, looks_of, Surface
import numpy as np

#: Smaller movements are not sent, m and of a quaternion.
_STILL, _STILL_TURN = 5e-5, 5e-5
_STALE_OPACITY = 0.15  # of a robot whose joints are not received any more
_GROUND = 0.002  # m; height of what is drawn on the ground
_IDENTITY_WXYZ = (1.0, 0.0, 0.0, 0.0)
_FIELD_OF_VIEW = math.radians(40.0)  # vertical
#: Width of a page that is high, as a share of its height.
_HIGH = 0.75
#: Where the camera is and looks at, as shares of the robot's height; on pages that are high.
_POSITION, _LOOK_AT = (1.75, -1.05, 0.95), (0.0, 0.0, 0.48)
_POSITION_HIGH, _LOOK_AT_HIGH = (2.9, -1.75, 0.71), (0.0, 0.0, -0.07)


class MovedNode:
    """An object in the scene whose pose is sent only when it has moved."""

    def __init__(self, drawn: Any) -> None:
        self.drawn = drawn
        self._wxyz, self._position = np.array(_IDENTITY_WXYZ), np.zeros(3)

    @property
    def pose(self) -> Pose:
        """Return its pose in its parent."""
        return Pose(rotation_from_quaternion(np.roll(self._wxyz, -1)), self._position)

    def move(self, position: Array, wxyz: Array | None = None) -> None:
        """Set its pose in its parent; the quaternion is (w, x, y, z)."""
        if np.abs(position - self._position).max() > _STILL:
            self._position = self.drawn.position = position.copy()
        if wxyz is not None and np.abs(wxyz - self._wxyz).max() > _STILL_TURN:
            self._wxyz = self.drawn.wxyz = wxyz.copy()


def is_high(camera: Any) -> bool:
    """
    Return whether a browser's page is much higher than wide, as on a phone.

    On a computer, whose panels are beside the robot, what is left for it may be nearly square.
    """
    return bool(camera.image_width < _HIGH * camera.image_height)


class Scene:
    """
    The 3-D part of the page.

    Parameters
    ----------
    server
        The viser server.
    model
        The robot.

    Attributes
    ----------
    looks
        The robot's visuals, and their problems.
    height
        Of the standing robot, m.
    hand_arrows, com_region
        The arrows of forces on hands, and the outline of the region of the centre of mass.

    """

    def __init__(self, server: Any, model: RobotModel) -> None:
        self._scene, self._model = server.scene, model
        self._opacity, self._is_stale = 1.0, False
        self.looks: Looks = looks_of(model)
        joints = sorted({surface.joint for surface in self.looks.surfaces})
        self._frames = FrameSet(
            [str(joint) for joint in joints], joints, [Pose.identity()] * len(joints))
        hands = Hands.measured(model.config)
        self._hands = tuple(hands)
        self._hand_frames = model.frames([hand.frame for hand in hands.values()])
        self.height = self._measure(self._stand())
        self._set_camera(server)
        self._add_ground()
        self._add_robot(joints)
        self._add_marks()

    def draw(self, view: View, state: RobotState | None) -> None:
        """Update the scene; `state` is the view's, None: unknown."""
        if state is not None:
            self._draw_robot(state)
        self._fade(bool(view.latest('positions')[1]))
        for kind, mark in palette.MARKS.items():
            self._draw_mark(kind, mark.on_ground, view.point(kind), view)
        self._draw_links(view.link_coms)
        self._draw_forces(view, state)
        self._draw_polygon(view.polygon, view.margin)
        self._draw_com_region(view)

    def frame(self, camera: Any) -> None:
        """
        Point a browser's camera at the whole robot.

        Also of a browser that was there before the robot: the server's initial camera is for
        those that come later. On a page that is high, as on a phone, the controls cover the lower
        half.
        """
        look_at, position = _LOOK_AT, _POSITION
        if is_high(camera):
            look_at, position = _LOOK_AT_HIGH, _POSITION_HIGH
        camera.fov = _FIELD_OF_VIEW
        camera.position = self.height * np.array(position)
        camera.look_at = self.height * np.array(look_at)  # after the position, which changes it

    def show(self, what: str, shown: bool) -> None:
        """Show or hide a group: ``robot``, ``links`` or ``forces``."""
        self._hidden.discard(what)
        if not shown:
            self._hidden.add(what)
        for mesh in self._meshes if what == 'robot' else ():
            mesh.visible = shown

    def set_opacity(self, opacity: float) -> None:
        """Set the robot's opacity, 0 to 1."""
        self._opacity = opacity
        self._set_meshes()

    def _fade(self, is_stale: bool) -> None:
        """Draw a robot whose joints are not received any more pale."""
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self._set_meshes()

    def _set_meshes(self) -> None:
        opacity = min(self._opacity, _STALE_OPACITY) if self._is_stale else self._opacity
        for mesh in self._meshes:
            mesh.opacity = None if opacity > 0.99 else opacity

    def set_clickable(self, on_click: Callable[[Click], None] | None) -> None:
        """Call a function, from another thread, with each click on the robot; None: no longer."""
        for mesh, surface in zip(self._meshes, self.looks.surfaces):
            mesh.remove_click_callback('all')
            if on_click is not None:
                mesh.on_click(_click_on(surface, on_click))

    def push_of(self, click: Click, state: RobotState) -> PointPush | None:
        """Return the push that a click means on the robot as it is drawn; None if it missed."""
        row = list(self._frames.joints).index(click.joint)
        joint = self._joint_nodes[row].pose
        base = self._base.pose
        return push_of(click, base.rotation @ joint.rotation, base.apply(joint.position),
                       self._model, state)

    # -- set-up

    def _stand(self) -> RobotState:
        model = self._model
        state = model.state(model.usual_posture())
        return state.in_world(Pose(np.eye(3), np.array(
            (0.0, 0.0, -state.placements_in_base(model.soles)[:, 3, 2].min()))))

    def _measure(self, state: RobotState) -> float:
        """Return the height of the standing robot, from its surfaces."""
        placements = state.placements_in_base(self._frames)
        row = {int(joint): i for i, joint in enumerate(self._frames.joints)}
        tops = [(surface.triangles.vertices @ placements[row[surface.joint]][:3, 2]).max()
                + placements[row[surface.joint]][3, 2] for surface in self.looks.surfaces]
        return float(max(max(tops) + state.base.position[2], 0.1))

    def _set_camera(self, server: Any) -> None:
        camera = server.initial_camera
        camera.fov = _FIELD_OF_VIEW
        camera.look_at = self.height * np.array(_LOOK_AT)
        camera.position = self.height * np.array(_POSITION)

    def _add_ground(self) -> None:
        cell = 0.1 if self.height < 1.2 else 0.25
        self._scene.configure_default_lights(enabled=True, cast_shadow=True)
        self._scene.add_grid(
            '/ground', infinite_grid=True, cell_size=cell, section_size=5.0 * cell,
            cell_color=(214, 219, 227), section_color=(176, 184, 196), cell_thickness=0.6,
            section_thickness=0.9, fade_distance=9.0 * self.height, fade_strength=1.5,
            shadow_opacity=0.22, plane_color=(247, 248, 250), plane_opacity=0.0)

    def _add_robot(self, joints: list[int]) -> None:
        self._base = MovedNode(self._scene.add_frame('/robot', show_axes=False))
        self._joint_nodes = [MovedNode(self._scene.add_frame(f'/robot/{joint}', show_axes=False))
                             for joint in joints]
        self._meshes = [
            self._scene.add_mesh_simple(
                f'/robot/{surface.joint}/{i}', surface.triangles.vertices.astype(np.float32),
                surface.triangles.faces.astype(np.uint32), color=surface.colour,
                # From outside only: thinned, the inner sides of thin walls are where the outer
                # ones are, and both at a time look shattered.
                side='front')
            for i, surface in enumerate(self.looks.surfaces)]
        self._hidden: set[str] = set()

    def _add_marks(self) -> None:
        h = self.height
        ball, disc = sphere(1.0), cylinder(1.0, 0.004 * h)
        self._marks = {}
        for kind, mark in palette.MARKS.items():
            shape, size = (disc, (mark.size * h, mark.size * h, 1.0)) if mark.on_ground else (
                ball, mark.size * h)
            self._marks[kind] = MovedNode(self._scene.add_mesh_simple(
                f'/marks/{kind}', shape.vertices, shape.faces, color=mark.colour, scale=size,
                cast_shadow=False, receive_shadow=False, visible=False))
        self._plumb = self._add_lines('plumb', palette.MARKS['com'].colour, 0.003)
        sizes = 0.012 * h * np.cbrt(self._model.link_masses / self._model.link_masses.max())
        count = len(self._model.link_names)
        self._links = self._scene.add_batched_meshes_simple(
            '/marks/links', ball.vertices.astype(np.float32), ball.faces.astype(np.uint32),
            np.tile(_IDENTITY_WXYZ, (count, 1)), np.zeros((count, 3)), batched_scales=sizes,
            batched_colors=palette.LINK_COM, cast_shadow=False, receive_shadow=False,
            visible=False)
        self._link_positions = np.zeros((count, 3))
        self.hand_arrows = self._scene.add_arrows(
            '/marks/forces', np.zeros((1, 2, 3)), palette.FORCE, shaft_radius=0.007 * h,
            head_radius=0.018 * h, head_length=0.04 * h, visible=False)
        self._area: Any = None
        self._edge = self._add_lines('polygon', palette.GOOD, 0.006)
        self.com_region = self._add_lines('com_region', palette.MARKS['com'].colour, 0.004)
        self._corners, self._area_colour = np.empty((0, 3)), palette.QUIET

    def _add_lines(self, name: str, colour: palette.Colour, thickness: float) -> Any:
        return self._scene.add_line_segments(
            f'/marks/{name}', np.zeros((1, 2, 3)), colour, thickness=thickness * self.height,
            visible=False)

    # -- drawing

    def _draw_robot(self, state: RobotState) -> None:
        self._base.move(state.base.position, wxyz_of(state.base.rotation[np.newaxis])[0])
        placements = state.placements_in_base(self._frames)
        turns = wxyz_of(placements[:, :3].transpose(0, 2, 1))
        for node, position, wxyz in zip(self._joint_nodes, placements[:, 3], turns):
            node.move(position, wxyz)

    def _draw_mark(self, kind: str, on_ground: bool, point: Array | None, view: View) -> None:
        node = self._marks[kind]
        node.drawn.visible = point is not None
        if kind == 'com':
            self._plumb.visible = point is not None
        if point is None:
            return
        if on_ground:
            point = point + (0.0, 0.0, _GROUND)
        node.move(point)
        if kind == 'com':
            ground = view.polygon[:, 2].mean() if len(view.polygon) else 0.0
            self._plumb.points = np.array(
                [[point, (point[0], point[1], ground)]], dtype=np.float32)

    def _draw_links(self, positions: Array | None) -> None:
        if 'links' in self._hidden:
            positions = None
        self._links.visible = positions is not None
        if positions is not None and np.abs(
                positions - self._link_positions).max() > _STILL:
            self._link_positions = positions.copy()
            self._links.batched_positions = positions.astype(np.float32)

    def _draw_forces(self, view: View, state: RobotState | None) -> None:
        arrows = [] if state is None or 'forces' in self._hidden else list(
            self._force_arrows(view, state))
        self.hand_arrows.visible = bool(arrows)
        if arrows:
            self.hand_arrows.points = np.array(arrows, dtype=np.float32)

    def _force_arrows(self, view: View, state: RobotState) -> Any:
        """Yield (start, end) of each foot's and each hand's force, in the world."""
        for start, force in (*self._foot_forces(view, state), *self._hand_forces(view, state)):
            arrow = palette.ARROW * self.height / (self._model.mass * GRAVITY) * force
            if np.linalg.norm(arrow) > 0.01 * self.height:
                yield start, start + arrow

    def _foot_forces(self, view: View, state: RobotState) -> Any:
        """Yield (point, force) of each foot, in the world."""
        placements = state.placements_in_base(self._model.soles)
        for name, row in zip(self._model.config.feet, placements):
            foot = view.feet.get(name)
            if foot is None or not np.isfinite(foot.wrench).all():
                continue
            sole = state.base @ Pose(row[:3].T, row[3])
            start = sole.apply(foot.cop if np.isfinite(foot.cop).all() else np.zeros(3))
            yield start, sole.rotation @ foot.wrench[:3]

    def _hand_forces(self, view: View, state: RobotState) -> Any:
        """Yield (point, force) of each hand with a wrench sensor, in the world."""
        for hand, row in zip(self._hands, state.placements_in_base(self._hand_frames)):
            wrench = view.hands[hand].wrench if hand in view.hands else np.full(6, np.nan)
            if np.isfinite(wrench).all():
                yield state.base.apply(row[3]), state.base.rotation @ row[:3].T @ wrench[:3]

    def _draw_polygon(self, corners: Array, margin: float) -> None:
        self._edge.visible = len(corners) > 2
        if self._area is not None:
            self._area.visible = len(corners) > 2
        if len(corners) < 3:
            return
        colour = palette.of_margin(margin)
        moved = (corners.shape != self._corners.shape
                 or np.abs(corners - self._corners).max() > 5e-4)
        if not moved and colour == self._area_colour:
            return
        self._corners, self._area_colour = corners.copy(), colour
        self._edge.points = _outline(corners)
        self._edge.colors = np.array(colour, dtype=np.uint8)
        fan = np.arange(1, len(corners) - 1)
        self._area = self._scene.add_mesh_simple(
            '/marks/area', (corners + (0.0, 0.0, 0.5 * _GROUND)).astype(np.float32),
            np.stack((np.zeros_like(fan), fan, fan + 1), axis=1).astype(np.uint32),
            color=colour, opacity=0.28, side='double', cast_shadow=False, receive_shadow=False)

    def _draw_com_region(self, view: View) -> None:
        """Draw where the CoM may be at rest, if that is not the support polygon."""
        corners = view.com_region
        shown = len(corners) > 2 and not (corners.shape == view.polygon.shape
                                          and np.abs(corners - view.polygon).max() < 1e-3)
        self.com_region.visible = shown
        if shown:
            self.com_region.points = _outline(corners)


def _outline(corners: Array) -> Array:
    """Return the lines (k, 2, 3) around an area on the ground."""
    ring = corners + (0.0, 0.0, _GROUND)
    return np.stack((ring, np.roll(ring, -1, axis=0)), axis=1).astype(np.float32)


def _click_on(surface: Surface, on_click: Callable[[Click], None]) -> Callable[[Any], None]:
    def clicked(event: Any) -> None:
        on_click(Click(surface.joint, surface.triangles,
                       np.array(event.ray_origin, dtype=float),
                       np.array(event.ray_direction, dtype=float)))
    return clicked


def wxyz_of(rotations: Array) -> Array:
    """Return the quaternions (N, 4), w first and not negative, of rotations (N, 3, 3)."""
    quaternions = np.roll([quaternion_from_rotation(r) for r in rotations], 1, axis=1)
    return np.where(quaternions[:, :1] < 0.0, -quaternions, quaternions)
