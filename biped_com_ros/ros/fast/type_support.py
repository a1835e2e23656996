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
"""Keeps a node from importing what only generates code."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

_PACKAGE = 'rosidl_generator_py'


def leave_out_generator() -> None:
    """
    Let messages find their type support without the generator of message code beside it.

    The first message that is used imports one function of the package ``rosidl_generator_py``,
    and with it the generator, a parser and its grammar: 20 ms of a node's start. Whoever asks the
    package for anything else gets all of it.
    """
    spec = None if _PACKAGE in sys.modules else importlib.util.find_spec(_PACKAGE)
    if spec is None or (loader := spec.loader) is None:
        return
    package: Any = importlib.util.module_from_spec(spec)  # its __init__ is not run
    sys.modules[_PACKAGE] = package
    try:
        from rosidl_generator_py.import_type_support_impl import import_type_support
    except ImportError:  # another release has it elsewhere
        del sys.modules[_PACKAGE]
        return

    def load(name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        del package.__getattr__
        loader.exec_module(package)
        return getattr(package, name)

    package.import_type_support, package.__getattr__ = import_type_support, load
