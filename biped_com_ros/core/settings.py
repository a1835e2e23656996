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
Settings that are said once: default, meaning, unit and valid values beside each other.

::

    @dataclass(frozen=True, kw_only=True)
    class ContactThresholds(Settings):
        engage: float = setting(0.06, 'Force above which it begins', '', 0.0, 1.0)
        dwell: float = 0.002

    @dataclass(frozen=True)
    class NodeParameters:
        rate: float = setting(50.0, 'Rate of the node', 'Hz', 1.0, 1000.0)
        touch: ContactThresholds = settings(ContactThresholds, 'touch_{}')

A node offers what is declared by `setting` as ROS parameters, here `rate` and `touch_engage`;
its files and its documentation are written from the same declarations. A setting with a `name` has
that name in every node. What nobody can choose by looking at a robot is a field without `setting`,
if code chooses it, and a constant of its module otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
from dataclasses import dataclass
import math
import typing
from typing import Any, TypeVar

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, SettingError, UnknownNameError

_T = TypeVar('_T')
_KEY = 'biped_com_ros'


@dataclass(frozen=True)
class SettingInfo:
    """
    Description and valid values of a setting.

    Attributes
    ----------
    description, unit
        For users.
    minimum, maximum
        Valid range, both included (of each element, if it is a list).
    options
        Valid values (of each element, if it is a list), if they can be listed.
    read_only
        Whether it can only be set at the start.
    name
        Its name from outside, whatever the pattern of names of `settings`; empty: by the pattern.

    """

    description: str
    unit: str = ''
    minimum: float | None = None
    maximum: float | None = None
    options: tuple[Any, ...] = ()
    read_only: bool = False
    name: str = ''

    def text(self) -> str:
        """Return description, unit and valid values, as in parameter files."""
        unit = f' [{self.unit}]' if self.unit else ''
        valid = f' ({self.constraint()})' if self.constraint() else ''
        return f'{self.description}{unit}{valid}'

    def constraint(self) -> str:
        """Return the valid values as text; '' if every value of the type is valid."""
        unit = f' {self.unit}' if self.unit else ''
        if self.options:
            return 'one of ' + ', '.join(repr(option) for option in self.options)
        if self.minimum is not None and self.maximum is not None:
            return f'{self.minimum:g} to {self.maximum:g}{unit}'
        if self.minimum is not None:
            return f'at least {self.minimum:g}{unit}'
        return f'at most {self.maximum:g}{unit}' if self.maximum is not None else ''

    def problem(self, value: Any) -> str:
        """Return what is wrong with a value, or an element of a list; '' if it is valid."""
        if isinstance(value, float) and not math.isfinite(value) and value != self.maximum:
            return 'has to be finite'
        if self.options:
            return '' if value in self.options else 'is not an option'
        too_small = self.minimum is not None and value < self.minimum
        too_large = self.maximum is not None and value > self.maximum
        return 'is out of range' if too_small or too_large else ''


@dataclass(frozen=True)
class _Nested:
    """Settings within settings: their class, how the names of their fields become others'."""

    kind: Callable[..., Any]
    names: str
    fixed: Mapping[str, Any]


def setting(default: Any, description: str, unit: str = '', minimum: float | None = None,
            maximum: float | None = None, options: Sequence[Any] = (),
            read_only: bool = False, name: str = '') -> Any:
    """
    Return a dataclass field with its meaning.

    Parameters
    ----------
    default
        Default value; lists are copied.
    description, unit, minimum, maximum, options, read_only, name
        See :class:`SettingInfo`.

    """
    metadata = {_KEY: SettingInfo(
        description, unit, minimum, maximum, tuple(options), read_only, name=name)}
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def gravity_setting() -> Any:
    """Return the setting `gravity`: it does not change while a node runs."""
    return setting(GRAVITY, 'Gravitational acceleration', 'm/s2', 0.1, 30.0, read_only=True,
                   name='gravity')


def wrench_delay_setting() -> Any:
    """Return the setting `wrench_delay`."""
    return setting(
        0.0045, 'Delay of the wrenches of the feet by filters and drivers, undone where they are '
        'compared with the motion; 0.0045 is that of the low-pass of wrench_aggregator at its '
        'default (of second order: 0.225 / low_pass_cutoff)', 's', 0.0, 0.1, name='wrench_delay')


def settings(kind: Callable[..., Any], names: str = '{}', **fixed: Any) -> Any:
    """
    Return a dataclass field: other settings.

    Parameters
    ----------
    kind
        Their dataclass.
    names
        Pattern of the names of its settings from outside, such as ``'contact_{}'``; patterns
        further out do not change them. Two settings with the same name from outside have the same
        value.
    fixed
        Values that are not settings from outside.

    """
    return dataclasses.field(
        default_factory=lambda: kind(**fixed), metadata={_KEY: _Nested(kind, names, fixed)})


def setting_fields(kind: Callable[..., Any], names: str = '{}', fixed: Collection[str] = ()
                   ) -> dict[str, tuple[Any, Any, SettingInfo]]:
    """
    Return type, default and `SettingInfo` of each setting of a dataclass, by name from outside.

    Parameters
    ----------
    kind, names, fixed
        See `settings`.

    """
    types = typing.get_type_hints(kind)
    found: dict[str, tuple[Any, Any, SettingInfo]] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        info = field.metadata.get(_KEY)
        if field.name in fixed:
            continue
        if isinstance(info, _Nested):
            for name, inner in setting_fields(info.kind, info.names, info.fixed).items():
                found.setdefault(name, inner)
        elif info:
            default = (field.default if field.default_factory is dataclasses.MISSING
                       else field.default_factory())
            found[outside_name(field, names)] = types[field.name], default, info
    return found


def outside_name(field: Any, names: str) -> str:
    """Return the name of a field from outside."""
    return getattr(field.metadata.get(_KEY), 'name', '') or names.format(field.name)


def make_settings(kind: Callable[..., _T], values: Mapping[str, Any], names: str = '{}',
                  **fixed: Any) -> _T:
    """
    Build a settings object.

    Parameters
    ----------
    kind
        Its dataclass.
    values
        By the names of `setting_fields`; others are ignored, missing ones have their default.
    names, fixed
        See `settings`.

    Raises
    ------
    SettingError
        If a value is not valid; the message has the names of `values` in quotes.

    """
    given, outside = dict(fixed), {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        info, name = field.metadata.get(_KEY), outside_name(field, names)
        outside[field.name] = name
        if field.name in fixed:
            continue
        if isinstance(info, _Nested):
            given[field.name] = make_settings(info.kind, values, info.names, **info.fixed)
        elif info and name in values:
            given[field.name] = values[name]
    try:
        return kind(**given)
    except SettingError as error:
        raise error.renamed(outside) from None


def settings_from_lines(kind: Callable[..., _T], lines: Iterable[str], what: str) -> _T:
    """
    Build a settings object from lines, each ``<name> <value>``.

    Parameters
    ----------
    kind
        A dataclass of numbers; see `setting_fields` for their names.
    lines
        Empty ones are skipped.
    what
        What a line is, for messages.

    Raises
    ------
    ConfigurationError
        If a name is not known, or a value is not a number or not valid.

    """
    fields, values = setting_fields(kind), {}
    for line in filter(None, lines):
        name, *rest = line.split() or ['']
        if name not in fields:
            raise UnknownNameError(what, name, fields, f"'{line}'")
        try:
            (values[name],) = map(float, rest)
        except ValueError:
            raise ConfigurationError(f"{what} '{line}' has to be '{name} <number>'") from None
    return make_settings(kind, values)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """
    Base class: a value out of its range is an error.

    Raises
    ------
    SettingError
        If a value is not valid; its name is in quotes.

    """

    def __init_subclass__(cls) -> None:
        """Document the fields by what they are declared with."""
        fields = {name: field.metadata.get(_KEY) for name, field in vars(cls).items()
                  if isinstance(field, dataclasses.Field)}
        lines = [f'    {name}\n        {info.text()}.' for name, info in fields.items()
                 if isinstance(info, SettingInfo)]
        if lines and cls.__doc__:
            cls.__doc__ = '\n'.join((
                cls.__doc__.rstrip(), '\n    Attributes\n    ----------', *lines, '\n    '))

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            info = field.metadata.get(_KEY)
            if not isinstance(info, SettingInfo):
                continue
            value = getattr(self, field.name)
            for element in value if isinstance(value, (list, tuple)) else (value,):
                if info.problem(element):
                    raise SettingError(
                        f"'{field.name}' is {element}; it must be {info.constraint() or 'finite'}")
