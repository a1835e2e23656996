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
Write policies of SROS2 for the launch files: config/security/<launch file>.policy.xml.

What each node publishes, subscribes to, serves and calls is read from doc/interfaces.rst, which a
test compares with the running nodes; processes, namespaces and remappings from the launch files.
Nothing else is permitted. For another robot or namespace::

    make setup && source .venv/bin/activate
    python tools/security_policies.py --robot talos --namespace robot1 --output policies
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
import sys
from xml.sax.saxutils import escape, quoteattr

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / 'test')]  # the tables are read as the tests read them

from biped_com_ros.core.model.config import load_robot_config, RobotConfig  # noqa: E402, I100
from biped_com_ros.core.model.resources import PACKAGE  # noqa: E402
from biped_com_ros.launching.files import LAUNCH_FILES, LaunchFile  # noqa: E402
from biped_com_ros.launching.programs import ForeignLaunchFile, Program  # noqa: E402
from support.documented_interfaces import documented_interfaces  # noqa: E402

VERSION = '0.2.0'
#: Arguments that change which processes a launch file starts; it is planned with each of them.
VARIANTS: tuple[dict[str, str], ...] = (
    {}, {'composed': 'false'}, {'keys': 'true', 'tour': 'false'}, {'simulation': 'true'},
    {'view': 'true'}, {'gravity': 'active'}, {'respawn': 'none'})
#: Robots of launch files for some robots only, unless the given one has what they need.
OF_UNITREE, UNITREE = 'lowstate', 'g1_as_sold'
#: Services of every node, and of a lifecycle node.
PARAMETER_SERVICES = ('describe_parameters', 'get_parameter_types', 'get_parameters',
                      'get_type_description', 'list_parameters', 'set_parameters',
                      'set_parameters_atomically')
LIFECYCLE_SERVICES = ('change_state', 'get_available_states', 'get_available_transitions',
                      'get_state', 'get_transition_graph')
LIFECYCLE = ('gravity_compensation', 'torso_controller')
#: Asked for the state of a publisher from which nothing comes.
STATE_SERVICES = ('controller_manager/list_controllers',
                  *(f'{node}/get_state' for node in LIFECYCLE))
#: Nodes that read a robot's description, and their masses while they run.
WITHOUT_ROBOT = ('torso_teleop', 'suite')
WITHOUT_DIAGNOSTICS = (*WITHOUT_ROBOT, 'demo')
WITHOUT_MASSES = (*WITHOUT_ROBOT, 'com_calibrator', 'demo', 'viewer', 'lowstate_bridge')
#: Nodes that others make for their subscriptions; they have no parameters.
HELPERS = {'viewer': 'viewer_inputs'}
ALL_IMUS = ('simulator', 'torso_controller', 'viewer')
#: Rules of a profile, in their order: tag, attribute.
RULES = {'publishes': ('topic', 'publish'), 'subscribes': ('topic', 'subscribe'),
         'serves': ('service', 'reply'), 'calls': ('service', 'request'),
         'executes': ('action', 'execute')}


@dataclass
class LaunchedProcess:
    """
    A process of a launch file.

    Attributes
    ----------
    enclave
        Its name in the keystore.
    namespace
        Of its nodes, absolute.
    nodes
        Their names.
    remappings
        By name, as the launch file gives them.
    kinds
        Executable by name, of nodes that a launch file gives another name.

    """

    enclave: str
    namespace: str
    nodes: tuple[str, ...]
    remappings: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def remapped(self, name: str, node: str) -> str:
        """Return the name that a node uses for one of its own, both in full."""
        for source, target in self.remappings.items():
            if self._full(source, node) == name:
                return self._full(target, node)
        return name

    def _full(self, name: str, node: str) -> str:
        base = self.namespace.rstrip('/')
        name = name.replace('~', f'{base}/{node}', 1)
        return name if name.startswith('/') else f'{base}/{name}'


#: Permitted names by node and rule.
Permissions = dict[tuple[str, str], set[str]]


def permissions_of(process: LaunchedProcess, config: RobotConfig) -> Permissions:
    """Return what the nodes of a process may do, with full names."""
    found: Permissions = defaultdict(set)
    base = process.namespace.rstrip('/')
    other_imus = {f'{base}/{imu.topic}' for imu in config.imus.values() if imu != config.imu}
    for node in process.nodes:
        kind = process.kinds.get(node, node)
        always, sometimes = documented_interfaces(kind, base, config, node)
        for direction, name in (*always, *sometimes, *usual(kind, base, node)):
            # A name in <> is given by a parameter. Most nodes read the IMU of the base only.
            if '<' not in name and (kind in ALL_IMUS or name not in other_imus):
                found[node, direction].add(process.remapped(name, node))
    for node, helper in HELPERS.items():
        if node in process.nodes:
            found[helper, 'publishes'] |= {'/rosout', '/parameter_events'}
            found[helper, 'serves'].add(f'{base}/{helper}/get_type_description')
    if len(process.nodes) > 1:  # one more node has the subscriptions of all
        shared = f'{process.nodes[0]}_suite'
        for direction, name in plain(shared, base):
            found[shared, direction].add(process.remapped(name, shared))
    return found


def usual(kind: str, base: str, node: str) -> Iterator[tuple[str, str]]:
    """Yield direction and name of what is not in the tables, because all nodes have it."""
    yield from plain(node, base)
    if kind in LIFECYCLE:
        yield 'publishes', f'{base}/{node}/transition_event'
        yield from (('serves', f'{base}/{node}/{service}') for service in LIFECYCLE_SERVICES)
    if kind not in WITHOUT_DIAGNOSTICS:
        yield 'publishes', '/diagnostics'
    if kind not in WITHOUT_ROBOT:
        yield 'subscribes', f'{base}/robot_description'
        yield from (('calls', f'{base}/{service}') for service in STATE_SERVICES)
    if kind not in WITHOUT_MASSES:
        yield 'subscribes', f'{base}/calibrated_description'


def plain(node: str, base: str) -> Iterator[tuple[str, str]]:
    """Yield direction and name of what any node of rclpy has."""
    yield 'publishes', '/rosout'
    yield 'publishes', '/parameter_events'
    if node != 'simulator':
        yield 'subscribes', '/clock'
    yield from (('serves', f'{base}/{node}/{service}') for service in PARAMETER_SERVICES)


def processes_of(file: LaunchFile, robot: str,
                 namespace: str) -> tuple[list[LaunchedProcess], set[str]]:
    """Return the processes that a launch file can start, and executables of other packages."""
    ours: list[LaunchedProcess] = []
    foreign: set[str] = set()
    for variant in VARIANTS:
        if not variant.keys() <= set(file.takes):
            continue
        given = {'robot': robot, 'namespace': namespace} | variant
        given = {name: text for name, text in given.items() if name in file.takes}
        for program in file.plan(given):
            if isinstance(program, ForeignLaunchFile):
                continue
            if program.package != PACKAGE:
                foreign.add(program.executable)
            elif (process := process_of(program)) not in ours:
                ours.append(process)
    return ours, foreign


def process_of(program: Program) -> LaunchedProcess:
    """Return the process of a program."""
    nodes = tuple(program.parameters.get('nodes', (program.name or program.executable,)))
    kinds = {program.name: program.executable} if program.name else {}
    return LaunchedProcess(program.enclave, program.namespace or '/', nodes,
                           dict(program.remappings), kinds)


def policy(processes: Sequence[LaunchedProcess], config: RobotConfig, comment: str) -> str:
    """Return the text of a policy."""
    enclaves: dict[str, dict[str, Permissions]] = defaultdict(dict)
    for process in processes:
        known = enclaves[process.enclave].setdefault(process.namespace, defaultdict(set))
        for key, names in permissions_of(process, config).items():
            known[key] |= names
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<!-- {comment} -->',
             f'<policy version="{VERSION}">', '  <enclaves>']
    for enclave, by_namespace in sorted(enclaves.items()):
        lines += [f'    <enclave path={quoteattr(enclave)}>', '      <profiles>']
        for namespace, permissions in sorted(by_namespace.items()):
            for node in sorted({node for node, _ in permissions}):
                lines += profile(node, namespace, permissions)
        lines += ['      </profiles>', '    </enclave>']
    return '\n'.join([*lines, '  </enclaves>', '</policy>', ''])


def profile(node: str, namespace: str, permissions: Permissions) -> Iterator[str]:
    """Yield the lines of a node."""
    yield f'        <profile ns={quoteattr(namespace)} node={quoteattr(node)}>'
    for direction, (kind, attribute) in RULES.items():
        names = permissions.get((node, direction))
        if names:
            yield f'          <{kind}s {attribute}="ALLOW">'
            yield from (f'            <{kind}>{escape(name)}</{kind}>' for name in sorted(names))
            yield f'          </{kind}s>'
    yield '        </profile>'


def robot_for(name: str, robot: str) -> str:
    """Return the robot for the policy of a launch file: the given one, if it can run it."""
    needs_another = name == OF_UNITREE and load_robot_config(robot).low_state is None
    return UNITREE if needs_another else robot


def texts(robot: str = 'biped', namespace: str = '') -> dict[str, str]:
    """Return the text of the policy of every launch file, by file name."""
    found = {}
    for name, file in sorted(LAUNCH_FILES.items()):
        chosen = robot_for(name, robot)
        config = load_robot_config(chosen)
        processes, foreign = processes_of(file, chosen, namespace)
        others = f'; not of {", ".join(sorted(foreign))}' if foreign else ''
        if processes:
            found[f'{name}.policy.xml'] = policy(
                processes, config, f'Of {name}.launch.py with robot {config.name}{others}; '
                'written by tools/security_policies.py.')
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--robot', default='biped', help='name or YAML of the robot')
    parser.add_argument('--namespace', default='', help='of all nodes')
    parser.add_argument('--output', type=Path, default=ROOT / 'config' / 'security',
                        metavar='DIRECTORY', help='default: config/security')
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in texts(options.robot, options.namespace).items():
        (options.output / name).write_text(text)
        print(f'wrote {options.output / name}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
