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

"""Figures of README and pages are those that commands print; pictures are of today's robots."""

import html
import os
from pathlib import Path
import re
import subprocess
import sys

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.config import robot_file
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.constant_curvature import Backbone, make_shape
from biped_com_ros.core.wrench.weight_check import weight_below_sensors
from biped_com_ros.demo.terminal import save_picture
from biped_com_ros.offline.check import main as check
import numpy as np
import pytest
from support.demo_snapshot import snapshot
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / 'doc'
NUMBER = re.compile(r'(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]\d+)?')

# Page, what stands there, file of doc/results, what its command printed: the groups of both are
# equal, as far as the page has digits.
QUOTED = [
    ('README.md', r'walked (\d+) mm.*\| (\d+) mm by `base_source: filter`, (\d+) mm',
     'real_data', r'filter\n(?:.*\n)*?│ walk_1m, as +│ (?P<b>\d+) of (?P<a>\d+)(?:.*\n)+?'
     r'.*source: imu\n(?:.*\n)*?│ walk_1m, as +│ (?P<c>\d+) of'),
    ('README.md', r'\| ([\d.]+) N rms; ([\d.]+) N by its authors', 'real_forces',
     r'authors +│ (?P<b>[\d.]+) (?:.*\n)│ defaults +│ (?P<a>[\d.]+) '),
    ('README.md', r'([\d.]+) deg rms: IMUs', 'real_torso', r'lengths +│ +(?P<a>[\d.]+) '),
    ('README.md', r'Talos \| ([\d.]+) mm; ([\d.]+) mm by the URDF', 'identification',
     r'talos: 40 poses(?:.*\n)+?│ all +│ +20 │ (?P<b>[\d.]+) │ +- │ (?P<a>[\d.]+) '),
    ('README.md', r'([\d.]+) mm with feedforward by a wrong URDF; ([\d.]+) mm without',
     'gravity_droop', r'alone +\S+ +(?P<b>[\d.]+) (?:.*\n)+?.*by URDF +\S+ +(?P<a>[\d.]+) '),
    ('doc/errata.rst', r'costs ([\d.]+)-([\d.]+) mm rms on Talos, a single point mass '
     r'([\d.]+)-([\d.]+) mm', 'zmp_methods',
     r'points +(?P<a>\S+) +\S+ +(?P<b>\S+)\none point +(?P<c>\S+) +\S+ +(?P<d>\S+)'),
    ('doc/errata.rst', r'median errors\s+of (\d+), (\d+), (\d+) and (\d+) deg over (\d+) poses',
     'wang_errata', r'kinematics of (?P<e>\d+)(?:.*\n)+? +theta_2 +(?P<a>\S+)(?:.*\n)'
     r' +theta_3 +(?P<b>\S+).*\n +theta_4 +(?P<c>\S+).*\n +theta_5 +(?P<d>\S+)'),
    ('doc/legs.rst', r'on 6 deg down: about (\d+) mm without feedback', 'slope',
     r'6 deg │ without +│ +(?P<a>[\d.]+),')]


@pytest.mark.parametrize(('page', 'quote', 'name', 'printed'), QUOTED,
                         ids=lambda value: value if re.fullmatch(r'[\w/.]+', value) else '')
def test_a_page_quotes_what_was_printed(page, quote, name, printed):
    quoted = re.search(quote, (ROOT / page).read_text()).groups()
    found = re.search(printed, (DOC / 'results' / f'{name}.txt').read_text()).groupdict()
    assert len(found) == len(quoted)
    for text, (_, value) in zip(quoted, sorted(found.items())):
        digits = len(text.partition('.')[2])
        assert float(text) == pytest.approx(float(value), abs=0.501 * 10.0 ** -digits), quote


# Those that take a minute at most; the numbers are the same on any machine, but for rounding.
REPEATED = ('table_1', 'wang_errata', 'zmp_methods', 'gravity_droop', 'torso')


@pytest.mark.thorough
@pytest.mark.parametrize('name', REPEATED)
def test_what_was_printed_is_printed_today(name):
    stored = (DOC / 'results' / f'{name}.txt').read_text()
    command, _, stored = stored.partition('\n')
    shown = subprocess.run(
        [sys.executable, *command.split()[2:]], cwd=ROOT, text=True, capture_output=True,
        check=True, timeout=600.0, env={
            **os.environ, 'COLUMNS': '110', 'NO_COLOR': '1', 'TERM': 'dumb',
            'PYTHONPATH': os.pathsep.join(filter(None, (str(ROOT), os.environ.get('PYTHONPATH')))),
            'OPENBLAS_NUM_THREADS': '1'}).stdout
    lines = [[line for line in text.splitlines() if not line.endswith(' us')]
             for text in (stored, shown)]
    words, numbers = zip(*((NUMBER.sub('', ' '.join('\n'.join(text).split())),
                            [float(number) for number in NUMBER.findall('\n'.join(text))])
                           for text in lines))
    assert words[0] == words[1]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=1e-6)


def test_the_readme_shows_what_the_check_of_a_foreign_robot_prints(capsys, monkeypatch):
    try:
        RobotModel.load('talos')
    except ConfigurationError as error:
        pytest.skip(str(error))  # its package is not installed
    monkeypatch.setenv('COLUMNS', '100')
    name, block = re.search(r'```\n\$ make check ROBOT=(\w+)\n(.*?)\n```',
                            (ROOT / 'README.md').read_text(), re.DOTALL).groups()
    assert check([name, '--picture', 'none']) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    shown = [line for line in block.splitlines() if line.strip() != '...']
    assert len(shown) > 10 and all(line in printed for line in shown), 'in this order'


def test_the_page_on_ones_own_robot_shows_a_remedy_as_it_is_printed(tmp_path, capsys):
    values = yaml.safe_load(robot_file('biped').read_text())
    for corner in values['feet']['left']['polygon']:
        corner[0] += 0.052 if corner[0] > 0.0 else 0.0
    (tmp_path / 'mine.yaml').write_text(yaml.safe_dump(values))
    assert check([str(tmp_path / 'mine.yaml'), '--picture', 'none']) == 1
    shown = re.search(r'such as::\n\n(.*?)\n\n', (DOC / 'own_robot.rst').read_text(), re.DOTALL)[1]
    assert capsys.readouterr().out.splitlines()[-1] == ' '.join(shown.split())


def test_sizes_of_the_sample_and_of_its_robot_are_as_stated():
    readme, page = ((ROOT / name).read_text() for name in ('README.md', 'doc/calibration.rst'))
    size = (DOC / 'sample' / 'sabian.mcap').stat().st_size / 1e6
    assert f'{size:.1f} MB' in readme
    model = RobotModel.load('sabian')
    assert f'{model.mass:.0f} kg' in readme and f'robot of {model.mass:.0f} kg' in page


def test_the_lengths_of_tendons_in_the_errata_are_those_of_the_model():
    quoted = re.search(r'tendons in \[([\d.]+), ([\d.]+)\] mm', (DOC / 'errata.rst').read_text())
    backbone = Backbone(0.129, 0.034, np.radians((180.0, 270.0, 0.0, 90.0)))
    around = [backbone.lengths(make_shape(np.radians(15.0), phi))
              for phi in np.linspace(0.0, 2.0 * np.pi, 721)]
    assert [1e3 * np.min(around), 1e3 * np.max(around)] == pytest.approx(
        [float(value) for value in quoted.groups()], abs=6e-4)


def cells(path):
    """Return the text of a picture of the terminal, line by line."""
    rows = {}
    for x, y, text in re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>',
                                 path.read_text()):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text)))
    return [''.join(text for _, text in sorted(row)) for _, row in sorted(rows.items())]


def test_the_picture_of_the_demo_has_the_rows_and_the_robot_of_today(tmp_path):
    """Weights by the URDF and of the robot whose masses are hidden; errors of the CoM."""
    pytest.importorskip('mujoco')
    from biped_com_ros.sim import hidden
    from biped_com_ros.sim.description import parse
    save_picture(*2 * (snapshot(unmeasured=2.0),), 'title', str(tmp_path / 'table.svg'))
    labels, shown = (
        [match[1].strip() for line in cells(path)
         if (match := re.match('│([^│]*[a-z][^│]*)│', line.replace('\xa0', ' ')))]
        for path in (tmp_path / 'table.svg', DOC / 'pictures' / 'table.svg'))
    assert shown == labels
    text = '\n'.join(cells(DOC / 'pictures' / 'table.svg')).replace('\xa0', ' ')
    model = RobotModel.load('biped')
    sigma = yaml.safe_load((ROOT / 'config' / 'hidden' / 'masses.yaml').read_text())[
        '/**/simulator']['ros__parameters']
    description = parse(model.urdf)
    errors = hidden.draw(description, 1, sigma['hidden_com_sigma'], sigma['hidden_mass_sigma'])
    links = hidden.apply(description, errors).links
    true = RobotModel(model.config, with_inertials(model.urdf, {
        name: NewInertial(links[name].mass, links[name].com) for name in errors}))
    by_urdf, above = (robot.mass * GRAVITY - weight_below_sensors(robot)
                      for robot in (model, true))
    assert re.findall(r'by the URDF ([\d.]+) N', text) == 2 * [f'{by_urdf:.2f}']
    assert [float(value) for value in re.findall(r'([\d.]+) N, by the URDF', text)] == (
        pytest.approx(2 * [above], abs=0.15))
    com, true_com = (robot.state(robot.posture('stand')).com_in_base for robot in (model, true))
    assert [float(value) for value in re.search(
        r'x ([-+][\d.]+) +y ([-+][\d.]+) +z ([-+][\d.]+)', text).groups()] == pytest.approx(
            1e3 * (com - true_com), abs=0.5)
