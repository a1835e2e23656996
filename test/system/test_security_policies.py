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
"""Policies of SROS2: as the tool writes them, as the schema asks, and as running nodes need."""

import importlib.util
import math
import sys
import time
from xml.etree import ElementTree

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
import pytest
from support.documented_interfaces import CONFIG, documented_interfaces, with_actions
from support.launched import LIMIT
from support.low_states import LowStates
from support.policies import check_schema, read_policy

SHARE = package_share()
FILES = sorted((SHARE / 'config' / 'security').glob('*.policy.xml'))
PREFIX = '/biped_com_ros/'
#: Nodes that a process has beside the one with its name.
PART_OF = {'viewer_inputs': 'viewer'}
#: Executables of nodes that a launch file gives another name.
KINDS = {'gazebo_truth': 'com_estimator'}
#: Robots of nodes for some robots only.
ROBOTS = {'lowstate_bridge': load_robot_config('g1_as_sold')}


@pytest.fixture(scope='module')
def tool():
    path = SHARE / 'tools' / 'security_policies.py'
    spec = importlib.util.spec_from_file_location('security_policies', path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_files_are_what_the_tool_writes(tool):
    texts = tool.texts()
    assert set(texts) == {file.name for file in FILES}
    for file in FILES:
        assert file.read_text() == texts[file.name], (
            f'{file} is out of date: run tools/security_policies.py')


def test_every_launch_file_with_nodes_of_ours_has_one():
    launch_files = {file.name.removesuffix('.launch.py')
                    for file in (SHARE / 'launch').glob('*.launch.py')}
    assert {file.name.removesuffix('.policy.xml') for file in FILES} == launch_files - {'view'}


def test_launch_files_of_gazebo_have_policies_of_our_nodes_only():
    for name in ('gazebo', 'gazebo_gravity'):
        policy = read_policy(SHARE / 'config' / 'security' / f'{name}.policy.xml')
        assert policy.keys() == {PREFIX + node for node in (
            'suite', 'wrench_aggregator', 'com_estimator', 'zmp_monitor', 'gravity_compensation',
            'gazebo_truth')}
        truth = policy[f'{PREFIX}gazebo_truth']['gazebo_truth']
        assert {('publishes', f'/simulator/truth/{topic}')
                for topic in ('com', 'com_velocity', 'link_coms')} <= truth
        assert not [topic for _, topic in truth if topic.startswith('/com_estimator/')]


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.name)
def test_files_are_valid(file):
    assert read_policy(file)


@pytest.mark.parametrize('text', [
    '<policy version="0.1.0"><enclaves/></policy>', '<policy version="0.2.0"><enclaves/></policy>',
    '<policy version="0.2.0"><enclaves><enclave path="/a"><profiles/></enclave></enclaves>'
    '</policy>',
    '<policy version="0.2.0"><enclaves><enclave path="/a"><profiles><profile ns="/" node="a">'
    '<topics publish="YES"><topic>/x</topic></topics></profile></profiles></enclave></enclaves>'
    '</policy>',
    '<policy version="0.2.0"><enclaves><enclave path="/a"><profiles><profile ns="/" node="a">'
    '<topics request="ALLOW"><topic>/x</topic></topics></profile></profiles></enclave></enclaves>'
    '</policy>',
    '<policy version="0.2.0"><enclaves><enclave path="/a"><profiles><profile ns="/" node="a">'
    '<topics publish="ALLOW"></topics></profile></profiles></enclave></enclaves></policy>'])
def test_the_check_of_the_schema_can_fail(text):
    with pytest.raises(AssertionError):
        check_schema(ElementTree.fromstring(text))


def test_each_name_of_the_document_is_in_exactly_the_policies_that_need_it():
    """By the tables of nodes; without remappings, which torso_controller and others have."""
    permitted, nodes = {}, set()
    for file in FILES:
        for by_node in read_policy(file).values():
            for node, names in by_node.items():
                if not node.endswith('_suite') and node not in PART_OF:
                    permitted.setdefault(node, set()).update(names)
                    nodes.add(node)
    needed, checked = {}, 0
    for node in nodes:
        always, sometimes = interfaces_of(node)
        needed[node] = {key for key in {**always, **sometimes} if '<' not in key[1]}
        if node not in ('simulator', 'torso_controller', 'viewer'):
            config = ROBOTS.get(node, CONFIG)
            others = {f'/{imu.topic}' for imu in config.imus.values() if imu != config.imu}
            needed[node] -= {(direction, name) for direction, name in needed[node]
                             if name in others}
    for node in nodes - REMAPPED.keys():
        assert needed[node] <= permitted[node], (node, needed[node] - permitted[node])
    everything = set().union(*needed.values())
    for node in nodes:
        for key in everything & permitted[node]:
            checked += 1
            assert key in needed[node] or key[1] in REMAPPED.get(node, ()) or key[1] in COMMON, (
                f'{node} may {key} without need')
    assert checked > 200


def interfaces_of(node):
    """Return what the tables say of a node."""
    return documented_interfaces(
        KINDS.get(node, node), '', ROBOTS.get(node, CONFIG), node)


#: What nodes have by remappings of launch files, and all of them beside the tables.
REMAPPED = {'gazebo_truth': (
                '/simulator/truth/com', '/simulator/truth/com_velocity',
                '/simulator/truth/link_coms', '/gazebo_truth/calibrated_description'),
            'torso_controller': ('/tendon_controller/commands', '/joint_states'),
            'gravity_compensation': ('/effort_controller/commands',
                                     '/joint_trajectory_controller/joint_trajectory')}
STATE_SERVICES = ('/controller_manager/list_controllers', '/gravity_compensation/get_state',
                  '/torso_controller/get_state')
COMMON = ('/diagnostics', '/clock', '/robot_description', '/calibrated_description',
          *STATE_SERVICES, '/gait_player/set_parameters', '/gravity_compensation/set_parameters',
          '/gravity_compensation/change_state',
          '/simulator/get_parameters', '/effort_controller/get_parameters')


def test_who_may_command_the_robot():
    """The names that move it, by whom; a new one has to be wanted."""
    commanding = {}
    for file in FILES:
        for enclave, by_node in read_policy(file).items():
            for names in by_node.values():
                for direction, name in names:
                    if direction == 'publishes' and ('controller/commands' in name
                                                     or 'controller/joint_traj' in name):
                        commanding.setdefault(name, set()).add(enclave.removeprefix(PREFIX))
    assert commanding == {
        '/position_controller/commands': {'demo'},
        '/effort_controller/commands': {'gravity_compensation'},
        '/tendon_controller/commands': {'torso_controller'},
        '/joint_trajectory_controller/joint_trajectory': {
            'com_calibrator', 'gait_player', 'gravity_compensation'}}


class Graph:
    """What the middleware knows of the nodes of a launch."""

    def __init__(self, node):
        self._node = node

    def enclaves(self):
        """Return the enclave of each node."""
        return {name: enclave for name, _, enclave
                in self._node.get_node_names_and_namespaces_with_enclaves()
                if name != 'observer' and not name.startswith('_')}

    def interfaces(self, name):
        """Return (direction, name) of a node in the namespace /."""
        node = self._node
        queries = {'publishes': node.get_publisher_names_and_types_by_node,
                   'subscribes': node.get_subscriber_names_and_types_by_node,
                   'serves': node.get_service_names_and_types_by_node,
                   'calls': node.get_client_names_and_types_by_node}
        return set(with_actions({
            (direction, topic): kinds[0] for direction, query in queries.items()
            for topic, kinds in query(name, '/')}))


#: Launch files that are run, their arguments, and the nodes of them that are looked at.
RUN = [
    ('demo', ('viewer:=true', 'port:=0'),
     {'wrench_aggregator', 'com_estimator', 'zmp_monitor', 'simulator', 'gravity_compensation',
      'gait_player', 'com_calibrator', 'demo', 'viewer'}),
    ('torso_demo', (), {'torso_controller', 'torso_teleop', 'simulator', 'com_estimator'}),
    ('simulation', ('composed:=false',),
     {'wrench_aggregator', 'com_estimator', 'zmp_monitor', 'simulator'}),
    ('gravity_simulation', (), {'gravity_compensation', 'simulator'}),
    ('payload', ('robot:=biped',), {'payload_estimator'}),
    # Without the vendor's message it plays a recording.
    ('lowstate', ('robot:=g1_as_sold', 'recording:={recording}'), {'lowstate_bridge'}),
    ('bringup', ('robot:=biped', 'gravity:=active'),
     {'wrench_aggregator', 'com_estimator', 'zmp_monitor', 'gravity_compensation',
      'torso_controller'})]


def test_every_node_is_compared_with_its_policy():
    nodes = {node for file in FILES for by_node in read_policy(file).values() for node in by_node}
    compared = set().union(*(expected for *_, expected in RUN))
    assert {node for node in nodes if not node.endswith('_suite')} - PART_OF.keys() == (
        compared | {'gazebo_truth'})  # which needs Gazebo


def recording_in(directory):
    """Write a recording of a robot of Unitree."""
    states = LowStates('unitree_hg')
    return states.write_bag(directory / 'bag', '/lowstate', [(1, states.message())])


@pytest.mark.thorough
@pytest.mark.timeout(2 * LIMIT)
@pytest.mark.parametrize('name, arguments, expected', RUN)
def test_policies_permit_what_running_nodes_have_and_little_else(
        launch, observer, tmp_path, name, arguments, expected):
    """Everything in the graph is permitted; what is permitted beside it has a condition."""
    arguments = [word.format(recording=recording_in(tmp_path)) if '{' in word else word
                 for word in arguments]
    policy = read_policy(SHARE / 'config' / 'security' / f'{name}.policy.xml')
    launched = launch(f'{name}.launch.py', *arguments)
    graph, nodes, idle, settled = Graph(observer.node), {}, None, math.inf
    end = time.monotonic() + LIMIT
    # They create more, a while after they began: what they may have and what they may not.
    while time.monotonic() < settled:
        assert time.monotonic() < end and launched.is_running, (expected, nodes, idle)
        time.sleep(0.2)
        nodes = graph.enclaves()
        if expected <= nodes.keys():
            idle = idle_permissions(graph, nodes, policy)
        if idle == {} and settled == math.inf:
            settled = time.monotonic() + 3.0
    assert not idle


def idle_permissions(graph, nodes, policy):
    """Return what nodes are permitted without reason; fail if they have what they may not."""
    idle = {}
    has = {node: graph.interfaces(node) for node in nodes}
    for node, enclave in nodes.items():
        assert enclave.startswith(PREFIX), f'{node} is in enclave {enclave}'
        forbidden = has[node] - set().union(*policy[enclave].values())
        assert not forbidden, f'{node} has, but may not: {forbidden}'
        if node not in policy[enclave] or enclave.endswith('/suite') or node in PART_OF:
            continue
        parts = [has[other] for other, owner in PART_OF.items()
                 if owner == node and other in nodes]
        names = policy[enclave][node] - has[node].union(*parts)
        if names & {('publishes', f'/{node}/effort'), ('serves', f'/{node}/freeze')}:
            continue  # gravity_compensation or torso_controller before it is configured
        _, sometimes = interfaces_of(node)
        unexplained = {key for key in names if key not in sometimes and key[1] not in (
            '/clock', '/robot_description', '/rosout', '/calibrated_description', *STATE_SERVICES,
            '/joint_trajectory_controller/joint_trajectory')}
        if unexplained:
            idle[node] = unexplained
    return idle
