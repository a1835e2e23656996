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
"""Records outputs of a node to a rosbag2, by the package rosbags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.ros.topics.outputs import TemplatePublisher

STORAGES = ('mcap', 'sqlite3')


class BagRecorder:
    """
    Recording of outputs; the time of each message is the stamp in its header.

    Parameters
    ----------
    path
        Directory to create; must not exist.
    storage
        One of :data:`STORAGES`.

    Raises
    ------
    ConfigurationError
        If it cannot be created.

    """

    def __init__(self, path: str, storage: str = 'mcap') -> None:
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
            from rosbags.typesys import get_typestore, Stores
        except ImportError:
            raise ConfigurationError(
                'recording needs the rosbags package: pip install rosbags') from None
        self.path = Path(path).expanduser()
        self._types = get_typestore(Stores.ROS2_JAZZY)
        self.count = 0
        try:
            self._writer: Any = Writer(
                self.path, version=9, storage_plugin=StoragePlugin[storage.upper()])
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer.open()
        except (OSError, WriterError) as error:
            raise ConfigurationError(
                f"cannot record to '{self.path}': {error}; use a directory that does not exist "
                'yet') from None

    def record(self, out: TemplatePublisher) -> None:
        """Record an output from now on, whether or not it has subscribers."""
        kind = type(out.prototype)
        package, _, name = kind.__module__.partition('.')
        connection = self._writer.add_connection(
            out.topic, f'{package}/msg/{kind.__name__}', typestore=self._types)

        def write(raw: Any, stamp_ns: int | None) -> None:
            self.count += 1
            self._writer.write(connection, stamp_ns if stamp_ns is not None else 0, bytes(raw))

        out.on_publish = write

    def close(self) -> None:
        """Close the recording."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
