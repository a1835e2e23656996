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
"""A program to start: what ROS 2's launch and ``run_launch`` need to know of it."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import dataclass, field
import json
from pathlib import Path
import re
import shutil
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import make_temporary_directory, read_text, write_atomically
from biped_com_ros.core.model.resources import PACKAGE, package_share
from biped_com_ros.core.plain_yaml import load_yaml
from biped_com_ros.launching.arguments import LaunchArguments

#: Every node of a process, but for what parameter files say of it by name or otherwise.
_DEFAULTS = '/**'
#: The same nodes. Sections count in the sequence of their first appearance, and this one is in no
#: parameter file of a user, so that it is the last one.
_GIVEN = '/**/*'
#: Time before a program is started again, s.
RESPAWN_DELAY = 2.0
_NAMESPACE = re.compile(r'(/[A-Za-z_][A-Za-z0-9_]*)*')


@dataclass(frozen=True, kw_only=True)
class Program:
    """
    An executable and how it is run.

    Attributes
    ----------
    executable, package
        What is started.
    name
        Of its node; '' for the one that it has.
    namespace
        Absolute; '' for none.
    defaults, files, parameters
        Parameters of all its nodes: those that parameter files may change, these files, and those
        that were given as arguments and win over both.
    remappings
        By name.
    arguments
        Before the arguments of ROS.
    log_level, enclave
        '' for none.
    respawns
        Whether it is started again when it ends.
    ends_launch
        Whether its end ends all others.
    sigterm_timeout, sigkill_timeout
        Time from SIGINT to SIGTERM, and from there to SIGKILL, s.

    """

    executable: str
    package: str = PACKAGE
    name: str = ''
    namespace: str = ''
    defaults: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    log_level: str = ''
    enclave: str = ''
    respawns: bool = False
    ends_launch: bool = False
    sigterm_timeout: float = 5.0
    sigkill_timeout: float = 2.0

    def command_line(self, directory: Path) -> list[str]:
        """Return its arguments; parameters are written to files in a directory."""
        words = [*self.arguments, '--ros-args', *self.ros_arguments()]
        names = {'__node': self.name, '__ns': self.namespace}
        for source, target in {**names, **self.remappings}.items():
            if target:
                words += ['-r', f'{source}:={target}']
        for file in self.parameter_files(directory):
            words += ['--params-file', str(file)]
        return words

    def ros_arguments(self) -> list[str]:
        """Return the arguments of ROS but for names and parameters."""
        given = {'--log-level': self.log_level, '--enclave': self.enclave}
        return [word for flag, value in given.items() if value for word in (flag, value)]

    def parameter_files(self, directory: Path) -> list[Path]:
        """Return its parameter files, the last of which wins; some are written to a directory."""
        return [*_written(self.defaults, _DEFAULTS, directory), *self.files,
                *_written(self.parameters, _GIVEN, directory)]


@dataclass(frozen=True, kw_only=True)
class ForeignLaunchFile:
    """A launch file of another package, which needs ROS 2's launch."""

    package: str
    file: str
    arguments: Mapping[str, str]


Programs = list[Program | ForeignLaunchFile]


def _written(parameters: Mapping[str, Any], section: str, directory: Path) -> list[Path]:
    if not parameters:
        return []
    file = directory / f'params_{len(list(directory.iterdir()))}.yaml'
    # JSON is YAML in which every text is quoted: 'y' and '1e5' stay texts.
    write_atomically(file, json.dumps(
        {section: {'ros__parameters': dict(parameters)}}, indent=1, ensure_ascii=False))
    return [file]


def temporary_directory(prefix: str) -> Path:
    """Return a new directory that is removed when this process ends."""
    directory = make_temporary_directory(prefix)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def node(a: LaunchArguments, executable: str, *files: Path,
         defaults: Mapping[str, Any] | None = None,
         remappings: Mapping[str, str] | None = None, respawns: bool = False,
         ends_launch: bool = False, sigterm_timeout: float = 5.0, sigkill_timeout: float = 2.0,
         **given: Any) -> Program:
    """
    Return an executable of this package.

    Parameters
    ----------
    a
        Of its launch file; robot, URDF, frames and time are passed on.
    executable, files
        See :class:`Program`.
    defaults, remappings, respawns
        The same.
    ends_launch, sigterm_timeout, sigkill_timeout
        The same.
    given
        Parameters; those that were not given are left out.

    """
    common = {name: getattr(a, name) for name in ('robot', 'urdf', 'frame_prefix', 'use_sim_time')}
    return Program(
        executable=executable, namespace=namespace_of(a.namespace), defaults=defaults or {},
        files=files, parameters={name: value for name, value in {**common, **given}.items()
                                 if value not in ('', None, ())},
        remappings={**tf_remappings(a), **(remappings or {})}, log_level=a.log_level,
        enclave=f'/{PACKAGE}/{executable}', respawns=respawns, ends_launch=ends_launch,
        sigterm_timeout=sigterm_timeout, sigkill_timeout=sigkill_timeout)


def tf_remappings(a: LaunchArguments) -> dict[str, str]:
    """Return what gives a namespaced robot its own tree of frames; none with a prefix of them."""
    return {} if a.frame_prefix else {'/tf': 'tf', '/tf_static': 'tf_static'}


def namespace_of(name: str) -> str:
    """
    Return a namespace as absolute name; '' for none.

    Raises
    ------
    ConfigurationError
        If it is not valid.

    """
    absolute = '/' + name.strip('/') if name.strip('/') else ''
    if not _NAMESPACE.fullmatch(absolute):
        raise ConfigurationError(
            f"namespace '{name}' is not valid (letters, digits and underscores between slashes, "
            'none starting with a digit)')
    return absolute


def parameter_file(given: str, default: str) -> Path:
    """
    Return a parameter file: the given one, or one of this package's ``config``.

    Raises
    ------
    ConfigurationError
        If it cannot be read or is none.

    """
    if not given:
        return package_share() / 'config' / default
    file = Path(given).expanduser()
    document = load_yaml(read_text(file, 'parameter file'), f"parameter file '{file}'")
    if not _is_parameter_document(document):
        raise ConfigurationError(
            f"parameter file '{file}' is not of the form "
            "'NODE: {ros__parameters: {NAME: VALUE}}' (NODE may be /**)")
    return file.absolute()


def _is_parameter_document(document: Any) -> bool:
    """Whether every branch of a parameter file ends in ``ros__parameters`` with a mapping."""
    if not isinstance(document, dict) or not document:
        return False
    if 'ros__parameters' in document:
        return isinstance(document['ros__parameters'], dict) and len(document) == 1
    return all(_is_parameter_document(branch) for branch in document.values())
