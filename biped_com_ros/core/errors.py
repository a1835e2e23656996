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
Errors of the package, with one base class, so that callers can catch all at once.

Every message gives the problem, the value, the valid values and a remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import math
import re

#: Largest number of characters of a name from outside that a text repeats.
_BRIEF = 60


def brief(name: str) -> str:
    """Return a name from outside as a text can show it: on one line, only its beginning."""
    return printable(name if len(name) <= _BRIEF else f'{name[:_BRIEF]}...')


def printable(text: str) -> str:
    """Return a text from outside on one line, without characters that control a terminal."""
    return text if text.isprintable() else text.encode('unicode_escape').decode()


class BipedComError(Exception):
    """Base class of all errors of this package."""


class ConfigurationError(BipedComError):
    """A robot file, a parameter or an argument is not valid."""


class MissingPackageError(ConfigurationError, ImportError):
    """A Python package that is needed here cannot be imported."""


class UnknownNameError(ConfigurationError):
    """
    A name is not among those that exist.

    Parameters
    ----------
    kind
        Kind of name, in the singular: ``'joint'``, ``'frame'``, ``'key'``.
    name
        The unknown name.
    valid
        The names that exist.
    where
        Where the name is used, e.g. ``'feet.left of talos.yaml'``.

    """

    def __init__(self, kind: str, name: str, valid: Iterable[str], where: str = '') -> None:
        self.kind, self.name, self.valid = kind, name, tuple(valid)
        place = f' in {where}' if where else ''
        from biped_com_ros.core.spelling import likeliest_name  # slow to import, rarely needed
        close = likeliest_name(name, self.valid)
        hint = f"; did you mean '{close}'?" if close else ''
        super().__init__(
            f"unknown {kind} '{brief(name)}'{place}{hint} (valid: "
            f"{some_of(sorted(self.valid), 40) or 'none'})")


class SettingError(ConfigurationError):
    """A value of a settings object is out of range; the message has the fields in quotes."""

    def renamed(self, names: Mapping[str, str]) -> SettingError:
        """
        Return the error with other names of the fields.

        Parameters
        ----------
        names
            Names that the user knows, such as those of parameters, by field.

        """
        return SettingError(re.sub(
            r"'(\w+)'", lambda field: f"'{names.get(field[1], field[1])}'", str(self)))


class RobotDescriptionError(BipedComError):
    """The URDF is broken or lacks something that the configuration relies on."""


class InputError(BipedComError):
    """Data arriving at run time cannot be used: not finite, missing, stale, wrong frame."""


def check_positive(what: str, options: object, *names: str, or_zero: bool = False) -> None:
    """
    Check that settings are positive and finite.

    Parameters
    ----------
    what
        Description of the settings, for the message.
    options, names
        An object and the names of its attributes; default: all of them.
    or_zero
        Whether zero is allowed as well.

    Raises
    ------
    ConfigurationError
        If one of them is not.

    """
    for name in names or vars(options):
        value = getattr(options, name)
        if not (0.0 < value < math.inf or (or_zero and value == 0.0)):
            allowed = 'positive or zero' if or_zero else 'positive'
            raise ConfigurationError(f'{what}: {name} must be {allowed}, not {value}')


def check_setting(settings: object, name: str, valid: bool, valid_values: str,
                  unit: str = '') -> None:
    """
    Check one value of a settings object.

    Parameters
    ----------
    settings, name
        An object and the name of its field.
    valid
        Whether the value is valid.
    valid_values
        What it must be, and what to do if it is not; with names of fields in quotes.
    unit
        Of the value.

    Raises
    ------
    SettingError
        If it is not valid.

    """
    if not valid:
        value = f'{getattr(settings, name)} {unit}'.rstrip()
        raise SettingError(f"'{name}' is {value}; it must be {valid_values}")


def some_of(names: Sequence[str], limit: int = 4) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f' and {len(names) - limit} more' if len(names) > limit else ''
    return ', '.join(names[:limit]) + more
