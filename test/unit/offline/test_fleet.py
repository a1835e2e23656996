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
"""``calibrate --fleet``: units in processes, killed workers, resuming, and the prior it writes."""

import json
from pathlib import Path
import re

from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.offline import fleet
from biped_com_ros.offline.calibrate import main, parser
from biped_com_ros.offline.workers import run_in_processes
import pytest
from support.statics_data import TrueRobot
from support.worker_jobs import interrupted, killed_always, killed_once, wrong

NOISE = SensorNoise(force=0.1, moment=0.005, torque=0.05)


def test_a_killed_worker_loses_no_job(tmp_path):
    items = [tmp_path / name for name in 'abc']
    items[0].write_text('')  # its worker lives
    assert dict(run_in_processes(killed_once, items, 2)) == {
        i: f'done again {path.name}' for i, path in enumerate(items)}


def test_a_job_that_kills_its_worker_does_not_hold_up_others():
    found = dict(run_in_processes(killed_always, [Path('a'), Path('deadly'), Path('b')], 2))
    assert found == {0: '', 1: 'its process was killed 3 times', 2: ''}


def test_an_unexpected_error_is_that_of_its_job():
    assert list(run_in_processes(wrong, [Path('x')], 2)) == [(0, 'ValueError: x')]


def test_ctrl_c_is_left_to_the_process_that_ends_the_others():
    """A terminal sends it to all of them, and each would print a traceback."""
    assert list(run_in_processes(interrupted, [Path('x')], 2)) == [(0, 'went on')]


@pytest.fixture(scope='module')
def units(tmp_path_factory):
    """Write captures of four units of one CAD; the last file is damaged."""
    directory = tmp_path_factory.mktemp('fleet')
    true = TrueRobot('three_link', seed=3, extra=0.5, com_sigma=0.01)
    for k in range(2):
        path = directory / f'robot_{k}'
        path.mkdir()
        log = CaptureLog(path / 'captures.json', true.model)
        for i in range(6):
            log.append(true.capture((('left',), ('right',))[i % 2], NOISE, name=str(i)))
    (directory / 'robot_2.json').write_text('{"format": 1, "robot": "three_link"')
    return directory


def test_a_fleet_is_resumed_and_gives_a_prior(units, tmp_path, capfd):
    out = tmp_path / 'out'
    arguments = ['--fleet', str(units), '--robot', 'three_link', '--out', str(out),
                 '--workers', '2']
    options = parser().parse_args([*arguments])
    jobs = {name: fleet._options_of(options, name, path)
            for name, path in fleet.find_units(units).items()}
    assert list(jobs) == ['robot_0', 'robot_1', 'robot_2']
    # As a run that was killed after the first unit and while it wrote the second.
    assert fleet.calibrate_unit(jobs['robot_0']) == ''
    (out / 'units' / 'robot_1').mkdir()
    (out / 'units' / 'robot_1' / fleet.RESULT).write_text('{"fingerp')
    stamp = (out / 'units' / 'robot_0' / fleet.RESULT).stat().st_mtime_ns
    assert main(arguments) == 0
    text = capfd.readouterr()
    assert '1 of 3 units are done already' in text.err and 'per minute' in text.err
    assert '2 units of three_link' in text.out and '1 of 3 units failed' in text.out
    assert (out / 'units' / 'robot_0' / fleet.RESULT).stat().st_mtime_ns == stamp
    assert (out / 'units' / 'robot_1' / 'calibrated.urdf').exists()
    report = json.loads((out / 'fleet.json').read_text())
    assert report['units'] == ['robot_0', 'robot_1'] and 'robot_2' in report['failed']
    # Other options are another calibration.
    assert fleet.is_done(jobs['robot_0'])
    jobs['robot_0'].force_noise *= 2.0
    assert not fleet.is_done(jobs['robot_0'])
    assert main([str(units / 'robot_1' / 'captures.json'), '--robot', 'three_link', '--out',
                 str(tmp_path / 'known'), '--prior', str(out / 'prior.json')]) == 0
    alone, known = (json.loads((path / 'calibration.json').read_text())
                    for path in (out / 'units' / 'robot_1', tmp_path / 'known'))
    left_out = [found['residuals']['left out']['com_rms'] for found in (alone, known)]
    assert left_out[1] < left_out[0], left_out


@pytest.mark.parametrize(('files', 'problem'), [
    ((), 'has no recording: put one per unit there'),
    (('a/x.csv', 'a/y.csv'), "unit 'a' has 2 recordings, not one"),
    (('a/notes.txt',), "unit 'a' has 0 recordings"),
    (('a.csv', 'a/captures.json'), "has unit 'a' twice")])
def test_directories_that_are_no_fleet(tmp_path, capsys, files, problem):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('')
    assert main(['--fleet', str(tmp_path), '--robot', 'three_link']) == 1
    assert problem in re.sub(r'\s+', ' ', capsys.readouterr().err)


def test_either_a_recording_or_a_fleet(capsys):
    for arguments in (['--robot', 'biped'], ['a.csv', '--fleet', 'b', '--robot', 'biped']):
        with pytest.raises(SystemExit):
            parser().parse_args(arguments)
    assert 'not allowed with' in capsys.readouterr().err
