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
"""Targets are accepted from a source until it times out, is disabled, or the torso is frozen."""

from __future__ import annotations

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.torso.constant_curvature import Backbone, make_shape
from biped_com_ros.core.torso.controller import Measurement, TendonController
from biped_com_ros.core.torso.cycle import TargetInput
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics
import numpy as np
import pytest

MS = 1_000_000
START = 5_000 * MS
FAR, NEAR = make_shape(0.2, 0.5), make_shape(0.05, 0.5)


@pytest.fixture
def target():
    statics = TorsoStatics(Backbone(0.129, 0.034, np.radians((180.0, 270.0, 0.0, 90.0))),
                           Stiffness(bending=2.6, torsion=10.0, axial=5e4))
    target = TargetInput(TendonController(statics, 0.26))
    target.timeouts = {'joy': 0.5}
    target.enable(True)
    return target


def goal(target):
    return target.controller.target


def move(target, seconds):
    for _ in range(round(seconds / 0.002)):
        target.controller.update(0.002, Measurement())


def test_a_source_that_stops_holds_the_torso(target):
    assert target.set_target('joy', FAR, START)
    move(target, 0.1)
    assert not target.check(START + 500 * MS)
    np.testing.assert_array_equal(goal(target), FAR)
    assert target.check(START + 700 * MS) == 'no message from joy for 0.7 s: holding'
    held = goal(target)
    assert 0.0 < np.hypot(*held[:2]) < 0.2
    move(target, 0.05)
    assert target.check(START + 800 * MS)
    np.testing.assert_array_equal(goal(target), held)  # held once
    assert target.set_target('joy', NEAR, START + 900 * MS) and not target.check(START + 900 * MS)
    np.testing.assert_array_equal(goal(target), NEAR)


def test_a_source_without_a_timeout_may_stop(target):
    assert target.set_target('~/target', FAR, START)
    assert not target.check(START + 100_000 * MS)
    np.testing.assert_array_equal(goal(target), FAR)


def test_a_clock_that_is_set_back_restarts_the_timeout(target):
    target.set_target('joy', FAR, START)
    assert not target.check(7 * MS) and not target.check(400 * MS)
    assert 'for 0.6 s' in target.check(607 * MS)


def test_frozen_or_disabled_it_accepts_no_targets(target):
    target.set_target('joy', FAR, START)
    target.freeze(True)
    assert np.hypot(*goal(target)[:2]) < 1e-12  # it has not moved yet
    assert not target.set_target('joy', FAR, START)
    target.freeze(False)
    assert target.set_target('joy', NEAR, START)
    target.enable(False)
    assert not target.set_target('joy', FAR, START) and not target.source
    assert not target.check(START + 10_000 * MS)
    np.testing.assert_array_equal(goal(target), NEAR)


def test_targets_that_are_not_finite_are_refused(target):
    target.set_target('joy', NEAR, START)
    with pytest.raises(InputError, match='four finite numbers'):
        target.set_target('~/target', np.full(4, math.nan), START)
    assert target.source == 'joy'
    np.testing.assert_array_equal(goal(target), NEAR)
