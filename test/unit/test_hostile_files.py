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
"""Files that are made to hang, to crash or to read something else: refused at once."""

import time

from biped_com_ros.core.errors import BipedComError, ConfigurationError, RobotDescriptionError
from biped_com_ros.core.files import read_text
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.urdf import load_urdf, parse_urdf
from biped_com_ros.core.plain_xml import parse_xml
from biped_com_ros.core.plain_yaml import check_bounds, load_yaml, LOADER, MOST_NODES
from biped_com_ros.core.wrench.tare import load_offsets
from biped_com_ros.launching.programs import parameter_file
from hypothesis import given, settings, strategies as st
import pytest
import yaml

AT_ONCE = 10.0  # s, on a busy machine; what is not refused takes hours


@pytest.fixture(autouse=True)
def at_once():
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < AT_ONCE


def alias_bomb(first='x', levels=30):
    """Nine times as much per line: 9**30 values."""
    lines = [f'a0: &a0 {first}']
    lines += [f'a{i}: &a{i} [{", ".join(9 * [f"*a{i - 1}"])}]' for i in range(1, levels)]
    return '\n'.join(lines)


def merge_bomb(levels=30):
    lines = ['a0: &a0 {k: 1, l: 2}']
    lines += [f'a{i}: &a{i} {{<<: [{", ".join(9 * [f"*a{i - 1}"])}]}}' for i in range(1, levels)]
    return '\n'.join(lines)


HOSTILE_YAML = {
    'aliases': (alias_bomb(), f'stands for more than {MOST_NODES} values'),
    'merges': (merge_bomb(), 'stands for more than'),
    'aliases as keys': (alias_bomb() + '\n? *a29\n: 1', 'stands for more than'),
    'an alias in itself': ('a: &a [*a]', "an alias '\\*a' inside of what it stands for"),
    'brackets, which overflow the stack of libyaml': (200_000 * '[', 'nests more than 50'),
    'braces': (5000 * '{a: ', 'nests more than 50'),
    'indented sequences': (5000 * '- ' + 'a', 'nests more than 50'),
    'a number of a million digits': ('a: ' + 1_000_000 * '9', 'without quotes'),
    'a sexagesimal number': ('a: 1' + 400_000 * ':1', 'without quotes'),
    'a tagged one': (f'a: !!int "1{400_000 * ":1"}"', 'without quotes'),
    'a million values': ('[' + 400_000 * 'a,' + ']', 'stands for more than'),
    'more than is read': ('a' * 2_000_000, 'larger than the 1 MiB|2000000 characters'),
    'an object of Python': ('a: !!python/object/apply:os.system [true]', 'valid YAML|!!python'),
    'a module of Python': ('a: !!python/name:os.system', 'valid YAML'),
    'a date that is none': ('a: 2026-13-01', 'valid YAML'),
    'bytes that are no text': (b'\xff\xfe\x00', 'cannot be read|valid YAML'),
    'nothing closed': ('a: "', 'valid YAML'),
}


@pytest.mark.parametrize('name', HOSTILE_YAML)
@pytest.mark.parametrize('read, limit, place', [
    (load_robot_config, '1 MiB', 'hostile.yaml'),
    (lambda path: load_offsets(path, load_robot_config('three_link')), '64 MiB', ''),
    (lambda path: parameter_file(str(path), ''), '1 MiB', 'hostile.yaml')],
    ids=['robot', 'offsets', 'parameters'])
def test_files_of_yaml(tmp_path, name, read, limit, place):
    text, problem = HOSTILE_YAML[name]
    path = tmp_path / 'hostile.yaml'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError, match=problem.replace('1 MiB', limit)) as error:
        read(path)
    assert place in str(error.value)


def test_anchors_are_still_good_for_what_they_are():
    text = 'a: &a {k: [1, 2]}\nb: {<<: *a, l: 3}\nc: *a'
    assert load_yaml(text, 'x') == {
        'a': {'k': [1, 2]}, 'b': {'k': [1, 2], 'l': 3}, 'c': {'k': [1, 2]}}
    assert load_yaml('', 'x') is None
    assert load_yaml('a: ' + repr('long ' * 2000), 'x') == {'a': 'long ' * 2000}


def test_a_key_that_is_given_twice_is_an_error():
    with pytest.raises(ConfigurationError, match="x gives key 'rate' twice, .* line 3"):
        load_yaml('node:\n  rate: 1.0\n  rate: 2.0', 'x')


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-10 ** 9, 10 ** 9)
    | st.text('abc: -#&*\n', max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text('abc', min_size=1, max_size=3), inner, max_size=4), max_leaves=20)


@settings(deadline=None, max_examples=100)
@given(PLAIN)
def test_what_is_plain_is_read_as_it_is(value):
    text = yaml.safe_dump(value)
    assert load_yaml(text, 'x') == value


def expanded(node):
    """Count nodes as the naive walk does that the bounds protect."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    pairs = [n for pair in node.value for n in pair] if isinstance(
        node, yaml.MappingNode) else node.value
    return 1 + sum(map(expanded, pairs))


@pytest.mark.parametrize('levels', [1, 2, 3, 4])
def test_an_alias_counts_as_what_it_stands_for(levels, monkeypatch):
    from biped_com_ros.core import plain_yaml
    text = alias_bomb('{k: [1, 2, 3]}', levels)
    count = expanded(LOADER(text).get_single_node())
    monkeypatch.setattr(plain_yaml, 'MOST_NODES', count)
    check_bounds(text, 'x')
    monkeypatch.setattr(plain_yaml, 'MOST_NODES', count - 1)
    with pytest.raises(ConfigurationError, match='stands for more'):
        check_bounds(text, 'x')


LAUGHS = '<!DOCTYPE lolz [<!ENTITY a0 "lol">' + ''.join(
    f'<!ENTITY a{i} "{9 * f"&a{i - 1};"}">' for i in range(1, 30)) + ']>'
ROBOT = '<robot name="r"><link name="base"/>{}</robot>'
HOSTILE_XML = {
    'laughs': (LAUGHS + ROBOT.format('<link name="&a29;"/>'), '<!DOCTYPE>'),
    'another file': ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
                     + ROBOT.format('<link name="&x;"/>'), '<!DOCTYPE>'),
    'the network': ('<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">' + ROBOT.format(''),
                    '<!DOCTYPE>'),
    'parameter entities': ('<!DOCTYPE r [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]>'
                           + ROBOT.format(''), '<!DOCTYPE>'),
    'an entity that is not declared': (ROBOT.format('<link name="&x;"/>'), 'not well-formed'),
    'depth': (ROBOT.format(100_000 * '<a>' + 100_000 * '</a>'), 'nests more than 200 levels'),
    'nothing': ('', 'not well-formed'),
    'a NUL': (ROBOT.format('\0'), 'not well-formed'),
    'half a character': (ROBOT.format('\ud800'), 'not well-formed'),
}


@pytest.mark.parametrize('name', HOSTILE_XML)
def test_descriptions_of_robots(name):
    text, problem = HOSTILE_XML[name]
    with pytest.raises(RobotDescriptionError, match=problem):
        parse_urdf(text)


def test_descriptions_of_any_size_for_the_simulator_and_by_xacro(tmp_path):
    with pytest.raises(RobotDescriptionError, match='the largest that is read'):
        parse_xml(' ' * (32 * 1024 ** 2 + 1), 'the URDF')
    path = tmp_path / 'r.urdf.xacro'
    path.write_text(HOSTILE_XML['laughs'][0])
    with pytest.raises(RobotDescriptionError, match='r.urdf.xacro.*<!DOCTYPE>'):
        load_urdf(load_robot_config('biped'), str(path))
    pytest.importorskip('mujoco')
    from biped_com_ros.sim import description
    with pytest.raises(RobotDescriptionError, match='<!DOCTYPE>'):
        description.parse(HOSTILE_XML['laughs'][0])


@pytest.mark.parametrize('path', ['/dev/zero', '/etc', '/nowhere', 'a\0b'])
def test_what_is_no_file_or_has_no_end(path):
    from pathlib import Path
    with pytest.raises(BipedComError, match='cannot be read|larger than'):
        read_text(Path(path), 'robot file', 1024 ** 2)
