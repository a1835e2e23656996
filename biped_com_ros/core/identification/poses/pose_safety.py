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
Options of planned poses, checks of postures (limits, balance, torques, collision), and safe paths.

Paths are straight in the coordinates of :class:`~.PosturePoint`, so that standing soles stay
level and the centre of mass moves straight over the ground; every step of them is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import logging
import math
from xml.etree import ElementTree

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, predict_capture, StaticsRegressor)
from biped_com_ros.core.identification.poses.stances import PosturePoint, Stances
from biped_com_ros.core.model.efforts import effort_scales
from biped_com_ros.core.model.robot import position_limits, RobotModel
from biped_com_ros.core.model.urdf import parse_urdf, resolve_meshes
from biped_com_ros.core.settings import setting, Settings
import numpy as np
import pinocchio as pin

APPROACHES = ('both', 'shortest')
"""Ways to approach poses, see `DesignOptions`."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


#: Distance kept from joint limits, rad.
_LIMIT_MARGIN = 0.03
#: Distance between links that counts as a collision, m.
_CLEARANCE = 0.005
#: Largest change of a joint between two checked points of a path, rad.
STEP = 0.1


@dataclass(frozen=True, kw_only=True)
class DesignOptions(Settings):
    """Number and limits of planned poses."""

    count: int = setting(40, 'Number of planned poses', '', 1, 500, name='poses')
    candidates: int = setting(
        300, 'Number of safe random poses from which the planned ones are chosen', '', 1, 10000)
    hoisted: int = setting(
        2, 'Number of planned poses with the robot hoisted, its feet in the air: only these '
        "measure the mass below the feet's sensors", '', 0, 20)
    #: Share of candidates on all feet; the others stand on one foot each in turn; 1 for robots
    #: that must not lift a foot.
    double_support: float = 0.34
    margin: float = setting(
        0.02, 'Distance kept from the edge of the support polygon', 'm', 0.001, 0.5)
    #: Largest tilt of the floor, by which the margin grows with the height of the centre of mass,
    #: rad.
    floor_tilt: float = 0.0
    torque_share: float = setting(
        0.8, "Largest share of a motor's torque that is used", '', 0.05, 1.0)
    spread: float = setting(
        1.2, 'Largest distance of joints outside of the legs from posture stand', 'rad', 0.05, 3.2)
    lean: float = setting(0.2, 'Largest lean and turn of the base', 'rad', 0.0, 0.8)
    #: Largest lowering of the base, as a share of its height.
    crouch: float = 0.08
    torso_bend: float = setting(
        0.0, 'Largest bend of a tendon torso; its virtual joints are sent with the others. 0: it '
        'stays straight', 'rad', 0.0, 0.5, read_only=True)
    fixed_joints: tuple[str, ...] = ()
    approach: str = setting(
        'both', 'With move: whether each pose is visited once (shortest) or twice, and its joints '
        'come to rest from opposite sides (both), so that their friction can be distinguished '
        'from mass', options=APPROACHES)
    #: With approach both: how far from a pose the last move of each joint into it begins, rad.
    approach_angle: float = 0.05
    seed: int = setting(0, 'Seed of the random poses', '', 0, 1000000)
    postures: tuple[str, ...] = setting(
        (), "Postures of the robot's YAML, in this sequence, instead of planned poses; the joints "
        'move between them on straight lines, with all soles on the ground')

    @property
    def visits(self) -> int:
        """Return the number of captures."""
        if self.postures:
            return len(self.postures)
        return self.count * (2 if self.approach == 'both' else 1)


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
    """Return the collision geometry, without meshes that cannot be found; empty if unreadable."""
    robot = parse_urdf(model.urdf)
    for link in robot.findall('link'):
        for visual in link.findall('visual'):
            link.remove(visual)
    for problem in resolve_meshes(robot):
        _log.warning('self-collision of %s is checked in part: %s', model.config.name, problem)
    try:
        return pin.buildGeomFromUrdfString(
            model.pin_model, ElementTree.tostring(robot, encoding='unicode'),
            pin.GeometryType.COLLISION)
    except (ValueError, RuntimeError) as error:
        _log.warning('self-collision of %s is not checked: %s', model.config.name, error)
        return pin.GeometryModel()


class PoseSafety:
    """
    Decides which postures a robot may take.

    Parameters
    ----------
    regressor
        Of the robot.
    stances
        Of the robot.
    options
        Limits of poses.

    Attributes
    ----------
    lower, upper
        Limits of the joints with the margin that is kept from them, (n,), rad or m.

    """

    def __init__(self, regressor: StaticsRegressor, stances: Stances,
                 options: DesignOptions) -> None:
        model = regressor.model
        self._regressor, self._stances, self._options = regressor, stances, options
        self._theta, self._effort_scales = parameters_of(model), effort_scales(model)
        self._collision = SelfCollision(
            model, [model.posture(name) for name in model.config.postures], _CLEARANCE)
        self.lower, self.upper = _limits(model, _LIMIT_MARGIN)
        self._tilt_margin = math.tan(options.floor_tilt) * stances.com_height

    def check(self, positions: Array, standing: tuple[str, ...]) -> tuple[Capture, float, float]:
        """
        Return the predicted capture, the stability margin in m and the largest torque share.

        Parameters
        ----------
        positions
            Of the joints, (n,), rad or m.
        standing
            Feet on the ground, by name; none where the robot hangs.

        Raises
        ------
        InputError
            If the posture is not safe; the message is the reason.

        """
        self._check_limits(positions)
        margin = self._check_balance(positions, standing, 0.01, self._options.margin)
        capture = predict_capture(self._regressor, positions, standing, self._theta)
        shares = np.abs(np.nan_to_num(capture.torques)) / self._effort_scales
        share = float(shares.max(initial=0.0))
        if share > self._options.torque_share:
            name = self._regressor.model.joint_names[int(shares.argmax())]
            raise InputError(f"torque of motor '{name}'")
        self._check_collision(positions)
        return capture, margin, share

    def is_safe_on_path(self, positions: Array, standing: tuple[str, ...]) -> bool:
        """Whether a posture on the way to a pose is safe; half of the margin is enough."""
        try:
            self._check_limits(positions)
            self._check_balance(positions, standing, -1e-3, 0.5 * self._options.margin)
            self._check_collision(positions)
        except InputError:
            return False
        return True

    def _check_limits(self, positions: Array) -> None:
        beyond = np.maximum(self.lower - positions, positions - self.upper)
        if (beyond > 0.0).any():
            name = self._regressor.model.joint_names[int(beyond.argmax())]
            raise InputError(f"limit of joint '{name}'")

    def _check_balance(self, positions: Array, standing: tuple[str, ...], clearance: float,
                       margin: float) -> float:
        if not standing:
            return math.inf
        if self._stances.swing_height(positions, standing) < clearance:
            raise InputError('foot in the air touches the ground')
        found = self._stances.stability_margin(positions, standing)
        if found < margin + self._tilt_margin:
            raise InputError('centre of mass too near the edge')
        return found

    def _check_collision(self, positions: Array) -> None:
        touching = self._collision.touching(positions)
        if touching is not None:
            raise InputError(f"collision of '{touching[0]}' with '{touching[1]}'")


def _limits(model: RobotModel, margin: float) -> tuple[Array, Array]:
    """Return lower and upper limits of the joints, (n,) each, inside the URDF's by `margin`."""
    low, high = position_limits(model)
    low, high = np.maximum(low, -np.pi), np.minimum(high, np.pi)
    # Joints with a small range keep most of it; posture stand may be at a limit.
    kept = np.minimum(margin, 0.2 * (high - low))
    stand = model.posture('stand')
    return np.minimum(low + kept, stand), np.maximum(high - kept, stand)


class PathPlanner:
    """
    Plans paths of a robot between placements.

    Parameters
    ----------
    stances
        Of the robot.
    safety
        Checks every step.
    step
        Largest change of a joint between two steps, rad.

    """

    def __init__(self, stances: Stances, safety: PoseSafety, step: float) -> None:
        self._model, self._stances, self._safety = stances.model, stances, safety
        self._step_size = step

    def home(self) -> PosturePoint:
        """Return the home posture on all feet."""
        return self._stances.home(tuple(self._model.config.feet))

    def lifted_home(self, standing: tuple[str, ...]) -> PosturePoint:
        """Return the home posture on some feet, with the others lifted clear of the ground."""
        alone = len(standing) < len(self._model.config.feet)
        return self._stances.home(standing, 0.05 * self._stances.leg_length if alone else 0.0)

    def is_reachable(self, placement: PosturePoint) -> bool:
        """Whether there is a safe straight path from the home posture on the same feet."""
        return self.straight(self.lifted_home(placement.standing), placement) is not None

    def solve(self, placement: PosturePoint) -> Array | None:
        """Return the positions of all joints (n,), or None if the legs do not reach."""
        try:
            return self._stances.positions(placement)
        except InputError:
            return None

    def steps(self, start: PosturePoint, end: PosturePoint) -> list[Array]:
        """
        Return safe steps from `start` (excluded), straight if possible, else by `lifted_home`.

        Between hanging and standing the robot is lifted or lowered in the home posture: the path
        begins there.

        Raises
        ------
        InputError
            If the robot cannot shift its weight safely.

        """
        if bool(start.standing) != bool(end.standing):
            start = self.home() if end.standing else self._stances.home(())
        if start.standing == end.standing:
            direct = self.straight(start, end)
            if direct is not None:
                return direct
        via = self._detour(start, end)
        path: list[Array] = []
        for one, other in zip([start, *via], [*via, end]):
            part = self.straight(one, other)
            if part is None:
                raise InputError(
                    f'{self._model.config.name} cannot shift its weight from '
                    f'{" and ".join(start.standing)} to {" and ".join(end.standing)} safely; set '
                    'double_support to 1, or widen the margin of its limits')
            path.extend(part)
        return path

    def _detour(self, start: PosturePoint, end: PosturePoint) -> list[PosturePoint]:
        if start.standing == end.standing:
            return [self.lifted_home(start.standing)]
        feet = tuple(self._model.config.feet)
        via: list[PosturePoint] = [self.lifted_home(start.standing)]
        if len(start.standing) < len(feet):
            via += [*self._step(start.standing)[::-1], self._stances.home(feet)]
        if len(end.standing) < len(feet):
            via += [*self._step(end.standing), self.lifted_home(end.standing)]
        return via

    def _step(self, standing: tuple[str, ...]) -> list[PosturePoint]:
        """Return placements that load one foot: on all feet, then with the others unloaded."""
        feet, home = tuple(self._model.config.feet), self._stances.home(standing)
        on_all = PosturePoint(feet, home.free_joints, home.height, com_target=home.com_target)
        return [on_all, home]

    def straight(self, start: PosturePoint, end: PosturePoint) -> list[Array] | None:
        """Return checked steps from one placement (excluded) to another, or None."""
        if start.standing != end.standing:
            # Same posture, other feet loaded: a foot is lifted or put down.
            return []
        positions = self.solve(end)
        before = self.solve(start)
        if positions is None or before is None:
            return None
        steps = max(1, math.ceil(float(np.abs(positions - before).max()) / self._step_size))
        path = []
        for i in range(1, steps + 1):
            q = self.solve(start.towards(end, i / steps))
            if q is None or not self._safety.is_safe_on_path(q, start.standing):
                return None
            path.append(q)
        return path
