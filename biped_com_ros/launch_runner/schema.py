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
Valid tags of a launch file, their attributes and their children.

A whole file is checked before any of its actions is executed. What ``ros2 launch`` of Jazzy
refuses is refused here too, so that a file that runs here runs there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from biped_com_ros.launch_runner.errors import LaunchFileError, unknown
from biped_com_ros.launch_runner.parameters import PARAMETER_TYPES
from biped_com_ros.launch_runner.substitutions import parse
from biped_com_ros.launch_runner.xml_reader import Element

_CONDITIONS = ('if', 'unless')
# Attributes in which substitutions are not performed.
_PLAIN = {('arg', 'description'), ('arg', 'name'), ('choice', 'value'), ('param', 'value-sep')}


@dataclass
class Tag:
    """Attributes and children of a tag; `choices` restricts the values of an attribute."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: dict[str, Tag] = field(default_factory=dict)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)


_NAME_VALUE = Tag(('name', 'value'))
_FROM_TO = Tag(('from', 'to'))
_BOOLEAN = ('true', 'false', 'True', 'False')
_PARAM = Tag(optional=('name', 'value', 'value-sep', 'type', 'from', 'allow_substs'),
             choices={'type': ('yaml', *PARAMETER_TYPES), 'allow_substs': _BOOLEAN})
_PARAM.children['param'] = _PARAM
_PROCESS = ('name', 'cwd', 'output', 'on_exit', 'launch-prefix', 'respawn', 'respawn_delay',
            'respawn_max_retries', 'sigterm_timeout', 'sigkill_timeout', 'shell')
_PROCESS_CHOICES = {'on_exit': ('shutdown',), 'shell': _BOOLEAN}

ACTIONS = {
    'arg': Tag(('name',), ('default', 'description', *_CONDITIONS), {'choice': Tag(('value',))}),
    'let': Tag(('name', 'value'), _CONDITIONS),
    'include': Tag(('file',), _CONDITIONS, {'arg': _NAME_VALUE}),
    'node': Tag(('pkg', 'exec'), ('namespace', 'args', 'ros_args', *_PROCESS, *_CONDITIONS),
                {'param': _PARAM, 'remap': _FROM_TO, 'env': _NAME_VALUE}, _PROCESS_CHOICES),
    'executable': Tag(('cmd',), (*_PROCESS, *_CONDITIONS), {'env': _NAME_VALUE},
                      _PROCESS_CHOICES),
    'push_ros_namespace': Tag(('namespace',), _CONDITIONS),
    'push-ros-namespace': Tag(('namespace',), _CONDITIONS),
    'set_parameter': Tag(('name', 'value'), _CONDITIONS),
    'set_remap': Tag(('from', 'to'), _CONDITIONS),
    'set_env': Tag(('name', 'value'), _CONDITIONS),
    'unset_env': Tag(('name',), _CONDITIONS),
    'log': Tag(('message',), _CONDITIONS),
}
ACTIONS['group'] = Tag((), ('scoped', *_CONDITIONS), ACTIONS, {'scoped': _BOOLEAN})
_LAUNCH = Tag((), ('version', 'deprecated'), ACTIONS)


def check(root: Element) -> None:
    """
    Check a whole file: tags, attributes, nesting, and the syntax of every substitution.

    Raises
    ------
    LaunchFileError
        At the first problem.

    """
    if root.tag != 'launch':
        raise unknown(root.where, 'root tag', root.tag, ['launch'])
    _check(root, _LAUNCH)


def _check(element: Element, tag: Tag) -> None:
    _check_attributes(element, tag)
    if element.tag == 'param':
        _check_parameter(element)
    for child in element.children:
        if child.tag not in tag.children:
            raise unknown(child.where, f'tag inside <{element.tag}>', child.tag, tag.children)
        _check(child, tag.children[child.tag])


def _check_attributes(element: Element, tag: Tag) -> None:
    valid = (*tag.required, *tag.optional)
    for name, value in element.attributes.items():
        if name not in valid:
            raise unknown(element.where, f'attribute of <{element.tag}>', name, valid)
        if value not in tag.choices.get(name, (value,)):
            raise unknown(element.where, f'value of {name}', value, tag.choices[name])
        if (element.tag, name) not in _PLAIN:
            parse(value, element.where)
    for name in tag.required:
        if name not in element.attributes:
            raise LaunchFileError(element.where, f"<{element.tag}> lacks the attribute '{name}'")
    if all(name in element.attributes for name in _CONDITIONS):
        raise LaunchFileError(element.where, f"<{element.tag}> has both 'if' and 'unless'")


def _check_parameter(element: Element) -> None:
    has = element.attributes.keys()
    if ('name' in has) == ('from' in has):
        raise LaunchFileError(element.where, "<param> needs either 'name' or 'from'")
    if 'from' in has and (element.children or not has <= {'from', 'allow_substs'}):
        raise LaunchFileError(
            element.where, "<param from> may have the attribute 'allow_substs' and nothing else")
    if 'name' in has and 'allow_substs' in has:
        raise LaunchFileError(element.where, "'allow_substs' needs 'from'")
    if 'name' in has and ('value' in has) == bool(element.children):
        raise LaunchFileError(
            element.where, f"<param name='{element.get('name')}'> needs either 'value' or nested "
            '<param> elements')
    if has & {'type', 'value-sep'} and 'value' not in has:
        raise LaunchFileError(element.where, "'type' and 'value-sep' need 'value'")
