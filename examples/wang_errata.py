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
What is printed wrong in Wang, Zhu, Han, "Motion Modeling and Simulation of Biped Robot".

Poses of the paper's leg are made from random joint angles with its own chain (2). Then its
formulas are asked for the angles, as printed and as corrected, and its Jacobian (7) for the
velocity of the pelvis.

    python examples/wang_errata.py [number of poses]
"""

import math
import sys

from biped_com_ros.core.geometry import Pose
from biped_com_ros.core.legs import Leg
from biped_com_ros.papers.wang_2013 import (
    jacobian_column, straight_chain, WANG, wang_angles, wang_matrices)
import numpy as np

# Within these angles (deg) of the paper's servos the hip is above the ankle.
RANGES = np.radians(((-40, 40), (-40, 40), (5, 100), (-90, 40), (-40, 40), (-60, 60)))
WANG_ROS = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
ANKLE, SHIN, _, HIP = 1e3 * np.array(WANG)


def main(count=1000):
    """Print everything, for a number of random poses."""
    theta = np.random.default_rng(0).uniform(RANGES[:, 0], RANGES[:, 1], (count, 6))
    show_inverses(theta[0])
    show_angles(theta)
    show_jacobian(theta[0])


def show_inverses(theta):
    """Multiply the matrices by their printed inverses (3)."""
    print('(3): largest entry of M^-1 M - I, millimetres')
    matrices = in_millimetres(wang_matrices(theta))
    for i, inverse in printed_inverses(theta).items():
        error = abs(inverse @ matrices[i] - np.eye(4)).max()
        print(f'  M_{i}{i + 1}: {error:8.3f}{"" if error < 1e-9 else "   misprinted"}')


def show_angles(theta):
    """Compare the angles found with the true ones."""
    leg = Leg(straight_chain(WANG))
    printed = np.array([printed_angles(pose_of(t)) for t in theta])
    ours = np.array([wang_angles(leg.inverse(in_ros(pose_of(t))).positions) for t in theta])
    print(f'\nInverse kinematics of {len(theta)} poses: median (largest) error, deg\n'
          f'{"":8}{"as printed":>20}{"corrected":>22}')
    for i in range(6):
        columns = [abs(np.degrees(turn(found[:, i] - theta[:, i]))) for found in (printed, ours)]
        print(f'  theta_{i + 1}' + ''.join(
            f'{np.median(c):11.4g} ({c.max():8.3g})' for c in columns))
    print('  (theta_1 and theta_6 are right as printed, within 90 deg)')


def show_jacobian(theta):
    """Compare the printed columns (7) and the corrected ones with finite differences."""
    numeric = np.array([differentiated(theta, i) for i in range(6)]).T
    print('\n(7): largest error of the pelvis Jacobian against finite differences\n'
          '             mm/rad       rad/rad')
    for name, column in (('printed', printed_column), ('corrected', jacobian_column)):
        columns = np.array([column(transform_from_axis(theta, i)) for i in range(6)]).T
        error = abs(columns - numeric)
        print(f'  {name:10}{error[:3].max():10.3g}{error[3:].max():14.3g}')


def pose_of(theta):
    """Return M_06 (2), millimetres."""
    return np.linalg.multi_dot(list(in_millimetres(wang_matrices(theta))))


def in_ros(pose):
    """Return the pose of the sole in the pelvis, ROS axes and metres, of one of (2)."""
    return Pose(WANG_ROS.T @ pose[:3, :3] @ WANG_ROS,
                1e-3 * WANG_ROS.T @ pose[:3, 3]).inverse()


def in_millimetres(matrices):
    """Return matrices with lengths in mm instead of m."""
    scaled = np.array(matrices)
    scaled[..., :3, 3] *= 1e3
    return scaled


def printed_inverses(theta):
    """Return (3) as printed, by the index of the first frame."""
    (c1, s1), (c2, s2), (c3, s3), (c4, s4), (c5, s5), (c6, s6) = zip(
        np.cos(theta), np.sin(theta))
    end = (0, 0, 0, 1)
    return {
        0: np.array(((-c1, 0, s1, -ANKLE * s1), (s1, 0, c1, -ANKLE * c1), (0, 1, 0, 0), end)),
        1: np.array(((0, s2, c2, 0), (0, c2, -s2, 0), (-1, 0, 0, 0), end)),
        2: np.array(((c3, s3, 0, -SHIN * s3), (-s3, c3, 0, -SHIN * c3), (0, 0, 0, 0), end)),
        3: np.array(((c4, s4, 0, -SHIN * s4), (-s4, c4, 0, -SHIN * c4), (0, 0, 1, 0), end)),
        4: np.array(((0, s5, -c5, 0), (0, c5, -s5, 0), (1, 0, 0, 0), end)),
        5: np.array(((-c6, 0, s6, 0), (s6, 0, c6, 0), (0, 0, 0, -HIP), end))}


def printed_angles(pose):
    """Return the six angles by the formulas as they stand in the paper."""
    (nx, ox, ax, px), (ny, oy, ay, py), (nz, oz, az, pz), _ = pose.tolist()
    arctan = quotient_angle
    t1 = arctan(HIP * ax - px, HIP * az - pz + ANKLE)
    s1, c1 = math.sin(t1), math.cos(t1)
    upper = HIP * s1 * ax + c1 * az - s1 * px - c1 * pz + ANKLE * c1
    t2 = arctan(upper, pz + HIP * ay)
    t3 = math.atan(upper / (py + HIP * ay) / SHIN)
    t4 = arctan(-ay, s1 * ax + c1 * az) - (t2 + t3)
    s, c = math.sin(t2 + t3 + t4), math.cos(t2 + t3 + t4)
    # The last term of A lacks its component of n in print.
    t5 = arctan(-(s1 * c * nx - s * ny + c1 * c), c1 * nx - s1 * nz)
    t6 = arctan(s1 * s * nx + c * ny + c1 * s * nz, s1 * s * ox + c * oy + c1 * s * oz)
    return t1, t2, t3, t4, t5, t6


def quotient_angle(a, b):
    """Return the arctan of a quotient, as the paper has it."""
    return math.atan(a / b)


def printed_column(transform):
    """Return a column of (7) as printed, along the axes of the pelvis, mm and rad."""
    (nx, ox, ax, px), (_, _, _, py), (nz, oz, _, _), _ = transform.tolist()
    return -nx * py + nx * px, -ox * py + ox * px, -ax * py + ax * px, nz, oz, ax


def transform_from_axis(theta, i):
    """Return the pelvis in a frame whose z axis is that of joint i."""
    pieces = in_millimetres(wang_matrices(theta))
    pieces[i, :3, 3] = 0.0  # every joint turns after its own displacement
    axis = axis_of(i)
    aside = np.roll(axis, 1)  # across it, since all axes are coordinate axes
    R_axis_before = np.array((aside, np.cross(axis, aside), axis))
    transform = np.linalg.multi_dot([np.eye(4), np.eye(4), *pieces[i:]])
    transform[:3] = R_axis_before @ transform[:3]
    return transform


def axis_of(i):
    """Return the axis of joint i in the frame before it."""
    before, after = (wang_matrices(np.full(6, t))[i, :3, :3] for t in (0.0, np.pi / 2.0))
    turned = after @ before.T
    return np.round(0.5 * np.array((turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0],
                                    turned[1, 0] - turned[0, 1])))


def differentiated(theta, i, step=1e-6):
    """Return how the pelvis moves with joint i along its own axes, by finite differences."""
    change = step * np.eye(6)[i]
    here, before, after = (pose_of(t) for t in (theta, theta - change, theta + change))
    R = here[:3, :3].T
    spin = R @ (after[:3, :3] - before[:3, :3]) / (2.0 * step)
    velocity = R @ (after[:3, 3] - before[:3, 3]) / (2.0 * step)
    return (*velocity, spin[2, 1], spin[0, 2], spin[1, 0])


def turn(angle):
    """Return the same angle in [-pi, pi]."""
    return np.arctan2(np.sin(angle), np.cos(angle))


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))
