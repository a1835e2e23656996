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
"""Reads launch XML into a tree of elements, each with its line number."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import read_bytes
from biped_com_ros.core.plain_xml import DEEPEST, DOCUMENT_TYPE
from biped_com_ros.launch_runner.errors import LaunchFileError

LARGEST_FILE = 1024 ** 2
"""Bytes of the largest launch file."""


@dataclass
class Element:
    """One XML element, e.g. ``<arg name="robot"/>``."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)

    @property
    def where(self) -> str:
        """``file:line`` of the opening tag."""
        return f'{self.file}:{self.line}'

    def get(self, name: str, default: str = '') -> str:
        """Return the raw text of an attribute, before any substitution."""
        return self.attributes.get(name, default)

    def nested(self, tag: str) -> list[Element]:
        """Return the direct children with this tag."""
        return [child for child in self.children if child.tag == tag]


def read_xml(file: Path) -> Element:
    """
    Read one XML file.

    Raises
    ------
    LaunchFileError
        If the file is missing or not well-formed, or holds text outside of attributes.

    """
    try:
        text = read_bytes(file, 'launch file', LARGEST_FILE)
    except ConfigurationError as error:
        raise LaunchFileError(str(file), str(error)) from error
    return _Builder(file).build(text)


class _Builder:
    """Builds the tree from expat's events."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open: list[Element] = []
        self._root: Element | None = None
        self._parser: Any = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse

    def build(self, text: bytes) -> Element:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise LaunchFileError(f'{self._file}:{error.lineno}',
                                  f'not well-formed XML: {expat.ErrorString(error.code)} '
                                  f'(column {error.offset + 1})') from error
        assert self._root is not None  # expat refuses a document without a root
        return self._root

    def _refuse(self, *_: Any) -> None:
        raise LaunchFileError(f'{self._file}:{self._parser.CurrentLineNumber}', DOCUMENT_TYPE)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEEPEST:
            raise LaunchFileError(f'{self._file}:{self._parser.CurrentLineNumber}',
                                  f'nests more than {DEEPEST} levels')
        element = Element(tag, attributes, self._file, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        if text.strip():
            raise LaunchFileError(
                f'{self._file}:{self._parser.CurrentLineNumber}',
                f"text '{text.strip()}' inside <{self._open[-1].tag}>: a launch file has "
                'attributes only')
