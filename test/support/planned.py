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
"""What a launch file would start: commands and parameters."""

from __future__ import annotations

from itertools import pairwise
import os
from pathlib import Path
from typing import Any

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launch_runner.actions import load, Planner
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.parameters import ParameterFiles
import yaml

SHARE = package_share()
#: What launch files start besides nodes of this package.
FOREIGN = ('ros_gz_sim/create', 'ros_gz_bridge/parameter_bridge', 'controller_manager/spawner',
           'robot_state_publisher/robot_state_publisher', 'rviz2/rviz2', 'joy/joy_node',
           'tf2_ros/static_transform_publisher')


def install_gazebo(tmp_path: Path, monkeypatch: Any) -> Path:
    """
    Install packages with what launch files start besides nodes of this package; nobody starts it.

    Returns a directory for the parameter files of a plan.
    """
    prefix = tmp_path / 'ros'
    for name in FOREIGN:
        package, _, executable = name.partition('/')
        file = prefix / 'lib' / package / executable
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('#!/bin/sh\n')
        file.chmod(0o755)
        (prefix / 'share' / package / 'launch').mkdir(parents=True, exist_ok=True)
    world = prefix / 'share' / 'ros_gz_sim' / 'launch' / 'gz_sim.launch.py'
    world.write_text('<launch><arg name="gz_args" default=""/></launch>')
    for variable, first in (('AMENT_PREFIX_PATH', prefix), ('PYTHONPATH', SHARE)):
        monkeypatch.setenv(variable, os.pathsep.join((str(first), os.environ.get(variable, ''))))
    monkeypatch.setenv('TMPDIR', str(tmp_path))  # of what the launch file makes
    (tmp_path / 'params').mkdir()
    return tmp_path / 'params'


def planned(tmp_path: Path, file: str, **arguments: str) -> dict[str, list[str]]:
    """Commands of a launch file by executable."""
    planner = Planner(Context(dict(arguments)), ParameterFiles(tmp_path))
    planner.run(load(SHARE / 'launch' / file))
    return {plan.name.rpartition('-')[0]: list(plan.command) for plan in planner.processes}


def given_parameters(command: list[str]) -> dict[str, Any]:
    """Parameters that a command line gives to every node of the process, the last one wins."""
    values: dict[str, Any] = {}
    for flag, word in pairwise(command):
        if flag == '--params-file':
            document = yaml.safe_load(Path(word).read_text())
            values.update(document.get('/**', {}).get('ros__parameters', {}))
    values.pop('launch.params_files', None)
    return values
