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

"""What the set-up shows meanwhile, what it takes on the disk, and what it sheds."""

import dataclasses
from pathlib import Path
import re
import time

import pytest
from support.tool_modules import load_tool

ROOT = Path(__file__).resolve().parents[2]
environment = load_tool('environment')


def test_packages_are_counted_of_how_many_with_sizes_and_the_time_left(tmp_path, monkeypatch):
    """Minutes pass while pip prints one line, in which all packages are unpacked."""
    (tmp_path / 'pip-1.0.dist-info').mkdir()
    now = [100.0]
    monkeypatch.setattr(environment.time, 'monotonic', lambda: now[0])
    count = environment.PackageCount(tmp_path, 4)
    for line in ('Collecting a==1.0', '  Downloading a-1.0.whl (1.5 MB)', 'Processing /x/b.whl',
                 'Collecting c==1', '  Using cached c-1.whl (500 kB)'):
        count.add(line)
    now[0] += 10.0
    assert str(count) == '2 of 4 downloaded (2 MB), about 10 s left'
    count.add('Installing collected packages: a, b, c, d')
    assert str(count) == '0 of 4 unpacked (2 MB)'
    for name in 'abc':
        (tmp_path / f'{name}-1.0.dist-info').mkdir()
    now[0] += 30.0
    assert str(count) == '3 of 4 unpacked (2 MB), about 10 s left'


def test_progress_is_printed_while_a_step_prints_nothing(monkeypatch, capsys):
    monkeypatch.setattr(environment, 'RARELY', 0.05)
    with environment.Progress('[1/3] wait') as progress:
        progress.add('[ 40%] Building C object')
        end = time.monotonic() + 10.0
        while '[ 40%]' not in (printed := capsys.readouterr().out):
            assert time.monotonic() < end
            time.sleep(0.02)
    assert '[1/3] wait ... 0 s  [ 40%]' in printed


def test_what_takes_the_space_is_named_and_what_nothing_uses_is_shed(tmp_path):
    plan = dataclasses.replace(environment.wheels_plan('runtime', 'jazzy'), directory=tmp_path)
    packages = environment.site_packages(plan)
    robots = 'cmeel.prefix/share/example-robot-data/robots'
    files = {'cmeel.prefix/include/boost/any.hpp': 3, f'{robots}/z1_description/arm.dae': 4,
             f'{robots}/talos_data/talos.urdf': 2, 'cmeel.prefix/lib/libpinocchio.so': 1,
             'cmeel.prefix/lib/libboost.a': 5}
    for name, megabytes in files.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(megabytes * 1_000_000))
    for package, names in (('pin-1', ['cmeel.prefix/lib/libpinocchio.so']),
                           ('example_robot_data-6', [n for n in files if n.startswith(robots)])):
        (packages / f'{package}.dist-info').mkdir()
        (packages / f'{package}.dist-info' / 'RECORD').write_text(
            ''.join(f'{name},sha256=x,1\n' for name in names))
    environment.shed_unused(packages / 'cmeel.prefix')
    left = {str(path.relative_to(packages)) for path in packages.rglob('*')
            if path.is_file() and path.name != 'RECORD'}
    assert left == {f'{robots}/talos_data/talos.urdf', 'cmeel.prefix/lib/libpinocchio.so'}
    assert environment.describe_size(plan).endswith(
        'the largest: example_robot_data 2 MB, pin 1 MB.')


@pytest.mark.parametrize('path', sorted(ROOT.glob('config/robots/*.yaml')), ids=lambda p: p.name)
def test_robots_of_the_configurations_are_kept(path):
    for robot in re.findall(r'example-robot-data/robots/(\w+)/', path.read_text()):
        assert robot in environment.USED_ROBOTS
