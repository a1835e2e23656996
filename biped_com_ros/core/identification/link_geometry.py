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
"""Shapes and inertias of links: where the mass of a link can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model import urdf as urdf_tools
from biped_com_ros.core.model.resources import resolve_uri
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.typing import ArrayLike

SMALLEST_SPREAD = 0.01
"""Smallest radius of gyration, m; inertias in a URDF are often tiny or zero."""

Bounds = tuple[ArrayLike, ArrayLike]
"""Lowest and highest corner of a box, (3,) each, m."""


def spread_of_links(model: RobotModel) -> Array:
    """
    Return the spread of each link's mass about its centre, from the URDF's inertias.

    Returns
    -------
    numpy.ndarray
        ``Sigma0 = (tr(I) / 2 - I) / m``, the second central moment, along the link's axes, (L,
        3, 3), m^2; every eigenvalue at least :data:`SMALLEST_SPREAD` squared.

    """
    links = {str(link.get('name')): link
             for link in urdf_tools.parse_urdf(model.urdf).findall('link')}
    spreads = []
    for name, mass in zip(model.link_names, model.link_masses):
        inertia = _inertia_along_link(links[name])
        values, vectors = np.linalg.eigh((0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass)
        spreads.append((vectors * np.maximum(values, SMALLEST_SPREAD ** 2)) @ vectors.T)
    return np.array(spreads)


def com_bounds(model: RobotModel, margin: float = 0.0) -> dict[str, Bounds]:
    """
    Return the box around each link's geometry, in the link's frame, where it is known.

    Parameters
    ----------
    model
        The robot; collision shapes and, where a link has none, visual ones. Links whose mesh
        files cannot be read are left out.
    margin
        Added on every side, m.

    """
    bounds: dict[str, Bounds] = {}
    for link in urdf_tools.parse_urdf(model.urdf).findall('link'):
        name = str(link.get('name'))
        shapes = link.findall('collision') or link.findall('visual')
        if name not in model.link_names or not shapes:
            continue
        corners = [_corners(shape) for shape in shapes]
        if all(c is not None for c in corners):
            points = np.concatenate([c for c in corners if c is not None])
            bounds[name] = points.min(axis=0) - margin, points.max(axis=0) + margin
    return bounds


def missing_inertials(model: RobotModel) -> str:
    """
    Return a warning about moving links with a shape but without mass in the URDF, or ''.

    Their mass would be attributed to the links that they are attached to.
    """
    robot = urdf_tools.parse_urdf(model.urdf)
    moved = {child.get('link') for joint in robot.findall('joint')
             if joint.get('type') != 'fixed' for child in joint.findall('child')}
    missing = [f"'{link.get('name')}'" for link in robot.findall('link')
               if link.get('name') in moved and link.get('name') not in model.link_names
               and (link.find('visual') is not None or link.find('collision') is not None)]
    if not missing:
        return ''
    return (f'{", ".join(missing)} of the URDF: a shape but no mass, which is attributed to other '
            'links; add an <inertial>, a rough one is enough')


def _inertia_along_link(link: ElementTree.Element) -> Array:
    inertial = link.find('inertial')
    element = inertial.find('inertia') if inertial is not None else None
    if inertial is None or element is None:
        return np.zeros((3, 3))
    xx, xy, xz, yy, yz, zz = (float(element.get(key, '0'))
                              for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'))
    R = origin_of(inertial).rotation
    return R @ np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))) @ R.T


def origin_of(element: ElementTree.Element) -> Pose:
    """Return the pose in an element's <origin>, or the identity."""
    origin = element.find('origin')
    xyz, rpy = ('0 0 0', '0 0 0') if origin is None else (
        origin.get('xyz', '0 0 0'), origin.get('rpy', '0 0 0'))
    roll, pitch, yaw = (float(part) for part in rpy.split())
    return Pose.from_rpy((roll, pitch, yaw), np.array([float(part) for part in xyz.split()]))


def _corners(shape: ElementTree.Element) -> Array | None:
    """Return corners (8, 3) of a box around a shape, in the link; None if unknown."""
    half = _half_size(shape.find('geometry'))
    if half is None:
        return None
    low, high = half
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1])
                        for z in (low[2], high[2])])
    return origin_of(shape).apply(corners)


def _half_size(geometry: ElementTree.Element | None) -> tuple[Array, Array] | None:
    if geometry is None or not len(geometry):
        return None
    shape = geometry[0]
    if shape.tag == 'box':
        half = 0.5 * np.array([float(part) for part in shape.get('size', '0 0 0').split()])
        return -half, half
    if shape.tag in ('cylinder', 'capsule'):
        r, length = float(shape.get('radius', '0')), 0.5 * float(shape.get('length', '0'))
        half = np.array((r, r, length + (r if shape.tag == 'capsule' else 0.0)))
        return -half, half
    if shape.tag == 'sphere':
        half = np.full(3, float(shape.get('radius', '0')))
        return -half, half
    return _mesh_box(shape) if shape.tag == 'mesh' else None


def _mesh_box(mesh: ElementTree.Element) -> tuple[Array, Array] | None:
    try:
        path = resolve_uri(mesh.get('filename', ''))
        box = _load_box(path)
    except (ConfigurationError, RuntimeError, ValueError, ImportError):
        return None
    scale = np.array([float(part) for part in mesh.get('scale', '1 1 1').split()])
    corners = np.array(box) * scale
    return corners.min(axis=0), corners.max(axis=0)


_BOXES: dict[Path, tuple[Array, Array]] = {}


def _load_box(path: Path) -> tuple[Array, Array]:
    if path not in _BOXES:
        import coal  # only needed for meshes
        mesh: Any = coal.MeshLoader().load(str(path))
        mesh.computeLocalAABB()
        _BOXES[path] = (np.array(mesh.aabb_local.min_), np.array(mesh.aabb_local.max_))
    return _BOXES[path]
