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
"""What slack and stretch of tendons leave of the bend by their lengths."""

import math

from biped_com_ros.core.torso.constant_curvature import Backbone, make_shape
from biped_com_ros.core.torso.controller import Measurement, TendonController
from biped_com_ros.core.torso.options import ControllerOptions, TendonDrive
from biped_com_ros.core.torso.orientation import TorsoOrientation
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics
import numpy as np
import pytest
from scipy.optimize import nnls

DT = 0.002
STATICS = TorsoStatics(
    Backbone(0.129, 0.034, np.radians((180.0, 270.0, 0.0, 90.0))),
    Stiffness(bending=2.6, torsion=10.0, axial=5e4))


class SlackBackbone:
    """
    A spring with three tendons of fixed lengths, slack where their path is shorter.

    Its bend and elongation have the least elastic energy with paths that are not longer than the
    tendons: non-negative least squares for the tensions.
    """

    def __init__(self, bending, axial):
        self.backbone = Backbone(0.040, 0.0025, np.radians((30.0, 150.0, 270.0)))
        self._compliance = 1.0 / np.array((bending, bending, axial))
        rows = [(-0.0025 * d.real, -0.0025 * d.imag, 1.0) for d in self.backbone.directions]
        self._paths = np.array(rows)

    def bend(self, pulls):
        """Return the bend and the tensions (3,), N, for wound lengths (3,), m."""
        half = self._paths * np.sqrt(self._compliance)  # tensions f: shape -C A^T f
        rows = np.linalg.cholesky(half @ half.T).T
        tensions, _ = nnls(rows, np.linalg.solve(rows.T, pulls))
        shape = -self._compliance * (self._paths.T @ tensions)
        assert (self._paths @ shape <= -pulls + 1e-9).all()
        return complex(*shape[:2]), tensions


@pytest.mark.parametrize('softness', [0.3, 0.7, 3.0])
def test_lengths_of_slack_tendons_rule_out_no_true_imu_but_a_wrong_one(softness):
    """
    A soft spring is compressed instead of bent; lengths alone state how wrong they may be.

    `softness` is the axial stiffness times the radius squared over the bending stiffness.
    """
    spring = SlackBackbone(0.05, softness * 0.05 / 0.0025 ** 2)
    statics = TorsoStatics(spring.backbone, Stiffness(bending=0.05, torsion=0.05, axial=1e4))
    random, worst, normalised = np.random.default_rng(3), 0.0, []
    for _ in range(60):
        pulls = np.append(random.uniform(0.0005, 0.006, 2), 0.0)
        true, tensions = spring.bend(pulls)
        for measured in (None, tensions.tolist()):
            controller = TendonController(statics, 1.8)
            for is_true in (True, False):
                bend = true if is_true else -true
                out = controller.update(DT, Measurement(
                    TorsoOrientation(bend=bend), 0.040 - pulls, measured))
                assert out.is_closed_loop == is_true or abs(true) < math.radians(12.0)
                if is_true:
                    assert out.arc.bend == bend
            error = abs(controller.bend_by_tendons - true)
            worst = max(worst, error)
            normalised.append(error / controller.length_errors.deviation)
    if softness < 1.0:  # else all tendons stay taut, and lengths are exact
        assert worst > math.radians(20.0)
    assert max(normalised) < math.sqrt(3.0) + 0.05
    assert 'with a deviation of' in out.problems[0]


def test_stretch_of_taut_tendons_is_stated_and_allowed():
    """Against lengths of drives whose tendons stretch by what their tensions say."""
    soft, stiff = (TendonController(STATICS, 0.3, ControllerOptions(drive=TendonDrive(
        stiffness=stiffness, pretension=12.0))) for stiffness in (500.0, 7000.0))
    tensions = np.array((2.0, 12.0, 22.0, 12.0))
    path = soft.backbone.lengths(make_shape(0.1))
    wound = path - (tensions - 12.0) / 500.0
    out = soft.update(DT, Measurement(
        TorsoOrientation(bend=0.1 + 0j), wound, tensions.tolist()))
    errors = soft.length_errors
    # 10 N / (500 N/m) on either side over the radius.
    assert errors.stretch == pytest.approx(0.02 / 0.034, rel=1e-3) and errors.slack == 0.0
    assert errors.stretch == pytest.approx(abs(soft.bend_by_tendons - 0.1), rel=1e-3)
    assert out.is_closed_loop
    assert not stiff.update(DT, Measurement(
        TorsoOrientation(bend=0.1 + 0j), wound, tensions.tolist())).is_closed_loop
