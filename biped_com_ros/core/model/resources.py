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
_SHOWN = 4


def package_share() -> Path:
    """Directory holding ``config/``, ``urdf/`` and ``launch/``: the source tree or the share."""
    return find_package(PACKAGE)


def find_package(package: str, directory: Path | None = None) -> Path:
    """
    Return the share directory of a ROS package or of a PyPI wheel laid out like one.

    Searches, in this order, every prefix of ``AMENT_PREFIX_PATH`` and ``ROS_PACKAGE_PATH``, the
    Python environment's own prefix, the prefixes that wheels bring inside ``sys.path``, and the
    directories of Python packages themselves, where some wheels keep URDFs and meshes; then
    `directory`, those above and what is in them.

    Parameters
    ----------
    package
        Its name.
    directory
        That of the file that names the package; None if it did not come from a file.

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
    prefixes = list(dict.fromkeys(_prefixes()))
    installed = [prefix / place / package for prefix in prefixes for place in ('share', '')]
    for candidate in (*installed, *_beside(package, directory)):
        if candidate.is_dir():
            return candidate
    raise ConfigurationError(
        f"package '{package}' was not found; install it or source the workspace that has it "
        f'(searched: {", ".join(map(str, prefixes))})')


def resolve_uri(uri: str) -> Path:
    """
    Turn ``package://pkg/path``, ``file:///path`` or a plain path into an existing file.

    Parameters
    ----------
    uri
        What a user named; a relative path is taken from the package share, then from the working
        directory.

    """
    if uri.startswith(_PACKAGE_SCHEMES):
        package, inside = _package_and_path(uri)
        return _first_file(uri, [find_package(package) / inside])
    return _first_file(uri, [base / path for path in _paths(uri)
                             for base in (package_share(), Path.cwd())])


def resolve_in_urdf(uri: str, directory: Path | None = None) -> Path:
    """
    Turn the URI of a mesh into an existing file, wherever this program runs.

    Parameters
    ----------
    uri
        What a URDF names: as for `resolve_uri`, also ``package:///pkg/path``; a relative path,
        or one in a package that is not installed, is taken from `directory` and those above.
    directory
        That of the URDF; None if it did not come from a file.

    Raises
    ------
    ConfigurationError
        If there is no such file; the message lists where it was looked for.

    """
    above = [] if directory is None else [directory, *directory.parents]
    if not uri.startswith(_PACKAGE_SCHEMES):
        paths = [path for path in _paths(uri) if above or path.is_absolute()]
        return _first_file(uri, [base / path for path in paths for base in above or [Path()]],
                           '' if paths else _NO_DIRECTORY)
    package, inside = _package_and_path(uri.replace(':///', '://', 1))
    try:
        found = find_package(package, directory)
    except ConfigurationError as error:
        return _first_file(uri, [], str(error))
    return _first_file(uri, [place / inside for place in (found, *_beside(package, directory))])


def expected_place(uri: str, directory: Path) -> Path | None:
    """Return where the mesh of a URDF in a directory is missing; None if that is not known."""
    if not uri.startswith(_PACKAGE_SCHEMES):
        return directory / uri if uri and '://' not in uri else None
    package, inside = _package_and_path(uri.replace(':///', '://', 1))
    places = _beside(package, directory) if package and inside else []
    return next((place / inside for place in places if place.is_dir()), None)


def _beside(package: str, directory: Path | None) -> list[Path]:
    """Return where a package is that is not installed: above what names it, or next to that."""
    above = [] if directory is None else [directory, *directory.parents]
    return [place for base in above
            for place in (*([base] if base.name == package else []), base / package)]


_PACKAGE_SCHEMES = ('package://', 'model://')
_NO_DIRECTORY = ('it is relative to a URDF whose directory is not known; give the URDF as a file, '
                 'or write package:// or absolute paths into it')


def _package_and_path(uri: str) -> tuple[str, str]:
    package, _, inside = uri.partition('://')[2].partition('/')
    return package, inside


def _paths(uri: str) -> list[Path]:
    """Return what a path or file URI may stand for: not everyone escapes blanks."""
    text = uri.removeprefix('file://')
    escaped = [unquote(text)] if text != uri else []
    return [Path(path).expanduser() for path in dict.fromkeys([*escaped, text])]


def _first_file(uri: str, candidates: list[Path], problem: str = '') -> Path:
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    shown = list(dict.fromkeys(map(str, candidates)))[:_SHOWN]
    raise ConfigurationError(f"file '{uri}' does not exist" + (
        f': {problem}' if problem else f' (looked at: {", ".join(shown)})'))


def _prefixes() -> Iterator[Path]:
    for variable in ('AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'):
        yield from (Path(part) for part in os.environ.get(variable, '').split(os.pathsep) if part)
    yield Path(sys.prefix)
    for entry in sys.path:
        # Wheels of the cmeel family keep a whole prefix inside site-packages.
        if entry and (Path(entry) / 'cmeel.prefix').is_dir():
            yield Path(entry) / 'cmeel.prefix'
    yield from (Path(entry) for entry in sys.path if Path(entry).name in PYTHON_PACKAGES)
