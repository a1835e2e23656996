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
"""Writing files of results."""

from __future__ import annotations

import os
from pathlib import Path
import tempfile

from biped_com_ros.core.errors import ConfigurationError


def make_directory(path: Path) -> None:
    """
    Make a directory for results.

    Raises
    ------
    ConfigurationError
        If nothing can be written there.

    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise ConfigurationError(
            f"directory '{path}' cannot be written to: {error.strerror}; give another directory"
        ) from None


def write_atomically(path: Path, text: str) -> None:
    """
    Write a file atomically: at any time there is either the old or the new one.

    Raises
    ------
    ConfigurationError
        If it cannot be written.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
        try:
            with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ConfigurationError(f"file '{path}' cannot be written: {error.strerror}") from None
