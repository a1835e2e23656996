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
"""What launch files start."""

from pathlib import Path

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launching.files import LAUNCH_FILES
from biped_com_ros.launching.programs import ForeignLaunchFile
import pytest
import yaml

SHARE = package_share()
FILES = tuple(LAUNCH_FILES)
#: Those that start nodes of this package.
OF_NODES = tuple(name for name in FILES if name != 'view')
each_file = pytest.mark.parametrize('file', FILES)
each_of_nodes = pytest.mark.parametrize('file', OF_NODES)


def plan(file, **arguments):
    """Return what a launch file starts, but for launch files of other packages."""
    return [program for program in LAUNCH_FILES[file].plan(arguments)
            if not isinstance(program, ForeignLaunchFile)]


def planned(file, **arguments):
    """Return it by executable, the last one of each."""
    return {program.executable: program for program in plan(file, **arguments)}


def parameters_in_files(program):
    """Return the parameters that its files have for every node."""
    values = {}
    for file in program.files:
        document = yaml.safe_load(Path(file).read_text())
        values.update(document.get('/**', {}).get('ros__parameters', {}))
    return values
