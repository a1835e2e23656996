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
YAML from others: plain values of bounded size, whatever the text.

A few lines of aliases to lists of aliases stand for gigabytes, a hundred thousand brackets
overflow the stack of libyaml, and numbers of a million digits take minutes: all are errors before
anything is built.
"""

from __future__ import annotations

from typing import Any

from biped_com_ros.core.errors import ConfigurationError
import yaml

LARGEST_TEXT = 1024 ** 2
"""Characters of the longest text."""
MOST_NODES = 100_000
"""Keys and values, where an alias counts as what it stands for."""
DEEPEST = 50
"""Levels of nesting."""
_LONGEST_PLAIN = 4096  # characters of a value without quotes: numbers are among them

LOADER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
"""Loads plain values only; libyaml's where PyYAML has it: 2 instead of 70 ms of a node's start."""


def load_yaml(text: str, what: str) -> Any:
    """
    Return the plain values of a YAML text, None if it is empty.

    Parameters
    ----------
    text
        The text.
    what
        Description of the text or its file, for messages.

    Raises
    ------
    ConfigurationError
        If it is no YAML, gives a key twice, or is larger than the limits of this module.

    """
    check_bounds(text, what)
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        _check_keys(node, what)
        return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # ValueError: a date such as 2026-13-01
        raise ConfigurationError(f'{what} is not valid YAML: {error}') from None
    finally:
        loader.dispose()


def _check_keys(node: Any, what: str) -> None:
    """Raise an error for a key that is given twice; YAML would silently keep the last one."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item, what)
    if isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            if str(key.value) in keys:
                raise ConfigurationError(
                    f"{what} gives key '{key.value}' twice, the second time in line "
                    f'{key.start_mark.line + 1}')
            keys.add(str(key.value))
            _check_keys(value, what)


def check_bounds(text: str, what: str) -> None:
    """
    Check that a text is YAML and within the limits, without building anything.

    Raises
    ------
    ConfigurationError
        If it is not.

    """
    if len(text) > LARGEST_TEXT:
        raise ConfigurationError(
            f'{what} has {len(text)} characters; the largest YAML text that is read has '
            f'{LARGEST_TEXT}')
    bounds = _Bounds(what)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            bounds.add(event)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(f'{what} is not valid YAML: {error}') from None


class _Bounds:
    """Counts what a text stands for, event by event."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._open: list[tuple[str | None, int]] = []  # anchor, nodes before it
        self._nodes = 0
        self._sizes: dict[str, int] = {}  # nodes by anchor

    def add(self, event: Any) -> None:
        """Count an event; raise an error when a limit is passed."""
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, self._nodes))
            self._nodes += 1
            if len(self._open) > DEEPEST:
                raise self._error(event, f'nests more than {DEEPEST} levels')
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._open.pop()
            if anchor is not None:
                self._sizes[anchor] = self._nodes - before
        elif isinstance(event, yaml.ScalarEvent):
            self._nodes += 1
            if len(event.value) > _LONGEST_PLAIN and (event.implicit[0] or event.tag):
                raise self._error(event, f'has a value of {len(event.value)} characters without '
                                  f'quotes (at most {_LONGEST_PLAIN})')
            if event.anchor is not None:
                self._sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            self._add_alias(event, str(event.anchor))
        if self._nodes > MOST_NODES:
            raise self._error(event, f'stands for more than {MOST_NODES} values, by its size or '
                              'by aliases')

    def _add_alias(self, event: Any, name: str) -> None:
        if any(anchor == name for anchor, _ in self._open):
            raise self._error(event, f"has an alias '*{name}' inside of what it stands for")
        self._nodes += self._sizes.get(name, 1)

    def _error(self, event: Any, problem: str) -> ConfigurationError:
        return ConfigurationError(f'{self._what} {problem}, in line {event.start_mark.line + 1}')
