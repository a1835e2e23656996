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
"""Commands that start the executables of a package, installed or from the source tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import importlib.util
import os
from pathlib import Path
import sys

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.model.resources import PACKAGE, package_share

_NODES = 'biped_com_ros.nodes'


def executable_command(package: str, name: str, environment: Mapping[str, str]) -> list[str]:
    """
    Return the command that starts an executable of a package.

    Installed ones (``<prefix>/lib/<package>/<name>``) come first. The nodes of this package run
    as modules of this Python where they are not installed, and always when this runs from the
    source tree: an older installation must not be started there.

    Raises
    ------
    ConfigurationError
        If there is no such executable; the message lists those that exist.

    """
    is_ours = package == PACKAGE and _is_node(name)
    module = [sys.executable, '-m', f'{_NODES}.{name}.node'] if is_ours else []
    if module and package_share() == Path(__file__).resolve().parents[2]:
        return module
    for directory in _directories(package, environment):
        if (directory / name).is_file() and os.access(directory / name, os.X_OK):
            return [str(directory / name)]
    if not module:
        raise _not_found(package, name, environment)
    return module


def _directories(package: str, environment: Mapping[str, str]) -> Iterator[Path]:
    prefixes = environment.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    for prefix in [*filter(None, prefixes), sys.prefix]:
        yield Path(prefix) / 'lib' / package


def _is_node(name: str) -> bool:
    return name.isidentifier() and importlib.util.find_spec(f'{_NODES}.{name}') is not None


def _not_found(package: str, name: str, environment: Mapping[str, str]) -> ConfigurationError:
    found = {file.name for directory in _directories(package, environment)
             if directory.is_dir() for file in directory.iterdir() if os.access(file, os.X_OK)}
    if package == PACKAGE:
        nodes = Path(__file__).resolve().parents[1] / 'nodes'
        found |= {file.parent.name for file in nodes.glob('*/node.py')}
    if found or package == PACKAGE:
        return UnknownNameError('executable', name, found, where=f"package '{package}'")
    return ConfigurationError(
        f"executable '{name}': package '{package}' is not installed; on a machine with ROS 2: "
        f"sudo apt install ros-{environment.get('ROS_DISTRO', '<distro>')}-"
        f"{package.replace('_', '-')}")
