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
Hidden errors: differences between the simulated robot and its URDF.

The estimators use the URDF; the simulated robot has other masses, as a real robot does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.sim.description import Description, Link
import numpy as np

MIN_MASS_SHARE = 0.2
"""Drawn errors leave a link at least this share of its mass."""

Vector3 = tuple[float, float, float]


@dataclass(frozen=True)
class LinkError:
    """True minus URDF values of a link: mass (kg), centre of mass (in the link's frame, m)."""

    mass: float = 0.0
    com: Vector3 = (0.0, 0.0, 0.0)


def draw(
        description: Description, seed: int, com_sigma: float, mass_sigma: float,
) -> dict[str, LinkError]:
    """
    Draw an error for every link with mass.

    Parameters
    ----------
    description
        The robot of the URDF.
    seed
        The same seed gives the same robot.
    com_sigma
        Standard deviation of each axis of each link's centre of mass, m.
    mass_sigma
        Standard deviation of each link's mass as a share of it.

    """
    if not (com_sigma >= 0.0 and mass_sigma >= 0.0):
        raise ConfigurationError(
            f'standard deviations must not be negative: com {com_sigma} m, mass {mass_sigma}')
    generator = np.random.default_rng(seed)
    errors = {}
    for link in description.links.values():
        if link.mass > 0.0:
            share = max(mass_sigma * generator.standard_normal(), MIN_MASS_SHARE - 1.0)
            x, y, z = (com_sigma * generator.standard_normal(3)).tolist()
            errors[link.name] = LinkError(share * link.mass, (x, y, z))
    return errors


def parse_errors(lines: Iterable[str]) -> dict[str, LinkError]:
    """
    Read errors from text, one link each: ``'torso 1.2 0.01 0 -0.02'`` (name, kg, m, m, m).

    Raises
    ------
    ConfigurationError
        If a line is not a name and four finite numbers.

    """
    errors = {}
    for line in lines:
        name, *rest = line.split() or ['']
        try:
            mass, x, y, z = (float(part) for part in rest)
        except ValueError:
            mass = x = y = z = np.nan
        if not np.isfinite((mass, x, y, z)).all():
            raise ConfigurationError(
                f"hidden error '{line}' must be a link and four finite numbers: "
                "'<link> <kg> <x m> <y m> <z m>'")
        errors[name] = LinkError(mass, (x, y, z))
    return errors


def apply(description: Description, errors: Mapping[str, LinkError]) -> Description:
    """
    Return the robot with errors; a link's inertia grows with its mass.

    Raises
    ------
    UnknownNameError
        If an error names a link that the URDF does not have, or one without mass.
    ConfigurationError
        If an error makes a mass zero or negative.

    """
    massive = [name for name, link in description.links.items() if link.mass > 0.0]
    for name in errors:
        if name not in massive:
            raise UnknownNameError('link with mass', name, massive, 'the hidden errors')
    links = {name: _changed(link, errors[name]) if name in errors else link
             for name, link in description.links.items()}
    return replace(description, links=links)


def _changed(link: Link, error: LinkError) -> Link:
    mass = link.mass + error.mass
    if mass <= 0.0:
        raise ConfigurationError(
            f"hidden error of link '{link.name}': {error.mass:+.3f} kg on {link.mass:.3f} kg "
            'leaves no mass; use a smaller error')
    return replace(link, mass=mass, com=link.com + np.array(error.com),
                   inertia=link.inertia * (mass / link.mass))
