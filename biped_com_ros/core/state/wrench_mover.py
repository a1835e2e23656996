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
"""Wrenches on a foot or hand in its own frame, from whatever frame of it they are given in."""

from __future__ import annotations

from biped_com_ros.core.errors import brief, ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel


def mover_to_sole(model: RobotModel, foot: int) -> WrenchMover:
    """Return what moves wrenches to the sole of a foot, by its index in ``config.feet``."""
    soles = model.soles
    name = soles.names[foot]
    return WrenchMover(model, f"foot '{name}'", 'sole', model.config.sole_frame(name),
                       int(soles.joints[foot]), soles.poses_in_joint()[foot])


def mover_to_hand(model: RobotModel, hand: str) -> WrenchMover:
    """Return what moves wrenches to the frame of a hand of the configuration."""
    frame = model.config.hands[hand].frame
    frames = model.frames((frame,))
    return WrenchMover(model, f"hand '{hand}'", 'frame', frame, int(frames.joints[0]),
                       frames.poses_in_joint()[0])


class WrenchMover:
    """
    Moves wrenches on one body to the frame of its contact.

    Parameters
    ----------
    model
        The robot.
    body, contact
        What the body and its contact's frame are called in messages.
    frame
        Name of the contact's frame, a link or the sole frame that the URDF lacks.
    joint, pose_in_joint
        The joint that moves it, and its pose in that joint.

    """

    def __init__(self, model: RobotModel, body: str, contact: str, frame: str, joint: int,
                 pose_in_joint: Pose) -> None:
        self._model, self._body, self._contact, self._frame = model, body, contact, frame
        self._joint, self._pose_in_joint = joint, pose_in_joint
        #: By frame; None for the contact's frame itself.
        self._adjoints: dict[str, Array | None] = {frame: None}

    def move(self, wrench: Array, frame: str) -> list[float]:
        """
        Return a wrench (6,) of a frame in the contact's frame, as six Python floats.

        Raises
        ------
        UnknownNameError
            If the robot has no such frame.
        ConfigurationError
            If the frame is not fixed to the body.

        """
        if frame not in self._adjoints:
            self._adjoints[frame] = self._adjoint(frame)
        X_contact_frame = self._adjoints[frame]
        return (
            wrench if X_contact_frame is None else X_contact_frame.dot(wrench)).tolist()

    def _adjoint(self, frame: str) -> Array:
        model = self._model
        if frame not in model.frame_names:
            known = max((name for name in model.frame_names if frame.endswith(name)), key=len,
                        default=frame)
            prefix = frame.removesuffix(known)
            raise UnknownNameError(
                'frame', frame, (self._frame, *model.frame_names), f'the wrench of {self._body}'
                + (f" (set the parameter frame_prefix to '{brief(prefix)}')" if prefix else ''))
        frames = model.frames((frame,))
        if frames.joints[0] != self._joint:
            raise ConfigurationError(
                f"the wrench of {self._body} is in frame '{frame}', which is not fixed to its "
                f"{self._contact} '{self._frame}': choose a topic (wrench_topics, "
                'hand_wrench_topics) whose frame moves with it')
        pose = self._pose_in_joint.inverse() @ frames.poses_in_joint()[0]
        return wrench_adjoint(pose.rotation, pose.position)
