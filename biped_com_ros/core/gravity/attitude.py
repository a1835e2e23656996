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
"""The attitude of the base from an IMU on any link, and whether it is plausible."""

from __future__ import annotations

import math

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.geometry.pose import Array, rotation_from_quaternion
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


class MountedImu:
    """
    An IMU on the base or on any other link, and the vertical that it measures.

    Parameters
    ----------
    model, frame
        The robot, and the frame of the IMU.

    """

    def __init__(self, model: RobotModel, frame: str) -> None:
        frames = model.frames((frame,))
        self._joint, self._in_joint = int(frames.joints[0]), frames.placement_in_joint[0, :3]
        self.update(np.array((0.0, 0.0, 0.0, 1.0)))

    def update(self, quaternion: Array) -> None:
        """
        Set the IMU's orientation in the world (x, y, z, w), z up; the heading does not matter.

        Raises
        ------
        InputError
            If this is no rotation; the last one then stays.

        """
        self._up = rotation_from_quaternion(quaternion)[2]

    def up_in_base(self, joints: Array) -> Array:
        """
        Return the unit vector against gravity along the axes of the base, (3,).

        Parameters
        ----------
        joints
            Placements of all joints in the base, (joints, 4, 3).

        """
        return self._up.dot(self._in_joint).dot(joints[self._joint])


class UprightCheck:
    """
    Whether an IMU's orientation is plausible: not too tilted, no jump.

    Parameters
    ----------
    max_tilt
        Largest angle between the base's z axis and the vertical, rad.
    max_speed
        Fastest change of the direction of gravity in the base, rad/s.
    settle_time
        How long readings have to be steady after a jump, s.

    Attributes
    ----------
    problem
        Why the last reading was not plausible; '' if it was.

    """

    #: A change by less is never a jump, however short the time, rad.
    TOLERANCE = 0.02

    def __init__(self, max_tilt: float, max_speed: float, settle_time: float) -> None:
        self.configure(max_tilt, max_speed, settle_time)
        self.reset()

    def configure(self, max_tilt: float, max_speed: float, settle_time: float) -> None:
        """Use other limits; the readings are kept."""
        self.max_tilt, self.max_speed, self.settle_time = max_tilt, max_speed, settle_time
        self._least_up = math.cos(min(max_tilt, math.pi))

    def reset(self) -> None:
        """Discard all readings."""
        self.problem = ''
        self._up: list[float] | None = None
        self._ns = 0
        self._settled_ns: int | None = None
        self._jump = ''

    def update(self, up_in_base: list[float], stamp_ns: int) -> bool:
        """Check the unit vector against gravity (x, y, z) at a time (ns)."""
        before, before_ns = self._up, self._ns
        self._up, self._ns = up_in_base, stamp_ns
        # A chord is shorter than its arc.
        if (before is not None and stamp_ns > before_ns
                and (chord := math.dist(before, up_in_base)) > self.TOLERANCE):
            self._check_speed(chord, stamp_ns - before_ns)
        if self._settled_ns is not None and stamp_ns >= self._settled_ns:
            self._settled_ns, self._jump = None, ''
        up_z = up_in_base[2]
        self.problem = self._jump if up_z >= self._least_up else self._describe_tilt(up_z)
        return not self.problem

    def _check_speed(self, chord: float, ns: int) -> None:
        angle = 2.0 * math.asin(min(0.5 * chord, 1.0))
        if angle > self.TOLERANCE + self.max_speed * 1e-9 * ns:
            self._settled_ns = self._ns + nanoseconds(self.settle_time)
            self._jump = (
                f"the IMU's orientation jumped by {math.degrees(angle):.1f} deg in "
                f'{1e-6 * ns:.3g} ms (at most {self.max_speed:g} rad/s is plausible): check the '
                f'IMU and its driver; it is used again after {self.settle_time:g} s (settle_time) '
                'without a jump')

    def _describe_tilt(self, up_z: float) -> str:
        tilt = math.degrees(math.acos(min(max(up_z, -1.0), 1.0)))
        return (f'by the IMU the base is tilted by {tilt:.0f} deg (max_tilt '
                f'{math.degrees(self.max_tilt):.0f} deg): check how the IMU is mounted')
