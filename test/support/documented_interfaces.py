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
"""What doc/interfaces.rst says that a node publishes, subscribes to, serves, executes, calls."""

from __future__ import annotations

from dataclasses import dataclass
import itertools
import re

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share

DOCUMENT = package_share() / 'doc' / 'interfaces.rst'
CONFIG = load_robot_config('biped')
# A node's own namespace shows which names are relative.
NAMESPACE = '/robot'


@dataclass(frozen=True)
class InterfaceRow:
    """One line of a table: the names it stands for, in the order of the types it gives."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    direction: str
    conditional: bool

    def types(self):
        """Return direction and name -> type."""
        kinds = self.kinds * len(self.names) if len(self.kinds) == 1 else self.kinds
        return {(self.direction, name): kind
                for name, kind in zip(self.names, kinds, strict=True)}


def documented(node):
    """Read the table of a node."""
    text = DOCUMENT.read_text()
    section = re.search(rf'^{node}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)', text, re.MULTILINE | re.DOTALL)
    assert section, f'doc/interfaces.rst does not describe {node}'
    cells = re.findall(r'^   \* - (.*)\n     - (.*)\n', section[1], re.MULTILINE)
    return [row(names, kind) for names, kind in cells]


def row(names, kind):
    """Read the first two cells of a line."""
    found = re.fullmatch(r'(\(?)(in|out|service|client|action|)\)?(?:, )?(.*)', kind)
    direction = {'': 'publishes', 'out': 'publishes', 'in': 'subscribes',
                 'service': 'serves', 'client': 'calls', 'action': 'executes'}[found[2]]
    return InterfaceRow(tuple(re.findall('``(.*?)``', names)), tuple(found[3].split(', ')),
                        direction, bool(found[1]))


#: Nodes that apply the efforts of gravity_compensation: of ros2_control, and the simulator.
CONTROLLERS = ('effort_controller', 'simulator')


def choices(config):
    """Return what the placeholders of the document stand for."""
    return {'<controller>': list(CONTROLLERS), '<foot>': list(config.feet),
            '<sensor>': list(config.wrench_sensors),
            '<hand>': [config.hand_label(name) for name, hand in config.hands.items()
                       if hand.has_wrench],
            '<sensor topic>': [sensor.topic for sensor in config.wrench_sensors.values()],
            '<temperature topic>': [sensor.temperature_topic
                                    for sensor in config.wrench_sensors.values()
                                    if sensor.temperature_topic],
            '<imu topic>': [imu.topic for imu in config.imus.values()]}


def spelled_out(name, node, namespace=NAMESPACE, config=CONFIG):
    """Return the full names that a name of the document stands for."""
    holders = [holder for holder in choices(config) if holder in name]
    names = []
    for values in itertools.product(*(choices(config)[holder] for holder in holders)):
        full = name
        for holder, value in zip(holders, values):
            full = full.replace(holder, value)
        full = full.replace('~', f'{namespace}/{node}')
        names.append(full if full.startswith('/') else f'{namespace}/{full}')
    return names


def with_actions(found):
    """Return (direction, name) -> type with one entry in place of the parts of each action."""
    merged = {}
    for (direction, name), kind in found.items():
        action, is_part, _ = name.partition('/_action/')
        if is_part and direction in ('publishes', 'serves'):
            if name.endswith('send_goal'):
                merged['executes', action] = kind.removesuffix('_SendGoal')
        else:
            merged[direction, name] = kind
    return merged


def documented_interfaces(node, namespace=NAMESPACE, config=CONFIG, name=''):
    """
    Return what there is always, and what may be there: (direction, name) -> type.

    `name` is that of the node if a launch file gives it another one than its executable's.
    """
    always, sometimes = {}, {}
    for line in documented(node):
        for (direction, relative), kind in line.types().items():
            for number, full in enumerate(
                    spelled_out(relative, name or node, namespace, config)):
                # Most nodes read the IMU of the base only.
                extra = line.conditional or ('<imu topic>' in relative and number > 0)
                (sometimes if extra else always)[direction, full] = kind
    return always, sometimes
