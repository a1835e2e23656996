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
Which faults of the code the tests find: change one place at a time, and run the tests near it.

    make test && make mutants ARGS='--sample 200'

A mutant changes one comparison, operator, number, condition or returned value of a function in
`core` or `nodes`. Which ones a sample has depends on their names, not on line numbers, so that two
versions of the tests are compared on the same mutants. The tests run are those of the files that
import the mutated module, directly or through others, nearest first, as many as take the time of
``--seconds`` by the times of the last `make test`.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
import hashlib
import json
import os
from pathlib import Path
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TREES = ('biped_com_ros/core', 'biped_com_ros/nodes')
COMPARISONS = {ast.Lt: '>=', ast.LtE: '>', ast.Gt: '<=', ast.GtE: '<', ast.Eq: '!=',
               ast.NotEq: '==', ast.Is: 'is not', ast.IsNot: 'is', ast.In: 'not in',
               ast.NotIn: 'in'}
OPERATORS = {ast.Add: '-', ast.Sub: '+', ast.Mult: '/', ast.Div: '*'}
SKIPPED_CALLS = re.compile(r'\b(logger|warning|info|error|debug|setting|parameter|read_only)\b')


@dataclass(frozen=True)
class Mutant:
    """
    One change of a file.

    Attributes
    ----------
    path, function
        Where it is.
    kind
        What is changed, with its number among the like of the function.
    begin, end
        Offsets in the file's bytes that `text` replaces.

    """

    path: str
    function: str
    kind: str
    begin: int
    end: int
    text: str

    @property
    def name(self) -> str:
        return f'{self.path}::{self.function}::{self.kind}'

    def applied(self, source: bytes) -> bytes:
        return source[:self.begin] + self.text.encode() + source[self.end:]


class Finder(ast.NodeVisitor):
    """Finds all mutants of a file."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self.visit(ast.parse(source))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (self._starts[node.lineno - 1] + node.col_offset,
                self._starts[node.end_lineno - 1] + node.end_col_offset)

    def _add(self, kind: str, begin: int, end: int, text: str) -> None:
        if not self._names:
            return  # of no function
        function = '.'.join(self._names)
        self._counts[function, kind] += 1
        self.found.append(Mutant(
            self.path, function, f'{kind} {self._counts[function, kind]}', begin, end, text))

    def _between(self, kind: str, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        begin, end = self._span(left)[1], self._span(right)[0]
        gap = self.source[begin:end].decode()
        if gap.count(old) == 1:
            self._add(f'{kind} {old} -> {new}', begin, end, gap.replace(old, new))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                statement.name = f'{node.name}.{statement.name}'
                self.visit(statement)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave out texts of errors."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if not SKIPPED_CALLS.search(ast.unparse(node.func)):
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators):
            old = {ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>=', ast.Eq: '==',
                   ast.NotEq: '!=', ast.Is: 'is', ast.IsNot: 'is not', ast.In: 'in',
                   ast.NotIn: 'not in'}[type(operator)]
            self._between('compare', left, right, old, COMPARISONS[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        new = OPERATORS.get(type(node.op))
        is_text = isinstance(node.left, ast.Constant | ast.JoinedStr) and not isinstance(
            getattr(node.left, 'value', ''), int | float)
        if new and not is_text:
            old = {'-': '+', '+': '-', '/': '*', '*': '/'}[new]
            self._between('operator', node.left, node.right, old, new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ('and', 'or') if isinstance(node.op, ast.And) else ('or', 'and')
        self._between('boolean', node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub | ast.Not):
            begin, end = self._span(node)[0], self._span(node.operand)[0]
            self._add('unary', begin, end, '')
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add('constant', *self._span(node), str(not value))
        elif isinstance(value, int | float):
            changed = value + 1 if isinstance(value, int) else 1.5 * value or 1.0
            self._add('constant', *self._span(node), repr(changed))

    def visit_If(self, node: ast.If) -> None:
        begin, end = self._span(node.test)
        if b'\n' not in self.source[begin:end]:
            text = self.source[begin:end].decode()
            self._add('condition', begin, end, f'not ({text})')
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._add('return', *self._span(node.value), 'None')
        self.generic_visit(node)


def mutants(root: Path) -> list[Mutant]:
    """Return all mutants of the trees."""
    found: list[Mutant] = []
    for tree in TREES:
        for path in sorted((root / tree).rglob('*.py')):
            name = str(path.relative_to(root))
            found += Finder(name, path.read_bytes()).found
    return found


def sample(found: Sequence[Mutant], number: int) -> list[Mutant]:
    """Return so many mutants, chosen by their names."""
    return sorted(found, key=lambda m: hashlib.sha1(m.name.encode()).digest())[:number]


class TestsNear:
    """Which test files import a module, nearest first."""

    def __init__(self, root: Path, times: Mapping[str, float]) -> None:
        self._times = times
        self._imports = {
            str(path.relative_to(root)): set(_imported(root, path))
            for tree in ('biped_com_ros', 'test') for path in (root / tree).rglob('*.py')}

    def of(self, path: str, seconds: float) -> list[str]:
        """Return the test files for a file of the package that take so long, at least one."""
        chosen: list[str] = []
        reached, ring, left = {path}, {path}, seconds
        while ring:
            ring = {name for name, uses in self._imports.items()
                    if uses & ring and name not in reached}
            reached |= ring
            tests = [name for name in ring if name.startswith('test/')
                     and Path(name).name.startswith('test_') and name in self._times]
            for name in sorted(tests, key=lambda name: (-_shared(name, path), self._times[name])):
                if chosen and self._times[name] > left:
                    continue
                chosen.append(name)
                left -= self._times[name]
            if left <= 0.0:
                break
        return chosen


def _shared(test: str, path: str) -> int:
    """Return how many parts of its name a test file shares with a file."""
    return len(set(re.split(r'[/._]', test)) & set(re.split(r'[/._]', path)))


def _imported(root: Path, path: Path) -> Iterator[str]:
    """Return the files that a file imports, relative to the root."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        base = node.module if node.module.startswith('biped_com_ros') else f'test.{node.module}'
        for name in (base, *(f'{base}.{alias.name}' for alias in node.names)):
            place = name.replace('.', '/')
            for file in (f'{place}.py', f'{place}/__init__.py'):
                if (root / file).is_file():
                    yield file


def times_of(file: Path) -> dict[str, float]:
    """Return the seconds of each test file, from what ``pytest --junitxml`` wrote."""
    times: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(file).iter('testcase'):
        parts = case.get('classname', '').split('.')
        if path := next(('/'.join(parts[:n]) + '.py' for n in range(len(parts), 0, -1)
                         if (ROOT / ('/'.join(parts[:n]) + '.py')).is_file()), ''):
            times[path] += float(case.get('time', 0.0))
    return times


def fate(copy: Path, mutant: Mutant, tests: Sequence[str], options: argparse.Namespace) -> str:
    """Return what becomes of a mutant in a copy of the tree: found, too slow (also), missed."""
    file = copy / mutant.path
    source = file.read_bytes()
    file.write_bytes(mutant.applied(source))
    environment = {**os.environ, 'PYTHONPATH': str(copy), 'PYTHONDONTWRITEBYTECODE': '1'}
    try:
        result = subprocess.run(
            [sys.executable, '-m', 'pytest', '-q', '-x', '-p', 'no:cacheprovider',
             *options.options, *tests], cwd=copy, env=environment,
            timeout=4.0 * options.seconds + 60.0,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return 'too slow'
    finally:
        file.write_bytes(source)
    return 'missed' if result.returncode in (0, 5) else 'found'


def main() -> int:
    """Print each mutant with whether it was found, and the share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--sample', type=int, default=200)
    parser.add_argument('--times', type=Path, default=ROOT / 'build' / 'test.xml',
                        help='of a run of tests, as `pytest --junitxml` writes it')
    parser.add_argument('--seconds', type=float, default=20.0, help='of tests for each mutant')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--out', type=Path, default=ROOT / 'build' / 'mutants.json')
    parser.add_argument('options', nargs='*', help='for pytest')
    arguments = parser.parse_args()
    near = TestsNear(ROOT, times_of(arguments.times))
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for i in range(arguments.jobs):
            copy = Path(folder) / str(i)
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(
                '.venv*', '.git', 'build', '__pycache__', '.*_cache'))
            copies.put(copy)

        def run(mutant: Mutant) -> None:
            copy = copies.get()
            tests = near.of(mutant.path, arguments.seconds)
            result = fate(copy, mutant, tests, arguments) if tests else 'missed'
            copies.put(copy)
            results[mutant.name] = result
            print(f'{len(results):4} {result:9}{mutant.name}', flush=True)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(run, sample(mutants(ROOT), arguments.sample)))
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1, sort_keys=True))
    missed = sum(result == 'missed' for result in results.values())
    print(f'found {len(results) - missed} of {len(results)}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
