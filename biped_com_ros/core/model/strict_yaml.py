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
YAML files into frozen dataclasses, strictly.

An unknown key, a key that is given twice and a value of the wrong type are errors that name the
place and what would be valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, MISSING
import math
from pathlib import Path
import types
import typing
from typing import Any, Union

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.files import read_text
from biped_com_ros.core.plain_yaml import LARGEST_TEXT, load_yaml


def read_yaml(path: Path, what: str = 'robot file') -> Mapping[str, Any]:
    """
    Return the mapping in a YAML file.

    Parameters
    ----------
    path
        The file.
    what
        Description of the file, for messages.

    Raises
    ------
    ConfigurationError
        If it cannot be read, is no mapping, or gives a key twice.

    """
    values = load_yaml(read_text(path, what, LARGEST_TEXT), f"{what} '{path}'")
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{what} '{path}' must hold a mapping of keys to values")
    return values


def convert(kind: Any, value: Any, where: str) -> Any:
    """
    Convert plain YAML data.

    Parameters
    ----------
    kind
        A dataclass, or the type of one of its fields.
    value
        Mappings, lists, strings and numbers.
    where
        Its place, for messages.

    Raises
    ------
    ConfigurationError
        If the data do not fit the type.

    """
    if is_dataclass(kind) and isinstance(kind, type):
        return _convert_dataclass(kind, value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in arguments:
            return None
        is_list = isinstance(value, (list, tuple))  # of a number or a list of them
        return convert(arguments[is_list and types.NoneType not in arguments], value, where)
    if origin is tuple:
        return _convert_tuple(arguments, value, where)
    if origin is not None and issubclass(origin, Mapping):
        items = _expect(Mapping, value, where, 'a mapping').items()
        return {str(k): convert(arguments[1], v, f'{where}: {k}') for k, v in items}
    if kind is float:
        return _convert_number(value, where)
    if kind is int:
        return int(_expect(int, value, where, 'a whole number'))
    return str(_expect((str, int, float), value, where, 'a string'))


def _convert_dataclass(kind: type, value: Any, where: str) -> Any:
    values = _expect(Mapping, value, where, 'a mapping')
    hints = typing.get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}
    for key in values:
        if key not in known:
            raise UnknownNameError('key', str(key), known, where)
    for name, info in known.items():
        required = info.default is MISSING and info.default_factory is MISSING
        if required and name not in values:
            raise ConfigurationError(f"key '{name}' is missing in {where}")
    return kind(**{k: convert(hints[k], v, f'{where}: {k}') for k, v in values.items()})


def _convert_tuple(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    items = _expect((list, tuple), value, where, 'a list')
    if arguments[-1] is Ellipsis:
        arguments = (arguments[0],) * len(items)
    if len(items) != len(arguments):
        raise ConfigurationError(
            f'{where} must be a list of {len(arguments)} values, not {len(items)}: {items}')
    return tuple(convert(k, v, f'{where}[{i}]') for i, (k, v) in enumerate(zip(arguments, items)))


def _convert_number(value: Any, where: str) -> float:
    number = float(_expect((int, float), value, where, 'a number'))
    if not math.isfinite(number):
        raise ConfigurationError(f'{where} must be a finite number, not {number}')
    return number


def _expect(kind: Any, value: Any, where: str, description: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ConfigurationError(f'{where} must be {description}, not {value!r}')
    return value
