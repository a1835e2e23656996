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
"""What a call of a function of the core may do: return finite numbers, or raise our error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
import importlib
import inspect
import pkgutil
from typing import Any, NamedTuple

import biped_com_ros.core
from biped_com_ros.core.errors import BipedComError
from hypothesis import strategies as st
import numpy as np

#: Results are not deeper; a circle of references would have no end.
_DEEPEST = 6


class Case(NamedTuple):
    """
    A function and what it is called with.

    Attributes
    ----------
    function
        Of the core.
    arguments
        Strategy of tuples.
    calls
        Number of calls.
    may_be_infinite
        Whether an infinite result has a meaning (limits of joints that have none).
    nan_means
        What NaN in a result means, by the function's documentation; empty: nothing.

    """

    function: Callable[..., Any]
    arguments: st.SearchStrategy[tuple[Any, ...]]
    calls: int
    may_be_infinite: bool
    nan_means: str


class Cases:
    """Cases by the dotted name of the function, below ``biped_com_ros.core``."""

    def __init__(self) -> None:
        self.by_name: dict[str, Case] = {}

    def add(self, function: Callable[..., Any], *arguments: st.SearchStrategy[Any],
            calls: int = 15, may_be_infinite: bool = False, nan_means: str = '') -> None:
        """Call a function with one strategy per argument."""
        self.add_drawn(function, st.tuples(*arguments), calls, may_be_infinite, nan_means)

    def add_drawn(self, function: Callable[..., Any],
                  arguments: st.SearchStrategy[tuple[Any, ...]], calls: int = 15,
                  may_be_infinite: bool = False, nan_means: str = '') -> None:
        """Call a function with arguments that depend on each other."""
        name = name_of(function)
        assert name not in self.by_name, name
        self.by_name[name] = Case(function, arguments, calls, may_be_infinite, nan_means)


def name_of(function: Callable[..., Any]) -> str:
    """Return the dotted name of a function below ``biped_com_ros.core``."""
    module = function.__module__.removeprefix('biped_com_ros.core.')
    return f'{module}.{function.__qualname__}'


def public_functions() -> set[str]:
    """Return the names of all public functions of the core, found in its modules."""
    found = set()
    for info in pkgutil.walk_packages(biped_com_ros.core.__path__, 'biped_com_ros.core.'):
        module = importlib.import_module(info.name)
        found |= {name_of(value) for name, value in vars(module).items()
                  if inspect.isfunction(inspect.unwrap(value) if callable(value) else value)
                  and not name.startswith('_') and value.__module__ == info.name}
    return found


def check(case: Case, arguments: tuple[Any, ...]) -> None:
    """Call a function; anything but a finite result or our error fails."""
    try:
        result = case.function(*arguments)
        if isinstance(result, Iterator):
            result = list(result)
    except BipedComError as error:
        assert str(error).strip(), 'the error says nothing'
        return
    for where, value in numbers_in(result):
        is_wrong = (not case.nan_means and np.isnan(value)) | (
            not case.may_be_infinite and np.isinf(value))
        assert not np.any(is_wrong), f'{where or "the result"} is {value}'


def numbers_in(value: Any, where: str = '', depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Return all numbers in a result with the way to them."""
    if isinstance(value, (float, complex, np.floating)) or (
            isinstance(value, np.ndarray) and value.dtype.kind in 'fc'):
        yield where, value
    elif depth < _DEEPEST:
        for name, part in _parts_of(value):
            yield from numbers_in(part, f'{where}{name}', depth + 1)


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f'[{key!r}]', part) for key, part in value.items())
    elif isinstance(value, tuple) and hasattr(value, '_fields'):
        yield from ((f'.{name}', part) for name, part in zip(value._fields, value))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f'[{i}]', part) for i, part in enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f'.{field.name}', getattr(value, field.name)) for field in fields(value))
