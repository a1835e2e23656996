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
"""Whether a robot walks by falling from step to step, so that its DCM may leave the support."""

from __future__ import annotations

from biped_com_ros.core.constants import nanoseconds, NEVER_NS

#: Shortest time in the air of a step.
_SHORTEST_SWING_NS = nanoseconds(0.1)
#: Time on all feet after which the robot stands.
_STANDS_NS = nanoseconds(0.3)


class StepWatch:
    """
    Detects steps that catch the divergent component of motion (DCM).

    In learned and other fast gaits the DCM is outside the support most of the time: each foot
    lands where it catches the fall. Slow steps, whose DCM stays inside, do not count. A robot
    whose DCM is outside at the first instant counts as walking, too: it may be in the midst of a
    step. So does one whose foot left the ground before the DCM left the support: the first step of
    a gait has yet to land.

    Parameters
    ----------
    timeout
        Time after the last such step, or after the first one's lift-off, during which the robot
        walks, s, unless it stands on all feet.

    """

    def __init__(self, timeout: float) -> None:
        self.set_timeout(timeout)
        self._in_contact: tuple[bool, ...] = ()
        #: Since when each foot is on the ground, or in the air.
        self._since_ns: list[int] = []
        self._step_ns, self._outside_ns, self._began_ns = NEVER_NS, NEVER_NS, NEVER_NS
        self._was_outside = False

    def set_timeout(self, timeout: float) -> None:
        """Use another timeout, s."""
        self._timeout_ns = nanoseconds(timeout)

    def update(self, ns: int, in_contact: tuple[bool, ...], dcm_margin: float | None) -> bool:
        """
        Update with an instant; return whether the robot walks.

        Parameters
        ----------
        ns
            Its time.
        in_contact
            Which feet are on the ground.
        dcm_margin
            Of the DCM inside the support, m; None without contact.

        """
        is_outside = dcm_margin is None or dcm_margin < 0.0
        if in_contact != self._in_contact:
            self._change(ns, in_contact, is_outside)
        self._was_outside = is_outside
        if is_outside:
            self._outside_ns = ns
            if not all(in_contact) and ns - self._began_ns < self._timeout_ns:
                return True
        if all(in_contact) and ns - max(self._since_ns) >= _STANDS_NS:
            return False
        return ns - self._step_ns < self._timeout_ns

    def _change(self, ns: int, in_contact: tuple[bool, ...], is_outside: bool) -> None:
        before, since_ns = self._in_contact, self._since_ns
        self._in_contact = in_contact
        if not before:
            self._since_ns = [ns] * len(in_contact)
            if is_outside:
                self._step_ns = ns
            return
        for touches, touched, since in zip(in_contact, before, since_ns):
            if touches and not touched and ns - since >= _SHORTEST_SWING_NS and (
                    self._outside_ns >= since):
                self._step_ns = ns
            # With the foot in the air the support is smaller: what counts is the DCM before.
            if touched and not touches and not self._was_outside:
                self._began_ns = ns
        self._since_ns = [since if touches == touched else ns for touches, touched, since in zip(
            in_contact, before, since_ns)]
