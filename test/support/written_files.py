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
"""Which files this process writes: to check that services write where they may, and only there."""

from contextlib import contextmanager
import os
from pathlib import Path
import sys

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
#: Events of Python's audit and how many of their arguments are paths that are written.
_EVENTS = {'open': 1, 'os.mkdir': 1, 'os.remove': 1, 'os.rename': 2, 'os.symlink': 2, 'os.link': 2,
           'os.truncate': 1}
#: Not of services: caches of Python, memory and devices.
_OTHERS = ('/dev/', '/proc/')
_recorders = []
_state = {'is_hooked': False}


@contextmanager
def written_files():
    """Yield the set of the paths that are written meanwhile, which grows."""
    if not _state['is_hooked']:
        sys.addaudithook(_on_event)  # it stays, as there is no way to remove it
        _state['is_hooked'] = True
    found = set()
    _recorders.append(found)
    try:
        yield found
    finally:
        _recorders.remove(found)


def _on_event(event, arguments):
    if not _recorders or event not in _EVENTS:
        return
    if event == 'open' and not (arguments[2] or 0) & _WRITES:
        return
    for path in arguments[:_EVENTS[event]]:
        if isinstance(path, (str, bytes, os.PathLike)):
            text = os.path.abspath(os.fsdecode(path))
            if not text.startswith(_OTHERS) and '__pycache__' not in text:
                for found in _recorders:
                    found.add(Path(text))
