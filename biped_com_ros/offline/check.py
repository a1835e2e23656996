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
``check``: what a robot's file gives, which nodes will run with it, and what to do first.

    ros2 run biped_com_ros check mine.yaml

Prints the mass, whether the soles are level, the polygons compared with the collision geometry,
sensors, joints and nodes, and writes a picture. The last line is ``ready``, with what could not be
compared, or the first thing to do; then the exit code is 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
import shutil
import sys
import textwrap

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.files import make_directory, write_atomically
from biped_com_ros.core.model.config import load_robot_config, robot_file
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.offline.robot_check import (
    check_robot, Entry, failure, first_remedy, standing_posture, verdict)
from biped_com_ros.offline.robot_picture import robot_picture

_COLUMN, _WIDEST = 27, 110


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if the robot is not ready."""
    options = _parser().parse_args(argv)
    try:
        config = load_robot_config(options.robot)
        model = RobotModel(config, load_urdf(config, options.urdf))
        entries = check_robot(model)
    except BipedComError as error:
        print(f'first: {error}')
        return 1
    print(f'{robot_file(options.robot)}')
    for entry in entries:
        print(describe(entry))
    if options.picture != 'none':
        path = Path(options.picture)
        if path.is_dir() or options.picture.endswith('/'):
            path = path / f'{config.name}_check.svg'
        problem = failure(lambda: make_directory(path.parent)) or failure(
            lambda: write_atomically(path, robot_picture(model, standing_posture(model))))
        print(describe(Entry(
            'picture', f'not written: {problem}' if problem else str(path.resolve()))))
    print(f'\n{verdict(entries)}')
    return 1 if first_remedy(entries) else 0


def describe(entry: Entry) -> str:
    """Return an entry as lines: name, what was found, and below it what to do."""
    width = max(60, min(shutil.get_terminal_size((100, 24)).columns, _WIDEST))
    lines = [f'{"* " if entry.remedy and not entry.is_hint else "  "}{entry.name:<{_COLUMN}}']
    indent = ' ' * (_COLUMN + 2)
    remedy = [f'{"hint" if entry.is_hint else "to do"}: {entry.remedy}'] if entry.remedy else []
    text = '\n'.join(
        textwrap.fill(part, width, initial_indent=indent, subsequent_indent=indent,
                      break_long_words=False, break_on_hyphens=False)
        for part in (entry.text, *remedy))
    return lines[0] + text[len(indent):]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='check', description="Check a robot's YAML file: what it has, which nodes run, and "
        'what to correct.')
    parser.add_argument('robot', help='path of a robot YAML, or name of a robot of this package')
    parser.add_argument('urdf', nargs='?', default='',
                        help="overrides the robot's URDF: a path or a package:// URI")
    parser.add_argument('--picture', default='.', metavar='FILE',
                        help='SVG file to write, or directory for <name>_check.svg; default: '
                        'here; none: no file')
    return parser


if __name__ == '__main__':
    sys.exit(main())
