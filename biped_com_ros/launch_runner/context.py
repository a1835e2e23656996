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
"""State that the actions of a launch file read and change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import copy
from dataclasses import dataclass, field
import os
from typing import Any


@dataclass
class Context:
    """
    State of one launch.

    As in ``ros2 launch``, the end of a scoped group restores it, the end of an include does not.
    """

    configurations: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    namespace: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    remappings: list[tuple[str, str]] = field(default_factory=list)
    #: Whether ``$(command ...)`` runs; else its text stands for its output.
    runs_commands: bool = True

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Restore everything at the end of the ``with`` block."""
        saved = copy.deepcopy(self.__dict__)
        try:
            yield
        finally:
            self.__dict__.update(saved)


def join_namespace(base: str | None, namespace: str | None) -> str | None:
    """
    Absolute namespace of `namespace` relative to `base`; None if neither is given.

    An absolute `namespace` (leading slash) ignores `base`.
    """
    if namespace is None and base is None:
        return None
    if namespace is None or namespace.startswith('/') or not base:
        joined = base if namespace is None else namespace
    else:
        joined = f'{base}/{namespace}'
    return '/' + '/'.join(part for part in (joined or '').split('/') if part)
