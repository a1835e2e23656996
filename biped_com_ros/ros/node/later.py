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
"""Attributes that are created when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


class once:
    """
    Attribute that is made when it is first asked for, like ``functools.cached_property``.

    That one asks for the object's ``__dict__``, after which CPython (up to 3.12) looks for all
    attributes of the object by name: seven times the work, at every message.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self._make(instance)
        setattr(instance, self._name, value)  # found first from now on
        return value

    def forget(self, instance: Any) -> None:
        """Make it anew when it is asked for again."""
        with suppress(AttributeError):
            delattr(instance, self._name)
