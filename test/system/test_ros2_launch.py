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
"""Launch files as ``ros2 launch`` runs them: by a stand-in, and by the real one if installed."""

import importlib.util
import os
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.launching.arguments import FIELDS
from biped_com_ros.launching.files import LAUNCH_FILES
from biped_com_ros.launching.programs import Program
from biped_com_ros.launching.run import given_arguments, processes_of
import pytest
from support import launch_stand_in
from support.launch_stand_in import IncludeLaunchDescription, LaunchService, Node
from support.planned import each_file, FILES, SHARE
import yaml

#: Other values than the defaults, of arguments that change what is started.
OTHER = {'robot': 'talos', 'namespace': 'r1', 'frame_prefix': 'r1/', 'composed': 'false',
         'respawn': 'none', 'simulation': 'true', 'hidden': 'masses', 'seed': '3', 'rate': '100',
         'view': 'true', 'joy': 'true', 'keys': 'true', 'support': 'fixed', 'poses': '5',
         'postures': 'a;b', 'autostart': 'true', 'log_level': 'warn', 'port': '9000'}


def description_of(file):
    """Execute a launch file."""
    path = SHARE / 'launch' / f'{file}.launch.py'
    spec = importlib.util.spec_from_file_location(f'{file}_launch', path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


@pytest.fixture
def stand_in(monkeypatch):
    launch_stand_in.install(monkeypatch)


def described(words):
    """Return words of a command line, with files of parameters in place of their names."""
    return [repr(yaml.safe_load(Path(word).read_text())) if Path(word).name.startswith('params_')
            else word.replace(str(made_by(word)), 'MADE') for word in words]


def made_by(word):
    """Return the temporary directory in which a file was made for a launch; else the word."""
    return next((parent for parent in Path(word).parents
                 if parent.name.startswith('biped_com_')), Path('no such text'))


@each_file
@pytest.mark.parametrize('other', [False, True])
def test_both_start_the_same(tmp_path, stand_in, file, other):
    takes = LAUNCH_FILES[file].takes
    given = {name: text for name, text in OTHER.items() if other and name in takes}
    programs = LAUNCH_FILES[file].plan(given)
    ours = [program for program in programs if isinstance(program, Program)]
    actions = LaunchService().execute(description_of(file), given)
    theirs = [action for action in actions if isinstance(action, Node)]
    assert len(theirs) == len(ours) > 0
    for program, action in zip(ours, theirs):
        names = {'__node': action.name, '__ns': action.namespace and f'/{action.namespace}',
                 **dict(action.remappings)}
        line = [*action.arguments, '--ros-args', *action.ros_arguments,
                *(word for source, target in names.items() if target
                  for word in ('-r', f'{source}:={target}')),
                *(word for path in action.parameters for word in ('--params-file', path))]
        if 'gazebo' not in file:  # where files are made anew, with names of their own
            assert described(line) == described(program.command_line(tmp_path))
        assert (action.package, action.executable) == (program.package, program.executable)
        assert action.respawn is program.respawns
        assert bool(action.get_sub_entities()) is program.ends_launch
        assert float(action.sigterm_timeout) == program.sigterm_timeout
        assert float(action.sigkill_timeout) == program.sigkill_timeout
    included = [action for action in actions if isinstance(action, IncludeLaunchDescription)]
    assert len(included) == len(programs) - len(ours) == int('gazebo' in file)


@each_file
def test_arguments_are_described_and_their_defaults_are_valid(stand_in, file):
    arguments = {entity.name: entity for entity in description_of(file).entities
                 if hasattr(entity, 'default_value')}
    assert tuple(arguments) == LAUNCH_FILES[file].takes
    for name, argument in arguments.items():
        assert argument.description == FIELDS[name].metadata['description']
        assert not argument.choices or argument.default_value in argument.choices


def test_a_process_runs_ours_as_modules_and_names_missing_packages(tmp_path):
    process, = processes_of(LAUNCH_FILES['viewer'].plan({}), tmp_path, os.environ)
    assert process.name == 'viewer-1' and 'biped_com_ros.nodes.viewer.node' in process.command
    with pytest.raises(ConfigurationError, match="package 'rviz2' is not installed.*apt install"):
        processes_of(LAUNCH_FILES['view'].plan({}), tmp_path, {})


@pytest.mark.parametrize('file', FILES)
def test_the_real_ros2_launch_accepts_it(file):
    pytest.importorskip('launch_ros')
    arguments = {argument.name for argument in description_of(file).get_launch_arguments()}
    assert arguments == set(LAUNCH_FILES[file].takes)


@pytest.mark.parametrize('word', ['robot:=a', 'robot:=a:=b', 'robot:= ', 'robot:=', ':=a'])
def test_arguments_are_read_as_ros2_launch_reads_them(word):
    parse = pytest.importorskip('ros2launch.api.api').parse_launch_arguments
    try:
        theirs = dict(parse([word]))
    except RuntimeError:
        with pytest.raises(ConfigurationError, match='malformed launch argument'):
            given_arguments([word])
    else:
        assert given_arguments([word]) == theirs
