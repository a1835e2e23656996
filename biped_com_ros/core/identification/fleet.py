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
Many units of one robot: what their CAD has wrong in all, how much they differ, who is an outlier.

Each unit is calibrated alone. Its information on masses and first moments, without the prior
(:class:`estimates.DataInformation`), and of its instruments enters a population
(:mod:`population`): its mean is an error of the CAD, its scatter is made in production. Mean and
scatter together are the prior of the next unit, which then needs fewer poses (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any, NamedTuple

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.files import read_text, write_atomically
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.equations.instruments import (
    InstrumentCalibration, InstrumentEstimate, SIGNIFICANT)
from biped_com_ros.core.identification.estimation.estimates import (
    DataInformation, Identification)
from biped_com_ros.core.identification.estimation.prior import FleetPrior, link_scaling
from biped_com_ros.core.identification.population import estimate_population, OUTLIER, Population
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

FORMAT = 1
LARGEST_SPREAD = (0.6, 0.05)
"""Of masses, as a share, and of centres of mass, m, about the URDF's: units that were calibrated
with a prior of the fleet do not show how far the URDF is off."""

SHOWN = 10
"""Number of links, instruments and units that a report names."""


@dataclass(frozen=True, kw_only=True)
class UnitResult:
    """
    The result of the calibration of one unit.

    Attributes
    ----------
    name, robot
        Of the unit and of its robot.
    poses
        Number of captures.
    links
        Names of the links.
    cad
        The URDF's masses and first moments, (L, 4), kg and kg m.
    data
        What the data alone determine; vector about `cad`.
    instruments
        Estimated errors of the instruments.

    """

    name: str
    robot: str
    poses: int
    links: tuple[str, ...]
    cad: Array
    data: DataInformation
    instruments: InstrumentCalibration

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for a file."""
        data = self.data
        return {'format': FORMAT, 'unit': self.name, 'robot': self.robot, 'poses': self.poses,
                'links': list(self.links), 'cad': self.cad.tolist(),
                'matrix': _upper(data.matrix), 'vector': data.vector.tolist(),
                'instruments': self.instruments.to_json(),
                'link_spread': data.link_spread.tolist(),
                'instrument_spread': {_key(e): s for e, s in zip(
                    self.instruments.estimates, data.instrument_spread.tolist())}}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> UnitResult:
        """
        Return what `to_plain` wrote.

        Raises
        ------
        ConfigurationError
            If something is missing or has a wrong size.

        """
        try:
            if plain['format'] != FORMAT:
                raise ValueError(f"format {plain['format']!r}, not {FORMAT}")
            links = tuple(plain['links'])
            instruments = InstrumentCalibration.from_json(plain['instruments'])
            return UnitResult(
                name=str(plain['unit']), robot=str(plain['robot']), poses=int(plain['poses']),
                links=links, cad=np.array(plain['cad'], dtype=float).reshape(len(links), 4),
                instruments=instruments, data=DataInformation(
                    _symmetric(plain['matrix'], 4 * len(links)),
                    np.array(plain['vector'], dtype=float).reshape(4 * len(links)),
                    np.array([plain['instrument_spread'][_key(e)]
                              for e in instruments.estimates]),
                    np.array(plain['link_spread'], dtype=float).reshape(2)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(f'not the result of a unit: {error!r}') from None


def unit_result(name: str, model: RobotModel, found: Identification) -> UnitResult:
    """Return the result of the calibration of a unit."""
    return UnitResult(
        name=name, robot=found.robot, poses=len(found.pose_misfit),
        links=tuple(model.link_names), cad=parameters_of(model), data=found.data,
        instruments=found.instruments)


def _upper(matrix: Array) -> list[float]:
    """Return the upper triangle of a symmetric matrix, row by row."""
    return list(matrix[np.triu_indices(len(matrix))].tolist())


def _symmetric(upper: Sequence[float], size: int) -> Array:
    """Return the matrix (size, size) of an upper triangle."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T


class CommonError(NamedTuple):
    """
    An unknown over the units.

    Attributes
    ----------
    name
        What it is, in words.
    unit
        Of the numbers.
    mean, mean_std
        What all units have in common, and its standard deviation.
    scatter
        Standard deviation of units about it.
    known
        By how many units the scatter is determined.

    """

    name: str
    unit: str
    mean: float
    mean_std: float
    scatter: float
    known: float

    @property
    def is_significant(self) -> bool:
        """Whether it is off in all units."""
        return abs(self.mean) > SIGNIFICANT * self.mean_std


class Deviation(NamedTuple):
    """A unit that is an outlier: its name, in what, and robust standard deviations."""

    unit: str
    name: str
    score: float


@dataclass(frozen=True, kw_only=True)
class FleetReport:
    """
    The result of many units.

    Attributes
    ----------
    robot
        Of all units.
    units
        Their names.
    links
        Names of the links.
    errors
        Of masses (kg) and centres of mass (m), link by link.
    instruments
        Of errors of the instruments.
    outliers
        Units that deviate, the farthest first.
    prior
        Of the next unit.

    """

    robot: str
    units: tuple[str, ...]
    links: tuple[str, ...]
    errors: tuple[CommonError, ...]
    instruments: tuple[CommonError, ...]
    outliers: tuple[Deviation, ...]
    prior: FleetPrior


def fleet_report(units: Sequence[UnitResult]) -> FleetReport:
    """
    Return what units have in common and how they differ.

    Parameters
    ----------
    units
        At least one; all with the same links and URDF.

    Raises
    ------
    InputError
        If there is no unit, or they are of different robots or URDFs.

    """
    if not units:
        raise InputError('no unit of the fleet has been calibrated; calibrate one or more')
    first = units[0]
    for unit in units:
        if unit.links != first.links or not np.allclose(unit.cad, first.cad):
            raise InputError(f"units '{first.name}' and '{unit.name}' have different URDFs: "
                             'calibrate all with the same one')
    T = link_scaling(first.cad, first.cad[:, 0])
    mass, com = np.median(np.minimum([u.data.link_spread for u in units], LARGEST_SPREAD), axis=0)
    sigma = np.tile((mass, com, com, com), len(first.links))
    links = estimate_population(
        np.array([T.T @ unit.data.matrix @ T for unit in units]),
        np.array([T.T @ unit.data.vector for unit in units]), sigma)
    instruments, scores, names = _instruments(units)
    labels = [label for name in first.links for label in (
        f'mass of {name}', *(f'centre of mass {axis} of {name}' for axis in 'xyz'))]
    scale = np.where(np.arange(len(sigma)) % 4, 1.0, np.repeat(first.cad[:, 0], 4))
    errors = tuple(
        _common(label, 'm' if i % 4 else 'kg', links, i, float(scale[i]))
        for i, label in enumerate(labels))
    return FleetReport(
        robot=first.robot, units=tuple(unit.name for unit in units), links=first.links,
        errors=errors, instruments=instruments, prior=_prior(first.cad, T, links),
        outliers=_outliers(units, np.concatenate((links.scores, scores), axis=1),
                           [*labels, *names]))


def _common(name: str, unit: str, population: Population, i: int,
            scale: float = 1.0) -> CommonError:
    return CommonError(
        name, unit, scale * float(population.mean[i]), scale * float(population.mean_std[i]),
        scale * float(population.scatter[i]), float(population.known[i]))


def _prior(cad: Array, T: Array, links: Population) -> FleetPrior:
    covariance = T @ links.covariance @ T.T
    return FleetPrior(cad + (T @ links.mean).reshape(-1, 4), 0.5 * (covariance + covariance.T))


def _instruments(units: Sequence[UnitResult]) -> tuple[tuple[CommonError, ...], Array, list[str]]:
    """Return errors of instruments over the units, scores (N, K), and their names."""
    found: dict[str, dict[int, tuple[InstrumentEstimate, float]]] = {}
    for k, unit in enumerate(units):
        for e, spread in zip(unit.instruments.estimates, unit.data.instrument_spread.tolist()):
            found.setdefault(_key(e), {})[k] = e, spread
    errors, scores, names = [], np.full((len(units), len(found)), np.nan), []
    for column, by_unit in enumerate(found.values()):
        estimates = [e for e, _ in by_unit.values()]
        sd = np.array([e.sd for e in estimates])
        spread = np.array([s for _, s in by_unit.values()])
        information = np.maximum(1.0 / sd ** 2 - 1.0 / spread ** 2, 0.0)
        population = estimate_population(
            information.reshape(-1, 1, 1),
            (np.array([e.estimate for e in estimates]) / sd ** 2)[:, np.newaxis],
            np.array([estimates[0].prior_sd]))
        scores[list(by_unit), column] = population.scores[:, 0]
        names.append(estimates[0].describe())
        errors.append(_common(names[-1], estimates[0].unit, population, 0))
    return tuple(errors), scores, names


def _outliers(units: Sequence[UnitResult], scores: Array,
              names: Sequence[str]) -> tuple[Deviation, ...]:
    magnitude = np.nan_to_num(np.abs(scores))
    worst = magnitude.argmax(axis=1)
    found = [Deviation(unit.name, names[i], float(scores[k, i]))
             for k, (unit, i) in enumerate(zip(units, worst.tolist()))
             if magnitude[k, i] >= OUTLIER]
    return tuple(sorted(found, key=lambda d: -abs(d.score)))


def _key(e: InstrumentEstimate) -> str:
    return f'{e.kind.value}/{e.name}/{e.axis}'


def describe_fleet(report: FleetReport) -> str:
    """Return a report in a few lines of text."""
    def lines(title: str, chosen: Sequence[CommonError]) -> list[str]:
        return [f'{title}:', *(f'  {_line(e)}' for e in chosen[:SHOWN])] if chosen else []

    def significant(errors: Sequence[CommonError]) -> list[CommonError]:
        return sorted((e for e in errors if e.is_significant),
                      key=lambda e: -abs(e.mean) / e.mean_std)

    scattered = sorted((e for e in report.errors if e.known > 0.3 * len(report.units)),
                       key=lambda e: -_relative(e, report.errors))
    text = [f'{len(report.units)} units of {report.robot}']
    text += lines('off in all units: correct the CAD', significant(report.errors))
    text += lines('instruments off in all units: correct URDF or calibration',
                  significant(report.instruments))
    text += lines('scatter of links from unit to unit, largest first', scattered)
    if report.outliers:
        text.append('outliers, in robust standard deviations:')
        text += [f'  {d.unit}: {d.name} {d.score:+.1f}' for d in report.outliers[:SHOWN]]
    return '\n'.join(text)


def _relative(e: CommonError, errors: Sequence[CommonError]) -> float:
    """Return the scatter over the median of the errors with the same unit."""
    return e.scatter / float(np.median([o.scatter for o in errors if o.unit == e.unit]))


def _line(e: CommonError) -> str:
    factor, unit = (1e3, 'mm') if e.unit == 'm' else (1.0, e.unit)
    return (f'{e.name}: {factor * e.mean:+.3g} +- {factor * 1.96 * e.mean_std:.2g} {unit}, '
            f'scatter {factor * e.scatter:.2g} {unit}').rstrip()


def fleet_numbers(report: FleetReport) -> dict[str, Any]:
    """Return the numbers of a report for a file."""
    return {'robot': report.robot, 'units': list(report.units),
            'links': [{**e._asdict(), 'significant': e.is_significant} for e in report.errors],
            'instruments': [{**e._asdict(), 'significant': e.is_significant}
                            for e in report.instruments],
            'outliers': [d._asdict() for d in report.outliers]}


def write_prior(path: Path, report: FleetReport) -> None:
    """
    Write the prior of the next unit, which `read_prior` reads.

    Raises
    ------
    ConfigurationError
        If it cannot be written.

    """
    write_atomically(path, json.dumps({
        'format': FORMAT, 'robot': report.robot, 'units': len(report.units),
        'links': list(report.links), 'mean': report.prior.mean.tolist(),
        'covariance': _upper(report.prior.covariance)}))


def read_prior(path: Path, model: RobotModel) -> FleetPrior:
    """
    Read the prior that `write_prior` wrote.

    Parameters
    ----------
    path
        The file.
    model
        The robot; its links must be those of the fleet.

    Raises
    ------
    ConfigurationError
        If it cannot be read, or is of another robot.

    """
    what = f"prior '{path}'"
    try:
        plain = json.loads(read_text(path, 'prior'))
        links, mean = tuple(plain['links']), np.array(plain['mean'], dtype=float)
        covariance = _symmetric(plain['covariance'], 4 * len(links))
        if plain['format'] != FORMAT or mean.shape != (len(links), 4) or not (
                mean[:, 0] > 0.0).all() or not np.isfinite(covariance).all():
            raise ValueError('format, sizes or numbers are wrong')
        np.linalg.cholesky(covariance)
    except (KeyError, TypeError, ValueError, RecursionError, np.linalg.LinAlgError) as error:
        raise ConfigurationError(
            f'{what} is damaged ({error!r}): write it again with calibrate --fleet') from None
    if links != tuple(model.link_names):
        other = sorted(set(links) ^ set(model.link_names))[:5]
        raise ConfigurationError(
            f"{what} is of {plain.get('robot')!r}, whose links are not those of "
            f"'{model.config.name}' (different: {', '.join(other) or 'their order'})")
    return FleetPrior(mean, covariance)
