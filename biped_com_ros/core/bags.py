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
"""Recordings of rosbag2 (sqlite3 and MCAP), opened by the package rosbags within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.files import read_text
from biped_com_ros.core.plain_yaml import check_bounds, LARGEST_TEXT


@contextmanager
def opened_bag(path: Path) -> Iterator[Any]:
    """
    Open a recording, and close it at the end.

    Parameters
    ----------
    path
        Directory of a rosbag2, an .mcap or a .db3 file.

    Yields
    ------
    AnyReader
        Of rosbags.

    Raises
    ------
    ConfigurationError
        If the recording cannot be read, also while it is being read.

    """
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import get_typestore, Stores
    except ImportError:
        raise ConfigurationError(
            'reading bags needs the rosbags package: pip install rosbags') from None
    if path.is_dir():
        what = f"metadata of recording '{path}'"
        check_bounds(read_text(path / 'metadata.yaml', what, LARGEST_TEXT), what)
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
            yield reader
    except BipedComError:
        raise
    except Exception as error:  # noqa: B902 - of a damaged bag, each storage raises others
        raise ConfigurationError(
            f"recording '{path}' cannot be read: {error}{_remedy(path)}") from None


_MAGIC = b'\x89MCAP0\r\n'


def _remedy(path: Path) -> str:
    """Return what helps where a recorder was killed; '' where it ended the file."""
    for file in sorted(path.glob('*.mcap')) if path.is_dir() else [path]:
        if file.suffix == '.mcap' and file.is_file() and _has_no_end(file):
            return (f'; its end is missing, as when the recorder was killed: keep what there is '
                    f"with mcap recover '{file}' -o '{file.with_stem(f'{file.stem}_recovered')}'")
    return ''


def _has_no_end(file: Path) -> bool:
    """Return whether an MCAP begins, but does not end as one."""
    size = len(_MAGIC)
    with file.open('rb') as content:
        begins = content.read(size) == _MAGIC
        content.seek(max(0, content.seek(0, 2) - size))
        return begins and content.read() != _MAGIC
