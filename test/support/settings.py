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
"""Settings by the names that users know."""

from __future__ import annotations

import dataclasses

from biped_com_ros.core.settings import outside_name


def setting_values(settings, names='{}', fixed=()):
    """Return the value of each setting by its name from outside; see `setting_fields`."""
    found = {}
    for field in dataclasses.fields(settings):
        info, value = field.metadata.get('biped_com_ros'), getattr(settings, field.name)
        if field.name in fixed:
            continue
        if hasattr(info, 'kind'):
            found = {**setting_values(value, info.names, info.fixed), **found}
        elif info is not None:
            found[outside_name(field, names)] = list(value) if isinstance(value, tuple) else value
    return found


def lines(**values):
    """Return values as a list of ``<name> <value>``, as nodes take errors and noise."""
    return [f'{name} {value}' for name, value in values.items()]
