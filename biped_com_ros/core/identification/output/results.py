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
"""The results of a calibration: the estimate, the corrected URDF, its numbers, and a report."""

from __future__ import annotations

from collections.abc import Sequence
import json
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.files import write_atomically
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.com_measurements import ComMeasurement
from biped_com_ros.core.identification.estimation.confounding import (
    Ambiguity, describe_ambiguities)
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.prior import FleetPrior, prior_of
from biped_com_ros.core.identification.output.report import html_report
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


def solve_and_write(directory: Path, model: RobotModel, captures: Sequence[Capture],
                    noise: SensorNoise, com_sigma: float,
                    known: Sequence[ComMeasurement] = (),
                    fleet: FleetPrior | None = None) -> tuple[
                        Identification, dict[str, Path]]:
    """
    Estimate from captures and write the results; see `write_results`.

    Parameters
    ----------
    directory
        Where the results go.
    model
        The robot as the URDF describes it; not used by any other thread meanwhile.
    captures
        At least two different poses.
    noise
        Of the sensors.
    com_sigma
        Standard deviation of each link's centre of mass about the URDF's, per axis, m.
    known
        Total centres of mass that are known otherwise.
    fleet
        What is known from other units of the robot.

    Raises
    ------
    InputError
        If the captures cannot be used, are too few or all alike.
    ConfigurationError
        If the directory cannot be written to.

    """
    prior = prior_of(model, com_sigma, fleet)
    found = Estimator(model, noise, prior).solve(captures, known=known)
    return found, write_results(directory, model, captures, found)


def calibrated_urdf(model: RobotModel, found: Identification) -> str:
    """Return the robot's URDF with the estimated masses and centres of mass."""
    return with_inertials(model.urdf, {
        link.name: NewInertial(link.mass, link.com) for link in found.links})


def write_results(directory: Path, model: RobotModel, captures: Sequence[Capture],
                  found: Identification) -> dict[str, Path]:
    """
    Write ``calibrated.urdf``, ``calibration.json`` and ``report.html``, each atomically.

    Returns
    -------
    dict of str to Path
        By kind: urdf, numbers, report.

    Raises
    ------
    ConfigurationError
        If the directory cannot be written to.

    """
    paths = {'urdf': directory / 'calibrated.urdf', 'numbers': directory / 'calibration.json',
             'report': directory / 'report.html'}
    write_atomically(paths['urdf'], calibrated_urdf(model, found))
    write_atomically(paths['numbers'], json.dumps(numbers(found), indent=1))
    write_atomically(paths['report'], html_report(model, captures, found))
    return paths


def numbers(found: Identification) -> dict[str, Any]:
    """Return the estimate as plain numbers, each with its standard deviation."""
    def plain(owner: object, *names: str) -> dict[str, Any]:
        return {name: np.asarray(getattr(owner, name)).tolist() for name in names}

    return {
        **plain(found, 'robot', 'mass', 'mass_std'),
        'links': {link.name: plain(
            link, 'mass', 'mass_std', 'mass_before', 'com', 'com_std', 'com_before', 'data_share')
            for link in found.links},
        'residuals': {name: plain(
            residuals, 'com_rms', 'torque_rms', 'torque_max', 'weight_mean')
            for name, residuals in found.residuals},
        'identifiability': plain(
            found.identifiability, 'unknowns', 'rank', 'determined', 'prior_only',
            'condition_number', 'prior_only_links'),
        'com_predicted': {'left_out': found.validated_com, 'error': found.com_error},
        'validation_ratio': found.validation_ratio,
        'ambiguities': [_plain_ambiguity(a) for a in found.ambiguities],
        'instruments': found.instruments.to_json(),
        'noise': [plain(n, 'kind', 'name', 'axis', 'unit', 'assumed', 'estimated', 'count')
                  for n in found.noise],
        'noise_scale': found.noise_scale, 'warnings': list(found.warnings)}


def summary(found: Identification) -> str:
    """Return the result in a few lines of text."""
    report, before, after = found.identifiability, found.before, found.validated
    com = '' if math.isnan(before.com_rms) else (  # nothing measures it without foot sensors
        f'horizontal error of the centre of mass {1e3 * before.com_rms:.2f} -> '
        f'{1e3 * after.com_rms:.2f} mm ({1e3 * found.validated_com:.2f} predicted; its own error '
        f'is predicted to be {1e3 * found.com_error:.2f} mm), ')
    lines = [
        found.verdict,
        f'{found.robot}: {found.mass:.3f} +- {1.96 * found.mass_std:.3f} kg (95 %; URDF '
        f'{sum(link.mass_before for link in found.links):.3f})',
        f'{com}joint torques {before.torque_rms:.3g} -> '
        f'{after.torque_rms:.3g} N m (on poses not used for the estimate)',
        f'{report.determined} of {report.unknowns} masses and first moments are determined by the '
        f'data, {report.prior_only} by the prior alone; errors on poses not used are '
        f'{found.validation_ratio:.2f} times the predicted ones (1: as predicted)']
    wrong = [e for e in found.instruments.estimates if e.is_significant]
    worst = sorted(wrong, key=lambda e: -abs(e.estimate) / e.sd)[:SHOWN]
    lines += [f'{e.describe()}: {e.estimate:+.3g} +- {1.96 * e.sd:.2g} {e.unit}; '
              f'{e.remedy}' for e in worst]
    if len(wrong) > len(worst):
        lines.append(f'{len(wrong) - len(worst)} more errors of instruments are significant')
    ambiguous = describe_ambiguities(found.ambiguities)
    if ambiguous:
        lines.append(f'{ambiguous}; all in report.html')
    return '\n'.join([*lines, *found.warnings])


def _plain_ambiguity(ambiguity: Ambiguity) -> dict[str, Any]:
    return {'kind': ambiguity.kind.value,
            'unknowns': [vars(unknown) for unknown in ambiguity.unknowns],
            'remedy': ambiguity.kind.remedy,
            'posture': None if ambiguity.posture is None else vars(ambiguity.posture)}


SHOWN = 8
"""Number of errors of instruments that a summary names."""
