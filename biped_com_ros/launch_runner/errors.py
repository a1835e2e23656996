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
"""Errors in a launch file; each names the file and the line."""

from __future__ import annotations

from collections.abc import Iterable

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError


class LaunchFileError(ConfigurationError):
    """
    A launch file, or an argument given to one, is invalid.

    Parameters
    ----------
    where
        ``'file:line'``.
    message
        Problem, value and valid options.

    """

    def __init__(self, where: str, message: str) -> None:
        self.where = where
        super().__init__(f'{where}: {message}')


def unknown(where: str, kind: str, name: str, valid: Iterable[str]) -> LaunchFileError:
    """Error for a name that is not valid; lists the valid ones and the nearest."""
    return LaunchFileError(where, str(UnknownNameError(kind, name, valid)))
