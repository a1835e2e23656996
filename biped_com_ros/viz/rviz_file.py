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
Adapts a configuration of RViz to a robot: sizes of arrows, prefixes of frames.

Topics stay relative: RViz runs in the robot's namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from biped_com_ros.core.errors import ConfigurationError

_FRAMES = ('Fixed Frame', 'Reference Frame', 'Target Frame')
_NO_FRAME = ('', '<Fixed Frame>')


def with_prefix(part: Any, prefix: str) -> Any:
    """
    Return a part of a configuration with the prefix before every frame that does not have it.

    Raises
    ------
    ConfigurationError
        If a robot's model is shown and RViz, which puts a slash after its prefix, cannot use this
        one.

    """
    def change(group: dict[str, Any]) -> None:
        for key in _FRAMES:
            frame = group.get(key)
            if isinstance(frame, str) and frame not in _NO_FRAME and not frame.startswith(prefix):
                group[key] = prefix + frame
        if 'TF Prefix' in group and prefix:
            group['TF Prefix'] = _tf_prefix(prefix)
    return _changed(part, change)


def _changed(part: Any, change: Callable[[dict[str, Any]], None]) -> Any:
    """Return a copy of a part of a configuration of which every group was changed."""
    if isinstance(part, list):
        return [_changed(item, change) for item in part]
    if not isinstance(part, dict):
        return part
    group = {key: _changed(value, change) for key, value in part.items()}
    change(group)
    return group


def _tf_prefix(prefix: str) -> str:
    if not prefix.endswith('/'):
        raise ConfigurationError(
            f"frame prefix '{prefix}' does not end with '/', which RViz puts between the prefix "
            f"and a link: use '{prefix}/' for all nodes of this robot")
    return prefix.removesuffix('/')


def with_arrows(part: Any, force_scale: float, length: float) -> Any:
    """
    Return a part of a configuration with the wrenches of feet shown, in the robot's size.

    Parameters
    ----------
    part
        Of the configuration.
    force_scale
        Length of an arrow per force, m/N; see `arrow_scale`.
    length
        Of the arrow of the robot's weight, m. That of its torque at a lever of as much is as long.

    """
    def change(group: dict[str, Any]) -> None:
        if group.get('Class') != 'rviz_default_plugins/Wrench':
            return
        what, _, _ = group['Name'].partition(' (')
        shown = 'foot' in what  # the total one is among the markers
        group |= {
            'Name': f'{what} ({force_scale:.2g} m per N)', 'Enabled': shown, 'Value': shown,
            'Force Arrow Scale': force_scale, 'Torque Arrow Scale': force_scale / length,
            'Arrow Width': 0.03 * length}
    return _changed(part, change)
