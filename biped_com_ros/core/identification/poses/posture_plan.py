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
Goes through postures of the robot's YAML, instead of planned poses.

For procedures that prescribe the poses, as that of Muscolo et al. 2017: upright (a), leaning about
the ankles (b), bent at the knees (c). The joints move on straight lines, all soles on the ground.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    StaticsRegressor, TYPICAL_NOISE)
from biped_com_ros.core.identification.poses.pose_design import PlannedPose
from biped_com_ros.core.identification.poses.pose_safety import (
    DesignOptions, no_progress, PoseSafety, Progress, STEP)
from biped_com_ros.core.identification.poses.stances import PosturePoint, Stances
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

SOLE_SHIFT = 0.002
"""By how much soles on the ground may move relative to each other, m; and their edges, a decimetre
away from the origin, by turning."""


@dataclass(frozen=True)
class PosturePlan:
    """
    Postures in the sequence in which they are taken.

    Attributes
    ----------
    poses
        Of which the first path begins in posture ``stand``.

    """

    poses: tuple[PlannedPose, ...]

    @property
    def lift_request(self) -> str:
        """Return the instruction to lift the robot: none, it stands all the time."""
        return ''

    def summary(self) -> str:
        """Return the names and the least margins as text."""
        margin = min(pose.margin for pose in self.poses)
        names = ', '.join(pose.name for pose in self.poses)
        return (f'{names}; the centre of mass stays {1e3 * margin:.0f} mm inside the edges of the '
                'support')


class PosturePlanner:
    """
    Plans the way through postures.

    Parameters
    ----------
    model
        The robot.
    options
        The names of the postures, and limits of poses.
    noise
        As for the estimate.

    """

    def __init__(self, model: RobotModel, options: DesignOptions,
                 noise: SensorNoise = TYPICAL_NOISE) -> None:
        self.model, self.options = model, options
        stances = Stances(model)
        self._safety = PoseSafety(StaticsRegressor(model), stances, options)
        self._feet = tuple(model.config.feet)
        self._stand = model.posture('stand')

    def design(self, progress: Progress = no_progress) -> PosturePlan:
        """
        Check the postures and the ways between them.

        Raises
        ------
        InputError
            If one is unknown or not safe, naming it and the reason.

        """
        at, poses, names = self._stand, [], self.options.postures
        for i, name in enumerate(names):
            positions = self.model.posture(name)
            margin, share = self._check(name, positions)
            path = self._path(at, positions, f"posture '{name}' of {self.model.config.name}")
            again = names[:i].count(name)
            poses.append(PlannedPose(
                name=f'posture {name}' + (f', time {again + 1}' if again else ''),
                placement=PosturePoint(self._feet, positions), positions=positions, path=path,
                margin=margin, torque_share=share))
            at = positions
            progress('checking postures', i + 1, len(names))
        return PosturePlan(tuple(poses))

    def remaining(self, design: PosturePlan, done: Collection[str]) -> list[PlannedPose]:
        """Return the postures that are not in `done`; the first path begins in ``stand``."""
        at, poses = self._stand, []
        for pose in design.poses:
            if pose.name not in done:
                poses.append(replace(pose, path=self._path(at, pose.positions, pose.name)))
                at = pose.positions
        return poses

    def way_home(self, pose: PlannedPose) -> Array:
        """Return a safe path to posture ``stand``, (steps, n)."""
        return self._path(pose.positions, self._stand, 'posture stand')

    def locate(self, design: PosturePlan, positions: Array,
               tolerance: float) -> PlannedPose | None:
        """Return the posture that the robot is in, see :meth:`PlannedPose.locate`."""
        return PlannedPose.locate(
            self.model, positions, tolerance, (self._stand,), design.poses)

    def _check(self, name: str, positions: Array) -> tuple[float, float]:
        try:
            _, margin, share = self._safety.check(positions, self._feet)
        except InputError as error:
            raise InputError(
                f"posture '{name}' of {self.model.config.name} is not safe: {error}") from error
        return margin, share

    def _path(self, start: Array, end: Array, what: str) -> Array:
        """Return safe steps from `start` (excluded) straight to `end`, (steps, n)."""
        count = max(1, math.ceil(float(np.abs(end - start).max()) / STEP))
        path = np.array([start + (end - start) * i / count for i in range(1, count + 1)])
        for q in path:
            self._check_soles(start, q, what)
            if not self._safety.is_safe_on_path(q, self._feet):
                raise InputError(
                    f'the straight way to {what} is not safe: a joint limit, the edge of the '
                    'support or a collision is in the way; add a posture between')
        return path

    def _check_soles(self, start: Array, positions: Array, what: str) -> None:
        """Refuse ways on which soles on the ground would slide or tilt against each other."""
        pairs = list(zip(self._soles_from_first(start), self._soles_from_first(positions)))
        moved = max(float(np.abs(b.position - a.position).max()) for a, b in pairs)
        turned = max(float(np.abs(b.rotation - a.rotation).max()) for a, b in pairs)
        if max(moved, 0.1 * turned) > SOLE_SHIFT:
            raise InputError(
                f'on the way to {what} the soles would move against each other, by up to '
                f'{1e3 * moved:.0f} mm: legs of both sides must move alike')

    def _soles_from_first(self, positions: Array) -> list[Pose]:
        """Return the poses of the soles in the first one's frame."""
        soles = self.model.state(positions).poses_in_base(self.model.soles)
        to_first = soles[0].inverse()
        return [to_first @ sole for sole in soles]
