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
The torso's statics against a Kirchhoff rod, solved as a boundary value problem.

The rod's curvature varies along it and it does not know of virtual work; the constant curvature
with its column effect must come within 1 % of the bend of its end, up to most of the load that
the rod buckles under. Asked are 5 %.
"""

from __future__ import annotations

import math

from biped_com_ros.core.torso.constant_curvature import Backbone
from biped_com_ros.core.torso.statics import constant_load, Stiffness, TorsoStatics
from biped_com_ros.papers.russo_2021 import VirtualWork
import numpy as np
import pytest
from scipy.integrate import solve_bvp

LENGTH, RADIUS, BENDING = 0.129, 0.034, 2.6
STATICS = TorsoStatics(
    Backbone(LENGTH, RADIUS, np.radians((180.0, 270.0, 0.0, 90.0))),
    Stiffness(bending=BENDING, torsion=10.0, axial=1e9))  # A Kirchhoff rod is not compressed.


def rod_end(force_x, force_z, moment):
    """
    Bend (rad) and position (x, z) of the end of an elastica under a force and a moment there.

    ``B theta'' = F_z sin theta - F_x cos theta`` with ``B theta' = M`` at the end.
    """
    rigidity = BENDING * LENGTH
    s = np.linspace(0.0, LENGTH, 101)
    solution = solve_bvp(
        lambda s, y: np.vstack((y[1], (force_z * np.sin(y[0]) - force_x * np.cos(y[0]))
                                / rigidity, np.sin(y[0]), np.cos(y[0]))),
        lambda a, b: np.array((a[0], b[1] - moment / rigidity, a[2], a[3])),
        s, np.zeros((4, len(s))), tol=1e-8)
    assert solution.success
    bend, _, x, z = solution.sol(LENGTH)
    return bend, x, z


def test_the_figure_of_the_sheet():
    assert math.degrees(rod_end(5.0, 0.0, 0.0)[0]) == pytest.approx(7.07, abs=0.005)


@pytest.mark.parametrize('force_x, force_z, moment', [
    (5.0, 0.0, 0.0), (-8.0, 0.0, 0.0), (10.5, 0.0, 0.0), (0.0, 0.0, 0.6), (0.0, -10.0, 0.4),
    (2.0, -6.0, 0.0), (2.0, -12.0, 0.0), (2.0, -25.0, 0.0), (4.0, 15.0, 0.0), (4.0, 30.0, 0.0),
    (5.0, -10.0, -0.1), (5.0, -12.0, 0.3), (3.0, -15.0, 0.2), (0.5, -40.0, 0.0)])
def test_bend_and_tip_under_a_wrench(force_x, force_z, moment):
    bend, x, z = rod_end(force_x, force_z, moment)
    load = constant_load((force_x, 0.0, force_z, 0.0, moment, 0.0))
    shape = STATICS.equilibrium(np.zeros(4), load)
    assert shape[0] == pytest.approx(bend, rel=0.01)
    # A force at the end bends the foot most: the tip stays behind the arc's by up to a fifth.
    assert STATICS.backbone.tip(shape).position[0] == pytest.approx(x, rel=0.4, abs=1e-4)
    assert STATICS.backbone.tip(shape).position[2] == pytest.approx(z, abs=1e-3)


def test_virtual_work_alone_holds_without_much_axial_load():
    """The column effect is what the last per cents are; it is not what bends."""
    plain = VirtualWork(STATICS.backbone, STATICS.stiffness)
    for force_x, force_z, error in ((5.0, 0.0, 0.005), (2.0, -6.0, 0.03), (2.0, -12.0, 0.06)):
        bend, _, _ = rod_end(force_x, force_z, 0.0)
        load = constant_load((force_x, 0.0, force_z, 0.0, 0.0, 0.0))
        assert plain.equilibrium(np.zeros(4), load)[0] == pytest.approx(bend, rel=error)
        assert STATICS.equilibrium(np.zeros(4), load)[0] == pytest.approx(bend, rel=0.002)


def test_the_column_effect_turns_with_the_load():
    turn = math.radians(70.0)
    turned = np.array((math.cos(turn), math.sin(turn)))
    straight = STATICS.equilibrium(np.zeros(4), constant_load((2.0, 0.0, -12.0, 0, 0, 0)))
    other = STATICS.equilibrium(np.zeros(4), constant_load((*(2.0 * turned), -12.0, 0, 0, 0)))
    np.testing.assert_allclose(other[:2], straight[0] * turned, atol=1e-9)


def test_tendons_are_a_moment_all_along():
    """Tendons parallel to the rod give a moment F r everywhere and no load across it."""
    tensions = np.array((3.0, 10.0, 21.0, 10.0))
    bend, _, _ = rod_end(3.0, 0.0, RADIUS * (21.0 - 3.0))
    shape = STATICS.equilibrium(tensions, constant_load((3.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    assert shape[0] == pytest.approx(bend, rel=0.01)
    assert shape[1] == pytest.approx(0.0, abs=1e-9)
