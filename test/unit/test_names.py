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
"""Names are terms of the field (DESIGN "Words"): software updates and publishes; people speak."""

import ast
import collections
import functools
from pathlib import Path
import re

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ('biped_com_ros', 'test', 'benchmarks', 'examples', 'tools', 'launch', 'doc')
#: What people do, in all the forms that names had.
PEOPLE = set(re.findall('[a-z]+', """
    tell tells told telling feel feels felt feeling hear hears heard hearing listen listens
    say says said saying speak speaks talk talks see sees seen saw seeing want wants wanted
    wish wishes wished taker takers desk desks lie lies lied liar lying believe believes believed
    forget forgets forgot forgotten remember remembers remembered ask asks asked asking
    answer answers answered notice notices noticed obey obeys know knows knew wake wakes mute
    questioned"""))
#: Several words that mean so together.
PHRASES = re.compile(r'(gives?|gave)_up|lets?_go')
#: Names in which such a word has its literal meaning: of geometry, of a body, of signals.
LITERAL = {'_lies_below', 'lying', '_LYING', '_is_lying', 'cross_talk', 'talk',
           'test_a_lying_robot_has_fallen', 'test_cross_talk_mixes_axes_by_its_share',
           'test_a_lying_cylinder_touches_along_a_strip_and_a_sphere_in_a_spot',
           'test_footprint_lies_between_the_feet_on_the_ground'}


def sources():
    """Return the Python files of the project, in order."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*.py'))


@functools.cache
def nodes_of(source):
    """Return the nodes of a source's syntax tree."""
    return tuple(ast.walk(ast.parse(source)))


def names_in(source):
    """Return (line, name) of all that a source defines, also arguments and attributes."""
    for node in nodes_of(source):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def words_of(name):
    """Return the words of a name in lower case, also of one in CamelCase."""
    return {word.lower() for word in re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+', name)}


@functools.cache
def is_of_people(name):
    """Return whether a name says what people do; `order` is a sequence, unless it is called."""
    return name not in LITERAL and bool(words_of(name) & PEOPLE or PHRASES.search(name))


def calls_order(source):
    """Return lines of functions that are named as a command to people."""
    return [node.lineno for node in nodes_of(source)
            if isinstance(node, ast.FunctionDef) and node.name == 'order']


def test_names_are_those_of_software():
    found = []
    for path in sources():
        source = path.read_text()
        lines = [(line, name) for line, name in names_in(source) if is_of_people(name)]
        lines += [(line, 'order') for line in calls_order(source)]
        found += [f'{path.relative_to(ROOT)}:{line}: {name}' for line, name in lines]
    assert not found, 'use terms such as estimated, reported, received, reference, request'


def test_words_are_found_in_any_kind_of_name():
    source = 'class ToldPose: pass\ndef f(heard, *, IS_SEEN=1): self._wish = felt = 2\n'
    found = [name for _, name in names_in(source) if is_of_people(name)]
    assert sorted(found) == ['IS_SEEN', 'ToldPose', '_wish', 'felt', 'heard']
    assert is_of_people('gives_up_soon') and not is_of_people('unseemly_order_of_the_axes')
    assert calls_order('class A:\n    def order(self): pass') == [2]


def test_no_two_classes_share_a_name():
    where = collections.defaultdict(list)
    for path in sources():
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in where.items() if len(found) > 1} == {}
