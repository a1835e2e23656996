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
"""Parameter values: the types launch gives them, through XML and into the YAML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.errors import LaunchFileError
from biped_com_ros.launch_runner.parameters import parameter, parameter_file, ParameterFiles
from biped_com_ros.launch_runner.schema import check
from biped_com_ros.launch_runner.xml_reader import Element, read_xml
import pytest
import yaml

CONTEXT = Context({'number': '3', 'word': 'talos', 'empty': '', 'list': '[1, 2.5]'}, {})


def element(tmp_path: Path, xml: str) -> Element:
    file = tmp_path / 'p.launch.xml'
    file.write_text(f'<launch>\n<node pkg="p" exec="e">\n{xml}\n</node></launch>')
    root = read_xml(file)
    check(root)
    return root.children[0].children[0]


@pytest.mark.parametrize(('attributes', 'value'), [
    ('value="1"', 1),
    ('value="1.0"', 1.0),
    ('value="-2.5e-3"', -2.5e-3),
    ('value="true"', True),
    ('value="asd"', 'asd'),
    ('value="\'1\'"', '1'),
    ('value="\'asd\'"', 'asd'),
    (r'value="\'asd\'"', "'asd'"),
    ('value="$(var number)"', 3),
    ('value="$(var number).5"', 3.5),
    ('value="$(var word)"', 'talos'),
    ('value="$(var list)"', [1.0, 2.5]),
    ('value="[1, 2]"', [1, 2]),
    ('value="[a, b]"', ['a', 'b']),
    ('value="1" type="str"', '1'),
    ('value="[1, 2]" type="yaml"', [1, 2]),
    ('value="$(var number)" type="str"', '3'),
    ('value="$(var empty)" type="str"', ''),
    ('value="1" type="float"', 1.0),
    ('value="$(var number)" type="float"', 3.0),
    ('value="[1, 2]" type="list_of_float"', [1.0, 2.0]),
    ('value="1,2,3" value-sep=","', [1, 2, 3]),
    ('value="asd, bsd" value-sep=", "', ['asd', 'bsd']),
    ('value="\'1\';\'2\'" value-sep=";"', ['1', '2']),
    ('value="$(var number);4" value-sep=";"', [3, 4]),
    ('value="1;2" value-sep=";" type="list_of_str"', ['1', '2']),
])
def test_types_values_as_launch_does(tmp_path: Path, attributes: str, value: Any) -> None:
    name, result = parameter(element(tmp_path, f'<param name="x" {attributes}/>'), CONTEXT)
    assert (name, result) == ('x', value)
    assert type(result) is type(value)
    if isinstance(value, list):
        assert [type(item) for item in result] == [type(item) for item in value]


def test_the_name_may_be_a_substitution(tmp_path: Path) -> None:
    xml = '<param name="group$(var number).a" value="1"/>'
    assert parameter(element(tmp_path, xml), CONTEXT) == ('group3.a', 1)


def test_parameters_nest(tmp_path: Path) -> None:
    xml = ('<param name="group$(var number)"><param name="a" value="1"/>'
           '<param name="deep"><param name="b" value="x"/></param></param>')
    assert parameter(element(tmp_path, xml), CONTEXT) == (
        'group3', {'a': 1, 'deep': {'b': 'x'}})


def test_a_nest_has_no_value_of_its_own(tmp_path: Path) -> None:
    for attribute in ('value="1"', 'type="int"'):
        with pytest.raises(LaunchFileError, match="'value'"):
            element(tmp_path, f'<param name="a" {attribute}><param name="b" value="1"/></param>')


@pytest.mark.parametrize(('attributes', 'message'), [
    ('value=""', "'' is not of type any parameter.*type=\"str\""),
    ('value="$(var empty)"', 'type="str"'),
    ('value="{a: 1}"', 'not of type'),
    ('value="[]"', 'not a list of one type'),
    ('value="[1, a]"', 'not a list of one type'),
    ('value="[[1], [2]]"', 'not nested'),
    ('value="asd" type="int"', "'asd' is not of type int"),
    ('value="1.5" type="int"', 'not of type int'),
    ('value="1" type="bool"', 'not of type bool'),
    ('value="1" type="double"', "unknown value of type 'double'.*valid: bool, float"),
    ('value="1" if="true"', "unknown attribute of <param> 'if'.*valid:.*value"),
    ('value="1" from="x"', "either 'name' or 'from'"),
    ('value="1" allow_substs="true"', "'allow_substs' needs 'from'"),
    ('', "needs either 'value' or nested"),
])
def test_refuses_with_the_place(tmp_path: Path, attributes: str, message: str) -> None:
    with pytest.raises(LaunchFileError, match=message) as error:
        parameter(element(tmp_path, f'<param name="x" {attributes}/>'), CONTEXT)
    assert 'p.launch.xml:3: ' in str(error.value)


def test_written_values_come_back_from_yaml(tmp_path: Path) -> None:
    values = {'s': '1', 't': 'on', 'f': 1e-5, 'g': 1e22, 'i': 3, 'b': False, 'l': ['1', 'x'],
              'n': {'m': 0.1}, 'e': ''}
    file = ParameterFiles(tmp_path).write(values, '/ns/node')
    assert yaml.safe_load(file.read_text()) == {'/ns/node': {'ros__parameters': values}}
    # rcl's parser takes '1e22' for a string: a float needs its point.
    assert '1.0e+22' in file.read_text()


def test_a_file_is_handed_over_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / 'p.yaml'
    file.write_text('/**:\n  ros__parameters: {robot: $(var word)}\n')
    from_file = element(tmp_path, f'<param from="{file}"/>')
    assert parameter_file(from_file, CONTEXT, ParameterFiles(tmp_path)) == file


def test_substitutions_in_a_file_are_performed_on_request(tmp_path: Path) -> None:
    file = tmp_path / 'p.yaml'
    file.write_text('# about $(no such thing)\n/**/$(var word):\n  ros__parameters:\n'
                    '    robot: $(var word)\n    n: $(var number)\n    l: [$(var number), 4]\n')
    from_file = element(tmp_path, f'<param from="{file}" allow_substs="true"/>')
    result = parameter_file(from_file, CONTEXT, ParameterFiles(tmp_path))
    assert yaml.safe_load(result.read_text()) == {
        '/**/talos': {'ros__parameters': {'robot': 'talos', 'n': 3, 'l': [3, 4]}}}


@pytest.mark.parametrize('xml', [
    '<param from="a" value="1"/>', '<param from="a"><param name="b" value="1"/></param>'])
def test_a_file_goes_with_nothing_else(tmp_path: Path, xml: str) -> None:
    with pytest.raises(LaunchFileError, match="'name' or 'from'|'allow_substs' and nothing else"):
        element(tmp_path, xml)


@pytest.mark.parametrize(('text', 'message'), [
    (None, 'No such file'),
    ('a: [', 'is not valid YAML'),
    ('robot: biped', 'ros__parameters'),
    ('', 'ros__parameters'),
    ('/**:\n  ros__parameters: 3', 'ros__parameters'),
])
def test_a_bad_file_is_named(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / 'p.yaml'
    if text is not None:
        file.write_text(text)
    with pytest.raises(LaunchFileError, match=message) as error:
        parameter_file(element(tmp_path, f'<param from="{file}"/>'), CONTEXT,
                       ParameterFiles(tmp_path))
    assert 'p.launch.xml:3: ' in str(error.value)
    assert str(file) in str(error.value)
