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
"""
Prints the URDF of a robot, for robot_state_publisher or a file.

It first checks that the URDF has every link, joint and frame that the robot's YAML names. What is
probably wrong in the YAML or the URDF is printed as a warning on stderr.

::

    ros2 run biped_com_ros robot_description talos > talos.urdf
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import sys

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if robot or URDF do not exist, or do not fit."""
    parser = argparse.ArgumentParser(
        prog='robot_description', description='Print the URDF of a robot.')
    parser.add_argument('robot', help='name of a robot, or path of its YAML file')
    parser.add_argument('urdf', nargs='?', default='',
                        help="overrides the robot's URDF: a path or a package:// URI")
    options = parser.parse_args(argv)
    try:
        config = load_robot_config(options.robot)
        model = RobotModel(config, load_urdf(config, options.urdf))
        for posture in config.postures:
            model.posture(posture)
        for warning in model.warnings:
            print(f'warning: {warning}', file=sys.stderr)
        print(model.urdf)
        return 0
    except BipedComError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
