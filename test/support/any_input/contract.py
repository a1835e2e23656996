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
from biped_com_ros.core.state.stance import Twist
import biped_com_ros.papers
from hypothesis import strategies as st
import numpy as np
from support.any_input import robots as r, values as v

#: Results are not deeper; a circle of references would have no end.
_DEEPEST = 6
_MOST_CALLS = 8

#: What parameters get of which no table knows the name, by their annotations.
TYPES = {
    'bool': v.flags, 'float': v.numbers, 'int': st.integers(), 'str': v.names,
    'bytes': st.binary(max_size=40), 'Sequence[str]': st.lists(v.names, max_size=4),
    'tuple[str, ...]': st.lists(v.names, max_size=4).map(tuple),
    'Iterable[str]': st.lists(v.names, max_size=4),
    'Array': v.vectors(), 'ArrayLike': v.vectors(), 'Vector': v.plain(3),
    'Sequence[float]': v.plain(3), 'Point': v.plain(2), 'Sequence[Point]': v.outlines,
    'Iterable[Point]': v.outlines, 'Twist': st.builds(Twist, v.vectors(), v.vectors()),
    'RobotModel': r.robots, 'RobotConfig': r.robots.map(lambda model: model.config),
    'Capture': r.plausible_captures, 'StaticsRegressor': r.regressor_of,
    'Pose': v.poses, 'Plane': v.planes}


class Arguments:
    """
    What functions are called with, by the names of their parameters, like fixtures of pytest.

    A table has, by scope (a dotted name below ``biped_com_ros.core``, or '' for all), what a name
    stands for: a strategy, a value, or a function of other names that returns one. The longest
    scope counts. ``arguments`` stands for the arguments all together; ``calls`` is the number of
    calls, ``may_be_infinite`` says that an infinite result has a meaning, ``nan_means`` what NaN
    means by the function's documentation, ``use`` what is done with the result. Parameters that
    have a default are left out unless the table knows them.
    """

    def __init__(self, *tables):
        self.tables = {scope: table for part in tables for scope, table in part.items()}
        assert len(self.tables) == sum(map(len, tables)), 'a scope is in two tables'

    def find(self, name, scope, default=None):
        """Return what a name stands for in a scope, or the default."""
        while name not in self.tables.get(scope, {}):
            if not scope:
                return default
            scope = scope.rpartition('.')[0]
        return self.tables[scope][name]

    def of(self, function):
        """Return the strategy of the arguments of a function."""
        scope = name_of(function)

        @st.composite
        def all_arguments(draw):
            drawn = {}
            if self.find('arguments', scope) is not None:
                return self._value('arguments', scope, draw, drawn)
            return tuple(
                self._value(name, scope, draw, drawn, TYPES.get(parameter.annotation))
                for name, parameter in inspect.signature(function).parameters.items()
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and (
                    parameter.default is parameter.empty or self.find(name, scope) is not None))
        return all_arguments()

    def _value(self, name, scope, draw, drawn, default=None):
        if name not in drawn:
            value = self.find(name, scope, default)
            assert value is not None, f'no table knows the parameter {name} of {scope}'
            if callable(value):
                value = value(*[self._value(needed, scope, draw, drawn)
                                for needed in inspect.signature(value).parameters])
            drawn[name] = draw(value) if isinstance(value, st.SearchStrategy) else value
        return drawn[name]


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
    calls_of: Callable[[Any], Mapping[str, tuple[st.SearchStrategy[Any], ...]]] = lambda _: {}
    may_be_infinite: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def public_methods(kind):
    """Return the names of the public methods of a class, without properties."""
    return {name for name in dir(kind) if (not name.startswith('_') and callable(
        inspect.getattr_static(kind, name))) or isinstance(
            inspect.getattr_static(kind, name), (classmethod, staticmethod))}


def check_object(kind, case, data):
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


def _public_attributes(thing):
    kind = type(thing)
    names = {*getattr(thing, '__dict__', ()), *getattr(thing, '__slots__', ()), *(
        name for name in dir(kind) if isinstance(
            inspect.getattr_static(kind, name), (property, functools.cached_property)))}
    return sorted(name for name in names if not name.startswith('_'))


def name_of(function):
    """Return the dotted name of a function below ``biped_com_ros.core``, or ``papers...``."""
    module = function.__module__.removeprefix('biped_com_ros.').removeprefix('core.')
    return f'{module}.{function.__qualname__}'


def public_functions():
    """Return all public functions of the core and the papers, by name."""
    found = {}
    # Declarations and imports, which get no numbers.
    for info in (info for package in (biped_com_ros.core, biped_com_ros.papers)
                 for info in pkgutil.walk_packages(package.__path__, f'{package.__name__}.')
                 if info.name.rpartition('.')[2] not in ('lazy', 'settings')):
        module = importlib.import_module(info.name)
        found.update({name_of(value): value for name, value in vars(module).items()
                      if inspect.isfunction(inspect.unwrap(value) if callable(value) else value)
                      and not name.startswith('_') and value.__module__ == info.name})
    return found


def check(function, arguments, use, may_be_infinite, may_be_nan):
    """Call a function; anything but a finite result or our error fails."""
    try:
        result = use(function(*arguments))
        if isinstance(result, Iterator):
            result = list(result)
    except BipedComError as error:
        assert str(error).strip(), 'the error says nothing'
        return
    assert_finite(result, 'the result', may_be_infinite, may_be_nan)


def assert_finite(result, what, may_be_infinite=False, may_be_nan=False):
    """Check all numbers in a result."""
    for where, value in numbers_in(result):
        is_wrong = (not may_be_nan and np.isnan(value)) | (
            not may_be_infinite and np.isinf(value))
        assert not np.any(is_wrong), f'{what}{where} is {value}'


def numbers_in(value, where='', depth=0):
    """Return all numbers in a result with the way to them."""
    if isinstance(value, (float, complex, np.floating)) or (
            isinstance(value, np.ndarray) and value.dtype.kind in 'fc'):
        yield where, value
    elif depth < _DEEPEST:
        for name, part in _parts_of(value):
            yield from numbers_in(part, f'{where}{name}', depth + 1)


def _parts_of(value):
    if isinstance(value, Mapping):
        yield from ((f'[{key!r}]', part) for key, part in value.items())
    elif isinstance(value, tuple) and hasattr(value, '_fields'):
        yield from ((f'.{name}', part) for name, part in zip(value._fields, value))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f'[{i}]', part) for i, part in enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f'.{field.name}', getattr(value, field.name)) for field in fields(value))
