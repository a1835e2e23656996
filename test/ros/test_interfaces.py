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
"""The topics and services in doc/interfaces.rst are those of the running nodes."""

from __future__ import annotations

from dataclasses import dataclass
import importlib
import importlib.util
import itertools
import re

from biped_com_ros.core.model.config import load_robot_config, RobotConfig
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.nodes import NODES
import pytest
import rclpy
from support.ros_rig import NodeRig

DOCUMENT = package_share() / 'doc' / 'interfaces.rst'
# What every node, or every lifecycle node, has.
USUAL = re.compile(r'/(rosout|parameter_events|diagnostics|diagnostics_agg|get_type_description|'
                   r'(describe|get|list|set)_parameters(_atomically)?|get_parameter_types|'
                   r'transition_event|change_state|get_state|get_available_states|'
                   r'get_available_transitions|get_transition_graph)$')
CONFIG = load_robot_config('biped')
# A node's own namespace shows which names are relative.
NAMESPACE = '/robot'


@dataclass(frozen=True)
class Row:
    """One line of a table: the names it stands for, in the order of the types it gives."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    direction: str
    conditional: bool

    def types(self) -> dict[tuple[str, str], str]:
        """Return direction and name -> type."""
        kinds = self.kinds * len(self.names) if len(self.kinds) == 1 else self.kinds
        return {(self.direction, name): kind
                for name, kind in zip(self.names, kinds, strict=True)}


def documented(node: str) -> list[Row]:
    """Read the table of a node."""
    text = DOCUMENT.read_text()
    section = re.search(rf'^{node}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)', text, re.MULTILINE | re.DOTALL)
    assert section, f'doc/interfaces.rst does not describe {node}'
    cells = re.findall(r'^   \* - (.*)\n     - (.*)\n', section[1], re.MULTILINE)
    return [row(names, kind) for names, kind in cells]


def row(names: str, kind: str) -> Row:
    """Read the first two cells of a line."""
    found = re.fullmatch(r'(\(?)(in|out|service|client|)\)?(?:, )?(.*)', kind)
    direction = {'': 'publishes', 'out': 'publishes', 'in': 'subscribes',
                 'service': 'serves', 'client': 'calls'}[found[2]]
    return Row(tuple(re.findall('``(.*?)``', names)), tuple(found[3].split(', ')), direction,
               bool(found[1]))


def choices(config: RobotConfig) -> dict[str, list[str]]:
    """Return what the placeholders of the document stand for."""
    return {'<foot>': list(config.feet), '<sensor>': list(config.wrench_sensors),
            '<sensor topic>': [sensor.topic for sensor in config.wrench_sensors.values()],
            '<imu topic>': [imu.topic for imu in config.imus.values()]}


def spelled_out(name: str, node: str) -> list[str]:
    """Return the full names that a name of the document stands for."""
    holders = [holder for holder in choices(CONFIG) if holder in name]
    names = []
    for values in itertools.product(*(choices(CONFIG)[holder] for holder in holders)):
        full = name
        for holder, value in zip(holders, values):
            full = full.replace(holder, value)
        full = full.replace('~', f'{NAMESPACE}/{node}')
        names.append(full if full.startswith('/') else f'{NAMESPACE}/{full}')
    return names


def documented_interfaces(node: str) -> tuple[dict, dict]:
    """Return what there is always, and what may be there: (direction, name) -> type."""
    always, sometimes = {}, {}
    for line in documented(node):
        for (direction, name), kind in line.types().items():
            for number, full in enumerate(spelled_out(name, node)):
                # Most nodes read the IMU of the base only.
                extra = line.conditional or ('<imu topic>' in name and number > 0)
                (sometimes if extra else always)[direction, full] = kind
    return always, sometimes


def real(rig: NodeRig, name: str) -> dict:
    """Return what the middleware knows of the node: (direction, name) -> type."""
    peer = rig.peer
    queries = {'publishes': peer.get_publisher_names_and_types_by_node,
               'subscribes': peer.get_subscriber_names_and_types_by_node,
               'serves': peer.get_service_names_and_types_by_node}
    try:
        return {(direction, topic): '/'.join(kinds[0].split('/')[::2])
                for direction, query in queries.items() for topic, kinds in query(name, NAMESPACE)
                if not USUAL.search(topic)}
    except rclpy.node.NodeNameNonExistentError:
        return {}


@pytest.fixture
def ros():
    rclpy.init(args=['--ros-args', '-r', f'__ns:={NAMESPACE}'])
    yield
    rclpy.try_shutdown()


@pytest.mark.parametrize('name', NODES)
def test_the_document_lists_what_a_node_has(name, ros):
    module, _, cls = NODES[name].partition(':')
    always, sometimes = documented_interfaces(name)
    rig = NodeRig(node=getattr(importlib.import_module(module), cls)())
    try:
        rig.until(lambda: always.items() <= real(rig, name).items(), timeout=5.0,
                  what=f'{name}: {always.items() - real(rig, name).items()}')
        found = real(rig, name)
    finally:
        rig.close()
    unknown = found.keys() - always.keys() - sometimes.keys()
    assert not unknown, f'{name} has what doc/interfaces.rst does not have: {unknown}'
    assert found.items() <= {**sometimes, **always}.items()


def test_parameter_files_describe_the_parameters_that_the_nodes_declare():
    """What tools/parameter_files.py writes is what is there."""
    path = package_share() / 'tools' / 'parameter_files.py'
    spec = importlib.util.spec_from_file_location('parameter_files', path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for file, text in tool.texts().items():
        assert file.read_text() == text, f'{file} is out of date: run tools/parameter_files.py'


def test_every_node_has_a_parameter_file_or_a_table():
    text = (package_share() / 'doc' / 'parameters.rst').read_text()
    headings = set(re.findall(r'^(\w+)\n-+$', text, re.MULTILINE))
    nodes = {path.parent.name
             for path in (package_share() / 'biped_com_ros/nodes').glob('*/node.py')}
    assert headings == nodes - {'robot_description'}


def test_every_node_with_a_robot_is_described():
    text = DOCUMENT.read_text()
    nodes = {path.parent.name
             for path in (package_share() / 'biped_com_ros/nodes').glob('*/node.py')}
    assert not {name for name in nodes if name not in text} - {'robot_description'}
