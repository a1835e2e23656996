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
"""The sample recording of doc/calibration.rst gives a better URDF than the one it began with."""

import json
from pathlib import Path

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.calibrate import main as calibrate
import numpy as np
import pytest

SAMPLE = Path(__file__).resolve().parents[3] / 'doc' / 'sample'
pytest.importorskip('rosbags')


def com_errors(model, true):
    """Return how far a centre of mass is off along the ground with other arms, (10,), m."""
    rng, stand, errors = np.random.default_rng(5), model.posture('stand'), []
    groups = model.config.groups
    arms = model.joint_index([*groups['left_arm'], *groups['right_arm']])
    for _ in range(10):
        q = stand.copy()
        q[arms] += rng.uniform(-0.5, 0.5, len(arms))
        errors.append((model.state(q).com_in_base - true.state(q).com_in_base)[:2])
    return np.linalg.norm(errors, axis=1)


@pytest.mark.timeout(600)
def test_the_sample_is_calibrated(tmp_path, capsys):
    assert calibrate([str(SAMPLE / 'sabian.mcap'), '--robot=sabian', f'--out={tmp_path}']) == 0
    # In the first instant joints come before wrenches: that is no sensor without readings.
    assert 'not used of the recording' not in capsys.readouterr().out
    names = [capture['name'] for capture in json.loads(
        (tmp_path / 'captures.json').read_text())['captures']]
    poses = len(names)
    assert all(name.startswith(f'pose {i} at ') for i, name in enumerate(names, 1))
    assert f'a recording of {poses} poses' in (SAMPLE.parent / 'calibration.rst').read_text()
    model = RobotModel.load('sabian')
    true, found = (RobotModel(model.config, path.read_text()) for path in (
        SAMPLE / 'sabian_true.urdf', tmp_path / 'calibrated.urdf'))
    before, after = com_errors(model, true).mean(), com_errors(found, true).mean()
    assert before > 4e-3
    assert after < 0.25 * before
    for posture in ('stand', 'arms_up'):  # as in the picture of the README, mm
        by_urdf, by_found = (1e3 * np.linalg.norm((
            robot.state(robot.posture(posture)).com_in_base
            - true.state(true.posture(posture)).com_in_base)[:2]) for robot in (model, found))
        assert 4.5 < by_urdf < 6.5 and by_found < 0.5


def test_the_sample_is_small():
    assert sum(path.stat().st_size for path in SAMPLE.iterdir() if path.is_file()) < 5e6
