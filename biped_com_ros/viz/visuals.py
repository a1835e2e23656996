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

"""Surfaces of a robot, from the <visual> elements of its URDF."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.shapes import cylinder, joined, sphere, Triangles
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import numbers, parse_urdf, shape_in_link
from biped_com_ros.viz.palette import Colour
from biped_com_ros.viz.shapes import mesh_file
import numpy as np
import pinocchio as pin

_DEFAULT: Colour = (186, 190, 198)
#: Radius of the sticks of a robot without visuals, m.
_STICK = 0.008


@dataclass(frozen=True)
class Surface:
    """
    Triangles that move with one joint.

    Attributes
    ----------
    joint
        Index of Pinocchio's joint.
    colour
        Red, green, blue, each 0 to 255.
    triangles
        In the frame of the joint.

    """

    joint: int
    colour: Colour
    triangles: Triangles


@dataclass(frozen=True)
class Looks:
    """
    Visuals of a robot.

    Attributes
    ----------
    surfaces
        One per joint and colour.
    problems
        Visuals that cannot be drawn, and why.

    """

    surfaces: tuple[Surface, ...]
    problems: tuple[str, ...] = field(default=())


def looks_of(model: RobotModel) -> Looks:
    """
    Return the surfaces of a robot.

    A mesh file that is missing or broken is listed as a problem; a robot without any visuals is
    drawn as sticks from joint to joint.
    """
    robot = parse_urdf(model.urdf)
    materials = {str(material.get('name')): colour for material in robot.findall('material')
                 if (colour := _colour(material)) is not None}
    found: dict[tuple[int, Colour], list[Triangles]] = defaultdict(list)
    problems: list[str] = []
    links = [link for link in robot.findall('link') if link.find('visual') is not None]
    frames = model.frames(str(link.get('name')) for link in links)
    for link, joint, pose in zip(links, frames.joints, frames.poses_in_joint()):
        for visual in link.findall('visual'):
            try:
                shape = shape_in_link(visual, str(link.get('name')), _read_mesh)
                colour = _colour_of(visual, materials)
            except BipedComError as error:
                problems.append(str(error))
                continue
            found[int(joint), colour].append(shape.moved(pose.rotation, pose.position))
    surfaces = [Surface(joint, colour, joined(parts)) for (joint, colour), parts in found.items()]
    return Looks(tuple(surfaces or _sticks(model)), tuple(problems))


def _read_mesh(path: Path, scale: Array) -> Triangles:
    return _mesh(path, tuple(scale))


@lru_cache(maxsize=128)
def _mesh(path: Path, scale: tuple[float, ...]) -> Triangles:
    """Read a file, once for all links that use it."""
    return mesh_file(path, np.array(scale))


def _colour(material: ElementTree.Element | None) -> Colour | None:
    element = material.find('color') if material is not None else None
    if element is None:
        return None
    red, green, blue = np.clip(
        255.0 * numbers(element, 'rgba', '<color>', 4)[:3], 0.0, 255.0).round().astype(int)
    return int(red), int(green), int(blue)


def _colour_of(visual: ElementTree.Element, materials: dict[str, Colour]) -> Colour:
    material = visual.find('material')
    named = materials.get(str(material.get('name'))) if material is not None else None
    return _colour(material) or named or _DEFAULT


def _sticks(model: RobotModel) -> Iterator[Surface]:
    """Yield sticks from each joint to its children, for a URDF without visuals."""
    pin_model = model.pin_model
    for child in range(2, pin_model.njoints):
        end = np.array(pin_model.jointPlacements[child].translation)
        length = float(np.linalg.norm(end))
        if length > 1e-6:
            turn = pin.Quaternion.FromTwoVectors(np.array((0.0, 0.0, 1.0)), end)
            yield Surface(int(pin_model.parents[child]), _DEFAULT,
                          cylinder(_STICK, length).moved(turn.matrix(), 0.5 * end))
        yield Surface(child, _DEFAULT, sphere(2.0 * _STICK))
