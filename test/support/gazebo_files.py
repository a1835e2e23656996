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
"""What is written for Gazebo, read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.gazebo.files import write_files
import yaml

SHARE = package_share()


@dataclass(frozen=True)
class GazeboFiles:
    """What `gazebo.launch.py` writes for a robot: texts and parameters."""

    simulated: str
    description: str
    controllers: dict[str, Any]
    create: dict[str, Any]
    bridge: list[dict[str, str]]

    @property
    def gains(self):
        """Gains by joint."""
        return self.controllers['/**/joint_trajectory_controller']['ros__parameters']['gains']

    @property
    def rate(self):
        """Rate of the controller, Hz."""
        return self.controllers['/**/controller_manager']['ros__parameters']['update_rate']


def gazebo_files(directory, robot='biped', command='effort', **options):
    """Write the files of a robot."""
    write_files(directory, robot, command=command, **options)
    return read_gazebo_files(directory)


def read_gazebo_files(directory):
    """Return what is in a directory that `gazebo_files` or a launch file wrote."""
    directory = Path(directory)
    read = {name: yaml.safe_load((directory / f'{name}.yaml').read_text())
            for name in ('description', 'create', 'controllers', 'bridge')}
    create = read['create']['/**']['ros__parameters']
    return GazeboFiles(
        Path(create['file']).read_text(),
        read['description']['/**']['ros__parameters']['robot_description'],
        read['controllers'], create, read['bridge'])


def gazebo_step():
    """Return the step of the world, s."""
    return float(flat_world().find('.//max_step_size').text)


def flat_world():
    return ElementTree.parse(SHARE / 'config' / 'gazebo' / 'flat.sdf')


def joints_of(text):
    return {joint.get('name'): joint for joint in ElementTree.fromstring(text).findall('joint')}


def damping_in(text):
    """Return the damping of each joint that has some."""
    return {name: float(joint.find('dynamics').get('damping', 0.0))
            for name, joint in joints_of(text).items() if joint.find('dynamics') is not None}


def start_posture(text):
    """Return the initial position of each driven joint."""
    driven = ElementTree.fromstring(text).findall('ros2_control/joint')
    return {joint.get('name'): float(joint.find(
        "state_interface[@name='position']/param[@name='initial_value']").text)
        for joint in driven}
