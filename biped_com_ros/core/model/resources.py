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
"""Where files of the package and of other packages are, with and without ROS 2 installed."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
import sys
from urllib.parse import unquote

from biped_com_ros.core.errors import ConfigurationError

PACKAGE = 'biped_com_ros'
PYTHON_PACKAGES = ('site-packages', 'dist-packages')


def package_share() -> Path:
    """Directory holding ``config/``, ``urdf/`` and ``launch/``: the source tree or the share."""
    return find_package(PACKAGE)


def find_package(package: str) -> Path:
    """
    Return the share directory of a ROS package or of a PyPI wheel laid out like one.

    Searches, in this order, every prefix of ``AMENT_PREFIX_PATH`` and ``ROS_PACKAGE_PATH``, the
    Python environment's own prefix, the prefixes that wheels bring inside ``sys.path``, and the
    directories of Python packages themselves, where some wheels keep URDFs and meshes.

    Parameters
    ----------
    package
        Its name.

    Raises
    ------
    ConfigurationError
        If no prefix has it; the message lists the prefixes.

    """
    if not package:
        raise ConfigurationError(
            'a package:// URI needs the name of a package: package://my_package/urdf/robot.urdf')
    source_tree = Path(__file__).resolve().parents[3]
    if package == PACKAGE and (source_tree / 'package.xml').is_file():
        return source_tree
    searched = []
    for prefix in _prefixes():
        for candidate in (prefix / 'share' / package, prefix / package):
            if candidate.is_dir():
                return candidate
        searched.append(str(prefix))
    raise ConfigurationError(
        f"package '{package}' was not found; install it or source the workspace that has it "
        f'(searched: {", ".join(searched)})')


def resolve_uri(uri: str) -> Path:
    """
    Turn ``package://pkg/path``, ``file:///path`` or a plain path into an existing file.

    Parameters
    ----------
    uri
        What to resolve; a relative path is taken from the package share, then from the working
        directory.

    """
    if uri.startswith('package://'):
        package, _, inside = uri[len('package://'):].partition('/')
        candidates = [find_package(package) / inside]
    else:
        path = Path(unquote(uri[7:]) if uri.startswith('file://') else uri).expanduser()
        candidates = [base / path for base in (package_share(), Path.cwd())]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    places = ', '.join(dict.fromkeys(map(str, candidates)))
    raise ConfigurationError(f"file '{uri}' does not exist (looked at: {places})")


def _prefixes() -> Iterator[Path]:
    for variable in ('AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'):
        yield from (Path(part) for part in os.environ.get(variable, '').split(os.pathsep) if part)
    yield Path(sys.prefix)
    for entry in sys.path:
        # Wheels of the cmeel family keep a whole prefix inside site-packages.
        if entry and (Path(entry) / 'cmeel.prefix').is_dir():
            yield Path(entry) / 'cmeel.prefix'
    yield from (Path(entry) for entry in sys.path if Path(entry).name in PYTHON_PACKAGES)
