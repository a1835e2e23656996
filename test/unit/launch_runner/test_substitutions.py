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
"""Substitutions: the quoting of ROS 2 launch, every function, every refusal with its place."""

from __future__ import annotations

from pathlib import Path
import sys

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.launch_runner.context import Context, join_namespace
from biped_com_ros.launch_runner.errors import LaunchFileError
from biped_com_ros.launch_runner.substitutions import Call, parse, perform
from hypothesis import given
from hypothesis import strategies as st
import pytest

WHERE = '/launch/dir/some.launch.xml:7'


@pytest.fixture
def context() -> Context:
    return Context({'robot': 'talos', 'which': 'robot', 'empty': ''}, {'HOME': '/home/me'})


@pytest.mark.parametrize(('text', 'result'), [
    ('plain', 'plain'),
    ('', ''),
    ('$(var robot)', 'talos'),
    ('a $(var robot) b $(var robot)', 'a talos b talos'),
    ('$(var $(var which))', 'talos'),
    ('[$(var empty)]', '[]'),
    ('costs 5$ (or so)', 'costs 5$ (or so)'),
    ("it's \"quoted\"", "it's \"quoted\""),
    (r'\$(var robot) \\ \'', "$(var robot) \\ '"),
    ('$(env HOME)/x', '/home/me/x'),
    ('$(env NOT_SET default)', 'default'),
    ("$(env NOT_SET 'two words')", 'two words'),
    ('$(env NOT_SET $(var robot))', 'talos'),
    ("$(env NOT_SET 'the $(var robot)')", 'the talos'),
    ('$(dirname)/x', '/launch/dir/x'),
    (r"$(eval '\'$(var robot)\' == \'talos\'')", 'True'),
    ("$(eval \"'$(var robot)' == 'biped'\")", 'False'),
    ('$(filename)', '/launch/dir/some.launch.xml'),
    ("$(eval '2 + 3')", '5'),
    ('$(not true)', 'false'),
    ('$(not False)', 'true'),
    ('$(and true $(not false))', 'true'),
    ('$(and true false)', 'false'),
    ('$(or false True)', 'true'),
    ('$(or false false)', 'false'),
])
def test_performs(context: Context, text: str, result: str) -> None:
    assert perform(text, context, WHERE) == result


def test_finds_our_own_package(context: Context) -> None:
    assert perform('$(find-pkg-share biped_com_ros)', context, WHERE) == str(package_share())


def test_finds_packages_by_the_variables_of_the_launch_file(
        context: Context, tmp_path: Path) -> None:
    (tmp_path / 'share' / 'theirs').mkdir(parents=True)
    with pytest.raises(LaunchFileError, match='theirs'):
        perform('$(find-pkg-share theirs)', context, WHERE)
    context.environment['AMENT_PREFIX_PATH'] = str(tmp_path)
    assert perform('$(find-pkg-share theirs)', context, WHERE) == str(tmp_path / 'share/theirs')


def test_a_command_that_is_not_run_may_be_part_of_an_expression(context: Context) -> None:
    """As in gazebo.launch.xml, which --dry-run refused."""
    context.runs_commands = False
    context.configurations['files'] = perform(r"$(command 'ls \'a b\'')", context, WHERE)
    assert context.configurations['files'] == '$(command ls a b)'
    text = '$(eval "\'$(var files)/file\' == \'other\'")'
    assert perform(text, context, WHERE) == 'False'


def test_takes_what_a_command_prints(context: Context) -> None:
    context.environment['X'] = 'from launch'
    code = r"import os, sys; print(\'<\' + os.environ[\'X\'] + sys.argv[1] + \'>\', end=\'\')"
    text = rf"$(command '{sys.executable} -c \"{code}\" $(var robot)')"
    assert perform(text, context, WHERE) == '<from launchtalos>'


@pytest.mark.parametrize(('code', 'message'), [
    ('sys.exit(3)', 'failed with exit code 3'), ('sys.exit(str(4))', 'exit code 1: 4'),
    ('sys.stderr.write(str(5))', 'exit code 0: 5')])
def test_a_failing_command_is_an_error(context: Context, code: str, message: str) -> None:
    with pytest.raises(LaunchFileError, match=message):
        perform(rf"$(command '{sys.executable} -c \"import sys; {code}\"')", context, WHERE)


def test_stderr_of_a_command_may_be_ignored(
        context: Context, capfd: pytest.CaptureFixture[str]) -> None:
    text = rf"$(command '{sys.executable} -c \"import sys; sys.stderr.write(str(5))\"' '%s')"
    assert perform(text % 'ignore', context, WHERE) == ''
    assert capfd.readouterr().err == ''
    assert perform(text % 'warn', context, WHERE) == ''
    assert capfd.readouterr().err.endswith(': 5\n')
    with pytest.raises(LaunchFileError, match=r"'what'.*valid: fail, ignore, warn"):
        perform(text % 'what', context, WHERE)


def test_keeps_the_structure_of_nested_calls() -> None:
    assert parse("a$(env X '$(var y) z')", WHERE) == (
        'a', Call('env', (('X',), (Call('var', (('y',),)), ' z'))))


@pytest.mark.parametrize(('text', 'message'), [
    ('$(varr robot)', "unknown substitution 'varr'; did you mean 'var'"),
    ('$(anon name)', "unknown substitution 'anon'.*valid: and, command, dirname, env"),
    ('$(var)', r'takes 1 argument\(s\), 0 given'),
    ('$(var a b)', r'takes 1 argument\(s\), 2 given'),
    ('ab$(var robot', 'character 3: the closing parenthesis is missing'),
    ("$(eval '1", "the closing ' is missing"),
    ('$(env  HOME)', 'exactly one space'),
    ("$(eval '1' )", 'an argument is empty'),
    ("$(eval '1'x)", 'closing parenthesis is missing'),
    ("$(env A b'c')", 'put the whole argument in quotes'),
    ('$(env A (b))', 'put the whole argument in quotes'),
])
def test_refuses_malformed_ones_with_their_place(text: str, message: str) -> None:
    with pytest.raises(LaunchFileError, match=message) as error:
        parse(text, WHERE)
    assert str(error.value).startswith(WHERE)


@pytest.mark.parametrize(('text', 'message'), [
    ('$(var robott)', "unknown launch variable 'robott'.*did you mean 'robot'.*valid: empty, rob"),
    ('$(env NOT_SET)', "'NOT_SET' is not set"),
    ('$(find-pkg-share no_such_pkg)', "'no_such_pkg' was not found"),
    ('$(not maybe)', "'maybe' is not a truth value"),
    ('$(and true 1)', r"'1' is not a truth value \(valid: true, false"),
    ("$(eval 'open(1)')", 'not allowed'),
])
def test_names_what_cannot_be_performed(context: Context, text: str, message: str) -> None:
    with pytest.raises(LaunchFileError, match=message) as error:
        perform(text, context, WHERE)
    assert str(error.value).startswith(WHERE)


@given(st.text(alphabet=st.characters(blacklist_characters='\\$')))
def test_text_without_dollar_and_backslash_is_itself(text: str) -> None:
    assert perform(text, Context({}, {}), WHERE) == text


@given(st.text())
def test_parsing_ends_in_pieces_or_a_clear_error(text: str) -> None:
    try:
        parse(text, WHERE)
    except LaunchFileError as error:
        assert str(error).startswith(WHERE)


@pytest.mark.parametrize(('base', 'namespace', 'joined'), [
    (None, None, None), (None, '', '/'), (None, 'a', '/a'), ('/a', None, '/a'), ('/a', '', '/a'),
    ('/a', 'b', '/a/b'), ('/', 'b', '/b'), ('/a', '/b', '/b'), ('/a', 'b/', '/a/b'),
])
def test_namespaces_join_as_in_launch_ros(
        base: str | None, namespace: str | None, joined: str | None) -> None:
    assert join_namespace(base, namespace) == joined
