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
import re

from support.sources import nodes, nodes_of, ROOT, sources


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


def names_in(found):
    """Return (line, name) of all that nodes define, also arguments and attributes."""
    for node in found:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node.lineno, getattr(node, 'id', None) or node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def names_of_people(found):
    """Return (line, name) of what people do; `order` is a sequence, unless it is called."""
    return [(line, name) for line, name in names_in(found) if is_of_people(name)] + [
        (node.lineno, node.name) for node in found
        if isinstance(node, ast.FunctionDef) and node.name == 'order']


def words_of(name):
    """Return the words of a name in lower case, also of one in CamelCase."""
    return {word.lower() for word in re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+', name)}


@functools.cache
def is_of_people(name):
    """Return whether a name says what people do."""
    return name not in LITERAL and bool(words_of(name) & PEOPLE or PHRASES.search(name))


def test_names_are_those_of_software_and_no_two_classes_share_one():
    found, classes = [], collections.defaultdict(list)
    for path in sources(*FOLDERS):
        tree, file = nodes(path, ast.AST), path.relative_to(ROOT)
        found += [f'{file}:{line}: {name}' for line, name in names_of_people(tree)]
        for node in tree:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(str(file))
    assert not found, 'use terms such as estimated, reported, received, reference, request'
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}


def test_words_are_found_in_any_kind_of_name():
    found = names_of_people(nodes_of(
        'class ToldPose:\n    def order(self): pass\n'
        'def f(heard, *, IS_SEEN=1): self._wish = felt = 2\n'))
    assert sorted(found) == [(1, 'ToldPose'), (2, 'order'), (3, 'IS_SEEN'), (3, '_wish'),
                             (3, 'felt'), (3, 'heard')]
    assert is_of_people('gives_up_soon') and not is_of_people('unseemly_order_of_the_axes')
