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
Replaces inertials of a URDF and changes nothing else.

The text is edited in place, number by number, so that comments, sequence, white space and elements
of other tools stay as they are. A link's inertia is scaled with its mass and moves with its centre
of mass, because statics does not measure inertia. If it is not physically consistent, it is
replaced by the nearest inertia that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import math
import re
from xml.parsers import expat

from biped_com_ros.core.errors import InputError, RobotDescriptionError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.inertias import consistent_inertia
from biped_com_ros.core.model.urdf import MOMENTS, parse_urdf
import numpy as np


@dataclass(frozen=True)
class NewInertial:
    """New mass (kg) and centre of mass (in the link's frame, (3,), m) of a link."""

    mass: float
    com: Array


@dataclass
class _Tags:
    """Where the tags of one link's inertial begin, as byte offsets; -1 where there is none."""

    inertial: int = -1
    origin: int = -1
    mass: int = -1
    inertia: int = -1


def with_inertials(urdf: str, inertials: Mapping[str, NewInertial]) -> str:
    """
    Return URDF text with other masses and centres of mass.

    Parameters
    ----------
    urdf
        Text; expand xacro first.
    inertials
        New values of the links to change; the others stay as they are, to the byte.

    Raises
    ------
    RobotDescriptionError
        If the text is no URDF.
    UnknownNameError
        If a link does not exist or has no mass.
    InputError
        If a mass is not positive or something is not finite.

    """
    parse_urdf(urdf)
    for name, inertial in inertials.items():
        _check(name, inertial)
    text = urdf.encode('utf-8')
    tags = _find_tags(text)
    massive = [name for name, found in tags.items() if found.mass >= 0]
    edits: list[tuple[int, int, str]] = []
    for name, inertial in inertials.items():
        if name not in massive:
            raise UnknownNameError('link with mass', name, massive, 'the new inertials')
        edits += _edits(text, tags[name], inertial)
    return edited(text, edits)


def _check(name: str, inertial: NewInertial) -> None:
    com = np.asarray(inertial.com, dtype=float)
    if not 0.0 < inertial.mass < math.inf:
        raise InputError(f"link '{name}': the mass must be above zero, not {inertial.mass} kg")
    if com.shape != (3,) or not np.isfinite(com).all():
        raise InputError(f"link '{name}': the centre of mass must be three numbers, not {com}")


def start_tags(text: bytes, what: str) -> list[tuple[tuple[str, ...], dict[str, str], int]]:
    """
    Return each start tag of an XML: tags from the root to it, attributes, and its byte offset.

    Parameters
    ----------
    text
        The XML.
    what
        What it is, for the message.

    Raises
    ------
    RobotDescriptionError
        If it is not well-formed.

    """
    found: list[tuple[tuple[str, ...], dict[str, str], int]] = []
    path: list[str] = []
    parser = expat.ParserCreate('utf-8')

    def start(tag: str, attributes: dict[str, str]) -> None:
        path.append(tag)
        found.append((tuple(path), attributes, parser.CurrentByteIndex))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: path.pop()
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise RobotDescriptionError(f'the {what} is not well-formed XML: {error}') from None
    return found


def edited(text: bytes, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with the bytes from start to end of each edit replaced."""
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement.encode('utf-8') + text[end:]
    return text.decode('utf-8')


def _find_tags(text: bytes) -> dict[str, _Tags]:
    """Return each link's tags by parsing, which skips comments and other elements of that name."""
    tags: dict[str, _Tags] = {}
    link = ''
    for path, attributes, start in start_tags(_blank_leading_space(text), 'URDF'):
        if path == ('robot', 'link'):
            link = attributes.get('name', '')
            tags[link] = _Tags()
        elif path == ('robot', 'link', 'inertial'):
            tags[link].inertial = start
        elif path[:-1] == ('robot', 'link', 'inertial') and (
                path[-1] in ('origin', 'mass', 'inertia')):
            setattr(tags[link], path[-1], start)
    return tags


def _blank_leading_space(text: bytes) -> bytes:
    """Blank an XML declaration after white space, as others accept it, keeping all offsets."""
    start = len(text) - len(text.lstrip())
    end = text.index(b'?>') + 2 if text[start:start + 5] == b'<?xml' else start
    return b' ' * end + text[end:]


def _edits(text: bytes, tags: _Tags, new: NewInertial) -> list[tuple[int, int, str]]:
    """Return (start, end, replacement) for one link."""
    mass_tag = tag_at(text, tags.mass)
    ratio = new.mass / float(_value(mass_tag, 'value'))
    xyz = ' '.join(_number(value) for value in np.asarray(new.com).tolist())
    edits = [_replace_tag(tags.mass, mass_tag, {'value': _number(new.mass)})]
    if tags.origin >= 0:
        edits.append(_replace_tag(tags.origin, tag_at(text, tags.origin), {'xyz': xyz}))
    else:
        end = tags.inertial + len(tag_at(text, tags.inertial))
        edits.append((end, end, f'<origin xyz="{xyz}"/>'))
    if tags.inertia >= 0:
        edits.append(_scaled_inertia(text, tags.inertia, ratio))
    return edits


def _scaled_inertia(text: bytes, start: int, ratio: float) -> tuple[int, int, str]:
    tag = tag_at(text, start)
    xx, xy, xz, yy, yz, zz = (float(_value(tag, key, '0')) * ratio for key in MOMENTS)
    inertia = consistent_inertia([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    values = dict(zip(MOMENTS, inertia[np.triu_indices(3)].tolist()))
    present = {key: _number(value) for key, value in values.items()
               if value != 0.0 or _value(tag, key, '')}
    return _replace_tag(start, tag, present)


def tag_at(text: bytes, start: int) -> str:
    """Return a start tag, from < to >, with > allowed inside quotes."""
    found = re.compile(rb'<(?:[^"\'>]|"[^"]*"|\'[^\']*\')*>').match(text, start)
    assert found is not None  # expat has just parsed it
    return found.group().decode('utf-8')


def _value(tag: str, key: str, default: str = '0') -> str:
    found = re.search(rf'\s{key}\s*=\s*(["\'])(.*?)\1', tag, re.DOTALL)
    return found.group(2) if found else default


def _replace_tag(start: int, tag: str, values: Mapping[str, str]) -> tuple[int, int, str]:
    changed = tag
    for key, value in values.items():
        changed, count = re.subn(rf'(\s{key}\s*=\s*)(["\'])(.*?)\2', rf'\g<1>\g<2>{value}\g<2>',
                                 changed, count=1, flags=re.DOTALL)
        if not count:
            changed = re.sub(r'(\s*/?>)$', rf' {key}="{value}"\g<1>', changed)
    return start, start + len(tag.encode('utf-8')), changed


def _number(value: float) -> str:
    """Return a number with nine digits, without a minus before zero."""
    return f'{value + 0.0:.9g}'
