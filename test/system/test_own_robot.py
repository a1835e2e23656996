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
"""The page on a robot of one's own, followed: the file that it shows makes a robot that works."""

from __future__ import annotations

from pathlib import Path
import re

from biped_com_ros.core.pose import Pose
from biped_com_ros.core.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / 'doc' / 'own_robot.rst'

pytest.importorskip('jvrc_description', reason='pip install jvrc-description')


def shown_file(page):
    """Return what the reader copies: the file that the page includes, from the line it says."""
    include = re.search(r'literalinclude:: (\S+)(?:\n +:[a-z]+: .*)*?\n +:lines: (\d+)-', page)
    assert include is not None, 'the page shows no file'
    lines = (PAGE.parent / include[1]).read_text().splitlines()[int(include[2]) - 1:]
    return '\n'.join(lines) + '\n'


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp('mine') / 'jvrc1.yaml'
    file.write_text(shown_file(PAGE.read_text()))
    return RobotModel.load(str(file))


def test_the_file_is_short_and_tells_of_the_robot_that_the_page_tells_of(model):
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
    """By kinematics, and by the feet: both against what MuJoCo knows."""
    plant = Plant(model.config, model.urdf, PlantOptions(), model.joint_names)
    command = plant.hold()
    for _ in range(round(1.0 / plant.dt)):
        seen = plant.step(command)
    truth = plant.truth()
    assert not plant.has_fallen
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    state = model.state(seen.joint_positions)
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
    # The sensors that the file names feel all that is above them.
    below = [model.subtree_links(sensor.link) for sensor in model.config.wrench_sensors.values()]
    feet = sum(float(np.asarray(model.link_masses)[links].sum()) for links in below)
    assert seen.wrenches[:, 2].sum() == pytest.approx(weight - 9.81 * feet, rel=1e-3)
