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

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'biped_com_ros'


def sources(*folders):
    """Return the Python files in some folders of the project, in order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob('*.py'))


def modules():
    """Return the path of every module of the package by its dotted name."""
    return {'.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__'): path
            for path in sources('biped_com_ros')}


def nodes(path, *kinds):
    """Return the nodes of a file's syntax tree that are of some kinds; the package's are kept."""
    found = _kept_nodes(path) if path.is_relative_to(PACKAGE) else nodes_of(path.read_text())
    return [node for node in found if isinstance(node, kinds)]


def nodes_of(text):
    """Return all nodes of a text's syntax tree."""
    return list(ast.walk(ast.parse(text)))


@functools.cache
def _kept_nodes(path):
    return nodes_of(path.read_text())


def imports_in(found):
    """Return (line, dotted name) of every import among nodes, also of late ones."""
    return [(node.lineno, f'{node.module}.{alias.name}' if isinstance(node, ast.ImportFrom)
             else alias.name)
            for node in found if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names]
