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
"""Targets of the torso from several sources, each with a timeout."""

from __future__ import annotations

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.torso.controller import TendonController


class TargetInput:
    """
    Sets the target of a controller, and holds the torso when its source stops.

    Parameters
    ----------
    controller
        Its target is set.

    Attributes
    ----------
    controller
        As given.
    timeouts
        Time without a target after which the torso is held, by source, s; 0 or none: never.
    source
        Source of the last target; '' for none.
    is_enabled, is_frozen
        Targets are ignored unless enabled and not frozen.

    """

    def __init__(self, controller: TendonController) -> None:
        self.controller = controller
        self.timeouts: dict[str, float] = {}
        self.source, self._last_ns, self._is_holding = '', 0, False
        self.is_enabled = self.is_frozen = False

    def enable(self, enabled: bool) -> None:
        """Enable or disable all sources, and forget the last one."""
        self.is_enabled, self.source, self._is_holding = enabled, '', False

    def freeze(self, frozen: bool) -> None:
        """Hold the torso and ignore targets, or accept them again."""
        self.is_frozen = frozen
        if frozen:
            self.controller.hold()

    def set_target(self, source: str, shape: Array, now_ns: int) -> bool:
        """
        Set the target to a shape (4,); return whether it was accepted.

        Raises
        ------
        InputError
            If the shape is not finite.

        """
        if not self.is_enabled or self.is_frozen:
            return False
        self.controller.set_target(shape)
        self.source, self._last_ns, self._is_holding = source, now_ns, False
        return True

    def check(self, now_ns: int) -> str:
        """Hold the torso if the source has timed out; return a description, '' if it has not."""
        self._last_ns = min(self._last_ns, now_ns)  # later if the clock was set back
        timeout, age = self.timeouts.get(self.source, 0.0), 1e-9 * (now_ns - self._last_ns)
        if not timeout or age <= timeout:
            self._is_holding = False
            return ''
        if not self._is_holding:
            self._is_holding = True
            self.controller.hold()
        return f'no message from {self.source} for {age:.1f} s: holding'
