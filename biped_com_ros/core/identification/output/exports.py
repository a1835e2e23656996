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
Inertials of a calibrated URDF for other formats: MuJoCo's MJCF by body names, and plain YAML.

An MJCF is edited in place: only ``<inertial>`` of its bodies changes. Links that are fixed to a
body and have none of their own, as MuJoCo's compiler leaves them, are part of that body. A body
and the URDF link of its name must have one frame, as they have when MuJoCo compiled the URDF.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.files import read_bytes, read_text, write_atomically
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.identification.output.results import calibrated_urdf
from biped_com_ros.core.identification.output.robot_yaml import (
    deviations_after, errors_of, write_calibrated_robot)
from biped_com_ros.core.identification.output.urdf_inertials import (edited, start_tags, tag_at)
from biped_com_ros.core.model.inertias import consistent_inertia, link_inertias
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import parse_urdf, rpy_and_xyz_of
from biped_com_ros.core.plain_xml import check_no_document_type
import numpy as np
import pinocchio as pin
import yaml

_SMALLEST_RADIUS = 1e-3  # m; of gyration
#: Order of MuJoCo's fullinertia.
_FULL = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def write_exports(directory: Path, model: RobotModel, found: Identification, *, robot: str = '',
                  mjcf: Path | None = None, biases: Array | None = None) -> dict[str, Path]:
    """
    Write ``inertials.yaml``, the robot's YAML and an MJCF beside the results, each atomically.

    Parameters
    ----------
    directory
        Of the results.
    model
        The robot as it was while the poses were captured.
    found
        The estimate.
    robot
        Name of the robot or path of its YAML; '' for none.
    mjcf
        The user's MJCF; written as ``calibrated_<its name>``.
    biases
        See `corrections_after`.

    Returns
    -------
    dict of str to Path
        By kind: inertials, robot, mjcf.

    Raises
    ------
    ConfigurationError
        If a file cannot be read or written.
    RobotDescriptionError
        If the MJCF does not fit the URDF.

    """
    urdf, paths = calibrated_urdf(model, found), {'inertials': directory / 'inertials.yaml'}
    write_atomically(paths['inertials'], inertials_yaml(found, urdf))
    if robot:
        paths['robot'] = write_calibrated_robot(
            directory, robot, model, errors_of(found, model), biases,
            deviations_after(found, model))
    if mjcf is not None:
        paths['mjcf'] = directory / f'calibrated_{mjcf.name}'
        write_atomically(paths['mjcf'], with_mjcf_inertials(_read(mjcf), urdf))
    return paths


def _read(mjcf: Path) -> str:
    text = read_bytes(mjcf, 'MJCF')
    check_no_document_type(text, f"MJCF '{mjcf}'")
    return read_text(mjcf, 'MJCF')


def with_mjcf_inertials(mjcf: str, urdf: str) -> str:
    """
    Return an MJCF with the inertials of a URDF, everything else unchanged to the byte.

    Parameters
    ----------
    mjcf
        Text of a model whose bodies have the names of the URDF's links.
    urdf
        The URDF, with the new masses.

    Raises
    ------
    RobotDescriptionError
        If a link with mass belongs to no body, or MuJoCo would not use the inertials.

    """
    text = mjcf.encode('utf-8')
    bodies = _find_bodies(text)
    robot = parse_urdf(urdf)
    inertias = _by_body(robot, link_inertias(robot), bodies)
    edits = []
    for name, inertia in inertias.items():
        start, inertial = bodies[name]
        replacement = _inertial_tag(inertia)
        if inertial >= 0:
            tag = tag_at(text, inertial)
            if not tag.rstrip().endswith('/>'):
                replacement = replacement.replace('/>', '>')
            edits.append((inertial, inertial + len(tag.encode('utf-8')), replacement))
        else:
            end = start + len(tag_at(text, start).encode('utf-8'))
            edits.append((end, end, replacement))
    return edited(text, edits)


def inertials_yaml(found: Identification, urdf: str) -> str:
    """
    Return the estimated inertials as YAML: by link mass, com and inertia, with deviations.

    Parameters
    ----------
    found
        The estimate.
    urdf
        The calibrated URDF, from which the inertias are taken.

    Returns
    -------
    str
        ``mass`` kg, ``com`` (x, y, z) m and ``inertia`` (ixx, ixy, ixz, iyy, iyz, izz) kg m^2
        about it, all in the frame of the link; ``mass_sd`` and ``com_sd`` are standard deviations.

    """
    inertias = link_inertias(parse_urdf(urdf))
    links = {link.name: {
        'mass': float(link.mass), 'mass_sd': float(link.mass_std),
        'com': np.asarray(link.com).tolist(), 'com_sd': np.asarray(link.com_std).tolist(),
        'inertia': np.array(inertias[link.name].inertia)[np.triu_indices(3)].tolist()}
        for link in found.links}
    header = ('# Mass (kg), centre of mass (m) and inertia about it (ixx ixy ixz iyy iyz izz, '
              'kg m^2),\n# in the frame of each link; *_sd: standard deviations. Inertias are '
              'scaled with the mass.\n')
    return header + str(yaml.safe_dump(
        {'robot': found.robot, 'mass': float(found.mass), 'mass_sd': float(found.mass_std),
         'links': links}, sort_keys=False, default_flow_style=None, width=120))


def _find_bodies(text: bytes) -> dict[str, tuple[int, int]]:
    """Return where the tags of each named body and of its inertial begin; -1 for none."""
    bodies: dict[str, tuple[int, int]] = {}
    names: list[str] = []  # of the elements from the root to this one
    for path, attributes, start in start_tags(text, 'MJCF'):
        names = [*names[:len(path) - 1], attributes.get('name', '')]
        if path[-1] == 'body' and names[-1]:
            bodies[names[-1]] = start, -1
        elif path[-2:] == ('body', 'inertial') and names[-2] in bodies:
            bodies[names[-2]] = bodies[names[-2]][0], start
        elif path[-1] == 'compiler' and attributes.get('inertiafromgeom') == 'true':
            raise RobotDescriptionError(
                'the MJCF has <compiler inertiafromgeom="true">, which ignores every <inertial>: '
                'set it to "auto" first')
    return bodies


def _by_body(robot: ElementTree.Element, inertias: Mapping[str, pin.Inertia],
             bodies: Mapping[str, Any]) -> dict[str, pin.Inertia]:
    """Add up the links of each body, in its frame."""
    above = {str(_end(joint, 'child')): joint for joint in robot.findall('joint')}
    found: dict[str, pin.Inertia] = {}
    for link, inertia in inertias.items():
        body, moved = link, inertia
        while body not in bodies:
            joint = above.get(body)
            if joint is None or joint.get('type') != 'fixed':
                raise RobotDescriptionError(
                    f"link '{link}' has mass but no body: the MJCF needs a body of the name "
                    f"'{body}' (bodies: {', '.join(bodies) or 'none'}; files that it includes are "
                    'not read)')
            rpy, xyz = rpy_and_xyz_of(joint, f"joint '{joint.get('name')}'")
            pose = Pose.from_rpy(rpy, xyz)
            moved = pin.SE3(pose.rotation, pose.position).act(moved)
            body = _end(joint, 'parent')
        found[body] = found[body] + moved if body in found else moved
    return found


def _end(joint: ElementTree.Element, tag: str) -> str:
    element = joint.find(tag)
    return '' if element is None else str(element.get('link'))


def _inertial_tag(inertia: pin.Inertia) -> str:
    I: Array = consistent_inertia(inertia.inertia)  # noqa: E741
    # MuJoCo refuses point masses, which URDFs have for frames of sensors.
    least = inertia.mass * _SMALLEST_RADIUS ** 2
    I = I + max(0.0, least - float(np.linalg.eigvalsh(I)[0])) * np.eye(3)  # noqa: E741
    pos = ' '.join(f'{value + 0.0:.9g}' for value in inertia.lever)
    full = ' '.join(f'{I[i] + 0.0:.9g}' for i in _FULL)
    return f'<inertial pos="{pos}" mass="{inertia.mass:.9g}" fullinertia="{full}"/>'
