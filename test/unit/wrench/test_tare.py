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
"""Tare: what is averaged, what is refused, what is kept in the file."""

import dataclasses
import os

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.wrench import set_weight_matrix
from biped_com_ros.core.model.config import robot_config_from_mapping, WrenchSensorConfig
from biped_com_ros.core.wrench.tare import (
    JointStillness, load_offsets, RecentReadings, save_offsets, SensorOffset, TareLimits)
import numpy as np
from numpy.testing import assert_allclose
import pytest
import yaml

LIMITS = TareLimits(force_deviation=2.0, joint_speed=0.05, offset_force=100.0)
OFFSET = np.array([3.0, -4.0, 12.0, 0.3, -0.2, 0.1])
WEIGHT = set_weight_matrix(np.zeros((6, 3)), 1.5, np.array((0.03, -0.02, -0.05)))


MS = 1_000_000
SENSOR = WrenchSensorConfig(frame='l_ft', topic='left', scale=-1.0)
EXPECTED = WEIGHT @ (9.81 * np.array([np.sin(0.3), 0.0, -np.cos(0.3)]))


def hang(count=200, noise=0.5, offset=OFFSET, collected=200, moved_at=None, speed=0.2,
         silent_for=0, limits=LIMITS, seed=3):
    """
    Tare a sensor, on a foot that hangs in the air, after `collected` readings at 1 kHz.

    The knee moves for 0.1 s up to the reading `moved_at`.
    """
    rng, readings = np.random.default_rng(seed), RecentReadings(
        'left', 1e-3 * (count - 1))
    still = JointStillness(('hip', 'knee'), limits.joint_speed)
    for i in range(1, collected + 1):
        noise_now = noise * rng.normal(size=6) * [1.0, 1.0, 1.0, 0.05, 0.05, 0.05]
        readings.add(EXPECTED + offset + noise_now, i * MS)
        moving = moved_at is not None and moved_at - 100 < i <= moved_at
        still.update(np.array([0.001, -speed if moving else 0.002]), i * MS)
    return readings.estimate_offset(EXPECTED, still, limits, SENSOR, (collected + silent_for) * MS)


def test_offset_is_what_is_read_beyond_the_weight():
    found = hang()
    assert_allclose(found.offset[:3], OFFSET[:3], atol=0.15)
    assert_allclose(found.offset[3:], OFFSET[3:], atol=0.01)
    assert found.standard_deviation[0] == pytest.approx(0.5, rel=0.2)
    assert (found.samples, found.frame, found.scale) == (200, 'l_ft', (-1.0,) * 6)


def test_only_the_last_readings_count_and_movements_before_do_no_harm():
    assert_allclose(hang(collected=500, moved_at=199, noise=0.0).offset, OFFSET)
    readings = RecentReadings('left', 0.009)
    for i in range(25):
        readings.add(np.full(6, 100.0 if i < 15 else 1.0), (i + 1) * MS)
    found = readings.estimate_offset(np.zeros(6), JointStillness((), 1.0), LIMITS, SENSOR, 25 * MS)
    assert found.offset == (1.0,) * 6


def test_many_slow_joints_are_no_movement():
    still = JointStillness([f'joint_{i}' for i in range(32)], 0.05)
    for t in range(1, 102):
        still.update(np.full(32, 0.04), t * MS)
    assert still.movement == ''
    for t in range(102, 203):
        still.update(np.concatenate([np.zeros(31), [-0.06]]), t * MS)
    assert still.moved_ns == 202 * MS and still.movement.startswith('joint_31 at 0.06')


def test_noise_of_differentiated_encoders_is_no_movement():
    rng, still = np.random.default_rng(4), JointStillness([f'joint_{i}' for i in range(32)], 0.05)
    velocities = np.diff(2e-4 * rng.normal(size=(2000, 32)), axis=0) * 500.0
    assert np.abs(velocities).max() > 0.4
    for i, now in enumerate(velocities):
        still.update(now, 2 * i * MS)
    assert still.movement == ''
    drift = np.zeros(32)
    drift[7] = 0.07
    for i, now in enumerate(velocities[:200]):
        still.update(now + drift, (4000 + 2 * i) * MS)
    assert still.movement.startswith('joint_7 at 0.0')


@pytest.mark.parametrize('change, message', [
    ({'noise': 5.0}, 'vary by .* N .*come to rest.*tare_max_force_deviation'),
    ({'moved_at': 150}, 'knee at 0.1 rad/s moved while averaging.*hold the robot still'
     '.*tare_max_joint_speed'),
    ({'offset': [0, 0, 400.0, 0, 0, 0]}, 'reads 400 N besides .* lift the robot'),
    ({'collected': 7}, '7 readings in 0.006 of the 0.199 s'),
    ({'collected': 0}, 'no usable reading received yet; check its driver'),
    ({'silent_for': 2500}, 'last reading is 2.5 s old'),
])
def test_what_is_refused_and_what_to_do(change, message):
    with pytest.raises(InputError, match=message) as refusal:
        hang(**change)
    assert "'left' not tared" in str(refusal.value)


def test_a_varying_torque_is_refused():
    readings = RecentReadings('left', 0.049)
    for i in range(50):
        readings.add(np.array([0, 0, 0, 0, (-1.0) ** i, 0]), i * MS)
    with pytest.raises(InputError, match='N m .*tare_max_force_deviation'):
        readings.estimate_offset(np.zeros(6), JointStillness((), 1.0), LIMITS, SENSOR, 49 * MS)


def test_what_was_before_the_clock_was_set_back_is_dropped():
    readings, still = RecentReadings('left', 0.01), JointStillness(('hip',), 0.1)
    for t in (*range(101, 112), *range(1, 11)):
        readings.add(np.zeros(6), t * MS)
        still.update(np.array([0.5 if t > 100 else 0.0]), t * MS)
    with pytest.raises(InputError, match='10 readings in 0.009 of the 0.01 s'):
        readings.estimate_offset(np.zeros(6), still, LIMITS, SENSOR, 10 * MS)
    readings.add(np.zeros(6), 11 * MS)
    assert readings.estimate_offset(np.zeros(6), still, LIMITS, SENSOR, 11 * MS).samples == 11


@pytest.mark.parametrize('times, refused', (
    (range(0, 1001, 100), None),
    (range(0, 1001, 125), '9 readings in 1 of the 1 s .*10 are needed: set a larger tare_dura'),
    ((*range(0, 401, 40), *range(902, 1203, 25)), '13 readings in 0.3 of the 1 s .*in a moment')))
def test_a_tare_needs_ten_readings_without_a_gap_whatever_their_rate(times, refused):
    readings = RecentReadings('left', 1.0)
    for t in times:
        for _ in range(2):  # a message that arrives twice counts once
            readings.add(np.zeros(6), t * MS)
    rest = np.zeros(6), JointStillness((), 1.0), LIMITS, SENSOR, times[-1] * MS
    if refused is None:
        assert readings.estimate_offset(*rest).samples == 11
    else:
        with pytest.raises(InputError, match=refused):
            readings.estimate_offset(*rest)


def test_a_sensor_that_died_before_the_clock_was_set_back_is_not_tared():
    readings = RecentReadings('left', 0.002)
    for t in (100_001, 100_002, 100_003):
        readings.add(np.zeros(6), t * MS)
    with pytest.raises(InputError, match='its last reading is 50.0 s old; check its driver'):
        readings.estimate_offset(
            np.zeros(6), JointStillness(('hip',), 0.1), LIMITS, SENSOR, 50_003 * MS)


@pytest.fixture
def config():
    return robot_config_from_mapping({
        'name': 'biped', 'base_link': 'base_link',
        'feet': {'left': {'sole': 'l_sole', 'polygon': [[0, 0], [1, 0], [0, 1]],
                          'wrench_sensors': ['left_foot']}},
        'wrench_sensors': {'left_foot': {'frame': 'l_ft', 'topic': 'left', 'scale': -1}}})


GOOD = SensorOffset(
    frame='l_ft', scale=(-1.0,) * 6, offset=tuple(OFFSET), standard_deviation=(0.1,) * 6,
    samples=500, stamp='2026-01-01T00:00:00+00:00')


def test_the_file_keeps_everything_in_plain_yaml(tmp_path, config):
    path = tmp_path / 'new' / 'offsets.yaml'
    save_offsets(path, 'biped', {'left_foot': GOOD})
    assert load_offsets(path, config) == {'left_foot': GOOD}
    assert os.listdir(path.parent) == ['offsets.yaml']
    content = yaml.safe_load(path.read_text())
    assert content['sensors']['left_foot']['offset'] == pytest.approx(list(OFFSET))


def test_a_write_that_fails_leaves_the_old_file(tmp_path, config, monkeypatch):
    path = tmp_path / 'offsets.yaml'
    save_offsets(path, 'biped', {'left_foot': GOOD})

    def fail(*_):
        raise OSError(28, 'No space left on device')
    monkeypatch.setattr(os, 'fsync', fail)
    with pytest.raises(ConfigurationError, match='No space left'):
        save_offsets(path, 'biped', {})
    assert load_offsets(path, config) == {'left_foot': GOOD}
    assert os.listdir(tmp_path) == ['offsets.yaml']


def offsets_of(robot='biped', name='left_foot', **changes):
    return robot, {name: dataclasses.replace(GOOD, **changes)}


@pytest.mark.parametrize('content, kind, message', [
    (offsets_of('talos'), ConfigurationError, "of robot 'talos', not of 'biped'"),
    (offsets_of(name='left_fot'), UnknownNameError, "'left_fot' .*did you mean 'left_foot'"),
    *((offsets_of(**change), ConfigurationError, "'left_foot' was tared in frame .*tare again")
      for change in ({'scale': 1.0}, {'frame': 'l_sole'})),
    *((text, ConfigurationError, message) for text, message in (
        ('{', 'not valid YAML'), ('', 'mapping'), ('robot: biped', "'sensors'"),
        ('{robot: biped, sensors: {left_foot: 5}}', "'left_foot' is not readable"),
        ('{robot: biped, sensors: {left_foot: {frame: l, scale: [1], ofset: [1]}}}', 'ofset'),
        ('{robot: biped, sensors: {left_foot: {frame: l_ft, scale: [-1], offset: [1, 2]}}}',
         'six finite'),
        ('{robot: biped, sensors: {left_foot: {frame: l_ft, scale: [-1], '
         'offset: [1, 2, .nan, 1, 1, 1]}}}', 'six finite'))),
    (None, ConfigurationError, 'nowhere.yaml.*No such file')])
def test_other_broken_or_missing_files_are_refused(tmp_path, config, content, kind, message):
    path = tmp_path / 'nowhere.yaml'
    if isinstance(content, str):
        path.write_text(content)
    elif content is not None:
        save_offsets(path, *content)
    with pytest.raises(kind, match=message):
        load_offsets(path, config)
