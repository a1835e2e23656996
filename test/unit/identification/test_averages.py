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
"""Averaged captures from CSV, and recordings of robots that hang."""

import csv
from dataclasses import replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.captures.averages import read_averages
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.recordings import AXES, CaptureFinder
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.model.corrections import InstrumentCorrections
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.calibrate import main
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.statics_data import TrueRobot


@pytest.fixture(scope='module')
def true():
    return TrueRobot('sabian', seed=2)


@pytest.fixture(scope='module')
def poses(true):
    return true.captures(9)


def assert_same(found, poses):
    for one, other in zip(found, poses, strict=True):
        for what in ('positions', 'wrenches', 'torques', 'up', 'in_contact'):
            np.testing.assert_allclose(getattr(one, what), getattr(other, what), atol=1e-9)


def averages(path, true, captures, **changes):
    """Write averaged captures, with other texts by line and column."""
    rows = []
    for k, c in enumerate(captures):
        row = {'name': f'pose {k}', 'time': 60.0 * k,
               **{f'position/{n}': v for n, v in zip(true.model.joint_names, c.positions)},
               **{f'effort/{n}': v for n, v in zip(true.model.joint_names, c.torques)},
               **dict(zip(('up/x', 'up/y', 'up/z'), c.up))}
        for sensor, wrench in zip(true.model.config.wrench_sensors, c.wrenches):
            row.update({f'{sensor}/{axis}': v for axis, v in zip(AXES, wrench)})
        rows.append(row | changes.get(f'line{k + 2}', {}))
    columns = [key for key in rows[0] if key not in changes.get('without', ())]
    with path.open('w', newline='') as file:
        writer = csv.DictWriter(file, columns, extrasaction='ignore')
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_averaged_captures_are_read_as_they_are(true, poses, tmp_path):
    found = read_averages(averages(tmp_path / 'a.csv', true, poses), true.model)
    assert_same(found, poses)
    assert [c.name for c in found] == [f'pose {k}' for k in range(9)]
    assert [c.time for c in found] == [60.0 * k for k in range(9)]
    path = averages(tmp_path / 'b.csv', true, poses,
                    without=[f'effort/{name}' for name in true.model.joint_names])
    assert all(np.isnan(c.torques).all() for c in read_averages(path, true.model))
    # Errors in the robot's YAML are taken out, as of any recording.
    offsets, tilt = 0.005 * np.arange(len(true.model.joint_names)), (0.02, -0.01, 0.03)
    known = InstrumentCorrections(
        joint_offsets=dict(zip(true.model.joint_names, offsets.tolist())),
        tilts={poses[0].up_frame: tilt})
    faulty = [replace(c, positions=c.positions + offsets,
                      up=Rotation.from_rotvec(tilt).apply(c.up)) for c in poses]
    model = RobotModel(replace(true.model.config, instruments=known), true.model.urdf)
    assert_same(read_averages(averages(tmp_path / 'c.csv', true, faulty), model), poses)


@pytest.mark.parametrize('changes, message', (
    ({'line3': {'left_foot/fz': 'abc'}},
     r"a.csv:3: column 'left_foot/fz' is 'abc', not a finite number; give N or N m"),
    ({'line4': {'time': 'nan'}}, r"a.csv:4: column 'time' is 'nan', .*; give s"),
    ({'line3': {'name': 'pose 0'}}, r"a.csv:3: column 'name' 'pose 0' is also that of line 2; "),
    ({'line3': {'up/x': 9.8}}, r'a.csv:3: columns up/x, .* unit vector, .*; divide them by 9'),
    ({'line2': {'position/{joint}': 90.0}}, r"a.csv:2: column 'position/\w+' is 90, .*: give rad"),
    ({'line2': {'left_foot/fz': -400.0}}, r'a.csv:2: .* negative, .*: negate wrench_sensors'),
    ({'without': ['up/x']}, r'a.csv. does not have the columns up/x'),
    ({'line2': {'left_foot/fq': 0.0}}, r"a.csv: column 'left_foot/fq' is not known; remove it")))
def test_what_is_wrong_with_averaged_captures_is_named(true, poses, tmp_path, changes, message):
    joint = true.model.joint_names[0]
    changes = {line: {key.format(joint=joint): v for key, v in what.items()}
               if isinstance(what, dict) else what for line, what in changes.items()}
    with pytest.raises(InputError, match=message):
        read_averages(averages(tmp_path / 'a.csv', true, poses, **changes), true.model)


def test_a_line_that_is_too_short_is_named(true, poses, tmp_path):
    path = averages(tmp_path / 'a.csv', true, poses)
    path.write_text(path.read_text().rstrip().rpartition(',')[0])
    with pytest.raises(InputError, match=r'a.csv:10: .* fewer values than columns'):
        read_averages(path, true.model)


def test_a_recording_of_a_hanging_robot(true, tmp_path):
    """Sensors that are off by 4 % of the weight, tilted: refused, unless it is known to hang."""
    rng, tilt = np.random.default_rng(5), Rotation.from_euler('x', 1.2)
    exact = [true.capture((), tilt=(0.3, 0.1)) for _ in range(6)]
    off = np.zeros((2, 6))
    off[:, 2] = 0.04 * 9.81 * true.model.mass
    poses = [replace(c, wrenches=c.wrenches + off, name=str(k)) for k, c in enumerate(exact)]
    path = averages(tmp_path / 'a.csv', true, poses)
    with pytest.raises(InputError, match=r'a.csv:2: foot .* --hanging'):
        read_averages(path, true.model)
    assert not any(c.in_contact.any() for c in read_averages(path, true.model, hangs=True))
    assert main([str(path), '--robot', 'sabian', '--out', str(tmp_path), '--hanging']) == 0
    assert not any(c.in_contact.any() for c in CaptureLog(
        tmp_path / 'captures.json', true.model).captures)
    for hangs in (False, True):
        finder = CaptureFinder(true.model, StillnessOptions(duration=0.5), hangs=hangs)
        for k in range(60):
            time, names = 0.02 * k, true.model.joint_names
            finder.add_imu(time, tilt.as_quat())
            for sensor, wrench in zip(true.model.config.wrench_sensors, poses[0].wrenches):
                finder.add_wrench(sensor, wrench + rng.normal(size=6))
            finder.add_joints(time, names, poses[0].positions, poses[0].torques)
        assert len(finder.captures) == hangs
    assert not finder.captures[0].in_contact.any()
