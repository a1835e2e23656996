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
Odometry from elsewhere, of cameras or lidars, in the filter of the base.

What legs and IMU cannot know, heading and place after a long way, is corrected by it. Its frame
is aligned with the world by the first message. Messages are late: a pose is compared with the
estimate of its own instant, and the difference corrects the present estimate, a fixed time after
the stamp. So the result does not depend on when messages arrive within that time.
Jumps, as by a loop that is closed, are rejected; an odometry that stays elsewhere is aligned anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.geometry.pose import Array, Pose, yaw_of
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.settings import setting, Settings
from biped_com_ros.core.state.invariant_filter import ATTITUDE, InvariantFilter, POSITION
import numpy as np
import pinocchio as pin

#: Normalised square of an innovation, of position and heading, beyond which it is a jump.
_GATE = 25.0
#: Time without an accepted message after which the odometry is aligned anew, ns.
_REALIGN_NS = nanoseconds(1.0)
#: Standard deviation of a message's heading, rad.
_HEADING = 0.01
#: For how long messages and estimates are kept beyond the delay, ns.
_KEPT_NS = nanoseconds(1.0)


@dataclass(frozen=True, kw_only=True)
class ExternalSettings(Settings):
    """How good the odometry is."""

    deviation: float = setting(
        0.02, 'Standard deviation of the positions on filter_odometry_topic', 'm', 1e-4, 10.0)
    delay: float = setting(
        0.1, 'Time after its stamp at which a message on filter_odometry_topic is used: the '
        'longest that messages take to arrive', 's', 0.0, 2.0)


class ExternalOdometry:
    """
    Corrects an invariant filter by poses of the base in another frame.

    Parameters
    ----------
    settings
        How good these are.

    Attributes
    ----------
    rejected
        Number of messages that were jumps.
    is_used
        Whether there was a message.

    """

    def __init__(self, settings: ExternalSettings) -> None:
        self.settings, self.rejected, self.is_used = settings, 0, False
        self._waiting: deque[tuple[int, Pose]] = deque()
        self.reset()

    def reset(self) -> None:
        """Align the odometry anew by the next message."""
        self._estimates: deque[tuple[int, Pose]] = deque()
        self._to_world: Pose | None = None
        self._accepted_ns = 0

    def add(self, stamp_ns: int, pose: Pose) -> None:
        """Take the pose of the base in the frame of the odometry at a time, ns."""
        if self._waiting and stamp_ns < self._waiting[-1][0]:  # the clock was set back
            self._waiting.clear()
        self._keep(self._waiting, stamp_ns, pose)
        self.is_used = True

    def record(self, stamp_ns: int, base: Pose) -> None:
        """Keep the estimated pose of the base in the world at a time, ns."""
        self._keep(self._estimates, stamp_ns, base)

    def _keep(self, queue: deque[tuple[int, Pose]], stamp_ns: int, pose: Pose) -> None:
        queue.append((stamp_ns, pose))
        oldest_ns = stamp_ns - nanoseconds(self.settings.delay) - _KEPT_NS
        while queue[0][0] < oldest_ns:
            queue.popleft()

    def correct(self, stamp_ns: int, base_filter: InvariantFilter) -> None:
        """Correct the filter at a time, ns, by the messages that are due."""
        due_ns = stamp_ns - nanoseconds(self.settings.delay)
        while self._waiting and self._waiting[0][0] <= due_ns:
            measured_ns, pose = self._waiting.popleft()
            base = self._estimate_at(measured_ns)
            if base is not None:
                self._use(measured_ns, base, pose, base_filter)

    def _estimate_at(self, stamp_ns: int) -> Pose | None:
        """Return the last estimate up to a time, ns; None if it is not known any more."""
        estimates = self._estimates
        while len(estimates) > 1 and estimates[1][0] <= stamp_ns:
            estimates.popleft()
        return estimates[0][1] if estimates and estimates[0][0] <= stamp_ns else None

    def _use(self, stamp_ns: int, base: Pose, pose: Pose, base_filter: InvariantFilter) -> None:
        if self._to_world is None or stamp_ns - self._accepted_ns > _REALIGN_NS:
            self._to_world = _align(base, pose)
            self._accepted_ns = stamp_ns
            return
        measured = self._to_world @ pose
        turn = pin.log3(base.rotation.dot(measured.rotation.T))
        H = np.zeros((4, base_filter.size))
        H[:3, ATTITUDE], H[:3, POSITION] = -skew(base.position), np.eye(3)
        H[3, 2] = 1.0
        settings, before = self.settings, (base_filter.R_world_imu, base_filter.position)
        variances = np.array((settings.deviation,) * 3 + (_HEADING,)) ** 2
        innovation = np.append(base.position - measured.position, turn[2])
        if base_filter.update(H, innovation, variances, _GATE):
            self._accepted_ns = stamp_ns
            self._correct_estimates(base_filter, *before)
        else:
            self.rejected += 1

    def _correct_estimates(self, base_filter: InvariantFilter, R_before: Array,
                           before: Array) -> None:
        """Move the kept estimates, too: else the next message would correct the same error."""
        rotation = base_filter.R_world_imu.dot(R_before.T)
        change = Pose(rotation, base_filter.position - rotation.dot(before))
        self._estimates = deque([(ns, change @ base) for ns, base in self._estimates])


def _align(base: Pose, pose: Pose) -> Pose:
    """Return the frame of the odometry in the world, both of which are level."""
    heading = yaw_of(base.rotation) - yaw_of(pose.rotation)
    rotation = pin.exp3(np.array((0.0, 0.0, heading)))
    return Pose(rotation, base.position - rotation.dot(pose.position))
