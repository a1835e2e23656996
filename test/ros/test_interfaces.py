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

import importlib
import importlib.util
import re

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.nodes import NODES
import pytest
import rclpy
from support.documented_interfaces import (
    DOCUMENT, documented_interfaces, NAMESPACE, with_actions)
from support.ros_rig import NodeRig

# What every node, or every lifecycle node, has.
USUAL = re.compile(r'/(rosout|parameter_events|diagnostics|diagnostics_agg|get_type_description|'
                   r'(describe|get|list|set)_parameters(_atomically)?|get_parameter_types|'
                   r'calibrated_description|transition_event|change_state|get_state|'
                   r'get_available_states|'
                   r'get_available_transitions|get_transition_graph)$')


def real(rig, name):
    """Return what the middleware knows of the node: (direction, name) -> type."""
    peer = rig.peer
    queries = {'publishes': peer.get_publisher_names_and_types_by_node,
               'subscribes': peer.get_subscriber_names_and_types_by_node,
               'serves': peer.get_service_names_and_types_by_node}
    try:
        return with_actions({
            (direction, topic): '/'.join(kinds[0].split('/')[::2])
            for direction, query in queries.items() for topic, kinds in query(name, NAMESPACE)
            if not USUAL.search(topic)})
    except rclpy.node.NodeNameNonExistentError:
        return {}


@pytest.fixture
def ros():
    rclpy.init(args=['--ros-args', '-r', f'__ns:={NAMESPACE}'])
    yield
    rclpy.try_shutdown()


@pytest.mark.parametrize('name', NODES)
def test_the_document_lists_what_a_node_has(name, ros, closing):
    module, _, cls = NODES[name].partition(':')
    always, sometimes = documented_interfaces(name)
    rig = closing(NodeRig(node=getattr(importlib.import_module(module), cls)()))
    rig.until(lambda: always.items() <= real(rig, name).items(), timeout=5.0,
              what=f'{name}: {always.items() - real(rig, name).items()}')
    found = real(rig, name)
    unknown = found.keys() - always.keys() - sometimes.keys()
    assert not unknown, f'{name} has what doc/interfaces.rst does not have: {unknown}'
    assert found.items() <= {**sometimes, **always}.items()


@pytest.fixture(scope='module')
def tool():
    """Return the module tools/parameter_files.py."""
    path = package_share() / 'tools' / 'parameter_files.py'
    spec = importlib.util.spec_from_file_location('parameter_files', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parameter_files_describe_the_parameters_that_the_nodes_declare(tool):
    """What tools/parameter_files.py writes is what is there."""
    for file, text in tool.texts().items():
        assert file.read_text() == text, f'{file} is out of date: run tools/parameter_files.py'


def test_each_parameter_of_a_group_exists_and_is_in_one_group(tool):
    """So that no name of the groups is out of date."""
    grouped = [name for names in tool.GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    known = {name for node, cls in tool.IN_CONFIG.items()
             for name, *_ in tool.parameters_of(node, cls)}
    assert set(grouped) <= known


def test_descriptions_of_parameters_do_not_refer_to_others(tool):
    """Since ``ros2 param describe`` shows one at a time."""
    texts = {f'{node}.{name}': text
             for node, cls in {**tool.IN_CONFIG, **tool.IN_DOCUMENT}.items()
             for name, _, text in tool.parameters_of(node, cls)}
    assert len(texts) > 250
    assert not {name: text for name, text in texts.items() if refers_back(text)}


@pytest.mark.parametrize('text', [
    'The same about the y axis', "The same of the forces on virtual hands; see 'source'",
    'By how much joints come from that side', 'Speed of this last move: the slower, the better',
    'Duration of such a shift', 'Hands that hold on and stay where they are in such a shift',
    'Standard deviation of their moment, as a lever', 'Memory for these messages; others are lost',
    'Standard deviation of that delay, which is estimated', 'These are scaled', 'Its unit'])
def test_a_description_that_needs_another_one_is_found(text):
    assert refers_back(text)


def refers_back(text):
    """Return whether a description needs the one before it: its first clause has no noun yet."""
    clause = re.split('[;:,.]', text)[0]
    return bool(
        re.match('(The same|Same|Such|This|That|These|Those|Their|Its?|They) ', text)
        or re.search(r'\b([Tt]he same (of|as|about|for)|such an?|this last)\b', text)
        or re.search(r'\b(about|by|during|for|from|in|of|on|to|with) '
                     r'((that|these|those) (?!of\b)|this (?!computer|node|package|process|robot))',
                     clause)
        or re.match(r'((?!\w+s\b)\w+ )*their ', clause))


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
