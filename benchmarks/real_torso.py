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
Bend and direction of a real tendon-driven backbone, against what a camera measured.

::

    python -m benchmarks.real_torso [--data DIR]

``DIR`` or the environment variable ``BIPED_COM_REAL_DATA`` as for :mod:`.real_data`. The backbone
is a spring, its tendons hang loose when others pull, and their tensions are not measured. The IMUs
are simulated: they measure what the camera saw, without torsion. "yaw" is by how much their yaws
differ, "turned" by how much the upper one is mounted wrongly about the backbone, which has to be
found. All settings are the defaults.
"""

from __future__ import annotations

import argparse
from cmath import phase, rect
from collections.abc import Sequence
import math
from pathlib import Path
import sys

from benchmarks.common import console, machine, print_table
from benchmarks.real_data import directory, VARIABLE
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.torso.constant_curvature import Backbone
from biped_com_ros.core.torso.controller import Measurement, TendonController
from biped_com_ros.core.torso.orientation import ImuPair, UPRIGHT
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics
import numpy as np
import pinocchio as pin

LENGTH, RADIUS, ANGLES = 0.040, 0.0025, np.radians((30.0, 150.0, 270.0))
STATICS = TorsoStatics(Backbone(LENGTH, RADIUS, ANGLES), Stiffness(
    bending=0.05, torsion=0.05, axial=1e4))  # not published; no shape below depends on it
MAX_BEND = math.radians(100.0)
#: Names of what is done to the IMUs, relative yaw and wrong mounting, rad.
IMUS = (('IMUs', 0.0, 0.0), ('IMUs, yaw 20 deg', math.radians(20.0), 0.0),
        ('IMUs, yaw 170 deg', math.radians(170.0), 0.0), ('IMU turned by 180 deg', 0.0, math.pi))


def read(path: Path) -> tuple[Array, list[complex]]:
    """Return tendon lengths (N, 3), m, and measured bends, forward + i left, rad."""
    values = np.loadtxt(path / 'spring_backbone' / 'measured.csv', delimiter=',', skiprows=1)
    bend, direction = np.radians(values[:, 3:]).T
    return LENGTH - 1e-3 * values[:, :3], list(map(rect, bend.tolist(), direction.tolist()))


def shapes(lengths: Array, bends: Sequence[complex], yaw: float, turned: float,
           ) -> tuple[list[complex], list[complex], list[float], list[bool]]:
    """Return bends by the controller and by lengths, deviations of the latter, and IMU use."""
    controller = TendonController(STATICS, MAX_BEND)
    imus, used = ImuPair(np.eye(3), np.eye(3)), []
    found, by_lengths, deviations = [], [], []
    for row, bend in zip(lengths, bends):
        tip = STATICS.backbone.tip(np.array((bend.real, bend.imag, 0.0, 0.0))).rotation
        about = [pin.exp3(np.array((0.0, 0.0, angle))) for angle in (yaw, turned)]
        reading = pin.Quaternion(about[1].T @ about[0] @ tip @ about[1]).coeffs()
        for _ in range(20):  # at rest in this shape for a while
            controller.update(0.02, Measurement(imus.read(
                UPRIGHT, np.concatenate((reading, np.zeros(3))), controller.yaw_offset.value),
                row.tolist()))
        found.append(controller.arc.bend)
        by_lengths.append(controller.bend_by_tendons)
        deviations.append(controller.length_errors.deviation)
        used.append(not controller.find_imu_problem(imus.read(
            UPRIGHT, np.concatenate((reading, np.zeros(3))), controller.yaw_offset.value).bend))
    return found, by_lengths, deviations, used


def errors(found: Sequence[complex], true: Sequence[complex]) -> tuple[float, float]:
    """Return root mean square errors of bend and direction, deg."""
    bend = [abs(a) - abs(b) for a, b in zip(found, true)]
    direction = [phase(a / b) if a else math.pi for a, b in zip(found, true)]
    return (math.degrees(float(np.sqrt(np.mean(np.square(bend))))),
            math.degrees(float(np.sqrt(np.mean(np.square(direction))))))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--data', default='', help=f'directory of the recordings ({VARIABLE})')
    path = directory(parser.parse_args().data)
    if path is None or not (path / 'spring_backbone').is_dir():
        print(f'no recording of a backbone: name its directory by --data or {VARIABLE}; see '
              'doc/torso.rst')
        return 0
    console.print(machine())
    lengths, true = read(path)
    rows = []
    for name, yaw, turned in IMUS:
        found, by_lengths, deviations, used = shapes(lengths, true, yaw, turned)
        bend, direction = errors(found, true)
        rows.append((name, f'{bend:.1f}', f'{direction:.1f}', '', '',
                     f'{sum(used)} of {len(used)}'))
    bend, direction = errors(by_lengths, true)
    ratio = np.abs(np.subtract(by_lengths, true)) / deviations
    stated = math.degrees(float(np.sqrt(np.mean(np.square(deviations)))))
    rows.append(('lengths', f'{bend:.1f}', f'{direction:.1f}', f'{stated:.1f}',
                 f'{100.0 * np.mean(ratio < math.sqrt(3.0)):.0f}', ''))
    print_table('a real backbone with three tendons, rms errors', (
        'by', 'bend, deg', 'direction, deg', 'stated, deg', 'within the largest error, %',
        'IMU used'), rows)
    return 0


if __name__ == '__main__':
    sys.exit(main())
