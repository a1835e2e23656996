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
"""Which part of the package may import which, where things are defined, and the tests' size."""

from __future__ import annotations

import ast
import collections
import functools
import os
import re
import subprocess
import sys

import pytest
from support.sources import imports_in, modules, nodes, nodes_of, PACKAGE, ROOT, sources

ROS = ('rclpy', 'tf2_ros', 'ament_', 'launch', 'rosidl_')
COMPAT = 'biped_com_ros/ros/fast/compat.py'
#: Beside it the tests that take private parts away, and the one that sets the clocks of nodes.
MAY_USE_PRIVATE_PARTS = (COMPAT, 'test/ros/fast/test_compat.py', 'test/support/driven_time.py')
# What rclpy and rosidl do not promise: modules, and attributes of what they define.
PRIVATE_MODULES = ('rclpy.experimental', 'rclpy.impl', 'rclpy.time_source', 'rosidl_parser',
                   'rosidl_generator_py', 'rosidl_pycommon')
PRIVATE_ATTRIBUTES = {
    'handle', 'publish_raw', 'take_message', 'get_now', 'SLOT_TYPES', '_SLOT_TYPES',
    '_TYPE_SUPPORT', '_parameter_overrides', '_parameters', '_descriptors',
    '_fields_and_field_types', '__import_type_support__', '_cb_iter', '_state_machine'}
#: Modules of rclpy that Lyrical has no more, and those that Jazzy has not yet.
NOT_EVERYWHERE = ('rclpy.destroyable', 'rclpy.qos_event', 'rclpy.topic_endpoint_info',
                  'rclpy.endpoint_info')
#: What an expression of an object of rclpy ends with.
RCLPY_OBJECT = re.compile(
    r'(^|[._])(node|executor|publisher|subscription|timer|service|client|context|clock)s?'
    r'(\[.*\])?$')


def imports_of(part):
    """Return (file:line, module) of every import in a part of the package, also of late ones."""
    found = [(f'{path.relative_to(PACKAGE)}:{line}', name)
             for path in sources(f'biped_com_ros/{part}')
             for line, name in imports_in(nodes(path, ast.Import, ast.ImportFrom))]
    assert found, f'{part}/ imports nothing at all'
    return found


#: Gives what is to be started to ROS 2's launch.
ADAPTER = 'launching/ros2_launch.py'


def is_ros(module):
    top = module.split('.')[0]
    return top.startswith(ROS) or top.endswith(('_msgs', '_srvs', '_interfaces'))


@pytest.mark.parametrize('part', ['core', 'papers', 'sim', 'gazebo', 'viz', 'launching',
                                  'offline'])
def test_no_ros_outside_of_ros_and_nodes_and_no_simulator_in_the_mathematics(part):
    assert [found for found in imports_of(part) if not found[0].startswith(ADAPTER) and (
        is_ros(found[1]) or (part == 'core' and found[1].startswith('mujoco')))] == []


def test_ros_is_recognised():
    assert {'rclpy.node.Node', 'sensor_msgs.msg.JointState', 'std_srvs.srv.Trigger'} <= {
        module for _, module in imports_of('ros') + imports_of('nodes') if is_ros(module)}


def private_parts_of(text):
    """Return what a file uses that rclpy or rosidl do not promise, as (line, name)."""
    tree = nodes_of(text)
    imports = imports_in(tree)
    found = [(line, name) for line, name in imports
             if name.startswith(PRIVATE_MODULES) or (name.split('.')[0] == 'rclpy' and any(
                 part.startswith('_') for part in name.split('.')))]
    imports_rclpy = any(name.startswith('rclpy') for _, name in imports)
    called = {node.func for node in tree if isinstance(node, ast.Call)}
    for node in tree:
        if isinstance(node, ast.Attribute) and is_private(node, node in called, imports_rclpy):
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.Constant) and node.value in PRIVATE_ATTRIBUTES - {'handle'}:
            found.append((node.lineno, node.value))  # as for getattr
    return found


@functools.cache
def own_private_names():
    """Return the private names that the package itself gives to attributes and in modules."""
    return {getattr(node, 'attr', getattr(node, 'id', getattr(node, 'name', '')))
            for path in modules().values()
            for node in nodes(path, ast.Attribute, ast.Name, ast.FunctionDef)
            if isinstance(node, ast.FunctionDef) or isinstance(node.ctx, ast.Store)}


def is_private(node, is_called, imports_rclpy):
    """Return whether an attribute is one that rclpy or rosidl do not promise."""
    if not node.attr.startswith('_') and node.attr not in PRIVATE_ATTRIBUTES | {'callback'}:
        return False
    owner = ast.unparse(node.value)
    is_of_rclpy = RCLPY_OBJECT.search(owner) is not None
    if node.attr in PRIVATE_ATTRIBUTES:
        # No handle of rclpy is called, unlike event handlers of `launch`. A node's own private
        # attributes are those of rclpy, too.
        is_own = owner in ('self', 'cls') and not (imports_rclpy and node.attr.startswith('_'))
        return not (is_own or (node.attr == 'handle' and is_called))
    if node.attr == 'callback':  # rclpy calls it, and does not document it; an Input's is ours
        return is_of_rclpy or (isinstance(node.ctx, ast.Store) and not owner.endswith(
            ('self', 'source')))
    return is_of_rclpy and node.attr.startswith('_') and not node.attr.startswith(
        '__') and node.attr not in own_private_names()


def test_one_file_only_touches_private_parts_of_ros():
    found = [f'{path.relative_to(ROOT)}:{line}: {name}' for path in sources(
        *(f'biped_com_ros/{part}' for part in ('ros', 'nodes', 'demo', 'offline',
                                               'launching')),
        'benchmarks', 'examples', 'test/faults', 'test/realtime', 'test/ros', 'test/support',
        'test/system',
        'tools') if str(path.relative_to(ROOT)) not in MAY_USE_PRIVATE_PARTS
        for line, name in private_parts_of(path.read_text())]
    assert not found, f'use public parts, or put it into {COMPAT}:\n' + '\n'.join(found)


def test_every_supported_rclpy_has_what_is_imported():
    found = [f'{path.relative_to(ROOT)}:{line}: {name}' for path in sources(
        'biped_com_ros', 'benchmarks', 'doc', 'examples', 'launch', 'test', 'tools')
        for line, name in imports_in(nodes(path, ast.Import, ast.ImportFrom))
        if name.startswith(NOT_EVERYWHERE)]
    assert found == []


def test_time_comes_from_one_module():
    """So a test drives it; what ends a process and draws in a thread of its own may not wait."""
    found = {str(path.relative_to(ROOT / 'biped_com_ros')) for path in sources(
        'biped_com_ros/ros', 'biped_com_ros/nodes', 'biped_com_ros/demo')
        if re.search(r'time\.(monotonic|perf_counter|time)(_ns)?\(', path.read_text())}
    assert found == {'ros/node/clock.py', 'ros/node/executor.py', 'nodes/viewer/node.py',
                     'nodes/viewer/rolling_recording.py'}


def test_private_parts_are_found():
    assert len(private_parts_of((ROOT / COMPAT).read_text())) == 5
    assert sorted(name for _, name in private_parts_of("""
from rclpy.experimental import EventsExecutor
import rosidl_parser.definition
from rclpy import _rclpy_pybind11
def function(self, node):
    self.handle = node.handle
    handler.handle(event)
    node.timer.callback = self.callback = 1
    call(self.subscriptions[0].callback, self._parameter_overrides, node._guards)
    executor._sigint_gc, publisher._Publisher__publisher, self._own, other._own
    return getattr(node, '_parameter_overrides', None)
""")) == sorted([
        'rclpy.experimental.EventsExecutor', 'rosidl_parser.definition', 'rclpy._rclpy_pybind11',
        'handle', 'callback', '_parameter_overrides', 'callback', '_parameter_overrides',
        '_guards', '_sigint_gc', '_Publisher__publisher'])


#: Which parts of the package each may import, as doc/architecture.rst draws it.
MAY_IMPORT = {
    'nodes': {'demo', 'sim', 'viz', 'ros', 'core', 'interrupts'},
    'demo': {'ros', 'core'},
    'gazebo': {'sim', 'core', 'interrupts'},
    'launching': {'core', 'demo', 'gazebo', 'viz', 'interrupts'},
    'offline': {'core', 'interrupts'},
    'ros': {'core'}, 'viz': {'core'}, 'sim': {'core'}, 'papers': {'core'},
    'interrupts': {'core'}, 'core': set(), '_moved': set()}


def test_parts_import_what_is_drawn():
    found = collections.defaultdict(set)
    for module, path in modules().items():
        part = module.split('.')[1] if '.' in module else ''
        found[part] |= {name.split('.')[1] for _, name in imports_in(nodes(path, ast.AST))
                        if name.startswith('biped_com_ros.')} - {part}
    del found['']
    assert dict(found) == MAY_IMPORT  # nor is drawn what is not there


def test_the_simulator_shares_no_mathematics_with_what_it_judges():
    shared = ('biped_com_ros.core.model.config.', 'biped_com_ros.core.errors.',
              'biped_com_ros.core.plain_xml.', 'biped_com_ros.core.settings.')
    assert [found for found in imports_of('sim') if found[1].startswith(
        ('pinocchio', 'biped_com_ros.core')) and not found[1].startswith(shared)] == []


def circles_of(graph):
    """Return the sets of nodes that can reach each other, as sorted tuples."""
    reached = {}
    for start in graph:
        pending, reached[start] = list(graph[start]), set()
        while pending:
            node = pending.pop()
            if node not in reached[start]:
                reached[start].add(node)
                pending += graph.get(node, ())
    return {tuple(sorted({node, *(other for other in reached[node] if node in reached[other])}))
            for node in graph if node in reached[node]}


def import_graph():
    """Return the modules of the package that each one imports, anywhere in its text."""
    paths, graph = modules(), collections.defaultdict(set)
    for module, path in paths.items():
        for _, name in imports_in(nodes(path, ast.Import, ast.ImportFrom)):
            while name and name not in paths:  # `package.module.function` imports its module
                name = name.rpartition('.')[0]
            graph[module] |= {name} - {'', module}
    return graph


def test_no_imports_run_in_a_circle():
    """Also counts what is imported for type checking or inside of functions."""
    graph, parts = import_graph(), collections.defaultdict(set)
    assert circles_of(graph) == set(), 'move what two modules need of each other to a third'
    for module in [name for name in graph if name.startswith('biped_com_ros.core')]:
        part, *others = ('.'.join(name.split('.')[:3]) for name in (module, *graph[module]))
        parts[part] |= {*others} - {part}
    assert circles_of(parts) == set()
    assert len(parts) > 10


def test_circles_are_found():
    assert circles_of({'a': {'b', 'c'}, 'b': {'a'}, 'c': {'d'}, 'd': set()}) == {('a', 'b')}


@pytest.mark.parametrize(('given', 'threads'), [({}, 1), ({'OPENBLAS_NUM_THREADS': '3'}, 3)])
def test_executables_use_one_blas_thread_unless_configured_otherwise(given, threads):
    environment = {name: value for name, value in os.environ.items()
                   if name != 'OPENBLAS_NUM_THREADS'}
    used = subprocess.run(
        [sys.executable, '-c', 'import os, biped_com_ros.nodes, numpy;'
         'print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task")))'],
        env={**environment, **given}, cwd=PACKAGE.parent, text=True, stdout=subprocess.PIPE,
        check=True).stdout.split()
    assert int(used[0]) == threads
    assert int(used[1]) <= min(threads, os.cpu_count())


@pytest.mark.parametrize(('number', 'places'), [
    (9.81, {'core/constants.py', 'sim/description.py'}),  # the simulator is an oracle of its own
    (1_000_000_000, {'core/constants.py'})])
def test_each_constant_is_defined_once(number, places):
    assert {str(path.relative_to(PACKAGE)) for path in modules().values()
            for node in nodes(path, ast.Constant)
            if type(node.value) is type(number) and node.value == number} == places


WRENCHES = 'core/geometry/wrench.py'


def is_centre_of_pressure(parts):
    """Return whether expressions are, in this order, like ``-my / fz, ..., mx / fz``."""
    quotients = [part for part in parts
                 if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div)]
    return any(isinstance(first.left, ast.UnaryOp) and isinstance(first.left.op, ast.USub)
               and ast.dump(first.right) == ast.dump(second.right)
               for i, first in enumerate(quotients) for second in quotients[i + 1:])


def wrench_formulas_of(found):
    """Return the lines in which nodes compute what `core/geometry/wrench.py` does."""
    return sorted({node.lineno for node in found if is_formula_of_wrenches(node)})


def is_formula_of_wrenches(node):
    if isinstance(node, ast.Assign) and len(node.targets) == 2 and all(
            isinstance(target, ast.Subscript) for target in node.targets):
        # What is written to two blocks on the diagonal of an adjoint.
        return ':3, :3]' in ast.unparse(node) and '3:, 3:]' in ast.unparse(node)
    if isinstance(node, ast.Attribute):
        return node.attr == 'skew' and ast.unparse(node) == 'pin.skew'
    parts = getattr(node, 'elts', None) or getattr(node, 'args', None)
    return isinstance(parts, list) and is_centre_of_pressure(parts)


def test_one_centre_of_pressure_one_adjoint_and_one_skew_matrix():
    """The simulator is an oracle of its own; normals of edges look like centres of pressure."""
    found = {f'{path.relative_to(PACKAGE)}:{line}' for path in modules().values()
             if path.relative_to(PACKAGE).parts[0] != 'sim' and path.name != 'polygon.py'
             for line in wrench_formulas_of(nodes(path, ast.AST))}
    assert found and {place.split(':')[0] for place in found} == {WRENCHES}, (
        f'use cop_on_sole, centre_of_pressure, wrench_adjoint and skew of {WRENCHES}: {found}')


def test_formulas_of_wrenches_are_found():
    assert wrench_formulas_of(nodes_of("""
x, y = -my / fz, mx / fz
cops = [(-w[4] / w[2], w[3] / w[2]) for w in wrenches]
line = ComLine(-my / fz, fx / fz, mx / fz, fy / fz)
blocks[:, :3, :3] = blocks[:, 3:, 3:] = axes
jacobian -= pin.skew(p) @ jacobian
x, y = -my / fz, mx / fx
x, y = my / fz, mx / fz
""")) == [2, 3, 4, 5, 6]


def test_one_longest_time_step():
    """Private constants of other meanings have names that say what is limited."""
    found = {(node.id.strip('_').removesuffix('_NS'), path.stem)
             for path in sources('biped_com_ros/core') for node in nodes(path, ast.Name)
             if isinstance(node.ctx, ast.Store)}
    assert {place for place in found if place[0] in ('LONGEST_STEP', 'MAX_STEP', 'STEP_CAP')} == {
        ('LONGEST_STEP', 'constants'), ('STEP_CAP', 'constants')}


def test_every_package_describes_itself():
    texts = [ast.get_docstring(ast.parse(path.read_text()))
             for path in PACKAGE.rglob('__init__.py')]
    assert all(texts) and len(set(texts)) == len(texts) > 25


def test_settings_are_built_by_keyword():
    """Parameters of nodes are not built in code, apart from their defaults."""
    endings = ('Settings', 'Options', 'Limits', 'Thresholds')
    found = {node.name: ' '.join(map(ast.unparse, node.decorator_list))
             for path in modules().values() for node in nodes(path, ast.ClassDef)
             if node.name.endswith(endings)}
    assert len(found) > 20
    assert not [name for name, decorators in found.items() if 'kw_only=True' not in decorators]


def test_every_node_corrects_joint_positions_and_imus():
    """Whoever subscribes to joints of the model or to an IMU passes the known errors on."""
    needed = {'JointStateInput': ('offsets=', 'corrections_of('), 'ImuInput': ('tilt=',)}
    calls = [(f'{module}:{node.lineno}', needed[node.func.id], ast.unparse(node))
             for module, path in modules().items() for node in nodes(path, ast.Call)
             if getattr(node.func, 'id', '') in needed
             and ast.unparse(node.args[1]) not in ('tendons', 'feet')]  # of tendons and contacts
    assert len(calls) > 10
    assert not [place for place, keywords, call in calls
                if not any(keyword in call for keyword in keywords)]


def test_tests_import_no_benchmarks_and_no_other_test_and_are_short():
    own = {path.name for path in (ROOT / 'test').iterdir() if path.is_dir()} - {'support'}
    found, long = [], []
    for path in sources('test'):
        text, name = path.read_text(), path.relative_to(ROOT)
        found += [f'{name}:{line}: {module}' for line, module in imports_in(nodes_of(text))
                  if module.split('.')[0] in {*own, 'test', 'benchmarks'}]
        long += [name] if len(text.splitlines()) >= 500 else []
    assert not found, 'what several tests need belongs to test/support'
    assert not long
