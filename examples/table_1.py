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
Table 1 and the worked example of Muscolo, Caldwell, Cannella 2017, beside this package.

The paper's table gives each link's centre of mass; its listing computes the total one in three
poses and from those, as a check, the links' again. Printed here: the table, the poses, the links
found by the paper's 2x2 system, by its 4x4 system as printed and as corrected, from simulated
foot wrenches alone, and the total centre of mass from two poses.

    python examples/table_1.py
"""

import math

from biped_com_ros import RobotModel
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry import com_line
from biped_com_ros.papers.muscolo_2017 import (
    AnkleLink, com_from_two_poses, LineNoise, LinkComs, reduced_determinant, solve_reduced,
    solve_two_link, standard_deviations, two_link_from_lines, two_link_matrix, TwoLinkLeg)
import numpy as np

THETA = math.radians(10.0)
# One leg; as in the listing, the waist's mass is lumped into the thigh, its height is not.
LEG = TwoLinkLeg(mass_a=6.72, mass_b=0.95, mass_c=1.16 + 0.94, length_a=0.1, length_b=0.4,
                 r_a=0.0, l_a=0.02632)
TRUE = LinkComs(r_b=0.0, l_b=0.2, r_c=0.0, l_c=0.25)
POSES = {'a': (0.0, 0.0), 'b': (THETA, 0.0), 'c': (0.0, THETA)}
# What the listing prints when run, mm.
LISTING = {'a': (0.0, 208.482129), 'b': (27.637965, 206.064120), 'c': (9.331146, 207.665760)}
TABLE = (('Foot 0', 6.72, (0, -200, 26.32)), ('Shin 0', 0.95, (0, -200, 300)),
         ('Thigh 0', 1.16, (0, -200, 750)), ('Foot 1', 6.72, (0, 200, 26.32)),
         ('Shin 1', 0.95, (0, 200, 300)), ('Thigh 1', 1.16, (0, 200, 750)),
         ('Waist', 0.94, (0, 0, 1000)))
LINKS = ('r_foot', 'r_shin', 'r_thigh', 'l_foot', 'l_shin', 'l_thigh', 'base_link')


def main():
    """Print everything."""
    show_table()
    show_poses()
    show_links()
    show_two_poses()


def show_table():
    """Compare the paper's table with the URDF of this package."""
    robot = RobotModel.load('three_link')
    coms = robot.state(robot.posture('a')).link_coms_in_base + (0.0, 0.0, 1.0)
    index = [robot.link_names.index(name) for name in LINKS]
    print('Table 1: centre of mass of each link, mm\n'
          f'{"link":10}{"kg":>6}  {"paper":>22}   {"robot three_link":>22}')
    for (name, mass, com), i in zip(TABLE, index):
        print(f'{name:10}{robot.link_masses[i]:6.2f}  {triple(com)}   {triple(1e3 * coms[i])}'
              f'{"" if math.isclose(mass, robot.link_masses[i]) else "   mass differs"}')


def show_poses():
    """Compare the total centres of mass of the listing's three poses."""
    print('\nTotal centre of mass of one leg, mm\npose      paper: X          Z     '
          '    ours: X          Z')
    for name, angles in POSES.items():
        x, z = 1e3 * LEG.com(TRUE, *angles)
        print(f'{name:5}{LISTING[name][0]:13.6f} {LISTING[name][1]:11.6f}'
              f'   {x:13.6f} {z:11.6f}')


def show_links():
    """Find the links' centres of mass again, in all the ways there are."""
    com_b, com_c = (LEG.com(TRUE, *POSES[name]) for name in 'bc')
    A = two_link_matrix(LEG, THETA, THETA)
    printed = two_link_matrix(LEG, THETA, THETA, as_printed=True)
    print(f'\ndet A: listing (2x2) {reduced_determinant(LEG, THETA, THETA):.8f}; (38) as printed '
          f'{np.linalg.det(printed):.8f}; corrected {np.linalg.det(A):.8f}, '
          f'condition {np.linalg.cond(A):.2f}')
    print(f'\nLinks, mm{"r_b":>31}{"l_b":>10}{"r_c":>10}{"l_c":>10}')
    row('true', TRUE)
    l_b, l_c = solve_reduced(LEG, com_b[1], com_c[1], THETA, THETA)
    row('listing, r taken as 0', LinkComs(0.0, l_b, 0.0, l_c))
    row('(38) as printed', solve_two_link(LEG, com_b, com_c, THETA, THETA, as_printed=True))
    row('(38) corrected', solve_two_link(LEG, com_b, com_c, THETA, THETA))
    ankles, knees = np.radians([0, 10, 0, 10, -5]), np.radians([0, 0, 10, 10, 20])
    lines = [line_of(ankle, knee) for ankle, knee in zip(ankles, knees)]
    row('foot wrenches of five poses', two_link_from_lines(LEG, ankles, knees, lines))


def show_two_poses():
    """Find the total centre of mass from foot wrenches, upright and leaning."""
    ankle = AnkleLink(LEG.mass_a, LEG.r_a, LEG.l_a, LEG.length_a)
    lines = [line_of(*POSES[name]) for name in 'ab']
    found = com_from_two_poses(*lines, THETA, LEG.mass, ankle)
    print('\nTotal centre of mass from the wrenches of poses a and b, mm: '
          f'a ({1e3 * found.com_a[0]:.6f}, {1e3 * found.com_a[2]:.6f}), '
          f'b ({1e3 * found.com_b[0]:.6f}, {1e3 * found.com_b[2]:.6f})')
    noise = LineNoise.of_sensors(0.5, 0.02, 9.81 * LEG.mass)
    for level in (False, True):
        sd = standard_deviations(*lines, THETA, LEG.mass, ankle, noise, level_ground=level)
        print(f'  with noise of 0.5 N and 0.02 N m, {"beta = 0" if level else "beta measured"}: '
              f'standard deviation of Z in pose a {1e3 * sd[4]:.2f} mm')
    try:
        com_from_two_poses(lines[0], lines[0], 0.0, LEG.mass, ankle)
    except InputError as error:
        print(f'  without a tilt: {error}')


def line_of(ankle, knee):
    """Return the line measured by an ideal foot sensor at the sole."""
    x, _ = LEG.com(TRUE, ankle, knee)
    weight = 9.81 * LEG.mass
    return com_line((0.0, 0.0, weight, 0.0, -x * weight, 0.0))


def triple(values):
    """Format three numbers."""
    return ' '.join(f'{value:7.2f}' for value in values)


def row(name, links):
    """Print centres of mass of the two links."""
    values = (links.r_b, links.l_b, links.r_c, links.l_c)
    print(f'  {name:28}' + ''.join(f'{1e3 * value:10.3f}' for value in values))


if __name__ == '__main__':
    main()
