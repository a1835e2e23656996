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

FREE = 'floating', 'planar'
"""Types of joints of a free base, in URDFs."""

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
    builder, depth = ElementTree.TreeBuilder(element_factory=_Located), 0
    parser = expat.ParserCreate()
    blank = len(text) - len(text.lstrip())  # an XML declaration may not follow white space
    first = text.count('\n', 0, blank)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise RobotDescriptionError(f'{what} nests more than {DEEPEST} levels')
        element = builder.start(tag, attributes)
        assert isinstance(element, _Located)
        element.line = first + parser.CurrentLineNumber

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    _refuse_document_type(parser, what)
    try:
        parser.Parse(text[blank:].rstrip(), True)
        root: ElementTree.Element = builder.close()
    except (expat.ExpatError, ValueError) as error:  # ValueError: of its encoding
        raise RobotDescriptionError(f'{what} is not well-formed XML: {error}') from None
    finally:  # it holds the functions, which hold it
        parser.StartElementHandler = parser.EndElementHandler = None
    return root


class _Located(ElementTree.Element):
    """An element that knows its line."""

    line = 0


def line_of(element: ElementTree.Element) -> str:
    """Return where an element of :func:`parse_xml` began, for messages; '' if it was made."""
    line = getattr(element, 'line', 0)
    return f' (line {line})' if line else ''


def leave_out_free_root(robot: ElementTree.Element) -> None:
    """
    Leave out of a URDF an empty root link with one floating or planar joint (in place).

    Some exporters write the freedom of the base so; here every base is free.
    """
    children = {child.get('link') for child in robot.findall('joint/child')}
    for link in robot.findall('link'):
        name = link.get('name')
        below = [joint for joint in robot.findall('joint')
                 if any(parent.get('link') == name for parent in joint.findall('parent'))]
        if name not in children and len(below) == 1 and below[0].get('type') in FREE and (
                link.find('inertial') is None):
            robot.remove(link)
            robot.remove(below[0])
            return


def check_no_document_type(text: bytes, what: str) -> None:
    """
    Raise an error for a document type, in a text that another library parses.

    What is not well-formed is left to that library.

    Raises
    ------
    RobotDescriptionError
        If there is one.

    """
    parser = expat.ParserCreate()
    _refuse_document_type(parser, what)
    try:
        parser.Parse(text, True)
    except expat.ExpatError:
        pass


def _refuse_document_type(parser: expat.XMLParserType, what: str) -> None:
    def refuse(*_: Any) -> None:
        raise RobotDescriptionError(f'{what} {DOCUMENT_TYPE}')

    parser.StartDoctypeDeclHandler = refuse
