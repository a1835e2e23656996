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
"""Launch files into processes: order, scopes, conditions, includes, and every error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from biped_com_ros.launch_runner.actions import declared_arguments, load, Planner, ProcessPlan
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.errors import LaunchFileError
from biped_com_ros.launch_runner.parameters import ParameterFiles
import pytest
import yaml

Plan = Callable[..., Planner]
PRINT = '<node pkg="fake" exec="talk" args="\'{}\'"/>'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment with a package 'fake' that has the executables 'talk' and 'other'."""
    directory = tmp_path / 'prefix' / 'lib' / 'fake'
    directory.mkdir(parents=True)
    for name in ('talk', 'other'):
        (directory / name).write_text('#!/bin/sh\n')
        (directory / name).chmod(0o755)
    (directory / 'not_executable').write_text('')
    return {'AMENT_PREFIX_PATH': str(tmp_path / 'prefix'), 'SET': 'yes'}


@pytest.fixture
def plan(tmp_path: Path, environment: dict[str, str]) -> Plan:
    """Return a function that runs the body of a launch file; its first line is line 2."""
    def run(body: str, **arguments: str) -> Planner:
        file = tmp_path / 'main.launch.xml'
        file.write_text(f'<launch>\n{body}\n</launch>')
        parameters = tmp_path / 'parameters'
        parameters.mkdir(exist_ok=True)
        planner = Planner(Context(dict(arguments), dict(environment)), ParameterFiles(parameters))
        planner.run(load(file))
        return planner
    return run


def arguments(planner: Planner) -> list[str]:
    """Return the attribute ``args`` of each node."""
    return [process.command[1] for process in planner.processes]


def values(process: ProcessPlan, flag: str) -> list[str]:
    command = process.command
    return [command[i + 1] for i, part in enumerate(command) if part == flag]


def parameters(process: ProcessPlan) -> list[dict[str, Any]]:
    return [yaml.safe_load(Path(file).read_text()) for file in values(process, '--params-file')]


def test_arguments_take_the_given_value_or_the_default(plan: Plan) -> None:
    body = ('<arg name="a" default="1"/><arg name="b" default="$(var a)2"/>'
            '<node pkg="fake" exec="talk" args="\'$(var a) $(var b)\'"/>')
    assert arguments(plan(body)) == ['1 12']
    assert arguments(plan(body, a='5')) == ['5 52']
    assert arguments(plan(body, b='')) == ['1 ']


def test_choices_bind_and_a_missing_argument_is_named(plan: Plan) -> None:
    body = '<arg name="a" default="x"><choice value="x"/><choice value="y"/></arg>'
    plan(body, a='y')
    with pytest.raises(LaunchFileError, match=r"xml:2: unknown value of argument 'a' 'z'.*x, y"):
        plan(body, a='z')
    with pytest.raises(LaunchFileError, match=r"xml:2: argument 'a' \(what\).*give a:=VALUE"):
        plan('<arg name="a" description="what"/>')


@pytest.mark.parametrize(('attribute', 'value', 'runs'), [
    ('if', 'true', True), ('if', 'False', False), ('if', '1', True), ('if', '0', False),
    ('unless', 'true', False), ('unless', '0', True), ('if', ' True ', True)])
def test_conditions(plan: Plan, attribute: str, value: str, runs: bool) -> None:
    body = (f'<let name="c" value="{value}"/>'
            f'<node pkg="fake" exec="talk" args="x" {attribute}="$(var c)"/>')
    assert arguments(plan(body)) == (['x'] if runs else [])


def test_a_condition_must_be_a_truth_value(plan: Plan) -> None:
    """What it excludes is not evaluated."""
    with pytest.raises(LaunchFileError, match=r"xml:2: condition 'if' is 'yes' \(valid: true, 1"):
        plan('<node pkg="fake" exec="talk" args="\'x\'" if="yes"/>')
    plan('<group if="false"><node pkg="absent" exec="$(var absent)"/></group>')


def test_a_group_gives_back_what_it_changed(plan: Plan) -> None:
    inner = ('<let name="v" value="in"/><push_ros_namespace namespace="a"/>'
             '<set_env name="E" value="in"/><set_remap from="x" to="y"/>'
             '<set_parameter name="p" value="1"/><unset_env name="SET"/>')
    node = '<node pkg="fake" exec="talk" args="$(var v)"/>'
    body = '<let name="v" value="out"/>{}' + node + '</group>' + node
    inside, outside = plan(body.format('<group>' + inner)).processes
    assert values(inside, '-r') == ['__ns:=/a', 'x:=y']
    assert parameters(inside) == [{'/**': {'ros__parameters': {'p': 1}}}]
    assert inside.environment['E'] == 'in' and 'SET' not in inside.environment
    assert 'E' not in outside.environment and outside.environment['SET'] == 'yes'
    assert inside.command[1] == 'in'
    assert outside.command[1:] == ('out', '--ros-args')
    _, unscoped = plan(body.format('<group scoped="false">' + inner)).processes
    assert values(unscoped, '-r') == ['__ns:=/a', 'x:=y']
    assert unscoped.command[1] == 'in'


def test_namespaces_nest_and_parameters_without_a_name_reach_every_node(plan: Plan) -> None:
    node = '<node pkg="fake" exec="talk" namespace="{}"><param name="a" value="1"/></node>'
    processes = plan('<push-ros-namespace namespace="a"/><push_ros_namespace namespace="b"/>'
                     + node.format('c') + node.format('/d') + node.format('')).processes
    assert [values(process, '-r') for process in processes] == [
        ['__ns:=/a/b/c'], ['__ns:=/d'], ['__ns:=/a/b']]
    for process in processes:
        assert parameters(process) == [{'/**': {'ros__parameters': {'a': 1}}}]


def test_a_node_gets_everything_in_the_order_of_ros2_launch(
        plan: Plan, tmp_path: Path) -> None:
    file = tmp_path / 'p.yaml'
    file.write_text('/**:\n  ros__parameters: {a: 1}\n')
    planner = plan(
        '<set_remap from="/all" to="/some"/><set_parameter name="use_sim_time" value="true"/>'
        f'<node pkg="fake" exec="talk" name="me" namespace="n" args="--x \'a b\'"'
        '  ros_args="--log-level $(var level)" output="screen">'
        f'  <param name="z" value="0"/><param from="{file}"/><param name="a" value="2"/>'
        '  <param name="g"><param name="h" value="x"/></param>'
        '  <remap from="tf" to="/tf"/><env name="E" value="1"/></node>', level='debug')
    process, = planner.processes
    assert process.command[0].endswith('/lib/fake/talk')
    assert process.command[1:6] == ('--x', 'a b', '--ros-args', '--log-level', 'debug')
    assert values(process, '-r') == ['__node:=me', '__ns:=/n', '/all:=/some', 'tf:=/tf']
    assert process.environment['E'] == '1'
    assert parameters(process) == [
        {'/**': {'ros__parameters': {'use_sim_time': True}}},
        {'/n/me': {'ros__parameters': {'z': 0}}},
        {'/**': {'ros__parameters': {'a': 1}}},
        {'/n/me': {'ros__parameters': {'a': 2, 'g': {'h': 'x'}}}}]
    assert (process.name, process.output) == ('talk-1', 'screen')


def test_arguments_split_like_a_shell_but_not_inside_substitutions(plan: Plan) -> None:
    node, executable = plan(
        '<node pkg="fake" exec="talk" args="run $(var a)/$(var a) \'x  y\' --k=$(var b)"/>'
        '<executable cmd="/bin/run $(var a) \'x  y\'"><env name="E" value="1"/></executable>',
        a='1 2', b="it's").processes
    assert node.command[1:] == ('run', '1 2/1 2', 'x  y', "--k=it's", '--ros-args')
    assert executable.command == ('/bin/run', '1 2', 'x  y') and executable.environment['E'] == '1'
    assert (node.name, executable.name) == ('talk-1', 'run-2')


def test_attributes_of_processes_and_their_defaults(plan: Plan) -> None:
    """By default all ends within three seconds. Messages of the log are collected."""
    planner = plan(
        '<log message="robot: $(var a)"/><log message="not" if="false"/>'
        '<node pkg="fake" exec="talk" output="both" on_exit="shutdown" '
        'sigterm_timeout="1" sigkill_timeout="0.5"/>'
        '<executable cmd="c" name="n" cwd="/tmp" respawn="$(var r)" respawn_delay="0.5" '
        'respawn_max_retries="3" shell="true" launch-prefix="nice -n 5"/>'
        '<node pkg="fake" exec="talk"/>', a='talos', r='true')
    node, executable, plain = planner.processes
    assert planner.messages == ['robot: talos']
    assert node.output == 'both' and node.shuts_down and not node.respawn
    assert (node.sigterm_timeout, node.sigkill_timeout) == (1.0, 0.5)
    assert executable.command == ('nice', '-n', '5', 'c')
    assert (executable.name, executable.cwd, executable.shell) == ('n-2', '/tmp', True)
    assert (executable.respawn, executable.respawn_delay,
            executable.respawn_max_retries) == (True, 0.5, 3)
    assert plain.sigterm_timeout + plain.sigkill_timeout < 2.8
    assert not plain.shuts_down and plain.output == 'log'


def write_inner(tmp_path: Path, body: str) -> None:
    (tmp_path / 'inner.launch.xml').write_text(f'<launch>{body}</launch>')


INCLUDE = '<include file="$(dirname)/inner.launch.xml">{}</include>'


def test_an_include_gets_its_arguments(plan: Plan, tmp_path: Path) -> None:
    write_inner(tmp_path, '<arg name="a" default="d"/>' + PRINT.format('$(var a) $(var outer)'))
    arg = '<arg name="a" value="$(var outer)!"/>'
    assert arguments(plan(INCLUDE.format(arg), outer='o')) == ['o! o']
    assert arguments(plan(INCLUDE.format(''), outer='o')) == ['d o']


def test_an_include_is_not_a_scope(plan: Plan, tmp_path: Path) -> None:
    # As in ros2 launch; files that rely on anything else would differ there.
    write_inner(tmp_path, '<arg name="a" default="inner"/>')
    assert arguments(plan(INCLUDE.format('') + PRINT.format('$(var a)'))) == ['inner']


@pytest.mark.parametrize(('body', 'message'), [
    ('<arg name="b" value="1"/>', r"main.launch.xml:2: unknown argument of inner.launch.xml 'b'"),
    ('<arg name="a"/>', "lacks the attribute 'value'"),
    ('<let name="a" value="1"/>', "unknown tag inside <include> 'let'"),
])
def test_an_include_refuses(plan: Plan, tmp_path: Path, body: str, message: str) -> None:
    write_inner(tmp_path, '<arg name="a" default="d"/>')
    with pytest.raises(LaunchFileError, match=message):
        plan(INCLUDE.format(body))


@pytest.mark.parametrize(('file', 'message'), [
    ('$(dirname)/inner.launch.xml', r'main.launch.xml:2: .*inner.launch.xml:3: unknown'),
    ('$(dirname)/main.launch.xml', 'the file includes itself'),
    ('inner.launch.xml', r'begin it with \$\(dirname\)')])
def test_errors_of_an_included_file_name_both_places(
        plan: Plan, tmp_path: Path, file: str, message: str) -> None:
    write_inner(tmp_path, '\n\n<nod/>')
    with pytest.raises(LaunchFileError, match=message):
        plan(f'<include file="{file}"/>')


@pytest.mark.parametrize(('body', 'message'), [
    ('<nod pkg="a"/>', "unknown tag inside <launch> 'nod'; did you mean 'node'.*valid: arg, ex"),
    ('<timer period="1"/>', "unknown tag inside <launch> 'timer'"),
    ('<arg nam="a"/>', "unknown attribute of <arg> 'nam'; did you mean 'name'"),
    ('<node pkg="fake"/>', "<node> lacks the attribute 'exec'"),
    ('<node pkg="fake" exec="talk" if="1" unless="0"/>', "both 'if' and 'unless'"),
    ('<node pkg="fake" exec="talk"><parm/></node>', "tag inside <node> 'parm'; did you mean 'par"),
    ('<node pkg="fake" exec="tlk"/>', "unknown executable 'tlk' in package 'fake'; did you mean "),
    ('<node pkg="fake" exec="not_executable"/>', 'valid: other, talk'),
    ('<node pkg="rviz2" exec="rviz2"/>', 'sudo apt install ros-.*-rviz2'),
    ('<node pkg="biped_com_ros" exec="nodee"/>', "unknown executable 'nodee'"),
    ('<node pkg="fake" exec="talk" name="a b"/>', "node name 'a b' is not valid"),
    ('<node pkg="fake" exec="talk" namespace="a//b c"/>', "namespace '/a/b c' is not valid"),
    ('<node pkg="fake" exec="talk" output="file"/>', "unknown output 'file'.*valid: both, log"),
    ('<node pkg="fake" exec="talk" on_exit="restart"/>', "value of on_exit 'restart'.*shutdown"),
    ('<node pkg="fake" exec="talk" respawn="maybe"/>', "respawn is 'maybe'"),
    ('<node pkg="fake" exec="talk" respawn_delay="-1"/>', "respawn_delay is '-1'.*>= 0"),
    ('<node pkg="fake" exec="talk" respawn_max_retries="inf"/>', "retries is 'inf'.*>= -1"),
    ('<node pkg="fake" exec="talk" sigterm_timeout="-1"/>', "sigterm_timeout is '-1'.*>= 0"),
    ('<node pkg="fake" exec="talk" sigkill_timeout="inf"/>', "sigkill_timeout is 'inf'.*>= 0"),
    ('<executable cmd=" "/>', "'cmd' is empty"),
    ('<executable cmd="c"><param name="a" value="1"/></executable>', 'tag inside <executable> '),
    ('<node pkg="fake" exec="talk" args="\'open"/>', "attribute 'args': No closing quotation"),
    (PRINT.format('$(var x)'), "unknown launch variable 'x'.*valid: none"),
    ('<group>text</group>', "text 'text' inside <group>"),
    ('<node pkg="fake" exec="talk" args="\'$(foo)\'"/>', "unknown substitution 'foo'"),
    ('<node pkg="fake" exec="talk" args="\'a & b\'"/>', 'not well-formed'),
])
def test_what_is_not_known_is_refused_with_its_line(plan: Plan, body: str, message: str) -> None:
    with pytest.raises(LaunchFileError, match=message) as error:
        plan(f'\n\n{body}')
    assert 'main.launch.xml:4: ' in str(error.value)


def test_a_file_is_checked_before_anything_is_done(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(LaunchFileError, match=':3: unknown tag'):
        plan('<group if="false">\n<nod/></group>')
    (tmp_path / 'x.xml').write_text('<robot/>')
    with pytest.raises(LaunchFileError, match=":1: unknown root tag 'robot'"):
        load(tmp_path / 'x.xml')


def test_declared_arguments_are_found_through_includes(plan: Plan, tmp_path: Path) -> None:
    write_inner(tmp_path, '<arg name="a" default="1"/><arg name="b" description="bee"/>'
                '<arg name="c" default="3"/>')
    body = ('<arg name="a" default="0"/><let name="f" value="no"/><group if="false">'
            + INCLUDE.format('<arg name="a" value="$(var a)"/><arg name="c" value="9"/>')
            + '</group><include file="$(var f)" if="false"/>')
    (tmp_path / 'outer.launch.xml').write_text(f'<launch>{body}</launch>')
    found = declared_arguments(load(tmp_path / 'outer.launch.xml'), Context({}, {}))
    assert [(argument.name, argument.default) for argument in found] == [('a', '0'), ('b', None)]
    assert found[1].description == 'bee'
