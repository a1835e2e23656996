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
"""Inertias of the links of a URDF, which Pinocchio lumps together behind fixed joints."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.urdf import MOMENTS, numbers, rpy_and_xyz_of
from biped_com_ros.core.plain_xml import line_of
import numpy as np
from numpy.typing import ArrayLike
import pinocchio as pin

SMALLEST_EIGENVALUE = 1e-12
"""Of the second moment of a link's mass, kg m^2."""


def consistent_inertia(inertia: ArrayLike) -> Array:
    """
    Return the nearest physically consistent inertia (3, 3).

    ``tr(I) / 2 - I`` is the second moment of the mass and has no negative eigenvalue; that is the
    triangle inequality of the principal moments.
    """
    given = np.asarray(inertia, dtype=float)
    moments, axes = np.linalg.eigh(0.5 * np.trace(given) * np.eye(3) - given)
    if moments[0] >= 0.0:
        return given
    second = (axes * np.maximum(moments, SMALLEST_EIGENVALUE)) @ axes.T
    return np.trace(second) * np.eye(3) - second


def unphysical_inertias(robot: ElementTree.Element) -> dict[str, str]:
    """
    Return what is wrong with the inertias of a URDF, by link.

    What depends on masses and their places alone is right nevertheless.
    """
    found = {}
    for link in robot.findall('link'):
        for inertial in link.findall('inertial'):
            if problem := _problem(inertial):
                found[str(link.get('name'))] = f'{problem}{line_of(inertial)}'
    return found


def _problem(inertial: ElementTree.Element) -> str:
    inertia = inertial.find('inertia')
    missing = [key for key in MOMENTS if inertia is None or key not in inertia.attrib]
    I = inertia_of(inertial, '<inertial>')  # noqa: E741
    if numbers(inertial.find('mass'), 'value', '<mass>', 1).item() == 0.0:
        return 'inertia but no mass' if I.any() else ''
    if missing:
        return f'no {"<inertia>" if inertia is None else ", ".join(missing)}'
    least, middle, most = np.linalg.eigvalsh(I).tolist()
    mass = numbers(inertial.find('mass'), 'value', '<mass>', 1).item()
    if most > mass * _LARGEST_RADIUS ** 2:
        return (f'a moment of {most:.3g} kg m^2 of {mass:g} kg, as if it were '
                f'{2.0 * math.sqrt(most / mass):.3g} m wide: check the unit')
    if least < -_ROUNDING * most:
        return f'a negative principal moment, {least:.3g} kg m^2'
    if most > (least + middle) * (1.0 + _ROUNDING):
        return (f'principal moments {least:.3g}, {middle:.3g} and {most:.3g} kg m^2, of which the '
                'last must be at most the sum of the others')
    return ''


#: Largest radius of gyration of a link, m.
_LARGEST_RADIUS = 2.0
#: Of moments that are written with few digits, relative.
_ROUNDING = 0.02


def inertia_of(inertial: ElementTree.Element, where: str) -> Array:
    """
    Return the inertia (3, 3) in an <inertial>, kg m^2; zero what is missing.

    Parameters
    ----------
    inertial
        The element; the inertia is along the axes of its <origin>.
    where
        Description of it, for messages.

    """
    I = np.zeros((3, 3))  # noqa: E741
    I[np.triu_indices(3)] = [numbers(inertial.find('inertia'), key, where, 1, '0').item()
                             for key in MOMENTS]
    return np.asarray(I + np.triu(I, 1).T)


def link_inertias(robot: ElementTree.Element) -> dict[str, pin.Inertia]:
    """Return mass, centre of mass and inertia about it of the links with mass, in their frames."""
    found = {}
    for link in robot.findall('link'):
        inertial = link.find('inertial')
        if inertial is None:
            continue
        where = f"<inertial> of link '{link.get('name')}'"
        mass = float(numbers(inertial.find('mass'), 'value', where, 1)[0])
        if mass <= 0.0:
            continue
        rpy, com = rpy_and_xyz_of(inertial, where)
        R = Pose.from_rpy(rpy, com).rotation
        I = R @ inertia_of(inertial, where) @ R.T  # noqa: E741
        found[str(link.get('name'))] = pin.Inertia(mass, com, consistent_inertia(I))
    return found
