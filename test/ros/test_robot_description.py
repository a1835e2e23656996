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
"""What is read from the URDF's XML, and what is refused before Pinocchio sees it."""

from biped_com_ros.nodes.robot_description.node import main
import pytest
from support.small_robot import MAPPING, URDF
import yaml


@pytest.fixture
def path(tmp_path):
    (tmp_path / 'small.urdf').write_text(URDF)

    def write(**changes):
        path = tmp_path / 'small.yaml'
        path.write_text(yaml.safe_dump(
            {'urdf': str(tmp_path / 'small.urdf'), **MAPPING, **changes}))
        return str(path)
    return write


def test_the_urdf_is_printed(path, capsys):
    assert main([path()]) == 0
    assert capsys.readouterr().out == URDF + '\n'


@pytest.mark.parametrize('changes, text', [
    ({'base_link': 'pelvsi'}, "'pelvsi'"),
    ({'imus': {'base': {'frame': 'imu_lnk', 'topic': 'imu'}}}, "did you mean 'imu_link'"),
    ({'postures': {'stand': {'no_joint': 0.1}}}, "'no_joint'"),
    ({'urdf': '/nowhere.urdf'}, '/nowhere.urdf')])
def test_what_does_not_fit_is_named_in_one_line_and_nothing_is_printed(
        path, capsys, changes, text):
    assert main([path(**changes)]) == 1
    out, err = capsys.readouterr()
    assert not out and text in err and err.count('\n') == 1
