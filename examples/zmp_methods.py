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
What simplifications of the ZMP cost: Wang, Zhu and Han's equation (8) with less and less in it.

    python examples/zmp_methods.py [ROBOT]

A robot stands and moves all joints on sines of up to 0.15 rad at 0.3, 0.6 and 1.2 Hz, each with
its own phase. The ZMP on the ground, exact by centroidal dynamics, is compared with (8) as
corrected, without angular momentum, with one point mass, at rest (9), and as printed.
"""

from __future__ import annotations

import math
import sys

from biped_com_ros import RobotModel
from biped_com_ros.papers.wang_2013 import link_motion, zmp_by_links
import numpy as np
import pinocchio as pin

STEPS = 120
FREQUENCIES = (0.3, 0.6, 1.2)
METHODS = ('(8) corrected', 'links as points', 'one point', '(9) at rest', '(8) as printed')


def exact(model: pin.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray,
          height: float) -> np.ndarray:
    """Return the ZMP by the rate of centroidal momentum."""
    data = model.createData()
    pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a)
    (x, y, z), mass = data.com[0], pin.computeTotalMass(model)
    fx, fy, fz = data.dhg.linear + (0.0, 0.0, 9.81 * mass)
    rate_x, rate_y, _ = data.dhg.angular
    return np.array((x - ((z - height) * fx + rate_y) / fz,
                     y - ((z - height) * fy - rate_x) / fz, height))


def simplified(model: pin.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray,
               height: float) -> list[np.ndarray]:
    """Return the ZMP by each of METHODS."""
    masses, coms, accelerations, rates = link_motion(model, q, v, a)
    whole = masses / masses.sum()
    point = zmp_by_links([masses.sum()], [whole @ coms], [whole @ accelerations], height=height)
    return [zmp_by_links(masses, coms, accelerations, rates, height),
            zmp_by_links(masses, coms, accelerations, height=height), point,
            zmp_by_links(masses, coms, height=height),
            zmp_by_links(masses, coms, accelerations, rates, height, as_printed=True)]


def errors(robot: RobotModel, frequency: float) -> np.ndarray:
    """Return the error of each method, root mean square over one period, m."""
    rng, model = np.random.default_rng(0), robot.pin_model
    home = robot.posture()
    count = len(home)
    amplitude, phase = rng.uniform(0.05, 0.15, count), rng.uniform(0.0, 2.0 * math.pi, count)
    height = float(robot.state(home).soles_in_world[:, 2].mean())
    omega, squares = 2.0 * math.pi * frequency, np.zeros(len(METHODS))
    for step in range(STEPS):
        angle = 2.0 * math.pi * step / STEPS + phase
        q = robot.configuration(home + amplitude * np.sin(angle))
        v = robot.velocity(omega * amplitude * np.cos(angle))
        a = robot.velocity(-omega ** 2 * amplitude * np.sin(angle))
        truth = exact(model, q, v, a, height)
        for i, found in enumerate(simplified(model, q, v, a, height)):
            squares[i] += ((found - truth) ** 2).sum()
    return np.sqrt(squares / STEPS)


def main() -> int:
    """Print the table."""
    robot = RobotModel.load(sys.argv[1] if len(sys.argv) > 1 else 'talos')
    print(f'{robot.config.name}: error of the ZMP, mm rms')
    print(f'{"":18}' + ''.join(f'{f:>10} Hz' for f in FREQUENCIES))
    table = np.array([errors(robot, frequency) for frequency in FREQUENCIES]).T
    for name, row in zip(METHODS, table):
        print(f'{name:18}' + ''.join(f'{1e3 * error:13.3g}' for error in row))
    return 0


if __name__ == '__main__':
    sys.exit(main())
