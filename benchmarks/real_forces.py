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
Forces by joint torques of a real leg against the force sensor under its foot.

::

    python -m benchmarks.real_forces [--data DIR]

``DIR``, or the environment variable ``BIPED_COM_REAL_DATA``, holds the recordings, as those of
``benchmarks.real_data``. A leg with two motors hops on a vertical slider; torques are measured by
currents. Its foot is a virtual hand, whose force nothing else shows. Settings are the defaults;
the rows below are those with other priors of the force and fewer samples, which may not change
much.

Columns: error of the vertical force and of that along the leg's plane, rms; how often the 95 %
intervals of both hold; NEES of both (1 per axis is right); mean of the stated deviation of the
vertical force; how often the contact agrees with the sensor (more than 1 N); CPU time.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
import sys
import time

from benchmarks.common import console, machine, print_table
from benchmarks.real_data import directory, VARIABLE
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
import numpy as np
from scipy.signal import savgol_filter

_LEG = 'leg_on_slider'
#: Vertical force above which the sensor is in contact, N: it is right within 0.5 N.
_TOUCHES = 1.0
#: Left out, s: the low-pass begins.
_SETTLING = 0.1
#: By row: settings, and each how many samples.
_VARIANTS = {
    'defaults': (VirtualHandSettings(), 1),
    'largest_force 1': (VirtualHandSettings(largest_force=1.0), 1),
    'largest_force 5': (VirtualHandSettings(largest_force=5.0), 1),
    'at 500 Hz': (VirtualHandSettings(), 2),
}


@dataclass(frozen=True, kw_only=True)
class LegRecording:
    """
    A leg on a slider: T instants.

    Attributes
    ----------
    model
        The robot.
    times
        s, (T,).
    positions, velocities, torques
        Of the joints, (T, 2), rad, rad/s and N m.
    acceleration
        Of the base upwards, proper, (T,), m/s^2.
    forces
        Of the ground on the foot by the sensor, along the axes of the base, (T, 3), N.
    authors_forces
        The same as those who recorded it estimated them from the torques.

    """

    model: RobotModel
    times: Array
    positions: Array
    velocities: Array
    torques: Array
    acceleration: Array
    forces: Array
    authors_forces: Array


@dataclass(frozen=True, kw_only=True)
class ForceErrors:
    """
    Errors of estimated forces, of x and z of the base.

    Attributes
    ----------
    rms, held
        (2,), N, and shares of the 95 % intervals.
    nees
        Of each axis by itself, (2,).
    joint_nees
        Of both.
    stated
        Mean of the stated deviations, (2,), N.
    contacts
        How often the decision agrees with the sensor.
    seconds
        CPU time per instant.

    """

    rms: Array
    held: Array
    nees: Array
    joint_nees: float
    stated: Array
    contacts: float
    seconds: float


def leg(path: Path) -> LegRecording:
    """Read the recording; its base has no IMU, so that its height gives the acceleration."""
    folder = path / _LEG
    with np.load(folder / 'recording.npz') as data:
        height, step = data['base_height'], float(np.diff(data['time']).mean())
        return LegRecording(
            model=RobotModel.load(str(folder / 'leg.yaml')), times=data['time'],
            positions=data['positions'], velocities=data['velocities'], torques=data['torques'],
            acceleration=GRAVITY + savgol_filter(height, 41, 3, deriv=2, delta=step),
            forces=data['force_in_base'], authors_forces=data['authors_force_in_base'])


def force_errors(recording: LegRecording, settings: VirtualHandSettings,
                 every: int = 1) -> ForceErrors:
    """Estimate the forces, from each `every`-th sample, and compare them with the sensor."""
    model, found = recording.model, VirtualHandForces(recording.model, settings)
    foot, plane = model.frames(('contact',)), [0, 2]
    errors, covariances, agree = [], [], []
    begin = time.process_time()
    for k in range(0, len(recording.times), every):
        state = model.state(recording.positions[k], recording.velocities[k])
        usable = found.update(
            round(1e9 * (1.0 + recording.times[k])), state, recording.torques[k], np.zeros(3),
            np.array((0.0, 0.0, recording.acceleration[k])))
        if not usable or recording.times[k] < _SETTLING:
            continue
        R_base_foot = state.placements_in_base(foot)[0, :3].T
        errors.append((R_base_foot @ found.estimates[0] - recording.forces[k])[plane])
        covariances.append((R_base_foot @ found.covariance @ R_base_foot.T)[np.ix_(plane, plane)])
        agree.append(found.touching[0] == (recording.forces[k, 2] > _TOUCHES))
    seconds = (time.process_time() - begin) * every / len(recording.times)
    error, covariance = np.array(errors), np.array(covariances)
    variances = np.einsum('nii->ni', covariance)
    normed = np.linalg.solve(covariance, error[:, :, np.newaxis])[:, :, 0]
    return ForceErrors(
        rms=np.sqrt(np.mean(error ** 2, axis=0)),
        held=np.mean(np.abs(error) < 1.96 * np.sqrt(variances), axis=0),
        nees=np.mean(error ** 2 / variances, axis=0),
        joint_nees=float(np.mean(np.sum(error * normed, axis=1))),
        stated=np.mean(np.sqrt(variances), axis=0), contacts=float(np.mean(agree)),
        seconds=seconds)


def print_forces(recording: LegRecording) -> None:
    """Print the errors by all variants, and those of the authors' own estimate."""
    authors = recording.authors_forces - recording.forces
    rows = [('authors', *(f'{value:.2f}' for value in np.sqrt(
        np.mean(authors[recording.times >= _SETTLING] ** 2, axis=0))[[2, 0]]),
        *['-'] * 6)]
    for name, (settings, every) in _VARIANTS.items():
        found = force_errors(recording, settings, every)
        rows.append((
            name, f'{found.rms[1]:.2f}', f'{found.rms[0]:.2f}',
            ' '.join(f'{100.0 * held:.0f}' for held in found.held[::-1]),
            ' '.join(f'{nees:.1f}' for nees in found.nees[::-1]), f'{found.joint_nees:.1f}',
            f'{found.stated[1]:.1f}', f'{found.contacts:.2f}', f'{1e6 * found.seconds:.0f}'))
    print_table('force on the foot of a real leg by joint torques', (
        '', 'z, N', 'x, N', 'held z x, %', 'NEES z, x', 'both', 'stated z, N', 'contacts', 'us'),
        rows)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--data', default='', help=f'directory of the recordings ({VARIABLE})')
    path = directory(parser.parse_args().data)
    if path is None or not (path / _LEG).is_dir():
        print(f'no recording of the leg: name the directory of {_LEG} by --data or {VARIABLE}; '
              'see doc/appendix/results.rst')
        return 0
    console.print(machine())
    print_forces(leg(path))
    return 0


if __name__ == '__main__':
    sys.exit(main())
