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
"""Errors of instruments: what they do to captures, and their way through files."""

from dataclasses import replace
import json

from biped_com_ros.core.identification.equations.instruments import (
    InstrumentCalibration, InstrumentErrors, InstrumentEstimate, InstrumentKind, MATRIX_AXES)
import numpy as np
from support.statics_data import measure, TrueRobot

JOINTS, SENSORS = ('hip', 'knee'), ('left', 'right')


def estimate(kind, name, axis='', value=0.01, sd=0.002, unit='rad'):
    return InstrumentEstimate(kind=kind, name=name, axis=axis, unit=unit, prior_sd=0.01,
                              estimate=value, sd=sd)


def test_a_calibration_survives_its_file():
    K = InstrumentKind
    found = InstrumentCalibration((
        estimate(K.JOINT_OFFSET, 'knee'), estimate(K.TORQUE_GAIN, 'hip', value=-0.03),
        estimate(K.FRICTION, 'hip', unit='N m'), estimate(K.TILT, 'imu', 'y', 0.004),
        estimate(K.WRENCH_MATRIX, 'left', 'tx,fz', 0.5),
        estimate(K.WRENCH_BIAS, 'left', 'fz', 2.0),
        estimate(K.SENSOR_SHIFT, 'left', 'x', 0.003), estimate(K.SENSOR_TURN, 'left', 'z')))
    again = InstrumentCalibration.from_json(json.loads(json.dumps(found.to_json())))
    assert set(again.estimates) == set(found.estimates)
    errors = again.errors(JOINTS, SENSORS)
    np.testing.assert_array_equal(errors.positions, (0.0, 0.01))
    np.testing.assert_array_equal(errors.torque_gains, (-0.03, 0.0))
    np.testing.assert_array_equal(errors.tilts['imu'], (0.0, 0.004, 0.0))
    assert errors.wrench_matrices[0, 3, 2] == 0.5 and not errors.wrench_matrices[1].any()
    written = found.to_json()['wrench_sensors']['left']
    np.testing.assert_allclose(written['correction'], errors.correction(0))
    np.testing.assert_allclose(written['bias'], (0.0, 0.0, 2.0, 0.0, 0.0, 0.0))
    assert MATRIX_AXES[6 * 3 + 2] == 'tx,fz'


def test_only_what_is_significant_has_a_remedy():
    sure = estimate(InstrumentKind.JOINT_OFFSET, 'knee', value=0.0175)
    assert sure.is_significant and sure.remedy.endswith('it reads 1.00 deg too much')
    other_way = estimate(InstrumentKind.JOINT_OFFSET, 'knee', value=-0.0175)
    assert other_way.remedy.endswith('it reads 1.00 deg too little')
    unsure = estimate(InstrumentKind.JOINT_OFFSET, 'knee', value=0.004)
    assert not unsure.is_significant and unsure.remedy == ''


def test_corrected_captures_are_what_perfect_instruments_measure():
    """Measured as the module says, then corrected: the truth again."""
    true = TrueRobot('sabian', seed=1)
    rng, n = np.random.default_rng(0), len(true.model.joint_names)
    sensors, frame = len(true.model.config.wrench_sensors), true.model.config.imu.frame
    errors = InstrumentErrors(
        positions=0.01 * rng.normal(size=n), torque_gains=0.05 * rng.normal(size=n),
        torque_offsets=rng.normal(size=n), friction=rng.uniform(size=n),
        tilts={frame: 0.02 * rng.normal(size=3)},
        wrench_matrices=0.03 * rng.normal(size=(sensors, 6, 6)),
        wrench_biases=rng.normal(size=(sensors, 6)),
        wrench_drifts=rng.normal(size=(sensors, 6)), shifts=0.01 * rng.normal(size=(sensors, 3)),
        turns=0.05 * rng.normal(size=(sensors, 3)))
    exact = replace(true.capture(('left', 'right')), approach=np.sign(rng.normal(size=n)))
    measured = measure(exact, errors, 0.3)
    corrected = errors.corrected(measured, 0.3)
    for what in ('positions', 'torques', 'wrenches', 'up'):
        np.testing.assert_allclose(getattr(corrected, what), getattr(exact, what), atol=1e-9)
    perfect = InstrumentErrors.none(n, sensors)
    np.testing.assert_array_equal(perfect.corrected(exact).wrenches, exact.wrenches)
