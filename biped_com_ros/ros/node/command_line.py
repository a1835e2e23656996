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
"""What executables of nodes do with words of their command line that are not for ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import inspect
from pathlib import Path
import re
import sys
from typing import Any

#: What ROS takes behind --ros-args only.
_ROS_FLAGS = ('-p', '-r', '-e', '--param', '--params-file', '--remap', '--enclave', '--log-level')


def needs_help(words: Sequence[str]) -> bool:
    """Return whether the words before ``--ros-args`` request help."""
    return any(word in ('-h', '--help') for word in _before_ros(words))


def complaint(create: Callable[..., Any], words: Sequence[str]) -> str:
    """
    Return why the words of a command line cannot be meant so; '' if they can.

    rclpy ignores what comes without ``--ros-args``: the node would run with its defaults.
    """
    before = list(_before_ros(words))
    if not any(word in _ROS_FLAGS or ':=' in word for word in before):
        return ''
    corrected = [word if ':=' not in word or before[max(i - 1, 0)] in _ROS_FLAGS else f'-p {word}'
                 for i, word in enumerate(before)]
    return (f"'{' '.join(before)}' is ignored without --ros-args; call: ros2 run biped_com_ros "
            f"{_name_of(create)} --ros-args {' '.join(corrected)}")


def help_text(create: Callable[..., Any]) -> str:
    """Return call, description and parameters of the node that a function creates."""
    name, module = _name_of(create), sys.modules[create.__module__]
    lines = [f'ros2 run biped_com_ros {name} --ros-args -p PARAMETER:=VALUE '
             '--params-file FILE -r FROM:=TO', '', _plain(module.__doc__ or '')]
    parameters = getattr(module, f"{name.title().replace('_', '')}Parameters", None)
    if parameters is not None:
        from biped_com_ros.core.settings import setting_fields
        lines += ['', 'Parameters:']
        lines += [f'  {field}: {info.text()}; default {default!r}'
                  for field, (_, default, info) in setting_fields(parameters).items()]
    return '\n'.join(lines)


def _plain(docstring: str) -> str:
    """Return a docstring without what only Sphinx shows: indentation and roles."""
    return re.sub(r':\w+:`~?([^`]*)`', r'\1', inspect.cleandoc(docstring))


def _before_ros(words: Sequence[str]) -> Sequence[str]:
    words = list(words)
    return words[:words.index('--ros-args')] if '--ros-args' in words else words


def _name_of(create: Callable[..., Any]) -> str:
    """Return the name of the executable, which is that of the folder of its module."""
    return Path(inspect.getfile(create)).parent.name
