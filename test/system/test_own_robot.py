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
"""Follows doc/own_robot.rst: the file that it shows describes a robot that works."""

import os
from pathlib import Path
import re
import shlex
import signal
import subprocess
import sys

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from support.launched import LIMIT
from support.observer import common, vectors

PAGE = Path(__file__).resolve().parents[2] / 'doc' / 'own_robot.rst'

pytest.importorskip('jvrc_description', reason='pip install jvrc-description')


def shown_file(page):
    """Return what the reader copies: the file that the page includes, from the line it says."""
    include = re.search(r'literalinclude:: (\S+)(?:\n +:[a-z]+: .*)*?\n +:lines: (\d+)-', page)
    assert include is not None, 'the page shows no file'
    lines = (PAGE.parent / include[1]).read_text().splitlines()[int(include[2]) - 1:]
    return '\n'.join(lines) + '\n'


@pytest.fixture(scope='module')
def directory(tmp_path_factory):
    """Return where the reader has written the file."""
    directory = tmp_path_factory.mktemp('mine') / 'my Büro'
    directory.mkdir()
    (directory / 'jvrc1.yaml').write_text(shown_file(PAGE.read_text()))
    return directory


@pytest.fixture(scope='module')
def model(directory):
    return RobotModel.load(str(directory / 'jvrc1.yaml'))


def test_the_file_is_short_and_describes_the_robot_of_the_page(model):
    content = [line for line in shown_file(PAGE.read_text()).splitlines()
               if line.strip() and not line.lstrip().startswith('#')]
    assert len(content) <= 35
    assert model.config.name == 'jvrc1' and model.mass == pytest.approx(62.4, abs=0.1)
    for name in (*(foot.sole for foot in model.config.feet.values()), 'gsensor', 'lfsensor'):
        assert f'``{name}``' in PAGE.read_text()


@pytest.mark.parametrize('posture', ('stand', 'arms_up'))
def test_soles_are_level_and_at_one_height_in_every_posture(model, posture):
    soles = model.state(model.posture(posture)).placements_in_base(model.soles)
    assert soles[:, 2] == pytest.approx(np.tile((0.0, 0.0, 1.0), (2, 1)), abs=1e-9)
    assert soles[0, 3, 2] == pytest.approx(soles[1, 3, 2], abs=1e-9)


def test_it_stands_in_the_simulator_and_its_centre_of_mass_is_found(model):
    """By kinematics, and by the feet: both compared with MuJoCo's ground truth."""
    plant = Plant(model.config, model.urdf, PlantOptions(), model.joint_names)
    command = plant.hold()
    for _ in range(round(1.0 / plant.dt)):
        observation = plant.step(command)
    truth = plant.truth()
    assert not plant.has_fallen
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    state = model.state(observation.joint_positions)
    assert base.apply(state.com_in_base) == pytest.approx(truth.com, abs=1e-5)
    weight = 9.81 * model.mass
    assert truth.sole_wrenches[:, 2].sum() == pytest.approx(weight, rel=1e-3)
    soles = [base @ state.pose_in_base(foot.sole) @ Pose(np.eye(3), np.array(foot.sole_origin))
             for foot in model.config.feet.values()]
    assert [pose.position[2] for pose in soles] == pytest.approx([0.0, 0.0], abs=1e-3)
    cops = [pose.apply(np.array((-w[4] / w[2], w[3] / w[2], 0.0)))
            for pose, w in zip(soles, truth.sole_wrenches)]
    shares = truth.sole_wrenches[:, 2] / truth.sole_wrenches[:, 2].sum()
    assert shares @ np.array(cops)[:, :2] == pytest.approx(truth.com[:2], abs=1e-3)
    # The sensors carry all links above them.
    below = [model.subtree_links(sensor.link) for sensor in model.config.wrench_sensors.values()]
    feet = sum(float(np.asarray(model.link_masses)[links].sum()) for links in below)
    assert observation.wrenches[:, 2].sum() == pytest.approx(weight - 9.81 * feet, rel=1e-3)


def commands(directory):
    """Return the two commands of the page that bring the robot up, and their variable."""
    terminals = re.search(
        r'in two terminals::\n\n((?:    .+\n)+)\n::\n\n((?:    .+\n)+)', PAGE.read_text())
    words, variables = [], set()
    for lines in terminals.groups():
        source, export, command = lines.splitlines()
        assert source.split() == ['source', '.venv/bin/activate']
        variables.add(export.split('#')[0].split()[1])
        words.append(shlex.split(command.replace('$PWD', str(directory))))
    variable, = variables
    return [[sys.executable, *command[1:]] if command[0] == 'python' else [
        sys.executable, '-m', 'biped_com_ros.launching.run', *command[1:]]
        for command in words], dict([variable.split('=')])


@pytest.mark.thorough
def test_the_estimators_run_with_it_as_documented(directory, observer):
    """All of them report that they are OK, and the weight that the page names."""
    lines, variable = commands(directory)
    estimated = observer.keep(PointStamped, 'com_estimator/com')
    true = observer.keep(PointStamped, 'simulator/truth/com')
    reports = observer.keep(DiagnosticArray, '/diagnostics')
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, **variable}) for command in lines]

    def runs():
        health = {status.name: status for array in reports for status in array.status}
        health.pop('simulator: simulation', None)  # how fast it is depends on the computer
        nodes = {name.partition(':')[0] for name in health}
        weight = health.get('wrench_aggregator: weight')
        return (nodes >= {'wrench_aggregator', 'com_estimator', 'zmp_monitor'}
                and all(status.level == DiagnosticStatus.OK for status in health.values())
                and weight is not None and weight.message.startswith('612.1 N')
                and len(common(vectors(estimated), vectors(true))[0]) > 100)

    try:
        observer.until(runs, 'nodes without errors, and the weight that the page names')
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        assert [process.wait(LIMIT) for process in processes] == [0, 0]
    found, truth = common(vectors(estimated), vectors(true))
    assert np.abs((found - truth)[-100:]).max() < 1e-4
