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
"""LowState messages of a rosbag2 (sqlite3 or MCAP), without the package of their type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biped_com_ros.core.bags import opened_bag
from biped_com_ros.core.errors import ConfigurationError, InputError


def read_low_states(path: Path, topic: str) -> Iterator[tuple[int, bytes]]:
    """
    Read the messages of a topic, in the sequence of time.

    Parameters
    ----------
    path
        Directory of a rosbag2, an .mcap or a .db3 file.
    topic
        Name of the topic, with or without its namespace.

    Yields
    ------
    tuple
        When the message was recorded in ns, and its bytes.

    Raises
    ------
    ConfigurationError
        If the recording cannot be read.
    InputError
        If it does not have the topic.

    """
    if not path.exists():
        raise ConfigurationError(f"there is no recording '{path}'")
    with opened_bag(path) as reader:
        connections = [c for c in reader.connections if is_topic(c.topic, topic)]
        if not connections:
            raise InputError(
                f"'{path}' does not have the topic {topic}; it has "
                f'{", ".join(sorted(reader.topics))}')
        for _, stamp_ns, message in reader.messages(connections):
            yield stamp_ns, bytes(message)


def is_topic(name: str, topic: str) -> bool:
    """Return whether a full name is that of a topic, whatever its namespace."""
    return name == topic or name.endswith(f'/{topic.lstrip("/")}')
