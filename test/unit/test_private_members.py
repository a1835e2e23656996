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
"""Tests use what is public: how often they do not is counted, and may only become less."""

import ast

from support.sources import nodes_of, ROOT, sources


#: Public although their names begin with an underscore.
PUBLIC = {'_replace', '_asdict', '_fields', '_make', '_exit'}
#: Lower it with every private member that is no longer used; raising it needs a reason.
LIMIT = 49


def is_private(name):
    """Return whether a name, or the last part of a dotted one, is private."""
    last = name.rpartition('.')[2]
    return last.startswith('_') and not last.startswith('__') and last not in PUBLIC


def is_own(node):
    """Return whether an object is the test's own: self, cls, or super()."""
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Name) and node.id in ('self', 'cls', 'super')


def private_members(source):
    """Yield line and name of private members of other objects that a source uses."""
    for node in nodes_of(source):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names
                        if is_private(alias.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
                node.func.attr in ('setattr', 'delattr')):
            yield from ((node.lineno, argument.value) for argument in node.args[:2]
                        if isinstance(argument, ast.Constant) and is_private(str(argument.value)))


def test_private_members_of_the_code_under_test_become_fewer():
    found = [f'{path.relative_to(ROOT)}:{line}: {name}' for path in sources('test')
             for line, name in private_members(path.read_text())]
    assert len(found) <= LIMIT, '\n'.join(['use what is public, or make it public:', *found])


def test_private_members_are_recognised():
    source = ('from a import _b, c\nx._d(y.e._f)\nself._g = super()._h = z._replace(i=1)\n'
              "monkeypatch.setattr(m, '_n', 0)\nmonkeypatch.setattr('p.q._r', 1)\nw.__dict__\n")
    assert [name for _, name in sorted(private_members(source))] == [
        '_b', '_d', '_f', '_n', 'p.q._r']
