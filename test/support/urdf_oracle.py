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
"""A URDF walked with nothing but ElementTree, NumPy and SciPy, to test the others against."""

from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

GRAVITY = 9.81


def numbers(element, key, default='0 0 0'):
    """Return an attribute's numbers."""
    text = default if element is None else element.get(key, default)
    return np.array([float(part) for part in text.split()])


def pose(element):
    """4 x 4 matrix of an <origin>, which may be missing."""
    out = np.eye(4)
    out[:3, :3] = Rotation.from_euler('xyz', numbers(element, 'rpy')).as_matrix()
    out[:3, 3] = numbers(element, 'xyz')
    return out


@dataclass
class Shape:
    """A box (sizes), cylinder (radius, length) or sphere (radius) at a pose in its link."""

    kind: str
    size: np.ndarray
    pose: np.ndarray

    def reach(self, direction):
        """How far the shape extends from its own centre along a direction given in its axes."""
        x, y, z = np.abs(direction)
        if self.kind == 'box':
            return 0.5 * self.size @ (x, y, z)
        if self.kind == 'cylinder':
            return self.size[0] * np.hypot(x, y) + 0.5 * self.size[1] * z
        return self.size[0]

    def extent(self, pose_link, direction):
        """Smallest and largest coordinate along a direction of the world."""
        placed = pose_link @ self.pose
        middle = direction @ placed[:3, 3]
        reach = self.reach(placed[:3, :3].T @ direction)
        return middle - reach, middle + reach

    def contains(self, point):
        """Whether a point of the link lies within."""
        x, y, z = np.linalg.solve(self.pose, (*point, 1.0))[:3]
        if self.kind == 'box':
            return bool((np.abs((x, y, z)) < 0.5 * self.size).all())
        if self.kind == 'cylinder':
            return np.hypot(x, y) < self.size[0] and abs(z) < 0.5 * self.size[1]
        return np.hypot(np.hypot(x, y), z) < self.size[0]

    def cells(self, count=41):
        """Centres, in the link, of the cells of a grid that lie inside."""
        half = {'box': lambda s: 0.5 * s, 'cylinder': lambda s: np.array((s[0], s[0], 0.5 * s[1])),
                'sphere': lambda s: np.repeat(s[0], 3)}[self.kind](self.size)
        steps = (np.arange(count) + 0.5) / count * 2.0 - 1.0
        grid = np.stack(np.meshgrid(steps, steps, steps, indexing='ij'), -1).reshape(-1, 3) * half
        if self.kind == 'cylinder':
            grid = grid[np.hypot(grid[:, 0], grid[:, 1]) < self.size[0]]
        if self.kind == 'sphere':
            grid = grid[np.linalg.norm(grid, axis=1) < self.size[0]]
        return grid @ self.pose[:3, :3].T + self.pose[:3, 3]


@dataclass
class OracleLink:
    """A link's inertial, in the link's axes, and its shapes without a mesh."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray
    collisions: list
    visuals: list


@dataclass
class JointOracle:
    """A joint; the axis is a unit vector in its own frame."""

    kind: str
    parent: str
    child: str
    origin: np.ndarray
    axis: np.ndarray
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    mimic: tuple


class Tree:
    """A URDF's links and joints, and where they are in the root for given joint positions."""

    def __init__(self, urdf):
        robot = ElementTree.fromstring(urdf)
        self.links = {e.get('name'): _link(e) for e in robot.findall('link')}
        self.joints = {e.get('name'): _joint(e) for e in robot.findall('joint')}

    @property
    def mass(self):
        """Total mass, kg."""
        return sum(link.mass for link in self.links.values())

    def poses(self, positions):
        """Pose (4 x 4) of every link in the root."""
        children = {joint.child for joint in self.joints.values()}
        out = {name: np.eye(4) for name in self.links if name not in children}
        pending = list(self.joints)
        while pending:
            name = pending.pop(0)
            joint = self.joints[name]
            if joint.parent in out:
                out[joint.child] = out[joint.parent] @ joint.origin @ self._move(name, positions)
            else:
                pending.append(name)
        return out

    def below(self, link):
        """`link` and all that hangs on it."""
        found = [link]
        for name in found:
            found.extend(j.child for j in self.joints.values() if j.parent == name)
        return found

    def com(self, positions, links=None, poses=None):
        """Mass and centre of mass, in the root, of some links or all."""
        poses = self.poses(positions) if poses is None else poses
        links = [name for name in links or self.links if self.links[name].mass]
        masses = np.array([self.links[name].mass for name in links])
        points = np.array([(poses[n] @ (*self.links[n].com, 1.0))[:3] for n in links])
        return masses.sum(), masses @ points / masses.sum()

    def gravity_torque(self, name, positions, links=None):
        """
        Return what a joint must hold of the weight of some links on one side of it, N m.

        By default of all that hangs on it. Its sign is the load's.
        """
        joint, poses = self.joints[name], self.poses(positions)
        mass, com = self.com(positions, links or self.below(joint.child), poses)
        frame = poses[joint.child]
        moment = np.cross(com - frame[:3, 3], (0.0, 0.0, -GRAVITY * mass))
        return frame[:3, :3] @ joint.axis @ moment

    def highest_and_lowest(self, positions, kind='visuals'):
        """Top and bottom of all shapes along the root's z, m."""
        poses = self.poses(positions)
        spans = [shape.extent(poses[name], np.array((0.0, 0.0, 1.0)))
                 for name, link in self.links.items() for shape in getattr(link, kind)]
        return max(high for _, high in spans), min(low for low, _ in spans)

    def _move(self, name, positions):
        joint, out = self.joints[name], np.eye(4)
        if joint.mimic:
            leader, gain, offset = joint.mimic
            value = gain * positions.get(leader, 0.0) + offset
        else:
            value = positions.get(name, 0.0)
        if joint.kind == 'prismatic':
            out[:3, 3] = joint.axis * value
        elif joint.kind != 'fixed':
            out[:3, :3] = Rotation.from_rotvec(joint.axis * value).as_matrix()
        return out


def _link(element):
    shapes = {kind: [_shape(e) for e in element.findall(kind) if e.find('geometry/mesh') is None]
              for kind in ('collision', 'visual')}
    inertial = element.find('inertial')
    if inertial is None:
        return OracleLink(0.0, np.zeros(3), np.zeros((3, 3)), shapes['collision'],
                          shapes['visual'])
    frame, inertia = pose(inertial.find('origin')), inertial.find('inertia')
    xx, xy, xz, yy, yz, zz = (
        float(inertia.get(k)) for k in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'))
    matrix = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    turned = frame[:3, :3] @ matrix @ frame[:3, :3].T
    return OracleLink(float(inertial.find('mass').get('value')), frame[:3, 3], turned,
                      shapes['collision'], shapes['visual'])


def _shape(element):
    geometry = element.find('geometry')[0]
    keys = {'box': ('size',), 'cylinder': ('radius', 'length'), 'sphere': ('radius',)}
    size = np.concatenate([numbers(geometry, key) for key in keys[geometry.tag]])
    return Shape(geometry.tag, size, pose(element.find('origin')))


def _joint(element):
    limit, mimic = element.find('limit'), element.find('mimic')
    axis = numbers(element.find('axis'), 'xyz', '1 0 0')
    number = {key: float(limit.get(key, 0.0)) if limit is not None else 0.0
              for key in ('lower', 'upper', 'effort', 'velocity')}
    dynamics = element.find('dynamics')
    return JointOracle(
        kind=element.get('type'), parent=element.find('parent').get('link'),
        child=element.find('child').get('link'), origin=pose(element.find('origin')),
        axis=axis / (np.linalg.norm(axis) or 1.0), **number,
        damping=float(dynamics.get('damping', 0.0)) if dynamics is not None else 0.0,
        mimic=(mimic.get('joint'), float(mimic.get('multiplier', 1.0)),
               float(mimic.get('offset', 0.0))) if mimic is not None else ())
