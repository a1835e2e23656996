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
"""
Parameters of nodes: their types, and the YAML files that pass them to the nodes.

As in ``ros2 launch``, a value is read as YAML and has the type it has there, unless ``type=``
gives another one; ``value-sep=`` makes it a list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import read_text, write_atomically
from biped_com_ros.core.plain_yaml import load_yaml
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.errors import LaunchFileError
from biped_com_ros.launch_runner.substitutions import (
    is_true, parse, perform, perform_pieces)
from biped_com_ros.launch_runner.xml_reader import Element
import yaml

_SCALARS = {'str': str, 'int': int, 'float': float, 'bool': bool}
PARAMETER_TYPES = (*_SCALARS, *(f'list_of_{kind}' for kind in _SCALARS))


class ParameterFiles:
    """Writes the YAML files of one launch into one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, parameters: dict[str, Any], node: str = '/**') -> Path:
        """Write parameters of one node, by default of every node in the process."""
        return self.write_document({node: {'ros__parameters': parameters}})

    def write_document(self, document: Any) -> Path:
        """Write a whole parameter file."""
        number = len(list(self._directory.iterdir()))
        file = self._directory / f'launch_params_{number}.yaml'
        write_atomically(
            file, yaml.safe_dump(document, sort_keys=False, default_flow_style=None))
        return file


def parameter_file(element: Element, context: Context, files: ParameterFiles) -> Path:
    """Return the checked file of a ``<param from=...>``, a new one with ``allow_substs``."""
    file = Path(perform(element.get('from'), context, element.where)).expanduser()
    if not context.runs_commands and '$(command' in str(file):
        return file  # a dry run cannot read what the command would write
    try:
        document = load_yaml(read_text(file, 'parameter file'), f"parameter file '{file}'")
    except ConfigurationError as error:
        raise LaunchFileError(element.where, str(error)) from error
    if not is_parameter_document(document):
        raise LaunchFileError(
            element.where, f"parameter file '{file}' is not of the form "
            "'NODE: {ros__parameters: {NAME: VALUE}}' (NODE may be /**)")
    if is_true(element.get('allow_substs', 'false'), element.where, 'allow_substs'):
        return files.write_document(_substituted(document, context, str(file)))
    return file


def _substituted(item: Any, context: Context, where: str) -> Any:
    if isinstance(item, dict):
        return {_substituted(key, context, where): _substituted(value, context, where)
                for key, value in item.items()}
    if isinstance(item, list):
        return [_substituted(element, context, where) for element in item]
    if isinstance(item, str) and '$(' in item:
        return load_yaml(perform(item, context, f'{where}:1'), where)
    return item


def is_parameter_document(document: Any) -> bool:
    """Whether every branch of a parameter file ends in ``ros__parameters`` with a mapping."""
    if not isinstance(document, dict) or not document:
        return False
    if 'ros__parameters' in document:
        return isinstance(document['ros__parameters'], dict) and len(document) == 1
    return all(is_parameter_document(branch) for branch in document.values())


def parameter(element: Element, context: Context) -> tuple[str, Any]:
    """Name and typed value of a ``<param name=...>``; a dict of the nested ones."""
    name = perform(element.get('name'), context, element.where)
    if element.children:
        return name, dict(parameter(child, context) for child in element.children)
    kind = element.get('type').replace('yaml', '')  # yaml: the same as no type
    if 'value-sep' in element.attributes:
        parts = element.get('value').split(element.get('value-sep'))
        item_kind = kind.removeprefix('list_of_')
        items = [_typed(part, item_kind, context, element.where, name) for part in parts]
        return name, _uniform(items, element.where, name)
    return name, _typed(element.get('value'), kind, context, element.where, name)


def _typed(text: str, kind: str, context: Context, where: str, name: str) -> Any:
    if kind == 'str':
        return perform(text, context, where)
    literal = coerce(text, kind, where, name) if '$(' not in text else _unquoted(text)
    if not isinstance(literal, str):
        return literal
    pieces = parse(literal, where)
    value = perform_pieces(pieces, context, where)
    if all(isinstance(piece, str) for piece in pieces):
        return value
    return coerce(value, kind, where, name)


def _unquoted(text: str) -> str:
    """Text without the quotes of a YAML string, as in ``'$(var x)'``."""
    try:
        value = load_yaml(text, 'the value')
    except ConfigurationError:
        return text
    return value if isinstance(value, str) else text


def coerce(text: str, kind: str, where: str, name: str) -> Any:
    """
    Type a text by YAML's rules and check it against the required type, if any.

    Raises
    ------
    LaunchFileError
        If ROS parameters cannot hold the value, or it is not of the required type.

    """
    if kind == 'str':
        return text
    try:
        value = load_yaml(text, f"parameter '{name}'")
    except ConfigurationError:
        value = text
    if isinstance(value, list):
        value = _uniform(value, where, name)
    if kind == 'float' and type(value) is int:
        value = float(value)
    if kind == 'list_of_float' and isinstance(value, list) and type(value[0]) is int:
        value = [float(item) for item in value]
    if _kind(value) not in ((kind,) if kind else PARAMETER_TYPES):
        raise LaunchFileError(
            where, f"parameter '{name}': '{text}' is not of type {kind or 'any parameter'}"
            f" (type=\"str\" takes it as text; valid types: {', '.join(PARAMETER_TYPES)})")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f'list_of_{_kind(value[0])}'
    return next((kind for kind, python in _SCALARS.items() if type(value) is python), '')


def _uniform(items: list[Any], where: str, name: str) -> list[Any]:
    kinds = {_kind(item) for item in items if not isinstance(item, list)}
    if kinds == {'int', 'float'}:
        return [float(item) for item in items]
    if len(kinds) != 1 or any(isinstance(item, list) for item in items):
        raise LaunchFileError(
            where, f"parameter '{name}': {items} is not a list of one type (valid: "
            f"{', '.join(_SCALARS)}; not empty, not nested)")
    return items
