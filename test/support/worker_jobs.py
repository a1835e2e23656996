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
"""Jobs for worker processes, which import them from here."""

import os
import signal


def killed_once(path):
    """Kill the own process the first time, as the kernel does when memory is short."""
    if not path.exists():
        path.write_text('')
        os.kill(os.getpid(), signal.SIGKILL)
    return f'done again {path.name}'


def killed_always(path):
    """Kill the own process each time, if the path says so."""
    if path.name == 'deadly':
        os.kill(os.getpid(), signal.SIGKILL)
    return ''


def interrupted(path):
    """Receive what ctrl-C sends to all processes of a terminal."""
    os.kill(os.getpid(), signal.SIGINT)
    return 'went on'


def wrong(path):
    """Raise what no unit expects."""
    raise ValueError(path.name)
