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
XML from others: no entities, nothing from other files or the network, bounded size and depth.

Entities let a few lines stand for gigabytes, or for a file of this machine. They are declared in a
document type, which no URDF, MJCF or launch file needs: one that has it is refused.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from biped_com_ros.core.errors import RobotDescriptionError

LARGEST_TEXT = 32 * 1024 ** 2
"""Characters of the longest text."""
DEEPEST = 200
"""Levels of nesting."""

DOCUMENT_TYPE = ('has a document type (<!DOCTYPE>), which can declare entities and is not read; '
                 'remove it')


def parse_xml(text: str, what: str) -> ElementTree.Element:
    """
    Return the root of a text.

    Parameters
    ----------
    text
        The text; white space around it is ignored.
    what
        Description of the text, for messages.

    Raises
    ------
    RobotDescriptionError
        If it is not well-formed, has a document type, or is larger than the limits of this
        module.

    """
    if len(text) > LARGEST_TEXT:
        raise RobotDescriptionError(
            f'{what} has {len(text)} characters; the largest that is read has {LARGEST_TEXT}')
    parser = ElementTree.XMLParser(target=_BoundedBuilder(what))
    try:
        parser.feed(text.strip())
        root: ElementTree.Element = parser.close()
    except (ElementTree.ParseError, ValueError) as error:  # ValueError: of its encoding
        raise RobotDescriptionError(f'{what} is not well-formed XML: {error}') from None
    return root


class _BoundedBuilder(ElementTree.TreeBuilder):
    """Builds elements; ends at a document type and at too deep a nesting."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what, self._depth = what, 0

    def start(self, tag: Any, attributes: Any, /) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise RobotDescriptionError(f'{self._what} nests more than {DEEPEST} levels')
        return super().start(tag, attributes)

    def end(self, tag: Any, /) -> Any:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, *_: Any) -> None:
        raise RobotDescriptionError(f'{self._what} {DOCUMENT_TYPE}')


def check_no_document_type(text: bytes, what: str) -> None:
    """
    Raise an error for a document type, in a text that another library parses.

    What is not well-formed is left to that library.

    Raises
    ------
    RobotDescriptionError
        If there is one.

    """
    def refuse(*_: Any) -> None:
        raise RobotDescriptionError(f'{what} {DOCUMENT_TYPE}')

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError:
        pass
