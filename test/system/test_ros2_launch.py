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
"""The launch files and their arguments, as the real ``ros2 launch`` reads them, where it is."""

from __future__ import annotations

import os
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launch_runner.actions import declared_arguments, load
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.launch import given_arguments
import pytest

SHARE = package_share()
LAUNCH_FILES = sorted((SHARE / 'launch').glob('*.xml'))


@pytest.fixture
def package_in_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``$(find-pkg-share biped_com_ros)`` find these files, not installed ones."""
    marker = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages' / 'biped_com_ros'
    marker.parent.mkdir(parents=True)
    marker.touch()
    (tmp_path / 'share' / 'biped_com_ros').symlink_to(SHARE)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path), prepend=os.pathsep)


@pytest.mark.usefixtures('package_in_index')
@pytest.mark.parametrize('file', LAUNCH_FILES, ids=lambda file: file.name)
def test_ros2_launch_accepts_it_too(file: Path) -> None:
    parser = pytest.importorskip('launch.frontend').Parser
    pytest.importorskip('launch_ros')
    entity, frontend = parser.load(str(file))
    description = frontend.parse_description(entity)
    ours = [argument.name for argument in declared_arguments(load(file), Context({}))]
    theirs = {argument.name for argument in description.get_launch_arguments()}
    assert set(ours) <= theirs


@pytest.mark.parametrize('word', ['robot:=a', 'robot:=a:=b', 'robot:= ', 'robot:=', ':=a'])
def test_arguments_are_read_as_ros2_launch_reads_them(word: str) -> None:
    parse = pytest.importorskip('ros2launch.api.api').parse_launch_arguments
    try:
        theirs = dict(parse([word]))
    except RuntimeError:
        with pytest.raises(ConfigurationError, match='malformed launch argument'):
            given_arguments([word])
    else:
        assert given_arguments([word]) == theirs
