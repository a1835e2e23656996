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
URDF text: from a file, ``package://`` URI or xacro, and what Pinocchio does not keep of it.

Pinocchio lumps the inertia of links behind fixed joints into their parent joint and drops the
`mimic` relation; both are read here from the XML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape, unescape

from biped_com_ros.core.errors import (
    BipedComError, ConfigurationError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.files import read_bytes, read_text
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.geometry.shapes import box, cylinder, joined, sphere, Triangles
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.resources import (
    expected_place, find_package, resolve_in_urdf, resolve_uri)
from biped_com_ros.core.plain_xml import (
    check_no_document_type, FREE, leave_out_free_root, line_of, parse_xml)
import numpy as np
from numpy.typing import NDArray

SUPPORTED_JOINTS = ('revolute', 'continuous', 'prismatic', 'fixed')
"""Joint types understood by the rest of the package."""


@dataclass(frozen=True)
class LinkInertial:
    """Mass (kg) and centre of mass (in the link's frame, m) of one URDF link."""

    link: str
    mass: float
    com_in_link: NDArray[np.float64]


@dataclass(frozen=True)
class MimicRelation:
    """Joint that follows another: ``position = multiplier * leader + offset``."""

    leader: str
    multiplier: float
    offset: float


def load_urdf(config: RobotConfig, uri: str = '') -> str:
    """
    Return the URDF text of a robot.

    Parameters
    ----------
    config
        The robot; its `urdf` and `xacro_arguments` are used.
    uri
        Overrides ``config.urdf``.

    Raises
    ------
    ConfigurationError
        If there is no such file, none is configured, or it cannot be read.
    RobotDescriptionError
        If xacro fails.

    """
    uri = uri or config.urdf
    if not uri:
        raise ConfigurationError(
            f"robot '{config.name}' has no 'urdf': give a path or package:// URI, or publish it "
            'on the latched topic robot_description')
    path = resolve_uri(uri)
    if path.suffix == '.xacro':
        check_no_document_type(read_bytes(path, 'URDF'), f"URDF '{path}'")
        text = _expand_xacro(path, config)
    else:
        text = read_text(path, 'URDF')
    return _with_found_meshes(text, path.parent)


_MESH = re.compile(r"""(<mesh\b[^<>]*?\bfilename\s*=\s*)(["'])(.*?)\2""", re.DOTALL)


def _with_found_meshes(text: str, directory: Path) -> str:
    """
    Return a URDF that names by absolute paths the meshes that it names relative to itself.

    Once read, a URDF is known by its text alone: it is published, and written elsewhere. Meshes of
    installed packages keep their names.
    """
    def found(mesh: re.Match[str]) -> str:
        uri = unescape(mesh[3], _QUOTES)
        try:
            resolve_in_urdf(uri)
        except ConfigurationError:
            try:
                path: Path | None = resolve_in_urdf(uri, directory)
            except ConfigurationError:  # whoever needs it reports it, with its place
                path = expected_place(uri, directory)
            if path is not None:
                uri = escape(f'file://{path.resolve()}', _ESCAPES)
                return f'{mesh[1]}{mesh[2]}{uri}{mesh[2]}'
        return mesh[0]
    return _MESH.sub(found, text)


_QUOTES = {'&quot;': '"', '&apos;': "'"}
_ESCAPES = {character: name for name, character in _QUOTES.items()}


def _expand_xacro(path: Path, config: RobotConfig) -> str:
    try:
        import xacro  # needed for .xacro files only
    except ImportError:
        raise ConfigurationError(
            f"'{path}' needs xacro: install ros-$ROS_DISTRO-xacro (apt) or xacro (PyPI)") from None
    try:
        with _own_find(path.parent):
            return str(xacro.process_file(
                str(path), mappings=dict(config.xacro_arguments)).toprettyxml(indent='  '))
    except Exception as error:  # xacro has no common root for its errors.
        cause = getattr(error, 'exc', None)  # what it wraps, and shows twice
        reason = cause if isinstance(cause, BipedComError) else error
        raise RobotDescriptionError(f"xacro cannot expand '{path}': {reason}") from error


@contextmanager
def _own_find(directory: Path) -> Iterator[None]:
    """Let xacro's ``$(find package)`` find what the URIs of meshes find, also without ROS."""
    from xacro import substitution_args
    function = '_eval_find'
    theirs = getattr(substitution_args, function, None)
    setattr(substitution_args, function, lambda package: str(find_package(package, directory)))
    try:
        yield
    finally:
        setattr(substitution_args, function, theirs)


def parse_urdf(urdf: str) -> ElementTree.Element:
    """
    Parse URDF text and check what every part of the package relies on.

    Raises
    ------
    RobotDescriptionError
        If it is not XML, not a URDF, uses a joint type outside :data:`SUPPORTED_JOINTS`, or if
        its links do not form one tree.
    UnknownNameError
        If a joint connects a link that does not exist.

    """
    robot = parse_xml(urdf, 'the URDF')
    if robot.tag != 'robot':
        format_ = _OTHER_FORMATS.get(robot.tag, '')
        raise RobotDescriptionError(
            f'the URDF must have a <robot> at its root, not <{robot.tag}>'
            f'{format_ and f": that is {format_}; convert it to URDF"}')
    # Direct children only: <transmission> and <gazebo> hold elements of the same names.
    for element in (*robot.findall('link'), *robot.findall('joint')):
        if not element.get('name'):
            raise RobotDescriptionError(
                f'a <{element.tag}> of the URDF{line_of(element)} has no name; give it one')
    leave_out_free_root(robot)
    for link in robot.findall('link'):
        _check_inertial(link)
    joints = robot.findall('joint')
    for joint in joints:
        _check_joint(joint)
    _check_tree(robot.findall('link'), joints)
    return robot


_OTHER_FORMATS = {'mujoco': 'MJCF of MuJoCo', 'sdf': 'SDF of Gazebo'}


def for_kinematics(robot: ElementTree.Element) -> str:
    """
    Return a copy of the URDF for Pinocchio: no geometry, continuous joints as revolute ones.

    Without geometry no mesh file has to exist. A continuous joint would take two entries of
    Pinocchio's configuration; as an unbounded revolute joint it takes one like every other.
    """
    copy = ElementTree.Element('robot', robot.attrib)
    for link in robot.findall('link'):
        # With what is kept only; geometry is most of a URDF and would take most of the time.
        ElementTree.SubElement(copy, 'link', link.attrib).extend(
            map(_completed, link.findall('inertial')))
    for joint in robot.findall('joint'):
        kept = ElementTree.SubElement(copy, 'joint', joint.attrib)
        kept.extend(element for element in joint if element.tag in _KINEMATIC and element.attrib)
        if joint.get('type') == 'continuous':
            _unbound(kept)
    return ElementTree.tostring(copy, encoding='unicode')


_KINEMATIC = 'parent', 'child', 'origin', 'axis', 'limit', 'dynamics', 'mimic'
MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
"""Attributes of <inertia>, row by row of the upper triangle."""


def _completed(inertial: ElementTree.Element) -> ElementTree.Element:
    """Return an <inertial> with all moments; Pinocchio would drop its mass if one is missing."""
    complete = ElementTree.Element('inertial')
    complete.extend(element for element in inertial if element.tag != 'inertia')
    found = inertial.find('inertia')
    ElementTree.SubElement(complete, 'inertia', {
        key: '0' if found is None else found.get(key, '0') for key in MOMENTS})
    return complete


def numbers(element: ElementTree.Element | None, key: str, where: str, count: int = 3,
            default: str = '') -> NDArray[np.float64]:
    """
    Return an attribute of an element as numbers, (count,).

    Parameters
    ----------
    element, key
        The element, None where it is missing, and the name of the attribute.
    where
        Description of the element, for messages.
    count
        How many numbers there must be.
    default
        Text of a missing attribute.

    Raises
    ------
    RobotDescriptionError
        If these are not `count` finite numbers.

    """
    text = default if element is None else element.get(key, default)
    try:
        values = np.array(text.split(), dtype=float)
    except ValueError:
        values = np.empty(0)
    if values.shape != (count,) or not np.isfinite(values).all():
        line = '' if element is None else line_of(element)
        raise RobotDescriptionError(
            f"{where}{line}: {key} must be {count} finite number(s), not '{text}'{_hint(text)}")
    return values


def _hint(text: str) -> str:
    """Return what a text that should hold numbers looks like, and what to do; or ''."""
    return ('; expand it with xacro, or name the file *.urdf.xacro' if '${' in text else
            '; write decimals with a point, and spaces between numbers' if ',' in text else '')


def rpy_and_xyz_of(element: ElementTree.Element, where: str) -> tuple[
        NDArray[np.float64], NDArray[np.float64]]:
    """Return the <origin> in an element: roll, pitch, yaw (3,), rad, and position (3,), m."""
    origin = element.find('origin')
    return numbers(origin, 'rpy', where, 3, '0 0 0'), numbers(origin, 'xyz', where, 3, '0 0 0')


def shape_in_link(parent: ElementTree.Element, link: str,
                  read_mesh: Callable[[Path, NDArray[np.float64]], Triangles]) -> Triangles:
    """
    Return the shape of a <visual> or <collision> in the frame of its link.

    Parameters
    ----------
    parent
        The <visual> or <collision>.
    link
        Name of the link, for messages.
    read_mesh
        Returns the surface in a mesh file, with its coordinates scaled by factors (3,).

    Raises
    ------
    RobotDescriptionError
        If its geometry or its origin is not valid.
    ConfigurationError
        If its mesh file does not exist.

    """
    at = Pose.from_rpy(*rpy_and_xyz_of(parent, f"a <{parent.tag}> of link '{link}'"))
    shape = parent.find('geometry/*')
    if shape is None:
        raise RobotDescriptionError(f"a <{parent.tag}> of link '{link}' has no <geometry>")
    return _shape(shape, f"<{shape.tag}> of link '{link}'", read_mesh).moved(
        at.rotation, at.position)


def resolve_meshes(robot: ElementTree.Element) -> tuple[str, ...]:
    """
    Give the files of meshes by their paths (in place), and leave out shapes whose file is missing.

    Returns
    -------
    tuple of str
        What was left out, and why.

    """
    missing = []
    for link in robot.findall('link'):
        for shape in (*link.findall('visual'), *link.findall('collision')):
            mesh = shape.find('geometry/mesh')
            if mesh is None:
                continue
            try:
                mesh.set('filename', f"file://{resolve_in_urdf(mesh.get('filename', ''))}")
            except ConfigurationError as error:
                link.remove(shape)
                missing.append(f"left out a <{shape.tag}> of link '{link.get('name')}': {error}")
    return tuple(missing)


def continuous_joints(robot: ElementTree.Element) -> frozenset[str]:
    """Names of the continuous joints."""
    return frozenset(
        str(j.get('name')) for j in robot.findall('joint') if j.get('type') == 'continuous')


def mimic_joints(robot: ElementTree.Element) -> dict[str, MimicRelation]:
    """Followers by name; a chain of followers is resolved to its first leader."""
    direct = {}
    for joint in robot.findall('joint'):
        mimic = joint.find('mimic')
        if mimic is not None and joint.get('type') != 'fixed':
            where = f"<mimic> of joint '{joint.get('name')}'"
            direct[str(joint.get('name'))] = MimicRelation(str(mimic.get('joint')), *(
                numbers(mimic, key, where, 1, default).item()
                for key, default in _MIMIC.items()))
    return {name: _first_leader(name, direct) for name in direct}


def children_of_links(robot: ElementTree.Element) -> dict[str, list[tuple[str, str]]]:
    """Names of the joints below a link and of their child links, of a URDF that was checked."""
    children: dict[str, list[tuple[str, str]]] = {}
    for joint in robot.findall('joint'):
        parent, child = (str(end.get('link')) for tag in ('parent', 'child')
                         for end in joint.findall(tag)[:1])
        children.setdefault(parent, []).append((str(joint.get('name')), child))
    return children


def link_inertials(robot: ElementTree.Element) -> tuple[LinkInertial, ...]:
    """
    Return the links that have mass, in the order of the file.

    Raises
    ------
    RobotDescriptionError
        If a mass is negative or not a number, or if no link has any.

    """
    found = [_link_inertial(link) for link in robot.findall('link')]
    massive = tuple(inertial for inertial in found if inertial and inertial.mass > 0.0)
    if not massive:
        raise RobotDescriptionError(
            'no link of the URDF has an <inertial> with a mass above zero, so there is no centre '
            'of mass; export the URDF with its inertials')
    return massive


def _check_inertial(link: ElementTree.Element) -> None:
    """Raise errors for what is not a number, before Pinocchio drops the whole <inertial>."""
    where = f"<inertial> of link '{link.get('name')}'"
    found = link.findall('inertial')
    if len(found) > 1:
        raise RobotDescriptionError(
            f'{where}{line_of(found[1])} is the second one of this link; remove one')
    for inertial in found:
        mass = inertial.find('mass')
        if mass is None:
            raise RobotDescriptionError(
                f'{where}{line_of(inertial)} has no <mass value="..."/>; give it one, in kg')
        rpy_and_xyz_of(inertial, f'<origin> of {where}')
        _check_not_negative(mass, 'value', f'<mass> of {where}', '')
        inertia = inertial.find('inertia')
        for key in MOMENTS:
            numbers(inertia, key, f'<inertia> of {where}', 1, '0')


def _check_joint(joint: ElementTree.Element) -> None:
    """Raise errors where Pinocchio's parser would accept silently or not name the joint."""
    name, kind = joint.get('name'), joint.get('type')
    where = f"joint '{name}'"
    if kind not in SUPPORTED_JOINTS:
        raise RobotDescriptionError(
            f"{where}{line_of(joint)} has type '{kind}'; supported: {', '.join(SUPPORTED_JOINTS)}"
            f'{_FREE_ONLY_AT_ROOT if kind in FREE else ""}')
    rpy_and_xyz_of(joint, f'<origin> of {where}')
    if kind == 'fixed':
        return
    limit, axis, dynamics, mimic = map(joint.find, ('limit', 'axis', 'dynamics', 'mimic'))
    if limit is None and kind != 'continuous':
        raise RobotDescriptionError(
            f'{where}{line_of(joint)} is {kind} and needs a <limit> (lower, upper, effort, '
            'velocity)')
    if limit is not None:
        _check_limit(limit, f'<limit> of {where}')
    if axis is not None and not numbers(axis, 'xyz', f'<axis> of {where}').any():
        raise RobotDescriptionError(f'<axis> of {where}{line_of(axis)}: xyz must not be all zero')
    for key in ('damping', 'friction'):
        _check_not_negative(dynamics, key, f'<dynamics> of {where}')
    if mimic is not None:
        if not mimic.get('joint'):
            raise RobotDescriptionError(
                f'<mimic> of {where}{line_of(mimic)} has no joint="..."; name the one it follows')
        for key, default in _MIMIC.items():
            numbers(mimic, key, f'<mimic> of {where}', 1, default)


def _check_not_negative(element: ElementTree.Element | None, key: str, where: str,
                        default: str = '0') -> None:
    value = numbers(element, key, where, 1, default).item()
    if element is not None and value < 0.0:
        raise RobotDescriptionError(
            f'{where}{line_of(element)}: {key} is {value:g}, it must not be negative')


_MIMIC = {'multiplier': '1', 'offset': '0'}
_FREE_ONLY_AT_ROOT = ('; only the joint below an empty root link, which no other joint has as its '
                      'parent, may be free')


def _check_limit(limit: ElementTree.Element, where: str) -> None:
    for key in ('effort', 'velocity'):
        if key not in limit.attrib:
            raise RobotDescriptionError(f'{where}{line_of(limit)} has no {key}="..."; give it, or '
                                        '0 if it is not known')
        _check_not_negative(limit, key, where)
    lower, upper = (numbers(limit, key, where, 1, '0').item() for key in ('lower', 'upper'))
    if lower > upper:
        raise RobotDescriptionError(
            f'{where}{line_of(limit)}: lower {lower:g} is above upper {upper:g}; swap them')


def _check_tree(elements: list[ElementTree.Element], joints: list[ElementTree.Element]) -> None:
    """Raise errors for names used twice, links that do not exist, and anything but one tree."""
    links = [str(link.get('name')) for link in elements]
    _check_unique('link', links, elements)
    _check_unique('joint', [str(joint.get('name')) for joint in joints], joints)
    children = []
    for joint in joints:
        for end in ('parent', 'child'):
            element = joint.find(end)
            link = str(element.get('link')) if element is not None else ''
            if link not in links:
                where = f"{end} of joint '{joint.get('name')}'{line_of(joint)}"
                raise UnknownNameError('link', link, links, where)
        children.append(link)  # The loop ends with the child.
    _check_unique('child link', children, joints)
    roots = [link for link in links if link not in children]
    if len(roots) != 1:
        raise RobotDescriptionError(
            f'the links of a URDF must form one tree with one root link; this one has roots '
            f'{", ".join(roots) if roots else "none (the joints form a circle)"}')


def _check_unique(kind: str, names: list[str], elements: list[ElementTree.Element]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        where = ' and'.join(line_of(element) for name, element in zip(names, elements)
                            if name == twice[0])
        raise RobotDescriptionError(
            f'the URDF has more than one {kind} \'{", ".join(twice)}\'{where}')


def _link_inertial(link: ElementTree.Element) -> LinkInertial | None:
    inertial, name = link.find('inertial'), str(link.get('name'))
    if inertial is None:
        return None
    where = f"<inertial> of link '{name}'"
    return LinkInertial(name, numbers(inertial.find('mass'), 'value', where, 1).item(),
                        rpy_and_xyz_of(inertial, where)[1])


def _shape(shape: ElementTree.Element, where: str,
           read_mesh: Callable[[Path, NDArray[np.float64]], Triangles]) -> Triangles:
    if shape.tag == 'box':
        return box(numbers(shape, 'size', where))
    if shape.tag == 'sphere':
        return sphere(numbers(shape, 'radius', where, 1).item())
    if shape.tag == 'cylinder':
        return cylinder(numbers(shape, 'radius', where, 1).item(),
                        numbers(shape, 'length', where, 1).item())
    if shape.tag == 'mesh':
        return read_mesh(resolve_in_urdf(shape.get('filename', '')),
                         numbers(shape, 'scale', where, 3, '1 1 1'))
    if shape.tag == 'capsule':  # not in URDF, but some simulators write it
        radius, length = (numbers(shape, key, where, 1).item() for key in ('radius', 'length'))
        ends = [sphere(radius).moved(np.eye(3), np.array((0.0, 0.0, z)))
                for z in (-0.5 * length, 0.5 * length)]
        return joined([cylinder(radius, length), *ends])
    raise RobotDescriptionError(f'{where}: valid are box, cylinder, capsule, sphere and mesh')


def _first_leader(name: str, direct: dict[str, MimicRelation]) -> MimicRelation:
    mimic, followed = direct[name], {name}
    while mimic.leader in direct:
        if mimic.leader in followed:
            raise RobotDescriptionError(f"joint '{name}' mimics itself through a circle")
        followed.add(mimic.leader)
        upper = direct[mimic.leader]
        mimic = MimicRelation(upper.leader, mimic.multiplier * upper.multiplier,
                              mimic.multiplier * upper.offset + mimic.offset)
    return mimic


def _unbound(joint: ElementTree.Element) -> None:
    """Make a continuous joint a revolute one with limits that are never reached (in place)."""
    joint.set('type', 'revolute')
    given = joint.find('limit')
    written = {'effort': '1e9', 'velocity': '1e9', **({} if given is None else given.attrib)}
    if given is not None:
        joint.remove(given)
    ElementTree.SubElement(joint, 'limit', {**written, 'lower': '-1e9', 'upper': '1e9'})
