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
"""Self-collision by coal, through Pinocchio, where the URDF has collision geometry."""

from __future__ import annotations

from collections.abc import Sequence
import logging
from pathlib import Path
import re

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.resources import find_package
from biped_com_ros.core.model.robot import RobotModel
import pinocchio as pin

_log = logging.getLogger(__name__)


class SelfCollision:
    """
    Finds collisions of a robot with itself.

    Links next to each other, and those that touch in the given postures by design, are ignored.

    Parameters
    ----------
    model
        The robot.
    harmless
        Postures (n,) whose contacts are by design.
    clearance
        Distance that counts as touching, m.

    """

    def __init__(self, model: RobotModel, harmless: Sequence[Array] = (),
                 clearance: float = 0.005) -> None:
        self._model, self._clearance = model, clearance
        self._data = pin.Data(model.pin_model)
        self._geometry = _load(model)
        self._add_pairs()
        self._geometry_data = self._make_data()
        self._drop_pairs(harmless)

    @property
    def pair_count(self) -> int:
        """Return the number of pairs of shapes that are checked; 0 without geometry."""
        return len(self._geometry.collisionPairs)

    def touching(self, positions: Array) -> tuple[str, str] | None:
        """Return the first two shapes that touch, by name, or None."""
        if not self.pair_count:
            return None
        q = self._model.configuration(positions)
        if not pin.computeCollisions(self._model.pin_model, self._data, self._geometry,
                                     self._geometry_data, q, True):
            return None
        for i, result in enumerate(self._geometry_data.collisionResults):
            if result.isCollision():
                return self._names(i)
        return None

    def _names(self, index: int) -> tuple[str, str]:
        pair = self._geometry.collisionPairs[index]
        objects = self._geometry.geometryObjects
        return str(objects[pair.first].name), str(objects[pair.second].name)

    def _add_pairs(self) -> None:
        objects, parents = self._geometry.geometryObjects, self._model.pin_model.parents
        for i, one in enumerate(objects):
            for j in range(i):
                a, b = int(one.parentJoint), int(objects[j].parentJoint)
                # Links up to two joints apart are shaped around each other.
                near = a == b or b in _above(parents, a, 2) or a in _above(parents, b, 2)
                if not near:
                    self._geometry.addCollisionPair(pin.CollisionPair(j, i))

    def _make_data(self) -> pin.GeometryData:
        data = pin.GeometryData(self._geometry)
        for request in data.collisionRequests:
            request.security_margin = self._clearance
        return data

    def _drop_pairs(self, harmless: Sequence[Array]) -> None:
        touching = set()
        for positions in harmless:
            pin.computeCollisions(self._model.pin_model, self._data, self._geometry,
                                  self._geometry_data, self._model.configuration(positions), False)
            touching |= {i for i, result in enumerate(self._geometry_data.collisionResults)
                         if result.isCollision()}
        pairs = [pin.CollisionPair(p.first, p.second)
                 for i, p in enumerate(self._geometry.collisionPairs) if i not in touching]
        self._geometry.removeAllCollisionPairs()
        for pair in pairs:
            self._geometry.addCollisionPair(pair)
        self._geometry_data = self._make_data()


def _above(parents: Sequence[int], joint: int, steps: int) -> set[int]:
    found = set()
    for _ in range(steps):
        joint = int(parents[joint])
        found.add(joint)
    return found - {0}


def _load(model: RobotModel) -> pin.GeometryModel:
    """Return the collision geometry; an empty one if a mesh cannot be found."""
    packages = sorted(set(re.findall(r'package://([^/"]+)/', model.urdf)))
    try:
        directories = [str(Path(find_package(name)).parent) for name in packages]
        return pin.buildGeomFromUrdfString(
            model.pin_model, model.urdf, pin.GeometryType.COLLISION,
            package_dirs=directories)
    except (ConfigurationError, ValueError, RuntimeError) as error:
        _log.warning('self-collision of %s is not checked: %s', model.config.name, error)
        return pin.GeometryModel()
