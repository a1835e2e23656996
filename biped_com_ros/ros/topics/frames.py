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

"""The parameter `frame_prefix`: put before frames that are published, ignored in received ones."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node


def frame_prefix(node: Node) -> str:
    """Return the parameter `frame_prefix`; '' for a node that has none."""
    if not node.has_parameter('frame_prefix'):
        return ''
    return str(node.get_parameter('frame_prefix').value)


def with_prefix(message: Any, prefix: str) -> Any:
    """Put a prefix before all frames of a message that are named, in place, and return it."""
    if not prefix:
        return message
    for name, kind in message.get_fields_and_field_types().items():
        value = getattr(message, name)
        if name in ('frame_id', 'child_frame_id') and value:
            setattr(message, name, prefix + value)
        elif '/' in kind:
            for part in value if isinstance(value, (list, tuple)) else (value,):
                with_prefix(part, prefix)
    return message
