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
"""Writes messages to a rosbag2, by the package rosbags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError


class BagWriter:
    """
    A recording that is written: a rosbag2 directory with an MCAP file.

    Parameters
    ----------
    path
        Directory to create; must not exist. Its parents are created, too.

    Attributes
    ----------
    path
        As given.
    count
        Number of messages.

    Raises
    ------
    ConfigurationError
        If it cannot be created.

    """

    def __init__(self, path: Path) -> None:
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
            from rosbags.typesys import get_typestore, Stores
        except ImportError:
            raise ConfigurationError(
                'recording needs the rosbags package: pip install rosbags') from None
        self.path, self.count, self._types = path, 0, get_typestore(Stores.ROS2_JAZZY)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        except (OSError, WriterError) as error:
            raise ConfigurationError(
                f"the recording '{path}' cannot be written: {error}; use a directory that does "
                'not exist yet') from None

    def add_topic(self, name: str, kind: type) -> Callable[[bytes, int | None], None]:
        """Return what writes a serialized message of a topic at a time, ns; None: 0."""
        package, _, _ = kind.__module__.partition('.')
        connection = self._writer.add_connection(
            name, f'{package}/msg/{kind.__name__}', typestore=self._types)

        def write(raw: bytes, ns: int | None) -> None:
            self.count += 1
            self._writer.write(connection, ns or 0, bytes(raw))
        return write

    def close(self) -> None:
        """Complete the recording."""
        self._writer.close()
