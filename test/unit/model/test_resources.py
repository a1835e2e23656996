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
"""Where files are found."""

from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model import resources
import pytest


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """Return an ament prefix with one package in it."""
    (tmp_path / 'share/my_robot/urdf').mkdir(parents=True)
    (tmp_path / 'share/my_robot/urdf/robot.urdf').write_text('<robot/>')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    return tmp_path


def test_the_source_tree_is_the_share_when_there_is_one():
    if (Path(resources.__file__).resolve().parents[3] / 'package.xml').is_file():
        assert (resources.package_share() / 'biped_com_ros/core').is_dir()
        assert resources.find_package('biped_com_ros') == resources.package_share()


def test_package_uris_are_searched_in_every_prefix(prefix):
    assert resources.find_package('my_robot') == prefix / 'share/my_robot'
    found = resources.resolve_uri('package://my_robot/urdf/robot.urdf')
    assert found == (prefix / 'share/my_robot/urdf/robot.urdf').resolve()


def test_source_workspaces_and_wheels_that_bring_a_prefix_count_as_well(tmp_path, monkeypatch):
    places = tmp_path / 'their_robot', tmp_path / 'cmeel.prefix/share/wheel_robot'
    for place in places:
        place.mkdir(parents=True)
    monkeypatch.setenv('ROS_PACKAGE_PATH', str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert tuple(resources.find_package(place.name) for place in places) == places


def test_python_packages_that_keep_their_urdf_beside_the_code_count_as_well(tmp_path, monkeypatch):
    urdf = tmp_path / 'site-packages/python_robot/urdf/robot.urdf'
    urdf.parent.mkdir(parents=True)
    urdf.write_text('<robot/>')
    monkeypatch.syspath_prepend(str(tmp_path / 'site-packages'))
    assert resources.resolve_uri('package://python_robot/urdf/robot.urdf') == urdf.resolve()


@pytest.mark.parametrize(('uri', 'message'), [
    ('package://your_robot/urdf/robot.urdf',
     "package 'your_robot' was not found; install.*searched: /nowhere, {}"),
    ('package://my_robot/urdf/x.urdf', 'does not exist .*share/my_robot/urdf/x.urdf'),
    ('/nowhere/at/all.urdf', 'does not exist'), ('{}', 'does not exist'),
    ('package://', 'needs the name of a package'),
    ('package:///urdf/robot.urdf', 'needs the name of a package')])
def test_what_is_not_there_is_named_with_the_places(prefix, uri, message):
    with pytest.raises(ConfigurationError, match=message.format(prefix)):
        resources.resolve_uri(uri.format(prefix))


def test_plain_paths_and_file_uris(tmp_path, monkeypatch):
    path = tmp_path / 'a robot.urdf'
    path.write_text('<robot/>')
    assert resources.resolve_uri(str(path)) == path.resolve()
    assert path.as_uri().endswith('a%20robot.urdf')
    assert resources.resolve_uri(path.as_uri()) == path.resolve()
    monkeypatch.chdir(tmp_path)
    assert resources.resolve_uri('a robot.urdf') == path.resolve()
