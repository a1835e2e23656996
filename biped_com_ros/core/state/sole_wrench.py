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
"""Wrenches on a foot in its sole frame, from whatever frame of that foot they are given in."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel


class SoleWrench:
    """
    Moves wrenches on one foot to its sole frame.

    Parameters
    ----------
    model
        The robot.
    foot
        Index of the foot in ``config.feet``.

    """

    def __init__(self, model: RobotModel, foot: int) -> None:
        self._model, self._foot = model, foot
        self.sole_frame = model.config.sole_frame(model.soles.names[foot])
        #: By frame; None for the sole frame itself.
        self._adjoints: dict[str, Array | None] = {self.sole_frame: None}

    def move(self, wrench: Array, frame: str) -> list[float]:
        """
        Return a wrench (6,) of a frame in the sole frame, as six plain numbers.

        Raises
        ------
        UnknownNameError
            If the robot has no such frame.
        ConfigurationError
            If the frame is not fixed to the sole.

        """
        if frame not in self._adjoints:
            self._adjoints[frame] = self._adjoint(frame)
        X_sole_frame = self._adjoints[frame]
        return (
            wrench if X_sole_frame is None else X_sole_frame.dot(wrench)).tolist()

    def _adjoint(self, frame: str) -> Array:
        model, soles = self._model, self._model.soles
        name = soles.names[self._foot]
        if frame not in model.frame_names:
            raise UnknownNameError('frame', frame, (self.sole_frame, *model.frame_names),
                                   f"the wrench of foot '{name}'")
        frames = model.frames((frame,))
        if frames.joints[0] != soles.joints[self._foot]:
            raise ConfigurationError(
                f"the wrench of foot '{name}' is in frame '{frame}', which is not fixed to its "
                f"sole '{self.sole_frame}': set wrench_topics to a topic whose frame moves with "
                'the sole')
        pose = soles.poses_in_joint()[self._foot].inverse() @ frames.poses_in_joint()[0]
        return wrench_adjoint(pose.rotation, pose.position)
