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
import functools
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
_MOST_CALLS = 8


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


class ObjectCase(NamedTuple):
    """
    A class with what its objects are made of and called with.

    Attributes
    ----------
    make
        The class, or a function that returns an object of it.
    arguments
        Strategy of the tuples that `make` gets.
    calls_of
        Returns the strategies of the arguments of each method, by name, for an object.
    may_be_infinite
        Public attributes in which infinity has a meaning.
    elsewhere
        Public methods that other tests call with anything.

    """

    make: Callable[..., Any]
    arguments: st.SearchStrategy[tuple[Any, ...]]
    calls_of: Callable[[Any], Mapping[str, tuple[st.SearchStrategy[Any], ...]]]
    may_be_infinite: tuple[str, ...]
    elsewhere: tuple[str, ...]


class Objects:
    """Cases by class."""

    def __init__(self) -> None:
        self.by_class: dict[type, ObjectCase] = {}

    def add(self, make: Callable[..., Any], arguments: st.SearchStrategy[tuple[Any, ...]], *,
            kind: type | None = None,
            by_object: Callable[[Any], Mapping[str, tuple[st.SearchStrategy[Any], ...]]]
            | None = None,
            may_be_infinite: tuple[str, ...] = (), elsewhere: tuple[str, ...] = (),
            **methods: tuple[st.SearchStrategy[Any], ...]) -> None:
        """Call methods with strategies, which may depend on the object (`by_object`)."""
        self.by_class[make if kind is None else kind] = ObjectCase(  # type: ignore[index]
            make, arguments, by_object or (lambda _: methods), may_be_infinite, elsewhere)


def public_methods(kind: type) -> set[str]:
    """Return the names of the public methods of a class, without properties."""
    return {name for name in dir(kind) if (not name.startswith('_') and callable(
        inspect.getattr_static(kind, name))) or isinstance(
            inspect.getattr_static(kind, name), (classmethod, staticmethod))}


def check_object(kind: type, case: ObjectCase, data: Any) -> None:
    """Make an object and call its methods: all is finite, or it is our error."""
    try:
        thing = case.make(*data.draw(case.arguments))
    except BipedComError as error:
        assert str(error).strip(), 'the error says nothing'
        return
    calls = case.calls_of(thing)
    assert calls.keys() | set(case.elsewhere) == public_methods(kind), sorted(public_methods(kind))
    for _ in range(data.draw(st.integers(1, _MOST_CALLS)) if calls else 0):
        name = data.draw(st.sampled_from(sorted(calls)))
        arguments = data.draw(st.tuples(*calls[name]), label=name)
        try:
            assert_finite(getattr(thing, name)(*arguments), f'{name}()')
            for attribute in _public_attributes(thing):
                assert_finite(getattr(thing, attribute), attribute,
                              attribute in case.may_be_infinite)
        except BipedComError as error:
            assert str(error).strip(), 'the error says nothing'


def _public_attributes(thing: Any) -> list[str]:
    kind = type(thing)
    names = {*getattr(thing, '__dict__', ()), *getattr(thing, '__slots__', ()), *(
        name for name in dir(kind) if isinstance(
            inspect.getattr_static(kind, name), (property, functools.cached_property)))}
    return sorted(name for name in names if not name.startswith('_'))


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
    assert_finite(result, 'the result', case.may_be_infinite, bool(case.nan_means))


def assert_finite(result: Any, what: str, may_be_infinite: bool = False,
                  may_be_nan: bool = False) -> None:
    """Check all numbers in a result."""
    for where, value in numbers_in(result):
        is_wrong = (not may_be_nan and np.isnan(value)) | (
            not may_be_infinite and np.isinf(value))
        assert not np.any(is_wrong), f'{what}{where} is {value}'


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
